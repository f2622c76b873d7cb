/* Operators that move elements without changing them, and constants. Shapes, axes and counts
 * are constants by the time they are read: the driver folds arithmetic on shapes after every
 * node. */
#include "frontend/onnx/import.h"

#include <inttypes.h>
#include <math.h>

/* ---- reshapes ---- */

bool
cps_ox_op_reshape(cps_ox *m, const cps_ox_row *r)
{
    (void)r;
    cps_val x = cps_ox_in(m, 0);
    const cps_type t = *cps_ox_type(m, x);
    int64_t allowzero, dim[CPS_MAX_RANK], known = 1, all = cps_type_count(&t);
    cps_i64vec want;
    int hole = -1;
    if (!cps_ox_int(m, "allowzero", 0, &allowzero) || !cps_ox_in_ints(m, 1, "shape", &want))
        return false;
    if (want.n > CPS_MAX_RANK)
        return cps_ox_err(m, CPS_E7002, "a shape of %u axes, tensors have at most %d", want.n,
                          CPS_MAX_RANK);
    for (int i = 0; i < (int)want.n; i++) {
        dim[i] = want.data[i];
        if (dim[i] == 0 && !allowzero) {
            if (i >= t.rank)
                return cps_ox_err(m, CPS_E7009, "axis %d copies an axis that is not there", i);
            dim[i] = t.dim[i];
        }
        if (dim[i] == -1 && hole < 0) {
            hole = i;
            continue;
        }
        if (dim[i] < 0 || __builtin_mul_overflow(known, dim[i], &known) ||
            known > CPS_OX_MAX_COUNT)
            return cps_ox_err(m, CPS_E7009, "the shape asks for %" PRId64 " on axis %d",
                              want.data[i], i);
    }
    if (hole >= 0) {
        if (!known || all % known)
            return cps_ox_err(m, CPS_E7009,
                              "%" PRId64 " elements do not divide into rows of %" PRId64, all,
                              known);
        dim[hole] = all / known;
    } else if (known != all) {
        return cps_ox_err(m, CPS_E7009, "%" PRId64 " elements into a shape of %" PRId64, all,
                          known);
    }
    return cps_ox_give(m, 0, cps_ox_reshape(m, x, (int)want.n, dim));
}

bool
cps_ox_op_flatten(cps_ox *m, const cps_ox_row *r)
{
    (void)r;
    cps_val x = cps_ox_in(m, 0);
    const cps_type t = *cps_ox_type(m, x);
    int axis;
    if (!cps_ox_axis(m, "axis", 1, t.rank, true, &axis))
        return false;
    int64_t dim[2] = {1, 1};
    for (int i = 0; i < t.rank; i++)
        dim[i >= axis] *= t.dim[i];
    return cps_ox_give(m, 0, cps_ox_reshape(m, x, 2, dim));
}

// Axes as attribute (before version 13) or operand.
static bool
axes_of(cps_ox *m, cps_i64vec *axes, bool *given)
{
    if (!cps_ox_ints(m, "axes", axes, given))
        return false;
    if (!cps_ox_given(m, 1))
        return true;
    *given = true;
    return cps_ox_in_ints(m, 1, "axes", axes);
}

bool
cps_ox_op_squeeze(cps_ox *m, const cps_ox_row *r)
{
    (void)r;
    cps_val x = cps_ox_in(m, 0);
    const cps_type t = *cps_ox_type(m, x);
    cps_i64vec axes;
    bool given, mask[CPS_MAX_RANK];
    int64_t dim[CPS_MAX_RANK];
    int n = 0;
    if (!axes_of(m, &axes, &given) || !cps_ox_mask(m, &axes, t.rank, mask))
        return false;
    for (int i = 0; i < t.rank; i++) {
        if (mask[i] && t.dim[i] != 1)
            return cps_ox_err(m, CPS_E7009, "axis %d has %" PRId64 " elements, not one", i,
                              t.dim[i]);
        if (given ? !mask[i] : t.dim[i] != 1)
            dim[n++] = t.dim[i];
    }
    return cps_ox_give(m, 0, cps_ox_reshape(m, x, n, dim));
}

