/* Several cores that run together: one machine per core, one time over all of them.
 *
 * The cores of a logical core (kernels that say `core 0 of 2` and `core 1 of 2`) share the variables
 * of their arguments, by name; everything else is each core's own. Logical cores share nothing and
 * exchange by collectives. The core whose event comes first acts; among equals the one with the
 * lower number. It goes on by itself up to the next event of any other core, so what a core reads
 * of shared memory is what the others had written by then. */
#include "runtime/sim/group.h"

static cps_sim_group *
create(const cps_target *t, unsigned n, cps_sim *(*machine)(const cps_target *t))
{
    cps_sim_group *g = calloc(1, sizeof *g);
    cps_sim **core = calloc(n ? n : 1, sizeof *core);
    cps_assert(n >= 1 && n <= CPS_SIM_CORES);
    if (!g || !core)
        cps_bug("no memory for a group of cores");
    g->n = n;
    g->core = core;
    for (unsigned i = 0; i < n; i++) {
        core[i] = machine(t);
        core[i]->group = g;
        core[i]->core = i;
    }
    return g;
}

cps_sim_group *
cps_sim_group_create(const cps_target *t, unsigned n)
{
    return create(t, n, cps_sim_create);
}

cps_sim_group *
cps_sim_group_create_timer(const cps_target *t, unsigned n)
{
    return create(t, n, cps_sim_create_timer);
}

cps_sim_group *
cps_sim_group_create_proof(const cps_target *t, unsigned n, bool verified)
{
    cps_sim_group *g = create(t, n, load_for_proof);
    for (unsigned i = 0; i < n; i++)
        g->core[i]->verified = verified;
    return g;
}

void
cps_sim_group_destroy(cps_sim_group *g)
{
    if (!g)
        return;
    for (unsigned i = g->n; i-- > 0;) // memory that is shared belongs to the first core of a pair
        cps_sim_destroy(g->core[i]);
    free(g->core);
    free(g);
}

cps_sim *
cps_sim_group_core(cps_sim_group *g, unsigned core)
{
    cps_assert(core < g->n);
    return g->core[core];
}

unsigned
cps_sim_group_ranks(const cps_sim_group *g)
{
    return g->nranks;
}

bool
group_named(const cps_sim *s)
{
    return s->group && s->group->n > 1;
}

const cps_sim *
group_core(const cps_sim *s, unsigned core)
{
    return s->group ? s->group->core[core] : s;
}

/* ---- loading ---- */

/* Memory of both cores of a pair: arguments, and what their kernels declare so. */
static bool
common(cps_varkind kind)
{
    return kind == CPS_VAR_INPUT || kind == CPS_VAR_OUTPUT || kind == CPS_VAR_INOUT ||
           kind == CPS_VAR_SHARED;
}

/* What both kernels of a pair name is one piece of memory. */
static bool
share(cps_sim *home, cps_sim *s)
{
    for (uint32_t i = 1; i < s->vars.n; i++) {
        hbm_var *v = &s->vars.data[i];
        uint32_t at = common(v->v->kind) ? cps_kbin_var(home->k, v->v->name) : UINT32_MAX;
        if (at == UINT32_MAX || !common(home->vars.data[at].v->kind))
            continue;
        hbm_var *h = &home->vars.data[at];
        bool own = v->v->kind == CPS_VAR_SHARED;
        if (h->v->bytes != v->v->bytes || own != (h->v->kind == CPS_VAR_SHARED))
            return load_fail(s, NULL, CPS_E8207,
                             "'%s' has %lld bytes on core %u and %lld on core %u", v->v->name,
                             (long long)h->v->bytes, home->core, (long long)v->v->bytes, s->core);
        if (own) {
            free(v->data);
            free(v->init);
            v->data = h->data;
            v->init = h->init;
        }
        v->home = home;
        v->at = at;
        v->shared = h->shared = true;
        v->quiet = h->quiet = v->quiet && h->quiet;
    }
    return true;
}

static bool
load_group(cps_sim_group *g, const cps_kbin *const *k, cps_diags *d)
{
    g->nranks = 0;
    for (unsigned i = 0; i < g->n; i++) {
        int cores = k[i]->cores, core = k[i]->core;
        if (cores > 2 || core >= cores || (core > 0 && (i == 0 || k[i - 1]->cores != cores || k[i - 1]->core != core - 1)) ||
            (core + 1 < cores && i + 1 == g->n)) {
            cps_error(d, CPS_E8207, CPS_NOSPAN, "kernel '%s' is core %d of %d and stands at place %u of the group",
                      k[i]->name, core, cores, i);
            cps_note(d, CPS_NOSPAN, "a logical core has one kernel or a pair: core 0 of 2, then core 1 of 2");
            return false;
        }
        if (core == 0)
            g->first[g->nranks++] = i;
        g->rank_of[i] = g->nranks - 1;
        if (!cps_sim_load(g->core[i], k[i], d)) {
            cps_note(d, CPS_NOSPAN, "in the kernel of core %u", i);
            return false;
        }
        cps_sim *s = g->core[i];
        s->d = d;
        bool ok = core == 0 || share(g->core[i - 1], s);
        s->d = NULL;
        if (!ok)
            return false;
    }
    return true;
}

