/* The run: one queue of events in picoseconds. An engine fetches in order; an instruction
 * starts when its waits are over, the engine is free, the results it needs from its own engine
 * are there, and (v2) the shared port is free. Its effect takes place when it starts; its
 * update is seen after its cross-engine latency. Ties are broken by kind, then by order of
 * creation. */
#include "runtime/sim/machine.h"

/* ---- events: a binary heap, and apart from it the turns of engines ---- */

enum { KIND_BIT = 56 };

static bool
before(const ev_place *a, const ev_place *b)
{
    return a->t != b->t ? a->t < b->t : a->rank < b->rank;
}

void
ev_push(cps_sim *s, event ev)
{
    ev_place p = {.t = ev.t, .rank = (uint64_t)ev.kind << KIND_BIT | s->order++, .at = s->events.n};
    s->next = CPS_MIN(s->next, ev.t);
    if (s->free_events.n) {
        p.at = s->free_events.data[--s->free_events.n];
        s->events.data[p.at] = ev;
    } else {
        cps_vec_push(s->run_arena, &s->events, ev);
    }
    cps_vec_push(s->run_arena, &s->heap, p);
    ev_place *h = s->heap.data;
    uint32_t i = s->heap.n - 1;
    while (i > 0 && before(&p, &h[(i - 1) / 2])) {
        h[i] = h[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    h[i] = p;
}

static event
ev_pop(cps_sim *s)
{
    ev_place *h = s->heap.data, last = h[--s->heap.n];
    uint32_t n = s->heap.n, i = 0, at = h[0].at;
    for (;;) {
        uint32_t c = 2 * i + 1;
        if (c >= n)
            break;
        if (c + 1 < n && before(&h[c + 1], &h[c]))
            c++;
        if (!before(&h[c], &last))
            break;
        h[i] = h[c];
        i = c;
    }
    if (n)
        h[i] = last;
    cps_vec_push(s->run_arena, &s->free_events, at);
    return s->events.data[at];
}

void
ev_turn(cps_sim *s, unsigned e, cps_ps t)
{
    if (s->turns[e].t != PS_NEVER) {
        ev_push(s, (event){.t = t, .kind = EV_ENGINE, .a = (uint8_t)e});
        return;
    }
    s->turns[e] = (due){t, s->order++};
    s->next = CPS_MIN(s->next, t);
}

cps_ps
run_next(const cps_sim *s)
{
    cps_ps t = s->heap.n ? s->heap.data[0].t : PS_NEVER;
    for (int e = 0; e < CPS_ENGINES; e++)
        t = CPS_MIN(t, s->turns[e].t);
    return t;
}

/* ---- checks ---- */

uint32_t
engine_epoch(const engine *e)
{
    return e->count;
}

void
check_read(cps_sim *s, const insn *i, const rect *r)
{
    int64_t at;
    if (!(s->opts.checks & CPS_CHECK_UNINIT) || i->reported & CPS_CHECK_UNINIT ||
        rect_defined(s, r, &at))
        return;
    insn *x = &s->eng[i->engine].code[i->index];
    x->reported |= CPS_CHECK_UNINIT;
    s->rep.uninit++;
    rect one = *r;
    one.lo = at;
    one.hi = at + 1;
    cps_buf b = {0};
    place_text(s, &one, &b);
    load_fail(s, i, CPS_E8304, "reads %s, which nothing has written", b.data);
    b.n = 0;
    place_text(s, r, &b);
    cps_note(s->d, CPS_NOSPAN, "the operand covers %s", b.data);
    cps_buf_fini(&b);
}

static bool
resolve_reg(cps_sim *s, engine *e, insn *i, opnd *o)
{
    if (o->reg == 0xFF)
        return true;
    uint32_t a = e->reg[o->reg % REGS];
    if ((a & 0x1FFFFFFF) != a || cps_addr_partition(a) >= LANES)
        return run_fault(s, i, CPS_E8302, "register %u holds 0x%x, which is no address", o->reg,
                         a);
    o->psum = cps_addr_is_psum(a);
    o->part = (uint8_t)cps_addr_partition(a);
    o->byte = cps_addr_byte(a);
    return true;
}

static bool
in_bounds(cps_sim *s, const insn *i, const opnd *o)
{
    if (opnd_in_memory(s, o))
        return true;
    return bounds_fault(
        s, i,
        "operand '%s' covers partitions %u..%u, bytes %lld..%lld of %s, which has %d "
        "partitions of %u bytes",
        cps_fields[o->field].name, o->part, o->part + o->rows - 1, (long long)o->byte + o->lo,
        (long long)o->byte + o->hi, o->psum ? "PSUM" : "SBUF", LANES,
        o->psum ? PSUM_BYTES : s->sbuf_bytes);
}

bool
bind_operands(cps_sim *s, engine *e, insn *i)
{
    if (i->placed)
        return true;
    bool moving = false;
    for (unsigned k = 0; k < i->nop; k++) {
        opnd *o = &i->op[k];
        moving |= o->reg != 0xFF || o->group;
        if (!resolve_reg(s, e, i, o) || (o->group && !indirect_bind(s, e, i, o)) ||
            !in_bounds(s, i, o) || (i->nextent && !extent_operand(s, i, o)))
            return false;
    }
    for (unsigned k = 0; k < i->nsc; k++) {
        scalar *c = &i->sc[k];
        moving |= c->mode == SC_REG;
        if (c->mode == SC_REG) {
            c->at.byte = e->reg[c->at.reg % REGS] & 0x3FFFF;
            c->at.part = i->op[0].part;
        }
        if (c->mode != SC_IMM && (!in_bounds(s, i, &c->at) || (i->nextent && !extent_operand(s, i, &c->at))))
            return false;
    }
    i->placed = !moving;
    i->alone = i->placed && i->sy.nwait == 0 && i->sy.nupdate == 0;
    return true;
}

/* Whether two operands share a byte. Blocks do when their bounds do. */
static bool
meets(const opnd *a, const opnd *b)
{
    int64_t at;
    if (a->psum != b->psum || a->part >= b->part + b->rows || b->part >= a->part + a->rows ||
        a->byte + a->lo >= b->byte + b->hi || b->byte + b->lo >= a->byte + a->hi)
        return false;
    if (a->flat && b->flat)
        return true;
    rect x = opnd_rect(a), y = opnd_rect(b);
    return rect_overlap(&x, &y, &at);
}

/* Earliest start that the results of the engine's own recent instructions allow. */
static cps_ps
own_results(const engine *e, const insn *i, cps_ps now)
{
    const recent *w = &e->recent;
    cps_ps t = now;
    if (w->until <= now)
        return now;
    for (unsigned r = 0; r < CPS_MIN(w->n, RECENT); r++) {
        cps_ps ready = w->ready[r];
        if (ready <= t)
            continue;
        for (unsigned k = 0; k < i->nop && ready > t; k++)
            if (!i->op[k].out && meets(&i->op[k], w->o[r]))
                t = ready;
        for (unsigned k = 0; k < i->nsc && ready > t; k++)
            if (i->sc[k].mode != SC_IMM && meets(&i->sc[k].at, w->o[r]))
                t = ready;
    }
    return t;
}

/* trn1: DVE and POOL exclude each other on SBUF, DVE and ACT on PSUM. */
static cps_ps
port_free(const cps_sim *s, const engine *e, const insn *i, cps_ps t)
{
    static const uint8_t rival[2][CPS_ENGINES] = {
        {[CPS_DVE] = CPS_POOL + 1, [CPS_POOL] = CPS_DVE + 1},
        {[CPS_DVE] = CPS_ACT + 1, [CPS_ACT] = CPS_DVE + 1},
    };
    if (s->t->sbuf_shared_port && i->sbuf_port && rival[0][e->id])
        t = CPS_MAX(t, s->port_until[0][rival[0][e->id] - 1]);
    if (s->t->psum_shared_port && i->psum_port && rival[1][e->id])
        t = CPS_MAX(t, s->port_until[1][rival[1][e->id] - 1]);
    return t;
}

static void
use_ports(cps_sim *s, const engine *e, const insn *i, cps_ps until)
{
    if (i->sbuf_port)
        s->port_until[0][e->id] = until;
    if (i->psum_port)
        s->port_until[1][e->id] = until;
}

/* ---- PE warm-up: half rate until enough work, again when it was idle too long ---- */

static cps_ps
pe_stretch(cps_sim *s, cps_ps now, cps_ps occupy)
{
    cps_ps window = s->warm_ps;
    if (window == 0 || occupy == 0)
        return 0;
    cps_ps from = now - window, busy = 0;
    unsigned keep = 0;
    for (unsigned k = 0; k < s->nbusy; k++) {
        if (s->busy[k].e <= from)
            continue;
        busy += s->busy[k].e - CPS_MAX(s->busy[k].b, from);
        s->busy[keep++] = s->busy[k];
    }
    s->nbusy = keep;
    if (s->warm && busy * 2 < window) {
        s->warm = false;
        s->warm_work = 0;
    }
    cps_ps extra = 0;
    if (!s->warm) {
        extra = occupy;
        s->warm_work += 2 * occupy;
        s->warm = s->warm_work >= window;
    }
    cps_ps end = now + occupy + extra;
    if (s->nbusy && now - s->busy[s->nbusy - 1].e < 10000)
        s->busy[s->nbusy - 1].e = end; // gaps below 10 ns count as busy
    else if (s->nbusy < cps_countof(s->busy)) {
        s->busy[s->nbusy].b = now;
        s->busy[s->nbusy++].e = end;
    }
    return extra;
}

/* ---- one instruction ---- */

static bool
run_data(cps_sim *s, engine *e, insn *i)
{
    e->count++;
    if (s->opts.no_data)
        return true;
    if (s->nstale && !i->met) {
        mem_operands(s, i);
        i->met = i->placed;
    }
    bool races = s->opts.checks & CPS_CHECK_RACES;
    bool checked = s->opts.checks & (CPS_CHECK_RACES | CPS_CHECK_UNINIT);
    for (unsigned k = 0; checked && k < i->nop && i->sem->kind != SEM_OWN; k++) {
        const opnd *o = &i->op[k];
        if (o->group) {
            indirect_access(s, e, i, o);
            continue;
        }
        rect r = opnd_rect(o);
        if (!o->out)
            check_read(s, i, &r);
        if (races)
            race_access(s, &r, o->out, i, e->vc, false);
    }
    for (unsigned k = 0; checked && k < i->nsc; k++) {
        if (i->sc[k].mode == SC_IMM)
            continue;
        rect r = opnd_rect(&i->sc[k].at);
        check_read(s, i, &r);
        if (races)
            race_access(s, &r, false, i, e->vc, false);
    }
    s->unit = e;
    if (!i->sem->exec(s, e, i))
        return false;
    for (unsigned k = 0; k < i->nop && i->sem->kind == SEM_DATA; k++) {
        if (i->op[k].out)
            mark_opnd(s, &i->op[k]);
    }
    return true;
}

static void
remember(engine *e, const insn *i, cps_ps ready)
{
    recent *w = &e->recent;
    for (unsigned k = 0; k < i->nop; k++) {
        if (!i->op[k].out)
            continue;
        unsigned r = w->n++ % RECENT;
        w->ready[r] = ready;
        w->o[r] = &i->op[k];
        if (!i->placed) { // its next execution may write elsewhere
            w->was[r] = i->op[k];
            w->o[r] = &w->was[r];
        }
        w->until = CPS_MAX(w->until, ready);
    }
}

void
probe(cps_sim *s, cps_probe_kind kind, const insn *i)
{
    if (!s->opts.probe(s->opts.probe_self, kind, s->core, (cps_engine)i->engine, i->index))
        s->fault = true;
}

/* The instruction takes effect now. `seen`: somebody records or looks. */
static inline void
start(cps_sim *s, engine *e, insn *i, bool seen)
{
    if (seen && s->opts.probe) {
        probe(s, CPS_PROBE_BEFORE, i);
        if (s->fault)
            return;
    }
    cps_cost c = i->cost;
    cps_ps extra = 0;
    if (e->id == CPS_PE && i->data) {
        extra = pe_stretch(s, s->now, c.occupy);
        c.occupy += extra;
        c.self += extra;
        c.cross += extra;
    }
    if (seen && s->rec)
        rec_start(s, e, i, &c, extra);
    if (i->sy.nwait)
        sync_pass(s, e, i);
    e->passed = false;
    e->pc++;
    e->free = s->now + c.occupy;
    s->rep.instructions[e->id]++;
    s->rep.cycles[e->id] += c.cycles;
    if (i->data)
        s->rep.busy_ps[e->id] += c.occupy;
    if (!s->have_begin && (i->data || cps_insns[i->id].timing == CPS_TC_DMA)) {
        s->have_begin = true;
        s->begin = s->now;
    }
    if (!(i->data ? run_data(s, e, i) : i->sem->exec(s, e, i))) {
        s->fault = true;
        return;
    }
    // Completion is in order: an update on a control instruction follows what ran before it.
    e->complete = CPS_MAX(e->complete, s->now + (i->data ? c.cross : c.occupy));
    s->end = CPS_MAX(s->end, e->complete);
    if (i->data) {
        if (e->id != CPS_PE) // whose operands come from other engines
            remember(e, i, s->now + c.self);
        use_ports(s, e, i, s->now + c.occupy);
    }
    if (i->sy.nupdate)
        sync_updates(s, e, i, s->now + c.occupy, e->complete);
    if (seen && s->opts.probe)
        probe(s, CPS_PROBE_AFTER, i);
}

/* Whether the engine may go on at time t at once: nothing else happens before or at it. Else
 * its turn comes with the other events. */
static inline bool
goes_on(cps_sim *s, const engine *e, cps_ps t)
{
    if (s->next > t && t < s->horizon) {
        s->now = t;
        return true;
    }
    ev_turn(s, e->id, t);
    return false;
}

/* Whether the waits of the instruction at pc are over. */
static bool
waits_over(cps_sim *s, engine *e, const insn *i)
{
    for (unsigned w = 0; w < i->sy.nwait; w++) {
        if (!sync_ready(s, e, i, w)) {
            e->blocked = true;
            e->resume = e->resume < 0 ? s->now : e->resume;
            return false;
        }
    }
    return true;
}

/* For time alone: what stands next in the stream and is of the datapath, waits for nothing and tells
 * nobody, as far as nothing else happens in between. Decides what step and start decide, and
 * writes down at the end what it added up. False when the engine's turn is over. */
static bool
glide(cps_sim *s, engine *e)
{
    const cps_ps limit = CPS_MIN(s->next, s->horizon);
    const bool pe = e->id == CPS_PE, ports = s->t->sbuf_shared_port || s->t->psum_shared_port;
    const uint64_t most = CPS_MIN(s->opts.max_steps - s->steps, e->n - e->pc);
    cps_ps now = s->now, again = PS_NEVER, complete = e->complete, busy = 0;
    int64_t cycles = 0;
    insn *i = &e->code[e->pc];
    uint32_t n = 0;
    for (; n < most && i->alone; n++, i++) {
        __builtin_prefetch((const char *)(i + 1));
        __builtin_prefetch((const char *)(i + 1) + 64);
        cps_ps t = CPS_MAX(now, e->free);
        if (!pe)
            t = own_results(e, i, t);
        if (ports)
            t = port_free(s, e, i, t);
        if (t > now && t >= limit) {
            again = t;
            break;
        }
        now = t;
        cps_ps extra = pe ? pe_stretch(s, now, i->cost.occupy) : 0;
        e->free = now + i->cost.occupy + extra;
        cycles += i->cost.cycles;
        busy += i->cost.occupy + extra;
        complete = CPS_MAX(complete, now + i->cost.cross + extra);
        if (!pe)
            remember(e, i, now + i->cost.self);
        if (ports)
            use_ports(s, e, i, e->free);
        again = CPS_MAX(e->free, now);
        if (again >= limit) {
            n++;
            break;
        }
        now = again;
        again = PS_NEVER;
    }
    e->pc += n;
    e->passed &= n == 0;
    e->count += n;
    e->complete = complete;
    s->now = now;
    s->steps += n;
    s->end = CPS_MAX(s->end, complete);
    s->rep.instructions[e->id] += n;
    s->rep.cycles[e->id] += cycles;
    s->rep.busy_ps[e->id] += busy;
    if (again != PS_NEVER)
        ev_turn(s, e->id, again);
    return again == PS_NEVER;
}

/* The turn of an engine: it goes on by itself as long as nothing else happens in between. */
static void
step(cps_sim *s, engine *e)
{
    const bool seen = s->rec || s->opts.probe, time_only = s->opts.no_data && !seen;
    while (!e->halted && !e->blocked && !e->held && !s->fault) {
        if (e->pc >= e->n) {
            e->halted = true;
            return;
        }
        insn *i = &e->code[e->pc];
        if (time_only && i->alone && s->have_begin) {
            if (!glide(s, e))
                return;
            if (e->pc >= e->n)
                continue;
            i = &e->code[e->pc];
        }
        if (!e->passed) {
            if (i->sy.nwait && !waits_over(s, e, i))
                return;
            e->passed = true;
            if (s->rec)
                rec_passed(s, e, i);
            e->resume = -1;
        }
        cps_ps t = CPS_MAX(s->now, e->free), own = t;
        if (i->data) {
            if (!i->placed && !bind_operands(s, e, i))
                return;
            if (e->id != CPS_PE)
                own = t = own_results(e, i, t);
            t = port_free(s, e, i, t);
        }
        if (t > s->now) {
            if (s->rec)
                rec_held(s, e, own);
            if (!goes_on(s, e, t))
                return;
        }
        if (s->steps++ >= s->opts.max_steps) {
            run_fault(s, i, CPS_E8306, "%llu instructions fetched",
                      (unsigned long long)s->opts.max_steps);
            return;
        }
        start(s, e, i, seen);
        if (!goes_on(s, e, CPS_MAX(e->free, s->now)))
            return;
    }
}

/* ---- the run ---- */

static bool
run_reset(cps_sim *s)
{
    for (uint32_t i = 1; i < s->vars.n && !s->opts.no_data; i++) {
        if (!s->vars.data[i].bound)
            return load_fail(s, NULL, CPS_E8204, "'%s' (%lld bytes) is not bound",
                             s->vars.data[i].v->name, (long long)s->vars.data[i].v->bytes);
    }
    cps_arena_destroy(s->run_arena);
    s->run_arena = cps_arena_create();
    memset(&s->heap, 0, sizeof s->heap);
    memset(&s->events, 0, sizeof s->events);
    memset(&s->free_events, 0, sizeof s->free_events);
    for (int e = 0; e < CPS_ENGINES; e++)
        s->turns[e].t = PS_NEVER;
    s->next = PS_NEVER;
    s->sem_ps = ns_ps(s->t->sync_semaphore_ns);
    s->warm_ps = ns_ps(s->t->pe_warm_ns);
    memset(&s->posts, 0, sizeof s->posts);
    s->rec = NULL;
    memset(&s->rep, 0, sizeof s->rep);
    memset(s->dma, 0, sizeof s->dma);
    memset(s->port_until, 0, sizeof s->port_until);
    s->order = s->steps = 0;
    s->now = s->end = s->begin = 0;
    s->fault = s->have_begin = s->warm = false;
    s->warm_work = 0;
    s->nbusy = 0;
    s->dma_busy = 0;
    s->join = (barrier){.arrived = 0};
    if (!s->opts.no_data)
        mem_reset(s);
    if (!s->group) {
        s->vc0 = 0;
        s->nclock = 2 * CPS_ENGINES + s->queues.n;
    }
    sync_reset(s);
    race_reset(s);
    uint32_t *zero = cps_new_array(s->run_arena, uint32_t, s->nclock);
    for (int k = 0; k < CPS_ENGINES; k++) {
        engine *e = &s->eng[k];
        e->halted = e->n == 0;
        e->blocked = e->passed = e->held = false;
        e->depth = 0;
        e->pc = e->count = e->recent.n = 0;
        e->free = e->complete = e->recent.until = 0;
        e->resume = -1;
        e->vc = zero;
        e->table = -1;
        memset(e->reg, 0, sizeof e->reg);
        memset(e->acc, 0, sizeof e->acc);
        memset(e->key, 0, sizeof e->key);
        for (unsigned l = 0; l < 32; l++)
            e->mask[l] = (uint8_t)l;
        memset(e->found, 0xFF, sizeof e->found);
        memset(e->preset, 0, sizeof e->preset);
        memset(e->bn, 0, sizeof e->bn);
        rand_begin(e, s->opts.seed);
        for (uint32_t i = 0; i < e->n; i++) {
            e->code[i].reported = 0;
            e->code[i].met = false;
        }
        if (!e->halted)
            ev_turn(s, (unsigned)k, 0);
    }
    for (uint32_t i = 0; i < s->queues.n; i++) {
        queue *q = &s->queues.data[i];
        *q = (queue){.name = q->name, .owner = q->owner, .vc = zero};
    }
    if (s->opts.trace)
        rec_begin(s);
    return true;
}

bool
run_begin(cps_sim *s, const cps_sim_opts *o, cps_diags *d)
{
    s->d = d;
    s->opts = o ? *o : (cps_sim_opts){.checks = CPS_CHECK_ALL};
    s->opts.no_data |= s->timer;
    if (s->opts.no_data)
        s->opts.checks = 0;
    if (s->opts.max_steps == 0)
        s->opts.max_steps = (uint64_t)1
                            << 28; // minutes of simulation: a stream that never ends
    cps_assert(s->k != NULL);
    return run_reset(s);
}

/* The earliest event takes place: among those of one time an engine's turn comes last. False when there
 * is none. */
bool
run_event(cps_sim *s)
{
    unsigned first = 0;
    const ev_place *h = s->heap.n ? &s->heap.data[0] : NULL;
    cps_ps other = h ? h->t : PS_NEVER;
    for (unsigned e = 1; e < CPS_ENGINES; e++) {
        const due *a = &s->turns[e], *b = &s->turns[first];
        bool sooner = a->t < b->t || (a->t == b->t && a->order < b->order);
        other = CPS_MIN(other, sooner ? b->t : a->t);
        first = sooner ? e : first;
    }
    const due *t = &s->turns[first];
    if (!h && t->t == PS_NEVER)
        return false;
    if (!h || h->t > t->t || (h->t == t->t && h->rank > ((uint64_t)EV_ENGINE << KIND_BIT | t->order))) {
        s->now = t->t;
        s->next = other;
        s->turns[first].t = PS_NEVER;
        step(s, &s->eng[first]);
        return true;
    }
    event ev = ev_pop(s);
    s->now = ev.t;
    switch ((ev_kind)ev.kind) {
    case EV_SEM:
        sync_apply(s, &ev);
        break;
    case EV_DMA_DONE:
        dma_done(s, ev.a, ev.x);
        break;
    case EV_CC:
        cc_done(s, ev.x);
        break;
    case EV_DMA_START:
        dma_started(s, ev.a);
        break;
    case EV_ENGINE:
        s->next = run_next(s);
        step(s, &s->eng[ev.a]);
        break;
    }
    return true;
}

bool
run_stuck(const cps_sim *s)
{
    bool stuck = s->posts.n > 0; // an exchange that nobody joined
    for (int e = 0; e < CPS_ENGINES; e++)
        stuck |= s->eng[e].blocked || s->eng[e].held;
    return stuck;
}

bool
run_finish(cps_sim *s, cps_sim_report *out)
{
    if (s->rec)
        rec_end(s);
    mem_settle(s); // for whoever looks
    s->wide->fence();
    s->rep.time_ps = s->end - s->begin;
    if (out)
        *out = s->rep;
    s->d = NULL;
    bool found = (s->opts.checks & CPS_CHECK_RACES && s->rep.races) ||
                 (s->opts.checks & CPS_CHECK_UNINIT && s->rep.uninit);
    return !s->fault && !found;
}

bool
cps_sim_run(cps_sim *s, const cps_sim_opts *o, cps_sim_report *out, cps_diags *d)
{
    if (!run_begin(s, o, d)) {
        s->d = NULL;
        return false;
    }
    while (!s->fault && run_event(s)) {
    }
    if (!s->fault && run_stuck(s)) {
        s->fault = true;
        sync_deadlock(s);
    }
    return run_finish(s, out);
}
