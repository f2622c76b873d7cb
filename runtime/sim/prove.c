/* The static proof: whether any run of a loaded kernel can race or get stuck, whatever the
 * times.
 *
 * It reads the binary alone and moves no data. Control is followed with the registers that
 * immediates make known, so counted loops are decided; a branch on a value from memory is
 * followed both ways, each path being proved for itself (prove_fork.c).
 *
 * Order is a claim per wait: which updates must have happened when it passes. A claim holds
 * when the value cannot be reached without the update, counting every update of the kernel,
 * future ones included, that does not itself follow the update or the wait, and none that a
 * clear known to the wait has wiped out. Claims support each other. They start as what one run
 * suggests and are taken back until all that are left hold. That is sound: in any run, look at
 * the first wait that passes against its claim. Every wait before it kept its own, so what was
 * left out of the count had not happened, and the count was too low for it to pass.
 *
 * With the order settled, one more walk hands every access to the race finder (race.c), which
 * is the simulator's: a pair it reports is a pair that nothing orders. Deadlock is impossible
 * when one run ends and every semaphore is used the same way in all runs: each clear is ordered
 * with each update and each wait of its semaphore, and a wait for equality cannot be overshot.
 * Waits for events or for small values are left undecided.
 *
 * Of a loop's turns that are alike most are left out (prove_loop.c). What that does not show to hold
 * is followed once more, turn by turn: nothing is told of a kernel that this would not tell. */
#include "runtime/sim/prove_loop.h"

/* Instructions that are walked, over all rounds; and waits, updates and transfers of a round, which take some
 * 300 bytes each and what they touch. Causal attention over 16384 has 100,000. */
enum { STEPS_MAX = 1 << 24, EVENTS_MAX = 1 << 20 };

static void
undecided(prover *p, const insn *i, const char *why)
{
    if (!p->open) {
        p->open = why;
        p->open_at = i;
    }
}

/* A proof that follows more turns would be no shorter. */
static void
too_long(prover *p, const insn *i)
{
    p->certain |= !p->open;
    undecided(p, i, "too many instructions to follow");
}

void
prove_leaves(prover *p, const insn *i, const char *text)
{
    if (p->leaves)
        return;
    p->leaves = cps_arena_strdup(p->s->run_arena, text);
    p->leaves_at = i;
}

/* Some loop's turn is under watch. */
static bool
watched(const prover *p)
{
    return p->loops && p->loops->watched;
}

/* ---- semaphores ---- */

static psem *
sem_of(prover *p, unsigned k)
{
    psem *m = &p->sem[k];
    if (!m->chain) {
        m->chain = cps_new_array(p->s->run_arena, chain, p->nchains);
        m->up = cps_new_array(p->s->run_arena, uint8_t, p->nchains);
    }
    m->used = true;
    p->live[k / 64] |= 1ull << k % 64;
    return m;
}

/* Chain `c` of a semaphore gets its first update. */
static void
chain_begins(psem *m, unsigned c)
{
    unsigned at = m->nup++;
    for (; at > 0 && m->up[at - 1] > c; at--)
        m->up[at] = m->up[at - 1];
    m->up[at] = (uint8_t)c;
}

static void
add_update(prover *p, unsigned sem, unsigned c, upd u, int64_t amount)
{
    psem *m = sem_of(p, sem);
    chain *k = &m->chain[c];
    m->value += amount;
    const upd *last = k->now ? &k->u.data[k->now - 1] : NULL;
    u.up = (last ? last->up : 0) + CPS_MAX(amount, 0);
    u.shares = (last ? last->shares : 0) + u.share;
    if (amount < 0)
        prove_unlive(p, "a semaphore is counted down");
    if (p->round == 0) {
        u.before = u.vc;
        if (!k->u.n)
            chain_begins(m, c);
        cps_vec_push(p->s->run_arena, &k->u, u);
        p->events++;
    } else {
        upd *o = &k->u.data[k->now];
        o->vc = u.vc;
        o->rd = u.rd;
        o->wr = u.wr;
    }
    k->now++;
}

