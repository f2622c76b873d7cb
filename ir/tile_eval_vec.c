/* Instructions of ACT, DVE and POOL that walk their operands in step, a lane at a time: a
 * lane's operands are read whole before its result is written. When an operand lies in the
 * buffer of the result but in other partitions, all results are kept aside until the last lane
 * was read, as if all lanes ran at once. */
#include "ir/tile_eval.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

typedef struct lanes {
    cps_teat out[2], in[3];
    unsigned n; // lanes
    int64_t elems;
    float sum[128]; // second result
} lanes;

static int
attr(const cps_te *e, cps_tattr_key k, int dflt)
{
    return cps_tinst_get(e->x, k, dflt);
}

/* ---- scalars ---- */

// Operand k as binary32 in lane p; absent: `dflt`.
static bool
scalar(cps_te *e, const lanes *l, int k, unsigned p, float dflt, float *v)
{
    const cps_toper *o = &e->x->in[k];
    int32_t r;
    *v = dflt;
    switch (o->kind) {
    case CPS_TO_NONE:
        return true;
    case CPS_TO_IMM:
        *v = o->is_int ? (float)o->ival : o->imm;
        return true;
    case CPS_TO_REG:
        if (!cps_te_int(e, o, &r))
            return false;
        *v = (float)r;
        return true;
    default:
        return cps_te_load(e, &l->in[k], p, v);
    }
}

// The same as a raw word, for bitwise operators.
static bool
scalar_bits(cps_te *e, const lanes *l, int k, unsigned p, uint32_t *v)
{
    const cps_toper *o = &e->x->in[k];
    int32_t r;
    uint8_t raw[8] = {0};
    *v = 0;
    if (o->kind == CPS_TO_VIEW) {
        if (!cps_te_load_raw(e, &l->in[k], p, raw))
            return false;
        memcpy(v, raw, sizeof *v);
    } else if (o->kind == CPS_TO_REG) {
        if (!cps_te_int(e, o, &r))
            return false;
        *v = (uint32_t)r;
    } else if (o->kind == CPS_TO_IMM) {
        *v = o->is_int ? (uint32_t)o->ival : (uint32_t)(int64_t)o->imm;
    }
    return true;
}

/* ---- operators ---- */

static bool
is_bits(int op, cps_gen g)
{
    cps_alu_class c = cps_alu_class_of((unsigned)op, g);
    return c == CPS_ALUC_BITVEC || c == CPS_ALUC_CRC;
}

static bool
bits_op(const cps_te *e)
{
    return is_bits(attr(e, CPS_TA_OP0, 0), CPS_V4) || is_bits(attr(e, CPS_TA_OP1, 0), CPS_V4);
}

static bool
apply(cps_te *e, int op, const float *a, int sa, const float *b, int sb, float *out, int64_t n)
{
    if (cps_alu_f32((unsigned)op, a, sa, b, sb, out, n))
        return true;
    const char *name = cps_alu_name((unsigned)op);
    return cps_te_fail(e, CPS_E8104, "operator '%s' has no arithmetic form here",
                       name ? name : "?");
}

// v = v op s, or s op v.
static bool
with_scalar(cps_te *e, int op, bool reverse, float *v, const float *s, int ss, int64_t n)
{
    if (op == CPS_ALU_BYPASS)
        return true;
    return reverse ? apply(e, op, s, ss, v, 1, v, n) : apply(e, op, v, 1, s, ss, v, n);
}

static void
widen(const uint8_t *in, unsigned es, uint32_t *out, int64_t n)
{
    memset(out, 0, (size_t)n * sizeof *out);
    for (int64_t i = 0; i < n; i++)
        memcpy(&out[i], in + i * es, CPS_MIN(es, 4u));
}

static bool
load_words(cps_te *e, const cps_teat *at, unsigned p, uint32_t *out)
{
    if (!cps_te_load_raw(e, at, p, e->raw))
        return false;
    widen(e->raw, at->es, out, at->n);
    return true;
}

static void
store_words(cps_te *e, const cps_teat *at, unsigned p, const uint32_t *in)
{
    memset(e->raw, 0, (size_t)at->n * at->es);
    for (int64_t i = 0; i < at->n; i++)
        memcpy(e->raw + i * at->es, &in[i], CPS_MIN(at->es, 4u));
    cps_te_store_raw(e, at, p, e->raw);
}

/* ---- accumulators ---- */

