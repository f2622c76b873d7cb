/* The tile verifier, rules of engines and generations: which engine reaches which memory and
 * runs which form, where partitions may start, what the PE takes, which dtypes an instruction
 * has. The facts come from the target description; each rule cites where it is documented. An
 * instruction without an engine passes when one engine of its row could run it. */
#include "codegen/isa/isa.h"
#include "codegen/isa/target.h"
#include "ir/tile_check.h"

#include <stdio.h>

#define FAIL(code, ...) return cps_tile_fail(x, d, CPS_##code, __VA_ARGS__)

/* ---- buffers ---- */

bool
cps_tile_rules_bufs(const cps_tfunc *f, const cps_target *t, cps_diags *d)
{
    bool ok = true;
    for (uint32_t i = 1; i < f->bufs.n; i++) {
        const cps_tbuf *b = &f->bufs.data[i];
        if (!cps_on_chip(b))
            continue;
        bool psum = b->space == CPS_PSUM;
        int64_t room =
            psum ? t->psum_banks * t->psum_bank_bytes : t->sbuf_bytes - t->sbuf_reserve;
        int64_t bytes = cps_tbuf_bytes(b), at = CPS_MAX(b->pin_byte, 0);
        int64_t part = b->placed ? b->part : CPS_MAX(b->pin_part, 0);
        at = b->placed ? (int64_t)b->byte : at;
        const char *name = b->name ? b->name : "", *space = psum ? "PSUM" : "SBUF";
        if (psum && !b->placed && b->pin_bank >= 0)
            at += b->pin_bank * t->psum_bank_bytes;
        // What is free to move may be larger than SBUF: the back end streams it.
        bool held = psum || b->placed || b->pin_byte >= 0;
        if (bytes + at > room && held) {
            cps_error(d, CPS_E5113, b->loc,
                      "buffer '%s' takes bytes %lld..%lld of a partition of %s, which has %lld",
                      name, (long long)at, (long long)(at + bytes - 1), space, (long long)room);
            ok = false;
        } else if (part + b->dim[0] > t->sbuf_partitions) {
            cps_error(d, CPS_E5113, b->loc, "buffer '%s' takes partitions %lld..%lld of %lld",
                      name, (long long)part, (long long)(part + b->dim[0] - 1),
                      (long long)t->sbuf_partitions);
            ok = false;
        } else if (b->pin_bank >= 0 && (!psum || b->pin_bank >= t->psum_banks)) {
            cps_error(d, CPS_E5113, b->loc, "buffer '%s' is pinned to bank %d of %s", name,
                      b->pin_bank, space);
            ok = false;
        }
    }
    return ok;
}

/* ---- engines ---- */

static bool
row_runs(cps_top op, cps_engine e)
{
    const char *name = cps_engine_name(e), *p = cps_tops[op].engines;
    size_t n = strlen(name);
    if (strcmp(p, "any") == 0)
        return true;
    for (; (p = strstr(p, name)); p += n)
        if ((p == cps_tops[op].engines || p[-1] == ' ') && (p[n] == ' ' || !p[n]))
            return true;
    return false;
}

static const cps_toper *
operand(const cps_tinst *x, int i)
{
    return i < x->nout ? &x->out[i] : &x->in[i - x->nout];
}

static bool
touches(const cps_tfunc *f, const cps_tinst *x, cps_space space)
{
    for (int i = 0; i < x->nout + x->nin; i++) {
        const cps_tview *v = cps_tc_view(f, operand(x, i));
        if (v && cps_tc_buf(f, v)->space == space)
            return true;
    }
    return false;
}

static bool
scale_and_shift(const cps_tinst *x)
{
    int a = cps_tinst_get(x, CPS_TA_OP0, 0), b = cps_tinst_get(x, CPS_TA_OP1, CPS_ALU_BYPASS);
    return !cps_tinst_get(x, CPS_TA_REVERSE, 0) &&
           ((a == CPS_ALU_MULT && (b == CPS_ALU_ADD || b == CPS_ALU_BYPASS)) ||
            (a == CPS_ALU_ADD && b == CPS_ALU_BYPASS));
}

static bool
wide_int(const cps_tfunc *f, const cps_toper *o)
{
    const cps_tview *v = cps_tc_view(f, o);
    return v && cps_dtype_is_int(v->dtype) && cps_dtype_bytes(v->dtype) > 2;
}

