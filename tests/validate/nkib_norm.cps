// NKIBench, fp32 on trn1: norms before and after a product (zhang677/AccelOpt, NKIBench/kernels). Which loads were shared,
// kept or repeated is read off the published byte and instruction counts, and so is the engine of each one-input
// instruction: squares, scales and copies out of PSUM on ACT, sums over rows on DVE. Buffer counts are ours.

// to = from', by PE and a copy.
fn turn(to, from) {
    psum t[to.axis(0), to.axis(1)]: fp32 bufs 2 = from';
    to = t on act;
}

op rmsnorm_mm(x[M, K], w[K, N]; again: int = 27) -> y[M, N] {
    y = (x * rsqrt(mean(x * x, axis: 1))) @ w;
}

// `again` of the row tiles are loaded a second time to be scaled: 27 of 32 in the base version, none in the best one.
leaf rmsnorm_mm_rows for rmsnorm_mm on trn1 {
    tolerance 1e-4, 1e-5;
    cases (M: 2048, K: 1024, N: 2048, again: 3), (M: 1024, K: 1024, N: 2048, again: 0);
    sbuf ws[K by 128, N]: fp32;
    for mb in tiles(M, 1024) {
        sbuf xt[K by 128, mb]: fp32 bufs 1;
        for i in tiles(mb, 128) {
            sbuf a[i, K] bufs 2 <- x[i, :];
            sbuf half[i, 2]: fp32 bufs 2;
            for h in tiles(K, 512) {
                sbuf sq[i, h]: fp32 bufs 2 = square(a[:, h]);
                activation(dst: sq, data: sq, scale: 1.0 / K, op: "copy");
                half[:, ds(h.index, 1)] = sum(sq, axis: free);
            }
            sbuf r[i, 1]: fp32 bufs 2 = half[:, 0:1] + half[:, 1:2];
            r = rsqrt(r);
            if (i.start / 128 < again) { sbuf b[i, K] bufs 2 <- x[i, :]; } else { let b = a; }
            for h in tiles(K, 512) {
                sbuf s[i, h]: fp32 bufs 2;
                activation(dst: s, data: b[:, h], scale: r, op: "copy");
                for k in tiles(h, 128) { turn(xt[k, i], s[:, k]); }
            }
        }
        for nb in tiles(N, 1024) {
            if (mb.first) { for k in tiles(K, 128) { ws[k, nb] <- w[k, nb]; } }
            for i in tiles(mb, 128) {
                sbuf o[i, nb]: fp32 bufs 2;
                for n in tiles(nb, 512) {
                    psum acc[i, n]: fp32 bufs 4;
                    for k in tiles(K, 128) { acc += xt[k, i]' @ ws[k, n]; }
                    o[:, n] = acc on act;
                }
                y[i, nb] <- o;
            }
        }
    }
}

op add_rmsnorm_mm(x[M, K], z[M, K], g[K], w[K, N]; eps: fp32 = 1e-6, shared: bool = false) -> y[M, N] {
    let a = x + z;
    y = (a * rsqrt(mean(a * a, axis: 1) + eps) * g) @ w;
}

// g on all partitions: a product with ones, copied out of PSUM.
fn everywhere(g, to) {
    sbuf ones[1, 128]: fp32 = 1.0;
    sbuf rw[1, g.axis(0)] <- g;
    for k in tiles(g.axis(0), 512) {
        psum t[128, k]: fp32 bufs 2 = ones' @ rw[:, k];
        to[:, k] = t on act;
    }
}

// The operands are normalised, then transposed for each 512 columns; `shared`, the best version, transposes them once.
leaf add_rmsnorm_mm_rows for add_rmsnorm_mm on trn1 {
    tolerance 1e-4, 1e-5;
    cases (M: 256, K: 1024, N: 2048), (M: 256, K: 1024, N: 2048, shared: true);
    sbuf ws[K by 128, N]: fp32;
    sbuf gs[128, K]: fp32;
    everywhere(g, gs);
    for i in tiles(M, 128) {
        sbuf a[i, K] bufs 2 <- x[i, :];
        sbuf b[i, K] bufs 2 <- z[i, :];
        sbuf s[i, K]: fp32 bufs 2 = a + b;
        sbuf sq[i, K]: fp32 bufs 2 = square(s);
        sbuf r[i, 1]: fp32 bufs 2 = sum(sq, axis: free);
        r = r * (1.0 / K) + eps;
        r = rsqrt(r);
        sbuf c[i, K]: fp32 bufs 2;
        activation(dst: c, data: s, scale: r, op: "copy");
        c = c * gs;
        if (shared) { sbuf all_t[K by 128, i]: fp32 bufs 2; }
        for n in tiles(N, 512) {
            psum acc[i, n]: fp32 bufs 4;
            for k in tiles(K, 128) {
                if (i.first) { ws[k, n] <- w[k, n]; }
                if (shared) {
                    if (n.first) { turn(all_t[k, :], c[:, k]); }
                    acc += all_t[k, :]' @ ws[k, n];
                } else {
                    sbuf one[k, i]: fp32 bufs 2;
                    turn(one, c[:, k]);
                    acc += one' @ ws[k, n];
                }
            }
            sbuf o[i, n]: fp32 bufs 2 = acc on act;
            y[i, n] <- o;
        }
    }
}

op mm_add_rmsnorm(x[M, K], w[K, N], z[M, N], g[N]; eps: fp32 = 1e-6) -> y[M, N] {
    let a = x @ w + z;
    y = a * rsqrt(mean(a * a, axis: 1) + eps) * g;
}

// x is transposed again for each 512 columns. w stays on chip (128 KiB of a partition), 54 of its 64 tiles come twice. That
// fills the memory: sums, squares and results of a row tile share two tiles and the result is stored in place.
leaf mm_add_rmsnorm_rows for mm_add_rmsnorm on trn1 {
    tolerance 1e-4, 1e-5;
    cases (M: 384, K: 512, N: 1024);
    let T = K / 128;
    sbuf ws[K by 128, N]: fp32;
    sbuf gs[128, N]: fp32;
    everywhere(g, gs);
    for i in tiles(M, 128) {
        sbuf a[i, K] bufs 2 <- x[i, :];
        sbuf s[i, N]: fp32 bufs 1;
        for n in tiles(N, 512) {
            psum acc[i, n]: fp32 bufs 4;
            for k in tiles(K, 128) {
                if (i.first || i.index == 1 && n.index * T + k.index < 54) { ws[k, n] <- w[k, n]; }
                sbuf one[k, i]: fp32 bufs 2;
                turn(one, a[:, k]);
                acc += one' @ ws[k, n];
            }
            s[:, n] = acc on act;
        }
        sbuf b[i, N] bufs 1 <- z[i, :];
        s = s + b;
        b = square(s);
        sbuf r[i, 1]: fp32 bufs 2 = sum(b, axis: free);
        r = r * (1.0 / N) + eps;
        r = rsqrt(r);
        activation(dst: s, data: s, scale: r, op: "copy");
        s = s * gs;
        y[i, :] <- s;
    }
}
