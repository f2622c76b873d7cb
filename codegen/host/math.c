/* Elementary functions on fp32 vectors, as straight-line code the processor runs for all lanes
 * at once: own polynomials (math.def), exact range reductions, no table look-up but for angles
 * beyond 2^20, no library call. NaN goes through; infinities, zeros and subnormal results are
 * right. Bounds, measured against binary64 over the whole range by tests/host: exp, log, sqrt,
 * rsqrt, reciprocal, sin, cos, arctan, tanh, erf, pow 2 ulp; sigmoid 3; functions that are
 * products of these (silu, softplus, mish) 4, gelu 6; swish and gelu_tanh one more for each
 * unit of argument in their left tail, where they vanish. On processors without fused
 * multiply-add the reductions are somewhat less exact. */
#include "codegen/host/gen.h"

#include <math.h>
#include <stdio.h>

#define HOST_POLY(name, ...) static const double poly_##name[] = {__VA_ARGS__};
#include "codegen/host/math.def"
#define POLY(name, x) horner(g, (x), poly_##name, (int)cps_countof(poly_##name))

/* ---- shorthands ---- */

static V
kf(gen *g, V like, double v)
{
    return cps_gen_const_f(g, cps_gen_scalar(like), cps_gen_lanes(like), v);
}
static V
ki(gen *g, V like, int64_t v)
{
    return cps_gen_const_i(g, cps_gen_scalar(like), cps_gen_lanes(like), v);
}
static V
add(gen *g, V a, V b)
{
    return LLVMBuildFAdd(g->b, a, b, "");
}
static V
sub(gen *g, V a, V b)
{
    return LLVMBuildFSub(g->b, a, b, "");
}
static V
mul(gen *g, V a, V b)
{
    return LLVMBuildFMul(g->b, a, b, "");
}
static V
quot(gen *g, V a, V b)
{
    return LLVMBuildFDiv(g->b, a, b, "");
}
static V
sel(gen *g, V c, V a, V b)
{
    return LLVMBuildSelect(g->b, c, a, b, "");
}
static V
cmp(gen *g, LLVMRealPredicate p, V a, V b)
{
    return LLVMBuildFCmp(g->b, p, a, b, "");
}
static V
cast(gen *g, V x, T scalar)
{
    return LLVMBuildBitCast(g->b, x, vec(scalar, cps_gen_lanes(x)), "");
}
static V
absolute(gen *g, V x)
{
    return cps_gen_call1(g, "llvm.fabs", x);
}
static V
with_sign(gen *g, V x, V sign)
{
    V args[2] = {x, sign};
    return cps_gen_call(g, "llvm.copysign", 1, (T[]){LLVMTypeOf(x)}, 2, args);
}

V
cps_m_fma(gen *g, V a, V b, V c)
{
    V args[3] = {a, b, c};
    return cps_gen_call(g, g->fma ? "llvm.fma" : "llvm.fmuladd", 1, (T[]){LLVMTypeOf(a)}, 3,
                        args);
}
static V
fmac(gen *g, V a, double b, V c)
{
    return cps_m_fma(g, a, kf(g, a, b), c);
}

static V
horner(gen *g, V x, const double *c, int n)
{
    V y = kf(g, x, c[0]);
    for (int i = 1; i < n; i++)
        y = cps_m_fma(g, y, x, kf(g, x, c[i]));
    return y;
}

// Upper and lower limits that let NaN pass.
static V
clamp(gen *g, V x, double lo, double hi)
{
    x = sel(g, cmp(g, LLVMRealOGT, x, kf(g, x, hi)), kf(g, x, hi), x);
    return sel(g, cmp(g, LLVMRealOLT, x, kf(g, x, lo)), kf(g, x, lo), x);
}

static V
any(gen *g, V mask)
{
    return cps_gen_lanes(mask) == 1 ? mask : cps_gen_call1(g, "llvm.vector.reduce.or", mask);
}

/* ---- exponential and logarithm ---- */

#define LN2_HI 0x1.62e4p-1 // 14 bits: times any exponent it is exact
#define LN2_LO 0x1.7f7d1cf79abcap-20

