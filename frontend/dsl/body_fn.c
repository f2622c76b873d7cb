/* Functions of op bodies: base ops of the graph by name, a few that are made of them, and calls of
 * other operators. Base ops win over operators of the same name, so that `op gelu` can be defined
 * by `gelu`. */
#include "frontend/dsl/body_priv.h"

#include <stdio.h>

typedef struct site { // one call
    cps_body *y;
    const cps_ast_call *e;
    const char *name;
    const cps_arg *arg;
    uint32_t n;     // all arguments
    uint32_t plain; // positional ones, which come first
    cps_span at;
} site;

static bool CPS_PRINTF(2, 3)
wrong(const site *s, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    const char *text = cps_arena_vprintf(s->y->scratch, fmt, ap);
    va_end(ap);
    return cps_eval_error(&s->y->ev, CPS_E2211, s->at, "`%s` %s", s->name, text);
}

static const cps_arg *
named(const site *s, const char *name)
{
    for (uint32_t i = 0; i < s->n; i++)
        if (s->arg[i].src->name.sym && cps_streq(s->arg[i].src->name.text, name))
            return &s->arg[i];
    return NULL;
}

// Exactly `n` positional arguments, and no named ones but those listed (blank-separated).
static bool
shape(const site *s, uint32_t n, const char *names)
{
    for (uint32_t i = 0; i < s->n; i++) {
        if (!s->arg[i].src->name.sym) {
            if (i >= s->plain)
                return wrong(s, "takes its positional arguments first");
            continue;
        }
        char word[64];
        snprintf(word, sizeof word, " %.40s ", s->arg[i].src->name.text);
        if (!strstr(names, word))
            return wrong(s, "has no argument `%s`", s->arg[i].src->name.text);
    }
    return s->plain == n || wrong(s, "takes %u positional argument%s, %u given", n,
                                  n == 1 ? "" : "s", s->plain);
}

static cps_val
tensor(const site *s, uint32_t i)
{
    return cps_body_tensor(s->y, s->arg[i].v, CPS_DT_NONE, s->arg[i].src->span);
}

static const cps_type *
type_of(const site *s, cps_val v)
{
    return cps_b_type(&s->y->b, v);
}

static bool
give(const site *s, cps_val v, cps_cv *out)
{
    return cps_body_give(s->y, v, out);
}

// An axis out of a number: negative ones count from the end.
static bool
one_axis(const site *s, cps_cv v, int rank, int64_t *out)
{
    if (v.kind != CPS_V_INT)
        return wrong(s, "wants `axis:` as a number, not %s", cps_eval_describe(&s->y->ev, v));
    *out = v.u.i < 0 ? v.u.i + rank : v.u.i;
    if (*out < 0 || *out >= rank)
        return wrong(s, "has axis %lld of a tensor of %d axes", (long long)v.u.i, rank);
    return true;
}

static bool
axis(const site *s, int rank, int64_t dflt, int64_t *out)
{
    const cps_arg *a = named(s, "axis");
    *out = dflt;
    return a ? one_axis(s, a->v, rank, out) : rank > 0 || wrong(s, "wants a tensor with axes");
}

static bool
whole(const site *s, const char *name, const cps_arg *a, int64_t dflt, int64_t *out)
{
    *out = dflt;
    if (!a)
        return true;
    if (a->v.kind != CPS_V_INT)
        return wrong(s, "wants `%s` as an integer", name);
    *out = a->v.u.i;
    return true;
}

/* ---- reductions ---- */

