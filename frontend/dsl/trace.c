/* The tracer: hooks of the evaluator, marks, the binding of an instance, and the end of a trace.
 *
 * In: a leaf, a complete instance, resolved params. Out: the tile program of one core, or
 * diagnostics. Holds: the same input gives the same program; nothing of the target's resources is
 * decided here but what the text pins. Not here: capacity, addresses, engine balance, semaphores. */
#include "frontend/dsl/trace_priv.h"

#include "frontend/dsl/builtin.h"

#include <string.h>

bool
cps_tr_fail(cps_tracer *t, cps_span at, const cps_view_err *e)
{
    cps_eval_error(&t->ev, e->code, at, "%s", e->text);
    if (e->note)
        cps_note(t->d, CPS_NOSPAN, "%s", e->note);
    if (e->help)
        cps_help(t->d, "%s", e->help);
    return false;
}

/* ---- marks ---- */

static bool
mark_int(cps_tracer *t, const cps_ast_mark *m, int64_t lo, int64_t hi, int64_t *out)
{
    if (!cps_eval_int(&t->ev, m->value, "the operand of a mark", out))
        return false;
    if (*out < lo || *out > hi)
        return cps_eval_error(&t->ev, CPS_E4106, m->value->span, "`%s` is %lld to %lld, not %lld",
                              m->name.text, (long long)lo, (long long)hi, (long long)*out);
    return true;
}

static const char *
mark_word(const cps_ast_mark *m)
{
    return m->value->kind == CPS_EX_NAME ? CPS_AST_AS(ref, m->value)->name.text : "";
}

static bool
mark_after(cps_tracer *t, const cps_ast_mark *m)
{
    const char *w = mark_word(m);
    uint64_t *id = cps_map_find_str(&t->labels, w);
    if (cps_streq(w, "none"))
        return cps_eval_error(&t->ev, CPS_E6104, m->span,
                              "`after none` is not known to the tracer");
    if (!id || !*id)
        return cps_eval_error(&t->ev, CPS_E6104, m->value->span,
                              "no statement before this one is labelled `%s`", w);
    t->after = (uint32_t)*id;
    return true;
}

static bool
mark_reduce(cps_tracer *t, const cps_ast_mark *m, cps_trmarks *out)
{
    static const struct {
        const char *name;
        cps_alu op;
    } ops[] = {{"add", CPS_ALU_ADD}, {"max", CPS_ALU_MAX}, {"min", CPS_ALU_MIN},
               {"multiply", CPS_ALU_MULT}, {"mult", CPS_ALU_MULT}};
    cps_cv v;

    out->red_op = CPS_ALU_BYPASS;
    for (unsigned i = 0; i < cps_countof(ops); i++)
        if (cps_streq(ops[i].name, m->name.text))
            out->red_op = ops[i].op;
    if (out->red_op == CPS_ALU_BYPASS) {
        cps_eval_error(&t->ev, CPS_E3204, m->name.span, "`%s` is no reduction", m->name.text);
        cps_help(t->d, "reductions on the side are add, max, min and multiply");
        return false;
    }
    if (!cps_eval_expr(&t->ev, m->value, &v))
        return false;
    out->red = cps_tr_view(v);
    out->red_at = m->value->span;
    out->onto = m->kind == CPS_MARK_ONTO;
    if (!out->red || out->red->space == CPS_HBM)
        return cps_eval_error(&t->ev, CPS_E3204, m->value->span,
                              "the target of reduce is a [p, 1] tile, not %s",
                              cps_eval_describe(&t->ev, v));
    return true;
}

static bool
mark_on(cps_tracer *t, const cps_ast_mark *m, cps_trmarks *out)
{
    out->on = cps_engine_parse(m->name.text);
    out->on_at = m->name.span;
    if (out->on != CPS_ENGINE_ANY)
        return true;
    cps_eval_error(&t->ev, CPS_E5102, m->name.span, "`%s` is no engine", m->name.text);
    cps_help(t->d, "engines are pe, act, dve, pool and sp");
    return false;
}