V
cps_m_exp(gen *g, V x)
{
    // Adding 1.5 * 2^23 leaves the nearest integer in the low bits, for NaN too.
    const double magic = 12582912.0;
    V xc = clamp(g, x, -104.5, 89.0);
    V t = fmac(g, xc, 0x1.715476p+0, kf(g, x, magic));
    V n = sub(g, t, kf(g, x, magic));
    V r = fmac(g, n, -LN2_HI, xc);
    r = fmac(g, n, -LN2_LO, r);
    V e = cps_m_fma(g, mul(g, r, r), POLY(EXP, r), r);
    e = add(g, e, kf(g, x, 1));
    V bits = cast(g, t, g->i32);
    V k = LLVMBuildSub(g->b, bits, ki(g, bits, 0x4b400000), "");
    // 2^k in two factors: results may be subnormal or overflow
    V k1 = LLVMBuildAShr(g->b, k, ki(g, bits, 1), "");
    V k2 = LLVMBuildSub(g->b, k, k1, "");
    V half[2] = {k1, k2};
    for (int i = 0; i < 2; i++) {
        V s = LLVMBuildAdd(g->b, half[i], ki(g, bits, 127), "");
        e = mul(g, e, cast(g, LLVMBuildShl(g->b, s, ki(g, bits, 23), ""), g->f32));
    }
    return e;
}

V
cps_m_log(gen *g, V x)
{
    V tiny = cmp(g, LLVMRealOLT, x, kf(g, x, 0x1p-126));
    V xs = sel(g, tiny, mul(g, x, kf(g, x, 0x1p23)), x);
    V bits = cast(g, xs, g->i32);
    V ix = LLVMBuildSub(g->b, bits, ki(g, bits, 0x3f3504f3), ""); // sqrt(1/2)
    V e = LLVMBuildAShr(g->b, ix, ki(g, bits, 23), "");
    e = LLVMBuildSub(g->b, e, sel(g, tiny, ki(g, bits, 23), ki(g, bits, 0)), "");
    V m = LLVMBuildAnd(g->b, ix, ki(g, bits, 0x7fffff), "");
    m = cast(g, LLVMBuildAdd(g->b, m, ki(g, bits, 0x3f3504f3), ""), g->f32);
    V f = sub(g, m, kf(g, x, 1)), f2 = mul(g, f, f);
    V n = LLVMBuildSIToFP(g->b, e, LLVMTypeOf(x), "");
    V y = cps_m_fma(g, mul(g, f2, f), POLY(LOG, f), mul(g, n, kf(g, x, LN2_LO)));
    y = fmac(g, f2, -0.5, y);
    y = fmac(g, n, LN2_HI, add(g, f, y));
    V zero = cmp(g, LLVMRealOEQ, x, kf(g, x, 0));
    V bad = sel(g, zero, kf(g, x, -INFINITY), kf(g, x, NAN));
    y = sel(g, cmp(g, LLVMRealULE, x, kf(g, x, 0)), bad, y);
    return sel(g, cmp(g, LLVMRealOEQ, x, kf(g, x, INFINITY)), x, y);
}

// log(1 + u), 0 <= u <= 1: what rounding 1 + u lost comes back to first order.
static V
log1p_unit(gen *g, V u)
{
    V w = add(g, u, kf(g, u, 1));
    V lost = sub(g, u, sub(g, w, kf(g, u, 1)));
    return add(g, cps_m_log(g, w), quot(g, lost, w));
}

/* ---- roots and rounding ---- */

V
cps_m_sqrt(gen *g, V x)
{
    return cps_gen_call1(g, "llvm.sqrt", x);
}
V
cps_m_rsqrt(gen *g, V x)
{
    return quot(g, kf(g, x, 1), cps_m_sqrt(g, x));
}
V
cps_m_reciprocal(gen *g, V x)
{
    return quot(g, kf(g, x, 1), x);
}
V
cps_m_floor(gen *g, V x)
{
    return cps_gen_call1(g, "llvm.floor", x);
}
V
cps_m_ceil(gen *g, V x)
{
    return cps_gen_call1(g, "llvm.ceil", x);
}
V
cps_m_round(gen *g, V x)
{
    return cps_gen_call1(g, "llvm.rint", x);
}

/* ---- angles ---- */

/* 2/pi, bit by bit. */
static const uint32_t two_over_pi[8] = {0xA2F9836E, 0x4E441529, 0xFC2757D1, 0xF534DDC0,
                                        0xDB629599, 0x3C439041, 0xFE5163AB, 0xDEBBC561};
enum { ANGLE_MIN = -4, ANGLE_MAX = 104, ANGLE_HI = 29, ANGLE_LO = 53 };

