// 2048^3 in bf16 on trn2: a ladder of schedules and its relatives. 1,024 matmuls of 512 columns in every one. x is given
// transposed, stored [K, M], unless said. The published kernels fill a PSUM tile with zeros before they accumulate in it:
// a fill over four banks was executed, one over a single bank was folded into the first product (the times leave no room).

// Rung 1: loads at the innermost place.
leaf mm2048_sunk for matmul on trn2 {
    layout x: [M, K] or [K, M];
    cases (M: 256, K: 256, N: 1024);
    for m in tiles(M, 128), n in tiles(N, 512) {
        psum acc[m, n]: fp32 bufs 2;
        for k in tiles(K, 128) {
            sbuf a[k, m] bufs 4 <- x[m, k]';
            sbuf b[k, n] bufs 4 <- w[k, n];
            acc += a' @ b;
        }
        sbuf o[m, n]: y.dtype bufs 2 = acc on act;
        y[m, n] <- o;
    }
}

// One row tile: zeros in all four banks, the products, one copy.
fn row_tile(acc, a, b, o, m, K, N) {
    for j in 0..3 { acc[m, ds(j * 512, 512)] = 0.0 on dve; }
    last: acc[m, ds(1536, 512)] = 0.0 on dve;                       // no product before this one, as with a single fill
    for n in tiles(N, 512), k in tiles(K, 128) {
        if (k.first) { acc[m, n] = a[k, m]' @ b[k, n] after last; } else { acc[m, n] += a[k, m]' @ b[k, n]; }
    }
    o[m, :] = acc on act;
}

// Rung 2: all loads first, one PSUM tile of four banks.
leaf mm2048_hoisted for matmul on trn2 {
    layout x: [M, K] or [K, M];
    where N == 2048 : "four banks";
    cases (M: 256, K: 256, N: 2048);
    sbuf a[K by 128, M]: x.dtype;
    sbuf b[K by 128, N]: w.dtype;
    for k in tiles(K, 128) { a[k, 0..M] <- x[0..M, k]'; }
    for k in tiles(K, 128) { b[k, 0..N] <- w[k, 0..N]; }
    sbuf o[M by 128, N]: y.dtype;
    for m in tiles(M, 128) {
        psum acc[m, N]: fp32 bufs 1;
        row_tile(acc, a, b, o, m, K, N);
    }
    for m in tiles(M, 128) { y[m, :] <- o[m, :]; }
}

// Rung 3: two PSUM tiles in turn.
leaf mm2048_rotating for matmul on trn2 {
    layout x: [M, K] or [K, M];
    where N == 2048 : "four banks";
    cases (M: 256, K: 256, N: 2048);
    sbuf a[K by 128, M]: x.dtype;
    sbuf b[K by 128, N]: w.dtype;
    for k in tiles(K, 128) { a[k, 0..M] <- x[0..M, k]'; }
    for k in tiles(K, 128) { b[k, 0..N] <- w[k, 0..N]; }
    sbuf o[M by 128, N]: y.dtype;
    for m in tiles(M, 128) {
        psum acc[m, N]: fp32 bufs 2;
        row_tile(acc, a, b, o, m, K, N);
    }
    for m in tiles(M, 128) { y[m, :] <- o[m, :]; }
}

// Rung 4: loads in the loop, two sets in turn, the whole contraction in PSUM. Block sizes are not published: those of rung 5.
leaf mm2048_streaming for matmul on trn2 {
    layout x: [M, K] or [K, M];
    cases (M: 512, K: 256, N: 1024);
    for n in tiles(N, 512) {
        sbuf b[K by 128, n]: w.dtype bufs 2;
        for k in tiles(K, 128) { b[k, n] <- w[k, n]; }
        for mb in tiles(M, 512) {
            sbuf a[K by 128, mb]: x.dtype bufs 2;
            for k in tiles(K, 128) { a[k, mb] <- x[mb, k]'; }
            for m in tiles(mb, 128) {
                psum acc[m, n]: fp32 bufs 2;
                for k in tiles(K, 128) { acc += a[k, m]' @ b[k, n]; }
                sbuf o[m, n]: y.dtype bufs 4 = acc on act;
                y[m, n] <- o;
            }
        }
    }
}

// Rung 5: half of the contraction at a time, sums in SBUF in bf16. Compiled with the order written.
leaf mm2048_two_stage for matmul on trn2 {
    layout x: [M, K] or [K, M];
    cases (M: 512, K: 2048, N: 512);
    for n in tiles(N, 512) {
        sbuf sum[M by 128, n]: y.dtype bufs 4;
        for m in tiles(M, 128) { sum[m, n] = 0.0 on pool; }
        for kb in tiles(K, 1024) {
            sbuf b[kb by 128, n]: w.dtype bufs 2;
            for k in tiles(kb, 128) { b[k, n] <- w[k, n]; }
            for mb in tiles(M, 512) {
                sbuf a[kb by 128, mb]: x.dtype bufs 8;
                for k in tiles(kb, 128) { a[k, mb] <- x[mb, k]'; }
                for m in tiles(mb, 128) {
                    psum acc[m, n]: fp32 bufs 2;
                    for k in tiles(kb, 128) { acc += a[k, m]' @ b[k, n]; }
                    sbuf part[m, n]: y.dtype bufs 2 = acc on dve;
                    sum[m, n] = sum[m, n] + part;
                }
            }
        }
        for m in tiles(M, 128) { y[m, n] <- sum[m, n]; }
    }
}

// x not transposed: DMA transposes in the innermost block, each block of x four times. Compiled with the order written.
leaf mm2048_dma_transpose for matmul on trn2 {
    cases (M: 1024, K: 1024, N: 512);
    for mb in tiles(M, 1024) {
        sbuf sum[mb by 128, N]: y.dtype bufs 2;
        for m in tiles(mb, 128) { sum[m, :] = 0.0 on dve; }
        for n in tiles(N, 512) {
            for kb in tiles(K, 1024) {
                sbuf a[kb by 128, mb]: x.dtype bufs 4;
                for k in tiles(kb, 128) { a[k, mb] <- x[mb, k]'; }
                sbuf b[kb by 128, n]: w.dtype bufs 8;
                for k in tiles(kb, 128) { b[k, n] <- w[k, n]; }
                for m in tiles(mb, 128) {
                    psum acc[m, n]: fp32 bufs 2;
                    for k in tiles(kb, 128) { acc += a[k, m]' @ b[k, n]; }
                    sbuf part[m, n]: y.dtype bufs 2 = acc on dve;
                    sum[m, n] = sum[m, n] + part;
                }
            }
            for m in tiles(mb, 128) { y[m, n] <- sum[m, n]; }
        }
    }
}
