/* Checks of load time that need bodies: names, calls, clauses, marks, and what may stand where.
 *
 * In: a set whose files are all read. Out: diagnostics E22xx and W2214. A name is accepted when it
 * is declared anywhere in its leaf, op or fn: scopes are the evaluator's business, since a branch
 * that is not taken declares nothing. So slips in rare branches are found here, at load. */
#include "frontend/dsl/check_priv.h"

#include <stdio.h>

/* ---- names ---- */

static void
declare(cps_checker *c, cps_ast_name name, bool storage)
{
    bool fresh;
    uint64_t *at = cps_map_at(&c->by_sym, name.sym, &fresh);
    if (!fresh) {
        c->decls.data[*at - 1].storage &= storage;
        return;
    }
    cps_vec_push(c->s->arena, &c->decls, ((cps_decl){name, storage, 0}));
    *at = c->decls.n;
}

static void
declare_own(cps_checker *c, cps_ast_name name, bool storage)
{
    if (cps_dsl_predefined(name.text)) {
        cps_error(c->d, CPS_E2213, name.span, "`%s` is predefined and cannot be declared again",
                  name.text);
        return;
    }
    declare(c, name, storage);
}

static cps_decl *
declared(cps_checker *c, cps_sym sym)
{
    uint64_t *at = cps_map_find(&c->by_sym, sym);
    return at ? &c->decls.data[*at - 1] : NULL;
}

typedef struct nearest {
    const char *to, *best;
    int far;
} nearest;

static void
consider(nearest *n, const char *name)
{
    int far = cps_edit_distance(n->to, name);
    if (far < n->far && far <= (strlen(n->to) > 3 ? 2 : 1) && (size_t)far < strlen(n->to)) {
        n->far = far;
        n->best = name;
    }
}

static const char *
near_name(cps_checker *c, const char *name)
{
    nearest n = {name, NULL, 4};
    for (uint32_t i = 0; i < c->decls.n; i++)
        consider(&n, c->decls.data[i].name.text);
    for (uint32_t i = 0; i < c->m->defs.n; i++)
        consider(&n, cps_dsl_item_name(c->m->defs.data[i].item).text);
    for (int t = CPS_DT_NONE + 1; t < CPS_DT_COUNT; t++)
        consider(&n, cps_dtypes[t].name);
    return n.best;
}

static const char *const leaf_functions[] = {
#define CPS_ACTFN(id, wire, name, other, set, sure) name,
#include "codegen/isa/act.def"
#define CPS_TOP(id, name, ...) name,
#include "ir/top.def"
};

bool
cps_dsl_is_leaf_function(const char *name)
{
    for (size_t i = 0; i < cps_countof(leaf_functions); i++)
        if (cps_streq(leaf_functions[i], name))
            return true;
    return false;
}

static const char *const graph_functions[] = {
#define CPS_OP(id, name, lo, hi, out, class, ...) #class[0] == 'U' ? name : "",
#include "ir/op.def"
};

static bool
is_graph_function(const char *name)
{
    for (size_t i = 0; i < cps_countof(graph_functions); i++)
        if (cps_streq(graph_functions[i], name))
            return true;
    return false;
}

static const char *const all_functions[] = {
#define CPS_DSL_FUNCTION(name, who, lo, hi) name,
#include "frontend/dsl/function.def"
};

static const char *
near_function(cps_checker *c, const char *name)
{
    nearest n = {name, NULL, 4};
    for (size_t i = 0; i < cps_countof(all_functions); i++)
        consider(&n, all_functions[i]);
    if (c->where == CPS_IN_LEAF || c->where == CPS_IN_FN)
        for (size_t i = 0; i < cps_countof(leaf_functions); i++)
            consider(&n, leaf_functions[i]);
    for (uint32_t i = 0; i < c->m->defs.n; i++)
        if (c->m->defs.data[i].item->kind == CPS_IT_FN)
            consider(&n, cps_dsl_item_name(c->m->defs.data[i].item).text);
    if (c->where == CPS_IN_OP || c->where == CPS_IN_BLOCK)
        for (uint32_t i = 0; i < c->s->ops.n; i++)
            consider(&n, c->s->ops.data[i]->ast->name.text);
    return n.best;
}

