/* Views in the language: subscripts, the transpose mark, members and methods. The arithmetic of
 * views is trace_view.c's; here values become subscripts and failures get their place. */
#include "frontend/dsl/trace_priv.h"

#include <string.h>

// `ds(start, size)` in a subscript: relative, and the start may be a register.
static const cps_ast_call *
as_ds(cps_expr_p e)
{
    if (e->kind != CPS_EX_CALL)
        return NULL;
    const cps_ast_call *c = CPS_AST_AS(call, e);
    if (c->fn->kind != CPS_EX_NAME || !cps_streq(CPS_AST_AS(ref, c->fn)->name.text, "ds") ||
        c->n != 2)
        return NULL;
    return c;
}

static const cps_trreg *
as_reg(cps_cv v)
{
    return v.kind == CPS_V_OPAQUE && v.tag == CPS_TR_REG ? v.u.p : NULL;
}

static bool
read_ds(cps_tracer *t, const cps_ast_call *c, cps_vsub *out)
{
    cps_cv v;
    int64_t size;

    if (!cps_eval_expr(&t->ev, c->arg[0].value, &v) ||
        !cps_eval_int(&t->ev, c->arg[1].value, "the size in ds()", &size))
        return false;
    if (size < 1)
        return cps_eval_error(&t->ev, CPS_E3101, c->head.span, "a part of %lld elements",
                              (long long)size);
    const cps_trreg *r = as_reg(v);
    if (r) {
        *out = (cps_vsub){
            .kind = CPS_VS_REG, .reg = r->reg, .mul = r->mul, .lo = r->add, .size = size};
        return true;
    }
    if (v.kind != CPS_V_INT)
        return cps_eval_error(&t->ev, CPS_E2301, c->arg[0].value->span,
                              "the start in ds() must be a number or a register, not %s",
                              cps_eval_describe(&t->ev, v));
    if (__builtin_add_overflow(v.u.i, size, &out->hi))
        return cps_eval_error(&t->ev, CPS_E3101, c->head.span, "ds() reaches too far");
    *out = (cps_vsub){
        .kind = CPS_VS_SLICE, .lo = v.u.i, .hi = v.u.i + size, .has_hi = true, .step = 1};
    return true;
}

static bool
read_slice(cps_tracer *t, const cps_ast_sub *s, cps_vsub *out)
{
    *out = (cps_vsub){.kind = CPS_VS_SLICE, .step = 1};
    if (!s->lo && !s->hi && !s->step) {
        out->kind = CPS_VS_ALL;
        return true;
    }
    if (s->lo && !cps_eval_int(&t->ev, s->lo, "the start of a slice", &out->lo))
        return false;
    if (s->hi && !cps_eval_int(&t->ev, s->hi, "the end of a slice", &out->hi))
        return false;
    if (s->step && !cps_eval_int(&t->ev, s->step, "the step of a slice", &out->step))
        return false;
    out->has_hi = s->hi != NULL;
    if (out->step < 1)
        return cps_eval_error(&t->ev, CPS_E3101, s->span,
                              "a slice has a positive step, not %lld", (long long)out->step);
    return true;
}

static bool
index_tile(cps_tracer *t, const cps_ast_sub *s, const cps_view *v, cps_vsub *out)
{
    bool column =
        v->space == CPS_SBUF && cps_view_free(v) == 1 && !v->all && !v->index && !v->reg;
    if (!column || (v->dtype != CPS_DT_I32 && v->dtype != CPS_DT_U32)) {
        cps_eval_error(&t->ev, CPS_E5202, s->span,
                       "an index tile is a [p, 1] tile of i32 or u32 in sbuf, not %s %s %s",
                       v->space == CPS_HBM    ? "hbm"
                       : v->space == CPS_PSUM ? "psum"
                                              : "sbuf",
                       cps_view_shape(t->keep, v), cps_dtype_name(v->dtype));
        return false;
    }
    *out = (cps_vsub){.kind = CPS_VS_INDEX, .index = v};
    return true;
}

