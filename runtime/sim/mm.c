/* The matmul kernel. A panel of x, 32 columns over all k, is copied (and widened) into the first cache;
 * some rows of the result by the panel's columns stay in registers while k runs. Weights are packed
 * into strips of as many columns as those registers hold rows.
 *
 * A fused multiply-add rounds once. It gives the bits of a rounded product and a rounded sum when the
 * product is exact in fp32: operands of at most 12 bits of significand whose product neither
 * overflows nor falls below 2^-126. A scan of both operands decides that panel by panel; where it does
 * not hold, product and sum are two instructions. fp32 operands (`exact`) want the single rounding.
 *
 * The same source is compiled for AVX-512, for AVX2 and for the base instruction set, which has no
 * fused step; which one runs is asked of the processor and changes no result. */
#include "runtime/sim/mm.h"

#include <math.h>
#include <string.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#define WITH(set) __attribute__((target(set)))
#define FOUR(w) ((vec_base){w, w, w, w})
#define SPLIT(w, x, a) ((a) + (w) * (x)) /* never asked for where it makes a difference */
#define INLINE static inline __attribute__((always_inline))

/* Exponents of what is not zero, as the bits of fp32 without sign, doubled: the largest, and the
 * smallest less one. */
typedef struct range {
    uint32_t top, low;
} range;

/* Every product of a pair is finite and exact: the exponents' sum stays below 2^127 and above the last
 * bit of fp32 and the 22 bits that two significands of 12 may need. */
static bool
products_exact(range w, range x)
{
    if (w.top == 0 || x.top == 0)
        return w.top >> 24 != 255 && x.top >> 24 != 255; // zeros only on one side
    uint32_t wl = (w.low + 1) >> 24, xl = (x.low + 1) >> 24, wt = w.top >> 24, xt = x.top >> 24;
    return wl != 0 && xl != 0 && wt != 255 && xt != 255 && wt + xt <= 254 + 125 && wl + xl >= 254 - 126;
}

INLINE range
scan(const float *x, size_t n)
{
    uint32_t top = 0, low = UINT32_MAX;
    for (size_t i = 0; i < n; i++) {
        uint32_t b;
        memcpy(&b, x + i, 4);
        b <<= 1;
        top = b > top ? b : top;
        low = b - 1 < low ? b - 1 : low; // a zero wraps and never is the smallest
    }
    return (range){top, low};
}

/* Rows of x from column c on, n <= MM_PANEL columns; the rest of the panel is 0. */
INLINE void
panel(const mm_job *j, unsigned c, unsigned n, float *to)
{
    for (unsigned k = 0; k < j->rows; k++, to += MM_PANEL) {
        const uint8_t *row = (const uint8_t *)j->x + k * j->xpitch;
        if (n < MM_PANEL)
            memset(to, 0, MM_PANEL * sizeof *to);
        if (j->bf16) {
            const uint16_t *in = (const uint16_t *)(const void *)row + c;
            uint32_t *out = (uint32_t *)to;
            __builtin_prefetch(in + MM_PANEL, 0, 2);
            if (n == MM_PANEL) {
                for (unsigned i = 0; i < MM_PANEL; i++)
                    out[i] = (uint32_t)in[i] << 16;
            } else {
                for (unsigned i = 0; i < n; i++)
                    out[i] = (uint32_t)in[i] << 16;
            }
        } else {
            __builtin_prefetch(row + (c + MM_PANEL) * sizeof *to, 0, 2);
            if (n == MM_PANEL)
                memcpy(to, row + c * sizeof *to, MM_PANEL * sizeof *to);
            else
                memcpy(to, row + c * sizeof *to, n * sizeof *to);
        }
    }
}

/* Rows of a finished block to where they belong, n of `wide` columns. */
INLINE void
put(const float *t, unsigned wide, const mm_job *j, float *o, unsigned high, unsigned n)
{
    for (unsigned r = 0; r < high; r++, t += wide, o += j->opitch) {
        for (unsigned c = 0; c < n; c++)
            o[c] = j->add ? o[c] + t[c] : t[c];
    }
}

