/* What registers and footprints do from turn to turn of the loops under watch (prove_loop.c).
 *
 * A register that drifts holds a + i d in turn i, modulo 2^32. Sums and differences of such numbers are
 * such numbers, so are multiples, and so is the larger or smaller of two as long as it is the same one.
 * With several loops under watch a number is a + i d + j e; the product of two that drift is none, nor
 * is anything else that is computed from one: they are wild. What a turn does with a number that drifts
 * sets bounds: a comparison must come out as it did, an address must stay in its partition or variable,
 * and none may run over the ends of its type. All are linear, so what holds at the corners of a range of
 * turns holds everywhere between them. */
#include "runtime/sim/prove_loop.h"

#define F(x) (unsigned)cps_isa_get(&i->b, x)

enum { FAR = 62 }; /* bits of a bound that is none */

static const drift none;

void
drift_spoil(prover *p)
{
    p->loops->spoilt |= p->loops->watched;
}

void
drift_uses(prover *p, unsigned e, uint64_t reads, uint64_t writes)
{
    loops *x = p->loops;
    for (unsigned l = 0; l < x->depth; l++) {
        x->at[l].used[e] |= reads & ~x->at[l].written[e];
        x->at[l].written[e] |= writes;
    }
}

static const drift *
read_register(prover *p, const engine *e, unsigned reg)
{
    drift_uses(p, e->id, (uint64_t)1 << reg % REGS, 0);
    return &p->loops->reg[e->id][reg % REGS];
}

/* The loops in which it is not always the same. */
static uint8_t
moving(const drift *d)
{
    unsigned bits = d->wild;
    for (unsigned l = 0; l < LOOPS_MAX; l++)
        bits |= (unsigned)(d->by[l] != 0) << l;
    return (uint8_t)bits;
}

static drift
wild_of(const drift *a, const drift *b)
{
    return (drift){.wild = moving(a) | moving(b)};
}

/* a + n b */
static drift
sum(const drift *a, const drift *b, uint32_t n)
{
    drift r = {.wild = a->wild | b->wild};
    for (unsigned l = 0; l < LOOPS_MAX; l++)
        r.by[l] = (int32_t)((uint32_t)a->by[l] + (uint32_t)b->by[l] * n);
    return r;
}

/* ---- bounds ---- */

/* Of the difference of two numbers. */
static void
keep(prover *p, const drift *a, const drift *b, bound x)
{
    loops *w = p->loops;
    w->spoilt |= a->wild | b->wild;
    bool any = false;
    for (unsigned l = 0; l < LOOPS_MAX; l++) {
        x.by[l] = (int64_t)a->by[l] - b->by[l];
        any |= x.by[l] != 0;
    }
    if (any)
        cps_vec_push(p->s->run_arena, &w->bounds, x);
}

/* A register is taken for a number of its type. */
static int64_t
number(prover *p, const drift *d, uint32_t v, bool is_signed)
{
    int64_t n = is_signed ? (int64_t)(int32_t)v : (int64_t)v;
    keep(p, d, &none, (bound){n, n, is_signed ? INT32_MIN : 0, is_signed ? INT32_MAX : UINT32_MAX, {0}, 0, 0});
    return n;
}

/* Bytes of a partition. */
typedef struct room_for {
    int64_t lo, hi;
} room_for;

static room_for
room_of(const cps_sim *s, const cps_kextent *x, bool psum)
{
    if (x && !x->var)
        return (room_for){x->byte, (int64_t)x->byte + x->bytes};
    return (room_for){0, psum ? PSUM_BYTES : s->sbuf_bytes};
}

