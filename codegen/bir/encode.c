/* From a BIR instruction to records: rows of map.def, then what special.c knows, then
 * sync_info, then the plain fields under "copse" that no row says. */
#include "codegen/bir/insn.h"

#include "codegen/isa/sync_row.h"

#include <string.h>

const cps_json *
cps_bcursor_next(const cps_json **at)
{
    const cps_json *v = *at;
    if (v)
        *at = v->next;
    return v;
}

bool
cps_binsn_raw(cps_insn i)
{
    return cps_has_suffix(cps_insns[i].name, "_BITVEC");
}

bool
cps_binsn_dma_semaphore(unsigned format, cps_field *sem, cps_field *rise)
{
    static const struct {
        uint8_t format;
        uint16_t sem, rise;
    } rows[] = {
        {CPS_FMT_DMA_DIRECT2D, CPS_F_DMA_DIRECT2D_semaphore, CPS_F_DMA_DIRECT2D_sem_increment},
        {CPS_FMT_DMA_INDIRECT1D, CPS_F_DMA_INDIRECT1D_semaphore,
         CPS_F_DMA_INDIRECT1D_sem_increment},
    };
    for (size_t i = 0; i < cps_countof(rows); i++)
        if (rows[i].format == format) {
            *sem = (cps_field)rows[i].sem;
            *rise = (cps_field)rows[i].rise;
            return true;
        }
    return false;
}

cps_bundle
cps_binsn_wait(cps_gen g, cps_bwait w)
{
    cps_bundle b = cps_isa_new(CPS_INSN_EVENT_SEMAPHORE, g);
    cps_isa_set(&b, CPS_F_CTRL_ES_wait_mode, CPS_WAIT_SEM_GE_IMM);
    cps_isa_set(&b, CPS_F_CTRL_ES_wait_idx, w.sem);
    cps_isa_set(&b, CPS_F_CTRL_ES_sem_wait_value, w.value);
    return b;
}

// ---- which record ----

static const char *
text(const cps_json *v, const char *key)
{
    const cps_json *m = v ? cps_json_get(v, key) : NULL;
    return m && m->kind == CPS_JSON_STR ? m->str : NULL;
}

static bool
is_true(const cps_json *v, const char *key)
{
    const cps_json *m = cps_json_get(v, key);
    return m && (m->kind == CPS_JSON_BOOL || m->kind == CPS_JSON_INT) && m->i;
}

static const char *
last_dtype(const cps_json *list)
{
    const char *t = NULL;
    for (const cps_json *x = list ? list->first : NULL; x; x = x->next)
        if (cps_bmem_is(x, "physical_ap") || cps_bmem_is(x, "register_ap"))
            t = text(x, "dtype") ? text(x, "dtype") : t;
    return t;
}

// The marks that an instruction shows.
static unsigned
shown(const cps_bctx *c, const cps_json *v)
{
    unsigned m = 0;
    const char *op = text(v, "op") ? text(v, "op") : text(v, "op0");
    int alu = op ? cps_bmap_alu(op) : -1;
    cps_alu_class cls = alu >= 0 ? cps_alu_class_of((unsigned)alu, c->gen) : CPS_ALUC_NONE;
    const char *in = last_dtype(cps_json_get(v, "ins")),
               *out = last_dtype(cps_json_get(v, "outs"));
    m |= cls == CPS_ALUC_BITVEC || cls == CPS_ALUC_CRC ? CPS_BM_RAW : 0;
    m |= in && out && strcmp(in, out) ? CPS_BM_DIFF : 0;
    m |= is_true(v, "is_scalar_tensor_tensor") ? CPS_BM_STT : 0;
    m |= is_true(v, "is_tensor_tensor_scan") ? CPS_BM_SCAN : 0;
    m |= cps_json_get(v, "reduce_op") ? CPS_BM_REDUCES : 0;
    m |= text(v, "mode") && !strcmp(text(v, "mode"), "Cumulative") ? CPS_BM_RUNNING : 0;
    return m;
}

