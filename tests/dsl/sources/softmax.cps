// Softmax over long rows, column tiles.
op softmax(x[T, N]) -> y[T, N] {
    let e = exp(x - max(x, axis: 1));
    y = e / sum(e, axis: 1);
}

leaf softmax_stream for softmax on trn1, trn2, trn3 {          // rows too long for one partition: two passes over HBM
    param C in {1024, 2048, 4096, 8192} = 4096;
    where N > C : "shorter rows have a one-pass leaf";
    cost act: T / 128 * 2 * N, dve: T / 128 * N, hbm: 2 * bytes(x) + bytes(y);
    tolerance 1e-3, 1e-6;
    cases (T: 128, N: 32768), (T: 130, N: 50257), (T: 1, N: 151936);

    for t in tiles(T, P) across cores {
        sbuf neg[t, 1]: fp32;                                    // minus the running maximum
        sbuf l[t, 1]: fp32;                                      // running sum of exponentials
        for c in tiles(N, C) {
            sbuf xc[t, c] bufs 3 <- x[t, c];
            sbuf e[t, c]: bf16;                                 // wanted only for its sum
            if (c.first) {
                neg = -max(xc, axis: free);                     // DVE tensor_reduce, negated
                e = exp(xc + neg) reduce add into l;            // ACT activation with accumulator
            } else {
                sbuf old[t, 1]: fp32 = neg;
                sbuf top[t, 1]: fp32 = -max(xc, axis: free);
                neg = minimum(old, top);
                sbuf part[t, 1]: fp32;
                e = exp(xc + neg) reduce add into part;
                sbuf alpha[t, 1]: fp32 = exp(neg - old);         // ACT: scale -1, bias neg
                l = l * alpha + part;                           // DVE scalar_tensor_tensor
            }
        }
        sbuf b[t, 1]: fp32 = neg - log(l);                       // exp(x + neg) / l = exp(x + (neg - log l))
        for c in tiles(N, C) {
            sbuf xc[t, c] bufs 3 <- x[t, c];
            y[t, c] <- exp(xc + b) bufs 2;                      // one activation into a staging tile, one DMA
        }
    }
}
