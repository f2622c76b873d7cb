/* What rows cannot say, format by format: each has a part that writes and one that reads.
 * Whatever they leave out or get differently, decode.c adds as plain fields. */
#include "codegen/bir/insn.h"

#include <string.h>

#define STR(s) cps_bn_str(c->arena, (s))
#define INT(i) cps_bn_int(c->arena, (int64_t)(i))
#define GET(f) cps_isa_get(&r->b, CPS_F_##f)
#define SET(f, v) cps_isa_set(&r->b, CPS_F_##f, (uint64_t)(v))
#define WRITE(name)                                                                            \
    static void name(cps_bctx *c CPS_UNUSED, const cps_brec *r CPS_UNUSED,                     \
                     cps_engine e CPS_UNUSED, cps_json *v CPS_UNUSED,                          \
                     cps_bcursor *at CPS_UNUSED)
#define READ(name)                                                                             \
    static bool name(cps_bctx *c CPS_UNUSED, cps_brec *r CPS_UNUSED, cps_engine e CPS_UNUSED,  \
                     const cps_json *v CPS_UNUSED, cps_bcursor *at CPS_UNUSED)

static bool
is_true(const cps_json *v, const char *key)
{
    const cps_json *m = cps_json_get(v, key);
    return m && (m->kind == CPS_JSON_BOOL || m->kind == CPS_JSON_INT) && m->i;
}

static const char *
text(const cps_json *v, const char *key)
{
    const cps_json *m = v ? cps_json_get(v, key) : NULL;
    return m && m->kind == CPS_JSON_STR ? m->str : NULL;
}

// The integers of a short list; false when it is none or holds something else.
static bool
integers(const cps_json *list, unsigned n, int64_t lo, int64_t hi, int64_t *out)
{
    if (!list || list->kind != CPS_JSON_ARR || list->n != n)
        return false;
    for (const cps_json *x = list->first; x; x = x->next) {
        if (x->kind != CPS_JSON_INT || x->i < lo || x->i > hi)
            return false;
        *out++ = x->i;
    }
    return true;
}

static cps_json *
list_of(cps_bctx *c, const int64_t *v, unsigned n)
{
    cps_json *list = cps_bn_new(c->arena, CPS_JSON_ARR);
    for (unsigned i = 0; i < n; i++)
        cps_bn_add(list, NULL, INT(v[i]));
    return list;
}

static uint64_t
elements(const cps_bundle *b, cps_field f)
{
    cps_ap ap;
    uint64_t n = 1;
    cps_isa_get_ap(b, f, &ap);
    for (unsigned i = 0; i < ap.nd; i++)
        n *= ap.num[i];
    return n;
}

// ---- PE: the tile of the array, transposes ----

static int
start_of(unsigned group, unsigned span)
{
    for (int s = 0; s < 128; s += 32)
        if (group && cps_isa_pe_group((unsigned)s, span) == group)
            return s;
    return -1;
}

static bool
transposes(const cps_bctx *c, const cps_brec *r)
{
    return c->gen == CPS_V4 ? (GET(S3D3_MM_flags) & CPS_MM_FLAG_TRANSPOSE) != 0
                            : c->gen == CPS_V3 && GET(S3D3_MM_transpose_mode);
}

WRITE(write_matmul)
{
    unsigned rows = (unsigned)GET(S3D3_MM_num_active_rows);
    unsigned cols = (unsigned)GET(S3D3_MM_num_active_cols);
    int row = start_of((unsigned)GET(S3D3_MM_row_grp), rows);
    int col = start_of((unsigned)GET(S3D3_MM_col_grp), cols);
    cps_bn_add(v, "tile_size", list_of(c, (int64_t[]){rows, cols}, 2));
    cps_bn_add(v, "tile_position", list_of(c, (int64_t[]){row, col}, 2));
    cps_bn_add(v, "is_transpose", cps_bn_bool(c->arena, transposes(c, r)));
}

READ(read_matmul)
{
    int64_t size[2], pos[2];
    if (GET(S3D3_MM_in_dtype) == (unsigned)cps_dtypes[CPS_DT_FP32].wire)
        SET(S3D3_MM_fp32_mode, CPS_PE_FP32MODE_LOW_HIGH);
    if (integers(cps_json_get(v, "tile_size"), 2, 0, 255, size)) {
        SET(S3D3_MM_num_active_rows, size[0]);
        SET(S3D3_MM_num_active_cols, size[1]);
        if (integers(cps_json_get(v, "tile_position"), 2, 0, 127, pos)) {
            SET(S3D3_MM_row_grp, cps_isa_pe_group((unsigned)pos[0], (unsigned)size[0]));
            SET(S3D3_MM_col_grp, cps_isa_pe_group((unsigned)pos[1], (unsigned)size[1]));
            if (c->gen == CPS_V2)
                SET(S3D3_MM_xbus_sel, cps_isa_pe_bus((uint8_t)GET(S3D3_MM_col_grp)));
        }
    }
    if (is_true(v, "is_transpose") && c->gen == CPS_V4)
        SET(S3D3_MM_flags, GET(S3D3_MM_flags) | CPS_MM_FLAG_TRANSPOSE);
    if (is_true(v, "is_transpose") && c->gen == CPS_V3)
        SET(S3D3_MM_transpose_mode, 1);
    return true;
}

