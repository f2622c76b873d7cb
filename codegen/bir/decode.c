/* From records to a BIR instruction. What rows and special.c say is written; then the
 * instruction is read back, and every field that came out different stands under "copse". So
 * nothing is lost, whatever the rows know, and what they do not know is visible. */
#include "codegen/bir/insn.h"

#include "codegen/isa/sync_row.h"

#include <math.h>
#include <string.h>

typedef struct writer {
    cps_bctx *c;
    cps_json *v; // the instruction
    cps_bop op;
    cps_bcursor at;
} writer;

#define STR(s) cps_bn_str(c->arena, (s))
#define INT(i) cps_bn_int(c->arena, (int64_t)(i))

// ---- operands ----

static cps_dtype
dtype_of(const cps_bctx *c, const cps_brec *r, cps_field operand)
{
    const cps_field_row *f = &cps_fields[operand];
    if (!f->dtype || !(cps_fields[f->dtype].gens >> c->gen & 1))
        return CPS_DT_FP32;
    unsigned w = (unsigned)cps_isa_get(&r->b, (cps_field)f->dtype);
    if (f->part == CPS_PART_LOW)
        w &= 15;
    else if (f->part == CPS_PART_HIGH)
        w >>= 4;
    return cps_isa_dtype(w);
}

// The partition where the data of a record starts: columns start there too.
static unsigned
first_partition(const cps_brec *r)
{
    const cps_format_row *f = &cps_formats[cps_insns[r->insn].format];
    for (unsigned i = f->first; i < f[1].first; i++)
        if (cps_fields[i].kind == CPS_FK_TENSOR && !cps_fields[i].out) {
            cps_ap ap;
            cps_isa_get_ap(&r->b, (cps_field)i, &ap);
            return ap.addr >> 29 ? 0 : cps_addr_partition(ap.addr);
        }
    return 0;
}

static bool
is_inline(const cps_brec *r, cps_field f)
{
    cps_field src = (cps_field)cps_fields[f].source;
    if (!src)
        return true;
    bool n = cps_fields[src].arg == CPS_ENUM_IMM_SRC_N;
    return cps_isa_get(&r->b, src) == (n ? (unsigned)CPS_IMM_SRC_N_INSTRUCTION_IMMEDIATE
                                         : (unsigned)CPS_IMM_SRC_INSTRUCTION_IMMEDIATE);
}

static cps_json *
number(cps_bctx *c, uint32_t bits, bool raw)
{
    return raw ? INT(bits) : cps_bn_float(c->arena, cps_bits_f32(bits));
}

static cps_json *
write_scalar(cps_bctx *c, const cps_brec *r, cps_field f, cps_dtype t, unsigned rows)
{
    uint32_t bits = (uint32_t)cps_isa_get(&r->b, f);
    if (is_inline(r, f)) {
        bool raw = cps_binsn_raw(r->insn);
        cps_json *v = cps_bn_new(c->arena, CPS_JSON_OBJ);
        cps_bn_add(v, "kind", STR("imm_value"));
        cps_bn_add(v, "dtype", STR(cps_bmap_dtype_name(t)));
        cps_bn_add(v, "value", number(c, bits, raw));
        return v;
    }
    if (cps_isa_get(&r->b, (cps_field)cps_fields[f].source) == CPS_IMM_SRC_REG_PTR_IMMEDIATE)
        return bits > 255 ? NULL : cps_bmem_write_reg(c, bits, cps_bmap_dtype_name(t));
    return cps_bmem_write_column(c, first_partition(r), bits, t, rows);
}

static bool
write_operands(writer *w, const cps_brec *r)
{
    unsigned format = cps_insns[r->insn].format;
    for (unsigned i = 0; i < cps_barg_count; i++) {
        const cps_barg_row *row = &cps_bargs[i];
        cps_field f = (cps_field)row->field;
        if (row->format != format || (row->op && row->op != w->op) ||
            (row->way == CPS_BY_PTR && is_inline(r, f)))
            continue;
        cps_dtype t = dtype_of(w->c, r, f);
        unsigned rows = row->rows ? (unsigned)cps_isa_get(&r->b, (cps_field)row->rows) : 1;
        cps_json *x = NULL;
        cps_ap ap;
        if (t && cps_fields[f].kind == CPS_FK_TENSOR) {
            cps_isa_get_ap(&r->b, f, &ap);
            x = cps_bmem_write_slot(w->c, &ap, t, rows);
        } else if (t) {
            x = write_scalar(w->c, r, f, t, rows);
        }
        if (!x)
            return false;
        cps_bn_add(row->way == CPS_BY_OUT ? w->at.outs : w->at.ins, NULL, x);
    }
    return true;
}

