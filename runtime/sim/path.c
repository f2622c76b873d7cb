/* Accounts of a recorded run. Each engine's time is cut into kinds; and from the last event of
 * the run the chain of what held it up is followed back: an instruction was held up by the one
 * before it, by a result of its own engine, by a port, or by who raised the semaphore it waited
 * for; a transfer by its queue's issue, by what its DMA engine served before, and by its
 * trigger. */
#include "runtime/sim/view.h"

const time_row time_rows[TIMES] = {
#define CPS_TIME(id, name, use, doc) {name, use, doc},
#include "runtime/sim/time.def"
};

bool
view_data(const rec_insn *r)
{
    return r->by->sem->kind != SEM_SEQ;
}

time_kind
view_kind(const rec_insn *r)
{
    if (view_data(r))
        return TIME_BUSY;
    if (r->by->sem->exec == exec_core_barrier)
        return TIME_MEET;
    return r->by->sem->exec == exec_table_load ? TIME_TABLE : TIME_CONTROL;
}

uint32_t
view_source(const cps_sim *s, const view *v, uint32_t c)
{
    uint32_t from = c == REC_NONE ? REC_NONE : s->rec->sem.data[c].from;
    if (from == REC_NONE)
        return v->sources - 1;
    if (from & REC_XFER)
        return CPS_ENGINES + view_xfer(s, from)->queue;
    return s->rec->insn.data[from].by->engine;
}

const char *
view_source_name(const cps_sim *s, const view *v, uint32_t source)
{
    if (source < CPS_ENGINES)
        return cps_engine_name((cps_engine)source);
    return source + 1 < v->sources ? s->queues.data[source - CPS_ENGINES].name : "nobody";
}

/* The part of [a, b) inside the run. */
static cps_ps
inside(const view *v, cps_ps a, cps_ps b)
{
    a = CPS_MAX(a, v->begin);
    b = CPS_MIN(b, v->end);
    return b > a ? b - a : 0;
}

static void
account(cps_sim *s, view *v)
{
    cps_ps last[CPS_ENGINES] = {0};
    for (uint32_t k = 0; k < s->rec->insn.n; k++) {
        const rec_insn *r = &s->rec->insn.data[k];
        cps_ps *spent = v->spent[r->by->engine];
        cps_ps wait = inside(v, r->turn, r->ready);
        // A drain lets its engine go on only when the results before it are complete.
        spent[TIME_OWN] += inside(v, last[r->by->engine], r->turn);
        spent[TIME_WAIT] += wait;
        v->wait[r->by->engine][view_source(s, v, r->freed_by)] += wait;
        spent[TIME_OWN] += inside(v, r->ready, r->own);
        spent[TIME_PORT] += inside(v, r->own, r->start);
        spent[view_kind(r)] += inside(v, r->start, r->free - r->warm);
        spent[TIME_WARM] += inside(v, r->free - r->warm, r->free);
        last[r->by->engine] = r->free;
    }
    for (int e = 0; e < CPS_ENGINES; e++)
        v->spent[e][TIME_DONE] += inside(v, last[e], v->end);
    for (uint32_t k = 0; k < s->rec->xfer.n; k++) {
        const rec_xfer *x = &s->rec->xfer.data[k];
        queue_view *q = &v->queue[x->queue];
        cps_ps first = x->first < 0 ? x->last : x->first;
        q->transfers++;
        q->held += x->issue > x->trigger;
        q->bytes += x->bytes;
        q->ndesc += x->ndesc;
        q->issue += x->issue - x->trigger;
        q->start += first - x->issue;
        q->move += x->last - first;
        q->receipt += x->seen - x->last;
        for (int d = 0; d < s->t->dma_engines; d++)
            v->move_work += x->part[d].own;
    }
}

/* ---- the critical path, backwards ---- */

typedef struct walk {
    cps_sim *s;
    view *v;
    uint32_t who;   /* whose time is next; REC_NONE: at the beginning */
    cps_ps at;      /* everything after this is told */
    int ring;       /* DMA engine through which a transfer is entered; -1: the last to finish */
    time_kind tail; /* what the time after an instruction's work is called */
} walk;

static void
tell(walk *w, cps_ps from, time_kind kind)
{
    from = CPS_MAX(from, w->v->begin);
    if (from >= w->at)
        return;
    path_step p = {.who = w->who, .t0 = from, .t1 = w->at, .kind = (uint8_t)kind};
    cps_vec_push(w->s->run_arena, &w->v->path, p);
    w->v->on_path[kind] += w->at - from;
    if (kind == TIME_BUSY)
        w->v->path_busy[w->s->rec->insn.data[w->who].by->engine] += w->at - from;
    w->at = from;
}

/* The instruction of the same engine whose result was awaited until `own`. */
static uint32_t
result_of(const walk *w, const rec_insn *r)
{
    uint32_t k = r->before;
    for (unsigned n = 0; n < 64 && k != REC_NONE; n++) {
        const rec_insn *p = &w->s->rec->insn.data[k];
        if (p->self == r->own && view_data(p))
            return k;
        k = p->before;
    }
    return REC_NONE;
}

