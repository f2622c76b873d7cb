/* A call against the header of its operator (language 2.2).
 *
 * In: operand types, attributes as they came. Out: every dim with one value, attributes of the
 * declared types, result types. A plain name in an extent binds it at first sight; any other
 * extent is a check. Extents that come from a call are never trusted. */
#include "frontend/dsl/instance.h"
#include "frontend/dsl/builtin.h"

/* ---- attributes ---- */

static const char *
type_name(const cps_ast_attr *decl)
{
    return decl->type->kind == CPS_EX_NAME ? CPS_AST_AS(ref, decl->type)->name.text : "";
}

static const char *
attr_text(cps_arena *a, const cps_attr *x)
{
    switch (x->kind) {
    case CPS_A_INT:
        return cps_arena_printf(a, "%lld", (long long)x->i);
    case CPS_A_FLOAT:
        return cps_cv_text(a, cps_cv_float(x->f));
    case CPS_A_BOOL:
        return x->i ? "true" : "false";
    case CPS_A_STR:
        return cps_arena_printf(a, "\"%s\"", x->s);
    case CPS_A_DTYPE:
        return cps_dtype_name((cps_dtype)x->i);
    case CPS_A_INTS:
        return "a list";
    }
    return "";
}

static bool
bad_attr(cps_eval *ev, const cps_ast_attr *decl, const cps_attr *x)
{
    cps_eval_error(ev, CPS_E2310, decl->span, "attribute `%s` is %s; wants %s", decl->name.text,
                   attr_text(ev->c.arena, x), type_name(decl));
    return false;
}

// A member by name ("gelu" or "Act.gelu") or by value.
static bool
enum_value(cps_eval *ev, const cps_ast_attr *decl, const cps_attr *x, const cps_ast_enum *type,
           cps_cv *out)
{
    const cps_enum_value *v = cps_eval_enum_values(ev, type);
    const char *name = x->kind == CPS_A_STR ? x->s : NULL;
    size_t prefix = strlen(type->name.text);
    if (name && strncmp(name, type->name.text, prefix) == 0 && name[prefix] == '.')
        name += prefix + 1;
    for (uint32_t i = 0; v && i < type->n; i++)
        if (name ? cps_streq(v[i].name, name) : x->kind == CPS_A_INT && v[i].value == x->i) {
            *out = (cps_cv){.kind = CPS_V_ENUM, .u.ev = &v[i]};
            return true;
        }
    bad_attr(ev, decl, x);
    cps_buf b = {0};
    for (uint32_t i = 0; i < type->n; i++)
        cps_buf_printf(&b, "%s%s", i ? " " : "", type->member[i].name.text);
    cps_help(ev->c.diags, "members of %s are: %s", type->name.text, b.data);
    cps_buf_fini(&b);
    return false;
}

bool
cps_dsl_attr_value(cps_eval *ev, const cps_ast_attr *decl, const cps_attr *x, cps_cv *out)
{
    const char *type = type_name(decl);
    const cps_dsl_def *def = decl->type->kind == CPS_EX_NAME && ev->module
                                 ? cps_dsl_lookup(ev->module,
                                                  CPS_AST_AS(ref, decl->type)->name.sym)
                                 : NULL;
    cps_cv t;
    if (def && def->item->kind == CPS_IT_ENUM)
        return cps_eval_expr(ev, decl->type, &t) &&
               enum_value(ev, decl, x, CPS_AST_AS(enum, def->item), out);
    if (cps_streq(type, "int") && x->kind == CPS_A_INT)
        *out = cps_cv_int(x->i);
    else if (cps_streq(type, "bool") && (x->kind == CPS_A_BOOL || (x->kind == CPS_A_INT && x->i >> 1 == 0)))
        *out = cps_cv_bool(x->i != 0);
    else if (cps_streq(type, "str") && x->kind == CPS_A_STR)
        *out = cps_cv_str(x->s);
    else if (cps_streq(type, "dtype") && x->kind == CPS_A_DTYPE)
        *out = cps_cv_dtype((cps_dtype)x->i);
    else if (cps_streq(type, "dtype") && x->kind == CPS_A_STR &&
             cps_dtype_parse(x->s, strlen(x->s)) != CPS_DT_NONE)
        *out = cps_cv_dtype(cps_dtype_parse(x->s, strlen(x->s)));
    else if ((cps_streq(type, "fp32") || cps_streq(type, "f32")) &&
             (x->kind == CPS_A_FLOAT || x->kind == CPS_A_INT))
        *out = cps_cv_float(x->kind == CPS_A_INT ? (double)x->i : x->f);
    else
        return bad_attr(ev, decl, x);
    return true;
}