READ(read_weights)
{
    if (is_true(v, "is_transpose") && c->gen == CPS_V4)
        SET(S3_LW_flags, CPS_LW_FLAG_TRANSPOSE);
    return true;
}

// ---- counts that follow from the pattern ----

READ(read_fill)
{
    SET(D4_MR_dst_element_count, elements(&r->b, CPS_F_D4_MR_dst));
    return true;
}

READ(read_statistics)
{
    uint64_t n = elements(&r->b, CPS_F_S4D2_BN_src);
    if (r->insn != CPS_INSN_BATCH_NORM_STATS2)
        return true;
    cps_isa_set_f32(&r->b, CPS_F_S4D2_BN_even_count, (float)((n + 1) / 2));
    cps_isa_set_f32(&r->b, CPS_F_S4D2_BN_odd_count, (float)(n / 2));
    return true;
}

// ---- affine patterns: base and [step, number] pairs, slowest first ----

static void
write_pattern(cps_bctx *c, const cps_brec *r, cps_field f, cps_json *v)
{
    cps_ap ap;
    cps_isa_get_ap(&r->b, f, &ap);
    unsigned nd = ap.nd;
    while (nd > 1 && ap.step[nd - 1] == 0 && ap.num[nd - 1] == 1)
        nd--;
    cps_json *list = cps_bn_new(c->arena, CPS_JSON_ARR);
    for (unsigned i = nd; i-- > 0;)
        cps_bn_add(list, NULL, list_of(c, (int64_t[]){ap.step[i], ap.num[i]}, 2));
    cps_bn_add(v, "base", INT((int32_t)ap.addr));
    cps_bn_add(v, "pattern", list);
}

static bool
read_pattern(cps_bctx *c, cps_brec *r, cps_field f, const cps_json *v)
{
    const cps_json *base = cps_json_get(v, "base"), *list = cps_json_get(v, "pattern");
    cps_ap ap = {0};
    int64_t pair[2];
    if (!base || base->kind != CPS_JSON_INT || base->i != (int32_t)base->i || !list ||
        list->kind != CPS_JSON_ARR || !list->n || list->n > 4)
        return cps_bctx_fail(c, "an affine pattern has a base and 1 to 4 pairs");
    ap.nd = (uint8_t)list->n;
    ap.addr = (uint32_t)base->i;
    unsigned i = ap.nd;
    for (const cps_json *x = list->first; x; x = x->next) {
        if (!integers(x, 2, -32768, 65535, pair) || pair[0] > 32767 || pair[1] < 0)
            return cps_bctx_fail(c, "a pair of an affine pattern is [step, number] of 16 bits");
        ap.step[--i] = (int16_t)pair[0];
        ap.num[i] = (uint16_t)pair[1];
    }
    cps_isa_set_ap(&r->b, f, &ap);
    return true;
}

WRITE(write_iota)
{
    write_pattern(c, r, CPS_F_D4_IOTA_pattern, v);
}

READ(read_iota)
{
    return read_pattern(c, r, CPS_F_D4_IOTA_pattern, v);
}

static const uint8_t affine_alu[] = {
    [CPS_AFFINE_SELECT_CMP_GT] = CPS_ALU_IS_GT,
    [CPS_AFFINE_SELECT_CMP_GE] = CPS_ALU_IS_GE,
    [CPS_AFFINE_SELECT_CMP_EQ] = CPS_ALU_IS_EQ,
    [CPS_AFFINE_SELECT_CMP_NE] = CPS_ALU_IS_NE,
};

WRITE(write_affine)
{
    uint64_t mode = GET(S2D2_TS_AS_fill_mode);
    write_pattern(c, r, CPS_F_S2D2_TS_AS_mask, v);
    if (mode < cps_countof(affine_alu))
        cps_bn_add(v, "compare_op", STR(cps_bmap_alu_name(affine_alu[mode])));
    // The fill value stands in a register.
    cps_bn_add(at->ins, NULL,
               cps_bmem_write_reg(c, (unsigned)GET(S2D2_TS_AS_fill_reg), "float32"));
}

READ(read_affine)
{
    const char *op = text(v, "compare_op");
    int alu = op ? cps_bmap_alu(op) : -1;
    for (unsigned i = 0; alu >= 0 && i < cps_countof(affine_alu); i++)
        if (affine_alu[i] == alu)
            SET(S2D2_TS_AS_fill_mode, i);
    const cps_json *x = cps_bcursor_next(&at->in);
    unsigned reg = 0;
    if (x && !cps_bmem_read_reg(c, x, &reg))
        return false;
    SET(S2D2_TS_AS_fill_reg, reg);
    return read_pattern(c, r, CPS_F_S2D2_TS_AS_mask, v);
}

