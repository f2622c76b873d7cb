/* Canonical form: one way to write each thing, so that patterns and keys see one form.
 *
 * Rules are rows (op, function); each looks at one node of the old function and either gives a
 * simpler equivalent or declines. Values change at most by the rounding of a constant's
 * reciprocal. Around them: folding, common subexpressions and dead code of the IR room, to a
 * fixed point with a limit. Established forms: a constant operand comes second; x * x and
 * pow(x, 2) are square; division by a constant is a product; 1 / sqrt(x) is rsqrt; elementwise
 * operands are not broadcast explicitly; reshapes and transposes do not follow each other, and
 * a transpose that moves only axes of one element is a reshape. */
#include "lower/pass.h"

#include "ir/pass.h"

#include <math.h>

#define MAX_SWEEPS 12
#define MAX_ROUNDS 4

static bool
same(cps_rw *w, const cps_node *n, cps_val v)
{
    return cps_rw_set(w, n->out[0], cps_rw_new(w, v));
}

static bool
same_type(cps_rw *w, const cps_node *n, cps_val v)
{
    return cps_type_eq(cps_rw_type(w, n->out[0]), cps_rw_type(w, v));
}

static cps_val
scalar(cps_rw *w, const cps_node *n, double v)
{
    return cps_b_scalar(&w->b, cps_rw_type(w, n->out[0])->dtype, v);
}

/* ---- moves ---- */

// A reshape, broadcast, cast or slice to the type that the operand has already.
static bool
no_move(cps_rw *w, const cps_node *n)
{
    return same_type(w, n, n->in[0]) && same(w, n, n->in[0]);
}

static bool
reshape_of_reshape(cps_rw *w, const cps_node *n)
{
    const cps_node *p = cps_rw_is(w, n->in[0], CPS_OP_RESHAPE);
    if (!p)
        return false;
    const cps_type *t = cps_rw_type(w, n->out[0]);
    return cps_rw_set(w, n->out[0],
                      cps_rw_reshape(w, cps_rw_new(w, p->in[0]), t->rank, t->dim));
}

// The same bytes under another shape: not a copy.
static bool
reshape_of_const(cps_rw *w, const cps_node *n)
{
    const cps_const *c = cps_rw_const(w, n->in[0]);
    if (!c)
        return false;
    cps_const k = *c; // the vector may move
    return cps_rw_set(w, n->out[0], cps_rw_const_as(w, &k, k.data, *cps_rw_type(w, n->out[0])));
}

static const int64_t *
perm_of(const cps_node *n)
{
    return cps_node_attr(n, "perm")->ints;
}

static bool
transpose_of_transpose(cps_rw *w, const cps_node *n)
{
    const cps_node *p = cps_rw_is(w, n->in[0], CPS_OP_TRANSPOSE);
    if (!p)
        return false;
    int64_t perm[CPS_MAX_RANK];
    for (int i = 0; i < cps_rw_type(w, n->out[0])->rank; i++)
        perm[i] = perm_of(p)[perm_of(n)[i]];
    return cps_rw_set(w, n->out[0], cps_b_transpose(&w->b, cps_rw_new(w, p->in[0]), perm));
}

// Axes of more than one element stay in order: the bytes do not move.
static bool
transpose_of_ones(cps_rw *w, const cps_node *n)
{
    const cps_type *x = cps_rw_type(w, n->in[0]), *y = cps_rw_type(w, n->out[0]);
    int64_t last = -1;
    for (int i = 0; i < y->rank; i++) {
        int64_t from = perm_of(n)[i];
        if (x->dim[from] == 1)
            continue;
        if (from < last)
            return false;
        last = from;
    }
    return cps_rw_set(w, n->out[0],
                      cps_rw_reshape(w, cps_rw_new(w, n->in[0]), y->rank, y->dim));
}

static bool
broadcast_of_broadcast(cps_rw *w, const cps_node *n)
{
    const cps_node *p = cps_rw_is(w, n->in[0], CPS_OP_BROADCAST);
    const cps_type *t = cps_rw_type(w, n->out[0]);
    return p && cps_rw_set(w, n->out[0],
                           cps_b_broadcast(&w->b, cps_rw_new(w, p->in[0]), t->rank, t->dim));
}