// Why an engine of the row cannot run this form, NULL when it can.
static const char *
refusal(const cps_tfunc *f, const cps_tinst *x, const cps_target *t, cps_engine e)
{
    if (!row_runs((cps_top)x->op, e))
        return "it does not have this instruction";
    if (cps_tops[x->op].outs[0] == 'r' || x->op >= CPS_T_REG_LOAD || x->op == CPS_T_DMA ||
        x->op == CPS_T_DMA_TRANSPOSE)
        return NULL;
    if (e == CPS_POOL && touches(f, x, CPS_PSUM))
        return "it has no port to PSUM"; // isa-semantics 2.2
    if (e == CPS_PE && x->op == CPS_T_TRANSPOSE &&
        (cps_tc_buf(f, cps_tc_view(f, &x->in[0]))->space != CPS_SBUF ||
         cps_tc_buf(f, cps_tc_view(f, &x->out[0]))->space != CPS_PSUM))
        return "it reads SBUF and writes PSUM";
    for (int k = CPS_TA_OP0; k <= CPS_TA_OP1; k++) {
        cps_alu_class c = cps_alu_class_of(
            (unsigned)cps_tinst_get(x, (cps_tattr_key)k, CPS_ALU_BYPASS), t->gen);
        bool special = c == CPS_ALUC_SPECIAL || c == CPS_ALUC_INT || c == CPS_ALUC_CRC;
        if (special && e != CPS_POOL) // isa-semantics 2.5
            return "only POOL has this operator";
        if (c == CPS_ALUC_BITVEC &&
            (e == CPS_ACT || (e == CPS_POOL && x->op != CPS_T_TENSOR_TENSOR)))
            return "it has no bitwise form";
    }
    if (e == CPS_ACT && x->op == CPS_T_TENSOR_SCALAR && (!t->act_copies || !scale_and_shift(x)))
        return "it only multiplies and adds, from v3 on"; // isa-semantics 3.2
    if (e == CPS_ACT && x->op == CPS_T_COPY && !t->act_copies &&
        (wide_int(f, &x->in[0]) || wide_int(f, &x->out[0])))
        return "its copies go through fp32 on v2"; // isa-semantics 2.3
    return NULL;
}

static bool
check_engine(const cps_tfunc *f, const cps_tinst *x, const cps_target *t, cps_diags *d)
{
    if (strcmp(cps_tops[x->op].engines, "any") == 0)
        return true;
    if (x->engine != CPS_ENGINE_ANY) {
        const char *why = refusal(f, x, t, (cps_engine)x->engine);
        if (why)
            FAIL(E5102, "cannot run on %s of %s: %s", cps_engine_name((cps_engine)x->engine),
                 t->name, why);
        return true;
    }
    char reasons[200] = "";
    size_t at = 0;
    for (int e = 0; e < CPS_ENGINES; e++) {
        if (!row_runs((cps_top)x->op, (cps_engine)e))
            continue;
        const char *why = refusal(f, x, t, (cps_engine)e);
        if (!why)
            return true;
        int n = snprintf(reasons + at, sizeof reasons - at, "%s%s: %s", at ? "; " : "",
                         cps_engine_name((cps_engine)e), why);
        at = CPS_MIN(at + (size_t)n, sizeof reasons - 1);
    }
    FAIL(E5102, "no engine of %s can run this (%s)", t->name, reasons);
}

/* ---- memories ---- */

static bool
check_spaces(const cps_tfunc *f, const cps_tinst *x, cps_diags *d)
{
    bool dma = x->op == CPS_T_DMA || x->op == CPS_T_DMA_TRANSPOSE;
    if ((dma || x->op == CPS_T_REG_LOAD) && touches(f, x, CPS_PSUM))
        FAIL(E5103, "DMA does not reach PSUM; copy through SBUF"); // since NKI 0.3.0
    if (x->op == CPS_T_MATMUL) {
        for (int k = 0; k < 2; k++)
            if (cps_tc_buf(f, cps_tc_view(f, &x->in[k]))->space != CPS_SBUF)
                FAIL(E5103, "the PE reads SBUF only");
        if (cps_tc_buf(f, cps_tc_view(f, &x->out[0]))->space != CPS_PSUM)
            FAIL(E5103, "the PE writes PSUM only");
    }
    // Two tensors of one VectorE instruction: not both in PSUM (isa-semantics 2.2).
    int tensors = 0;
    for (int k = 0; k < x->nin; k++) {
        const cps_tview *v = cps_tc_view(f, &x->in[k]);
        if (cps_tops[x->op].ins[k] == 'd' && v && cps_tc_buf(f, v)->space == CPS_PSUM)
            tensors++;
    }
    if (tensors > 1)
        FAIL(E5104, "%d of its tensors are in PSUM, at most one may be", tensors);
    return true;
}

