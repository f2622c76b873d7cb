/* Random graphs of elementwise ops, broadcasts, casts, selects and row reductions, through lowering and everything behind
 * it. What comes out is calls; each is traced, run by the tile evaluator, compiled, proved and run by the simulator with
 * every check. Evaluator and simulator agree bit for bit, the reference (binary32 at each op, as the engines) agrees with
 * both: floats within the rounding of their dtype, integers and truth values exactly.
 *
 * Values that an op of one rounding error or more has touched (a quotient, a sum, a function) do not feed ops that tell
 * neighbouring numbers apart, for there the reference itself could be on the other side.
 *
 * Shapes with rows long enough for the widest tiles, or that do not divide so, are compiled only: what the leaf promises to
 * fit must fit.
 *
 * `random_regions COUNT SEED [FIRST]` runs others; a failure prints its graph. */
#include "codegen/codegen.h"
#include "frontend/dsl/registry.h"
#include "ir/build.h"
#include "ir/tile_eval.h"
#include "lower/lower.h"
#include "runtime/base/rng.h"
#include "runtime/sim/sim.h"
#include "tests/check.h"

#include <math.h>
#include <stdlib.h>

enum { POOL = 40, MAX_OUT = 6 };

typedef struct item {
    cps_val v;
    cps_type t;
    bool loose; /* more than one rounding of binary32 away from the reference */
    bool used;
} item;

typedef struct gen {
    cps_rng r;
    cps_arena *a;
    cps_diags *d;
    cps_module *m;
    cps_builder b;
    cps_dtype real, small; /* of the graph */
    int rank;
    int64_t dim[4];
    item pool[POOL];
    int n, inputs;
    bool large; /* compiled only */
    const char *stage;
} gen;

static unsigned
below(gen *g, unsigned n)
{
    return (unsigned)cps_rng_below(&g->r, n);
}

static void
keep(gen *g, cps_val v, bool loose)
{
    if (v && g->n < POOL)
        g->pool[g->n++] = (item){.v = v, .t = *cps_b_type(&g->b, v), .loose = loose};
}

static item *
of_kind(gen *g, char kind, bool firm)
{
    for (int tries = 0; tries < 60; tries++) {
        item *x = &g->pool[g->n > 6 && below(g, 2) ? g->n - 1 - (int)below(g, 5) : (int)below(g, (unsigned)g->n)];
        char k = cps_dtype_is_float(x->t.dtype) ? 'F' : x->t.dtype == CPS_DT_BOOL ? 'B' : x->t.dtype == CPS_DT_I32 ? 'I' : 'S';
        if (k != kind || (firm && x->loose) || (k == 'F' && x->t.dtype != g->real))
            continue;
        x->used = true;
        return x;
    }
    return NULL;
}

static void
operand(gen *g, cps_dtype t, unsigned mask)
{
    int64_t dim[4];
    char name[16];
    bool drop = below(g, 2); // leading axes of one may be left out
    int at = 0, rank = 0;
    for (int i = 0; i < g->rank; i++)
        if (mask >> i & 1)
            drop = drop && i >= at;
    while (drop && at < g->rank && !(mask >> at & 1))
        at++;
    for (int i = at; i < g->rank; i++)
        dim[rank++] = mask >> i & 1 ? g->dim[i] : 1;
    snprintf(name, sizeof name, "i%d", g->inputs++);
    keep(g, cps_b_input(&g->b, cps_arena_strdup(g->a, name), cps_type_make(t, rank, dim)), false);
}

static cps_val
number(gen *g, cps_dtype t, double x)
{
    return cps_b_scalar(&g->b, t, cps_dtype_is_float(t) ? cps_round_f64(t, x) : floor(x));
}

static double
any_number(gen *g)
{
    static const double some[] = {0.5, -1.25, 2.0, 3.0, -0.125, 1.0, 0.0, 7.0, 100.0};
    return some[below(g, cps_countof(some))];
}