// A name that is read. `written` changes the advice: a bare `=` declares nothing.
void
cps_check_name(cps_checker *c, cps_ast_name name, bool written)
{
    cps_decl *d = declared(c, name.sym);
    if (d) {
        d->uses++;
        return;
    }
    if (cps_dsl_lookup(c->m, name.sym) || cps_dsl_is_word(name.text) ||
        cps_dtype_parse(name.text, strlen(name.text)) != CPS_DT_NONE)
        return;
    cps_error(c->d, CPS_E2201, name.span, "`%s` is not declared", name.text);
    const char *near = near_name(c, name.text);
    if (written && near)
        cps_help(c->d, "`=` writes to existing storage; did you mean `%s`, or a declaration such "
                       "as `sbuf %s[...] = ...`?",
                 near, name.text);
    else if (written)
        cps_help(c->d, "`=` writes to existing storage; declare it first: `sbuf %s[...] = ...`",
                 name.text);
    else if (near)
        cps_help(c->d, "did you mean `%s`?", near);
    declare(c, name, false); // once is enough
}

/* ---- expressions ---- */

static void
check_fn_call(cps_checker *c, const cps_ast_call *e, const cps_ast_fn *fn)
{
    uint32_t plain = 0;
    for (uint32_t i = 0; i < e->n; i++) {
        cps_ast_name name = e->arg[i].name;
        bool found = !name.sym;
        plain += !name.sym;
        for (uint32_t k = 0; k < fn->n && !found; k++)
            found = fn->param[k].name.sym == name.sym;
        if (!found) {
            cps_error(c->d, CPS_E2211, name.span, "`%s` has no parameter `%s`", fn->name.text,
                      name.text);
            cps_note(c->d, fn->name.span, "declared here");
        }
    }
    uint32_t need = 0;
    for (uint32_t k = 0; k < fn->n; k++)
        need += !fn->param[k].dflt;
    if (plain > fn->n || e->n < need) {
        const char *least = need < fn->n ? cps_arena_printf(c->s->arena, "%u to ", need) : "";
        cps_error(c->d, CPS_E2211, e->head.span, "`%s` takes %s%u argument%s, %u given",
                  fn->name.text, least, fn->n, fn->n == 1 ? "" : "s", e->n);
        cps_note(c->d, fn->name.span, "declared here");
    }
}

static void
check_op_call(cps_checker *c, const cps_ast_call *e, const cps_ast_op *op)
{
    uint32_t plain = 0;
    for (uint32_t i = 0; i < e->n; i++) {
        cps_ast_name name = e->arg[i].name;
        bool found = !name.sym;
        plain += !name.sym;
        for (uint32_t k = 0; k < op->nattr && !found; k++)
            found = op->attr[k].name.sym == name.sym;
        for (uint32_t k = 0; k < op->noperand && !found; k++)
            found = op->operand[k].name.sym == name.sym;
        if (!found) {
            cps_error(c->d, CPS_E2211, name.span, "`%s` has no operand or attribute `%s`",
                      op->name.text, name.text);
            cps_note(c->d, op->name.span, "declared here");
        }
    }
    if (plain > op->noperand) {
        cps_error(c->d, CPS_E2211, e->head.span, "`%s` takes up to %u operand%s, %u given",
                  op->name.text, op->noperand, op->noperand == 1 ? "" : "s", plain);
        cps_note(c->d, op->name.span, "declared here");
    }
}

