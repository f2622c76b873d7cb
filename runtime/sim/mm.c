/* The matmul kernels: 4 rows of the result by one or two vectors of columns stay in registers
 * while k runs. The same source is compiled for the base instruction set and for AVX2; which one
 * runs is asked of the processor and changes no result. */
#include "runtime/sim/mm.h"

#include <string.h>

typedef float v8 __attribute__((vector_size(32), aligned(4)));
typedef float v4f __attribute__((vector_size(16), aligned(4)));
typedef double v4d __attribute__((vector_size(32), aligned(8)));

#define INLINE static inline __attribute__((always_inline))

INLINE void
plain(const float *restrict w, const float *restrict x, float *restrict acc, unsigned rows,
      unsigned cols, unsigned n)
{
    unsigned m = 0;
    for (; m + 4 <= cols; m += 4) {
        unsigned c = 0;
        for (; c + 16 <= n; c += 16) {
            v8 a0 = {0}, a1 = {0}, a2 = {0}, a3 = {0}, b0 = {0}, b1 = {0}, b2 = {0}, b3 = {0};
            for (unsigned k = 0; k < rows; k++) {
                const float *wk = w + (size_t)k * cols + m;
                const v8 *xk = (const v8 *)(x + (size_t)k * n + c);
                v8 p = xk[0], q = xk[1];
                a0 += wk[0] * p;
                b0 += wk[0] * q;
                a1 += wk[1] * p;
                b1 += wk[1] * q;
                a2 += wk[2] * p;
                b2 += wk[2] * q;
                a3 += wk[3] * p;
                b3 += wk[3] * q;
            }
            float *o = acc + (size_t)m * n + c;
            *(v8 *)o = a0;
            *(v8 *)(o + 8) = b0;
            *(v8 *)(o + n) = a1;
            *(v8 *)(o + n + 8) = b1;
            *(v8 *)(o + 2 * (size_t)n) = a2;
            *(v8 *)(o + 2 * (size_t)n + 8) = b2;
            *(v8 *)(o + 3 * (size_t)n) = a3;
            *(v8 *)(o + 3 * (size_t)n + 8) = b3;
        }
        for (; c < n; c++) {
            float a0 = 0, a1 = 0, a2 = 0, a3 = 0;
            for (unsigned k = 0; k < rows; k++) {
                const float *wk = w + (size_t)k * cols + m;
                float xv = x[(size_t)k * n + c];
                a0 += wk[0] * xv;
                a1 += wk[1] * xv;
                a2 += wk[2] * xv;
                a3 += wk[3] * xv;
            }
            acc[(size_t)m * n + c] = a0;
            acc[(size_t)(m + 1) * n + c] = a1;
            acc[(size_t)(m + 2) * n + c] = a2;
            acc[(size_t)(m + 3) * n + c] = a3;
        }
    }
    for (; m < cols; m++) {
        float *o = acc + (size_t)m * n;
        memset(o, 0, n * sizeof *o);
        for (unsigned k = 0; k < rows; k++) {
            float wv = w[(size_t)k * cols + m];
            for (unsigned c = 0; c < n; c++)
                o[c] += wv * x[(size_t)k * n + c];
        }
    }
}

/* acc + w * x: the product and the sum in binary64, then rounded to fp32 and widened again. */
INLINE v4d
step(v4d acc, double w, v4d x)
{
    v4d sum = acc + w * x;
    return __builtin_convertvector(__builtin_convertvector(sum, v4f), v4d);
}

INLINE void
exact(const double *restrict w, const float *restrict x, float *restrict acc, unsigned rows,
      unsigned cols, unsigned n)
{
    unsigned m = 0;
    for (; m < cols; m++) {
        unsigned c = 0;
        for (; c + 16 <= n; c += 16) {
            v4d a[4] = {{0}, {0}, {0}, {0}};
            for (unsigned k = 0; k < rows; k++) {
                double wv = w[(size_t)k * cols + m];
                const v4f *xk = (const v4f *)(x + (size_t)k * n + c);
                for (int j = 0; j < 4; j++)
                    a[j] = step(a[j], wv, __builtin_convertvector(xk[j], v4d));
            }
            for (int j = 0; j < 4; j++)
                *(v4f *)(acc + (size_t)m * n + c + 4 * j) = __builtin_convertvector(a[j], v4f);
        }
        for (; c < n; c++) {
            float a = 0;
            for (unsigned k = 0; k < rows; k++)
                a = (float)((double)a + w[(size_t)k * cols + m] * (double)x[(size_t)k * n + c]);
            acc[(size_t)m * n + c] = a;
        }
    }
}

#if defined(__x86_64__)
__attribute__((target("avx2"))) static void
plain_avx2(const float *w, const float *x, float *acc, unsigned rows, unsigned cols, unsigned n)
{
    plain(w, x, acc, rows, cols, n);
}

__attribute__((target("avx2"))) static void
exact_avx2(const double *w, const float *x, float *acc, unsigned rows, unsigned cols, unsigned n)
{
    exact(w, x, acc, rows, cols, n);
}
#endif

void
mm_plain(const float *w, const float *x, float *acc, unsigned rows, unsigned cols, unsigned n)
{
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2")) {
        plain_avx2(w, x, acc, rows, cols, n);
        return;
    }
#endif
    plain(w, x, acc, rows, cols, n);
}

void
mm_exact(const double *w, const float *x, float *acc, unsigned rows, unsigned cols, unsigned n)
{
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2")) {
        exact_avx2(w, x, acc, rows, cols, n);
        return;
    }
#endif
    exact(w, x, acc, rows, cols, n);
}