// 2^e * 2/pi modulo 4: `n` bits after the first `skip` of those that count.
static double
angle_bits(int e, int skip, int n)
{
    double sum = 0;
    int first = CPS_MAX(1, e - 1) + skip;
    for (int i = first; i < first + n; i++)
        if (two_over_pi[(i - 1) / 32] >> (31 - (i - 1) % 32) & 1)
            sum += ldexp(1, e - i);
    return sum;
}

static V
angle_table(gen *g)
{
    enum { N = ANGLE_MAX - ANGLE_MIN + 1 };
    if (g->angles)
        return g->angles;
    V v[2 * N];
    for (int k = 0; k < N; k++) {
        v[k] = LLVMConstReal(g->f64, angle_bits(ANGLE_MIN + k, 0, ANGLE_HI));
        v[N + k] = LLVMConstReal(g->f64, angle_bits(ANGLE_MIN + k, ANGLE_HI, ANGLE_LO));
    }
    g->angles = LLVMAddGlobal(g->mod, LLVMArrayType2(g->f64, 2 * N), "cps_angles");
    LLVMSetInitializer(g->angles, LLVMConstArray2(g->f64, v, 2 * N));
    LLVMSetLinkage(g->angles, LLVMPrivateLinkage);
    LLVMSetGlobalConstant(g->angles, 1);
    return g->angles;
}

static V
pick(gen *g, V index)
{
    int lanes = cps_gen_lanes(index);
    V p = LLVMBuildInBoundsGEP2(g->b, g->f64, g->angles, &index, 1, "");
    if (lanes == 1)
        return LLVMBuildLoad2(g->b, g->f64, p, "");
    T vt = vec(g->f64, lanes);
    V args[4] = {p, LLVMConstInt(g->i32, 8, 0), cps_gen_lane_mask(g, lanes, lanes),
                 LLVMConstNull(vt)};
    return cps_gen_call(g, "llvm.masked.gather", 2, (T[]){vt, vec(g->ptr, lanes)}, 4, args);
}

/* {reduced angle, quarter turns} of |x| >= 2^20: x is a 24-bit integer times 2^e; the integer
 * times (2^e * 2/pi mod 4) in two pieces is exact to far below fp32, whatever e. */
static V
angle_function(gen *g, int lanes)
{
    V *fn = &g->angle_fn[__builtin_ctz((unsigned)lanes)];
    if (*fn)
        return *fn;
    angle_table(g);
    LLVMBasicBlockRef back = LLVMGetInsertBlock(g->b);
    V outer = g->fn;
    T vf = vec(g->f32, lanes), vi = vec(g->i32, lanes), vd = vec(g->f64, lanes);
    T ret = LLVMStructTypeInContext(g->ctx, (T[]){vf, vi}, 2, 0);
    char name[32];
    snprintf(name, sizeof name, "cps_angle_%d", lanes);
    g->fn = LLVMAddFunction(g->mod, name, LLVMFunctionType(ret, &vf, 1, 0));
    LLVMSetLinkage(g->fn, LLVMInternalLinkage);
    unsigned kind = LLVMGetEnumAttributeKindForName("noinline", 8);
    LLVMAddAttributeAtIndex(g->fn, (LLVMAttributeIndex)LLVMAttributeFunctionIndex,
                            LLVMCreateEnumAttribute(g->ctx, kind, 0));
    LLVMPositionBuilderAtEnd(g->b, LLVMAppendBasicBlockInContext(g->ctx, g->fn, ""));
    V x = LLVMGetParam(g->fn, 0), bits = cast(g, x, g->i32);
    V e = LLVMBuildAnd(g->b, LLVMBuildLShr(g->b, bits, ki(g, bits, 23), ""), ki(g, bits, 255),
                       "");
    V k = LLVMBuildSub(g->b, e, ki(g, bits, 150 + ANGLE_MIN), ""); // 127 + 23
    V low = LLVMBuildICmp(g->b, LLVMIntSLT, k, ki(g, bits, 0), "");
    k = sel(g, low, ki(g, bits, 0), k);
    V high = LLVMBuildICmp(g->b, LLVMIntSGT, k, ki(g, bits, ANGLE_MAX - ANGLE_MIN), "");
    k = sel(g, high, ki(g, bits, ANGLE_MAX - ANGLE_MIN), k);
    k = LLVMBuildSExt(g->b, k, vec(g->i64, lanes), "");
    V m = LLVMBuildAnd(g->b, bits, ki(g, bits, 0x7fffff), "");
    m = LLVMBuildOr(g->b, m, ki(g, bits, 0x800000), "");
    m = LLVMBuildUIToFP(g->b, m, vd, "");
    V hi = mul(g, m, pick(g, k));
    V lo = mul(g, m, pick(g, LLVMBuildAdd(g->b, k, ki(g, k, ANGLE_MAX - ANGLE_MIN + 1), "")));
    V turns = cps_gen_call1(g, "llvm.rint", mul(g, hi, kf(g, hi, 0.25)));
    hi = sub(g, hi, mul(g, turns, kf(g, hi, 4)));
    V n = cps_gen_call1(g, "llvm.rint", add(g, hi, lo));
    V f = add(g, sub(g, hi, n), lo);
    f = mul(g, f, kf(g, f, 0x1.921fb54442d18p+0));
    V neg = LLVMBuildICmp(g->b, LLVMIntSLT, bits, ki(g, bits, 0), "");
    f = sel(g, neg, LLVMBuildFNeg(g->b, f, ""), f);
    V ni = LLVMBuildFPToSI(g->b, n, vi, ""); // |n| <= 3, or lanes nobody reads
    ni = LLVMBuildFreeze(g->b, ni, "");
    ni = sel(g, neg, LLVMBuildNeg(g->b, ni, ""), ni);
    V out = LLVMBuildInsertValue(g->b, LLVMGetPoison(ret), LLVMBuildFPTrunc(g->b, f, vf, ""), 0,
                                 "");
    LLVMBuildRet(g->b, LLVMBuildInsertValue(g->b, out, ni, 1, ""));
    *fn = g->fn;
    g->fn = outer;
    LLVMPositionBuilderAtEnd(g->b, back);
    return *fn;
}

