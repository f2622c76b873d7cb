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
