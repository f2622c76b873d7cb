/* Malformed inputs of every kind, in one process (meant for the sanitizer build): a seed file is
 * damaged at random and given to its reader. Whatever comes out must be a value or diagnostics;
 * text levels must also read back what they print.
 *
 *   mutants COUNT SEED KIND...    KIND: onnx cps cir tile cas bin xml kbin npy json */
#include "codegen/codegen.h"
#include "codegen/isa/text.h"
#include "frontend/dsl/registry.h"
#include "frontend/onnx/onnx.h"
#include "ir/build.h"
#include "ir/tile.h"
#include "runtime/base/file.h"
#include "runtime/base/json.h"
#include "runtime/base/rng.h"
#include "runtime/pkg/kbin.h"
#include "tests/check.h"

#include <stdlib.h>
#include <unistd.h>

typedef struct bytes {
    uint8_t *p;
    size_t n;
} bytes;

typedef struct kind {
    const char *name, *seed; /* file in the tree, or NULL: made by `make` */
    bool (*read)(cps_arena *a, const uint8_t *p, size_t n, cps_diags *d); /* true: accepted */
    bool (*make)(cps_arena *a, cps_buf *out);
} kind;

static cps_rng rng;

static size_t
below(size_t n)
{
    return n ? (size_t)cps_rng_below(&rng, n) : 0;
}

static bytes
mutate(cps_arena *a, const bytes *seed)
{
    bytes m = {cps_arena_raw(a, seed->n * 2 + 4096), seed->n};
    memcpy(m.p, seed->p, seed->n);
    for (size_t k = 0, times = 1 + below(4); k < times; k++) {
        size_t at = below(m.n), len = 1 + below(32);
        switch (below(6)) {
        case 0: // cut
            m.n = at;
            break;
        case 1: // damage
            for (size_t i = 0; i < len && at + i < m.n; i++)
                m.p[at + i] = (uint8_t)below(256);
            break;
        case 2: // a huge length, in the way varints and little-endian words spell it
            for (size_t i = 0; i < 10 && at + i < m.n; i++)
                m.p[at + i] = 0xff;
            break;
        case 3: // say it twice
            len = CPS_MIN(len * 8, m.n - at);
            if (m.n + len <= seed->n * 2 + 4096) {
                memmove(m.p + at + len, m.p + at, m.n - at);
                m.n += len;
            }
            break;
        case 4: // leave out
            len = CPS_MIN(len, m.n - at);
            memmove(m.p + at, m.p + at + len, m.n - at - len);
            m.n -= len;
            break;
        default: // one bit
            if (m.n)
                m.p[at] ^= (uint8_t)(1u << below(8));
        }
    }
    m.p[m.n] = 0;
    return m;
}

static bool
read_onnx(cps_arena *a, const uint8_t *p, size_t n, cps_diags *d)
{
    static const char *const dims[] = {"batch_size=1", "sequence_length=4"};
    cps_onnx_files files = {0};
    cps_onnx_opts o = {.ndims = 2, .dims = dims, .files = &files};
    cps_module *m = cps_onnx_import_bytes(a, "mutant.onnx", NULL, p, n, &o, d);
    bool ok = m != NULL;
    if (ok)
        CHECK(cps_ir_verify(m, d));
    cps_onnx_close(&files);
    return ok;
}

static bool
read_cps(cps_arena *a, const uint8_t *p, size_t n, cps_diags *d)
{
    cps_registry *r = cps_dsl_registry_create(a, d);
    bool ok = r && cps_dsl_registry_add(r, "mutant.cps", (const char *)p, n, d);
    cps_dsl_registry_destroy(r);
    return ok;
}

static bool
read_cir(cps_arena *a, const uint8_t *p, size_t n, cps_diags *d)
{
    uint32_t src = cps_diags_source(d, "mutant.cir", (const char *)p, n);
    cps_module *m = cps_ir_parse(a, (const char *)p, n, src, d, NULL, NULL);
    if (!m || !cps_ir_verify(m, d))
        return false;
    cps_buf one = {0}, two = {0};
    cps_ir_print(m, &one);
    cps_module *again = cps_ir_parse(a, one.data, one.n, 0, d, NULL, NULL);
    CHECK(again != NULL);
    if (again) {
        cps_ir_print(again, &two);
        CHECK(one.n == two.n && memcmp(one.data, two.data, one.n) == 0);
    }
    cps_buf_fini(&one);
    cps_buf_fini(&two);
    return true;
}