static bool
read_sub(cps_tracer *t, const cps_ast_sub *s, cps_vsub *out)
{
    cps_cv v;
    const cps_ast_call *ds;

    if (s->slice)
        return read_slice(t, s, out);
    if ((ds = as_ds(s->lo)) != NULL)
        return read_ds(t, ds, out);
    if (!cps_eval_expr(&t->ev, s->lo, &v))
        return false;
    switch (v.kind) {
    case CPS_V_INT:
        *out = (cps_vsub){.kind = CPS_VS_AT, .lo = v.u.i};
        return true;
    case CPS_V_RANGE:
    case CPS_V_PIECE:
        *out = (cps_vsub){.kind = CPS_VS_PIECE, .piece = *v.u.piece};
        return true;
    case CPS_V_SLICE:
        *out = (cps_vsub){.kind = CPS_VS_SLICE,
                          .lo = v.u.piece->start,
                          .hi = v.u.piece->end,
                          .has_hi = true,
                          .step = 1};
        return true;
    case CPS_V_OPAQUE: {
        const cps_trreg *r = as_reg(v);
        if (r) {
            *out = (cps_vsub){.kind = CPS_VS_REG, .reg = r->reg, .mul = r->mul, .lo = r->add};
            return true;
        }
        if (cps_tr_view(v))
            return index_tile(t, s, cps_tr_view(v), out);
        break;
    }
    default:
        break;
    }
    return cps_eval_error(&t->ev, CPS_E2301, s->span,
                          "a subscript must be a number, a piece, a register or an index tile, "
                          "not %s",
                          cps_eval_describe(&t->ev, v));
}

cps_cv
cps_tr_view_value(cps_tracer *t, const cps_view *v)
{
    cps_view *w = cps_arena_raw(cps_tr_arena(t), sizeof(*w));
    cps_view_copy(w, v);
    return cps_cv_opaque(CPS_TR_VIEW, w);
}

cps_hook
cps_tr_index(cps_eval *ev, const cps_ast_index *e, cps_cv base, cps_cv *out)
{
    cps_tracer *t = cps_tr(ev);
    const cps_view *v = cps_tr_view(base);
    cps_vsub sub[CPS_VIEW_AXES];
    cps_view o;
    cps_view_err err;
    int bad;

    if (!v)
        return CPS_HOOK_PASS;
    if (e->n > CPS_VIEW_AXES) {
        cps_eval_error(ev, CPS_E3104, e->head.span, "more than %d subscripts", CPS_VIEW_AXES);
        return CPS_HOOK_FAIL;
    }
    for (uint32_t i = 0; i < e->n; i++)
        if (!read_sub(t, &e->sub[i], &sub[i]))
            return CPS_HOOK_FAIL;
    if (!cps_view_index(&o, v, (int)e->n, sub, t->keep, &bad, &err)) {
        // Once more, with what stands in the source for the message.
        for (uint32_t i = 0; i < e->n; i++)
            if (sub[i].kind == CPS_VS_PIECE)
                sub[i].text = cps_ast_expr_text(cps_tr_arena(t), e->sub[i].lo);
        cps_view_index(&o, v, (int)e->n, sub, t->keep, &bad, &err);
        cps_tr_fail(t, bad < (int)e->n ? e->sub[bad].span : e->head.span, &err);
        return CPS_HOOK_FAIL;
    }
    *out = cps_tr_view_value(t, &o);
    return CPS_HOOK_DONE;
}

cps_hook
cps_tr_transpose(cps_eval *ev, const cps_ast_transpose *e, cps_cv base, cps_cv *out)
{
    cps_tracer *t = cps_tr(ev);
    const cps_view *v = cps_tr_view(base);
    cps_view o;
    cps_view_err err;

    if (!v)
        return CPS_HOOK_PASS;
    if (!cps_view_transpose(&o, v, t->keep, &err)) {
        cps_tr_fail(t, e->head.span, &err);
        return CPS_HOOK_FAIL;
    }
    *out = cps_tr_view_value(t, &o);
    return CPS_HOOK_DONE;
}

