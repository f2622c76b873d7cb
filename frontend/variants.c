/* See variants.h. */
#include "frontend/variants.h"

#include "frontend/timed.h"

/* Time of a candidate, or -1 when it does not compile. */
static int64_t
time_of(cps_cli *c, const cps_instance *i, const cps_candidate *k)
{
    cps_arena *a = cps_arena_create();
    cps_timed x = {0};
    const cps_kbin *bin = cps_compile_trial(c, a, i, k, NULL);
    int64_t time = bin && cps_timed_run(i->target, bin, false, &x, c->diags) ? x.time_ps : -1;
    cps_timed_close(&x);
    cps_arena_destroy(a);
    cps_diags_clear(c->diags);
    return time;
}

static bool
same_value(const cps_attr *x, const cps_attr *y)
{
    cps_buf a = {0}, b = {0};
    cps_attr_print(x, &a);
    cps_attr_print(y, &b);
    bool same = cps_streq(a.data, b.data);
    cps_buf_fini(&a);
    cps_buf_fini(&b);
    return same;
}

static void
take(cps_cli *c, const cps_instance *i, const cps_candidate *k, const cps_attr *step,
     int64_t base_ps, cps_variant *out)
{
    int64_t time = time_of(c, i, k);
    if (time < 0 || base_ps - time <= out->saves_ps)
        return;
    cps_buf b = {0};
    if (step)
        cps_attr_print(step, &b);
    *out = (cps_variant){.cand = *k,
                         .step = cps_arena_strndup(c->arena, b.n ? b.data : "", b.n),
                         .saves_ps = base_ps - time};
    cps_buf_fini(&b);
}

bool
cps_variant_try(cps_cli *c, const cps_instance *i, const cps_candidate *cand, unsigned n,
                unsigned at, int64_t base_ps, cps_variant *out)
{
    cps_registry *r = cps_cli_registry(c);
    const cps_candidate *now = &cand[at];
    cps_param *p;
    uint32_t np = 0;
    *out = (cps_variant){.saves_ps = base_ps / 200};
    cps_cli_flush(c);
    if (!r->params(r->self, c->arena, i, now->leaf, &p, &np))
        np = 0;
    for (uint32_t k = 0; k < np; k++)
        for (uint32_t v = 0; v < p[k].n; v++) {
            const cps_attr *has = cps_attr_find(now->config, now->nconfig, p[k].name);
            cps_candidate x;
            cps_attr *fixed = NULL;
            uint16_t nfixed = 0;
            if (has && same_value(has, &p[k].value[v]))
                continue;
            for (unsigned q = 0; q < now->nconfig; q++)
                cps_attr_put(c->arena, &fixed, &nfixed, now->config[q]);
            cps_attr_put(c->arena, &fixed, &nfixed, p[k].value[v]);
            if (r->candidate(r->self, c->arena, i, now->leaf, fixed, nfixed, &x, c->diags) &&
                x.ok)
                take(c, i, &x, &p[k].value[v], base_ps, out);
        }
    for (unsigned k = 0; k < n; k++)
        if (k != at && cand[k].ok)
            take(c, i, &cand[k], NULL, base_ps, out);
    return out->step != NULL;
}
