/* A 1024^3 bf16 matmul with all checks on: right, free of findings, and quick enough to use. */
#include "tests/sim/kb.h"

#include <time.h>

enum { N = 1024, TILE = 128, WIDE = 512 };

static void
build(kb *b)
{
    uint32_t at = kb_var(b, "at", CPS_VAR_INPUT, CPS_DT_BF16, N * N);
    uint32_t w = kb_var(b, "w", CPS_VAR_INPUT, CPS_DT_BF16, N * N);
    uint32_t y = kb_var(b, "y", CPS_VAR_OUTPUT, CPS_DT_FP32, N * N);
    // k-tiles of both operands: 8 x 2 KiB per partition each
    for (int k = 0; k < 8; k++) {
        kb_block(b, CPS_SP, "q_in", 2u * (unsigned)k, 10u + (unsigned)k, true, at,
                 (int64_t)k * TILE * N * 2, N * 2, 0, TILE, k * 2048, 2048);
        kb_put(b, CPS_SP, kb_trigger(b, "q_in", 2u * (unsigned)k));
        kb_block(b, CPS_SP, "q_in", 2u * (unsigned)k + 1, 20u + (unsigned)k, true, w,
                 (int64_t)k * TILE * N * 2, N * 2, 0, TILE, 16384 + k * 2048, 2048);
        kb_put(b, CPS_SP, kb_trigger(b, "q_in", 2u * (unsigned)k + 1));
    }
    int group = 0;
    for (int m = 0; m < 8; m++) {
        for (int n = 0; n < 2; n++, group++) {
            unsigned bank = (unsigned)group % 8;
            for (int k = 0; k < 8; k++) {
                cps_bundle l = kb_insn(b, CPS_INSN_LDWEIGHTS);
                kb_ap(&l, CPS_F_S3_LW_src,
                      ap1(cps_addr_sbuf(0, (unsigned)(k * 2048 + m * 256)), TILE));
                cps_isa_set(&l, CPS_F_S3_LW_in_dtype, wire(CPS_DT_BF16));
                cps_isa_set(&l, CPS_F_S3_LW_num_active_rows, TILE);
                cps_isa_set(&l, CPS_F_S3_LW_num_active_cols, TILE);
                cps_isa_set(&l, CPS_F_S3_LW_row_grp, 0xF);
                cps_isa_set(&l, CPS_F_S3_LW_col_grp, 0xF);
                if (group == 0)
                    kb_wait(&l, 10u + (unsigned)k, 16);
                else if (k == 0 && group >= 8) // the bank was copied out
                    kb_wait(&l, 6, (unsigned)group - 7);
                kb_put(b, CPS_PE, l);
                cps_bundle x = kb_insn(b, CPS_INSN_MATMUL);
                kb_ap(&x, CPS_F_S3D3_MM_src,
                      ap1(cps_addr_sbuf(0, (unsigned)(16384 + k * 2048 + n * 1024)), WIDE));
                kb_ap(&x, CPS_F_S3D3_MM_dst, ap1(cps_addr_psum(0, bank * 2048), WIDE));
                cps_isa_set(&x, CPS_F_S3D3_MM_in_dtype, wire(CPS_DT_BF16));
                cps_isa_set(&x, CPS_F_S3D3_MM_num_active_rows, TILE);
                cps_isa_set(&x, CPS_F_S3D3_MM_num_active_cols, TILE);
                cps_isa_set(&x, CPS_F_S3D3_MM_out_dtype, wire(CPS_DT_FP32));
                cps_isa_set(&x, CPS_F_S3D3_MM_psum_accumulate_flags,
                            k == 0   ? 1
                            : k == 7 ? 2
                                     : 0);
                cps_isa_set(&x, CPS_F_S3D3_MM_row_grp, 0xF);
                cps_isa_set(&x, CPS_F_S3D3_MM_col_grp, 0xF);
                if (group == 0)
                    kb_wait(&x, 20u + (unsigned)k, 16);
                if (k == 7)
                    kb_inc(&x, 4);
                kb_put(b, CPS_PE, x);
            }
            unsigned out = 65536 + (unsigned)group % 4 * 2048;
            cps_bundle c = kb_insn(b, CPS_INSN_COPY);
            kb_ap(&c, CPS_F_S4D4_TR_src, ap1(cps_addr_psum(0, bank * 2048), WIDE));
            kb_ap(&c, CPS_F_S4D4_TR_dst, ap1(cps_addr_sbuf(0, out), WIDE));
            cps_isa_set(&c, CPS_F_S4D4_TR_in_dtype, wire(CPS_DT_FP32));
            cps_isa_set(&c, CPS_F_S4D4_TR_out_dtype, wire(CPS_DT_FP32));
            cps_isa_set(&c, CPS_F_S4D4_TR_ch, TILE);
            if (group >= 4) { // the buffer was stored
                cps_bundle e = kb_insn(b, CPS_INSN_EVENT_SEMAPHORE);
                kb_wait(&e, 30u + (unsigned)group % 4, 16u * (unsigned)(group / 4));
                kb_put(b, CPS_DVE, e);
            }
            kb_wait(&c, 4, (unsigned)group + 1);
            kb_inc(&c, 6);
            kb_put(b, CPS_DVE, c);
            kb_block(b, CPS_ACT, "q_out", (unsigned)group, 30u + (unsigned)group % 4, false, y,
                     ((int64_t)m * TILE * N + n * WIDE) * 4, N * 4, 0, TILE, (int)out,
                     WIDE * 4);
            cps_bundle t = kb_trigger(b, "q_out", (unsigned)group);
            kb_wait(&t, 6, (unsigned)group + 1);
            kb_put(b, CPS_ACT, t);
        }
    }
}

