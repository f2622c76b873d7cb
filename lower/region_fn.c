/* Functions of a region that are several instructions: those whose table covers a part of the numbers only, and roundings.
 *
 * floor, ceil, round: 2^23 with the sign of x, added and taken off again, leaves the nearest
 * whole number, for from there to 2^24 fp32 has steps of 1. From 2^23 on x has no fraction and
 * is clamped before, so its difference is 0; a difference of 0 is +0, so that -0 stays -0. Where x
 * is known to lie within 2^22, 1.5 * 2^23 does it for both signs in one instruction. */
#include "lower/region_leaf.h"

#include <math.h>

// The table covers 2^-64..2^64: what lies outside 2^-60..2^60 is brought in by 2^100 (as leaves/unary.cps).
void
cps_rg_log(cps_rgen *g, int k)
{
    const cps_rvalue *v = &g->r->v[k];
    const cps_rgtile *x = &g->v[k];
    const char *ext = cps_rg_extents(g, x->cls), *n = cps_rg_name(g, k);
    const char *a = cps_rg_read(g, v->in[0], x->cls);
    cps_rg_charge(g, x->cls, CPS_DVE, 7);
    cps_rg_charge(g, x->cls, CPS_ACT, 1);
    cps_rg_line(g, "sbuf %ss[%s]: fp32 = (%s < 8.673617379884035e-19) * 1.2676506002282294e30;", n, ext, a);
    cps_rg_line(g, "sbuf %su[%s]: fp32 = maximum(%ss, 1.0) * %s;", n, ext, n, a);
    cps_rg_line(g, "sbuf %sf[%s]: fp32 = %su <= 1.152921504606847e18;", n, ext, n);
    cps_rg_line(g, "sbuf %si[%s]: fp32 = maximum(%sf, 7.888609052210118e-31) * %su;", n, ext, n, n);
    cps_rg_line(g, "sbuf %sl[%s]: fp32 = log(%si);", n, ext, n);
    cps_rg_line(g, "sbuf %se[%s]: fp32 = %ss * -5.467967123079106e-29 + %sl;", n, ext, n, n);
    cps_rg_line(g, "sbuf %so[%s]: fp32 = (%sf - 1.0) * -69.31471805599453;", n, ext, n);
    cps_rg_give(g, k, cps_arena_printf(g->a, "%se + %so", n, n), "");
}

// The table covers -pi..pi: whole turns are taken off, 2 pi in two parts (as leaves/unary.cps).
void
cps_rg_sine(cps_rgen *g, int k)
{
    const cps_rvalue *v = &g->r->v[k];
    const cps_rgtile *x = &g->v[k];
    const char *ext = cps_rg_extents(g, x->cls), *n = cps_rg_name(g, k);
    const char *a = cps_rg_read(g, v->in[0], x->cls);
    cps_rg_charge(g, x->cls, CPS_DVE, 7);
    cps_rg_charge(g, x->cls, CPS_ACT, 1);
    if (v->op == CPS_OP_COS) { // cos x = sin(x + pi/2)
        cps_rg_line(g, "sbuf %sq[%s]: fp32 = %s + 1.5707963267948966;", n, ext, a);
        a = cps_arena_printf(g->a, "%sq", n);
    }
    cps_rg_line(g, "sbuf %st[%s]: i32 = %s * 0.15915494309189535;", n, ext, a);
    cps_rg_line(g, "sbuf %sn[%s]: fp32 = %st * -6.28125 + %s;", n, ext, n, a);
    cps_rg_line(g, "sbuf %sp[%s]: fp32 = %st * -0.0019353071795864769 + %sn;", n, ext, n, n);
    cps_rg_give(g, k, cps_arena_printf(g->a, "sin(minimum(maximum(%sp, -3.1415925), 3.1415925))", n), "");
}

