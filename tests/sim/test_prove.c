/* The static proof against the truth: random kernels of up to 12 instructions, every
 * interleaving of which is tried. What the proof says holds must hold in all of them; what it
 * says fails must fail in one. 150 here; `test_sim_prove N SEED` runs more. Each is also run by
 * the simulator: a race that one run shows must not be proved away.
 *
 * In the model of the interleavings an instruction starts (its waits are over), has read, and
 * is complete; each in order on its engine, updates at read or at completion. A transfer runs
 * on two DMA engines, each of which serves its queue in order and raises the semaphore by half;
 * the bytes are moved by the first. */
#include "runtime/base/rng.h"
#include "tests/sim/kb.h"

enum {
    ENGINES = 4,
    PER_ENGINE = 4,
    QUEUES = 2,
    SLOTS = 3,
    USED = 4 /* semaphores */,
    BASE = 10
};

typedef struct op {
    uint8_t kind; /* 0 memset of `to`, 1 copy `from` to `to`, 2 transfer, 3 nothing */
    uint8_t from, to, queue;
    bool store;
    uint8_t wait, value;    /* wait: semaphore + 1 */
    uint8_t update, at_end; /* update: semaphore + 1 */
} op;

typedef struct prog {
    op op[ENGINES][PER_ENGINE];
    unsigned n[ENGINES];
    unsigned nx[QUEUES]; /* transfers of each queue, in order */
    struct {
        uint8_t e, i;
    } x[QUEUES][PER_ENGINE];
} prog;

static const cps_engine engines[ENGINES] = {CPS_SP, CPS_POOL, CPS_DVE, CPS_ACT};

/* ---- all interleavings ---- */

typedef struct state {
    uint8_t s[ENGINES], r[ENGINES], c[ENGINES]; /* started, read, complete */
    uint8_t q[QUEUES][2];                       /* transfers done on each DMA engine */
} state;

typedef struct access_ {
    uint8_t e, i, slot;
    bool write;
} access_;

typedef struct search {
    const prog *p;
    access_ acc[2 * ENGINES * PER_ENGINE];
    unsigned nacc;
    bool late[32][32]; /* [a][b]: somewhere b started while a was not done */
    state *stack, *seen;
    uint32_t *used; /* places of `seen` */
    uint32_t nstack, nseen, cap;
    bool stuck;
} search;

static unsigned
value_of(const prog *p, const state *s, unsigned sem)
{
    unsigned v = 0;
    for (unsigned e = 0; e < ENGINES; e++)
        for (unsigned i = 0; i < p->n[e]; i++) {
            const op *o = &p->op[e][i];
            if (o->kind != 2 && o->update == sem + 1 && i < (o->at_end ? s->c[e] : s->r[e]))
                v++;
        }
    for (unsigned q = 0; q < QUEUES; q++)
        for (unsigned k = 0; k < 2; k++)
            for (unsigned i = 0; i < s->q[q][k]; i++)
                if (p->op[p->x[q][i].e][p->x[q][i].i].update == sem + 1)
                    v += 8;
    return v;
}

static void
visit(search *x, const state *s)
{
    uint64_t h = cps_hash_mem(s, sizeof *s);
    for (uint32_t k = (uint32_t)h & (x->cap - 1);; k = (k + 1) & (x->cap - 1)) {
        if (x->seen[k].s[0] == 0xFF) {
            x->seen[k] = *s;
            x->stack[x->nstack++] = *s;
            x->used[x->nseen++] = k;
            return;
        }
        if (!memcmp(&x->seen[k], s, sizeof *s))
            return;
    }
}

static unsigned
triggered(const prog *p, const state *s, unsigned q)
{
    unsigned n = 0;
    while (n < p->nx[q] && p->x[q][n].i < s->s[p->x[q][n].e])
        n++;
    return n;
}

static bool
begun(const prog *p, const state *s, const access_ *a)
{
    (void)p;
    return a->i < s->s[a->e];
}

static bool
over(const prog *p, const state *s, const access_ *a)
{
    const op *o = &p->op[a->e][a->i];
    if (o->kind != 2)
        return a->i < (a->write ? s->c[a->e] : s->r[a->e]);
    for (unsigned k = 0; k < s->q[o->queue][0]; k++)
        if (p->x[o->queue][k].e == a->e && p->x[o->queue][k].i == a->i)
            return true;
    return false;
}

