/* Integers of a region as statements on tiles, exact for all values.
 *
 * Sums and products of 32 bits are true ones on POOL (isa-semantics 2.3b), bits are bits on
 * DVE; everything else goes through fp32, exact to 2^24. So integers are compared by the
 * difference of their upper halves times 2^16 plus that of their lower halves, each exact, of
 * which the sum has the right sign. A quotient is an estimate in fp32, within 2^-22 of itself,
 * mended by the quotient of what is left, a true difference: then it is nearer than 1 to a / b,
 * and the signs of what is left and of a say whether it is the one towards zero. Integers of 8
 * and 16 bits are computed in 32 and keep the low bits (region.c puts the casts), for engines
 * hold at the ends of a range and the graph's integers wrap. */
#include "lower/region_leaf.h"

#include <inttypes.h>
#include <math.h>

#define EXACT 16777216.0   // 2^24: fp32 holds every whole number up to here
#define ONE_STEP 1048576.0 // 2^20: an estimated quotient is off by less than one

void
cps_rg_difference(cps_rgen *g, int k, const char *a, const char *b)
{
    const char *n = cps_rg_name(g, k), *ext = cps_rg_extents(g, g->v[k].cls);
    cps_rg_line(g, "sbuf %sa[%s]: i32 = %s & 65535;", n, ext, a);
    cps_rg_line(g, "sbuf %sb[%s]: i32 = %s & 65535;", n, ext, b);
    cps_rg_line(g, "sbuf %sc[%s]: i32 = %s - %sa;", n, ext, a, n);
    cps_rg_line(g, "sbuf %se[%s]: i32 = %s - %sb;", n, ext, b, n);
    cps_rg_line(g, "sbuf %sh[%s]: fp32 = %sc - %se;", n, ext, n, n);
    cps_rg_line(g, "sbuf %sl[%s]: fp32 = %sa - %sb;", n, ext, n, n);
    cps_rg_line(g, "sbuf %sg[%s]: fp32 = %sh + %sl;", n, ext, n, n);
}

/* ---- one, and the larger and smaller of two ---- */

// By comparing exactly.
void
cps_rg_int_unary(cps_rgen *g, int k)
{
    const cps_rvalue *v = &g->r->v[k];
    const cps_rgtile *x = &g->v[k];
    const char *ext = cps_rg_extents(g, x->cls), *n = cps_rg_name(g, k);
    const char *a = cps_rg_shaped(g, v->in[0], x->cls, CPS_DT_I32, cps_rg_own(g, k, 'i'));
    cps_rg_charge(g, x->cls, CPS_DVE, 5);
    switch (v->op) {
    case CPS_OP_NEG:
        cps_rg_give(g, k, cps_arena_printf(g->a, "%s * -1", a), "");
        return;
    case CPS_OP_SQUARE:
        cps_rg_give(g, k, cps_arena_printf(g->a, "%s * %s", a, a), "");
        return;
    case CPS_OP_SIGN: // the sign survives fp32
        cps_rg_line(g, "sbuf %sa[%s]: bf16 = %s > 0;", n, ext, a);
        cps_rg_line(g, "sbuf %sb[%s]: bf16 = %s < 0;", n, ext, a);
        cps_rg_give(g, k, cps_arena_printf(g->a, "%sa - %sb", n, n), "");
        return;
    case CPS_OP_ABS:
        cps_rg_line(g, "sbuf %sb[%s]: bf16 = %s < 0;", n, ext, a);
        cps_rg_line(g, "sbuf %sn[%s]: i32 = %s * -1;", n, ext, a);
        cps_rg_give(g, k, a, "");
        cps_rg_line(g, "tensor_copy_predicated(dst: %s, predicate: %sb.bits(u16), src: %sn);",
                    n, n, n);
        return;
    case CPS_OP_NOT: // every bit
        cps_rg_fresh(g, k);
        cps_rg_line(g, "tensor_scalar(dst: %s, data: %s, operand0: -1, op0: \"bitwise_xor\");",
                    n, a);
        return;
    default: // relu
        cps_rg_line(g, "sbuf %sb[%s]: bf16 = %s > 0;", n, ext, a);
        cps_rg_give(g, k, "0", "");
        cps_rg_line(g, "tensor_copy_predicated(dst: %s, predicate: %sb.bits(u16), src: %s);", n,
                    n, a);
        return;
    }
}

