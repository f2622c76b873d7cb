// RMS normalisation and projection with fixed places: one bank for all transposes, one for the result, two input buffers.
op rmsnorm_linear(x[S, D], w[D, H]; eps: fp32 = 1e-6) -> y[S, H] {
    y = (x * rsqrt(mean(x * x, axis: 1) + eps)) @ w;
}

leaf rmsnorm_linear_allocated for rmsnorm_linear on trn1 {
    where H <= 512 && D % 512 == 0 : "one bank for the result, four transposes at a time";
    cases (S: 256, D: 512, H: 384);
    tolerance 3e-2, 1e-3;
    sbuf wt[D by 128, H]: w.dtype;
    for k in tiles(D, 128) { wt[k, 0..H] <- w[k, 0..H]; }
    for s in tiles(S, 128) {
        sbuf xs[s, D] bufs 2 <- x[s, :];
        sbuf ss[s, 1]: fp32 bufs 1 = sum(square(xs), axis: free);
        sbuf m[s, 1]: fp32 bufs 1 = ss * (1.0 / D) + eps;
        sbuf r[s, 1]: fp32 bufs 1 = rsqrt(m);
        sbuf xt[D by 128, s]: x.dtype bufs 1;
        for kb in tiles(D, 512) {
            sbuf n[s, kb]: x.dtype bufs 1 = xs[:, kb] * r;
            psum t[kb by 128, s]: transposed(x.dtype) bufs 1 bank 0;
            for k in tiles(kb, 128) { t[k, s] = n[:, k]'; }
            xt[kb, s] = t on act;
        }
        psum acc[s, H]: fp32 bufs 1 bank 7;
        for k in tiles(D, 128) { acc += xt[k, s]' @ wt[k, 0..H]; }
        sbuf o[s, H]: y.dtype bufs 1 = acc on act;
        y[s, :] <- o;
    }
}
