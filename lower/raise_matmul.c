/* Matrix products: by a matrix (any number of leading axes folded into rows), batched, and the
 * gated MLP of three of them. */
#include "lower/match.h"

// Product of the extents before the last two.
static int64_t
batch(const cps_type *t)
{
    int64_t n = 1;
    for (int i = 0; i + 2 < t->rank; i++)
        n *= t->dim[i];
    return n;
}

static cps_val
as_matrix(cps_rw *w, cps_val old)
{
    const cps_type *t = cps_rw_type(w, old);
    return cps_rw_reshape(w, cps_rw_new(w, old), 2, &t->dim[t->rank - 2]);
}

static cps_val
as_rows(cps_rw *w, cps_val old)
{
    int64_t dim[2];
    cps_rows_of(cps_rw_type(w, old), dim);
    return cps_rw_reshape(w, cps_rw_new(w, old), 2, dim);
}

// [.., r, c] with the leading axes of `out`, then folded to one.
static cps_val
as_batch(cps_rw *w, cps_val old, const cps_type *out)
{
    const cps_type *t = cps_rw_type(w, old);
    cps_val v = cps_rw_new(w, old);
    if (batch(t) != batch(out)) {
        int64_t full[CPS_MAX_RANK];
        memcpy(full, out->dim, sizeof full);
        full[out->rank - 2] = t->dim[t->rank - 2];
        full[out->rank - 1] = t->dim[t->rank - 1];
        v = cps_b_broadcast(&w->b, v, out->rank, full);
    }
    int64_t dim[3] = {batch(out), t->dim[t->rank - 2], t->dim[t->rank - 1]};
    return cps_rw_reshape(w, v, 3, dim);
}

bool
cps_raise_matmul(cps_rw *w, const cps_node *n)
{
    if (n->op != CPS_OP_MATMUL)
        return false;
    const cps_type *out = cps_rw_type(w, n->out[0]);
    bool by_matrix = batch(cps_rw_type(w, n->in[1])) == 1;
    cps_call c = {.callee = by_matrix ? "matmul" : "bmm", .nin = 2};
    c.in[0] = by_matrix ? as_rows(w, n->in[0]) : as_batch(w, n->in[0], out);
    c.in[1] = by_matrix ? as_matrix(w, n->in[1]) : as_batch(w, n->in[1], out);
    cps_val y;
    return cps_call_make(w, &c, &y) &&
           cps_rw_set(w, n->out[0], cps_rw_reshape(w, y, out->rank, out->dim));
}

// v = x @ w with a matrix, used once.
static const cps_node *
linear(const cps_rw *w, cps_val v)
{
    const cps_node *n = cps_rw_is(w, v, CPS_OP_MATMUL);
    return n && w->uses[v] == 1 && batch(cps_rw_type(w, n->in[1])) == 1 ? n : NULL;
}

// (act(x @ gate) * (x @ up)) @ down
bool
cps_raise_mlp(cps_rw *w, const cps_node *n)
{
    const cps_node *mul = n->op == CPS_OP_MATMUL && batch(cps_rw_type(w, n->in[1])) == 1
                              ? cps_rw_is(w, n->in[0], CPS_OP_MUL)
                              : NULL;
    if (!mul || w->uses[mul->out[0]] != 1)
        return false;
    for (int i = 0; i < 2; i++) {
        const cps_node *act = cps_rw_def(w, mul->in[i]), *up = linear(w, mul->in[1 - i]);
        const char *name = act ? cps_match_act(act->op) : NULL;
        const cps_node *gate = name && w->uses[act->out[0]] == 1 ? linear(w, act->in[0]) : NULL;
        if (!gate || !up || gate->in[0] != up->in[0])
            continue;
        const cps_type *out = cps_rw_type(w, n->out[0]);
        const cps_node *all[] = {gate, act, up, mul, n};
        w->b.from = cps_rw_from(w, 5, all);
        cps_call c = {.callee = "mlp", .nin = 4, .nattr = 1};
        c.in[0] = as_rows(w, gate->in[0]);
        c.in[1] = as_matrix(w, gate->in[1]);
        c.in[2] = as_matrix(w, up->in[1]);
        c.in[3] = as_matrix(w, n->in[1]);
        c.attr[0] = cps_a_str("act", name);
        cps_val y;
        return cps_call_make(w, &c, &y) &&
               cps_rw_set(w, n->out[0], cps_rw_reshape(w, y, out->rank, out->dim));
    }
    return false;
}
