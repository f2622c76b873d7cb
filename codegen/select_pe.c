/* Selection for the PE: LDWEIGHTS and MATMUL.
 *
 * One pair per matmul; fp32 takes two, with the low and the high part of the weights, both
 * accumulating (encoding rulings, "fp32 matmul"). Weights that already stand in the array are
 * not loaded again. Group flags: START overwrites what an element held, END closes; v4 sets bit
 * 2 on every pass but the first (rulings, "v4 accumulation"). */
#include "codegen/select.h"

#define SET(field, value) cps_isa_set(&b, CPS_F_##field, (uint64_t)(value))

typedef struct pass {
    const cps_tinst *x;
    uint8_t weights_mode, moving_mode, row_grp, col_grp, xbus, transpose, perf;
    unsigned rows, cols;
    bool start, stop;
} pass;

static bool
same_weights(const cps_sel *s, const cps_weights *w)
{
    const cps_weights *o = &s->w;
    const cps_tview *a = &w->view, *b = &o->view;
    bool same = o->valid && o->version == w->version && o->fp32_mode == w->fp32_mode &&
                o->transpose == w->transpose && o->perf == w->perf &&
                o->row_grp == w->row_grp && o->col_grp == w->col_grp && a->buf == b->buf &&
                a->dtype == b->dtype && a->part == b->part && a->parts == b->parts &&
                a->off == b->off && a->nd == b->nd && !a->reg && !b->reg;
    for (int i = 0; same && i < a->nd; i++)
        same = a->d[i].step == b->d[i].step && a->d[i].num == b->d[i].num;
    return same;
}

static void
load_weights(cps_sel *s, const pass *p)
{
    cps_gen gen = s->g->t->gen;
    cps_tview v = *cps_sel_view(s, p->x->in[0]);
    cps_weights w = {.valid = true,
                     .view = v,
                     .version = s->version[v.buf],
                     .fp32_mode = p->weights_mode,
                     .transpose = p->transpose,
                     .perf = p->perf,
                     .row_grp = p->row_grp,
                     .col_grp = p->col_grp};
    if (same_weights(s, &w))
        return;
    s->w = w;
    cps_bundle b = cps_cg_bundle(s->g, CPS_INSN_LDWEIGHTS);
    SET(S3_LW_in_dtype, cps_sel_in(v.dtype));
    SET(S3_LW_fp32_mode, p->weights_mode);
    SET(S3_LW_perf_opt, p->perf);
    SET(S3_LW_num_active_rows, p->rows);
    SET(S3_LW_num_active_cols, p->cols);
    SET(S3_LW_row_grp, p->row_grp);
    SET(S3_LW_col_grp, p->col_grp);
    if (gen == CPS_V2)
        SET(S3_LW_xbus_sel, p->xbus);
    if (p->transpose && gen == CPS_V3)
        SET(S3_LW_transpose_mode, 1);
    if (p->transpose && gen == CPS_V4)
        SET(S3_LW_flags, CPS_LW_FLAG_TRANSPOSE);
    cps_sel_slot(s, &b, CPS_F_S3_LW_src, CPS_PE, &v, p->x->loc);
    cps_sel_op(s, CPS_M_UNIT, CPS_PE, &b, p->x->loc);
    cps_sel_touch(s, &v, false);
}

// The smallest zero region that holds the result.
static unsigned
zero_region(const cps_sel *s, const cps_tview *v)
{
    cps_macc a;
    cps_sel_access(s, v, true, &a);
    int64_t end = a.base + a.run;
    for (int i = 0; i < a.nd; i++)
        end += a.d[i].step * (a.d[i].num - 1);
    unsigned z = 0;
    for (int64_t bytes = CPS_PSUM_BANK; z < 3 && a.base / bytes != (end - 1) / bytes;
         bytes *= 2)
        z++;
    return z;
}

