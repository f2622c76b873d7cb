// Elementwise leaves: rows on partitions, columns in chunks, loads three deep.
use "reference/act.cps";

leaf unary_rows for unary on trn1, trn2, trn3 {
    where x.dtype in {bf16, fp16, fp32} : "floats only";
    param C in {512, 1024, 2048, 4096} = 2048;
    cost act: ceil_div(T, P) * N, hbm: bytes(x) + bytes(y);
    tolerance 2e-2, 1e-5;
    cases (T: 128, N: 512, f: Unary.gelu), (T: 1, N: 7, f: Unary.tanh), (T: 130, N: 3000, f: Unary.exp), (T: 5, N: 64, f: Unary.neg);

    for t in tiles(T, P) across cores, c in tiles(N, C) {
        sbuf xt[t, c] bufs 3 <- x[t, c];
        if (f == Unary.neg) { y[t, c] <- xt * -1.0 bufs 2; }
        else if (f == Unary.copy) { y[t, c] <- xt; }
        else { y[t, c] <- apply(f, xt) bufs 2; }
    }
}

leaf gelu_rows for gelu on trn1, trn2, trn3 {
    param C in {512, 1024, 2048, 4096} = 2048;
    cost act: ceil_div(T, P) * N, hbm: bytes(x) + bytes(y);
    tolerance 2e-2, 1e-5;
    cases (T: 128, N: 1536), (T: 3, N: 5), (T: 257, N: 2100, approximate: true);

    for t in tiles(T, P) across cores, c in tiles(N, C) {
        sbuf xt[t, c] bufs 3 <- x[t, c];
        if (approximate) { y[t, c] <- gelu_apprx_tanh(xt) bufs 2; } else { y[t, c] <- gelu(xt) bufs 2; }
    }
}

leaf silu_rows for silu on trn1, trn2, trn3 {
    param C in {512, 1024, 2048, 4096} = 2048;
    cost act: ceil_div(T, P) * N, hbm: bytes(x) + bytes(y);
    tolerance 2e-2, 1e-5;
    cases (T: 128, N: 1536), (T: 3, N: 5), (T: 257, N: 2100);

    for t in tiles(T, P) across cores, c in tiles(N, C) {
        sbuf xt[t, c] bufs 3 <- x[t, c];
        y[t, c] <- silu(xt) bufs 2;
    }
}

leaf affine_rows for affine on trn1, trn2, trn3 {
    param C in {512, 1024, 2048, 4096} = 2048;
    cost dve: ceil_div(T, P) * N, hbm: bytes(x) + bytes(y);
    tolerance 2e-2, 1e-5;
    cases (T: 128, N: 512, mul: 0.125, add: 1.0), (T: 3, N: 5, mul: -10000.0);

    for t in tiles(T, P) across cores, c in tiles(N, C) {
        sbuf xt[t, c] bufs 3 <- x[t, c];
        y[t, c] <- xt * mul + add bufs 2;
    }
}

leaf binary_rows for binary on trn1, trn2, trn3 {
    where x.dtype in {bf16, fp16, fp32} && y.dtype in {bf16, fp16, fp32} : "floats only";
    where (Ty == 1 || Ty == T) && (Ny == 1 || Ny == N) : "y has the shape of x, or one row or column that meets all of x";
    where Ty > 1 || T == 1 || Ny == 1 || N * bytes(y.dtype) <= sbuf.partition / 4 : "a row that meets every row must stay on chip";
    param C in {512, 1024, 2048, 4096} = 2048;
    cost dve: ceil_div(T, P) * 2 * N, hbm: bytes(x) + bytes(y) + bytes(z);
    tolerance 2e-2, 1e-5;
    cases (T: 128, N: 384, Ty: 128, Ny: 384, f: Binary.add), (T: 130, N: 700, Ty: 1, Ny: 700, f: Binary.mul),
          (T: 130, N: 300, Ty: 130, Ny: 1, f: Binary.sub), (T: 7, N: 9, Ty: 1, Ny: 1, f: Binary.div, reverse: true),
          (T: 64, N: 2500, Ty: 64, Ny: 2500, f: Binary.maximum);

    let one_row = Ty == 1 && T > 1;
    if (one_row) { sbuf line[all, Ny]: (Ny == 1 ? fp32 : y.dtype) <- y[0, :]; }
    for t in tiles(T, P) across cores {
        if (!one_row && Ny == 1 && N > 1) { sbuf column[t, 1]: fp32 <- y[t, :]; }
        for c in tiles(N, C) {
            sbuf xt[t, c] bufs 3 <- x[t, c];
            if (one_row) {
                let u = Ny == 1 ? line : line[:, c.start:c.end];
            } else if (Ny == 1 && N > 1) {
                let u = column;
            } else {
                sbuf u[t, c] bufs 3 <- y[t, c];
            }
            sbuf zt[t, c]: z.dtype bufs 2;
            if (f == Binary.add) { zt = xt + u; }
            else if (f == Binary.mul) { zt = xt * u; }
            else if (f == Binary.maximum) { zt = maximum(xt, u); }
            else if (f == Binary.minimum) { zt = minimum(xt, u); }
            else if (f == Binary.sub) { if (reverse) { zt = u - xt; } else { zt = xt - u; } }
            else { if (reverse) { zt = u / xt; } else { zt = xt / u; } }
            z[t, c] <- zt;
        }
    }
}

// Conversions the engines make on the way: read as is, write as the target type.
leaf cast_rows for cast on trn1, trn2, trn3 {
    where x.dtype in {bf16, fp16, fp32, i32, u8, i8, bool} && to in {bf16, fp16, fp32, i32} : "a conversion of the engines";
    param C in {512, 1024, 2048, 4096} = 2048;
    cost dve: ceil_div(T, P) * N, hbm: bytes(x) + bytes(y);
    tolerance 1e-2, 1e-5;
    cases (T: 128, N: 384, to: fp32), (T: 3, N: 5, dtype: fp32, to: bf16);

    for t in tiles(T, P) across cores, c in tiles(N, C) {
        sbuf xt[t, c] bufs 3 <- x[t, c];
        sbuf yt[t, c]: to bufs 2 = xt;
        y[t, c] <- yt;
    }
}

// 64-bit integers are no engine type: the low words of each element are loaded.
leaf cast_int64 for cast on trn1, trn2, trn3 {
    where x.dtype == i64 && to in {i32, fp32, bf16, fp16} : "from 64-bit integers";
    cost hbm: bytes(x) + bytes(y);
    tolerance 1e-2, 1e-5;
    cases (T: 1, N: 128, dtype: i64, to: i32), (T: 4, N: 33, dtype: i64, to: fp32);

    for t in tiles(T, P) {
        sbuf low[t, N]: i32 <- x.bits(i32)[t, 0:2 * N:2];
        if (to == i32) { y[t, :] <- low; } else { sbuf yt[t, N]: to = low; y[t, :] <- yt; }
    }
}
