// Gated MLP: the hidden activations stay on chip, transposed, so that the second product needs no transposes.
use "leaves/matmul.cps";

leaf mlp_tokens for mlp on trn1, trn2, trn3 {
    where x.dtype in {bf16, fp16, fp32} && w_gate.dtype == x.dtype && w_up.dtype == x.dtype && w_down.dtype == x.dtype : "all operands share bf16, fp16 or fp32";
    param TB in {128, 256, 512} = 128;
    where (ceil_div(H, 128) * 2 + ceil_div(I, 128)) * TB * bytes(x.dtype) + ceil_div(H, 128) * 128 * 4 * bytes(x.dtype) <= sbuf.partition * 3 / 4 : "a block of tokens and its hidden activations must stay on chip";
    cost pe: T * 3 * H * I / (128 * 128) * target.pe_passes(x.dtype), hbm: bytes(x) + bytes(y) + ceil_div(T, TB) * (bytes(w_gate) + bytes(w_up) + bytes(w_down));
    tolerance 2e-2, 1e-5;
    cases (T: 128, H: 256, I: 512), (T: 1, H: 384, I: 1000), (T: 130, H: 200, I: 136);

    for tb in tiles(T, TB) across cores {
        sbuf xt[H by 128, tb]: x.dtype bufs 1;
        load_transposed(xt, x[tb, :]);
        sbuf mid[I by 128, tb]: x.dtype bufs 1;
        for i in tiles(I, 128) {
            sbuf wg[H by 128, i] bufs 2 <- w_gate[:, i];
            sbuf wu[H by 128, i] bufs 2 <- w_up[:, i];
            psum g[i, tb]: fp32;
            psum u[i, tb]: fp32;
            for h in tiles(H, 128) { g += wg[h, i]' @ xt[h, tb]; }
            for h in tiles(H, 128) { u += wu[h, i]' @ xt[h, tb]; }
            sbuf s[i, tb]: fp32 bufs 2 = apply(act, g);         // ACT
            mid[i, tb] = s * u;                                 // DVE tensor_tensor, one operand in PSUM
        }
        for t in tiles(tb, 128), n in tiles(H, 512) {
            psum acc[t, n]: fp32 bufs 2;
            for i in tiles(I, 128) {
                sbuf wd[i, n] bufs 4 <- w_down[i, n];
                acc += mid[i, t]' @ wd;
            }
            y[t, n] <- acc bufs 2;
        }
    }
}