void
cps_rg_int_bound(cps_rgen *g, int k)
{
    const cps_rvalue *v = &g->r->v[k];
    const cps_rgtile *x = &g->v[k];
    const char *ext = cps_rg_extents(g, x->cls), *n = cps_rg_name(g, k);
    if (cps_rg_fits(g, v->in[0], EXACT) && cps_rg_fits(g, v->in[1], EXACT)) {
        cps_rg_charge(g, x->cls, CPS_DVE, cps_rg_meets_number(g, v, x->cls) ? 1 : 2);
        cps_rg_give(g, k,
                    cps_arena_printf(
                        g->a, "%s(%s, %s)", v->op == CPS_OP_MAX ? "maximum" : "minimum",
                        cps_rg_read(g, v->in[0], x->cls), cps_rg_read(g, v->in[1], x->cls)),
                    "");
        return;
    }
    const char *a = cps_rg_shaped(g, v->in[0], x->cls, CPS_DT_I32, cps_rg_own(g, k, 'i'));
    const char *b = cps_rg_shaped(g, v->in[1], x->cls, CPS_DT_I32, cps_rg_own(g, k, 'j'));
    cps_rg_charge(g, x->cls, CPS_POOL, 4);
    cps_rg_charge(g, x->cls, CPS_DVE, 12);
    cps_rg_difference(g, k, a, b);
    cps_rg_line(g, "sbuf %so[%s]: bf16 = %sg %s 0.0;", n, ext, n,
                v->op == CPS_OP_MAX ? ">" : "<");
    cps_rg_give(g, k, b, "");
    cps_rg_line(g, "tensor_copy_predicated(dst: %s, predicate: %so.bits(u16), src: %s);", n, n,
                a);
}

/* ---- bits ---- */

void
cps_rg_int_bits(cps_rgen *g, int k)
{
    const cps_rvalue *v = &g->r->v[k];
    const cps_rgtile *x = &g->v[k];
    const char *op = v->op == CPS_OP_AND  ? "bitwise_and"
                     : v->op == CPS_OP_OR ? "bitwise_or"
                                          : "bitwise_xor";
    int number = cps_rg_is_number(g, v->in[1]) ? 1 : cps_rg_is_number(g, v->in[0]) ? 0 : -1;
    if (number >= 0) {
        cps_rg_charge(g, x->cls, CPS_DVE, 1);
        const char *a =
            cps_rg_shaped(g, v->in[1 - number], x->cls, CPS_DT_I32, cps_rg_own(g, k, 'i'));
        const char *n = cps_rg_fresh(g, k);
        cps_rg_line(g, "tensor_scalar(dst: %s, data: %s, operand0: %" PRId64 ", op0: \"%s\");",
                    n, a, (int64_t)g->r->v[v->in[number]].number, op);
        return;
    }
    cps_rg_charge(g, x->cls, CPS_DVE, 2);
    const char *a = cps_rg_shaped(g, v->in[0], x->cls, CPS_DT_I32, cps_rg_own(g, k, 'i'));
    const char *b = cps_rg_shaped(g, v->in[1], x->cls, CPS_DT_I32, cps_rg_own(g, k, 'j'));
    const char *n = cps_rg_fresh(g, k);
    cps_rg_line(g, "tensor_tensor(dst: %s, data1: %s, data2: %s, op: \"%s\");", n, a, b, op);
}

