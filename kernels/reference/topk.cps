// The k largest of each row, descending, and their positions; of equal values the earlier position comes first.
op topk(x[B, V]; k: int, sorted: bool = true) -> values[B, k], indices[B, k]: u32 {
    let (s, i) = sort_descending(x, axis: 1);
    values = s[:, 0:k];
    indices = i[:, 0:k];
}
