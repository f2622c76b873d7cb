/* What happened in a run, kept when asked: one record per instruction with what held it up and
 * who released it, one per transfer with its phases, one per semaphore change, and the bytes of
 * SBUF and PSUM that something lay in. Trace, page and summary are read out of these records.
 * Records live in the run's arena, until the next run or load. */
#include "runtime/sim/machine.h"

void
rec_begin(cps_sim *s)
{
    recorder *r = s->rec = cps_new(s->run_arena, recorder);
    r->ngran[0] = (uint32_t)cps_ceil_div((int64_t)s->sbuf_bytes, GRANULE);
    r->ngran[1] = PSUM_BYTES / GRANULE;
    for (int k = 0; k < 2; k++)
        r->gran[k] = cps_new_array(s->run_arena, granule, r->ngran[k]);
    for (int k = 0; k < 2 * SEMS; k++)
        r->last_change[k] = REC_NONE;
    for (int k = 0; k < DMA_RINGS; k++)
        r->last_xfer[k] = REC_NONE;
    r->last_of_queue = cps_new_array(s->run_arena, uint32_t, s->queues.n + 1);
    for (uint32_t q = 0; q < s->queues.n; q++)
        r->last_of_queue[q] = REC_NONE;
    for (int e = 0; e < CPS_ENGINES; e++)
        s->eng[e].turn = (rec_turn){.freed_by = REC_NONE, .last = REC_NONE, .ready = -1};
}

/* ---- bytes in use ---- */

static void
close_run(cps_sim *s, unsigned psum, uint32_t lo, uint32_t hi)
{
    const granule *g = &s->rec->gran[psum][lo];
    rec_live l = {.lo = lo * GRANULE,
                  .hi = hi * GRANULE,
                  .t0 = g->t0,
                  .t1 = g->t1,
                  .by = g->by,
                  .psum = (uint8_t)psum};
    cps_vec_push(s->run_arena, &s->rec->live, l);
}

/* Ends what lies in granules [lo, hi): neighbours of one life become one record. */
static void
end_lives(cps_sim *s, unsigned psum, uint32_t lo, uint32_t hi)
{
    granule *g = s->rec->gran[psum];
    for (uint32_t k = lo; k < hi;) {
        uint32_t n = k + 1;
        while (n < hi && g[n].live == g[k].live && g[n].t0 == g[k].t0 && g[n].t1 == g[k].t1 &&
               g[n].by == g[k].by)
            n++;
        if (g[k].live)
            close_run(s, psum, k, n);
        while (k < n)
            g[k++].live = false;
    }
}

/* Bytes [a, b) of a partition are read or written at time t by `by`. A write after a read
 * starts a new life, unless the same instruction reads what it writes. */
static void
touch_bytes(cps_sim *s, unsigned psum, int64_t a, int64_t b, bool write, cps_ps t, uint32_t by)
{
    granule *g = s->rec->gran[psum];
    uint32_t lo = (uint32_t)(a / GRANULE), hi = (uint32_t)cps_ceil_div(b, GRANULE);
    hi = CPS_MIN(hi, s->rec->ngran[psum]);
    for (uint32_t k = lo; write && k < hi;) { // whole lives at once, so that records stay few
        uint32_t n = k;
        while (n < hi && g[n].live && g[n].read && g[n].t1 < t)
            n++;
        end_lives(s, psum, k, n);
        k = n + 1;
    }
    for (uint32_t k = lo; k < hi; k++) {
        if (!g[k].live)
            g[k] = (granule){.t0 = t, .t1 = t, .by = by, .live = true};
        g[k].t1 = CPS_MAX(g[k].t1, t);
        g[k].read = !write;
    }
}

