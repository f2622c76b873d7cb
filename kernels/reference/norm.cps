// Normalisations over the last axis.
op rmsnorm(x[T, H], gamma[H]; eps: fp32 = 1e-6) -> y[T, H] {
    y = x * rsqrt(mean(x * x, axis: 1) + eps) * gamma;
}

// A norm with the projection behind it: the normalised rows are nobody else's.
op rmsnorm_matmul(x[M, K], w[K, N], gamma?[K]; eps: fp32 = 1e-6) -> y[M, N] {
    let r = x * rsqrt(mean(x * x, axis: 1) + eps);
    let n = present(gamma) ? r * gamma : r;
    y = n @ w;
}

// `residual` is added to x first: the "add and norm" of encoders.
op layernorm(x[T, H], gamma[H], beta[H], residual?[T, H]; eps: fp32 = 1e-5) -> y[T, H] {
    let s = present(residual) ? x + residual : x;
    let d = s - mean(s, axis: 1);
    y = d * rsqrt(mean(d * d, axis: 1) + eps) * gamma + beta;
}

op softmax(x[T, N]) -> y[T, N] {
    let e = exp(x - max(x, axis: 1));
    y = e / sum(e, axis: 1);
}

// RMS norm (or none) with a scale per row for 8-bit results: q * scale is the norm, |q| <= 240. Values beyond
// `lower_bound` are clipped to it first, when it is above 0.
op rmsnorm_quant(x[T, H], gamma?[H]; eps: fp32 = 1e-6, lower_bound: fp32 = 0.0, norm: bool = true) -> q[T, H]: fp8e4m3, scale[T, 1]: fp32 {
    let r = norm ? rsqrt(mean(x * x, axis: 1) + eps) : ones(T, 1, dtype: fp32);
    let n = present(gamma) ? x * r * gamma : x * r;
    let c = lower_bound > 0.0 ? minimum(maximum(n, 0.0 - lower_bound), lower_bound) : n;
    let s = maximum(max(abs(c), axis: 1) * (1.0 / 240.0), 1e-6);
    q = c / s;
    scale = s;
}