bool
cps_ox_op_unsqueeze(cps_ox *m, const cps_ox_row *r)
{
    (void)r;
    cps_val x = cps_ox_in(m, 0);
    const cps_type t = *cps_ox_type(m, x);
    cps_i64vec axes;
    bool given, mask[CPS_MAX_RANK];
    if (!axes_of(m, &axes, &given))
        return false;
    if (!given)
        return cps_ox_err(m, CPS_E7009, "no axes");
    if (axes.n > (uint32_t)(CPS_MAX_RANK - t.rank))
        return cps_ox_err(m, CPS_E7002, "the result has more than %d axes", CPS_MAX_RANK);
    int rank = t.rank + (int)axes.n;
    if (!cps_ox_mask(m, &axes, rank, mask))
        return false;
    int64_t dim[CPS_MAX_RANK];
    for (int i = 0, k = 0; i < rank; i++)
        dim[i] = mask[i] ? 1 : t.dim[k++];
    return cps_ox_give(m, 0, cps_ox_reshape(m, x, rank, dim));
}

bool
cps_ox_op_transpose(cps_ox *m, const cps_ox_row *r)
{
    (void)r;
    cps_val x = cps_ox_in(m, 0);
    int rank = cps_ox_type(m, x)->rank;
    cps_i64vec perm;
    bool given, mask[CPS_MAX_RANK];
    int64_t p[CPS_MAX_RANK];
    if (!cps_ox_ints(m, "perm", &perm, &given))
        return false;
    if (given && (perm.n != (uint32_t)rank || !cps_ox_mask(m, &perm, rank, mask)))
        return cps_ox_err(m, CPS_E7009, "perm is not a permutation of %d axes", rank);
    bool same = true;
    for (int i = 0; i < rank; i++) {
        p[i] = given ? perm.data[i] + (perm.data[i] < 0 ? rank : 0) : rank - 1 - i;
        same = same && p[i] == i;
    }
    return cps_ox_give(m, 0, same ? x : cps_b_transpose(&m->b, x, p));
}

// DCR takes blocks from the front of the channels, CRD from the back.
bool
cps_ox_op_depth_to_space(cps_ox *m, const cps_ox_row *r)
{
    (void)r;
    static const int64_t perm[2][6] = {{0, 3, 4, 1, 5, 2}, {0, 1, 4, 2, 5, 3}};
    cps_val x = cps_ox_in(m, 0);
    const cps_type t = *cps_ox_type(m, x);
    int64_t b;
    const char *mode;
    if (!cps_ox_int(m, "blocksize", 0, &b) || !cps_ox_str(m, "mode", "DCR", &mode))
        return false;
    bool crd = strcmp(mode, "CRD") == 0;
    if (t.rank != 4 || b < 1 || b > 32768 || t.dim[1] % (b * b))
        return cps_ox_err(m, CPS_E7009, "blocks of %" PRId64 " do not fit the operand", b);
    int64_t c = t.dim[1] / (b * b), h = t.dim[2], w = t.dim[3], n = t.dim[0];
    int64_t dcr[6] = {n, b, b, c, h, w}, crd6[6] = {n, c, b, b, h, w};
    x = cps_b_transpose(&m->b, cps_ox_reshape(m, x, 6, crd ? crd6 : dcr), perm[crd]);
    return cps_ox_give(m, 0, cps_ox_reshape(m, x, 4, (int64_t[]){n, c, h * b, w * b}));
}

bool
cps_ox_op_space_to_depth(cps_ox *m, const cps_ox_row *r)
{
    (void)r;
    cps_val x = cps_ox_in(m, 0);
    const cps_type t = *cps_ox_type(m, x);
    static const int64_t perm[2][6] = {{0, 3, 5, 1, 2, 4}, {0, 1, 3, 5, 2, 4}};
    int64_t b;
    const char *mode;
    if (!cps_ox_int(m, "blocksize", 0, &b) || !cps_ox_str(m, "mode", "DCR", &mode))
        return false;
    if (t.rank != 4 || b < 1 || b > 32768 || t.dim[2] % b || t.dim[3] % b)
        return cps_ox_err(m, CPS_E7009, "blocks of %" PRId64 " do not fit the operand", b);
    int64_t n = t.dim[0], c = t.dim[1], h = t.dim[2] / b, w = t.dim[3] / b;
    x = cps_ox_reshape(m, x, 6, (int64_t[]){n, c, h, b, w, b});
    x = x ? cps_b_transpose(&m->b, x, perm[strcmp(mode, "CRD") == 0]) : 0;
    return cps_ox_give(m, 0, cps_ox_reshape(m, x, 4, (int64_t[]){n, c * b * b, h, w}));
}

/* ---- repetition ---- */