static bool
fixed(const prog *p, const access_ *a, const access_ *b)
{
    const op *x = &p->op[a->e][a->i], *y = &p->op[b->e][b->i];
    if (x->kind == 2 && y->kind == 2)
        return x->queue == y->queue; // one DMA engine, in order
    return a->e == b->e && x->kind != 2 && y->kind != 2;
}

static void
look(search *x, const state *s)
{
    for (unsigned b = 0; b < x->nacc; b++)
        for (unsigned a = 0; begun(x->p, s, &x->acc[b]) && a < x->nacc; a++)
            x->late[a][b] |= !over(x->p, s, &x->acc[a]);
}

static bool
step(search *x, state s)
{
    const prog *p = x->p;
    bool moved = false;
    look(x, &s);
    for (unsigned e = 0; e < ENGINES; e++) {
        state t = s;
        if (s.s[e] < p->n[e]) {
            const op *o = &p->op[e][s.s[e]];
            if (!o->wait || value_of(p, &s, o->wait - 1u) >= o->value) {
                t.s[e]++;
                visit(x, &t);
                moved = true;
            }
        }
        if (s.r[e] < s.s[e]) {
            t = s;
            t.r[e]++;
            visit(x, &t);
            moved = true;
        }
        if (s.c[e] < s.r[e]) {
            t = s;
            t.c[e]++;
            visit(x, &t);
            moved = true;
        }
    }
    for (unsigned q = 0; q < QUEUES; q++)
        for (unsigned k = 0; k < 2; k++)
            if (s.q[q][k] < triggered(p, &s, q)) {
                state t = s;
                t.q[q][k]++;
                visit(x, &t);
                moved = true;
            }
    bool done = true;
    for (unsigned e = 0; e < ENGINES; e++)
        done = done && s.s[e] == p->n[e];
    x->stuck |= !moved && !done;
    return true;
}

static void
add_access(search *x, unsigned e, unsigned i, unsigned slot, bool write)
{
    x->acc[x->nacc++] = (access_){(uint8_t)e, (uint8_t)i, (uint8_t)slot, write};
}

/* Whether some interleaving races, and whether some gets stuck. False: too many to try. */
static bool
truth(const prog *p, bool *race, bool *stuck)
{
    enum { CAP = 1 << 19 };
    static state seen[CAP], stack[CAP];
    static uint32_t used[CAP];
    static bool begun_once;
    search x = {.p = p, .seen = seen, .stack = stack, .used = used, .cap = CAP};
    if (!begun_once)
        memset(seen, 0xFF, sizeof seen);
    begun_once = true;
    for (unsigned e = 0; e < ENGINES; e++)
        for (unsigned i = 0; i < p->n[e]; i++) {
            const op *o = &p->op[e][i];
            if (o->kind == 1 || (o->kind == 2 && o->store))
                add_access(&x, e, i, o->from, false);
            if (o->kind < 2 || (o->kind == 2 && !o->store))
                add_access(&x, e, i, o->to, true);
        }
    state zero = {.s = {0}};
    visit(&x, &zero);
    while (x.nstack && x.nseen < CAP / 2)
        step(&x, stack[--x.nstack]);
    *race = false;
    for (unsigned a = 0; a < x.nacc; a++)
        for (unsigned b = 0; b < a; b++)
            if (x.acc[a].slot == x.acc[b].slot && (x.acc[a].write || x.acc[b].write) &&
                !(x.acc[a].e == x.acc[b].e && x.acc[a].i == x.acc[b].i) &&
                !fixed(p, &x.acc[a], &x.acc[b]) && x.late[a][b] && x.late[b][a])
                *race = true;
    *stuck = x.stuck;
    for (uint32_t k = 0; k < x.nseen; k++)
        memset(&seen[used[k]], 0xFF, sizeof *seen);
    return x.nstack == 0;
}

/* ---- random programs, and their kernels ---- */

static uint32_t
below(cps_rng *g, uint32_t n)
{
    return (uint32_t)cps_rng_below(g, n);
}

/* Half of the programs are chains in which each instruction waits for the one before, with a
 * wait or two spoilt; the others wait for anything. */
