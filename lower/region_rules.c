/* Rewriting for regions: what engines do not compute as the graph has it becomes ops that they do, before
 * regions are formed; broadcasts that no region takes are written out, behind that.
 *
 * Holds: values stay what they are, bit for bit where they are integers. */
#include "lower/region.h"

#include "ir/pass.h"
#include "lower/map.h"

/* ---- remainders ---- */

// C's remainder goes towards zero, the engines' has the divisor's sign.
static bool
remainder_rule(cps_rw *w, const cps_node *n)
{
    cps_dtype t = cps_rw_type(w, n->out[0])->dtype;
    if (n->op != CPS_OP_MOD || !cps_attr_int(n->attr, n->nattr, "fmod", 0) || cps_dtype_bytes(t) > 4)
        return false;
    cps_builder *b = &w->b;
    cps_val x = cps_rw_new(w, n->in[0]), y = cps_rw_new(w, n->in[1]);
    if (cps_dtype_is_float(t)) {
        cps_val m = cps_b_binary(b, CPS_OP_MOD, cps_b_unary(b, CPS_OP_ABS, x), cps_b_unary(b, CPS_OP_ABS, y));
        return cps_rw_set(w, n->out[0], cps_b_binary(b, CPS_OP_MUL, m, cps_b_unary(b, CPS_OP_SIGN, x)));
    }
    cps_val q = cps_b_binary(b, CPS_OP_DIV, x, y);
    return cps_rw_set(w, n->out[0], cps_b_binary(b, CPS_OP_SUB, x, cps_b_binary(b, CPS_OP_MUL, q, y)));
}

/* ---- running sums ---- */

static cps_val
running_sum(cps_rw *w, cps_val x, int64_t axis, bool exclusive)
{
    const cps_type *t = cps_rw_new_type(w, x);
    bool moved = exclusive && cps_region_too_long(t->dim[axis], cps_type_count(t)); // the library's operator, one element on
    cps_type zero = *t;
    cps_val v = 0;
    cps_b_node(&w->b, CPS_OP_CUMSUM, 1, &x, 3,
               (cps_attr[]){cps_a_int("axis", axis), cps_a_bool("exclusive", exclusive && !moved), cps_a_bool("reverse", false)}, &v);
    if (!moved)
        return v;
    int64_t start[CPS_MAX_RANK] = {0}, stop[CPS_MAX_RANK], step[CPS_MAX_RANK];
    for (int i = 0; i < zero.rank; i++) {
        stop[i] = zero.dim[i] - (i == axis);
        step[i] = 1;
    }
    zero.dim[axis] = 1;
    cps_val in[2] = {cps_b_broadcast(&w->b, cps_b_scalar(&w->b, zero.dtype, 0), zero.rank, zero.dim),
                     cps_b_slice(&w->b, v, start, stop, step)};
    return cps_b_concat(&w->b, 2, in, (int)axis);
}

// x with its elements along the axis in the other order.
static cps_val
backwards(cps_rw *w, cps_val x, int64_t axis)
{
    const cps_type t = *cps_rw_new_type(w, x);
    int64_t start[CPS_MAX_RANK] = {0}, stop[CPS_MAX_RANK], step[CPS_MAX_RANK];
    for (int i = 0; i < t.rank; i++) {
        start[i] = i == axis ? t.dim[i] - 1 : 0;
        stop[i] = i == axis ? -1 : t.dim[i];
        step[i] = i == axis ? -1 : 1;
    }
    return cps_b_slice(&w->b, x, start, stop, step);
}

// Engines scan along a row, forwards: other axes are turned there and back, and elements are put into the other order for
// sums from the end (a total less what comes before would lose small sums behind large elements).
static bool
scan_rule(cps_rw *w, const cps_node *n)
{
    if (n->op != CPS_OP_CUMSUM)
        return false;
    const cps_type *t = cps_rw_type(w, n->in[0]);
    int64_t axis = cps_attr_int(n->attr, n->nattr, "axis", 0), last = t->rank - 1, perm[CPS_MAX_RANK];
    bool exclusive = cps_attr_int(n->attr, n->nattr, "exclusive", 0), reverse = cps_attr_int(n->attr, n->nattr, "reverse", 0);
    if (t->dim[axis] == 1 && !exclusive)
        return cps_rw_set(w, n->out[0], cps_rw_new(w, n->in[0]));
    if (t->dim[axis] == 1)
        return cps_rw_set(w, n->out[0], cps_b_broadcast(&w->b, cps_b_scalar(&w->b, t->dtype, 0), t->rank, t->dim));
    bool as_it_is = !reverse && axis == last && !(exclusive && cps_region_too_long(t->dim[last], cps_type_count(t)));
    if (!cps_dtype_is_float(t->dtype) || as_it_is)
        return false;
    cps_builder *b = &w->b;
    for (int i = 0; i <= last; i++)
        perm[i] = i == axis ? last : i == last ? axis : i;
    cps_val x = cps_rw_new(w, n->in[0]);
    if (reverse)
        x = backwards(w, x, axis);
    if (axis != last)
        x = cps_b_transpose(b, x, perm);
    cps_val y = running_sum(w, x, last, exclusive);
    if (axis != last)
        y = cps_b_transpose(b, y, perm);
    return cps_rw_set(w, n->out[0], reverse ? backwards(w, y, axis) : y);
}

/* ---- padding ---- */

// `x` with n elements of the value before it or behind it along the axis.
static cps_val
put_beside(cps_rw *w, cps_val x, cps_val value, int axis, int64_t n, bool before)
{
    cps_type t = *cps_rw_new_type(w, x);
    if (!n)
        return x;
    t.dim[axis] = n;
    cps_val side = cps_b_broadcast(&w->b, value, t.rank, t.dim), in[2] = {before ? side : x, before ? x : side};
    return cps_b_concat(&w->b, 2, in, axis);
}

