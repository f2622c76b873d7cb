/* The loops of wide.h. This file is compiled once for each instruction set: WIDE names the table that it
 * fills. Loops are plain C that the compiler turns into vectors; what has no such form is written for
 * AVX-512 alone. Rows that are read and written may be the same, never overlap otherwise. */
#include "runtime/sim/wide.h"

#include <math.h>
#include <string.h>
#if defined(__AVX512F__)
#include <immintrin.h>
#endif

#define INLINE static inline __attribute__((always_inline))
#if defined(__clang__)
#define LOOP _Pragma("clang loop vectorize(assume_safety)") for
#else
#define LOOP _Pragma("GCC ivdep") for
#endif
#if defined(__FMA__)
#define MULADD(a, b, c) __builtin_fma(a, b, c)
#else
#define MULADD(a, b, c) ((a) * (b) + (c))
#endif

INLINE uint32_t
bits(float x)
{
    uint32_t b;
    memcpy(&b, &x, 4);
    return b;
}

INLINE float
value(uint32_t b)
{
    float x;
    memcpy(&x, &b, 4);
    return x;
}

INLINE float
get_f(float x)
{
    return x;
}

INLINE float
get_b(uint16_t x)
{
    return value((uint32_t)x << 16);
}

INLINE float
put_f(float x)
{
    return x;
}

/* To nearest even; a NaN keeps its upper bits and becomes quiet. */
INLINE uint16_t
put_b(float x)
{
    uint32_t b = bits(x);
    uint32_t r = b + 0x7FFF + (b >> 16 & 1);
    return (uint16_t)((x != x ? b | 0x400000 : r) >> 16);
}

/* For elements i from k to n: whole strips first, each without a loop left and without an end to guess. */
enum { STRIP = 64 };
#define EACH(...)                                                                              \
    for (; k + STRIP <= n; k += STRIP) {                                                       \
        LOOP (size_t j = 0; j < STRIP; j++) {                                                  \
            const size_t i = k + j;                                                            \
            __VA_ARGS__                                                                        \
        }                                                                                      \
    }                                                                                          \
    LOOP (size_t i = k; i < n; i++) {                                                          \
        __VA_ARGS__                                                                            \
    }

#if defined(__AVX512F__)
/* bf16 to bf16 without moving elements between lanes: a word holds two codes; the even one is worked on
 * shifted up, the odd one where it is. */
INLINE __m512
even(__m512i v)
{
    return _mm512_castsi512_ps(_mm512_slli_epi32(v, 16));
}

INLINE __m512
odd(__m512i v)
{
    return _mm512_castsi512_ps(_mm512_and_si512(v, _mm512_set1_epi32(-65536)));
}

INLINE bool
any_nan(__m512 x, __m512 y)
{
    return __builtin_expect(_mm512_cmp_ps_mask(x, y, _CMP_UNORD_Q) != 0, 0);
}

/* The upper half of each word is its code; no NaN. Half a step more, and where that met a tie, back to
 * the even one. */
INLINE __m512i
round_up(__m512 x)
{
    __m512i r = _mm512_add_epi32(_mm512_castps_si512(x), _mm512_set1_epi32(0x8000));
    __mmask16 tie = _mm512_testn_epi32_mask(r, _mm512_set1_epi32(0xFFFF));
    return _mm512_mask_andnot_epi32(r, tie, _mm512_set1_epi32(0x10000), r);
}

/* The same of any x: a NaN keeps its upper bits and becomes quiet. */
INLINE __m512i
round_any(__m512 x)
{
    __mmask16 nan = _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q);
    return _mm512_mask_or_epi32(round_up(x), nan, _mm512_castps_si512(x), _mm512_set1_epi32(0x400000));
}

/* Codes of even and odd elements, each in the upper half of a word. */
INLINE void
store_halves(uint16_t *to, __m512i e, __m512i o)
{
    enum { A_OR_B_AND_C = 0xF8 };
    _mm512_storeu_si512(to, _mm512_ternarylogic_epi32(_mm512_srli_epi32(e, 16), o,
                                                      _mm512_set1_epi32(-65536), A_OR_B_AND_C));
}

INLINE void
join(uint16_t *to, __m512 e, __m512 o)
{
    if (any_nan(e, o))
        store_halves(to, round_any(e), round_any(o));
    else
        store_halves(to, round_up(e), round_up(o));
}