// x - n pi/2, and n; in binary64 up to 2^20, beyond in the function above.
static V
reduce_angle(gen *g, V x, V *quarter)
{
    int lanes = cps_gen_lanes(x);
    const double magic = 6755399441055744.0; // 1.5 * 2^52
    T vf = LLVMTypeOf(x), vi = vec(g->i32, lanes);
    V d = LLVMBuildFPExt(g->b, x, vec(g->f64, lanes), "");
    V t = fmac(g, d, 0x1.45f306dc9c883p-1, kf(g, d, magic));
    V n = sub(g, t, kf(g, d, magic));
    V r = fmac(g, n, -0x1.921fb54442d18p+0, d);
    r = fmac(g, n, -0x1.1a62633145c07p-54, r);
    r = LLVMBuildFPTrunc(g->b, r, vf, "");
    *quarter = LLVMBuildTrunc(g->b, cast(g, t, g->i64), vi, "");
    V a = absolute(g, x);
    V far = cmp(g, LLVMRealOGE, a, kf(g, x, 0x1p20));
    far = LLVMBuildAnd(g->b, far, cmp(g, LLVMRealOLT, a, kf(g, x, INFINITY)), "");
    V fn = angle_function(g, lanes);
    LLVMBasicBlockRef here = LLVMGetInsertBlock(g->b);
    LLVMBasicBlockRef slow = LLVMAppendBasicBlockInContext(g->ctx, g->fn, "");
    LLVMBasicBlockRef join = LLVMAppendBasicBlockInContext(g->ctx, g->fn, "");
    LLVMBuildCondBr(g->b, any(g, far), slow, join);
    LLVMPositionBuilderAtEnd(g->b, slow);
    V pair = LLVMBuildCall2(g->b, LLVMGlobalGetValueType(fn), fn, &x, 1, "");
    V r2 = sel(g, far, LLVMBuildExtractValue(g->b, pair, 0, ""), r);
    V q2 = sel(g, far, LLVMBuildExtractValue(g->b, pair, 1, ""), *quarter);
    LLVMBuildBr(g->b, join);
    LLVMPositionBuilderAtEnd(g->b, join);
    V pr = LLVMBuildPhi(g->b, vf, ""), pq = LLVMBuildPhi(g->b, vi, "");
    LLVMAddIncoming(pr, (V[]){r, r2}, (LLVMBasicBlockRef[]){here, slow}, 2);
    LLVMAddIncoming(pq, (V[]){*quarter, q2}, (LLVMBasicBlockRef[]){here, slow}, 2);
    *quarter = pq;
    return pr;
}

