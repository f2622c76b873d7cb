/* What one instruction costs: cycles by timing class, then the target's constants by engine.
 *
 * In: a bundle and a target. Out: three times and the busy cycles. One function per class of
 * timing.def; the cycle formulas are those of the NKI documents (the last version that printed
 * them), read with the corrections that published device times ask for:
 *   - RECIPROCAL on the vector engine costs N, not 8 N;
 *   - a 4-byte matmul is two instructions of 2 N cycles;
 *   - LDWEIGHTS runs behind the MATMUL before it and never shows (the pairs of a published fp32
 *     profile follow each other at 2 N + 7 cycles, nothing more), so it occupies nothing; its
 *     operand is free when the weights are in place. The up to 32 cycles that show after an
 *     idle PE are left out;
 *   - a result of the PE crosses the stationary columns, a cycle each (188 ns from start to end
 *     with 1 column, 219 with 96);
 *   - LOCAL GATHER: the printed formula divides by a factor that grows with its own overhead;
 *     here it multiplies (inferred).
 * Deliberately absent: bank conflicts, port start-up, instruction fetch, PE warm-up and
 * exclusion of engines on a memory port (states of the machine, hence of the simulator). */
#include "codegen/isa/timing.h"

#include <math.h>
#include <string.h>

enum {
    MIN_II = 64,          // floor of an instruction, cycles (NKI API of 2025)
    MIN_II_REDUCE = 120,  // of a tensor reduction: 107 ns on v2 (published conv1d counters)
    MIN_II_DYNAMIC = 600, // the same with an address from a register
    POOL_START = 150      // cycles before GpSimd streams (iota, affine_select)
};

typedef struct operand {
    bool has;
    bool psum, from_reg;
    bool unit; // innermost dimension contiguous
    int64_t n; // elements per partition
    unsigned wire, bytes;
} operand;

typedef struct work {
    const cps_target *t;
    cps_engine e;
    const cps_bundle *b;
    const cps_insn_row *insn;
    operand in[2], out;
    int64_t n; // of the main operand
} work;

// Cycles without and with the floor: latencies of ACT count from the first.
typedef struct cycles {
    int64_t raw, floored;
} cycles;

const char *
cps_tclass_doc(cps_tclass c)
{
    static const char *const doc[CPS_TCLASSES] = {
#define CPS_TCLASS(name, text) [CPS_TC_##name] = text,
#include "codegen/isa/timing.def"
    };
    return (unsigned)c < CPS_TCLASSES ? doc[c] : "";
}

/* ---- operands ---- */

static void
read_operand(const cps_bundle *b, cps_field f, operand *o)
{
    const cps_field_row *r = &cps_fields[f];
    cps_ap ap;
    cps_isa_get_ap(b, f, &ap);
    o->has = true;
    o->n = 1;
    for (unsigned i = 0; i < ap.nd; i++)
        o->n = CPS_MIN(o->n * ap.num[i], (int64_t)1 << 32); // bytes may be anything
    bool listed = r->kind == CPS_FK_TENSOR && cps_addr_is_indirect(ap.addr);
    if (listed) // index, data, number of elements
        o->n = b->b[r->byte + 8] | b->b[r->byte + 9] << 8;
    o->from_reg = r->kind == CPS_FK_TENSOR && (ap.addr & 0x80000000u);
    o->psum = r->kind == CPS_FK_TENSOR && !o->from_reg && cps_addr_is_psum(ap.addr);
    o->unit = !listed && (ap.num[0] == 1 || ap.step[0] == 1);
    if (r->dtype) {
        unsigned v = (unsigned)cps_isa_get(b, (cps_field)r->dtype);
        o->wire = r->part == CPS_PART_LOW ? v & 15 : r->part == CPS_PART_HIGH ? v >> 4 : v;
        cps_dtype t = cps_isa_dtype(o->wire);
        o->bytes = t ? cps_dtype_bytes(t) : 4;
    } else {
        o->bytes = 4;
    }
}