static void
floats(gen *g)
{
    static const cps_op two[] = {CPS_OP_ADD, CPS_OP_SUB, CPS_OP_MUL, CPS_OP_MAX, CPS_OP_MIN};
    static const cps_op one[] = {CPS_OP_NEG, CPS_OP_ABS, CPS_OP_RELU, CPS_OP_SQUARE};
    static const cps_op function[] = {CPS_OP_TANH, CPS_OP_SIGMOID, CPS_OP_GELU, CPS_OP_SILU, CPS_OP_ERF,
                                      CPS_OP_SOFTPLUS, CPS_OP_GELU_TANH, CPS_OP_SWISH, CPS_OP_MISH, CPS_OP_ARCTAN};
    static const cps_op whole[] = {CPS_OP_FLOOR, CPS_OP_CEIL, CPS_OP_ROUND, CPS_OP_SIGN};
    cps_builder *b = &g->b;
    bool narrow = g->real != CPS_DT_FP32; // rounded on the way through memory
    item *x, *y;
    switch (below(g, 12)) {
    case 0:
    case 1:
    case 2:
        if ((x = of_kind(g, 'F', false)) && (y = of_kind(g, 'F', false)))
            keep(g, cps_b_binary(b, two[below(g, cps_countof(two))], x->v, y->v), narrow || x->loose || y->loose);
        break;
    case 3:
    case 4:
        if ((x = of_kind(g, 'F', false))) {
            cps_val n = number(g, g->real, any_number(g));
            bool swap = below(g, 4) == 0;
            keep(g, cps_b_binary(b, two[below(g, cps_countof(two))], swap ? n : x->v, swap ? x->v : n), narrow || x->loose);
        }
        break;
    case 5:
        if ((x = of_kind(g, 'F', false)))
            keep(g, cps_b_unary(b, one[below(g, cps_countof(one))], x->v), narrow || x->loose);
        break;
    case 6:
    case 7:
        if ((x = of_kind(g, 'F', false)))
            keep(g, cps_b_unary(b, function[below(g, cps_countof(function))], x->v), true);
        break;
    case 8:
        if ((x = of_kind(g, 'F', true)))
            keep(g, cps_b_unary(b, whole[below(g, cps_countof(whole))], x->v), false);
        break;
    case 9: // exp of what is small, a quotient by what is not
        if ((x = of_kind(g, 'F', false)) && (y = of_kind(g, 'F', false))) {
            cps_val t = cps_b_unary(b, CPS_OP_TANH, x->v);
            cps_val e = cps_b_unary(b, below(g, 2) ? CPS_OP_EXP : below(g, 2) ? CPS_OP_SIN : CPS_OP_COS, t);
            cps_val s = cps_b_binary(b, CPS_OP_ADD, cps_b_unary(b, CPS_OP_ABS, y->v), number(g, g->real, 1.0));
            keep(g, e, true);
            keep(g, cps_b_binary(b, CPS_OP_DIV, e, s), true);
        }
        break;
    case 10: // a remainder, which jumps
        if (below(g, 2)) {
            if ((x = of_kind(g, 'F', true))) {
                cps_val by = number(g, g->real, below(g, 2) ? -1.5 : 2.0);
                cps_val v = 0;
                cps_b_node(b, CPS_OP_MOD, 2, (cps_val[]){x->v, by}, 1, (cps_attr[]){cps_a_bool("fmod", below(g, 2))}, &v);
                keep(g, v, true);
            }
            break;
        }
        // a power of what is positive
        if ((x = of_kind(g, 'F', false)) && (y = of_kind(g, 'F', false))) {
            cps_val s = cps_b_unary(b, CPS_OP_SIGMOID, x->v);
            keep(g, cps_b_binary(b, CPS_OP_POW, s, below(g, 2) ? number(g, g->real, 3.0) : cps_b_unary(b, CPS_OP_TANH, y->v)), true);
        }
        break;
    default:
        if ((x = of_kind(g, 'F', false)) && (y = of_kind(g, 'F', false))) {
            item *c = of_kind(g, 'B', false);
            if (c)
                keep(g, cps_b_select(b, c->v, x->v, below(g, 3) ? y->v : number(g, g->real, any_number(g))),
                     x->loose || y->loose);
        }
    }
}

static void
truths(gen *g)
{
    static const cps_op order[] = {CPS_OP_LT, CPS_OP_LE, CPS_OP_GT, CPS_OP_GE, CPS_OP_EQ, CPS_OP_NE};
    static const cps_op logic[] = {CPS_OP_AND, CPS_OP_OR, CPS_OP_XOR, CPS_OP_EQ, CPS_OP_NE};
    cps_builder *b = &g->b;
    char kind = below(g, 3) ? 'F' : 'I';
    item *x = of_kind(g, kind, true), *y = of_kind(g, kind, true);
    cps_op op = order[below(g, cps_countof(order))];
    switch (below(g, 4)) {
    case 0:
        if (x && y)
            keep(g, cps_b_binary(b, op, x->v, y->v), false);
        break;
    case 1:
        if (x)
            keep(g, cps_b_binary(b, op, x->v, number(g, x->t.dtype, any_number(g))), false);
        break;
    case 2:
        x = of_kind(g, 'B', false);
        y = of_kind(g, 'B', false);
        if (x && y)
            keep(g, cps_b_binary(b, logic[below(g, cps_countof(logic))], x->v, y->v), false);
        break;
    default:
        x = of_kind(g, below(g, 2) ? 'B' : 'F', true);
        if (x)
            keep(g, cps_b_unary(b, x->t.dtype == CPS_DT_BOOL ? CPS_OP_NOT : CPS_OP_ISNAN, x->v), false);
    }
}

