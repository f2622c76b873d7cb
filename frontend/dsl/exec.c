/* Statements of the kernel language at compile time: let, var, if, for, return, assert and calls
 * of fns. What moves or computes tiles goes to the driver's `stmt` hook.
 *
 * A statement that fails has reported why; the names it would have declared are poisoned and the
 * next statement runs, so that one trace shows several errors. */
#include "frontend/dsl/builtin.h"

enum { FN_DEPTH = 64 };

static cps_flow
hook_stmt(cps_eval *ev, const cps_ast_stmt *s)
{
    return ev->c.hooks && ev->c.hooks->stmt ? ev->c.hooks->stmt(ev, s) : CPS_FLOW_PASS;
}

static const char *const kind_name[CPS_ST_COUNT] = {
    [CPS_ST_LET] = "`let`",       [CPS_ST_VAR] = "`var`",       [CPS_ST_STORE] = "storage",
    [CPS_ST_ASSIGN] = "an assignment", [CPS_ST_CALL] = "a call as a statement",
    [CPS_ST_LABEL] = "a label",   [CPS_ST_IF] = "`if`",         [CPS_ST_FOR] = "`for`",
    [CPS_ST_LOOP] = "`loop`",     [CPS_ST_WHILE] = "`while`",   [CPS_ST_WHEN] = "`when`",
    [CPS_ST_STAGE] = "`stage`",   [CPS_ST_BREAK] = "`break`",   [CPS_ST_CONTINUE] = "`continue`",
    [CPS_ST_RETURN] = "`return`", [CPS_ST_ASSERT] = "`assert`", [CPS_ST_CLAUSE] = "a clause",
};

// What only the driver can do.
static cps_flow
by_driver(cps_eval *ev, const cps_ast_stmt *s)
{
    cps_flow f = hook_stmt(ev, s);
    if (f != CPS_FLOW_PASS)
        return f;
    cps_eval_error(ev, CPS_E2309, s->span, "%s has no meaning here", kind_name[s->kind]);
    return CPS_FLOW_FAIL;
}

/* ---- poison ---- */

static void
poison(cps_eval *ev, const cps_ast_name *name)
{
    cps_eval_bind(ev, name, (cps_cv){.kind = CPS_V_POISON}, CPS_BIND_VAR);
}

// Every name the statement would have left in the running scope.
static void
poison_names(cps_eval *ev, const cps_ast_stmt *s)
{
    switch (s->kind) {
    case CPS_ST_LET:
    case CPS_ST_VAR:
        for (uint32_t i = 0; i < CPS_AST_AS(let, s)->n; i++)
            poison(ev, &CPS_AST_AS(let, s)->name[i]);
        break;
    case CPS_ST_STORE:
        poison(ev, &CPS_AST_AS(store, s)->name);
        break;
    case CPS_ST_LABEL:
        poison_names(ev, CPS_AST_AS(label, s)->stmt);
        break;
    case CPS_ST_STAGE:
        for (uint32_t i = 0; i < CPS_AST_AS(stage, s)->body->n; i++)
            poison_names(ev, CPS_AST_AS(stage, s)->body->stmt[i]);
        break;
    case CPS_ST_IF: {
        const cps_ast_if *n = CPS_AST_AS(if, s);
        for (uint32_t i = 0; i < n->yes->n; i++)
            poison_names(ev, n->yes->stmt[i]);
        for (uint32_t i = 0; n->no && i < n->no->n; i++)
            poison_names(ev, n->no->stmt[i]);
        break;
    }
    default:
        break;
    }
}

/* ---- let, var, assignment to a var ---- */

