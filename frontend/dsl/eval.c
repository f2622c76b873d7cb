/* Expressions of the kernel language at compile time, names and scopes.
 *
 * In: a syntax tree, bindings, hooks of the driver. Out: values, or diagnostics E22xx and E23xx.
 * Holds: integers are 64-bit and never wrap silently; nothing depends on clocks, addresses or the
 * order of a hash. Opaque values are never looked into: the hooks combine them. */
#include "frontend/dsl/eval.h"
#include "frontend/dsl/builtin.h"
#include "frontend/dsl/check.h"

#include <math.h>

enum {
    STEP_LIMIT = 4000000,
    TRAIL_NOTES = 8
};

void
cps_eval_init(cps_eval *ev, const cps_eval_config *c)
{
    memset(ev, 0, sizeof *ev);
    ev->c = *c;
    if (ev->c.cores <= 0)
        ev->c.cores = 1;
    if (ev->c.ranks <= 0)
        ev->c.ranks = 1;
    if (ev->c.step_limit <= 0)
        ev->c.step_limit = STEP_LIMIT;
    if (!ev->c.host.vector_bytes)
        ev->c.host = (cps_eval_host){.vector_bytes = 32, .vregs = 16, .fma_per_cycle = 2};
    ev->module = c->module;
    cps_map_init(&ev->consts, c->arena);
    cps_map_init(&ev->enums, c->arena);
}

/* ---- reporting ---- */

void
cps_eval_flush_trail(cps_eval *ev)
{
    if (!ev->trail_due)
        return;
    ev->trail_due = false;
    int shown = 0;
    for (uint32_t i = ev->trail.n; i > 0 && shown < TRAIL_NOTES; i--, shown++) {
        const cps_trail *t = &ev->trail.data[i - 1];
        if (t->bind) {
            const char *range = cps_ast_expr_text(ev->c.arena, t->bind->range);
            if (t->v.kind == CPS_V_PIECE)
                cps_note(ev->c.diags, CPS_NOSPAN, "in %s = %s piece %lld of %lld%s, size %lld",
                         t->bind->name.text, range, (long long)t->v.u.piece->index,
                         (long long)t->v.u.piece->count,
                         t->v.u.piece->index == t->v.u.piece->count - 1 ? ", last" : "",
                         (long long)cps_piece_size(t->v.u.piece));
            else
                cps_note(ev->c.diags, CPS_NOSPAN, "in %s = %s, iteration %lld of %lld",
                         t->bind->name.text, cps_cv_text(ev->c.arena, t->v), (long long)t->i,
                         (long long)t->count);
        } else if (t->call && t->call->head.span.file) {
            cps_note(ev->c.diags, t->call->head.span, "`%s` was called from here", t->fn);
        }
    }
}

bool
cps_eval_error(cps_eval *ev, cps_code code, cps_span at, const char *fmt, ...)
{
    va_list ap;
    cps_eval_flush_trail(ev);
    va_start(ap, fmt);
    cps_verror(ev->c.diags, code, at, fmt, ap);
    va_end(ap);
    ev->failed++;
    ev->trail_due = true;
    return false;
}

const char *
cps_eval_describe(cps_eval *ev, cps_cv v)
{
    const char *s = NULL;
    if (v.kind == CPS_V_OPAQUE && ev->c.hooks && ev->c.hooks->describe)
        s = ev->c.hooks->describe(ev, v);
    if (s)
        return s;
    switch (v.kind) {
    case CPS_V_INT:
    case CPS_V_FLOAT:
    case CPS_V_BOOL:
    case CPS_V_DTYPE:
    case CPS_V_ENUM:
    case CPS_V_WORD:
    case CPS_V_PIECE:
        return cps_arena_printf(ev->c.arena, "%s", cps_cv_text(ev->c.arena, v));
    default:
        return cps_vkind_name(v.kind);
    }
}

bool
cps_eval_step(cps_eval *ev, cps_span at)
{
    if (ev->stopped)
        return false;
    if (++ev->steps <= ev->c.step_limit)
        return true;
    ev->stopped = true;
    cps_eval_error(ev, CPS_E2901, at, "the trace takes more than %lld steps",
                   (long long)ev->c.step_limit);
    cps_help(ev->c.diags, "a loop without end, or a shape that unrolls too far: see `loop` and "
                          "larger tiles");
    return false;
}

