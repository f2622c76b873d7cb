/* Loops in a proof: of a loop whose turns are alike, a few are walked, and one of them stands for all
 * that are left out. So the proof does not take longer when a loop has more turns.
 *
 * Where. Engines that come to the head of a loop, where a branch leads back to, are held there until all
 * that still run have come to one. Such a place is a cut when every semaphore is 0 there. Of a loop, these
 * turns are walked: the first; the second, which is watched (or a later one, where that one is no model);
 * and, the others left out, the last. Where in some turn something else comes out differently than the
 * branch that begins the next, the turn before that and that turn are walked.
 *
 * What is left out. Watched, a turn tells by how much each register drifts a turn, and what that does to
 * its comparisons and addresses (prove_drift.c). When each register that it reads leaves it with what it
 * found plus the drift, and with the same drift, the next turn does the same with other addresses,
 * and so on as long as no comparison comes out differently and no address leaves its partition or
 * variable. A register for which that does not hold is wild; a turn whose branches, addresses, waits or
 * updates depend on one stands for no other, neither does one that asks about values from memory.
 * The first turn walked behind those left out does the same as they do, only that the loop may end with it.
 *
 * Why that is sound. When the claims have settled, each cut must be one in every run: (1) every engine
 * knows that all accesses of all engines and all transfers before it are done, so no access of one turn
 * can race with one of another; (2) the last clear of every semaphore knows of all its updates before,
 * and every engine knows of that clear, so no update before counts behind it; (3) every engine knows of
 * all waits of the turn before the last one, so what updates in the turn after the next is behind
 * all waits of this one. And in the watched turn and in the next all clocks must be the same, counted
 * from the turn's head. Then the claims of the watched turn, moved from turn to turn, are claims of the
 * whole run that support each other as those of the walk do: the value that a wait could see is counted
 * over its own turn (what was before is wiped out) and the next one (what is later follows the wait), which
 * is what was counted in the walk. The same goes for clears and for waits that may be overshot. Deadlock:
 * the turns left out run in the walk's order as the watched one does, from semaphores that are 0.
 * Races within a turn that is left out: what each access touches in all these turns is handed to the race
 * finder together, which is more than what one turn touches; but where all accesses of a variable drift
 * alike, the watched turn alone is, since they meet in all turns or in none.
 *
 * Loops in loops: a turn of the outer one is walked with the inner one's turns left out. How far an
 * inner turn's bounds reach over its own turns is part of what the outer loop must keep (widen).
 *
 * A proof with turns left out counts only if everything holds; otherwise all is walked (prove.c). */
#include "runtime/sim/prove_loop.h"

static bool
leads_back(const insn *i)
{
    return i->sem->exec == exec_branch && i->seq.mode == CPS_BR_TARGET_MODE_RELATIVE_IMMEDIATE && i->seq.by <= 0 &&
           i->index + i->seq.by >= 0;
}

loops *
loops_new(cps_sim *s)
{
    loops *x = cps_new(s->run_arena, loops);
    for (unsigned l = 0; l < LOOPS_MAX; l++)
        x->at[l].objects = cps_new_array(s->run_arena, object, s->vars.n);
    for (unsigned k = 0; k < CPS_ENGINES; k++) {
        const engine *e = &s->eng[k];
        x->branch[k] = cps_new_array(s->run_arena, uint32_t, e->n + 1);
        for (uint32_t i = 0; i < e->n; i++)
            if (leads_back(&e->code[i]))
                x->branch[k][(int64_t)i + e->code[i].seq.by] = i + 1;
    }
    return x;
}

void
loops_walk(prover *p)
{
    loops *x = p->loops;
    x->depth = 0;
    x->watched = x->spoilt = 0;
    x->bounds.n = 0;
    x->nplans = 0;
    x->left_out = 0;
    x->refuted = false;
    memset(x->reg, 0, sizeof x->reg);
    memset(x->access, 0, sizeof x->access);
    memset(x->last_wait, 0, sizeof x->last_wait);
    memset(x->parked, 0, sizeof x->parked);
    x->from = x->to = (drift){.wild = 0};
}

