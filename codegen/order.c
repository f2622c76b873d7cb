/* Order: afterwards the list is the issue order, and per engine the order of its stream.
 *
 * In: a program with engines and places. Out: the same instructions, possibly in another order
 * that keeps every dependence by physical address (so also the reuse of slots and of memory),
 * the order of matmuls into one PSUM bank, of those that share a running accumulator, and what
 * `after` says. Control flow cuts the program into runs; nothing moves across it.
 *
 * The scheduler is a list scheduler in simulated time. Each engine looks at its next
 * instructions in the order written and takes the first that could start without a wait, else
 * the one that could start soonest; ties keep the order written. So an engine that would stand
 * still works ahead, and one that is busy follows the source. Costs are those of the ISA room;
 * transfers share one memory pipe. Times steer the order only: a wrong estimate costs time,
 * never correctness. */
#include "codegen/deps.h"
#include "codegen/select.h"

#include <stdlib.h>

#define WINDOW 48 /* instructions an engine looks ahead */
#define BANKS 32
#define GUESSES 4 /* of them, how many are judged before what they wait for has its time */

typedef struct job {
    // What those that wait for it look at, over and over: half of a line of the cache.
    cps_ps ready;  // when all it waits for is visible; grows as those are placed
    cps_ps guess;  // when it could start at best, as seen last: only ever later
    cps_ps length; // until others see the result, at best
    uint32_t inst;
    uint8_t engine;
    bool dma, store, done;
    uint8_t ports; // bit per port that it takes
    cps_ps occupy; // the engine, or the queue of a transfer
    cps_ps cross, self, bytes_ps;
    cps_ps own;         // when results of its own engine are there (replays)
    uint32_t missing;   // dependences not placed yet
    uint32_t out, nout; // jobs that wait for it, in `outs`
    uint32_t in, nin;   // jobs it waits for, in `ins`
} job;

typedef struct order {
    cps_cg *g;
    cps_sel sel; // for addresses of views
    cps_mprog p; // one operation per job
    cps_deps *deps;
    job *jobs;
    uint32_t n;
    cps_ps free[CPS_ENGINES]; // when each engine is
    cps_oplist ins;
    uint32_t *outs;
} order;

static bool
labels(cps_cg *g)
{
    cps_map seen;
    cps_map_init(&seen, g->arena);
    for (uint32_t i = 0; i < g->f->insts.n; i++) {
        const cps_tinst *x = &g->f->insts.data[i];
        if (x->after && !cps_map_find(&seen, x->after)) {
            cps_error(g->d, CPS_E6201, x->loc,
                      "'%s' must follow a label that does not come before it",
                      cps_tops[x->op].name);
            return false;
        }
        if (x->label)
            *cps_map_at(&seen, x->label, NULL) = i;
    }
    return true;
}

// What dependence finding needs to know of memory: one variable per buffer.
static void
memory(order *o)
{
    const cps_tfunc *f = o->g->f;
    o->sel.g = o->g;
    o->sel.var = cps_new_array(o->g->arena, uint32_t, f->bufs.n);
    o->p.k = cps_kbin_new(o->g->arena, "order", o->g->t->name, o->g->t->gen);
    for (uint32_t i = 1; i < f->bufs.n; i++) {
        const cps_tbuf *b = &f->bufs.data[i];
        cps_kvar v = {.kind = CPS_VAR_DATA};
        if (b->space == CPS_HBM) {
            v.bytes = cps_tbuf_bytes(b);
            v.kind = b->role == CPS_IN || b->role == CPS_DATA ? CPS_VAR_DATA : CPS_VAR_TMP;
        }
        o->sel.var[i] = i;
        cps_vec_push(o->g->arena, &o->p.k->vars, v);
    }
    o->deps = cps_deps_new(o->g->arena, &o->p, o->g->t);
}

static void
touch(order *o, const cps_toper *t, bool write)
{
    if (t->kind != CPS_TO_VIEW)
        return;
    const cps_tview *v = &o->g->f->views.data[t->id];
    cps_mop *m = &o->p.ops.data[o->p.ops.n - 1];
    cps_macc a;
    cps_sel_access(&o->sel, v, write, &a);
    cps_vec_push(o->g->arena, &o->p.accs, a);
    m->nacc++;
    if (v->index) {
        cps_sel_access(&o->sel, &o->g->f->views.data[v->index - 1], false, &a);
        cps_vec_push(o->g->arena, &o->p.accs, a);
        m->nacc++;
    }
}