// The record of an instruction: the row whose reading marks are all shown, most of them first.
static cps_insn
pick(const cps_bctx *c, cps_bop op, const cps_json *v)
{
    unsigned have = shown(c, v), best = 0;
    cps_insn found = CPS_INSN_NONE;
    for (unsigned i = 0; i < cps_binsn_count; i++) {
        unsigned want = cps_binsns[i].marks & ~(unsigned)CPS_BM_OF_RECORD;
        if (cps_binsns[i].op != op || (want & ~have))
            continue;
        unsigned n = (unsigned)__builtin_popcount(want);
        if (!found || n > best) {
            found = (cps_insn)cps_binsns[i].insn;
            best = n;
        }
    }
    return found;
}

// ---- rows ----

static void
set_dtype(cps_brec *r, const cps_bctx *c, cps_field operand, cps_dtype t)
{
    const cps_field_row *f = &cps_fields[operand];
    if (!f->dtype || !(cps_fields[f->dtype].gens >> c->gen & 1) || cps_dtypes[t].wire < 0)
        return;
    uint64_t old = cps_isa_get(&r->b, (cps_field)f->dtype), w = (uint64_t)cps_dtypes[t].wire;
    if (f->part == CPS_PART_LOW)
        w = (old & 0xF0) | (w & 15);
    else if (f->part == CPS_PART_HIGH)
        w = (old & 15) | (w & 15) << 4;
    cps_isa_set(&r->b, (cps_field)f->dtype, w);
}

static bool
number(cps_bctx *c, const cps_json *v, bool raw, uint32_t *out)
{
    double d;
    if (raw) {
        if (!v || v->kind != CPS_JSON_INT || v->i < 0 || v->i > UINT32_MAX)
            return cps_bctx_fail(c, "a bitwise constant is an integer of 32 bits");
        *out = (uint32_t)v->i;
        return true;
    }
    if (!v || !cps_bn_number(v, &d))
        return cps_bctx_fail(c, "a constant is no number");
    *out = cps_f32_bits((float)d);
    return true;
}

// A scalar: a number in the record, a column by its byte, or a register.
static bool
read_scalar(cps_bctx *c, cps_brec *r, cps_field f, const cps_json *v, unsigned rows)
{
    cps_field src = (cps_field)cps_fields[f].source;
    bool n = src && cps_fields[src].arg == CPS_ENUM_IMM_SRC_N;
    unsigned inline_ =
        n ? CPS_IMM_SRC_N_INSTRUCTION_IMMEDIATE : CPS_IMM_SRC_INSTRUCTION_IMMEDIATE;
    unsigned pointer = n ? CPS_IMM_SRC_N_POINTER_IMMEDIATE : CPS_IMM_SRC_POINTER_IMMEDIATE;
    uint32_t bits = 0;
    unsigned reg, part, parts;
    cps_dtype t = CPS_DT_NONE;
    (void)rows;
    if (cps_bmem_is(v, "imm_value")) {
        if (!number(c, cps_json_get(v, "value"), cps_binsn_raw(r->insn), &bits))
            return false;
        if (src)
            cps_isa_set(&r->b, src, inline_);
        const char *dt = text(v, "dtype");
        t = dt ? cps_bmap_dtype(dt) : CPS_DT_NONE;
    } else if (cps_bmem_is(v, "register_access")) {
        if (!cps_bmem_read_reg(c, v, &reg))
            return false;
        bits = reg;
        if (src)
            cps_isa_set(&r->b, src, CPS_IMM_SRC_REG_PTR_IMMEDIATE);
    } else {
        if (!cps_bmem_read_column(c, v, &part, &bits, &t, &parts))
            return false;
        if (src)
            cps_isa_set(&r->b, src, pointer);
    }
    cps_isa_set(&r->b, f, bits);
    if (t)
        set_dtype(r, c, f, t);
    return true;
}

static bool
read_operand(cps_bctx *c, cps_brec *r, const cps_barg_row *row, const cps_json *v)
{
    cps_field f = (cps_field)row->field;
    if (cps_fields[f].kind != CPS_FK_TENSOR)
        return read_scalar(c, r, f, v, row->rows);
    cps_ap ap;
    cps_dtype t;
    unsigned parts;
    if (!cps_bmem_read_slot(c, v, cps_fields[f].arg, &ap, &t, &parts))
        return false;
    cps_isa_set_ap(&r->b, f, &ap);
    set_dtype(r, c, f, t);
    if (row->rows)
        cps_isa_set(&r->b, (cps_field)row->rows, parts);
    return true;
}

