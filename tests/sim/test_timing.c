/* Modelled times against published ones and against the mechanisms: serial issue, rates,
 * dependent stalls, shared ports, PE warm-up. Sources: NKI guides and their profiles (golden
 * times). */
#include "tests/sim/kb.h"

static int64_t
run(kb *b, void *x, size_t n)
{
    CHECK(kb_load(b));
    if (n)
        CHECK(cps_sim_bind(b->s, "x", x, n, true, b->d));
    cps_sim_opts o = {.checks = 0};
    bool ok = cps_sim_run(b->s, &o, &b->rep, b->d);
    CHECK(ok);
    if (!ok)
        kb_show(b);
    // the same without data
    cps_sim_report bare = {0};
    cps_sim *timer = cps_sim_create_timer(b->t);
    CHECK(cps_sim_load(timer, b->k, b->d) && cps_sim_run(timer, &o, &bare, b->d));
    CHECK_INT(bare.time_ps, b->rep.time_ps);
    cps_sim_destroy(timer);
    return b->rep.time_ps;
}

static bool
near(double got, double want, double tolerance)
{
    if (fabs(got / want - 1) <= tolerance)
        return true;
    fprintf(stderr, "%g, want %g\n", got, want);
    return false;
}

/* `count` loads of `parts` rows of `row` bytes each through one queue. */
static double
loads(const char *target, int count, int parts, int row)
{
    kb b = kb_new(target);
    size_t n = (size_t)parts * (size_t)row;
    uint32_t x = kb_var(&b, "x", CPS_VAR_INPUT, CPS_DT_U8, (int64_t)n);
    for (int k = 0; k < count; k++) {
        kb_block(&b, CPS_SP, "q", (uint32_t)k, 3, true, x, 0, row, 0, parts, 0, row);
        kb_put(&b, CPS_SP, kb_trigger(&b, "q", (uint32_t)k));
    }
    void *m = calloc(n, 1);
    double ns = (double)run(&b, m, n) * 1e-3;
    free(m);
    kb_free(&b);
    return ns;
}

static void
test_dma(void)
{
    // 32 KiB over one engine: 1.81 us on trn1, 1.416 us on trn2, without trigger and receipt
    CHECK(near(loads("trn1", 1, 8, 4096) - 1300, 1810, 0.06));
    CHECK(near(loads("trn2", 1, 8, 4096) - 1300, 1416, 0.06));
    CHECK(near(loads("trn2", 1, 128, 16) - 1300, 468, 0.35)); // stagger of the engines
    // serial issue of small loads
    CHECK(near((loads("trn2", 101, 4, 64) - loads("trn2", 1, 4, 64)) / 100, 600, 0.01));
    CHECK(near((loads("trn1", 101, 4, 64) - loads("trn1", 1, 4, 64)) / 100, 320, 0.01));
    // large loads run at the engines' rate: 16 x 24 B/ns less 5 ns for each 4 KiB
    double big = loads("trn2", 1, 128, 131072) - loads("trn2", 1, 128, 65536);
    CHECK(near(128 * 65536 / big, 16 * 4096 / (4096 / 24.0 + 5), 0.01));
    // rows of 256 B reach about 68 % of the raw rate on trn1
    double small = loads("trn1", 20, 128, 256 * 64) - loads("trn1", 1, 128, 256 * 64);
    CHECK(small > 0);
}

/* A chain of dependent one-element activations: 189 ns apart on trn1. */
static void
test_act_chain(void)
{
    double t[2];
    for (int k = 0; k < 2; k++) {
        kb b = kb_new("trn1");
        cps_bundle m = kb_insn(&b, CPS_INSN_MEMSET);
        kb_ap(&m, CPS_F_D4_MR_dst, ap1(0, 64));
        cps_isa_set(&m, CPS_F_D4_MR_dtype, wire(CPS_DT_FP32));
        cps_isa_set(&m, CPS_F_D4_MR_ch, 128);
        cps_isa_set(&m, CPS_F_D4_MR_dst_element_count, 64);
        kb_inc(&m, 3);
        kb_put(&b, CPS_DVE, m);
        for (int i = 0; i < (k ? 41 : 1); i++) {
            cps_bundle a = kb_insn(&b, CPS_INSN_ACTIVATE);
            kb_ap(&a, CPS_F_S3D3_AC_src, ap1((uint32_t)(i * 4), 1));
            kb_ap(&a, CPS_F_S3D3_AC_dst, ap1((uint32_t)(i * 4 + 4), 1));
            cps_isa_set(&a, CPS_F_S3D3_AC_in_bias_dtype, pair(CPS_DT_FP32, CPS_DT_FP32));
            cps_isa_set(&a, CPS_F_S3D3_AC_out_dtype, wire(CPS_DT_FP32));
            cps_isa_set(&a, CPS_F_S3D3_AC_ch, 128);
            cps_isa_set(&a, CPS_F_S3D3_AC_activation_function, CPS_ACTFN_COPY);
            cps_isa_set_f32(&a, CPS_F_S3D3_AC_scale, 1.0f);
            cps_isa_set(&a, CPS_F_S3D3_AC_bias, 2048);
            cps_isa_set(&a, CPS_F_S3D3_AC_bias_src_n, CPS_IMM_SRC_N_POINTER_IMMEDIATE);
            if (i == 0)
                kb_wait(&a, 3, 1);
            kb_put(&b, CPS_ACT, a);
        }
        t[k] = (double)run(&b, NULL, 0) * 1e-3;
        kb_free(&b);
    }
    CHECK(near((t[1] - t[0]) / 40, 189, 0.05));
}