static cps_ps
ns(double v)
{
    return (cps_ps)(v * 1000.0);
}

// v2: DVE shares its way to SBUF with POOL, and its way to PSUM with ACT.
enum { PORT_SBUF, PORT_PSUM, PORTS };
static const uint8_t port_rival[PORTS] = {CPS_POOL, CPS_ACT};

// Ports that the last operation takes on its engine.
static uint8_t
ports_of(const order *o, unsigned engine)
{
    const cps_mop *m = &o->p.ops.data[o->p.ops.n - 1];
    const bool shared[PORTS] = {o->g->t->sbuf_shared_port, o->g->t->psum_shared_port};
    uint8_t ports = 0;
    for (uint32_t k = 0; k < m->nacc; k++) {
        cps_space s = o->p.accs.data[m->acc + k].space;
        int p = s == CPS_SBUF ? PORT_SBUF : s == CPS_PSUM ? PORT_PSUM : PORTS;
        if (p < PORTS && shared[p] && (engine == CPS_DVE || engine == port_rival[p]))
            ports |= (uint8_t)(1u << p);
    }
    return ports;
}

static void
unit_cost(order *o, const cps_tinst *x, job *j)
{
    cps_cost c;
    cps_tile_cost(o->g, x, (cps_engine)x->engine, &c);
    j->occupy = c.occupy;
    j->cross = CPS_MAX(c.cross, j->occupy);
    j->self = c.self;
    j->length = j->cross + ns(o->g->t->sync_semaphore_ns);
}

static void
dma_cost(order *o, const cps_tinst *x, job *j)
{
    const cps_tfunc *f = o->g->f;
    const cps_tview *src = &f->views.data[x->in[0].id], *dst = &f->views.data[x->out[0].id];
    const cps_tview *v = src->parts ? src : dst;
    double bytes =
        (double)cps_tview_elems(v) * (v->parts ? v->parts : 1) * cps_dtype_bytes(v->dtype);
    double rate = o->g->t->hbm_core_bytes_per_ns > 0 ? o->g->t->hbm_core_bytes_per_ns : 100;
    j->dma = true;
    j->store = f->bufs.data[dst->buf].space == CPS_HBM;
    j->bytes_ps = ns(bytes / rate);
    const cps_target *t = o->g->t;
    j->occupy = CPS_MAX(ns(t->dma_issue_ns), j->bytes_ps);
    j->length = ns(t->dma_start_ns) + j->bytes_ps +
                ns(j->store ? t->dma_store_ack_ns : t->dma_receipt_ns);
}

// All links of a job are made before those of the next.
static void
link_jobs(order *o, uint32_t before, uint32_t after)
{
    cps_vec_push(o->g->arena, &o->ins, before);
    o->jobs[before].nout++;
    o->jobs[after].nin++;
    o->jobs[after].missing++;
}

// The links the other way round.
static void
turn_links(order *o)
{
    o->outs = cps_arena_raw(o->g->arena, o->ins.n * sizeof *o->outs);
    uint32_t sum = 0;
    for (uint32_t i = 0; i < o->n; i++) {
        o->jobs[i].out = sum;
        sum += o->jobs[i].nout;
        o->jobs[i].nout = 0;
    }
    for (uint32_t i = 0; i < o->n; i++)
        for (uint32_t k = 0; k < o->jobs[i].nin; k++) {
            job *w = &o->jobs[o->ins.data[o->jobs[i].in + k]];
            o->outs[w->out + w->nout++] = i;
        }
}

static bool
accumulates(const cps_tinst *x)
{
    return x->nout > 1 || cps_tinst_get(x, CPS_TA_ACC, 0);
}

