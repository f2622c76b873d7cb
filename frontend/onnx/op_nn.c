/* Contractions, softmax and normalisations in base ops. Softmax and the norms are written in
 * the one form that the raising pass recognises whatever the exporter wrote. */
#include "frontend/onnx/import.h"

#include <inttypes.h>

/* ---- products ---- */

// NumPy's rule for vectors: an operand of rank 1 gains an axis that the result loses.
static cps_val
product(cps_ox *m, cps_val x, cps_val y)
{
    const cps_type tx = *cps_ox_type(m, x), ty = *cps_ox_type(m, y);
    if (!tx.rank || !ty.rank) {
        cps_ox_err(m, CPS_E7009, "a scalar operand");
        return 0;
    }
    if (tx.rank == 1)
        x = cps_ox_reshape(m, x, 2, (int64_t[]){1, tx.dim[0]});
    if (ty.rank == 1)
        y = cps_ox_reshape(m, y, 2, (int64_t[]){ty.dim[0], 1});
    cps_val z = cps_b_matmul(&m->b, x, y);
    if (!z || (tx.rank > 1 && ty.rank > 1))
        return z;
    const cps_type t = *cps_ox_type(m, z);
    int64_t dim[CPS_MAX_RANK];
    int rank = 0;
    for (int i = 0; i < t.rank; i++)
        if (!(tx.rank == 1 && i == t.rank - 2) && !(ty.rank == 1 && i == t.rank - 1))
            dim[rank++] = t.dim[i];
    return cps_ox_reshape(m, z, rank, dim);
}

static cps_val
swap_last(cps_ox *m, cps_val x)
{
    const cps_type *t = x ? cps_ox_type(m, x) : NULL;
    if (!t || t->rank < 2)
        return x;
    int64_t perm[CPS_MAX_RANK];
    for (int i = 0; i < t->rank; i++)
        perm[i] = i;
    perm[t->rank - 1] = t->rank - 2;
    perm[t->rank - 2] = t->rank - 1;
    return cps_b_transpose(&m->b, x, perm);
}

static cps_val
scaled(cps_ox *m, cps_val x, double s)
{
    return s == 1 ? x : cps_ox_bin_s(m, CPS_OP_MUL, x, s);
}

bool
cps_ox_op_matmul(cps_ox *m, const cps_ox_row *r)
{
    (void)r;
    return cps_ox_give(m, 0, product(m, cps_ox_in(m, 0), cps_ox_in(m, 1)));
}

bool
cps_ox_op_fused_matmul(cps_ox *m, const cps_ox_row *r)
{
    (void)r;
    int64_t ta, tb, ba, bb;
    double alpha;
    if (!cps_ox_int(m, "transA", 0, &ta) || !cps_ox_int(m, "transB", 0, &tb) ||
        !cps_ox_int(m, "transBatchA", 0, &ba) || !cps_ox_int(m, "transBatchB", 0, &bb) ||
        !cps_ox_float(m, "alpha", 1, &alpha))
        return false;
    if (ba || bb)
        return cps_ox_err(m, CPS_E7009, "transBatchA and transBatchB are not taken");
    cps_val x = cps_ox_in(m, 0), y = cps_ox_in(m, 1);
    cps_val z = product(m, ta ? swap_last(m, x) : x, tb ? swap_last(m, y) : y);
    return cps_ox_give(m, 0, scaled(m, z, alpha));
}

