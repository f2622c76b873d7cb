/* The sequencer's own instructions: registers, branches, register loads and stores, drain, end.
 */
#include "runtime/sim/machine.h"

#define F(x) (unsigned)cps_isa_get(&i->b, x)

bool
exec_nop(cps_sim *s, engine *e, insn *i)
{
    (void)s;
    (void)e;
    (void)i;
    return true; // waits and updates are everyone's
}

/* Waits for the datapath of its own engine; transfers in flight are not its business. */
bool
exec_drain(cps_sim *s, engine *e, insn *i)
{
    (void)i;
    e->free = CPS_MAX(e->free, e->complete);
    e->vc = vc_with(s, e->vc, s->vc0 + 2u * e->id, e->count);
    e->vc = vc_with(s, e->vc, s->vc0 + 2u * e->id + 1, e->count);
    return true;
}

bool
prep_exit(cps_sim *s, insn *i)
{
    if (F(CPS_F_PSEUDO_INST_sub_op) != CPS_PSEUDO_INST_SUBOP_EXIT)
        return load_fail(s, i, CPS_E8202, "no model of this sub-operation");
    return true;
}

bool
exec_halt(cps_sim *s, engine *e, insn *i)
{
    (void)s;
    (void)i;
    e->halted = true;
    return true;
}

bool
exec_move(cps_sim *s, engine *e, insn *i)
{
    unsigned n = F(CPS_F_CTRL_MV_num_mov);
    bool imm = F(CPS_F_CTRL_MV_source) == CPS_DATA_SRC_IMMEDIATE;
    if (n < 1 || n > 8)
        return run_fault(s, i, CPS_E8305, "%u registers, limit 8", n);
    uint32_t v[8];
    for (unsigned k = 0; k < n; k++)
        v[k] = imm ? (uint32_t)cps_isa_get_elem(&i->b, CPS_F_CTRL_MV_imm, k)
                   : e->reg[cps_isa_get_elem(&i->b, CPS_F_CTRL_MV_src_regs, k) % REGS];
    for (unsigned k = 0; k < n; k++)
        e->reg[cps_isa_get_elem(&i->b, CPS_F_CTRL_MV_dst_regs, k) % REGS] = v[k];
    return true;
}

bool
prep_alu_op(cps_sim *s, insn *i)
{
    unsigned op = F(CPS_F_CTRL_AL_op);
    cps_dtype t = cps_isa_dtype(F(CPS_F_CTRL_AL_dtype));
    bool wide = t == CPS_DT_U64 || t == CPS_DT_I64;
    i->seq = (seq_op){.op = (uint8_t)op,
                      .t = (uint8_t)t,
                      .to = (uint8_t)cps_isa_dtype(F(CPS_F_CTRL_AL_dst_dtype)),
                      .imm = F(CPS_F_CTRL_AL_src1_datasrc) == CPS_DATA_SRC_IMMEDIATE,
                      .a = F(CPS_F_CTRL_AL_src0_lo) % REGS,
                      .b = F(CPS_F_CTRL_AL_src1_lo) % REGS,
                      .dst = F(CPS_F_CTRL_AL_dst_lo) % REGS,
                      .value = F(CPS_F_CTRL_AL_imm)};
    if (t != CPS_DT_I32 && t != CPS_DT_U32 && t != CPS_DT_FP32 && !wide)
        return load_fail(s, i, CPS_E8202, "register arithmetic on this type has no model");
    float x = 0, y;
    if (wide && alu_is_bits(op))
        return load_fail(s, i, CPS_E8202, "bitwise operators on 64 bits have no model");
    if (!alu_is_bits(op) && !alu_is_int(op) && !alu_f32(op, &x, 0, &x, 0, &y, 1))
        return load_fail(s, i, CPS_E8202, "operator 0x%02x is no register operator", op);
    return true;
}

/* A 32-bit result in another register type. */
static uint32_t
converted(cps_dtype from, cps_dtype to, uint32_t v)
{
    if (from == to || to == CPS_DT_NONE || cps_dtype_bytes(to) != 4)
        return v;
    uint32_t out = v;
    cps_from_f32(to, &out, cps_to_f32(from, &v));
    return cps_dtype_is_int(from) && cps_dtype_is_int(to) ? v : out;
}

