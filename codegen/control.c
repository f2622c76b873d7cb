/* Selection of control flow: registers, loops and branches.
 *
 * Every engine runs the whole control flow on registers of its own, which hold the same values
 * everywhere. Around every piece of it stands a barrier: all engines meet, everything is
 * complete, semaphores start again at 0. So counts within a body are those of one pass through
 * it, whichever way led there. Where only registers changed since the last one it is left out:
 *
 *     loop    barrier, reg = a, [skip when reg >= b], body, barrier, reg += 1, again when reg <
 * b when    barrier, [to else when not], then part, barrier, to the end, else part, barrier
 *
 * A load into a register is the sequencer's own read of memory; a barrier on both sides orders
 * it against everything else. */
#include "codegen/select.h"

#define SET(field, value) cps_isa_set(&b, CPS_F_##field, (uint64_t)(value))

static bool
refuse(cps_sel *s, const cps_tinst *x, const char *why)
{
    cps_error(s->g->d, CPS_E5306, x->loc, "'%s': %s", cps_tops[x->op].name, why);
    return false;
}

void
cps_sel_forget(cps_sel *s)
{
    s->w.valid = false;
    s->act_set = s->act_stays ? s->act_set : 0;
    memset(s->fill_known, 0, sizeof s->fill_known);
}

unsigned
cps_sel_scratch(cps_sel *s)
{
    s->scratch_next = (s->scratch_next + 2) % CPS_SEL_SCRATCH;
    return s->scratch + s->scratch_next;
}

static void
seq(cps_sel *s, cps_engine e, const cps_bundle *b, cps_span loc)
{
    cps_sel_op(s, CPS_M_SEQ, e, b, loc);
}

void
cps_sel_move(cps_sel *s, cps_engine e, unsigned to, uint32_t value, cps_span loc)
{
    cps_bundle b = cps_isa_new(CPS_INSN_MOVE, s->g->t->gen);
    SET(CTRL_MV_num_mov, 1);
    SET(CTRL_MV_dtype, cps_dtypes[CPS_DT_I32].wire);
    SET(CTRL_MV_source, CPS_DATA_SRC_IMMEDIATE);
    cps_isa_set_elem(&b, CPS_F_CTRL_MV_dst_regs, 0, to);
    cps_isa_set_elem(&b, CPS_F_CTRL_MV_imm, 0, value);
    seq(s, e, &b, loc);
}

static void
move_reg(cps_sel *s, cps_engine e, unsigned to, unsigned from, cps_span loc)
{
    cps_bundle b = cps_isa_new(CPS_INSN_MOVE, s->g->t->gen);
    SET(CTRL_MV_num_mov, 1);
    SET(CTRL_MV_dtype, cps_dtypes[CPS_DT_I32].wire);
    SET(CTRL_MV_source, CPS_DATA_SRC_REGISTER);
    cps_isa_set_elem(&b, CPS_F_CTRL_MV_dst_regs, 0, to);
    cps_isa_set_elem(&b, CPS_F_CTRL_MV_src_regs, 0, from);
    seq(s, e, &b, loc);
}

static cps_bundle
alu(cps_sel *s, unsigned op, unsigned to, unsigned from)
{
    cps_bundle b = cps_isa_new(CPS_INSN_ALU_OP, s->g->t->gen);
    SET(CTRL_AL_op, op);
    SET(CTRL_AL_dtype, cps_dtypes[CPS_DT_I32].wire);
    SET(CTRL_AL_src0_lo, from);
    SET(CTRL_AL_dst_lo, to);
    return b;
}

void
cps_sel_alu(cps_sel *s, cps_engine e, unsigned op, unsigned to, unsigned from, uint32_t imm,
            cps_span loc)
{
    cps_bundle b = alu(s, op, to, from);
    SET(CTRL_AL_src1_datasrc, CPS_DATA_SRC_IMMEDIATE);
    SET(CTRL_AL_imm, imm);
    seq(s, e, &b, loc);
}

uint8_t
cps_sel_address(cps_sel *s, cps_engine e, const cps_tview *v, uint32_t base, cps_span loc)
{
    unsigned r = cps_sel_scratch(s);
    int64_t step = v->reg_step * cps_dtype_bytes(v->dtype);
    cps_sel_alu(s, e, CPS_ALU_MULT, r, s->reg[v->reg], (uint32_t)(int32_t)step, loc);
    cps_sel_alu(s, e, CPS_ALU_ADD, r, r, base, loc);
    return (uint8_t)r;
}