static bool
read_tile(cps_arena *a, const uint8_t *p, size_t n, cps_diags *d)
{
    const cps_target *t = cps_target_find("trn2");
    uint32_t src = cps_diags_source(d, "mutant.cir", (const char *)p, n);
    cps_tfunc *f = cps_tile_parse(a, (const char *)p, n, src, d);
    if (!f || !cps_tile_verify(f, t, d))
        return false;
    // What the verifier accepts, the back end compiles or refuses with a diagnostic.
    cps_kbin *k = NULL;
    cps_codegen_opts o = {.verify = true};
    bool ok = cps_codegen(a, f, t, &o, &k, d);
    CHECK(ok || cps_diags_errors(d) > 0);
    return ok;
}

static bool
read_cas(cps_arena *a, const uint8_t *p, size_t n, cps_diags *d)
{
    (void)a;
    cps_buf b = {0};
    uint32_t src = cps_diags_source(d, "mutant.cas", (const char *)p, n);
    bool ok = cps_isa_parse((const char *)p, n, src, CPS_V3, d, &b);
    CHECK(ok == (cps_diags_errors(d) == 0));
    cps_buf_fini(&b);
    return ok;
}

static bool
read_bin(cps_arena *a, const uint8_t *p, size_t n, cps_diags *d)
{
    (void)a;
    for (size_t at = 0; at + CPS_BUNDLE_BYTES <= n; at += CPS_BUNDLE_BYTES) {
        cps_bundle one;
        memcpy(one.b, p + at, sizeof one.b);
        cps_buf text = {0}, back = {0};
        cps_isa_print(&one, CPS_V3, &text);
        CHECK(cps_isa_parse(text.data, text.n, 0, CPS_V3, d, &back));
        CHECK(back.n == CPS_BUNDLE_BYTES && memcmp(back.data, one.b, CPS_BUNDLE_BYTES) == 0);
        cps_diags *v = cps_diags_create();
        cps_isa_verify(&one, CPS_V3, CPS_ENGINE_ANY, v, CPS_NOSPAN);
        cps_diags_destroy(v);
        cps_buf_fini(&text);
        cps_buf_fini(&back);
    }
    return n % CPS_BUNDLE_BYTES == 0;
}

static bool
read_xml(cps_arena *a, const uint8_t *p, size_t n, cps_diags *d)
{
    char path[64];
    snprintf(path, sizeof path, "/tmp/copse-mutant-%ld.xml", (long)getpid());
    if (!cps_file_write(path, p, n))
        return false;
    bool ok = cps_target_load(path, a, d) != NULL;
    unlink(path);
    CHECK(ok || cps_diags_errors(d) > 0);
    return ok;
}

static bool
read_kbin(cps_arena *a, const uint8_t *p, size_t n, cps_diags *d)
{
    (void)d;
    const char *why = NULL;
    cps_kbin *k = cps_kbin_unpack(a, p, n, &why);
    CHECK(k != NULL || why != NULL);
    return k != NULL;
}

static bool
read_npy(cps_arena *a, const uint8_t *p, size_t n, cps_diags *d)
{
    (void)d;
    cps_npy f;
    const char *why = NULL;
    if (!cps_npy_parse(p, n, &f, &why)) {
        CHECK(why != NULL);
        return false;
    }
    size_t at;
    cps_npy_convert(&f, CPS_DT_FP32, cps_arena_raw(a, f.count * 4 + 1), &at, &why);
    return true;
}

static bool
read_json(cps_arena *a, const uint8_t *p, size_t n, cps_diags *d)
{
    (void)d;
    const char *why = NULL;
    size_t at;
    const cps_json *j = cps_json_parse(a, (const char *)p, n, &why, &at);
    CHECK(j != NULL || why != NULL);
    return j != NULL;
}

/* ---- seeds that are made ---- */

static bool
graph_text(cps_arena *a, cps_buf *out)
{
    cps_diags *d = cps_diags_create();
    cps_module *m = cps_module_new(a, "seed");
    cps_builder b = {.m = m, .f = cps_func_new(m, "main"), .d = d};
    const float bias[3] = {0.5f, -1.0f, 2.25f};
    const int64_t axis = 1;
    cps_val x = cps_b_input(&b, "x", cps_type_make(CPS_DT_FP32, 2, (const int64_t[]){2, 4}));
    cps_val w = cps_b_input(&b, "w", cps_type_make(CPS_DT_FP32, 2, (const int64_t[]){4, 3}));
    cps_val c = cps_b_const(&b, cps_type_make(CPS_DT_FP32, 1, (const int64_t[]){3}), bias, NULL);
    cps_val s = cps_b_binary(&b, CPS_OP_ADD, cps_b_matmul(&b, x, w), c);
    cps_val top = cps_b_reduce(&b, CPS_OP_RMAX, s, 1, &axis, true);
    cps_b_output(&b, "y", cps_b_unary(&b, CPS_OP_EXP, cps_b_binary(&b, CPS_OP_SUB, s, top)));
    cps_ir_print(m, out);
    bool ok = cps_diags_errors(d) == 0;
    cps_diags_destroy(d);
    return ok;
}

