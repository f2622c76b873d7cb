/* Intrinsics: every row of the instruction table as a call with named operands, plus fence()
 * and barrier(). Operands are checked against the row (intrinsic.def); what the tile verifier
 * knows about dtypes and sizes stays there. */
#include "frontend/dsl/trace_priv.h"

#include <string.h>

typedef struct form {
    cps_top op;
    const char *outs, *ins, *attrs;
} form;

static const form forms[] = {
#define CPS_INTRINSIC(id, outs, ins, attrs) {CPS_T_##id, outs, ins, attrs},
#include "frontend/dsl/intrinsic.def"
};

typedef struct word { /* one entry of a blank-separated list */
    char name[32];
    char key[16]; /* of an attribute */
    bool optional;
} word;

static const char *
next(const char *s, word *w)
{
    size_t n = 0, k = 0;

    memset(w, 0, sizeof(*w));
    while (*s == ' ')
        s++;
    if (!*s)
        return NULL;
    while (*s && *s != ' ' && *s != ':' && *s != '?' && n + 1 < sizeof(w->name))
        w->name[n++] = *s++;
    if (*s == ':')
        for (s++; *s && *s != ' ' && *s != '?' && k + 1 < sizeof(w->key);)
            w->key[k++] = *s++;
    if (*s == '?') {
        w->optional = true;
        s++;
    }
    return s;
}

static const cps_ast_arg *
find(const cps_ast_call *c, const char *name)
{
    for (uint32_t i = 0; i < c->n; i++)
        if (c->arg[i].name.sym && cps_streq(c->arg[i].name.text, name))
            return &c->arg[i];
    return NULL;
}

static void
list_operands(cps_tracer *t, const form *f)
{
    const char *s = "";
    const char *lists[3] = {f->outs, f->ins, f->attrs};
    word w;
    for (int k = 0; k < 3; k++)
        for (const char *p = lists[k]; (p = next(p, &w)) != NULL;)
            s = cps_arena_printf(t->keep, "%s%s%s%s", s, *s ? ", " : "", w.name,
                                 w.optional ? " (optional)" : "");
    cps_help(t->d, "operands of %s: %s", cps_tops[f->op].name, s);
}

static bool
known(const form *f, const char *name)
{
    const char *lists[3] = {f->outs, f->ins, f->attrs};
    word w;
    for (int k = 0; k < 3; k++)
        for (const char *p = lists[k]; (p = next(p, &w)) != NULL;)
            if (cps_streq(w.name, name))
                return true;
    return false;
}

static bool
check_names(cps_tracer *t, const cps_ast_call *c, const form *f)
{
    const char *lists[3] = {f->outs, f->ins, f->attrs};
    word w;

    for (uint32_t i = 0; i < c->n; i++) {
        const cps_ast_arg *a = &c->arg[i];
        if (!a->name.sym) {
            cps_eval_error(&t->ev, CPS_E5122, a->span, "operands of %s are given by name",
                           cps_tops[f->op].name);
            list_operands(t, f);
            return false;
        }
        if (!known(f, a->name.text)) {
            cps_eval_error(&t->ev, CPS_E5122, a->name.span, "%s has no operand `%s`",
                           cps_tops[f->op].name, a->name.text);
            list_operands(t, f);
            return false;
        }
    }
    for (int k = 0; k < 3; k++)
        for (const char *p = lists[k]; (p = next(p, &w)) != NULL;)
            if (!w.optional && !find(c, w.name)) {
                cps_eval_error(&t->ev, CPS_E5122, c->head.span, "%s needs the operand `%s`",
                               cps_tops[f->op].name, w.name);
                list_operands(t, f);
                return false;
            }
    return true;
}

// The view an operand names, or NULL after a message.
static const cps_view *
view_arg(cps_tracer *t, const cps_ast_arg *a)
{
    cps_cv v;
    if (!cps_eval_expr(&t->ev, a->value, &v))
        return NULL;
    if (!cps_tr_view(v))
        cps_eval_error(&t->ev, CPS_E5122, a->value->span, "`%s` must be a tile, not %s",
                       a->name.text, cps_eval_describe(&t->ev, v));
    return cps_tr_view(v);
}

