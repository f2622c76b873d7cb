// Conversions that engines make on the way: read as stored, compute in fp32, write as the target type.
use "leaves/rows.cps";

leaf cast_rows for cast on trn1, trn2, trn3 {
    where x.dtype in {bf16, fp16, fp32, i32, i16, i8, u8, bool} && to in {bf16, fp16, fp32, i32, i16}
        : "the engines convert between bf16, fp16, fp32 and integers of up to 32 bits";
    where !(x.dtype in {bf16, fp16, fp32}) || to in {bf16, fp16, fp32} : "the engines round to the nearest integer, the operator cuts";
    param C in {512, 1024, 2048, 4096} = 2048;
    cost dve: ceil_div(T * N, P), hbm: bytes(x) + bytes(y);
    tolerance 1e-2, 1e-5;
    cases (T: 128, N: 384, to: fp32), (T: 3, N: 5, dtype: fp32, to: bf16), (T: 131, N: 37, dtype: i32, to: fp32), (T: 2, N: 9, dtype: u8, to: i32);

    let xs = spread(x);
    let ys = spread(y);
    for t in tiles(xs.shape[0], P) across cores, c in tiles(xs.shape[1], C) {
        sbuf xt[t, c] bufs 3 <- xs[t, c];
        sbuf yt[t, c]: to bufs 3 = xt;
        ys[t, c] <- yt;
    }
}

// Towards zero: the nearest integer of |x|, less one where that lies above, with the sign of x.
leaf cast_truncate for cast on trn1, trn2, trn3 {
    where x.dtype in {bf16, fp16, fp32} && to in {i32, i16} : "from floats to integers";
    param C in {512, 1024, 2048} = 1024;
    cost dve: ceil_div(T * N, P) * 4, act: ceil_div(T * N, P) * 2, hbm: bytes(x) + bytes(y);
    tolerance 0.0, 0.0;
    cases (T: 128, N: 384, to: i32), (T: 3, N: 5, dtype: fp32, to: i32), (T: 1, N: 3001, dtype: fp32, to: i16);

    let xs = spread(x);
    let ys = spread(y);
    for t in tiles(xs.shape[0], P) across cores, c in tiles(xs.shape[1], C) {
        sbuf xt[t, c] bufs 3 <- xs[t, c];
        sbuf a[t, c]: fp32 = abs(xt);
        sbuf near[t, c]: i32 = a;
        sbuf r[t, c]: fp32 = near;
        sbuf above[t, c]: fp32 = r > a;
        sbuf whole[t, c]: fp32 = r - above;
        sbuf yt[t, c]: to bufs 3 = whole * sign(xt);
        ys[t, c] <- yt;
    }
}

// Words of one size: the bits stay, nothing is computed.
leaf cast_words for cast on trn1, trn2, trn3 {
    where x.dtype in {i32, u32} && to in {i32, u32} : "from 32-bit integers to 32-bit integers";
    cost hbm: bytes(x);
    tolerance 0.0, 0.0;
    cases (T: 4, N: 33, dtype: u32, to: i32), (T: 1, N: 1, dtype: i32, to: u32), (T: 300, N: 7, dtype: u32, to: i32);

    y.bits(u32) <- x.bits(u32);
}

// 64-bit integers are no engine type: the low words of the elements are loaded. The caller has checked their range.
leaf cast_int64 for cast on trn1, trn2, trn3 {
    where x.dtype == i64 && to in {i32, fp32, bf16, fp16} : "from 64-bit integers";
    cost dve: ceil_div(T, P) * N, hbm: bytes(x) + bytes(y);
    tolerance 1e-2, 1e-5;
    cases (T: 1, N: 128, dtype: i64, to: i32), (T: 4, N: 33, dtype: i64, to: fp32), (T: 130, N: 3, dtype: i64, to: bf16);

    for t in tiles(T, P) across cores, c in tiles(N, 2048) {
        sbuf xt[t, c]: i32 bufs 2 <- x.bits(i32)[t, 2 * c.start:2 * c.end:2];
        if (to == i32) { y[t, c] <- xt; } else { sbuf yt[t, c]: to bufs 2 = xt; y[t, c] <- yt; }
    }
}
