/* Conversions between storage bits and binary32 / binary64, one row per type.
 *
 * In: elements of a dtype. Out: the same values in another. Holds: widening is exact; narrowing
 * rounds once, to nearest even, in the default floating-point environment; results do not
 * depend on flush-to-zero modes except for binary32 subnormals themselves. A binary64 source is
 * first rounded to odd in binary32, which keeps enough bits that the second rounding is the
 * right one (every type here has at most 24 - 2 significant bits, or is binary32 itself).
 *
 * Values of the narrow types: OCP 8-bit and MX specifications, and ml_dtypes for their
 * IEEE-like relatives (fp8e3m4, fp8e4m3). Where a type cannot hold the input at all, this file
 * does what ml_dtypes does: e8m0 turns zero and negatives into NaN and rounds halves up (but
 * goes to the nearer neighbour below 2^-126 too, where ml_dtypes 0.6 always goes up), e2m1
 * turns a NaN into a zero of the opposite sign.
 *
 * Loops are branch-free so that the compiler vectorises them; the packed x4 types have no
 * scalar value and asking for one is our mistake. */
#include "runtime/base/num.h"

#include <math.h>
#include <string.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "storage is little endian");

#define INLINE static inline __attribute__((always_inline))

// The loops exist twice on x86, for the baseline and for AVX2, chosen when the program is
// loaded. Both give the same bits: nothing here is fused or reassociated.
#if defined(__x86_64__) && defined(__has_attribute)
#if __has_attribute(target_clones)
#define FOR_EACH_CPU __attribute__((target_clones("avx2", "default")))
#endif
#endif
#ifndef FOR_EACH_CPU
#define FOR_EACH_CPU
#endif

