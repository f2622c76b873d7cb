/* Graph text: hand-written and random modules print, parse and print to the same bytes; damaged
 * texts give the diagnostic of their damage; two thousand mutants never crash. */
#include "runtime/base/file.h"
#include "tests/check.h"
#include "tests/ir/gen.h"

#include <math.h>
#include <stdlib.h>

typedef struct blobs {
    const cps_module *m;
} blobs;

static const void *
find_blob(void *user, const cps_digest *d, size_t bytes)
{
    const cps_module *m = ((blobs *)user)->m;
    for (uint32_t i = 0; i < m->consts.n; i++)
        if (cps_digest_eq(cps_const_digest(&m->consts.data[i]), d) &&
            (size_t)cps_type_bytes(&m->consts.data[i].type) == bytes)
            return m->consts.data[i].data;
    return NULL;
}

static const char sample[] =
    "copse.graph 1\n"
    "module \"sample\"\n"
    "func @main {\n"
    "  input %x.1: fp32[2,3]\n"
    "  input %\"in/put:0\".2: i64[2]\n"
    "  %w.3 = const fp32[4] [1.5, -0.0, nan, 0x7fc00001]\n"
    "  %4 = const bool[2] [true, false] name \"mask\"\n"
    "  %5 = const i8[0] []\n"
    "  %6 = const u64[1] [18446744073709551615]\n"
    "  %7 = const fp8e4m3[3] [240.0, inf, -0.001953125]\n"
    "  %8 = const fp4e2m1_x4[1] [0x1234]\n"
    "  %9 = reduce_sum %x.1 {axes=[1], keep=true} : fp32[2,1]\n"
    "  %10, %11 = sort %9 {axis=0, descending=false} : fp32[2,1], i64[2,1] from \"Sort_7\"\n"
    "  %12 = index {axis=1, dtype=i32, shape=[2, 3]} : i32[2,3]\n"
    "  %y.13 = call @rmsnorm %x.1, _, %w.3 {act=\"gelu\", eps=1e-6, "
    "n=bits(0x7ff8000000000001), "
    "t=bf16, z=-inf} : fp32[2,3] leaf \"rmsnorm_rows\" why \"model\" on \"trn2\" cost 1234 "
    "digest "
    "\"00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff\" config {bufs_x=3}\n"
    "  %14 = call @\"no operands\" : fp32[] leaf none why \"generic\" on \"host\" cost 0 "
    "digest "
    "\"00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff\" config {}\n"
    "  output \"y\" %y.13\n"
    "  output \"i\" %11\n"
    "}\n"
    "func @\"second one\" {\n"
    "}\n";

static cps_module *
parse(cps_arena *a, cps_diags *d, const char *text, const cps_module *blob_source)
{
    blobs b = {blob_source};
    uint32_t file = cps_diags_source(d, "t.cir", text, strlen(text));
    return cps_ir_parse(a, text, strlen(text), file, d, blob_source ? find_blob : NULL, &b);
}

