/* Operators of the engines on the host: binary32 arithmetic rounded after each operator,
 * bitwise on raw words, integer arithmetic, and the activation functions.
 *
 * Where documents leave a choice: maximum and minimum keep a NaN of either side, mod has the
 * divisor's sign, division of integers by zero gives 0. Activation functions are exact values
 * rounded to binary32, for the tables are not public; outside a documented range the device
 * gives garbage and this gives NaN, so that nothing relies on it (isa-semantics 2.6); sin
 * continues as the cubic of its last segment. Functions of x times something that vanishes at
 * -inf give 0 there. */
#include "ir/tile_eval.h"
#include "runtime/base/exp.h"

#include <math.h>

static float
larger(float x, float y)
{
    return x > y || x != x ? x : y;
}

static float
smaller(float x, float y)
{
    return x < y || x != x ? x : y;
}

static float
floored(float x, float y)
{
    float r = fmodf(x, y);
    return r != 0 && (r < 0) != (y < 0) ? r + y : r;
}

#define OPERATORS(OP)                                                                          \
    OP(BYPASS, x)                                                                              \
    OP(ADD, x + y)                                                                             \
    OP(SUBTRACT, x - y)                                                                        \
    OP(MULT, x *y)                                                                             \
    OP(DIVIDE, x / y)                                                                          \
    OP(MAX, larger(x, y))                                                                      \
    OP(MIN, smaller(x, y))                                                                     \
    OP(LOGICAL_AND, (float)(x != 0 && y != 0))                                                 \
    OP(LOGICAL_OR, (float)(x != 0 || y != 0))                                                  \
    OP(LOGICAL_XOR, (float)((x != 0) != (y != 0)))                                             \
    OP(IS_EQ, (float)(x == y))                                                                 \
    OP(IS_NE, (float)(x != y))                                                                 \
    OP(IS_GT, (float)(x > y))                                                                  \
    OP(IS_GE, (float)(x >= y))                                                                 \
    OP(IS_LE, (float)(x <= y))                                                                 \
    OP(IS_LT, (float)(x < y))                                                                  \
    OP(ABS_DIFF, fabsf(x - y))                                                                 \
    OP(ABS_VALUE, fabsf(x))                                                                    \
    OP(POW, (float)pow((double)x, (double)y))                                                  \
    OP(MOD, floored(x, y))                                                                     \
    OP(RSQRT, (float)(1 / sqrt((double)x)))                                                    \
    OP(ABS_MAX, larger(fabsf(x), fabsf(y)))                                                    \
    OP(ABS_MIN, smaller(fabsf(x), fabsf(y)))                                                   \
    OP(RELU, larger(x, 0.0f))                                                                  \
    OP(SQUARE, x *x)

bool
cps_alu_f32(unsigned op, const float *a, int sa, const float *b, int sb, float *out, int64_t n)
{
    switch (op) {
#define OP(name, expr)                                                                         \
    case CPS_ALU_##name:                                                                       \
        if (sa == 1 && sb == 1) {                                                              \
            for (int64_t i = 0; i < n; i++) {                                                  \
                float x = a[i], y = b[i];                                                      \
                (void)y;                                                                       \
                out[i] = (expr);                                                               \
            }                                                                                  \
        } else if (sa == 1) {                                                                  \
            float y = b[0];                                                                    \
            (void)y;                                                                           \
            for (int64_t i = 0; i < n; i++) {                                                  \
                float x = a[i];                                                                \
                out[i] = (expr);                                                               \
            }                                                                                  \
        } else {                                                                               \
            float x = a[0];                                                                    \
            for (int64_t i = 0; i < n; i++) {                                                  \
                float y = b[i * sb];                                                           \
                (void)y;                                                                       \
                out[i] = (expr);                                                               \
            }                                                                                  \
        }                                                                                      \
        return true;
        OPERATORS(OP)
#undef OP
    default:
        return false;
    }
}

float
cps_alu_f32_identity(unsigned op)
{
    switch (op) {
    case CPS_ALU_MULT:
    case CPS_ALU_LOGICAL_AND:
        return 1;
    case CPS_ALU_MAX:
        return -INFINITY;
    case CPS_ALU_MIN:
    case CPS_ALU_ABS_MIN:
        return INFINITY;
    default:
        return 0;
    }
}

