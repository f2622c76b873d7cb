/* Several cores in one time: shared memory of a pair, core barriers, and what the checks say about
 * both cores. */
#include "tests/sim/kb.h"

enum { ROW = 256, HALF = 128 };

/* Two kernels of a pair, or more by themselves. */
typedef struct gang {
    kb k[4];
    unsigned n;
    cps_sim_group *g;
    cps_sim_report rep[4];
    cps_diags *d;
} gang;

static gang
gang_new(const char *target, unsigned n, int cores)
{
    gang x = {.n = n, .d = cps_diags_create()};
    for (unsigned i = 0; i < n; i++) {
        x.k[i] = kb_new(target);
        x.k[i].k->core = (int)i % cores;
        x.k[i].k->cores = cores;
    }
    x.g = cps_sim_group_create(x.k[0].t, n);
    return x;
}

static bool
gang_load(gang *x)
{
    const cps_kbin *k[4];
    for (unsigned i = 0; i < x->n; i++)
        k[i] = x->k[i].k;
    return cps_sim_group_load(x->g, k, x->d);
}

static bool
gang_run(gang *x)
{
    cps_sim_opts o = {.checks = CPS_CHECK_ALL, .max_steps = 1000000};
    return cps_sim_group_run(x->g, &o, x->rep, x->d);
}

static bool
says(gang *x, const char *text)
{
    kb b = {.d = x->d};
    bool hit = kb_says(&b, text);
    if (!hit)
        kb_show(&b);
    return hit;
}

static bool
has(gang *x, cps_code code)
{
    kb b = {.d = x->d};
    return kb_has(&b, code);
}

static void
show(gang *x)
{
    kb b = {.d = x->d};
    kb_show(&b);
}

static void
gang_free(gang *x)
{
    cps_sim_group_destroy(x->g);
    for (unsigned i = 0; i < x->n; i++)
        kb_free(&x->k[i]);
    cps_diags_destroy(x->d);
}

static cps_bundle
core_barrier(kb *b, unsigned id)
{
    cps_bundle x = kb_insn(b, CPS_INSN_PSEUDO_CORE_BARRIER);
    cps_isa_set(&x, CPS_F_PSEUDO_CORE_BARRIER_barrier, id);
    cps_isa_set(&x, CPS_F_PSEUDO_CORE_BARRIER_semaphore, 9);
    return x;
}

/* Each core moves its half of x to y, waits, meets the other, and brings the other's half of y to z:
 * z is x with its halves exchanged. */
static void
exchange(kb *b, unsigned core, bool meet)
{
    uint32_t x = kb_var(b, "x", CPS_VAR_INPUT, CPS_DT_U8, 2 * ROW);
    uint32_t y = kb_var(b, "y", CPS_VAR_OUTPUT, CPS_DT_U8, 2 * ROW);
    uint32_t z = kb_var(b, "z", CPS_VAR_OUTPUT, CPS_DT_U8, 2 * ROW);
    int64_t own = core * ROW, other = (1 - core) * ROW;
    kb_block(b, CPS_SP, "q", 0, 3, true, x, own, ROW, 0, 1, 0, ROW);
    kb_block(b, CPS_SP, "q", 1, 4, false, y, own, ROW, 0, 1, 0, ROW);
    kb_block(b, CPS_SP, "q", 2, 5, true, y, other, ROW, 1, 1, 0, ROW);
    kb_block(b, CPS_SP, "q", 3, 6, false, z, own, ROW, 1, 1, 0, ROW);
    kb_put(b, CPS_SP, kb_trigger(b, "q", 0));
    for (unsigned k = 1; k < 4; k++) {
        if (k == 2) {
            cps_bundle w = kb_insn(b, CPS_INSN_EVENT_SEMAPHORE);
            kb_wait(&w, 4, 16);
            kb_put(b, CPS_SP, w);
            if (meet)
                kb_put(b, CPS_SP, core_barrier(b, 1));
        }
        cps_bundle t = kb_trigger(b, "q", k);
        if (k != 2)
            kb_wait(&t, 2 + k, 16);
        kb_put(b, CPS_SP, t);
    }
}