static void
integers(gen *g)
{
    static const cps_op two[] = {CPS_OP_ADD, CPS_OP_SUB, CPS_OP_MUL, CPS_OP_MAX, CPS_OP_MIN, CPS_OP_AND, CPS_OP_OR, CPS_OP_XOR};
    static const cps_op one[] = {CPS_OP_NEG, CPS_OP_ABS, CPS_OP_RELU, CPS_OP_SIGN, CPS_OP_SQUARE, CPS_OP_NOT};
    item *x = of_kind(g, 'I', false), *y = of_kind(g, 'I', false), *c;
    cps_builder *b = &g->b;
    if (!x || !y)
        return;
    switch (below(g, 5)) {
    case 0:
    case 1:
        keep(g, cps_b_binary(b, two[below(g, cps_countof(two))], x->v, below(g, 3) ? y->v : number(g, CPS_DT_I32, any_number(g))), false);
        break;
    case 2:
        keep(g, cps_b_unary(b, one[below(g, cps_countof(one))], x->v), false);
        break;
    case 3:
        if ((c = of_kind(g, 'B', false)))
            keep(g, cps_b_select(b, c->v, x->v, y->v), false);
        break;
    default:
        keep(g, cps_b_cast(b, x->v, below(g, 2) && g->real != CPS_DT_FP16 ? g->real : CPS_DT_BOOL), false);
    }
}

// What is not 0: a quotient of it is defined.
static cps_val
odd(gen *g, cps_dtype t, cps_val v)
{
    return cps_b_binary(&g->b, CPS_OP_OR, v, number(g, t, 1));
}

static void
quotients(gen *g)
{
    static const double by[] = {1, 2, 3, -5, 64, 1000, -1, 7};
    char kind = below(g, 2) ? 'I' : 'S';
    item *x = of_kind(g, kind, false), *y = of_kind(g, kind, false);
    if (!x || !y || x->t.dtype != y->t.dtype)
        return;
    double n = by[below(g, cps_countof(by))];
    bool sign = cps_dtypes[x->t.dtype].kind == 'S' && cps_dtype_bytes(x->t.dtype) > 1;
    cps_val d = below(g, 2) ? odd(g, x->t.dtype, y->v) : number(g, x->t.dtype, sign ? n : fmin(fabs(n), 100)), v = 0;
    if (below(g, 2))
        v = cps_b_binary(&g->b, CPS_OP_DIV, x->v, d);
    else
        cps_b_node(&g->b, CPS_OP_MOD, 2, (cps_val[]){x->v, d}, 1, (cps_attr[]){cps_a_bool("fmod", below(g, 2))}, &v);
    keep(g, v, false);
}

// Of 8 and 16 bits, which wrap.
static void
shorts(gen *g)
{
    static const cps_op two[] = {CPS_OP_ADD, CPS_OP_SUB, CPS_OP_MUL, CPS_OP_MAX, CPS_OP_MIN, CPS_OP_AND, CPS_OP_OR, CPS_OP_XOR};
    static const cps_op order[] = {CPS_OP_LT, CPS_OP_LE, CPS_OP_GT, CPS_OP_GE, CPS_OP_EQ, CPS_OP_NE};
    static const cps_op one[] = {CPS_OP_NEG, CPS_OP_ABS, CPS_OP_RELU, CPS_OP_SIGN, CPS_OP_SQUARE, CPS_OP_NOT};
    item *x = of_kind(g, 'S', false), *y = of_kind(g, 'S', false), *c;
    cps_builder *b = &g->b;
    if (!x || !y || x->t.dtype != y->t.dtype)
        return;
    switch (below(g, 6)) {
    case 0:
    case 1:
        keep(g, cps_b_binary(b, two[below(g, cps_countof(two))], x->v, below(g, 3) ? y->v : number(g, x->t.dtype, below(g, 100))), false);
        break;
    case 2:
        keep(g, cps_b_unary(b, one[below(g, cps_countof(one))], x->v), false);
        break;
    case 3:
        if ((c = of_kind(g, 'B', false)))
            keep(g, cps_b_select(b, c->v, x->v, y->v), false);
        break;
    case 4:
        keep(g, cps_b_binary(b, order[below(g, cps_countof(order))], x->v, y->v), false);
        break;
    default:
        keep(g, cps_b_cast(b, x->v, below(g, 2) ? CPS_DT_I32 : CPS_DT_BOOL), false);
    }
}