static unsigned
first_partition(const cps_tfunc *f, const cps_tview *v)
{
    const cps_tbuf *b = cps_tc_buf(f, v);
    return v->part + (unsigned)(b->placed ? b->part : CPS_MAX(b->pin_part, 0));
}

// isa-semantics 2.1. DMA and the sequencer may start anywhere.
static bool
check_starts(const cps_tfunc *f, const cps_tinst *x, cps_diags *d)
{
    if (x->op == CPS_T_DMA || x->op == CPS_T_DMA_TRANSPOSE || x->op >= CPS_T_REG_LOAD)
        return true;
    for (int i = 0; i < x->nout + x->nin; i++) {
        const cps_tview *v = cps_tc_view(f, operand(x, i));
        if (!v)
            continue;
        unsigned p = first_partition(f, v), n = v->parts;
        if (n > 64 ? p != 0 : n > 32 ? p % 64 != 0 : p % 32 != 0)
            FAIL(E5105, "%u partitions of '%s' start at %u, may at %s", n,
                 cps_tc_buf(f, v)->name ? cps_tc_buf(f, v)->name : "", p,
                 n > 64   ? "0"
                 : n > 32 ? "0 and 64"
                          : "0, 32, 64 and 96");
    }
    return true;
}

/* ---- dtypes ---- */

static bool
check_tensor_dtypes(const cps_tfunc *f, const cps_tinst *x, const cps_target *t, cps_diags *d)
{
    bool raw = x->op == CPS_T_COPY || x->op == CPS_T_TRANSPOSE || x->op == CPS_T_SHUFFLE ||
               x->op == CPS_T_DMA || x->op == CPS_T_DMA_TRANSPOSE || x->op == CPS_T_MATMUL;
    bool dma = x->op == CPS_T_DMA || x->op == CPS_T_DMA_TRANSPOSE;
    for (int i = 0; i < x->nout + x->nin; i++) {
        const cps_tview *v = cps_tc_view(f, operand(x, i));
        if (!v || dma)
            continue;
        if (cps_dtype_bytes(v->dtype) == 8)
            FAIL(E5108, "%s has 64 bits, which only DMA moves", cps_dtype_name(v->dtype));
        if (cps_dtypes[v->dtype].kind == 'P' && !raw)
            FAIL(E5108, "%s is packed: it can be moved, not computed with",
                 cps_dtype_name(v->dtype));
        if (v->dtype == CPS_DT_FP4E2M1)
            FAIL(E5108, "fp4e2m1 exists on chip only packed by four");
        if (v->dtype == CPS_DT_FP8E4M3FN && t->gen < CPS_V4 && !raw)
            FAIL(E5108, "fp8e4m3fn is computed with from v4 on; fp8e4m3 before");
    }
    return true;
}

static cps_dtype
type_of(const cps_tfunc *f, const cps_toper *o)
{
    return cps_tc_view(f, o)->dtype;
}

static bool
bitwise_dtypes(const cps_tfunc *f, const cps_tinst *x, const cps_target *t, cps_diags *d)
{
    cps_alu_class first = CPS_ALUC_BOTH;
    for (int k = CPS_TA_OP0; k <= CPS_TA_RED; k++) {
        if (!(x->set >> k & 1) || x->op >= CPS_T_REG_LOAD)
            continue;
        unsigned op = (unsigned)x->attr[k];
        cps_alu_class c = cps_alu_class_of(op, t->gen);
        if (c == CPS_ALUC_NONE)
            FAIL(E5111, "operator '%s' does not exist on %s", cps_alu_name(op), t->name);
        if (c == CPS_ALUC_BOTH || x->op == CPS_T_AFFINE_SELECT)
            continue;
        bool bits = c == CPS_ALUC_BITVEC || c == CPS_ALUC_CRC;
        if (first != CPS_ALUC_BOTH &&
            bits != (first == CPS_ALUC_BITVEC || first == CPS_ALUC_CRC))
            FAIL(E5110, "bitwise and arithmetic operators do not mix in one instruction");
        first = c;
        if (c == CPS_ALUC_INT && x->op != CPS_T_TENSOR_TENSOR)
            FAIL(E5110, "integer operators exist in tensor_tensor only");
        if (!bits && c != CPS_ALUC_INT)
            continue;
        unsigned width = 0;
        for (int i = 0; i < x->nout + x->nin; i++) {
            const cps_tview *v = cps_tc_view(f, operand(x, i));
            if (!v)
                continue;
            if (!cps_dtype_is_int(v->dtype))
                FAIL(E5108, "operator '%s' on %s: it takes integers", cps_alu_name(op),
                     cps_dtype_name(v->dtype));
            if (width && width != cps_dtype_bytes(v->dtype) && bits)
                FAIL(E5108, "bitwise operands have one width");
            width = cps_dtype_bytes(v->dtype);
        }
    }
    return true;
}