// A broadcast that only adds leading or inner axes of one element.
static bool
broadcast_is_reshape(cps_rw *w, const cps_node *n)
{
    const cps_type *x = cps_rw_type(w, n->in[0]), *y = cps_rw_type(w, n->out[0]);
    return cps_type_count(x) == cps_type_count(y) &&
           cps_rw_set(w, n->out[0],
                      cps_rw_reshape(w, cps_rw_new(w, n->in[0]), y->rank, y->dim));
}

/* ---- broadcasts move towards the outputs: less is computed, and elementwise ops absorb them
 * ---- */

// x (old) as a value (new) of the rank of `like`, ones in front.
static cps_val
same_rank(cps_rw *w, cps_val x, const cps_type *like)
{
    const cps_type *t = cps_rw_type(w, x);
    int64_t dim[CPS_MAX_RANK];
    for (int i = 0; i < like->rank; i++)
        dim[i] = i < like->rank - t->rank ? 1 : t->dim[i - (like->rank - t->rank)];
    return cps_rw_reshape(w, cps_rw_new(w, x), like->rank, dim);
}

static bool
spread(cps_rw *w, const cps_node *n, cps_val v)
{
    const cps_type *t = cps_rw_type(w, n->out[0]);
    return v && cps_rw_set(w, n->out[0], cps_b_broadcast(&w->b, v, t->rank, t->dim));
}

static bool
unary_of_broadcast(cps_rw *w, const cps_node *n)
{
    const cps_node *p = cps_rw_is(w, n->in[0], CPS_OP_BROADCAST);
    cps_val x = p ? cps_rw_new(w, p->in[0]) : 0;
    return p && spread(w, n, cps_rw_like(w, n, 1, &x));
}

// With a single number on the other side.
static bool
binary_of_broadcast(cps_rw *w, const cps_node *n)
{
    for (int i = 0; i < 2; i++) {
        const cps_node *p = cps_rw_is(w, n->in[i], CPS_OP_BROADCAST);
        if (!p || cps_type_count(cps_rw_type(w, n->in[1 - i])) != 1)
            continue;
        cps_val in[2];
        in[i] = cps_rw_new(w, p->in[0]);
        in[1 - i] = cps_rw_reshape(w, cps_rw_new(w, n->in[1 - i]), 0, NULL);
        return spread(w, n, cps_rw_like(w, n, 2, in));
    }
    return false;
}

// Over axes that the broadcast left alone.
static bool
reduce_of_broadcast(cps_rw *w, const cps_node *n)
{
    const cps_node *p = cps_rw_is(w, n->in[0], CPS_OP_BROADCAST);
    if (!p)
        return false;
    const cps_type *x = cps_rw_type(w, p->in[0]), *y = cps_rw_type(w, n->in[0]);
    const cps_attr *axes = cps_node_attr(n, "axes");
    for (uint32_t i = 0; i < axes->n; i++) {
        int at = (int)axes->ints[i] - (y->rank - x->rank);
        if (at < 0 || x->dim[at] != y->dim[axes->ints[i]])
            return false;
    }
    cps_val v = same_rank(w, p->in[0], y);
    return v && spread(w, n, cps_rw_like(w, n, 1, &v));
}

static bool
concat_of_one(cps_rw *w, const cps_node *n)
{
    return n->nin == 1 && same(w, n, n->in[0]);
}

// Operands without elements add nothing.
static bool
concat_of_empty(cps_rw *w, const cps_node *n)
{
    int axis = (int)cps_attr_int(n->attr, n->nattr, "axis", 0), k = 0;
    cps_val *in = cps_new_array(w->tmp, cps_val, n->nin);
    for (int i = 0; i < n->nin; i++)
        if (cps_rw_type(w, n->in[i])->dim[axis] > 0)
            in[k++] = cps_rw_new(w, n->in[i]);
    return k > 0 && k < n->nin && cps_rw_set(w, n->out[0], cps_b_concat(&w->b, k, in, axis));
}

