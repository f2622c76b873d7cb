// Depthwise convolution along rows: channels on the partitions.

leaf conv1d_depthwise_taps for conv1d_depthwise on trn1, trn2, trn3 {
    where x.dtype in {bf16, fp16, fp32} : "x must be bf16, fp16 or fp32";
    where Wo > 0 : "the window must fit the row";
    where 3 * (W + 2 * pad) * bytes(x.dtype) + 3 * Wo * bytes(y.dtype) + 2 * 4096 + 8 * R + 64 <= sbuf.partition : "rows of x and y must fit one partition";
    cost act: N * ceil_div(C, P) * ceil_div(R, 2) * Wo, dve: N * ceil_div(C, P) * (2 * R - ceil_div(R, 2)) * Wo, hbm: bytes(x) + bytes(y);
    tolerance y.dtype == fp32 ? 1e-4 : 2e-2, 1e-5;
    cases (N: 2, C: 128, W: 256, R: 3, pad: 1), (N: 1, C: 5, W: 7, R: 4), (N: 3, C: 130, W: 1500, R: 2, dtype: fp32), (N: 1, C: 64, W: 2100, R: 5, pad: 2, with: "bias"),
          (N: 2, C: 1, W: 1, R: 1, dtype: fp32, with: "bias");

    for c in tiles(C, P) across cores {
        sbuf f[c, R]: fp32 bufs 2 <- w[c, :];
        if (present(bias)) { sbuf b[c, 1]: fp32 bufs 2 <- bias.view("c -> c 1")[c, :]; }
        for n in 0..N {
            sbuf xt[c, W + 2 * pad]: x.dtype bufs 3;
            if (pad > 0) {
                xt[:, 0:pad] = 0.0 on pool;
                xt[:, W + pad:W + 2 * pad] = 0.0 on pool;
            }
            xt[:, pad:W + pad] <- x[n, c, :];
            sbuf o[c, Wo]: y.dtype bufs 3;
            for h in tiles(Wo, 1024) {
                // Every other product is made by ACT and waits in PSUM, where DVE reads it at its full rate.
                psum even[c, h]: fp32 bufs 2;
                if (present(bias)) { even = identity(xt[:, h] * f[:, 0:1] + b); } else { even = copy(xt[:, h] * f[:, 0:1]); }
                if (R == 1) { o[:, h] = even; }
                sbuf s[c, h]: fp32 bufs 2;
                for r in 1..R {
                    let tap = xt[:, ds(h.start + r, h.size)];
                    if (r % 2 == 1) {
                        if (r == R - 1) { o[:, h] = tap * f[:, r:r + 1] + (r == 1 ? even : s); } else { s = tap * f[:, r:r + 1] + (r == 1 ? even : s); }
                    } else {
                        psum more[c, h]: fp32 bufs 2 = copy(tap * f[:, r:r + 1]);
                        if (r == R - 1) { o[:, h] = s + more; } else { s = s + more; }
                    }
                }
            }
            y[n, c, :] <- o;
        }
    }
}
