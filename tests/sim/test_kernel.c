/* Whole small kernels: load, compute, store; what the checks find and what they must not; times
 * of published single transfers. */
#include "runtime/base/exp.h"
#include "tests/sim/kb.h"

/* load [parts, n] bf16, exp on ACT, store; semaphores 3 (load), 4 (ACT), 5 (store). */
static void
exp_kernel(kb *b, int parts, int n)
{
    uint32_t x = kb_var(b, "x", CPS_VAR_INPUT, CPS_DT_BF16, (int64_t)parts * n);
    uint32_t y = kb_var(b, "y", CPS_VAR_OUTPUT, CPS_DT_BF16, (int64_t)parts * n);
    kb_block(b, CPS_SP, "q_in", 0, 3, true, x, 0, n * 2, 0, parts, 0, n * 2);
    kb_block(b, CPS_SP, "q_out", 0, 5, false, y, 0, n * 2, 0, parts, 32768, n * 2);
    kb_put(b, CPS_SP, kb_trigger(b, "q_in", 0));
    cps_bundle t = kb_insn(b, CPS_INSN_ACTIVATION_TABLE_LOAD);
    kb_put(b, CPS_ACT, t);
    cps_bundle a = kb_insn(b, CPS_INSN_ACTIVATE);
    kb_ap(&a, CPS_F_S3D3_AC_src, ap1(cps_addr_sbuf(0, 0), n));
    kb_ap(&a, CPS_F_S3D3_AC_dst, ap1(cps_addr_sbuf(0, 32768), n));
    cps_isa_set(&a, CPS_F_S3D3_AC_in_bias_dtype, pair(CPS_DT_BF16, CPS_DT_FP32));
    cps_isa_set(&a, CPS_F_S3D3_AC_out_dtype, wire(CPS_DT_BF16));
    cps_isa_set(&a, CPS_F_S3D3_AC_ch, (unsigned)parts);
    cps_isa_set(&a, CPS_F_S3D3_AC_activation_function, CPS_ACTFN_EXP);
    cps_isa_set_f32(&a, CPS_F_S3D3_AC_scale, 1.0f);
    cps_isa_set(&a, CPS_F_S3D3_AC_bias_src_n, CPS_IMM_SRC_N_INSTRUCTION_IMMEDIATE);
    kb_wait(&a, 3, 16);
    kb_inc(&a, 4);
    kb_put(b, CPS_ACT, a);
    cps_bundle w = kb_trigger(b, "q_out", 0);
    kb_wait(&w, 4, 1);
    kb_put(b, CPS_SP, w);
    cps_bundle e = kb_insn(b, CPS_INSN_EVENT_SEMAPHORE);
    kb_wait(&e, 5, 16);
    kb_put(b, CPS_SP, e);
}

static uint16_t
bf(float v)
{
    uint16_t x;
    cps_from_f32(CPS_DT_BF16, &x, v);
    return x;
}

static float
unbf(uint16_t x)
{
    return cps_to_f32(CPS_DT_BF16, &x);
}

static void
test_exp(int parts, int n, double want_us)
{
    kb b = kb_new("trn2");
    exp_kernel(&b, parts, n);
    CHECK(kb_load(&b));
    size_t count = (size_t)parts * (size_t)n;
    uint16_t *x = malloc(count * 2), *y = calloc(count, 2);
    for (size_t i = 0; i < count; i++)
        x[i] = bf((float)(i % 97) / 50 - 1);
    CHECK(cps_sim_bind(b.s, "x", x, count * 2, true, b.d));
    CHECK(cps_sim_bind(b.s, "y", y, count * 2, false, b.d));
    CHECK(kb_run(&b));
    kb_show(&b);
    unsigned bad = 0;
    for (size_t i = 0; i < count; i++)
        bad += y[i] != bf(cps_exp_f32(unbf(x[i])));
    CHECK_INT(bad, 0);
    double us = (double)b.rep.time_ps * 1e-6;
    printf("load-exp-store [%d, %d]: %.3f us, published %.1f\n", parts, n, us, want_us);
    CHECK(fabs(us / want_us - 1) < 0.10);
    CHECK_INT(b.rep.instructions[CPS_SP], 3);
    CHECK_INT(b.rep.instructions[CPS_ACT], 2);
    CHECK_INT(b.rep.dma_transfers, 2);
    CHECK_INT(b.rep.dma_bytes, 4 * count);
    // a second run gives the same
    int64_t first = b.rep.time_ps;
    CHECK(kb_run(&b));
    CHECK_INT(b.rep.time_ps, first);
    free(x);
    free(y);
    kb_free(&b);
}

