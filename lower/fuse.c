/* Fusing: what follows a call becomes an operand or attribute of it, so that the result makes
 * one trip to memory instead of several.
 *
 * A product takes a bias (a vector along its columns), then an activation, then a residual, in
 * that order, which is the order its operator applies them. A layer norm takes the sum in front
 * of it. Only results that nothing else reads are fused. Reshapes between are looked through.
 */
#include "lower/match.h"

#include "ir/pass.h"

#define MAX_SWEEPS 8

enum { MM_X, MM_W, MM_BIAS, MM_RESIDUAL }; // operands of matmul
enum { LN_X, LN_GAMMA, LN_BETA, LN_RESIDUAL };

// A cast to fp32 from a narrower float: what --auto-cast=matmult puts behind a product.
static bool
widens(const cps_rw *w, const cps_node *n)
{
    if (n->op != CPS_OP_CAST || cps_rw_type(w, n->out[0])->dtype != CPS_DT_FP32)
        return false;
    cps_dtype from = cps_rw_type(w, n->in[0])->dtype;
    return from == CPS_DT_BF16 || from == CPS_DT_FP16 || from == CPS_DT_TF32;
}

// The call behind v, through reshapes and widening casts, when each step has one use. The
// operator computes in fp32 inside, so a bias or activation in front of the cast rounds once.
static const cps_node *
call_behind(const cps_rw *w, cps_val v, const char *callee)
{
    const cps_node *n = cps_rw_def(w, v);
    while (n && (n->op == CPS_OP_RESHAPE || widens(w, n)) && w->uses[v] == 1) {
        v = n->in[0];
        n = cps_rw_def(w, v);
    }
    return n && n->op == CPS_OP_CALL && w->uses[v] == 1 && strcmp(n->callee, callee) == 0
               ? n
               : NULL;
}

static bool
has(const cps_node *n, int operand)
{
    return operand < n->nin && n->in[operand];
}

// The call again with one more operand or attribute, in place of the op `n`.
static bool
again(cps_rw *w, const cps_node *call, const cps_node *n, int nin, int operand, cps_val v,
      const char *act)
{
    cps_call c = {.callee = call->callee, .nin = nin};
    for (int i = 0; i < call->nin; i++)
        c.in[i] = call->in[i] ? cps_rw_new(w, call->in[i]) : 0;
    if (operand >= 0)
        c.in[operand] = v;
    if (call->nattr + 1 > (int)cps_countof(c.attr))
        return false;
    for (int i = 0; i < call->nattr; i++)
        c.attr[c.nattr++] = call->attr[i];
    if (act)
        c.attr[c.nattr++] = cps_a_str("act", act);
    const cps_node *both[] = {call, n};
    w->b.from = cps_rw_from(w, 2, both);
    cps_val y;
    const cps_type *t = cps_rw_type(w, n->out[0]);
    if (!cps_call_make(w, &c, &y))
        return false;
    if (cps_rw_new_type(w, y)->dtype != t->dtype)
        y = cps_b_cast(&w->b, y, t->dtype);
    return cps_rw_set(w, n->out[0], cps_rw_reshape(w, y, t->rank, t->dim));
}

static cps_val
as_type(cps_rw *w, cps_val v, cps_dtype t)
{
    return cps_rw_new_type(w, v)->dtype == t ? v : cps_b_cast(&w->b, v, t);
}

static bool
product_add(cps_rw *w, const cps_node *n)
{
    const cps_type *t = cps_rw_type(w, n->out[0]);
    for (int i = 0; i < 2; i++) {
        const cps_node *mm = call_behind(w, n->in[i], "matmul");
        cps_val other = n->in[1 - i];
        if (!mm || has(mm, MM_RESIDUAL) || !cps_type_eq(cps_rw_type(w, n->in[i]), t))
            continue;
        const cps_type *y = cps_rw_type(w, mm->out[0]);
        bool plain = !has(mm, MM_BIAS) && !cps_node_attr(mm, "act");
        if (plain && t->rank && t->dim[t->rank - 1] == y->dim[1] &&
            cps_match_vector(w, other, t, 1) &&
            again(w, mm, n, 3, MM_BIAS,
                  as_type(w, cps_rw_reshape(w, cps_rw_new(w, other), 1, &y->dim[1]), y->dtype),
                  NULL))
            return true;
        if (cps_type_eq(cps_rw_type(w, other), t) && y->dtype == t->dtype &&
            again(w, mm, n, 4, MM_RESIDUAL, cps_rw_reshape(w, cps_rw_new(w, other), 2, y->dim),
                  NULL))
            return true;
    }
    return false;
}

static bool
product_act(cps_rw *w, const cps_node *n, const char *act)
{
    const cps_node *mm = call_behind(w, n->in[0], "matmul");
    return mm && !has(mm, MM_RESIDUAL) && !cps_node_attr(mm, "act") &&
           again(w, mm, n, 3, -1, 0, act);
}

static bool
product_rule(cps_rw *w, const cps_node *n)
{
    if (n->op == CPS_OP_ADD)
        return product_add(w, n);
    const char *act = cps_match_act(n->op);
    return act && product_act(w, n, act);
}

static bool
norm_rule(cps_rw *w, const cps_node *n)
{
    if (n->op != CPS_OP_CALL || strcmp(n->callee, "layernorm") != 0 || has(n, LN_RESIDUAL))
        return false;
    cps_val v = n->in[LN_X];
    const cps_node *p = cps_rw_def(w, v);
    while (p && p->op == CPS_OP_RESHAPE && w->uses[v] == 1) {
        v = p->in[0];
        p = cps_rw_def(w, v);
    }
    if (!p || p->op != CPS_OP_ADD || w->uses[v] != 1 ||
        !cps_type_eq(cps_rw_type(w, p->in[0]), cps_rw_type(w, p->in[1])))
        return false;
    const cps_type *t = cps_rw_type(w, n->in[LN_X]);
    cps_call c = {.callee = n->callee, .nin = 4};
    c.in[LN_X] = cps_rw_reshape(w, cps_rw_new(w, p->in[0]), 2, t->dim);
    c.in[LN_GAMMA] = cps_rw_new(w, n->in[LN_GAMMA]);
    c.in[LN_BETA] = cps_rw_new(w, n->in[LN_BETA]);
    c.in[LN_RESIDUAL] = cps_rw_reshape(w, cps_rw_new(w, p->in[1]), 2, t->dim);
    for (int i = 0; i < n->nattr && c.nattr < (int)cps_countof(c.attr); i++)
        c.attr[c.nattr++] = n->attr[i];
    const cps_node *both[] = {p, n};
    w->b.from = cps_rw_from(w, 2, both);
    cps_val y;
    return cps_call_make(w, &c, &y) && cps_rw_set(w, n->out[0], y);
}

bool
cps_lower_fuse(cps_lower *l, cps_module *m)
{
    if (!l->o->registry)
        return true;
    static bool (*const stages[])(cps_rw * w, const cps_node *n) = {product_rule, norm_rule};
    for (size_t i = 0; i < cps_countof(stages); i++) {
        unsigned changes = 1;
        // What a fused call replaced is dead and must not count as a use.
        for (int sweep = 0; changes && sweep < MAX_SWEEPS; sweep++)
            if (!cps_lower_rewrite(l, m, stages[i], &changes) || !cps_ir_dce(m, l->d))
                return false;
    }
    return true;
}
