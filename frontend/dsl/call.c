/* A call of an operator out of words: named dimensions, one dtype, attributes as text.
 *
 * In: what a command line or a case says. Out: a complete instance, checked by cps_dsl_infer.
 * Extents and dtypes are evaluated from the operator's header over the given dimensions and
 * attributes, so a header may say q[T, H + 4] or x[C * cores, N]. Values are never guessed: a
 * dimension that is missing, or that the header does not know, is an error. */
#include "frontend/dsl/builtin.h"
#include "frontend/dsl/instance.h"

static bool
in_words(int n, const char *const *word, const char *name)
{
    for (int i = 0; i < n; i++)
        if (cps_streq(word[i], name))
            return true;
    return false;
}

static const char *
extent_name(cps_expr_p e)
{
    return e->kind == CPS_EX_NAME ? CPS_AST_AS(ref, e)->name.text : NULL;
}

static int
find_operand(const cps_ast_op *op, const char *name)
{
    for (uint32_t k = 0; k < op->noperand; k++)
        if (cps_streq(op->operand[k].name.text, name))
            return (int)k;
    return -1;
}

static int
find_result(const cps_ast_op *op, const char *name)
{
    for (uint32_t k = 0; k < op->nresult; k++)
        if (cps_streq(op->result[k].name.text, name))
            return (int)k;
    return -1;
}

// The text in the declared type. What does not parse stays text, and infer says what it wants.
static cps_attr
typed(cps_arena *a, const cps_ast_attr *decl, const char *text)
{
    const char *type = extent_name(decl->type), *key = decl->name.text;
    size_t n = strlen(text);
    int64_t i;
    double f;

    type = type ? type : "";
    if (cps_streq(type, "bool")) {
        if (cps_streq(text, "true") || cps_streq(text, "1"))
            return cps_a_bool(key, true);
        if (cps_streq(text, "false") || cps_streq(text, "0"))
            return cps_a_bool(key, false);
    } else if (cps_streq(type, "fp32") || cps_streq(type, "f32")) {
        if (cps_parse_double(text, n, &f))
            return cps_a_float(key, f);
    } else if (!cps_streq(type, "str") && !cps_streq(type, "dtype") && cps_parse_int(text, n, &i)) {
        return cps_a_int(key, i); // int, or a member of an enumeration by value
    }
    return cps_a_str(key, cps_arena_strdup(a, text));
}

// Attributes of the op, and t<operand> or t<result>: stored with the last two axes swapped.
static bool
take_attrs(cps_arena *a, const cps_ast_op *op, const cps_words *w, cps_instance *out, cps_diags *d)
{
    bool ok = true;
    for (int k = 0; k < w->nattr; k++) {
        const cps_ast_attr *decl = NULL;
        for (uint32_t n = 0; n < op->nattr && !decl; n++)
            if (cps_streq(op->attr[n].name.text, w->attr[k]))
                decl = &op->attr[n];
        bool swaps = !decl && w->attr[k][0] == 't';
        int x = swaps ? find_operand(op, w->attr[k] + 1) : -1;
        int y = swaps && x < 0 ? find_result(op, w->attr[k] + 1) : -1;
        uint32_t rank = x >= 0 ? op->operand[x].n : y >= 0 ? op->result[y].n : 0;
        if (decl) {
            cps_attr_put(a, &out->attr, &out->nattr, typed(a, decl, w->text[k]));
        } else if (rank >= 2 && (cps_streq(w->text[k], "0") || cps_streq(w->text[k], "1"))) {
            (x >= 0 ? &out->operand[x] : &out->result[y])->order = w->text[k][0] == '1';
        } else {
            cps_error(d, CPS_E2211, op->name.span, x >= 0 || y >= 0 ? "`%s` has no attribute `%s` of value %s"
                                                          : "`%s` has no attribute `%s`",
                      op->name.text, w->attr[k], w->text[k]);
            ok = false;
        }
    }
    return ok;
}

static bool
names_known(const cps_ast_op *op, const cps_words *w, cps_diags *d)
{
    bool ok = true;
    for (int k = 0; k < w->nwith; k++) {
        int x = find_operand(op, w->with[k]);
        if (x < 0 || !op->operand[x].optional) {
            cps_error(d, CPS_E2310, op->name.span, "`%s` has no optional operand `%s`",
                      op->name.text, w->with[k]);
            ok = false;
        }
    }
    for (int k = 0; k < w->ndim; k++) {
        bool known = false;
        for (uint32_t x = 0; x < op->noperand && !known; x++)
            for (uint32_t n = 0; n < op->operand[x].n && !known; n++) {
                const char *name = extent_name(op->operand[x].extent[n]);
                known = name && cps_streq(name, w->dim[k]);
            }
        if (!known) {
            cps_error(d, CPS_E2310, op->name.span, "`%s` has no dimension `%s`", op->name.text,
                      w->dim[k]);
            ok = false;
        }
    }
    return ok;
}