cps_hook
cps_tr_member(cps_eval *ev, const cps_ast_member *e, cps_cv base, cps_cv *out)
{
    cps_tracer *t = cps_tr(ev);
    const cps_view *v = cps_tr_view(base);

    if (!v)
        return CPS_HOOK_PASS;
    if (cps_streq(e->name.text, "dtype")) {
        *out = cps_cv_dtype(v->dtype);
    } else if (cps_streq(e->name.text, "inner")) {
        *out = cps_cv_int(cps_view_inner(v));
    } else if (cps_streq(e->name.text, "order")) {
        *out = cps_cv_int(((cps_trstore *)v->store)->order);
    } else if (cps_streq(e->name.text, "shape")) {
        cps_cv dim[CPS_VIEW_AXES];
        for (int i = 0; i < v->nd; i++)
            dim[i] = cps_cv_int(v->ax[i].num);
        *out = cps_cv_seq(cps_tr_arena(t), CPS_V_TUPLE, dim, (uint32_t)v->nd);
    } else {
        cps_eval_error(ev, CPS_E2210, e->name.span, "%s has no member `%s`",
                       cps_eval_describe(ev, base), e->name.text);
        cps_help(t->d, "members: dtype, shape, inner, order; methods: axis, view, bits");
        return CPS_HOOK_FAIL;
    }
    return CPS_HOOK_DONE;
}

static bool
one_arg(cps_eval *ev, const cps_ast_call *e, const cps_ast_name *name, uint32_t n)
{
    return n == 1 ? true
                  : cps_eval_error(ev, CPS_E2211, e->head.span, "`.%s` takes one operand",
                                   name->text);
}

static bool
reshape(cps_tracer *t, const cps_ast_call *e, const cps_view *v, const cps_arg *arg, uint32_t n,
        cps_cv *out)
{
    const char *names[16];
    int64_t sizes[16];
    int k = 0;
    cps_view o;
    cps_view_err err;

    if (n < 1 || arg[0].v.kind != CPS_V_STR || n > 17)
        return cps_eval_error(&t->ev, CPS_E2211, e->head.span,
                              "`.view` takes a pattern and sizes by name");
    for (uint32_t i = 1; i < n; i++) {
        if (!arg[i].src->name.sym || arg[i].v.kind != CPS_V_INT)
            return cps_eval_error(&t->ev, CPS_E2211, arg[i].src->span,
                                  "a size is given by name: `c: 4`");
        names[k] = arg[i].src->name.text;
        sizes[k++] = arg[i].v.u.i;
    }
    if (!cps_view_reshape(&o, v, arg[0].v.u.s, k, names, sizes, t->keep, &err))
        return cps_tr_fail(t, e->head.span, &err);
    *out = cps_tr_view_value(t, &o);
    return true;
}

cps_hook
cps_tr_method(cps_eval *ev, const cps_ast_call *e, cps_cv base, const cps_ast_name *name,
              const cps_arg *arg, uint32_t n, cps_cv *out)
{
    cps_tracer *t = cps_tr(ev);
    const cps_view *v = cps_tr_view(base);
    cps_view o;
    cps_view_err err;

    if (!v)
        return CPS_HOOK_PASS;
    if (cps_streq(name->text, "view"))
        return reshape(t, e, v, arg, n, out) ? CPS_HOOK_DONE : CPS_HOOK_FAIL;
    if (cps_streq(name->text, "bits")) {
        if (!one_arg(ev, e, name, n))
            return CPS_HOOK_FAIL;
        if (arg[0].v.kind != CPS_V_DTYPE) {
            cps_eval_error(ev, CPS_E2301, arg[0].src->span, "`.bits` takes a dtype, not %s",
                           cps_eval_describe(ev, arg[0].v));
            return CPS_HOOK_FAIL;
        }
        if (!cps_view_bits(&o, v, arg[0].v.u.dt, t->keep, &err)) {
            cps_tr_fail(t, e->head.span, &err);
            return CPS_HOOK_FAIL;
        }
        *out = cps_tr_view_value(t, &o);
        return CPS_HOOK_DONE;
    }
    if (cps_streq(name->text, "axis")) {
        if (!one_arg(ev, e, name, n))
            return CPS_HOOK_FAIL;
        if (arg[0].v.kind != CPS_V_INT || arg[0].v.u.i < 0 || arg[0].v.u.i >= v->nd) {
            cps_eval_error(ev, CPS_E3104, arg[0].src->span, "axes of %s are 0 to %d",
                           cps_eval_describe(ev, base), v->nd - 1);
            return CPS_HOOK_FAIL;
        }
        const cps_vaxis *x = &v->ax[arg[0].v.u.i];
        *out = cps_cv_piece(cps_tr_arena(t), (cps_piece){.start = x->origin,
                                                         .end = x->origin + x->num,
                                                         .count = 1,
                                                         .name = x->name});
        return CPS_HOOK_DONE;
    }
    return CPS_HOOK_PASS;
}