static bool
slice_of_whole(cps_rw *w, const cps_node *n)
{
    const cps_attr *step = cps_node_attr(n, "step");
    for (uint32_t i = 0; i < step->n; i++)
        if (step->ints[i] < 0)
            return false;
    return no_move(w, n);
}

// Exact conversions on the way do not matter: i32 -> i64 -> fp32 is i32 -> fp32.
static bool
cast_of_cast(cps_rw *w, const cps_node *n)
{
    const cps_node *p = cps_rw_is(w, n->in[0], CPS_OP_CAST);
    if (!p)
        return false;
    cps_dtype a = cps_rw_type(w, p->in[0])->dtype, b = cps_rw_type(w, p->out[0])->dtype;
    bool exact =
        (b == CPS_DT_FP32 && (a == CPS_DT_BF16 || a == CPS_DT_FP16 || a == CPS_DT_TF32)) ||
        (b == CPS_DT_I64 && cps_dtype_is_int(a) && a != CPS_DT_U64) || a == CPS_DT_BOOL;
    if (!exact)
        return false;
    return cps_rw_set(
        w, n->out[0],
        cps_b_cast(&w->b, cps_rw_new(w, p->in[0]), cps_rw_type(w, n->out[0])->dtype));
}

// Integers are cast before they are reshaped: masks that take two shapes are cast once.
static bool
cast_of_reshape(cps_rw *w, const cps_node *n)
{
    const cps_node *p = cps_rw_is(w, n->in[0], CPS_OP_RESHAPE);
    const cps_type *t = cps_rw_type(w, n->out[0]);
    if (!p || !cps_dtype_is_int(cps_rw_type(w, p->in[0])->dtype))
        return false;
    cps_val x = cps_b_cast(&w->b, cps_rw_new(w, p->in[0]), t->dtype);
    return cps_rw_set(w, n->out[0], cps_rw_reshape(w, x, t->rank, t->dim));
}

// A cast to a narrower float goes in front of a move: half the bytes travel, and it meets the
// cast that widened them.
static bool
narrow_before_move(cps_rw *w, const cps_node *n)
{
    const cps_node *p = cps_rw_def(w, n->in[0]);
    cps_dtype from = cps_rw_type(w, n->in[0])->dtype, to = cps_rw_type(w, n->out[0])->dtype;
    if (!p || (p->op != CPS_OP_RESHAPE && p->op != CPS_OP_TRANSPOSE) ||
        w->uses[n->in[0]] != 1 || !cps_dtype_is_float(from) || !cps_dtype_is_float(to) ||
        cps_dtype_bytes(to) >= cps_dtype_bytes(from))
        return false;
    cps_val x = cps_b_cast(&w->b, cps_rw_new(w, p->in[0]), to);
    return cps_rw_set(w, n->out[0], cps_rw_like(w, p, 1, &x));
}

/* ---- elementwise ---- */

// Operands that are broadcasts lend their operand when the result keeps its shape.
static bool
bare_operands(cps_rw *w, const cps_node *n)
{
    cps_val in[3];
    bool found = false;
    const cps_type *out = cps_rw_type(w, n->out[0]);
    int64_t dim[CPS_MAX_RANK];
    for (int i = 0; i < out->rank; i++)
        dim[i] = 1;
    for (int i = 0; i < n->nin; i++) {
        const cps_node *p = cps_rw_is(w, n->in[i], CPS_OP_BROADCAST);
        cps_val v = p ? p->in[0] : n->in[i];
        const cps_type *t = cps_rw_type(w, v);
        found = found || p;
        in[i] = cps_rw_new(w, v);
        for (int k = 0; k < t->rank; k++) {
            int64_t *e = &dim[out->rank - t->rank + k];
            *e = t->dim[k] != 1 ? t->dim[k] : *e;
        }
    }
    for (int i = 0; i < out->rank; i++)
        found = found && dim[i] == out->dim[i];
    return found && cps_rw_set(w, n->out[0], cps_rw_like(w, n, n->nin, in));
}

