/* Instructions that see a whole row, or other lanes: reductions, statistics, top-8 and matches,
 * shuffles, reductions over partitions. Statistics are computed in binary64 and rounded once:
 * the order of the device's sums is not documented. */
#include "ir/tile_eval.h"

#include <math.h>

static int
attr(const cps_te *e, cps_tattr_key k, int dflt)
{
    return cps_tinst_get(e->x, k, dflt);
}

static bool
is_bits(int op)
{
    return cps_alu_class_of((unsigned)op, CPS_V4) == CPS_ALUC_BITVEC;
}

static uint32_t
word(const uint8_t *p, unsigned es)
{
    uint32_t v = 0;
    memcpy(&v, p, CPS_MIN(es, 4u));
    return v;
}

/* ---- reductions over free axes ---- */

static bool
reduce_lane(cps_te *e, const cps_teat *x, const cps_teat *o, unsigned p)
{
    int op = attr(e, CPS_TA_OP0, CPS_ALU_ADD);
    int64_t len = x->n / o->n;
    if (is_bits(op)) {
        uint8_t *in = (uint8_t *)e->row[0], *out = (uint8_t *)e->row[1];
        unsigned width = CPS_MIN(x->es, 4u) * 8;
        if (x->es != o->es)
            return cps_te_fail(e, CPS_E5108, "bitwise operands have one width");
        if (!cps_te_load_raw(e, x, p, in))
            return false;
        memset(out, 0, (size_t)o->n * o->es);
        for (int64_t i = 0; i < o->n; i++) {
            uint32_t a = word(in + i * len * x->es, x->es);
            for (int64_t k = 1; k < len; k++)
                a = cps_alu_bits((unsigned)op, a, word(in + (i * len + k) * x->es, x->es),
                                 width);
            memcpy(out + i * o->es, &a, CPS_MIN(o->es, 4u));
        }
        cps_te_store_raw(e, o, p, out);
        return true;
    }
    float *v = e->row[0], *y = e->row[1], unit = cps_alu_f32_identity((unsigned)op);
    if (!cps_te_load(e, x, p, v))
        return false;
    for (int64_t i = 0; i < o->n; i++) {
        float a = unit;
        const float *r = v + i * len;
        if (op == CPS_ALU_ADD)
            for (int64_t k = 0; k < len; k++)
                a += r[k];
        else
            for (int64_t k = 0; k < len; k++)
                if (!cps_alu_f32((unsigned)op, &a, 1, &r[k], 1, &a, 1))
                    return cps_te_fail(e, CPS_E8104, "operator 0x%x does not reduce",
                                       (unsigned)op);
        y[i] = attr(e, CPS_TA_NEGATE, 0) ? -a : a;
    }
    cps_te_store(e, o, p, y);
    return true;
}

/* ---- statistics ---- */

static bool
stats_lane(cps_te *e, const cps_teat *x, const cps_teat *o, unsigned p)
{
    float *v = e->row[0], out[6];
    if (!cps_te_load(e, x, p, v))
        return false;
    for (int odd = 0; odd < 2; odd++) {
        double n = 0, sum = 0, dev = 0;
        for (int64_t i = odd; i < x->n; i += 2, n++)
            sum += (double)v[i];
        double mean = n > 0 ? sum / n : 0;
        for (int64_t i = odd; i < x->n; i += 2)
            dev += ((double)v[i] - mean) * ((double)v[i] - mean);
        out[3 * odd] = (float)n;
        out[3 * odd + 1] = (float)mean;
        out[3 * odd + 2] = (float)dev;
    }
    cps_te_store(e, o, p, out);
    return true;
}

static bool
aggregate_lane(cps_te *e, const cps_teat *x, const cps_teat *o, unsigned p)
{
    float *v = e->row[0], out[2];
    double n = 0, sum = 0, dev = 0;
    if (!cps_te_load(e, x, p, v))
        return false;
    for (int64_t i = 0; i < x->n; i += 3) {
        n += (double)v[i];
        sum += (double)v[i] * (double)v[i + 1];
    }
    double mean = sum / n;
    for (int64_t i = 0; i < x->n; i += 3) {
        double away = (double)v[i + 1] - mean;
        dev += (double)v[i + 2] + (double)v[i] * away * away;
    }
    out[0] = (float)mean;
    out[1] = (float)(dev / n);
    cps_te_store(e, o, p, out);
    return true;
}

