/* GpSimd: gathers through the pool buffer and by shared indices, sorting, positions of non-zero
 * elements, unpacking of small types, address arithmetic, and the extended operations. */
#include "runtime/sim/machine.h"

#define F(x) (unsigned)cps_isa_get(&i->b, x)

enum { CORE = 16 /* partitions of one of the eight cores */, MAX_INDICES = 4096 };

/* ---- checks of what an instruction touches itself ---- */

void
touch_lanes(cps_sim *s, engine *e, const insn *i, const opnd *o, unsigned lane, unsigned lanes)
{
    opnd part = *o;
    part.part = (uint8_t)(o->part + lane);
    part.rows = (uint8_t)lanes;
    rect r = opnd_rect(&part);
    if (!o->out)
        check_read(s, i, &r);
    if (s->opts.checks & CPS_CHECK_RACES)
        race_access(s, &r, o->out, i, e->vc, false);
    if (o->out)
        mark_opnd(s, &part);
}

/* ---- the pool buffer ---- */

bool
prep_pool_load(cps_sim *s, insn *i)
{
    uint32_t start = F(CPS_F_S4_PB_start_index), mask = F(CPS_F_S4_PB_mask);
    if (i->op[0].count > POOL_BUFFER)
        return load_fail(s, i, CPS_E8202, "%u elements, the buffer holds %u", i->op[0].count,
                         POOL_BUFFER);
    return (start & mask) == 0 ||
           load_fail(s, i, CPS_E8202, "start 0x%x has bits of mask 0x%x", start, mask);
}

bool
exec_pool_load(cps_sim *s, engine *e, insn *i)
{
    (void)e;
    const opnd *x = &i->op[0];
    s->pool = (pool_buffer){.data = s->pool.data,
                            .start = F(CPS_F_S4_PB_start_index),
                            .mask = F(CPS_F_S4_PB_mask),
                            .count = x->count,
                            .es = x->es,
                            .rows = i->rows};
    for (unsigned p = 0; p < i->rows; p++)
        load_raw(s, x, p, s->pool.data + (size_t)p * POOL_BUFFER * 8);
    return true;
}

enum { MISS_KEEPS, MISS_WRITES };

bool
prep_gather(cps_sim *s, insn *i)
{
    i->cmd = (uint8_t)F(CPS_F_S4D4_GT_index_miss_behavior);
    i->flag = F(CPS_F_S4D4_GT_free_pool_buffer) != 0;
    if (i->cmd > MISS_WRITES)
        return load_fail(s, i, CPS_E8202, "no model of index_miss_behavior %u", i->cmd);
    return i->op[0].count == i->op[1].count ||
           load_fail(s, i, CPS_E8202, "%u indices for %u elements", i->op[0].count,
                     i->op[1].count);
}

/* dst[k] = buffer[index[k] & mask] where the rest of the index is the buffer's start. */
bool
exec_gather(cps_sim *s, engine *e, insn *i)
{
    (void)e;
    const opnd *x = &i->op[0], *o = &i->op[1];
    const pool_buffer *b = &s->pool;
    uint32_t imm = F(CPS_F_S4D4_GT_immediate);
    if (b->count == 0 || b->rows < i->rows || b->es != o->es)
        return run_fault(s, i, CPS_E8305,
                         "the pool buffer holds %u elements of %u bytes in %u partitions",
                         b->count, b->es, b->rows);
    for (unsigned p = 0; p < i->rows; p++) {
        int64_t *at = (int64_t *)s->row[0];
        uint8_t *take = (uint8_t *)s->row[1], *out = (uint8_t *)s->row[2];
        const uint8_t *table = b->data + (size_t)p * POOL_BUFFER * 8;
        load_i64(s, x, p, at);
        load_raw(s, o, p, out);
        for (uint32_t k = 0; k < o->count; k++) {
            uint32_t n = (uint32_t)at[k];
            bool hit = (n & ~b->mask) == b->start;
            take[k] = hit || i->cmd == MISS_WRITES;
            if (hit && (n & b->mask) >= b->count) {
                s->rep.bounds++;
                return run_fault(s, i, CPS_E8302, "index %u of %u loaded elements", n & b->mask,
                                 b->count);
            }
            if (hit)
                memcpy(out + (size_t)k * o->es, table + (size_t)(n & b->mask) * o->es, o->es);
            else if (take[k])
                memcpy(out + (size_t)k * o->es, (uint32_t[2]){imm, 0}, o->es);
        }
        store_raw(s, o, p, out);
        if (s->opts.checks & CPS_CHECK_UNINIT)
            mark_row(s, o, p, take);
    }
    if (i->flag)
        s->pool.count = 0;
    return true;
}