static bool
compares(int op)
{
    return op >= CPS_ALU_IS_EQ && op <= CPS_ALU_IS_NE && op != CPS_ALU_ABS_DIFF;
}

// Reductions have an operator with an identity that does not depend on the data.
static bool
reduces(int op)
{
    static const uint8_t ops[] = {CPS_ALU_ADD,        CPS_ALU_SUBTRACT,    CPS_ALU_MULT,
                                  CPS_ALU_MAX,        CPS_ALU_MIN,         CPS_ALU_LOGICAL_AND,
                                  CPS_ALU_LOGICAL_OR, CPS_ALU_LOGICAL_XOR, CPS_ALU_BITWISE_AND,
                                  CPS_ALU_BITWISE_OR, CPS_ALU_BITWISE_XOR, CPS_ALU_ABS_MAX,
                                  CPS_ALU_ABS_MIN};
    for (size_t i = 0; i < sizeof ops; i++)
        if (op == ops[i])
            return true;
    return false;
}

/* ---- single instructions ---- */

static bool
pe_dtype(cps_dtype t, cps_gen g)
{
    switch (t) {
    case CPS_DT_BF16:
    case CPS_DT_FP16:
    case CPS_DT_TF32:
    case CPS_DT_FP32:
    case CPS_DT_FP8E4M3:
    case CPS_DT_FP8E5M2:
        return true;
    case CPS_DT_FP8E3M4:
        return g < CPS_V4; // v2, and still on v3 (isa-semantics 3.1)
    case CPS_DT_FP8E4M3FN:
        return g >= CPS_V4;
    default:
        return false;
    }
}

static bool
check_bank(const cps_tfunc *f, const cps_tinst *x, const cps_target *t, const cps_tview *o,
           cps_diags *d)
{
    const cps_tbuf *b = cps_tc_buf(f, o);
    int64_t lo, hi, es = cps_dtype_bytes(o->dtype), bank = t->psum_bank_bytes;
    int64_t base = b->placed ? b->byte : 0; // unplaced buffers start a bank, or share one
    cps_tc_reach(o, 0, &lo, &hi);
    if (o->reg || t->gen >= CPS_V4)
        return true;
    if ((base + lo * es) / bank != (base + (hi + 1) * es - 1) / bank)
        FAIL(E5109, "its result spans more than one PSUM bank of %lld bytes", (long long)bank);
    return true;
}

