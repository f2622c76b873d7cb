/* The rules of one bundle, after the shipped validator (isa-encoding 11).
 *
 * In: 64 bytes, a generation, and the engine of the stream if known. Out: errors for confirmed and
 * strong rules, warnings for inferred ones. Rules of a field follow from its kind, rules of an
 * operand from its slot, rules of an instruction from rule.def; PE geometry has a part of its own.
 * Operands whose address or shape comes from a register are checked no further, as in the shipped
 * validator. What spans several bundles (PSUM groups, semaphore protocols) is not seen here. */
#include "codegen/isa/text.h"

#include "codegen/isa/sync_row.h"
#include "codegen/isa/target.h"

#include <stdio.h>
#include <string.h>

typedef struct checker {
    const cps_bundle *b;
    const cps_insn_row *insn;
    cps_insn id;
    cps_gen g;
    cps_engine e;
    cps_diags *d;
    cps_span at;
    unsigned first, end; // fields of the format
    bool good;
} checker;

typedef struct operand {
    cps_field f;
    const cps_field_row *r;
    cps_ap ap;
    bool fixed;      // address and shape are in the bundle
    bool psum;       // of a fixed address
    uint64_t count;  // elements per partition
    unsigned wire;   // dtype tag, 0 when none speaks for the operand
    unsigned bytes;  // of an element; 0 when unknown
} operand;

/* ---- reports ---- */

CPS_PRINTF(3, 4)
static void
report(checker *c, cps_code code, const char *fmt, ...)
{
    char text[256];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    bool error = cps_diag_rows[code].name[0] == 'E';
    c->good = c->good && !error;
    cps_error(c->d, code, c->at, "'%s': %s", c->insn->name[0] ? c->insn->name : "instruction", text);
}

// Errors for facts that are sure enough, warnings for inferred ones.
static cps_code
graded(cps_code code, unsigned sure)
{
    return sure == CPS_SURE_I ? CPS_W5516 : code;
}

static unsigned
get(const checker *c, cps_field f)
{
    return (unsigned)cps_isa_get(c->b, f);
}

/* ---- header, sync, engine ---- */

static void
header(checker *c)
{
    unsigned len = c->b->b[1];
    // QUANTIZE_MX uses the low bit of the length as its saturation switch.
    if (len != 0x10 && !(len == 0x11 && c->id == CPS_INSN_QUANTIZE_MX))
        report(c, CPS_E5502, "the length byte is 0x%02x, not 0x10", len);
    if ((unsigned)c->e < CPS_ENGINES && !(c->insn->engines & (1u << c->e)))
        report(c, CPS_E5505, "the %s engine does not run it", cps_engine_name(c->e));
}

static void
band(checker *c, const cps_sync_band *s)
{
    unsigned wait = get(c, s->wait_mode), update = get(c, s->update_mode);
    const cps_sync_row *w = cps_wait_row(wait), *u = cps_update_row(update);
    if (!w || wait == CPS_WAIT_INVALID)
        report(c, CPS_E5503, "no wait mode 0x%02x", wait);
    if (!u || update == CPS_UPDATE_INVALID)
        report(c, CPS_E5503, "no update mode 0x%02x", update);
    if ((w && w->sure == CPS_SURE_I) || (u && u->sure == CPS_SURE_I))
        report(c, CPS_W5504, "the sync mode follows the pattern of others but was never seen");
    if (!w || !u)
        return;
    bool wait_uses = w->operand != CPS_SYNC_NOTHING, then_uses = u->operand != CPS_SYNC_NOTHING;
    if (s->wait_value == s->update_value && wait_uses && then_uses)
        report(c, CPS_W5504, "wait and update share the value %u", get(c, s->wait_value));
    if (!wait_uses && get(c, s->wait_value) && !(s->wait_value == s->update_value && then_uses))
        report(c, CPS_W5504, "the sync value %u is used by neither side", get(c, s->wait_value));
}