// The value as an attribute of a complete instance: enum members by name.
static cps_attr
as_attr(cps_arena *a, const char *key, cps_cv v)
{
    switch (v.kind) {
    case CPS_V_INT:
        return cps_a_int(key, v.u.i);
    case CPS_V_FLOAT:
        return cps_a_float(key, v.u.f);
    case CPS_V_BOOL:
        return cps_a_bool(key, v.u.b);
    case CPS_V_DTYPE:
        return cps_a_dtype(key, v.u.dt);
    case CPS_V_ENUM:
        return cps_a_str(key, cps_arena_strdup(a, v.u.ev->name));
    default:
        return cps_a_str(key, cps_arena_strdup(a, v.u.s));
    }
}

// Defaults have the declared type too: `eps: fp32 = 1` is 1.0.
static bool
default_value(cps_eval *ev, const cps_ast_attr *decl, cps_cv *out)
{
    if (!decl->dflt)
        return cps_eval_error(ev, CPS_E2310, decl->span, "attribute `%s` (%s) must be given",
                              decl->name.text, type_name(decl));
    if (!cps_eval_expr(ev, decl->dflt, out))
        return false;
    if (out->kind == CPS_V_INT || out->kind == CPS_V_FLOAT || out->kind == CPS_V_BOOL ||
        out->kind == CPS_V_STR || out->kind == CPS_V_DTYPE || out->kind == CPS_V_ENUM) {
        cps_attr x = as_attr(ev->c.arena, decl->name.text, *out);
        return cps_dsl_attr_value(ev, decl, &x, out);
    }
    return cps_eval_error(ev, CPS_E2301, decl->dflt->span, "the default of `%s` is %s",
                          decl->name.text, cps_eval_describe(ev, *out));
}

static bool
bind_attrs(cps_eval *ev, const cps_ast_op *op, const cps_instance *i)
{
    bool ok = true;
    for (uint16_t k = 0; k < i->nattr; k++) {
        bool known = false;
        for (uint32_t n = 0; n < op->nattr && !known; n++)
            known = cps_streq(op->attr[n].name.text, i->attr[k].key);
        if (!known)
            ok = cps_eval_error(ev, CPS_E2211, op->name.span, "`%s` has no attribute `%s`",
                                op->name.text, i->attr[k].key);
    }
    for (uint32_t n = 0; n < op->nattr; n++) {
        const cps_attr *x = cps_attr_find(i->attr, i->nattr, op->attr[n].name.text);
        cps_cv v = {.kind = CPS_V_POISON};
        ok &= x ? cps_dsl_attr_value(ev, &op->attr[n], x, &v) : default_value(ev, &op->attr[n], &v);
        cps_eval_define(ev, op->attr[n].name.text, v, op->attr[n].span);
    }
    return ok;
}

/* ---- dims ---- */

static const cps_ast_name *
plain(cps_expr_p e)
{
    return e->kind == CPS_EX_NAME ? &CPS_AST_AS(ref, e)->name : NULL;
}

// First sight of every plain name.
static void
bind_names(cps_eval *ev, const cps_ast_op *op, const cps_instance *i)
{
    for (uint32_t k = 0; k < op->noperand; k++) {
        const cps_operand *x = &i->operand[k];
        for (uint32_t n = 0; x->present && n < op->operand[k].n; n++) {
            const cps_ast_name *name = plain(op->operand[k].extent[n]);
            if (name && !cps_eval_find(ev, name->sym))
                cps_eval_define(ev, name->text, cps_cv_int(x->type.dim[n]), name->span);
        }
    }
}

