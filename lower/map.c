/* Mapping: base ops that raising left over become calls of the registry's generic operators
 * (unary, binary, affine, cast, reduction, gather_rows, swap_axes, slice, concat), so that a
 * NeuronCore graph holds nothing but calls, constants and reshapes.
 *
 * Rows say which rule handles which op. Operands are folded to two dimensions: a pointwise op
 * sees rows; a second operand that is broadcast is a row, a column or a number of them, which
 * is what `binary` takes. Chains of numbers multiplied and added are one `affine`. Ops without
 * a row, or whose operator the registry lacks, are collected and reported together (E7404), those
 * that engines could only compute inexactly with the reason (E7407). */
#include "lower/map.h"

#include "ir/pass.h"
#include "lower/region.h"

#include <inttypes.h>
#include <math.h>

#define PARTITIONS 128
#define LONG_ROW 32 // elements that a row should have when the shape is free

cps_val
cps_map_call(cps_rw *w, cps_call *c)
{
    cps_val y = 0;
    for (int i = 0; i < c->nin; i++)
        if (!c->in[i])
            return 0;
    return cps_call_make(w, c, &y) ? y : 0;
}

bool
cps_map_done(cps_rw *w, const cps_node *n, cps_val y)
{
    const cps_type *t = cps_rw_type(w, n->out[0]);
    return y && cps_rw_set(w, n->out[0], cps_rw_reshape(w, y, t->rank, t->dim));
}

// Rows for an op that does not care how elements are laid out: as many as there are partitions,
// when the count allows and rows stay long enough.
static void
even_rows(const cps_type *t, int64_t dim[2])
{
    cps_rows_of(t, dim);
    int64_t n = cps_type_count(t);
    if (dim[0] < PARTITIONS && n % PARTITIONS == 0 && n >= PARTITIONS * LONG_ROW) {
        dim[0] = PARTITIONS;
        dim[1] = n / PARTITIONS;
    }
}

static cps_val
rows(cps_rw *w, cps_val old)
{
    int64_t dim[2];
    even_rows(cps_rw_type(w, old), dim);
    return cps_rw_reshape(w, cps_rw_new(w, old), 2, dim);
}

/* ---- pointwise ---- */

typedef struct name_row {
    cps_op op;
    const char *name;
} name_row;

static const name_row unary_names[] = {
    {CPS_OP_RELU, "relu"},       {CPS_OP_GELU, "gelu"},   {CPS_OP_GELU_TANH, "gelu_tanh"},
    {CPS_OP_SILU, "silu"},       {CPS_OP_SWISH, "swish"}, {CPS_OP_TANH, "tanh"},
    {CPS_OP_SIGMOID, "sigmoid"}, {CPS_OP_EXP, "exp"},     {CPS_OP_LOG, "log"},
    {CPS_OP_SQRT, "sqrt"},       {CPS_OP_RSQRT, "rsqrt"}, {CPS_OP_RECIPROCAL, "reciprocal"},
    {CPS_OP_SQUARE, "square"},   {CPS_OP_ABS, "abs"},     {CPS_OP_SIGN, "sign"},
    {CPS_OP_ERF, "erf"},         {CPS_OP_SIN, "sin"},     {CPS_OP_SOFTPLUS, "softplus"},
    {CPS_OP_MISH, "mish"},       {CPS_OP_NEG, "neg"},
};

static const name_row binary_names[] = {
    {CPS_OP_ADD, "add"}, {CPS_OP_SUB, "sub"},     {CPS_OP_MUL, "mul"},
    {CPS_OP_DIV, "div"}, {CPS_OP_MAX, "maximum"}, {CPS_OP_MIN, "minimum"},
};

static const name_row reduce_names[] = {
    {CPS_OP_SUM, "sum"},
    {CPS_OP_MEAN, "mean"},
    {CPS_OP_RMAX, "max"},
    {CPS_OP_RMIN, "min"},
};

static const char *
name_of(const name_row *r, size_t n, cps_op op)
{
    for (size_t i = 0; i < n; i++)
        if (r[i].op == op)
            return r[i].name;
    return NULL;
}

static bool
unary(cps_rw *w, const cps_node *n)
{
    cps_call c = {.callee = "unary", .nin = 1, .in = {rows(w, n->in[0])}, .nattr = 1};
    c.attr[0] = cps_a_str("f", name_of(unary_names, cps_countof(unary_names), n->op));
    return cps_map_done(w, n, cps_map_call(w, &c));
}

