/* Transfers whose descriptors are made when the instruction runs: DMA_MEMCPY (2-D patterns),
 * DMA_INDIRECT (rows by index), DMA_TRANSPOSE. Each makes a block, which goes the way of all
 * blocks (sem_dma.c) on the engine's own queue.
 *
 * Addresses: on-chip ones are the ADDR4 value zero-extended, others are HBM addresses that the
 * loader put in (inferred). A step counts elements of elem_size bytes; dimension 0 is the
 * fastest. */
#include "runtime/sim/machine.h"

#define F(x) (unsigned)cps_isa_get(b, x)

static bool
address(cps_sim *s, engine *e, const insn *i, cps_field f, uint64_t *out)
{
    uint64_t a = cps_isa_get(&i->b, f);
    unsigned mark = (unsigned)(a >> 56) & 0xFC;
    if (mark == 0x80) {
        uint32_t lo = e->reg[(a & 0xFF) % REGS], hi = e->reg[(a >> 8 & 0xFF) % REGS];
        a = (uint64_t)hi << 32 | lo;
    } else if (mark == 0x10) { // before loading: an offset in a variable
        uint32_t var = (uint32_t)(a >> 32 & 0xFFFFFF);
        if (var == 0 || var >= s->vars.n)
            return run_fault(s, i, CPS_E8302, "'%s': there is no variable %u",
                             cps_fields[f].name, var);
        a = s->vars.data[var].addr + (uint32_t)a;
    } else if (mark != 0) {
        return run_fault(s, i, CPS_E8305, "address form 0x%02x of '%s' has no model here", mark,
                         cps_fields[f].name);
    }
    if (a < CPS_PSUM_BASE)
        a = addr_of_sb((int64_t)a);
    else if (a < 0x04000000)
        return run_fault(s, i, CPS_E8305, "'%s' is in PSUM, which DMA cannot reach",
                         cps_fields[f].name);
    *out = a;
    return true;
}

static uint32_t
size_of(uint32_t bytes)
{
    return bytes ? bytes : 65536;
}

static block *
begin(cps_sim *s, unsigned sem, unsigned inc, unsigned owner)
{
    block *b = block_new(s, s->making ? s->making : s->run_arena);
    cps_vec_reserve(b->arena, &b->items, 1);
    b->queue = (uint16_t)owner; // the implicit queue of this engine (load.c)
    b->semaphore = (uint8_t)sem;
    b->increment = (uint8_t)inc;
    return b;
}

/* What registers move stays in what it is of. */
static bool
in_extents(cps_sim *s, const item *it, const insn *i)
{
    const cps_kextent *from = extent_of_side(s, i, false), *to = extent_of_side(s, i, true);
    return (!from || extent_side(s, i, from, &it->from)) && (!to || extent_side(s, i, to, &it->to));
}

static bool
add_or_fault(cps_sim *s, block *b, const item *it, const insn *i)
{
    if (i->nextent && !in_extents(s, it, i)) {
        cps_arena_destroy(b->scratch);
        return false;
    }
    if (block_add(s, b, it, i))
        return true;
    s->rep.bounds++;
    s->fault = true;
    return false;
}

bool
prep_dma(cps_sim *s, insn *i)
{
    const cps_bundle *b = &i->b;
    unsigned bound = 0;
    if (cps_insns[i->id].format == CPS_FMT_PSEUDO_DMA_DIRECT2D &&
        F(CPS_F_PSEUDO_DMA_DIRECT2D_dge_opcode) != CPS_DGE_OPCODE_DMA_DIRECT2D)
        return load_fail(s, i, CPS_E8202, "only 2-D patterns fit one record");
    if (cps_insns[i->id].format == CPS_FMT_DMA_DIRECT2D_XPOSE)
        bound = F(CPS_F_DMA_DIRECT2D_XPOSE_src_bound_reg) |
                F(CPS_F_DMA_DIRECT2D_XPOSE_dst_bound_reg);
    else if (cps_insns[i->id].format != CPS_FMT_DMA_INDIRECT1D)
        bound = F(CPS_F_DMA_DIRECT2D_src_bound_reg) | F(CPS_F_DMA_DIRECT2D_dst_bound_reg);
    return !(bound & 0x80) ||
           load_fail(s, i, CPS_E8202, "what a bound register means here is not published");
}

