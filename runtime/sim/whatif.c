/* What would help: the kernel runs again on machines with one thing made cheap or free. The
 * critical path picks what is worth trying; the time of the second run says what it is worth.
 */
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

enum { TRIES = 6 };

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
        if (kind != CPS_VAR_INPUT) {
            data = cps_arena_raw(a, n + 1);
            memcpy(data, v->data, n);
        }
        if (!cps_sim_bind(m, v->v->name, data, n, true, d))
            return false;
    }
    return true;
}

static bool
run_on(const cps_sim *s, cps_sim *m, cps_sim_opts o, cps_sim_report *rep)
{
    cps_arena *a = cps_arena_create();
    cps_diags *d = cps_diags_create();
    o.max_steps = s->opts.max_steps;
    bool ok = cps_sim_load(m, s->k, d) && (o.no_data || bind_like(s, m, a, d)) &&
              cps_sim_run(m, &o, rep, d);
    cps_sim_destroy(m);
    cps_diags_destroy(d);
    cps_arena_destroy(a);
    return ok;
}

/* Time of the run with the row's change, or -1. Data is moved only when control depends on it.
 */
static cps_ps
try_row(const cps_sim *s, const whatif_row *row)
{
    cps_target t = *s->t;
    row->change(&t);
    cps_sim_report rep;
    if (run_on(s, cps_sim_create_timer(&t), (cps_sim_opts){.no_data = true}, &rep) ||
        run_on(s, cps_sim_create(&t), (cps_sim_opts){.checks = 0}, &rep))
        return rep.time_ps;
    return -1;
}

unsigned
whatif(cps_sim *s, const view *v, hint *out)
{
    if (group_named(s))
        return 0; // one core of several would run without the others
    cps_ps weight[cps_countof(rows)], all = v->end - v->begin;
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
        hint h = {.what = rows[best].what, .advice = rows[best].advice, .saves = all - t};
        if (t < 0 || h.saves <= all / 200)
            continue;
        unsigned at = n; // the list stays sorted, best first; what falls off its end is lost
        for (; at > 0 && out[at - 1].saves < h.saves; at--)
            if (at < HINTS)
                out[at] = out[at - 1];
        if (at < HINTS)
            out[at] = h;
        n = CPS_MIN(n + 1, HINTS);
    }
    return n;
}