static bool
on_chip(cps_tracer *t, const cps_ast_arg *a, const cps_view *v)
{
    if (v->space == CPS_HBM) {
        cps_eval_error(&t->ev, CPS_E3205, a->value->span,
                       "`%s` is an hbm tensor, and engines do not reach HBM", v->name);
        cps_help(t->d, "load what is needed first: sbuf t[...] <- %s[...];", v->name);
        return false;
    }
    if (cps_view_folded(v))
        return cps_eval_error(&t->ev, CPS_E3103, a->value->span,
                              "an intrinsic takes one fold of `%s` at a time", v->name);
    return true;
}

static bool
put_in(cps_tracer *t, cps_tinst *i, const cps_ast_arg *a, bool scalar, int64_t rows)
{
    cps_cv v;
    double num;

    if (!cps_eval_expr(&t->ev, a->value, &v))
        return false;
    const cps_view *w = cps_tr_view(v);
    if (w)
        return on_chip(t, a, w) && cps_tr_in(t, i, w, w->all ? rows : 0, a->value->span);
    if (v.kind == CPS_V_OPAQUE && v.tag == CPS_TR_REG && scalar)
        return cps_tr_reg_operand(t, v, a->value->span, &i->in[i->nin++]);
    if (!scalar || !cps_cv_num(v, &num))
        return cps_eval_error(&t->ev, CPS_E5122, a->value->span,
                              "`%s` must be a tile%s, not %s", a->name.text,
                              scalar ? " or a number" : "", cps_eval_describe(&t->ev, v));
    i->in[i->nin] = cps_to_imm((float)num);
    if (v.kind == CPS_V_INT) {
        i->in[i->nin].is_int = true;
        i->in[i->nin].ival = v.u.i;
    }
    i->nin++;
    return true;
}

// A name or a string: op: add, op: "add".
static const char *
word_of(cps_tracer *t, cps_expr_p e)
{
    cps_cv v;
    if (e->kind == CPS_EX_NAME)
        return CPS_AST_AS(ref, e)->name.text;
    if (!cps_eval_expr(&t->ev, e, &v) || v.kind != CPS_V_STR)
        return NULL;
    return v.u.s;
}

static bool
put_attr(cps_tracer *t, cps_tinst *i, const word *w, const cps_ast_arg *a)
{
    static const char *const ids[] = {
#define CPS_TATTR(id, ...) #id,
#include "ir/tattr.def"
    };
    int key = 0, n;
    cps_cv v;

    while (!cps_streq(ids[key], w->key))
        key++;
    switch ((cps_tattr_kind)cps_tattrs[key].kind) {
    case CPS_TK_ALU:
    case CPS_TK_FUNC: {
        const char *s = word_of(t, a->value);
        n = !s                                   ? -1
            : cps_tattrs[key].kind == CPS_TK_ALU ? cps_alu_parse(s)
                                                 : cps_actfn_parse(s);
        if (n < 0)
            return cps_eval_error(&t->ev, CPS_E5122, a->value->span, "`%s` is no %s",
                                  cps_ast_expr_text(t->keep, a->value),
                                  cps_tattrs[key].kind == CPS_TK_ALU ? "operator of the engines"
                                                                     : "activation function");
        cps_tinst_set(i, (cps_tattr_key)key, n);
        return true;
    }
    case CPS_TK_FLAG:
    case CPS_TK_INT: {
        if (!cps_eval_expr(&t->ev, a->value, &v))
            return false;
        int64_t x = v.kind == CPS_V_BOOL ? v.u.b : v.u.i;
        if ((v.kind != CPS_V_BOOL && v.kind != CPS_V_INT) || x < INT32_MIN || x > INT32_MAX)
            return cps_eval_error(&t->ev, CPS_E5122, a->value->span,
                                  "`%s` must be a number, not %s", a->name.text,
                                  cps_eval_describe(&t->ev, v));
        if (key == CPS_TA_REVERSE)
            x = (x ? (cps_has_suffix(w->name, "1") ? 2 : 1) : 0) |
                cps_tinst_get(i, CPS_TA_REVERSE, 0);
        if (cps_tattrs[key].kind == CPS_TK_FLAG && !x)
            return true;
        cps_tinst_set(i, (cps_tattr_key)key, (int32_t)x);
        return true;
    }
    case CPS_TK_INTS: {
        cps_tlist l = {0};
        if (!cps_eval_expr(&t->ev, a->value, &v))
            return false;
        bool ok =
            (v.kind == CPS_V_LIST || v.kind == CPS_V_TUPLE) && v.u.seq->n <= cps_countof(l.v);
        for (uint32_t k = 0; ok && k < v.u.seq->n; k++) {
            ok = v.u.seq->item[k].kind == CPS_V_INT && v.u.seq->item[k].u.i >= INT32_MIN &&
                 v.u.seq->item[k].u.i <= INT32_MAX;
            if (ok)
                l.v[l.n++] = (int32_t)v.u.seq->item[k].u.i;
        }
        if (!ok)
            return cps_eval_error(&t->ev, CPS_E5122, a->value->span,
                                  "`%s` must be a list of up to %d numbers", a->name.text,
                                  (int)cps_countof(l.v));
        cps_vec_push(t->f->arena, &t->f->lists, l);
        cps_tinst_set(i, (cps_tattr_key)key, (int32_t)t->f->lists.n - 1);
        return true;
    }
    }
    return false;
}