bool
cps_ox_op_expand(cps_ox *m, const cps_ox_row *r)
{
    (void)r;
    cps_val x = cps_ox_in(m, 0);
    const cps_type t = *cps_ox_type(m, x);
    cps_i64vec want;
    if (!cps_ox_in_ints(m, 1, "shape", &want))
        return false;
    int rank = CPS_MAX(t.rank, (int)want.n);
    if (rank > CPS_MAX_RANK)
        return cps_ox_err(m, CPS_E7002, "a shape of %d axes, tensors have at most %d", rank,
                          CPS_MAX_RANK);
    int64_t dim[CPS_MAX_RANK];
    for (int i = 0; i < rank; i++) {
        int64_t a = i < rank - t.rank ? 1 : t.dim[i - (rank - t.rank)];
        int64_t b = i < rank - (int)want.n ? 1 : want.data[i - (rank - (int)want.n)];
        if (a != b && a != 1 && b != 1)
            return cps_ox_err(m, CPS_E7009, "axis %d of %" PRId64 " expanded to %" PRId64, i, a,
                              b);
        dim[i] = a == 1 ? b : a;
    }
    return cps_ox_give(m, 0, cps_ox_broadcast(m, x, rank, dim));
}

// Axis by axis: [pre, d, post] -> [pre, 1, d post] -> [pre, n, d post] -> one axis of n d.
bool
cps_ox_op_tile(cps_ox *m, const cps_ox_row *r)
{
    (void)r;
    cps_val x = cps_ox_in(m, 0);
    cps_type t = *cps_ox_type(m, x);
    cps_i64vec n;
    if (!cps_ox_in_ints(m, 1, "repeats", &n))
        return false;
    if (n.n != (uint32_t)t.rank)
        return cps_ox_err(m, CPS_E7009, "%u repeats for %d axes", n.n, t.rank);
    for (int i = 0; i < t.rank; i++) {
        int64_t k = n.data[i], pre = 1, post = 1;
        if (k == 1)
            continue;
        if (k < 0 || k > CPS_OX_MAX_COUNT)
            return cps_ox_err(m, CPS_E7009, "axis %d repeated %" PRId64 " times", i, k);
        for (int j = 0; j < t.rank; j++)
            *(j < i ? &pre : &post) *= t.dim[j];
        x = cps_ox_reshape(m, x, 3, (int64_t[]){pre, 1, post});
        x = cps_ox_broadcast(m, x, 3, (int64_t[]){pre, k, post});
        if (!x || __builtin_mul_overflow(t.dim[i], k, &t.dim[i]))
            return false;
        x = cps_ox_reshape(m, x, t.rank, t.dim);
    }
    return cps_ox_give(m, 0, x);
}

/* ---- parts ---- */

static int64_t
clamp(int64_t v, int64_t lo, int64_t hi)
{
    return v < lo ? lo : v > hi ? hi : v;
}

// Attributes before version 10, operands since. The limits are those of the specification.
bool
cps_ox_op_slice(cps_ox *m, const cps_ox_row *r)
{
    (void)r;
    cps_val x = cps_ox_in(m, 0);
    const cps_type t = *cps_ox_type(m, x);
    cps_i64vec starts, ends, axes = {0}, steps = {0};
    if (!cps_ox_in_ints(m, 1, "starts", &starts) || !cps_ox_in_ints(m, 2, "ends", &ends) ||
        (cps_ox_given(m, 3) && !cps_ox_in_ints(m, 3, "axes", &axes)) ||
        (cps_ox_given(m, 4) && !cps_ox_in_ints(m, 4, "steps", &steps)))
        return false;
    if (starts.n != ends.n || (axes.n && axes.n != starts.n) ||
        (steps.n && steps.n != starts.n) || (!axes.n && starts.n > (uint32_t)t.rank))
        return cps_ox_err(m, CPS_E7009, "starts, ends, axes and steps differ in length");
    int64_t start[CPS_MAX_RANK], stop[CPS_MAX_RANK], step[CPS_MAX_RANK];
    bool mask[CPS_MAX_RANK];
    if (!cps_ox_mask(m, &axes, t.rank, mask))
        return false;
    for (int i = 0; i < t.rank; i++) {
        start[i] = 0;
        stop[i] = t.dim[i];
        step[i] = 1;
    }
    for (uint32_t i = 0; i < starts.n; i++) {
        int64_t a = axes.n ? axes.data[i] : (int64_t)i, d, s = steps.n ? steps.data[i] : 1;
        a += a < 0 ? t.rank : 0;
        d = t.dim[a];
        if (!s || s == INT64_MIN)
            return cps_ox_err(m, CPS_E7009, "a step of 0");
        if (!d)
            continue;
        int64_t b = starts.data[i] < 0 ? starts.data[i] + d : starts.data[i];
        int64_t e = ends.data[i] < 0 ? ends.data[i] + d : ends.data[i];
        start[a] = s > 0 ? clamp(b, 0, d) : clamp(b, 0, d - 1);
        stop[a] = s > 0 ? clamp(e, start[a], d) : clamp(e, -1, start[a]);
        step[a] = clamp(s, -d, d); // farther than the axis is long takes one element at most
    }
    return cps_ox_give(m, 0, cps_b_slice(&m->b, x, start, stop, step));
}

