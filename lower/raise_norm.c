/* Layer norm and RMS norm, in the form of the importer and in those of exporters that spell
 * them out: x - mean(x) (or x) times rsqrt(mean of its square + eps), times a vector, plus a
 * vector, however the products are grouped, and with the casts around it that narrow models
 * have. */
#include "lower/match.h"

typedef struct norm {
    cps_val x, gamma, beta; // old values; beta may be 0
    double eps;
    bool rms;
    int axes;
    cps_trail t;
} norm;

// Leaves of a tree of products, casts between float types passed through.
static bool
leaves(const cps_rw *w, cps_val v, cps_val *leaf, int *n, cps_trail *t, int depth)
{
    const cps_node *d = cps_rw_def(w, v);
    if (depth && d && d->op == CPS_OP_MUL) {
        cps_trail_add(t, d);
        return leaves(w, d->in[0], leaf, n, t, depth - 1) &&
               leaves(w, d->in[1], leaf, n, t, depth - 1);
    }
    if (depth && d && d->op == CPS_OP_CAST &&
        cps_dtype_is_float(cps_rw_type(w, d->in[0])->dtype)) {
        const cps_node *p = cps_rw_is(w, d->in[0], CPS_OP_MUL);
        if (p) {
            cps_trail_add(t, d);
            return leaves(w, d->in[0], leaf, n, t, depth - 1);
        }
    }
    if (*n == 3)
        return false;
    leaf[(*n)++] = v;
    return true;
}

// r = rsqrt(mean(square(d)) + eps) over trailing axes; gives d.
static bool
deviation(const cps_rw *w, cps_val r, norm *k, cps_val *d)
{
    const cps_node *rs = cps_rw_is(w, r, CPS_OP_RSQRT);
    const cps_node *add = rs ? cps_rw_is(w, rs->in[0], CPS_OP_ADD) : NULL;
    if (!add || !cps_rw_uniform(w, add->in[1], &k->eps))
        return false;
    const cps_node *mean = cps_rw_is(w, add->in[0], CPS_OP_MEAN);
    const cps_node *sq = mean ? cps_rw_is(w, mean->in[0], CPS_OP_SQUARE) : NULL;
    if (!sq || !(k->axes = cps_match_trailing(w, mean)))
        return false;
    cps_trail_add(&k->t, sq);
    cps_trail_add(&k->t, mean);
    cps_trail_add(&k->t, add);
    cps_trail_add(&k->t, rs);
    *d = sq->in[0];
    return true;
}

// A float cast in front of the norm belongs to it: the operator computes in fp32 by itself.
static cps_val
before_cast(const cps_rw *w, cps_val v, cps_dtype want, cps_trail *t)
{
    const cps_node *c = cps_rw_is(w, v, CPS_OP_CAST);
    if (!c || cps_rw_type(w, c->in[0])->dtype != want)
        return v;
    cps_trail_add(t, c);
    return c->in[0];
}

static bool
match(const cps_rw *w, cps_val v, norm *k)
{
    cps_val leaf[3], d = 0;
    int n = 0, r = -1;
    if (!leaves(w, v, leaf, &n, &k->t, 3) || n < 2)
        return false;
    for (int i = 0; i < n && r < 0; i++)
        if (deviation(w, leaf[i], k, &d))
            r = i;
    if (r < 0)
        return false;
    int at = -1;
    for (int i = 0; i < n; i++)
        at = i != r && leaf[i] == d ? i : at;
    if (at < 0 || n < 3) // without a vector it is not the operator
        return false;
    k->gamma = leaf[3 - r - at];
    const cps_node *sub = cps_rw_is(w, d, CPS_OP_SUB);
    const cps_node *mean = sub ? cps_rw_is(w, sub->in[1], CPS_OP_MEAN) : NULL;
    k->rms = !(mean && mean->in[0] == sub->in[0] && cps_match_trailing(w, mean) == k->axes);
    cps_trail_add(&k->t, k->rms ? NULL : mean);
    cps_trail_add(&k->t, k->rms ? NULL : sub);
    k->x = before_cast(w, k->rms ? d : sub->in[0], cps_rw_type(w, v)->dtype, &k->t);
    return cps_type_eq(cps_rw_type(w, k->x), cps_rw_type(w, v)) &&
           cps_match_vector(w, k->gamma, cps_rw_type(w, v), k->axes);
}

static cps_val
zeros(cps_rw *w, cps_dtype t, int64_t n)
{
    size_t bytes = (size_t)CPS_MAX(n, 1) * cps_dtype_bytes(t);
    return cps_b_const(&w->b, cps_type_make(t, 1, &n), cps_arena_alloc(w->m->arena, bytes),
                       NULL);
}

bool
cps_raise_norm(cps_rw *w, const cps_node *n)
{
    norm k = {0};
    bool found = false;
    if (n->op == CPS_OP_ADD) {
        for (int i = 0; i < 2 && !found; i++) {
            k = (norm){.beta = n->in[1 - i]};
            found = match(w, n->in[i], &k) &&
                    cps_match_vector(w, k.beta, cps_rw_type(w, n->out[0]), k.axes) && !k.rms;
        }
        cps_trail_add(&k.t, n);
    } else if (n->op == CPS_OP_MUL) {
        found = match(w, n->out[0], &k);
    }
    if (!found)
        return false;
    const cps_type *type = cps_rw_type(w, n->out[0]);
    int64_t dim[2] = {1, 1};
    for (int i = 0; i < type->rank; i++)
        dim[i >= type->rank - k.axes] *= type->dim[i];
    w->b.from = cps_rw_from(w, k.t.n, k.t.node);
    cps_call c = {.callee = k.rms ? "rmsnorm" : "layernorm", .nin = k.rms ? 2 : 3, .nattr = 1};
    c.in[0] = cps_rw_reshape(w, cps_rw_new(w, k.x), 2, dim);
    c.in[1] = cps_rw_reshape(w, cps_rw_new(w, k.gamma), 1, &dim[1]);
    if (!k.rms)
        c.in[2] = k.beta ? cps_rw_reshape(w, cps_rw_new(w, k.beta), 1, &dim[1])
                         : zeros(w, type->dtype, dim[1]);
    c.attr[0] = cps_a_float("eps", k.eps);
    cps_val y;
    return cps_call_make(w, &c, &y) &&
           cps_rw_set(w, n->out[0], cps_rw_reshape(w, y, type->rank, type->dim));
}
