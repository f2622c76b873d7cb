/* What would help: the kernel runs again on machines with one thing made cheap or free. The
 * critical path picks what is worth trying; the time of the second run says what it is worth.
 */
#include "runtime/base/map.h"
#include "runtime/sim/group.h"
#include "runtime/sim/view.h"

typedef struct whatif_row {
    uint8_t kind, engine;
    void (*change)(cps_target *t);
    const char *what, *advice;
} whatif_row;

#define CPS_WHATIF(id, kind, engine, code, what, advice)                                       \
    static void change_##id(cps_target *t) code
#include "runtime/sim/whatif.def"

static const whatif_row rows[] = {
#define CPS_WHATIF(id, kind, engine, code, what, advice)                                       \
    {TIME_##kind, engine, change_##id, what, advice},
#include "runtime/sim/whatif.def"
};

enum { TRIES = 6, HINTS = CPS_SIM_HINTS };

/* Gives the second machine the variables of the first: inputs as they are, copies of all else.
 */
static bool
bind_like(const cps_sim *s, cps_sim *m, cps_arena *a, cps_diags *d)
{
    for (uint32_t i = 1; i < s->vars.n; i++) {
        const hbm_var *v = &s->vars.data[i];
        cps_varkind kind = v->v->kind;
        size_t n = (size_t)v->v->bytes;
        void *data = v->data;
        if (kind == CPS_VAR_DATA || kind == CPS_VAR_TMP || kind == CPS_VAR_SHARED)
            continue;
        if (!data)
            return false; // the first machine ran without data
        if (kind != CPS_VAR_INPUT) {
            data = cps_arena_raw(a, n + 1);
            memcpy(data, v->data, n);
        }
        if (!cps_sim_bind(m, v->v->name, data, n, true, d))
            return false;
    }
    return true;
}

/* Time of a run of one core with its data, or -1. */
static cps_ps
run_data(const cps_sim *s, const cps_target *t)
{
    cps_arena *a = cps_arena_create();
    cps_diags *d = cps_diags_create();
    cps_sim *m = cps_sim_create(t);
    cps_sim_opts o = {.max_steps = s->opts.max_steps};
    cps_sim_report rep;
    bool ok = cps_sim_load(m, s->k, d) && bind_like(s, m, a, d) && cps_sim_run(m, &o, &rep, d);
    cps_sim_destroy(m);
    cps_diags_destroy(d);
    cps_arena_destroy(a);
    return ok ? rep.time_ps : -1;
}

/* Time of a run without data of all cores that ran with `s`, or -1. */
static cps_ps
run_timer(const cps_sim *s, const cps_target *t)
{
    unsigned n = group_named(s) ? s->group->n : 1;
    const cps_kbin *k[CPS_SIM_CORES];
    cps_diags *d = cps_diags_create();
    cps_sim_group *g = cps_sim_group_create_timer(t, n);
    cps_sim_opts o = {.no_data = true, .max_steps = s->opts.max_steps};
    for (unsigned i = 0; i < n; i++)
        k[i] = group_core(s, i)->k;
    bool ok = cps_sim_group_load(g, k, d) && cps_sim_group_run(g, &o, NULL, d);
    cps_ps time = cps_sim_group_time_ps(g);
    cps_sim_group_destroy(g);
    cps_diags_destroy(d);
    return ok ? time : -1;
}

/* Time of the run with the row's change, or -1. Data is moved only when control depends on it.
 */
static cps_ps
try_row(const cps_sim *s, const whatif_row *row)
{
    cps_target t = *s->t;
    row->change(&t);
    cps_ps time = run_timer(s, &t);
    return time >= 0 || group_named(s) ? time : run_data(s, &t);
}

/* Whether the path's step is time of the row's kind. */
static bool
counts(const cps_sim *s, const path_step *p, const whatif_row *row)
{
    return p->kind == row->kind &&
           (p->kind != TIME_BUSY || s->rec->insn.data[p->who].by->engine == row->engine);
}

/* The source line that holds the largest part of the path's time of the row's kind; NULL when
 * none of it has a place. */
static const cps_kloc *
heaviest(const cps_sim *s, const view *v, const whatif_row *row, double *share)
{
    cps_arena *a = cps_arena_create();
    cps_map at;
    CPS_VEC(cps_ps) sum = {0};
    CPS_VEC(const cps_kloc *) loc = {0};
    cps_ps all = 0;
    uint32_t best = 0;
    cps_map_init(&at, a);
    for (uint32_t k = 0; k < v->path.n; k++) {
        const path_step *p = &v->path.data[k];
        if (!counts(s, p, row))
            continue;
        const insn *i =
            p->who & REC_XFER ? view_xfer(s, p->who)->by : s->rec->insn.data[p->who].by;
        const cps_kloc *l = insn_loc(s, i);
        bool fresh;
        all += p->t1 - p->t0;
        if (!l)
            continue;
        uint64_t *n =
            cps_map_at_str(&at, cps_arena_printf(a, "%u %s", l->line, l->file), &fresh);
        if (fresh) {
            *n = sum.n;
            cps_vec_push(a, &sum, 0);
            cps_vec_push(a, &loc, l);
        }
        sum.data[*n] += p->t1 - p->t0;
        if (sum.data[*n] > sum.data[best])
            best = (uint32_t)*n;
    }
    const cps_kloc *l = loc.n ? loc.data[best] : NULL;
    *share = l && all > 0 ? (double)sum.data[best] / (double)all : 0;
    cps_arena_destroy(a);
    return l;
}

unsigned
cps_sim_hints(cps_sim *s, cps_sim_hint *out)
{
    const view *v = view_of(s);
    if (!v || (group_named(s) && (int)s->group->n != s->k->cores))
        return 0; // of several logical cores each would say the same
    cps_ps weight[cps_countof(rows)], all = v->end - v->begin;
    // A change shortens what all cores take together.
    cps_ps whole = group_named(s) ? cps_sim_group_time_ps(s->group) : all;
    bool tried[cps_countof(rows)] = {false};
    unsigned n = 0;
    for (unsigned k = 0; k < cps_countof(rows); k++)
        weight[k] =
            rows[k].kind == TIME_BUSY ? v->path_busy[rows[k].engine] : v->on_path[rows[k].kind];
    for (unsigned round = 0; round < TRIES; round++) {
        unsigned best = cps_countof(rows);
        for (unsigned k = 0; k < cps_countof(rows); k++)
            if (!tried[k] && weight[k] > all / 200 &&
                (best == cps_countof(rows) || weight[k] > weight[best]))
                best = k;
        if (best == cps_countof(rows))
            break;
        tried[best] = true;
        cps_ps t = try_row(s, &rows[best]);
        cps_sim_hint h = {
            .what = rows[best].what, .advice = rows[best].advice, .saves_ps = whole - t};
        if (t < 0 || h.saves_ps <= whole / 200)
            continue;
        h.at = heaviest(s, v, &rows[best], &h.share);
        unsigned at = n; // the list stays sorted, best first; what falls off its end is lost
        for (; at > 0 && out[at - 1].saves_ps < h.saves_ps; at--)
            if (at < HINTS)
                out[at] = out[at - 1];
        if (at < HINTS)
            out[at] = h;
        n = CPS_MIN(n + 1, HINTS);
    }
    return n;
}
