/* Syntax trees back to source. One statement a line, four spaces a level, parentheses only where
 * the grammar needs them (and around a conditional inside a range), no comments. What is printed
 * parses to the same tree. */
#include "frontend/dsl/ast.h"

enum { LEVEL_RANGE = 1, LEVEL_COND = 2, LEVEL_UNARY = 11, LEVEL_POSTFIX = 12 };

static void expr(cps_buf *o, cps_expr_p e, int level);

static int
level_of(cps_expr_p e)
{
    switch (e->kind) {
    case CPS_EX_COND:
        return LEVEL_COND;
    case CPS_EX_BINARY:
        return cps_ast_bins[CPS_AST_AS(binary, e)->op].level;
    case CPS_EX_UNARY:
        return LEVEL_UNARY;
    default:
        return LEVEL_POSTFIX;
    }
}

static void
string(cps_buf *o, const char *s)
{
    cps_buf_putc(o, '"');
    for (; *s; s++) {
        if (*s == '"' || *s == '\\')
            cps_buf_putc(o, '\\');
        if (*s == '\n')
            cps_buf_puts(o, "\\n");
        else
            cps_buf_putc(o, *s);
    }
    cps_buf_putc(o, '"');
}

static void
list(cps_buf *o, const cps_expr_p *item, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        if (i)
            cps_buf_puts(o, ", ");
        expr(o, item[i], 0);
    }
}

static void
binary(cps_buf *o, const cps_ast_binary *e)
{
    const cps_ast_bin_row *row = &cps_ast_bins[e->op];
    if (e->op == CPS_BIN_RANGE) {
        expr(o, e->a, LEVEL_COND + 1);
        cps_buf_puts(o, "..");
        expr(o, e->b, LEVEL_COND + 1);
        return;
    }
    expr(o, e->a, row->level + (row->group == 'C'));
    cps_buf_printf(o, " %s ", row->text);
    expr(o, e->b, row->level + 1);
}

static void
subscripts(cps_buf *o, const cps_ast_index *e)
{
    cps_buf_putc(o, '[');
    for (uint32_t i = 0; i < e->n; i++) {
        const cps_ast_sub *s = &e->sub[i];
        if (i)
            cps_buf_puts(o, ", ");
        if (s->lo)
            expr(o, s->lo, 0);
        if (!s->slice)
            continue;
        cps_buf_putc(o, ':');
        if (s->hi)
            expr(o, s->hi, 0);
        if (s->step) {
            cps_buf_putc(o, ':');
            expr(o, s->step, 0);
        }
    }
    cps_buf_putc(o, ']');
}

static void
call(cps_buf *o, const cps_ast_call *e)
{
    expr(o, e->fn, LEVEL_POSTFIX);
    cps_buf_putc(o, '(');
    for (uint32_t i = 0; i < e->n; i++) {
        if (i)
            cps_buf_puts(o, ", ");
        if (e->arg[i].name.sym)
            cps_buf_printf(o, "%s: ", e->arg[i].name.text);
        expr(o, e->arg[i].value, 0);
    }
    cps_buf_putc(o, ')');
}