static void
add_reset(prover *p, engine *e, unsigned sem, int32_t value)
{
    psem *m = &p->sem[sem];
    if (!(p->live[sem / 64] >> sem % 64 & 1) && value == 0)
        return;
    m = sem_of(p, sem);
    m->value = value;
    if (p->round == 0) {
        reset r = {.vc = e->vc,
                   .before = e->vc,
                   .pos = p->pos[e->id],
                   .value = value,
                   .engine = e->id};
        r.issued = cps_new_array(p->s->run_arena, uint32_t, p->nchains);
        for (unsigned j = 0; j < m->nup; j++)
            r.issued[m->up[j]] = m->chain[m->up[j]].now;
        if (m->resets.n && m->resets.data[m->resets.n - 1].engine != e->id)
            undecided(p, NULL, "two engines clear one semaphore");
        cps_vec_push(p->s->run_arena, &m->resets, r);
    } else {
        m->resets.data[m->now].vc = e->vc;
    }
    m->now++;
}

static bool
ready(prover *p, const engine *e, const insn *i)
{
    for (unsigned w = 0; w < i->sy.nwait; w++) {
        const psem *m = &p->sem[i->sy.wait_idx[w]];
        uint32_t reg = i->sy.wait_value[w] % REGS;
        bool by_reg = i->sy.wait_mode[w] & 0x80;
        int64_t v = (int32_t)(by_reg ? e->reg[reg] : i->sy.wait_value[w]);
        if (by_reg && !(p->known[e->id] >> reg & 1)) {
            undecided(p, i, "a wait for a value that is not known");
            return false;
        }
        bool ok;
        switch (i->sy.wait_mode[w] & 0x0F) {
        case CPS_WAIT_SEM_EQ_IMM:
            ok = m->value == v;
            break;
        case CPS_WAIT_SEM_GE_IMM:
            ok = m->value >= v;
            break;
        case CPS_WAIT_SEM_GT_IMM:
            ok = m->value > v;
            break;
        case CPS_WAIT_SEM_LE_IMM:
            ok = m->value <= v;
            break;
        case CPS_WAIT_SEM_LT_IMM:
            ok = m->value < v;
            break;
        default:
            undecided(p, i, "a wait for an event");
            return false;
        }
        if (!ok)
            return false;
    }
    return true;
}

/* The waits of an instruction have passed: what that proves. */
static void
pass(prover *p, engine *e, const insn *i)
{
    for (unsigned w = 0; w < i->sy.nwait; w++) {
        psem *m = sem_of(p, i->sy.wait_idx[w]);
        unsigned mode = i->sy.wait_mode[w] & 0x0F;
        int64_t v = (int32_t)(i->sy.wait_mode[w] & 0x80 ? e->reg[i->sy.wait_value[w] % REGS]
                                                        : i->sy.wait_value[w]);
        bool up = mode == CPS_WAIT_SEM_EQ_IMM || mode == CPS_WAIT_SEM_GE_IMM ||
                  mode == CPS_WAIT_SEM_GT_IMM;
        bool down = mode == CPS_WAIT_SEM_EQ_IMM || !up;
        if (down)
            prove_fell(p, e, m, mode == CPS_WAIT_SEM_LT_IMM ? v - 1 : v);
        if (up)
            prove_rose(p, e, m, mode == CPS_WAIT_SEM_GT_IMM ? v + 1 : v);
        if (p->last && !up)
            prove_unlive(p, "a wait for a small value");
        else if (p->last)
            prove_settled(p, e, m, p->pos[e->id], mode == CPS_WAIT_SEM_EQ_IMM, v);
    }
    if (!i->sy.nwait)
        return;
    if (p->loops)
        p->loops->last_wait[e->id] = p->pos[e->id];
    // Claims only ever shrink; the round in which none does is the last.
    unsigned id = e->id;
    uint32_t k = p->nwaits[id]++;
    if (p->round == 0) {
        cps_vec_push(p->s->run_arena, &p->waits[id], e->vc);
        p->events++;
    } else {
        if (memcmp(p->waits[id].data[k], e->vc, sizeof(uint32_t) * p->s->nclock) != 0)
            p->changed = true;
        p->waits[id].data[k] = e->vc;
    }
}