static bool
reduce(const site *s, cps_op op, cps_cv *out)
{
    int64_t axes[CPS_MAX_RANK];
    int n = 0;
    const cps_arg *a = named(s, "axis");
    if (!shape(s, 1, " axis "))
        return false;
    cps_val x = tensor(s, 0);
    if (!x)
        return false;
    if (!a)
        return wrong(s, "wants `axis:`, the axes it reduces");
    int rank = type_of(s, x)->rank;
    bool list = a->v.kind == CPS_V_TUPLE || a->v.kind == CPS_V_LIST;
    uint32_t count = list ? a->v.u.seq->n : 1;
    if (count > CPS_MAX_RANK)
        return wrong(s, "has more axes than a tensor can have");
    for (uint32_t i = 0; i < count; i++)
        if (!one_axis(s, list ? a->v.u.seq->item[i] : a->v, rank, &axes[n++]))
            return false;
    return give(s, cps_b_reduce(&s->y->b, op, x, n, axes, true), out);
}

/* ---- elementwise ---- */

static bool
extreme(const site *s, cps_op op, cps_cv *out)
{
    cps_val x, z;
    if (!shape(s, 2, "") ||
        !cps_body_promote(s->y, s->arg[0].v, s->arg[1].v, s->at, &x, &z))
        return false;
    return give(s, cps_b_binary(&s->y->b, op, x, z), out);
}

static bool
fn_clamp(const site *s, cps_cv *out)
{
    cps_val x, z;
    cps_cv low;
    return shape(s, 3, "") &&
           cps_body_promote(s->y, s->arg[0].v, s->arg[1].v, s->at, &x, &z) &&
           give(s, cps_b_binary(&s->y->b, CPS_OP_MAX, x, z), &low) &&
           cps_body_promote(s->y, low, s->arg[2].v, s->at, &x, &z) &&
           give(s, cps_b_binary(&s->y->b, CPS_OP_MIN, x, z), out);
}

// A condition known at compile time chooses without a select.
static bool
fn_select(const site *s, cps_cv *out)
{
    cps_val x, z;
    if (!shape(s, 3, ""))
        return false;
    if (s->arg[0].v.kind == CPS_V_BOOL) {
        *out = s->arg[s->arg[0].v.u.b ? 1 : 2].v;
        return true;
    }
    cps_val c = tensor(s, 0);
    if (!c || !cps_body_promote(s->y, s->arg[1].v, s->arg[2].v, s->at, &x, &z))
        return false;
    return give(s, cps_b_select(&s->y->b, c, x, z), out);
}

static cps_op
unary_op(const char *name)
{
    cps_op op = cps_op_find(name);
    return op != CPS_OP_NONE && op != CPS_OP_CAST && cps_ops[op].opclass == CPS_OC_UNARY
               ? op
               : CPS_OP_NONE;
}

// Functions of floats take integers as fp32, as the engines do.
static cps_val
unary(const site *s, cps_op op, cps_val x)
{
    cps_builder *b = &s->y->b;
    bool any = op == CPS_OP_NEG || op == CPS_OP_ABS || op == CPS_OP_SIGN || op == CPS_OP_NOT ||
               op == CPS_OP_SQUARE || op == CPS_OP_RELU;
    if (x && !any && !cps_dtype_is_float(type_of(s, x)->dtype))
        x = cps_b_cast(b, x, CPS_DT_FP32);
    return cps_b_unary(b, op, x);
}

// apply(Act.gelu, x): the function is a compile-time name.
static bool
fn_apply(const site *s, cps_cv *out)
{
    if (!shape(s, 2, ""))
        return false;
    const char *f = s->arg[0].v.kind == CPS_V_ENUM  ? s->arg[0].v.u.ev->name
                    : s->arg[0].v.kind == CPS_V_STR ? s->arg[0].v.u.s
                                                    : NULL;
    if (!f)
        return wrong(s, "wants a function's name first, as an enum value");
    cps_val x = tensor(s, 1);
    bool same = cps_streq(f, "none") || cps_streq(f, "copy") || cps_streq(f, "identity");
    if (x && !same && unary_op(f) == CPS_OP_NONE)
        return wrong(s, "knows no function `%s`", f);
    return x && give(s, same ? x : unary(s, unary_op(f), x), out);
}

