/* Leaves against calls: `where`, `param`, `cost`, `layout`, `resources`, `tolerance`, `priority`
 * and `cases` (language 2.18).
 *
 * The top of a leaf's body is run in source order, its `let`s with it, on shapes instead of
 * tensors. A refusal is not an error: it is kept as a reason with its values. A `let` that cannot
 * be worked out (128 / C with C = 200) poisons its name; what depends on it counts as refused. */
#include "frontend/dsl/instance.h"
#include "frontend/dsl/builtin.h"

enum { COMBINATIONS = 512, MAX_PARAMS = 16 };

// One walk over a leaf's clauses.
typedef struct walk {
    cps_dsl_set *s;
    cps_arena *a;       // of what is given back
    cps_arena *scratch; // of values
    const cps_dsl_op *op;
    const cps_dsl_leaf *leaf;
    const cps_instance *i;
    cps_diags *d;       // of the leaf's own errors, or a scratch sink
    cps_eval ev;
    CPS_VEC(const char *) reasons;
    const cps_attr *fixed;
    uint16_t nfixed;
    const uint32_t *choice; // index into the set of each parameter; NULL: the defaults
    cps_param param[MAX_PARAMS];
    uint32_t nparam;
    uint32_t at[MAX_PARAMS]; // index taken
    cps_candidate *c;
} walk;

// A sink for messages that become reasons. Only their texts are read, so the sources it knows are
// empty ones, as many as the places may name.
static cps_diags *
scratch_diags(const cps_dsl_set *s)
{
    cps_diags *d = cps_diags_create();
    uint32_t last = 0;
    for (uint32_t i = 0; i < s->modules.n; i++)
        last = CPS_MAX(last, s->modules.data[i]->ast->source);
    for (uint32_t i = 0; i < last; i++)
        cps_diags_source(d, "", "", 0);
    return d;
}

/* ---- reasons ---- */

static bool
is_literal(cps_expr_p e)
{
    return e->kind == CPS_EX_INT || e->kind == CPS_EX_FLOAT || e->kind == CPS_EX_STR ||
           e->kind == CPS_EX_SET || e->kind == CPS_EX_LIST;
}

static void
put_value(walk *w, cps_buf *b, cps_expr_p e)
{
    cps_cv v;
    if (is_literal(e))
        return;
    uint32_t failed = w->ev.failed;
    if (!cps_eval_expr(&w->ev, e, &v)) {
        w->ev.failed = failed;
        return;
    }
    cps_buf_printf(b, "%s%s = %s", b->n ? ", " : "", cps_ast_expr_text(w->scratch, e),
                   cps_eval_describe(&w->ev, v));
}

// The sides of the comparisons that fail: of `a && b` those parts that are false.
static void
put_failure(walk *w, cps_buf *b, cps_expr_p e)
{
    const cps_ast_binary *n = CPS_AST_AS(binary, e);
    cps_cv v;
    if (e->kind == CPS_EX_BINARY && n->op == CPS_BIN_AND) {
        if (cps_eval_expr(&w->ev, n->a, &v) && v.kind == CPS_V_BOOL && v.u.b)
            put_failure(w, b, n->b);
        else
            put_failure(w, b, n->a);
    } else if (e->kind == CPS_EX_BINARY && n->op == CPS_BIN_OR) {
        put_failure(w, b, n->a);
        put_failure(w, b, n->b);
    } else if (e->kind == CPS_EX_BINARY && cps_ast_bins[n->op].group == 'C') {
        put_value(w, b, n->a);
        put_value(w, b, n->b);
    } else {
        put_value(w, b, e);
    }
}

