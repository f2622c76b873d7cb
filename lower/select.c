/* Selection: for every call the registry's candidates, and the one that is taken.
 *
 * Equal instances are decided once. A call that no leaf takes is not an end: its operator's
 * body, a graph of base ops, stands in for it and is raised and mapped again, without making
 * the refused instance a second time; so an attention that no leaf takes becomes products and a
 * softmax. What that means to the user is the fallback policy. When even the parts have no
 * leaf, the error names the calls this began with and every reason of every candidate.
 * Decisions only depend on the instance; later passes read them. */
#include "lower/pass.h"

#include "ir/pass.h"

#include <inttypes.h>

#define MAX_ROUNDS 8

typedef struct decided {
    cps_decision *pick; // NULL: no leaf takes it
    unsigned n;
    cps_candidate *cand;
    unsigned calls;
    const char *from;
} decided;

typedef struct state {
    cps_map at; // instance text (and forced leaf with parameters) -> index + 1 of all
    CPS_VEC(decided) all;
} state;

// The parameters that a decision of the graph's text names, where they are still those of the leaf's text.
static void
take_config(cps_lower *l, cps_module *m, const cps_instance *inst, const cps_decision *said, cps_candidate *k)
{
    cps_registry *r = l->o->registry;
    cps_candidate c;
    if (!said->nconfig)
        return;
    cps_digest text = r->digest(r->self, k->leaf);
    if (!cps_digest_eq(&said->digest, &text))
        return;
    if (r->candidate(r->self, m->arena, inst, k->leaf, said->config, (uint16_t)said->nconfig, &c, l->d) && c.ok)
        *k = c;
}

static bool
decide(cps_lower *l, cps_module *m, const cps_instance *inst, const cps_decision *said, decided *out)
{
    cps_registry *r = l->o->registry;
    const char *why = NULL, *force = said ? said->leaf : NULL;
    // An arena of the module: the decision's texts live as long as the graph.
    out->n = r->candidates(r->self, m->arena, inst, &out->cand, l->d);
    if (cps_diags_errors(l->d))
        return false;
    int k = cps_registry_pick(out->cand, out->n, force, &why);
    if (k < 0)
        return true;
    if (said)
        take_config(l, m, inst, said, &out->cand[k]);
    const cps_candidate *c = &out->cand[k];
    out->pick = cps_new(m->arena, cps_decision);
    *out->pick = (cps_decision){.leaf = c->leaf,
                                .why = why,
                                .cost_ns = c->cost_ns,
                                .on = inst->target ? inst->target->name : "host",
                                .digest = r->digest(r->self, c->leaf),
                                .nconfig = c->nconfig,
                                .config = c->config};
    return true;
}

// Sets the decision of every call that has a leaf; counts those that have none.
static bool
decide_all(cps_lower *l, cps_module *m, state *s, unsigned *left)
{
    *left = 0;
    for (uint32_t i = 0; i < m->funcs.n; i++) {
        cps_func *f = m->funcs.data[i];
        for (uint32_t k = 0; k < f->nodes.n; k++) {
            cps_node *n = &f->nodes.data[k];
            cps_instance inst;
            if (n->op != CPS_OP_CALL)
                continue;
            if (!cps_lower_instance(l->o, l->arena, f, n, &inst, l->d))
                return false;
            const cps_decision *said = n->pick;
            cps_buf b = {0};
            cps_instance_print(&inst, &b);
            if (said)
                cps_buf_printf(&b, " by %s", said->leaf);
            for (uint32_t q = 0; said && q < said->nconfig; q++) {
                cps_buf_putc(&b, ' ');
                cps_attr_print(&said->config[q], &b);
            }
            bool fresh;
            uint64_t *at = cps_map_at_str(&s->at, b.data, &fresh);
            cps_buf_fini(&b);
            if (fresh) {
                decided d = {.from = n->from};
                if (!decide(l, m, &inst, said, &d))
                    return false;
                cps_vec_push(l->arena, &s->all, d);
                *at = s->all.n;
            }
            decided *d = &s->all.data[*at - 1];
            d->calls++;
            n->pick = d->pick;
            *left += !d->pick;
        }
    }
    return true;
}

/* ---- taking apart ---- */

static const char *
text_of(cps_lower *l, const cps_func *f, const cps_node *n)
{
    cps_instance inst;
    cps_buf b = {0};
    if (!cps_lower_instance(l->o, l->arena, f, n, &inst, l->quiet))
        cps_bug("an instance was inferred and then was not");
    cps_instance_print(&inst, &b);
    const char *s = cps_arena_strdup(l->arena, b.data);
    cps_buf_fini(&b);
    return s;
}