// acc of lane p starts anew, or goes on; then `op` over y, in order.
static bool
accumulate(cps_te *e, lanes *l, unsigned p, int unit, unsigned op, const float *y, int64_t n)
{
    int cmd = attr(e, CPS_TA_ACC, e->x->nout > 1 ? 3 : 0);
    float a = cps_alu_f32_identity(op);
    if (cmd == 0) { // VectorE may clobber what an idle instruction finds (isa-semantics 2.4)
        e->acc_set[unit][p] = e->acc_set[unit][p] && unit == 0;
        return e->x->nout < 2 ||
               cps_te_fail(e, CPS_E8104, "writes an accumulator that it does not use");
    }
    if (cmd == 2) {
        if (!e->acc_set[unit][p])
            return cps_te_fail(e, CPS_E8104,
                               "adds to the accumulator of lane %u, which holds "
                               "nothing",
                               p);
        a = e->acc[unit][p];
    }
    if (cmd >= 2 && op == CPS_ALU_ADD)
        for (int64_t i = 0; i < n; i++)
            a += y[i];
    else if (cmd >= 2)
        for (int64_t i = 0; i < n; i++)
            cps_alu_f32(op, &a, 1, &y[i], 1, &a, 1);
    e->acc[unit][p] = l->sum[p] = a;
    e->acc_set[unit][p] = true;
    return true;
}

/* ---- one lane of each instruction ---- */

static bool
activation(cps_te *e, lanes *l, unsigned p)
{
    const cps_teat *x = &l->in[0], *o = &l->out[0];
    int fn = attr(e, CPS_TA_FUNC, CPS_ACTFN_COPY);
    float scale, bias, *v = e->row[0], *y = e->row[1];
    if (!scalar(e, l, 1, p, 1, &scale) || !scalar(e, l, 2, p, 0, &bias))
        return false;
    bool plain = (fn == CPS_ACTFN_COPY || fn == CPS_ACTFN_IDENTITY) && scale == 1 &&
                 bias == 0 && e->x->nout < 2 && !attr(e, CPS_TA_ACC, 0);
    if (plain && x->v->dtype == o->v->dtype && e->gen >= CPS_V3) {
        uint8_t *raw = (uint8_t *)v; // from v3 on such copies keep every bit
        if (!cps_te_load_raw(e, x, p, raw))
            return false;
        cps_te_store_raw(e, o, p, raw);
        return true;
    }
    if (!cps_te_load(e, x, p, v))
        return false;
    for (int64_t i = 0; i < l->elems; i++) {
        float m = v[i] * scale;
        v[i] = m + bias;
    }
    if (!cps_act_f32((unsigned)fn, v, y, l->elems))
        return cps_te_fail(e, CPS_E8104, "function '%s' has no model",
                           cps_actfn_name((unsigned)fn));
    if (!accumulate(e, l, p, 0, CPS_ALU_ADD, y, l->elems))
        return false;
    cps_te_store(e, o, p, y);
    return true;
}

static bool
integers(const cps_te *e, const lanes *l)
{
    int op = attr(e, CPS_TA_OP0, 0);
    if (cps_alu_class_of((unsigned)op, CPS_V4) == CPS_ALUC_INT)
        return true;
    // 32-bit integer add, subtract and multiply are true integer arithmetic on POOL.
    bool wide = true;
    const cps_teat *all[3] = {&l->in[0], &l->in[1], &l->out[0]};
    for (int i = 0; i < 3; i++)
        wide = wide && cps_dtype_is_int(all[i]->v->dtype) && all[i]->es == 4;
    return wide && e->x->engine == CPS_POOL &&
           (op == CPS_ALU_ADD || op == CPS_ALU_SUBTRACT || op == CPS_ALU_MULT);
}