static void
put_params(walk *w, cps_buf *b)
{
    for (uint32_t k = 0; k < w->nparam; k++) {
        const cps_attr *x = &w->param[k].value[w->at[k]];
        const char *said = cps_arena_printf(w->scratch, "%s = ", x->key);
        if (b->n && strstr(b->data, said))
            continue;
        cps_buf_printf(b, "%s%s", k ? ", " : b->n ? "; " : "", said);
        if (x->kind == CPS_A_INT)
            cps_buf_printf(b, "%lld", (long long)x->i);
        else if (x->kind == CPS_A_FLOAT)
            cps_buf_put_double(b, x->f);
        else if (x->kind == CPS_A_DTYPE)
            cps_buf_puts(b, cps_dtype_name((cps_dtype)x->i));
        else
            cps_buf_puts(b, x->kind == CPS_A_BOOL ? (x->i ? "true" : "false") : x->s);
    }
}

static void CPS_PRINTF(2, 3)
refuse(walk *w, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    const char *s = cps_arena_vprintf(w->a, fmt, ap);
    va_end(ap);
    cps_vec_push(w->a, &w->reasons, s);
}

// The last message of the evaluator, as a reason.
static const char *
last_message(walk *w)
{
    unsigned n = cps_diags_count(w->d);
    return n ? cps_diags_text(w->d, n - 1) : "it cannot be worked out";
}

static void
predicate(walk *w, const cps_ast_clause *k)
{
    const char *text = k->why ? k->why : cps_ast_expr_text(w->scratch, k->a);
    bool ok;
    if (!cps_eval_bool(&w->ev, k->a, "a predicate", &ok)) {
        refuse(w, "%s (%s)", text, last_message(w));
        return;
    }
    if (ok)
        return;
    cps_buf b = {0};
    put_failure(w, &b, k->a);
    put_params(w, &b);
    refuse(w, b.n ? "%s (%s)" : "%s", text, b.n ? b.data : "");
    cps_buf_fini(&b);
}

/* ---- parameters ---- */

static bool
param_attr(walk *w, const cps_ast_clause *k, cps_expr_p at, cps_cv v, cps_attr *out)
{
    const char *key = cps_arena_strdup(w->a, k->name.text);
    switch (v.kind) {
    case CPS_V_INT:
        *out = cps_a_int(key, v.u.i);
        return true;
    case CPS_V_FLOAT:
        *out = cps_a_float(key, v.u.f);
        return true;
    case CPS_V_BOOL:
        *out = cps_a_bool(key, v.u.b);
        return true;
    case CPS_V_DTYPE:
        *out = cps_a_dtype(key, v.u.dt);
        return true;
    case CPS_V_STR:
        *out = cps_a_str(key, cps_arena_strdup(w->a, v.u.s));
        return true;
    default:
        return cps_eval_error(&w->ev, CPS_E2301, at->span, "a parameter cannot be %s",
                              cps_eval_describe(&w->ev, v));
    }
}

static bool
same_attr(const cps_attr *x, const cps_attr *y)
{
    if (x->kind != y->kind)
        return false;
    return x->kind == CPS_A_FLOAT ? x->f == y->f
           : x->kind == CPS_A_STR ? cps_streq(x->s, y->s)
                                  : x->i == y->i;
}

static bool
index_in(const cps_param *p, const cps_attr *x, uint32_t *at)
{
    for (uint32_t i = 0; i < p->n; i++)
        if (same_attr(&p->value[i], x)) {
            *at = i;
            return true;
        }
    return false;
}

