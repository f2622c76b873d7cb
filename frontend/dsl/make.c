/* Constructors of the syntax tree, called by the grammar's actions.
 *
 * Every node gets its span and, for expressions, its depth; a tree deeper than the limit is
 * reported once and cut, so that every reader may recurse without asking. */
#include "frontend/dsl/parser.h"

const cps_ast_bin_row cps_ast_bins[CPS_BIN_COUNT] = {
    {"", 0, 0},
#define CPS_DSL_BINARY(id, text, level, group) {text, level, #group[0]},
#include "frontend/dsl/op.def"
};
const char *const cps_ast_un_text[CPS_UN_COUNT] = {
#define CPS_DSL_UNARY(id, text) text,
#include "frontend/dsl/op.def"
};
const cps_ast_set_row cps_ast_sets[CPS_SET_COUNT] = {
#define CPS_DSL_ASSIGN(id, text, op) {text, CPS_BIN_##op},
#include "frontend/dsl/op.def"
};
const char *const cps_ast_space_text[CPS_SPACE_COUNT] = {
    "",
#define CPS_DSL_SPACE(id, text, where) text,
#include "frontend/dsl/op.def"
};

static uint32_t
deeper(uint32_t depth, cps_expr_p e)
{
    return e && e->depth + 1 > depth ? e->depth + 1 : depth;
}

// Fills the header; a tree that is too deep becomes the number 0.
static cps_expr_p
finish(cps_dsl_parser *p, cps_ast_expr *head, cps_ast_ekind kind, cps_span at, uint32_t depth)
{
    head->kind = kind;
    head->span = at;
    head->depth = depth;
    if (depth <= CPS_DSL_MAX_DEPTH)
        return head;
    if (!p->too_deep) {
        p->too_deep = true;
        cps_error(p->diags, CPS_E2105, at, "this expression nests deeper than %d levels",
                  CPS_DSL_MAX_DEPTH);
    }
    return cps_make_int(p, at, (cps_lit){0, false});
}

cps_expr_p
cps_make_ref(cps_dsl_parser *p, cps_span at, cps_ast_name name)
{
    cps_ast_ref *n = cps_new(p->arena, cps_ast_ref);
    n->name = name;
    return finish(p, &n->head, CPS_EX_NAME, at, 1);
}

cps_expr_p
cps_make_spaceref(cps_dsl_parser *p, cps_span at, cps_ast_space s, cps_ast_name name)
{
    cps_ast_spaceref *n = cps_new(p->arena, cps_ast_spaceref);
    n->space = s;
    n->name = name;
    return finish(p, &n->head, CPS_EX_SPACE, at, 1);
}

cps_expr_p
cps_make_int(cps_dsl_parser *p, cps_span at, cps_lit v)
{
    cps_ast_int *n = cps_new(p->arena, cps_ast_int);
    n->value = v.i;
    n->hex = v.hex;
    return finish(p, &n->head, CPS_EX_INT, at, 1);
}

cps_expr_p
cps_make_float(cps_dsl_parser *p, cps_span at, double v)
{
    cps_ast_float *n = cps_new(p->arena, cps_ast_float);
    n->value = v;
    return finish(p, &n->head, CPS_EX_FLOAT, at, 1);
}

cps_expr_p
cps_make_str(cps_dsl_parser *p, cps_span at, const char *s)
{
    cps_ast_str *n = cps_new(p->arena, cps_ast_str);
    n->text = s;
    return finish(p, &n->head, CPS_EX_STR, at, 1);
}

cps_expr_p
cps_make_seq(cps_dsl_parser *p, cps_span at, cps_ast_ekind kind, cps_vexpr v)
{
    cps_ast_seq *n = cps_new(p->arena, cps_ast_seq);
    uint32_t depth = 1;
    n->n = v.n;
    n->item = v.data;
    for (uint32_t i = 0; i < v.n; i++)
        depth = deeper(depth, v.data[i]);
    return finish(p, &n->head, kind, at, depth);
}

cps_expr_p
cps_make_each(cps_dsl_parser *p, cps_span at, cps_expr_p value, cps_ast_name name,
              cps_expr_p range)
{
    cps_ast_each *n = cps_new(p->arena, cps_ast_each);
    n->value = value;
    n->name = name;
    n->range = range;
    return finish(p, &n->head, CPS_EX_EACH, at, deeper(deeper(1, value), range));
}

