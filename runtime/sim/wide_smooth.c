/* Functions around 1 / (1 + exp(-z)), and gelu, in binary64, many elements at once, for results that are what
 * act_fn.c gives: there one value after another comes from the C library and is rounded once to fp32. Here
 * the value is near that one, within a bound that is far below a step of fp32; where both ends of the bound
 * round to one fp32, so does whatever lies between. The others, few in a million, are told to the caller.
 *
 * Compiled once for each instruction set, as wide_rows.c; SMOOTH names the function. */
#include "runtime/sim/wide.h"

#include <math.h>
#include <string.h>

#if defined(__clang__)
#define LOOP _Pragma("clang loop vectorize(assume_safety)") for
#else
#define LOOP _Pragma("GCC ivdep") for
#endif
#define INLINE static inline __attribute__((always_inline))
#if defined(__FMA__)
#define MADD(x, y, z) __builtin_fma(x, y, z)
#else
#define MADD(x, y, z) ((x) * (y) + (z))
#endif

/* The library's functions are wrong by a few steps of binary64, 2^-50 of the value; exp_near by less than 2^-49; a
 * sum, a quotient and a product add a step each. */
#define REL 0x1p-45
/* 1 - e loses what e is wrong by. */
#define ABS_TANH 0x1p-45
/* act_fn.c rounds the argument of erfc, which x^2 / 2 steps of the value can come from. */
#define REL_GELU 0x1p-42
enum { REACH = 700, REACH_GELU = 98 }; /* of z: exp is a normal number of binary64; |x| is 14 */

/* exp of |z| <= REACH: 2^n times the series of exp(r) up to r^12, |r| <= ln(2) / 2; the next term is below
 * 2^-52. */
INLINE double
exp_near(double z)
{
    const double magic = 0x1.8p52; // what is added to it is rounded to a whole number
    double t = MADD(z, 0x1.71547652b82fep+0, magic), n = t - magic;
    double r = MADD(-n, 0x1.62e42feep-1, z), y = 1.0 / 479001600;
    r = MADD(-n, 0x1.a39ef35793c76p-33, r); // ln(2) in two parts: n times the first is exact
    y = MADD(y, r, 1.0 / 39916800);
    y = MADD(y, r, 1.0 / 3628800);
    y = MADD(y, r, 1.0 / 362880);
    y = MADD(y, r, 1.0 / 40320);
    y = MADD(y, r, 1.0 / 5040);
    y = MADD(y, r, 1.0 / 720);
    y = MADD(y, r, 1.0 / 120);
    y = MADD(y, r, 1.0 / 24);
    y = MADD(y, r, 1.0 / 6);
    y = MADD(y, r, 0.5);
    y = MADD(y, r, 1);
    y = MADD(y, r, 1);
    uint64_t code, whole;
    memcpy(&code, &y, 8);
    memcpy(&whole, &t, 8);
    code += whole << 52;
    memcpy(&y, &code, 8);
    return y;
}

/* exp(t^2) erfc(t) of t from 0 to 15: its product with 1 + 2 t is smooth over u, and the polynomial meets that
 * in the 19 nodes of Chebyshev; within 2^-48. */
INLINE double
erfc_scaled(double t)
{
    double a = t + 4, b = MADD(2, t, 1), inverse = 1 / (a * b), u = (t - 4) * b * inverse;
    double y = -0x1.ead091acc31eap-23;
    y = MADD(y, u, -0x1.0f92ecc24e22ep-20);
    y = MADD(y, u, 0x1.17cfe91080c6cp-21);
    y = MADD(y, u, 0x1.95b112c6d23e9p-18);
    y = MADD(y, u, -0x1.7820911a1f03bp-17);
    y = MADD(y, u, -0x1.9c6c31b311956p-16);
    y = MADD(y, u, 0x1.3bbd54b6eb903p-13);
    y = MADD(y, u, -0x1.a1c62ae585070p-13);
    y = MADD(y, u, -0x1.8d46eec3bf879p-11);
    y = MADD(y, u, 0x1.49c65ac7c737dp-8);
    y = MADD(y, u, -0x1.09623e2d49830p-6);
    y = MADD(y, u, 0x1.3079ee1091596p-5);
    y = MADD(y, u, -0x1.0fb06dda6aa55p-4);
    y = MADD(y, u, 0x1.7fee004f20c80p-4);
    y = MADD(y, u, -0x1.9ddb23c5a2873p-4);
    y = MADD(y, u, 0x1.16ecefcf90fd7p-4);
    y = MADD(y, u, 0x1.f7f5df673ece7p-7);
    y = MADD(y, u, -0x1.1df1ad154a078p-3);
    y = MADD(y, u, 0x1.3ba5916e9fd78p+0);
    return y * a * inverse;
}

/* What the exponential is taken of, in the order of act_fn.c. */
INLINE double
inner(const wide_smooth f, double x)
{
    switch (f) {
    case WIDE_TANH:
        return -2 * fabs(x);
    case WIDE_GELU:
        return -0.5 * x * x;
    case WIDE_GELU_TANH:
        return -(2 * 0.79788456080286535588 * (x + 0.044715 * x * x * x));
    case WIDE_GELU_SIGMOID:
        return -(1.702 * x);
    default:
        return -x;
    }
}

INLINE double
outer(const wide_smooth f, double x, double e)
{
    if (f == WIDE_TANH)
        return copysign((1 - e) / (1 + e), x);
    if (f == WIDE_GELU) {
        double less = 0.5 * e * erfc_scaled(fabs(x) * M_SQRT1_2);
        return x * ((x < 0 ? 0.0 : 1.0) + copysign(less, -x));
    }
    double s = 1 / (1 + e);
    return f == WIDE_SIGMOID ? s : x * s;
}

INLINE uint32_t
some(const wide_smooth f, const float *in, float *out, uint32_t *unsure, size_t n)
{
    double y[WIDE_SMOOTH_MOST], size[WIDE_SMOOTH_MOST];
    uint32_t any = 0;
    LOOP (size_t k = 0; k < n; k++) {
        double x = in[k], z = inner(f, x);
        size[k] = fabs(z);
        y[k] = outer(f, x, exp_near(z));
    }
    LOOP (size_t k = 0; k < n; k++) {
        double rel = f == WIDE_GELU ? REL_GELU : REL;
        double err = fabs(y[k]) * rel + (f == WIDE_TANH ? ABS_TANH : 0);
        float lo = (float)(y[k] - err), hi = (float)(y[k] + err);
        uint32_t a, b;
        memcpy(&a, &lo, 4);
        memcpy(&b, &hi, 4);
        unsure[k] = (a ^ b) | !(size[k] <= (f == WIDE_GELU ? REACH_GELU : REACH));
        any |= unsure[k];
        out[k] = lo;
    }
    return any;
}

bool
SMOOTH(wide_smooth f, const float *in, float *out, uint32_t *unsure, size_t n)
{
    switch (f) {
    case WIDE_SIGMOID:
        return some(WIDE_SIGMOID, in, out, unsure, n) != 0;
    case WIDE_SILU:
        return some(WIDE_SILU, in, out, unsure, n) != 0;
    case WIDE_GELU:
        return some(WIDE_GELU, in, out, unsure, n) != 0;
    case WIDE_GELU_TANH:
        return some(WIDE_GELU_TANH, in, out, unsure, n) != 0;
    case WIDE_GELU_SIGMOID:
        return some(WIDE_GELU_SIGMOID, in, out, unsure, n) != 0;
    default:
        return some(WIDE_TANH, in, out, unsure, n) != 0;
    }
}