static void
touch(cps_sim *s, const rect *r, bool write, cps_ps t, uint32_t by)
{
    if (r->space == SP_HBM || r->run <= 0)
        return;
    unsigned psum = r->space == SP_PSUM;
    int64_t lane = psum ? CPS_PSUM_STRIDE : CPS_SBUF_STRIDE, base = r->base & (lane - 1);
    // Partitions do not count; a pattern with gaps inside a partition is followed run by run,
    // one with very many runs by its hull.
    int64_t step[RECT_DIMS], num[RECT_DIMS], runs = 1, reach = 0;
    unsigned nd = 0;
    for (unsigned d = 0; d < r->nd; d++) {
        if (r->step[d] % lane == 0)
            continue;
        step[nd] = r->step[d];
        num[nd++] = r->num[d];
        runs *= r->num[d];
        reach += r->step[d] * (r->num[d] - 1);
    }
    if (base + reach + r->run > lane)
        return;
    if (runs > 512 || nd == 0 || step[nd - 1] <= GRANULE) {
        touch_bytes(s, psum, base, base + reach + r->run, write, t, by);
        return;
    }
    int64_t at[RECT_DIMS] = {0};
    for (int64_t k = 0; k < runs; k++) {
        int64_t b = base;
        for (unsigned d = 0; d < nd; d++)
            b += at[d] * step[d];
        touch_bytes(s, psum, b, b + r->run, write, t, by);
        for (unsigned d = nd; d-- > 0 && ++at[d] == num[d];)
            at[d] = 0;
    }
}

/* ---- instructions ---- */

void
rec_passed(cps_sim *s, engine *e, const insn *i)
{
    rec_turn *w = &e->turn;
    w->turn = e->free;
    w->ready = w->own = CPS_MAX(s->now, e->free); // a barrier may have let it go on later than its turn
    w->freed_by = REC_NONE;
    if (e->resume < 0 || e->resume == s->now)
        return;
    for (unsigned k = 0; k < i->sy.nwait; k++) { // of two, the later one ended it
        bool evt = (i->sy.wait_mode[k] & 0x0F) >= CPS_WAIT_EVT_SET;
        uint32_t c = s->rec->last_change[i->sy.wait_idx[k] + (evt ? SEMS : 0)];
        if (c != REC_NONE && (w->freed_by == REC_NONE || c > w->freed_by))
            w->freed_by = c;
    }
}

void
rec_held(cps_sim *s, engine *e, cps_ps own)
{
    if (own > s->now)
        e->turn.own = own;
}

/* The latest record of PE gets what PE has multiplied since the one before. */
static void
settle_macs(cps_sim *s)
{
    uint32_t last = s->eng[CPS_PE].turn.last;
    if (last != REC_NONE)
        s->rec->insn.data[last].macs = s->rep.pe_macs - s->rec->macs;
    s->rec->macs = s->rep.pe_macs;
}

void
rec_start(cps_sim *s, engine *e, const insn *i, const cps_cost *c, cps_ps warm)
{
    rec_turn *w = &e->turn;
    uint32_t id = s->rec->insn.n;
    if (e->id == CPS_PE)
        settle_macs(s);
    rec_insn r = {.by = i,
                  .turn = w->turn,
                  .ready = w->ready,
                  .own = w->own,
                  .start = s->now,
                  .free = s->now + c->occupy,
                  .self = s->now + c->self,
                  .done = s->now + (i->sem->kind == SEM_SEQ ? c->occupy : c->cross),
                  .warm = warm,
                  .freed_by = w->freed_by,
                  .before = w->last};
    cps_vec_push(s->run_arena, &s->rec->insn, r);
    w->last = id;
    for (unsigned out = 0; out < 2; out++) {
        for (unsigned k = 0; k < i->nop; k++) {
            rect x = opnd_rect(&i->op[k]);
            if (i->op[k].out == out)
                touch(s, &x, out, s->now, id);
        }
        for (unsigned k = 0; !out && k < i->nsc; k++) {
            rect x = opnd_rect(&i->sc[k].at);
            if (i->sc[k].mode != SC_IMM)
                touch(s, &x, false, s->now, id);
        }
    }
}

void
rec_sem_change(cps_sim *s, const event *ev, int64_t value)
{
    bool evt = ev->mode == CPS_UPDATE_EVT_SET_READ || ev->mode == CPS_UPDATE_EVT_CLR_READ;
    rec_sem r = {.t = s->now,
                 .sem = (uint16_t)(ev->a + (evt ? SEMS : 0)),
                 .from = ev->rec,
                 .value = evt ? ev->mode == CPS_UPDATE_EVT_SET_READ : value};
    s->rec->last_change[r.sem] = s->rec->sem.n;
    cps_vec_push(s->run_arena, &s->rec->sem, r);
}

/* ---- transfers ---- */

