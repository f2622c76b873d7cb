/* The matmul kernel. A panel of x, MM_PANEL columns over all k, is copied (and widened) into the first
 * cache; some rows of the result by up to three vectors of the panel's columns stay in registers while k
 * runs. Weights are packed into strips of as many columns as those registers hold rows, once for all
 * products with them.
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
#define UP_128(p) up_base((const uint16_t *)(const void *)(p))
#define ITS(p) __asm__("" : "+r"(p))
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

/* The same of the first n columns of a panel. */
INLINE range
scan_panel(const float *x, unsigned rows, const unsigned n)
{
    range all = {0, UINT32_MAX};
    for (unsigned k = 0; k < rows; k++, x += MM_PANEL) {
        range r = scan(x, n);
        all.top = CPS_MAX(all.top, r.top);
        all.low = CPS_MIN(all.low, r.low);
    }
    return all;
}

/* The same of n bf16 codes of each row, `pitch` bytes apart. */
INLINE range
scan_codes(const uint8_t *x, size_t pitch, unsigned rows, const unsigned n)
{
    uint16_t top[MM_PANEL] = {0}, low[MM_PANEL];
    memset(low, 0xFF, sizeof low);
    for (unsigned k = 0; k < rows; k++, x += pitch) {
        const uint16_t *in = (const uint16_t *)(const void *)x;
        for (unsigned i = 0; i < n; i++) {
            uint16_t b = (uint16_t)(in[i] << 1), less = (uint16_t)(b - 1);
            top[i] = b > top[i] ? b : top[i];
            low[i] = less < low[i] ? less : low[i];
        }
    }
    for (unsigned i = 1; i < n; i++) {
        top[0] = top[i] > top[0] ? top[i] : top[0];
        low[0] = low[i] < low[0] ? low[i] : low[0];
    }
    return (range){(uint32_t)top[0] << 16, low[0] == UINT16_MAX ? UINT32_MAX : ((low[0] + 1u) << 16) - 1};
}

typedef float four __attribute__((vector_size(16), aligned(4), may_alias));

INLINE four
up_base(const uint16_t *p)
{
    typedef uint32_t words __attribute__((vector_size(16)));
    return (four)((words){p[0], p[1], p[2], p[3]} << 16);
}

/* Part of a panel, n < MM_PANEL columns of x from column c on; the rest of it is 0. */
INLINE void
part_panel(const mm_job *j, unsigned c, unsigned n, float *to)
{
    memset(to, 0, (size_t)j->rows * MM_PANEL * sizeof *to);
    for (unsigned k = 0; k < j->rows; k++, to += MM_PANEL) {
        const uint8_t *row = (const uint8_t *)j->x + k * j->xpitch;
        if (j->bf16) {
            const uint16_t *in = (const uint16_t *)(const void *)row + c;
            uint32_t *out = (uint32_t *)to;
            for (unsigned i = 0; i < n; i++)
                out[i] = (uint32_t)in[i] << 16;
        } else {
            memcpy(to, row + c * sizeof *to, n * sizeof *to);
        }
    }
}

/* Rows [k, end) of x from column c on, of the next panel: a set that works on parts of a panel fetches it
 * while it computes. */