static bool
fn_cast(const site *s, cps_cv *out)
{
    if (!shape(s, 2, ""))
        return false;
    cps_val x = tensor(s, 0);
    if (s->arg[1].v.kind != CPS_V_DTYPE)
        return wrong(s, "wants a dtype second");
    return x && give(s, cps_b_cast(&s->y->b, x, s->arg[1].v.u.dt), out);
}

/* ---- made of nothing ---- */

// Extents as positional integers, or one list of them.
static bool
extents(const site *s, uint32_t first, int64_t *dim, int *rank)
{
    const cps_cv *v = NULL;
    cps_cv own[CPS_MAX_RANK];
    uint32_t n = s->plain - first;
    if (n == 1 && (s->arg[first].v.kind == CPS_V_LIST || s->arg[first].v.kind == CPS_V_TUPLE)) {
        v = s->arg[first].v.u.seq->item;
        n = s->arg[first].v.u.seq->n;
    } else {
        for (uint32_t i = 0; i < n && i < CPS_MAX_RANK; i++)
            own[i] = s->arg[first + i].v;
        v = own;
    }
    if (n > CPS_MAX_RANK)
        return wrong(s, "has more axes than a tensor can have");
    for (uint32_t i = 0; i < n; i++) {
        if (v[i].kind != CPS_V_INT || v[i].u.i < 0)
            return wrong(s, "wants extents, not %s", cps_eval_describe(&s->y->ev, v[i]));
        dim[i] = v[i].u.i;
    }
    *rank = (int)n;
    return true;
}

static bool
filled(const site *s, uint32_t first, double value, cps_cv *out)
{
    int64_t dim[CPS_MAX_RANK];
    int rank;
    cps_dtype t = CPS_DT_FP32;
    const cps_arg *dt = named(s, "dtype");
    if (!shape(s, s->plain, " dtype ") || !extents(s, first, dim, &rank))
        return false;
    if (dt && dt->v.kind != CPS_V_DTYPE)
        return wrong(s, "wants `dtype:` as a dtype");
    if (dt)
        t = dt->v.u.dt;
    cps_val v = cps_b_scalar(&s->y->b, t, value);
    return give(s, cps_b_broadcast(&s->y->b, v, rank, dim), out);
}

static bool
fn_zeros(const site *s, cps_cv *out)
{
    return filled(s, 0, 0, out);
}

static bool
fn_ones(const site *s, cps_cv *out)
{
    return filled(s, 0, 1, out);
}

static bool
fn_full(const site *s, cps_cv *out)
{
    double v;
    if (!s->plain || !cps_cv_num(s->arg[0].v, &v))
        return wrong(s, "wants a number, then the extents");
    return filled(s, 1, v, out);
}

// index(N): [1, N], the position along the last axis.
static bool
fn_index(const site *s, cps_cv *out)
{
    int64_t n;
    cps_val v = 0;
    if (!shape(s, 1, "") || !whole(s, "the extent", &s->arg[0], 0, &n))
        return false;
    cps_b_node(&s->y->b, CPS_OP_INDEX, 0, NULL, 3,
               (cps_attr[]){cps_a_ints("shape", 2, (int64_t[]){1, n}), cps_a_int("axis", 1),
                            cps_a_dtype("dtype", CPS_DT_I32)},
               &v);
    return give(s, v, out);
}

/* ---- moving ---- */

static bool
fn_repeat(const site *s, cps_cv *out)
{
    int64_t n, a;
    cps_val x, v = 0;
    if (!shape(s, 2, " axis ") || !(x = tensor(s, 0)) ||
        !whole(s, "the count", &s->arg[1], 1, &n) ||
        !axis(s, type_of(s, x)->rank, type_of(s, x)->rank - 1, &a))
        return false;
    cps_b_node(&s->y->b, CPS_OP_REPEAT, 1, &x, 2,
               (cps_attr[]){cps_a_int("axis", a), cps_a_int("n", n)}, &v);
    return give(s, v, out);
}