bool
cps_eval_enter(cps_eval *ev, cps_span at)
{
    if (ev->depth >= CPS_EVAL_DEPTH) {
        ev->stopped = true;
        return cps_eval_error(ev, CPS_E2902, at, "statements and calls nest too deep");
    }
    ev->depth++;
    return true;
}

/* ---- scopes ---- */

uint32_t
cps_eval_push(cps_eval *ev)
{
    cps_vec_push(ev->c.arena, &ev->scopes, ev->names.n);
    return ev->scopes.n - 1;
}

void
cps_eval_pop(cps_eval *ev, uint32_t mark)
{
    cps_assert(mark < ev->scopes.n);
    ev->names.n = ev->scopes.data[mark];
    ev->scopes.n = mark;
}

static cps_binding *
own_binding(cps_eval *ev, cps_sym sym)
{
    uint32_t first = ev->scopes.n ? ev->scopes.data[ev->scopes.n - 1] : 0;
    for (uint32_t i = ev->names.n; i > first; i--)
        if (ev->names.data[i - 1].sym == sym)
            return &ev->names.data[i - 1];
    return NULL;
}

bool
cps_eval_bind(cps_eval *ev, const cps_ast_name *name, cps_cv v, uint32_t flags)
{
    cps_binding *old = own_binding(ev, name->sym);
    cps_binding b = {name->sym, flags, name->span, v};
    if (!old) {
        cps_vec_push(ev->c.arena, &ev->names, b);
        return true;
    }
    if (old->v.kind != CPS_V_POISON && v.kind != CPS_V_POISON) {
        cps_eval_error(ev, CPS_E2203, name->span, "`%s` is declared twice", name->text);
        cps_note(ev->c.diags, old->span, "the other one");
        return false;
    }
    if (old->v.kind == CPS_V_POISON)
        *old = b;
    return true;
}

void
cps_eval_define(cps_eval *ev, const char *name, cps_cv v, cps_span where)
{
    cps_sym sym = cps_sym_intern(ev->c.set->syms, name);
    cps_binding *old = own_binding(ev, sym);
    cps_binding b = {sym, 0, where, v};
    if (old)
        *old = b;
    else
        cps_vec_push(ev->c.arena, &ev->names, b);
}

cps_binding *
cps_eval_find(cps_eval *ev, cps_sym sym)
{
    for (uint32_t i = ev->names.n; i > ev->frame; i--)
        if (ev->names.data[i - 1].sym == sym)
            return &ev->names.data[i - 1];
    return NULL;
}

/* ---- names of the file and predefined ones ---- */

// Runs `e` with nothing but the names of `m` in sight.
static bool
in_file(cps_eval *ev, const cps_dsl_module *m, cps_expr_p e, cps_cv *out)
{
    uint32_t frame = ev->frame;
    const cps_dsl_module *module = ev->module;
    ev->frame = ev->names.n;
    ev->module = m;
    bool ok = cps_eval_expr(ev, e, out);
    ev->frame = frame;
    ev->module = module;
    return ok;
}

static bool
constant(cps_eval *ev, const cps_dsl_def *def, cps_span at, cps_cv *out)
{
    const cps_ast_const *n = CPS_AST_AS(const, def->item);
    bool fresh;
    uint64_t *slot = cps_map_at(&ev->consts, (uintptr_t)n, &fresh);
    if (!fresh) {
        if (*slot == 0)
            return cps_eval_error(ev, CPS_E2303, at, "the constant `%s` is made of itself",
                                  n->name.text);
        *out = ev->const_val.data[*slot - 1];
        return out->kind != CPS_V_POISON;
    }
    bool ok = in_file(ev, def->owner, n->value, out);
    if (!ok)
        *out = (cps_cv){.kind = CPS_V_POISON};
    cps_vec_push(ev->c.arena, &ev->const_val, *out);
    *cps_map_at(&ev->consts, (uintptr_t)n, NULL) = ev->const_val.n;
    return ok;
}