static void
callee(cps_checker *c, const cps_ast_call *e, cps_ast_name name)
{
    const cps_dsl_def *def = cps_dsl_lookup(c->m, name.sym);
    cps_decl *d = declared(c, name.sym);
    if (def && def->item->kind == CPS_IT_FN) {
        check_fn_call(c, e, CPS_AST_AS(fn, def->item));
        return;
    }
    if (cps_dsl_is_function(name.text, 'C'))
        return;
    bool graph = c->where == CPS_IN_OP || c->where == CPS_IN_BLOCK || c->where == CPS_IN_FN;
    bool tile = c->where == CPS_IN_LEAF || c->where == CPS_IN_FN;
    if (graph && (cps_dsl_is_function(name.text, 'B') || is_graph_function(name.text)))
        return;
    if (tile && (cps_dsl_is_function(name.text, 'L') || cps_dsl_is_leaf_function(name.text)))
        return;
    const cps_dsl_op *op = graph ? cps_dsl_need_op(c->s, name.text) : NULL;
    if (op) {
        check_op_call(c, e, op->ast);
        return;
    }
    if (d) { // a let may hold a fn
        d->uses++;
        return;
    }
    cps_error(c->d, CPS_E2202, name.span, "there is no function `%s`", name.text);
    const char *near = near_function(c, name.text);
    if (near)
        cps_help(c->d, "did you mean `%s`?", near);
    else if (c->where == CPS_IN_LEAF && cps_dsl_find_op(c->s, name.text))
        cps_help(c->d, "`%s` is an operator: blocks call operators, leaves do not", name.text);
}

static void
visit_call(cps_checker *c, const cps_ast_call *e)
{
    bool named = e->fn->kind == CPS_EX_NAME;
    if (named)
        callee(c, e, CPS_AST_AS(ref, e->fn)->name);
    else if (e->fn->kind == CPS_EX_MEMBER)
        cps_check_expr(c, CPS_AST_AS(member, e->fn)->base);
    else
        cps_check_expr(c, e->fn);
    if (named && cps_streq(CPS_AST_AS(ref, e->fn)->name.text, "supports"))
        return; // its argument names an instruction
    for (uint32_t i = 0; i < e->n; i++)
        cps_check_expr(c, e->arg[i].value);
}

// Act.gelu of an enum the file sees: the member must exist.
static void
visit_member(cps_checker *c, const cps_ast_member *e)
{
    cps_check_expr(c, e->base);
    if (e->base->kind != CPS_EX_NAME)
        return;
    cps_ast_name base = CPS_AST_AS(ref, e->base)->name;
    const cps_dsl_def *def = declared(c, base.sym) ? NULL : cps_dsl_lookup(c->m, base.sym);
    if (!def || def->item->kind != CPS_IT_ENUM)
        return;
    const cps_ast_enum *n = CPS_AST_AS(enum, def->item);
    nearest close = {e->name.text, NULL, 4};
    for (uint32_t i = 0; i < n->n; i++) {
        if (n->member[i].name.sym == e->name.sym)
            return;
        consider(&close, n->member[i].name.text);
    }
    cps_error(c->d, CPS_E2210, e->name.span, "`%s` has no member `%s`", n->name.text,
              e->name.text);
    if (close.best)
        cps_help(c->d, "did you mean `%s.%s`?", n->name.text, close.best);
}

