/* Golden cases of the language: tests/dsl/cases/NAME.txt holds blocks
 *     ## title
 *     source
 *     ---
 *     what must come out: "= value" of `fn main()` when there is one, then the diagnostics
 * compared byte for byte, carets included. With CPS_BLESS set the files are rewritten instead. */
#include "frontend/dsl/eval.h"
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

static void
run_case(const char *source, size_t n, cps_buf *out)
{
    cps_arena *a = cps_arena_create();
    dsl_files files = {a};
    cps_diags *d = cps_diags_create();
    cps_dsl_set *s = cps_dsl_set_create(d, dsl_read, &files);
    s->find = dsl_find;
    cps_dsl_module *m = cps_dsl_load_text(s, "t.cps", source, n);
    if (cps_dsl_set_check(s))
        run_main(s, m, d, a, out);
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
    static const char *const files[] = {"syntax", "names", "eval"};
    for (size_t i = 0; i < cps_countof(files); i++) {
        char path[128];
        snprintf(path, sizeof path, "tests/dsl/cases/%s.txt", files[i]);
        CHECK(run_file(path) > 5);
    }
    return CHECK_DONE();
}