static void
hand_written(void)
{
    cps_arena *a = cps_arena_create();
    cps_diags *d = cps_diags_create();
    cps_module *m = parse(a, d, sample, NULL);
    cps_buf b = {0};
    cps_diags_render(d, &b, false);
    CHECK_STR(b.data ? b.data : "", "");
    cps_buf_fini(&b);
    CHECK(m);
    if (m) {
        CHECK(cps_ir_verify(m, d));
        cps_ir_print(m, &b);
        CHECK_STR(b.data, sample);
        cps_buf_fini(&b);
        const cps_func *f = m->funcs.data[0];
        CHECK_STR(f->vals.data[f->inputs.data[1]].name, "in/put:0");
        const cps_node *call = &f->nodes.data[9];
        CHECK(call->in[1] == 0 && call->pick && call->pick->cost_ns == 1234);
        CHECK(isinf(cps_attr_float(call->attr, call->nattr, "z", 0)));
        cps_ir_print_opts(m, CPS_IR_LOCS, &b);
        CHECK(strstr(b.data, " loc 1:"));
        cps_module *again = parse(a, d, b.data, m);
        CHECK(again);
        if (again) {
            cps_buf c = {0};
            cps_ir_print_opts(again, CPS_IR_LOCS, &c);
            CHECK_STR(c.data, b.data);
            cps_buf_fini(&c);
        }
        cps_buf_fini(&b);
    }
    // Written by hand: no numbers, no types, comments, negative axes.
    static const char loose[] = "copse.graph 1\nfunc @f { // comment\n input %x: f32[2,3]\n"
                                " %s = reduce_max %x {keep=false, axes=[-1]} output \"s\" %s }";
    m = parse(a, d, loose, NULL);
    CHECK(m);
    if (m) {
        cps_ir_print(m, &b);
        CHECK_STR(b.data, "copse.graph 1\nmodule \"\"\nfunc @f {\n  input %x.1: fp32[2,3]\n"
                          "  %s.2 = reduce_max %x.1 {axes=[1], keep=false} : fp32[2]\n"
                          "  output \"s\" %s.2\n}\n");
        cps_buf_fini(&b);
    }
    cps_diags_destroy(d);
    cps_arena_destroy(a);
}

static void
random_modules(void)
{
    for (uint64_t seed = 1; seed <= 300; seed++) {
        cps_arena *a = cps_arena_create();
        cps_diags *d = cps_diags_create();
        cps_module *m = gen_module(a, d, seed, &(gen_opts){60, true, true});
        CHECK(cps_ir_verify(m, d));
        cps_buf one = {0}, two = {0};
        cps_ir_print_opts(m, seed & 1 ? CPS_IR_LOCS : 0, &one);
        cps_module *back = parse(a, d, one.data, m);
        CHECK(back);
        if (back) {
            cps_ir_print_opts(back, seed & 1 ? CPS_IR_LOCS : 0, &two);
            if (!(seed & 1))
                CHECK_STR(two.data, one.data);
            CHECK(cps_ir_verify(back, d));
            cps_digest x = cps_ir_digest(m), y = cps_ir_digest(back);
            CHECK(cps_digest_eq(&x, &y));
        }
        if (cps_diags_count(d)) {
            cps_buf b = {0};
            cps_diags_render(d, &b, false);
            fprintf(stderr, "seed %llu: %s\n", (unsigned long long)seed, b.data);
            cps_buf_fini(&b);
        }
        CHECK_INT(cps_diags_count(d), 0);
        cps_buf_fini(&one);
        cps_buf_fini(&two);
        cps_diags_destroy(d);
        cps_arena_destroy(a);
    }
}

