/* Software pipelines: `for ... pipelined` with `stage` sections. The trace runs the plain loop
 * and then puts its instructions into the order of issue: stage s of iteration i in round i +
 * s, within a round the oldest iteration first. Checked: that no two accesses to one place
 * change order, and that every tile has the slots its way through the stages takes. */
#include "frontend/dsl/trace_priv.h"

#include <stdlib.h>
#include <string.h>

cps_flow
cps_tr_for_begin(cps_eval *ev, const cps_ast_for *f, uint32_t bind, int64_t count)
{
    cps_tracer *t = cps_tr(ev);
    (void)count;

    if (!f->bind[bind].pipelined)
        return CPS_FLOW_NEXT;
    if (t->pipe.id) {
        cps_eval_error(ev, CPS_E6101, f->bind[bind].span, "pipelines do not nest");
        return CPS_FLOW_FAIL;
    }
    memset(&t->pipe, 0, sizeof(t->pipe));
    t->pipe.id = ++t->pipes;
    t->pipe.loop = f;
    t->pipe.bind = bind;
    t->pipe.first = t->f->insts.n;
    t->pipe.iter = -1;
    return CPS_FLOW_NEXT;
}

cps_flow
cps_tr_for_iter(cps_eval *ev, const cps_ast_for *f, uint32_t bind, int64_t i, cps_cv v)
{
    cps_tracer *t = cps_tr(ev);
    (void)i;
    (void)v;

    if (!t->pipe.id || t->pipe.loop != f || t->pipe.bind != bind)
        return CPS_FLOW_NEXT;
    // An iteration that was dropped before its first stage leaves no gap.
    if (t->pipe.entered || t->pipe.iter < 0)
        t->pipe.iter++;
    t->pipe.entered = false;
    t->pipe.stage = 0;
    return CPS_FLOW_NEXT;
}

cps_flow
cps_tr_stage(cps_tracer *t, const cps_ast_stage *s)
{
    int k = 0;

    if (!t->pipe.id || t->body) {
        cps_eval_error(&t->ev, CPS_E6101, s->name.span,
                       t->body ? "a stage cannot stand inside hardware control"
                               : "a stage stands in the body of a `for ... pipelined`");
        return CPS_FLOW_FAIL;
    }
    while (k < t->pipe.nstage && t->pipe.name[k] != s->name.sym)
        k++;
    if (k == t->pipe.nstage) {
        if (k == (int)cps_countof(t->pipe.name)) {
            cps_eval_error(&t->ev, CPS_E6101, s->name.span, "more than %d stages", k);
            return CPS_FLOW_FAIL;
        }
        t->pipe.name[k] = s->name.sym;
        t->pipe.names[k] = s->name;
        t->pipe.nstage++;
    }
    if (t->pipe.entered && k <= t->pipe.stage) {
        cps_eval_error(&t->ev, CPS_E6101, s->name.span,
                       "stage %s stands after stage %s, in an earlier iteration before it",
                       s->name.text, t->pipe.names[t->pipe.stage].text);
        return CPS_FLOW_FAIL;
    }
    t->pipe.entered = true;
    t->pipe.stage = k;
    int depth = t->depth;
    t->depth = 0;
    cps_flow f = cps_eval_body(&t->ev, s->body, false); // stages open no scope
    t->depth = depth;
    return f;
}

/* ---- the end of a pipelined loop ---- */

typedef struct key {
    int32_t round;
    int64_t iter;
    uint32_t at;
} key;

static int
by_issue(const void *pa, const void *pb)
{
    const key *a = pa, *b = pb;
    if (a->round != b->round)
        return a->round < b->round ? -1 : 1;
    if (a->iter != b->iter)
        return a->iter < b->iter ? -1 : 1;
    return a->at < b->at ? -1 : a->at > b->at;
}

static bool
overlap(const cps_traccess *a, const cps_traccess *b)
{
    if (a->buf != b->buf || (!a->write && !b->write) || a->lo > b->hi || b->lo > a->hi)
        return false;
    return a->part < b->part + CPS_MAX(b->parts, 1) && b->part < a->part + CPS_MAX(a->parts, 1);
}

static int
by_buffer(const void *pa, const void *pb)
{
    const cps_traccess *a = pa, *b = pb;
    if (a->buf != b->buf)
        return a->buf < b->buf ? -1 : 1;
    return a->inst < b->inst ? -1 : a->inst > b->inst;
}

// The first pair of accesses whose order the pipeline would swap. `place` is the new position.
static bool
check_order(cps_tracer *t, cps_traccess *acc, uint32_t n, const uint32_t *place)
{
    for (uint32_t lo = 0, hi; lo < n; lo = hi) {
        hi = lo + 1;
        while (hi < n && acc[hi].buf == acc[lo].buf)
            hi++;
        for (uint32_t j = lo + 1; j < hi; j++) {
            // Only accesses of the few iterations in flight can change places.
            const cps_tinst *b = &t->f->insts.data[acc[j].inst];
            for (uint32_t i = j; i-- > lo;) {
                const cps_tinst *a = &t->f->insts.data[acc[i].inst];
                int64_t ia = a->round - a->stage, ib = b->round - b->stage;
                if (ib - ia >= t->pipe.nstage)
                    break;
                if (place[acc[i].inst - t->pipe.first] < place[acc[j].inst - t->pipe.first] ||
                    acc[i].inst == acc[j].inst || !overlap(&acc[i], &acc[j]))
                    continue;
                const char *name = t->f->bufs.data[acc[j].buf].name;
                cps_eval_error(
                    &t->ev, CPS_E6103, acc[j].at,
                    "stage %s would touch `%s` before stage %s of the iteration before",
                    t->pipe.names[b->stage].text, name, t->pipe.names[a->stage].text);
                cps_note(t->d, acc[i].at, "the access that comes first in the plain loop");
                cps_help(t->d,
                         "move the accesses into one stage, or declare `%s` inside the loop",
                         name);
                return false;
            }
        }
    }
    return true;
}

