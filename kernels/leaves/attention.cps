// Attention with the whole row of scores on chip: encoders and short contexts, any head grouping.
use "leaves/matmul.cps";

// The keys that rows `i` can see, in whole tiles of 128: skipping is range arithmetic.
fn visible(i, keys, causal, window) {
    if (!causal) { return range(keys); }
    let lo = window == 0 ? 0 : max(0, i.start - window + 1) / 128 * 128;
    return clip(range(keys), lo, i.end);
}

leaf attention_rows for attention on trn1, trn2, trn3 {
    where d <= 128 : "the head dimension is the contraction: at most 128";
    where B % Bkv == 0 : "query heads are whole groups of key heads";
    where q.dtype in {bf16, fp16, fp32} && k.dtype == q.dtype && v.dtype == q.dtype : "q, k and v share bf16, fp16 or fp32";
    where causal || window == 0 : "a window needs causal attention";
    where Skv * (3 * bytes(q.dtype) + 12) + ceil_div(Skv, 128) * (d + 128) * 2 * bytes(q.dtype) <= sbuf.partition * 3 / 4 : "one row of scores must stay on chip";
    let pairs = B * Sq * Skv * (causal ? 0.5 : 1.0);
    cost pe: pairs * 3 / 128 * target.pe_passes(q.dtype), act: pairs / 128, dve: 3 * pairs / 128, hbm: bytes(q) + bytes(o) + bytes(k) + bytes(v);
    tolerance 2e-2, 1e-5;
    cases (B: 12, Bkv: 12, Sq: 128, Skv: 128, d: 32), (B: 8, Bkv: 2, Sq: 256, Skv: 256, d: 64, causal: true),
          (B: 2, Bkv: 2, Sq: 130, Skv: 77, d: 128), (B: 2, Bkv: 1, Sq: 300, Skv: 300, d: 32, causal: true, window: 100),
          (B: 2, Bkv: 2, Sq: 64, Skv: 64, d: 32, dtype: fp32);

    for b in 0..B across cores {
        let kv = b / (B / Bkv);
        sbuf kt[d, Skv]: k.dtype bufs 2;
        load_transposed(kt, k[kv, :, :]);
        sbuf vt[Skv by 128, d]: v.dtype bufs 2 <- v[kv, :, :];
        if (present(mask)) { sbuf mk[all, Skv]: fp32 <- mask[b / (B / Bm), :]; }
        if (present(sink)) { sbuf sk[all, 1]: fp32 <- sink[b:b + 1]; }
        for i in tiles(Sq, 128) {
            let live = visible(i, Skv, causal, window);
            sbuf qt[d, i]: q.dtype bufs 2;
            load_transposed(qt, q[b, i, :]);
            sbuf z[i, live]: fp32;
            for j in tiles(live, 512) {
                psum p[i, j]: fp32 bufs 2 = qt' @ kt[:, j.start:j.end];
                if (present(mask)) { z[:, j] = p * scale + mk[:, j.start:j.end]; } else { z[:, j] = p * scale; }
                if (causal && j.end > i.start + 1) { z[:, j] = select(col(j) - row(i) <= 0, z[:, j], lowest); }
                if (window > 0 && j.start <= i.end - 1 - window) { z[:, j] = select(row(i) - col(j) < window, z[:, j], lowest); }
            }
            sbuf top[i, 1]: fp32 = max(z, axis: free);
            if (present(sink)) { top = maximum(top, sk); }
            sbuf neg[i, 1]: fp32 = top * -1.0;
            sbuf l[i, 1]: fp32;
            sbuf e[i, live]: q.dtype = exp(z + neg) reduce add into l;
            if (present(sink)) { sbuf es[i, 1]: fp32 = exp(sk + neg); l = l + es; }
            psum acc[i, d]: fp32 bufs 2;
            for j in tiles(live, 128) {
                psum pt[j, i]: transposed(q.dtype) bufs 2 = e[:, j]';
                sbuf et[j, i]: q.dtype bufs 2 = pt;
                acc += et' @ vt[j.start:j.end, :];
            }
            sbuf inv[i, 1]: fp32 = 1.0 / l;
            o[b, i, :] <- acc * inv bufs 2;
        }
    }
}
