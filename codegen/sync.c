/* Synchronisation: afterwards every dependence between engines and transfers is covered.
 *
 * Engines run their streams in order and at the same time. Operations of one datapath complete
 * in order, so a dependence inside an engine needs nothing. Every engine has one semaphore that
 * rises by one at the completion of each operation that somebody waits for; who waits, waits
 * for the count of those. A transfer completes on its own: it has a semaphore of its own out of
 * a rotating set, which rises by 16, and its number of uses gives the threshold. Transfers also
 * wait for datapath operations of the engine that starts them: starting is in order, reading is
 * not.
 *
 * What is known. Each engine carries a clock: for every engine and every queue the latest
 * operation known to be complete. Waiting for an operation brings all its engine knew when it
 * started, and everything before it in its engine's datapath or in its queue: all 16 DMA
 * engines take the transfers of a queue in order, and a transfer is complete when all have
 * signalled (NKI DMA guide). A dependence that is already known costs nothing; the latest is
 * waited for first, since it tends to bring the others.
 *
 * Reuse. A transfer semaphore is used again only by a transfer whose starting engine knows that
 * the last use is complete; when there is none and none is free, the engine waits for the
 * oldest. So the count never runs ahead of the threshold, and a late reader of an old threshold
 * still sees at least that.
 *
 * No deadlock. Every wait is for an operation that comes earlier in program order, and every
 * stream is in program order. The earliest unfinished operation of the program therefore waits
 * only for finished ones, and runs. Barriers keep this: all engines meet, in program order.
 *
 * A barrier (around loops and branches) lets every engine drain, SP wait for all transfers and
 * for the other engines and set the semaphores to 0 before everybody goes on. After it the
 * clocks start again; counts inside a loop's body are those of one iteration. A core barrier is one in
 * which SP, knowing that its own core is complete, meets SP of the other core.
 *
 * Semaphores are taken to be 0 when the kernel starts (the runtime clears them between loads).
 */
#include "codegen/deps.h"
#include "codegen/notes.h"

#include <stdlib.h>

#define RISE 16 /* by which a transfer's semaphore rises (NKI DMA guide: one per DMA engine)   \
                 */
#define SEMS 256

typedef struct clock_ {
    uint32_t unit[CPS_ENGINES]; // operations known complete, by 1-based number in the engine
    uint32_t queue[CPS_QUEUES]; // transfers known complete, by 1-based number in the queue
} clock_;

// What sync knows about one operation.
typedef struct node {
    const clock_ *knew; // when it started
    uint32_t number;    // 1-based in its engine's datapath or in its queue, in this section
    uint32_t rank;      // datapath: signals of the engine up to and with this one
    uint32_t raw, nraw; // waits: operations, in `raws`
    uint32_t use;       // transfer: which use of its semaphore
    uint8_t sem;
} node;

typedef struct sync {
    cps_cg *g;
    cps_mprog *p;
    cps_deps *deps;
    node *nodes;
    CPS_VEC(uint32_t) raws;
    const clock_ *now[CPS_ENGINES];
    uint32_t from; // first operation of the section
    uint32_t count[CPS_ENGINES], signals[CPS_ENGINES], transfers[CPS_QUEUES];
    unsigned go, ack, base, arrive, first, limit; // semaphore numbers
    unsigned used;                                // one past the highest
    unsigned meet;                                // of core barriers, when there are any
    uint8_t meetings;                             // core barriers so far
    uint32_t uses[SEMS];
    uint32_t last[SEMS]; // latest transfer on a semaphore
    cps_oplist found;
    CPS_VEC(cps_mop) out; // the final list
} sync;

static bool
known(const sync *s, cps_engine e, uint32_t op)
{
    const cps_mop *m = &s->p->ops.data[op];
    const node *n = &s->nodes[op];
    if (m->kind == CPS_M_DMA)
        return s->now[e]->queue[m->queue] >= n->number;
    return s->now[e]->unit[m->engine] >= n->number;
}

// Engine `e` waits for `op` and learns what that implies.
static void
wait_for(sync *s, cps_engine e, uint32_t op, node *who)
{
    cps_mop *m = &s->p->ops.data[op];
    const node *n = &s->nodes[op];
    cps_vec_push(s->g->arena, &s->raws, op);
    who->nraw++;
    clock_ *c = cps_arena_raw(s->g->arena, sizeof *c);
    *c = *s->now[e];
    for (int i = 0; i < CPS_ENGINES; i++)
        c->unit[i] = CPS_MAX(c->unit[i], n->knew->unit[i]);
    for (int i = 0; i < CPS_QUEUES; i++)
        c->queue[i] = CPS_MAX(c->queue[i], n->knew->queue[i]);
    if (m->kind == CPS_M_DMA) {
        c->queue[m->queue] = CPS_MAX(c->queue[m->queue], n->number);
    } else {
        c->unit[m->engine] = CPS_MAX(c->unit[m->engine], n->number);
        m->signal = true;
    }
    s->now[e] = c;
}