/* Without the wait of ACT on the load: a race and, in this order, unwritten memory. */
static void
test_missing_wait(void)
{
    kb b = kb_new("trn2");
    exp_kernel(&b, 4, 4096);
    cps_bundle *a = &b.k->stream[CPS_ACT].code.data[1];
    cps_isa_set(a, CPS_F_EVENTS_wait_mode, 0);
    cps_isa_set(a, CPS_F_EVENTS_wait_idx, 0);
    cps_isa_set(a, CPS_F_EVENTS_semaphore_value, 0);
    CHECK(kb_load(&b));
    static uint16_t x[4 * 4096], y[4 * 4096];
    cps_sim_bind(b.s, "x", x, sizeof x, true, b.d);
    cps_sim_bind(b.s, "y", y, sizeof y, false, b.d);
    CHECK(!kb_run(&b));
    CHECK(kb_has(&b, CPS_E8303));
    CHECK(kb_has(&b, CPS_E8304));
    CHECK(b.rep.races == 1 && b.rep.uninit == 1);
    CHECK(kb_says(&b, "act[1] ACTIVATE (k.cps:3)"));
    CHECK(kb_says(&b, "sp[0] PSEUDO_DMA_TRIGGER (k.cps:1)"));
    CHECK(kb_says(&b, "q_in"));
    kb_free(&b);
}

/* The store does not wait for ACT: one race, no other finding. */
static void
test_store_race(void)
{
    kb b = kb_new("trn2");
    exp_kernel(&b, 128, 256);
    cps_bundle *w = &b.k->stream[CPS_SP].code.data[1];
    cps_isa_set(w, CPS_F_EVENTS_wait_idx, 3);
    cps_isa_set(w, CPS_F_EVENTS_semaphore_value, 16);
    CHECK(kb_load(&b));
    size_t n = 128 * 256 * 2;
    void *x = calloc(1, n), *y = calloc(1, n);
    cps_sim_bind(b.s, "x", x, n, true, b.d);
    cps_sim_bind(b.s, "y", y, n, false, b.d);
    CHECK(!kb_run(&b));
    CHECK(kb_has(&b, CPS_E8303));
    CHECK(b.rep.races == 1);
    free(x);
    free(y);
    kb_free(&b);
}

/* ACT waits for a load that waits for ACT. */
static void
test_deadlock(void)
{
    kb b = kb_new("trn2");
    exp_kernel(&b, 4, 64);
    kb_wait(&b.k->stream[CPS_SP].code.data[0], 4, 1);
    CHECK(kb_load(&b));
    uint16_t x[256] = {0}, y[256];
    cps_sim_bind(b.s, "x", x, sizeof x, true, b.d);
    cps_sim_bind(b.s, "y", y, sizeof y, false, b.d);
    CHECK(!kb_run(&b));
    CHECK(kb_has(&b, CPS_E8301));
    CHECK(kb_says(&b, "waits for semaphore 3 (is 0, wants 16)"));
    CHECK(kb_says(&b, "waits for semaphore 4 (is 0, wants 1)"));
    kb_free(&b);
}