// ---- semaphores cleared as a group ----

WRITE(write_reset)
{
    cps_json *list = cps_bn_new(c->arena, CPS_JSON_ARR);
    if (GET(CTRL_ER_clear) == CPS_SEM_CLEAR_MODE_RANGE) {
        for (uint64_t i = GET(CTRL_ER_first); i <= GET(CTRL_ER_last); i++)
            cps_bn_add(list, NULL, INT(i));
    } else {
        for (unsigned i = 0; i < 256; i++)
            if (cps_isa_get_elem(&r->b, CPS_F_CTRL_ER_bitmask, i / 32) >> (i % 32) & 1)
                cps_bn_add(list, NULL, INT(i));
    }
    cps_bn_add(v, "sema_group", list);
}

READ(read_reset)
{
    const cps_json *list = cps_json_get(v, "sema_group");
    bool range = GET(CTRL_ER_clear) == CPS_SEM_CLEAR_MODE_RANGE;
    const cps_json *x = list && list->kind == CPS_JSON_ARR ? list->first : NULL;
    for (bool first = true; x; x = x->next, first = false) {
        if (x->kind != CPS_JSON_INT || x->i < 0 || x->i > 255)
            return cps_bctx_fail(c, "'sema_group' lists semaphores 0 to 255");
        unsigned i = (unsigned)x->i;
        if (range && first)
            SET(CTRL_ER_first, i);
        if (range)
            SET(CTRL_ER_last, i);
        else
            cps_isa_set_elem(&r->b, CPS_F_CTRL_ER_bitmask, i / 32,
                             cps_isa_get_elem(&r->b, CPS_F_CTRL_ER_bitmask, i / 32) |
                                 1u << (i % 32));
    }
    return true;
}

// ---- registers ----

static cps_json *
immediate(cps_bctx *c, const char *dtype, int64_t value)
{
    cps_json *v = cps_bn_new(c->arena, CPS_JSON_OBJ);
    cps_bn_add(v, "kind", STR("imm_value"));
    cps_bn_add(v, "dtype", STR(dtype));
    cps_bn_add(v, "value", INT(value));
    return v;
}

// An integer of the sequencer; 32-bit ones may be written signed.
static bool
read_immediate(cps_bctx *c, const cps_json *x, uint64_t *out)
{
    const cps_json *n = x ? cps_json_get(x, "value") : NULL;
    if (!cps_bmem_is(x, "imm_value") || !n || n->kind != CPS_JSON_INT || n->i < INT32_MIN)
        return cps_bctx_fail(c, "an operand is no register and no integer");
    *out = n->i < 0 ? (uint32_t)n->i : (uint64_t)n->i;
    return true;
}

static const char *
dtype_name(const cps_brec *r, cps_field f)
{
    cps_dtype t = cps_isa_dtype((unsigned)cps_isa_get(&r->b, f));
    return cps_bmap_dtype_name(t ? t : CPS_DT_I32);
}

static void
read_dtype(cps_brec *r, cps_field f, const cps_json *x)
{
    const char *name = x ? text(x, "dtype") : NULL;
    cps_dtype t = name ? cps_bmap_dtype(name) : CPS_DT_NONE;
    if (t && cps_dtypes[t].wire >= 0)
        cps_isa_set(&r->b, f, (uint64_t)cps_dtypes[t].wire);
}

WRITE(write_move)
{
    const char *t = dtype_name(r, CPS_F_CTRL_MV_dtype);
    if (GET(CTRL_MV_num_mov) != 1)
        return;
    cps_bn_add(
        at->outs, NULL,
        cps_bmem_write_reg(c, (unsigned)cps_isa_get_elem(&r->b, CPS_F_CTRL_MV_dst_regs, 0), t));
    if (GET(CTRL_MV_source) == CPS_DATA_SRC_REGISTER) {
        unsigned from = (unsigned)cps_isa_get_elem(&r->b, CPS_F_CTRL_MV_src_regs, 0);
        cps_bn_add(at->ins, NULL, cps_bmem_write_reg(c, from, t));
    } else {
        uint32_t imm = (uint32_t)cps_isa_get_elem(&r->b, CPS_F_CTRL_MV_imm, 0);
        cps_bn_add(at->ins, NULL, immediate(c, t, (int32_t)imm));
    }
}