bool
cps_tr_marks(cps_tracer *t, const cps_ast_marks *ms, cps_trmarks *out)
{
    static const char *const via[] = {"static", "swdge", "hwdge", "elements"};

    *out = (cps_trmarks){.on = CPS_ENGINE_ANY, .bufs = -1, .at = -1, .bank = -1, .parts = -1,
                         .align = -1, .via = -1};
    for (uint32_t i = 0; i < ms->n; i++) {
        const cps_ast_mark *m = &ms->mark[i];
        const char *w = m->name.text;
        int64_t v;
        bool ok = true, b;
        if (m->kind == CPS_MARK_ON) {
            ok = mark_on(t, m, out);
        } else if (m->kind != CPS_MARK_WORD) {
            ok = mark_reduce(t, m, out);
        } else if (cps_streq(w, "bufs")) {
            ok = mark_int(t, m, 1, 1024, &out->bufs);
            out->bufs_at = m->value->span;
        } else if (cps_streq(w, "at")) {
            ok = mark_int(t, m, 0, t->t->sbuf_bytes - 1, &out->at);
        } else if (cps_streq(w, "bank")) {
            ok = mark_int(t, m, 0, t->t->psum_banks - 1, &out->bank);
        } else if (cps_streq(w, "parts")) {
            ok = mark_int(t, m, 0, t->t->sbuf_partitions - 1, &out->parts);
        } else if (cps_streq(w, "align")) {
            ok = mark_int(t, m, 1, t->t->sbuf_bytes, &out->align);
        } else if (cps_streq(w, "queue")) {
            ok = mark_int(t, m, 0, t->t->dma_queues - 1, &v);
        } else if (cps_streq(w, "priority")) {
            ok = mark_int(t, m, 0, 3, &out->priority);
        } else if (cps_streq(w, "via")) {
            out->via_at = m->value->span;
            for (unsigned k = 0; k < cps_countof(via); k++)
                if (cps_streq(via[k], mark_word(m)))
                    out->via = (int)k;
        } else if (cps_streq(w, "oob")) {
            out->oob_given = true;
            if (cps_streq(mark_word(m), "skip") || cps_streq(mark_word(m), "error"))
                out->oob_skip = cps_streq(mark_word(m), "skip");
            else if ((ok = cps_eval_bool(&t->ev, m->value, "`oob`", &b)))
                out->oob_skip = b;
        } else if (cps_streq(w, "after")) {
            ok = mark_after(t, m);
        } else {
            ok = cps_eval_error(&t->ev, CPS_E2205, m->span, "unknown mark `%s`", w);
        }
        if (!ok)
            return false;
    }
    return true;
}

/* ---- hooks ---- */

static const char *
describe(cps_eval *ev, cps_cv v)
{
    cps_tracer *t = cps_tr(ev);
    switch (v.tag) {
    case CPS_TR_VIEW: {
        const cps_view *w = v.u.p;
        return cps_arena_printf(t->keep, "a %s %s", cps_view_shape(t->keep, w),
                                w->space == CPS_HBM ? "tensor" : "tile");
    }
    case CPS_TR_EXPR: return "an expression of tiles";
    case CPS_TR_REG: return "a register";
    case CPS_TR_COND: return "a comparison of registers";
    case CPS_TR_PRODUCT: return "a product";
    default: return NULL;
    }
}

static cps_flow
run(cps_tracer *t, const cps_ast_stmt *s)
{
    switch (s->kind) {
    case CPS_ST_STORE: return cps_tr_declare(t, CPS_AST_AS(store, s));
    case CPS_ST_ASSIGN: return cps_tr_assign_stmt(t, CPS_AST_AS(assign, s));
    case CPS_ST_CALL: return cps_tr_call_stmt(t, CPS_AST_AS(callst, s));
    case CPS_ST_LOOP: return cps_tr_loop(t, CPS_AST_AS(loop, s));
    case CPS_ST_WHEN: return cps_tr_when(t, CPS_AST_AS(if, s));
    case CPS_ST_LABEL: return cps_tr_label(t, CPS_AST_AS(label, s));
    case CPS_ST_STAGE: return cps_tr_stage(t, CPS_AST_AS(stage, s));
    case CPS_ST_WHILE:
        cps_eval_error(&t->ev, CPS_E2309, s->span,
                       "tile programs have no loop with an open number of rounds");
        cps_help(t->d, "`loop i in 0..n` with n in a register, and `when` inside");
        return CPS_FLOW_FAIL;
    default: return CPS_FLOW_PASS;
    }
}

// Each statement has a graph of its own; its views go when the outermost one is done.
static cps_flow
statement(cps_eval *ev, const cps_ast_stmt *s)
{
    cps_tracer *t = cps_tr(ev);
    bool holds = s->kind == CPS_ST_STORE || s->kind == CPS_ST_ASSIGN || s->kind == CPS_ST_CALL;
    cps_xgraph g, *outer = t->graph;
    cps_span at = t->at;
    cps_mark mark = {0};

    t->at = s->span;
    if (!holds) {
        cps_flow f = run(t, s);
        t->at = at;
        return f;
    }
    if (t->depth == 0)
        mark = cps_arena_mark(t->scratch);
    t->depth++;
    cps_x_init(&g, t->scratch);
    t->graph = &g;
    cps_flow f = run(t, s);
    t->graph = outer;
    t->after = 0;
    if (--t->depth == 0)
        cps_arena_release(t->scratch, mark);
    t->at = at;
    return f;
}

