// Mixture of experts, blockwise: indirection, dynamic count, skips, accumulation.
use "leaves/matmul.cps";

// One block of B tokens goes to one expert. Row T of x and y is padding; with skip_token padding ids are negative instead.
op moe_blockwise(x[TP, H], affinity[TE, 1], w_gate_up[E, H, 2, I], w_down[E, I, H], token_id[NB]: i32, block_expert[N]: i32,
                 num_blocks[1]: i32; B: int = 256, accumulate: bool = true, skip_token: bool = false, skip_weight: bool = false,
                 act: Act = Act.silu, scaling: Scaling = Scaling.post) -> y[TP, H] {
    y = zeros(TP, H);
    for n in 0..N {
        let e = block_expert[n];
        let ids = select(n < num_blocks[0], token_id[ds(n * B, B)], -1);
        let t = gather(x, ids);                                 // a negative id gives a zero row and writes nothing
        let m = apply(act, t @ w_gate_up[e, :, 0, :]) * (t @ w_gate_up[e, :, 1, :]);
        let a = scaling == Scaling.post ? gather(affinity, ids * E + e) : 1.0;
        y = accumulate ? scatter_add(y, ids, a * (m @ w_down[e, :, :])) : scatter(y, ids, a * (m @ w_down[e, :, :]));
    }
}

enum Scaling { none = 0, post = 1, pre = 2 }

leaf moe_blockwise_loop for moe_blockwise on trn2, trn3 {
    where B % 128 == 0 && B <= 512 : "a block is one moving tile: B in {128, 256, 384, 512}";
    where H % 512 == 0 && 512 <= H && H <= 8192;
    where I % 16 == 0 && scaling != Scaling.pre : "pre-scaling has its own leaf";
    where x.dtype == bf16 && w_gate_up.dtype == bf16;
    cost pe: N * (3 * H * I / (128 * 128)) * B, hbm: N * (3 * H * I * 2 + 3 * B * H * 2);
    tolerance 2e-2, 1e-5;
    cases (TP: 1025, H: 3072, E: 8, I: 2048, N: 12, B: 512),
          (TP: 513, H: 512, E: 4, I: 144, N: 6, B: 128, accumulate: false);

    for t in tiles(TP, P) {
        sbuf zero[t, H]: y.dtype = 0;
        y[t, :] <- zero;
    }

    reg last: i32 = -1;
    sbuf wg[H by 128, I]: bf16;
    sbuf wu[H by 128, I]: bf16;
    sbuf wd[I by 128, H]: bf16;
    reg count: i32 <- num_blocks[0];

    loop n in 0..count {                                        // a hardware loop: traced once, n is a register
        reg e: i32 <- block_expert[n];
        when (e != last) {                                      // same expert as before: keep its weights
            wg <- w_gate_up[e, :, 0, :] oob skip_weight;
            wu <- w_gate_up[e, :, 1, :] oob skip_weight;
            wd <- w_down[e, :, :] oob skip_weight;
        }
        last = e;

        sbuf ids[B by 128, 1]: i32 <- token_id[ds(n * B, B)];
        sbuf xt[H by 128, B]: bf16;
        for b in tiles(B, 128) {
            sbuf rows[b, H]: bf16;
            if (skip_token) { rows = 0; }
            rows <- x[ids[b, :], :] oob skip_token;             // indirect: one row of x per partition
            for h in tiles(H, 512) {
                psum p[h by 128, b]: bf16;
                for k in tiles(h, 128) { p[k, b] = rows[:, k]'; }
                xt[h, b] = p;
            }
        }

        sbuf mid[I by 128, B]: bf16;
        for i in tiles(I, 128) {
            psum g[i, B]: fp32;
            psum u[i, B]: fp32;
            for h in tiles(H, 128) { g += wg[h, i]' @ xt[h, :]; }
            for h in tiles(H, 128) { u += wu[h, i]' @ xt[h, :]; }
            sbuf s[i, B]: fp32 = apply(act, g);                  // ACT
            mid[i, :] = s * u;                                  // DVE tensor_tensor, one operand in PSUM
        }

        sbuf et[all, 1]: i32 <- block_expert[n];
        for b in tiles(B, 128) {
            sbuf aff[b, 1]: fp32 = 1.0;
            if (scaling == Scaling.post) {
                sbuf arow[b, 1]: i32 = ids[b, :] * E + et;      // POOL, 32-bit integers
                aff <- affinity[arow, :] oob skip_token;
            }
            for h in tiles(H, 512) {
                psum acc[b, h]: fp32;
                for i in tiles(I, 128) { acc += mid[i, b]' @ wd[i, h]; }
                sbuf out[b, h]: y.dtype bufs 3;
                if (accumulate) {
                    sbuf old[b, h]: y.dtype bufs 3 = 0;
                    old <- y[ids[b, :], h] oob skip_token;
                    out = acc * aff + old;                      // DVE scalar_tensor_tensor
                } else {
                    out = acc * aff;                            // DVE tensor_scalar, or ACT with a scale
                }
                y[ids[b, :], h] <- out oob skip_token;
            }
        }
    }
}
