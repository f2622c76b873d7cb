/* Constant folding. A node is constant when all its operands are and it is cheap enough to
 * hold; the values of constant nodes that something else reads (the frontier) are evaluated by
 * the reference evaluator, on the function itself with the frontier as its outputs, and
 * replaced by const nodes. What led to them is then dead. */
#include "ir/pass.h"

#define SMALL ((int64_t)1 << 20) // elements folded whatever the op
#define LARGE ((int64_t)1 << 28) // elements folded when the op only moves or converts

typedef struct ctx {
    cps_module *m;
    cps_func *f;
    uint8_t *constant; // per value
    uint8_t *frontier; // per value: to be replaced
    cps_const **made;  // per value: what it becomes
    CPS_VEC(cps_val) small;
} ctx;

static bool
foldable(const ctx *c, const cps_node *n)
{
    int64_t most = 0;
    if (n->op == CPS_OP_CONST || n->op == CPS_OP_CALL)
        return false;
    for (int i = 0; i < n->nin; i++) {
        if (!c->constant[n->in[i]])
            return false;
        most = CPS_MAX(most, cps_type_count(&c->f->vals.data[n->in[i]].type));
    }
    bool moves = n->op == CPS_OP_CAST || cps_ops[n->op].opclass == CPS_OC_SHAPE;
    for (int i = 0; i < n->nout; i++) {
        int64_t count = cps_type_count(&c->f->vals.data[n->out[i]].type);
        if (count > SMALL && !(moves && count <= most && count <= LARGE))
            return false;
    }
    // A reduction of something huge is not worth holding it in binary64.
    return most <= (moves ? LARGE : 16 * SMALL);
}

static void
find_frontier(ctx *c)
{
    cps_func *f = c->f;
    for (uint32_t i = 0; i < f->nodes.n; i++) {
        const cps_node *n = &f->nodes.data[i];
        bool yes = foldable(c, n);
        for (int k = 0; k < n->nout; k++)
            c->constant[n->out[k]] = yes || n->op == CPS_OP_CONST;
        for (int k = 0; k < n->nin && !yes; k++)
            c->frontier[n->in[k]] = c->constant[n->in[k]];
    }
    for (uint32_t i = 0; i < f->outputs.n; i++)
        c->frontier[f->outputs.data[i]] = c->constant[f->outputs.data[i]];
    for (uint32_t v = 1; v < f->vals.n; v++) {
        uint32_t def = f->vals.data[v].def;
        if (!def || f->nodes.data[def - 1].op == CPS_OP_CONST)
            c->frontier[v] = 0; // is one already
    }
}

// Evaluates the values as one function's outputs; false when any of them has no result.
static bool
evaluate(ctx *c, uint32_t n, const cps_val *v)
{
    cps_func g = *c->f;
    cps_arena *tmp = cps_arena_create();
    cps_diags *quiet = cps_diags_create();
    cps_tensor *out = cps_new_array(tmp, cps_tensor, n);
    g.outputs.data = (cps_val *)v; // only read
    g.outputs.n = n;
    // Inputs cannot be needed: everything below is constant.
    g.inputs.n = 0;
    bool ok = cps_ir_eval(tmp, c->m, &g, NULL, out, NULL, quiet);
    for (uint32_t i = 0; i < n && ok; i++) {
        cps_const *k = cps_new(c->m->arena, cps_const);
        void *data = cps_arena_raw(c->m->arena, (size_t)cps_type_bytes(&out[i].type) + 1);
        cps_tensor_store(&out[i], out[i].type.dtype, data);
        k->type = out[i].type;
        k->data = data;
        k->name = c->f->vals.data[v[i]].name;
        c->made[v[i]] = k;
    }
    cps_diags_destroy(quiet);
    cps_arena_destroy(tmp);
    return ok;
}

static void
evaluate_all(ctx *c, cps_arena *a)
{
    for (cps_val v = 1; v < c->f->vals.n; v++) {
        if (!c->frontier[v])
            continue;
        if (cps_type_count(&c->f->vals.data[v].type) <= SMALL)
            cps_vec_push(a, &c->small, v);
        else
            evaluate(c, 1, &v); // one large tensor at a time
    }
    if (c->small.n && !evaluate(c, c->small.n, c->small.data))
        for (uint32_t i = 0; i < c->small.n; i++) // some of them have a result
            evaluate(c, 1, &c->small.data[i]);
}

static void
replace(ctx *c)
{
    cps_func *f = c->f;
    cps_arena *a = c->m->arena;
    CPS_VEC(cps_node) nodes = {0};
    for (uint32_t i = 0; i < f->nodes.n; i++) {
        cps_node n = f->nodes.data[i];
        bool whole = true;
        for (int k = 0; k < n.nout; k++)
            whole = whole && !c->made[n.out[k]];
        if (whole) {
            cps_vec_push(a, &nodes, n);
            continue;
        }
        // Results of the node that were not made are dead (or failed with the others).
        for (int k = 0; k < n.nout; k++) {
            if (!c->made[n.out[k]])
                continue;
            cps_node *x = cps_vec_add(a, &nodes);
            x->op = CPS_OP_CONST;
            x->nout = 1;
            x->out = cps_new(a, cps_val);
            x->out[0] = n.out[k];
            x->from = n.from;
            x->loc = n.loc;
            x->cst = c->m->consts.n;
            cps_vec_push(a, &c->m->consts, *c->made[n.out[k]]);
        }
    }
    f->nodes.data = nodes.data;
    f->nodes.n = nodes.n;
    f->nodes.cap = nodes.cap;
    cps_ir_renumber(f);
}

bool
cps_ir_fold(cps_module *m, cps_diags *d)
{
    for (uint32_t i = 0; i < m->funcs.n; i++) {
        cps_arena *a = cps_arena_create();
        ctx c = {.m = m, .f = m->funcs.data[i]};
        c.constant = cps_new_array(a, uint8_t, c.f->vals.n);
        c.frontier = cps_new_array(a, uint8_t, c.f->vals.n);
        c.made = cps_new_array(a, cps_const *, c.f->vals.n);
        find_frontier(&c);
        evaluate_all(&c, a);
        replace(&c);
        cps_arena_destroy(a);
    }
    return cps_ir_dce(m, d);
}