cps_expr_p
cps_make_cond(cps_dsl_parser *p, cps_span at, cps_expr_p c, cps_expr_p yes, cps_expr_p no)
{
    cps_ast_cond *n = cps_new(p->arena, cps_ast_cond);
    n->cond = c;
    n->yes = yes;
    n->no = no;
    return finish(p, &n->head, CPS_EX_COND, at, deeper(deeper(deeper(1, c), yes), no));
}

cps_expr_p
cps_make_binary(cps_dsl_parser *p, cps_span at, cps_ast_bin op, cps_span op_at, cps_expr_p a,
                cps_expr_p b)
{
    cps_ast_binary *n = cps_new(p->arena, cps_ast_binary);
    n->op = op;
    n->op_span = op_at;
    n->a = a;
    n->b = b;
    return finish(p, &n->head, CPS_EX_BINARY, at, deeper(deeper(1, a), b));
}

cps_expr_p
cps_make_unary(cps_dsl_parser *p, cps_span at, cps_ast_un op, cps_expr_p a)
{
    cps_ast_unary *n = cps_new(p->arena, cps_ast_unary);
    n->op = op;
    n->a = a;
    return finish(p, &n->head, CPS_EX_UNARY, at, deeper(1, a));
}

cps_expr_p
cps_make_index(cps_dsl_parser *p, cps_span at, cps_expr_p base, cps_vsub subs)
{
    cps_ast_index *n = cps_new(p->arena, cps_ast_index);
    uint32_t depth = deeper(1, base);
    n->base = base;
    n->n = subs.n;
    n->sub = subs.data;
    for (uint32_t i = 0; i < subs.n; i++) {
        depth = deeper(depth, subs.data[i].lo);
        depth = deeper(depth, subs.data[i].hi);
        depth = deeper(depth, subs.data[i].step);
    }
    return finish(p, &n->head, CPS_EX_INDEX, at, depth);
}

cps_expr_p
cps_make_call(cps_dsl_parser *p, cps_span at, cps_expr_p fn, cps_varg args)
{
    cps_ast_call *n = cps_new(p->arena, cps_ast_call);
    uint32_t depth = deeper(1, fn);
    n->fn = fn;
    n->n = args.n;
    n->arg = args.data;
    for (uint32_t i = 0; i < args.n; i++)
        depth = deeper(depth, args.data[i].value);
    return finish(p, &n->head, CPS_EX_CALL, at, depth);
}

cps_expr_p
cps_make_member(cps_dsl_parser *p, cps_span at, cps_expr_p base, cps_ast_name name)
{
    cps_ast_member *n = cps_new(p->arena, cps_ast_member);
    n->base = base;
    n->name = name;
    return finish(p, &n->head, CPS_EX_MEMBER, at, deeper(1, base));
}

cps_expr_p
cps_make_transpose(cps_dsl_parser *p, cps_span at, cps_expr_p base)
{
    cps_ast_transpose *n = cps_new(p->arena, cps_ast_transpose);
    n->base = base;
    return finish(p, &n->head, CPS_EX_TRANSPOSE, at, deeper(1, base));
}

/* ---- statements ---- */

const cps_ast_stmt *
cps_make_let(cps_dsl_parser *p, cps_span at, cps_ast_skind kind, cps_vname names, bool tuple,
             cps_expr_p value)
{
    cps_ast_let *n = cps_new(p->arena, cps_ast_let);
    n->head.kind = kind;
    n->head.span = at;
    n->n = names.n;
    n->name = names.data;
    n->tuple = tuple;
    n->value = value;
    return &n->head;
}

const cps_ast_stmt *
cps_make_assign(cps_dsl_parser *p, cps_span at, cps_expr_p dst, cps_ast_set set, cps_span set_at,
                cps_expr_p value, cps_vmark marks)
{
    cps_ast_assign *n = cps_new(p->arena, cps_ast_assign);
    n->head.kind = CPS_ST_ASSIGN;
    n->head.span = at;
    n->set = set;
    n->set_span = set_at;
    n->dst = dst;
    n->value = value;
    n->marks = (cps_ast_marks){marks.n, marks.data};
    if (dst->kind != CPS_EX_NAME && dst->kind != CPS_EX_INDEX && dst->kind != CPS_EX_MEMBER &&
        dst->kind != CPS_EX_CALL && dst->kind != CPS_EX_TRANSPOSE) {
        cps_error(p->diags, CPS_E2107, dst->span, "this cannot be written to");
        cps_help(p->diags, "the left of `%s` is a name, a subscript or a view of one",
                 cps_ast_sets[set].text);
        return NULL;
    }
    return &n->head;
}

