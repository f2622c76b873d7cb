// Products with an RMS norm in front or behind.

// The norm is two scales, and neither stands before the product: gamma is that of rows of w, once, and 1 / deviation that of rows of the
// result, where ACT brings it out of PSUM. So PE works on x as it comes.
leaf add_rmsnorm_matmul_rows for add_rmsnorm_matmul on trn1, trn2, trn3 {
    where x.dtype in {bf16, fp16, fp32} && w.dtype == x.dtype && residual.dtype == x.dtype : "x, w and residual must share bf16, fp16 or fp32";
    let size = bytes(x.dtype);
    let folds = ceil_div(K, P);
    where folds * (N + 2 * P) * size + K * (6 * size + 4) + 3 * N * bytes(y.dtype) + 4 * folds + 1024 <= sbuf.partition : "w, rows of x and of y must stay on chip";
    cost pe: ceil_div(M, P) * folds * (N + P) * target.pe_passes(x.dtype), act: ceil_div(M, P) * (K + N + 200), dve: ceil_div(M, P) * 3 * K,
         hbm: 2 * bytes(x) + bytes(w) + bytes(y);
    tolerance x.dtype == fp32 ? 1e-4 : 2e-2, 1e-5;
    cases (M: 256, K: 256, N: 512), (M: 130, K: 300, N: 700, with: "gamma"), (M: 1, K: 7, N: 5, with: "gamma", dtype: fp32), (M: 300, K: 640, N: 600, dtype: fp32);

    sbuf wk[K by P, N]: w.dtype;
    if (present(gamma)) {
        sbuf g[K by P, 1]: fp32;
        for k in tiles(K, P) { g[k, :] <- gamma.view("k -> k 1")[k, :]; }
    }
    var loaded = false;
    for m in tiles(M, P) across cores {
        sbuf rows[m, K] bufs 3 <- x[m, :];
        sbuf add[m, K] bufs 3 <- residual[m, :];
        rows = rows + add;
        sbuf ss[m, 1]: fp32 bufs 3 = sum(square(rows), axis: free);
        sbuf r[m, 1]: fp32 bufs 3 = rsqrt(ss * (1.0 / K) + eps);
        sbuf xt[K by P, m]: x.dtype bufs 2;
        for kb in tiles(K, 4 * P) {
            psum turned[kb by P, m]: transposed(x.dtype) bufs 2;
            for k in tiles(kb, P) { turned[k, :] = rows[:, k]'; }
            xt[kb, :] = turned on dve;
        }
        sbuf o[m, N]: y.dtype bufs 3;
        for n in tiles(N, 512) {
            if (!loaded) {                                      // the first tile brings the columns of w
                wk[:, n] <- w[:, n];
                if (present(gamma)) { for k in tiles(K, P) { wk[k, n] = wk[k, n] * g[k, :]; } }
            }
            psum acc[m, n]: fp32 bufs 6;
            for k in tiles(K, P) { acc += xt[k, :]' @ wk[k, n]; }
            o[:, n] = copy(acc * r);
        }
        loaded = true;
        y[m, :] <- o;
    }
}

leaf matmul_rmsnorm_strips for matmul_rmsnorm on trn1, trn2, trn3 {
    where x.dtype in {bf16, fp16, fp32} && w.dtype == x.dtype && (present(residual) ? residual.dtype == x.dtype : true) : "x, w and residual must share bf16, fp16 or fp32";
    param MB in {1, 2, 4} = 2;                                  // row tiles of a strip
    let size = bytes(x.dtype);
    let folds = ceil_div(K, P);
    where folds * (2 * MB * P + 2 * min(N, 512)) * size + 2 * K * size + N * (MB * 4 * 2 + 4 + 2 * bytes(y.dtype) + bytes(gamma.dtype)) + (present(residual) ? 4 * 512 * size : 0) + 1024 <= sbuf.partition
        : "strips of x and of sums must fit one partition beside columns of w";
    cost pe: ceil_div(M, P) * folds * (N + P) * target.pe_passes(x.dtype), act: ceil_div(M, P) * (N + 200), dve: ceil_div(M, P) * (3 * N + K),
         hbm: bytes(x) + bytes(w) * ceil_div(M, MB * P) + bytes(y) * (present(residual) ? 2 : 1);
    tolerance x.dtype == fp32 ? 1e-4 : 2e-2, 1e-5;
    cases (M: 256, K: 256, N: 512), (M: 300, K: 300, N: 700, with: "residual"), (M: 1, K: 7, N: 5, dtype: fp32), (M: 513, K: 640, N: 600, with: "residual", dtype: fp32);

    let R = min(M, P);
    sbuf g[R, N] <- repeat(gamma.view("n -> 1 n"), R, axis: 0);
    for mb in tiles(M, MB * P) across cores {
        sbuf xt[K by P, mb]: x.dtype bufs 2;
        for m in tiles(mb, P) {
            sbuf rows[m, K] bufs 2 <- x[m, :];
            for kb in tiles(K, 4 * P) {
                psum turned[kb by P, m]: transposed(x.dtype) bufs 2;
                for k in tiles(kb, P) { turned[k, :] = rows[:, k]'; }
                xt[kb, m] = turned on act;
            }
        }
        sbuf s[mb by P, N]: fp32 bufs 2;
        for n in tiles(N, 512) {
            sbuf wt[K by P, n] bufs 2 <- w[:, n];
            for m in tiles(mb, P) {
                psum acc[m, n]: fp32 bufs 6;
                for k in tiles(K, P) { acc += xt[k, m]' @ wt[k, n]; }
                if (present(residual)) {
                    sbuf z[m, n] bufs 4 <- residual[m, n];
                    s[m, n] = acc + z;
                } else {
                    s[m, n] = acc;
                }
            }
        }
        for m in tiles(mb, P) {
            sbuf ss[m, 1]: fp32 bufs 3 = sum(square(s[m, :]), axis: free);
            sbuf r[m, 1]: fp32 bufs 3 = rsqrt(ss * (1.0 / N) + eps);
            y[m, :] <- s[m, :] * r * g[0:m.size, :] bufs 2;     // DVE scalar_tensor_tensor, one DMA
        }
    }
}