bool
cps_ox_op_concat(cps_ox *m, const cps_ox_row *r)
{
    (void)r;
    cps_val v[256];
    uint32_t n = m->n->in.n;
    int axis;
    for (uint32_t i = 0; i < n; i++)
        if (!(v[i] = cps_ox_in(m, i)))
            return cps_ox_err(m, CPS_E7009, "operand %u is missing", i);
    if (!cps_ox_attr(m, "axis"))
        return cps_ox_err(m, CPS_E7009, "no axis");
    if (!cps_ox_axis(m, "axis", 0, cps_ox_type(m, v[0])->rank, false, &axis))
        return false;
    return cps_ox_give(m, 0, n == 1 ? v[0] : cps_b_concat(&m->b, (int)n, v, axis));
}

bool
cps_ox_op_split(cps_ox *m, const cps_ox_row *r)
{
    (void)r;
    cps_val x = cps_ox_in(m, 0);
    const cps_type t = *cps_ox_type(m, x);
    cps_i64vec sizes;
    int64_t parts = m->n->out.n, want;
    int axis;
    bool given;
    if (!cps_ox_axis(m, "axis", 0, t.rank, false, &axis) ||
        !cps_ox_ints(m, "split", &sizes, &given) ||
        !cps_ox_int(m, "num_outputs", parts, &want) ||
        (cps_ox_given(m, 1) && !cps_ox_in_ints(m, 1, "split", &sizes)))
        return false;
    given = given || cps_ox_given(m, 1);
    if (given ? sizes.n != parts : want != parts)
        return cps_ox_err(m, CPS_E7009, "%" PRId64 " outputs, %" PRId64 " parts", parts,
                          given ? sizes.n : want);
    // Equal parts, the last one smaller when it does not come out even (version 18).
    int64_t each = cps_ceil_div(t.dim[axis], parts), at = 0;
    if (!given && m->opset < 18 && t.dim[axis] % parts)
        return cps_ox_err(m, CPS_E7009, "%" PRId64 " elements into %" PRId64 " equal parts",
                          t.dim[axis], parts);
    int64_t start[CPS_MAX_RANK] = {0}, stop[CPS_MAX_RANK], step[CPS_MAX_RANK];
    for (int i = 0; i < t.rank; i++) {
        stop[i] = t.dim[i];
        step[i] = 1;
    }
    for (int64_t i = 0; i < parts; i++) {
        int64_t n = given ? sizes.data[i] : CPS_MIN(each, t.dim[axis] - at);
        if (n < 0 || n > t.dim[axis] - at)
            return cps_ox_err(m, CPS_E7009,
                              "part %" PRId64 " of %" PRId64 " elements does not fit", i, n);
        start[axis] = at;
        stop[axis] = at += n;
        if (!cps_ox_give(m, (unsigned)i, cps_b_slice(&m->b, x, start, stop, step)))
            return false;
    }
    return at == t.dim[axis] ||
           cps_ox_err(m, CPS_E7009, "the parts cover %" PRId64 " of %" PRId64 " elements", at,
                      t.dim[axis]);
}