// ---- members ----

static cps_json *
write_fill(cps_bctx *c, const cps_brec *r, uint32_t word)
{
    cps_dtype t = cps_isa_dtype((unsigned)cps_isa_get(&r->b, CPS_F_D4_MR_dtype));
    uint8_t raw[8] = {(uint8_t)word, (uint8_t)(word >> 8), (uint8_t)(word >> 16),
                      (uint8_t)(word >> 24)};
    if (cps_dtype_is_int(t))
        return INT(cps_to_i64(t, raw));
    return cps_dtype_is_float(t) ? cps_bn_float(c->arena, cps_to_f32(t, raw)) : NULL;
}

static cps_json *
write_member(cps_bctx *c, const cps_brec *r, const cps_bset_row *row)
{
    cps_field f = (cps_field)row->field;
    const cps_field_row *fr = &cps_fields[f];
    uint64_t v = fr->bits <= 64 ? cps_isa_get(&r->b, f) : 0;
    const char *word = NULL;
    cps_json *list;
    switch ((cps_bhow)row->how) {
    case CPS_BH_UINT:
        return INT(v);
    case CPS_BH_SINT:
        return INT((int32_t)(uint32_t)v);
    case CPS_BH_BOOL:
        return v <= 1 ? cps_bn_bool(c->arena, v != 0) : NULL;
    case CPS_BH_BIT0:
        return cps_bn_bool(c->arena, v & 1);
    case CPS_BH_BIT1:
        return cps_bn_bool(c->arena, v >> 1 & 1);
    case CPS_BH_F32:
        return number(c, (uint32_t)v, false);
    case CPS_BH_IMM:
        return is_inline(r, f) ? number(c, (uint32_t)v, cps_binsn_raw(r->insn)) : NULL;
    case CPS_BH_ALU:
        word = cps_bmap_alu_name((unsigned)v);
        break;
    case CPS_BH_FUNC:
        word = cps_actfn_name((unsigned)v);
        break;
    case CPS_BH_WORD:
        word = cps_isa_value_name((cps_isa_enum)fr->arg, (unsigned)v);
        break;
    case CPS_BH_CAMEL:
        word = cps_bmap_camel(c->arena, (cps_isa_enum)fr->arg, (unsigned)v);
        break;
    case CPS_BH_SET:
        word = cps_actset_name((unsigned)v);
        break;
    case CPS_BH_FILL:
        return write_fill(c, r, (uint32_t)v);
    case CPS_BH_BYTES:
        list = cps_bn_new(c->arena, CPS_JSON_ARR);
        for (unsigned i = 0; i < fr->bits / 8u; i++)
            cps_bn_add(list, NULL, INT(r->b.b[fr->byte + i]));
        return list;
    }
    return word ? STR(word) : NULL;
}

static void
write_members(writer *w, const cps_brec *r)
{
    cps_bctx *c = w->c;
    unsigned format = cps_insns[r->insn].format;
    for (unsigned i = 0; i < cps_bset_count; i++) {
        const cps_bset_row *row = &cps_bsets[i];
        if (row->format != format || row->op != w->op ||
            !(cps_fields[row->field].gens >> c->gen & 1))
            continue;
        cps_json *x = write_member(c, r, row);
        if (x)
            cps_bn_add(w->v, row->key, x);
    }
    for (unsigned i = 0; i < cps_bfix_count; i++) {
        const cps_bfix_row *row = &cps_bfixes[i];
        if (row->format != format || row->op != w->op)
            continue;
        bool truth = !strcmp(row->word, "true");
        int64_t n;
        cps_bn_add(w->v, row->key,
                   truth || !strcmp(row->word, "false") ? cps_bn_bool(c->arena, truth)
                   : cps_parse_int(row->word, strlen(row->word), &n) ? INT(n)
                                                                     : STR(row->word));
    }
}

static void
write_marks(writer *w, unsigned marks)
{
    static const struct {
        uint16_t mark;
        const char *key;
    } rows[] = {{CPS_BM_STT, "is_scalar_tensor_tensor"},
                {CPS_BM_SCAN, "is_tensor_tensor_scan"}};
    cps_bctx *c = w->c;
    for (size_t i = 0; i < cps_countof(rows); i++)
        if (marks & rows[i].mark)
            cps_bn_add(w->v, rows[i].key, cps_bn_bool(c->arena, true));
    if (w->op == CPS_BOP_TensorScalarCache)
        cps_bn_add(w->v, "mode", STR(marks & CPS_BM_RUNNING ? "Cumulative" : "Reduce"));
}

