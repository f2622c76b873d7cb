/* The scalar engine: activation functions with scale, bias and a running sum per partition,
 * table loads, and reading the sum out (shared with the vector engine's registers). */
#include "runtime/sim/machine.h"

#define F(x) (unsigned)cps_isa_get(&i->b, x)

/* ---- tables ---- */

bool
prep_table_load(cps_sim *s, insn *i)
{
    i->set = F(CPS_F_CTRL_TL_set);
    return cps_actset_name(i->set) != NULL ||
           load_fail(s, i, CPS_E8202, "there is no table set %u", i->set);
}

bool
prep_act_set(cps_sim *s, insn *i)
{
    char name[33] = {0};
    memcpy(name, i->b.b + cps_fields[CPS_F_PSEUDO_LOAD_ACT_FUNC_SET_table].byte, 32);
    int k = cps_actset_parse(name);
    if (k < 0)
        return load_fail(s, i, CPS_E8202, "there is no table set '%s'", name);
    i->set = (uint32_t)k;
    return true;
}

bool
exec_table_load(cps_sim *s, engine *e, insn *i)
{
    (void)e;
    s->eng[CPS_ACT].table = (int)i->set;
    return true;
}

static bool
have_table(cps_sim *s, engine *e, const insn *i)
{
    if (i->set == UINT32_MAX || (e->table >= 0 && i->set >> e->table & 1))
        return true;
    const char *now = e->table >= 0 ? cps_actset_name((unsigned)e->table) : "none";
    return run_fault(s, i, CPS_E8305,
                     "function '%s' is not in the table set that is loaded (%s)",
                     cps_actfn_name(i->fn), now);
}

/* ---- ACTIVATE ---- */

bool
prep_activate(cps_sim *s, insn *i)
{
    i->fn = (uint8_t)F(CPS_F_S3D3_AC_activation_function);
    i->cmd = (uint8_t)F(CPS_F_S3D3_AC_accumulator_cmd);
    i->set = act_sets(i->fn);
    if (!act_known(i->fn))
        return load_fail(s, i, CPS_E8202, "no model of activation function %u", i->fn);
    if (i->op[0].count != i->op[1].count)
        return load_fail(s, i, CPS_E8202, "%u elements in, %u out", i->op[0].count,
                         i->op[1].count);
    return true;
}

/* The register of lane p before a running sum or product; false when nothing is added to it. */
static bool
begin_run(engine *e, unsigned p, unsigned cmd, float seed, unsigned op)
{
    if (cmd == CPS_ACCUM_CMD_ZERO || cmd == CPS_ACCUM_CMD_ZERO_ACCUMULATE)
        e->acc[p] = alu_identity(op);
    else if (cmd == CPS_ACCUM_CMD_LOAD_ACCUMULATE)
        e->acc[p] = seed;
    return cmd != CPS_ACCUM_CMD_IDLE && cmd != CPS_ACCUM_CMD_ZERO;
}

/* acc[p] = command applied with the values of `y`, in order. */
static void
run_sum(cps_sim *s, engine *e, unsigned p, unsigned cmd, float seed, unsigned op, const float *y,
        size_t n)
{
    if (begin_run(e, p, cmd, seed, op))
        e->acc[p] = alu_fold(s->wide, op, e->acc[p], y, n);
}

/* Sums of several rows, n values each, that follow one another in `y`: they go on together. */
static void
run_sums(cps_sim *s, engine *e, unsigned p, unsigned rows, unsigned cmd, const float *seed, float *y,
         size_t n)
{
    bool more = false;
    for (unsigned r = 0; r < rows; r++)
        more |= begin_run(e, p + r, cmd, seed[r], CPS_ALU_ADD);
    wide_side a = {.at = (uint8_t *)y, .pitch = n * sizeof *y};
    if (more)
        s->wide->sum(&a, e->acc + p, rows, n);
}

enum { TOGETHER = 16 }; /* rows whose values wait in the matmul scratch for their sums */

/* The frequent functions over all partitions at once. Rows that follow one another in pieces are summed
 * piece after piece, which is their order. */
