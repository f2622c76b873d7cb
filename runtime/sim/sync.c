/* Semaphores and events: waits, updates, what a passed wait proves, and deadlock.
 *
 * A wait proves an earlier update only if the condition could not have become true without it.
 * For `value >= v`: take every rise issued so far that does not itself follow the update in
 * question; if those cannot reach v, the update must have happened. So a wait for 16 on a
 * semaphore with two transfers outstanding proves neither of them, and one for 32 proves both.
 * Falls count only when the waiter already knows of them. `<=` is the mirror image. */
#include "runtime/sim/group.h"
#include "runtime/sim/prove.h"

static unsigned
own_sources(const cps_sim *s)
{
    return CPS_ENGINES + s->queues.n;
}

/* Who may raise or lower a semaphore: engines, then queues, then those of the other core. */
static unsigned
sources(const cps_sim *s)
{
    return own_sources(s) + (s->peer ? own_sources(s->peer) : 0);
}

unsigned
sync_remote(const cps_sim *s, unsigned source)
{
    return own_sources(s) + source;
}

/* Component of a clock for a source; the writes of an engine come after its reads. */
static unsigned
component(const cps_sim *s, unsigned source, bool *unit)
{
    unsigned own = own_sources(s);
    if (source >= own) {
        source -= own;
        s = s->peer;
    }
    *unit = source < CPS_ENGINES;
    return s->vc0 + (*unit ? 2 * source : CPS_ENGINES + source);
}

void
sync_reset(cps_sim *s)
{
    for (int i = 0; i < SEMS; i++)
        s->sem[i] = (semaphore){.chain = NULL};
}

static sem_chain *
chains(cps_sim *s, semaphore *m)
{
    if (!m->chain)
        m->chain = cps_new_array(s->run_arena, sem_chain, sources(s));
    return m->chain;
}

void
sync_issue(cps_sim *s, unsigned sem, unsigned source, int32_t amount, int32_t share, vclock vc,
           uint32_t rd, uint32_t wr, const insn *by)
{
    sem_chain *c = &chains(s, &s->sem[sem])[source];
    const sem_rec *last = c->recs.n ? &c->recs.data[c->recs.n - 1] : NULL;
    sem_rec r = {.vc = vc,
                 .rd = rd,
                 .wr = wr,
                 .wr_all = last ? CPS_MAX(last->wr_all, wr) : wr,
                 .amount = amount,
                 .share = share,
                 .by = by,
                 .up = (last ? last->up : 0) + (amount > 0 ? amount : 0),
                 .down = (last ? last->down : 0) + (amount < 0 ? amount : 0),
                 .shares = (last ? last->shares : 0) + share};
    cps_vec_push(s->run_arena, &c->recs, r);
}

uint32_t
sync_changes(const cps_sim *s, unsigned sem, unsigned source)
{
    return s->sem[sem].chain ? s->sem[sem].chain[source].recs.n : 0;
}

void
sync_learn(cps_sim *s, unsigned sem, unsigned source, uint32_t first, vclock vc)
{
    sem_chain *c = s->sem[sem].chain ? &s->sem[sem].chain[source] : NULL;
    for (uint32_t k = first; c && k < c->recs.n; k++)
        c->recs.data[k].vc = vc_join(s, c->recs.data[k].vc, vc);
}

/* ---- what a wait proves ---- */

/* Whether clock `vc` is past update `r` of `source`. */
static bool
past(const cps_sim *s, vclock vc, unsigned source, const sem_rec *r)
{
    bool unit;
    unsigned c = component(s, source, &unit);
    if (!unit)
        return vc[c] >= r->wr;
    return vc[c] >= r->rd && vc[c + 1] >= r->wr;
}

/* How many updates of chain `c` do not follow update `r` of `source`; along a chain, once one
 * update follows r all later ones do. */