/* Types with values of their own; packed ones are only moved. */
static bool
converts(cps_dtype t)
{
    return t != CPS_DT_NONE && cps_dtypes[t].kind != 'P';
}

bool
exec_direct2d(cps_sim *s, engine *e, insn *i)
{
    const cps_bundle *b = &i->b;
    item it = {.op = CPS_DESC_COPY};
    uint64_t from, to;
    if (!address(s, e, i, CPS_F_DMA_DIRECT2D_src, &from) ||
        !address(s, e, i, CPS_F_DMA_DIRECT2D_dst, &to))
        return false;
    cps_dtype ft = cps_isa_dtype(F(CPS_F_DMA_DIRECT2D_in_dtype));
    cps_dtype tt = cps_isa_dtype(F(CPS_F_DMA_DIRECT2D_out_dtype));
    if (!cps_insns[i->id].pseudo) // its byte says the kind of transfer before loading
        it.alu = (uint8_t)F(CPS_F_DMA_DIRECT2D_compute_op);
    it.from_dtype = it.to_dtype = CPS_DT_U8;
    if (it.alu != CPS_DGE_COMPUTE_OP_NONE || ft != tt) {
        it.op = it.alu ? CPS_DESC_ADD : CPS_DESC_CAST;
        it.from_dtype = (uint8_t)ft;
        it.to_dtype = (uint8_t)tt;
        if (!converts(ft) || !converts(tt))
            return run_fault(s, i, CPS_E8305, "a converting transfer needs both types");
    }
    int64_t fe = size_of(F(CPS_F_DMA_DIRECT2D_src_elem_size));
    int64_t te = size_of(F(CPS_F_DMA_DIRECT2D_dst_elem_size));
    it.from = (side){.addr = from, .nd = 3, .step = {1}, .size = {fe}};
    it.to = (side){.addr = to, .nd = 3, .step = {1}, .size = {te}};
    int64_t nf = fe, nt = te;
    for (unsigned d = 0; d < 2; d++) {
        it.from.step[d + 1] =
            fe * (int32_t)cps_isa_get_elem(b, CPS_F_DMA_DIRECT2D_src_step_elem, d);
        it.from.size[d + 1] = (int64_t)cps_isa_get_elem(b, CPS_F_DMA_DIRECT2D_src_num_elem, d);
        it.to.step[d + 1] =
            te * (int32_t)cps_isa_get_elem(b, CPS_F_DMA_DIRECT2D_dst_step_elem, d);
        it.to.size[d + 1] = (int64_t)cps_isa_get_elem(b, CPS_F_DMA_DIRECT2D_dst_num_elem, d);
        nf *= it.from.size[d + 1];
        nt *= it.to.size[d + 1];
    }
    if (nf == 0 || nf / cps_dtype_bytes((cps_dtype)it.from_dtype) !=
                       nt / cps_dtype_bytes((cps_dtype)it.to_dtype))
        return run_fault(s, i, CPS_E8305, "the sides move %lld and %lld bytes", (long long)nf,
                         (long long)nt);
    block *k =
        begin(s, F(CPS_F_DMA_DIRECT2D_semaphore), F(CPS_F_DMA_DIRECT2D_sem_increment), e->id);
    if (!add_or_fault(s, k, &it, i))
        return false;
    block_close(s, k);
    dma_submit(s, e, i, k);
    return true;
}

/* Indices of an indirect transfer: u32, `lanes` partitions of SBUF, partition first. `at` gets their
 * footprint, which the transfer reads: descriptors are made from the list while it is under way. */