/* A loop of `times` over what was put since `from`, on engine e. */
static void
repeat(kb *b, cps_engine e, uint32_t from, int times)
{
    cps_bundle add = kb_insn(b, CPS_INSN_ALU_OP), br = kb_insn(b, CPS_INSN_COMPARE_BRANCH);
    cps_isa_set(&add, CPS_F_CTRL_AL_op, CPS_ALU_ADD);
    cps_isa_set(&add, CPS_F_CTRL_AL_dtype, wire(CPS_DT_I32));
    cps_isa_set(&add, CPS_F_CTRL_AL_src1_datasrc, CPS_DATA_SRC_IMMEDIATE);
    cps_isa_set(&add, CPS_F_CTRL_AL_src0_lo, 3);
    cps_isa_set(&add, CPS_F_CTRL_AL_dst_lo, 3);
    cps_isa_set(&add, CPS_F_CTRL_AL_imm, 1);
    kb_put(b, e, add);
    cps_isa_set(&br, CPS_F_CTRL_BR_cmp_op, CPS_BR_CMP_OP_LT_IMM);
    cps_isa_set(&br, CPS_F_CTRL_BR_dtype, wire(CPS_DT_I32));
    cps_isa_set(&br, CPS_F_CTRL_BR_target_mode, CPS_BR_TARGET_MODE_RELATIVE_IMMEDIATE);
    cps_isa_set(&br, CPS_F_CTRL_BR_cmp_imm, (uint64_t)times);
    cps_isa_set(&br, CPS_F_CTRL_BR_cmp_reg0, 3);
    cps_isa_set(&br, CPS_F_CTRL_BR_branch, (uint64_t)((int64_t)from - b->k->stream[e].code.n));
    kb_put(b, e, br);
}

/* Products, copies out of PSUM and vector work that wait for each other, for their time alone.
 */