#define FAST_PAIR(op, f)                                                                       \
    INLINE void fast_##op(const uint16_t *p, const uint16_t *q, uint16_t *z)                   \
    {                                                                                          \
        __m512i x = _mm512_loadu_si512(p), y = _mm512_loadu_si512(q);                          \
        join(z, f(even(x), even(y)), f(odd(x), odd(y)));                                       \
    }
FAST_PAIR(ADD, _mm512_add_ps)
FAST_PAIR(SUB, _mm512_sub_ps)
FAST_PAIR(MUL, _mm512_mul_ps)

/* One of two codes needs no rounding. The instruction takes y unless x is greater (less): that is what is
 * wanted but for NaN. */
#define FAST_PICK(op, f)                                                                       \
    INLINE void fast_##op(const uint16_t *p, const uint16_t *q, uint16_t *z)                   \
    {                                                                                          \
        __m512i x = _mm512_loadu_si512(p), y = _mm512_loadu_si512(q);                          \
        __m512 e = even(x), o = odd(x), e1 = even(y), o1 = odd(y);                             \
        __m512 me = f(e, e1), mo = f(o, o1);                                                   \
        if (any_nan(e, o) || any_nan(e1, o1)) {                                                \
            me = _mm512_mask_mov_ps(me, _mm512_cmp_ps_mask(e, e, _CMP_UNORD_Q), e);            \
            mo = _mm512_mask_mov_ps(mo, _mm512_cmp_ps_mask(o, o, _CMP_UNORD_Q), o);            \
            store_halves(z, round_any(me), round_any(mo));                                     \
            return;                                                                            \
        }                                                                                      \
        store_halves(z, _mm512_castps_si512(me), _mm512_castps_si512(mo));                     \
    }
FAST_PICK(MAX, _mm512_max_ps)
FAST_PICK(MIN, _mm512_min_ps)

INLINE void
fast_step(const uint16_t *p, uint16_t *z, float m, float c)
{
    __m512 mul = _mm512_set1_ps(m), add = _mm512_set1_ps(c);
    __m512i x = _mm512_loadu_si512(p);
    join(z, _mm512_add_ps(_mm512_mul_ps(even(x), mul), add),
         _mm512_add_ps(_mm512_mul_ps(odd(x), mul), add));
}

INLINE void
fast_cast(const float *p, uint16_t *z)
{
    static const uint16_t upper[32] = {1,  3,  5,  7,  9,  11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31,
                                       33, 35, 37, 39, 41, 43, 45, 47, 49, 51, 53, 55, 57, 59, 61, 63};
    __m512 x = _mm512_loadu_ps(p), y = _mm512_loadu_ps(p + 16);
    bool nan = any_nan(x, y);
    __m512i a = nan ? round_any(x) : round_up(x), b = nan ? round_any(y) : round_up(y);
    _mm512_storeu_si512(z, _mm512_permutex2var_epi16(a, _mm512_loadu_si512(upper), b));
}

#endif

static void
from_bf16(const uint16_t *in, float *out, size_t n)
{
    size_t k = 0;
    EACH(out[i] = get_b(in[i]);)
}

static void
to_bf16(const float *in, uint16_t *out, size_t n)
{
    size_t k = 0;
#if defined(__AVX512F__)
    for (; k + 32 <= n; k += 32)
        fast_cast(in + k, out + k);
#endif
    EACH(out[i] = put_b(in[i]);)
}

/* ---- tiles: element by element over rows ---- */

#define TYPE_f float
#define TYPE_b uint16_t
#define TYPE_w uint32_t

/* The rows of a tile: `z` of the result, `p` and `q` of the operands, `m0` to `c1` the steps of a row. */
#define EACH_ROW(in, res, ...)                                                                 \
    const wide_side O = *o, A = *a, B = *b;                                                    \
    for (unsigned r = 0; r < rows; r++) {                                                      \
        const TYPE_##in *p = (const TYPE_##in *)(const void *)(A.at + r * A.pitch);            \
        const TYPE_##in *q = (const TYPE_##in *)(const void *)(B.at + r * B.pitch);            \
        TYPE_##res *z = (TYPE_##res *)(void *)(O.at + r * O.pitch);                            \
        const wide_step *t = s[r * apart];                                                     \
        float m0 = t[0].mul, c0 = t[0].add, m1 = t[1].mul, c1 = t[1].add;                      \
        (void)q, (void)m0, (void)c0, (void)m1, (void)c1;                                       \
        __VA_ARGS__                                                                            \
    }