static bool
check_matmul(const cps_tfunc *f, const cps_tinst *x, const cps_target *t, cps_diags *d)
{
    const cps_tview *w = cps_tc_view(f, &x->in[0]), *m = cps_tc_view(f, &x->in[1]);
    const cps_tview *o = cps_tc_view(f, &x->out[0]);
    bool transpose = cps_tinst_get(x, CPS_TA_TRANSPOSE, 0) != 0;
    bool perf = cps_tinst_get(x, CPS_TA_PERF, 0) != 0;
    bool w32 = w->dtype == CPS_DT_FP32 || w->dtype == CPS_DT_TF32;
    bool m32 = m->dtype == CPS_DT_FP32 || m->dtype == CPS_DT_TF32;
    int64_t n = cps_tview_elems(o), most = t->pe_moving_max;
    if (o->dtype == CPS_DT_BF16 && t->gen >= CPS_V4)
        most *= 2;
    if (w->parts > 128 || o->parts > 128 || n > most)
        FAIL(E5109, "K %u, M %u, N %lld; limits are 128, 128 and %lld", w->parts, o->parts,
             (long long)n, (long long)most);
    if (first_partition(f, w) != first_partition(f, m))
        FAIL(E5105, "weights and moving data start at partitions %u and %u, must at one",
             first_partition(f, w), first_partition(f, m));
    if (transpose && !t->pe_transpose)
        FAIL(E5111, "%s has no pass-through transpose", t->name);
    if (transpose)
        return (o->dtype == w->dtype ||
                cps_tile_fail(x, d, CPS_E5108, "a transpose of %s gives %s, not %s",
                              cps_dtype_name(w->dtype), cps_dtype_name(w->dtype),
                              cps_dtype_name(o->dtype))) &&
               check_bank(f, x, t, o, d);
    if (!pe_dtype(w->dtype, t->gen) || !pe_dtype(m->dtype, t->gen))
        FAIL(E5108, "%s @ %s on %s", cps_dtype_name(w->dtype), cps_dtype_name(m->dtype),
             t->name);
    if (w32 != m32)
        FAIL(E5108, "%s @ %s: fp32 and tf32 go with fp32 and tf32 only",
             cps_dtype_name(w->dtype), cps_dtype_name(m->dtype));
    if ((w->dtype == CPS_DT_FP8E4M3FN && m->dtype == CPS_DT_FP8E4M3) ||
        (w->dtype == CPS_DT_FP8E4M3 && m->dtype == CPS_DT_FP8E4M3FN))
        FAIL(E5108, "fp8e4m3fn and fp8e4m3 do not mix");
    if (o->dtype != CPS_DT_FP32 && !(o->dtype == CPS_DT_BF16 && t->gen >= CPS_V4))
        FAIL(E5108, "the result is %s, must be fp32%s", cps_dtype_name(o->dtype),
             t->gen >= CPS_V4 ? " or bf16" : "");
    if (perf && (!t->pe_fp8_double_row || cps_dtype_bytes(w->dtype) != 1 ||
                 cps_dtype_bytes(m->dtype) != 1))
        return cps_tile_fail(x, d, t->pe_fp8_double_row ? CPS_E5108 : CPS_E5111,
                             "double rows take fp8 operands, on v3 and v4");
    return check_bank(f, x, t, o, d);
}

static bool
check_transpose(const cps_tfunc *f, const cps_tinst *x, const cps_target *t, cps_diags *d)
{
    const cps_tview *s = cps_tc_view(f, &x->in[0]), *o = cps_tc_view(f, &x->out[0]);
    bool psum = cps_tc_buf(f, o)->space == CPS_PSUM;
    bool pe = x->engine == CPS_PE || (x->engine == CPS_ENGINE_ANY && psum);
    if (!pe) {
        if (s->dtype != o->dtype)
            FAIL(E5108, "DVE moves bits: %s cannot become %s", cps_dtype_name(s->dtype),
                 cps_dtype_name(o->dtype));
        if (s->parts % 32 || o->parts % 32)
            FAIL(E5107, "DVE transposes whole blocks of 32 x 32, not [%u,%u]", s->parts,
                 o->parts);
        return true;
    }
    if (s->parts > 128 || o->parts > 128)
        FAIL(E5109, "[%u,%u]; the PE transposes up to [128,128]", s->parts, o->parts);
    if (s->dtype != o->dtype && !(o->dtype == CPS_DT_FP32 && !t->pe_transpose))
        FAIL(E5108, "a transpose of %s gives %s, not %s", cps_dtype_name(s->dtype),
             cps_dtype_name(s->dtype), cps_dtype_name(o->dtype));
    if (!t->pe_transpose && !pe_dtype(s->dtype, t->gen))
        FAIL(E5108, "on %s the PE multiplies to transpose, which %s does not survive", t->name,
             cps_dtype_name(s->dtype));
    return check_bank(f, x, t, o, d);
}

