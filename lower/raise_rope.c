/* Rotary position embedding as decoders spell it out: x * cos + rotate(x) * sin, where rotate
 * gives the second half of the last axis, negated, and then the first, and where cos and sin
 * are constants whose two halves are equal. Positions may stand one or two axes before the
 * last; all other axes are folded. */
#include "lower/match.h"

typedef struct rope {
    cps_val x;
    const cps_const *table[2]; // cos, sin
    int at;                    // axis of positions
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

// A constant of one row for each position, whose halves are equal.
static bool
table(const cps_rw *w, cps_val v, const cps_type *x, rope *k, int i)
{
    const cps_const *c = cps_rw_const(w, v);
    if (!c || !c->type.rank || x->rank < 2)
        return false;
    int r = c->type.rank, at = -1;
    int64_t d = c->type.dim[r - 1], rows = 1;
    if (d != x->dim[x->rank - 1])
        return false;
    for (int j = 0; j < r - 1; j++) {
        int axis = x->rank - r + j;
        if (c->type.dim[j] == 1)
            continue;
        if (at >= 0 || axis < x->rank - 3 || axis < 0 || c->type.dim[j] != x->dim[axis])
            return false;
        at = axis;
        rows = c->type.dim[j];
    }
    at = at < 0 ? x->rank - 2 : at;
    if (rows != x->dim[at] || (i && at != k->at))
        return false;
    size_t half = (size_t)(d / 2) * cps_dtype_bytes(c->type.dtype);
    for (int64_t j = 0; j < rows; j++) {
        const uint8_t *p = (const uint8_t *)c->data + (size_t)j * 2 * half;
        if (memcmp(p, p + half, half) != 0)
            return false;
    }
    k->at = at;
    k->table[i] = c;
    return true;
}

// [S, d/2]: the first halves.
static cps_val
half_table(cps_rw *w, const cps_const *c, int64_t rows)
{
    int64_t d = c->type.dim[c->type.rank - 1];
    size_t half = (size_t)(d / 2) * cps_dtype_bytes(c->type.dtype);
    uint8_t *p = cps_arena_alloc(w->m->arena, (size_t)rows * half + 1);
    for (int64_t i = 0; i < rows; i++)
        memcpy(p + (size_t)i * half, (const uint8_t *)c->data + (size_t)i * 2 * half, half);
    cps_type t = cps_type_make(c->type.dtype, 2, (int64_t[]){rows, d / 2});
    return cps_b_const(&w->b, t, p, c->name);
}

static bool
match(const cps_rw *w, const cps_node *n, rope *k)
{
    for (int i = 0; i < 2; i++) {
        const cps_node *a = cps_rw_is(w, n->in[i], CPS_OP_MUL);
        const cps_node *b = cps_rw_is(w, n->in[1 - i], CPS_OP_MUL);
        *k = (rope){.x = a ? a->in[0] : 0};
        if (!a || !b || !rotated(w, b->in[0], k->x, &k->t) ||
            !table(w, a->in[1], cps_rw_type(w, k->x), k, 0) ||
            !table(w, b->in[1], cps_rw_type(w, k->x), k, 1))
            continue;
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
    cps_const tables[2] = {*k.table[0], *k.table[1]}; // the vector may move
    w->b.from = cps_rw_from(w, k.t.n, k.t.node);
    cps_call c = {.callee = "rope", .nin = 3};
    c.in[0] = cps_rw_reshape(w, cps_rw_new(w, k.x), 4, dim);
    for (int i = 0; i < 2; i++)
        c.in[i + 1] = half_table(w, &tables[i], dim[1]);
    cps_val y;
    return cps_call_make(w, &c, &y) &&
           cps_rw_set(w, n->out[0], cps_rw_reshape(w, y, t->rank, t->dim));
}
