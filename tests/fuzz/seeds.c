/* One accepted input of every kind, made by the rooms' own builders or read from the tree. */
#include "tests/fuzz/fuzz.h"

#include "codegen/bir/bir.h"
#include "codegen/codegen.h"
#include "frontend/dsl/registry.h"
#include "ir/build.h"
#include "ir/tile.h"
#include "kernels/tuned.h"
#include "runtime/base/file.h"
#include "runtime/base/npy.h"
#include "runtime/pkg/neff_pack.h"

static bool
file(const char *path, cps_buf *out)
{
    cps_file f;
    if (!cps_file_open(path, false, &f))
        return false;
    cps_buf_put(out, f.data, f.n);
    cps_file_close(&f);
    return true;
}

bool
seed_onnx(cps_arena *a, cps_buf *out)
{
    (void)a;
    return file("tests/data/small_encoder.onnx", out);
}

bool
seed_xml(cps_arena *a, cps_buf *out)
{
    (void)a;
    return file("codegen/isa/targets/trn2.xml", out);
}

bool
seed_cir(cps_arena *a, cps_buf *out)
{
    cps_diags *d = cps_diags_create();
    cps_module *m = cps_module_new(a, "seed");
    cps_builder b = {.m = m, .f = cps_func_new(m, "main"), .d = d};
    const float bias[3] = {0.5f, -1.0f, 2.25f};
    const int64_t axis = 1;
    cps_val x = cps_b_input(&b, "x", cps_type_make(CPS_DT_FP32, 2, (const int64_t[]){2, 4}));
    cps_val w = cps_b_input(&b, "w", cps_type_make(CPS_DT_FP32, 2, (const int64_t[]){4, 3}));
    cps_val c =
        cps_b_const(&b, cps_type_make(CPS_DT_FP32, 1, (const int64_t[]){3}), bias, NULL);
    cps_val s = cps_b_binary(&b, CPS_OP_ADD, cps_b_matmul(&b, x, w), c);
    cps_val top = cps_b_reduce(&b, CPS_OP_RMAX, s, 1, &axis, true);
    cps_b_output(&b, "y", cps_b_unary(&b, CPS_OP_EXP, cps_b_binary(&b, CPS_OP_SUB, s, top)));
    cps_ir_print(m, out);
    bool ok = cps_diags_errors(d) == 0;
    cps_diags_destroy(d);
    return ok;
}

bool
seed_cps(cps_arena *a, cps_buf *out)
{
    (void)a;
    cps_buf_puts(out,
                 "// an operator and its leaf\n"
                 "const TWO = 2.0;\n"
                 "op seed(x[T, N], g?[N]; eps: fp32 = 1e-6) -> y[T, N] {\n"
                 "    let m = mean(x * x, axis: 1);\n"
                 "    y = present(g) ? x * rsqrt(m + eps) * g : x * TWO;\n"
                 "}\n"
                 "leaf seed_rows for seed on trn1, trn2 {\n"
                 "    where N * bytes(x.dtype) * 4 <= sbuf.partition : \"a row must fit\";\n"
                 "    param C in {128, 256} = 256;\n"
                 "    cost dve: ceil_div(T, P) * N, hbm: bytes(x) + bytes(y);\n"
                 "    tolerance 1e-2, 1e-5;\n"
                 "    cases (T: 4, N: 8), (T: 129, N: 300);\n"
                 "    if (present(g)) { sbuf gr[all, N] <- g; }\n"
                 "    for t in tiles(T, P), c in tiles(N, C) {\n"
                 "        sbuf xt[t, c] bufs 2 <- x[t, c];\n"
                 "        sbuf s[t, 1]: fp32 = sum(square(xt), axis: free);\n"
                 "        y[t, c] <- xt * s + 1.0 bufs 2;\n"
                 "    }\n"
                 "}\n");
    return true;
}

