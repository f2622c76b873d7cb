/* acc[m][n] = sum over k, in order, of w[k][m] * x[k][n]. Every sum is rounded to fp32 at each
 * step and no multiplication is fused with an addition, so that vector width changes no bit. */
#ifndef CPS_SIM_MM_H
#define CPS_SIM_MM_H

#include "runtime/base/base.h"

enum { MM_COLS = 8192 };

/* For operands whose products are exact in fp32. `room`: rows * (cols + n) floats. */
void mm_plain(const float *w, const float *x, float *acc, unsigned rows, unsigned cols,
              unsigned n, float *room);
/* For fp32 operands: products in binary64, exact. */
void mm_exact(const double *w, const float *x, float *acc, unsigned rows, unsigned cols,
              unsigned n);

#endif