static bool
indices(cps_sim *s, engine *e, const insn *i, cps_field f, unsigned lanes, unsigned n,
        uint32_t *out, rectvec *at)
{
    if (s->opts.no_data)
        return run_fault(s, i, CPS_E8307, "the rows of the transfer are named in memory");
    uint32_t a = (uint32_t)cps_isa_get(&i->b, f);
    if (a >> 24 & 0x80)
        a = e->reg[a & 0x3F];
    a &= 0x1FFFFFFF;
    if (a >= CPS_PSUM_BASE || lanes == 0 || lanes > LANES)
        return run_fault(s, i, CPS_E8305, "'%s' is no place for indices", cps_fields[f].name);
    unsigned cols = (unsigned)cps_ceil_div(n, lanes);
    cps_ap ap = {.addr = a, .nd = 1, .step = {1}, .num = {(uint16_t)cols}};
    opnd o = {.field = (uint16_t)f};
    if (!opnd_set(s, &o, &ap, CPS_DT_U32, CPS_MIN(lanes, n)) || !opnd_in_memory(s, &o)) {
        s->rep.bounds++;
        return run_fault(s, i, CPS_E8302, "'%s' lies outside SBUF", cps_fields[f].name);
    }
    for (unsigned k = 0; k < n; k++) {
        opnd one = o;
        one.part = (uint8_t)(o.part + k % lanes);
        one.byte = o.byte + k / lanes * 4;
        if (s->nstale)
            mem_need(s, one.psum, one.part, 1, one.byte, one.byte + 4, false);
        memcpy(&out[k], opnd_row(s, &one, 0), 4);
    }
    rect r = opnd_rect(&o);
    if (n % lanes == 0)
        check_read(s, i, &r);
    if (s->opts.checks & CPS_CHECK_RACES)
        race_look(s, &r, i, e->vc);
    cps_vec_push(s->run_arena, at, r);
    return true;
}

// The lists are read from the trigger on, until all rings are done.
static void
read_lists(cps_sim *s, block *b, const rectvec *lists)
{
    for (unsigned r = 0; r < (unsigned)s->t->dma_engines; r++)
        for (uint32_t k = 0; k < lists->n; k++)
            cps_vec_push(s->run_arena, &b->ring[r].reads, lists->data[k]);
}

bool
exec_indirect(cps_sim *s, engine *e, insn *i)
{
    const cps_bundle *b = &i->b;
    uint64_t from, to;
    if (!address(s, e, i, CPS_F_DMA_INDIRECT1D_src, &from) ||
        !address(s, e, i, CPS_F_DMA_INDIRECT1D_dst, &to))
        return false;
    unsigned flags = F(CPS_F_DMA_INDIRECT1D_flags), mode = flags & 3;
    bool strict = flags >> 2 & 1;
    unsigned lanes = F(CPS_F_DMA_INDIRECT1D_idx_num_active_channels);
    int64_t fe = size_of(F(CPS_F_DMA_INDIRECT1D_src_elem_size));
    int64_t te = size_of(F(CPS_F_DMA_INDIRECT1D_dst_elem_size));
    unsigned nf = F(CPS_F_DMA_INDIRECT1D_src_num_elem),
             nt = F(CPS_F_DMA_INDIRECT1D_dst_num_elem);
    unsigned n = CPS_MIN(nf, nt);
    uint32_t si[4096], di[4096];
    rectvec lists = {0};
    if (n == 0 || n > 4096 || nf != nt || mode > CPS_INDIRECT_DMA_MODE_SRC_DST)
        return run_fault(s, i, CPS_E8305, "%u and %u rows, limit 4096 of each", nf, nt);
    if (mode != CPS_INDIRECT_DMA_MODE_DST &&
        !indices(s, e, i, CPS_F_DMA_INDIRECT1D_src_idx, lanes, n, si, &lists))
        return false;
    if (mode != CPS_INDIRECT_DMA_MODE_SRC &&
        !indices(s, e, i, CPS_F_DMA_INDIRECT1D_dst_idx, lanes, n, di, &lists))
        return false;
    item it = {.op = CPS_DESC_COPY, .from_dtype = CPS_DT_U8, .to_dtype = CPS_DT_U8};
    cps_dtype ft = cps_isa_dtype(F(CPS_F_DMA_INDIRECT1D_in_dtype));
    cps_dtype tt = cps_isa_dtype(F(CPS_F_DMA_INDIRECT1D_out_dtype));
    it.alu = (uint8_t)F(CPS_F_DMA_INDIRECT1D_compute_op);
    if (it.alu || ft != tt) {
        it.op = it.alu ? CPS_DESC_ADD : CPS_DESC_CAST;
        it.from_dtype = (uint8_t)ft;
        it.to_dtype = (uint8_t)tt;
        if (!converts(ft) || !converts(tt))
            return run_fault(s, i, CPS_E8305, "a converting transfer needs both types");
    }
    int64_t fstep = (int32_t)F(CPS_F_DMA_INDIRECT1D_src_step_elem) * fe;
    int64_t tstep = (int32_t)F(CPS_F_DMA_INDIRECT1D_dst_step_elem) * te;
    unsigned sb = F(CPS_F_DMA_INDIRECT1D_src_idx_bound_reg);
    unsigned db = F(CPS_F_DMA_INDIRECT1D_dst_idx_bound_reg);
    block *k = begin(s, F(CPS_F_DMA_INDIRECT1D_semaphore),
                     F(CPS_F_DMA_INDIRECT1D_sem_increment), e->id);
    for (unsigned r = 0; r < n; r++) {
        int64_t f = mode != CPS_INDIRECT_DMA_MODE_DST ? si[r] : r;
        int64_t t = mode != CPS_INDIRECT_DMA_MODE_SRC ? di[r] : r;
        // BOUND_CHECK_REG: bit 7 enables, bits 0..5 name the register with the limit
        if ((sb & 0x80 && mode != CPS_INDIRECT_DMA_MODE_DST &&
             (uint32_t)f >= e->reg[sb & 63]) ||
            (db & 0x80 && mode != CPS_INDIRECT_DMA_MODE_SRC &&
             (uint32_t)t >= e->reg[db & 63])) {
            if (!strict)
                continue; // the row is left out
            cps_arena_destroy(k->scratch);
            s->rep.bounds++;
            return run_fault(s, i, CPS_E8302, "index %lld of row %u is out of bounds",
                             (long long)(mode == CPS_INDIRECT_DMA_MODE_DST ? t : f), r);
        }
        it.from =
            (side){.addr = from + (uint64_t)(f * fstep), .nd = 1, .step = {1}, .size = {fe}};
        it.to = (side){.addr = to + (uint64_t)(t * tstep), .nd = 1, .step = {1}, .size = {te}};
        if (!add_or_fault(s, k, &it, i))
            return false;
    }
    block_close(s, k);
    read_lists(s, k, &lists);
    dma_submit(s, e, i, k);
    return true;
}

