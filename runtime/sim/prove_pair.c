/* The proof of a pair: each core by itself (prove.c), then what both reach of the memory they share.
 * Without a core barrier nothing orders them, so an access of one and a write of the other that have a
 * byte in common race, and where there is none the pair is as good as its cores. With core barriers
 * it stays open which accesses they order: a run decides. */
#include "runtime/sim/group.h"

enum { LOG_MAX = 1 << 20 };

void
shared_note(cps_sim *s, const rect *r, bool write, const insn *by, uint32_t var)
{
    shared_log *l = s->log;
    if (l->n == LOG_MAX) {
        l->full = true;
        return;
    }
    shared_access x = {.r = *r, .write = write, .by = by};
    x.r.var = s->vars.data[var].home ? s->vars.data[var].at : var;
    cps_vec_push(l->arena, l, x);
}

static int
by_place(const void *a, const void *b)
{
    const rect *x = &((const shared_access *)a)->r, *y = &((const shared_access *)b)->r;
    if (x->var != y->var)
        return x->var < y->var ? -1 : 1;
    return x->lo != y->lo ? (x->lo < y->lo ? -1 : 1) : (x->hi > y->hi) - (x->hi < y->hi);
}

/* The first access of the sorted `b` that meets an access of `a`, one of them a write; NULL: none. */
static const shared_access *
meeting(cps_arena *a, const shared_log *x, shared_log *y, const shared_access **other, int64_t *at)
{
    if (x->n == 0 || y->n == 0)
        return NULL; // a core without work shares nothing
    int64_t *reach = cps_new_array(a, int64_t, y->n); // how far those up to here go
    qsort(y->data, y->n, sizeof *y->data, by_place);
    for (uint32_t i = 0; i < y->n; i++) {
        bool first = i == 0 || y->data[i - 1].r.var != y->data[i].r.var;
        reach[i] = first ? y->data[i].r.hi : CPS_MAX(reach[i - 1], y->data[i].r.hi);
    }
    for (uint32_t k = 0; k < x->n; k++) {
        const shared_access *p = &x->data[k];
        uint32_t lo = 0, hi = y->n; // the first that is of this variable and may reach it
        while (lo < hi) {
            uint32_t mid = (lo + hi) / 2;
            const rect *r = &y->data[mid].r;
            if (r->var < p->r.var || (r->var == p->r.var && reach[mid] <= p->r.lo))
                lo = mid + 1;
            else
                hi = mid;
        }
        for (; lo < y->n && y->data[lo].r.var == p->r.var && y->data[lo].r.lo < p->r.hi; lo++) {
            const shared_access *q = &y->data[lo];
            if ((p->write || q->write) && rect_overlap(&p->r, &q->r, at)) {
                *other = q;
                return p;
            }
        }
    }
    return NULL;
}

static bool
meets(const cps_sim *s)
{
    for (int e = 0; e < CPS_ENGINES; e++)
        for (uint32_t i = 0; i < s->eng[e].n; i++)
            if (s->eng[e].code[i].sem->exec == exec_core_barrier)
                return true;
    return false;
}

/* The weaker of two verdicts. */
static cps_verdict
both(cps_verdict a, cps_verdict b)
{
    if (a == CPS_PROOF_FAILS || b == CPS_PROOF_FAILS)
        return CPS_PROOF_FAILS;
    return a == CPS_PROOF_OPEN || b == CPS_PROOF_OPEN ? CPS_PROOF_OPEN : CPS_PROOF_HOLDS;
}

static void
report(cps_sim *s, const shared_access *p, const shared_access *q, int64_t at, cps_diags *d)
{
    cps_buf a = {0}, b = {0}, where = {0};
    insn_name(s, p->by, &a);
    insn_name(s, q->by, &b);
    rect one = p->r;
    one.lo = at;
    one.hi = at + 1;
    place_text(s, &one, &where);
    cps_error(d, CPS_E8303, CPS_NOSPAN, "%s by %s and %s by %s at %s are not ordered",
              p->write ? "write" : "read", a.data, q->write ? "write" : "read", b.data, where.data);
    cps_note(d, CPS_NOSPAN, "missing: a core barrier between them");
    cps_buf_fini(&a);
    cps_buf_fini(&b);
    cps_buf_fini(&where);
}

/* `unsure`: they meet, but maybe only in turns of loops that were put together. */
static bool
prove_pair(cps_sim *s, cps_sim *o, cps_proof *out, bool *unsure, cps_diags *d)
{
    cps_proof two = {.turns_left_out = 0};
    cps_arena *a = cps_arena_create();
    shared_log log[2] = {{.arena = a}, {.arena = a}};
    s->log = &log[0];
    o->log = &log[1];
    bool ok = cps_sim_prove(s, out, d) && cps_sim_prove(o, &two, d);
    s->log = o->log = NULL;
    out->leaves |= two.leaves;
    if (ok) {
        out->races = both(out->races, two.races);
        out->deadlock = both(out->deadlock, two.deadlock);
        out->instructions += two.instructions;
        out->rounds = CPS_MAX(out->rounds, two.rounds);
        out->turns_left_out += two.turns_left_out;
        if (!out->why && two.why) {
            out->why = two.why;
            out->engine = two.engine;
            out->index = two.index;
        }
        const char *why = meets(s) || meets(o)          ? "what core barriers order"
                          : log[0].full || log[1].full ? "too many accesses to shared memory"
                                                        : NULL;
        int64_t at = 0;
        const shared_access *q = NULL, *p = why ? NULL : meeting(a, &log[0], &log[1], &q, &at);
        // A footprint that stands for more than is touched, or a path that may not exist, shows no race.
        if (p && (out->races == CPS_PROOF_OPEN || out->paths || two.paths)) {
            out->races = CPS_PROOF_OPEN;
            out->why = out->why ? out->why : "a path that may not exist";
            p = NULL;
        }
        *unsure = p && out->turns_left_out;
        if (*unsure) {
            ok = false;
        } else if (p) {
            report(s, p, q, at, d);
            out->races = CPS_PROOF_FAILS;
            ok = false;
        } else if (why) {
            out->races = both(out->races, CPS_PROOF_OPEN);
            out->deadlock = both(out->deadlock, CPS_PROOF_OPEN);
            if (!out->why)
                out->why = why;
        }
    }
    cps_arena_destroy(a);
    return ok;
}

bool
cps_sim_group_prove(cps_sim_group *g, unsigned core, cps_proof *out, cps_diags *d)
{
    cps_sim *s = g->core[core];
    cps_assert(s->k->core == 0);
    if (s->k->cores < 2)
        return cps_sim_prove(s, out, d);
    cps_sim *o = g->core[core + 1];
    bool unsure = false, ok = prove_pair(s, o, out, &unsure, d);
    if (!unsure)
        return ok;
    s->every_turn = o->every_turn = true;
    ok = prove_pair(s, o, out, &unsure, d);
    s->every_turn = o->every_turn = false;
    return ok;
}