const cps_dtype_row cps_dtypes[CPS_DT_COUNT] = {
    [CPS_DT_NONE] = {"none", "", 0, -1, 'N'},
#define CPS_DTYPE(id, name, alias, bits, wire, kind)                                           \
    [CPS_DT_##id] = {name, alias, bits, wire, #kind[0]},
#include "runtime/base/dtype.def"
};

static bool
in_word_list(const char *list, const char *name, size_t n)
{
    while (*list) {
        size_t k = strcspn(list, " ");
        if (k == n && memcmp(list, name, n) == 0)
            return true;
        list += k + (list[k] == ' ');
    }
    return false;
}

cps_dtype
cps_dtype_parse(const char *name, size_t n)
{
    for (int t = CPS_DT_NONE + 1; n && t < CPS_DT_COUNT; t++)
        if ((strlen(cps_dtypes[t].name) == n && memcmp(cps_dtypes[t].name, name, n) == 0) ||
            in_word_list(cps_dtypes[t].alias, name, n))
            return (cps_dtype)t;
    return CPS_DT_NONE;
}

INLINE uint32_t
bits_of(float f)
{
    uint32_t b;
    memcpy(&b, &f, 4);
    return b;
}

INLINE float
float_of(uint32_t b)
{
    float f;
    memcpy(&f, &b, 4);
    return f;
}

uint32_t
cps_f32_bits(float f)
{
    return bits_of(f);
}

float
cps_bits_f32(uint32_t b)
{
    return float_of(b);
}

// ---- floats with a sign, e exponent bits, m fraction bits and subnormals ----

typedef struct layout {
    int width, m, bias;
    uint32_t top;  // largest finite code
    uint32_t over; // code of an overflow: infinity, NaN, or `top`
    uint32_t nan;  // code of NaN (fp4: NaN becomes a zero, see widen/narrow)
} layout;

// clang-format off
//                               width m   bias top     over    nan
#define LAYOUT_FP16      ((layout){16, 10, 15, 0x7bff, 0x7c00, 0x7e00})
#define LAYOUT_FP8E3M4   ((layout){8,  4,  3,  0x6f,   0x70,   0x78})
#define LAYOUT_FP8E4M3   ((layout){8,  3,  7,  0x77,   0x78,   0x7c})
#define LAYOUT_FP8E4M3FN ((layout){8,  3,  7,  0x7e,   0x7f,   0x7f})
#define LAYOUT_FP8E5M2   ((layout){8,  2,  15, 0x7b,   0x7c,   0x7e})
#define LAYOUT_FP4E2M1   ((layout){4,  1,  1,  0x7,    0x7,    0x8})
// clang-format on

INLINE float
power_of_two(int e)
{
    return float_of((uint32_t)(e + 127) << 23);
}

INLINE float
widen(uint32_t code, layout f)
{
    uint32_t sign = (code >> (f.width - 1) & 1) << 31;
    uint32_t mag = code & ((1u << (f.width - 1)) - 1);
    uint32_t normal = (mag << (23 - f.m)) + ((uint32_t)(127 - f.bias) << 23);
    uint32_t tiny = bits_of((float)(int32_t)mag * power_of_two(1 - f.bias - f.m));
    uint32_t bits = mag < 1u << f.m ? tiny : normal;
    uint32_t special = mag == f.over && f.over != f.nan ? 0x7f800000u : 0x7fc00000u;
    return float_of(sign | (mag > f.top ? special : bits));
}

INLINE uint32_t
narrow(float v, layout f)
{
    uint32_t b = bits_of(v), sign = b >> 31 << (f.width - 1), a = b & 0x7fffffffu;
    int drop = 23 - f.m;
    // Normal results: rebias, then round the dropped bits to nearest even. Inputs below the
    // normal range wrap here and are not used.
    uint32_t r = a - ((uint32_t)(127 - f.bias) << 23);
    r = (r + (1u << (drop - 1)) - 1 + (r >> drop & 1)) >> drop;
    r = r > f.top ? f.over : r;
    // Subnormal results: adding a power of two whose unit is the type's smallest step rounds.
    float unit = power_of_two(1 - f.bias - f.m + 23);
    uint32_t tiny = bits_of(float_of(a) + unit) - bits_of(unit);
    r = a < (uint32_t)(128 - f.bias) << 23 ? tiny : r;
    if (f.width == 4) // no NaN to give
        return a > 0x7f800000u ? sign ^ f.nan : sign | r;
    return sign | (a > 0x7f800000u ? f.nan : r);
}

// ---- the relatives of binary32 ----

INLINE float
widen_bf16(uint32_t code)
{
    return float_of(code << 16);
}

INLINE uint32_t
narrow_bf16(float v)
{
    uint32_t b = bits_of(v), r = (b + 0x7fff + (b >> 16 & 1)) >> 16;
    return (b & 0x7fffffffu) > 0x7f800000u ? b >> 31 << 15 | 0x7fc0 : r;
}

// 10 fraction bits in a 32-bit cell. The lower 13 are not part of the number: storage that was
// viewed from fp32 is rounded when read, just as when written.
INLINE uint32_t
narrow_tf32(float v)
{
    uint32_t b = bits_of(v), r = (b + 0xfff + (b >> 13 & 1)) & ~0x1fffu;
    return (b & 0x7fffffffu) > 0x7f800000u ? (b & 0x80000000u) | 0x7fc00000u : r;
}

INLINE float
widen_tf32(uint32_t code)
{
    return float_of(narrow_tf32(float_of(code)));
}

// 2^(code - 127); code 0 is a binary32 subnormal.
INLINE float
widen_e8m0(uint32_t code)
{
    uint32_t b = code << 23;
    b = code == 0 ? 0x00400000u : b;
    return float_of(code == 255 ? 0x7fc00000u : b);
}

INLINE uint32_t
narrow_e8m0(float v)
{
    uint32_t b = bits_of(v);
    uint32_t r = (b + 0x400000u) >> 23;       // halves go up
    r = b < 0x800000u ? b >= 0x600000u : r;   // below 2^-126: 2^-127 or 2^-126
    return b - 1 < 0x7f800000u - 1 ? r : 255; // zero, negatives, infinity, NaN
}

// ---- binary64 sources ----

// binary64 to binary32, rounded to odd: the truncated value, its last bit set when inexact.
INLINE float
odd_f32(double d)
{
    float f = (float)d;
    double back = (double)f;
    uint32_t b = bits_of(f);
    b -= fabs(back) > fabs(d) ? 1 : 0;
    b |= back != d ? 1 : 0;
    return d != d ? f : float_of(b);
}

INLINE double
double_below(double v, double limit)
{
    return v < limit ? v : limit;
}

// Adding and taking away 1.5 * 2^52 rounds anything below 2^51 to an integer, nearest even.
INLINE double
round_small(double v)
{
    return v + 0x1.8p52 - 0x1.8p52;
}

INLINE int64_t
saturate_small(double v, double lo, double hi)
{
    v = v == v ? v : 0.0;
    v = v > lo ? v : lo;
    return (int64_t)round_small(double_below(v, hi));
}

INLINE int32_t
saturate_i32(double v, double lo, double hi)
{
    v = v == v ? v : 0.0;
    v = v > lo ? v : lo;
    return (int32_t)round_small(double_below(v, hi));
}

INLINE int64_t
saturate_i64(double v)
{
    if (!(v == v))
        return 0;
    if (v >= 0x1p63)
        return INT64_MAX;
    return v < -0x1p63 ? INT64_MIN : (int64_t)rint(v);
}

INLINE uint64_t
saturate_u64(double v)
{
    if (!(v > 0))
        return 0;
    return v >= 0x1p64 ? UINT64_MAX : (uint64_t)rint(v);
}

// ---- the rows ----

// id, cell, binary32 and binary64 of a cell x, the cell of a binary32 v, the cell of a binary64
// v. Everything below is generated from them. A truth value is "not zero", NaN included, as in
// NumPy and ONNX.
#define SMALL(X, id, cell)                                                                     \
    X(id, cell, widen(x, LAYOUT_##id), (double)widen(x, LAYOUT_##id),                          \
      (cell)narrow(v, LAYOUT_##id), (cell)narrow(odd_f32(v), LAYOUT_##id))
#define SHORT_INT(X, id, cell, lo, hi)                                                         \
    X(id, cell, (float)x, (double)x, (cell)saturate_i32((double)v, lo, hi),                    \
      (cell)saturate_i32(v, lo, hi))

#define CONVERSIONS(X)                                                                         \
    X(BF16, uint16_t, widen_bf16(x), (double)widen_bf16(x), (uint16_t)narrow_bf16(v),          \
      (uint16_t)narrow_bf16(odd_f32(v)))                                                       \
    SMALL(X, FP16, uint16_t)                                                                   \
    X(FP32, uint32_t, float_of(x), (double)float_of(x), bits_of(v), bits_of((float)v))         \
    X(TF32, uint32_t, widen_tf32(x), (double)widen_tf32(x), narrow_tf32(v),                    \
      narrow_tf32(odd_f32(v)))                                                                 \
    SMALL(X, FP8E3M4, uint8_t)                                                                 \
    SMALL(X, FP8E4M3, uint8_t)                                                                 \
    SMALL(X, FP8E4M3FN, uint8_t)                                                               \
    SMALL(X, FP8E5M2, uint8_t)                                                                 \
    X(FP8E8M0, uint8_t, widen_e8m0(x), (double)widen_e8m0(x), (uint8_t)narrow_e8m0(v),         \
      (uint8_t)narrow_e8m0(odd_f32(v)))                                                        \
    SMALL(X, FP4E2M1, uint8_t)                                                                 \
    SHORT_INT(X, I8, int8_t, -128.0, 127.0)                                                    \
    SHORT_INT(X, I16, int16_t, -32768.0, 32767.0)                                              \
    SHORT_INT(X, I32, int32_t, -2147483648.0, 2147483647.0)                                    \
    X(I64, int64_t, (float)x, (double)x, saturate_i64((double)v), saturate_i64(v))             \
    SHORT_INT(X, U8, uint8_t, 0.0, 255.0)                                                      \
    SHORT_INT(X, U16, uint16_t, 0.0, 65535.0)                                                  \
    X(U32, uint32_t, (float)x, (double)x,                                                      \
      (uint32_t)saturate_small((double)v, 0.0, 4294967295.0),                                  \
      (uint32_t)saturate_small(v, 0.0, 4294967295.0))                                          \
    X(U64, uint64_t, (float)x, (double)x, saturate_u64((double)v), saturate_u64(v))            \
    X(BOOL, uint8_t, x != 0 ? 1.0f : 0.0f, x != 0 ? 1.0 : 0.0, v != 0, v != 0)

CPS_NORETURN static void
no_scalar(cps_dtype t)
{
    cps_bug("'%s' has no scalar value", t < CPS_DT_COUNT ? cps_dtypes[t].name : "?");
}

float
cps_to_f32(cps_dtype t, const void *p)
{
    switch (t) {
#define ROW(id, cell, to32, to64, from32, from64)                                              \
    case CPS_DT_##id: {                                                                        \
        cell x;                                                                                \
        memcpy(&x, p, sizeof(x));                                                              \
        return to32;                                                                           \
    }
        CONVERSIONS(ROW)
#undef ROW
    default:
        no_scalar(t);
    }
}

double
cps_to_f64(cps_dtype t, const void *p)
{
    switch (t) {
#define ROW(id, cell, to32, to64, from32, from64)                                              \
    case CPS_DT_##id: {                                                                        \
        cell x;                                                                                \
        memcpy(&x, p, sizeof(x));                                                              \
        return to64;                                                                           \
    }
        CONVERSIONS(ROW)
#undef ROW
    default:
        no_scalar(t);
    }
}

void
cps_from_f32(cps_dtype t, void *p, float v)
{
    switch (t) {
#define ROW(id, cell, to32, to64, from32, from64)                                              \
    case CPS_DT_##id: {                                                                        \
        cell x = from32;                                                                       \
        memcpy(p, &x, sizeof(x));                                                              \
        return;                                                                                \
    }
        CONVERSIONS(ROW)
#undef ROW
    default:
        no_scalar(t);
    }
}

void
cps_from_f64(cps_dtype t, void *p, double v)
{
    switch (t) {
#define ROW(id, cell, to32, to64, from32, from64)                                              \
    case CPS_DT_##id: {                                                                        \
        cell x = from64;                                                                       \
        memcpy(p, &x, sizeof(x));                                                              \
        return;                                                                                \
    }
        CONVERSIONS(ROW)
#undef ROW
    default:
        no_scalar(t);
    }
}