static bool
define_attrs(cps_eval *ev, const cps_ast_op *op, const cps_instance *i)
{
    for (uint32_t n = 0; n < op->nattr; n++) {
        const cps_ast_attr *decl = &op->attr[n];
        const cps_attr *x = cps_attr_find(i->attr, i->nattr, decl->name.text);
        cps_cv v = {.kind = CPS_V_POISON};
        if (!x && !decl->dflt)
            return cps_eval_error(ev, CPS_E2310, decl->span, "attribute `%s` must be given",
                                  decl->name.text);
        if (!(x ? cps_dsl_attr_value(ev, decl, x, &v) : cps_eval_expr(ev, decl->dflt, &v)))
            return false;
        cps_eval_define(ev, decl->name.text, v, decl->span);
    }
    return true;
}

// Every plain extent of a present operand is a dimension that must be given.
static bool
dims_given(cps_eval *ev, const cps_ast_op *op, const cps_instance *i, const cps_words *w)
{
    CPS_VEC(const char *) missing = {0};
    for (uint32_t k = 0; k < op->noperand; k++)
        for (uint32_t n = 0; i->operand[k].present && n < op->operand[k].n; n++) {
            const char *name = extent_name(op->operand[k].extent[n]);
            if (name && !in_words(w->ndim, w->dim, name) &&
                !cps_eval_find(ev, CPS_AST_AS(ref, op->operand[k].extent[n])->name.sym) &&
                !in_words((int)missing.n, missing.data, name))
                cps_vec_push(ev->c.arena, &missing, name);
        }
    if (!missing.n)
        return true;
    cps_buf b = {0};
    for (uint32_t k = 0; k < missing.n; k++)
        cps_buf_printf(&b, "%s%s", k ? ", " : "", missing.data[k]);
    cps_eval_error(ev, CPS_E2310, op->name.span, "`%s` needs the dimension%s %s", op->name.text,
                   missing.n > 1 ? "s" : "", b.data);
    cps_buf_fini(&b);
    return false;
}

static bool
operand_type(cps_eval *ev, const cps_ast_operand *decl, cps_dtype dtype, cps_type *t)
{
    *t = (cps_type){.dtype = dtype, .rank = (int)decl->n};
    if (decl->n > CPS_MAX_RANK)
        return cps_eval_error(ev, CPS_E2310, decl->span, "`%s` has %u axes; at most %d are known",
                              decl->name.text, decl->n, CPS_MAX_RANK);
    for (uint32_t n = 0; n < decl->n; n++)
        if (!cps_eval_int(ev, decl->extent[n], "an extent", &t->dim[n]))
            return false;
    return !decl->dtype || cps_eval_dtype(ev, decl->dtype, &t->dtype);
}

bool
cps_dsl_make(cps_dsl_set *s, cps_arena *a, const cps_dsl_op *op, const cps_words *w,
             const cps_target *t, int cores, cps_instance *out, cps_diags *d)
{
    const cps_ast_op *ast = op->ast;

    *out = (cps_instance){.op = cps_arena_strdup(a, ast->name.text), .target = t, .cores = cores,
                          .noperands = (int)ast->noperand};
    if (ast->noperand > CPS_MAX_OPERANDS) {
        cps_error(d, CPS_E2310, ast->name.span, "`%s` has %u operands; at most %d are known",
                  ast->name.text, ast->noperand, CPS_MAX_OPERANDS);
        return false;
    }
    if (!names_known(ast, w, d) || !take_attrs(a, ast, w, out, d))
        return false;

    cps_arena *scratch = cps_arena_create();
    cps_eval ev;
    cps_eval_config c = {.arena = scratch, .diags = d, .set = s, .module = op->module, .target = t,
                         .cores = cores};
    cps_eval_init(&ev, &c);
    uint32_t mark = cps_eval_push(&ev);
    for (uint32_t k = 0; k < ast->noperand; k++)
        out->operand[k].present =
            !ast->operand[k].optional || in_words(w->nwith, w->with, ast->operand[k].name.text);
    bool ok = define_attrs(&ev, ast, out);
    for (int k = 0; ok && k < w->ndim; k++)
        cps_eval_define(&ev, w->dim[k], cps_cv_int(w->size[k]), ast->name.span);
    ok = ok && dims_given(&ev, ast, out, w);
    for (uint32_t k = 0; ok && k < ast->noperand; k++) {
        out->operand[k].name = cps_arena_strdup(a, ast->operand[k].name.text);
        if (out->operand[k].present)
            ok = operand_type(&ev, &ast->operand[k], w->dtype, &out->operand[k].type);
    }
    cps_eval_flush_trail(&ev);
    cps_eval_pop(&ev, mark);
    cps_arena_destroy(scratch);
    return ok && cps_dsl_infer(s, a, op, out, d);
}