static void
updates(prover *p, engine *e, const insn *i)
{
    for (unsigned k = 0; k < i->sy.nupdate; k++) {
        uint8_t mode = i->sy.update_mode[k];
        uint32_t v = i->sy.update_value[k], pos = p->pos[e->id];
        if (mode & 0x80) {
            if (!(p->known[e->id] >> v % REGS & 1))
                undecided(p, i, "an update by a value that is not known");
            v = e->reg[v % REGS];
        }
        bool done = mode & 0x10;
        upd u = {.vc = e->vc, .pos = pos, .rd = pos, .wr = done ? pos : e->vc[2 * e->id + 1]};
        int64_t amount = 0;
        switch (mode & 0x0F) {
        case CPS_UPDATE_SEM_INC_READ:
            amount = 1;
            break;
        case CPS_UPDATE_SEM_DEC_READ:
            amount = -1;
            break;
        case CPS_UPDATE_SEM_ADD_IMM_READ:
            amount = (int32_t)v;
            break;
        case CPS_UPDATE_SEM_SUB_IMM_READ:
            amount = -(int64_t)(int32_t)v;
            break;
        case CPS_UPDATE_SEM_WR_IMM_READ:
            if (i->sem->kind != SEM_SEQ)
                undecided(p, i, "a datapath instruction sets a semaphore");
            add_reset(p, e, i->sy.update_idx[k], (int32_t)v);
            continue;
        default:
            undecided(p, i, "an update of an event");
            continue;
        }
        u.share = (int32_t)amount;
        add_update(p, i->sy.update_idx[k], 2u * e->id + done, u, amount);
    }
}

/* ---- what instructions do ---- */

static void
accessed(prover *p, const engine *e)
{
    if (p->loops)
        p->loops->access[e->id] = p->pos[e->id];
}

/* In the first round: which act is the last to write a variable; in the last, whether this was it. All
 * rounds do the same in the same order. */
static void
writes(prover *p, const rect *r)
{
    if (r->space != SP_HBM)
        return;
    hbm_var *v = &p->s->vars.data[r->var];
    if (p->round == 0)
        p->written[r->var] = p->acts;
    else if (p->last)
        v->no_more = p->written[r->var] == p->acts; // on this core: see prove_pair.c for the other
}

void
prove_submit(cps_sim *s, engine *e, const insn *i, block *b)
{
    prover *p = s->prover;
    p->forks->works++;
    queue *q = &s->queues.data[b->queue];
    uint32_t n = ++p->transfers[b->queue];
    block *all = watched(p) ? drift_transfer(p, i, b) : b;
    p->acts++;
    if (p->round == 0) {
        p->events++;
        if (b->queue < CPS_ENGINES)
            cps_vec_push(s->run_arena, &p->submitted[b->queue], keep_block(p->shapes, b));
        for (unsigned r = 0; r < DMA_RINGS; r++)
            for (uint32_t k = 0; k < b->ring[r].writes.n; k++)
                writes(p, &b->ring[r].writes.data[k]);
    }
    int32_t parts = (int32_t)s->t->dma_engines;
    upd u = {
        .vc = e->vc,
        .pos = n,
    };
    // What a transfer knows, a later one of its queue knows too: they complete in order.
    q->vc = vc_join(s, q->vc, e->vc);
    u.vc = q->vc;
    u.share = b->increment % parts == 0 ? b->increment / parts : b->increment;
    if (b->increment)
        add_update(p, b->semaphore, 2 * CPS_ENGINES + b->queue, u, b->increment);
    if (!p->last)
        return;
    xfer x = {.b = all, .by = i, .seq = n, .vc = e->vc};
    for (unsigned r = 0; r < (unsigned)parts; r++)
        race_transfer(s, &x, r);
    for (unsigned r = 0; r < DMA_RINGS; r++)
        for (uint32_t k = 0; k < b->ring[r].writes.n; k++)
            writes(p, &b->ring[r].writes.data[k]);
}

