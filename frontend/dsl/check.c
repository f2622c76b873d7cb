/* Checks of load time that need bodies: names, calls, clauses, marks, and what may stand where.
 *
 * In: a set whose files are all read. Out: diagnostics E22xx and W2214. A name is accepted when it
 * is declared anywhere in its leaf, op or fn: scopes are the evaluator's business, since a branch
 * that is not taken declares nothing. So slips in rare branches are found here, at load. */
#include "codegen/isa/enum.h"
#include "frontend/dsl/check.h"

#include <stdio.h>

typedef struct decl {
    cps_ast_name name;
    bool storage;
    uint32_t uses;
} decl;

// What the body belongs to; decides which statements and functions have a meaning.
typedef enum place { IN_FN, IN_OP, IN_BLOCK, IN_LEAF } place;

typedef struct checker {
    cps_dsl_set *s;
    cps_diags *d;
    const cps_dsl_module *m;
    place where;
    const cps_ast_op *op; // header in scope, or NULL
    CPS_VEC(decl) decls;
    cps_map by_sym; // sym -> index + 1
    uint32_t loops; // `for` loops around the statement
} checker;

/* ---- names ---- */

static void
declare(checker *c, cps_ast_name name, bool storage)
{
    bool fresh;
    uint64_t *at = cps_map_at(&c->by_sym, name.sym, &fresh);
    if (!fresh) {
        c->decls.data[*at - 1].storage &= storage;
        return;
    }
    cps_vec_push(c->s->arena, &c->decls, ((decl){name, storage, 0}));
    *at = c->decls.n;
}

static void
declare_own(checker *c, cps_ast_name name, bool storage)
{
    if (cps_dsl_predefined(name.text)) {
        cps_error(c->d, CPS_E2213, name.span, "`%s` is predefined and cannot be declared again",
                  name.text);
        return;
    }
    declare(c, name, storage);
}

static decl *
declared(checker *c, cps_sym sym)
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
near_name(checker *c, const char *name)
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
near_function(checker *c, const char *name)
{
    nearest n = {name, NULL, 4};
    for (size_t i = 0; i < cps_countof(all_functions); i++)
        consider(&n, all_functions[i]);
    if (c->where == IN_LEAF || c->where == IN_FN)
        for (size_t i = 0; i < cps_countof(leaf_functions); i++)
            consider(&n, leaf_functions[i]);
    for (uint32_t i = 0; i < c->m->defs.n; i++)
        if (c->m->defs.data[i].item->kind == CPS_IT_FN)
            consider(&n, cps_dsl_item_name(c->m->defs.data[i].item).text);
    if (c->where == IN_OP || c->where == IN_BLOCK)
        for (uint32_t i = 0; i < c->s->ops.n; i++)
            consider(&n, c->s->ops.data[i]->ast->name.text);
    return n.best;
}