static bool
wide_activate(cps_sim *s, engine *e, const insn *i, const float *scale, const float *bias,
              const float *seed)
{
    pieces p;
    wide_act f = i->fn == CPS_ACTFN_EXP      ? WIDE_EXP
                 : i->fn == CPS_ACTFN_SQUARE ? WIDE_SQUARE
                                             : WIDE_PASS;
    if ((f == WIDE_PASS && i->fn != CPS_ACTFN_COPY && i->fn != CPS_ACTFN_IDENTITY) ||
        !pieces_of(s, &p, &i->op[1], &i->op[0], NULL))
        return false;
    bool more = false;
    for (unsigned r = 0; r < i->rows; r++)
        more |= begin_run(e, r, i->cmd, seed[r], CPS_ALU_ADD);
    for (unsigned j = 0; j < p.n; j++) {
        pieces_at(&p, j);
        s->wide->act(f, &p.side[0], &p.side[1], scale, bias, more ? e->acc : NULL, i->rows, p.len);
    }
    return true;
}

bool
exec_activate(cps_sim *s, engine *e, insn *i)
{
    if (!have_table(s, e, i))
        return false;
    const opnd *x = &i->op[0], *o = &i->op[1];
    float scale[LANES], bias[LANES], imm[LANES];
    scalar_f32(s, &i->sc[0], i->rows, scale);
    scalar_f32(s, &i->sc[1], i->rows, bias);
    scalar_f32(s, &i->sc[2], i->rows, imm);
    bool exact = x->dtype == o->dtype && s->k->gen >= CPS_V3 &&
                 (i->fn == CPS_ACTFN_COPY || i->fn == CPS_ACTFN_IDENTITY) && i->cmd == 0;
    bool plain = true; // no row is a copy of its bits
    for (unsigned p = 0; p < i->rows; p++)
        plain &= !exact || scale[p] != 1.0f || cps_f32_bits(bias[p]) << 1 != 0;
    if (plain && wide_activate(s, e, i, scale, bias, imm))
        return true;
    for (unsigned p = 0; p < i->rows; p++) {
        if (exact && scale[p] == 1.0f && cps_f32_bits(bias[p]) << 1 == 0) {
            load_raw(s, x, p, s->row[0]); // same-type copies keep every bit from v3 on
            store_raw(s, o, p, s->row[0]);
            continue;
        }
        float *v = s->row[0], *y = s->mm_acc + (size_t)(p % TOGETHER) * x->count;
        load_f32(s, x, p, v);
        s->wide->affine(v, scale[p], bias[p], v, x->count);
        act_row(s->wide, i->fn, imm[p], v, y, x->count);
        store_f32(s, o, p, y);
        if (p % TOGETHER == TOGETHER - 1 || p + 1u == i->rows) {
            unsigned from = p / TOGETHER * TOGETHER;
            run_sums(s, e, from, p + 1 - from, i->cmd, imm + from, s->mm_acc, x->count);
        }
    }
    return true;
}

/* ---- ACTIVATE_QUANTIZE: func(src * dequant_scale + bias) * quant_scale + quant_zero, as u8
 * ---- */

bool
prep_quantize(cps_sim *s, insn *i)
{
    unsigned bias = F(CPS_F_S3D3_AQ_in_bias_dtype) >> 4;
    cps_dtype t = bias ? cps_isa_dtype(bias) : CPS_DT_FP32;
    i->fn = (uint8_t)F(CPS_F_S3D3_AQ_activation_function);
    i->set = act_sets(i->fn);
    if (!act_known(i->fn) || i->op[0].count != i->op[1].count)
        return load_fail(s, i, CPS_E8202, "no model of activation function %u on this shape",
                         i->fn);
    scalar *c = &i->sc[i->nsc++];
    c->at.field = CPS_F_S3D3_AQ_bias;
    return (t && scalar_point(s, i, c, F(CPS_F_S3D3_AQ_bias), t)) ||
           load_fail(s, i, CPS_E8202, "the bias cannot be addressed");
}

