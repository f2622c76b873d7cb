/* Legalisation of the PE: matmul and transposes.
 *
 * A matmul streams at most the moving limit of the target; longer or deeper streams are cut,
 * each piece with the same weights and the same group flags. A transpose on the PE is a matmul
 * of the data (stationary) with the identity (moving), in pass-through mode where the
 * generation has one; the identity is made once per type. A transpose on DVE becomes blocks of
 * 32 x 32. */
#include "codegen/legal.h"

static uint32_t
new_view(cps_legal *l, const cps_tview *v)
{
    cps_vec_push(l->f->arena, &l->f->views, *v);
    return l->f->views.n - 1;
}

static bool
slot_fits(const cps_pat *p, int dims)
{
    bool ok = p->nd <= dims;
    for (int i = 0; i < p->nd; i++)
        ok = ok && p->d[i].step == (int16_t)p->d[i].step && p->d[i].num <= 65535;
    return ok;
}

static cps_pat
inside(const cps_pat *p, int k)
{
    cps_pat r = {.nd = p->nd - k};
    for (int i = k; i < p->nd; i++)
        r.d[i - k] = p->d[i];
    cps_pat_merge(&r, 65535);
    return r;
}

static bool
pattern_error(cps_legal *l, const cps_tinst *x, const char *what)
{
    cps_error(l->g->d, CPS_E5301, x->loc, "the %s of '%s' does not fit 3 evenly spaced axes",
              what, cps_tops[x->op].name);
    return false;
}

static uint32_t
with_axes(cps_legal *l, uint32_t view, int64_t off, const cps_pat *p)
{
    cps_tview v = l->f->views.data[view];
    v.off += off;
    if (!cps_pat_into(p, &v))
        cps_bug("a legal pattern of %d axes does not fit a view", p->nd);
    return new_view(l, &v);
}

bool
cps_legal_matmul(cps_legal *l, const cps_tinst *x)
{
    cps_tinst y = *x;
    cps_pat w, p[2];
    cps_pat_of(&l->f->views.data[x->in[0].id], &w);
    cps_pat_merge(&w, 65535);
    if (!slot_fits(&w, 3))
        return pattern_error(l, x, "stationary operand");
    y.in[0].id = with_axes(l, x->in[0].id, 0, &w);
    cps_pat_of(&l->f->views.data[x->in[1].id], &p[0]);
    cps_pat_of(&l->f->views.data[x->out[0].id], &p[1]);
    if (cps_tinst_get(x, CPS_TA_PERF, 0)) {
        // Pairs of rows share a PE: the moving side has more elements than the result.
        cps_pat_merge(&p[0], 65535);
        cps_pat_merge(&p[1], 65535);
        if (!slot_fits(&p[0], 3) || !slot_fits(&p[1], 3))
            return pattern_error(l, x, "moving operand");
        y.in[1].id = with_axes(l, x->in[1].id, 0, &p[0]);
        y.out[0].id = with_axes(l, x->out[0].id, 0, &p[1]);
        cps_legal_emit(l, &y);
        return true;
    }
    // One bank at most, although v4 can stream across banks: a zero region of several banks
    // would clear the accumulation state of neighbours.
    const cps_tview *out = &l->f->views.data[x->out[0].id];
    int64_t most = CPS_PSUM_BANK / cps_dtype_bytes(out->dtype);
    if (l->g->t->pe_moving_max > 0)
        most = CPS_MIN(most, l->g->t->pe_moving_max);
    if (!cps_pat_refine(p, 2, most) || !cps_pat_cut(p, 2, most))
        return pattern_error(l, x, "moving operand or result");
    int k = 0;
    int64_t elems = cps_pat_elems(&p[0]), pieces = 1;
    for (;; k++) {
        cps_pat a = inside(&p[0], k), b = inside(&p[1], k);
        if (elems / pieces <= most && slot_fits(&a, 3) && slot_fits(&b, 3))
            break;
        pieces *= p[0].d[k].num;
    }
    int64_t idx[CPS_PAT_DIMS] = {0};
    for (int64_t c = 0; c < pieces; c++) {
        int64_t off0 = 0, off1 = 0;
        for (int j = 0; j < k; j++) {
            off0 += idx[j] * p[0].d[j].step;
            off1 += idx[j] * p[1].d[j].step;
        }
        cps_pat a = inside(&p[0], k), b = inside(&p[1], k);
        y.in[1].id = with_axes(l, x->in[1].id, off0, &a);
        y.out[0].id = with_axes(l, x->out[0].id, off1, &b);
        cps_legal_emit(l, &y);
        for (int j = k; j-- > 0;) {
            if (++idx[j] < p[0].d[j].num)
                break;
            idx[j] = 0;
        }
    }
    return true;
}