static void
sync(checker *c)
{
    band(c, &cps_sync_bands[0]);
    if (c->insn->format != CPS_FMT_CTRL_ES)
        return;
    band(c, &cps_sync_bands[1]);
    const cps_sync_band *h = &cps_sync_bands[0], *x = &cps_sync_bands[1];
    if ((get(c, h->wait_mode) && get(c, x->wait_mode)) ||
        (get(c, h->update_mode) && get(c, x->update_mode)))
        report(c, CPS_W5504, "both bands are used for the same side");
}

/* ---- bytes and fields ---- */

static void
reserved(checker *c)
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
            report(c, sure == CPS_SURE_C ? CPS_E5506 : CPS_W5516,
                   "byte %u is reserved on %s but holds 0x%02x", i, cps_gen_name(c->g), c->b->b[i]);
            return;
        }
}

static bool
enum_has(const checker *c, unsigned e, unsigned v)
{
    for (unsigned i = cps_enums[e].first; i < cps_enums[e + 1].first; i++)
        if (cps_enumvals[i].wire == v)
            return cps_enumvals[i].gens & (1u << c->g);
    return false;
}

static void
values(checker *c)
{
    for (unsigned f = c->first; f < c->end; f++) {
        const cps_field_row *r = &cps_fields[f];
        if (!(r->gens & (1u << c->g)) || r->bits > 64)
            continue;
        unsigned v = get(c, (cps_field)f);
        bool sync_mode = r->kind == CPS_FK_ENUM &&
                         (r->arg == CPS_ENUM_WAIT_MODE || r->arg == CPS_ENUM_UPDATE_MODE);
        // Value 0 of an enum without a 0 is a field that is not in use.
        if (r->kind == CPS_FK_ENUM && !sync_mode && v && !enum_has(c, r->arg, v))
            report(c, graded(CPS_E5509, r->sure), "no %s 0x%02x on %s", r->name, v,
                   cps_gen_name(c->g));
        else if (r->kind == CPS_FK_ALU && cps_alu_class_of(v, c->g) == CPS_ALUC_NONE)
            report(c, graded(CPS_E5509, r->sure), "no operator 0x%02x on %s for %s", v,
                   cps_gen_name(c->g), r->name);
        else if (r->kind == CPS_FK_ACTFN && !cps_actfn_name(v))
            report(c, CPS_W5516, "activation function %u is not known", v);
    }
}

/* ---- operands ---- */

static operand
read_operand(const checker *c, cps_field f)
{
    operand o = {.f = f, .r = &cps_fields[f], .count = 1};
    cps_isa_get_ap(c->b, f, &o.ap);
    for (unsigned i = 0; i < o.ap.nd; i++)
        o.count = CPS_MIN(o.count * o.ap.num[i], 1ull << 40);
    o.fixed = o.r->kind == CPS_FK_TENSOR && o.ap.addr < 0x20000000u;
    o.psum = o.fixed && cps_addr_is_psum(o.ap.addr);
    if (o.r->dtype) {
        unsigned v = get(c, (cps_field)o.r->dtype);
        o.wire = o.r->part == CPS_PART_LOW ? v & 15 : o.r->part == CPS_PART_HIGH ? v >> 4 : v;
        cps_dtype t = cps_isa_dtype(o.wire);
        o.bytes = t ? cps_dtype_bytes(t) : 0;
    }
    return o;
}

static bool
is_pe(const checker *c)
{
    return c->insn->engines == CPS_ON_PE;
}