void
loops_park(prover *p, const engine *e, const insn *i)
{
    loops *x = p->loops;
    bool ends = leads_back(i) && e->pc == i->index + 1 && x->branch[e->id][i->index + i->seq.by] == i->index + 1;
    if (!ends && !(e->pc < e->n && x->branch[e->id][e->pc]))
        return;
    x->met = x->parked[e->id] = true;
    x->left[e->id] = ends ? i->index + 1 : 0;
}

/* ---- whether a cut is one in every run ---- */

static spot
here(const prover *p)
{
    const loops *x = p->loops;
    spot o = {.pos = {0}};
    memcpy(o.pos, p->pos, sizeof o.pos);
    memcpy(o.last_wait, x->last_wait, sizeof o.last_wait);
    memcpy(o.waits, p->nwaits, sizeof o.waits);
    memcpy(o.transfers, p->transfers, sizeof o.transfers);
    memcpy(o.live, p->live, sizeof o.live);
    for (unsigned e = 0; e < CPS_ENGINES; e++)
        o.vc[e] = p->s->eng[e].vc;
    return o;
}

/* (1) to (3) at `now`, where the engines are; `before`: the head before. */
static bool
cut_holds(const prover *p, const spot *before, const spot *now)
{
    const loops *x = p->loops;
    for (unsigned e = 0; e < CPS_ENGINES; e++) {
        if (p->s->eng[e].halted)
            continue;
        vclock vc = now->vc[e];
        for (unsigned f = 0; f < CPS_ENGINES; f++)
            if (vc[2 * f] < CPS_MAX(x->access[f], before->last_wait[f]) || vc[2 * f + 1] < x->access[f])
                return false;
        for (uint32_t q = 0; q < p->s->queues.n; q++)
            if (vc[2 * CPS_ENGINES + q] < now->transfers[q])
                return false;
        for (unsigned k = 0; k < SEMS; k++)
            if (p->sem[k].used && !prove_over(&p->sem[k], e, vc))
                return false;
    }
    return true;
}

/* Whether two clocks say the same, each counted from its place. */
static bool
same_clock(const prover *p, vclock a, const spot *from_a, vclock b, const spot *from_b)
{
    for (unsigned e = 0; e < CPS_ENGINES; e++)
        for (unsigned k = 2 * e; k < 2 * e + 2; k++)
            if (a[k] - from_a->pos[e] != b[k] - from_b->pos[e])
                return false;
    for (uint32_t q = 0; q < p->s->queues.n; q++)
        if (a[2 * CPS_ENGINES + q] - from_a->transfers[q] != b[2 * CPS_ENGINES + q] - from_b->transfers[q])
            return false;
    return true;
}

/* Whether the turn from `b` on has the clocks of the one from `a` to `b`. */
static bool
same_turns(const prover *p, const spot *a, const spot *b, const spot *end)
{
    if (memcmp(a->live, b->live, sizeof a->live) != 0)
        return false;
    for (unsigned e = 0; e < CPS_ENGINES; e++) {
        uint32_t n = b->waits[e] - a->waits[e];
        if (p->s->eng[e].halted)
            continue; // before the loop
        if (end->waits[e] - b->waits[e] != n || !same_clock(p, a->vc[e], a, b->vc[e], b))
            return false;
        for (uint32_t k = 0; k < n; k++)
            if (!same_clock(p, p->waits[e].data[a->waits[e] + k], a, p->waits[e].data[b->waits[e] + k], b))
                return false;
    }
    return true;
}

static void
require(prover *p, bool holds)
{
    if (p->last && !holds)
        p->loops->refuted = true;
}

/* ---- a turn under watch ---- */

static void
snapshot(prover *p, loop *o)
{
    for (unsigned e = 0; e < CPS_ENGINES; e++) {
        memcpy(o->reg[e], p->s->eng[e].reg, sizeof o->reg[e]);
        memcpy(o->of[e], p->forks->of[e], sizeof o->of[e]);
        o->known[e] = p->known[e];
    }
}