static cps_val
affine(cps_rw *w, cps_val x, double mul, double add)
{
    cps_call c = {.callee = "affine", .nin = 1, .in = {x}, .nattr = 2};
    c.attr[0] = cps_a_float("add", add);
    c.attr[1] = cps_a_float("mul", mul);
    return cps_map_call(w, &c);
}

// cos(x) = sin(x + pi/2)
static bool
cosine(cps_rw *w, const cps_node *n)
{
    cps_call c = {.callee = "unary", .nin = 1, .nattr = 1};
    c.in[0] = affine(w, rows(w, n->in[0]), 1, 1.5707963267948966);
    c.attr[0] = cps_a_str("f", "sin");
    return cps_map_done(w, n, cps_map_call(w, &c));
}

static bool
cast(cps_rw *w, const cps_node *n)
{
    cps_call c = {.callee = "cast", .nin = 1, .in = {rows(w, n->in[0])}, .nattr = 1};
    c.attr[0] = cps_a_dtype("to", cps_rw_type(w, n->out[0])->dtype);
    return cps_map_done(w, n, cps_map_call(w, &c));
}

// y = mul * x + add, seen from the outside: one more op of the chain. False at its end.
static bool
affine_step(const cps_rw *w, cps_val *v, double *mul, double *add)
{
    const cps_node *n = cps_rw_def(w, *v);
    double u, m = *mul, a = *add;
    int x = 0;
    if (!n || !cps_dtype_is_float(cps_rw_type(w, *v)->dtype))
        return false;
    if (n->op == CPS_OP_NEG)
        m = -m;
    else if (n->op == CPS_OP_MUL && cps_rw_uniform(w, n->in[1], &u))
        m *= u;
    else if (n->op == CPS_OP_ADD && cps_rw_uniform(w, n->in[1], &u))
        a += m * u;
    else if (n->op == CPS_OP_SUB && cps_rw_uniform(w, n->in[1], &u))
        a -= m * u;
    else if (n->op == CPS_OP_SUB && cps_rw_uniform(w, n->in[0], &u)) {
        a += m * u;
        m = -m;
        x = 1;
    } else {
        return false;
    }
    if (!isfinite((float)m) || !isfinite((float)a) ||
        !cps_type_eq(cps_rw_type(w, n->in[x]), cps_rw_type(w, *v)))
        return false;
    *mul = m;
    *add = a;
    *v = n->in[x];
    return true;
}

static bool
numbers(cps_rw *w, const cps_node *n)
{
    cps_val v = n->out[0];
    double mul = 1, add = 0;
    // The chain goes on while nothing else needs what lies between.
    if (!affine_step(w, &v, &mul, &add))
        return false;
    while (w->uses[v] == 1 && affine_step(w, &v, &mul, &add))
        ;
    return cps_map_done(w, n, affine(w, rows(w, v), mul, add));
}

// Splits the axes so that y is, on each side of the split, whole or of ones: x as [T, N], y as
// [T or 1, N or 1].
static bool
split_axes(const cps_type *x, const cps_type *y, int64_t dx[2], int64_t dy[2])
{
    for (int k = 0; k <= x->rank; k++) {
        bool ok = true;
        for (int side = 0; side < 2; side++) {
            bool whole = true, ones = true;
            dx[side] = 1;
            for (int i = side ? k : 0; i < (side ? x->rank : k); i++) {
                int at = i - (x->rank - y->rank);
                int64_t e = at < 0 ? 1 : y->dim[at];
                whole = whole && e == x->dim[i];
                ones = ones && e == 1;
                dx[side] *= x->dim[i];
            }
            dy[side] = whole ? dx[side] : 1;
            ok = ok && (whole || ones);
        }
        if (ok)
            return true;
    }
    return false;
}

