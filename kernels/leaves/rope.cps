// Rotary position embedding: sequence positions on the partitions, the angles of a position meet all its heads.

leaf rope_rows for rope on trn1, trn2, trn3 {
    where d % 2 == 0 : "pairs of elements turn: the head dimension must be even";
    where x.dtype in {bf16, fp16, fp32} : "x must be bf16, fp16 or fp32";
    param HB in {1, 2, 4, 8, 16, 32} = 8;                       // heads of a tile
    where HB == 1 || HB * d <= 4096 : "a tile of heads must leave room for its products";
    where min(HB, h) * d * (2 * bytes(x.dtype) + 2 * bytes(y.dtype) + 8) + 4 * d * bytes(cos.dtype) + 256 <= sbuf.partition
        : "one position's head must fit one partition with its products";
    cost dve: B * ceil_div(S, P) * 3 * h * d, hbm: bytes(x) + bytes(y) + bytes(cos) + bytes(sin);
    tolerance y.dtype == fp32 ? 1e-4 : 2e-2, 1e-5;
    cases (B: 1, S: 128, h: 8, d: 64), (B: 2, S: 130, h: 3, d: 16, interleaved: true), (B: 1, S: 1, h: 1, d: 2, dtype: fp32), (B: 1, S: 5, h: 9, d: 128, dtype: fp32);

    let m = d / 2;
    for s in tiles(S, P) across cores {
        sbuf ct[s, 1, m] bufs 2 <- cos.view("s m -> s 1 m")[s, :, :];
        sbuf st[s, 1, m] bufs 2 <- sin.view("s m -> s 1 m")[s, :, :];
        for b in 0..B, k in tiles(h, HB) {
            sbuf xt[s, k, d]: x.dtype bufs 2 <- x[b, s, k, :];
            sbuf yt[s, k, d]: y.dtype bufs 2;
            if (interleaved) {
                let (p, q) = (xt[:, :, 0:d:2], xt[:, :, 1:d:2]);
                let (u, v) = (yt[:, :, 0:d:2], yt[:, :, 1:d:2]);
                turn(u, v, p, q, ct, st);
            } else {
                let (p, q) = (xt[:, :, 0:m], xt[:, :, m:d]);
                let (u, v) = (yt[:, :, 0:m], yt[:, :, m:d]);
                turn(u, v, p, q, ct, st);
            }
            y[b, s, k, :] <- yt;
        }
    }
}

// u = p cos - q sin, v = q cos + p sin. The products are kept in the type of y: DVE is twice as fast on 16 bits.
fn turn(u, v, p, q, c, s) {
    let shape = p.shape;
    sbuf a[shape[0], shape[1], shape[2]]: u.dtype = p * c;
    sbuf b[shape[0], shape[1], shape[2]]: u.dtype = q * s;
    u = a - b;
    sbuf e[shape[0], shape[1], shape[2]]: u.dtype = q * c;
    sbuf f[shape[0], shape[1], shape[2]]: u.dtype = p * s;
    v = e + f;
}