// The members with their values, worked out once; NULL after an error.
static const cps_enum_value *
members(cps_eval *ev, const cps_dsl_module *owner, const cps_ast_enum *n)
{
    uint64_t *slot = cps_map_find(&ev->enums, (uintptr_t)n);
    if (slot)
        return (const cps_enum_value *)(uintptr_t)*slot;
    cps_enum_value *v = cps_new_array(ev->c.arena, cps_enum_value, n->n);
    int64_t next = 0;
    for (uint32_t i = 0; i < n->n; i++) {
        cps_cv value = cps_cv_int(next);
        if (n->member[i].value && (!in_file(ev, owner, n->member[i].value, &value) ||
                                   (value.kind != CPS_V_INT &&
                                    !cps_eval_error(ev, CPS_E2301, n->member[i].value->span,
                                                    "the value of an enum member must be an "
                                                    "integer, not %s",
                                                    cps_eval_describe(ev, value)))))
            return NULL;
        v[i] = (cps_enum_value){n, n->member[i].name.text, value.u.i};
        if (__builtin_add_overflow(value.u.i, 1, &next))
            next = 0;
    }
    *cps_map_at(&ev->enums, (uintptr_t)n, NULL) = (uintptr_t)v;
    return v;
}

static bool
word(cps_eval *ev, const char *s, cps_cv *out)
{
    if (cps_streq(s, "true") || cps_streq(s, "false"))
        *out = cps_cv_bool(s[0] == 't');
    else if (cps_streq(s, "inf"))
        *out = cps_cv_float(HUGE_VAL);
    else if (cps_streq(s, "lowest"))
        *out = cps_cv_float(-3.40282346638528859811704183484516925e38);
    else if (cps_streq(s, "P"))
        *out = cps_cv_int(128);
    else if (cps_streq(s, "core"))
    {
        ev->split = true;
        *out = cps_cv_int(ev->c.core);
    }
    else if (cps_streq(s, "cores"))
        *out = cps_cv_int(ev->c.cores);
    else if (cps_streq(s, "ranks"))
        *out = cps_cv_int(ev->c.ranks);
    else if (cps_streq(s, "target"))
        *out = (cps_cv){.kind = CPS_V_TARGET};
    else if (cps_dsl_is_word(s))
        *out = (cps_cv){.kind = CPS_V_WORD, .u.s = s};
    else
        return false;
    return true;
}

static bool
unknown(cps_eval *ev, cps_ast_name name)
{
    cps_eval_error(ev, CPS_E2201, name.span, "`%s` is not declared", name.text);
    cps_help(ev->c.diags, "a declaration in a branch that was not taken declares nothing");
    return false;
}

// `absent`: the place takes an optional operand that was not given.
static bool
reference(cps_eval *ev, const cps_ast_ref *e, bool absent, cps_cv *out)
{
    cps_binding *b = cps_eval_find(ev, e->name.sym);
    if (b) {
        *out = b->v;
        if (b->v.kind == CPS_V_POISON)
            return false;
        if (b->v.kind == CPS_V_ABSENT && !absent) {
            cps_eval_error(ev, CPS_E2306, e->head.span, "the optional operand `%s` is absent",
                           e->name.text);
            cps_help(ev->c.diags, "guard its use: `if (present(%s)) { ... }`", e->name.text);
            return false;
        }
        return true;
    }
    const cps_dsl_def *def = ev->module ? cps_dsl_lookup(ev->module, e->name.sym) : NULL;
    if (def && def->item->kind == CPS_IT_CONST)
        return constant(ev, def, e->head.span, out);
    if (def && def->item->kind == CPS_IT_FN) {
        *out = (cps_cv){.kind = CPS_V_FN, .u.fn = def};
        return true;
    }
    if (def && def->item->kind == CPS_IT_ENUM) {
        const cps_ast_enum *n = CPS_AST_AS(enum, def->item);
        *out = (cps_cv){.kind = CPS_V_ENUMTYPE, .u.et = n};
        return members(ev, def->owner, n) != NULL;
    }
    if (word(ev, e->name.text, out))
        return true;
    cps_dtype t = cps_dtype_parse(e->name.text, strlen(e->name.text));
    if (t == CPS_DT_NONE)
        return unknown(ev, e->name);
    *out = cps_cv_dtype(t);
    return true;
}

