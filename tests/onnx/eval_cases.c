/* The importer and the reference evaluator as a filter, for tests/onnx/ops.py.
 *
 * Reads names of folders from standard input, one a line. Each holds model.onnx, in_<i>.npy by
 * order of the graph's inputs, and perhaps dims.txt with --dim values, one a line. Writes
 * out_<i>.npy (fp32 as it is, integers as they are) and, when something was reported, err.txt.
 */
#include "frontend/onnx/onnx.h"
#include "runtime/base/file.h"

#include <stdio.h>
#include <string.h>

#define MAX_DIMS 16

static bool
read_input(cps_arena *a, const char *folder, uint32_t i, const cps_type *t, cps_tensor *out,
           cps_diags *d)
{
    const char *path = cps_arena_printf(a, "%s/in_%u.npy", folder, i), *why = "cannot be read";
    cps_file f;
    cps_npy n;
    size_t at;
    if (!cps_file_open(path, false, &f) || !cps_npy_parse(f.data, f.n, &n, &why)) {
        cps_error(d, CPS_E1005, CPS_NOSPAN, "'%s': %s", path, why);
        return false;
    }
    void *data = cps_arena_alloc(a, (size_t)cps_type_bytes(t) + 1);
    bool ok =
        (int64_t)n.count == cps_type_count(t) && cps_npy_convert(&n, t->dtype, data, &at, &why);
    if (ok)
        *out = cps_tensor_from(a, t, data);
    else
        cps_error(d, CPS_E1006, CPS_NOSPAN, "'%s' does not fit", path);
    cps_file_close(&f);
    return ok;
}

static bool
run(cps_arena *a, const char *folder, cps_onnx_files *files, cps_diags *d)
{
    const char *dims[MAX_DIMS];
    cps_onnx_opts o = {.dims = dims, .files = files};
    cps_file f;
    if (cps_file_open(cps_arena_printf(a, "%s/dims.txt", folder), true, &f)) {
        char *text = cps_arena_strndup(a, (const char *)f.data, f.n), *save = NULL;
        cps_file_close(&f);
        for (char *s = strtok_r(text, "\n", &save); s && o.ndims < MAX_DIMS;
             s = strtok_r(NULL, "\n", &save))
            dims[o.ndims++] = s;
    }
    cps_module *m = cps_onnx_import(a, cps_arena_printf(a, "%s/model.onnx", folder), &o, d);
    if (!m || !cps_ir_verify(m, d))
        return false;
    const cps_func *fn = m->funcs.data[0];
    cps_tensor *in = cps_new_array(a, cps_tensor, fn->inputs.n + 1);
    cps_tensor *out = cps_new_array(a, cps_tensor, fn->outputs.n + 1);
    for (uint32_t i = 0; i < fn->inputs.n; i++)
        if (!read_input(a, folder, i, &fn->vals.data[fn->inputs.data[i]].type, &in[i], d))
            return false;
    cps_eval_opts eo = {.threads = 1};
    if (!cps_ir_eval(a, m, fn, in, out, &eo, d))
        return false;
    for (uint32_t i = 0; i < fn->outputs.n; i++) {
        const cps_type *t = &fn->vals.data[fn->outputs.data[i]].type;
        cps_buf b = {0};
        void *data = cps_arena_alloc(a, (size_t)cps_type_bytes(t) + 1);
        cps_tensor_store(&out[i], t->dtype, data);
        if (out[i].f)
            cps_npy_format_f64(&b, t->rank, t->dim, out[i].f);
        else
            cps_npy_format(&b, t->dtype, t->rank, t->dim, data);
        bool ok = cps_file_write(cps_arena_printf(a, "%s/out_%u.npy", folder, i), b.data, b.n);
        cps_buf_fini(&b);
        if (!ok)
            return false;
    }
    return true;
}

int
main(void)
{
    char line[4096];
    int failed = 0;
    while (fgets(line, sizeof line, stdin)) {
        line[strcspn(line, "\n")] = 0;
        cps_arena *a = cps_arena_create();
        cps_diags *d = cps_diags_create();
        cps_onnx_files files = {0};
        failed += !run(a, line, &files, d);
        if (cps_diags_count(d)) {
            cps_buf b = {0};
            cps_diags_render(d, &b, false);
            cps_file_write(cps_arena_printf(a, "%s/err.txt", line), b.data, b.n);
            cps_buf_fini(&b);
        }
        cps_onnx_close(&files);
        cps_diags_destroy(d);
        cps_arena_destroy(a);
    }
    return failed ? 1 : 0;
}