static void
casts(gen *g)
{
    item *x = of_kind(g, below(g, 2) ? 'F' : 'B', true);
    if (!x)
        return;
    bool truth = x->t.dtype == CPS_DT_BOOL;
    if (below(g, 3) == 0) { // cut and held at the ends, or low bits
        if (!(x = of_kind(g, below(g, 2) ? 'F' : 'I', true)))
            return;
        cps_val v = x->v;
        if (below(g, 2) && cps_dtype_is_float(x->t.dtype))
            v = cps_b_unary(&g->b, CPS_OP_ROUND, cps_b_binary(&g->b, CPS_OP_MUL, v, number(g, g->real, 64)));
        keep(g, cps_b_cast(&g->b, v, g->small), false);
        return;
    }
    if (below(g, 3) == 0 && !truth && g->real == CPS_DT_FP32) { // there and back
        keep(g, cps_b_cast(&g->b, cps_b_cast(&g->b, x->v, CPS_DT_BF16), g->real), x->loose);
        return;
    }
    keep(g, cps_b_cast(&g->b, x->v, below(g, 2) ? CPS_DT_I32 : truth ? g->real : CPS_DT_BOOL), false);
}

// Along any axis, both ways; of integers forwards, in rows that the parts of a sum are exact for.
static void
running_sums(gen *g)
{
    bool real = g->real == CPS_DT_FP32 && below(g, 2); // sums of narrow ones grow, and so does their rounding
    item *x = of_kind(g, real ? 'F' : 'I', true);
    cps_val v = 0;
    if (!x || x->t.rank < 1)
        return;
    int64_t axis = !real || below(g, 3) ? x->t.rank - 1 : (int)below(g, (unsigned)x->t.rank);
    if (x->t.dim[axis] < 2 || x->t.dim[axis] > (real ? 512 : 8192)) // long sums round more than functions behind them bear
        return;
    cps_b_node(&g->b, CPS_OP_CUMSUM, 1, &x->v, 3,
               (cps_attr[]){cps_a_int("axis", axis), cps_a_bool("exclusive", below(g, 2)), cps_a_bool("reverse", real && below(g, 2))}, &v);
    keep(g, v, real);
}

// What is cut out of a longer operand along one axis.
static void
slices(gen *g)
{
    int64_t dim[4], start[4] = {0}, stop[4], step[4] = {1, 1, 1, 1};
    char name[16];
    int axis = (int)below(g, (unsigned)g->rank);
    cps_dtype t = below(g, 3) ? g->real : below(g, 2) ? CPS_DT_I32 : g->small;
    for (int i = 0; i < g->rank; i++)
        dim[i] = stop[i] = below(g, 4) || i == axis ? g->dim[i] : 1;
    start[axis] = (int64_t)below(g, 40);
    stop[axis] += start[axis];
    dim[axis] = stop[axis] + (int64_t)below(g, 20);
    snprintf(name, sizeof name, "s%d", g->n);
    cps_val x = cps_b_input(&g->b, cps_arena_strdup(g->a, name), cps_type_make(t, g->rank, dim));
    keep(g, cps_b_slice(&g->b, x, start, stop, step), false);
    if (below(g, 2) && start[axis]) // twice out of one
        keep(g, cps_b_slice(&g->b, x, (int64_t[4]){0}, (stop[axis] -= start[axis], stop), step), false);
}

