/* The tensor engine. LDWEIGHTS keeps W[k][m]; MATMUL adds sum over k of W[k][m] * X[k][n] to
 * PSUM.
 *
 * Numerics: products are exact, sums are fp32 in the order of the partitions, then one fp32
 * addition in PSUM (the order within the array is not published; taken as 0..127). Products of
 * types up to 12 bits of significand are exact in fp32 anyway; fp32 operands go through
 * binary64.
 *
 * A plain fp32 matmul is two passes (the published profiles show two; the split is inferred):
 * the weights' low part, then their high part, with the moving data whole. High is the upper 12
 * bits of the significand, low is the exact rest, so the passes together are the exact product.
 * One pass alone rounds both operands to tf32.
 *
 * Accumulation: START marks its whole zero region (a bank) as fresh; an element of it is
 * overwritten by the first matmul that touches it and added to from then on. Two groups open in
 * one bank and partition therefore destroy each other, as on the device. */
#include "runtime/sim/pe.h"

#define F(x) (unsigned)cps_isa_get(&i->b, x)

/* Start partition of a row or column group; 0xFF when it is none. */
static unsigned
group_start(unsigned g)
{
    switch (g) {
    case 0xF:
    case 0x3:
    case 0x1:
        return 0;
    case 0x2:
        return 32;
    case 0xC:
    case 0x4:
        return 64;
    case 0x8:
        return 96;
    default:
        return 0xFF;
    }
}

bool
pe_groups(cps_sim *s, insn *i, unsigned rg, unsigned cg, unsigned cols)
{
    unsigned r = group_start(rg), c = group_start(cg);
    if (r == 0xFF || c == 0xFF || r + i->rows > LANES || cols < 1 || c + cols > LANES)
        return load_fail(s, i, CPS_E8202,
                         "row group 0x%x and column group 0x%x do not hold %u "
                         "rows and %u columns",
                         rg, cg, i->rows, cols);
    i->group = (uint16_t)(r | c << 8);
    return true;
}

/* Modes whose meaning is not published: quantised weights of v2, scalars and seeds of v4. */
static bool
plain_mode(cps_sim *s, const insn *i, unsigned offset, unsigned flags)
{
    bool odd = (offset && s->k->gen == CPS_V2) || (flags && s->k->gen >= CPS_V4);
    return !odd || load_fail(s, i, CPS_E8202, "no model of quantised, scalar or seed modes");
}

bool
prep_ldweights(cps_sim *s, insn *i)
{
    unsigned cols = F(CPS_F_S3_LW_num_active_cols), perf = F(CPS_F_S3_LW_perf_opt);
    i->fn = (uint8_t)cols;
    i->flag = perf == CPS_PERF_OPT_MODE_DOUBLE_ROW;
    i->cmd = (uint8_t)F(CPS_F_S3_LW_fp32_mode);
    if (!plain_mode(s, i, F(CPS_F_S3_LW_quant_offset),
                    F(CPS_F_S3_LW_flags) & (CPS_LW_FLAG_SCALAR | CPS_LW_FLAG_SEED)))
        return false;
    if (perf > CPS_PERF_OPT_MODE_DOUBLE_ROW)
        return load_fail(s, i, CPS_E8202, "no model of this packing");
    if (i->op[0].count != cols * (i->flag ? 2 : 1))
        return load_fail(s, i, CPS_E8202, "%u elements for %u columns", i->op[0].count, cols);
    return pe_groups(s, i, F(CPS_F_S3_LW_row_grp), F(CPS_F_S3_LW_col_grp), cols);
}

bool
exec_ldweights(cps_sim *s, engine *e, insn *i)
{
    const opnd *o = &i->op[0];
    unsigned r0 = i->group & 0xFF, c0 = i->group >> 8, cols = i->fn;
    float *row = s->row[0];
    for (unsigned k = 0; k < i->rows; k++) {
        size_t at = (size_t)(r0 + k) * LANES + c0;
        load_f32(s, o, k, row);
        memcpy(e->w[0] + at, row, cols * sizeof *row);
        if (i->flag)
            memcpy(e->w[1] + at, row + cols, cols * sizeof *row);
        load_raw(s, o, k, s->raw);
        if (o->es == 4)
            memcpy(e->wbits + at, s->raw, cols * sizeof *e->wbits);
        for (unsigned m = 0; m < cols && o->es == 2; m++)
            e->wbits[at + m] = ((const uint16_t *)s->raw)[m];
        for (unsigned m = 0; m < cols && o->es == 1; m++)
            e->wbits[at + m] = s->raw[m];
    }
    e->wmode = i->cmd;
    e->wdtype = o->dtype;
    return true;
}