/* As many strips [rows][wide] of columns from m on as there are; where the next one goes. */
INLINE float *
pack_strips(const mm_job *j, unsigned *m, const unsigned wide, float *to)
{
    for (; *m + wide <= j->cols; *m += wide) {
        const float *from = j->w + *m;
        for (unsigned k = 0; k < j->rows; k++, from += j->wpitch, to += wide)
            memcpy(to, from, wide * sizeof *to);
    }
    return to;
}

/* Strips of `high`, then of 4 and of 1 columns, as strips_ walks them. */
INLINE void
pack(const mm_job *j, const unsigned high, float *to)
{
    unsigned m = 0;
    to = pack_strips(j, &m, high, to);
    to = pack_strips(j, &m, 4, to);
    pack_strips(j, &m, 1, to);
}

/* One version of the kernel: vectors of `bytes`, HIGH rows of the result in registers. FMA(w, x, a) and
 * SET(w) are the set's own. */
#define VERSION(suf, isa, bytes, HIGH, SET, FMA)                                               \
    typedef float vec_##suf __attribute__((vector_size(bytes), aligned(4), may_alias));        \
    enum { L_##suf = (bytes) / 4 };                                                            \
                                                                                               \
    isa INLINE void block_##suf(                \
        const float *w, const float *x, const mm_job *j, float *o, unsigned n, const unsigned R, \
        const bool fused)                                                                      \
    {                                                                                          \
        vec_##suf a[HIGH], b[HIGH];                                                            \
        for (unsigned r = 0; r < R; r++) {                                                     \
            __builtin_prefetch(o + r * j->opitch, 1);                                          \
            __builtin_prefetch(o + r * j->opitch + 2 * L_##suf - 1, 1);                        \
        }                                                                                      \
        _Pragma("GCC unroll 16") for (unsigned r = 0; r < R; r++) a[r] = b[r] = (vec_##suf){0}; \
        for (unsigned k = 0; k < j->rows; k++, w += R, x += MM_PANEL) {                        \
            vec_##suf p = *(const vec_##suf *)x, q = *(const vec_##suf *)(x + L_##suf);        \
            _Pragma("GCC unroll 16") for (unsigned r = 0; r < R; r++)                          \
            {                                                                                  \
                vec_##suf s = SET(w[r]);                                                       \
                if (fused) {                                                                   \
                    a[r] = FMA(s, p, a[r]);                                                    \
                    b[r] = FMA(s, q, b[r]);                                                    \
                } else {                                                                       \
                    a[r] += s * p;                                                             \
                    b[r] += s * q;                                                             \
                }                                                                              \
            }                                                                                  \
        }                                                                                      \
        if (n < 2 * L_##suf) {                                                                 \
            float t[HIGH][2 * L_##suf];                                                        \
            _Pragma("GCC unroll 16") for (unsigned r = 0; r < R; r++)                          \
            {                                                                                  \
                *(vec_##suf *)t[r] = a[r];                                                     \
                *(vec_##suf *)(t[r] + L_##suf) = b[r];                                         \
            }                                                                                  \
            put(t[0], 2 * L_##suf, j, o, R, n);                                                \
            return;                                                                            \
        }                                                                                      \
        _Pragma("GCC unroll 16") for (unsigned r = 0; r < R; r++, o += j->opitch)              \
        {                                                                                      \
            vec_##suf *y = (vec_##suf *)o, *z = (vec_##suf *)(o + L_##suf);                    \
            if (j->add) {                                                                      \
                *y += a[r];                                                                    \
                *z += b[r];                                                                    \
            } else {                                                                           \
                *y = a[r];                                                                     \
                *z = b[r];                                                                     \
            }                                                                                  \
        }                                                                                      \
    }                                                                                          \
                                                                                               \
    /* Columns [c, c + n) of the result, n <= 2 vectors; x is at that column of its panel. */  \
    isa INLINE void strips_##suf(               \
        const mm_job *j, const float *w, const float *x, unsigned c, unsigned n,               \
        const bool fused)                                                                      \
    {                                                                                          \
        unsigned m = 0;                                                                        \
        float *o = j->out + c;                                                                 \
        for (; m + (HIGH) <= j->cols; m += (HIGH))                                             \
            block_##suf(w + (size_t)m * j->rows, x, j, o + m * j->opitch, n, HIGH, fused);     \
        for (; m + 4 <= j->cols; m += 4)                                                       \
            block_##suf(w + (size_t)m * j->rows, x, j, o + m * j->opitch, n, 4, fused);        \
        for (; m < j->cols; m++)                                                               \
            block_##suf(w + (size_t)m * j->rows, x, j, o + m * j->opitch, n, 1, fused);        \
    }                                                                                          \
                                                                                               \
    isa static void run_##suf(const mm_job *j)                        \
    {                                                                                          \
        float *w = j->room, *x = w + (size_t)j->rows * j->cols;                                \
        pack(j, HIGH, w);                                                                      \
        range of_w = {1, 0};                                                                   \
        if (!j->exact)                                                                         \
            of_w = scan(w, (size_t)j->rows * j->cols);                                         \
        for (unsigned c = 0; c < j->n; c += MM_PANEL) {                                        \
            unsigned n = CPS_MIN(j->n - c, (unsigned)MM_PANEL);                                \
            panel(j, c, n, x);                                                                 \
            bool fused =                                                                       \
                j->exact || products_exact(of_w, scan(x, (size_t)j->rows * MM_PANEL));         \
            for (unsigned i = 0; i < n; i += 2 * L_##suf) {                                    \
                unsigned some = CPS_MIN(n - i, 2u * L_##suf);                                  \
                if (fused)                                                                     \
                    strips_##suf(j, w, x + i, c + i, some, true);                              \
                else                                                                           \
                    strips_##suf(j, w, x + i, c + i, some, false);                             \
            }                                                                                  \
        }                                                                                      \
    }

/* No fused step in the base set: exact sums go through the library's. */
static void
exact_base(const mm_job *j)
{
    float *x = j->room;
    for (unsigned c = 0; c < j->n; c += MM_PANEL) {
        unsigned n = CPS_MIN(j->n - c, (unsigned)MM_PANEL);
        panel(j, c, n, x);
        for (unsigned m = 0; m < j->cols; m++) {
            float a[MM_PANEL] = {0};
            for (unsigned k = 0; k < j->rows; k++) {
                for (unsigned i = 0; i < n; i++)
                    a[i] = fmaf(j->w[k * j->wpitch + m], x[k * MM_PANEL + i], a[i]);
            }
            put(a, MM_PANEL, j, j->out + m * j->opitch + c, 1, n);
        }
    }
}

#if defined(__x86_64__)
#define AVX512 "avx512f,avx512bw,avx512vl,avx512dq,avx2,fma"
#if defined(__clang__)
#define AVX512_SET WITH(AVX512)
#else
#define AVX512_SET WITH(AVX512 ",prefer-vector-width=512") /* the copies and scans, too */
#endif
VERSION(avx512, AVX512_SET, 64, 12, _mm512_set1_ps, _mm512_fmadd_ps)
VERSION(avx2, WITH("avx2,fma"), 32, 6, _mm256_set1_ps, _mm256_fmadd_ps)
#endif
VERSION(base, , 16, 4, FOUR, SPLIT)

bool
mm_run_on(int level, const mm_job *j)
{
#if defined(__x86_64__)
    if (level == 2) {
        bool have = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                    __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
        if (have)
            run_avx512(j);
        return have;
    }
    if (level == 1) {
        bool have = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
        if (have)
            run_avx2(j);
        return have;
    }
#endif
    if (level != 0)
        return false;
    if (j->exact)
        exact_base(j);
    else
        run_base(j);
    return true;
}

void
mm_run(const mm_job *j)
{
    for (int level = 2; !mm_run_on(level, j);)
        level--;
}