static int
latest_first(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x > y ? -1 : x < y;
}

// Waits for everything in `found` that is not known yet.
static void
wait_all(sync *s, const cps_mop *m, node *who)
{
    if (s->found.n > 1)
        qsort(s->found.data, s->found.n, sizeof(uint32_t), latest_first);
    for (uint32_t i = 0; i < s->found.n; i++) {
        uint32_t op = s->found.data[i];
        const cps_mop *o = &s->p->ops.data[op];
        bool in_order = o->kind != CPS_M_DMA && o->engine == m->engine && m->kind == CPS_M_UNIT;
        if (!in_order && !known(s, (cps_engine)m->engine, op))
            wait_for(s, (cps_engine)m->engine, op, who);
    }
}

// A semaphore for a transfer of engine `e`.
static unsigned
take_semaphore(sync *s, cps_engine e, node *who)
{
    unsigned oldest = s->first;
    for (unsigned i = s->first; i < s->used; i++) {
        if (!s->uses[i] || known(s, e, s->last[i]))
            return i;
        if (s->last[i] < s->last[oldest])
            oldest = i;
    }
    if (s->used < s->limit) {
        s->uses[s->used] = 0;
        return s->used++;
    }
    wait_for(s, e, s->last[oldest], who);
    return oldest;
}

// The strongest reason why `later` must follow `earlier`: the bytes both touch.
static uint8_t
kind_of(const sync *s, const cps_mop *earlier, const cps_mop *later)
{
    uint8_t kind = CPS_DEP_ORDERED;
    for (uint32_t i = 0; i < earlier->nacc; i++)
        for (uint32_t k = 0; k < later->nacc; k++) {
            const cps_macc *a = &s->p->accs.data[earlier->acc + i];
            const cps_macc *b = &s->p->accs.data[later->acc + k];
            uint8_t one = a->write ? (b->write ? CPS_DEP_OUTPUT : CPS_DEP_FLOW) : CPS_DEP_ANTI;
            if ((a->write || b->write) && one > kind && cps_acc_overlap(a, b))
                kind = one;
        }
    return kind;
}

// Keeps what `op` depends on, for the notes.
static void
note(sync *s, uint32_t op)
{
    cps_mop *m = &s->p->ops.data[op];
    m->dep = s->p->deps.n;
    for (uint32_t i = 0; i < s->found.n; i++) {
        uint32_t by = s->found.data[i];
        cps_mdep d = {by, kind_of(s, &s->p->ops.data[by], m)};
        cps_vec_push(s->g->arena, &s->p->deps, d);
    }
    m->ndep = s->p->deps.n - m->dep;
}

static void
visit(sync *s, uint32_t op)
{
    cps_mop *m = &s->p->ops.data[op];
    node *n = &s->nodes[op];
    n->raw = s->raws.n;
    s->found.n = 0;
    cps_deps_find(s->deps, op, &s->found);
    // Behind a barrier everything is complete; what the sequencer did is in order anyway.
    if (m->after > s->from && s->p->ops.data[m->after - 1].kind != CPS_M_SEQ)
        cps_vec_push(s->g->arena, &s->found, m->after - 1);
    m->id = op + 1;
    if (s->g->o.notes)
        note(s, op);
    wait_all(s, m, n);
    if (m->kind == CPS_M_DMA) {
        unsigned sem = take_semaphore(s, (cps_engine)m->engine, n);
        n->sem = (uint8_t)sem;
        n->use = ++s->uses[sem];
        n->number = ++s->transfers[m->queue];
        s->last[sem] = op;
        if (m->block)
            s->p->k->blocks.data[m->block - 1].semaphore = (uint8_t)sem;
        else
            cps_isa_set(&m->code, (cps_field)m->sem_field, sem);
    } else if (m->kind == CPS_M_UNIT) {
        n->number = ++s->count[m->engine];
    }
    n->knew = s->now[m->engine];
}

