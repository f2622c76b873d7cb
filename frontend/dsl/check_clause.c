/* Checks of load time for marks and clauses: what they are called, where they stand, what they
 * name. */
#include "codegen/isa/enum.h"
#include "frontend/dsl/check_priv.h"

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

bool
cps_check_word(const char *word, const char *list)
{
    size_t n = strlen(word);
    for (const char *p = list; n && (p = strstr(p, word)); p += n)
        if ((p == list || p[-1] == ' ') && (p[n] == 0 || p[n] == ' '))
            return true;
    return false;
}

static void
check_word_mark(cps_checker *c, const cps_ast_mark *k, char where)
{
    const mark_row *row = find_mark(k->name.text);
    if (!row) { // reported by the parser
        cps_check_expr(c, k->value);
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
    bool listed = word.sym && cps_check_word(word.text, row->words);
    if (listed)
        return;
    if (row->operand == 'W' || (row->operand == 'L' && !word.sym))
        cps_error(c->d, CPS_E2212, k->value->span, "`%s` wants %s", row->name,
                  row->operand == 'W' ? "one of: static, hwdge, swdge, elements"
                                      : "the label of a statement, or none");
    else if (row->operand == 'L')
        cps_check_name(c, word, false);
    else
        cps_check_expr(c, k->value);
}

void
cps_check_marks(cps_checker *c, const cps_ast_marks *m, char where)
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
            else if (!cps_check_word(k->name.text, "add max min multiply")) {
                cps_error(c->d, CPS_E2212, k->name.span, "`%s` is no reduction", k->name.text);
                cps_help(c->d, "reductions are add, max, min and multiply");
            }
            cps_check_expr(c, k->value);
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
check_terms(cps_checker *c, const cps_ast_clause *k, const char *what, const char *known)
{
    for (uint32_t i = 0; i < k->n; i++) {
        if (!cps_check_word(k->pair[i].key.text, known)) {
            cps_error(c->d, CPS_E2209, k->pair[i].key.span, "`%s` is no term of `%s`",
                      k->pair[i].key.text, what);
            cps_help(c->d, "terms are: %s", known);
        }
        for (uint32_t j = 0; j < i; j++)
            if (k->pair[j].key.sym == k->pair[i].key.sym)
                cps_error(c->d, CPS_E2209, k->pair[i].key.span, "the term `%s` stands twice",
                          k->pair[i].key.text);
        cps_check_expr(c, k->pair[i].value);
    }
}

static void
check_cases(cps_checker *c, const cps_ast_clause *k)
{
    for (uint32_t i = 0; i < k->n; i++)
        for (uint32_t j = 0; j < k->cases[i].n; j++) {
            const cps_ast_pair *p = &k->cases[i].pair[j];
            if (c->op && !has_dim_or_attr(c->op, p->key.sym) &&
                !cps_check_word(p->key.text, "dtype cores with"))
                cps_error(c->d, CPS_E2209, p->key.span,
                          "`%s` is neither a dimension nor an attribute of `%s`", p->key.text,
                          c->op->name.text);
            cps_check_expr(c, p->value);
        }
}

static void
check_layout(cps_checker *c, const cps_ast_clause *k)
{
    const cps_ast_operand *x = c->op ? find_operand(c->op, k->name.sym) : NULL;
    if (c->op && !x)
        cps_error(c->d, CPS_E2209, k->name.span, "`%s` is neither operand nor result of `%s`",
                  k->name.text, c->op->name.text);
    for (uint32_t i = 0; i < k->n; i++) {
        for (uint32_t j = 0; j < k->order[i].n; j++) {
            cps_check_expr(c, k->order[i].dim[j].extent);
            cps_check_expr(c, k->order[i].dim[j].fold);
        }
        if (x && k->order[i].n != x->n)
            cps_error(c->d, CPS_E2209, k->order[i].span, "`%s` has %u axes, this order names %u",
                      x->name.text, x->n, k->order[i].n);
    }
}

void
cps_check_clause(cps_checker *c, const cps_ast_clause *k)
{
    switch (k->ckind) {
    case CPS_CL_WHERE:
    case CPS_CL_TOLERANCE:
    case CPS_CL_PRIORITY:
        cps_check_expr(c, k->a);
        cps_check_expr(c, k->b);
        break;
    case CPS_CL_PARAM:
        cps_check_expr(c, k->a);
        cps_check_expr(c, k->b);
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

const char *const cps_clause_names[CPS_CL_COUNT] = {
    [CPS_CL_WHERE] = "where",         [CPS_CL_PARAM] = "param",
    [CPS_CL_COST] = "cost",           [CPS_CL_RESOURCES] = "resources",
    [CPS_CL_TOLERANCE] = "tolerance", [CPS_CL_CASES] = "cases",
    [CPS_CL_PRIORITY] = "priority",   [CPS_CL_LAYOUT] = "layout",
};

// Which clauses a body may hold, and how often.
void
cps_check_clauses(cps_checker *c, const cps_ast_clauses *all)
{
    const cps_ast_clause *seen[CPS_CL_COUNT] = {0};
    for (uint32_t i = 0; i < all->n; i++) {
        const cps_ast_clause *k = all->clause[i];
        bool fits = c->where == CPS_IN_LEAF || (c->where == CPS_IN_OP && k->ckind == CPS_CL_COST) ||
                    (c->where == CPS_IN_BLOCK && (k->ckind == CPS_CL_COST || k->ckind == CPS_CL_WHERE ||
                                              k->ckind == CPS_CL_PARAM));
        bool many = k->ckind == CPS_CL_WHERE || k->ckind == CPS_CL_PARAM ||
                    k->ckind == CPS_CL_LAYOUT;
        if (!fits)
            cps_error(c->d, CPS_E2209, k->head.span, "`%s` does not belong to the body of %s",
                      cps_clause_names[k->ckind], c->where == CPS_IN_OP ? "an op" : "a block");
        else if (seen[k->ckind] && !many) {
            cps_error(c->d, CPS_E2209, k->head.span, "`%s` stands twice",
                      cps_clause_names[k->ckind]);
            cps_note(c->d, seen[k->ckind]->head.span, "the other one");
        }
        seen[k->ckind] = k;
    }
}