static bool
tensor_tensor(cps_te *e, lanes *l, unsigned p)
{
    int op = attr(e, CPS_TA_OP0, 0);
    const cps_teat *a = &l->in[0], *b = &l->in[1], *o = &l->out[0];
    if (integers(e, l)) {
        int64_t *x = (int64_t *)(void *)e->row[0], *y = (int64_t *)(void *)e->row[1];
        if (!cps_dtype_is_int(a->v->dtype) || !cps_dtype_is_int(b->v->dtype) ||
            !cps_dtype_is_int(o->v->dtype))
            return cps_te_fail(e, CPS_E5108, "an integer operator on floats");
        if (!cps_te_load_i64(e, a, p, x) || !cps_te_load_i64(e, b, p, y))
            return false;
        for (int64_t i = 0; i < l->elems; i++)
            x[i] = cps_alu_int((unsigned)op, x[i], y[i]);
        cps_te_store_i64(e, o, p, x);
        return true;
    }
    if (bits_op(e)) {
        uint32_t *x = (uint32_t *)(void *)e->row[0], *y = (uint32_t *)(void *)e->row[1];
        if (!load_words(e, a, p, x) || !load_words(e, b, p, y))
            return false;
        for (int64_t i = 0; i < l->elems; i++)
            x[i] = cps_alu_bits((unsigned)op, x[i], y[i], CPS_MIN(o->es, 4u) * 8);
        store_words(e, o, p, x);
        return true;
    }
    float *x = e->row[0], *y = e->row[1];
    if (!cps_te_load(e, a, p, x) || !cps_te_load(e, b, p, y) ||
        !apply(e, op, x, 1, y, 1, x, l->elems))
        return false;
    cps_te_store(e, o, p, x);
    return true;
}

// (data op0 s0) op1 y, y a scalar (sy 0) or a row; bitwise.
static bool
two_bits(cps_te *e, lanes *l, unsigned p, int second)
{
    int op0 = attr(e, CPS_TA_OP0, 0), op1 = attr(e, CPS_TA_OP1, CPS_ALU_BYPASS);
    int rev = attr(e, CPS_TA_REVERSE, 0);
    uint32_t *v = (uint32_t *)(void *)e->row[0], *y = (uint32_t *)(void *)e->row[1], s0;
    unsigned w = CPS_MIN(l->out[0].es, 4u) * 8;
    bool row = cps_tops[e->x->op].ins[second] == 'd';
    if (!load_words(e, &l->in[0], p, v) || !scalar_bits(e, l, 1, p, &s0))
        return false;
    if (row ? !load_words(e, &l->in[second], p, y) : !scalar_bits(e, l, second, p, y))
        return false;
    for (int64_t i = 0; i < l->elems; i++) {
        uint32_t t = v[i], b = y[row ? i : 0];
        if (op0 != CPS_ALU_BYPASS)
            t = rev & 1 ? cps_alu_bits((unsigned)op0, s0, t, w)
                        : cps_alu_bits((unsigned)op0, t, s0, w);
        if (op1 != CPS_ALU_BYPASS)
            t = rev & 2 ? cps_alu_bits((unsigned)op1, b, t, w)
                        : cps_alu_bits((unsigned)op1, t, b, w);
        v[i] = t;
    }
    store_words(e, &l->out[0], p, v);
    return true;
}

static bool
tensor_scalar(cps_te *e, lanes *l, unsigned p)
{
    int op0 = attr(e, CPS_TA_OP0, 0), op1 = attr(e, CPS_TA_OP1, CPS_ALU_BYPASS);
    int rev = attr(e, CPS_TA_REVERSE, 0);
    const cps_teat *x = &l->in[0], *o = &l->out[0];
    float *v = e->row[0], s0, s1;
    if (bits_op(e))
        return two_bits(e, l, p, 2);
    if (op0 == CPS_ALU_BYPASS && op1 == CPS_ALU_BYPASS && x->v->dtype == o->v->dtype) {
        if (!cps_te_load_raw(e, x, p, (uint8_t *)v))
            return false;
        cps_te_store_raw(e, o, p, (uint8_t *)v);
        return true;
    }
    if (!scalar(e, l, 1, p, 0, &s0) || !scalar(e, l, 2, p, 0, &s1) ||
        !cps_te_load(e, x, p, v) || !with_scalar(e, op0, rev & 1, v, &s0, 0, l->elems) ||
        !with_scalar(e, op1, rev & 2, v, &s1, 0, l->elems))
        return false;
    cps_te_store(e, o, p, v);
    return true;
}

static bool
stt(cps_te *e, lanes *l, unsigned p)
{
    int rev = attr(e, CPS_TA_REVERSE, 0);
    float *v = e->row[0], *y = e->row[1], s0;
    if (bits_op(e))
        return two_bits(e, l, p, 2);
    if (!scalar(e, l, 1, p, 0, &s0) || !cps_te_load(e, &l->in[0], p, v) ||
        !cps_te_load(e, &l->in[2], p, y) ||
        !with_scalar(e, attr(e, CPS_TA_OP0, 0), rev & 1, v, &s0, 0, l->elems) ||
        !with_scalar(e, attr(e, CPS_TA_OP1, CPS_ALU_BYPASS), rev & 2, v, y, 1, l->elems))
        return false;
    cps_te_store(e, &l->out[0], p, v);
    return true;
}