// All transfers of the section whose end SP does not know.
static void
outstanding(sync *s)
{
    s->found.n = 0;
    for (unsigned i = s->first; i < s->used; i++)
        if (s->uses[i] && !known(s, CPS_SP, s->last[i]))
            cps_vec_push(s->g->arena, &s->found, s->last[i]);
}

static void
section_begin(sync *s)
{
    clock_ *zero = cps_new(s->g->arena, clock_);
    for (int e = 0; e < CPS_ENGINES; e++) {
        s->now[e] = zero;
        s->count[e] = s->signals[e] = 0;
    }
    memset(s->uses, 0, sizeof s->uses);
    memset(s->transfers, 0, sizeof s->transfers);
    cps_deps_clear(s->deps);
}

// Turns the waits of operations [from, to) into semaphores and values, and lists the
// operations.
static void
section_end(sync *s, uint32_t from, uint32_t to)
{
    for (uint32_t i = from; i < to; i++) {
        cps_mop *m = &s->p->ops.data[i];
        node *n = &s->nodes[i];
        if (m->signal)
            n->rank = ++s->signals[m->engine];
        m->wait = s->p->waits.n;
        m->nwait = n->nraw;
        for (uint32_t k = 0; k < n->nraw; k++) {
            uint32_t op = s->raws.data[n->raw + k];
            const cps_mop *o = &s->p->ops.data[op];
            cps_mwait w = {.sem = s->nodes[op].sem, .value = RISE * (uint32_t)s->nodes[op].use};
            if (o->kind != CPS_M_DMA)
                w = (cps_mwait){(uint8_t)(s->base + o->engine), s->nodes[op].rank};
            cps_vec_push(s->g->arena, &s->p->waits, w);
        }
        if (m->kind != CPS_M_BARRIER)
            cps_vec_push(s->g->arena, &s->out, *m);
    }
}

static cps_mop *
control(sync *s, cps_engine e, cps_insn i, cps_span loc)
{
    cps_mop m = {.kind = CPS_M_SEQ, .engine = (uint8_t)e, .loc = loc};
    m.code = cps_cg_bundle(s->g, i);
    m.wait = s->p->waits.n;
    cps_vec_push(s->g->arena, &s->out, m);
    return &s->out.data[s->out.n - 1];
}

// A record that waits, or raises semaphore `raise` by one (0: none), or both.
static void
event(sync *s, cps_engine e, cps_span loc, unsigned mode, unsigned sem, unsigned value,
      unsigned raise)
{
    cps_isa_set_event(&control(s, e, CPS_INSN_EVENT_SEMAPHORE, loc)->code, mode, sem, value, raise);
}

static void
clear(sync *s, cps_span loc, unsigned first, unsigned last)
{
    cps_isa_set_clear(&control(s, CPS_SP, CPS_INSN_EVENT_SEMAPHORE_RANGE_CLEAR, loc)->code, first, last);
}

// Four steps, so that none can be taken for one of the barrier before or behind: all arrive;
// SP, which knows that everything is complete, clears the counts and says go; all acknowledge;
// SP takes go back, and only then do they go on.
static void
barrier(sync *s, cps_span loc, bool meets)
{
    for (int e = 0; e < CPS_ENGINES; e++)
        control(s, (cps_engine)e, CPS_INSN_DRAIN, loc);
    for (int e = 0; e < CPS_ENGINES; e++) {
        if (e == CPS_SP)
            continue;
        event(s, (cps_engine)e, loc, CPS_WAIT_NONE, 0, 0, s->arrive);
        event(s, (cps_engine)e, loc, CPS_WAIT_SEM_GE_IMM, s->go, 1, s->ack);
        event(s, (cps_engine)e, loc, CPS_WAIT_SEM_EQ_IMM, s->go, 0, 0);
    }
    for (uint32_t i = 0; i < s->found.n; i++) {
        const node *n = &s->nodes[s->found.data[i]];
        event(s, CPS_SP, loc, CPS_WAIT_SEM_GE_IMM, n->sem, RISE * n->use, 0);
    }
    event(s, CPS_SP, loc, CPS_WAIT_SEM_GE_IMM, s->arrive, CPS_ENGINES - 1, 0);
    if (meets) {
        cps_bundle *b = &control(s, CPS_SP, CPS_INSN_PSEUDO_CORE_BARRIER, loc)->code;
        cps_isa_set(b, CPS_F_PSEUDO_CORE_BARRIER_barrier, s->meetings++);
        cps_isa_set(b, CPS_F_PSEUDO_CORE_BARRIER_semaphore, s->meet);
    }
    clear(s, loc, s->base, s->limit - 1); // to the highest in use, once that is known
    event(s, CPS_SP, loc, CPS_WAIT_NONE, 0, 0, s->go);
    event(s, CPS_SP, loc, CPS_WAIT_SEM_GE_IMM, s->ack, CPS_ENGINES - 1, 0);
    clear(s, loc, s->go, s->ack);
}

