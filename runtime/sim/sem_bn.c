/* Batch-norm gradients, and scalars loaded ahead of the instructions that use them. Nobody has
 * published what the gradient instructions compute; they follow the textbook derivation, so
 * that together they give the gradient (MODEL.md). */
#include "runtime/sim/machine.h"

#define F(x) (unsigned)cps_isa_get(&i->b, x)

/* ---- statistics of the whole stream ---- */

bool
prep_bn_stats1(cps_sim *s, insn *i)
{
    return i->op[1].count == 3 ||
           load_fail(s, i, CPS_E8202, "%u numbers; count, mean and count * variance are 3",
                     i->op[1].count);
}

bool
exec_bn_stats1(cps_sim *s, engine *e, insn *i)
{
    (void)e;
    const opnd *x = &i->op[0];
    for (unsigned p = 0; p < i->rows; p++) {
        float *v = s->row[0];
        double sum = 0, sq = 0;
        load_f32(s, x, p, v);
        for (uint32_t k = 0; k < x->count; k++)
            sum += v[k];
        double mean = sum / x->count;
        for (uint32_t k = 0; k < x->count; k++)
            sq += (v[k] - mean) * (v[k] - mean);
        float y[3] = {(float)x->count, (float)mean, (float)sq};
        store_f32(s, &i->op[1], p, y);
    }
    return true;
}

/* ---- gradients ---- */

/* Adds a pointer operand of a format that has no field for its source. */
static bool
pointer(cps_sim *s, insn *i, cps_field f, unsigned src, unsigned wire)
{
    scalar *c = &i->sc[i->nsc++];
    cps_dtype t = wire ? cps_isa_dtype(wire) : CPS_DT_FP32;
    c->mode = src == CPS_IMM_SRC_REG_PTR_IMMEDIATE ? SC_REG : SC_PTR;
    c->bits = F(f);
    if (!t || !scalar_point(s, i, c, c->bits, t))
        return load_fail(s, i, CPS_E8202, "operand '%s' cannot be addressed",
                         cps_fields[f].name);
    c->at.field = (uint16_t)f;
    if (c->mode == SC_REG)
        c->at.reg = c->bits & 0x3F;
    return true;
}

bool
prep_bn_grad(cps_sim *s, insn *i)
{
    if (i->op[0].count != i->op[1].count || i->op[2].count != 3)
        return load_fail(s, i, CPS_E8202, "%u and %u elements to %u sums; 3 are taken",
                         i->op[0].count, i->op[1].count, i->op[2].count);
    if (i->id == CPS_INSN_BATCH_NORM_GRAD_ACCUMULATE) {
        unsigned t = F(CPS_F_S3S3D1_BN_immediate_dtype);
        return pointer(s, i, CPS_F_S3S3D1_BN_imm0, 1, t) &&
               pointer(s, i, CPS_F_S3S3D1_BN_imm1, 1, t);
    }
    unsigned t = F(CPS_F_S3S3D1_BN2_immediate_out_dtype) & 15;
    unsigned src = F(CPS_F_S3S3D1_BN2_imm0_imm1_src);
    return pointer(s, i, CPS_F_S3S3D1_BN2_imm0, src & 15, t) &&
           pointer(s, i, CPS_F_S3S3D1_BN2_imm1, src >> 4, t);
}

/* x: the layer's input, d: the gradient of its output, m: mean, r: 1 / standard deviation.
 * Sums of d, of d * (x - m) * r and of (x - m) * r, in order, in fp32. */
bool
exec_bn_grad(cps_sim *s, engine *e, insn *i)
{
    (void)e;
    const opnd *x = &i->op[0];
    float m[LANES], r[LANES];
    scalar_f32(s, &i->sc[0], i->rows, m);
    scalar_f32(s, &i->sc[1], i->rows, r);
    for (unsigned p = 0; p < i->rows; p++) {
        float *v = s->row[0], *d = s->row[1], y[3] = {0, 0, 0};
        load_f32(s, x, p, v);
        load_f32(s, &i->op[1], p, d);
        for (uint32_t k = 0; k < x->count; k++) {
            float c = v[k] - m[p], h = c * r[p], g = d[k] * h;
            y[0] += d[k];
            y[1] += g;
            y[2] += h;
        }
        store_f32(s, &i->op[2], p, y);
    }
    return true;
}

bool
prep_bn_params(cps_sim *s, insn *i)
{
    return i->op[0].count == 2 ||
           load_fail(s, i, CPS_E8202, "%u elements; two sums are taken", i->op[0].count);
}

