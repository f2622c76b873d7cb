/* Reductions. Axes are an attribute in old operator sets and an operand in new ones (ReduceSum
 * since 13, the others since 18); the reader takes whichever is there. */
#include "frontend/onnx/import.h"

typedef struct reduction {
    cps_val x;
    int n; /* 0: nothing to reduce */
    int64_t axes[CPS_MAX_RANK];
    bool keep, noop;
} reduction;

static bool
read(cps_ox *m, reduction *k)
{
    int64_t keep, noop;
    cps_i64vec axes = {0};
    bool given;
    if (!cps_ox_int(m, "keepdims", 1, &keep) ||
        !cps_ox_int(m, "noop_with_empty_axes", 0, &noop) ||
        !cps_ox_ints(m, "axes", &axes, &given))
        return false;
    if (cps_ox_given(m, 1) && !cps_ox_in_ints(m, 1, "axes", &axes))
        return false;
    k->x = cps_ox_in(m, 0);
    k->keep = keep != 0;
    int rank = cps_ox_type(m, k->x)->rank;
    bool mask[CPS_MAX_RANK];
    if (!cps_ox_mask(m, &axes, rank, mask))
        return false;
    k->noop = !axes.n && noop;
    for (int i = 0; i < rank; i++)
        if (mask[i] || (!axes.n && !noop))
            k->axes[k->n++] = i;
    return true;
}

static cps_val
reduce(cps_ox *m, const reduction *k, cps_op op, cps_val x, bool keep)
{
    return k->n ? cps_b_reduce(&m->b, op, x, k->n, k->axes, keep) : x;
}

bool
cps_ox_op_reduce(cps_ox *m, const cps_ox_row *r)
{
    reduction k = {0};
    return read(m, &k) && cps_ox_give(m, 0, reduce(m, &k, r->base, k.x, k.keep));
}

bool
cps_ox_op_reduce_l1(cps_ox *m, const cps_ox_row *r)
{
    reduction k = {0};
    if (!read(m, &k))
        return false;
    cps_val x = k.noop ? k.x : cps_ox_un(m, CPS_OP_ABS, k.x);
    return cps_ox_give(m, 0, reduce(m, &k, r->base, x, k.keep));
}

bool
cps_ox_op_reduce_l2(cps_ox *m, const cps_ox_row *r)
{
    reduction k = {0};
    if (!read(m, &k))
        return false;
    if (k.noop)
        return cps_ox_give(m, 0, k.x);
    cps_val s = reduce(m, &k, r->base, cps_ox_un(m, CPS_OP_SQUARE, k.x), k.keep);
    return cps_ox_give(m, 0, cps_ox_un(m, CPS_OP_SQRT, s));
}

bool
cps_ox_op_reduce_sq(cps_ox *m, const cps_ox_row *r)
{
    reduction k = {0};
    if (!read(m, &k))
        return false;
    cps_val x = k.noop ? k.x : cps_ox_un(m, CPS_OP_SQUARE, k.x);
    return cps_ox_give(m, 0, reduce(m, &k, r->base, x, k.keep));
}

// log(sum(exp(x - top))) + top, so that large operands do not overflow.
bool
cps_ox_op_reduce_lse(cps_ox *m, const cps_ox_row *r)
{
    reduction k = {0};
    if (!read(m, &k))
        return false;
    if (k.noop)
        return cps_ox_give(m, 0, k.x);
    cps_val top = reduce(m, &k, CPS_OP_RMAX, k.x, true);
    cps_val e = cps_ox_un(m, CPS_OP_EXP, cps_ox_bin(m, CPS_OP_SUB, k.x, top));
    cps_val y = cps_ox_un(m, CPS_OP_LOG, reduce(m, &k, r->base, e, k.keep));
    cps_val flat =
        k.keep || !y ? top
                     : cps_ox_reshape(m, top, cps_ox_type(m, y)->rank, cps_ox_type(m, y)->dim);
    return cps_ox_give(m, 0, cps_ox_bin(m, CPS_OP_ADD, y, flat));
}

bool
cps_ox_op_reduce_log_sum(cps_ox *m, const cps_ox_row *r)
{
    reduction k = {0};
    if (!read(m, &k))
        return false;
    cps_val s = reduce(m, &k, r->base, k.x, k.keep);
    return cps_ox_give(m, 0, k.noop ? k.x : cps_ox_un(m, CPS_OP_LOG, s));
}

bool
cps_ox_op_global_pool(cps_ox *m, const cps_ox_row *r)
{
    reduction k = {.x = cps_ox_in(m, 0)};
    int rank = cps_ox_type(m, k.x)->rank;
    if (rank < 3)
        return cps_ox_err(m, CPS_E7009, "an operand of rank %d, at least 3 is needed", rank);
    for (int i = 2; i < rank; i++)
        k.axes[k.n++] = i;
    return cps_ox_give(m, 0, reduce(m, &k, r->base, k.x, true));
}