// ---- sync ----

static cps_json *
item(cps_bctx *c, const char *mode, unsigned id, bool valued, uint64_t value)
{
    cps_json *x = cps_bn_new(c->arena, CPS_JSON_OBJ);
    cps_bn_add(x, "mode", STR(mode));
    cps_bn_add(x, "id", INT(id));
    if (valued)
        cps_bn_add(x, "value", INT(value));
    return x;
}

static void
write_band(cps_bctx *c, const cps_brec *r, const cps_sync_band *band, cps_json *waits,
           cps_json *updates)
{
    unsigned wait = (unsigned)cps_isa_get(&r->b, band->wait_mode);
    unsigned update = (unsigned)cps_isa_get(&r->b, band->update_mode);
    const cps_sync_row *row = wait ? cps_wait_row(wait) : NULL;
    if (row && cps_bmap_wait_name(wait))
        cps_bn_add(
            waits, NULL,
            item(c, cps_bmap_wait_name(wait), (unsigned)cps_isa_get(&r->b, band->wait_idx),
                 row->operand != CPS_SYNC_NOTHING, cps_isa_get(&r->b, band->wait_value)));
    row = update ? cps_update_row(update) : NULL;
    if (row && cps_bmap_update_name(update))
        cps_bn_add(updates, NULL,
                   item(c, cps_bmap_update_name(update),
                        (unsigned)cps_isa_get(&r->b, band->update_idx),
                        row->operand != CPS_SYNC_NOTHING,
                        cps_isa_get(&r->b, band->update_value)));
}

static void
write_sync(cps_bctx *c, const cps_brec *r, cps_json *to)
{
    cps_json *s = cps_bn_new(c->arena, CPS_JSON_OBJ);
    cps_json *waits = cps_bn_add(s, "on_wait", cps_bn_new(c->arena, CPS_JSON_ARR));
    cps_json *updates = cps_bn_add(s, "on_update", cps_bn_new(c->arena, CPS_JSON_ARR));
    cps_field sem, rise;
    if (cps_binsn_dma_semaphore(cps_insns[r->insn].format, &sem, &rise)) {
        cps_json *x = cps_bn_add(updates, NULL,
                                 item(c, "sem-add-imm", (unsigned)cps_isa_get(&r->b, sem), true,
                                      cps_isa_get(&r->b, rise)));
        cps_bn_add(x, "by", STR("dma"));
    }
    write_band(c, r, &cps_sync_bands[0], waits, updates);
    for (unsigned i = 0; i < r->nwait; i++)
        cps_bn_add(waits, NULL,
                   item(c, cps_bmap_wait_name(CPS_WAIT_SEM_GE_IMM), r->wait[i].sem, true,
                        r->wait[i].value));
    if (cps_insns[r->insn].format == CPS_FMT_CTRL_ES)
        write_band(c, r, &cps_sync_bands[1], waits, updates);
    if (waits->n || updates->n)
        cps_bn_add(to, "sync_info", s);
}

// ---- what is left ----

static bool
same_place(const cps_kloc *a, const cps_kloc *b)
{
    return cps_streq(a->file, b->file) && a->line == b->line && a->col == b->col;
}

static void
write_place(cps_bctx *c, const cps_kloc *at, cps_json *to)
{
    cps_json *d = cps_bn_add(to, "debug", cps_bn_new(c->arena, CPS_JSON_OBJ));
    if (!at->file)
        return;
    cps_bn_add(d, "filename", STR(at->file));
    cps_bn_add(d, "line", INT(at->line));
    cps_bn_add(d, "column", INT(at->col));
}

static bool
same_relocs(const cps_brec *a, const cps_brec *b)
{
    bool same = a->nreloc == b->nreloc;
    for (unsigned i = 0; same && i < a->nreloc; i++)
        same = a->reloc[i].field == b->reloc[i].field && a->reloc[i].var == b->reloc[i].var &&
               a->reloc[i].addend == b->reloc[i].addend;
    return same;
}

static void
left_field(cps_bctx *c, const cps_brec *want, const cps_brec *got, cps_field f,
           const char *name, cps_json *fields)
{
    const cps_field_row *r = &cps_fields[f];
    unsigned n = r->bits / 8u;
    const uint8_t *a = want->b.b + r->byte, *b = got->b.b + r->byte;
    if (!memcmp(a, b, n))
        return;
    cps_bn_add(fields, name,
               n <= 4 ? INT(cps_isa_get(&want->b, f)) : cps_bn_hex(c->arena, a, n));
}

