/* Instructions: operands lowered to tile views, start partitions, what is read before it was
 * written, accumulation groups in PSUM, and the record of accesses that pipelines need. */
#include "frontend/dsl/trace_priv.h"

#include <string.h>

cps_tinst *
cps_tr_begin(cps_tracer *t, cps_top op, const cps_trmarks *m)
{
    cps_tinst *i = cps_tile_inst(t->f, op, t->at);
    if (m && m->on != CPS_ENGINE_ANY) {
        i->engine = (uint8_t)m->on;
        i->pinned = true;
    }
    if (m)
        i->priority = (int32_t)m->priority;
    i->after = t->after;
    t->after = 0;
    if (t->pipe.id) {
        i->stage = t->pipe.stage;
        i->round = (int32_t)t->pipe.iter + i->stage;
    }
    return i;
}

// First and last element that a view touches in its buffer's partition (or tensor).
static void
span_of(const cps_tview *v, int64_t *lo, int64_t *hi)
{
    *lo = *hi = v->off;
    for (int i = 0; i < v->nd; i++) {
        int64_t d = v->d[i].step * (v->d[i].num - 1);
        if (d < 0)
            *lo += d;
        else
            *hi += d;
    }
}

static int64_t
count_of(const cps_tview *v)
{
    int64_t n = 1;
    for (int i = 0; i < v->nd; i++)
        n *= v->d[i].num;
    return n;
}

static bool
same_region(const cps_tview *a, const cps_tview *b)
{
    return a->dtype == b->dtype && a->part == b->part && a->parts == b->parts &&
           a->off == b->off && a->nd == b->nd &&
           memcmp(a->d, b->d, (size_t)a->nd * sizeof(a->d[0])) == 0;
}

static bool
meets(const cps_tview *a, const cps_tview *b)
{
    int64_t al, ah, bl, bh;
    if (a->part >= b->part + b->parts || b->part >= a->part + a->parts)
        return false;
    span_of(a, &al, &ah);
    span_of(b, &bl, &bh);
    return al <= bh && bl <= ah;
}

// b lies wholly inside a, which has no holes.
static bool
covers(const cps_tview *a, const cps_tview *b)
{
    int64_t al, ah, bl, bh;
    span_of(a, &al, &ah);
    span_of(b, &bl, &bh);
    return ah - al + 1 == count_of(a) && al <= bl && bh <= ah && a->part <= b->part &&
           b->part + b->parts <= a->part + a->parts;
}

static void
stop_group(cps_tracer *t, cps_trgroup *g)
{
    if (!g->foreign && g->last)
        cps_tinst_set(&t->f->insts.data[g->last - 1], CPS_TA_STOP, 1);
}

static void
close_groups(cps_tracer *t, cps_trstore *s, const cps_tview *v)
{
    for (uint32_t i = 0; i < s->groups.n; i++) {
        cps_trgroup *g = &s->groups.data[i];
        if (!g->closed && meets(&g->region, v)) {
            stop_group(t, g);
            g->closed = true;
        }
    }
}

void
cps_tr_close_all(cps_tracer *t)
{
    for (uint32_t i = 0; i < t->psum.n; i++)
        for (uint32_t k = 0; k < t->psum.data[i]->groups.n; k++) {
            cps_trgroup *g = &t->psum.data[i]->groups.data[k];
            if (!g->closed)
                stop_group(t, g);
        }
}

// A write to PSUM by anything but an accumulating product.
static void
overwrite(cps_tracer *t, cps_trstore *s, const cps_tview *v, bool foreign)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < s->groups.n; i++) {
        cps_trgroup *g = &s->groups.data[i];
        if (meets(&g->region, v) && !g->closed)
            stop_group(t, g);
        if (!covers(v, &g->region))
            s->groups.data[n++] = *g;
    }
    s->groups.n = n;
    cps_vec_push(t->keep, &s->groups,
                 ((cps_trgroup){.region = *v,
                                .first = t->f->insts.n,
                                .last = foreign ? 0 : t->f->insts.n,
                                .closed = foreign,
                                .foreign = foreign}));
}

