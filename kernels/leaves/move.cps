// Movement through SBUF. What a DMA can reorder by descriptors costs nothing more than the copy.
use "leaves/rows.cps";

// y[A, C, B] receives x[A, B, C], 128 x 128 at a time: on the PE bits move, nothing is computed.
fn turn(y, x) {
    for a in 0..x.shape[0] across cores, bb in tiles(x.shape[1], 512), cc in tiles(x.shape[2], 2048) {
        sbuf rows[bb by 128, cc]: x.dtype bufs 2 <- x[a, bb, cc];
        for c in tiles(cc, 128) {
            psum t[c, bb]: transposed(x.dtype) bufs 3;          // four blocks in a bank, one copy
            for b in tiles(bb, 128) { t[:, b] = rows[b, c]'; }
            sbuf out[c, bb]: x.dtype bufs 3 = t;
            y[a, c, bb] <- out;
        }
    }
}

leaf transpose_pe for transpose on trn1, trn2, trn3 {
    where x.dtype in {bf16, fp16, fp32} : "the PE transposes bf16, fp16 and fp32";
    cost pe: A * ceil_div(B, 128) * ceil_div(C, 128) * 128 * target.pe_passes(x.dtype), dve: A * ceil_div(C, 128) * B, hbm: bytes(x) + bytes(y);
    tolerance 1e-6, 1e-6;
    cases (A: 1, B: 128, C: 128), (A: 3, B: 130, C: 70), (A: 2, B: 1, C: 9), (A: 1, B: 300, C: 513, dtype: fp32);

    turn(y, x);
}

// Any element type, element by element: descriptors do the work, slowly.
leaf transpose_elements for transpose on trn1, trn2, trn3 {
    where B * C <= 16384 : "every element is a descriptor: at most 16384 in a matrix";
    cost hbm: 64 * (bytes(x) + bytes(y));
    tolerance 0.0, 0.0;
    cases (A: 1, B: 3, C: 100, dtype: i32), (A: 2, B: 7, C: 5, dtype: u8), (A: 1, B: 130, C: 2, dtype: i64);

    for a in 0..A across cores, b in tiles(B, 128), c in tiles(C, 128) {
        sbuf t[b, c] bufs 2 <- x[a, b, c];
        y[a, c, b]' <- t via elements;
    }
}

// From place to place in memory: a transfer passes the engines once, where the roof counts reading and writing.
leaf swap_axes_dma for swap_axes on trn1, trn2, trn3 {
    where D > 1 || B == 1 || C == 1 : "rows of one element make a transpose, which has a leaf of its own";
    cost hbm: bytes(x);
    tolerance 0.0, 0.0;
    cases (A: 1, B: 128, C: 12, D: 32), (A: 2, B: 5, C: 3, D: 7), (A: 1, B: 12, C: 128, D: 32), (A: 1, B: 3, C: 300, D: 130, dtype: fp32),
          (A: 1, B: 1, C: 1, D: 1), (A: 2, B: 3, C: 20, D: 12, dtype: i64);

    for b in tiles(B, ceil_div(B, cores)) across cores { y[:, :, b, :] <- x.view("a b c d -> a c b d")[:, :, b, :]; }
}

leaf swap_axes_pe for swap_axes on trn1, trn2, trn3 {
    where D == 1 : "longer rows need no transpose";
    where x.dtype in {bf16, fp16, fp32} : "the PE transposes bf16, fp16 and fp32";
    cost pe: A * ceil_div(B, 128) * ceil_div(C, 128) * 128 * target.pe_passes(x.dtype), dve: A * ceil_div(C, 128) * B, hbm: bytes(x) + bytes(y);
    tolerance 1e-6, 1e-6;
    cases (A: 2, B: 130, C: 70, D: 1), (A: 1, B: 5, C: 300, D: 1, dtype: fp32);

    turn(y.view("a c b d -> a c (b d)"), x.view("a b c d -> a b (c d)"));
}

leaf swap_axes_elements for swap_axes on trn1, trn2, trn3 {
    where D == 1 : "longer rows need no transpose";
    where B * C <= 16384 : "every element is a descriptor: at most 16384 in a matrix";
    cost hbm: 64 * (bytes(x) + bytes(y));
    tolerance 0.0, 0.0;
    cases (A: 2, B: 13, C: 70, D: 1, dtype: i32), (A: 1, B: 130, C: 3, D: 1, dtype: u8);

    let ys = y.view("a c b d -> a c (b d)");
    for a in 0..A across cores, b in tiles(B, 128) {
        sbuf t[b, C] bufs 2 <- x.view("a b c d -> a b (c d)")[a, b, :];
        ys[a, :, b]' <- t via elements;
    }
}

// Rows cut out of the middle axis, from place to place in memory.
leaf slice_dma for slice on trn1, trn2, trn3 {
    where start >= 0 && count >= 1 && start + count <= N : "the slice must lie inside the axis";
    cost hbm: bytes(y);
    tolerance 0.0, 0.0;
    cases (A: 1, N: 128, B: 384, start: 3, count: 5), (A: 4, N: 9, B: 33, start: 0, count: 1), (A: 300, N: 10, B: 5, start: 3, count: 2),
          (A: 1, N: 400, B: 3, start: 100, count: 300, dtype: i64), (A: 128, N: 1152, B: 1, start: 384, count: 384), (A: 2, N: 3, B: 5, start: 0, count: 1);

    for a in tiles(A, ceil_div(A, cores)) across cores { y[a, :, :] <- x[a, ds(start, count), :]; }
}

// One row of the table per partition, fetched by the indices in a column. A transfer moves one element per row, the
// largest power of two that divides it: rows of odd length take many.
leaf gather_rows_dma for gather_rows on trn1, trn2, trn3 {
    let line = H * bytes(table.dtype);
    let elem = grain(line);
    cost hbm: 2 * bytes(y) + ceil_div(T, P) * (line / elem) * 512 * 1024;
    tolerance 0.0, 0.0;
    cases (V: 1000, H: 384, T: 128), (V: 7, H: 33, T: 1), (V: 30522, H: 384, T: 130), (V: 50, H: 301, T: 3, dtype: fp32), (V: 3, H: 4, T: 2, dtype: i64);

    let C = min(H, min(sbuf.partition / 4 / bytes(table.dtype), 128 * elem / bytes(table.dtype)));
    for t in tiles(T, P) across cores {
        sbuf given[t, 1]: i32 <- ids[t];
        sbuf id[t, 1]: i32 = given + (given >> 31) * V;         // a negative one counts from the end: its sign bit is 1
        for c in tiles(H, C) {
            sbuf rows[t, c]: table.dtype bufs 2 <- table[id, c];
            y[t, c] <- rows;
        }
    }
}

leaf cumsum_rows for cumsum on trn1, trn2, trn3 {
    where x.dtype in {bf16, fp16, fp32} : "x must be bf16, fp16 or fp32";
    param C in {512, 1024, 2048, 4096} = 2048;
    param ahead in {0, 1, 2} = 0;                               // further tiles on their way in and out
    cost dve: ceil_div(B, P) * 2 * N, hbm: bytes(x) + bytes(y);
    tolerance x.dtype == fp32 ? 1e-4 : 1e-2, 1e-5;
    cases (B: 128, N: 2048), (B: 1, N: 256), (B: 129, N: 5000), (B: 3, N: 1, dtype: fp32);

    sbuf one[all, C]: fp32 = 1.0;
    for b in tiles(B, P) across cores {
        sbuf carry[b, 1]: fp32 = 0;
        for c in tiles(N, C) {
            sbuf xc[b, c] bufs 3 + ahead <- x[b, c];
            sbuf yc[b, c]: fp32 bufs 2 + ahead = scan(one[:, 0:c.size] * prev + xc, init: carry);   // DVE tensor_tensor_scan
            if (!c.last) { carry = yc[:, c.size - 1:c.size]; }
            y[b, c] <- yc;
        }
    }
}
