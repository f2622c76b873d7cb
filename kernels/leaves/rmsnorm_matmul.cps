// RMS norm and the product behind it. gamma meets x^T, where it is one number a partition; the norm of a row meets the
// row's result on its way out of PSUM. So the products need not wait for the norms, and PE does not see them.
use "leaves/matmul.cps";

leaf rmsnorm_matmul_banks for rmsnorm_matmul on trn1, trn2, trn3 {
    where x.dtype in {bf16, fp16, fp32} && w.dtype == x.dtype : "x and w must share bf16, fp16 or fp32";
    let size = bytes(x.dtype);
    let direct = size == 2 && target.dma_transpose;
    param MB in {1, 2, 3, 4} = M <= 128 ? 1 : M <= 256 ? 2 : direct ? 4 : 3;    // row tiles of a strip
    param WB in {2, 3, 4, 6} = 4;                               // loads of w in flight
    let NT = min(N, round_up(ceil_div(N, ceil_div(N, 512)), 2));    // equal columns
    let side = min((direct ? 8 : 6) / MB, ceil_div(N, NT));     // banks of a row tile; two serve transposes
    let NB = min(side * NT, N);
    let KB = 8 / size;                                          // k tiles of a load
    let folds = ceil_div(K, 128);
    let fixed = (2 * folds * min(MB * 128, M) + 2 * K) * size + 5 * NB * bytes(y.dtype) + folds * 4 + 2048;
    let slot = direct ? 0 : KB * 128 * size;
    let room = sbuf.partition - fixed - 4 * slot;               // a fourth must not take the room of w
    param XB in {3, 4} = size == 2 && (room >= folds * N * size || room + slot < folds * N * size && room >= WB * KB * NB * size) ? 4 : 3;    // loads of rows of x that turn on the PE
    let rest = fixed + XB * slot;
    let keep = M > MB * 128 && rest + folds * N * size <= sbuf.partition;   // w stays on chip
    where rest + (keep ? folds * N : WB * KB * NB) * size <= sbuf.partition : "two strips of 128*MB rows of x and two rows of x must fit one partition beside w";

    cost pe: M * N * K / (128 * 128) * target.pe_passes(x.dtype), act: ceil_div(M, 128) * (K + 256),
         hbm: 2 * bytes(x) + bytes(w) * (keep ? 1 : ceil_div(M, MB * 128)) + bytes(y);
    tolerance x.dtype == fp32 ? 1e-4 : 2e-2, 1e-5;
    cases (M: 512, K: 512, N: 512), (M: 129, K: 257, N: 513, with: "gamma"), (M: 3, K: 7, N: 5, dtype: fp32, with: "gamma"), (M: 600, K: 384, N: 1100, with: "gamma", dtype: fp16);

    if (keep) { sbuf wk[K by 128, N]: w.dtype; }
    if (present(gamma)) { sbuf g[K by 128, 1]: fp32 <- gamma.view("k -> k 1"); }
    for mb in tiles(M, MB * 128) across cores {
        sbuf xt[K by 128, mb]: x.dtype bufs 2;                  // [128, ceil(K/128), mb]: K folded on the partitions
        sbuf scale[mb by 128, 1]: fp32 bufs 2;
        for nb in tiles(N, NB) {
            let edge = mb.last && nb.last;
            psum acc[min(M, 128), ceil_div(mb.size, 128), side, 512]: fp32 bufs (direct ? 8 : 6) / (MB * side);
            for kb in tiles(K, KB * 128) {
                if (!keep) { sbuf ws[kb by 128, nb]: w.dtype bufs WB; let wt = ws; } else { let wt = wk; }
                if (mb.first && nb.first) {                     // the first products wait for a tile each, not for a group
                    for k in tiles(kb, 128) {
                        load_strip(xt, x, mb, k, XB);
                        wt[k, nb] <- w[k, nb];
                        if (present(gamma)) { xt[k, mb] = xt[k, mb] * g[k]; }
                        for m in tiles(mb, 128), n in tiles(nb, NT) {
                            acc[0:m.size, m.index, n.index, 0:n.size] += xt[k, m]' @ wt[k, n];
                        }
                    }
                } else {
                    if (nb.first) { load_strip(xt, x, mb, kb, XB); }
                    if (mb.first || !keep) { wt[kb, nb] <- w[kb, nb]; }
                    if (nb.first && present(gamma)) { for k in tiles(kb, 128) { xt[k, mb] = xt[k, mb] * g[k]; } }
                    for m in tiles(mb, 128), n in tiles(nb, NT), k in tiles(kb, 128) {
                        acc[0:m.size, m.index, n.index, 0:n.size] += xt[k, m]' @ wt[k, n];
                    }
                }
            }
            for m in tiles(mb, 128) {
                if (nb.first) {
                    sbuf rows[m, K] bufs 2 <- x[m, :];
                    sbuf ss[m, 1]: fp32 bufs 2 = sum(square(rows), axis: free);     // ACT with its accumulator
                    scale[m] = rsqrt(ss * (1.0 / K) + eps);
                }
                sbuf o[m, nb]: y.dtype bufs 3;
                for q in tiles(nb, ceil_div(side, 2) * NT) {
                    for n in tiles(q, NT) { o[m, n] = acc[0:m.size, m.index, n.start / NT % side, 0:n.size] * scale[m]; }
                    if (edge && m.last) { y[m, q] <- o[m, q]; }
                }
                if (!(edge && m.last)) { y[m, nb] <- o; }
            }
        }
    }
}
