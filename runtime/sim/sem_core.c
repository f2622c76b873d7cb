/* What a core does together with others: the barrier of a pair.
 *
 * NKI's core_barrier: each core increments the other's semaphore, then waits for its own. That is
 * one meeting, so the semaphore itself need not be moved. The same program runs on both cores: the
 * record of an engine meets the record with the same number on the same engine of the other core. */
#include "runtime/sim/group.h"

#define F(x) (unsigned)cps_isa_get(&i->b, x)

bool
prep_core_barrier(cps_sim *s, insn *i)
{
    return i->sy.nupdate == 0 || load_fail(s, i, CPS_E8202, "a barrier with an update has no model");
}

static bool
waits_at(const engine *e, uint64_t number)
{
    const insn *i = e->held ? &e->code[e->pc - 1] : NULL;
    return i && i->sem->exec == exec_core_barrier &&
           cps_isa_get(&i->b, CPS_F_PSEUDO_CORE_BARRIER_barrier) == number;
}

/* The meeting is known a semaphore's way later: a 4-byte write into the other core's window, as a
 * DMA engine's completion is, and taken to be as long under way. */
bool
exec_core_barrier(cps_sim *s, engine *e, insn *i)
{
    exec_drain(s, e, i);
    if (!s->peer) {
        if (s->k->cores <= 1)
            return true; // nobody to meet
        return run_fault(s, i, CPS_E8305, "core %d of %d meets the other one, and runs alone",
                         s->k->core, s->k->cores);
    }
    engine *o = &s->peer->eng[e->id];
    if (!waits_at(o, F(CPS_F_PSEUDO_CORE_BARRIER_barrier))) {
        e->held = true;
        return true;
    }
    cps_ps t = CPS_MAX(e->free, o->free) + ns_ps(s->t->dma_receipt_ns);
    e->vc = o->vc = vc_join(s, e->vc, o->vc);
    e->free = o->free = t;
    o->held = false;
    rec_let_go(s->peer, o->turn.last, s, e->turn.last);
    cps_sim *both[2] = {s, s->peer};
    for (unsigned k = 0; k < 2; k++) {
        engine *en = &both[k]->eng[e->id];
        both[k]->end = CPS_MAX(both[k]->end, t);
        if (both[k]->rec && en->turn.last != REC_NONE) {
            rec_insn *r = &both[k]->rec->insn.data[en->turn.last];
            r->free = r->self = r->done = t;
        }
    }
    ev_turn(s->peer, e->id, t);
    group_meet(s, t);
    return true;
}
