/* Records, accounts and the critical path of small kernels, where every piece is known from the
 * target's facts; and what holds for any run: an engine's kinds of time add up to the run, the
 * path covers it without a gap. */
#include "tests/sim/kb.h"

#include "runtime/sim/view.h"

static cps_bundle
memset_of(kb *b, uint32_t addr, int n)
{
    cps_bundle m = kb_insn(b, CPS_INSN_MEMSET);
    kb_ap(&m, CPS_F_D4_MR_dst, ap1(addr, n));
    cps_isa_set(&m, CPS_F_D4_MR_dtype, wire(CPS_DT_FP32));
    cps_isa_set(&m, CPS_F_D4_MR_ch, 128);
    cps_isa_set(&m, CPS_F_D4_MR_dst_element_count, (unsigned)n);
    return m;
}

static cps_bundle
recip(kb *b, uint32_t from, uint32_t to, int n)
{
    cps_bundle x = kb_insn(b, CPS_INSN_RECIPROCAL);
    kb_ap(&x, CPS_F_S4D4_TR_src, ap1(from, n));
    kb_ap(&x, CPS_F_S4D4_TR_dst, ap1(to, n));
    cps_isa_set(&x, CPS_F_S4D4_TR_in_dtype, wire(CPS_DT_FP32));
    cps_isa_set(&x, CPS_F_S4D4_TR_out_dtype, wire(CPS_DT_FP32));
    cps_isa_set(&x, CPS_F_S4D4_TR_ch, 128);
    return x;
}

static const view *
run(kb *b)
{
    CHECK(kb_load(b));
    for (uint32_t i = 1; i < b->k->vars.n; i++) {
        const cps_kvar *v = &b->k->vars.data[i];
        uint8_t *data = cps_arena_alloc(b->a, (size_t)v->bytes);
        cps_sim_bind(b->s, v->name, data, (size_t)v->bytes, v->kind == CPS_VAR_INPUT, b->d);
    }
    cps_sim_opts o = {.checks = CPS_CHECK_ALL, .trace = true};
    bool ok = cps_sim_run(b->s, &o, &b->rep, b->d);
    CHECK(ok);
    if (!ok)
        kb_show(b);
    const view *v = view_of(b->s);
    CHECK(v != NULL);
    CHECK_INT(v->end - v->begin, b->rep.time_ps);
    for (int e = 0; e < CPS_ENGINES; e++) {
        cps_ps sum = 0, waits = 0;
        for (int k = 0; k < TIMES; k++)
            sum += v->spent[e][k];
        for (uint32_t k = 0; k < v->sources; k++)
            waits += v->wait[e][k];
        CHECK_INT(sum, b->rep.time_ps);
        CHECK_INT(waits, v->spent[e][TIME_WAIT]);
    }
    cps_ps at = v->begin, sum = 0;
    for (uint32_t k = 0; k < v->path.n; k++) {
        CHECK_INT(v->path.data[k].t0, at);
        at = v->path.data[k].t1;
    }
    CHECK_INT(at, v->end);
    for (int k = 0; k < TIMES; k++)
        sum += v->on_path[k];
    CHECK_INT(sum, b->rep.time_ps);
    return v;
}

