/* Tile programs as text: what shipped leaves and small bodies become, instruction by
 * instruction. Cases stand in tests/dsl/cases/trace_golden.txt: `--- FILE LEAF TARGET OPERANDS`
 * and the program, or `--- - - TARGET OPERANDS`, a leaf body, `+++` and the program. Every
 * program is also parsed back. With --print the file is written anew, to be read before it is
 * kept. */
#include "runtime/base/file.h"
#include "tests/dsl/trace_run.h"

static bool
read_kernels(void *user, const char *path, const char **text, size_t *n)
{
    cps_arena *a = user;
    cps_file f;
    if (!cps_file_open(cps_path_join(a, "kernels", path), true, &f))
        return false;
    *text = cps_arena_strndup(a, (const char *)f.data, f.n);
    *n = f.n;
    cps_file_close(&f);
    return true;
}

static void
find_op(void *user, cps_dsl_set *s, const char *op)
{
    static const char *const files[] = {"reference/matmul.cps", "reference/norm.cps"};
    (void)user, (void)op;
    for (unsigned i = 0; i < cps_countof(files); i++)
        cps_dsl_load(s, files[i]);
}

static const char *
program(const char *file, const char *leaf, const char *target, const char *operands,
        const char *body, cps_arena *keep)
{
    cps_buf src = {0}, out = {0}, again = {0};
    bool inlined = !strcmp(file, "-");
    trace_run r;

    if (inlined) {
        cps_buf_puts(&src,
                     "op k(x[M, K], w[K, N], v[N], idx[B]: i32) -> y[M, N] { y = x @ w; }\n"
                     "leaf k_leaf for k on trn1, trn2, trn3 {\n    cases (M: 1);\n");
        cps_buf_puts(&src, body);
        cps_buf_puts(&src, "}\n");
        r = trace_open("k.cps", src.data, NULL, NULL, NULL);
    } else {
        r = trace_open(file, NULL, read_kernels, find_op, keep);
    }
    trace_leaf(&r, inlined ? NULL : leaf, target, operands, 1, 0);
    if (r.f) {
        cps_tile_print(r.f, false, &out);
        cps_tfunc *f = cps_tile_parse(r.arena, out.data, out.n, 0, r.d);
        CHECK(f != NULL);
        if (f)
            cps_tile_print(f, false, &again);
        CHECK_STR(again.data, out.data);
    } else {
        cps_diags_render(r.d, &out, false);
    }
    const char *s = cps_arena_strdup(keep, out.data ? out.data : "");
    trace_close(&r);
    cps_buf_fini(&src);
    cps_buf_fini(&out);
    cps_buf_fini(&again);
    return s;
}

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

int
main(int argc, char **argv)
{
    static const char path[] = "tests/dsl/cases/trace_golden.txt";
    bool print = argc > 1 && !strcmp(argv[1], "--print");
    cps_arena *a = cps_arena_create();
    cps_file f;
    cps_buf out = {0};

    CHECK(cps_file_open(path, true, &f));
    const char *s = (const char *)f.data;
    while (*s) {
        const char *nl = strchr(s, '\n');
        const char *head = cps_arena_strndup(a, s, (size_t)(nl - s)), *body = "";
        char file[64], leaf[64], target[8];
        int used = 0;
        s = nl + 1;
        CHECK(sscanf(head, "--- %63s %63s %7s %n", file, leaf, target, &used) == 3);
        if (!strcmp(file, "-")) {
            body = until(a, &s, "+++");
            s = strchr(s, '\n') ? strchr(s, '\n') + 1 : s + strlen(s);
        }
        const char *want = until(a, &s, "--- ");
        const char *got = program(file, leaf, target, head + used, body, a);
        if (print)
            cps_buf_printf(&out, "%s\n%s%s%s", head, body, *body ? "+++\n" : "", got);
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
