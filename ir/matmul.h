/* The vectorised product both evaluators use. */
#ifndef CPS_IR_MATMUL_H
#define CPS_IR_MATMUL_H

#include "runtime/base/base.h"

/* z[m,n] = x[m,k] @ y[k,n] in binary32, row-major, dense. Each element is one sum over
 * ascending k, rounded after each addition. Products are rounded to binary32 first; with
 * `fused` they are not: each step is one fused multiply-add. */
void cps_mm_f32(int64_t m, int64_t k, int64_t n, const float *x, const float *y, float *z,
                bool fused);

#endif