/* ---- gather by indices that sixteen partitions share ---- */

static bool
plain_operand(cps_sim *s, insn *i, opnd *o, cps_field f, cps_dtype t, unsigned n)
{
    // 0x20 in the top byte only says that the pattern is an indirect one
    cps_ap ap = {.addr = F(f) & ~0x60000000u, .nd = 1, .step = {1}, .num = {(uint16_t)n}};
    *o = (opnd){.field = (uint16_t)f};
    return opnd_set(s, o, &ap, t, i->rows);
}

bool
prep_indirect_copy(cps_sim *s, insn *i)
{
    unsigned n = F(CPS_F_S4D4_IC_src_num_elem), per = F(CPS_F_S4D4_IC_src_num_elem_per_idx);
    unsigned size = F(CPS_F_S4D4_IC_src_buffer_size);
    cps_dtype t = cps_isa_dtype(F(CPS_F_S4D4_IC_in_dtype));
    i->op[2] = i->op[0];
    i->nop = 3;
    i->set = per ? n / per : 0; // indices of a core
    if (i->set < 1 || i->set > MAX_INDICES || n % per || size < 2 || i->rows % CORE ||
        i->op[2].count != n || t != (cps_dtype)i->op[2].dtype)
        return load_fail(s, i, CPS_E8202,
                         "%u elements, %u an index, from %u in %u partitions to %u", n, per,
                         size, i->rows, i->op[2].count);
    unsigned cols = (unsigned)cps_ceil_div(i->set, CORE);
    return (plain_operand(s, i, &i->op[0], CPS_F_S4D4_IC_src_idx, CPS_DT_U16, cols) &&
            plain_operand(s, i, &i->op[1], CPS_F_S4D4_IC_src, t, size)) ||
           load_fail(s, i, CPS_E8202, "the source or its indices cannot be addressed");
}

/* Core c: dst[p][j * per + t] = src[p][index[j] + t]; index j lies in partition j % 16 of the
 * core, column j / 16. Indices count elements (NKI local_gather). */
bool
exec_indirect_copy(cps_sim *s, engine *e, insn *i)
{
    const opnd *x = &i->op[0], *d = &i->op[1], *o = &i->op[2];
    unsigned n = i->set, per = o->count / n, last = n % CORE;
    for (unsigned c = 0; c < i->rows; c += CORE) {
        uint16_t at[MAX_INDICES + CORE];
        opnd full = *x, rest = *x;
        if (last) { // the last column of the indices is not full
            full.num[0] = x->count - 1;
            rest.byte += (x->count - 1) * x->es;
            rest.num[0] = 1;
            touch_lanes(s, e, i, &rest, c, last);
        }
        if (full.num[0])
            touch_lanes(s, e, i, &full, c, CORE);
        touch_lanes(s, e, i, d, c, CORE);
        for (unsigned l = 0; l < CORE; l++) {
            uint16_t *row = (uint16_t *)s->row[0];
            load_raw(s, x, c + l, row);
            for (unsigned k = 0; k < x->count; k++)
                at[k * CORE + l] = row[k];
        }
        for (unsigned l = 0; l < CORE; l++) {
            uint8_t *in = (uint8_t *)s->row[0], *out = (uint8_t *)s->row[1];
            load_raw(s, d, c + l, in);
            for (unsigned j = 0; j < n; j++) {
                if (at[j] + per > d->count) {
                    s->rep.bounds++;
                    return run_fault(s, i, CPS_E8302, "index %u of %u elements", at[j],
                                     d->count);
                }
                memcpy(out + (size_t)j * per * o->es, in + (size_t)at[j] * o->es,
                       (size_t)per * o->es);
            }
            store_raw(s, o, c + l, out);
        }
        touch_lanes(s, e, i, o, c, CORE);
    }
    return true;
}

/* ---- order ---- */

typedef struct keyed {
    double v;
    uint32_t at;
    uint64_t bits;
} keyed;

static bool
goes_before(const keyed *a, const keyed *b, bool down)
{
    bool an = a->v != a->v, bn = b->v != b->v;
    if (an || bn)
        return an == bn ? a->at < b->at : bn; // NaN last
    if (a->v != b->v)
        return down ? a->v > b->v : a->v < b->v;
    return a->at < b->at;
}