static bool
parameter(walk *w, const cps_ast_clause *k)
{
    cps_cv set, dflt;
    cps_attr x;
    cps_param p = {.name = cps_arena_strdup(w->a, k->name.text)};
    if (!cps_eval_expr(&w->ev, k->a, &set) || !cps_eval_expr(&w->ev, k->b, &dflt))
        return false;
    int64_t n = cps_cv_count(set);
    if (set.kind == CPS_V_PIECES || set.kind == CPS_V_PIECE || n < 1 || n > 256)
        return cps_eval_error(&w->ev, CPS_E2301, k->a->span,
                              "a parameter ranges over 1 to 256 values of a range, list or set");
    if (w->nparam == MAX_PARAMS)
        return cps_eval_error(&w->ev, CPS_E2209, k->head.span, "more than %d parameters",
                              MAX_PARAMS);
    cps_attr *v = cps_new_array(w->a, cps_attr, n);
    for (int64_t i = 0; i < n; i++)
        if (!param_attr(w, k, k->a, cps_cv_at(w->scratch, set, i), &v[i]))
            return false;
    p.n = (uint32_t)n;
    p.value = v;
    if (!param_attr(w, k, k->b, dflt, &x))
        return false;
    if (!index_in(&p, &x, &p.dflt))
        return cps_eval_error(&w->ev, CPS_E2307, k->b->span, "the default %s is not in the set",
                              cps_cv_text(w->scratch, dflt));
    // Choice 0 is the default, so that a search meets it first.
    uint32_t pick = w->choice ? w->choice[w->nparam] : 0;
    uint32_t at = pick == 0 ? p.dflt : pick <= p.dflt ? pick - 1 : pick;
    const cps_attr *pin = cps_attr_find(w->fixed, w->nfixed, k->name.text);
    if (pin && !index_in(&p, pin, &at)) {
        at = p.dflt;
        refuse(w, "%s is not among the values of %s", pin->kind == CPS_A_INT
                   ? cps_arena_printf(w->scratch, "%lld", (long long)pin->i) : "the value given",
               k->name.text);
    }
    if (at >= p.n)
        at = p.dflt;
    w->at[w->nparam] = at;
    w->param[w->nparam++] = p;
    return cps_eval_bind(&w->ev, &k->name, cps_cv_at(w->scratch, set, at), 0);
}

/* ---- layouts, resources, costs ---- */

static bool
same_names(const cps_ast_operand *x, const cps_ast_order *o, bool swapped)
{
    if (o->n != x->n || o->space != CPS_SPACE_NONE)
        return false;
    for (uint32_t i = 0; i < o->n; i++) {
        uint32_t k = swapped && o->n > 1 && i + 2 >= o->n ? 2 * o->n - 3 - i : i;
        cps_expr_p p = o->dim[i].extent, q = x->extent[k];
        cps_buf a = {0}, b = {0};
        cps_ast_print_expr(&a, p);
        cps_ast_print_expr(&b, q);
        bool same = cps_streq(a.data, b.data);
        cps_buf_fini(&a);
        cps_buf_fini(&b);
        if (!same)
            return false;
    }
    return true;
}

static void
put_order(cps_buf *b, const cps_ast_order *o)
{
    cps_buf_puts(b, b->n ? " or " : "");
    if (o->space)
        cps_buf_printf(b, "%s ", cps_ast_space_text[o->space]);
    for (uint32_t i = 0; i < o->n; i++) {
        cps_buf_puts(b, i ? ", " : "[");
        cps_ast_print_expr(b, o->dim[i].extent);
    }
    cps_buf_putc(b, ']');
}

// Is the operand stored in an order that the leaf takes?
static void
layouts(walk *w)
{
    for (int k = 0; k < w->i->noperands + w->i->nresults; k++) {
        bool in = k < w->i->noperands;
        const cps_operand *x = in ? &w->i->operand[k] : &w->i->result[k - w->i->noperands];
        const cps_ast_operand *decl =
            in ? &w->op->ast->operand[k] : &w->op->ast->result[k - w->i->noperands];
        const cps_ast_clauses *all = &w->leaf->ast->clauses;
        const cps_ast_clause *found = NULL;
        bool ok = false;
        for (uint32_t n = 0; n < all->n; n++)
            if (all->clause[n]->ckind == CPS_CL_LAYOUT &&
                cps_streq(all->clause[n]->name.text, decl->name.text))
                found = all->clause[n];
        if (!x->present)
            continue;
        for (uint32_t n = 0; found && n < found->n; n++)
            ok |= same_names(decl, &found->order[n], x->order != 0);
        if (!found)
            ok = x->order == 0;
        if (ok)
            continue;
        cps_buf b = {0};
        for (uint32_t n = 0; found && n < found->n; n++)
            put_order(&b, &found->order[n]);
        refuse(w, "%s is stored %s; the leaf takes %s", decl->name.text,
               x->order ? "with its last two axes swapped" : "as declared",
               b.n ? b.data : "the declared order");
        cps_buf_fini(&b);
    }
}