static bool
read_operands(cps_bctx *c, cps_brec *r, cps_bop op, const cps_json *v, cps_bcursor *at)
{
    unsigned format = cps_insns[r->insn].format;
    for (unsigned i = 0; i < cps_barg_count; i++) {
        const cps_barg_row *row = &cps_bargs[i];
        if (row->format != format || (row->op && row->op != op))
            continue;
        if (row->way == CPS_BY_PTR && cps_json_get(v, "scale"))
            continue; // a number, said by its member
        const cps_json *x = cps_bcursor_next(row->way == CPS_BY_OUT ? &at->out : &at->in);
        if (!x)
            return cps_bctx_fail(c, "'%s' has too few %s", cps_bops[op].name,
                                 row->way == CPS_BY_OUT ? "outs" : "ins");
        if (!read_operand(c, r, row, x))
            return false;
    }
    return true;
}

static uint32_t
fill(cps_dtype t, double d)
{
    uint8_t raw[8] = {0};
    uint32_t w = 0;
    if (cps_dtype_is_int(t))
        cps_from_i64(t, raw, d > -9e18 && d < 9e18 ? (int64_t)d : 0);
    else
        cps_from_f32(t, raw, (float)d);
    for (unsigned i = 0; i < cps_dtype_bytes(t) && i < 4; i++)
        w |= (uint32_t)raw[i] << (8 * i);
    return w;
}

static bool
read_bytes(cps_bctx *c, cps_brec *r, cps_field f, const cps_json *m)
{
    unsigned n = cps_fields[f].bits / 8u, i = 0;
    if (m->kind != CPS_JSON_ARR || m->n > n)
        return cps_bctx_fail(c, "'%s' is a list of up to %u numbers", m->key, n);
    for (const cps_json *x = m->first; x; x = x->next) {
        if (x->kind != CPS_JSON_INT || x->i < 0 || x->i > 255)
            return cps_bctx_fail(c, "'%s' holds numbers of 8 bits", m->key);
        cps_binsn_bytes(&r->b, f)[i++] = (uint8_t)x->i;
    }
    return true;
}

static bool
read_member(cps_bctx *c, cps_brec *r, const cps_bset_row *row, const cps_json *m)
{
    cps_field f = (cps_field)row->field;
    const char *word = m->kind == CPS_JSON_STR ? m->str : NULL;
    bool whole = m->kind == CPS_JSON_INT || m->kind == CPS_JSON_BOOL;
    int64_t v = -1;
    uint32_t bits;
    double d;
    switch ((cps_bhow)row->how) {
    case CPS_BH_UINT:
        v = whole && m->i >= 0 ? m->i : -1;
        break;
    case CPS_BH_SINT:
        if (!whole || m->i != (int32_t)m->i)
            return cps_bctx_fail(c, "'%s' is an integer of 32 bits", m->key);
        v = (uint32_t)m->i;
        break;
    case CPS_BH_BOOL:
        v = whole ? m->i != 0 : -1;
        break;
    case CPS_BH_BIT0:
    case CPS_BH_BIT1: {
        uint64_t bit = row->how == CPS_BH_BIT1 ? 2 : 1, old = cps_isa_get(&r->b, f);
        v = whole ? (int64_t)(m->i ? old | bit : old & ~bit) : -1;
        break;
    }
    case CPS_BH_F32:
    case CPS_BH_IMM:
        if (!number(c, m, row->how == CPS_BH_IMM && cps_binsn_raw(r->insn), &bits))
            return false;
        v = bits;
        if (row->how == CPS_BH_IMM && cps_fields[f].source)
            cps_isa_set(&r->b, (cps_field)cps_fields[f].source,
                        CPS_IMM_SRC_INSTRUCTION_IMMEDIATE);
        break;
    case CPS_BH_ALU:
        v = word ? cps_bmap_alu(word) : -1;
        break;
    case CPS_BH_FUNC:
        v = word ? cps_actfn_parse(word) : -1;
        break;
    case CPS_BH_WORD:
        v = word ? cps_isa_value_parse((cps_isa_enum)cps_fields[f].arg, word, strlen(word))
                 : -1;
        break;
    case CPS_BH_CAMEL:
        v = word ? cps_bmap_from_camel((cps_isa_enum)cps_fields[f].arg, word) : -1;
        break;
    case CPS_BH_SET:
        v = word ? cps_actset_parse(word) : -1;
        break;
    case CPS_BH_BYTES:
        return read_bytes(c, r, f, m);
    case CPS_BH_FILL:
        if (!cps_bn_number(m, &d))
            return cps_bctx_fail(c, "'%s' is no number", m->key);
        v = fill(cps_isa_dtype((unsigned)cps_isa_get(&r->b, CPS_F_D4_MR_dtype)), d);
        break;
    }
    unsigned width = cps_fields[f].bits;
    if (v < 0 || (width < 63 && v >> width))
        return cps_bctx_fail(c, "'%s' has no such value", m->key);
    cps_isa_set(&r->b, f, (uint64_t)v);
    return true;
}