bool
cps_pass_sync(cps_cg *g, cps_mprog *p)
{
    sync s = {.g = g, .p = p};
    unsigned all = (unsigned)CPS_MIN(g->t->sync_semaphores, SEMS);
    if (g->o.semaphores)
        all = CPS_MIN(all, g->o.semaphores + (unsigned)g->t->sync_first_semaphore);
    bool barriers = false, meets = false;
    for (uint32_t i = 0; i < p->ops.n; i++) {
        barriers |= p->ops.data[i].kind == CPS_M_BARRIER;
        meets |= p->ops.data[i].meets;
    }
    // [go, acknowledge, meet,] engines, [arrive,] transfers: what a barrier clears is one range.
    s.go = (unsigned)g->t->sync_first_semaphore;
    s.ack = s.go + 1;
    s.meet = s.ack + 1;
    s.base = s.go + (barriers ? 2 : 0) + meets;
    s.arrive = s.base + CPS_ENGINES;
    s.first = s.used = s.arrive + barriers;
    s.limit = all;
    if (s.first >= s.limit) {
        cps_error(g->d, CPS_E5306, CPS_NOSPAN,
                  "%u semaphores are too few: %u are needed at least", all, s.first + 1);
        return false;
    }
    s.deps = cps_deps_new(g->arena, p, g->t);
    // One more operation: SP waits for what is still under way when the kernel ends.
    cps_mop last = {.kind = CPS_M_SEQ, .engine = CPS_SP};
    last.code = cps_cg_bundle(g, CPS_INSN_NOP);
    cps_vec_push(g->arena, &p->ops, last);
    s.nodes = cps_new_array(g->arena, node, p->ops.n);
    cps_vec_reserve(g->arena, &s.out, 2 * p->ops.n + 64); // clears come between
    p->op_ids = p->ops.n;
    section_begin(&s);
    for (uint32_t i = 0; i < p->ops.n; i++) {
        if (p->ops.data[i].kind == CPS_M_BARRIER) {
            section_end(&s, s.from, i);
            outstanding(&s);
            barrier(&s, p->ops.data[i].loc, p->ops.data[i].meets);
            section_begin(&s);
            s.from = i + 1;
        } else if (i + 1 < p->ops.n) {
            visit(&s, i);
        }
    }
    node *n = &s.nodes[p->ops.n - 1];
    n->raw = s.raws.n;
    n->knew = s.now[CPS_SP];
    outstanding(&s);
    wait_all(&s, &p->ops.data[p->ops.n - 1], n);
    if (!n->nraw)
        p->ops.n--;
    section_end(&s, s.from, p->ops.n);
    for (uint32_t i = 0; i < s.out.n; i++) {
        cps_bundle *b = &s.out.data[i].code;
        if (b->b[0] == cps_isa_opcode(CPS_INSN_EVENT_SEMAPHORE_RANGE_CLEAR, g->t->gen) &&
            cps_isa_get(b, CPS_F_CTRL_ER_first) == s.base)
            cps_isa_set(b, CPS_F_CTRL_ER_last, s.used - 1);
    }
    cps_vec_drop(g->arena, &p->ops);
    p->ops.data = s.out.data;
    p->ops.n = s.out.n;
    p->ops.cap = s.out.cap;
    p->semaphores = (int)(s.used - (unsigned)g->t->sync_first_semaphore);
    // Signals travel in the header of the operation, next to its first wait.
    for (uint32_t i = 0; i < p->ops.n; i++) {
        cps_mop *m = &p->ops.data[i];
        if (m->nwait) {
            cps_isa_set(&m->code, CPS_F_EVENTS_wait_mode, CPS_WAIT_SEM_GE_IMM);
            cps_isa_set(&m->code, CPS_F_EVENTS_wait_idx, p->waits.data[m->wait].sem);
            cps_isa_set(&m->code, CPS_F_EVENTS_semaphore_value, p->waits.data[m->wait].value);
        }
        if (m->signal) {
            cps_isa_set(&m->code, CPS_F_EVENTS_update_mode, CPS_UPDATE_SEM_INC_COMPLETE);
            cps_isa_set(&m->code, CPS_F_EVENTS_update_idx, s.base + m->engine);
        }
    }
    return true;
}
