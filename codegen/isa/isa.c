/* The tables made from the rows, and access to single fields.
 *
 * In: insn.def and the other .def files. Out: constant arrays and lookups over them. Nothing
 * here mentions an instruction by name. Rows of one format (one enum) are contiguous, which the
 * first/end enumerators below rely on and check.c confirms. */
#include "codegen/isa/isa.h"

#include "codegen/isa/timing.h"

#include <string.h>
#include <strings.h>

/* ---- fields ---- */

// A slot's shape as kind, dimensions and bits.
// clang-format off
enum {
    SHAPE_KIND_T1 = CPS_FK_TENSOR, SHAPE_DIMS_T1 = 1, SHAPE_BITS_T1 = 64,
    SHAPE_KIND_T2 = CPS_FK_TENSOR, SHAPE_DIMS_T2 = 2, SHAPE_BITS_T2 = 96,
    SHAPE_KIND_T3 = CPS_FK_TENSOR, SHAPE_DIMS_T3 = 3, SHAPE_BITS_T3 = 128,
    SHAPE_KIND_T4 = CPS_FK_TENSOR, SHAPE_DIMS_T4 = 4, SHAPE_BITS_T4 = 160,
    SHAPE_KIND_D4 = CPS_FK_DATA4D, SHAPE_DIMS_D4 = 4, SHAPE_BITS_D4 = 160,
    SHAPE_KIND_MX = CPS_FK_MXMEM,  SHAPE_DIMS_MX = 1, SHAPE_BITS_MX = 128,
    DIR_IN = 0,
    DIR_OUT = 1
};
// clang-format on

