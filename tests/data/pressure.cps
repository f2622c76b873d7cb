// The same work kept on chip whole, as if SBUF had no end, and streamed by hand.

op pressed_matmul(x[M, K], w[K, N]) -> y[M, N] { y = x @ w; }

// xt[:, :], K folded, from rows of x.
fn turn(xt, x, m, K) {
    sbuf xs[m, K] <- x[m, :];
    for k in tiles(K, P) { psum t[k, m]: transposed(x.dtype) = xs[:, k]'; xt[k, :] = t; }
}

leaf matmul_kept for pressed_matmul on trn1, trn2, trn3 {
    cases (M: 256, K: 256, N: 256);
    sbuf wt[K by P, N] <- w;
    for m in tiles(M, P) {
        sbuf xt[K by P, m]: x.dtype;
        turn(xt, x, m, K);
        for n in tiles(N, 512) {
            psum acc[m, n]: fp32;
            for k in tiles(K, P) { acc += xt[k, :]' @ wt[k, n]; }
            y[m, n] <- acc;
        }
    }
}

leaf matmul_streamed for pressed_matmul on trn1, trn2, trn3 {
    cases (M: 256, K: 256, N: 256);
    for m in tiles(M, P) {
        sbuf xt[K by P, m]: x.dtype;
        turn(xt, x, m, K);
        for n in tiles(N, 512) {
            psum acc[m, n]: fp32;
            for k in tiles(K, P) { sbuf wt[k, n] bufs 4 <- w[k, n]; acc += xt[k, :]' @ wt; }
            y[m, n] <- acc;
        }
    }
}

op pressed_share(x[M, N]) -> y[M, N] { let e = exp(x); y = e / sum(e, axis: 0); }

// Sums down the columns of e, row tile after row tile.
fn add_rows(s, e, ones, m, N) {
    for n in tiles(N, 512) {
        psum acc[P, n]: fp32 = ones[0:m.size, :]' @ e[:, n];
        s[:, n] = s[:, n] + acc;
    }
}

leaf share_kept for pressed_share on trn1, trn2, trn3 {
    cases (M: 256, N: 256);
    sbuf e[M by P, N]: x.dtype;
    sbuf ones[P, P]: x.dtype = 1.0;
    sbuf s[P, N]: fp32 = 0.0;
    for m in tiles(M, P) {
        sbuf xt[m, N] <- x[m, :];
        e[m, :] = exp(xt);
        add_rows(s, e[m, :], ones, m, N);
    }
    sbuf r[P, N]: fp32 = 1 / s;
    for m in tiles(M, P) { y[m, :] <- e[m, :] * r[0:m.size, :] bufs 2; }
}

leaf share_streamed for pressed_share on trn1, trn2, trn3 {
    cases (M: 256, N: 256);
    hbm kept[M, N]: x.dtype;
    sbuf ones[P, P]: x.dtype = 1.0;
    sbuf s[P, N]: fp32 = 0.0;
    for m in tiles(M, P) {
        sbuf xt[m, N] <- x[m, :];
        sbuf e[m, N]: x.dtype = exp(xt);
        kept[m, :] <- e;
        add_rows(s, e, ones, m, N);
    }
    sbuf r[P, N]: fp32 = 1 / s;
    for m in tiles(M, P) { sbuf e[m, N] <- kept[m, :]; y[m, :] <- e * r[0:m.size, :] bufs 2; }
}

// One instruction reads all of it: no part can be elsewhere.
leaf share_whole for pressed_share on trn2 {
    cases (M: 128, N: 256);
    sbuf e[M by P, N]: fp32;
    for m in tiles(M, P) { e[m, :] <- x[m, :]; }
    sbuf d[M by P, N]: fp32 = e * 2;
    for m in tiles(M, P) { y[m, :] <- d[m, :]; }
}

// What a transfer adds to, and rows by index: the sum has a home of its own, the gathered rows stay.
op pressed_sum(x[T, N], z[T, N]) -> y[T, N] { y = (x + z) * 2.0; }
leaf sum_added for pressed_sum on trn2 {
    cases (T: 4, N: 512);
    sbuf a[T, N]: fp32 <- x;
    a <+ z;
    for n in tiles(N, 512) { sbuf b[T, n]: fp32 = a[:, n] * 2.0; y[:, n] <- b; }
}
leaf sum_pinned for pressed_sum on trn2 {
    cases (T: 4, N: 512);
    sbuf a[T, N]: fp32 parts 32 <- x;
    sbuf c[T, N]: fp32 parts 32 <- z;
    for n in tiles(N, 512) { sbuf b[T, n]: fp32 parts 32 = (a[:, n] + c[:, n]) * 2.0; y[:, n] <- b; }
}
leaf sum_banks for pressed_sum on trn2 {
    cases (T: 4, N: 512);
    sbuf a[T, N]: fp32 <- x;
    sbuf ones[P, P]: bf16 = 1.0;
    psum p[P, P]: fp32 bank 0 = ones' @ ones;
    psum q[P, P]: fp32 bank 0 = ones' @ ones;
    sbuf s[P, P]: fp32 = p * 0.0;
    s = s + q * 0.0;
    for n in tiles(N, 128) { sbuf b[T, n]: fp32 = a[:, n] * 2.0 + s[0:T, 0:n.size]; y[:, n] <- b; }
}

op pressed_rows(x[R, N], ids[T]: i32) -> y[T, N] { y = x[ids, :] * 2.0; }
leaf rows_gathered for pressed_rows on trn2 {
    cases (R: 8, T: 8, N: 512);
    sbuf ix[T, 1] <- ids;
    sbuf a[T, N] <- x[ix, :];
    for n in tiles(N, 512) { y[:, n] <- a[:, n] * 2.0; }
}
