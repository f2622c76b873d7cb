// Layer norm over rows: one row a partition, statistics on [P, 1] columns.

leaf layernorm_rows for layernorm on trn1, trn2, trn3 {
    where x.dtype in {bf16, fp16, fp32} : "x must be bf16, fp16 or fp32";
    let wide = (present(residual) ? 6 : 2) * bytes(x.dtype);
    where H * (wide + bytes(gamma.dtype) + bytes(beta.dtype) + 4 + 6 * bytes(y.dtype)) + 512 <= sbuf.partition
        : "rows of x, y and residual, gamma, beta and the normalised row must fit one partition";
    let turns = bytes(y.dtype) == 2 ? 1 : 2;                    // cycles of a tensor_tensor element
    cost dve: ceil_div(T, P) * (present(residual) ? 3 : 2) * turns * H, act: ceil_div(T, P) * 3 * (H + 128),
         hbm: bytes(x) * (present(residual) ? 2 : 1) + bytes(y) + bytes(gamma) + bytes(beta);
    tolerance y.dtype == fp32 ? 1e-4 : 2e-2, 1e-5;
    cases (T: 128, H: 384), (T: 1, H: 384), (T: 129, H: 1000, with: "residual"), (T: 300, H: 77, dtype: fp32), (T: 2, H: 4099), (T: 1, H: 1);

    let R = min(T, P);
    sbuf g[R, H] <- repeat(gamma.view("h -> 1 h"), R, axis: 0);
    sbuf b[R, H] <- repeat(beta.view("h -> 1 h"), R, axis: 0);
    for t in tiles(T, P) across cores {
        sbuf xt[t, H] bufs 2 <- x[t, :];
        if (present(residual)) {
            sbuf rt[t, H] bufs 2 <- residual[t, :];
            sbuf s[t, H]: x.dtype bufs 2 = xt + rt;             // DVE tensor_tensor
        } else {
            let s = xt;
        }
        sbuf total[t, 1]: fp32 bufs 2 = sum(copy(s), axis: free);   // ACT with its accumulator; the elements go to scratch
        sbuf neg[t, 1]: fp32 bufs 2 = copy(total * (-1.0 / H));      // on ACT as well: no engine waits for another between the sums
        sbuf ss[t, 1]: fp32 bufs 2 = sum(square(s + neg), axis: free);
        sbuf r[t, 1]: fp32 bufs 2 = rsqrt(ss * (1.0 / H) + eps);
        sbuf nr[t, 1]: fp32 bufs 2 = copy(neg * r);
        sbuf n[t, H]: y.dtype bufs 2 = s * r + nr on act;       // (s - mean) / deviation, in the type of y: DVE is twice as fast on 16 bits
        sbuf ng[t, H]: y.dtype bufs 2 = n * g[0:t.size, :];     // DVE tensor_tensor
        y[t, :] <- ng + b[0:t.size, :] bufs 2;                  // the same, into a staging tile, and its DMA
    }
}

// Rows of 16-bit values, with the last addition on PE: (x - mean) gamma is made by DVE in one pass (where POOL has a port of its
// own, ACT and POOL make three quarters of it); products with the identity, scaled by 1 / deviation, and a row of ones
// times beta add up in PSUM; ACT brings the sums back. Statistics are those of the batch-norm instructions.
leaf layernorm_sums for layernorm on trn1, trn2, trn3 {
    where x.dtype in {bf16, fp16} && gamma.dtype == x.dtype && beta.dtype == x.dtype : "x, gamma and beta must share bf16 or fp16";
    param slots in {2, 3, 4} = 4;                               // how far loads and stores run ahead
    let wide = slots * (present(residual) ? 3 : 1) + 2 * slots + 3;
    where H * wide * 2 + ceil_div(H, 512) * 48 + 4096 <= sbuf.partition : "rows of x, residual, gamma, beta and y must fit one partition";
    let cut = target.gen >= 3 ? H * 3 / 4 / 512 * 512 : 0;      // columns that ACT and POOL make
    let turns = x.dtype == bf16 ? 1 : 2;                        // cycles of a product's element on DVE
    cost dve: ceil_div(T, P) * ((present(residual) ? 2 : 1) * H + turns * (H - cut) + 13 * 2 * ceil_div(H, 512) + 500),
         act: ceil_div(T, P) * (H + cut + 500), pool: ceil_div(T, P) * 2 * cut, pe: ceil_div(T, P) * 2 * H,
         hbm: bytes(x) * (present(residual) ? 2 : 1) + bytes(y) + bytes(gamma) + bytes(beta);
    tolerance 2e-2, 1e-5;
    cases (T: 128, H: 384), (T: 1, H: 384), (T: 129, H: 1000, with: "residual"), (T: 300, H: 77, dtype: fp16), (T: 2, H: 4099), (T: 1, H: 1), (T: 257, H: 4096);

    let R = min(T, P);
    sbuf plus[R, R]: x.dtype = 1.0;
    plus = select(row(0..R) == col(0..R), plus, 0.0);
    sbuf ones[1, R]: x.dtype = 1.0;
    sbuf g[R, H] <- repeat(gamma.view("h -> 1 h"), R, axis: 0);
    sbuf b[1, H] <- beta.view("h -> 1 h");
    var some = false;                                           // the tile before: its sums stand behind the next one's product
    var pt = 0;
    var pn = 0;
    var ps = 0;
    for t in tiles(T, P) across cores {
        sbuf xt[t, H] bufs slots <- x[t, :];
        if (present(residual)) {
            sbuf rt[t, H] bufs slots <- residual[t, :];
            sbuf s[t, H]: x.dtype bufs 3 = xt + rt;             // DVE tensor_tensor
        } else {
            let s = xt;
        }
        sbuf stats[t, 6 * ceil_div(H, 512)]: fp32 bufs 2;
        for q in tiles(H, 512) { bn_stats(dst: stats[:, ds(q.index * 6, 6)], data: s[:, q]); }
        sbuf mv[t, 2]: fp32 bufs 3;
        bn_aggr(dst: mv, data: stats);                          // mean, variance
        sbuf n[t, H]: x.dtype bufs 3;
        if (cut > 0) {
            sbuf neg[t, 1]: fp32 bufs 3 = mv[:, 0:1] * -1.0;
            sbuf c[t, cut]: x.dtype bufs 2 = s[:, 0:cut] + neg on act;
            tensor_tensor(dst: n[:, 0:cut], data1: c, data2: g[0:t.size, 0:cut], op: "mult") on pool;
        }
        sbuf r[t, 1]: fp32 bufs 3 = rsqrt(mv[:, 1:2] + eps);
        sbuf scale[t, t.size]: x.dtype bufs 3 = plus[0:t.size, 0:t.size] * r;       // the identity times 1 / deviation, row by row
        scalar_tensor_tensor(dst: n[:, cut:H], data: s[:, cut:H], operand0: mv[:, 0:1], operand1: g[0:t.size, cut:H], op0: "subtract", op1: "mult");
        if (some) { sums(y, pt, pn, ps, ones, b, slots); }
        some = true;
        pt = t;
        pn = n;
        ps = scale;
    }
    if (some) { sums(y, pt, pn, ps, ones, b, slots); }
}

