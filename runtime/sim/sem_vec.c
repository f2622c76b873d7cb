/* Element-wise instructions of the vector engine and GpSimd: two tensors, tensor and scalars,
 * predicated copies, selections. Arithmetic converts to fp32 on read, rounds after each
 * operator and converts on write; bitwise operators move raw bits; 32-bit integer addition,
 * subtraction and multiplication on GpSimd and the integer operators are true integer
 * arithmetic. */
#include "runtime/sim/machine.h"

#define F(x) (unsigned)cps_isa_get(&i->b, x)

static bool
same_count(cps_sim *s, const insn *i)
{
    for (unsigned k = 1; k < i->nop; k++) {
        if (i->op[k].count != i->op[0].count)
            return load_fail(s, i, CPS_E8202, "operand '%s' has %u elements, '%s' has %u",
                             cps_fields[i->op[k].field].name, i->op[k].count,
                             cps_fields[i->op[0].field].name, i->op[0].count);
    }
    return true;
}

static bool
f32_op(unsigned op)
{
    float x = 0, y;
    return alu_f32(op, &x, 0, &x, 0, &y, 1);
}

/* How an instruction computes: `flag` of a prepared one. */
enum { BY_F32, BY_BITS, BY_INT };

static bool
int_type(const opnd *o)
{
    return cps_dtype_is_int((cps_dtype)o->dtype);
}

/* ---- two tensors ---- */

bool
prep_tt(cps_sim *s, insn *i)
{
    i->op0 = (uint8_t)F(CPS_F_S3S3D3_TT_op);
    if (strcmp(i->sem->name, "tensor_tensor_bf16") == 0) // the opcode is the operator
        i->op0 = i->id == CPS_INSN_TENSOR_TENSOR_ADD_BF16    ? CPS_ALU_ADD
                 : i->id == CPS_INSN_TENSOR_TENSOR_MULT_BF16 ? CPS_ALU_MULT
                                                             : CPS_ALU_SUBTRACT;
    if (!same_count(s, i))
        return false;
    bool ints = int_type(&i->op[0]) && int_type(&i->op[1]) && int_type(&i->op[2]);
    bool wide = ints && i->op[0].es == 4 && i->op[1].es == 4 && i->op[2].es == 4;
    bool simple = i->op0 == CPS_ALU_ADD || i->op0 == CPS_ALU_SUBTRACT || i->op0 == CPS_ALU_MULT;
    if (alu_is_bits(i->op0)) {
        i->flag = BY_BITS;
        if (i->op[0].es > 4 || i->op[0].es != i->op[1].es || i->op[0].es != i->op[2].es)
            return load_fail(s, i, CPS_E8202, "bitwise operands differ in width");
    } else if (alu_is_int(i->op0) || (i->engine == CPS_POOL && wide && simple)) {
        i->flag = BY_INT;
        if (!ints)
            return load_fail(s, i, CPS_E8202, "an integer operator on a float type");
    } else if (f32_op(i->op0)) {
        i->flag = BY_F32;
    } else {
        return load_fail(s, i, CPS_E8202, "no model of operator 0x%02x", i->op0);
    }
    return true;
}

/* Contiguous elements of 1, 2 or 4 bytes to zero-extended words and back. */
static void
widen(const uint8_t *in, unsigned es, uint32_t *out, uint32_t n)
{
    for (uint32_t k = 0; k < n; k++) {
        out[k] = 0;
        memcpy(&out[k], in + (size_t)k * es, es);
    }
}

static void
narrow(const uint32_t *in, unsigned es, uint8_t *out, uint32_t n)
{
    for (uint32_t k = 0; k < n; k++)
        memcpy(out + (size_t)k * es, &in[k], es);
}

static void
load_words(cps_sim *s, const opnd *o, unsigned p, uint32_t *out)
{
    load_raw(s, o, p, s->raw);
    widen(s->raw, o->es, out, o->count);
}

static void
store_words(cps_sim *s, const opnd *o, unsigned p, const uint32_t *in)
{
    narrow(in, o->es, s->raw, o->count);
    store_raw(s, o, p, s->raw);
}