// Before trn3 a product that starts a group makes its whole bank fresh: what another group of
// the same partitions has gathered there is lost. Tiles start banks, so only groups of one tile
// meet.
static bool
alone(cps_tracer *t, const cps_trstore *s, const cps_trgroup *g, cps_span at)
{
    int64_t lo, hi, bank = t->t->psum_bank_bytes / (int64_t)cps_dtype_bytes(g->region.dtype);

    if (t->t->gen >= CPS_V4)
        return true;
    span_of(&g->region, &lo, &hi);
    for (uint32_t i = 0; i < s->groups.n; i++) {
        const cps_trgroup *h = &s->groups.data[i];
        int64_t from, to;
        if (h == g || h->foreign || h->first <= g->last ||
            h->region.part >= g->region.part + g->region.parts ||
            g->region.part >= h->region.part + h->region.parts)
            continue;
        span_of(&h->region, &from, &to);
        if (from / bank > hi / bank || lo / bank > to / bank)
            continue;
        cps_eval_error(&t->ev, CPS_E5125, at,
                       "two groups of products of `%s` take turns in one PSUM bank", s->name);
        cps_note(t->d, s->at, "a group that starts makes its bank fresh on %s", t->t->name);
        cps_help(t->d,
                 "give every fold its own bank: `align %lld`; or finish one group before the "
                 "next starts",
                 (long long)t->t->psum_bank_bytes);
        return false;
    }
    return true;
}

static bool
accumulate(cps_tracer *t, cps_trstore *s, const cps_tview *v, cps_span at, bool *start)
{
    cps_trgroup *inside = NULL;

    *start = true;
    for (uint32_t i = 0; i < s->groups.n; i++) {
        cps_trgroup *g = &s->groups.data[i];
        if (!meets(&g->region, v))
            continue;
        if (g->closed && t->t->gen < CPS_V4) {
            cps_eval_error(&t->ev, CPS_E5123, at,
                           g->foreign
                               ? "`%s` was written by something else than a product, and "
                                 "cannot be added to"
                               : "the accumulation group of `%s` is closed: it was read",
                           s->name);
            cps_note(t->d, CPS_NOSPAN, "%s leaves accumulation on foreign data undefined",
                     t->t->name);
            cps_help(t->d, "declare the tile again, or accumulate in sbuf");
            return false;
        }
        if (same_region(&g->region, v)) {
            if (!alone(t, s, g, at))
                return false;
            g->last = t->f->insts.n;
            g->closed = false;
            *start = false;
            return true;
        }
        if (covers(&g->region, v)) {
            inside = g;
        } else {
            cps_eval_error(&t->ev, CPS_E5123, at,
                           "this product adds to a region of `%s` of which only a part was "
                           "written",
                           s->name);
            cps_help(t->d, "let the first product cover the whole region");
            return false;
        }
    }
    if (inside && !alone(t, s, inside, at))
        return false;
    if (inside) {
        inside->last = t->f->insts.n;
        inside->closed = false;
        *start = false;
    }
    cps_vec_push(t->keep, &s->groups,
                 ((cps_trgroup){.region = *v,
                                .first = inside ? inside->first : t->f->insts.n,
                                .last = t->f->insts.n}));
    return true;
}

bool
cps_tr_start(cps_tracer *t, const cps_tview *v, cps_span at)
{
    const cps_tbuf *b = &t->f->bufs.data[v->buf];
    int part = v->part + (b->pin_part > 0 ? b->pin_part : 0), n = v->parts;
    bool ok = n > 64 ? part == 0 : n > 32 ? part % 64 == 0 : part % 32 == 0;

    if (ok && part + n <= t->t->sbuf_partitions)
        return true;
    cps_eval_error(&t->ev, CPS_E5121, at, "%d partitions may start at %s, not at %d", n,
                   n > 64   ? "0"
                   : n > 32 ? "0 or 64"
                            : "0, 32, 64 or 96",
                   part);
    cps_note(t->d, CPS_NOSPAN,
             "rule of the compute engines (isa-semantics 2.1); a DMA may start anywhere");
    return false;
}

static void
record(cps_tracer *t, const cps_tview *v, bool write, cps_span at)
{
    if (!t->pipe.id)
        return;
    cps_traccess a = {.inst = t->f->insts.n - 1,
                      .buf = v->buf,
                      .write = write,
                      .part = v->part,
                      .parts = v->parts,
                      .at = at};
    if (v->reg || v->index) {
        a.lo = 0;
        a.hi = INT64_MAX;
    } else {
        span_of(v, &a.lo, &a.hi);
    }
    cps_vec_push(t->keep, &t->pipe.access, a);
}