// Copies the body's nodes into the new function; its inputs are the call's operands.
static bool
inline_body(cps_rw *w, const cps_node *n, const cps_module *bm, const cps_func *body)
{
    cps_arena *a = w->m->arena;
    cps_val *map = cps_new_array(w->tmp, cps_val, body->vals.n);
    uint32_t k = 0;
    for (int i = 0; i < n->nin; i++)
        if (n->in[i] && k < body->inputs.n)
            map[body->inputs.data[k++]] = cps_rw_new(w, n->in[i]);
    cps_assert(k == body->inputs.n);
    w->b.from = n->from;
    for (uint32_t i = 0; i < body->nodes.n; i++) {
        const cps_node *x = &body->nodes.data[i];
        cps_val in[256], out[8] = {0};
        for (int j = 0; j < x->nin; j++)
            in[j] = x->in[j] ? map[x->in[j]] : 0;
        bool ok = true;
        if (x->op == CPS_OP_CONST) {
            const cps_const *c = &bm->consts.data[x->cst];
            size_t bytes = (size_t)cps_type_bytes(&c->type);
            void *data = cps_arena_raw(a, CPS_MAX(bytes, 1));
            memcpy(data, c->data, bytes);
            out[0] = cps_b_const(&w->b, c->type, data, c->name);
            ok = out[0] != 0;
        } else if (x->op == CPS_OP_CALL) {
            cps_type types[8];
            cps_assert(x->nout <= 8);
            for (int j = 0; j < x->nout; j++)
                types[j] = body->vals.data[x->out[j]].type;
            ok = cps_b_call(&w->b, cps_arena_strdup(a, x->callee), x->nin, in, x->nattr,
                            x->attr, x->nout, types, out);
        } else {
            ok = cps_b_node(&w->b, x->op, x->nin, in, x->nattr, x->attr, out);
        }
        if (!ok)
            return false;
        for (int j = 0; j < x->nout; j++)
            map[x->out[j]] = out[j];
    }
    for (int i = 0; i < n->nout; i++)
        if (!cps_rw_set(w, n->out[i], map[body->outputs.data[i]]))
            return false;
    return true;
}

static bool
apart_rule(cps_rw *w, const cps_node *n)
{
    cps_lower *l = cps_lower_of(w);
    cps_instance inst;
    if (n->op != CPS_OP_CALL || n->pick)
        return false;
    if (!cps_lower_instance(l->o, w->tmp, w->old, n, &inst, l->d))
        return false;
    cps_module *bm = cps_module_new(w->tmp, n->callee);
    const cps_func *body = l->o->registry->body(l->o->registry->self, bm, &inst, l->d);
    return body && inline_body(w, n, bm, body);
}

static void
reasons(cps_lower *l, const decided *d)
{
    for (unsigned i = 0; i < d->n; i++)
        for (int k = 0; k < CPS_MAX(d->cand[i].nreasons, 1); k++)
            cps_note(l->d, CPS_NOSPAN, "%s: %s", d->cand[i].leaf,
                     k < d->cand[i].nreasons ? d->cand[i].reason[k] : "refused");
    if (!d->n)
        cps_note(l->d, CPS_NOSPAN, "no leaf claims the target");
    if (d->from)
        cps_note(l->d, CPS_NOSPAN, "made of %s", d->from);
}

// Says what becomes of the instances without a leaf; false when that is an error.
static bool
report(cps_lower *l, const state *s, uint32_t first, cps_code code)
{
    for (uint32_t i = first; i < s->all.n; i++) {
        const decided *d = &s->all.data[i];
        if (d->pick)
            continue;
        cps_error(l->d, code, CPS_NOSPAN, "no leaf takes %s%s", s->at.entry[i].str,
                  code == CPS_W7406 ? "; it is taken apart" : "");
        reasons(l, d);
    }
    return !cps_diags_errors(l->d);
}

bool
cps_lower_leaves(cps_lower *l, cps_module *m)
{
    if (!l->o->registry)
        return true;
    state s = {0};
    cps_map_init(&s.at, l->arena);
    uint32_t begun = 0; // instances decided before this round
    for (int round = 0; round < MAX_ROUNDS; round++) {
        unsigned left;
        if (!decide_all(l, m, &s, &left))
            return false;
        if (!left)
            return true;
        if (l->o->fallback == CPS_FALLBACK_ERROR)
            return report(l, &s, begun, CPS_E7405);
        if (l->o->fallback == CPS_FALLBACK_WARN && !report(l, &s, begun, CPS_W7406))
            return false;
        for (uint32_t i = 0; i < m->funcs.n; i++)
            for (uint32_t k = 0; k < m->funcs.data[i]->nodes.n; k++) {
                const cps_node *n = &m->funcs.data[i]->nodes.data[k];
                if (n->op == CPS_OP_CALL && !n->pick)
                    cps_map_at_str(&l->banned, text_of(l, m->funcs.data[i], n), NULL);
            }
        if (!cps_lower_rewrite(l, m, apart_rule, NULL) || !cps_lower_canon(l, m) ||
            !cps_lower_raise(l, m) || !cps_lower_canon(l, m) || !cps_lower_regions(l, m) ||
            !cps_lower_canon(l, m))
            return false;
        cps_diags *d = l->d; // what map misses is told in terms of the calls
        l->d = cps_diags_create();
        bool ok = cps_lower_map(l, m);
        cps_diags_destroy(l->d);
        l->d = d;
        if (!ok)
            return report(l, &s, begun, CPS_E7405);
        if (!cps_lower_canon(l, m))
            return false;
        begun = s.all.n;
    }
    return report(l, &s, begun, CPS_E7405);
}