static V
sine(gen *g, V x, int64_t shift)
{
    V q, r = reduce_angle(g, x, &q);
    q = LLVMBuildAdd(g->b, q, ki(g, q, shift), "");
    V z = mul(g, r, r);
    V s = cps_m_fma(g, mul(g, z, r), POLY(SIN, z), r);
    V c = cps_m_fma(g, mul(g, z, z), POLY(COS, z), fmac(g, z, -0.5, kf(g, x, 1)));
    V odd =
        LLVMBuildICmp(g->b, LLVMIntNE, LLVMBuildAnd(g->b, q, ki(g, q, 1), ""), ki(g, q, 0), "");
    V sign = LLVMBuildShl(g->b, LLVMBuildAnd(g->b, q, ki(g, q, 2), ""), ki(g, q, 30), "");
    V y = cast(g, sel(g, odd, c, s), g->i32);
    return cast(g, LLVMBuildXor(g->b, y, sign, ""), g->f32);
}

V
cps_m_sin(gen *g, V x)
{
    return sine(g, x, 0);
}
V
cps_m_cos(gen *g, V x)
{
    return sine(g, x, 1);
}

V
cps_m_arctan(gen *g, V x)
{
    V a = absolute(g, x);
    V inv = cmp(g, LLVMRealOGT, a, kf(g, x, 1));
    V t = sel(g, inv, quot(g, kf(g, x, -1), a), a);
    V z = mul(g, t, t);
    V y = cps_m_fma(g, mul(g, z, t), POLY(ARCTAN, z), t);
    V far = add(g, add(g, y, kf(g, x, -0x1.777a5cp-25)), kf(g, x, 0x1.921fb6p+0));
    return with_sign(g, sel(g, inv, far, y), x);
}

/* ---- error function and its kin ---- */

// erfc t, t >= 0 or NaN, given s = t^2 and what rounding lost of it: the far tail would lose
// six bits without.
static V
erfc_positive(gen *g, V t, V s, V lost)
{
    V far = cmp(g, LLVMRealOGT, t, kf(g, t, 12));
    s = sel(g, far, kf(g, t, 144), s);
    lost = sel(g, far, kf(g, t, 0), lost);
    V v = quot(g, kf(g, t, 1), fmac(g, t, 0.5, kf(g, t, 1)));
    V y = mul(g, mul(g, v, POLY(ERFC, v)), cps_m_exp(g, LLVMBuildFNeg(g->b, s, "")));
    return cps_m_fma(g, LLVMBuildFNeg(g->b, lost, ""), y, y);
}

V
cps_m_erf(gen *g, V x)
{
    V a = absolute(g, x), z = mul(g, x, x);
    V near = cps_m_fma(g, x, POLY(ERF, z), x);
    V lost = cps_m_fma(g, x, x, LLVMBuildFNeg(g->b, z, ""));
    V far = with_sign(g, sub(g, kf(g, x, 1), erfc_positive(g, a, z, lost)), x);
    return sel(g, cmp(g, LLVMRealOLT, a, kf(g, x, 1)), near, far);
}

V
cps_m_gelu(gen *g, V x)
{
    V half = kf(g, x, 0.5), z = mul(g, x, x);
    V lost = cps_m_fma(g, x, x, LLVMBuildFNeg(g->b, z, ""));
    V t = mul(g, absolute(g, x), kf(g, x, M_SQRT1_2));
    V h = mul(g, erfc_positive(g, t, mul(g, z, half), mul(g, lost, half)), half);
    V w = sel(g, cmp(g, LLVMRealOGT, x, kf(g, x, 0)), sub(g, kf(g, x, 1), h), h);
    return mul(g, x, w);
}

V
cps_m_tanh(gen *g, V x)
{
    V a = absolute(g, x), z = mul(g, x, x);
    V near = cps_m_fma(g, mul(g, z, x), POLY(TANH, z), x);
    V e = add(g, cps_m_exp(g, add(g, a, a)), kf(g, x, 1));
    V far = with_sign(g, sub(g, kf(g, x, 1), quot(g, kf(g, x, 2), e)), x);
    return sel(g, cmp(g, LLVMRealOLT, a, kf(g, x, 0.625)), near, far);
}

/* ---- sigmoid and its kin ---- */

static V
one_plus_exp_minus(gen *g, V x)
{
    return add(g, cps_m_exp(g, LLVMBuildFNeg(g->b, x, "")), kf(g, x, 1));
}