static void
memset_at(kb *b, cps_engine e, unsigned part, unsigned rows, unsigned byte, int n, int step,
          unsigned sem)
{
    cps_bundle m = kb_insn(b, CPS_INSN_MEMSET);
    cps_ap ap = ap1(cps_addr_sbuf(part, byte), n);
    ap.step[0] = (int16_t)step;
    kb_ap(&m, CPS_F_D4_MR_dst, ap);
    cps_isa_set(&m, CPS_F_D4_MR_dtype, wire(CPS_DT_FP32));
    cps_isa_set(&m, CPS_F_D4_MR_ch, rows);
    cps_isa_set(&m, CPS_F_D4_MR_dst_element_count, (unsigned)n);
    if (sem)
        kb_inc(&m, sem);
    kb_put(b, e, m);
}

/* Even and odd columns interleave and never meet; shifting one side by a column makes a race.
 */
static void
test_strided(bool shifted)
{
    kb b = kb_new("trn2");
    memset_at(&b, CPS_DVE, 0, 128, 0, 256, 2, 0);
    memset_at(&b, CPS_POOL, 0, 128, shifted ? 0 : 4, 256, 2, 0);
    CHECK(kb_load(&b));
    CHECK(kb_run(&b) == !shifted);
    CHECK_INT(b.rep.races, shifted);
    kb_free(&b);
}

/* Two loads on one semaphore: 32 orders both, 16 neither. */
static void
test_shared_semaphore(unsigned value, unsigned races)
{
    kb b = kb_new("trn2");
    uint32_t x = kb_var(&b, "x", CPS_VAR_INPUT, CPS_DT_BF16, 2 * 128 * 64);
    kb_block(&b, CPS_SP, "q_in", 0, 3, true, x, 0, 128, 0, 128, 0, 128);
    kb_block(&b, CPS_SP, "q_in", 1, 3, true, x, 128 * 128, 128, 0, 128, 128, 128);
    kb_put(&b, CPS_SP, kb_trigger(&b, "q_in", 0));
    kb_put(&b, CPS_SP, kb_trigger(&b, "q_in", 1));
    for (int k = 0; k < 2; k++) {
        cps_bundle c = kb_insn(&b, CPS_INSN_COPY);
        kb_ap(&c, CPS_F_S4D4_TR_src, ap1(cps_addr_sbuf(0, 128 * (unsigned)k), 64));
        kb_ap(&c, CPS_F_S4D4_TR_dst, ap1(cps_addr_sbuf(0, 4096 + 128 * (unsigned)k), 64));
        cps_isa_set(&c, CPS_F_S4D4_TR_in_dtype, wire(CPS_DT_BF16));
        cps_isa_set(&c, CPS_F_S4D4_TR_out_dtype, wire(CPS_DT_BF16));
        cps_isa_set(&c, CPS_F_S4D4_TR_ch, 128);
        if (k == 0)
            kb_wait(&c, 3, value);
        kb_put(&b, CPS_DVE, c);
    }
    CHECK(kb_load(&b));
    void *m = calloc(1, 2 * 128 * 64 * 2);
    cps_sim_bind(b.s, "x", m, 2 * 128 * 64 * 2, true, b.d);
    CHECK(kb_run(&b) == (races == 0));
    CHECK_INT(b.rep.races, races);
    free(m);
    kb_free(&b);
}

