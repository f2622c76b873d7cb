/* host_run MODEL.onnx|MODEL.cir DIR [NAME=N ...]: compiles a model to host code and runs it on
 * DIR/in_<i>.npy, writing DIR/out_<i>.npy. Processor times of compilation and of the
 * fastest of several runs go to standard output. HOST_OBJECT=FILE keeps the object, for a
 * disassembler. */
#include "frontend/onnx/onnx.h"
#include "ir/pass.h"
#include "tests/host/rig.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

// Processor time of this thread: a loaded machine does not count.
static double
now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

static int
fail(cps_diags *d, const char *what)
{
    cps_buf b = {0};
    cps_diags_render(d, &b, false);
    fprintf(stderr, "host_run: %s\n%s", what, b.data ? b.data : "");
    cps_buf_fini(&b);
    return 1;
}

static cps_module *
read_model(cps_arena *a, const char *path, int ndims, char **dims, cps_onnx_files *files,
           cps_diags *d)
{
    cps_onnx_opts o = {
        .ndims = (unsigned)ndims, .dims = (const char *const *)dims, .files = files};
    if (cps_has_suffix(path, ".onnx"))
        return cps_onnx_import(a, path, &o, d);
    cps_file f;
    if (!cps_file_open(path, true, &f))
        return NULL;
    char *text = cps_arena_strndup(a, (const char *)f.data, f.n);
    size_t n = f.n;
    cps_file_close(&f);
    return cps_ir_parse(a, text, n, cps_diags_source(d, path, text, n), d, NULL, NULL);
}

static void *
read_input(cps_arena *a, const char *dir, uint32_t i, const cps_type *t)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/in_%u.npy", dir, i);
    cps_file f;
    cps_npy n;
    const char *why = "cannot be read";
    size_t at;
    void *p = cps_arena_alloc(a, (size_t)cps_type_bytes(t) + 1);
    if (!cps_file_open(path, false, &f))
        return fprintf(stderr, "%s: %s\n", path, why), NULL;
    bool ok = cps_npy_parse(f.data, f.n, &n, &why) && (int64_t)n.count == cps_type_count(t) &&
              cps_npy_convert(&n, t->dtype, p, &at, &why);
    cps_file_close(&f);
    if (!ok)
        fprintf(stderr, "%s: %s\n", path, why);
    return ok ? p : NULL;
}

int
main(int argc, char **argv)
{
    if (argc < 3)
        return fprintf(stderr, "usage: host_run MODEL DIR [NAME=N ...]\n"), 2;
    cps_arena *a = cps_arena_create();
    cps_diags *d = cps_diags_create();
    cps_onnx_files files = {0};
    cps_module *m = read_model(a, argv[1], argc - 3, argv + 3, &files, d);
    if (!m || !cps_ir_fold(m, d) || !cps_ir_cse(m, d) || !cps_ir_dce(m, d))
        return fail(d, "the model cannot be read");
    cps_func *f = m->funcs.data[0];
    const char *level = getenv("HOST_O");
    rig r;
    double t0 = now_ms();
    if (!rig_open(&r, a, m, f, level ? atoi(level) : 3, getenv("HOST_CPU"), 4096, d))
        return fail(d, "no host code");
    printf("compile %.1f ms, %zu bytes of object, %lld of scratch\n", now_ms() - t0,
           r.code.object.n, (long long)r.scratch);
    if (getenv("HOST_OBJECT"))
        cps_file_write(getenv("HOST_OBJECT"), r.code.object.data, r.code.object.n);
    const void **in = cps_new_array(a, const void *, f->inputs.n + 1);
    void **out = cps_new_array(a, void *, f->outputs.n + 1);
    for (uint32_t i = 0; i < f->inputs.n; i++)
        if (!(in[i] = read_input(a, argv[2], i, &f->vals.data[f->inputs.data[i]].type)))
            return 1;
    for (uint32_t i = 0; i < f->outputs.n; i++)
        out[i] = cps_arena_alloc(
            a, (size_t)cps_type_bytes(&f->vals.data[f->outputs.data[i]].type) + 1);
    if (!rig_run(&r, f, in, out))
        return fail(d, "the code writes outside its buffers, or fails");
    double best = 1e30;
    void *scratch = aligned_alloc(64, (size_t)cps_round_up(r.scratch + 64, 64));
    memset(scratch, 0, (size_t)r.scratch);
    int runs = getenv("HOST_RUNS") ? atoi(getenv("HOST_RUNS")) : 5;
    for (int k = 0; k < runs; k++) {
        t0 = now_ms();
        r.run(r.weights, in, out, scratch);
        best = CPS_MIN(best, now_ms() - t0);
    }
    printf("run %.3f ms\n", best);
    for (uint32_t i = 0; i < f->outputs.n; i++) {
        const cps_type *t = &f->vals.data[f->outputs.data[i]].type;
        char path[4096];
        cps_buf b = {0};
        snprintf(path, sizeof path, "%s/out_%u.npy", argv[2], i);
        cps_npy_format(&b, t->dtype, t->rank, t->dim, out[i]);
        if (!cps_file_write(path, b.data, b.n))
            return fail(d, "an output cannot be written");
        cps_buf_fini(&b);
    }
    free(scratch);
    rig_close(&r);
    cps_onnx_close(&files);
    cps_diags_destroy(d);
    cps_arena_destroy(a);
    return 0;
}
