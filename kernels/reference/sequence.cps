// What state-space models add: a short convolution along time, and the selective scan.

// Depthwise convolution along rows: every channel has its own R taps; `pad` zeros stand on both sides.
op conv1d_depthwise(x[N, C, W], w[C, R], bias?[C]; pad: int = 0) -> y[N, C, Wo] where Wo = W + 2 * pad - R + 1 {
    let p = pad > 0 ? pad(x, lo: [0, 0, pad], hi: [0, 0, pad], value: 0.0) : x;
    var s = present(bias) ? bias.view("c -> 1 c 1") : zeros(1, 1, 1, dtype: fp32);
    for r in 0..R { s = s + p[:, :, r:r + Wo] * w[:, r].view("c -> 1 c 1"); }
    y = s;
}

// The selective scan of Mamba: h = exp(d A) h + d u b, y = sum over states of h c, with A = -exp(a_log) and d = softplus(delta), or
// delta as it is.
op selective_scan(u[C, T]: fp32, delta[C, T]: fp32, a_log[C, N]: fp32, b[N, T]: fp32, c[N, T]: fp32; softplus: bool = true) -> y[C, T] {
    let d = softplus ? softplus(delta) : delta;
    var f = exp(d.view("c t -> c 1 t") * -exp(a_log).view("c n -> c n 1"));
    var h = (d * u).view("c t -> c 1 t") * b.view("n t -> 1 n t");
    var s = 1;
    for k in 0..40 {                                            // each step joins runs of s with those before them
        if (s < T) {
            h = h + f * pad(h[:, :, 0:T - s], lo: [0, 0, s], hi: [0, 0, 0], value: 0.0);
            f = f * pad(f[:, :, 0:T - s], lo: [0, 0, s], hi: [0, 0, 0], value: 1.0);
            s = s * 2;
        }
    }
    y = sum(h * c.view("n t -> 1 n t"), axis: 1).view("c 1 t -> c t");
}
