/* The tensor engine: nc_matmul and nc_transpose.
 *
 * A product sums over the partitions in ascending order in binary32 (order taken from the
 * systolic array; not documented), then adds to PSUM in binary32. Products of types of up to 12
 * significant bits are exact in binary32; those of fp32 are fused with the sum, in the two passes
 * that the PE takes for fp32 weights, each added to PSUM; tf32 operands are rounded to tf32
 * when they are read. With double rows each partition holds two rows of K, the middle axis. A
 * transpose moves bits where the target has the pass-through path; on v2 it is a product with
 * the identity, in which infinities and NaN spread over their column. */
#include "ir/matmul.h"
#include "ir/tile_eval.h"

#include <math.h>
#include <stdlib.h>

static bool
wide(const cps_teat *at)
{
    return at->v->dtype == CPS_DT_FP32;
}

// All lanes as one dense matrix [parts, n].
static bool
load_all(cps_te *e, const cps_teat *at, float *out)
{
    if (!cps_dtype_is_float(at->v->dtype))
        return cps_te_fail(e, CPS_E5108, "the PE does not multiply %s",
                           cps_dtype_name(at->v->dtype));
    for (unsigned p = 0; p < at->v->parts; p++)
        if (!cps_te_load(e, at, p, out + (int64_t)p * at->n))
            return false;
    return true;
}

// PSUM row m gets z, or what it holds plus z.
static bool
put_row(cps_te *e, const cps_teat *o, unsigned m, float *z, bool start)
{
    if (!start) {
        float *old = e->row[0];
        if (!cps_te_load(e, o, m, old))
            return false;
        for (int64_t i = 0; i < o->n; i++)
            z[i] = old[i] + z[i];
    }
    cps_te_store(e, o, m, z);
    return true;
}

// The low parts of fp32 weights, wt [m][k], against x [k][n]. A part that is zero contributes
// nothing, even against an infinity.
static void
low_pass(int64_t m, int64_t k, int64_t n, const float *wt, const float *x, float *z)
{
    bool odd = false;
    for (int64_t i = 0; i < k * n && !odd; i++)
        odd = !isfinite(x[i]);
    if (!odd) {
        cps_mm_f32(m, k, n, wt, x, z, true);
        return;
    }
    for (int64_t r = 0; r < m; r++)
        for (int64_t c = 0; c < n; c++) {
            float acc = 0;
            for (int64_t i = 0; i < k; i++)
                if (wt[r * k + i] != 0)
                    acc = fmaf(wt[r * k + i], x[i * n + c], acc);
            z[r * n + c] = acc;
        }
}

static bool
product(cps_te *e, const cps_teat *w, const cps_teat *x, const cps_teat *o, float *mem)
{
    int64_t k = w->v->parts, m = o->v->parts, n = o->n, pairs = w->n / m;
    float *rows = mem, *wt = rows + k * w->n, *data = wt + k * w->n, *z = data + k * x->n;
    if (!load_all(e, w, rows) || !load_all(e, x, data))
        return false;
    // Row m of wt: the weights of column m along (partition, pair).
    for (int64_t i = 0; i < k; i++)
        for (int64_t j = 0; j < pairs; j++)
            for (int64_t c = 0; c < m; c++)
                wt[c * k * pairs + i * pairs + j] = rows[i * w->n + j * m + c];
    // The moving data is [partition, pair, n] already.
    bool start = cps_tinst_get(e->x, CPS_TA_START, 0) || e->x->op == CPS_T_TRANSPOSE;
    if (wide(w)) {
        // Two passes: what is below the upper 12 bits of the weights' significands, then those.
        for (int64_t i = 0; i < k * w->n; i++) {
            float v = wt[i],
                  high = isfinite(v) ? cps_bits_f32(cps_f32_bits(v) & 0xFFFFF000u) : v;
            rows[i] = isfinite(v) ? v - high : 0;
            wt[i] = high;
        }
        low_pass(m, k * pairs, n, rows, data, z);
        for (int64_t c = 0; c < m; c++)
            if (!put_row(e, o, (unsigned)c, z + c * n, start))
                return false;
        start = false;
    }
    cps_mm_f32(m, k * pairs, n, wt, data, z, wide(w) || wide(x));
    for (int64_t c = 0; c < m; c++)
        if (!put_row(e, o, (unsigned)c, z + c * n, start))
            return false;
    return true;
}

