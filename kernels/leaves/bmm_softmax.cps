// A row of scores leaves PSUM with its maximum in one pass of DVE, so that PE goes on; ACT makes the exponentials, their sum and the
// probabilities, in place.
leaf bmm_softmax_rows for bmm_softmax on trn1, trn2, trn3 {
    where x.dtype in {bf16, fp16, fp32} && w.dtype == x.dtype : "x and w must share bf16, fp16 or fp32";
    let size = bytes(x.dtype);
    param slots in {2, 3} = 3;                                  // rows of scores
    where ceil_div(K, P) * (2 * N + 3 * min(M, P)) * size + 3 * K * size + N * (slots * 4 + (bytes(y.dtype) == 4 ? 0 : slots * bytes(y.dtype))) + 2048 <= sbuf.partition
        : "the second operand of a batch and rows of scores must fit one partition";
    cost pe: B * ceil_div(M, P) * (ceil_div(K, P) * (N + P) * target.pe_passes(x.dtype)), dve: B * ceil_div(M, P) * (N + 200), act: B * ceil_div(M, P) * (2 * N + 200),
         hbm: bytes(x) + bytes(w) + bytes(y);
    tolerance x.dtype == fp32 ? 1e-3 : 1e-2, 1e-6;
    cases (B: 2, M: 256, K: 64, N: 1024), (B: 3, M: 130, K: 200, N: 700, dtype: fp32), (B: 1, M: 1, K: 7, N: 5, dtype: fp32), (B: 2, M: 5, K: 128, N: 513, dtype: fp16);

    for b in 0..B across cores {
        sbuf wt[K by P, N] bufs 2 <- w[b, :, :];
        for m in tiles(M, P) {
            sbuf rows[m, K] bufs 3 <- x[b, m, :];
            sbuf xt[K by P, m]: x.dtype bufs 3;
            for k in tiles(K, P) {
                psum turned[k, m]: transposed(x.dtype) bufs 2 = rows[:, k]';
                xt[k, :] = turned on act;
            }
            sbuf s[m, N]: fp32 bufs slots;
            sbuf tops[m, ceil_div(N, 512)]: fp32 bufs 2;
            for n in tiles(N, 512) {
                psum acc[m, n]: fp32 bufs 6;
                for k in tiles(K, P) { acc += xt[k, :]' @ wt[k, n]; }
                s[:, n] = acc * 1.0 reduce max into tops[:, ds(n.index, 1)] on dve;
            }
            sbuf neg[m, 1]: fp32 bufs 2 = -max(tops, axis: free);
            sbuf l[m, 1]: fp32 bufs 2;
            s = exp(s + neg) reduce add into l;
            sbuf inv[m, 1]: fp32 bufs 2 = 1.0 / l;
            if (y.dtype == fp32) {
                s = copy(s * inv);
                y[b, m, :] <- s;
            } else {
                y[b, m, :] <- copy(s * inv) bufs slots;
            }
        }
    }
}
