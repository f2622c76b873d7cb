/* Statistics and searches of the vector engine. */
#include "runtime/sim/machine.h"

#define F(x) (unsigned)cps_isa_get(&i->b, x)

/* ---- batch-norm statistics ---- */

/* count, mean, count * variance (population) of every second element from `first` on. */
static void
stats(const float *v, uint32_t n, uint32_t first, float *out)
{
    double sum = 0, sq = 0;
    uint32_t count = 0;
    for (uint32_t k = first; k < n; k += 2, count++)
        sum += v[k];
    double mean = count ? sum / count : 0;
    for (uint32_t k = first; k < n; k += 2)
        sq += (v[k] - mean) * (v[k] - mean);
    out[0] = (float)count;
    out[1] = (float)mean;
    out[2] = (float)sq;
}

bool
prep_bn_stats(cps_sim *s, insn *i)
{
    i->xpose = i->id == CPS_INSN_TRANSPOSE_BATCH_NORM_STATS2;
    return !i->xpose || (i->rows % 32 == 0 && i->op[0].count % 32 == 0 && i->op[0].es <= 4) ||
           load_fail(s, i, CPS_E8202, "blocks of 32 x 32 do not fit this shape");
}

bool
exec_bn_stats(cps_sim *s, engine *e, insn *i)
{
    (void)e;
    const opnd *x = &i->op[0], *o = &i->op[1];
    if (x->count > 512 || o->count != 6)
        return run_fault(s, i, CPS_E8305, "%u elements to %u numbers; at most 512 to 6",
                         x->count, o->count);
    for (unsigned p = 0; p < i->rows; p++) {
        float *v = s->row[0], y[6];
        seen_f32(s, i, x, p, v);
        stats(v, x->count, 0, y);
        stats(v, x->count, 1, y + 3);
        store_f32(s, o, p, y);
    }
    return true;
}

bool
exec_bn_aggr(cps_sim *s, engine *e, insn *i)
{
    (void)e;
    const opnd *x = &i->op[0], *o = &i->op[1];
    if (x->count % 3 || o->count != 2)
        return run_fault(s, i, CPS_E8305, "%u numbers to %u; triples to 2", x->count, o->count);
    for (unsigned p = 0; p < i->rows; p++) {
        float *v = s->row[0], y[2];
        double n = 0, sum = 0, sq = 0;
        load_f32(s, x, p, v);
        for (uint32_t k = 0; k < x->count; k += 3) {
            n += v[k];
            sum += (double)v[k] * v[k + 1];
        }
        double mean = n > 0 ? sum / n : 0;
        for (uint32_t k = 0; k < x->count; k += 3)
            sq += v[k + 2] + v[k] * (v[k + 1] - mean) * (v[k + 1] - mean);
        y[0] = (float)mean;
        y[1] = (float)(n > 0 ? sq / n : 0);
        store_f32(s, o, p, y);
    }
    return true;
}

/* ---- the eight largest, and matching ---- */

/* Row p in fp32: where it lies, or a copy in scratch. */
static const float *
row_of(cps_sim *s, const opnd *x, unsigned p)
{
    if (x->dtype == CPS_DT_FP32 && x->flat && !x->group && x->byte % 4 == 0)
        return (const float *)opnd_row(s, x, p);
    load_f32(s, x, p, s->row[0]);
    return s->row[0];
}

static bool
eight(cps_sim *s, const insn *i, const opnd *o)
{
    return o->count == 8 || run_fault(s, i, CPS_E8305, "operand '%s' has %u elements, not 8",
                                      cps_fields[o->field].name, o->count);
}

bool
exec_max8(cps_sim *s, engine *e, insn *i)
{
    (void)e;
    const opnd *x = &i->op[0], *o = &i->op[1];
    if (!eight(s, i, o))
        return false;
    if (x->count < 8 || x->count > 16384)
        return run_fault(s, i, CPS_E8305, "%u elements; 8 to 16384", x->count);
    for (unsigned p = 0; p < i->rows; p++) {
        float top[8];
        s->wide->max8(row_of(s, x, p), x->count, top);
        store_f32(s, o, p, top);
    }
    return true;
}

