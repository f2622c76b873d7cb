/* BIR documents as input: checked and printed again (opt), or made into a kernel (compile). */
#include "frontend/cmd_bir.h"

#include "codegen/bir/bir.h"
#include "frontend/compile.h"
#include "frontend/depfile.h"
#include "runtime/base/file.h"
#include "runtime/pkg/package.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

bool
cps_is_bir(const char *path)
{
    return cps_has_suffix(path, ".bir.json") || cps_has_suffix(path, ".bir");
}

bool
cps_are_bir(const cps_cli *c)
{
    bool all = c->args.n == 1 || c->args.n == 2;
    for (uint32_t i = 0; i < c->args.n; i++)
        all = all && cps_is_bir(c->args.data[i]);
    return all;
}

static cps_bir *
read_document(cps_cli *c, const char *path, cps_file *f)
{
    if (!cps_file_open(path, true, f)) {
        cps_error(c->diags, CPS_E1001, CPS_NOSPAN, "cannot read '%s': %s", path,
                  strerror(errno));
        return NULL;
    }
    cps_cli_depends(c, path);
    uint32_t source = cps_diags_source(c->diags, path, (const char *)f->data, f->n);
    return cps_bir_read(c->arena, (const char *)f->data, f->n, source, c->diags);
}

// Ends a command whose messages may show lines of the file.
static cps_exit
finish(cps_cli *c, cps_file *f, bool ok)
{
    cps_exit code = ok ? CPS_OK : cps_cli_failed(c);
    cps_cli_flush(c);
    cps_file_close(f);
    return code;
}

cps_exit
cps_bir_opt(cps_cli *c, const char *path, const char *to)
{
    cps_file f = {0};
    cps_buf b = {0};
    cps_bir *doc = read_document(c, path, &f);
    if (doc)
        cps_bir_print(doc, &b);
    bool ok = doc && cps_cli_write(c, to, b.data, b.n) && cps_depfile_write(c, to);
    cps_buf_fini(&b);
    return finish(c, &f, ok);
}

// The facts of the kernel's target: one of the three, or the description given with --target.
static const cps_target *
target_of(cps_cli *c, const cps_kbin *k, bool *ok)
{
    const cps_target *t = cps_target_find(k->target);
    if (t && t->gen == k->gen)
        return t;
    t = cps_cli_target(c, ok);
    if (*ok && (!t || strcmp(t->name, k->target) || t->gen != k->gen)) {
        cps_error(c->diags, CPS_E8003, CPS_NOSPAN, "the document was written for '%s'",
                  k->target);
        cps_help(c->diags, "give its description with --target");
        *ok = false;
    }
    return t;
}

// Operands of one core that the core before it does not have become the package's variables.
static void
add_operands(cps_package *p, const cps_kbin *k, const cps_kbin *before)
{
    cps_arena *a = p->arena;
    for (uint32_t i = 1; i < k->vars.n; i++) {
        const cps_kvar *v = &k->vars.data[i];
        if (before && cps_kbin_var(before, v->name) != UINT32_MAX)
            continue;
        if (v->kind != CPS_VAR_INPUT && v->kind != CPS_VAR_OUTPUT && v->kind != CPS_VAR_INOUT)
            continue;
        bool in = v->kind != CPS_VAR_OUTPUT, out = v->kind != CPS_VAR_INPUT;
        cps_pvar pv = {.name = v->name,
                       .kind = in ? CPS_PV_INPUT : CPS_PV_OUTPUT,
                       .dtype = v->dtype,
                       .rank = v->rank,
                       .bytes = v->bytes};
        cps_pio io = {.name = v->name, .var = p->vars.n, .rank = v->rank};
        memcpy(pv.dim, v->dim, sizeof pv.dim);
        memcpy(io.dim, v->dim, sizeof io.dim);
        cps_vec_push(a, &p->vars, pv);
        if (in)
            cps_vec_push(a, &p->inputs, io);
        if (out)
            cps_vec_push(a, &p->outputs, io);
        cps_vec_push(a, &p->args, ((cps_parg){v->name, io.var}));
    }
}