bool
cps_ox_op_gemm(cps_ox *m, const cps_ox_row *r)
{
    (void)r;
    int64_t ta, tb;
    double alpha, beta;
    if (!cps_ox_int(m, "transA", 0, &ta) || !cps_ox_int(m, "transB", 0, &tb) ||
        !cps_ox_float(m, "alpha", 1, &alpha) || !cps_ox_float(m, "beta", 1, &beta))
        return false;
    cps_val x = cps_ox_in(m, 0), y = cps_ox_in(m, 1), c = cps_ox_in(m, 2);
    if (cps_ox_type(m, x)->rank != 2 || cps_ox_type(m, y)->rank != 2)
        return cps_ox_err(m, CPS_E7009, "operands of rank %d and %d, both must be 2",
                          cps_ox_type(m, x)->rank, cps_ox_type(m, y)->rank);
    cps_val z = product(m, ta ? swap_last(m, x) : x, tb ? swap_last(m, y) : y);
    z = scaled(m, z, alpha);
    if (z && c && beta != 0) {
        const cps_type t = *cps_ox_type(m, z);
        z = cps_ox_bin(m, CPS_OP_ADD, z, scaled(m, c, beta));
        if (z && !cps_type_eq(&t, cps_ox_type(m, z)))
            return cps_ox_err(m, CPS_E7009, "C does not broadcast to the product");
    }
    return cps_ox_give(m, 0, z);
}

/* ---- softmax ---- */

// Before version 13 the operand counted as a matrix: all axes from `axis` on are one row.
static bool
softmax_axes(cps_ox *m, int64_t *axes, int *n)
{
    int rank = cps_ox_type(m, cps_ox_in(m, 0))->rank, axis;
    bool old = m->opset < 13;
    if (!cps_ox_axis(m, "axis", old ? 1 : -1, rank, old, &axis))
        return false;
    *n = old ? rank - axis : 1;
    for (int i = 0; i < *n; i++)
        axes[i] = axis + i;
    return true;
}

bool
cps_ox_op_softmax(cps_ox *m, const cps_ox_row *r)
{
    (void)r;
    int64_t axes[CPS_MAX_RANK];
    int n;
    if (!softmax_axes(m, axes, &n))
        return false;
    cps_val x = cps_ox_in(m, 0);
    cps_val top = n ? cps_b_reduce(&m->b, CPS_OP_RMAX, x, n, axes, true) : x;
    cps_val e = cps_ox_un(m, CPS_OP_EXP, cps_ox_bin(m, CPS_OP_SUB, x, top));
    cps_val s = n ? cps_b_reduce(&m->b, CPS_OP_SUM, e, n, axes, true) : e;
    return cps_ox_give(m, 0, cps_ox_bin(m, CPS_OP_DIV, e, s));
}

bool
cps_ox_op_log_softmax(cps_ox *m, const cps_ox_row *r)
{
    (void)r;
    int64_t axes[CPS_MAX_RANK];
    int n;
    if (!softmax_axes(m, axes, &n))
        return false;
    cps_val x = cps_ox_in(m, 0);
    cps_val top = n ? cps_b_reduce(&m->b, CPS_OP_RMAX, x, n, axes, true) : x;
    cps_val d = cps_ox_bin(m, CPS_OP_SUB, x, top), e = cps_ox_un(m, CPS_OP_EXP, d);
    cps_val s = n ? cps_b_reduce(&m->b, CPS_OP_SUM, e, n, axes, true) : e;
    return cps_ox_give(m, 0, cps_ox_bin(m, CPS_OP_SUB, d, cps_ox_un(m, CPS_OP_LOG, s)));
}

/* ---- normalisations ---- */

typedef struct norm {
    cps_val x, gamma, beta; /* beta may be 0 */
    int axis;
    double eps;
    bool rms;
    cps_val y, mean, inv; /* results; mean 0 for rms */
} norm;

