/* Rules of single instructions: the rows of rule.def, one loop per kind of row, one function
 * per relation of element counts; and the few rules of the shipped validator that join several
 * fields and are no row. Values, dtypes and places of single fields were checked before. */
#include "codegen/isa/verify.h"

/* ---- operators and values ---- */

enum {
    BOTH = 1 << CPS_ALUC_BOTH,
    BITVEC = BOTH | 1 << CPS_ALUC_BITVEC | 1 << CPS_ALUC_CRC,
    GENERAL = BOTH | 1 << CPS_ALUC_GENERAL,
    ARITH = GENERAL | 1 << CPS_ALUC_SPECIAL,
    INT = 1 << CPS_ALUC_INT
};

static void
operators(cps_checker *c)
{
    static const struct {
        uint16_t insn, f, classes;
    } rule[] = {
#define CPS_CLASS(id, fmt, field, set) {CPS_INSN_##id, CPS_F_##fmt##_##field, set},
#include "codegen/isa/rule.def"
    };
    for (size_t i = 0; i < cps_countof(rule); i++) {
        if (rule[i].insn != c->id)
            continue;
        unsigned v = cps_check_get(c, (cps_field)rule[i].f);
        cps_alu_class k = cps_alu_class_of(v, c->g);
        const char *name = cps_fields[rule[i].f].name;
        if (k == CPS_ALUC_NONE)
            continue; // said already
        if (!(rule[i].classes & (1u << k)))
            cps_check_report(c, CPS_E5510, "operator %s does not go with %s here",
                             cps_alu_name(v), name);
        // Conditions of the special operators: POOL has them; rsqrt stands alone anywhere.
        else if ((k == CPS_ALUC_SPECIAL || k == CPS_ALUC_CRC || k == CPS_ALUC_INT) &&
                 v != CPS_ALU_RSQRT && c->e != CPS_POOL && c->e != CPS_ENGINE_ANY)
            cps_check_report(c, CPS_E5510, "operator %s exists on the pool engine only",
                             cps_alu_name(v));
    }
}

static void
allowed(cps_checker *c)
{
    static const struct {
        uint16_t insn, f;
        uint64_t set;
    } one_of[] = {
#define CPS_ONE_OF(id, fmt, field, set) {CPS_INSN_##id, CPS_F_##fmt##_##field, set},
#include "codegen/isa/rule.def"
    };
    static const struct {
        uint16_t insn, f, by;
    } multiple[] = {
#define CPS_MULTIPLE(id, fmt, field, by) {CPS_INSN_##id, CPS_F_##fmt##_##field, by},
#include "codegen/isa/rule.def"
    };
    for (size_t i = 0; i < cps_countof(one_of); i++) {
        if (one_of[i].insn != c->id)
            continue;
        unsigned v = cps_check_get(c, (cps_field)one_of[i].f);
        if (v >= 64 || !(one_of[i].set >> v & 1))
            cps_check_report(c, CPS_E5509, "%s cannot be %u here", cps_fields[one_of[i].f].name,
                             v);
    }
    for (size_t i = 0; i < cps_countof(multiple); i++) {
        unsigned v = multiple[i].insn == c->id ? cps_check_get(c, (cps_field)multiple[i].f) : 0;
        if (v % multiple[i].by)
            cps_check_report(c, CPS_E5509, "%s is %u, not a multiple of %u",
                             cps_fields[multiple[i].f].name, v, multiple[i].by);
    }
}

static void
same_dtypes(cps_checker *c)
{
    static const struct {
        uint16_t insn, a, b;
    } rule[] = {
#define CPS_SAME(id, fmt, x, y) {CPS_INSN_##id, CPS_F_##fmt##_##x, CPS_F_##fmt##_##y},
#include "codegen/isa/rule.def"
    };
    for (size_t i = 0; i < cps_countof(rule); i++) {
        if (rule[i].insn != c->id)
            continue;
        cps_operand a = cps_check_operand(c, (cps_field)rule[i].a),
                    b = cps_check_operand(c, (cps_field)rule[i].b);
        if (a.wire != b.wire)
            cps_check_report(c, CPS_E5507, "%s and %s must have one dtype", a.r->name,
                             b.r->name);
    }
}