bool
exec_tt(cps_sim *s, engine *e, insn *i)
{
    (void)e;
    const opnd *a = &i->op[0], *b = &i->op[1], *o = &i->op[2];
    uint32_t n = o->count;
    if (i->flag == BY_F32 && tile_run(s, i))
        return true;
    for (unsigned p = 0; p < i->rows; p++) {
        if (i->flag == BY_F32) {
            float *x = s->row[0], *y = s->row[1];
            load_f32(s, a, p, x);
            load_f32(s, b, p, y);
            alu_f32(i->op0, x, 1, y, 1, x, n);
            store_f32(s, o, p, x);
        } else if (i->flag == BY_BITS) {
            uint32_t *x = (uint32_t *)s->row[0], *y = (uint32_t *)s->row[1];
            load_words(s, a, p, x);
            load_words(s, b, p, y);
            for (uint32_t k = 0; k < n; k++)
                x[k] = alu_bits(i->op0, x[k], y[k], o->es * 8u);
            store_words(s, o, p, x);
        } else {
            int64_t *x = (int64_t *)s->row[0], *y = (int64_t *)s->row[1];
            load_i64(s, a, p, x);
            load_i64(s, b, p, y);
            for (uint32_t k = 0; k < n; k++)
                x[k] = alu_int(i->op0, x[k], y[k]);
            store_i64(s, o, p, x);
        }
    }
    return true;
}

/* Predicate (src0) integer, data (src1). Untouched elements keep their bits. */
bool
exec_copy_predicated(cps_sim *s, engine *e, insn *i)
{
    (void)e;
    const opnd *pr = &i->op[0], *d = &i->op[1], *o = &i->op[2];
    uint32_t n = o->count;
    bool same = d->dtype == o->dtype;
    for (unsigned p = 0; p < i->rows; p++) {
        int64_t *mask = (int64_t *)s->row[0];
        uint8_t *take = (uint8_t *)s->row[5];
        load_i64(s, pr, p, mask);
        for (uint32_t k = 0; k < n; k++)
            take[k] = mask[k] != 0;
        uint8_t *in = (uint8_t *)s->row[1], *out = (uint8_t *)s->row[2];
        if (same) {
            load_raw(s, d, p, in);
        } else {
            load_f32(s, d, p, s->row[3]);
            narrow_f32(s, (cps_dtype)o->dtype, o->part + p, s->row[3], in, n);
        }
        load_raw(s, o, p, out);
        for (uint32_t k = 0; k < n; k++) {
            if (take[k])
                memcpy(out + (size_t)k * o->es, in + (size_t)k * o->es, o->es);
        }
        store_raw(s, o, p, out);
        if (s->opts.checks & CPS_CHECK_UNINIT)
            mark_row(s, o, p, take);
    }
    return true;
}

/* ---- tensor and scalars ---- */

bool
prep_ts(cps_sim *s, insn *i)
{
    i->op0 = (uint8_t)F(CPS_F_S3D3_TS_op0);
    i->op1 = (uint8_t)F(CPS_F_S3D3_TS_op1);
    i->rev = (uint8_t)F(CPS_F_S3D3_TS_reverse_operands);
    i->cmd = (uint8_t)F(CPS_F_S3D3_TS_accumulator_cmd);
    if (!same_count(s, i))
        return false;
    unsigned id = i->id;
    bool bits = id == CPS_INSN_TENSOR_SCALAR_BITVEC || id == CPS_INSN_TENSOR_SCALAR_PTR_BITVEC;
    bool old =
        id == CPS_INSN_TENSOR_SCALAR_PTR_ARITH || id == CPS_INSN_TENSOR_SCALAR_PTR_BITVEC;
    i->xpose = id == CPS_INSN_TRANSPOSE_TENSOR_SCALAR_ARITH;
    // The older forms leave the source bytes 0; what a bypass would take is no operand.
    if (old && ((i->op0 && !scalar_point(s, i, &i->sc[0], i->sc[0].bits, CPS_DT_FP32)) ||
                (i->op1 && !scalar_point(s, i, &i->sc[1], i->sc[1].bits, CPS_DT_FP32))))
        return load_fail(s, i, CPS_E8202, "a scalar cannot be addressed");
    i->flag = bits ? BY_BITS : BY_F32;
    bool ok = true;
    if (bits) {
        ok = (alu_is_bits(i->op0) || i->op0 == CPS_ALU_BYPASS) &&
             (alu_is_bits(i->op1) || i->op1 == CPS_ALU_BYPASS) && i->op[0].es <= 4 &&
             i->op[0].es == i->op[1].es;
    } else {
        ok = f32_op(i->op0) && f32_op(i->op1);
    }
    for (unsigned k = 0; k < i->nsc && bits; k++) { // raw pointers are of the data's type
        i->sc[k].at.dtype = i->op[0].dtype;
        i->sc[k].at.es = i->op[0].es;
        i->sc[k].at.hi = i->op[0].es;
    }
    if (i->xpose && (i->rows % 32 || i->op[0].count % 32 || i->op[0].es > 4))
        return load_fail(s, i, CPS_E8202, "blocks of 32 x 32 do not fit this shape");
    return ok ||
           load_fail(s, i, CPS_E8202, "no model of operators 0x%02x, 0x%02x on these types",
                     i->op0, i->op1);
}

