/* MX types of v4: stationary and moving matrices with block scales, and their quantisation.
 *
 * An element is four packed values. A scale is 2^(byte - 127), 255 is NaN; 8 partitions by one
 * element share it: of every 32 partitions with data four hold scales, partition g for data
 * partitions 8 g to 8 g + 7, moved on by the offset that the pattern names (0, 4, 8, 12).
 * Values times scales are summed in fp32 (the vendor's golden model), value 0 of each element
 * first, each in the order of the partitions. */
#include "runtime/sim/pe.h"

#define F(x) (unsigned)cps_isa_get(&i->b, x)

enum { PACK = 4, BLOCK = 8 /* partitions of a scale */, QUADRANT = 32 };

/* One MX pattern: elements of `es` bytes from `byte` on, scales of one byte from `sbyte` on. */
typedef struct mx {
    opnd data, scale; /* scale.part: of the first quadrant, offset included */
    cps_dtype t;      /* of a packed value */
} mx;

static bool
mx_of(cps_sim *s, const insn *i, cps_field f, unsigned wire, unsigned n, mx *out)
{
    const uint8_t *p = i->b.b + cps_fields[f].byte;
    uint32_t data, scale;
    memcpy(&data, p, 4);
    memcpy(&scale, p + 4, 4);
    unsigned count = p[8] | (unsigned)p[9] << 8, off = p[11] % QUADRANT;
    int step = (int8_t)p[10];
    out->t = wire == 0x0E   ? CPS_DT_FP8E4M3FN
             : wire == 0x0F ? CPS_DT_FP8E5M2
             : wire == 0x10 ? CPS_DT_FP4E2M1
                            : CPS_DT_NONE;
    cps_dtype unit = out->t == CPS_DT_FP4E2M1 ? CPS_DT_U16 : CPS_DT_U32;
    cps_ap d = {.addr = data, .nd = 1, .step = {(int16_t)step}, .num = {(uint16_t)n}};
    cps_ap c = {.addr = scale, .nd = 1, .step = {(int16_t)step}, .num = {(uint16_t)n}};
    out->data = out->scale = (opnd){.field = (uint16_t)f, .out = cps_fields[f].out};
    if (out->t == CPS_DT_NONE || (step != 1 && step != -1) || (data | scale) >> 29 ||
        count != n * PACK || i->rows % QUADRANT || off % 4 || off > 12 ||
        !opnd_set(s, &out->data, &d, unit, i->rows) ||
        !opnd_set(s, &out->scale, &c, CPS_DT_U8, 1) || out->scale.psum)
        return load_fail(
            s, i, CPS_E8202,
            "no model of this MX operand: %u values of tag 0x%02x in %u partitions, "
            "step %d, scales from partition %u",
            count, wire, i->rows, step, off);
    if (off == 0) // the scale's own address may say the offset instead
        off = out->scale.part % QUADRANT;
    out->scale.part = (uint8_t)(out->data.part / QUADRANT * QUADRANT + off);
    return true;
}

/* All lanes that the scales may lie in, as an operand for whoever asks what is touched. */
static opnd
scale_lanes(const insn *i, const mx *m)
{
    opnd c = m->scale;
    c.part = (uint8_t)(c.part / QUADRANT * QUADRANT);
    c.rows = i->rows;
    return c;
}

/* The scales of data partition p. */
static opnd
scales_at(const mx *m, unsigned p)
{
    opnd c = m->scale;
    c.part = (uint8_t)(c.part + p / QUADRANT * QUADRANT + p % QUADRANT / BLOCK);
    return c;
}

static bool
mx_access(cps_sim *s, engine *e, const insn *i, const mx *m)
{
    if (!opnd_in_memory(s, &m->data)) {
        s->rep.bounds++;
        return run_fault(s, i, CPS_E8302, "'%s' lies outside SBUF",
                         cps_fields[m->data.field].name);
    }
    touch_lanes(s, e, i, &m->data, 0, i->rows);
    for (unsigned p = 0; p < i->rows; p += BLOCK) {
        opnd c = scales_at(m, p);
        if (!opnd_in_memory(s, &c)) {
            s->rep.bounds++;
            return run_fault(s, i, CPS_E8302, "the scales of '%s' lie outside SBUF",
                             cps_fields[m->data.field].name);
        }
        touch_lanes(s, e, i, &c, 0, 1);
    }
    return true;
}

