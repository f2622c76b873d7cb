// Decode attention with cache update, batch > 1.
op attention_decode(q[B, H, d], k_new[B, Hkv, d], v_new[B, Hkv, d], inout k_cache[C, Hkv, S, d], inout v_cache[C, Hkv, S, d],
                    slot[B]: i32, pos[B]: i32; scale: fp32) -> o[B, H, d] {
    for b in 0..B {
        k_cache[slot[b], :, pos[b], :] = k_new[b, :, :];
        v_cache[slot[b], :, pos[b], :] = v_new[b, :, :];
    }
    for b in 0..B, h in 0..H {
        let g = h / (H / Hkv);
        let s = scale * sum(q[b, h, :] * k_cache[slot[b], g, :, :], axis: 1)';
        let e = softmax(select(index(S) <= pos[b], s, -inf));
        o[b, h, :] = e @ v_cache[slot[b], g, :, :];
    }
}

leaf attention_decode_rows for attention_decode on trn2, trn3 {
    let G = H / Hkv;                                            // query heads per KV head
    where d <= 128 && B * G <= 128 : "all rows of a KV head go on the partitions: B*H/Hkv <= 128";
    where S % 128 == 0 && S <= 8192 : "one section of the cache";
    where q.dtype == bf16;
    cost pe: Hkv * B * S * 2, hbm: 2 * B * Hkv * S * d * 2;
    tolerance 1e-2, 1e-5;
    cases (B: 4, H: 8, Hkv: 1, S: 512, d: 128, C: 4), (B: 16, H: 8, Hkv: 2, S: 2048, d: 64, C: 17);

    let R = B * G;

    // cache row of each new token: slot * (Hkv * S) + pos, 32-bit integers on POOL
    sbuf st[B, 1]: i32 <- slot;
    sbuf pt[B, 1]: i32 <- pos;
    sbuf base[B, 1]: i32 = st * (Hkv * S) + pt;
    sbuf hi[R, 1]: fp32 <- repeat(pos, G);                       // pos of the row's batch; stride-0 DMA, cast on the way

    for g in 0..Hkv across cores {
        // queries, once per batch, zero outside the batch's own columns
        sbuf qz[d, B, R]: bf16 = 0;
        sbuf qt[d, R]: bf16 <- q[:, ds(g * G, G), :].view("b h d -> d (b h)");
        for b in 0..B { qz[:, b, ds(b * G, G)] = qt[:, ds(b * G, G)]; }

        sbuf z[R, S + 1]: fp32;
        for j in tiles(S, 512) {
            psum p[R, j]: fp32;
            for b in 0..B {
                reg c: i32 <- slot[b];
                sbuf kt[d, j]: bf16 bufs 4 <- k_cache[c, g, j, :]';         // c is a register: dynamic offset
                p += qz[:, b, :]' @ kt;
            }
            z[:, j] = select(col(j) < hi, p, lowest);           // strictly before pos: the new token has its own column
        }
        sbuf knt[d, B]: bf16 <- k_new[:, g, :]';
        psum pn[R, 1]: fp32;
        for b in 0..B { pn += qz[:, b, :]' @ knt[:, ds(b, 1)]; }
        z[:, S:S + 1] = pn;

        sbuf neg[R, 1]: fp32 = -max(z, axis: free);
        neg = neg * scale;
        sbuf l[R, 1]: fp32;
        sbuf e[R, S + 1]: bf16 = exp(scale * z + neg) reduce add into l;

        psum ot[d, R]: fp32;
        for j in tiles(S, 128) {
            psum pe_t[j, R]: bf16 = e[:, j]';
            sbuf et[j, R]: bf16 bufs 2 = pe_t;
            for b in 0..B {
                reg c: i32 <- slot[b];
                sbuf vt[j, d]: bf16 bufs 4 <- v_cache[c, g, j, :];
                ot[:, ds(b * G, G)] += vt' @ et[:, ds(b * G, G)];
            }
        }
        psum pl[1, R]: bf16 = e[:, S:S + 1]';
        sbuf el[1, R]: bf16 = pl;
        sbuf v1[1, B, d]: bf16 <- v_new[:, g, :];               // one partition, so that K = 1 products start at partition 0
        for b in 0..B { ot[:, ds(b * G, G)] += v1[:, b, :]' @ el[:, ds(b * G, G)]; }

        sbuf os[d, R]: fp32 = ot;
        psum orow[R, d]: fp32 = os';
        sbuf inv[R, 1]: fp32 = 1.0 / l;
        o[:, ds(g * G, G), :].view("b h d -> (b h) d") <- orow * inv;

        // the caches are written last: the reads above do not wait for it, it waits for them
        sbuf kn[B, d]: bf16 <- k_new[:, g, :];
        sbuf vn[B, d]: bf16 <- v_new[:, g, :];
        sbuf at[B, 1]: i32 = base + g * S;
        k_cache.view("c h s d -> (c h s) d")[at, :] <- kn;      // a tile as subscript: indirect DMA, one row per partition
        v_cache.view("c h s d -> (c h s) d")[at, :] <- vn;
    }
}