static void
make(cps_rng *g, prog *p, unsigned total)
{
    *p = (prog){.n = {0}};
    unsigned raised[USED] = {0};
    bool chain = below(g, 2);
    const op *last = NULL;
    for (unsigned k = 0; k < total; k++) {
        unsigned e = below(g, ENGINES);
        if (p->n[e] == PER_ENGINE)
            continue;
        op o = {.kind = (uint8_t)below(g, 3),
                .from = (uint8_t)below(g, SLOTS),
                .to = (uint8_t)below(g, SLOTS)};
        if (e == 0)
            o.kind = 2;
        if (o.kind == 2 && (e > 1 || p->nx[e] == PER_ENGINE))
            o.kind = 3;
        if (o.kind == 0 && e == 3)
            o.kind = 1; // ACT has no memset
        if (o.kind == 1 && o.from == o.to)
            o.from = (uint8_t)((o.to + 1) % SLOTS);
        o.queue = (uint8_t)e;
        o.store = below(g, 2);
        unsigned s = below(g, USED);
        if (chain && last && last->update && below(g, 10)) {
            o.wait = last->update;
            o.value = (uint8_t)(raised[o.wait - 1] - (below(g, 12) == 0));
        } else if (!chain && below(g, 3) && raised[s]) {
            o.wait = (uint8_t)(s + 1); // mostly what was raised before: programs that can end
            o.value = (uint8_t)(below(g, 3) ? raised[s] : 1 + below(g, raised[s]));
            o.value = (uint8_t)(o.value + (below(g, 12) == 0));
        }
        if (o.kind == 2) {
            o.update = (uint8_t)(1 + below(g, 2));
            raised[o.update - 1] += 16;
            p->x[o.queue][p->nx[o.queue]].e = (uint8_t)e;
            p->x[o.queue][p->nx[o.queue]++].i = (uint8_t)p->n[e];
        } else if (chain || below(g, 3)) {
            o.update = (uint8_t)(below(g, 4) ? 3 + below(g, 2) : 1 + below(g, 4));
            o.at_end = below(g, chain ? 12 : 4) != 0;
            raised[o.update - 1] += 1;
        }
        p->op[e][p->n[e]++] = o;
        last = &p->op[e][p->n[e] - 1];
    }
}

static cps_bundle
bundle_of(kb *b, const op *o, unsigned number)
{
    cps_bundle x;
    if (o->kind == 0) {
        x = kb_insn(b, CPS_INSN_MEMSET);
        kb_ap(&x, CPS_F_D4_MR_dst, ap1(cps_addr_sbuf(0, o->to * 64u), 16));
        cps_isa_set(&x, CPS_F_D4_MR_dtype, wire(CPS_DT_FP32));
        cps_isa_set(&x, CPS_F_D4_MR_ch, 1);
        cps_isa_set(&x, CPS_F_D4_MR_dst_element_count, 16);
    } else if (o->kind == 1) {
        x = kb_insn(b, CPS_INSN_COPY);
        kb_ap(&x, CPS_F_S4D4_TR_src, ap1(cps_addr_sbuf(0, o->from * 64u), 16));
        kb_ap(&x, CPS_F_S4D4_TR_dst, ap1(cps_addr_sbuf(0, o->to * 64u), 16));
        cps_isa_set(&x, CPS_F_S4D4_TR_in_dtype, wire(CPS_DT_FP32));
        cps_isa_set(&x, CPS_F_S4D4_TR_out_dtype, wire(CPS_DT_FP32));
        cps_isa_set(&x, CPS_F_S4D4_TR_ch, 1);
    } else if (o->kind == 2) {
        x = kb_trigger(b, o->queue ? "q1" : "q0", number);
    } else {
        x = kb_insn(b, CPS_INSN_NOP);
    }
    if (o->wait)
        kb_wait(&x, BASE + o->wait, o->value);
    if (o->update && o->kind != 2) {
        cps_isa_set(&x, CPS_F_EVENTS_update_mode,
                    o->at_end ? CPS_UPDATE_SEM_INC_COMPLETE : CPS_UPDATE_SEM_INC_READ);
        cps_isa_set(&x, CPS_F_EVENTS_update_idx, BASE + o->update);
    }
    return x;
}

