/* The instruction set as data. insn.def holds every format, field, slot, enum and instruction;
 * this header gives the enums and lookups made from it. Encoder, decoder, assembly text,
 * verifier, simulator dispatch and documentation are loops over the same rows.
 *
 * Format and field names are those of the ISA reference: format S3D3_AC, field scale is
 * CPS_F_S3D3_AC_scale; slot src of the same format is CPS_F_S3D3_AC_src; the instruction row is
 * CPS_INSN_ACTIVATE. The header and the sync block are formats of their own, HDR and EVENTS,
 * included by every instruction. */
#ifndef CPS_ISA_ISA_H
#define CPS_ISA_ISA_H

#include "codegen/isa/enum.h"
#include "runtime/base/num.h"

#define CPS_BUNDLE_BYTES 64

typedef struct cps_bundle {
    uint8_t b[CPS_BUNDLE_BYTES];
} cps_bundle;

/* How sure a fact is: confirmed, strong, inferred. */
typedef enum cps_sure { CPS_SURE_C, CPS_SURE_S, CPS_SURE_I } cps_sure;

/* What a field holds; decides text form and range. */
typedef enum cps_fkind {
    CPS_FK_UINT, CPS_FK_SINT, CPS_FK_F32, CPS_FK_HEX,
    CPS_FK_FLAGS,                             /* groups of bits, an enum of masks */
    CPS_FK_DTYPE, CPS_FK_PAIR, CPS_FK_ALU, CPS_FK_ENUM, CPS_FK_ACTFN,
    CPS_FK_ADDR4, CPS_FK_ADDR8,
    CPS_FK_IMM,                               /* 4-byte slot whose meaning another field picks */
    CPS_FK_STR, CPS_FK_BYTES,
    CPS_FK_TENSOR,                            /* TENSORnD slot, n in the row */
    CPS_FK_DATA4D, CPS_FK_MXMEM
} cps_fkind;

/* Sets of generations and of engines, as the rows name them. */
enum {
    CPS_IN_NONE = 0,
    CPS_IN_V2 = 1 << CPS_V2,
    CPS_IN_V3 = 1 << CPS_V3,
    CPS_IN_V4 = 1 << CPS_V4,
    CPS_IN_V34 = CPS_IN_V3 | CPS_IN_V4,
    CPS_IN_V234 = CPS_IN_V2 | CPS_IN_V34,
    CPS_ON_PE = 1 << CPS_PE,
    CPS_ON_ACT = 1 << CPS_ACT,
    CPS_ON_POOL = 1 << CPS_POOL,
    CPS_ON_DVE = 1 << CPS_DVE,
    CPS_ON_DVE_POOL = CPS_ON_DVE | CPS_ON_POOL,
    CPS_ON_POOL_DVE = CPS_ON_DVE_POOL,
    CPS_ON_DVE_POOL_ACT = CPS_ON_DVE_POOL | CPS_ON_ACT,
    CPS_ON_ANY = (1 << CPS_ENGINES) - 1
};

enum { CPS_LABEL = 32 }; /* bytes of a label in assembly text */

/* Which part of a dtype field speaks of an operand. */
typedef enum cps_part { CPS_PART_NONE, CPS_PART_WHOLE, CPS_PART_LOW, CPS_PART_HIGH } cps_part;

/* Enumerations that fields refer to, and their values: CPS_ACCUM_CMD_ZERO_ACCUMULATE. */
typedef enum cps_isa_enum {
#define CPS_ENUM(name, ...) CPS_ENUM_##name,
#include "codegen/isa/insn.def"
    CPS_ENUMS
} cps_isa_enum;

typedef enum cps_isa_value {
#define CPS_ENUMVAL(e, name, wire, ...) CPS_##e##_##name = wire,
#include "codegen/isa/insn.def"
    CPS_ISA_VALUE_LAST
} cps_isa_value;

typedef enum cps_format {
#define CPS_FORMAT(name, ...) CPS_FMT_##name,
#include "codegen/isa/insn.def"
    CPS_FORMATS
} cps_format;