static bool
read_members(cps_bctx *c, cps_brec *r, cps_bop op, const cps_json *v)
{
    unsigned format = cps_insns[r->insn].format;
    for (unsigned i = 0; i < cps_bset_count; i++) {
        const cps_bset_row *row = &cps_bsets[i];
        const cps_json *m =
            row->format == format && row->op == op ? cps_json_get(v, row->key) : NULL;
        if (m && !read_member(c, r, row, m))
            return false;
    }
    return true;
}

// ---- sync ----

// An item of on_wait or on_update as mode, id and value.
static bool
read_item(cps_bctx *c, const cps_json *x, bool wait, unsigned *mode, unsigned *id,
          uint32_t *value, bool *has_value)
{
    const char *name = text(x, "mode");
    int m = !name ? -1 : wait ? cps_bmap_wait(name) : cps_bmap_update(name);
    const cps_json *i = cps_json_get(x, "id"), *val = cps_json_get(x, "value");
    if (m < 0 || !i || i->kind != CPS_JSON_INT || i->i < 0 || i->i > 255)
        return cps_bctx_fail(c, "an item of sync_info has no known mode or no id of 8 bits");
    *mode = (unsigned)m;
    *id = (unsigned)i->i;
    *has_value = val != NULL;
    *value = 0;
    if (!val)
        return true;
    if (val->kind != CPS_JSON_INT || val->i < 0 || val->i > UINT32_MAX)
        return cps_bctx_fail(c, "a value of sync_info is an integer of 32 bits");
    *value = (uint32_t)val->i;
    return true;
}

static bool
read_waits(cps_bctx *c, cps_brec *r, const cps_json *list)
{
    bool es = cps_insns[r->insn].format == CPS_FMT_CTRL_ES, has;
    unsigned mode, id, n = 0;
    uint32_t value;
    cps_bwait *more = cps_new_array(c->arena, cps_bwait, list->n + 1);
    for (const cps_json *x = list->first; x; x = x->next, n++) {
        if (!read_item(c, x, true, &mode, &id, &value, &has))
            return false;
        // EVENT_SEMAPHORE has two bands; a single wait stands in the second.
        if (es && n > 1)
            return cps_bctx_fail(c, "an EventSemaphore waits for two things at most");
        const cps_sync_band *band = &cps_sync_bands[es && (list->n == 1 || n == 1)];
        if (n && !es) {
            if (mode != CPS_WAIT_SEM_GE_IMM)
                return cps_bctx_fail(c, "waits beyond the first are sem-ge-imm");
            more[r->nwait++] = (cps_bwait){(uint8_t)id, value};
            continue;
        }
        cps_isa_set(&r->b, band->wait_mode, mode);
        cps_isa_set(&r->b, band->wait_idx, id);
        if (has)
            cps_isa_set(&r->b, band->wait_value, value);
    }
    r->wait = more;
    return true;
}

static bool
read_updates(cps_bctx *c, cps_brec *r, const cps_json *list)
{
    unsigned format = cps_insns[r->insn].format, mode, id, n = 0;
    bool es = format == CPS_FMT_CTRL_ES, has;
    uint32_t value;
    cps_field sem, rise;
    for (const cps_json *x = list->first; x; x = x->next) {
        if (!read_item(c, x, false, &mode, &id, &value, &has))
            return false;
        const char *by = text(x, "by");
        if (by && !strcmp(by, "dma")) {
            if (!cps_binsn_dma_semaphore(format, &sem, &rise) || value > 255)
                return cps_bctx_fail(c, "the instruction starts no transfer that updates");
            cps_isa_set(&r->b, sem, id);
            cps_isa_set(&r->b, rise, value);
            continue;
        }
        if (n++ > es)
            return cps_bctx_fail(c, "a record makes %d update at most", 1 + es);
        const cps_sync_band *band = &cps_sync_bands[es && (list->n == 1 || n == 2)];
        cps_isa_set(&r->b, band->update_mode, mode);
        cps_isa_set(&r->b, band->update_idx, id);
        if (has)
            cps_isa_set(&r->b, band->update_value, value);
    }
    return true;
}