void
prove_access(cps_sim *s, engine *e, const insn *i, const rect *r, bool write)
{
    prover *p = s->prover;
    p->acts++;
    if (write && p->round == 0)
        writes(p, r);
    rect room;
    accessed(p, e);
    if (watched(p))
        drift_access(p, r, &p->loops->from, extent_of(s, i, CPS_F_MEM_2D_start));
    if (!p->last)
        return;
    e->count = p->pos[e->id];
    race_access(s, watched(p) ? drift_swept(p, r, &p->loops->from, write, &room) : r, write, i, e->vc, true);
    if (write)
        writes(p, r);
}

void
prove_look(cps_sim *s, engine *e, const insn *i, const rect *r)
{
    accessed(s->prover, e);
    if (!s->prover->last)
        return;
    e->count = s->prover->pos[e->id];
    race_look(s, r, i, e->vc);
}

void
prove_approx(cps_sim *s)
{
    s->prover->approx = true;
}

void
prove_scatter(cps_sim *s, const insn *i)
{
    if (!s->prover->scatter)
        s->prover->scatter = i;
}

bool
prove_known(const cps_sim *s, const engine *e, unsigned reg)
{
    return s->prover->known[e->id] >> (reg % REGS) & 1;
}

void
prove_loaded(cps_sim *s, engine *e, unsigned reg, const rect *r)
{
    fork_loaded(s, s->prover->forks, e, reg, r);
}

static void
operand(prover *p, const engine *e, const insn *i, const opnd *o, bool write, bool by_reg)
{
    rect r = opnd_rect(o), room;
    const rect *all = &r;
    if (by_reg && watched(p))
        all = drift_swept(p, &r, &p->loops->reg[e->id][o->reg % REGS], write, &room);
    race_access(p->s, all, write, i, e->vc, false);
}

/* Whether the operands are in memory. A run would end here; the proof says nothing of such kernels. */
static bool
in_memory(prover *p, engine *e, insn *i)
{
    cps_diags *said = p->s->d;
    p->s->d = p->quiet;
    bool ok = bind_operands(p->s, e, i);
    p->s->d = said;
    if (!ok) {
        p->certain |= !p->open;
        undecided(p, i, "an address that is no memory");
    }
    return ok;
}

/* The footprints of a datapath instruction, which may name registers. */
static void
data(prover *p, engine *e, insn *i)
{
    p->forks->works++;
    for (unsigned k = 0; k < i->nop; k++)
        if (i->op[k].group) {
            undecided(p, i, "elements that are named in memory");
            return;
        }
    for (unsigned k = 0; k < i->nop; k++)
        if (i->op[k].reg != 0xFF && !(p->known[e->id] >> i->op[k].reg % REGS & 1)) {
            undecided(p, i, "an address that is not known");
            return;
        }
    for (unsigned k = 0; k < i->nsc; k++)
        if (i->sc[k].mode == SC_REG && !(p->known[e->id] >> i->sc[k].at.reg % REGS & 1)) {
            undecided(p, i, "an address that is not known");
            return;
        }
    p->approx |= i->sem->kind == SEM_OWN;
    accessed(p, e);
    if (watched(p) && !i->placed)
        drift_operands(p, e, i);
    if ((p->round == 0 || p->last) && !in_memory(p, e, i))
        return;
    if (!p->last)
        return;
    e->count = p->pos[e->id];
    for (unsigned k = 0; k < i->nop; k++)
        operand(p, e, i, &i->op[k], i->op[k].out, i->op[k].reg != 0xFF);
    for (unsigned k = 0; k < i->nsc; k++)
        if (i->sc[k].mode != SC_IMM)
            operand(p, e, i, &i->sc[k].at, false, i->sc[k].mode == SC_REG);
}

