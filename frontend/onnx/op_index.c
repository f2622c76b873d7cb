/* Gathers, scans, orderings, and masks made of positions. */
#include "frontend/onnx/import.h"

#include <inttypes.h>

// Positions along `axis` of a tensor of shape `dim`, as i64.
static cps_val
positions(cps_ox *m, int rank, const int64_t *dim, int axis)
{
    if (!cps_ox_shape_ok(m, rank, dim))
        return 0;
    cps_attr a[3] = {cps_a_ints("shape", (uint32_t)rank, dim), cps_a_int("axis", axis),
                     cps_a_dtype("dtype", CPS_DT_I64)};
    return cps_ox_node(m, CPS_OP_INDEX, 0, NULL, 3, a);
}

bool
cps_ox_op_gather(cps_ox *m, const cps_ox_row *r)
{
    cps_val in[2] = {cps_ox_in(m, 0), cps_ox_in(m, 1)};
    int axis;
    if (!cps_ox_axis(m, "axis", 0, cps_ox_type(m, in[0])->rank, false, &axis))
        return false;
    cps_attr a = cps_a_int("axis", axis);
    return cps_ox_give(m, 0, cps_ox_node(m, r->base, 2, in, 1, &a));
}

bool
cps_ox_op_cumsum(cps_ox *m, const cps_ox_row *r)
{
    cps_val x = cps_ox_in(m, 0);
    double at;
    int64_t exclusive, reverse;
    int axis;
    if (!cps_ox_in_scalar(m, 1, "axis", &at) ||
        !cps_ox_fix_axis(m, (int64_t)CPS_MAX(CPS_MIN(at, 100), -100), cps_ox_type(m, x)->rank,
                         &axis) ||
        !cps_ox_int(m, "exclusive", 0, &exclusive) || !cps_ox_int(m, "reverse", 0, &reverse))
        return false;
    cps_attr a[3] = {cps_a_int("axis", axis), cps_a_bool("exclusive", exclusive != 0),
                     cps_a_bool("reverse", reverse != 0)};
    return cps_ox_give(m, 0, cps_ox_node(m, r->base, 1, &x, 3, a));
}

// The first `n` along `axis`.
static cps_val
head(cps_ox *m, cps_val x, int axis, int64_t n)
{
    if (!x)
        return 0;
    const cps_type *t = cps_ox_type(m, x);
    int64_t start[CPS_MAX_RANK] = {0}, stop[CPS_MAX_RANK], step[CPS_MAX_RANK];
    for (int i = 0; i < t->rank; i++) {
        stop[i] = i == axis ? n : t->dim[i];
        step[i] = 1;
    }
    return cps_b_slice(&m->b, x, start, stop, step);
}

bool
cps_ox_op_topk(cps_ox *m, const cps_ox_row *r)
{
    cps_val x = cps_ox_in(m, 0), out[2];
    cps_i64vec k;
    int64_t largest, sorted;
    int axis;
    if (!cps_ox_axis(m, "axis", -1, cps_ox_type(m, x)->rank, false, &axis) ||
        !cps_ox_int(m, "largest", 1, &largest) || !cps_ox_int(m, "sorted", 1, &sorted) ||
        !cps_ox_in_ints(m, 1, "k", &k))
        return false;
    int64_t have = cps_ox_type(m, x)->dim[axis];
    if (k.n != 1 || k.data[0] < 0 || k.data[0] > have)
        return cps_ox_err(m, CPS_E7009, "k must be one number from 0 to %" PRId64, have);
    cps_attr a[2] = {cps_a_int("axis", axis), cps_a_bool("descending", largest != 0)};
    if (!cps_b_node(&m->b, r->base, 1, &x, 2, a, out))
        return false;
    return cps_ox_give(m, 0, head(m, out[0], axis, k.data[0])) &&
           cps_ox_give(m, 1, head(m, out[1], axis, k.data[0]));
}

// The position of the first (or last) element equal to the extremum. A row that holds NaN gives
// its last position: ONNX leaves that open.
bool
cps_ox_op_arg(cps_ox *m, const cps_ox_row *r)
{
    cps_val x = cps_ox_in(m, 0);
    const cps_type t = *cps_ox_type(m, x);
    int64_t keep, last, at[1];
    int axis;
    if (!cps_ox_axis(m, "axis", 0, t.rank, false, &axis) ||
        !cps_ox_int(m, "keepdims", 1, &keep) || !cps_ox_int(m, "select_last_index", 0, &last))
        return false;
    if (!t.dim[axis])
        return cps_ox_err(m, CPS_E7009, "axis %d has no elements", axis);
    at[0] = axis;
    bool max = strcmp(r->pub.name, "ArgMax") == 0;
    cps_val top = cps_b_reduce(&m->b, max ? CPS_OP_RMAX : CPS_OP_RMIN, x, 1, at, true);
    cps_val hit = cps_ox_bin(m, CPS_OP_EQ, x, top);
    cps_val pos = positions(m, t.rank, t.dim, axis);
    cps_val none = cps_b_scalar(&m->b, CPS_DT_I64, last ? 0 : (double)(t.dim[axis] - 1));
    cps_val p = cps_b_select(&m->b, hit, pos, none);
    return cps_ox_give(
        m, 0, cps_b_reduce(&m->b, last ? CPS_OP_RMAX : CPS_OP_RMIN, p, 1, at, keep != 0));
}