static bool
leaf_text(cps_arena *a, cps_buf *out)
{
    (void)a;
    cps_buf_puts(out, "// an operator and its leaf\n"
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

static bool
tile_text(cps_arena *a, cps_buf *out)
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

static bool
kbin_bytes(cps_arena *a, cps_buf *out)
{
    const cps_kbin *k = kernel(a);
    if (k)
        cps_kbin_pack(k, out);
    return k != NULL;
}

static bool
stream(cps_arena *a, cps_buf *out)
{
    const cps_kbin *k = kernel(a);
    for (int e = 0; k && e < CPS_ENGINES; e++)
        if (k->stream[e].code.n)
            cps_buf_put(out, k->stream[e].code.data, k->stream[e].code.n * sizeof(cps_bundle));
    return out->n != 0;
}

static bool
listing(cps_arena *a, cps_buf *out)
{
    const cps_kbin *k = kernel(a);
    if (k)
        cps_kbin_listing(k, out);
    return k != NULL;
}

static bool
npy_bytes(cps_arena *a, cps_buf *out)
{
    (void)a;
    const float v[6] = {1, 2, 3, 4, 5, 6};
    const int64_t dim[2] = {2, 3};
    cps_npy_format(out, CPS_DT_FP32, 2, dim, v);
    return true;
}

static bool
json_text(cps_arena *a, cps_buf *out)
{
    (void)a;
    cps_buf_puts(out, "{\"a\": [1, -2.5e3, true, null, \"x\\u00e9\\n\"], \"b\": {\"c\": {}}}\n");
    return true;
}

static const kind kinds[] = {
    {"onnx", "tests/data/small_encoder.onnx", read_onnx, NULL},
    {"cps", NULL, read_cps, leaf_text},
    {"cir", NULL, read_cir, graph_text},
    {"tile", NULL, read_tile, tile_text},
    {"cas", NULL, read_cas, listing},
    {"bin", NULL, read_bin, stream},
    {"xml", "codegen/isa/targets/trn2.xml", read_xml, NULL},
    {"kbin", NULL, read_kbin, kbin_bytes},
    {"npy", NULL, read_npy, npy_bytes},
    {"json", NULL, read_json, json_text},
};

static void
run(const kind *k, unsigned count, uint64_t seed_number)
{
    cps_arena *keep = cps_arena_create();
    cps_buf made = {0};
    bytes seed = {0};
    if (k->make) {
        CHECK(k->make(keep, &made));
        seed = (bytes){(uint8_t *)made.data, made.n};
    } else {
        cps_file f;
        bool ok = cps_file_open(k->seed, true, &f);
        CHECK(ok);
        if (!ok)
            return;
        seed = (bytes){(uint8_t *)cps_arena_strndup(keep, (const char *)f.data, f.n), f.n};
        cps_file_close(&f);
    }
    // The seed itself is accepted, or the mutants prove little.
    cps_diags *d = cps_diags_create();
    CHECK(k->read(keep, seed.p, seed.n, d));
    cps_diags_destroy(d);
    cps_rng_init(&rng, seed_number, (uint64_t)(k - kinds));
    unsigned refused = 0;
    for (unsigned i = 0; i < count; i++) {
        cps_arena *a = cps_arena_create();
        d = cps_diags_create();
        bytes m = mutate(a, &seed);
        refused += !k->read(a, m.p, m.n, d);
        cps_buf text = {0};
        cps_diags_render(d, &text, false); // places in damaged text must render too
        cps_buf_fini(&text);
        cps_diags_destroy(d);
        cps_arena_destroy(a);
    }
    CHECK(refused > 0);
    printf("%-5s %u mutants, %u refused\n", k->name, count, refused);
    fflush(stdout);
    cps_buf_fini(&made);
    cps_arena_destroy(keep);
}

int
main(int argc, char **argv)
{
    unsigned count = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 2000;
    uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
    for (unsigned i = 0; i < cps_countof(kinds); i++) {
        bool want = argc <= 3;
        for (int k = 3; k < argc; k++)
            want = want || !strcmp(argv[k], kinds[i].name);
        if (want)
            run(&kinds[i], count, seed);
    }
    return CHECK_DONE();
}
