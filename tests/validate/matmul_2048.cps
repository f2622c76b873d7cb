// 2048^3 in bf16 on trn2: a ladder of schedules, x given transposed (stored [K, M]). 1,024 matmuls of 512 columns in every rung.

// Loads at the innermost place.
leaf mm2048_sunk for matmul on trn2 {
    layout x: [M, K] or [K, M];
    cases (M: 256, K: 256, N: 1024);
    for m in tiles(M, 128), n in tiles(N, 512) {
        psum acc[m, n]: fp32 bufs 2;
        for k in tiles(K, 128) {
            sbuf a[k, m] bufs 4 <- x[m, k]';
            sbuf b[k, n] bufs 4 <- w[k, n];
            acc += a' @ b;
        }
        sbuf o[m, n]: y.dtype bufs 2 = acc on act;
        y[m, n] <- o;
    }
}