/* Load, one vector instruction, store: every piece of the path stands in the target's facts. */
static void
test_chain(void)
{
    kb b = kb_new("trn2");
    uint32_t x = kb_var(&b, "x", CPS_VAR_INPUT, CPS_DT_FP32, 128 * 512);
    uint32_t y = kb_var(&b, "y", CPS_VAR_OUTPUT, CPS_DT_FP32, 128 * 512);
    kb_block(&b, CPS_SP, "q_in", 0, 3, true, x, 0, 2048, 0, 128, 0, 2048);
    kb_block(&b, CPS_SP, "q_out", 0, 5, false, y, 0, 2048, 0, 128, 4096, 2048);
    kb_put(&b, CPS_SP, kb_trigger(&b, "q_in", 0));
    cps_bundle r = recip(&b, cps_addr_sbuf(0, 0), cps_addr_sbuf(0, 4096), 512);
    kb_wait(&r, 3, 16);
    kb_inc(&r, 4);
    kb_put(&b, CPS_DVE, r);
    cps_bundle w = kb_trigger(&b, "q_out", 0);
    kb_wait(&w, 4, 1);
    kb_put(&b, CPS_SP, w);
    cps_bundle e = kb_insn(&b, CPS_INSN_EVENT_SEMAPHORE);
    kb_wait(&e, 5, 16);
    kb_put(&b, CPS_SP, e);
    const view *v = run(&b);
    const cps_target *t = b.t;
    double stagger = 15 * t->dma_stagger_ns; // the last of 16 engines finishes last
    CHECK_INT(v->on_path[TIME_START], ns_ps(2 * (t->dma_start_ns + stagger)));
    CHECK_INT(v->on_path[TIME_RECEIPT], ns_ps(t->dma_receipt_ns + t->dma_store_ack_ns));
    CHECK_INT(v->on_path[TIME_SEMAPHORE], ns_ps(t->sync_semaphore_ns));
    const rec_insn *dve = NULL;
    for (uint32_t k = 0; k < b.s->rec->insn.n; k++)
        if (b.s->rec->insn.data[k].by->engine == CPS_DVE)
            dve = &b.s->rec->insn.data[k];
    CHECK(dve != NULL);
    CHECK_INT(v->path_busy[CPS_DVE], dve->free - dve->start);
    CHECK_INT(v->on_path[TIME_RESULT], dve->done - dve->free);
    CHECK(v->on_path[TIME_MOVE] > 0 && v->on_path[TIME_SHARED] == 0);
    CHECK_STR(view_source_name(b.s, v, view_source(b.s, v, dve->freed_by)), "q_in");
    CHECK_INT(v->wait[CPS_DVE][view_source(b.s, v, dve->freed_by)],
              v->spent[CPS_DVE][TIME_WAIT]);
    CHECK_INT(v->wait[CPS_SP][CPS_DVE] > 0, 1);
    // x lies in SBUF from its trigger to its reader, y from its writer to the end of its store
    CHECK_INT(b.s->rec->live.n, 2);
    const rec_live *l = b.s->rec->live.data;
    CHECK(l[0].lo == 0 && l[0].hi == 2048 && l[0].t0 == 0 && l[0].t1 == dve->start);
    CHECK(l[1].lo == 4096 && l[1].hi == 6144 && l[1].t0 == dve->start);
    const series *use = view_usage(b.s, 0);
    CHECK_INT(use->data[0].v, 2048);
    CHECK_INT(use->data[use->n - 1].v, 0);
    const series *fly = view_flight(b.s);
    CHECK_INT(fly->n, 4);
    CHECK_INT(fly->data[0].v, 128 * 2048);
    cps_buf text = {0};
    cps_sim_summary(b.s, "chain", &text);
    CHECK(strstr(text.data, "critical path") && strstr(text.data, "for q_in"));
    // nothing overlaps here, but that engines which start together share HBM longer
    const char *less = strstr(text.data, "DMA starts at once: ");
    int saved = less ? atoi(less + 20) : 0;
    CHECK(saved > 2500 && saved <= 2630);
    cps_buf_fini(&text);
    kb_free(&b);
}

/* Two dependent instructions of one engine, then the same two apart. */
static void
test_own_result(void)
{
    for (int dep = 0; dep < 2; dep++) {
        kb b = kb_new("trn2");
        kb_put(&b, CPS_DVE, memset_of(&b, 0, 512));
        kb_put(&b, CPS_DVE, recip(&b, 0, 4096, 128));
        kb_put(&b, CPS_DVE, recip(&b, dep ? 4096 : 1024, 8192, 128));
        const view *v = run(&b);
        const rec_insn *r = b.s->rec->insn.data;
        CHECK_INT(r[2].own > r[2].ready, dep);
        if (dep) {
            CHECK_INT(r[2].own, r[1].self);
            CHECK_INT(v->spent[CPS_DVE][TIME_OWN],
                      (r[1].self - r[1].free) + (r[0].self - r[0].free));
        }
        kb_free(&b);
    }
}

/* DVE and ACT want PSUM at the same time: trn1 lets one through at a time. */
static void
test_port(void)
{
    for (int k = 1; k <= 2; k++) {
        kb b = kb_new(k == 1 ? "trn1" : "trn2");
        kb_put(&b, CPS_DVE, memset_of(&b, cps_addr_psum(0, 0), 512));
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
        CHECK(kb_load(&b));
        cps_sim_opts o = {.trace = true}; // contents do not matter here
        CHECK(cps_sim_run(b.s, &o, &b.rep, b.d));
        const view *v = view_of(b.s);
        cps_ps held = v->spent[CPS_DVE][TIME_PORT] + v->spent[CPS_ACT][TIME_PORT];
        CHECK_INT(held > 0, k == 1);
        CHECK_INT(v->on_path[TIME_PORT] > 0, k == 1);
        kb_free(&b);
    }
}