static void
watch(prover *p, unsigned l)
{
    loops *x = p->loops;
    loop *o = &x->at[l];
    for (unsigned e = 0; e < CPS_ENGINES; e++)
        for (unsigned r = 0; r < REGS; r++) {
            drift *d = &x->reg[e][r];
            bool wild = !((o->known[e] & p->known[e] & ~o->wild[e]) >> r & 1);
            d->by[l] = wild ? 0 : (int32_t)(p->s->eng[e].reg[r] - o->reg[e][r]);
            d->wild = (uint8_t)(d->wild | (unsigned)wild << l);
        }
    snapshot(p, o);
    memcpy(o->was, x->reg, sizeof o->was);
    memset(o->objects, 0, sizeof *o->objects * p->s->vars.n);
    memset(o->written, 0, sizeof o->written);
    memset(o->used, 0, sizeof o->used);
    o->bounds = x->bounds.n;
    o->steps = p->steps;
    o->plan = x->nplans++;
    if (p->round == 0) {
        plan none = {.mixed = cps_new_array(p->s->run_arena, bool, p->s->vars.n)};
        cps_vec_push(p->s->run_arena, &x->plans, none);
    }
    cps_assert(o->plan < x->plans.n); // every round watches the same turns
    x->watched |= (uint8_t)(1u << l);
    x->spoilt &= (uint8_t) ~(1u << l);
    o->stage = LOOP_WATCHED;
}

/* The watch ends; the turn stands for `n` more. */
static void
unwatch(prover *p, unsigned l, int64_t n)
{
    loops *x = p->loops;
    for (unsigned e = 0; e < CPS_ENGINES; e++)
        for (unsigned r = 0; r < REGS; r++) {
            x->reg[e][r].by[l] = 0;
            x->reg[e][r].wild &= (uint8_t) ~(1u << l);
        }
    x->watched &= (uint8_t) ~(1u << l);
    uint32_t keep = x->at[l].bounds;
    for (uint32_t k = keep; k < x->bounds.n; k++) {
        bound b = x->bounds.data[k];
        *(b.by[l] < 0 ? &b.least : &b.most) += n * b.by[l]; // for the loops around
        b.by[l] = 0;
        bool more = false;
        for (unsigned m = 0; m < l; m++)
            more |= b.by[m] != 0;
        if (more)
            x->bounds.data[keep++] = b;
    }
    x->bounds.n = keep;
}

/* How many turns after the one under watch keep the bounds of the branch that begins the next (`again`),
 * or all others. */
static int64_t
limit(const loops *x, unsigned l, bool again)
{
    int64_t n = INT64_MAX;
    for (uint32_t k = x->at[l].bounds; k < x->bounds.n; k++) {
        const bound *b = &x->bounds.data[k];
        if (again != (b->branch && b->branch == x->at[l].back[b->engine]))
            continue;
        if (b->least < b->lo || b->most > b->hi)
            return 0;
        if (b->by[l] > 0)
            n = CPS_MIN(n, (b->hi - b->most) / b->by[l]);
        else if (b->by[l] < 0)
            n = CPS_MIN(n, (b->least - b->lo) / -b->by[l]);
    }
    return n;
}

/* How many turns are left out, and whether the one behind them is the last. One that is like them has to
 * follow; where the loop just ends with it, the last one is. */
static int64_t
spared(const loops *x, unsigned l, bool *last)
{
    int64_t again = limit(x, l, true), rest = limit(x, l, false);
    *last = again < rest;
    return again == INT64_MAX ? 0 : *last ? again : rest - 1;
}

/* Whether the registers that the turn found and used are what the drift says; those that are not are wild
 * from now on. Others may be anything: behind the turns left out they are not known. */
