/* The matmul kernels: 4 rows of the result by 16 columns stay in registers while k runs over
 * packed copies of both operands. The same source is compiled for the base instruction set and
 * for AVX2; which one runs is asked of the processor and changes no result. */
#include "runtime/sim/mm.h"

#include <string.h>

typedef float v8 __attribute__((vector_size(32), aligned(4)));
typedef float v4f __attribute__((vector_size(16), aligned(4)));
typedef double v4d __attribute__((vector_size(32), aligned(8)));

#define INLINE static inline __attribute__((always_inline))

enum { PANEL = 16, STRIP = 4 };

/* x as panels [n/16][rows][16] and w as strips [cols/4][rows][4], so that the inner loop reads
 * both in order: rows of x are a power of two apart and would share a few cache sets. */
INLINE void
pack(const float *restrict from, float *restrict to, unsigned rows, unsigned n, unsigned width)
{
    for (unsigned c = 0; c + width <= n; c += width) {
        for (unsigned k = 0; k < rows; k++, to += width)
            memcpy(to, from + (size_t)k * n + c, width * sizeof *to);
    }
}

INLINE void
block(const float *restrict w, const float *restrict x, float *restrict o, unsigned rows,
      unsigned n)
{
    v8 a0 = {0}, a1 = {0}, a2 = {0}, a3 = {0}, b0 = {0}, b1 = {0}, b2 = {0}, b3 = {0};
    for (unsigned k = 0; k < rows; k++, w += STRIP, x += PANEL) {
        v8 p = *(const v8 *)x, q = *(const v8 *)(x + 8);
        a0 += w[0] * p;
        b0 += w[0] * q;
        a1 += w[1] * p;
        b1 += w[1] * q;
        a2 += w[2] * p;
        b2 += w[2] * q;
        a3 += w[3] * p;
        b3 += w[3] * q;
    }
    *(v8 *)o = a0;
    *(v8 *)(o + 8) = b0;
    o += n;
    *(v8 *)o = a1;
    *(v8 *)(o + 8) = b1;
    o += n;
    *(v8 *)o = a2;
    *(v8 *)(o + 8) = b2;
    o += n;
    *(v8 *)o = a3;
    *(v8 *)(o + 8) = b3;
}

/* What is left over at the right and at the bottom. */
INLINE void
edge(const float *restrict w, const float *restrict x, float *restrict acc, unsigned rows,
     unsigned cols, unsigned n, unsigned m0, unsigned m1, unsigned c0)
{
    for (unsigned m = m0; m < m1; m++) {
        float *o = acc + (size_t)m * n;
        memset(o + c0, 0, (n - c0) * sizeof *o);
        for (unsigned k = 0; k < rows; k++) {
            float wv = w[(size_t)k * cols + m];
            for (unsigned c = c0; c < n; c++)
                o[c] += wv * x[(size_t)k * n + c];
        }
    }
}

INLINE void
plain(const float *restrict w, const float *restrict x, float *restrict acc, unsigned rows,
      unsigned cols, unsigned n, float *restrict room)
{
    unsigned full = n / PANEL * PANEL, high = cols / STRIP * STRIP;
    float *wp = room, *xp = room + (size_t)rows * cols;
    pack(w, wp, rows, cols, STRIP);
    pack(x, xp, rows, n, PANEL);
    for (unsigned c = 0; c < full; c += PANEL) {
        for (unsigned m = 0; m < high; m += STRIP)
            block(wp + (size_t)m * rows, xp + (size_t)c * rows, acc + (size_t)m * n + c, rows,
                  n);
    }
    if (full < n)
        edge(w, x, acc, rows, cols, n, 0, high, full);
    if (high < cols)
        edge(w, x, acc, rows, cols, n, high, cols, 0);
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
plain_avx2(const float *w, const float *x, float *acc, unsigned rows, unsigned cols, unsigned n,
           float *room)
{
    plain(w, x, acc, rows, cols, n, room);
}

__attribute__((target("avx2"))) static void
exact_avx2(const double *w, const float *x, float *acc, unsigned rows, unsigned cols,
           unsigned n)
{
    exact(w, x, acc, rows, cols, n);
}
#endif

void
mm_plain(const float *w, const float *x, float *acc, unsigned rows, unsigned cols, unsigned n,
         float *room)
{
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2")) {
        plain_avx2(w, x, acc, rows, cols, n, room);
        return;
    }
#endif
    plain(w, x, acc, rows, cols, n, room);
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