static bool
read_sync(cps_bctx *c, cps_brec *r, const cps_json *v)
{
    const cps_json *s = cps_json_get(v, "sync_info");
    const cps_json *w = s ? cps_json_get(s, "on_wait") : NULL;
    const cps_json *u = s ? cps_json_get(s, "on_update") : NULL;
    return (!w || read_waits(c, r, w)) && (!u || read_updates(c, r, u));
}

// ---- plain fields ----

static cps_field
field_of(const cps_brec *r, const char *name)
{
    static const char *const bands[] = {"HDR.", "EVENTS."};
    unsigned format = r->insn ? cps_insns[r->insn].format : CPS_FORMATS;
    for (unsigned i = 0; i < 2; i++)
        if (!strncmp(name, bands[i], strlen(bands[i]))) {
            format = i ? CPS_FMT_EVENTS : CPS_FMT_HDR;
            name += strlen(bands[i]);
            break;
        }
    for (unsigned f = format < CPS_FORMATS ? cps_formats[format].first : CPS_FIELDS;
         f < CPS_FIELDS && f < cps_formats[format + 1].first; f++)
        if (!strcmp(cps_fields[f].name, name))
            return (cps_field)f;
    return CPS_F_NONE;
}

static bool
read_fields(cps_bctx *c, cps_brec *r, const cps_json *own)
{
    const cps_json *fields = own ? cps_json_get(own, "fields") : NULL;
    for (const cps_json *x = fields ? fields->first : NULL; x; x = x->next) {
        cps_field f = field_of(r, x->key);
        unsigned n = f ? cps_fields[f].bits / 8u : 0;
        if (!f)
            return cps_bctx_fail(c, "the record has no field '%s'", x->key);
        if (n <= 4 && x->kind == CPS_JSON_INT && x->i >= 0 && !(x->i >> (8 * n)))
            cps_isa_set(&r->b, f, (uint64_t)x->i);
        else if (!cps_bn_bytes(x, cps_binsn_bytes(&r->b, f), n))
            return cps_bctx_fail(c, "field '%s' is a number or %u hex digits", x->key, 2 * n);
    }
    const cps_json *bytes = own ? cps_json_get(own, "bytes") : NULL;
    if (bytes && !cps_bn_bytes(bytes, r->b.b, CPS_BUNDLE_BYTES))
        return cps_bctx_fail(c, "'bytes' is a record: 128 hex digits");
    const cps_json *relocs = own ? cps_json_get(own, "relocs") : NULL;
    if (relocs)
        r->nreloc = 0;
    for (const cps_json *x = relocs ? relocs->first : NULL; x; x = x->next) {
        const char *name = text(x, "field"), *mem = text(x, "memref");
        const cps_json *off = cps_json_get(x, "offset");
        const uint64_t *at = mem ? cps_map_find_str(&c->by_name, mem) : NULL;
        cps_field f = name ? field_of(r, name) : CPS_F_NONE;
        if (!f || !at || c->mem.data[*at].space != CPS_BS_HBM || !off ||
            off->kind != CPS_JSON_INT || r->nreloc == CPS_BRELOCS)
            return cps_bctx_fail(c, "malformed relocation");
        r->reloc[r->nreloc++] =
            (cps_kreloc){.field = (uint16_t)f, .var = c->mem.data[*at].var, .addend = off->i};
    }
    return true;
}

static void
read_place(cps_bctx *c, cps_brec *r, const cps_json *v)
{
    const cps_json *d = cps_json_get(v, "debug");
    const char *file = d ? text(d, "filename") : NULL;
    const cps_json *line = d ? cps_json_get(d, "line") : NULL;
    const cps_json *col = d ? cps_json_get(d, "column") : NULL;
    (void)c;
    if (!file)
        return;
    r->loc.file = file;
    r->loc.line = line && line->kind == CPS_JSON_INT ? (uint32_t)line->i : 0;
    r->loc.col = col && col->kind == CPS_JSON_INT ? (uint32_t)col->i : 0;
}

