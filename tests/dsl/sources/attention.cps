// Causal flash attention: GQA, window, sink, three stages, tile skipping.
op attention(q[B, Sq, d], k[Bkv, Skv, d], v[Bkv, Skv, d], sink?[B]; scale: fp32, causal: bool = false, window: int = 0) -> o[B, Sq, d] {
    let kk = repeat(k, B / Bkv, axis: 0);
    let vv = repeat(v, B / Bkv, axis: 0);
    let s = scale * (q @ kk');                                  // batched; ' swaps the last two axes
    let i = index(Sq)';                                         // [Sq, 1]
    let j = index(Skv);                                         // [1, Skv]
    let seen = causal ? j <= i && (window == 0 || i - j <= window) : true;
    let z = select(seen, s, -inf);
    let m = present(sink) ? maximum(max(z, axis: 2), sink.view("b -> b 1 1")) : max(z, axis: 2);
    let e = exp(z - m);
    let l = present(sink) ? sum(e, axis: 2) + exp(sink.view("b -> b 1 1") - m) : sum(e, axis: 2);
    o = (e / l) @ vv;
}

// The part of keys `s` that rows `i` can see, in whole tiles of 128: tile skipping is range arithmetic.
fn visible(s, i, causal, window) {
    if (!causal) { return s; }
    let lo = window == 0 ? 0 : max(0, i.start - window) / 128 * 128;
    return clip(s, lo, round_up(i.end, 128));
}

leaf attention_flash for attention on trn2, trn3 {
    where d <= 128 : "the head dimension is the contraction: at most 128";
    where B % Bkv == 0 && (causal || window == 0);
    where q.dtype in {bf16, fp16} && k.dtype == q.dtype && v.dtype == q.dtype;
    where scale <= 1.0 : "a masked score times scale must stay finite";
    where Sq * d * 4 / 128 <= 64 * 1024 : "one head's output must stay on chip";
    param SEC in {2048, 4096, 8192} = 4096;                     // keys per section
    let pairs = B * Sq * Skv * (causal ? 0.5 : 1.0);
    cost pe: pairs * 3 / 128, act: pairs / 128, hbm: bytes(q) + bytes(o) + B * (bytes(k) + bytes(v)) / Bkv;
    tolerance 2e-2, 1e-5;
    cases (B: 8, Bkv: 2, Sq: 2048, Skv: 2048, d: 128, causal: true), (B: 2, Bkv: 2, Sq: 577, Skv: 577, d: 88),
          (B: 1, Bkv: 1, Sq: 10240, Skv: 10240, d: 64, causal: true, window: 128);

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
                    sbuf lo[i, 1]: fp32 = hi - (window == 0 ? Skv : window);
                    for j in tiles(live, 512) {
                        psum p[i, j]: fp32 = qt' @ kt[:, j];
                        if (causal && (j.end > i.start + 1 || window > 0 && j.start < i.end - 1 - window)) {
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
