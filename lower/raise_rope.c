/* Rotary position embedding as decoders spell it out: x * cos + rotate(x) * sin, where rotate
 * gives the second half of the last axis, negated, and then the first, and where cos and sin
 * have two equal halves: constants, rows of constants at positions known only at run time, or
 * computed from angles that were put beside themselves. Positions may stand along any axis
 * before the last; all other axes are folded. */
#include "lower/match.h"

typedef struct rope {
    cps_val x;
    cps_val table[2]; // cos, sin
    int at;           // axis of positions
    cps_trail t;
} rope;

// The slice takes [from, to) of the last axis and all of the others.
static bool
takes(const cps_rw *w, const cps_node *n, int64_t from, int64_t to)
{
    const cps_type *t = cps_rw_type(w, n->in[0]);
    const int64_t *start = cps_node_attr(n, "start")->ints,
                  *stop = cps_node_attr(n, "stop")->ints;
    const int64_t *step = cps_node_attr(n, "step")->ints;
    for (int i = 0; i < t->rank; i++) {
        bool last = i == t->rank - 1;
        if (step[i] != 1 || start[i] != (last ? from : 0) || stop[i] != (last ? to : t->dim[i]))
            return false;
    }
    return true;
}

// v = concat(-x[d/2:], x[:d/2]) along the last axis.
static bool
rotated(const cps_rw *w, cps_val v, cps_val x, cps_trail *t)
{
    const cps_node *c = cps_rw_is(w, v, CPS_OP_CONCAT);
    const cps_type *type = cps_rw_type(w, x);
    int64_t d = type->rank ? type->dim[type->rank - 1] : 0;
    if (!c || c->nin != 2 || d % 2 ||
        cps_attr_int(c->attr, c->nattr, "axis", -1) != type->rank - 1)
        return false;
    const cps_node *neg = cps_rw_is(w, c->in[0], CPS_OP_NEG);
    const cps_node *hi = neg ? cps_rw_is(w, neg->in[0], CPS_OP_SLICE) : NULL;
    const cps_node *lo = cps_rw_is(w, c->in[1], CPS_OP_SLICE);
    if (!hi || !lo || hi->in[0] != x || lo->in[0] != x || !takes(w, hi, d / 2, d) ||
        !takes(w, lo, 0, d / 2))
        return false;
    cps_trail_add(t, hi);
    cps_trail_add(t, neg);
    cps_trail_add(t, lo);
    cps_trail_add(t, c);
    return true;
}

static int64_t
last(const cps_rw *w, cps_val v)
{
    const cps_type *t = cps_rw_type(w, v);
    return t->rank ? t->dim[t->rank - 1] : 1;
}

static bool
equal_halves(const cps_const *c)
{
    int64_t d = c->type.dim[c->type.rank - 1], rows = cps_type_count(&c->type) / d;
    size_t half = (size_t)(d / 2) * cps_dtype_bytes(c->type.dtype);
    for (int64_t j = 0; j < rows; j++) {
        const uint8_t *p = (const uint8_t *)c->data + (size_t)j * 2 * half;
        if (memcmp(p, p + half, half) != 0)
            return false;
    }
    return true;
}

// The two halves of v's last axis are equal whatever the operands of the model are.
static bool
halves(const cps_rw *w, cps_val v, int depth)
{
    const cps_node *n = cps_rw_def(w, v);
    int64_t d = last(w, v);
    if (!n || !depth || d % 2 || n->nout != 1)
        return d == 1;
    switch (n->op) {
    case CPS_OP_CONST:
        return equal_halves(cps_rw_const(w, v));
    case CPS_OP_CONCAT:
        return n->nin == 2 && n->in[0] == n->in[1] &&
               cps_attr_int(n->attr, n->nattr, "axis", -1) == cps_rw_type(w, v)->rank - 1;
    case CPS_OP_GATHER:
        return cps_attr_int(n->attr, n->nattr, "axis", -1) <
                   cps_rw_type(w, n->in[0])->rank - 1 &&
               halves(w, n->in[0], depth - 1);
    case CPS_OP_RESHAPE:
    case CPS_OP_BROADCAST:
        return (last(w, n->in[0]) == d ||
                (last(w, n->in[0]) == 1 && n->op == CPS_OP_BROADCAST)) &&
               halves(w, n->in[0], depth - 1);
    case CPS_OP_COS:
    case CPS_OP_SIN:
    case CPS_OP_CAST:
        return halves(w, n->in[0], depth - 1);
    case CPS_OP_ADD:
    case CPS_OP_SUB:
    case CPS_OP_MUL:
        return halves(w, n->in[0], depth - 1) && halves(w, n->in[1], depth - 1);
    default:
        return false;
    }
}

enum { DEPTH = 16 };

// One row for each position, whose halves are equal.
static bool
table(const cps_rw *w, cps_val v, const cps_type *x, rope *k, int i)
{
    const cps_type *t = cps_rw_type(w, v);
    if (!t->rank || x->rank < 2 || t->rank > x->rank ||
        t->dim[t->rank - 1] != x->dim[x->rank - 1])
        return false;
    int at = -1;
    int64_t rows = 1;
    for (int j = 0; j < t->rank - 1; j++) {
        int axis = x->rank - t->rank + j;
        if (t->dim[j] == 1)
            continue;
        if (at >= 0 || t->dim[j] != x->dim[axis])
            return false;
        at = axis;
        rows = t->dim[j];
    }
    // One row for all: any axis of one position will do.
    for (int axis = x->rank - 2; at < 0 && axis >= 0; axis--)
        at = x->dim[axis] == 1 ? axis : -1;
    if (at < 0 || rows != x->dim[at] || (i && at != k->at) || !halves(w, v, DEPTH))
        return false;
    k->at = at;
    k->table[i] = v;
    return true;
}

