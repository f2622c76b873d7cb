/* Kernels with loops, for tests of the static proof: as the compiler makes them, barriers before and after each
 * body, with operands and transfers whose addresses move; random ones, many with a fault: a wait that is dropped or
 * lowered, an update that is missing, a step that differs. */
#ifndef CPS_TESTS_SIM_TURNS_H
#define CPS_TESTS_SIM_TURNS_H

#include "runtime/base/rng.h"
#include "tests/sim/kb.h"

enum {
    SP, POOL, DVE, UNITS, /* engines at work */
    GO = 3, ACK, ARRIVE, DONE /* + unit */, MOVED = DONE + UNITS, /* + transfer of the section */
    LIMIT = 40,
    CARRIED = 3, CARRIES = 3, /* registers; before: counters of loops */
    SCRATCH = 10, /* from here on */
    SLOT = 64,
    ROOM = 1 << 16 /* bytes of the variables */
};

static const cps_engine engines[UNITS] = {CPS_SP, CPS_POOL, CPS_DVE};

/* An address: base + step i, i a register, mostly the counter of a loop; `reg` < 0: it stands still. */
typedef struct place {
    int64_t base, step;
    int reg;
} place;

typedef struct made {
    kb b;
    uint32_t in, out, both;
    unsigned raised[UNITS], transfers;
    unsigned last; /* semaphore and value of the latest operation; 0: the section begins */
    unsigned value;
    cps_rng *g; /* NULL: no faults */
    unsigned rate; /* one wait in so many is spoilt */
    unsigned scratch;
    bool silent; /* transfers tell nobody */
    int64_t apart; /* added to places of `both` */
} made;

static inline uint32_t
below(cps_rng *g, uint32_t n)
{
    return (uint32_t)cps_rng_below(g, n);
}

static inline bool
spoil(made *m)
{
    return m->g && m->rate && below(m->g, m->rate) == 0;
}

/* Core `core` of `cores`, which have `both` in common. */
static inline made
begin_core(int core, int cores)
{
    made m = {.b = kb_new("trn2")};
    m.b.k->core = core;
    m.b.k->cores = cores;
    m.in = kb_var(&m.b, "x", CPS_VAR_INPUT, CPS_DT_U8, ROOM);
    m.out = kb_var(&m.b, "y", CPS_VAR_OUTPUT, CPS_DT_U8, ROOM);
    m.both = kb_var(&m.b, "z", cores > 1 ? CPS_VAR_SHARED : CPS_VAR_TMP, CPS_DT_U8, ROOM);
    return m;
}

static inline made
begin(void)
{
    return begin_core(0, 1);
}

/* ---- control ---- */

static inline void
event(made *m, unsigned u, unsigned mode, unsigned sem, unsigned value, unsigned raise)
{
    cps_bundle x = kb_insn(&m->b, CPS_INSN_EVENT_SEMAPHORE);
    cps_isa_set_event(&x, mode, sem, value, raise);
    kb_put(&m->b, engines[u], x);
}

static inline void
clear(made *m, unsigned first, unsigned last)
{
    cps_bundle x = kb_insn(&m->b, CPS_INSN_EVENT_SEMAPHORE_RANGE_CLEAR);
    cps_isa_set_clear(&x, first, last);
    kb_put(&m->b, CPS_SP, x);
}

/* As codegen/sync.c has it. */
static inline void
barrier(made *m)
{
    for (unsigned u = 0; u < UNITS; u++)
        kb_put(&m->b, engines[u], kb_insn(&m->b, CPS_INSN_DRAIN));
    for (unsigned u = 1; u < UNITS; u++) {
        event(m, u, CPS_WAIT_NONE, 0, 0, spoil(m) && below(m->g, 4) == 0 ? 0 : ARRIVE);
        event(m, u, CPS_WAIT_SEM_GE_IMM, GO, 1, ACK);
        event(m, u, CPS_WAIT_SEM_EQ_IMM, GO, 0, 0);
    }
    for (unsigned k = 0; k < m->transfers; k++)
        if (!spoil(m))
            event(m, SP, CPS_WAIT_SEM_GE_IMM, MOVED + k, 16, 0);
    if (!spoil(m))
        event(m, SP, CPS_WAIT_SEM_GE_IMM, ARRIVE, UNITS - 1, 0);
    clear(m, ARRIVE, LIMIT);
    event(m, SP, CPS_WAIT_NONE, 0, 0, GO);
    event(m, SP, CPS_WAIT_SEM_GE_IMM, ACK, UNITS - 1, 0);
    clear(m, GO, ACK);
    memset(m->raised, 0, sizeof m->raised);
    m->transfers = m->last = 0;
}