static void
left_relocs(cps_bctx *c, const cps_brec *want, cps_json *own)
{
    cps_json *list = cps_bn_add(own, "relocs", cps_bn_new(c->arena, CPS_JSON_ARR));
    for (unsigned i = 0; i < want->nreloc; i++) {
        const cps_kreloc *x = &want->reloc[i];
        cps_json *o = cps_bn_add(list, NULL, cps_bn_new(c->arena, CPS_JSON_OBJ));
        const char *name = "";
        for (uint32_t k = 2; k < c->mem.n; k++)
            if (c->mem.data[k].space == CPS_BS_HBM && c->mem.data[k].var == x->var)
                name = c->mem.data[k].name;
        cps_bn_add(o, "field", STR(cps_fields[x->field].name));
        cps_bn_add(o, "memref", STR(name));
        cps_bn_add(o, "offset", INT(x->addend));
    }
}

// Adds to `own` what reading did not give.
static void
leave(cps_bctx *c, const cps_brec *want, const cps_brec *got, cps_json *own)
{
    static const struct {
        uint8_t format;
        const char *prefix;
    } bands[] = {{CPS_FMT_HDR, "HDR."}, {CPS_FMT_EVENTS, "EVENTS."}, {CPS_FORMATS, ""}};
    cps_json *fields = cps_bn_new(c->arena, CPS_JSON_OBJ);
    for (unsigned i = 0; i < cps_countof(bands); i++) {
        unsigned format =
            bands[i].format < CPS_FORMATS ? bands[i].format : cps_insns[want->insn].format;
        for (unsigned f = cps_formats[format].first; f < cps_formats[format + 1].first; f++)
            left_field(c, want, got, (cps_field)f,
                       *bands[i].prefix ? cps_arena_printf(c->arena, "%s%s", bands[i].prefix,
                                                           cps_fields[f].name)
                                        : cps_fields[f].name,
                       fields);
    }
    if (fields->n)
        cps_bn_add(own, "fields", fields);
    if (!same_relocs(want, got))
        left_relocs(c, want, own);
}

static bool
same_record(const cps_brec *a, const cps_brec *b)
{
    bool same = a->here == b->here;
    if (!same || !a->here)
        return same;
    same = a->insn == b->insn && !memcmp(&a->b, &b->b, sizeof a->b) && same_relocs(a, b) &&
           same_place(&a->loc, &b->loc) && cps_streq(a->target, b->target) &&
           a->nwait == b->nwait;
    for (unsigned i = 0; same && i < a->nwait; i++)
        same = a->wait[i].sem == b->wait[i].sem && a->wait[i].value == b->wait[i].value;
    return same;
}

static bool
same_group(const cps_bgroup *a, const cps_bgroup *b)
{
    bool same = a->engine == b->engine;
    for (int i = 0; i < CPS_BS_COUNT; i++)
        same = same && same_record(&a->r[i], &b->r[i]);
    return same;
}

// ---- the whole ----

// What the record says of itself: marks of map.def.
static unsigned
marks_of(const cps_brec *r)
{
    const cps_format_row *f = &cps_formats[cps_insns[r->insn].format];
    unsigned m = CPS_BM_IMM;
    for (unsigned i = f->first; i < f[1].first; i++)
        if (cps_fields[i].source && !is_inline(r, (cps_field)i))
            m = CPS_BM_PTR;
    if (r->insn == CPS_INSN_COMPARE_BRANCH &&
        cps_isa_get(&r->b, CPS_F_CTRL_BR_cmp_op) == CPS_BR_CMP_OP_ALWAYS)
        m |= CPS_BM_JUMP;
    if (r->insn == CPS_INSN_DMA_INDIRECT) {
        unsigned mode = (unsigned)cps_isa_get(&r->b, CPS_F_DMA_INDIRECT1D_flags) & 3;
        m |= mode == CPS_INDIRECT_DMA_MODE_DST ? CPS_BM_SCATTER : 0;
        m |= cps_isa_get(&r->b, CPS_F_DMA_INDIRECT1D_compute_op) ? CPS_BM_ADDS : 0;
    }
    return m;
}

static const cps_binsn_row *
row_of(const cps_brec *r)
{
    unsigned have = marks_of(r);
    for (unsigned i = 0; i < cps_binsn_count; i++) {
        unsigned want = cps_binsns[i].marks & CPS_BM_OF_RECORD;
        if (cps_binsns[i].insn == r->insn && !(want & ~have))
            return &cps_binsns[i];
    }
    return NULL;
}

