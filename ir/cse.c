/* Common subexpressions: a node whose key was seen before gives its uses to the first one. The
 * key spells out op, operands (already replaced), attributes and, for calls and constants, what
 * else decides the result; equal keys mean equal results, for every op is a pure function. */
#include "ir/pass.h"
#include "ir/scan.h"

#define HASHED_MAX (INT64_C(1) << 16) // bytes of a constant compared by content

static bool
key_of(cps_module *m, const cps_func *f, const cps_node *n, cps_buf *key)
{
    key->n = 0;
    cps_buf_printf(key, "%u", n->op);
    for (int i = 0; i < n->nin; i++)
        cps_buf_printf(key, " %u", n->in[i]);
    if (n->nattr)
        cps_put_attrs(key, n->nattr, n->attr);
    if (n->op == CPS_OP_CALL) {
        cps_put_string(key, n->callee);
        for (int i = 0; i < n->nout; i++)
            cps_type_print(&f->vals.data[n->out[i]].type, key);
        return !n->pick;
    }
    if (n->op == CPS_OP_CONST) {
        cps_const *c = &m->consts.data[n->cst];
        if (cps_type_bytes(&c->type) <= HASHED_MAX) {
            char hex[65];
            cps_digest_hex(cps_const_digest(c), hex);
            cps_buf_puts(key, hex);
        } else {
            cps_type_print(&c->type, key);
            cps_buf_printf(key, "@%p", c->data);
        }
    }
    return true;
}

static void
merge(cps_module *m, cps_func *f)
{
    cps_mark mark = cps_arena_mark(m->arena);
    cps_map seen;
    cps_map_init(&seen, m->arena);
    cps_val *now = cps_new_array(m->arena, cps_val, f->vals.n);
    cps_buf key = {0};
    uint32_t kept = 0;
    for (uint32_t v = 0; v < f->vals.n; v++)
        now[v] = v;
    for (uint32_t i = 0; i < f->nodes.n; i++) {
        cps_node *n = &f->nodes.data[i];
        for (int k = 0; k < n->nin; k++)
            n->in[k] = now[n->in[k]];
        bool fresh = true;
        if (key_of(m, f, n, &key)) {
            uint64_t *at = cps_map_at_str(&seen, key.data, &fresh);
            if (fresh)
                *at = kept;
            for (int k = 0; k < n->nout && !fresh; k++) {
                cps_val first = f->nodes.data[*at].out[k];
                now[n->out[k]] = first;
                if (!f->vals.data[first].name)
                    f->vals.data[first].name = f->vals.data[n->out[k]].name;
            }
        }
        if (fresh)
            f->nodes.data[kept++] = *n;
    }
    f->nodes.n = kept;
    for (uint32_t i = 0; i < f->outputs.n; i++)
        f->outputs.data[i] = now[f->outputs.data[i]];
    cps_ir_renumber(f);
    cps_buf_fini(&key);
    cps_arena_release(m->arena, mark);
}

bool
cps_ir_cse(cps_module *m, cps_diags *d)
{
    (void)d;
    for (uint32_t i = 0; i < m->funcs.n; i++)
        merge(m, m->funcs.data[i]);
    return true;
}
