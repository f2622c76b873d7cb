// Data movement: what reshapes and transposes of a graph become when they cannot be free.
op transpose(x[A, B, C]) -> y[A, C, B] {
    y = x';
}

op swap_axes(x[A, B, C, D]) -> y[A, C, B, D] {
    y = x.view("a b c d -> a c b d");
}

op slice(x[A, N, B]; start: int, count: int) -> y[A, count, B] {
    y = x[:, start:start + count, :];
}

// ids may be any integer type; out-of-range ids are an error.
op gather_rows(table[V, H], ids[T]: i32) -> y[T, H] {
    y = gather(table, ids);
}

op cumsum(x[B, N]) -> y[B, N] {
    y = scan_add(x, axis: 1);
}
