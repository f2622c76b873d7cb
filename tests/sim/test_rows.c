/* The remaining rows: v4's activations, running folds, predicated stores, random numbers,
 * packed and single-pass matmuls, transfers with arithmetic made at run time, semaphore clears.
 */
#include "runtime/base/exp.h"
#include "tests/sim/rig.h"

enum { P = 128, N = 64, A = 0, B = 4096, C = 8192, O = 16384 };

static void
test_v4(void)
{
    float *v = rig_vals(P * N + P);
    rig r = rig_new("trn3");
    rig_in(&r, 0, P, A, CPS_DT_FP32, N, v);
    rig_in(&r, 0, P, B, CPS_DT_FP32, 1, v + P * N);
    cps_bundle t = kb_insn(&r.b, CPS_INSN_ACTIVATION_TABLE_LOAD);
    cps_isa_set(&t, CPS_F_CTRL_TL_set, (unsigned)cps_actfn_set(CPS_ACTFN_EXP));
    kb_put(&r.b, CPS_ACT, t);
    cps_bundle a = kb_insn(&r.b, CPS_INSN_ACTIVATE2);
    kb_ap(&a, CPS_F_S2D2_AC_src, ap1(A, N));
    kb_ap(&a, CPS_F_S2D2_AC_dst, ap1(O, N));
    cps_isa_set(&a, CPS_F_S2D2_AC_imm0_src, CPS_IMM_SRC_POINTER_IMMEDIATE);
    cps_isa_set(&a, CPS_F_S2D2_AC_imm0, B);
    cps_isa_set_f32(&a, CPS_F_S2D2_AC_imm1, 0.5f);
    cps_isa_set(&a, CPS_F_S2D2_AC_imm_dtype, wire(CPS_DT_FP32));
    cps_isa_set(&a, CPS_F_S2D2_AC_op0, CPS_ALU_MULT);
    cps_isa_set(&a, CPS_F_S2D2_AC_op1, CPS_ALU_SUBTRACT);
    cps_isa_set(&a, CPS_F_S2D2_AC_in_dtype, wire(CPS_DT_FP32));
    cps_isa_set(&a, CPS_F_S2D2_AC_out_dtype, wire(CPS_DT_FP32));
    cps_isa_set(&a, CPS_F_S2D2_AC_ch, P);
    cps_isa_set(&a, CPS_F_S2D2_AC_activation_function, CPS_ACTFN_EXP);
    cps_isa_set(&a, CPS_F_S2D2_AC_reverse_operands, CPS_TENS_SCALAR_REV_OPS_SECOND);
    rig_put(&r, CPS_ACT, a);
    rig_run(&r, 0, P, O, N * 4);
    unsigned bad = 0;
    for (int i = 0; i < P * N; i++) {
        float m = v[i] * v[P * N + i / N];
        bad += rig_f32(&r, i / N, i % N, CPS_DT_FP32) != cps_exp_f32(0.5f - m);
    }
    CHECK_INT(bad, 0);
    rig_free(&r);

    r = rig_new("trn3"); // exp(x - max) with its sum
    rig_in(&r, 0, P, A, CPS_DT_FP32, N, v);
    a = kb_insn(&r.b, CPS_INSN_EXPONENTIAL);
    kb_ap(&a, CPS_F_S3D3_TS_src, ap1(A, N));
    kb_ap(&a, CPS_F_S3D3_TS_dst, ap1(O, N));
    cps_isa_set(&a, CPS_F_S3D3_TS_in_dtype, wire(CPS_DT_FP32));
    cps_isa_set(&a, CPS_F_S3D3_TS_out_dtype, wire(CPS_DT_FP32));
    cps_isa_set(&a, CPS_F_S3D3_TS_ch, P);
    cps_isa_set_f32(&a, CPS_F_S3D3_TS_imm0, 2.0f);
    cps_isa_set(&a, CPS_F_S3D3_TS_accumulator_cmd, CPS_ACCUM_CMD_ZERO_ACCUMULATE);
    rig_put(&r, CPS_DVE, a);
    cps_bundle rd = kb_insn(&r.b, CPS_INSN_DVE_READ_ACCUMULATOR);
    kb_ap(&rd, CPS_F_D1_RD_dst, ap1(O + N * 4, 1));
    cps_isa_set(&rd, CPS_F_D1_RD_dtype, wire(CPS_DT_FP32));
    cps_isa_set(&rd, CPS_F_D1_RD_ch, P);
    rig_put(&r, CPS_DVE, rd);
    rig_run(&r, 0, P, O, N * 4 + 4);
    bad = 0;
    for (int p = 0; p < P; p++) {
        float sum = 0;
        for (int k = 0; k < N; k++) {
            float w = cps_exp_f32(v[p * N + k] - 2.0f);
            sum += w;
            bad += rig_f32(&r, p, k, CPS_DT_FP32) != w;
        }
        bad += rig_f32(&r, p, N, CPS_DT_FP32) != sum;
    }
    CHECK_INT(bad, 0);
    rig_free(&r);
    free(v);
}