static cps_flow
let(cps_eval *ev, const cps_ast_let *n)
{
    uint32_t flags = n->head.kind == CPS_ST_VAR ? CPS_BIND_VAR : 0;
    cps_cv v;
    if (!cps_eval_expr(ev, n->value, &v))
        return CPS_FLOW_FAIL;
    if (v.kind == CPS_V_NONE) {
        cps_eval_error(ev, CPS_E2301, n->value->span, "this has no value");
        return CPS_FLOW_FAIL;
    }
    if (!n->tuple)
        return cps_eval_bind(ev, &n->name[0], v, flags) ? CPS_FLOW_NEXT : CPS_FLOW_FAIL;
    if ((v.kind != CPS_V_TUPLE && v.kind != CPS_V_LIST) || v.u.seq->n != n->n) {
        cps_eval_error(ev, CPS_E2301, n->value->span, "%u names want a tuple of %u, not %s", n->n,
                       n->n, cps_eval_describe(ev, v));
        return CPS_FLOW_FAIL;
    }
    bool ok = true;
    for (uint32_t i = 0; i < n->n; i++)
        ok &= cps_eval_bind(ev, &n->name[i], v.u.seq->item[i], flags);
    return ok ? CPS_FLOW_NEXT : CPS_FLOW_FAIL;
}

static cps_flow
assign_var(cps_eval *ev, const cps_ast_assign *n, cps_sym sym)
{
    cps_cv v, old = cps_eval_find(ev, sym)->v;
    if (n->set == CPS_SET_ARROW || n->set == CPS_SET_ARROW_ADD) {
        cps_eval_error(ev, CPS_E2301, n->set_span, "an arrow wants storage on its left");
        return CPS_FLOW_FAIL;
    }
    if (n->marks.n) {
        cps_eval_error(ev, CPS_E2212, n->marks.mark[0].span,
                       "marks have no meaning where a var is set");
        return CPS_FLOW_FAIL;
    }
    if (!cps_eval_expr(ev, n->value, &v))
        return CPS_FLOW_FAIL;
    cps_ast_bin op = cps_ast_sets[n->set].op;
    if (op != CPS_BIN_NONE && !cps_eval_binop(ev, NULL, op, n->set_span, old, v, &v))
        return CPS_FLOW_FAIL;
    cps_eval_find(ev, sym)->v = v;
    return CPS_FLOW_NEXT;
}

static cps_flow
assign(cps_eval *ev, const cps_ast_assign *n)
{
    if (n->dst->kind != CPS_EX_NAME)
        return by_driver(ev, &n->head);
    cps_ast_name name = CPS_AST_AS(ref, n->dst)->name;
    const cps_binding *b = cps_eval_find(ev, name.sym);
    if (!b) {
        cps_eval_error(ev, CPS_E2201, name.span, "`%s` is not declared", name.text);
        cps_help(ev->c.diags, "`=` writes to existing storage; a declaration in a branch that was "
                              "not taken declares nothing");
        return CPS_FLOW_FAIL;
    }
    if (b->v.kind == CPS_V_POISON)
        return CPS_FLOW_FAIL;
    if (b->flags & CPS_BIND_VAR)
        return assign_var(ev, n, name.sym);
    if (b->v.kind != CPS_V_OPAQUE && b->v.kind != CPS_V_ABSENT && !(b->flags & CPS_BIND_STORAGE)) {
        cps_eval_error(ev, CPS_E2301, name.span, "`%s` is %s and cannot change", name.text,
                       cps_eval_describe(ev, b->v));
        cps_help(ev->c.diags, "what changes is declared by `var`");
        return CPS_FLOW_FAIL;
    }
    return by_driver(ev, &n->head);
}

/* ---- control ---- */

static cps_flow
conditional(cps_eval *ev, const cps_ast_if *n)
{
    bool c;
    if (!cps_eval_bool(ev, n->cond, "the condition of `if`", &c))
        return CPS_FLOW_FAIL;
    const cps_ast_body *b = c ? n->yes : n->no;
    return b ? cps_eval_body(ev, b, false) : CPS_FLOW_NEXT;
}

// Iterations lo..hi of the count are this core's.
static void
core_share(cps_eval *ev, const cps_ast_bind *b, int64_t count, int64_t *lo, int64_t *hi)
{
    *lo = 0;
    *hi = count;
    if (!b->across.sym)
        return;
    ev->split = true;
    int64_t each = count / ev->c.cores, more = count % ev->c.cores;
    *lo = each * ev->c.core + CPS_MIN(more, ev->c.core);
    *hi = *lo + each + (ev->c.core < more);
}

static cps_flow run_bind(cps_eval *ev, const cps_ast_for *n, uint32_t k);

