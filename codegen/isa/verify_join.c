/* Rules that join several fields of an instruction: what rows JOIN name. */
#include "codegen/isa/verify.h"

/* ---- operators ---- */

static void
shifts(cps_checker *c, cps_field f0, cps_field f1, const cps_operands *o)
{
    unsigned op0 = cps_check_get(c, f0), op1 = cps_check_get(c, f1);
    bool pair = op0 == CPS_ALU_LOGICAL_SHIFT_LEFT && op1 == CPS_ALU_LOGICAL_SHIFT_RIGHT;
    bool right = op0 == CPS_ALU_ARITH_SHIFT_RIGHT || op1 == CPS_ALU_ARITH_SHIFT_RIGHT;
    if ((pair || right) && o->in[0]->bytes != 4)
        cps_check_report(c, CPS_RULE_SHIFTS, "these shifts take 4-byte data, src has %u bytes",
                         o->in[0]->bytes);
}

void
cps_join_shifts_ts(cps_checker *c, const cps_operands *o)
{
    shifts(c, CPS_F_S3D3_TS_op0, CPS_F_S3D3_TS_op1, o);
}

void
cps_join_shifts_stt(cps_checker *c, const cps_operands *o)
{
    shifts(c, CPS_F_S2S2D2_STT_op0, CPS_F_S2S2D2_STT_op1, o);
}

void
cps_join_bypass(cps_checker *c, const cps_operands *o)
{
    (void)o;
    if (cps_check_get(c, CPS_F_S3D3_TS_op0) == CPS_ALU_BYPASS &&
        cps_check_get(c, CPS_F_S3D3_TS_op1) != CPS_ALU_BYPASS)
        cps_check_report(c, CPS_RULE_BYPASS, "op0 may be bypass only when op1 is");
}

void
cps_join_rsqrt(cps_checker *c, const cps_operands *o)
{
    (void)o;
    if (cps_check_get(c, CPS_F_S3D3_TS_op0) != CPS_ALU_RSQRT)
        return;
    if (cps_check_get(c, CPS_F_S3D3_TS_op1) != CPS_ALU_BYPASS)
        cps_check_report(c, CPS_RULE_RSQRT, "rsqrt goes with op1 bypass");
    if (cps_check_get(c, CPS_F_S3D3_TS_imm0) || cps_check_get(c, CPS_F_S3D3_TS_imm1))
        cps_check_report(c, CPS_RULE_RSQRT, "rsqrt takes no scalars; both are 0");
}

void
cps_join_op_pair(cps_checker *c, const cps_operands *o)
{
    static const uint8_t legal[][2] = {
        {CPS_ALU_MULT, CPS_ALU_ADD},        {CPS_ALU_MULT, CPS_ALU_SUBTRACT},
        {CPS_ALU_MULT, CPS_ALU_BYPASS},     {CPS_ALU_ADD, CPS_ALU_BYPASS},
        {CPS_ALU_SUBTRACT, CPS_ALU_BYPASS}, {CPS_ALU_BYPASS, CPS_ALU_BYPASS}};
    unsigned op0 = cps_check_get(c, CPS_F_S2D2_AC_op0),
             op1 = cps_check_get(c, CPS_F_S2D2_AC_op1);
    (void)o;
    for (size_t i = 0; i < cps_countof(legal); i++)
        if (legal[i][0] == op0 && legal[i][1] == op1)
            return;
    cps_check_report(c, CPS_RULE_OP_PAIR, "op0 and op1 are no pair that the engine has");
}

void
cps_join_reduce_op(cps_checker *c, const cps_operands *o)
{
    (void)o;
    if ((cps_check_get(c, CPS_F_S2D2_AC_reduce_cmd) == CPS_REDUCE_CMD_IDLE) !=
        (cps_check_get(c, CPS_F_S2D2_AC_reduce_op) == CPS_ALU_BYPASS))
        cps_check_report(c, CPS_RULE_REDUCE_OP,
                         "reduce_op is bypass exactly when reduce_cmd is idle");
}