// A softmax and an RMS norm, which are raised to the library's operators and opened again where they stand beside others.
static void
norms(gen *g)
{
    cps_builder *b = &g->b;
    item *x = of_kind(g, 'F', true);
    if (!x || x->t.rank != g->rank || g->rank < 2 || x->t.dim[g->rank - 1] < 2)
        return;
    int64_t axis = g->rank - 1;
    if (below(g, 2)) {
        cps_val e = cps_b_unary(b, CPS_OP_EXP, cps_b_binary(b, CPS_OP_SUB, x->v, cps_b_reduce(b, CPS_OP_RMAX, x->v, 1, &axis, true)));
        keep(g, cps_b_binary(b, CPS_OP_DIV, e, cps_b_reduce(b, CPS_OP_SUM, e, 1, &axis, true)), true);
        return;
    }
    cps_val mean = cps_b_reduce(b, CPS_OP_MEAN, cps_b_unary(b, CPS_OP_SQUARE, x->v), 1, &axis, true);
    cps_val root = cps_b_unary(b, CPS_OP_RSQRT, cps_b_binary(b, CPS_OP_ADD, mean, number(g, g->real, 0.125)));
    cps_val gamma = cps_b_input(b, "gamma", cps_type_make(g->real, 1, &x->t.dim[axis]));
    keep(g, cps_b_binary(b, CPS_OP_MUL, cps_b_binary(b, CPS_OP_MUL, x->v, root), gamma), true);
}

static void
reduces(gen *g)
{
    static const cps_op ops[] = {CPS_OP_SUM, CPS_OP_MEAN, CPS_OP_RMAX, CPS_OP_RMIN};
    item *x = of_kind(g, 'F', false);
    int64_t axis[2];
    if (!x || x->t.rank != g->rank || g->rank < 2 || cps_type_count(&x->t) < 2)
        return;
    int n = g->rank > 2 && below(g, 3) == 0 ? 2 : 1;
    for (int i = 0; i < n; i++)
        axis[i] = g->rank - n + i;
    // Sums of narrow ones grow, and sums of what has a mean taken off are nothing but rounding.
    unsigned skip = x->loose ? 2 : g->real != CPS_DT_FP32;
    cps_op op = ops[skip + below(g, 4 - skip)];
    bool loose = x->loose || op == CPS_OP_SUM || op == CPS_OP_MEAN;
    cps_val v = cps_b_reduce(&g->b, op, x->v, n, axis, true);
    keep(g, v, loose);
    keep(g, cps_b_binary(&g->b, CPS_OP_SUB, x->v, v), loose || g->real != CPS_DT_FP32);
}

static void
make(gen *g, uint64_t seed, uint64_t index)
{
    static const int64_t sizes[] = {1, 2, 3, 5, 7, 31, 64, 100, 128, 129, 130, 200, 257, 300};
    static const cps_dtype reals[] = {CPS_DT_FP32, CPS_DT_BF16, CPS_DT_FP16, CPS_DT_BF16};
    static const cps_dtype smalls[] = {CPS_DT_I8, CPS_DT_U8, CPS_DT_I16, CPS_DT_U16};
    cps_rng_init(&g->r, seed, index);
    g->m = cps_module_new(g->a, "random");
    g->b = (cps_builder){.m = g->m, .f = cps_func_new(g->m, "main"), .d = g->d};
    g->real = reals[below(g, cps_countof(reals))];
    g->small = smalls[below(g, cps_countof(smalls))];
    g->rank = 1 + (int)below(g, 4);
    int64_t total = 1;
    for (int i = 0; i < g->rank; i++) {
        g->dim[i] = sizes[below(g, cps_countof(sizes))];
        while (total * g->dim[i] > 40000)
            g->dim[i] /= 2;
        total *= g->dim[i];
    }
    if (index % 16 == 15) { // rows that do not fit a partition
        g->rank = 2;
        g->dim[0] = 3 + (int64_t)below(g, 30);
        g->dim[1] = 9000 + (int64_t)below(g, 4000);
    }
    if (g->large) {
        static const int64_t rows[] = {128, 300, 512};
        static const int64_t columns[] = {1000, 4000, 4096, 6000, 8192};
        g->rank = 2;
        g->dim[0] = rows[below(g, cps_countof(rows))];
        g->dim[1] = columns[below(g, cps_countof(columns))];
    }
    unsigned all = (1u << g->rank) - 1;
    operand(g, g->real, all);
    operand(g, g->real, all);
    operand(g, g->real, below(g, 2) ? all : below(g, all + 1));
    operand(g, g->real, below(g, all + 1));
    operand(g, CPS_DT_BOOL, below(g, 2) ? all : below(g, all + 1));
    operand(g, CPS_DT_I32, below(g, 2) ? all : below(g, all + 1));
    operand(g, g->small, all);
    operand(g, g->small, below(g, all + 1));
    if (g->large) // with pairs of integers, whose comparing takes the most tiles
        operand(g, CPS_DT_I32, all);
    int normed = 0, sliced = 0;
    int ops = (g->large ? 5 : 1) + (int)below(g, 12);
    for (int i = 0; i < ops && g->n < POOL - 2; i++) {
        unsigned k = g->large && below(g, 3) == 0 ? 11 : below(g, 20);
        if (g->inputs + sliced < 12 && below(g, 8) == 0 && ++sliced)
            slices(g);
        else if (k < 9)
            floats(g);
        else if (k < 11)
            truths(g);
        else if (k < 12)
            integers(g);
        else if (k < 14)
            casts(g);
        else if (k < 16)
            shorts(g);
        else if (k < 17)
            quotients(g);
        else if (k < 18)
            running_sums(g);
        else if (k < 19 && !normed++)
            norms(g);
        else
            reduces(g);
    }
    int outs = 0;
    for (int i = g->n; i-- > g->inputs && outs < MAX_OUT;)
        if (!g->pool[i].used || below(g, 8) == 0) {
            char name[16];
            snprintf(name, sizeof name, "o%d", outs++);
            cps_b_output(&g->b, cps_arena_strdup(g->a, name), g->pool[i].v);
        }
    if (!outs)
        cps_b_output(&g->b, "o0", cps_b_binary(&g->b, CPS_OP_GT, g->pool[0].v, g->pool[1].v));
}

