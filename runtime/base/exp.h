/* exp of fp32 as the simulated engines and the tile evaluator have it: the same bits from every compiler and
 * on every instruction set, since each step is one operation of IEEE 754 on fp32 and each fused step is
 * written out. It is within 0.892 of a step of the exact value, the nearest number for 99.5 % of all x, exact at
 * 0, and below its neighbour only by one step, 2909 times (`test_sim_wide exp` looks at every x). */
#ifndef CPS_BASE_EXP_H
#define CPS_BASE_EXP_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#define CPS_EXP_EDGE 87.0f /* up to here in size, arguments and results are normal numbers */

/* ln(2) in two parts: the first has 21 bits, and its product with a whole number is exact. The polynomial of
 * degree 4 for (exp(r) - 1 - r) / r^2 is the one with the least relative error of exp, 2^-28.2
 * (Lawson's iteration, one coefficient rounded after another). */
#define CPS_EXP_LOG2E 0x1.715476p+0f
#define CPS_EXP_LN2 0x1.62e43p-1f
#define CPS_EXP_LN2_REST -0x1.05c61p-29f
#define CPS_EXP_2 0x1.fffffcp-2f
#define CPS_EXP_3 0x1.555492p-3f
#define CPS_EXP_4 0x1.5558bp-5f
#define CPS_EXP_5 0x1.12399cp-7f
#define CPS_EXP_6 0x1.6a4ecep-10f

/* 2^n exp(r) with n = x / ln(2) to the nearest, |r| <= ln(2) / 2. An x beyond the edge gives any number. */
static inline float
cps_exp_inside(float x)
{
    const float magic = 0x1.8p23f; // what is added to it is rounded to a whole number
    float t = __builtin_fmaf(x, CPS_EXP_LOG2E, magic), n = t - magic;
    float r = __builtin_fmaf(n, -CPS_EXP_LN2_REST, __builtin_fmaf(n, -CPS_EXP_LN2, x));
    float y = __builtin_fmaf(CPS_EXP_6, r, CPS_EXP_5);
    y = __builtin_fmaf(y, r, CPS_EXP_4);
    y = __builtin_fmaf(y, r, CPS_EXP_3);
    y = __builtin_fmaf(y, r, CPS_EXP_2);
    y = __builtin_fmaf(y, r, 1.0f);
    y = __builtin_fmaf(y, r, 1.0f);
    uint32_t code, whole;
    memcpy(&code, &y, 4);
    memcpy(&whole, &t, 4);
    code += whole << 23;
    memcpy(&y, &code, 4);
    return y;
}

/* Beyond the edge: the library's binary64, rounded once. Below -104 that is 0. */
static inline float
cps_exp_beyond(float x)
{
    return x < -104.0f ? 0.0f : (float)exp((double)x);
}

static inline float
cps_exp_f32(float x)
{
    return fabsf(x) <= CPS_EXP_EDGE ? cps_exp_inside(x) : cps_exp_beyond(x);
}

#endif