V
cps_m_sigmoid(gen *g, V x)
{
    return quot(g, kf(g, x, 1), one_plus_exp_minus(g, x));
}
V
cps_m_silu(gen *g, V x)
{
    return quot(g, x, one_plus_exp_minus(g, x));
}
V
cps_m_swish(gen *g, V x)
{
    return quot(g, x, one_plus_exp_minus(g, mul(g, x, kf(g, x, 1.702))));
}

V
cps_m_gelu_tanh(gen *g, V x)
{
    // x sigmoid(2 sqrt(2/pi) (x + 0.044715 x^3)), which is the same
    V u = fmac(g, mul(g, mul(g, x, x), x), 0.044715, x);
    return quot(g, x, one_plus_exp_minus(g, mul(g, u, kf(g, x, 1.5957691216057308))));
}

V
cps_m_softplus(gen *g, V x)
{
    V u = cps_m_exp(g, LLVMBuildFNeg(g->b, absolute(g, x), ""));
    V top = sel(g, cmp(g, LLVMRealOGT, x, kf(g, x, 0)), x, kf(g, x, 0));
    return add(g, top, log1p_unit(g, u));
}

V
cps_m_mish(gen *g, V x)
{
    // tanh(log(1 + e)) = n / (n + 2) with n = e (e + 2)
    V large = cmp(g, LLVMRealOGT, x, kf(g, x, 20));
    V e = cps_m_exp(g, sel(g, large, kf(g, x, 20), x));
    V n = mul(g, e, add(g, e, kf(g, x, 2)));
    V y = mul(g, x, quot(g, n, add(g, n, kf(g, x, 2))));
    return sel(g, large, x, y);
}

/* ---- two operands ---- */

V
cps_m_pow(gen *g, V x, V y)
{
    int lanes = cps_gen_lanes(x);
    const double magic = 6755399441055744.0;
    const int64_t half = 0x3FE6A09E667F3BCD; // sqrt(1/2)
    T vd = vec(g->f64, lanes), vf = LLVMTypeOf(x);
    V a = absolute(g, x), one = kf(g, x, 1);
    V yd = LLVMBuildFPExt(g->b, y, vd, "");
    V bits = cast(g, LLVMBuildFPExt(g->b, a, vd, ""), g->i64);
    V ix = LLVMBuildSub(g->b, bits, ki(g, bits, half), "");
    V e = LLVMBuildSIToFP(g->b, LLVMBuildAShr(g->b, ix, ki(g, bits, 52), ""), vd, "");
    V m = LLVMBuildAnd(g->b, ix, ki(g, bits, 0xFFFFFFFFFFFFF), "");
    m = cast(g, LLVMBuildAdd(g->b, m, ki(g, bits, half), ""), g->f64);
    V s = quot(g, sub(g, m, kf(g, m, 1)), add(g, m, kf(g, m, 1)));
    V log2 = cps_m_fma(g, s, POLY(LOG2D, mul(g, s, s)), e);
    V inf = cmp(g, LLVMRealOEQ, a, kf(g, x, INFINITY));
    log2 = sel(g, cmp(g, LLVMRealOEQ, x, kf(g, x, 0)), kf(g, m, -INFINITY), log2);
    log2 = sel(g, inf, kf(g, m, INFINITY), log2);
    log2 = sel(g, cmp(g, LLVMRealUNO, x, x), kf(g, m, NAN), log2);
    V w = clamp(g, mul(g, yd, log2), -300, 300);
    V t = add(g, w, kf(g, w, magic));
    V p = POLY(EXP2D, sub(g, w, sub(g, t, kf(g, w, magic))));
    V k = LLVMBuildSub(g->b, cast(g, t, g->i64), cast(g, kf(g, w, magic), g->i64), "");
    k = LLVMBuildShl(g->b, LLVMBuildAdd(g->b, k, ki(g, k, 1023), ""), ki(g, k, 52), "");
    V r = LLVMBuildFPTrunc(g->b, mul(g, p, cast(g, k, g->f64)), vf, "");
    V sane = cmp(g, LLVMRealORD, y, y);
    V unit = LLVMBuildAnd(g->b, cmp(g, LLVMRealOEQ, a, one), sane, "");
    r = sel(g, unit, one, r);
    // negative bases: the sign of odd powers, NaN between the integers
    V negative = LLVMBuildICmp(g->b, LLVMIntSLT, cast(g, x, g->i32),
                               LLVMConstNull(vec(g->i32, lanes)), "");
    V whole = cmp(g, LLVMRealOEQ, cps_gen_call1(g, "llvm.trunc", y), y);
    V yh = mul(g, y, kf(g, x, 0.5));
    V odd = LLVMBuildAnd(g->b, whole,
                         cmp(g, LLVMRealONE, cps_gen_call1(g, "llvm.trunc", yh), yh), "");
    r = sel(g, LLVMBuildAnd(g->b, negative, odd, ""), LLVMBuildFNeg(g->b, r, ""), r);
    V between = LLVMBuildAnd(g->b, cmp(g, LLVMRealOLT, x, kf(g, x, 0)),
                             LLVMBuildNot(g->b, LLVMBuildOr(g->b, whole, inf, ""), ""), "");
    r = sel(g, between, kf(g, x, NAN), r);
    V always =
        LLVMBuildOr(g->b, cmp(g, LLVMRealOEQ, x, one), cmp(g, LLVMRealOEQ, y, kf(g, y, 0)), "");
    return sel(g, always, one, r);
}