static void
bare(cps_buf *o, cps_expr_p e)
{
    switch (e->kind) {
    case CPS_EX_NAME:
        cps_buf_puts(o, CPS_AST_AS(ref, e)->name.text);
        break;
    case CPS_EX_SPACE:
        cps_buf_printf(o, "%s.%s", cps_ast_space_text[CPS_AST_AS(spaceref, e)->space],
                       CPS_AST_AS(spaceref, e)->name.text);
        break;
    case CPS_EX_INT:
        cps_buf_printf(o, CPS_AST_AS(int, e)->hex ? "0x%llx" : "%lld",
                       (long long)CPS_AST_AS(int, e)->value);
        break;
    case CPS_EX_FLOAT:
        cps_buf_put_double(o, CPS_AST_AS(float, e)->value);
        break;
    case CPS_EX_STR:
        string(o, CPS_AST_AS(str, e)->text);
        break;
    case CPS_EX_TUPLE:
    case CPS_EX_LIST:
    case CPS_EX_SET: {
        const char *q = e->kind == CPS_EX_TUPLE ? "()" : e->kind == CPS_EX_LIST ? "[]" : "{}";
        cps_buf_putc(o, q[0]);
        list(o, CPS_AST_AS(seq, e)->item, CPS_AST_AS(seq, e)->n);
        cps_buf_putc(o, q[1]);
        break;
    }
    case CPS_EX_EACH: {
        const cps_ast_each *n = CPS_AST_AS(each, e);
        cps_buf_putc(o, '[');
        expr(o, n->value, 0);
        cps_buf_printf(o, " for %s in ", n->name.text);
        expr(o, n->range, 0);
        cps_buf_putc(o, ']');
        break;
    }
    case CPS_EX_COND: {
        const cps_ast_cond *n = CPS_AST_AS(cond, e);
        expr(o, n->cond, LEVEL_COND + 1);
        cps_buf_puts(o, " ? ");
        expr(o, n->yes, 0);
        cps_buf_puts(o, " : ");
        expr(o, n->no, LEVEL_COND);
        break;
    }
    case CPS_EX_BINARY:
        binary(o, CPS_AST_AS(binary, e));
        break;
    case CPS_EX_UNARY:
        cps_buf_puts(o, cps_ast_un_text[CPS_AST_AS(unary, e)->op]);
        expr(o, CPS_AST_AS(unary, e)->a, LEVEL_UNARY);
        break;
    case CPS_EX_INDEX:
        expr(o, CPS_AST_AS(index, e)->base, LEVEL_POSTFIX);
        subscripts(o, CPS_AST_AS(index, e));
        break;
    case CPS_EX_CALL:
        call(o, CPS_AST_AS(call, e));
        break;
    case CPS_EX_MEMBER:
        expr(o, CPS_AST_AS(member, e)->base, LEVEL_POSTFIX);
        cps_buf_printf(o, ".%s", CPS_AST_AS(member, e)->name.text);
        break;
    case CPS_EX_TRANSPOSE:
        expr(o, CPS_AST_AS(transpose, e)->base, LEVEL_POSTFIX);
        cps_buf_putc(o, '\'');
        break;
    case CPS_EX_COUNT:
        cps_bug("an expression of kind %d", (int)e->kind);
    }
}

// `level` is the loosest the place allows.
static void
expr(cps_buf *o, cps_expr_p e, int level)
{
    bool wrap = level_of(e) < level;
    if (wrap)
        cps_buf_putc(o, '(');
    bare(o, e);
    if (wrap)
        cps_buf_putc(o, ')');
}

/* ---- statements ---- */

static void
margin(cps_buf *o, int indent)
{
    for (int i = 0; i < indent; i++)
        cps_buf_puts(o, "    ");
}

static void
names(cps_buf *o, const cps_ast_name *name, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        cps_buf_printf(o, "%s%s", i ? ", " : "", name[i].text);
}

static void
dims(cps_buf *o, const cps_ast_dim *dim, uint32_t n)
{
    cps_buf_putc(o, '[');
    for (uint32_t i = 0; i < n; i++) {
        if (i)
            cps_buf_puts(o, ", ");
        expr(o, dim[i].extent, 0);
        if (dim[i].fold) {
            cps_buf_puts(o, " by ");
            expr(o, dim[i].fold, 0);
        }
    }
    cps_buf_putc(o, ']');
}

static void
marks(cps_buf *o, const cps_ast_marks *m)
{
    for (uint32_t i = 0; i < m->n; i++) {
        const cps_ast_mark *k = &m->mark[i];
        switch (k->kind) {
        case CPS_MARK_WORD:
            cps_buf_printf(o, " %s ", k->name.text);
            expr(o, k->value, 0);
            break;
        case CPS_MARK_ON:
            cps_buf_printf(o, " on %s", k->name.text);
            break;
        case CPS_MARK_INTO:
        case CPS_MARK_ONTO:
            cps_buf_printf(o, " reduce %s %s ", k->name.text,
                           k->kind == CPS_MARK_INTO ? "into" : "onto");
            expr(o, k->value, LEVEL_POSTFIX);
            break;
        }
    }
}

static void
body(cps_buf *o, const cps_ast_body *b, int indent)
{
    cps_buf_puts(o, "{\n");
    for (uint32_t i = 0; i < b->n; i++)
        cps_ast_print_stmt(o, b->stmt[i], indent + 1);
    margin(o, indent);
    cps_buf_putc(o, '}');
}

static void
pairs(cps_buf *o, const cps_ast_pair *p, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        cps_buf_printf(o, "%s%s: ", i ? ", " : "", p[i].key.text);
        expr(o, p[i].value, 0);
    }
}

