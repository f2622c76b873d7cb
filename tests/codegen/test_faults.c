/* Seeded faults in compiled kernels. A wait is dropped, lowered or pointed at another
 * semaphore, an update is dropped, an address is moved, two neighbours of a stream are
 * exchanged. Whatever then may race or get stuck must be reported, by the proof or by a run
 * with all checks; and what is reported as free must be: run with other machine times, it gives
 * the same bytes. Kernels without a fault are proved and clean. `test_codegen_faults N SEED`
 * makes N faults. */
#include "tests/check.h"
#include "tests/codegen/randprog.h"

#include <math.h>
#include <stdlib.h>

static const char *const targets[] = {"trn1", "trn2", "trn3"};

enum { DROP_WAIT, LOWER_WAIT, OTHER_WAIT, DROP_UPDATE, MOVE_ADDRESS, EXCHANGE, KINDS };
static const char *const kinds[KINDS] = {
    "a wait dropped",    "a wait lowered",   "a wait on another semaphore",
    "an update dropped", "an address moved", "neighbours exchanged"};
static unsigned made[KINDS], told[KINDS], harmless[KINDS];

/* ---- running ---- */

typedef struct outcome {
    bool loaded, ran;
    cps_proof proof;
    cps_sim_report rep;
} outcome;

static outcome
run(const tp *p, const cps_kbin *k, const cps_target *t, void **mem, bool prove)
{
    outcome o = {.proof = {.races = CPS_PROOF_OPEN}};
    cps_diags *d = cps_diags_create();
    cps_sim *s = cps_sim_create(t);
    o.loaded = cps_sim_load(s, k, d);
    bool ok = o.loaded;
    if (ok && prove)
        cps_sim_prove(s, &o.proof, d);
    uint32_t n = 0;
    for (uint32_t i = 1; ok && i < k->vars.n; i++) {
        const cps_kvar *v = &k->vars.data[i];
        if (v->kind != CPS_VAR_DATA && v->kind != CPS_VAR_TMP)
            ok = cps_sim_bind(s, v->name, mem[n++], (size_t)v->bytes, v->kind != CPS_VAR_OUTPUT,
                              d);
    }
    cps_sim_opts so = {.checks = prove ? CPS_CHECK_ALL : 0, .max_steps = 10000000};
    o.ran = ok && cps_sim_run(s, &so, &o.rep, d);
    cps_sim_destroy(s);
    cps_diags_destroy(d);
    (void)p;
    return o;
}

static size_t
out_bytes(const tp *p, unsigned *at)
{
    *at = 0;
    for (uint32_t i = 1; i < p->f->bufs.n; i++) {
        const cps_tbuf *b = &p->f->bufs.data[i];
        if (b->space != CPS_HBM || b->role == CPS_LOCAL || b->role == CPS_DATA)
            continue;
        if (b->role == CPS_OUT)
            return (size_t)cps_tbuf_bytes(b);
        ++*at;
    }
    return 0;
}

/* The machine with other times: each between a tenth and ten times the documented one. */
static cps_target
other_times(const cps_target *t, cps_rng *g)
{
    cps_target x = *t;
    double *const facts[] = {&x.pe_result_ns,      &x.act_occupy_ns,    &x.act_cross_ns,
                             &x.dve_occupy_ns,     &x.dve_cross_ns,     &x.pool_occupy_ns,
                             &x.pool_cross_ns,     &x.sp_issue_ns,      &x.sync_semaphore_ns,
                             &x.dma_descriptor_ns, &x.dma_issue_ns,     &x.dma_start_ns,
                             &x.dma_receipt_ns,    &x.dma_store_ack_ns, &x.act_mhz,
                             &x.pool_mhz,          &x.dve_mhz};
    for (size_t i = 0; i < cps_countof(facts); i++)
        *facts[i] *= pow(10, 2 * cps_rng_uniform(g) - 1);
    return x;
}

/* ---- faults ---- */

static cps_bundle *
with(cps_kbin *k, cps_rng *g, cps_field f)
{
    for (int tries = 0; tries < 200; tries++) {
        cps_kstream *s = &k->stream[cps_rng_below(g, CPS_ENGINES)];
        if (!s->code.n)
            continue;
        cps_bundle *b = &s->code.data[cps_rng_below(g, s->code.n)];
        if (cps_isa_get(b, f))
            return b;
    }
    return NULL;
}