static void
tags(cps_checker *c)
{
    static const struct {
        uint16_t insn, f;
        uint32_t set;
    } rule[] = {
#define CPS_TAGS(id, fmt, field, set) {CPS_INSN_##id, CPS_F_##fmt##_##field, set},
#include "codegen/isa/rule.def"
    };
    for (size_t i = 0; i < cps_countof(rule); i++) {
        if (rule[i].insn != c->id)
            continue;
        cps_operand o = cps_check_operand(c, (cps_field)rule[i].f);
        cps_dtype t = cps_isa_dtype(o.wire);
        if (t && !(o.wire < 32 && rule[i].set >> o.wire & 1))
            cps_check_report(c, CPS_E5507, "%s cannot have dtype %s here", o.r->name,
                             cps_dtype_name(t));
    }
}

/* ---- element counts: one function per relation of rule.def ---- */

typedef struct counted {
    cps_checker *c;
    const cps_operands *o;
    const cps_operand *in, *out; // first input, output
} counted;

static void
differ(counted *k, const char *a, uint64_t na, const char *what, uint64_t nb)
{
    cps_check_report(k->c, CPS_E5514, "%s has %llu elements, %s %llu", a,
                     (unsigned long long)na, what, (unsigned long long)nb);
}

static void
count_equal(counted *k)
{
    for (unsigned i = 0; i < k->o->n; i++)
        if (k->in[i].count != k->out->count) {
            differ(k, k->in[i].r->name, k->in[i].count, "dst", k->out->count);
            return;
        }
}

static void
count_columns(counted *k)
{
    // Two rows share a PE in double-row mode: the source then has two elements a column.
    unsigned per =
        cps_check_get(k->c, CPS_F_S3D3_MM_perf_opt) == CPS_PERF_OPT_MODE_DOUBLE_ROW ? 2 : 1;
    if (k->in->count != per * k->out->count)
        differ(k, "src", k->in->count, per == 2 ? "twice dst would be" : "dst",
               per * k->out->count);
}

static void
count_folded(counted *k)
{
    unsigned dim = k->c->insn->format == CPS_FMT_S4D4_PL
                       ? cps_check_get(k->c, CPS_F_S4D4_PL_pool_dim)
                       : cps_check_get(k->c, CPS_F_S4D4_TR_op_dim);
    uint64_t kept = 1;
    for (unsigned i = dim < 2 ? 0 : dim - 1; i < k->in->ap.nd; i++)
        kept *= k->in->ap.num[i];
    if (kept != k->out->count)
        differ(k, "dst", k->out->count, "the dimensions that stay", kept);
}

static void
count_lanes(counted *k)
{
    bool all = cps_check_get(k->c, CPS_F_S4D4_CR_reduce_axis) == CPS_REDUCE_AXIS_ALL;
    if (k->out->count != (all ? 1 : k->in->count))
        differ(k, "dst", k->out->count, "the reduction", all ? 1 : k->in->count);
}

static void
count_eight(counted *k)
{
    const cps_operand *eight = k->o->has_out ? k->out : k->in;
    if (eight->count != 8)
        differ(k, eight->r->name, eight->count, "there are keys:", 8);
    if (k->o->has_out && (k->in->count < 8 || k->in->count > 16384))
        differ(k, "src", k->in->count, "8 are needed, at most", 16384);
}

static void
count_six(counted *k)
{
    if (k->out->count != 6)
        differ(k, "dst", k->out->count, "there are statistics:", 6);
    if (k->in->count > 512)
        differ(k, "src", k->in->count, "at most", 512);
}

static void
count_three(counted *k)
{
    if (k->out->count != 3)
        differ(k, "dst", k->out->count, "there are sums:", 3);
    if (k->in[0].count != k->in[1].count)
        differ(k, "src0", k->in[0].count, "src1", k->in[1].count);
}

// STREAM_TRANSPOSE works on blocks of 32 x 32 and may write fewer elements than it reads.
static void
count_blocks(counted *k)
{
    if (k->in->count % 32)
        differ(k, "src", k->in->count, "it takes multiples of", 32);
    if (k->out->count > k->in->count)
        differ(k, "dst", k->out->count, "src only", k->in->count);
}

static void
count_gathered(counted *k)
{
    unsigned n = cps_check_get(k->c, CPS_F_S4D4_IC_src_num_elem);
    unsigned per = cps_check_get(k->c, CPS_F_S4D4_IC_src_num_elem_per_idx);
    if (per && n / per > 4096)
        differ(k, "the index list", n / per, "at most", 4096);
}

