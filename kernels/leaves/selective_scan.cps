// Channels on the partitions, time along a row in tiles of 512. PE brings a row of b or c to all partitions, as a product with ones,
// for two tiles of channels at a time, and adds up the states, as products with the identity; DVE reads b and c where they
// lie in PSUM, at its full rate, and its work on two tiles takes turns, so that results are there when they are wanted.
leaf selective_scan_tiles for selective_scan on trn1, trn2, trn3 {
    where 48 * N <= 8192 : "the states of a channel must be few";
    cost dve: ceil_div(C, P) * T * (4 * N + 2), pe: (ceil_div(C, 2 * P) * 2 + ceil_div(C, P)) * N * T * 4, act: ceil_div(C, P) * T * (N + 3),
         hbm: bytes(u) + bytes(delta) + bytes(y) + ceil_div(C, 2 * P) * (bytes(b) + bytes(c));
    tolerance 1e-4, 1e-5;
    cases (C: 256, T: 600, N: 4), (C: 300, T: 20, N: 16), (C: 1, T: 1, N: 1), (C: 100, T: 5, N: 3, softplus: false);

    sbuf ones[1, P]: fp32 = 1.0;
    sbuf one[P, P]: fp32 = 1.0;
    one = select(row(0..P) == col(0..P), one, 0.0);
    for cb in tiles(C, 2 * P) across cores {
        sbuf a[cb by P, N]: fp32 bufs 2;
        sbuf carry[cb by P, N]: fp32 bufs 2;
        for k in tiles(cb, P) {
            a[k, :] <- a_log[k, :];
            a[k, :] = exp(a[k, :]);
            a[k, :] = a[k, :] * -1.0;
            carry[k, :] = 0.0;
        }
        for t in tiles(T, 512) {
            sbuf d[cb by P, t]: fp32 bufs 2;
            sbuf du[cb by P, t]: fp32 bufs 2;
            for k in tiles(cb, P) {
                sbuf ut[k, t] bufs 3 <- u[k, t];
                if (softplus) {
                    sbuf dt[k, t] bufs 3 <- delta[k, t];
                    d[k, :] = softplus(dt);
                } else {
                    d[k, :] <- delta[k, t];
                }
                du[k, :] = d[k, :] * ut;
            }
            psum acc[P, ceil_div(cb.size, P), 512]: fp32 bufs 1;
            for nb in tiles(N, 4) {
                sbuf br[1, nb, t] bufs 2 <- b[nb, t].view("n t -> 1 n t");
                sbuf cr[1, nb, t] bufs 2 <- c[nb, t].view("n t -> 1 n t");
                for n in nb {
                    psum bt[P, t]: fp32 bufs 3 = ones' @ br[:, n.start - nb.start, :];
                    psum ct[P, t]: fp32 bufs 3 = ones' @ cr[:, n.start - nb.start, :];
                    for k in tiles(cb, P) {
                        sbuf da[k, t]: fp32 bufs 4 = exp(d[k, :] * a[k, n]);
                        sbuf h[k, t]: fp32 bufs 4 = du[k, :] * bt[0:k.size, :];
                        h = scan(da * prev + h, init: carry[k, n]);
                        if (!t.last) { carry[k, n] = h[:, t.size - 1:t.size] on act; }
                        sbuf hc[k, t]: fp32 bufs 4 = h * ct[0:k.size, :];
                        acc[0:k.size, k.index, 0:t.size] += one[0:k.size, 0:k.size]' @ hc;
                    }
                }
            }
            for k in tiles(cb, P) { y[k, t] <- acc[0:k.size, k.index, 0:t.size] bufs 3; }
        }
    }
}