/* A footprint stays in its variable, or its bytes in their partitions. */
static void
keep_place(prover *p, const rect *r, const drift *d, const cps_kextent *x)
{
    const cps_sim *s = p->s;
    if (r->space == SP_HBM) {
        keep(p, d, &none, (bound){r->lo, r->hi, 0, s->vars.data[r->var].v->bytes, {0}, 0, 0});
        return;
    }
    bool psum = r->space == SP_PSUM;
    int64_t lane = psum ? CPS_PSUM_STRIDE : CPS_SBUF_STRIDE, lo = r->base & (lane - 1), hi = lo + r->run;
    for (unsigned k = 0; k < r->nd; k++)
        if (r->step[k] % lane)
            hi += r->step[k] * (r->num[k] - 1); // closed: no step runs back
    room_for in = room_of(s, x, psum);
    keep(p, d, &none, (bound){lo, hi, in.lo, in.hi, {0}, 0, 0});
}

/* ---- control ---- */

static void
branch(prover *p, const engine *e, const insn *i)
{
    const seq_op *q = &i->seq;
    const drift *reg = p->loops->reg[e->id], *a = &reg[q->a], *b = q->imm ? &none : &reg[q->b];
    const int64_t far = (int64_t)1 << FAR;
    if (q->mode != CPS_BR_TARGET_MODE_RELATIVE_IMMEDIATE)
        p->loops->spoilt |= moving(&reg[q->dst]);
    if (q->op == CPS_BR_CMP_OP_ALWAYS)
        return;
    bool is_signed = q->t != CPS_DT_U32;
    int64_t f = number(p, a, e->reg[q->a], is_signed) - number(p, b, q->imm ? q->value : e->reg[q->b], is_signed);
    bound x = {.least = f, .most = f, .branch = 1 + i->index, .engine = e->id};
    switch (q->op >= CPS_BR_CMP_OP_LT_REG ? q->op - 8 : q->op) {
    case CPS_BR_CMP_OP_LT_IMM:
    case CPS_BR_CMP_OP_GE_IMM:
        x.lo = f < 0 ? -far : 0;
        x.hi = f < 0 ? -1 : far;
        break;
    case CPS_BR_CMP_OP_LE_IMM:
    case CPS_BR_CMP_OP_GT_IMM:
        x.lo = f <= 0 ? -far : 1;
        x.hi = f <= 0 ? 0 : far;
        break;
    default:
        x.lo = f < 0 ? -far : f > 0;
        x.hi = f < 0 ? -1 : f > 0 ? far : 0;
    }
    keep(p, a, b, x);
}

/* Sums in pairs of registers: of addresses in HBM. */
static void
pair(prover *p, const engine *e, const insn *i)
{
    drift *reg = p->loops->reg[e->id];
    unsigned al = F(CPS_F_CTRL_AL_src0_lo) % REGS, ah = F(CPS_F_CTRL_AL_src0_hi) % REGS;
    unsigned bl = F(CPS_F_CTRL_AL_src1_lo) % REGS, bh = F(CPS_F_CTRL_AL_src1_hi) % REGS;
    unsigned op = F(CPS_F_CTRL_AL_op);
    bool imm = i->seq.imm;
    drift a = reg[al], b = imm ? none : wild_of(&reg[bl], &reg[bh]), high = wild_of(&reg[ah], &b), lo = none, hi = none;
    if (moving(&a) && !moving(&high) && (op == CPS_ALU_ADD || op == CPS_ALU_ADD_INT)) {
        lo = a;
        number(p, &a, e->reg[al], false);
        uint32_t add = imm ? (uint32_t)cps_isa_get(&i->b, CPS_F_CTRL_AL_imm) : e->reg[bl];
        number(p, &lo, e->reg[al] + add, false); // or the upper half would change
    } else {
        lo = hi = wild_of(&a, &high);
    }
    reg[F(CPS_F_CTRL_AL_dst_lo) % REGS] = lo;
    reg[F(CPS_F_CTRL_AL_dst_hi) % REGS] = hi;
}