static void
bad(void)
{
#define F(body) "copse.graph 1\nfunc @f {\n" body "\n}\n"
    static const struct {
        const char *text, *code;
    } cases[] = {
        {"", "E9107"},
        {"copse.graph 2\n", "E9107"},
        {"copse.graph 1", "E9101"},
        {"copse.graph 1\nfunc f {}", "E9101"},
        {"copse.graph 1\nfunc @f {", "E9101"},
        {"copse.graph 1\nfunc @f {} func @f {}", "E9103"},
        {F("input %x: fp32[2]\ninput %x: fp32[2]"), "E9103"},
        {F("output \"y\" %x"), "E9102"},
        {F("%x = nope"), "E9102"},
        {F("%x = const fp99[2] [1.0, 2.0]"), "E9102"},
        {F("%x = const fp32[2] [1.0]"), "E9101"},
        {F("%x = const fp32[2] [1.0, 2.0, 3.0]"), "E9101"},
        {F("%x = const fp32[1,1,1,1,1,1,1,1,1] [1.0]"), "E9105"},
        {F("%x = const fp32[70368744177664,2] blob"), "E9105"},
        {F("%x = const fp32[999999999999999999999] []"), "E9104"},
        {F("%x = const fp32[100000] []"), "E9105"},
        {F("%x = const i8[1] [128]"), "E9104"},
        {F("%x = const u8[1] [-1]"), "E9104"},
        {F("%x = const u64[1] [-1]"), "E9104"},
        {F("%x = const i64[1] [18446744073709551615]"), "E9104"},
        {F("%x = const i32[1] [1.5]"), "E9104"},
        {F("%x = const bool[1] [1]"), "E9104"},
        {F("%x = const bf16[1] [0x12345]"), "E9104"},
        {F("%x = const fp32[20] blob \"12\""), "E9104"},
        {F("%x = const fp32[20] blob "
           "\"00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff\""),
         "E9106"},
        {F("%x = const fp32[1] [1.0] name 7"), "E9101"},
        {F("%x = const fp32[1] [1..0]"), "E9101"},
        {F("%x = const fp32[1] [1.0.0]"), "E9104"},
        {F("%x, %y = const fp32[1] [1.0]"), "E9101"},
        {F("input %x: fp32[2]\n%y = exp %x {a=1}"), "E7104"},
        {F("input %x: fp32[2]\n%y = exp %x {a=1, a=2}"), "E9103"},
        {F("input %x: fp32[2]\n%y = exp %x : fp32[3]"), "E7107"},
        {F("input %x: fp32[2]\n%y = exp %x,"), "E9101"},
        {F("input %x: fp32[2]\n%y, %z = exp %x"), "E9101"},
        {F("input %x: fp32[2]\n%y = add %x, _"), "E9101"},
        {F("input %x: fp32[2]\n%y = add %x, %x {s=\"\\q\"}"), "E9104"},
        {F("input %x: fp32[2]\n%y = add %x, %x {s=\"\\x00\"}"), "E9104"},
        {F("input %x: fp32[2]\n%y = add %x, %x {s=\"open"), "E9104"},
        {F("input %x: fp32[2]\n%y = call @f %x"), "E9101"},
        {F("input %x: fp32[2]\n%y = call %x : fp32[2]"), "E9101"},
        {F("input %x: fp32[2]\n%y = call @f %x : fp32[2] leaf \"a\" on \"b\""), "E9101"},
        {F("#"), "E9101"},
    };
    for (size_t i = 0; i < cps_countof(cases); i++) {
        cps_arena *a = cps_arena_create();
        cps_diags *d = cps_diags_create();
        CHECK(!parse(a, d, cases[i].text, NULL));
        const char *got = cps_diags_count(d) == 1 ? cps_diag_rows[cps_diags_code(d, 0)].name
                                                  : "not one message";
        if (strcmp(got, cases[i].code) != 0)
            fprintf(stderr, "case %zu: %s\n", i, cases[i].text);
        CHECK_STR(got, cases[i].code);
        cps_diags_destroy(d);
        cps_arena_destroy(a);
    }
}

static void
mutants(void)
{
    cps_rng r;
    size_t n = sizeof sample - 1, parsed = 0;
    cps_rng_init(&r, 42, 0);
    for (int i = 0; i < 2000; i++) {
        char *text = malloc(n + 64);
        memcpy(text, sample, n);
        size_t len = n;
        for (uint64_t k = 1 + cps_rng_below(&r, 3); k; k--) {
            size_t at = cps_rng_below(&r, len), cut = cps_rng_below(&r, 20);
            switch (cps_rng_below(&r, 4)) {
            case 0:
                text[at] = (char)cps_rng_next(&r);
                break;
            case 1:
                text[at] = "0123456789[]{}%@,:=\"\\-."[cps_rng_below(&r, 23)];
                break;
            case 2: // cut
                cut = CPS_MIN(cut, len - at);
                memmove(text + at, text + at + cut, len - at - cut);
                len -= CPS_MIN(cut, len - 1);
                break;
            default: // repeat
                cut = CPS_MIN(CPS_MIN(cut, len - at), n + 63 - len);
                memmove(text + at + cut, text + at, len - at);
                len += cut;
            }
        }
        text[len] = 0;
        cps_arena *a = cps_arena_create();
        cps_diags *d = cps_diags_create();
        uint32_t file = cps_diags_source(d, "m.cir", text, len);
        cps_module *m = cps_ir_parse(a, text, len, file, d, NULL, NULL);
        CHECK(m || cps_diags_errors(d));
        if (m) {
            parsed++;
            CHECK(cps_ir_verify(m, d));
            cps_buf one = {0}, two = {0};
            cps_ir_print(m, &one);
            cps_module *back =
                cps_ir_parse(a, one.data, one.n, file, d, find_blob, &(blobs){m});
            CHECK(back);
            if (back) {
                cps_ir_print(back, &two);
                CHECK_STR(two.data, one.data);
            }
            cps_buf_fini(&one);
            cps_buf_fini(&two);
        }
        cps_buf shown = {0};
        cps_diags_render(d, &shown, false);
        cps_buf_fini(&shown);
        cps_diags_destroy(d);
        cps_arena_destroy(a);
        free(text);
    }
    CHECK(parsed > 20 && parsed < 1900);
}