/* Loads on one queue: each after the first waits for the queue's issue. */
static void
test_issue(void)
{
    kb b = kb_new("trn2");
    uint32_t x = kb_var(&b, "x", CPS_VAR_INPUT, CPS_DT_FP32, 128 * 8);
    for (unsigned k = 0; k < 4; k++) {
        kb_block(&b, CPS_SP, "q_in", k, 3, true, x, 0, 32, 0, 128, (int)k * 64, 32);
        kb_put(&b, CPS_SP, kb_trigger(&b, "q_in", k));
    }
    cps_bundle e = kb_insn(&b, CPS_INSN_EVENT_SEMAPHORE);
    kb_wait(&e, 3, 64);
    kb_put(&b, CPS_SP, e);
    const view *v = run(&b);
    const queue_view *q = &v->queue[CPS_ENGINES];
    CHECK_INT(q->transfers, 4);
    CHECK_INT(q->held, 3);
    CHECK_INT(q->bytes, 4 * 128 * 32);
    CHECK_INT(q->ndesc, 4 * 128);
    CHECK_INT(v->on_path[TIME_ISSUE], ns_ps(3 * b.t->dma_issue_ns));
    kb_free(&b);
}

/* Half rate at the start is told apart from work, and is nothing on trn1. */
static void
test_warm(void)
{
    for (int k = 1; k <= 2; k++) {
        kb b = kb_new(k == 1 ? "trn1" : "trn2");
        cps_bundle m = memset_of(&b, 0, 4096);
        kb_inc(&m, 3);
        kb_put(&b, CPS_DVE, m);
        for (int n = 0; n < 20; n++) {
            cps_bundle x = kb_insn(&b, CPS_INSN_LDWEIGHTS);
            kb_ap(&x, CPS_F_S3_LW_src, ap1(0, 128));
            cps_isa_set(&x, CPS_F_S3_LW_in_dtype, wire(CPS_DT_BF16));
            cps_isa_set(&x, CPS_F_S3_LW_num_active_rows, 128);
            cps_isa_set(&x, CPS_F_S3_LW_num_active_cols, 128);
            cps_isa_set(&x, CPS_F_S3_LW_row_grp, 0xF);
            cps_isa_set(&x, CPS_F_S3_LW_col_grp, 0xF);
            if (b.k->gen == CPS_V2)
                cps_isa_set(&x, CPS_F_S3_LW_xbus_sel, 0x10);
            if (n == 0)
                kb_wait(&x, 3, 1);
            kb_put(&b, CPS_PE, x);
            x = kb_insn(&b, CPS_INSN_MATMUL);
            kb_ap(&x, CPS_F_S3D3_MM_src, ap1(4096, 512));
            kb_ap(&x, CPS_F_S3D3_MM_dst, ap1(cps_addr_psum(0, 0), 512));
            cps_isa_set(&x, CPS_F_S3D3_MM_in_dtype, wire(CPS_DT_BF16));
            cps_isa_set(&x, CPS_F_S3D3_MM_num_active_rows, 128);
            cps_isa_set(&x, CPS_F_S3D3_MM_num_active_cols, 128);
            cps_isa_set(&x, CPS_F_S3D3_MM_psum_accumulate_flags, n == 0 ? 1 : 0);
            cps_isa_set(&x, CPS_F_S3D3_MM_row_grp, 0xF);
            cps_isa_set(&x, CPS_F_S3D3_MM_col_grp, 0xF);
            if (b.k->gen == CPS_V2)
                cps_isa_set(&x, CPS_F_S3D3_MM_xbus_sel, 0x10);
            kb_put(&b, CPS_PE, x);
        }
        const view *v = run(&b);
        CHECK_INT(v->spent[CPS_PE][TIME_WARM] > 0, k == 2);
        CHECK_INT(v->on_path[TIME_WARM], v->spent[CPS_PE][TIME_WARM]);
        uint64_t macs = 0;
        for (uint32_t n = 0; n < b.s->rec->insn.n; n++)
            macs += b.s->rec->insn.data[n].macs;
        CHECK_INT(macs, b.rep.pe_macs);
        CHECK_INT(macs, 20ll * 128 * 128 * 512);
        cps_sim_hint h[CPS_SIM_HINTS] = {{0}};
        unsigned n = cps_sim_hints(b.s, h);
        bool warm = false;
        for (unsigned q = 0; q < n; q++) {
            CHECK(h[q].saves_ps > 0 && (q == 0 || h[q].saves_ps <= h[q - 1].saves_ps));
            warm |= !strcmp(h[q].what, "PE always warm") &&
                    h[q].saves_ps == v->spent[CPS_PE][TIME_WARM];
        }
        CHECK_INT(warm, k == 2);
        kb_free(&b);
    }
}

int
main(void)
{
    test_chain();
    test_own_result();
    test_port();
    test_issue();
    test_warm();
    return CHECK_DONE();
}
