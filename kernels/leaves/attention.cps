// Attention: any grouping of heads, additive mask, causality, window, sinks.
//
// Loads are by rows of positions, many heads at a time; the PE turns what must be turned. Short rows of scores are worked
// on for several heads at once: [128 queries, heads, keys] in one PSUM bank and one instruction each. The sum of the
// exponentials is one more column of the values, of ones.

// The keys that rows `i` can see, from a multiple of 128 on: skipping is range arithmetic.
fn visible(i, keys, causal, window) {
    if (!causal) { return range(keys); }
    let lo = window == 0 ? 0 : max(0, i.start - window + 1) / 128 * 128;
    return clip(range(keys), lo, i.end);
}

// dst[pack*d by 128, heads/pack, n] receives rows[n by 128, heads, d] turned; `pack` heads lie one under the other. As
// many turned blocks as a PSUM bank holds go over in one copy.
fn turn_heads(dst, rows, heads, pack, d, n) {
    for part in 0..2 {                                          // whole groups of heads, then what is left
        let per = part == 0 ? pack : heads % pack;
        let first = part == 0 ? 0 : heads / pack;
        let groups = part == 0 ? heads / pack : min(1, per);
        for k in tiles(per * d, 128), c in tiles(n, 512), gs in tiles(groups, max(1, 512 / c.size)) {
            psum t[k, gs, c]: transposed(rows.dtype) bufs 1;
            for g in gs, s in tiles(c, 128) {
                if (per > 1) { t[:, g, s] = rows[s, ds((first + g.start) * pack, per), :].view("s g d -> s (g d)")'; }
                else { t[:, g, s] = rows[s, (first + g.start) * pack, k]'; }
            }
            dst[k, ds(first + gs.start, gs.size), c] = t;
        }
    }
}

// The same for rows that lie turned in HBM already: src is [d, all heads, n]. Head h goes below head h - 1 of its group.
fn load_turned(dst, src, heads, n, pack) {
    let d = src.axis(0).size;
    if (pack == 1) { dst <- src[:, heads, n]; }
    else {
        for g in 0..min(pack, heads.size) {
            dst[ds(g * d, d), 0:ceil_div(heads.size - g, pack), :] <- src[:, heads.start + g:heads.end:pack, n];
        }
    }
}

// p[i, j] = queries of head h times keys j of its key head.
fn scores(p, qt, h, kt, kv, j, pack, d) {
    if (pack > 1) {
        p = qt[ds(h % pack * d, d), h / pack, :]' @ kt[ds(kv % pack * d, d), kv / pack, j];
    } else {
        for k in tiles(d, 128) { p += qt[k, h, :]' @ kt[k, kv, j]; }
    }
}

// Of the columns j of z, those that row i must not see become the lowest number.
fn hide(z, i, j, causal, window) {
    if (causal && j.end > i.start + 1) { z = select(col(j) - row(i) <= 0, z, lowest); }
    if (window > 0 && j.start <= i.end - 1 - window) { z = select(row(i) - col(j) < window, z, lowest); }
}

leaf attention_rows for attention on trn1, trn2, trn3 {
    layout q: [B, Sq, d] or [B, d, Sq];
    layout k: [Bkv, Skv, d] or [Bkv, d, Skv];
    where q.dtype in {bf16, fp16, fp32} && k.dtype == q.dtype && v.dtype == q.dtype : "q, k and v must share bf16, fp16 or fp32";
    where d >= 2 && d <= 256 : "the head dimension must be 2 to 256";
    where B % Bkv == 0 : "query heads must be whole groups of key heads";
    where causal || window == 0 : "a window needs causal attention";
    where window == 0 || Sq < Skv + window : "every query must see a key";
    where !present(mask) || B % Bm == 0 : "heads must be whole groups of mask rows";
    where !present(k_prior) : "a prior has its own leaf";
    let size = bytes(q.dtype);
    let pack = B != Bkv ? 1 : d == 32 ? 4 : d == 64 ? 2 : 1;    // heads that share the partitions
    let G = B / Bkv;                                            // query heads of a key head
    let each = 2 * ((2 * ceil_div(Skv, 128) * (d + 1) + ceil_div(d, 128) * Skv) * size + 4 * G * d * size + G * 128 * ceil_div(d, 128) * size
                    + (present(mask) ? 4 * Skv * (ceil_div(G * Bm, B) + 1) : 0));
    let work = Skv * (8 + 5 * size) + 1024;
    where each + work <= sbuf.partition * 7 / 8 : "keys, values and one row of scores must stay on chip";
    let pairs = B * Sq * (causal ? min(Sq, Skv) * 0.5 : Skv);
    let blocks = ceil_div(B, Skv <= 256 ? min(4, 512 / Skv) : 1) * ceil_div(Sq, 128);    // one step after the other in each
    let idle = size == 4 && Skv > 1024 && !causal && B * Sq <= 16384 ? 1.1 : 1.0;  // PE in fp32 waits for long rows to end
    cost pe: pairs * (2 * ceil_div(d, 128) + 1) / 128 * target.pe_passes(q.dtype) * idle, act: 2 * pairs / 128 + blocks * 1200, dve: 2 * pairs / 128,
         hbm: bytes(q) + bytes(o) + bytes(k) + bytes(v);
    tolerance q.dtype == fp32 ? 1e-4 : 2e-2, 1e-5;
    cases (B: 12, Bkv: 12, Sq: 128, Skv: 128, d: 32, Bm: 1, with: "mask", scale: 0.17), (B: 8, Bkv: 2, Sq: 256, Skv: 256, d: 64, causal: true),
          (B: 5, Bkv: 5, Sq: 130, Skv: 77, d: 64), (B: 2, Bkv: 1, Sq: 300, Skv: 300, d: 40, causal: true, window: 100, with: "sink"),
          (B: 2, Bkv: 2, Sq: 64, Skv: 64, d: 32, dtype: fp32), (B: 4, Bkv: 2, Sq: 3, Skv: 700, d: 160, Bm: 2, with: "mask sink"),
          (B: 1, Bkv: 1, Sq: 1, Skv: 1, d: 2), (B: 3, Bkv: 3, Sq: 200, Skv: 900, d: 128, causal: true, dtype: fp16);

    let fit = max(1, min(ceil_div(Bkv, cores), (sbuf.partition * 7 / 8 - work) / each));
    let KG = fit > pack ? fit / pack * pack : fit;              // key heads on chip at a time
    let HB = Skv <= 256 ? max(1, min(min(KG * G, 4), min(512 / Skv, 512 / (d + 1)))) : 1;   // heads whose scores share a bank
    let JC = 128 * max(1, 4 / HB);                              // keys whose turned exponentials share a bank
    let direct = !present(mask) && !causal && scale > 0 && Skv <= 512;              // exponentials straight from PSUM
    let qs = q.view("b s d -> s b d");
    let os = o.view("b s d -> s b d");
    for kb in tiles(Bkv, KG) across cores {
        let NH = kb.size * G;
        let h0 = kb.start * G;
        sbuf va[Skv by 128, kb.size, d + 1]: v.dtype bufs 2;
        va[:, :, 0:d] <- v.view("b s d -> s b d")[:, kb, :];
        va[:, :, d:d + 1] = 1.0;
        sbuf kt[pack * d by 128, ceil_div(kb.size, pack), Skv]: k.dtype bufs 2;
        if (k.order == 1) { load_turned(kt, k.view("b s d -> d b s"), kb, 0..Skv, pack); }
        else {
            sbuf kr[Skv by 128, kb.size, d]: k.dtype bufs 1 <- k.view("b s d -> s b d")[:, kb, :];
            turn_heads(kt, kr, kb.size, pack, d, Skv);
        }
        if (present(sink)) { sbuf sk[all, NH]: fp32 bufs 3 <- sink[ds(h0, NH)]; }
        if (present(mask)) {                                    // the rows of these heads, on every partition
            let m0 = h0 / (B / Bm);
            let rows = (h0 + NH - 1) / (B / Bm) - m0 + 1;
            sbuf mk[all, rows, Skv]: fp32 bufs 2 <- mask[ds(m0, rows), :];
        }
        for i in tiles(Sq, 128) {
            let live = visible(i, Skv, causal, window);
            let n = live.size;
            sbuf qt[pack * d by 128, ceil_div(NH, pack), i]: q.dtype bufs 2;
            if (q.order == 1) { load_turned(qt, q.view("b s d -> d b s"), h0..h0 + NH, i, pack); }
            else {
                sbuf qr[i, NH, d]: q.dtype bufs 2 <- qs[i, ds(h0, NH), :];
                turn_heads(qt, qr, NH, pack, d, i);
            }
            sbuf ot[i, NH, d]: o.dtype bufs 2;
            for hb in tiles(NH, HB) pipelined {
                let nh = hb.size;
                stage scores {
                    sbuf neg[i, nh, 1]: fp32;                   // minus the largest score
                    if (direct) {
                        psum p[i, nh, n]: fp32;
                        for h in 0..nh { scores(p[:, h, :], qt, hb.start + h, kt, (hb.start + h) / G, live, pack, d); }
                        neg = -max(p, axis: 2);
                        neg = neg * scale;
                    } else {
                        sbuf z[i, nh, n]: fp32;
                        for j in tiles(live, HB > 1 ? 256 : 512) {
                            let (lo, hi) = (j.start - live.start, j.end - live.start);
                            psum p[i, nh, j.size]: fp32 bufs 2;
                            for h in 0..nh { scores(p[:, h, :], qt, hb.start + h, kt, (hb.start + h) / G, j, pack, d); }
                            if (!present(mask)) { z[:, :, lo:hi] = p * scale on act; }
                            else {
                                let r = (h0 + hb.start) / (B / Bm) - m0;
                                if ((h0 + hb.end - 1) / (B / Bm) - m0 == r) { z[:, :, lo:hi] = p * scale + mk[:, ds(r, 1), j.start:j.end]; }
                                else { for h in 0..nh { z[:, h, lo:hi] = p[:, h, :] * scale + mk[:, (h0 + hb.start + h) / (B / Bm) - m0, j.start:j.end]; } }
                            }
                            for h in 0..nh { hide(z[:, h, lo:hi], i, j, causal, window); }
                        }
                        neg = -max(z, axis: 2);
                    }
                    if (present(sink)) { neg = minimum(neg, sk[:, ds(hb.start, nh)].view("p h -> p h 1") * -1.0); }
                }
                stage soft {
                    sbuf e[i, nh, n]: q.dtype;
                    for h in 0..nh {
                        if (direct) { e[:, h, :] = exp(p[:, h, :] * scale + neg[:, h, :]); } else { e[:, h, :] = exp(z[:, h, :] + neg[:, h, :]); }
                    }
                }
                stage values {
                    sbuf et[n by 128, nh, i]: q.dtype bufs 2;
                    for c in tiles(n, JC) {
                        psum pt[c by 128, nh, i]: transposed(q.dtype) bufs 2;
                        for j in tiles(c, 128), h in 0..nh { pt[j, h, :] = e[:, h, j]'; }
                        et[c, :, :] = pt;
                    }
                    psum acc[i, nh, d + 1]: fp32 bufs 2;
                    for h in 0..nh, j in tiles(n, 128) {
                        acc[:, h, :] += et[j, h, :]' @ va[ds(live.start + j.start, j.size), (hb.start + h) / G, :];
                    }
                    sbuf inv[i, nh, 1]: fp32 bufs 2;
                    if (present(sink)) {
                        sbuf es[i, nh, 1]: fp32 bufs 2 = sk[:, ds(hb.start, nh)].view("p h -> p h 1") + neg;
                        es = exp(es);
                        es = acc[:, :, d:d + 1] + es;
                        inv = 1.0 / es;
                    } else {
                        inv = 1.0 / acc[:, :, d:d + 1];
                    }
                    ot[:, ds(hb.start, nh), :] = acc[:, :, 0:d] * inv;
                }
            }
            os[i, ds(h0, NH), :] <- ot;
        }
    }
}

// Queries ib of the heads of one key head, over sections of keys. q and o are [Sq, heads, d], k and v [Skv, d]; `ready`: q, k lie turned
// in HBM and are [d, heads, Sq] and [d, 1, Skv]. What may be absent comes with a word on whether it is there; the row of a mask serves
// `per` heads, of which `first` is ours. `pitch`: elements of a row of values on chip.
fn sections(o, q, k, v, ib, ready, sink_of, mask_of, sizes, pitch, scaler, scale, causal, window) {
    let (ready_q, ready_k) = ready;
    let (sinks, sink) = sink_of;
    let (masked, mask, first, per) = mask_of;
    let (SEC, ZB) = sizes;
    let (Skv, d) = (v.shape[0], v.shape[1]);
    let G = q.shape[1];
    sbuf qt[d by 128, G, ib]: q.dtype bufs 2;
    if (ready_q) { qt <- q[:, :, ib]; }
    else {
        sbuf qr[ib by 128, G, d]: q.dtype bufs 2 <- q[ib, :, :];
        turn_heads(qt, qr, G, 1, d, ib);
    }
    sbuf acc[ib by 128, G, d + 1]: fp32;                    // output and, as its last column, the sum
    sbuf top[ib by 128, G, 1]: fp32;                        // minus the largest score so far
    if (sinks) { sbuf sk[all, G]: fp32 bufs 2 <- sink; }
    let all_seen = visible(ib, Skv, causal, window);
    for s in tiles(all_seen, SEC) {
        let ns = s.size;
        let before = s.first ? 0 : s.start;                 // keys below this are behind us
        sbuf va[ns by 128, pitch]: v.dtype bufs 2;
        // A moving transfer goes in elements that divide a row and the distance of partitions: others take records by the partition.
        if (pitch > d + 1 && 262144 % (d * bytes(v.dtype)) > 0) { for j in tiles(ns, 128) { va[j, 0:d] <- v[ds(s.start + j.start, j.size), :]; } }
        else { va[:, 0:d] <- v[s.start:s.end, :]; }
        va[:, d:d + 1] = 1.0;
        sbuf kt[d by 128, 1, ns]: k.dtype bufs 2;
        if (ready_k) { kt <- k[:, :, s]; }
        else {
            sbuf kr[ns by 128, 1, d]: k.dtype bufs 2;
            kr[:, 0, :] <- k[s.start:s.end, :];
            turn_heads(kt, kr, 1, 1, d, ns);
        }
        for i in tiles(ib, 128), h in 0..G {
            let live = clip(visible(i, Skv, causal, window), s.start, s.end);
            if (live.size == 0) { continue; }
            let fresh = clip(visible(i, Skv, causal, window), 0, before).size == 0;
            let n = live.size;
            if (masked) { sbuf mk[all, n]: fp32 bufs 2 <- mask[(first + h) / per - first / per, live.start:live.end]; }
            sbuf z[i, n]: fp32 bufs ZB;
            for j in tiles(live, 512) {
                let (lo, hi) = (j.start - live.start, j.end - live.start);
                psum p[i, j.size]: fp32 bufs 2;
                for c in tiles(d, 128) { p += qt[c, h, i]' @ kt[c, 0, j.start - s.start:j.end - s.start]; }
                if (masked) { z[:, lo:hi] = p * scale + mk[:, lo:hi]; } else if (scaler == "act") { z[:, lo:hi] = p * scale on act; }
                else { z[:, lo:hi] = p * scale on dve; }
                hide(z[:, lo:hi], i, j, causal, window);
            }
            sbuf neg[i, 1]: fp32 bufs 2 = -max(z, axis: free);
            if (masked) { neg = minimum(neg, 3.0e38); }  // a section of -inf alone: inf - inf is no number
            neg = minimum(neg, 3.0e38);                     // a section masked with -inf: inf - inf is no number
            if (!fresh) { neg = minimum(neg, top[i, h, :]); }
            else if (sinks) { neg = minimum(neg, sk[:, h:h + 1] * -1.0); }
            sbuf e[i, n]: q.dtype bufs 2 = exp(z + neg);
            if (!fresh) {
                sbuf alpha[i, 1]: fp32 bufs 2 = neg - top[i, h, :];
                alpha = exp(alpha);                         // what the earlier sums shrink by
            }
            top[i, h, :] = neg;
            sbuf et[n by 128, i]: q.dtype bufs 2;
            for c in tiles(n, 512) {
                psum pt[c by 128, i]: transposed(q.dtype) bufs 2;
                for j in tiles(c, 128) { pt[j, i] = e[:, j]'; }
                et[c, :] = pt;
            }
            psum po[i, d + 1]: fp32 bufs 2;
            for j in tiles(n, 128) { po += et[j, :]' @ va[ds(live.start - s.start + j.start, j.size), 0:d + 1]; }
            if (fresh) { acc[i, h, :] = po; } else { acc[i, h, :] = acc[i, h, :] * alpha + po; }
        }
    }
    for i in tiles(ib, 128) {
        sbuf ot[i, G, d]: o.dtype bufs 2;
        sbuf inv[i, G, 1]: fp32 bufs 2;
        if (sinks) {
            sbuf es[i, G, 1]: fp32 bufs 2 = sk.view("p h -> p h 1") + top[i, :, :];
            es = exp(es);
            es = acc[i, :, d:d + 1] + es;
            inv = 1.0 / es;
        } else {
            inv = 1.0 / acc[i, :, d:d + 1];
        }
        ot = acc[i, :, 0:d] * inv;
        o[i, :, :] <- ot;
    }
}

// Rows of scores too long for one partition: keys in sections, with a running maximum, sum and output per query.
leaf attention_stream for attention on trn1, trn2, trn3 {
    layout q: [B, Sq, d] or [B, d, Sq];
    layout k: [Bkv, Skv, d] or [Bkv, d, Skv];
    where q.dtype in {bf16, fp16, fp32} && k.dtype == q.dtype && v.dtype == q.dtype : "q, k and v must share bf16, fp16 or fp32";
    where d >= 2 && d <= 256 : "the head dimension must be 2 to 256";
    where B % Bkv == 0 : "query heads must be whole groups of key heads";
    where causal || window == 0 : "a window needs causal attention";
    where window == 0 || Sq < Skv + window : "every query must see a key";
    where !present(mask) || B % Bm == 0 : "heads must be whole groups of mask rows";
    where !present(k_prior) : "a prior has its own leaf";
    param QB in {128, 256, 512, 1024} = 512;                    // queries whose state stays on chip
    param SEC in {512, 1024, 2048} = 1024;                      // keys of a section
    param ZB in {2, 3} = 2;                                     // rows of scores
    param scaler in {"act", "dve"} = "act";                     // who takes scores out of PSUM
    let size = bytes(q.dtype);
    let G = B / Bkv;
    // Key heads in a hardware loop: what the trace has no steps for otherwise. 128 queries and 128 keys take some 70.
    let groups = ceil_div(Sq, 128) * ceil_div(causal ? (window > 0 ? min(window + 128, Skv) : (min(Sq, Skv) + 256) / 2) : Skv, 128);
    let per = present(mask) ? B / Bm : 1;                       // heads that a row of the mask serves
    param heads in {"unrolled", "loop"} = B / cores * groups * 70 > 3900000 && (per == B || G % per == 0) ? "loop" : "unrolled";
    where heads == "unrolled" || per == B || G % per == 0 : "a loop over key heads wants rows of the mask for whole ones, or one for all";
    where heads == "unrolled" || o.inner == 2 : "results turned on their way out have no loop";
    let pitch = heads == "loop" ? 2 * d : d + 1;                  // a moving transfer goes in elements that divide a row and its distance to the next one
    where 2 * SEC / 128 * (d + pitch) * size + 2 * SEC * ceil_div(d, 128) * size + QB / 128 * G * (d + 3) * 4 * 2
          + G * (d + QB * ceil_div(d, 128)) * size * 2 + SEC * (4 * ZB + 4 * size) + (present(mask) ? 8 * SEC : 0) + 2048 <= sbuf.partition * 7 / 8
        : "a section of keys and values and the state of a block of queries must stay on chip";
    let pairs = B * Sq * (causal ? min(Sq, Skv) * 0.5 : Skv);
    cost pe: pairs * (2 * ceil_div(d, 128) + 1) / 128 * target.pe_passes(q.dtype), act: 2 * pairs / 128 + B * ceil_div(Sq, 128) * ceil_div(Skv, SEC) * 1200, dve: 3 * pairs / 128,
         hbm: bytes(q) + bytes(o) + ceil_div(Sq, QB) * (bytes(k) + bytes(v)) * (causal ? min(Sq, Skv) : Skv) / Skv;
    tolerance q.dtype == fp32 ? 1e-4 : 2e-2, 1e-5;
    cases (B: 2, Bkv: 1, Sq: 300, Skv: 1300, d: 64), (B: 1, Bkv: 1, Sq: 700, Skv: 700, d: 32, causal: true, with: "sink"),
          (B: 2, Bkv: 2, Sq: 600, Skv: 600, d: 40, causal: true, window: 130), (B: 4, Bkv: 2, Sq: 5, Skv: 1025, d: 130, Bm: 2, with: "mask", dtype: fp32);

    let rows_q = q.order == 1 ? q.view("b s d -> d b s") : q.view("b s d -> s b d");
    let rows_o = o.view("b s d -> s b d");
    let ready = (q.order == 1, k.order == 1);
    let sizes = (SEC, ZB);
    let no = (false, 0);
    if (heads == "unrolled") {
        for kv in 0..Bkv across cores, ib in tiles(Sq, QB) {
            let h0 = kv * G;
            let m0 = h0 / per;
            sections(rows_o[:, ds(h0, G), :], rows_q[:, ds(h0, G), :],
                     k.order == 1 ? k.view("b s d -> d b s")[:, ds(kv, 1), :] : k[kv, :, :], v[kv, :, :], ib, ready,
                     present(sink) ? (true, sink[ds(h0, G)]) : no, present(mask) ? (true, mask[m0:(h0 + G - 1) / per + 1, :], h0, per) : (false, 0, 0, 1),
                     sizes, pitch, scaler, scale, causal, window);
        }
    } else {
        let mine = share(range(Bkv), core, cores);
        let rows = max(1, G / per);                             // of the mask, of a key head
        loop kv in mine.start..mine.end {
            reg h0: i32 = kv * G;
            reg m0: i32 = kv * (per == B ? 0 : rows);
            for ib in tiles(Sq, QB) {
                sections(rows_o[:, ds(h0, G), :], rows_q[:, ds(h0, G), :], k.order == 1 ? k.view("b s d -> d b s")[:, ds(kv, 1), :] : k[kv, :, :],
                         v[kv, :, :], ib, ready, present(sink) ? (true, sink[ds(h0, G)]) : no,
                         present(mask) ? (true, mask[ds(m0, rows), :], 0, per) : (false, 0, 0, 1), sizes, pitch, scaler, scale, causal, window);
            }
        }
    }
}