// The identity of `t` in 128 partitions: zeros, then ones where partition == column.
static cps_tview
identity(cps_legal *l, cps_dtype t, cps_span loc)
{
    for (uint32_t i = 0; i < l->idents.n; i++)
        if (l->idents.data[i].dtype == t)
            return l->idents.data[i];
    cps_tview v = cps_legal_temp(l, "c_ident", t, 0, 128, 128, loc);
    uint32_t view = new_view(l, &v);
    cps_tinst zero = {.op = CPS_T_MEMSET,
                      .engine = CPS_POOL,
                      .nout = 1,
                      .nin = 1,
                      .round = -1,
                      .stage = -1,
                      .loc = loc};
    zero.out[0] = cps_to_view(view);
    zero.in[0] = cps_to_imm(0);
    cps_vec_push(l->g->arena, &l->head, zero);
    cps_tinst diag = zero;
    diag.op = CPS_T_AFFINE_SELECT;
    diag.nin = 2;
    diag.in[0] = cps_to_view(view);
    diag.in[1] = cps_to_imm(1);
    cps_tlist list = {.n = 1, .v = {-1, 128}}; // step, and behind it the count
    cps_vec_push(l->f->arena, &l->f->lists, list);
    cps_tinst_set(&diag, CPS_TA_OP0, CPS_ALU_IS_NE);
    cps_tinst_set(&diag, CPS_TA_BASE, 0);
    cps_tinst_set(&diag, CPS_TA_CHANNEL, 1);
    cps_tinst_set(&diag, CPS_TA_PATTERN, (int32_t)l->f->lists.n - 1);
    cps_vec_push(l->g->arena, &l->head, diag);
    cps_vec_push(l->g->arena, &l->idents, v);
    return v;
}

static bool
transpose_error(cps_legal *l, const cps_tinst *x, const char *why)
{
    cps_error(l->g->d, CPS_E5304, x->loc, "cannot transpose: %s", why);
    return false;
}

static bool
on_dve(cps_legal *l, const cps_tinst *x)
{
    const cps_tview src = l->f->views.data[x->in[0].id], dst = l->f->views.data[x->out[0].id];
    cps_pat a, b;
    cps_pat_of(&src, &a);
    cps_pat_of(&dst, &b);
    cps_pat_merge(&a, 65535);
    cps_pat_merge(&b, 65535);
    int64_t rows = src.parts, cols = cps_pat_elems(&a);
    if (a.nd != 1 || b.nd != 1 || rows % 32 || cols % 32 || dst.parts != cols ||
        cps_pat_elems(&b) != rows || cps_legal_start(l->f, &src) % 32 ||
        cps_legal_start(l->f, &dst) % 32)
        return transpose_error(l, x,
                               "DVE takes whole blocks of 32 x 32; put the result in PSUM "
                               "to transpose on the PE");
    for (int64_t i = 0; i < rows / 32; i++)
        for (int64_t j = 0; j < cols / 32; j++) {
            cps_tview s = src, t = dst;
            s.part += (uint16_t)(32 * i);
            t.part += (uint16_t)(32 * j);
            s.parts = t.parts = 32;
            s.off += 32 * j * a.d[0].step;
            t.off += 32 * i * b.d[0].step;
            s.nd = t.nd = 1;
            s.d[0] = (cps_tdim){a.d[0].step, 32};
            t.d[0] = (cps_tdim){b.d[0].step, 32};
            cps_tinst y = *x;
            y.engine = CPS_DVE;
            y.nin = 1;
            y.in[0] = cps_to_view(new_view(l, &s));
            y.out[0] = cps_to_view(new_view(l, &t));
            cps_legal_emit(l, &y);
        }
    return true;
}

bool
cps_legal_transpose(cps_legal *l, const cps_tinst *x)
{
    cps_tview src = l->f->views.data[x->in[0].id], dst = l->f->views.data[x->out[0].id];
    bool psum = l->f->bufs.data[dst.buf].space == CPS_PSUM;
    if (x->engine == CPS_DVE)
        return on_dve(l, x);
    if (!psum)
        return transpose_error(l, x, "the PE writes PSUM only");
    int64_t cols = cps_tview_elems(&src);
    if (dst.parts != cols || cps_tview_elems(&dst) != src.parts)
        return transpose_error(l, x, "the result is not the source with its axes swapped");
    cps_tinst y = *x;
    y.op = CPS_T_MATMUL;
    y.engine = CPS_PE;
    y.nin = 2;
    y.set = 0;
    cps_tinst_set(&y, CPS_TA_START, 1);
    cps_tinst_set(&y, CPS_TA_STOP, 1);
    if (l->g->t->pe_transpose)
        cps_tinst_set(&y, CPS_TA_TRANSPOSE, 1);
    if (x->nin < 2) {
        unsigned start = cps_legal_start(l->f, &src);
        cps_tview id = identity(l, src.dtype, x->loc);
        id.part = (uint16_t)start;
        id.parts = src.parts;
        id.off = start;
        id.d[0] = (cps_tdim){1, src.parts};
        y.in[1] = cps_to_view(new_view(l, &id));
    }
    return cps_legal_matmul(l, &y);
}