typedef enum cps_field {
    CPS_F_NONE = 0,
#define CPS_FIELD(fmt, name, ...) CPS_F_##fmt##_##name,
#define CPS_SLOT(fmt, name, ...) CPS_F_##fmt##_##name,
#include "codegen/isa/insn.def"
    CPS_FIELDS
} cps_field;

typedef enum cps_insn {
    CPS_INSN_NONE = 0,
#define CPS_INSN(name, ...) CPS_INSN_##name,
#include "codegen/isa/insn.def"
    CPS_INSNS
} cps_insn;

/* An access pattern as it stands in a TENSORnD slot: X (fastest) first. Steps in elements. */
typedef struct cps_ap {
    uint32_t addr;     /* ADDR4 with its marker byte */
    uint8_t nd;        /* 1..4, from the slot */
    int16_t step[4];
    uint16_t num[4];   /* unused dims: step 1, num 1 */
} cps_ap;

typedef struct cps_field_row {
    const char *name;
    char label[CPS_LABEL]; /* " name=", as it stands in assembly text; the rest is zero */
    uint8_t label_n;   /* its length */
    uint8_t format;    /* cps_format */
    uint8_t byte, bit; /* position; bit within the byte: 0, all known fields fill bytes */
    uint16_t bits;     /* length */
    uint8_t kind;      /* cps_fkind */
    uint8_t arg;       /* TENSOR, DATA4D: dims; ENUM, FLAGS: which enum; numbers: elements
                        * (0 = one) */
    uint8_t out;       /* slots: 1 written, 0 read */
    uint8_t gens;      /* mask of generations that have it */
    uint8_t sure;
    uint16_t dtype;    /* operands: the field that holds their dtype, or CPS_F_NONE */
    uint8_t part;      /* operands: which part of it, cps_part */
    uint8_t implied;   /* dtype fields: some operand speaks for them */
    uint16_t source;   /* scalars: the field that says inline, pointer or register */
    uint32_t dflt;     /* documented constant of the format, else 0 */
    uint16_t when;     /* the field is there only while this one has the value when_is */
    uint8_t when_is;
} cps_field_row;

typedef struct cps_format_row {
    const char *name, *source, *doc;
    uint16_t first; /* its fields run from here to the next row's first */
    uint8_t sure;
} cps_format_row;

typedef struct cps_enumval_row {
    const char *name;
    uint8_t wire, gens;
} cps_enumval_row;

typedef struct cps_enum_row {
    const char *name, *doc;
    uint16_t first; /* its values run from here to the next row's first */
} cps_enum_row;

typedef struct cps_insn_row {
    const char *name;  /* "ACTIVATE" */
    uint8_t opcode;    /* base byte; cps_isa_opcode applies recodes */
    uint8_t format;
    uint8_t engines;   /* mask of 1 << cps_engine that may run it */
    uint8_t gens;      /* mask of 1 << cps_gen */
    uint8_t sure;
    uint8_t pseudo;    /* rewritten by the loader, never fetched */
    uint8_t timing;    /* cps_tclass, see timing.h */
    const char *sem;   /* semantics name, expanded only by the simulator */
    const char *doc;
} cps_insn_row;

extern const cps_field_row cps_fields[CPS_FIELDS];
extern const cps_format_row cps_formats[CPS_FORMATS + 1];
extern const cps_insn_row cps_insns[CPS_INSNS];
extern const cps_enum_row cps_enums[CPS_ENUMS + 1];
extern const cps_enumval_row cps_enumvals[];

/* Row for an opcode byte on a generation; CPS_INSN_NONE when not in the table. */
cps_insn cps_isa_find(uint8_t opcode, cps_gen g);
cps_insn cps_isa_find_any(uint8_t opcode); /* on any generation, later ones included */
cps_insn cps_isa_find_name(const char *name); /* case-insensitive */
uint8_t cps_isa_opcode(cps_insn i, cps_gen g);

/* A bundle with header, opcode, documented constants of the format and neutral patterns
 * (step 1, num 1) in unused dims; every other byte 0. */