// PSUM banks that the last operation writes. Groups of one bank must not interleave: the start
// of one clears the accumulation state of the whole bank.
static uint32_t
banks_of(const order *o)
{
    const cps_mop *m = &o->p.ops.data[o->p.ops.n - 1];
    uint32_t banks = 0;
    for (uint32_t k = 0; k < m->nacc; k++) {
        const cps_macc *a = &o->p.accs.data[m->acc + k];
        int64_t end = a->base + a->run;
        for (int i = 0; i < a->nd; i++)
            end += a->d[i].step * (a->d[i].num - 1);
        if (a->space == CPS_PSUM && a->write)
            for (int64_t b = a->base / CPS_PSUM_BANK; b <= (end - 1) / CPS_PSUM_BANK; b++)
                banks |= 1u << (b % BANKS);
    }
    return banks;
}

// Jobs and dependences of instructions [from, to).
static void
build(order *o, uint32_t from, uint32_t to)
{
    cps_map where;
    cps_map_init(&where, o->g->arena);
    cps_oplist found = {0};
    uint32_t last_bank[BANKS], last_acc[CPS_ENGINES];
    memset(last_bank, 0xff, sizeof last_bank);
    memset(last_acc, 0xff, sizeof last_acc);
    o->n = to - from;
    o->jobs = cps_new_array(o->g->arena, job, o->n);
    o->p.ops.n = o->p.accs.n = o->ins.n = 0;
    cps_deps_clear(o->deps);
    for (uint32_t i = 0; i < o->n; i++) {
        const cps_tinst *x = &o->g->f->insts.data[from + i];
        job *j = &o->jobs[i];
        j->inst = from + i;
        j->engine = x->engine;
        j->in = o->ins.n;
        // No operation counts as in order here: order is what is being made.
        cps_mop m = {.kind = CPS_M_DMA, .engine = x->engine, .acc = o->p.accs.n};
        cps_vec_push(o->g->arena, &o->p.ops, m);
        for (int k = 0; k < x->nin; k++)
            touch(o, &x->in[k], false);
        for (int k = 0; k < x->nout; k++)
            touch(o, &x->out[k], true);
        if (x->op == CPS_T_DMA || x->op == CPS_T_DMA_TRANSPOSE)
            dma_cost(o, x, j);
        else
            unit_cost(o, x, j);
        j->ports = j->dma ? 0 : ports_of(o, x->engine);
        found.n = 0;
        cps_deps_find(o->deps, i, &found);
        for (uint32_t k = 0; k < found.n; k++)
            link_jobs(o, found.data[k], i);
        uint32_t banks = x->engine == CPS_PE ? banks_of(o) : 0;
        for (; banks; banks &= banks - 1) {
            int k = __builtin_ctz(banks);
            if (last_bank[k] != UINT32_MAX)
                link_jobs(o, last_bank[k], i);
            last_bank[k] = i;
        }
        if (accumulates(x)) {
            if (last_acc[x->engine] != UINT32_MAX)
                link_jobs(o, last_acc[x->engine], i);
            last_acc[x->engine] = i;
        }
        const uint64_t *at = x->after ? cps_map_find(&where, x->after) : NULL;
        if (at)
            link_jobs(o, (uint32_t)*at, i);
        if (x->label)
            *cps_map_at(&where, x->label, NULL) = i;
    }
    turn_links(o);
}

typedef struct lane {
    CPS_VEC(uint32_t) jobs; // of one engine, in the order written
    uint32_t head;          // first not placed
    uint32_t next[WINDOW];  // the first that are not placed, in order
    uint32_t seen, behind;  // how many, and the first job behind them
    uint64_t free_jobs;     // bit per job of `next` that waits for nobody
    cps_ps free;            // the engine
    cps_ps port[PORTS];     // until when it holds a shared port
    cps_ps queue;           // what starts its transfers
    bool stale;             // the choice below must be made again
    bool some;
    uint32_t best;
    cps_ps when;
} lane;

// The earliest moment from `at` on when nobody else holds a port the job needs.
static cps_ps
port_free(const lane *lanes, const job *j, cps_ps at)
{
    for (int p = 0; p < PORTS; p++)
        if (j->ports >> p & 1)
            at = CPS_MAX(at, lanes[j->engine == CPS_DVE ? port_rival[p] : CPS_DVE].port[p]);
    return at;
}

