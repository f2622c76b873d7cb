/* What the static proof knows of the sequencer's instructions: the registers they use, and the
 * bytes that register loads and transfers by index may touch, without reading memory. */
#include "runtime/sim/prove.h"

#define F(x) (unsigned)cps_isa_get(&i->b, x)
#define BIT(r) ((uint64_t)1 << ((r) % REGS))

static void
move_registers(const insn *i, uint64_t *reads, uint64_t *writes)
{
    bool imm = F(CPS_F_CTRL_MV_source) == CPS_DATA_SRC_IMMEDIATE;
    unsigned n = CPS_MIN(F(CPS_F_CTRL_MV_num_mov), 8);
    for (unsigned k = 0; k < n; k++) {
        *writes |= BIT(cps_isa_get_elem(&i->b, CPS_F_CTRL_MV_dst_regs, k));
        if (!imm)
            *reads |= BIT(cps_isa_get_elem(&i->b, CPS_F_CTRL_MV_src_regs, k));
    }
}

static void
alu_registers(const insn *i, uint64_t *reads, uint64_t *writes)
{
    cps_dtype t = cps_isa_dtype(F(CPS_F_CTRL_AL_dtype));
    bool wide = t == CPS_DT_U64 || t == CPS_DT_I64;
    bool imm = F(CPS_F_CTRL_AL_src1_datasrc) == CPS_DATA_SRC_IMMEDIATE;
    *reads |= BIT(F(CPS_F_CTRL_AL_src0_lo));
    *writes |= BIT(F(CPS_F_CTRL_AL_dst_lo));
    if (!imm)
        *reads |= BIT(F(CPS_F_CTRL_AL_src1_lo));
    if (wide) {
        *reads |= BIT(F(CPS_F_CTRL_AL_src0_hi));
        *writes |= BIT(F(CPS_F_CTRL_AL_dst_hi));
        if (!imm)
            *reads |= BIT(F(CPS_F_CTRL_AL_src1_hi));
    }
}

static void
branch_registers(const insn *i, uint64_t *reads)
{
    unsigned op = F(CPS_F_CTRL_BR_cmp_op), mode = F(CPS_F_CTRL_BR_target_mode);
    if (op != CPS_BR_CMP_OP_ALWAYS)
        *reads |= BIT(F(CPS_F_CTRL_BR_cmp_reg0));
    if (op >= CPS_BR_CMP_OP_LT_REG)
        *reads |= BIT(F(CPS_F_CTRL_BR_cmp_reg1));
    if (mode != CPS_BR_TARGET_MODE_RELATIVE_IMMEDIATE)
        *reads |= BIT(F(CPS_F_CTRL_BR_target_reg_lo));
}

bool
seq_registers(const insn *i, uint64_t *reads, uint64_t *writes, bool *branch)
{
    if (i->sem->exec == exec_move)
        move_registers(i, reads, writes);
    else if (i->sem->exec == exec_alu_op)
        alu_registers(i, reads, writes);
    else if (i->sem->exec == exec_branch)
        branch_registers(i, reads);
    else
        return false;
    *branch = i->sem->exec == exec_branch;
    return true;
}

bool
seq_memory(cps_sim *s, engine *e, insn *i, uint64_t *writes)
{
    bool load = i->sem->exec == exec_tensor_load;
    bool pseudo = cps_insns[i->id].format == CPS_FMT_PSEUDO_MEM_2D;
    if (!pseudo) {
        uint64_t a = cps_isa_get(&i->b, CPS_F_MEM_2D_start);
        bool by_reg = ((a >> 56) & 0xFC) == 0x80;
        if (by_reg && (!prove_known(s, e, a & 0xFF) || !prove_known(s, e, a >> 8 & 0xFF)))
            return false;
    }
    rect r[32];
    unsigned n, es;
    if (!seq_window(s, e, i, r, &n, &es))
        return false;
    const uint8_t *data = i->b.b + cps_fields[CPS_F_MEM_2D_data].byte;
    for (unsigned k = 0; k < n; k++) {
        prove_access(s, e, i, &r[k], !load);
        if (load)
            *writes |= BIT(data[k]) | (es == 8 ? BIT(data[k] + 1u) : 0);
        if (load && es == 4)
            prove_loaded(s, e, data[k], &r[k]);
    }
    return true;
}

/* ---- transfers whose descriptors are made when they run ---- */

static bool
known_address(const cps_sim *s, const engine *e, const insn *i, cps_field f)
{
    uint64_t a = cps_isa_get(&i->b, f);
    unsigned mark = (unsigned)(a >> 56) & 0xFC;
    return mark == 0 || (mark == 0x80 && prove_known(s, e, a & 0xFF) &&
                         prove_known(s, e, a >> 8 & 0xFF));
}

bool
dge_static(const cps_sim *s, const engine *e, const insn *i)
{
    bool xpose = i->sem->exec == exec_dma_transpose;
    return known_address(s, e, i, xpose ? CPS_F_DMA_DIRECT2D_XPOSE_src : CPS_F_DMA_DIRECT2D_src) &&
           known_address(s, e, i, xpose ? CPS_F_DMA_DIRECT2D_XPOSE_dst : CPS_F_DMA_DIRECT2D_dst);
}

