/* Placement inside a package: constants one after another in weights.bin, temporaries in one HBM
 * arena, their memory shared when their lifetimes over the steps do not meet. First fit in order
 * of decreasing size, ties by variable id, so the same package gives the same plan. */
#include "runtime/pkg/package_plan.h"

#include <stdlib.h>

const char *const cps_pkind_names[CPS_PKINDS] = {"input", "output", "const", "tmp"};

typedef struct life {
    uint32_t var;
    uint32_t first, last; /* steps */
    int64_t bytes, at;
} life;

static int
by_size(const void *pa, const void *pb)
{
    const life *a = pa, *b = pb;
    if (a->bytes != b->bytes)
        return a->bytes < b->bytes ? 1 : -1;
    return a->var < b->var ? -1 : a->var > b->var;
}

static int
by_place(const void *pa, const void *pb)
{
    const life *const *a = pa, *const *b = pb;
    return (*a)->at < (*b)->at ? -1 : (*a)->at > (*b)->at;
}

void
cps_package_plan(cps_package *p)
{
    int64_t at = 0;
    for (uint32_t i = 0; i < p->vars.n; i++) {
        cps_pvar *v = &p->vars.data[i];
        if (v->kind != CPS_PV_CONST)
            continue;
        v->offset = at;
        at = cps_round_up(at + v->bytes, CPS_CONST_ALIGN);
    }
    p->weights_bytes = at;

    cps_mark mark = cps_arena_mark(p->arena);
    life *l = cps_new_array(p->arena, life, p->vars.n + 1);
    uint32_t n = 0;
    uint32_t *of = cps_new_array(p->arena, uint32_t, p->vars.n + 1); // life index + 1
    for (uint32_t s = 0; s < p->steps.n; s++) {
        const cps_pstep *st = &p->steps.data[s];
        for (uint32_t k = 0; k < st->nargs; k++) {
            uint32_t v = p->args.data[st->first + k].var;
            if (p->vars.data[v].kind != CPS_PV_TMP)
                continue;
            if (!of[v]) {
                l[n] = (life){v, s, s, cps_round_up(p->vars.data[v].bytes, CPS_TMP_ALIGN), 0};
                of[v] = ++n;
            }
            l[of[v] - 1].last = s;
        }
    }
    qsort(l, n, sizeof *l, by_size);
    const life **meets = cps_new_array(p->arena, const life *, n + 1);
    p->arena_bytes = 0;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t m = 0;
        for (uint32_t j = 0; j < i; j++)
            if (l[j].first <= l[i].last && l[i].first <= l[j].last)
                meets[m++] = &l[j];
        qsort(meets, m, sizeof *meets, by_place);
        int64_t place = 0;
        for (uint32_t j = 0; j < m; j++) {
            if (place + l[i].bytes <= meets[j]->at)
                break;
            place = CPS_MAX(place, meets[j]->at + meets[j]->bytes);
        }
        l[i].at = place;
        p->vars.data[l[i].var].offset = place;
        p->arena_bytes = CPS_MAX(p->arena_bytes, place + l[i].bytes);
    }
    cps_arena_release(p->arena, mark);
}
