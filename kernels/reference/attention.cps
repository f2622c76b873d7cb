// Scaled dot-product attention. B counts batches times query heads, Bkv batches times key heads; query head b uses key
// head b / (B / Bkv). `window` keeps the keys i-j < window (0: all). `mask` is added to the scores, one row for each
// group of B / Bm heads (an encoder's padding mask). A sink takes part in maximum and sum, not in the values.
// A prior holds keys and values of earlier positions, of which the first `prior_used` count: every query sees them, as far
// as its window reaches back over them.
op attention(q[B, Sq, d], k[Bkv, Skv, d], v[Bkv, Skv, d], sink?[B], mask?[Bm, Skv],
             k_prior?[Bkv, Sp, d], v_prior?[Bkv, Sp, d], prior_used?[1]: i32;
             scale: fp32 = 1.0, causal: bool = false, window: int = 0) -> o[B, Sq, d] {
    let kk = repeat(k, B / Bkv, axis: 0);
    let own = repeat(v, B / Bkv, axis: 0);
    let s = scale * (q @ kk');
    let t = present(mask) ? s + repeat(mask, B / Bm, axis: 0).view("b s -> b 1 s") : s;
    let i = index(Sq)';                                         // [Sq, 1]
    let j = index(Skv);                                         // [1, Skv]
    let here = causal ? (window > 0 ? select(j <= i && i - j < window, t, -inf) : select(j <= i, t, -inf)) : t;
    if (present(k_prior)) {
        let p = index(Sp);                                      // [1, Sp]
        let sp = scale * (q @ repeat(k_prior, B / Bkv, axis: 0)');
        let used = prior_used.view("n -> 1 n");
        let zp = window > 0 ? select(p < used && i + used - p < window, sp, -inf) : select(p < used, sp, -inf);
        let vp = select(p' < used, repeat(v_prior, B / Bkv, axis: 0), 0.0);
        let z = concat(zp, here, axis: 2);
        let vv = concat(vp, own, axis: 1);
    } else {
        let z = here;
        let vv = own;
    }
    let m = present(sink) ? maximum(max(z, axis: 2), sink.view("b -> b 1 1")) : max(z, axis: 2);
    let e = exp(z - m);
    let l = present(sink) ? sum(e, axis: 2) + exp(sink.view("b -> b 1 1") - m) : sum(e, axis: 2);
    o = (e / l) @ vv;
}

// Rotary position embedding; `interleaved` pairs elements (2i, 2i+1) instead of (i, i + d/2).
op rope(x[B, S, h, d], cos[S, d / 2], sin[S, d / 2]; interleaved: bool = false) -> y[B, S, h, d] {
    let c = cos.view("s p -> 1 s 1 p");
    let s = sin.view("s p -> 1 s 1 p");
    if (interleaved) {
        let a = x[:, :, :, 0:d:2];
        let b = x[:, :, :, 1:d:2];
        y[:, :, :, 0:d:2] = a * c - b * s;
        y[:, :, :, 1:d:2] = b * c + a * s;
    } else {
        let a = x[:, :, :, 0:d / 2];
        let b = x[:, :, :, d / 2:d];
        y[:, :, :, 0:d / 2] = a * c - b * s;
        y[:, :, :, d / 2:d] = b * c + a * s;
    }
}
