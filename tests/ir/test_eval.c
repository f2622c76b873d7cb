/* The evaluator's own promises: unrounded binary64 by default and binary32 on request, results
 * that do not depend on threads, calls through the callback, freed intermediates, diagnostics
 * for data without a result. The mathematics of each op is checked by oracle.py. */
#include "tests/check.h"
#include "tests/ir/gen.h"

#include <math.h>

typedef struct fix {
    cps_arena *a;
    cps_diags *d;
    cps_builder b;
} fix;

static fix
begin(void)
{
    fix x = {.a = cps_arena_create(), .d = cps_diags_create()};
    cps_module *m = cps_module_new(x.a, "m");
    x.b = (cps_builder){.m = m, .f = cps_func_new(m, "main"), .d = x.d};
    return x;
}

static void
end(fix *x)
{
    cps_diags_destroy(x->d);
    cps_arena_destroy(x->a);
}

static cps_tensor
run(fix *x, cps_val v, const cps_eval_opts *o)
{
    cps_tensor out = {0};
    cps_b_output(&x->b, "y", v);
    if (!cps_ir_eval(x->a, x->b.m, x->b.f, NULL, &out, o, x->d))
        out = (cps_tensor){0};
    return out;
}

static void
precision(void)
{
    fix x = begin();
    cps_val third = cps_b_binary(&x.b, CPS_OP_DIV, cps_b_scalar(&x.b, CPS_DT_BF16, 1),
                                 cps_b_scalar(&x.b, CPS_DT_BF16, 3));
    CHECK(run(&x, third, NULL).f[0] == 1.0 / 3.0); // not rounded, whatever the dtype
    end(&x);
    x = begin();
    third = cps_b_binary(&x.b, CPS_OP_DIV, cps_b_scalar(&x.b, CPS_DT_BF16, 1),
                         cps_b_scalar(&x.b, CPS_DT_BF16, 3));
    CHECK(run(&x, third, &(cps_eval_opts){.fp32 = true, .threads = 1}).f[0] ==
          (double)(1.0f / 3));
    end(&x);
    // A cast rounds to the dtype it names.
    x = begin();
    cps_val c = cps_b_cast(&x.b, cps_b_scalar(&x.b, CPS_DT_FP32, 1.0f / 3), CPS_DT_BF16);
    CHECK(run(&x, c, NULL).f[0] == 0.333984375);
    end(&x);
    // fp32 accumulates in binary32: 2^24 + 1 + 1 + ... stays where it is.
    float data[5] = {16777216, 1, 1, 1, 1};
    for (int mode = 0; mode < 2; mode++) {
        cps_eval_opts o = {.fp32 = mode, .threads = 1};
        cps_type t = cps_type_make(CPS_DT_FP32, 1, (int64_t[]){5});
        x = begin();
        cps_val s = cps_b_reduce(&x.b, CPS_OP_SUM, cps_b_const(&x.b, t, data, NULL), 1,
                                 (int64_t[]){0}, false);
        CHECK(run(&x, s, &o).f[0] == (mode ? 16777216.0 : 16777220.0));
        end(&x);
        x = begin();
        cps_val k = cps_b_reshape(&x.b, cps_b_const(&x.b, t, data, NULL), 2, (int64_t[]){1, 5});
        float one[5] = {1, 1, 1, 1, 1};
        cps_val w = cps_b_reshape(&x.b, cps_b_const(&x.b, t, one, NULL), 2, (int64_t[]){5, 1});
        CHECK(run(&x, cps_b_matmul(&x.b, k, w), &o).f[0] == (mode ? 16777216.0 : 16777220.0));
        end(&x);
    }
}