// The forms: u64 = i32 * imm0 + imm1; u64 = i32 + imm0; i32 = i32 * imm0 [+ imm1]; and
// (x - imm0) < imm1 of u64 or u32.
void
cps_join_addr_form(cps_checker *c, const cps_operands *o)
{
    static const struct {
        uint8_t in, out, op0, op1; // out 0: any
    } form[] = {{0x8, 0x1, CPS_ALU_MULT, CPS_ALU_ADD},
                {0x8, 0x1, CPS_ALU_ADD, CPS_ALU_BYPASS},
                {0x8, 0x8, CPS_ALU_MULT, CPS_ALU_ADD},
                {0x8, 0x8, CPS_ALU_MULT, CPS_ALU_BYPASS},
                {0x1, 0x0, CPS_ALU_SUBTRACT, CPS_ALU_IS_LT},
                {0x9, 0x0, CPS_ALU_SUBTRACT, CPS_ALU_IS_LT}};
    unsigned op0 = cps_check_get(c, CPS_F_S2D2_ADDR_op0),
             op1 = cps_check_get(c, CPS_F_S2D2_ADDR_op1);
    for (size_t i = 0; i < cps_countof(form); i++)
        if (form[i].in == o->in[0]->wire && (!form[i].out || form[i].out == o->out->wire) &&
            form[i].op0 == op0 && form[i].op1 == op1)
            return;
    cps_check_report(c, CPS_RULE_ADDR_FORM,
                     "operators and dtypes are none of the five forms of address arithmetic");
}

/* ---- scalars and constants ---- */

// The constant of a fill stands in the destination's own bits.
void
cps_join_set_value(cps_checker *c, const cps_operands *o)
{
    uint32_t v = cps_check_get(c, CPS_F_D4_MR_set_value);
    unsigned bits = 8 * o->out->bytes;
    if (bits && bits < 32 && v >> bits)
        cps_check_report(c, CPS_RULE_SET_VALUE, "set_value 0x%x does not fit %u bits", v, bits);
}

void
cps_join_predicate(cps_checker *c, const cps_operands *o)
{
    unsigned v = cps_check_get(c, CPS_F_S3D3_TS_SELECT_pred_imm);
    (void)o;
    if (cps_check_get(c, CPS_F_S3D3_TS_SELECT_pred_imm_src) ==
            CPS_IMM_SRC_INSTRUCTION_IMMEDIATE &&
        v > 1)
        cps_check_report(c, CPS_RULE_PREDICATE, "an inline predicate is 0 or 1, not %u", v);
}

void
cps_join_threshold(cps_checker *c, const cps_operands *o)
{
    unsigned t = cps_check_get(c, CPS_F_S3D3_DROPOUT_threshold_dtype);
    (void)o;
    if (cps_check_get(c, CPS_F_S3D3_DROPOUT_threshold_src) ==
            CPS_IMM_SRC_INSTRUCTION_IMMEDIATE &&
        t != 0 && t != 0x0A)
        cps_check_report(c, CPS_RULE_THRESHOLD, "an inline threshold is fp32");
}

void
cps_join_pointers(cps_checker *c, const cps_operands *o)
{
    unsigned v = cps_check_get(c, CPS_F_S3S3D1_BN2_imm0_imm1_src);
    (void)o;
    if ((v & 15) < 1 || (v & 15) > 2 || v >> 4 < 1 || v >> 4 > 2)
        cps_check_report(c, CPS_RULE_POINTERS, "both scalars come by pointer or register");
}

void
cps_join_scalars(cps_checker *c, const cps_operands *o)
{
    unsigned w = o->in[0]->ap.num[3];
    if (!(o->in[0]->ap.addr & (CPS_ADDR_SHAPE | CPS_ADDR_INDEX)) && (w < 1 || w > 8))
        cps_check_report(c, CPS_RULE_SCALARS, "src has %u scalars, one to eight are loaded", w);
}

void
cps_join_lanes(cps_checker *c, const cps_operands *o)
{
    const uint8_t *p = c->b->b + cps_fields[CPS_F_CTRL_IM_immediate].byte;
    (void)o;
    for (unsigned i = 0; i < 32; i++)
        if (p[i] >= 64 && p[i] != 255) {
            cps_check_report(c, CPS_RULE_LANES, "lane %u comes from %u", i, p[i]);
            return;
        }
}

void
cps_join_clear(cps_checker *c, const cps_operands *o)
{
    (void)o;
    if (cps_check_get(c, CPS_F_CTRL_ER_clear) == CPS_SEM_CLEAR_MODE_RANGE &&
        cps_check_get(c, CPS_F_CTRL_ER_first) > cps_check_get(c, CPS_F_CTRL_ER_last))
        cps_check_report(c, CPS_RULE_CLEAR, "the range of semaphores ends before it begins");
}