// The table covers -pi/2..pi/2 (NKI docs, supported math functions): of what is larger than 1 the arc of its reciprocal,
// taken off pi / 2. minimum(a, 1 / maximum(a, 1)) is both.
void
cps_rg_arctangent(cps_rgen *g, int k)
{
    const cps_rgtile *x = &g->v[k];
    const char *ext = cps_rg_extents(g, x->cls), *n = cps_rg_name(g, k);
    const char *a = cps_rg_shaped(g, g->r->v[k].in[0], x->cls, CPS_DT_FP32, cps_rg_own(g, k, 'r'));
    cps_rg_charge(g, x->cls, CPS_DVE, 20);
    cps_rg_charge(g, x->cls, CPS_ACT, 3);
    cps_rg_line(g, "sbuf %sa[%s]: fp32 = abs(%s);", n, ext, a);
    cps_rg_line(g, "sbuf %sm[%s]: fp32 = maximum(%sa, 1.0);", n, ext, n);
    cps_rg_line(g, "sbuf %si[%s]: fp32 = 1.0 / %sm;", n, ext, n);
    cps_rg_line(g, "sbuf %su[%s]: fp32 = minimum(%sa, %si);", n, ext, n, n);
    cps_rg_line(g, "sbuf %st[%s]: fp32 = arctan(%su);", n, ext, n);
    cps_rg_line(g, "sbuf %sw[%s]: fp32 = %st * -2.0 + 1.5707963267948966;", n, ext, n);
    cps_rg_line(g, "sbuf %sb[%s]: fp32 = %sa > 1.0;", n, ext, n);
    cps_rg_line(g, "sbuf %sz[%s]: fp32 = %sw * %sb;", n, ext, n, n);
    cps_rg_line(g, "sbuf %sp[%s]: fp32 = %sz + %st;", n, ext, n, n);
    cps_rg_line(g, "sbuf %sg[%s]: fp32 = sign(%s);", n, ext, a);
    cps_rg_give(g, k, cps_arena_printf(g->a, "%sp * %sg", n, n), "");
}

// Some user tells -0 from 0.
static bool
sign_of_zero_matters(const cps_rgen *g, int k)
{
    for (int u = k + 1; u < g->r->n; u++) {
        const cps_rvalue *v = &g->r->v[u];
        for (int i = 0; g->v[u].root == u && i < v->nin; i++) {
            if (g->v[v->in[i]].root != k || cps_rg_decides(v))
                continue;
            int other = v->in[1 - i % 2];
            bool moved = v->op == CPS_OP_ADD && cps_rg_is_number(g, other) && g->r->v[other].number != 0;
            bool clip = (v->op == CPS_OP_MAX || v->op == CPS_OP_MIN) && v->slot < 0;
            if (!moved && (!clip || sign_of_zero_matters(g, u)))
                return true;
        }
    }
    return g->r->v[k].slot >= 0;
}

#define SHORT_RANGE 4194304.0 // 2^22

// What is read of the value lies in the short range, for ends are put to it behind: numbers are added, and bounds that are
// met from outside the range are met all the same, since the short form never turns the order of numbers.
static bool
is_clipped(const cps_rgen *g, int k)
{
    bool low = false, high = false;
    for (int step = 0; step < 6 && g->v[k].uses == 1 && g->r->v[k].slot < 0; step++) {
        int u = cps_rg_user(g, k);
        if (u < 0) // stored, perhaps as an integer
            break;
        const cps_rvalue *v = &g->r->v[u];
        if (v->op == CPS_OP_CAST)
            return (low && high) || cps_rg_is_short(v->dtype);
        if (v->nin != 2)
            break;
        int other = g->v[v->in[0]].root == k ? v->in[1] : v->in[0];
        if (!cps_rg_is_number(g, other) || fabs(g->r->v[other].number) > SHORT_RANGE / 16)
            break;
        low = low || v->op == CPS_OP_MAX;
        high = high || v->op == CPS_OP_MIN;
        if (v->op != CPS_OP_MAX && v->op != CPS_OP_MIN && v->op != CPS_OP_ADD)
            break;
        k = u;
    }
    return (low && high) || cps_rg_is_short(g->v[k].dtype);
}

