/* Registers of the sequencers: which one holds each register of the tile program.
 *
 * A register is held from its first use to its last, or, used in a body that it is declared
 * outside of, as long as that body: control may come by again. The places of others are free
 * then. Every engine holds all of them, in the same places. */
#include "codegen/select.h"

#include <stdlib.h>

typedef struct life {
    uint32_t reg, from, to; // instructions
} life;

typedef struct lives {
    const cps_tfunc *f;
    life *of;        // per buffer
    uint32_t *close; // where the body that an instruction opens ends
    CPS_VEC(uint32_t) open;
} lives;

static void
extend(life *l, uint32_t from, uint32_t to)
{
    l->from = CPS_MIN(l->from, from);
    l->to = CPS_MAX(l->to, to);
}

static void
used(lives *s, uint32_t buf, uint32_t i)
{
    const cps_tbuf *b = &s->f->bufs.data[buf];
    uint32_t out = b->depth < s->open.n ? s->open.data[b->depth] : i;
    if (b->space == CPS_REG)
        extend(&s->of[buf], out, out == i ? i : s->close[out]);
}

// The counter of a loop and its bounds are read where it ends.
static void
uses(lives *s, uint32_t i)
{
    const cps_tinst *x = &s->f->insts.data[i];
    for (int k = 0; k < x->nout + x->nin; k++) {
        const cps_toper *o = k < x->nout ? &x->out[k] : &x->in[k - x->nout];
        if (o->kind == CPS_TO_REG) {
            used(s, o->id, i);
            if (x->op == CPS_T_LOOP)
                extend(&s->of[o->id], i, s->close[i]);
        } else if (o->kind == CPS_TO_VIEW && s->f->views.data[o->id].reg) {
            used(s, s->f->views.data[o->id].reg, i);
        }
    }
}

static bool
opens(const cps_tinst *x)
{
    return x->op == CPS_T_LOOP || x->op == CPS_T_WHEN;
}

static void
bodies(lives *s, cps_arena *a)
{
    const cps_tfunc *f = s->f;
    s->close = cps_new_array(a, uint32_t, f->insts.n + 1);
    for (uint32_t i = 0; i < f->insts.n; i++) {
        if (opens(&f->insts.data[i]))
            cps_vec_push(a, &s->open, i);
        else if (f->insts.data[i].op == CPS_T_END && s->open.n)
            s->close[s->open.data[--s->open.n]] = i;
    }
    s->open.n = 0;
}

static int
by_start(const void *x, const void *y)
{
    const life *a = x, *b = y;
    if (a->from != b->from)
        return a->from < b->from ? -1 : 1;
    return a->reg < b->reg ? -1 : a->reg > b->reg;
}

bool
cps_sel_registers(cps_sel *s)
{
    const cps_tfunc *f = s->g->f;
    unsigned all = (unsigned)s->g->t->sync_registers, n = 0;
    unsigned most =
        all > CPS_SEL_SCRATCH + CPS_SEL_FILLS ? all - CPS_SEL_SCRATCH - CPS_SEL_FILLS : 0;
    s->scratch = most;
    for (uint32_t i = 1; i < f->bufs.n; i++)
        n += f->bufs.data[i].space == CPS_REG;
    if (!n)
        return true;
    lives l = {.f = f, .of = cps_new_array(s->g->arena, life, f->bufs.n)};
    for (uint32_t i = 1; i < f->bufs.n; i++)
        l.of[i] = (life){i, UINT32_MAX, 0};
    bodies(&l, s->g->arena);
    for (uint32_t i = 0; i < f->insts.n; i++) {
        uses(&l, i);
        if (opens(&f->insts.data[i]))
            cps_vec_push(s->g->arena, &l.open, i);
        else if (f->insts.data[i].op == CPS_T_END && l.open.n)
            l.open.n--;
    }
    qsort(l.of + 1, f->bufs.n - 1, sizeof(life), by_start);
    uint32_t *until =
        cps_new_array(s->g->arena, uint32_t, most + 1); // instructions that hold it, from 0 on
    for (uint32_t i = 1; i < f->bufs.n && l.of[i].from <= l.of[i].to; i++) {
        unsigned r = 0;
        while (r < most && until[r] > l.of[i].from)
            r++;
        if (r == most) {
            cps_error(s->g->d, CPS_E5306, f->bufs.data[l.of[i].reg].loc,
                      "more than %u registers are in use, an engine has %u", most, all);
            return false;
        }
        s->reg[l.of[i].reg] = (uint8_t)r;
        until[r] = l.of[i].to + 1;
    }
    return true;
}
