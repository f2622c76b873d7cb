/* DMA: elements of the source in row-major order of all its axes (partition first on chip) go
 * to the elements of the destination in the same order. Equal dtypes move bits, others convert
 * through binary32; accumulating transfers add in binary32. The source is read whole before
 * anything is written. An index tile moves axis 0 of one side: its rows are transferred one by
 * one; a row outside the tensor is an error, or left out when `oob` says so. */
#include "ir/tile_eval.h"

#include <stdlib.h>

// One side as a walk over everything, from data offset `base`.
static void
whole(const cps_teat *at, int64_t *base, cps_tewalk *w)
{
    *base = at->base;
    *w = at->w;
    if (at->v->parts)
        cps_te_axis(w, at->m->row, at->v->parts);
}

static void
convert(const cps_teat *from, const cps_teat *to, int64_t n, const uint8_t *in, uint8_t *out)
{
    cps_dtype a = from->v->dtype, b = to->v->dtype;
    if (a == b) {
        memcpy(out, in, (size_t)n * to->es);
        return;
    }
    float *v = malloc((size_t)n * sizeof *v + 1);
    if (!v)
        cps_bug("out of memory");
    cps_to_f32_n(a, in, v, (size_t)n);
    cps_from_f32_n(b, v, out, (size_t)n);
    free(v);
}

// Adds to what the destination holds.
static bool
add(cps_te *e, const cps_teat *from, const cps_teat *to, int64_t base, const cps_tewalk *w,
    int64_t n, const uint8_t *in, uint8_t *out)
{
    if (!cps_te_defined(e, to, base, w))
        return false;
    float *v = malloc((size_t)n * 2 * sizeof *v + 1);
    if (!v)
        cps_bug("out of memory");
    cps_te_gather(to->m->data + base, w, out);
    cps_to_f32_n(to->v->dtype, out, v, (size_t)n);
    cps_to_f32_n(from->v->dtype, in, v + n, (size_t)n);
    for (int64_t i = 0; i < n; i++)
        v[i] += v[n + i];
    cps_from_f32_n(to->v->dtype, v, out, (size_t)n);
    free(v);
    return true;
}

// n elements along two walks.
static bool
transfer(cps_te *e, const cps_teat *from, int64_t fbase, const cps_tewalk *fw,
         const cps_teat *to, int64_t tbase, const cps_tewalk *tw, int64_t n)
{
    if (!cps_te_defined(e, from, fbase, fw))
        return false;
    uint8_t *in = malloc((size_t)n * from->es + 1), *out = malloc((size_t)n * to->es + 1);
    if (!in || !out)
        cps_bug("out of memory");
    cps_te_gather(from->m->data + fbase, fw, in);
    bool ok = true;
    if (cps_tinst_get(e->x, CPS_TA_ACCUMULATE, 0))
        ok = add(e, from, to, tbase, tw, n, in, out);
    else
        convert(from, to, n, in, out);
    if (ok) {
        cps_te_scatter(to->m->data + tbase, tw, out);
        cps_te_mark(to->m->def ? to->m->def + tbase : NULL, tw);
    }
    free(in);
    free(out);
    return ok;
}

/* ---- transposes ---- */

// Axes that have more than one element, partition first, as steps in bytes.
static int
axes_of(const cps_teat *at, int64_t *step, int64_t *num)
{
    int n = 0;
    if (at->v->parts > 1) {
        step[n] = at->m->row;
        num[n++] = at->v->parts;
    }
    for (int i = 0; i < at->v->nd; i++)
        if (at->v->d[i].num != 1) {
            step[n] = at->v->d[i].step * at->es;
            num[n++] = at->v->d[i].num;
        }
    return n;
}

static bool
transposing(cps_te *e, const cps_teat *from, const cps_teat *to)
{
    int64_t fs[CPS_TILE_DIMS + 1], fn[CPS_TILE_DIMS + 1], ts[CPS_TILE_DIMS + 1],
        tn[CPS_TILE_DIMS + 1];
    int n = axes_of(from, fs, fn), m = axes_of(to, ts, tn);
    bool same = n == m;
    if (n >= 2) {
        int64_t s = fs[n - 1], c = fn[n - 1];
        fs[n - 1] = fs[n - 2];
        fn[n - 1] = fn[n - 2];
        fs[n - 2] = s;
        fn[n - 2] = c;
    }
    for (int i = 0; i < n && same; i++)
        same = fn[i] == tn[i];
    if (!same)
        return cps_te_fail(e, CPS_E5107,
                           "the result is not the source with its last two axes "
                           "swapped");
    cps_tewalk fw = {.run = from->es}, tw = {.run = to->es};
    int64_t count = 1;
    for (int i = n - 1; i >= 0; i--) {
        cps_te_axis(&fw, fs[i], fn[i]);
        cps_te_axis(&tw, ts[i], tn[i]);
        count *= fn[i];
    }
    return transfer(e, from, from->base, &fw, to, to->base, &tw, count);
}

