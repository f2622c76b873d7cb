// Whole runs of N * B and M * B elements, as many rows as there are partitions.
leaf concat_rows for concat on trn1, trn2, trn3 {
    where (N + M) * B * bytes(x.dtype) * 2 <= sbuf.partition : "one joined row must fit one partition twice";
    where y.dtype == x.dtype : "x and y share a dtype";
    cost hbm: 2 * bytes(z);
    tolerance 0.0, 0.0;
    cases (A: 1, N: 128, M: 3, B: 96), (A: 130, N: 2, M: 2, B: 1), (A: 7, N: 5, M: 1, B: 33);

    for a in tiles(A, 128) across cores {
        sbuf t[a, (N + M) * B]: x.dtype bufs 2;
        t[:, 0:N * B] <- x.view("a n b -> a (n b)")[a, :];
        t[:, N * B:(N + M) * B] <- y.view("a m b -> a (m b)")[a, :];
        z.view("a m b -> a (m b)")[a, :] <- t;
    }
}

// Long rows, few of them: the joined axis on the partitions.
leaf concat_blocks for concat on trn1, trn2, trn3 {
    where (N + M) * B * bytes(x.dtype) * 2 > sbuf.partition : "shorter rows have a leaf that moves them whole";
    where B * bytes(x.dtype) * 2 <= sbuf.partition : "one row of B must fit one partition twice";
    where y.dtype == x.dtype : "x and y share a dtype";
    cost hbm: 2 * bytes(z);
    tolerance 0.0, 0.0;
    cases (A: 1, N: 4000, M: 3000, B: 64), (A: 2, N: 130, M: 1, B: 2000);

    for a in 0..A {
        for n in tiles(N, 128) {
            sbuf t[n, B] bufs 2 <- x[a, n, :];
            z[a, n, :] <- t;
        }
        for m in tiles(M, 128) {
            sbuf u[m, B] bufs 2 <- y[a, m, :];
            z[a, ds(N + m.start, m.size), :] <- u;
        }
    }
}