// ---- the whole core at once ----

static cps_mop *
meet(cps_sel *s, cps_span loc)
{
    cps_bundle none = {{0}};
    cps_mop *m = cps_sel_op(s, CPS_M_BARRIER, CPS_SP, &none, loc);
    cps_sel_forget(s);
    return m;
}

static bool
registers_only(const cps_sel *s, const cps_mop *m)
{
    return m->kind == CPS_M_SEQ &&
           m->code.b[0] != cps_isa_opcode(CPS_INSN_TENSOR_LOAD, s->g->t->gen);
}

// Directly behind another one nothing has happened, and neither where only registers changed:
// labels stand nowhere else, so whoever comes by one left a barrier the same way.
static void
barrier(cps_sel *s, cps_span loc)
{
    uint32_t n = s->p->ops.n;
    while (n && registers_only(s, &s->p->ops.data[n - 1]))
        n--;
    if (!n || s->p->ops.data[n - 1].kind != CPS_M_BARRIER)
        meet(s, loc);
}

static uint32_t
new_label(cps_sel *s)
{
    return ++s->p->labels;
}

static void
put_label(cps_sel *s, uint32_t label, cps_span loc)
{
    cps_bundle b = cps_isa_new(CPS_INSN_NOP, s->g->t->gen);
    for (int e = 0; e < CPS_ENGINES; e++)
        cps_sel_op(s, CPS_M_SEQ, (cps_engine)e, &b, loc)->label = label;
    cps_sel_forget(s);
}

static uint32_t
imm_of(cps_toper o)
{
    return (uint32_t)(o.is_int ? o.ival : (int64_t)o.imm);
}

static bool
is_reg(cps_toper o)
{
    return o.kind == CPS_TO_REG;
}

// The register that holds an operand on engine `e`; numbers go through a scratch register.
static unsigned
in_register(cps_sel *s, cps_engine e, cps_toper o, cps_span loc)
{
    if (is_reg(o))
        return s->reg[o.id];
    unsigned r = cps_sel_scratch(s);
    cps_sel_move(s, e, r, imm_of(o), loc);
    return r;
}

// Comparisons and what they are when the operands change places, or when they fail.
static const struct {
    uint8_t alu, imm, swapped, inverse;
} compares[] = {
    {CPS_ALU_IS_LT, CPS_BR_CMP_OP_LT_IMM, CPS_ALU_IS_GT, CPS_ALU_IS_GE},
    {CPS_ALU_IS_LE, CPS_BR_CMP_OP_LE_IMM, CPS_ALU_IS_GE, CPS_ALU_IS_GT},
    {CPS_ALU_IS_EQ, CPS_BR_CMP_OP_EQ_IMM, CPS_ALU_IS_EQ, CPS_ALU_IS_NE},
    {CPS_ALU_IS_NE, CPS_BR_CMP_OP_NE_IMM, CPS_ALU_IS_NE, CPS_ALU_IS_EQ},
    {CPS_ALU_IS_GE, CPS_BR_CMP_OP_GE_IMM, CPS_ALU_IS_LE, CPS_ALU_IS_LT},
    {CPS_ALU_IS_GT, CPS_BR_CMP_OP_GT_IMM, CPS_ALU_IS_LT, CPS_ALU_IS_LE},
};

static int
compare_row(unsigned alu_op)
{
    for (size_t i = 0; i < cps_countof(compares); i++)
        if (compares[i].alu == alu_op)
            return (int)i;
    return -1;
}

