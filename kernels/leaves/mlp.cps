// Gated MLP: the hidden activations stay on chip, turned, so that the second product needs no transposes.
use "reference/act.cps";
use "leaves/matmul.cps";

// How much longer rows of so many bytes take than rows of 2 KiB: a descriptor costs as much.
fn short(n) { return 2048.0 / min(2048, n); }

leaf mlp_tokens for mlp on trn1, trn2, trn3 {
    where x.dtype in {bf16, fp16, fp32} && w_gate.dtype == x.dtype && w_up.dtype == x.dtype && w_down.dtype == x.dtype
        : "all operands must share bf16, fp16 or fp32";
    param TB in {128, 256, 512} = 512;                          // tokens of a block
    let size = bytes(x.dtype);
    let tokens = min(TB, T);
    let rows = ceil_div(tokens, 128);                           // row tiles of a block: their sums share four banks
    let NB = min(4 / rows * 512, H);                            // columns of the result at a time
    let direct = size == 2 && target.dma_transpose;             // else turning x takes a bank from the products
    let ahead = T > TB ? 2 : 1;                                 // blocks of x on chip
    let base = (ahead * ceil_div(H, 128) + ceil_div(I, 128)) * tokens * size + (direct ? 0 : 2 * H * size)
               + tokens * 8 + 3 * NB * bytes(y.dtype) + 1024 * size + 4096;
    param DB in {2, 3, 4} = 4;                                  // loads of w_down in flight
    param KB in {1, 2, 4, 8} = NB * size >= 4096 ? 1 : NB * size >= 2048 ? 2 : 4;   // rows of w_down in a load, in tiles of 128: 512 KiB
    let down = DB * KB * NB * size;
    param IB in {128, 256, 512} = base + down + 4 * ceil_div(H, 128) * min(512, I) * size <= sbuf.partition ? 512
                                  : base + down + 4 * ceil_div(H, 128) * min(256, I) * size <= sbuf.partition ? 256 : 128;  // hidden columns of a load
    where base + down + 4 * ceil_div(H, 128) * min(IB, I) * size <= sbuf.partition
        : "a block of tokens and its hidden activations must stay on chip";
    let each = min(cores, ceil_div(T, TB));                     // a block of tokens is one core's
    cost pe: (T * 3 * H * I / (128 * 128) * target.pe_passes(x.dtype) + ceil_div(T, TB) * 3 * H * I / 2048) / each,
         hbm: bytes(x) + bytes(y) + ceil_div(T, TB) / each * ((bytes(w_gate) + bytes(w_up)) * short(min(IB, I) * size) + bytes(w_down) * short(NB * size));
    tolerance x.dtype == fp32 ? 1e-4 : 2e-2, 1e-5;
    cases (T: 128, H: 256, I: 512), (T: 1, H: 384, I: 1000), (T: 130, H: 200, I: 136), (T: 520, H: 130, I: 70, dtype: fp32), (T: 1, H: 1, I: 1, act: Act.gelu),
          (T: 300, H: 1100, I: 300);

    for tb in tiles(T, TB) across cores {
        sbuf xt[H by 128, tb]: x.dtype bufs ahead;
        load_transposed(xt, x[tb, :]);
        sbuf mid[I by 128, tb]: x.dtype bufs 1;
        for ib in tiles(I, IB) {
            sbuf wg[H by 128, ib] bufs 2 <- w_gate[:, ib];
            sbuf wu[H by 128, ib] bufs 2 <- w_up[:, ib];
            for i in tiles(ib, 128) {
                psum g[i, tb]: fp32 bufs 2;
                psum u[i, tb]: fp32 bufs direct ? 2 : 1;
                for h in tiles(H, 128) { g += wg[h, i]' @ xt[h, tb]; }
                for h in tiles(H, 128) { u += wu[h, i]' @ xt[h, tb]; }
                sbuf s[i, tb]: fp32 bufs 2 = apply(act, g);     // ACT
                mid[i, tb] = s * u;                             // DVE tensor_tensor, one operand in PSUM
            }
        }
        for nb in tiles(H, NB) {
            psum acc[min(tb.size, 128), rows, ceil_div(NB, 512), 512]: fp32 bufs 1;
            for kb in tiles(I, KB * 128) {
                sbuf wd[kb by 128, nb] bufs DB <- w_down[kb, nb];
                for t in tiles(tb, 128), n in tiles(nb, 512), i in tiles(kb, 128) { acc[0:t.size, t.index, n.index, 0:n.size] += mid[i, t]' @ wd[i, n]; }
            }
            for t in tiles(tb, 128) {
                sbuf o[t, nb]: y.dtype bufs 3;
                for n in tiles(nb, 512) { o[:, n] = acc[0:t.size, t.index, n.index, 0:n.size]; }
                y[t, nb] <- o;
            }
        }
    }
}

// Few tokens: the weights stream past once, in rows of 2048 and 4096 columns, against tokens that stand in the array. Each of two
// cores makes one half of the hidden activations, and after they met one half of the result's columns.
leaf mlp_few for mlp on trn1, trn2, trn3 {
    where T <= 128 : "more tokens have a leaf that keeps weights on chip";
    where x.dtype in {bf16, fp16, fp32} && w_gate.dtype == x.dtype && w_up.dtype == x.dtype && w_down.dtype == x.dtype
        : "all operands must share bf16, fp16 or fp32";
    param WB in {2, 3, 4} = 4;                                  // loads in flight
    let size = bytes(x.dtype);
    let pieces = H % 128 == 0 && H <= 16384;
    let KB = 4 / size;                                          // k tiles of a load of 2048 columns: 1 MiB
    where (ceil_div(H, 128) + ceil_div(I, 128)) * T * size + (I + min(I, 2048)) * size + WB * (KB * min(I, 2048) + min(H, 4096)) * size
          + (pieces ? T * 2 : H) * size + 2 * min(H, 4096) * bytes(y.dtype) + 2048 <= sbuf.partition : "hidden activations and weights in flight must fit one partition";
    let apart = cores > 1 && H >= 256 && I >= 512 && H * I >= 524288;       // less is not worth meeting for
    let each = apart ? cores : 1;
    cost pe: 3 * H * I * 1.0 / 128 * target.pe_passes(x.dtype) / each, hbm: bytes(x) + bytes(y) + (bytes(w_gate) + bytes(w_up) + bytes(w_down)) / each;
    tolerance x.dtype == fp32 ? 1e-4 : 2e-2, 1e-5;
    cases (T: 1, H: 384, I: 1000), (T: 32, H: 512, I: 2304), (T: 3, H: 200, I: 136), (T: 20, H: 130, I: 70, dtype: fp32), (T: 1, H: 1, I: 1, act: Act.gelu);

    sbuf xt[H by 128, T]: x.dtype;
    if (pieces) {
        turn_pieces(xt, x, H);
    } else {
        sbuf rows[T, H]: x.dtype <- x;
        turn(xt, rows, 0..T, 0..H);
    }
    sbuf mid[T, I]: x.dtype;
    sbuf mt[I by 128, T]: x.dtype;
    let C = round_up(ceil_div(I, cores), 128);
    let mine = apart ? clip(range(I), core * C, (core + 1) * C) : range(I);
    let theirs = apart ? clip(range(I), (1 - core) * C, (2 - core) * C) : clip(range(I), I, I);
    let Y = round_up(ceil_div(H, cores), 64);
    let columns = apart ? clip(range(H), core * Y, (core + 1) * Y) : range(H);
    if (apart) { hbm met[T, I]: x.dtype; }
    for ib in tiles(mine, 2048) {
        sbuf s[T, ib]: x.dtype bufs 2;
        for gate in [true, false] {
            psum acc[T, 4, 512]: fp32 bufs 1;
            for hb in tiles(H, KB * 128) {
                sbuf w[hb by 128, ib]: x.dtype bufs WB <- gate ? w_gate[hb, ib] : w_up[hb, ib];
                for h in tiles(hb, 128), i in tiles(ib, 512) { acc[:, i.index, 0:i.size] += xt[h, :]' @ w[h, i]; }
            }
            for i in tiles(ib, 512) {
                if (gate) { s[:, i] = apply(act, acc[:, i.index, 0:i.size]); }   // ACT
                else { mid[:, i] = s[:, i] * acc[:, i.index, 0:i.size]; }        // DVE tensor_tensor, one operand in PSUM
            }
        }
        turn(mt, mid, 0..T, ib);
    }
    if (apart) { met[:, mine] <- mid[:, mine]; }
    let banks = apart ? 6 : 8;                                  // what the other core made turns meanwhile, through two
    for nb in tiles(columns, banks * 512) {
        psum acc[T, banks, 512]: fp32 bufs 1;
        for half in [mine, theirs] {
            if (apart && nb.first && half.start == theirs.start) {
                barrier();
                mid[:, half] <- met[:, half];
                turn(mt, mid, 0..T, half);
            }
            for ib in tiles(half, max(KB / 2, 1) * 128) {
                sbuf w[ib by 128, nb]: x.dtype bufs WB <- w_down[ib, nb];
                for i in tiles(ib, 128), n in tiles(nb, 512) { acc[:, n.index, 0:n.size] += mt[i, :]' @ w[i, n]; }
            }
        }
        for q in tiles(nb, 2048) {
            sbuf o[T, q]: y.dtype bufs 2;
            for n in tiles(q, 512) { o[:, n] = acc[:, (n.start - nb.start) / 512, 0:n.size]; }
            y[:, q] <- o;
        }
    }
}

// PSUM banks that accumulate: rows that the PE turns need two.
fn banks(t) { return bytes(t) == 2 && target.dma_transpose ? 8 : 6; }
fn columns(MB, N, t) { return min(banks(t) / MB * 512, round_up(N, 512)); }
// Bytes of a partition that `product` holds.
fn strips_bytes(M, K, N, MB, WB, S, t) {
    let NB = columns(MB, N, t);
    return S * ceil_div(K, 128) * min(MB * 128, M) * bytes(t) + (8 / bytes(t)) * WB * NB * bytes(t) + 5 * NB * bytes(t)
           + (banks(t) == 8 ? 0 : 3 * 8 * 128) + 2048;
}

// Row tiles of a strip: the more, the less often the weights are read.
fn tall(M, K, N, t) {
    let most = M <= 256 ? 2 : banks(t) / 2;                     // one strip, of which two cores share the columns, reads them once
    return strips_bytes(M, K, N, most, 3, 2, t) <= sbuf.partition ? most : strips_bytes(M, K, N, 2, 3, 1, t) <= sbuf.partition ? 2 : 1;
}

// Strips of a turn; the three products must not be too long together.
fn mlp_turn(M, K, N, MB, t) {
    return turn_of(M, K, N, MB, t, N * bytes(t) % 512 == 0 && (bytes(t) == 2 || K * bytes(t) % 512 == 0), too_long(2 * trace_steps(M, K, N) + trace_steps(M, N, K)));
}

// Row tiles of a strip, where a strip that is a turn needs no second one beside it.
fn high(M, K, N, t) {
    let most = banks(t) / 2;
    return M / cores > 256 && mlp_turn(M, K, N, most, t) == 1 && strips_bytes(M, K, N, most, 3, 1, t) <= sbuf.partition ? most : tall(M, K, N, t);
}

// y = x w, or its elements times those of a tensor, strip by strip as matmul_banks does it for many rows.
fn product(y, x, w, act, with, MB, WB, S, turn, apart) {
    let (M, K, N, t) = (x.shape[0], x.shape[1], w.shape[1], x.dtype);
    let side = columns(MB, N, t) / 512;
    let C = round_up(ceil_div(N, cores), 64);
    let mine = apart ? clip(range(N), core * C, (core + 1) * C) : range(N);
    let KB = 8 / bytes(t);
    let hold = strips_bytes(M, K, N, MB, WB + 1, turn == 1 ? 1 : S, t) <= sbuf.partition;
    strips(y, x, w, act, 0, (false, 0), with, false, turn, hold, false, (MB, WB, 3, 3, KB, 512, side, turn == 1 ? 1 : S, false, banks(t) == 8, mine));
}

// Many tokens: three products one after the other, the hidden activations in memory between them. They are read back while
// the PE computes, and no weight waits for a block of tokens that has no room.
leaf mlp_products for mlp on trn1, trn2, trn3 {
    where T > 128 : "fewer tokens have leaves that keep them on chip";
    where x.dtype in {bf16, fp16, fp32} && w_gate.dtype == x.dtype && w_up.dtype == x.dtype && w_down.dtype == x.dtype
        : "all operands must share bf16, fp16 or fp32";
    let size = bytes(x.dtype);
    param MB in {1, 2, 3, 4} = high(T, H, I, x.dtype);          // row tiles of a strip of the first products
    param MD in {1, 2, 3, 4} = high(T, I, H, x.dtype);          // and of the last
    param WB in {2, 3, 4} = 3;                                  // loads of weights in flight
    param turn in {0, 1, 2, 4, 16} = mlp_turn(T, H, I, MB, x.dtype);        // strips of a turn of a hardware loop; 0: no loop
    param last_turn in {0, 1, 2, 4, 16} = mlp_turn(T, I, H, MD, x.dtype);
    let apart = ceil_div(T, max(MB, MD) * 128) < cores;         // too few strips: cores share the columns
    where !apart || min(H, I) >= cores * 128 : "one strip and few columns are for one core";
    where max(turn * MB, last_turn * MD) * 128 * cores <= T : "a loop needs the strips of a turn";
    let SB = strips_bytes(T, H, I, MB, WB, 2, x.dtype) <= sbuf.partition ? 2 : 1;
    let SD = strips_bytes(T, I, H, MD, WB, 2, x.dtype) <= sbuf.partition ? 2 : 1;
    where strips_bytes(T, H, I, MB, WB, SB, x.dtype) <= sbuf.partition : "a strip of 128*MB rows of x must fit one partition";
    where strips_bytes(T, I, H, MD, WB, SD, x.dtype) <= sbuf.partition : "a strip of 128*MD hidden rows must fit one partition";
    cost pe: T * 3 * H * I / (128 * 128) * target.pe_passes(x.dtype) / cores + 3 * 16384 * cores + T / (MB * 128) / max(turn, 1) * 2 * turn_cycles(turn)
             + T / (MD * 128) / max(last_turn, 1) * turn_cycles(last_turn),
         hbm: 2 * bytes(x) + bytes(y) + 4 * T * I * size + (ceil_div(T, MB * 128) * (bytes(w_gate) + bytes(w_up)) + ceil_div(T, MD * 128) * bytes(w_down)) / cores;
    tolerance x.dtype == fp32 ? 1e-4 : 2e-2, 1e-5;
    cases (T: 130, H: 200, I: 136), (T: 520, H: 130, I: 700, dtype: fp32), (T: 300, H: 640, I: 1100, act: Act.gelu), (T: 513, H: 129, I: 1, dtype: fp16);

    hbm g[T, I]: x.dtype;
    hbm h[T, I]: x.dtype;
    product(g, x, w_gate, act, (Other.none, 0), MB, WB, SB, turn, apart);
    product(h, x, w_up, Act.none, (Other.times, g), MB, WB, SB, turn, apart);
    if (cores > 1 && (apart || MB != MD)) { barrier(); }        // the last product takes what the other core made
    product(y, h, w_down, Act.none, (Other.none, 0), MD, WB, SD, last_turn, apart);
}