static bool
fn_broadcast(const site *s, cps_cv *out)
{
    int64_t dim[CPS_MAX_RANK];
    int rank;
    cps_val x;
    if (s->plain < 2)
        return wrong(s, "wants a tensor, then the extents");
    if (!shape(s, s->plain, "") || !(x = tensor(s, 0)) || !extents(s, 1, dim, &rank))
        return false;
    return give(s, cps_b_broadcast(&s->y->b, x, rank, dim), out);
}

static bool
fn_concat(const site *s, cps_cv *out)
{
    cps_val v[255];
    int64_t a;
    if (s->plain < 1 || s->plain > 255 || !shape(s, s->plain, " axis "))
        return s->plain >= 1 || wrong(s, "wants tensors");
    cps_dtype t = CPS_DT_NONE;
    for (uint32_t i = 0; i < s->plain; i++) {
        if (!(v[i] = tensor(s, i)))
            return false;
        t = i && type_of(s, v[i])->dtype != t ? CPS_DT_FP32 : type_of(s, v[i])->dtype;
    }
    for (uint32_t i = 0; i < s->plain; i++)
        v[i] = cps_b_cast(&s->y->b, v[i], t);
    if (!axis(s, type_of(s, v[0])->rank, 0, &a))
        return false;
    return give(s, cps_b_concat(&s->y->b, (int)s->plain, v, (int)a), out);
}

static bool
ints_of(const site *s, const char *name, uint32_t want, const int64_t **out)
{
    const cps_arg *a = named(s, name);
    if (!a || (a->v.kind != CPS_V_LIST && a->v.kind != CPS_V_TUPLE) || a->v.u.seq->n != want)
        return wrong(s, "wants `%s:` as a list of %u numbers", name, want);
    int64_t *v = cps_new_array(s->y->scratch, int64_t, want);
    for (uint32_t i = 0; i < want; i++) {
        if (a->v.u.seq->item[i].kind != CPS_V_INT || a->v.u.seq->item[i].u.i < 0)
            return wrong(s, "wants `%s:` as a list of %u numbers", name, want);
        v[i] = a->v.u.seq->item[i].u.i;
    }
    *out = v;
    return true;
}

static cps_val
padded(const site *s, cps_val x, double value, const int64_t *lo, const int64_t *hi)
{
    cps_builder *b = &s->y->b;
    cps_val in[2] = {x, cps_b_scalar(b, type_of(s, x)->dtype, value)}, v = 0;
    uint32_t n = (uint32_t)type_of(s, x)->rank;
    cps_b_node(b, CPS_OP_PAD, 2, in, 2,
               (cps_attr[]){cps_a_ints("lo", n, lo), cps_a_ints("hi", n, hi)}, &v);
    return v;
}

static bool
fn_pad(const site *s, cps_cv *out)
{
    const int64_t *lo, *hi;
    double value = 0;
    cps_val x;
    if (!shape(s, 1, " lo hi value ") || !(x = tensor(s, 0)))
        return false;
    uint32_t n = (uint32_t)type_of(s, x)->rank;
    if (named(s, "value") && !cps_cv_num(named(s, "value")->v, &value))
        return wrong(s, "wants `value:` as a number");
    return ints_of(s, "lo", n, &lo) && ints_of(s, "hi", n, &hi) &&
           give(s, padded(s, x, value, lo, hi), out);
}

/* ---- indexed ---- */

static bool
is_index(const site *s, cps_val v)
{
    return strchr("SU", cps_dtypes[type_of(s, v)->dtype].kind) ||
           wrong(s, "wants integer indices");
}