void
cps_check_expr(cps_checker *c, cps_expr_p e)
{
    if (!e)
        return;
    switch (e->kind) {
    case CPS_EX_NAME:
        cps_check_name(c, CPS_AST_AS(ref, e)->name, false);
        break;
    case CPS_EX_TUPLE:
    case CPS_EX_LIST:
    case CPS_EX_SET:
        for (uint32_t i = 0; i < CPS_AST_AS(seq, e)->n; i++)
            cps_check_expr(c, CPS_AST_AS(seq, e)->item[i]);
        break;
    case CPS_EX_EACH:
        cps_check_expr(c, CPS_AST_AS(each, e)->range);
        declare_own(c, CPS_AST_AS(each, e)->name, false);
        cps_check_expr(c, CPS_AST_AS(each, e)->value);
        break;
    case CPS_EX_COND:
        cps_check_expr(c, CPS_AST_AS(cond, e)->cond);
        cps_check_expr(c, CPS_AST_AS(cond, e)->yes);
        cps_check_expr(c, CPS_AST_AS(cond, e)->no);
        break;
    case CPS_EX_BINARY:
        cps_check_expr(c, CPS_AST_AS(binary, e)->a);
        cps_check_expr(c, CPS_AST_AS(binary, e)->b);
        break;
    case CPS_EX_UNARY:
        cps_check_expr(c, CPS_AST_AS(unary, e)->a);
        break;
    case CPS_EX_INDEX: {
        const cps_ast_index *n = CPS_AST_AS(index, e);
        cps_check_expr(c, n->base);
        for (uint32_t i = 0; i < n->n; i++) {
            cps_check_expr(c, n->sub[i].lo);
            cps_check_expr(c, n->sub[i].hi);
            cps_check_expr(c, n->sub[i].step);
        }
        break;
    }
    case CPS_EX_CALL:
        visit_call(c, CPS_AST_AS(call, e));
        break;
    case CPS_EX_MEMBER:
        visit_member(c, CPS_AST_AS(member, e));
        break;
    case CPS_EX_TRANSPOSE:
        cps_check_expr(c, CPS_AST_AS(transpose, e)->base);
        break;
    case CPS_EX_SPACE:
    case CPS_EX_INT:
    case CPS_EX_FLOAT:
    case CPS_EX_STR:
    case CPS_EX_COUNT:
        break;
    }
}

/* ---- statements ---- */

static void declare_body(cps_checker *c, const cps_ast_body *b);

static void
declare_stmt(cps_checker *c, const cps_ast_stmt *s)
{
    switch (s->kind) {
    case CPS_ST_LET:
    case CPS_ST_VAR:
        for (uint32_t i = 0; i < CPS_AST_AS(let, s)->n; i++)
            declare_own(c, CPS_AST_AS(let, s)->name[i], false);
        break;
    case CPS_ST_STORE:
        declare_own(c, CPS_AST_AS(store, s)->name, true);
        break;
    case CPS_ST_LABEL:
        declare(c, CPS_AST_AS(label, s)->name, false);
        declare_stmt(c, CPS_AST_AS(label, s)->stmt);
        break;
    case CPS_ST_IF:
    case CPS_ST_WHEN:
        declare_body(c, CPS_AST_AS(if, s)->yes);
        if (CPS_AST_AS(if, s)->no)
            declare_body(c, CPS_AST_AS(if, s)->no);
        break;
    case CPS_ST_FOR:
        for (uint32_t i = 0; i < CPS_AST_AS(for, s)->n; i++)
            declare_own(c, CPS_AST_AS(for, s)->bind[i].name, false);
        declare_body(c, CPS_AST_AS(for, s)->body);
        break;
    case CPS_ST_LOOP:
        declare_own(c, CPS_AST_AS(loop, s)->name, false);
        declare_body(c, CPS_AST_AS(loop, s)->body);
        break;
    case CPS_ST_WHILE:
        declare_body(c, CPS_AST_AS(while, s)->body);
        break;
    case CPS_ST_STAGE:
        declare_body(c, CPS_AST_AS(stage, s)->body);
        break;
    case CPS_ST_CLAUSE:
        if (CPS_AST_AS(clause, s)->ckind == CPS_CL_PARAM)
            declare_own(c, CPS_AST_AS(clause, s)->name, false);
        break;
    default:
        break;
    }
}

// The one name a statement declares in its own list, sym 0 when none or several.
static cps_ast_name
own_name(const cps_ast_stmt *s)
{
    if ((s->kind == CPS_ST_LET || s->kind == CPS_ST_VAR) && CPS_AST_AS(let, s)->n == 1)
        return CPS_AST_AS(let, s)->name[0];
    if (s->kind == CPS_ST_STORE)
        return CPS_AST_AS(store, s)->name;
    if (s->kind == CPS_ST_CLAUSE && CPS_AST_AS(clause, s)->ckind == CPS_CL_PARAM)
        return CPS_AST_AS(clause, s)->name;
    return (cps_ast_name){0, NULL, CPS_NOSPAN};
}

