/* Activation functions: exact values, evaluated in binary64 and rounded once to fp32, but for exp (exp.h),
 * which most kernels wait for. The device has piecewise cubics whose tables are not public.
 *
 * Some functions hold only in a documented range (NKI docs, supported math functions). Outside
 * it the device gives garbage; here the result is NaN so that nobody relies on it, except at 0,
 * infinities and NaN, where the exact value stands. sin is documented to continue as the cubic
 * of its last segment. */
#include "runtime/base/exp.h"
#include "runtime/sim/machine.h"

static double
sigmoid(double x)
{
    return 1.0 / (1.0 + exp(-x));
}

static double
softplus(double x)
{
    return x > 0 ? x + log1p(exp(-x)) : log1p(exp(x));
}

static double
normal_cdf(double x)
{
    return 0.5 * erfc(-x * M_SQRT1_2);
}

static double
sin_segment(double x)
{
    if (fabs(x) <= M_PI)
        return sin(x);
    double t = x > 0 ? x - M_PI : x + M_PI;
    return -t + t * t * t / 6;
}

static double
silu_dx(double x)
{
    double s = sigmoid(x);
    return s * (1 + x * (1 - s));
}

static double
gelu_sigmoid_dx(double x)
{
    double s = sigmoid(1.702 * x);
    return s + 1.702 * x * s * (1 - s);
}

/* x times something that vanishes as fast at minus infinity: 0, not NaN. */
static double
times(double x, double y)
{
    return y == 0 ? 0 * (isinf(x) ? 1 : x) : x * y;
}

/* Enumerator, value, and the range of |x| (or of x, for positive arguments) as powers of two;
 * 0, 0: everywhere. */
#define ACT_FUNCTIONS(FN)                                                                      \
    FN(IDENTITY, x, 0, 0)                                                                      \
    FN(COPY, x, 0, 0)                                                                          \
    FN(RELU, x > 0 || x != x ? x : 0, 0, 0)                                                    \
    FN(LRELU, x < 0 ? x * (alpha == 0 ? 0.01f : alpha) : x, 0, 0)                              \
    FN(PRELU, x < 0 ? x * alpha : x, 0, 0)                                                     \
    FN(SIGMOID, sigmoid(x), 0, 0)                                                              \
    FN(TANH, tanh(x), 0, 0)                                                                    \
    FN(EXP, cps_exp_f32((float)x), 0, 0)                                                       \
    FN(SQRT, sqrt(x), -116, 118)                                                               \
    FN(SOFTPLUS, softplus(x), 0, 0)                                                            \
    FN(LN, log(x), -64, 64)                                                                    \
    FN(SIN, sin_segment(x), 0, 0)                                                              \
    FN(ERF, erf(x), 0, 0)                                                                      \
    FN(DERIVATIVE_ERF, M_2_SQRTPI *exp(-x *x), 0, 0)                                           \
    FN(GELU, times(x, normal_cdf(x)), 0, 0)                                                    \
    FN(MISH, times(x, tanh(softplus(x))), 0, 0)                                                \
    FN(GELU_APPRX_TANH,                                                                        \
       times(x, sigmoid(2 * 0.79788456080286535588 * (x + 0.044715 * x * x * x))), 0, 0)       \
    FN(GELU_APPRX_SIGMOID, times(x, sigmoid(1.702 * x)), 0, 0)                                 \
    FN(ARCTAN, fabs(x) <= M_PI_2 ? atan(x) : NAN, 0, 0)                                        \
    FN(RSQRT, 1 / sqrt(x), -87, 97)                                                            \
    FN(SQUARE, x *x, 0, 0)                                                                     \
    FN(SIGN, x > 0 ? 1 : x < 0 ? -1 : x, 0, 0)                                                 \
    FN(DERIVATIVE_GELU, normal_cdf(x) + times(x, exp(-x * x / 2) * 0.3989422804014327), 0, 0)  \
    FN(ABS, fabs(x), 0, 0)                                                                     \
    FN(ABS_RECIPROCAL_SQRT, 1 / sqrt(fabs(x)), 0, 0)                                           \
    FN(IS_FINITE, isfinite(x) ? 1 : 0, 0, 0)                                                   \
    FN(SILU, times(x, sigmoid(x)), 0, 0)                                                       \
    FN(DERIVATIVE_SILU, isinf(x) ? (x > 0 ? 1 : 0) : silu_dx(x), 0, 0)                         \
    FN(DERIVATIVE_GELU_APPRX_SIGMOID, isinf(x) ? (x > 0 ? 1 : 0) : gelu_sigmoid_dx(x), 0, 0)   \
    FN(RECIPROCAL, 1 / x, -42, 42)                                                             \
    FN(MEMSET_ZERO, 0, 0, 0)

