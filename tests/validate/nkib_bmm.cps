// NKIBench, fp32 on trn1: batched products of tall operands, and the same with a softmax (zhang677/AccelOpt,
// NKIBench/kernels). What stays on chip and what is stored between is read off the published byte counts; every copy runs on
// ACT, as the published counters say. Buffer counts are ours.

// to = rows', by PE and a copy.
fn turn(to, rows) {
    sbuf r[rows.axis(0), rows.axis(1)] bufs 3 <- rows;
    psum t[to.axis(0), to.axis(1)]: fp32 bufs 2 = r';
    to = t on act;
}

fn products(y, i, at, bt, mb, nb) {
    for m in tiles(mb, 128) {
        sbuf o[m, nb]: fp32 bufs 4;
        for n in tiles(nb, 512) {
            psum acc[m, n]: fp32 bufs 4 = at[:, ds(m.start - mb.start, 128)]' @ bt[:, n];
            o[:, n] = acc on act;
        }
        y[i, m, nb] <- o;
    }
}

op bmm_tall(a[B, M, K], b[B, K, N]) -> y[B, M, N] {
    y = a @ b;
}

// Best version: the rows of a batch are transposed for its first block of columns and kept.
leaf bmm_tall_kept for bmm_tall on trn1 {
    tolerance 1e-4, 1e-5;
    cases (B: 2, M: 1024, K: 64, N: 2048);
    for i in 0..B {
        sbuf at[K, M]: fp32 bufs 2;
        for nb in tiles(N, 1024) {
            sbuf bt[K, nb] bufs 2 <- b[i, :, nb];
            for mb in tiles(M, 1024) {
                if (nb.first) { for m in tiles(mb, 128) { turn(at[:, m], a[i, m, :]); } }
                products(y, i, at[:, mb], bt, mb, nb);
            }
        }
    }
}

// Base version: the first block of transposed rows stays, the others (12 MiB) are stored once and loaded again for each
// further block of columns (32.25 MiB: 129 of 144 loads; which ones are spared is not published).
leaf bmm_tall_saved for bmm_tall on trn1 {
    tolerance 1e-4, 1e-5;
    cases (B: 2, M: 2048, K: 64, N: 2048);
    hbm kept[B, K, M]: fp32;
    for i in 0..B {
        sbuf stay[K, 1024]: fp32 bufs 2;
        var again = 0;
        for nb in tiles(N, 1024) {
            sbuf bt[K, nb] bufs 2 <- b[i, :, nb];
            for mb in tiles(M, 1024) {
                let spared = i > 0 && nb.index == 1 && mb.index == 1;
                if (mb.first) { let at = stay; } else {
                    if (spared) { let at = again; } else { sbuf at[K, 1024]: fp32 bufs 4; }
                }
                if (nb.first) {
                    for m in tiles(mb, 128) { turn(at[:, ds(m.start - mb.start, 128)], a[i, m, :]); }
                    if (!mb.first) { kept[i, :, mb] <- at; }
                    if (mb.index == 1) { again = at; }
                } else {
                    if (!mb.first && !spared) { at <- kept[i, :, mb] on sp; }
                }
                products(y, i, at, bt, mb, nb);
            }
        }
    }
}

op nkib_bmm_softmax(a[B, M, K], b[B, K, N]; stay: int = 58) -> y[B, M, N] {
    let s = a @ b;
    let e = exp(s - max(s, axis: 2));
    y = e / sum(e, axis: 2);
}

// Scores of a batch do not fit: all but the last `stay` tiles of 512 columns are stored, and loaded again for the
// exponentials. 76 stay by the published counts (719 MiB stored); with the tiles around them 58 are what fits here.
leaf bmm_softmax_saved for nkib_bmm_softmax on trn1 {
    tolerance 1e-4, 1e-5;
    cases (B: 2, M: 1024, K: 64, N: 4096);
    let (R, C) = (M / 128, N / 512);
    let first = R * C - min(stay, R * C / 3);               // of the tiles that stay
    hbm kept[B, M, N]: fp32;
    for i in 0..B {
        sbuf at[K, M]: fp32 bufs 1;
        sbuf res[P, R * C - first, 512]: fp32 bufs 1;
        sbuf top[P, R, C]: fp32 bufs 2;
        for nb in tiles(N, 1024) {
            sbuf bt[K, nb] bufs 2 <- b[i, :, nb];
            for m in tiles(M, 128) {
                if (nb.first) { turn(at[:, m], a[i, m, :]); }
                for n in tiles(nb, 512) {
                    let j = n.start / 512 * R + m.index;
                    psum acc[m, n]: fp32 bufs 4 = at[:, m]' @ bt[:, n];
                    if (j >= first) { let s = res[:, j - first, :]; } else { sbuf s[P, 512]: fp32 bufs 4; }
                    s = acc on act;
                    top[:, m.index, ds(n.start / 512, 1)] = max(acc, axis: free);
                    if (j < first) { kept[i, m, n] <- s; }
                }
            }
        }
        for m in tiles(M, 128) {
            sbuf neg[P, 1]: fp32 bufs 2 = -max(top[:, m.index, :], axis: free);
            sbuf e[P, ceil_div(first, R), 512]: fp32 bufs 1;
            sbuf part[P, C]: fp32 bufs 2;
            for n in tiles(N, 512) {
                let j = n.index * R + m.index;
                if (j >= first) { let s = res[:, j - first, :]; } else {
                    let s = e[:, n.index, :];
                    s <- kept[i, m, n] on sp;
                }
                s = exp(s + neg);
                part[:, ds(n.index, 1)] = sum(s, axis: free);
            }
            sbuf l[P, 1]: fp32 bufs 2 = sum(part, axis: free);
            l = 1.0 / l;
            for nb in tiles(N, 1024) {
                sbuf o[P, nb]: fp32 bufs 2;
                for n in tiles(nb, 512) {
                    let j = n.start / 512 * R + m.index;
                    if (j >= first) { let s = res[:, j - first, :]; } else { let s = e[:, n.start / 512, :]; }
                    activation(dst: o[:, n], data: s, scale: l, op: "copy");
                }
                y[i, m, nb] <- o;
            }
        }
    }
}
