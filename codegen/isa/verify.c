/* The rules of one bundle, after the checks of the shipped ISA headers.
 *
 * In: 64 bytes, a generation, and the engine of the stream if known. Out: errors for confirmed
 * and strong rules, warnings for inferred ones. Rules of a field follow from its kind, rules of
 * an operand from its slot (here), rules of an instruction from rule.def (verify_insn.c); PE
 * geometry is verify_pe.c. Operands whose address or shape comes from a register are checked no
 * further, as in the shipped validator. What spans several bundles (PSUM groups, semaphore
 * protocols) is not seen here. */
#include "codegen/isa/verify.h"

#include "codegen/isa/sync_row.h"
#include "codegen/isa/target.h"

#include <stdio.h>
#include <string.h>

/* ---- reports ---- */

void
cps_check_report(cps_checker *c, cps_code code, const char *fmt, ...)
{
    char text[256];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    bool error = cps_diag_rows[code].name[0] == 'E';
    c->good = c->good && !error;
    cps_error(c->d, code, c->at, "'%s': %s", c->insn->name[0] ? c->insn->name : "instruction",
              text);
}

// Errors for facts that are sure enough, warnings for inferred ones.
static cps_code
graded(cps_code code, unsigned sure)
{
    return sure == CPS_SURE_I ? CPS_W5516 : code;
}

/* ---- header, sync, engine ---- */

static void
header(cps_checker *c)
{
    unsigned len = c->b->b[1];
    // QUANTIZE_MX uses the low bit of the length as its saturation switch.
    if (len != 0x10 && !(len == 0x11 && c->id == CPS_INSN_QUANTIZE_MX))
        cps_check_report(c, CPS_E5502, "the length byte is 0x%02x, not 0x10", len);
    if ((unsigned)c->e < CPS_ENGINES && !(c->insn->engines & (1u << c->e)))
        cps_check_report(c, CPS_E5505, "the %s engine does not run it", cps_engine_name(c->e));
}

static void
band(cps_checker *c, const cps_sync_band *s)
{
    unsigned wait = cps_check_get(c, s->wait_mode), update = cps_check_get(c, s->update_mode);
    const cps_sync_row *w = cps_wait_row(wait), *u = cps_update_row(update);
    if (!w || wait == CPS_WAIT_INVALID)
        cps_check_report(c, CPS_E5503, "no wait mode 0x%02x", wait);
    if (!u || update == CPS_UPDATE_INVALID)
        cps_check_report(c, CPS_E5503, "no update mode 0x%02x", update);
    if ((w && w->sure == CPS_SURE_I) || (u && u->sure == CPS_SURE_I))
        cps_check_report(c, CPS_W5504,
                         "the sync mode follows the pattern of others but was never seen");
    if (!w || !u)
        return;
    bool wait_uses = w->operand != CPS_SYNC_NOTHING, then_uses = u->operand != CPS_SYNC_NOTHING;
    if (s->wait_value == s->update_value && wait_uses && then_uses)
        cps_check_report(c, CPS_W5504, "wait and update share the value %u",
                         cps_check_get(c, s->wait_value));
    if (!wait_uses && cps_check_get(c, s->wait_value) &&
        !(s->wait_value == s->update_value && then_uses))
        cps_check_report(c, CPS_W5504, "the sync value %u is used by neither side",
                         cps_check_get(c, s->wait_value));
}

static void
sync(cps_checker *c)
{
    band(c, &cps_sync_bands[0]);
    if (c->insn->format != CPS_FMT_CTRL_ES)
        return;
    band(c, &cps_sync_bands[1]);
    const cps_sync_band *h = &cps_sync_bands[0], *x = &cps_sync_bands[1];
    if ((cps_check_get(c, h->wait_mode) && cps_check_get(c, x->wait_mode)) ||
        (cps_check_get(c, h->update_mode) && cps_check_get(c, x->update_mode)))
        cps_check_report(c, CPS_W5504, "both bands are used for the same side");
}

/* ---- bytes and fields ---- */

