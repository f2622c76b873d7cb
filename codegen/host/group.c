/* Groups: which stages run row by row together. A stage joins the group that made the last of
 * its operands when, along the shared leading loops, everything the group writes and reads
 * stays inside one row; else it opens a group of its own. Softmax and layer norms become one
 * group this way, whatever ops they were written with. */
#include "codegen/host/plan.h"

enum { MAX_STAGES = 24, MIN_INNER = 8 };

// How many leading loops the stage can share.
static int
limit(const host_stage *s)
{
    if (s->kind == HS_MAP)
        return s->nloop ? s->nloop - 1 : 0;
    if (s->kind == HS_REDUCE || s->kind == HS_SCAN)
        for (int l = 0; l < s->nloop; l++)
            if (s->marked[l])
                return l;
    return 0;
}

static int64_t
count(const host_plan *p, cps_val v)
{
    return v < p->f->vals.n ? cps_type_count(cps_host_type(p, v)) : 0;
}

// The access stays in row (i0, .., i[rows-1]) of `v` at iteration (i0, ..) of the shared loops.
static bool
in_row(const host_plan *p, const host_stage *s, cps_val v, const host_aff *at, int rows)
{
    int64_t row = count(p, v), lo = at->c, hi = at->c;
    for (int l = 0; l < rows; l++) {
        if (row % s->extent[l])
            return false;
        row /= s->extent[l];
    }
    int64_t step = row;
    for (int l = rows - 1; l >= 0; l--) {
        if (at->a[l] != step)
            return false;
        step *= s->extent[l];
    }
    for (int l = rows; l < s->nloop; l++)
        *(at->a[l] > 0 ? &hi : &lo) += at->a[l] * (s->extent[l] - 1);
    return lo >= 0 && hi < row;
}

// Every access of `s` to v.
bool
cps_host_in_row(const host_plan *p, const host_stage *s, cps_val v, int rows)
{
    if (s->to == v && !in_row(p, s, v, &s->store, rows))
        return false;
    for (uint32_t i = 0; i < s->nx; i++) {
        const host_x *x = &s->x[i];
        if (x->base != v)
            continue;
        if (x->kind == HX_GATHER || !in_row(p, s, v, &x->at, rows))
            return false;
    }
    return true;
}

static bool
reads(const host_stage *s, cps_val v)
{
    for (uint32_t i = 0; i < s->nx; i++)
        if (s->x[i].base == v)
            return true;
    return false;
}

static bool
fits(const host_plan *p, const host_group *g, const host_stage *s, int rows)
{
    const host_stage *first = &g->stages.data[0];
    int64_t n = 1, inner = 1;
    for (int l = 0; l < rows; l++) {
        if (s->extent[l] != first->extent[l])
            return false;
        n *= s->extent[l];
    }
    for (int l = rows; l < s->nloop; l++)
        inner *= s->extent[l];
    if (n < 2 || (s->nloop > rows && inner < MIN_INNER))
        return false;
    for (uint32_t i = 0; i < g->stages.n; i++) {
        cps_val v = g->stages.data[i].to;
        if (!reads(s, v) && s->to != v)
            continue;
        if (!cps_host_in_row(p, s, v, rows))
            return false;
        for (uint32_t k = 0; k < g->stages.n; k++)
            if (!cps_host_in_row(p, &g->stages.data[k], v, rows))
                return false;
    }
    return true;
}

static bool
join(host_plan *p, host_group *g, const host_stage *s)
{
    if (g->closed || g->stages.n >= MAX_STAGES || (s->kind != HS_MAP && s->kind != HS_REDUCE))
        return false;
    int top = s->kind == HS_MAP ? s->nloop : limit(s);
    for (int rows = CPS_MIN(top, g->rows); rows > 0; rows--)
        if (fits(p, g, s, rows)) {
            g->rows = rows;
            cps_vec_push(p->arena, &g->stages, *s);
            return true;
        }
    return false;
}

static void
note(host_plan *p, cps_val v, uint32_t group, bool write)
{
    if (!v)
        return;
    host_val *h = &p->val[v];
    if (!h->first)
        h->first = group + 1;
    if (write)
        h->done = CPS_MAX(h->done, group + 1);
    h->last = CPS_MAX(h->last, group + 1);
}

void
cps_host_group(host_plan *p, host_stage s)
{
    // the last group that wrote something this stage needs
    uint32_t least = p->val[s.to].done;
    for (uint32_t i = 0; i < s.nx; i++)
        if (s.x[i].base)
            least = CPS_MAX(least, p->val[s.x[i].base].done);
    uint32_t id;
    if (least && join(p, &p->groups.data[least - 1], &s)) {
        id = least - 1;
    } else {
        host_group *g = cps_vec_add(p->arena, &p->groups);
        g->rows = limit(&s);
        g->closed = s.kind == HS_SORT || s.kind == HS_MATMUL || s.kind == HS_SCATTER;
        cps_vec_push(p->arena, &g->stages, s);
        id = p->groups.n - 1;
    }
    for (uint32_t i = 0; i < s.nx; i++)
        note(p, s.x[i].base, id, false);
    note(p, s.to, id, true);
    if (s.mm) {
        note(p, s.mm->a.base, id, false);
        note(p, s.mm->b.base, id, false);
        note(p, s.mm->add.base, id, false);
        note(p, s.mm->work, id, true);
    }
    if (s.sort) {
        note(p, s.sort->base, id, false);
        note(p, s.sort->values, id, true);
        note(p, s.sort->order, id, true);
        note(p, s.sort->work, id, true);
    }
}