static void
merge_sort(keyed *v, keyed *room, size_t n, bool down)
{
    for (size_t w = 1; w < n; w *= 2) {
        for (size_t lo = 0; lo < n; lo += 2 * w) {
            size_t a = lo, m = CPS_MIN(lo + w, n), b = m, end = CPS_MIN(lo + 2 * w, n);
            for (size_t k = lo; k < end; k++) {
                bool left = b >= end || (a < m && !goes_before(&v[b], &v[a], down));
                room[k] = left ? v[a++] : v[b++];
            }
        }
        memcpy(v, room, n * sizeof *v);
    }
}

bool
prep_sort(cps_sim *s, insn *i)
{
    const opnd *x = &i->op[0], *o = &i->op[1];
    i->flag = F(CPS_F_S1D2_SORT_comparison) == CPS_ALU_IS_GT;
    unsigned limit = x->es == 2 ? 4096 : 2048;
    return ((x->es == 2 || x->es == 4) && x->dtype == o->dtype && o->count == 2 * x->count &&
            x->count * i->rows <= limit) ||
           load_fail(s, i, CPS_E8202, "%u elements of %u bytes to %u; at most %u in all",
                     x->count, x->es, o->count, limit);
}

/* Values with their positions, pair by pair; equal ones stay in order. */
bool
exec_sort(cps_sim *s, engine *e, insn *i)
{
    (void)e;
    const opnd *x = &i->op[0], *o = &i->op[1];
    uint32_t offset[LANES], n = x->count;
    keyed *v = (keyed *)s->mm_acc, *room = v + n;
    scalar_bits(s, &i->sc[0], i->rows, offset);
    for (unsigned p = 0; p < i->rows; p++) {
        uint8_t *raw = (uint8_t *)s->row[0], *out = (uint8_t *)s->row[1];
        load_raw(s, x, p, raw);
        for (uint32_t k = 0; k < n; k++) {
            v[k] =
                (keyed){.v = cps_to_f64((cps_dtype)x->dtype, raw + (size_t)k * x->es), .at = k};
            memcpy(&v[k].bits, raw + (size_t)k * x->es, x->es);
        }
        merge_sort(v, room, n, i->flag);
        for (uint32_t k = 0; k < n; k++, out += 2 * o->es) {
            uint32_t at = v[k].at + offset[p];
            memcpy(out, &v[k].bits, o->es);
            memcpy(out + o->es, &at, o->es);
        }
        store_raw(s, o, p, s->row[1]);
    }
    return true;
}

bool
prep_nonzero(cps_sim *s, insn *i)
{
    const opnd *x = &i->op[0], *o = &i->op[1];
    bool fits = x->dtype == CPS_DT_FP32 || x->dtype == CPS_DT_I32;
    return (fits && o->dtype == CPS_DT_I32 && o->count == x->count + 1) ||
           load_fail(s, i, CPS_E8202, "%u elements to %u", x->count, o->count);
}

/* The first partition of each core only (NKI): positions, padding, and last the count. */
bool
exec_nonzero(cps_sim *s, engine *e, insn *i)
{
    const opnd *x = &i->op[0], *o = &i->op[1];
    uint32_t offset[LANES], pad[LANES];
    scalar_bits(s, &i->sc[0], i->rows, offset);
    scalar_bits(s, &i->sc[1], i->rows, pad);
    for (unsigned p = 0; p < i->rows; p += CORE) {
        float *v = s->row[0];
        uint32_t *out = (uint32_t *)s->row[1], n = 0;
        touch_lanes(s, e, i, x, p, 1);
        load_raw(s, x, p, v);
        for (uint32_t k = 0; k < x->count; k++) {
            uint32_t bits = cps_f32_bits(v[k]);
            if (x->dtype == CPS_DT_FP32 ? v[k] != 0 : bits != 0)
                out[n++] = k + offset[p];
        }
        out[x->count] = n;
        while (n < x->count)
            out[n++] = pad[p];
        store_raw(s, o, p, out);
        touch_lanes(s, e, i, o, p, 1);
    }
    return true;
}

/* Position of the first maximum of each window. */
bool
prep_pool_select(cps_sim *s, insn *i)
{
    const opnd *x = &i->op[0];
    unsigned dim = F(CPS_F_S4D4_PL_pool_dim);
    i->set = 1;
    for (unsigned d = 0; d + 1 < dim && d < x->raw_nd; d++)
        i->set *= x->raw_num[d];
    return (dim >= CPS_TENSOR_SUBDIM_X && dim <= CPS_TENSOR_SUBDIM_XYZW &&
            i->op[1].count == x->count / i->set) ||
           load_fail(s, i, CPS_E8202, "no model of this window");
}