static bool
transposes(const checker *c)
{
    return c->insn->format == CPS_FMT_S3D3_MM &&
           ((c->g == CPS_V3 && get(c, CPS_F_S3D3_MM_transpose_mode)) ||
            (c->g == CPS_V4 && ((get(c, CPS_F_S3D3_MM_flags) & CPS_MM_FLAG_TRANSPOSE) ||
                                get(c, CPS_F_S3D3_MM_transpose_mode))));
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
dtype(checker *c, const operand *o)
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
        report(c, CPS_E5507, "%s cannot have dtype %s", o->r->name,
               o->bytes ? cps_dtype_name(cps_isa_dtype(o->wire)) : "of that tag");
    bool word = o->wire >= 0x08 && o->wire <= 0x0B;
    if (o->r->out && o->psum && fine && !word && !(pe_out && c->g >= CPS_V4) && !transposes(c))
        report(c, CPS_E5507, "%s is stored to PSUM in %u bytes; PSUM takes 4-byte dtypes",
               o->r->name, o->bytes);
}

static unsigned
partition_bytes(const checker *c, bool psum)
{
    for (unsigned i = 0; i < cps_target_count(); i++)
        if (cps_target_at(i)->gen == c->g) {
            const cps_target *t = cps_target_at(i);
            return (unsigned)(psum ? t->psum_banks * t->psum_bank_bytes : t->sbuf_bytes);
        }
    return 0;
}

// First and last byte of the pattern inside its partition.
static void
extent(const operand *o, int64_t *low, int64_t *high)
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
pattern(checker *c, const operand *o)
{
    bool shape_reg = o->r->kind == CPS_FK_TENSOR && (o->ap.addr >> 24 & 0x60) == 0x40;
    bool indirect = o->r->kind == CPS_FK_TENSOR && (o->ap.addr >> 24 & 0x60) == 0x20;
    if (indirect && c->g < CPS_V4)
        report(c, CPS_E5513, "%s is an indirect pattern; they exist from v4", o->r->name);
    for (unsigned i = 0; i < o->ap.nd && !shape_reg && !indirect; i++)
        if (o->ap.num[i] == 0) {
            report(c, CPS_E5513, "%s has a dimension of 0 elements", o->r->name);
            return;
        }
    if (!o->fixed)
        return;
    if (o->ap.addr >= CPS_PSUM_BASE + 128 * CPS_PSUM_STRIDE) {
        report(c, CPS_E5513, "%s: 0x%x is neither in SBUF nor in PSUM", o->r->name, o->ap.addr);
        return;
    }
    if (o->bytes > 1 && o->ap.addr % o->bytes)
        report(c, CPS_E5508, "%s starts at 0x%x, not a multiple of its %u bytes", o->r->name,
               o->ap.addr, o->bytes);
    int64_t low, high;
    unsigned limit = partition_bytes(c, o->psum);
    extent(o, &low, &high);
    if (low < 0 || high >= (int64_t)limit)
        report(c, CPS_E5513, "%s reaches byte %lld of a partition of %u", o->r->name,
               (long long)(low < 0 ? low : high), limit);
}

/* Partitions that an operand spans: the channel count, or rows and columns on the PE. */
static unsigned
span_of(const checker *c, const operand *o)
{
    const char *want = !is_pe(c) ? "ch" : o->r->out ? "num_active_cols" : "num_active_rows";
    for (unsigned f = c->first; f < c->end; f++)
        if (strcmp(cps_fields[f].name, want) == 0)
            return get(c, (cps_field)f);
    return 0;
}

static void
partitions(checker *c, const operand *o)
{
    unsigned n = span_of(c, o);
    if (!o->fixed || n == 0 || n > 128)
        return; // the counts themselves are checked once per instruction
    if (c->insn->format == CPS_FMT_S4D4_CR && o->r->out)
        n = 1; // a cross-partition reduction leaves one
    unsigned start = cps_addr_partition(o->ap.addr);
    unsigned most = start == 0 ? 128 : start == 64 ? 64 : start % 32 == 0 ? 32 : 0;
    if (most == 0)
        report(c, CPS_E5511, "%s starts at partition %u, not 0, 32, 64 or 96", o->r->name, start);
    else if (n > most)
        report(c, CPS_E5511, "%s spans %u partitions from %u, at most %u fit", o->r->name, n, start,
               most);
}

