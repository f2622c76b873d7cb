// Gated MLP: the hidden activations stay on chip, turned, so that the second product needs no transposes.
use "reference/act.cps";
use "leaves/matmul.cps";

leaf mlp_tokens for mlp on trn1, trn2, trn3 {
    where x.dtype in {bf16, fp16, fp32} && w_gate.dtype == x.dtype && w_up.dtype == x.dtype && w_down.dtype == x.dtype
        : "all operands must share bf16, fp16 or fp32";
    param TB in {128, 256, 512} = 512;                          // tokens of a block
    param IB in {128, 256, 512} = 256;                          // hidden columns of a load
    param KB in {1, 2, 4, 8} = 4;                               // rows of w_down in a load, in tiles of 128
    let size = bytes(x.dtype);
    let tokens = min(TB, T);
    where (2 * ceil_div(H, 128) + ceil_div(I, 128)) * tokens * size + 4 * ceil_div(H, 128) * min(IB, I) * size + 2 * KB * 512 * size
          + (size == 2 && target.dma_transpose ? 0 : 2 * H * size) + tokens * 8 + 1024 * size + 4096 <= sbuf.partition
        : "a block of tokens and its hidden activations must stay on chip";
    cost pe: T * 3 * H * I / (128 * 128) * target.pe_passes(x.dtype) + ceil_div(T, TB) * 3 * H * I / 128,
         hbm: bytes(x) + bytes(y) + ceil_div(T, TB) * (bytes(w_gate) + bytes(w_up) + bytes(w_down) * ceil_div(tokens, 512));
    tolerance x.dtype == fp32 ? 1e-4 : 2e-2, 1e-5;
    cases (T: 128, H: 256, I: 512), (T: 1, H: 384, I: 1000), (T: 130, H: 200, I: 136), (T: 520, H: 130, I: 70, dtype: fp32), (T: 1, H: 1, I: 1, act: Act.gelu);

    for tb in tiles(T, TB) across cores {
        sbuf xt[H by 128, tb]: x.dtype bufs 2;
        load_transposed(xt, x[tb, :]);
        sbuf mid[I by 128, tb]: x.dtype bufs 1;
        for ib in tiles(I, IB) {
            sbuf wg[H by 128, ib] bufs 2 <- w_gate[:, ib];
            sbuf wu[H by 128, ib] bufs 2 <- w_up[:, ib];
            for i in tiles(ib, 128) {
                psum g[i, tb]: fp32 bufs 2;
                psum u[i, tb]: fp32 bufs 2;
                for h in tiles(H, 128) { g += wg[h, i]' @ xt[h, tb]; }
                for h in tiles(H, 128) { u += wu[h, i]' @ xt[h, tb]; }
                sbuf s[i, tb]: fp32 bufs 2 = apply(act, g);     // ACT
                mid[i, tb] = s * u;                             // DVE tensor_tensor, one operand in PSUM
            }
        }
        for n in tiles(H, 512), t in tiles(tb, 128) {
            psum acc[t, n]: fp32 bufs 2;
            for kb in tiles(I, KB * 128) {
                sbuf wd[kb by 128, n] bufs 2 <- w_down[kb, n];
                for i in tiles(kb, 128) { acc += mid[i, t]' @ wd[i, n]; }
            }
            y[t, n] <- acc bufs 2;
        }
    }
}
