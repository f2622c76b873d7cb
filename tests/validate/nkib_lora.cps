// NKIBench, fp32 on trn1: a product with a low-rank correction (zhang677/AccelOpt, NKIBench/kernels/lora). By the published counts
// x is transposed once for each phase and the second copy is stored and loaded for every block of columns; sums leave the chip
// between quarters of the contraction, and so does the correction. 848 of the 1,019 MiB stored and 1,728 of the 1,819 loaded again
// are explained so.

// to = from', by PE and a copy.
fn turn(to, from) {
    psum t[to.axis(0), to.axis(1)]: fp32 bufs 2 = from';
    to = t on act;
}

op lora(x[M, K], w[K, N], a[K, R], b[R, N]) -> y[M, N] {
    y = x @ w + (x @ a) @ b;
}

leaf lora_quarters for lora on trn1 {
    tolerance 1e-4, 1e-5;
    cases (M: 1024, K: 1024, N: 1024, R: 128);
    let Q = K / 4;
    hbm low[N, M]: fp32;                                    // the correction, transposed
    hbm turned[K, M]: fp32;
    hbm sums[N, M]: fp32;
    sbuf at[K by 128, R]: fp32;
    for k in tiles(K, 128) { at[k, :] <- a[k, :]; }
    for mb in tiles(M, 512) {
        psum pa[R, mb]: fp32 bufs 1;
        for kb in tiles(K, 1024) {
            sbuf xt[kb by 128, mb]: fp32 bufs 2;
            for m in tiles(mb, 128) {
                sbuf rows[m, kb] bufs 2 <- x[m, kb];
                for k in tiles(kb, 128) { turn(xt[k, m], rows[:, k]); }
            }
            for k in tiles(kb, 128) { pa += at[k, :]' @ xt[k, :]; }
        }
        sbuf xa[R, mb]: fp32 bufs 2 = pa on act;
        for nb in tiles(N, 1024) {
            sbuf bt[R, nb] bufs 2 <- b[:, nb];
            for n in tiles(nb, 128) {
                psum pb[n, mb]: fp32 bufs 2 = bt[:, n]' @ xa;
                sbuf t[n, mb]: fp32 bufs 3 = pb on act;
                low[n, mb] <- t;
            }
        }
    }
    for nb in tiles(N, 1024), q in tiles(K, Q) {
        sbuf wt[q by 128, nb]: fp32 bufs 1;
        for k in tiles(q, 128) { wt[k, :] <- w[k, nb]; }
        for mb in tiles(M, 512) {
            sbuf xt[q by 128, mb]: fp32 bufs 2;
            if (nb.first) {
                for h in split(q, 2), m in tiles(mb, 128) {
                    sbuf rows[m, h] bufs 2 <- x[m, h];
                    for k in tiles(h, 128) { turn(xt[k, m], rows[:, k]); }
                }
                turned[q, mb] <- xt;
            } else { xt <- turned[q, mb] on sp; }
            for n in tiles(nb, 128) {
                psum acc[n, mb]: fp32 bufs 2;
                for k in tiles(q, 128) { acc += wt[k, n]' @ xt[k, :]; }
                sbuf s[n, mb]: fp32 bufs 4;
                if (q.first) { s = 0.0 on pool; } else { s <- sums[n, mb] on sp; }
                s = s + acc;
                if (!q.last) { sums[n, mb] <- s; continue; }
                sbuf t[n, mb] bufs 2 <- low[n, mb] on sp;
                s = s + t;
                for m in tiles(mb, 128) {
                    sbuf o[m, n]: fp32 bufs 4;
                    turn(o, s[:, m]);
                    y[m, n] <- o;
                }
            }
        }
    }
}
