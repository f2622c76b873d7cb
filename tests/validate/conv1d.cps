// Depthwise convolution in fp32 on trn1, three taps: steps of an optimisation (ucb-bar/autocomp, examples/trn-advanced/
// 4_conv1d_trace.py and 4_conv1d_opt.py). Counts of instructions are those of the published write-up: the compiler sums
// four outputs at a time in the first versions and 128 in the last.

op conv1d(x[N, C, W], f[C, R]; slots: int = 4) -> y[N, C, W] {
    let p = pad(x, lo: [0, 0, 1], hi: [0, 0, 1], value: 0.0);
    var s = zeros(N, C, W, dtype: fp32);
    for r in 0..R { s = s + p[:, :, r:r + W] * f[:, r].view("c -> 1 c 1"); }
    y = s;
}

// An image tile with a zero on both sides.
fn image(x, n, c, w, slots) {
    sbuf t[c, w + 2]: fp32 bufs slots = 0.0 on pool;
    t[:, 1:w + 1] <- x[n, c, :];
    return t;
}

// Base version: a product of three elements for each output, a sum for every four. Images do not fit on chip all at once, so loads
// stand in the loop; with one slot nothing is prefetched.
leaf conv1d_fours for conv1d on trn1 {
    tolerance 1e-4, 1e-5;
    cases (N: 2, C: 128, W: 256, R: 3);
    sbuf ft[C by P, R]: fp32;
    for c in tiles(C, P) { ft[c, :] <- f[c, :]; }
    for n in 0..N, c in tiles(C, P) {
        let t = image(x, n, c, W, slots);
        sbuf out[c, W]: fp32 bufs 2 = 0.0;
        for o in tiles(W, 4) {
            sbuf p[c, 4, R]: fp32 bufs 2;
            for k in 0..4 { p[:, k, :] = t[:, ds(o.start + k, R)] * ft[c, :]; }
            out[:, o] = sum(p, axis: 2);
        }
        y[n, c, :] <- out on act;
    }
}

// Sums go to a block of 512 outputs in PSUM. The published time (340 ns for four outputs) leaves no room for the stall between a
// product and its sum, so sums stand one group later.
leaf conv1d_psum_block for conv1d on trn1 {
    tolerance 1e-4, 1e-5;
    cases (N: 2, C: 128, W: 512, R: 3);
    sbuf ft[C by P, R]: fp32;
    for c in tiles(C, P) { ft[c, :] <- f[c, :]; }
    for n in 0..N, c in tiles(C, P) {
        let t = image(x, n, c, W, slots);
        for b in tiles(W, 512) {
            psum acc[c, b]: fp32 bufs 2;
            for o in tiles(b, 4) pipelined {
                stage products {
                    sbuf p[c, 4, R]: fp32;
                    for k in 0..4 { p[:, k, :] = t[:, ds(o.start + k, R)] * ft[c, :]; }
                }
                stage rest { }
                stage sums { acc[:, o] = sum(p, axis: 2); }
            }
            sbuf out[c, b]: fp32 bufs 2 = acc on dve;
            y[n, c, b] <- out on act;
        }
    }
}

// Final version: 128 outputs an instruction, the taps read from PSUM.
leaf conv1d_final for conv1d on trn1 {
    tolerance 1e-4, 1e-5;
    cases (N: 2, C: 128, W: 256, R: 3);
    for c in tiles(C, P) {
        sbuf fs[c, R]: fp32 bufs 2 <- f[c, :];
        psum fp[c, R]: fp32 bufs 2 = fs on act;
        for n in 0..N {
            let t = image(x, n, c, W, slots);
            sbuf out[c, W]: fp32 bufs 2;
            for o in tiles(W, 128) {
                sbuf p[c, 128, R]: fp32 bufs 2 = windows(t[:, ds(o.start, 128 + R - 1)], R) * fp.view("p r -> p 1 r");
                out[:, o] = sum(p, axis: 2);
            }
            y[n, c, :] <- out on act;
        }
    }
}
