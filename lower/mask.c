/* Masks over queries and keys, however they were spelled: a stored triangle, Trilu, comparisons
 * of ranges, a window as the conjunction of two.
 *
 * A row of the mask is a few pieces, each linear in the key's position, so a computed mask of S
 * x S costs a few steps a row and is never stored. The value may be built of constants,
 * positions, moves that keep rows rows and columns columns, arithmetic, comparisons, logic and
 * selects; with anything else it is no mask that is known before the run. */
#include "lower/match.h"

#include <math.h>

enum {
    PIECES = 16, // of a row
    WORK = 512   // values looked at for a row, an operand with two readers twice
};

typedef struct piece { // base + slope j from column `from` on
    int64_t from;
    double base, slope;
} piece;

typedef struct line {
    int n; // over PIECES: given up
    piece p[PIECES];
} line;

typedef struct place { // of a value: its axes of queries and keys (-1: the same along it), the
                       // query, the keys
    int row, col;
    int64_t i, cols;
    int *work; // what is left
} place;

static double
at(piece p, int64_t j)
{
    return p.slope == 0 ? p.base : p.base + p.slope * (double)j;
}

static void
put(line *l, int64_t from, double base, double slope)
{
    const piece *last = l->n && l->n <= PIECES ? &l->p[l->n - 1] : NULL;
    if (last && last->slope == slope && last->base == base)
        return;
    if (l->n < PIECES)
        l->p[l->n] = (piece){from, base, slope};
    l->n++;
}

static int64_t
end_of(const line *l, int k, int64_t cols)
{
    return k + 1 < l->n ? l->p[k + 1].from : cols;
}

static bool
whole(double v)
{
    return fabs(v) < 0x1p52 && v == trunc(v);
}

// ---- constants ----

/* Further axes stand before these two, and the row is the same all along them. */
static bool
leads_agree(const cps_type *t, const size_t *stride, place x, const uint8_t *row, size_t bytes)
{
    int first = x.row < 0 || (x.col >= 0 && x.col < x.row) ? x.col : x.row;
    int64_t leads = 1;
    size_t block = 0;
    for (int i = 0; i < t->rank; i++) {
        if (t->dim[i] == 1 || i == x.row || i == x.col)
            continue;
        if (first >= 0 && i > first)
            return false;
        leads *= t->dim[i];
        block = stride[i];
    }
    for (int64_t l = 1; l < leads; l++)
        if (memcmp(row, row + (size_t)l * block, bytes) != 0)
            return false;
    return true;
}

static bool
const_row(const cps_const *c, place x, line *out)
{
    const cps_type *t = &c->type;
    size_t size = cps_dtype_bytes(t->dtype), stride[CPS_MAX_RANK + 1] = {0}, step = size;
    int64_t n = x.col >= 0 ? x.cols : 1;
    for (int i = t->rank - 1; i >= 0; i--) {
        stride[i] = step;
        step *= (size_t)t->dim[i];
    }
    const uint8_t *p =
        (const uint8_t *)c->data + (x.row >= 0 ? stride[x.row] * (size_t)x.i : 0);
    size_t pitch = x.col >= 0 ? stride[x.col] : 0, bytes = (size_t)(n - 1) * pitch + size;
    if (!leads_agree(t, stride, x, p, bytes))
        return false;
#define VALUE(j) cps_to_f64(t->dtype, p + (size_t)(j)*pitch)
    for (int64_t j = 0, e; j < n && out->n <= PIECES; j = e) {
        // The longest run of equal elements, a span at a time; or one of equal steps between
        // integers.
        double v = VALUE(j), slope = 0;
        if (!cps_dtype_is_float(t->dtype) && !whole(v))
            return false;
        for (e = j + 1; e < n; e++) {
            size_t span = (size_t)CPS_MIN(n - e, (int64_t)64);
            if (pitch == size &&
                memcmp(p + (size_t)(e - 1) * size, p + (size_t)e * size, span * size) == 0) {
                e += (int64_t)span - 1;
                continue;
            }
            if (memcmp(p + (size_t)(e - 1) * pitch, p + (size_t)e * pitch, size) != 0)
                break;
        }
        if (e == j + 1 && e < n && whole(v) && whole(VALUE(e))) {
            slope = VALUE(e) - v;
            while (e < n && VALUE(e) == v + slope * (double)(e - j))
                e++;
            if (e == j + 2) { // two values make no slope
                e = j + 1;
                slope = 0;
            }
        }
        put(out, j, v - slope * (double)j, slope);
    }
#undef VALUE
    return out->n <= PIECES;
}

// ---- two rows ----