static uint32_t
count_not_after(const cps_sim *s, const sem_chain *c, unsigned source, const sem_rec *r)
{
    uint32_t lo = 0, hi = c->recs.n;
    while (lo < hi) {
        uint32_t mid = (lo + hi) / 2;
        if (past(s, c->recs.data[mid].vc, source, r))
            hi = mid;
        else
            lo = mid + 1;
    }
    return lo;
}

/* Sum of their rises (falls). */
static int64_t
not_after(const cps_sim *s, const sem_chain *c, unsigned source, const sem_rec *r, bool rises)
{
    uint32_t n = count_not_after(s, c, source, r);
    if (n == 0)
        return 0;
    return rises ? c->recs.data[n - 1].up : c->recs.data[n - 1].down;
}

/* Sum of falls (rises) that the waiter knows of. */
static int64_t
known(cps_sim *s, const semaphore *m, vclock vc, bool rises)
{
    int64_t sum = 0;
    for (unsigned c = 0; c < sources(s); c++) {
        const sem_chain *ch = &m->chain[c];
        uint32_t lo = 0, hi = ch->recs.n;
        while (lo < hi) {
            uint32_t mid = (lo + hi) / 2;
            if (past(s, vc, c, &ch->recs.data[mid]))
                lo = mid + 1;
            else
                hi = mid;
        }
        if (lo)
            sum += rises ? ch->recs.data[lo - 1].up : ch->recs.data[lo - 1].down;
    }
    return sum;
}

/* The farthest the semaphore can get without update i of chain `src`. */
static int64_t
without(cps_sim *s, const semaphore *m, unsigned src, uint32_t i, bool rises)
{
    const sem_chain *own = &m->chain[src];
    const sem_rec *r = &own->recs.data[i];
    int64_t sum = rises ? r->up : r->down;
    bool unit;
    component(s, src, &unit);
    if (!unit) {
        // other DMA engines may be ahead: only one share of this transfer and of the later ones
        // of its queue cannot have come; those started when it was known to be complete never
        const sem_rec *last = &own->recs.data[count_not_after(s, own, src, r) - 1];
        sum = (rises ? last->up : last->down) - (last->shares - (r->shares - r->share));
    } else if ((r->amount > 0) == rises) {
        sum -= r->amount;
    }
    for (unsigned c = 0; c < sources(s); c++) {
        if (c != src)
            sum += not_after(s, &m->chain[c], src, r, rises);
    }
    return sum;
}

static void
join(cps_sim *s, engine *e, unsigned src, const sem_rec *r)
{
    bool unit;
    unsigned c = component(s, src, &unit);
    e->vc = vc_join(s, e->vc, r->vc);
    if (unit)
        e->vc = vc_with(s, e->vc, c, r->rd);
    e->vc = vc_with(s, e->vc, unit ? c + 1 : c, r->wr_all);
}

/* The wait `value >= v` (rises) or `value <= v` (falls) has passed on `m`. */
static void
prove(cps_sim *s, engine *e, semaphore *m, int64_t v, bool rises)
{
    if (!m->chain)
        return;
    int64_t base = m->base + known(s, m, e->vc, !rises);
    for (unsigned c = 0; c < sources(s); c++) {
        sem_chain *ch = &m->chain[c];
        uint32_t lo = 0, hi = ch->recs.n;
        // along a chain, leaving out a later update leaves more to reach v with
        while (lo < hi) {
            uint32_t mid = (lo + hi) / 2;
            int64_t w = base + without(s, m, c, mid, rises);
            if (rises ? w < v : w > v)
                lo = mid + 1;
            else
                hi = mid;
        }
        // the last one whose sign fits
        while (lo > 0 && (ch->recs.data[lo - 1].amount > 0) != rises)
            lo--;
        if (lo > 0 && !past(s, e->vc, c, &ch->recs.data[lo - 1]))
            join(s, e, c, &ch->recs.data[lo - 1]);
    }
}

/* ---- waits ---- */

static int32_t
wait_value(const engine *e, const insn *i, unsigned w)
{
    uint32_t v = i->sy.wait_value[w];
    return (int32_t)(i->sy.wait_mode[w] & 0x80 ? e->reg[v % REGS] : v);
}

