/* Expressions on tiles: operators and functions of the combining table become nodes of the
 * running statement's graph. Nothing is emitted here. */
#include "frontend/dsl/trace_priv.h"

#include <math.h>
#include <string.h>

static cps_cv
expr_value(cps_tracer *t, cps_xid id)
{
    cps_trexpr *x = cps_new(cps_tr_arena(t), cps_trexpr);
    x->graph = t->graph;
    x->id = id;
    return cps_cv_opaque(CPS_TR_EXPR, x);
}

static cps_hook
done(cps_tracer *t, cps_xid id, cps_span at, const cps_view_err *e, cps_cv *out)
{
    if (!id) {
        cps_tr_fail(t, at, e);
        return CPS_HOOK_FAIL;
    }
    *out = expr_value(t, id);
    return CPS_HOOK_DONE;
}

cps_xid
cps_tr_node(cps_tracer *t, cps_cv v, cps_span at)
{
    cps_view_err e;
    double num;
    const cps_view *w = cps_tr_view(v);

    if (w) {
        if (w->space == CPS_HBM) {
            cps_eval_error(&t->ev, CPS_E3205, at,
                           "`%s` is an hbm tensor, and engines do not reach "
                           "HBM",
                           w->name);
            cps_help(t->d, "load what is needed first: sbuf t[...] <- %s[...];", w->name);
            return 0;
        }
        cps_xid i = cps_x_tile(t->graph, w, at, &e);
        if (!i)
            cps_tr_fail(t, at, &e);
        return i;
    }
    if (v.kind == CPS_V_OPAQUE && v.tag == CPS_TR_EXPR) {
        const cps_trexpr *x = v.u.p;
        if (x->graph == t->graph)
            return x->id;
        cps_eval_error(&t->ev, CPS_E3206, at,
                       "an expression of tiles is computed by the statement it stands in");
        cps_help(t->d, "give it storage: sbuf NAME: fp32 = ...;");
        return 0;
    }
    if (cps_cv_num(v, &num))
        return cps_x_num(t->graph, num, v.kind == CPS_V_INT, at);
    if (v.kind == CPS_V_WORD && cps_streq(v.u.s, "prev"))
        return cps_x_prev(t->graph, at);
    if (v.kind == CPS_V_OPAQUE && v.tag == CPS_TR_REG) {
        cps_eval_error(&t->ev, CPS_E2305, at,
                       "a register cannot stand in an expression of tiles");
        cps_help(t->d, "a value that engines compute with is loaded into a tile");
        return 0;
    }
    if (v.kind == CPS_V_OPAQUE && v.tag == CPS_TR_PRODUCT) {
        cps_eval_error(&t->ev, CPS_E3203, at, "`@` stands alone on the right of `=` or `+=`");
        cps_help(t->d, "products go to PSUM: psum acc[m, n]: fp32 = a' @ b;");
        return 0;
    }
    cps_eval_error(&t->ev, CPS_E2301, at, "an operand must be a tile or a number, not %s",
                   cps_eval_describe(&t->ev, v));
    return 0;
}

static bool
is_tr(cps_cv v, uint32_t tag)
{
    return v.kind == CPS_V_OPAQUE && v.tag == tag;
}

/* ---- operators ---- */
typedef struct oprow {
    cps_ast_bin op;
    cps_alu alu;
} oprow;

static const oprow ops[] = {
    {CPS_BIN_ADD, CPS_ALU_ADD},
    {CPS_BIN_SUB, CPS_ALU_SUBTRACT},
    {CPS_BIN_MUL, CPS_ALU_MULT},
    {CPS_BIN_MOD, CPS_ALU_MOD},
    {CPS_BIN_LT, CPS_ALU_IS_LT},
    {CPS_BIN_GT, CPS_ALU_IS_GT},
    {CPS_BIN_LE, CPS_ALU_IS_LE},
    {CPS_BIN_GE, CPS_ALU_IS_GE},
    {CPS_BIN_EQ, CPS_ALU_IS_EQ},
    {CPS_BIN_NE, CPS_ALU_IS_NE},
    {CPS_BIN_AND, CPS_ALU_LOGICAL_AND},
    {CPS_BIN_OR, CPS_ALU_LOGICAL_OR},
    {CPS_BIN_BAND, CPS_ALU_BITWISE_AND},
    {CPS_BIN_BOR, CPS_ALU_BITWISE_OR},
    {CPS_BIN_SHL, CPS_ALU_LOGICAL_SHIFT_LEFT},
    {CPS_BIN_SHR, CPS_ALU_LOGICAL_SHIFT_RIGHT},
};

