// Elementwise mathematics on rows. Tensors of any rank come as [T, N]; the split between the two is free.
use "reference/act.cps";

op unary(x[T, N]; f: Unary) -> y[T, N] {
    y = f == Unary.neg ? -x : f == Unary.copy ? x : apply(f, x);
}

op gelu(x[T, N]; approximate: bool = false) -> y[T, N] {
    y = approximate ? gelu_tanh(x) : gelu(x);
}

op silu(x[T, N]) -> y[T, N] {
    y = silu(x);
}

// y is one row, one column, one number or a whole tensor; `reverse` swaps the operands of f.
op binary(x[T, N], y[Ty, Ny]; f: Binary, reverse: bool = false) -> z[T, N] {
    assert (Ty == T || Ty == 1) && (Ny == N || Ny == 1) : "y must be [T, N], [1, N], [T, 1] or [1, 1]";
    let a = reverse ? y : x;
    let b = reverse ? x : y;
    z = f == Binary.add ? a + b : f == Binary.sub ? a - b : f == Binary.mul ? a * b : f == Binary.div ? a / b
      : f == Binary.maximum ? maximum(a, b) : minimum(a, b);
}

op affine(x[T, N]; mul: fp32 = 1.0, add: fp32 = 0.0) -> y[T, N] {
    y = x * mul + add;
}

op cast(x[T, N]; to: dtype) -> y[T, N]: to {
    y = x;
}

// One step of AdamW for one tensor of parameters; gives the new parameters. `bias1` and `bias2` are 1 - beta1^step and
// 1 - beta2^step: the defaults are the first step's.
op adamw(theta[T, N]: fp32, g[T, N]: fp32, m[T, N]: fp32, v[T, N]: fp32; lr: fp32 = 1e-3, beta1: fp32 = 0.9, beta2: fp32 = 0.999, eps: fp32 = 1e-8,
         weight_decay: fp32 = 1e-2, bias1: fp32 = 0.1, bias2: fp32 = 1e-3) -> y[T, N] {
    let m1 = beta1 * m + (1.0 - beta1) * g;
    let v1 = beta2 * v + (1.0 - beta2) * g * g;
    y = theta * (1.0 - lr * weight_decay) - lr / bias1 * m1 / (sqrt(v1 / bias2) + eps);
}
