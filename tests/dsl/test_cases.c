/* Golden cases of the language: tests/dsl/cases/NAME.txt holds blocks
 *     ## title
 *     source
 *     ---
 *     what must come out: "= value" of `fn main()` when there is one, then the diagnostics
 * compared byte for byte, carets included. A source may say what to do with it:
 *     //@ body OP M=2 K=3 dtype=bf16 with=bias act=gelu   the graph of the operator's body
 *     //@ call OP ...                                     the same, calls kept
 *     //@ leaf NAME M=2 ... param.KB=4 on=trn1            admitted or refused, costs, parameters
 *     //@ cases NAME                                      the leaf's test shapes
 * With CPS_BLESS set the files are rewritten instead. */
#include "frontend/dsl/body.h"
#include "tests/check.h"
#include "tests/dsl/dsl.h"

#include <stdlib.h>

static void
run_main(cps_dsl_set *s, cps_dsl_module *m, cps_diags *d, cps_arena *a, cps_buf *out)
{
    cps_sym sym = cps_sym_find(s->syms, "main");
    const cps_dsl_def *def = sym ? cps_dsl_lookup(m, sym) : NULL;
    if (!def || def->item->kind != CPS_IT_FN)
        return;
    cps_eval_config c = {.arena = a, .diags = d, .set = s, .module = m,
                         .target = cps_target_find("trn2"), .cores = 2, .core = 1};
    cps_eval ev;
    cps_cv v;
    cps_ast_call at = {.head = {.kind = CPS_EX_CALL, .span = CPS_NOSPAN}};
    cps_eval_init(&ev, &c);
    if (cps_eval_fn(&ev, def, &at, NULL, 0, &v))
        cps_buf_printf(out, "= %s\n", cps_cv_text(a, v));
}

/* ---- directives ---- */

typedef struct words {
    int n;
    const char *w[32];
} words;

static words
split(cps_arena *a, const char *line, size_t n)
{
    words w = {0};
    char *s = cps_arena_strndup(a, line, n), *save = NULL;
    for (char *p = strtok_r(s, " ", &save); p && w.n < 32; p = strtok_r(NULL, " ", &save))
        w.w[w.n++] = p;
    return w;
}

typedef struct request {
    cps_words r;
    const cps_target *target;
    int cores;
    const char *dim[16], *with[8], *attr[16], *text[16];
    int64_t size[16];
    cps_attr param[8];
    uint16_t nparam;
} request;

static bool
is_dim(const cps_ast_op *op, const char *name)
{
    for (uint32_t i = 0; i < op->nattr; i++)
        if (cps_streq(op->attr[i].name.text, name))
            return false;
    return name[0] >= 'A' && name[0] <= 'z' && name[0] != 't';
}

static void
read_request(cps_arena *a, const cps_ast_op *op, const words *w, request *q)
{
    memset(q, 0, sizeof *q);
    q->r = (cps_words){.dim = q->dim, .size = q->size, .dtype = CPS_DT_FP32, .with = q->with,
                       .attr = q->attr, .text = q->text};
    q->target = cps_target_find("trn2");
    q->cores = 1;
    for (int i = 2; i < w->n; i++) {
        const char *eq = strchr(w->w[i], '=');
        const char *key = cps_arena_strndup(a, w->w[i], (size_t)(eq - w->w[i]));
        if (cps_streq(key, "dtype")) {
            q->r.dtype = cps_dtype_parse(eq + 1, strlen(eq + 1));
        } else if (cps_streq(key, "with")) {
            q->with[q->r.nwith++] = eq + 1;
        } else if (cps_streq(key, "cores")) {
            q->cores = atoi(eq + 1);
        } else if (cps_streq(key, "on")) {
            q->target = cps_target_find(eq + 1);
        } else if (strncmp(key, "param.", 6) == 0) {
            q->param[q->nparam++] = cps_a_int(key + 6, atoi(eq + 1));
        } else if (is_dim(op, key)) {
            q->dim[q->r.ndim] = key;
            q->size[q->r.ndim++] = atoll(eq + 1);
        } else {
            q->attr[q->r.nattr] = key;
            q->text[q->r.nattr++] = eq + 1;
        }
    }
}

static void
show_candidate(const cps_candidate *c, cps_buf *out)
{
    cps_buf_printf(out, "%s: %s", c->leaf, c->ok ? "admitted" : "refused");
    for (int i = 0; i < c->nconfig; i++)
        cps_buf_printf(out, " %s=%lld", c->config[i].key, (long long)c->config[i].i);
    if (c->ok) {
        cps_buf_printf(out, "\n  rtol %g atol %g priority %lld bound %s", c->rtol, c->atol,
                       (long long)c->priority, c->bound);
        for (int e = 0; e < CPS_ENGINES; e++)
            if (c->costs.cycles[e] > 0)
                cps_buf_printf(out, " %s %g", cps_engine_name((cps_engine)e), c->costs.cycles[e]);
        cps_buf_printf(out, " hbm %g", c->costs.hbm);
    }
    cps_buf_puts(out, "\n");
    for (int i = 0; i < c->nreasons; i++)
        cps_buf_printf(out, "  %s\n", c->reason[i]);
}