static void
clause(cps_buf *o, const cps_ast_clause *c)
{
    switch (c->ckind) {
    case CPS_CL_WHERE:
        cps_buf_puts(o, "where ");
        expr(o, c->a, 0);
        if (c->why) {
            cps_buf_puts(o, " : ");
            string(o, c->why);
        }
        break;
    case CPS_CL_PARAM:
        cps_buf_printf(o, "param %s in ", c->name.text);
        expr(o, c->a, 0);
        cps_buf_puts(o, " = ");
        expr(o, c->b, 0);
        break;
    case CPS_CL_COST:
    case CPS_CL_RESOURCES:
        cps_buf_puts(o, c->ckind == CPS_CL_COST ? "cost " : "resources ");
        pairs(o, c->pair, c->n);
        break;
    case CPS_CL_TOLERANCE:
        cps_buf_puts(o, "tolerance ");
        expr(o, c->a, 0);
        cps_buf_puts(o, ", ");
        expr(o, c->b, 0);
        break;
    case CPS_CL_CASES:
        cps_buf_puts(o, "cases ");
        for (uint32_t i = 0; i < c->n; i++) {
            cps_buf_puts(o, i ? ", (" : "(");
            pairs(o, c->cases[i].pair, c->cases[i].n);
            cps_buf_putc(o, ')');
        }
        break;
    case CPS_CL_PRIORITY:
        cps_buf_puts(o, "priority ");
        expr(o, c->a, 0);
        break;
    case CPS_CL_LAYOUT:
        cps_buf_printf(o, "layout %s: ", c->name.text);
        for (uint32_t i = 0; i < c->n; i++) {
            if (i)
                cps_buf_puts(o, " or ");
            if (c->order[i].space)
                cps_buf_printf(o, "%s ", cps_ast_space_text[c->order[i].space]);
            dims(o, c->order[i].dim, c->order[i].n);
        }
        break;
    case CPS_CL_COUNT:
        cps_bug("a clause of kind %d", (int)c->ckind);
    }
    cps_buf_puts(o, ";\n");
}

static void
store(cps_buf *o, const cps_ast_store *n)
{
    cps_buf_printf(o, "%s %s", cps_ast_space_text[n->space], n->name.text);
    if (n->shaped)
        dims(o, n->dim, n->ndim);
    if (n->dtype) {
        cps_buf_puts(o, ": ");
        expr(o, n->dtype, 0);
    }
    marks(o, &n->decl);
    if (n->init) {
        cps_buf_printf(o, " %s ", cps_ast_sets[n->set].text);
        expr(o, n->value, 0);
        marks(o, &n->marks);
    }
    cps_buf_puts(o, ";\n");
}

static void
conditional(cps_buf *o, const cps_ast_if *n, int indent)
{
    for (;;) {
        cps_buf_puts(o, n->head.kind == CPS_ST_IF ? "if (" : "when (");
        expr(o, n->cond, 0);
        cps_buf_puts(o, ") ");
        body(o, n->yes, indent);
        if (!n->no)
            break;
        cps_buf_puts(o, " else ");
        if (!n->chain) {
            body(o, n->no, indent);
            break;
        }
        n = CPS_AST_AS(if, n->no->stmt[0]);
    }
    cps_buf_putc(o, '\n');
}

static void
iteration(cps_buf *o, const cps_ast_for *n, int indent)
{
    cps_buf_puts(o, "for ");
    for (uint32_t i = 0; i < n->n; i++) {
        const cps_ast_bind *b = &n->bind[i];
        cps_buf_printf(o, "%s%s in ", i ? ", " : "", b->name.text);
        expr(o, b->range, 0);
        if (b->across.sym)
            cps_buf_printf(o, " across %s", b->across.text);
        cps_buf_puts(o, b->pipelined ? " pipelined" : "");
        cps_buf_puts(o, b->rolled ? " rolled" : "");
        cps_buf_puts(o, b->unrolled ? " unrolled" : "");
    }
    cps_buf_putc(o, ' ');
    body(o, n->body, indent);
    cps_buf_putc(o, '\n');
}

static void
let(cps_buf *o, const cps_ast_let *n)
{
    cps_buf_puts(o, n->head.kind == CPS_ST_LET ? "let " : "var ");
    if (n->tuple)
        cps_buf_putc(o, '(');
    names(o, n->name, n->n);
    if (n->tuple)
        cps_buf_putc(o, ')');
    cps_buf_puts(o, " = ");
    expr(o, n->value, 0);
    cps_buf_puts(o, ";\n");
}