static cps_span
side_span(const cps_ast_binary *e, int side, cps_span at)
{
    return e ? (side ? e->b : e->a)->span : at;
}

static cps_hook
product(cps_tracer *t, const cps_ast_binary *e, cps_cv a, cps_cv b, cps_cv *out)
{
    const cps_view *x = cps_tr_view(a), *y = cps_tr_view(b);

    if (!x || !y) {
        cps_cv bad = x ? b : a;
        cps_eval_error(&t->ev, CPS_E3211, (x ? e->b : e->a)->span,
                       "an operand of @ must be a tile in sbuf, not %s",
                       cps_eval_describe(&t->ev, bad));
        return CPS_HOOK_FAIL;
    }
    cps_trproduct *p = cps_new(cps_tr_arena(t), cps_trproduct);
    p->a = x;
    p->b = y;
    p->at = e->head.span;
    p->at_a = e->a->span;
    p->at_b = e->b->span;
    if (x->space != CPS_HBM && x->paxis != x->nd - 1 && x->paxis >= 0) {
        const char *la = cps_ast_expr_text(t->keep, e->a);
        cps_eval_error(&t->ev, CPS_E3210, e->a->span,
                       "the left operand of @ must be a transposed tile");
        if (e->a->kind == CPS_EX_INDEX && CPS_AST_AS(index, e->a)->n == 2 &&
            !CPS_AST_AS(index, e->a)->sub[0].slice && !CPS_AST_AS(index, e->a)->sub[1].slice) {
            const cps_ast_index *ix = CPS_AST_AS(index, e->a);
            const char *base = cps_ast_expr_text(t->keep, ix->base);
            const char *m = cps_ast_expr_text(t->keep, ix->sub[0].lo);
            const char *k = cps_ast_expr_text(t->keep, ix->sub[1].lo);
            cps_note(t->d, CPS_NOSPAN,
                     "the PE contracts over the partitions of both operands; %s would have %s "
                     "there",
                     la, m);
            cps_help(t->d,
                     "keep %s with %s on the partitions and write %s[%s, %s]', or transpose "
                     "first: psum t[%s, %s] = %s[%s, %s]';",
                     base, k, base, k, m, k, m, base, m, k);
        } else {
            cps_note(t->d, CPS_NOSPAN, "the PE contracts over the partitions of both operands");
            cps_help(t->d, "write %s' with the contraction on its partitions", la);
        }
        return CPS_HOOK_FAIL;
    }
    *out = cps_cv_opaque(CPS_TR_PRODUCT, p);
    return CPS_HOOK_DONE;
}

cps_hook
cps_tr_binary(cps_eval *ev, const cps_ast_binary *e, cps_ast_bin op, cps_span at, cps_cv a,
              cps_cv b, cps_cv *out)
{
    cps_tracer *t = cps_tr(ev);
    cps_view_err err;
    cps_xid x, y, r = 0;
    cps_span whole = e ? e->head.span : at;

    if ((is_tr(a, CPS_TR_REG) || is_tr(b, CPS_TR_REG)) &&
        !(cps_tr_view(a) || cps_tr_view(b) || is_tr(a, CPS_TR_EXPR) || is_tr(b, CPS_TR_EXPR)))
        return cps_tr_reg_binary(t, op, a, b, at, out) ? CPS_HOOK_DONE : CPS_HOOK_FAIL;
    if (op == CPS_BIN_MATMUL)
        return e ? product(t, e, a, b, out) : CPS_HOOK_PASS;
    if (op == CPS_BIN_RANGE || op == CPS_BIN_IN)
        return CPS_HOOK_PASS;
    if (!(x = cps_tr_node(t, a, side_span(e, 0, at))) ||
        !(y = cps_tr_node(t, b, side_span(e, 1, at))))
        return CPS_HOOK_FAIL;
    if (op == CPS_BIN_DIV) {
        r = cps_x_div(t->graph, x, y, whole, &err);
    } else {
        unsigned i = 0;
        while (i < cps_countof(ops) && ops[i].op != op)
            i++;
        if (i == cps_countof(ops))
            return CPS_HOOK_PASS;
        r = cps_x_alu(t->graph, ops[i].alu, x, y, whole, &err);
    }
    if (!r && err.code == CPS_E3201) // the caret goes to the row
        whole = side_span(e, cps_x_at(t->graph, x)->rows == 1 ? 0 : 1, at);
    return done(t, r, whole, &err, out);
}