/* The indices themselves: words of SBUF, partition first. */
static bool
index_rect(cps_sim *s, engine *e, const insn *i, cps_field f, unsigned lanes, unsigned n,
           rect *out)
{
    uint32_t a = (uint32_t)cps_isa_get(&i->b, f);
    if (a >> 24 & 0x80) {
        if (!prove_known(s, e, a & 0x3F))
            return false;
        a = e->reg[a & 0x3F];
    }
    a &= 0x1FFFFFFF;
    if (a >= CPS_PSUM_BASE || lanes == 0 || lanes > LANES)
        return false;
    cps_ap ap = {.addr = a, .nd = 1, .step = {1}, .num = {(uint16_t)cps_ceil_div(n, lanes)}};
    opnd o = {.field = (uint16_t)f};
    if (!opnd_set(s, &o, &ap, CPS_DT_U32, CPS_MIN(lanes, n)) || !opnd_in_memory(s, &o))
        return false;
    *out = opnd_rect(&o);
    return true;
}

/* Rows of one side: all of the variable (or of SBUF) when they are named by index, else row
 * after row from the address on. */
static bool
rows_rect(cps_sim *s, engine *e, const insn *i, cps_field f, bool indexed, int64_t bytes,
          int64_t step, unsigned n, rect *out)
{
    uint64_t a = cps_isa_get(&i->b, f);
    if (((a >> 56) & 0xFC) == 0x80) {
        if (!prove_known(s, e, a & 0xFF) || !prove_known(s, e, a >> 8 & 0xFF))
            return false;
        a = (uint64_t)e->reg[(a >> 8 & 0xFF) % REGS] << 32 | e->reg[(a & 0xFF) % REGS];
    } else if ((a >> 56) & 0xFC) {
        return false;
    }
    if (a < CPS_PSUM_BASE)
        a = addr_of_sb((int64_t)a);
    space sp;
    *out = (rect){.run = bytes};
    if (!addr_resolve(s, a, (uint64_t)bytes, &sp, &out->var, &out->base))
        return false;
    out->space = (uint8_t)sp;
    if (indexed) {
        out->base = 0;
        out->run = sp == SP_HBM ? s->vars.data[out->var].v->bytes : (int64_t)LANES << 18;
    } else if (n > 1) {
        out->nd = 1;
        out->step[0] = step;
        out->num[0] = n;
    }
    rect_close(out);
    return true;
}

bool
dge_rows(cps_sim *s, engine *e, insn *i)
{
    unsigned mode = F(CPS_F_DMA_INDIRECT1D_flags) & 3, n = F(CPS_F_DMA_INDIRECT1D_src_num_elem);
    unsigned lanes = F(CPS_F_DMA_INDIRECT1D_idx_num_active_channels);
    bool by_src = mode != CPS_INDIRECT_DMA_MODE_DST, by_dst = mode != CPS_INDIRECT_DMA_MODE_SRC;
    int64_t fe = F(CPS_F_DMA_INDIRECT1D_src_elem_size),
            te = F(CPS_F_DMA_INDIRECT1D_dst_elem_size);
    fe = fe ? fe : 65536;
    te = te ? te : 65536;
    rect list[2], from, to;
    unsigned lists = 0;
    if (n == 0 || mode > CPS_INDIRECT_DMA_MODE_SRC_DST ||
        !rows_rect(s, e, i, CPS_F_DMA_INDIRECT1D_src, by_src, fe,
                   (int32_t)F(CPS_F_DMA_INDIRECT1D_src_step_elem) * fe, n, &from) ||
        !rows_rect(s, e, i, CPS_F_DMA_INDIRECT1D_dst, by_dst, te,
                   (int32_t)F(CPS_F_DMA_INDIRECT1D_dst_step_elem) * te, n, &to) ||
        (by_src && !index_rect(s, e, i, CPS_F_DMA_INDIRECT1D_src_idx, lanes, n, &list[lists++])) ||
        (by_dst && !index_rect(s, e, i, CPS_F_DMA_INDIRECT1D_dst_idx, lanes, n, &list[lists++])))
        return false;
    if (by_dst || from.space != SP_HBM || !s->vars.data[from.var].quiet) // quiet: it races with nothing
        prove_approx(s);
    if (by_dst)
        prove_scatter(s, i);
    bool in_hbm = from.space == SP_HBM && to.space == SP_HBM;
    if (in_hbm)
        prove_approx(s);
    // Which DMA engine moves which row depends on the rows: all of them may move all.
    block *b = block_new(s, s->making);
    b->queue = e->id;
    b->semaphore = (uint8_t)F(CPS_F_DMA_INDIRECT1D_semaphore);
    b->increment = (uint8_t)F(CPS_F_DMA_INDIRECT1D_sem_increment);
    for (unsigned k = 0; k < lists; k++) {
        prove_look(s, e, i, &list[k]);
        for (unsigned r = 0; r < (unsigned)s->t->dma_engines; r++)
            cps_vec_push(b->arena, &b->ring[r].reads, list[k]);
    }
    cps_vec_push(b->arena, &b->ring[0].reads, from);
    cps_vec_push(b->arena, &b->ring[0].writes, to);
    // A row goes to the engine of its partition of SBUF. On the side of the indices any engine may touch any row: on two
    // rings an access is in no order with any other of the queue.
    if (by_src || in_hbm)
        cps_vec_push(b->arena, &b->ring[1].reads, from);
    if (by_dst || in_hbm)
        cps_vec_push(b->arena, &b->ring[1].writes, to);
    prove_submit(s, e, i, b);
    cps_arena_destroy(b->scratch);
    return true;
}