static void
test_running(void)
{
    float *v = rig_vals(P * N);
    rig r = rig_new("trn2");
    rig_in(&r, 0, P, A, CPS_DT_FP32, N, v);
    cps_bundle i = kb_insn(&r.b, CPS_INSN_TENSOR_CUMULATIVE_ARITH);
    kb_ap(&i, CPS_F_S4D4_TR_src, ap2(A, 1, 16, 16, 4));
    kb_ap(&i, CPS_F_S4D4_TR_dst, ap1(O, N));
    cps_isa_set(&i, CPS_F_S4D4_TR_in_dtype, wire(CPS_DT_FP32));
    cps_isa_set(&i, CPS_F_S4D4_TR_out_dtype, wire(CPS_DT_FP32));
    cps_isa_set(&i, CPS_F_S4D4_TR_ch, P);
    cps_isa_set(&i, CPS_F_S4D4_TR_op, CPS_ALU_ADD);
    cps_isa_set(&i, CPS_F_S4D4_TR_op_dim, CPS_TENSOR_SUBDIM_X);
    rig_put(&r, CPS_DVE, i);
    rig_run(&r, 0, P, O, N * 4);
    unsigned bad = 0;
    for (int p = 0; p < P; p++) {
        float s = 0;
        for (int k = 0; k < N; k++) {
            s = k % 16 ? s + v[p * N + k] : v[p * N + k];
            bad += rig_f32(&r, p, k, CPS_DT_FP32) != s;
        }
    }
    CHECK_INT(bad, 0);
    rig_free(&r);
    free(v);
}

/* Scalar where the predicate is false (reversed 0) or true; converted data where it is true. */
static void
test_predicated(void)
{
    float *v = rig_vals(P * N), *m = rig_vals(P * N);
    for (int i = 0; i < P * N; i++)
        m[i] = (float)(i % 5 == 2);
    for (unsigned rev = 0; rev < 2; rev++) {
        rig r = rig_new("trn2");
        rig_in(&r, 0, P, A, CPS_DT_U8, N, m);
        rig_in(&r, 0, P, O, CPS_DT_FP32, N, v);
        cps_bundle i = kb_insn(&r.b, CPS_INSN_COPY_PREDICATED_SCALAR);
        kb_ap(&i, CPS_F_S3D3_CP_PRED_SCALAR_pred, ap1(A, N));
        kb_ap(&i, CPS_F_S3D3_CP_PRED_SCALAR_dst, ap1(O, N));
        cps_isa_set(&i, CPS_F_S3D3_CP_PRED_SCALAR_pred_dtype, wire(CPS_DT_U8));
        cps_isa_set(&i, CPS_F_S3D3_CP_PRED_SCALAR_reversed_pred, rev);
        cps_isa_set(&i, CPS_F_S3D3_CP_PRED_SCALAR_ch, P);
        cps_isa_set(&i, CPS_F_S3D3_CP_PRED_SCALAR_in_dtype, wire(CPS_DT_FP32));
        cps_isa_set(&i, CPS_F_S3D3_CP_PRED_SCALAR_out_dtype, wire(CPS_DT_FP32));
        cps_isa_set_f32(&i, CPS_F_S3D3_CP_PRED_SCALAR_src0_imm, 4.5f);
        rig_put(&r, CPS_DVE, i);
        rig_run(&r, 0, P, O, N * 4);
        unsigned bad = 0;
        for (int k = 0; k < P * N; k++) {
            bool put = (k % 5 == 2) == (rev == 1);
            bad += rig_f32(&r, k / N, k % N, CPS_DT_FP32) != (put ? 4.5f : v[k]);
        }
        CHECK_INT(bad, 0);
        rig_free(&r);
    }
    rig r = rig_new("trn2");
    rig_in(&r, 0, P, A, CPS_DT_U8, N, m);
    rig_in(&r, 0, P, B, CPS_DT_FP32, N, v);
    rig_in(&r, 0, P, O, CPS_DT_BF16, N, m);
    cps_bundle i = kb_insn(&r.b, CPS_INSN_CAST_PREDICATED);
    cps_isa_set(&i, CPS_F_S3S3D3_TT_in0_in1_dtype, pair(CPS_DT_U8, CPS_DT_FP32));
    cps_isa_set(&i, CPS_F_S3S3D3_TT_out_dtype, wire(CPS_DT_BF16));
    cps_isa_set(&i, CPS_F_S3S3D3_TT_ch, P);
    kb_ap(&i, CPS_F_S3S3D3_TT_src0, ap1(A, N));
    kb_ap(&i, CPS_F_S3S3D3_TT_src1, ap1(B, N));
    kb_ap(&i, CPS_F_S3S3D3_TT_dst, ap1(O, N));
    rig_put(&r, CPS_DVE, i);
    rig_run(&r, 0, P, O, N * 2);
    unsigned bad = 0;
    for (int k = 0; k < P * N; k++)
        bad += rig_f32(&r, k / N, k % N, CPS_DT_BF16) !=
               (k % 5 == 2 ? rig_round(CPS_DT_BF16, v[k]) : 0);
    CHECK_INT(bad, 0);
    rig_free(&r);
    free(v);
    free(m);
}