// In fp32 whatever the operand's type (stash_type 1, the only one in use), then back, then
// scaled in the operand's type as the specification says.
static bool
normalise(cps_ox *m, norm *k)
{
    cps_type t = *cps_ox_type(m, k->x);
    int64_t axes[CPS_MAX_RANK];
    int n = t.rank - k->axis;
    for (int i = 0; i < n; i++)
        axes[i] = k->axis + i;
    cps_val d = cps_ox_fp32(m, k->x);
    if (!k->rms) {
        k->mean = cps_b_reduce(&m->b, CPS_OP_MEAN, d, n, axes, true);
        d = cps_ox_bin(m, CPS_OP_SUB, d, k->mean);
    }
    cps_val var =
        cps_b_reduce(&m->b, CPS_OP_MEAN, cps_ox_un(m, CPS_OP_SQUARE, d), n, axes, true);
    k->inv = cps_ox_un(m, CPS_OP_RSQRT, cps_ox_bin_s(m, CPS_OP_ADD, var, k->eps));
    cps_val y = cps_ox_bin(m, CPS_OP_MUL, d, k->inv);
    if (y && t.dtype != CPS_DT_FP32)
        y = cps_b_cast(&m->b, y, t.dtype);
    y = cps_ox_bin(m, CPS_OP_MUL, y, k->gamma);
    if (k->beta)
        y = cps_ox_bin(m, CPS_OP_ADD, y, k->beta);
    if (!y)
        return false;
    if (!cps_type_eq(&t, cps_ox_type(m, y)))
        return cps_ox_err(m, CPS_E7009, "scale or bias does not broadcast to the operand");
    k->y = y;
    return true;
}

static bool
norm_attrs(cps_ox *m, norm *k, double eps)
{
    int64_t stash;
    if (!cps_ox_float(m, "epsilon", eps, &k->eps) || !cps_ox_int(m, "stash_type", 1, &stash))
        return false;
    if (stash != 1)
        return cps_ox_err(m, CPS_E7012, "stash_type %" PRId64 ", only float (1) is taken",
                          stash);
    return true;
}

bool
cps_ox_op_layer_norm(cps_ox *m, const cps_ox_row *r)
{
    (void)r;
    norm k = {.x = cps_ox_in(m, 0), .gamma = cps_ox_in(m, 1), .beta = cps_ox_in(m, 2)};
    return norm_attrs(m, &k, (double)1e-5f) &&
           cps_ox_axis(m, "axis", -1, cps_ox_type(m, k.x)->rank, false, &k.axis) &&
           normalise(m, &k) && cps_ox_give(m, 0, k.y) && cps_ox_give(m, 1, k.mean) &&
           cps_ox_give(m, 2, k.inv);
}

bool
cps_ox_op_rms_norm(cps_ox *m, const cps_ox_row *r)
{
    (void)r;
    norm k = {.x = cps_ox_in(m, 0), .gamma = cps_ox_in(m, 1), .rms = true};
    return norm_attrs(m, &k, (double)1e-5f) &&
           cps_ox_axis(m, "axis", -1, cps_ox_type(m, k.x)->rank, false, &k.axis) &&
           normalise(m, &k) && cps_ox_give(m, 0, k.y) && cps_ox_give(m, 1, k.inv);
}

// The residual sum of a transformer layer and its norm, as ONNX Runtime's optimiser writes it.
static bool
skip_norm(cps_ox *m, bool rms, cps_val beta, cps_val bias)
{
    norm k = {.gamma = cps_ox_in(m, 2), .beta = beta, .rms = rms};
    if (!norm_attrs(m, &k, rms ? (double)1e-6f : (double)1e-12f))
        return false;
    k.x = cps_ox_bin(m, CPS_OP_ADD, cps_ox_in(m, 0), cps_ox_in(m, 1));
    if (bias)
        k.x = cps_ox_bin(m, CPS_OP_ADD, k.x, bias);
    if (!k.x)
        return false;
    if (!cps_ox_type(m, k.x)->rank)
        return cps_ox_err(m, CPS_E7009, "a scalar operand");
    k.axis = cps_ox_type(m, k.x)->rank - 1;
    if (!normalise(m, &k) || !cps_ox_give(m, 0, k.y))
        return false;
    return (rms || cps_ox_give(m, 1, k.mean)) && cps_ox_give(m, 2, k.inv) &&
           cps_ox_give(m, 3, k.x);
}

bool
cps_ox_op_skip_layer_norm(cps_ox *m, const cps_ox_row *r)
{
    (void)r;
    return skip_norm(m, false, cps_ox_in(m, 3), cps_ox_in(m, 4));
}

bool
cps_ox_op_skip_rms_norm(cps_ox *m, const cps_ox_row *r)
{
    (void)r;
    return skip_norm(m, true, 0, cps_ox_in(m, 3));
}