static void
declare_body(cps_checker *c, const cps_ast_body *b)
{
    cps_map here;
    cps_map_init(&here, c->s->arena);
    for (uint32_t i = 0; i < b->n; i++) {
        cps_ast_name name = own_name(b->stmt[i]);
        bool fresh = true;
        uint64_t *at = name.sym ? cps_map_at(&here, name.sym, &fresh) : NULL;
        if (at && !fresh) {
            cps_error(c->d, CPS_E2203, name.span, "`%s` is declared twice", name.text);
            cps_note(c->d, own_name(b->stmt[*at]).span, "the other one");
        } else if (at) {
            *at = i;
        }
        declare_stmt(c, b->stmt[i]);
    }
}

static void check_body(cps_checker *c, const cps_ast_body *b, bool top);

static const char *
statement_name(const cps_ast_stmt *s)
{
    switch (s->kind) {
    case CPS_ST_STORE:
        return "storage";
    case CPS_ST_LOOP:
        return "`loop`";
    case CPS_ST_WHILE:
        return "`while`";
    case CPS_ST_WHEN:
        return "`when`";
    case CPS_ST_STAGE:
        return "`stage`";
    case CPS_ST_LABEL:
        return "a label";
    default:
        return "this statement";
    }
}

// Op bodies are mathematics; blocks may demand on-chip values; leaves and fns may do everything.
static void
check_place(cps_checker *c, const cps_ast_stmt *s)
{
    bool hardware = s->kind == CPS_ST_LOOP || s->kind == CPS_ST_WHILE || s->kind == CPS_ST_WHEN ||
                    s->kind == CPS_ST_STAGE || s->kind == CPS_ST_LABEL;
    bool store = s->kind == CPS_ST_STORE;
    bool sbuf = store && CPS_AST_AS(store, s)->space == CPS_SPACE_SBUF;
    if ((c->where == CPS_IN_OP && (hardware || store)) ||
        (c->where == CPS_IN_BLOCK && (hardware || (store && !sbuf))))
        cps_error(c->d, CPS_E2309, s->span, "%s has no meaning in %s body", statement_name(s),
                  c->where == CPS_IN_OP ? "an op" : "a block");
    if (s->kind == CPS_ST_ASSIGN && (c->where == CPS_IN_OP || c->where == CPS_IN_BLOCK)) {
        const cps_ast_assign *n = CPS_AST_AS(assign, s);
        if (n->set == CPS_SET_ARROW || n->set == CPS_SET_ARROW_ADD)
            cps_error(c->d, CPS_E2309, n->set_span, "an arrow has no meaning in %s body",
                      c->where == CPS_IN_OP ? "an op" : "a block");
    }
    if (s->kind == CPS_ST_RETURN && c->where != CPS_IN_FN)
        cps_error(c->d, CPS_E2309, s->span, "`return` belongs to a fn");
    if ((s->kind == CPS_ST_BREAK || s->kind == CPS_ST_CONTINUE) && !c->loops)
        cps_error(c->d, CPS_E2309, s->span, "`%s` stands outside a `for`",
                  s->kind == CPS_ST_BREAK ? "break" : "continue");
}

// The name at the root of what is written to, when it is a bare name.
static void
check_target(cps_checker *c, cps_expr_p dst)
{
    if (dst->kind == CPS_EX_NAME)
        cps_check_name(c, CPS_AST_AS(ref, dst)->name, true);
    else
        cps_check_expr(c, dst);
}

