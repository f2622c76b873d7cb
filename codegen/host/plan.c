/* The last decisions before code: which temporaries shrink to one row, which loops become one,
 * what is overwritten in place, and where everything lies in scratch. Lifetimes are counted in
 * groups; placement is largest first at the lowest offset that is free for the whole lifetime.
 */
#include "codegen/host/plan.h"

#include <stdlib.h>

enum { ALIGN = 64 };

void
cps_host_drop_loop(host_stage *s, int at)
{
    for (int l = at; l + 1 < s->nloop; l++) {
        s->extent[l] = s->extent[l + 1];
        s->marked[l] = s->marked[l + 1];
    }
    for (uint32_t i = 0; i <= s->nx; i++) {
        host_aff *a = i < s->nx ? &s->x[i].at : &s->store;
        for (int l = at; l + 1 < HOST_LOOPS; l++)
            a->a[l] = a->a[l + 1];
        a->a[HOST_LOOPS - 1] = 0;
    }
    s->nloop--;
}

static void
contract(host_plan *p, const host_group *g, cps_val v)
{
    host_val *h = &p->val[v];
    for (uint32_t i = 0; i < g->stages.n; i++)
        if (!cps_host_in_row(p, &g->stages.data[i], v, g->rows))
            return;
    int64_t rows = 1;
    for (int l = 0; l < g->rows; l++)
        rows *= g->stages.data[0].extent[l];
    h->bytes /= rows;
    h->row = true;
    for (uint32_t i = 0; i < g->stages.n; i++) {
        host_stage *s = &g->stages.data[i];
        for (uint32_t k = 0; k <= s->nx; k++) {
            if ((k < s->nx ? s->x[k].base : s->to) != v)
                continue;
            host_aff *at = k < s->nx ? &s->x[k].at : &s->store;
            memset(at->a, 0, (size_t)g->rows * sizeof *at->a);
        }
    }
}

// Loop l and the next one count through every address as one loop would.
static bool
mergeable(const host_stage *s, int l)
{
    if (s->marked[l] != s->marked[l + 1] || (s->kind == HS_SCAN && s->marked[l]))
        return false;
    for (uint32_t i = 0; i <= s->nx; i++) {
        const host_aff *a = i < s->nx ? &s->x[i].at : &s->store;
        if (a->a[l] != a->a[l + 1] * s->extent[l + 1])
            return false;
    }
    return true;
}

static void
merge_loops(host_stage *s, int rows)
{
    if (s->kind == HS_SORT || s->kind == HS_MATMUL)
        return;
    for (int l = s->nloop - 2; l >= rows; l--)
        if (mergeable(s, l)) {
            s->extent[l + 1] *= s->extent[l];
            cps_host_drop_loop(s, l);
        }
}

static cps_val
root(const host_plan *p, cps_val v)
{
    while (p->val[v].alias)
        v = p->val[v].alias;
    return v;
}

// The one stage of the group reads element by element what dies here: it may overwrite it.
static void
in_place(host_plan *p, uint32_t group)
{
    const host_group *g = &p->groups.data[group];
    const host_stage *s = &g->stages.data[0];
    host_val *to = &p->val[s->to];
    if (g->stages.n != 1 || s->kind != HS_MAP || to->place != HP_SCRATCH || to->alias ||
        to->first != group + 1 || to->done != group + 1)
        return;
    for (uint32_t i = 0; i < s->nx; i++) {
        cps_val v = s->x[i].base;
        host_val *h = &p->val[v];
        if (!v || s->x[i].kind != HX_LOAD || h->place != HP_SCRATCH || h->bytes != to->bytes ||
            h->last != group + 1 || p->val[root(p, v)].last != group + 1)
            continue;
        bool same = true;
        for (uint32_t k = 0; same && k < s->nx; k++)
            if (s->x[k].base == v)
                same = s->x[k].kind == HX_LOAD &&
                       cps_dtype_bytes(s->x[k].dtype) == cps_dtype_bytes(s->dtype) &&
                       memcmp(&s->x[k].at, &s->store, sizeof s->store) == 0;
        if (!same)
            continue;
        to->alias = v;
        to->shared = h->shared = true;
        p->val[root(p, v)].last = to->last;
        return;
    }
}

typedef struct item {
    cps_val v;
    int64_t bytes;
    uint32_t first, last;
} item;

static int
larger(const void *pa, const void *pb)
{
    const item *a = pa, *b = pb;
    if (a->bytes != b->bytes)
        return a->bytes < b->bytes ? 1 : -1;
    return (a->v > b->v) - (a->v < b->v);
}

static int
lower(const void *pa, const void *pb)
{
    const int64_t *a = pa, *b = pb;
    return (a[0] > b[0]) - (a[0] < b[0]);
}

static void
scratch(host_plan *p)
{
    item *it = cps_new_array(p->arena, item, p->nval + 1);
    uint32_t n = 0;
    for (cps_val v = 1; v < p->nval; v++) {
        host_val *h = &p->val[v];
        if (h->kind == HV_STORED && h->place == HP_SCRATCH && h->first && !h->alias)
            it[n++] = (item){v, cps_round_up(CPS_MAX(h->bytes, 1), ALIGN), h->first, h->last};
    }
    qsort(it, n, sizeof *it, larger);
    int64_t(*busy)[2] = cps_arena_alloc(p->arena, (n + 1) * sizeof *busy);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t m = 0;
        for (uint32_t k = 0; k < i; k++)
            if (it[k].first <= it[i].last && it[i].first <= it[k].last) {
                busy[m][0] = p->val[it[k].v].at;
                busy[m++][1] = p->val[it[k].v].at + it[k].bytes;
            }
        qsort(busy, m, sizeof *busy, lower);
        int64_t at = 0;
        for (uint32_t k = 0; k < m && at + it[i].bytes > busy[k][0]; k++)
            at = CPS_MAX(at, busy[k][1]);
        p->val[it[i].v].at = at;
        p->scratch = CPS_MAX(p->scratch, at + it[i].bytes);
    }
    for (cps_val v = 1; v < p->nval; v++)
        if (p->val[v].alias)
            p->val[v].at = p->val[root(p, v)].at;
}

void
cps_host_place(host_plan *p)
{
    for (uint32_t i = 0; i < p->groups.n; i++) {
        host_group *g = &p->groups.data[i];
        if (g->stages.n == 1)
            g->rows = 0;
        for (uint32_t k = 0; g->rows && k < g->stages.n; k++) {
            cps_val v = g->stages.data[k].to;
            const host_val *h = &p->val[v];
            if (v < p->f->vals.n && h->place == HP_SCRATCH && !h->row && h->first == i + 1 &&
                h->last == i + 1)
                contract(p, g, v);
        }
        for (uint32_t k = 0; k < g->stages.n; k++)
            merge_loops(&g->stages.data[k], g->rows);
    }
    for (uint32_t i = 0; i < p->groups.n; i++)
        in_place(p, i);
    scratch(p);
}