/* The larger of two numbers, or (`least`) the smaller: one of them, as long as it is. */
static drift
extreme(prover *p, const drift *a, const drift *b, int64_t va, int64_t vb, bool least)
{
    const int64_t far = (int64_t)1 << FAR;
    int64_t f = va - vb, way = 0;
    for (unsigned l = 0; l < LOOPS_MAX && !way; l++)
        way = (int64_t)a->by[l] - b->by[l];
    bool more = f > 0 || (f == 0 && way > 0);
    keep(p, a, b, (bound){f, f, more ? 0 : -far, more ? far : 0, {0}, 0, 0});
    return more == least ? *b : *a;
}

static void
arithmetic(prover *p, const engine *e, const insn *i)
{
    const seq_op *q = &i->seq;
    drift *reg = p->loops->reg[e->id], a = reg[q->a], b = q->imm ? none : reg[q->b];
    uint32_t vb = q->imm ? q->value : e->reg[q->b];
    bool whole = (q->t == CPS_DT_I32 || q->t == CPS_DT_U32) &&
                 (q->to == CPS_DT_NONE || q->to == CPS_DT_I32 || q->to == CPS_DT_U32);
    drift r = wild_of(&a, &b);
    switch (whole ? q->op : CPS_ALU_BYPASS) {
    case CPS_ALU_ADD:
    case CPS_ALU_ADD_INT:
        r = sum(&a, &b, 1);
        break;
    case CPS_ALU_SUBTRACT:
    case CPS_ALU_SUB_INT:
        r = sum(&a, &b, UINT32_MAX);
        break;
    case CPS_ALU_MULT:
    case CPS_ALU_MULT_INT:
    case CPS_ALU_MULT_UINT:
        if (!moving(&b))
            r = sum(&none, &a, vb);
        else if (!moving(&a))
            r = sum(&none, &b, e->reg[q->a]);
        r.wild |= a.wild | b.wild;
        break;
    case CPS_ALU_MAX:
    case CPS_ALU_MIN:
        if (!(a.wild | b.wild) && moving(&r)) {
            int64_t va = number(p, &a, e->reg[q->a], q->t == CPS_DT_I32);
            r = extreme(p, &a, &b, va, number(p, &b, vb, q->t == CPS_DT_I32), q->op == CPS_ALU_MIN);
        }
        break;
    default:
        break;
    }
    reg[q->dst] = r;
}

static void
move(prover *p, const engine *e, const insn *i)
{
    drift *reg = p->loops->reg[e->id], v[8] = {{{0}, 0}};
    unsigned n = CPS_MIN(F(CPS_F_CTRL_MV_num_mov), 8);
    bool imm = F(CPS_F_CTRL_MV_source) == CPS_DATA_SRC_IMMEDIATE;
    for (unsigned k = 0; k < n && !imm; k++)
        v[k] = reg[cps_isa_get_elem(&i->b, CPS_F_CTRL_MV_src_regs, k) % REGS];
    for (unsigned k = 0; k < n; k++)
        reg[cps_isa_get_elem(&i->b, CPS_F_CTRL_MV_dst_regs, k) % REGS] = v[k];
}

void
drift_control(prover *p, const engine *e, const insn *i)
{
    bool wide = i->seq.t == CPS_DT_U64 || i->seq.t == CPS_DT_I64;
    if (i->sem->exec == exec_branch)
        branch(p, e, i);
    else if (i->sem->exec == exec_move)
        move(p, e, i);
    else if (wide)
        pair(p, e, i);
    else
        arithmetic(p, e, i);
}

void
drift_sync(prover *p, const engine *e, const insn *i)
{
    for (unsigned w = 0; w < i->sy.nwait; w++)
        if (i->sy.wait_mode[w] & 0x80)
            p->loops->spoilt |= moving(read_register(p, e, i->sy.wait_value[w]));
    for (unsigned k = 0; k < i->sy.nupdate; k++)
        if (i->sy.update_mode[k] & 0x80)
            p->loops->spoilt |= moving(read_register(p, e, i->sy.update_value[k]));
}