static inline void
set(made *m, unsigned u, unsigned reg, uint32_t value)
{
    cps_bundle x = kb_insn(&m->b, CPS_INSN_MOVE);
    cps_isa_set(&x, CPS_F_CTRL_MV_num_mov, 1);
    cps_isa_set(&x, CPS_F_CTRL_MV_dtype, wire(CPS_DT_I32));
    cps_isa_set(&x, CPS_F_CTRL_MV_source, CPS_DATA_SRC_IMMEDIATE);
    cps_isa_set_elem(&x, CPS_F_CTRL_MV_dst_regs, 0, reg);
    cps_isa_set_elem(&x, CPS_F_CTRL_MV_imm, 0, value);
    kb_put(&m->b, engines[u], x);
}

/* to = from op b, a number or (`by_reg`) a register. */
static inline void
alu2(made *m, unsigned u, unsigned op, unsigned to, unsigned from, bool by_reg, uint32_t b)
{
    cps_bundle x = kb_insn(&m->b, CPS_INSN_ALU_OP);
    cps_isa_set(&x, CPS_F_CTRL_AL_op, op);
    cps_isa_set(&x, CPS_F_CTRL_AL_dtype, wire(CPS_DT_I32));
    cps_isa_set(&x, CPS_F_CTRL_AL_src0_lo, from);
    cps_isa_set(&x, CPS_F_CTRL_AL_dst_lo, to);
    if (by_reg) {
        cps_isa_set(&x, CPS_F_CTRL_AL_src1_lo, b);
    } else {
        cps_isa_set(&x, CPS_F_CTRL_AL_src1_datasrc, CPS_DATA_SRC_IMMEDIATE);
        cps_isa_set(&x, CPS_F_CTRL_AL_imm, b);
    }
    kb_put(&m->b, engines[u], x);
}

static inline void
alu(made *m, unsigned u, unsigned op, unsigned to, unsigned from, uint32_t imm)
{
    alu2(m, u, op, to, from, false, imm);
}

/* On all engines. */
static inline void
alu_all(made *m, unsigned op, unsigned to, unsigned from, bool by_reg, uint32_t b)
{
    for (unsigned u = 0; u < UNITS; u++)
        alu2(m, u, op, to, from, by_reg, b);
}

/* `by` of register `other` (< 0: of a number): to `by` bundles away. Returns where. */
static inline uint32_t
branch(made *m, unsigned u, unsigned op, unsigned reg, int other, uint32_t than, int64_t by)
{
    cps_bundle x = kb_insn(&m->b, CPS_INSN_COMPARE_BRANCH);
    cps_isa_set(&x, CPS_F_CTRL_BR_target_mode, CPS_BR_TARGET_MODE_RELATIVE_IMMEDIATE);
    cps_isa_set(&x, CPS_F_CTRL_BR_dtype, wire(CPS_DT_I32));
    cps_isa_set(&x, CPS_F_CTRL_BR_cmp_op, op + (other < 0 ? 0 : 8));
    cps_isa_set(&x, CPS_F_CTRL_BR_cmp_reg0, reg);
    if (other < 0)
        cps_isa_set(&x, CPS_F_CTRL_BR_cmp_imm, than);
    else
        cps_isa_set(&x, CPS_F_CTRL_BR_cmp_reg1, (unsigned)other);
    cps_isa_set(&x, CPS_F_CTRL_BR_branch, (uint64_t)by);
    kb_put(&m->b, engines[u], x);
    return m->b.k->stream[engines[u]].code.n - 1;
}

typedef struct open {
    uint32_t at[UNITS];
} open_;

static inline open_
loop(made *m, unsigned reg, uint32_t from)
{
    open_ o;
    barrier(m);
    for (unsigned u = 0; u < UNITS; u++) {
        set(m, u, reg, from);
        o.at[u] = m->b.k->stream[engines[u]].code.n;
        kb_put(&m->b, engines[u], kb_insn(&m->b, CPS_INSN_NOP));
    }
    return o;
}