static bool
truth(cps_op op, double a, double b)
{
    switch (op) {
    case CPS_OP_EQ:
        return a == b;
    case CPS_OP_NE:
        return a != b;
    case CPS_OP_LT:
        return a < b;
    case CPS_OP_LE:
        return a <= b;
    case CPS_OP_GT:
        return a > b;
    default:
        return a >= b;
    }
}

/* Between two linear pieces a comparison changes its answer at their crossing only. */
static bool
compare(cps_op op, piece a, piece b, int64_t from, int64_t to, line *out)
{
    double slope = a.slope - b.slope,
           cross = slope != 0 ? (b.base - a.base) / slope : (double)from;
    int64_t cut = cross <= (double)from ? from
                  : cross >= (double)to ? to
                                        : (int64_t)ceil(cross);
    if (cut > from)
        put(out, from, truth(op, at(a, from), at(b, from)), 0);
    if (cut < to)
        put(out, cut, truth(op, at(a, cut), at(b, cut)), 0);
    if (cut + 1 < to && slope != 0)
        put(out, cut + 1, truth(op, at(a, cut + 1), at(b, cut + 1)), 0);
    return true;
}

static bool
combine(const cps_node *n, piece a, piece b, int64_t from, int64_t to, line *out)
{
    bool flat = a.slope == 0 && b.slope == 0;
    bool x = a.base != 0, y = b.base != 0;
    switch (n->op) {
    case CPS_OP_ADD:
        put(out, from, a.base + b.base, a.slope + b.slope);
        return flat || (whole(a.base) && whole(b.base));
    case CPS_OP_SUB:
        put(out, from, a.base - b.base, a.slope - b.slope);
        return flat || (whole(a.base) && whole(b.base));
    case CPS_OP_MUL:
        put(out, from, a.base * b.base, a.slope * b.base + b.slope * a.base);
        return flat || ((a.slope == 0 || b.slope == 0) && whole(a.base) && whole(b.base));
    case CPS_OP_MAX:
        put(out, from, CPS_MAX(a.base, b.base), 0);
        return flat;
    case CPS_OP_MIN:
        put(out, from, CPS_MIN(a.base, b.base), 0);
        return flat;
    case CPS_OP_AND:
        put(out, from, x && y, 0);
        return flat;
    case CPS_OP_OR:
        put(out, from, x || y, 0);
        return flat;
    case CPS_OP_XOR:
        put(out, from, x != y, 0);
        return flat;
    default:
        return compare(n->op, a, b, from, to, out);
    }
}

static bool
pairwise(const cps_node *n, const line *a, const line *b, int64_t cols, line *out)
{
    for (int i = 0, k = 0; i < a->n && k < b->n;) {
        int64_t ea = end_of(a, i, cols), eb = end_of(b, k, cols);
        int64_t from = CPS_MAX(a->p[i].from, b->p[k].from), to = CPS_MIN(ea, eb);
        if (!combine(n, a->p[i], b->p[k], from, to, out))
            return false;
        i += ea == to;
        k += eb == to;
    }
    return out->n <= PIECES;
}

/* c ? a : b, c of flat pieces. */
static bool
choose(const line *c, const line *a, const line *b, int64_t cols, line *out)
{
    for (int k = 0; k < c->n; k++) {
        const line *from = c->p[k].base != 0 ? a : b;
        int64_t lo = c->p[k].from, hi = end_of(c, k, cols);
        if (c->p[k].slope != 0)
            return false;
        for (int i = 0; i < from->n; i++)
            if (end_of(from, i, cols) > lo && from->p[i].from < hi)
                put(out, CPS_MAX(lo, from->p[i].from), from->p[i].base, from->p[i].slope);
    }
    return out->n <= PIECES;
}

// ---- one row of a value ----

static bool row_of(const cps_rw *w, cps_val v, place x, line *out);

/* The operand of a move: where its axes are. */
static bool
moved(const cps_rw *w, const cps_node *n, place x, line *out)
{
    const cps_type *to = cps_rw_type(w, n->out[0]), *from = cps_rw_type(w, n->in[0]);
    place y = {.row = -1, .col = -1, .i = x.i, .cols = x.cols, .work = x.work};
    if (n->op == CPS_OP_BROADCAST) {
        int shift = to->rank - from->rank;
        y.row = x.row < shift ? -1 : x.row - shift;
        y.col = x.col < shift ? -1 : x.col - shift;
    } else if (n->op == CPS_OP_TRANSPOSE) {
        const int64_t *perm = cps_node_attr(n, "perm")->ints;
        y.row = x.row < 0 ? -1 : (int)perm[x.row];
        y.col = x.col < 0 ? -1 : (int)perm[x.col];
    } else { // a reshape that puts in or takes away axes of one element
        int i = 0, k = 0;
        for (; i < to->rank || k < from->rank; i++, k++) {
            while (i < to->rank && to->dim[i] == 1)
                i++;
            while (k < from->rank && from->dim[k] == 1)
                k++;
            if ((i < to->rank) != (k < from->rank))
                return false;
            if (i == to->rank)
                break;
            if (to->dim[i] != from->dim[k])
                return false;
            y.row = i == x.row ? k : y.row;
            y.col = i == x.col ? k : y.col;
        }
    }
    return row_of(w, n->in[0], y, out);
}

