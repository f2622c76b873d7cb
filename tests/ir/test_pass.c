/* Folding, common subexpressions, dead code: on random modules the outputs before and after are
 * the same, the module stays verified, and a second run changes nothing. Folding rounds each
 * constant it makes to its dtype: on modules of constants alone, outputs are exactly the
 * rounded ones; with inputs, only structure is compared. Hand-made cases pin what each pass
 * does. */
#include "ir/pass.h"
#include "tests/check.h"
#include "tests/ir/gen.h"

#include <math.h>

// Equal bits of meaning: NaN equals NaN, -0 does not equal 0.
static bool
same_number(double x, double y)
{
    return (isnan(x) && isnan(y)) || (x == y && !signbit(x) == !signbit(y));
}

typedef bool (*pass_fn)(cps_module *, cps_diags *);

static void
same_outputs(const char *pass, uint64_t seed, const cps_func *f, const cps_tensor *a,
             const cps_tensor *b, bool rounded)
{
    for (uint32_t i = 0; i < f->outputs.n; i++) {
        int64_t n = cps_type_count(&a[i].type);
        bool ok = cps_type_eq(&a[i].type, &b[i].type);
        for (int64_t k = 0; k < n && ok; k++)
            ok = a[i].f ? same_number(rounded ? cps_round_f64(a[i].type.dtype, a[i].f[k])
                                              : a[i].f[k],
                                      b[i].f[k])
                        : a[i].i[k] == b[i].i[k];
        if (!ok)
            fprintf(stderr, "%s, seed %llu, output %u\n", pass, (unsigned long long)seed, i);
        CHECK(ok);
    }
}

static void
property(const char *name, pass_fn pass, bool inputs, bool rounded, bool compare)
{
    int ran = 0;
    for (uint64_t seed = 1; seed <= 150; seed++) {
        cps_arena *a = cps_arena_create();
        cps_diags *d = cps_diags_create(), *quiet = cps_diags_create();
        cps_module *m = gen_module(a, d, seed * 7919, &(gen_opts){50, inputs, false});
        cps_func *f = m->funcs.data[0];
        cps_tensor *in = gen_inputs(a, f, seed), before[8], after[8];
        bool ok = cps_ir_eval(a, m, f, in, before, NULL, quiet);
        CHECK(pass(m, d));
        CHECK(cps_ir_verify(m, d));
        CHECK_INT(cps_ir_eval(a, m, f, in, after, NULL, quiet), ok);
        if (ok && compare)
            same_outputs(name, seed, f, before, after, rounded);
        ran += ok;
        cps_buf one = {0}, two = {0};
        cps_ir_print(m, &one);
        CHECK(pass(m, d));
        cps_ir_print(m, &two);
        CHECK_STR(two.data, one.data);
        CHECK_INT(cps_diags_count(d), 0);
        cps_buf_fini(&one);
        cps_buf_fini(&two);
        cps_diags_destroy(d);
        cps_diags_destroy(quiet);
        cps_arena_destroy(a);
    }
    CHECK(ran > 100);
}

// What a pass makes of a function, without the header.
static void
makes(pass_fn pass, const char *body, const char *want)
{
    cps_arena *a = cps_arena_create();
    cps_diags *d = cps_diags_create();
    cps_buf text = {0}, got = {0};
    cps_buf_printf(&text, "copse.graph 1\nmodule \"\"\nfunc @f {\n%s}\n", body);
    cps_module *m = cps_ir_parse(a, text.data, text.n, 0, d, NULL, NULL);
    CHECK(m);
    if (m) {
        CHECK(pass(m, d));
        CHECK(cps_ir_verify(m, d));
        cps_ir_print(m, &got);
        const char *head = "copse.graph 1\nmodule \"\"\nfunc @f {\n";
        CHECK(strncmp(got.data, head, strlen(head)) == 0);
        cps_buf w = {0};
        cps_buf_printf(&w, "%s}\n", want);
        CHECK_STR(got.data + strlen(head), w.data);
        cps_buf_fini(&w);
    }
    CHECK_INT(cps_diags_count(d), 0);
    cps_buf_fini(&text);
    cps_buf_fini(&got);
    cps_diags_destroy(d);
    cps_arena_destroy(a);
}

