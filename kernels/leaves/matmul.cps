// Dense products with their epilogue kept on chip.
use "reference/act.cps";

// dst[K by 128, M] in sbuf receives src[M, K] from hbm with its axes swapped, by the cheapest way the target has.
fn load_transposed(dst, src) {
    if (src.inner == 0 || bytes(src.dtype) == 2 && target.dma_transpose) {
        dst <- src';                                            // K-major storage: a plain copy; else one DMA transpose
        return;
    }
    for m in tiles(src.axis(0), 128) {
        sbuf rows[m, src.axis(1)]: src.dtype bufs 2 <- src[m, :];
        for k in tiles(src.axis(1), 128) {
            psum t[k, m]: transposed(src.dtype) = rows[m, k]';  // PE: nc_transpose
            dst[k, m] = t;                                      // copy out of PSUM
        }
    }
}

// The end of a product in PSUM: bias as one more K = 1 product, activation, residual, store.
fn finish(acc, y, mb, n, act, has_bias, ones, bias, has_residual, residual) {
    if (has_bias) {
        sbuf b[1, n] bufs 2 <- bias[n];
        for m in tiles(mb, 128) { acc[m, n] += ones[:, 0:m.size]' @ b; }
    }
    for m in tiles(mb, 128) {
        sbuf o[m, n]: y.dtype bufs 3;
        if (has_residual) {
            sbuf r[m, n] bufs 2 <- residual[m, n];
            if (act == Act.none) { o = acc[m, n] + r; } else { o = apply(act, acc[m, n]) + r; }     // ACT activation, DVE tensor_tensor
        } else {
            o = apply(act, acc[m, n]);                          // one instruction: ACT, or a copy when act is none
        }
        y[m, n] <- o;
    }
}

leaf matmul_strip for matmul on trn1, trn2, trn3 {
    layout x: [M, K] or [K, M];                                 // the transposed-input form costs nothing here
    where x.dtype in {bf16, fp16, fp32} && w.dtype == x.dtype : "x and w must share bf16, fp16 or fp32";
    param MB in 1..4 = 3;                                       // rows of a strip, in tiles of 128
    param KB in {2, 4, 8, 16} = 8;                              // rows of w per DMA, in tiles of 128
    let strip = ceil_div(K, 128) * min(MB * 128, M) * bytes(x.dtype);
    let turned = bytes(x.dtype) == 2 && target.dma_transpose ? 0 : 2 * K * bytes(x.dtype) + 512;
    let rest = 3 * min(KB, ceil_div(K, 128)) * 512 * bytes(w.dtype) + 7 * 512 * bytes(y.dtype) + 2048;
    where 2 * strip + turned + rest <= sbuf.partition : "two strips of 128*MB rows of x must fit one partition beside w";

    cost pe: M * N * K / (128 * 128) * target.pe_passes(x.dtype),
         hbm: bytes(x) + bytes(w) * ceil_div(M, MB * 128) + bytes(y);
    tolerance x.dtype == fp32 ? 1e-4 : 2e-2, 1e-5;
    cases (M: 512, K: 512, N: 512), (M: 1, K: 128, N: 1), (M: 129, K: 257, N: 513), (M: 130, K: 140, N: 100, with: "bias residual", act: Act.gelu),
          (M: 5, K: 3, N: 600, with: "residual", dtype: fp32), (M: 1, K: 1024, N: 512, with: "bias", dtype: fp16, act: Act.silu);

    if (present(bias)) { sbuf ones[1, 128]: bias.dtype = 1.0; let add = bias; } else { let ones = 0; let add = 0; }
    let res = present(residual) ? residual : 0;
    for mb in tiles(M, MB * 128) across cores {
        sbuf xt[K by 128, mb]: x.dtype bufs 2;                  // [128, ceil(K/128), mb]: K folded on the partitions
        load_transposed(xt, x[mb, :]);
        for n in tiles(N, 512) {
            psum acc[mb by 128, n]: fp32 bufs MB == 4 ? 1 : 2 align 2048;   // MB banks a slot; one stays free for transposes
            for kb in tiles(K, KB * 128) {
                sbuf wt[kb by 128, n]: w.dtype bufs 3 <- w[kb, n];
                for m in tiles(mb, 128), k in tiles(kb, 128) {
                    acc[m, n] += xt[k, m]' @ wt[k, n];
                }
            }
            finish(acc, y, mb, n, act, present(bias), ones, add, present(residual), res);
        }
    }
}

// A contraction too long for strips of x on chip: x streams like w, once for every 512 columns.
leaf matmul_stream for matmul on trn1, trn2, trn3 {
    layout x: [M, K] or [K, M];
    where x.dtype in {bf16, fp16, fp32} && w.dtype == x.dtype : "x and w must share bf16, fp16 or fp32";
    param MB in 1..4 = 3;
    param KB in {2, 4, 8} = 8;
    cost pe: M * N * K / (128 * 128) * target.pe_passes(x.dtype),
         hbm: bytes(x) * ceil_div(N, 512) + bytes(w) * ceil_div(M, MB * 128) + bytes(y);
    tolerance x.dtype == fp32 ? 1e-4 : 2e-2, 1e-5;
    cases (M: 130, K: 1100, N: 520, with: "bias", act: Act.relu), (M: 3, K: 140, N: 7, dtype: fp32, with: "residual");

    if (present(bias)) { sbuf ones[1, 128]: bias.dtype = 1.0; let add = bias; } else { let ones = 0; let add = 0; }
    let res = present(residual) ? residual : 0;
    for mb in tiles(M, MB * 128) across cores, n in tiles(N, 512) {
        psum acc[mb by 128, n]: fp32 bufs MB == 4 ? 1 : 2 align 2048;
        for kb in tiles(K, KB * 128) {
            sbuf xt[kb by 128, mb]: x.dtype bufs 2;
            load_transposed(xt, x[mb, kb]);
            sbuf wt[kb by 128, n]: w.dtype bufs 3 <- w[kb, n];
            for m in tiles(mb, 128), k in tiles(kb, 128) { acc[m, n] += xt[k, m]' @ wt[k, n]; }
        }
        finish(acc, y, mb, n, act, present(bias), ones, add, present(residual), res);
    }
}
