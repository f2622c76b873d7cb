// Single instructions and transfers of published traces, in the smallest kernels that hold them.

// Load, exp, store of one tile.
op exponential(x[P_, N]) -> y[P_, N] {
    y = exp(x);
}

leaf load_exp_store for exponential on trn2 {
    where P_ <= 128 : "one tile";
    cases (P_: 4, N: 4096);
    sbuf t[P_, N] <- x;
    sbuf e[P_, N]: y.dtype = exp(t);
    y <- e;
}

// The same with descriptors made when the trigger runs: the row is in a register.
leaf load_exp_store_dynamic for exponential on trn2 {
    where P_ == 128 : "one tile";
    cases (P_: 128, N: 128);
    reg from: i32 = 0;
    sbuf t[P_, N] <- x[ds(from, P_), :] on pool;
    sbuf e[P_, N]: y.dtype = exp(t);
    y <- e on pool;
}

// 32 KiB over one engine: 8 rows of 4 KiB.
op copied(x[P_, N]) -> y[P_, N] {
    y = x * 1.0;
}

leaf copy_through_sbuf for copied on trn1 {
    cases (P_: 8, N: 1024);
    sbuf t[P_, N] <- x;
    y <- t;
}

// A chain of one-element activations, each on the result of the one before.
op chained(x[P_, 1]) -> y[P_, 1] {
    var t = x;
    for i in 0..32 { t = relu(t); }
    y = t;
}

leaf activation_chain for chained on trn1 {
    cases (P_: 128);
    sbuf t[P_, 33]: fp32;
    t[:, 0:1] <- x;
    for i in 0..32 { t[:, i + 1:i + 2] = relu(t[:, i:i + 1]); }
    y <- t[:, 32:33];
}

// One product of two tiles in SBUF.
op multiplied(a[P_, N], b[P_, N]) -> y[P_, N] {
    y = a * b;
}

leaf multiply_tiles for multiplied on trn1 {
    cases (P_: 64, N: 512);
    sbuf s[P_, N] <- a;
    sbuf t[P_, N] <- b;
    sbuf r[P_, N]: y.dtype = s * t;
    y <- r;
}

// The same with one of them in PSUM, copied there first.
leaf multiply_psum for multiplied on trn1 {
    where N <= 512 && P_ <= 128 : "one bank";
    cases (P_: 128, N: 384);
    sbuf s[P_, N] <- a;
    sbuf t[P_, N] <- b;
    psum u[P_, N]: fp32 = t on act;
    sbuf r[P_, N]: y.dtype = s * u;
    y <- r;
}

// Products of one stationary tile after another, as in a longer kernel: 24 of [128, C] with [128, N].
op products(a[K, C], b[K, N]) -> y[C, N] {
    y = (a' @ b) * 24.0;
}

leaf product_stream for products on trn1, trn2 {
    where C <= 128 && N <= 512 && K == 128 : "one tile";
    cases (K: 128, C: 96, N: 128);
    sbuf s[K, C] <- a;
    sbuf t[K, N] <- b;
    psum acc[C, N]: fp32;
    for i in 0..24 { acc += s' @ t; }
    y <- acc;
}