static const cps_eval_hooks hooks = {
    .describe = describe,
    .unary = cps_tr_unary,
    .binary = cps_tr_binary,
    .transpose = cps_tr_transpose,
    .index = cps_tr_index,
    .member = cps_tr_member,
    .method = cps_tr_method,
    .call = cps_tr_call,
    .stmt = statement,
    .for_begin = cps_tr_for_begin,
    .for_iter = cps_tr_for_iter,
    .for_end = cps_tr_for_end,
};

/* ---- arguments, dimensions, attributes, params ---- */

static bool
attribute_value(cps_tracer *t, const cps_ast_attr *a, const cps_attr *x, cps_cv *out)
{
    cps_cv type;

    switch (x->kind) {
    case CPS_A_FLOAT: *out = cps_cv_float(x->f); return true;
    case CPS_A_BOOL: *out = cps_cv_bool(x->i != 0); return true;
    case CPS_A_DTYPE: *out = cps_cv_dtype((cps_dtype)x->i); return true;
    case CPS_A_INTS: {
        cps_cv *item = cps_new_array(t->keep, cps_cv, x->n);
        for (uint32_t i = 0; i < x->n; i++)
            item[i] = cps_cv_int(x->ints[i]);
        *out = cps_cv_seq(t->keep, CPS_V_LIST, item, x->n);
        return true;
    }
    default: break;
    }
    *out = x->kind == CPS_A_INT ? cps_cv_int(x->i) : cps_cv_str(x->s);
    // A member of an enum travels by name, or by value.
    if (!a || !cps_eval_expr(&t->ev, a->type, &type) || type.kind != CPS_V_ENUMTYPE)
        return a == NULL || type.kind != CPS_V_POISON;
    const cps_enum_value *v = cps_eval_enum_values(&t->ev, type.u.et);
    for (uint32_t i = 0; i < type.u.et->n; i++)
        if (x->kind == CPS_A_INT ? v[i].value == x->i : cps_streq(v[i].name, x->s)) {
            *out = (cps_cv){.kind = CPS_V_ENUM, .u.ev = &v[i]};
            return true;
        }
    return cps_eval_error(&t->ev, CPS_E2310, a->span, "attribute `%s` has no such value",
                          a->name.text);
}

static bool
bind_extents(cps_tracer *t, const cps_ast_operand *o, const cps_type *type, const char **names)
{
    for (uint32_t i = 0; i < o->n; i++) {
        names[i] = cps_ast_expr_text(t->keep, o->extent[i]);
        if (o->extent[i]->kind != CPS_EX_NAME || (int)i >= type->rank)
            continue;
        cps_ast_name n = CPS_AST_AS(ref, o->extent[i])->name;
        if (!cps_eval_find(&t->ev, n.sym))
            cps_eval_define(&t->ev, n.text, cps_cv_int(type->dim[i]), n.span);
    }
    return true;
}