/* ---- running ---- */

static void *
contents(gen *g, const cps_type *t, uint64_t index)
{
    size_t n = (size_t)cps_type_count(t), es = cps_dtype_bytes(t->dtype);
    char *p = cps_arena_alloc(g->a, n * es + 16);
    cps_rng r;
    cps_rng_init(&r, 77, index);
    for (size_t i = 0; i < n; i++)
        if (t->dtype == CPS_DT_BOOL)
            cps_from_i64(t->dtype, p + i * es, (int64_t)cps_rng_below(&r, 2));
        else if (cps_dtype_is_int(t->dtype)) // small ones, and all 32 bits
            cps_from_i64(t->dtype, p + i * es, (int32_t)(cps_rng_next(&r) >> (i % 2 ? 32 : 60)) - (i % 2 ? 0 : 8));
        else // halves meet, so that equality is seen
            cps_from_f64(t->dtype, p + i * es, i % 3 ? cps_rng_normal(&r) : floor(cps_rng_normal(&r) * 4) / 2);
    return p;
}

static bool
run_call(gen *g, cps_registry *reg, const cps_lower_opts *o, const cps_func *f, const cps_node *n, void **tile, void **sim)
{
    cps_instance inst;
    cps_candidate *cand, *c = NULL;
    cps_kbin *k = NULL;
    void *targs[2 * CPS_MAX_OPERANDS], *sargs[2 * CPS_MAX_OPERANDS];
    int args = 0;
    g->stage = "instance";
    if (!cps_lower_instance(o, g->a, f, n, &inst, g->d))
        return false;
    unsigned count = reg->candidates(reg->self, g->a, &inst, &cand, g->d);
    for (unsigned i = 0; i < count; i++)
        if (n->pick && !strcmp(cand[i].leaf, n->pick->leaf))
            c = &cand[i];
    g->stage = "tracer";
    cps_tfunc *t = c ? reg->trace(reg->self, g->a, &inst, c, 0, g->d) : NULL;
    if (!t || !cps_tile_verify(t, o->target, g->d))
        return false;
    for (int i = 0; i < n->nin; i++)
        if (n->in[i]) {
            targs[args] = tile[n->in[i]];
            sargs[args++] = sim[n->in[i]];
        }
    for (int i = 0; i < n->nout; i++) {
        size_t bytes = (size_t)cps_type_bytes(&f->vals.data[n->out[i]].type);
        targs[args] = tile[n->out[i]] = memset(cps_arena_alloc(g->a, bytes + 16), 0x5A, bytes);
        sargs[args++] = sim[n->out[i]] = memset(cps_arena_alloc(g->a, bytes + 16), 0xA5, bytes);
    }
    g->stage = "tile evaluator";
    if (!cps_tile_eval(t, targs, g->d))
        return false;
    g->stage = "compiler";
    if (!cps_codegen(g->a, t, o->target, &(cps_codegen_opts){.verify = true}, &k, g->d))
        return false;
    cps_sim *s = cps_sim_create(o->target);
    cps_proof proof = {0};
    cps_sim_report rep = {0};
    g->stage = "proof";
    bool ok = cps_sim_load(s, k, g->d) && cps_sim_prove(s, &proof, g->d) && proof.races == CPS_PROOF_HOLDS &&
              proof.deadlock == CPS_PROOF_HOLDS;
    if (ok)
        g->stage = "simulator";
    for (uint32_t i = 1, at = 0; ok && i < k->vars.n; i++) {
        const cps_kvar *v = &k->vars.data[i];
        if (v->kind == CPS_VAR_DATA || v->kind == CPS_VAR_TMP)
            continue;
        ok = cps_sim_bind(s, v->name, sargs[at++], (size_t)v->bytes, v->kind != CPS_VAR_OUTPUT, g->d);
    }
    ok = ok && cps_sim_run(s, &(cps_sim_opts){.checks = CPS_CHECK_ALL, .max_steps = 10000000}, &rep, g->d) &&
         !rep.races && !rep.uninit && !rep.bounds;
    cps_sim_destroy(s);
    for (int i = 0; ok && i < n->nout; i++) {
        g->stage = "bits of evaluator and simulator";
        ok = memcmp(tile[n->out[i]], sim[n->out[i]], (size_t)cps_type_bytes(&f->vals.data[n->out[i]].type)) == 0;
    }
    return ok;
}