/* v = op1(op0(v, a), b) with the operands swapped as `rev` says. */
static void
two_ops(const insn *i, float *v, const float *a, const float *b, int sb, uint32_t n)
{
    if (i->op0 != CPS_ALU_BYPASS) {
        if (i->rev & 1)
            alu_f32(i->op0, a, 0, v, 1, v, n);
        else
            alu_f32(i->op0, v, 1, a, 0, v, n);
    }
    if (i->op1 != CPS_ALU_BYPASS) {
        if (i->rev & 2)
            alu_f32(i->op1, b, sb, v, 1, v, n);
        else
            alu_f32(i->op1, v, 1, b, sb, v, n);
    }
}

bool
exec_ts(cps_sim *s, engine *e, insn *i)
{
    (void)e;
    const opnd *x = &i->op[0], *o = &i->op[1];
    uint32_t n = x->count;
    if (i->flag == BY_BITS) {
        uint32_t a[LANES], b[LANES];
        scalar_bits(s, &i->sc[0], i->rows, a);
        scalar_bits(s, &i->sc[1], i->rows, b);
        for (unsigned p = 0; p < i->rows; p++) {
            uint32_t *v = (uint32_t *)s->row[0];
            unsigned w = o->es * 8u;
            load_words(s, x, p, v);
            for (uint32_t k = 0; k < n; k++) {
                uint32_t t = i->rev & 1 ? alu_bits(i->op0, a[p], v[k], w)
                                        : alu_bits(i->op0, v[k], a[p], w);
                if (i->op0 == CPS_ALU_BYPASS)
                    t = v[k];
                if (i->op1 != CPS_ALU_BYPASS)
                    t = i->rev & 2 ? alu_bits(i->op1, b[p], t, w)
                                   : alu_bits(i->op1, t, b[p], w);
                v[k] = t;
            }
            store_words(s, o, p, v);
        }
        return true;
    }
    if (!i->xpose && tile_run(s, i))
        return true;
    float a[LANES], b[LANES];
    scalar_f32(s, &i->sc[0], i->rows, a);
    scalar_f32(s, &i->sc[1], i->rows, b);
    bool moves = i->op0 == CPS_ALU_BYPASS && i->op1 == CPS_ALU_BYPASS;
    bool copy = moves && x->dtype == o->dtype;
    for (unsigned p = 0; p < i->rows; p++) {
        float *v = s->row[0];
        if (copy) {
            seen_raw(s, i, x, p, v);
            store_raw(s, o, p, v);
            continue;
        }
        seen_f32(s, i, x, p, v);
        two_ops(i, v, &a[p], &b[p], 0, n);
        store_f32(s, o, p, v);
    }
    return true;
}

/* Register of lane p before an accumulating instruction. */
static float
begin_acc(const engine *e, unsigned p, unsigned cmd, unsigned op, float seed)
{
    return cmd == CPS_ACCUM_CMD_ZERO_ACCUMULATE   ? alu_identity(op)
           : cmd == CPS_ACCUM_CMD_LOAD_ACCUMULATE ? seed
                                                  : e->acc[p];
}

/* A step with a scalar and a sum or a largest value, over all partitions: results stay in fp32, so that what
 * is folded is what was written. */