/* Random bits look random and repeat from run to run; dropout keeps about what it should. */
static void
test_random(void)
{
    rig r = rig_new("trn2");
    cps_bundle g = kb_insn(&r.b, CPS_INSN_RNG);
    kb_ap(&g, CPS_F_D4_MR_dst, ap1(O, N));
    cps_isa_set(&g, CPS_F_D4_MR_dtype, wire(CPS_DT_U32));
    cps_isa_set(&g, CPS_F_D4_MR_ch, P);
    cps_isa_set(&g, CPS_F_D4_MR_dst_element_count, N);
    rig_put(&r, CPS_DVE, g);
    rig_run(&r, 0, P, O, N * 4);
    unsigned ones = 0;
    for (int k = 0; k < P * N; k++)
        ones += (unsigned)__builtin_popcountll((uint64_t)rig_int(&r, k / N, k % N, CPS_DT_U32));
    CHECK(ones > P * N * 15 && ones < P * N * 17);
    rig_free(&r);
    float *v = rig_vals(P * N);
    for (int k = 0; k < P * N; k++)
        v[k] = 3;
    r = rig_new("trn2");
    rig_in(&r, 0, P, A, CPS_DT_FP32, N, v);
    cps_bundle d = kb_insn(&r.b, CPS_INSN_DROPOUT);
    kb_ap(&d, CPS_F_S3D3_DROPOUT_src, ap1(A, N));
    kb_ap(&d, CPS_F_S3D3_DROPOUT_dst, ap1(O, N));
    cps_isa_set(&d, CPS_F_S3D3_DROPOUT_in_dtype, wire(CPS_DT_FP32));
    cps_isa_set(&d, CPS_F_S3D3_DROPOUT_out_dtype, wire(CPS_DT_FP32));
    cps_isa_set(&d, CPS_F_S3D3_DROPOUT_ch, P);
    cps_isa_set_f32(&d, CPS_F_S3D3_DROPOUT_threshold, 0.25f);
    rig_put(&r, CPS_DVE, d);
    rig_run(&r, 0, P, O, N * 4);
    int kept = 0, other = 0;
    for (int k = 0; k < P * N; k++) {
        float x = rig_f32(&r, k / N, k % N, CPS_DT_FP32);
        kept += x == 3;
        other += x != 3 && x != 0;
    }
    CHECK(other == 0);
    CHECK(kept > P * N * 70 / 100 && kept < P * N * 80 / 100);
    rig_free(&r);
    free(v);
}

/* fp8 with pairs of rows in one PE (K = 256), and fp32r in one pass (operands rounded to tf32).
 */