static bool
repeats(prover *p, unsigned l)
{
    const loops *x = p->loops;
    loop *o = &p->loops->at[l];
    bool all = true;
    for (unsigned e = 0; e < CPS_ENGINES; e++)
        for (unsigned r = 0; r < REGS; r++) {
            drift *was = &o->was[e][r];
            const drift *is = &x->reg[e][r];
            if (was->wild >> l & 1 || p->s->eng[e].halted)
                continue;
            uint32_t want = o->reg[e][r] + (uint32_t)was->by[l];
            if (!(p->known[e] >> r & 1) || is->wild >> l & 1 || is->by[l] != was->by[l] ||
                p->s->eng[e].reg[r] != want) {
                was->wild |= (uint8_t)(1u << l);
                if (!(o->used[e] >> r & 1))
                    continue;
                o->wild[e] |= (uint64_t)1 << r;
                all = false;
            }
        }
    return all;
}

/* A drift in a loop around this one that changes from turn to turn of this one is none. */
static void
check_outer(loops *x, const loop *o, unsigned l)
{
    for (unsigned e = 0; e < CPS_ENGINES; e++)
        for (unsigned r = 0; r < REGS; r++) {
            const drift *was = &o->was[e][r], *is = &x->reg[e][r];
            if (was->wild >> l & 1)
                continue;
            for (unsigned m = 0; m < l; m++)
                if (was->by[m] != is->by[m] || (was->wild ^ is->wild) >> m & 1)
                    x->spoilt |= (uint8_t)(1u << m);
        }
}

/* Registers are what they will be `n` turns later. */
static void
leave_out(prover *p, const loop *o, unsigned l, uint32_t n)
{
    loops *x = p->loops;
    for (unsigned e = 0; e < CPS_ENGINES; e++)
        for (unsigned r = 0; r < REGS; r++) {
            const drift *was = &o->was[e][r];
            if (p->s->eng[e].halted)
                continue;
            p->s->eng[e].reg[r] += n * (uint32_t)was->by[l];
            if (was->wild >> l & 1)
                p->known[e] &= ~((uint64_t)1 << r);
            if (p->forks->of[e][r] != o->of[e][r])
                p->forks->of[e][r] = 0;
        }
    x->left_out += n;
    x->steps += n * (p->steps - o->steps);
    p->steps += n * (p->steps - o->steps);
}

/* ---- heads ---- */

static bool
semaphores_at_zero(const prover *p)
{
    for (unsigned k = 0; k < SEMS; k++)
        if (p->sem[k].used && p->sem[k].value != 0)
            return false;
    return true;
}

/* The watched turn is over. */
static void
judge(prover *p, unsigned l)
{
    loops *x = p->loops;
    loop *o = &x->at[l];
    bool fit = semaphores_at_zero(p) && repeats(p, l) && !(x->spoilt >> l & 1);
    bool last = false;
    int64_t n = fit ? spared(x, l, &last) : 0;
    n = CPS_MIN(CPS_MAX(n, 0), INT32_MAX);
    plan *made = &x->plans.data[o->plan];
    if (p->round == 0) {
        made->turns = (uint32_t)n;
        for (uint32_t v = 0; v < p->s->vars.n; v++)
            made->mixed[v] = o->objects[v].mixed;
    } else if (made->turns != n) {
        x->refuted = true;
    }
    if (n == 0) {
        unwatch(p, l, 0);
        if (++o->tries < TRIES_MAX && semaphores_at_zero(p))
            watch(p, l);
        else
            o->stage = LOOP_SEEN;
        return;
    }
    require(p, o->cut[0] && o->cut[1]);
    check_outer(x, o, l);
    leave_out(p, o, l, (uint32_t)n);
    unwatch(p, l, n);
    o->stage = last ? LOOP_LAST : LOOP_LEFT;
    o->tries = 0;
}