// On every engine: to `label` when a op b. `op` CPS_ALU_BYPASS: always.
static bool
branch(cps_sel *s, const cps_tinst *x, unsigned op, cps_toper a, cps_toper c, uint32_t label)
{
    int row = 0;
    if (op != CPS_ALU_BYPASS) {
        if (!is_reg(a) && is_reg(c)) {
            row = compare_row(op);
            if (row >= 0)
                op = compares[row].swapped;
            cps_toper t = a;
            a = c;
            c = t;
        }
        row = compare_row(op);
        if (row < 0)
            return refuse(s, x, "branches compare by lt, le, eq, ne, ge or gt");
    }
    for (int e = 0; e < CPS_ENGINES; e++) {
        unsigned ra = op == CPS_ALU_BYPASS ? 0 : in_register(s, (cps_engine)e, a, x->loc);
        cps_bundle b = cps_isa_new(CPS_INSN_COMPARE_BRANCH, s->g->t->gen);
        SET(CTRL_BR_target_mode, CPS_BR_TARGET_MODE_RELATIVE_IMMEDIATE);
        if (op != CPS_ALU_BYPASS) {
            SET(CTRL_BR_dtype, cps_dtypes[CPS_DT_I32].wire);
            SET(CTRL_BR_cmp_reg0, ra);
            if (is_reg(c)) {
                SET(CTRL_BR_cmp_op, compares[row].imm + 8); // register forms lie 8 higher
                SET(CTRL_BR_cmp_reg1, s->reg[c.id]);
            } else {
                SET(CTRL_BR_cmp_op, compares[row].imm);
                SET(CTRL_BR_cmp_imm, imm_of(c));
            }
        }
        cps_sel_op(s, CPS_M_SEQ, (cps_engine)e, &b, x->loc)->target = label;
    }
    return true;
}

static void
assign(cps_sel *s, unsigned to, cps_toper from, cps_span loc)
{
    for (int e = 0; e < CPS_ENGINES; e++) {
        if (is_reg(from))
            move_reg(s, (cps_engine)e, to, s->reg[from.id], loc);
        else
            cps_sel_move(s, (cps_engine)e, to, imm_of(from), loc);
    }
}

static bool
load(cps_sel *s, const cps_tinst *x, unsigned to)
{
    const cps_tview *v = cps_sel_view(s, x->in[0]);
    const cps_tbuf *buf = cps_sel_buf(s, v);
    if (buf->space == CPS_PSUM)
        return refuse(s, x, "the sequencer reads SBUF and HBM only");
    if (!cps_dtype_is_int(v->dtype) || cps_dtype_bytes(v->dtype) > 4)
        return refuse(s, x, "registers take integers of up to 32 bits");
    if (v->reg && buf->space == CPS_HBM)
        return refuse(s, x, "the address in HBM must be known; load a tile first");
    barrier(s, x->loc);
    for (int e = 0; e < CPS_ENGINES; e++) {
        uint32_t at = cps_addr_sbuf(buf->part + v->part,
                                    (unsigned)(buf->byte + v->off * cps_dtype_bytes(v->dtype)));
        unsigned r = v->reg ? cps_sel_address(s, (cps_engine)e, v, at, x->loc) : 0;
        if (v->reg)
            cps_sel_move(s, (cps_engine)e, r + 1, 0, x->loc);
        cps_bundle b = cps_isa_new(CPS_INSN_TENSOR_LOAD, s->g->t->gen);
        SET(MEM_2D_dtype, cps_sel_in(v->dtype));
        cps_isa_set_elem(&b, CPS_F_MEM_2D_num_elem, 0, 1);
        cps_isa_set_elem(&b, CPS_F_MEM_2D_num_elem, 1, 1);
        SET(MEM_2D_start, buf->space == CPS_HBM ? 0
                          : v->reg              ? 0x80ull << 56 | (uint64_t)(r + 1) << 8 | r
                                                : at);
        b.b[cps_fields[CPS_F_MEM_2D_data].byte] = (uint8_t)to;
        if (v->reg)
            cps_sel_moved(s, CPS_F_MEM_2D_start, v);
        cps_mop *m = cps_sel_op(s, CPS_M_SEQ, (cps_engine)e, &b, x->loc);
        if (buf->space == CPS_HBM) {
            cps_mreloc o = {CPS_F_MEM_2D_start, s->var[v->buf],
                            v->off * cps_dtype_bytes(v->dtype)};
            cps_vec_push(s->g->arena, &s->p->relocs, o);
            m->nreloc = 1;
        }
    }
    barrier(s, x->loc);
    return true;
}

static bool
arithmetic(cps_sel *s, const cps_tinst *x, unsigned to)
{
    unsigned op = (unsigned)cps_tinst_get(x, CPS_TA_OP0, CPS_ALU_ADD);
    for (int e = 0; e < CPS_ENGINES; e++) {
        unsigned a = in_register(s, (cps_engine)e, x->in[0], x->loc);
        if (!is_reg(x->in[1])) {
            cps_sel_alu(s, (cps_engine)e, op, to, a, imm_of(x->in[1]), x->loc);
            continue;
        }
        cps_bundle b = alu(s, op, to, a);
        SET(CTRL_AL_src1_lo, s->reg[x->in[1].id]);
        seq(s, (cps_engine)e, &b, x->loc);
    }
    return true;
}

