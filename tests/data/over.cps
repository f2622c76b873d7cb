// Offsets in registers that lead out of what they move in: into a neighbour, were nothing to look.
op over(x[R, C]) -> y[R, C]: fp32 {
    y = x * 2;
}

// what the counter of a loop gives, the compiler finds
leaf over_reads for over on trn1, trn2, trn3 {
    cases (R: 128, C: 64);
    sbuf a[P, 8, C]: fp32 = 0.0;
    sbuf o[P, C]: fp32;
    loop i in 0..9 { o = a[:, i, :] + 1.0; }
    y <- o;
}

leaf over_writes for over on trn1, trn2, trn3 {
    cases (R: 128, C: 64);
    sbuf a[P, 8, C]: fp32 = 0.0;
    sbuf b[P, 8, C]: fp32 = 0.0;
    loop i in 0..4 {
        loop j in 0..3 {
            sbuf t[P, C]: fp32 <- x;
            a[:, i + j * 4, :] = t;
        }
    }
    y <- a[:, 1, :] + b[:, 1, :];
}

leaf over_moves for over on trn2, trn3 {
    cases (R: 128, C: 64);
    sbuf a[P, 8, C]: fp32 = 0.0;
    sbuf b[P, 8, C]: fp32 = 0.0;
    loop i in -1..8 { a[:, i, :] <- x; }
    y <- a[:, 1, :] + b[:, 1, :];
}

leaf over_tensor for over on trn2, trn3 {
    cases (R: 128, C: 64);
    sbuf t[P, C]: fp32 = 0.0;
    loop i in 0..4 {
        sbuf q[32, C]: fp32 <- x[ds(i * 48, 32), :];
        t[0:32, :] += q;
    }
    y <- t;
}

leaf over_psum for over on trn1, trn2, trn3 {
    cases (R: 128, C: 64);
    psum a[P, 4, C]: fp32;
    psum b[P, C]: fp32 = 0.0;
    sbuf o[P, C]: fp32;
    a = 0.0;
    loop i in 0..5 { o = a[:, i, :] + 1.0; }
    y <- o + b;
}

// what a tensor gives, a run finds
leaf over_data for over on trn1, trn2, trn3 {
    cases (R: 128, C: 64);
    sbuf n[1, 1]: i32 = 9;
    sbuf a[P, 8, C]: fp32 = 0.0;
    sbuf b[P, 8, C]: fp32 = 0.0;
    reg i: i32 <- n[0, 0];
    y <- a[:, i, :] + b[:, 0, :];
}

leaf over_load for over on trn1, trn2, trn3 {
    cases (R: 128, C: 64);
    sbuf n[1, 4]: i32 = 5;
    reg i: i32 <- n[0, 0];
    reg k: i32 <- n[0, i];
    sbuf o[P, C]: fp32 <- x;
    when (k > 0) { o = o * 2.0; } else { o = o * 3.0; }
    y <- o;
}

// kept in bounds
leaf over_not for over on trn2, trn3 {
    cases (R: 128, C: 64);
    sbuf a[P, 8, C]: fp32 = 0.0;
    sbuf u[P, C]: fp32;
    loop i in 0..9 {
        when (i < 8) {
            sbuf t[P, C]: fp32 <- x;
            a[:, i, :] = t * 2.0;
        } else { }
        reg k: i32 = min(i, 7);
        u = a[:, k, :] * 1.0;
    }
    y <- u;
}