void
rec_submit(cps_sim *s, engine *e, xfer *x, cps_ps issue, cps_ps start)
{
    unsigned n = (unsigned)s->t->dma_engines;
    rec_xfer r = {.by = x->by,
                  .from = e->turn.last,
                  .before = s->rec->last_of_queue[x->b->queue],
                  .b = x->b,
                  .queue = x->b->queue,
                  .to_var = x->b->to_var,
                  .from_var = x->b->from_var,
                  .trigger = s->now,
                  .issue = issue,
                  .start = start,
                  .first = -1,
                  .bytes = x->b->bytes,
                  .ndesc = x->b->ndesc,
                  .part = cps_new_array(s->run_arena, rec_part, n)};
    for (unsigned k = 0; k < n; k++)
        r.part[k] = (rec_part){.begin = -1, .after = REC_NONE};
    x->rec = s->rec->last_of_queue[r.queue] = REC_XFER | s->rec->xfer.n;
    cps_vec_push(s->run_arena, &s->rec->xfer, r);
    for (unsigned k = 0; k < n; k++) {
        const ring *g = &x->b->ring[k];
        for (uint32_t q = 0; q < g->writes.n; q++) // taken from the trigger on
            touch(s, &g->writes.data[q], true, s->now, x->rec);
    }
}

void
rec_serve(cps_sim *s, unsigned ring_no, xfer *x, cps_ps end)
{
    rec_xfer *r = &s->rec->xfer.data[x->rec & ~REC_XFER];
    rec_part *p = &r->part[ring_no];
    if (p->begin < 0) {
        p->begin = s->now;
        if (s->now > x->at[ring_no].start)
            p->after = s->rec->last_xfer[ring_no];
        if (r->first < 0)
            r->first = s->now;
    }
    p->own += end - s->now;
    p->end = end;
    s->rec->last_xfer[ring_no] = x->rec;
}

void
rec_part_done(cps_sim *s, unsigned ring_no, xfer *x, cps_ps seen)
{
    rec_xfer *r = &s->rec->xfer.data[x->rec & ~REC_XFER];
    rec_part *p = &r->part[ring_no];
    if (p->begin < 0) {
        p->begin = p->end = s->now;
        if (s->now > x->at[ring_no].start)
            p->after = s->rec->last_xfer[ring_no];
    }
    if (seen >= r->seen) {
        r->last = s->now;
        r->seen = seen;
        r->last_ring = (uint8_t)ring_no;
    }
    if (x->left)
        return;
    for (unsigned k = 0; k < (unsigned)s->t->dma_engines; k++) {
        const ring *g = &x->b->ring[k];
        for (uint32_t q = 0; q < g->reads.n; q++)
            touch(s, &g->reads.data[q], false, s->now, x->rec);
        for (uint32_t q = 0; q < g->writes.n; q++)
            touch(s, &g->writes.data[q], true, s->now, x->rec);
    }
}

void
rec_exchange(cps_sim *s, xfer *x, cps_ps seen)
{
    rec_xfer *r = &s->rec->xfer.data[x->rec & ~REC_XFER];
    r->first = x->first;
    r->last = x->last;
    r->seen = seen;
    r->part[0] = (rec_part){.begin = x->first, .end = x->last, .own = x->last - x->first, .after = REC_NONE};
}

void
rec_let_go(cps_sim *s, uint32_t who, const cps_sim *by, uint32_t number)
{
    if (s->rec && by->rec && who != REC_NONE && number != REC_NONE)
        cps_vec_push(s->run_arena, &s->rec->link, ((rec_link){who, by->core, number}));
}

void
rec_end(cps_sim *s)
{
    settle_macs(s);
    for (unsigned psum = 0; psum < 2; psum++)
        end_lives(s, psum, 0, s->rec->ngran[psum]);
}

/* ---- for readers outside ---- */

unsigned
cps_sim_events(const cps_sim *s)
{
    return s->rec ? s->rec->insn.n + s->rec->xfer.n : 0;
}

cps_sim_event
cps_sim_event_at(const cps_sim *s, unsigned i)
{
    if (i < s->rec->insn.n) {
        const rec_insn *r = &s->rec->insn.data[i];
        return (cps_sim_event){.insn = &r->by->b,
                               .engine = (cps_engine)r->by->engine,
                               .control = r->by->sem->kind == SEM_SEQ,
                               .start = r->start,
                               .end = r->free,
                               .seen = r->done};
    }
    const rec_xfer *x = &s->rec->xfer.data[i - s->rec->insn.n];
    return (cps_sim_event){.insn = &x->by->b,
                           .engine = (cps_engine)x->by->engine,
                           .transfer = true,
                           .store = x->to_var,
                           .trigger = x->trigger,
                           .start = x->first,
                           .end = x->last,
                           .seen = x->seen};
}