/* ---- eight values ---- */

static bool
max8_lane(cps_te *e, const cps_teat *x, const cps_teat *o, unsigned p)
{
    float *v = e->row[0], top[8];
    int have = 0;
    if (!cps_te_load(e, x, p, v))
        return false;
    for (int64_t i = 0; i < x->n; i++) {
        // Compared as numbers; a NaN is below all of them.
        float a = v[i];
        int k = have;
        while (k > 0 && (a > top[k - 1] || (isnan(top[k - 1]) && !isnan(a))))
            k--;
        if (k == 8)
            continue;
        have = CPS_MIN(have + 1, 8);
        memmove(top + k + 1, top + k, (size_t)(have - 1 - k) * sizeof *top);
        top[k] = a;
    }
    cps_te_store(e, o, p, top);
    return true;
}

// Equal values take successive occurrences, in the order of the values.
static bool
find_lane(cps_te *e, const cps_teat *x, const cps_teat *vals, const cps_teat *o, unsigned p)
{
    float *v = e->row[0], key[8];
    int64_t at[8];
    if (!cps_te_load(e, x, p, v) || !cps_te_load(e, vals, p, key))
        return false;
    for (int i = 0; i < 8; i++) {
        int64_t from = 0;
        for (int k = 0; k < i; k++)
            if (key[k] == key[i])
                from = at[k] < 0 ? x->n : at[k] + 1;
        while (from < x->n && v[from] != key[i])
            from++;
        at[i] = from < x->n ? from : -1;
    }
    cps_te_store_i64(e, o, p, at);
    return true;
}

// Values from the last to the first, each replacing its first occurrence still there.
static bool
replace_lane(cps_te *e, const cps_teat *x, const cps_teat *vals, const cps_teat *o,
             const cps_teat *pos, unsigned p)
{
    float *v = e->row[0], *y = e->row[1], key[8];
    const cps_toper *imm = &e->x->in[2];
    uint8_t *gone = (uint8_t *)e->row[2];
    int64_t at[8];
    if (!cps_te_load(e, x, p, v) || !cps_te_load(e, vals, p, key))
        return false;
    memcpy(y, v, (size_t)x->n * sizeof *y);
    memset(gone, 0, (size_t)x->n);
    for (int i = 7; i >= 0; i--) {
        int64_t k = 0;
        while (k < x->n && (gone[k] || v[k] != key[i]))
            k++;
        at[i] = k < x->n ? k : -1;
        if (k < x->n) {
            gone[k] = 1;
            y[k] = imm->is_int ? (float)imm->ival : imm->imm;
        }
    }
    cps_te_store(e, o, p, y);
    if (pos)
        cps_te_store_i64(e, pos, p, at);
    return true;
}

/* ---- other lanes ---- */

static bool
shuffle(cps_te *e, const cps_teat *x, const cps_teat *o)
{
    const cps_tlist *mask = &e->f->lists.data[e->x->attr[CPS_TA_MASK]];
    size_t bytes = (size_t)x->n * x->es;
    if (x->es != o->es)
        return cps_te_fail(e, CPS_E5108, "a shuffle keeps its dtype");
    if (!cps_te_stage(e, o, x->v->parts))
        return false;
    uint8_t *kept = e->stage;
    e->staged = false;
    for (unsigned p = 0; p < x->v->parts; p++) {
        int from = mask->v[p % 32];
        if (from == 255)
            continue;
        unsigned q = p / 32 * 32 + (unsigned)from;
        // Lanes of a group that is only partly active may lie beyond the view, not the buffer.
        if (x->v->part + q >= cps_tc_buf(e->f, x->v)->dim[0])
            return cps_te_fail(e, CPS_E8102, "lane %u takes lane %u, beyond the buffer", p, q);
        if (!cps_te_load_raw(e, x, q, kept + p * bytes))
            return false;
    }
    for (unsigned p = 0; p < x->v->parts; p++)
        if (mask->v[p % 32] != 255)
            cps_te_store_raw(e, o, p, kept + p * bytes);
    return true;
}

