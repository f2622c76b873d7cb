// RMS norm over rows: one row a partition.

leaf rmsnorm_rows for rmsnorm on trn1, trn2, trn3 {             // one pass: the row tile stays on chip
    where x.dtype in {bf16, fp16, fp32} : "x must be bf16, fp16 or fp32";
    param bufs_x in 2..4 = 3;                                   // how far loads run ahead
    let size = bytes(y.dtype);
    let third = H * (bufs_x * bytes(x.dtype) + 5 * size + bytes(gamma.dtype) + 4) + 256 <= sbuf.partition && (target.gen >= 3 || H <= 4096);
    param bufs_y in {2, 3, 4} = third ? 3 : 2;                  // rows of y on their way out
    where H * (bufs_x * bytes(x.dtype) + (bufs_y + 2) * bytes(y.dtype) + bytes(gamma.dtype) + 4) + 256 <= sbuf.partition
        : "the rows of x and y, gamma, the norm and the squares must fit one partition";
    let turns = bytes(y.dtype) == 2 ? 1 : 2;                    // cycles of a tensor_tensor element
    cost act: ceil_div(T, P) * (target.gen >= 3 ? 1 : 2) * (H + 2 * 64), dve: ceil_div(T, P) * (turns + (target.gen >= 3 ? 0.25 : 0)) * H,
         hbm: bytes(x) + bytes(y) + bytes(gamma);
    tolerance y.dtype == fp32 ? 1e-4 : 2e-2, 1e-5;
    cases (T: 128, H: 2048), (T: 1, H: 4096), (T: 129, H: 2880), (T: 3, H: 7, dtype: fp32), (T: 1, H: 1);

    let R = min(T, P);
    sbuf g[R, H] <- repeat(gamma.view("h -> 1 h"), R, axis: 0); // gamma on every partition that holds a row
    for t in tiles(T, P) across cores {
        sbuf xt[t, H] bufs bufs_x <- x[t, :];
        sbuf ss[t, 1]: fp32 bufs 2 = sum(square(xt), axis: free);   // one activation with its accumulator
        sbuf r[t, 1]: fp32 bufs 2 = rsqrt(ss * (1.0 / H) + eps);    // one activation on [P, 1]
        sbuf n[t, H]: y.dtype bufs 2;                           // in the type of y: 16-bit operands are twice as fast
        if (target.gen >= 3) { n = xt * r; } else { n = xt * r on act; }
        y[t, :] <- n * g[0:t.size, :] bufs bufs_y;                   // DVE tensor_tensor, one DMA
    }
}

leaf rmsnorm_stream for rmsnorm on trn1, trn2, trn3 {           // rows too long for one partition: two passes over HBM
    where x.dtype in {bf16, fp16, fp32} : "x must be bf16, fp16 or fp32";
    param C in {512, 1024, 2048, 4096} = 2048;
    where ceil_div(H, C) * 4 <= sbuf.partition / 4 : "the sums of a row's parts must fit one partition";
    cost act: ceil_div(T, P) * (H + 2 * 64), dve: ceil_div(T, P) * 2 * H,
         hbm: 2 * bytes(x) + bytes(y) + ceil_div(T, P) * bytes(gamma) * min(T, P);
    tolerance y.dtype == fp32 ? 1e-4 : 2e-2, 1e-5;
    cases (T: 3, H: 9001), (T: 130, H: 1030, dtype: fp32), (T: 1, H: 70000), (T: 2, H: 1);

    for t in tiles(T, P) across cores {
        sbuf parts[t, ceil_div(H, C)]: fp32;
        for c in tiles(H, C) {
            sbuf xc[t, c] bufs 3 <- x[t, c];
            parts[:, ds(c.index, 1)] = sum(square(xc), axis: free);
        }
        sbuf ss[t, 1]: fp32 = sum(parts, axis: free);
        sbuf r[t, 1]: fp32 = rsqrt(ss * (1.0 / H) + eps);
        for c in tiles(H, C) {
            sbuf xc[t, c] bufs 3 <- x[t, c];
            sbuf g[t, c] bufs 2 <- repeat(gamma.view("h -> 1 h")[:, c], t.size, axis: 0);
            y[t, c] <- xc * r * g bufs 2;
        }
    }
}

// Few rows, as of a decode step: each lies over all partitions, and the PE adds up what they have found.
leaf rmsnorm_few for rmsnorm on trn1, trn2, trn3 {
    where T <= 8 : "more rows have a leaf with one on each partition";
    where H % P == 0 && H >= 1024 : "a row must be cut into 128 equal parts, long enough to be worth it";
    where x.dtype in {bf16, fp16, fp32} : "x must be bf16, fp16 or fp32";
    where H / P * (T * (bytes(x.dtype) + bytes(y.dtype) + 8) + bytes(gamma.dtype)) + 1024 <= sbuf.partition : "a part of each row must fit one partition";
    cost act: T * (H / P + 256), dve: T * (2 * H / P + 256), hbm: bytes(x) + bytes(y) + bytes(gamma);
    tolerance y.dtype == fp32 ? 1e-4 : 2e-2, 1e-5;
    cases (T: 1, H: 4096), (T: 8, H: 1024), (T: 3, H: 2944, dtype: fp32), (T: 2, H: 8192, dtype: fp16);

    sbuf xt[P, T, H / P]: x.dtype <- x.view("t (p k) -> p t k", p: P);
    sbuf g[P, H / P] <- gamma.view("(p k) -> p k", p: P) on act;
    sbuf ones[P, P]: fp32 = 1.0 / H;
    sbuf ss[P, T]: fp32;
    for t in 0..T { ss[:, ds(t, 1)] = sum(square(xt[:, t, :]), axis: free); }   // an activation with its accumulator each
    psum mean[P, T]: fp32 = ones' @ ss;                         // on every partition
    sbuf r[P, T]: fp32 = rsqrt(mean + eps);
    sbuf o[P, T, H / P]: y.dtype;
    for t in 0..T { o[:, t, :] = xt[:, t, :] * r[:, ds(t, 1)] * g; }            // DVE scalar_tensor_tensor
    y.view("t (p k) -> p t k", p: P) <- o;
}