/* Again while the counter is below `to`, or below register `other`. */
static inline void
again(made *m, open_ o, unsigned reg, int other, uint32_t to)
{
    barrier(m);
    for (unsigned u = 0; u < UNITS; u++) {
        alu(m, u, CPS_ALU_ADD, reg, reg, 1);
        branch(m, u, CPS_BR_CMP_OP_LT_IMM, reg, other, to, (int64_t)o.at[u] - m->b.k->stream[engines[u]].code.n);
    }
}

/* What follows, up to `end_when`, only where the counter compares so. */
static inline open_
when_not(made *m, unsigned op, unsigned reg, uint32_t than)
{
    open_ o;
    barrier(m);
    for (unsigned u = 0; u < UNITS; u++)
        o.at[u] = branch(m, u, op, reg, -1, than, 0);
    return o;
}

static inline void
end_when(made *m, open_ o)
{
    barrier(m);
    for (unsigned u = 0; u < UNITS; u++)
        cps_isa_set(&m->b.k->stream[engines[u]].code.data[o.at[u]], CPS_F_CTRL_BR_branch,
                    m->b.k->stream[engines[u]].code.n - o.at[u]);
}

/* ---- operations ---- */

static inline unsigned
scratch(made *m)
{
    m->scratch = (m->scratch + 2) % 16;
    return SCRATCH + m->scratch;
}

static inline uint32_t
operand(made *m, unsigned u, place at)
{
    if (at.reg < 0)
        return (uint32_t)at.base;
    unsigned r = scratch(m);
    alu(m, u, CPS_ALU_MULT, r, (unsigned)at.reg, (uint32_t)at.step);
    alu(m, u, CPS_ALU_ADD, r, r, (uint32_t)at.base);
    return CPS_ADDR_REG | r;
}

static inline void
wait_last(made *m, cps_bundle *x, bool ordered)
{
    if (!m->last || !ordered || spoil(m))
        return;
    bool lower = spoil(m);
    kb_wait(x, m->last, m->value - (lower && m->value > 1));
}

/* 64 bytes of a partition are set, or copied; it waits for the operation before. */
static inline void
work(made *m, unsigned u, bool copies, place from, place to, bool ordered)
{
    cps_bundle x = kb_insn(&m->b, copies ? CPS_INSN_COPY : CPS_INSN_MEMSET);
    uint32_t f = copies ? operand(m, u, from) : 0, t = operand(m, u, to);
    if (copies) {
        kb_ap(&x, CPS_F_S4D4_TR_src, ap1(f, 16));
        kb_ap(&x, CPS_F_S4D4_TR_dst, ap1(t, 16));
        cps_isa_set(&x, CPS_F_S4D4_TR_in_dtype, wire(CPS_DT_FP32));
        cps_isa_set(&x, CPS_F_S4D4_TR_out_dtype, wire(CPS_DT_FP32));
        cps_isa_set(&x, CPS_F_S4D4_TR_ch, 1);
    } else {
        kb_ap(&x, CPS_F_D4_MR_dst, ap1(t, 16));
        cps_isa_set(&x, CPS_F_D4_MR_dtype, wire(CPS_DT_FP32));
        cps_isa_set(&x, CPS_F_D4_MR_ch, 1);
        cps_isa_set(&x, CPS_F_D4_MR_dst_element_count, 16);
    }
    wait_last(m, &x, ordered);
    if (!spoil(m)) {
        kb_inc(&x, DONE + u);
        m->last = DONE + u;
        m->value = ++m->raised[u];
    }
    kb_put(&m->b, engines[u], x);
}

