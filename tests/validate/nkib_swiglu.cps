// NKIBench, fp32 on trn1: a gated MLP (zhang677/AccelOpt, NKIBench/kernels/swiglu). By the published counts x is transposed
// once and stored, the products of gate and up are fused, and 48 MiB of hidden values pass through HBM. Buffer counts are ours.

// to = from', by PE and a copy.
fn turn(to, from) {
    psum t[to.axis(0), to.axis(1)]: fp32 bufs 2 = from';
    to = t on act;
}

op swiglu(x[M, K], w_gate[K, N], w_up[K, N], w_down[N, H]) -> y[M, H] {
    let g = x @ w_gate;
    y = (g * (1.0 / (exp(-g) + 1.0)) * (x @ w_up)) @ w_down;
}

// 88 of the 192 up products are copied out of PSUM before they are used (which ones is not published).
leaf swiglu_blocks for swiglu on trn1 {
    tolerance 1e-4, 1e-5;
    cases (M: 1024, K: 256, N: 2048, H: 1024);
    hbm turned[K, M]: fp32;
    hbm hidden[N, M]: fp32;
    for nb in tiles(N, 1024) {
        sbuf wg[K by 128, nb]: fp32 bufs 1;
        sbuf wu[K by 128, nb]: fp32 bufs 1;
        for k in tiles(K, 128) { wg[k, :] <- w_gate[k, nb]; wu[k, :] <- w_up[k, nb]; }
        for mb in tiles(M, 512) {
            sbuf xt[K by 128, mb]: fp32 bufs 2;
            if (nb.first) {
                for m in tiles(mb, 128) {
                    sbuf rows[m, K] bufs 2 <- x[m, :];
                    for k in tiles(K, 128) { turn(xt[k, m], rows[:, k]); }
                }
                turned[:, mb] <- xt;
            } else { xt <- turned[:, mb] on sp; }
            for n in tiles(nb, 128) {
                psum pg[n, mb]: fp32 bufs 2;
                for k in tiles(K, 128) { pg += wg[k, n]' @ xt[k, :]; }
                sbuf g[n, mb]: fp32 bufs 2 = pg on act;
                psum pu[n, mb]: fp32 bufs 2;
                for k in tiles(K, 128) { pu += wu[k, n]' @ xt[k, :]; }
                sbuf e[n, mb]: fp32 bufs 2 = exp(-g);
                e = e + 1.0 on act;
                e = 1.0 / e;
                g = g * e;
                sbuf h[n, mb]: fp32 bufs 2;
                if (nb.index * (M / 512) + mb.index < 11) { h = pu on act; h = g * h; } else { h = g * pu; }
                hidden[n, mb] <- h;
            }
        }
    }
    sbuf wd[N by 128, H]: fp32;
    for n in tiles(N, 128) { wd[n, :] <- w_down[n, :]; }
    for mb in tiles(M, 512) {
        sbuf ht[N by 128, mb]: fp32 bufs 1;
        for n in tiles(N, 128) { ht[n, :] <- hidden[n, mb] on sp; }
        for m in tiles(mb, 128) {
            sbuf o[m, H]: fp32 bufs 2;
            for c in tiles(H, 512) {
                psum acc[m, c]: fp32 bufs 2;
                for n in tiles(N, 128) { acc += ht[n, m]' @ wd[n, c]; }
                o[:, c] = acc on act;
            }
            y[m, :] <- o;
        }
    }
}