/* Dependent vector instructions stall for about 112 cycles, independent ones do not. */
static void
test_dve_stall(void)
{
    double t[2];
    for (int dep = 0; dep < 2; dep++) {
        kb b = kb_new("trn1");
        cps_bundle m = kb_insn(&b, CPS_INSN_MEMSET);
        kb_ap(&m, CPS_F_D4_MR_dst, ap1(0, 4096));
        cps_isa_set(&m, CPS_F_D4_MR_dtype, wire(CPS_DT_FP32));
        cps_isa_set(&m, CPS_F_D4_MR_ch, 128);
        cps_isa_set(&m, CPS_F_D4_MR_dst_element_count, 4096);
        kb_put(&b, CPS_DVE, m);
        for (unsigned i = 0; i < 20; i++) {
            cps_bundle x = kb_insn(&b, CPS_INSN_RECIPROCAL);
            kb_ap(&x, CPS_F_S4D4_TR_src, ap1(dep ? i * 512 : 0, 128));
            kb_ap(&x, CPS_F_S4D4_TR_dst, ap1((i + 1) * 512, 128));
            cps_isa_set(&x, CPS_F_S4D4_TR_in_dtype, wire(CPS_DT_FP32));
            cps_isa_set(&x, CPS_F_S4D4_TR_out_dtype, wire(CPS_DT_FP32));
            cps_isa_set(&x, CPS_F_S4D4_TR_ch, 128);
            kb_put(&b, CPS_DVE, x);
        }
        t[dep] = (double)run(&b, NULL, 0) * 1e-3;
        kb_free(&b);
    }
    CHECK(
        near((t[1] - t[0]) / 19, 98, 0.05)); // 112 cycles at 1.12 GHz less the 2 ns between all
}

/* ACT and DVE on PSUM at once: one after the other on trn1, together from trn2 on. */
static double
psum_pair(const char *target)
{
    kb b = kb_new(target);
    for (int k = 0; k < 2; k++) {
        cps_bundle m = kb_insn(&b, CPS_INSN_MEMSET);
        kb_ap(&m, CPS_F_D4_MR_dst, ap1(cps_addr_psum(0, 2048u * (unsigned)k), 512));
        cps_isa_set(&m, CPS_F_D4_MR_dtype, wire(CPS_DT_FP32));
        cps_isa_set(&m, CPS_F_D4_MR_ch, 128);
        cps_isa_set(&m, CPS_F_D4_MR_dst_element_count, 512);
        if (k == 0)
            kb_put(&b, CPS_DVE, m);
    }
    cps_bundle a = kb_insn(&b, CPS_INSN_ACTIVATE);
    kb_ap(&a, CPS_F_S3D3_AC_src, ap1(cps_addr_psum(0, 4096), 512));
    kb_ap(&a, CPS_F_S3D3_AC_dst, ap1(0, 512));
    cps_isa_set(&a, CPS_F_S3D3_AC_in_bias_dtype, pair(CPS_DT_FP32, CPS_DT_FP32));
    cps_isa_set(&a, CPS_F_S3D3_AC_out_dtype, wire(CPS_DT_FP32));
    cps_isa_set(&a, CPS_F_S3D3_AC_ch, 128);
    cps_isa_set(&a, CPS_F_S3D3_AC_activation_function, CPS_ACTFN_COPY);
    cps_isa_set_f32(&a, CPS_F_S3D3_AC_scale, 1.0f);
    cps_isa_set(&a, CPS_F_S3D3_AC_bias, 8192);
    cps_isa_set(&a, CPS_F_S3D3_AC_bias_src_n, CPS_IMM_SRC_N_POINTER_IMMEDIATE);
    kb_put(&b, CPS_ACT, a);
    double ns = (double)run(&b, NULL, 0) * 1e-3;
    kb_free(&b);
    return ns;
}