static inline float
ranged(double x, double y, int lo, int hi)
{
    double m = fabs(x);
    bool in = m == 0 || !isfinite(m) || (m >= ldexp(1, lo) && m <= ldexp(1, hi));
    return in ? (float)y : NAN;
}

/* One value after another. */
static void
act_plain(unsigned fn, float alpha, const float *in, float *out, size_t n)
{
    (void)alpha;
    switch (fn) {
#define FN(name, expr, lo, hi)                                                                 \
    case CPS_ACTFN_##name:                                                                     \
        for (size_t k = 0; k < n; k++) {                                                       \
            double x = in[k];                                                                  \
            (void)x;                                                                           \
            double y = expr;                                                                   \
            out[k] = (lo) == (hi) ? (float)y : ranged(x, y, lo, hi);                           \
        }                                                                                      \
        break;
        ACT_FUNCTIONS(FN)
#undef FN
    default:
        break;
    }
}

/* Functions that the wide loops have for most values. */
static wide_smooth
smooth_of(unsigned fn)
{
    switch (fn) {
    case CPS_ACTFN_SIGMOID:
        return WIDE_SIGMOID;
    case CPS_ACTFN_SILU:
        return WIDE_SILU;
    case CPS_ACTFN_GELU:
        return WIDE_GELU;
    case CPS_ACTFN_GELU_APPRX_TANH:
        return WIDE_GELU_TANH;
    case CPS_ACTFN_GELU_APPRX_SIGMOID:
        return WIDE_GELU_SIGMOID;
    case CPS_ACTFN_TANH:
        return WIDE_TANH;
    default:
        return WIDE_SMOOTHS;
    }
}

static void
act_smooth(const wide_loops *w, unsigned fn, const float *in, float *out, size_t n)
{
    wide_smooth f = smooth_of(fn);
    for (size_t k = 0; k < n; k += WIDE_SMOOTH_MOST) { // in and out may be the same
        float x[WIDE_SMOOTH_MOST];
        uint32_t unsure[WIDE_SMOOTH_MOST];
        size_t some = CPS_MIN(n - k, (size_t)WIDE_SMOOTH_MOST);
        memcpy(x, in + k, some * sizeof *x);
        if (!w->smooth(f, x, out + k, unsure, some))
            continue;
        for (size_t j = 0; j < some; j++) {
            if (unsure[j])
                act_plain(fn, 0, &x[j], &out[k + j], 1);
        }
    }
}

void
act_row(const wide_loops *w, unsigned fn, float alpha, const float *in, float *out, size_t n)
{
    if (fn == CPS_ACTFN_EXP) {
        w->exp(in, out, n);
        return;
    }
    if (fn == CPS_ACTFN_SQUARE) { // the product of two floats is exact in binary64: one rounding
        wide_side a = {.at = (uint8_t *)(uintptr_t)in}, o = {.at = (uint8_t *)out};
        wide_square(w, &o, &a, 1, n);
        return;
    }
    if (fn == CPS_ACTFN_COPY || fn == CPS_ACTFN_IDENTITY)
        w->affine(in, 1, -0.0f, out, n);
    else if (smooth_of(fn) != WIDE_SMOOTHS)
        act_smooth(w, fn, in, out, n);
    else
        act_plain(fn, alpha, in, out, n);
}

bool
act_known(unsigned fn)
{
    switch (fn) {
#define FN(name, expr, lo, hi) case CPS_ACTFN_##name:
        ACT_FUNCTIONS(FN)
#undef FN
        return true;
    default:
        return false;
    }
}

/* ---- table sets ---- */

typedef struct fn_row {
    uint8_t wire;
    int8_t set;
    const char *name, *alias;
} fn_row;

static const fn_row fns[] = {
#define CPS_ACTFN(id, wire, name, alias, set, ...) {wire, set, name, alias},
#include "codegen/isa/act.def"
};

static const struct {
    uint8_t index;
    const char *holds;
} sets[] = {
#define CPS_ACTSET(index, name, holds) {index, holds},
#include "codegen/isa/act.def"
};

static bool
has_word(const char *list, const char *word)
{
    size_t n = strlen(word);
    for (const char *p = list; n && (p = strstr(p, word)) != NULL; p++) {
        if ((p == list || p[-1] == ' ') && (p[n] == 0 || p[n] == ' '))
            return true;
    }
    return false;
}

uint32_t
act_sets(unsigned fn)
{
    for (unsigned k = 0; k < cps_countof(fns); k++) {
        if (fns[k].wire != fn)
            continue;
        if (fns[k].set < 0)
            return UINT32_MAX;
        uint32_t m = 1u << fns[k].set;
        for (unsigned q = 0; q < cps_countof(sets); q++) {
            if (has_word(sets[q].holds, fns[k].name) || has_word(sets[q].holds, fns[k].alias))
                m |= 1u << sets[q].index;
        }
        return m;
    }
    return 0;
}
