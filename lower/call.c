/* Calls and instances: from operands to an instance the registry has inferred, from a pattern
 * to a call node, and evaluation of calls by their operators' bodies. */
#include "lower/pass.h"

void
cps_rows_of(const cps_type *t, int64_t dim[2])
{
    dim[1] = t->rank ? t->dim[t->rank - 1] : 1;
    dim[0] = 1;
    for (int i = 0; i + 1 < t->rank; i++)
        dim[0] *= t->dim[i];
}

// "residual?[M, N]" -> "residual"; words before the name (inout) are passed over.
static const char *
operand_name(cps_arena *a, const char *piece)
{
    size_t end = strcspn(piece, "[?:");
    while (end && piece[end - 1] == ' ')
        end--;
    size_t at = end;
    while (at && piece[at - 1] != ' ')
        at--;
    return cps_arena_strndup(a, piece + at, end - at);
}

bool
cps_call_source(const cps_lower_opts *o, const char *callee, const char *text, cps_diags *d)
{
    return o->registry->add && o->registry->add(o->registry->self, callee, text, d);
}

bool
cps_call_bind(const cps_lower_opts *o, cps_arena *a, const char *callee, int nin,
              const cps_type *const *types, uint16_t nattr, const cps_attr *attr,
              cps_instance *out, cps_diags *d)
{
    cps_opinfo op;
    *out = (cps_instance){.target = o->target, .cores = o->cores ? o->cores : 1};
    const cps_attr *kernel = cps_attr_find(attr, nattr, "kernel");
    if (kernel && kernel->kind == CPS_A_STR && !cps_call_source(o, callee, kernel->s, d))
        return false;
    if (!o->registry->find_op(o->registry->self, callee, &op)) {
        cps_error(d, CPS_E7402, CPS_NOSPAN, "the registry has no operator '%s'", callee);
        return false;
    }
    if (nin > op.noperands) {
        cps_error(d, CPS_E7402, CPS_NOSPAN, "'%s' takes %d operands, the call has %d", callee,
                  op.noperands, nin);
        return false;
    }
    out->op = op.name;
    out->noperands = op.noperands;
    out->nresults = op.nresults;
    for (int i = 0; i < op.noperands; i++) {
        out->operand[i].name = operand_name(a, op.operand[i]);
        out->operand[i].present = i < nin && types[i];
        if (out->operand[i].present)
            out->operand[i].type = *types[i];
    }
    for (int i = 0; i < op.nresults; i++) {
        out->result[i].name = operand_name(a, op.result[i]);
        out->result[i].present = true;
    }
    for (uint16_t i = 0; i < nattr; i++)
        if (&attr[i] != kernel) // the operator's text, none of its attributes
            cps_attr_put(a, &out->attr, &out->nattr, cps_attr_copy(a, &attr[i]));
    return o->registry->infer(o->registry->self, a, out, d);
}

bool
cps_lower_instance(const cps_lower_opts *o, cps_arena *a, const cps_func *f, const cps_node *n,
                   cps_instance *out, cps_diags *d)
{
    const cps_type *types[CPS_MAX_OPERANDS] = {0};
    cps_assert(n->op == CPS_OP_CALL);
    if (n->nin > CPS_MAX_OPERANDS) {
        cps_error(d, CPS_E7402, n->loc, "'%s' is called with %d operands, at most %d",
                  n->callee, n->nin, CPS_MAX_OPERANDS);
        return false;
    }
    for (int i = 0; i < n->nin; i++)
        types[i] = n->in[i] ? &f->vals.data[n->in[i]].type : NULL;
    if (!cps_call_bind(o, a, n->callee, n->nin, types, n->nattr, n->attr, out, d))
        return false;
    for (int i = 0; i < n->nout; i++)
        if (i >= out->nresults ||
            !cps_type_eq(&out->result[i].type, &f->vals.data[n->out[i]].type)) {
            cps_error(d, CPS_E7402, n->loc,
                      "result %d of '%s' has another type than the call says", i, n->callee);
            return false;
        }
    return true;
}

static bool
is_banned(const cps_lower *l, const cps_instance *i)
{
    if (!l->banned.n)
        return false;
    cps_buf b = {0};
    cps_instance_print(i, &b);
    bool hit = cps_map_find_str(&l->banned, b.data) != NULL;
    cps_buf_fini(&b);
    return hit;
}

bool
cps_call_make_all(cps_rw *w, const cps_call *c, cps_val *out)
{
    cps_lower *l = cps_lower_of(w);
    if (!l->o->registry)
        return false;
    const cps_type *types[CPS_MAX_OPERANDS] = {0};
    for (int i = 0; i < c->nin; i++)
        types[i] = c->in[i] ? cps_rw_new_type(w, c->in[i]) : NULL;
    cps_instance inst;
    bool ok = cps_call_bind(l->o, w->tmp, c->callee, c->nin, types, (uint16_t)c->nattr, c->attr,
                            &inst, l->quiet);
    cps_diags_clear(l->quiet);
    if (!ok || is_banned(l, &inst))
        return false;
    int nin = c->nin;
    while (nin && !c->in[nin - 1])
        nin--;
    cps_type result[CPS_MAX_OPERANDS];
    for (int i = 0; i < inst.nresults; i++)
        result[i] = inst.result[i].type;
    return cps_b_call(&w->b, c->callee, nin, c->in, c->nattr, c->attr, inst.nresults, result,
                      out);
}

bool
cps_call_make(cps_rw *w, const cps_call *c, cps_val *out)
{
    cps_val all[CPS_MAX_OPERANDS];
    if (!cps_call_make_all(w, c, all))
        return false;
    *out = all[0];
    return true;
}

bool
cps_lower_eval(void *user, cps_arena *a, const cps_node *n, const cps_tensor *in,
               cps_tensor *out, cps_diags *d)
{
    const cps_lower_opts *o = user;
    const cps_type *types[CPS_MAX_OPERANDS] = {0};
    cps_instance inst;
    for (int i = 0; i < n->nin; i++)
        types[i] = n->in[i] ? &in[i].type : NULL;
    if (!cps_call_bind(o, a, n->callee, n->nin, types, n->nattr, n->attr, &inst, d))
        return false;
    cps_module *m = cps_module_new(a, n->callee);
    cps_func *f = o->registry->body(o->registry->self, m, &inst, d);
    if (!f)
        return false;
    // A body has an input for each operand that is present.
    cps_tensor *args = cps_new_array(a, cps_tensor, f->inputs.n + 1);
    uint32_t k = 0;
    for (int i = 0; i < n->nin; i++)
        if (n->in[i] && k < f->inputs.n)
            args[k++] = in[i];
    cps_assert(k == f->inputs.n && f->outputs.n >= n->nout);
    cps_tensor *got = cps_new_array(a, cps_tensor, f->outputs.n);
    cps_eval_opts e = {.call = cps_lower_eval, .user = user, .threads = 1};
    if (!cps_ir_eval(a, m, f, args, got, &e, d))
        return false;
    memcpy(out, got, n->nout * sizeof *out);
    return true;
}