bool
sync_ready(cps_sim *s, engine *e, const insn *i, unsigned w)
{
    const semaphore *m = &s->sem[i->sy.wait_idx[w]];
    int64_t v = wait_value(e, i, w);
    switch (i->sy.wait_mode[w]) {
    case CPS_WAIT_SEM_EQ_IMM:
    case CPS_WAIT_SEM_EQ_REG:
        return m->value == v;
    case CPS_WAIT_SEM_LT_IMM:
    case CPS_WAIT_SEM_LT_REG:
        return m->value < v;
    case CPS_WAIT_SEM_LE_IMM:
    case CPS_WAIT_SEM_LE_REG:
        return m->value <= v;
    case CPS_WAIT_SEM_GT_IMM:
    case CPS_WAIT_SEM_GT_REG:
        return m->value > v;
    case CPS_WAIT_SEM_GE_IMM:
    case CPS_WAIT_SEM_GE_REG:
        return m->value >= v;
    case CPS_WAIT_EVT_SET:
    case CPS_WAIT_EVT_SET_THEN_CLEAR:
        return m->event;
    case CPS_WAIT_EVT_CLEAR:
    case CPS_WAIT_EVT_CLEAR_THEN_SET:
        return !m->event;
    default:
        run_fault(s, i, CPS_E8305, "wait mode 0x%02x has no meaning here", i->sy.wait_mode[w]);
        return false;
    }
}

/* Lets engines that wait for semaphore or event `sem` look again. */
static void
wake(cps_sim *s, unsigned sem)
{
    for (int e = 0; e < CPS_ENGINES; e++) {
        engine *en = &s->eng[e];
        const insn *i = en->blocked ? &en->code[en->pc] : NULL;
        for (unsigned w = 0; i && w < i->sy.nwait; w++) {
            if (i->sy.wait_idx[w] == sem) {
                en->blocked = false;
                ev_turn(s, (unsigned)e, s->now);
                break;
            }
        }
    }
}

void
sync_pass(cps_sim *s, engine *e, const insn *i)
{
    bool races = s->opts.checks & CPS_CHECK_RACES;
    for (unsigned w = 0; w < i->sy.nwait; w++) {
        semaphore *m = &s->sem[i->sy.wait_idx[w]];
        int64_t v = wait_value(e, i, w);
        bool is_event = (i->sy.wait_mode[w] & 0x0F) >= CPS_WAIT_EVT_SET;
        if (!is_event && !races)
            continue; // only race finding asks what a wait proves
        switch (i->sy.wait_mode[w] & 0x0F) {
        case CPS_WAIT_SEM_EQ_IMM:
            prove(s, e, m, v, true);
            prove(s, e, m, v, false);
            break;
        case CPS_WAIT_SEM_LT_IMM:
            prove(s, e, m, v - 1, false);
            break;
        case CPS_WAIT_SEM_LE_IMM:
            prove(s, e, m, v, false);
            break;
        case CPS_WAIT_SEM_GT_IMM:
            prove(s, e, m, v + 1, true);
            break;
        case CPS_WAIT_SEM_GE_IMM:
            prove(s, e, m, v, true);
            break;
        default: // events: one bit, the last change is what was seen
            if (m->event_vc) {
                e->vc = vc_join(s, e->vc, m->event_vc);
                e->vc = vc_with(s, e->vc, s->vc0 + 2u * m->event_by, m->event_rd);
                e->vc = vc_with(s, e->vc, s->vc0 + 2u * m->event_by + 1, m->event_wr);
            }
            if (i->sy.wait_mode[w] == CPS_WAIT_EVT_SET_THEN_CLEAR ||
                i->sy.wait_mode[w] == CPS_WAIT_EVT_CLEAR_THEN_SET) {
                m->event = i->sy.wait_mode[w] == CPS_WAIT_EVT_CLEAR_THEN_SET;
                m->event_vc = e->vc; // whoever waits for the other state follows this one
                m->event_by = e->id;
                m->event_rd = e->vc[s->vc0 + 2u * e->id];
                m->event_wr = e->vc[s->vc0 + 2u * e->id + 1];
                if (s->rec) {
                    event ev = {.a = i->sy.wait_idx[w],
                                .mode = m->event ? CPS_UPDATE_EVT_SET_READ
                                                 : CPS_UPDATE_EVT_CLR_READ,
                                .rec = e->turn.last};
                    rec_sem_change(s, &ev, m->event);
                }
                wake(s, i->sy.wait_idx[w]);
            }
            break;
        }
    }
}

