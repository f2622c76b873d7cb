// Dense products. The epilogue (bias, activation, residual) is part of the operator, so that a leaf can keep the
// product in PSUM until it is whole.
use "reference/act.cps";

op matmul(x[M, K], w[K, N], bias?[N], residual?[M, N]; act: Act = Act.none) -> y[M, N] {
    let s = present(bias) ? x @ w + bias : x @ w;
    let a = act == Act.none ? s : apply(act, s);
    y = present(residual) ? a + residual : a;
}

// Quantised operands: one scale for each column of the product (a scale of all of x is taken into it).
op matmul_quantised(x[M, K], w[K, N], scale?[N]: fp32; to: dtype = bf16) -> y[M, N]: to {
    y = present(scale) ? (x @ w) * scale : x @ w;
}

// A product with a correction of low rank R: adapters of fine-tuned weights, kept beside them (Hu et al. 2021).
op matmul_lora(x[M, K], w[K, N], a[K, R], b[R, N]) -> y[M, N] {
    y = x @ w + (x @ a) @ b;
}

op bmm(x[B, M, K], w[B, K, N]) -> y[B, M, N] {
    y = x @ w;
}

op mlp(x[T, H], w_gate[H, I], w_up[H, I], w_down[I, H]; act: Act = Act.silu) -> y[T, H] {
    let g = x @ w_gate;
    let u = x @ w_up;
    y = ((act == Act.none ? g : apply(act, g)) * u) @ w_down;
}

// Batched products whose rows are turned into probabilities.
op bmm_softmax(x[B, M, K], w[B, K, N]) -> y[B, M, N] {
    let s = x @ w;
    let e = exp(s - max(s, axis: 2));
    y = e / sum(e, axis: 2);
}

// x + residual, its RMS norm, and a product: the norm of a layer with the projection behind it. gamma is optional.
op add_rmsnorm_matmul(x[M, K], residual[M, K], w[K, N], gamma?[K]; eps: fp32 = 1e-6) -> y[M, N] {
    let s = x + residual;
    let n = s * rsqrt(mean(s * s, axis: 1) + eps);
    y = (present(gamma) ? n * gamma : n) @ w;
}

// An RMS norm behind a product: of x w, or of x w + residual.
op matmul_rmsnorm(x[M, K], w[K, N], gamma[N], residual?[M, N]; eps: fp32 = 1e-6) -> y[M, N] {
    let p = x @ w;
    let s = present(residual) ? p + residual : p;
    y = s * rsqrt(mean(s * s, axis: 1) + eps) * gamma;
}