/* Values of partition p, scaled: plane q of element k to out[q * plane + k]. */
static void
mx_load(cps_sim *s, const mx *m, unsigned p, float *out, size_t plane)
{
    uint8_t *bytes = s->raw, *exp = (uint8_t *)s->row[7];
    opnd c = scales_at(m, p);
    load_raw(s, &c, 0, exp);
    load_raw(s, &m->data, p, bytes);
    for (uint32_t k = 0; k < m->data.count; k++, bytes += m->data.es) {
        float scale = cps_to_f32(CPS_DT_FP8E8M0, exp + k);
        for (unsigned q = 0; q < PACK; q++) {
            uint8_t v = m->t == CPS_DT_FP4E2M1 ? bytes[q / 2] >> 4 * (q % 2) & 15 : bytes[q];
            out[q * plane + k] = cps_to_f32(m->t, &v) * scale;
        }
    }
}

/* ---- matrices ---- */

bool
prep_ldweights_mx(cps_sim *s, insn *i)
{
    unsigned cols = F(CPS_F_SMX1_LW_num_active_cols);
    mx m;
    i->fn = (uint8_t)cols;
    if (!mx_of(s, i, CPS_F_SMX1_LW_src, F(CPS_F_SMX1_LW_in_dtype), cols, &m))
        return false;
    i->op[0] = m.data;
    i->op[1] = scale_lanes(i, &m);
    i->nop = 2;
    return pe_groups(s, i, F(CPS_F_SMX1_LW_row_grp), F(CPS_F_SMX1_LW_col_grp), cols);
}

bool
exec_ldweights_mx(cps_sim *s, engine *e, insn *i)
{
    unsigned r0 = i->group & 0xFF, c0 = i->group >> 8, cols = i->fn;
    float *row = s->row[0];
    mx m;
    if (!mx_of(s, i, CPS_F_SMX1_LW_src, F(CPS_F_SMX1_LW_in_dtype), cols, &m) ||
        !mx_access(s, e, i, &m))
        return false;
    mm_forget(&e->strips);
    for (unsigned k = 0; k < i->rows; k++) {
        mx_load(s, &m, k, row, cols);
        for (unsigned q = 0; q < PACK; q++)
            memcpy(e->w[q] + (size_t)(r0 + k) * LANES + c0, row + q * cols, cols * sizeof *row);
    }
    return true;
}

bool
prep_matmul_mx(cps_sim *s, insn *i)
{
    unsigned cols = F(CPS_F_SMX1D3_MM_num_active_cols), n = i->op[0].count;
    mx m;
    i->op[1] = i->op[0];
    i->nop = 3;
    i->fn = (uint8_t)cols;
    i->cmd = (uint8_t)F(CPS_F_SMX1D3_MM_psum_accumulate_flags);
    i->op[1].rows = (uint8_t)cols;
    if (n > MM_COLS || (!i->op[1].psum && i->op[1].reg == 0xFF))
        return load_fail(s, i, CPS_E8202, "%u columns, or a destination outside PSUM", n);
    if (!mx_of(s, i, CPS_F_SMX1D3_MM_src, F(CPS_F_SMX1D3_MM_in_dtype), n, &m))
        return false;
    i->op[0] = m.data;
    i->op[2] = scale_lanes(i, &m);
    return pe_groups(s, i, F(CPS_F_SMX1D3_MM_row_grp), F(CPS_F_SMX1D3_MM_col_grp), cols);
}

bool
exec_matmul_mx(cps_sim *s, engine *e, insn *i)
{
    unsigned r0 = i->group & 0xFF, c0 = i->group >> 8, cols = i->fn, rows = i->rows;
    uint32_t n = i->op[1].count;
    float *w = s->row[1], *x = s->mm_x;
    mx m;
    if (!mx_of(s, i, CPS_F_SMX1D3_MM_src, F(CPS_F_SMX1D3_MM_in_dtype), n, &m) ||
        !mx_access(s, e, i, &m))
        return false;
    if (s->opts.checks & CPS_CHECK_RACES) {
        rect r = opnd_rect(&i->op[1]);
        race_access(s, &r, true, i, e->vc, false);
    }
    for (unsigned k = 0; k < rows; k++) {
        mx_load(s, &m, k, x + (size_t)k * n, (size_t)rows * n);
        for (unsigned q = 0; q < PACK; q++)
            memcpy(w + ((size_t)q * rows + k) * cols, e->w[q] + (size_t)(r0 + k) * LANES + c0,
                   cols * sizeof *w);
    }
    s->rep.pe_macs += (uint64_t)PACK * rows * cols * n;
    mm_run(&(mm_job){.w = w,
                     .wpitch = cols,
                     .x = x,
                     .xpitch = n * sizeof *x,
                     .rows = PACK * rows,
                     .cols = cols,
                     .n = n,
                     .out = s->mm_acc,
                     .opitch = n,
                     .room = s->mm_pack});
    pe_accumulate(s, e, i, s->mm_acc, n, F(CPS_F_SMX1D3_MM_psum_zero_region));
    return true;
}