/* Two functions: `each` of every element i, and `strip` of the STRIP elements from k on, which stays free
 * of what the ends of rows need. */
#define TILE(name, in, res, each, strip)                                                       \
    static __attribute__((noinline)) void name##_ends(                                         \
        const wide_side *o, const wide_side *a, const wide_side *b, const wide_step (*s)[2],   \
        unsigned apart, unsigned rows, size_t k, size_t n)                                     \
    {                                                                                          \
        EACH_ROW(in, res, LOOP(size_t i = k; i < n; i++) { each })                             \
    }                                                                                          \
    static void name(const wide_side *o, const wide_side *a, const wide_side *b,               \
                     const wide_step (*s)[2], unsigned apart, unsigned rows, size_t n)         \
    {                                                                                          \
        const size_t whole = n - n % STRIP;                                                    \
        if (whole) {                                                                           \
            EACH_ROW(in, res, for (size_t k = 0; k < whole; k += STRIP) { strip })             \
        }                                                                                      \
        if (whole < n)                                                                         \
            name##_ends(o, a, b, s, apart, rows, whole, n);                                    \
    }
#define PLAIN(...)                                                                             \
    LOOP (size_t j = 0; j < STRIP; j++) {                                                      \
        const size_t i = k + j;                                                                \
        __VA_ARGS__                                                                            \
    }
#if defined(__AVX512F__)
#define FAST(fast, ...)                                                                        \
    for (size_t i = k; i < k + STRIP; i += 32)                                                 \
        fast;
#else
#define FAST(fast, ...) PLAIN(__VA_ARGS__)
#endif

/* Maximum and minimum as alu.c has them: NaN of either side stays. */
#define PAIR_OPS(X)                                                                            \
    X(ADD, x + y)                                                                              \
    X(SUB, x - y)                                                                              \
    X(MUL, x *y)                                                                               \
    X(MAX, x > y || x != x ? x : y)                                                            \
    X(MIN, x < y || x != x ? x : y)