bool
cps_sim_group_load(cps_sim_group *g, const cps_kbin *const *k, cps_diags *d)
{
    // A core forgets what it had of another one's before that one forgets it too.
    for (unsigned i = g->n; i-- > 0;)
        load_drop(g->core[i]);
    return load_group(g, k, d);
}

bool
cps_sim_group_bind(cps_sim_group *g, unsigned rank, const char *var, void *data, size_t bytes,
                   bool defined, cps_diags *d)
{
    cps_assert(rank < g->nranks);
    bool any = false;
    unsigned end = rank + 1 < g->nranks ? g->first[rank + 1] : g->n;
    for (unsigned i = g->first[rank]; i < end; i++) {
        cps_sim *s = g->core[i];
        uint32_t at = cps_kbin_var(s->k, var);
        if (at == UINT32_MAX)
            continue;
        any = true;
        hbm_var *v = &s->vars.data[at];
        if (!v->home) {
            if (!cps_sim_bind(s, var, data, bytes, defined, d))
                return false;
            continue;
        }
        const hbm_var *h = &v->home->vars.data[v->at];
        v->data = h->data;
        v->init = h->init;
        v->bound = h->bound;
        v->defined = h->defined;
    }
    if (!any)
        cps_error(d, CPS_E8204, CPS_NOSPAN, "no kernel of rank %u has a variable '%s'", rank, var);
    return any;
}

/* ---- the run ---- */

/* The neighbours of each core, and its place in the clocks of all. Alone (loading, proofs) a core
 * has none. */
static void
join_cores(cps_sim_group *g, bool on)
{
    g->nclock = 0;
    for (unsigned i = 0; i < g->n; i++) {
        cps_sim *s = g->core[i];
        s->peer = s->mate = NULL;
        s->race = on ? &g->core[0]->own_racer : &s->own_racer;
        s->vc0 = on ? g->nclock : 0;
        g->nclock += 2 * CPS_ENGINES + s->queues.n;
        if (!on)
            continue;
        if ((i ^ 1) < g->n)
            s->mate = g->core[i ^ 1];
        if (s->k->cores == 2)
            s->peer = g->core[s->k->core ? i - 1 : i + 1];
    }
    for (unsigned i = 0; on && i < g->n; i++)
        g->core[i]->nclock = g->nclock;
}

/* Takes the first core's turn: false when nothing is left to happen. */
static bool
turn(cps_sim_group *g)
{
    cps_sim *first = NULL;
    cps_ps at = PS_NEVER, other = PS_NEVER;
    for (unsigned i = 0; i < g->n; i++) {
        cps_ps t = run_next(g->core[i]);
        if (t < at) {
            other = at;
            at = t;
            first = g->core[i];
        } else {
            other = CPS_MIN(other, t);
        }
    }
    if (!first)
        return false;
    // What this core sends to another one ends its turn no later than it arrives (group_send).
    first->horizon = other;
    do {
        run_event(first);
    } while (!first->fault && run_next(first) < first->horizon);
    first->horizon = INT64_MAX;
    return !first->fault;
}

void
group_send(cps_sim *from, cps_sim *to, event ev)
{
    ev_push(to, ev);
    if (from != to)
        group_meet(from, ev.t);
}

void
group_meet(cps_sim *from, cps_ps t)
{
    from->horizon = CPS_MIN(from->horizon, t);
}

bool
cps_sim_group_run(cps_sim_group *g, const cps_sim_opts *o, cps_sim_report *out, cps_diags *d)
{
    bool ok = true, fault = false, stuck = false;
    join_cores(g, true);
    for (unsigned i = 0; ok && i < g->n; i++)
        ok = run_begin(g->core[i], o, d);
    while (ok && turn(g)) {
    }
    for (unsigned i = 0; i < g->n; i++) {
        fault |= g->core[i]->fault;
        stuck |= run_stuck(g->core[i]);
    }
    if (ok && !fault && stuck) {
        g->core[0]->fault = true;
        sync_deadlock(g->core[0]);
    }
    g->begin = INT64_MAX;
    g->end = 0;
    for (unsigned i = 0; i < g->n; i++) {
        cps_sim *s = g->core[i];
        if (!ok) {
            s->d = NULL;
            continue;
        }
        fault |= !run_finish(s, out ? &out[i] : NULL);
        if (s->have_begin) {
            g->begin = CPS_MIN(g->begin, s->begin);
            g->end = CPS_MAX(g->end, s->end);
        }
    }
    join_cores(g, false);
    return ok && !fault;
}

int64_t
cps_sim_group_time_ps(const cps_sim_group *g)
{
    return CPS_MAX(0, g->end - g->begin);
}
