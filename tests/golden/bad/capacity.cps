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
// tests/golden/bad/capacity.cps:13:5: error: 393216 bytes per partition of SBUF are live here, 211968 can be used [E4101]
//    13 |     sbuf b[T, N]: fp32 = a * 2.0;
//       |     ^~~~~~~~~~~~~~~~~~~~~~~~~~~~~
// tests/golden/bad/capacity.cps:12:10: note: 'a': 1 slot of 131072 bytes
//    12 |     sbuf a[T, N] <- x;
//       |          ^
// tests/golden/bad/capacity.cps:13:10: note: 'b': 1 slot of 262144 bytes
//    13 |     sbuf b[T, N]: fp32 = a * 2.0;
//       |          ^
// help: use smaller pieces, or fewer slots (`bufs`)