cps_bundle cps_isa_new(cps_insn i, cps_gen g);
/* Operands of a fresh EVENT_SEMAPHORE: waits for `value` of `sem` (mode 0: does not), then raises
 * semaphore `raise` by one (0: none); and of a fresh EVENT_SEMAPHORE_RANGE_CLEAR. */
void cps_isa_set_event(cps_bundle *b, unsigned mode, unsigned sem, unsigned value, unsigned raise);
void cps_isa_set_clear(cps_bundle *b, unsigned first, unsigned last);

/* Whether a field of the bundle's format is there (rows WHEN). */
static inline bool
cps_isa_there(const cps_bundle *b, const cps_field_row *r)
{
    return !r->when || b->b[cps_fields[r->when].byte] == r->when_is;
}
/* Bytes of a format that no field of the generation covers, as a mask; header and sync band are
 * covered. Fields of later generations count as covered: the opcode says those. */
uint64_t cps_isa_reserved(unsigned format, cps_gen g);
/* Whether the opcode exists on the generation and reserved bytes are 0: the quick part of
 * cps_isa_verify (text.h), with masks made once for many bundles. */
typedef struct cps_isa_fit {
    cps_gen g;
    uint64_t zero[CPS_FORMATS][CPS_BUNDLE_BYTES / 8]; /* bits that must be 0 */
} cps_isa_fit;
void cps_isa_fit_init(cps_isa_fit *f, cps_gen g);
bool cps_isa_fits(const cps_isa_fit *f, const cps_bundle *b);

/* Plain fields up to 64 bits: raw bits, zero-extended. F32 fields hold the binary32 bits. */
uint64_t cps_isa_get_odd(const cps_bundle *b, cps_field f); /* of any size */
static inline uint64_t
cps_isa_get(const cps_bundle *b, cps_field f)
{
    const uint8_t *p = b->b + cps_fields[f].byte;
    switch (cps_fields[f].bits) {
    case 8:
        return p[0];
    case 16:
        return (uint64_t)p[0] | (uint64_t)p[1] << 8;
    case 32:
        return (uint64_t)p[0] | (uint64_t)p[1] << 8 | (uint64_t)p[2] << 16 | (uint64_t)p[3] << 24;
    }
    return cps_isa_get_odd(b, f);
}
void cps_isa_set(cps_bundle *b, cps_field f, uint64_t v);
static inline void
cps_isa_set_f32(cps_bundle *b, cps_field f, float v)
{
    cps_isa_set(b, f, cps_f32_bits(v));
}
/* Fields of several elements (u32[8], i32[2]): element i, zero-extended. */
uint64_t cps_isa_get_elem(const cps_bundle *b, cps_field f, unsigned i);
void cps_isa_set_elem(cps_bundle *b, cps_field f, unsigned i, uint64_t v);

/* Tensor slots. Setting fills unused trailing dims with step 1, num 1 (DATA4D: step 0, num 1);
 * ap->nd may be smaller than the slot's. For DATA4D `addr` is the base value (int32). */
void cps_isa_get_ap(const cps_bundle *b, cps_field f, cps_ap *out);
void cps_isa_set_ap(cps_bundle *b, cps_field f, const cps_ap *ap);

/* Bits over the 29-bit address of an ADDR4 (shipped ISA headers): the slot is the indirect
 * form and the address that of its indices; steps and counts come from registers; the low byte
 * names the register that holds the address. */
#define CPS_ADDR_INDEX 0x20000000u
#define CPS_ADDR_SHAPE 0x40000000u
#define CPS_ADDR_REG 0x80000000u
#define CPS_ADDR_BITS 0x1FFFFFFFu
static inline bool
cps_addr_is_indirect(uint32_t addr)
{
    return (addr & (CPS_ADDR_INDEX | CPS_ADDR_SHAPE)) == CPS_ADDR_INDEX;
}