INLINE void
ahead(const mm_job *j, unsigned c, unsigned k, unsigned end)
{
    size_t pitch = j->xpitch;
    const uint8_t *x = (const uint8_t *)j->x + k * pitch + c * (j->bf16 ? 2u : 4u);
    end = c < j->n ? CPS_MIN(end, j->rows) : 0;
    for (; k < end; k++, x += pitch)
        __builtin_prefetch(x, 0, 3);
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

/* How many strips of `high` columns: one less where strips of four then take all that remains. */
INLINE unsigned
tall(unsigned cols, const unsigned high)
{
    unsigned n = cols / high;
    return high % 4 != 0 && n != 0 && (cols - n * high) % 4 == 2 ? n - 1 : n;
}

/* `n` strips [rows][wide] of the columns from `from` on, two at a time while their columns share a cache
 * line; where the next one goes. */
INLINE float *
pack_strips(const mm_job *j, const float *from, unsigned n, const unsigned wide, float *to)
{
    size_t rows = j->rows, pitch = j->wpitch, strip = rows * wide;
    for (; n >= 2; n -= 2, from += 2 * wide, to += 2 * strip) {
        for (size_t k = 0; k < rows; k++) {
            memcpy(to + k * wide, from + k * pitch, wide * sizeof *to);
            memcpy(to + strip + k * wide, from + k * pitch + wide, wide * sizeof *to);
        }
    }
    for (size_t k = 0; k < rows && n != 0; k++)
        memcpy(to + k * wide, from + k * pitch, wide * sizeof *to);
    return to + n * strip;
}

/* Strips of `high`, then of 4 and of 1 columns, as strips_ walks them. */
INLINE void
pack(const mm_job *j, const unsigned high, float *to)
{
    unsigned n = tall(j->cols, high), m = n * high, fours = (j->cols - m) / 4;
    to = pack_strips(j, j->w, n, high, to);
    to = pack_strips(j, j->w + m, fours, 4, to);
    m += 4 * fours;
    pack_strips(j, j->w + m, j->cols - m, 1, to);
}

INLINE void
take(const mm_part part, float *w, size_t n)
{
    for (size_t k = 0; k < n; k++)
        w[k] = mm_part_of(part, w[k]);
}

/* The packed weights and their range; packed by the first run that finds them not ready. */
INLINE range
weights(const mm_job *j, const unsigned high, float **at)
{
    mm_strips once = {.at = j->room + (size_t)j->rows * MM_PANEL}, *s = j->strips ? j->strips : &once;
    *at = s->at;
    if (!s->ready) {
        size_t n = (size_t)j->rows * j->cols;
        pack(j, high, s->at);
        if (j->part == MM_HIGH)
            take(MM_HIGH, s->at, n);
        else if (j->part == MM_LOW)
            take(MM_LOW, s->at, n);
        range r = j->exact ? (range){0, 0} : scan(s->at, n);
        s->top = r.top;
        s->low = r.low;
        s->ready = true;
    }
    return (range){s->top, s->low};
}

/* One version of the kernel: vectors of `bytes`, HIGH rows of the result by WIDE of them, at most 3, in
 * registers. FMA(w, x, a), SET(w) and UP(codes), bf16 to fp32, are the set's own. ITS(w) is a pointer that
 * the compiler cannot know to be w: where the set multiplies by a number in memory (FOLD), half of the rows
 * load their weight once for each product, which is one instruction less. */
#define ALL(r, R) _Pragma("GCC unroll 16") for (unsigned r = 0; r < (R); r++)
#define VERSION(suf, isa, bytes, HIGH, WIDE, FOLD, SET, FMA, UP)                               \
    typedef float vec_##suf __attribute__((vector_size(bytes), aligned(4), may_alias));        \
    enum { L_##suf = (bytes) / 4 };                                                            \
                                                                                               \
    /* `vecs` vectors of columns of x from column c on. */                                     \
    isa INLINE void panel_##suf(const mm_job *j, unsigned c, const unsigned vecs, float *to)   \
    {                                                                                          \
        const uint8_t *in = (const uint8_t *)j->x + c * (j->bf16 ? 2u : 4u);                   \
        for (unsigned k = 0; k < j->rows; k++, in += j->xpitch, to += MM_PANEL) {              \
            if (j->bf16) {                                                                     \
                if (WIDE * L_##suf == MM_PANEL)                                                \
                    __builtin_prefetch(in + MM_PANEL * 2, 0, 3);                               \
                ALL(i, vecs) *(vec_##suf *)(to + i * L_##suf) = UP(in + i * L_##suf * 2);      \
            } else {                                                                           \
                if (WIDE * L_##suf == MM_PANEL) {                                              \
                    __builtin_prefetch(in + MM_PANEL * 4, 0, 3);                               \
                    __builtin_prefetch(in + MM_PANEL * 4 + 64, 0, 3);                          \
                    __builtin_prefetch(in + MM_PANEL * 4 + 128, 0, 3);                         \
                }                                                                              \
                ALL(i, vecs)                                                                   \
                *(vec_##suf *)(to + i * L_##suf) = *(const vec_##suf *)(in + i * L_##suf * 4); \
            }                                                                                  \
        }                                                                                      \
    }                                                                                          \
                                                                                               \
    isa INLINE vec_##suf step_##suf(vec_##suf w, vec_##suf x, vec_##suf a, const bool fused)   \
    {                                                                                          \
        if (fused)                                                                             \
            return FMA(w, x, a);                                                               \
        return a + w * x;                                                                      \
    }                                                                                          \
                                                                                               \
    isa INLINE void block_##suf(const float *w, const float *x, const mm_job *j, float *o,     \
                                unsigned n, const unsigned R, const unsigned C,                \
                                const bool fused)                                              \
    {                                                                                          \
        vec_##suf a[HIGH][WIDE], p[WIDE];                                                      \
        ALL(r, R)                                                                              \
        {                                                                                      \
            ALL(c, C)                                                                          \
            {                                                                                  \
                __builtin_prefetch(o + r * j->opitch + c * L_##suf, 1);                        \
                a[r][c] = (vec_##suf){0};                                                      \
            }                                                                                  \
        }                                                                                      \
        const float *v[3] = {w, w, w};                                                         \
        ITS(v[1]);                                                                             \
        v[2] = v[1];                                                                           \
        ITS(v[2]);                                                                             \
        _Pragma("GCC unroll 2") for (unsigned k = 0; k < j->rows; k++, x += MM_PANEL)          \
        {                                                                                      \
            ALL(c, C) p[c] = *(const vec_##suf *)(x + c * L_##suf);                            \
            ALL(r, R)                                                                          \
            {                                                                                  \
                if (FOLD && 2 * r < R) {                                                       \
                    ALL(c, C) a[r][c] = step_##suf(SET(v[c][r]), p[c], a[r][c], fused);        \
                } else {                                                                       \
                    vec_##suf s = SET(v[0][r]);                                                \
                    ALL(c, C) a[r][c] = step_##suf(s, p[c], a[r][c], fused);                   \
                }                                                                              \
            }                                                                                  \
            ALL(c, 3) v[c] += R;                                                               \
        }                                                                                      \
        if (n < C * L_##suf) {                                                                 \
            float t[HIGH][WIDE * L_##suf];                                                     \
            ALL(r, R) ALL(c, C) *(vec_##suf *)(t[r] + c * L_##suf) = a[r][c];                  \
            put(t[0], WIDE * L_##suf, j, o, R, n);                                             \
            return;                                                                            \
        }                                                                                      \
        ALL(r, R)                                                                              \
        {                                                                                      \
            ALL(c, C)                                                                          \
            {                                                                                  \
                vec_##suf *y = (vec_##suf *)(o + r * j->opitch + c * L_##suf);                 \
                if (j->add)                                                                    \
                    *y += a[r][c];                                                             \
                else                                                                           \
                    *y = a[r][c];                                                              \
            }                                                                                  \
        }                                                                                      \
    }                                                                                          \
                                                                                               \
    /* Columns [c, c + n) of the result, n <= C vectors; x is at that column of its panel.     \
     * Each column of w fetches a `share` of the rows of the panel to come. */                 \
    isa INLINE void strips_##suf(const mm_job *j, const float *w, const float *x, unsigned c,  \
                                 unsigned n, const unsigned C, const bool fused)               \
    {                                                                                          \
        unsigned m = 0, high = tall(j->cols, HIGH) * (HIGH);                                   \
        unsigned share = (j->rows + j->cols - 1) / j->cols;                                    \
        float *o = j->out + c;                                                                 \
        for (; m < high; m += (HIGH)) {                                                        \
            if (WIDE * L_##suf != MM_PANEL)                                                    \
                ahead(j, c + MM_PANEL, m * share, (m + (HIGH)) * share);                       \
            block_##suf(w + (size_t)m * j->rows, x, j, o + m * j->opitch, n, HIGH, C, fused);  \
        }                                                                                      \
        for (; m + 4 <= j->cols; m += 4)                                                       \
            block_##suf(w + (size_t)m * j->rows, x, j, o + m * j->opitch, n, 4, C, fused);     \
        for (; m < j->cols; m++)                                                               \
            block_##suf(w + (size_t)m * j->rows, x, j, o + m * j->opitch, n, 1, C, fused);     \
    }                                                                                          \
                                                                                               \
    /* Apart, so that what stands around it takes no registers from it. */                     \
    isa __attribute__((noinline)) static void columns_##suf(const mm_job *j, const float *w,   \
                                                            const float *x, unsigned c,        \
                                                            unsigned n, const bool fused)      \
    {                                                                                          \
        for (unsigned i = 0; i < n; i += WIDE * L_##suf) {                                     \
            unsigned some = CPS_MIN(n - i, (unsigned)WIDE * L_##suf);                          \
            if (some > 2 * L_##suf)                                                            \
                strips_##suf(j, w, x + i, c + i, some, 3, fused);                              \
            else if (some > L_##suf)                                                           \
                strips_##suf(j, w, x + i, c + i, some, 2, fused);                              \
            else                                                                               \
                strips_##suf(j, w, x + i, c + i, some, 1, fused);                              \
        }                                                                                      \
    }                                                                                          \
                                                                                               \
    /* The panel of n columns from c on; whether its products are exact or rounded once. */    \
    isa INLINE bool ready_##suf(const mm_job *j, unsigned c, const unsigned n, range of_w,     \
                                float *x)                                                      \
    {                                                                                          \
        const uint8_t *codes = (const uint8_t *)j->x + c * 2u;                                 \
        panel_##suf(j, c, n / L_##suf, x);                                                     \
        if (j->exact)                                                                          \
            return true;                                                                       \
        return products_exact(of_w, j->bf16 ? scan_codes(codes, j->xpitch, j->rows, n)         \
                                            : scan_panel(x, j->rows, n));                      \
    }                                                                                          \
                                                                                               \
    isa static void run_##suf(const mm_job *j)                                                 \
    {                                                                                          \
        float *w, *x = j->room;                                                                \
        range of_w = weights(j, HIGH, &w);                                                     \
        for (unsigned c = 0; c < j->n; c += MM_PANEL) {                                        \
            unsigned n = CPS_MIN(j->n - c, (unsigned)MM_PANEL);                                \
            bool fused;                                                                        \
            if (n == MM_PANEL) {                                                               \
                fused = ready_##suf(j, c, MM_PANEL, of_w, x);                                  \
            } else if (n == 32) {                                                              \
                fused = ready_##suf(j, c, 32, of_w, x);                                        \
            } else if (n == 16) {                                                              \
                fused = ready_##suf(j, c, 16, of_w, x);                                        \
            } else {                                                                           \
                part_panel(j, c, n, x);                                                        \
                fused = j->exact || products_exact(of_w, scan(x, (size_t)j->rows * MM_PANEL)); \
            }                                                                                  \
            if (fused)                                                                         \
                columns_##suf(j, w, x, c, n, true);                                            \
            else                                                                               \
                columns_##suf(j, w, x, c, n, false);                                           \
        }                                                                                      \
    }

/* No fused step in the base set: exact sums go through the library's. */
static void
exact_base(const mm_job *j)
{
    float *x = j->room;
    for (unsigned c = 0; c < j->n; c += MM_PANEL) {
        unsigned n = CPS_MIN(j->n - c, (unsigned)MM_PANEL);
        part_panel(j, c, n, x);
        for (unsigned m = 0; m < j->cols; m++) {
            float a[MM_PANEL] = {0};
            for (unsigned k = 0; k < j->rows; k++) {
                float w = mm_part_of(j->part, j->w[k * j->wpitch + m]);
                for (unsigned i = 0; i < n; i++)
                    a[i] = fmaf(w, x[k * MM_PANEL + i], a[i]);
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
#define UP_512(p) \
    (__m512) _mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_loadu_si256((const void *)(p))), 16)
#define UP_256(p) \
    (__m256) _mm256_slli_epi32(_mm256_cvtepu16_epi32(_mm_loadu_si128((const void *)(p))), 16)

/* The form that adds to its own operand, by its name: the compiler chooses among three and copies sums from
 * register to register; with 12 of 16 registers full of sums, some of them went to memory and back. */
WITH("avx2,fma")
INLINE __m256
fma_256(__m256 w, __m256 x, __m256 a)
{
    __asm__("vfmadd231ps %2, %1, %0" : "+x"(a) : "x"(w), "x"(x));
    return a;
}

VERSION(avx512, AVX512_SET, 64, 8, 3, true, _mm512_set1_ps, _mm512_fmadd_ps, UP_512)
VERSION(avx2, WITH("avx2,fma"), 32, 6, 2, false, _mm256_set1_ps, fma_256, UP_256)
#endif
VERSION(base, , 16, 4, 3, false, FOUR, SPLIT, UP_128)

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