const cps_enum_value *
cps_eval_enum_values(cps_eval *ev, const cps_ast_enum *n)
{
    uint64_t *slot = cps_map_find(&ev->enums, (uintptr_t)n);
    return slot ? (const cps_enum_value *)(uintptr_t)*slot : NULL;
}

/* ---- operators ---- */

// && and ||: the right side of a decided bool is not evaluated.
static bool
binary(cps_eval *ev, const cps_ast_binary *e, cps_cv *out)
{
    cps_cv a, b;
    if (!cps_eval_expr(ev, e->a, &a))
        return false;
    if (a.kind == CPS_V_BOOL && ((e->op == CPS_BIN_AND && !a.u.b) || (e->op == CPS_BIN_OR && a.u.b))) {
        *out = a;
        return true;
    }
    return cps_eval_expr(ev, e->b, &b) && cps_eval_binop(ev, e, e->op, e->op_span, a, b, out);
}

static bool
unary(cps_eval *ev, const cps_ast_unary *e, cps_cv *out)
{
    cps_cv a;
    if (!cps_eval_expr(ev, e->a, &a))
        return false;
    if (cps_is_driver(a) && ev->c.hooks && ev->c.hooks->unary) {
        cps_hook h = ev->c.hooks->unary(ev, e, a, out);
        if (h != CPS_HOOK_PASS)
            return h == CPS_HOOK_DONE;
    }
    if (e->op == CPS_UN_NOT && a.kind == CPS_V_BOOL) {
        *out = cps_cv_bool(!a.u.b);
        return true;
    }
    if (e->op == CPS_UN_NEG && a.kind == CPS_V_FLOAT) {
        *out = cps_cv_float(-a.u.f);
        return true;
    }
    if (e->op == CPS_UN_NEG && a.kind == CPS_V_INT) {
        if (a.u.i == INT64_MIN)
            return cps_eval_error(ev, CPS_E2303, e->head.span, "-(%lld) does not fit 64 bits",
                                  (long long)a.u.i);
        *out = cps_cv_int(-a.u.i);
        return true;
    }
    return cps_eval_error(ev, CPS_E2302, e->head.span, "`%s` has no meaning for %s",
                          cps_ast_un_text[e->op], cps_eval_describe(ev, a));
}

static bool
condition(cps_eval *ev, const cps_ast_cond *e, cps_cv *out)
{
    bool c;
    return cps_eval_bool(ev, e->cond, "a condition", &c) &&
           cps_eval_expr(ev, c ? e->yes : e->no, out);
}

/* ---- sequences ---- */

static bool
sequence(cps_eval *ev, const cps_ast_seq *e, cps_cv *out)
{
    cps_cv *v = cps_new_array(ev->c.arena, cps_cv, e->n);
    for (uint32_t i = 0; i < e->n; i++)
        if (!cps_eval_expr(ev, e->item[i], &v[i]))
            return false;
    cps_vkind kind = e->head.kind == CPS_EX_TUPLE  ? CPS_V_TUPLE
                     : e->head.kind == CPS_EX_LIST ? CPS_V_LIST
                                                   : CPS_V_SET;
    *out = cps_cv_seq(ev->c.arena, kind, v, e->n);
    return true;
}

static bool
comprehension(cps_eval *ev, const cps_ast_each *e, cps_cv *out)
{
    cps_cv range;
    if (!cps_eval_expr(ev, e->range, &range))
        return false;
    int64_t n = cps_cv_count(range);
    if (n < 0)
        return cps_eval_error(ev, CPS_E2301, e->range->span, "%s is not a range or a list",
                              cps_eval_describe(ev, range));
    if (n > ev->c.step_limit)
        n = ev->c.step_limit + 1; // the limit reports it
    CPS_VEC(cps_cv) v = {0};
    bool ok = true;
    for (int64_t i = 0; i < n && ok; i++) {
        uint32_t mark = cps_eval_push(ev);
        cps_cv x;
        ok = cps_eval_bind(ev, &e->name, cps_cv_at(ev->c.arena, range, i), 0) &&
             cps_eval_expr(ev, e->value, &x);
        if (ok)
            cps_vec_push(ev->c.arena, &v, x);
        cps_eval_pop(ev, mark);
    }
    if (ok)
        *out = cps_cv_seq(ev->c.arena, CPS_V_LIST, v.data, v.n);
    return ok;
}

