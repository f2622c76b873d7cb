/* Values from memory that branches of a proof depend on.
 *
 * The proof moves no data, so a register that an instruction loads holds a value it does not
 * know. Two such values are the same one when they come from the same bytes and nothing that
 * may write memory stands between the loads in the walk: what is ordered in every run is so in
 * the walk, and what is not ordered with a load is a race, which the proof reports. A branch on
 * such a value is followed both ways, one path after the other, and every engine that asks goes
 * the same way. A second question about the same value is left undecided: its answer may
 * depend on the first. */
#include "runtime/sim/prove.h"

#define F(x) (unsigned)cps_isa_get(&i->b, x)

void
fork_walk(forks *f)
{
    f->origins.n = 0;
    f->works = 0;
    memset(f->of, 0, sizeof f->of);
}

void
fork_loaded(cps_sim *s, forks *f, const engine *e, unsigned reg, const rect *r)
{
    uint32_t k = 0;
    for (; k < f->origins.n; k++) {
        const origin *o = &f->origins.data[k];
        if (o->works == f->works && o->where.space == r->space && o->where.var == r->var &&
            o->where.base == r->base && o->where.run == r->run)
            break;
    }
    if (k == f->origins.n) {
        origin o = {.where = *r, .works = f->works};
        cps_vec_push(s->run_arena, &f->origins, o);
    }
    f->of[e->id][reg % REGS] = k + 1;
}

/* Which way the path goes at a question, NULL when it cannot be asked. */
static const choice *
ask(forks *f, uint32_t of, unsigned op, int32_t than)
{
    for (unsigned k = 0; k < f->nchoices; k++) {
        const choice *c = &f->choices[k];
        if (c->origin == of)
            return c->op == op && c->than == than ? c : NULL;
    }
    if (f->nchoices == CHOICES_MAX)
        return NULL;
    f->choices[f->nchoices] = (choice){.origin = of, .op = op, .than = than};
    return &f->choices[f->nchoices++];
}

const char *
fork_branch(cps_sim *s, forks *f, engine *e, insn *i, uint64_t known)
{
    unsigned op = F(CPS_F_CTRL_BR_cmp_op), reg = F(CPS_F_CTRL_BR_cmp_reg0) % REGS;
    unsigned other = F(CPS_F_CTRL_BR_cmp_reg1) % REGS;
    bool by_reg = op >= CPS_BR_CMP_OP_LT_REG;
    if (!f->of[e->id][reg] || (by_reg && !(known >> other & 1)) ||
        F(CPS_F_CTRL_BR_target_mode) != CPS_BR_TARGET_MODE_RELATIVE_IMMEDIATE)
        return "a branch on a value that is not known";
    int32_t than =
        by_reg ? (int32_t)e->reg[other] : (int32_t)F(CPS_F_CTRL_BR_cmp_imm);
    const choice *c = ask(f, f->of[e->id][reg], op, than);
    if (!c)
        return "branches on more values, or other ones, than the proof follows";
    // A value that goes this way, if there is one near the other side of the comparison.
    uint32_t keep = e->reg[reg], pc = e->pc;
    for (int d = -1; d <= 1; d++) {
        e->reg[reg] = (uint32_t)than + (uint32_t)d;
        e->pc = pc;
        if (!i->sem->exec(s, e, i))
            return "an instruction that faults";
        if ((e->pc != pc) == c->taken)
            break;
    }
    e->reg[reg] = keep;
    return NULL;
}

bool
fork_next(forks *f)
{
    while (f->nchoices && f->choices[f->nchoices - 1].taken)
        f->nchoices--;
    if (!f->nchoices)
        return false;
    f->choices[f->nchoices - 1].taken = true;
    return true;
}