READ(read_move)
{
    const cps_json *to = cps_bcursor_next(&at->out), *from = cps_bcursor_next(&at->in);
    unsigned reg;
    uint64_t imm;
    if (!to && !from)
        return true; // several at once: plain fields
    if (!to || !from || !cps_bmem_read_reg(c, to, &reg))
        return cps_bctx_fail(c, "a move has a register and what goes into it");
    SET(CTRL_MV_num_mov, 1);
    cps_isa_set_elem(&r->b, CPS_F_CTRL_MV_dst_regs, 0, reg);
    read_dtype(r, CPS_F_CTRL_MV_dtype, to);
    if (cps_bmem_is(from, "register_access")) {
        if (!cps_bmem_read_reg(c, from, &reg))
            return false;
        cps_isa_set_elem(&r->b, CPS_F_CTRL_MV_src_regs, 0, reg);
        return true;
    }
    SET(CTRL_MV_source, CPS_DATA_SRC_IMMEDIATE);
    if (!read_immediate(c, from, &imm))
        return false;
    cps_isa_set_elem(&r->b, CPS_F_CTRL_MV_imm, 0, imm);
    return true;
}

static const cps_kreloc *
reloc_of(const cps_brec *r, cps_field f)
{
    for (unsigned i = 0; i < r->nreloc; i++)
        if (r->reloc[i].field == f)
            return &r->reloc[i];
    return NULL;
}

static bool
add_reloc(cps_bctx *c, cps_brec *r, cps_field f, uint32_t var, int64_t addend)
{
    if (r->nreloc == CPS_BRELOCS)
        return cps_bctx_fail(c, "too many addresses");
    r->reloc[r->nreloc++] = (cps_kreloc){.field = (uint16_t)f, .var = var, .addend = addend};
    return true;
}

WRITE(write_alu)
{
    const char *t = dtype_name(r, CPS_F_CTRL_AL_dtype);
    bool wide = !strcmp(t, "uint64") || !strcmp(t, "int64");
    const cps_kreloc *x = reloc_of(r, CPS_F_CTRL_AL_imm);
    cps_bn_add(v, "is_64bit", cps_bn_bool(c->arena, wide));
    cps_bn_add(at->outs, NULL, cps_bmem_write_reg(c, (unsigned)GET(CTRL_AL_dst_lo), t));
    cps_bn_add(at->ins, NULL, cps_bmem_write_reg(c, (unsigned)GET(CTRL_AL_src0_lo), t));
    if (x) {
        // the address of a tensor
        cps_bwalk w = {.var = x->var, .base = x->addend};
        cps_json *p = cps_bmem_write_walk(c, &w, CPS_DT_U8);
        cps_json *o = cps_bn_new(c->arena, CPS_JSON_OBJ);
        cps_bn_add(o, "kind", STR("symbolic_imm_value"));
        cps_bn_add(o, "dtype", STR(t));
        cps_bn_add(o, "memref", STR(p ? text(p, "memref") : ""));
        cps_bn_add(o, "offset", INT(x->addend));
        cps_bn_add(at->ins, NULL, o);
    } else if (GET(CTRL_AL_src1_datasrc) == CPS_DATA_SRC_IMMEDIATE) {
        cps_bn_add(at->ins, NULL, immediate(c, t, (int64_t)(GET(CTRL_AL_imm) & INT64_MAX)));
    } else {
        cps_bn_add(at->ins, NULL, cps_bmem_write_reg(c, (unsigned)GET(CTRL_AL_src1_lo), t));
    }
}

READ(read_alu)
{
    const cps_json *to = cps_bcursor_next(&at->out), *a = cps_bcursor_next(&at->in),
                   *b = cps_bcursor_next(&at->in);
    unsigned d, s0, s1;
    uint64_t imm;
    bool wide = is_true(v, "is_64bit");
    if (!to || !a || !b || !cps_bmem_read_reg(c, to, &d) || !cps_bmem_read_reg(c, a, &s0))
        return cps_bctx_fail(c, "register arithmetic has a register and two operands");
    read_dtype(r, CPS_F_CTRL_AL_dtype, to);
    SET(CTRL_AL_dst_lo, d);
    SET(CTRL_AL_dst_hi, wide ? d + 1 : 0);
    SET(CTRL_AL_src0_lo, s0);
    SET(CTRL_AL_src0_hi, wide ? s0 + 1 : 0);
    if (cps_bmem_is(b, "register_access")) {
        if (!cps_bmem_read_reg(c, b, &s1))
            return false;
        SET(CTRL_AL_src1_lo, s1);
        SET(CTRL_AL_src1_hi, wide ? s1 + 1 : 0);
        return true;
    }
    SET(CTRL_AL_src1_datasrc, CPS_DATA_SRC_IMMEDIATE);
    if (cps_bmem_is(b, "symbolic_imm_value")) {
        const char *mem = text(b, "memref");
        const cps_json *off = cps_json_get(b, "offset");
        const uint64_t *i = mem ? cps_map_find_str(&c->by_name, mem) : NULL;
        if (!i || c->mem.data[*i].space != CPS_BS_HBM || !off || off->kind != CPS_JSON_INT)
            return cps_bctx_fail(c, "a symbolic value is the place of a tensor in DRAM");
        return add_reloc(c, r, CPS_F_CTRL_AL_imm, c->mem.data[*i].var, off->i);
    }
    if (!read_immediate(c, b, &imm))
        return false;
    SET(CTRL_AL_imm, imm);
    return true;
}

