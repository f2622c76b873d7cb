// One new token, or a few, against a long cache of keys and values: everything is the transfer of the cache.
//
// Partition p takes the keys p R .. p R + R - 1, so that each transfer is long in HBM; softmax does not ask for the order
// of its keys. The PE turns the keys; scores lie with keys on the partitions, all queries of a key head beside each other.
// The maximum is exact: by key on DVE, across partitions by the PE.
leaf attention_decode for attention on trn2, trn3 {
    where q.dtype in {bf16, fp16} && k.dtype == q.dtype && v.dtype == q.dtype : "q, k and v must share bf16 or fp16";
    where d >= 16 && d <= 128 : "the head dimension must be 16 to 128";
    where B % Bkv == 0 && B / Bkv * Sq <= 64 : "at most 64 queries may share a key head";
    where Skv % 128 == 0 && Skv >= 256 : "the cache must be whole tiles of 128 keys, two at least";
    where !causal && window == 0 : "every query sees every key here";
    where !present(mask) && !present(sink) : "masks and sinks have their own leaves";
    where !present(k_prior) : "a prior has its own leaf";
    where B * Sq <= 16384 : "the queries must stay on chip";
    where scale > 0.0 : "the largest score must be that of the largest product";
    let W = B / Bkv * Sq;                                       // queries of a key head
    let R = Skv / 128;                                          // keys of a partition
    cost hbm: bytes(q) + bytes(o) + bytes(k) + bytes(v), pe: Bkv * R * 290;
    priority 1;
    tolerance 2e-2, 1e-5;
    cases (B: 8, Bkv: 1, Sq: 1, Skv: 2048, d: 128), (B: 12, Bkv: 6, Sq: 3, Skv: 384, d: 64), (B: 16, Bkv: 2, Sq: 1, Skv: 10240, d: 128, dtype: fp16),
          (B: 40, Bkv: 5, Sq: 1, Skv: 256, d: 96, scale: 30.0);

    let RS = min(R, min(32, max(8, 256 / W / 8 * 8)));          // keys of a partition worked on at once
    let HB = RS < R ? 1 : max(1, min(min(Bkv, 4), min(512 / (R * W), 128 / W)));    // key heads at a time
    let parts = ceil_div(R, RS);
    let long = parts > 1;                                       // with a running maximum, sum and output
    let ks = k.view("b (p r) d -> p b r d", p: 128);
    let vs = v.view("b (p r) d -> p b r d", p: 128);
    let qs = q.view("b s d -> (b s) d");
    let os = o.view("b s d -> (b s) d");
    sbuf eye[128, 128]: fp32 = 1.0;
    eye = select(row(range(128)) - col(range(128)) == 0, eye, 0.0);
    sbuf ones[128, 1]: fp32 = 1.0;
    sbuf zero[128, 128]: fp32 = 0.0;
    sbuf qt[d, B * Sq]: q.dtype;
    for c in tiles(B * Sq, 128) {
        sbuf qr[c, d]: q.dtype bufs 2 <- qs[c, :] on act;
        psum turned[d, c]: q.dtype bufs 1 = qr';
        qt[:, c] = turned;
    }
    if (long) {
        sbuf acc[W, d]: fp32;
        sbuf l[W, 1]: fp32;
        sbuf top[W, 1]: fp32;
    }
    // Three rounds on their way, step by step in turns: scores of one, the maximum and the exponentials of the one before,
    // values of the one before that. So no engine waits for a chain of another.
    let rounds = ceil_div(Bkv, HB) * parts;
    var s1 = 0;                                                 // of the round before
    var e2 = 0; var lp2 = 0; var vr2 = 0; var al2 = 0;          // of two rounds before
    for u in 0..rounds + 2 {
        let now = u < rounds;
        let before = u >= 1 && u <= rounds;
        let last2 = u >= 2;
        let h0 = u / parts * HB;
        let nh = now ? min(HB, Bkv - h0) : 1;
        let r0 = u % parts * RS;
        let nr = min(RS, R - r0);
        if (now) {
            sbuf kr[128, nh, nr, d]: k.dtype bufs 4;
            psum s[128, nh, nr, W]: fp32 bufs 2;
        }
        if (before) {
            let x = u - 1;
            let h1 = x / parts * HB;
            let nh1 = min(HB, Bkv - h1);
            let nn = nh1 * W;
            let rr1 = x % parts * RS;
            let nr1 = min(RS, R - rr1);
            sbuf vr[128, nh1, nr1, d]: v.dtype bufs 4;
            sbuf m[128, nh1, 1, W]: fp32;
            psum small[128, 3, 128]: fp32 bufs 1;               // one bank for what is short
            sbuf t[nn, 1]: fp32;
            sbuf tb[nn, 128]: fp32;
            sbuf bs[128, nh1, 1, W]: fp32;
            sbuf z[128, nh1, nr1, W]: fp32;
            sbuf e[128, nh1, nr1, W]: bf16;
            sbuf lp[128, nh1, 1, W]: fp32;
            if (long && rr1 > 0) { sbuf alpha[nn, 1]: fp32; }
        }
        if (last2) {
            let y = u - 2;
            let h2 = y / parts * HB;
            let nh2 = min(HB, Bkv - h2);
            let n2 = nh2 * W;
            let rr2 = y % parts * RS;
            let nr2 = min(RS, R - rr2);
            psum fin[128, 2, 128]: fp32 bufs 1;
            let po = fin[0:d, 0, 0:n2].view("d (h w) -> d h w", h: nh2);    // outputs turned: values stationary, few columns moving
            let pl = fin[0:W, 1, 0:nh2];
            psum back[W, nh2, d]: fp32 bufs 1;
        }
        for c in tiles(max(now ? nr : 0, before ? nr1 : 0), 16) {   // keys a round ahead of values
            if (now && c.start < nr) {
                let some = min(c.size, nr - c.start);
                kr[:, :, ds(c.start, some), :] <- ks[:, ds(h0, nh), ds(r0 + c.start, some), :];
            }
            if (before && c.start < nr1) {
                let more = min(c.size, nr1 - c.start);
                vr[:, :, ds(c.start, more), :] <- vs[:, ds(h1, nh1), ds(rr1 + c.start, more), :];
            }
        }
        let steps = max(now ? nh * ceil_div(nr, 8) : 0, 4);
        for b in 0..steps {
            if (now && b < nh * ceil_div(nr, 8)) {
                let h = b / ceil_div(nr, 8);
                let q0 = b % ceil_div(nr, 8) * 8;
                let nq = min(8, nr - q0);
                psum tk[d, 8, 128]: k.dtype bufs 3;
                for r in 0..nq { tk[:, r, :] = kr[:, h, q0 + r, :]'; }
                sbuf kt[d, 8, 128]: k.dtype bufs 4;
                if (b % 2 == 1) { kt[:, 0:nq, :] = tk[:, 0:nq, :] on act; } else { kt[:, 0:nq, :] = tk[:, 0:nq, :] on dve; }
                for r in 0..nq { s[:, h, q0 + r, :] = kt[:, r, :]' @ qt[:, ds((h0 + h) * W, W)]; }
            }
            if (before) {
                if (b == 0) {
                    m = max(s1, axis: 2);
                    small[0:nn, 0, :] = m.view("p h 1 w -> p (h w)")';
                    t = max(small[0:nn, 0, :], axis: free);
                    if (long) {
                        if (rr1 > 0) {
                            t = maximum(t, top);
                            alpha = top - t;
                            alpha = exp(alpha * scale);
                        }
                        top = t;
                    }
                    tb = zero[0:nn, :] + t;
                }
                if (b == 1) {
                    small[:, 1, 0:nn] = tb' @ eye[0:nn, 0:nn];
                    bs = small[:, 1, 0:nn].view("p (h w) -> p h 1 w", h: nh1);   // the maximum, on every partition
                    z = s1 - bs;
                }
                if (b == 2) {
                    e = exp(z * scale);
                    lp = sum(e, axis: 2);
                }
            }
            if (last2) {
                for k in 0..nh2 * nr2 {
                    if (k * steps / (nh2 * nr2) == b) { po[:, k / nr2, :] += vr2[:, k / nr2, k % nr2, :]' @ e2[:, k / nr2, k % nr2, :]; }
                }
            }
        }
        if (last2) {
            for h in 0..nh2 { pl[:, h:h + 1] = lp2[:, h, 0, :]' @ ones; }
            sbuf ps[d, nh2, W]: fp32 = po;
            for h in 0..nh2 { back[:, h, :] = ps[:, h, :]'; }
            if (!long) {
                sbuf inv[W, nh2]: fp32 = 1.0 / pl;
                sbuf ot[W, nh2, d]: o.dtype = back * inv.view("w h -> w h 1");
                os.view("(b w) d -> w b d", w: W)[:, ds(h2, nh2), :] <- ot;
            } else {
                if (rr2 == 0) {
                    acc = back[:, 0, :];
                    l = pl;
                } else {
                    acc = acc * al2 + back[:, 0, :];
                    l = l * al2 + pl;
                }
                if (rr2 + nr2 == R) {
                    sbuf inv[W, 1]: fp32 = 1.0 / l;
                    os[ds(h2 * W, W), :] <- acc * inv;
                }
            }
        }
        if (before) {
            e2 = e;
            lp2 = lp;
            vr2 = vr;
            if (long && rr1 > 0) { al2 = alpha; }
        }
        if (now) {
            s1 = s;
        }
    }
}