/* The trigger of an engine's own queue is not ordered after its datapath, unless it waits. */
static void
test_own_trigger(bool wait)
{
    kb b = kb_new("trn2");
    uint32_t y = kb_var(&b, "y", CPS_VAR_OUTPUT, CPS_DT_FP32, 128 * 16);
    kb_block(&b, CPS_ACT, "q_out", 0, 5, false, y, 0, 64, 0, 128, 0, 64);
    cps_bundle a = kb_insn(&b, CPS_INSN_ACTIVATE);
    kb_ap(&a, CPS_F_S3D3_AC_src, ap1(cps_addr_sbuf(0, 1024), 16));
    kb_ap(&a, CPS_F_S3D3_AC_dst, ap1(cps_addr_sbuf(0, 0), 16));
    cps_isa_set(&a, CPS_F_S3D3_AC_in_bias_dtype, pair(CPS_DT_FP32, CPS_DT_FP32));
    cps_isa_set(&a, CPS_F_S3D3_AC_out_dtype, wire(CPS_DT_FP32));
    cps_isa_set(&a, CPS_F_S3D3_AC_ch, 128);
    cps_isa_set(&a, CPS_F_S3D3_AC_activation_function, CPS_ACTFN_COPY);
    cps_isa_set_f32(&a, CPS_F_S3D3_AC_scale, 1.0f);
    cps_isa_set(&a, CPS_F_S3D3_AC_bias_src_n, CPS_IMM_SRC_N_INSTRUCTION_IMMEDIATE);
    kb_wait(&a, 7, 1);
    kb_inc(&a, 8);
    memset_at(&b, CPS_DVE, 0, 128, 1024, 16, 1, 7);
    kb_put(&b, CPS_ACT, a);
    cps_bundle t = kb_trigger(&b, "q_out", 0);
    if (wait)
        kb_wait(&t, 8, 1);
    kb_put(&b, CPS_ACT, t);
    CHECK(kb_load(&b));
    float *m = calloc(128 * 16, 4);
    cps_sim_bind(b.s, "y", m, 128 * 16 * 4, false, b.d);
    CHECK(kb_run(&b) == wait);
    CHECK_INT(b.rep.races, !wait);
    free(m);
    kb_free(&b);
}

/* An update at operand read releases what was read, not what was written. */
static void
test_read_update(bool reads_result)
{
    kb b = kb_new("trn2");
    memset_at(&b, CPS_DVE, 0, 128, 0, 16, 1, 0);
    cps_bundle c = kb_insn(&b, CPS_INSN_COPY);
    kb_ap(&c, CPS_F_S4D4_TR_src, ap1(0, 16));
    kb_ap(&c, CPS_F_S4D4_TR_dst, ap1(1024, 16));
    cps_isa_set(&c, CPS_F_S4D4_TR_in_dtype, wire(CPS_DT_FP32));
    cps_isa_set(&c, CPS_F_S4D4_TR_out_dtype, wire(CPS_DT_FP32));
    cps_isa_set(&c, CPS_F_S4D4_TR_ch, 128);
    cps_isa_set(&c, CPS_F_EVENTS_update_mode, CPS_UPDATE_SEM_INC_READ);
    cps_isa_set(&c, CPS_F_EVENTS_update_idx, 9);
    kb_put(&b, CPS_DVE, c);
    if (reads_result) {
        cps_bundle d = c;
        kb_ap(&d, CPS_F_S4D4_TR_src, ap1(1024, 16));
        kb_ap(&d, CPS_F_S4D4_TR_dst, ap1(2048, 16));
        cps_isa_set(&d, CPS_F_EVENTS_update_mode, CPS_UPDATE_NONE);
        cps_isa_set(&d, CPS_F_EVENTS_update_idx, 0);
        kb_wait(&d, 9, 1);
        kb_put(&b, CPS_POOL, d);
    } else { // writes over what was read
        memset_at(&b, CPS_POOL, 0, 128, 0, 16, 1, 0);
        kb_wait(&b.k->stream[CPS_POOL].code.data[0], 9, 1);
    }
    CHECK(kb_load(&b));
    // the first write of the operand by DVE itself is not released either: only reads are
    CHECK(!kb_run(&b));
    CHECK_INT(b.rep.races, 1);
    CHECK(kb_says(&b, reads_result ? "write by dve[1]" : "write by dve[0]"));
    kb_free(&b);
}

