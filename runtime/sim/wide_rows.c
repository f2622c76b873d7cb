/* The loops of wide.h. This file is compiled once for each instruction set: WIDE names the table that it
 * fills. Loops are plain C that the compiler turns into vectors; what has no such form is written for
 * AVX-512 alone. Rows that are read and written may be the same, never overlap otherwise. */
#include "runtime/sim/wide.h"

#include "runtime/base/exp.h"

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
/* Word k of 16 rows, `pitch` bytes apart, in vector k. */
INLINE void
turn16(const uint8_t *in, size_t pitch, __m512 t[16])
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

#if defined(__AVX512F__)
/* A vector's worth of columns of 16 rows: 16 values each, or 32 codes, of which a word holds two. */
INLINE __m512
sum_words(const uint8_t *x, size_t pitch, const bool bf16, __m512 s)
{
    __m512 t[16];
    turn16(x, pitch, t);
#pragma GCC unroll 16
    for (int i = 0; i < 16; i++) {
        __m512i v = _mm512_castps_si512(t[i]);
        if (bf16)
            s = _mm512_add_ps(_mm512_add_ps(s, even(v)), odd(v));
        else
            s = _mm512_add_ps(s, t[i]);
    }
    return s;
}
#endif

/* Whole vectors of 16 or (`two`) 32 rows: while the sums of one half wait for one another, the other half is
 * turned. How many columns were added. */
INLINE size_t
sum_vectors(const uint8_t *x, size_t pitch, const bool bf16, float *acc, size_t n, const bool two)
{
    size_t k = 0;
#if defined(__AVX512F__)
    const uint8_t *y = x + TOGETHER * pitch;
    __m512 s = _mm512_loadu_ps(acc), t = two ? _mm512_loadu_ps(acc + TOGETHER) : s;
    for (size_t per = bf16 ? 32 : 16; k + per <= n; k += per, x += 64, y += 64) {
        s = sum_words(x, pitch, bf16, s);
        if (two)
            t = sum_words(y, pitch, bf16, t);
    }
    _mm512_storeu_ps(acc, s);
    if (two)
        _mm512_storeu_ps(acc + TOGETHER, t);
#else
    (void)x;
    (void)pitch;
    (void)bf16;
    (void)acc;
    (void)n;
    (void)two;
#endif
    return k;
}

/* 16 rows from column k on, part by part in fp32. */
INLINE void
sum_parts(const uint8_t *x, size_t pitch, bool bf16, float *acc, size_t k, size_t n)
{
    float part[TOGETHER * PART], a[TOGETHER];
    memcpy(a, acc, sizeof a);
    for (; k < n; k += PART) {
        size_t some = n - k < PART ? n - k : PART;
        for (unsigned i = 0; i < TOGETHER; i++) {
            const uint8_t *row = x + i * pitch;
            if (bf16)
                from_bf16((const uint16_t *)(const void *)row + k, part + i * PART, some);
            else
                memcpy(part + i * PART, row + k * sizeof *part, some * sizeof *part);
        }
        for (size_t j = 0; j < some; j++) {
            for (unsigned i = 0; i < TOGETHER; i++)
                a[i] += part[i * PART + j];
        }
    }
    memcpy(acc, a, sizeof a);
}