static void
resources(walk *w, const cps_ast_clause *k)
{
    for (uint32_t n = 0; n < k->n; n++) {
        double v;
        if (!cps_eval_num(&w->ev, k->pair[n].value, "a resource", &v)) {
            refuse(w, "resources (%s)", last_message(w));
            continue;
        }
        if (!w->i->target)
            continue;
        bool sbuf = cps_streq(k->pair[n].key.text, "sbuf");
        int64_t has = sbuf ? w->i->target->sbuf_bytes - w->i->target->sbuf_reserve
                           : w->i->target->psum_banks;
        if (v > (double)has)
            refuse(w, "%s needs %g, %s has %lld", k->pair[n].key.text, v, w->i->target->name,
                   (long long)has);
    }
}

static const struct {
    const char *name;
    cps_engine engine;
} engine_terms[] = {
    {"pe", CPS_PE}, {"act", CPS_ACT}, {"pool", CPS_POOL}, {"dve", CPS_DVE}, {"sp", CPS_SP},
};

static bool
cost_terms(cps_eval *ev, const cps_ast_clause *k, cps_costs *out)
{
    for (uint32_t n = 0; n < k->n; n++) {
        const char *key = k->pair[n].key.text;
        double v;
        if (!cps_eval_num(ev, k->pair[n].value, "a cost", &v))
            return false;
        if (v < 0)
            return cps_eval_error(ev, CPS_E2307, k->pair[n].value->span, "a cost of %g", v);
        if (cps_streq(key, "hbm"))
            out->hbm = v;
        else if (cps_streq(key, "link"))
            out->link = v;
        else if (cps_streq(key, "cycles"))
            out->host_cycles = v;
        for (size_t e = 0; e < cps_countof(engine_terms); e++)
            if (cps_streq(key, engine_terms[e].name))
                out->cycles[engine_terms[e].engine] = v;
    }
    return true;
}

/* ---- the walk ---- */

static bool
names_target(const cps_ast_leaf *leaf, const cps_target *t)
{
    for (uint32_t i = 0; i < leaf->ntarget; i++) {
        const char *name = leaf->target[i].text;
        if (!t ? cps_streq(name, "host") : cps_streq(name, t->name))
            return true;
    }
    return false;
}

static void
clause(walk *w, const cps_ast_clause *k)
{
    double v;
    switch (k->ckind) {
    case CPS_CL_WHERE:
        predicate(w, k);
        break;
    case CPS_CL_PARAM:
        if (!parameter(w, k))
            refuse(w, "parameter %s (%s)", k->name.text, last_message(w));
        break;
    case CPS_CL_COST:
        if (!cost_terms(&w->ev, k, &w->c->costs))
            refuse(w, "cost (%s)", last_message(w));
        break;
    case CPS_CL_RESOURCES:
        resources(w, k);
        break;
    case CPS_CL_TOLERANCE:
        if (!cps_eval_num(&w->ev, k->a, "a tolerance", &w->c->rtol) ||
            !cps_eval_num(&w->ev, k->b, "a tolerance", &w->c->atol))
            refuse(w, "tolerance (%s)", last_message(w));
        break;
    case CPS_CL_PRIORITY:
        if (cps_eval_num(&w->ev, k->a, "a priority", &v))
            w->c->priority = (int64_t)v;
        else
            refuse(w, "priority (%s)", last_message(w));
        break;
    case CPS_CL_CASES:
    case CPS_CL_LAYOUT:
    case CPS_CL_COUNT:
        break;
    }
}

// Statements up to the last clause; what follows is the body proper.
static uint32_t
header_length(const cps_ast_body *b)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < b->n; i++)
        if (b->stmt[i]->kind == CPS_ST_CLAUSE)
            n = i + 1;
    return n;
}