/* The address of one side in its field, as codegen/dge.c has it. */
static inline void
put_side(made *m, unsigned u, cps_bundle *x, cps_field f, uint32_t var, place at)
{
    cps_kstream *s = &m->b.k->stream[engines[u]];
    if (at.reg < 0 && var) {
        cps_kreloc r = {engines[u], s->code.n, f, var, at.base};
        cps_vec_push(m->b.a, &m->b.k->relocs, r);
        return;
    }
    if (at.reg < 0) {
        cps_isa_set(x, f, (uint64_t)at.base);
        return;
    }
    unsigned r = scratch(m);
    alu(m, u, CPS_ALU_MULT, r, (unsigned)at.reg, (uint32_t)at.step);
    set(m, u, r + 1, 0);
    if (var) {
        cps_bundle a = kb_insn(&m->b, CPS_INSN_ALU_OP);
        cps_isa_set(&a, CPS_F_CTRL_AL_op, CPS_ALU_ADD);
        cps_isa_set(&a, CPS_F_CTRL_AL_dtype, wire(CPS_DT_U64));
        cps_isa_set(&a, CPS_F_CTRL_AL_src1_datasrc, CPS_DATA_SRC_IMMEDIATE);
        cps_isa_set(&a, CPS_F_CTRL_AL_src0_lo, r);
        cps_isa_set(&a, CPS_F_CTRL_AL_src0_hi, r + 1);
        cps_isa_set(&a, CPS_F_CTRL_AL_dst_lo, r);
        cps_isa_set(&a, CPS_F_CTRL_AL_dst_hi, r + 1);
        cps_kreloc l = {engines[u], s->code.n, CPS_F_CTRL_AL_imm, var, at.base};
        cps_vec_push(m->b.a, &m->b.k->relocs, l);
        kb_put(&m->b, engines[u], a);
    } else {
        alu(m, u, CPS_ALU_ADD, r, r, (uint32_t)at.base);
    }
    cps_isa_set(x, f, 0x80ull << 56 | (uint64_t)(r + 1) << 8 | r);
}

/* 4 partitions of 64 bytes to or from rows of a variable that are `pitch` * 64 bytes apart. */
static inline void
transfer(made *m, unsigned u, bool load, uint32_t var, place far, place near, unsigned pitch, bool ordered)
{
    far.base += var == m->both ? m->apart : 0;
    cps_bundle x = kb_insn(&m->b, CPS_INSN_DMA_MEMCPY);
    cps_isa_set(&x, CPS_F_DMA_DIRECT2D_sem_increment, m->silent ? 0 : 16);
    cps_isa_set(&x, CPS_F_DMA_DIRECT2D_semaphore, MOVED + m->transfers);
    cps_isa_set(&x, CPS_F_DMA_DIRECT2D_src_elem_size, 64);
    cps_isa_set(&x, CPS_F_DMA_DIRECT2D_dst_elem_size, 64);
    for (unsigned d = 0; d < 2; d++) {
        cps_isa_set_elem(&x, CPS_F_DMA_DIRECT2D_src_step_elem, d, d ? 1 : load ? pitch : CPS_SBUF_STRIDE / 64);
        cps_isa_set_elem(&x, CPS_F_DMA_DIRECT2D_dst_step_elem, d, d ? 1 : load ? CPS_SBUF_STRIDE / 64 : pitch);
        cps_isa_set_elem(&x, CPS_F_DMA_DIRECT2D_src_num_elem, d, d ? 1 : 4);
        cps_isa_set_elem(&x, CPS_F_DMA_DIRECT2D_dst_num_elem, d, d ? 1 : 4);
    }
    cps_isa_set(&x, CPS_F_DMA_DIRECT2D_in_dtype, wire(CPS_DT_U8));
    cps_isa_set(&x, CPS_F_DMA_DIRECT2D_out_dtype, wire(CPS_DT_U8));
    put_side(m, u, &x, CPS_F_DMA_DIRECT2D_src, load ? var : 0, load ? far : near);
    if (load) { // a relocation names the bundle that follows the address
        put_side(m, u, &x, CPS_F_DMA_DIRECT2D_dst, 0, near);
        for (uint32_t k = m->b.k->relocs.n; far.reg < 0 && k-- > 0;)
            if (m->b.k->relocs.data[k].field == CPS_F_DMA_DIRECT2D_src && m->b.k->relocs.data[k].engine == engines[u]) {
                m->b.k->relocs.data[k].index = m->b.k->stream[engines[u]].code.n;
                break;
            }
    } else {
        put_side(m, u, &x, CPS_F_DMA_DIRECT2D_dst, var, far);
    }
    wait_last(m, &x, ordered);
    kb_put(&m->b, engines[u], x);
    if (m->silent)
        return;
    m->last = MOVED + m->transfers++;
    m->value = 16;
}

