// What does not fit says so with the live set, and the program ends with 4.
// RUN: copse kernel run big -I %s --dims T=128,N=65536 --no-cache
// EXIT: 4
op big(x[T, N]) -> y[T, N] {
    y = x + x;
}

leaf big_rows for big on trn2 {
    tolerance 1e-2, 1e-5;
    cases (T: 4, N: 8);

    sbuf a[T, N] <- x;
    sbuf b[T, N]: fp32 = a * 2.0;
    y <- b;
}
// ERR:
// tests/golden/bad/capacity.cps:13:10: error: buffer 'b' takes bytes 0..262143 of a partition of SBUF, which has 211968 [E5113]
//    13 |     sbuf b[T, N]: fp32 = a * 2.0;
//       |          ^