static bool
compute(const cps_tinst *i)
{
    return i->op != CPS_T_DMA && i->op != CPS_T_DMA_TRANSPOSE && i->op < CPS_T_REG_LOAD;
}

bool
cps_tr_in_view(cps_tracer *t, cps_tinst *i, cps_tview v, cps_trstore *s, cps_span at)
{
    if (!s->can_read)
        return cps_eval_error(&t->ev, CPS_E4301, at, "`%s` is a result and cannot be read",
                              s->name);
    if (!s->written) {
        cps_eval_error(&t->ev, CPS_E4201, at, "`%s` is read before anything was written to it",
                       s->name);
        cps_note(t->d, s->at, "declared here; every execution of a declaration starts empty");
        return false;
    }
    if (compute(i) && !cps_tr_start(t, &v, at))
        return false;
    if (s->space == CPS_PSUM)
        close_groups(t, s, &v);
    record(t, &v, false, at);
    cps_assert(i->nin < 3);
    i->in[i->nin++] = cps_to_view(cps_tile_view(t->f, v));
    return true;
}

// Whether two positions of a view are the same element: a step is shorter than what the smaller
// steps reach.
static bool
overlaps(const cps_tview *v)
{
    for (int i = 0; i < v->nd; i++) {
        int64_t reach = 0;
        for (int k = 0; k < v->nd; k++)
            if (k != i &&
                (v->d[k].step < v->d[i].step || (v->d[k].step == v->d[i].step && k > i)))
                reach += v->d[k].step * (v->d[k].num - 1);
        if (v->d[i].num > 1 && v->d[i].step <= reach)
            return true;
    }
    return false;
}

bool
cps_tr_out_view(cps_tracer *t, cps_tinst *i, cps_tview v, cps_trstore *s, cps_span at)
{
    if (!s->can_write)
        return cps_eval_error(&t->ev, CPS_E4301, at, "`%s` is an operand and cannot be written",
                              s->name);
    if (overlaps(&v))
        return cps_eval_error(
            &t->ev, CPS_E4301, at,
            "this view of `%s` has an element at several positions and cannot "
            "be written",
            s->name);
    if (compute(i) && !cps_tr_start(t, &v, at))
        return false;
    if (s->space == CPS_PSUM && i->op != CPS_T_MATMUL)
        overwrite(t, s, &v, true);
    record(t, &v, true, at);
    s->written = true;
    cps_assert(i->nout < 2);
    i->out[i->nout++] = cps_to_view(cps_tile_view(t->f, v));
    return true;
}

bool
cps_tr_group(cps_tracer *t, cps_tinst *i, const cps_tview *v, cps_trstore *s, bool add,
             cps_span at)
{
    bool start = true;

    if (add && s->body != t->body) {
        cps_eval_error(
            &t->ev, CPS_E5124, at,
            "`%s` is declared outside this hardware loop: its first product cannot be "
            "told from the others",
            s->name);
        cps_note(t->d, s->at, "declared here");
        cps_help(t->d, "accumulate in sbuf, or declare the tile inside");
        return false;
    }
    if (!add)
        overwrite(t, s, v, false);
    else if (!accumulate(t, s, v, at, &start))
        return false;
    if (start)
        cps_tinst_set(i, CPS_TA_START, 1);
    return true;
}

bool
cps_tr_in(cps_tracer *t, cps_tinst *i, const cps_view *v, int64_t parts, cps_span at)
{
    cps_trstore *s = v->store;
    cps_tview w;
    cps_view_err e;
    if (!cps_view_lower(v, s->buf, parts, true, &w, t->keep, &e))
        return cps_tr_fail(t, at, &e);
    return cps_tr_in_view(t, i, w, s, at);
}

bool
cps_tr_out(cps_tracer *t, cps_tinst *i, const cps_view *v, int64_t parts, cps_span at)
{
    cps_trstore *s = v->store;
    cps_tview w;
    cps_view_err e;
    if (!cps_view_lower(v, s->buf, parts, true, &w, t->keep, &e))
        return cps_tr_fail(t, at, &e);
    return cps_tr_out_view(t, i, w, s, at);
}