static void
begin(walk *w)
{
    cps_eval_config c = {.arena = w->scratch, .diags = w->d, .set = w->s,
                         .module = w->leaf->module, .target = w->i->target,
                         .cores = w->i->cores, .hooks = &cps_dsl_shape_hooks};
    cps_eval_init(&w->ev, &c);
    cps_eval_push(&w->ev);
    if (!cps_dsl_define_call(&w->ev, w->op, w->i))
        refuse(w, "the call does not fit the operator (%s)", last_message(w));
    cps_dsl_define_shapes(&w->ev, w->op, w->i);
    cps_eval_push(&w->ev);
}

// One combination of parameters: fills costs, tolerance, priority and reasons.
static void
run(walk *w)
{
    const cps_ast_body *b = w->leaf->ast->body;
    uint32_t n = header_length(b);
    w->reasons.n = 0;
    w->nparam = 0;
    w->c->costs = (cps_costs){{0}, 0, 0, 0};
    begin(w);
    for (uint32_t i = 0; i < n; i++) {
        if (b->stmt[i]->kind == CPS_ST_CLAUSE)
            clause(w, CPS_AST_AS(clause, b->stmt[i]));
        else if (b->stmt[i]->kind == CPS_ST_LET)
            cps_eval_stmt(&w->ev, b->stmt[i]);
    }
    layouts(w);
    w->c->cost_ns = cps_cost_ns(w->i->target, &w->c->costs, &w->c->bound);
}

static void
take(walk *w, cps_candidate *c)
{
    c->config = NULL;
    c->nconfig = 0;
    for (uint32_t k = 0; k < w->nparam; k++)
        cps_attr_put(w->a, &c->config, &c->nconfig, w->param[k].value[w->at[k]]);
}

// The next combination in the order of the sets; false after the last.
static bool
advance(const walk *w, uint32_t *choice)
{
    for (uint32_t k = w->nparam; k > 0; k--) {
        if (++choice[k - 1] < w->param[k - 1].n)
            return true;
        choice[k - 1] = 0;
    }
    return false;
}

// The defaults are refused: the admitted combination of the lowest cost, first found among equals.
static bool
search(walk *w, cps_candidate *best)
{
    uint32_t choice[MAX_PARAMS] = {0};
    bool found = false;
    w->choice = choice;
    for (int k = 0; k < COMBINATIONS; k++) {
        cps_candidate c = *best;
        cps_arena *old = w->scratch;
        w->scratch = cps_arena_create();
        cps_diags_clear(w->d);
        w->c = &c;
        run(w);
        if (w->reasons.n == 0 && (!found || c.cost_ns < best->cost_ns)) {
            take(w, &c);
            *best = c;
            found = true;
        }
        cps_arena_destroy(w->scratch);
        w->scratch = old;
        if (!advance(w, choice))
            break;
    }
    return found;
}

bool
cps_dsl_candidate(cps_dsl_set *s, cps_arena *a, const cps_dsl_leaf *leaf, const cps_instance *i,
                  const cps_attr *fixed, uint16_t nfixed, cps_candidate *c, cps_diags *d)
{
    const cps_dsl_op *op = cps_dsl_need_op(s, leaf->ast->op.text);
    *c = (cps_candidate){.leaf = cps_arena_strdup(a, leaf->ast->name.text), .rtol = 2e-2,
                         .atol = 1e-5, .bound = ""};
    if (!op || !cps_streq(op->ast->name.text, i->op)) {
        cps_error(d, CPS_E2206, leaf->ast->op.span, "`%s` is no leaf of `%s`",
                  leaf->ast->name.text, i->op);
        return false;
    }
    walk w = {.s = s, .a = a, .op = op, .leaf = leaf, .i = i, .c = c, .fixed = fixed,
              .nfixed = nfixed, .scratch = cps_arena_create(), .d = scratch_diags(s)};
    if (!names_target(leaf->ast, i->target))
        refuse(&w, "the leaf is not for %s", i->target ? i->target->name : "the host");
    else
        run(&w);
    if (w.reasons.n && w.nparam > nfixed) {
        const char **reason = w.reasons.data;
        uint32_t n = w.reasons.n;
        take(&w, c);
        memset(&w.reasons, 0, sizeof w.reasons);
        if (!search(&w, c)) {
            w.reasons.data = reason;
            w.reasons.n = n;
        } else {
            w.reasons.n = 0;
            w.nparam = 0; // the configuration is taken already
        }
    }
    if (w.nparam && !c->config)
        take(&w, c);
    c->ok = w.reasons.n == 0;
    c->nreasons = (int)w.reasons.n;
    c->reason = w.reasons.data;
    cps_arena_destroy(w.scratch);
    cps_diags_destroy(w.d);
    return true;
}

