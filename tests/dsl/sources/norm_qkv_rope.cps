// RMS norm + QKV + RoPE, orchestration.
use "leaves/rope.cps";

block norm_qkv_rope(x[T, D], gamma[D], w[D, (nq + 2 * nkv) * d], cos[T, d / 2], sin[T, d / 2];
                    nq: int, nkv: int, d: int = 128, eps: fp32 = 1e-6)
    -> q[nq, T, d], k[nkv, T, d], v[nkv, T, d] {
    where D % 128 == 0 : "D must be a multiple of 128";
    param TB in {128, 256, 512, 1024} = 512;

    for t in tiles(T, TB) across cores {
        sbuf n = rmsnorm(x[t, :], gamma, eps: eps);             // stays on chip: the registry picks a leaf whose result may be in sbuf
        sbuf a = matmul(n, w);
        for h in 0..nq  { q[h, t, :] = rope(a[:, ds(h * d, d)], cos[t, :], sin[t, :]); }
        for h in 0..nkv { k[h, t, :] = rope(a[:, ds((nq + h) * d, d)], cos[t, :], sin[t, :]); }
        for h in 0..nkv { v[h, t, :] = a[:, ds((nq + nkv + h) * d, d)]; }
    }
}