// Negative padding cuts; the rest is constant. Attributes before version 11, operands since.
bool
cps_ox_op_pad(cps_ox *m, const cps_ox_row *r)
{
    (void)r;
    cps_val x = cps_ox_in(m, 0), fill = cps_ox_in(m, 2);
    const cps_type t = *cps_ox_type(m, x);
    const char *mode;
    cps_i64vec pads, axes = {0};
    if (!cps_ox_str(m, "mode", "constant", &mode) || !cps_ox_in_ints(m, 1, "pads", &pads) ||
        (cps_ox_given(m, 3) && !cps_ox_in_ints(m, 3, "axes", &axes)))
        return false;
    if (strcmp(mode, "constant") != 0) {
        cps_ox_err(m, CPS_E7009, "padding by '%s'", mode);
        cps_note(m->d, CPS_NOSPAN, "only constant padding is taken");
        return false;
    }
    bool mask[CPS_MAX_RANK];
    uint32_t n = cps_ox_given(m, 3) ? axes.n : (uint32_t)t.rank;
    if (!cps_ox_mask(m, &axes, t.rank, mask))
        return false;
    if (pads.n != 2 * n)
        return cps_ox_err(m, CPS_E7009, "%u pads for %u axes", pads.n, n);
    int64_t start[CPS_MAX_RANK] = {0}, stop[CPS_MAX_RANK], step[CPS_MAX_RANK];
    int64_t lo[CPS_MAX_RANK] = {0}, hi[CPS_MAX_RANK] = {0};
    bool cut = false;
    for (int i = 0; i < t.rank; i++) {
        stop[i] = t.dim[i];
        step[i] = 1;
    }
    for (uint32_t i = 0; i < n; i++) {
        int64_t a = cps_ox_given(m, 3) ? axes.data[i] : (int64_t)i;
        a += a < 0 ? t.rank : 0;
        int64_t l = pads.data[i], h = pads.data[n + i];
        if (l < -t.dim[a] || h < -t.dim[a] || l + h < -t.dim[a] || l > CPS_OX_MAX_COUNT ||
            h > CPS_OX_MAX_COUNT)
            return cps_ox_err(m, CPS_E7009, "pads %" PRId64 " and %" PRId64 " on axis %" PRId64,
                              l, h, a);
        cut = cut || l < 0 || h < 0;
        start[a] = l < 0 ? -l : 0;
        stop[a] = h < 0 ? t.dim[a] + h : t.dim[a];
        stop[a] = CPS_MAX(stop[a], start[a]);
        lo[a] = CPS_MAX(l, 0);
        hi[a] = CPS_MAX(h, 0);
    }
    int64_t dim[CPS_MAX_RANK];
    for (int i = 0; i < t.rank; i++)
        dim[i] = stop[i] - start[i] + lo[i] + hi[i];
    if (!cps_ox_shape_ok(m, t.rank, dim))
        return false;
    if (cut)
        x = cps_b_slice(&m->b, x, start, stop, step);
    if (fill && cps_type_count(cps_ox_type(m, fill)) != 1)
        return cps_ox_err(m, CPS_E7009, "the value must be a scalar");
    fill = fill ? cps_ox_reshape(m, fill, 0, NULL) : cps_ox_scalar_like(m, x, 0);
    cps_attr a[2] = {cps_a_ints("lo", (uint32_t)t.rank, lo),
                     cps_a_ints("hi", (uint32_t)t.rank, hi)};
    cps_val in[2] = {x, fill};
    return cps_ox_give(m, 0, cps_ox_node(m, CPS_OP_PAD, 2, in, 2, a));
}

/* ---- constants ---- */

bool
cps_ox_op_shape(cps_ox *m, const cps_ox_row *r)
{
    (void)r;
    const cps_type *t = cps_ox_type(m, cps_ox_in(m, 0));
    int64_t start, end;
    if (!cps_ox_int(m, "start", 0, &start) || !cps_ox_int(m, "end", t->rank, &end))
        return false;
    start = clamp(start < 0 ? start + t->rank : start, 0, t->rank);
    end = clamp(end < 0 ? end + t->rank : end, start, t->rank);
    return cps_ox_give(m, 0, cps_b_ints(&m->b, CPS_DT_I64, (int)(end - start), t->dim + start));
}

bool
cps_ox_op_size(cps_ox *m, const cps_ox_row *r)
{
    (void)r;
    int64_t n = cps_type_count(cps_ox_type(m, cps_ox_in(m, 0)));
    cps_val v = cps_b_ints(&m->b, CPS_DT_I64, 1, &n);
    return cps_ox_give(m, 0, cps_ox_reshape(m, v, 0, NULL));
}

static cps_val
scalar_i64(cps_ox *m, int64_t v)
{
    int64_t *p = cps_arena_alloc(m->arena, sizeof *p);
    *p = v;
    return cps_b_const(&m->b, cps_type_make(CPS_DT_I64, 0, NULL), p, NULL);
}

