// One new token, or a few, against a long cache of keys and values: everything is the transfer of the cache.
//
// Partition p takes NR keys that lie beside each other, so that each transfer is long in HBM; softmax does not ask for the
// order of its keys. Scores lie with keys on the partitions, all queries of a key head beside each other, so that the
// exponentials are at once the stationary operand of their product with the values.
//
// No maximum is taken: the exponentials are those of the scores as they are, and each row is judged by its sum afterwards,
// as in attention_turned.cps. If any row fails, everything is computed again, section by section with a running maximum.

// Everything once more, exactly: hardware loops over key heads and sections of keys.
fn decode_exactly(qs, k, v, os, W, scale) {
    let (Bkv, Skv, d) = (k.shape[0], k.shape[1], k.shape[2]);
    let SEC = Skv % 512 == 0 ? 512 : Skv % 256 == 0 ? 256 : 128;
    let ks = k.view("b s d -> (b s) d");
    let vs = v.view("b s d -> (b s) d");
    psum turned[128, 128]: k.dtype;
    psum p[W, SEC]: fp32;
    loop h in 0..Bkv {
        reg r: i32 = h * W;
        reg at: i32 = h * Skv;
        sbuf qr[W, d]: k.dtype <- qs[ds(r, W), :];
        sbuf qt[d, W]: k.dtype;
        turned[0:d, 0:W] = qr';
        qt = turned[0:d, 0:W];
        sbuf neg[W, 1]: fp32 = 3.0e38;                          // minus the largest score so far
        sbuf acc[W, d]: fp32 = 0.0;
        sbuf l[W, 1]: fp32 = 0.0;
        loop s in 0..Skv / SEC {
            sbuf kr[SEC by 128, d]: k.dtype <- ks[ds(at, SEC), :];
            sbuf vr[SEC by 128, d]: v.dtype <- vs[ds(at, SEC), :];
            sbuf kt[d, SEC]: k.dtype;
            for j in tiles(SEC, 128) {
                turned[0:d, :] = kr[j, :]';
                kt[:, j] = turned[0:d, :];
            }
            p = qt' @ kt;
            sbuf z[W, SEC]: fp32 = p * scale;
            sbuf top[W, 1]: fp32 = -max(z, axis: free);
            top = minimum(top, neg);
            sbuf alpha[W, 1]: fp32 = top - neg;
            alpha = exp(alpha);                                 // what the earlier sums shrink by
            neg = top;
            sbuf part[W, 1]: fp32;
            sbuf e[W, SEC]: k.dtype = exp(z + neg) reduce add into part;
            sbuf et[128, W]: k.dtype;
            psum po[W, d]: fp32;
            for j in tiles(SEC, 128) {
                turned[:, 0:W] = e[:, j]';
                et = turned[:, 0:W];
                po += et' @ vr[j, :];
            }
            acc = acc * alpha + po;
            l = l * alpha + part;
            at = at + SEC;
        }
        sbuf inv[W, 1]: fp32 = 1.0 / l;
        os[ds(r, W), :] <- acc * inv;
    }
}