// A name that is read. `written` changes the advice: a bare `=` declares nothing.
static void
use_name(checker *c, cps_ast_name name, bool written)
{
    decl *d = declared(c, name.sym);
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

static void visit(checker *c, cps_expr_p e);

static void
check_fn_call(checker *c, const cps_ast_call *e, const cps_ast_fn *fn)
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
check_op_call(checker *c, const cps_ast_call *e, const cps_ast_op *op)
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
callee(checker *c, const cps_ast_call *e, cps_ast_name name)
{
    const cps_dsl_def *def = cps_dsl_lookup(c->m, name.sym);
    decl *d = declared(c, name.sym);
    if (def && def->item->kind == CPS_IT_FN) {
        check_fn_call(c, e, CPS_AST_AS(fn, def->item));
        return;
    }
    if (cps_dsl_is_function(name.text, 'C'))
        return;
    bool graph = c->where == IN_OP || c->where == IN_BLOCK || c->where == IN_FN;
    bool tile = c->where == IN_LEAF || c->where == IN_FN;
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
    else if (c->where == IN_LEAF && cps_dsl_find_op(c->s, name.text))
        cps_help(c->d, "`%s` is an operator: blocks call operators, leaves do not", name.text);
}

static void
visit_call(checker *c, const cps_ast_call *e)
{
    bool named = e->fn->kind == CPS_EX_NAME;
    if (named)
        callee(c, e, CPS_AST_AS(ref, e->fn)->name);
    else if (e->fn->kind == CPS_EX_MEMBER)
        visit(c, CPS_AST_AS(member, e->fn)->base);
    else
        visit(c, e->fn);
    if (named && cps_streq(CPS_AST_AS(ref, e->fn)->name.text, "supports"))
        return; // its argument names an instruction
    for (uint32_t i = 0; i < e->n; i++)
        visit(c, e->arg[i].value);
}

// Act.gelu of an enum the file sees: the member must exist.
static void
visit_member(checker *c, const cps_ast_member *e)
{
    visit(c, e->base);
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

static void
visit(checker *c, cps_expr_p e)
{
    if (!e)
        return;
    switch (e->kind) {
    case CPS_EX_NAME:
        use_name(c, CPS_AST_AS(ref, e)->name, false);
        break;
    case CPS_EX_TUPLE:
    case CPS_EX_LIST:
    case CPS_EX_SET:
        for (uint32_t i = 0; i < CPS_AST_AS(seq, e)->n; i++)
            visit(c, CPS_AST_AS(seq, e)->item[i]);
        break;
    case CPS_EX_EACH:
        visit(c, CPS_AST_AS(each, e)->range);
        declare_own(c, CPS_AST_AS(each, e)->name, false);
        visit(c, CPS_AST_AS(each, e)->value);
        break;
    case CPS_EX_COND:
        visit(c, CPS_AST_AS(cond, e)->cond);
        visit(c, CPS_AST_AS(cond, e)->yes);
        visit(c, CPS_AST_AS(cond, e)->no);
        break;
    case CPS_EX_BINARY:
        visit(c, CPS_AST_AS(binary, e)->a);
        visit(c, CPS_AST_AS(binary, e)->b);
        break;
    case CPS_EX_UNARY:
        visit(c, CPS_AST_AS(unary, e)->a);
        break;
    case CPS_EX_INDEX: {
        const cps_ast_index *n = CPS_AST_AS(index, e);
        visit(c, n->base);
        for (uint32_t i = 0; i < n->n; i++) {
            visit(c, n->sub[i].lo);
            visit(c, n->sub[i].hi);
            visit(c, n->sub[i].step);
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
        visit(c, CPS_AST_AS(transpose, e)->base);
        break;
    case CPS_EX_SPACE:
    case CPS_EX_INT:
    case CPS_EX_FLOAT:
    case CPS_EX_STR:
    case CPS_EX_COUNT:
        break;
    }
}

/* ---- marks ---- */

typedef struct mark_row {
    const char *name, *where;
    char operand;
    const char *words;
} mark_row;

static const mark_row mark_rows[] = {
#define CPS_DSL_MARK(name, where, operand, words) {name, where, #operand[0], words},
#include "frontend/dsl/mark.def"
};

static const mark_row *
find_mark(const char *name)
{
    for (size_t i = 0; i < cps_countof(mark_rows); i++)
        if (cps_streq(mark_rows[i].name, name))
            return &mark_rows[i];
    return NULL;
}

static bool
is_word_of(const char *word, const char *list)
{
    size_t n = strlen(word);
    for (const char *p = list; n && (p = strstr(p, word)); p += n)
        if ((p == list || p[-1] == ' ') && (p[n] == 0 || p[n] == ' '))
            return true;
    return false;
}

static void
check_word_mark(checker *c, const cps_ast_mark *k, char where)
{
    const mark_row *row = find_mark(k->name.text);
    if (!row) { // reported by the parser
        visit(c, k->value);
        return;
    }
    if (!strchr(row->where, where)) {
        cps_error(c->d, CPS_E2212, k->name.span, "the mark `%s` belongs to a %s", row->name,
                  where == 'S' ? "declaration" : "statement");
        cps_help(c->d, where == 'S' ? "write it before the `=` or `<-` of the declaration"
                                    : "write it after the value");
    }
    cps_ast_name word = k->value->kind == CPS_EX_NAME ? CPS_AST_AS(ref, k->value)->name
                                                      : (cps_ast_name){0, NULL, CPS_NOSPAN};
    bool listed = word.sym && is_word_of(word.text, row->words);
    if (listed)
        return;
    if (row->operand == 'W' || (row->operand == 'L' && !word.sym))
        cps_error(c->d, CPS_E2212, k->value->span, "`%s` wants %s", row->name,
                  row->operand == 'W' ? "one of: static, hwdge, swdge, elements"
                                      : "the label of a statement, or none");
    else if (row->operand == 'L')
        use_name(c, word, false);
    else
        visit(c, k->value);
}

static void
check_marks(checker *c, const cps_ast_marks *m, char where)
{
    for (uint32_t i = 0; i < m->n; i++) {
        const cps_ast_mark *k = &m->mark[i];
        switch (k->kind) {
        case CPS_MARK_WORD:
            check_word_mark(c, k, where);
            break;
        case CPS_MARK_ON:
            if (where == 'D')
                cps_error(c->d, CPS_E2212, k->span, "`on` belongs to a statement");
            else if (cps_engine_parse(k->name.text) == CPS_ENGINE_ANY) {
                cps_error(c->d, CPS_E2212, k->name.span, "`%s` is no engine", k->name.text);
                cps_help(c->d, "engines are pe, act, pool, dve and sp");
            }
            break;
        case CPS_MARK_INTO:
        case CPS_MARK_ONTO:
            if (where == 'D')
                cps_error(c->d, CPS_E2212, k->span, "`reduce` belongs to a statement");
            else if (!is_word_of(k->name.text, "add max min multiply")) {
                cps_error(c->d, CPS_E2212, k->name.span, "`%s` is no reduction", k->name.text);
                cps_help(c->d, "reductions are add, max, min and multiply");
            }
            visit(c, k->value);
            break;
        }
    }
}

/* ---- clauses ---- */

static bool
has_dim_or_attr(const cps_ast_op *op, cps_sym sym)
{
    for (uint32_t i = 0; i < op->nattr; i++)
        if (op->attr[i].name.sym == sym)
            return true;
    for (uint32_t i = 0; i < op->noperand; i++)
        for (uint32_t k = 0; k < op->operand[i].n; k++)
            if (op->operand[i].extent[k]->kind == CPS_EX_NAME &&
                CPS_AST_AS(ref, op->operand[i].extent[k])->name.sym == sym)
                return true;
    return false;
}

static const cps_ast_operand *
find_operand(const cps_ast_op *op, cps_sym sym)
{
    for (uint32_t i = 0; i < op->noperand; i++)
        if (op->operand[i].name.sym == sym)
            return &op->operand[i];
    for (uint32_t i = 0; i < op->nresult; i++)
        if (op->result[i].name.sym == sym)
            return &op->result[i];
    return NULL;
}

static void
check_terms(checker *c, const cps_ast_clause *k, const char *what, const char *known)
{
    for (uint32_t i = 0; i < k->n; i++) {
        if (!is_word_of(k->pair[i].key.text, known)) {
            cps_error(c->d, CPS_E2209, k->pair[i].key.span, "`%s` is no term of `%s`",
                      k->pair[i].key.text, what);
            cps_help(c->d, "terms are: %s", known);
        }
        for (uint32_t j = 0; j < i; j++)
            if (k->pair[j].key.sym == k->pair[i].key.sym)
                cps_error(c->d, CPS_E2209, k->pair[i].key.span, "the term `%s` stands twice",
                          k->pair[i].key.text);
        visit(c, k->pair[i].value);
    }
}

static void
check_cases(checker *c, const cps_ast_clause *k)
{
    for (uint32_t i = 0; i < k->n; i++)
        for (uint32_t j = 0; j < k->cases[i].n; j++) {
            const cps_ast_pair *p = &k->cases[i].pair[j];
            if (c->op && !has_dim_or_attr(c->op, p->key.sym) &&
                !is_word_of(p->key.text, "dtype cores with"))
                cps_error(c->d, CPS_E2209, p->key.span,
                          "`%s` is neither a dimension nor an attribute of `%s`", p->key.text,
                          c->op->name.text);
            visit(c, p->value);
        }
}

static void
check_layout(checker *c, const cps_ast_clause *k)
{
    const cps_ast_operand *x = c->op ? find_operand(c->op, k->name.sym) : NULL;
    if (c->op && !x)
        cps_error(c->d, CPS_E2209, k->name.span, "`%s` is neither operand nor result of `%s`",
                  k->name.text, c->op->name.text);
    for (uint32_t i = 0; i < k->n; i++) {
        for (uint32_t j = 0; j < k->order[i].n; j++) {
            visit(c, k->order[i].dim[j].extent);
            visit(c, k->order[i].dim[j].fold);
        }
        if (x && k->order[i].n != x->n)
            cps_error(c->d, CPS_E2209, k->order[i].span, "`%s` has %u axes, this order names %u",
                      x->name.text, x->n, k->order[i].n);
    }
}

static void
check_clause(checker *c, const cps_ast_clause *k)
{
    switch (k->ckind) {
    case CPS_CL_WHERE:
    case CPS_CL_TOLERANCE:
    case CPS_CL_PRIORITY:
        visit(c, k->a);
        visit(c, k->b);
        break;
    case CPS_CL_PARAM:
        visit(c, k->a);
        visit(c, k->b);
        break;
    case CPS_CL_COST:
        check_terms(c, k, "cost", "pe act dve pool sp hbm link cycles");
        break;
    case CPS_CL_RESOURCES:
        check_terms(c, k, "resources", "sbuf psum");
        break;
    case CPS_CL_CASES:
        check_cases(c, k);
        break;
    case CPS_CL_LAYOUT:
        check_layout(c, k);
        break;
    case CPS_CL_COUNT:
        break;
    }
}

static const char *const clause_names[CPS_CL_COUNT] = {
    [CPS_CL_WHERE] = "where",         [CPS_CL_PARAM] = "param",
    [CPS_CL_COST] = "cost",           [CPS_CL_RESOURCES] = "resources",
    [CPS_CL_TOLERANCE] = "tolerance", [CPS_CL_CASES] = "cases",
    [CPS_CL_PRIORITY] = "priority",   [CPS_CL_LAYOUT] = "layout",
};

// Which clauses a body may hold, and how often.
static void
check_clauses(checker *c, const cps_ast_clauses *all)
{
    const cps_ast_clause *seen[CPS_CL_COUNT] = {0};
    for (uint32_t i = 0; i < all->n; i++) {
        const cps_ast_clause *k = all->clause[i];
        bool fits = c->where == IN_LEAF || (c->where == IN_OP && k->ckind == CPS_CL_COST) ||
                    (c->where == IN_BLOCK && (k->ckind == CPS_CL_COST || k->ckind == CPS_CL_WHERE ||
                                              k->ckind == CPS_CL_PARAM));
        bool many = k->ckind == CPS_CL_WHERE || k->ckind == CPS_CL_PARAM ||
                    k->ckind == CPS_CL_LAYOUT;
        if (!fits)
            cps_error(c->d, CPS_E2209, k->head.span, "`%s` does not belong to the body of %s",
                      clause_names[k->ckind], c->where == IN_OP ? "an op" : "a block");
        else if (seen[k->ckind] && !many) {
            cps_error(c->d, CPS_E2209, k->head.span, "`%s` stands twice",
                      clause_names[k->ckind]);
            cps_note(c->d, seen[k->ckind]->head.span, "the other one");
        }
        seen[k->ckind] = k;
    }
}

/* ---- statements ---- */

static void declare_body(checker *c, const cps_ast_body *b);

static void
declare_stmt(checker *c, const cps_ast_stmt *s)
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
declare_body(checker *c, const cps_ast_body *b)
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

static void check_body(checker *c, const cps_ast_body *b, bool top);

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
check_place(checker *c, const cps_ast_stmt *s)
{
    bool hardware = s->kind == CPS_ST_LOOP || s->kind == CPS_ST_WHILE || s->kind == CPS_ST_WHEN ||
                    s->kind == CPS_ST_STAGE || s->kind == CPS_ST_LABEL;
    bool store = s->kind == CPS_ST_STORE;
    bool sbuf = store && CPS_AST_AS(store, s)->space == CPS_SPACE_SBUF;
    if ((c->where == IN_OP && (hardware || store)) ||
        (c->where == IN_BLOCK && (hardware || (store && !sbuf))))
        cps_error(c->d, CPS_E2309, s->span, "%s has no meaning in %s body", statement_name(s),
                  c->where == IN_OP ? "an op" : "a block");
    if (s->kind == CPS_ST_ASSIGN && (c->where == IN_OP || c->where == IN_BLOCK)) {
        const cps_ast_assign *n = CPS_AST_AS(assign, s);
        if (n->set == CPS_SET_ARROW || n->set == CPS_SET_ARROW_ADD)
            cps_error(c->d, CPS_E2309, n->set_span, "an arrow has no meaning in %s body",
                      c->where == IN_OP ? "an op" : "a block");
    }
    if (s->kind == CPS_ST_RETURN && c->where != IN_FN)
        cps_error(c->d, CPS_E2309, s->span, "`return` belongs to a fn");
    if ((s->kind == CPS_ST_BREAK || s->kind == CPS_ST_CONTINUE) && !c->loops)
        cps_error(c->d, CPS_E2309, s->span, "`%s` stands outside a `for`",
                  s->kind == CPS_ST_BREAK ? "break" : "continue");
}

// The name at the root of what is written to, when it is a bare name.
static void
check_target(checker *c, cps_expr_p dst)
{
    if (dst->kind == CPS_EX_NAME)
        use_name(c, CPS_AST_AS(ref, dst)->name, true);
    else
        visit(c, dst);
}

static void
check_stmt(checker *c, const cps_ast_stmt *s, bool top)
{
    check_place(c, s);
    switch (s->kind) {
    case CPS_ST_LET:
    case CPS_ST_VAR:
        visit(c, CPS_AST_AS(let, s)->value);
        break;
    case CPS_ST_STORE: {
        const cps_ast_store *n = CPS_AST_AS(store, s);
        for (uint32_t i = 0; i < n->ndim; i++) {
            visit(c, n->dim[i].extent);
            visit(c, n->dim[i].fold);
        }
        visit(c, n->dtype);
        check_marks(c, &n->decl, 'D');
        visit(c, n->value);
        check_marks(c, &n->marks, 'S');
        break;
    }
    case CPS_ST_ASSIGN: {
        const cps_ast_assign *n = CPS_AST_AS(assign, s);
        check_target(c, n->dst);
        visit(c, n->value);
        check_marks(c, &n->marks, 'S');
        break;
    }
    case CPS_ST_CALL:
        visit_call(c, CPS_AST_AS(callst, s)->call);
        check_marks(c, &CPS_AST_AS(callst, s)->marks, 'S');
        break;
    case CPS_ST_LABEL:
        check_stmt(c, CPS_AST_AS(label, s)->stmt, false);
        break;
    case CPS_ST_IF:
    case CPS_ST_WHEN: {
        const cps_ast_if *n = CPS_AST_AS(if, s);
        visit(c, n->cond);
        check_body(c, n->yes, false);
        if (n->no)
            check_body(c, n->no, false);
        break;
    }
    case CPS_ST_FOR: {
        const cps_ast_for *n = CPS_AST_AS(for, s);
        for (uint32_t i = 0; i < n->n; i++) {
            visit(c, n->bind[i].range);
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
        visit(c, CPS_AST_AS(loop, s)->range);
        check_body(c, CPS_AST_AS(loop, s)->body, false);
        break;
    case CPS_ST_WHILE:
        visit(c, CPS_AST_AS(while, s)->cond);
        check_body(c, CPS_AST_AS(while, s)->body, false);
        break;
    case CPS_ST_STAGE:
        check_body(c, CPS_AST_AS(stage, s)->body, false);
        break;
    case CPS_ST_RETURN:
    case CPS_ST_BREAK:
    case CPS_ST_CONTINUE:
        visit(c, CPS_AST_AS(jump, s)->value);
        break;
    case CPS_ST_ASSERT:
        visit(c, CPS_AST_AS(assert, s)->cond);
        break;
    case CPS_ST_CLAUSE:
        if (!top)
            cps_error(c->d, CPS_E2209, s->span, "`%s` stands at the top level of a body only",
                      clause_names[CPS_AST_AS(clause, s)->ckind]);
        check_clause(c, CPS_AST_AS(clause, s));
        break;
    case CPS_ST_COUNT:
        break;
    }
}

static void
check_body(checker *c, const cps_ast_body *b, bool top)
{
    for (uint32_t i = 0; i < b->n; i++)
        check_stmt(c, b->stmt[i], top && c->where != IN_FN);
}

/* ---- items ---- */

static void
declare_header(checker *c, const cps_ast_op *op, bool check)
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
check_attr_type(checker *c, const cps_ast_attr *a)
{
    cps_ast_name name = a->type->kind == CPS_EX_NAME ? CPS_AST_AS(ref, a->type)->name
                                                     : (cps_ast_name){0, "", CPS_NOSPAN};
    const cps_dsl_def *def = name.sym ? cps_dsl_lookup(c->m, name.sym) : NULL;
    if ((def && def->item->kind == CPS_IT_ENUM) ||
        is_word_of(name.text, "int fp32 f32 bool str dtype"))
        return;
    cps_error(c->d, CPS_E2201, a->type->span, "an attribute is of type int, fp32, bool, str, "
                                              "dtype or an enum");
}

static void
check_op(checker *c, const cps_ast_op *op)
{
    c->where = op->block ? IN_BLOCK : IN_OP;
    declare_header(c, op, true);
    for (uint32_t i = 0; i < op->noperand + op->nresult; i++) {
        const cps_ast_operand *x =
            i < op->noperand ? &op->operand[i] : &op->result[i - op->noperand];
        for (uint32_t k = 0; k < x->n; k++)
            visit(c, x->extent[k]);
        visit(c, x->dtype);
    }
    for (uint32_t i = 0; i < op->nattr; i++) {
        check_attr_type(c, &op->attr[i]);
        visit(c, op->attr[i].dflt);
    }
    for (uint32_t i = 0; i < op->ndimdef; i++)
        visit(c, op->dimdef[i].value);
    check_clauses(c, &op->clauses);
    declare_body(c, op->body);
    check_body(c, op->body, true);
}

static void
check_targets(checker *c, const cps_ast_leaf *leaf)
{
    for (uint32_t i = 0; i < leaf->ntarget; i++) {
        cps_ast_name t = leaf->target[i];
        if (!is_word_of(t.text, "trn1 trn2 trn3 host")) {
            cps_error(c->d, CPS_E2207, t.span, "there is no target `%s`", t.text);
            cps_help(c->d, "targets are trn1, trn2, trn3 and host");
        }
        for (uint32_t k = 0; k < i; k++)
            if (leaf->target[k].sym == t.sym)
                cps_error(c->d, CPS_E2207, t.span, "the target `%s` stands twice", t.text);
    }
}

static void
check_leaf(checker *c, const cps_ast_leaf *leaf)
{
    const cps_dsl_op *op = cps_dsl_need_op(c->s, leaf->op.text);
    bool cases = false;
    c->where = IN_LEAF;
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
    check_clauses(c, &leaf->clauses);
    declare_body(c, leaf->body);
    check_body(c, leaf->body, true);
    for (uint32_t i = 0; i < c->decls.n; i++)
        if (c->decls.data[i].storage && !c->decls.data[i].uses)
            cps_error(c->d, CPS_W2214, c->decls.data[i].name.span, "`%s` is never used",
                      c->decls.data[i].name.text);
}

static void
check_fn(checker *c, const cps_ast_fn *fn)
{
    c->where = IN_FN;
    for (uint32_t i = 0; i < fn->n; i++) {
        if (declared(c, fn->param[i].name.sym))
            cps_error(c->d, CPS_E2203, fn->param[i].name.span, "`%s` is declared twice",
                      fn->param[i].name.text);
        declare_own(c, fn->param[i].name, false);
        visit(c, fn->param[i].dflt);
    }
    declare_body(c, fn->body);
    check_body(c, fn->body, false);
}

static void
check_item(cps_dsl_set *s, const cps_dsl_module *m, const cps_ast_item *item)
{
    checker c = {.s = s, .d = s->diags, .m = m};
    cps_map_init(&c.by_sym, s->arena);
    switch (item->kind) {
    case CPS_IT_CONST:
        visit(&c, CPS_AST_AS(const, item)->value);
        break;
    case CPS_IT_ENUM: {
        const cps_ast_enum *n = CPS_AST_AS(enum, item);
        for (uint32_t i = 0; i < n->n; i++) {
            visit(&c, n->member[i].value);
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
