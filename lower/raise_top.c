/* Sorts of which only the head is read, and positions of extremes: calls of `topk`.
 *
 *   slice(sort(x)[0], 0:k), slice(sort(x)[1], 0:k)         ONNX TopK
 *   min(select(x == max(x), position, last))               ONNX ArgMax, the first position of
 * the maximum
 *
 * Equal values come in the order of their positions in both. A NaN is passed over, which ONNX leaves open. The operator takes the largest of
 * the last axis: another axis is turned to the end, and for the smallest the values go in and
 * come out negated. */
#include "lower/match.h"

typedef struct top {
    cps_val x; // old
    int axis;
    bool smallest;
} top;

// The values and the positions (i32) of the k first, as results of x's shape but for `axis`.
static bool
call(cps_rw *w, const top *t, int64_t k, cps_val *values, cps_val *positions)
{
    const cps_type type = *cps_rw_type(w, t->x);
    if (type.dtype != CPS_DT_FP32 && type.dtype != CPS_DT_BF16 && type.dtype != CPS_DT_FP16)
        return false;
    int last = type.rank - 1;
    int64_t perm[CPS_MAX_RANK], shape[CPS_MAX_RANK], dim[2] = {1, type.dim[t->axis]};
    for (int i = 0; i < type.rank; i++) {
        perm[i] = i == t->axis ? last : i == last ? t->axis : i; // its own inverse
        shape[i] = i == last ? k : type.dim[perm[i]];
    }
    for (int i = 0; i < last; i++)
        dim[0] *= shape[i];
    cps_val x = cps_rw_new(w, t->x), out[CPS_MAX_OPERANDS];
    if (t->axis != last)
        x = cps_b_transpose(&w->b, x, perm);
    if (t->smallest)
        x = cps_b_unary(&w->b, CPS_OP_NEG, x);
    cps_call c = {.callee = "topk", .nin = 1, .in = {cps_rw_reshape(w, x, 2, dim)}, .nattr = 1};
    c.attr[0] = cps_a_int("k", k);
    if (!cps_call_make_all(w, &c, out))
        return false;
    cps_val v = out[0], p = cps_b_cast(&w->b, out[1], CPS_DT_I32);
    if (t->smallest)
        v = cps_b_unary(&w->b, CPS_OP_NEG, v);
    v = cps_rw_reshape(w, v, type.rank, shape);
    p = cps_rw_reshape(w, p, type.rank, shape);
    *values = t->axis != last ? cps_b_transpose(&w->b, v, perm) : v;
    *positions = t->axis != last ? cps_b_transpose(&w->b, p, perm) : p;
    return true;
}

/* ---- heads of sorts ---- */

// The sort whose result v is; its positions stand behind a cast to 32 bits.
static const cps_node *
sorted(const cps_rw *w, cps_val v, bool *positions)
{
    const cps_node *n = cps_rw_def(w, v);
    if (n && n->op == CPS_OP_CAST && cps_rw_type(w, v)->dtype == CPS_DT_I32) {
        const cps_node *s = cps_rw_is(w, n->in[0], CPS_OP_SORT);
        *positions = true;
        return s && n->in[0] == s->out[1] ? s : NULL;
    }
    *positions = false;
    return n && n->op == CPS_OP_SORT && v == n->out[0] ? n : NULL;
}

static bool
raise_head(cps_rw *w, const cps_node *n)
{
    bool positions;
    const cps_node *s = sorted(w, n->in[0], &positions);
    if (!s)
        return false;
    top t = {s->in[0], (int)cps_attr_int(s->attr, s->nattr, "axis", 0),
             !cps_attr_int(s->attr, s->nattr, "descending", 0)};
    const cps_type *x = cps_rw_type(w, t.x), *y = cps_rw_type(w, n->out[0]);
    const int64_t *start = cps_node_attr(n, "start")->ints,
                  *step = cps_node_attr(n, "step")->ints;
    for (int i = 0; i < x->rank; i++)
        if (start[i] != 0 || step[i] != 1 || (i != t.axis && y->dim[i] != x->dim[i]))
            return false;
    if (!y->dim[t.axis])
        return false;
    const cps_node *both[] = {s, n};
    cps_val v, p;
    w->b.from = cps_rw_from(w, 2, both);
    return call(w, &t, y->dim[t.axis], &v, &p) && cps_rw_set(w, n->out[0], positions ? p : v);
}