// ---- branches ----

static const char *const compares[] = {"lt", "le", "eq", "ne", "ge", "gt"};
enum { REGISTER_FORM = 8 };

WRITE(write_branch)
{
    unsigned op = (unsigned)GET(CTRL_BR_cmp_op);
    const char *t = dtype_name(r, CPS_F_CTRL_BR_dtype);
    if (op == CPS_BR_CMP_OP_ALWAYS) {
        if (r->target)
            cps_bn_add(v, "target", STR(r->target));
        return;
    }
    bool reg = op > REGISTER_FORM;
    unsigned k = op - (reg ? REGISTER_FORM : 0) - 1;
    cps_bn_add(v, "comp_op", STR(k < cps_countof(compares) ? compares[k] : ""));
    cps_bn_add(at->ins, NULL, cps_bmem_write_reg(c, (unsigned)GET(CTRL_BR_cmp_reg0), t));
    cps_bn_add(at->ins, NULL,
               reg ? cps_bmem_write_reg(c, (unsigned)GET(CTRL_BR_cmp_reg1), t)
                   : immediate(c, t, (int32_t)(uint32_t)GET(CTRL_BR_cmp_imm)));
    if (r->target)
        cps_bn_add(v, "on_true", STR(r->target));
    if (r->next)
        cps_bn_add(v, "on_false", STR(r->next));
}

READ(read_branch)
{
    const char *op = text(v, "comp_op"), *jump = text(v, "target"), *to = text(v, "on_true");
    SET(CTRL_BR_target_mode, CPS_BR_TARGET_MODE_RELATIVE_IMMEDIATE);
    r->target = jump ? jump : to;
    if (!r->target)
        return cps_bctx_fail(c, "a branch goes nowhere");
    if (jump)
        return true;
    const cps_json *a = cps_bcursor_next(&at->in), *b = cps_bcursor_next(&at->in);
    unsigned k = 0, reg;
    uint64_t imm;
    while (op && k < cps_countof(compares) && strcmp(op, compares[k]))
        k++;
    if (!op || k == cps_countof(compares) || !a || !b || !cps_bmem_read_reg(c, a, &reg))
        return cps_bctx_fail(c, "a branch compares a register by lt, le, eq, ne, ge or gt");
    SET(CTRL_BR_cmp_reg0, reg);
    read_dtype(r, CPS_F_CTRL_BR_dtype, a);
    bool form = cps_bmem_is(b, "register_access");
    SET(CTRL_BR_cmp_op, k + 1 + (form ? REGISTER_FORM : 0));
    if (form) {
        if (!cps_bmem_read_reg(c, b, &reg))
            return false;
        SET(CTRL_BR_cmp_reg1, reg);
    } else {
        if (!read_immediate(c, b, &imm))
            return false;
        SET(CTRL_BR_cmp_imm, imm);
    }
    return true;
}

// ---- addresses of 64 bits: a variable, a place on chip, or a pair of registers ----

#define PAIR_MARK 0x80u

static bool
is_pair(uint64_t a, unsigned *lo)
{
    *lo = (unsigned)(a & 255);
    return a >> 56 == PAIR_MARK && (a >> 8 & 255) == *lo + 1 && !(a & 0x00FFFFFFFFFF0000ull);
}

// A walk from an address field: steps in bytes, the last one an element.
static cps_json *
write_address(cps_bctx *c, const cps_brec *r, cps_field f, cps_bwalk *w, cps_dtype t)
{
    const cps_kreloc *x = reloc_of(r, f);
    uint64_t a = cps_isa_get(&r->b, f);
    int64_t es = cps_dtype_bytes(t);
    unsigned lo;
    if (x) {
        w->var = x->var;
        w->base = x->addend;
        return cps_bmem_write_walk(c, w, t);
    }
    if (is_pair(a, &lo)) {
        cps_json *v = cps_bn_new(c->arena, CPS_JSON_OBJ),
                 *ap = cps_bn_new(c->arena, CPS_JSON_ARR);
        c->reg[lo] = c->reg[(lo + 1) & 255] = true;
        cps_bn_add(ap, NULL, list_of(c, (int64_t[]){0, 1}, 2));
        for (int i = 0; i < w->nd; i++) {
            if (w->d[i].step % es)
                return NULL;
            cps_bn_add(ap, NULL, list_of(c, (int64_t[]){w->d[i].step / es, w->d[i].num}, 2));
        }
        cps_bn_add(v, "kind", STR("register_ap"));
        cps_bn_add(v, "ap", ap);
        cps_bn_add(v, "dtype", STR(cps_bmap_dtype_name(t)));
        cps_bn_add(v, "regref", STR(cps_arena_printf(c->arena, "r%u", lo)));
        cps_bn_add(v, "is_regloc_offset", cps_bn_bool(c->arena, false));
        cps_bn_add(v, "reg_ap_offset", INT(0));
        cps_bn_add(v, "const_ap_offset", INT(0));
        return v;
    }
    if (a >= CPS_PSUM_BASE)
        return NULL;
    w->var = 0;
    w->base = (int64_t)a;
    return cps_bmem_write_walk(c, w, t);
}