static void
reserved(cps_checker *c)
{
    if (c->insn->format == CPS_FMT_RAW)
        return;
    unsigned sure = cps_formats[c->insn->format].sure;
    uint64_t known = 0xFFF;
    for (unsigned f = c->first; f < c->end; f++) {
        const cps_field_row *r = &cps_fields[f];
        // Formats of later generations only are checked as a whole, by the opcode.
        if (!r->gens || (r->gens & (1u << c->g)))
            known |= ((r->bits == 512 ? 0 : 1ull << (r->bits / 8u)) - 1) << r->byte;
    }
    for (unsigned i = 0; i < CPS_BUNDLE_BYTES; i++)
        if (!(known >> i & 1) && c->b->b[i]) {
            cps_check_report(c, sure == CPS_SURE_C ? CPS_E5506 : CPS_W5516,
                             "byte %u is reserved on %s but holds 0x%02x", i,
                             cps_gen_name(c->g), c->b->b[i]);
            return;
        }
}

static bool
enum_has(const cps_checker *c, unsigned e, unsigned v)
{
    for (unsigned i = cps_enums[e].first; i < cps_enums[e + 1].first; i++)
        if (cps_enumvals[i].wire == v)
            return cps_enumvals[i].gens & (1u << c->g);
    return false;
}

static void
values(cps_checker *c)
{
    for (unsigned f = c->first; f < c->end; f++) {
        const cps_field_row *r = &cps_fields[f];
        if (!(r->gens & (1u << c->g)) || r->bits > 64)
            continue;
        unsigned v = cps_check_get(c, (cps_field)f);
        bool sync_mode = r->kind == CPS_FK_ENUM &&
                         (r->arg == CPS_ENUM_WAIT_MODE || r->arg == CPS_ENUM_UPDATE_MODE);
        // Value 0 of an enum without a 0 is a field that is not in use.
        if (r->kind == CPS_FK_ENUM && !sync_mode && v && !enum_has(c, r->arg, v))
            cps_check_report(c, graded(CPS_E5509, r->sure), "no %s 0x%02x on %s", r->name, v,
                             cps_gen_name(c->g));
        else if (r->kind == CPS_FK_ALU && cps_alu_class_of(v, c->g) == CPS_ALUC_NONE)
            cps_check_report(c, graded(CPS_E5509, r->sure), "no operator 0x%02x on %s for %s",
                             v, cps_gen_name(c->g), r->name);
        else if (r->kind == CPS_FK_ACTFN && !cps_actfn_name(v))
            cps_check_report(c, CPS_W5516, "activation function %u is not known", v);
    }
}

/* ---- operands ---- */

cps_operand
cps_check_operand(const cps_checker *c, cps_field f)
{
    cps_operand o = {.f = f, .r = &cps_fields[f], .count = 1};
    cps_isa_get_ap(c->b, f, &o.ap);
    for (unsigned i = 0; i < o.ap.nd; i++)
        o.count = CPS_MIN(o.count * o.ap.num[i], 1ull << 40);
    o.fixed = o.r->kind == CPS_FK_TENSOR && o.ap.addr < 0x20000000u;
    o.psum = o.fixed && cps_addr_is_psum(o.ap.addr);
    if (o.r->dtype) {
        unsigned v = cps_check_get(c, (cps_field)o.r->dtype);
        o.wire = o.r->part == CPS_PART_LOW ? v & 15 : o.r->part == CPS_PART_HIGH ? v >> 4 : v;
        cps_dtype t = cps_isa_dtype(o.wire);
        o.bytes = t ? cps_dtype_bytes(t) : 0;
    }
    return o;
}

static bool
is_pe(const cps_checker *c)
{
    return c->insn->engines == CPS_ON_PE;
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
    bool pe_out = is_pe(c) && o->r->out;
    if (pe_out && o->wire == 0)
        return; // the output of a matmul is fp32 by default
    bool wide = o->bytes == 8, packed = o->wire == 0x10;
    bool fine = o->bytes && (!wide || is_wide(c->id)) && (!packed || c->g >= CPS_V4) &&
                (o->wire != 0x0B || o->r->out);
    if (!fine)
        cps_check_report(c, CPS_E5507, "%s cannot have dtype %s", o->r->name,
                         o->bytes ? cps_dtype_name(cps_isa_dtype(o->wire)) : "of that tag");
    bool word = o->wire >= 0x08 && o->wire <= 0x0B;
    if (o->r->out && o->psum && fine && !word && !(pe_out && c->g >= CPS_V4) && !transposes(c))
        cps_check_report(c, CPS_E5507,
                         "%s is stored to PSUM in %u bytes; PSUM takes 4-byte dtypes",
                         o->r->name, o->bytes);
}

static unsigned
partition_bytes(const cps_checker *c, bool psum)
{
    for (unsigned i = 0; i < cps_target_count(); i++)
        if (cps_target_at(i)->gen == c->g) {
            const cps_target *t = cps_target_at(i);
            return (unsigned)(psum ? t->psum_banks * t->psum_bank_bytes : t->sbuf_bytes);
        }
    return 0;
}

