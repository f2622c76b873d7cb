/* Parser and printer: every source parses; print(parse(print(parse(x)))) is a fixed point and keeps
 * the tree; the shape of a few trees; 2,000 random mutations of the sources end in a tree or in
 * diagnostics, never in a crash, and what parses is a fixed point too. */
#include "frontend/dsl/body.h"
#include "runtime/base/rng.h"
#include "tests/check.h"
#include "tests/dsl/dsl.h"
#include "tests/dsl/parsed.h"

#include <stdlib.h>

static void
show(parsed *p)
{
    cps_buf b = {0};
    cps_diags_render(p->diags, &b, false);
    fprintf(stderr, "%s", b.n ? b.data : "");
    cps_buf_fini(&b);
}

// True when printing, parsing and printing again gives the same text without errors.
static bool
fixed_point(parsed *p)
{
    cps_buf once = {0}, twice = {0};
    cps_ast_print_file(&once, p->file);
    parsed q = parse("printed", once.n ? once.data : "", once.n, false);
    cps_ast_print_file(&twice, q.file);
    bool same = q.ok && once.n == twice.n && (!once.n || memcmp(once.data, twice.data, once.n) == 0);
    if (!same)
        show(&q);
    drop(&q);
    cps_buf_fini(&once);
    cps_buf_fini(&twice);
    return same;
}

static void
test_sources(void)
{
    cps_arena *a = cps_arena_create();
    dsl_files files = {a};
    for (int i = 0; dsl_sources[i]; i++) {
        const char *text = NULL;
        size_t n = 0;
        CHECK(dsl_read(&files, cps_arena_printf(a, "x/%s.cps", dsl_sources[i]), &text, &n));
        parsed p = parse(dsl_sources[i], text, n, false);
        if (!p.ok)
            show(&p);
        CHECK(p.ok);
        CHECK(p.file->n > 0);
        CHECK(fixed_point(&p));
        drop(&p);
    }
    cps_arena_destroy(a);
}

// The canonical text of one expression, and of the same with every parenthesis it can do without.
static void
check_expr(const char *text, const char *want)
{
    char source[400];
    snprintf(source, sizeof source, "const X = %s;", text);
    parsed p = parse("expr", source, strlen(source), false);
    CHECK(p.ok);
    if (p.ok) {
        const cps_ast_const *c = CPS_AST_AS(const, p.file->item[0]);
        CHECK_STR(cps_ast_expr_text(p.arena, c->value), want);
        CHECK(c->value->span.begin >= 10 && c->value->span.end <= strlen(source) - 1);
    } else {
        show(&p);
    }
    drop(&p);
}

static void
test_expressions(void)
{
    check_expr("a+b*c", "a + b * c");
    check_expr("(a+b)*c", "(a + b) * c");
    check_expr("a-(b-c)-d", "a - (b - c) - d");
    check_expr("((a))", "a");
    check_expr("a||b&&c<d|e&f<<g+h*-i'", "a || b && c < d | e & f << g + h * -i'");
    check_expr("((((((((a||b)&&c)<d)|e)&f)<<g)+h)*i)'",
               "((((((((a || b) && c) < d) | e) & f) << g) + h) * i)'");
    check_expr("(a<b)==(c<d)", "(a < b) == (c < d)");
    check_expr("!(a in {1,2})", "!(a in {1, 2})");
    check_expr("a?b:c?d:e", "a ? b : c ? d : e");
    check_expr("(a?b:c)?d:e", "(a ? b : c) ? d : e");
    check_expr("a?b..c:d", "a ? b..c : d");
    check_expr("(a?b:c)..d+1", "(a ? b : c)..d + 1");
    check_expr("x[a?b:c:d,::2,:e,f:,:]", "x[a ? b : c:d, ::2, :e, f:, :]");
    check_expr("f(a,axis:0,b..c)", "f(a, axis: 0, b..c)");
    check_expr("-(-a)", "--a");
    check_expr("a- -b", "a - -b");
    check_expr("a < -b", "a < -b");
    check_expr("(-a)'", "(-a)'");
    check_expr("-a'", "-a'");
    check_expr("x.view(\"a b -> b a\", b:4)[0].bits(fp32)''", "x.view(\"a b -> b a\", b: 4)[0].bits(fp32)''");
    check_expr("[p/2*3 for p in 0..N]", "[p / 2 * 3 for p in 0..N]");
    check_expr("(a,b,c)", "(a, b, c)");
    check_expr("0X1f+1_000+1e-6+1.50", "0x1f + 1000 + 1e-6 + 1.5");
}