static bool
read_address(cps_bctx *c, cps_brec *r, cps_field f, const cps_json *x, cps_bwalk *w,
             cps_dtype *t)
{
    if (!x)
        return cps_bctx_fail(c, "an operand is missing");
    if (!cps_bmem_is(x, "register_ap")) {
        if (!cps_bmem_read_walk(c, x, w, t))
            return false;
        if (w->var)
            return add_reloc(c, r, f, w->var, w->base);
        cps_isa_set(&r->b, f, (uint64_t)w->base);
        return true;
    }
    const cps_json *ap = cps_json_get(x, "ap");
    const char *name = text(x, "dtype");
    unsigned lo;
    int64_t pair[2];
    *t = name ? cps_bmap_dtype(name) : CPS_DT_NONE;
    *w = (cps_bwalk){0};
    if (!*t || !ap || ap->kind != CPS_JSON_ARR || ap->n < 2 || ap->n > cps_countof(w->d) ||
        !cps_bmem_read_reg(c, x, &lo) || lo > 254)
        return cps_bctx_fail(c, "malformed pattern at a register's address");
    for (const cps_json *p = ap->first->next; p; p = p->next) {
        if (!integers(p, 2, -((int64_t)1 << 40), (int64_t)1 << 40, pair) || pair[1] < 0)
            return cps_bctx_fail(c, "malformed pattern at a register's address");
        if (pair[1] == 1 && p->next)
            continue;
        w->d[w->nd].step = pair[0] * cps_dtype_bytes(*t);
        w->d[w->nd++].num = pair[1];
    }
    cps_isa_set(&r->b, f, (uint64_t)PAIR_MARK << 56 | (uint64_t)(lo + 1) << 8 | lo);
    return true;
}

WRITE(write_load)
{
    cps_dtype t = cps_isa_dtype((unsigned)GET(MEM_2D_dtype));
    if (!t)
        return;
    cps_bwalk w = {.nd = 1};
    w.d[0].step = cps_dtype_bytes(t);
    w.d[0].num = 1;
    cps_json *x = write_address(c, r, CPS_F_MEM_2D_start, &w, t);
    if (x)
        cps_bn_add(at->ins, NULL, x);
    cps_bn_add(at->outs, NULL,
               cps_bmem_write_reg(c, r->b.b[cps_fields[CPS_F_MEM_2D_data].byte],
                                  cps_bmap_dtype_name(t)));
}

READ(read_load)
{
    const cps_json *to = cps_bcursor_next(&at->out);
    cps_bwalk w;
    cps_dtype t;
    unsigned reg;
    if (!read_address(c, r, CPS_F_MEM_2D_start, cps_bcursor_next(&at->in), &w, &t))
        return false;
    if (!to || !cps_bmem_read_reg(c, to, &reg) || cps_dtypes[t].wire < 0)
        return cps_bctx_fail(c, "a load goes to a register");
    SET(MEM_2D_dtype, cps_dtypes[t].wire);
    cps_isa_set_elem(&r->b, CPS_F_MEM_2D_num_elem, 0, 1);
    cps_isa_set_elem(&r->b, CPS_F_MEM_2D_num_elem, 1, 1);
    r->b.b[cps_fields[CPS_F_MEM_2D_data].byte] = (uint8_t)reg;
    return true;
}

// ---- DMA ----

WRITE(write_trigger)
{
    const char *name = (const char *)r->b.b + cps_fields[CPS_F_PSEUDO_DMA_TRIGGER_queue].byte;
    char *queue = cps_arena_strndup(
        c->arena, name, strnlen(name, cps_fields[CPS_F_PSEUDO_DMA_TRIGGER_queue].bits / 8u));
    cps_json *list = cps_bn_new(c->arena, CPS_JSON_ARR);
    cps_bn_add(list, NULL,
               STR(cps_arena_printf(c->arena, "%s_%u", queue,
                                    (unsigned)GET(PSEUDO_DMA_TRIGGER_block_id))));
    cps_bn_add(v, "queue", STR(queue));
    cps_bn_add(v, "dma_blocks", list);
}