static bool
position(cps_eval *ev, cps_span at, cps_cv base, int64_t i, int64_t n, cps_cv *out)
{
    if (i < 0 || i >= n)
        return cps_eval_error(ev, CPS_E2307, at, "index %lld is outside the %lld there are",
                              (long long)i, (long long)n);
    *out = cps_cv_at(ev->c.arena, base, i);
    return true;
}

static bool
subscript(cps_eval *ev, const cps_ast_index *e, cps_cv *out)
{
    cps_cv base;
    if (!cps_eval_expr(ev, e->base, &base))
        return false;
    if (base.kind == CPS_V_OPAQUE && ev->c.hooks && ev->c.hooks->index) {
        cps_hook h = ev->c.hooks->index(ev, e, base, out);
        if (h != CPS_HOOK_PASS)
            return h == CPS_HOOK_DONE;
    }
    bool list = base.kind == CPS_V_TUPLE || base.kind == CPS_V_LIST;
    if ((!list && base.kind != CPS_V_PIECES) || e->n != 1)
        return cps_eval_error(ev, CPS_E2302, e->head.span, "%s takes no such subscript",
                              cps_eval_describe(ev, base));
    const cps_ast_sub *s = &e->sub[0];
    int64_t n = cps_cv_count(base), lo = 0, hi = n, step = 1;
    if (!s->slice)
        return cps_eval_int(ev, s->lo, "an index", &lo) &&
               position(ev, s->span, base, lo, n, out);
    if ((s->lo && !cps_eval_int(ev, s->lo, "a bound", &lo)) ||
        (s->hi && !cps_eval_int(ev, s->hi, "a bound", &hi)) ||
        (s->step && !cps_eval_int(ev, s->step, "a step", &step)))
        return false;
    if (!list || lo < 0 || hi > n || lo > hi || step < 1)
        return cps_eval_error(ev, CPS_E2307, s->span, "slice %lld:%lld of %lld", (long long)lo,
                              (long long)hi, (long long)n);
    cps_cv *v = cps_new_array(ev->c.arena, cps_cv, hi - lo);
    uint32_t k = 0;
    for (int64_t i = lo; i < hi; i += step)
        v[k++] = base.u.seq->item[i];
    *out = cps_cv_seq(ev->c.arena, base.kind, v, k);
    return true;
}

/* ---- members ---- */

static bool
no_member(cps_eval *ev, const cps_ast_name *name, cps_cv base, const char *has)
{
    cps_eval_error(ev, CPS_E2210, name->span, "%s has no member `%s`", cps_eval_describe(ev, base),
                   name->text);
    if (has)
        cps_help(ev->c.diags, "members are: %s", has);
    return false;
}

static bool
piece_member(cps_eval *ev, const cps_ast_name *name, cps_cv v, cps_cv *out)
{
    const cps_piece *p = v.u.piece;
    if (cps_streq(name->text, "start"))
        *out = cps_cv_int(p->start);
    else if (cps_streq(name->text, "end"))
        *out = cps_cv_int(p->end);
    else if (cps_streq(name->text, "size"))
        *out = cps_cv_int(p->end - p->start);
    else if (cps_streq(name->text, "index"))
        *out = cps_cv_int(p->index);
    else if (cps_streq(name->text, "count"))
        *out = cps_cv_int(p->count);
    else if (cps_streq(name->text, "first"))
        *out = cps_cv_bool(p->index == p->before);
    else if (cps_streq(name->text, "last"))
        *out = cps_cv_bool(p->index == p->count - 1 - p->after);
    else
        return no_member(ev, name, v, "start end size index count first last");
    return true;
}