static bool
sliced(const cps_rw *w, const cps_node *n, place x, line *out)
{
    const cps_type *from = cps_rw_type(w, n->in[0]);
    const int64_t *start = cps_node_attr(n, "start")->ints,
                  *step = cps_node_attr(n, "step")->ints;
    for (int i = 0; i < from->rank; i++)
        if (step[i] != 1 || (start[i] != 0 && i != x.row && i != x.col && from->dim[i] != 1))
            return false;
    place y = x;
    int64_t skip = x.col >= 0 ? start[x.col] : 0;
    y.i += x.row >= 0 ? start[x.row] : 0;
    y.cols = x.col >= 0 ? from->dim[x.col] : x.cols;
    line all = {0};
    if (!row_of(w, n->in[0], y, &all))
        return false;
    for (int k = 0; k < all.n; k++) {
        piece p = all.p[k];
        if (end_of(&all, k, y.cols) > skip && p.from - skip < x.cols)
            put(out, CPS_MAX(p.from - skip, 0), p.base + p.slope * (double)skip, p.slope);
    }
    return true;
}

static bool
cast_row(const cps_rw *w, const cps_node *n, const line *a, int64_t cols, line *out)
{
    cps_dtype to = cps_rw_type(w, n->out[0])->dtype;
    for (int k = 0; k < a->n; k++) {
        piece p = a->p[k];
        if (to == CPS_DT_BOOL)
            compare(CPS_OP_NE, p, (piece){0}, p.from, end_of(a, k, cols), out);
        else if (cps_dtype_is_float(to) ? p.slope == 0 || to == CPS_DT_FP32 : whole(p.base))
            put(out, p.from, p.base, p.slope);
        else
            return false;
    }
    return out->n <= PIECES;
}

/* The row in the value's own type: flat floats are rounded, positions must be exact. What wraps
 * is given up. */
static bool
in_type(cps_dtype t, int64_t cols, line *l)
{
    static const int64_t most[] = {
        [CPS_DT_I8] = INT8_MAX,    [CPS_DT_U8] = UINT8_MAX,  [CPS_DT_I16] = INT16_MAX,
        [CPS_DT_U16] = UINT16_MAX, [CPS_DT_I32] = INT32_MAX, [CPS_DT_U32] = UINT32_MAX,
        [CPS_DT_I64] = 1ll << 52,  [CPS_DT_U64] = 1ll << 52, [CPS_DT_BOOL] = 1,
        [CPS_DT_FP32] = 1 << 24,   [CPS_DT_TF32] = 1 << 11,  [CPS_DT_FP16] = 1 << 11,
        [CPS_DT_BF16] = 1 << 8};
    bool real = cps_dtype_is_float(t);
    int64_t hi = (size_t)t < cps_countof(most) ? most[t] : 0;
    int64_t lo = t == CPS_DT_I8 || t == CPS_DT_I16 || t == CPS_DT_I32 ? -hi - 1
                 : real || t == CPS_DT_I64                            ? -hi
                                                                      : 0;
    for (int k = 0; k < l->n; k++) {
        piece *p = &l->p[k];
        if (real && p->slope == 0) {
            p->base = cps_round_f64(t, p->base);
            continue;
        }
        double a = at(*p, p->from), b = at(*p, end_of(l, k, cols) - 1);
        if (!whole(p->base) || !whole(p->slope) || CPS_MIN(a, b) < (double)lo ||
            CPS_MAX(a, b) > (double)hi)
            return false;
    }
    return true;
}

/* Where operand v of an elementwise node has the node's axes; operands are aligned at the last
 * axis. */
static place
operand(const cps_rw *w, const cps_node *n, cps_val v, place x)
{
    int shift = cps_rw_type(w, n->out[0])->rank - cps_rw_type(w, v)->rank;
    x.row = x.row < shift ? -1 : x.row - shift;
    x.col = x.col < shift ? -1 : x.col - shift;
    return x;
}