/* ---- updates ---- */

void
sync_updates(cps_sim *s, engine *e, const insn *i, cps_ps read, cps_ps complete)
{
    // An update is an epoch of its own: an engine that touched no memory since the last one may
    // still have learned something that the update carries.
    if (i->sy.nupdate)
        e->count++;
    for (unsigned u = 0; u < i->sy.nupdate; u++) {
        uint8_t mode = i->sy.update_mode[u];
        bool done = mode & 0x10;
        uint32_t v = i->sy.update_value[u];
        if (mode & 0x80)
            v = e->reg[v % REGS];
        event ev = {.t = (done ? complete : read) + s->sem_ps,
                    .kind = EV_SEM,
                    .a = i->sy.update_idx[u],
                    .b = e->id,
                    .mode = mode & 0x0F,
                    .by = i,
                    .rec = e->turn.last,
                    .vc = e->vc,
                    .rd = e->count,
                    .wr = done ? e->count : e->vc[s->vc0 + 2 * e->id + 1]};
        switch (mode & 0x0F) {
        case CPS_UPDATE_SEM_INC_READ:
            ev.amount = 1;
            break;
        case CPS_UPDATE_SEM_DEC_READ:
            ev.amount = -1;
            break;
        case CPS_UPDATE_SEM_ADD_IMM_READ:
            ev.amount = (int32_t)v;
            break;
        case CPS_UPDATE_SEM_SUB_IMM_READ:
            ev.amount = (int32_t)-v;
            break;
        case CPS_UPDATE_SEM_WR_IMM_READ:
            ev.amount = (int32_t)v;
            break;
        case CPS_UPDATE_EVT_SET_READ:
        case CPS_UPDATE_EVT_CLR_READ:
            break;
        default:
            run_fault(s, i, CPS_E8305, "update mode 0x%02x has no meaning here", mode);
            return;
        }
        bool counts =
            ev.mode >= CPS_UPDATE_SEM_INC_READ && ev.mode != CPS_UPDATE_SEM_WR_IMM_READ;
        if (counts && s->opts.checks & CPS_CHECK_RACES)
            sync_issue(s, ev.a, e->id, ev.amount, ev.amount, ev.vc, ev.rd, ev.wr, i);
        ev_push(s, ev);
    }
}

void
sync_apply(cps_sim *s, const event *ev)
{
    semaphore *m = &s->sem[ev->a];
    switch (ev->mode) {
    case CPS_UPDATE_EVT_SET_READ:
    case CPS_UPDATE_EVT_CLR_READ:
        if (ev->mode == CPS_UPDATE_EVT_SET_READ && m->event) {
            run_fault(s, ev->by, CPS_E8305, "event %u is set while it is set", ev->a);
            return;
        }
        m->event = ev->mode == CPS_UPDATE_EVT_SET_READ;
        m->event_vc = ev->vc;
        m->event_rd = ev->rd;
        m->event_wr = ev->wr;
        m->event_by = (uint8_t)ev->b;
        break;
    case CPS_UPDATE_SEM_WR_IMM_READ:
        // What was counted before no longer means anything; the value itself is the writer's.
        for (unsigned c = 0; m->chain && c < sources(s); c++)
            m->chain[c].recs.n = 0;
        m->value = ev->amount;
        m->base = 0;
        if (ev->amount && s->opts.checks & CPS_CHECK_RACES)
            sync_issue(s, ev->a, ev->b, ev->amount, ev->amount, ev->vc, ev->rd, ev->wr, ev->by);
        break;
    default:
        m->value = (int32_t)((uint32_t)m->value + (uint32_t)ev->amount); // wraps
        break;
    }
    if (s->rec)
        rec_sem_change(s, ev, m->value);
    wake(s, ev->a);
}

