/* See timed.h. Time does not depend on data unless control does; such a kernel runs with zeros.
 */
#include "frontend/timed.h"

/* Zeros for every argument of every core. */
static bool
bind_zeros(cps_timed *x, const cps_kbin *k, cps_diags *d)
{
    x->arena = cps_arena_create();
    for (const cps_kbin *core = k; core; core = core->peer)
        for (uint32_t i = 1; i < core->vars.n; i++) {
            const cps_kvar *v = &core->vars.data[i];
            if (v->kind != CPS_VAR_INPUT && v->kind != CPS_VAR_OUTPUT &&
                v->kind != CPS_VAR_INOUT)
                continue;
            if (core != k && cps_kbin_var(k, v->name) != UINT32_MAX)
                continue; // bound with the first core
            void *zeros = cps_arena_alloc(x->arena, (size_t)v->bytes + 1);
            if (!cps_sim_group_bind(x->group, 0, v->name, zeros, (size_t)v->bytes, true, d))
                return false;
        }
    return true;
}

static bool
run(const cps_target *t, const cps_kbin *k, cps_sim_opts o, cps_timed *x, cps_diags *d)
{
    const cps_kbin *all[2] = {k, k->peer};
    x->cores = k->peer ? 2 : 1;
    x->group =
        o.no_data ? cps_sim_group_create_timer(t, x->cores) : cps_sim_group_create(t, x->cores);
    bool ok = cps_sim_group_load(x->group, all, d) && (o.no_data || bind_zeros(x, k, d)) &&
              cps_sim_group_run(x->group, &o, x->core, d);
    x->time_ps = cps_sim_group_time_ps(x->group);
    return ok;
}

bool
cps_timed_run(const cps_target *t, const cps_kbin *k, bool trace, cps_timed *out, cps_diags *d)
{
    *out = (cps_timed){0};
    cps_diags *quiet = cps_diags_create();
    cps_sim_opts o = {.trace = trace, .no_data = true};
    bool ok = run(t, k, o, out, quiet);
    cps_diags_destroy(quiet);
    if (ok)
        return true;
    cps_timed_close(out);
    o.no_data = false;
    out->zeros = true;
    return run(t, k, o, out, d);
}

void
cps_timed_close(cps_timed *x)
{
    cps_sim_group_destroy(x->group);
    if (x->arena)
        cps_arena_destroy(x->arena);
    *x = (cps_timed){0};
}
