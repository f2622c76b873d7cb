// What hardware loops take and what a turn costs, for tests/cli/loops.py.

op flip(x[R, C]) -> y[C, R] {
    y = x';
}

// Rows by a register, turned by the transfer.
leaf flip_turns for flip on trn2, trn3 {
    where R % 256 == 0 : "whole blocks";
    cases (R: 512, C: 64);
    loop i in 0..R / 256 {
        sbuf t[C, 512]: x.dtype bufs 1;
        t[:, 32:288] <- x[ds(i * 256, 256), :]';
        y[:, ds(i * 256, 256)] <- t[:, 32:288];
    }
}

leaf flip_odd for flip on trn2 {
    cases (R: 512, C: 64);
    loop i in 0..R / 8 {
        sbuf t[C, 8]: x.dtype bufs 1 <- x[ds(i * 8, 8), :]';
        y[:, ds(i * 8, 8)] <- t;
    }
}

// Blocks of rows in the order 0, 1, ..., then the last one again; from each register follow more than there are at once.
op stairs(x[R, C]) -> y[R, C] {
    y = x * 2.0;
}

leaf stairs_turns for stairs on trn1, trn2, trn3 {
    cases (R: 512, C: 64);
    loop i in 0..R / 128 + 3 {
        reg low: i32 = max(2 - i, -1) * 128;                    // 256, 128, 0, -128, ...
        reg at: i32 = min(i * 128, R - 128) + min(low, 0) - min(0, low);
        for k in 0..40 {
            reg a: i32 = at + k;
            reg b: i32 = a * 2;
            at = b - a - k;
        }
        loop j in 0..2 {
            loop k in 0..2 {
                sbuf t[128, C]: x.dtype bufs 1 <- x[ds(at, 128), :];
                t = t + t;
                y[ds(at, 128), :] <- t;
            }
        }
    }
}

// One table of functions for the whole kernel, one that serves two functions, and two tables.
op warm(x[R, C]) -> y[R, C] {
    y = exp(x);
}

leaf warm_turns for warm on trn1, trn2, trn3 {
    cases (R: 512, C: 64);
    loop i in 0..R / 128 {
        sbuf t[128, C]: x.dtype bufs 1 <- x[ds(i * 128, 128), :];
        t = exp(t);
        y[ds(i * 128, 128), :] <- t;
    }
}

op warmer(x[R, C]) -> y[R, C] {
    y = exp(tanh(x));
}

leaf warmer_turns for warmer on trn1, trn2, trn3 {
    cases (R: 512, C: 64);
    loop i in 0..R / 128 {
        sbuf t[128, C]: x.dtype bufs 1 <- x[ds(i * 128, 128), :];
        sbuf s[128, C]: fp32 bufs 1 = tanh(t);
        t = exp(s);
        y[ds(i * 128, 128), :] <- t;
    }
}

op waver(x[R, C]) -> y[R, C] {
    y = sqrt(exp(x));
}

leaf waver_turns for waver on trn1, trn2, trn3 {
    cases (R: 512, C: 64);
    loop i in 0..R / 128 {
        sbuf t[128, C]: x.dtype bufs 1 <- x[ds(i * 128, 128), :];
        sbuf s[128, C]: fp32 bufs 1 = exp(t);
        t = sqrt(s);
        y[ds(i * 128, 128), :] <- t;
    }
}
