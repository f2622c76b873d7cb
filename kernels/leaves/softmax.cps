// Softmax over the last axis: whole rows on chip, or rows in column tiles with a running maximum.

leaf softmax_rows for softmax on trn1, trn2, trn3 {             // one pass: a row tile stays on chip
    where x.dtype in {bf16, fp16, fp32} : "x must be bf16, fp16 or fp32";
    param slots in {2, 3, 4, 6} = 4;                       // how far loads and stores run ahead
    where N * slots * (bytes(x.dtype) + 2 * bytes(y.dtype)) + 256 <= sbuf.partition : "rows of x, the exponentials and y must fit one partition";
    cost act: ceil_div(T, P) * (N + 128), dve: ceil_div(T, P) * (N / (x.dtype == bf16 ? 2 : 1) + N / (bytes(y.dtype) == 2 && target.gen >= 3 ? 4 : 1) + 128),
         hbm: bytes(x) + bytes(y);
    tolerance y.dtype == fp32 ? 1e-3 : 1e-2, 1e-6;
    cases (T: 128, N: 4096), (T: 130, N: 1000), (T: 1, N: 1), (T: 513, N: 7);

    for t in tiles(T, P) across cores {
        sbuf xt[t, N] bufs slots <- x[t, :];
        sbuf neg[t, 1]: x.dtype bufs slots = -max(xt, axis: free);     // DVE tensor_reduce, negated; exact in the type of x, and twice as fast there in bf16
        sbuf l[t, 1]: fp32 bufs slots;
        sbuf e[t, N]: y.dtype bufs slots = exp(xt + neg) reduce add into l;    // ACT activation with accumulator
        sbuf inv[t, 1]: fp32 bufs slots = 1.0 / l;              // DVE reciprocal on [P, 1]
        y[t, :] <- e * inv bufs slots;                          // DVE tensor_scalar into a staging tile, one DMA
    }
}

leaf softmax_stream for softmax on trn1, trn2, trn3 {           // rows too long for one partition: two passes over HBM
    where x.dtype in {bf16, fp16, fp32} : "x must be bf16, fp16 or fp32";
    param C in {1024, 2048, 4096, 8192} = 4096;
    where N > C : "shorter rows have a one-pass leaf";
    where C * (6 * bytes(x.dtype) + 2 + 2 * bytes(y.dtype)) + 128 <= sbuf.partition : "six tiles of x, one of exponentials and two of y must fit one partition";
    cost act: ceil_div(T, P) * 2 * N, dve: ceil_div(T, P) * N, hbm: 2 * bytes(x) + bytes(y);
    tolerance y.dtype == fp32 ? 1e-3 : 1e-2, 1e-6;
    cases (T: 128, N: 32768), (T: 130, N: 50257), (T: 1, N: 151936);

    for t in tiles(T, P) across cores {
        sbuf neg[t, 1]: fp32;                                   // minus the running maximum
        sbuf l[t, 1]: fp32;                                     // running sum of exponentials
        for c in tiles(N, C) {
            sbuf xc[t, c] bufs 3 <- x[t, c];
            sbuf e[t, c]: bf16;                                 // wanted only for its sum
            if (c.first) {
                neg = -max(xc, axis: free);                     // DVE tensor_reduce, negated
                neg = minimum(neg, 3.0e38);                     // a chunk of -inf alone: inf - inf is no number
                e = exp(xc + neg) reduce add into l;            // ACT activation with accumulator
            } else {
                sbuf old[t, 1]: fp32 = neg;
                sbuf top[t, 1]: fp32 = -max(xc, axis: free);
                neg = minimum(old, top);                        // old is finite, so neg is
                sbuf part[t, 1]: fp32;
                e = exp(xc + neg) reduce add into part;
                sbuf alpha[t, 1]: fp32 = exp(neg - old);        // ACT: scale -1, bias neg
                l = l * alpha + part;                           // DVE tensor_scalar on [P, 1]
            }
        }
        sbuf b[t, 1]: fp32 = neg - log(l);                      // exp(x + neg) / l = exp(x + (neg - log l))
        for c in tiles(N, C) {
            sbuf xc[t, c] bufs 3 <- x[t, c];
            y[t, c] <- exp(xc + b) bufs 2;                      // one activation into a staging tile, one DMA
        }
    }
}