// Up to 2^22: 1.5 * 2^23 added and taken off again, and the sign of x where it is looked at.
static void
short_whole_number(cps_rgen *g, int k)
{
    const cps_rvalue *v = &g->r->v[k];
    const cps_rgtile *x = &g->v[k];
    bool round = v->op == CPS_OP_ROUND, floor = v->op == CPS_OP_FLOOR;
    const char *ext = cps_rg_extents(g, x->cls), *n = cps_rg_name(g, k);
    bool sign = sign_of_zero_matters(g, k) || x->dtype != CPS_DT_FP32;
    const char *a = sign ? cps_rg_shaped(g, v->in[0], x->cls, CPS_DT_FP32, cps_rg_own(g, k, 'z')) : cps_rg_read(g, v->in[0], x->cls);
    cps_rg_charge(g, x->cls, CPS_DVE, 1 + (round ? 0 : 4) + (sign ? 2 : 0));
    const char *r = round && !sign ? cps_rg_fresh(g, k) : cps_arena_printf(g->a, "%sr", n);
    if (!round || sign)
        cps_rg_line(g, "sbuf %s[%s]: fp32;", r, ext);
    cps_rg_line(g, "tensor_scalar(dst: %s, data: %s, operand0: 12582912.0, operand1: 12582912.0, op0: \"add\", op1: \"subtract\");",
                r, a);
    if (!round) {
        cps_rg_line(g, "sbuf %sd[%s]: fp32 = %s - %s;", n, ext, a, r);
        const char *w = sign ? cps_arena_printf(g->a, "%sw", n) : cps_rg_fresh(g, k);
        if (sign)
            cps_rg_line(g, "sbuf %s[%s]: fp32;", w, ext);
        cps_rg_line(g, "scalar_tensor_tensor(dst: %s, data: %sd, operand0: 0.0, operand1: %s, op0: \"%s\", op1: \"%s\"%s);",
                    w, n, r, floor ? "is_lt" : "is_gt", floor ? "subtract" : "add", floor ? ", reverse1: true" : "");
        r = w;
    }
    if (!sign)
        return;
    bool own = x->dtype == CPS_DT_FP32;
    const char *o = own ? cps_rg_fresh(g, k) : cps_arena_printf(g->a, "%so", n);
    if (!own)
        cps_rg_line(g, "sbuf %s[%s]: fp32;", o, ext);
    cps_rg_line(g, "scalar_tensor_tensor(dst: %s.bits(i32), data: %s.bits(i32), operand0: -2147483648, operand1: %s.bits(i32), "
                   "op0: \"bitwise_and\", op1: \"bitwise_or\");", o, a, r);
    if (!own)
        cps_rg_give(g, k, o, "");
}

void
cps_rg_whole_number(cps_rgen *g, int k)
{
    if (cps_rg_fits(g, g->r->v[k].in[0], SHORT_RANGE) || is_clipped(g, k)) {
        short_whole_number(g, k);
        return;
    }
    const cps_rvalue *v = &g->r->v[k];
    const cps_rgtile *x = &g->v[k];
    const char *ext = cps_rg_extents(g, x->cls), *n = cps_rg_name(g, k);
    const char *a = cps_rg_read(g, v->in[0], x->cls);
    bool round = v->op == CPS_OP_ROUND, floor = v->op == CPS_OP_FLOOR;
    cps_rg_charge(g, x->cls, CPS_DVE, round ? 9 : 11);
    cps_rg_line(g, "sbuf %sm[%s]: fp32 = minimum(maximum(%s, -8388608.0), 8388608.0);", n, ext, a);
    cps_rg_line(g, "sbuf %sg[%s]: fp32;", n, ext); // -2^24 or 0, and 2^23 more: the number with the sign
    cps_rg_line(g, "tensor_scalar(dst: %sg, data: %sm, operand0: 0.0, operand1: -16777216.0, op0: \"is_lt\", op1: \"multiply\");", n, n);
    cps_rg_line(g, "sbuf %sr[%s]: fp32;", n, ext);
    cps_rg_line(g, "scalar_tensor_tensor(dst: %sr, data: %sg, operand0: 8388608.0, operand1: %sm, op0: \"add\", op1: \"add\");",
                n, n, n);
    cps_rg_line(g, "sbuf %sq[%s]: fp32;", n, ext);
    cps_rg_line(g,
                "scalar_tensor_tensor(dst: %sq, data: %sg, operand0: 8388608.0, operand1: %sr, op0: \"add\", "
                "op1: \"subtract\", reverse1: true);",
                n, n, n);
    cps_rg_line(g, "sbuf %sd[%s]: fp32 = %sm - %sq;", n, ext, n, n);
    if (round)
        cps_rg_fresh(g, k);
    else
        cps_rg_line(g, "sbuf %sw[%s]: fp32;", n, ext);
    cps_rg_line(g,
                "scalar_tensor_tensor(dst: %s%s, data: %sd, operand0: 0.0, operand1: %s, op0: \"add\", op1: \"subtract\", "
                "reverse1: true);",
                n, round ? "" : "w", n, a);
    if (round)
        return;
    cps_rg_fresh(g, k);
    cps_rg_line(g, "scalar_tensor_tensor(dst: %s, data: %sd, operand0: 0.0, operand1: %sw, op0: \"%s\", op1: \"%s\"%s);",
                n, n, n, floor ? "is_lt" : "is_gt", floor ? "subtract" : "add", floor ? ", reverse1: true" : "");
}