static cps_flow
iteration(cps_eval *ev, const cps_ast_for *n, uint32_t k, int64_t i, int64_t count, cps_cv v)
{
    const cps_ast_bind *b = &n->bind[k];
    const cps_eval_hooks *h = ev->c.hooks;
    uint32_t mark = cps_eval_push(ev);
    cps_vec_push(ev->c.arena, &ev->trail,
                 ((cps_trail){.bind = b, .v = v, .i = i, .count = count}));
    cps_flow f = CPS_FLOW_NEXT;
    if (h && h->for_iter)
        f = h->for_iter(ev, n, k, i, v);
    if (f == CPS_FLOW_NEXT || f == CPS_FLOW_PASS) {
        cps_eval_bind(ev, &b->name, v, 0);
        f = k + 1 < n->n ? run_bind(ev, n, k + 1) : cps_eval_body(ev, n->body, false);
    }
    cps_eval_flush_trail(ev);
    if (h && h->for_next)
        h->for_next(ev, n, k, i);
    ev->trail.n--;
    cps_eval_pop(ev, mark);
    return f;
}

static cps_flow
run_bind(cps_eval *ev, const cps_ast_for *n, uint32_t k)
{
    const cps_ast_bind *b = &n->bind[k];
    const cps_eval_hooks *h = ev->c.hooks;
    cps_cv range;
    if (!cps_eval_expr(ev, b->range, &range))
        return CPS_FLOW_FAIL;
    int64_t count = cps_cv_count(range), lo, hi;
    for (uint32_t i = 0; b->across.sym && i < ev->trail.n; i++)
        if (ev->trail.data[i].bind && ev->trail.data[i].bind->across.sym) {
            cps_eval_error(ev, CPS_E2209, b->across.span, "a loop across cores in a loop across cores: each core would do a part of its part only");
            cps_help(ev->c.diags, "let one of the loops run across cores");
            return CPS_FLOW_FAIL;
        }
    if (count < 0) {
        cps_eval_error(ev, CPS_E2301, b->range->span, "a loop runs through a range or a list, "
                                                      "not %s",
                       cps_eval_describe(ev, range));
        if (range.kind == CPS_V_INT)
            cps_help(ev->c.diags, "write 0..%lld", (long long)range.u.i);
        else if (range.kind == CPS_V_OPAQUE)
            cps_help(ev->c.diags, "`loop %s in a..b` runs on the device", b->name.text);
        return CPS_FLOW_FAIL;
    }
    core_share(ev, b, count, &lo, &hi);
    cps_flow f = CPS_FLOW_NEXT;
    if (h && h->for_begin)
        f = h->for_begin(ev, n, k, hi - lo);
    if (f != CPS_FLOW_NEXT && f != CPS_FLOW_PASS)
        return f;
    bool failed = false;
    f = CPS_FLOW_NEXT;
    for (int64_t i = lo; i < hi; i++) {
        if (!cps_eval_step(ev, b->span)) {
            failed = true;
            break;
        }
        cps_cv v = cps_cv_at(ev->c.arena, range, i);
        if (v.kind == CPS_V_PIECE) { // first and last are those of this core's share
            cps_piece *own = cps_new(ev->c.arena, cps_piece);
            *own = *v.u.piece;
            own->before = lo;
            own->after = count - hi;
            v.u.piece = own;
        }
        f = iteration(ev, n, k, i - lo, hi - lo, v);
        failed |= f == CPS_FLOW_FAIL;
        if (f == CPS_FLOW_BREAK || f == CPS_FLOW_RETURN || ev->stopped)
            break;
    }
    if (h && h->for_end)
        h->for_end(ev, n, k);
    if (failed)
        return CPS_FLOW_FAIL;
    return f == CPS_FLOW_RETURN ? f : CPS_FLOW_NEXT;
}

static cps_flow
give_back(cps_eval *ev, const cps_ast_jump *n)
{
    ev->ret = (cps_cv){.kind = CPS_V_NONE};
    if (n->value && !cps_eval_expr(ev, n->value, &ev->ret)) {
        ev->ret = (cps_cv){.kind = CPS_V_POISON};
        return CPS_FLOW_RETURN;
    }
    return CPS_FLOW_RETURN;
}