#define PAIR(in, res, expr) float x = get_##in(p[i]), y = get_##in(q[i]); z[i] = put_##res(expr);
#define PAIRS(op, expr)                                                                        \
    TILE(pair_##op##_ff, f, f, PAIR(f, f, expr), PLAIN(PAIR(f, f, expr)))                      \
    TILE(pair_##op##_fb, f, b, PAIR(f, b, expr), PLAIN(PAIR(f, b, expr)))                      \
    TILE(pair_##op##_bf, b, f, PAIR(b, f, expr), PLAIN(PAIR(b, f, expr)))                      \
    TILE(pair_##op##_bb, b, b, PAIR(b, b, expr),                                               \
         FAST(fast_##op(p + i, q + i, z + i), PAIR(b, b, expr)))
PAIR_OPS(PAIRS)

#define STEP(in, res, ...) float x = get_##in(p[i]); __VA_ARGS__ z[i] = put_##res(x);
#define ONE_STEP x = x * m0, x = x + c0;
#define TWO_STEPS ONE_STEP x = x * m1, x = x + c1;
#define STEPS(in, res, two, body)                                                              \
    TILE(steps_##in##res##two, in, res, STEP(in, res, body), PLAIN(STEP(in, res, body)))
STEPS(f, f, 1, ONE_STEP)
STEPS(f, b, 1, ONE_STEP)
STEPS(b, f, 1, ONE_STEP)
TILE(steps_bb1, b, b, STEP(b, b, ONE_STEP), FAST(fast_step(p + i, z + i, m0, c0), STEP(b, b, ONE_STEP)))
STEPS(f, f, 2, TWO_STEPS)
STEPS(f, b, 2, TWO_STEPS)
STEPS(b, f, 2, TWO_STEPS)
STEPS(b, b, 2, TWO_STEPS)

TILE(cast_fb, f, b, STEP(f, b, ), FAST(fast_cast(p + i, z + i), STEP(f, b, )))
TILE(cast_bf, b, f, STEP(b, f, ), PLAIN(STEP(b, f, )))

#define MOVE z[i] = p[i];
TILE(move_f, w, w, MOVE, PLAIN(MOVE))
TILE(move_b, b, b, MOVE, PLAIN(MOVE))

static void
affine(const float *in, float mul, float add, float *out, size_t n)
{
    LOOP (size_t k = 0; k < n; k++) {
        float m = in[k] * mul;
        out[k] = m + add;
    }
}

/* ---- sums in order: many rows at once, since within a row each step waits for the one before ---- */

enum { TOGETHER = 16, PART = 64 };

#if defined(__AVX512F__)
/* Column k of 16 rows in vector k. */
INLINE void
turn16(const float *in, size_t pitch, __m512 t[16])
{
    __m512 a[16], b[16];
#pragma GCC unroll 16
    for (int i = 0; i < 16; i++)
        a[i] = _mm512_loadu_ps(in + (size_t)i * pitch);
#pragma GCC unroll 8
    for (int i = 0; i < 16; i += 2) {
        b[i] = _mm512_unpacklo_ps(a[i], a[i + 1]);
        b[i + 1] = _mm512_unpackhi_ps(a[i], a[i + 1]);
    }
#pragma GCC unroll 4
    for (int i = 0; i < 16; i += 4) {
#pragma GCC unroll 2
        for (int h = 0; h < 2; h++) {
            __m512d x = _mm512_castps_pd(b[i + h]), y = _mm512_castps_pd(b[i + 2 + h]);
            a[i + 2 * h] = _mm512_castpd_ps(_mm512_unpacklo_pd(x, y));
            a[i + 2 * h + 1] = _mm512_castpd_ps(_mm512_unpackhi_pd(x, y));
        }
    }
    // a[4 g + c]: in 128-bit lane l, column 4 l + c of rows 4 g .. 4 g + 3
#pragma GCC unroll 4
    for (int c = 0; c < 4; c++) {
        __m512 lo = _mm512_shuffle_f32x4(a[c], a[4 + c], 0x88);
        __m512 hi = _mm512_shuffle_f32x4(a[c], a[4 + c], 0xDD);
        __m512 lo2 = _mm512_shuffle_f32x4(a[8 + c], a[12 + c], 0x88);
        __m512 hi2 = _mm512_shuffle_f32x4(a[8 + c], a[12 + c], 0xDD);
        t[c] = _mm512_shuffle_f32x4(lo, lo2, 0x88);
        t[8 + c] = _mm512_shuffle_f32x4(lo, lo2, 0xDD);
        t[4 + c] = _mm512_shuffle_f32x4(hi, hi2, 0x88);
        t[12 + c] = _mm512_shuffle_f32x4(hi, hi2, 0xDD);
    }
}
#endif

/* 16 rows of n <= PART values, `pitch` floats apart. */
INLINE void
sum16(const float *x, size_t pitch, float *acc, size_t n)
{
    size_t k = 0;
#if defined(__AVX512F__)
    __m512 s = _mm512_loadu_ps(acc);
    for (; k + 16 <= n; k += 16) {
        __m512 t[16];
        turn16(x + k, pitch, t);
#pragma GCC unroll 16
        for (int i = 0; i < 16; i++)
            s = _mm512_add_ps(s, t[i]);
    }
    _mm512_storeu_ps(acc, s);
#endif
    float a[TOGETHER];
    memcpy(a, acc, sizeof a);
    for (; k < n; k++) {
        for (unsigned r = 0; r < TOGETHER; r++)
            a[r] += x[r * pitch + k];
    }
    memcpy(acc, a, sizeof a);
}

static void
sum(const wide_side *a, float *acc, unsigned rows, size_t n)
{
    unsigned r = 0;
    for (; r + TOGETHER <= rows; r += TOGETHER) {
        uint8_t *row = a->at + r * a->pitch;
        if (!a->bf16 && a->pitch % 4 == 0) {
            sum16((const float *)(const void *)row, a->pitch / 4, acc + r, n);
            continue;
        }
        float part[TOGETHER * PART];
        for (size_t k = 0; k < n; k += PART) {
            size_t some = n - k < PART ? n - k : PART;
            for (unsigned i = 0; i < TOGETHER; i++)
                from_bf16((const uint16_t *)(const void *)(row + i * a->pitch) + k, part + i * PART,
                          some);
            sum16(part, PART, acc + r, some);
        }
    }
    for (; r < rows; r++) {
        const void *row = a->at + r * a->pitch;
        float s = acc[r];
        for (size_t k = 0; k < n; k++)
            s += a->bf16 ? get_b(((const uint16_t *)row)[k]) : ((const float *)row)[k];
        acc[r] = s;
    }
}

/* ---- the largest of a row: codes in the order of their values ---- */

static bool
top(const wide_side *a, bool least, float *out, size_t n)
{
    if (a->bf16) {
        const int16_t *p = (const int16_t *)(const void *)a->at, flip = least ? -1 : 0;
        int16_t best = INT16_MIN, big = 0;
        for (size_t k = 0; k < n; k++) {
            int16_t v = p[k], m = (int16_t)(v & 0x7FFF);
            int16_t key = (int16_t)(v ^ ((v >> 15) & 0x7FFF) ^ flip);
            best = key > best ? key : best;
            big = m > big ? m : big;
        }
        best ^= flip;
        int16_t code = (int16_t)(best ^ ((best >> 15) & 0x7FFF));
        *out = get_b((uint16_t)code);
        return big <= 0x7F80 && *out != 0;
    }
    const int32_t *p = (const int32_t *)(const void *)a->at, flip = least ? -1 : 0;
    int32_t best = INT32_MIN, big = 0;
    for (size_t k = 0; k < n; k++) {
        int32_t v = p[k], m = v & 0x7FFFFFFF;
        int32_t key = v ^ ((v >> 31) & 0x7FFFFFFF) ^ flip;
        best = key > best ? key : best;
        big = m > big ? m : big;
    }
    best ^= flip;
    *out = value((uint32_t)(best ^ ((best >> 31) & 0x7FFFFFFF)));
    return big <= 0x7F800000 && *out != 0;
}

/* ---- exp ---- */

/* exp(r) on |r| <= ln(2) / 2: the polynomial of degree 8 with the least relative error, 2^-40.2 (found by
 * Lawson's iteration). */
static const double poly[9] = {0x1.ffffffffff7a7p-1, 0x1.ffffffffd55abp-1, 0x1.0000000088093p-1,
                               0x1.555555a08da9bp-3, 0x1.55555404ee590p-5, 0x1.111082a0199aep-7,
                               0x1.6c18b34a45dc6p-10, 0x1.a1a83108c504fp-13, 0x1.9edaac650033ap-16};

enum { BLOCK = 64 };

/* Of the 29 bits that a float has not: within 2^-38 of a half. */
INLINE uint64_t
near_middle(uint64_t q)
{
    return (q + (1u << 15) - (1u << 28)) % (1u << 29) < 1u << 16;
}

/* Where the fast value lies within 2^-38 of the middle between two floats, or outside the range in which
 * a float is normal, the library decides. */
static void
exp_row(const float *in, float *out, size_t n)
{
    double y[BLOCK];
    for (size_t b = 0; b < n; b += BLOCK) {
        size_t some = n - b < BLOCK ? n - b : BLOCK;
        const float *x = in + b;
        uint64_t doubt = 0;
        uint32_t outside = 0;
        for (size_t k = 0; k < some; k++)
            outside |= !(fabsf(x[k]) <= 87.0f);
        for (size_t k = 0; k < some; k++) {
            double v = x[k];
            double t = MULADD(v, 0x1.71547652b82fep0, 0x1.8p52), whole = t - 0x1.8p52;
            double r = MULADD(whole, -0x1.62e42fefa39efp-1, v);
            double p = poly[8];
#pragma GCC unroll 8
            for (int d = 7; d >= 0; d--)
                p = MULADD(p, r, poly[d]);
            uint64_t e, q;
            memcpy(&e, &t, 8);
            memcpy(&q, &p, 8);
            q += e << 52;
            memcpy(&y[k], &q, 8);
            doubt |= near_middle(q);
        }
        if (!doubt && !outside) {
            for (size_t k = 0; k < some; k++)
                out[b + k] = (float)y[k];
            continue;
        }
        for (size_t k = 0; k < some; k++) {
            uint64_t q;
            memcpy(&q, &y[k], 8);
            float v = x[k];
            bool fine = fabsf(v) <= 87.0f && !near_middle(q);
            out[b + k] = fine ? (float)y[k] : v < -104.0f ? 0 : (float)exp(v);
        }
    }
}

/* ---- raw codes, searches ---- */

static void
words(const void *in, unsigned es, uint32_t *out, size_t n)
{
    const uint8_t *b = in;
    const uint16_t *h = in;
    if (es == 4)
        memcpy(out, in, n * 4);
    else if (es == 2)
        LOOP (size_t k = 0; k < n; k++)
            out[k] = h[k];
    else
        LOOP (size_t k = 0; k < n; k++)
            out[k] = b[k];
}

static bool
selector(const float *x, unsigned rows, size_t n, size_t pitch, uint8_t *sel)
{
    for (size_t c = 0; c < n; c += BLOCK) {
        size_t some = n - c < BLOCK ? n - c : BLOCK;
        uint32_t count[BLOCK] = {0}, at[BLOCK] = {0}, other = 0;
        for (unsigned k = 0; k < rows; k++) {
            const float *v = x + k * pitch + c;
            for (size_t j = 0; j < some; j++) {
                bool one = v[j] == 1.0f;
                count[j] += one;
                at[j] = one ? k : at[j];
                other |= v[j] != 0 && !one;
            }
        }
        for (size_t j = 0; j < some; j++) {
            other |= count[j] != 1;
            sel[c + j] = (uint8_t)at[j];
        }
        if (other)
            return false;
    }
    return true;
}

static void
turn(const uint32_t *in, size_t pitch, const uint8_t *sel, size_t n, unsigned cols, unsigned es,
     void *out)
{
    uint16_t *half = out;
    uint32_t *word = out;
    for (unsigned m = 0; m < cols; m += TOGETHER) {
        unsigned some = cols - m < TOGETHER ? cols - m : TOGETHER;
        for (size_t c = 0; c < n; c++) {
            const uint32_t *row = in + sel[c] * pitch + m;
            for (unsigned j = 0; j < some; j++) {
                if (es == 2)
                    half[(m + j) * n + c] = (uint16_t)row[j];
                else
                    word[(m + j) * n + c] = row[j];
            }
        }
    }
}

static void
split(const float *in, bool low, float *out, size_t n)
{
    LOOP (size_t k = 0; k < n; k++) {
        float x = in[k];
        uint32_t b = bits(x);
        float high = value(b & 0xFFFFF000u), rest = x - high;
        bool far = (b << 1) >> 24 == 255;
        float h = far ? x : high, l = far ? 0.0f : rest;
        out[k] = low ? l : h;
    }
}

static bool
all_finite(const float *in, size_t n)
{
    uint32_t big = 0;
    for (size_t k = 0; k < n; k++) {
        uint32_t b = bits(in[k]) << 1;
        big = b > big ? b : big;
    }
    return big >> 24 != 255;
}

#define SEARCH(name, op)                                                                       \
    static size_t name(const float *v, size_t k, size_t n, float t)                            \
    {                                                                                          \
        for (; k + BLOCK <= n; k += BLOCK) {                                                   \
            uint32_t any = 0;                                                                  \
            for (size_t j = 0; j < BLOCK; j++)                                                 \
                any |= v[k + j] op t;                                                          \
            if (any)                                                                           \
                break;                                                                         \
        }                                                                                      \
        while (k < n && !(v[k] op t))                                                          \
            k++;                                                                               \
        return k;                                                                              \
    }
SEARCH(above, >)
SEARCH(equal, ==)

const wide_loops WIDE = {
    .from_bf16 = from_bf16,
    .to_bf16 = to_bf16,
#define ROW(id, expr)                                                                          \
    [WIDE_##id] = {pair_##id##_ff, pair_##id##_fb, pair_##id##_bf, pair_##id##_bb},
    .pair = {PAIR_OPS(ROW)},
#undef ROW
    .steps = {{steps_ff1, steps_fb1, steps_bf1, steps_bb1},
              {steps_ff2, steps_fb2, steps_bf2, steps_bb2}},
    .cast = {move_f, cast_fb, cast_bf, move_b},
    .sum = sum,
    .top = top,
    .exp = exp_row,
    .affine = affine,
    .words = words,
    .selector = selector,
    .turn = turn,
    .split = split,
    .finite = all_finite,
    .above = above,
    .equal = equal,
};
