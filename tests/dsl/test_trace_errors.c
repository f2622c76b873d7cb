/* Diagnostics of the tracer as they are rendered: code, caret, notes and way out. Cases stand
 * in tests/dsl/cases/trace_errors.txt: `--- TARGET [operands]`, a leaf body, `+++`, what is
 * reported. With --print the file is written anew from what is reported now, to be read before
 * it is kept. */
#include "runtime/base/file.h"
#include "tests/dsl/trace_run.h"

static const char usual[] = "bf16[256,384] bf16[384,512] bf16[512] i32[16]";

static const char *
run(const char *target, const char *operands, const char *body, cps_arena *keep)
{
    cps_buf src = {0}, out = {0};
    cps_buf_puts(&src, "op k(x[M, K], w[K, N], v[N], idx[B]: i32) -> y[M, N] { y = x @ w; }\n"
                       "enum Act { none = 0, relu = 1, odd = 2 }\n"
                       "leaf k_leaf for k on trn1, trn2, trn3 {\n    cases (M: 1);\n");
    cps_buf_puts(&src, body);
    cps_buf_puts(&src, "}\n");
    trace_run r = trace_open("k.cps", src.data, NULL, NULL, NULL);
    trace_leaf(&r, NULL, target, operands, 1, 20000);
    cps_diags_render(r.d, &out, false);
    const char *s = cps_arena_strdup(keep, out.n ? out.data
                                           : r.f ? "no error\n"
                                                 : "nothing said\n");
    trace_close(&r);
    cps_buf_fini(&src);
    cps_buf_fini(&out);
    return s;
}

// The text up to a line that begins with `mark`; *s moves behind that line (or to the end).
static const char *
until(cps_arena *a, const char **s, const char *mark)
{
    const char *b = *s, *e = b;
    while (*e && strncmp(e, mark, strlen(mark)) != 0) {
        const char *nl = strchr(e, '\n');
        e = nl ? nl + 1 : e + strlen(e);
    }
    *s = e;
    return cps_arena_strndup(a, b, (size_t)(e - b));
}

static const char *
line(cps_arena *a, const char **s)
{
    const char *nl = strchr(*s, '\n'), *b = *s;
    size_t n = nl ? (size_t)(nl - b) : strlen(b);
    *s = nl ? nl + 1 : b + n;
    return cps_arena_strndup(a, b, n);
}

int
main(int argc, char **argv)
{
    static const char path[] = "tests/dsl/cases/trace_errors.txt";
    bool print = argc > 1 && !strcmp(argv[1], "--print");
    cps_arena *a = cps_arena_create();
    cps_file f;
    cps_buf out = {0};

    CHECK(cps_file_open(path, true, &f));
    const char *s = (const char *)f.data;
    while (*s) {
        const char *head = line(a, &s);
        if (strncmp(head, "--- ", 4) != 0) {
            cps_buf_printf(&out, "%s\n", head); // words between cases
            continue;
        }
        char target[8] = {0};
        sscanf(head + 4, "%7s", target);
        const char *ops = strchr(head + 4, ' ');
        const char *body = until(a, &s, "+++");
        line(a, &s);
        const char *want = until(a, &s, "--- ");
        const char *got = run(target, ops ? ops + 1 : usual, body, a);
        if (print)
            cps_buf_printf(&out, "%s\n%s+++\n%s", head, body, got);
        else
            CHECK_STR(got, want);
    }
    cps_file_close(&f);
    if (print)
        CHECK(cps_file_write(path, out.data, out.n));
    cps_buf_fini(&out);
    cps_arena_destroy(a);
    return CHECK_DONE();
}
