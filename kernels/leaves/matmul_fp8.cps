// Products of fp8 operands by double rows: two rows of the contraction share a place in the array, at the time of one.

leaf matmul_double_row for matmul_quantised on trn2, trn3 {
    layout x: [M, K] or [K, M];
    where bytes(x.dtype) == 1 && x.dtype == w.dtype && x.dtype in {fp8e4m3, fp8e4m3fn, fp8e5m2, fp8e3m4} : "x and w must share an fp8 type";
    where K % 256 == 0 : "pairs of k tiles share the array";
    where N > 1 && (M > 1 || x.inner == 1) : "one column has no rows to move whole";
    where to in {bf16, fp16, fp32} : "the result is bf16, fp16 or fp32";
    let direct = x.inner == 0;                                  // stored [K, M]; else the PE turns it, in bf16, which holds every fp8
    param MB in {1, 2, 3, 4} = M <= 128 ? 1 : M <= 256 ? 2 : direct ? 4 : 3;    // row tiles of a strip
    param WB in {2, 3, 4, 6} = 4;                               // loads of w in flight
    let NT = min(N, round_up(ceil_div(N, ceil_div(N, 512)), 2));    // equal columns
    let side = min((direct ? 8 : 6) / MB, ceil_div(N, NT));     // banks of a row tile; two serve transposes
    let NB = min(side * NT, N);
    let KB = max(1, MB);                                        // pairs of k tiles in a load: about 1 MiB
    let rest = 2 * K / 128 * min(MB * 128, M) + 5 * NB * bytes(to) + (present(scale) ? 4 * N : 0) + (direct ? 0 : 9 * KB * 256) + 2048;
    let keep = M > MB * 128 && rest + K / 128 * N <= sbuf.partition;    // w stays on chip
    where rest + (keep ? K / 128 * N : WB * 2 * KB * NB) <= sbuf.partition : "two strips of 128*MB rows of x must fit one partition beside w";

    cost pe: M * N * K / (128 * 256) + (direct ? 0 : M * K / 128), hbm: bytes(x) + bytes(w) * (keep ? 1 : ceil_div(M, MB * 128)) + bytes(y);
    tolerance to == fp32 ? 1e-4 : 2e-2, 1e-5;
    cases (M: 512, K: 512, N: 512, dtype: fp8e4m3), (M: 1, K: 256, N: 2, dtype: fp8e5m2), (M: 130, K: 768, N: 1037, dtype: fp8e4m3, with: "scale", to: fp32);

    if (present(scale)) { sbuf sc[all, N]: fp32 <- scale; }
        let wp = w.view("(g j p) n -> p g j n", p: 128, j: 2); // k = 256 g + 128 j + p
    if (keep) { sbuf wk[128, K / 256, 2, N]: w.dtype; }
    for mb in tiles(M, MB * 128) across cores {
        sbuf xt[128, K / 256, 2, mb]: x.dtype bufs 2;
        for nb in tiles(N, NB) {
            let edge = mb.last && nb.last;
            let begin = mb.first && nb.first;                   // the first products wait for a pair each, not for a group
            psum acc[min(M, 128), ceil_div(mb.size, 128), side, 512]: fp32 bufs (direct ? 8 : 6) / (MB * side);
            for gb in tiles(K / 256, KB) {
                if (!keep) { sbuf ws[128, gb, 2, nb]: w.dtype bufs WB; let wt = ws; } else { let wt = wk; }
                if (begin) {
                    for g in gb {
                        load_pairs(xt, x, mb, g);
                        wt[:, g, :, nb] <- wp[:, g, :, nb];
                        for m in tiles(mb, 128), n in tiles(nb, NT) {
                            nc_matmul(dst: acc[0:m.size, m.index, n.index, 0:n.size], stationary: xt[:, g.start, :, m], moving: pair(wt, g, gb, n, keep), double_row: true);
                        }
                    }
                } else {
                    if (nb.first) { load_pairs(xt, x, mb, gb); }
                    if (mb.first || !keep) { wt[:, gb, :, nb] <- wp[:, gb, :, nb]; }
                    for m in tiles(mb, 128), n in tiles(nb, NT), g in gb {
                        nc_matmul(dst: acc[0:m.size, m.index, n.index, 0:n.size], stationary: xt[:, g.start, :, m], moving: pair(wt, g, gb, n, keep), double_row: true);
                    }
                }
            }
            for m in tiles(mb, 128) {
                sbuf o[m, nb]: y.dtype bufs 3;
                for q in tiles(nb, ceil_div(side, 2) * NT) {
                    for n in tiles(q, NT) {
                        let a = acc[0:m.size, m.index, n.start / NT % side, 0:n.size];
                        if (present(scale)) { o[m, n] = a * sc[:, n]; } else { o[m, n] = a; }
                    }
                    if (edge && m.last) { y[m, q] <- o[m, q]; }
                }
                if (!(edge && m.last)) { y[m, nb] <- o; }
            }
        }
    }
}

// One pair of k tiles of w, from its load or from all that stays on chip.
fn pair(wt, g, gb, n, keep) {
    return keep ? wt[:, g.start, :, n] : wt[:, g.start - gb.start, :, n];
}

// xt[:, g, :, mb], pairs of k tiles, from x[mb, :].
fn load_pairs(xt, x, mb, g) {
    if (x.inner == 0) {
        xt[:, g, :, mb] <- x'.view("(g j p) m -> p g j m", p: 128, j: 2)[:, g, :, mb];
        return;
    }
    for m in tiles(mb, 128) {
        sbuf rows[m, g.size * 256] bufs 3 <- x[m, ds(g.start * 256, g.size * 256)];
        sbuf wide[m, g.size * 256]: bf16 bufs 3 = rows;
        for i in g {
            psum t[128, 2, m]: bf16 bufs 2;
            for j in 0..2 { t[:, j, :] = wide[:, ds((i.start - g.start) * 256 + j * 128, 128)]'; }
            xt[:, i.start, :, m] = t;
        }
    }
}