bool
prep_matmul(cps_sim *s, insn *i)
{
    unsigned cols = F(CPS_F_S3D3_MM_num_active_cols), perf = F(CPS_F_S3D3_MM_perf_opt);
    unsigned n = i->op[1].count;
    i->fn = (uint8_t)cols;
    i->flag = perf == CPS_PERF_OPT_MODE_DOUBLE_ROW;
    i->cmd = (uint8_t)F(CPS_F_S3D3_MM_psum_accumulate_flags);
    i->op0 = (uint8_t)F(CPS_F_S3D3_MM_fp32_mode);
    i->rev = s->k->gen >= CPS_V3 && F(CPS_F_S3D3_MM_transpose_mode) != 0;
    if (s->k->gen >= CPS_V4)
        i->rev |= (F(CPS_F_S3D3_MM_flags) & CPS_MM_FLAG_TRANSPOSE) != 0;
    i->op[1].rows = (uint8_t)cols;
    if (!plain_mode(s, i, F(CPS_F_S3D3_MM_quant_offset),
                    F(CPS_F_S3D3_MM_flags) & (CPS_MM_FLAG_SCALAR | CPS_MM_FLAG_SEED)))
        return false;
    if (perf > CPS_PERF_OPT_MODE_DOUBLE_ROW)
        return load_fail(s, i, CPS_E8202, "no model of this packing");
    if (!i->op[1].psum && i->op[1].reg == 0xFF)
        return load_fail(s, i, CPS_E8202, "the destination is not in PSUM");
    if (n > MM_COLS || i->op[0].count != n * (i->flag ? 2 : 1))
        return load_fail(s, i, CPS_E8202, "%u elements in, %u out", i->op[0].count, n);
    return pe_groups(s, i, F(CPS_F_S3D3_MM_row_grp), F(CPS_F_S3D3_MM_col_grp), cols);
}

/* ---- PSUM ---- */

/* Byte offset of each element of row m, from the row's start. */
static void
offsets(const cps_sim *s, const opnd *o, unsigned m, int32_t *off)
{
    if (o->group) {
        const uint16_t *list = indirect_offsets(s, o, m);
        for (uint32_t k = 0; k < o->count; k++)
            off[k] = list[k] * o->es;
        return;
    }
    uint32_t at[4] = {0};
    for (uint32_t k = 0; k < o->count; k++) {
        int64_t e = 0;
        for (unsigned d = 0; d < o->nd; d++)
            e += (int64_t)at[d] * o->step[d];
        off[k] = (int32_t)(e * o->es);
        for (unsigned d = 0; d < o->nd && ++at[d] == o->num[d]; d++)
            at[d] = 0;
    }
}

static uint8_t *
fresh_row(cps_sim *s, const opnd *o, unsigned m)
{
    return s->psum_fresh + (size_t)(o->part + m) * PSUM_FRESH;
}

static void
open_region(cps_sim *s, const opnd *o, unsigned region)
{
    int64_t size = 2048ll << (region & 3);
    int64_t lo = (o->byte + o->lo) / size * size;
    int64_t hi = CPS_MIN(cps_round_up(o->byte + o->hi, size), (int64_t)PSUM_BYTES);
    for (unsigned m = 0; m < o->rows; m++)
        memset(fresh_row(s, o, m) + lo / 2, 1, (size_t)(hi - lo) / 2);
}

/* Reads of accumulation: what is neither fresh nor written is the finding. */
static void
check_partial(cps_sim *s, const insn *i, const opnd *o, unsigned m, const int32_t *off)
{
    const uint8_t *init = s->psum_init + (size_t)(o->part + m) * PSUM_BYTES + o->byte;
    for (uint32_t k = 0; k < o->count; k++) {
        if (fresh_row(s, o, m)[(o->byte + off[k]) / 2] || init[off[k]])
            continue;
        rect r = {.space = SP_PSUM, .run = o->es};
        r.base = (int64_t)(o->part + m) * CPS_PSUM_STRIDE + o->byte + off[k];
        rect_close(&r);
        check_read(s, i, &r);
        return;
    }
}