static void
memory(checker *c, const operand *o)
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
            report(c, CPS_E5512, "%s must be in %s", o->r->name, place[i].psum ? "PSUM" : "SBUF");
    if (c->e == CPS_POOL && o->psum)
        report(c, CPS_E5512, "%s is in PSUM, which the pool engine does not reach", o->r->name);
}

static void
channels(checker *c)
{
    for (unsigned f = c->first; f < c->end; f++) {
        const char *name = cps_fields[f].name;
        if (strcmp(name, "ch") && strcmp(name, "num_active_rows") && strcmp(name, "num_active_cols"))
            continue;
        unsigned n = get(c, (cps_field)f);
        if (n < 1 || n > 128)
            report(c, CPS_E5511, "%s is %u, not 1 to 128", name, n);
    }
}

static void
two_sources(checker *c, const operand *in, unsigned n)
{
    if (n < 2 || !in[0].fixed || !in[1].fixed || is_pe(c))
        return;
    unsigned a = cps_addr_partition(in[0].ap.addr) / 32, b = cps_addr_partition(in[1].ap.addr) / 32;
    if (in[0].psum && in[1].psum)
        report(c, CPS_E5512, "%s and %s are both in PSUM", in[0].r->name, in[1].r->name);
    else if (!in[0].psum && !in[1].psum && a != b)
        // The shipped predicate has no exception; the NKI documents relax it from v3.
        report(c, c->g == CPS_V2 ? CPS_E5512 : CPS_W5516,
               "%s and %s start in different groups of 32 partitions", in[0].r->name,
               in[1].r->name);
}

// Pointers to scalars: a byte offset within the partition (inferred), aligned to the dtype.
static void
pointers(checker *c)
{
    for (unsigned f = c->first; f < c->end; f++) {
        const cps_field_row *r = &cps_fields[f];
        if (r->kind != CPS_FK_IMM || !r->source)
            continue;
        unsigned src = get(c, (cps_field)r->source), v = get(c, (cps_field)f), size = 4;
        bool swapped = cps_fields[r->source].arg == CPS_ENUM_IMM_SRC_N;
        if (src != (swapped ? CPS_IMM_SRC_N_POINTER_IMMEDIATE : CPS_IMM_SRC_POINTER_IMMEDIATE))
            continue;
        if (r->dtype) {
            unsigned d = get(c, (cps_field)r->dtype);
            d = r->part == CPS_PART_LOW ? d & 15 : r->part == CPS_PART_HIGH ? d >> 4 : d;
            cps_dtype t = cps_isa_dtype(d);
            size = t ? cps_dtype_bytes(t) : 1;
        }
        if (v % size)
            report(c, CPS_E5508, "%s points to 0x%x, not a multiple of its %u bytes", r->name, v,
                   size);
        if (v >= partition_bytes(c, false))
            report(c, CPS_W5516, "%s points to 0x%x, beyond a partition", r->name, v);
    }
}

/* ---- rules of single instructions ---- */

enum {
    BOTH = 1 << CPS_ALUC_BOTH,
    BITVEC = BOTH | 1 << CPS_ALUC_BITVEC | 1 << CPS_ALUC_CRC,
    GENERAL = BOTH | 1 << CPS_ALUC_GENERAL,
    ARITH = GENERAL | 1 << CPS_ALUC_SPECIAL,
    INT = 1 << CPS_ALUC_INT
};

