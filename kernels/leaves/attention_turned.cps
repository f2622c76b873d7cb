// Flash attention with the scores turned: keys lie on the partitions, so that the exponentials are at once the stationary
// operand of their product with the values, and nothing is transposed on the way. The sum of a row is one more column of
// the values, of ones.
//
// A row's maximum lies across partitions here and is not taken: the exponentials are those of the scores as they are.
// Afterwards each row is judged by its sum. Between 2^-90 and 2^120 no term was lost that counts (those below the smallest
// normal number are less than n 2^-36 of the sum) and none overflowed, so the quotient is the softmax to the precision of
// its 16-bit factors. If any row of the call fails, everything is computed again by rows, with the running maximum.
// A prior is more keys that no query is ordered against: what is not used of it has values and a one of 0.
// (FlashDecoding++, Hong et al. 2024, does the same with one guessed maximum for all rows.)

// The queries of piece `ig` that see a key of tile `j`, in whole tiles of 128 from the start of `ig` on.
fn looks_at(ig, j, causal, window) {
    return clip(ig, causal ? j.start : 0, window > 0 ? round_up(j.end - 1 + window, 128) : ig.end);
}

// The keys that the queries of `ig` see, from a multiple of 128 on.
fn visible(ig, keys, causal, window) {
    let lo = window == 0 ? 0 : max(0, ig.start - window + 1) / 128 * 128;
    return causal ? clip(range(keys), lo, ig.end) : range(keys);
}

// Which of two cores computes block `t` of `n` of head `b`, where later blocks see more keys. From the last block on it is
// 0 1 1 0 0 1 1 0 ..., the other way round for the next head: both cores have equally many of long and short.
fn owner(t, n, b) { return ((n - t) / 2 + b) % 2; }

// The same by registers, for tiles of half a block: `x` is the number of tiles after it modulo 8, the last block counted
// whole; `sign` is 1 for the core 0 and even heads or the core 1 and odd ones, else -1. Positive when the tile is ours.
fn ours(x, sign) { return ((2 * x - 7) * (2 * x - 7) - 16) * sign; }

// The distance in tiles between queries and keys from which on a window hides keys of the tile.
fn first_partial(window) { return max(0, (window + 127) / 128 - 1); }

// 4-byte factors go through the PE in one pass, rounded to tf32.
fn one_pass(t) { return t.dtype == fp32 ? t.bits(tf32) : t; }