static bool
write_record(writer *w, const cps_brec *r, cps_engine e, cps_json *sync)
{
    const cps_bspecial *s = cps_bspecial_of(cps_insns[r->insn].format);
    if (!write_operands(w, r))
        return false;
    write_members(w, r);
    if (s && s->write)
        s->write(w->c, r, e, w->v, &w->at);
    write_sync(w->c, r, sync);
    return true;
}

cps_json *
cps_binsn_write(cps_bctx *c, const cps_bgroup *g)
{
    static const char *const sides[] = {
        [CPS_BS_BEFORE] = "before", [CPS_BS_MAIN] = NULL, [CPS_BS_AFTER] = "after"};
    const cps_brec *main = &g->r[CPS_BS_MAIN];
    const cps_binsn_row *row = main->insn ? row_of(main) : NULL;
    if (!row)
        return NULL;
    writer w = {.c = c, .v = cps_bn_new(c->arena, CPS_JSON_OBJ), .op = (cps_bop)row->op};
    w.at.ins = cps_bn_new(c->arena, CPS_JSON_ARR);
    w.at.outs = cps_bn_new(c->arena, CPS_JSON_ARR);
    w.at.indirects = cps_bn_new(c->arena, CPS_JSON_ARR);
    cps_json *own = cps_bn_new(c->arena, CPS_JSON_OBJ), *part[CPS_BS_COUNT] = {NULL};
    cps_bn_add(w.v, "opcode", STR(cps_bops[row->op].name));
    cps_bn_add(w.v, "engine", STR(cps_bmap_engine_name(g->engine)));
    if (!write_record(&w, main, g->engine, w.v))
        return NULL;
    write_marks(&w, row->marks);
    if (main->loc.file)
        write_place(c, &main->loc, w.v);
    for (int side = 0; side < CPS_BS_COUNT; side++) {
        const cps_brec *r = &g->r[side];
        if (!sides[side] || !r->here)
            continue;
        part[side] = cps_bn_add(own, sides[side], cps_bn_new(c->arena, CPS_JSON_OBJ));
        if (!write_record(&w, r, g->engine, part[side]))
            return NULL;
        if (r->insn != cps_bmap_companion(main->insn, (cps_bside)side, CPS_INSN_NONE))
            cps_bn_add(part[side], "isa", STR(cps_insns[r->insn].name));
        if (!same_place(&r->loc, &main->loc))
            write_place(c, &r->loc, part[side]);
    }
    cps_bn_add(w.v, "ins", w.at.ins);
    cps_bn_add(w.v, "outs", w.at.outs);
    if (w.at.indirects->n)
        cps_bn_add(w.v, "indirection_ins", w.at.indirects);
    if (own->n)
        cps_bn_add(w.v, "copse", own);
    // Read it back; what differs is said plainly.
    cps_bgroup got;
    if (!cps_binsn_read(c, w.v, &got))
        return NULL;
    bool added = own->n != 0;
    if (got.r[CPS_BS_MAIN].insn != main->insn) {
        cps_bn_add(own, "isa", STR(cps_insns[main->insn].name));
        if (!added)
            cps_bn_add(w.v, "copse", own);
        added = true;
        if (!cps_binsn_read(c, w.v, &got))
            return NULL;
    }
    for (int side = 0; side < CPS_BS_COUNT; side++)
        if (g->r[side].here)
            leave(c, &g->r[side], &got.r[side], part[side] ? part[side] : own);
    if (own->n && !added)
        cps_bn_add(w.v, "copse", own);
    return cps_binsn_read(c, w.v, &got) && same_group(g, &got) ? w.v : NULL;
}

cps_json *
cps_binsn_write_raw(cps_bctx *c, const cps_brec *r, cps_engine e)
{
    cps_json *v = cps_bn_new(c->arena, CPS_JSON_OBJ);
    cps_bn_add(v, "opcode", STR(cps_bops[CPS_BOP_InlineASMBytes].name));
    cps_bn_add(v, "engine", STR(cps_bmap_engine_name(e)));
    cps_bn_add(v, "asm_bytes", cps_bn_hex(c->arena, r->b.b, CPS_BUNDLE_BYTES));
    cps_bn_add(v, "ins", cps_bn_new(c->arena, CPS_JSON_ARR));
    cps_bn_add(v, "outs", cps_bn_new(c->arena, CPS_JSON_ARR));
    if (r->loc.file)
        write_place(c, &r->loc, v);
    if (r->nreloc) {
        cps_json *own = cps_bn_add(v, "copse", cps_bn_new(c->arena, CPS_JSON_OBJ));
        left_relocs(c, r, own);
    }
    return v;
}