// gather(x, ids, axis: 0); with `fill:`, ids below 0 give that value instead.
static bool
fn_gather(const site *s, cps_cv *out)
{
    int64_t a;
    cps_val x, i;
    cps_builder *b = &s->y->b;
    const cps_arg *fill = named(s, "fill");
    if (!shape(s, 2, " axis fill ") || !(x = tensor(s, 0)) || !(i = tensor(s, 1)) ||
        !is_index(s, i) || !axis(s, type_of(s, x)->rank, 0, &a))
        return false;
    if (!fill)
        return give(s, cps_b_gather(b, x, i, (int)a), out);
    if (a != 0)
        return wrong(s, "takes `fill:` along axis 0 only");
    cps_type it = *type_of(s, i);
    cps_val zero = cps_b_scalar(b, it.dtype, 0);
    cps_val got = cps_b_gather(b, x, cps_b_binary(b, CPS_OP_MAX, i, zero), 0);
    cps_val has = cps_b_binary(b, CPS_OP_GE, i, zero), g, f;
    if (!got || !has)
        return give(s, 0, out);
    // The condition gets the unit axes of the rows it speaks of.
    int rank = type_of(s, got)->rank;
    for (int k = it.rank; k < rank; k++)
        it.dim[k] = 1;
    has = cps_b_reshape(b, has, rank, it.dim);
    cps_cv gv;
    return give(s, got, &gv) && cps_body_promote(s->y, gv, fill->v, s->at, &g, &f) &&
           give(s, cps_b_select(b, has, g, f), out);
}

static bool
scatter(const site *s, bool add, cps_cv *out)
{
    int64_t a;
    cps_val x, i, u, v = 0;
    if (!shape(s, 3, " axis ") || !(x = tensor(s, 0)) || !(i = tensor(s, 1)) ||
        !is_index(s, i) || !axis(s, type_of(s, x)->rank, 0, &a) ||
        !cps_body_promote(s->y, s->arg[0].v, s->arg[2].v, s->at, &x, &u))
        return false;
    cps_val in[3] = {x, i, u};
    cps_b_node(&s->y->b, CPS_OP_SCATTER, 3, in, 2,
               (cps_attr[]){cps_a_int("axis", a), cps_a_bool("add", add)}, &v);
    return give(s, v, out);
}

static bool
fn_scatter(const site *s, cps_cv *out)
{
    return scatter(s, false, out);
}

static bool
fn_scatter_add(const site *s, cps_cv *out)
{
    return scatter(s, true, out);
}

/* ---- scans, sorts, windows ---- */

static bool
flag(const site *s, const char *name, bool *out)
{
    const cps_arg *a = named(s, name);
    *out = a && a->v.kind == CPS_V_BOOL && a->v.u.b;
    return !a || a->v.kind == CPS_V_BOOL || wrong(s, "wants `%s:` as a bool", name);
}

static bool
fn_scan_add(const site *s, cps_cv *out)
{
    int64_t a;
    bool exclusive, reverse;
    cps_val x, v = 0;
    if (!shape(s, 1, " axis exclusive reverse ") || !(x = tensor(s, 0)) ||
        !axis(s, type_of(s, x)->rank, type_of(s, x)->rank - 1, &a) ||
        !flag(s, "exclusive", &exclusive) || !flag(s, "reverse", &reverse))
        return false;
    cps_b_node(&s->y->b, CPS_OP_CUMSUM, 1, &x, 3,
               (cps_attr[]){cps_a_int("axis", a), cps_a_bool("exclusive", exclusive),
                            cps_a_bool("reverse", reverse)},
               &v);
    return give(s, v, out);
}

static bool
fn_sort_descending(const site *s, cps_cv *out)
{
    int64_t a;
    cps_val x, v[2] = {0, 0};
    cps_cv both[2];
    if (!shape(s, 1, " axis ") || !(x = tensor(s, 0)) ||
        !axis(s, type_of(s, x)->rank, type_of(s, x)->rank - 1, &a))
        return false;
    cps_b_node(&s->y->b, CPS_OP_SORT, 1, &x, 2,
               (cps_attr[]){cps_a_int("axis", a), cps_a_bool("descending", true)}, v);
    if (!give(s, v[0], &both[0]) || !give(s, v[1], &both[1]))
        return false;
    *out = cps_cv_seq(s->y->ev.c.arena, CPS_V_TUPLE, both, 2);
    return true;
}