static cps_flow
assertion(cps_eval *ev, const cps_ast_assert *n)
{
    bool c;
    if (!cps_eval_bool(ev, n->cond, "an assertion", &c))
        return CPS_FLOW_FAIL;
    if (c)
        return CPS_FLOW_NEXT;
    cps_eval_error(ev, CPS_E2308, n->cond->span, "%s", n->why);
    return CPS_FLOW_FAIL;
}

/* ---- fns ---- */

static cps_flow
call(cps_eval *ev, const cps_ast_callst *n)
{
    const cps_dsl_def *fn = cps_eval_callee(ev, n->call);
    if (!fn)
        return by_driver(ev, &n->head);
    if (n->marks.n) {
        cps_eval_error(ev, CPS_E2212, n->marks.mark[0].span,
                       "marks belong to the statements of the fn, not to its call");
        return CPS_FLOW_FAIL;
    }
    cps_arg *arg = cps_new_array(ev->c.arena, cps_arg, n->call->n);
    cps_cv out;
    if (!cps_eval_args(ev, n->call, arg) ||
        !cps_eval_fn(ev, fn, n->call, arg, n->call->n, &out))
        return CPS_FLOW_FAIL;
    return CPS_FLOW_NEXT;
}

// The value of parameter k: by name, by position, or its default (which sees earlier parameters).
static bool
parameter(cps_eval *ev, const cps_ast_fn *fn, uint32_t k, const cps_ast_call *at,
          const cps_arg *arg, uint32_t n, cps_cv *out)
{
    uint32_t place = 0;
    for (uint32_t i = 0; i < n; i++) {
        bool named = arg[i].src && arg[i].src->name.sym;
        if (named ? arg[i].src->name.sym == fn->param[k].name.sym : place++ == k) {
            *out = arg[i].v;
            return out->kind != CPS_V_POISON;
        }
    }
    if (fn->param[k].dflt)
        return cps_eval_expr(ev, fn->param[k].dflt, out);
    return cps_eval_error(ev, CPS_E2211, at->head.span, "`%s` wants a value for `%s`",
                          fn->name.text, fn->param[k].name.text);
}

static bool
fits(cps_eval *ev, const cps_ast_fn *fn, const cps_ast_call *at, const cps_arg *arg, uint32_t n)
{
    uint32_t plain = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (!arg[i].src || !arg[i].src->name.sym) {
            plain++;
            continue;
        }
        cps_ast_name name = arg[i].src->name;
        uint32_t k = 0;
        while (k < fn->n && fn->param[k].name.sym != name.sym)
            k++;
        if (k == fn->n)
            return cps_eval_error(ev, CPS_E2211, name.span, "`%s` has no parameter `%s`",
                                  fn->name.text, name.text);
        if (k < plain)
            return cps_eval_error(ev, CPS_E2211, name.span, "`%s` is given twice", name.text);
        for (uint32_t j = 0; j < i; j++)
            if (arg[j].src->name.sym == name.sym)
                return cps_eval_error(ev, CPS_E2211, name.span, "`%s` is given twice", name.text);
    }
    if (plain > fn->n)
        return cps_eval_error(ev, CPS_E2211, at->head.span, "`%s` takes up to %u arguments, %u "
                                                            "given",
                              fn->name.text, fn->n, plain);
    return true;
}