uint32_t
cps_alu_bits(unsigned op, uint32_t a, uint32_t b, unsigned width)
{
    uint32_t all = width == 32 ? UINT32_MAX : (UINT32_C(1) << width) - 1;
    uint32_t sign = a >> (width - 1) & 1 ? all : 0; // the sign bit everywhere
    unsigned by = b < width ? b : width;
    switch (op) {
    case CPS_ALU_BITWISE_NOT:
        return ~a & all;
    case CPS_ALU_BITWISE_AND:
        return a & b;
    case CPS_ALU_BITWISE_OR:
        return a | b;
    case CPS_ALU_BITWISE_XOR:
        return a ^ b;
    case CPS_ALU_LOGICAL_SHIFT_LEFT:
    case CPS_ALU_ARITH_SHIFT_LEFT: // the same bits (isa-semantics 2.5)
        return (uint32_t)((uint64_t)a << by) & all;
    case CPS_ALU_LOGICAL_SHIFT_RIGHT:
        return (uint32_t)((uint64_t)a >> by);
    case CPS_ALU_ARITH_SHIFT_RIGHT:
        return (uint32_t)(((uint64_t)sign << width | a) >> by) & all;
    default:
        return a;
    }
}

static int64_t
magnitude(int64_t x)
{
    return x < 0 ? (int64_t)(0 - (uint64_t)x) : x;
}

int64_t
cps_alu_int(unsigned op, int64_t a, int64_t b)
{
    switch (op) {
    case CPS_ALU_ADD:
    case CPS_ALU_ADD_INT:
        return (int64_t)((uint64_t)a + (uint64_t)b);
    case CPS_ALU_SUBTRACT:
    case CPS_ALU_SUB_INT:
        return (int64_t)((uint64_t)a - (uint64_t)b);
    case CPS_ALU_MULT:
    case CPS_ALU_MULT_INT:
    case CPS_ALU_MULT_UINT:
        return (int64_t)((uint64_t)a * (uint64_t)b);
    case CPS_ALU_DIV_INT:
    case CPS_ALU_DIV_UINT:
        return b == -1 ? (int64_t)(0 - (uint64_t)a) : b ? a / b : 0;
    case CPS_ALU_MOD_INT:
    case CPS_ALU_MOD_UINT: {
        int64_t r = b && b != -1 ? a % b : 0;
        return r && (r < 0) != (b < 0) ? r + b : r;
    }
    case CPS_ALU_EQ_INT:
        return a == b;
    case CPS_ALU_NE_INT:
        return a != b;
    case CPS_ALU_GT_INT:
    case CPS_ALU_GT_UINT:
        return a > b;
    case CPS_ALU_GE_INT:
    case CPS_ALU_GE_UINT:
        return a >= b;
    case CPS_ALU_LE_INT:
    case CPS_ALU_LE_UINT:
        return a <= b;
    case CPS_ALU_LT_INT:
    case CPS_ALU_LT_UINT:
        return a < b;
    case CPS_ALU_MAX:
    case CPS_ALU_MAX_INT:
    case CPS_ALU_MAX_UINT:
        return CPS_MAX(a, b);
    case CPS_ALU_MIN:
    case CPS_ALU_MIN_INT:
    case CPS_ALU_MIN_UINT:
        return CPS_MIN(a, b);
    case CPS_ALU_ABS_MAX_INT:
    case CPS_ALU_AMAX_INT:
    case CPS_ALU_AMAX_UINT:
        return CPS_MAX(magnitude(a), magnitude(b));
    case CPS_ALU_ABS_MIN_INT:
    case CPS_ALU_AMIN_INT:
    case CPS_ALU_AMIN_UINT:
        return CPS_MIN(magnitude(a), magnitude(b));
    case CPS_ALU_ABS_DIFF_INT:
        return magnitude((int64_t)((uint64_t)a - (uint64_t)b));
    case CPS_ALU_ABS_VALUE_INT:
        return magnitude(a);
    default:
        return a;
    }
}

bool
cps_alu_compare(unsigned op, int64_t a, int64_t b)
{
    switch (op) {
    case CPS_ALU_IS_EQ:
        return a == b;
    case CPS_ALU_IS_NE:
        return a != b;
    case CPS_ALU_IS_GT:
        return a > b;
    case CPS_ALU_IS_GE:
        return a >= b;
    case CPS_ALU_IS_LE:
        return a <= b;
    default:
        return a < b;
    }
}

/* ---- activation functions ---- */

static double
sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