static bool
ts_reduce(cps_te *e, lanes *l, unsigned p)
{
    float *v = e->row[0], s0;
    if (!scalar(e, l, 1, p, 0, &s0) || !cps_te_load(e, &l->in[0], p, v) ||
        !with_scalar(e, attr(e, CPS_TA_OP0, 0), false, v, &s0, 0, l->elems) ||
        !accumulate(e, l, p, 1, (unsigned)attr(e, CPS_TA_RED, CPS_ALU_ADD), v, l->elems))
        return false;
    cps_te_store(e, &l->out[0], p, v);
    return true;
}

static bool
scan(cps_te *e, lanes *l, unsigned p)
{
    int op0 = attr(e, CPS_TA_OP0, 0), op1 = attr(e, CPS_TA_OP1, CPS_ALU_BYPASS);
    float *a = e->row[0], *b = e->row[1], r;
    if (!scalar(e, l, 2, p, 0, &r) || !cps_te_load(e, &l->in[0], p, a) ||
        !cps_te_load(e, &l->in[1], p, b))
        return false;
    for (int64_t i = 0; i < l->elems; i++) {
        if (!apply(e, op0, &a[i], 1, &r, 1, &r, 1) ||
            (op1 != CPS_ALU_BYPASS && !apply(e, op1, &r, 1, &b[i], 1, &r, 1)))
            return false;
        a[i] = r;
    }
    cps_te_store(e, &l->out[0], p, a);
    return true;
}

static bool
reciprocal(cps_te *e, lanes *l, unsigned p)
{
    float *v = e->row[0];
    if (!cps_te_load(e, &l->in[0], p, v))
        return false;
    for (int64_t i = 0; i < l->elems; i++)
        v[i] = 1.0f / v[i];
    cps_te_store(e, &l->out[0], p, v);
    return true;
}

static bool
copy(cps_te *e, lanes *l, unsigned p)
{
    const cps_teat *x = &l->in[0], *o = &l->out[0];
    float *v = e->row[0];
    bool exact = x->v->dtype == o->v->dtype && !(e->x->engine == CPS_ACT && e->gen == CPS_V2);
    if (exact || cps_dtypes[x->v->dtype].kind == 'P' || cps_dtypes[o->v->dtype].kind == 'P') {
        if (x->es != o->es)
            return cps_te_fail(e, CPS_E5108, "packed elements are moved, not converted");
        if (!cps_te_load_raw(e, x, p, (uint8_t *)v))
            return false;
        cps_te_store_raw(e, o, p, (uint8_t *)v);
        return true;
    }
    if (!cps_te_load(e, x, p, v))
        return false;
    cps_te_store(e, o, p, v);
    return true;
}

static bool
fill(cps_te *e, lanes *l, unsigned p)
{
    const cps_teat *o = &l->out[0];
    const cps_toper *v = &e->x->in[0];
    uint8_t cell[8] = {0};
    if (cps_dtypes[o->v->dtype].kind == 'P') {
        if (v->is_int ? v->ival != 0 : v->imm != 0)
            return cps_te_fail(e, CPS_E5108, "packed elements are filled with 0 only");
    } else if (v->is_int && cps_dtype_is_int(o->v->dtype)) {
        cps_from_i64(o->v->dtype, cell, v->ival);
    } else {
        cps_from_f32(o->v->dtype, cell, v->is_int ? (float)v->ival : v->imm);
    }
    for (int64_t i = 0; i < l->elems; i++)
        memcpy(e->raw + i * o->es, cell, o->es);
    cps_te_store_raw(e, o, p, e->raw);
    return true;
}

// Data in the storage form of the result: the bits when the dtypes agree, else through
// binary32.
static bool
as_result(cps_te *e, const cps_teat *x, const cps_teat *o, unsigned p, uint8_t *out)
{
    if (x->v->dtype == o->v->dtype)
        return cps_te_load_raw(e, x, p, out);
    float *v = e->row[5];
    if (!cps_te_load(e, x, p, v))
        return false;
    cps_from_f32_n(o->v->dtype, v, out, (size_t)o->n);
    return true;
}