static bool
wide_cache_reduce(cps_sim *s, engine *e, const insn *i, const float *a, const float *seed)
{
    const opnd *o = &i->op[1];
    pieces p;
    wide_step step[LANES][2];
    bool add = i->op1 == CPS_ALU_ADD;
    if ((!add && i->op1 != CPS_ALU_MAX && i->op1 != CPS_ALU_MIN) || o->dtype != CPS_DT_FP32 ||
        i->op0 == CPS_ALU_BYPASS || !pieces_of(s, &p, o, &i->op[0], NULL) || p.n != 1)
        return false;
    for (unsigned r = 0; r < i->rows; r++) {
        if (!tile_step(i->op0, false, a[r], &step[r][0]) || a[r] != a[r])
            return false;
    }
    pieces_at(&p, 0);
    const wide_side *to = &p.side[0], *from = &p.side[1];
    s->wide->steps[0][wide_kind(to, from)](to, from, from, (const wide_step(*)[2])step, 1, i->rows,
                                           p.len);
    for (unsigned r = 0; r < i->rows; r++) {
        e->acc[r] = begin_acc(e, r, i->cmd, i->op1, seed[r]);
        const float *v = (const float *)(const void *)(p.side[0].at + r * p.side[0].pitch);
        if (!add)
            e->acc[r] = alu_fold(s->wide, i->op1, e->acc[r], v, p.len);
    }
    if (add)
        s->wide->sum(&p.side[0], e->acc, i->rows, p.len);
    return true;
}

bool
exec_cache_reduce(cps_sim *s, engine *e, insn *i)
{
    const opnd *x = &i->op[0], *o = &i->op[1];
    uint32_t n = x->count;
    float a[LANES], b[LANES];
    scalar_f32(s, &i->sc[0], i->rows, a);
    scalar_f32(s, &i->sc[1], i->rows, b);
    if (wide_cache_reduce(s, e, i, a, b))
        return true;
    for (unsigned p = 0; p < i->rows; p++) {
        float *v = s->row[0];
        load_f32(s, x, p, v);
        if (i->op0 != CPS_ALU_BYPASS)
            alu_f32(i->op0, v, 1, &a[p], 0, v, n);
        float r = begin_acc(e, p, i->cmd, i->op1, b[p]);
        e->acc[p] = alu_fold(s->wide, i->op1, r, v, n);
        store_f32(s, o, p, v);
    }
    return true;
}

bool
exec_cache_cumulative(cps_sim *s, engine *e, insn *i)
{
    const opnd *x = &i->op[0], *o = &i->op[1];
    uint32_t n = x->count;
    float a[LANES], b[LANES];
    scalar_f32(s, &i->sc[0], i->rows, a);
    scalar_f32(s, &i->sc[1], i->rows, b);
    for (unsigned p = 0; p < i->rows; p++) {
        float *v = s->row[0];
        load_f32(s, x, p, v);
        if (i->op0 != CPS_ALU_BYPASS)
            alu_f32(i->op0, v, 1, &a[p], 0, v, n);
        float r = begin_acc(e, p, i->cmd, i->op1, b[p]);
        for (uint32_t k = 0; k < n; k++)
            v[k] = r = alu_f32_1(i->op1, v[k], r);
        e->acc[p] = r;
        store_f32(s, o, p, v);
    }
    return true;
}

/* exp(src - imm0) with an optional running sum (NKI nc exponential, v4; roles inferred). */
bool
exec_exponential(cps_sim *s, engine *e, insn *i)
{
    const opnd *x = &i->op[0], *o = &i->op[1];
    uint32_t n = x->count;
    float a[LANES];
    scalar_f32(s, &i->sc[0], i->rows, a);
    for (unsigned p = 0; p < i->rows; p++) {
        float *v = s->row[0];
        load_f32(s, x, p, v);
        alu_f32(CPS_ALU_SUBTRACT, v, 1, &a[p], 0, v, n);
        act_row(s->wide, CPS_ACTFN_EXP, 0, v, v, n);
        if (i->cmd != CPS_ACCUM_CMD_IDLE) {
            float r = begin_acc(e, p, i->cmd, CPS_ALU_ADD, 0);
            for (uint32_t k = 0; k < n; k++)
                r += v[k];
            e->acc[p] = r;
        }
        store_f32(s, o, p, v);
    }
    return true;
}

/* ---- two tensors and a scalar ---- */

bool
prep_stt(cps_sim *s, insn *i)
{
    i->op0 = (uint8_t)F(CPS_F_S2S2D2_STT_op0);
    i->op1 = (uint8_t)F(CPS_F_S2S2D2_STT_op1);
    i->rev = (uint8_t)F(CPS_F_S2S2D2_STT_reverse_operands);
    i->cmd = (uint8_t)F(CPS_F_S2S2D2_STT_accumulator_cmd);
    if (!same_count(s, i))
        return false;
    bool bits = i->id == CPS_INSN_SCALAR_TENSOR_TENSOR_BITVEC;
    i->flag = bits ? BY_BITS : BY_F32;
    bool ok = bits
                  ? i->op[0].es <= 4 && i->op[0].es == i->op[1].es && i->op[0].es == i->op[2].es
                  : f32_op(i->op0) && f32_op(i->op1);
    return ok ||
           load_fail(s, i, CPS_E8202, "no model of operators 0x%02x, 0x%02x on these types",
                     i->op0, i->op1);
}

