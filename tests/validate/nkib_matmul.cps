// NKIBench, fp32 on trn1: matmul and transpose + matmul (zhang677/AccelOpt, NKIBench/kernels). What the vendor's compiler
// made of the sources is read off the published byte and instruction counts; buffer counts are ours.

// A tile out of HBM, in a ring of n slots.
fn tile(src, n) {
    sbuf t[src.axis(0), src.axis(1)] bufs n <- src;
    return t;
}

op mm(x[M, K], w[K, N]) -> y[M, N] {
    y = x @ w;
}

// Loads of w are sunk into the loop over rows, x is read once for every 1,024 columns and transposed by PE each time.
// Every copy out of PSUM runs on ACT.
leaf mm_sunk for mm on trn1 {
    tolerance 1e-4, 1e-5;
    cases (M: 256, K: 2048, N: 2048);
    for nb in tiles(N, 1024), m in tiles(M, 128) {
        psum lo[m, 512]: fp32 bufs 1;
        psum hi[m, 512]: fp32 bufs 1;
        for kb in tiles(K, 1024) {
            sbuf rows[m, kb] bufs 2 <- x[m, kb];
            for k in tiles(kb, 128) {
                psum t[k, m]: fp32 bufs 2 = rows[:, k]';
                sbuf xt[k, m]: fp32 bufs 2 = t on act;
                sbuf b[k, nb] bufs 8 <- w[k, nb];
                lo += xt' @ b[:, 0:512];
                hi += xt' @ b[:, 512:1024];
            }
        }
        sbuf o[m, nb]: fp32 bufs 2;
        o[:, 0:512] = lo on act;
        o[:, 512:1024] = hi on act;
        y[m, nb] <- o;
    }
}

op mm_turned(x[K, M], w[K, N]; whole: int = 1024) -> y[M, N] {
    y = x' @ w;
}

// A tile of `wide` columns; what the source does not fill is zero.
fn wide_tile(src, wide, n) {
    sbuf t[src.axis(0), wide]: src.dtype bufs n;
    let w = src.axis(1).size;
    if (w < wide) { t[:, w:wide] = 0.0 on pool; }
    t[:, 0:w] <- src;
    return t;
}

// Row k of both operands is 16 p + t. The last block of columns is computed in whole multiples of `whole`: 1,024 in the
// base version, 256 in the best one. Half of the second operand's tiles have a second slot: all of them would not fit.
leaf mm_turned_blocks for mm_turned on trn1 {
    tolerance 1e-4, 1e-5;
    cases (M: 1024, K: 256, N: 1200);
    let T = K / 128;
    let xv = x.view("(p t) m -> p t m", p: 128);
    let wv = w.view("(p t) n -> p t n", p: 128);
    for mb in tiles(M, 1024) {
        let a = [tile(xv[:, t, mb], T) for t in 0..T];
        for nb in tiles(N, 1024) {
            let wide = round_up(nb.size, whole);
            let b = [wide_tile(wv[:, t, nb], wide, T + T / 2) for t in 0..T];
            for m in tiles(mb, 128) {
                sbuf o[m, wide]: fp32 bufs 2;
                for n in tiles(wide, 512) {
                    psum acc[m, n]: fp32 bufs 4;
                    for t in 0..T { acc += a[t][:, ds(m.start - mb.start, 128)]' @ b[t][:, n]; }
                    o[:, n] = acc on act;
                }
                y[m, nb] <- o[:, 0:nb.size];
            }
        }
    }
}