static void
by_hand(void)
{
    // A chain is rounded once, at its end: (1/3) * 3 is 1, not 3 * bf16(1/3).
    makes(cps_ir_fold,
          "%a = const bf16[] [1.0]\n%b = const bf16[] [3.0]\n%c = div %a, %b\n%e = mul %c, %b\n"
          "input %x: bf16[2]\n%y = add %x, %e\noutput \"y\" %y\n",
          "  input %x.1: bf16[2]\n  %e.2 = const bf16[] [1.0]\n  %y.3 = add %x.1, %e.2 : "
          "bf16[2]\n"
          "  output \"y\" %y.3\n");
    // Shape arithmetic; a result of two of which one is needed.
    makes(cps_ir_fold,
          "%s = const i64[3] [2, 9, 4]\n%v, %i = sort %s {axis=0, descending=true}\n"
          "output \"i\" %i\n",
          "  %i.1 = const i64[3] [1, 2, 0]\n  output \"i\" %i.1\n");
    // What has no result stays, the rest is folded.
    makes(cps_ir_fold,
          "%a = const i32[1] [1]\n%z = const i32[1] [0]\n%q = div %a, %z\n%s = add %a, %a\n"
          "output \"q\" %q\noutput \"s\" %s\n",
          "  %a.1 = const i32[1] [1]\n  %z.2 = const i32[1] [0]\n"
          "  %q.3 = div %a.1, %z.2 : i32[1]\n  %s.4 = const i32[1] [2]\n"
          "  output \"q\" %q.3\n  output \"s\" %s.4\n");
    makes(cps_ir_dce,
          "input %x: fp32[2]\ninput %u: fp32[2]\n%a = exp %x\n%b = exp %a\n%c = call @f %b : "
          "i8[1]\n"
          "output \"y\" %a\n",
          "  input %x.1: fp32[2]\n  input %u.2: fp32[2]\n  %a.3 = exp %x.1 : fp32[2]\n"
          "  output \"y\" %a.3\n");
    makes(
        cps_ir_cse,
        "input %x: fp32[2]\n%k = const fp32[] [2.0]\n%l = const fp32[] [2.0]\n%a = add %x, %k\n"
        "%b = add %x, %l\n%c = reduce_sum %a {axes=[0], keep=true}\n"
        "%d = reduce_sum %b {axes=[0], keep=false}\n%e = reduce_sum %b {axes=[0], keep=true}\n"
        "output \"c\" %c\noutput \"d\" %d\noutput \"e\" %e\n",
        "  input %x.1: fp32[2]\n  %k.2 = const fp32[] [2.0]\n  %a.3 = add %x.1, %k.2 : "
        "fp32[2]\n"
        "  %c.4 = reduce_sum %a.3 {axes=[0], keep=true} : fp32[1]\n"
        "  %d.5 = reduce_sum %a.3 {axes=[0], keep=false} : fp32[]\n"
        "  output \"c\" %c.4\n  output \"d\" %d.5\n  output \"e\" %c.4\n");
    // NaN payloads and signed zeros are different constants; -0.0 + x is not 0.0 + x.
    makes(
        cps_ir_cse,
        "%k = const fp32[] [0.0]\n%l = const fp32[] [-0.0]\noutput \"k\" %k\noutput \"l\" %l\n",
        "  %k.1 = const fp32[] [0.0]\n  %l.2 = const fp32[] [-0.0]\n  output \"k\" %k.1\n"
        "  output \"l\" %l.2\n");
    makes(
        cps_ir_cse,
        "input %x: fp32[2]\n%a = call @f %x {n=1} : fp32[2]\n%b = call @f %x {n=1} : fp32[2]\n"
        "%c = call @f %x {n=2} : fp32[2]\noutput \"a\" %a\noutput \"b\" %b\noutput \"c\" %c\n",
        "  input %x.1: fp32[2]\n  %a.2 = call @f %x.1 {n=1} : fp32[2]\n"
        "  %c.3 = call @f %x.1 {n=2} : fp32[2]\n"
        "  output \"a\" %a.2\n  output \"b\" %a.2\n  output \"c\" %c.3\n");
}

static void
sizes(void)
{
    // Weights are converted however large; a large broadcast is left alone.
    cps_arena *a = cps_arena_create();
    cps_diags *d = cps_diags_create();
    cps_module *m = cps_module_new(a, "m");
    cps_builder b = {.m = m, .f = cps_func_new(m, "f"), .d = d};
    cps_type t = cps_type_make(CPS_DT_FP32, 2, (int64_t[]){1024, 1100});
    float *w = cps_arena_raw(a, (size_t)cps_type_bytes(&t));
    for (int64_t i = 0; i < cps_type_count(&t); i++)
        w[i] = (float)(i % 251);
    cps_val x = cps_b_const(&b, t, w, "w");
    x = cps_b_transpose(&b, cps_b_cast(&b, x, CPS_DT_BF16), (int64_t[]){1, 0});
    cps_b_output(&b, "w", x);
    cps_b_output(&b, "big", cps_b_broadcast(&b, cps_b_scalar(&b, CPS_DT_FP32, 1), 2, t.dim));
    CHECK(cps_ir_fold(m, d));
    CHECK_INT(b.f->nodes.n, 3);
    const cps_node *n = &b.f->nodes.data[0];
    CHECK(n->op == CPS_OP_CONST);
    const cps_const *c = &m->consts.data[n->cst];
    CHECK(c->type.dtype == CPS_DT_BF16 && c->type.dim[0] == 1100);
    CHECK(cps_to_f32(CPS_DT_BF16, (const uint16_t *)c->data + 1024 * 7 + 3) ==
          (float)((3 * 1100 + 7) % 251));
    cps_diags_destroy(d);
    cps_arena_destroy(a);
}

int
main(void)
{
    by_hand();
    sizes();
    property("dce", cps_ir_dce, true, false, true);
    property("cse", cps_ir_cse, true, false, true);
    property("fold", cps_ir_fold, false, true, true);
    property("fold", cps_ir_fold, true, false, false);
    return CHECK_DONE();
}