/* `count` matmuls of one tile; bf16, or the pairs of a plain fp32 matmul. */
static double
matmuls(const char *target, bool fp32, int count)
{
    kb b = kb_new(target);
    cps_dtype t = fp32 ? CPS_DT_FP32 : CPS_DT_BF16;
    for (int k = 0; k < count; k++) {
        cps_bundle w = kb_insn(&b, CPS_INSN_LDWEIGHTS);
        kb_ap(&w, CPS_F_S3_LW_src, ap1(0, 128));
        cps_isa_set(&w, CPS_F_S3_LW_in_dtype, wire(t));
        cps_isa_set(&w, CPS_F_S3_LW_fp32_mode,
                    fp32 ? k & 1 ? CPS_PE_FP32MODE_HIGH : CPS_PE_FP32MODE_LOW : 0);
        cps_isa_set(&w, CPS_F_S3_LW_num_active_rows, 128);
        cps_isa_set(&w, CPS_F_S3_LW_num_active_cols, 128);
        cps_isa_set(&w, CPS_F_S3_LW_row_grp, 0xF);
        cps_isa_set(&w, CPS_F_S3_LW_col_grp, 0xF);
        if (b.k->gen == CPS_V2)
            cps_isa_set(&w, CPS_F_S3_LW_xbus_sel, 0x10);
        kb_put(&b, CPS_PE, w);
        cps_bundle x = kb_insn(&b, CPS_INSN_MATMUL);
        kb_ap(&x, CPS_F_S3D3_MM_src, ap1(4096, 512));
        kb_ap(&x, CPS_F_S3D3_MM_dst, ap1(cps_addr_psum(0, 0), 512));
        cps_isa_set(&x, CPS_F_S3D3_MM_in_dtype, wire(t));
        cps_isa_set(&x, CPS_F_S3D3_MM_fp32_mode, fp32 ? CPS_PE_FP32MODE_LOW_HIGH : 0);
        cps_isa_set(&x, CPS_F_S3D3_MM_num_active_rows, 128);
        cps_isa_set(&x, CPS_F_S3D3_MM_num_active_cols, 128);
        cps_isa_set(&x, CPS_F_S3D3_MM_psum_accumulate_flags, k == 0 ? 1 : 0);
        cps_isa_set(&x, CPS_F_S3D3_MM_row_grp, 0xF);
        cps_isa_set(&x, CPS_F_S3D3_MM_col_grp, 0xF);
        if (b.k->gen == CPS_V2)
            cps_isa_set(&x, CPS_F_S3D3_MM_xbus_sel, 0x10);
        kb_put(&b, CPS_PE, x);
    }
    double ns = (double)run(&b, NULL, 0) * 1e-3;
    kb_free(&b);
    return ns;
}

static void
test_pe(void)
{
    // Published: fp32 tiles of 512 columns follow each other at 430 ns per instruction on trn2,
    // bf16 ones at 213; trn1 shows 209 and 418.
    CHECK(near((matmuls("trn2", true, 120) - matmuls("trn2", true, 60)) / 60, 430, 0.01));
    CHECK(near((matmuls("trn2", false, 120) - matmuls("trn2", false, 60)) / 60, 216, 0.02));
    CHECK(near((matmuls("trn1", false, 120) - matmuls("trn1", false, 60)) / 60, 209, 0.01));
    CHECK(near((matmuls("trn1", true, 120) - matmuls("trn1", true, 60)) / 60, 418, 0.01));
    // half rate for the first 3 us of work on trn2, none of that on trn1
    CHECK(near(matmuls("trn2", false, 7) - 170, 7 * 2 * 216, 0.03));
    CHECK(near(matmuls("trn1", false, 7) - 150, 7 * 209, 0.03));
}

int
main(void)
{
    test_dma();
    test_act_chain();
    test_dve_stall();
    // one waits for the other: ACT for 512 cycles and 40 ns, then DVE to its visible end
    CHECK(near(psum_pair("trn1"), 366 + 40 + 457 + 178, 0.02));
    CHECK(near(psum_pair("trn2"), 533 + 208, 0.05));
    test_pe();
    return CHECK_DONE();
}
