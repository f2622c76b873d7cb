// A step of AdamW: all tensors spread over the partitions.
use "leaves/rows.cps";

// Factors are folded into what is there anyway: the square is that of g sqrt((1 - beta2) / beta2), the moment stands without
// 1 - beta1, and the root carries the inverse of the step's length. What DVE reads beside SBUF comes out of PSUM, at its
// full rate.
leaf adamw_spread for adamw on trn1, trn2, trn3 {
    where beta1 < 1.0 && beta2 > 0.0 && beta2 < 1.0 && lr > 0.0 : "beta1 below 1, beta2 between 0 and 1, lr above 0";
    cost act: ceil_div(T * N, P) * 3, dve: ceil_div(T * N, P) * 7, hbm: 4 * bytes(theta) + bytes(y);
    tolerance 1e-4, 1e-5;
    cases (T: 192, N: 2048), (T: 1, N: 7), (T: 129, N: 1000, lr: 0.01, bias1: 0.5, bias2: 0.1);

    let (ts, gs, ms, vs, ys) = (spread(theta), spread(g), spread(m), spread(v), spread(y));
    let length = lr / bias1 * (1.0 - beta1);
    let root = beta2 / bias2 / (length * length);
    for t in tiles(ts.shape[0], P) across cores, c in tiles(ts.shape[1], 2048) {
        sbuf gt[t, c] bufs 2 <- gs[t, c];
        sbuf vt[t, c] bufs 2 <- vs[t, c];
        sbuf mt[t, c] bufs 2 <- ms[t, c];
        sbuf tt[t, c] bufs 2 <- ts[t, c];
        sbuf o[t, c]: fp32 bufs 2;
        for h in tiles(c, 1024) {
            psum sq[t, h]: fp32 bufs 2 = square(gt[:, h] * root_of((1.0 - beta2) / beta2));
            sbuf d[t, h]: fp32 bufs 2 = vt[:, h] + sq;
            d = sqrt(d * root);
            d = d + eps / length on act;
            psum rd[t, h]: fp32 bufs 2 = 1.0 / d;
            sbuf m1[t, h]: fp32 bufs 2 = mt[:, h] * (beta1 / (1.0 - beta1)) + gt[:, h];
            m1 = m1 * rd;
            o[:, h] = tt[:, h] * (1.0 - lr * weight_decay) - m1;
        }
        ys[t, c] <- o;
    }
}

// The square root of a number, by Newton's steps.
fn root_of(x) {
    var r = x < 1.0 ? 1.0 : x;
    for i in 0..64 { r = 0.5 * (r + x / r); }
    return r;
}