/* The registers that an instruction of the sequencer reads and writes; false: it is not one
 * that the proof can follow with them. */
static bool
control(prover *p, engine *e, insn *i)
{
    cps_sim *s = p->s;
    uint64_t reads = 0, writes = 0, *known = &p->known[e->id];
    bool branch = false;
    if (!seq_registers(i, &reads, &writes, &branch))
        return false;
    bool all = (reads & ~*known) == 0;
    if (branch && !all) {
        if (watched(p))
            drift_spoil(p);
        const char *why = fork_branch(s, p->forks, e, i, *known);
        if (why)
            undecided(p, i, why);
        return true;
    }
    for (unsigned r = 0; writes >> r && r < REGS; r++)
        if (writes >> r & 1)
            p->forks->of[e->id][r] = 0;
    if (watched(p))
        drift_uses(p, e->id, reads, writes);
    if (all && watched(p))
        drift_control(p, e, i);
    if (all && !i->sem->exec(s, e, i))
        undecided(p, i, "an instruction that faults");
    *known = all ? *known | writes : *known & ~writes;
    return true;
}

static void
sequencer(prover *p, engine *e, insn *i)
{
    cps_sim *s = p->s;
    if (control(p, e, i))
        return;
    if (watched(p))
        drift_addresses(p, e, i);
    if (i->sem->exec == exec_sem_clear) {
        for (unsigned k = 0; k < SEMS; k++) {
            uint64_t rest = p->live[k / 64] >> k % 64;
            if (!rest) { // others are zero
                k |= 63;
                continue;
            }
            k += (unsigned)__builtin_ctzll(rest);
            if (sem_clear_hits(i, k))
                add_reset(p, e, k, 0);
        }
    } else if (i->sem->exec == exec_drain || i->sem->exec == exec_core_barrier) {
        e->vc = vc_with(s, e->vc, 2u * e->id, p->pos[e->id]);
        e->vc = vc_with(s, e->vc, 2u * e->id + 1, p->pos[e->id]);
    } else if (i->sem->exec == exec_tensor_load || i->sem->exec == exec_tensor_store) {
        uint64_t writes = 0;
        p->forks->works += i->sem->exec == exec_tensor_store;
        if (!seq_memory(s, e, i, &writes))
            undecided(p, i, "an address that is not known");
        p->known[e->id] &= ~writes;
        if (watched(p))
            drift_uses(p, e->id, 0, writes);
    } else if (i->sem->exec == exec_trigger) {
        cps_arena_release(s->making, p->blocks);
        prove_submit(s, e, i, i->block);
    } else if (i->sem->exec == exec_indirect) {
        cps_arena_release(s->making, p->blocks);
        if (!dge_rows(s, e, i))
            undecided(p, i, "an address that is not known");
    } else if (i->sem->exec == exec_direct2d || i->sem->exec == exec_dma_transpose) {
        cps_arena_release(s->making, p->blocks);
        if (!dge_static(s, e, i))
            undecided(p, i, "an address that is not known");
        else if (p->round > 0) // on the engine's own queue
            prove_submit(s, e, i, kept_block(p->shapes, p->submitted[e->id].data[p->transfers[e->id]], p->last || watched(p)));
        else if (!i->sem->exec(s, e, i))
            undecided(p, i, "an instruction that faults");
    } else if (i->sem->exec == exec_halt) {
        e->halted = true;
    } else if (i->sem->exec != exec_nop && i->sem->exec != exec_table_load) {
        undecided(p, i, "an instruction that the proof does not know");
    }
}