static void
count_pair(counted *k)
{
    if (k->out->count != 2)
        differ(k, "dst", k->out->count, "mean and variance are", 2);
    if (k->in->count % 3)
        differ(k, "src", k->in->count, "it takes multiples of", 3);
}

static void
count_stated(counted *k)
{
    unsigned n = cps_check_get(k->c, CPS_F_D4_MR_dst_element_count);
    if (n != k->out->count)
        differ(k, "dst", k->out->count, "dst_element_count says", n);
}

static void
count_one_more(counted *k)
{
    if (k->out->count != k->in->count + 1)
        differ(k, "dst", k->out->count, "src and the count are", k->in->count + 1);
}

static void
count_weights(counted *k)
{
    // One element a column; two in double-row mode.
    unsigned per =
        cps_check_get(k->c, CPS_F_S3_LW_perf_opt) == CPS_PERF_OPT_MODE_DOUBLE_ROW ? 2 : 1;
    unsigned cols = cps_check_get(k->c, CPS_F_S3_LW_num_active_cols);
    if (k->in->count != (uint64_t)per * cols)
        differ(k, "src", k->in->count, "the active columns take", (uint64_t)per * cols);
}

static void
counts(cps_checker *c, const cps_operands *o)
{
    typedef void count_fn(counted * k);
    static const struct {
        uint16_t insn;
        count_fn *check;
    } rule[] = {
#define CPS_COUNTS(id, relation) {CPS_INSN_##id, count_##relation},
#include "codegen/isa/rule.def"
    };
    counted k = {.c = c, .o = o, .in = o->in, .out = &o->out};
    for (size_t i = 0; i < cps_countof(rule); i++)
        if (rule[i].insn == c->id)
            rule[i].check(&k);
}

/* ---- rules that join several fields ---- */

// Arithmetic right shifts, and a left after a right shift, need 4-byte data.
static void
shifts(cps_checker *c, cps_field f0, cps_field f1, const cps_operands *o)
{
    unsigned op0 = cps_check_get(c, f0), op1 = cps_check_get(c, f1);
    bool pair = op0 == CPS_ALU_LOGICAL_SHIFT_LEFT && op1 == CPS_ALU_LOGICAL_SHIFT_RIGHT;
    bool right = op0 == CPS_ALU_ARITH_SHIFT_RIGHT || op1 == CPS_ALU_ARITH_SHIFT_RIGHT;
    if ((pair || right) && o->in[0].bytes != 4)
        cps_check_report(c, CPS_E5510, "these shifts take 4-byte data, src has %u bytes",
                         o->in[0].bytes);
}

static void
tensor_scalar(cps_checker *c, const cps_operands *o)
{
    unsigned op0 = cps_check_get(c, CPS_F_S3D3_TS_op0),
             op1 = cps_check_get(c, CPS_F_S3D3_TS_op1);
    shifts(c, CPS_F_S3D3_TS_op0, CPS_F_S3D3_TS_op1, o);
    if (op0 == CPS_ALU_BYPASS && op1 != CPS_ALU_BYPASS)
        cps_check_report(c, CPS_E5510, "op0 may be bypass only when op1 is");
    if (op0 != CPS_ALU_RSQRT)
        return;
    if (op1 != CPS_ALU_BYPASS)
        cps_check_report(c, CPS_E5510, "rsqrt goes with op1 bypass");
    if (cps_check_get(c, CPS_F_S3D3_TS_imm0) || cps_check_get(c, CPS_F_S3D3_TS_imm1))
        cps_check_report(c, CPS_E5509, "rsqrt takes no scalars; both are 0");
}

static void
activate2(cps_checker *c)
{
    static const uint8_t legal[][2] = {
        {CPS_ALU_MULT, CPS_ALU_ADD},        {CPS_ALU_MULT, CPS_ALU_SUBTRACT},
        {CPS_ALU_MULT, CPS_ALU_BYPASS},     {CPS_ALU_ADD, CPS_ALU_BYPASS},
        {CPS_ALU_SUBTRACT, CPS_ALU_BYPASS}, {CPS_ALU_BYPASS, CPS_ALU_BYPASS}};
    unsigned op0 = cps_check_get(c, CPS_F_S2D2_AC_op0),
             op1 = cps_check_get(c, CPS_F_S2D2_AC_op1);
    bool found = false;
    for (size_t i = 0; i < cps_countof(legal); i++)
        found = found || (legal[i][0] == op0 && legal[i][1] == op1);
    if (!found)
        cps_check_report(c, CPS_E5510, "op0 and op1 are no pair that the engine has");
    if ((cps_check_get(c, CPS_F_S2D2_AC_reduce_cmd) == CPS_REDUCE_CMD_IDLE) !=
        (cps_check_get(c, CPS_F_S2D2_AC_reduce_op) == CPS_ALU_BYPASS))
        cps_check_report(c, CPS_E5510, "reduce_op is bypass exactly when reduce_cmd is idle");
}

