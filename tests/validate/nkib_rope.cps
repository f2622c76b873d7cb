// NKIBench, fp32 on trn1: rotary embedding over halves of the partitions (zhang677/AccelOpt, NKIBench/kernels/rope, and
// samples/nki/rope_optimized.py). 512 columns an iteration in the base version, 2,048 in the best one. The source of the latter
// moves halves of x and of the result, which would need no copies; the published counts have two copies an iteration in both
// versions, so whole tiles move in both.
//
// Loops are static, so instructions keep the order written. There is one tile of results: the next subtraction waits until the
// store of the last results is acknowledged. That is read off the published idle time of VectorE (2.4 us an iteration of 512
// columns, 4.2 of 2,048), fits both versions, and is stated nowhere; temporaries have one slot too.

op rope_halves(x[D, T], cos[D / 2, T], sin[D / 2, T]; wide: int = 512) -> y[D, T] {
    let h = D / 2;
    y[0:h, :] = x[0:h, :] * cos - x[h:D, :] * sin;
    y[h:D, :] = x[0:h, :] * sin + x[h:D, :] * cos;
}

// Six instructions on DVE, both inputs in SBUF; ACT moves the second half to the lanes of the first and the sum back.
leaf rope_halves_static for rope_halves on trn1 {
    tolerance 1e-4, 1e-5;
    cases (D: 128, T: 6144);
    let h = D / 2;
    for t in tiles(T, wide) {
        sbuf xt[D, t] bufs 2 <- x[:, t];
        sbuf c[h, t] bufs 2 <- cos[:, t];
        sbuf s[h, t] bufs 2 <- sin[:, t];
        sbuf yt[D, t]: fp32 bufs 1;
        sbuf o[h, t]: fp32 bufs 1 = xt[h:D, :] on act;
        sbuf p[h, t]: fp32 bufs 1 = xt[0:h, :] * c;
        sbuf q[h, t]: fp32 bufs 1 = o * s;
        yt[0:h, :] = p - q;
        sbuf u[h, t]: fp32 bufs 1 = o * c;
        sbuf v[h, t]: fp32 bufs 1 = xt[0:h, :] * s;
        u = u + v;
        yt[h:D, :] = u on act;
        y[:, t] <- yt;
    }
}