static bool
const_second(cps_rw *w, const cps_node *n)
{
    if (!cps_rw_const(w, n->in[0]) || cps_rw_const(w, n->in[1]))
        return false;
    cps_val in[2] = {cps_rw_new(w, n->in[1]), cps_rw_new(w, n->in[0])};
    return cps_rw_set(w, n->out[0], cps_rw_like(w, n, 2, in));
}

// x + 0, x - 0, x * 1, x / 1, pow(x, 1) on x's own shape.
static bool
neutral(cps_rw *w, const cps_node *n)
{
    double c, e = n->op == CPS_OP_ADD || n->op == CPS_OP_SUB ? 0 : 1;
    return cps_rw_uniform(w, n->in[1], &c) && c == e && same_type(w, n, n->in[0]) &&
           same(w, n, n->in[0]);
}

static bool
mul_is_square(cps_rw *w, const cps_node *n)
{
    return n->in[0] == n->in[1] && cps_dtype_is_float(cps_rw_type(w, n->in[0])->dtype) &&
           cps_rw_set(w, n->out[0], cps_b_unary(&w->b, CPS_OP_SQUARE, cps_rw_new(w, n->in[0])));
}

static bool
pow_is_simpler(cps_rw *w, const cps_node *n)
{
    static const struct {
        double e;
        cps_op op;
    } rows[] = {
        {2, CPS_OP_SQUARE}, {0.5, CPS_OP_SQRT}, {-0.5, CPS_OP_RSQRT}, {-1, CPS_OP_RECIPROCAL}};
    double e;
    if (!cps_rw_uniform(w, n->in[1], &e) || !same_type(w, n, n->in[0]) ||
        !cps_dtype_is_float(cps_rw_type(w, n->in[0])->dtype))
        return false;
    for (size_t i = 0; i < cps_countof(rows); i++)
        if (rows[i].e == e)
            return cps_rw_set(w, n->out[0],
                              cps_b_unary(&w->b, rows[i].op, cps_rw_new(w, n->in[0])));
    return false;
}

// x / c is x * (1 / c): for fp32 one rounding more, for narrow types only when it is exact.
static bool
div_by_const(cps_rw *w, const cps_node *n)
{
    double c;
    cps_dtype t = cps_rw_type(w, n->out[0])->dtype;
    if (!cps_dtype_is_float(t) || !cps_rw_uniform(w, n->in[1], &c) || c == 0 || !isfinite(c) ||
        !same_type(w, n, n->in[0]))
        return false;
    double r = cps_round_f64(t, 1 / c);
    if (!isfinite(r) || r == 0 || (t != CPS_DT_FP32 && r != 1 / c))
        return false;
    return cps_rw_set(
        w, n->out[0],
        cps_b_binary(&w->b, CPS_OP_MUL, cps_rw_new(w, n->in[0]), scalar(w, n, r)));
}

static bool
div_of_one(cps_rw *w, const cps_node *n)
{
    double c;
    return cps_rw_uniform(w, n->in[0], &c) && c == 1 && same_type(w, n, n->in[1]) &&
           cps_dtype_is_float(cps_rw_type(w, n->out[0])->dtype) &&
           cps_rw_set(w, n->out[0],
                      cps_b_unary(&w->b, CPS_OP_RECIPROCAL, cps_rw_new(w, n->in[1])));
}

// x / sqrt(y) is x * rsqrt(y), x * reciprocal(sqrt(y)) too: how norms are written.
static bool
div_by_sqrt(cps_rw *w, const cps_node *n)
{
    const cps_node *s = cps_rw_is(w, n->in[1], CPS_OP_SQRT);
    if (!s)
        return false;
    cps_val r = cps_b_unary(&w->b, CPS_OP_RSQRT, cps_rw_new(w, s->in[0]));
    return cps_rw_set(w, n->out[0],
                      cps_b_binary(&w->b, CPS_OP_MUL, cps_rw_new(w, n->in[0]), r));
}

static bool
reciprocal_of_sqrt(cps_rw *w, const cps_node *n)
{
    const cps_node *s = cps_rw_is(w, n->in[0], CPS_OP_SQRT);
    return s &&
           cps_rw_set(w, n->out[0], cps_b_unary(&w->b, CPS_OP_RSQRT, cps_rw_new(w, s->in[0])));
}