static uint32_t
alu32(unsigned op, cps_dtype t, uint32_t a, uint32_t b)
{
    if (alu_is_bits(op))
        return alu_bits(op, a, b, 32);
    if (t == CPS_DT_FP32)
        return cps_f32_bits(alu_f32_1(op, cps_bits_f32(a), cps_bits_f32(b)));
    int64_t x = t == CPS_DT_I32 ? (int64_t)(int32_t)a : (int64_t)a;
    int64_t y = t == CPS_DT_I32 ? (int64_t)(int32_t)b : (int64_t)b;
    return (uint32_t)alu_int(op, x, y);
}

static uint64_t
pair_of(const engine *e, unsigned lo, unsigned hi)
{
    return (uint64_t)e->reg[hi % REGS] << 32 | e->reg[lo % REGS];
}

bool
exec_alu_op(cps_sim *s, engine *e, insn *i)
{
    (void)s;
    const seq_op *q = &i->seq;
    cps_dtype t = (cps_dtype)q->t;
    if (t == CPS_DT_U64 || t == CPS_DT_I64) { // register pairs
        bool imm = F(CPS_F_CTRL_AL_src1_datasrc) == CPS_DATA_SRC_IMMEDIATE;
        uint64_t x = pair_of(e, F(CPS_F_CTRL_AL_src0_lo), F(CPS_F_CTRL_AL_src0_hi));
        uint64_t y = imm ? cps_isa_get(&i->b, CPS_F_CTRL_AL_imm)
                         : pair_of(e, F(CPS_F_CTRL_AL_src1_lo), F(CPS_F_CTRL_AL_src1_hi));
        uint64_t r = (uint64_t)alu_int(F(CPS_F_CTRL_AL_op), (int64_t)x, (int64_t)y);
        e->reg[F(CPS_F_CTRL_AL_dst_lo) % REGS] = (uint32_t)r;
        e->reg[F(CPS_F_CTRL_AL_dst_hi) % REGS] = (uint32_t)(r >> 32);
        return true;
    }
    uint32_t b = q->imm ? q->value : e->reg[q->b];
    e->reg[q->dst] = converted(t, (cps_dtype)q->to, alu32(q->op, t, e->reg[q->a], b));
    return true;
}

bool
prep_branch(cps_sim *s, insn *i)
{
    unsigned op = F(CPS_F_CTRL_BR_cmp_op), mode = F(CPS_F_CTRL_BR_target_mode);
    i->seq = (seq_op){.op = (uint8_t)op,
                      .t = (uint8_t)cps_isa_dtype(F(CPS_F_CTRL_BR_dtype)),
                      .mode = (uint8_t)mode,
                      .imm = op < CPS_BR_CMP_OP_LT_REG,
                      .a = F(CPS_F_CTRL_BR_cmp_reg0) % REGS,
                      .b = F(CPS_F_CTRL_BR_cmp_reg1) % REGS,
                      .dst = F(CPS_F_CTRL_BR_target_reg_lo) % REGS,
                      .value = F(CPS_F_CTRL_BR_cmp_imm),
                      .by = (int64_t)cps_isa_get(&i->b, CPS_F_CTRL_BR_branch)};
    if (op > CPS_BR_CMP_OP_GT_REG || op == 7 || op == 8)
        return load_fail(s, i, CPS_E8202, "unknown comparison %u", op);
    if (mode != CPS_BR_TARGET_MODE_RELATIVE_IMMEDIATE &&
        mode != CPS_BR_TARGET_MODE_RELATIVE_REGISTER && mode != CPS_BR_TARGET_MODE_REGISTER)
        return load_fail(s, i, CPS_E8202, "unknown target mode %u", mode);
    return true;
}

/* Targets count bundles: relative ones from the branch itself (the unit is not published,
 * records are inferred from the runtime's small offsets). */