static void
test_tree(void)
{
    const char *text = "leaf l for f on trn1, host {\n"
                       "    where T > 0 : \"why\";\n"
                       "    param C in {1, 2} = 2;\n"
                       "    cases (T: 1), (T: 2, cores: 2);\n"
                       "    sbuf x[T by 128, 2]: bf16 bufs 3 at 4 <- h via static on act;\n"
                       "    go: e = exp(x) reduce add into l[:, 0];\n"
                       "    for a in 0..2 across cores, b in r pipelined { }\n"
                       "}\n";
    parsed p = parse("tree", text, strlen(text), false);
    CHECK(p.ok);
    CHECK_INT(p.file->n, 1);
    CHECK_INT(p.file->item[0]->kind, CPS_IT_LEAF);
    const cps_ast_leaf *l = CPS_AST_AS(leaf, p.file->item[0]);
    CHECK_STR(l->name.text, "l");
    CHECK_STR(l->op.text, "f");
    CHECK_INT(l->ntarget, 2);
    CHECK_STR(l->target[1].text, "host");
    CHECK_INT(l->clauses.n, 3);
    CHECK_INT(l->body->n, 6);
    CHECK_STR(l->clauses.clause[0]->why, "why");
    CHECK_STR(l->clauses.clause[1]->name.text, "C");
    CHECK_INT(l->clauses.clause[2]->cases[1].n, 2);

    const cps_ast_store *s = CPS_AST_AS(store, l->body->stmt[3]);
    CHECK_INT(s->head.kind, CPS_ST_STORE);
    CHECK_INT(s->space, CPS_SPACE_SBUF);
    CHECK_INT(s->ndim, 2);
    CHECK(s->dim[0].fold && !s->dim[1].fold);
    CHECK_INT(s->decl.n, 2);
    CHECK_STR(s->decl.mark[1].name.text, "at");
    CHECK(s->init && s->set == CPS_SET_ARROW);
    CHECK_INT(s->marks.n, 2);
    CHECK_INT(s->marks.mark[1].kind, CPS_MARK_ON);
    // The span of the name is its bytes.
    CHECK(memcmp(text + s->name.span.begin, "x", 1) == 0);
    CHECK_INT(s->name.span.end - s->name.span.begin, 1);
    CHECK(memcmp(text + s->head.span.begin, "sbuf x", 6) == 0);
    CHECK(text[s->head.span.end - 1] == ';');

    const cps_ast_label *g = CPS_AST_AS(label, l->body->stmt[4]);
    CHECK_STR(g->name.text, "go");
    const cps_ast_assign *e = CPS_AST_AS(assign, g->stmt);
    CHECK_INT(e->marks.mark[0].kind, CPS_MARK_INTO);
    CHECK_STR(e->marks.mark[0].name.text, "add");
    CHECK_INT(e->marks.mark[0].value->kind, CPS_EX_INDEX);

    const cps_ast_for *f = CPS_AST_AS(for, l->body->stmt[5]);
    CHECK_INT(f->n, 2);
    CHECK_STR(f->bind[0].across.text, "cores");
    CHECK(!f->bind[0].pipelined && f->bind[1].pipelined);
    drop(&p);
}

/* ---- mutations ---- */

static const char *const scraps[] = {
    "{", "}", "(", ")", "[", "]", ";", ",", ":", "?", "<-", "..", "'", "\"", "/*", "*/", "//",
    "\\", "@", " in ", " for ", " if (", " else ", " leaf ", " op ", " let ", "0x", "1e", "9999999999999999999",
    "\xc3\xa9", "\x80", "\x01", "+=", "->", " by ", " where ", " cases ", "-", "!",
};

static size_t
mutate(cps_rng *r, char *text, size_t n, size_t cap)
{
    unsigned edits = 1 + (unsigned)(cps_rng_next(r) % 4);
    while (edits--) {
        size_t at = n ? cps_rng_next(r) % n : 0, len = 1 + cps_rng_next(r) % 12;
        switch (cps_rng_next(r) % 4) {
        case 0: // cut
            len = CPS_MIN(len, n - at);
            memmove(text + at, text + at + len, n - at - len);
            n -= len;
            break;
        case 1: { // insert a scrap
            const char *s = scraps[cps_rng_next(r) % cps_countof(scraps)];
            size_t k = strlen(s);
            if (n + k > cap)
                break;
            memmove(text + at + k, text + at, n - at);
            memcpy(text + at, s, k);
            n += k;
            break;
        }
        case 2: // overwrite a byte
            if (n)
                text[at] = (char)cps_rng_next(r);
            break;
        default: { // copy a stretch elsewhere
            size_t from = n ? cps_rng_next(r) % n : 0;
            len = CPS_MIN(len * 4, n - from);
            if (n + len > cap)
                break;
            memmove(text + at + len, text + at, n - at);
            size_t src = from >= at ? from + len : from;
            memmove(text + at, text + CPS_MIN(src, n), CPS_MIN(len, n));
            n += len;
            break;
        }
        }
    }
    return n;
}