static void
integers(void)
{
    fix x = begin();
    cps_val big = cps_b_ints(&x.b, CPS_DT_I64, 1, (int64_t[]){(INT64_C(1) << 53) + 1});
    cps_val sum =
        cps_b_binary(&x.b, CPS_OP_ADD, big, cps_b_ints(&x.b, CPS_DT_I64, 1, (int64_t[]){1}));
    CHECK(run(&x, sum, NULL).i[0] == (INT64_C(1) << 53) + 2); // exact above 2^53
    end(&x);
    x = begin();
    cps_val m = cps_b_ints(&x.b, CPS_DT_I64, 1, (int64_t[]){INT64_MIN});
    cps_val q =
        cps_b_binary(&x.b, CPS_OP_DIV, m, cps_b_ints(&x.b, CPS_DT_I64, 1, (int64_t[]){-1}));
    CHECK(run(&x, q, NULL).i[0] == INT64_MIN);
    end(&x);
    x = begin();
    cps_val z = cps_b_binary(&x.b, CPS_OP_MOD, cps_b_ints(&x.b, CPS_DT_I32, 1, (int64_t[]){5}),
                             cps_b_ints(&x.b, CPS_DT_I32, 1, (int64_t[]){0}));
    CHECK(!run(&x, z, NULL).i);
    CHECK_INT(cps_diags_code(x.d, 0), CPS_E7108);
    end(&x);
    x = begin();
    cps_val g = cps_b_gather(&x.b, cps_b_ints(&x.b, CPS_DT_I32, 2, (int64_t[]){5, 6}),
                             cps_b_ints(&x.b, CPS_DT_I32, 2, (int64_t[]){-2, 2}), 0);
    CHECK(!run(&x, g, NULL).i);
    CHECK_INT(cps_diags_code(x.d, 0), CPS_E7108);
    CHECK_STR(cps_diags_text(x.d, 0), "'gather': index 2 (element 1) is outside an axis of 2");
    end(&x);
    x = begin(); // what no output needs is not evaluated
    (void)cps_b_binary(&x.b, CPS_OP_MOD, cps_b_ints(&x.b, CPS_DT_I32, 1, (int64_t[]){5}),
                       cps_b_ints(&x.b, CPS_DT_I32, 1, (int64_t[]){0}));
    CHECK(run(&x, cps_b_scalar(&x.b, CPS_DT_I32, 4), NULL).i[0] == 4);
    end(&x);
}

static void
refused(void)
{
    // More elements than an evaluation may hold, and an input of another type.
    fix x = begin();
    cps_val big = cps_b_broadcast(&x.b, cps_b_scalar(&x.b, CPS_DT_FP32, 1), 2,
                                  (int64_t[]){1 << 17, 1 << 17});
    CHECK(!run(&x, big, NULL).f);
    CHECK_INT(cps_diags_code(x.d, 0), CPS_E7106);
    end(&x);
    x = begin();
    cps_type t = cps_type_make(CPS_DT_FP32, 1, (int64_t[]){2}), u = t;
    cps_b_output(&x.b, "y", cps_b_input(&x.b, "x", t));
    u.dim[0] = 3;
    cps_tensor in = cps_tensor_from(x.a, &u, (float[]){1, 2, 3}), out;
    CHECK(!cps_ir_eval(x.a, x.b.m, x.b.f, &in, &out, NULL, x.d));
    CHECK_INT(cps_diags_code(x.d, 0), CPS_E1006);
    end(&x);
}

static bool
twice(void *user, cps_arena *a, const cps_node *n, const cps_tensor *in, cps_tensor *out,
      cps_diags *d)
{
    (void)d;
    ++*(int *)user;
    int64_t count = cps_type_count(&out->type);
    CHECK_STR(n->callee, "twice");
    CHECK(n->in[1] == 0 && !in[1].f);
    out->f = cps_arena_raw(a, (size_t)count * sizeof(double));
    for (int64_t i = 0; i < count; i++)
        out->f[i] = 2 * in[0].f[i];
    return true;
}

static void
calls(void)
{
    for (int with = 0; with < 2; with++) {
        fix x = begin();
        int ran = 0;
        cps_eval_opts o = {.threads = 1, .call = with ? twice : NULL, .user = &ran};
        float v[3] = {1, 2, 3};
        cps_type t = cps_type_make(CPS_DT_FP32, 1, (int64_t[]){3});
        cps_val in[2] = {cps_b_const(&x.b, t, v, "v"), 0}, out;
        CHECK(cps_b_call(&x.b, "twice", 2, in, 0, NULL, 1, &t, &out));
        cps_tensor r = run(&x, cps_b_binary(&x.b, CPS_OP_ADD, out, in[0]), &o);
        CHECK_INT(ran, with);
        if (with)
            CHECK(r.f && r.f[0] == 3 && r.f[2] == 9);
        else
            CHECK_INT(cps_diags_code(x.d, 0), CPS_E7109);
        end(&x);
    }
}

static bool
same(const cps_tensor *a, const cps_tensor *b)
{
    size_t n = (size_t)cps_type_count(&a->type) * 8;
    return cps_type_eq(&a->type, &b->type) &&
           memcmp(a->f ? (void *)a->f : (void *)a->i, b->f ? (void *)b->f : (void *)b->i, n) ==
               0;
}

