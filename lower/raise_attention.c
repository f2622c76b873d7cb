/* Attention: softmax(scale * q k' + mask) v, with the heads as leading axes.
 *
 * The scores are peeled from the outside: an additive mask over keys, a causal mask, perhaps with a
 * window (added or selected, however it was computed: mask.c), a scale; then the product of q and
 * the transposed k. The leading axes are folded into one, the transpose of k is undone, keys and
 * values that were repeated for groups of heads are taken before that, and a mask becomes rows of
 * keys, one for each group of heads. Another mask over queries and keys is not this operator. */
#include "lower/match.h"

typedef struct attn {
    double scale;
    cps_val mask; // old value, or 0
    bool causal;
    int64_t window; // 0: none
    const cps_node *qk;
    cps_trail t;
} attn;

// The triangle of earlier keys, perhaps as far as a window reaches.
static bool
take_band(const cps_rw *w, cps_val mask, cps_mask_form form, attn *k)
{
    if (k->causal || !cps_match_band(w, mask, form, &k->window))
        return false;
    k->causal = true;
    return true;
}

// A mask value that may be added to the scores: causal, or one row of keys for a prefix of the
// leading axes.
static bool
take_mask(const cps_rw *w, cps_val mask, cps_val scores, attn *k)
{
    const cps_type *m = cps_rw_type(w, mask), *s = cps_rw_type(w, scores);
    if (m->rank >= 2 && m->dim[m->rank - 2] != 1)
        return take_band(w, mask, CPS_MASK_ADDS, k);
    if (k->mask || m->rank < 1 || m->rank > s->rank ||
        m->dim[m->rank - 1] != s->dim[s->rank - 1])
        return false;
    bool ones = false; // full extents first, then ones
    for (int i = 0; i < s->rank - 2; i++) {
        int at = i - (s->rank - m->rank);
        int64_t e = at < 0 ? 1 : m->dim[at];
        if (s->dim[i] == 1)
            continue;
        if (e != 1 && (e != s->dim[i] || ones))
            return false;
        ones = ones || e == 1;
    }
    k->mask = mask;
    return true;
}

static bool scores(const cps_rw *w, cps_val v, attn *k, int depth);

static bool
float_cast(const cps_rw *w, const cps_node *n)
{
    return n && n->op == CPS_OP_CAST && cps_dtype_is_float(cps_rw_type(w, n->in[0])->dtype) &&
           cps_dtype_is_float(cps_rw_type(w, n->out[0])->dtype);
}

static bool
added_mask(const cps_rw *w, const cps_node *n, attn *k, int depth)
{
    for (int i = 0; i < 2; i++) {
        attn trial = *k;
        if (!cps_type_eq(cps_rw_type(w, n->in[i]), cps_rw_type(w, n->out[0])))
            continue;
        if (take_mask(w, n->in[1 - i], n->in[i], &trial) &&
            scores(w, n->in[i], &trial, depth)) {
            *k = trial;
            return true;
        }
    }
    return false;
}

// select(tril, scores, -inf), or the other way round with an upper triangle.
static bool
selected_mask(const cps_rw *w, const cps_node *n, attn *k, int depth)
{
    double u;
    for (int i = 1; i <= 2; i++) {
        if (!cps_rw_uniform(w, n->in[i], &u) || u > CPS_MASKED)
            continue;
        cps_val rest = n->in[3 - i];
        if (!cps_type_eq(cps_rw_type(w, rest), cps_rw_type(w, n->out[0])) ||
            !take_band(w, n->in[0], i == 2 ? CPS_MASK_KEEPS : CPS_MASK_HIDES, k))
            return false;
        return scores(w, rest, k, depth);
    }
    return false;
}

