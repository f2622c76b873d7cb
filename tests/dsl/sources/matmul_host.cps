// Host: register-blocked matmul.
use "leaves/matmul.cps";

leaf matmul_host for matmul on host {
    where x.dtype == fp32 && w.dtype == fp32;
    param MR in 1..14 = 6;                                      // rows of the register block
    param NV in 1..4 = 2;                                       // vectors in a row of it
    param KC in {128, 256, 512} = 256;
    param MC in {48, 96, 192} = 96;
    param NC in {1024, 2048, 4096} = 2048;
    let L = target.lanes(fp32);
    let NR = NV * L;
    where MR * NV + NV + 1 <= target.vregs : "the block must stay in registers";
    cost cycles: M * N * K / (L * target.fma_per_cycle), hbm: bytes(w) * ceil_div(M, MC) + bytes(x) + bytes(y);
    tolerance 1e-5, 1e-6;
    cases (M: 512, N: 512, K: 512), (M: 7, N: 33, K: 129), (M: 1, N: 4096, K: 4096);

    for jc in tiles(N, NC), kc in tiles(K, KC) {
        ram bp[ceil_div(jc.size, NR), kc, NR]: fp32 align 64 = 0;            // panels of NR columns
        for j in tiles(jc, NR) { bp[j.index, :, 0:j.size] <- w[kc, j]; }
        for ic in tiles(M, MC) across cores {
            for j in tiles(jc, NR), i in tiles(ic, MR) {
                vreg acc[i, NR]: fp32 = 0;
                for k in kc { acc += x[i, k] * bp[j.index, k, :]; }         // MR * NV fused multiply-adds, x broadcast
                if (!kc.first) { acc[:, 0:j.size] += y[i, j]; }
                if (kc.last && present(bias)) { acc[:, 0:j.size] += bias[j]; }
                if (kc.last) { acc = apply(act, acc); }
                if (kc.last && present(residual)) { acc[:, 0:j.size] += residual[i, j]; }
                y[i, j] = acc[:, 0:j.size];
            }
        }
    }
}