// What parses and passes its checks is also held against its own cases, and its bodies are built:
// graphs and reasons, or messages.
static void
use_mutant(cps_dsl_set *s, cps_diags *d)
{
    cps_arena *a = cps_arena_create();
    for (uint32_t k = 0; k < s->leaves.n; k++) {
        const cps_dsl_leaf *l = s->leaves.data[k];
        const cps_dsl_op *op = cps_dsl_need_op(s, l->ast->op.text);
        cps_dsl_case *c;
        uint32_t n;
        if (!op || !l->module->ok || !op->module->ok || !cps_dsl_cases(s, a, l, &c, &n, d))
            continue;
        for (uint32_t i = 0; i < n; i++) {
            cps_words w = {.ndim = (int)c[i].ndim, .dim = c[i].dim, .size = c[i].size,
                           .dtype = c[i].dtype ? c[i].dtype : CPS_DT_BF16,
                           .nattr = (int)c[i].nattr, .attr = c[i].attr, .text = c[i].text};
            cps_instance inst;
            cps_candidate cand;
            if (!cps_dsl_make(s, a, op, &w, cps_target_find("trn2"), 1, &inst, d))
                continue;
            cps_dsl_candidate(s, a, l, &inst, NULL, 0, &cand, d);
            cps_module *m = cps_module_new(a, "mutant");
            if (cps_dsl_body(s, m, op, &inst, true, d))
                CHECK(cps_ir_verify(m, d));
        }
    }
    cps_arena_destroy(a);
}

static void
test_mutations(void)
{
    cps_rng r;
    cps_rng_init(&r, 1, 0);
    cps_arena *a = cps_arena_create();
    dsl_files files = {a};
    enum { SOURCES = cps_countof(dsl_sources) - 1, ROUNDS = 2000 };
    const char *text[SOURCES];
    size_t n[SOURCES];
    for (size_t i = 0; i < SOURCES; i++)
        CHECK(dsl_read(&files, cps_arena_printf(a, "x/%s.cps", dsl_sources[i]), &text[i], &n[i]));
    unsigned good = 0, bad = 0, points = 0;
    for (unsigned k = 0; k < ROUNDS; k++) {
        size_t s = k % SOURCES, cap = n[s] + 1024;
        char *copy = malloc(cap + 1);
        memcpy(copy, text[s], n[s]);
        size_t m = mutate(&r, copy, n[s], cap);
        copy[m] = 0;
        cps_diags *d = cps_diags_create();
        cps_dsl_set *set = cps_dsl_set_create(d, NULL, NULL);
        cps_dsl_module *mod = cps_dsl_load_text(set, "mutant.cps", copy, m);
        if (cps_dsl_set_check(set))
            use_mutant(set, d);
        cps_buf b = {0};
        cps_diags_render(d, &b, false);
        bad += cps_diags_errors(d) > 0;
        parsed p = parse("mutant", copy, m, false);
        good += p.ok;
        points += p.ok && fixed_point(&p);
        CHECK(mod != NULL);
        drop(&p);
        cps_buf_fini(&b);
        cps_dsl_set_destroy(set);
        cps_diags_destroy(d);
        free(copy);
    }
    CHECK(good > 20 && bad > 1000); // the mutations do both
    CHECK_INT(points, good);
    cps_arena_destroy(a);
}

// Deep and long inputs end in a diagnostic or a tree, not in the C stack.
static void
test_depth(void)
{
    static const struct {
        const char *open, *mid, *close;
        int n;
        bool ok;
    } rows[] = {
        {"(", "1", ")", 300, true},      {"(", "1", ")", 100000, false},
        {"-", "1", "", 900, true},       {"-", "1", "", 5000, false},
        {"[", "1", "]", 50000, false},   {"f(", "1", ")", 3000, false},
        {"1 + ", "1", "", 900, true},    {"1 + ", "1", "", 100000, false},
        {"1 ? 1 : ", "1", "", 400, true}, {"", "1", "'", 900, true},
        {"", "1", "'", 100000, false},
    };
    for (size_t i = 0; i < cps_countof(rows); i++) {
        cps_buf b = {0};
        cps_buf_puts(&b, "const X = ");
        for (int k = 0; k < rows[i].n; k++)
            cps_buf_puts(&b, rows[i].open);
        cps_buf_puts(&b, rows[i].mid);
        for (int k = 0; k < rows[i].n; k++)
            cps_buf_puts(&b, rows[i].close);
        cps_buf_puts(&b, ";");
        parsed p = parse("deep", b.data, b.n, false);
        CHECK_INT(p.ok, rows[i].ok);
        if (p.ok)
            CHECK(fixed_point(&p));
        else
            CHECK_INT(cps_diags_code(p.diags, 0), CPS_E2105);
        drop(&p);
        cps_buf_fini(&b);
    }
    cps_buf b = {0};
    cps_buf_puts(&b, "fn f() ");
    for (int k = 0; k < 5000; k++)
        cps_buf_puts(&b, "{ if (true) ");
    parsed p = parse("deep", b.data, b.n, false);
    CHECK(!p.ok);
    drop(&p);
    cps_buf_fini(&b);
}

int
main(void)
{
    test_sources();
    test_expressions();
    test_tree();
    test_depth();
    test_mutations();
    return CHECK_DONE();
}