READ(read_trigger)
{
    const cps_json *list = cps_json_get(v, "dma_blocks");
    const cps_json *x = list && list->kind == CPS_JSON_ARR && list->n == 1 ? list->first : NULL;
    const uint64_t *i =
        x && x->kind == CPS_JSON_STR ? cps_map_find_str(&c->blocks, x->str) : NULL;
    if (!i || !*i)
        return cps_bctx_fail(c, "a trigger starts one DMA block of the document");
    const cps_kblock *k = &c->k->blocks.data[*i - 1];
    cps_field f = CPS_F_PSEUDO_DMA_TRIGGER_queue;
    memcpy(cps_binsn_bytes(&r->b, f), k->queue,
           CPS_MIN(strlen(k->queue), cps_fields[f].bits / 8u));
    SET(PSEUDO_DMA_TRIGGER_block_id, k->id);
    return true;
}

static void
write_dge(cps_bctx *c, cps_engine e, cps_json *v)
{
    cps_bn_add(v, "dge_type", STR(e == CPS_POOL ? "Software" : "Hardware"));
    cps_bn_add(v, "queue", STR(cps_arena_printf(c->arena, "dge_%s", cps_engine_name(e))));
}

// Elements of `size` bytes, up to two counted steps of them.
typedef struct side {
    cps_field addr, step, num, size, dtype;
    unsigned dims;
} side;

static const side direct[2] = {
    {CPS_F_DMA_DIRECT2D_src, CPS_F_DMA_DIRECT2D_src_step_elem, CPS_F_DMA_DIRECT2D_src_num_elem,
     CPS_F_DMA_DIRECT2D_src_elem_size, CPS_F_DMA_DIRECT2D_in_dtype, 2},
    {CPS_F_DMA_DIRECT2D_dst, CPS_F_DMA_DIRECT2D_dst_step_elem, CPS_F_DMA_DIRECT2D_dst_num_elem,
     CPS_F_DMA_DIRECT2D_dst_elem_size, CPS_F_DMA_DIRECT2D_out_dtype, 2}};
static const side indexed[2] = {
    {CPS_F_DMA_INDIRECT1D_src, CPS_F_DMA_INDIRECT1D_src_step_elem,
     CPS_F_DMA_INDIRECT1D_src_num_elem, CPS_F_DMA_INDIRECT1D_src_elem_size,
     CPS_F_DMA_INDIRECT1D_in_dtype, 1},
    {CPS_F_DMA_INDIRECT1D_dst, CPS_F_DMA_INDIRECT1D_dst_step_elem,
     CPS_F_DMA_INDIRECT1D_dst_num_elem, CPS_F_DMA_INDIRECT1D_dst_elem_size,
     CPS_F_DMA_INDIRECT1D_out_dtype, 1}};

static void
write_side(cps_bctx *c, const cps_brec *r, const side *s, cps_json *list)
{
    cps_dtype t = cps_isa_dtype((unsigned)cps_isa_get(&r->b, s->dtype));
    int64_t size = (int64_t)cps_isa_get(&r->b, s->size), es = t ? cps_dtype_bytes(t) : 0;
    cps_bwalk w = {0};
    if (!t || !size || size % es)
        return;
    for (unsigned i = s->dims; i-- > 0;) {
        int64_t num = (int64_t)cps_isa_get_elem(&r->b, s->num, i);
        int64_t step = (int32_t)cps_isa_get_elem(&r->b, s->step, i);
        if (num == 1)
            continue;
        w.d[w.nd].step = step * size;
        w.d[w.nd++].num = num;
    }
    w.d[w.nd].step = es;
    w.d[w.nd++].num = size / es;
    cps_json *x = write_address(c, r, s->addr, &w, t);
    if (x)
        cps_bn_add(list, NULL, x);
}

static bool
read_side(cps_bctx *c, cps_brec *r, const side *s, const cps_json *x)
{
    cps_bwalk w;
    cps_dtype t;
    if (!read_address(c, r, s->addr, x, &w, &t))
        return false;
    int64_t es = cps_dtype_bytes(t), size = w.nd ? w.d[w.nd - 1].num * es : 0;
    if (!w.nd || w.d[w.nd - 1].step != es || size < 1 || size > 65535 ||
        w.nd - 1 > (int)s->dims || cps_dtypes[t].wire < 0)
        return cps_bctx_fail(c, "a record moves up to %u counted steps of up to 65,535 bytes",
                             s->dims);
    cps_isa_set(&r->b, s->size, (uint64_t)size);
    cps_isa_set(&r->b, s->dtype, (uint64_t)cps_dtypes[t].wire);
    for (unsigned i = 0; i < s->dims; i++) {
        int k = w.nd - 2 - (int)i;
        int64_t step = k >= 0 ? w.d[k].step / size : 1, num = k >= 0 ? w.d[k].num : 1;
        if ((k >= 0 && w.d[k].step % size) || step != (int32_t)step || num > 65535)
            return cps_bctx_fail(c, "a step is no multiple of the bytes moved at once");
        cps_isa_set_elem(&r->b, s->step, i, (uint32_t)(int32_t)step);
        cps_isa_set_elem(&r->b, s->num, i, (uint64_t)num);
    }
    return true;
}