leaf attention_decode for attention on trn2, trn3 {
    where q.dtype in {bf16, fp16} && k.dtype == q.dtype && v.dtype == q.dtype : "q, k and v must share bf16 or fp16";
    where d >= 16 && d <= 128 : "the head dimension must be 16 to 128";
    where B % Bkv == 0 && B / Bkv * Sq <= 64 : "at most 64 queries may share a key head";
    where Skv % 128 == 0 && Skv >= 256 : "the cache must be whole tiles of 128 keys, two at least";
    where !causal && window == 0 : "every query sees every key here";
    where !present(mask) && !present(sink) : "masks and sinks have their own leaves";
    where !present(k_prior) : "a prior has its own leaf";
    where B * Sq <= 16384 : "the queries must stay on chip";
    let W = B / Bkv * Sq;                                       // queries of a key head
    let R = Skv / 128;                                          // keys of a partition
    param NR in {4, 8, 16, 32} = (Bkv * R * d <= 8192 ? 8 : 16) * (d <= 64 ? 2 : 1);        // those of a load
    param turner in {"dma", "pe"} = Bkv * R <= 32 ? "dma" : "pe";   // who turns keys: transfers do, at 90 % of their rate
    param LB in {3, 4, 6} = 4;                                  // loads of keys in flight, and of values
    cost hbm: bytes(q) + bytes(o) + bytes(k) + bytes(v), pe: Bkv * R * 290;
    priority 1;
    tolerance 2e-2, 1e-5;
    cases (B: 8, Bkv: 1, Sq: 1, Skv: 2048, d: 128), (B: 12, Bkv: 6, Sq: 3, Skv: 384, d: 64), (B: 16, Bkv: 2, Sq: 1, Skv: 10240, d: 128, dtype: fp16),
          (B: 40, Bkv: 5, Sq: 1, Skv: 256, d: 96, scale: 30.0), (B: 64, Bkv: 1, Sq: 1, Skv: 1280, d: 128), (B: 6, Bkv: 2, Sq: 2, Skv: 640, d: 32, scale: 60.0);

    let parts = ceil_div(R, NR);
    let HB = parts > 1 ? 1 : max(1, min(min(Bkv, NR / R), 512 / d));    // key heads at a time
    let units = ceil_div(Bkv, HB) * parts;
    let GR = min(512 / W, NR);                                  // tiles whose scores share a bank
    let qs = q.view("b s d -> (b s) d");
    let os = o.view("b s d -> (b s) d");
    let ks = k.view("b s d -> (b s) d");
    sbuf zero[128, 256]: bf16 = 0.0;
    sbuf qt[d, B * Sq]: q.dtype <- qs' on pool;
    sbuf ones[128, 1]: bf16 = 1.0;
    sbuf invs[W, Bkv]: fp32;
    sbuf sums[W, Bkv]: fp32;
    // Keys of one unit, scores of the one before, values of the one before that: PE waits neither for copies nor for exponentials.
    var nh1 = 0; var nr1 = 0; var k1 = 0; var h2 = 0; var nh2 = 0; var nr2 = 0; var v2 = 0; var e2 = 0; var lp2 = 0; var acc = 0; var l = 0;
    for u in 0..units + 2 {
        let h1 = max(u - 1, 0) / parts * HB;
        let r1 = max(u - 1, 0) % parts * NR;
        if (u < units) {
            let h0 = u / parts * HB;
            let nh = min(HB, Bkv - h0);
            let r0 = u % parts * NR;
            let nr = min(NR, R - r0);
            if (turner == "dma" || u == 0 || u == units - 1) {
                sbuf ky[d, nh * nr * 128]: k.dtype bufs turner == "dma" ? LB : 2 <- ks[ds(h0 * Skv + r0 * 128, nh * nr * 128), :]' on sp;
                let kk = ky.view("d (h p r) -> d h r p", h: nh, r: nr);
            } else {
                sbuf kr[128, nh, nr, d]: k.dtype bufs LB;
                sbuf kt[d, nh, nr, 128]: k.dtype bufs 3;
                kr <- k[ds(h0, nh), ds(r0 * 128, nr * 128), :].view("h (p r) d -> p h r d", r: nr) on sp;
                for c in tiles(nh * nr, 8) {
                    psum turned[d, c.size, 128]: k.dtype bufs 2;
                    for r in c { turned[:, r.start - c.start, :] = kr[:, r.start / nr, r.start % nr, :]'; }
                    let part = kt.view("d h r p -> d (h r) p")[:, ds(c.start, c.size), :];
                    if (c.index % 2 == 1) { part = turned on act; } else { part = turned on dve; }
                }
                let kk = kt;
            }
        }
        if (u >= 1 && u <= units) {
            sbuf vr[128, nh1, nr1, d]: v.dtype bufs LB;
            let from = v[ds(h1, nh1), ds(r1 * 128, nr1 * 128), :].view("h (p r) d -> p h r d", r: nr1);
            for r in split(nr1, u == units && nr1 * d >= 2048 ? 2 : 1) { vr[:, :, r, :] <- from[:, :, r, :] on sp; }     // less to wait for at the end
            sbuf e[128, nh1 * nr1, W]: bf16 bufs 3;
            for g in tiles(nh1 * nr1, GR) {
                psum s[128, 512 / W, W]: fp32 bufs 2;
                if (u == 1 && g.first) { for i in 0..8 { s.view("p r w -> p (r w)")[:, 0:256] += zero[:, 0:128]' @ zero; } }   // PE warms up while it waits
                for r in 0..g.size { s[:, r, :] += k1[:, (g.start + r) / nr1, (g.start + r) % nr1, :]' @ qt[:, ds((h1 + (g.start + r) / nr1) * W, W)]; }
                e[:, ds(g.start, g.size), :] = exp(s[:, 0:g.size, :] * scale);
            }
            sbuf lp[128, nh1, 1, W]: bf16 bufs 3;
            lp = sum(e.view("p (h r) w -> p h r w", h: nh1), axis: 2);
        }
        if (u >= 2) {
            let r2 = (u - 2) % parts * NR;
            if (r2 == 0) {
                psum out[W, nh2, d]: fp32 bufs 2;
                psum total[W, nh2]: fp32 bufs 2;
                acc = out;
                l = total;
            }
            for h in 0..nh2 {
                l[:, h:h + 1] += lp2[:, h, 0, :]' @ ones;
                for r in 0..nr2 { acc[:, h, :] += e2[:, h * nr2 + r, :]' @ v2[:, h, r, :]; }
            }
            if (r2 + nr2 == R) {
                sbuf ot[W, nh2, d]: o.dtype bufs 3;
                invs[:, ds(h2, nh2)] = 1.0 / l;
                for h in 0..nh2 { ot[:, h, :] = acc[:, h, :] * invs[:, ds(h2 + h, 1)] reduce add into sums[:, ds(h2 + h, 1)]; }
                os.view("(b w) d -> w b d", w: W)[:, ds(h2, nh2), :] <- ot on pool;
            }
        }
        if (u >= 1 && u <= units) {
            h2 = h1; nh2 = nh1; nr2 = nr1; v2 = vr; e2 = e; lp2 = lp;
        }
        if (u < units) { nh1 = nh; nr1 = nr; k1 = kk; }
    }
    // A sum of the row's results that is no finite number makes its product with 0 one that equals nothing.
    sbuf w1[W, Bkv]: fp32 = sums * 0.0 + invs;
    sbuf w2[W, Bkv]: fp32 = minimum(maximum(w1, 7.5e-37), 1.2e27);      // 2^-120, 2^90
    sbuf same[W, Bkv]: fp32 = w1 == w2;
    sbuf fine[W, 1]: fp32 = min(same, axis: free);
    sbuf one[W, 1]: fp32 = 1.0;
    psum count[1, 1]: fp32 = one' @ fine;
    sbuf rows_fine[1, 1]: i32 = count;
    reg good: i32 <- rows_fine[0];
    when (good < W) { decode_exactly(qs, k, v, os, W, scale); }
}
