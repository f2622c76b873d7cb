// Reductions. The last axis reduces on the vector engine; sums over rows are products with a row of ones.
use "reference/act.cps";

leaf reduction_last for reduction on trn1, trn2, trn3 {
    where B == 1 : "only the last axis";
    where x.dtype in {bf16, fp16, fp32} : "floats only";
    param C in {1024, 2048, 4096, 8192} = 4096;
    cost dve: ceil_div(A, P) * N, hbm: bytes(x);
    tolerance 2e-2, 1e-5;
    cases (A: 128, N: 384, B: 1, f: Reduce.sum), (A: 3, N: 5000, B: 1, f: Reduce.max), (A: 130, N: 77, B: 1, f: Reduce.mean);

    for a in tiles(A, P) across cores {
        sbuf parts[a, ceil_div(N, C)]: fp32;
        for c in tiles(N, C) {
            sbuf xc[a, c] bufs 3 <- x[a, c, 0];
            if (f == Reduce.max) { parts[:, ds(c.index, 1)] = max(xc, axis: free); }
            else if (f == Reduce.min) { parts[:, ds(c.index, 1)] = min(xc, axis: free); }
            else { parts[:, ds(c.index, 1)] = sum(xc, axis: free); }
        }
        sbuf r[a, 1]: fp32;
        if (f == Reduce.max) { r = max(parts, axis: free); }
        else if (f == Reduce.min) { r = min(parts, axis: free); }
        else { r = sum(parts, axis: free); }
        if (f == Reduce.mean) { y[a, :] <- r * (1.0 / N); } else { y[a, :] <- r * 1.0; }
    }
}

leaf reduction_rows for reduction on trn1, trn2, trn3 {
    where B > 1 : "the last axis has its own leaf";
    where f == Reduce.sum || f == Reduce.mean : "rows are summed on the PE";
    where x.dtype in {bf16, fp16, fp32} : "floats only";
    cost pe: A * ceil_div(N, 128) * B * target.pe_passes(x.dtype), hbm: bytes(x);
    tolerance 2e-2, 1e-5;
    cases (A: 1, N: 128, B: 384, f: Reduce.sum), (A: 2, N: 300, B: 70, f: Reduce.mean, dtype: fp32);

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