static void
walk_insn(walk *w)
{
    const rec_insn *r = &w->s->rec->insn.data[w->who];
    tell(w, r->free, w->tail);
    w->tail = TIME_RESULT;
    tell(w, CPS_MAX(r->start, r->free - r->warm), TIME_WARM);
    tell(w, r->start, view_kind(r));
    tell(w, r->own, TIME_PORT);
    if (r->own > r->ready) {
        uint32_t k = result_of(w, r);
        if (k != REC_NONE) {
            w->who = k;
            w->tail = TIME_OWN;
            return;
        }
        tell(w, r->ready, TIME_OWN);
    }
    if (r->ready > r->turn && r->freed_by != REC_NONE) {
        const rec_sem *c = &w->s->rec->sem.data[r->freed_by];
        if (c->from != REC_NONE && !(c->from & REC_XFER))
            tell(w, c->t - ns_ps(w->s->t->sync_semaphore_ns), TIME_SEMAPHORE);
        w->who = c->from;
        w->ring = -1;
        return;
    }
    tell(w, r->turn, TIME_CONTROL);
    w->who = r->before;
}

/* From the issue of transfer `who` back to its trigger, through the transfers issued before it.
 */
static void
walk_issue(walk *w)
{
    const rec_xfer *x = view_xfer(w->s, w->who);
    while (x->issue > x->trigger && x->before != REC_NONE) {
        tell(w, view_xfer(w->s, x->before)->issue, TIME_ISSUE);
        w->who = x->before;
        x = view_xfer(w->s, w->who);
    }
    tell(w, x->trigger, TIME_ISSUE);
    w->who = x->from;
}

static void
walk_xfer(walk *w)
{
    const rec_xfer *x = view_xfer(w->s, w->who);
    const rec_part *p = &x->part[w->ring < 0 ? x->last_ring : w->ring];
    tell(w, p->end, TIME_RECEIPT);
    if (w->at > p->begin + p->own)
        tell(w, p->begin + p->own, TIME_SHARED);
    tell(w, p->begin, TIME_MOVE);
    if (p->after != REC_NONE && p->after != w->who) {
        w->ring = w->ring < 0 ? x->last_ring : w->ring;
        w->who = p->after;
        return;
    }
    tell(w, x->issue, TIME_START);
    walk_issue(w);
}

static void
find_path(cps_sim *s, view *v)
{
    walk w = {.s = s, .v = v, .who = REC_NONE, .at = v->end, .ring = -1, .tail = TIME_RESULT};
    for (uint32_t k = 0; k < s->rec->insn.n && w.who == REC_NONE; k++)
        if (s->rec->insn.data[k].done == v->end)
            w.who = k;
    for (uint32_t k = 0; k < s->rec->xfer.n && w.who == REC_NONE; k++)
        if (s->rec->xfer.data[k].seen == v->end)
            w.who = REC_XFER | k;
    // Going back in time always ends; the bound is for records that contradict each other.
    uint64_t left = 4 * ((uint64_t)s->rec->insn.n + s->rec->xfer.n) + 64;
    while (w.who != REC_NONE && w.at > v->begin && left--) {
        if (w.who & REC_XFER)
            walk_xfer(&w);
        else
            walk_insn(&w);
    }
    for (uint32_t a = 0, b = v->path.n; a + 1 < b; a++, b--) {
        path_step t = v->path.data[a];
        v->path.data[a] = v->path.data[b - 1];
        v->path.data[b - 1] = t;
    }
}

/* ---- values over time ---- */

static int
by_time(const void *a, const void *b)
{
    const point *x = a, *y = b;
    if (x->t != y->t)
        return x->t < y->t ? -1 : 1;
    return x->v < y->v ? -1 : x->v > y->v;
}

/* Turns steps in any order into values at points in time. */
static const series *
add_up(series *p)
{
    int64_t v = 0;
    uint32_t n = 0;
    if (p->n)
        qsort(p->data, p->n, sizeof *p->data, by_time);
    for (uint32_t k = 0; k < p->n; k++) {
        v += p->data[k].v;
        if (n && p->data[n - 1].t == p->data[k].t)
            n--;
        p->data[n++] = (point){p->data[k].t, v};
    }
    p->n = n;
    return p;
}

const series *
view_flight(cps_sim *s)
{
    series *p = cps_new(s->run_arena, series);
    for (uint32_t k = 0; k < s->rec->xfer.n; k++) {
        const rec_xfer *x = &s->rec->xfer.data[k];
        cps_vec_push(s->run_arena, p, ((point){x->trigger, x->bytes}));
        cps_vec_push(s->run_arena, p, ((point){x->seen, -x->bytes}));
    }
    return add_up(p);
}

const series *
view_usage(cps_sim *s, unsigned psum)
{
    series *p = cps_new(s->run_arena, series);
    for (uint32_t k = 0; k < s->rec->live.n; k++) {
        const rec_live *l = &s->rec->live.data[k];
        if (l->psum != psum)
            continue;
        cps_vec_push(s->run_arena, p, ((point){l->t0, l->hi - l->lo}));
        cps_vec_push(s->run_arena, p, ((point){l->t1, -(int64_t)(l->hi - l->lo)}));
    }
    return add_up(p);
}

const view *
view_of(cps_sim *s)
{
    recorder *r = s->rec;
    if (!r || r->view)
        return r ? r->view : NULL;
    view *v = r->view = cps_new(s->run_arena, view);
    v->begin = s->begin;
    v->end = CPS_MAX(s->begin, s->end);
    v->sources = CPS_ENGINES + s->queues.n + 1;
    for (int e = 0; e < CPS_ENGINES; e++)
        v->wait[e] = cps_new_array(s->run_arena, cps_ps, v->sources);
    v->queue = cps_new_array(s->run_arena, queue_view, s->queues.n + 1);
    account(s, v);
    find_path(s, v);
    return v;
}