bool
cps_dsl_params(cps_dsl_set *s, cps_arena *a, const cps_dsl_leaf *leaf, const cps_instance *i,
               cps_param **out, uint32_t *n)
{
    const cps_dsl_op *op = cps_dsl_need_op(s, leaf->ast->op.text);
    cps_candidate c = {0};
    walk w = {.s = s, .a = a, .op = op, .leaf = leaf, .i = i, .c = &c,
              .scratch = cps_arena_create(), .d = scratch_diags(s)};
    bool ok = op != NULL;
    if (ok)
        run(&w);
    *n = w.nparam;
    *out = cps_new_array(a, cps_param, w.nparam);
    if (w.nparam)
        memcpy(*out, w.param, w.nparam * sizeof **out);
    cps_arena_destroy(w.scratch);
    cps_diags_destroy(w.d);
    return ok;
}

/* ---- minimum passes of an op ---- */

bool
cps_dsl_minimum(cps_dsl_set *s, cps_arena *a, const cps_dsl_op *op, const cps_instance *i,
                cps_costs *out, cps_diags *d)
{
    (void)a;
    *out = (cps_costs){{0}, 0, 0, 0};
    const cps_ast_body *b = op->ast->body;
    uint32_t n = header_length(b);
    bool any = false, ok = true;
    if (!n)
        return false;
    cps_arena *scratch = cps_arena_create();
    cps_eval ev;
    cps_eval_config c = {.arena = scratch, .diags = d, .set = s, .module = op->module,
                         .target = i->target, .cores = i->cores, .hooks = &cps_dsl_shape_hooks};
    cps_eval_init(&ev, &c);
    cps_eval_push(&ev);
    ok = cps_dsl_define_call(&ev, op, i);
    cps_dsl_define_shapes(&ev, op, i);
    cps_eval_push(&ev);
    for (uint32_t k = 0; k < n && ok; k++) {
        if (b->stmt[k]->kind != CPS_ST_CLAUSE ||
            CPS_AST_AS(clause, b->stmt[k])->ckind != CPS_CL_COST)
            continue;
        any = true;
        ok = cost_terms(&ev, CPS_AST_AS(clause, b->stmt[k]), out);
    }
    cps_eval_flush_trail(&ev);
    cps_arena_destroy(scratch);
    return any && ok;
}

/* ---- cases ---- */

static const char *
attr_text(cps_eval *ev, cps_cv v)
{
    if (v.kind == CPS_V_ENUM)
        return cps_arena_strdup(ev->c.arena, v.u.ev->name);
    return v.kind == CPS_V_STR ? v.u.s : cps_cv_text(ev->c.arena, v);
}

static bool
is_attr(const cps_ast_op *op, cps_sym sym)
{
    for (uint32_t i = 0; i < op->nattr; i++)
        if (op->attr[i].name.sym == sym)
            return true;
    return false;
}