/* All engines are at the head of loop `l`. */
static void
at_head(prover *p, unsigned l)
{
    cps_assert(l < LOOPS_MAX);
    loop *o = &p->loops->at[l];
    o->spot[2] = o->spot[1];
    o->spot[1] = o->spot[0];
    o->spot[0] = here(p);
    o->cut[1] = o->cut[0];
    o->cut[0] = p->last && o->stage != LOOP_MET && o->tries < TRIES_MAX && cut_holds(p, &o->spot[1], &o->spot[0]);
    switch (o->stage) {
    case LOOP_SEEN:
        if (o->tries < TRIES_MAX && semaphores_at_zero(p))
            watch(p, l);
        else
            snapshot(p, o);
        break;
    case LOOP_WATCHED:
        judge(p, l);
        break;
    case LOOP_LEFT:
        require(p, o->cut[0] && same_turns(p, &o->spot[2], &o->spot[1], &o->spot[0]));
        snapshot(p, o);
        o->stage = LOOP_SEEN;
        break;
    case LOOP_LAST:
        p->loops->refuted = true;
        break;
    default:
        snapshot(p, o);
        o->stage = LOOP_SEEN;
    }
}

/* Loops from `depth` on are over. */
static void
drop(prover *p, unsigned depth)
{
    loops *x = p->loops;
    while (x->depth > depth) {
        const loop *o = &x->at[--x->depth];
        if (o->stage == LOOP_WATCHED) {
            if (x->plans.data[o->plan].turns)
                x->refuted = true;
            unwatch(p, x->depth, 0);
        }
        if (o->stage >= LOOP_LEFT)
            x->refuted = true; // there was to be another turn, or its end
    }
}

static bool
around(const loop *o, const uint32_t *at, const uint32_t *back)
{
    bool in = true;
    for (unsigned e = 0; e < CPS_ENGINES; e++)
        in &= o->head[e] <= at[e] && back[e] <= o->back[e];
    return in;
}

/* All engines have left a loop by its branch. */
static void
left(prover *p)
{
    loops *x = p->loops;
    for (unsigned l = x->depth; l-- > 0;) {
        loop *o = &x->at[l];
        bool this = true;
        for (unsigned e = 0; e < CPS_ENGINES; e++)
            this &= p->s->eng[e].halted || x->left[e] == o->back[e];
        if (!this)
            continue;
        drop(p, l + 1);
        if (o->stage == LOOP_LAST) {
            spot end = here(p);
            require(p, same_turns(p, &o->spot[1], &o->spot[0], &end));
            o->stage = LOOP_SEEN;
        }
        drop(p, l);
        return;
    }
}

static void
head(prover *p)
{
    loops *x = p->loops;
    uint32_t at[CPS_ENGINES], back[CPS_ENGINES];
    for (unsigned e = 0; e < CPS_ENGINES; e++) {
        at[e] = p->s->eng[e].halted ? UINT32_MAX : p->s->eng[e].pc;
        back[e] = p->s->eng[e].halted ? UINT32_MAX : x->branch[e][at[e]];
    }
    for (unsigned l = x->depth; l-- > 0;)
        if (!memcmp(x->at[l].head, at, sizeof at)) {
            drop(p, l + 1);
            at_head(p, l);
            return;
        }
    unsigned l = x->depth; // a new one: in those that reach around it
    while (l > 0 && !around(&x->at[l - 1], at, back))
        l--;
    if (l == LOOPS_MAX)
        return;
    drop(p, l);
    object *objects = x->at[l].objects;
    x->at[l] = (loop){.objects = objects};
    memcpy(x->at[l].head, at, sizeof at);
    memcpy(x->at[l].back, back, sizeof back);
    x->depth = l + 1;
    at_head(p, l);
}

bool
loops_turn(prover *p, bool moved)
{
    loops *x = p->loops;
    bool some = false, all = true, ends = true, heads = true;
    for (unsigned e = 0; e < CPS_ENGINES; e++) {
        some |= x->parked[e];
        all &= x->parked[e] || p->s->eng[e].halted;
        ends &= !x->parked[e] || x->left[e];
        heads &= !x->parked[e] || !x->left[e];
    }
    if (!some || (!all && moved))
        return moved;
    if (all && heads)
        head(p);
    else if (all && ends)
        left(p);
    memset(x->parked, 0, sizeof x->parked);
    return true;
}

void
loops_end(prover *p)
{
    drop(p, 0);
}
