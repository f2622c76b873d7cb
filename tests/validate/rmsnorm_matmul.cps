// RMS normalisation and product in one pass over the contraction, trn2, bf16: sums of squares grow with each block, and
// what was accumulated so far is scaled to the new norm. Which kernel gave the published figure is not said; this is the
// candidate of the same library.
op rmsnorm_matmul(x[M, K], w[K, N]; eps: fp32 = 1e-6) -> y[M, N] {
    y = (x * rsqrt(mean(x * x, axis: 1) + eps)) @ w;
}

leaf rmsnorm_matmul_online for rmsnorm_matmul on trn2 {
    cases (M: 1024, K: 1024, N: 512);
    tolerance 3e-2, 1e-3;
    for mb in tiles(M, 1024) {
        sbuf acc[mb by 128, N]: fp32;                   // running result
        sbuf old[128, 8]: fp32;                         // 1 / norm so far, one column for each row tile
        sbuf ss[128, 8]: fp32;
        for kb in tiles(K, 512) {
            sbuf xs[mb by 128, kb]: x.dtype bufs 2;
            sbuf xt[kb by 128, mb]: x.dtype bufs 2;
            sbuf ratio[128, 8]: fp32 bufs 2;
            for m in tiles(mb, 128) { xs[m, kb] <- x[m, kb]; }
            for m in tiles(mb, 128) {
                let j = m.index;
                sbuf s[128, 1]: fp32 = sum(square(xs[m, kb]), axis: free);
                if (kb.first) { ss[:, j:j + 1] = s; } else { ss[:, j:j + 1] = ss[:, j:j + 1] + s; }
                sbuf inv[128, 1]: fp32 = rsqrt(ss[:, j:j + 1] * (1.0 / K) + eps);
                if (!kb.first) {
                    sbuf back[128, 1]: fp32 = 1 / old[:, j:j + 1];
                    ratio[:, j:j + 1] = back * inv;
                }
                old[:, j:j + 1] = inv on dve;
                xs[m, kb] = xs[m, kb] * inv;
                for k in tiles(kb, 128) { xt[k, m] <- xs[m, k]'; }
            }
            for n in tiles(N, 512) {
                sbuf wt[kb by 128, n]: w.dtype bufs 2;
                for k in tiles(kb, 128) { wt[k, n] <- w[k, n]; }
                for m in tiles(mb, 128) {
                    let j = m.index;
                    psum p[m, n]: fp32 bufs 4;
                    for k in tiles(kb, 128) { p += xt[k, m]' @ wt[k, n]; }
                    if (kb.first) { acc[m, n] = p; } else { acc[m, n] = acc[m, n] * ratio[:, j:j + 1] + p; }
                }
            }
        }
        for m in tiles(mb, 128) {
            sbuf o[m, N]: y.dtype bufs 2 = acc[m, :];
            y[m, :] <- o;
        }
    }
}
