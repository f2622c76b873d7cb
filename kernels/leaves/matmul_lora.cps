// A product with a low-rank correction: the rank is one more tile of the contraction, made for a strip of x where it lies turned.
use "leaves/matmul.cps";

leaf matmul_lora_banks for matmul_lora on trn1, trn2, trn3 {
    where x.dtype in {bf16, fp16, fp32} && w.dtype == x.dtype && a.dtype == x.dtype && b.dtype == x.dtype : "all operands must share bf16, fp16 or fp32";
    where R <= 128 : "the rank is one tile of the contraction: at most 128";
    param MB in {1, 2} = M <= 128 ? 1 : 2;                      // row tiles of a strip
    param WB in {2, 3, 4} = 4;                                  // loads of w in flight
    param XB in {3, 4} = 3;                                     // loads of rows of x that turn on the PE
    let size = bytes(x.dtype);
    let NT = min(N, round_up(ceil_div(N, ceil_div(N, 512)), 2));    // equal columns
    let NB = min(4 / MB * NT, N);                               // four banks accumulate, one takes the low rank, two serve transposes
    let side = ceil_div(NB, NT);
    let KB = 8 / size;                                          // k tiles of a load
    let folds = ceil_div(K, 128);
    where (folds * (2 * min(MB * 128, M) + R) + WB * KB * NB + 2 * NB + XB * KB * 128 + 2 * 256) * size + 3 * NB * bytes(y.dtype) + 2048 <= sbuf.partition
        : "two strips of 128*MB rows of x and a must fit one partition beside w";
    cost pe: (M * N * K + M * R * (K + N)) / (128 * 128) * target.pe_passes(x.dtype),
         hbm: bytes(x) + bytes(a) + (bytes(w) + bytes(b)) * ceil_div(M, MB * 128) + bytes(y);
    tolerance x.dtype == fp32 ? 1e-4 : 2e-2, 1e-5;
    cases (M: 512, K: 512, N: 512, R: 16), (M: 1, K: 128, N: 1, R: 1), (M: 300, K: 257, N: 1100, R: 128, dtype: fp32), (M: 130, K: 300, N: 70, R: 8, dtype: fp16);

    sbuf at[K by 128, R]: a.dtype;
    for mb in tiles(M, MB * 128) across cores {
        sbuf xt[K by 128, mb]: x.dtype bufs 2;
        psum low[R, mb]: fp32 bufs 1;
        for kb in tiles(K, KB * 128) {
            load_strip(xt, x, mb, kb, XB);
            if (mb.first) { at[kb, :] <- a[kb, :]; }
            for k in tiles(kb, 128) { low += at[k, :]' @ xt[k, mb]; }
        }
        sbuf xa[R, mb]: x.dtype bufs 2 = low;
        for nb in tiles(N, NB) {
            psum acc[min(M, 128), ceil_div(mb.size, 128), side, 512]: fp32 bufs 1;
            for kb in tiles(K, KB * 128) {
                sbuf wt[kb by 128, nb]: w.dtype bufs WB <- w[kb, nb];
                for m in tiles(mb, 128), n in tiles(nb, NT), k in tiles(kb, 128) { acc[0:m.size, m.index, n.index, 0:n.size] += xt[k, m]' @ wt[k, n]; }
            }
            sbuf bt[R, nb]: b.dtype bufs 2 <- b[:, nb];
            for m in tiles(mb, 128) {
                for n in tiles(nb, NT) { acc[0:m.size, m.index, n.index, 0:n.size] += xa[:, m]' @ bt[:, n]; }
                sbuf o[m, nb]: y.dtype bufs 3;
                for n in tiles(nb, NT) { o[:, n] = acc[0:m.size, m.index, n.index, 0:n.size]; }
                y[m, nb] <- o;
            }
        }
    }
}
