/* The tracer: hooks of the evaluator, marks, the binding of an instance, and the end of a
 * trace.
 *
 * In: a leaf, a complete instance, resolved params. Out: the tile program of one core, or
 * diagnostics. Holds: the same input gives the same program; nothing of the target's resources
 * is decided here but what the text pins. Not here: capacity, addresses, engine balance,
 * semaphores. */
#include "frontend/dsl/trace_priv.h"

#include "frontend/dsl/builtin.h"
#include "frontend/dsl/instance.h"

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
        return cps_eval_error(&t->ev, CPS_E4106, m->value->span,
                              "`%s` is %lld to %lld, not %lld", m->name.text, (long long)lo,
                              (long long)hi, (long long)*out);
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
    } ops[] = {{"add", CPS_ALU_ADD},
               {"max", CPS_ALU_MAX},
               {"min", CPS_ALU_MIN},
               {"multiply", CPS_ALU_MULT},
               {"mult", CPS_ALU_MULT}};
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

    *out = (cps_trmarks){.on = CPS_ENGINE_ANY,
                         .bufs = -1,
                         .at = -1,
                         .bank = -1,
                         .parts = -1,
                         .align = -1,
                         .via = -1};
    for (uint32_t i = 0; i < ms->n; i++) {
        const cps_ast_mark *m = &ms->mark[i];
        const char *w = m->name.text;
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
            ok = cps_eval_error(&t->ev, CPS_E2212, m->span,
                                "tile programs do not choose queues; `on` says who triggers");
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
    case CPS_TR_EXPR:
        return "an expression of tiles";
    case CPS_TR_REG:
        return "a register";
    case CPS_TR_COND:
        return "a comparison of registers";
    case CPS_TR_PRODUCT:
        return "a product";
    default:
        return NULL;
    }
}

static cps_flow
run(cps_tracer *t, const cps_ast_stmt *s)
{
    switch (s->kind) {
    case CPS_ST_STORE:
        return cps_tr_declare(t, CPS_AST_AS(store, s));
    case CPS_ST_ASSIGN:
        return cps_tr_assign_stmt(t, CPS_AST_AS(assign, s));
    case CPS_ST_CALL:
        return cps_tr_call_stmt(t, CPS_AST_AS(callst, s));
    case CPS_ST_LOOP:
        return cps_tr_loop(t, CPS_AST_AS(loop, s));
    case CPS_ST_WHEN:
        return cps_tr_when(t, CPS_AST_AS(if, s));
    case CPS_ST_LABEL:
        return cps_tr_label(t, CPS_AST_AS(label, s));
    case CPS_ST_STAGE:
        return cps_tr_stage(t, CPS_AST_AS(stage, s));
    case CPS_ST_WHILE:
        cps_eval_error(&t->ev, CPS_E2309, s->span,
                       "tile programs have no loop with an open number of rounds");
        cps_help(t->d, "`loop i in 0..n` with n in a register, and `when` inside");
        return CPS_FLOW_FAIL;
    default:
        return CPS_FLOW_PASS;
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

// Extents as written, for messages about axes.
static const char **
extent_names(cps_tracer *t, const cps_ast_operand *o)
{
    const char **names = cps_new_array(t->keep, const char *, CPS_MAX_RANK);
    for (uint32_t i = 0; i < o->n && i < CPS_MAX_RANK; i++)
        names[i] = cps_ast_expr_text(t->keep, o->extent[i]);
    return names;
}

static bool
bind_argument(cps_tracer *t, const cps_ast_operand *o, const cps_operand *x, cps_role role)
{
    cps_trstore *s =
        cps_tr_argument(t, o->name.text, role, &x->type, x->order, extent_names(t, o), o->span);
    if (s)
        cps_eval_define(&t->ev, o->name.text, cps_cv_opaque(CPS_TR_VIEW, &s->view), o->span);
    return s != NULL;
}

static cps_cv
param_value(cps_tracer *t, const cps_attr *x)
{
    switch (x->kind) {
    case CPS_A_INT:
        return cps_cv_int(x->i);
    case CPS_A_FLOAT:
        return cps_cv_float(x->f);
    case CPS_A_BOOL:
        return cps_cv_bool(x->i != 0);
    case CPS_A_DTYPE:
        return cps_cv_dtype((cps_dtype)x->i);
    default:
        return cps_cv_str(cps_arena_strdup(t->keep, x->s ? x->s : ""));
    }
}

static bool
bind_instance(cps_tracer *t)
{
    const cps_ast_op *op = t->o->op->ast;
    const cps_instance *in = t->o->inst;
    bool ok = cps_dsl_define_call(&t->ev, t->o->op, in);

    for (uint32_t i = 0; ok && i < op->noperand; i++)
        if (in->operand[i].present)
            ok = bind_argument(t, &op->operand[i], &in->operand[i],
                               op->operand[i].inout ? CPS_INOUT : CPS_IN);
    for (uint32_t i = 0; ok && i < op->nresult; i++)
        ok = bind_argument(t, &op->result[i], &in->result[i], CPS_OUT);
    for (uint16_t i = 0; ok && i < t->o->nconfig; i++)
        cps_eval_define(&t->ev, t->o->config[i].key, param_value(t, &t->o->config[i]),
                        t->o->leaf->ast->name.span);
    return ok;
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
    cps_tracer t = {.out = a,
                    .keep = cps_arena_create(),
                    .scratch = cps_arena_create(),
                    .d = d,
                    .t = o->inst->target,
                    .o = o};
    cps_xgraph base;
    unsigned before = cps_diags_errors(d);

    cps_assert(t.t); // the host has its own code generation
    t.f = cps_tile_new(a, o->leaf->ast->name.text, t.t->name);
    t.f->core = o->core;
    t.f->cores = CPS_MAX(1, o->inst->cores);
    cps_eval_config c = {.arena = t.keep,
                         .diags = d,
                         .set = o->set,
                         .module = o->leaf->module,
                         .target = t.t,
                         .core = o->core,
                         .cores = t.f->cores,
                         .step_limit = o->step_limit,
                         .hooks = &hooks,
                         .user = &t};
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
        ok = cps_eval_body(&t.ev, cps_ast_whole(o->leaf->ast->body), false) == CPS_FLOW_NEXT;
        cps_eval_pop(&t.ev, inner);
    }
    cps_eval_flush_trail(&t.ev);
    cps_eval_pop(&t.ev, scope);
    cps_tr_close_all(&t);
    ok = ok && t.ev.failed == 0 && cps_diags_errors(d) == before;
    t.f->split = t.ev.split;
    if (ok)
        prepend(&t);
#ifdef CPS_TEST_BUILD
    ok = ok && cps_tile_verify(t.f, t.t, d);
#endif
    for (uint32_t i = 1; i < t.f->bufs.n; i++) { // names outlive the module set
        cps_tbuf *b = &t.f->bufs.data[i];
        b->name = cps_arena_strdup(a, b->name);
    }
    cps_arena_destroy(t.keep);
    cps_arena_destroy(t.scratch);
    return ok ? t.f : NULL;
}
