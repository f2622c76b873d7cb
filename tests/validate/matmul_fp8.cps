// Activations quantised to fp8 on the way, one scale for each row and block of 2048 of the contraction, times fp8
// weights by double rows, trn2: blocks of 2 row tiles, 2 column tiles and 16 tiles of K, as the test of the sample
// library chooses them.
op nkisamples_double_row_matmul(x[M, K], w[K, N]: fp8e4m3, ws[N]: fp32) -> y[M, N] {
    y = cast(cast(x, fp32) @ cast(w, fp32) * ws, y.dtype);
}

leaf double_row_blocks for nkisamples_double_row_matmul on trn2 {
    where M % 256 == 0 && K % 2048 == 0 && N % 1024 == 0 : "whole blocks";
    cases (M: 256, K: 2048, N: 1024);
    tolerance 7.2e-2, 1e-3;
    let wp = w.view("(g j p) n -> p g j n", p: 128, j: 2);      // k = 256 g + 128 j + p
    sbuf cs[all, N]: fp32 <- ws;
    for mb in tiles(M, 256) {
        sbuf sum[mb by 128, N]: y.dtype bufs 2;
        for kb in tiles(K, 2048) {
            sbuf q[128, 2, 16, 128]: fp8e4m3 bufs 2;            // the transposed codes of both row tiles
            sbuf scale[mb by 128, 1]: fp32 bufs 2;
            for m in tiles(mb, 128) {
                sbuf rows[m, kb] bufs 2 <- x[m, kb];
                sbuf top[m, 1]: fp32 bufs 2 = max(abs(rows), axis: free);
                scale[m, :] = top * (1.0 / 240.0);
                sbuf back[m, 1]: fp32 bufs 2 = 1.0 / scale[m, :];
                sbuf codes[m, kb]: fp8e4m3 bufs 2 = rows * back;
                sbuf wide[m, kb]: bf16 bufs 2 = codes;          // the array turns bf16, which holds every code
                for k in tiles(kb, 128) {
                    psum t[k, m]: bf16 bufs 2 = wide[m, k]';
                    q[:, m.index, k.index, :] = t;
                }
            }
            for nb in tiles(N, 1024) {
                sbuf wt[128, 8, 2, nb]: w.dtype bufs 2;
                for g in 0..8 { wt[:, g, :, nb] <- wp[:, kb.start / 256 + g, :, nb]; }
                for m in tiles(mb, 128) {
                    sbuf part[m, nb]: y.dtype bufs 2;
                    for n in tiles(nb, 512) {
                        psum p[m, n]: fp32 bufs 4;
                        for g in 0..8 {
                            nc_matmul(dst: p, stationary: q[:, m.index, ds(2 * g, 2), :], moving: wt[:, g, :, n], double_row: true);
                        }
                        part[m, n] = p;
                    }
                    part = part * scale[m, :];
                    if (kb.first) { sum[m, nb] = part; } else { sum[m, nb] = sum[m, nb] + part; }
                }
            }
        }
        for m in tiles(mb, 128) {
            sbuf o[m, N]: y.dtype bufs 2 = sum[m, :] * cs;
            y[m, :] <- o;
        }
    }
}