static kb
kernel_of(const prog *p)
{
    kb b = kb_new("trn2");
    uint32_t in = kb_var(&b, "x", CPS_VAR_INPUT, CPS_DT_U8, 64 * SLOTS * 32);
    uint32_t out = kb_var(&b, "y", CPS_VAR_OUTPUT, CPS_DT_U8, 64 * 64);
    uint32_t number = 0;
    for (unsigned e = 0; e < ENGINES; e++)
        for (unsigned i = 0; i < p->n[e]; i++) {
            const op *o = &p->op[e][i];
            if (o->kind == 2) // stores go to places of their own
                kb_block(&b, engines[e], o->queue ? "q1" : "q0", number, BASE + o->update,
                         !o->store, o->store ? out : in, 64 * number, 64, 0, 1,
                         (o->store ? o->from : o->to) * 64, 64);
            kb_put(&b, engines[e], bundle_of(&b, o, number));
            number += o->kind == 2;
        }
    return b;
}

static void
describe(const prog *p)
{
    for (unsigned e = 0; e < ENGINES; e++)
        for (unsigned i = 0; i < p->n[e]; i++) {
            const op *o = &p->op[e][i];
            fprintf(stderr, "  %s %s from %u to %u%s wait %d>=%u update %d%s\n",
                    cps_engine_name(engines[e]),
                    o->kind == 0   ? "memset"
                    : o->kind == 1 ? "copy"
                    : o->kind == 2 ? (o->store ? "store" : "load")
                                   : "nop",
                    o->from, o->to, o->kind == 2 ? (o->queue ? " q1" : " q0") : "", o->wait - 1,
                    o->value, o->update - 1, o->at_end ? "" : " at read");
        }
}

/* Both programs in one kernel: each engine reads a word that nobody writes and, when all have,
 * goes to one of them. */
static kb
fork_of(const prog *p, const prog *q)
{
    kb b = kb_new("trn2");
    uint32_t in = kb_var(&b, "x", CPS_VAR_INPUT, CPS_DT_U8, 64 * SLOTS * 32);
    uint32_t out = kb_var(&b, "y", CPS_VAR_OUTPUT, CPS_DT_U8, 64 * 64);
    uint32_t number = 0;
    for (unsigned e = 0; e < ENGINES; e++) {
        cps_bundle x = kb_insn(&b, CPS_INSN_TENSOR_LOAD);
        cps_isa_set(&x, CPS_F_MEM_2D_dtype, wire(CPS_DT_I32));
        cps_isa_set_elem(&x, CPS_F_MEM_2D_num_elem, 0, 1);
        cps_isa_set_elem(&x, CPS_F_MEM_2D_num_elem, 1, 1);
        cps_isa_set(&x, CPS_F_MEM_2D_start, cps_addr_sbuf(0, 4096));
        x.b[cps_fields[CPS_F_MEM_2D_data].byte] = 1;
        kb_put(&b, engines[e], x);
        x = kb_insn(&b, CPS_INSN_NOP);
        kb_inc(&x, BASE + USED + 1);
        kb_put(&b, engines[e], x);
        x = kb_insn(&b, CPS_INSN_NOP);
        kb_wait(&x, BASE + USED + 1, ENGINES);
        kb_put(&b, engines[e], x);
        for (unsigned part = 0; part < 2; part++) {
            const prog *r = part ? q : p;
            x = kb_insn(&b, CPS_INSN_COMPARE_BRANCH);
            cps_isa_set(&x, CPS_F_CTRL_BR_target_mode, CPS_BR_TARGET_MODE_RELATIVE_IMMEDIATE);
            cps_isa_set(&x, CPS_F_CTRL_BR_dtype, wire(CPS_DT_I32));
            cps_isa_set(&x, CPS_F_CTRL_BR_cmp_reg0, 1);
            cps_isa_set(&x, CPS_F_CTRL_BR_cmp_imm, 5);
            // The first branch leads to the second program; the second, always taken, behind it.
            cps_isa_set(&x, CPS_F_CTRL_BR_cmp_op, part ? CPS_BR_CMP_OP_ALWAYS : CPS_BR_CMP_OP_GE_IMM);
            cps_isa_set(&x, CPS_F_CTRL_BR_branch, r->n[e] + (part ? 1 : 2));
            kb_put(&b, engines[e], x);
            for (unsigned i = 0; i < r->n[e]; i++) {
                const op *o = &r->op[e][i];
                if (o->kind == 2)
                    kb_block(&b, engines[e], o->queue ? "q1" : "q0", number, BASE + o->update,
                             !o->store, o->store ? out : in, 64 * number, 64, 0, 1,
                             (o->store ? o->from : o->to) * 64, 64);
                kb_put(&b, engines[e], bundle_of(&b, o, number));
                number += o->kind == 2;
            }
        }
    }
    return b;
}