static void
test_bounds(void)
{
    kb b = kb_new("trn2");
    cps_bundle mv = kb_insn(&b, CPS_INSN_MOVE);
    cps_isa_set(&mv, CPS_F_CTRL_MV_num_mov, 1);
    cps_isa_set(&mv, CPS_F_CTRL_MV_dtype, wire(CPS_DT_U32));
    cps_isa_set(&mv, CPS_F_CTRL_MV_source, CPS_DATA_SRC_IMMEDIATE);
    cps_isa_set_elem(&mv, CPS_F_CTRL_MV_dst_regs, 0, 5);
    cps_isa_set_elem(&mv, CPS_F_CTRL_MV_imm, 0, cps_addr_sbuf(0, 224 * 1024 - 8));
    kb_put(&b, CPS_DVE, mv);
    cps_bundle m = kb_insn(&b, CPS_INSN_MEMSET);
    kb_ap(&m, CPS_F_D4_MR_dst, ap1(0x80000005, 4));
    cps_isa_set(&m, CPS_F_D4_MR_dtype, wire(CPS_DT_FP32));
    cps_isa_set(&m, CPS_F_D4_MR_ch, 32);
    cps_isa_set(&m, CPS_F_D4_MR_dst_element_count, 4);
    kb_put(&b, CPS_DVE, m);
    CHECK(kb_load(&b));
    CHECK(!kb_run(&b));
    CHECK(kb_has(&b, CPS_E8302));
    CHECK_INT(b.rep.bounds, 1);
    kb_free(&b);
}

/* A loop of 10 on SP that counts a register, with the step limit below and above it. */
static void
test_loop(void)
{
    for (int limit = 0; limit < 2; limit++) {
        kb b = kb_new("trn1");
        cps_bundle add = kb_insn(&b, CPS_INSN_ALU_OP);
        cps_isa_set(&add, CPS_F_CTRL_AL_op, CPS_ALU_ADD);
        cps_isa_set(&add, CPS_F_CTRL_AL_dtype, wire(CPS_DT_I32));
        cps_isa_set(&add, CPS_F_CTRL_AL_src1_datasrc, CPS_DATA_SRC_IMMEDIATE);
        cps_isa_set(&add, CPS_F_CTRL_AL_src0_lo, 3);
        cps_isa_set(&add, CPS_F_CTRL_AL_dst_lo, 3);
        cps_isa_set(&add, CPS_F_CTRL_AL_imm, 1);
        kb_put(&b, CPS_SP, add);
        cps_bundle br = kb_insn(&b, CPS_INSN_COMPARE_BRANCH);
        cps_isa_set(&br, CPS_F_CTRL_BR_cmp_op, CPS_BR_CMP_OP_LT_IMM);
        cps_isa_set(&br, CPS_F_CTRL_BR_dtype, wire(CPS_DT_I32));
        cps_isa_set(&br, CPS_F_CTRL_BR_target_mode, CPS_BR_TARGET_MODE_RELATIVE_IMMEDIATE);
        cps_isa_set(&br, CPS_F_CTRL_BR_cmp_imm, 10);
        cps_isa_set(&br, CPS_F_CTRL_BR_cmp_reg0, 3);
        cps_isa_set(&br, CPS_F_CTRL_BR_branch, (uint64_t)-1);
        kb_put(&b, CPS_SP, br);
        CHECK(kb_load(&b));
        cps_sim_opts o = {.checks = CPS_CHECK_ALL, .max_steps = limit ? 7 : 1000};
        CHECK(cps_sim_run(b.s, &o, &b.rep, b.d) == !limit);
        CHECK(limit ? kb_has(&b, CPS_E8306) : b.rep.instructions[CPS_SP] == 20);
        kb_free(&b);
    }
}

