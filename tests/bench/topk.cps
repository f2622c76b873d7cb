// Top k of each row by rounds of eight, for the benchmark: values without their positions, which NumPy's sort does not give.

op bench_topk(x[B, V]; k: int = 64) -> values[B, k] {
    values = x[:, 0:k];                     // never evaluated: the benchmark compares with NumPy's sort
}

leaf bench_topk_rounds for bench_topk on trn1, trn2, trn3 {
    where k % 8 == 0 : "rounds of eight";
    tolerance 0, 0;
    cases (B: 128, V: 256, k: 8);

    for b in tiles(B, P) {
        sbuf a[b, V] bufs 2 <- x[b, :];
        sbuf top[b, k]: x.dtype bufs 2;
        for r in tiles(k, 8) {
            max8(dst: top[:, r], src: a);
            nc_match_replace8(dst: a, data: a, vals: top[:, r], imm: -3.0e38);
        }
        values[b, :] <- top;
    }
}
