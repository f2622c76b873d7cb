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