static void
operators(checker *c)
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
        unsigned v = get(c, (cps_field)rule[i].f);
        cps_alu_class k = cps_alu_class_of(v, c->g);
        const char *name = cps_fields[rule[i].f].name;
        if (k == CPS_ALUC_NONE)
            continue; // said already
        if (!(rule[i].classes & (1u << k)))
            report(c, CPS_E5510, "operator %s does not go with %s here", cps_alu_name(v), name);
        // Conditions of the special operators: POOL has them; rsqrt stands alone anywhere.
        else if ((k == CPS_ALUC_SPECIAL || k == CPS_ALUC_CRC || k == CPS_ALUC_INT) &&
                 v != CPS_ALU_RSQRT && c->e != CPS_POOL && c->e != CPS_ENGINE_ANY)
            report(c, CPS_E5510, "operator %s exists on the pool engine only", cps_alu_name(v));
    }
    if (c->insn->format == CPS_FMT_S3D3_TS) {
        unsigned op0 = get(c, CPS_F_S3D3_TS_op0), op1 = get(c, CPS_F_S3D3_TS_op1);
        if (op0 == CPS_ALU_BYPASS && op1 != CPS_ALU_BYPASS)
            report(c, CPS_E5510, "op0 may be bypass only when op1 is");
        if (op0 == CPS_ALU_RSQRT && op1 != CPS_ALU_BYPASS)
            report(c, CPS_E5510, "rsqrt goes with op1 bypass");
    }
}

static void
allowed(checker *c)
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
        unsigned v = get(c, (cps_field)one_of[i].f);
        if (v >= 64 || !(one_of[i].set >> v & 1))
            report(c, CPS_E5509, "%s cannot be %u here", cps_fields[one_of[i].f].name, v);
    }
    for (size_t i = 0; i < cps_countof(multiple); i++) {
        unsigned v = multiple[i].insn == c->id ? get(c, (cps_field)multiple[i].f) : 0;
        if (v % multiple[i].by)
            report(c, CPS_E5509, "%s is %u, not a multiple of %u", cps_fields[multiple[i].f].name, v,
                   multiple[i].by);
    }
}

static void
same_dtypes(checker *c)
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
        operand a = read_operand(c, (cps_field)rule[i].a), b = read_operand(c, (cps_field)rule[i].b);
        if (a.wire != b.wire)
            report(c, CPS_E5507, "%s and %s must have one dtype", a.r->name, b.r->name);
    }
}

/* ---- element counts: one function per relation of rule.def ---- */

typedef struct counted {
    checker *c;
    operand in[3], out;
    unsigned n; // inputs
    bool has_out;
} counted;

static void
differ(counted *k, const char *a, uint64_t na, const char *what, uint64_t nb)
{
    report(k->c, CPS_E5514, "%s has %llu elements, %s %llu", a, (unsigned long long)na, what,
           (unsigned long long)nb);
}

static void
count_equal(counted *k)
{
    for (unsigned i = 0; i < k->n; i++)
        if (k->in[i].count != k->out.count) {
            differ(k, k->in[i].r->name, k->in[i].count, "dst", k->out.count);
            return;
        }
}

static void
count_columns(counted *k)
{
    // Two rows share a PE in double-row mode: the source then has two elements a column.
    unsigned per = get(k->c, CPS_F_S3D3_MM_perf_opt) == CPS_PERF_OPT_MODE_DOUBLE_ROW ? 2 : 1;
    if (k->in[0].count != per * k->out.count)
        differ(k, "src", k->in[0].count, per == 2 ? "twice dst would be" : "dst",
               per * k->out.count);
}

static void
count_folded(counted *k)
{
    unsigned dim = k->c->insn->format == CPS_FMT_S4D4_PL ? get(k->c, CPS_F_S4D4_PL_pool_dim)
                                                         : get(k->c, CPS_F_S4D4_TR_op_dim);
    uint64_t kept = 1;
    for (unsigned i = dim < 2 ? 0 : dim - 1; i < k->in[0].ap.nd; i++)
        kept *= k->in[0].ap.num[i];
    if (kept != k->out.count)
        differ(k, "dst", k->out.count, "the dimensions that stay", kept);
}

static void
count_lanes(counted *k)
{
    bool all = get(k->c, CPS_F_S4D4_CR_reduce_axis) == CPS_REDUCE_AXIS_ALL;
    if (k->out.count != (all ? 1 : k->in[0].count))
        differ(k, "dst", k->out.count, "the reduction", all ? 1 : k->in[0].count);
}

