// Cumulative sum with carry; two cores.
op cumsum(x[B, N]) -> y[B, N] {
    y = scan_add(x, axis: 1);
}

leaf cumsum_rows for cumsum on trn1, trn2, trn3 {
    param C in {512, 1024, 2048, 4096} = 2048;
    where B >= 128 || cores == 1 : "few rows and two cores: the halves leaf";
    cost dve: ceil_div(B, 128) * 2 * N, hbm: bytes(x) + bytes(y);
    tolerance 1e-3, 1e-3;
    cases (B: 2048, N: 8192), (B: 1, N: 256), (B: 129, N: 5000);

    sbuf one[all, C]: fp32 = 1.0;
    for b in tiles(B, P) across cores {
        sbuf carry[b, 1]: fp32 = 0;
        for c in tiles(N, C) {
            sbuf xc[b, c] bufs 3 <- x[b, c];
            sbuf yc[b, c]: fp32 bufs 3 = scan(one[:, 0:c.size] * prev + xc, init: carry);     // DVE tensor_tensor_scan
            if (!c.last) { carry = yc[:, c.size - 1:c.size]; }
            y[b, c] <- yc;
        }
    }
}

leaf cumsum_halves for cumsum on trn2, trn3 {                   // two cores, one half of the columns each
    param C in {512, 1024, 2048, 4096} = 2048;
    where cores == 2 && N >= 2 * C;
    cost dve: ceil_div(B, 128) * 3 * N / 2, hbm: 2 * bytes(x) + bytes(y);
    tolerance 1e-3, 1e-3;
    cases (B: 1, N: 8192), (B: 100, N: 5000);

    let half = share(range(N), core, 2);
    sbuf one[all, C]: fp32 = 1.0;
    for b in tiles(B, P) {
        sbuf parts[b, ceil_div(half.size, C)]: fp32;
        for c in tiles(half, C) {
            sbuf xc[b, c] bufs 3 <- x[b, c];
            parts[:, ds(c.index, 1)] = sum(xc, axis: free);     // DVE tensor_reduce
        }
        sbuf total[b, 1]: fp32 = sum(parts, axis: free);
        sbuf theirs[b, 1]: fp32;
        sendrecv(dst: theirs, src: total, peer: 1 - core, pipe: 0);         // both cores issue it: control flow must match
        sbuf carry[b, 1]: fp32 = theirs * (core == 0 ? 0.0 : 1.0);
        for c in tiles(half, C) {
            sbuf xc[b, c] bufs 3 <- x[b, c];
            sbuf yc[b, c]: fp32 bufs 3 = scan(one[:, 0:c.size] * prev + xc, init: carry);
            if (!c.last) { carry = yc[:, c.size - 1:c.size]; }
            y[b, c] <- yc;
        }
    }
}