// Nothing pads by itself: what is put around a tensor is joined to it, an axis after the other.
static bool
pad_rule(cps_rw *w, const cps_node *n)
{
    const cps_attr *lo = cps_node_attr(n, "lo"), *hi = cps_node_attr(n, "hi");
    if (n->op != CPS_OP_PAD)
        return false;
    const cps_type *t = cps_rw_type(w, n->in[0]);
    for (int i = 0; i < t->rank; i++)
        if (lo->ints[i] < 0 || hi->ints[i] < 0)
            return false;
    cps_val x = cps_rw_new(w, n->in[0]), value = cps_rw_reshape(w, cps_rw_new(w, n->in[1]), 0, NULL);
    for (int i = t->rank - 1; i >= 0; i--) {
        x = put_beside(w, x, value, i, lo->ints[i], true);
        x = put_beside(w, x, value, i, hi->ints[i], false);
    }
    return cps_rw_set(w, n->out[0], x);
}

/* ---- positions ---- */

// Positions along an axis are a row of constants, which regions read as one: what is not folded is large.
static bool
index_rule(cps_rw *w, const cps_node *n)
{
    const cps_type *t = cps_rw_type(w, n->out[0]);
    int64_t axis = cps_attr_int(n->attr, n->nattr, "axis", 0), dim[CPS_MAX_RANK], one;
    if (n->op != CPS_OP_INDEX || t->rank < 2)
        return false;
    for (int i = 0; i < t->rank; i++)
        dim[i] = i == axis ? t->dim[i] : 1;
    one = t->dim[axis];
    cps_val v = 0;
    cps_b_node(&w->b, CPS_OP_INDEX, 0, NULL, 3,
               (cps_attr[]){cps_a_int("axis", 0), cps_a_dtype("dtype", t->dtype), cps_a_ints("shape", 1, &one)}, &v);
    return cps_rw_set(w, n->out[0], cps_b_broadcast(&w->b, cps_rw_reshape(w, v, t->rank, dim), t->rank, t->dim));
}

/* ---- narrow integers ---- */

// Integers of 8 and 16 bits wrap and engines saturate: they are computed in 32 bits, of which the cast keeps the low ones.
static bool
narrow_rule(cps_rw *w, const cps_node *n)
{
    if (n->nout != 1 || n->nin < 1 || n->nin > 3 || n->op == CPS_OP_CAST)
        return false;
    const cps_type *t = cps_rw_type(w, n->out[0]), *o = cps_rw_type(w, n->in[n->nin - 1]);
    cps_opclass c = (cps_opclass)cps_ops[n->op].opclass;
    bool is_short = cps_dtype_is_int(t->dtype) && cps_dtype_bytes(t->dtype) < 4 && t->dtype != CPS_DT_BOOL;
    cps_val in[3];
    if (!is_short || o->dtype != t->dtype || (c != CPS_OC_UNARY && c != CPS_OC_BINARY && c != CPS_OC_TERNARY))
        return false;
    for (int k = 0; k < n->nin; k++) {
        in[k] = cps_rw_new(w, n->in[k]);
        if (cps_rw_type(w, n->in[k])->dtype == t->dtype)
            in[k] = cps_b_cast(&w->b, in[k], CPS_DT_I32);
    }
    return cps_rw_set(w, n->out[0], cps_b_cast(&w->b, cps_rw_like(w, n, n->nin, in), t->dtype));
}

static bool
engines_rule(cps_rw *w, const cps_node *n)
{
    w->b.from = n->from;
    return remainder_rule(w, n) || scan_rule(w, n) || pad_rule(w, n) || index_rule(w, n) || narrow_rule(w, n);
}

bool
cps_region_ready(cps_lower *l, cps_module *m)
{
    // Twice: the remainder of short integers is one of 32 bits then.
    unsigned once, again = 0;
    return cps_lower_rewrite(l, m, engines_rule, &once) &&
           (!once || (cps_lower_rewrite(l, m, engines_rule, &again) && cps_lower_canon(l, m)));
}

// What broadcasts in a way that no compact space has, and has no leaf of its own, meets its
// operands written out.
static bool
write_out_rule(cps_rw *w, const cps_node *n)
{
    const cps_type *t = cps_rw_type(w, n->out[0]);
    cps_val in[3];
    bool any = false;
    double x;
    cps_opclass c = (cps_opclass)cps_ops[n->op].opclass;
    if ((c != CPS_OC_BINARY && c != CPS_OC_TERNARY) || !cps_region_takes(w->old, n, NULL) ||
        cps_map_takes(w->old, n))
        return false;
    for (int k = 0; k < n->nin; k++) {
        const cps_type *o = cps_rw_type(w, n->in[k]);
        bool same = o->rank == t->rank && memcmp(o->dim, t->dim, (size_t)t->rank * sizeof o->dim[0]) == 0;
        in[k] = cps_rw_new(w, n->in[k]);
        if (same || cps_rw_uniform(w, n->in[k], &x))
            continue;
        any = true;
        in[k] = cps_b_broadcast(&w->b, in[k], t->rank, t->dim);
    }
    return any && cps_rw_set(w, n->out[0], cps_rw_like(w, n, n->nin, in));
}

bool
cps_region_write_out(cps_lower *l, cps_module *m, cps_func *f, unsigned *changes)
{
    return cps_rewrite(m, f, write_out_rule, NULL, l->d, changes);
}