// Variables that cross the kernel's border become the package's; its own stay inside.
static cps_package *
package_of(cps_cli *c, const cps_kbin *k, const cps_target *t)
{
    cps_arena *a = c->arena;
    cps_package *p = cps_package_new(a, k->name, k->target);
    if (t)
        p->target_digest = t->digest;
    cps_pkernel x = {.name = cps_arena_printf(a, "%s_0", k->name),
                     .leaf = k->name,
                     .op = k->name,
                     .why = "bir",
                     .instance = "",
                     .config = "",
                     .bound = "",
                     .flops = k->stats.flops,
                     .bytes = k->stats.hbm_bytes,
                     .kbin = k};
    cps_vec_push(a, &p->kernels, x);
    for (const cps_kbin *core = k; core; core = core->peer)
        add_operands(p, core, core == k ? NULL : k);
    cps_vec_push(a, &p->steps, ((cps_pstep){.kernel = 0, .nargs = p->args.n}));
    return p;
}

// The kernel of one document, or of two: the programs of both cores, in any order.
static cps_kbin *
kernel_of(cps_cli *c, cps_file f[2])
{
    cps_kbin *k[2] = {NULL, NULL};
    uint32_t n = c->args.n;
    for (uint32_t i = 0; i < n; i++) {
        cps_bir *doc = read_document(c, c->args.data[i], &f[i]);
        k[i] = doc ? cps_bir_kernel(c->arena, doc, c->diags) : NULL;
        if (!k[i])
            return NULL;
    }
    if (n == 2 && k[0]->core > k[1]->core) {
        cps_kbin *x = k[0];
        k[0] = k[1];
        k[1] = x;
    }
    bool pair = n == 2 && k[0]->core == 0 && k[1]->core == 1 && k[0]->cores == 2 && k[1]->cores == 2 &&
                k[0]->gen == k[1]->gen && !strcmp(k[0]->target, k[1]->target) && !strcmp(k[0]->name, k[1]->name);
    if (n == 1 && k[0]->cores == 1)
        return k[0];
    if (pair) {
        k[0]->peer = k[1];
        return k[0];
    }
    cps_error(c->diags, CPS_E1105, CPS_NOSPAN, n == 1 ? "'%s' is core %d's program of a kernel for %d"
                                                      : "'%s' is core %d's program of a kernel for %d, and the other is not its peer's",
              c->args.data[0], k[0]->core, k[0]->cores);
    cps_help(c->diags, "give the documents of both cores: copse compile core0/kernel.bir.json core1/kernel.bir.json -o DIR");
    return NULL;
}

cps_exit
cps_bir_compile(cps_cli *c, const char *dir)
{
    const char *emit =
        cps_cli_has(c, CPS_OPT_EMIT) ? cps_cli_word(c, CPS_OPT_EMIT, "", "asm bir") : NULL;
    if (cps_cli_has(c, CPS_OPT_EMIT) && !emit)
        return CPS_USAGE;
    if (emit && !strcmp(emit, "bir") && c->args.n > 1) {
        cps_error(c->diags, CPS_E1105, CPS_NOSPAN, "'--emit bir' prints one document again");
        return CPS_USAGE;
    }
    if (emit && !strcmp(emit, "bir"))
        return cps_bir_opt(c, c->args.data[0], dir ? dir : "-");
    cps_file f[2] = {{0}};
    double t0 = cps_now_ms();
    cps_kbin *k = kernel_of(c, f);
    bool ok = k != NULL;
    const cps_target *t = ok ? target_of(c, k, &ok) : NULL;
    // Nobody vouches for a document: what its kernel does is proved as for a fresh one.
    bool leaves;
    ok = ok && cps_compile_prove(c, t, k, false, &leaves);
    if (ok && emit) {
        cps_buf b = {0};
        cps_kbin_listing(k, &b);
        ok = cps_cli_write(c, dir ? dir : "-", b.data, b.n) && cps_depfile_write(c, dir);
        cps_buf_fini(&b);
    } else if (ok) {
        ok = cps_package_write(package_of(c, k, t), dir, c->diags) &&
             cps_depfile_write(c, cps_path_join(c->arena, dir, "manifest.json"));
        if (ok)
            fprintf(stderr, "%s: %s for %s, made of BIR in %.2f ms\n", dir, k->name, k->target,
                    cps_now_ms() - t0);
    }
    cps_exit code = finish(c, &f[0], ok);
    cps_file_close(&f[1]);
    return code;
}
