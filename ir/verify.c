/* The graph verifier: structure first (counts, ids, single definition before use), then the op
 * rules on every node. Nothing is assumed about how the module was made; it stops at the first
 * broken node of a function, for what follows would only repeat it. */
#include "ir/ir.h"

#include <stdio.h>
#include <stdlib.h>

static bool CPS_PRINTF(4, 5)
    broken(cps_diags *d, const cps_func *f, cps_span at, const char *fmt, ...)
{
    char text[512];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    cps_error(d, CPS_E7107, at, "function '%s': %s", f->name, text);
    return false;
}

// Lists are sorted by key without doubles, and every value can be printed.
static bool
attrs_ok(uint32_t n, const cps_attr *a)
{
    for (uint32_t i = 0; i < n; i++) {
        if (!a[i].key || (i && strcmp(a[i - 1].key, a[i].key) >= 0))
            return false;
        if (a[i].kind > CPS_A_INTS || (a[i].kind == CPS_A_STR && !a[i].s) ||
            (a[i].kind == CPS_A_INTS && a[i].n && !a[i].ints) ||
            (a[i].kind == CPS_A_DTYPE && (a[i].i <= CPS_DT_NONE || a[i].i >= CPS_DT_COUNT)))
            return false;
    }
    return true;
}

static bool
define(const cps_func *f, uint8_t *defined, cps_val v, uint32_t def, cps_span at, cps_diags *d)
{
    if (v == 0 || v >= f->vals.n)
        return broken(d, f, at, "value id %u does not exist", v);
    if (defined[v])
        return broken(d, f, at, "value %u is defined twice", v);
    if (f->vals.data[v].def != def)
        return broken(d, f, at, "value %u names definition %u, stands at %u", v,
                      f->vals.data[v].def, def);
    if (!cps_type_ok(&f->vals.data[v].type))
        return broken(d, f, at, "value %u has a malformed type", v);
    defined[v] = 1;
    return true;
}

static bool
check_types(const cps_func *f, const cps_node *n, const cps_type *in, cps_diags *d)
{
    cps_type out[2];
    if (!cps_ir_infer((cps_op)n->op, n->nin, in, n->nattr, n->attr, out, d, n->loc))
        return false;
    for (int i = 0; i < n->nout; i++)
        if (!cps_type_eq(&out[i], &f->vals.data[n->out[i]].type)) {
            cps_buf b = {0};
            cps_type_print(&f->vals.data[n->out[i]].type, &b);
            cps_buf_puts(&b, ", its rule gives ");
            cps_type_print(&out[i], &b);
            broken(d, f, n->loc, "result %d of '%s' has type %s", i, cps_ops[n->op].name,
                   b.data);
            cps_buf_fini(&b);
            return false;
        }
    return true;
}

static bool
check_node(const cps_module *m, const cps_func *f, uint32_t at, uint8_t *defined, cps_diags *d)
{
    const cps_node *n = &f->nodes.data[at];
    cps_type in[UINT8_MAX];
    if (n->op == CPS_OP_NONE || n->op >= CPS_OPS)
        return broken(d, f, n->loc, "node %u has no op", at);
    const cps_oprow *row = &cps_ops[n->op];
    bool call = n->op == CPS_OP_CALL;
    if (n->nin < row->nin_min || n->nin > row->nin_max ||
        (call ? n->nout > 255 : n->nout != row->nout))
        return broken(d, f, n->loc, "'%s' with %u operands and %u results", row->name, n->nin,
                      n->nout);
    for (int i = 0; i < n->nin; i++) {
        cps_val v = n->in[i];
        if (v == 0 && call)
            continue;
        if (v == 0 || v >= f->vals.n || !defined[v])
            return broken(d, f, n->loc, "operand %d of '%s' is used before its definition", i,
                          row->name);
        in[i] = f->vals.data[v].type;
    }
    if (!attrs_ok(n->nattr, n->attr))
        return broken(d, f, n->loc, "attributes of '%s' are not sorted or not printable",
                      row->name);
    if (call != (n->callee != NULL) || (n->pick && !call))
        return broken(d, f, n->loc, "'%s' and its operator name do not go together", row->name);
    if (n->pick && !attrs_ok(n->pick->nconfig, n->pick->config))
        return broken(d, f, n->loc,
                      "the decision's configuration is not sorted or not printable");
    for (int i = 0; i < n->nout; i++)
        if (!define(f, defined, n->out[i], at + 1, n->loc, d))
            return false;
    if (call)
        return true;
    if (n->op != CPS_OP_CONST)
        return check_types(f, n, in, d);
    if (n->cst >= m->consts.n || !m->consts.data[n->cst].data)
        return broken(d, f, n->loc, "the constant has no data");
    if (!cps_type_eq(&m->consts.data[n->cst].type, &f->vals.data[n->out[0]].type))
        return broken(d, f, n->loc, "the constant's type is not that of its value");
    return true;
}

static bool
check_func(const cps_module *m, const cps_func *f, uint8_t *defined, cps_diags *d)
{
    if (f->outputs.n != f->output_names.n)
        return broken(d, f, CPS_NOSPAN, "%u outputs with %u names", f->outputs.n,
                      f->output_names.n);
    for (uint32_t i = 0; i < f->inputs.n; i++)
        if (!define(f, defined, f->inputs.data[i], 0, CPS_NOSPAN, d))
            return false;
    for (uint32_t i = 0; i < f->nodes.n; i++)
        if (!check_node(m, f, i, defined, d))
            return false;
    for (uint32_t i = 0; i < f->outputs.n; i++) {
        cps_val v = f->outputs.data[i];
        if (v == 0 || v >= f->vals.n || !defined[v])
            return broken(d, f, CPS_NOSPAN, "output %u has no definition", i);
    }
    return true;
}

bool
cps_ir_verify(const cps_module *m, cps_diags *d)
{
    bool ok = true;
    for (uint32_t i = 0; i < m->funcs.n; i++) {
        const cps_func *f = m->funcs.data[i];
        uint8_t *defined = calloc(f->vals.n + 1, 1);
        if (!defined)
            cps_bug("out of memory");
        ok = check_func(m, f, defined, d) && ok;
        free(defined);
    }
    return ok;
}