static double
softplus(double x)
{
    return x > 0 ? x + log1p(exp(-x)) : log1p(exp(x));
}

static double
cdf(double x)
{
    return 0.5 * erfc(-x * M_SQRT1_2);
}

// x times a factor that goes to 0 faster than x grows.
static double
fading(double x, double factor)
{
    return factor == 0 ? 0 * (isinf(x) ? 1 : x) : x * factor;
}

static double
sine(double x)
{
    double over = x > 0 ? x - M_PI : x + M_PI;
    return fabs(x) <= M_PI ? sin(x) : -over + over * over * over / 6;
}

static double
silu_slope(double x)
{
    double s = sigmoid(x);
    return isinf(x) ? (double)(x > 0) : s * (1 + x * (1 - s));
}

static double
swish_slope(double x)
{
    double s = sigmoid(1.702 * x);
    return isinf(x) ? (double)(x > 0) : s + 1.702 * x * s * (1 - s);
}

// |x| (for square roots and logarithms x) within [2^lo, 2^hi]; 0, infinities and NaN pass.
static bool
in_range(double x, int lo, int hi)
{
    double m = fabs(x);
    return m == 0 || !isfinite(m) || (m >= ldexp(1, lo) && m <= ldexp(1, hi));
}

#define FUNCTIONS(FN)                                                                          \
    FN(IDENTITY, x)                                                                            \
    FN(COPY, x)                                                                                \
    FN(RELU, x < 0 ? 0 : x)                                                                    \
    FN(LRELU, x < 0 ? (double)0.01f * x : x)                                                   \
    FN(PRELU, x < 0 ? 0 * x : x)                                                               \
    FN(SIGMOID, sigmoid(x))                                                                    \
    FN(TANH, tanh(x))                                                                          \
    FN(EXP, cps_exp_f32((float)x))                                                             \
    FN(SQRT, in_range(x, -116, 118) ? sqrt(x) : (double)NAN)                                   \
    FN(SOFTPLUS, softplus(x))                                                                  \
    FN(LN, in_range(x, -64, 64) ? log(x) : (double)NAN)                                        \
    FN(SIN, sine(x))                                                                           \
    FN(ERF, erf(x))                                                                            \
    FN(DERIVATIVE_ERF, M_2_SQRTPI *exp(-x *x))                                                 \
    FN(GELU, fading(x, cdf(x)))                                                                \
    FN(MISH, fading(x, tanh(softplus(x))))                                                     \
    FN(GELU_APPRX_TANH,                                                                        \
       fading(x, sigmoid(2 * 0.79788456080286535588 * (x + 0.044715 * x * x * x))))            \
    FN(GELU_APPRX_SIGMOID, fading(x, sigmoid(1.702 * x)))                                      \
    FN(ARCTAN, fabs(x) <= M_PI_2 ? atan(x) : (double)NAN)                                      \
    FN(RSQRT, in_range(x, -87, 97) ? 1 / sqrt(x) : (double)NAN)                                \
    FN(SQUARE, x *x)                                                                           \
    FN(SIGN, x > 0 ? 1 : x < 0 ? -1 : x)                                                       \
    FN(DERIVATIVE_GELU, cdf(x) + fading(x, exp(-x * x / 2) * 0.39894228040143267794))          \
    FN(ABS, fabs(x))                                                                           \
    FN(ABS_RECIPROCAL_SQRT, 1 / sqrt(fabs(x)))                                                 \
    FN(IS_FINITE, isfinite(x) ? 1 : 0)                                                         \
    FN(SILU, fading(x, sigmoid(x)))                                                            \
    FN(DERIVATIVE_SILU, silu_slope(x))                                                         \
    FN(DERIVATIVE_GELU_APPRX_SIGMOID, swish_slope(x))                                          \
    FN(RECIPROCAL, in_range(x, -42, 42) ? 1 / x : (double)NAN)                                 \
    FN(MEMSET_ZERO, 0 * (x == x))

bool
cps_act_f32(unsigned fn, const float *in, float *out, int64_t n)
{
    switch (fn) {
#define FN(name, expr)                                                                         \
    case CPS_ACTFN_##name:                                                                     \
        for (int64_t i = 0; i < n; i++) {                                                      \
            double x = (double)in[i];                                                          \
            out[i] = (float)(expr);                                                            \
        }                                                                                      \
        return true;
        FUNCTIONS(FN)
#undef FN
    default:
        return false;
    }
}