// ---- the whole ----

// `v` has the operands and members, `own` the plain fields; `sync` has sync_info and debug.
static bool
read_record(cps_bctx *c, cps_brec *r, cps_bop op, cps_engine e, const cps_json *v,
            const cps_json *own, const cps_json *sync, cps_bcursor *at)
{
    const cps_bspecial *s = cps_bspecial_of(cps_insns[r->insn].format);
    r->here = true;
    if (!read_operands(c, r, op, v, at) || !read_members(c, r, op, v) ||
        (s && s->read && !s->read(c, r, e, v, at)) || !read_sync(c, r, sync) ||
        !read_fields(c, r, own))
        return false;
    read_place(c, r, sync);
    return true;
}

static bool
raw_bytes(cps_bctx *c, const cps_json *v, cps_bgroup *g)
{
    cps_brec *r = &g->r[CPS_BS_MAIN];
    if (!cps_bn_bytes(cps_json_get(v, "asm_bytes"), r->b.b, CPS_BUNDLE_BYTES))
        return cps_bctx_fail(c, "'asm_bytes' is one record: 128 hex digits");
    r->here = true;
    r->insn = cps_isa_find(r->b.b[0], c->gen);
    read_place(c, r, v);
    return read_fields(c, r, cps_json_get(v, "copse"));
}

bool
cps_binsn_read(cps_bctx *c, const cps_json *v, cps_bgroup *g)
{
    static const char *const sides[] = {
        [CPS_BS_BEFORE] = "before", [CPS_BS_MAIN] = NULL, [CPS_BS_AFTER] = "after"};
    *g = (cps_bgroup){0};
    const char *engine = text(v, "engine"), *code = text(v, "opcode");
    const cps_json *own = cps_json_get(v, "copse"), *ins = cps_json_get(v, "ins"),
                   *outs = cps_json_get(v, "outs"), *ind = cps_json_get(v, "indirection_ins");
    g->engine = engine ? cps_bmap_engine(engine) : CPS_ENGINE_ANY;
    if (g->engine == CPS_ENGINE_ANY)
        return cps_bctx_fail(c, "no engine with a stream");
    cps_bop op = code ? cps_bop_find(code) : CPS_BOP_NONE;
    if (op == CPS_BOP_InlineASMBytes)
        return raw_bytes(c, v, g);
    const char *isa = own ? text(own, "isa") : NULL;
    cps_brec *main = &g->r[CPS_BS_MAIN];
    main->insn = isa ? cps_isa_find_name(isa) : pick(c, op, v);
    if (!main->insn || !op)
        return cps_bctx_fail(c, "no record is known for opcode '%s'", code ? code : "");
    cps_bcursor at = {.in = ins ? ins->first : NULL,
                      .out = outs ? outs->first : NULL,
                      .indirect = ind ? ind->first : NULL};
    main->b = cps_isa_new(main->insn, c->gen);
    if (!read_record(c, main, op, g->engine, v, own, v, &at))
        return false;
    for (int side = 0; side < CPS_BS_COUNT; side++) {
        const cps_json *x = sides[side] && own ? cps_json_get(own, sides[side]) : NULL;
        cps_brec *r = &g->r[side];
        const char *name = x ? text(x, "isa") : NULL;
        if (!x)
            continue;
        r->insn = name ? cps_isa_find_name(name)
                       : cps_bmap_companion(main->insn, (cps_bside)side, CPS_INSN_NONE);
        if (!r->insn || !cps_bmap_companion(main->insn, (cps_bside)side, r->insn))
            return cps_bctx_fail(c, "'%s' has no companion there", cps_bops[op].name);
        r->b = cps_isa_new(r->insn, c->gen);
        for (unsigned i = 0; i < cps_bsame_count; i++)
            if (cps_bsames[i].format == cps_insns[r->insn].format)
                cps_isa_set(&r->b, (cps_field)cps_bsames[i].field,
                            cps_isa_get(&main->b, (cps_field)cps_bsames[i].from));
        if (!read_record(c, r, op, g->engine, v, x, x, &at))
            return false;
        if (!r->loc.file && !cps_json_get(x, "debug"))
            r->loc = main->loc;
    }
    return true;
}