// x[N, C, H, W] and w[O, C, R, S]: the filter's positions side by side, then one product.
static bool
fn_convolution(const site *s, cps_cv *out)
{
    const int64_t *win, *str, *pad;
    cps_val x, w;
    cps_builder *b = &s->y->b;
    if (!shape(s, 2, " window stride pad ") ||
        !cps_body_promote(s->y, s->arg[0].v, s->arg[1].v, s->at, &x, &w) ||
        !ints_of(s, "window", 2, &win) || !ints_of(s, "stride", 2, &str) ||
        !ints_of(s, "pad", 2, &pad))
        return false;
    cps_type tx = *type_of(s, x), tw = *type_of(s, w);
    if (tx.rank != 4 || tw.rank != 4 || tx.dim[1] != tw.dim[1] || tw.dim[2] != win[0] ||
        tw.dim[3] != win[1] || str[0] < 1 || str[1] < 1)
        return wrong(s, "wants x[N, C, H, W], w[O, C, R, S] and the window [R, S]");
    int64_t hp = tx.dim[2] + 2 * pad[0], wp = tx.dim[3] + 2 * pad[1];
    if (pad[0] > 1 << 20 || pad[1] > 1 << 20 || win[0] < 1 || win[1] < 1 || win[0] > hp ||
        win[1] > wp || win[0] * win[1] > 255)
        return wrong(s, "has a window that the padded input does not hold");
    int64_t ho = (hp - win[0]) / str[0] + 1, wo = (wp - win[1]) / str[1] + 1;
    x = padded(s, x, 0, (int64_t[]){0, 0, pad[0], pad[1]}, (int64_t[]){0, 0, pad[0], pad[1]});
    cps_val part[255];
    int n = 0;
    for (int64_t r = 0; r < win[0]; r++)
        for (int64_t c = 0; c < win[1]; c++) {
            cps_val v = cps_b_slice(
                b, x, (int64_t[]){0, 0, r, c},
                (int64_t[]){tx.dim[0], tx.dim[1], r + (ho - 1) * str[0] + 1,
                            c + (wo - 1) * str[1] + 1},
                (int64_t[]){1, 1, str[0], str[1]});
            part[n++] = cps_b_reshape(b, v, 3, (int64_t[]){tx.dim[0], tx.dim[1], ho * wo});
        }
    cps_val cols = cps_b_concat(b, n, part, 1);
    cps_val flat = cps_b_reshape(b, cps_b_transpose(b, w, (int64_t[]){0, 2, 3, 1}), 2,
                                 (int64_t[]){tw.dim[0], n * tw.dim[1]});
    cps_val y = cps_b_matmul(b, flat, cols);
    return give(s, cps_b_reshape(b, y, 4, (int64_t[]){tx.dim[0], tw.dim[0], ho, wo}), out);
}

static bool
fn_pow(const site *s, cps_cv *out)
{
    return extreme(s, CPS_OP_POW, out);
}

static bool
fn_maximum(const site *s, cps_cv *out)
{
    return extreme(s, CPS_OP_MAX, out);
}

static bool
fn_minimum(const site *s, cps_cv *out)
{
    return extreme(s, CPS_OP_MIN, out);
}

static bool
two_tensors(const site *s, const char *instead)
{
    if (s->plain != 2 || named(s, "axis"))
        return false;
    wrong(s, "reduces over `axis:`");
    cps_help(s->y->ev.c.diags, "of two tensors the larger or smaller is `%s(a, b)`", instead);
    return true;
}

static bool
fn_max(const site *s, cps_cv *out)
{
    return !two_tensors(s, "maximum") && reduce(s, CPS_OP_RMAX, out);
}

static bool
fn_min(const site *s, cps_cv *out)
{
    return !two_tensors(s, "minimum") && reduce(s, CPS_OP_RMIN, out);
}