/* dst[c][r] = src[r][c] over tiles of tile_rows x tile_cols: the destination's rows follow the
 * source's columns. */
bool
exec_dma_transpose(cps_sim *s, engine *e, insn *i)
{
    const cps_bundle *b = &i->b;
    uint64_t from, to;
    if (!address(s, e, i, CPS_F_DMA_DIRECT2D_XPOSE_src, &from) ||
        !address(s, e, i, CPS_F_DMA_DIRECT2D_XPOSE_dst, &to))
        return false;
    cps_dtype t = cps_isa_dtype(F(CPS_F_DMA_DIRECT2D_XPOSE_in_dtype));
    int64_t es = t ? cps_dtype_bytes(t) : 0;
    if ((es != 2 && es != 4) || t != cps_isa_dtype(F(CPS_F_DMA_DIRECT2D_XPOSE_out_dtype)))
        return run_fault(s, i, CPS_E8305, "transposes take equal types of 2 or 4 bytes");
    int64_t sn[2], dn[2], ss[2], ds[2];
    for (unsigned d = 0; d < 2; d++) {
        sn[d] = (int64_t)cps_isa_get_elem(b, CPS_F_DMA_DIRECT2D_XPOSE_src_num_elem, d);
        dn[d] = (int64_t)cps_isa_get_elem(b, CPS_F_DMA_DIRECT2D_XPOSE_dst_num_elem, d);
        ss[d] = (int32_t)cps_isa_get_elem(b, CPS_F_DMA_DIRECT2D_XPOSE_src_step_elem, d) * es;
        ds[d] = (int32_t)cps_isa_get_elem(b, CPS_F_DMA_DIRECT2D_XPOSE_dst_step_elem, d) * es;
    }
    if (sn[0] < 1 || sn[1] < 1 || sn[0] != dn[1] || sn[1] != dn[0])
        return run_fault(s, i, CPS_E8305, "%lld x %lld to %lld x %lld is no transpose",
                         (long long)sn[1], (long long)sn[0], (long long)dn[1],
                         (long long)dn[0]);
    item it = {.op = CPS_DESC_TRANSPOSE,
               .from_dtype = CPS_DT_U8,
               .to_dtype = CPS_DT_U8,
               .elem = (int)es,
               .rows = sn[1],
               .cols = sn[0]};
    it.from =
        (side){.addr = from, .nd = 3, .step = {1, ss[0], ss[1]}, .size = {es, sn[0], sn[1]}};
    it.to = (side){.addr = to, .nd = 3, .step = {1, ds[0], ds[1]}, .size = {es, dn[0], dn[1]}};
    block *k =
        begin(s, F(CPS_F_DMA_DIRECT2D_XPOSE_semaphore), (unsigned)s->t->dma_engines, e->id);
    if (!add_or_fault(s, k, &it, i))
        return false;
    block_close(s, k);
    dma_submit(s, e, i, k);
    return true;
}