// Elements whose predicate is 0 keep their bits, and whether they were ever written.
static bool
copy_predicated(cps_te *e, lanes *l, unsigned p)
{
    const cps_teat *o = &l->out[0];
    int64_t *pred = (int64_t *)(void *)e->row[0];
    uint8_t *data = (uint8_t *)e->row[1];
    bool negate = attr(e, CPS_TA_NEGATE, 0) != 0;
    if (!cps_dtype_is_int(l->in[0].v->dtype))
        return cps_te_fail(e, CPS_E5108, "the predicate must be an integer");
    if (!cps_te_load_i64(e, &l->in[0], p, pred) || !as_result(e, &l->in[1], o, p, data))
        return false;
    cps_tewalk one = {.run = o->es};
    int64_t base = o->base + p * o->m->row, idx[CPS_TILE_DIMS] = {0}, off = 0;
    const cps_tview *v = o->v;
    for (int64_t i = 0; i < l->elems; i++) {
        if ((pred[i] != 0) != negate) {
            memcpy(o->m->data + base + off, data + i * o->es, o->es);
            cps_te_mark(o->m->def ? o->m->def + base + off : NULL, &one);
        }
        for (int k = v->nd - 1; k >= 0; k--) {
            off += v->d[k].step * o->es;
            if (++idx[k] < v->d[k].num)
                break;
            off -= v->d[k].step * v->d[k].num * o->es;
            idx[k] = 0;
        }
    }
    return true;
}

static bool
select_reduce(cps_te *e, lanes *l, unsigned p)
{
    int64_t *pred = (int64_t *)(void *)e->row[0];
    float *v = e->row[1], other;
    if (!cps_dtype_is_int(l->in[0].v->dtype))
        return cps_te_fail(e, CPS_E5108, "the predicate must be an integer");
    if (!cps_te_load_i64(e, &l->in[0], p, pred) || !cps_te_load(e, &l->in[1], p, v) ||
        !scalar(e, l, 2, p, 0, &other))
        return false;
    for (int64_t i = 0; i < l->elems; i++)
        v[i] = pred[i] ? v[i] : other;
    if (!accumulate(e, l, p, 1, CPS_ALU_MAX, v, l->elems))
        return false;
    cps_te_store(e, &l->out[0], p, v);
    return true;
}

static bool
range_select(cps_te *e, lanes *l, unsigned p)
{
    unsigned op0 = (unsigned)attr(e, CPS_TA_OP0, 0), op1 = (unsigned)attr(e, CPS_TA_OP1, 0);
    float *v = e->row[0], lo, hi;
    if (!cps_te_load(e, &l->in[0], p, v) || !scalar(e, l, 1, p, 0, &lo) ||
        !scalar(e, l, 2, p, 0, &hi))
        return false;
    for (int64_t i = 0; i < l->elems; i++) {
        // Positions are binary32 numbers, exact below 2^24.
        float at = (float)(attr(e, CPS_TA_BASE, 0) + i), a, b;
        if (!apply(e, (int)op0, &at, 1, &lo, 1, &a, 1) ||
            !apply(e, (int)op1, &at, 1, &hi, 1, &b, 1))
            return false;
        v[i] = a != 0 && b != 0 ? v[i] : -FLT_MAX;
    }
    if (!accumulate(e, l, p, 1, CPS_ALU_MAX, v, l->elems))
        return false;
    cps_te_store(e, &l->out[0], p, v);
    return true;
}

// base + channel*lane + steps, in i32 with wrap-around.
static void
affine(const cps_te *e, const lanes *l, unsigned p, int32_t *out)
{
    const cps_tview *v = l->out[0].v;
    cps_tlist none = {.n = v->nd};
    const cps_tlist *s =
        e->x->set >> CPS_TA_PATTERN & 1 ? &e->f->lists.data[e->x->attr[CPS_TA_PATTERN]] : &none;
    bool counted = s->n > 0 && s->n <= 16 && s->v[s->n];
    uint32_t at = (uint32_t)attr(e, CPS_TA_BASE, 0) + (uint32_t)attr(e, CPS_TA_CHANNEL, 0) * p;
    int64_t idx[32] = {0};
    for (int64_t i = 0; i < l->elems; i++) {
        out[i] = (int32_t)at;
        for (int k = s->n - 1; k >= 0; k--) {
            int64_t num = counted ? s->v[s->n + k] : v->d[k].num;
            at += (uint32_t)s->v[k];
            if (++idx[k] < num)
                break;
            at -= (uint32_t)s->v[k] * (uint32_t)num;
            idx[k] = 0;
        }
    }
}