// A sort that is read whole. What reads heads of it does not come here again, and nothing is
// left of this then.
static bool
raise_whole(cps_rw *w, const cps_node *n)
{
    top t = {n->in[0], (int)cps_attr_int(n->attr, n->nattr, "axis", 0),
             !cps_attr_int(n->attr, n->nattr, "descending", 0)};
    int64_t k = cps_rw_type(w, t.x)->dim[t.axis];
    cps_val v, p;
    return k > 0 && call(w, &t, k, &v, &p) && cps_rw_set(w, n->out[0], v) &&
           cps_rw_set(w, n->out[1], cps_b_cast(&w->b, p, CPS_DT_I64));
}

/* ---- positions of extremes ---- */

// An index along the axis, or a constant whose elements are their own positions along it.
static bool
is_position(const cps_rw *w, cps_val v, const cps_type *like, int axis)
{
    const cps_node *index = cps_rw_is(w, v, CPS_OP_INDEX);
    if (index) {
        const cps_type *t = cps_rw_type(w, v);
        return cps_attr_int(index->attr, index->nattr, "axis", 0) == axis &&
               t->rank == like->rank && t->dim[axis] == like->dim[axis];
    }
    const cps_const *c = cps_rw_const(w, v);
    if (!c || c->type.dtype != CPS_DT_I32 || c->type.rank != like->rank ||
        memcmp(c->type.dim, like->dim, (size_t)like->rank * sizeof *like->dim) != 0)
        return false;
    int64_t count = cps_type_count(like), inner = 1, n = like->dim[axis];
    for (int i = axis + 1; i < like->rank; i++)
        inner *= like->dim[i];
    const int32_t *p = c->data;
    for (int64_t i = 0; i < count; i++)
        if (p[i] != i / inner % n)
            return false;
    return true;
}

static bool
raise_position(cps_rw *w, const cps_node *n)
{
    const cps_attr *axes = cps_node_attr(n, "axes");
    const cps_node *pick = cps_rw_is(w, n->in[0], CPS_OP_SELECT);
    const cps_node *hit = pick ? cps_rw_is(w, pick->in[0], CPS_OP_EQ) : NULL;
    double none;
    if (!hit || axes->n != 1 || !cps_rw_uniform(w, pick->in[2], &none))
        return false;
    top t = {hit->in[0], (int)axes->ints[0], false};
    const cps_type *x = cps_rw_type(w, t.x), *y = cps_rw_type(w, n->out[0]);
    const cps_node *best = cps_rw_def(w, hit->in[1]);
    if (!best || (best->op != CPS_OP_RMAX && best->op != CPS_OP_RMIN) || best->in[0] != t.x ||
        !cps_node_attr(best, "keep")->i || cps_node_attr(best, "axes")->n != 1 ||
        cps_node_attr(best, "axes")->ints[0] != t.axis || none < (double)x->dim[t.axis] - 1 ||
        !is_position(w, pick->in[1], x, t.axis))
        return false;
    t.smallest = best->op == CPS_OP_RMIN;
    const cps_node *all[] = {best, hit, pick, n};
    cps_val v, p;
    w->b.from = cps_rw_from(w, 4, all);
    return call(w, &t, 1, &v, &p) &&
           cps_rw_set(w, n->out[0], cps_rw_reshape(w, p, y->rank, y->dim));
}

bool
cps_raise_top(cps_rw *w, const cps_node *n)
{
    return n->op == CPS_OP_SLICE  ? raise_head(w, n)
           : n->op == CPS_OP_SORT ? raise_whole(w, n)
           : n->op == CPS_OP_RMIN ? raise_position(w, n)
                                  : false;
}
