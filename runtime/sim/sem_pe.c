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

enum { BANK = 2048 }; /* bytes of a partition: the smallest zero region */

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

/* Elements of bf16 or fp32 that lie side by side: codes and values of all rows at once. */
static bool
wide_ldweights(cps_sim *s, const opnd *o, unsigned rows, float *w, uint8_t *codes)
{
    pieces p;
    if (!o->flat || !pieces_of(s, &p, NULL, o, NULL))
        return false;
    wide_side values = {.at = (uint8_t *)w, .pitch = LANES * sizeof *w};
    wide_side raw = {.at = codes, .pitch = WCODE_PITCH, .bf16 = o->dtype == CPS_DT_BF16};
    pieces_at(&p, 0);
    wide_cast(s->wide, &values, &p.side[1], rows, o->count);
    wide_cast(s->wide, &raw, &p.side[1], rows, o->count);
    return true;
}

bool
exec_ldweights(cps_sim *s, engine *e, insn *i)
{
    const opnd *o = &i->op[0];
    unsigned r0 = i->group & 0xFF, c0 = i->group >> 8, cols = i->fn;
    float *row = s->row[0], *w = e->w[0] + (size_t)r0 * LANES + c0;
    uint8_t *codes = e->wcodes + (size_t)r0 * WCODE_PITCH + c0 * sizeof *w;
    mm_forget(&e->strips);
    e->wmode = i->cmd;
    e->wdtype = o->dtype;
    if (!i->flag && wide_ldweights(s, o, i->rows, w, codes))
        return true;
    for (unsigned k = 0; k < i->rows; k++, w += LANES, codes += WCODE_PITCH) {
        load_f32(s, o, k, row);
        memcpy(w, row, cols * sizeof *row);
        if (i->flag)
            memcpy(e->w[1] + (w - e->w[0]), row + cols, cols * sizeof *row);
        load_raw(s, o, k, s->raw);
        if (o->es <= 4)
            memcpy(codes, s->raw, (size_t)cols * o->es);
    }
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

/* Flags of `n` bytes of row m from `byte` on: a bit for two bytes. What a flag says: the next
 * accumulation overwrites. */
static void
set_fresh(cps_sim *s, const opnd *o, unsigned m, int64_t byte, int64_t n, bool on)
{
    uint8_t *f = s->psum_fresh + (size_t)(o->part + m) * PSUM_FRESH;
    int64_t k = byte / 2, end = k + n / 2;
    for (; k < end && (k % 8 || end - k < 8); k++)
        f[k / 8] = (uint8_t)((f[k / 8] & ~(1u << k % 8)) | (unsigned)on << k % 8);
    memset(f + k / 8, on ? 0xFF : 0, (size_t)(end - k) / 8);
    for (k += (end - k) / 8 * 8; k < end; k++)
        f[k / 8] = (uint8_t)((f[k / 8] & ~(1u << k % 8)) | (unsigned)on << k % 8);
}

static bool
any_fresh(const cps_sim *s, const opnd *o, unsigned m, int64_t byte, int64_t n)
{
    const uint8_t *f = s->psum_fresh + (size_t)(o->part + m) * PSUM_FRESH;
    int64_t k = byte / 2, end = k + n / 2;
    uint64_t any = 0, some;
    for (; k < end && (k % 8 || end - k < 8); k++)
        any |= f[k / 8] >> k % 8 & 1;
    for (; k + 64 <= end; k += 64) {
        memcpy(&some, f + k / 8, 8);
        any |= some;
    }
    for (; k + 8 <= end; k += 8)
        any |= f[k / 8];
    for (; k < end; k++)
        any |= f[k / 8] >> k % 8 & 1;
    return any != 0;
}

static bool
is_plain(const opnd *o)
{
    return o->dtype == CPS_DT_FP32 && o->flat && o->byte % 4 == 0;
}

static void
open_region(cps_sim *s, const opnd *o, unsigned region)
{
    int64_t size = 2048ll << (region & 3);
    int64_t lo = (o->byte + o->lo) / size * size;
    int64_t hi = CPS_MIN(cps_round_up(o->byte + o->hi, size), (int64_t)PSUM_BYTES);
    for (unsigned m = 0; m < o->rows; m++)
        set_fresh(s, o, m, lo, hi - lo, true);
    for (int64_t b = lo / BANK; b < hi / BANK; b++)
        s->psum_open |= 1u << b;
}

/* Whether a flag of the operand's bytes may be set. */
static bool
may_be_fresh(const cps_sim *s, const opnd *o)
{
    for (int64_t b = (o->byte + o->lo) / BANK; b <= (o->byte + o->hi - 1) / BANK; b++)
        if (s->psum_open >> b & 1)
            return true;
    return false;
}

/* A start whose every fresh element is overwritten at once, where no flag is set: nothing to note. */
static bool
closes_at_once(const cps_sim *s, const opnd *o, unsigned region)
{
    int64_t size = 2048ll << (region & 3);
    return is_plain(o) && o->byte % size == 0 && o->count * 4ll % size == 0 && !may_be_fresh(s, o);
}

/* Reads of accumulation: what is neither fresh nor written is the finding. */
static void
check_partial(cps_sim *s, const insn *i, const opnd *o, unsigned m, const int32_t *off)
{
    const uint8_t *init = s->psum_init + (size_t)(o->part + m) * PSUM_PITCH + o->byte;
    for (uint32_t k = 0; k < o->count; k++) {
        if (any_fresh(s, o, m, o->byte + off[k], 2) || init[off[k]])
            continue;
        rect r = {.space = SP_PSUM, .run = o->es};
        r.base = (int64_t)(o->part + m) * CPS_PSUM_STRIDE + o->byte + off[k];
        rect_close(&r);
        check_read(s, i, &r);
        return;
    }
}

/* Whether every element of a plain destination is overwritten, or every one added to: then the product
 * can go straight there. What is added to is checked. */
enum { PE_MIXED, PE_OVER, PE_ADD };

static int
uniform(cps_sim *s, const insn *i, bool start, bool always)
{
    const opnd *o = &i->op[1];
    if (!is_plain(o))
        return PE_MIXED;
    if (start)
        return PE_OVER;
    bool look = !always && may_be_fresh(s, o);
    for (unsigned m = 0; m < o->rows && look; m++)
        if (any_fresh(s, o, m, o->byte, 4 * (int64_t)o->count))
            return PE_MIXED;
    rect r = opnd_rect(o);
    check_read(s, i, &r);
    return PE_ADD;
}

/* Before anything is written: a start makes its region fresh. False when no flag remains to be cleared
 * after the whole destination has been written. */
static bool
begin_sum(cps_sim *s, const insn *i, unsigned region)
{
    const opnd *o = &i->op[1];
    if (!(i->cmd & CPS_PSUM_ACCUMULATE_START) || closes_at_once(s, o, region))
        return false;
    open_region(s, o, region);
    return true;
}

static void
not_fresh(cps_sim *s, const opnd *o)
{
    for (unsigned m = 0; m < o->rows; m++)
        set_fresh(s, o, m, o->byte, 4 * (int64_t)o->count, false);
}

void
pe_accumulate(cps_sim *s, engine *e, const insn *i, const float *acc, uint32_t n,
              unsigned region)
{
    (void)e;
    const opnd *o = &i->op[1];
    bool start = i->cmd & CPS_PSUM_ACCUMULATE_START;
    bool always = s->k->gen >= CPS_V4 && i->cmd & CPS_PSUM_ACCUMULATE_ACCUMULATE;
    bool flags = begin_sum(s, i, region);
    int how = uniform(s, i, start, always);
    if (how != PE_MIXED) {
        for (unsigned m = 0; m < o->rows; m++, acc += n) {
            float *d = (float *)opnd_row(s, o, m);
            for (uint32_t k = 0; k < n; k++)
                d[k] = how == PE_ADD ? d[k] + acc[k] : acc[k];
        }
        if (flags)
            not_fresh(s, o);
        mark_opnd(s, o);
        return;
    }
    int32_t *off = (int32_t *)s->row[7];
    float *old = s->row[0];
    for (unsigned m = 0; m < o->rows; m++, acc += n) {
        if (m == 0 || o->group)
            offsets(s, o, m, off);
        if (!start)
            check_partial(s, i, o, m, off);
        load_f32(s, o, m, old);
        for (uint32_t k = 0; k < n; k++) {
            bool over = start || (!always && any_fresh(s, o, m, o->byte + off[k], 2));
            old[k] = over ? acc[k] : old[k] + acc[k];
        }
        for (uint32_t k = 0; k < n; k++)
            set_fresh(s, o, m, o->byte + off[k], o->es, false);
        store_f32(s, o, m, old);
    }
    mark_opnd(s, o);
}

/* Packed weights of the part of the array that an instruction works with, which the next product of the
 * same kind with the same part finds ready. */
static mm_strips *
strips_of(engine *e, const insn *i, unsigned kind)
{
    uint32_t part = i->group | (uint32_t)i->rows << 16 | (uint32_t)i->fn << 24;
    if (e->strips_part != part || e->strips_kind != kind)
        mm_forget(&e->strips);
    e->strips_part = part;
    e->strips_kind = (uint8_t)kind;
    return &e->strips;
}

static bool
takes_all(const uint8_t *row, unsigned n, unsigned rows)
{
    bool taken[LANES] = {false};
    for (unsigned m = 0; m < n; m++)
        taken[row[m]] = true;
    return memchr(taken, false, rows) == NULL;
}

/* Whether the weights only pick rows of x, codes of bf16, as an identity does that adds x to a sum: then a
 * product is a row plus zeros. */
static bool
picks_rows(cps_sim *s, const mm_job *j)
{
    mm_strips *t = j->strips;
    if (!j->bf16)
        return false;
    if (!t->looked) {
        wide_side w = {.at = (uint8_t *)(uintptr_t)j->w, .pitch = j->wpitch * sizeof *j->w};
        unsigned m = 0;
        while (m < j->cols && (j->w[m] == 0 || j->w[m] == 1))
            m++; // the first row of other weights says so at once
        t->picks = m == j->cols && s->wide->selector(&w, j->rows, j->cols, t->row);
        t->all = t->picks && takes_all(t->row, j->cols, j->rows);
        t->looked = true;
    }
    return t->picks;
}

/* 0 + x for each row that is picked: the sum begins with 0, so that -0 becomes 0. Where x is not finite, 0
 * times it is no zero: false, before anything is added, and after the fact where all is overwritten once more
 * and x lies `apart`. */
static bool
pick_rows(cps_sim *s, const mm_job *j, bool apart)
{
    wide_side x = {.at = (uint8_t *)(uintptr_t)j->x, .pitch = j->xpitch, .bf16 = true};
    bool fine = true, late = apart && !j->add && j->strips->all;
    for (unsigned k = 0; k < j->rows && fine && !late; k++)
        fine = s->wide->finite_codes((const void *)(x.at + k * x.pitch), j->n);
    return fine && s->wide->pick(&x, j->strips->row, j->out, j->opitch, j->cols, j->n, j->add);
}

/* The product of a job straight into the destination where that can be, else by way of scratch. */
static void
multiply(cps_sim *s, engine *e, const insn *i, mm_job *j, unsigned region)
{
    const opnd *o = &i->op[1];
    bool start = i->cmd & CPS_PSUM_ACCUMULATE_START;
    bool always = s->k->gen >= CPS_V4 && i->cmd & CPS_PSUM_ACCUMULATE_ACCUMULATE;
    j->room = s->mm_pack;
    j->n = o->count;
    j->cols = i->fn;
    bool flags = begin_sum(s, i, region);
    int how = uniform(s, i, start, always);
    if (how == PE_MIXED) {
        j->out = s->mm_acc;
        j->opitch = j->n;
        mm_run(j);
        pe_accumulate(s, e, i, s->mm_acc, j->n, region);
        return;
    }
    j->out = (float *)opnd_row(s, o, 0);
    j->opitch = PSUM_PITCH / sizeof *j->out;
    j->add = how == PE_ADD;
    if (!picks_rows(s, j) || !pick_rows(s, j, !i->op[0].psum))
        mm_run(j);
    if (flags)
        not_fresh(s, o);
    mark_opnd(s, o);
}

/* ---- fp32 ---- */

/* The moving operand in scratch as [rows][n], or where it lies. */
static const float *
moving(cps_sim *s, const opnd *x, unsigned rows, size_t *pitch)
{
    if (x->flat && !x->group && x->dtype == CPS_DT_FP32 && x->byte % 4 == 0) {
        *pitch = x->psum ? PSUM_PITCH : s->sbuf_pitch;
        return (const float *)opnd_row(s, x, 0);
    }
    *pitch = x->count * sizeof(float);
    for (unsigned k = 0; k < rows; k++)
        load_f32(s, x, k, s->mm_x + (size_t)k * x->count);
    return s->mm_x;
}

static void
matmul_fp32(cps_sim *s, engine *e, insn *i, uint32_t n, unsigned region)
{
    unsigned r0 = i->group & 0xFF, c0 = i->group >> 8, cols = i->fn, rows = i->rows;
    bool low = e->wmode == CPS_PE_FP32MODE_LOW, all = true;
    mm_part part = low ? MM_LOW : e->wmode == CPS_PE_FP32MODE_HIGH ? MM_HIGH : MM_WHOLE;
    const float *w = e->w[0] + (size_t)r0 * LANES + c0;
    size_t pitch;
    const float *x = moving(s, &i->op[0], rows, &pitch);
    for (unsigned k = 0; k < rows && low && all; k++)
        all = s->wide->finite((const float *)((const uint8_t *)x + k * pitch), n);
    if (all) {
        mm_job j = {.w = w, .wpitch = LANES, .part = part, .x = x, .xpitch = pitch,
                    .rows = rows, .exact = true, .strips = strips_of(e, i, 1u + e->wmode)};
        multiply(s, e, i, &j, region);
        return;
    }
    // A part that is zero contributes nothing, even against an infinity.
    for (unsigned m = 0; m < cols; m++) {
        for (uint32_t c = 0; c < n; c++) {
            float acc = 0;
            for (unsigned k = 0; k < rows; k++) {
                float a = mm_part_of(part, w[k * LANES + m]), v = x[k * (pitch / sizeof v) + c];
                if (a != 0)
                    acc = fmaf(a, v, acc);
            }
            s->mm_acc[(size_t)m * n + c] = acc;
        }
    }
    pe_accumulate(s, e, i, s->mm_acc, n, region);
}

/* ---- transposes: bits move, nothing is computed ---- */

/* After a transpose: a start opens its region, and what was written is fresh no more. */
static void
transposed(cps_sim *s, const insn *i)
{
    const opnd *o = &i->op[1];
    if (i->cmd & CPS_PSUM_ACCUMULATE_START)
        open_region(s, o, F(CPS_F_S3D3_MM_psum_zero_region));
    int32_t *off = (int32_t *)s->row[7];
    for (unsigned m = 0; m < o->rows && may_be_fresh(s, o); m++) {
        if (o->flat && !o->group && o->byte % 2 == 0) {
            set_fresh(s, o, m, o->byte, (int64_t)o->count * o->es, false);
            continue;
        }
        offsets(s, o, m, off);
        for (uint32_t c = 0; c < o->count; c++)
            set_fresh(s, o, m, o->byte + off[c], o->es, false);
    }
    mark_opnd(s, o);
}

/* For each column of the moving operand the row of its only 1; false when a column is not so. */
static bool
moves_identity(cps_sim *s, const opnd *x, unsigned rows, uint8_t *sel)
{
    pieces p;
    wide_side in = {.at = (uint8_t *)s->mm_x, .pitch = x->count * sizeof(float)};
    if (x->flat && pieces_of(s, &p, NULL, x, NULL)) {
        pieces_at(&p, 0);
        in = p.side[1];
    } else {
        for (unsigned k = 0; k < rows; k++)
            load_f32(s, x, k, s->mm_x + (size_t)k * x->count);
    }
    return s->wide->selector(&in, rows, x->count, sel);
}

static bool
transpose(cps_sim *s, engine *e, insn *i, uint32_t n)
{
    const opnd *x = &i->op[0], *o = &i->op[1];
    unsigned r0 = i->group & 0xFF, c0 = i->group >> 8, cols = i->fn, rows = i->rows;
    uint8_t sel[MM_COLS];
    uint32_t *out = s->mm_bits;
    wide_side w = {.at = (uint8_t *)(e->w[0] + (size_t)r0 * LANES + c0),
                   .pitch = LANES * sizeof(float)};
    const uint8_t *codes = e->wcodes + (size_t)r0 * WCODE_PITCH + c0 * sizeof(float);
    cps_dtype from = (cps_dtype)e->wdtype;
    unsigned es = cps_dtype_bytes(from), kept = CPS_MIN(es, 4u);
    bool turned = moves_identity(s, x, rows, sel);
    if (turned && o->es == es && (es == 2 || es == 4)) { // as below, in codes of one width
        bool there = o->flat && !o->group && o->byte % es == 0;
        uint8_t *to = there ? opnd_row(s, o, 0) : (uint8_t *)out;
        size_t pitch = there ? PSUM_PITCH : (size_t)n * es;
        s->wide->turn(codes, WCODE_PITCH, sel, n, cols, es, to, pitch);
        for (unsigned m = 0; m < cols && !there; m++)
            store_raw(s, o, m, to + m * pitch);
        transposed(s, i);
        return true;
    }
    if (turned) { // data stationary, identity moving
        for (unsigned m = 0; m < cols; m++) {
            for (uint32_t c = 0; c < n; c++) {
                uint32_t v = 0;
                memcpy(&v, codes + (size_t)sel[c] * WCODE_PITCH + m * kept, kept);
                out[(size_t)m * n + c] = v;
            }
        }
    } else if (s->wide->selector(&w, rows, cols, sel)) { // identity stationary, data moving
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
    transposed(s, i);
    return true;
}

bool
exec_matmul(cps_sim *s, engine *e, insn *i)
{
    const opnd *x = &i->op[0];
    unsigned r0 = i->group & 0xFF, c0 = i->group >> 8, cols = i->fn, rows = i->rows;
    unsigned region = F(CPS_F_S3D3_MM_psum_zero_region);
    uint32_t n = i->op[1].count, per = x->count;
    s->rep.pe_macs += (uint64_t)rows * cols * per;
    bool four = x->dtype == CPS_DT_FP32 || x->dtype == CPS_DT_TF32;
    if (!i->rev && !i->flag && x->dtype == CPS_DT_BF16 && x->flat && !x->group && x->byte % 2 == 0) {
        mm_job j = {.w = e->w[0] + (size_t)r0 * LANES + c0,
                    .wpitch = LANES,
                    .x = opnd_row(s, x, 0),
                    .xpitch = x->psum ? PSUM_PITCH : s->sbuf_pitch,
                    .bf16 = true,
                    .rows = rows,
                    .strips = strips_of(e, i, 0)};
        multiply(s, e, i, &j, region);
        return true;
    }
    if (!i->rev && four && i->op0 == CPS_PE_FP32MODE_LOW_HIGH) {
        matmul_fp32(s, e, i, n, region);
        return true;
    }
    if (i->rev)
        return transpose(s, e, i, n);
    for (unsigned k = 0; k < rows; k++)
        load_f32(s, x, k, s->mm_x + (size_t)k * per);
    // Weights row by row, packed [k][m]; a double row follows the first plane.
    float *w = s->row[1], *in = s->mm_x;
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
            in[k] = cps_round_f32(CPS_DT_TF32, in[k]);
    }
    if (i->flag) { // X rows hold both halves: [k][2][n] to [2][k][n]
        float *x2 = in + (size_t)rows * per;
        for (unsigned k = 0; k < rows; k++) {
            memcpy(x2 + (size_t)k * n, in + (size_t)k * per, n * sizeof *x2);
            memcpy(x2 + (size_t)(rows + k) * n, in + (size_t)k * per + n, n * sizeof *x2);
        }
        in = x2;
    }
    mm_job j = {.w = w,
                .wpitch = cols,
                .x = in,
                .xpitch = n * sizeof *in,
                .rows = planes * rows};
    multiply(s, e, i, &j, region);
    return true;
}