/* One walk: each engine goes on until it has to wait; transfers are complete at once. */
static bool
walk(prover *p)
{
    cps_sim *s = p->s;
    uint32_t *zero = cps_new_array(s->run_arena, uint32_t, s->nclock);
    cps_arena **clocks = &p->clocks[p->round % 2];
    cps_arena_destroy(*clocks);
    s->clocks = *clocks = cps_arena_create();
    fork_walk(p->forks);
    memset(p->pos, 0, sizeof p->pos);
    memset(p->known, 0, sizeof p->known);
    memset(p->transfers, 0, sizeof p->transfers);
    memset(p->nwaits, 0, sizeof p->nwaits);
    memset(p->live, 0, sizeof p->live);
    p->acts = 0;
    if (p->loops)
        loops_walk(p);
    for (unsigned k = 0; k < SEMS; k++) {
        psem *m = &p->sem[k];
        m->value = 0;
        for (unsigned j = 0; j < m->nup; j++) {
            chain *h = &m->chain[m->up[j]];
            for (uint32_t i = 0; p->round && i < h->u.n; i++)
                h->u.data[i].before = h->u.data[i].vc;
            h->now = 0;
        }
        for (uint32_t i = 0; p->round && i < m->resets.n; i++)
            m->resets.data[i].before = m->resets.data[i].vc;
        m->now = 0;
    }
    for (unsigned k = 0; k < CPS_ENGINES; k++) {
        engine *e = &s->eng[k];
        e->pc = 0;
        e->halted = e->n == 0;
        e->vc = zero;
        memset(e->reg, 0, sizeof e->reg);
    }
    for (uint32_t q = 0; q < s->queues.n; q++)
        s->queues.data[q].vc = zero;
    bool moved = true;
    while (moved && !p->open) {
        moved = false;
        for (unsigned k = 0; k < CPS_ENGINES; k++) {
            engine *e = &s->eng[k];
            while (!e->halted && !p->open && !(p->loops && p->loops->parked[k])) {
                if (e->pc >= e->n) {
                    e->halted = true;
                    break;
                }
                insn *i = &e->code[e->pc];
                p->pos[k]++;
                if (!ready(p, e, i)) {
                    p->pos[k]--;
                    break;
                }
                moved = true;
                e->pc++;
                p->steps++;
                if (p->steps - (p->loops ? p->loops->steps : 0) > STEPS_MAX || p->events > EVENTS_MAX)
                    too_long(p, i);
                pass(p, e, i);
                if (watched(p))
                    drift_sync(p, e, i);
                if (i->sem->kind == SEM_SEQ)
                    sequencer(p, e, i);
                else
                    data(p, e, i);
                updates(p, e, i);
                if (p->loops && !e->halted)
                    loops_park(p, e, i);
            }
        }
        if (p->loops)
            moved = loops_turn(p, moved);
    }
    if (p->loops)
        loops_end(p);
    bool ends = !p->open;
    for (unsigned k = 0; k < CPS_ENGINES; k++)
        ends = ends && s->eng[k].halted;
    return ends;
}

/* ---- the proof ---- */

static void
stuck(prover *p)
{
    cps_sim *s = p->s;
    cps_error(s->d, CPS_E8301, CPS_NOSPAN, "kernel '%s' is deadlocked: nothing can go on",
              s->k->name);
    for (unsigned k = 0; k < CPS_ENGINES; k++) {
        engine *e = &s->eng[k];
        if (e->halted)
            continue;
        const insn *i = &e->code[e->pc];
        cps_buf b = {0};
        insn_name(s, i, &b);
        for (unsigned w = 0; w < i->sy.nwait; w++)
            cps_note(s->d, CPS_NOSPAN, "%s waits for semaphore %u (is %lld, wants %u)", b.data,
                     i->sy.wait_idx[w], (long long)p->sem[i->sy.wait_idx[w]].value,
                     i->sy.wait_value[w]);
        cps_buf_fini(&b);
    }
}