static bool
bind_instance(cps_tracer *t)
{
    const cps_ast_op *op = t->o->op->ast;
    const cps_instance *in = t->o->inst;
    const cps_dsl_module *mine = t->ev.module;
    const char *names[2 * CPS_MAX_OPERANDS][CPS_MAX_RANK] = {{0}};
    bool ok = true;

    if (in->noperands != (int)op->noperand || in->nresults != (int)op->nresult)
        return cps_eval_error(&t->ev, CPS_E2310, op->name.span,
                              "the call has %d operands and %d results", in->noperands,
                              in->nresults);
    t->ev.module = t->o->op->module; // the op's own names: types of attributes
    for (uint32_t i = 0; ok && i < op->noperand; i++)
        if (in->operand[i].present)
            ok = bind_extents(t, &op->operand[i], &in->operand[i].type, names[i]);
    for (uint32_t i = 0; ok && i < op->nattr; i++) {
        const cps_attr *x = cps_attr_find(in->attr, in->nattr, op->attr[i].name.text);
        cps_cv v;
        if (!x)
            ok = cps_eval_error(&t->ev, CPS_E2310, op->attr[i].span,
                                "attribute `%s` has no value", op->attr[i].name.text);
        else if ((ok = attribute_value(t, &op->attr[i], x, &v)))
            cps_eval_define(&t->ev, op->attr[i].name.text, v, op->attr[i].span);
    }
    for (uint32_t i = 0; ok && i < op->ndimdef; i++) {
        cps_cv v;
        if ((ok = cps_eval_expr(&t->ev, op->dimdef[i].value, &v)))
            cps_eval_define(&t->ev, op->dimdef[i].name.text, v, op->dimdef[i].name.span);
    }
    for (uint32_t i = 0; ok && i < op->nresult; i++)
        ok = bind_extents(t, &op->result[i], &in->result[i].type,
                          names[CPS_MAX_OPERANDS + i]);
    t->ev.module = mine;
    if (!ok)
        return false;
    for (uint32_t i = 0; i < op->noperand + op->nresult; i++) {
        bool result = i >= op->noperand;
        uint32_t k = result ? i - op->noperand : i;
        const cps_ast_operand *o = result ? &op->result[k] : &op->operand[k];
        const cps_operand *x = result ? &in->result[k] : &in->operand[k];
        if (!x->present && !result) {
            cps_eval_define(&t->ev, o->name.text, (cps_cv){.kind = CPS_V_ABSENT}, o->span);
            continue;
        }
        cps_role role = result ? CPS_OUT : o->inout ? CPS_INOUT : CPS_IN;
        cps_trstore *s = cps_tr_argument(t, o->name.text, role, &x->type, x->order,
                                         names[result ? CPS_MAX_OPERANDS + k : k], o->span);
        if (!s)
            return false;
        cps_eval_define(&t->ev, o->name.text, cps_cv_opaque(CPS_TR_VIEW, &s->view), o->span);
    }
    for (uint16_t i = 0; i < t->o->nconfig; i++) {
        const cps_attr *x = &t->o->config[i];
        cps_cv v;
        if (!attribute_value(t, NULL, x, &v))
            return false;
        cps_eval_define(&t->ev, x->key, v, t->o->leaf->ast->name.span);
    }
    return true;
}

/* ---- the whole ---- */

// Hoisted constants come first.
static void
prepend(cps_tracer *t)
{
    cps_tfunc *f = t->f;
    uint32_t n = t->pre.n + f->insts.n;
    cps_tinst *all = cps_new_array(t->out, cps_tinst, n);

    if (t->pre.n == 0)
        return;
    memcpy(all, t->pre.data, t->pre.n * sizeof(*all));
    memcpy(all + t->pre.n, f->insts.data, f->insts.n * sizeof(*all));
    f->insts.data = all;
    f->insts.n = f->insts.cap = n;
}

cps_tfunc *
cps_dsl_trace(cps_arena *a, const cps_trace_opts *o, cps_diags *d)
{
    cps_tracer t = {.out = a, .keep = cps_arena_create(), .scratch = cps_arena_create(), .d = d,
                    .t = o->inst->target, .o = o};
    cps_xgraph base;
    unsigned before = cps_diags_errors(d);

    cps_assert(t.t); // the host has its own code generation
    t.f = cps_tile_new(a, o->leaf->ast->name.text, t.t->name);
    t.f->core = o->core;
    t.f->cores = CPS_MAX(1, o->inst->cores);
    cps_eval_config c = {.arena = t.keep, .diags = d, .set = o->set, .module = o->leaf->module,
                         .target = t.t, .core = o->core, .cores = t.f->cores,
                         .step_limit = o->step_limit, .hooks = &hooks, .user = &t};
    cps_eval_init(&t.ev, &c);
    cps_map_init(&t.rings, t.keep);
    cps_map_init(&t.hoisted, t.keep);
    cps_map_init(&t.labels, t.keep);
    cps_x_init(&base, t.keep);
    t.graph = &base;

    uint32_t scope = cps_eval_push(&t.ev);
    bool ok = bind_instance(&t);
    if (ok) {
        uint32_t inner = cps_eval_push(&t.ev);
        ok = cps_eval_body(&t.ev, o->leaf->ast->body, false) == CPS_FLOW_NEXT;
        cps_eval_pop(&t.ev, inner);
    }
    cps_eval_flush_trail(&t.ev);
    cps_eval_pop(&t.ev, scope);
    cps_tr_close_all(&t);
    ok = ok && t.ev.failed == 0 && cps_diags_errors(d) == before;
    if (ok)
        prepend(&t);
    for (uint32_t i = 1; i < t.f->bufs.n; i++) { // names outlive the module set
        cps_tbuf *b = &t.f->bufs.data[i];
        b->name = cps_arena_strdup(a, b->name);
    }
    cps_arena_destroy(t.keep);
    cps_arena_destroy(t.scratch);
    return ok ? t.f : NULL;
}
