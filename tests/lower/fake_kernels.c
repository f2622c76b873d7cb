/* The two functions of the kernels room that lowering calls, for tests that do not link it. */
#include "kernels/registry.h"

__attribute__((weak)) void
cps_instance_print(const cps_instance *i, cps_buf *out)
{
    bool first = true;
    cps_buf_printf(out, "%s(", i->op);
    for (int k = 0; k < i->noperands; k++) {
        if (!i->operand[k].present)
            continue;
        cps_buf_printf(out, "%s%s ", first ? "" : ", ", i->operand[k].name);
        cps_type_print(&i->operand[k].type, out);
        first = false;
    }
    for (uint16_t k = 0; k < i->nattr; k++) {
        const cps_attr *a = &i->attr[k];
        cps_buf_printf(out, "%s%s=", k ? ", " : "; ", a->key);
        if (a->kind == CPS_A_STR)
            cps_buf_puts(out, a->s);
        else if (a->kind == CPS_A_FLOAT)
            cps_buf_put_double(out, a->f);
        else
            cps_buf_printf(out, "%lld", (long long)a->i);
    }
    cps_buf_printf(out, ") on %s", i->target ? i->target->name : "host");
}

__attribute__((weak)) int
cps_registry_pick(const cps_candidate *cand, unsigned n, const char *force, const char **why)
{
    int best = -1;
    unsigned ok = 0;
    for (unsigned i = 0; i < n; i++) {
        if (!cand[i].ok || (force && strcmp(cand[i].leaf, force) != 0))
            continue;
        ok++;
        if (best < 0 || cand[i].cost_ns < cand[best].cost_ns)
            best = (int)i;
    }
    *why = best < 0 ? NULL : force ? "forced" : ok == 1 ? "only" : "model";
    return best;
}