static void
count_eight(counted *k)
{
    const operand *eight = k->has_out ? &k->out : &k->in[0];
    if (eight->count != 8)
        differ(k, eight->r->name, eight->count, "there are keys:", 8);
    if (k->has_out && (k->in[0].count < 8 || k->in[0].count > 16384))
        differ(k, "src", k->in[0].count, "8 are needed, at most", 16384);
}

static void
count_six(counted *k)
{
    if (k->out.count != 6)
        differ(k, "dst", k->out.count, "there are statistics:", 6);
    if (k->in[0].count > 512)
        differ(k, "src", k->in[0].count, "at most", 512);
}

static void
count_pair(counted *k)
{
    if (k->out.count != 2)
        differ(k, "dst", k->out.count, "mean and variance are", 2);
    if (k->in[0].count % 3)
        differ(k, "src", k->in[0].count, "it takes multiples of", 3);
}

static void
count_stated(counted *k)
{
    unsigned n = get(k->c, CPS_F_D4_MR_dst_element_count);
    if (n != k->out.count)
        differ(k, "dst", k->out.count, "dst_element_count says", n);
}

static void
count_one_more(counted *k)
{
    if (k->out.count != k->in[0].count + 1)
        differ(k, "dst", k->out.count, "src and the count are", k->in[0].count + 1);
}

static void
counts(counted *k)
{
    typedef void count_fn(counted *k);
    static const struct {
        uint16_t insn;
        count_fn *check;
    } rule[] = {
#define CPS_COUNTS(id, relation) {CPS_INSN_##id, count_##relation},
#include "codegen/isa/rule.def"
    };
    for (size_t i = 0; i < cps_countof(rule); i++)
        if (rule[i].insn == k->c->id)
            rule[i].check(k);
}

/* ---- PE geometry ---- */

// First partition and width of a group mask; width 0 when it is none.
static unsigned
group_width(unsigned mask, unsigned *start)
{
    for (unsigned width = 128; width >= 32; width /= 2)
        for (unsigned s = 0; s < 128; s += width)
            if (cps_isa_pe_group(s, width) == mask) {
                *start = s;
                return width;
            }
    return 0;
}

static void
group(checker *c, const char *name, unsigned mask, unsigned span, const operand *o)
{
    unsigned start, width = group_width(mask, &start);
    if (!width)
        report(c, CPS_E5515, "%s 0x%x is no group of 32, 64 or 128", name, mask);
    else if (span > width)
        report(c, CPS_E5515, "%s 0x%x has %u partitions, %u are active", name, mask, width, span);
    else if (o && o->fixed && cps_addr_partition(o->ap.addr) != start)
        report(c, CPS_E5515, "%s 0x%x starts at partition %u, %s at %u", name, mask, start,
               o->r->name, cps_addr_partition(o->ap.addr));
}

static void
stationary(checker *c, const operand *src)
{
    group(c, "row_grp", get(c, CPS_F_S3_LW_row_grp), get(c, CPS_F_S3_LW_num_active_rows), src);
    group(c, "col_grp", get(c, CPS_F_S3_LW_col_grp), get(c, CPS_F_S3_LW_num_active_cols), NULL);
}