static cps_proof
verdict(kb *b)
{
    CHECK(kb_load(b));
    cps_proof v;
    cps_sim_prove(b->s, &v, b->d);
    kb_free(b);
    return v;
}

// A kernel of two paths is proved exactly when both are.
static void
check_forks(cps_rng *g, unsigned n)
{
    unsigned both = 0, one = 0;
    for (unsigned k = 0; k < n; k++) {
        prog p, q;
        make(g, &p, 3 + below(g, 6));
        make(g, &q, 3 + below(g, 6));
        kb a = kernel_of(&p), b = kernel_of(&q), f = fork_of(&p, &q);
        cps_proof va = verdict(&a), vb = verdict(&b), vf = verdict(&f);
        bool races = va.races == CPS_PROOF_HOLDS && vb.races == CPS_PROOF_HOLDS;
        bool ends = va.deadlock == CPS_PROOF_HOLDS && vb.deadlock == CPS_PROOF_HOLDS;
        CHECK((vf.races == CPS_PROOF_HOLDS) == races);
        CHECK((vf.deadlock == CPS_PROOF_HOLDS) == ends);
        both += races && ends;
        one += races != (va.races == CPS_PROOF_HOLDS || vb.races == CPS_PROOF_HOLDS);
    }
    CHECK(both > n / 30 && one > n / 20);
}

int
main(int argc, char **argv)
{
    unsigned n = argc > 1 ? (unsigned)atoi(argv[1]) : 150;
    cps_rng g;
    cps_rng_init(&g, argc > 2 ? (uint64_t)atoi(argv[2]) : 7, 0);
    unsigned races = 0, stuck = 0, proved = 0, cautious = 0, shy = 0, large = 0;
    for (unsigned k = 0; k < n; k++) {
        prog p;
        make(&g, &p, 3 + below(&g, 10));
        bool race, dead;
        if (!truth(&p, &race, &dead)) {
            large++;
            continue;
        }
        kb b = kernel_of(&p);
        CHECK(kb_load(&b));
        cps_proof v;
        cps_sim_prove(b.s, &v, b.d);
        races += race;
        stuck += dead;
        // Where some run gets stuck, the proof speaks of the runs that end.
        bool bad = (race && !dead && v.races == CPS_PROOF_HOLDS) ||
                   (dead && v.deadlock == CPS_PROOF_HOLDS) ||
                   (!dead && v.deadlock == CPS_PROOF_FAILS);
        if (bad) {
            fprintf(stderr, "program %u: race %d stuck %d, the proof says %d and %d (%s)\n", k,
                    race, dead, v.races, v.deadlock, v.why ? v.why : "");
            describe(&p);
        }
        CHECK(!bad);
        proved += !race && !dead && v.races == CPS_PROOF_HOLDS;
        cautious += !race && !dead && v.races != CPS_PROOF_HOLDS;
        shy += !dead && v.deadlock != CPS_PROOF_HOLDS;
        static uint8_t x[64 * SLOTS * 32], y[64 * 64];
        CHECK(cps_sim_bind(b.s, "x", x, sizeof x, true, b.d) &&
              cps_sim_bind(b.s, "y", y, sizeof y, true, b.d));
        cps_sim_opts o = {.checks = CPS_CHECK_RACES};
        cps_sim_run(b.s, &o, &b.rep, b.d);
        if (b.rep.races && v.races == CPS_PROOF_HOLDS) {
            fprintf(stderr, "program %u: the simulator finds a race, the proof none\n", k);
            describe(&p);
            kb_show(&b);
            CHECK(false);
        }
        kb_free(&b);
    }
    printf("%u programs: %u race, %u can get stuck; of the others %u proved free of races, %u "
           "not; deadlock left "
           "open or refuted in %u that always end\n",
           n, races, stuck, proved, cautious, shy);
    check_forks(&g, n / 3);
    CHECK(races > n / 20 && proved > n / 20 && large < n / 20);
    return CHECK_DONE();
}
