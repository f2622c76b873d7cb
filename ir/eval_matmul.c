/* Batched matrix product of the reference evaluator, in binary64, binary32 (`fp32`) or int64.
 *
 * Each element of the result is one running sum over k in ascending order, products and sums
 * rounded separately: blocking, vector width and threads change the speed and not one bit. The
 * operand y is packed into panels of NR columns for KC steps of k; a block of MR rows times one
 * panel stays in registers. Threads divide panels. Vector code is GCC's vector extension,
 * compiled for the baseline and, on x86-64, for AVX2, chosen when running. */
#include "ir/eval.h"
#include "ir/matmul.h"

#include <math.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

enum { KC = 256, MC = 96, MR = 4 };

typedef struct job {
    const cps_ev *e;
    int64_t m, n, k;
    int64_t batches, panels; // of NR columns each
    int nr;
    bool avx2;
    const int64_t *xoff, *yoff; // start of each batch
    const double *x, *y;
    double *z;
    float *xf, *zf; // binary32 copies in fp32 mode
} job;

#define VECTOR_MATH(NAME, T, NR, TARGET)                                                       \
    typedef T NAME##_v __attribute__((vector_size(32), aligned(sizeof(T)), may_alias));        \
    /* z[rows, NR] += x[rows, kc] @ panel[kc, NR]; ldz in elements */                          \
    TARGET static void NAME##_block(int64_t rows, int64_t kc, const T *x, int64_t ldx,         \
                                    const T *panel, T *z, int64_t ldz)                         \
    {                                                                                          \
        enum { L = 32 / sizeof(T) };                                                           \
        if (rows == MR) {                                                                      \
            NAME##_v a0 = *(NAME##_v *)(z), a1 = *(NAME##_v *)(z + L);                         \
            NAME##_v b0 = *(NAME##_v *)(z + ldz), b1 = *(NAME##_v *)(z + ldz + L);             \
            NAME##_v c0 = *(NAME##_v *)(z + 2 * ldz), c1 = *(NAME##_v *)(z + 2 * ldz + L);     \
            NAME##_v d0 = *(NAME##_v *)(z + 3 * ldz), d1 = *(NAME##_v *)(z + 3 * ldz + L);     \
            for (int64_t k = 0; k < kc; k++, panel += NR) {                                    \
                NAME##_v p0 = *(const NAME##_v *)(panel), p1 = *(const NAME##_v *)(panel + L); \
                T s = x[k], t = x[k + ldx], u = x[k + 2 * ldx], v = x[k + 3 * ldx];            \
                a0 += s * p0, a1 += s * p1;                                                    \
                b0 += t * p0, b1 += t * p1;                                                    \
                c0 += u * p0, c1 += u * p1;                                                    \
                d0 += v * p0, d1 += v * p1;                                                    \
            }                                                                                  \
            *(NAME##_v *)(z) = a0, *(NAME##_v *)(z + L) = a1;                                  \
            *(NAME##_v *)(z + ldz) = b0, *(NAME##_v *)(z + ldz + L) = b1;                      \
            *(NAME##_v *)(z + 2 * ldz) = c0, *(NAME##_v *)(z + 2 * ldz + L) = c1;              \
            *(NAME##_v *)(z + 3 * ldz) = d0, *(NAME##_v *)(z + 3 * ldz + L) = d1;              \
            return;                                                                            \
        }                                                                                      \
        for (int64_t r = 0; r < rows; r++, x += ldx, z += ldz) {                               \
            NAME##_v a0 = *(NAME##_v *)(z), a1 = *(NAME##_v *)(z + L);                         \
            for (int64_t k = 0; k < kc; k++) {                                                 \
                a0 += x[k] * *(const NAME##_v *)(panel + k * NR);                              \
                a1 += x[k] * *(const NAME##_v *)(panel + k * NR + L);                          \
            }                                                                                  \
            *(NAME##_v *)(z) = a0, *(NAME##_v *)(z + L) = a1;                                  \
        }                                                                                      \
    }

VECTOR_MATH(f64, double, 8, )
VECTOR_MATH(f32, float, 16, )
#if defined(__x86_64__)
VECTOR_MATH(f64_avx2, double, 8, __attribute__((target("avx2"))))
VECTOR_MATH(f32_avx2, float, 16, __attribute__((target("avx2"))))
#else
#define f64_avx2_block f64_block
#define f32_avx2_block f32_block
#endif

static bool
has_avx2(void)
{
#if defined(__x86_64__)
    return __builtin_cpu_supports("avx2");
#else
    return false;
#endif
}

static bool
has_fma(void)
{
#if defined(__x86_64__)
    return has_avx2() && __builtin_cpu_supports("fma");
#else
    return false;
#endif
}

// One panel of one batch: packs KC steps of y, runs the rows against them, in ascending k.
#define PANEL(NAME, T, NR, X, Z)                                                               \
    static void NAME##_panel(const job *j, int64_t batch, int64_t panel)                       \
    {                                                                                          \
        T pack[KC * NR], edge[MC * NR];                                                        \
        int64_t col = panel * NR, cols = CPS_MIN(j->n - col, (int64_t)NR);                     \
        const double *y = j->y + j->yoff[batch] + col;                                         \
        const T *x = X + j->xoff[batch];                                                       \
        T *z = Z + batch * j->m * j->n + col;                                                  \
        for (int64_t k = 0; k < j->k; k += KC) {                                               \
            int64_t kc = CPS_MIN(j->k - k, (int64_t)KC);                                       \
            for (int64_t i = 0; i < kc; i++) {                                                 \
                for (int64_t c = 0; c < cols; c++)                                             \
                    pack[i * NR + c] = (T)y[(k + i) * j->n + c];                               \
                for (int64_t c = cols; c < NR; c++)                                            \
                    pack[i * NR + c] = 0;                                                      \
            }                                                                                  \
            for (int64_t r = 0; r < j->m; r += MC) {                                           \
                int64_t mc = CPS_MIN(j->m - r, (int64_t)MC), ldz = j->n;                       \
                T *to = z + r * j->n;                                                          \
                if (cols < NR) { /* a ragged panel works on a copy of full width */            \
                    to = edge;                                                                 \
                    ldz = NR;                                                                  \
                    for (int64_t i = 0; i < mc; i++)                                           \
                        for (int64_t c = 0; c < NR; c++)                                       \
                            edge[i * NR + c] = c < cols ? z[(r + i) * j->n + c] : 0;           \
                }                                                                              \
                for (int64_t i = 0; i < mc; i += MR)                                           \
                    (j->avx2 ? NAME##_avx2_block : NAME##_block)(                              \
                        CPS_MIN(mc - i, (int64_t)MR), kc, x + (r + i) * j->k + k, j->k, pack,  \
                        to + i * ldz, ldz);                                                    \
                for (int64_t i = 0; i < mc && cols < NR; i++)                                  \
                    for (int64_t c = 0; c < cols; c++)                                         \
                        z[(r + i) * j->n + c] = edge[i * NR + c];                              \
            }                                                                                  \
        }                                                                                      \
    }

PANEL(f64, double, 8, j->x, j->z)
PANEL(f32, float, 16, j->xf, j->zf)

static void
piece(void *ctx, int64_t lo, int64_t hi)
{
    const job *j = ctx;
    for (int64_t p = lo; p < hi; p++)
        (j->xf ? f32_panel : f64_panel)(j, p / j->panels, p % j->panels);
}

static void
integers(const job *j, const int64_t *x, const int64_t *y, int64_t *z)
{
    memset(z, 0, (size_t)(j->batches * j->m * j->n) * 8);
    for (int64_t b = 0; b < j->batches; b++)
        for (int64_t r = 0; r < j->m; r++, z += j->n)
            for (int64_t k = 0; k < j->k; k++) {
                uint64_t s = (uint64_t)x[j->xoff[b] + r * j->k + k];
                const int64_t *row = y + j->yoff[b] + k * j->n;
                for (int64_t c = 0; c < j->n; c++)
                    z[c] = (int64_t)((uint64_t)z[c] + s * (uint64_t)row[c]);
            }
}

// Where each batch of the result finds its matrix in an operand.
static int64_t *
batch_offsets(cps_ev *e, const cps_type *t, const cps_type *out, int64_t batches)
{
    cps_type lead = *t, as = *out;
    int64_t stride[1][CPS_MAX_RANK], *r = cps_arena_raw(e->a, (size_t)(batches + 1) * 8);
    int64_t matrix = t->dim[t->rank - 1] * t->dim[t->rank - 2];
    lead.rank -= 2;
    as.rank -= 2;
    cps_ev_walk w;
    cps_ev_strides(&lead, &as, stride[0]);
    cps_ev_walk_init(&w, &as, 1, stride);
    for (int64_t b = 0; b < batches; b++) {
        int64_t off[3];
        cps_ev_walk_at(&w, b, off);
        r[b] = off[0] * matrix;
    }
    return r;
}

bool
cps_ev_matmul(cps_ev *e, const cps_tensor *in, cps_tensor *out)
{
    const cps_type *x = &in[0].type, *y = &in[1].type, *z = &out->type;
    job j = {.e = e,
             .m = x->dim[x->rank - 2],
             .k = x->dim[x->rank - 1],
             .n = y->dim[y->rank - 1],
             .batches = 1,
             .avx2 = has_avx2()};
    for (int i = 0; i < z->rank - 2; i++)
        j.batches *= z->dim[i];
    int64_t total = cps_type_count(z), flops = j.m * j.k;
    if (total == 0)
        return true;
    j.xoff = batch_offsets(e, x, z, j.batches);
    j.yoff = batch_offsets(e, y, z, j.batches);
    if (out->i) {
        integers(&j, in[0].i, in[1].i, out->i);
        return true;
    }
    j.nr = e->o->fp32 ? 16 : 8;
    j.panels = cps_ceil_div(j.n, j.nr);
    j.x = in[0].f;
    j.y = in[1].f;
    j.z = out->f;
    if (e->o->fp32) {
        int64_t nx = cps_type_count(x);
        j.xf = cps_arena_raw(e->a, (size_t)(nx + 1) * sizeof(float));
        j.zf = cps_arena_alloc(e->a, (size_t)total * sizeof(float));
        for (int64_t i = 0; i < nx; i++)
            j.xf[i] = (float)j.x[i];
    } else {
        memset(j.z, 0, (size_t)total * sizeof *j.z);
    }
    cps_ev_parallel(e->o->threads, j.batches * j.panels,
                    CPS_MAX(1, 1000000 / CPS_MAX(1, flops * j.nr)), piece, &j);
    for (int64_t i = 0; i < total && j.zf; i++)
        j.z[i] = (double)j.zf[i];
    return true;
}

/* ---- binary32, for the tile evaluator ---- */

// One row of the result, each step rounded once.
static void
fused_row(int64_t k, int64_t n, const float *x, const float *y, float *z)
{
    for (int64_t c = 0; c < n; c++) {
        float a = 0;
        for (int64_t i = 0; i < k; i++)
            a = fmaf(x[i], y[i * n + c], a);
        z[c] = a;
    }
}

#if defined(__x86_64__)
// The same with the processor's fused step: rounding makes each sum a long chain, so eight
// independent ones of eight columns are kept going.
__attribute__((target("avx2,fma"))) static void
fused_row_fma(int64_t k, int64_t n, const float *x, const float *y, float *z)
{
    enum { W = 8 };
    int64_t c = 0;
    for (; c + 8 * W <= n; c += 8 * W) {
        __m256 a[W] = {{0}};
        for (int64_t i = 0; i < k; i++) {
            __m256 s = _mm256_set1_ps(x[i]);
            _Pragma("GCC unroll 8") for (int j = 0; j < W; j++) a[j] =
                _mm256_fmadd_ps(s, _mm256_loadu_ps(y + i * n + c + 8 * j), a[j]);
        }
        for (int j = 0; j < W; j++)
            _mm256_storeu_ps(z + c + 8 * j, a[j]);
    }
    for (; c < n; c++) {
        float a = 0;
        for (int64_t i = 0; i < k; i++)
            a = __builtin_fmaf(x[i], y[i * n + c], a);
        z[c] = a;
    }
}
#else
#define fused_row_fma fused_row
#endif

void
cps_mm_f32(int64_t m, int64_t k, int64_t n, const float *x, const float *y, float *z,
           bool fused)
{
    enum { NR = 16 };
    bool fast = has_avx2();
    if (fused) {
        for (int64_t r = 0; r < m; r++)
            (has_fma() ? fused_row_fma : fused_row)(k, n, x + r * k, y, z + r * n);
        return;
    }
    float pack[KC * NR], edge[MR * NR];
    for (int64_t i = 0; i < m * n; i++)
        z[i] = 0;
    for (int64_t at = 0; at < k; at += KC)
        for (int64_t c = 0; c < n; c += NR) {
            int64_t kc = CPS_MIN(k - at, (int64_t)KC), cols = CPS_MIN(n - c, (int64_t)NR);
            memset(pack, 0, sizeof pack);
            for (int64_t i = 0; i < kc; i++)
                memcpy(pack + i * NR, y + (at + i) * n + c, (size_t)cols * sizeof *pack);
            for (int64_t r = 0; r < m; r += MR) {
                int64_t rows = CPS_MIN(m - r, (int64_t)MR);
                float *to = cols < NR ? edge : z + r * n + c;
                memset(edge, 0, sizeof edge);
                for (int64_t i = 0; i < rows && cols < NR; i++)
                    memcpy(edge + i * NR, z + (r + i) * n + c, (size_t)cols * sizeof *edge);
                (fast ? f32_avx2_block : f32_block)(rows, kc, x + r * k + at, k, pack, to,
                                                    cols < NR ? NR : n);
                for (int64_t i = 0; i < rows && cols < NR; i++)
                    memcpy(z + (r + i) * n + c, edge + i * NR, (size_t)cols * sizeof *edge);
            }
        }
}