bool
sem_clear_hits(const insn *i, unsigned k)
{
    if (cps_isa_get(&i->b, CPS_F_CTRL_ER_clear) != CPS_SEM_CLEAR_MODE_RANGE)
        return cps_isa_get_elem(&i->b, CPS_F_CTRL_ER_bitmask, k / 32) >> k % 32 & 1;
    return k >= cps_isa_get(&i->b, CPS_F_CTRL_ER_first) && k <= cps_isa_get(&i->b, CPS_F_CTRL_ER_last);
}

bool
exec_sem_clear(cps_sim *s, engine *e, insn *i)
{
    for (unsigned k = 0; k < SEMS; k++) {
        if (!sem_clear_hits(i, k))
            continue;
        event ev = {.kind = EV_SEM,
                    .a = (uint8_t)k,
                    .b = i->engine,
                    .by = i,
                    .rec = e->turn.last,
                    .mode = CPS_UPDATE_SEM_WR_IMM_READ};
        sync_apply(s, &ev);
    }
    return true;
}

/* ---- deadlock ---- */

/* An engine of one core, on the walk along who waits for whom. */
typedef struct node {
    cps_sim *s;
    unsigned e; /* CPS_ENGINES: nobody */
} node;

/* An engine of core `s` whose remaining code would raise semaphore `sem`. */
static node
raiser(cps_sim *s, unsigned sem, const insn **at)
{
    for (unsigned e = 0; e < CPS_ENGINES; e++) {
        const engine *en = &s->eng[e];
        if (en->halted)
            continue;
        for (uint32_t k = en->pc; k < en->n; k++) {
            const insn *i = &en->code[k];
            bool raises = (i->block && i->block->semaphore == sem) || cc_raises(i, sem);
            for (unsigned u = 0; u < i->sy.nupdate; u++)
                raises |= i->sy.update_idx[u] == sem;
            if (raises) {
                *at = i;
                return (node){s, e};
            }
        }
    }
    return (node){s, CPS_ENGINES};
}

static bool
waits(const cps_sim *s, unsigned e)
{
    return s->eng[e].blocked || s->eng[e].held;
}

/* Whom an exchange waits for, with a note; the next on the walk. */
static node
told_post(cps_sim *s, const post *p)
{
    unsigned core = cc_missing(p), e = 0;
    cps_sim *o = s->group ? s->group->core[core] : s;
    cps_buf b = {0};
    insn_name(s, cc_insn(p), &b);
    while (e < CPS_ENGINES && !waits(o, e))
        e++;
    cps_note(s->d, CPS_NOSPAN, "%s waits for core %u to take part%s", b.data, core,
             e < CPS_ENGINES ? "" : ", which has ended");
    cps_buf_fini(&b);
    return (node){o, e};
}

/* Who a blocked engine waits for, with a note; the next on the walk. */
static node
told_wait(node n)
{
    cps_sim *s = n.s;
    engine *en = &s->eng[n.e];
    const insn *i = &en->code[en->pc], *at = NULL;
    unsigned w = 0;
    while (w + 1 < i->sy.nwait && sync_ready(s, en, i, w))
        w++;
    unsigned sem = i->sy.wait_idx[w];
    bool evt = (i->sy.wait_mode[w] & 0x0F) >= CPS_WAIT_EVT_SET;
    cps_buf b = {0}, c = {0};
    insn_name(s, i, &b);
    const post *p = evt ? NULL : cc_raiser(s, sem);
    node next = p ? (node){NULL, CPS_ENGINES} : raiser(s, sem, &at);
    if (p)
        insn_name(s, cc_insn(p), &c);
    else if (next.e < CPS_ENGINES)
        insn_name(s, at, &c);
    else
        cps_buf_puts(&c, "nothing that is left");
    if (evt)
        cps_note(s->d, CPS_NOSPAN, "%s waits for event %u, which %s would set", b.data, sem,
                 c.data);
    else
        cps_note(s->d, CPS_NOSPAN,
                 "%s waits for semaphore %u (is %lld, wants %d), which %s "
                 "would raise",
                 b.data, sem, (long long)s->sem[sem].value, wait_value(en, i, w), c.data);
    if (p)
        next = told_post(s, p);
    cps_buf_fini(&b);
    cps_buf_fini(&c);
    return next;
}

