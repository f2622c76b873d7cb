// Two tensors one after the other along the middle axis; longer lists are joined in pairs.
op concat(x[A, N, B], y[A, M, B]) -> z[A, N + M, B] {
    z = concat(x, y, axis: 1);
}
