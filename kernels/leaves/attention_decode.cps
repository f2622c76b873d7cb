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
    let HB = RS < R ? 1 : max(1, min(min(Bkv, 2), min(512 / (R * W), 128 / W)));    // key heads at a time
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
    for u in 0..ceil_div(Bkv, HB) * parts pipelined {
        let h0 = u / parts * HB;
        let nh = min(HB, Bkv - h0);
        let n = nh * W;
        let r0 = u % parts * RS;
        let nr = min(RS, R - r0);
        let first = r0 == 0;
        let last = r0 + nr == R;
        stage scores {
            sbuf kr[128, nh, nr, d]: k.dtype bufs 4;
            for c in tiles(nr, 16) { kr[:, :, c, :] <- ks[:, ds(h0, nh), ds(r0 + c.start, c.size), :]; }
            psum s[128, nh, nr, W]: fp32 bufs 2;
            for h in 0..nh, c in tiles(nr, 8) {
                psum tk[d, c, 128]: k.dtype bufs 3;
                for r in c { tk[:, r, :] = kr[:, h, r, :].view("p 1 d -> p d")'; }
                sbuf kt[d, c, 128]: k.dtype bufs 4;
                if (c.index % 2 == 1) { kt = tk on act; } else { kt = tk on dve; }
                for r in c { s[:, h, r, :] = kt[:, r, :].view("d 1 p -> d p")' @ qt[:, ds((h0 + h) * W, W)]; }
            }
        }
        stage soft {
            sbuf vr[128, nh, nr, d]: v.dtype bufs 4;
            for c in tiles(nr, 16) { vr[:, :, c, :] <- vs[:, ds(h0, nh), ds(r0 + c.start, c.size), :]; }
            sbuf m[128, nh, 1, W]: fp32 = max(s, axis: 2);
            psum small[128, 3, 128]: fp32 bufs 1;               // one bank for what is short
            small[0:n, 0, :] = m.view("p h 1 w -> p (h w)")';
            sbuf t[n, 1]: fp32 = max(small[0:n, 0, :], axis: free);
            if (long) {
                if (!first) {
                    t = maximum(t, top);
                    sbuf alpha[n, 1]: fp32 = top - t;
                    alpha = exp(alpha * scale);
                }
                top = t;
            }
            sbuf tb[n, 128]: fp32 = zero[0:n, :] + t;
            small[:, 1, 0:n] = tb' @ eye[0:n, 0:n];
            sbuf bs[128, nh, 1, W]: fp32 = small[:, 1, 0:n].view("p (h w) -> p h 1 w", h: nh);  // the maximum, on every partition
            sbuf z[128, nh, nr, W]: fp32 = s - bs;
            sbuf e[128, nh, nr, W]: bf16 = exp(z * scale);
            sbuf lp[128, nh, 1, W]: fp32 = sum(e, axis: 2);
        }
        stage values {
            psum fin[128, 2, 128]: fp32 bufs 1;
            let po = fin[0:d, 0, 0:n].view("d (h w) -> d h w", h: nh);      // outputs turned: values stationary, few columns moving
            let pl = fin[0:W, 1, 0:nh];
            psum back[W, nh, d]: fp32 bufs 1;
            for h in 0..nh {
                for r in 0..nr { po[:, h, :] += vr[:, h, r, :]' @ e[:, h, r, :]; }
                pl[:, h:h + 1] = lp[:, h, 0, :]' @ ones;
            }
            sbuf ps[d, nh, W]: fp32 = po;
            for h in 0..nh { back[:, h, :] = ps[:, h, :]'; }
            if (!long) {
                sbuf inv[W, nh]: fp32 = 1.0 / pl;
                sbuf ot[W, nh, d]: o.dtype = back * inv.view("w h -> w h 1");
                os.view("(b w) d -> w b d", w: W)[:, ds(h0, nh), :] <- ot;
            } else {
                if (first) {
                    acc = back[:, 0, :];
                    l = pl;
                } else {
                    acc = acc * alpha + back[:, 0, :];
                    l = l * alpha + pl;
                }
                if (last) {
                    sbuf inv[W, 1]: fp32 = 1.0 / l;
                    os[ds(h0 * W, W), :] <- acc * inv;
                }
            }
        }
    }
}
