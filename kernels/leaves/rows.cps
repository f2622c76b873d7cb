// How element-wise leaves lay a tensor on the partitions.

// The most partitions, up to 128, over which `elems` elements divide evenly.
fn lanes(elems) {
    var best = 1;
    for q in 2..129 { if (elems % q == 0) { best = q; } }
    return best;
}

// x[T, N] as rows for the partitions: as it is, or its elements spread evenly where that fills more of them.
fn spread(x) {
    let t = x.shape[0];
    let elems = t * x.shape[1];
    let q = lanes(elems);
    if (q <= min(t, 128)) { return x; }
    return x.view("t n -> (t n)").view("(p m) -> p m", p: q);
}

// The largest power of two, up to 2^15, that divides n: the element of an indexed transfer.
fn grain(n, at = 32768) {
    if (n % at == 0) { return at; }
    return grain(n, at / 2);
}
