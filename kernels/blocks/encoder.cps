// Blocks put kernels together. A block names operators, never leaves: each call is resolved by the registry for the
// target at hand, and intermediates live in HBM.
use "reference/act.cps";

// The feed-forward half of an encoder layer: two products with their epilogues, then add and norm.
block encoder_mlp(x[T, H], w_in[H, I], b_in[I], w_out[I, H], b_out[H], gamma[H], beta[H];
                  act: Act = Act.gelu, eps: fp32 = 1e-5) -> y[T, H] {
    let h = matmul(x, w_in, b_in, act: act);
    let o = matmul(h, w_out, b_out);
    y = layernorm(o, gamma, beta, residual: x, eps: eps);
}

// The gated feed-forward half of a decoder layer.
block mlp_block(x[T, H], gamma[H], w_gate[H, I], w_up[H, I], w_down[I, H]; eps: fp32 = 1e-6) -> y[T, H] {
    let n = rmsnorm(x, gamma, eps: eps);
    y = mlp(n, w_gate, w_up, w_down) + x;
}