static bool
over_partitions(cps_te *e, const cps_teat *x, const cps_teat *o)
{
    int op = attr(e, CPS_TA_OP0, CPS_ALU_ADD);
    float *a = e->row[0], *v = e->row[1];
    uint8_t *raw = (uint8_t *)e->row[2], *acc = (uint8_t *)e->row[3];
    bool bits = is_bits(op);
    if (bits && x->es != o->es)
        return cps_te_fail(e, CPS_E5108, "bitwise operands have one width");
    for (int64_t i = 0; i < x->n; i++)
        a[i] = cps_alu_f32_identity((unsigned)op);
    for (unsigned p = 0; p < x->v->parts; p++) {
        if (!bits) {
            if (!cps_te_load(e, x, p, v))
                return false;
            if (!cps_alu_f32((unsigned)op, a, 1, v, 1, a, x->n))
                return cps_te_fail(e, CPS_E8104, "operator 0x%x does not reduce", (unsigned)op);
            continue;
        }
        if (!cps_te_load_raw(e, x, p, p ? raw : acc))
            return false;
        for (int64_t i = 0; i < x->n && p; i++) {
            uint32_t r = cps_alu_bits((unsigned)op, word(acc + i * x->es, x->es),
                                      word(raw + i * x->es, x->es), CPS_MIN(x->es, 4u) * 8);
            memcpy(acc + i * x->es, &r, CPS_MIN(x->es, 4u));
        }
    }
    if (bits)
        cps_te_store_raw(e, o, 0, acc);
    else
        cps_te_store(e, o, 0, a);
    return true;
}

static bool
numbers(cps_te *e, const cps_teat *at)
{
    return cps_dtypes[at->v->dtype].kind != 'P' || e->x->op == CPS_T_SHUFFLE ||
           cps_te_fail(e, CPS_E5108, "%s is packed: it can be moved, not computed with",
                       cps_dtype_name(at->v->dtype));
}

bool
cps_te_rowwise(cps_te *e)
{
    const cps_tinst *x = e->x;
    cps_teat in[3], out[2];
    for (int k = 0; k < x->nout; k++)
        if (!cps_te_at(e, &x->out[k], &out[k]) || !numbers(e, &out[k]))
            return false;
    for (int k = 0; k < x->nin; k++)
        if (x->in[k].kind == CPS_TO_VIEW &&
            (!cps_te_at(e, &x->in[k], &in[k]) || !numbers(e, &in[k])))
            return false;
    if (x->op == CPS_T_SHUFFLE)
        return shuffle(e, &in[0], &out[0]);
    if (x->op == CPS_T_PART_REDUCE)
        return over_partitions(e, &in[0], &out[0]);
    // Positions are written as integers.
    const cps_teat *pos = x->op == CPS_T_FIND_INDEX8 ? &out[0] : x->nout > 1 ? &out[1] : NULL;
    if (pos && !cps_dtype_is_int(pos->v->dtype))
        return cps_te_fail(e, CPS_E5108, "positions are integers");
    bool apart = in[0].v->buf == out[0].v->buf && in[0].v->part != out[0].v->part && !pos;
    if (apart && !cps_te_stage(e, &out[0], out[0].v->parts))
        return false;
    bool ok = true;
    for (unsigned p = 0; p < in[0].v->parts && ok; p++) {
        switch (x->op) {
        case CPS_T_TENSOR_REDUCE:
            ok = reduce_lane(e, &in[0], &out[0], p);
            break;
        case CPS_T_BN_STATS:
            ok = stats_lane(e, &in[0], &out[0], p);
            break;
        case CPS_T_BN_AGGR:
            ok = aggregate_lane(e, &in[0], &out[0], p);
            break;
        case CPS_T_MAX8:
            ok = max8_lane(e, &in[0], &out[0], p);
            break;
        case CPS_T_FIND_INDEX8:
            ok = find_lane(e, &in[0], &in[1], &out[0], p);
            break;
        default:
            ok = replace_lane(e, &in[0], &in[1], &out[0], pos, p);
        }
    }
    if (ok)
        cps_te_flush(e, &out[0], out[0].v->parts);
    e->staged = false;
    return ok;
}