// dst[m, n] = the element of column m in the row that the identity picks for n, bit for bit.
static bool
pass_through(cps_te *e, const cps_teat *w, const cps_teat *x, const cps_teat *o, float *mem)
{
    int64_t k = w->v->parts, n = o->n;
    float *data = mem;
    uint8_t *rows = (uint8_t *)(data + k * x->n);
    int64_t *pick = (int64_t *)(void *)e->row[1];
    if (!load_all(e, x, data))
        return false;
    for (int64_t c = 0; c < n; c++) {
        int64_t hit = -1, hits = 0;
        for (int64_t i = 0; i < k; i++)
            if (data[i * x->n + c] != 0) {
                hits++;
                hit = data[i * x->n + c] == 1 ? i : -1;
            }
        if (hits != 1 || hit < 0)
            return cps_te_fail(e, CPS_E8104,
                               "column %lld of the moving data of a transpose is not "
                               "one 1 among zeros",
                               (long long)c);
        pick[c] = hit;
    }
    for (int64_t i = 0; i < k; i++)
        if (!cps_te_load_raw(e, w, (unsigned)i, rows + i * w->n * w->es))
            return false;
    for (int64_t m = 0; m < o->v->parts; m++) {
        uint8_t *out = (uint8_t *)e->row[2];
        for (int64_t c = 0; c < n; c++)
            memcpy(out + c * w->es, rows + (pick[c] * w->n + m) * w->es, w->es);
        if (w->es == o->es)
            cps_te_store_raw(e, o, (unsigned)m, out);
        else {
            cps_to_f32_n(w->v->dtype, out, e->row[3], (size_t)n);
            cps_te_store(e, o, (unsigned)m, e->row[3]);
        }
    }
    return true;
}

static bool
transpose(cps_te *e, const cps_teat *s, const cps_teat *o, float *mem)
{
    int64_t k = s->v->parts;
    uint8_t *rows = (uint8_t *)mem, *out = (uint8_t *)e->row[2];
    for (int64_t i = 0; i < k; i++)
        if (!cps_te_load_raw(e, s, (unsigned)i, rows + i * s->n * s->es))
            return false;
    for (int64_t m = 0; m < o->v->parts; m++) {
        for (int64_t c = 0; c < k; c++)
            memcpy(out + c * s->es, rows + (c * s->n + m) * s->es, s->es);
        if (s->v->dtype == o->v->dtype || s->es == o->es) {
            cps_te_store_raw(e, o, (unsigned)m, out);
        } else {
            cps_to_f32_n(s->v->dtype, out, e->row[3], (size_t)k);
            cps_te_store(e, o, (unsigned)m, e->row[3]);
        }
    }
    return true;
}

// On v2 the PE multiplies by the identity.
static bool
by_product(cps_te *e, const cps_teat *s, const cps_teat *o, float *mem)
{
    int64_t k = s->v->parts, m = s->n;
    float *rows = mem, *wt = rows + k * m, *unit = wt + k * m, *z = unit + k * k;
    if (!load_all(e, s, rows))
        return false;
    for (int64_t i = 0; i < k; i++)
        for (int64_t c = 0; c < k; c++)
            unit[i * k + c] = i == c;
    for (int64_t i = 0; i < k; i++)
        for (int64_t c = 0; c < m; c++)
            wt[c * k + i] = rows[i * m + c];
    cps_mm_f32(m, k, k, wt, unit, z, true);
    for (int64_t c = 0; c < m; c++)
        cps_te_store(e, o, (unsigned)c, z + c * k);
    return true;
}

bool
cps_te_pe(cps_te *e)
{
    const cps_tinst *x = e->x;
    cps_teat in[2], out;
    if (!cps_te_at(e, &x->out[0], &out))
        return false;
    for (int k = 0; k < x->nin; k++)
        if (!cps_te_at(e, &x->in[k], &in[k]))
            return false;
    // Scratch for every form below: the operands twice, the result, one square.
    int64_t k = in[0].v->parts, a = k * in[0].n, b = x->nin > 1 ? k * in[1].n : 0;
    size_t want = (size_t)(2 * a + b + (int64_t)out.v->parts * out.n + k * k + 16) * 8;
    float *mem = malloc(want);
    if (!mem)
        cps_bug("out of memory");
    e->staged = false;
    bool ok, on_pe = x->engine == CPS_PE || cps_tc_buf(e->f, out.v)->space == CPS_PSUM;
    if (x->op == CPS_T_MATMUL)
        ok = cps_tinst_get(x, CPS_TA_TRANSPOSE, 0) ? pass_through(e, &in[0], &in[1], &out, mem)
                                                   : product(e, &in[0], &in[1], &out, mem);
    else if (x->nin > 1)
        ok = e->gen == CPS_V2 ? product(e, &in[0], &in[1], &out, mem)
                              : pass_through(e, &in[0], &in[1], &out, mem);
    else if (on_pe && e->gen == CPS_V2 && x->engine != CPS_DVE)
        ok = by_product(e, &in[0], &out, mem);
    else
        ok = transpose(e, &in[0], &out, mem);
    free(mem);
    return ok;
}