bool
exec_stt(cps_sim *s, engine *e, insn *i)
{
    const opnd *x = &i->op[0], *t = &i->op[1], *o = &i->op[2];
    uint32_t n = x->count;
    if (i->flag == BY_BITS) {
        uint32_t a[LANES];
        scalar_bits(s, &i->sc[0], i->rows, a);
        for (unsigned p = 0; p < i->rows; p++) {
            uint32_t *v = (uint32_t *)s->row[0], *y = (uint32_t *)s->row[1];
            unsigned w = o->es * 8u;
            load_words(s, x, p, v);
            load_words(s, t, p, y);
            for (uint32_t k = 0; k < n; k++) {
                uint32_t m = v[k];
                if (i->op0 != CPS_ALU_BYPASS)
                    m = i->rev & 1 ? alu_bits(i->op0, a[p], m, w)
                                   : alu_bits(i->op0, m, a[p], w);
                if (i->op1 != CPS_ALU_BYPASS)
                    m = i->rev & 2 ? alu_bits(i->op1, y[k], m, w)
                                   : alu_bits(i->op1, m, y[k], w);
                v[k] = m;
            }
            store_words(s, o, p, v);
        }
        return true;
    }
    float a[LANES];
    scalar_f32(s, &i->sc[0], i->rows, a);
    for (unsigned p = 0; p < i->rows; p++) {
        float *v = s->row[0], *y = s->row[1];
        load_f32(s, x, p, v);
        load_f32(s, t, p, y);
        two_ops(i, v, &a[p], y, 1, n);
        if (i->cmd != CPS_ACCUM_CMD_IDLE) {
            float r = begin_acc(e, p, i->cmd, CPS_ALU_ADD, 0);
            for (uint32_t k = 0; k < n; k++)
                r += v[k];
            e->acc[p] = r;
        }
        store_f32(s, o, p, v);
    }
    return true;
}

/* r = (src0[k] op0 r) op1 src1[k], starting at imm0. */
bool
exec_scan(cps_sim *s, engine *e, insn *i)
{
    (void)e;
    const opnd *x = &i->op[0], *t = &i->op[1], *o = &i->op[2];
    uint32_t n = x->count;
    float a[LANES];
    scalar_f32(s, &i->sc[0], i->rows, a);
    for (unsigned p = 0; p < i->rows; p++) {
        float *v = s->row[0], *y = s->row[1], r = a[p];
        load_f32(s, x, p, v);
        load_f32(s, t, p, y);
        for (uint32_t k = 0; k < n; k++) {
            float m = i->rev & 1 ? alu_f32_1(i->op0, r, v[k]) : alu_f32_1(i->op0, v[k], r);
            r = i->rev & 2 ? alu_f32_1(i->op1, y[k], m) : alu_f32_1(i->op1, m, y[k]);
            v[k] = r;
        }
        store_f32(s, o, p, v);
    }
    return true;
}

/* dst = predicate (src0) ? src1 : imm0, with an optional running maximum of what is written. */
bool
exec_select_reduce(cps_sim *s, engine *e, insn *i)
{
    const opnd *pr = &i->op[0], *d = &i->op[1], *o = &i->op[2];
    uint32_t n = o->count;
    float a[LANES];
    scalar_f32(s, &i->sc[0], i->rows, a);
    for (unsigned p = 0; p < i->rows; p++) {
        int64_t *mask = (int64_t *)s->row[0];
        float *v = s->row[1];
        load_i64(s, pr, p, mask);
        load_f32(s, d, p, v);
        for (uint32_t k = 0; k < n; k++)
            v[k] = mask[k] ? v[k] : a[p];
        if (i->cmd != CPS_ACCUM_CMD_IDLE) {
            float r = begin_acc(e, p, i->cmd, CPS_ALU_MAX, 0);
            for (uint32_t k = 0; k < n; k++)
                r = alu_f32_1(CPS_ALU_MAX, r, v[k]);
            e->acc[p] = r;
        }
        store_f32(s, o, p, v);
    }
    mark_opnd(s, o);
    return true;
}