static bool
run_lowered(gen *g, cps_registry *reg, const cps_lower_opts *o, void **in, void **out, unsigned *calls)
{
    const cps_func *f = g->m->funcs.data[0];
    void **tile = cps_new_array(g->a, void *, f->vals.n), **sim = cps_new_array(g->a, void *, f->vals.n);
    for (uint32_t i = 0; i < f->inputs.n; i++)
        tile[f->inputs.data[i]] = sim[f->inputs.data[i]] = in[i];
    for (uint32_t i = 0; i < f->nodes.n; i++) {
        const cps_node *n = &f->nodes.data[i];
        if (n->op == CPS_OP_CONST) {
            tile[n->out[0]] = sim[n->out[0]] = (void *)(uintptr_t)g->m->consts.data[n->cst].data;
        } else if (n->op == CPS_OP_RESHAPE) {
            tile[n->out[0]] = tile[n->in[0]];
            sim[n->out[0]] = sim[n->in[0]];
        } else {
            ++*calls;
            if (n->op != CPS_OP_CALL || !run_call(g, reg, o, f, n, tile, sim))
                return false;
        }
    }
    for (uint32_t i = 0; i < f->outputs.n; i++)
        out[i] = sim[f->outputs.data[i]];
    return true;
}

// Large ones: everything but the running.
static void
compile_large(uint64_t seed, uint64_t index, const char *target)
{
    gen *g = calloc(1, sizeof *g);
    g->a = cps_arena_create();
    g->d = cps_diags_create();
    g->large = true;
    make(g, seed, index);
    cps_registry *reg = cps_dsl_registry_create(g->a, g->d);
    cps_lower_opts o = {.registry = reg, .target = cps_target_find(target), .cores = 1, .auto_cast = "none",
                        .cast_type = CPS_DT_BF16, .fallback = CPS_FALLBACK_QUIET};
    cps_buf before = {0}, why = {0};
    cps_ir_print(g->m, &before);
    bool ok = cps_lower_prepare(g->m, &o, g->d) && cps_lower_select(g->m, &o, g->d);
    const cps_func *f = g->m->funcs.data[0];
    for (uint32_t i = 0; ok && i < f->nodes.n; i++) {
        const cps_node *n = &f->nodes.data[i];
        cps_instance inst;
        cps_candidate *cand, *c = NULL;
        cps_kbin *k = NULL;
        if (n->op != CPS_OP_CALL)
            continue;
        ok = cps_lower_instance(&o, g->a, f, n, &inst, g->d);
        unsigned count = ok ? reg->candidates(reg->self, g->a, &inst, &cand, g->d) : 0;
        for (unsigned q = 0; q < count; q++)
            if (n->pick && !strcmp(cand[q].leaf, n->pick->leaf))
                c = &cand[q];
        cps_tfunc *t = c ? reg->trace(reg->self, g->a, &inst, c, 0, g->d) : NULL;
        ok = t && cps_codegen(g->a, t, o.target, &(cps_codegen_opts){0}, &k, g->d);
    }
    CHECK(ok);
    if (!ok) {
        cps_diags_render(g->d, &why, false);
        fprintf(stderr, "large graph %llu of seed %llu on %s\n%s%s", (unsigned long long)index, (unsigned long long)seed,
                target, before.data, why.n ? why.data : "");
    }
    cps_buf_fini(&before);
    cps_buf_fini(&why);
    cps_dsl_registry_destroy(reg);
    cps_diags_destroy(g->d);
    cps_arena_destroy(g->a);
    free(g);
}