static void
verifier(void)
{
    cps_arena *a = cps_arena_create();
    cps_diags *d = cps_diags_create();
    // Each damage of a sound module is found.
    for (int k = 0; k < 16; k++) {
        cps_diags_clear(d);
        cps_module *m = parse(a, d, sample, NULL);
        if (!m) {
            CHECK(m);
            break;
        }
        cps_func *f = m->funcs.data[0];
        cps_node *sum = &f->nodes.data[6], *call = &f->nodes.data[9], *cst = &f->nodes.data[0];
        switch (k) {
        case 0:
            sum->in[0] = 0;
            break;
        case 1:
            sum->in[0] = f->vals.n;
            break;
        case 2:
            sum->in[0] = call->out[0];
            break; // used before defined
        case 3:
            sum->out[0] = f->inputs.data[0];
            break; // defined twice
        case 4:
            f->vals.data[sum->out[0]].type.dim[0] = 9;
            break;
        case 5:
            f->vals.data[sum->out[0]].type.rank = 99;
            break;
        case 6:
            sum->op = CPS_OPS;
            break;
        case 7:
            sum->nout = 2;
            break;
        case 8:
            sum->nin = 0;
            break;
        case 9:
            sum->attr[0].key = "zzz";
            break; // not sorted
        case 10:
            sum->nattr = 1;
            break; // keep is missing
        case 11:
            call->callee = NULL;
            break;
        case 12:
            cst->cst = m->consts.n;
            break;
        case 13:
            m->consts.data[cst->cst].data = NULL;
            break;
        case 14:
            f->outputs.data[0] = 0;
            break;
        case 15:
            f->vals.data[sum->out[0]].def = 1;
            break;
        }
        bool ok = cps_ir_verify(m, d);
        if (ok)
            fprintf(stderr, "damage %d goes unseen\n", k);
        CHECK(!ok);
        CHECK_INT(cps_diags_count(d), 1);
    }
    cps_diags_destroy(d);
    cps_arena_destroy(a);
}

static const void *
zeros(void *user, const cps_digest *d, size_t bytes)
{
    (void)d;
    return cps_arena_alloc(user, bytes);
}

// The example of IR.md is what the printer prints.
static void
documented(void)
{
    cps_file f;
    CHECK(cps_file_open("ir/IR.md", true, &f));
    const char *from = strstr((const char *)f.data, "\ncopse.graph 1\n");
    const char *to = from ? strstr(from, "\n```") : NULL;
    CHECK(to);
    if (to) {
        cps_arena *a = cps_arena_create();
        cps_diags *d = cps_diags_create();
        cps_module *m = cps_ir_parse(a, from + 1, (size_t)(to - from), 0, d, zeros, a);
        CHECK(m);
        cps_buf b = {0};
        if (m)
            cps_ir_print(m, &b);
        CHECK(b.n == (size_t)(to - from) && memcmp(b.data, from + 1, b.n) == 0);
        cps_buf_fini(&b);
        cps_diags_destroy(d);
        cps_arena_destroy(a);
    }
    cps_file_close(&f);
}

int
main(void)
{
    hand_written();
    documented();
    random_modules();
    bad();
    mutants();
    verifier();
    return CHECK_DONE();
}