/* A walk that hands accesses to the race finder. */
static bool
last_walk(prover *p, cps_diags *d)
{
    cps_sim *s = p->s;
    cps_diags *said = s->d;
    for (uint32_t k = 0; k < s->vars.n; k++)
        s->vars.data[k].unwritten = !p->written[k];
    p->last = true;
    s->d = d;
    bool ends = walk(p);
    s->d = said;
    for (uint32_t k = 0; k < s->vars.n; k++)
        s->vars.data[k].unwritten = s->vars.data[k].no_more = false;
    return ends;
}

/* Mostly the claims of the first round hold, so the round that finds that out looks for races too,
 * and is the last when it finds none. Else it counts as a round like any other. */
static bool
guess_last(prover *p, cps_diags *quiet, bool *ends)
{
    cps_sim *s = p->s;
    const char *live = p->open_live;
    uint64_t before = p->steps;
    p->round++;
    *ends = last_walk(p, quiet);
    if (*ends && !p->changed && s->rep.races == 0) {
        p->steps += p->steps - before; // as if it had been walked once more
        return true;
    }
    p->last = false;
    p->open_live = live;
    s->rep.races = 0;
    race_reset(s);
    return false;
}

/* Follows one path, all turns of its loops or (`skip`) some that stand for the others. Whether the verdict
 * is one. */
static bool
follow(cps_sim *s, forks *f, cps_diags *quiet, bool skip, cps_proof *out)
{
    cps_diags *d = s->d;
    *out = (cps_proof){.races = CPS_PROOF_OPEN, .deadlock = CPS_PROOF_OPEN};
    cps_arena_destroy(s->run_arena);
    s->run_arena = cps_arena_create();
    memset(&f->origins, 0, sizeof f->origins);
    memset(&s->rep, 0, sizeof s->rep);
    s->opts = (cps_sim_opts){.no_data = true};
    s->rec = NULL;
    s->fault = false;
    s->vc0 = 0;
    s->nclock = 2 * CPS_ENGINES + s->queues.n;
    sync_reset(s);
    race_reset(s);
    prover *p = cps_new(s->run_arena, prover);
    p->s = s;
    p->forks = f;
    p->quiet = quiet;
    p->nchains = s->nclock;
    p->shapes = shapes_new(s->run_arena);
    s->making = cps_arena_create();
    (void)cps_arena_raw(s->making, 1); // or a release would give its memory back
    p->blocks = cps_arena_mark(s->making);
    p->written = cps_new_array(s->run_arena, uint32_t, s->vars.n);
    p->loops = skip ? loops_new(s) : NULL;
    s->prover = p;
    bool ends = p->nchains <= CHAINS_MAX && walk(p);
    if (p->nchains > CHAINS_MAX)
        undecided(p, NULL, "too many queues");
    bool done = ends && !s->log && guess_last(p, quiet, &ends);
    while (ends && (p->round == 0 || p->changed)) {
        p->round++;
        p->changed = false;
        ends = walk(p);
    }
    if (ends) {
        p->round++;
        bool sure = !p->approx && f->nchoices < 2; // what fails, fails in some run
        if (!done)
            ends = last_walk(p, sure ? d : quiet);
        for (unsigned k = 0; k < SEMS; k++)
            if (p->sem[k].used)
                prove_clears(p, &p->sem[k]);
        bool raced = s->rep.races > 0; // if it does not end it was too long, and shows no more than that
        out->races = raced && sure ? CPS_PROOF_FAILS : raced || !ends ? CPS_PROOF_OPEN : CPS_PROOF_HOLDS;
        out->deadlock = p->open_live || !ends ? CPS_PROOF_OPEN : CPS_PROOF_HOLDS;
        if (ends && out->races == CPS_PROOF_OPEN)
            p->open = p->approx ? "an access that may touch fewer bytes than the proof assumes"
                                : "a path that may not exist";
        if (p->scatter && out->races != CPS_PROOF_FAILS) {
            out->races = CPS_PROOF_OPEN;
            p->open = "a scatter, whose rows race where two indices are equal";
            p->open_at = p->scatter;
        }
        out->why = p->open ? p->open : p->open_live;
    } else if (!p->open && f->nchoices > 1) {
        out->why = "a path that may not exist";
    } else if (!p->open) {
        stuck(p);
        out->deadlock = CPS_PROOF_FAILS;
        out->why = "a run that gets stuck";
    } else {
        out->why = p->open;
    }
    out->leaves = p->leaves && f->nchoices < 2; // or a path that may not exist
    if (out->leaves)
        load_fail(s, p->leaves_at, CPS_E8302, "%s", p->leaves);
    out->engine = p->open_at ? p->open_at->engine : CPS_ENGINES;
    out->index = p->open_at ? p->open_at->index : 0;
    out->instructions = p->steps / (p->round + 1);
    out->rounds = p->round;
    out->turns_left_out = skip ? p->loops->left_out : 0;
    s->prover = NULL;
    s->clocks = NULL;
    cps_arena_destroy(s->making);
    s->making = NULL;
    cps_arena_destroy(p->clocks[0]);
    cps_arena_destroy(p->clocks[1]);
    if (out->races == CPS_PROOF_HOLDS && out->deadlock == CPS_PROOF_HOLDS)
        return !skip || !p->loops->refuted;
    bool fails = out->races == CPS_PROOF_FAILS || out->deadlock == CPS_PROOF_FAILS;
    return !skip || p->certain || (!p->loops->met && !fails); // what fails is to be told
}