/* On-chip addresses of v2 to v4 (shipped ISA headers, runtime validators). */
#define CPS_SBUF_STRIDE 0x40000u
#define CPS_PSUM_BASE 0x02000000u
#define CPS_PSUM_STRIDE 0x8000u
#define CPS_PSUM_BANK 2048u
#define CPS_PSUM_END (CPS_PSUM_BASE + 128 * CPS_PSUM_STRIDE)
static inline uint32_t
cps_addr_sbuf(unsigned partition, unsigned byte)
{
    return partition * CPS_SBUF_STRIDE + byte;
}
static inline uint32_t
cps_addr_psum(unsigned partition, unsigned byte)
{
    return CPS_PSUM_BASE + partition * CPS_PSUM_STRIDE + byte;
}
static inline bool
cps_addr_is_psum(uint32_t addr)
{
    return (addr & 0x1E000000u) == CPS_PSUM_BASE;
}
static inline unsigned
cps_addr_partition(uint32_t addr)
{
    return cps_addr_is_psum(addr) ? (addr - CPS_PSUM_BASE) / CPS_PSUM_STRIDE
                                  : addr / CPS_SBUF_STRIDE;
}
static inline unsigned
cps_addr_byte(uint32_t addr)
{
    return cps_addr_is_psum(addr) ? (addr - CPS_PSUM_BASE) % CPS_PSUM_STRIDE
                                  : addr % CPS_SBUF_STRIDE;
}
/* row_grp / col_grp of the PE for a start partition and a span (shipped ISA headers);
 * 0 = illegal. */
uint8_t cps_isa_pe_group(unsigned start, unsigned span);
/* xbus_sel of v2: it follows the column group (encoding reference, 7.1). */
uint8_t cps_isa_pe_bus(uint8_t col_grp);

/* ALU operators, activation functions and wait/update modes: rows of alu.def, act.def and
 * sync.def; enumerators carry the wire values. */
typedef enum cps_alu {
#define CPS_ALU(name, wire, ...) CPS_ALU_##name = wire,
#include "codegen/isa/alu.def"
    CPS_ALU_LAST
} cps_alu;

typedef enum cps_actfn {
#define CPS_ACTFN(name, wire, ...) CPS_ACTFN_##name = wire,
#include "codegen/isa/act.def"
    CPS_ACTFN_LAST
} cps_actfn;

typedef enum cps_sync_mode {
#define CPS_WAIT(name, wire, ...) CPS_WAIT_##name = wire,
#define CPS_UPDATE(name, wire, ...) CPS_UPDATE_##name = wire,
#include "codegen/isa/sync.def"
    CPS_SYNC_LAST
} cps_sync_mode;

const char *cps_alu_name(unsigned wire);   /* "add", NULL when unknown */
int cps_alu_parse(const char *s);          /* -1 when unknown */
const char *cps_actfn_name(unsigned wire); /* "exp" */
int cps_actfn_parse(const char *s);
/* Table set that holds a function: its index, -1 when the function is in every set. */
int cps_actfn_set(unsigned wire);
const char *cps_actset_name(unsigned set); /* NULL when unknown */
/* Functions that a set has beyond those of every set, blank-separated; NULL when unknown. */
const char *cps_actset_functions(unsigned set);
int cps_actset_parse(const char *name);    /* -1 when unknown */

/* The operator is a comparison; the one that means the same with its operands exchanged (itself when it
 * is none). */
bool cps_alu_compares(unsigned wire);
unsigned cps_alu_mirrored(unsigned wire);

/* Classes of ALU operators, as the shipped validator has them (alu.def). */
typedef enum cps_alu_class {
    CPS_ALUC_NONE, CPS_ALUC_BOTH, CPS_ALUC_BITVEC, CPS_ALUC_CRC, CPS_ALUC_GENERAL,
    CPS_ALUC_SPECIAL, CPS_ALUC_INT
} cps_alu_class;
/* Class of an operator on a generation; NONE when it does not exist there. */
cps_alu_class cps_alu_class_of(unsigned wire, cps_gen g);

/* dtype for an ISA tag: the plainest type of those that share it; CPS_DT_NONE when unknown. */
cps_dtype cps_isa_dtype(unsigned wire);
/* Name of an enumerated value, NULL when unknown; the reverse ignores case, -1 when unknown. */
const char *cps_isa_value_name(cps_isa_enum e, unsigned wire);
int cps_isa_value_parse(cps_isa_enum e, const char *s, size_t n);

#endif