static bool
pieces_member(cps_eval *ev, const cps_ast_name *name, cps_cv v, cps_cv *out)
{
    const cps_pieces *p = v.u.pieces;
    if (cps_streq(name->text, "start"))
        *out = cps_cv_int(p->start);
    else if (cps_streq(name->text, "end"))
        *out = cps_cv_int(p->end);
    else if (cps_streq(name->text, "size"))
        *out = cps_cv_int(p->end - p->start);
    else if (cps_streq(name->text, "count"))
        *out = cps_cv_int(p->count);
    else
        return no_member(ev, name, v, "start end size count");
    return true;
}

static bool
enum_member(cps_eval *ev, const cps_ast_name *name, cps_cv v, cps_cv *out)
{
    const cps_enum_value *m = cps_eval_enum_values(ev, v.u.et);
    for (uint32_t i = 0; m && i < v.u.et->n; i++)
        if (v.u.et->member[i].name.sym == name->sym) {
            *out = (cps_cv){.kind = CPS_V_ENUM, .u.ev = &m[i]};
            return true;
        }
    return no_member(ev, name, v, NULL);
}

static bool
member(cps_eval *ev, const cps_ast_member *e, cps_cv *out)
{
    cps_cv v;
    if (!cps_eval_expr(ev, e->base, &v))
        return false;
    switch (v.kind) {
    case CPS_V_RANGE:
    case CPS_V_PIECE:
    case CPS_V_SLICE:
        return piece_member(ev, &e->name, v, out);
    case CPS_V_PIECES:
        return pieces_member(ev, &e->name, v, out);
    case CPS_V_ENUMTYPE:
        return enum_member(ev, &e->name, v, out);
    case CPS_V_TARGET:
        return cps_eval_fact(ev, "target", e->name.text, out) || no_member(ev, &e->name, v, NULL);
    default:
        break;
    }
    if (cps_is_driver(v) && ev->c.hooks && ev->c.hooks->member) {
        cps_hook h = ev->c.hooks->member(ev, e, v, out);
        if (h != CPS_HOOK_PASS)
            return h == CPS_HOOK_DONE;
    }
    return no_member(ev, &e->name, v, NULL);
}

static bool
transpose(cps_eval *ev, const cps_ast_transpose *e, cps_cv *out)
{
    cps_cv v;
    if (!cps_eval_expr(ev, e->base, &v))
        return false;
    if (v.kind == CPS_V_OPAQUE && ev->c.hooks && ev->c.hooks->transpose) {
        cps_hook h = ev->c.hooks->transpose(ev, e, v, out);
        if (h != CPS_HOOK_PASS)
            return h == CPS_HOOK_DONE;
    }
    return cps_eval_error(ev, CPS_E2302, e->head.span, "`'` has no meaning for %s",
                          cps_eval_describe(ev, v));
}

/* ---- calls ---- */

bool
cps_eval_args(cps_eval *ev, const cps_ast_call *e, cps_arg *out)
{
    bool ok = true;
    for (uint32_t i = 0; i < e->n; i++) {
        out[i].src = &e->arg[i];
        ok &= cps_eval_expr(ev, e->arg[i].value, &out[i].v);
    }
    return ok;
}

const cps_dsl_def *
cps_eval_callee(cps_eval *ev, const cps_ast_call *e)
{
    if (e->fn->kind != CPS_EX_NAME)
        return NULL;
    cps_ast_name name = CPS_AST_AS(ref, e->fn)->name;
    cps_binding *b = cps_eval_find(ev, name.sym);
    if (b && b->v.kind == CPS_V_FN)
        return b->v.u.fn;
    const cps_dsl_def *def = ev->module ? cps_dsl_lookup(ev->module, name.sym) : NULL;
    return def && def->item->kind == CPS_IT_FN ? def : NULL;
}

// present(NAME): only a name can be absent.
static bool
present(cps_eval *ev, const cps_ast_call *e, cps_cv *out)
{
    cps_cv v;
    if (e->n != 1 || e->arg[0].value->kind != CPS_EX_NAME || e->arg[0].name.sym)
        return cps_eval_error(ev, CPS_E2211, e->head.span,
                              "`present` takes the name of an optional operand");
    if (!reference(ev, CPS_AST_AS(ref, e->arg[0].value), true, &v))
        return false;
    *out = cps_cv_bool(v.kind != CPS_V_ABSENT);
    return true;
}