static void
move(cps_sel *s, const pass *p)
{
    cps_gen gen = s->g->t->gen;
    cps_tview src = *cps_sel_view(s, p->x->in[1]), dst = *cps_sel_view(s, p->x->out[0]);
    cps_bundle b = cps_cg_bundle(s->g, CPS_INSN_MATMUL);
    unsigned flags =
        (p->start ? CPS_PSUM_ACCUMULATE_START : 0u) | (p->stop ? CPS_PSUM_ACCUMULATE_END : 0u);
    if (gen == CPS_V4 && !p->start)
        flags |= CPS_PSUM_ACCUMULATE_ACCUMULATE;
    SET(S3D3_MM_in_dtype, cps_sel_in(src.dtype));
    SET(S3D3_MM_fp32_mode, p->moving_mode);
    SET(S3D3_MM_perf_opt, p->perf);
    SET(S3D3_MM_num_active_rows, p->rows);
    SET(S3D3_MM_num_active_cols, p->cols);
    SET(S3D3_MM_psum_accumulate_flags, flags);
    SET(S3D3_MM_row_grp, p->row_grp);
    SET(S3D3_MM_col_grp, p->col_grp);
    SET(S3D3_MM_psum_zero_region, gen == CPS_V4 ? zero_region(s, &dst) : 0);
    if (gen == CPS_V2)
        SET(S3D3_MM_xbus_sel, p->xbus);
    else
        SET(S3D3_MM_out_dtype, cps_sel_in(dst.dtype));
    if (p->transpose && gen == CPS_V3)
        SET(S3D3_MM_transpose_mode, 1);
    if (p->transpose && gen == CPS_V4)
        SET(S3D3_MM_flags, CPS_MM_FLAG_TRANSPOSE);
    cps_sel_slot(s, &b, CPS_F_S3D3_MM_src, CPS_PE, &src, p->x->loc);
    cps_sel_slot(s, &b, CPS_F_S3D3_MM_dst, CPS_PE, &dst, p->x->loc);
    cps_sel_op(s, CPS_M_UNIT, CPS_PE, &b, p->x->loc);
    cps_sel_touch(s, &src, false);
    cps_sel_touch(s, &dst, true);
}

bool
cps_sel_matmul(cps_sel *s, const cps_tinst *x)
{
    const cps_tview *w = cps_sel_view(s, x->in[0]), *m = cps_sel_view(s, x->in[1]);
    const cps_tview *o = cps_sel_view(s, x->out[0]);
    pass p = {.x = x, .rows = w->parts};
    p.transpose = (uint8_t)cps_tinst_get(x, CPS_TA_TRANSPOSE, 0);
    p.perf = (uint8_t)cps_tinst_get(x, CPS_TA_PERF, 0);
    p.cols = (unsigned)cps_tview_elems(w) / (p.perf == CPS_PERF_OPT_MODE_DOUBLE_ROW ? 2u : 1u);
    p.row_grp = cps_isa_pe_group(cps_legal_start(s->g->f, w), p.rows);
    p.col_grp = cps_isa_pe_group(cps_legal_start(s->g->f, o), p.cols);
    if (!p.row_grp || !p.col_grp || o->parts != p.cols || m->parts != p.rows) {
        cps_error(s->g->d, CPS_E5303, x->loc,
                  "a %u x %u matmul from partition %u to partition %u has no place in the PE",
                  p.rows, p.cols, cps_legal_start(s->g->f, w), cps_legal_start(s->g->f, o));
        return false;
    }
    p.xbus = cps_isa_pe_bus(p.col_grp);
    p.start = cps_tinst_get(x, CPS_TA_START, 0);
    p.stop = cps_tinst_get(x, CPS_TA_STOP, 0);
    if (w->dtype == CPS_DT_FP32 && !(p.transpose && s->g->t->pe_transpose)) {
        bool stop = p.stop;
        p.moving_mode = CPS_PE_FP32MODE_LOW_HIGH;
        p.weights_mode = CPS_PE_FP32MODE_LOW;
        p.stop = false;
        load_weights(s, &p);
        move(s, &p);
        p.weights_mode = CPS_PE_FP32MODE_HIGH;
        p.start = false;
        p.stop = stop;
        load_weights(s, &p);
        move(s, &p);
        return true;
    }
    if (w->dtype == CPS_DT_FP32 || w->dtype == CPS_DT_TF32)
        p.weights_mode = p.moving_mode = CPS_PE_FP32MODE_HIGH;
    load_weights(s, &p);
    move(s, &p);
    return true;
}