void
cps_join_indexed(cps_checker *c, const cps_operands *o)
{
    (void)o;
    if (!cps_addr_is_indirect(cps_check_get(c, CPS_F_S4D4_IC_src_idx)))
        cps_check_report(c, CPS_RULE_INDEXED, "src_idx has no marker of an index");
}

// A rectangle of registers: 1 to 32 in all, pairs for 64-bit types; immediates fill 32 bytes.
void
cps_join_transfer(cps_checker *c, const cps_operands *o)
{
    bool pseudo = c->insn->pseudo;
    cps_field elems = pseudo ? CPS_F_PSEUDO_MEM_2D_num_elem : CPS_F_MEM_2D_num_elem;
    cps_field source = pseudo ? CPS_F_PSEUDO_MEM_2D_src_datasrc : CPS_F_MEM_2D_src_datasrc;
    cps_field type = pseudo ? CPS_F_PSEUDO_MEM_2D_dtype : CPS_F_MEM_2D_dtype;
    cps_field data = pseudo ? CPS_F_PSEUDO_MEM_2D_data : CPS_F_MEM_2D_data;
    unsigned x = (unsigned)cps_isa_get_elem(c->b, elems, 0);
    unsigned y = (unsigned)cps_isa_get_elem(c->b, elems, 1), n = x * y;
    cps_dtype t = cps_isa_dtype(cps_check_get(c, type));
    unsigned bytes = t ? cps_dtype_bytes(t) : 0;
    (void)o;
    if (x < 1 || y < 1 || n > 32) {
        cps_check_report(c, CPS_RULE_TRANSFER, "num_elem is %u by %u; 1 to 32 elements fit", x,
                         y);
        return;
    }
    if (cps_check_get(c, source) == CPS_DATA_SRC_IMMEDIATE) {
        if (n * bytes > 32)
            cps_check_report(c, CPS_RULE_TRANSFER,
                             "%u immediates of %u bytes; 32 bytes of them fit", n, bytes);
        return;
    }
    for (unsigned i = 0; i < n; i++) {
        unsigned r = c->b->b[cps_fields[data].byte + i];
        if (r < 64 && !(bytes == 8 && r % 2))
            continue;
        cps_check_report(c, CPS_RULE_TRANSFER, "element %u names register %u%s", i, r,
                         r < 64 ? "; 64-bit ones are even" : "");
        return;
    }
}

/* ---- sizes ---- */

void
cps_join_dequant(cps_checker *c, const cps_operands *o)
{
    unsigned group = cps_check_get(c, CPS_F_S3D3_TENS_DEQUANT_group_size);
    unsigned fmt = cps_check_get(c, CPS_F_S3D3_TENS_DEQUANT_dequant_fmt);
    if (!o->known)
        return;
    uint64_t in = o->in[0]->count, out = o->out->count;
    unsigned grow = group ? 8 : fmt == CPS_DEQUANT_FMT_FP6_E4M3 ? 4 : 2;
    unsigned per = group ? 5 : fmt == CPS_DEQUANT_FMT_FP6_E4M3 ? 3 : 1;
    if (in % per || in * grow != out * per)
        cps_check_report(c, CPS_RULE_DEQUANT,
                         "src has %llu elements, dst %llu; %u become %u here",
                         (unsigned long long)in, (unsigned long long)out, per, grow);
}

void
cps_join_sort_size(cps_checker *c, const cps_operands *o)
{
    unsigned bytes = o->in[0]->bytes, ch = cps_check_get(c, CPS_F_S1D2_SORT_ch);
    if (!o->known || !bytes)
        return;
    uint64_t n = o->in[0]->count * ch, most = bytes >= 4 ? 2048 : 4096;
    if (n > most)
        cps_check_report(c, CPS_RULE_SORT_SIZE, "%llu elements, at most %u are sorted",
                         (unsigned long long)n, (unsigned)most);
    if (o->out->ap.num[0] != 2 || o->out->ap.num[1] != o->in[0]->count)
        cps_check_report(
            c, CPS_RULE_SORT_SIZE, "dst is %u by %u, not two columns of src's %llu elements",
            o->out->ap.num[0], o->out->ap.num[1], (unsigned long long)o->in[0]->count);
}