/* ---- addresses ---- */

void
drift_operands(prover *p, const engine *e, const insn *i)
{
    for (unsigned k = 0; k < i->nop; k++) {
        const opnd *o = &i->op[k];
        if (o->reg == 0xFF)
            continue;
        uint32_t a = e->reg[o->reg % REGS];
        int64_t byte = cps_addr_byte(a);
        if ((a & CPS_ADDR_BITS) != a)
            drift_spoil(p);
        room_for in = room_of(p->s, extent_of(p->s, i, o->field), cps_addr_is_psum(a));
        keep(p, read_register(p, e, o->reg), &none,
             (bound){byte + o->lo, byte + o->hi, in.lo, in.hi, {0}, 0, 0});
    }
    for (unsigned k = 0; k < i->nsc; k++) {
        const scalar *c = &i->sc[k];
        if (c->mode != SC_REG)
            continue;
        int64_t byte = e->reg[c->at.reg % REGS] & (CPS_SBUF_STRIDE - 1);
        keep(p, read_register(p, e, c->at.reg), &none,
             (bound){byte + c->at.lo, byte + c->at.hi, 0, c->at.psum ? PSUM_BYTES : p->s->sbuf_bytes, {0}, 0, 0});
    }
}

static drift
address(prover *p, const engine *e, const insn *i, cps_field f)
{
    uint64_t a = cps_isa_get(&i->b, f);
    if (((a >> 56) & 0xFC) != 0x80)
        return none;
    const drift *lo = read_register(p, e, a & 0xFF), *hi = read_register(p, e, a >> 8 & 0xFF);
    p->loops->spoilt |= moving(hi);
    number(p, lo, e->reg[(a & 0xFF) % REGS], false);
    return *lo;
}

/* Which rows a transfer by index touches says the list; the list and the rows stand still. */
static void
indexed(prover *p, const engine *e, const insn *i)
{
    static const cps_field lists[] = {CPS_F_DMA_INDIRECT1D_src_idx, CPS_F_DMA_INDIRECT1D_dst_idx};
    loops *x = p->loops;
    drift from = address(p, e, i, CPS_F_DMA_INDIRECT1D_src), to = address(p, e, i, CPS_F_DMA_INDIRECT1D_dst);
    x->spoilt |= moving(&from) | moving(&to);
    for (unsigned k = 0; k < cps_countof(lists); k++) {
        uint32_t a = F(lists[k]);
        if (a & CPS_ADDR_REG)
            x->spoilt |= moving(read_register(p, e, a));
    }
}

void
drift_addresses(prover *p, const engine *e, const insn *i)
{
    loops *x = p->loops;
    x->from = x->to = none;
    if (i->sem->exec == exec_tensor_load || i->sem->exec == exec_tensor_store) {
        if (cps_insns[i->id].format != CPS_FMT_PSEUDO_MEM_2D)
            x->from = address(p, e, i, CPS_F_MEM_2D_start);
    } else if (i->sem->exec == exec_direct2d) {
        x->from = address(p, e, i, CPS_F_DMA_DIRECT2D_src);
        x->to = address(p, e, i, CPS_F_DMA_DIRECT2D_dst);
    } else if (i->sem->exec == exec_dma_transpose) {
        x->from = address(p, e, i, CPS_F_DMA_DIRECT2D_XPOSE_src);
        x->to = address(p, e, i, CPS_F_DMA_DIRECT2D_XPOSE_dst);
    } else if (i->sem->exec == exec_indirect) {
        indexed(p, e, i);
    }
}

/* ---- footprints ---- */

static void
note(prover *p, uint32_t var, const drift *d)
{
    loops *x = p->loops;
    for (unsigned l = 0; l < x->depth; l++) {
        if (!(x->watched >> l & 1))
            continue;
        object *o = &x->at[l].objects[var];
        o->mixed |= o->seen && o->by != d->by[l];
        o->by = d->by[l];
        o->seen = true;
    }
}