static bool
check_operand(cps_eval *ev, const cps_ast_op *op, uint32_t k, const cps_instance *i)
{
    const cps_ast_operand *decl = &op->operand[k];
    const cps_type *t = &i->operand[k].type;
    bool ok = true;
    for (uint32_t n = 0; n < decl->n; n++) {
        int64_t want;
        if (!cps_eval_int(ev, decl->extent[n], "an extent", &want)) {
            ok = false;
        } else if (want != t->dim[n]) {
            const cps_ast_name *name = plain(decl->extent[n]);
            const cps_binding *b = name ? cps_eval_find(ev, name->sym) : NULL;
            ok = cps_eval_error(ev, CPS_E2310, decl->extent[n]->span,
                                "axis %u of `%s` is %lld, and %s is %lld", n, decl->name.text,
                                (long long)t->dim[n],
                                cps_ast_expr_text(ev->c.arena, decl->extent[n]),
                                (long long)want);
            if (b && b->span.file && b->span.begin != name->span.begin)
                cps_note(ev->c.diags, b->span, "`%s` comes from here", name->text);
        }
    }
    if (decl->dtype) {
        cps_dtype want;
        if (!cps_eval_dtype(ev, decl->dtype, &want))
            ok = false;
        else if (want != t->dtype)
            ok = cps_eval_error(ev, CPS_E2310, decl->dtype->span, "`%s` is %s, wants %s",
                                decl->name.text, cps_dtype_name(t->dtype), cps_dtype_name(want));
    }
    return ok;
}

static bool
operands_fit(cps_eval *ev, const cps_ast_op *op, const cps_instance *i)
{
    bool ok = true;
    if (i->noperands != (int)op->noperand || op->nresult > CPS_MAX_OPERANDS)
        return cps_eval_error(ev, CPS_E2310, op->name.span, "`%s` has %u operands, %d given",
                              op->name.text, op->noperand, i->noperands);
    for (uint32_t k = 0; k < op->noperand; k++) {
        const cps_operand *x = &i->operand[k];
        if (!x->present) {
            if (!op->operand[k].optional)
                ok = cps_eval_error(ev, CPS_E2310, op->operand[k].span, "operand `%s` is missing",
                                    op->operand[k].name.text);
            continue;
        }
        if (!cps_type_ok(&x->type)) {
            cps_buf b = {0};
            cps_type_print(&x->type, &b);
            ok = cps_eval_error(ev, CPS_E2310, op->operand[k].span,
                                "`%s` is %s: an extent is negative, or there are too many "
                                "elements",
                                op->operand[k].name.text, b.data);
            cps_buf_fini(&b);
        } else if (x->type.rank != (int)op->operand[k].n) {
            ok = cps_eval_error(ev, CPS_E2310, op->operand[k].span,
                                "`%s` has %u axes, %d given", op->operand[k].name.text,
                                op->operand[k].n, x->type.rank);
        }
    }
    return ok;
}

static bool
bind_derived(cps_eval *ev, const cps_ast_op *op)
{
    bool ok = true;
    for (uint32_t k = 0; k < op->ndimdef; k++) {
        int64_t v;
        ok &= cps_eval_int(ev, op->dimdef[k].value, "a dimension", &v);
        if (ok)
            cps_eval_define(ev, op->dimdef[k].name.text, cps_cv_int(v), op->dimdef[k].name.span);
    }
    return ok;
}

static void
define_absent(cps_eval *ev, const cps_ast_op *op, const cps_instance *i)
{
    for (uint32_t k = 0; k < op->noperand; k++)
        if (!i->operand[k].present)
            cps_eval_define(ev, op->operand[k].name.text, (cps_cv){.kind = CPS_V_ABSENT},
                            op->operand[k].span);
}