/* ---- indices ---- */

// Row r of a side: base and walk of its part of the transfer.
typedef struct side {
    const cps_teat *at;
    const cps_tview *index; // NULL: plain
    cps_teat iat;
    cps_tewalk row; // what one row walks
    int64_t step;   // bytes between rows of a plain side
} side;

static bool
side_of(cps_te *e, const cps_teat *at, int64_t rows, side *s)
{
    const cps_tview *v = at->v;
    *s = (side){.at = at, .row = {.run = at->es}};
    if (v->index) {
        s->index = &e->f->views.data[v->index - 1];
        if (!cps_te_place(e, s->index, &s->iat))
            return false;
        for (int i = v->nd - 1; i >= 1; i--)
            cps_te_axis(&s->row, v->d[i].step * at->es, v->d[i].num);
        return true;
    }
    int first = v->parts ? 0 : 1;
    if (v->parts ? v->parts != rows : v->nd < 1 || v->d[0].num != rows)
        return cps_te_fail(e, CPS_E5107,
                           "%lld rows are indexed, the other side has another number",
                           (long long)rows);
    for (int i = v->nd - 1; i >= first; i--)
        cps_te_axis(&s->row, v->d[i].step * at->es, v->d[i].num);
    s->step = v->parts ? at->m->row : v->d[0].step * at->es;
    return true;
}

// Where row r is; *skip when it lies outside and may be left out.
static bool
row_at(cps_te *e, const side *s, int64_t r, int64_t *base, bool *skip)
{
    *base = s->at->base + r * s->step;
    if (!s->index)
        return true;
    int64_t i, lo, hi, es = s->at->es;
    const cps_tview *v = s->at->v;
    int64_t all = cps_tbuf_bytes(cps_tc_buf(e->f, v)) / es;
    if (!cps_te_load_i64(e, &s->iat, (unsigned)r, &i))
        return false;
    cps_tc_reach(v, 1, &lo, &hi);
    // `base` holds off and a register's part of it.
    int64_t moved = s->at->base / es - v->off + i * v->d[0].step;
    *base = s->at->base + i * v->d[0].step * es;
    if (i >= 0 && lo + moved >= 0 && hi + moved < all)
        return true;
    *skip = cps_tinst_get(e->x, CPS_TA_OOB, 0) == 1;
    return *skip || cps_te_fail(e, CPS_E8102, "index %lld (row %lld) is outside '%s'",
                                (long long)i, (long long)r,
                                cps_tc_buf(e->f, v)->name ? cps_tc_buf(e->f, v)->name : "");
}

static bool
indexed(cps_te *e, const cps_teat *from, const cps_teat *to)
{
    side a, b;
    const cps_teat *lead = from->v->index ? from : to;
    int64_t rows = lead->v->d[0].num;
    if (!side_of(e, from, rows, &a) || !side_of(e, to, rows, &b) || !cps_te_rows(e, 1))
        return false;
    int64_t per = lead->n / rows;
    for (int64_t r = 0; r < rows; r++) {
        int64_t fb, tb;
        bool skip = false;
        if (!row_at(e, &a, r, &fb, &skip) || (!skip && !row_at(e, &b, r, &tb, &skip)))
            return false;
        if (!skip && !transfer(e, from, fb, &a.row, to, tb, &b.row, per))
            return false;
    }
    return true;
}

bool
cps_te_dma(cps_te *e)
{
    cps_teat from, to;
    if (!cps_te_place(e, cps_tc_view(e->f, &e->x->in[0]), &from) ||
        !cps_te_place(e, cps_tc_view(e->f, &e->x->out[0]), &to))
        return false;
    if (e->x->op == CPS_T_DMA_TRANSPOSE)
        return transposing(e, &from, &to);
    if (from.v->index || to.v->index)
        return indexed(e, &from, &to);
    cps_tewalk fw, tw;
    int64_t fb, tb;
    whole(&from, &fb, &fw);
    whole(&to, &tb, &tw);
    return transfer(e, &from, fb, &fw, &to, tb, &tw,
                    from.n * CPS_MAX((int64_t)from.v->parts, 1));
}