// When a job could start. Of what it waits for and is not placed yet, at best: each starts as
// soon as its engine is free, and not before it was last seen that it could.
static cps_ps
earliest(const order *o, const lane *lanes, job *j)
{
    cps_ps at = CPS_MAX(lanes[j->engine].free, j->ready);
    if (j->dma)
        at = CPS_MAX(at, lanes[j->engine].queue);
    uint32_t *ins = &o->ins.data[j->in];
    for (uint32_t i = 0; j->missing && i < j->nin;) {
        const job *w = &o->jobs[ins[i]];
        if (w->done) { // not to be looked at again
            ins[i] = ins[--j->nin];
            continue;
        }
        at = CPS_MAX(at, CPS_MAX(o->free[w->engine], CPS_MAX(w->ready, w->guess)) + w->length);
        i++;
    }
    return port_free(lanes, j, at);
}

static void
fill_window(const order *o, lane *l)
{
    while (l->seen < WINDOW && l->behind < l->jobs.n) {
        l->next[l->seen] = l->jobs.data[l->behind++];
        if (o->jobs[l->next[l->seen]].done) // by a wider window (choose_ahead)
            continue;
        l->free_jobs |= (uint64_t)!o->jobs[l->next[l->seen]].missing << l->seen;
        l->seen++;
    }
}

// Its last dependence was placed.
static void
set_free(lane *l, uint32_t j)
{
    for (uint32_t i = 0; i < l->seen; i++)
        if (l->next[i] == j)
            l->free_jobs |= 1ull << i;
}

static void
leave_window(const order *o, lane *l, uint32_t j)
{
    uint32_t i = 0;
    while (i < l->seen && l->next[i] != j)
        i++;
    if (i == l->seen)
        return;
    uint64_t before = (1ull << i) - 1;
    l->free_jobs = (l->free_jobs & before) | (l->free_jobs >> 1 & ~before);
    l->seen--;
    memmove(&l->next[i], &l->next[i + 1], (l->seen - i) * sizeof *l->next);
    fill_window(o, l);
}

// Jobs to judge: those that wait for nobody, and the first few others.
static uint64_t
worth_a_look(const lane *l)
{
    uint64_t open = ~l->free_jobs & ((1ull << l->seen) - 1), guesses = 0;
    for (int k = 0; k < GUESSES && open; k++, open &= open - 1)
        guesses |= open & -open;
    return l->free_jobs | guesses;
}

// The job the lane takes next and when it starts, if one can be placed. A later job overtakes
// only where it fills a gap: at least half of it must fit.
static void
choose(const order *o, const lane *lanes, lane *l)
{
    cps_ps gap_end = INT64_MAX; // where the first of those passed over would start
    l->some = l->stale = false;
    for (uint64_t look = worth_a_look(l); look; look &= look - 1) {
        uint32_t id = l->next[__builtin_ctzll(look)];
        job *j = &o->jobs[id];
        cps_ps at = earliest(o, lanes, j);
        j->guess = at;
        if (!j->missing && (!l->some || at < l->when) &&
            (gap_end == INT64_MAX || at + j->occupy / 2 <= gap_end)) {
            l->some = true;
            l->best = id;
            l->when = at;
            if (at <= l->free)
                break; // no wait: the first such is the one
        }
        gap_end = CPS_MIN(gap_end, at);
    }
}

// Another compiler's scheduler, for replays of what it made: the first of the next instructions
// that no other engine holds up, even if it must stall for its own engine's last result; when
// all are held up, the one let go first. Transfers keep the order written. Published kernels
// fit a look-ahead of 32 to 64, and their dependent vector instructions stand back to back.
static void
choose_ahead(const order *o, const lane *lanes, lane *l)
{
    uint32_t seen = 0;
    cps_ps best = 0;
    l->some = l->stale = false;
    for (uint32_t i = l->head; i < l->jobs.n && seen < o->g->o.lookahead; i++) {
        const job *j = &o->jobs[l->jobs.data[i]];
        if (j->done)
            continue;
        seen++;
        if (j->missing == 0) {
            cps_ps at = port_free(lanes, j, CPS_MAX(l->free, j->ready));
            if (!l->some || at < best) {
                l->some = true;
                l->best = l->jobs.data[i];
                best = at;
                l->when = CPS_MAX(at, j->own);
            }
            if (at <= l->free)
                return;
        }
        if (j->dma)
            return;
    }
}