static bool
open_loop(cps_sel *s, const cps_tinst *x, unsigned reg)
{
    cps_open o = {.x = x, .again = new_label(s), .end = new_label(s)};
    barrier(s, x->loc);
    assign(s, reg, x->in[0], x->loc);
    bool runs = !is_reg(x->in[0]) && !is_reg(x->in[1]) &&
                (int32_t)imm_of(x->in[0]) < (int32_t)imm_of(x->in[1]);
    if (!runs && !branch(s, x, CPS_ALU_IS_GE, x->out[0], x->in[1], o.end))
        return false;
    put_label(s, o.again, x->loc);
    cps_vec_push(s->g->arena, &s->open, o);
    return true;
}

static bool
close(cps_sel *s, const cps_tinst *x)
{
    cps_open o = s->open.data[--s->open.n];
    barrier(s, x->loc);
    if (o.x->op == CPS_T_LOOP) {
        unsigned reg = s->reg[o.x->out[0].id];
        for (int e = 0; e < CPS_ENGINES; e++)
            cps_sel_alu(s, (cps_engine)e, CPS_ALU_ADD, reg, reg, 1, x->loc);
        if (!branch(s, o.x, CPS_ALU_IS_LT, o.x->out[0], o.x->in[1], o.again))
            return false;
    }
    if (o.past)
        put_label(s, o.past, x->loc);
    put_label(s, o.end, x->loc);
    return true;
}

static bool
open_when(cps_sel *s, const cps_tinst *x)
{
    cps_open o = {.x = x, .past = new_label(s), .end = new_label(s)};
    int row = compare_row((unsigned)cps_tinst_get(x, CPS_TA_OP0, CPS_ALU_IS_NE));
    if (row < 0)
        return refuse(s, x, "branches compare by lt, le, eq, ne, ge or gt");
    barrier(s, x->loc);
    if (!branch(s, x, compares[row].inverse, x->in[0], x->in[1], o.past))
        return false;
    cps_vec_push(s->g->arena, &s->open, o);
    return true;
}

static bool
other_branch(cps_sel *s, const cps_tinst *x)
{
    cps_open *o = &s->open.data[s->open.n - 1];
    barrier(s, x->loc);
    if (!branch(s, x, CPS_ALU_BYPASS, cps_to_imm(0), cps_to_imm(0), o->end))
        return false;
    put_label(s, o->past, x->loc);
    o->past = 0;
    return true;
}

bool
cps_sel_control(cps_sel *s, const cps_tinst *x)
{
    bool writes = x->op == CPS_T_REG_LOAD || x->op == CPS_T_REG_MOVE ||
                  x->op == CPS_T_REG_ALU || x->op == CPS_T_LOOP;
    if (writes && (x->nout < 1 || !is_reg(x->out[0])))
        return refuse(s, x, "the result must be a register");
    if ((x->op == CPS_T_END || x->op == CPS_T_ELSE) && !s->open.n)
        return refuse(s, x, "nothing is open here");
    if (x->op == CPS_T_ELSE && !s->open.data[s->open.n - 1].past)
        return refuse(s, x, "no branch is open here");
    unsigned reg = writes ? s->reg[x->out[0].id] : 0;
    switch ((cps_top)x->op) {
    case CPS_T_REG_LOAD:
        return load(s, x, reg);
    case CPS_T_REG_MOVE:
        assign(s, reg, x->in[0], x->loc);
        return true;
    case CPS_T_REG_ALU:
        return arithmetic(s, x, reg);
    case CPS_T_LOOP:
        return open_loop(s, x, reg);
    case CPS_T_WHEN:
        return open_when(s, x);
    case CPS_T_ELSE:
        return other_branch(s, x);
    case CPS_T_END:
        return close(s, x);
    case CPS_T_CORE_BARRIER: // each counts: the other core may do more between two of them
        meet(s, x->loc)->meets = true;
        return true;
    default: // fence
        barrier(s, x->loc);
        return true;
    }
}
