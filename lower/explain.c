/* Why each call got its leaf, as text for people or as JSON: one entry for each distinct
 * instance, with the number of calls, every candidate, its modelled time or all its refusals.
 */
#include "lower/pass.h"

#include "runtime/base/json.h"

#include <inttypes.h>

typedef struct entry {
    cps_instance inst;
    const char *text, *from;
    const char *kernel; /* the text of an operator that lowering wrote, or NULL */
    const cps_decision *pick;
    unsigned calls, n;
    cps_candidate *cand;
} entry;

typedef CPS_VEC(entry) entries;

static bool
collect(const cps_module *m, const cps_lower_opts *o, cps_arena *a, entries *e, cps_diags *d)
{
    cps_map seen;
    cps_map_init(&seen, a);
    for (uint32_t i = 0; i < m->funcs.n; i++) {
        const cps_func *f = m->funcs.data[i];
        for (uint32_t k = 0; k < f->nodes.n; k++) {
            const cps_node *n = &f->nodes.data[k];
            entry x = {.from = n->from, .pick = n->pick};
            const cps_attr *kernel = cps_node_attr(n, "kernel");
            if (n->op != CPS_OP_CALL)
                continue;
            x.kernel = kernel && kernel->kind == CPS_A_STR ? kernel->s : NULL;
            if (!cps_lower_instance(o, a, f, n, &x.inst, d))
                return false;
            cps_buf b = {0};
            cps_instance_print(&x.inst, &b);
            x.text = cps_arena_strdup(a, b.data);
            cps_buf_fini(&b);
            bool fresh;
            uint64_t *at = cps_map_at_str(&seen, x.text, &fresh);
            if (fresh) {
                x.n = o->registry->candidates(o->registry->self, a, &x.inst, &x.cand, d);
                cps_vec_push(a, e, x);
                *at = e->n;
            }
            e->data[*at - 1].calls++;
        }
    }
    return true;
}

static bool
taken(const entry *x, const cps_candidate *c)
{
    return x->pick && x->pick->leaf && strcmp(x->pick->leaf, c->leaf) == 0;
}

static void
config_text(const cps_attr *x, uint32_t n, cps_buf *out)
{
    for (uint32_t i = 0; i < n; i++) {
        cps_buf_puts(out, i ? " " : " with ");
        cps_attr_print(&x[i], out);
    }
}

// The comment that a written kernel begins with: why it was, and of what. `before` and `between` its lines.
static void
reason_text(const char *s, const char *before, const char *between, cps_buf *out)
{
    const char *gap = "";
    while (strncmp(s, "// ", 3) == 0) {
        size_t n = strcspn(s, "\n");
        cps_buf_printf(out, "%s%s%.*s", gap, before, (int)(n - 3), s + 3);
        gap = between;
        s += n + (s[n] == '\n');
    }
}

static void
print_text(const entries *e, cps_buf *out)
{
    for (uint32_t i = 0; i < e->n; i++) {
        const entry *x = &e->data[i];
        cps_buf_puts(out, x->text);
        if (x->calls > 1)
            cps_buf_printf(out, "  (%u calls)", x->calls);
        cps_buf_putc(out, '\n');
        if (x->from)
            cps_buf_printf(out, "  made of %s\n", x->from);
        if (x->kernel && strncmp(x->kernel, "// ", 3) == 0) {
            reason_text(x->kernel, "  ", "\n", out);
            cps_buf_putc(out, '\n');
        }
        for (unsigned k = 0; k < x->n; k++) {
            const cps_candidate *c = &x->cand[k];
            if (c->ok) {
                cps_buf_printf(out, "  %c %s: %" PRId64 " ns, bound by %s",
                               taken(x, c) ? '*' : '-', c->leaf, c->cost_ns,
                               c->bound ? c->bound : "nothing");
                if (taken(x, c) && x->pick->nconfig)
                    config_text(x->pick->config, x->pick->nconfig, out);
                else
                    config_text(c->config, c->nconfig, out);
                if (taken(x, c) && x->pick->why)
                    cps_buf_printf(out, " (%s)", x->pick->why);
                cps_buf_putc(out, '\n');
                continue;
            }
            for (int r = 0; r < c->nreasons; r++)
                cps_buf_printf(out, "  x %s: %s\n", c->leaf, c->reason[r]);
        }
        if (!x->n)
            cps_buf_puts(out, "  no leaf claims the target\n");
    }
}

static void
print_json(const entries *e, cps_buf *out)
{
    cps_jsonw w;
    cps_jsonw_init(&w, out);
    cps_jsonw_arr(&w, false);
    for (uint32_t i = 0; i < e->n; i++) {
        const entry *x = &e->data[i];
        cps_jsonw_obj(&w, false);
        cps_jsonw_key(&w, "call");
        cps_jsonw_str(&w, x->text);
        cps_jsonw_key(&w, "op");
        cps_jsonw_str(&w, x->inst.op);
        cps_jsonw_key(&w, "calls");
        cps_jsonw_int(&w, x->calls);
        cps_jsonw_key(&w, "from");
        cps_jsonw_str(&w, x->from ? x->from : "");
        if (x->kernel) {
            cps_buf why = {0};
            reason_text(x->kernel, "", " ", &why);
            cps_jsonw_key(&w, "region");
            cps_jsonw_str(&w, why.n ? why.data : "");
            cps_buf_fini(&why);
        }
        cps_jsonw_key(&w, "leaf");
        if (x->pick && x->pick->leaf)
            cps_jsonw_str(&w, x->pick->leaf);
        else
            cps_jsonw_null(&w);
        cps_jsonw_key(&w, "why");
        cps_jsonw_str(&w, x->pick && x->pick->why ? x->pick->why : "");
        cps_jsonw_key(&w, "candidates");
        cps_jsonw_arr(&w, false);
        for (unsigned k = 0; k < x->n; k++) {
            const cps_candidate *c = &x->cand[k];
            cps_jsonw_obj(&w, true);
            cps_jsonw_key(&w, "leaf");
            cps_jsonw_str(&w, c->leaf);
            cps_jsonw_key(&w, "ok");
            cps_jsonw_bool(&w, c->ok);
            if (c->ok) {
                cps_jsonw_key(&w, "cost_ns");
                cps_jsonw_int(&w, c->cost_ns);
                cps_jsonw_key(&w, "bound");
                cps_jsonw_str(&w, c->bound ? c->bound : "");
            }
            cps_jsonw_key(&w, "reasons");
            cps_jsonw_arr(&w, true);
            for (int r = 0; !c->ok && r < c->nreasons; r++)
                cps_jsonw_str(&w, c->reason[r]);
            cps_jsonw_end_arr(&w);
            cps_jsonw_end_obj(&w);
        }
        cps_jsonw_end_arr(&w);
        cps_jsonw_end_obj(&w);
    }
    cps_jsonw_end_arr(&w);
    cps_jsonw_done(&w);
}

bool
cps_lower_explain(const cps_module *m, const cps_lower_opts *o, bool json, cps_buf *out,
                  cps_diags *d)
{
    cps_arena *a = cps_arena_create();
    entries e = {0};
    bool ok = collect(m, o, a, &e, d);
    if (ok)
        json ? print_json(&e, out) : print_text(&e, out);
    cps_arena_destroy(a);
    return ok;
}