/* All runs that go one way at every branch. Whether there is one is not known where values from
 * memory decide twice: such a path is proved or left open. */
static void
prove_path(cps_sim *s, forks *f, cps_diags *quiet, cps_proof *out)
{
    cps_diags *d = s->d;
    const forks before = *f;
    const uint32_t said = s->log ? s->log->n : 0; // of the paths before
    cps_diags *told = s->d = cps_diags_create();
    bool sure = !s->every_turn && follow(s, f, quiet, true, out) && !cps_diags_errors(told);
    s->d = d;
    cps_diags_destroy(told);
    if (sure)
        return;
    *f = before;
    if (s->log)
        s->log->n = said;
    follow(s, f, quiet, false, out);
}

// The worse of two verdicts: fails, open, holds.
static cps_verdict
worse(cps_verdict a, cps_verdict b)
{
    if (a == CPS_PROOF_FAILS || b == CPS_PROOF_FAILS)
        return CPS_PROOF_FAILS;
    return a == CPS_PROOF_OPEN ? a : b;
}

void
cps_sim_prove_every_turn(cps_sim *s, bool on)
{
    s->every_turn = on;
}

bool
cps_sim_prove(cps_sim *s, cps_proof *out, cps_diags *d)
{
    cps_assert(s->k != NULL);
    s->d = d;
    cps_diags *quiet = cps_diags_create();
    forks f = {.nchoices = 0};
    prove_path(s, &f, quiet, out);
    out->paths = f.nchoices > 1;
    while (out->deadlock != CPS_PROOF_FAILS && fork_next(&f)) {
        cps_proof next;
        prove_path(s, &f, quiet, &next);
        next.paths = out->paths || f.nchoices > 1;
        next.races = worse(out->races, next.races);
        next.deadlock = worse(out->deadlock, next.deadlock);
        next.leaves |= out->leaves;
        if (!next.why) {
            next.why = out->why;
            next.engine = out->engine;
            next.index = out->index;
        }
        next.instructions = CPS_MAX(next.instructions, out->instructions);
        next.rounds = CPS_MAX(next.rounds, out->rounds);
        next.turns_left_out += out->turns_left_out;
        *out = next;
    }
    s->d = NULL;
    cps_diags_destroy(quiet);
    return out->races != CPS_PROOF_FAILS && out->deadlock != CPS_PROOF_FAILS && !out->leaves;
}
