// A slip in a name on the left never declares a tile.
// RUN: copse kernel list -I %s
// EXIT: 1
op twice(x[T, N]) -> y[T, N] {
    y = x + x;
}

leaf twice_rows for twice on trn2 {
    tolerance 1e-2, 1e-5;
    cases (T: 4, N: 8);

    for t in tiles(T, P) {
        sbuf xt[t, N] <- x[t, :];
        xr = xt * 2.0;
        y[t, :] <- xt;
    }
}
// ERR:
// tests/golden/bad/spelling.cps:14:9: error: `xr` is not declared [E2201]
//    14 |         xr = xt * 2.0;
//       |         ^~
// help: `=` writes to existing storage; did you mean `x`, or a declaration such as `sbuf xr[...] = ...`?