/* Rows picked by indices, transposed: dst[c][r] = src[index[r]][c], element by element. */
bool
exec_gather_transpose(cps_sim *s, engine *e, insn *i)
{
    const cps_bundle *b = &i->b;
    uint64_t from, to;
    if (!address(s, e, i, CPS_F_DMA_GATHER_XPOSE_src, &from) ||
        !address(s, e, i, CPS_F_DMA_GATHER_XPOSE_dst, &to))
        return false;
    unsigned types = F(CPS_F_DMA_GATHER_XPOSE_dtype);
    cps_dtype t = cps_isa_dtype(types & 15);
    int64_t es = size_of(F(CPS_F_DMA_GATHER_XPOSE_elem_size));
    if (!t || types >> 4 != (types & 15) || cps_dtype_bytes(t) != 2 || es != 2)
        return run_fault(s, i, CPS_E8305, "gathers with transpose take equal types of 2 bytes");
    int64_t cols = (int64_t)cps_isa_get_elem(b, CPS_F_DMA_GATHER_XPOSE_src_num_elem, 0);
    int64_t rows = (int64_t)cps_isa_get_elem(b, CPS_F_DMA_GATHER_XPOSE_src_num_elem, 1);
    int64_t pitch = (int32_t)cps_isa_get_elem(b, CPS_F_DMA_GATHER_XPOSE_src_step_elem, 1) * es;
    int64_t step = (int32_t)cps_isa_get_elem(b, CPS_F_DMA_GATHER_XPOSE_src_step_elem, 0) * es;
    int64_t down = (int32_t)F(CPS_F_DMA_GATHER_XPOSE_dst_step_elem_1) * es;
    unsigned lanes = F(CPS_F_DMA_GATHER_XPOSE_idx_num_active_channels);
    unsigned bound = F(CPS_F_DMA_GATHER_XPOSE_src_idx_bound_reg);
    uint32_t at[4096];
    rectvec lists = {0};
    if (rows < 1 || rows > 4096 || cols < 1 ||
        rows != (int64_t)cps_isa_get_elem(b, CPS_F_DMA_GATHER_XPOSE_dst_num_elem, 0) ||
        cols != (int64_t)cps_isa_get_elem(b, CPS_F_DMA_GATHER_XPOSE_dst_num_elem, 1))
        return run_fault(s, i, CPS_E8305,
                         "%lld rows of %lld are no transpose of the destination",
                         (long long)rows, (long long)cols);
    if (!indices(s, e, i, CPS_F_DMA_GATHER_XPOSE_src_idx, lanes, (unsigned)rows, at, &lists))
        return false;
    item it = {.op = CPS_DESC_COPY, .from_dtype = CPS_DT_U8, .to_dtype = CPS_DT_U8};
    block *k =
        begin(s, F(CPS_F_DMA_GATHER_XPOSE_semaphore), (unsigned)s->t->dma_engines, e->id);
    for (int64_t r = 0; r < rows; r++) {
        if (bound & 0x80 && at[r] >= e->reg[bound & 63])
            continue; // the column is left out
        it.from = (side){.addr = from + (uint64_t)(at[r] * pitch),
                         .nd = 2,
                         .step = {1, step},
                         .size = {es, cols}};
        it.to = (side){
            .addr = to + (uint64_t)(r * es), .nd = 2, .step = {1, down}, .size = {es, cols}};
        if (!add_or_fault(s, k, &it, i))
            return false;
    }
    block_close(s, k);
    read_lists(s, k, &lists);
    dma_submit(s, e, i, k);
    return true;
}