cps_hook
cps_tr_unary(cps_eval *ev, const cps_ast_unary *e, cps_cv a, cps_cv *out)
{
    cps_tracer *t = cps_tr(ev);
    cps_view_err err;

    if (is_tr(a, CPS_TR_REG)) {
        if (e->op != CPS_UN_NEG)
            return CPS_HOOK_PASS;
        return cps_tr_reg_binary(t, CPS_BIN_SUB, cps_cv_int(0), a, e->head.span, out)
                   ? CPS_HOOK_DONE
                   : CPS_HOOK_FAIL;
    }
    cps_xid x = cps_tr_node(t, a, e->a->span);
    if (!x)
        return CPS_HOOK_FAIL;
    if (e->op == CPS_UN_NEG) // row 10 knows a reduction times -1
        return done(t,
                    cps_x_alu(t->graph, CPS_ALU_MULT, x,
                              cps_x_num(t->graph, -1, true, e->head.span), e->head.span, &err),
                    e->head.span, &err, out);
    // !m: a mask that is 0 where m is not
    return done(t,
                cps_x_alu(t->graph, CPS_ALU_IS_EQ, x,
                          cps_x_num(t->graph, 0, true, e->head.span), e->head.span, &err),
                e->head.span, &err, out);
}

/* ---- functions ---- */

static const cps_arg *
named(const cps_arg *arg, uint32_t n, const char *name, uint32_t place)
{
    for (uint32_t i = 0; i < n; i++)
        if (arg[i].src->name.sym && cps_streq(arg[i].src->name.text, name))
            return &arg[i];
    return place < n && !arg[place].src->name.sym ? &arg[place] : NULL;
}

static cps_hook
wrong(cps_eval *ev, const cps_ast_call *e, const char *form)
{
    cps_eval_error(ev, CPS_E2211, e->head.span, "wrong operands: %s", form);
    return CPS_HOOK_FAIL;
}

// Which axes a reduction takes, as a bit mask over the node's free axes plus one (bit 0: rows).
static bool
axes_of(cps_tracer *t, const cps_arg *a, int nfree, uint32_t *mask)
{
    cps_cv v = a->v;
    uint32_t m = 0;

    if (v.kind == CPS_V_WORD && cps_streq(v.u.s, "free")) {
        *mask = ((1u << nfree) - 1) << 1;
        return true;
    }
    cps_cv one[1] = {v};
    const cps_cv *item = one;
    uint32_t n = 1;
    if (v.kind == CPS_V_TUPLE || v.kind == CPS_V_LIST) {
        item = v.u.seq->item;
        n = v.u.seq->n;
    }
    for (uint32_t i = 0; i < n; i++) {
        if (item[i].kind != CPS_V_INT || item[i].u.i < 0 || item[i].u.i > nfree)
            return cps_eval_error(&t->ev, CPS_E3204, a->src->span,
                                  "axes are `free`, a number from 1 to %d, or a tuple", nfree);
        m |= 1u << item[i].u.i;
    }
    if (m & 1) {
        cps_eval_error(&t->ev, CPS_E3204, a->src->span,
                       "axis 0 lies on the partitions: engines reduce over free axes only");
        cps_help(t->d, "the partition sum is a product with ones; for the maximum transpose "
                       "first");
        return false;
    }
    *mask = m;
    return true;
}