static void
threads(void)
{
    // Sizes around every block edge, and elementwise work large enough to be split.
    for (int k = 0; k < 12; k++) {
        fix x = begin();
        int64_t m = 1 + 37 * k, kk = 1 + 61 * k, n = 1 + 29 * k;
        cps_type tx = cps_type_make(CPS_DT_FP32, 2, (int64_t[]){m, kk});
        cps_type ty = cps_type_make(CPS_DT_FP32, 3, (int64_t[]){2, kk, n});
        cps_val p = cps_b_input(&x.b, "x", tx), q = cps_b_input(&x.b, "y", ty);
        cps_val z = cps_b_unary(&x.b, CPS_OP_GELU, cps_b_matmul(&x.b, p, q));
        z = cps_b_transpose(&x.b, z, (int64_t[]){2, 1, 0});
        cps_b_output(&x.b, "z", z);
        cps_tensor *in = cps_new_array(x.a, cps_tensor, 2), one, many;
        cps_rng r;
        cps_rng_init(&r, 9, (uint64_t)k);
        for (int i = 0; i < 2; i++) {
            in[i].type = i ? ty : tx;
            int64_t c = cps_type_count(&in[i].type);
            in[i].f = cps_arena_raw(x.a, (size_t)c * 8);
            for (int64_t e = 0; e < c; e++)
                in[i].f[e] = (double)(float)cps_rng_normal(&r);
        }
        for (int fp32 = 0; fp32 < 2; fp32++) {
            cps_eval_opts a = {.threads = 1, .fp32 = fp32}, b = {.threads = 7, .fp32 = fp32};
            CHECK(cps_ir_eval(x.a, x.b.m, x.b.f, in, &one, &a, x.d));
            CHECK(cps_ir_eval(x.a, x.b.m, x.b.f, in, &many, &b, x.d));
            CHECK(same(&one, &many));
            // And the order of the sum is the plain one.
            double want = 0;
            int64_t i = m / 2, j = n - 1;
            for (int64_t e = 0; e < kk; e++) {
                double y = in[1].f[(kk + e) * n + j];
                want = fp32 ? (double)((float)want + (float)in[0].f[i * kk + e] * (float)y)
                            : want + in[0].f[i * kk + e] * y;
            }
            double g = 0.5 * want * erfc(-want * M_SQRT1_2);
            CHECK(one.f[(j * m + i) * 2 + 1] == (fp32 ? (double)(float)g : g));
        }
        end(&x);
    }
}

static void
random_modules(void)
{
    int ran = 0;
    for (uint64_t seed = 1; seed <= 200; seed++) {
        cps_arena *a = cps_arena_create();
        cps_diags *d = cps_diags_create();
        cps_module *m = gen_module(a, d, seed, &(gen_opts){40, true, false});
        cps_func *f = m->funcs.data[0];
        cps_tensor *in = gen_inputs(a, f, seed), one[8], two[8];
        bool ok = cps_ir_eval(a, m, f, in, one, NULL, d);
        cps_eval_opts o = {.threads = 3};
        CHECK_INT(cps_ir_eval(a, m, f, in, two, &o, d), ok);
        ran += ok;
        for (uint32_t i = 0; i < f->outputs.n && ok; i++)
            CHECK(same(&one[i], &two[i]));
        cps_diags_destroy(d);
        cps_arena_destroy(a);
    }
    CHECK(ran > 150);
}

static void
storage(void)
{
    cps_arena *a = cps_arena_create();
    static const cps_dtype kinds[] = {CPS_DT_BF16, CPS_DT_FP8E5M2, CPS_DT_I16,
                                      CPS_DT_U64,  CPS_DT_BOOL,    CPS_DT_FP4E2M1_X4};
    for (size_t k = 0; k < cps_countof(kinds); k++) {
        cps_type t = cps_type_make(kinds[k], 1, (int64_t[]){4});
        uint8_t in[32] = {0x40, 0x01, 1, 0, 0x80, 0xBF, 7, 0x11, 9}, out[32] = {0};
        if (kinds[k] == CPS_DT_BOOL)
            in[0] = 1, in[1] = 0;
        cps_tensor v = cps_tensor_from(a, &t, in);
        cps_tensor_store(&v, kinds[k], out);
        CHECK(memcmp(in, out, (size_t)cps_type_bytes(&t)) == 0);
    }
    cps_type t = cps_type_make(CPS_DT_FP32, 1, (int64_t[]){2});
    cps_tensor v = cps_tensor_from(a, &t, (float[]){1.00390625f, -2.5f});
    uint16_t half[2];
    cps_tensor_store(&v, CPS_DT_BF16, half); // a tie goes to even
    CHECK(half[0] == 0x3F80 && half[1] == 0xC020);
    int8_t bytes[2];
    cps_tensor_store(&v, CPS_DT_I8, bytes);
    CHECK(bytes[0] == 1 && bytes[1] == -2);
    cps_arena_destroy(a);
}

int
main(void)
{
    precision();
    integers();
    calls();
    refused();
    threads();
    random_modules();
    storage();
    return CHECK_DONE();
}