static bool
engine(cps_tracer *t, cps_tinst *i, const cps_trmarks *m)
{
    const char *s = cps_tops[i->op].engines;
    char name[8];
    bool first = true;

    while (*s) {
        size_t n = 0;
        while (*s == ' ')
            s++;
        while (*s && *s != ' ' && n + 1 < sizeof(name))
            name[n++] = *s++;
        name[n] = 0;
        cps_engine e = cps_engine_parse(name);
        if (first && m->on == CPS_ENGINE_ANY) {
            i->engine = (uint8_t)e;
            return true;
        }
        if (e == m->on)
            return true;
        first = false;
    }
    return cps_eval_error(&t->ev, CPS_E5102, m->on_at, "%s does not run on %s",
                          cps_tops[i->op].name, cps_engine_name(m->on));
}

static bool
generic(cps_tracer *t, const cps_ast_call *c, const form *f, const cps_trmarks *m)
{
    cps_tinst *i = cps_tr_begin(t, f->op, m);
    const cps_ast_arg *a;
    const cps_view *dst = NULL;
    word w;
    int k = 0;

    if (!engine(t, i, m) || !(a = find(c, "dst")) || !(dst = view_arg(t, a)) ||
        !on_chip(t, a, dst))
        return false;
    int64_t rows = dst->all ? t->t->sbuf_partitions : cps_view_parts(dst);
    for (const char *p = f->ins; (p = next(p, &w)) != NULL; k++) {
        a = find(c, w.name);
        if (a) {
            if (!put_in(t, i, a, cps_tr_scalar(f->op, k), rows))
                return false;
        } else { // scale 1, bias 0, operand1 0
            i->in[i->nin++] = cps_to_imm(cps_streq(w.name, "scale") ? 1 : 0);
        }
    }
    for (const char *p = f->attrs; (p = next(p, &w)) != NULL;)
        if ((a = find(c, w.name)) != NULL && !put_attr(t, i, &w, a))
            return false;
    for (const char *p = f->outs; (p = next(p, &w)) != NULL;) {
        const cps_view *v;
        if (!(a = find(c, w.name)))
            continue;
        if (!(v = view_arg(t, a)) || !on_chip(t, a, v) ||
            !cps_tr_out(t, i, v, v->all ? rows : 0, a->value->span))
            return false;
    }
    bool accumulates = f->op == CPS_T_ACTIVATION || f->op == CPS_T_TS_REDUCE ||
                       f->op == CPS_T_SELECT_REDUCE || f->op == CPS_T_RANGE_SELECT;
    if (i->nout == 2 && accumulates)
        cps_tinst_set(i, CPS_TA_ACC, 3);
    if (f->op == CPS_T_TENSOR_REDUCE && !(i->set >> CPS_TA_AXES & 1))
        cps_tinst_set(i, CPS_TA_AXES, t->f->views.data[i->in[0].id].nd);
    return true;
}

