/* Addresses in registers held to the tile or variable that they are of (kbin.h, cps_kextent):
 * beyond it lies the memory of something else, which nothing orders against the access. */
#include "runtime/sim/prove_state.h"

#include <stdarg.h>
#include <stdio.h>

static int
by_bundle(const void *a, const void *b)
{
    const cps_kextent *x = a, *y = b;
    if (x->engine != y->engine)
        return x->engine < y->engine ? -1 : 1;
    if (x->index != y->index)
        return x->index < y->index ? -1 : 1;
    return (x->field > y->field) - (x->field < y->field);
}

void
extent_load(cps_sim *s)
{
    uint32_t n = s->k->extents.n;
    s->extents = NULL;
    if (!n)
        return;
    s->extents = cps_arena_raw(s->load_arena, n * sizeof *s->extents);
    memcpy(s->extents, s->k->extents.data, n * sizeof *s->extents);
    qsort(s->extents, n, sizeof *s->extents, by_bundle);
    for (uint32_t k = 0; k < n; k++) {
        insn *i = &s->eng[s->extents[k].engine].code[s->extents[k].index];
        i->extent = i->nextent ? i->extent : k;
        i->nextent++;
    }
}

const cps_kextent *
extent_of(const cps_sim *s, const insn *i, unsigned field)
{
    for (unsigned k = 0; k < i->nextent; k++)
        if (s->extents[i->extent + k].field == field)
            return &s->extents[i->extent + k];
    return NULL;
}

const cps_kextent *
extent_of_side(const cps_sim *s, const insn *i, bool dst)
{
    for (unsigned k = 0; k < i->nextent; k++) {
        const cps_kextent *x = &s->extents[i->extent + k];
        if (!strncmp(cps_fields[x->field].name, dst ? "dst" : "src", 3))
            return x;
    }
    return NULL;
}

bool
bounds_fault(cps_sim *s, const insn *i, const char *fmt, ...)
{
    char text[768];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    s->rep.bounds++;
    if (s->prover)
        prove_leaves(s->prover, i, text);
    else
        run_fault(s, i, CPS_E8302, "%s", text);
    return false;
}

/* What stands in partitions [p0, p1) and, of each, in bytes [b0, b1). */
static bool
inside(cps_sim *s, const insn *i, const cps_kextent *x, bool psum, int64_t p0, int64_t p1,
       int64_t b0, int64_t b1)
{
    if (psum == x->psum && p0 >= x->part && p1 <= x->part + x->parts && b0 >= x->byte &&
        b1 <= (int64_t)x->byte + x->bytes)
        return true;
    return bounds_fault(s, i,
                        "the register that moves '%s' leads out of '%s': partitions "
                        "%lld..%lld, bytes %lld..%lld of "
                        "%s; it has partitions %d..%d, bytes %u..%u",
                        cps_fields[x->field].name, x->name, (long long)p0, (long long)p1 - 1,
                        (long long)b0, (long long)b1, psum ? "PSUM" : "SBUF", x->part,
                        x->part + x->parts - 1, x->byte, x->byte + x->bytes);
}

bool
extent_operand(cps_sim *s, const insn *i, const opnd *o)
{
    const cps_kextent *x = extent_of(s, i, o->field);
    return !x || x->var ||
           inside(s, i, x, o->psum, o->part, (int64_t)o->part + o->rows, o->byte + o->lo,
                  o->byte + o->hi);
}

bool
extent_side(cps_sim *s, const insn *i, const cps_kextent *x, const side *o)
{
    int64_t lane = x->var ? INT64_MAX : CPS_SBUF_STRIDE, lo = 0, hi = o->size[0], p0 = 0,
            p1 = 1;
    for (int d = 1; d < o->nd; d++) {
        int64_t far = o->step[d] * (o->size[d] - 1);
        bool lanes = !x->var && o->step[d] % lane == 0;
        int64_t *low = lanes ? &p0 : &lo, *high = lanes ? &p1 : &hi;
        *(far < 0 ? low : high) += lanes ? far / lane : far;
    }
    if (x->var) {
        const hbm_var *v = &s->vars.data[x->var];
        int64_t at = (int64_t)(o->addr - v->addr);
        return (at + lo >= 0 && at + hi <= v->v->bytes) ||
               bounds_fault(s, i,
                            "the register that moves '%s' leads out of '%s': bytes %lld..%lld; "
                            "it has %lld",
                            cps_fields[x->field].name, v->v->name, (long long)(at + lo),
                            (long long)(at + hi), (long long)v->v->bytes);
    }
    int64_t at = (int64_t)(o->addr - addr_of_sb(0)), part = at >> 18, byte = at & (lane - 1);
    return inside(s, i, x, false, part + p0, part + p1, byte + lo, byte + hi);
}