bool
exec_match_load(cps_sim *s, engine *e, insn *i)
{
    if (!eight(s, i, &i->op[0]))
        return false;
    for (unsigned p = 0; p < i->rows; p++)
        load_f32(s, &i->op[0], p, e->key[p]);
    return true;
}

bool
exec_find_index8(cps_sim *s, engine *e, insn *i)
{
    const opnd *x = &i->op[0], *o = &i->op[1];
    if (!eight(s, i, o))
        return false;
    if (o->dtype != CPS_DT_U16 && o->dtype != CPS_DT_U32)
        return run_fault(s, i, CPS_E8305, "positions are u16 or u32");
    for (unsigned p = 0; p < i->rows; p++) {
        uint32_t *found = e->found[p]; // a miss is all ones
        int64_t at[8];
        s->wide->match8(row_of(s, x, p), x->count, e->key[p], found); // equal keys: ascending positions (NKI)
        for (unsigned k = 0; k < 8; k++)
            at[k] = found[k];
        store_i64(s, o, p, at);
    }
    return true;
}

bool
exec_match_replace8(cps_sim *s, engine *e, insn *i)
{
    const opnd *x = &i->op[0], *o = &i->op[1];
    float imm = cps_bits_f32(F(CPS_F_S4D4_MR_immediate));
    if (x->count != o->count || x->count > 16384)
        return run_fault(s, i, CPS_E8305, "%u elements in, %u out, limit 16384", x->count,
                         o->count);
    for (unsigned p = 0; p < i->rows; p++) {
        const float *v = row_of(s, x, p);
        uint32_t *found = e->found[p], met[8];
        float last[8]; // the last key comes first
        for (unsigned k = 0; k < 8; k++)
            last[k] = e->key[p][7 - k];
        s->wide->match8(v, x->count, last, met);
        for (unsigned k = 0; k < 8; k++)
            found[k] = met[7 - k];
        if (x->dtype == o->dtype) { // what is not replaced keeps its bits
            uint8_t *raw = (uint8_t *)s->row[2];
            uint64_t bits = 0;
            cps_from_f32((cps_dtype)o->dtype, &bits, imm);
            if (v == (const float *)opnd_row(s, o, p) && o->flat && !o->group) { // in place
                for (unsigned k = 0; k < 8; k++) {
                    if (found[k] < x->count)
                        memcpy((uint8_t *)opnd_row(s, o, p) + (size_t)found[k] * o->es, &bits, o->es);
                }
                continue;
            }
            load_raw(s, x, p, raw);
            for (unsigned k = 0; k < 8; k++) {
                if (found[k] < x->count)
                    memcpy(raw + (size_t)found[k] * o->es, &bits, o->es);
            }
            store_raw(s, o, p, raw);
            continue;
        }
        float *y = s->row[1];
        memcpy(y, v, x->count * sizeof *y);
        for (unsigned k = 0; k < 8; k++) {
            if (found[k] < x->count)
                y[found[k]] = imm;
        }
        store_f32(s, o, p, y);
    }
    return true;
}

/* Where the last FIND_INDEX8 or MATCH_REPLACE8 met each key (NKI: the indices of a
 * replacement).
 */
bool
prep_read_found(cps_sim *s, insn *i)
{
    const opnd *o = &i->op[0];
    return (o->count == 8 && (o->dtype == CPS_DT_U16 || o->dtype == CPS_DT_U32)) ||
           load_fail(s, i, CPS_E8202, "the indices are eight u16 or u32");
}

bool
exec_read_found(cps_sim *s, engine *e, insn *i)
{
    for (unsigned p = 0; p < i->rows; p++) {
        int64_t at[8];
        for (unsigned k = 0; k < 8; k++)
            at[k] = e->found[p][k];
        store_i64(s, &i->op[0], p, at);
    }
    return true;
}