bool
exec_pool_select(cps_sim *s, engine *e, insn *i)
{
    (void)e;
    const opnd *x = &i->op[0], *o = &i->op[1];
    for (unsigned p = 0; p < i->rows; p++) {
        float *v = s->row[0], *y = s->row[1];
        load_f32(s, x, p, v);
        for (uint32_t k = 0; k < o->count; k++, v += i->set) {
            uint32_t best = 0;
            for (uint32_t q = 1; q < i->set; q++)
                best = v[q] > v[best] || (v[q] != v[q] && v[best] == v[best]) ? q : best;
            y[k] = (float)best;
        }
        store_f32(s, o, p, y);
    }
    return true;
}

/* ---- packed small types ---- */

// Normal float 4: the sixteen levels that its authors published.
static const float nf4[16] = {-1.0f,        -0.69619280f, -0.52507305f, -0.39491749f,
                              -0.28444138f, -0.18477343f, -0.09105004f, 0.0f,
                              0.07958030f,  0.16093020f,  0.24611230f,  0.33791524f,
                              0.44070983f,  0.56261700f,  0.72295684f,  1.0f};

static float
unpacked(unsigned fmt, unsigned code)
{
    uint8_t b = (uint8_t)code;
    float m;
    switch (fmt) {
    case CPS_DEQUANT_FMT_FP4_E5M2:
        return cps_to_f32(CPS_DT_FP4E2M1, &b);
    case CPS_DEQUANT_FMT_INT4_E5M2:
        return (float)(code < 8 ? (int)code : (int)code - 16);
    case CPS_DEQUANT_FMT_NF4_E4M3:
        return nf4[code];
    default: // FP6 E2M3, bias 1
        m = (code & 0x18) ? ldexpf(1 + (float)(code & 7) / 8, (int)(code >> 3 & 3) - 1)
                          : (float)(code & 7) / 8;
        return code & 0x20 ? -m : m;
    }
}

bool
prep_dequantize(cps_sim *s, insn *i)
{
    i->fn = (uint8_t)F(CPS_F_S3D3_TENS_DEQUANT_dequant_fmt);
    bool six = i->fn == CPS_DEQUANT_FMT_FP6_E4M3;
    uint32_t in = i->op[0].count, out = i->op[1].count;
    if (F(CPS_F_S3D3_TENS_DEQUANT_group_size) != 0)
        return load_fail(s, i, CPS_E8202, "where a group's scale stands is not published");
    return (i->fn >= CPS_DEQUANT_FMT_FP4_E5M2 && i->fn <= CPS_DEQUANT_FMT_FP6_E4M3 &&
            (six ? in * 4 == out * 3 && in % 3 == 0 : in * 2 == out)) ||
           load_fail(s, i, CPS_E8202, "%u words of format %u to %u", in, i->fn, out);
}

/* Codes lie one after another from the low bits of the first word up. */
bool
exec_dequantize(cps_sim *s, engine *e, insn *i)
{
    (void)e;
    const opnd *x = &i->op[0], *o = &i->op[1];
    unsigned bits = i->fn == CPS_DEQUANT_FMT_FP6_E4M3 ? 6 : 4;
    cps_dtype t = i->fn <= CPS_DEQUANT_FMT_INT4_E5M2 ? CPS_DT_FP8E5M2 : CPS_DT_FP8E4M3;
    for (unsigned p = 0; p < i->rows; p++) {
        uint8_t *in = (uint8_t *)s->row[0], *out = (uint8_t *)s->row[1];
        load_raw(s, x, p, in);
        in[x->count * 4] = 0; // the window of the last code reaches one byte on
        for (uint32_t k = 0; k < o->count * 4; k++) {
            uint32_t at = k * bits, two = (uint32_t)(in[at / 8] | in[at / 8 + 1] << 8);
            cps_from_f32(t, out + k, unpacked(i->fn, two >> at % 8 & ((1u << bits) - 1)));
        }
        store_raw(s, o, p, out);
    }
    return true;
}

/* ---- address arithmetic ---- */

