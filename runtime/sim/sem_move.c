/* Instructions of one tensor in, one out: copies, casts, folds, running folds, pooling, fills,
 * index patterns, and what moves data between partitions. */
#include "runtime/sim/machine.h"

#define F(x) (unsigned)cps_isa_get(&i->b, x)

/* ---- the group of tensor-reduce formats ---- */

/* Elements folded into one by the innermost dimensions; 0 for a bad code. */
static uint32_t
folded(const opnd *o, unsigned dim)
{
    uint32_t n = 1;
    if (dim < CPS_TENSOR_SUBDIM_X || dim > CPS_TENSOR_SUBDIM_XYZW)
        return 0;
    for (unsigned d = 0; d < dim - 1 && d < o->raw_nd; d++)
        n *= o->raw_num[d];
    return n;
}

bool
prep_tr(cps_sim *s, insn *i)
{
    const opnd *x = &i->op[0], *o = &i->op[1];
    i->op0 = (uint8_t)F(CPS_F_S4D4_TR_op);
    i->rev = F(CPS_F_S4D4_TR_negated) != 0;
    i->flag = alu_is_bits(i->op0);
    const char *sem = i->sem->name;
    i->xpose = strcmp(sem, "transpose_reduce") == 0;
    bool fold = i->xpose || strncmp(sem, "tensor_reduce", 13) == 0;
    bool run = strcmp(sem, "cumulative") == 0;
    if (strcmp(sem, "tensor_reduce_bf16") == 0) // the opcode is the operator
        i->op0 = i->id == CPS_INSN_TENSOR_REDUCE_ADD_BF16 ? CPS_ALU_ADD : CPS_ALU_MAX;
    i->set = fold || run ? folded(x, F(CPS_F_S4D4_TR_op_dim)) : 1;
    if (i->set == 0 || o->count != (fold ? x->count / i->set : x->count))
        return load_fail(s, i, CPS_E8202, "%u elements in, %u out", x->count, o->count);
    float v = 0, y;
    if ((fold || run) &&
        !(i->flag ? x->es <= 4 && x->es == o->es : alu_f32(i->op0, &v, 0, &v, 0, &y, 1)))
        return load_fail(s, i, CPS_E8202, "no model of operator 0x%02x on these types", i->op0);
    if (i->xpose && (i->rows % 32 || x->count % 32 || x->es > 4))
        return load_fail(s, i, CPS_E8202, "blocks of 32 x 32 do not fit this shape");
    if (strcmp(sem, "copy") == 0 && x->es != o->es)
        return load_fail(s, i, CPS_E8202, "a copy between widths; CAST converts");
    return true;
}

static float
fold_row(const cps_sim *s, unsigned op, const float *v, uint32_t n)
{
    bool first = op == CPS_ALU_SUBTRACT || op == CPS_ALU_BYPASS;
    return first ? alu_fold(s->wide, op, v[0], v + 1, n - 1)
                 : alu_fold(s->wide, op, alu_identity(op), v, n);
}

/* Sums of whole rows go on in many partitions at once; the largest of a row needs no copy of it. */
static bool
wide_reduce(cps_sim *s, const insn *i)
{
    const opnd *x = &i->op[0], *o = &i->op[1];
    bool least = i->op0 == CPS_ALU_MIN, top = least || i->op0 == CPS_ALU_MAX;
    pieces p;
    float y[LANES] = {0};
    if (i->flag || i->xpose || o->count != 1 || !(top || i->op0 == CPS_ALU_ADD) ||
        !pieces_of(s, &p, NULL, x, NULL) || (top && p.n != 1))
        return false;
    for (unsigned j = 0; j < p.n; j++) {
        pieces_at(&p, j);
        if (!top) {
            s->wide->sum(&p.side[1], y, i->rows, p.len);
            continue;
        }
        for (unsigned r = 0; r < i->rows; r++, p.side[1].at += p.side[1].pitch) {
            if (s->wide->top(&p.side[1], least, &y[r], p.len))
                continue;
            load_f32(s, x, r, s->row[0]);
            y[r] = fold_row(s, i->op0, s->row[0], x->count);
        }
    }
    for (unsigned r = 0; r < i->rows; r++) {
        y[r] = i->rev ? -y[r] : y[r];
        store_f32(s, o, r, &y[r]);
    }
    return true;
}