bool
cps_ox_op_constant(cps_ox *m, const cps_ox_row *r)
{
    (void)r;
    const cps_onnx_attr *a;
    cps_i64vec ints;
    double f;
    int64_t i;
    bool given;
    if ((a = cps_ox_attr(m, "value")) && a->t)
        return cps_ox_give(m, 0, cps_ox_tensor(m, a->t, m->n->out.data[0]));
    if (cps_ox_attr(m, "value_float"))
        return cps_ox_float(m, "value_float", 0, &f) &&
               cps_ox_give(m, 0, cps_b_scalar(&m->b, CPS_DT_FP32, f));
    if (cps_ox_attr(m, "value_int"))
        return cps_ox_int(m, "value_int", 0, &i) && cps_ox_give(m, 0, scalar_i64(m, i));
    if (cps_ox_attr(m, "value_ints"))
        return cps_ox_ints(m, "value_ints", &ints, &given) &&
               cps_ox_give(m, 0, cps_b_ints(&m->b, CPS_DT_I64, (int)ints.n, ints.data));
    if ((a = cps_ox_attr(m, "value_floats")) && a->type == CPS_ONNX_A_FLOATS) {
        const void *p =
            a->floats.n ? (const void *)a->floats.data : cps_arena_alloc(m->arena, 4);
        cps_type t = cps_type_make(CPS_DT_FP32, 1, &(int64_t){a->floats.n});
        return cps_ox_give(m, 0, cps_b_const(&m->b, t, p, NULL));
    }
    return cps_ox_err(m, CPS_E7012, "a constant that is not a dense tensor of numbers");
}

bool
cps_ox_op_constant_of_shape(cps_ox *m, const cps_ox_row *r)
{
    (void)r;
    cps_i64vec dim;
    if (!cps_ox_in_ints(m, 0, "shape", &dim))
        return false;
    const cps_onnx_attr *a = cps_ox_attr(m, "value");
    if (a && !a->t)
        return cps_ox_err(m, CPS_E7009, "attribute 'value' is not a tensor");
    cps_val v = a ? cps_ox_tensor(m, a->t, NULL) : cps_b_scalar(&m->b, CPS_DT_FP32, 0);
    if (!v)
        return false;
    if (cps_type_count(cps_ox_type(m, v)) != 1)
        return cps_ox_err(m, CPS_E7009, "attribute 'value' must have one element");
    v = cps_ox_reshape(m, v, 0, NULL);
    return cps_ox_give(m, 0, cps_ox_broadcast(m, v, (int)dim.n, dim.data));
}

// Computed here, exactly: in int64 for integers, start + i * delta in binary64 for floats.
bool
cps_ox_op_range(cps_ox *m, const cps_ox_row *r)
{
    (void)r;
    cps_dtype dt = cps_ox_type(m, cps_ox_in(m, 0))->dtype;
    double f[3];
    int64_t v[3] = {0}, n;
    for (unsigned i = 0; i < 3; i++) {
        static const char *const what[3] = {"start", "limit", "delta"};
        const cps_const *c = cps_ox_const(m, cps_ox_in(m, i));
        if (!cps_ox_in_scalar(m, i, what[i], &f[i]))
            return false;
        if (cps_ox_type(m, cps_ox_in(m, i))->dtype != dt)
            return cps_ox_err(m, CPS_E7009, "start, limit and delta differ in type");
        if (cps_dtype_is_int(dt))
            v[i] = cps_to_i64(dt, c->data);
    }
    double count = ceil((f[1] - f[0]) / f[2]);
    if (!(fabs(count) < 1 << 24))
        return cps_ox_err(m, CPS_E7009, "from %g to %g by %g is no range", f[0], f[1], f[2]);
    n = (int64_t)CPS_MAX(count, 0);
    unsigned size = cps_dtype_bytes(dt);
    uint8_t *p = cps_arena_alloc(m->arena, (size_t)CPS_MAX(n, 1) * size);
    for (int64_t i = 0; i < n; i++)
        if (cps_dtype_is_int(dt))
            cps_from_i64(dt, p + (size_t)i * size,
                         (int64_t)((uint64_t)v[0] + (uint64_t)i * (uint64_t)v[2]));
        else
            cps_from_f64(dt, p + (size_t)i * size, f[0] + (double)i * f[2]);
    return cps_ox_give(m, 0, cps_b_const(&m->b, cps_type_make(dt, 1, &n), p, NULL));
}