static bool
fn_sum(const site *s, cps_cv *out)
{
    return reduce(s, CPS_OP_SUM, out);
}

static bool
fn_mean(const site *s, cps_cv *out)
{
    return reduce(s, CPS_OP_MEAN, out);
}

static bool
fn_prod(const site *s, cps_cv *out)
{
    return reduce(s, CPS_OP_PROD, out);
}

static bool
fn_bytes(const site *s, cps_cv *out)
{
    cps_val x;
    if (!shape(s, 1, "") || !(x = tensor(s, 0)))
        return false;
    *out = cps_cv_int(cps_type_bytes(type_of(s, x)));
    return true;
}

// What one device's graph cannot say.
static bool
fn_refused(const site *s, cps_cv *out)
{
    (void)out;
    return cps_eval_error(&s->y->ev, CPS_E2309, s->at,
                          "`%s` has no form in the graph of one device", s->name);
}

static const struct {
    const char *name;
    bool (*run)(const site *s, cps_cv *out);
} rows[] = {
    {"max", fn_max},
    {"min", fn_min},
    {"sum", fn_sum},
    {"mean", fn_mean},
    {"prod", fn_prod},
    {"maximum", fn_maximum},
    {"minimum", fn_minimum},
    {"clamp", fn_clamp},
    {"select", fn_select},
    {"apply", fn_apply},
    {"cast", fn_cast},
    {"pow", fn_pow},
    {"zeros", fn_zeros},
    {"ones", fn_ones},
    {"full", fn_full},
    {"index", fn_index},
    {"repeat", fn_repeat},
    {"broadcast", fn_broadcast},
    {"concat", fn_concat},
    {"pad", fn_pad},
    {"gather", fn_gather},
    {"scatter", fn_scatter},
    {"scatter_add", fn_scatter_add},
    {"scan_add", fn_scan_add},
    {"sort_descending", fn_sort_descending},
    {"convolution", fn_convolution},
    {"bytes", fn_bytes},
    {"all_gather", fn_refused},
    {"all_reduce", fn_refused},
    {"reduce_scatter", fn_refused},
    {"mx_decode", fn_refused},
};

/* ---- calls of operators ---- */

static bool
fill_operand(const site *s, const cps_ast_op *op, uint32_t k, const cps_arg *a, cps_instance *i,
             cps_val *in)
{
    if (i->operand[k].present)
        return wrong(s, "is given `%s` twice", op->operand[k].name.text);
    cps_val v = cps_body_tensor(s->y, a->v, CPS_DT_NONE, a->src->span);
    if (!v)
        return false;
    if (op->operand[k].inout)
        return wrong(s, "updates `%s` in place, which a body cannot pass on",
                     op->operand[k].name.text);
    in[k] = v;
    i->operand[k].present = true;
    i->operand[k].type = *type_of(s, v);
    return true;
}

static bool
fill_attr(const site *s, const cps_arg *a, cps_instance *i)
{
    const char *key = a->src->name.text;
    cps_arena *m = s->y->scratch;
    cps_attr x;
    switch (a->v.kind) {
    case CPS_V_INT:
        x = cps_a_int(key, a->v.u.i);
        break;
    case CPS_V_FLOAT:
        x = cps_a_float(key, a->v.u.f);
        break;
    case CPS_V_BOOL:
        x = cps_a_bool(key, a->v.u.b);
        break;
    case CPS_V_STR:
        x = cps_a_str(key, a->v.u.s);
        break;
    case CPS_V_DTYPE:
        x = cps_a_dtype(key, a->v.u.dt);
        break;
    case CPS_V_ENUM:
        x = cps_a_str(key, a->v.u.ev->name);
        break;
    default:
        return wrong(s, "cannot take %s as the attribute `%s`",
                     cps_eval_describe(&s->y->ev, a->v), key);
    }
    cps_attr_put(m, &i->attr, &i->nattr, x);
    return true;
}