static void
sum(const wide_side *a, float *acc, unsigned rows, size_t n)
{
    unsigned r = 0;
    for (unsigned step; r + TOGETHER <= rows; r += step) {
        const uint8_t *row = a->at + r * a->pitch;
        bool two = r + 2 * TOGETHER <= rows;
        step = two ? 2 * TOGETHER : TOGETHER;
        size_t k = a->bf16 ? (two ? sum_vectors(row, a->pitch, true, acc + r, n, true)
                                  : sum_vectors(row, a->pitch, true, acc + r, n, false))
                           : (two ? sum_vectors(row, a->pitch, false, acc + r, n, true)
                                  : sum_vectors(row, a->pitch, false, acc + r, n, false));
        for (unsigned h = 0; h < step && k < n; h += TOGETHER)
            sum_parts(row + h * a->pitch, a->pitch, a->bf16, acc + r + h, k, n);
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

enum { BLOCK = 64 };

/* ---- activations ---- */

/* `some` values of a row times `mul` plus `add`, each rounded. */
INLINE void
affine_in(const void *in, bool bf16, float mul, float add, float *x, const size_t some)
{
    const uint16_t *h = in;
    if (!bf16) {
        affine(in, mul, add, x, some);
        return;
    }
    LOOP (size_t k = 0; k < some; k++) {
        float m = get_b(h[k]) * mul;
        x[k] = m + add;
    }
}

enum { HIGH = TOGETHER, WIDTH = 2 * BLOCK }; /* of a block: rows, columns */

/* The next block of a row of `es`-byte elements: so many rows are too many streams for the processor to
 * foresee. */
INLINE void
soon(const uint8_t *p, const size_t es)
{
    for (size_t b = WIDTH * es; b < 2 * WIDTH * es; b += 64)
        __builtin_prefetch(p + b);
}

INLINE void
square(float *y, size_t n)
{
    LOOP (size_t k = 0; k < n; k++)
        y[k] *= y[k];
}

/* A part of a row on its way through a function of its values times mul plus add. */
typedef struct act_part {
    const void *in;
    float mul, add;
    float *y;
} act_part;

#if defined(__AVX512F__)
enum { CHAINS = 4 }; /* vectors side by side: a step waits for the one before */
#define CHAIN _Pragma("GCC unroll 8") for (int c = 0; c < CHAINS; c++)

/* cps_exp_inside, step by step, of n values, whole groups of vectors. Of the arguments the largest of
 * their bits, doubled, in each lane. */
INLINE __m512i
exp_groups(const act_part *p, const bool bf16, const bool scaled, const size_t n)
{
    const __m512 mul = _mm512_set1_ps(p->mul), add = _mm512_set1_ps(p->add);
    const __m512 magic = _mm512_set1_ps(0x1.8p23f);
    const uint16_t *h = p->in;
    const float *f = p->in;
    __m512i most = _mm512_setzero_si512();
    for (size_t k = 0; k < n; k += 16 * CHAINS) {
        __m512 x[CHAINS], t[CHAINS], r[CHAINS], q[CHAINS];
        if (bf16)
            CHAIN x[c] = even(_mm512_cvtepu16_epi32(_mm256_loadu_si256((const void *)(h + k + 16 * c))));
        else
            CHAIN x[c] = _mm512_loadu_ps(f + k + 16 * c);
        if (scaled)
            CHAIN x[c] = _mm512_mul_ps(x[c], mul);
        CHAIN x[c] = _mm512_add_ps(x[c], add);
        CHAIN most = _mm512_max_epu32(most, _mm512_slli_epi32(_mm512_castps_si512(x[c]), 1));
        CHAIN t[c] = _mm512_fmadd_ps(x[c], _mm512_set1_ps(CPS_EXP_LOG2E), magic);
        CHAIN r[c] = _mm512_sub_ps(t[c], magic);
        CHAIN x[c] = _mm512_fmadd_ps(r[c], _mm512_set1_ps(-CPS_EXP_LN2), x[c]);
        CHAIN r[c] = _mm512_fmadd_ps(r[c], _mm512_set1_ps(-CPS_EXP_LN2_REST), x[c]);
        CHAIN q[c] = _mm512_fmadd_ps(_mm512_set1_ps(CPS_EXP_6), r[c], _mm512_set1_ps(CPS_EXP_5));
        CHAIN q[c] = _mm512_fmadd_ps(q[c], r[c], _mm512_set1_ps(CPS_EXP_4));
        CHAIN q[c] = _mm512_fmadd_ps(q[c], r[c], _mm512_set1_ps(CPS_EXP_3));
        CHAIN q[c] = _mm512_fmadd_ps(q[c], r[c], _mm512_set1_ps(CPS_EXP_2));
        CHAIN q[c] = _mm512_fmadd_ps(q[c], r[c], _mm512_set1_ps(1));
        CHAIN q[c] = _mm512_fmadd_ps(q[c], r[c], _mm512_set1_ps(1));
        CHAIN {
            __m512i whole = _mm512_slli_epi32(_mm512_castps_si512(t[c]), 23);
            q[c] = _mm512_castsi512_ps(_mm512_add_epi32(_mm512_castps_si512(q[c]), whole));
            _mm512_storeu_ps(p->y + k + 16 * c, q[c]);
        }
    }
    return most;
}
#undef CHAIN

/* The same of as many values as there are in whole groups; their number, and whether all are inside. */
INLINE size_t
exp_whole(const act_part *p, const bool bf16, const size_t n, bool *inside)
{
    const size_t whole = n - n % (16 * CHAINS);
    __m512i most = p->mul == 1 ? exp_groups(p, bf16, false, whole) : exp_groups(p, bf16, true, whole);
    *inside = !_mm512_cmpgt_epu32_mask(most, _mm512_set1_epi32((int)(bits(CPS_EXP_EDGE) << 1)));
    return whole;
}
#else
INLINE size_t
exp_whole(const act_part *p, bool bf16, size_t n, bool *inside)
{
    (void)p;
    (void)bf16;
    (void)n;
    *inside = true;
    return 0;
}
#endif

INLINE void
exp_part(const act_part *p, const bool bf16, const size_t n)
{
    const uint16_t *h = p->in;
    const float *f = p->in;
    bool inside;
    size_t done = exp_whole(p, bf16, n, &inside);
    uint32_t most = inside ? 0 : UINT32_MAX;
    LOOP (size_t k = done; k < n; k++) {
        float x = (bf16 ? get_b(h[k]) : f[k]) * p->mul;
        x = x + p->add;
        uint32_t size = bits(x) << 1;
        most = size > most ? size : most;
        p->y[k] = cps_exp_inside(x);
    }
    if (most > bits(CPS_EXP_EDGE) << 1) {
        for (size_t k = 0; k < n; k++) {
            float x = (bf16 ? get_b(h[k]) : f[k]) * p->mul;
            x = x + p->add;
            if (!(fabsf(x) <= CPS_EXP_EDGE))
                p->y[k] = cps_exp_beyond(x);
        }
    }
}

static void
exp_row(const float *in, float *out, size_t n)
{
    for (size_t k = 0; k < n; k += BLOCK) { // in and out may be the same
        float x[BLOCK];
        act_part p = {.in = x, .mul = 1, .add = -0.0f, .y = out + k};
        size_t some = n - k < BLOCK ? n - k : BLOCK;
        memcpy(x, in + k, some * sizeof *x);
        exp_part(&p, false, some);
    }
}

INLINE void
act_one(wide_act f, const act_part *p, const bool bf16, const size_t n)
{
    if (f == WIDE_EXP) {
        exp_part(p, bf16, n);
        return;
    }
    affine_in(p->in, bf16, p->mul, p->add, p->y, n);
    if (f == WIDE_SQUARE)
        square(p->y, n);
}

/* Blocks of HIGH rows by WIDTH columns, which stay in the first cache. */
static void
act(wide_act f, const wide_side *o, const wide_side *a, const float *scale, const float *bias,
    float *acc, unsigned rows, size_t n)
{
    float y[HIGH * WIDTH];
    size_t es = a->bf16 ? 2 : 4, to_es = o->bf16 ? 2 : 4;
    for (unsigned from = 0; from < rows; from += HIGH) {
        unsigned some = rows - from < HIGH ? rows - from : HIGH;
        for (size_t k = 0; k < n; k += WIDTH) {
            size_t part = n - k < WIDTH ? n - k : WIDTH;
            for (unsigned r = 0; r < some; r++) {
                const uint8_t *in = a->at + (from + r) * a->pitch + k * es;
                act_part p = {.in = in, .mul = scale[from + r], .add = bias[from + r], .y = y + r * WIDTH};
                soon(in, a->bf16 ? 2 : 4);
                if (part < WIDTH)
                    act_one(f, &p, a->bf16, part);
                else if (a->bf16)
                    act_one(f, &p, true, WIDTH);
                else
                    act_one(f, &p, false, WIDTH);
            }
            for (unsigned r = 0; r < some; r++) {
                uint8_t *to = o->at + (from + r) * o->pitch + k * to_es;
                soon(to, o->bf16 ? 2 : 4);
                if (o->bf16)
                    to_bf16(y + r * WIDTH, (uint16_t *)(void *)to, part);
                else
                    memcpy(to, y + r * WIDTH, part * sizeof *y);
            }
            wide_side block = {.at = (uint8_t *)y, .pitch = WIDTH * sizeof *y};
            if (acc)
                sum(&block, acc + from, some, part);
        }
    }
}

/* ---- transposes, searches ---- */

/* `some` columns from c on: how often a 1 stands in each and where, whatever else there is. */
#define SELECTOR(in, one)                                                                      \
    INLINE bool choose_##in(const wide_side *x, unsigned rows, size_t c, const size_t some,    \
                            uint8_t *sel)                                                      \
    {                                                                                          \
        CODE_##in count[BLOCK] = {0}, at[BLOCK] = {0}, other[BLOCK] = {0}, bad = 0;            \
        for (unsigned k = 0; k < rows; k++) {                                                  \
            const CODE_##in *v = (const CODE_##in *)(const void *)(x->at + k * x->pitch) + c;  \
            LOOP (size_t j = 0; j < some; j++) {                                               \
                CODE_##in is = v[j] == (one) ? (CODE_##in)-1 : 0;                              \
                count[j] -= is;                                                                \
                at[j] |= is & (CODE_##in)k;                                                    \
                other[j] |= (CODE_##in)(v[j] << 1) & (CODE_##in)~is;                           \
            }                                                                                  \
        }                                                                                      \
        for (size_t j = 0; j < some; j++) {                                                    \
            bad |= other[j] | (count[j] ^ 1);                                                  \
            sel[c + j] = (uint8_t)at[j];                                                       \
        }                                                                                      \
        return !bad;                                                                           \
    }                                                                                          \
                                                                                               \
    static bool selector_##in(const wide_side *x, unsigned rows, size_t n, uint8_t *sel)       \
    {                                                                                          \
        size_t c = 0;                                                                          \
        bool ok = true;                                                                        \
        for (; ok && c + BLOCK <= n; c += BLOCK)                                               \
            ok = choose_##in(x, rows, c, BLOCK, sel);                                          \
        return ok && (c == n || choose_##in(x, rows, c, n - c, sel));                          \
    }
#define CODE_f uint32_t
#define CODE_b uint16_t
SELECTOR(f, 0x3F800000u)
SELECTOR(b, 0x3F80u)

static bool
selector(const wide_side *x, unsigned rows, size_t n, uint8_t *sel)
{
    return x->bf16 ? selector_b(x, rows, n, sel) : selector_f(x, rows, n, sel);
}

typedef uint16_t half8 __attribute__((vector_size(16), aligned(2), may_alias));

/* Vectors of the lower and of the upper half pair up, element by element: after three rounds rows are
 * columns. */
#define ROUND(half, x, y)                                                                      \
    _Pragma("GCC unroll 4") for (int i = 0; i < (half); i++)                                   \
    {                                                                                          \
        y[2 * i] = __builtin_shufflevector(x[i], x[i + (half)], 0, 8, 1, 9, 2, 10, 3, 11);     \
        y[2 * i + 1] =                                                                         \
            __builtin_shufflevector(x[i], x[i + (half)], 4, 12, 5, 13, 6, 14, 7, 15);          \
    }

/* Columns of eight rows of eight codes, `opitch` bytes apart. */
INLINE void
turn8(const uint8_t *const row[8], size_t at, uint8_t *out, size_t opitch)
{
    half8 a[8], b[8];
#pragma GCC unroll 8
    for (int i = 0; i < 8; i++)
        a[i] = *(const half8 *)(const void *)(row[i] + at);
    ROUND(4, a, b)
    ROUND(4, b, a)
    ROUND(4, a, b)
#pragma GCC unroll 8
    for (int i = 0; i < 8; i++)
        *(half8 *)(void *)(out + i * opitch) = b[i];
}

/* The same of eight rows of four codes. */
INLINE void
turn4(const uint8_t *const row[8], size_t at, uint8_t *out, size_t opitch)
{
    half8 a[4], b[4];
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
        memcpy(&a[i], row[2 * i] + at, 8);
        memcpy((uint8_t *)&a[i] + 8, row[2 * i + 1] + at, 8);
    }
    ROUND(2, a, b)
    ROUND(2, b, a)
    ROUND(2, a, b)
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++)
        *(half8 *)(void *)(out + i * opitch) = b[i];
}

static void
turn(const uint8_t *in, size_t pitch, const uint8_t *sel, size_t n, unsigned cols, unsigned es,
     uint8_t *out, size_t opitch)
{
    for (size_t c = 0; c < n; c += 8) {
        const uint8_t *row[8];
        size_t some = n - c < 8 ? n - c : 8;
        for (size_t j = 0; j < some; j++)
            row[j] = in + (sel ? sel[c + j] : c + j) * pitch;
        unsigned m = 0;
        for (; es == 2 && some == 8 && m + 8 <= cols; m += 8)
            turn8(row, m * 2, out + m * opitch + c * 2, opitch);
        for (; es == 2 && some == 8 && m + 4 <= cols; m += 4)
            turn4(row, m * 2, out + m * opitch + c * 2, opitch);
        for (; m < cols; m++) {
            for (size_t j = 0; j < some; j++)
                memcpy(out + m * opitch + (c + j) * es, row[j] + m * es, es == 2 ? 2 : 4);
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

static bool
all_finite_codes(const uint16_t *in, size_t n)
{
    uint16_t big = 0;
    for (size_t k = 0; k < n; k++) {
        uint16_t b = (uint16_t)(in[k] << 1);
        big = b > big ? b : big;
    }
    return big >> 8 != 255;
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
    .act = act,
    .affine = affine,
    .selector = selector,
    .turn = turn,
    .split = split,
    .finite = all_finite,
    .finite_codes = all_finite_codes,
    .above = above,
    .equal = equal,
};