// The low bits, and for a signed dtype the highest of them as its sign: (bits ^ half) - half.
void
cps_rg_int_wrap(cps_rgen *g, int k)
{
    const cps_rvalue *v = &g->r->v[k];
    const cps_rgtile *x = &g->v[k];
    const char *n = cps_rg_name(g, k), *ext = cps_rg_extents(g, x->cls);
    int bits = (int)cps_dtypes[v->dtype].bits, mask = (1 << bits) - 1, half = 1 << (bits - 1);
    const char *a = cps_rg_shaped(g, v->in[0], x->cls, CPS_DT_I32, cps_rg_own(g, k, 'i'));
    cps_rg_charge(g, x->cls, CPS_DVE, 2);
    cps_rg_line(g, "sbuf %sl[%s]: i32;", n, ext);
    if (cps_dtypes[v->dtype].kind != 'S') {
        cps_rg_line(g, "tensor_scalar(dst: %sl, data: %s, operand0: %d, op0: \"bitwise_and\");",
                    n, a, mask);
        cps_rg_give(g, k, cps_arena_printf(g->a, "%sl", n), "");
        return;
    }
    cps_rg_line(g,
                "tensor_scalar(dst: %sl, data: %s, operand0: %d, operand1: %d, op0: "
                "\"bitwise_and\", op1: \"bitwise_xor\");",
                n, a, mask, half);
    cps_rg_give(g, k, cps_arena_printf(g->a, "%sl - %d.0", n, half), "");
}

/* ---- quotients ---- */

typedef struct quotient {
    const char *n, *ext, *a, *b; // b: a tile, or a number's text
    bool number;                 // the divisor is one
    const char *inverse;
} quotient;

// `<n>TAG` = round(what / b), a whole number.
static void
estimate(cps_rgen *g, const quotient *q, const char *tag, const char *what)
{
    if (!q->number) {
        cps_rg_line(g, "sbuf %sf%s[%s]: fp32 = %s;", q->n, tag, q->ext, what);
        what = cps_arena_printf(g->a, "%sf%s", q->n, tag);
    }
    cps_rg_line(g, "sbuf %s%s[%s]: i32 = %s * %s;", q->n, tag, q->ext, what, q->inverse);
}

// `<n>TO` = what - `<n>TAG` * b, true 32-bit arithmetic.
static void
what_is_left(cps_rgen *g, const quotient *q, const char *to, const char *what, const char *tag)
{
    cps_rg_line(g, "sbuf %sp%s[%s]: i32 = %s%s * %s;", q->n, to, q->ext, q->n, tag, q->b);
    cps_rg_line(g, "sbuf %s%s[%s]: i32 = %s - %sp%s;", q->n, to, q->ext, what, q->n, to);
}

// `<n>TO` = -1, 0 or 1; the sign of an integer survives fp32.
static void
sign_of(cps_rgen *g, const quotient *q, const char *to, const char *what)
{
    cps_rg_line(g, "sbuf %s%sp[%s]: fp32 = %s > 0;", q->n, to, q->ext, what);
    cps_rg_line(g, "sbuf %s%sn[%s]: fp32 = %s < 0;", q->n, to, q->ext, what);
    cps_rg_line(g, "sbuf %s%s[%s]: fp32 = %s%sp - %s%sn;", q->n, to, q->ext, q->n, to, q->n,
                to);
}

// The sign of b as an operand.
static const char *
divisor_sign(cps_rgen *g, int k, const quotient *q)
{
    if (q->number)
        return g->r->v[g->r->v[k].in[1]].number < 0 ? "-1.0" : "1.0";
    sign_of(g, q, "sb", q->b);
    return cps_arena_printf(g->a, "%ssb", q->n);
}