static bool
one_case(cps_eval *ev, const cps_ast_op *op, const cps_ast_case *k, cps_dsl_case *out)
{
    cps_arena *a = ev->c.arena;
    out->dim = cps_new_array(a, const char *, k->n);
    out->size = cps_new_array(a, int64_t, k->n);
    out->attr = cps_new_array(a, const char *, k->n);
    out->text = cps_new_array(a, const char *, k->n);
    out->with = "";
    out->span = k->span;
    for (uint32_t i = 0; i < k->n; i++) {
        const cps_ast_pair *p = &k->pair[i];
        int64_t cores;
        cps_cv v;
        if (is_attr(op, p->key.sym)) {
            if (!cps_eval_expr(ev, p->value, &v))
                return false;
            out->attr[out->nattr] = cps_arena_strdup(a, p->key.text);
            out->text[out->nattr++] = attr_text(ev, v);
        } else if (cps_streq(p->key.text, "dtype")) {
            if (!cps_eval_dtype(ev, p->value, &out->dtype))
                return false;
        } else if (cps_streq(p->key.text, "cores")) {
            if (!cps_eval_int(ev, p->value, "`cores`", &cores))
                return false;
            out->cores = (int)cores;
        } else if (cps_streq(p->key.text, "with")) {
            if (!cps_eval_expr(ev, p->value, &v))
                return false;
            if (v.kind != CPS_V_STR)
                return cps_eval_error(ev, CPS_E2301, p->value->span,
                                      "`with` names optional operands in a string, not %s",
                                      cps_eval_describe(ev, v));
            out->with = v.u.s;
        } else {
            out->dim[out->ndim] = cps_arena_strdup(a, p->key.text);
            if (!cps_eval_int(ev, p->value, "a dimension", &out->size[out->ndim]))
                return false;
            out->ndim++;
        }
    }
    return true;
}

bool
cps_dsl_cases(cps_dsl_set *s, cps_arena *a, const cps_dsl_leaf *leaf, cps_dsl_case **out,
              uint32_t *n, cps_diags *d)
{
    const cps_dsl_op *op = cps_dsl_need_op(s, leaf->ast->op.text);
    const cps_ast_clauses *all = &leaf->ast->clauses;
    *out = NULL;
    *n = 0;
    if (!op)
        return false;
    cps_eval ev;
    cps_eval_config c = {.arena = a, .diags = d, .set = s, .module = leaf->module};
    cps_eval_init(&ev, &c);
    for (uint32_t i = 0; i < all->n; i++) {
        const cps_ast_clause *k = all->clause[i];
        if (k->ckind != CPS_CL_CASES)
            continue;
        *out = cps_new_array(a, cps_dsl_case, k->n);
        *n = k->n;
        for (uint32_t j = 0; j < k->n; j++)
            if (!one_case(&ev, op->ast, &k->cases[j], &(*out)[j]))
                return false;
    }
    return true;
}

/* ---- digests ---- */

static void
hash_file(const cps_dsl_set *s, cps_hasher *h, const cps_dsl_module *m)
{
    size_t n;
    const char *text = cps_diags_source_text(s->diags, m->ast->source, &n);
    cps_hash_str(h, 1, m->path);
    cps_hash_u64(h, 2, n);
    cps_hash_bytes(h, text, n);
}

cps_digest
cps_dsl_leaf_digest(const cps_dsl_set *s, const cps_dsl_leaf *leaf)
{
    cps_hasher h;
    cps_map seen;
    cps_arena *scratch = cps_arena_create();
    cps_map_init(&seen, scratch);
    cps_hash_init(&h, "copse leaf");
    cps_hash_str(&h, 0, leaf->ast->name.text);
    // Breadth first over `use`, each file once: the map keeps the order of insertion.
    *cps_map_at_str(&seen, leaf->module->path, NULL) = (uintptr_t)leaf->module;
    for (uint32_t i = 0; i < seen.n; i++) {
        const cps_dsl_module *m = (const cps_dsl_module *)(uintptr_t)seen.entry[i].value;
        hash_file(s, &h, m);
        for (uint32_t k = 0; k < m->uses.n; k++)
            *cps_map_at_str(&seen, m->uses.data[k]->path, NULL) = (uintptr_t)m->uses.data[k];
    }
    cps_arena_destroy(scratch);
    return cps_hash_final(&h);
}
