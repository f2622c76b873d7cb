/* Constant folding while a model is read: what makes arithmetic on shapes disappear.
 *
 * In: the nodes a handler has just appended. Those whose operands are all constants and whose
 * result is small are evaluated by the reference evaluator and become constants in place, so
 * the next node sees a number. Large float results are left to the canonicaliser: folding a
 * broadcast would only make the module bigger. */
#include "frontend/onnx/import.h"

#define MAX_INTS 65536   // elements of a result that may be sizes, axes or indices
#define MAX_FLOATS 4096  // elements of a float result
#define MAX_READ 1048576 // elements read to make it

static bool
foldable(cps_ox *m, const cps_node *n)
{
    if (n->op == CPS_OP_CONST || n->op == CPS_OP_CALL || n->nout != 1)
        return false;
    const cps_type *t = cps_ox_type(m, n->out[0]);
    int64_t read = 0;
    if (cps_type_count(t) > (cps_dtype_is_float(t->dtype) ? MAX_FLOATS : MAX_INTS))
        return false;
    for (int i = 0; i < n->nin; i++) {
        if (!cps_ox_const(m, n->in[i]))
            return false;
        read += cps_type_count(cps_ox_type(m, n->in[i]));
    }
    return read <= MAX_READ;
}

// A function of this one node, its operands as inputs.
static cps_func *
alone(cps_ox *m, cps_arena *a, const cps_node *n)
{
    cps_func *f = cps_new(a, cps_func);
    f->name = "fold";
    cps_vec_add(a, &f->vals);
    cps_node one = *n;
    one.in = cps_new_array(a, cps_val, n->nin);
    one.out = cps_new_array(a, cps_val, 1);
    for (int i = 0; i < n->nin; i++) {
        cps_value *v = cps_vec_add(a, &f->vals);
        v->type = *cps_ox_type(m, n->in[i]);
        one.in[i] = (cps_val)i + 1;
        cps_vec_push(a, &f->inputs, one.in[i]);
    }
    cps_value *v = cps_vec_add(a, &f->vals);
    v->type = *cps_ox_type(m, n->out[0]);
    v->def = 1;
    one.out[0] = (cps_val)n->nin + 1;
    cps_vec_push(a, &f->outputs, one.out[0]);
    cps_vec_push(a, &f->output_names, "y");
    cps_vec_push(a, &f->nodes, one);
    return f;
}

static bool
fold_one(cps_ox *m, cps_arena *a, uint32_t at)
{
    const cps_node *n = &m->b.f->nodes.data[at];
    cps_tensor *in = cps_new_array(a, cps_tensor, n->nin + 1), out;
    for (int i = 0; i < n->nin; i++) {
        const cps_const *c = cps_ox_const(m, n->in[i]);
        in[i] = cps_tensor_from(a, &c->type, c->data);
    }
    cps_eval_opts o = {.threads = 1};
    if (!cps_ir_eval(a, m->b.m, alone(m, a, n), in, &out, &o, m->d))
        return false;
    cps_type t = *cps_ox_type(m, n->out[0]);
    void *data = cps_arena_alloc(m->arena, (size_t)CPS_MAX(cps_type_bytes(&t), 1));
    cps_tensor_store(&out, t.dtype, data);
    cps_const *c = cps_vec_add(m->b.m->arena, &m->b.m->consts);
    c->type = t;
    c->data = data;
    c->name = m->b.f->vals.data[n->out[0]].name;
    cps_node *k = &m->b.f->nodes.data[at];
    k->op = CPS_OP_CONST;
    k->nin = k->nattr = 0;
    k->cst = m->b.m->consts.n - 1;
    return true;
}

bool
cps_ox_fold(cps_ox *m, uint32_t first)
{
    for (uint32_t i = first; i < m->b.f->nodes.n; i++) {
        if (!foldable(m, &m->b.f->nodes.data[i]))
            continue;
        cps_mark mark = cps_arena_mark(m->scratch);
        bool ok = fold_one(m, m->scratch, i);
        cps_arena_release(m->scratch, mark);
        if (!ok)
            return false;
    }
    return true;
}