// Forms that statements have too: they take the same way.
static bool
special(cps_tracer *t, const cps_ast_call *c, const form *f, const cps_trmarks *m)
{
    const cps_ast_arg *d = find(c, "dst"), *x, *y;
    const cps_view *dst = view_arg(t, d), *a, *b;
    cps_view turned;
    cps_view_err e;

    if (!dst)
        return false;
    if (f->op == CPS_T_MATMUL) {
        x = find(c, "stationary");
        y = find(c, "moving");
        const cps_ast_arg *rows = find(c, "double_row");
        cps_cv two = {.kind = CPS_V_BOOL};
        if (!(a = view_arg(t, x)) || !(b = view_arg(t, y)) ||
            (rows && !cps_eval_expr(&t->ev, rows->value, &two)))
            return false;
        if (two.kind != CPS_V_BOOL)
            return cps_eval_error(&t->ev, CPS_E5122, rows->value->span,
                                  "`double_row` must be true or false, not %s",
                                  cps_eval_describe(&t->ev, two));
        if (!two.u.b && !cps_view_transpose(&turned, a, t->keep, &e))
            return cps_tr_fail(t, x->span, &e);
        cps_trproduct p = {two.u.b ? a : &turned, b, c->head.span, x->value->span,
                           y->value->span, two.u.b};
        return cps_tr_matmul(t, dst, d->value->span, &p, true, m);
    }
    x = find(c, f->op == CPS_T_TRANSPOSE ? "data" : "src");
    if (!(a = view_arg(t, x)))
        return false;
    if (f->op != CPS_T_DMA && !cps_view_transpose(&turned, a, t->keep, &e))
        return cps_tr_fail(t, x->span, &e);
    if (f->op == CPS_T_TRANSPOSE)
        return cps_tr_pe_transpose(t, dst, d->value->span, &turned, x->value->span, m);
    return cps_tr_arrow(t, dst, d->value->span,
                        cps_cv_opaque(CPS_TR_VIEW, f->op == CPS_T_DMA ? a : &turned),
                        x->value->span, false, m, c);
}

static bool
barrier(cps_tracer *t, const cps_ast_call *c)
{
    if (c->n)
        return cps_eval_error(&t->ev, CPS_E5122, c->head.span, "barrier() takes no operands");
    t->ev.split = true;
    (void)cps_tr_begin(t, t->ev.c.cores > 1 ? CPS_T_CORE_BARRIER : CPS_T_FENCE, NULL);
    return true;
}

static bool
intrinsic(cps_tracer *t, const cps_ast_callst *s)
{
    const cps_ast_call *c = s->call;
    cps_trmarks m;

    if (c->fn->kind != CPS_EX_NAME)
        return cps_eval_error(&t->ev, CPS_E2202, c->fn->span,
                              "a statement calls a fn or an "
                              "intrinsic by name");
    const char *name = CPS_AST_AS(ref, c->fn)->name.text;
    if (!cps_tr_marks(t, &s->marks, &m))
        return false;
    if (cps_streq(name, "fence")) {
        if (c->n)
            return cps_eval_error(&t->ev, CPS_E5122, c->head.span, "fence() takes no operands");
        (void)cps_tr_begin(t, CPS_T_FENCE, NULL);
        return true;
    }
    if (cps_streq(name, "barrier"))
        return barrier(t, c);
    for (unsigned k = 0; k < cps_countof(forms); k++) {
        const form *f = &forms[k];
        if (!cps_streq(cps_tops[f->op].name, name))
            continue;
        if (!check_names(t, c, f))
            return false;
        if (m.red)
            return cps_eval_error(&t->ev, CPS_E2212, m.red_at,
                                  "an intrinsic reduces by its own operands");
        bool own = f->op == CPS_T_MATMUL || f->op == CPS_T_TRANSPOSE || f->op == CPS_T_DMA ||
                   f->op == CPS_T_DMA_TRANSPOSE;
        return own ? special(t, c, f, &m) : generic(t, c, f, &m);
    }
    cps_eval_error(&t->ev, CPS_E2202, c->fn->span,
                   "`%s` is neither a fn nor an instruction of tile "
                   "programs",
                   name);
    return false;
}

cps_flow
cps_tr_call_stmt(cps_tracer *t, const cps_ast_callst *s)
{
    return intrinsic(t, s) ? CPS_FLOW_NEXT : CPS_FLOW_FAIL;
}