const cps_ast_stmt *
cps_make_callst(cps_dsl_parser *p, cps_span at, cps_expr_p e, cps_vmark marks)
{
    if (e->kind != CPS_EX_CALL) {
        cps_error(p->diags, CPS_E2107, e->span, "an expression that is a statement must be a call");
        return NULL;
    }
    cps_ast_callst *n = cps_new(p->arena, cps_ast_callst);
    n->head.kind = CPS_ST_CALL;
    n->head.span = at;
    n->call = CPS_AST_AS(call, e);
    n->marks = (cps_ast_marks){marks.n, marks.data};
    return &n->head;
}

const cps_ast_stmt *
cps_make_if(cps_dsl_parser *p, cps_span at, cps_ast_skind kind, cps_expr_p cond, cps_ast_body *yes,
            cps_ast_body *no, bool chain)
{
    cps_ast_if *n = cps_new(p->arena, cps_ast_if);
    n->head.kind = kind;
    n->head.span = at;
    n->cond = cond;
    n->yes = yes;
    n->no = no;
    n->chain = chain;
    return &n->head;
}

const cps_ast_stmt *
cps_make_jump(cps_dsl_parser *p, cps_span at, cps_ast_skind kind, cps_expr_p value)
{
    cps_ast_jump *n = cps_new(p->arena, cps_ast_jump);
    n->head.kind = kind;
    n->head.span = at;
    n->value = value;
    return &n->head;
}

cps_ast_body *
cps_make_body(cps_dsl_parser *p, cps_span at, cps_vstmt stmts)
{
    cps_ast_body *n = cps_new(p->arena, cps_ast_body);
    n->span = at;
    n->n = stmts.n;
    n->stmt = stmts.data;
    return n;
}

cps_ast_body *
cps_make_part(cps_dsl_parser *p, cps_span at, cps_vstmt stmts, cps_span rest)
{
    cps_ast_body *n = cps_make_body(p, at, stmts);
    n->later = cps_new(p->arena, cps_ast_later);
    *n->later = (cps_ast_later){p->arena, p->syms, p->diags, rest};
    return n;
}

void
cps_make_whole(cps_dsl_parser *p, cps_ast_body *b, cps_vstmt rest)
{
    const cps_ast_stmt **all = cps_new_array(p->arena, const cps_ast_stmt *, b->n + rest.n);
    if (b->n)
        memcpy(all, b->stmt, b->n * sizeof *all);
    if (rest.n)
        memcpy(all + b->n, rest.data, rest.n * sizeof *all);
    b->stmt = all;
    b->n += rest.n;
}

cps_ast_clause *
cps_make_clause(cps_dsl_parser *p, cps_span at, cps_ast_ckind kind)
{
    cps_ast_clause *n = cps_new(p->arena, cps_ast_clause);
    n->head.kind = CPS_ST_CLAUSE;
    n->head.span = at;
    n->ckind = kind;
    return n;
}

cps_ast_clauses
cps_make_clauses(cps_dsl_parser *p, const cps_ast_body *b)
{
    CPS_VEC(const cps_ast_clause *) v = {0};
    for (uint32_t i = 0; i < b->n; i++)
        if (b->stmt[i]->kind == CPS_ST_CLAUSE)
            cps_vec_push(p->arena, &v, CPS_AST_AS(clause, b->stmt[i]));
    return (cps_ast_clauses){v.n, v.data};
}

/* ---- marks ---- */

static const char *const marks[] = {
#define CPS_DSL_MARK(name, where, operand, words) name,
#include "frontend/dsl/mark.def"
};

void
cps_check_mark(cps_dsl_parser *p, cps_ast_name name)
{
    const char *near = NULL;
    int best = 3;
    for (size_t i = 0; i < cps_countof(marks); i++) {
        if (cps_streq(marks[i], name.text))
            return;
        int far = cps_edit_distance(marks[i], name.text);
        if (far < best && (size_t)far < strlen(marks[i]) / 2 + 1) {
            best = far;
            near = marks[i];
        }
    }
    p->unknown_mark = true;
    cps_error(p->diags, CPS_E2205, name.span,
              "unknown mark `%s`; is an operator missing before it?", name.text);
    if (near)
        cps_help(p->diags, "did you mean the mark `%s`?", near);
}