bool
prep_addr(cps_sim *s, insn *i)
{
    unsigned src[2] = {F(CPS_F_S2D2_ADDR_imm0_src), F(CPS_F_S2D2_ADDR_imm1_src)};
    unsigned pair = F(CPS_F_S2D2_ADDR_imm0_imm1_dtype);
    i->op0 = (uint8_t)F(CPS_F_S2D2_ADDR_op0);
    i->op1 = (uint8_t)F(CPS_F_S2D2_ADDR_op1);
    bool range = i->op0 == CPS_ALU_SUBTRACT && i->op1 == CPS_ALU_IS_LT;
    bool sum =
        (i->op0 == CPS_ALU_MULT && (i->op1 == CPS_ALU_ADD || i->op1 == CPS_ALU_BYPASS)) ||
        (i->op0 == CPS_ALU_ADD && i->op1 == CPS_ALU_BYPASS);
    bool ints = cps_dtype_is_int((cps_dtype)i->op[0].dtype) &&
                cps_dtype_is_int((cps_dtype)i->op[1].dtype);
    if (i->op[0].count != i->op[1].count || !(range || sum) || !ints ||
        F(CPS_F_S2D2_ADDR_reverse_operands))
        return load_fail(s, i, CPS_E8202, "operators 0x%02x, 0x%02x are no form of it", i->op0,
                         i->op1);
    for (unsigned k = 0; k < 2; k++) {
        cps_field f = k ? CPS_F_S2D2_ADDR_imm1 : CPS_F_S2D2_ADDR_imm0;
        cps_dtype t = cps_isa_dtype(pair >> 4 * k & 15);
        scalar *c = &i->sc[i->nsc++];
        t = t ? t : CPS_DT_U64;
        c->at.dtype = (uint8_t)t;
        if (!cps_dtype_is_int(t))
            return load_fail(s, i, CPS_E8202, "addresses are integers");
        if (src[k] == CPS_IMM_SRC_INSTRUCTION_IMMEDIATE)
            continue;
        c->mode = src[k] == CPS_IMM_SRC_POINTER_IMMEDIATE ? SC_PTR : SC_REG;
        if (!scalar_point(s, i, c, F(f), (cps_dtype)c->at.dtype))
            return load_fail(s, i, CPS_E8202, "'%s' cannot be addressed", cps_fields[f].name);
        c->at.field = (uint16_t)f;
        if (c->mode == SC_REG)
            c->at.reg = F(f) & 0x3F;
    }
    return true;
}

static uint64_t
addend(cps_sim *s, const insn *i, unsigned k, unsigned p)
{
    const scalar *c = &i->sc[k];
    uint64_t v = cps_isa_get(&i->b, k ? CPS_F_S2D2_ADDR_imm1 : CPS_F_S2D2_ADDR_imm0);
    if (c->mode != SC_IMM)
        load_raw(s, &c->at, p, &v);
    return (uint64_t)cps_to_i64((cps_dtype)c->at.dtype, &v);
}

/* x * a + b, or x - a < b without sign, in the width of the wider side. */
bool
exec_addr(cps_sim *s, engine *e, insn *i)
{
    (void)e;
    const opnd *x = &i->op[0], *o = &i->op[1];
    for (unsigned p = 0; p < i->rows; p++) {
        int64_t *v = (int64_t *)s->row[0];
        uint64_t a = addend(s, i, 0, p), b = addend(s, i, 1, p);
        load_i64(s, x, p, v);
        for (uint32_t k = 0; k < x->count; k++) {
            uint64_t t = (uint64_t)v[k];
            if (i->op1 == CPS_ALU_IS_LT) {
                uint64_t mask = x->es == 8 ? UINT64_MAX : UINT32_MAX;
                v[k] = ((t - a) & mask) < (b & mask);
                continue;
            }
            t = i->op0 == CPS_ALU_MULT ? t * a : t + a;
            v[k] = (int64_t)(i->op1 == CPS_ALU_ADD ? t + b : t);
        }
        store_i64(s, o, p, v);
    }
    return true;
}

/* ---- extended operations ---- */

bool
prep_extended(cps_sim *s, insn *i)
{
    unsigned op = F(CPS_F_EXT_ext_opcode);
    i->op0 = (uint8_t)F(CPS_F_EXT_op);
    float x = 0, y;
    if (op == CPS_EXT_OPCODE_NOP) {
        i->nop = 0;
        return true;
    }
    if (op != CPS_EXT_OPCODE_TENSOR_TENSOR_ARITH)
        return load_fail(s, i, CPS_E8202,
                         "the layout of extended operation %u is not published", op);
    return (i->op[0].count == i->op[1].count && i->op[0].count == i->op[2].count &&
            alu_f32(i->op0, &x, 0, &x, 0, &y, 1)) ||
           load_fail(s, i, CPS_E8202, "no model of operator 0x%02x on this shape", i->op0);
}

bool
exec_extended(cps_sim *s, engine *e, insn *i)
{
    (void)e;
    for (unsigned p = 0; i->nop && p < i->rows; p++) {
        float *x = s->row[0], *y = s->row[1];
        load_f32(s, &i->op[0], p, x);
        load_f32(s, &i->op[1], p, y);
        alu_f32(i->op0, x, 1, y, 1, x, i->op[0].count);
        store_f32(s, &i->op[2], p, x);
    }
    return true;
}