static cps_tfunc *
tile(cps_arena *a, cps_diags *d)
{
    cps_registry *r = cps_dsl_registry_create(a, d);
    const char *dim[] = {"T", "N"};
    const int64_t size[] = {130, 96};
    cps_instance i;
    cps_candidate *c;
    cps_tfunc *f = NULL;
    if (r && r->make(r->self, a, "softmax", 2, dim, size, CPS_DT_BF16, 0, NULL, 0, NULL, NULL,
                     cps_target_find("trn2"), 1, &i, d)) {
        unsigned n = r->candidates(r->self, a, &i, &c, d);
        const char *why;
        int k = cps_registry_pick(c, n, NULL, &why);
        if (k >= 0)
            f = r->trace(r->self, a, &i, &c[k], 0, d);
    }
    cps_dsl_registry_destroy(r);
    return f;
}

bool
seed_tile(cps_arena *a, cps_buf *out)
{
    cps_diags *d = cps_diags_create();
    cps_tfunc *f = tile(a, d);
    if (f)
        cps_tile_print(f, false, out);
    cps_diags_destroy(d);
    return f != NULL;
}

static const cps_kbin *
kernel(cps_arena *a)
{
    cps_kbin *k = NULL;
    cps_diags *d = cps_diags_create();
    cps_tfunc *f = tile(a, d);
    if (f)
        cps_codegen(a, f, cps_target_find("trn2"), NULL, &k, d);
    cps_diags_destroy(d);
    return k;
}

bool
seed_kbin(cps_arena *a, cps_buf *out)
{
    const cps_kbin *k = kernel(a);
    if (k)
        cps_kbin_pack(k, out);
    return k != NULL;
}

/* With a plain tar, so that what is changed gets through to the members. */
bool
seed_neff(cps_arena *a, cps_buf *out)
{
    cps_package *p = cps_package_new(a, "seed", "trn2");
    cps_pkernel k = {.name = "seed", .bound = "memory", .kbin = kernel(a)};
    cps_diags *d = cps_diags_create();
    cps_vec_push(a, &p->kernels, k);
    cps_neff *f = k.kbin ? cps_neff_pack(a, p, "seed", d) : NULL;
    if (f)
        f->head.pkg_version = 1;
    bool ok = f && cps_neff_write(f, out, d);
    cps_diags_destroy(d);
    return ok;
}

bool
seed_bir(cps_arena *a, cps_buf *out)
{
    cps_kbin *k = NULL;
    cps_notes n = {0};
    cps_codegen_opts o = {.notes = &n};
    cps_diags *d = cps_diags_create();
    cps_tfunc *f = tile(a, d);
    if (f && cps_codegen(a, f, cps_target_find("trn2"), &o, &k, d))
        cps_bir_write(k, &n, out);
    cps_diags_destroy(d);
    return k != NULL;
}

bool
seed_dis(cps_arena *a, cps_buf *out)
{
    const cps_kbin *k = kernel(a);
    for (int e = 0; k && e < CPS_ENGINES; e++)
        if (k->stream[e].code.n)
            cps_buf_put(out, k->stream[e].code.data, k->stream[e].code.n * sizeof(cps_bundle));
    return out->n != 0;
}

bool
seed_asm(cps_arena *a, cps_buf *out)
{
    const cps_kbin *k = kernel(a);
    if (k)
        cps_kbin_listing(k, out);
    return k != NULL;
}

bool
seed_npy(cps_arena *a, cps_buf *out)
{
    (void)a;
    const float v[6] = {1, 2, 3, 4, 5, 6};
    const int64_t dim[2] = {2, 3};
    cps_npy_format(out, CPS_DT_FP32, 2, dim, v);
    return true;
}

bool
seed_json(cps_arena *a, cps_buf *out)
{
    (void)a;
    cps_buf_puts(out,
                 "{\"a\": [1, -2.5e3, true, null, \"x\\u00e9\\n\"], \"b\": {\"c\": {}}}\n");
    return true;
}

bool
seed_tuned(cps_arena *a, cps_buf *out)
{
    cps_tuned *t = cps_tuned_new(a, "seed.tuned");
    cps_tuned_row row = {.call = "softmax(x bf16[512,2048]) on trn2", .leaf = "softmax_rows",
                         .config = "slots=3", .ns = 12345, .ns_without = 13000};
    cps_tuned_put(t, &row);
    row.call = "rope(x bf16[1,64,2,64]; interleaved=false) on trn1, 2 cores";
    row.config = "";
    cps_tuned_put(t, &row);
    cps_tuned_print(t, out);
    return true;
}