static void
read_operands(work *w)
{
    unsigned fmt = w->insn->format, ins = 0;
    for (unsigned f = cps_formats[fmt].first; f < cps_formats[fmt + 1].first; f++) {
        const cps_field_row *r = &cps_fields[f];
        if (r->kind == CPS_FK_MXMEM) {
            // Elements along the free axis: the 16-bit count after the two addresses.
            operand *o = r->out ? &w->out : ins < 2 ? &w->in[ins++] : NULL;
            if (o)
                *o = (operand){.has = true,
                               .unit = true,
                               .bytes = 4,
                               .psum = false,
                               .n = w->b->b[r->byte + 8] | w->b->b[r->byte + 9] << 8};
        } else if (r->kind == CPS_FK_TENSOR || r->kind == CPS_FK_DATA4D) {
            if (r->out)
                read_operand(w->b, (cps_field)f, &w->out);
            else if (ins < 2)
                read_operand(w->b, (cps_field)f, &w->in[ins++]);
        }
    }
    w->n = w->in[0].has ? w->in[0].n : w->out.has ? w->out.n : 1;
}

// A field of the instruction's format by kind (and enum), CPS_F_NONE when it has none.
static cps_field
field_of(const work *w, cps_fkind kind, unsigned arg, unsigned nth)
{
    unsigned fmt = w->insn->format;
    for (unsigned f = cps_formats[fmt].first; f < cps_formats[fmt + 1].first; f++)
        if (cps_fields[f].kind == kind && cps_fields[f].arg == arg && nth-- == 0)
            return (cps_field)f;
    return CPS_F_NONE;
}

static unsigned
alu_op(const work *w, unsigned nth)
{
    cps_field f = field_of(w, CPS_FK_ALU, 0, nth);
    return f ? (unsigned)cps_isa_get(w->b, f) : CPS_ALU_BYPASS;
}

static bool
is_bf16(const operand *o)
{
    return o->has && cps_isa_dtype(o->wire) == CPS_DT_BF16;
}

// 16-bit floats drive the wide modes of the vector engine; fp8 too from v4.
static bool
is_narrow(const work *w, const operand *o)
{
    cps_dtype t = o->has ? cps_isa_dtype(o->wire) : CPS_DT_NONE;
    if (!t || !cps_dtype_is_float(t))
        return false;
    return o->bytes == 2 || (o->bytes == 1 && w->t->gen >= CPS_V4);
}

/* ---- classes ---- */

static cycles
at_least(int64_t floor, int64_t n)
{
    return (cycles){.raw = n, .floored = CPS_MAX(floor, n)};
}

static cycles
cycles_NONE(const work *w)
{
    (void)w;
    return (cycles){0, 0};
}

static cycles
cycles_CTRL(const work *w)
{
    return cycles_NONE(w);
}

static cycles
cycles_DMA(const work *w)
{
    return cycles_NONE(w);
}

static cycles
cycles_TABLE(const work *w)
{
    return cycles_NONE(w);
}

static cycles
cycles_LDWEIGHTS(const work *w)
{
    return cycles_NONE(w);
}

static cycles
cycles_MATMUL(const work *w)
{
    // Columns are counted at the output: a double-row source has two elements per column.
    int64_t columns = w->out.has ? w->out.n : w->n;
    cps_field mode = field_of(w, CPS_FK_ENUM, CPS_ENUM_PE_FP32MODE, 0);
    bool both = mode && cps_isa_get(w->b, mode) == CPS_PE_FP32MODE_LOW_HIGH;
    cycles c = at_least(MIN_II, columns);
    return (cycles){.raw = c.raw * (both ? 2 : 1) + w->t->pe_overhead_cycles,
                    .floored = c.floored * (both ? 2 : 1) + w->t->pe_overhead_cycles};
}

static cycles
cycles_ACT(const work *w)
{
    return at_least(MIN_II, w->n);
}

static cycles
cycles_READ(const work *w)
{
    (void)w;
    return at_least(MIN_II, MIN_II);
}

static cycles
cycles_ONE(const work *w)
{
    return at_least(MIN_II, w->n);
}

