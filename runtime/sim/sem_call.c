/* Functions inside a stream, and the barrier over all engines of the core.
 *
 * A call leaves the number of the next bundle in the callee's return registers and goes on
 * behind its FUNCTION_BEGIN; a return goes back, or ends the stream when nothing was called.
 * The barrier is a counted join (the compiler's reference simulator): each engine arrives when
 * everything it started is over, and all go on together when the last has come. */
#include "runtime/sim/machine.h"

#define F(x) (unsigned)cps_isa_get(&i->b, x)

/* ---- functions ---- */

static bool
same_name(const cps_bundle *a, cps_field fa, const cps_bundle *b, cps_field fb)
{
    unsigned n = cps_fields[fa].bits / 8u;
    return memcmp(a->b + cps_fields[fa].byte, b->b + cps_fields[fb].byte, n) == 0;
}

bool
prep_function_call(cps_sim *s, insn *i)
{
    const cps_kstream *st = &s->k->stream[i->engine];
    uint8_t begin = cps_isa_opcode(CPS_INSN_PSEUDO_FUNCTION_BEGIN, s->k->gen);
    for (uint32_t k = 0; k < st->code.n; k++) {
        const cps_bundle *b = &st->code.data[k];
        if (b->b[0] == begin && same_name(&i->b, CPS_F_PSEUDO_FUNCTION_CALL_name, b,
                                          CPS_F_PSEUDO_FUNCTION_BEGIN_name)) {
            i->set = k;
            return true;
        }
    }
    return load_fail(s, i, CPS_E8202, "there is no function '%.36s' in this stream",
                     (const char *)i->b.b + cps_fields[CPS_F_PSEUDO_FUNCTION_CALL_name].byte);
}

/* A return belongs to the last function that begins before it. */
bool
prep_function_return(cps_sim *s, insn *i)
{
    const cps_kstream *st = &s->k->stream[i->engine];
    uint8_t begin = cps_isa_opcode(CPS_INSN_PSEUDO_FUNCTION_BEGIN, s->k->gen);
    for (uint32_t k = i->index; k-- > 0;) {
        if (st->code.data[k].b[0] == begin) {
            i->set = k;
            return true;
        }
    }
    return load_fail(s, i, CPS_E8202, "no function begins before it");
}

static uint32_t *
return_register(engine *e, const insn *i, cps_field f)
{
    const cps_bundle *begin = &e->code[i->set].b;
    return &e->reg[cps_isa_get(begin, f) % REGS];
}

bool
exec_function_call(cps_sim *s, engine *e, insn *i)
{
    (void)s;
    *return_register(e, i, CPS_F_PSEUDO_FUNCTION_BEGIN_return_hi) = 0;
    *return_register(e, i, CPS_F_PSEUDO_FUNCTION_BEGIN_return_lo) = e->pc;
    e->pc = i->set + 1;
    e->depth++;
    return true;
}

bool
exec_function_return(cps_sim *s, engine *e, insn *i)
{
    if (e->depth == 0) {
        e->halted = true;
        return true;
    }
    uint32_t to = *return_register(e, i, CPS_F_PSEUDO_FUNCTION_BEGIN_return_lo);
    if (to > e->n)
        return run_fault(s, i, CPS_E8302, "return to bundle %u of %u", to, e->n);
    e->depth--;
    e->pc = to;
    return true;
}

/* ---- barriers ---- */

bool
prep_barrier(cps_sim *s, insn *i)
{
    return i->sy.nupdate == 0 ||
           load_fail(s, i, CPS_E8202, "a barrier with an update has no model");
}

bool
exec_barrier(cps_sim *s, engine *e, insn *i)
{
    unsigned all = 0;
    exec_drain(s, e, i);
    for (unsigned k = 0; k < CPS_ENGINES; k++)
        all |= s->eng[k].n ? 1u << k : 0;
    s->join.vc = s->join.arrived ? vc_join(s, s->join.vc, e->vc) : e->vc;
    s->join.arrived |= 1u << e->id;
    s->join.time = CPS_MAX(s->join.time, e->free);
    e->held = s->join.arrived != all;
    if (e->held)
        return true;
    for (unsigned k = 0; k < CPS_ENGINES; k++) {
        engine *en = &s->eng[k];
        if (!(all >> k & 1))
            continue;
        en->held = false;
        en->vc = s->join.vc;
        en->free = s->join.time + ns_ps(s->t->sync_semaphore_ns);
        if (s->rec && en->turn.last != REC_NONE) {
            rec_insn *r = &s->rec->insn.data[en->turn.last];
            r->free = r->self = r->done = en->free;
        }
        if (en != e)
            ev_turn(s, k, en->free);
    }
    s->join = (barrier){.arrived = 0};
    return true;
}
