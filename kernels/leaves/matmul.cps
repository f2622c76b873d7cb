// Dense products with their epilogue kept on chip.
use "reference/act.cps";

// dst[K by 128, M] in sbuf receives src[M, K] from hbm with its axes swapped, by the cheapest way the target has.
fn load_transposed(dst, src) {
    if (src.inner == 0 || bytes(src.dtype) == 2 && target.dma_transpose) {
        dst <- src';                                            // K-major storage: a plain copy; else one DMA transpose
        return;
    }
    for m in tiles(src.axis(0), 128) {
        sbuf rows[m, src.axis(1)]: src.dtype bufs 2 <- src[m, :];
        for k in tiles(src.axis(1), 128) {
            psum t[k, m]: transposed(src.dtype) = rows[m, k]';  // PE: nc_transpose
            dst[k, m] = t;                                      // copy out of PSUM
        }
    }
}

// The end of a product in PSUM: bias as one more K = 1 product, activation, residual, store.
fn finish(acc, y, mb, n, act, has_bias, ones, bias, has_residual, residual) {
    if (has_bias) {
        sbuf b[1, n] bufs 2 <- bias[n];
        for m in tiles(mb, 128) { acc[m, n] += ones[:, 0:m.size]' @ b; }
    }
    for m in tiles(mb, 128) {
        sbuf o[m, n]: y.dtype bufs 3;
        if (has_residual) {
            sbuf r[m, n] bufs 2 <- residual[m, n];
            if (act == Act.none) { o = acc[m, n] + r; } else { o = apply(act, acc[m, n]) + r; }     // ACT activation, DVE tensor_tensor
        } else {
            o = apply(act, acc[m, n]);                          // one instruction: ACT, or a copy when act is none
        }
        y[m, n] <- o;
    }
}

// dst[k by 128, m] receives src[m, k] from sbuf by the PE, as many tiles as a PSUM bank holds at a time.
fn turn(dst, src, m, k) {
    for kb in tiles(k, 2048 / bytes(transposed(src.dtype))) {
        psum t[kb by 128, m]: transposed(src.dtype) bufs 2;
        for j in tiles(kb, 128) { t[j, m] = src[m, j]'; }       // nc_transpose
        dst[kb, m] = t;                                         // one copy out of PSUM
    }
}

// The same for few rows of x in hbm: pieces of 128 elements lie on the partitions, so that all DMA engines bring them and
// one transpose turns the pieces of several rows.
fn turn_pieces(dst, x, K) {
    let (M, folds) = (x.shape[0], K / 128);
    let some = 128 / folds;                                     // rows of x in a transpose
    let whole = M / some;                                       // transposes that are full; one transfer for all of them
    if (whole > 0) {
        sbuf pieces[some * folds, whole, 128]: x.dtype bufs 1 <- x[0:whole * some, :].view("(g m) (a b) -> (m a) g b", g: whole, b: 128);
        for g in 0..whole { turn_piece(dst[0..K, ds(g * some, some)], pieces[:, g, :], folds); }
    }
    if (M % some > 0) {
        let m = ds(whole * some, M % some);
        sbuf rest[M % some * folds, 128]: x.dtype bufs 1 <- x[m, :].view("m (a b) -> (m a) b", b: 128);
        turn_piece(dst[0..K, m], rest, folds);
    }
}

fn turn_piece(dst, piece, folds) {
    psum t[128, piece.shape[0]]: transposed(piece.dtype) bufs 2 = piece';
    dst = t.view("b (m a) -> b a m", a: folds);
}

// One block of x^T on chip: xt[kb, mb] receives x[mb, kb] with its axes swapped, a k tile or a group of them at a time.
fn load_strip(xt, x, mb, kb, ahead = 3) {
    if (x.inner == 0 || bytes(x.dtype) == 2 && target.dma_transpose) {
        xt[kb, mb] <- x[mb, kb]';                               // K-major storage: a plain copy; else one DMA transpose
        return;
    }
    for m in tiles(mb, 128) {
        sbuf rows[m, kb]: x.dtype bufs ahead <- x[m, kb];
        turn(xt, rows, m, kb);
    }
}

fn by_queue(to, from, q) {
    if (q == 0) { to <- from on sp; } else { if (q == 1) { to <- from on act; } else { to <- from on pool; } }
}

// Strips of MB row tiles that a turn of a hardware loop takes; 0: all of them are unrolled. All engines meet around a turn, the last
// rows are stored and the first ones brought meanwhile: some 6 us, which a turn must be long enough for. Nor is a loop worth it where
// the kernel is short, or the loop has one turn. Where POOL makes the descriptors of moving rows (trn1) a turn costs five times that.
// A moving transfer goes in elements that divide a row and the piece of it: these must not be short (`even`).
// What is too long to unroll loops all the same (`forced`).
fn turn_of(M, K, N, MB, t, even, forced) {
    let strips = M / (MB * 128) / cores;
    let cycles = MB * K * N / 128 * target.pe_passes(t);
    if (!forced && (!even || target.gen == 2 || M / 128 / cores * (K / 128) * (N / 512) < 4096)) { return 0; }
    for n in forced ? [1, 2, 4, 16] : [1, 2, 4] {
        if ((n * cycles >= 960000 || n == 16) && strips >= 2 * n) { return n; }
    }
    return forced ? min(strips, 2) / 2 : 0;
}

// Steps that the trace of all strips takes, one after the other; it ends after four million (LANGUAGE.md).
fn trace_steps(M, K, N) { return ceil_div(M, 128) / cores * (ceil_div(N, 512) * (ceil_div(K, 128) * 15 + 120) + 120); }
fn too_long(steps) { return steps > 3900000; }

fn turn_cycles(turn) { return turn > 0 ? 13000 : 0; }           // that a turn costs

enum Other { none = 0, plus, times }

// The same by SP, which starts the loads of w in between: so x does not run far ahead of them, and take what memory they need.
fn load_paced(xt, x, mb, kb, ahead, paced) { if (paced) { by_queue(xt[kb, mb], x[mb, kb]', 0); } else { load_strip(xt, x, mb, kb, ahead); } }

// Rows mb of y: a strip of x, turned, against all of w. Its first `fine` rows of w, and columns of x, come a tile at a time, so that the
// first products need not wait for a group. `bring`: w is not on chip yet; `held` may have its first rows, `wk` all of them. `with`:
// what is added to the rows, or they are multiplied by, or nothing. `paced`: x keeps step with w (load_paced). What may be absent
// comes with a word on whether it is there.
// `last`: nothing follows, and the last rows leave in two parts, so that there is less to wait for.
fn strip(y, x, w, mb, act, ones, bias, with, bring, wk, held, fine, last, paced, sizes) {
    let (MB, WB, OB, XB, KB, NT, side, slots, few, direct, columns) = sizes;
    let K = w.shape[0];
    let NB = min(side * NT, columns.size);
    let (biased, all_bias) = bias;
    let (how, other) = with;
    let (keeps, all_w) = wk;
    let (holds, first_w) = held;
    sbuf xt[K by 128, mb]: x.dtype bufs slots;                  // [128, ceil(K/128), mb]: K folded on the partitions
    if (few) {
        if (K % 128 == 0 && K <= 128 * 128) {
            turn_pieces(xt, x, K);
        } else {
            sbuf rows[mb, K] bufs 1 <- x[mb, :];
            turn(xt, rows, mb, 0..K);
        }
    }
    for nb in tiles(columns, NB) {
        let edge = last && nb.last;
        psum acc[min(mb.size, 128), ceil_div(mb.size, 128), side, 512]: fp32 bufs (direct ? 8 : 6) / (MB * side);
        for kb in tiles(K, KB * 128) {
            let here = holds && nb.first && kb.first;
            if (here) { let wt = first_w; } else if (keeps) { let wt = all_w; } else { sbuf ws[kb by 128, nb]: w.dtype bufs WB; let wt = ws; }
            if (nb.first && kb.start < fine) {
                for k in tiles(kb, 128) {
                    if (!few) { load_paced(xt, x, mb, k, XB, paced); }
                    if (bring && !here) { wt[k, nb] <- w[k, nb]; }
                    for m in tiles(mb, 128), n in tiles(nb, NT) {
                        acc[0:m.size, m.index, n.index, 0:n.size] += xt[k, m]' @ wt[k, n];
                    }
                }
            } else {
                if (nb.first) { load_paced(xt, x, mb, kb, XB, paced); }
                if (bring && !here) { wt[kb, nb] <- w[kb, nb]; }
                for m in tiles(mb, 128), n in tiles(nb, NT), k in tiles(kb, 128) {
                    acc[0:m.size, m.index, n.index, 0:n.size] += xt[k, m]' @ wt[k, n];
                }
            }
        }
        if (biased) {
            sbuf b[1, nb] bufs 2 <- all_bias[nb];
            for m in tiles(mb, 128), n in tiles(nb, NT) { acc[0:m.size, m.index, n.index, 0:n.size] += ones[:, 0:m.size]' @ b[:, n]; }
        }
        for m in tiles(mb, 128) {
            sbuf o[m, nb]: y.dtype bufs OB;
            if (how != Other.none) { sbuf r[m, nb] bufs 2 <- other[m, nb]; }
            for q in tiles(nb, ceil_div(side, 2) * NT) {
                for n in tiles(q, NT) {
                    let a = acc[0:m.size, m.index, (n.start - nb.start) / NT, 0:n.size];
                    if (how == Other.none) { o[m, n] = apply(act, a); }         // one instruction: ACT, or a copy when act is none
                    else if (how == Other.times) { o[m, n] = r[m, n] * a; }     // DVE tensor_tensor, one operand in PSUM
                    else if (act == Act.none) { o[m, n] = a + r[m, n]; }
                    else { o[m, n] = apply(act, a) + r[m, n]; }                  // ACT activation, DVE tensor_tensor
                }
                if (edge && m.last) { y[m, q] <- o[m, q]; }
            }
            if (!(edge && m.last)) { y[m, nb] <- o; }
        }
    }
}

// All strips of this core: one after the other, or `turn` of them in a turn of a hardware loop. Before it comes one that brings w
// where w stays (`keep`), behind it what is left. A loop keeps the first rows of w where they have room (`hold`): less to wait for in
// each turn. `ends`: what comes first and last is cut finer.
// Cores share the strips, or where `columns` are not all, the columns.
fn strips(y, x, w, act, ones, bias, with, keep, turn, hold, ends, sizes) {
    let (MB, WB, OB, XB, KB, NT, side, slots, few, direct, columns) = sizes;
    let (M, K, N) = (x.shape[0], x.shape[1], w.shape[1]);
    let R = MB * 128;
    let no = (false, 0);
    if (keep) { sbuf wk[K by 128, columns]: w.dtype; let kept = (true, wk); } else { let kept = no; }
    if (columns.size < N) {
        for mb in tiles(M, R) {
            strip(y, x, w, mb, act, ones, bias, with, mb.first || !keep, kept, no, ends && mb.first ? K : 0, ends && mb.last, false, sizes);
        }
        return;
    }
    if (turn == 0) {
        for mb in tiles(M, R) across cores {
            strip(y, x, w, mb, act, ones, bias, with, mb.first || !keep, kept, no, ends && mb.first ? K : 0, ends && mb.last, false, sizes);
        }
        return;
    }
    let mine = share(range(ceil_div(M, R)), core, cores);
    let first = mine.start + (keep ? 1 : 0);
    let turns = max(0, min(mine.end, M / R) - first) / turn;
    for mb in tiles(mine.start * R..first * R, R) { strip(y, x, w, mb, act, ones, bias, with, true, kept, no, K, true, false, sizes); }
    if (turns > 0) {
        if (hold) {
            let rows = 0..min(K, KB * 128);
            sbuf head[rows by 128, min(N, side * NT)]: w.dtype <- w[rows, 0:min(N, side * NT)];
            let held = (true, head);
        } else { let held = no; }
        loop t in 0..turns {
            reg at: i32 = t * (turn * R) + first * R;
            let (how, other) = with;
            let part = how == Other.none ? with : (how, other[ds(at, turn * R), :]);
            let (ys, xs) = (y[ds(at, turn * R), :], x[ds(at, turn * R), :]);
            for s in tiles(turn * R, R) {
                strip(ys, xs, w, s, act, ones, bias, part, !keep, kept, held, s.first ? KB * 128 : 0, s.last, direct, sizes);
            }
        }
    }
    for mb in tiles((first + turns * turn) * R..min(mine.end * R, M), R) {
        strip(y, x, w, mb, act, ones, bias, with, !keep, kept, no, mb.first ? KB * 128 : 0, mb.last, false, sizes);
    }
}

// All of PSUM accumulates: MB row tiles of x meet w in rows as wide as the other banks allow. So w streams past in long
// rows, slower than memory can give it, x is read once, and w too where all of it has room; the banks end one after the other.
leaf matmul_banks for matmul on trn1, trn2, trn3 {
    layout x: [M, K] or [K, M];                                 // the transposed-input form costs nothing here
    where x.dtype in {bf16, fp16, fp32} && w.dtype == x.dtype : "x and w must share bf16, fp16 or fp32";
    let size = bytes(x.dtype);
    let few = M <= 128 && x.inner == 1;                         // rows of x come as they are and turn before the products
    let direct = few || x.inner == 0 || size == 2 && target.dma_transpose;
    let wide = M <= 128 ? 1 : M <= 256 ? 2 : direct ? 4 : 3;
    param MB in {1, 2, 3, 4} = wide;                            // row tiles of a strip
    param WB in {2, 3, 4, 6} = 4;                               // loads of w in flight
    param OB in {3, 4} = 3;                                     // finished rows on their way out
    let even = N * bytes(y.dtype) % 512 == 0 && (x.inner == 0 ? M * size % 512 == 0 : direct || K * size % 512 == 0);
    let apart = ceil_div(M, MB * 128) < cores && N >= cores * 128;      // too few strips: cores share the columns
    let C = apart ? round_up(ceil_div(N, cores), 64) : N;
    param turn in {0, 1, 2, 4, 16} = few ? 0 : turn_of(M, K, N, MB, x.dtype, even, too_long(trace_steps(M, K, N)));     // strips of a turn of a hardware loop; 0: none
    let NT = turn > 0 ? min(C, 512) : min(C, round_up(ceil_div(C, ceil_div(C, 512)), 2));   // equal columns: a narrow last tile would cost as much
    let side = min((direct ? 8 : 6) / MB, ceil_div(C, NT));     // banks of a row tile; two serve transposes
    let NB = min(side * NT, C);
    let KB = max(1, (M <= 128 ? 2 : 8) / size);                 // k tiles of a load: about 1 MiB
    let folds = ceil_div(K, 128);
    let slots = turn == 1 ? 1 : 2;                              // of a strip: between turns nothing is loaded ahead
    let fixed = slots * folds * min(MB * 128, M) * size + (OB + 2) * NB * bytes(y.dtype) + (few ? K : 0) * size + 2048;
    let slot = few || direct ? 0 : KB * 128 * size;
    let room = sbuf.partition - fixed - 4 * slot;               // a fourth must not take the room of w
    param XB in {3, 4} = size == 2 && (room >= folds * C * size || room + slot < folds * C * size && room >= WB * KB * NB * size) ? 4 : 3;    // loads of rows of x that turn on the PE
    let rest = fixed + XB * slot;
    let keep = M > MB * 128 && rest + folds * C * size <= sbuf.partition;   // w stays on chip
    where rest + (keep ? folds * C : WB * KB * NB) * size <= sbuf.partition : "two strips of 128*MB rows of x, or one where each is a turn of a loop, must fit one partition beside w";
    where turn == 0 || !few && M / (MB * 128) / cores >= turn + (keep ? 1 : 0) : "a loop needs the strips of a turn";
    let hold = turn > 0 && !keep && rest + (WB + 1) * KB * NB * size <= sbuf.partition;

    cost pe: M * N * K / (128 * 128) * target.pe_passes(x.dtype) + M / (MB * 128) / max(turn, 1) * turn_cycles(turn),
         hbm: bytes(x) + bytes(w) * (keep ? 1 : ceil_div(M, MB * 128)) + bytes(y);
    tolerance x.dtype == fp32 ? 1e-4 : 2e-2, 1e-5;
    cases (M: 512, K: 512, N: 512), (M: 1, K: 128, N: 1), (M: 129, K: 257, N: 513), (M: 130, K: 140, N: 100, with: "bias residual", act: Act.gelu),
          (M: 5, K: 3, N: 600, with: "residual", dtype: fp32), (M: 1, K: 1024, N: 512, with: "bias", dtype: fp16, act: Act.silu), (M: 1000, K: 300, N: 1037);

    if (present(bias)) { sbuf ones[1, 128]: bias.dtype = 1.0; let add = (true, bias); } else { let ones = 0; let add = (false, 0); }
    let with = present(residual) ? (Other.plus, residual) : (Other.none, 0);
    let columns = apart ? clip(range(N), core * C, (core + 1) * C) : range(N);
    strips(y, x, w, act, ones, add, with, keep, turn, hold, true, (MB, WB, OB, XB, KB, NT, side, slots, few, direct, columns));
}

// acc receives the products over rows `ks` of K for rows `m` and columns `n` of the result.
fn multiply(acc, xt, wt, ks, m, n) { acc[0:m.size, m.start / 128, n.index, 0:n.size] += xt[ks, m]' @ wt[ks, n]; }

// A piece of the result on its way out of PSUM; every second one by ACT, where only a copy is wanted.
fn leave(o, a, act, second, has_residual, r) {
    if (has_residual) {
        if (act == Act.none) { o = a + r; } else { o = apply(act, a) + r; }
    } else if (act != Act.none) { o = apply(act, a); }
    else if (second) { o = copy(a); }
    else { o = a on dve; }
}

// Operands that a queue would start more slowly than they move: all of them on chip at once, three queues in turn start the loads.
// What counts is when the last result is on its way:
// - PE warms up on zeros until the first operands come: it runs at half rate until it has worked for 3 us (NKI guide on PE throttling);
// - the last rows of K, fewer than a tile and soon here, are loaded and multiplied first, and so is the bias;
// - the last rows of y, fewer than a tile, are ready first: few of them take as long to leave PSUM as many;
// - of two pieces of y's columns the later one is the smaller.
leaf matmul_soon for matmul on trn1, trn2, trn3 {
    layout x: [M, K] or [K, M];
    where x.dtype in {bf16, fp16, fp32} && w.dtype == x.dtype : "x and w must share bf16, fp16 or fp32";
    let size = bytes(x.dtype);
    let stored = x.inner == 0;                                  // with K first: else rows of x turn on their way
    where stored || M > 128 : "few rows turn on the PE all at once: they have their own leaf";
    let direct = stored || size == 2 && target.dma_transpose;   // a transfer turns them, or PE
    let NT = M < 256 && N >= 256 && N <= 816 ? round_up(N * 5 / 8, 2) : min(N, round_up(ceil_div(N, ceil_div(N, 512)), 2));
    let side = ceil_div(N, NT);
    where side * ceil_div(M, 128) <= (direct ? 7 : 5) : "the result must fit PSUM";
    where ceil_div(K, 128) <= 16 / size && 128 * (M + N) * size <= 196608 : "a queue starts loads faster than these move";
    cost pe: M * N * K / (128 * 128) * target.pe_passes(x.dtype), hbm: bytes(x) + bytes(w) + bytes(y);
    priority 1;
    tolerance x.dtype == fp32 ? 1e-4 : 2e-2, 1e-5;
    cases (M: 129, K: 384, N: 513), (M: 300, K: 256, N: 400, with: "bias residual", act: Act.gelu),
          (M: 512, K: 100, N: 30, dtype: fp16);

    let edge = K / 128 * 128;                                   // the first row of K that fills no tile
    let low = M > 128 ? M / 128 * 128 : 0;                      // the first row of y that fills no tile
    let early = max(edge / 128 - 2, 0) * 128;                   // up to here all of y takes a tile of K before the next one
    sbuf xt[K by 128, M]: x.dtype;
    sbuf wt[K by 128, N]: w.dtype;
    psum acc[min(M, 128), ceil_div(M, 128), side, 512]: fp32;
    if (target.pe_warm_ns > 0 && ceil_div(K, 128) * ceil_div(M, 128) * N >= 1024) {
        sbuf zero[128, 64]: bf16 = 0.0;
        psum idle[64, 64]: fp32 = zero' @ zero;
        for i in 1..(edge < K ? 22 : 30) { idle += zero' @ zero; }
    }
    var q = 0;
    if (edge < K) {
        if (direct) { by_queue(xt[edge..K, :], x[:, edge..K]', 0); } else { load_strip(xt, x, 0..M, edge..K); }
        by_queue(wt[edge..K, :], w[edge..K, :], 1);
        q = 2;
    }
    if (present(bias)) { sbuf ones[1, 128]: bias.dtype = 1.0; sbuf b[1, N] <- bias; }
    for k in tiles(edge, 128) {
        by_queue(wt[k], w[k, :], q % 3);
        if (direct) { by_queue(xt[k], x[:, k]', (q + 1) % 3); } else { load_strip(xt, x, 0..M, k); }
        q = q + 2;
    }
    for m in tiles(M, 128), n in tiles(N, NT) {
        if (present(bias)) { acc[0:m.size, m.index, n.index, 0:n.size] += ones[:, 0:m.size]' @ b[:, n]; }
        if (edge < K) { multiply(acc, xt, wt, edge..K, m, n); }
    }
    for k in tiles(early, 128), m in tiles(M, 128), n in tiles(N, NT) { multiply(acc, xt, wt, k, m, n); }
    if (low > 0 && low < M) { sbuf rest[M - low, N]: y.dtype; }
    if (present(residual)) {
        sbuf r[M by 128, N]: residual.dtype;
        for m in tiles(M, 128) { r[m, :] <- residual[m, :]; }
    }
    for n in tiles(N, NT), rows in [low..M, 0..low], m in tiles(rows, 128) {
        for k in tiles(early..edge, 128) { multiply(acc, xt, wt, k, m, n); }
        sbuf o[m, n]: y.dtype bufs 4;
        for h in split(n, n.size < 128 || present(residual) ? 1 : m.start >= low ? 2 : m.last ? 3 : 1) {
            let c = ds(h.start - n.start, h.size);
            leave(low > 0 && m.start >= low ? rest[:, h] : o[:, c], acc[0:m.size, m.start / 128, n.index, c], act,
                  (h.index + (m.last ? 0 : m.index)) % 2 == 1, present(residual), present(residual) ? r[m, h] : o[:, c]);
        }
        if (m.start < low || low == 0) { by_queue(y[m, n], o, n.last ? m.index * 2 % 3 : 1); }
        else if (n.last) { by_queue(y[m, :], rest, 2); }
    }
}

// The same where the PE turns rows of x, strip by strip, or a transfer does and K is not whole tiles: equal ones, since one transfer
// brings several.
leaf matmul_once for matmul on trn1, trn2, trn3 {
    layout x: [M, K];
    where x.dtype in {bf16, fp16, fp32} && w.dtype == x.dtype : "x and w must share bf16, fp16 or fp32";
    let size = bytes(x.dtype);
    where M > 128 : "few rows turn on the PE all at once: they have their own leaf";
    let direct = size == 2 && target.dma_transpose;             // a transfer turns rows of x, or PE
    where !direct || K > 128 && K % 128 > 0 : "whole tiles of K, which transfers turn, have their own leaf";
    let folds = ceil_div(K, 128);
    let KT = direct ? ceil_div(K, folds) : 128;      // equal tiles: one transfer brings several
    let MT = ceil_div(M, ceil_div(M, 128));
    let NT = min(N, round_up(ceil_div(N, ceil_div(N, 512)), 2));
    let side = ceil_div(N, NT);
    where side * ceil_div(M, MT) <= (direct ? 8 : 6) : "the result must fit PSUM";
    where folds <= 16 / size && 128 * (M + N) * size <= 196608 : "a queue starts loads faster than these move";
    cost pe: M * N * K / (128 * 128) * target.pe_passes(x.dtype), hbm: bytes(x) + bytes(w) + bytes(y);
    priority 2;
    tolerance x.dtype == fp32 ? 1e-4 : 2e-2, 1e-5;
    cases (M: 129, K: 385, N: 513), (M: 300, K: 200, N: 400, with: "bias residual", act: Act.gelu), (M: 512, K: 300, N: 30, dtype: fp16);

    if (present(bias)) { sbuf ones[1, 128]: bias.dtype = 1.0; }
    if (direct) { sbuf zero[KT, max(NT, MT)]: x.dtype = 0.0; }
    sbuf xt[K by KT, M]: x.dtype;
    sbuf wt[K by KT, N]: w.dtype;
    psum acc[min(M, MT), ceil_div(M, MT), side, 512]: fp32;
    if (direct) { for i in 0..2560 / max(NT, 64) { acc[:, 0, 0, 0:NT] += zero[:, 0:MT]' @ zero[:, 0:NT]; } }
    var q = 0;
    for kb in tiles(K, 2 * KT) {
        if (direct) { by_queue(xt[kb], x[:, kb]', q % 3); } else { load_strip(xt, x, 0..M, kb); }
        for k in tiles(kb, KT) {
            q = q + 1;
            by_queue(wt[k], w[k, :], q % 3);
            for m in tiles(M, MT), n in tiles(N, NT) { acc[0:m.size, m.index, n.index, 0:n.size] += xt[k, m]' @ wt[k, n]; }
        }
        q = q + 1;
    }
    if (present(bias)) {
        sbuf b[1, N] <- bias;
        for m in tiles(M, MT), n in tiles(N, NT) { acc[0:m.size, m.index, n.index, 0:n.size] += ones[:, 0:m.size]' @ b[:, n]; }
    }
    for m in tiles(M, MT) {
        sbuf o[m, N]: y.dtype bufs 3;
        if (present(residual)) { sbuf r[m, N] bufs 3 <- residual[m, :]; }
        for n in tiles(N, NT), h in split(n, m.last && n.size >= 128 && !present(residual) ? 2 : 1) {    // the last rows leave PSUM by two engines at a time
            leave(o[:, h], acc[0:m.size, m.index, n.index, ds(h.start - n.start, h.size)], act, (m.last ? h.index : n.index) % 2 == 1,
                  present(residual), present(residual) ? r[:, h] : o[:, h]);
        }
        by_queue(y[m, :], o, m.index % 3);
    }
}

// Rows mb and columns n of y.
fn stream(y, x, w, mb, n, sizes, act, ones, bias, residual) {
    let (MB, KB) = sizes;
    let (biased, add) = bias;
    let (sums, res) = residual;
    psum acc[mb by 128, n]: fp32 bufs MB == 4 ? 1 : 2 align 2048;
    for kb in tiles(x.axis(1), KB * 128) {
        sbuf xt[kb by 128, mb]: x.dtype bufs 2;
        load_transposed(xt, x[mb, kb]);
        sbuf wt[kb by 128, n]: w.dtype bufs 3 <- w[kb, n];
        for m in tiles(mb, 128), k in tiles(kb, 128) { acc[m, n] += xt[k, m]' @ wt[k, n]; }
    }
    finish(acc, y, mb, n, act, biased, ones, add, sums, res);
}

// A contraction too long for strips of x on chip: x streams like w, once for every 512 columns. Too many of them loop in hardware,
// or strips of rows, where a moving transfer would cut columns to pieces.
leaf matmul_stream for matmul on trn1, trn2, trn3 {
    layout x: [M, K] or [K, M];
    where x.dtype in {bf16, fp16, fp32} && w.dtype == x.dtype : "x and w must share bf16, fp16 or fp32";
    param MB in 1..4 = 3;
    param KB in {2, 4, 8} = 8;
    let R = MB * 128;
    let strips = M / R / cores;
    let often = x.inner == 0 || bytes(x.dtype) == 2 && target.dma_transpose ? 1 : 2;     // PE turns x again and again
    param loops in {"none", "rows", "columns"} = often * trace_steps(M, K, N) < 1000000 ? "none"
        : N * bytes(y.dtype) % 512 > 0 && strips >= 2 && !too_long(2 * often * trace_steps(R * cores, K, N)) ? "rows" : "columns";
    where loops != "rows" || strips >= 1 : "a loop needs whole strips";
    cost pe: M * N * K / (128 * 128) * 1.1 * target.pe_passes(x.dtype),     // a tenth: x comes again and again, and PE waits
         hbm: bytes(x) * ceil_div(N, 512) + bytes(w) * ceil_div(M, MB * 128) + bytes(y);
    tolerance x.dtype == fp32 ? 1e-4 : 2e-2, 1e-5;
    cases (M: 130, K: 1100, N: 520, with: "bias", act: Act.relu), (M: 3, K: 140, N: 7, dtype: fp32, with: "residual");

    if (present(bias)) { sbuf ones[1, 128]: bias.dtype = 1.0; let add = (true, bias); } else { let ones = 0; let add = (false, 0); }
    let res = present(residual) ? (true, residual) : (false, 0);
    let sizes = (MB, KB);
    if (loops == "none") {
        for mb in tiles(M, R) across cores, n in tiles(N, 512) { stream(y, x, w, mb, n, sizes, act, ones, add, res); }
    } else if (loops == "rows") {
        let first = core * strips * R;
        let rest = clip(range(M), core < cores - 1 ? M : cores * strips * R, M);
        loop t in 0..strips {
            reg at: i32 = t * R + first;
            let part = present(residual) ? (true, residual[ds(at, R), :]) : res;
            for n in tiles(N, 512) { stream(y[ds(at, R), :], x[ds(at, R), :], w, range(R), n, sizes, act, ones, add, part); }
        }
        for mb in tiles(rest, R), n in tiles(N, 512) { stream(y, x, w, mb, n, sizes, act, ones, add, res); }
    } else {
        for mb in tiles(M, R) across cores {
            loop t in 0..N / 512 {
                reg at: i32 = t * 512;
                let part = present(residual) ? (true, residual[:, ds(at, 512)]) : res;
                stream(y[:, ds(at, 512)], x, w[:, ds(at, 512)], mb, range(512), sizes, act, ones, present(bias) ? (true, bias[ds(at, 512)]) : add, part);
            }
        }
        for mb in tiles(M, R) across cores, n in tiles(N / 512 * 512..N, 512) { stream(y, x, w, mb, n, sizes, act, ones, add, res); }
    }
}