static bool
binary(cps_rw *w, const cps_node *n)
{
    const cps_type *out = cps_rw_type(w, n->out[0]);
    if (numbers(w, n))
        return true;
    cps_call c = {.callee = "binary", .nin = 2, .nattr = 2};
    c.attr[0] = cps_a_str("f", name_of(binary_names, cps_countof(binary_names), n->op));
    int x = cps_type_eq(cps_rw_type(w, n->in[0]), out)   ? 0
            : cps_type_eq(cps_rw_type(w, n->in[1]), out) ? 1
                                                         : -1;
    cps_val vx, vy;
    cps_type ty;
    if (x >= 0) {
        vx = cps_rw_new(w, n->in[x]);
        vy = cps_rw_new(w, n->in[1 - x]);
        ty = *cps_rw_type(w, n->in[1 - x]);
    } else { // both are broadcast: the first one is written out
        x = 0;
        vx = cps_b_broadcast(&w->b, cps_rw_new(w, n->in[0]), out->rank, out->dim);
        vy = cps_rw_new(w, n->in[1]);
        ty = *cps_rw_type(w, n->in[1]);
    }
    int64_t dx[2], dy[2];
    if (cps_type_eq(&ty, out)) {
        even_rows(out, dx);
        memcpy(dy, dx, sizeof dy);
    } else if (!split_axes(out, &ty, dx, dy)) {
        vy = cps_b_broadcast(&w->b, vy, out->rank, out->dim);
        even_rows(out, dx);
        memcpy(dy, dx, sizeof dy);
    }
    c.attr[1] = cps_a_bool("reverse", x == 1);
    c.in[0] = cps_rw_reshape(w, vx, 2, dx);
    c.in[1] = cps_rw_reshape(w, vy, 2, dy);
    return cps_map_done(w, n, cps_map_call(w, &c));
}

/* ---- reductions and scans ---- */

static bool
reduce(cps_rw *w, const cps_node *n)
{
    const cps_attr *axes = cps_node_attr(n, "axes");
    const cps_type *t = cps_rw_type(w, n->in[0]);
    int64_t dim[CPS_MAX_RANK];
    cps_val x = cps_rw_new(w, n->in[0]);
    memcpy(dim, t->dim, sizeof dim);
    // From the last run of axes to the first: sums of sums, means of equal parts.
    for (int i = (int)axes->n - 1; i >= 0;) {
        int hi = (int)axes->ints[i], lo = hi;
        while (i > 0 && axes->ints[i - 1] == lo - 1) {
            lo--;
            i--;
        }
        i--;
        int64_t d[3] = {1, 1, 1};
        for (int k = 0; k < t->rank; k++)
            d[k < lo ? 0 : k <= hi ? 1 : 2] *= dim[k];
        cps_call c = {.callee = "reduction", .nin = 1, .nattr = 1};
        c.in[0] = cps_rw_reshape(w, x, 3, d);
        c.attr[0] = cps_a_str("f", name_of(reduce_names, cps_countof(reduce_names), n->op));
        x = cps_map_call(w, &c);
        for (int k = lo; k <= hi; k++)
            dim[k] = 1;
    }
    return cps_map_done(w, n, x);
}

static bool
cumsum(cps_rw *w, const cps_node *n)
{
    const cps_type *t = cps_rw_type(w, n->in[0]);
    int64_t axis = cps_attr_int(n->attr, n->nattr, "axis", 0), dim[2];
    if (axis != t->rank - 1 || cps_attr_int(n->attr, n->nattr, "exclusive", 0) ||
        cps_attr_int(n->attr, n->nattr, "reverse", 0))
        return false;
    cps_rows_of(t, dim);
    cps_call c = {.callee = "cumsum", .nin = 1};
    c.in[0] = cps_rw_reshape(w, cps_rw_new(w, n->in[0]), 2, dim);
    return cps_map_done(w, n, cps_map_call(w, &c));
}

/* ---- the table ---- */

typedef struct map_row {
    cps_op op;
    bool (*fn)(cps_rw *w, const cps_node *n);
} map_row;

static const map_row table[] = {
    {CPS_OP_COS, cosine},
    {CPS_OP_CAST, cast},
    {CPS_OP_CUMSUM, cumsum},
    {CPS_OP_TRANSPOSE, cps_map_transpose},
    {CPS_OP_SLICE, cps_map_slice},
    {CPS_OP_BROADCAST, cps_map_broadcast},
    {CPS_OP_CONCAT, cps_map_concat},
    {CPS_OP_REPEAT, cps_map_repeat},
    {CPS_OP_GATHER, cps_map_gather},
};

// The dtypes that the leaves of `cast` convert (leaves/cast.cps).
static bool
casts(cps_dtype from, cps_dtype to)
{
    bool real = to == CPS_DT_BF16 || to == CPS_DT_FP16 || to == CPS_DT_FP32;
    if (from == CPS_DT_I64)
        return real || to == CPS_DT_I32;
    if (from == CPS_DT_U16 || from == CPS_DT_U32)
        return false;
    // A narrowing cast of integers wraps, and the leaves hold at the ends.
    bool narrows = cps_dtype_is_int(from) && cps_dtype_is_int(to) && cps_dtype_bytes(from) > cps_dtype_bytes(to);
    return (real || to == CPS_DT_I32 || to == CPS_DT_I16) && cps_dtype_bytes(from) <= 4 && !narrows;
}