// ---- many elements ----

// One pair of loops per row and direction; memcpy because file data need not be aligned.
#define ROW(id, cell, to32, to64, from32, from64)                                              \
    FOR_EACH_CPU static void to_f32_##id(const void *src, float *dst, size_t n)                \
    {                                                                                          \
        for (size_t i = 0; i < n; i++) {                                                       \
            cell x;                                                                            \
            memcpy(&x, (const uint8_t *)src + i * sizeof(x), sizeof(x));                       \
            dst[i] = to32;                                                                     \
        }                                                                                      \
    }                                                                                          \
    FOR_EACH_CPU static void to_f64_##id(const void *src, double *dst, size_t n)               \
    {                                                                                          \
        for (size_t i = 0; i < n; i++) {                                                       \
            cell x;                                                                            \
            memcpy(&x, (const uint8_t *)src + i * sizeof(x), sizeof(x));                       \
            dst[i] = to64;                                                                     \
        }                                                                                      \
    }                                                                                          \
    FOR_EACH_CPU static void from_f32_##id(const float *src, void *dst, size_t n)              \
    {                                                                                          \
        for (size_t i = 0; i < n; i++) {                                                       \
            float v = src[i];                                                                  \
            cell x = from32;                                                                   \
            memcpy((uint8_t *)dst + i * sizeof(x), &x, sizeof(x));                             \
        }                                                                                      \
    }                                                                                          \
    FOR_EACH_CPU static void from_f64_##id(const double *src, void *dst, size_t n)             \
    {                                                                                          \
        for (size_t i = 0; i < n; i++) {                                                       \
            double v = src[i];                                                                 \
            cell x = from64;                                                                   \
            memcpy((uint8_t *)dst + i * sizeof(x), &x, sizeof(x));                             \
        }                                                                                      \
    }