bool
cps_ox_op_trilu(cps_ox *m, const cps_ox_row *r)
{
    (void)r;
    cps_val x = cps_ox_in(m, 0);
    const cps_type t = *cps_ox_type(m, x);
    int64_t upper;
    double k = 0;
    if (!cps_ox_int(m, "upper", 1, &upper) ||
        (cps_ox_given(m, 1) && !cps_ox_in_scalar(m, 1, "k", &k)))
        return false;
    if (t.rank < 2)
        return cps_ox_err(m, CPS_E7009, "an operand of rank %d, at least 2 is needed", t.rank);
    const int64_t *last = &t.dim[t.rank - 2];
    cps_val d = cps_ox_bin(m, CPS_OP_SUB, positions(m, 2, last, 1), positions(m, 2, last, 0));
    cps_val c = cps_ox_bin_s(m, upper ? CPS_OP_GE : CPS_OP_LE, d, k);
    return cps_ox_give(m, 0, cps_b_select(&m->b, c, x, cps_ox_scalar_like(m, x, 0)));
}

bool
cps_ox_op_one_hot(cps_ox *m, const cps_ox_row *r)
{
    (void)r;
    cps_val x = cps_ox_in(m, 0), values = cps_ox_in(m, 2);
    double depth;
    int axis;
    int rank = cps_ox_type(m, x)->rank;
    if (!cps_ox_in_scalar(m, 1, "depth", &depth) ||
        !cps_ox_axis(m, "axis", -1, rank + 1, false, &axis))
        return false;
    if (!(depth >= 1 && depth <= 1e9))
        return cps_ox_err(m, CPS_E7009, "a depth of %g", depth);
    if (cps_ox_type(m, values)->rank != 1 || cps_ox_type(m, values)->dim[0] != 2)
        return cps_ox_err(m, CPS_E7009, "values must be [off, on]");
    if (rank == CPS_MAX_RANK)
        return cps_ox_err(m, CPS_E7002, "the result has more than %d axes", CPS_MAX_RANK);
    if (cps_ox_type(m, x)->dtype != CPS_DT_I64)
        x = cps_b_cast(&m->b, x, CPS_DT_I64);
    // A negative index counts from the end; what is out of range matches nothing.
    cps_val low = cps_ox_bin_s(m, CPS_OP_LT, x, 0);
    x = cps_b_select(&m->b, low, cps_ox_bin_s(m, CPS_OP_ADD, x, depth), x);
    int64_t dim[CPS_MAX_RANK], one[CPS_MAX_RANK];
    for (int i = 0, k = 0; i <= rank; i++) {
        dim[i] = i == axis ? 1 : cps_ox_type(m, cps_ox_in(m, 0))->dim[k++];
        one[i] = i == axis ? (int64_t)depth : 1;
    }
    cps_val hit = cps_ox_bin(m, CPS_OP_EQ, cps_ox_reshape(m, x, rank + 1, dim),
                             positions(m, rank + 1, one, axis));
    cps_val off = cps_ox_reshape(m, head(m, values, 0, 1), 0, NULL);
    cps_val on = cps_b_slice(&m->b, values, (int64_t[]){1}, (int64_t[]){2}, (int64_t[]){1});
    return cps_ox_give(m, 0, cps_b_select(&m->b, hit, cps_ox_reshape(m, on, 0, NULL), off));
}

bool
cps_ox_op_eye_like(cps_ox *m, const cps_ox_row *r)
{
    (void)r;
    const cps_type t = *cps_ox_type(m, cps_ox_in(m, 0));
    int64_t k, to;
    if (!cps_ox_int(m, "k", 0, &k) || !cps_ox_int(m, "dtype", 0, &to))
        return false;
    cps_dtype dt = !to                   ? t.dtype
                   : to > 0 && to < 1000 ? cps_ox_dtype((int32_t)to)
                                         : CPS_DT_NONE;
    if (dt == CPS_DT_NONE || t.rank != 2 || k < -INT32_MAX || k > INT32_MAX)
        return cps_ox_err(m, CPS_E7009, "the operand must be a matrix, the dtype known");
    cps_val d = cps_ox_bin(m, CPS_OP_SUB, positions(m, 2, t.dim, 1), positions(m, 2, t.dim, 0));
    cps_val c = cps_ox_bin_s(m, CPS_OP_EQ, d, (double)k);
    return cps_ox_give(m, 0, dt == CPS_DT_BOOL ? c : cps_b_cast(&m->b, c, dt));
}