WRITE(write_direct)
{
    write_side(c, r, &direct[0], at->ins);
    write_side(c, r, &direct[1], at->outs);
    write_dge(c, e, v);
}

READ(read_direct)
{
    return read_side(c, r, &direct[0], cps_bcursor_next(&at->in)) &&
           read_side(c, r, &direct[1], cps_bcursor_next(&at->out));
}

enum { BEYOND_IS_ERROR = 4, BOUND_ON = 0x80 };

WRITE(write_indexed)
{
    bool scatter = (GET(DMA_INDIRECT1D_flags) & 3) == CPS_INDIRECT_DMA_MODE_DST;
    cps_field idx = scatter ? CPS_F_DMA_INDIRECT1D_dst_idx : CPS_F_DMA_INDIRECT1D_src_idx;
    cps_field bound = scatter ? CPS_F_DMA_INDIRECT1D_dst_idx_bound_reg
                              : CPS_F_DMA_INDIRECT1D_src_idx_bound_reg;
    uint32_t a = (uint32_t)cps_isa_get(&r->b, idx);
    write_side(c, r, &indexed[0], at->ins);
    write_side(c, r, &indexed[1], at->outs);
    if (!(a >> 29) && !cps_addr_is_psum(a)) {
        cps_json *x =
            cps_bmem_write_column(c, cps_addr_partition(a), cps_addr_byte(a), CPS_DT_I32,
                                  (unsigned)GET(DMA_INDIRECT1D_idx_num_active_channels));
        if (x)
            cps_bn_add(at->indirects, NULL, x);
    }
    uint64_t b = cps_isa_get(&r->b, bound);
    if (at->indirects->n && b & BOUND_ON)
        cps_bn_add(at->indirects, NULL,
                   cps_bmem_write_reg(c, (unsigned)(b & ~(uint64_t)BOUND_ON), "int32"));
    write_dge(c, e, v);
}

READ(read_indexed)
{
    const char *op = text(v, "opcode");
    bool scatter = op && !strncmp(op, "IndirectSave", strlen("IndirectSave"));
    unsigned part, parts, reg;
    uint32_t byte;
    cps_dtype t;
    if (!read_side(c, r, &indexed[0], cps_bcursor_next(&at->in)) ||
        !read_side(c, r, &indexed[1], cps_bcursor_next(&at->out)))
        return false;
    const cps_json *x = cps_bcursor_next(&at->indirect), *b = cps_bcursor_next(&at->indirect);
    if (!x || !cps_bmem_read_column(c, x, &part, &byte, &t, &parts))
        return cps_bctx_fail(c, "an indexed transfer has a column of indices");
    SET(DMA_INDIRECT1D_idx_num_active_channels, parts);
    SET(DMA_INDIRECT1D_flags,
        BEYOND_IS_ERROR | (scatter ? CPS_INDIRECT_DMA_MODE_DST : CPS_INDIRECT_DMA_MODE_SRC));
    cps_isa_set(&r->b, scatter ? CPS_F_DMA_INDIRECT1D_dst_idx : CPS_F_DMA_INDIRECT1D_src_idx,
                cps_addr_sbuf(part, byte));
    if (!b)
        return true;
    if (!cps_bmem_read_reg(c, b, &reg))
        return false;
    cps_isa_set(&r->b,
                scatter ? CPS_F_DMA_INDIRECT1D_dst_idx_bound_reg
                        : CPS_F_DMA_INDIRECT1D_src_idx_bound_reg,
                BOUND_ON | reg);
    return true;
}

const cps_bspecial *
cps_bspecial_of(unsigned format)
{
    static const cps_bspecial rows[] = {
        {CPS_FMT_S3D3_MM, write_matmul, read_matmul},
        {CPS_FMT_S3_LW, NULL, read_weights},
        {CPS_FMT_D4_MR, NULL, read_fill},
        {CPS_FMT_S4D2_BN, NULL, read_statistics},
        {CPS_FMT_D4_IOTA, write_iota, read_iota},
        {CPS_FMT_S2D2_TS_AS, write_affine, read_affine},
        {CPS_FMT_CTRL_ER, write_reset, read_reset},
        {CPS_FMT_CTRL_MV, write_move, read_move},
        {CPS_FMT_CTRL_AL, write_alu, read_alu},
        {CPS_FMT_CTRL_BR, write_branch, read_branch},
        {CPS_FMT_MEM_2D, write_load, read_load},
        {CPS_FMT_PSEUDO_DMA_TRIGGER, write_trigger, read_trigger},
        {CPS_FMT_DMA_DIRECT2D, write_direct, read_direct},
        {CPS_FMT_DMA_INDIRECT1D, write_indexed, read_indexed},
    };
    for (size_t i = 0; i < cps_countof(rows); i++)
        if (rows[i].format == format)
            return &rows[i];
    return NULL;
}