/* Keeps mean, 1 / standard deviation and the two sums divided by the count for BACK_PROP. */
bool
exec_bn_params(cps_sim *s, engine *e, insn *i)
{
    float m[LANES], r[LANES], n = cps_bits_f32(F(CPS_F_S2_BNPL2_element_count));
    scalar_f32(s, &i->sc[0], i->rows, m);
    scalar_f32(s, &i->sc[1], i->rows, r);
    for (unsigned p = 0; p < i->rows; p++) {
        float v[2];
        load_f32(s, &i->op[0], p, v);
        e->bn[p][0] = m[p];
        e->bn[p][1] = r[p];
        e->bn[p][2] = v[0] / n;
        e->bn[p][3] = v[1] / n;
    }
    return true;
}

bool
prep_bn_back(cps_sim *s, insn *i)
{
    return (i->op[0].count == i->op[1].count && i->op[0].count == i->op[2].count) ||
           load_fail(s, i, CPS_E8202, "the operands differ in elements");
}

/* r * (d - sum0 / n - (x - m) * r * sum1 / n) */
bool
exec_bn_back(cps_sim *s, engine *e, insn *i)
{
    for (unsigned p = 0; p < i->rows; p++) {
        float *v = s->row[0], *d = s->row[1];
        const float *b = e->bn[p];
        load_f32(s, &i->op[0], p, v);
        load_f32(s, &i->op[1], p, d);
        for (uint32_t k = 0; k < i->op[0].count; k++) {
            float c = v[k] - b[0], h = c * b[1], a = d[k] - b[2], t = h * b[3];
            float y = a - t;
            v[k] = y * b[1];
        }
        store_f32(s, &i->op[2], p, v);
    }
    return true;
}

/* ---- scalars loaded ahead ---- */

bool
prep_preset(cps_sim *s, insn *i)
{
    const opnd *x = &i->op[0];
    i->flag = i->id == CPS_INSN_TENSOR_SCALAR_IMM_LD_BITVEC;
    return (x->count <= 8 && (!i->flag || x->es <= 4)) ||
           load_fail(s, i, CPS_E8202, "%u scalars, limit 8", x->count);
}

bool
exec_preset(cps_sim *s, engine *e, insn *i)
{
    const opnd *x = &i->op[0];
    for (unsigned p = 0; p < i->rows; p++) {
        if (!i->flag) {
            load_f32(s, x, p, (float *)e->preset[p]);
            continue;
        }
        uint8_t raw[8 * 4];
        load_raw(s, x, p, raw);
        for (uint32_t k = 0; k < x->count; k++) {
            e->preset[p][k] = 0;
            memcpy(&e->preset[p][k], raw + k * x->es, x->es);
        }
    }
    return true;
}

bool
prep_multi(cps_sim *s, insn *i)
{
    const opnd *x = &i->op[0], *o = &i->op[1];
    float a = 0, y;
    i->op0 = (uint8_t)F(CPS_F_S4D4_TSM_op);
    i->rev = F(CPS_F_S4D4_TSM_reverse_operands) != CPS_TENS_SCALAR_REV_OPS_NONE;
    i->flag = i->id == CPS_INSN_TENSOR_SCALAR_PTR_MULTI_BITVEC;
    i->set = x->raw_num[3];
    bool fits = i->flag ? alu_is_bits(i->op0) && x->es <= 4 && x->es == o->es
                        : alu_f32(i->op0, &a, 0, &a, 0, &y, 1);
    return (fits && x->count == o->count && i->set >= 1 && i->set <= 8) ||
           load_fail(s, i, CPS_E8202, "no model of operator 0x%02x on this shape", i->op0);
}

/* Group w of the outermost dimension meets scalar w. */
bool
exec_multi(cps_sim *s, engine *e, insn *i)
{
    const opnd *x = &i->op[0], *o = &i->op[1];
    uint32_t per = x->count / i->set;
    for (unsigned p = 0; p < i->rows; p++) {
        if (!i->flag) {
            float *v = s->row[0];
            load_f32(s, x, p, v);
            for (unsigned w = 0; w < i->set; w++, v += per) {
                const float *c = (const float *)e->preset[p] + w;
                if (i->rev)
                    alu_f32(i->op0, c, 0, v, 1, v, per);
                else
                    alu_f32(i->op0, v, 1, c, 0, v, per);
            }
            store_f32(s, o, p, s->row[0]);
            continue;
        }
        uint8_t *v = (uint8_t *)s->row[0];
        load_raw(s, x, p, v);
        for (uint32_t k = 0; k < x->count; k++) {
            uint32_t a = 0, c = e->preset[p][k / per];
            memcpy(&a, v + (size_t)k * x->es, x->es);
            a = i->rev ? alu_bits(i->op0, c, a, x->es * 8u)
                       : alu_bits(i->op0, a, c, x->es * 8u);
            memcpy(v + (size_t)k * x->es, &a, x->es);
        }
        store_raw(s, o, p, v);
    }
    return true;
}