// A view whose axes in `mask` come last; on a node that is no tile only trailing axes will do.
static cps_xid
trailing(cps_tracer *t, cps_xid x, uint32_t mask, int *axes, cps_span at)
{
    const cps_xnode *n = cps_x_at(t->graph, x);
    cps_view_err e;
    int k = 0;

    *axes = __builtin_popcount(mask);
    for (int i = n->nfree; i >= 1 && mask >> i & 1; i--)
        k++;
    if (k == *axes)
        return x;
    if (n->kind != CPS_X_TILE || n->view->paxis != 0) {
        cps_eval_error(&t->ev, CPS_E3204, at,
                       "only a tile can be reduced over an axis that is not the last");
        cps_help(t->d, "give the expression storage first");
        return 0;
    }
    cps_view *v = cps_arena_raw(cps_tr_arena(t), sizeof(*v));
    *v = *n->view;
    k = 1;
    for (int pass = 0; pass < 2; pass++)
        for (int i = 1; i < n->view->nd; i++)
            if ((int)(mask >> i & 1) == pass)
                v->ax[k++] = n->view->ax[i];
    x = cps_x_tile(t->graph, v, at, &e);
    if (!x)
        cps_tr_fail(t, at, &e);
    return x;
}

static cps_hook
reduction(cps_tracer *t, const cps_ast_call *e, cps_alu op, const cps_arg *arg, uint32_t n,
          cps_cv *out)
{
    const cps_arg *x = named(arg, n, "x", 0), *ax = named(arg, n, "axis", 1);
    cps_view_err err;
    uint32_t mask = 0;
    int axes;

    if (n != 2 || !x || !ax)
        return wrong(&t->ev, e,
                     "a reduction is sum(x, axis: free), max(x, axis: 1) and the like");
    cps_xid i = cps_tr_node(t, x->v, x->src->value->span);
    if (!i || !axes_of(t, ax, cps_x_at(t->graph, i)->nfree, &mask))
        return CPS_HOOK_FAIL;
    if (!(i = trailing(t, i, mask, &axes, e->head.span)))
        return CPS_HOOK_FAIL;
    return done(t, cps_x_reduce(t->graph, op, i, axes, e->head.span, &err), e->head.span, &err,
                out);
}

// mean(x, axis: a): the sum times the binary32 reciprocal of the count.
static cps_hook
mean(cps_tracer *t, const cps_ast_call *e, const cps_arg *arg, uint32_t n, cps_cv *out)
{
    cps_view_err err;
    cps_cv sum;
    cps_hook h = reduction(t, e, CPS_ALU_ADD, arg, n, &sum);

    if (h != CPS_HOOK_DONE)
        return h;
    cps_xid s = ((const cps_trexpr *)sum.u.p)->id;
    const cps_xnode *r = cps_x_at(t->graph, s);
    cps_xid count =
        cps_x_num(t->graph, (double)(cps_x_elems(cps_x_at(t->graph, r->a)) / cps_x_elems(r)),
                  true, e->head.span);
    return done(t, cps_x_div(t->graph, s, count, e->head.span, &err), e->head.span, &err, out);
}

static cps_hook
two(cps_tracer *t, const cps_ast_call *e, cps_alu op, const cps_arg *arg, uint32_t n,
    cps_cv *out)
{
    cps_view_err err;
    cps_xid x, y;

    if (n != 2)
        return wrong(&t->ev, e, "maximum and minimum take two operands");
    if (is_tr(arg[0].v, CPS_TR_REG) || is_tr(arg[1].v, CPS_TR_REG))
        return cps_tr_reg_extreme(t, op, arg[0].v, arg[1].v, e->head.span, out) ? CPS_HOOK_DONE
                                                                                : CPS_HOOK_FAIL;
    if (!(x = cps_tr_node(t, arg[0].v, arg[0].src->value->span)) ||
        !(y = cps_tr_node(t, arg[1].v, arg[1].src->value->span)))
        return CPS_HOOK_FAIL;
    return done(t, cps_x_alu(t->graph, op, x, y, e->head.span, &err), e->head.span, &err, out);
}

