// Reductions of the middle axis. As the last axis it reduces on the vector engine; sums over rows are products with a
// column of ones; maxima and minima over rows take a transpose first.
use "reference/act.cps";

fn fold(d, f, x) {
    if (f == Reduce.max) { d = max(x, axis: free); }
    else if (f == Reduce.min) { d = min(x, axis: free); }
    else { d = sum(x, axis: free); }
}

leaf reduction_last for reduction on trn1, trn2, trn3 {
    where B == 1 : "the reduced axis must be the last";
    where x.dtype in {bf16, fp16, fp32} : "x must be bf16, fp16 or fp32";
    param C in {1024, 2048, 4096, 8192} = 4096;
    cost dve: ceil_div(A, P) * N, hbm: bytes(x) + bytes(y);
    tolerance x.dtype == fp32 ? 1e-4 : 2e-2, 1e-5;
    cases (A: 128, N: 384, B: 1, f: Reduce.sum), (A: 3, N: 5000, B: 1, f: Reduce.max), (A: 130, N: 77, B: 1, f: Reduce.mean),
          (A: 1, N: 1, B: 1, f: Reduce.min, dtype: fp32);

    for a in tiles(A, P) across cores {
        sbuf parts[a, ceil_div(N, C)]: fp32;
        for c in tiles(N, C) {
            sbuf xc[a, c] bufs 3 <- x[a, c, 0];
            fold(parts[:, ds(c.index, 1)], f, xc);
        }
        sbuf r[a, 1]: fp32;
        fold(r, f, parts);
        if (f == Reduce.mean) { y[a, :] <- r * (1.0 / N); } else { y[a, :] <- r * 1.0; }
    }
}

leaf reduction_rows for reduction on trn1, trn2, trn3 {
    where B > 1 : "the last axis has its own leaf";
    where f == Reduce.sum || f == Reduce.mean : "rows are added on the PE";
    where x.dtype in {bf16, fp16, fp32} : "x must be bf16, fp16 or fp32";
    cost pe: A * ceil_div(N, 128) * B * target.pe_passes(x.dtype), hbm: bytes(x) + bytes(y);
    tolerance x.dtype == fp32 ? 1e-4 : 2e-2, 1e-5;
    cases (A: 1, N: 128, B: 384, f: Reduce.sum), (A: 2, N: 300, B: 70, f: Reduce.mean, dtype: fp32), (A: 1, N: 1, B: 515, f: Reduce.sum);

    sbuf one[P, 1]: x.dtype = 1.0;
    for a in 0..A across cores, b in tiles(B, 512) {
        psum acc[1, b]: fp32 bufs 2;
        for n in tiles(N, 128) {
            sbuf xt[n, b] bufs 3 <- x[a, n, b];
            acc += one[0:n.size, :]' @ xt;
        }
        if (f == Reduce.mean) { y[a, b] <- acc * (1.0 / N); } else { y[a, b] <- acc; }
    }
}

leaf reduction_extreme for reduction on trn1, trn2, trn3 {
    where B > 1 : "the last axis has its own leaf";
    where f == Reduce.max || f == Reduce.min : "sums have a leaf on the PE";
    where x.dtype in {bf16, fp16, fp32} : "x must be bf16, fp16 or fp32";
    cost pe: A * ceil_div(B, 128) * ceil_div(N, 128) * 128 * target.pe_passes(x.dtype), dve: A * ceil_div(B, 128) * N, hbm: bytes(x) + bytes(y);
    tolerance 1e-6, 1e-6;
    cases (A: 2, N: 7, B: 300, f: Reduce.max), (A: 1, N: 300, B: 5, f: Reduce.min, dtype: fp32), (A: 1, N: 1, B: 2, f: Reduce.max);

    for a in 0..A across cores, b in tiles(B, 128) {
        sbuf parts[b, ceil_div(N, 128)]: fp32;
        for n in tiles(N, 128) {
            sbuf xt[n, b] bufs 3 <- x[a, n, b];
            psum t[b, n]: transposed(x.dtype) bufs 2 = xt';
            fold(parts[:, ds(n.index, 1)], f, t);
        }
        sbuf r[b, 1]: y.dtype;
        fold(r, f, parts);
        y.view("a b -> a b 1")[a, b, :] <- r;
    }
}
