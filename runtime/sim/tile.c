/* Element-wise instructions as calls of the loops of wide.h over all their rows: two tensors, a tensor and
 * scalars, copies and casts whose operands are fp32 or bf16 in pieces (pieces.c). Which loop it is and
 * where the rows lie is found once when the addresses are static. */
#include "runtime/sim/machine.h"

/* The operator as the wide loops have it; WIDE_OPS when they have not. */
static wide_op
wide_of(unsigned op)
{
    switch (op) {
    case CPS_ALU_ADD:
        return WIDE_ADD;
    case CPS_ALU_SUBTRACT:
        return WIDE_SUB;
    case CPS_ALU_MULT:
        return WIDE_MUL;
    case CPS_ALU_MAX:
        return WIDE_MAX;
    case CPS_ALU_MIN:
        return WIDE_MIN;
    default:
        return WIDE_OPS;
    }
}

bool
tile_step(unsigned op, bool swapped, float a, wide_step *out)
{
    *out = (wide_step){1, -0.0f};
    switch (op) {
    case CPS_ALU_BYPASS:
        return true;
    case CPS_ALU_ADD:
        out->add = a;
        return true;
    case CPS_ALU_SUBTRACT:
        out->add = swapped ? a : -a;
        out->mul = swapped ? -1 : 1;
        return true;
    case CPS_ALU_MULT:
        out->mul = a;
        return true;
    default:
        return false;
    }
}

/* The steps of `n` rows with scalars a and b; false when the loops have not what they need. */
static bool
steps_of(const insn *i, const float *a, const float *b, unsigned n, wide_step (*step)[2], bool *two)
{
    *two = false;
    for (unsigned r = 0; r < n; r++) {
        wide_step *t = step[r];
        if (!tile_step(i->op0, i->rev & 1, a[r], &t[0]) || !tile_step(i->op1, i->rev & 2, b[r], &t[1]) ||
            a[r] != a[r] || b[r] != b[r])
            return false;
        if (t[0].add == 0 && signbit(t[0].add) && t[1].mul == 1) { // a product, then a sum
            t[0].add = t[1].add;
            t[1].add = -0.0f;
        } else {
            *two |= i->op1 != CPS_ALU_BYPASS;
        }
    }
    return true;
}

static bool
make(cps_sim *s, const insn *i, tile *t)
{
    const opnd *out = &i->op[i->nop - 1], *a = &i->op[0], *b = i->nop == 3 ? &i->op[1] : NULL;
    *t = (tile){.scaled = false};
    if (!pieces_of(s, &t->p, out, a, b))
        return false;
    for (unsigned k = 0; k < 3; k++) { // an operand that is not there is the one that is
        t->side[k] = t->p.side[t->p.o[k] ? k : 1];
        t->side[k].at = t->p.base[t->p.o[k] ? k : 1];
    }
    unsigned kind = wide_kind(&t->side[0], &t->side[1]);
    if (i->sem->exec == exec_tt) {
        wide_op op = wide_of(i->op0);
        if (op == WIDE_OPS || a->dtype != b->dtype)
            return false;
        t->loop = s->wide->pair[op][kind];
    } else if (i->sem->exec == exec_ts && (i->op0 != CPS_ALU_BYPASS || i->op1 != CPS_ALU_BYPASS)) {
        float x = cps_bits_f32(i->sc[0].bits), y = cps_bits_f32(i->sc[1].bits);
        bool two = false;
        t->scaled = i->sc[0].mode != SC_IMM || i->sc[1].mode != SC_IMM;
        if (!t->scaled && !steps_of(i, &x, &y, 1, t->step, &two))
            return false;
        t->loop = s->wide->steps[two][kind];
    } else {
        t->loop = s->wide->cast[kind];
    }
    return true;
}

enum { HIGH = 16, PIECES = 64 };

/* All pieces of a few rows, then of the next: what lies in one row is passed through in its order, and what
 * several pieces read stays near. */
static void
run(const tile *t, wide_tile *loop, const wide_step (*step)[2], unsigned apart, unsigned rows)
{
    if (t->p.n == 1) {
        loop(&t->side[0], &t->side[1], &t->side[2], step, apart, rows, t->p.len);
        return;
    }
    for (unsigned first = 0; first < t->p.n; first += PIECES) {
        ptrdiff_t off[3][PIECES];
        unsigned some = CPS_MIN((unsigned)PIECES, t->p.n - first);
        for (unsigned j = 0; j < some; j++)
            for (unsigned k = 0; k < 3; k++)
                off[k][j] = piece_offset(&t->p, t->p.o[k] ? k : 1, first + j);
        for (unsigned r = 0; r < rows; r += HIGH) {
            wide_side at[3] = {t->side[0], t->side[1], t->side[2]};
            for (unsigned j = 0; j < some; j++) {
                for (unsigned k = 0; k < 3; k++)
                    at[k].at = t->side[k].at + r * at[k].pitch + off[k][j];
                loop(&at[0], &at[1], &at[2], step + r * apart, apart, CPS_MIN((unsigned)HIGH, rows - r), t->p.len);
            }
        }
    }
}

bool
tile_run(cps_sim *s, insn *i)
{
    tile once, *t = i->tile ? i->tile : &once;
    if (!i->tile && !make(s, i, t))
        return false;
    if (!i->tile && i->placed)
        i->tile = memcpy(cps_new(s->load_arena, tile), t, sizeof *t);
    if (s->opts.stochastic && t->side[0].bf16)
        return false; // rounds at random, element by element
    if (!t->scaled) {
        run(t, t->loop, (const wide_step(*)[2])t->step, 0, i->rows);
        return true;
    }
    float a[LANES], b[LANES];
    wide_step step[LANES][2];
    bool two;
    scalar_f32(s, &i->sc[0], i->rows, a);
    scalar_f32(s, &i->sc[1], i->rows, b);
    if (!steps_of(i, a, b, i->rows, step, &two))
        return false;
    run(t, s->wide->steps[two][wide_kind(&t->side[0], &t->side[1])], (const wide_step(*)[2])step, 1,
        i->rows);
    return true;
}