bool
cps_dsl_define_call(cps_eval *ev, const cps_dsl_op *op, const cps_instance *i)
{
    const cps_dsl_module *module = ev->module;
    ev->module = op->module;
    bool ok = operands_fit(ev, op->ast, i) && bind_attrs(ev, op->ast, i);
    if (ok) {
        bind_names(ev, op->ast, i);
        for (uint32_t k = 0; k < op->ast->noperand; k++)
            if (i->operand[k].present)
                ok &= check_operand(ev, op->ast, k, i);
        ok = ok && bind_derived(ev, op->ast);
        define_absent(ev, op->ast, i);
    }
    ev->module = module;
    return ok;
}

/* ---- results ---- */

static bool
result_type(cps_eval *ev, const cps_ast_op *op, uint32_t k, const cps_instance *i, cps_type *out)
{
    const cps_ast_operand *decl = &op->result[k];
    *out = (cps_type){.dtype = CPS_DT_FP32, .rank = (int)decl->n};
    if (decl->n > CPS_MAX_RANK)
        return cps_eval_error(ev, CPS_E2310, decl->span, "`%s` has %u axes; at most %d are known",
                              decl->name.text, decl->n, CPS_MAX_RANK);
    for (uint32_t n = 0; n < decl->n; n++)
        if (!cps_eval_int(ev, decl->extent[n], "an extent", &out->dim[n]))
            return false;
    for (uint32_t n = 0; n < op->noperand; n++)
        if (i->operand[n].present) {
            out->dtype = i->operand[n].type.dtype;
            break;
        }
    if (decl->dtype && !cps_eval_dtype(ev, decl->dtype, &out->dtype))
        return false;
    if (!cps_type_ok(out)) {
        cps_buf b = {0};
        for (uint32_t n = 0; n < decl->n; n++)
            cps_buf_printf(&b, "%s%lld", n ? ", " : "", (long long)out->dim[n]);
        cps_eval_error(ev, CPS_E2310, decl->span, "`%s` would be [%s]", decl->name.text, b.data);
        cps_buf_fini(&b);
        return false;
    }
    return true;
}

bool
cps_dsl_infer(cps_dsl_set *s, cps_arena *a, const cps_dsl_op *op, cps_instance *i, cps_diags *d)
{
    cps_arena *scratch = cps_arena_create();
    cps_eval ev;
    cps_eval_config c = {.arena = scratch, .diags = d, .set = s, .module = op->module,
                         .target = i->target, .cores = i->cores};
    cps_eval_init(&ev, &c);
    uint32_t mark = cps_eval_push(&ev);
    bool ok = cps_dsl_define_call(&ev, op, i);
    cps_attr *attr = NULL;
    uint16_t nattr = 0;
    for (uint32_t k = 0; ok && k < op->ast->nattr; k++) {
        const char *key = cps_arena_strdup(a, op->ast->attr[k].name.text);
        const cps_binding *b = cps_eval_find(&ev, op->ast->attr[k].name.sym);
        cps_attr_put(a, &attr, &nattr, as_attr(a, key, b->v));
    }
    for (uint32_t k = 0; ok && k < op->ast->nresult; k++) {
        cps_operand *r = &i->result[k];
        *r = (cps_operand){.present = true, .order = r->order};
        r->name = cps_arena_strdup(a, op->ast->result[k].name.text);
        ok = result_type(&ev, op->ast, k, i, &r->type);
    }
    if (ok) {
        i->op = cps_arena_strdup(a, op->ast->name.text);
        i->attr = attr;
        i->nattr = nattr;
        i->nresults = (int)op->ast->nresult;
        for (uint32_t k = 0; k < op->ast->noperand; k++)
            i->operand[k].name = cps_arena_strdup(a, op->ast->operand[k].name.text);
    }
    cps_eval_flush_trail(&ev);
    cps_eval_pop(&ev, mark);
    cps_arena_destroy(scratch);
    return ok && ev.failed == 0;
}