void
pe_accumulate(cps_sim *s, engine *e, const insn *i, const float *acc, uint32_t n,
              unsigned region)
{
    (void)e;
    const opnd *o = &i->op[1];
    bool start = i->cmd & CPS_PSUM_ACCUMULATE_START;
    bool always = s->k->gen >= CPS_V4 && i->cmd & CPS_PSUM_ACCUMULATE_ACCUMULATE;
    bool plain = o->dtype == CPS_DT_FP32 && o->flat && o->byte % 4 == 0;
    int32_t *off = (int32_t *)s->row[7];
    if (start)
        open_region(s, o, region);
    if (!plain)
        offsets(s, o, 0, off);
    float *old = s->row[0];
    for (unsigned m = 0; m < o->rows; m++, acc += n) {
        uint8_t *fresh = fresh_row(s, o, m);
        bool any = !start && !always && memchr(fresh, 1, PSUM_FRESH) != NULL;
        if (plain) {
            float *d = (float *)opnd_row(s, o, m);
            uint8_t *f = fresh + o->byte / 2;
            if (start) {
                memcpy(d, acc, n * sizeof *d);
                memset(f, 0, 2 * n);
                continue;
            }
            any = any && memchr(f, 1, 2 * n);
            if (!any) {
                rect r = {.space = SP_PSUM,
                          .run = n * 4,
                          .base = (int64_t)(o->part + m) * CPS_PSUM_STRIDE + o->byte};
                rect_close(&r);
                check_read(s, i, &r);
                for (uint32_t k = 0; k < n; k++)
                    d[k] += acc[k];
                continue;
            }
            offsets(s, o, m, off);
        }
        if (o->group)
            offsets(s, o, m, off);
        if (!start)
            check_partial(s, i, o, m, off);
        load_f32(s, o, m, old);
        for (uint32_t k = 0; k < n; k++) {
            bool over = start || (!always && fresh[(o->byte + off[k]) / 2]);
            old[k] = over ? acc[k] : old[k] + acc[k];
        }
        for (uint32_t k = 0; k < n; k++)
            memset(fresh + (o->byte + off[k]) / 2, 0, o->es / 2);
        store_f32(s, o, m, old);
    }
    mark_opnd(s, o);
}

/* ---- fp32 ---- */

static float
high_part(float w)
{
    return isfinite(w) ? cps_bits_f32(cps_f32_bits(w) & 0xFFFFF000u) : w;
}

static float
low_part(float w)
{
    return isfinite(w) ? w - high_part(w) : 0;
}

static void
matmul_fp32(cps_sim *s, engine *e, insn *i, uint32_t n)
{
    unsigned r0 = i->group & 0xFF, c0 = i->group >> 8, cols = i->fn, rows = i->rows;
    bool odd = false;
    for (size_t k = 0; k < (size_t)rows * n && !odd; k++)
        odd = !isfinite(s->mm_x[k]);
    float *w = s->row[1];
    double *wd = (double *)s->row[2];
    for (unsigned k = 0; k < rows; k++) {
        for (unsigned m = 0; m < cols; m++) {
            float v = e->w[0][(size_t)(r0 + k) * LANES + c0 + m];
            if (e->wmode == CPS_PE_FP32MODE_LOW)
                v = low_part(v);
            else if (e->wmode == CPS_PE_FP32MODE_HIGH)
                v = high_part(v);
            w[k * cols + m] = v;
            wd[k * cols + m] = v;
        }
    }
    if (!odd) {
        mm_exact(wd, s->mm_x, s->mm_acc, rows, cols, n);
        return;
    }
    // A part that is zero contributes nothing, even against an infinity.
    bool split = e->wmode == CPS_PE_FP32MODE_LOW;
    for (unsigned m = 0; m < cols; m++) {
        for (uint32_t c = 0; c < n; c++) {
            float acc = 0;
            for (unsigned k = 0; k < rows; k++) {
                float a = w[k * cols + m], x = s->mm_x[(size_t)k * n + c];
                if (!(split && a == 0))
                    acc = (float)((double)acc + (double)a * (double)x);
            }
            s->mm_acc[(size_t)m * n + c] = acc;
        }
    }
}

/* ---- transposes: bits move, nothing is computed ---- */

/* For each column of x [rows][n]: the row of its single 1.0, all others being 0. */
static bool
selector(const float *x, unsigned rows, unsigned n, size_t stride, uint8_t *sel)
{
    for (unsigned c = 0; c < n; c++) {
        int at = -1;
        for (unsigned k = 0; k < rows; k++) {
            float v = x[k * stride + c];
            if (v == 1.0f && at < 0)
                at = (int)k;
            else if (v != 0)
                return false;
        }
        if (at < 0)
            return false;
        sel[c] = (uint8_t)at;
    }
    return true;
}