// (x * a) * b with scalars is x * (a b), in fp32 only: a product of two narrow constants
// rounds.
static bool
mul_of_mul(cps_rw *w, const cps_node *n)
{
    double a, b;
    const cps_node *p = cps_rw_is(w, n->in[0], CPS_OP_MUL);
    if (!p || cps_rw_type(w, n->out[0])->dtype != CPS_DT_FP32 ||
        !cps_rw_uniform(w, n->in[1], &b) || !cps_rw_uniform(w, p->in[1], &a) ||
        !same_type(w, n, p->in[0]) || !isfinite((float)(a * b)) ||
        (fabs(a * b) < 0x1p-126 && a * b != 0))
        return false;
    return cps_rw_set(
        w, n->out[0],
        cps_b_binary(&w->b, CPS_OP_MUL, cps_rw_new(w, p->in[0]), scalar(w, n, a * b)));
}

// (x + a) + b with constants is x + (a + b), which folds: one addition less on a device.
static bool
add_of_add(cps_rw *w, const cps_node *n)
{
    const cps_node *p = cps_rw_is(w, n->in[0], CPS_OP_ADD);
    if (!p || cps_rw_type(w, n->out[0])->dtype != CPS_DT_FP32 || !cps_rw_const(w, n->in[1]) ||
        !cps_rw_const(w, p->in[1]) || !same_type(w, n, p->in[0]) || w->uses[p->out[0]] != 1)
        return false;
    cps_val c =
        cps_b_binary(&w->b, CPS_OP_ADD, cps_rw_new(w, p->in[1]), cps_rw_new(w, n->in[1]));
    return cps_rw_set(w, n->out[0],
                      cps_b_binary(&w->b, CPS_OP_ADD, cps_rw_new(w, p->in[0]), c));
}

// neg(neg(x)), not(not(x)).
static bool
twice(cps_rw *w, const cps_node *n)
{
    const cps_node *p = cps_rw_is(w, n->in[0], n->op);
    return p && same(w, n, p->in[0]);
}

// abs, relu, floor and the like do nothing the second time.
static bool
again(cps_rw *w, const cps_node *n)
{
    return cps_rw_is(w, n->in[0], n->op) && same(w, n, n->in[0]);
}

// A product of x and its own sigmoid.
static bool
mul_is_silu(cps_rw *w, const cps_node *n)
{
    for (int i = 0; i < 2; i++) {
        const cps_node *s = cps_rw_is(w, n->in[i], CPS_OP_SIGMOID);
        if (s && s->in[0] == n->in[1 - i])
            return cps_rw_set(w, n->out[0],
                              cps_b_unary(&w->b, CPS_OP_SILU, cps_rw_new(w, s->in[0])));
    }
    return false;
}

static bool
select_of_known(cps_rw *w, const cps_node *n)
{
    double c;
    if (!cps_rw_uniform(w, n->in[0], &c))
        return false;
    cps_val v = n->in[c != 0 ? 1 : 2];
    return same_type(w, n, v) && same(w, n, v);
}

typedef struct rule_row {
    cps_op op;
    bool (*fn)(cps_rw *w, const cps_node *n);
} rule_row;