// Rotary embedding of 16-bit tensors. y = x cos + swap(x) sin, with swap the exchange of halves and its sign: DVE (with POOL
// where the two do not share a port) makes both products, PE adds them as products with the
// identity in PSUM, ACT brings the sums back.
leaf rope_sums for rope on trn1, trn2, trn3 {
    where !interleaved : "pairs of neighbours have a leaf of their own";
    where x.dtype in {bf16, fp16} && cos.dtype == x.dtype && sin.dtype == x.dtype : "x, cos and sin must share bf16 or fp16";
    where d % 2 == 0 && 512 % d == 0 : "heads must fill a bank of 512 sums evenly";
    let m = d / 2;
    let n = S / P;                                              // consecutive positions of a partition, but for the S % P last
    let G = max(1, min(n, 2048 / (h * d)));                     // positions and heads of a tile: four banks of sums
    let HB = max(1, min(h, 2048 / d));
    let R = round_up(16, G);                                    // positions whose angles are loaded at once
    where (3 * R * m * 2 + 6 * 2 * 2048) * 2 + 2048 <= sbuf.partition : "angles, x, products and y must fit one partition";
    let slow = x.dtype == bf16 || target.gen >= 3 ? 1 : 2;      // cycles of a tensor_tensor element
    cost dve: B * ceil_div(S, P) * slow * 2 * h * d, pe: B * ceil_div(S, P) * 2 * h * d, act: B * ceil_div(S, P) * h * d, hbm: bytes(x) + bytes(y) + bytes(cos) + bytes(sin);
    tolerance 2e-2, 1e-5;
    cases (B: 1, S: 512, h: 8, d: 64), (B: 2, S: 130, h: 3, d: 16), (B: 1, S: 5, h: 9, d: 128, dtype: fp16), (B: 2, S: 300, h: 33, d: 64), (B: 1, S: 1, h: 1, d: 2);

    sbuf plus[P, P]: x.dtype = 1.0;
    plus = select(row(0..P) == col(0..P), plus, 0.0);
    if (n > 0) {
        let cm = cos[0:n * P, :].view("(p n) m -> p n m", p: P);
        let sm = sin[0:n * P, :].view("(p n) m -> p n m", p: P);
        for r in tiles(n, R) across cores {
            sbuf ct[P, r, m] bufs 2 <- cm[:, r, :];
            sbuf st[P, r, m] bufs 2 <- sm[:, r, :];
            sbuf nt[P, r, m]: x.dtype bufs 2 = st * -1.0;
            for b in 0..B {
                let xm = x[b, 0:n * P, :, :].view("(p n) h d -> p n h d", p: P);
                let ym = y[b, 0:n * P, :, :].view("(p n) h d -> p n h d", p: P);
                for g in tiles(r, G), k in tiles(h, HB) { turn_tile(ym[:, g, k, :], xm[:, g, k, :], ct[:, g, :], st[:, g, :], nt[:, g, :], plus); }
            }
        }
    }
    for s in tiles(n * P..S, P) across cores {
        sbuf ct[s.size, 1, m] <- cos[s, :].view("p m -> p 1 m");
        sbuf st[s.size, 1, m] <- sin[s, :].view("p m -> p 1 m");
        sbuf nt[s.size, 1, m]: x.dtype = st * -1.0;
        for b in 0..B, k in tiles(h, HB) {
            turn_tile(y[b, s, k, :].view("p k d -> p 1 k d"), x[b, s, k, :].view("p k d -> p 1 k d"), ct, st, nt, plus);
        }
    }
}

fn turn_tile(dst, src, ct, st, nt, plus) {
    let (p, g, k, d) = (src.shape[0], src.shape[1], src.shape[2], src.shape[3]);
    let m = d / 2;
    let heads = g * k;
    let c = ct.view("p g m -> p g 1 m");
    let s = st.view("p g m -> p g 1 m");
    let neg = nt.view("p g m -> p g 1 m");
    sbuf xt[p, g, 2 * k, m] bufs 4 <- src.view("p g k (u m) -> p g (k u) m", u: 2);
    sbuf a[p, g, 2 * k, m]: src.dtype bufs 3 = xt * c;
    sbuf b[p, g, 2 * k, m]: src.dtype bufs 3;
    let (lo, hi) = (xt[:, :, 0:2 * k:2, :], xt[:, :, 1:2 * k:2, :]);
    let (blo, bhi) = (b[:, :, 0:2 * k:2, :], b[:, :, 1:2 * k:2, :]);
    let cut = target.gen >= 3 ? k / 2 : 0;                      // POOL makes three quarters of the second products
    if (cut > 0) {
        tensor_tensor(dst: blo, data1: hi, data2: repeat(neg, k, axis: 2), op: "mult") on pool;
        tensor_tensor(dst: bhi[:, :, 0:cut, :], data1: lo[:, :, 0:cut, :], data2: repeat(s, cut, axis: 2), op: "mult") on pool;
    } else {
        blo = hi * neg;
    }
    bhi[:, :, cut:k, :] = lo[:, :, cut:k, :] * s;
    psum acc[p, heads, d]: fp32 bufs 2;
    let av = a.view("p g (k u) m -> p (g k) (u m)", u: 2);
    let bv = b.view("p g (k u) m -> p (g k) (u m)", u: 2);
    for q in tiles(heads, 512 / d) {
        acc[:, q, :] += plus[0:p, 0:p]' @ av[:, q, :];
        acc[:, q, :] += plus[0:p, 0:p]' @ bv[:, q, :];
    }
    sbuf o[p, heads, d]: dst.dtype bufs 3 = acc on act;
    dst <- o.view("p (g k) d -> p g k d", g: g);
}
