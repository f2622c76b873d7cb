// Normalisations of rows: one row a partition, statistics on [P, 1] columns.

leaf layernorm_rows for layernorm on trn1, trn2, trn3 {
    where x.dtype in {bf16, fp16, fp32} : "rows are bf16, fp16 or fp32";
    where H * (6 * bytes(x.dtype) + 16) <= sbuf.partition : "rows, gamma, beta and the centred row must fit one partition";
    cost dve: ceil_div(T, P) * 5 * H, act: ceil_div(T, P) * (H + 2 * 64), hbm: 2 * bytes(x) + 2 * bytes(y.dtype) * H;
    tolerance 2e-2, 1e-5;
    cases (T: 128, H: 384), (T: 1, H: 384), (T: 129, H: 1000), (T: 300, H: 1000, dtype: fp32);

    sbuf g[all, H] <- gamma;
    sbuf b[all, H] <- beta;
    for t in tiles(T, P) across cores {
        sbuf xt[t, H] bufs 2 <- x[t, :];
        if (present(residual)) {
            sbuf rt[t, H] bufs 2 <- residual[t, :];
            sbuf s[t, H]: fp32 = xt + rt;                       // DVE tensor_tensor
        } else {
            let s = xt;
        }
        sbuf total[t, 1]: fp32 = sum(s, axis: free);            // DVE tensor_reduce
        sbuf neg[t, 1]: fp32 = total * (-1.0 / H);
        sbuf ss[t, 1]: fp32 = sum(square(s + neg), axis: free); // ACT with its accumulator; the squares go to scratch
        sbuf r[t, 1]: fp32 = rsqrt(ss * (1.0 / H) + eps);
        sbuf n[t, H]: fp32 = (s + neg) * g;                     // DVE scalar_tensor_tensor
        y[t, :] <- n * r + b bufs 2;                            // the same, into a staging tile, and its DMA
    }
}