static void
check_stmt(cps_checker *c, const cps_ast_stmt *s, bool top)
{
    check_place(c, s);
    switch (s->kind) {
    case CPS_ST_LET:
    case CPS_ST_VAR:
        cps_check_expr(c, CPS_AST_AS(let, s)->value);
        break;
    case CPS_ST_STORE: {
        const cps_ast_store *n = CPS_AST_AS(store, s);
        for (uint32_t i = 0; i < n->ndim; i++) {
            cps_check_expr(c, n->dim[i].extent);
            cps_check_expr(c, n->dim[i].fold);
        }
        cps_check_expr(c, n->dtype);
        cps_check_marks(c, &n->decl, 'D');
        cps_check_expr(c, n->value);
        cps_check_marks(c, &n->marks, 'S');
        cps_decl *own = declared(c, n->name.sym);
        for (uint32_t i = 0; own && i < n->marks.n; i++) // its instruction is wanted for the second result
            own->uses += n->marks.mark[i].kind == CPS_MARK_INTO;
        break;
    }
    case CPS_ST_ASSIGN: {
        const cps_ast_assign *n = CPS_AST_AS(assign, s);
        check_target(c, n->dst);
        cps_check_expr(c, n->value);
        cps_check_marks(c, &n->marks, 'S');
        break;
    }
    case CPS_ST_CALL:
        visit_call(c, CPS_AST_AS(callst, s)->call);
        cps_check_marks(c, &CPS_AST_AS(callst, s)->marks, 'S');
        break;
    case CPS_ST_LABEL:
        check_stmt(c, CPS_AST_AS(label, s)->stmt, false);
        break;
    case CPS_ST_IF:
    case CPS_ST_WHEN: {
        const cps_ast_if *n = CPS_AST_AS(if, s);
        cps_check_expr(c, n->cond);
        check_body(c, n->yes, false);
        if (n->no)
            check_body(c, n->no, false);
        break;
    }
    case CPS_ST_FOR: {
        const cps_ast_for *n = CPS_AST_AS(for, s);
        for (uint32_t i = 0; i < n->n; i++) {
            cps_check_expr(c, n->bind[i].range);
            if (n->bind[i].across.sym && !cps_streq(n->bind[i].across.text, "cores"))
                cps_error(c->d, CPS_E2209, n->bind[i].across.span,
                          "a loop runs across cores, not across `%s`", n->bind[i].across.text);
        }
        c->loops++;
        check_body(c, n->body, false);
        c->loops--;
        break;
    }
    case CPS_ST_LOOP:
        cps_check_expr(c, CPS_AST_AS(loop, s)->range);
        check_body(c, CPS_AST_AS(loop, s)->body, false);
        break;
    case CPS_ST_WHILE:
        cps_check_expr(c, CPS_AST_AS(while, s)->cond);
        check_body(c, CPS_AST_AS(while, s)->body, false);
        break;
    case CPS_ST_STAGE:
        check_body(c, CPS_AST_AS(stage, s)->body, false);
        break;
    case CPS_ST_RETURN:
    case CPS_ST_BREAK:
    case CPS_ST_CONTINUE:
        cps_check_expr(c, CPS_AST_AS(jump, s)->value);
        break;
    case CPS_ST_ASSERT:
        cps_check_expr(c, CPS_AST_AS(assert, s)->cond);
        break;
    case CPS_ST_CLAUSE:
        if (!top)
            cps_error(c->d, CPS_E2209, s->span, "`%s` stands at the top level of a body only",
                      cps_clause_names[CPS_AST_AS(clause, s)->ckind]);
        cps_check_clause(c, CPS_AST_AS(clause, s));
        break;
    case CPS_ST_COUNT:
        break;
    }
}

static void
check_body(cps_checker *c, const cps_ast_body *b, bool top)
{
    for (uint32_t i = 0; i < b->n; i++)
        check_stmt(c, b->stmt[i], top && c->where != CPS_IN_FN);
}

/* ---- items ---- */

