// [4096,8192] x [8192,8192] in bf16 on trn1: the four kernels of the matrix multiplication tutorial, and the steps of an
// independent optimisation of the first one (A1 to A6; A1 is the tutorial's first kernel). x is given transposed, stored
// [K, M]. Loop nests, loads and stores are those of the published sources. What the vendor's compiler chose and nobody
// published: 8 buffers for loads inside the contraction, PSUM copies on ScalarE unless the source names another engine.

// Every operand tile is loaded where it is used.
leaf mm_tiled for matmul on trn1, trn2 {
    layout x: [M, K] or [K, M];
    cases (M: 256, K: 256, N: 1024);
    for m in tiles(M, 128), n in tiles(N, 512) {
        psum acc[m, n]: fp32 bufs 2;
        for k in tiles(K, 128) {
            sbuf a[k, m] bufs 8 <- x[m, k]';
            sbuf b[k, n] bufs 8 <- w[k, n];
            acc += a' @ b;
        }
        sbuf o[m, n]: y.dtype bufs 4 = acc on act;
        y[m, n] <- o;
    }
}

// Loads of x outside the n loop, loads of w outside the k loop.
leaf mm_hoist_load for matmul on trn1, trn2 {
    layout x: [M, K] or [K, M];
    cases (M: 256, K: 256, N: 1024);
    for m in tiles(M, 128) {
        sbuf a[K by 128, m]: x.dtype bufs 2;
        for k in tiles(K, 128) { a[k, m] <- x[m, k]'; }
        for n in tiles(N, 512) {
            sbuf b[K by 128, n]: w.dtype;
            for k in tiles(K, 128) { b[k, n] <- w[k, n]; }
            psum acc[m, n]: fp32 bufs 2;
            for k in tiles(K, 128) { acc += a[k, m]' @ b[k, n]; }
            sbuf o[m, n]: y.dtype bufs 4 = acc on act;
            y[m, n] <- o;
        }
    }
}

// Blocks of 256 rows and 1024 columns: two row tiles and two column tiles for every load.
leaf mm_block_free for matmul on trn1, trn2 {
    layout x: [M, K] or [K, M];
    cases (M: 256, K: 256, N: 1024);
    for mb in tiles(M, 256) {
        sbuf a[K by 128, mb]: x.dtype;
        for m in tiles(mb, 128), k in tiles(K, 128) { a[k, m] <- x[m, k]'; }
        for nb in tiles(N, 1024) {
            sbuf b[K by 128, nb]: w.dtype;
            for n in tiles(nb, 512), k in tiles(K, 128) { b[k, n] <- w[k, n]; }
            for m in tiles(mb, 128), n in tiles(nb, 512) {
                psum acc[m, n]: fp32 bufs 2;
                for k in tiles(K, 128) { acc += a[k, m]' @ b[k, n]; }
                sbuf o[m, n]: y.dtype bufs 4 = acc on act;
                y[m, n] <- o;
            }
        }
    }
}

// All three dimensions blocked (1024 columns, 1024 of the contraction, 2048 rows); sums of blocks of K in SBUF.
leaf mm_block_all for matmul on trn1, trn2 {
    layout x: [M, K] or [K, M];
    cases (M: 2048, K: 2048, N: 1024);
    for nb in tiles(N, 1024) {
        sbuf sum[M by 128, nb]: y.dtype;
        for m in tiles(M, 128), n in tiles(nb, 512) { sum[m, n] = 0.0 on dve; }
        for kb in tiles(K, 1024) {
            sbuf b[kb by 128, nb]: w.dtype bufs 2;
            for k in tiles(kb, 128) { b[k, nb] <- w[k, nb]; }
            for mb in tiles(M, 2048) {
                sbuf a[kb by 128, mb]: x.dtype bufs 2;
                for k in tiles(kb, 128) { a[k, mb] <- x[mb, k]'; }
                for n in tiles(nb, 512), m in tiles(mb, 128) {
                    psum acc[m, n]: fp32 bufs 4;
                    for k in tiles(kb, 128) { acc += a[k, m]' @ b[k, n]; }
                    sum[m, n] = acc + sum[m, n];
                }
            }
        }
        for m in tiles(M, 128) {
            sbuf o[m, nb]: y.dtype bufs 2;
            for n in tiles(nb, 512) { o[m, n] = sum[m, n] on dve; }
            y[m, nb] <- o;
        }
    }
}

// A2 to A5: `MB` rows by 1024 columns of y at once, the whole contraction in PSUM; x in loads of `MA` columns.
fn accumulate(acc, x, w, mb, nb, MA, NA) {
    for k in tiles(x.axis(1), 128) {
        sbuf a[k, mb]: x.dtype bufs 8;
        sbuf b[k, nb]: w.dtype bufs 8;
        for m in tiles(mb, MA) { a[k, m] <- x[m, k]'; }
        for n in tiles(nb, NA) { b[k, n] <- w[k, n]; }
        for m in tiles(mb, 128), n in tiles(nb, 512) { acc[m, n] += a[k, m]' @ b[k, n]; }
    }
}

fn evacuate(acc, y, mb, nb) {
    for m in tiles(mb, 128), n in tiles(nb, 512) {
        sbuf o[m, n]: y.dtype bufs 4 = acc[m, n] on act;
        y[m, n] <- o;
    }
}

leaf mm_a2 for matmul on trn1 {
    layout x: [M, K] or [K, M];
    cases (M: 256, K: 256, N: 1024);
    for mb in tiles(M, 128), nb in tiles(N, 1024) {
        psum acc[mb by 128, nb]: fp32 bufs 2;
        accumulate(acc, x, w, mb, nb, 128, 512);
        evacuate(acc, y, mb, nb);
    }
}

leaf mm_a3 for matmul on trn1 {
    layout x: [M, K] or [K, M];
    cases (M: 256, K: 256, N: 1024);
    for mb in tiles(M, 256), nb in tiles(N, 1024) {
        psum acc[mb by 128, nb]: fp32 bufs 2;
        accumulate(acc, x, w, mb, nb, 128, 512);
        evacuate(acc, y, mb, nb);
    }
}

leaf mm_a4 for matmul on trn1 {
    layout x: [M, K] or [K, M];
    cases (M: 512, K: 256, N: 1024);
    for mb in tiles(M, 512), nb in tiles(N, 1024) {
        psum acc[mb by 128, nb]: fp32 bufs 1;
        accumulate(acc, x, w, mb, nb, 128, 512);
        evacuate(acc, y, mb, nb);
    }
}

leaf mm_a5 for matmul on trn1 {
    layout x: [M, K] or [K, M];
    cases (M: 512, K: 256, N: 1024);
    for mb in tiles(M, 512), nb in tiles(N, 1024) {
        psum acc[mb by 128, nb]: fp32 bufs 1;
        accumulate(acc, x, w, mb, nb, 256, 512);
        evacuate(acc, y, mb, nb);
    }
}

leaf mm_a6 for matmul on trn1 {
    layout x: [M, K] or [K, M];
    cases (M: 512, K: 256, N: 1024);
    for mb in tiles(M, 512), nb in tiles(N, 1024) {
        psum acc[mb by 128, nb]: fp32 bufs 1;
        accumulate(acc, x, w, mb, nb, 512, 1024);
        for m in tiles(mb, 128), n in tiles(nb, 512) {
            sbuf o[m, n]: y.dtype bufs 4 = acc[m, n] on dve;
            y[m, n] <- o;
        }
    }
}

// The same kernels in fp32 where the blocks of the source do not fit a partition of trn2; the bytes of the published
// profiles say what was done instead.

// Columns of w are loaded again for every row tile (8.65 GB of HBM traffic in the profile).
leaf mm_block_free_reload for matmul on trn2 {
    layout x: [M, K] or [K, M];
    cases (M: 256, K: 256, N: 1024);
    for mb in tiles(M, 256) {
        sbuf a[K by 128, mb]: x.dtype bufs 1;
        for m in tiles(mb, 128), k in tiles(K, 128) { a[k, m] <- x[m, k]'; }
        for nb in tiles(N, 1024), m in tiles(mb, 128), n in tiles(nb, 512) {
            psum acc[m, n]: fp32 bufs 2;
            for k in tiles(K, 128) {
                sbuf b[k, n] bufs 32 <- w[k, n];
                acc += a[k, m]' @ b;
            }
            sbuf o[m, n]: y.dtype bufs 4 = acc on act;
            y[m, n] <- o;
        }
    }
}

// Sums of 2048 rows at a time, so w is read twice as often (1.8 GB in the profile, 1.5 in the source).
leaf mm_block_all_halves for matmul on trn2 {
    layout x: [M, K] or [K, M];
    cases (M: 2048, K: 2048, N: 1024);
    for nb in tiles(N, 1024), mb in tiles(M, 2048) {
        sbuf sum[mb by 128, nb]: y.dtype;
        for m in tiles(mb, 128), n in tiles(nb, 512) { sum[m, n] = 0.0 on dve; }
        for kb in tiles(K, 1024) {
            sbuf b[kb by 128, nb]: w.dtype bufs 2;
            for k in tiles(kb, 128) { b[k, nb] <- w[k, nb]; }
            sbuf a[kb by 128, mb]: x.dtype bufs 1;
            for k in tiles(kb, 128) { a[k, mb] <- x[mb, k]'; }
            for n in tiles(nb, 512), m in tiles(mb, 128) {
                psum acc[m, n]: fp32 bufs 4;
                for k in tiles(kb, 128) { acc += a[k, m]' @ b[k, n]; }
                sum[m, n] = acc + sum[m, n];
            }
        }
        for m in tiles(mb, 128) {
            sbuf o[m, nb]: y.dtype bufs 2;
            for n in tiles(nb, 512) { o[m, n] = sum[m, n] on dve; }
            y[m, nb] <- o;
        }
    }
}
