/* Ops of the reference evaluator that move elements and compute nothing: reshapes, slices,
 * joins, gathers and scatters, on raw 8-byte words. Indices are checked against their axis. */
#include "ir/eval.h"

#define GRAIN 32768

/* ---- strided copies ---- */

typedef struct move {
    cps_ev_walk w;
    const uint64_t *x;
    uint64_t *z;
} move;

static void
move_piece(void *ctx, int64_t lo, int64_t hi)
{
    const move *m = ctx;
    int64_t s = m->w.stride[0][m->w.rank - 1];
    for (int64_t at = lo, n; at < hi; at += n) {
        int64_t off[3];
        n = CPS_MIN(cps_ev_walk_at(&m->w, at, off), hi - at);
        const uint64_t *x = m->x + off[0];
        if (s == 1)
            memcpy(m->z + at, x, (size_t)n * 8);
        else
            for (int64_t i = 0; i < n; i++)
                m->z[at + i] = x[i * s];
    }
}

// z, dense of type t, = x read with the strides given.
static void
strided(const cps_ev *e, const cps_type *t, int64_t stride[1][CPS_MAX_RANK], const uint64_t *x,
        uint64_t *z)
{
    move m = {.x = x, .z = z};
    cps_ev_walk_init(&m.w, t, 1, stride);
    cps_ev_parallel(e->o->threads, cps_type_count(t), GRAIN, move_piece, &m);
}

static void
dense(const cps_type *t, int64_t stride[CPS_MAX_RANK])
{
    int64_t s = 1;
    for (int i = t->rank - 1; i >= 0; i--) {
        stride[i] = s;
        s *= t->dim[i];
    }
}

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

static int
axis_of(const cps_node *n)
{
    return (int)cps_attr_int(n->attr, n->nattr, "axis", 0);
}

static void
concat(const cps_ev *e, const cps_tensor *in, cps_tensor *out)
{
    int64_t outer, n, inner, at = 0;
    around(&out->type, axis_of(e->n), &outer, &n, &inner);
    for (int k = 0; k < e->n->nin; k++) {
        int64_t len = in[k].type.dim[axis_of(e->n)] * inner;
        for (int64_t o = 0; o < outer && len; o++)
            memcpy(cps_ev_words(out) + o * n * inner + at, cps_ev_words(&in[k]) + o * len,
                   (size_t)len * 8);
        at += len;
    }
}

static void
pad(const cps_ev *e, const cps_tensor *in, cps_tensor *out)
{
    const cps_attr *lo = cps_node_attr(e->n, "lo");
    const cps_type *t = &in->type;
    uint64_t *z = cps_ev_words(out), value = cps_ev_words(&in[1])[0];
    int64_t total = cps_type_count(&out->type), count = cps_type_count(t);
    int64_t st[CPS_MAX_RANK], base = 0;
    for (int64_t i = 0; i < total; i++)
        z[i] = value;
    dense(&out->type, st);
    for (int i = 0; i < t->rank; i++)
        base += lo->ints[i] * st[i];
    int64_t row = t->rank ? t->dim[t->rank - 1] : 1;
    for (int64_t at = 0; at < count; at += row) {
        int64_t rest = at / row, off = base;
        for (int i = t->rank - 2; i >= 0; i--) {
            off += rest % t->dim[i] * st[i];
            rest /= t->dim[i];
        }
        memcpy(z + off, cps_ev_words(in) + at, (size_t)row * 8);
    }
}

static void
repeat(const cps_ev *e, const cps_tensor *in, cps_tensor *out)
{
    int64_t outer, n, inner, times = cps_attr_int(e->n->attr, e->n->nattr, "n", 1);
    around(&in->type, axis_of(e->n), &outer, &n, &inner);
    uint64_t *z = cps_ev_words(out);
    for (int64_t o = 0; o < outer * n; o++)
        for (int64_t k = 0; k < times; k++, z += inner)
            memcpy(z, cps_ev_words(in) + o * inner, (size_t)inner * 8);
}

bool
cps_ev_shape(cps_ev *e, const cps_tensor *in, cps_tensor *out)
{
    int64_t stride[1][CPS_MAX_RANK] = {{0}}, st[CPS_MAX_RANK];
    const cps_type *t = &in->type;
    const uint64_t *x = cps_ev_words(in);
    dense(t, st);
    switch (e->n->op) {
    case CPS_OP_CONCAT:
        concat(e, in, out);
        return true;
    case CPS_OP_PAD:
        pad(e, in, out);
        return true;
    case CPS_OP_REPEAT:
        repeat(e, in, out);
        return true;
    case CPS_OP_RESHAPE:
        memcpy(cps_ev_words(out), x, (size_t)cps_type_count(t) * 8);
        return true;
    case CPS_OP_TRANSPOSE: {
        const int64_t *perm = cps_node_attr(e->n, "perm")->ints;
        for (int i = 0; i < t->rank; i++)
            stride[0][i] = st[perm[i]];
        break;
    }
    case CPS_OP_BROADCAST:
        cps_ev_strides(t, &out->type, stride[0]);
        break;
    case CPS_OP_SLICE: {
        const int64_t *start = cps_node_attr(e->n, "start")->ints;
        const int64_t *step = cps_node_attr(e->n, "step")->ints;
        if (cps_type_count(&out->type) == 0)
            return true;
        for (int i = 0; i < t->rank; i++) {
            // One element needs no step, and its product could overflow.
            stride[0][i] = out->type.dim[i] > 1 ? st[i] * step[i] : 0;
            x += start[i] * st[i];
        }
        break;
    }
    default:
        cps_bug("'%s' is no shape op", cps_ops[e->n->op].name);
    }
    strided(e, &out->type, stride, x, cps_ev_words(out));
    return true;
}