static void
declare_header(cps_checker *c, const cps_ast_op *op, bool check)
{
    c->op = op;
    for (uint32_t i = 0; i < op->noperand + op->nresult; i++) {
        bool in = i < op->noperand;
        const cps_ast_operand *x = in ? &op->operand[i] : &op->result[i - op->noperand];
        if (check && declared(c, x->name.sym)) {
            cps_error(c->d, CPS_E2203, x->name.span, "`%s` is declared twice", x->name.text);
            cps_note(c->d, declared(c, x->name.sym)->name.span, "the other one");
        }
        declare(c, x->name, false);
    }
    for (uint32_t i = 0; i < op->nattr; i++) {
        if (check && declared(c, op->attr[i].name.sym)) {
            cps_error(c->d, CPS_E2203, op->attr[i].name.span, "`%s` is declared twice",
                      op->attr[i].name.text);
            cps_note(c->d, declared(c, op->attr[i].name.sym)->name.span, "the other one");
        }
        if (check)
            declare_own(c, op->attr[i].name, false);
        else
            declare(c, op->attr[i].name, false);
    }
    for (uint32_t i = 0; i < op->noperand; i++)
        for (uint32_t k = 0; k < op->operand[i].n; k++)
            if (op->operand[i].extent[k]->kind == CPS_EX_NAME)
                declare(c, CPS_AST_AS(ref, op->operand[i].extent[k])->name, false);
    for (uint32_t i = 0; i < op->ndimdef; i++)
        declare(c, op->dimdef[i].name, false);
}

// int fp32 bool str dtype, or an enum that the file sees.
static void
check_attr_type(cps_checker *c, const cps_ast_attr *a)
{
    cps_ast_name name = a->type->kind == CPS_EX_NAME ? CPS_AST_AS(ref, a->type)->name
                                                     : (cps_ast_name){0, "", CPS_NOSPAN};
    const cps_dsl_def *def = name.sym ? cps_dsl_lookup(c->m, name.sym) : NULL;
    if ((def && def->item->kind == CPS_IT_ENUM) ||
        cps_check_word(name.text, "int fp32 f32 bool str dtype"))
        return;
    cps_error(c->d, CPS_E2201, a->type->span, "an attribute is of type int, fp32, bool, str, "
                                              "dtype or an enum");
}

static void
check_op(cps_checker *c, const cps_ast_op *op)
{
    c->where = op->block ? CPS_IN_BLOCK : CPS_IN_OP;
    declare_header(c, op, true);
    for (uint32_t i = 0; i < op->noperand + op->nresult; i++) {
        const cps_ast_operand *x =
            i < op->noperand ? &op->operand[i] : &op->result[i - op->noperand];
        for (uint32_t k = 0; k < x->n; k++)
            cps_check_expr(c, x->extent[k]);
        cps_check_expr(c, x->dtype);
    }
    for (uint32_t i = 0; i < op->nattr; i++) {
        check_attr_type(c, &op->attr[i]);
        cps_check_expr(c, op->attr[i].dflt);
    }
    for (uint32_t i = 0; i < op->ndimdef; i++)
        cps_check_expr(c, op->dimdef[i].value);
    cps_check_clauses(c, &op->clauses);
    declare_body(c, cps_ast_whole(op->body));
    check_body(c, op->body, true);
}

static void
check_targets(cps_checker *c, const cps_ast_leaf *leaf)
{
    for (uint32_t i = 0; i < leaf->ntarget; i++) {
        cps_ast_name t = leaf->target[i];
        if (!cps_check_word(t.text, "trn1 trn2 trn3 host")) {
            cps_error(c->d, CPS_E2207, t.span, "there is no target `%s`", t.text);
            cps_help(c->d, "targets are trn1, trn2, trn3 and host");
        }
        for (uint32_t k = 0; k < i; k++)
            if (leaf->target[k].sym == t.sym)
                cps_error(c->d, CPS_E2207, t.span, "the target `%s` stands twice", t.text);
    }
}