static void
unindented(cps_buf *o, const cps_ast_stmt *s, int indent)
{
    switch (s->kind) {
    case CPS_ST_LET:
    case CPS_ST_VAR:
        let(o, CPS_AST_AS(let, s));
        break;
    case CPS_ST_STORE:
        store(o, CPS_AST_AS(store, s));
        break;
    case CPS_ST_ASSIGN: {
        const cps_ast_assign *n = CPS_AST_AS(assign, s);
        expr(o, n->dst, LEVEL_POSTFIX);
        cps_buf_printf(o, " %s ", cps_ast_sets[n->set].text);
        expr(o, n->value, 0);
        marks(o, &n->marks);
        cps_buf_puts(o, ";\n");
        break;
    }
    case CPS_ST_CALL: {
        const cps_ast_callst *n = CPS_AST_AS(callst, s);
        call(o, n->call);
        marks(o, &n->marks);
        cps_buf_puts(o, ";\n");
        break;
    }
    case CPS_ST_LABEL:
        for (; s->kind == CPS_ST_LABEL; s = CPS_AST_AS(label, s)->stmt)
            cps_buf_printf(o, "%s: ", CPS_AST_AS(label, s)->name.text);
        unindented(o, s, indent);
        break;
    case CPS_ST_IF:
    case CPS_ST_WHEN:
        conditional(o, CPS_AST_AS(if, s), indent);
        break;
    case CPS_ST_FOR:
        iteration(o, CPS_AST_AS(for, s), indent);
        break;
    case CPS_ST_LOOP: {
        const cps_ast_loop *n = CPS_AST_AS(loop, s);
        cps_buf_printf(o, "loop %s in ", n->name.text);
        expr(o, n->range, 0);
        cps_buf_putc(o, ' ');
        body(o, n->body, indent);
        cps_buf_putc(o, '\n');
        break;
    }
    case CPS_ST_WHILE:
        cps_buf_puts(o, "while (");
        expr(o, CPS_AST_AS(while, s)->cond, 0);
        cps_buf_puts(o, ") ");
        body(o, CPS_AST_AS(while, s)->body, indent);
        cps_buf_putc(o, '\n');
        break;
    case CPS_ST_STAGE:
        cps_buf_printf(o, "stage %s ", CPS_AST_AS(stage, s)->name.text);
        body(o, CPS_AST_AS(stage, s)->body, indent);
        cps_buf_putc(o, '\n');
        break;
    case CPS_ST_BREAK:
        cps_buf_puts(o, "break;\n");
        break;
    case CPS_ST_CONTINUE:
        cps_buf_puts(o, "continue;\n");
        break;
    case CPS_ST_RETURN:
        cps_buf_puts(o, "return");
        if (CPS_AST_AS(jump, s)->value) {
            cps_buf_putc(o, ' ');
            expr(o, CPS_AST_AS(jump, s)->value, 0);
        }
        cps_buf_puts(o, ";\n");
        break;
    case CPS_ST_ASSERT:
        cps_buf_puts(o, "assert ");
        expr(o, CPS_AST_AS(assert, s)->cond, 0);
        cps_buf_puts(o, " : ");
        string(o, CPS_AST_AS(assert, s)->why);
        cps_buf_puts(o, ";\n");
        break;
    case CPS_ST_CLAUSE:
        clause(o, CPS_AST_AS(clause, s));
        break;
    case CPS_ST_COUNT:
        cps_bug("a statement of kind %d", (int)s->kind);
    }
}

void
cps_ast_print_stmt(cps_buf *o, const cps_ast_stmt *s, int indent)
{
    margin(o, indent);
    unindented(o, s, indent);
}

void
cps_ast_print_expr(cps_buf *o, cps_expr_p e)
{
    expr(o, e, 0);
}

const char *
cps_ast_expr_text(cps_arena *a, cps_expr_p e)
{
    cps_buf b = {0};
    expr(&b, e, 0);
    const char *s = cps_arena_strndup(a, b.data, b.n);
    cps_buf_fini(&b);
    return s;
}

/* ---- items ---- */