static void
show_cases(cps_dsl_set *s, cps_arena *a, const cps_dsl_leaf *leaf, cps_diags *d, cps_buf *out)
{
    cps_dsl_case *c;
    uint32_t n;
    if (!cps_dsl_cases(s, a, leaf, &c, &n, d))
        return;
    for (uint32_t i = 0; i < n; i++) {
        for (uint32_t k = 0; k < c[i].ndim; k++)
            cps_buf_printf(out, "%s=%lld ", c[i].dim[k], (long long)c[i].size[k]);
        for (uint32_t k = 0; k < c[i].nattr; k++)
            cps_buf_printf(out, "%s=%s ", c[i].attr[k], c[i].text[k]);
        cps_buf_printf(out, "dtype %s cores %d with \"%s\"\n",
                       c[i].dtype ? cps_dtype_name(c[i].dtype) : "-", c[i].cores, c[i].with);
    }
}

static void
run_directive(cps_dsl_set *s, cps_diags *d, cps_arena *a, const words *w, cps_buf *out)
{
    bool leafy = cps_streq(w->w[0], "leaf") || cps_streq(w->w[0], "cases");
    const cps_dsl_leaf *leaf = leafy ? cps_dsl_find_leaf(s, w->w[1]) : NULL;
    const cps_dsl_op *op = cps_dsl_need_op(s, leaf ? leaf->ast->op.text : w->w[1]);
    if (!op || (leafy && !leaf)) {
        cps_buf_printf(out, "no `%s`\n", w->w[1]);
        return;
    }
    if (cps_streq(w->w[0], "cases")) {
        show_cases(s, a, leaf, d, out);
        return;
    }
    request q;
    cps_instance i;
    read_request(a, op->ast, w, &q);
    if (!cps_dsl_make(s, a, op, &q.r, q.target, q.cores, &i, d))
        return;
    if (leaf) {
        cps_candidate c;
        if (cps_dsl_candidate(s, a, leaf, &i, q.param, q.nparam, &c, d))
            show_candidate(&c, out);
        return;
    }
    cps_module *m = cps_module_new(a, "t");
    cps_func *f = cps_dsl_body(s, m, op, &i, cps_streq(w->w[0], "body"), d);
    if (f) {
        CHECK(cps_ir_verify(m, d));
        cps_ir_print_opts(m, 0, out);
    }
}

static void
run_directives(cps_dsl_set *s, cps_diags *d, cps_arena *a, const char *text, size_t n, cps_buf *out)
{
    for (const char *p = text, *end = text + n; p < end;) {
        const char *nl = memchr(p, '\n', (size_t)(end - p));
        nl = nl ? nl : end;
        if (nl - p > 4 && strncmp(p, "//@ ", 4) == 0) {
            words w = split(a, p + 4, (size_t)(nl - p - 4));
            run_directive(s, d, a, &w, out);
        }
        p = nl + 1;
    }
}

static void
run_case(const char *source, size_t n, cps_buf *out)
{
    cps_arena *a = cps_arena_create();
    dsl_files files = {a};
    cps_diags *d = cps_diags_create();
    cps_dsl_set *s = cps_dsl_set_create(d, dsl_read, &files);
    s->find = dsl_find;
    cps_dsl_module *m = cps_dsl_load_text(s, "t.cps", source, n);
    if (cps_dsl_set_check(s)) {
        run_main(s, m, d, a, out);
        run_directives(s, d, a, source, n, out);
    }
    cps_diags_render(d, out, false);
    cps_dsl_set_destroy(s);
    cps_diags_destroy(d);
    cps_arena_destroy(a);
}

// Runs every block of the file; returns how many there were.
static int
run_file(const char *path)
{
    cps_file f;
    if (!cps_file_open(path, true, &f)) {
        CHECK(!"cannot open the cases");
        return 0;
    }
    int blocks = 0;
    cps_buf blessed = {0};
    const char *p = (const char *)f.data, *end = p + f.n;
    while (p < end && strncmp(p, "## ", 3) == 0) {
        const char *source = memchr(p, '\n', (size_t)(end - p)) + 1;
        const char *line = strstr(source, "\n---\n");
        if (!line)
            break;
        const char *want = line + 5, *stop = strstr(want - 1, "\n## ");
        stop = stop ? stop + 1 : end;
        cps_buf got = {0};
        cps_buf_puts(&got, "");
        run_case(source, (size_t)(line + 1 - source), &got);
        char *expected = malloc((size_t)(stop - want) + 1);
        memcpy(expected, want, (size_t)(stop - want));
        expected[stop - want] = 0;
        if (getenv("CPS_BLESS")) {
            cps_buf_put(&blessed, p, (size_t)(want - p));
            cps_buf_put(&blessed, got.data, got.n);
        } else {
            if (strcmp(got.n ? got.data : "", expected) != 0)
                fprintf(stderr, "%s: %.*s", path, (int)(source - p), p);
            CHECK_STR(got.n ? got.data : "", expected);
        }
        free(expected);
        cps_buf_fini(&got);
        blocks++;
        p = stop;
    }
    CHECK(p == end);
    if (getenv("CPS_BLESS"))
        CHECK(cps_file_write(path, blessed.data, blessed.n));
    cps_buf_fini(&blessed);
    cps_file_close(&f);
    return blocks;
}

int
main(void)
{
    static const char *const files[] = {"syntax", "names", "eval", "call", "leaf", "body"};
    for (size_t i = 0; i < cps_countof(files); i++) {
        char path[128];
        snprintf(path, sizeof path, "tests/dsl/cases/%s.txt", files[i]);
        CHECK(run_file(path) > 5);
    }
    return CHECK_DONE();
}
