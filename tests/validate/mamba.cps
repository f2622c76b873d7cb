// Selective scans in fp32 on trn1: the three versions of the fused Mamba tutorial (aws-neuron-sdk, nki/guides/tutorials/
// fused_mamba.rst; sources of git 1db4d74e), the steps of an independent optimisation of the first
// (ucb-bar/autocomp, examples/trn-tutorial/3_mamba_trace.py), and NKIBench's (zhang677/AccelOpt).
//
// Channels on the partitions, time along a row. B and C reach all partitions by a product with ones, which leaves them in PSUM:
// DVE multiplies by them at its full rate there, at half of it when ACT first copies them to SBUF. Which of the two happened is
// read off the published times in cycles a column: 10N for everything in SBUF, less N for each operand read from PSUM.
// All results of DVE are dependent, so each pays the stall.

// exp(x - 4) for exp(x): random inputs shall not overflow; the instruction is the same.
op mamba_scan(delta[C, T], u[C, T], a[C, N], b[N, T], c[N, T]; spill: bool = false, copied: bool = false) -> y[C, T] {
    var h = zeros(C, N, dtype: fp32);
    for t in 0..T {
        let d = delta[:, t:t + 1];
        h = exp(d * a - 4.0) * h + d * u[:, t:t + 1] * b[:, t:t + 1]';
        y[:, t:t + 1] = sum(h * c[:, t:t + 1]', axis: 1);
    }
}

// A row of B or C on all partitions: a product with ones, left in PSUM.
fn spread(src, ones) {
    sbuf r[1, src.axis(1)] bufs 2 <- src;
    psum t[P, src.axis(1)]: fp32 bufs 2 = ones' @ r;
    return t;
}

// The same, copied to SBUF 512 columns at a time.
fn spread_sbuf(to, src, ones) {
    sbuf r[1, src.axis(1)] bufs 1 <- src;
    for t in tiles(src.axis(1).size, 512) {
        psum p[P, t]: fp32 bufs 2 = ones' @ r[:, t];
        to[:, t] = p on act;
    }
}

// Version 1: states outside, channels inside, everything loaded again for each state. B passes through SBUF (9N fits both sizes).
leaf mamba_v1 for mamba_scan on trn1 {
    tolerance 1e-4, 1e-5;
    cases (C: 256, T: 512, N: 4);
    sbuf ones[1, P]: fp32 = 1.0;
    sbuf acc[C by P, T]: fp32;
    for ct in tiles(C, P) { acc[ct, :] = 0.0; }
    for n in 0..N, ct in tiles(C, P) {
        sbuf d[ct, T] bufs 2 <- delta[ct, :];
        sbuf x[ct, T] bufs 2 <- u[ct, :];
        sbuf ac[ct, 1] bufs 2 <- a[ct, n:n + 1];
        sbuf da[ct, T]: fp32 bufs 2 = exp(d * ac - 4.0);
        sbuf du[ct, T]: fp32 bufs 2 = d * x;
        sbuf bb[ct, T]: fp32 bufs 2 = spread(b[n:n + 1, :], ones) on act;
        du = du * bb;
        sbuf s[ct, T]: fp32 bufs 2 = scan(da * prev + du, init: 0.0);
        s = s * spread(c[n:n + 1, :], ones);
        acc[ct, :] = acc[ct, :] + s;
    }
    for ct in tiles(C, P) { y[ct, :] <- acc[ct, :]; }
}

// Version 1 for longer rows: 10N, so both B and C pass through SBUF.
leaf mamba_v1_wide for mamba_scan on trn1 {
    tolerance 1e-4, 1e-5;
    cases (C: 256, T: 1024, N: 4);
    sbuf ones[1, P]: fp32 = 1.0;
    sbuf acc[C by P, T]: fp32;
    for ct in tiles(C, P) { acc[ct, :] = 0.0; }
    for n in 0..N, ct in tiles(C, P) {
        sbuf d[ct, T] bufs 2 <- delta[ct, :];
        sbuf x[ct, T] bufs 2 <- u[ct, :];
        sbuf ac[ct, 1] bufs 2 <- a[ct, n:n + 1];
        sbuf da[ct, T]: fp32 bufs 1 = exp(d * ac - 4.0);
        x = d * x;
        sbuf bb[ct, T]: fp32 bufs 1;
        spread_sbuf(bb, b[n:n + 1, :], ones);
        bb = x * bb;
        bb = scan(da * prev + bb, init: 0.0);
        sbuf cb[ct, T]: fp32 bufs 1;
        spread_sbuf(cb, c[n:n + 1, :], ones);
        cb = bb * cb;
        acc[ct, :] = acc[ct, :] + cb;
    }
    for ct in tiles(C, P) { y[ct, :] <- acc[ct, :]; }
}

// Version 2: channels outside; the product of delta and u is hoisted out of the loop over states (6N).
leaf mamba_v2 for mamba_scan on trn1 {
    tolerance 1e-4, 1e-5;
    cases (C: 256, T: 512, N: 4);
    sbuf ones[1, P]: fp32 = 1.0;
    for ct in tiles(C, P) {
        sbuf acc[ct, T]: fp32 bufs 2 = 0.0;
        sbuf d[ct, T] bufs 2 <- delta[ct, :];
        sbuf x[ct, T] bufs 2 <- u[ct, :];
        sbuf du[ct, T]: fp32 bufs 2 = d * x;
        for n in 0..N {
            sbuf ac[ct, 1] bufs 2 <- a[ct, n:n + 1];
            sbuf da[ct, T]: fp32 bufs 2 = exp(d * ac - 4.0);
            sbuf db[ct, T]: fp32 bufs 2 = du * spread(b[n:n + 1, :], ones);
            sbuf s[ct, T]: fp32 bufs 2 = scan(da * prev + db, init: 0.0);
            s = s * spread(c[n:n + 1, :], ones);
            acc = acc + s;
        }
        y[ct, :] <- acc;
    }
}

// Version 2 for longer rows, B and C through SBUF (8N; 9.4N are published up to 5,120 columns, more where memory overflows).
leaf mamba_v2_wide for mamba_scan on trn1 {
    tolerance 1e-4, 1e-5;
    cases (C: 256, T: 1024, N: 4);
    sbuf ones[1, P]: fp32 = 1.0;
    for ct in tiles(C, P) {
        sbuf acc[ct, T]: fp32 bufs 1 = 0.0;
        sbuf d[ct, T] bufs 1 <- delta[ct, :];
        sbuf x[ct, T] bufs 1 <- u[ct, :];
        x = d * x;
        for n in 0..N {
            sbuf ac[ct, 1] bufs 2 <- a[ct, n:n + 1];
            sbuf da[ct, T]: fp32 bufs 1 = exp(d * ac - 4.0);
            sbuf bb[ct, T]: fp32 bufs 1;
            spread_sbuf(bb, b[n:n + 1, :], ones);
            bb = x * bb;
            bb = scan(da * prev + bb, init: 0.0);
            sbuf cb[ct, T]: fp32 bufs 1;
            spread_sbuf(cb, c[n:n + 1, :], ones);
            cb = bb * cb;
            acc = acc + cb;
        }
        y[ct, :] <- acc;
    }
}

// Version 3: time in tiles of 512, the last column carried over by DVE.
leaf mamba_v3 for mamba_scan on trn1 {
    tolerance 1e-4, 1e-5;
    cases (C: 256, T: 1024, N: 4);
    sbuf ones[1, P]: fp32 = 1.0;
    for ct in tiles(C, P) {
        sbuf acc[ct, T]: fp32 bufs 1 = 0.0;
        sbuf d[ct, T] bufs 1 <- delta[ct, :];
        sbuf x[ct, T] bufs 1 <- u[ct, :];
        for n in 0..N {
            sbuf ac[ct, 1] bufs 2 <- a[ct, n:n + 1];
            sbuf carry[ct, 1]: fp32 bufs 1;
            for t in tiles(T, 512) {
                if (n == 0) { x[:, t] = d[:, t] * x[:, t]; }
                sbuf da[ct, t]: fp32 bufs 2 = exp(d[:, t] * ac - 4.0);
                sbuf db[ct, t]: fp32 bufs 2 = x[:, t] * spread(b[n:n + 1, t], ones);
                sbuf s[ct, t]: fp32 bufs 2;
                if (t.first) { s = scan(da * prev + db, init: 0.0); } else { s = scan(da * prev + db, init: carry); }
                if (!t.last) { carry = s[:, ds(511, 1)] on dve; }
                s = s * spread(c[n:n + 1, t], ones);
                acc[:, t] = acc[:, t] + s;
            }
        }
        y[ct, :] <- acc;
    }
}

// Time outside, states inside, A as one block, sums in PSUM; `copied`: B passes through SBUF (7N), else not (5N and the stalls).
leaf mamba_chunks for mamba_scan on trn1 {
    tolerance 1e-4, 1e-5;
    cases (C: 256, T: 1024, N: 4);
    sbuf ones[1, P]: fp32 = 1.0;
    for ct in tiles(C, P) {
        sbuf ac[ct, N] bufs 2 <- a[ct, :];
        sbuf carry[ct, N]: fp32 bufs 2;
        for t in tiles(T, 512) {
            sbuf d[ct, t] bufs 2 <- delta[ct, t];
            sbuf x[ct, t] bufs 2 <- u[ct, t];
            x = d * x;
            psum acc[ct, t]: fp32 bufs 2;
            for n in 0..N {
                sbuf da[ct, t]: fp32 bufs 2 = exp(d * ac[:, n:n + 1] - 4.0);
                sbuf db[ct, t]: fp32 bufs 2;
                if (copied) {
                    sbuf bb[ct, t]: fp32 bufs 2 = spread(b[n:n + 1, t], ones) on act;
                    db = x * bb;
                } else { db = x * spread(b[n:n + 1, t], ones); }
                sbuf s[ct, t]: fp32 bufs 2;
                if (t.first) { s = scan(da * prev + db, init: 0.0); } else { s = scan(da * prev + db, init: carry[:, n:n + 1]); }
                if (!t.last) { carry[:, n:n + 1] = s[:, ds(511, 1)] on dve; }
                let cb = spread(c[n:n + 1, t], ones);
                if (n == 0) { acc = s * cb; } else {
                    s = s * cb;
                    acc = acc + s;
                }
            }
            sbuf o[ct, t]: fp32 bufs 2 = acc on act;
            y[ct, t] <- o;
        }
    }
}

// NKIBench: version 1 for 7,168 columns. The product of delta and u is made once and stays, as do the sums; that fills the memory,
// so rows of B and C come in pieces of 512, through all PSUM banks, and ACT copies both to SBUF. `spill`, the base version:
// one of the two tiles of sums leaves the chip between states.
leaf mamba_resident for mamba_scan on trn1 {
    tolerance 1e-4, 1e-5;
    cases (C: 256, T: 1024, N: 2);
    sbuf ones[1, P]: fp32 = 1.0;
    sbuf acc[C by P, T]: fp32;
    sbuf du[C by P, T]: fp32;
    if (spill) { hbm kept[P, T]: fp32; }
    for ct in tiles(C, P) { acc[ct, :] = 0.0; }
    for n in 0..N, ct in tiles(C, P) {
        if (spill && n > 0 && ct.last) { acc[ct, :] <- kept on sp; }
        sbuf d[ct, T] bufs 1 <- delta[ct, :];
        sbuf ac[ct, 1] bufs 2 <- a[ct, n:n + 1];
        if (n == 0) {
            du[ct, :] <- u[ct, :];
            du[ct, :] = d * du[ct, :];
        }
        d = exp(d * ac - 4.0);
        sbuf s[ct, T]: fp32 bufs 1;
        for k in 0..2 {
            if (k == 1) {
                s = du[ct, :] * s;
                s = scan(d * prev + s, init: 0.0);
            }
            for t in tiles(T, 512) {
                sbuf r[1, t]: fp32 bufs 2;
                if (k == 0) { r <- b[n:n + 1, t]; } else { r <- c[n:n + 1, t]; }
                psum p[P, t]: fp32 bufs 8 = ones' @ r;
                if (k == 0) { s[:, t] = p on act; } else {
                    sbuf cb[ct, t]: fp32 bufs 1 = p on act;
                    s[:, t] = s[:, t] * cb;
                    acc[ct, t] = acc[ct, t] + s[:, t];
                }
            }
        }
        if (spill && n < N - 1 && ct.last) { kept <- acc[ct, :]; }
    }
    for ct in tiles(C, P) { y[ct, :] <- acc[ct, :]; }
}