/* ---- quantisation ---- */

bool
prep_quantize_mx(cps_sim *s, insn *i)
{
    const opnd *x = &i->op[0];
    mx m;
    bool fits = x->dtype == CPS_DT_BF16 || x->dtype == CPS_DT_FP16;
    if (!fits || x->count % PACK || i->rows % QUADRANT)
        return load_fail(s, i, CPS_E8202,
                         "%u elements of %s in %u partitions; 16-bit floats, "
                         "fours and 32 are taken",
                         x->count, cps_dtype_name((cps_dtype)x->dtype), i->rows);
    if (!mx_of(s, i, CPS_F_S3DMX1_QUANT_dst, F(CPS_F_S3DMX1_QUANT_out_dtype), x->count / PACK,
               &m))
        return false;
    if (m.t == CPS_DT_FP4E2M1)
        return load_fail(s, i, CPS_E8202, "there is no quantisation to four bits");
    i->op[1] = m.data;
    i->op[2] = scale_lanes(i, &m);
    i->nop = 3;
    return true;
}

/* 2^(floor(log2 of the largest) - (largest exponent of the type - 1)) as its byte: 0 for a
 * group of zeros, 255 where there is an infinity or a NaN. */
static uint8_t
group_scale(float largest, int top)
{
    int e;
    if (!(largest < INFINITY))
        return 255;
    if (largest == 0)
        return 0;
    frexpf(largest, &e);
    int b = e - 1 - (top - 1) + 127;
    return (uint8_t)(b < 0 ? 0 : b);
}

bool
exec_quantize_mx(cps_sim *s, engine *e, insn *i)
{
    const opnd *x = &i->op[0];
    uint32_t n = x->count / PACK;
    bool clip = i->b.b[1] & 1; // the length byte's low bit saturates
    mx m;
    if (!mx_of(s, i, CPS_F_S3DMX1_QUANT_dst, F(CPS_F_S3DMX1_QUANT_out_dtype), n, &m))
        return false;
    touch_lanes(s, e, i, x, 0, i->rows);
    float limit = m.t == CPS_DT_FP8E5M2 ? 57344.0f : 448.0f;
    int top = m.t == CPS_DT_FP8E5M2 ? 15 : 8;
    float *v = s->mm_x;
    uint8_t *exp = (uint8_t *)s->row[0], *codes = (uint8_t *)s->row[1];
    for (unsigned p = 0; p < i->rows; p += BLOCK) {
        for (unsigned l = 0; l < BLOCK; l++)
            load_f32(s, x, p + l, v + (size_t)l * x->count);
        for (uint32_t k = 0; k < n; k++) {
            float largest = 0;
            for (unsigned q = 0; q < BLOCK * PACK; q++) {
                float a = fabsf(v[(size_t)(q / PACK) * x->count + k * PACK + q % PACK]);
                largest = a > largest || a != a ? a : largest;
                if (a != a)
                    break;
            }
            exp[k] = group_scale(largest, top);
        }
        for (unsigned l = 0; l < BLOCK; l++) {
            for (uint32_t k = 0; k < x->count; k++) {
                float y =
                    v[(size_t)l * x->count + k] / cps_to_f32(CPS_DT_FP8E8M0, exp + k / PACK);
                y = clip && fabsf(y) > limit ? copysignf(limit, y) : y;
                cps_from_f32(m.t, codes + k, y);
            }
            store_raw(s, &m.data, p + l, codes);
        }
        opnd c = scales_at(&m, p);
        store_raw(s, &c, 0, exp);
    }
    return mx_access(s, e, i, &m);
}