// In order of trial for each op.
static const rule_row rules[] = {
    {CPS_OP_RESHAPE, no_move},
    {CPS_OP_RESHAPE, reshape_of_reshape},
    {CPS_OP_RESHAPE, reshape_of_const},
    {CPS_OP_TRANSPOSE, transpose_of_transpose},
    {CPS_OP_TRANSPOSE, transpose_of_ones},
    {CPS_OP_BROADCAST, no_move},
    {CPS_OP_BROADCAST, broadcast_of_broadcast},
    {CPS_OP_BROADCAST, broadcast_is_reshape},
    {CPS_OP_CONCAT, concat_of_one},
    {CPS_OP_CONCAT, concat_of_empty},
    {CPS_OP_SLICE, slice_of_whole},
    {CPS_OP_PAD, no_move},
    {CPS_OP_CAST, no_move},
    {CPS_OP_CAST, cast_of_cast},
    {CPS_OP_CAST, cast_of_reshape},
    {CPS_OP_CAST, narrow_before_move},
    {CPS_OP_ADD, const_second},
    {CPS_OP_MUL, const_second},
    {CPS_OP_MAX, const_second},
    {CPS_OP_MIN, const_second},
    {CPS_OP_EQ, const_second},
    {CPS_OP_NE, const_second},
    {CPS_OP_AND, const_second},
    {CPS_OP_OR, const_second},
    {CPS_OP_XOR, const_second},
    {CPS_OP_ADD, neutral},
    {CPS_OP_SUB, neutral},
    {CPS_OP_MUL, neutral},
    {CPS_OP_DIV, neutral},
    {CPS_OP_POW, neutral},
    {CPS_OP_POW, pow_is_simpler},
    {CPS_OP_MUL, mul_is_square},
    {CPS_OP_ADD, add_of_add},
    {CPS_OP_MUL, mul_of_mul},
    {CPS_OP_MUL, mul_is_silu},
    {CPS_OP_DIV, div_of_one},
    {CPS_OP_DIV, div_by_const},
    {CPS_OP_DIV, div_by_sqrt},
    {CPS_OP_RECIPROCAL, reciprocal_of_sqrt},
    {CPS_OP_NEG, twice},
    {CPS_OP_ABS, again},
    {CPS_OP_RELU, again},
    {CPS_OP_FLOOR, again},
    {CPS_OP_CEIL, again},
    {CPS_OP_ROUND, again},
    {CPS_OP_SIGN, again},
    {CPS_OP_SELECT, select_of_known},
};

static bool
canon_rule(cps_rw *w, const cps_node *n)
{
    for (size_t i = 0; i < cps_countof(rules); i++)
        if (rules[i].op == n->op && rules[i].fn(w, n))
            return true;
    // Rules of a whole class.
    switch (cps_ops[n->op].opclass) {
    case CPS_OC_UNARY:
        return unary_of_broadcast(w, n);
    case CPS_OC_BINARY:
        return bare_operands(w, n) || binary_of_broadcast(w, n);
    case CPS_OC_TERNARY:
        return bare_operands(w, n);
    case CPS_OC_REDUCE:
        return reduce_of_broadcast(w, n);
    default:
        return false;
    }
}

void
cps_lower_drop_constants(cps_module *m)
{
    uint32_t *at = cps_new_array(m->arena, uint32_t, m->consts.n + 1);
    for (uint32_t i = 0; i < m->funcs.n; i++)
        for (uint32_t k = 0; k < m->funcs.data[i]->nodes.n; k++)
            if (m->funcs.data[i]->nodes.data[k].op == CPS_OP_CONST)
                at[m->funcs.data[i]->nodes.data[k].cst] = 1;
    uint32_t n = 0;
    for (uint32_t i = 0; i < m->consts.n; i++)
        if (at[i]) {
            m->consts.data[n] = m->consts.data[i];
            at[i] = n++;
        }
    m->consts.n = n;
    for (uint32_t i = 0; i < m->funcs.n; i++)
        for (uint32_t k = 0; k < m->funcs.data[i]->nodes.n; k++)
            if (m->funcs.data[i]->nodes.data[k].op == CPS_OP_CONST)
                m->funcs.data[i]->nodes.data[k].cst = at[m->funcs.data[i]->nodes.data[k].cst];
}

bool
cps_lower_canon(cps_lower *l, cps_module *m)
{
    // Folding makes constants that rules look at, rules make constants that fold.
    for (int round = 0; round < MAX_ROUNDS; round++) {
        unsigned all = 0, changes = 1;
        for (int sweep = 0; changes && sweep < MAX_SWEEPS; sweep++) {
            if (!cps_lower_rewrite(l, m, canon_rule, &changes))
                return false;
            all += changes;
        }
        if (round && !all)
            break;
        if (!cps_ir_dce(m, l->d) || !cps_ir_fold(m, l->d) || !cps_ir_cse(m, l->d) ||
            !cps_ir_dce(m, l->d))
            return false;
    }
    return true;
}