// dst[d, n] receives the rows src[n, d], which lie in HBM, turned: by the transfer, or by the PE through `bank` where a
// transfer does not turn 4 bytes. One that moves (`moves`) turns multiples of 16 rows; the few behind them go element by element.
fn turn(dst, src, n, bank, moves) {
    let d = src.axis(1).size;
    if (src.order == 1) { dst[:, n] <- src[n, :]'; }
    else if (bytes(src.dtype) == 2) {
        let even = clip(n, 0, moves ? n.start + n.size / 16 * 16 : n.end);
        if (even.size > 0) { dst[:, even] <- src[even, :]'; }
        if (even.size < n.size) { dst[:, even.end..n.end] <- src[even.end..n.end, :]' via elements; }
    } else {
        for c in tiles(n, 512) {
            sbuf rows[c by 128, d]: src.dtype bufs 3 <- src[c, :];
            for j in tiles(c, 128) { bank[0:d, ds(j.start - c.start, j.size)] = rows[j, :]'; }
            dst[:, c] = bank[0:d, 0:c.size];
        }
    }
}

// The same in a hardware loop, where the row is a register: `ready` when it lies turned, else by the PE.
fn turn_by_pe(dst, src, ready, turned) {
    let d = src.axis(1).size;
    if (ready) { dst <- src'; }
    else {
        sbuf rows[128, d]: src.dtype bufs 1;
        for j in tiles(src.axis(0).size, 128) {
            rows[0:j.size, :] <- src[j, :];
            turned[0:d, 0:j.size] = rows[0:j.size, :]';
            dst[:, j] = turned[0:d, 0:j.size];
        }
    }
}

// e[j, i] = exp(scale * (keys j times queries i) + mask of j) for the tiles of keys `c`, 0 where causality or the window
// hide the key.
fn exponentials(e, p, kt, qt, ig, c, scale, masked, mk, causal, window) {
    var whole = !masked;                                        // one instruction for all of it
    for j in tiles(c, 128) {
        let see = looks_at(ig, j, causal, window);
        p[j, see] = one_pass(kt)[:, j]' @ one_pass(qt)[:, see];
        whole = whole && see.size == ig.size;
    }
    for j in tiles(c, 128) {
        let see = looks_at(ig, j, causal, window);
        if (masked) { e[j, see] = exp(p[j, see] * scale + mk[j, :]); }
        else if (!whole) { e[j, see] = exp(p[j, see] * scale); }
        else if (j.first) { e[c, :] = exp(p * scale); }
        for i in tiles(see, 128) {
            let away = i.start / 128 - j.start / 128;
            let far = first_partial(window);
            if (causal && away == 0) { e[j, i] = select(row(j) - col(i) <= 0, e[j, i], 0.0); }
            if (window > 0 && away >= far) { e[j, i] = select(col(i) - row(j) < window, e[j, i], 0.0); }
        }
    }
}

// The same for a prior, whose keys the window leaves behind one by one: a query sees key j before `until` of j.
fn look_back(e, p, kp, qt, see, c, scale, until) {
    for j in tiles(c, 128) {
        p[j, see] = one_pass(kp)[:, j]' @ one_pass(qt)[:, see];
        sbuf z[j, see]: fp32 bufs 4 = select(col(see) < until[j, :], p[j, see], lowest);
        e[j, see] = exp(z * scale);
    }
}

fn products(acc, e, va, ig, c, causal, window) {
    for j in tiles(c, 128), i in tiles(looks_at(ig, j, causal, window), 128) { acc[i, :] += one_pass(e)[j, i]' @ one_pass(va)[j, :]; }
}

// vt[SP by 128, d + 1] receives the values of the prior and a column of ones, all 0 where `counts` is 0: a position that
// is not used then counts in no sum, whatever its key is.
fn prior_values(vt, src, counts) {
    let d = src.axis(1).size;
    vt = 0.0 on pool;
    for c in tiles(vt.axis(0).size, 2048) {
        sbuf rows[c by 128, d]: src.dtype bufs 1 <- src[c, :];
        for j in tiles(c, 128) { vt[j, 0:d] = select(repeat(counts[j, :], d), rows[j, :], vt[j, 0:d]); }
    }
    vt[:, d:d + 1] = counts;
}

// One tile of queries by rows, exactly: sections of keys, running maximum. `pos` holds the positions of its queries, `sk`
// the sink or a low number; `ready`: the queries lie turned. With a prior, `kp`, `vp` and `used` are its keys, values and
// their number, and come first.
fn by_rows(qs, ready, os, masked, mask, sk, kt, vt, prior, kp, vp, used, pos, turned, scale, causal, window) {
    let n = os.axis(0).size;
    let d = os.axis(1).size;
    let keys = kt.axis(1).size;
    let sec = min(prior ? max(keys, kp.axis(1).size) : keys, 2048);
    sbuf qt[d, n]: qs.dtype;
    if (ready) { qt <- qs; }
    else {
        sbuf qr[n, d]: qs.dtype <- qs;
        turned[0:d, 0:n] = qr';
        qt = turned[0:d, 0:n];
    }
    sbuf neg[n, 1]: fp32 = sk * -1.0;                           // minus the largest score so far
    sbuf acc[n, d + 1]: fp32 = 0.0;
    sbuf z[n, sec]: fp32;
    sbuf e[n, sec]: qs.dtype;
    sbuf et[128, n]: qs.dtype;
    sbuf lo[n, 1]: fp32 = pos - (window == 0 ? keys : window - 1);
    sbuf top[n, 1]: fp32;
    sbuf alpha[n, 1]: fp32;
    sbuf part[n, 1]: fp32;
    psum p[n, 512]: fp32;
    psum po[n, d]: fp32;
    if (masked) { sbuf mk[all, 512]: fp32; }
    if (prior) {
        sbuf first[n, 1]: fp32 = pos + used;                    // the first key of the prior that the window reaches
        sbuf end[n, 1]: fp32 = first - pos;
        first = first - (window == 0 ? 2 * 131072 : window - 1);
    }
    for side in (prior ? 0 : 1)..2, s in tiles(side == 0 ? kp.axis(1).size : keys, sec) {
        let ks = side == 0 ? kp : kt;
        let vs = side == 0 ? vp : vt;
        let zs = z[:, 0:s.size];
        for j in tiles(s, 512) {
            let zj = z[:, ds(j.start - s.start, j.size)];
            p[:, 0:j.size] = qt' @ ks[:, j];
            zj = p[:, 0:j.size] * scale;
            if (masked) {
                mk[:, 0:j.size] <- mask[0, j];
                zj = zj + mk[:, 0:j.size];
            }
            if (side == 0) { zj = select(first <= col(j) && col(j) < end, zj, lowest); }
            else if (causal) { zj = select(lo <= col(j) && col(j) <= pos, zj, lowest); }
        }
        top = -max(zs, axis: free);
        top = minimum(top, neg);                                // never more than 3e38: -inf alone would be no number
        alpha = top - neg;
        alpha = exp(alpha);
        neg = top;
        e[:, 0:s.size] = exp(zs + neg) reduce add into part;
        for j in tiles(s, 128) {
            turned[0:j.size, 0:n] = e[:, ds(j.start - s.start, j.size)]';
            et[0:j.size, :] = turned[0:j.size, 0:n];
            if (j.first) { po = et[0:j.size, :]' @ vs[j, 0:d]; } else { po += et[0:j.size, :]' @ vs[j, 0:d]; }
        }
        acc[:, 0:d] = acc[:, 0:d] * alpha + po;
        acc[:, d:d + 1] = acc[:, d:d + 1] * alpha + part;
    }
    part = sk + neg;
    part = exp(part);
    part = part + acc[:, d:d + 1];
    part = 1.0 / part;
    os <- acc[:, 0:d] * part;
}

// The rows of head b to storage that has them inside: all tiles, or those that `ours` gives to `sign` when the first is `x`.
fn turn_out(o, src, b, rows, turned, x, sign) {
    let d = src.axis(1).size;
    for t in tiles(rows, 128) {
        if (x >= 0 && ours((x - t.index) % 8, sign) <= 0) { continue; }
        sbuf ot[t, d]: o.dtype <- src[t, :];
        turned[0:d, 0:t.size] = ot';
        sbuf to[d, t]: o.dtype = turned[0:d, 0:t.size];
        o[b, t, :]' <- to;
    }
}

// ---- long heads in hardware loops ----
// Queries and keys in blocks of `n`: a turn works on one block of each, those on the diagonal or those before it. Without a
// maximum the sums of a row just add up over its turns.

// The length of a block, 0 when heads are better left unrolled: a turn costs some 3 us that nothing hides, a body of 4096
// takes 100 ms to compile.
fn block_of(S, heads) {
    if (heads * S * S < 3 * 8192 * 8192) { return 0; }
    if (S <= 4096) { return S >= 3072 && S % 512 == 0 ? S : 0; }
    for size in [4096, 4608, 5120, 3584, 3072] { if (S % size == 0) { return size; } }
    return 0;
}

// Keys and values of tile rows `c` of a block whose first row is `from`, so many rows at once.
fn load_keys(kt, va, k, v, from, c, step) {
    for j in tiles(c, step) {
        kt[:, j] <- k[ds(from + j.start, j.size), :]';
        va[j, 0:v.axis(1).size] <- v[ds(from + j.start, j.size), :];
    }
}

// What a turn finds on chip of its keys; the rest it loads first. The transfers of both halves are over when wanted.
fn early(n) { return n / 1024 * 512; }

// The quotients of the queries `ig`, from sums and products to results.
fn quotients(to, sum, ig, sink, es, invs, sums) {
    let d = to.axis(1).size;
    for i in tiles(256, 128) {
        let t = (ig.start + i.start) / 128;
        if (sink) { sum[i, d:d + 1] = sum[i, d:d + 1] + es; }
        invs[:, t:t + 1] = 1.0 / sum[i, d:d + 1];
        to[i, :] = sum[i, 0:d] * invs[:, t:t + 1] reduce add into sums[:, t:t + 1];
    }
}

// The turn: queries `qt` from row `qrow`, keys from row `krow`. Those of the next turn follow as soon as the last use of
// their place is over. On the diagonal the sums of the last queries wait in `held`: a turn ends when its stores do.
fn turn_of_loop(diagonal, n, q, k, v, o, qt, kt, va, so_far, held, invs, sums, sink, es, qrow, krow, qnext, knext, scale) {
    let d = kt.axis(0).size;
    let soon = min(early(n) + 512, n);
    load_keys(kt, va, k, v, krow, early(n)..soon, 512);
    load_keys(kt, va, k, v, krow, soon..n, 1024);
    let piece = early(n) % 1024 == 0 ? 1024 : 512;              // few transfers, yet not all at the end
    qt[:, n - 256:n] <- q[ds(qrow + (n - 256), 256), :]';
    for turn in 0..n / 256 {
        let at = (turn < 2 ? 1 - turn : turn) * 256;            // not first those that see little
        let ig = at..at + 256;
        let last = ig.end == n;
        psum acc[ig by 128, d + 1]: fp32 align 2048 bufs 2;
        let open = diagonal ? range(ig.start) : range(n);
        let queries = qt[:, ig];
        if (diagonal) { sbuf ed[ig by 128, ig]: bf16 bufs 2; }  // seen in part only: first computed, last used
        for seen in (diagonal ? 0 : 1)..2, c in tiles(seen == 0 ? ig : open, 256) {
            psum p[c by 128, ig]: fp32 bufs 4;
            if (seen == 0) {
                exponentials(ed, p, kt, qt, ig, c, scale, false, kt, true, 0);
                continue;
            }
            for j in tiles(c, 128) { p[j, :] = kt[:, j]' @ queries; }
            sbuf e[c by 128, ig]: bf16 bufs 6 = exp(p * scale);
            for j in tiles(c, 128), i in tiles(ig, 128) { acc[i, :] += e[j, i]' @ va[j, 0:d + 1]; }
            if (last && c.end % piece == 0 && c.end <= early(n)) { load_keys(kt, va, k, v, knext, c.end - piece..c.end, piece); }
        }
        if (!diagonal) {
            for i in tiles(ig, 128) { so_far[i, :] = so_far[i, :] + acc[i, :]; }
            continue;
        }
        products(acc, ed, va[:, 0:d + 1], ig, ig, true, 0);
        // Queries of the next turn: two groups at once, the last but one alone.
        let alone = turn == max(n / 256 - 2, n == 512 ? 1 : 0);
        let done = alone ? n - 256 : (turn + 1) * 256;
        if (alone || turn % 2 == 1 && done < n) {
            let used = done - (alone ? 256 : 512)..done;
            qt[:, used] <- q[ds(qnext + used.start, used.size), :]';
        }
        if (!last) {
            sbuf ot[256 by 128, d]: o.dtype bufs 3;
            sbuf sum[256 by 128, d + 1]: fp32 bufs 3;
        }
        for i in tiles(ig, 128) {
            (last ? held : sum)[ds(i.start - ig.start, 128), :] = so_far[i, :] + acc[i, :];
            if (last) { so_far[i, :] = 0.0 on dve; } else { so_far[i, :] = 0.0 on pool; }
        }
        if (!last) {
            quotients(ot, sum, ig, sink, es, invs, sums);
            o[ds(qrow + ig.start, 256), :] <- ot;
        }
    }
}

// What the last turn on the diagonal held back.
fn hold_no_more(n, o, held, invs, sums, passed, fine, sink, es, before) {
    sbuf ot[256 by 128, o.axis(1).size]: o.dtype bufs 3;
    quotients(ot, held, n - 256..n, sink, es, invs, sums);
    o[ds(before + (n - 256), 256), :] <- ot;
    judge(passed, invs, sums, n / 128);
    fine = minimum(fine, passed);
}

// passed = 1 in partitions where all rows did. A sum of a row's results that is no finite number makes its product
// with 0 one that equals nothing.
fn judge(passed, invs, sums, n) {
    sbuf v0[128, n]: fp32 bufs 2 = sums * 0.0;
    sbuf v1[128, n]: fp32 bufs 2 = invs + v0;
    sbuf v2[128, n]: fp32 bufs 2 = minimum(maximum(v1, 7.5e-37), 1.2e27);   // 2^-120, 2^90
    sbuf same[128, n]: fp32 bufs 2 = v1 == v2;
    passed = min(same, axis: free);
}

// Place for keys and values of a head, turned and with their column of ones, and for those of a prior.
// `pitch`: elements of a row of values.
fn keys_of(k, v, pitch, slots, SP) {
    let (Skv, d) = (k.shape[1], k.shape[2]);
    sbuf kt[d, Skv]: k.dtype bufs slots;
    sbuf va[Skv by 128, pitch]: v.dtype bufs slots;
    va[:, d:d + 1] = 1.0 on pool;
    if (SP == 0) { return (kt, va, kt, va); }
    sbuf kp[d, SP]: k.dtype bufs slots;
    sbuf vp[SP by 128, d + 1]: v.dtype bufs slots;
    return (kt, va, kp, vp);
}

// Values of the keys c. A moving transfer goes in elements that divide a row and the distance of partitions: others take records by
// the partition, so that tiles come one by one.
fn load_values(va, v, c, moves) {
    let d = v.shape[1];
    for j in tiles(c, moves && 262144 % (d * bytes(v.dtype)) > 0 ? 128 : c.size) { va[j, 0:d] <- v[j, :]; }
}

fn load_prior(on_chip, prior, CH, bank, moves) {
    let (kt, va, kp, vp) = on_chip;
    let (SP, k, v, counts, until, back) = prior;
    for c in tiles(SP, CH) { turn(kp, k, c, bank, moves); }
    prior_values(vp, v, counts);
}

// One head: its rows o of queries q, keys k and values v, which load when the first query wants them: `state` says up to where, and
// whether the prior has. What may be absent comes with a word on whether it is there, a prior with its length. `number` is that of
// the head where cores take blocks of queries in turns; `moves`: the head is a register, and the code serves all.
fn head(o, q, k, v, on_chip, prior, mask_row, sink_of, rows, bank, state, sizes, moves, number, by_turns, passed) {
    let (kt, va, kp, vp) = on_chip;
    let (SP, k_prior, v_prior, counts, until, back) = prior;
    let (masked, mask) = mask_row;
    let (sinks, sink) = sink_of;
    let (QG, KB, CH, scale, causal, window, plain) = sizes;
    let (in_turns, blocks) = by_turns;
    let (Skv, d) = (k.shape[0], k.shape[1]);
    let tiles_q = ceil_div(q.shape[0], 128);
    let et = q.dtype == fp32 ? fp32 : bf16;                     // exponentials reach far: no fp16
    let (first, was_ready) = state;
    var loaded = first;                                         // keys up to here are on chip or on their way
    var ready = was_ready;                                      // and so is the prior
    if (masked) { sbuf mk[Skv by 128, 1]: fp32 bufs 2 <- mask.view("s -> s 1"); } else { let mk = kt; }
    if (sinks) {
        sbuf es[all, 1]: fp32 bufs 2 <- sink;
        es = exp(es);
    }
    sbuf invs[128, tiles_q]: fp32 bufs 2 = 1.0;
    sbuf sums[128, tiles_q]: fp32 bufs 2 = 0.0;
    for ig in tiles(rows, QG) {
        if (in_turns && owner(ig.start / QG, blocks, number) != core) { continue; }
        sbuf qt[d, ig]: q.dtype bufs 3;
        turn(qt, q, ig, bank, moves);
        let looks_back = clip(ig, 0, back);             // its queries that may see the prior
        if (SP > 0 && !ready && looks_back.size > 0) {
            load_prior(on_chip, prior, CH, bank, moves);
            ready = true;
        }
        let live = visible(ig, Skv, causal, window);
        for c in tiles(clip(range(Skv), max(loaded, live.start), round_up(live.end, 128)), CH) {
            turn(kt, k, c, bank, moves);
            load_values(va, v, c, moves);
            loaded = c.end;
        }
        let keys = one_pass(kt);
        let queries = one_pass(qt);
        let values = one_pass(va)[:, 0:d + 1];
        psum acc[ig by 128, d + 1]: fp32 align 2048 bufs 2;
        // The keys at the diagonal come first and are used last: nothing waits for their masks.
        let open = causal ? clip(live, 0, ig.start) : live;
        let closed = causal ? clip(live, ig.start, Skv) : clip(live, 0, 0);
        if (causal) { sbuf ed[closed by 128, ig]: et bufs 2; }
        let old = clip(range(SP), 0, looks_back.size > 0 ? SP : 0);
        for part in 0..3 {
            for c in tiles(part == 0 ? closed : part == 1 ? old : open, KB * 128) {
                psum p[c by 128, ig]: fp32 bufs q.dtype == fp32 ? 3 : 4;
                if (causal && part == 0) {
                    exponentials(ed, p, kt, qt, ig, c, scale, masked, mk, causal, window);
                    continue;
                }
                sbuf e[c by 128, ig]: et bufs 6;
                if (part == 1 && window > 0) {
                    look_back(e, p, kp, qt, looks_back, c, scale, until);
                    let weights = one_pass(e);
                    for j in tiles(c, 128), i in tiles(looks_back, 128) { acc[i, :] += weights[j, i]' @ one_pass(vp)[j, :]; }
                } else if (part == 1 || plain) {        // nothing hidden: few steps of the trace for most of the work
                    let ks = part == 1 ? one_pass(kp) : keys;
                    let vs = part == 1 ? one_pass(vp) : values;
                    for j in tiles(c, 128) { p[j, :] = ks[:, j]' @ queries; }
                    e = exp(p * scale);
                    let weights = one_pass(e);
                    for j in tiles(c, 128), i in tiles(ig, 128) { acc[i, :] += weights[j, i]' @ vs[j, :]; }
                } else {
                    exponentials(e, p, kt, qt, ig, c, scale, masked, mk, causal, window);
                    products(acc, e, va[:, 0:d + 1], ig, c, causal, window);
                }
            }
        }
        if (causal) { products(acc, ed, va[:, 0:d + 1], ig, closed, causal, window); }
        sbuf ot[ig by 128, d]: o.dtype bufs 3;
        sbuf sum[ig by 128, d + 1]: fp32 bufs 3;
        for i in tiles(ig, 128) { sum[i, :] = acc[i, :]; }
        for i in tiles(ig, 128) {
            let t = i.start / 128;
            if (sinks) { sum[i, d:d + 1] = sum[i, d:d + 1] + es; }
            invs[0:i.size, t:t + 1] = 1.0 / sum[i, d:d + 1];
            ot[i, :] = sum[i, 0:d] * invs[0:i.size, t:t + 1] reduce add into sums[0:i.size, t:t + 1];
        }
        o[ig, :] <- ot;
    }
    judge(passed, invs, sums, tiles_q);
    return (loaded, ready);
}

leaf attention_turned for attention on trn2, trn3 {
    where q.dtype in {bf16, fp16, fp32} && k.dtype == q.dtype && v.dtype == q.dtype : "q, k and v must share bf16, fp16 or fp32";
    where o.inner == 2 || bytes(o.dtype) == 2 : "results of 4 bytes do not turn on their way out";
    where q.dtype != fp32 || Sq * Skv >= 4194304 : "fp32 is worked on as tf32 here, for long sequences only";
    layout q: [B, Sq, d] or [B, d, Sq];
    layout k: [Bkv, Skv, d] or [Bkv, d, Skv];
    layout o: [B, Sq, d] or [B, d, Sq];
    layout k_prior: [Bkv, Sp, d] or [Bkv, d, Sp];
    where d >= 2 && d <= 128 : "the head dimension must be 2 to 128";
    where Sq >= 64 && Skv >= 64 : "short rows are for the leaf that packs them";
    where B % Bkv == 0 : "query heads must be whole groups of key heads";
    where causal || window == 0 : "a window needs causal attention";
    where !causal || Sq <= Skv : "every query must have its tile of keys";
    where !present(mask) || B % Bm == 0 : "heads must be whole groups of mask rows";
    where present(v_prior) == present(k_prior) && present(prior_used) == present(k_prior) : "a prior is keys, values and their number";
    where !present(k_prior) || k_prior.dtype == q.dtype && v_prior.dtype == q.dtype && !present(mask)
        : "a prior has the dtype of q, and no mask";
    where !present(k_prior) || window == 0 || scale > 0.0 : "the lowest number times scale must stay the lowest";
    let size = bytes(q.dtype);
    let tiles_q = ceil_div(Sq, 128);
    let SP = present(k_prior) ? Sp : 0;
    // Heads in a hardware loop: what the trace has no steps for otherwise. Each 128 queries and keys take some 32, or 130 where any
    // may be hidden.
    let tall = ceil_div(Sq, 128) * (ceil_div(!causal ? Skv : window > 0 ? min(window + 128, Skv) : (Skv + 256) / 2, 128) + (present(k_prior) ? ceil_div(Sp, 128) : 0));
    param heads in {"unrolled", "loop"} = B / cores * tall * (window > 0 || present(mask) ? 130 : 32) > 3900000 ? "loop" : "unrolled";
    where heads == "unrolled" || o.inner == 2 : "results turned on their way out have no loop";
    let slim = (Skv + SP) * size + ceil_div(SP, 128) * (d + 1) * size;      // keys of one head, and the values of a prior
    // A moving transfer goes in elements that divide a row and its distance to the next one.
    let pitch = heads == "unrolled" ? d + 1 : slim + ceil_div(Skv, 128) * 2 * d * size < 147456 ? 2 * d : d % 2 == 0 ? d * 3 / 2 : d + 1;
    let resident = slim + ceil_div(Skv, 128) * pitch * size;
    param twice in {1, 2} = heads == "loop" ? 1 : 2;            // slots for them
    param step in {0, 1, 512, 1024, 2048, 4096} = 0;            // of a hardware loop; 0: by the length, 1: no loop
    where step <= 1 || causal && Sq % step == 0 : "blocks must divide the queries";
    where twice * resident + 2 * ceil_div(min(SP, 2048), 128) * (d + 1) * size + 2 * (tiles_q + B) * 4 + 3 * 512 * size
          + 8 * 1024 * size + 8 * 2048 <= sbuf.partition
        : "keys and values of one head must stay on chip";
    let seen = !causal ? Skv : window > 0 && window + 128 < Skv ? window + 128 : (Skv + 256) / 2;
    let back = window > 0 ? min(Sq, round_up(window - 1, 128)) : Sq;       // queries that may see the prior
    let columns = B * (Sq * seen + back * SP) / 128;            // of scores
    cost pe: columns * (135 + max(64, d + 1) + 7) / 128, act: columns * 1.1 + B * (Sq / 2 + 800),
         hbm: bytes(q) + bytes(o) + bytes(k) + bytes(v) + 2 * Bkv * SP * d * size;
    tolerance 2e-2, 1e-5;
    cases (B: 2, Bkv: 2, Sq: 300, Skv: 300, d: 64, causal: true), (B: 4, Bkv: 2, Sq: 130, Skv: 700, d: 128, Bm: 2, with: "mask sink"),
          (B: 2, Bkv: 1, Sq: 1100, Skv: 1100, d: 40, causal: true, window: 130, with: "sink"),
          (B: 1, Bkv: 1, Sq: 640, Skv: 640, d: 128, causal: true, window: 128, dtype: fp16),
          (B: 2, Bkv: 1, Sq: 600, Skv: 601, d: 64, scale: 40.0, causal: true, window: 200, with: "sink"),
          (B: 2, Bkv: 2, Sq: 200, Skv: 2100, d: 128, scale: 40.0, with: "mask", Bm: 1),
          (B: 1, Bkv: 1, Sq: 2048, Skv: 2048, d: 64, causal: true, scale: 0.125, dtype: fp32),
          (B: 2, Bkv: 1, Sq: 300, Skv: 300, d: 64, Sp: 200, causal: true, window: 160, with: "sink k_prior v_prior prior_used"),
          (B: 1, Bkv: 1, Sq: 200, Skv: 200, d: 32, Sp: 130, scale: 40.0, with: "k_prior v_prior prior_used");

    let G = B / Bkv;
    let plain = window == 0 && !present(mask);                  // only keys at the diagonal are hidden from anybody
    let QG = 256;                                               // queries of a group: its sums take two PSUM banks, twice
    let KB = 2;                                                 // tiles of keys of an exponential: one bank, four times
    let CH = Skv <= 4096 ? 512 : 2048;                          // keys of one load
    // Two cores share the key heads, else the query heads of each, else (as under a mask) the queries: in two halves where all see equally
    // many keys, block by block where not. Each core judges its own rows, and computes those again if it must.
    let kvs = Bkv % cores == 0 ? share(range(Bkv), core, cores) : range(Bkv);
    let hs = Bkv % cores > 0 && G % cores == 0 && !present(mask) ? share(range(G), core, cores) : range(G);
    let by_query = kvs.size * hs.size * cores > B;
    let in_turns = by_query && causal && window == 0;
    let blocks = ceil_div(Sq, QG);
    let mine = by_query && !in_turns ? share(range(blocks), core, cores) : range(blocks);
    let rows = clip(range(Sq), mine.start * QG, mine.end * QG);
    if (q.dtype == fp32) { psum bank[128, 512]: fp32; } else { let bank = 0; }
    if (SP > 0) {
        sbuf used[all, 1]: fp32 <- prior_used;
        sbuf at[SP by 128, 1]: fp32;                            // positions in the prior
        for j in tiles(SP, 128) { at[j, :] = row(j); }
        sbuf counts[SP by 128, 1]: i16 = at < used;             // 1 for the positions that are used
        sbuf until[SP by 128, 1]: fp32 = at - used + window;    // the first query whose window has left them behind
    }
    // Hardware loops serve 2-byte rows that whole elements of transfers fill, as they lie, and cores that have heads of their own.
    let in_blocks = plain && causal && SP == 0 && bytes(q.dtype) == 2 && d in {64, 128} && q.order + k.order + o.order == 0 && !by_query;
    let rolls = heads == "loop" && !in_turns;                    // cores in turns take other blocks of the next head
    let n = !in_blocks || step == 1 ? 0 : step > 1 ? step : block_of(Sq, kvs.size * hs.size);
    if (n > 0) {
        let Q = Sq / n;
        let rows_q = q.view("b s d -> (b s) d");
        let rows_k = k.view("b s d -> (b s) d");
        let rows_v = v.view("b s d -> (b s) d");
        let rows_o = o.view("b s d -> (b s) d");
        sbuf kt[d, n]: k.dtype bufs 1;
        sbuf va[n by 128, 2 * d]: v.dtype bufs 1;               // steps of a moving transfer are whole rows
        va[:, d:d + 1] = 1.0 on pool;
        sbuf qt[d, n]: q.dtype bufs 1;
        sbuf so_far[n by 128, d + 1]: fp32 bufs 1 = 0.0;
        sbuf invs[128, n / 128]: fp32 bufs 1 = 1.0;
        sbuf sums[128, n / 128]: fp32 bufs 1 = 0.0;
        sbuf held[256 by 128, d + 1]: fp32 bufs 1 = 1.0;
        sbuf es[all, 1]: fp32 bufs 1 = 0.0;
        sbuf fine[128, 1]: fp32 bufs 1 = 1.0;
        sbuf passed[128, 1]: fp32 bufs 1;
        reg h: i32 = 0;                                         // head of its group, and block of the head
        reg qi: i32 = 0;
        reg b: i32 = kvs.start * G + hs.start;
        reg first: i32 = kvs.start * Skv;                       // rows of its first key, of the block, of the one before
        reg qrow: i32 = (kvs.start * G + hs.start) * Sq;
        reg krow: i32 = kvs.start * Skv;
        reg before: i32 = (kvs.start * G + hs.start) * Sq;
        load_keys(kt, va, rows_k, rows_v, first, range(early(n)), 1024);
        for ig in tiles(n - 256, 1024) { qt[:, ig] <- rows_q[ds(qrow + ig.start, ig.size), :]'; }
        loop turn in 0..kvs.size * hs.size * Q {
            reg over: i32 = max(qi - (Q - 2), Q == 1 ? 1 : 0);  // 1 when the next block is another head's
            reg over_h: i32 = max(h + over - (hs.size - 1), 0); // or another group's
            reg qnext: i32 = min(qrow + n + over_h * ((G - hs.size) * Sq), ((kvs.end - 1) * G + hs.end) * Sq - n);
            reg knext: i32 = min(first + over_h * Skv, (kvs.end - 1) * Skv);
            if (Q > 1) {
                krow = first;
                loop kj in 0..qi {
                    turn_of_loop(false, n, rows_q, rows_k, rows_v, rows_o, qt, kt, va, so_far, held, invs, sums, present(sink), es,
                                 qrow, krow, qnext, krow + n, scale);
                    krow = krow + n;
                }
            } else { krow = first; }
            hold_no_more(n, rows_o, held, invs, sums, passed, fine, present(sink), es, before);
            if (present(sink)) {
                es <- sink[ds(b, 1)];
                es = exp(es);
            }
            turn_of_loop(true, n, rows_q, rows_k, rows_v, rows_o, qt, kt, va, so_far, held, invs, sums, present(sink), es, qrow, krow,
                         qnext, knext, scale);
            before = qrow;
            qrow = qnext;
            first = knext;
            b = b + over + over_h * (G - hs.size);
            qi = qi + 1 - over * Q;
            h = h + over - over_h * hs.size;
        }
        hold_no_more(n, rows_o, held, invs, sums, passed, fine, present(sink), es, before);
    } else {
        let sizes = (QG, KB, CH, scale, causal, window, plain);
        let by_turns = in_turns ? (true, blocks) : (false, 0);
        let no = (false, 0);
        if (rolls) {
            sbuf fine[128, 1]: fp32 bufs 1 = 1.0;
            sbuf passed[128, 1]: fp32 bufs 1;
            if (present(mask)) {
                reg mrow: i32 = kvs.start * G / (B / Bm);
                reg serves: i32 = B / Bm - kvs.start * G % (B / Bm);    // heads that the row still serves
            }
            loop kv in kvs.start..kvs.end {
                let on_chip = keys_of(k, v, pitch, twice, SP);
                let prior = SP > 0 ? (SP, k_prior[kv, :, :], v_prior[kv, :, :], counts, until, back) : (0, 0, 0, 0, 0, back);
                if (hs.size > 1) {                              // what several heads share cannot come in the first one's turn
                    let (kt, va, kp, vp) = on_chip;
                    for c in tiles(Skv, CH) {
                        turn(kt, k[kv, :, :], c, bank, true);
                        load_values(va, v[kv, :, :], c, true);
                    }
                    if (SP > 0) { load_prior(on_chip, prior, CH, bank, true); }
                }
                if (hs.size == 1) {
                    reg b: i32 = kv * G + hs.start;
                    let done = head(o[b, :, :], q[b, :, :], k[kv, :, :], v[kv, :, :], on_chip, prior, present(mask) ? (true, mask[mrow, :]) : no,
                                   present(sink) ? (true, sink[ds(b, 1)]) : no, rows, bank, (-1, false), sizes, true, 0, by_turns, passed);
                    fine = minimum(fine, passed);
                    if (present(mask)) {
                        serves = serves - 1;
                        when (serves == 0) {
                            mrow = mrow + 1;
                            serves = B / Bm;
                        }
                    }
                } else {
                    loop h in hs.start..hs.end {
                        reg b: i32 = kv * G + h;
                        let done = head(o[b, :, :], q[b, :, :], k[kv, :, :], v[kv, :, :], on_chip, prior, present(mask) ? (true, mask[mrow, :]) : no,
                                       present(sink) ? (true, sink[ds(b, 1)]) : no, rows, bank, (Skv, true), sizes, true, 0, by_turns, passed);
                        fine = minimum(fine, passed);
                        if (present(mask)) {
                            serves = serves - 1;
                            when (serves == 0) {
                                mrow = mrow + 1;
                                serves = B / Bm;
                            }
                        }
                    }
                }
            }
        } else {
            sbuf fine[128, kvs.size * hs.size]: fp32;               // by head: 1 where the rows passed
            for kv in kvs.start..kvs.end {
                let on_chip = keys_of(k, v, pitch, twice, SP);
                let prior = SP > 0 ? (SP, k_prior[kv, :, :], v_prior[kv, :, :], counts, until, back) : (0, 0, 0, 0, 0, back);
                var state = (-1, false);
                for h in hs.start..hs.end {
                    let b = kv * G + h;
                    let at = (kv - kvs.start) * hs.size + h - hs.start;
                    state = head(o[b, :, :], q[b, :, :], k[kv, :, :], v[kv, :, :], on_chip, prior, present(mask) ? (true, mask[b / (B / Bm), :]) : no,
                                 present(sink) ? (true, sink[ds(b, 1)]) : no, rows, bank, state, sizes, false, b, by_turns, fine[:, at:at + 1]);
                }
            }
        }
    }
    sbuf all_fine[128, 1]: fp32 = min(fine, axis: free);
    sbuf ones[128, 1]: fp32 = 1.0;
    psum count[1, 1]: fp32 = ones' @ all_fine;
    sbuf rows_fine[1, 1]: i32 = count;
    reg good: i32 <- rows_fine[0];
    when (good < 128) {
        let ready = q.order == 1;
        if (!ready) { let qr = q.view("b s d -> (b s) d"); }
        let turns = o.order == 1;
        if (turns) {
            hbm oc[cores, Sq, d]: o.dtype;                      // rows of a head before they turn
            let or_ = oc[core, :, :];
        } else { let or_ = o.view("b s d -> (b s) d"); }
        psum turned[128, 128]: transposed(q.dtype);
        let heads = present(mask) ? B / Bm : B;                 // that a row of the mask serves
        let before = kvs.start * G;                             // heads of the other core
        // Turns that are alike are proved once: what only some kernels count, the others do not.
        if (present(mask)) {
            reg mrow: i32 = before / heads;
            reg serves: i32 = heads - before % heads;           // heads that the row still serves
        }
        if (in_turns) { reg sign: i32 = 1 - 2 * core; }
        let whole = max(rows.start, rows.end / 128 * 128);      // queries in whole tiles
        loop kv in kvs.start..kvs.end {
            sbuf kt[d, Skv]: k.dtype bufs 1;
            turn_by_pe(kt, k[kv, :, :], k.order == 1, turned);
            if (SP > 0) {
                sbuf kp[d, SP]: k.dtype bufs 1;
                turn_by_pe(kp, k_prior[kv, :, :], k_prior.order == 1, turned);
                sbuf vp[SP by 128, d + 1]: v.dtype bufs 1;
                prior_values(vp, v_prior[kv, :, :], counts);
            }
            sbuf vt[Skv by 128, d]: v.dtype bufs 1 <- v[kv, :, :];
            loop h in hs.start..hs.end {
                reg b: i32 = kv * G + h;
                if (in_turns) { reg turn_of: i32 = (2 * blocks - 1) % 8; }  // of a tile of queries, as `ours` wants it
                sbuf pos[128, 1]: fp32 = row(range(128)) + rows.start;
                sbuf sk[128, 1]: fp32 = -3.0e38;
                if (present(sink)) { sk <- repeat(sink[ds(b, 1)].view("b -> b 1"), 128, axis: 0); }
                if (ready) {
                    hbm qs[cores, d, Sq]: q.dtype;              // a core's own
                    let qh = qs[core, :, :];
                    qh <- q[b, :, :]';
                }
                loop t in rows.start / 128..whole / 128 {
                    reg at: i32 = t * 128;
                    reg r: i32 = b * Sq + t * 128;
                    let own = in_turns ? ours(turn_of, sign) : 1;
                    when (own > 0) {
                        by_rows(ready ? qh[:, ds(at, 128)] : qr[ds(r, 128), :], ready, or_[ds(turns ? at : r, 128), :], present(mask),
                                present(mask) ? mask[ds(mrow, 1), :] : sk, sk, kt, vt, SP > 0, SP > 0 ? kp : kt, SP > 0 ? vp : vt,
                                SP > 0 ? used : sk, pos, turned, scale, causal, window);
                    }
                    pos = pos + 128.0;
                    if (in_turns) {
                        turn_of = turn_of - 1;
                        when (turn_of < 0) { turn_of = 7; }
                    }
                }
                if (whole < rows.end) {
                    let n = Sq - whole;
                    reg r: i32 = b * Sq + whole;
                    let own = in_turns ? ours(turn_of, sign) : 1;
                    when (own > 0) {
                        by_rows(ready ? qh[:, whole:Sq] : qr[ds(r, n), :], ready, turns ? or_[whole:Sq, :] : or_[ds(r, n), :], present(mask),
                                present(mask) ? mask[ds(mrow, 1), :] : sk, sk[0:n, :], kt, vt, SP > 0, SP > 0 ? kp : kt, SP > 0 ? vp : vt,
                                SP > 0 ? used : sk, pos[0:n, :], turned, scale, causal, window);
                    }
                }
                if (turns && !in_turns) { turn_out(o, or_, b, rows, turned, -1, 0); }
                else if (turns) {
                    when (sign > 0) { turn_out(o, or_, b, rows, turned, 2 * blocks - 1, 1); }
                    when (sign < 0) { turn_out(o, or_, b, rows, turned, 2 * blocks - 1, -1); }
                }
                if (in_turns) { sign = 0 - sign; }
                if (present(mask)) {
                    serves = serves - 1;
                    when (serves == 0) {
                        mrow = mrow + 1;
                        serves = heads;
                    }
                }
            }
        }
    }
}
