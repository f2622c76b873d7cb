// MX matmul with quantisation on the fly.
// w arrives packed: element (i, n) of w holds rows 4i..4i+3; one fp8e8m0 scale per 32 rows.
op matmul_mx(x[M, K], w[K / 4, N]: fp8e4m3fn_x4, w_scale[K / 32, N]: fp8e8m0) -> y[M, N] {
    y = x @ mx_decode(w, w_scale, axis: 0);
}

leaf matmul_mx_quantise for matmul_mx on trn3 {
    where K % 512 == 0 : "a product contracts 512: 128 partitions of four";
    where x.dtype in {bf16, fp16};
    where K / 512 * M * 4 * 2 <= sbuf.partition / 2 : "one packed strip of x must fit";
    cost pe: ceil_div(M, 128) * N * K / 512, dve: M * K / 512, hbm: bytes(x) + bytes(w) * ceil_div(M, 128) + bytes(y);
    tolerance 5e-2, 1e-5;
    cases (M: 128, K: 512, N: 512), (M: 130, K: 4096, N: 1000);

    for m in tiles(M, 128) across cores {
        sbuf rows[m, K]: x.dtype bufs 2 <- x[m, :];
        let me = round_up(m.size, 2);                           // the stationary side takes an even number of rows
        sbuf xq[128, K / 512, me]: fp8e4m3fn_x4;
        sbuf xs[128, K / 512, me]: fp8e8m0;
        for kb in tiles(K, 512) {
            sbuf lanes[128, me, 4]: x.dtype = 0;
            for q in 0..4 {
                psum t[128, m]: x.dtype = rows[:, kb.start + q:kb.end:4]';  // every fourth column
                lanes[:, 0:m.size, q] = t;
            }
            quantize_mx(dst: xq[:, kb.index, :], dst_scale: xs[:, kb.index, :], src: lanes);   // DVE
        }
        for n in tiles(N, 512) {
            psum acc[me, n]: fp32 bufs 2;
            for kb in tiles(K, 512) {
                sbuf wq[128, n]: fp8e4m3fn_x4 bufs 3 <- w[ds(kb.start / 4, 128), n];
                sbuf ws[128, n]: fp8e8m0 bufs 3;
                for g in 0..4 {                                 // 16 scale rows, four at the head of each quadrant
                    ws[ds(32 * g, 4), :] <- w_scale[ds(kb.start / 32 + 4 * g, 4), n];
                }
                acc += mx(xq[:, kb.index, :], xs[:, kb.index, :])' @ mx(wq, ws);   // PE nc_matmul_mx
            }
            y[m, n] <- acc[0:m.size, :] bufs 3;
        }
    }
}
