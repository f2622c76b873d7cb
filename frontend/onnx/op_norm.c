/* Normalisations of convolutional models: over batches (with given statistics), instances and
 * groups, and by a norm. Channels are axis 1; vectors of them are reshaped to broadcast. */
#include "frontend/onnx/import.h"

#include <inttypes.h>

// A vector of channels as [1, C, 1, ...] of the given rank.
static cps_val
channels(cps_ox *m, cps_val v, int rank, int64_t count)
{
    const cps_type *t = v ? cps_ox_type(m, v) : NULL;
    if (!t || t->rank != 1 || t->dim[0] != count) {
        cps_ox_err(m, CPS_E7009, "scale, bias and statistics must be vectors of %" PRId64,
                   count);
        return 0;
    }
    int64_t dim[CPS_MAX_RANK];
    for (int i = 0; i < rank; i++)
        dim[i] = i == 1 ? count : 1;
    return cps_ox_reshape(m, v, rank, dim);
}

bool
cps_ox_op_batch_norm(cps_ox *m, const cps_ox_row *r)
{
    (void)r;
    cps_val x = cps_ox_in(m, 0), v[4];
    const cps_type t = *cps_ox_type(m, x);
    double eps;
    int64_t training;
    if (!cps_ox_float(m, "epsilon", (double)1e-5f, &eps) ||
        !cps_ox_int(m, "training_mode", 0, &training))
        return false;
    if (training || t.rank < 2)
        return cps_ox_err(m, CPS_E7009, "training_mode is set, or the operand has no channels");
    for (unsigned i = 0; i < 4; i++)
        if (!(v[i] = channels(m, cps_ox_in(m, i + 1), t.rank, t.dim[1])))
            return false;
    // In fp32, as the statistics may have another type than x.
    cps_val inv = cps_ox_bin_s(m, CPS_OP_ADD, cps_ox_fp32(m, v[3]), eps);
    inv = cps_ox_un(m, CPS_OP_RSQRT, inv);
    cps_val y = cps_ox_bin(m, CPS_OP_SUB, cps_ox_fp32(m, x), cps_ox_fp32(m, v[2]));
    y = cps_ox_bin(m, CPS_OP_MUL, y, cps_ox_bin(m, CPS_OP_MUL, inv, cps_ox_fp32(m, v[0])));
    y = cps_ox_bin(m, CPS_OP_ADD, y, cps_ox_fp32(m, v[1]));
    if (y && t.dtype != CPS_DT_FP32)
        y = cps_b_cast(&m->b, y, t.dtype);
    return cps_ox_give(m, 0, y);
}

// Rows of x [N, groups, rest], normalised in fp32.
static cps_val
normalised(cps_ox *m, cps_val x, int64_t groups, double eps)
{
    const cps_type t = *cps_ox_type(m, x);
    int64_t dim[3] = {t.dim[0], groups, 1}, axis = 2;
    for (int i = 1; i < t.rank; i++)
        dim[2] *= t.dim[i];
    dim[2] /= groups;
    cps_val d = cps_ox_fp32(m, cps_ox_reshape(m, x, 3, dim));
    d = cps_ox_bin(m, CPS_OP_SUB, d, cps_b_reduce(&m->b, CPS_OP_MEAN, d, 1, &axis, true));
    cps_val var =
        cps_b_reduce(&m->b, CPS_OP_MEAN, cps_ox_un(m, CPS_OP_SQUARE, d), 1, &axis, true);
    cps_val y = cps_ox_bin(m, CPS_OP_MUL, d,
                           cps_ox_un(m, CPS_OP_RSQRT, cps_ox_bin_s(m, CPS_OP_ADD, var, eps)));
    if (y && t.dtype != CPS_DT_FP32)
        y = cps_b_cast(&m->b, y, t.dtype);
    return cps_ox_reshape(m, y, t.rank, t.dim);
}

static bool
by_groups(cps_ox *m, int64_t groups)
{
    cps_val x = cps_ox_in(m, 0);
    const cps_type t = *cps_ox_type(m, x);
    double eps;
    if (!cps_ox_float(m, "epsilon", (double)1e-5f, &eps))
        return false;
    if (t.rank < 3 || groups < 1 || !t.dim[1] || t.dim[1] % groups)
        return cps_ox_err(m, CPS_E7009, "the channels do not divide into %" PRId64 " groups",
                          groups);
    cps_val scale = channels(m, cps_ox_in(m, 1), t.rank, t.dim[1]);
    cps_val bias = scale ? channels(m, cps_ox_in(m, 2), t.rank, t.dim[1]) : 0;
    if (!bias)
        return false;
    cps_val y = cps_ox_bin(m, CPS_OP_MUL, normalised(m, x, groups, eps), scale);
    return cps_ox_give(m, 0, cps_ox_bin(m, CPS_OP_ADD, y, bias));
}

bool
cps_ox_op_instance_norm(cps_ox *m, const cps_ox_row *r)
{
    (void)r;
    const cps_type *t = cps_ox_type(m, cps_ox_in(m, 0));
    return by_groups(m, t->rank > 1 ? t->dim[1] : 0);
}

bool
cps_ox_op_group_norm(cps_ox *m, const cps_ox_row *r)
{
    (void)r;
    int64_t groups;
    return cps_ox_int(m, "num_groups", 0, &groups) && by_groups(m, groups);
}

// x / norm(x) along an axis; a row of zeros stays one.
bool
cps_ox_op_lp_norm(cps_ox *m, const cps_ox_row *r)
{
    (void)r;
    cps_val x = cps_ox_in(m, 0);
    int64_t p, at[1];
    int axis;
    if (!cps_ox_int(m, "p", 2, &p) ||
        !cps_ox_axis(m, "axis", -1, cps_ox_type(m, x)->rank, false, &axis))
        return false;
    if (p != 1 && p != 2)
        return cps_ox_err(m, CPS_E7009, "p is %" PRId64 ", not 1 or 2", p);
    at[0] = axis;
    cps_val s = cps_ox_un(m, p == 1 ? CPS_OP_ABS : CPS_OP_SQUARE, x);
    s = cps_b_reduce(&m->b, CPS_OP_SUM, s, 1, at, true);
    s = p == 1 ? s : cps_ox_un(m, CPS_OP_SQRT, s);
    cps_val zero = cps_ox_bin_s(m, CPS_OP_EQ, s, 0);
    s = cps_b_select(&m->b, zero, cps_ox_scalar_like(m, s, 1), s);
    return cps_ox_give(m, 0, cps_ox_bin(m, CPS_OP_DIV, x, s));
}