static void
bind(gang *x, unsigned rank, const char *name, void *data, bool defined)
{
    CHECK(cps_sim_group_bind(x->g, rank, name, data, 2 * ROW, defined, x->d));
}

static void
test_exchange(void)
{
    gang g = gang_new("trn2", 2, 2);
    uint8_t x[2 * ROW], y[2 * ROW] = {0}, z[2 * ROW] = {0};
    for (unsigned i = 0; i < sizeof x; i++)
        x[i] = (uint8_t)(i * 7 + i / ROW);
    for (unsigned c = 0; c < 2; c++)
        exchange(&g.k[c], c, true);
    CHECK(gang_load(&g));
    CHECK_INT(cps_sim_group_ranks(g.g), 1);
    bind(&g, 0, "x", x, true);
    bind(&g, 0, "y", y, false);
    bind(&g, 0, "z", z, false);
    CHECK(gang_run(&g));
    show(&g);
    CHECK(!memcmp(y, x, sizeof x));
    CHECK(!memcmp(z, x + ROW, ROW) && !memcmp(z + ROW, x, ROW));
    int64_t t = cps_sim_group_time_ps(g.g);
    CHECK(t > 0 && g.rep[0].time_ps == g.rep[1].time_ps);
    CHECK(gang_run(&g)); // the same again
    CHECK_INT(cps_sim_group_time_ps(g.g), t);
    gang_free(&g);
}

/* Without the meeting both halves of y race, and the report names both cores. */
static void
test_no_barrier(void)
{
    gang g = gang_new("trn2", 2, 2);
    uint8_t x[2 * ROW] = {0}, y[2 * ROW] = {0}, z[2 * ROW] = {0};
    for (unsigned c = 0; c < 2; c++)
        exchange(&g.k[c], c, false);
    CHECK(gang_load(&g));
    bind(&g, 0, "x", x, true);
    bind(&g, 0, "y", y, false);
    bind(&g, 0, "z", z, false);
    CHECK(!gang_run(&g));
    CHECK(has(&g, CPS_E8303));
    CHECK_INT(g.rep[0].races + g.rep[1].races, 2);
    CHECK(says(&g, "core 0 sp[1] PSEUDO_DMA_TRIGGER"));
    CHECK(says(&g, "core 1 sp[3] PSEUDO_DMA_TRIGGER"));
    CHECK(says(&g, "'y' bytes"));
    CHECK(says(&g, "missing: a core barrier"));
    gang_free(&g);
}

/* The barrier without the wait for the store: what was asked for need not be there yet. */
static void
test_early_barrier(void)
{
    gang g = gang_new("trn2", 2, 2);
    uint8_t x[2 * ROW] = {0}, y[2 * ROW] = {0}, z[2 * ROW] = {0};
    for (unsigned c = 0; c < 2; c++) {
        exchange(&g.k[c], c, true);
        cps_bundle *w = &g.k[c].k->stream[CPS_SP].code.data[2];
        *w = kb_insn(&g.k[c], CPS_INSN_NOP);
    }
    CHECK(gang_load(&g));
    bind(&g, 0, "x", x, true);
    bind(&g, 0, "y", y, false);
    bind(&g, 0, "z", z, false);
    CHECK(!gang_run(&g));
    CHECK(has(&g, CPS_E8303));
    gang_free(&g);
}

/* Core 1 never comes: it waits for a semaphore that only its own later code raises. */
static void
test_deadlock(void)
{
    gang g = gang_new("trn2", 2, 2);
    uint8_t x[2 * ROW] = {0}, y[2 * ROW] = {0}, z[2 * ROW] = {0};
    for (unsigned c = 0; c < 2; c++)
        exchange(&g.k[c], c, true);
    kb_wait(&g.k[1].k->stream[CPS_SP].code.data[2], 5, 16);
    CHECK(gang_load(&g));
    bind(&g, 0, "x", x, true);
    bind(&g, 0, "y", y, false);
    bind(&g, 0, "z", z, false);
    CHECK(!gang_run(&g));
    CHECK(has(&g, CPS_E8301));
    CHECK(says(&g, "core 0 sp[3] PSEUDO_CORE_BARRIER (k.cps:4) waits for core 1, whose sp has not come there"));
    CHECK(says(&g, "core 1 sp[2] EVENT_SEMAPHORE (k.cps:3) waits for semaphore 5 (is 0, wants 16), "
                   "which core 1 sp[4]"));
    gang_free(&g);
}