/* The same for an engine that is held at a barrier. */
static node
told_held(node n)
{
    cps_sim *s = n.s;
    const insn *i = &s->eng[n.e].code[s->eng[n.e].pc - 1];
    cps_buf b = {0};
    insn_name(s, i, &b);
    node next = {s, CPS_ENGINES};
    if (i->sem->exec == exec_core_barrier) {
        const engine *o = &s->peer->eng[n.e];
        cps_note(s->d, CPS_NOSPAN, "%s waits for core %u, whose %s %s", b.data, s->peer->core,
                 cps_engine_name((cps_engine)n.e),
                 o->n == 0   ? "has no stream"
                 : o->halted ? "has ended"
                 : o->held   ? "is at another barrier"
                             : "has not come there");
        next = (node){s->peer, o->halted || o->n == 0 ? CPS_ENGINES : n.e};
    } else {
        cps_note(s->d, CPS_NOSPAN, "%s waits for the other engines at the barrier", b.data);
        for (unsigned e = 0; e < CPS_ENGINES && next.e == CPS_ENGINES; e++)
            if (s->eng[e].blocked)
                next.e = e;
    }
    cps_buf_fini(&b);
    return next;
}

void
sync_deadlock(cps_sim *s)
{
    unsigned cores = s->group ? s->group->n : 1;
    cps_sim **all = s->group ? s->group->core : &s;
    cps_error(s->d, CPS_E8301, CPS_NOSPAN, "kernel '%s' is deadlocked: nothing can go on",
              s->k->name);
    // Those that stand at the barrier of their core come first, who waits outside the cycle last.
    uint8_t *seen = cps_new_array(s->run_arena, uint8_t, cores);
    node n = {NULL, CPS_ENGINES};
    for (unsigned c = 0; c < cores; c++) {
        for (unsigned e = 0; e < CPS_ENGINES; e++) {
            bool held = all[c]->eng[e].held &&
                        all[c]->eng[e].code[all[c]->eng[e].pc - 1].sem->exec == exec_barrier;
            if (held) {
                told_held((node){all[c], e});
                seen[c] |= (uint8_t)(1u << e);
            } else if (waits(all[c], e) && n.e == CPS_ENGINES) {
                n = (node){all[c], e};
            }
        }
    }
    while (n.e < CPS_ENGINES && !(seen[n.s->core] >> n.e & 1) && waits(n.s, n.e)) {
        seen[n.s->core] |= (uint8_t)(1u << n.e);
        n = n.s->eng[n.e].held ? told_held(n) : told_wait(n);
    }
    bool walked = false;
    for (unsigned c = 0; c < cores; c++)
        walked |= seen[c] != 0;
    for (unsigned c = 0; c < cores && !walked; c++) // nobody waits for what nobody joined
        for (uint32_t k = 0; k < all[c]->posts.n; k++)
            told_post(all[c], all[c]->posts.data[k]);
    for (unsigned c = 0; c < cores; c++) {
        for (unsigned e = 0; e < CPS_ENGINES; e++) {
            engine *en = &all[c]->eng[e];
            if (!waits(all[c], e) || seen[c] >> e & 1)
                continue;
            cps_buf b = {0};
            insn_name(s, &en->code[en->held ? en->pc - 1 : en->pc], &b);
            cps_note(s->d, CPS_NOSPAN, "%s waits too", b.data);
            cps_buf_fini(&b);
        }
    }
}