static cps_hook
choose(cps_tracer *t, const cps_ast_call *e, const cps_arg *arg, uint32_t n, cps_cv *out)
{
    cps_view_err err;
    cps_xid i[3];

    if (n != 3)
        return wrong(&t->ev, e, "select(mask, then, else)");
    for (int k = 0; k < 3; k++)
        if (!(i[k] = cps_tr_node(t, arg[k].v, arg[k].src->value->span)))
            return CPS_HOOK_FAIL;
    return done(t, cps_x_select(t->graph, i[0], i[1], i[2], e->head.span, &err), e->head.span,
                &err, out);
}

// row(i): [p, 1] absolute positions; col(j): [1, n].
static cps_hook
positions(cps_tracer *t, const cps_ast_call *e, bool row, const cps_arg *arg, uint32_t n,
          cps_cv *out)
{
    cps_piece p;

    if (n != 1 || !cps_cv_bounds(arg[0].v, &p))
        return wrong(&t->ev, e, "row(i) and col(j) take a piece, a range or a number");
    int64_t size = p.end - p.start;
    if (size < 1 || (row && size > t->t->sbuf_partitions) || p.end > INT32_MAX) {
        cps_eval_error(&t->ev, CPS_E3104, e->head.span, "positions of %lld %s", (long long)size,
                       row ? "rows" : "columns");
        return CPS_HOOK_FAIL;
    }
    *out = expr_value(t, row ? cps_x_index(t->graph, p.start, 1, 0, size, 1, e->head.span)
                             : cps_x_index(t->graph, p.start, 0, 1, 0, size, e->head.span));
    return CPS_HOOK_DONE;
}

static cps_hook
scan(cps_tracer *t, const cps_ast_call *e, const cps_arg *arg, uint32_t n, cps_cv *out)
{
    const cps_arg *init = named(arg, n, "init", 1);
    cps_view_err err;
    cps_xid b, i;

    if (n != 2 || !init || arg[0].src->name.sym)
        return wrong(&t->ev, e, "scan(a * prev + b, init: x)");
    if (!(b = cps_tr_node(t, arg[0].v, arg[0].src->value->span)) ||
        !(i = cps_tr_node(t, init->v, init->src->value->span)))
        return CPS_HOOK_FAIL;
    return done(t, cps_x_scan(t->graph, b, i, e->head.span, &err), e->head.span, &err, out);
}

// apply(act, x): the members of an enum by name; swish is the sigmoid approximation of gelu.
static cps_hook
apply(cps_tracer *t, const cps_ast_call *e, const cps_arg *arg, uint32_t n, cps_cv *out)
{
    static const struct {
        const char *name;
        int fn;
    } names[] = {{"gelu_tanh", CPS_ACTFN_GELU_APPRX_TANH},
                 {"gelu_tanh_approx", CPS_ACTFN_GELU_APPRX_TANH},
                 {"swish", CPS_ACTFN_GELU_APPRX_SIGMOID}};
    cps_xid x;
    int fn = -1;

    if (n != 2 || arg[0].v.kind != CPS_V_ENUM)
        return wrong(&t->ev, e, "apply(Act.silu, x)");
    const char *name = arg[0].v.u.ev->name;
    if (!(x = cps_tr_node(t, arg[1].v, arg[1].src->value->span)))
        return CPS_HOOK_FAIL;
    if (cps_streq(name, "none")) {
        *out = expr_value(t, x);
        return CPS_HOOK_DONE;
    }
    for (unsigned i = 0; i < cps_countof(names); i++)
        if (cps_streq(name, names[i].name))
            fn = names[i].fn;
    if (fn < 0)
        fn = cps_actfn_parse(name);
    if (fn < 0) {
        cps_eval_error(&t->ev, CPS_E3203, arg[0].src->span, "ScalarE has no function `%s`",
                       name);
        return CPS_HOOK_FAIL;
    }
    *out = expr_value(t, cps_x_func(t->graph, (cps_actfn)fn, x, e->head.span));
    return CPS_HOOK_DONE;
}