// The constant of a fill stands in the destination's own bits.
static void
fill(cps_checker *c, const cps_operands *o)
{
    uint32_t v = cps_check_get(c, CPS_F_D4_MR_set_value);
    unsigned bits = 8 * o->out.bytes;
    if (bits && bits < 32 && v >> bits)
        cps_check_report(c, CPS_E5509, "set_value 0x%x does not fit %u bits", v, bits);
}

// A plain DMA moves as many bytes as it reads and keeps the dtype; others go through the
// computing path.
static void
direct2d(cps_checker *c)
{
    const cps_field from = CPS_F_DMA_DIRECT2D_src_num_elem,
                    to = CPS_F_DMA_DIRECT2D_dst_num_elem;
    if (cps_check_get(c, CPS_F_DMA_DIRECT2D_compute_op) != CPS_DGE_COMPUTE_OP_NONE ||
        cps_check_get(c, CPS_F_DMA_DIRECT2D_in_dtype) !=
            cps_check_get(c, CPS_F_DMA_DIRECT2D_out_dtype))
        return;
    uint64_t in = cps_check_get(c, CPS_F_DMA_DIRECT2D_src_elem_size);
    uint64_t out = cps_check_get(c, CPS_F_DMA_DIRECT2D_dst_elem_size);
    in = in ? in : 65536;
    out = out ? out : 65536;
    for (unsigned i = 0; i < 2; i++) {
        in *= cps_isa_get_elem(c->b, from, i);
        out *= cps_isa_get_elem(c->b, to, i);
    }
    if (in != out)
        cps_check_report(c, CPS_E5514, "the source has %llu bytes, the destination %llu",
                         (unsigned long long)in, (unsigned long long)out);
}

// Register transfers move a small rectangle: 1 to 32 each way, 32 in all.
static void
registers(cps_checker *c)
{
    cps_field f = c->insn->format == CPS_FMT_MEM_2D ? CPS_F_MEM_2D_num_elem
                                                    : CPS_F_PSEUDO_MEM_2D_num_elem;
    uint64_t x = cps_isa_get_elem(c->b, f, 0), y = cps_isa_get_elem(c->b, f, 1);
    if (x < 1 || y < 1 || x * y > 32)
        cps_check_report(c, CPS_E5514, "num_elem is %u by %u; 1 to 32 elements fit",
                         (unsigned)x, (unsigned)y);
}

static void
joined(cps_checker *c, const cps_operands *o)
{
    switch ((unsigned)c->insn->format) {
    case CPS_FMT_S3D3_TS:
        tensor_scalar(c, o);
        break;
    case CPS_FMT_S2S2D2_STT:
        shifts(c, CPS_F_S2S2D2_STT_op0, CPS_F_S2S2D2_STT_op1, o);
        break;
    case CPS_FMT_S2D2_AC:
        activate2(c);
        break;
    case CPS_FMT_D4_MR:
        fill(c, o);
        break;
    case CPS_FMT_MEM_2D:
    case CPS_FMT_PSEUDO_MEM_2D:
        registers(c);
        break;
    case CPS_FMT_CTRL_ER:
        if (cps_check_get(c, CPS_F_CTRL_ER_first) > cps_check_get(c, CPS_F_CTRL_ER_last))
            cps_check_report(c, CPS_E5509, "the range of semaphores ends before it begins");
        break;
    case CPS_FMT_DMA_DIRECT2D:
        direct2d(c);
        break;
    case CPS_FMT_S2D2_RS:
        if (cps_check_get(c, CPS_F_S2D2_RS_fill) != cps_fields[CPS_F_S2D2_RS_fill].dflt)
            cps_check_report(c, CPS_E5509, "the fill value is -FLT_MAX, no other");
        break;
    }
}

void
cps_check_insn(cps_checker *c, const cps_operands *o)
{
    if (o->known)
        counts(c, o);
    operators(c);
    allowed(c);
    same_dtypes(c);
    tags(c);
    joined(c, o);
}
