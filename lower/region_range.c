/* What the values of a region can be: bounds, and whether they are whole numbers.
 *
 * In: a region. Out: the bounds of every value of it. Holds: a value that is not NaN lies in
 * its bounds, as the graph's dtypes have it and as fp32 has it; whole values have no fraction.
 * Integers are whole; where arithmetic may wrap they are anything that their dtype holds.
 * Bounds save steps: what fits fp32 is compared by one instruction, and what fits a narrower
 * integer needs no wrapping. */
#include "lower/region_leaf.h"

#include <math.h>

static cps_rgrange
of_dtype(cps_dtype t)
{
    if (t == CPS_DT_BOOL)
        return (cps_rgrange){0, 1, true};
    if (!cps_dtype_is_int(t))
        return (cps_rgrange){-INFINITY, INFINITY, false};
    int bits = (int)cps_dtypes[t].bits;
    bool sign = cps_dtypes[t].kind == 'S';
    double top = ldexp(1, bits - sign);
    return (cps_rgrange){sign ? -top : 0, top - 1, true};
}

static cps_rgrange
hull(double lo, double hi, bool whole)
{
    return (cps_rgrange){fmin(lo, hi), fmax(lo, hi), whole};
}

// The least that holds all products.
static cps_rgrange
product(cps_rgrange a, cps_rgrange b)
{
    double p[4] = {a.lo * b.lo, a.lo * b.hi, a.hi * b.lo, a.hi * b.hi};
    cps_rgrange o = {p[0], p[0], a.whole && b.whole};
    for (int i = 0; i < 4; i++) {
        if (isnan(p[i])) // 0 times what has no end
            return (cps_rgrange){-INFINITY, INFINITY, false};
        o.lo = fmin(o.lo, p[i]);
        o.hi = fmax(o.hi, p[i]);
    }
    return o;
}

// The bits of a number that is not negative never grow under a mask.
static cps_rgrange
masked(cps_rgrange a, cps_rgrange b, cps_rgrange all)
{
    if (a.lo >= 0 && b.lo >= 0)
        return (cps_rgrange){0, fmin(a.hi, b.hi), true};
    return a.lo >= 0   ? (cps_rgrange){0, a.hi, true}
           : b.lo >= 0 ? (cps_rgrange){0, b.hi, true}
                       : all;
}

static cps_rgrange
two(cps_op op, cps_rgrange a, cps_rgrange b, cps_rgrange all)
{
    bool whole = a.whole && b.whole;
    switch (op) {
    case CPS_OP_ADD:
        return (cps_rgrange){a.lo + b.lo, a.hi + b.hi, whole};
    case CPS_OP_SUB:
        return (cps_rgrange){a.lo - b.hi, a.hi - b.lo, whole};
    case CPS_OP_MUL:
        return product(a, b);
    case CPS_OP_MAX:
        return (cps_rgrange){fmax(a.lo, b.lo), fmax(a.hi, b.hi), whole};
    case CPS_OP_MIN:
        return (cps_rgrange){fmin(a.lo, b.lo), fmin(a.hi, b.hi), whole};
    case CPS_OP_AND:
        return all.whole ? masked(a, b, all) : all;
    case CPS_OP_MOD: // the divisor's sign, or the dividend's
        return all.whole && b.lo > 0 ? (cps_rgrange){a.lo >= 0 ? 0 : 1 - b.hi, b.hi - 1, true}
                                     : all;
    case CPS_OP_DIV:
        return all.whole && (b.lo > 0 || b.hi < 0)
                   ? hull(-fmax(fabs(a.lo), fabs(a.hi)), fmax(fabs(a.lo), fabs(a.hi)), true)
                   : all;
    default:
        return all;
    }
}