static bool
spoil(cps_kbin *k, cps_rng *g, int kind)
{
    cps_bundle *b;
    switch (kind) {
    case DROP_WAIT:
        if (!(b = with(k, g, CPS_F_EVENTS_wait_mode)))
            return false;
        cps_isa_set(b, CPS_F_EVENTS_wait_mode, 0);
        cps_isa_set(b, CPS_F_EVENTS_wait_idx, 0);
        cps_isa_set(b, CPS_F_EVENTS_semaphore_value, 0);
        return true;
    case LOWER_WAIT: {
        if (!(b = with(k, g, CPS_F_EVENTS_semaphore_value)))
            return false;
        uint64_t v = cps_isa_get(b, CPS_F_EVENTS_semaphore_value);
        cps_isa_set(b, CPS_F_EVENTS_semaphore_value, v - (v >= 16 && v % 16 == 0 ? 16 : 1));
        return true;
    }
    case OTHER_WAIT: {
        if (!(b = with(k, g, CPS_F_EVENTS_wait_mode)))
            return false;
        uint64_t sem = cps_isa_get(b, CPS_F_EVENTS_wait_idx);
        cps_isa_set(b, CPS_F_EVENTS_wait_idx,
                    sem > 4 && cps_rng_below(g, 2) ? sem - 1 : sem + 1);
        return true;
    }
    case DROP_UPDATE:
        if (!(b = with(k, g, CPS_F_EVENTS_update_mode)))
            return false;
        cps_isa_set(b, CPS_F_EVENTS_update_mode, 0);
        cps_isa_set(b, CPS_F_EVENTS_update_idx, 0);
        return true;
    case MOVE_ADDRESS:
        for (int tries = 0; tries < 50; tries++) {
            cps_kstream *s = &k->stream[cps_rng_below(g, CPS_ENGINES)];
            if (!s->code.n)
                continue;
            b = &s->code.data[cps_rng_below(g, s->code.n)];
            cps_insn id = cps_isa_find(b->b[0], k->gen);
            if (id == CPS_INSN_NONE)
                continue;
            const cps_format_row *f = &cps_formats[cps_insns[id].format];
            for (unsigned q = f[0].first; q < f[1].first; q++) {
                if (cps_fields[q].kind != CPS_FK_TENSOR ||
                    !(cps_fields[q].gens >> k->gen & 1) || cps_rng_below(g, 2))
                    continue;
                cps_ap ap;
                cps_isa_get_ap(b, (cps_field)q, &ap);
                ap.addr ^= 64u << cps_rng_below(g, 5);
                cps_isa_set_ap(b, (cps_field)q, &ap);
                return true;
            }
        }
        return false;
    default:
        for (int tries = 0; tries < 50; tries++) {
            cps_kstream *s = &k->stream[cps_rng_below(g, CPS_ENGINES)];
            if (s->code.n < 3)
                continue;
            uint32_t i = (uint32_t)cps_rng_below(g, s->code.n - 1);
            bool moved = false; // relocations name bundles by position: leave those alone
            for (uint32_t r = 0; r < k->relocs.n; r++)
                moved |= (k->relocs.data[r].index == i || k->relocs.data[r].index == i + 1) &&
                         &k->stream[k->relocs.data[r].engine] == s;
            if (moved || !memcmp(&s->code.data[i], &s->code.data[i + 1], sizeof(cps_bundle)))
                continue;
            cps_bundle t = s->code.data[i];
            s->code.data[i] = s->code.data[i + 1];
            s->code.data[i + 1] = t;
            return true;
        }
        return false;
    }
}

static void
fault(tp *p, const cps_kbin *clean, cps_rng *g, int kind)
{
    cps_buf bytes = {0};
    const char *why;
    cps_kbin_pack(clean, &bytes);
    cps_kbin *k = cps_kbin_unpack(p->a, bytes.data, bytes.n, &why);
    cps_assert(k);
    if (spoil(k, g, kind)) {
        void *mem[8], *again[8];
        unsigned at;
        size_t n = out_bytes(p, &at);
        tp_args(p, mem, 1);
        outcome o = run(p, k, p->t, mem, true);
        made[kind]++;
        bool proved = o.proof.races == CPS_PROOF_HOLDS && o.proof.deadlock == CPS_PROOF_HOLDS;
        // what one run shows, the proof must have seen
        CHECK(!(o.loaded && proved && o.rep.races));
        if (!o.ran || !proved) {
            told[kind]++;
        } else {
            harmless[kind]++;
            for (int q = 0; q < 2; q++) {
                cps_target t = other_times(p->t, g);
                tp_args(p, again, 1);
                outcome w = run(p, k, &t, again, false);
                if (!w.ran || memcmp(mem[at], again[at], n))
                    fprintf(stderr, "%s, told free, depends on the times\n", kinds[kind]);
                CHECK(w.ran && !memcmp(mem[at], again[at], n));
            }
        }
    }
    cps_buf_fini(&bytes);
}

static void
kernel(tp *p, cps_rng *g, unsigned faults)
{
    cps_kbin *k = NULL;
    void *mem[8];
    CHECK(cps_codegen(p->a, p->f, p->t, NULL, &k, p->d));
    if (!k)
        return;
    tp_args(p, mem, 1);
    outcome o = run(p, k, p->t, mem, true);
    CHECK(o.ran && o.proof.races == CPS_PROOF_HOLDS && o.proof.deadlock == CPS_PROOF_HOLDS);
    for (unsigned i = 0; i < faults; i++)
        fault(p, k, g, (int)(i % KINDS));
}

int
main(int argc, char **argv)
{
    unsigned n = argc > 1 ? (unsigned)atoi(argv[1]) : 180;
    unsigned seed = argc > 2 ? (unsigned)atoi(argv[2]) : 1;
    cps_rng g;
    cps_rng_init(&g, seed, 5);
    enum { PER = 12 };
    for (unsigned k = 0; k * PER < n; k++) {
        const char *target = targets[k % cps_countof(targets)];
        if (k % 10 == 0) {
            tp p = tp_new(target);
            tp_make_matmul(&p, CPS_DT_BF16, 200, 300, 600);
            kernel(&p, &g, PER);
            tp_free(&p);
        } else if (k % 10 == 1) {
            tp p = tp_new(target);
            tp_make_softmax(&p, CPS_DT_BF16, 300, 257);
            kernel(&p, &g, PER);
            tp_free(&p);
        } else {
            gen e;
            gen_program(&e, target, seed * 1000 + k);
            kernel(&e.p, &g, PER);
            tp_free(&e.p);
        }
    }
    for (int q = 0; q < KINDS; q++)
        printf("%-28s %4u made, %4u reported, %4u harmless and shown to be\n", kinds[q],
               made[q], told[q], harmless[q]);
    CHECK(told[DROP_WAIT] > 0 && told[LOWER_WAIT] > 0 && told[OTHER_WAIT] > 0);
    return CHECK_DONE();
}