static bool
check_one(const cps_tfunc *f, const cps_tinst *x, const cps_target *t, cps_diags *d)
{
    int op0 = cps_tinst_get(x, CPS_TA_OP0, 0), op1 = cps_tinst_get(x, CPS_TA_OP1, 0);
    switch (x->op) {
    case CPS_T_MATMUL:
        return check_matmul(f, x, t, d);
    case CPS_T_TRANSPOSE:
        return check_transpose(f, x, t, d);
    case CPS_T_ACTIVATION:
        if (cps_tinst_get(x, CPS_TA_FUNC, CPS_ACTFN_COPY) == CPS_ACTFN_RECIPROCAL &&
            t->gen == CPS_V2 &&
            !(x->in[2].kind == CPS_TO_NONE ||
              (x->in[2].kind == CPS_TO_IMM && x->in[2].imm == 0 && x->in[2].ival == 0)))
            FAIL(E5111, "reciprocal takes no bias on v2"); // isa-semantics 2.6
        return true;
    case CPS_T_TENSOR_REDUCE:
        if (!reduces(op0))
            FAIL(E5110, "'%s' does not reduce", cps_alu_name((unsigned)op0));
        return true;
    case CPS_T_TS_REDUCE: {
        int red = cps_tinst_get(x, CPS_TA_RED, CPS_ALU_ADD);
        if (red != CPS_ALU_ADD && red != CPS_ALU_MULT && red != CPS_ALU_MAX &&
            red != CPS_ALU_MIN)
            FAIL(E5110, "reduces by add, mult, max or min, not '%s'",
                 cps_alu_name((unsigned)red));
        return true;
    }
    case CPS_T_COPY_PRED:
        if (!cps_dtype_is_int(type_of(f, &x->in[0])))
            FAIL(E5108, "the predicate is %s, must be an integer",
                 cps_dtype_name(type_of(f, &x->in[0])));
        return true;
    case CPS_T_SELECT_REDUCE:
        if (!cps_dtype_is_int(type_of(f, &x->in[0])) ||
            cps_dtype_bytes(type_of(f, &x->in[0])) > 2)
            FAIL(E5108, "the predicate is %s, must be an integer of 8 or 16 bits",
                 cps_dtype_name(type_of(f, &x->in[0])));
        return true;
    case CPS_T_RANGE_SELECT:
        if (!t->dve_range_select)
            FAIL(E5111, "exists from v3 on");
        if (!compares(op0) || !compares(op1) || op0 == CPS_ALU_IS_NE || op1 == CPS_ALU_IS_NE)
            FAIL(E5110, "compares by is_eq, is_gt, is_ge, is_le or is_lt");
        if (!cps_dtype_is_float(type_of(f, &x->in[0])))
            FAIL(E5108, "the data is %s, must be a float",
                 cps_dtype_name(type_of(f, &x->in[0])));
        return true;
    case CPS_T_AFFINE_SELECT:
        if (!compares(cps_tinst_get(x, CPS_TA_OP0, CPS_ALU_IS_EQ)))
            FAIL(E5110, "compares, '%s' does not", cps_alu_name((unsigned)op0));
        return true;
    case CPS_T_FIND_INDEX8:
    case CPS_T_MATCH_REPLACE8:
        for (int k = x->op == CPS_T_MATCH_REPLACE8; k < x->nout; k++) {
            cps_dtype ty = type_of(f, &x->out[k]);
            if (!cps_dtype_is_int(ty) || cps_dtype_bytes(ty) < 2)
                FAIL(E5108, "positions are integers of 16 or 32 bits, not %s",
                     cps_dtype_name(ty));
        }
        return true;
    case CPS_T_SHUFFLE:
        if (type_of(f, &x->in[0]) != type_of(f, &x->out[0]))
            FAIL(E5108, "a shuffle keeps its dtype");
        return true;
    case CPS_T_BN_STATS:
        if (cps_tview_elems(cps_tc_view(f, &x->in[0])) > 512)
            FAIL(E5107, "takes up to 512 elements");
        return true;
    case CPS_T_DMA_TRANSPOSE:
        if (!t->dma_transpose)
            FAIL(E5111, "%s has no transposing DMA", t->name);
        return true;
    case CPS_T_DMA:
        if (cps_tinst_get(x, CPS_TA_DGE, 0) == 2 && t->gen == CPS_V2)
            FAIL(E5111, "hardware descriptor generation exists from v3 on");
        return true;
    case CPS_T_WHEN:
        if (!compares(op0))
            FAIL(E5110, "compares, '%s' does not", cps_alu_name((unsigned)op0));
        return true;
    case CPS_T_REG_ALU: // the sequencer's operators (isa-encoding, CTRL_AL)
        if (op0 != CPS_ALU_ADD && op0 != CPS_ALU_SUBTRACT && op0 != CPS_ALU_MULT &&
            op0 != CPS_ALU_MAX && op0 != CPS_ALU_MIN)
            FAIL(E5110, "registers add, subtract, mult, max and min, not '%s'",
                 cps_alu_name((unsigned)op0));
        return true;
    default:
        return true;
    }
}

bool
cps_tile_rules(const cps_tfunc *f, const cps_tinst *x, const cps_target *t, cps_diags *d)
{
    return check_spaces(f, x, d) && bitwise_dtypes(f, x, t, d) && check_engine(f, x, t, d) &&
           check_starts(f, x, d) && check_tensor_dtypes(f, x, t, d) && check_one(f, x, t, d);
}