static uint32_t
word(const uint8_t *p, unsigned es)
{
    uint32_t v = 0;
    memcpy(&v, p, es);
    return v;
}

bool
exec_reduce(cps_sim *s, engine *e, insn *i)
{
    (void)e;
    const opnd *x = &i->op[0], *o = &i->op[1];
    uint32_t f = i->set;
    if (wide_reduce(s, i))
        return true;
    for (unsigned p = 0; p < i->rows; p++) {
        if (i->flag) {
            uint8_t *v = (uint8_t *)s->row[0];
            seen_raw(s, i, x, p, v);
            for (uint32_t k = 0; k < o->count; k++) {
                uint32_t r = word(v + (size_t)k * f * x->es, x->es);
                for (uint32_t q = 1; q < f; q++)
                    r = alu_bits(i->op0, r, word(v + ((size_t)k * f + q) * x->es, x->es),
                                 x->es * 8u);
                memcpy((uint8_t *)s->row[1] + (size_t)k * o->es, &r, o->es);
            }
            store_raw(s, o, p, s->row[1]);
            continue;
        }
        float *v = s->row[0], *y = s->row[1];
        seen_f32(s, i, x, p, v);
        for (uint32_t k = 0; k < o->count; k++) {
            float r = fold_row(s, i->op0, v + (size_t)k * f, f);
            y[k] = i->rev ? -r : r;
        }
        store_f32(s, o, p, y);
    }
    return true;
}

bool
exec_cumulative(cps_sim *s, engine *e, insn *i)
{
    (void)e;
    const opnd *x = &i->op[0], *o = &i->op[1];
    uint32_t f = i->set;
    for (unsigned p = 0; p < i->rows; p++) {
        if (i->flag) {
            uint8_t *v = (uint8_t *)s->row[0];
            load_raw(s, x, p, v);
            for (uint32_t k = 1; k < x->count; k++) {
                uint8_t *at = v + (size_t)k * x->es;
                if (k % f == 0)
                    continue;
                uint32_t r =
                    alu_bits(i->op0, word(at - x->es, x->es), word(at, x->es), x->es * 8u);
                memcpy(at, &r, x->es);
            }
            store_raw(s, o, p, v);
            continue;
        }
        float *v = s->row[0];
        load_f32(s, x, p, v);
        for (uint32_t k = 1; k < x->count; k++) {
            if (k % f)
                v[k] = alu_f32_1(i->op0, v[k - 1], v[k]);
        }
        store_f32(s, o, p, v);
    }
    return true;
}

bool
exec_copy(cps_sim *s, engine *e, insn *i)
{
    (void)e;
    if (i->op[0].dtype == i->op[1].dtype && tile_run(s, i))
        return true;
    for (unsigned p = 0; p < i->rows; p++) {
        load_raw(s, &i->op[0], p, s->row[0]);
        store_raw(s, &i->op[1], p, s->row[0]);
    }
    return true;
}

bool
exec_cast(cps_sim *s, engine *e, insn *i)
{
    (void)e;
    if (i->op[0].dtype != i->op[1].dtype && tile_run(s, i))
        return true;
    for (unsigned p = 0; p < i->rows; p++) {
        load_f32(s, &i->op[0], p, s->row[0]);
        store_f32(s, &i->op[1], p, s->row[0]);
    }
    return true;
}

bool
exec_reciprocal(cps_sim *s, engine *e, insn *i)
{
    (void)e;
    const float one = 1.0f;
    for (unsigned p = 0; p < i->rows; p++) {
        float *v = s->row[0];
        load_f32(s, &i->op[0], p, v);
        alu_f32(CPS_ALU_DIVIDE, &one, 0, v, 1, v, i->op[0].count);
        store_f32(s, &i->op[1], p, v);
    }
    return true;
}

bool
prep_pool(cps_sim *s, insn *i)
{
    const opnd *x = &i->op[0], *o = &i->op[1];
    i->op0 = (uint8_t)F(CPS_F_S4D4_PL_pool_func);
    i->imm = cps_bits_f32(F(CPS_F_S4D4_PL_pool_scale));
    i->set = folded(x, F(CPS_F_S4D4_PL_pool_dim));
    bool ok = i->set && o->count == x->count / i->set &&
              (i->op0 == CPS_POOL_TYPE_MAX || i->op0 == CPS_POOL_TYPE_AVG);
    return ok || load_fail(s, i, CPS_E8202, "no model of this window");
}