// Slots: a tile alive over d stages is alive in d + 1 iterations.
static bool
check_slots(cps_tracer *t, const cps_traccess *acc, uint32_t n)
{
    bool ok = true;

    for (uint32_t lo = 0, hi; lo < n; lo = hi) {
        int first = INT32_MAX, last = -1;
        const cps_traccess *w = NULL, *r = NULL;
        int64_t iter = -1;
        bool several = false;
        hi = lo;
        while (hi < n && acc[hi].buf == acc[lo].buf) {
            const cps_tinst *i = &t->f->insts.data[acc[hi].inst];
            if (iter >= 0 && iter != i->round - i->stage)
                several = true;
            iter = i->round - i->stage;
            if (i->stage < first) {
                first = i->stage;
                w = &acc[hi];
            }
            if (i->stage > last) {
                last = i->stage;
                r = &acc[hi];
            }
            hi++;
        }
        cps_tbuf *b = &t->f->bufs.data[acc[lo].buf];
        if (several || b->space == CPS_HBM || last <= first || !b->ring)
            continue;
        int need = last - first + 1;
        if (b->slots == 0)
            b->slots = (uint16_t)need;
        if (b->slots >= need)
            continue;
        if (ok) {
            const cps_trstore *x = t->stores.data[acc[lo].buf];
            uint32_t wl, rl, col;
            cps_diags_locate(t->d, w->at, &wl, &col);
            cps_diags_locate(t->d, r->at, &rl, &col);
            cps_eval_error(
                &t->ev, CPS_E6102, x->slots_at, "`%s` crosses %s and needs %d slots", b->name,
                need == 2 ? "one stage" : cps_arena_printf(t->keep, "%d stages", need - 1),
                need);
            cps_note(t->d, CPS_NOSPAN, "written in stage %s (%s:%u), read in stage %s (%s:%u)",
                     t->pipe.names[first].text, cps_diags_source_name(t->d, w->at.file), wl,
                     t->pipe.names[last].text, cps_diags_source_name(t->d, r->at.file), rl);
        }
        ok = false;
    }
    return ok;
}

// All executions of one ring have one number of slots: the largest asked for.
static void
level_rings(cps_tracer *t)
{
    uint16_t *most = cps_new_array(t->keep, uint16_t, t->ring.n + 1);
    for (uint32_t i = 1; i < t->f->bufs.n; i++) {
        const cps_tbuf *b = &t->f->bufs.data[i];
        if (b->ring && b->slots > most[b->ring])
            most[b->ring] = b->slots;
    }
    for (uint32_t i = 1; i < t->f->bufs.n; i++) {
        cps_tbuf *b = &t->f->bufs.data[i];
        if (b->ring)
            b->slots = most[b->ring];
    }
}

void
cps_tr_for_end(cps_eval *ev, const cps_ast_for *f, uint32_t bind)
{
    cps_tracer *t = cps_tr(ev);
    uint32_t first = t->pipe.first, n = t->f->insts.n - first;

    if (!t->pipe.id || t->pipe.loop != f || t->pipe.bind != bind)
        return;
    if (t->pipe.nstage == 0 && !ev->failed)
        cps_eval_error(ev, CPS_E6101, f->bind[bind].span,
                       "a pipelined loop needs `stage` sections");
    if (t->pipe.nstage == 0 || n == 0 || ev->failed) {
        t->pipe.id = 0;
        return;
    }
    key *k = cps_new_array(t->keep, key, n);
    cps_tinst *old = cps_new_array(t->keep, cps_tinst, n);
    uint32_t *place = cps_new_array(t->keep, uint32_t, n);
    for (uint32_t i = 0; i < n; i++) {
        old[i] = t->f->insts.data[first + i];
        k[i] = (key){old[i].round, old[i].round - old[i].stage, i};
    }
    qsort(k, n, sizeof(*k), by_issue);
    for (uint32_t i = 0; i < n; i++)
        place[k[i].at] = i;
    cps_traccess *acc = t->pipe.access.data;
    qsort(acc, t->pipe.access.n, sizeof(*acc), by_buffer);
    if (check_order(t, acc, t->pipe.access.n, place) && check_slots(t, acc, t->pipe.access.n)) {
        for (uint32_t i = 0; i < n; i++)
            t->f->insts.data[first + i] = old[k[i].at];
        // Open accumulation groups follow their last product.
        for (uint32_t i = 0; i < t->psum.n; i++)
            for (uint32_t j = 0; j < t->psum.data[i]->groups.n; j++) {
                cps_trgroup *g = &t->psum.data[i]->groups.data[j];
                if (g->last > first)
                    g->last = first + place[g->last - 1 - first] + 1;
            }
        level_rings(t);
    }
    t->pipe.id = 0;
}
