// RMS norm with 8-bit results and a scale a row: POOL multiplies by gamma in place, DVE finds the largest magnitude, ACT sums squares, and
// both make the codes. The elements that sums and maxima leave behind go where the codes will stand.

leaf rmsnorm_quant_rows for rmsnorm_quant on trn1, trn2, trn3 {
    where x.dtype in {bf16, fp16, fp32} : "x must be bf16, fp16 or fp32";
    let room = (sbuf.partition - 1024) / H - (present(gamma) ? bytes(x.dtype) : 0) - (lower_bound > 0.0 ? bytes(x.dtype) : 0);
    where room >= 2 * bytes(x.dtype) + 2 : "two rows of x and of codes, and gamma, must fit one partition";
    let XB = min(5, max(2, (room - 4) / bytes(x.dtype)));       // how far loads run ahead
    let QB = min(4, room - XB * bytes(x.dtype));                // and stores
    cost act: ceil_div(T, P) * (1.7 * H + 256), dve: ceil_div(T, P) * (1.4 * H + 512), pool: ceil_div(T, P) * 2 * H,
         hbm: bytes(x) + bytes(q) + bytes(scale);
    tolerance 7.2e-2, 1e-5;
    cases (T: 128, H: 512, with: "gamma"), (T: 513, H: 4096, with: "gamma"), (T: 1, H: 8192), (T: 3, H: 77, with: "gamma", lower_bound: 0.5),
          (T: 130, H: 1000, norm: false), (T: 64, H: 300, norm: false, lower_bound: 0.5, dtype: fp16), (T: 5, H: 1, with: "gamma", dtype: fp32), (T: 129, H: 16384, with: "gamma");

    let R = min(T, P);
    if (present(gamma)) { sbuf g[R, H]: x.dtype <- repeat(gamma.view("h -> 1 h"), R, axis: 0); }
    // Three tiles are on their way: one is squared and multiplied, the one before gets its scale, the one before that its codes.
    var depth = 0;
    var t1 = 0;
    var x1 = 0;
    var q1 = 0;
    var r1 = 0;
    var t2 = 0;
    var x2 = 0;
    var q2 = 0;
    var f2 = 0;
    for t in tiles(T, P) across cores {
        sbuf xt[t, H] bufs XB <- x[t, :];
        sbuf qt[t, H]: fp8e4m3 bufs QB;
        sbuf r[t, 1]: fp32 bufs 4;
        if (norm) {
            sbuf ss[t, 1]: fp32 bufs 3;
            qt = square(xt) reduce add into ss;                 // one activation with its accumulator
            r = rsqrt(ss * (1.0 / H) + eps);
        } else {
            r = 1.0;
        }
        if (present(gamma)) {
            if (target.gen >= 3) { tensor_tensor(dst: xt, data1: xt, data2: g[0:t.size, :], op: "mult") on pool; } else { xt = xt * g[0:t.size, :]; }
        }
        if (depth > 1) { codes(q, t2, x2, q2, f2, lower_bound); }
        if (depth > 0) {
            f2 = factor(scale, t1, x1, q1, r1, lower_bound);
            t2 = t1;
            x2 = x1;
            q2 = q1;
        }
        depth = min(depth + 1, 2);
        t1 = t;
        x1 = xt;
        q1 = qt;
        r1 = r;
    }
    if (depth > 1) { codes(q, t2, x2, q2, f2, lower_bound); }
    if (depth > 0) {
        let f = factor(scale, t1, x1, q1, r1, lower_bound);
        codes(q, t1, x1, q1, f, lower_bound);
    }
}

// Stores the scale of rows whose norm is n r, and gives what makes n codes.
fn factor(scale, t, n, qt, r, lower_bound) {
    sbuf top[t, 1]: fp32 bufs 2;
    qt = abs(n) reduce max into top;                            // DVE tensor_scalar_reduce
    sbuf s[t, 1]: fp32 bufs 2 = top * r * (1.0 / 240.0);
    if (lower_bound > 0.0) { s = maximum(minimum(s, lower_bound / 240.0), 1e-6); } else { s = maximum(s, 1e-6); }
    scale[t, :] <- s on sp;
    sbuf f[t, 1]: fp32 bufs 4 = 1.0 / s;
    f = f * r;
    return f;
}

// q = n f, by ACT and DVE in shares of 2 : 1; what was clipped before the scale was taken is what lies beyond 240 now.
fn codes(q, t, n, qt, f, lower_bound) {
    let H = n.shape[1];
    let cut = H * 2 / 3;
    if (lower_bound > 0.0) {
        sbuf c[t, H]: n.dtype bufs 1 = n * f;
        qt = minimum(maximum(c, -240.0), 240.0);
    } else {
        if (cut > 0) { qt[:, 0:cut] = copy(n[:, 0:cut] * f); }
        qt[:, cut:H] = n[:, cut:H] * f;
    }
    q[t, :] <- qt on sp;
}
