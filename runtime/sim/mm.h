/* acc[m][n] = sum over k, in order, of w[k][m] * x[k][n]: each product exact or rounded to fp32 as
 * said below, every sum rounded to fp32 at each step, so that vector width changes no bit. */
#ifndef CPS_SIM_MM_H
#define CPS_SIM_MM_H

#include "runtime/base/base.h"

#include <string.h>

enum { MM_COLS = 8192, MM_PANEL = 48 };

/* What a product takes of its weights: all, the upper 12 bits of each significand, or the exact rest; of what
 * is not finite itself and 0. */
typedef enum mm_part { MM_WHOLE, MM_HIGH, MM_LOW } mm_part;

static inline float
mm_part_of(mm_part part, float w)
{
    uint32_t b, rest;
    float high, low;
    memcpy(&b, &w, 4);
    uint32_t far = (b << 1) >> 24 == 255 ? UINT32_MAX : 0; // masks: a loop of it becomes vectors
    uint32_t upper = b & (0xFFFFF000u | far);
    memcpy(&high, &upper, 4);
    low = w - high;
    memcpy(&rest, &low, 4);
    rest &= ~far;
    memcpy(&low, &rest, 4);
    return part == MM_LOW ? low : part == MM_HIGH ? high : w;
}

/* Weights as the kernel reads them, of one shape: kept as long as the weights are the same. */
typedef struct mm_strips {
    float *at; /* rows * cols floats */
    bool ready;
    uint32_t top, low; /* of their range */
    bool looked, picks; /* whether each column is a single 1 has been looked at, and is so */
    bool all;           /* then: no row is left out */
    uint8_t row[128];   /* and the row of a column's 1 */
} mm_strips;

static inline void
mm_forget(mm_strips *s)
{
    s->ready = s->looked = false;
}

typedef struct mm_job {
    const float *w; /* row k at w + k * wpitch floats */
    size_t wpitch;
    mm_part part; /* of w, before anything else */
    const void *x; /* row k at x + k * xpitch bytes: fp32, or the codes of bf16 */
    size_t xpitch;
    bool bf16;
    bool exact; /* fp32 operands: each step is one rounding of acc + w * x. Else operands of at most
                 * 12 bits of significand, whose products are rounded to fp32 (which matters only
                 * where they overflow or become subnormal). */
    unsigned rows, cols, n;
    float *out; /* row m at out + m * opitch floats */
    size_t opitch;
    bool add; /* one fp32 addition to what is there; else it is overwritten */
    float *room; /* rows * (MM_PANEL + cols) floats */
    mm_strips *strips; /* of w, or NULL: packed in `room` for this job */
} mm_job;

void mm_run(const mm_job *j);

/* The same by one instruction set: 0 the base, 1 AVX2 with FMA, 2 AVX-512. False when this
 * processor does not have it. */
bool mm_run_on(int level, const mm_job *j);

#endif