bool
cps_map_takes(const cps_func *f, const cps_node *n)
{
    cps_dtype t = f->vals.data[n->in[0]].type.dtype;
    if (n->op == CPS_OP_CAST)
        return casts(t, f->vals.data[n->out[0]].type.dtype);
    if (n->op == CPS_OP_CUMSUM && cps_attr_int(n->attr, n->nattr, "exclusive", 0))
        return false;
    return (t == CPS_DT_BF16 || t == CPS_DT_FP16 || t == CPS_DT_FP32) &&
           (n->op == CPS_OP_COS || n->op == CPS_OP_CUMSUM || name_of(unary_names, cps_countof(unary_names), n->op) ||
            name_of(binary_names, cps_countof(binary_names), n->op) ||
            name_of(reduce_names, cps_countof(reduce_names), n->op));
}

// Ops of one text that nothing computes: how many, and what the first was made of.
typedef struct left {
    unsigned count;
    const char *from;
} left;

static void
note_left(cps_lower *l, cps_map *ops, const char *text, const char *from)
{
    uint64_t *at = cps_map_at_str(ops, text, NULL);
    left *x = (left *)(uintptr_t)*at;
    if (!x) {
        x = cps_new(l->arena, left);
        x->from = from ? cps_arena_strdup(l->arena, from) : "";
        *at = (uintptr_t)x;
    }
    x->count++;
}

static bool
map_rule(cps_rw *w, const cps_node *n)
{
    cps_lower *l = cps_lower_of(w);
    w->b.from = n->from;
    if (n->op == CPS_OP_CONST || n->op == CPS_OP_RESHAPE || n->op == CPS_OP_CALL)
        return false;
    const char *why;
    bool ok = false, exact = cps_region_takes(w->old, n, &why) || !why || n->op == CPS_OP_CAST || !l->o->target;
    for (size_t i = 0; !ok && exact && i < cps_countof(table); i++)
        ok = table[i].op == n->op && table[i].fn(w, n);
    if (!ok && exact && name_of(unary_names, cps_countof(unary_names), n->op))
        ok = unary(w, n);
    if (!ok && exact && name_of(binary_names, cps_countof(binary_names), n->op))
        ok = binary(w, n);
    if (!ok && exact && name_of(reduce_names, cps_countof(reduce_names), n->op))
        ok = reduce(w, n);
    if (!ok) {
        cps_buf b = {0};
        cps_buf_printf(&b, "%s of ", cps_ops[n->op].name);
        cps_type_print(cps_rw_type(w, n->in && n->nin ? n->in[0] : n->out[0]), &b);
        if (why)
            cps_buf_printf(&b, ": %s", why);
        note_left(l, why ? &l->inexact : &l->missing, b.data, n->from);
        cps_buf_fini(&b);
    }
    return ok;
}

static void
refuse(cps_lower *l, const cps_map *ops, cps_code code, const char *what)
{
    cps_buf b = {0};
    for (uint32_t i = 0; i < ops->n; i++) {
        const left *x = (const left *)(uintptr_t)ops->entry[i].value;
        cps_buf_printf(&b, "%s%s (%u%s%s%s)", i ? ", " : "", ops->entry[i].str, x->count, *x->from ? ", made of '" : "",
                       x->from, *x->from ? "'" : "");
    }
    cps_error(l->d, code, CPS_NOSPAN, "%s %s: %s", what, l->o->target ? l->o->target->name : "host", b.data);
    cps_help(l->d,
             "write it in other operators, or let `--on host` run the whole model on the host");
    cps_buf_fini(&b);
}

bool
cps_lower_map(cps_lower *l, cps_module *m)
{
    if (!l->o->registry)
        return true;
    // A rule may leave base ops of its own (a broadcast): the second sweep takes them.
    for (int sweep = 0; sweep < 2; sweep++) {
        cps_map_init(&l->missing, l->arena);
        cps_map_init(&l->inexact, l->arena);
        if (!cps_lower_rewrite(l, m, map_rule, NULL) || !cps_ir_dce(m, l->d))
            return false;
    }
    if (l->inexact.n)
        refuse(l, &l->inexact, CPS_E7407, "would lose bits on");
    if (l->missing.n)
        refuse(l, &l->missing, CPS_E7404, "no operator of the registry computes, for");
    return !l->missing.n && !l->inexact.n;
}