bool
exec_branch(cps_sim *s, engine *e, insn *i)
{
    const seq_op *q = &i->seq;
    unsigned op = q->op, mode = q->mode;
    int64_t a = (int32_t)e->reg[q->a];
    int64_t b = (int32_t)(q->imm ? q->value : e->reg[q->b]);
    if (q->t == CPS_DT_U32) {
        a = (uint32_t)a;
        b = (uint32_t)b;
    }
    bool take = true;
    switch (op >= CPS_BR_CMP_OP_LT_REG ? op - 8 : op) {
    case CPS_BR_CMP_OP_LT_IMM:
        take = a < b;
        break;
    case CPS_BR_CMP_OP_LE_IMM:
        take = a <= b;
        break;
    case CPS_BR_CMP_OP_EQ_IMM:
        take = a == b;
        break;
    case CPS_BR_CMP_OP_NE_IMM:
        take = a != b;
        break;
    case CPS_BR_CMP_OP_GE_IMM:
        take = a >= b;
        break;
    case CPS_BR_CMP_OP_GT_IMM:
        take = a > b;
        break;
    default:
        break;
    }
    if (!take)
        return true;
    int64_t by = mode == CPS_BR_TARGET_MODE_RELATIVE_IMMEDIATE ? q->by : (int32_t)e->reg[q->dst];
    int64_t to;
    if (__builtin_add_overflow(mode == CPS_BR_TARGET_MODE_REGISTER ? 0 : (int64_t)i->index, by,
                               &to) ||
        to < 0 || to > e->n)
        return run_fault(s, i, CPS_E8302, "branch to bundle %lld of %u",
                         (long long)i->index + by, e->n);
    e->pc = (uint32_t)to;
    return true;
}

/* ---- registers and memory ---- */

typedef struct window {
    uint64_t addr;
    int64_t step[2];
    unsigned n[2];
    cps_dtype t;
    unsigned es;
} window;

static bool
window_of(cps_sim *s, engine *e, insn *i, window *w)
{
    bool pseudo = cps_insns[i->id].format == CPS_FMT_PSEUDO_MEM_2D;
    cps_field num = pseudo ? CPS_F_PSEUDO_MEM_2D_num_elem : CPS_F_MEM_2D_num_elem;
    cps_field step = pseudo ? CPS_F_PSEUDO_MEM_2D_step_elem : CPS_F_MEM_2D_step_elem;
    w->t = cps_isa_dtype(F(pseudo ? CPS_F_PSEUDO_MEM_2D_dtype : CPS_F_MEM_2D_dtype));
    w->es = w->t ? cps_dtype_bytes(w->t) : 0;
    for (unsigned d = 0; d < 2; d++) {
        w->n[d] = (unsigned)cps_isa_get_elem(&i->b, num, d);
        w->step[d] = (int32_t)cps_isa_get_elem(&i->b, step, d) * (int64_t)w->es;
    }
    if (w->es == 0 || w->n[0] < 1 || w->n[1] < 1 || w->n[0] * w->n[1] > 32)
        return run_fault(s, i, CPS_E8305, "%u x %u elements, limit 32", w->n[1], w->n[0]);
    if (pseudo) {
        unsigned var = F(CPS_F_PSEUDO_MEM_2D_var_id);
        if (var >= s->vars.n)
            return run_fault(s, i, CPS_E8302, "there is no variable %u", var);
        w->addr = s->vars.data[var].addr + F(CPS_F_PSEUDO_MEM_2D_var_offset);
        return true;
    }
    uint64_t a = cps_isa_get(&i->b, CPS_F_MEM_2D_start);
    unsigned mark = (unsigned)(a >> 56) & 0xFC;
    if (mark == 0x80)
        a = (uint64_t)e->reg[(a >> 8 & 0xFF) % REGS] << 32 | e->reg[(a & 0xFF) % REGS];
    else if (mark)
        return run_fault(s, i, CPS_E8305, "address form 0x%02x has no model here", mark);
    w->addr = a < CPS_PSUM_BASE ? addr_of_sb((int64_t)a) : a;
    const cps_kextent *x = extent_of(s, i, CPS_F_MEM_2D_start);
    const side all = {.addr = w->addr,
                      .nd = 3,
                      .step = {1, w->step[0], w->step[1]},
                      .size = {w->es, w->n[0], w->n[1]}};
    return !x || extent_side(s, i, x, &all);
}