// First and last byte of the pattern inside its partition.
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

static void
pattern(cps_checker *c, const cps_operand *o)
{
    bool shape_reg = o->r->kind == CPS_FK_TENSOR && (o->ap.addr >> 24 & 0x60) == 0x40;
    bool indirect = o->r->kind == CPS_FK_TENSOR && (o->ap.addr >> 24 & 0x60) == 0x20;
    if (indirect && c->g < CPS_V4)
        cps_check_report(c, CPS_E5513, "%s is an indirect pattern; they exist from v4",
                         o->r->name);
    for (unsigned i = 0; i < o->ap.nd && !shape_reg && !indirect; i++)
        if (o->ap.num[i] == 0) {
            cps_check_report(c, CPS_E5513, "%s has a dimension of 0 elements", o->r->name);
            return;
        }
    if (!o->fixed)
        return;
    if (o->ap.addr >= CPS_PSUM_BASE + 128 * CPS_PSUM_STRIDE) {
        cps_check_report(c, CPS_E5513, "%s: 0x%x is neither in SBUF nor in PSUM", o->r->name,
                         o->ap.addr);
        return;
    }
    if (o->bytes > 1 && o->ap.addr % o->bytes)
        cps_check_report(c, CPS_E5508, "%s starts at 0x%x, not a multiple of its %u bytes",
                         o->r->name, o->ap.addr, o->bytes);
    int64_t low, high;
    unsigned limit = partition_bytes(c, o->psum);
    cps_check_extent(o, &low, &high);
    if (low < 0 || high >= (int64_t)limit)
        cps_check_report(c, CPS_E5513, "%s reaches byte %lld of a partition of %u", o->r->name,
                         (long long)(low < 0 ? low : high), limit);
}

/* Partitions that an cps_operand spans: the channel count, or rows and columns on the PE. */
static unsigned
span_of(const cps_checker *c, const cps_operand *o)
{
    const char *want = !is_pe(c) ? "ch" : o->r->out ? "num_active_cols" : "num_active_rows";
    for (unsigned f = c->first; f < c->end; f++)
        if (strcmp(cps_fields[f].name, want) == 0)
            return cps_check_get(c, (cps_field)f);
    return 0;
}

static void
partitions(cps_checker *c, const cps_operand *o)
{
    unsigned n = span_of(c, o);
    if (!o->fixed || n == 0 || n > 128)
        return; // the counts themselves are checked once per instruction
    if (c->insn->format == CPS_FMT_S4D4_CR && o->r->out)
        n = 1; // a cross-partition reduction leaves one
    unsigned start = cps_addr_partition(o->ap.addr);
    unsigned most = start == 0 ? 128 : start == 64 ? 64 : start % 32 == 0 ? 32 : 0;
    if (most == 0)
        cps_check_report(c, CPS_E5511, "%s starts at partition %u, not 0, 32, 64 or 96",
                         o->r->name, start);
    else if (n > most)
        cps_check_report(c, CPS_E5511, "%s spans %u partitions from %u, at most %u fit",
                         o->r->name, n, start, most);
}

static void
memory(cps_checker *c, const cps_operand *o)
{
    static const struct {
        uint16_t f;
        bool psum;
    } place[] = {
        {CPS_F_NONE, false},
#define SBUF false
#define PSUM true
#define CPS_PLACE(fmt, id, where) {CPS_F_##fmt##_##id, where},
#include "codegen/isa/rule.def"
#undef SBUF
#undef PSUM
    };
    if (!o->fixed)
        return;
    for (size_t i = 1; i < cps_countof(place); i++)
        if (place[i].f == o->f && place[i].psum != o->psum)
            cps_check_report(c, CPS_E5512, "%s must be in %s", o->r->name,
                             place[i].psum ? "PSUM" : "SBUF");
    if (c->e == CPS_POOL && o->psum)
        cps_check_report(c, CPS_E5512, "%s is in PSUM, which the pool engine does not reach",
                         o->r->name);
}

static void
channels(cps_checker *c)
{
    for (unsigned f = c->first; f < c->end; f++) {
        const char *name = cps_fields[f].name;
        if (strcmp(name, "ch") && strcmp(name, "num_active_rows") &&
            strcmp(name, "num_active_cols"))
            continue;
        unsigned n = cps_check_get(c, (cps_field)f);
        if (n < 1 || n > 128)
            cps_check_report(c, CPS_E5511, "%s is %u, not 1 to 128", name, n);
    }
}