bool
cps_eval_fn(cps_eval *ev, const cps_dsl_def *def, const cps_ast_call *at, const cps_arg *arg,
            uint32_t n, cps_cv *out)
{
    const cps_ast_fn *fn = CPS_AST_AS(fn, def->item);
    *out = (cps_cv){.kind = CPS_V_POISON};
    if (ev->fn_depth >= FN_DEPTH) {
        ev->stopped = true;
        return cps_eval_error(ev, CPS_E2902, at->head.span, "`%s` is called %d levels deep",
                              fn->name.text, FN_DEPTH);
    }
    if (!fits(ev, fn, at, arg, n))
        return false;
    uint32_t frame = ev->frame, mark = cps_eval_push(ev);
    const cps_dsl_module *module = ev->module;
    ev->frame = ev->names.n;
    ev->module = def->owner;
    ev->fn_depth++;
    cps_vec_push(ev->c.arena, &ev->trail, ((cps_trail){.call = at, .fn = fn->name.text}));
    uint32_t failed = ev->failed;
    bool ok = true;
    for (uint32_t k = 0; k < fn->n && ok; k++) {
        cps_cv v;
        ok = parameter(ev, fn, k, at, arg, n, &v);
        if (ok)
            cps_eval_bind(ev, &fn->param[k].name, v, 0);
    }
    if (ok) {
        cps_flow f = cps_eval_body(ev, cps_ast_whole(fn->body), true);
        *out = f == CPS_FLOW_RETURN ? ev->ret : (cps_cv){.kind = CPS_V_NONE};
        ok = f != CPS_FLOW_FAIL && ev->failed == failed && out->kind != CPS_V_POISON;
    }
    cps_eval_flush_trail(ev);
    ev->trail.n--;
    ev->fn_depth--;
    ev->frame = frame;
    ev->module = module;
    cps_eval_pop(ev, mark);
    return ok;
}

/* ---- dispatch ---- */

static cps_flow
dispatch(cps_eval *ev, const cps_ast_stmt *s)
{
    if (ev->c.hooks && ev->c.hooks->takes >> s->kind & 1) {
        cps_flow f = hook_stmt(ev, s);
        if (f != CPS_FLOW_PASS)
            return f;
    }
    switch (s->kind) {
    case CPS_ST_LET:
    case CPS_ST_VAR:
        return let(ev, CPS_AST_AS(let, s));
    case CPS_ST_ASSIGN:
        return assign(ev, CPS_AST_AS(assign, s));
    case CPS_ST_CALL:
        return call(ev, CPS_AST_AS(callst, s));
    case CPS_ST_STORE:
    case CPS_ST_LABEL:
    case CPS_ST_LOOP:
    case CPS_ST_WHILE:
    case CPS_ST_WHEN:
    case CPS_ST_STAGE:
        return by_driver(ev, s);
    case CPS_ST_IF:
        return conditional(ev, CPS_AST_AS(if, s));
    case CPS_ST_FOR:
        return run_bind(ev, CPS_AST_AS(for, s), 0);
    case CPS_ST_BREAK:
        return CPS_FLOW_BREAK;
    case CPS_ST_CONTINUE:
        return CPS_FLOW_CONTINUE;
    case CPS_ST_RETURN:
        return give_back(ev, CPS_AST_AS(jump, s));
    case CPS_ST_ASSERT:
        return assertion(ev, CPS_AST_AS(assert, s));
    case CPS_ST_CLAUSE:
        return CPS_FLOW_NEXT;
    case CPS_ST_COUNT:
        break;
    }
    cps_bug("a statement of kind %d", (int)s->kind);
}

cps_flow
cps_eval_stmt(cps_eval *ev, const cps_ast_stmt *s)
{
    if (!cps_eval_step(ev, s->span) || !cps_eval_enter(ev, s->span))
        return CPS_FLOW_FAIL;
    cps_flow f = dispatch(ev, s);
    ev->depth--;
    if (f == CPS_FLOW_FAIL)
        poison_names(ev, s);
    cps_eval_flush_trail(ev);
    return f;
}

cps_flow
cps_eval_body(cps_eval *ev, const cps_ast_body *b, bool scope)
{
    uint32_t mark = scope ? cps_eval_push(ev) : 0;
    bool failed = false;
    cps_flow f = CPS_FLOW_NEXT;
    for (uint32_t i = 0; i < b->n; i++) {
        f = cps_eval_stmt(ev, b->stmt[i]);
        failed |= f == CPS_FLOW_FAIL;
        if (ev->stopped || (f != CPS_FLOW_NEXT && f != CPS_FLOW_FAIL))
            break;
    }
    if (scope)
        cps_eval_pop(ev, mark);
    if (f == CPS_FLOW_BREAK || f == CPS_FLOW_CONTINUE || f == CPS_FLOW_RETURN)
        return f;
    return failed ? CPS_FLOW_FAIL : CPS_FLOW_NEXT;
}