bool
exec_pool(cps_sim *s, engine *e, insn *i)
{
    (void)e;
    const opnd *x = &i->op[0], *o = &i->op[1];
    unsigned op = i->op0 == CPS_POOL_TYPE_MAX ? CPS_ALU_MAX : CPS_ALU_ADD;
    for (unsigned p = 0; p < i->rows; p++) {
        float *v = s->row[0], *y = s->row[1];
        load_f32(s, x, p, v);
        for (uint32_t k = 0; k < o->count; k++)
            y[k] = fold_row(s, op, v + (size_t)k * i->set, i->set) * i->imm;
        store_f32(s, o, p, y);
    }
    return true;
}

/* ---- fills and patterns ---- */

bool
exec_memset(cps_sim *s, engine *e, insn *i)
{
    (void)e;
    const opnd *o = &i->op[0];
    uint64_t v = F(CPS_F_D4_MR_set_value);
    uint8_t *row = (uint8_t *)s->row[0];
    for (uint32_t k = 0; k < o->count; k++)
        memcpy(row + (size_t)k * o->es, &v, o->es);
    for (unsigned p = 0; p < i->rows; p++)
        store_raw(s, o, p, row);
    return true;
}

/* base + sum of index * step over the pattern, in int32, for partition 0. */
static void
affine(const cps_ap *a, int32_t *out, uint32_t n)
{
    uint32_t at[4] = {0};
    for (uint32_t k = 0; k < n; k++) {
        uint32_t v = a->addr;
        for (unsigned d = 0; d < 4; d++)
            v += at[d] * (uint32_t)(int32_t)a->step[d];
        out[k] = (int32_t)v;
        for (unsigned d = 0; d < 4 && ++at[d] >= a->num[d]; d++)
            at[d] = 0;
    }
}

static bool
pattern_fits(cps_sim *s, const insn *i, const opnd *o)
{
    uint64_t n = 1;
    for (unsigned d = 0; d < 4; d++)
        n *= i->pat.num[d];
    return n == o->count ||
           load_fail(s, i, CPS_E8202, "the pattern has %llu elements, '%s' %u",
                     (unsigned long long)n, cps_fields[o->field].name, o->count);
}

bool
prep_iota(cps_sim *s, insn *i)
{
    return pattern_fits(s, i, &i->op[0]);
}

bool
exec_iota(cps_sim *s, engine *e, insn *i)
{
    (void)e;
    const opnd *o = &i->op[0];
    int32_t *base = (int32_t *)s->row[0];
    uint32_t mult = F(CPS_F_D4_IOTA_channel_multiplier);
    affine(&i->pat, base, o->count);
    bool ints = cps_dtype_is_int((cps_dtype)o->dtype);
    for (unsigned p = 0; p < i->rows; p++) {
        int64_t *v = (int64_t *)s->row[1];
        float *f = s->row[2];
        for (uint32_t k = 0; k < o->count; k++) {
            v[k] = (int32_t)((uint32_t)base[k] + p * mult);
            f[k] = (float)v[k];
        }
        if (ints)
            store_i64(s, o, p, v);
        else
            store_f32(s, o, p, f);
    }
    return true;
}

bool
prep_affine(cps_sim *s, insn *i)
{
    i->op0 = (uint8_t)F(CPS_F_S2D2_TS_AS_fill_mode);
    if (i->op0 > CPS_AFFINE_SELECT_CMP_NE || i->op[0].count != i->op[1].count)
        return load_fail(s, i, CPS_E8202, "no model of this comparison or shape");
    return pattern_fits(s, i, &i->op[0]);
}