bool
exec_quantize(cps_sim *s, engine *e, insn *i)
{
    if (!have_table(s, e, i))
        return false;
    const opnd *x = &i->op[0], *o = &i->op[1];
    float bias[LANES], in = cps_bits_f32(F(CPS_F_S3D3_AQ_dequant_scale));
    float scale = cps_bits_f32(F(CPS_F_S3D3_AQ_quant_scale));
    float zero = cps_bits_f32(F(CPS_F_S3D3_AQ_quant_zero));
    scalar_f32(s, &i->sc[0], i->rows, bias);
    for (unsigned p = 0; p < i->rows; p++) {
        float *v = s->row[0], *y = s->row[1];
        load_f32(s, x, p, v);
        for (uint32_t k = 0; k < x->count; k++) {
            float m = v[k] * in;
            v[k] = m + bias[p];
        }
        act_row(s->wide, i->fn, 0, v, y, x->count);
        for (uint32_t k = 0; k < x->count; k++) {
            float m = y[k] * scale;
            y[k] = m + zero;
        }
        store_f32(s, o, p, y);
    }
    return true;
}

/* ---- ACTIVATE2: operators, function, reduction; stage order as NKI documents it ---- */

bool
prep_activate2(cps_sim *s, insn *i)
{
    i->fn = (uint8_t)F(CPS_F_S2D2_AC_activation_function);
    i->cmd = (uint8_t)F(CPS_F_S2D2_AC_reduce_cmd);
    i->op0 = (uint8_t)F(CPS_F_S2D2_AC_op0);
    i->op1 = (uint8_t)F(CPS_F_S2D2_AC_op1);
    i->flag = (uint8_t)F(CPS_F_S2D2_AC_reduce_op);
    i->rev = (uint8_t)F(CPS_F_S2D2_AC_reverse_operands);
    i->set = act_sets(i->fn);
    float x = 0, y;
    if (!act_known(i->fn) || !alu_f32(i->op0, &x, 0, &x, 0, &y, 1) ||
        !alu_f32(i->op1, &x, 0, &x, 0, &y, 1) || i->op[0].count != i->op[1].count)
        return load_fail(s, i, CPS_E8202, "no model of this function, operator or shape");
    return true;
}

bool
exec_activate2(cps_sim *s, engine *e, insn *i)
{
    if (!have_table(s, e, i))
        return false;
    const opnd *x = &i->op[0], *o = &i->op[1];
    float param[LANES], a[LANES], b[LANES];
    // scalars in the order of the format's rows: imm0, imm1, relu_param
    scalar_f32(s, &i->sc[0], i->rows, a);
    scalar_f32(s, &i->sc[1], i->rows, b);
    scalar_f32(s, &i->sc[2], i->rows, param);
    for (unsigned p = 0; p < i->rows; p++) {
        float *v = s->row[0], *y = s->row[1];
        uint32_t n = x->count;
        load_f32(s, x, p, v);
        if (i->op0 != CPS_ALU_BYPASS) { // a bypass has no other operand to swap with
            if (i->rev & 1)
                alu_f32(i->op0, &a[p], 0, v, 1, v, n);
            else
                alu_f32(i->op0, v, 1, &a[p], 0, v, n);
        }
        if (i->op1 != CPS_ALU_BYPASS) {
            if (i->rev & 2)
                alu_f32(i->op1, &b[p], 0, v, 1, v, n);
            else
                alu_f32(i->op1, v, 1, &b[p], 0, v, n);
        }
        act_row(s->wide, i->fn, param[p], v, y, n);
        run_sum(s, e, p, i->cmd, 0, i->flag, y, n);
        store_f32(s, o, p, y);
    }
    return true;
}

/* ---- read-out, both engines ---- */

bool
prep_read(cps_sim *s, insn *i)
{
    i->flag = F(CPS_F_D1_RD_negated) != 0;
    return i->op[0].count == 1 ||
           load_fail(s, i, CPS_E8202, "%u elements; a register is one", i->op[0].count);
}

bool
exec_acc_read(cps_sim *s, engine *e, insn *i)
{
    for (unsigned p = 0; p < i->rows; p++) {
        float v = i->flag ? -e->acc[p] : e->acc[p];
        store_f32(s, &i->op[0], p, &v);
    }
    return true;
}
