// Movement through SBUF. What a DMA can reorder by descriptors costs nothing more than the copy.

// The last two axes swapped, 128 x 128 at a time on the PE: exact from v3 on.
leaf transpose_pe for transpose on trn1, trn2, trn3 {
    where x.dtype in {bf16, fp16, fp32} : "the PE transposes floats";
    cost pe: A * ceil_div(B, 128) * ceil_div(C, 128) * 128, hbm: bytes(x) + bytes(y);
    tolerance 1e-6, 1e-6;
    cases (A: 1, B: 128, C: 128), (A: 3, B: 130, C: 70), (A: 2, B: 1, C: 9);

    for a in 0..A across cores, b in tiles(B, 128), c in tiles(C, 128) {
        sbuf rows[b, c] bufs 3 <- x[a, b, c];
        psum t[c, b]: transposed(x.dtype) bufs 2 = rows';
        sbuf out[c, b]: x.dtype bufs 3 = t;
        y[a, c, b] <- out;
    }
}

leaf swap_axes_dma for swap_axes on trn1, trn2, trn3 {
    where C * D * bytes(x.dtype) * 2 <= sbuf.partition : "one row of C x D must fit one partition twice";
    cost hbm: bytes(x) + bytes(y);
    tolerance 0.0, 0.0;
    cases (A: 1, B: 128, C: 12, D: 32), (A: 2, B: 5, C: 3, D: 7), (A: 1, B: 12, C: 128, D: 32);

    for a in 0..A across cores, b in tiles(B, 128) {
        sbuf t[b, C, D] bufs 2 <- x[a, b, :, :];
        y.view("a c b d -> a b c d")[a, b, :, :] <- t;
    }
}

leaf slice_dma for slice on trn1, trn2, trn3 {
    where B * bytes(x.dtype) * 2 <= sbuf.partition : "one row must fit one partition twice";
    cost hbm: 2 * bytes(y);
    tolerance 0.0, 0.0;
    cases (A: 1, N: 128, B: 384, start: 3, count: 5), (A: 4, N: 9, B: 33, start: 0, count: 1);

    for a in 0..A, n in tiles(count, 128) {
        sbuf t[n, B] bufs 2 <- x[a, ds(start + n.start, n.size), :];
        y[a, n, :] <- t;
    }
}

// One row of the table per partition, fetched by the indices in a column.
leaf gather_rows_dma for gather_rows on trn1, trn2, trn3 {
    where H * bytes(table.dtype) * 2 <= sbuf.partition : "two rows must fit one partition";
    cost hbm: 2 * bytes(y);
    tolerance 0.0, 0.0;
    cases (V: 1000, H: 384, T: 128), (V: 7, H: 33, T: 1), (V: 30522, H: 384, T: 130);

    for t in tiles(T, P) {
        sbuf id[t, 1]: i32 <- ids[t];
        sbuf rows[t, H]: table.dtype bufs 2 <- table[id, :];
        y[t, :] <- rows;
    }
}

leaf cumsum_rows for cumsum on trn1, trn2, trn3 {
    param C in {512, 1024, 2048, 4096} = 2048;
    cost dve: ceil_div(B, P) * 2 * N, hbm: bytes(x) + bytes(y);
    tolerance y.dtype == fp32 ? 1e-3 : 1e-2, 1e-3;
    cases (B: 2048, N: 8192), (B: 1, N: 256), (B: 129, N: 5000);

    sbuf one[all, C]: fp32 = 1.0;
    for b in tiles(B, P) across cores {
        sbuf carry[b, 1]: fp32 = 0;
        for c in tiles(N, C) {
            sbuf xc[b, c] bufs 3 <- x[b, c];
            sbuf yc[b, c]: fp32 bufs 3 = scan(one[:, 0:c.size] * prev + xc, init: carry);   // DVE tensor_tensor_scan
            if (!c.last) { carry = yc[:, c.size - 1:c.size]; }
            y[b, c] <- yc;
        }
    }
}
