/* The sweep of rewrite.h and its helpers. The new function is built beside the old one and
 * takes its place at the end; values keep their source names. */
#include "lower/rewrite.h"

#include <math.h>

/* ---- looking ---- */

const cps_node *
cps_rw_def(const cps_rw *w, cps_val v)
{
    uint32_t def = v ? w->old->vals.data[v].def : 0;
    return def ? &w->old->nodes.data[def - 1] : NULL;
}

const cps_node *
cps_rw_is(const cps_rw *w, cps_val v, cps_op op)
{
    const cps_node *n = cps_rw_def(w, v);
    return n && n->op == op ? n : NULL;
}

const cps_const *
cps_rw_const(const cps_rw *w, cps_val v)
{
    const cps_node *n = cps_rw_is(w, v, CPS_OP_CONST);
    return n ? &w->m->consts.data[n->cst] : NULL;
}

bool
cps_rw_uniform(const cps_rw *w, cps_val v, double *out)
{
    const cps_node *n = cps_rw_def(w, v);
    while (n && (n->op == CPS_OP_RESHAPE || n->op == CPS_OP_BROADCAST || n->op == CPS_OP_CAST))
        n = cps_rw_def(w, n->in[0]);
    if (!n || n->op != CPS_OP_CONST)
        return false;
    const cps_const *c = &w->m->consts.data[n->cst];
    int64_t count = cps_type_count(&c->type);
    size_t size = cps_dtype_bytes(c->type.dtype);
    if (count < 1 || cps_dtypes[c->type.dtype].kind == 'P')
        return false;
    const uint8_t *p = c->data;
    for (int64_t i = 1; i < count; i++)
        if (memcmp(p, p + (size_t)i * size, size) != 0)
            return false;
    *out = cps_to_f64(c->type.dtype, p);
    // A cast on the way may have rounded.
    if (cps_dtype_is_float(cps_rw_type(w, v)->dtype))
        *out = cps_round_f64(cps_rw_type(w, v)->dtype, *out);
    return true;
}

bool
cps_rw_near(const cps_rw *w, cps_val v, double x)
{
    double u;
    if (!cps_rw_uniform(w, v, &u))
        return false;
    // A constant in a narrow type is as near as its type allows.
    double want = cps_dtype_is_float(cps_rw_type(w, v)->dtype)
                      ? cps_round_f64(cps_rw_type(w, v)->dtype, x)
                      : x;
    return fabs(u - want) <= 1e-6 * fabs(x);
}

/* ---- building ---- */

bool
cps_rw_set(cps_rw *w, cps_val old, cps_val v)
{
    if (!v)
        return false;
    w->map[old] = v;
    cps_value *to = &w->b.f->vals.data[v];
    if (!to->name)
        to->name = w->old->vals.data[old].name;
    return true;
}

static cps_val
fresh(cps_rw *w, cps_type t, const char *name, uint32_t def)
{
    cps_value *v = cps_vec_add(w->m->arena, &w->b.f->vals);
    v->type = t;
    v->name = name;
    v->def = def;
    return w->b.f->vals.n - 1;
}

void
cps_rw_copy(cps_rw *w, const cps_node *n)
{
    cps_arena *a = w->m->arena;
    cps_node *c = cps_vec_add(a, &w->b.f->nodes);
    *c = *n;
    c->in = cps_new_array(a, cps_val, n->nin);
    c->out = cps_new_array(a, cps_val, n->nout);
    for (int i = 0; i < n->nin; i++) {
        c->in[i] = n->in[i] ? w->map[n->in[i]] : 0;
        cps_assert(!n->in[i] || c->in[i]);
    }
    for (int i = 0; i < n->nout; i++) {
        const cps_value *v = &w->old->vals.data[n->out[i]];
        c->out[i] = fresh(w, v->type, v->name, w->b.f->nodes.n);
        w->map[n->out[i]] = c->out[i];
    }
}

