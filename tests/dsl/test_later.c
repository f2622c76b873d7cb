/* Bodies that are read when they are needed: what is stepped over is what the grammar would
 * take, whatever stands in strings and comments; and every shipped file has the same tree,
 * places included, read either way. */
#include "frontend/dsl/load.h"
#include "kernels/registry.h"
#include "tests/check.h"
#include "tests/dsl/parsed.h"

#include <stdlib.h>

/* ---- where the rest of a body lies ---- */

typedef struct rest_row {
    const char *text;        // what follows the `{`
    const char *head, *rest; // NULL: not in order
} rest_row;

static const rest_row rests[] = {
    {"}", "", ""},
    {" x = 1; } fn f() {}", "", " x = 1; "},
    {"let a = 1; where a > 0; x = a; }", "let a = 1; where a > 0;", " x = a; "},
    {"where a; x = 1; cost pe: 1; y = 1; }", "where a; x = 1; cost pe: 1;", " y = 1; "},
    {"where a; }", "where a;", " "},
    // strings
    {"assert a : \"}\"; x = 1; } }", "", "assert a : \"}\"; x = 1; "},
    {"where a : \"};\"; x = 1; }", "where a : \"};\";", " x = 1; "},
    {"x = \"\\\"}\"; y = 1; }", "", "x = \"\\\"}\"; y = 1; "},
    {"x = \"\\\\\"; } \"", "", "x = \"\\\\\"; "},
    {"x = \"// } /* where\"; y = 1; }", "", "x = \"// } /* where\"; y = 1; "},
    {"x = \"where\"; y; }", "", "x = \"where\"; y; "},
    // comments
    {"// } where a;\nx = 1; }", "", "// } where a;\nx = 1; "},
    {"/* } { where a; */ x = 1; }", "", "/* } { where a; */ x = 1; "},
    {"/* don't \" */ x = 1; } \"", "", "/* don't \" */ x = 1; "},
    {"/*/ } */ x = 1; }", "", "/*/ } */ x = 1; "},
    {"/** } **/ x = 1; }", "", "/** } **/ x = 1; "},
    {"where a // ; }\n; x = 1; }", "where a // ; }\n;", " x = 1; "},
    {"x = a / b; y = a /b/ c; }", "", "x = a / b; y = a /b/ c; "},
    // what only looks like a clause or an end
    {"x = a'; y = {1, 2}; }", "", "x = a'; y = {1, 2}; "},
    {"where a in {1, 2}; for i in 0..2 { x[i] = (1); } }", "where a in {1, 2};",
     " for i in 0..2 { x[i] = (1); } "},
    {"if (a) { where b; } x = 1; }", "", "if (a) { where b; } x = 1; "},
    {"let wherever = 1; let my_cost = 2e5; x = costs; }", "",
     "let wherever = 1; let my_cost = 2e5; x = costs; "},
    {"y <- x priority 1; z <- x; }", "", "y <- x priority 1; z <- x; "},
    {"y <- {1} priority 1; z <- x; }", "y <- {1} priority 1;", " z <- x; "},
    {"/* a */ // b\n /* c */ where a; x; }", "/* a */ // b\n /* c */ where a;", " x; "},
    {"if (a) { x; } where b; z; }", "if (a) { x; } where b;", " z; "},
    {"let x = 1; cost pe: (a + {1, 2}[0]), hbm: 2; z; }",
     "let x = 1; cost pe: (a + {1, 2}[0]), hbm: 2;", " z; "},
    {"x = (1; }", "", "x = (1; "}, // for the parser to say
    // not in order
    {"x = 1;", NULL, NULL},
    {"x = \"abc; }", NULL, NULL},
    {"x = \"abc\n\"; }", NULL, NULL},
    {"x = \"abc\\", NULL, NULL},
    {"/* }", NULL, NULL},
    {"where a }", NULL, NULL},
    {"", NULL, NULL},
};

static void
test_rest(void)
{
    for (size_t i = 0; i < cps_countof(rests); i++) {
        const rest_row *r = &rests[i];
        uint32_t begin = 0, end = 0;
        size_t n = strlen(r->text);
        char *text =
            malloc(n + 1); // of its exact size, so that a sanitizer sees a step too far
        memcpy(text, "{", 1);
        memcpy(text + 1, r->text, n);
        bool ok = cps_dsl_find_rest(text, n + 1, 1, &begin, &end);
        if (ok != (r->head != NULL))
            fprintf(stderr, "row %zu: {%s\n", i, r->text);
        CHECK_INT(ok, r->head != NULL);
        if (ok && r->head) {
            char got[128];
            snprintf(got, sizeof got, "%.*s|%.*s", (int)begin - 1, text + 1, (int)(end - begin),
                     text + begin);
            char want[128];
            snprintf(want, sizeof want, "%s|%s", r->head, r->rest);
            CHECK_STR(got, want);
        }
        free(text);
    }
}