static bool
iota(cps_te *e, lanes *l, unsigned p)
{
    const cps_teat *o = &l->out[0];
    int32_t *index = (int32_t *)(void *)e->row[0];
    affine(e, l, p, index);
    if (cps_dtype_is_int(o->v->dtype) && o->es >= 4) { // exact
        int64_t *wide = (int64_t *)(void *)e->row[1];
        for (int64_t i = 0; i < l->elems; i++)
            wide[i] = index[i];
        cps_te_store_i64(e, o, p, wide);
        return true;
    }
    float *v = e->row[1];
    for (int64_t i = 0; i < l->elems; i++)
        v[i] = (float)index[i];
    cps_te_store(e, o, p, v);
    return true;
}

static bool
affine_select(cps_te *e, lanes *l, unsigned p)
{
    const cps_teat *o = &l->out[0];
    const cps_toper *fv = &e->x->in[1];
    unsigned op = (unsigned)attr(e, CPS_TA_OP0, CPS_ALU_IS_EQ);
    int32_t *index = (int32_t *)(void *)e->row[0];
    uint8_t *data = (uint8_t *)e->row[1], cell[8] = {0};
    if (!as_result(e, &l->in[0], o, p, data))
        return false;
    cps_from_f32(o->v->dtype, cell, fv->is_int ? (float)fv->ival : fv->imm);
    affine(e, l, p, index);
    for (int64_t i = 0; i < l->elems; i++)
        if (!cps_alu_compare(op, index[i], 0))
            memcpy(data + i * o->es, cell, o->es);
    cps_te_store_raw(e, o, p, data);
    return true;
}

typedef bool (*lane_fn)(cps_te *, lanes *, unsigned);

static const lane_fn lane_fns[CPS_TOPS] = {
    [CPS_T_ACTIVATION] = activation,
    [CPS_T_TENSOR_TENSOR] = tensor_tensor,
    [CPS_T_TENSOR_SCALAR] = tensor_scalar,
    [CPS_T_STT] = stt,
    [CPS_T_TS_REDUCE] = ts_reduce,
    [CPS_T_SCAN] = scan,
    [CPS_T_RECIPROCAL] = reciprocal,
    [CPS_T_COPY] = copy,
    [CPS_T_MEMSET] = fill,
    [CPS_T_COPY_PRED] = copy_predicated,
    [CPS_T_SELECT_REDUCE] = select_reduce,
    [CPS_T_RANGE_SELECT] = range_select,
    [CPS_T_IOTA] = iota,
    [CPS_T_AFFINE_SELECT] = affine_select,
};

/* ---- all lanes ---- */

// Raw forms compute with what a dtype has no numbers for.
static bool
numbers(cps_te *e, const cps_teat *at)
{
    bool raw = e->x->op == CPS_T_COPY || e->x->op == CPS_T_MEMSET;
    char k = cps_dtypes[at->v->dtype].kind;
    return raw || k != 'P' ||
           cps_te_fail(e, CPS_E5108, "%s is packed: it can be moved, not computed with",
                       cps_dtype_name(at->v->dtype));
}

static bool
place(cps_te *e, lanes *l)
{
    const cps_tinst *x = e->x;
    e->staged = false;
    for (int k = 0; k < x->nout; k++)
        if (!cps_te_at(e, &x->out[k], &l->out[k]) || !numbers(e, &l->out[k]))
            return false;
    l->n = l->out[0].v->parts;
    l->elems = l->out[0].n;
    bool apart = false;
    for (int k = 0; k < x->nin; k++) {
        if (x->in[k].kind != CPS_TO_VIEW)
            continue;
        if (!cps_te_at(e, &x->in[k], &l->in[k]) || !numbers(e, &l->in[k]))
            return false;
        apart = apart ||
                (l->in[k].v->buf == l->out[0].v->buf && l->in[k].v->part != l->out[0].v->part);
    }
    return !apart || x->op == CPS_T_COPY_PRED || cps_te_stage(e, &l->out[0], l->n);
}

bool
cps_te_vector(cps_te *e)
{
    lanes l;
    lane_fn fn = lane_fns[e->x->op];
    cps_assert(fn);
    if (!place(e, &l))
        return false;
    for (unsigned p = 0; p < l.n; p++)
        if (!fn(e, &l, p))
            return false;
    cps_te_flush(e, &l.out[0], l.n);
    for (unsigned p = 0; p < l.n && e->x->nout > 1; p++)
        cps_te_store(e, &l.out[1], p, &l.sum[p]);
    return true;
}