/* ---- indices ---- */

static void
positions(const cps_ev *e, cps_tensor *out)
{
    int64_t outer, n, inner, at = 0;
    around(&out->type, axis_of(e->n), &outer, &n, &inner);
    for (int64_t o = 0; o < outer; o++)
        for (int64_t k = 0; k < n; k++)
            for (int64_t i = 0; i < inner; i++, at++) {
                if (out->f)
                    out->f[at] = (double)k;
                else
                    out->i[at] = k;
            }
}

// The index as a position on an axis of n; false after a diagnostic.
static bool
position(const cps_ev *e, const cps_tensor *ix, int64_t k, int64_t n, int64_t *at)
{
    int64_t v = ix->i[k];
    bool huge = ix->type.dtype == CPS_DT_U64 && v < 0;
    *at = v < 0 ? v + n : v;
    if (huge || *at < 0 || *at >= n)
        return cps_ev_fail(e,
                           huge ? "index %llu (element %lld) is outside an axis of %lld"
                                : "index %lld (element %lld) is outside an axis of %lld",
                           (long long)v, (long long)k, (long long)n);
    return true;
}

static bool
gather(const cps_ev *e, const cps_tensor *in, cps_tensor *out)
{
    int64_t outer, n, inner, at, count = cps_type_count(&in[1].type);
    around(&in->type, axis_of(e->n), &outer, &n, &inner);
    for (int64_t k = 0; k < count; k++) {
        if (!position(e, &in[1], k, n, &at))
            return false;
        for (int64_t o = 0; o < outer; o++)
            memcpy(cps_ev_words(out) + (o * count + k) * inner,
                   cps_ev_words(in) + (o * n + at) * inner, (size_t)inner * 8);
    }
    return true;
}

static bool
gather_elements(const cps_ev *e, const cps_tensor *in, cps_tensor *out)
{
    int64_t st[CPS_MAX_RANK], count = cps_type_count(&in[1].type);
    const cps_type *t = &in->type, *it = &in[1].type;
    int axis = axis_of(e->n);
    dense(t, st);
    for (int64_t k = 0; k < count; k++) {
        int64_t at, off = 0, rest = k;
        if (!position(e, &in[1], k, t->dim[axis], &at))
            return false;
        for (int i = it->rank - 1; i >= 0; i--) {
            off += (i == axis ? at : rest % it->dim[i]) * st[i];
            rest /= it->dim[i];
        }
        cps_ev_words(out)[k] = cps_ev_words(in)[off];
    }
    return true;
}

static void
put_slice(const cps_ev *e, cps_tensor *out, int64_t to, const cps_tensor *u, int64_t from,
          int64_t n, bool add)
{
    if (!add)
        memcpy(cps_ev_words(out) + to, cps_ev_words(u) + from, (size_t)n * 8);
    else if (!out->f)
        for (int64_t i = 0; i < n; i++)
            out->i[to + i] = (int64_t)((uint64_t)out->i[to + i] + (uint64_t)u->i[from + i]);
    else if (e->o->fp32)
        for (int64_t i = 0; i < n; i++)
            out->f[to + i] = (double)(float)(out->f[to + i] + u->f[from + i]);
    else
        for (int64_t i = 0; i < n; i++)
            out->f[to + i] += u->f[from + i];
}

static bool
scatter(const cps_ev *e, const cps_tensor *in, cps_tensor *out)
{
    int64_t outer, n, inner, at, count = cps_type_count(&in[1].type);
    bool add = cps_ev_flag(e->n, "add");
    around(&in->type, axis_of(e->n), &outer, &n, &inner);
    memcpy(cps_ev_words(out), cps_ev_words(in), (size_t)cps_type_count(&in->type) * 8);
    for (int64_t k = 0; k < count; k++) {
        if (in[1].i[k] < 0 && in[1].type.dtype != CPS_DT_U64)
            continue; // skipped by definition
        if (!position(e, &in[1], k, n, &at))
            return false;
        for (int64_t o = 0; o < outer; o++)
            put_slice(e, out, (o * n + at) * inner, &in[2], (o * count + k) * inner, inner,
                      add);
    }
    return true;
}

bool
cps_ev_index(cps_ev *e, const cps_tensor *in, cps_tensor *out)
{
    switch (e->n->op) {
    case CPS_OP_GATHER:
        return gather(e, in, out);
    case CPS_OP_GATHER_ELEMS:
        return gather_elements(e, in, out);
    case CPS_OP_SCATTER:
        return scatter(e, in, out);
    default:
        positions(e, out);
        return true;
    }
}