static bool
supports(cps_eval *ev, const cps_ast_call *e, cps_cv *out)
{
    if (e->n != 1 || e->arg[0].value->kind != CPS_EX_NAME || e->arg[0].name.sym)
        return cps_eval_error(ev, CPS_E2211, e->head.span,
                              "`supports` takes the name of an instruction");
    const cps_ast_name *name = &CPS_AST_AS(ref, e->arg[0].value)->name;
    if (ev->c.hooks && ev->c.hooks->supports) {
        cps_hook h = ev->c.hooks->supports(ev, name, out);
        if (h != CPS_HOOK_PASS)
            return h == CPS_HOOK_DONE;
    }
    return cps_builtin_supports(ev, name, out);
}

static bool
method(cps_eval *ev, const cps_ast_call *e, const cps_ast_member *m, cps_cv *out)
{
    cps_cv base;
    cps_arg *arg = cps_new_array(ev->c.arena, cps_arg, e->n);
    if (!cps_eval_expr(ev, m->base, &base) || !cps_eval_args(ev, e, arg))
        return false;
    if (base.kind == CPS_V_TARGET)
        return cps_builtin_target(ev, e, &m->name, arg, out);
    if (base.kind == CPS_V_OPAQUE && ev->c.hooks && ev->c.hooks->method) {
        cps_hook h = ev->c.hooks->method(ev, e, base, &m->name, arg, e->n, out);
        if (h != CPS_HOOK_PASS)
            return h == CPS_HOOK_DONE;
    }
    return no_member(ev, &m->name, base, NULL);
}

static bool
call(cps_eval *ev, const cps_ast_call *e, cps_cv *out)
{
    if (e->fn->kind == CPS_EX_MEMBER)
        return method(ev, e, CPS_AST_AS(member, e->fn), out);
    if (e->fn->kind != CPS_EX_NAME)
        return cps_eval_error(ev, CPS_E2302, e->fn->span, "this cannot be called");
    const cps_ast_name *name = &CPS_AST_AS(ref, e->fn)->name;
    if (cps_streq(name->text, "present"))
        return present(ev, e, out);
    if (cps_streq(name->text, "supports"))
        return supports(ev, e, out);
    const cps_dsl_def *fn = cps_eval_callee(ev, e);
    cps_arg *arg = cps_new_array(ev->c.arena, cps_arg, e->n);
    if (!cps_eval_args(ev, e, arg))
        return false;
    if (fn)
        return cps_eval_fn(ev, fn, e, arg, e->n, out);
    bool known = true;
    for (uint32_t i = 0; i < e->n; i++)
        known &= !cps_is_driver(arg[i].v) && !arg[i].src->name.sym;
    if (known) {
        cps_hook h = cps_builtin_call(ev, e, name, arg, out);
        if (h != CPS_HOOK_PASS)
            return h == CPS_HOOK_DONE;
    }
    if (ev->c.hooks && ev->c.hooks->call) {
        cps_hook h = ev->c.hooks->call(ev, e, name, arg, e->n, out);
        if (h != CPS_HOOK_PASS)
            return h == CPS_HOOK_DONE;
    }
    if (cps_dsl_is_function(name->text, 'C'))
        return cps_eval_error(ev, CPS_E2211, e->head.span, "`%s` does not take these arguments",
                              name->text);
    return cps_eval_error(ev, CPS_E2202, name->span, "there is no function `%s` here",
                          name->text);
}

/* ---- dispatch ---- */

