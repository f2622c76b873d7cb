// Functions of one value: rows on partitions, columns in chunks, loads three deep.
use "reference/act.cps";
use "leaves/rows.cps";

// ACT's table of ln holds from 2^-64 to 2^64 only (NKI docs, supported math functions): what lies outside 2^-60..2^60 is
// brought in by 2^100 or 2^-100 first, and 100 ln 2 taken off or added behind.
fn wide_log(y, x) {
    let k = 1.2676506002282294e30;                              // 2^100
    sbuf small[x.axis(0), x.axis(1)]: fp32 bufs 2 = (x < 8.673617379884035e-19) * k;
    sbuf up[x.axis(0), x.axis(1)]: fp32 bufs 2 = maximum(small, 1.0) * x;
    sbuf fits[x.axis(0), x.axis(1)]: fp32 bufs 2 = up <= 1.152921504606847e18;
    sbuf in_range[x.axis(0), x.axis(1)]: fp32 bufs 2 = maximum(fits, 1.0 / k) * up;
    sbuf l[x.axis(0), x.axis(1)]: fp32 bufs 2 = log(in_range);
    sbuf less[x.axis(0), x.axis(1)]: fp32 bufs 2 = small * (-69.31471805599453 / k) + l;
    sbuf more[x.axis(0), x.axis(1)]: fp32 bufs 2 = (fits - 1.0) * -69.31471805599453;
    y <- less + more bufs 3;
}

leaf unary_rows for unary on trn1, trn2, trn3 {
    where x.dtype in {bf16, fp16, fp32} : "x must be bf16, fp16 or fp32";
    param C in {512, 1024, 2048, 4096} = 2048;                  // columns of a tile
    cost act: ceil_div(T * N, P), hbm: bytes(x) + bytes(y);
    tolerance x.dtype == fp32 ? 1e-4 : 2e-2, 1e-5;
    cases (T: 128, N: 512, f: Unary.gelu), (T: 1, N: 7, f: Unary.tanh), (T: 130, N: 3001, f: Unary.exp),
          (T: 5, N: 64, f: Unary.neg), (T: 3, N: 5, f: Unary.copy), (T: 2, N: 33, f: Unary.erf, dtype: fp32),
          (T: 9, N: 10, f: Unary.abs), (T: 9, N: 10, f: Unary.sign), (T: 9, N: 10, f: Unary.softplus), (T: 1, N: 1, f: Unary.mish), (T: 130, N: 700, f: Unary.sin), (T: 130, N: 9, f: Unary.reciprocal), (T: 3, N: 70, f: Unary.reciprocal, dtype: fp32),
          (T: 130, N: 2100, f: Unary.log), (T: 9, N: 33, f: Unary.log, dtype: fp32), (T: 9, N: 33, f: Unary.sin, dtype: fp32);

    let xs = spread(x);
    let ys = spread(y);
    for t in tiles(xs.shape[0], P) across cores, c in tiles(xs.shape[1], C) {
        sbuf xt[t, c] bufs 3 <- xs[t, c];
        if (f == Unary.copy) { ys[t, c] <- xt; }
        else if (f == Unary.neg) { ys[t, c] <- xt * -1.0 bufs 3; }
        else if (f == Unary.sin) {
            // The table covers -pi..pi only: whole turns are taken off first. 2 pi in two parts keeps the difference
            // exact for some thousand turns; beyond a few million the argument itself has no phase left.
            sbuf turns[t, c]: i32 = xt * 0.15915494309189535;   // the write rounds to nearest
            sbuf near[t, c]: fp32 = turns * -6.28125 + xt;
            sbuf phase[t, c]: fp32 = turns * -0.0019353071795864769 + near;
            ys[t, c] <- sin(minimum(maximum(phase, -3.1415925), 3.1415925)) bufs 3;
        }
        else if (f == Unary.reciprocal) { ys[t, c] <- 1.0 / xt bufs 3; }    // DVE: ACT's table ends at 2^42
        else if (f == Unary.log) { wide_log(ys[t, c], xt); }
        else { ys[t, c] <- apply(f, xt) bufs 3; }
    }
}

leaf gelu_rows for gelu on trn1, trn2, trn3 {
    where x.dtype in {bf16, fp16, fp32} : "x must be bf16, fp16 or fp32";
    param C in {512, 1024, 2048, 4096} = T * N >= 12288 * P ? 4096 : 2048;    // a few tiles at least, else as long as they get
    cost act: ceil_div(T * N, P), hbm: bytes(x) + bytes(y);
    tolerance x.dtype == fp32 ? 1e-4 : 2e-2, 1e-5;
    cases (T: 128, N: 1536), (T: 3, N: 5), (T: 257, N: 2101, approximate: true), (T: 1, N: 1000, dtype: fp32);

    let xs = spread(x);
    let ys = spread(y);
    for t in tiles(xs.shape[0], P) across cores, c in tiles(xs.shape[1], C) {
        sbuf xt[t, c] bufs 3 <- xs[t, c];
        if (approximate) { ys[t, c] <- gelu_apprx_tanh(xt) bufs 3; } else { ys[t, c] <- gelu(xt) bufs 3; }
    }
}

leaf silu_rows for silu on trn1, trn2, trn3 {
    where x.dtype in {bf16, fp16, fp32} : "x must be bf16, fp16 or fp32";
    param C in {512, 1024, 2048, 4096} = T * N >= 12288 * P ? 4096 : 2048;    // a few tiles at least, else as long as they get
    cost act: ceil_div(T * N, P), hbm: bytes(x) + bytes(y);
    tolerance x.dtype == fp32 ? 1e-4 : 2e-2, 1e-5;
    cases (T: 128, N: 1536), (T: 3, N: 5), (T: 257, N: 2101, dtype: fp16);

    let xs = spread(x);
    let ys = spread(y);
    for t in tiles(xs.shape[0], P) across cores, c in tiles(xs.shape[1], C) {
        sbuf xt[t, c] bufs 3 <- xs[t, c];
        ys[t, c] <- silu(xt) bufs 3;
    }
}

leaf affine_rows for affine on trn1, trn2, trn3 {
    where x.dtype in {bf16, fp16, fp32} : "x must be bf16, fp16 or fp32";
    param C in {512, 1024, 2048, 4096} = 2048;
    cost dve: ceil_div(T * N, P), hbm: bytes(x) + bytes(y);
    tolerance x.dtype == fp32 ? 1e-4 : 2e-2, 1e-5;
    cases (T: 128, N: 512, mul: 0.125, add: 1.0), (T: 3, N: 5, mul: -10000.0), (T: 131, N: 67, add: -1.0, dtype: fp32);

    let xs = spread(x);
    let ys = spread(y);
    for t in tiles(xs.shape[0], P) across cores, c in tiles(xs.shape[1], C) {
        sbuf xt[t, c] bufs 3 <- xs[t, c];
        ys[t, c] <- xt * mul + add bufs 3;                      // DVE tensor_scalar
    }
}
