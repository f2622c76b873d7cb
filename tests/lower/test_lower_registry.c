/* Lowering against the shipped registry: the small models (and MODEL NAME=N... when given)
 * through all passes, each pass checked by evaluation, operators by their bodies in
 * kernels/reference. Every model must end in decided calls for every NeuronCore target, or in a
 * typed refusal that
 * `--expect-all` turns into a failure. */
#include "codegen/isa/target.h"
#include "frontend/dsl/registry.h"
#include "frontend/onnx/onnx.h"
#include "lower/lower.h"
#include "runtime/base/rng.h"
#include "tests/check.h"

#include <math.h>
#include <stdlib.h>

typedef struct run {
    cps_arena *a;
    cps_diags *d;
    cps_onnx_files files;
    cps_module *m;
    cps_registry *reg;
    cps_lower_opts o;
    cps_tensor *in, *want;
    double tol;
} run;

static bool
eval(run *r, cps_tensor *out)
{
    const cps_func *f = r->m->funcs.data[0];
    cps_eval_opts e = {.threads = 1, .call = cps_lower_eval, .user = &r->o};
    for (uint32_t i = 0; i < f->inputs.n; i++)
        r->in[i].type.dtype = f->vals.data[f->inputs.data[i]].type.dtype;
    return cps_ir_eval(r->a, r->m, f, r->in, out, &e, r->d);
}

static void
inputs(run *r)
{
    const cps_func *f = r->m->funcs.data[0];
    r->in = cps_new_array(r->a, cps_tensor, f->inputs.n + 1);
    r->want = cps_new_array(r->a, cps_tensor, f->outputs.n + 1);
    for (uint32_t i = 0; i < f->inputs.n; i++) {
        const cps_type *t = &f->vals.data[f->inputs.data[i]].type;
        size_t n = (size_t)cps_type_count(t);
        cps_rng g;
        cps_rng_init(&g, 5, i);
        r->in[i].type = *t;
        if (cps_dtype_is_float(t->dtype))
            r->in[i].f = cps_new_array(r->a, double, n + 1);
        else
            r->in[i].i = cps_new_array(r->a, int64_t, n + 1);
        for (size_t k = 0; k < n; k++)
            if (r->in[i].f)
                r->in[i].f[k] = cps_round_f64(t->dtype, cps_rng_normal(&g));
            else
                r->in[i].i[k] = k % 5 ? (int64_t)cps_rng_below(&g, 2) : 1;
    }
}

static bool
same(const cps_tensor *got, const cps_tensor *want, double tol)
{
    int64_t n = cps_type_count(&want->type);
    double top = 0, worst = 0;
    for (int64_t i = 0; i < n; i++)
        if (want->i) {
            if (got->i[i] != want->i[i])
                return false;
        } else {
            top = fmax(top, fabs(want->f[i]));
            worst = fmax(worst, fabs(want->f[i] - got->f[i]));
        }
    if (!(worst <= tol * top + 1e-9))
        fprintf(stderr, "error %g of %g\n", worst, top);
    return worst <= tol * top + 1e-9;
}

static bool
after(void *ctx, const char *pass, cps_module *m, cps_diags *d)
{
    run *r = ctx;
    const cps_func *f = m->funcs.data[0];
    (void)d;
    cps_tensor *got = cps_new_array(r->a, cps_tensor, f->outputs.n + 1);
    bool ok = eval(r, got);
    for (uint32_t i = 0; ok && i < f->outputs.n; i++)
        ok = same(&got[i], &r->want[i], r->tol);
    if (!ok)
        fprintf(stderr, "pass %s changed a result of %s\n", pass, m->name);
    CHECK(ok);
    return ok;
}

static void
model(const char *path, unsigned n, const char *const *dims, const char *target,
      const char *cast)
{
    run r = {.a = cps_arena_create(), .d = cps_diags_create(), .tol = 1e-5};
    cps_onnx_opts oo = {.ndims = n, .dims = dims, .files = &r.files};
    r.reg = cps_dsl_registry_create(r.a, r.d);
    r.o = (cps_lower_opts){.registry = r.reg,
                           .target = cps_target_find(target),
                           .cores = 1,
                           .auto_cast = cast,
                           .cast_type = CPS_DT_BF16,
                           .fallback = CPS_FALLBACK_QUIET,
                           .verify_each = true,
                           .ctx = &r};
    if (strcmp(cast, "none") != 0)
        r.tol = 3e-2;
    r.m = cps_onnx_import(r.a, path, &oo, r.d);
    CHECK(r.m != NULL && r.reg && r.o.target);
    if (r.m) {
        inputs(&r);
        CHECK(eval(&r, r.want));
        r.o.after = after;
        bool ok = cps_lower_prepare(r.m, &r.o, r.d) && cps_lower_select(r.m, &r.o, r.d);
        CHECK(ok);
        const cps_func *f = r.m->funcs.data[0];
        unsigned calls = 0;
        for (uint32_t i = 0; ok && i < f->nodes.n; i++) {
            const cps_node *k = &f->nodes.data[i];
            CHECK(k->op == CPS_OP_CALL || k->op == CPS_OP_CONST || k->op == CPS_OP_RESHAPE);
            CHECK(k->op != CPS_OP_CALL || (k->pick && k->pick->leaf));
            calls += k->op == CPS_OP_CALL;
        }
        cps_buf b = {0};
        if (ok)
            CHECK(cps_lower_explain(r.m, &r.o, false, &b, r.d) && b.n > 0);
        if (getenv("CPS_TEST_SHOW")) {
            cps_diags_render(r.d, &b, false);
            fputs(b.data ? b.data : "", stderr);
        }
        printf("%s for %s, cast %s: %s, %u calls\n", r.m->name, target, cast,
               ok ? "lowered"
                  : cps_diag_rows[cps_diags_code(r.d, cps_diags_count(r.d) - 1)].name,
               calls);
        cps_buf_fini(&b);
    }
    cps_dsl_registry_destroy(r.reg);
    cps_onnx_close(&r.files);
    cps_diags_destroy(r.d);
    cps_arena_destroy(r.a);
}

int
main(int argc, char **argv)
{
    static const char *const bs[] = {"B=2", "S=8"}, *const small[] = {"batch_size=1",
                                                                      "sequence_length=16"};
    static const char *const targets[] = {"trn1", "trn2", "trn3"};
    if (argc > 2) {
        model(argv[1], (unsigned)argc - 2, (const char *const *)argv + 2, "trn2", "none");
        model(argv[1], (unsigned)argc - 2, (const char *const *)argv + 2, "trn2", "all");
        return CHECK_DONE();
    }
    for (size_t i = 0; i < cps_countof(targets); i++) {
        model("tests/onnx/data/encoder.onnx", 2, bs, targets[i], "none");
        model("tests/data/small_encoder.onnx", 2, small, targets[i], "none");
        model("tests/data/small_encoder.onnx", 2, small, targets[i], "all");
        model("tests/onnx/data/decoder.onnx", 0, NULL, targets[i], "none");
        model("tests/onnx/data/gpt.onnx", 0, NULL, targets[i], "none");
    }
    return CHECK_DONE();
}