/* ---- selections ---- */

bool
prep_select(cps_sim *s, insn *i)
{
    i->rev = F(CPS_F_S3D3_TS_SELECT_reversed_pred) != 0;
    return same_count(s, i);
}

bool
exec_select(cps_sim *s, engine *e, insn *i)
{
    (void)e;
    const opnd *x = &i->op[0], *o = &i->op[1];
    uint32_t other[LANES], pred[LANES];
    // scalars in the order of the rows: src1_imm, pred_imm
    scalar_bits(s, &i->sc[0], i->rows, other);
    scalar_bits(s, &i->sc[1], i->rows, pred);
    for (unsigned p = 0; p < i->rows; p++) {
        uint8_t *v = (uint8_t *)s->row[0];
        load_raw(s, x, p, v);
        if ((pred[p] != 0) == (i->rev != 0)) {
            for (uint32_t k = 0; k < x->count; k++)
                memcpy(v + (size_t)k * o->es, &other[p], o->es);
        }
        store_raw(s, o, p, v);
    }
    return true;
}

bool
prep_cps(cps_sim *s, insn *i)
{
    i->rev = F(CPS_F_S3D3_CP_PRED_SCALAR_reversed_pred) != 0;
    return same_count(s, i);
}

/* Writes the scalar where the predicate is false (reversed 0) or true (reversed 1), as the
 * headers document it. */
bool
exec_cps(cps_sim *s, engine *e, insn *i)
{
    (void)e;
    const opnd *pr = &i->op[0], *o = &i->op[1];
    uint32_t v[LANES];
    scalar_bits(s, &i->sc[0], i->rows, v);
    for (unsigned p = 0; p < i->rows; p++) {
        int64_t *mask = (int64_t *)s->row[0];
        uint8_t *take = (uint8_t *)s->row[5], *out = (uint8_t *)s->row[1];
        load_i64(s, pr, p, mask);
        load_raw(s, o, p, out);
        for (uint32_t k = 0; k < o->count; k++) {
            take[k] = (mask[k] != 0) == (i->rev != 0);
            if (take[k])
                memcpy(out + (size_t)k * o->es, &v[p], o->es);
        }
        store_raw(s, o, p, out);
        if (s->opts.checks & CPS_CHECK_UNINIT)
            mark_row(s, o, p, take);
    }
    return true;
}

bool
prep_rs(cps_sim *s, insn *i)
{
    i->op0 = (uint8_t)F(CPS_F_S2D2_RS_comp_op0);
    i->op1 = (uint8_t)F(CPS_F_S2D2_RS_comp_op1);
    i->cmd = (uint8_t)F(CPS_F_S2D2_RS_reduce_cmd);
    i->imm = cps_bits_f32(F(CPS_F_S2D2_RS_base));
    return same_count(s, i) &&
           ((f32_op(i->op0) && f32_op(i->op1)) ||
            load_fail(s, i, CPS_E8202, "no model of comparisons 0x%02x, 0x%02x", i->op0,
                      i->op1));
}

bool
exec_rs(cps_sim *s, engine *e, insn *i)
{
    const opnd *x = &i->op[0], *o = &i->op[1];
    uint32_t n = x->count;
    float lo[LANES], hi[LANES], fill = cps_bits_f32(F(CPS_F_S2D2_RS_fill));
    scalar_f32(s, &i->sc[0], i->rows, lo);
    scalar_f32(s, &i->sc[1], i->rows, hi);
    for (unsigned p = 0; p < i->rows; p++) {
        float *v = s->row[0];
        load_f32(s, x, p, v);
        for (uint32_t k = 0; k < n; k++) {
            float at = i->imm + (float)k;
            bool in = alu_f32_1(i->op0, at, lo[p]) != 0 && alu_f32_1(i->op1, at, hi[p]) != 0;
            v[k] = in ? v[k] : fill;
        }
        if (i->cmd == CPS_REDUCE_CMD_RESET_REDUCE || i->cmd == CPS_REDUCE_CMD_REDUCE) {
            float r = i->cmd == CPS_REDUCE_CMD_RESET_REDUCE ? -INFINITY : e->acc[p];
            for (uint32_t k = 0; k < n; k++)
                r = alu_f32_1(CPS_ALU_MAX, r, v[k]);
            e->acc[p] = r;
        }
        store_f32(s, o, p, v);
    }
    return true;
}
