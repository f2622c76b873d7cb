/* Reductions and scans of the reference evaluator. A reduction walks the operand once in memory
 * order and folds each row into the results: into one element when the last axis is reduced,
 * else element by element. So sums run in ascending index order, always, on every machine. With
 * `fp32` each partial sum is rounded to binary32 (a binary64 add of two binary32 numbers
 * rounded once more is the binary32 add). */
#include "ir/eval.h"

#include <math.h>
#include <stdlib.h>

// `step` 0: all n elements into acc[0]; else element k into acc[k * step].
#define FOLD(T, expr)                                                                          \
    if (step == 0) {                                                                           \
        T a = acc[0];                                                                          \
        for (int64_t k = 0; k < n; k++) {                                                      \
            T x = row[k];                                                                      \
            a = (expr);                                                                        \
        }                                                                                      \
        acc[0] = a;                                                                            \
    } else {                                                                                   \
        for (int64_t k = 0; k < n; k++) {                                                      \
            T a = acc[k * step], x = row[k];                                                   \
            acc[k * step] = (expr);                                                            \
        }                                                                                      \
    }

static void
fold_f(int op, bool fp32, double *acc, int64_t step, const double *row, int64_t n)
{
    switch (op) {
    case CPS_OP_PROD:
        if (fp32) {
            FOLD(double, (double)(float)(a * x))
        } else {
            FOLD(double, a *x)
        }
        break;
    case CPS_OP_RMAX:
        FOLD(double, x > a || x != x ? x : a)
        break;
    case CPS_OP_RMIN:
        FOLD(double, x < a || x != x ? x : a)
        break;
    default: // SUM, MEAN
        if (fp32) {
            FOLD(double, (double)(float)(a + x))
        } else {
            FOLD(double, a + x)
        }
    }
}

static void
fold_i(int op, int64_t bias, int64_t *acc, int64_t step, const int64_t *row, int64_t n)
{
    switch (op) {
    case CPS_OP_PROD:
        FOLD(int64_t, (int64_t)((uint64_t)a * (uint64_t)x))
        break;
    case CPS_OP_RMAX:
        FOLD(int64_t, (x ^ bias) > (a ^ bias) ? x : a)
        break;
    case CPS_OP_RMIN:
        FOLD(int64_t, (x ^ bias) < (a ^ bias) ? x : a)
        break;
    default:
        FOLD(int64_t, (int64_t)((uint64_t)a + (uint64_t)x))
    }
}

bool
cps_ev_reduce(cps_ev *e, const cps_tensor *in, cps_tensor *out)
{
    const cps_attr *axes = cps_node_attr(e->n, "axes");
    int op = e->n->op;
    bool gone[CPS_MAX_RANK] = {0};
    int64_t stride[1][CPS_MAX_RANK] = {{0}}, s = 1, total = cps_type_count(&in->type),
            bias = in->type.dtype == CPS_DT_U64 ? INT64_MIN : 0;
    for (uint32_t i = 0; i < axes->n; i++)
        gone[axes->ints[i]] = true;
    for (int i = in->type.rank - 1; i >= 0; i--) { // strides of the result along operand axes
        stride[0][i] = gone[i] ? 0 : s;
        s *= gone[i] ? 1 : in->type.dim[i];
    }
    int64_t results = cps_type_count(&out->type);
    for (int64_t i = 0; i < results; i++) {
        if (out->f)
            out->f[i] = op == CPS_OP_PROD   ? 1
                        : op == CPS_OP_RMAX ? -INFINITY
                        : op == CPS_OP_RMIN ? INFINITY
                                            : 0;
        else
            out->i[i] = op == CPS_OP_PROD   ? 1
                        : op == CPS_OP_RMAX ? INT64_MIN ^ bias
                        : op == CPS_OP_RMIN ? INT64_MAX ^ bias
                                            : 0;
    }
    cps_ev_walk w;
    cps_ev_walk_init(&w, &in->type, 1, stride);
    for (int64_t at = 0, n; at < total; at += n) {
        int64_t off[3], step = w.stride[0][w.rank - 1];
        n = cps_ev_walk_at(&w, at, off);
        if (out->f)
            fold_f(op, e->o->fp32, out->f + off[0], step, in->f + at, n);
        else
            fold_i(op, bias, out->i + off[0], step, in->i + at, n);
    }
    if (op == CPS_OP_MEAN) {
        double count = 1;
        for (int i = 0; i < in->type.rank; i++)
            count *= gone[i] ? (double)in->type.dim[i] : 1;
        for (int64_t i = 0; i < results; i++)
            out->f[i] /= count;
    }
    return true;
}

