// Functions of two values. The second operand is a whole tensor, one row, one column or one number.
use "reference/act.cps";
use "leaves/rows.cps";

fn combine(z, f, reverse, x, u) {
    if (f == Binary.add) { z = x + u; }
    else if (f == Binary.mul) { z = x * u; }
    else if (f == Binary.maximum) { z = maximum(x, u); }
    else if (f == Binary.minimum) { z = minimum(x, u); }
    else if (f == Binary.sub) { if (reverse) { z = u - x; } else { z = x - u; } }
    else { if (reverse) { z = u / x; } else { z = x / u; } }
}

leaf binary_rows for binary on trn1, trn2, trn3 {
    where x.dtype in {bf16, fp16, fp32} && y.dtype in {bf16, fp16, fp32} : "both operands must be bf16, fp16 or fp32";
    where (Ty == 1 || Ty == T) && (Ny == 1 || Ny == N) : "y has the shape of x, or one row or column that meets all of x";
    param C in {512, 1024, 2048} = 2048;                        // columns of a tile
    cost dve: ceil_div(T, P) * (f == Binary.div ? 9 : 1) * N, hbm: bytes(x) + bytes(y) + bytes(z);
    tolerance x.dtype == fp32 ? 1e-4 : 2e-2, 1e-5;
    cases (T: 128, N: 384, Ty: 128, Ny: 384, f: Binary.add), (T: 130, N: 700, Ty: 1, Ny: 700, f: Binary.mul),
          (T: 130, N: 300, Ty: 130, Ny: 1, f: Binary.sub), (T: 7, N: 9, Ty: 1, Ny: 1, f: Binary.div, reverse: true),
          (T: 64, N: 2500, Ty: 64, Ny: 2500, f: Binary.maximum), (T: 1, N: 5001, Ty: 1, Ny: 5001, f: Binary.minimum),
          (T: 3, N: 4097, Ty: 1, Ny: 4097, f: Binary.sub, reverse: true, dtype: fp32),
          (T: 129, N: 3, Ty: 129, Ny: 1, f: Binary.div, reverse: true), (T: 1, N: 1, Ty: 1, Ny: 1, f: Binary.add);

    if (Ty == T && Ny == N) {                                   // element with element: rows may be cut anywhere
        let xs = spread(x);
        let ys = spread(y);
        let zs = spread(z);
        for t in tiles(xs.shape[0], P) across cores, c in tiles(xs.shape[1], C) {
            sbuf xt[t, c] bufs 3 <- xs[t, c];
            sbuf yt[t, c] bufs 3 <- ys[t, c];
            sbuf zt[t, c]: z.dtype bufs 3;
            combine(zt, f, reverse, xt, yt);
            zs[t, c] <- zt;
        }
    } else if (Ny == 1) {                                       // a number for each row: [p, 1] scalars
        if (Ty == 1) { sbuf one[all, 1]: fp32 <- y[0, :]; }
        for t in tiles(T, P) across cores {
            if (Ty == 1) { let u = one; } else { sbuf u[t, 1]: fp32 <- y[t, :]; }
            for c in tiles(N, C) {
                sbuf xt[t, c] bufs 3 <- x[t, c];
                sbuf zt[t, c]: z.dtype bufs 3;
                combine(zt, f, reverse, xt, u);
                z[t, c] <- zt;
            }
        }
    } else {                                                    // one row for all: its part lies on every partition
        let R = min(T, P);
        for c in tiles(N, C) across cores {
            sbuf line[R, c]: y.dtype bufs 2 <- repeat(y[:, c], R, axis: 0);
            for t in tiles(T, P) {
                sbuf xt[t, c] bufs 3 <- x[t, c];
                sbuf zt[t, c]: z.dtype bufs 3;
                combine(zt, f, reverse, xt, line[0:t.size, :]);
                z[t, c] <- zt;
            }
        }
    }
}