static bool
transpose(cps_sim *s, engine *e, insn *i, uint32_t n)
{
    const opnd *x = &i->op[0], *o = &i->op[1];
    unsigned r0 = i->group & 0xFF, c0 = i->group >> 8, cols = i->fn, rows = i->rows;
    uint8_t sel[MM_COLS];
    uint32_t *out = s->mm_bits;
    const float *w = e->w[0] + (size_t)r0 * LANES + c0;
    cps_dtype from;
    if (selector(s->mm_x, rows, n, n, sel)) { // data stationary, identity moving
        from = (cps_dtype)e->wdtype;
        for (unsigned m = 0; m < cols; m++) {
            for (uint32_t c = 0; c < n; c++)
                out[(size_t)m * n + c] = e->wbits[(size_t)(r0 + sel[c]) * LANES + c0 + m];
        }
    } else if (selector(w, rows, cols, LANES, sel)) { // identity stationary, data moving
        from = (cps_dtype)x->dtype;
        for (unsigned m = 0; m < cols; m++) {
            load_raw(s, x, sel[m], s->raw);
            for (uint32_t c = 0; c < n; c++) {
                uint32_t v = 0;
                memcpy(&v, s->raw + (size_t)c * x->es, x->es);
                out[(size_t)m * n + c] = v;
            }
        }
    } else {
        return run_fault(s, i, CPS_E8305,
                         "transpose mode needs an identity (each column one 1, "
                         "else 0) as one operand");
    }
    unsigned fs = cps_dtype_bytes(from);
    bool raw = o->es == fs || (fs == 1 && o->es == 2); // fp8: 16-bit elements, upper byte zero
    for (unsigned m = 0; m < cols; m++) {
        uint8_t *bytes = (uint8_t *)s->row[3];
        float *vals = s->row[4];
        for (uint32_t c = 0; c < n; c++) {
            uint32_t v = out[(size_t)m * n + c];
            if (raw)
                memcpy(bytes + (size_t)c * o->es, &v, o->es);
            else
                vals[c] = cps_to_f32(from, &v);
        }
        if (raw)
            store_raw(s, o, m, bytes);
        else
            store_f32(s, o, m, vals);
    }
    if (i->cmd & CPS_PSUM_ACCUMULATE_START)
        open_region(s, o, F(CPS_F_S3D3_MM_psum_zero_region));
    int32_t *off = (int32_t *)s->row[7];
    for (unsigned m = 0; m < cols; m++) {
        offsets(s, o, m, off);
        for (uint32_t c = 0; c < n; c++)
            memset(fresh_row(s, o, m) + (o->byte + off[c]) / 2, 0, o->es / 2);
    }
    mark_opnd(s, o);
    return true;
}

bool
exec_matmul(cps_sim *s, engine *e, insn *i)
{
    const opnd *x = &i->op[0];
    unsigned r0 = i->group & 0xFF, c0 = i->group >> 8, cols = i->fn, rows = i->rows;
    uint32_t n = i->op[1].count, per = x->count;
    for (unsigned k = 0; k < rows; k++)
        load_f32(s, x, k, s->mm_x + (size_t)k * per);
    s->rep.pe_macs += (uint64_t)rows * cols * per;
    if (i->rev)
        return transpose(s, e, i, n);
    bool four = x->dtype == CPS_DT_FP32 || x->dtype == CPS_DT_TF32;
    if (four && i->op0 == CPS_PE_FP32MODE_LOW_HIGH) {
        matmul_fp32(s, e, i, n);
        pe_accumulate(s, e, i, s->mm_acc, n, F(CPS_F_S3D3_MM_psum_zero_region));
        return true;
    }
    // Weights row by row, packed [k][m]; a double row follows the first plane.
    float *w = s->row[1];
    unsigned planes = i->flag ? 2 : 1;
    for (unsigned q = 0; q < planes; q++) {
        for (unsigned k = 0; k < rows; k++)
            memcpy(w + ((size_t)q * rows + k) * cols, e->w[q] + (size_t)(r0 + k) * LANES + c0,
                   cols * sizeof *w);
    }
    if (four) {
        for (size_t k = 0; k < (size_t)rows * cols; k++)
            w[k] = cps_round_f32(CPS_DT_TF32, w[k]);
        for (size_t k = 0; k < (size_t)rows * n; k++)
            s->mm_x[k] = cps_round_f32(CPS_DT_TF32, s->mm_x[k]);
    }
    if (i->flag) { // X rows hold both halves: [k][2][n] to [2][k][n]
        float *x2 = s->mm_x + (size_t)rows * per;
        for (unsigned k = 0; k < rows; k++) {
            memcpy(x2 + (size_t)k * n, s->mm_x + (size_t)k * per, n * sizeof *x2);
            memcpy(x2 + (size_t)(rows + k) * n, s->mm_x + (size_t)k * per + n, n * sizeof *x2);
        }
        mm_plain(w, x2, s->mm_acc, 2 * rows, cols, n, s->mm_pack);
    } else {
        mm_plain(w, s->mm_x, s->mm_acc, rows, cols, n, s->mm_pack);
    }
    pe_accumulate(s, e, i, s->mm_acc, n, F(CPS_F_S3D3_MM_psum_zero_region));
    return true;
}