bool
exec_affine(cps_sim *s, engine *e, insn *i)
{
    const opnd *x = &i->op[0], *o = &i->op[1];
    int32_t *base = (int32_t *)s->row[0];
    uint32_t mult = F(CPS_F_S2D2_TS_AS_channel_multiplier);
    float fill = cps_bits_f32(e->reg[F(CPS_F_S2D2_TS_AS_fill_reg) % REGS]);
    uint64_t bits = 0;
    cps_from_f32((cps_dtype)o->dtype, &bits, fill);
    affine(&i->pat, base, o->count);
    for (unsigned p = 0; p < i->rows; p++) {
        uint8_t *v = (uint8_t *)s->row[1];
        if (x->dtype == o->dtype) {
            load_raw(s, x, p, v);
        } else {
            load_f32(s, x, p, s->row[2]);
            narrow_f32(s, (cps_dtype)o->dtype, o->part + p, s->row[2], v, o->count);
        }
        for (uint32_t k = 0; k < o->count; k++) {
            int32_t a = (int32_t)((uint32_t)base[k] + p * mult);
            bool keep = i->op0 == CPS_AFFINE_SELECT_CMP_GT   ? a > 0
                        : i->op0 == CPS_AFFINE_SELECT_CMP_GE ? a >= 0
                        : i->op0 == CPS_AFFINE_SELECT_CMP_EQ ? a == 0
                                                             : a != 0;
            if (!keep)
                memcpy(v + (size_t)k * o->es, &bits, o->es);
        }
        store_raw(s, o, p, v);
    }
    return true;
}

/* ---- between partitions ---- */

bool
prep_cross(cps_sim *s, insn *i)
{
    opnd *x = &i->op[0], *o = &i->op[1];
    i->op0 = (uint8_t)F(CPS_F_S4D4_CR_reduce_op);
    i->imm = cps_bits_f32(F(CPS_F_S4D4_CR_scale));
    i->flag = F(CPS_F_S4D4_CR_reduce_axis) == CPS_REDUCE_AXIS_ALL;
    bool bits = i->id == CPS_INSN_CROSS_LANE_REDUCE_BITVEC;
    bool fits = bits ? i->op0 >= CPS_CROSS_REDUCE_OP_OR && i->op0 <= CPS_CROSS_REDUCE_OP_XOR &&
                           x->es <= 4 && x->es == o->es
                     : i->op0 <= CPS_CROSS_REDUCE_OP_MAX;
    o->rows = 1;
    return (fits && o->count == (i->flag ? 1 : x->count)) ||
           load_fail(s, i, CPS_E8202, "no model of this reduction or shape");
}

bool
exec_cross(cps_sim *s, engine *e, insn *i)
{
    (void)e;
    const opnd *x = &i->op[0], *o = &i->op[1];
    uint32_t n = x->count;
    if (i->id == CPS_INSN_CROSS_LANE_REDUCE_BITVEC) {
        unsigned op = i->op0 == CPS_CROSS_REDUCE_OP_OR    ? CPS_ALU_BITWISE_OR
                      : i->op0 == CPS_CROSS_REDUCE_OP_AND ? CPS_ALU_BITWISE_AND
                                                          : CPS_ALU_BITWISE_XOR;
        uint8_t *acc = (uint8_t *)s->row[0], *v = (uint8_t *)s->row[1];
        load_raw(s, x, 0, acc);
        for (unsigned p = 1; p < i->rows; p++) {
            load_raw(s, x, p, v);
            for (size_t k = 0; k < n; k++) {
                uint32_t r = alu_bits(op, word(acc + k * x->es, x->es),
                                      word(v + k * x->es, x->es), x->es * 8u);
                memcpy(acc + k * x->es, &r, x->es);
            }
        }
        for (size_t k = 1; i->flag && k < n; k++) {
            uint32_t r =
                alu_bits(op, word(acc, x->es), word(acc + k * x->es, x->es), x->es * 8u);
            memcpy(acc, &r, x->es);
        }
        store_raw(s, o, 0, acc);
        return true;
    }
    bool max = i->op0 == CPS_CROSS_REDUCE_OP_MAX, avg = i->op0 == CPS_CROSS_REDUCE_OP_AVERAGE;
    unsigned op = max ? CPS_ALU_MAX : CPS_ALU_ADD;
    float *acc = s->row[0], *v = s->row[1];
    for (uint32_t k = 0; k < n; k++)
        acc[k] = alu_identity(op);
    for (unsigned p = 0; p < i->rows; p++) {
        load_f32(s, x, p, v);
        if (avg) // each element is scaled, then added
            alu_f32(CPS_ALU_MULT, v, 1, &i->imm, 0, v, n);
        alu_f32(op, acc, 1, v, 1, acc, n);
    }
    if (i->flag)
        acc[0] = fold_row(s, op, acc, n);
    store_f32(s, o, 0, acc);
    return true;
}