static void
test_matmul_modes(bool pairs)
{
    enum { K = 128, M = 32, W = 64 };
    cps_dtype t = pairs ? CPS_DT_FP8E4M3 : CPS_DT_FP32;
    int planes = pairs ? 2 : 1, es = (int)cps_dtype_bytes(t);
    float *v = rig_vals(K * planes * (M + W));
    for (int i = 0; i < K * planes * (M + W); i++)
        v[i] *= pairs ? 1 : 1.0f + (float)(i % 3) * 0x1p-12f;
    rig r = rig_new("trn2");
    rig_in(&r, 0, K, A, t, planes * M, v);
    rig_in(&r, 0, K, B, t, planes * W, v + K * planes * M);
    cps_bundle l = kb_insn(&r.b, CPS_INSN_LDWEIGHTS), x = kb_insn(&r.b, CPS_INSN_MATMUL);
    unsigned mode = pairs ? 0 : CPS_PE_FP32MODE_HIGH;
    unsigned perf = pairs ? CPS_PERF_OPT_MODE_DOUBLE_ROW : CPS_PERF_OPT_MODE_NONE;
    kb_ap(&l, CPS_F_S3_LW_src, pairs ? ap2(A, 1, M, M, 2) : ap1(A, M));
    cps_isa_set(&l, CPS_F_S3_LW_in_dtype, wire(t));
    cps_isa_set(&l, CPS_F_S3_LW_fp32_mode, mode);
    cps_isa_set(&l, CPS_F_S3_LW_perf_opt, perf);
    cps_isa_set(&l, CPS_F_S3_LW_num_active_rows, K);
    cps_isa_set(&l, CPS_F_S3_LW_num_active_cols, M);
    cps_isa_set(&l, CPS_F_S3_LW_row_grp, 0xF);
    cps_isa_set(&l, CPS_F_S3_LW_col_grp, 1);
    rig_put(&r, CPS_PE, l);
    kb_ap(&x, CPS_F_S3D3_MM_src, pairs ? ap2(B, 1, W, W, 2) : ap1(B, W));
    kb_ap(&x, CPS_F_S3D3_MM_dst, ap1(cps_addr_psum(0, 0), W));
    cps_isa_set(&x, CPS_F_S3D3_MM_in_dtype, wire(t));
    cps_isa_set(&x, CPS_F_S3D3_MM_fp32_mode, mode);
    cps_isa_set(&x, CPS_F_S3D3_MM_perf_opt, perf);
    cps_isa_set(&x, CPS_F_S3D3_MM_num_active_rows, K);
    cps_isa_set(&x, CPS_F_S3D3_MM_num_active_cols, M);
    cps_isa_set(&x, CPS_F_S3D3_MM_out_dtype, wire(CPS_DT_FP32));
    cps_isa_set(&x, CPS_F_S3D3_MM_psum_accumulate_flags, 3);
    cps_isa_set(&x, CPS_F_S3D3_MM_row_grp, 0xF);
    cps_isa_set(&x, CPS_F_S3D3_MM_col_grp, 1);
    kb_inc(&x, 7);
    rig_put(&r, CPS_PE, x);
    cps_bundle c = kb_insn(&r.b, CPS_INSN_COPY);
    kb_ap(&c, CPS_F_S4D4_TR_src, ap1(cps_addr_psum(0, 0), W));
    kb_ap(&c, CPS_F_S4D4_TR_dst, ap1(O, W));
    cps_isa_set(&c, CPS_F_S4D4_TR_in_dtype, wire(CPS_DT_FP32));
    cps_isa_set(&c, CPS_F_S4D4_TR_out_dtype, wire(CPS_DT_FP32));
    cps_isa_set(&c, CPS_F_S4D4_TR_ch, M);
    kb_wait(&c, 7, 1);
    rig_put(&r, CPS_DVE, c);
    rig_run(&r, 0, M, O, W * 4);
    double worst = 0;
    cps_dtype inside = pairs ? t : CPS_DT_TF32;
    (void)es;
    for (int m = 0; m < M; m++) {
        for (int n = 0; n < W; n++) {
            double sum = 0;
            for (int q = 0; q < planes; q++) {
                for (int k = 0; k < K; k++)
                    sum += (double)rig_round(inside, v[k * planes * M + q * M + m]) *
                           rig_round(inside, v[K * planes * M + k * planes * W + q * W + n]);
            }
            worst = fmax(worst, fabs(sum - rig_f32(&r, m, n, CPS_DT_FP32)));
        }
    }
    CHECK(worst < 2e-4);
    rig_free(&r);
    free(v);
}

/* DMA_MEMCPY of a 2-D pattern that converts and one that adds; DMA_TRANSPOSE; all on one queue.
 */
