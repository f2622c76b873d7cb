/* Vectors of the host for wide_rows.c: what its loops need beyond plain C, written once for AVX2 and AVX-512.
 * VEC is the number of fp32 in a vector; an instruction set without this layer has no VEC, and its loops are
 * plain C alone. */
#ifndef CPS_SIM_WIDE_VEC_H
#define CPS_SIM_WIDE_VEC_H

#include "runtime/base/base.h"

#define INLINE static inline __attribute__((always_inline))
#if defined(__AVX512F__) || defined(__AVX2__)
#include <immintrin.h>

#if defined(__AVX512F__)
#define VEC 16
#define V(name) _mm512_##name /* an operation that both sets have */
#define VI(name) _mm512_##name##_si512 /* of all bits of a vector */
typedef __m512 vec;
typedef __m512i words;
#else
#define VEC 8
#define V(name) _mm256_##name
#define VI(name) _mm256_##name##_si256
typedef __m256 vec;
typedef __m256i words;
#endif

enum { PAIR_N = 2 * VEC }; /* elements of two vectors */

INLINE vec
as_vec(words x)
{
#if VEC == 16
    return _mm512_castsi512_ps(x);
#else
    return _mm256_castsi256_ps(x);
#endif
}

INLINE words
as_words(vec x)
{
#if VEC == 16
    return _mm512_castps_si512(x);
#else
    return _mm256_castps_si256(x);
#endif
}

INLINE words
load_words(const void *p)
{
#if VEC == 16
    return _mm512_loadu_si512(p);
#else
    return _mm256_loadu_si256(p);
#endif
}

INLINE void
store_words(void *p, words x)
{
#if VEC == 16
    _mm512_storeu_si512(p, x);
#else
    _mm256_storeu_si256(p, x);
#endif
}

/* ---- bf16: a word holds two codes; the even one is worked on shifted up, the odd one where it is ---- */

INLINE vec
even(words v)
{
    return as_vec(V(slli_epi32)(v, 16));
}

INLINE vec
odd(words v)
{
    return as_vec(VI(and)(v, V(set1_epi32)(-65536)));
}

/* VEC codes in their order. */
INLINE vec
load_codes(const uint16_t *p)
{
#if VEC == 16
    return even(_mm512_cvtepu16_epi32(_mm256_loadu_si256((const void *)p)));
#else
    return even(_mm256_cvtepu16_epi32(_mm_loadu_si128((const void *)p)));
#endif
}

INLINE bool
any_nan(vec x, vec y)
{
#if VEC == 16
    return __builtin_expect(_mm512_cmp_ps_mask(x, y, _CMP_UNORD_Q) != 0, 0);
#else
    return __builtin_expect(_mm256_movemask_ps(_mm256_cmp_ps(x, y, _CMP_UNORD_Q)) != 0, 0);
#endif
}

/* y where x is a NaN, z elsewhere. */
INLINE vec
if_nan(vec x, vec y, vec z)
{
#if VEC == 16
    return _mm512_mask_mov_ps(z, _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q), y);
#else
    return _mm256_blendv_ps(z, y, _mm256_cmp_ps(x, x, _CMP_UNORD_Q));
#endif
}

/* The upper half of each word is its code, rounded to nearest even; no NaN. */
INLINE words
round_up(vec v)
{
    words x = as_words(v);
#if VEC == 16 // half a step more, and where that met a tie, back to the even one
    words r = _mm512_add_epi32(x, _mm512_set1_epi32(0x8000));
    __mmask16 tie = _mm512_testn_epi32_mask(r, _mm512_set1_epi32(0xFFFF));
    return _mm512_mask_andnot_epi32(r, tie, _mm512_set1_epi32(0x10000), r);
#else
    words last = _mm256_and_si256(_mm256_srli_epi32(x, 16), _mm256_set1_epi32(1));
    return _mm256_add_epi32(_mm256_add_epi32(x, _mm256_set1_epi32(0x7FFF)), last);
#endif
}

/* The same of any x: a NaN keeps its upper bits and becomes quiet. */
INLINE words
round_any(vec x)
{
    words quiet = VI(or)(as_words(x), V(set1_epi32)(0x400000));
    return as_words(if_nan(x, as_vec(quiet), as_vec(round_up(x))));
}

/* Codes of even and odd elements, each in the upper half of a word. */
INLINE void
store_halves(uint16_t *to, words e, words o)
{
#if VEC == 16
    enum { A_OR_B_AND_C = 0xF8 };
    words up = _mm512_srli_epi32(e, 16);
    store_words(to, _mm512_ternarylogic_epi32(up, o, _mm512_set1_epi32(-65536), A_OR_B_AND_C));
#else
    store_words(to, _mm256_blend_epi16(_mm256_srli_epi32(e, 16), o, 0xAA));
#endif
}

