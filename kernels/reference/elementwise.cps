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