static void
test_dge(void)
{
    kb b = kb_new("trn2");
    uint32_t x = kb_var(&b, "x", CPS_VAR_INPUT, CPS_DT_BF16, 64 * 32);
    uint32_t y = kb_var(&b, "y", CPS_VAR_INOUT, CPS_DT_FP32, 64 * 32);
    uint32_t z = kb_var(&b, "z", CPS_VAR_OUTPUT, CPS_DT_BF16, 64 * 32);
    for (unsigned k = 0; k < 2; k++) {
        cps_bundle m = kb_insn(&b, CPS_INSN_DMA_MEMCPY);
        cps_isa_set(&m, CPS_F_DMA_DIRECT2D_semaphore, 9);
        cps_isa_set(&m, CPS_F_DMA_DIRECT2D_sem_increment, 16);
        cps_isa_set(&m, CPS_F_DMA_DIRECT2D_compute_op,
                    k ? CPS_DGE_COMPUTE_OP_ADD : CPS_DGE_COMPUTE_OP_NONE);
        for (unsigned d = 0; d < 2; d++) {
            cps_isa_set_elem(&m, CPS_F_DMA_DIRECT2D_src_step_elem, d, d ? 32 : 1);
            cps_isa_set_elem(&m, CPS_F_DMA_DIRECT2D_dst_step_elem, d, d ? 32 : 1);
            cps_isa_set_elem(&m, CPS_F_DMA_DIRECT2D_src_num_elem, d, d ? 64 : 32);
            cps_isa_set_elem(&m, CPS_F_DMA_DIRECT2D_dst_num_elem, d, d ? 64 : 32);
        }
        cps_isa_set(&m, CPS_F_DMA_DIRECT2D_src_elem_size, 2);
        cps_isa_set(&m, CPS_F_DMA_DIRECT2D_dst_elem_size, 4);
        cps_isa_set(&m, CPS_F_DMA_DIRECT2D_in_dtype, wire(CPS_DT_BF16));
        cps_isa_set(&m, CPS_F_DMA_DIRECT2D_out_dtype, wire(CPS_DT_FP32));
        if (k)
            kb_wait(&m, 9, 16);
        kb_put(&b, CPS_POOL, m);
        cps_kreloc from = {CPS_POOL, k, CPS_F_DMA_DIRECT2D_src, x, 0};
        cps_kreloc to = {CPS_POOL, k, CPS_F_DMA_DIRECT2D_dst, y, 0};
        cps_vec_push(b.a, &b.k->relocs, from);
        cps_vec_push(b.a, &b.k->relocs, to);
    }
    cps_bundle t = kb_insn(&b, CPS_INSN_DMA_TRANSPOSE);
    cps_isa_set(&t, CPS_F_DMA_DIRECT2D_XPOSE_in_dtype, wire(CPS_DT_BF16));
    cps_isa_set(&t, CPS_F_DMA_DIRECT2D_XPOSE_out_dtype, wire(CPS_DT_BF16));
    for (unsigned d = 0; d < 2; d++) {
        cps_isa_set_elem(&t, CPS_F_DMA_DIRECT2D_XPOSE_src_step_elem, d, d ? 32 : 1);
        cps_isa_set_elem(&t, CPS_F_DMA_DIRECT2D_XPOSE_src_num_elem, d, d ? 64 : 32);
        cps_isa_set_elem(&t, CPS_F_DMA_DIRECT2D_XPOSE_dst_step_elem, d, d ? 64 : 1);
        cps_isa_set_elem(&t, CPS_F_DMA_DIRECT2D_XPOSE_dst_num_elem, d, d ? 32 : 64);
    }
    cps_isa_set(&t, CPS_F_DMA_DIRECT2D_XPOSE_tile_cols, 32);
    cps_isa_set(&t, CPS_F_DMA_DIRECT2D_XPOSE_semaphore, 11);
    kb_put(&b, CPS_POOL, t);
    cps_kreloc from = {CPS_POOL, 2, CPS_F_DMA_DIRECT2D_XPOSE_src, x, 0};
    cps_kreloc to = {CPS_POOL, 2, CPS_F_DMA_DIRECT2D_XPOSE_dst, z, 0};
    cps_vec_push(b.a, &b.k->relocs, from);
    cps_vec_push(b.a, &b.k->relocs, to);
    CHECK(kb_load(&b));
    static uint16_t xs[2048], zs[2048];
    static float ys[2048];
    for (int i = 0; i < 2048; i++)
        cps_from_f32(CPS_DT_BF16, &xs[i], rig_val(i));
    cps_sim_bind(b.s, "x", xs, sizeof xs, true, b.d);
    cps_sim_bind(b.s, "y", ys, sizeof ys, false, b.d);
    cps_sim_bind(b.s, "z", zs, sizeof zs, false, b.d);
    bool ok = kb_run(&b);
    CHECK(ok);
    if (!ok)
        kb_show(&b);
    unsigned bad = 0;
    for (int i = 0; i < 2048; i++) {
        bad += ys[i] != 2 * cps_to_f32(CPS_DT_BF16, &xs[i]);
        bad += zs[i / 32 + i % 32 * 64] != xs[i];
    }
    CHECK_INT(bad, 0);
    kb_free(&b);
}