static double
distance(const cps_tensor *want, const void *got, bool narrow)
{
    const cps_type *t = &want->type;
    size_t n = (size_t)cps_type_count(t), es = cps_dtype_bytes(t->dtype);
    double most = narrow ? 4 : 1e-3, worst = 0; // operands reach 4, and narrow ones are rounded on their way
    for (size_t i = 0; i < n; i++) {
        const char *p = (const char *)got + i * es;
        if (want->i) {
            if (want->i[i] != cps_to_i64(t->dtype, p))
                return INFINITY;
            continue;
        }
        double x = cps_round_f64(t->dtype, want->f[i]), y = cps_to_f64(t->dtype, p);
        if (isnan(x) || isinf(x)) {
            if (!(isnan(x) ? isnan(y) : x == y))
                return INFINITY;
            continue;
        }
        most = fmax(most, fabs(x));
        if (!(fabs(x - y) <= worst))
            worst = isfinite(y) ? fabs(x - y) : INFINITY;
    }
    return worst / most;
}

int
main(int argc, char **argv)
{
    static const char *const targets[] = {"trn1", "trn2", "trn3"};
    unsigned count = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 120, calls = 0;
    uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 1, first = argc > 3 ? strtoull(argv[3], NULL, 10) : 0;
    double worst[2] = {0};

    for (uint64_t i = first; i < first + count; i++) {
        gen *g = calloc(1, sizeof *g);
        g->a = cps_arena_create();
        g->d = cps_diags_create();
        g->stage = "generator";
        make(g, seed, i);
        cps_registry *reg = cps_dsl_registry_create(g->a, g->d);
        cps_lower_opts o = {.registry = reg, .target = cps_target_find(targets[i % 3]), .cores = 1, .auto_cast = "none",
                            .cast_type = CPS_DT_BF16, .fallback = CPS_FALLBACK_QUIET, .verify_each = true};
        const cps_func *f = g->m->funcs.data[0];
        void *in[16], *out[MAX_OUT];
        cps_tensor args[16], want[MAX_OUT];
        cps_buf before = {0}, why = {0};
        for (uint32_t k = 0; k < f->inputs.n; k++) {
            const cps_type *t = &f->vals.data[f->inputs.data[k]].type;
            in[k] = contents(g, t, k);
            args[k] = cps_tensor_from(g->a, t, in[k]);
        }
        cps_ir_print(g->m, &before);
        bool ok = cps_diags_errors(g->d) == 0 && cps_ir_verify(g->m, g->d);
        if (ok) {
            g->stage = "reference";
            ok = cps_ir_eval(g->a, g->m, f, args, want, &(cps_eval_opts){.threads = 1, .fp32 = true}, g->d);
        }
        if (ok) {
            g->stage = "lowering";
            ok = cps_lower_prepare(g->m, &o, g->d) && cps_lower_select(g->m, &o, g->d);
        }
        ok = ok && run_lowered(g, reg, &o, in, out, &calls);
        uint32_t outs = g->m->funcs.data[0]->outputs.n;
        double off = 0;
        uint32_t at = 0;
        for (uint32_t k = 0; ok && k < outs; k++) {
            double x = distance(&want[k], out[k], g->real != CPS_DT_FP32);
            at = x > off ? k : at;
            off = fmax(off, x);
        }
        if (ok && !(off <= (g->real == CPS_DT_FP32 ? 1e-4 : 2e-2))) {
            ok = false;
            g->stage = "reference's numbers";
        }
        CHECK(ok);
        if (!ok) {
            cps_buf after = {0};
            cps_diags_render(g->d, &why, false);
            cps_ir_print(g->m, &after);
            fprintf(stderr, "graph %llu of seed %llu on %s\nfailed: %s (result %u off by %.3g)\n%s%s%s\n", (unsigned long long)i,
                    (unsigned long long)seed, targets[i % 3], g->stage, at, off, before.data, after.data, why.n ? why.data : "");
            cps_buf_fini(&after);
        } else {
            worst[g->real != CPS_DT_FP32] = fmax(worst[g->real != CPS_DT_FP32], off);
        }
        cps_buf_fini(&before);
        cps_buf_fini(&why);
        cps_dsl_registry_destroy(reg);
        cps_diags_destroy(g->d);
        cps_arena_destroy(g->a);
        free(g);
    }
    for (uint64_t i = first; i < first + count; i++)
        compile_large(seed, i, targets[i % 3]);
    printf("%u graphs, %u kernels; off by %.3g of the largest in fp32, %.3g where narrower\n", count, calls, worst[0], worst[1]);
    return CHECK_DONE();
}
