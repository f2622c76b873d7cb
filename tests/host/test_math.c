/* The vector mathematics against libm in binary64: the worst error in units in the last place
 * over samples of every exponent, sign and special value, and over the usual range of
 * activations. */
#include "tests/check.h"
#include "tests/host/rig.h"

#include <math.h>
#include <stdlib.h>

enum { WIDE = 1 << 17, NEAR = 1 << 16, N = WIDE + NEAR };

static double
sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}
static double
rsqrt(double x)
{
    return 1 / sqrt(x);
}
static double
reciprocal(double x)
{
    return 1 / x;
}
static double
softplus(double x)
{
    return x > 0 ? x + log1p(exp(-x)) : log1p(exp(x));
}
static double
gelu(double x)
{
    return 0.5 * x * erfc(-x * M_SQRT1_2);
}
static double
gelu_tanh(double x)
{
    return x * sigmoid(2 * 0.79788456080286535588 * (x + 0.044715 * x * x * x));
}
static double
silu(double x)
{
    return x * sigmoid(x);
}
static double
swish(double x)
{
    return x * sigmoid(1.702 * x);
}
static double
mish(double x)
{
    return x * tanh(softplus(x));
}

/* `ulp` is the bound claimed; `floor`: errors below this much absolutely do not count (tails
 * that underflow on the way). */
static const struct {
    cps_op op;
    double (*f)(double);
    double ulp, floor;
} rows[] = {
    {CPS_OP_EXP, exp, 2, 0},
    {CPS_OP_LOG, log, 2, 0},
    {CPS_OP_SQRT, sqrt, 0.51, 0},
    {CPS_OP_RSQRT, rsqrt, 2, 0},
    {CPS_OP_RECIPROCAL, reciprocal, 0.51, 0},
    {CPS_OP_SIN, sin, 2, 0},
    {CPS_OP_COS, cos, 2, 0},
    {CPS_OP_ARCTAN, atan, 2, 0},
    {CPS_OP_TANH, tanh, 2, 0},
    {CPS_OP_ERF, erf, 2, 0},
    {CPS_OP_SIGMOID, sigmoid, 3, 0x1p-126},
    {CPS_OP_SOFTPLUS, softplus, 4, 0},
    {CPS_OP_GELU, gelu, 6, 0x1p-120},
    {CPS_OP_GELU_TANH, gelu_tanh, 250, 0x1p-120},
    {CPS_OP_SILU, silu, 4, 0x1p-120},
    {CPS_OP_SWISH, swish, 92, 0x1p-120},
    {CPS_OP_MISH, mish, 4, 0x1p-120},
    {CPS_OP_FLOOR, floor, 0, 0},
    {CPS_OP_CEIL, ceil, 0, 0},
    {CPS_OP_ROUND, rint, 0, 0},
};

// Error of `got` in units of the last place of the exact result.
static double
ulps(float got, double want)
{
    if (isnan(want) || isinf(want))
        return isnan(want) ? (isnan(got) ? 0 : INFINITY) : (double)got == want ? 0 : INFINITY;
    if (isinf(got)) // overflow is right when the exact result rounds to infinity
        return fabs(want) > 3.4028235677973366e38 && (got > 0) == (want > 0) ? 0 : INFINITY;
    if (fabs(want) >= 3.4028235677973366e38)
        return INFINITY;
    int e = want == 0 ? -149 : CPS_MAX(ilogb(want) - 23, -149);
    return fabs((double)got - want) / ldexp(1, e);
}

static void
sample(float *x)
{
    cps_rng r;
    cps_rng_init(&r, 7, 0);
    for (uint32_t i = 0; i < WIDE; i++)
        x[i] = cps_bits_f32(i * 32771u + (i & 1 ? 0x80000000u : 0));
    for (int i = WIDE; i < N; i++)
        x[i] = (float)(cps_rng_normal(&r) * 4);
    static const float odd[] = {0.0f,        -0.0f,     INFINITY,  -INFINITY,
                                NAN,         1.0f,      -1.0f,     88.72284f,
                                -103.97208f, 0x1p-149f, 0x1p-126f, 0x1.fffffep127f,
                                1.5f,        -1.5f,     2.5f,      0.5f,
                                -0.5f,       0x1p20f,   0x1p24f,   16367173.0f * 0x1p72f};
    memcpy(x, odd, sizeof odd);
}

