// Batched products: one batch after another, all edges.
use "leaves/matmul.cps";

// What this core does of B batches of M rows: batches, or where there are fewer than cores, tiles of rows.
fn batches(B, M) { return B < cores && M > 128 ? range(B) : share(range(B), core, cores); }
fn rows(B, M) {
    let mine = share(range(ceil_div(M, 128)), core, cores);
    return B < cores && M > 128 ? clip(range(M), mine.start * 128, mine.end * 128) : range(M);
}

// w of a batch on chip while rows of x pass, results stored in long rows.
leaf bmm_rows for bmm on trn1, trn2, trn3 {
    where x.dtype in {bf16, fp16, fp32} && w.dtype == x.dtype : "x and w must share bf16, fp16 or fp32";
    let size = bytes(x.dtype);
    let direct = size == 2 && target.dma_transpose;
    let NB = 3 * min(N, round_up(ceil_div(N, ceil_div(N, 512)), 2));    // three banks accumulate, three are emptied, two serve transposes
    let folds = ceil_div(K, 128);
    where (2 * folds * (min(M, 512) + N) + (direct ? 0 : 3 * K)) * size + 4 * N * bytes(y.dtype) + 2048 <= sbuf.partition : "w of two batches must fit one partition beside x and y";
    cost pe: B * M * N * K / (128 * 128) * target.pe_passes(x.dtype), hbm: bytes(x) + bytes(w) + bytes(y);
    tolerance x.dtype == fp32 ? 1e-4 : 2e-2, 1e-5;
    cases (B: 12, M: 128, K: 32, N: 128), (B: 2, M: 130, K: 140, N: 1700), (B: 3, M: 1, K: 7, N: 5, dtype: fp32), (B: 1, M: 3, K: 3000, N: 20);

    for b in batches(B, M) {
        sbuf wt[K by 128, N]: w.dtype bufs 2 <- w[b, :, :];
        for mb in tiles(rows(B, M), 512) {
            sbuf xt[K by 128, mb]: x.dtype bufs 2;
            load_strip(xt, x[b, :, :], mb, 0..K);
            for m in tiles(mb, 128) {
                sbuf o[m, N]: y.dtype bufs N * bytes(y.dtype) <= 16384 ? 3 : 1;
                for nb in tiles(N, NB) {
                    psum acc[m, 3, 512]: fp32 bufs 2;
                    for n in tiles(nb, NB / 3), k in tiles(K, 128) { acc[:, n.index, 0:n.size] += xt[k, m]' @ wt[k, n]; }
                    for n in tiles(nb, NB / 3) { o[:, n] = acc[:, n.index, 0:n.size]; }
                }
                y[b, m, :] <- o;
            }
        }
    }
}

leaf bmm_tiles for bmm on trn1, trn2, trn3 {
    where x.dtype in {bf16, fp16, fp32} && w.dtype == x.dtype : "x and w must share bf16, fp16 or fp32";
    param KB in {1, 2, 4, 8, 16} = 8;                           // rows of w in a load, in tiles of 128
    let size = bytes(x.dtype);
    let strip = ceil_div(K, 128) * min(M, 128) * size;          // 128 rows of x, turned
    where 2 * strip + (size == 2 && target.dma_transpose ? 0 : 2 * K * size + 1024) + 3 * min(KB, ceil_div(K, 128)) * 512 * size + 2048 * size
          <= sbuf.partition : "two strips of 128 rows of x must fit one partition beside w";
    cost pe: B * M * N * K / (128 * 128) * target.pe_passes(x.dtype), hbm: bytes(x) + bytes(w) * ceil_div(M, 128) + bytes(y);
    tolerance x.dtype == fp32 ? 1e-4 : 2e-2, 1e-5;
    cases (B: 12, M: 128, K: 32, N: 128), (B: 2, M: 130, K: 140, N: 600), (B: 3, M: 1, K: 7, N: 5, dtype: fp32), (B: 1, M: 3, K: 3000, N: 20);

    for b in batches(B, M), m in tiles(rows(B, M), 128) {
        sbuf xt[K by 128, m]: x.dtype bufs 2;
        load_transposed(xt, x[b, m, :]);
        for n in tiles(N, 512) {
            psum acc[m, n]: fp32 bufs 2;
            for kb in tiles(K, KB * 128) {
                sbuf wt[kb by 128, n]: w.dtype bufs 3 <- w[b, kb, n];
                for k in tiles(kb, 128) { acc += xt[k, m]' @ wt[k, n]; }
            }
            y[b, m, n] <- acc bufs 2;
        }
    }
}

// A contraction too long for a strip of x on chip: x streams too, once for every 512 columns.
leaf bmm_stream for bmm on trn1, trn2, trn3 {
    where x.dtype in {bf16, fp16, fp32} && w.dtype == x.dtype : "x and w must share bf16, fp16 or fp32";
    param KB in {4, 8} = 8;
    cost pe: B * M * N * K / (128 * 128) * target.pe_passes(x.dtype), hbm: bytes(x) * ceil_div(N, 512) + bytes(w) * ceil_div(M, 128) + bytes(y);
    tolerance x.dtype == fp32 ? 1e-4 : 2e-2, 1e-5;
    cases (B: 2, M: 130, K: 1030, N: 600), (B: 1, M: 2, K: 300, N: 3, dtype: fp32);

    for b in batches(B, M), m in tiles(rows(B, M), 128), n in tiles(N, 512) {
        psum acc[m, n]: fp32 bufs 2;
        for kb in tiles(K, KB * 128) {
            sbuf xt[kb by 128, m]: x.dtype bufs 2;
            load_transposed(xt, x[b, m, kb]);
            sbuf wt[kb by 128, n]: w.dtype bufs 3 <- w[b, kb, n];
            for k in tiles(kb, 128) { acc += xt[k, m]' @ wt[k, n]; }
        }
        y[b, m, n] <- acc bufs 2;
    }
}
