/* Loops over rows of elements, compiled once for each instruction set of the host (wide_rows.c). Which
 * one runs is asked of the processor and changes no bit of a result: nothing is fused that is not written
 * fused, and sums keep their order. */
#ifndef CPS_SIM_WIDE_H
#define CPS_SIM_WIDE_H

#include "runtime/base/base.h"

/* Rows of fp32 or of bf16 codes, a pitch in bytes apart. */
typedef struct wide_side {
    uint8_t *at;
    size_t pitch;
    bool bf16;
} wide_side;

/* Operators of pairs; others are not done here. */
typedef enum wide_op { WIDE_ADD, WIDE_SUB, WIDE_MUL, WIDE_MAX, WIDE_MIN, WIDE_OPS } wide_op;

/* Functions of wide.act. */
typedef enum wide_act { WIDE_EXP, WIDE_SQUARE, WIDE_PASS } wide_act;

/* Functions of wide.smooth. */
typedef enum wide_smooth {
    WIDE_SIGMOID,
    WIDE_SILU,
    WIDE_GELU,
    WIDE_GELU_TANH,
    WIDE_GELU_SIGMOID,
    WIDE_TANH,
    WIDE_SMOOTHS
} wide_smooth;
enum { WIDE_SMOOTH_MOST = 64 };

/* v * mul + add, each rounded; 1 and -0 leave every v as it is. */
typedef struct wide_step {
    float mul, add;
} wide_step;

/* Element by element over `rows` rows of n. Row r has the steps s[r * apart]; `b` and `s` may be anything
 * readable where a loop has no use for them. o is a or b or lies apart from them. */
typedef void wide_tile(const wide_side *o, const wide_side *a, const wide_side *b,
                       const wide_step (*s)[2], unsigned apart, unsigned rows, size_t n);
enum { WIDE_KINDS = 4 };

static inline unsigned
wide_kind(const wide_side *o, const wide_side *a)
{
    return a->bf16 * 2u + o->bf16;
}

typedef struct wide_loops {
    void (*from_bf16)(const uint16_t *in, float *out, size_t n);
    void (*to_bf16)(const float *in, uint16_t *out, size_t n);
    /* By wide_kind of the sides. o = a op b; a and b have one type. */
    wide_tile *pair[WIDE_OPS][WIDE_KINDS];
    /* o = a through step[0] of the row, and (1) through step[1] too. */
    wide_tile *steps[2][WIDE_KINDS];
    wide_tile *cast[WIDE_KINDS]; /* o = a in o's type */
    /* acc[row] += a[row][k] for k in order. */
    void (*sum)(const wide_side *a, float *acc, unsigned rows, size_t n);
    /* The largest of a row (the smallest, negated, when `least`); false when a NaN or a zero decides,
     * whose bits depend on the order. */
    bool (*top)(const wide_side *a, bool least, float *out, size_t n);
    /* cps_exp_f32 of each. */
    void (*exp)(const float *in, float *out, size_t n);
    /* o = f(a * scale[row] + bias[row]), each step rounded; where there is acc, acc[row] += the fp32
     * values of the row in order. */
    void (*act)(wide_act f, const wide_side *o, const wide_side *a, const float *scale,
                const float *bias, float *acc, unsigned rows, size_t n);
    /* f of n values, at most WIDE_SMOOTH_MOST, as act_fn.c has it; true when some are not: where `unsure` is
     * not 0. `in` and `out` differ. */
    bool (*smooth)(wide_smooth f, const float *in, float *out, uint32_t *unsure, size_t n);
    /* in * mul, then + add, each rounded. */
    void (*affine)(const float *in, float mul, float add, float *out, size_t n);
    /* For each of n columns of x: the row of its single 1, all others being 0; false when a column is not
     * so. */
    bool (*selector)(const wide_side *x, unsigned rows, size_t n, uint8_t *sel);
    /* out[m][c] = 0 + x[sel[m]][c], m < cols, c < n, or that much more than it is (`more`); x is bf16, `opitch` in
     * fp32. False when a row that is taken is not finite, after all has been written. */
    bool (*pick)(const wide_side *x, const uint8_t *sel, float *out, size_t opitch, unsigned cols, size_t n, bool more);
    /* out[m][c] = in[sel[c]][m], m < cols, c < n: codes of `es` bytes (2 or 4), rows a pitch in
     * bytes apart. No `sel`: sel[c] is c. */
    void (*turn)(const uint8_t *in, size_t pitch, const uint8_t *sel, size_t n, unsigned cols,
                 unsigned es, uint8_t *out, size_t opitch);
    /* Copies n bytes past the caches, from and to memory that does not overlap; `fence` comes before anybody
     * else looks at them. */
    void (*away)(uint8_t *out, const uint8_t *in, size_t n);
    void (*fence)(void);
    bool (*finite)(const float *in, size_t n); /* all of them */
    bool (*finite_codes)(const uint16_t *in, size_t n); /* of bf16 */
    /* The eight largest of n values, the largest first; of equal ones those met first. NaN is none. */
    void (*max8)(const float *v, size_t n, float top[8]);
    /* Where key after key meets its first equal that no key before it took; all ones where there is none. */
    void (*match8)(const float *v, size_t n, const float key[8], uint32_t found[8]);
} wide_loops;

/* o = a * a; o = a in o's type. */
static inline void
wide_square(const wide_loops *w, const wide_side *o, const wide_side *a, unsigned rows, size_t n)
{
    static const wide_step none[1][2];
    w->pair[WIDE_MUL][wide_kind(o, a)](o, a, a, none, 0, rows, n);
}

static inline void
wide_cast(const wide_loops *w, const wide_side *o, const wide_side *a, unsigned rows, size_t n)
{
    static const wide_step none[1][2];
    w->cast[wide_kind(o, a)](o, a, a, none, 0, rows, n);
}

bool wide_base_smooth(wide_smooth f, const float *in, float *out, uint32_t *unsure, size_t n);
bool wide_avx2_smooth(wide_smooth f, const float *in, float *out, uint32_t *unsure, size_t n);
bool wide_avx512_smooth(wide_smooth f, const float *in, float *out, uint32_t *unsure, size_t n);

extern const wide_loops wide_base, wide_avx2, wide_avx512;

/* By instruction set: 0 the base, 1 AVX2 with FMA, 2 AVX-512; NULL when this processor has it not. */
const wide_loops *wide_at(int level);
const wide_loops *wide_best(void);

#endif
