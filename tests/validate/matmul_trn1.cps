// [4096,8192] x [8192,8192] in bf16 on trn1: the four kernels of the matrix multiplication tutorial and the steps of an
// independent optimisation of the first one. x is given transposed (stored [K, M]) in all of them. Loop nests, loads and
// stores are those of the published sources; buffer counts, which the vendor's compiler chose, are ours: 8 for streams of loads.

// Every operand tile is loaded where it is used.
leaf mm_tiled for matmul on trn1, trn2 {
    layout x: [M, K] or [K, M];
    cases (M: 256, K: 256, N: 1024);
    for m in tiles(M, 128), n in tiles(N, 512) {
        psum acc[m, n]: fp32 bufs 2;
        for k in tiles(K, 128) {
            sbuf a[k, m] bufs 8 <- x[m, k]';
            sbuf b[k, n] bufs 8 <- w[k, n];
            acc += a' @ b;
        }
        sbuf o[m, n]: y.dtype bufs 4 = acc on act;
        y[m, n] <- o;
    }
}

// The loads of x stand outside the n loop, those of w outside the k loop.
leaf mm_hoist_load for matmul on trn1, trn2 {
    layout x: [M, K] or [K, M];
    cases (M: 256, K: 256, N: 1024);
    for m in tiles(M, 128) {
        for n in tiles(N, 512) {
            psum acc[m, n]: fp32 bufs 2;
            for k in tiles(K, 128) {
                if (n.first) { sbuf a[k, m] bufs K / 128 <- x[m, k]'; }
                sbuf b[k, n] bufs K / 128 <- w[k, n];
                acc += a' @ b;
            }
            sbuf o[m, n]: y.dtype bufs 4 = acc on act;
            y[m, n] <- o;
        }
    }
}
