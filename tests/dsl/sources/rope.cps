// Rotary position embedding on one head: the halves of a row are rotated pairwise.
op rope(x[T, d], cos[T, d / 2], sin[T, d / 2]) -> y[T, d] {
    let a = x[:, 0:d / 2];
    let b = x[:, d / 2:d];
    y[:, 0:d / 2] = a * cos - b * sin;
    y[:, d / 2:d] = b * cos + a * sin;
}