// Peels one layer; ends at the product. A mask inside a scale would be scaled too: not taken.
static bool
scores(const cps_rw *w, cps_val v, attn *k, int depth)
{
    const cps_node *n = cps_rw_def(w, v);
    double u;
    if (!n || !depth || w->uses[v] != 1)
        return false;
    cps_trail_add(&k->t, n);
    if (n->op == CPS_OP_MATMUL) {
        k->qk = n;
        return true;
    }
    if (float_cast(w, n)) // the operator keeps scores in fp32 anyway
        return scores(w, n->in[0], k, depth - 1);
    if (n->op == CPS_OP_ADD && k->scale == 1)
        return added_mask(w, n, k, depth - 1);
    if (n->op == CPS_OP_SELECT && k->scale == 1)
        return selected_mask(w, n, k, depth - 1);
    if ((n->op != CPS_OP_MUL && n->op != CPS_OP_DIV) || !cps_rw_uniform(w, n->in[1], &u) ||
        u == 0 || !cps_type_eq(cps_rw_type(w, n->in[0]), cps_rw_type(w, v)))
        return false;
    k->scale *= n->op == CPS_OP_MUL ? u : 1 / u;
    return scores(w, n->in[0], k, depth - 1);
}

// A scalar factor of an operand is part of the scale.
static cps_val
unscaled(const cps_rw *w, cps_val v, attn *k)
{
    const cps_node *n = cps_rw_is(w, v, CPS_OP_MUL);
    double u;
    if (!n || !cps_rw_uniform(w, n->in[1], &u) || u == 0 ||
        !cps_type_eq(cps_rw_type(w, n->in[0]), cps_rw_type(w, v)))
        return v;
    k->scale *= u;
    cps_trail_add(&k->t, n);
    return n->in[0];
}

static int64_t
lead(const cps_type *t)
{
    int64_t n = 1;
    for (int i = 0; i + 2 < t->rank; i++)
        n *= t->dim[i];
    return n;
}

static bool
same_lead(const cps_type *a, const cps_type *b)
{
    if (a->rank != b->rank)
        return false;
    for (int i = 0; i + 2 < a->rank; i++)
        if (a->dim[i] != b->dim[i])
            return false;
    return true;
}

static cps_val
fold(cps_rw *w, cps_val v)
{
    const cps_type t = *cps_rw_new_type(w, v);
    return cps_rw_reshape(w, v, 3, (int64_t[]){lead(&t), t.dim[t.rank - 2], t.dim[t.rank - 1]});
}

// k with its last two axes swapped back; a transpose that does more keeps the rest.
static cps_val
keys(cps_rw *w, cps_val kt)
{
    const cps_type *t = cps_rw_type(w, kt);
    const cps_node *n = cps_rw_is(w, kt, CPS_OP_TRANSPOSE);
    int64_t perm[CPS_MAX_RANK];
    bool same = true;
    for (int i = 0; i < t->rank; i++) {
        int to = i == t->rank - 1 ? t->rank - 2 : i == t->rank - 2 ? t->rank - 1 : i;
        perm[i] = n ? cps_node_attr(n, "perm")->ints[to] : to;
        same = same && perm[i] == i;
    }
    cps_val x = cps_rw_new(w, n ? n->in[0] : kt);
    return same ? x : cps_b_transpose(&w->b, x, perm);
}

// Keys or values that were repeated for groups of heads, [.., g, 1, S, d] -> [.., g, n, S, d]
// ->
// [.., g n, S, d]: the operand before that, [groups, S, d]. 0 when v (old) is something else.
static cps_val
before_groups(cps_rw *w, cps_val v)
{
    const cps_node *r = cps_rw_is(w, v, CPS_OP_RESHAPE);
    const cps_node *b = r ? cps_rw_is(w, r->in[0], CPS_OP_BROADCAST) : NULL;
    if (!b)
        return 0;
    const cps_type *x = cps_rw_type(w, b->in[0]), *y = cps_rw_type(w, b->out[0]);
    const cps_type *t = cps_rw_type(w, v);
    int n = y->rank;
    if (x->rank != n || n < 3 || t->rank < 2 || x->dim[n - 3] != 1 ||
        t->dim[t->rank - 1] != y->dim[n - 1] || t->dim[t->rank - 2] != y->dim[n - 2])
        return 0;
    for (int i = 0; i < n; i++)
        if (i != n - 3 && x->dim[i] != y->dim[i])
            return 0;
    int64_t dim[3] = {lead(x), x->dim[n - 2], x->dim[n - 1]};
    return cps_rw_reshape(w, cps_rw_new(w, b->in[0]), 3, dim);
}