/* Codes of two vectors in their order, each in the upper half of a word. */
INLINE void
store_uppers(uint16_t *to, words x, words y)
{
#if VEC == 16
    static const uint16_t upper[32] = {1,  3,  5,  7,  9,  11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31,
                                       33, 35, 37, 39, 41, 43, 45, 47, 49, 51, 53, 55, 57, 59, 61, 63};
    store_words(to, _mm512_permutex2var_epi16(x, load_words(upper), y));
#else
    words both = _mm256_packus_epi32(_mm256_srli_epi32(x, 16), _mm256_srli_epi32(y, 16));
    store_words(to, _mm256_permute4x64_epi64(both, 0xD8));
#endif
}

/* Two vectors: elements in their order, or the even and the odd ones. */
typedef struct two {
    vec x, y;
} two;

INLINE two
two_floats(const float *p)
{
    return (two){V(loadu_ps)(p), V(loadu_ps)(p + VEC)};
}

INLINE two
two_codes(const uint16_t *p)
{
    return (two){load_codes(p), load_codes(p + VEC)};
}

INLINE two
two_halves(const uint16_t *p)
{
    words v = load_words(p);
    return (two){even(v), odd(v)};
}

INLINE void
put_floats(float *z, two v)
{
    V(storeu_ps)(z, v.x);
    V(storeu_ps)(z + VEC, v.y);
}

INLINE void
put_codes(uint16_t *z, two v)
{
    if (any_nan(v.x, v.y))
        store_uppers(z, round_any(v.x), round_any(v.y));
    else
        store_uppers(z, round_up(v.x), round_up(v.y));
}

/* Of numbers that were made of codes: the lower half of a NaN is 0, as that of its operand or of the one that
 * the processor makes, and nothing rounds it. */
INLINE void
put_halves(uint16_t *z, two v)
{
    store_halves(z, round_up(v.x), round_up(v.y));
}

/* ---- rows to columns ---- */

/* Word k of VEC rows, `pitch` bytes apart, in vector k. */
#if VEC == 16
INLINE void
turn_rows(const uint8_t *in, size_t pitch, vec t[16])
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
#else
INLINE void
turn_rows(const uint8_t *in, size_t pitch, vec t[8])
{
#pragma GCC unroll 2
    for (int h = 0; h < 2; h++, in += 16) {
        __m256d a[4], b[4]; // rows i and i + 4 side by side
#pragma GCC unroll 4
        for (int i = 0; i < 4; i++) {
            const void *p = in + (size_t)i * pitch, *q = in + (size_t)(i + 4) * pitch;
            a[i] = _mm256_insertf128_pd(_mm256_castpd128_pd256(_mm_loadu_pd(p)), _mm_loadu_pd(q), 1);
        }
#pragma GCC unroll 2
        for (int i = 0; i < 4; i += 2) {
            __m256 x = _mm256_castpd_ps(a[i]), y = _mm256_castpd_ps(a[i + 1]);
            b[i] = _mm256_castps_pd(_mm256_unpacklo_ps(x, y));
            b[i + 1] = _mm256_castps_pd(_mm256_unpackhi_ps(x, y));
        }
#pragma GCC unroll 2
        for (int i = 0; i < 2; i++) {
            t[4 * h + 2 * i] = _mm256_castpd_ps(_mm256_unpacklo_pd(b[i], b[i + 2]));
            t[4 * h + 2 * i + 1] = _mm256_castpd_ps(_mm256_unpackhi_pd(b[i], b[i + 2]));
        }
    }
}
#endif

/* ---- searches: a bit for each element ---- */

/* Elements of x that are at least lo and at most hi. */
INLINE uint32_t
within(vec x, vec lo, vec hi)
{
#if VEC == 16
    return _mm512_mask_cmp_ps_mask(_mm512_cmp_ps_mask(x, lo, _CMP_GE_OQ), x, hi, _CMP_LE_OQ);
#else
    vec in = _mm256_and_ps(_mm256_cmp_ps(x, lo, _CMP_GE_OQ), _mm256_cmp_ps(x, hi, _CMP_LE_OQ));
    return (uint32_t)_mm256_movemask_ps(in);
#endif
}

/* Whether a word of x, without sign, is greater than the edge. */
INLINE bool
any_above(words x, uint32_t edge)
{
    words e = V(set1_epi32)((int)edge);
#if VEC == 16
    return _mm512_cmpgt_epu32_mask(x, e) != 0;
#else
    return _mm256_movemask_epi8(_mm256_cmpeq_epi32(_mm256_max_epu32(x, e), e)) != -1;
#endif
}

/* Whether `within` finds elements in n vectors. */
INLINE bool
any_within(const float *v, const unsigned n, vec lo, vec hi)
{
#if VEC == 16
    uint32_t any = 0;
    for (unsigned j = 0; j < n; j++)
        any |= within(_mm512_loadu_ps(v + j * VEC), lo, hi);
    return any != 0;
#else
    vec any = _mm256_setzero_ps();
#pragma GCC unroll 8
    for (unsigned j = 0; j < n; j++) {
        vec x = _mm256_loadu_ps(v + j * VEC);
        vec in = _mm256_and_ps(_mm256_cmp_ps(x, lo, _CMP_GE_OQ), _mm256_cmp_ps(x, hi, _CMP_LE_OQ));
        any = _mm256_or_ps(any, in);
    }
    return _mm256_movemask_ps(any) != 0;
#endif
}

#endif
#endif
