// Batched products: one batch after another, all edges.
use "leaves/matmul.cps";

leaf bmm_tiles for bmm on trn1, trn2, trn3 {
    where x.dtype in {bf16, fp16, fp32} && w.dtype == x.dtype : "x and w share bf16, fp16 or fp32";
    where ceil_div(K, 128) * (128 + 512) * 2 * bytes(x.dtype) <= sbuf.partition * 3 / 4 : "a strip of x and of w must stay on chip";
    cost pe: B * M * N * K / (128 * 128) * target.pe_passes(x.dtype), hbm: bytes(x) + bytes(w) * ceil_div(M, 128) + bytes(y);
    tolerance 2e-2, 1e-5;
    cases (B: 12, M: 128, K: 32, N: 128), (B: 2, M: 130, K: 140, N: 600), (B: 3, M: 1, K: 7, N: 5, dtype: fp32);

    for b in 0..B across cores, m in tiles(M, 128) {
        sbuf xt[K by 128, m]: x.dtype bufs 2;
        load_transposed(xt, x[b, m, :]);
        for n in tiles(N, 512) {
            sbuf wt[K by 128, n]: w.dtype bufs 2 <- w[b, :, n];
            psum acc[m, n]: fp32 bufs 2;
            for k in tiles(K, 128) { acc += xt[k, m]' @ wt[k, n]; }
            y[b, m, n] <- acc bufs 2;
        }
    }
}