static bool
node_row(const cps_rw *w, const cps_node *n, place x, line *out)
{
    line in[3] = {0};
    int many = n->op == CPS_OP_SELECT                                               ? 3
               : n->op == CPS_OP_CAST || n->op == CPS_OP_NOT || n->op == CPS_OP_NEG ? 1
                                                                                    : 2;
    for (int i = 0; i < many; i++)
        if (!row_of(w, n->in[i], operand(w, n, n->in[i], x), &in[i]))
            return false;
    if (n->op == CPS_OP_SELECT)
        return choose(&in[0], &in[1], &in[2], x.cols, out);
    if (n->op == CPS_OP_CAST)
        return cast_row(w, n, &in[0], x.cols, out);
    if (many == 2)
        return pairwise(n, &in[0], &in[1], x.cols, out);
    for (int k = 0; k < in[0].n; k++) {
        piece p = in[0].p[k];
        if (n->op == CPS_OP_NEG)
            put(out, p.from, -p.base, -p.slope);
        else if (p.slope == 0)
            put(out, p.from, p.base == 0, 0);
        else
            return false;
    }
    return true;
}

static bool
row_of(const cps_rw *w, cps_val v, place x, line *out)
{
    const cps_node *n = cps_rw_def(w, v);
    const cps_type *t = cps_rw_type(w, v);
    if (!n || --*x.work < 0)
        return false;
    x.row = x.row >= 0 && t->dim[x.row] == 1 ? -1 : x.row;
    x.col = x.col >= 0 && t->dim[x.col] == 1 ? -1 : x.col;
    switch (n->op) {
    case CPS_OP_CONST:
        return const_row(cps_rw_const(w, v), x, out);
    case CPS_OP_INDEX: {
        int axis = (int)cps_attr_int(n->attr, n->nattr, "axis", 0);
        if (axis != x.row && axis != x.col && t->dim[axis] != 1)
            return false;
        put(out, 0, axis == x.row ? (double)x.i : 0, axis == x.col);
        return in_type(t->dtype, x.cols, out);
    }
    case CPS_OP_RESHAPE:
    case CPS_OP_BROADCAST:
    case CPS_OP_TRANSPOSE:
        return moved(w, n, x, out);
    case CPS_OP_SLICE:
        return sliced(w, n, x, out);
    case CPS_OP_NOT: // bitwise on integers
    case CPS_OP_AND:
    case CPS_OP_OR:
    case CPS_OP_XOR:
        return t->dtype == CPS_DT_BOOL && node_row(w, n, x, out) &&
               in_type(t->dtype, x.cols, out);
    case CPS_OP_NEG:
    case CPS_OP_CAST:
    case CPS_OP_ADD:
    case CPS_OP_SUB:
    case CPS_OP_MUL:
    case CPS_OP_MAX:
    case CPS_OP_MIN:
    case CPS_OP_EQ:
    case CPS_OP_NE:
    case CPS_OP_LT:
    case CPS_OP_LE:
    case CPS_OP_GT:
    case CPS_OP_GE:
    case CPS_OP_SELECT:
        return node_row(w, n, x, out) && in_type(t->dtype, x.cols, out);
    default:
        return false;
    }
}

// ---- what a mask hides ----

/* The first and the last key that stay, which must be all between them. */
static bool
kept(const line *l, int64_t cols, cps_mask_form form, int64_t *lo, int64_t *hi)
{
    *lo = *hi = -1;
    for (int k = 0; k < l->n; k++) {
        double v = l->p[k].base;
        bool stays = form == CPS_MASK_KEEPS ? v != 0 : v == 0;
        if (l->p[k].slope != 0 || (form == CPS_MASK_ADDS && !stays && !(v <= CPS_MASKED)) ||
            v != v)
            return false;
        if (!stays)
            continue;
        if (*lo >= 0 && *hi != l->p[k].from - 1)
            return false;
        *lo = *lo < 0 ? l->p[k].from : *lo;
        *hi = end_of(l, k, cols) - 1;
    }
    return *lo >= 0;
}

bool
cps_match_band(const cps_rw *w, cps_val v, cps_mask_form form, int64_t *window)
{
    const cps_type *t = cps_rw_type(w, v);
    if (t->rank < 2 || t->dim[t->rank - 1] != t->dim[t->rank - 2] || t->dim[t->rank - 1] < 2)
        return false;
    int64_t n = t->dim[t->rank - 1];
    *window = 0;
    for (int64_t i = 0; i < n; i++) {
        line l = {0};
        int64_t lo, hi;
        int work = WORK;
        place x = {.row = t->rank - 2, .col = t->rank - 1, .i = i, .cols = n, .work = &work};
        if (!row_of(w, v, x, &l) || !kept(&l, n, form, &lo, &hi) || hi != i)
            return false;
        if (lo > 0 && !*window)
            *window = i - lo + 1;
        if (lo != (*window ? CPS_MAX(i - *window + 1, 0) : 0))
            return false;
    }
    return true;
}