static cycles
cycles_SCALAR(const work *w)
{
    const operand *in = &w->in[0], *out = &w->out;
    int64_t div = 1;
    if (w->e == CPS_DVE && w->t->dve_perf_modes && is_narrow(w, in) && is_narrow(w, out)) {
        bool unit = in->unit && out->unit;
        if (!in->psum && !out->psum)
            div = unit ? 4 : 2;
        else if (unit && !(in->psum && out->psum))
            div = 2;
    } else if (w->e == CPS_ACT && w->t->gen >= CPS_V4 && is_narrow(w, in) &&
               is_narrow(w, out)) {
        div = 2;
    }
    // GpSimd runs tensor_scalar for rsqrt, at a quarter of ScalarE's rate.
    if (w->e == CPS_POOL && alu_op(w, 0) == CPS_ALU_RSQRT)
        return at_least(MIN_II, 4 * w->n);
    return at_least(MIN_II, cps_ceil_div(w->n, div));
}

static cycles
cycles_COPY(const work *w)
{
    if (w->in[0].from_reg || w->out.from_reg)
        return at_least(MIN_II_DYNAMIC, w->n);
    return cycles_SCALAR(w);
}

static cycles
cycles_FILL(const work *w)
{
    cps_field value = CPS_F_D4_MR_set_value;
    bool fast = cps_fields[value].format == w->insn->format && cps_isa_get(w->b, value) == 0 &&
                w->out.bytes == 2;
    return at_least(MIN_II, fast ? cps_ceil_div(w->n, 2) : w->n);
}

static bool
one_in_psum(const work *w)
{
    return w->in[0].psum != w->in[1].psum;
}

static cycles
cycles_TWO(const work *w)
{
    const operand *a = &w->in[0], *b = &w->in[1], *o = &w->out;
    bool fast = one_in_psum(w);
    if (!fast && !a->psum && !b->psum) {
        unsigned op = alu_op(w, 0);
        if (w->t->dve_perf_modes)
            fast = is_narrow(w, a) && is_narrow(w, b) && is_narrow(w, o);
        else
            fast = is_bf16(a) && is_bf16(b) && is_bf16(o) && a->unit && b->unit && o->unit &&
                   (op == CPS_ALU_ADD || op == CPS_ALU_SUBTRACT || op == CPS_ALU_MULT);
    }
    return at_least(MIN_II, fast ? w->n : 2 * w->n);
}

static cycles
cycles_PRED(const work *w)
{
    return at_least(MIN_II, one_in_psum(w) ? w->n : 2 * w->n);
}

static cycles
cycles_STT(const work *w)
{
    bool fast = is_bf16(&w->in[0]) && is_bf16(&w->in[1]) && alu_op(w, 0) == CPS_ALU_SUBTRACT &&
                alu_op(w, 1) == CPS_ALU_MULT && w->n % 2 == 0;
    return at_least(MIN_II, fast ? w->n : 2 * w->n);
}

static cycles
cycles_SCAN(const work *w)
{
    return at_least(MIN_II, 2 * w->n);
}

static cycles
cycles_REDUCE(const work *w)
{
    unsigned op = alu_op(w, 0);
    bool fast =
        is_bf16(&w->in[0]) && is_bf16(&w->out) && (op == CPS_ALU_ADD || op == CPS_ALU_MAX);
    return at_least(MIN_II_REDUCE, fast ? cps_ceil_div(w->n, 2) : w->n);
}

static cycles
cycles_AGGR(const work *w)
{
    return at_least(MIN_II, cps_ceil_div(13 * w->n, 3));
}

static cycles
cycles_QUARTER(const work *w)
{
    return at_least(MIN_II, cps_ceil_div(w->n, 4));
}

static cycles
cycles_POOL(const work *w)
{
    return at_least(MIN_II, w->n);
}

static cycles
cycles_GATHER(const work *w)
{
    int64_t n = (int64_t)cps_isa_get(w->b, CPS_F_S4D4_IC_src_num_elem);
    int64_t e = (int64_t)cps_isa_get(w->b, CPS_F_S4D4_IC_src_num_elem_per_idx);
    e = CPS_MAX(e, 1);
    int64_t lanes = CPS_MIN(CPS_MAX(4 / (int64_t)w->out.bytes, 1), e);
    return at_least(MIN_II, cps_ceil_div(n * (28 + 4 * e), 4 * e * lanes));
}

typedef cycles class_fn(const work *w);

static class_fn *const by_class[CPS_TCLASSES] = {
#define CPS_TCLASS(name, ...) [CPS_TC_##name] = cycles_##name,
#include "codegen/isa/timing.def"
};