static void
mend(cps_rgen *g, int k, const quotient *q)
{
    const char *n = q->n, *ext = q->ext;
    bool whole = g->r->v[k].op == CPS_OP_DIV;
    sign_of(g, q, "sr", cps_arena_printf(g->a, "%sr", n));
    const char *sb = divisor_sign(g, k, q);
    if (!whole) { // what is left has the divisor's sign
        cps_rg_line(g, "sbuf %sd[%s]: fp32 = %ssr * %s;", n, ext, n, sb);
        cps_rg_line(g, "sbuf %sw[%s]: i32 = %sd < 0.0;", n, ext, n);
        cps_rg_line(g, "sbuf %sv[%s]: i32 = %sw * %s;", n, ext, n, q->b);
        cps_rg_give(g, k, cps_arena_printf(g->a, "%sr + %sv", n, n), "");
        return;
    }
    sign_of(g, q, "sa", q->a);
    cps_rg_line(g, "sbuf %sd[%s]: fp32 = %ssr * %ssa;", n, ext, n, n);
    cps_rg_line(g, "sbuf %sw[%s]: fp32 = %sd < 0.0;", n, ext, n);
    cps_rg_line(g, "sbuf %sx[%s]: fp32 = %sw * %ssr;", n, ext, n, n);
    cps_rg_line(g, "sbuf %sv[%s]: i32 = %sx * %s;", n, ext, n, sb);
    cps_rg_give(g, k, cps_arena_printf(g->a, "%sq + %sv", n, n), "");
}

// The remainder of a power of two is its lower bits.
static bool
by_bits(cps_rgen *g, int k)
{
    const cps_rvalue *v = &g->r->v[k];
    double b = g->r->v[v->in[1]].number;
    if (v->op != CPS_OP_MOD || !cps_rg_is_number(g, v->in[1]) || b < 1 ||
        ((int64_t)b & ((int64_t)b - 1)))
        return false;
    const char *a = cps_rg_shaped(g, v->in[0], g->v[k].cls, CPS_DT_I32, cps_rg_own(g, k, 'i'));
    cps_rg_charge(g, g->v[k].cls, CPS_DVE, 1);
    cps_rg_line(
        g, "tensor_scalar(dst: %s, data: %s, operand0: %" PRId64 ", op0: \"bitwise_and\");",
        cps_rg_fresh(g, k), a, (int64_t)b - 1);
    return true;
}

void
cps_rg_int_divide(cps_rgen *g, int k)
{
    const cps_rvalue *v = &g->r->v[k];
    const cps_rgtile *x = &g->v[k];
    if (by_bits(g, k))
        return;
    quotient q = {.n = cps_rg_name(g, k),
                  .ext = cps_rg_extents(g, x->cls),
                  .number = cps_rg_is_number(g, v->in[1])};
    bool near = cps_rg_fits(g, v->in[0], ONE_STEP);
    q.a = cps_rg_shaped(g, v->in[0], x->cls, CPS_DT_I32, cps_rg_own(g, k, 'i'));
    if (q.number) {
        cps_buf b = {0};
        cps_region_number(1.0 / g->r->v[v->in[1]].number, &b);
        q.inverse = cps_arena_strdup(g->a, b.data);
        cps_buf_fini(&b);
        q.b = cps_rg_number(g, v->in[1]);
    } else {
        q.b = cps_rg_shaped(g, v->in[1], x->cls, CPS_DT_I32, cps_rg_own(g, k, 'j'));
        cps_rg_line(g, "sbuf %st[%s]: fp32 = %s;", q.n, q.ext, q.b);
        cps_rg_line(g, "sbuf %su[%s]: fp32 = 1.0 / %st;", q.n, q.ext, q.n);
        q.inverse = cps_arena_printf(g->a, "%su", q.n);
    }
    cps_rg_charge(g, x->cls, CPS_DVE, (q.number ? 9 : 24) + (near ? 0 : 2));
    cps_rg_charge(g, x->cls, CPS_POOL, near ? 6 : 12);
    estimate(g, &q, near ? "q" : "e", q.a);
    if (!near) {
        what_is_left(g, &q, "l", q.a, "e");
        estimate(g, &q, "m", cps_arena_printf(g->a, "%sl", q.n));
        cps_rg_line(g, "sbuf %sq[%s]: i32 = %se + %sm;", q.n, q.ext, q.n, q.n);
        what_is_left(g, &q, "r", cps_arena_printf(g->a, "%sl", q.n), "m");
    } else {
        what_is_left(g, &q, "r", q.a, "q");
    }
    mend(g, k, &q);
}
