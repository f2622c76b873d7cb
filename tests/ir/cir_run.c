/* cir_run FILE [fp32] [threads N]: evaluates every function of a graph text that has no inputs
 * and prints, a line each, "function output v v v..." with exact hexadecimal floats. What the
 * NumPy oracle (oracle.py) reads. Functions whose evaluation fails print "function error CODE".
 */
#include "ir/ir.h"
#include "runtime/base/file.h"

#include <stdio.h>
#include <stdlib.h>

static void
show(const char *name, int output, const cps_tensor *t)
{
    int64_t n = cps_type_count(&t->type);
    printf("%s %d", name, output);
    for (int64_t i = 0; i < n; i++) {
        if (t->f)
            printf(" %a", t->f[i]);
        else if (t->type.dtype == CPS_DT_U64)
            printf(" %llu", (unsigned long long)t->i[i]);
        else
            printf(" %lld", (long long)t->i[i]);
    }
    putchar('\n');
}

int
main(int argc, char **argv)
{
    cps_eval_opts o = {.threads = 2};
    cps_file file;
    if (argc < 2 || !cps_file_open(argv[1], true, &file)) {
        fprintf(stderr, "usage: cir_run FILE [fp32]\n");
        return 2;
    }
    o.fp32 = argc > 2 && strcmp(argv[2], "fp32") == 0;
    cps_arena *a = cps_arena_create();
    cps_diags *d = cps_diags_create();
    uint32_t id = cps_diags_source(d, argv[1], (const char *)file.data, file.n);
    cps_module *m = cps_ir_parse(a, (const char *)file.data, file.n, id, d, NULL, NULL);
    int rc = m ? 0 : 1;
    for (uint32_t i = 0; m && i < m->funcs.n; i++) {
        const cps_func *f = m->funcs.data[i];
        cps_tensor out[16];
        unsigned before = cps_diags_count(d);
        if (f->outputs.n > 16 || f->inputs.n) {
            fprintf(stderr, "%s: inputs, or more than 16 outputs\n", f->name);
            rc = 1;
        } else if (!cps_ir_eval(a, m, f, NULL, out, &o, d)) {
            printf("%s error %s\n", f->name, cps_diag_rows[cps_diags_code(d, before)].name);
        } else {
            for (uint32_t k = 0; k < f->outputs.n; k++)
                show(f->name, (int)k, &out[k]);
        }
    }
    if (!m) {
        cps_buf b = {0};
        cps_diags_render(d, &b, false);
        fputs(b.data, stderr);
        cps_buf_fini(&b);
    }
    cps_diags_destroy(d);
    cps_arena_destroy(a);
    cps_file_close(&file);
    return rc;
}