/* A cleared semaphore starts again: the second wait for 1 is a new one, and without the second
 * rise nothing goes on. */
static void
test_clear(bool second)
{
    kb b = kb_new("trn2");
    cps_bundle up = kb_insn(&b, CPS_INSN_NOP);
    kb_inc(&up, 5);
    kb_put(&b, CPS_POOL, up);
    cps_bundle w = kb_insn(&b, CPS_INSN_NOP);
    kb_wait(&w, 5, 1);
    kb_put(&b, CPS_SP, w);
    cps_bundle c = kb_insn(&b, CPS_INSN_EVENT_SEMAPHORE_RANGE_CLEAR);
    cps_isa_set(&c, CPS_F_CTRL_ER_clear, CPS_SEM_CLEAR_MODE_RANGE);
    cps_isa_set(&c, CPS_F_CTRL_ER_first, 4);
    cps_isa_set(&c, CPS_F_CTRL_ER_last, 6);
    kb_put(&b, CPS_SP, c);
    cps_bundle go = kb_insn(&b, CPS_INSN_NOP);
    kb_inc(&go, 8);
    kb_put(&b, CPS_SP, go);
    if (second) {
        cps_bundle again = up;
        kb_wait(&again, 8, 1);
        kb_put(&b, CPS_POOL, again);
    }
    kb_put(&b, CPS_SP, w);
    CHECK(kb_load(&b));
    CHECK(kb_run(&b) == second);
    CHECK(kb_has(&b, CPS_E8301) == !second);
    if (!second)
        CHECK(kb_says(&b, "nothing that is left"));
    kb_free(&b);
}

/* DRAIN: a trigger behind it is ordered after its own engine's datapath without a semaphore. */
static void
test_drain(void)
{
    kb b = kb_new("trn2");
    uint32_t y = kb_var(&b, "y", CPS_VAR_OUTPUT, CPS_DT_FP32, 128 * 16);
    kb_block(&b, CPS_POOL, "q_out", 0, 5, false, y, 0, 64, 0, 128, 0, 64);
    cps_bundle m = kb_insn(&b, CPS_INSN_MEMSET);
    kb_ap(&m, CPS_F_D4_MR_dst, ap1(0, 16));
    cps_isa_set(&m, CPS_F_D4_MR_dtype, wire(CPS_DT_FP32));
    cps_isa_set(&m, CPS_F_D4_MR_ch, 128);
    cps_isa_set(&m, CPS_F_D4_MR_dst_element_count, 16);
    cps_isa_set_f32(&m, CPS_F_D4_MR_set_value, 6.5f);
    kb_put(&b, CPS_POOL, m);
    kb_put(&b, CPS_POOL, kb_insn(&b, CPS_INSN_DRAIN));
    kb_put(&b, CPS_POOL, kb_trigger(&b, "q_out", 0));
    cps_bundle end = kb_insn(&b, CPS_INSN_PSEUDO_INST);
    cps_isa_set(&end, CPS_F_PSEUDO_INST_sub_op, CPS_PSEUDO_INST_SUBOP_EXIT);
    kb_put(&b, CPS_POOL, end);
    CHECK(kb_load(&b));
    static float out[128 * 16];
    cps_sim_bind(b.s, "y", out, sizeof out, false, b.d);
    CHECK(kb_run(&b));
    CHECK(out[77] == 6.5f && out[2047] == 6.5f);
    kb_free(&b);
}

int
main(void)
{
    test_v4();
    test_running();
    test_predicated();
    test_random();
    test_matmul_modes(true);
    test_matmul_modes(false);
    test_dge();
    test_clear(true);
    test_clear(false);
    test_drain();
    return CHECK_DONE();
}