static void
two_sources(cps_checker *c, const cps_operand *in, unsigned n)
{
    if (n < 2 || !in[0].fixed || !in[1].fixed || is_pe(c))
        return;
    unsigned a = cps_addr_partition(in[0].ap.addr) / 32,
             b = cps_addr_partition(in[1].ap.addr) / 32;
    if (in[0].psum && in[1].psum)
        cps_check_report(c, CPS_E5512, "%s and %s are both in PSUM", in[0].r->name,
                         in[1].r->name);
    else if (!in[0].psum && !in[1].psum && a != b)
        // The shipped predicate has no exception; the NKI documents relax it from v3.
        cps_check_report(c, c->g == CPS_V2 ? CPS_E5512 : CPS_W5516,
                         "%s and %s start in different groups of 32 partitions", in[0].r->name,
                         in[1].r->name);
}

// Pointers to scalars: a byte offset within the partition (inferred), aligned to the dtype.
static void
pointers(cps_checker *c)
{
    for (unsigned f = c->first; f < c->end; f++) {
        const cps_field_row *r = &cps_fields[f];
        if (r->kind != CPS_FK_IMM || !r->source)
            continue;
        unsigned src = cps_check_get(c, (cps_field)r->source),
                 v = cps_check_get(c, (cps_field)f), size = 4;
        bool swapped = cps_fields[r->source].arg == CPS_ENUM_IMM_SRC_N;
        if (src != (swapped ? CPS_IMM_SRC_N_POINTER_IMMEDIATE : CPS_IMM_SRC_POINTER_IMMEDIATE))
            continue;
        if (r->dtype) {
            unsigned d = cps_check_get(c, (cps_field)r->dtype);
            d = r->part == CPS_PART_LOW ? d & 15 : r->part == CPS_PART_HIGH ? d >> 4 : d;
            cps_dtype t = cps_isa_dtype(d);
            size = t ? cps_dtype_bytes(t) : 1;
        }
        if (v % size)
            cps_check_report(c, CPS_E5508, "%s points to 0x%x, not a multiple of its %u bytes",
                             r->name, v, size);
        if (v >= partition_bytes(c, false))
            cps_check_report(c, CPS_W5516, "%s points to 0x%x, beyond a partition", r->name, v);
    }
}

/* ---- whole ---- */

static void
operands(cps_checker *c)
{
    cps_operands all = {.known = true};
    for (unsigned f = c->first; f < c->end; f++) {
        unsigned kind = cps_fields[f].kind;
        if (kind != CPS_FK_TENSOR && kind != CPS_FK_DATA4D)
            continue;
        cps_operand o = cps_check_operand(c, (cps_field)f);
        pattern(c, &o);
        if (kind == CPS_FK_TENSOR) {
            dtype(c, &o);
            partitions(c, &o);
            memory(c, &o);
            all.known = all.known && (o.ap.addr >> 24 & 0x60) == 0;
        }
        if (o.r->out) {
            all.out = o;
            all.has_out = true;
        } else if (all.n < cps_countof(all.in)) {
            all.in[all.n++] = o;
        }
    }
    // IOTA's and AFFINE_SELECT's patterns are no memory operands.
    if (all.n >= 2 && all.in[0].r->kind == CPS_FK_TENSOR)
        two_sources(c, all.in, all.n);
    cps_check_insn(c, &all);
    cps_check_pe(c, &all);
}

bool
cps_isa_verify(const cps_bundle *b, cps_gen g, cps_engine engine, cps_diags *d, cps_span at)
{
    cps_insn id = cps_isa_find(b->b[0], g);
    cps_checker c = {.b = b,
                     .id = id,
                     .insn = &cps_insns[id],
                     .g = g,
                     .e = engine,
                     .d = d,
                     .at = at,
                     .good = true};
    if (!id) {
        cps_insn other = cps_isa_find_any(b->b[0]);
        c.insn = &cps_insns[other];
        cps_check_report(&c, CPS_E5501, "opcode 0x%02x is no instruction of %s", b->b[0],
                         cps_gen_name(g));
        return false;
    }
    c.first = cps_formats[c.insn->format].first;
    c.end = cps_formats[c.insn->format + 1].first;
    header(&c);
    sync(&c);
    reserved(&c);
    values(&c);
    channels(&c);
    operands(&c);
    pointers(&c);
    return c.good;
}