static void
moving(checker *c, const operand *src, const operand *dst)
{
    group(c, "row_grp", get(c, CPS_F_S3D3_MM_row_grp), get(c, CPS_F_S3D3_MM_num_active_rows), src);
    group(c, "col_grp", get(c, CPS_F_S3D3_MM_col_grp), get(c, CPS_F_S3D3_MM_num_active_cols), dst);
    unsigned flags = get(c, CPS_F_S3D3_MM_psum_accumulate_flags);
    if (flags > 3 && !(c->g >= CPS_V4 && (flags == 4 || flags == 6)))
        report(c, CPS_E5515, "accumulate flags 0x%x do not exist on %s", flags, cps_gen_name(c->g));
    unsigned region = get(c, CPS_F_S3D3_MM_psum_zero_region);
    if (!dst->fixed || !dst->psum || region > 3)
        return;
    operand words = *dst;
    words.bytes = dst->bytes ? dst->bytes : 4;
    int64_t low, high, size = 2048ll << region;
    extent(&words, &low, &high);
    if (low >= 0 && low / size != high / size)
        report(c, CPS_E5515, "dst covers bytes %lld to %lld and leaves its zero region of %lld",
               (long long)low, (long long)high, (long long)size);
}

static void
pe(checker *c, const operand *in, const operand *out)
{
    bool lw = c->insn->format == CPS_FMT_S3_LW, mm = c->insn->format == CPS_FMT_S3D3_MM;
    if (!lw && !mm)
        return;
    unsigned mode = get(c, lw ? CPS_F_S3_LW_fp32_mode : CPS_F_S3D3_MM_fp32_mode);
    bool word = in->bytes == 4;
    if (word != (mode != CPS_PE_FP32MODE_NONE))
        report(c, CPS_E5515, "fp32_mode %u does not go with %u-byte data", mode, in->bytes);
    if (lw)
        stationary(c, in);
    else
        moving(c, in, out);
    // v2 crossbar: 0x10 for the whole array; other values were read from one place only.
    unsigned xbus = get(c, lw ? CPS_F_S3_LW_xbus_sel : CPS_F_S3D3_MM_xbus_sel);
    unsigned cols = get(c, lw ? CPS_F_S3_LW_col_grp : CPS_F_S3D3_MM_col_grp);
    unsigned want = cols == 0xF ? 0x10 : cols == 0x3 ? 1 : cols == 0xC ? 4 : cols;
    if (c->g == CPS_V2 && xbus != want)
        report(c, CPS_W5516, "xbus_sel is 0x%x, 0x%x goes with col_grp 0x%x", xbus, want, cols);
}

/* ---- whole ---- */

static void
operands(checker *c)
{
    counted k = {.c = c};
    bool countable = true;
    for (unsigned f = c->first; f < c->end; f++) {
        unsigned kind = cps_fields[f].kind;
        if (kind != CPS_FK_TENSOR && kind != CPS_FK_DATA4D)
            continue;
        operand o = read_operand(c, (cps_field)f);
        pattern(c, &o);
        if (kind == CPS_FK_TENSOR) {
            dtype(c, &o);
            partitions(c, &o);
            memory(c, &o);
        }
        unsigned marker = o.ap.addr >> 24 & 0x60;
        countable = countable && (kind == CPS_FK_DATA4D || marker == 0);
        if (o.r->out) {
            k.out = o;
            k.has_out = true;
        } else if (k.n < cps_countof(k.in)) {
            k.in[k.n++] = o;
        }
    }
    // IOTA's and AFFINE_SELECT's patterns are no memory operands.
    if (k.n >= 2 && k.in[0].r->kind == CPS_FK_TENSOR)
        two_sources(c, k.in, k.n);
    if (countable)
        counts(&k);
    if (is_pe(c))
        pe(c, &k.in[0], &k.out);
}

bool
cps_isa_verify(const cps_bundle *b, cps_gen g, cps_engine engine, cps_diags *d, cps_span at)
{
    cps_insn id = cps_isa_find(b->b[0], g);
    checker c = {.b = b, .id = id, .insn = &cps_insns[id], .g = g, .e = engine, .d = d, .at = at,
                 .good = true};
    if (!id) {
        cps_insn other = cps_isa_find_any(b->b[0]);
        c.insn = &cps_insns[other];
        report(&c, CPS_E5501, "opcode 0x%02x is no instruction of %s", b->b[0], cps_gen_name(g));
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
    operators(&c);
    allowed(&c);
    same_dtypes(&c);
    return c.good;
}