static void
operand(cps_buf *o, const cps_ast_operand *x)
{
    cps_buf_printf(o, "%s%s%s[", x->inout ? "inout " : "", x->name.text, x->optional ? "?" : "");
    list(o, x->extent, x->n);
    cps_buf_putc(o, ']');
    if (x->dtype) {
        cps_buf_puts(o, ": ");
        expr(o, x->dtype, 0);
    }
}

static void
operator(cps_buf *o, const cps_ast_op *n)
{
    cps_buf_printf(o, "%s %s(", n->block ? "block" : "op", n->name.text);
    for (uint32_t i = 0; i < n->noperand; i++) {
        cps_buf_puts(o, i ? ", " : "");
        operand(o, &n->operand[i]);
    }
    for (uint32_t i = 0; i < n->nattr; i++) {
        cps_buf_printf(o, "%s%s: ", i ? ", " : "; ", n->attr[i].name.text);
        expr(o, n->attr[i].type, 0);
        if (n->attr[i].dflt) {
            cps_buf_puts(o, " = ");
            expr(o, n->attr[i].dflt, 0);
        }
    }
    cps_buf_puts(o, ") -> ");
    for (uint32_t i = 0; i < n->nresult; i++) {
        cps_buf_puts(o, i ? ", " : "");
        operand(o, &n->result[i]);
    }
    for (uint32_t i = 0; i < n->ndimdef; i++) {
        cps_buf_printf(o, "%s%s = ", i ? ", " : " where ", n->dimdef[i].name.text);
        expr(o, n->dimdef[i].value, 0);
    }
    cps_buf_putc(o, ' ');
    body(o, cps_ast_whole(n->body), 0);
    cps_buf_putc(o, '\n');
}

void
cps_ast_print_item(cps_buf *o, const cps_ast_item *i)
{
    switch (i->kind) {
    case CPS_IT_USE:
        cps_buf_puts(o, "use ");
        string(o, CPS_AST_AS(use, i)->path);
        cps_buf_puts(o, ";\n");
        break;
    case CPS_IT_CONST:
        cps_buf_printf(o, "const %s = ", CPS_AST_AS(const, i)->name.text);
        expr(o, CPS_AST_AS(const, i)->value, 0);
        cps_buf_puts(o, ";\n");
        break;
    case CPS_IT_ENUM: {
        const cps_ast_enum *n = CPS_AST_AS(enum, i);
        cps_buf_printf(o, "enum %s { ", n->name.text);
        for (uint32_t k = 0; k < n->n; k++) {
            cps_buf_printf(o, "%s%s", k ? ", " : "", n->member[k].name.text);
            if (n->member[k].value) {
                cps_buf_puts(o, " = ");
                expr(o, n->member[k].value, 0);
            }
        }
        cps_buf_puts(o, " }\n");
        break;
    }
    case CPS_IT_OP:
        operator(o, CPS_AST_AS(op, i));
        break;
    case CPS_IT_LEAF: {
        const cps_ast_leaf *n = CPS_AST_AS(leaf, i);
        cps_buf_printf(o, "leaf %s for %s on ", n->name.text, n->op.text);
        names(o, n->target, n->ntarget);
        cps_buf_putc(o, ' ');
        body(o, cps_ast_whole(n->body), 0);
        cps_buf_putc(o, '\n');
        break;
    }
    case CPS_IT_FN: {
        const cps_ast_fn *n = CPS_AST_AS(fn, i);
        cps_buf_printf(o, "fn %s(", n->name.text);
        for (uint32_t k = 0; k < n->n; k++) {
            cps_buf_printf(o, "%s%s", k ? ", " : "", n->param[k].name.text);
            if (n->param[k].dflt) {
                cps_buf_puts(o, " = ");
                expr(o, n->param[k].dflt, 0);
            }
        }
        cps_buf_puts(o, ") ");
        body(o, cps_ast_whole(n->body), 0);
        cps_buf_putc(o, '\n');
        break;
    }
    case CPS_IT_COUNT:
        cps_bug("an item of kind %d", (int)i->kind);
    }
}

void
cps_ast_print_file(cps_buf *o, const cps_ast_file *f)
{
    for (uint32_t i = 0; i < f->n; i++) {
        bool tight = i && f->item[i]->kind == f->item[i - 1]->kind &&
                     (f->item[i]->kind == CPS_IT_USE || f->item[i]->kind == CPS_IT_CONST);
        if (i && !tight)
            cps_buf_putc(o, '\n');
        cps_ast_print_item(o, f->item[i]);
    }
}
