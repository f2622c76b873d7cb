// Part of every row, rows on the partitions: a projection taken apart along its columns.
leaf slice_rows for slice on trn1, trn2, trn3 {
    where start >= 0 && count >= 1 && start + count <= N : "the slice must lie inside the axis";
    where count * B * bytes(x.dtype) * 2 <= sbuf.partition : "the part of one row must fit one partition twice";
    where A > 1 : "a single row has a leaf that puts its parts on the partitions";
    cost hbm: 2 * bytes(y);
    tolerance 0.0, 0.0;
    priority 1;
    cases (A: 128, N: 1152, B: 1, start: 384, count: 384), (A: 130, N: 9, B: 33, start: 2, count: 3), (A: 2, N: 3, B: 5, start: 0, count: 1);

    for a in tiles(A, 128) across cores {
        sbuf t[a, count * B]: x.dtype bufs 2 <- x.view("a n b -> a (n b)")[a, start * B:(start + count) * B];
        y.view("a n b -> a (n b)")[a, :] <- t;
    }
}