static cps_val
half_const(cps_rw *w, const cps_const *c)
{
    cps_type t = c->type;
    int64_t d = t.dim[t.rank - 1], rows = cps_type_count(&t) / d;
    size_t half = (size_t)(d / 2) * cps_dtype_bytes(t.dtype);
    uint8_t *p = cps_arena_alloc(w->m->arena, (size_t)rows * half + 1);
    for (int64_t i = 0; i < rows; i++)
        memcpy(p + (size_t)i * half, (const uint8_t *)c->data + (size_t)i * 2 * half, half);
    t.dim[t.rank - 1] = d / 2;
    return cps_b_const(&w->b, t, p, c->name);
}

// The first half of v's last axis, in the new function: taken before what computes v where that
// is easy.
static cps_val
first_half(cps_rw *w, cps_val v, int depth)
{
    const cps_node *n = cps_rw_def(w, v);
    cps_type t = *cps_rw_type(w, v);
    int64_t half = t.dim[t.rank - 1] / 2;
    if (n && n->op == CPS_OP_CONST) {
        cps_const c = *cps_rw_const(w, v); // the vector may move
        return half_const(w, &c);
    }
    if (n && n->op == CPS_OP_CONCAT && n->in[0] == n->in[1])
        return cps_rw_new(w, n->in[0]);
    if (n && depth && n->op == CPS_OP_GATHER)
        return cps_b_gather(&w->b, first_half(w, n->in[0], depth - 1), cps_rw_new(w, n->in[1]),
                            (int)cps_attr_int(n->attr, n->nattr, "axis", 0));
    if (n && depth && (n->op == CPS_OP_COS || n->op == CPS_OP_SIN))
        return cps_b_unary(&w->b, n->op, first_half(w, n->in[0], depth - 1));
    if (n && depth && n->op == CPS_OP_CAST)
        return cps_b_cast(&w->b, first_half(w, n->in[0], depth - 1), t.dtype);
    if (n && depth && n->op == CPS_OP_RESHAPE) {
        t.dim[t.rank - 1] = half;
        return cps_b_reshape(&w->b, first_half(w, n->in[0], depth - 1), t.rank, t.dim);
    }
    int64_t start[CPS_MAX_RANK] = {0}, stop[CPS_MAX_RANK], step[CPS_MAX_RANK];
    for (int i = 0; i < t.rank; i++) {
        stop[i] = i == t.rank - 1 ? half : t.dim[i];
        step[i] = 1;
    }
    return cps_b_slice(&w->b, cps_rw_new(w, v), start, stop, step);
}

// x and the other factor, in either order.
static bool
product(const cps_node *n, int swap, cps_val *x, cps_val *factor)
{
    *x = n ? n->in[swap] : 0;
    *factor = n ? n->in[1 - swap] : 0;
    return n != NULL;
}

static bool
match(const cps_rw *w, const cps_node *n, rope *k)
{
    for (int way = 0; way < 8;
         way++) { // which product is the rotated one, and the order of factors in each
        const cps_node *a = cps_rw_is(w, n->in[way & 1], CPS_OP_MUL);
        const cps_node *b = cps_rw_is(w, n->in[1 - (way & 1)], CPS_OP_MUL);
        cps_val x, cos, turned, sin;
        *k = (rope){0};
        if (!product(a, way >> 1 & 1, &x, &cos) || !product(b, way >> 2, &turned, &sin) ||
            !rotated(w, turned, x, &k->t) || !table(w, cos, cps_rw_type(w, x), k, 0) ||
            !table(w, sin, cps_rw_type(w, x), k, 1))
            continue;
        k->x = x;
        cps_trail_add(&k->t, a);
        cps_trail_add(&k->t, b);
        cps_trail_add(&k->t, n);
        return true;
    }
    return false;
}

bool
cps_raise_rope(cps_rw *w, const cps_node *n)
{
    rope k;
    if (n->op != CPS_OP_ADD || !match(w, n, &k))
        return false;
    const cps_type *t = cps_rw_type(w, n->out[0]);
    if (!cps_type_eq(t, cps_rw_type(w, k.x)))
        return false;
    // [axes before, S, axes between, d]
    int64_t dim[4] = {1, t->dim[k.at], 1, t->dim[t->rank - 1]};
    for (int i = 0; i < t->rank - 1; i++)
        if (i != k.at)
            dim[i < k.at ? 0 : 2] *= t->dim[i];
    if (dim[1] == 1) { // one position: all are its heads, side by side
        dim[2] *= dim[0];
        dim[0] = 1;
    }
    w->b.from = cps_rw_from(w, k.t.n, k.t.node);
    cps_call c = {.callee = "rope", .nin = 3};
    c.in[0] = cps_rw_reshape(w, cps_rw_new(w, k.x), 4, dim);
    for (int i = 0; i < 2; i++)
        c.in[i + 1] = cps_rw_reshape(w, first_half(w, k.table[i], DEPTH), 2,
                                     (int64_t[]){dim[1], dim[3] / 2});
    cps_val y;
    return cps_call_make(w, &c, &y) &&
           cps_rw_set(w, n->out[0], cps_rw_reshape(w, y, t->rank, t->dim));
}
