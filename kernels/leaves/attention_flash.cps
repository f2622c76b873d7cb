// Causal flash attention: grouped heads, window, sinks; three stages on three row blocks at a time.
//
// `visible` is all of the tile skipping; `fresh` and `final` are compile-time facts about a row block, so the first
// section has no rescaling and the last one stores. Scores stay unscaled until the exponential, which lets one
// range_select apply causality, window and maximum at once.

// The part of keys `s` that rows `i` can see, in whole tiles of 128: tile skipping is range arithmetic.
fn visible(s, i, causal, window) {
    if (!causal) { return s; }
    let lo = window == 0 ? 0 : max(0, i.start - window + 1) / 128 * 128;
    return clip(s, lo, round_up(i.end, 128));
}

leaf attention_flash for attention on trn2, trn3 {
    where d <= 128 : "the head dimension is the contraction: at most 128";
    where B % Bkv == 0 && (causal || window == 0);
    where q.dtype in {bf16, fp16} && k.dtype == q.dtype && v.dtype == q.dtype;
    where window == 0 || Sq < Skv + window : "every query must see a key";
    where !present(mask) : "an additive mask has its own leaf";
    where !present(k_prior) : "a prior has its own leaf";
    where scale <= 1.0 : "a masked score times scale must stay finite";
    where Sq * d * 4 / 128 <= 64 * 1024 : "one head's output must stay on chip";
    param SEC in {2048, 4096, 8192} = 4096;                     // keys per section
    where min(SEC, Skv + 128) * (8 + 8 * bytes(q.dtype)) + ceil_div(Sq, 128) * (d * 4 + 8) * 2 + 12 * d * 4 + 4096 <= sbuf.partition
        : "the stages of three row blocks must fit one partition beside the running output";
    let blocks = B * ceil_div(Sq, 128);
    let pairs = B * Sq * (window > 0 && window < Skv ? window + 128 : Skv) * (causal && window == 0 ? 0.5 : 1.0);
    cost pe: pairs / 128 * (2 + max(64, d) / 128), act: pairs / 128 + blocks * 300, dve: pairs / 128 * 2 + blocks * (d + 600),
         hbm: bytes(q) + bytes(o) + B * (bytes(k) + bytes(v)) / Bkv;
    tolerance 2e-2, 1e-5;
    cases (B: 8, Bkv: 2, Sq: 2048, Skv: 2048, d: 128, causal: true), (B: 2, Bkv: 2, Sq: 577, Skv: 577, d: 88),
          (B: 1, Bkv: 1, Sq: 10240, Skv: 10240, d: 64, causal: true, window: 128),
          (B: 2, Bkv: 1, Sq: 300, Skv: 300, d: 64, causal: true, window: 100, with: "sink");

    for b in 0..B across cores {
        let kv = b / (B / Bkv);                                 // GQA: B/Bkv query heads share one K and V
        sbuf acc[Sq by 128, d]: fp32;                            // output, running
        sbuf mx[Sq by 128, 1]: fp32;                             // running maximum of raw scores
        sbuf l[Sq by 128, 1]: fp32;                              // running sum
        if (present(sink)) { sbuf sk[all, 1]: fp32 <- sink[b]; }

        for s in tiles(Skv, SEC) {
            sbuf kt[d, s]: k.dtype bufs 2 <- k[kv, s, :]';      // DMA transpose
            sbuf vt[s by 128, d]: v.dtype bufs 2 <- v[kv, s, :];

            for i in tiles(Sq, 128) pipelined {
                let live = visible(s, i, causal, window);
                if (live.size == 0) { continue; }
                let fresh = visible(clip(range(Skv), 0, s.start), i, causal, window).size == 0;   // nothing seen before this section
                let final = visible(clip(range(Skv), s.end, Skv), i, causal, window).size == 0;   // nothing follows

                stage scores {
                    sbuf qt[d, i]: q.dtype <- q[b, i, :]';
                    sbuf z[i, live]: fp32;
                    sbuf tops[i, ceil_div(live.size, 512)]: fp32;
                    sbuf hi[i, 1]: fp32 = row(i);                // POOL iota, once per i
                    sbuf lo[i, 1]: fp32 = hi - (window == 0 ? Skv : window - 1);
                    for j in tiles(live, 512) {
                        psum p[i, j]: fp32 = qt' @ kt[:, j];
                        if (causal && (j.end > i.start + 1 || window > 0 && j.start < i.end - window)) {
                            z[:, j] = select(lo <= col(j) && col(j) <= hi, p, lowest)
                                      reduce max into tops[:, j.index];             // DVE range_select
                        } else {
                            z[:, j] = p reduce max into tops[:, j.index];           // DVE tensor_scalar_reduce
                        }
                    }
                }
                stage softmax {
                    sbuf top[i, 1]: fp32 = max(tops, axis: free);
                    if (!fresh) { top = maximum(top, mx[i, :]); }
                    else if (present(sink)) { top = maximum(top, sk * (1.0 / scale)); }
                    sbuf neg[i, 1]: fp32 = top * -scale;
                    sbuf alpha[i, 1]: fp32;
                    if (!fresh) { alpha = exp(scale * mx[i, :] + neg); }
                    mx[i, :] = top;
                    sbuf part[i, 1]: fp32;
                    sbuf e[i, live]: q.dtype = exp(scale * z + neg) reduce add into part;   // ACT, one instruction for the row
                    if (fresh) { l[i, :] = part; } else { l[i, :] = l[i, :] * alpha + part; }
                    if (final && present(sink)) { l[i, :] += exp(sk + neg); }
                    sbuf et[live by 128, i]: q.dtype;
                    for c in tiles(live, 512) {
                        psum pt[c by 128, i]: q.dtype;
                        for j in tiles(c, 128) { pt[j, i] = e[i, j]'; }     // PE: nc_transpose, 16-bit into PSUM
                        et[c, i] = pt;                                      // four transposes, one copy
                    }
                }
                stage values {
                    psum po[i, d]: fp32;
                    for j in tiles(live, 128) { po += et[j, i]' @ vt[j, :]; }
                    if (fresh) { acc[i, :] = po; } else { acc[i, :] = acc[i, :] * alpha + po; }
                    if (final) {
                        sbuf inv[i, 1]: fp32 = 1.0 / l[i, :];
                        o[b, i, :] <- acc[i, :] * inv bufs 2;
                    }
                }
            }
        }
    }
}