/* ---- scans ---- */

// The operand as [outer, n, inner] around the node's axis.
static void
around(const cps_type *t, int axis, int64_t *outer, int64_t *n, int64_t *inner)
{
    *outer = *inner = 1;
    *n = t->dim[axis];
    for (int i = 0; i < axis; i++)
        *outer *= t->dim[i];
    for (int i = axis + 1; i < t->rank; i++)
        *inner *= t->dim[i];
}

static void
cumsum_lane(const cps_ev *e, const cps_tensor *x, cps_tensor *z, int64_t base, int64_t n,
            int64_t step)
{
    bool excl = cps_ev_flag(e->n, "exclusive"), rev = cps_ev_flag(e->n, "reverse");
    double f = 0;
    uint64_t u = 0;
    for (int64_t k = 0; k < n; k++) {
        int64_t at = base + (rev ? n - 1 - k : k) * step;
        if (x->f) {
            double next = f + x->f[at];
            next = e->o->fp32 ? (double)(float)next : next;
            z->f[at] = excl ? f : next;
            f = next;
        } else {
            uint64_t next = u + (uint64_t)x->i[at];
            z->i[at] = (int64_t)(excl ? u : next);
            u = next;
        }
    }
}

typedef struct lane {
    const double *f;
    const int64_t *i;
    int64_t bias;
    bool down;
} lane;

static int
compare(const void *pa, const void *pb, void *ctx)
{
    const lane *l = ctx;
    int64_t a = *(const int64_t *)pa, b = *(const int64_t *)pb;
    int r;
    if (l->f) {
        double x = l->f[a], y = l->f[b];
        r = isnan(x) || isnan(y) ? (isnan(x) != 0) - (isnan(y) != 0) : (x > y) - (x < y);
    } else {
        int64_t x = l->i[a] ^ l->bias, y = l->i[b] ^ l->bias;
        r = (x > y) - (x < y);
    }
    r = l->down ? -r : r;
    return r ? r : (a > b) - (a < b); // positions break ties: stable
}

static void
sort_lane(const cps_ev *e, const cps_tensor *x, cps_tensor *out, int64_t base, int64_t n,
          int64_t step, int64_t *order, uint64_t *copy)
{
    const uint64_t *words = cps_ev_words(x);
    for (int64_t k = 0; k < n; k++) {
        order[k] = k;
        copy[k] = words[base + k * step];
    }
    lane l = {.f = x->f ? (const double *)(const void *)copy : NULL,
              .i = (const int64_t *)(const void *)copy,
              .bias = x->type.dtype == CPS_DT_U64 ? INT64_MIN : 0,
              .down = cps_ev_flag(e->n, "descending")};
    qsort_r(order, (size_t)n, sizeof *order, compare, &l);
    for (int64_t k = 0; k < n; k++) {
        cps_ev_words(&out[0])[base + k * step] = copy[order[k]];
        out[1].i[base + k * step] = order[k];
    }
}

bool
cps_ev_scan(cps_ev *e, const cps_tensor *in, cps_tensor *out)
{
    int64_t outer, n, inner;
    around(&in->type, (int)cps_attr_int(e->n->attr, e->n->nattr, "axis", 0), &outer, &n,
           &inner);
    int64_t *order = cps_arena_raw(e->a, (size_t)(n + 1) * 8);
    uint64_t *copy = cps_arena_raw(e->a, (size_t)(n + 1) * 8);
    for (int64_t o = 0; o < outer; o++)
        for (int64_t i = 0; i < inner; i++) {
            if (e->n->op == CPS_OP_SORT)
                sort_lane(e, in, out, o * n * inner + i, n, inner, order, copy);
            else
                cumsum_lane(e, in, out, o * n * inner + i, n, inner);
        }
    return true;
}