static void
place_job(order *o, lane *lanes, lane *l, cps_ps *pipe)
{
    cps_ps when = l->when;
    const cps_target *t = o->g->t;
    job *j = &o->jobs[l->best];
    cps_ps visible;
    j->done = true;
    o->free[j->engine] = l->free = when + (j->dma ? ns(t->sp_issue_ns) : j->occupy);
    if (j->dma) {
        cps_ps issue = CPS_MAX(when, l->queue);
        l->queue = issue + ns(t->dma_issue_ns);
        cps_ps start = CPS_MAX(issue + ns(t->dma_start_ns), *pipe);
        *pipe = start + j->bytes_ps;
        visible = *pipe + ns(j->store ? t->dma_store_ack_ns : t->dma_receipt_ns);
    } else {
        visible = when + j->cross + ns(t->sync_semaphore_ns);
    }
    for (uint32_t k = 0; k < j->nout; k++) {
        job *w = &o->jobs[o->outs[j->out + k]];
        // In the datapath of one engine a result is there when its turn comes.
        bool same = w->engine == j->engine && !w->dma && !j->dma;
        if (same)
            w->own = CPS_MAX(w->own, when + j->self);
        w->ready = CPS_MAX(w->ready, same ? when + j->occupy : visible);
        if (--w->missing == 0)
            set_free(&lanes[w->engine], o->outs[j->out + k]);
        lanes[w->engine].stale = true;
    }
    for (int p = 0; p < PORTS; p++)
        if (j->ports >> p & 1) {
            l->port[p] = when + j->occupy;
            lanes[j->engine == CPS_DVE ? port_rival[p] : CPS_DVE].stale = true;
        }
    l->stale = true;
    leave_window(o, l, l->best);
    while (l->head < l->jobs.n && o->jobs[l->jobs.data[l->head]].done)
        l->head++;
}

static void
schedule(order *o, uint32_t from, uint32_t to)
{
    build(o, from, to);
    lane lanes[CPS_ENGINES] = {0};
    memset(o->free, 0, sizeof o->free);
    for (uint32_t i = 0; i < o->n; i++)
        cps_vec_push(o->g->arena, &lanes[o->jobs[i].engine].jobs, i);
    for (int e = 0; e < CPS_ENGINES; e++) {
        lanes[e].stale = true;
        fill_window(o, &lanes[e]);
    }
    cps_tinst *list = cps_new_array(o->g->arena, cps_tinst, o->n);
    cps_ps pipe = 0;
    for (uint32_t n = 0; n < o->n; n++) {
        // The engine whose next job starts first goes on; so time never runs back.
        lane *l = NULL;
        for (int e = 0; e < CPS_ENGINES; e++) {
            if (lanes[e].stale)
                o->g->o.lookahead ? choose_ahead(o, lanes, &lanes[e])
                                  : choose(o, lanes, &lanes[e]);
            if (lanes[e].some && (!l || lanes[e].when < l->when))
                l = &lanes[e];
        }
        cps_assert(l);
        list[n] = o->g->f->insts.data[o->jobs[l->best].inst];
        place_job(o, lanes, l, &pipe);
    }
    memcpy(&o->g->f->insts.data[from], list, o->n * sizeof *list);
}

static bool
in_order(cps_cg *g)
{
    if (!labels(g))
        return false;
    cps_moves_alone(g->f, g->arena);
    if (g->o.keep_order)
        return true;
    order o = {.g = g};
    memory(&o);
    cps_vec_reserve(g->arena, &o.p.ops, g->f->insts.n);
    cps_vec_reserve(g->arena, &o.p.accs, 3 * g->f->insts.n);
    uint32_t from = 0;
    for (uint32_t i = 0; i <= g->f->insts.n; i++) {
        if (i < g->f->insts.n && cps_lower[g->f->insts.data[i].op].shape != CPS_SHAPE_SEQ)
            continue;
        if (i - from > 1)
            schedule(&o, from, i);
        from = i + 1;
    }
    return true;
}

bool
cps_pass_order(cps_cg *g)
{
    cps_arena *whole = g->arena; // jobs and links, much more than the list itself, go with the pass
    g->arena = cps_arena_create();
    bool ok = in_order(g);
    cps_arena_destroy(g->arena);
    g->arena = whole;
    return ok;
}