/* ---- DMA ---- */

// Whether the transfer computes or converts, and so goes through the computing path.
static bool
computes(const cps_checker *c)
{
    return cps_check_get(c, CPS_F_DMA_DIRECT2D_compute_op) != CPS_DGE_COMPUTE_OP_NONE ||
           cps_check_get(c, CPS_F_DMA_DIRECT2D_in_dtype) !=
               cps_check_get(c, CPS_F_DMA_DIRECT2D_out_dtype);
}

static uint64_t
bytes_of(const cps_checker *c, cps_field num, cps_field size)
{
    uint64_t n = cps_check_get(c, size);
    n = n ? n : 65536;
    for (unsigned i = 0; i < 2; i++)
        n *= cps_isa_get_elem(c->b, num, i);
    return n;
}

void
cps_join_dma_bytes(cps_checker *c, const cps_operands *o)
{
    (void)o;
    if (computes(c))
        return;
    uint64_t in =
        bytes_of(c, CPS_F_DMA_DIRECT2D_src_num_elem, CPS_F_DMA_DIRECT2D_src_elem_size);
    uint64_t out =
        bytes_of(c, CPS_F_DMA_DIRECT2D_dst_num_elem, CPS_F_DMA_DIRECT2D_dst_elem_size);
    if (in != out)
        cps_check_report(c, CPS_RULE_DMA_BYTES,
                         "the source has %llu bytes, the destination %llu",
                         (unsigned long long)in, (unsigned long long)out);
}

void
cps_join_dma_align(cps_checker *c, const cps_operands *o)
{
    static const cps_field side[][3] = {
        {CPS_F_DMA_DIRECT2D_src, CPS_F_DMA_DIRECT2D_src_elem_size, CPS_F_DMA_DIRECT2D_in_dtype},
        {CPS_F_DMA_DIRECT2D_dst, CPS_F_DMA_DIRECT2D_dst_elem_size,
         CPS_F_DMA_DIRECT2D_out_dtype}};
    (void)o;
    for (unsigned i = 0; i < 2 && computes(c); i++) {
        cps_dtype t = cps_isa_dtype(cps_check_get(c, side[i][2]));
        unsigned bytes = t ? cps_dtype_bytes(t) : 1;
        uint64_t at = cps_check_get64(c, side[i][0]);
        if (at >> 58 == 0 && at % bytes)
            cps_check_report(c, CPS_RULE_DMA_ALIGN,
                             "%s is 0x%llx, not a multiple of its %u bytes",
                             cps_fields[side[i][0]].name, (unsigned long long)at, bytes);
    }
}

void
cps_join_tile_cols(cps_checker *c, const cps_operands *o)
{
    unsigned cols = cps_check_get(c, CPS_F_DMA_DIRECT2D_XPOSE_tile_cols);
    cps_dtype t = cps_isa_dtype(cps_check_get(c, CPS_F_DMA_DIRECT2D_XPOSE_in_dtype));
    unsigned bytes = t ? cps_dtype_bytes(t) : 0, most = bytes == 4 ? 64 : 128;
    (void)o;
    if ((bytes != 2 && bytes != 4) || cols < 1 || cols > most)
        cps_check_report(c, CPS_RULE_TILE_COLS, "%u columns of %u bytes", cols, bytes);
}

void
cps_join_dma_dtype(cps_checker *c, const cps_operands *o)
{
    unsigned v = cps_check_get(c, CPS_F_DMA_GATHER_XPOSE_dtype);
    cps_dtype a = cps_isa_dtype(v & 15), b = cps_isa_dtype(v >> 4);
    (void)o;
    if (!a || !b || cps_dtype_bytes(a) != 2 || cps_dtype_bytes(b) != 2)
        cps_check_report(c, CPS_RULE_DMA_DTYPE, "a gathering transpose moves 2-byte dtypes");
    unsigned rows = (unsigned)cps_isa_get_elem(c->b, CPS_F_DMA_GATHER_XPOSE_src_num_elem, 1);
    if (rows % 16)
        cps_check_report(c, CPS_RULE_DMA_DTYPE, "src_num_elem has %u rows, no multiple of 16",
                         rows);
}