static inline place
still(int64_t base)
{
    return (place){.base = base, .reg = -1};
}

static inline place
moves(int64_t base, int64_t step)
{
    return (place){base, step, 0};
}

/* ---- random kernels ---- */

static inline place
any_place(cps_rng *g, int depth, int64_t unit)
{
    static const int step[] = {0, 1, 1, 1, 2, 2, -1, 4};
    place p = still(unit * below(g, 12));
    if (depth && below(g, 2)) {
        p.reg = below(g, 4) ? (int)below(g, (uint32_t)depth) : CARRIED + (int)below(g, CARRIES);
        p.step = unit * step[below(g, cps_countof(step))];
        if (p.step < 0)
            p.base += 60 * unit;
        if (below(g, 8) == 0)
            p.step /= 2;
    }
    return p;
}

/* Registers that a turn changes, kept small. */
static inline void
carry(made *m, cps_rng *g, int depth)
{
    unsigned r = CARRIED + below(g, CARRIES), with = CARRIED + below(g, CARRIES);
    if (below(g, 2))
        with = below(g, (uint32_t)depth);
    switch (below(g, 7)) {
    case 6:
        alu_all(m, below(g, 2) ? CPS_ALU_MAX : CPS_ALU_MIN, r, with, below(g, 2), below(g, 6));
        break;
    case 0:
        alu_all(m, CPS_ALU_MULT, r, with, false, below(g, 4));
        break;
    case 1:
        alu_all(m, CPS_ALU_ADD, r, r, true, with);
        break;
    case 2:
        alu_all(m, CPS_ALU_MULT, r, r, true, with);
        break;
    case 3:
        alu_all(m, CPS_ALU_SUBTRACT, r, r, true, with);
        break;
    case 4:
        for (unsigned u = 0; u < UNITS; u++)
            set(m, u, r, with);
        return;
    default:
        alu_all(m, CPS_ALU_ADD, r, r, false, 1 + below(g, 2));
    }
    if (below(g, 2))
        alu_all(m, CPS_ALU_BITWISE_AND, r, r, false, 63);
}

static inline void
body(made *m, cps_rng *g, int depth, unsigned n)
{
    if (depth && below(g, 3) == 0)
        carry(m, g, depth);
    for (unsigned k = 0; k < n; k++) {
        bool ordered = below(g, 12) != 0;
        if (below(g, 3) == 0 && m->transfers < 8)
            transfer(m, below(g, 2) ? SP : POOL, below(g, 2), below(g, 3) ? m->both : m->in, any_place(g, depth, 64),
                     any_place(g, depth, 64), below(g, 2) ? 1 : 64, ordered);
        else
            work(m, below(g, 2) ? POOL : DVE, below(g, 2), any_place(g, depth, 64), any_place(g, depth, 64), ordered);
    }
}

static inline void
part(made *m, cps_rng *g, int depth)
{
    static const uint32_t turns[] = {1, 2, 3, 5, 6, 7, 9, 14, 30};
    body(m, g, depth, below(g, 4));
    for (unsigned k = depth < 3 ? below(g, 3 - (unsigned)depth + (depth == 0)) : 0; k > 0; k--) {
        int other = depth && below(g, 6) == 0 ? depth - 1 : -1;
        open_ o = loop(m, (unsigned)depth, below(g, 4) == 0);
        part(m, g, depth + 1);
        again(m, o, (unsigned)depth, other, turns[below(g, cps_countof(turns))]);
        body(m, g, depth, below(g, 3));
    }
    if (depth && below(g, 4) == 0) {
        static const unsigned ops[] = {CPS_BR_CMP_OP_NE_IMM, CPS_BR_CMP_OP_EQ_IMM, CPS_BR_CMP_OP_LT_IMM,
                                       CPS_BR_CMP_OP_GE_IMM};
        unsigned of = below(g, 3) ? below(g, (uint32_t)depth) : CARRIED + below(g, CARRIES);
        open_ w = when_not(m, ops[below(g, 4)], of, below(g, 9));
        body(m, g, depth, 1 + below(g, 2));
        end_when(m, w);
        body(m, g, depth, below(g, 2));
    }
}

#endif