static cps_val
folded_keys(cps_rw *w, cps_val kt)
{
    const cps_node *n = cps_rw_is(w, kt, CPS_OP_TRANSPOSE);
    const int64_t *perm = n ? cps_node_attr(n, "perm")->ints : NULL;
    int rank = cps_rw_type(w, kt)->rank;
    bool swaps = n != NULL;
    for (int i = 0; n && i + 2 < rank; i++)
        swaps = swaps && perm[i] == i;
    cps_val k = swaps ? before_groups(w, n->in[0]) : 0;
    return k ? k : fold(w, keys(w, kt));
}

static cps_val
folded_values(cps_rw *w, cps_val v)
{
    cps_val x = before_groups(w, v);
    return x ? x : fold(w, cps_rw_new(w, v));
}

bool
cps_raise_attention(cps_rw *w, const cps_node *n)
{
    attn k = {.scale = 1};
    cps_val s, y;
    int axes;
    if (n->op != CPS_OP_MATMUL || w->uses[n->in[0]] != 1)
        return false;
    const cps_node *cast = cps_rw_def(w, n->in[0]);
    cps_val p = float_cast(w, cast) ? cast->in[0] : n->in[0];
    if (w->uses[p] != 1 || !cps_match_softmax(w, p, &s, &axes, &k.t) || axes != 1)
        return false;
    // The scores feed the maximum and the difference (or the exponential alone).
    uint32_t uses = w->uses[s];
    w->uses[s] = 1;
    bool ok = uses <= 2 && scores(w, s, &k, 6);
    w->uses[s] = uses;
    if (!ok)
        return false;
    cps_val q = unscaled(w, k.qk->in[0], &k), kt = unscaled(w, k.qk->in[1], &k), v = n->in[1];
    const cps_type *out = cps_rw_type(w, n->out[0]);
    cps_dtype dtype = out->dtype;
    if (cps_rw_type(w, q)->dtype != dtype || cps_rw_type(w, kt)->dtype != dtype ||
        cps_rw_type(w, v)->dtype != dtype || !same_lead(cps_rw_type(w, q), out) ||
        !same_lead(cps_rw_type(w, kt), out) || !same_lead(cps_rw_type(w, v), out))
        return false;
    cps_trail_add(&k.t, n);
    w->b.from = cps_rw_from(w, k.t.n, k.t.node);
    cps_call c = {.callee = "attention", .nin = 5, .nattr = 2};
    c.in[0] = fold(w, cps_rw_new(w, q));
    c.in[1] = folded_keys(w, kt);
    c.in[2] = folded_values(w, v);
    if (k.mask) {
        int64_t dim[2];
        cps_rows_of(cps_rw_type(w, k.mask), dim);
        c.in[4] = cps_rw_reshape(w, cps_rw_new(w, k.mask), 2, dim);
        if (cps_rw_new_type(w, c.in[4])->dtype != dtype)
            c.in[4] = cps_b_cast(&w->b, c.in[4], dtype);
    }
    c.attr[0] = cps_a_bool("causal", k.causal);
    c.attr[1] = cps_a_float("scale", k.scale);
    if (k.window)
        c.attr[c.nattr++] = cps_a_int("window", k.window);
    return cps_call_make(w, &c, &y) &&
           cps_rw_set(w, n->out[0], cps_rw_reshape(w, y, out->rank, out->dim));
}
