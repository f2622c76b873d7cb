/* Raising: subgraphs of base ops become calls of the registry's operators.
 *
 * The rules stand in files of their own, one per family; each looks backwards from the last op
 * of its pattern. What the registry has no operator for, or whose signature does not take the
 * operands, stays as it is. Provenance is the union of the pattern's nodes.
 *
 * For whoever adds a rule: (1) the call must compute the pattern for every value of its
 * operands, not only for likely ones; (2) numbers are compared with cps_rw_near, never exactly;
 * (3) a pattern whose inner results are used elsewhere may be raised only when computing them
 * twice is cheap; (4) shapes with more axes than the operator has are folded by reshapes, which
 * are free. */
#include "lower/match.h"

int
cps_match_trailing(const cps_rw *w, const cps_node *n)
{
    const cps_attr *axes = cps_node_attr(n, "axes"), *keep = cps_node_attr(n, "keep");
    int rank = cps_rw_type(w, n->in[0])->rank;
    if (!keep->i || !axes->n)
        return 0;
    for (uint32_t i = 0; i < axes->n; i++)
        if (axes->ints[i] != rank - (int)axes->n + (int)i)
            return 0;
    return (int)axes->n;
}

bool
cps_match_softmax(const cps_rw *w, cps_val v, cps_val *x, int *axes, cps_trail *t)
{
    const cps_node *div = cps_rw_is(w, v, CPS_OP_DIV);
    const cps_node *e = div ? cps_rw_is(w, div->in[0], CPS_OP_EXP) : NULL;
    const cps_node *s = div ? cps_rw_is(w, div->in[1], CPS_OP_SUM) : NULL;
    if (!e || !s || s->in[0] != e->out[0])
        return false;
    *axes = cps_match_trailing(w, s);
    const cps_node *sub = cps_rw_is(w, e->in[0], CPS_OP_SUB);
    const cps_node *top = sub ? cps_rw_is(w, sub->in[1], CPS_OP_RMAX) : NULL;
    // Without the maximum it is a softmax too, one that overflows earlier.
    bool shifted = top && top->in[0] == sub->in[0] && cps_match_trailing(w, top) == *axes;
    *x = shifted ? sub->in[0] : e->in[0];
    cps_trail_add(t, shifted ? top : NULL);
    cps_trail_add(t, shifted ? sub : NULL);
    cps_trail_add(t, e);
    cps_trail_add(t, s);
    cps_trail_add(t, div);
    return *axes > 0;
}

bool
cps_match_vector(const cps_rw *w, cps_val v, const cps_type *of, int axes)
{
    const cps_type *t = cps_rw_type(w, v);
    for (int i = 0; i < axes; i++) {
        int k = t->rank - 1 - i;
        if ((k >= 0 ? t->dim[k] : 1) != of->dim[of->rank - 1 - i])
            return false;
    }
    for (int i = 0; i < t->rank - axes; i++)
        if (t->dim[i] != 1)
            return false;
    return true;
}

const char *
cps_match_act(cps_op op)
{
    static const struct {
        cps_op op;
        const char *name;
    } rows[] = {{CPS_OP_RELU, "relu"},           {CPS_OP_GELU, "gelu"},
                {CPS_OP_GELU_TANH, "gelu_tanh"}, {CPS_OP_SILU, "silu"},
                {CPS_OP_SWISH, "swish"},         {CPS_OP_TANH, "tanh"},
                {CPS_OP_SIGMOID, "sigmoid"}};
    for (size_t i = 0; i < cps_countof(rows); i++)
        if (rows[i].op == op)
            return rows[i].name;
    return NULL;
}

bool
cps_raise_softmax(cps_rw *w, const cps_node *n)
{
    cps_trail t = {0};
    cps_val x, y;
    int axes;
    if (n->op != CPS_OP_DIV || !cps_match_softmax(w, n->out[0], &x, &axes, &t))
        return false;
    const cps_type *type = cps_rw_type(w, n->out[0]);
    int64_t dim[2] = {1, 1};
    for (int i = 0; i < type->rank; i++)
        dim[i >= type->rank - axes] *= type->dim[i];
    w->b.from = cps_rw_from(w, t.n, t.node);
    cps_call c = {.callee = "softmax", .nin = 1};
    c.in[0] = cps_rw_reshape(w, cps_rw_new(w, x), 2, dim);
    return cps_call_make(w, &c, &y) &&
           cps_rw_set(w, n->out[0], cps_rw_reshape(w, y, type->rank, type->dim));
}

static bool (*const rules[])(cps_rw *w, const cps_node *n) = {
    cps_raise_attention, cps_raise_softmax, cps_raise_norm, cps_raise_rope,
    cps_raise_mlp,       cps_raise_matmul,  cps_raise_top,
};

static bool
raise_rule(cps_rw *w, const cps_node *n)
{
    for (size_t i = 0; i < cps_countof(rules); i++) {
        w->b.from = n->from;
        if (rules[i](w, n))
            return true;
    }
    return false;
}

bool
cps_lower_raise(cps_lower *l, cps_module *m)
{
    return !l->o->registry || cps_lower_rewrite(l, m, raise_rule, NULL);
}