static bool
at_window(cps_sim *s, engine *e, insn *i, const window *w, unsigned k, bool write,
          uint8_t **out, uint8_t **init)
{
    uint64_t a = w->addr + (uint64_t)(w->step[0] * (k % w->n[0]) + w->step[1] * (k / w->n[0]));
    space sp;
    rect r = {.run = w->es};
    if (s->opts.no_data)
        return run_fault(s, i, CPS_E8307, "a register is loaded from memory");
    if (!addr_resolve(s, a, w->es, &sp, &r.var, &r.base)) {
        s->rep.bounds++;
        return run_fault(s, i, CPS_E8302, "address 0x%llx is no memory", (unsigned long long)a);
    }
    r.space = (uint8_t)sp;
    if (write && sp == SP_HBM && s->vars.data[r.var].v->kind == CPS_VAR_DATA)
        return run_fault(s, i, CPS_E8302, "'%s' is a constant", s->vars.data[r.var].v->name);
    rect_close(&r);
    *out = addr_bytes(s, a, w->es, false, init);
    if (!write)
        check_read(s, i, &r);
    if (s->opts.checks & CPS_CHECK_RACES)
        race_access(s, &r, write, i, e->vc, true);
    return true;
}

bool
seq_window(cps_sim *s, engine *e, insn *i, rect *out, unsigned *n, unsigned *es)
{
    window w;
    if (!window_of(s, e, i, &w))
        return false;
    *n = w.n[0] * w.n[1];
    *es = w.es;
    for (unsigned k = 0; k < *n; k++) {
        uint64_t a = w.addr + (uint64_t)(w.step[0] * (k % w.n[0]) + w.step[1] * (k / w.n[0]));
        space sp;
        out[k] = (rect){.run = w.es};
        if (!addr_resolve(s, a, w.es, &sp, &out[k].var, &out[k].base))
            return false;
        out[k].space = (uint8_t)sp;
        rect_close(&out[k]);
    }
    return true;
}

bool
exec_tensor_load(cps_sim *s, engine *e, insn *i)
{
    window w;
    uint8_t *at, *init;
    if (!window_of(s, e, i, &w))
        return false;
    e->count++;
    for (unsigned k = 0; k < w.n[0] * w.n[1]; k++) {
        if (!at_window(s, e, i, &w, k, false, &at, &init))
            return false;
        unsigned reg = i->b.b[cps_fields[CPS_F_MEM_2D_data].byte + k];
        if (reg >= REGS || (w.es == 8 && reg + 1 >= REGS))
            return run_fault(s, i, CPS_E8305, "there is no register %u", reg);
        uint64_t v = 0;
        if (cps_dtype_is_int(w.t))
            v = (uint64_t)cps_to_i64(w.t, at);
        else
            memcpy(&v, at, w.es);
        e->reg[reg] = (uint32_t)v;
        if (w.es == 8)
            e->reg[reg + 1] = (uint32_t)(v >> 32);
    }
    return true;
}

bool
exec_tensor_store(cps_sim *s, engine *e, insn *i)
{
    window w;
    uint8_t *at, *init;
    if (!window_of(s, e, i, &w))
        return false;
    bool pseudo = cps_insns[i->id].format == CPS_FMT_PSEUDO_MEM_2D;
    bool imm = F(pseudo ? CPS_F_PSEUDO_MEM_2D_src_datasrc : CPS_F_MEM_2D_src_datasrc) ==
               CPS_DATA_SRC_IMMEDIATE;
    const uint8_t *data = i->b.b + cps_fields[CPS_F_MEM_2D_data].byte;
    if (imm && w.n[0] * w.n[1] * w.es > 32)
        return run_fault(s, i, CPS_E8305, "more than 32 bytes of immediates");
    e->count++;
    for (unsigned k = 0; k < w.n[0] * w.n[1]; k++) {
        if (!at_window(s, e, i, &w, k, true, &at, &init))
            return false;
        uint64_t v = 0;
        if (imm) {
            memcpy(&v, data + k * w.es, w.es);
        } else {
            unsigned reg = data[k];
            if (reg >= REGS || (w.es == 8 && reg + 1 >= REGS))
                return run_fault(s, i, CPS_E8305, "there is no register %u", reg);
            v = e->reg[reg] | (w.es == 8 ? (uint64_t)e->reg[reg + 1] << 32 : 0);
        }
        memcpy(at, &v, w.es);
        if (init)
            memset(init, 1, w.es);
    }
    return true;
}