/* ---- costs ---- */

static cps_ps
of_ns(double ns)
{
    return (cps_ps)llround(ns * 1000.0);
}

static cps_ps
of_cycles(int64_t n, double mhz)
{
    return (cps_ps)llround((double)n * 1e6 / mhz);
}

// Stationary columns of a PE instruction.
static int64_t
columns(const work *w)
{
    unsigned fmt = w->insn->format;
    for (unsigned f = cps_formats[fmt].first; f < cps_formats[fmt + 1].first; f++)
        if (!strcmp(cps_fields[f].name, "num_active_cols"))
            return (int64_t)cps_isa_get(w->b, (cps_field)f);
    return 0;
}

static cps_engine
first_engine(unsigned mask)
{
    unsigned e = 0;
    while (e + 1 < CPS_ENGINES && !(mask & (1u << e)))
        e++;
    return (cps_engine)e;
}

void
cps_timing(const cps_target *t, cps_engine e, const cps_bundle *b, cps_cost *out)
{
    const cps_insn_row *insn = &cps_insns[cps_isa_find_any(b->b[0])];
    *out = (cps_cost){0};
    if (insn->timing == CPS_TC_NONE)
        return;
    work w = {.t = t, .b = b, .insn = insn};
    w.e = (unsigned)e < CPS_ENGINES ? e : first_engine(insn->engines);
    if (insn->timing == CPS_TC_CTRL || insn->timing == CPS_TC_DMA) {
        out->occupy = out->self = out->cross = of_ns(t->sp_issue_ns);
        return;
    }
    if (insn->timing == CPS_TC_TABLE) {
        out->occupy = out->self = out->cross = of_ns(t->act_table_ns);
        out->cycles = llround(t->act_table_ns * t->act_mhz / 1000.0);
        return;
    }
    if (insn->timing == CPS_TC_LDWEIGHTS) {
        // 4-byte weights go in at half the rate (199 ns for 128 columns on trn2).
        read_operands(&w);
        out->cross = of_ns(t->pe_load_ns) +
                     of_cycles(columns(&w) * (w.in[0].bytes == 4 ? 2 : 1), t->pe_sustained_mhz);
        return;
    }
    read_operands(&w);
    cycles c = by_class[insn->timing](&w);
    out->cycles = c.floored;
    switch (w.e) {
    case CPS_PE:
        // PE orders its own accumulations, so a dependent matmul follows at once.
        out->occupy = out->self = of_cycles(c.floored, t->pe_sustained_mhz);
        out->cross =
            out->occupy + of_ns(t->pe_result_ns) + of_cycles(columns(&w), t->pe_sustained_mhz);
        break;
    case CPS_ACT:
        // Published chains of N = 1 show the constants without the floor of 64 cycles.
        out->occupy = of_cycles(c.floored, t->act_mhz) + of_ns(t->act_occupy_ns);
        out->self = CPS_MAX(out->occupy, of_cycles(c.raw, t->act_mhz) + of_ns(t->act_self_ns));
        out->cross = of_cycles(c.raw, t->act_mhz) + of_ns(t->act_cross_ns);
        break;
    case CPS_POOL:
        out->cycles = POOL_START + c.raw;
        out->occupy = of_cycles(out->cycles, t->pool_mhz) + of_ns(t->pool_occupy_ns);
        out->self = of_cycles(out->cycles, t->pool_mhz) + of_ns(t->pool_self_ns);
        out->cross = of_cycles(out->cycles, t->pool_mhz) + of_ns(t->pool_cross_ns);
        break;
    case CPS_DVE:
        out->occupy = of_cycles(c.floored, t->dve_mhz) + of_ns(t->dve_occupy_ns);
        out->self = of_cycles(c.floored, t->dve_mhz) + of_ns(t->dve_self_ns);
        out->cross = of_cycles(c.floored, t->dve_mhz) + of_ns(t->dve_cross_ns);
        break;
    case CPS_SP:
    default: // a compute instruction in a stream that has no datapath: its issue
        out->occupy = out->self = out->cross = of_ns(t->sp_issue_ns);
        out->cycles = 0;
        break;
    }
}