CONVERSIONS(ROW)
#undef ROW

static const struct loops {
    void (*to_f32)(const void *, float *, size_t);
    void (*to_f64)(const void *, double *, size_t);
    void (*from_f32)(const float *, void *, size_t);
    void (*from_f64)(const double *, void *, size_t);
} loops[CPS_DT_COUNT] = {
#define ROW(id, cell, to32, to64, from32, from64)                                              \
    [CPS_DT_##id] = {to_f32_##id, to_f64_##id, from_f32_##id, from_f64_##id},
    CONVERSIONS(ROW)
#undef ROW
};

static const struct loops *
loops_of(cps_dtype t)
{
    if (t >= CPS_DT_COUNT || !loops[t].to_f32)
        no_scalar(t);
    return &loops[t];
}

void
cps_to_f32_n(cps_dtype t, const void *src, float *dst, size_t n)
{
    loops_of(t)->to_f32(src, dst, n);
}

void
cps_to_f64_n(cps_dtype t, const void *src, double *dst, size_t n)
{
    loops_of(t)->to_f64(src, dst, n);
}

void
cps_from_f32_n(cps_dtype t, const float *src, void *dst, size_t n)
{
    loops_of(t)->from_f32(src, dst, n);
}

void
cps_from_f64_n(cps_dtype t, const double *src, void *dst, size_t n)
{
    loops_of(t)->from_f64(src, dst, n);
}

float
cps_round_f32(cps_dtype t, float v)
{
    uint64_t cell;
    cps_from_f32(t, &cell, v);
    return cps_to_f32(t, &cell);
}

double
cps_round_f64(cps_dtype t, double v)
{
    uint64_t cell;
    cps_from_f64(t, &cell, v);
    return cps_to_f64(t, &cell);
}

// ---- stochastic rounding ----

#define LAYOUT_BF16 ((layout){16, 7, 127, 0x7f7f, 0x7f80, 0x7fc0})
#define LAYOUT_TF32 ((layout){19, 10, 127, 0x3fbff, 0x3fc00, 0x3fe00})

// The magnitude cut to the type's bits, one more when the rest beats the random bits.
static uint32_t
narrow_stochastic(float v, layout f, uint32_t bits)
{
    uint32_t b = bits_of(v), a = b & 0x7fffffffu;
    uint32_t e = a >> 23, m = (a & 0x7fffffu) | (e ? 0x800000u : 0);
    e = e ? e : 1;
    uint32_t least = (uint32_t)(128 - f.bias); // exponent of the type's smallest normal number
    unsigned drop = (unsigned)(23 - f.m) + (e < least ? least - e : 0);
    uint32_t whole = drop < 32 ? m >> drop : 0;
    uint64_t rest = drop < 32 ? m & ((1ull << drop) - 1) : m;
    uint64_t chance = drop < 64 ? rest << 32 >> drop : 0;
    uint32_t r = (e >= least ? (e - least) << f.m : 0) + whole + (bits < chance ? 1 : 0);
    r = r > f.top ? f.over : r;
    return b >> 31 << (f.width - 1) | r;
}

void
cps_from_f32_stochastic(cps_dtype t, void *p, float v, uint32_t bits)
{
    uint32_t r;
    bool finite = (bits_of(v) & 0x7fffffffu) < 0x7f800000u;
    switch (finite ? t : CPS_DT_NONE) {
#define SMALL_ROW(id)                                                                          \
    case CPS_DT_##id:                                                                          \
        r = narrow_stochastic(v, LAYOUT_##id, bits);                                           \
        memcpy(p, &r, cps_dtype_bytes(t));                                                     \
        return;
        SMALL_ROW(BF16)
        SMALL_ROW(FP16)
        SMALL_ROW(FP8E3M4)
        SMALL_ROW(FP8E4M3)
        SMALL_ROW(FP8E4M3FN)
        SMALL_ROW(FP8E5M2)
        SMALL_ROW(FP4E2M1)
#undef SMALL_ROW
    case CPS_DT_TF32:
        r = narrow_stochastic(v, LAYOUT_TF32, bits) << 13;
        memcpy(p, &r, 4);
        return;
    default:
        cps_from_f32(t, p, v);
    }
}

// ---- integers as integers ----

int64_t
cps_to_i64(cps_dtype t, const void *p)
{
    cps_assert(t < CPS_DT_COUNT && cps_dtype_is_int(t));
    unsigned bits = cps_dtypes[t].bits;
    uint64_t v = 0;
    memcpy(&v, p, bits / 8);
    if (cps_dtypes[t].kind == 'B')
        return v != 0;
    if (cps_dtypes[t].kind == 'U')
        return (int64_t)v;
    return (int64_t)(v << (64 - bits)) >> (64 - bits);
}

void
cps_from_i64(cps_dtype t, void *p, int64_t v)
{
    cps_assert(t < CPS_DT_COUNT && cps_dtype_is_int(t));
    if (cps_dtypes[t].kind == 'B')
        v = v != 0;
    memcpy(p, &v, cps_dtypes[t].bits / 8);
}