static void
unary(cps_arena *a)
{
    cps_diags *d = cps_diags_create();
    cps_module *m = cps_module_new(a, "math");
    cps_builder b = {.m = m, .f = cps_func_new(m, "main"), .d = d};
    cps_val x = cps_b_input(&b, "x", cps_type_make(CPS_DT_FP32, 1, (int64_t[]){N}));
    float *in = malloc(N * sizeof *in), *out[cps_countof(rows)];
    sample(in);
    for (size_t i = 0; i < cps_countof(rows); i++) {
        cps_b_output(&b, "y", cps_b_unary(&b, rows[i].op, x));
        out[i] = malloc(N * sizeof(float));
    }
    rig r;
    CHECK(rig_open(&r, a, m, b.f, 2, NULL, 64, d));
    CHECK(rig_run(&r, b.f, (const void *[]){in}, (void **)out));
    for (size_t i = 0; i < cps_countof(rows); i++) {
        double worst = 0;
        int at = 0;
        for (int k = 0; k < N; k++) {
            double want = rows[i].f((double)in[k]);
            double u = ulps(out[i][k], want);
            if (fabs((double)out[i][k] - want) <= rows[i].floor)
                continue;
            if (u > worst)
                worst = u, at = k;
        }
        printf("%-12s %.2f ulp at %a\n", cps_ops[rows[i].op].name, worst, (double)in[at]);
        if (worst > rows[i].ulp)
            fprintf(stderr, "%s(%a) is %.9g, want %.9g: %.3g ulp\n", cps_ops[rows[i].op].name,
                    (double)in[at], (double)out[i][at], rows[i].f((double)in[at]), worst);
        CHECK(worst <= rows[i].ulp);
        free(out[i]);
    }
    rig_close(&r);
    free(in);
    cps_diags_destroy(d);
}

static double
floored(double x, double y)
{
    double z = fmod(x, y);
    return z != 0 && (z < 0) != (y < 0) ? z + y : z;
}

static void
binary(cps_arena *a)
{
    enum { M = 1 << 16 };
    cps_diags *d = cps_diags_create();
    cps_module *m = cps_module_new(a, "math");
    cps_builder b = {.m = m, .f = cps_func_new(m, "main"), .d = d};
    cps_type t = cps_type_make(CPS_DT_FP32, 1, (int64_t[]){M});
    cps_val in[2] = {cps_b_input(&b, "x", t), cps_b_input(&b, "y", t)}, v;
    float *x[2] = {malloc(M * 4), malloc(M * 4)}, *out[3];
    cps_attr c_mod = cps_a_bool("fmod", true);
    cps_rng r;
    cps_rng_init(&r, 9, 0);
    static const float odd[] = {0.0f, -0.0f, 1,    -1, INFINITY,  -INFINITY,
                                NAN,  2,     0.5f, -3, 0x1p-149f, 0x1.fffffep127f,
                                3,    -2,    -0.5f};
    for (int i = 0; i < M; i++)
        for (int k = 0; k < 2; k++)
            x[k][i] = i % 4 == 0   ? odd[cps_rng_below(&r, cps_countof(odd))]
                      : i % 4 == 1 ? cps_bits_f32((uint32_t)cps_rng_next(&r))
                      : i % 4 == 2 ? (float)((double)cps_rng_below(&r, 41) - 20)
                                   : (float)(cps_rng_normal(&r) * 10);
    cps_b_output(&b, "pow", cps_b_binary(&b, CPS_OP_POW, in[0], in[1]));
    cps_b_node(&b, CPS_OP_MOD, 2, in, 1, &c_mod, &v);
    cps_b_output(&b, "fmod", v);
    cps_b_output(&b, "mod", cps_b_binary(&b, CPS_OP_MOD, in[0], in[1]));
    for (int k = 0; k < 3; k++)
        out[k] = malloc(M * 4);
    rig g;
    CHECK(rig_open(&g, a, m, b.f, 2, NULL, 64, d));
    CHECK(rig_run(&g, b.f, (const void *const *)x, (void **)out));
    double (*const f[3])(double, double) = {pow, fmod, floored};
    static const double bound[3] = {1, 0, 0.51};
    for (int k = 0; k < 3; k++) {
        double worst = 0;
        int at = 0;
        for (int i = 0; i < M; i++) {
            double u = ulps(out[k][i], f[k]((double)x[0][i], (double)x[1][i]));
            if (u > worst)
                worst = u, at = i;
        }
        printf("%-12s %.2f ulp\n", b.f->output_names.data[k], worst);
        if (worst > bound[k])
            fprintf(stderr, "%s(%a, %a) is %.9g, want %.9g\n", b.f->output_names.data[k],
                    (double)x[0][at], (double)x[1][at], (double)out[k][at],
                    f[k]((double)x[0][at], (double)x[1][at]));
        CHECK(worst <= bound[k]);
        free(out[k]);
    }
    rig_close(&g);
    free(x[0]);
    free(x[1]);
    cps_diags_destroy(d);
}

int
main(void)
{
    cps_arena *a = cps_arena_create();
    unary(a);
    binary(a);
    cps_arena_destroy(a);
    return CHECK_DONE();
}