static void
time_only(void)
{
    enum { BODY = 32, TIMES = 20000 };
    kb b = kb_new("trn2");
    for (int k = 0; k < BODY; k++) {
        cps_bundle w = kb_insn(&b, CPS_INSN_LDWEIGHTS), x = kb_insn(&b, CPS_INSN_MATMUL);
        kb_ap(&w, CPS_F_S3_LW_src, ap1(cps_addr_sbuf(0, (unsigned)k * 256), TILE));
        cps_isa_set(&w, CPS_F_S3_LW_in_dtype, wire(CPS_DT_BF16));
        cps_isa_set(&w, CPS_F_S3_LW_num_active_rows, TILE);
        cps_isa_set(&w, CPS_F_S3_LW_num_active_cols, TILE);
        cps_isa_set(&w, CPS_F_S3_LW_row_grp, 0xF);
        cps_isa_set(&w, CPS_F_S3_LW_col_grp, 0xF);
        kb_put(&b, CPS_PE, w);
        kb_ap(&x, CPS_F_S3D3_MM_src, ap1(cps_addr_sbuf(0, 16384), WIDE));
        kb_ap(&x, CPS_F_S3D3_MM_dst, ap1(cps_addr_psum(0, (unsigned)k / 8 * 2048), WIDE));
        cps_isa_set(&x, CPS_F_S3D3_MM_in_dtype, wire(CPS_DT_BF16));
        cps_isa_set(&x, CPS_F_S3D3_MM_num_active_rows, TILE);
        cps_isa_set(&x, CPS_F_S3D3_MM_num_active_cols, TILE);
        cps_isa_set(&x, CPS_F_S3D3_MM_out_dtype, wire(CPS_DT_FP32));
        cps_isa_set(&x, CPS_F_S3D3_MM_psum_accumulate_flags,
                    k % 8 == 0   ? 1
                    : k % 8 == 7 ? 2
                                 : 0);
        cps_isa_set(&x, CPS_F_S3D3_MM_row_grp, 0xF);
        cps_isa_set(&x, CPS_F_S3D3_MM_col_grp, 0xF);
        if (k % 8 == 7)
            kb_inc(&x, 4);
        kb_put(&b, CPS_PE, x);
    }
    repeat(&b, CPS_PE, 0, TIMES);
    for (int k = 0; k < BODY / 8; k++) {
        cps_bundle down = kb_insn(&b, CPS_INSN_EVENT_SEMAPHORE);
        cps_isa_set(&down, CPS_F_EVENTS_wait_mode, CPS_WAIT_SEM_GE_IMM);
        cps_isa_set(&down, CPS_F_EVENTS_wait_idx, 4);
        cps_isa_set(&down, CPS_F_EVENTS_semaphore_value, 1);
        cps_isa_set(&down, CPS_F_EVENTS_update_mode, CPS_UPDATE_SEM_DEC_READ);
        cps_isa_set(&down, CPS_F_EVENTS_update_idx, 4);
        kb_put(&b, CPS_DVE, down);
        cps_bundle c = kb_insn(&b, CPS_INSN_COPY);
        kb_ap(&c, CPS_F_S4D4_TR_src, ap1(cps_addr_psum(0, (unsigned)k * 2048), WIDE));
        kb_ap(&c, CPS_F_S4D4_TR_dst, ap1(cps_addr_sbuf(0, 65536 + (unsigned)k * 2048), WIDE));
        cps_isa_set(&c, CPS_F_S4D4_TR_in_dtype, wire(CPS_DT_FP32));
        cps_isa_set(&c, CPS_F_S4D4_TR_out_dtype, wire(CPS_DT_FP32));
        cps_isa_set(&c, CPS_F_S4D4_TR_ch, TILE);
        kb_put(&b, CPS_DVE, c);
        for (int j = 0; j < 2; j++) {
            kb_ap(&c, CPS_F_S4D4_TR_src, ap1(cps_addr_sbuf(0, 65536 + (unsigned)k * 2048), 64));
            kb_ap(&c, CPS_F_S4D4_TR_dst, ap1(cps_addr_sbuf(0, 98304 + (unsigned)k * 2048), 64));
            kb_put(&b, CPS_DVE, c);
        }
    }
    repeat(&b, CPS_DVE, 0, TIMES);
    cps_sim *timer = cps_sim_create_timer(b.t);
    CHECK(cps_sim_load(timer, b.k, b.d));
    cps_sim_opts o = {.max_steps = (uint64_t)1 << 40};
    clock_t t0 = clock();
    bool ok = cps_sim_run(timer, &o, &b.rep, b.d);
    double s = (double)(clock() - t0) / CLOCKS_PER_SEC;
    kb_show(&b);
    CHECK(ok);
    uint64_t n = 0;
    for (int e = 0; e < CPS_ENGINES; e++)
        n += b.rep.instructions[e];
    CHECK_INT(n, (int64_t)TIMES * (2 * BODY + 2 + BODY / 8 * 4 + 2));
    printf("time only: %.1f million instructions a second\n", (double)n / s * 1e-6);
    CHECK(s < 20);
    cps_sim_destroy(timer);
    kb_free(&b);
}

int
main(void)
{
    time_only();
    kb b = kb_new("trn2");
    build(&b);
    CHECK(kb_load(&b));
    uint16_t *at = malloc(N * N * 2), *w = malloc(N * N * 2);
    float *y = malloc(N * N * 4);
    for (int i = 0; i < N * N; i++) {
        cps_from_f32(CPS_DT_BF16, &at[i], (float)((i * 37 + i / N) % 19 - 9));
        cps_from_f32(CPS_DT_BF16, &w[i], (float)((i * 11 + i / 77) % 23 - 11));
    }
    cps_sim_bind(b.s, "at", at, N * N * 2, true, b.d);
    cps_sim_bind(b.s, "w", w, N * N * 2, true, b.d);
    cps_sim_bind(b.s, "y", y, N * N * 4, false, b.d);
    clock_t t0 = clock();
    bool ok = kb_run(&b);
    double s = (double)(clock() - t0) / CLOCKS_PER_SEC;
    kb_show(&b);
    CHECK(ok);
    printf("1024^3 bf16: %.3f s of processor, %.1f us on the device\n", s,
           (double)b.rep.time_ps * 1e-6);
    unsigned bad = 0;
    for (int i = 0; i < N; i += 61) {
        for (int j = 0; j < N; j += 7) {
            float sum = 0; // small integers: exact in any order
            for (int k = 0; k < N; k++)
                sum += cps_to_f32(CPS_DT_BF16, &at[k * N + i]) *
                       cps_to_f32(CPS_DT_BF16, &w[k * N + j]);
            bad += sum != y[i * N + j];
        }
    }
    CHECK_INT(bad, 0);
    CHECK_INT(b.rep.pe_macs, (int64_t)N * N * N);
    // 128 matmuls of 519 cycles at 2.4 GHz, plus loads, warm-up and the last store
    CHECK(b.rep.time_ps > 28000000 && b.rep.time_ps < 50000000);
    CHECK(s < 20);
    free(at);
    free(w);
    free(y);
    kb_free(&b);
    return CHECK_DONE();
}