/* Barriers of different numbers never meet. */
static void
test_crossed(void)
{
    gang g = gang_new("trn3", 2, 2);
    for (unsigned c = 0; c < 2; c++)
        kb_put(&g.k[c], CPS_POOL, core_barrier(&g.k[c], c));
    CHECK(gang_load(&g));
    CHECK(!gang_run(&g));
    CHECK(says(&g, "waits for core 1, whose pool is at another barrier"));
    CHECK(says(&g, "waits for core 0, whose pool is at another barrier"));
    gang_free(&g);
}

/* Kernels that make up no logical cores, and arguments of different sizes. */
static void
test_misfit(void)
{
    gang g = gang_new("trn2", 2, 2);
    g.k[1].k->core = 0;
    CHECK(!gang_load(&g));
    CHECK(has(&g, CPS_E8207));
    gang_free(&g);
    g = gang_new("trn2", 1, 2);
    CHECK(!gang_load(&g));
    CHECK(has(&g, CPS_E8207));
    gang_free(&g);
    g = gang_new("trn2", 2, 2);
    kb_var(&g.k[0], "x", CPS_VAR_INPUT, CPS_DT_U8, 4);
    kb_var(&g.k[1], "x", CPS_VAR_INPUT, CPS_DT_U8, 8);
    CHECK(!gang_load(&g));
    CHECK(says(&g, "'x' has 4 bytes on core 0 and 8 on core 1"));
    gang_free(&g);
}

/* Long loads: alone a core has its share of HBM, beside a busy neighbour that of a pair. */
static void
stream_kernel(kb *b, int64_t n)
{
    uint32_t x = kb_var(b, "x", CPS_VAR_INPUT, CPS_DT_U8, 128 * n);
    kb_block(b, CPS_SP, "q", 0, 3, true, x, 0, n, 0, 128, 0, n);
    kb_put(b, CPS_SP, kb_trigger(b, "q", 0));
    cps_bundle w = kb_insn(b, CPS_INSN_EVENT_SEMAPHORE);
    kb_wait(&w, 3, 16);
    kb_put(b, CPS_SP, w);
}

static void
test_bandwidth(void)
{
    enum { N = 131072 };
    int64_t t[2];
    void *x = calloc(128, N);
    for (unsigned n = 1; n <= 2; n++) {
        gang g = gang_new("trn2", n, 1);
        for (unsigned c = 0; c < n; c++)
            stream_kernel(&g.k[c], N);
        CHECK(gang_load(&g));
        CHECK_INT(cps_sim_group_ranks(g.g), n);
        for (unsigned c = 0; c < n; c++)
            CHECK(cps_sim_group_bind(g.g, c, "x", x, (size_t)128 * N, true, g.d));
        CHECK(gang_run(&g));
        t[n - 1] = cps_sim_group_time_ps(g.g);
        gang_free(&g);
    }
    double ratio = (double)t[1] / (double)t[0];
    printf("16 MiB into each of two cores: %.1f us against %.1f us alone\n", (double)t[1] / 1e6,
           (double)t[0] / 1e6);
    // 384 and 362 B/ns; the cost of descriptors is the same
    CHECK(ratio > 1.03 && ratio < 384.0 / 362.0 + 0.001);
    free(x);
}

int
main(void)
{
    test_exchange();
    test_no_barrier();
    test_early_barrier();
    test_deadlock();
    test_crossed();
    test_misfit();
    test_bandwidth();
    return CHECK_DONE();
}
