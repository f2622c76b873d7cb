/* The loops of wide.h. This file is compiled once for each instruction set: WIDE names the table that it
 * fills, SMOOTH its function of wide_smooth.c. Loops are plain C that the compiler turns into vectors; what has
 * no such form is written with the vectors of wide_vec.h, where there are any. Rows that are read and written
 * may be the same, never overlap otherwise. */
#include "runtime/sim/wide.h"

#include "runtime/base/exp.h"
#include "runtime/sim/wide_vec.h"

#include <math.h>
#include <string.h>

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
enum { STRIP = 64, VECTOR = 16 /* words of a vector at most */ };
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

static void
from_bf16(const uint16_t *in, float *out, size_t n)
{
    size_t k = 0;
    EACH(out[i] = get_b(in[i]);)
}

static void
to_bf16(const float *in, uint16_t *out, size_t n)
{
    size_t whole = 0;
#ifdef VEC
    whole = n - n % PAIR_N;
    for (size_t k = 0; k < whole; k += PAIR_N)
        put_codes(out + k, two_floats(in + k));
#endif
    LOOP (size_t k = whole; k < n; k++)
        out[k] = put_b(in[k]);
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

/* Short rows a pitch apart follow one another in no way that a processor foresees: the strip of the row after
 * the next is fetched ahead. */
enum { SHORT = 256, AHEAD = 2 };
#define COMING(at, side)                                                                       \
    for (size_t x_ = 0; x_ < STRIP * sizeof *(at); x_ += 64)                                   \
        __builtin_prefetch((const uint8_t *)(at) + AHEAD * (side).pitch + x_);

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
        if (n > STRIP && n <= SHORT) {                                                         \
            EACH_ROW(in, res, for (size_t k = 0; k < whole; k += STRIP) {                      \
                COMING(p + k, A) COMING(q + k, B) COMING(z + k, O) strip                       \
            })                                                                                 \
        } else {                                                                               \
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
#ifdef VEC
#define FAST(fast, ...)                                                                        \
    for (size_t i = k; i < k + STRIP; i += PAIR_N) {                                           \
        fast;                                                                                  \
    }
#else
#define FAST(fast, ...) PLAIN(__VA_ARGS__)
#endif

/* Two vectors of a tile: how they come and go. Codes that become codes never move between lanes. */
#define TWO_fb two_floats
#define TWO_bf two_codes
#define TWO_bb two_halves
#define PUT_fb put_codes
#define PUT_bf put_floats
#define PUT_bb put_halves

#ifdef VEC
#define BOTH(op, f)                                                                            \
    INLINE two both_##op(two a, two b)                                                         \
    {                                                                                          \
        return (two){f(a.x, b.x), f(a.y, b.y)};                                                \
    }
BOTH(ADD, V(add_ps))
BOTH(SUB, V(sub_ps))
BOTH(MUL, V(mul_ps))

/* The instruction takes y unless x is greater (less): that is what is wanted but for a NaN of x. */
#define BOTH_PICK(op, f)                                                                       \
    INLINE two both_##op(two a, two b)                                                         \
    {                                                                                          \
        return (two){if_nan(a.x, a.x, f(a.x, b.x)), if_nan(a.y, a.y, f(a.y, b.y))};            \
    }                                                                                          \
    /* One of two codes needs no rounding. */                                                  \
    INLINE void pick_##op(const uint16_t *p, const uint16_t *q, uint16_t *z)                   \
    {                                                                                          \
        two a = two_halves(p), b = two_halves(q);                                              \
        if (any_nan(a.x, a.y) || any_nan(b.x, b.y))                                            \
            store_halves(z, round_any(both_##op(a, b).x), round_any(both_##op(a, b).y));       \
        else                                                                                   \
            store_halves(z, as_words(f(a.x, b.x)), as_words(f(a.y, b.y)));                     \
    }
BOTH_PICK(MAX, V(max_ps))
BOTH_PICK(MIN, V(min_ps))

/* x, a NaN without its lower half. */
INLINE float
nan_of_code(float x)
{
    return x != x ? value((bits(x) | 0x400000) & 0xFFFF0000u) : x;
}

INLINE two
step_two(two v, float m, float c)
{
    vec mul = V(set1_ps)(m), add = V(set1_ps)(c);
    return (two){V(add_ps)(V(mul_ps)(v.x, mul), add), V(add_ps)(V(mul_ps)(v.y, mul), add)};
}
#endif

/* Maximum and minimum as alu.c has them: NaN of either side stays. */
#define PAIR_OPS(X)                                                                            \
    X(ADD, x + y, RESULT)                                                                      \
    X(SUB, x - y, RESULT)                                                                      \
    X(MUL, x *y, RESULT)                                                                       \
    X(MAX, x > y || x != x ? x : y, PICK)                                                      \
    X(MIN, x < y || x != x ? x : y, PICK)
#define PAIR(in, res, expr) float x = get_##in(p[i]), y = get_##in(q[i]); z[i] = put_##res(expr);
#define RESULT(op, kind) PUT_##kind(z + i, both_##op(TWO_##kind(p + i), TWO_##kind(q + i)))
#define PICK(op, kind) pick_##op(p + i, q + i, z + i)
#define PAIRS(op, expr, codes)                                                                 \
    TILE(pair_##op##_ff, f, f, PAIR(f, f, expr), PLAIN(PAIR(f, f, expr)))                      \
    TILE(pair_##op##_fb, f, b, PAIR(f, b, expr), FAST(RESULT(op, fb), PAIR(f, b, expr)))       \
    TILE(pair_##op##_bf, b, f, PAIR(b, f, expr), FAST(RESULT(op, bf), PAIR(b, f, expr)))       \
    TILE(pair_##op##_bb, b, b, PAIR(b, b, expr), FAST(codes(op, bb), PAIR(b, b, expr)))
PAIR_OPS(PAIRS)

#define STEP(in, res, ...) float x = get_##in(p[i]); __VA_ARGS__ z[i] = put_##res(x);
#define ONE_STEP x = x * m0, x = x + c0;
#define TWO_STEPS ONE_STEP x = x * m1, x = x + c1;
#define BY_fb(x) (x)
#define BY_bf(x) (x)
#define BY_bb(x) nan_of_code(x) /* put_halves wants it so */
#define STEP0(kind) step_two(TWO_##kind(p + i), BY_##kind(m0), BY_##kind(c0))
#define FAST1(kind) PUT_##kind(z + i, STEP0(kind))
#define FAST2(kind) PUT_##kind(z + i, step_two(STEP0(kind), BY_##kind(m1), BY_##kind(c1)))
#define STEPS(in, res, two, body)                                                              \
    TILE(steps_##in##res##two, in, res, STEP(in, res, body), FAST(FAST##two(in##res), STEP(in, res, body)))
TILE(steps_ff1, f, f, STEP(f, f, ONE_STEP), PLAIN(STEP(f, f, ONE_STEP)))
STEPS(f, b, 1, ONE_STEP)
STEPS(b, f, 1, ONE_STEP)
STEPS(b, b, 1, ONE_STEP)
TILE(steps_ff2, f, f, STEP(f, f, TWO_STEPS), PLAIN(STEP(f, f, TWO_STEPS)))
STEPS(f, b, 2, TWO_STEPS)
STEPS(b, f, 2, TWO_STEPS)
STEPS(b, b, 2, TWO_STEPS)

TILE(cast_fb, f, b, STEP(f, b, ), FAST(put_codes(z + i, two_floats(p + i)), STEP(f, b, )))
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

#ifdef VEC
/* A vector's worth of words of VEC rows: a value each, or two codes. */
INLINE vec
sum_words(const uint8_t *x, size_t pitch, const bool bf16, vec s)
{
    vec t[VEC];
    turn_rows(x, pitch, t);
#pragma GCC unroll 16
    for (int i = 0; i < VEC; i++) {
        if (bf16)
            s = V(add_ps)(V(add_ps)(s, even(as_words(t[i]))), odd(as_words(t[i])));
        else
            s = V(add_ps)(s, t[i]);
    }
    return s;
}
#endif

/* Whole vectors of 16 or 32 rows: while the sums of some wait for one another, the next are turned. How many
 * columns were added. */
INLINE size_t
sum_vectors(const uint8_t *x, size_t pitch, const bool bf16, float *acc, size_t n, const unsigned rows)
{
    size_t k = 0;
#ifdef VEC
    vec s[2 * TOGETHER / VEC];
    for (unsigned g = 0; g < rows / VEC; g++)
        s[g] = V(loadu_ps)(acc + g * VEC);
    for (size_t per = bf16 ? PAIR_N : VEC; k + per <= n; k += per, x += sizeof(vec)) {
#pragma GCC unroll 4
        for (unsigned g = 0; g < rows / VEC; g++)
            s[g] = sum_words(x + g * VEC * pitch, pitch, bf16, s[g]);
    }
    for (unsigned g = 0; g < rows / VEC; g++)
        V(storeu_ps)(acc + g * VEC, s[g]);
#else
    (void)x;
    (void)pitch;
    (void)bf16;
    (void)acc;
    (void)n;
    (void)rows;
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
        bool more = r + 2 * TOGETHER <= rows;
        step = more ? 2 * TOGETHER : TOGETHER;
        size_t k = a->bf16 ? (more ? sum_vectors(row, a->pitch, true, acc + r, n, 2 * TOGETHER)
                                   : sum_vectors(row, a->pitch, true, acc + r, n, TOGETHER))
                           : (more ? sum_vectors(row, a->pitch, false, acc + r, n, 2 * TOGETHER)
                                   : sum_vectors(row, a->pitch, false, acc + r, n, TOGETHER));
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

/* Rows and columns of a block. The next one is fetched ahead where that was found to help: so many rows are too
 * many streams for those processors to foresee. */
#if defined(__AVX512F__)
enum { HIGH = TOGETHER, WIDTH = 2 * BLOCK, FETCH = true };
#else
enum { HIGH = TOGETHER, WIDTH = 4 * BLOCK, FETCH = false };
#endif

INLINE void
soon(const uint8_t *p, const size_t es)
{
    for (size_t b = WIDTH * es; FETCH && b < 2 * WIDTH * es; b += 64)
        __builtin_prefetch(p + b);
}

/* A part of a row on its way through a function of its values times mul plus add. */
typedef struct act_part {
    const void *in;
    float mul, add;
    float *y;
    uint16_t *z; /* where y goes in bf16 as well */
} act_part;

#ifdef VEC
enum { CHAINS = 4 }; /* vectors side by side: a step waits for the one before */
#define CHAIN _Pragma("GCC unroll 8") for (int c = 0; c < CHAINS; c++)

/* cps_exp_inside, step by step, of n values, whole groups of vectors; of the arguments the largest in size in
 * each lane, as bits. Codes are made in a pass of their own: in one, a group is too long for the processor to
 * begin the next ones meanwhile. Inside the edge there is no NaN. */
INLINE words
exp_groups(const act_part *p, const bool bf16, const bool codes, const bool scaled, const size_t n)
{
    const vec mul = V(set1_ps)(p->mul), add = V(set1_ps)(p->add), magic = V(set1_ps)(0x1.8p23f);
    const uint16_t *h = p->in;
    const float *f = p->in;
    words most = V(set1_epi32)(0);
    for (size_t k = 0; k < n; k += VEC * CHAINS) {
        vec x[CHAINS], t[CHAINS], r[CHAINS], q[CHAINS];
        if (bf16)
            CHAIN x[c] = load_codes(h + k + VEC * c);
        else
            CHAIN x[c] = V(loadu_ps)(f + k + VEC * c);
        if (scaled)
            CHAIN x[c] = V(mul_ps)(x[c], mul);
        CHAIN x[c] = V(add_ps)(x[c], add);
        CHAIN most = V(max_epu32)(most, VI(and)(as_words(x[c]), V(set1_epi32)(0x7FFFFFFF)));
        CHAIN t[c] = V(fmadd_ps)(x[c], V(set1_ps)(CPS_EXP_LOG2E), magic);
        CHAIN r[c] = V(sub_ps)(t[c], magic);
        CHAIN x[c] = V(fmadd_ps)(r[c], V(set1_ps)(-CPS_EXP_LN2), x[c]);
        CHAIN r[c] = V(fmadd_ps)(r[c], V(set1_ps)(-CPS_EXP_LN2_REST), x[c]);
        CHAIN q[c] = V(fmadd_ps)(V(set1_ps)(CPS_EXP_6), r[c], V(set1_ps)(CPS_EXP_5));
        CHAIN q[c] = V(fmadd_ps)(q[c], r[c], V(set1_ps)(CPS_EXP_4));
        CHAIN q[c] = V(fmadd_ps)(q[c], r[c], V(set1_ps)(CPS_EXP_3));
        CHAIN q[c] = V(fmadd_ps)(q[c], r[c], V(set1_ps)(CPS_EXP_2));
        CHAIN q[c] = V(fmadd_ps)(q[c], r[c], V(set1_ps)(1));
        CHAIN q[c] = V(fmadd_ps)(q[c], r[c], V(set1_ps)(1));
        CHAIN {
            words whole = V(slli_epi32)(as_words(t[c]), 23);
            q[c] = as_vec(V(add_epi32)(as_words(q[c]), whole));
            V(storeu_ps)(p->y + k + VEC * c, q[c]);
        }
    }
    for (size_t k = 0; codes && k < n; k += PAIR_N)
        store_uppers(p->z + k, round_up(V(loadu_ps)(p->y + k)), round_up(V(loadu_ps)(p->y + k + VEC)));
    return most;
}
#undef CHAIN

/* The same of as many values as there are in whole groups; their number, and whether all are inside. */
INLINE size_t
exp_whole(const act_part *p, const bool bf16, const bool codes, const size_t n, bool *inside)
{
    const size_t whole = n - n % (VEC * CHAINS);
    *inside = !any_above(p->mul == 1 ? exp_groups(p, bf16, codes, false, whole)
                                     : exp_groups(p, bf16, codes, true, whole),
                         bits(CPS_EXP_EDGE));
    return whole;
}

/* Steps of the values, and their squares. */
INLINE size_t
step_whole(const act_part *p, const bool bf16, const bool codes, const bool squares, const size_t n)
{
    const size_t whole = n - n % PAIR_N;
    const uint16_t *h = p->in;
    const float *f = p->in;
    for (size_t k = 0; k < whole; k += PAIR_N) {
        two v = step_two(bf16 ? two_codes(h + k) : two_floats(f + k), p->mul, p->add);
        if (squares)
            v = both_MUL(v, v);
        put_floats(p->y + k, v);
        if (codes)
            put_codes(p->z + k, v);
    }
    return whole;
}
#else
INLINE size_t
exp_whole(const act_part *p, bool bf16, bool codes, size_t n, bool *inside)
{
    (void)p;
    (void)bf16;
    (void)codes;
    (void)n;
    *inside = true;
    return 0;
}

INLINE size_t
step_whole(const act_part *p, bool bf16, bool codes, bool squares, size_t n)
{
    (void)p;
    (void)bf16;
    (void)codes;
    (void)squares;
    (void)n;
    return 0;
}
#endif

INLINE float
argument(const act_part *p, const bool bf16, size_t k)
{
    float x = (bf16 ? get_b(((const uint16_t *)p->in)[k]) : ((const float *)p->in)[k]) * p->mul;
    return x + p->add;
}

/* Whether all codes are written. */
INLINE bool
exp_part(const act_part *p, const bool bf16, const bool codes, const size_t n)
{
    bool inside;
    size_t done = exp_whole(p, bf16, codes, n, &inside);
    uint32_t most = inside ? 0 : UINT32_MAX;
    LOOP (size_t k = done; k < n; k++) {
        float x = argument(p, bf16, k);
        uint32_t size = bits(x) & 0x7FFFFFFF;
        most = size > most ? size : most;
        p->y[k] = cps_exp_inside(x);
    }
    if (most <= bits(CPS_EXP_EDGE))
        return done == n;
    for (size_t k = 0; k < n; k++) {
        float x = argument(p, bf16, k);
        if (!(fabsf(x) <= CPS_EXP_EDGE))
            p->y[k] = cps_exp_beyond(x);
    }
    return false;
}

INLINE bool
step_part(const act_part *p, const bool bf16, const bool codes, const bool squares, const size_t n)
{
    size_t done = step_whole(p, bf16, codes, squares, n);
    LOOP (size_t k = done; k < n; k++) {
        float x = argument(p, bf16, k);
        p->y[k] = squares ? x * x : x;
    }
    return done == n;
}

static void
exp_row(const float *in, float *out, size_t n)
{
    for (size_t k = 0; k < n; k += BLOCK) { // in and out may be the same
        float x[BLOCK];
        act_part p = {.in = x, .mul = 1, .add = -0.0f, .y = out + k};
        size_t some = n - k < BLOCK ? n - k : BLOCK;
        memcpy(x, in + k, some * sizeof *x);
        exp_part(&p, false, false, some);
    }
}

INLINE void
act_part_of(wide_act f, const act_part *p, const bool bf16, const bool codes, const size_t n)
{
    bool done = f == WIDE_EXP      ? exp_part(p, bf16, codes, n)
                : f == WIDE_SQUARE ? step_part(p, bf16, codes, true, n)
                                   : step_part(p, bf16, codes, false, n);
    if (codes && !done)
        to_bf16(p->y, p->z, n);
}

/* Of one length the compiler makes loops without ends. */
INLINE void
act_one(wide_act f, const act_part *p, const bool bf16, const size_t n)
{
    if (p->z)
        act_part_of(f, p, bf16, true, n);
    else
        act_part_of(f, p, bf16, false, n);
}

static __attribute__((noinline)) void
act_end(wide_act f, const act_part *p, bool bf16, size_t n)
{
    act_one(f, p, bf16, n);
}

/* Blocks of HIGH rows by WIDTH columns, which stay in the first cache: fp32 results where they belong, those
 * that become bf16 in a block of their own for the sums. A row that is its own result is copied first: what
 * lies beyond the edge of exp is looked at twice. */
static void
act(wide_act f, const wide_side *o, const wide_side *a, const float *scale, const float *bias,
    float *acc, unsigned rows, size_t n)
{
    float y[HIGH * WIDTH];
    size_t es = a->bf16 ? 2 : 4, to_es = o->bf16 ? 2 : 4;
    bool own = a->at == o->at;
    for (unsigned from = 0; from < rows; from += HIGH) {
        unsigned some = rows - from < HIGH ? rows - from : HIGH;
        for (size_t k = 0; k < n; k += WIDTH) {
            size_t part = n - k < WIDTH ? n - k : WIDTH;
            uint8_t *to = o->at + from * o->pitch + k * to_es;
            wide_side block = {.at = o->bf16 ? (uint8_t *)y : to, .pitch = o->bf16 ? WIDTH * sizeof *y : o->pitch};
            for (unsigned r = 0; r < some; r++) {
                const uint8_t *in = a->at + (from + r) * a->pitch + k * es;
                float copy[WIDTH];
                act_part p = {.in = own ? memcpy(copy, in, part * es) : in,
                              .mul = scale[from + r],
                              .add = bias[from + r],
                              .y = (float *)(void *)(block.at + r * block.pitch),
                              .z = o->bf16 ? (uint16_t *)(void *)(to + r * o->pitch) : NULL};
                soon(in, a->bf16 ? 2 : 4);
                soon(to + r * o->pitch, o->bf16 ? 2 : 4);
                if (part < WIDTH)
                    act_end(f, &p, a->bf16, part);
                else if (a->bf16)
                    act_one(f, &p, true, WIDTH);
                else
                    act_one(f, &p, false, WIDTH);
            }
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

/* Whether no code of a row is infinite or NaN: the largest size among them, shifted up, is in `big`. */
INLINE bool
pick_row(const uint16_t *p, float *z, size_t n, const bool more)
{
    uint16_t big[2 * VECTOR] = {0};
    size_t k = 0;
#ifdef VEC
    const vec zero = V(set1_ps)(0);
    words most = V(set1_epi32)(0);
    for (; k + PAIR_N <= n; k += PAIR_N) {
        two x = two_codes(p + k);
        most = V(max_epu16)(most, V(slli_epi16)(load_words(p + k), 1));
        x = (two){V(add_ps)(x.x, zero), V(add_ps)(x.y, zero)};
        if (more) {
            two old = two_floats(z + k);
            x = (two){V(add_ps)(old.x, x.x), V(add_ps)(old.y, x.y)};
        }
        put_floats(z + k, x);
    }
    store_words(big, most);
#endif
    for (; k < n; k++) {
        uint16_t size = (uint16_t)(p[k] << 1);
        float x = 0.0f + get_b(p[k]);
        big[0] = size > big[0] ? size : big[0];
        z[k] = more ? z[k] + x : x;
    }
    for (unsigned j = 1; j < 2 * VECTOR; j++)
        big[0] = big[j] > big[0] ? big[j] : big[0];
    return big[0] >> 8 != 255;
}

static bool
pick(const wide_side *x, const uint8_t *sel, float *out, size_t opitch, unsigned cols, size_t n, bool more)
{
    bool fine = true;
    for (unsigned m = 0; m < cols; m++, out += opitch) {
        const uint16_t *p = (const uint16_t *)(const void *)(x->at + sel[m] * x->pitch);
        fine &= more ? pick_row(p, out, n, true) : pick_row(p, out, n, false);
    }
    return fine;
}

// A transfer may begin at any byte.
typedef uint16_t half8 __attribute__((vector_size(16), aligned(1), may_alias));

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

typedef uint32_t word4 __attribute__((vector_size(16), aligned(1), may_alias));

/* Columns of four rows of four words. */
INLINE void
turn_words(const uint8_t *const row[4], size_t at, uint8_t *out, size_t opitch)
{
    word4 a[4], b[4];
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++)
        a[i] = *(const word4 *)(const void *)(row[i] + at);
#pragma GCC unroll 2
    for (int i = 0; i < 2; i++) {
        b[2 * i] = __builtin_shufflevector(a[i], a[i + 2], 0, 4, 1, 5);
        b[2 * i + 1] = __builtin_shufflevector(a[i], a[i + 2], 2, 6, 3, 7);
    }
#pragma GCC unroll 2
    for (int i = 0; i < 2; i++) {
        *(word4 *)(void *)(out + 2 * i * opitch) = __builtin_shufflevector(b[i], b[i + 2], 0, 4, 1, 5);
        *(word4 *)(void *)(out + (2 * i + 1) * opitch) = __builtin_shufflevector(b[i], b[i + 2], 2, 6, 3, 7);
    }
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
        uint8_t *to = out + c * es;
        for (; es == 2 && some == 8 && m + 8 <= cols; m += 8)
            turn8(row, m * 2, to + m * opitch, opitch);
        for (; es == 2 && some == 8 && m + 4 <= cols; m += 4)
            turn4(row, m * 2, to + m * opitch, opitch);
        for (; es == 4 && some == 8 && m + 4 <= cols; m += 4) {
            turn_words(row, m * 4, to + m * opitch, opitch);
            turn_words(row + 4, m * 4, to + m * opitch + 16, opitch);
        }
        for (; m < cols; m++) {
            for (size_t j = 0; j < some; j++)
                memcpy(to + m * opitch + j * es, row[j] + m * es, es == 2 ? 2 : 4);
        }
    }
}

/* ---- copies past the caches: lines that are written whole are not fetched first ---- */

static void
away(uint8_t *out, const uint8_t *in, size_t n)
{
#ifdef VEC
    size_t head = (0 - (uintptr_t)out) % sizeof(words);
    if (n >= head + 4 * sizeof(words)) {
        memcpy(out, in, head);
        out += head;
        in += head;
        n -= head;
        for (; n >= 4 * sizeof(words); n -= 4 * sizeof(words)) {
#pragma GCC unroll 4
            for (int k = 0; k < 4; k++, out += sizeof(words), in += sizeof(words))
                VI(stream)((void *)out, load_words(in));
        }
    }
#endif
    memcpy(out, in, n);
}

static void
fence(void)
{
#ifdef VEC
    _mm_sfence();
#endif
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

/* ---- the eight largest, and where keys are ---- */

INLINE void
keep8(float top[8], float x)
{
    int at = 7;
    if (!(x > top[7]))
        return;
    for (; at > 0 && x > top[at - 1]; at--)
        top[at] = top[at - 1];
    top[at] = x;
}

/* A number that eight values at least reach: of groups of the values the eighth largest of their largest. */
static float
reached_by_eight(const float *v, size_t n)
{
    float low[8];
    for (int k = 0; k < 8; k++)
        low[k] = -INFINITY;
#ifdef VEC
    if (n >= 4 * VEC) {
        float group[PAIR_N];
        vec m[4];
        for (int c = 0; c < 4; c++)
            m[c] = V(set1_ps)(-INFINITY);
        for (size_t k = 0; k + 4 * VEC <= n; k += 4 * VEC) {
#pragma GCC unroll 4
            for (int c = 0; c < 4; c++) // of a NaN and m the instruction takes m
                m[c] = V(max_ps)(V(loadu_ps)(v + k + c * VEC), m[c]);
        }
        put_floats(group, (two){V(max_ps)(m[0], m[2]), V(max_ps)(m[1], m[3])});
        for (int k = 0; k < PAIR_N; k++)
            keep8(low, group[k]);
    }
#else
    (void)v;
    (void)n;
#endif
    return low[7];
}

/* What `within` finds of the elements from k on, a bit each; how many that are: at most 64. */
INLINE unsigned
look(const float *v, size_t k, size_t n, float lo, float hi, uint64_t *hit)
{
    unsigned some = n - k < BLOCK ? (unsigned)(n - k) : BLOCK;
    *hit = 0;
#ifdef VEC
    if (some == BLOCK) {
        const vec l = V(set1_ps)(lo), h = V(set1_ps)(hi);
        if (any_within(v + k, BLOCK / VEC, l, h)) {
            for (unsigned j = 0; j < BLOCK; j += VEC)
                *hit |= (uint64_t)within(V(loadu_ps)(v + k + j), l, h) << j;
        }
        return some;
    }
#endif
    for (unsigned j = 0; j < some; j++)
        *hit |= (uint64_t)(v[k + j] >= lo && v[k + j] <= hi) << j;
    return some;
}

static void
max8(const float *v, size_t n, float top[8])
{
    float low = reached_by_eight(v, n);
    uint64_t hit;
    for (int k = 0; k < 8; k++)
        top[k] = -INFINITY;
    for (size_t k = 0; k < n;) {
        const float *at = v + k;
        k += look(v, k, n, low, INFINITY, &hit);
        for (; hit; hit &= hit - 1)
            keep8(top, at[__builtin_ctzll(hit)]);
    }
}

static void
match8(const float *v, size_t n, const float key[8], uint32_t found[8])
{
    float lo = INFINITY, hi = -INFINITY;
    unsigned left = 0;
    uint64_t hit;
    for (int k = 0; k < 8; k++) { // a NaN is not looked for
        found[k] = UINT32_MAX;
        left += key[k] == key[k];
        lo = key[k] < lo ? key[k] : lo;
        hi = key[k] > hi ? key[k] : hi;
    }
    for (size_t k = 0, from = 0; k < n && left; from = k) {
        k += look(v, k, n, lo, hi, &hit);
        for (; hit; hit &= hit - 1) {
            uint32_t at = (uint32_t)from + (uint32_t)__builtin_ctzll(hit);
            int i = 0;
            while (i < 8 && (found[i] != UINT32_MAX || key[i] != v[at]))
                i++;
            if (i < 8) {
                found[i] = at;
                left--;
            }
        }
    }
}

const wide_loops WIDE = {
    .from_bf16 = from_bf16,
    .to_bf16 = to_bf16,
#define ROW(id, expr, codes)                                                                   \
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
    .smooth = SMOOTH,
    .affine = affine,
    .selector = selector,
    .pick = pick,
    .turn = turn,
    .away = away,
    .fence = fence,
    .finite = all_finite,
    .finite_codes = all_finite_codes,
    .max8 = max8,
    .match8 = match8,
};