bool
exec_load_mask(cps_sim *s, engine *e, insn *i)
{
    (void)s;
    memcpy(e->mask, i->b.b + cps_fields[CPS_F_CTRL_IM_immediate].byte, 32);
    return true;
}

bool
prep_shuffle(cps_sim *s, insn *i)
{
    const opnd *x = &i->op[0], *o = &i->op[1];
    // Whole quadrants are active (NKI: ceil to 32).
    unsigned rows = (unsigned)cps_round_up(i->rows, 32);
    i->op[0].rows = i->op[1].rows = i->rows = (uint8_t)rows;
    return (x->count == o->count && x->es == o->es) ||
           load_fail(s, i, CPS_E8202, "the sides differ in shape or type");
}

/* One lane of an operand, for the checks. */
static rect
lane_rect(const opnd *o, unsigned lane)
{
    opnd one = *o;
    one.part = (uint8_t)(o->part + lane);
    one.rows = 1;
    return opnd_rect(&one);
}

/* Inside each group of 32: dst[l] = src[mask[l]]; 255 leaves a lane alone. Only lanes that some
 * mask byte names are read, which is how one row is handed to all. */
bool
exec_shuffle(cps_sim *s, engine *e, insn *i)
{
    const opnd *x = &i->op[0], *o = &i->op[1];
    size_t bytes = (size_t)x->count * x->es;
    uint8_t *rows = malloc(32 * bytes);
    if (!rows)
        cps_bug("no memory for a quadrant");
    bool races = s->opts.checks & CPS_CHECK_RACES;
    uint32_t read = 0;
    for (unsigned l = 0; l < 32; l++) {
        if (e->mask[l] != 255 && e->mask[l] >= 32) {
            free(rows);
            return run_fault(s, i, CPS_E8305, "lane %u is taken from lane %u of 32", l,
                             e->mask[l]);
        }
        read |= e->mask[l] == 255 ? 0 : 1u << e->mask[l];
    }
    for (unsigned q = 0; q < i->rows; q += 32) {
        for (unsigned l = 0; l < 32; l++) {
            if (!(read >> l & 1))
                continue;
            rect r = lane_rect(x, q + l);
            check_read(s, i, &r);
            if (races)
                race_access(s, &r, false, i, e->vc, false);
            load_raw(s, x, q + l, rows + l * bytes);
        }
        for (unsigned l = 0; l < 32; l++) {
            if (e->mask[l] == 255)
                continue;
            rect r = lane_rect(o, q + l);
            if (races)
                race_access(s, &r, true, i, e->vc, false);
            store_raw(s, o, q + l, rows + e->mask[l] * bytes);
            if (s->opts.checks & CPS_CHECK_UNINIT)
                mark_row(s, o, q + l, NULL);
        }
    }
    free(rows);
    return true;
}

bool
prep_transpose(cps_sim *s, insn *i)
{
    const opnd *x = &i->op[0], *o = &i->op[1];
    return (x->count % 32 == 0 && x->count == o->count && x->es == o->es && x->es <= 4 &&
            i->rows % 32 == 0) ||
           load_fail(s, i, CPS_E8202, "blocks of 32 x 32 do not fit this shape");
}

/* Each block of 32 partitions by 32 elements is transposed where it stands. */
bool
exec_transpose(cps_sim *s, engine *e, insn *i)
{
    (void)e;
    const opnd *x = &i->op[0], *o = &i->op[1];
    size_t es = x->es, bytes = (size_t)x->count * es;
    uint8_t *in = malloc(64 * bytes);
    if (!in)
        cps_bug("no memory for a quadrant");
    uint8_t *out = in + 32 * bytes;
    for (unsigned q = 0; q < i->rows; q += 32) {
        for (unsigned l = 0; l < 32; l++)
            load_raw(s, x, q + l, in + l * bytes);
        for (size_t c = 0; c < x->count; c += 32) {
            for (size_t a = 0; a < 32; a++) {
                for (size_t b = 0; b < 32; b++)
                    memcpy(out + a * bytes + (c + b) * es, in + b * bytes + (c + a) * es, es);
            }
        }
        for (unsigned l = 0; l < 32; l++)
            store_raw(s, o, q + l, out + l * bytes);
    }
    free(in);
    return true;
}