cps_val
cps_rw_like(cps_rw *w, const cps_node *like, int nin, const cps_val *in)
{
    cps_val out[2] = {0, 0};
    cps_b_node(&w->b, like->op, nin, in, like->nattr, like->attr, out);
    return out[0];
}

cps_val
cps_rw_reshape(cps_rw *w, cps_val v, int rank, const int64_t *dim)
{
    if (!v)
        return 0;
    cps_type t = cps_type_make(cps_rw_new_type(w, v)->dtype, rank, dim);
    return cps_type_eq(&t, cps_rw_new_type(w, v)) ? v : cps_b_reshape(&w->b, v, rank, dim);
}

cps_val
cps_rw_const_as(cps_rw *w, const cps_const *c, const void *data, cps_type t)
{
    return cps_b_const(&w->b, t, data, c->name);
}

static bool
has_word(const char *list, const char *s, size_t n)
{
    for (const char *p = list; (p = strstr(p, s)) != NULL; p += n)
        if ((p == list || p[-1] == ' ') && (p[n] == ' ' || !p[n]))
            return true;
    return false;
}

const char *
cps_rw_from(cps_rw *w, int n, const cps_node *const *nodes)
{
    cps_buf b = {0};
    cps_buf_puts(&b, "");
    for (int i = 0; i < n; i++) {
        // Provenance may itself be a list: take its names one by one.
        for (const char *s = nodes[i] && nodes[i]->from ? nodes[i]->from : ""; *s;) {
            size_t len = strcspn(s, " ");
            char *word = cps_arena_strndup(w->tmp, s, len);
            if (len && !has_word(b.n ? b.data : "", word, len))
                cps_buf_printf(&b, "%s%s", b.n ? " " : "", word);
            s += len + (s[len] == ' ');
        }
    }
    const char *from = b.n ? cps_arena_strdup(w->m->arena, b.data) : NULL;
    cps_buf_fini(&b);
    return from;
}

bool
cps_rewrite(cps_module *m, cps_func *f, cps_rw_rule rule, void *user, cps_diags *d,
            unsigned *changes)
{
    unsigned errors = cps_diags_errors(d);
    cps_func *g = cps_new(m->arena, cps_func);
    g->name = f->name;
    cps_vec_add(m->arena, &g->vals);
    cps_rw w = {.m = m, .old = f, .user = user, .tmp = cps_arena_create()};
    w.b = (cps_builder){.m = m, .f = g, .d = d};
    w.map = cps_new_array(w.tmp, cps_val, f->vals.n);
    w.uses = cps_new_array(w.tmp, uint32_t, f->vals.n);
    for (uint32_t i = 0; i < f->nodes.n; i++)
        for (int k = 0; k < f->nodes.data[i].nin; k++)
            w.uses[f->nodes.data[i].in[k]]++;
    for (uint32_t i = 0; i < f->outputs.n; i++)
        w.uses[f->outputs.data[i]]++;
    for (uint32_t i = 0; i < f->inputs.n; i++) {
        const cps_value *v = &f->vals.data[f->inputs.data[i]];
        w.map[f->inputs.data[i]] = cps_b_input(&w.b, v->name, v->type);
    }
    for (uint32_t i = 0; i < f->nodes.n; i++) {
        const cps_node *n = &f->nodes.data[i];
        w.b.loc = n->loc;
        w.b.from = n->from;
        if (rule(&w, n)) {
            w.changes++;
            for (int k = 0; k < n->nout; k++)
                cps_assert(!w.uses[n->out[k]] || w.map[n->out[k]]);
        } else {
            cps_rw_copy(&w, n);
        }
    }
    for (uint32_t i = 0; i < f->outputs.n; i++)
        cps_b_output(&w.b, f->output_names.data[i], w.map[f->outputs.data[i]]);
    *f = *g;
    if (changes)
        *changes = w.changes;
    cps_arena_destroy(w.tmp);
    return cps_diags_errors(d) == errors;
}