static void
check_leaf(cps_checker *c, const cps_ast_leaf *leaf)
{
    const cps_dsl_op *op = cps_dsl_need_op(c->s, leaf->op.text);
    bool cases = false;
    c->where = CPS_IN_LEAF;
    check_targets(c, leaf);
    for (uint32_t i = 0; i < leaf->clauses.n; i++)
        cases |= leaf->clauses.clause[i]->ckind == CPS_CL_CASES;
    if (!cases) {
        cps_error(c->d, CPS_E2208, leaf->name.span, "`%s` has no `cases`", leaf->name.text);
        cps_help(c->d, "name the shapes it is tested at: `cases (M: 512, K: 512);`");
    }
    if (!op) {
        nearest n = {leaf->op.text, NULL, 4};
        for (uint32_t i = 0; i < c->s->ops.n; i++)
            consider(&n, c->s->ops.data[i]->ast->name.text);
        cps_error(c->d, CPS_E2206, leaf->op.span, "there is no op `%s`", leaf->op.text);
        if (n.best)
            cps_help(c->d, "did you mean `%s`?", n.best);
        return; // its dimensions and operands are unknown: every name would be reported
    }
    declare_header(c, op->ast, false);
    cps_check_clauses(c, &leaf->clauses);
    declare_body(c, cps_ast_whole(leaf->body));
    check_body(c, leaf->body, true);
    for (uint32_t i = 0; i < c->decls.n; i++)
        if (c->decls.data[i].storage && !c->decls.data[i].uses)
            cps_error(c->d, CPS_W2214, c->decls.data[i].name.span, "`%s` is never used",
                      c->decls.data[i].name.text);
}

static void
check_fn(cps_checker *c, const cps_ast_fn *fn)
{
    c->where = CPS_IN_FN;
    for (uint32_t i = 0; i < fn->n; i++) {
        if (declared(c, fn->param[i].name.sym))
            cps_error(c->d, CPS_E2203, fn->param[i].name.span, "`%s` is declared twice",
                      fn->param[i].name.text);
        declare_own(c, fn->param[i].name, false);
        cps_check_expr(c, fn->param[i].dflt);
    }
    declare_body(c, cps_ast_whole(fn->body));
    check_body(c, fn->body, false);
}

static void
check_item(cps_dsl_set *s, const cps_dsl_module *m, const cps_ast_item *item)
{
    cps_checker c = {.s = s, .d = s->diags, .m = m};
    cps_map_init(&c.by_sym, s->arena);
    switch (item->kind) {
    case CPS_IT_CONST:
        cps_check_expr(&c, CPS_AST_AS(const, item)->value);
        break;
    case CPS_IT_ENUM: {
        const cps_ast_enum *n = CPS_AST_AS(enum, item);
        for (uint32_t i = 0; i < n->n; i++) {
            cps_check_expr(&c, n->member[i].value);
            for (uint32_t k = 0; k < i; k++)
                if (n->member[k].name.sym == n->member[i].name.sym)
                    cps_error(s->diags, CPS_E2203, n->member[i].name.span,
                              "`%s` is declared twice", n->member[i].name.text);
        }
        break;
    }
    case CPS_IT_OP:
        check_op(&c, CPS_AST_AS(op, item));
        break;
    case CPS_IT_LEAF:
        check_leaf(&c, CPS_AST_AS(leaf, item));
        break;
    case CPS_IT_FN:
        check_fn(&c, CPS_AST_AS(fn, item));
        break;
    case CPS_IT_USE:
    case CPS_IT_COUNT:
        break;
    }
}

bool
cps_dsl_set_check(cps_dsl_set *s)
{
    bool ok = true;
    for (uint32_t k = 0; k < s->modules.n; k++) { // grows while operators are looked up
        cps_dsl_module *m = s->modules.data[k];
        unsigned errors = cps_diags_errors(s->diags);
        for (uint32_t i = 0; i < m->ast->n && m->parsed && !m->checked; i++)
            check_item(s, m, m->ast->item[i]);
        m->checked = true;
        m->ok = m->ok && cps_diags_errors(s->diags) == errors;
        ok &= m->ok;
    }
    return ok;
}