static bool
evaluate(cps_eval *ev, cps_expr_p e, cps_cv *out)
{
    switch (e->kind) {
    case CPS_EX_NAME:
        return reference(ev, CPS_AST_AS(ref, e), false, out);
    case CPS_EX_SPACE: {
        const cps_ast_spaceref *n = CPS_AST_AS(spaceref, e);
        if (cps_eval_fact(ev, cps_ast_space_text[n->space], n->name.text, out))
            return true;
        return cps_eval_error(ev, CPS_E2210, n->name.span, "`%s` has no member `%s`",
                              cps_ast_space_text[n->space], n->name.text);
    }
    case CPS_EX_INT:
        *out = cps_cv_int(CPS_AST_AS(int, e)->value);
        return true;
    case CPS_EX_FLOAT:
        *out = cps_cv_float(CPS_AST_AS(float, e)->value);
        return true;
    case CPS_EX_STR:
        *out = cps_cv_str(CPS_AST_AS(str, e)->text);
        return true;
    case CPS_EX_TUPLE:
    case CPS_EX_LIST:
    case CPS_EX_SET:
        return sequence(ev, CPS_AST_AS(seq, e), out);
    case CPS_EX_EACH:
        return comprehension(ev, CPS_AST_AS(each, e), out);
    case CPS_EX_COND:
        return condition(ev, CPS_AST_AS(cond, e), out);
    case CPS_EX_BINARY:
        return binary(ev, CPS_AST_AS(binary, e), out);
    case CPS_EX_UNARY:
        return unary(ev, CPS_AST_AS(unary, e), out);
    case CPS_EX_INDEX:
        return subscript(ev, CPS_AST_AS(index, e), out);
    case CPS_EX_CALL:
        return call(ev, CPS_AST_AS(call, e), out);
    case CPS_EX_MEMBER:
        return member(ev, CPS_AST_AS(member, e), out);
    case CPS_EX_TRANSPOSE:
        return transpose(ev, CPS_AST_AS(transpose, e), out);
    case CPS_EX_COUNT:
        break;
    }
    cps_bug("an expression of kind %d", (int)e->kind);
}

bool
cps_eval_expr(cps_eval *ev, cps_expr_p e, cps_cv *out)
{
    *out = (cps_cv){.kind = CPS_V_POISON};
    if (!cps_eval_step(ev, e->span))
        return false;
    if (!cps_eval_enter(ev, e->span))
        return false;
    bool ok = evaluate(ev, e, out);
    ev->depth--;
    if (ok && out->kind == CPS_V_POISON)
        ok = false;
    if (!ok)
        *out = (cps_cv){.kind = CPS_V_POISON};
    return ok;
}

/* ---- demanded kinds ---- */

bool
cps_eval_int(cps_eval *ev, cps_expr_p e, const char *what, int64_t *out)
{
    cps_cv v;
    if (!cps_eval_expr(ev, e, &v))
        return false;
    if (v.kind != CPS_V_INT)
        return cps_eval_error(ev, CPS_E2301, e->span, "%s must be an integer, not %s", what,
                              cps_eval_describe(ev, v));
    *out = v.u.i;
    return true;
}

bool
cps_eval_num(cps_eval *ev, cps_expr_p e, const char *what, double *out)
{
    cps_cv v;
    if (!cps_eval_expr(ev, e, &v))
        return false;
    if (v.kind == CPS_V_BOOL || !cps_cv_num(v, out))
        return cps_eval_error(ev, CPS_E2301, e->span, "%s must be a number, not %s", what,
                              cps_eval_describe(ev, v));
    return true;
}

bool
cps_eval_bool(cps_eval *ev, cps_expr_p e, const char *what, bool *out)
{
    cps_cv v;
    if (!cps_eval_expr(ev, e, &v))
        return false;
    if (v.kind == CPS_V_OPAQUE) {
        cps_eval_error(ev, CPS_E2304, e->span, "%s must be known at compile time, and this is %s",
                       what, cps_eval_describe(ev, v));
        cps_help(ev->c.diags, "`when (%s)` branches on the device; tiles are chosen by `select`",
                 cps_ast_expr_text(ev->c.arena, e));
        return false;
    }
    if (v.kind != CPS_V_BOOL)
        return cps_eval_error(ev, CPS_E2301, e->span, "%s must be true or false, not %s", what,
                              cps_eval_describe(ev, v));
    *out = v.u.b;
    return true;
}

bool
cps_eval_dtype(cps_eval *ev, cps_expr_p e, cps_dtype *out)
{
    cps_cv v;
    if (!cps_eval_expr(ev, e, &v))
        return false;
    if (v.kind != CPS_V_DTYPE)
        return cps_eval_error(ev, CPS_E2301, e->span, "a dtype must stand here, not %s",
                              cps_eval_describe(ev, v));
    *out = v.u.dt;
    return true;
}
