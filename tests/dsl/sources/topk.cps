// Rotational top-k.
op topk(x[B, V]; k: int, sorted: bool = true) -> values[B, k], indices[B, k]: u32 {
    let (s, i) = sort_descending(x, axis: 1);                   // stable: the earlier index first
    values = s[:, 0:k];
    indices = i[:, 0:k];
}

// k largest of data[:, 0:w], eight per round, struck out as they are found; positions in `pos`
fn top_rounds(v, pos, data, k) {
    for r in 0..k / 8 {
        max8(dst: v[:, ds(8 * r, 8)], src: data);
        nc_match_replace8(dst: data, data: data, vals: v[:, ds(8 * r, 8)], imm: lowest, dst_idx: pos[:, ds(8 * r, 8)]);
    }
}

leaf topk_rotational for topk on trn2, trn3 {
    let n = clamp(ceil_div(k, 8), ceil_div(V, 16384), max(1, 128 / min(B, 128)));    // folds
    let W = ceil_div(V, n);                                     // columns of a fold
    let lk = round_up(ceil_div(k, n), 8);                       // winners each fold passes on
    where k < V && n > 1 : "one fold is the scanning leaf";
    where W + n * lk <= 16384 : "max8 reads at most 16384 elements";
    where V < 16777216 : "indices travel as fp32";
    param BT in {16, 32, 64, 128} = 128;
    where BT * n <= 128 : "folds of a row tile share the partitions";
    cost dve: ceil_div(B, BT) * n * (lk / 8) * 2 * (W + 144);
    tolerance 1e-3, 1e-5;
    cases (B: 4, V: 3168, k: 64), (B: 32, V: 151936, k: 256), (B: 1, V: 4096, k: 20);

    let NP = BT * n;                                            // partition = fold * BT + row
    sbuf turn[NP, NP]: fp32 = select(col(NP) - row(NP) == BT, 1.0, 0.0);          // POOL affine_select
    turn = select(row(NP) - col(NP) == NP - BT, 1.0, turn);                      // the wrap-around corner
    sbuf first[NP, 1]: fp32 <- [p / BT * W for p in 0..NP];      // a list is a constant of the package

    for b in tiles(B, BT) across cores {
        sbuf val[NP, W + n * lk]: fp32 = lowest;             // not -inf: the permutation multiplies by zero
        sbuf idx[NP, W + n * lk]: fp32;
        idx[:, 0:W] = first + col(W);                           // POOL iota, DVE tensor_scalar
        for f in tiles(V, W) { val[ds(f.index * BT, b.size), 0:f.size] <- x[b, f]; }

        sbuf v[NP, lk]: fp32;
        sbuf here[NP, lk]: u32;
        sbuf from[NP, lk]: fp32;
        for s in 0..n {
            let w = W + s * lk;                                 // the window grows by the newcomers of each turn
            top_rounds(v, here, val[:, 0:w], lk);
            nc_n_gather(dst: from, data: idx[:, 0:w], indices: here);
            if (s < n - 1) {
                psum pv[NP, lk]: fp32 = turn' @ v;               // a permutation matrix: exact in fp32
                psum pi[NP, lk]: fp32 = turn' @ from;
                val[:, ds(w, lk)] = pv on act;
                idx[:, ds(w, lk)] = pi on act;
            }
        }
        // refold [fold * BT + row, lk] to [row, fold * lk], through HBM
        hbm tv[NP, lk]: fp32 <- v;
        hbm ti[NP, lk]: fp32 <- from;
        sbuf cv[BT, n, lk]: fp32 <- tv.view("(f r) j -> r f j", r: BT);
        sbuf ci[BT, n, lk]: fp32 <- ti.view("(f r) j -> r f j", r: BT);
        let kk = round_up(k, 8);
        sbuf ov[BT, kk]: fp32;
        sbuf oh[BT, kk]: u32;
        sbuf oi[BT, kk]: fp32;
        top_rounds(ov, oh, cv.view("r f j -> r (f j)"), kk);
        nc_n_gather(dst: oi, data: ci.view("r f j -> r (f j)"), indices: oh);
        values[b, :] <- ov[0:b.size, 0:k];
        indices[b, :] <- oi[0:b.size, 0:k];
    }
}