// y = diag(1 / deviation) n + 1 beta, four banks at a time.
fn sums(y, t, n, scale, ones, b, slots) {
    let H = n.shape[1];
    sbuf o[t, H]: y.dtype bufs slots;
    for w in tiles(H, 2048) {
        psum acc[t, w]: fp32 bufs 2;
        for q in tiles(w, 512) {
            acc[:, q] += scale' @ n[:, q];
            acc[:, q] += ones[:, 0:t.size]' @ b[:, q];
        }
        o[:, w] = acc on act;
    }
    y[t, :] <- o on sp;
}

// Rows too long for one partition: statistics in a first pass, by the batch-norm instructions, the result in a second.
leaf layernorm_stream for layernorm on trn1, trn2, trn3 {
    where x.dtype in {bf16, fp16, fp32} : "x must be bf16, fp16 or fp32";
    where ceil_div(H, 512) * 24 <= sbuf.partition / 4 : "the statistics of a row's parts must fit one partition";
    param C in {512, 1024, 2048} = 2048;
    cost dve: ceil_div(T, P) * (present(residual) ? 5 : 3) * H,
         hbm: bytes(x) * (present(residual) ? 4 : 2) + bytes(y) + ceil_div(T, P) * (bytes(gamma) + bytes(beta)) * min(T, P);
    tolerance y.dtype == fp32 ? 1e-4 : 2e-2, 1e-5;
    cases (T: 3, H: 9001, with: "residual"), (T: 130, H: 1030, dtype: fp32), (T: 1, H: 70000), (T: 2, H: 1);

    for t in tiles(T, P) across cores {
        sbuf stats[t, 6 * ceil_div(H, 512)]: fp32;
        for c in tiles(H, C) {
            sbuf xc[t, c] bufs 2 <- x[t, c];
            if (present(residual)) {
                sbuf rc[t, c] bufs 2 <- residual[t, c];
                sbuf s[t, c]: fp32 = xc + rc;
            } else {
                let s = xc;
            }
            for q in tiles(c, 512) { bn_stats(dst: stats[:, ds(q.start / 512 * 6, 6)], data: s[:, q]); }
        }
        sbuf mv[t, 2]: fp32;
        bn_aggr(dst: mv, data: stats);                          // mean, variance
        sbuf neg[t, 1]: fp32 = mv[:, 0:1] * -1.0;
        sbuf r[t, 1]: fp32 = rsqrt(mv[:, 1:2] + eps);
        for c in tiles(H, C) {
            sbuf xc[t, c] bufs 2 <- x[t, c];
            if (present(residual)) {
                sbuf rc[t, c] bufs 2 <- residual[t, c];
                sbuf s[t, c]: fp32 = xc + rc;
            } else {
                let s = xc;
            }
            sbuf g[t, c] bufs 2 <- repeat(gamma.view("h -> 1 h")[:, c], t.size, axis: 0);
            sbuf b[t, c] bufs 2 <- repeat(beta.view("h -> 1 h")[:, c], t.size, axis: 0);
            sbuf n[t, c]: fp32 = (s + neg) * g;
            y[t, c] <- n * r + b bufs 2;
        }
    }
}
