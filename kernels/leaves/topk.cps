// Top k by rounds of eight: max8 finds eight, their positions are looked up, and -inf is written over them. The positions that
// MATCH_REPLACE8 would give along with the replacement descend among equal values, FIND_INDEX8's ascend as the operator wants.
// Values of -inf count as the lowest number while there is more than one round, so that they are not taken for what was
// found before; they are given as -inf again (and the lowest number with them). A NaN is passed over; where a row runs out
// of numbers its positions are the last ones.
use "reference/topk.cps";

// v and at [p, n], n a multiple of 8: the n largest of data, and where they stood.
fn top_rounds(v, at, data) {
    if (v.shape[1] > 8) { data = maximum(data, lowest_of(data.dtype)); }
    for r in tiles(v.shape[1], 8) {
        max8(dst: v[:, r], src: data);
        nc_find_index8(dst: at[:, r], data: data, vals: v[:, r]);
        if (!r.last) { nc_match_replace8(dst: data, data: data, vals: v[:, r], imm: -inf); }
    }
    at = minimum(at, data.shape[1] - 1);                        // all ones: not found
}

// The largest number of the type, negated.
fn lowest_of(t) { return t == fp32 ? lowest : t == bf16 ? -3.3895313892515355e38 : -65504.0; }

fn give(y, v, x, n) {
    if (n > 8) { y <- select(v <= lowest_of(x.dtype), -inf, v); } else { y <- v; }
}

leaf topk_rows for topk on trn1, trn2, trn3 {
    where x.dtype in {bf16, fp16, fp32} : "x must be bf16, fp16 or fp32";
    where k >= 1 && k <= V : "k must be at least 1 and at most the columns of x";
    where V <= 16384 : "max8 reads at most 16384 elements: topk_folds takes longer rows";
    cost dve: ceil_div(B, P) * ceil_div(k, 8) * 3 * (max(V, 8) + 144), hbm: bytes(x);
    tolerance 0.0, 0.0;
    cases (B: 128, V: 256, k: 8), (B: 130, V: 1000, k: 50), (B: 1, V: 3168, k: 1, dtype: fp32), (B: 3, V: 5, k: 5), (B: 2, V: 16384, k: 20, dtype: fp32);

    let W = max(V, 8);
    let n = round_up(k, 8);
    for b in tiles(B, P) across cores {
        sbuf data[b, W]: x.dtype bufs 2;
        if (V < W) { data = -inf; }
        data[:, 0:V] <- x[b, :];
        sbuf v[b, n]: x.dtype;
        sbuf at[b, n]: u32;
        top_rounds(v, at, data);
        give(values[b, :], v[:, 0:k], x, n);
        indices[b, :] <- at[:, 0:k];
    }
}

// Rows cut into n folds that stand on partitions of their own; the winners of all folds of a row meet in one row, where the
// rounds run once more. Folds and their winners stand in the order of positions, so equal values keep theirs. The positions
// of the last round are of winners: what these stood for is fetched by a gather of single elements.
leaf topk_folds for topk on trn1, trn2, trn3 {
    where x.dtype in {bf16, fp16, fp32} : "x must be bf16, fp16 or fp32";
    where k >= 1 && k <= V : "k must be at least 1 and at most the columns of x";
    where V < 16777216 : "positions are added up in fp32, exact below 2^24";
    param n in {2, 4, 8, 16, 32, 64, 128} = 8;
    let kk = round_up(k, 8);
    let W = ceil_div(V, n);
    let lk = min(kk, round_up(W, 8));                           // winners of a fold
    where W <= 16384 && W * (n - 1) < V && W >= 8 : "folds have 8 to 16384 columns, and none is empty";
    where n * lk <= 16384 : "max8 reads at most 16384 elements: fewer folds";
    let R = 128 / n;                                            // rows at a time
    cost dve: ceil_div(B, R) * 3 * (lk / 8 * (W + 144) + kk / 8 * (n * lk + 144)), hbm: bytes(x) + 32 * 1024 * ceil_div(B, R) * ceil_div(R * k, P);
    tolerance 0.0, 0.0;
    cases (B: 4, V: 3168, k: 64, dtype: fp32), (B: 1, V: 20000, k: 20), (B: 33, V: 129, k: 99), (B: 9, V: 17000, k: 33, dtype: fp32);

    for b in tiles(B, R) across cores {
        let rows = b.size;
        let NP = rows * n;                                      // partition = fold * rows + row
        sbuf first[NP, 1]: fp32 <- [p / rows * W for p in 0..NP];
        sbuf data[NP, W]: x.dtype;
        if (n * W > V) { data = -inf; }
        for f in tiles(V, W) { data[ds(f.index * rows, rows), 0:f.size] <- x[b, f]; }
        sbuf v[NP, lk]: x.dtype;
        sbuf here[NP, lk]: u32;
        top_rounds(v, here, data);
        sbuf from[NP, lk]: i32 = here + first;

        let mine = core * R;                                    // both cores of a pair see these tensors
        hbm tv[cores * R, n * lk]: x.dtype;                     // the winners, row by row
        hbm t0[R * n * lk, 1]: i32;                             // a gather counts as a reader of its whole table
        hbm t1[cores == 2 ? R * n * lk : 1, 1]: i32;
        let ti = core == 0 ? t0 : t1;
        for f in 0..n {
            tv[ds(mine, rows), ds(f * lk, lk)] <- v[ds(f * rows, rows), :];
            ti.view("(r f j) 1 -> r f j", f: n, j: lk)[0:rows, f, :] <- from[ds(f * rows, rows), :];
        }
        sbuf met[rows, n * lk]: x.dtype <- tv[ds(mine, rows), :];
        sbuf best[rows, kk]: x.dtype;
        sbuf at[rows, kk]: u32;
        top_rounds(best, at, met);
        give(values[b, :], best[:, 0:k], x, max(kk, lk));

        sbuf start[rows, 1]: fp32 <- [r * n * lk for r in 0..rows];
        sbuf which[rows, kk]: i32 = at + start;
        hbm flat[cores * R, k]: i32;
        flat[ds(mine, rows), :] <- which[:, 0:k];
        for t in tiles(rows * k, P) {
            sbuf id[t, 1]: i32 <- flat.view("r k -> (r k) 1")[ds(mine * k + t.index * P, t.size), :];
            sbuf one[t, 1]: i32 <- ti[id, :];
            indices.view("b k -> (b k) 1")[ds(b.index * R * k + t.index * P, t.size), :] <- one;
        }
    }
}