static cps_rgrange
one(cps_op op, cps_rgrange a, cps_rgrange all)
{
    switch (op) {
    case CPS_OP_NEG:
        return (cps_rgrange){-a.hi, -a.lo, a.whole};
    case CPS_OP_RELU:
        return (cps_rgrange){fmax(a.lo, 0), fmax(a.hi, 0), a.whole};
    case CPS_OP_ABS:
        return (cps_rgrange){a.lo > 0   ? a.lo
                             : a.hi < 0 ? -a.hi
                                        : 0,
                             fmax(fabs(a.lo), fabs(a.hi)), a.whole};
    case CPS_OP_SQUARE:
        return product(a, a);
    case CPS_OP_SIGN:
        return (cps_rgrange){-1, 1, true};
    case CPS_OP_FLOOR:
    case CPS_OP_CEIL:
    case CPS_OP_ROUND:
        return (cps_rgrange){floor(a.lo), ceil(a.hi), true};
    case CPS_OP_TANH:
    case CPS_OP_ERF:
    case CPS_OP_SIN:
    case CPS_OP_COS: // ends of the engines' tables may lie a rounding beyond
        return (cps_rgrange){-2, 2, false};
    case CPS_OP_SIGMOID:
        return (cps_rgrange){0, 2, false};
    default:
        return all;
    }
}

static bool
within(cps_rgrange a, cps_rgrange b)
{
    return b.lo <= a.lo && a.hi <= b.hi;
}

static cps_rgrange
of_cast(cps_rgrange a, cps_dtype from, cps_rgrange all)
{
    if (!all.whole) // to a float
        return (cps_rgrange){a.lo, a.hi, a.whole};
    if (cps_dtype_is_float(from)) // cut, and held at the ends
        return (cps_rgrange){fmax(all.lo, fmin(all.hi, trunc(a.lo))),
                             fmin(all.hi, fmax(all.lo, trunc(a.hi))), true};
    return within(a, all) ? a : all;
}

static cps_rgrange
of_node(const cps_rgen *g, const cps_rvalue *v)
{
    cps_rgrange all = of_dtype(v->dtype), in[3] = {all, all, all}, o = all;
    for (int i = 0; i < v->nin; i++)
        in[i] = g->range[v->in[i]];
    if (v->dtype == CPS_DT_BOOL)
        return all;
    if (v->op == CPS_OP_BROADCAST || v->op == CPS_OP_RMAX || v->op == CPS_OP_RMIN)
        o = in[0];
    else if (v->op == CPS_OP_CAST)
        o = of_cast(in[0], g->r->v[v->in[0]].dtype, all);
    else if (v->op == CPS_OP_SELECT)
        o = (cps_rgrange){fmin(in[1].lo, in[2].lo), fmax(in[1].hi, in[2].hi),
                          in[1].whole && in[2].whole};
    else if (v->nin == 2)
        o = two(v->op, in[0], in[1], all);
    else if (v->nin == 1)
        o = one(v->op, in[0], all);
    if (isnan(o.lo) || isnan(o.hi))
        return (cps_rgrange){all.lo, all.hi, all.whole || o.whole};
    if (all.whole) // what may wrap
        return within(o, all) ? (cps_rgrange){o.lo, o.hi, true} : all;
    o.lo = fmin(o.lo, cps_round_f64(v->dtype, o.lo));
    o.hi = fmax(o.hi, cps_round_f64(v->dtype, o.hi));
    return o;
}

void
cps_rg_ranges(cps_rgen *g)
{
    for (int k = 0; k < g->r->n; k++) {
        const cps_rvalue *v = &g->r->v[k];
        g->range[k] = v->kind == CPS_RV_INPUT ? of_dtype(v->dtype)
                      : v->kind == CPS_RV_NUMBER
                          ? (cps_rgrange){v->number, v->number, v->number == floor(v->number)}
                          : of_node(g, v);
    }
}

bool
cps_rg_fits(const cps_rgen *g, int k, double most)
{
    return g->range[k].lo >= -most && g->range[k].hi <= most;
}

bool
cps_rg_holds(const cps_rgen *g, int k, cps_dtype t)
{
    return within(g->range[k], of_dtype(t));
}