/* ---- the same tree ---- */

static cps_ast_body *
body_of(const cps_ast_item *i)
{
    return i->kind == CPS_IT_LEAF ? CPS_AST_AS(leaf, i)->body
           : i->kind == CPS_IT_FN ? CPS_AST_AS(fn, i)->body
           : i->kind == CPS_IT_OP ? CPS_AST_AS(op, i)->body
                                  : NULL;
}

static const cps_ast_clauses *
clauses_of(const cps_ast_item *i)
{
    return i->kind == CPS_IT_LEAF ? &CPS_AST_AS(leaf, i)->clauses
           : i->kind == CPS_IT_OP ? &CPS_AST_AS(op, i)->clauses
                                  : NULL;
}

static void
put_span(cps_buf *b, cps_span at, int kind)
{
    cps_buf_printf(b, "%d:%u-%u ", kind, at.begin, at.end);
}

static void put_body(cps_buf *b, const cps_ast_body *body);

static void
put_expr(cps_buf *b, cps_expr_p e)
{
    if (!e)
        return;
    put_span(b, e->span, (int)e->kind);
    cps_buf_printf(b, "^%u ", e->depth);
    if (e->kind == CPS_EX_NAME)
        put_span(b, CPS_AST_AS(ref, e)->name.span, 100);
    if (e->kind == CPS_EX_BINARY) {
        put_span(b, CPS_AST_AS(binary, e)->op_span, 101);
        put_expr(b, CPS_AST_AS(binary, e)->a);
        put_expr(b, CPS_AST_AS(binary, e)->b);
    }
    if (e->kind == CPS_EX_INDEX) {
        put_expr(b, CPS_AST_AS(index, e)->base);
        for (uint32_t i = 0; i < CPS_AST_AS(index, e)->n; i++)
            put_span(b, CPS_AST_AS(index, e)->sub[i].span, 102);
    }
    if (e->kind == CPS_EX_CALL) {
        put_expr(b, CPS_AST_AS(call, e)->fn);
        for (uint32_t i = 0; i < CPS_AST_AS(call, e)->n; i++)
            put_expr(b, CPS_AST_AS(call, e)->arg[i].value);
    }
}

// Kind and place of a statement and of what is in it.
static void
put_stmt(cps_buf *b, const cps_ast_stmt *s)
{
    put_span(b, s->span, (int)s->kind);
    switch (s->kind) {
    case CPS_ST_LET:
    case CPS_ST_VAR:
        put_expr(b, CPS_AST_AS(let, s)->value);
        break;
    case CPS_ST_STORE:
        put_span(b, CPS_AST_AS(store, s)->name.span, 103);
        put_expr(b, CPS_AST_AS(store, s)->value);
        break;
    case CPS_ST_ASSIGN:
        put_expr(b, CPS_AST_AS(assign, s)->dst);
        put_expr(b, CPS_AST_AS(assign, s)->value);
        break;
    case CPS_ST_CALL:
        put_expr(b, &CPS_AST_AS(callst, s)->call->head);
        break;
    case CPS_ST_LABEL:
        put_stmt(b, CPS_AST_AS(label, s)->stmt);
        break;
    case CPS_ST_IF:
    case CPS_ST_WHEN:
        put_expr(b, CPS_AST_AS(if, s)->cond);
        put_body(b, CPS_AST_AS(if, s)->yes);
        put_body(b, CPS_AST_AS(if, s)->no);
        break;
    case CPS_ST_FOR:
        put_body(b, CPS_AST_AS(for, s)->body);
        break;
    case CPS_ST_LOOP:
        put_body(b, CPS_AST_AS(loop, s)->body);
        break;
    case CPS_ST_WHILE:
        put_body(b, CPS_AST_AS(while, s)->body);
        break;
    case CPS_ST_STAGE:
        put_body(b, CPS_AST_AS(stage, s)->body);
        break;
    default:
        break;
    }
}

static void
put_body(cps_buf *b, const cps_ast_body *body)
{
    if (!body)
        return;
    put_span(b, body->span, 104);
    for (uint32_t i = 0; i < body->n; i++)
        put_stmt(b, body->stmt[i]);
}