static void
test_load_errors(void)
{
    kb b = kb_new("trn2");
    exp_kernel(&b, 4, 64);
    kb_put(&b, CPS_SP, kb_trigger(&b, "q_none", 0));
    CHECK(!cps_sim_load(b.s, b.k, b.d));
    CHECK(kb_has(&b, CPS_E8203));
    cps_sim *other = cps_sim_create(cps_target_find("trn1"));
    CHECK(!cps_sim_load(other, b.k, b.d));
    CHECK(kb_has(&b, CPS_E8201));
    cps_sim_destroy(other);
    kb_free(&b);

    b = kb_new("trn2");
    kb_put(&b, CPS_POOL, kb_insn(&b, CPS_INSN_SORT));
    CHECK(!cps_sim_load(b.s, b.k, b.d));
    kb_free(&b);

    // more queues than a DMA engine has rings
    b = kb_new("trn2");
    uint32_t v = kb_var(&b, "x", CPS_VAR_INPUT, CPS_DT_U8, 4096);
    for (unsigned k = 0; k < 15; k++)
        kb_block(&b, CPS_SP, cps_arena_printf(b.a, "q%u", k), 0, 3, true, v, 0, 64, 0, 4, 0, 64);
    CHECK(!cps_sim_load(b.s, b.k, b.d));
    CHECK(kb_has(&b, CPS_E8203));
    kb_free(&b);

    // unbound, and of the wrong size
    b = kb_new("trn2");
    exp_kernel(&b, 4, 64);
    CHECK(kb_load(&b));
    CHECK(!kb_run(&b));
    CHECK(kb_has(&b, CPS_E8204));
    char one;
    CHECK(!cps_sim_bind(b.s, "x", &one, 1, true, b.d));
    CHECK(!cps_sim_bind(b.s, "nobody", &one, 1, true, b.d));
    kb_free(&b);

    // a descriptor beyond the end of a partition, one over the limit of descriptors
    b = kb_new("trn2");
    uint32_t x = kb_var(&b, "x", CPS_VAR_INPUT, CPS_DT_U8, 4096);
    kb_block(&b, CPS_SP, "q", 0, 3, true, x, 0, 1024, 0, 4, 224 * 1024 - 512, 1024);
    CHECK(!cps_sim_load(b.s, b.k, b.d));
    CHECK(kb_has(&b, CPS_E8205));
    kb_free(&b);
    b = kb_new("trn2");
    x = kb_var(&b, "x", CPS_VAR_INPUT, CPS_DT_U8, 1 << 26);
    kb_block(&b, CPS_SP, "q", 0, 3, true, x, 0, 2, 0, 1, 0, 1);
    cps_kdesc *c = &b.k->descs.data[0];
    c->from_size[1] = c->to_size[1] = 1 << 25;
    c->to = x;
    c->to_off = 1;
    c->to_step[1] = 2;
    CHECK(!cps_sim_load(b.s, b.k, b.d));
    CHECK(kb_has(&b, CPS_E8206));
    kb_free(&b);
}

static void
test_trace(void)
{
    kb b = kb_new("trn2");
    exp_kernel(&b, 4, 64);
    CHECK(kb_load(&b));
    uint16_t x[256] = {0}, y[256];
    cps_sim_bind(b.s, "x", x, sizeof x, true, b.d);
    cps_sim_bind(b.s, "y", y, sizeof y, false, b.d);
    cps_sim_opts o = {.checks = CPS_CHECK_ALL, .trace = true};
    CHECK(cps_sim_run(b.s, &o, &b.rep, b.d));
    cps_trace *t = cps_trace_create();
    cps_trace_add(t, b.s, "exp", 1000000);
    cps_buf out = *cps_trace_text(t);
    const char *why;
    size_t at;
    const cps_json *j = cps_json_parse(b.a, out.data, out.n, &why, &at);
    CHECK(j != NULL);
    const cps_json *ev = j ? cps_json_get(j, "traceEvents") : NULL;
    CHECK(ev && ev->n > 40);
    CHECK(strstr(out.data, "\"ACTIVATE\"") != NULL);
    CHECK(strstr(out.data, "k.cps:3") != NULL);
    CHECK(strstr(out.data, "\"wait\"") != NULL);
    cps_trace_destroy(t);
    kb_free(&b);
}

