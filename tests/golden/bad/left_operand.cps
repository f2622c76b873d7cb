// The left operand of a product must be a transposed tile.
// RUN: copse kernel run prod -I %s --dims M=128,K=128,N=128 --no-cache
// EXIT: 1
op prod(x[M, K], w[K, N]) -> y[M, N] {
    y = x @ w;
}

leaf prod_wrong for prod on trn2 {
    tolerance 1e-2, 1e-5;
    cases (M: 128, K: 128, N: 128);

    sbuf xt[M, K] <- x;
    sbuf wt[K, N] <- w;
    psum acc[M, N]: fp32;
    acc += xt @ wt;
    y <- acc;
}
// ERR:
// tests/golden/bad/left_operand.cps:15:12: error: the left operand of @ must be a transposed tile [E3210]
//    15 |     acc += xt @ wt;
//       |            ^~
// note: the PE contracts over the partitions of both operands
// help: write xt' with the contraction on its partitions
// tests/golden/bad/left_operand.cps:16:10: error: `acc` is read before anything was written to it [E4201]
//    16 |     y <- acc;
//       |          ^~~
// tests/golden/bad/left_operand.cps:14:10: note: declared here; every execution of a declaration starts empty
//    14 |     psum acc[M, N]: fp32;
//       |          ^~~