// TYPED, SOURCE and CONST rows fill further members of rows already named, some of them twice.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Woverride-init"
const cps_field_row cps_fields[CPS_FIELDS] = {
    [CPS_F_NONE] = {.name = ""},
#define CPS_FIELD(fmt, id, at, len, k, a, in, s)                                               \
    [CPS_F_##fmt##_##id] = {.name = #id,                                                       \
                            .label = " " #id "=",                                              \
                            .label_n = sizeof " " #id "=" - 1,                                 \
                            .format = CPS_FMT_##fmt,                                           \
                            .byte = at,                                                        \
                            .bits = len,                                                       \
                            .kind = CPS_FK_##k,                                                \
                            .arg = a,                                                          \
                            .gens = CPS_IN_##in,                                               \
                            .sure = CPS_SURE_##s},
#define CPS_SLOT(fmt, id, at, shape, dir, in, s)                                               \
    [CPS_F_##fmt##_##id] = {.name = #id,                                                       \
                            .label = " " #id "=",                                              \
                            .label_n = sizeof " " #id "=" - 1,                                 \
                            .format = CPS_FMT_##fmt,                                           \
                            .byte = at,                                                        \
                            .bits = SHAPE_BITS_##shape,                                        \
                            .kind = SHAPE_KIND_##shape,                                        \
                            .arg = SHAPE_DIMS_##shape,                                         \
                            .out = DIR_##dir,                                                  \
                            .gens = CPS_IN_##in,                                               \
                            .sure = CPS_SURE_##s},
#include "codegen/isa/insn.def"
#define CPS_TYPED(fmt, id, by, which)                                                          \
    [CPS_F_##fmt##_##id].dtype = CPS_F_##fmt##_##by,                                           \
    [CPS_F_##fmt##_##id].part = CPS_PART_##which, [CPS_F_##fmt##_##by].implied = 1,
#define CPS_SOURCE(fmt, id, by)                                                                \
    [CPS_F_##fmt##_##id].source = CPS_F_##fmt##_##by, [CPS_F_##fmt##_##by].implied = 1,
#define CPS_CONST(fmt, id, v) [CPS_F_##fmt##_##id].dflt = v,
#define CPS_WHEN(fmt, id, by, is)                                                              \
    [CPS_F_##fmt##_##id].when = CPS_F_##fmt##_##by, [CPS_F_##fmt##_##id].when_is = is,
#include "codegen/isa/insn.def"
};
#pragma GCC diagnostic pop

/* ---- formats: first_X is the number of the first field of X ---- */

enum {
    field_zero = CPS_F_NONE,
#define CPS_FORMAT(name, ...) first_##name, before_##name = first_##name - 1,
#define CPS_FIELD(fmt, id, ...) at_##fmt##_##id,
#define CPS_SLOT(fmt, id, ...) at_##fmt##_##id,
#include "codegen/isa/insn.def"
};

const cps_format_row cps_formats[CPS_FORMATS + 1] = {
#define CPS_FORMAT(id, s, from, text)                                                          \
    [CPS_FMT_##id] = {                                                                         \
        .name = #id, .source = from, .doc = text, .first = first_##id, .sure = CPS_SURE_##s},
#include "codegen/isa/insn.def"
    [CPS_FORMATS] = {.name = "", .first = CPS_FIELDS},
};

/* ---- enumerated values ---- */

enum {
#define CPS_ENUM(name, ...) value_##name, value_before_##name = value_##name - 1,
#define CPS_ENUMVAL(e, id, ...) value_##e##_##id,
#include "codegen/isa/insn.def"
    value_end
};

const cps_enumval_row cps_enumvals[] = {
#define CPS_ENUMVAL(e, id, w, in) {#id, w, CPS_IN_##in},
#include "codegen/isa/insn.def"
};

const cps_enum_row cps_enums[CPS_ENUMS + 1] = {
#define CPS_ENUM(id, text) [CPS_ENUM_##id] = {.name = #id, .doc = text, .first = value_##id},
#include "codegen/isa/insn.def"
    [CPS_ENUMS] = {.name = "", .first = value_end},
};

const char *
cps_isa_value_name(cps_isa_enum e, unsigned wire)
{
    if ((unsigned)e >= CPS_ENUMS)
        return NULL;
    for (unsigned i = cps_enums[e].first; i < cps_enums[e + 1].first; i++)
        if (cps_enumvals[i].wire == wire)
            return cps_enumvals[i].name;
    return NULL;
}

int
cps_isa_value_parse(cps_isa_enum e, const char *s, size_t n)
{
    if ((unsigned)e >= CPS_ENUMS)
        return -1;
    for (unsigned i = cps_enums[e].first; i < cps_enums[e + 1].first; i++)
        if (strncasecmp(cps_enumvals[i].name, s, n) == 0 && cps_enumvals[i].name[n] == '\0')
            return cps_enumvals[i].wire;
    return -1;
}

/* ---- instructions ---- */

const cps_insn_row cps_insns[CPS_INSNS] = {
    [CPS_INSN_NONE] = {.name = "", .sem = "none", .doc = ""},
#define CPS_INSN(id, op, fmt, on, in, s, ps, t, semantics, text)                               \
    [CPS_INSN_##id] = {.name = #id,                                                            \
                       .opcode = op,                                                           \
                       .format = CPS_FMT_##fmt,                                                \
                       .engines = CPS_ON_##on,                                                 \
                       .gens = CPS_IN_##in,                                                    \
                       .sure = CPS_SURE_##s,                                                   \
                       .pseudo = ps,                                                           \
                       .timing = CPS_TC_##t,                                                   \
                       .sem = #semantics,                                                      \
                       .doc = text},
#include "codegen/isa/insn.def"
};

// One row per byte: the compiler rejects a second one (initialised field overwritten).
static const uint8_t by_opcode[256] = {
#define CPS_INSN(id, op, ...) [op] = CPS_INSN_##id,
#include "codegen/isa/insn.def"
};

// Exceptions only: a generation on which an instruction has another byte.
static const struct {
    uint8_t insn, gen, opcode;
} recodes[] = {
    {CPS_INSN_NONE, CPS_GENS, 0},
#define CPS_RECODE(id, g, op) {CPS_INSN_##id, g, op},
#include "codegen/isa/insn.def"
};

cps_insn
cps_isa_find_any(uint8_t opcode)
{
    return (cps_insn)by_opcode[opcode];
}

cps_insn
cps_isa_find(uint8_t opcode, cps_gen g)
{
    for (size_t i = 1; i < cps_countof(recodes); i++)
        if (recodes[i].gen == g && recodes[i].opcode == opcode)
            return (cps_insn)recodes[i].insn;
    cps_insn i = (cps_insn)by_opcode[opcode];
    return i && (cps_insns[i].gens & (1u << g)) && cps_isa_opcode(i, g) == opcode
               ? i
               : CPS_INSN_NONE;
}

cps_insn
cps_isa_find_name(const char *name)
{
    for (unsigned i = 1; i < CPS_INSNS; i++)
        if (strcasecmp(cps_insns[i].name, name) == 0)
            return (cps_insn)i;
    return CPS_INSN_NONE;
}

uint8_t
cps_isa_opcode(cps_insn insn, cps_gen g)
{
    for (size_t i = 1; i < cps_countof(recodes); i++)
        if (recodes[i].insn == insn && recodes[i].gen == g)
            return recodes[i].opcode;
    return cps_insns[insn].opcode;
}

cps_bundle
cps_isa_new(cps_insn insn, cps_gen g)
{
    cps_bundle b = {{0}};
    unsigned fmt = cps_insns[insn].format;
    b.b[0] = cps_isa_opcode(insn, g);
    cps_isa_set(&b, CPS_F_HDR_inst_word_len, cps_fields[CPS_F_HDR_inst_word_len].dflt);
    for (unsigned f = cps_formats[fmt].first; f < cps_formats[fmt + 1].first; f++) {
        static const cps_ap neutral = {.nd = 0};
        if (!cps_isa_there(&b, &cps_fields[f]))
            continue;
        if (cps_fields[f].kind == CPS_FK_TENSOR || cps_fields[f].kind == CPS_FK_DATA4D)
            cps_isa_set_ap(&b, (cps_field)f, &neutral);
        else if (cps_fields[f].dflt)
            cps_isa_set(&b, (cps_field)f, cps_fields[f].dflt);
    }
    return b;
}

uint64_t
cps_isa_reserved(unsigned fmt, cps_gen g)
{
    uint64_t known = 0xFFF;
    if (fmt == CPS_FMT_RAW)
        return 0;
    for (unsigned f = cps_formats[fmt].first; f < cps_formats[fmt + 1].first; f++) {
        const cps_field_row *r = &cps_fields[f];
        if (!r->gens || (r->gens & (1u << g)))
            known |= ((1ull << (r->bits / 8u)) - 1) << r->byte;
    }
    return ~known;
}

void
cps_isa_fit_init(cps_isa_fit *f, cps_gen g)
{
    f->g = g;
    for (unsigned fmt = 0; fmt < CPS_FORMATS; fmt++) {
        uint64_t free = cps_isa_reserved(fmt, g);
        for (unsigned i = 0; i < CPS_BUNDLE_BYTES; i++)
            ((uint8_t *)f->zero[fmt])[i] = free >> i & 1 ? 0xFF : 0;
    }
}

bool
cps_isa_fits(const cps_isa_fit *f, const cps_bundle *b)
{
    cps_insn id = cps_isa_find(b->b[0], f->g);
    uint64_t word, bad = 0;
    for (unsigned i = 0; i < CPS_BUNDLE_BYTES / 8; i++) {
        memcpy(&word, b->b + 8 * i, 8);
        bad |= word & f->zero[cps_insns[id].format][i];
    }
    return id && !bad;
}

/* ---- single fields ---- */

static uint64_t
load(const uint8_t *p, unsigned n)
{
    uint64_t v = 0;
    for (unsigned i = 0; i < n; i++)
        v |= (uint64_t)p[i] << (8 * i);
    return v;
}

static inline void
store_n(uint8_t *p, unsigned n, uint64_t v)
{
    for (unsigned i = 0; i < n; i++)
        p[i] = (uint8_t)(v >> (8 * i));
}

// The usual sizes as constants: one store each.
static void
store(uint8_t *p, unsigned n, uint64_t v)
{
    switch (n) {
    case 1:
        store_n(p, 1, v);
        break;
    case 2:
        store_n(p, 2, v);
        break;
    case 4:
        store_n(p, 4, v);
        break;
    default:
        store_n(p, n, v);
    }
}

uint64_t
cps_isa_get_odd(const cps_bundle *b, cps_field f)
{
    cps_assert(f > CPS_F_NONE && f < CPS_FIELDS && cps_fields[f].bits <= 64);
    return load(b->b + cps_fields[f].byte, cps_fields[f].bits / 8u);
}

void
cps_isa_set(cps_bundle *b, cps_field f, uint64_t v)
{
    cps_assert(f > CPS_F_NONE && f < CPS_FIELDS && cps_fields[f].bits <= 64);
    store(b->b + cps_fields[f].byte, cps_fields[f].bits / 8u, v);
}

uint64_t
cps_isa_get_elem(const cps_bundle *b, cps_field f, unsigned i)
{
    const cps_field_row *r = &cps_fields[f];
    unsigned n = r->arg ? r->arg : 1, bytes = r->bits / 8u / n;
    cps_assert(i < n && bytes <= 8);
    return load(b->b + r->byte + i * bytes, bytes);
}

void
cps_isa_set_elem(cps_bundle *b, cps_field f, unsigned i, uint64_t v)
{
    const cps_field_row *r = &cps_fields[f];
    unsigned n = r->arg ? r->arg : 1, bytes = r->bits / 8u / n;
    cps_assert(i < n && bytes <= 8);
    store(b->b + r->byte + i * bytes, bytes, v);
}

void
cps_isa_get_ap(const cps_bundle *b, cps_field f, cps_ap *out)
{
    const cps_field_row *r = &cps_fields[f];
    cps_assert(r->kind == CPS_FK_TENSOR || r->kind == CPS_FK_DATA4D);
    const uint8_t *p = b->b + r->byte;
    // Addresses have 4 bytes, steps and counts 2: constant sizes are single loads.
    out->addr = (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
    out->nd = r->arg;
    const uint8_t *step = p + 4, *num = step + 2 * r->arg;
    for (unsigned i = 0; i < 4; i++) {
        bool has = i < r->arg;
        out->step[i] = has ? (int16_t)(step[2 * i] | step[2 * i + 1] << 8) : 1;
        out->num[i] = has ? (uint16_t)(num[2 * i] | num[2 * i + 1] << 8) : 1;
    }
}

void
cps_isa_set_ap(cps_bundle *b, cps_field f, const cps_ap *ap)
{
    const cps_field_row *r = &cps_fields[f];
    cps_assert(r->kind == CPS_FK_TENSOR || r->kind == CPS_FK_DATA4D);
    cps_assert(ap->nd <= r->arg);
    uint8_t *p = b->b + r->byte;
    // Fillers of unused dims: 1 and 1 in a TENSOR, 0 and 1 in a DATA4D (inferred; the sources
    // accept any step there).
    uint16_t idle = r->kind == CPS_FK_TENSOR;
    store_n(p, 4, ap->addr);
    for (unsigned i = 0; i < r->arg; i++) {
        store_n(p + 4 + 2 * i, 2, i < ap->nd ? (uint16_t)ap->step[i] : idle);
        store_n(p + 4 + 2 * r->arg + 2 * i, 2, i < ap->nd ? ap->num[i] : 1u);
    }
}

/* row_grp and col_grp are bit masks of four groups of 32: 0xF for a span above 64, 0x3 or 0xC
 * for a half, one bit for a quarter (shipped ISA headers). */
uint8_t
cps_isa_pe_group(unsigned start, unsigned span)
{
    if (span == 0 || span > 128 || start >= 128)
        return 0;
    unsigned width = span > 64 ? 128 : span > 32 ? 64 : 32;
    if (start % width != 0)
        return 0;
    return (uint8_t)(((1u << (width / 32)) - 1u) << (start / 32));
}

uint8_t
cps_isa_pe_bus(uint8_t col_grp)
{
    return col_grp == 0xF ? 0x10 : col_grp == 3 ? 1 : col_grp == 0xC ? 4 : col_grp;
}

void
cps_isa_set_event(cps_bundle *b, unsigned mode, unsigned sem, unsigned value, unsigned raise)
{
    if (mode) {
        cps_isa_set(b, CPS_F_CTRL_ES_wait_mode, mode);
        cps_isa_set(b, CPS_F_CTRL_ES_wait_idx, sem);
        cps_isa_set(b, CPS_F_CTRL_ES_sem_wait_value, value);
    }
    if (raise) {
        cps_isa_set(b, CPS_F_CTRL_ES_update_mode, CPS_UPDATE_SEM_INC_COMPLETE);
        cps_isa_set(b, CPS_F_CTRL_ES_update_idx, raise);
    }
}

void
cps_isa_set_clear(cps_bundle *b, unsigned first, unsigned last)
{
    cps_isa_set(b, CPS_F_CTRL_ER_clear, CPS_SEM_CLEAR_MODE_RANGE);
    cps_isa_set(b, CPS_F_CTRL_ER_first, first);
    cps_isa_set(b, CPS_F_CTRL_ER_last, last);
}