/* Each way to leave out an order: what is reported names both instructions with their lines, the
 * bytes, and the edge that is missing. */
static void
test_hazard(const char *name)
{
    kb b = kb_new("trn2");
    exp_kernel(&b, 128, 64);
    cps_kstream *sp = &b.k->stream[CPS_SP], *act = &b.k->stream[CPS_ACT];
    const char *first = "sp[0] PSEUDO_DMA_TRIGGER (k.cps:1)", *edge = "has finished";
    const char *second = "act[1] ACTIVATE (k.cps:3)", *bytes = " bytes 0..";
    if (cps_streq(name, "no wait for a load")) {
        kb_wait(&act->code.data[1], 3, 0);
    } else if (cps_streq(name, "a store before its data")) {
        kb_wait(&sp->code.data[1], 3, 16);
        first = "act[1] ACTIVATE (k.cps:3)";
        second = "sp[1] PSEUDO_DMA_TRIGGER (k.cps:4)";
        bytes = " bytes 32768..";
    } else {
        // The buffer is filled again: while ACT reads it, or before anybody has; with the first
        // load's semaphore, or with another.
        bool reading = cps_streq(name, "a buffer refilled while it is read");
        bool shared = cps_streq(name, "one semaphore for two loads");
        kb_block(&b, CPS_SP, "q_two", 0, shared ? 3 : 6, true, cps_kbin_var(b.k, "x"), 0, 128, 0,
                 128, shared ? 0x4000 : 0, 128);
        cps_bundle again = kb_trigger(&b, "q_two", 0);
        if (reading)
            kb_wait(&again, 3, 16);
        cps_kloc at = {"k.cps", 9, 1};
        cps_vec_push(b.a, &sp->code, again);
        cps_vec_push(b.a, &sp->locs, at);
        for (uint32_t i = sp->code.n - 1; i > 1; i--) { // second in its stream
            sp->code.data[i] = sp->code.data[i - 1];
            sp->locs.data[i] = sp->locs.data[i - 1];
        }
        sp->code.data[1] = again;
        sp->locs.data[1] = at;
        if (reading) {
            first = "act[1] ACTIVATE (k.cps:3)";
            edge = "has read its operands";
        }
        if (!shared)
            second = "sp[1] PSEUDO_DMA_TRIGGER (k.cps:9)";
    }
    CHECK(kb_load(&b));
    static uint16_t x[128 * 64], y[128 * 64];
    cps_sim_bind(b.s, "x", x, sizeof x, true, b.d);
    cps_sim_bind(b.s, "y", y, sizeof y, false, b.d);
    bool found = !kb_run(&b) && kb_has(&b, CPS_E8303) && kb_says(&b, first) &&
                 kb_says(&b, second) && kb_says(&b, bytes) && kb_says(&b, "missing: ") &&
                 kb_says(&b, edge);
    if (!found) {
        fprintf(stderr, "%s:\n", name);
        kb_show(&b);
    }
    CHECK(found);
    kb_free(&b);
}

int
main(void)
{
    test_hazard("no wait for a load");
    test_hazard("a store before its data");
    test_hazard("a buffer refilled while it is read");
    test_hazard("a buffer filled twice");
    test_hazard("one semaphore for two loads");
    test_exp(4, 4096, 9.9);
    test_exp(128, 128, 5.2);
    test_missing_wait();
    test_store_race();
    test_deadlock();
    test_strided(false);
    test_strided(true);
    test_shared_semaphore(32, 0);
    test_shared_semaphore(16, 2);
    test_own_trigger(true);
    test_own_trigger(false);
    test_read_update(true);
    test_read_update(false);
    test_bounds();
    test_loop();
    test_load_errors();
    test_trace();
    return CHECK_DONE();
}
