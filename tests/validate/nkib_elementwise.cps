// NKIBench, fp32 on trn1: SiLU and an AdamW step (zhang677/AccelOpt, NKIBench/kernels/silu and adamw). Loads and stores have two
// slots, temporaries one, updated in place where the source writes to the same name: with more of them DVE would never
// wait for ACT, as it does in the published profiles.

op silu_rows(x[M, N]) -> y[M, N] {
    y = x * (1.0 / (exp(-x) + 1.0));
}

// Base version: a row is 32 p + i; two halves of 512 columns; exp on ACT, the rest on DVE.
leaf silu_steps for silu_rows on trn1 {
    tolerance 1e-4, 1e-5;
    cases (M: 256, N: 2048);
    let xv = x.view("(p i) n -> p i n", p: 128);
    let yv = y.view("(p i) n -> p i n", p: 128);
    for i in 0..M / 128, c in tiles(N, 1024) {
        sbuf xt[P, c] bufs 2 <- xv[:, i, c];
        sbuf yt[P, c]: fp32 bufs 2;
        for h in tiles(c, 512) {
            sbuf t[P, h]: fp32 bufs 1 = exp(-xt[:, h]);
            t = t + 1.0;
            t = 1.0 / t;
            yt[:, h] = xt[:, h] * t;
        }
        yv[:, i, c] <- yt;
    }
}

// Best version: sigmoid on ACT, one product on DVE. Bound by memory, with slots to spare.
leaf silu_sigmoid for silu_rows on trn1 {
    tolerance 1e-4, 1e-5;
    cases (M: 256, N: 2048);
    let xv = x.view("(p i) n -> p i n", p: 128);
    let yv = y.view("(p i) n -> p i n", p: 128);
    for i in 0..M / 128, c in tiles(N, 1024) {
        sbuf xt[P, c] bufs 4 <- xv[:, i, c];
        sbuf yt[P, c]: fp32 bufs 4;
        for h in tiles(c, 512) {
            sbuf t[P, h]: fp32 bufs 2 = sigmoid(xt[:, h]);
            yt[:, h] = xt[:, h] * t;
        }
        yv[:, i, c] <- yt;
    }
}

op adamw_step(theta[M, N], g[M, N], m[M, N], v[M, N]) -> y[M, N] {
    let m1 = 0.9 * m + 0.1 * g;
    let v1 = 0.999 * v + 0.001 * g * g;
    y = theta - theta * 0.00001 - 0.01 * m1 / (sqrt(1000.0 * v1) + 0.00000001);
}

fn scaled(t, x, s) { activation(dst: t, data: x, scale: s, op: "copy"); }

// Eight of the nine one-input instructions run on ACT, and three of their results go to PSUM, where the next instruction of
// DVE reads them at its full rate. (Which three is not published; t1, t4 and t8 make the busy time of DVE fit.)
leaf adamw_halves for adamw_step on trn1 {
    tolerance 1e-4, 1e-5;
    cases (M: 192, N: 2048);
    for r in tiles(M, P), c in tiles(N, 1024) {
        sbuf th[r, c] bufs 2 <- theta[r, c];
        sbuf mt[r, c] bufs 2 <- m[r, c];
        sbuf vt[r, c] bufs 2 <- v[r, c];
        sbuf gt[r, c] bufs 2 <- g[r, c];
        sbuf o[r, c]: fp32 bufs 2;
        for h in tiles(c, 512) {
            psum t1[r, h]: fp32 bufs 1;
            scaled(t1, th[:, h], 0.00001);
            sbuf t2[r, h]: fp32 bufs 1 = th[:, h] - t1;
            sbuf t3[r, h]: fp32 bufs 1;
            scaled(t3, mt[:, h], 0.9);
            psum t4[r, h]: fp32 bufs 1;
            scaled(t4, gt[:, h], 0.1);
            sbuf t5[r, h]: fp32 bufs 1 = t3 + t4;
            sbuf t6[r, h]: fp32 bufs 1;
            scaled(t6, t5, 0.01);
            sbuf t7[r, h]: fp32 bufs 1;
            scaled(t7, vt[:, h], 0.999);
            psum t8[r, h]: fp32 bufs 1;
            scaled(t8, gt[:, h], 0.001);
            sbuf t9[r, h]: fp32 bufs 1 = gt[:, h] * t8;
            sbuf t10[r, h]: fp32 bufs 1 = t7 + t9;
            sbuf d[r, h]: fp32 bufs 1 = sqrt(1000.0 * t10);
            d = d + 0.00000001 on act;
            d = 1.0 / d;
            t6 = t6 * d;
            o[:, h] = t2 - t6;
        }
        y[r, c] <- o;
    }
}
