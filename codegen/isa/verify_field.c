/* What every field of a kind and every pattern must keep to, whatever the instruction: dtypes
 * and alignment, values, partitions and memories, bounds. */
#include "codegen/isa/target.h"
#include "codegen/isa/verify.h"

/* ---- operands ---- */

unsigned
cps_check_wire(const cps_checker *c, const cps_field_row *r)
{
    if (!r->dtype)
        return 0;
    unsigned v = cps_check_get(c, (cps_field)r->dtype);
    return r->part == CPS_PART_LOW ? v & 15 : r->part == CPS_PART_HIGH ? v >> 4 : v;
}

static void
read_operand(const cps_checker *c, unsigned f, cps_operand *o)
{
    const cps_field_row *r = &cps_fields[f];
    *o = (cps_operand){.f = (cps_field)f, .r = r, .count = 1, .tensor = true};
    const uint8_t *p = c->b->b + r->byte;
    if (r->kind == CPS_FK_MXMEM) {
        o->ap.addr =
            (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
        o->count = (unsigned)(p[8] | p[9] << 8);
    } else {
        cps_isa_get_ap(c->b, (cps_field)f, &o->ap);
        for (unsigned i = 0; i < o->ap.nd; i++)
            o->count = CPS_MIN(o->count * o->ap.num[i], 1ull << 40);
        o->tensor = r->kind == CPS_FK_TENSOR;
    }
    o->fixed = o->tensor && o->ap.addr <= CPS_ADDR_BITS;
    o->psum = o->fixed && cps_addr_is_psum(o->ap.addr);
    o->wire = cps_check_wire(c, r);
    cps_dtype t = cps_isa_dtype(o->wire);
    o->bytes = t ? cps_dtype_bytes(t) : 0;
}

void
cps_check_operands(const cps_checker *c, cps_operands *o)
{
    o->n = o->ins = 0;
    o->out = NULL;
    o->known = true;
    for (unsigned f = c->first; f < c->end; f++) {
        unsigned kind = cps_fields[f].kind;
        if ((kind != CPS_FK_TENSOR && kind != CPS_FK_DATA4D && kind != CPS_FK_MXMEM) ||
            o->n == cps_countof(o->v) || !cps_isa_there(c->b, &cps_fields[f]))
            continue;
        cps_operand *x = &o->v[o->n++];
        read_operand(c, f, x);
        if (x->tensor && (x->ap.addr & (CPS_ADDR_INDEX | CPS_ADDR_SHAPE)))
            o->known = false;
        if (x->r->out)
            o->out = x;
        else if (o->ins < cps_countof(o->in))
            o->in[o->ins++] = x;
    }
}

const cps_operand *
cps_check_find(const cps_operands *o, unsigned f)
{
    for (unsigned i = 0; i < o->n; i++)
        if ((unsigned)o->v[i].f == f)
            return &o->v[i];
    return NULL;
}

static bool
is_pe(const cps_checker *c)
{
    return c->insn->engines == CPS_ON_PE;
}

/* ---- step 5: dtypes and alignment ---- */

static bool
is_wide(cps_insn i)
{
    switch ((unsigned)i) {
#define CPS_WIDE(id) case CPS_INSN_##id:
#include "codegen/isa/rule.def"
        return true;
    }
    return false;
}

static void
dtype(cps_checker *c, const cps_operand *o)
{
    if (!o->r->dtype || !(cps_fields[o->r->dtype].gens & (1u << c->g)))
        return;
    if (is_pe(c) && o->r->out && o->wire == 0)
        return; // the output of a matmul is fp32 by default
    bool wide = o->bytes == 8, packed = o->wire == 0x10;
    bool fine = o->bytes && (!wide || is_wide(c->id)) && (!packed || c->g >= CPS_V4) &&
                (o->wire != 0x0B || o->r->out);
    if (!fine)
        cps_check_report_as(c, CPS_RULE_DTYPE, cps_fields[o->r->dtype].sure,
                            "%s cannot have dtype %s", o->r->name,
                            o->bytes ? cps_dtype_name(cps_isa_dtype(o->wire)) : "of that tag");
}

// Pointers to scalars: a byte offset within the partition (inferred), aligned to the dtype.
static unsigned
pointer(const cps_checker *c, const cps_field_row *r, unsigned *size)
{
    bool swapped = cps_fields[r->source].arg == CPS_ENUM_IMM_SRC_N;
    if (cps_check_get(c, (cps_field)r->source) !=
        (swapped ? CPS_IMM_SRC_N_POINTER_IMMEDIATE : CPS_IMM_SRC_POINTER_IMMEDIATE))
        return 0;
    cps_dtype t = cps_isa_dtype(cps_check_wire(c, r));
    *size = !r->dtype ? 4 : t ? cps_dtype_bytes(t) : 1;
    return cps_check_get(c, (cps_field)(r - cps_fields));
}

void
cps_check_dtypes(cps_checker *c, const cps_operands *o)
{
    unsigned size;
    for (unsigned i = 0; i < o->n; i++)
        if (o->v[i].tensor)
            dtype(c, &o->v[i]);
    for (unsigned i = 0; i < o->n; i++) {
        const cps_operand *x = &o->v[i];
        // MX data are 4-byte units, 2-byte ones for the 4-bit type.
        unsigned bytes = x->r->kind != CPS_FK_MXMEM ? x->bytes : x->wire == 0x10 ? 2 : 4;
        if (x->fixed && bytes > 1 && x->ap.addr % bytes)
            cps_check_report(c, CPS_RULE_ALIGN,
                             "%s starts at 0x%x, not a multiple of its %u bytes", x->r->name,
                             x->ap.addr, bytes);
    }
    for (unsigned f = c->first; f < c->end; f++) {
        const cps_field_row *r = &cps_fields[f];
        if (r->kind != CPS_FK_IMM || !r->source)
            continue;
        unsigned v = pointer(c, r, &size);
        if (v && v % size)
            cps_check_report(c, CPS_RULE_POINTER,
                             "%s points to 0x%x, not a multiple of its %u bytes", r->name, v,
                             size);
    }
}

/* ---- step 6: values ---- */

static bool
enum_has(const cps_checker *c, unsigned e, unsigned v)
{
    for (unsigned i = cps_enums[e].first; i < cps_enums[e + 1].first; i++)
        if (cps_enumvals[i].wire == v)
            return cps_enumvals[i].gens & (1u << c->g);
    return false;
}

static unsigned
known_bits(const cps_checker *c, unsigned e)
{
    unsigned known = 0;
    for (unsigned i = cps_enums[e].first; i < cps_enums[e + 1].first; i++)
        if (cps_enumvals[i].gens & (1u << c->g))
            known |= cps_enumvals[i].wire;
    return known;
}

void
cps_check_values(cps_checker *c)
{
    for (unsigned f = c->first; f < c->end; f++) {
        const cps_field_row *r = &cps_fields[f];
        if (!(r->gens & (1u << c->g)) || r->bits != 8 || !cps_isa_there(c->b, r))
            continue;
        unsigned v = c->b->b[r->byte];
        switch (r->kind) {
        case CPS_FK_ENUM:
            // Value 0 of an enum without a 0 is a field that is not in use; step 2 saw the
            // modes.
            if (v && r->arg != CPS_ENUM_WAIT_MODE && r->arg != CPS_ENUM_UPDATE_MODE &&
                !enum_has(c, r->arg, v))
                cps_check_report_as(c, CPS_RULE_ENUM, r->sure, "no %s 0x%02x on %s", r->name, v,
                                    cps_gen_name(c->g));
            break;
        case CPS_FK_FLAGS:
            // What the PE makes of accumulate flags is step 9.
            if (r->arg != CPS_ENUM_PSUM_ACCUMULATE && (v & ~known_bits(c, r->arg)))
                cps_check_report_as(c, CPS_RULE_FLAGS, r->sure, "%s 0x%02x has unknown bits",
                                    r->name, v);
            break;
        case CPS_FK_ALU:
            if (cps_alu_class_of(v, c->g) == CPS_ALUC_NONE)
                cps_check_report_as(c, CPS_RULE_OPERATOR, r->sure,
                                    "no operator 0x%02x on %s for %s", v, cps_gen_name(c->g),
                                    r->name);
            break;
        case CPS_FK_ACTFN:
            if (!cps_actfn_name(v))
                cps_check_report(c, CPS_RULE_FUNCTION, "activation function %u is not known",
                                 v);
            break;
        default:
            break;
        }
    }
}

/* ---- step 7: partitions and memories ---- */

static bool
named(unsigned f, const char *name)
{
    const char *s = cps_fields[f].name;
    while (*s && *s == *name)
        s++, name++;
    return *s == *name;
}

/* Partitions that an operand spans: the channel count, or rows and columns on the PE. */
static unsigned
span_of(const cps_checker *c, const cps_operand *o)
{
    const char *want = !is_pe(c) ? "ch" : o->r->out ? "num_active_cols" : "num_active_rows";
    for (unsigned f = c->first; f < c->end; f++)
        if (named(f, want))
            return cps_check_get(c, (cps_field)f);
    return 0;
}

static void
partitions(cps_checker *c, const cps_operand *o)
{
    unsigned n = span_of(c, o);
    if (!o->fixed || o->ap.addr >= CPS_PSUM_END || n == 0 || n > 128)
        return; // the counts themselves are checked once per instruction
    if (c->insn->format == CPS_FMT_S4D4_CR && o->r->out)
        n = 1; // a cross-partition reduction leaves one
    unsigned start = cps_addr_partition(o->ap.addr);
    unsigned most = start == 0 ? 128 : start == 64 ? 64 : start % 32 == 0 ? 32 : 0;
    if (most == 0)
        cps_check_report(c, CPS_RULE_START, "%s starts at partition %u, not 0, 32, 64 or 96",
                         o->r->name, start);
    else if (n > most)
        cps_check_report(c, CPS_RULE_START, "%s spans %u partitions from %u, at most %u fit",
                         o->r->name, n, start, most);
}

static bool
transposes(const cps_checker *c)
{
    return c->insn->format == CPS_FMT_S3D3_MM &&
           ((c->g == CPS_V3 && cps_check_get(c, CPS_F_S3D3_MM_transpose_mode)) ||
            (c->g == CPS_V4 &&
             ((cps_check_get(c, CPS_F_S3D3_MM_flags) & CPS_MM_FLAG_TRANSPOSE) ||
              cps_check_get(c, CPS_F_S3D3_MM_transpose_mode))));
}

static void
psum(cps_checker *c, const cps_operand *o)
{
    if (!o->psum)
        return;
    if (c->e == CPS_POOL)
        cps_check_report(c, CPS_RULE_POOL_PSUM,
                         "%s is in PSUM, which the pool engine does not reach", o->r->name);
    bool word = o->wire == 0 || (o->wire >= 0x08 && o->wire <= 0x0B);
    if (o->r->out && !word && !(is_pe(c) && c->g >= CPS_V4) && !transposes(c))
        cps_check_report(c, CPS_RULE_PSUM_STORE,
                         "%s is stored to PSUM in %u bytes; PSUM takes 4-byte dtypes",
                         o->r->name, o->bytes);
}

static void
two_sources(cps_checker *c, const cps_operands *o)
{
    if (o->ins < 2 || !o->in[0]->fixed || !o->in[1]->fixed || is_pe(c))
        return;
    const cps_operand *x = o->in[0], *y = o->in[1];
    unsigned a = cps_addr_partition(x->ap.addr) / 32, b = cps_addr_partition(y->ap.addr) / 32;
    if (x->psum && y->psum)
        cps_check_report(c, CPS_RULE_TWO_PSUM, "%s and %s are both in PSUM", x->r->name,
                         y->r->name);
    else if (!x->psum && !y->psum && a != b)
        // The shipped predicate has no exception; the NKI documents relax it from v3.
        cps_check_report_as(c, CPS_RULE_TWO_GROUPS, c->g == CPS_V2 ? CPS_SURE_C : CPS_SURE_I,
                            "%s and %s start in different groups of 32 partitions", x->r->name,
                            y->r->name);
}

void
cps_check_partitions(cps_checker *c, const cps_operands *o)
{
    unsigned size;
    for (unsigned f = c->first; f < c->end; f++) {
        char first = cps_fields[f].name[0];
        if (first != 'c' && first != 'n')
            continue;
        if (!named(f, "ch") && !named(f, "num_active_rows") && !named(f, "num_active_cols"))
            continue;
        unsigned n = cps_check_get(c, (cps_field)f);
        if (n < 1 || n > 128)
            cps_check_report(c, CPS_RULE_CHANNELS, "%s is %u, not 1 to 128", cps_fields[f].name,
                             n);
    }
    for (unsigned i = 0; i < o->n; i++)
        partitions(c, &o->v[i]);
    for (unsigned i = 0; i < o->n; i++)
        psum(c, &o->v[i]);
    two_sources(c, o);
    for (unsigned f = c->first; f < c->end; f++) {
        const cps_field_row *r = &cps_fields[f];
        if (r->kind == CPS_FK_IMM && r->source) {
            unsigned v = pointer(c, r, &size);
            if (v >= cps_check_partition(c, false))
                cps_check_report(c, CPS_RULE_POINTER_END,
                                 "%s points to 0x%x, beyond a partition", r->name, v);
        }
    }
}

/* ---- step 8: patterns ---- */

unsigned
cps_check_partition(const cps_checker *c, bool psum)
{
    for (unsigned i = 0; i < cps_target_count(); i++)
        if (cps_target_at(i)->gen == c->g) {
            const cps_target *t = cps_target_at(i);
            return (unsigned)(psum ? t->psum_banks * t->psum_bank_bytes : t->sbuf_bytes);
        }
    return 0;
}

void
cps_check_extent(const cps_operand *o, int64_t *low, int64_t *high)
{
    unsigned size = o->bytes ? o->bytes : 1;
    *low = *high = cps_addr_byte(o->ap.addr);
    for (unsigned i = 0; i < o->ap.nd; i++) {
        int64_t reach = (int64_t)o->ap.step[i] * (o->ap.num[i] ? o->ap.num[i] - 1 : 0) * size;
        *(reach < 0 ? low : high) += reach;
    }
    *high += size - 1;
}

static uint32_t
word(const uint8_t *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

// An index address and the data it leads to; MX patterns say their counts elsewhere.
static void
indirect(cps_checker *c, const cps_operand *o)
{
    const uint8_t *p = c->b->b + o->r->byte;
    uint32_t index = word(p), data = word(p + 4);
    bool mx = o->r->kind == CPS_FK_MXMEM;
    if (c->g < CPS_V4)
        cps_check_report(c, CPS_RULE_INDIRECT, "%s is an indirect pattern; they exist from v4",
                         o->r->name);
    if (o->r->bits < 96)
        cps_check_report(c, CPS_RULE_INDIRECT, "%s has no room for an indirect pattern",
                         o->r->name);
    else if (!mx && !(p[8] | p[9]))
        cps_check_report(c, CPS_RULE_INDIRECT, "%s has no indices", o->r->name);
    else if (data <= CPS_ADDR_BITS && data >= CPS_PSUM_END)
        cps_check_report(c, CPS_RULE_SPACE, "%s: 0x%x is neither in SBUF nor in PSUM",
                         o->r->name, data);
    uint32_t at = index & CPS_ADDR_BITS;
    if (!(index & CPS_ADDR_REG) &&
        (at >= CPS_PSUM_BASE || cps_addr_partition(at) % 32 || at % 2))
        cps_check_report(
            c, CPS_RULE_INDEX_START,
            "the indices of %s start at 0x%x, not at a group of partitions in SBUF", o->r->name,
            at);
}

static void
mx(cps_checker *c, const cps_operand *o)
{
    const uint8_t *p = c->b->b + o->r->byte;
    bool by_index = cps_addr_is_indirect(o->ap.addr), shape = o->ap.addr & CPS_ADDR_SHAPE;
    p += by_index ? 4 : 0;
    uint32_t scale = word(p + 4);
    unsigned count = (unsigned)(p[8] | p[9] << 8), group = p[11];
    if (!count && !shape)
        cps_check_report(c, CPS_RULE_MX_PATTERN, "%s has no elements", o->r->name);
    if (by_index ? p[10] : p[10] != 1 && p[10] != 0xFF)
        cps_check_report(c, CPS_RULE_MX_PATTERN, "%s has a step of %d", o->r->name,
                         (int8_t)p[10]);
    if (scale <= CPS_ADDR_BITS && scale >= CPS_PSUM_BASE)
        cps_check_report(c, CPS_RULE_MX_PATTERN, "the scales of %s are not in SBUF",
                         o->r->name);
    if (group % 4 || group > 15)
        cps_check_report(c, CPS_RULE_MX_PATTERN, "the scales of %s start at partition %u",
                         o->r->name, group);
    if (!by_index && word(p + 12))
        cps_check_report(c, CPS_RULE_MX_PATTERN, "the end of %s is reserved", o->r->name);
}

static void
pattern(cps_checker *c, const cps_operand *o)
{
    for (unsigned i = 0; i < o->ap.nd; i++)
        if (o->ap.num[i] == 0) {
            cps_check_report(c, CPS_RULE_DIMENSION, "%s has a dimension of 0 elements",
                             o->r->name);
            return;
        }
    if (!o->fixed)
        return;
    int64_t low, high;
    unsigned limit = cps_check_partition(c, o->psum);
    cps_check_extent(o, &low, &high);
    if (low < 0 || high >= (int64_t)limit)
        cps_check_report(c, CPS_RULE_BOUNDS, "%s reaches byte %lld of a partition of %u",
                         o->r->name, (long long)(low < 0 ? low : high), limit);
}

void
cps_check_patterns(cps_checker *c, const cps_operands *o)
{
    for (unsigned i = 0; i < o->n; i++) {
        const cps_operand *x = &o->v[i];
        if (x->tensor && cps_addr_is_indirect(x->ap.addr))
            indirect(c, x);
        if (x->r->kind == CPS_FK_MXMEM)
            mx(c, x);
        if (x->fixed && x->ap.addr >= CPS_PSUM_END)
            cps_check_report(c, CPS_RULE_SPACE, "%s: 0x%x is neither in SBUF nor in PSUM",
                             x->r->name, x->ap.addr);
        else if (!(x->tensor && (x->ap.addr & (CPS_ADDR_SHAPE | CPS_ADDR_INDEX))))
            pattern(c, x);
    }
}