static void
put_clauses(cps_buf *b, const parsed *p)
{
    for (uint32_t i = 0; i < p->file->n; i++) {
        const cps_ast_clauses *all = clauses_of(p->file->item[i]);
        cps_buf_printf(b, "\n%u ", i);
        for (uint32_t k = 0; all && k < all->n; k++) {
            put_span(b, all->clause[k]->head.span, (int)all->clause[k]->ckind);
            cps_ast_print_stmt(b, &all->clause[k]->head, 0);
        }
    }
}

static void
put_tree(cps_buf *b, const parsed *p)
{
    cps_ast_print_file(b, p->file);
    for (uint32_t i = 0; i < p->file->n; i++) {
        put_span(b, p->file->item[i]->span, (int)p->file->item[i]->kind);
        put_body(b, body_of(p->file->item[i]));
    }
}

static bool
same_text(cps_buf *a, cps_buf *b)
{
    bool same = a->n == b->n && (!a->n || memcmp(a->data, b->data, a->n) == 0);
    cps_buf_fini(a);
    cps_buf_fini(b);
    return same;
}

static unsigned bodies, postponed;

static void
test_source(const cps_source *s)
{
    parsed now = parse(s->path, s->text, s->n, false),
           later = parse(s->path, s->text, s->n, true);
    CHECK(now.ok && later.ok);
    CHECK_INT(now.file->n, later.file->n);
    for (uint32_t i = 0; i < later.file->n; i++) {
        const cps_ast_body *b = body_of(later.file->item[i]), *all = body_of(now.file->item[i]);
        if (!b)
            continue;
        CHECK(b->later && !all->later);
        for (uint32_t k = b->n; k < all->n; k++)
            CHECK(all->stmt[k]->kind != CPS_ST_CLAUSE);
        bodies++;
        postponed += all->n - b->n;
    }
    cps_buf a = {0}, b = {0};
    put_clauses(&a, &now);
    put_clauses(&b, &later); // before its bodies are whole
    CHECK(same_text(&a, &b));
    a = b = (cps_buf){0};
    put_tree(&a, &now);
    put_tree(&b, &later); // printing makes them whole
    CHECK(same_text(&a, &b));
    for (uint32_t i = 0; i < later.file->n; i++)
        CHECK(!body_of(later.file->item[i]) || !body_of(later.file->item[i])->later);
    CHECK_INT(cps_diags_errors(later.diags), 0);
    drop(&now);
    drop(&later);
}

/* ---- a text with errors ---- */

// What either way of reading reports of the same text.
static void
check_errors(const char *text, bool found_late)
{
    parsed now = parse("x.cps", text, strlen(text), false),
           later = parse("x.cps", text, strlen(text), true);
    CHECK(!now.ok);
    CHECK_INT(later.ok, found_late);
    for (uint32_t i = 0; i < later.file->n; i++)
        if (body_of(later.file->item[i]))
            CHECK(cps_ast_whole(body_of(later.file->item[i])) == body_of(later.file->item[i]));
    cps_buf a = {0}, b = {0};
    cps_diags_render(now.diags, &a, false);
    cps_diags_render(later.diags, &b, false);
    CHECK_STR(b.data, a.data);
    cps_buf_fini(&a);
    cps_buf_fini(&b);
    drop(&now);
    drop(&later);
}

static void
test_errors(void)
{
    check_errors("fn f(a = {1, 2}) {\n    let x = ;\n    let y = 1;\n}\n", true);
    check_errors("leaf l for o on trn2 {\n    where true;\n    sbuf x[1] = 1 <- 2;\n}\n", true);
    check_errors("fn f(a) {\n    let x = (1;\n    let y = 1;\n}\nfn g() { return 1); }\n",
                 true);
    check_errors("fn f(a) {\n    let x = 1;\n    let y = (1\n}\n", true);
    check_errors(
        "leaf l for o on trn2 {\n    where true;\n    leaf m for o on trn2 { let x = 1; }\n}\n",
        true);
    check_errors("leaf l for o on trn2 {\n    where ;\n    let x = 1;\n}\n", false);
    check_errors("fn f() {\n    let x = 1;\n    if (x) {\n", false); // no end: read at once
}

int
main(void)
{
    test_rest();
    for (unsigned i = 0; i < cps_kernel_source_count; i++)
        test_source(&cps_kernel_sources[i]);
    CHECK(bodies > 100 && postponed > bodies);
    test_errors();
    return CHECK_DONE();
}