static bool
operator_call(const site *s, const cps_dsl_op *op, cps_cv *out)
{
    cps_body *y = s->y;
    cps_instance i = {.op = op->ast->name.text, .target = y->ev.c.target, .cores = 1};
    cps_val in[CPS_MAX_OPERANDS] = {0}, made[2 * CPS_MAX_OPERANDS] = {0};
    uint32_t place = 0;
    if (op->ast->noperand > CPS_MAX_OPERANDS || op->ast->nresult > CPS_MAX_OPERANDS)
        return wrong(s, "has more than %d operands or results", CPS_MAX_OPERANDS);
    i.noperands = (int)op->ast->noperand;
    for (uint32_t k = 0; k < op->ast->noperand; k++)
        i.operand[k].name = op->ast->operand[k].name.text;
    for (uint32_t a = 0; a < s->n; a++) {
        uint32_t k = place;
        bool plain = !s->arg[a].src->name.sym, found = plain;
        for (uint32_t q = 0; q < op->ast->noperand && !found; q++)
            if (op->ast->operand[q].name.sym == s->arg[a].src->name.sym) {
                k = q;
                found = true;
            }
        place += plain;
        if (found && k >= op->ast->noperand)
            return wrong(s, "takes up to %u operands", op->ast->noperand);
        if (!(found ? fill_operand(s, op->ast, k, &s->arg[a], &i, in)
                    : fill_attr(s, &s->arg[a], &i)))
            return false;
    }
    if (!cps_dsl_infer(y->s, y->scratch, op, &i, y->ev.c.diags)) {
        y->ev.failed++;
        cps_note(y->ev.c.diags, s->at, "`%s` is called here", s->name);
        return false;
    }
    y->b.loc = s->at;
    if (y->inlined) {
        if (!cps_body_inline(y, op, &i, in, made, s->at))
            return false;
    } else {
        cps_type types[CPS_MAX_OPERANDS];
        for (int k = 0; k < i.nresults; k++)
            types[k] = i.result[k].type;
        if (!cps_b_call(&y->b, i.op, i.noperands, in, i.nattr, i.attr, i.nresults, types, made))
            return cps_body_give(y, 0, out);
    }
    if (i.nresults == 1)
        return give(s, made[0], out);
    cps_cv *v = cps_new_array(y->scratch, cps_cv, i.nresults);
    for (int k = 0; k < i.nresults; k++)
        if (!give(s, made[k], &v[k]))
            return false;
    *out = cps_cv_seq(y->scratch, CPS_V_TUPLE, v, (uint32_t)i.nresults);
    return true;
}

cps_hook
cps_body_call(cps_eval *ev, const cps_ast_call *e, const cps_ast_name *name, const cps_arg *arg,
              uint32_t n, cps_cv *out)
{
    site s = {.y = cps_body_of(ev), .e = e, .name = name->text, .arg = arg, .n = n,
              .at = e->head.span};
    while (s.plain < n && !arg[s.plain].src->name.sym)
        s.plain++;
    uint32_t failed = ev->failed;
    s.y->b.loc = s.at;
    bool ok = false, known = false;
    for (size_t i = 0; i < cps_countof(rows) && !known; i++)
        if (cps_streq(rows[i].name, s.name)) {
            known = true;
            ok = rows[i].run(&s, out);
        }
    cps_op op = known ? CPS_OP_NONE : unary_op(s.name);
    if (op != CPS_OP_NONE) {
        cps_val x;
        known = true;
        ok = shape(&s, 1, "") && (x = tensor(&s, 0)) && give(&s, unary(&s, op, x), out);
    }
    if (!known) {
        const cps_dsl_op *other = cps_dsl_need_op(s.y->s, s.name);
        if (!other)
            return CPS_HOOK_PASS;
        ok = operator_call(&s, other, out);
    }
    ev->failed += !ok && ev->failed == failed; // the builder reported
    ev->trail_due |= !ok;
    return ok ? CPS_HOOK_DONE : CPS_HOOK_FAIL;
}