static cps_hook
repeated(cps_tracer *t, const cps_ast_call *e, const cps_arg *arg, uint32_t n, cps_cv *out)
{
    const cps_view *v = n ? cps_tr_view(arg[0].v) : NULL;
    const cps_arg *ax = NULL;
    cps_view o;
    cps_view_err err;
    int axis;

    for (uint32_t i = 2; i < n; i++)
        ax = named(arg, n, "axis", i);
    if (!v || n < 2 || n > 3 || arg[1].v.kind != CPS_V_INT || (n == 3 && !ax) ||
        (ax && ax->v.kind != CPS_V_INT))
        return wrong(&t->ev, e, "repeat(x, n, axis: a)");
    axis = ax ? (int)CPS_MAX(-1, CPS_MIN(ax->v.u.i, 99)) : v->nd - 1;
    if (!cps_view_repeat(&o, v, arg[1].v.u.i, axis, t->keep, &err)) {
        cps_tr_fail(t, e->head.span, &err);
        return CPS_HOOK_FAIL;
    }
    *out = cps_tr_view_value(t, &o);
    return CPS_HOOK_DONE;
}

static cps_hook
windows(cps_tracer *t, const cps_ast_call *e, const cps_arg *arg, uint32_t n, cps_cv *out)
{
    const cps_view *v = n ? cps_tr_view(arg[0].v) : NULL;
    cps_view o;
    cps_view_err err;

    if (!v || n != 2 || arg[1].v.kind != CPS_V_INT)
        return wrong(&t->ev, e, "windows(x, n)");
    if (!cps_view_windows(&o, v, arg[1].v.u.i, t->keep, &err)) {
        cps_tr_fail(t, e->head.span, &err);
        return CPS_HOOK_FAIL;
    }
    *out = cps_tr_view_value(t, &o);
    return CPS_HOOK_DONE;
}

static bool
has_axis(const cps_arg *arg, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        if (arg[i].src->name.sym && cps_streq(arg[i].src->name.text, "axis"))
            return true;
    return false;
}

cps_hook
cps_tr_call(cps_eval *ev, const cps_ast_call *e, const cps_ast_name *name, const cps_arg *arg,
            uint32_t n, cps_cv *out)
{
    cps_tracer *t = cps_tr(ev);
    const char *s = name->text;
    cps_xid x;

    if (cps_streq(s, "maximum") || (cps_streq(s, "max") && !has_axis(arg, n) && n == 2))
        return two(t, e, CPS_ALU_MAX, arg, n, out);
    if (cps_streq(s, "minimum") || (cps_streq(s, "min") && !has_axis(arg, n) && n == 2))
        return two(t, e, CPS_ALU_MIN, arg, n, out);
    if (cps_streq(s, "sum"))
        return reduction(t, e, CPS_ALU_ADD, arg, n, out);
    if (cps_streq(s, "mean"))
        return mean(t, e, arg, n, out);
    if (cps_streq(s, "max"))
        return reduction(t, e, CPS_ALU_MAX, arg, n, out);
    if (cps_streq(s, "min"))
        return reduction(t, e, CPS_ALU_MIN, arg, n, out);
    if (cps_streq(s, "select"))
        return choose(t, e, arg, n, out);
    if (cps_streq(s, "row") || cps_streq(s, "col"))
        return positions(t, e, *s == 'r', arg, n, out);
    if (cps_streq(s, "scan"))
        return scan(t, e, arg, n, out);
    if (cps_streq(s, "apply"))
        return apply(t, e, arg, n, out);
    if (cps_streq(s, "repeat"))
        return repeated(t, e, arg, n, out);
    if (cps_streq(s, "windows"))
        return windows(t, e, arg, n, out);
    if (cps_streq(s, "bytes") && n == 1 && cps_tr_view(arg[0].v)) {
        const cps_view *v = cps_tr_view(arg[0].v);
        int64_t b = cps_dtype_bytes(v->dtype);
        for (int i = 0; i < v->nd; i++)
            b *= v->ax[i].num;
        *out = cps_cv_int(b);
        return CPS_HOOK_DONE;
    }
    int fn = cps_actfn_parse(s);
    if (fn < 0 || n != 1)
        return CPS_HOOK_PASS;
    if (!(x = cps_tr_node(t, arg[0].v, arg[0].src->value->span)))
        return CPS_HOOK_FAIL;
    *out = expr_value(t, cps_x_func(t->graph, (cps_actfn)fn, x, e->head.span));
    return CPS_HOOK_DONE;
}