/* Exact: in binary64, quotients are cut to 24 bits, so that their product with y is exact,
 * until the rest is below y. One step for quotients below 2^24. */
V
cps_m_fmod(gen *g, V x, V y)
{
    int lanes = cps_gen_lanes(x);
    T vd = vec(g->f64, lanes);
    V ax = absolute(g, x), ay = absolute(g, y);
    V bad = LLVMBuildOr(g->b, cmp(g, LLVMRealUNO, x, y),
                        LLVMBuildOr(g->b, cmp(g, LLVMRealOEQ, ax, kf(g, x, INFINITY)),
                                    cmp(g, LLVMRealOEQ, y, kf(g, y, 0)), ""),
                        "");
    V r0 = LLVMBuildFPExt(g->b, sel(g, bad, kf(g, x, 0), ax), vd, "");
    V d = LLVMBuildFPExt(g->b, sel(g, bad, kf(g, x, 1), ay), vd, "");
    LLVMBasicBlockRef before = LLVMGetInsertBlock(g->b);
    LLVMBasicBlockRef test = LLVMAppendBasicBlockInContext(g->ctx, g->fn, "");
    LLVMBasicBlockRef body = LLVMAppendBasicBlockInContext(g->ctx, g->fn, "");
    LLVMBasicBlockRef done = LLVMAppendBasicBlockInContext(g->ctx, g->fn, "");
    LLVMBuildBr(g->b, test);
    LLVMPositionBuilderAtEnd(g->b, test);
    V r = LLVMBuildPhi(g->b, vd, "");
    V more = cmp(g, LLVMRealOGE, r, d);
    LLVMBuildCondBr(g->b, any(g, more), body, done);
    LLVMPositionBuilderAtEnd(g->b, body);
    V q = cast(g, cps_gen_call1(g, "llvm.trunc", quot(g, r, d)), g->i64);
    q = cast(g, LLVMBuildAnd(g->b, q, ki(g, q, (int64_t)0xFFFFFFFFE0000000), ""), g->f64);
    V next = sub(g, r, mul(g, q, d));
    // a quotient that was rounded up to a whole number
    next = sel(g, cmp(g, LLVMRealOLT, next, kf(g, d, 0)), add(g, next, d), next);
    next = sel(g, more, next, r);
    LLVMBuildBr(g->b, test);
    LLVMAddIncoming(r, (V[]){r0, next}, (LLVMBasicBlockRef[]){before, body}, 2);
    LLVMPositionBuilderAtEnd(g->b, done);
    V z = with_sign(g, LLVMBuildFPTrunc(g->b, r, LLVMTypeOf(x), ""), x);
    // y infinite: the quotient was 0 and the rest is x
    return sel(g, bad, kf(g, x, NAN), z);
}

V
cps_m_mod(gen *g, V x, V y)
{
    V r = cps_m_fmod(g, x, y);
    V zero = kf(g, x, 0);
    V differ =
        LLVMBuildXor(g->b, cmp(g, LLVMRealOLT, r, zero), cmp(g, LLVMRealOLT, y, zero), "");
    V fix = LLVMBuildAnd(g->b, cmp(g, LLVMRealUNE, r, zero), differ, "");
    return sel(g, fix, add(g, r, y), r);
}