/* Whether loop `l` moves the footprint against something that it could meet. Where everything drifts
 * alike all meet as they do in the turn under watch; what the other core does stands still. */
static bool
apart(const prover *p, const rect *r, unsigned l)
{
    const hbm_var *v = &p->s->vars.data[r->var];
    return r->space != SP_HBM || (p->s->log && v->shared) || p->loops->plans.data[p->loops->at[l].plan].mixed[r->var];
}

const rect *
drift_swept(prover *p, const rect *r, const drift *d, bool write, rect *room)
{
    const loops *x = p->loops;
    const hbm_var *v = &p->s->vars.data[r->space == SP_HBM ? r->var : 0];
    bool other = p->s->log && v->shared; // of a pair may write it
    if (!moving(d) || (r->space == SP_HBM && !write && (v->quiet || (v->unwritten && !other)))) // races with nothing
        return r;
    const rect *all = r;
    *room = *r;
    for (unsigned l = 0; l < x->depth; l++) {
        uint32_t turns = x->watched >> l & 1 ? x->plans.data[x->at[l].plan].turns : 0;
        if (!turns || !d->by[l] || !apart(p, r, l))
            continue;
        if (room->nd == RECT_DIMS) {
            p->loops->refuted = true;
            return r;
        }
        room->step[room->nd] = d->by[l];
        room->num[room->nd++] = (int64_t)turns + 1;
        rect_close(room);
        all = room;
    }
    return all;
}

void
drift_access(prover *p, const rect *r, const drift *d, const cps_kextent *x)
{
    if (r->space == SP_HBM)
        note(p, r->var, d);
    if (moving(d))
        keep_place(p, r, d, x);
}

/* What accesses touch in all turns that are left out; the list itself where that is not more. */
static rectvec
swept_list(prover *p, const rectvec *in, const drift *d, bool write)
{
    rectvec out = {0};
    bool more = false;
    for (uint32_t k = 0; k < in->n && !more; k++) {
        rect room;
        more = drift_swept(p, &in->data[k], d, write, &room) == &room;
    }
    for (uint32_t k = 0; k < in->n && more; k++) {
        rect room;
        cps_vec_push(p->s->making, &out, *drift_swept(p, &in->data[k], d, write, &room));
    }
    return more ? out : *in;
}

block *
drift_transfer(prover *p, const insn *i, block *b)
{
    const loops *x = p->loops;
    bool moves = moving(&x->from) | moving(&x->to);
    if (moves && b->adds && memcmp(x->from.by, x->to.by, sizeof x->from.by) != 0)
        drift_spoil(p); // reads are of both sides
    const cps_kextent *from = extent_of_side(p->s, i, false), *to = extent_of_side(p->s, i, true);
    for (unsigned r = 0; r < DMA_RINGS; r++) {
        for (uint32_t k = 0; k < b->ring[r].reads.n; k++)
            drift_access(p, &b->ring[r].reads.data[k], &x->from, from);
        for (uint32_t k = 0; k < b->ring[r].writes.n; k++)
            drift_access(p, &b->ring[r].writes.data[k], &x->to, to);
    }
    if (!p->last || !moves)
        return b;
    block all = *b;
    bool more = false;
    for (unsigned r = 0; r < DMA_RINGS; r++) {
        all.ring[r].reads = swept_list(p, &b->ring[r].reads, &x->from, false);
        all.ring[r].writes = swept_list(p, &b->ring[r].writes, &x->to, true);
        more |= all.ring[r].reads.data != b->ring[r].reads.data || all.ring[r].writes.data != b->ring[r].writes.data;
    }
    block *swept = more ? cps_arena_alloc(p->s->making, sizeof *swept) : NULL;
    if (more)
        *swept = all;
    return more ? swept : b;
}
