// RMS normalisation and product in one pass over the contraction, trn2, bf16: sums of squares grow with each block, and
// what was accumulated so far is scaled to the new norm. Which kernel gave the published figure is not said; this is the
// candidate of the same library, with the norm of the next block written before the products of this one.
op nkiat_rmsnorm_matmul(x[M, K], w[K, N]; eps: fp32 = 1e-6) -> y[M, N] {
    y = (x * rsqrt(mean(x * x, axis: 1) + eps)) @ w;
}

// Block `step` of 1024 rows and 512 of K; two slots in turn for everything that the products read.
fn normalise(x, xs, xt, ss, old, ratio, mb, kb, step, K, eps) {
    for m in tiles(mb, 128) {
        let t = ds((8 * (step % 2) + m.index) * 128, 128);
        xs[t, 0..512] <- x[m, kb];
    }
    for m in tiles(mb, 128) {
        let j = m.index;
        let t = ds((8 * (step % 2) + j) * 128, 128);
        let c = 8 * (step % 2) + j;
        sbuf s[128, 1]: fp32 = sum(square(xs[t, 0..512]), axis: free);
        if (kb.first) { ss[:, j:j + 1] = s; } else { ss[:, j:j + 1] = ss[:, j:j + 1] + s; }
        sbuf inv[128, 1]: fp32 = rsqrt(ss[:, j:j + 1] * (1.0 / K) + eps);
        if (!kb.first) {
            sbuf back[128, 1]: fp32 = 1 / old[:, j:j + 1];
            ratio[:, c:c + 1] = back * inv;
        }
        old[:, j:j + 1] = inv on dve;
        xs[t, 0..512] = xs[t, 0..512] * inv;
        for k in tiles(512, 128) { xt[ds((4 * (step % 2) + k.index) * 128, 128), ds(j * 128, 128)] <- xs[t, k]'; }
    }
}

leaf rmsnorm_matmul_online for nkiat_rmsnorm_matmul on trn2 {
    where M % 1024 == 0 && K % 512 == 0 : "whole blocks";
    cases (M: 1024, K: 1024, N: 512);
    tolerance 3e-2, 1e-3;
    sbuf old[128, 8]: fp32;                             // 1 / norm so far, one column for each row tile
    sbuf ss[128, 8]: fp32;
    sbuf ratio[128, 16]: fp32;                          // new norm over old
    sbuf xs[2048 by 128, 512]: x.dtype;
    sbuf xt[1024 by 128, 1024]: x.dtype;
    let rows = [m for m in tiles(M, 1024)];
    let blocks = [b for b in tiles(K, 512)];
    let nk = K / 512;
    normalise(x, xs, xt, ss, old, ratio, rows[0], blocks[0], 0, K, eps);
    for mb in tiles(M, 1024) {
        sbuf acc[mb by 128, N]: fp32 bufs 2;            // running result
        for kb in tiles(K, 512) {
            let step = mb.index * nk + kb.index;
            if (step + 1 < nk * (M / 1024)) {
                normalise(x, xs, xt, ss, old, ratio, rows[(step + 1) / nk], blocks[(step + 1) % nk], step + 1, K, eps);
            }
            for n in tiles(N, 512) {
                sbuf wt[kb by 128, n]: w.dtype bufs 2;
                for k in tiles(kb, 128) { wt[k, n] <- w[k, n]; }
                for m in tiles(mb, 128) {
                    let j = 8 * (step % 2) + m.index;
                    psum p[m, n]: fp32 bufs 4;
                    for k in tiles(kb, 128) {
                        let t = ds((4 * (step % 2) + k.start / 128 - kb.start / 128) * 128, 128);
                        p += xt[t, ds(m.index * 128, 128)]' @ wt[k, n];
                    }
                    if (kb.first) {
                        acc[m, n] = p;
                    } else if (kb.last) {
                        sbuf o[m, n]: y.dtype bufs 4 = acc[m, n] * ratio[:, j:j + 1] + p;
                        y[m, n] <- o;
                    } else {
                        acc[m, n] = acc[m, n] * ratio[:, j:j + 1] + p;
                    }
                }
            }
        }
    }
}
