/* The rows of map.def as tables, and words of the two worlds. */
#ifndef CPS_CODEGEN_BIR_MAP_H
#define CPS_CODEGEN_BIR_MAP_H

#include "codegen/bir/schema.h"
#include "codegen/isa/isa.h"
#include "runtime/pkg/kbin.h"

/* Marks of map.def. */
enum {
    CPS_BM_IMM = 1,
    CPS_BM_PTR = 2,
    CPS_BM_JUMP = 4,
    CPS_BM_SCATTER = 8,
    CPS_BM_ADDS = 16,
    CPS_BM_OF_RECORD = 31, /* what the record says */
    CPS_BM_RAW = 32,
    CPS_BM_DIFF = 64,
    CPS_BM_STT = 128,
    CPS_BM_SCAN = 256,
    CPS_BM_REDUCES = 512,
    CPS_BM_RUNNING = 1024
};

typedef enum cps_bway { CPS_BY_IN, CPS_BY_OUT, CPS_BY_PTR } cps_bway;
typedef enum cps_bside { CPS_BS_BEFORE, CPS_BS_MAIN, CPS_BS_AFTER, CPS_BS_COUNT } cps_bside;
typedef enum cps_bhow {
    CPS_BH_UINT,
    CPS_BH_SINT,
    CPS_BH_BOOL,
    CPS_BH_F32,
    CPS_BH_IMM,
    CPS_BH_ALU,
    CPS_BH_FUNC,
    CPS_BH_WORD,
    CPS_BH_CAMEL,
    CPS_BH_BIT0,
    CPS_BH_BIT1,
    CPS_BH_BYTES,
    CPS_BH_SET,
    CPS_BH_FILL
} cps_bhow;

typedef struct cps_binsn_row {
    uint16_t insn, marks;
    uint8_t op;
} cps_binsn_row;
typedef struct cps_bwith_row {
    uint16_t insn, companion;
    uint8_t side;
} cps_bwith_row;
typedef struct cps_barg_row {
    uint8_t op, format, way;
    uint16_t field, rows; /* rows NONE: one partition */
} cps_barg_row;
typedef struct cps_bset_row {
    uint8_t op, format, how;
    uint16_t field;
    const char *key;
} cps_bset_row;
typedef struct cps_bfix_row {
    uint8_t op, format;
    const char *key, *word;
} cps_bfix_row;
typedef struct cps_bsame_row {
    uint8_t format;
    uint16_t field, from;
} cps_bsame_row;
typedef struct cps_bvar_row {
    const char *kind, *type;
} cps_bvar_row;
typedef struct cps_barch_row {
    const char *arch, *target;
} cps_barch_row;

extern const cps_binsn_row cps_binsns[];
extern const cps_bwith_row cps_bwiths[];
extern const cps_barg_row cps_bargs[];
extern const cps_bset_row cps_bsets[];
extern const cps_bfix_row cps_bfixes[];
extern const cps_bsame_row cps_bsames[];
extern const unsigned cps_binsn_count, cps_bwith_count, cps_barg_count, cps_bset_count,
    cps_bfix_count, cps_bsame_count;
extern const cps_bvar_row cps_bvars[CPS_VAR_SHARED + 1];
extern const cps_barch_row cps_barchs[CPS_GENS];

/* The companion of a record on a side: its insn, or NONE. */
cps_insn cps_bmap_companion(cps_insn main, cps_bside side, cps_insn candidate);

cps_dtype cps_bmap_dtype(const char *name); /* NONE when unknown */
const char *cps_bmap_dtype_name(cps_dtype t);
int cps_bmap_alu(const char *name); /* wire value, -1 when unknown */
const char *cps_bmap_alu_name(unsigned wire);
cps_engine cps_bmap_engine(const char *name); /* ANY when unknown */
const char *cps_bmap_engine_name(cps_engine e);
const char *cps_bmap_wait_name(unsigned wire); /* the ISA's name where BIR has none */
const char *cps_bmap_update_name(unsigned wire);
int cps_bmap_wait(const char *name); /* -1 when unknown */
int cps_bmap_update(const char *name);

/* "ZERO_ACCUMULATE" as "ZeroAccumulate", in the arena; NULL when the value has no name. */
const char *cps_bmap_camel(cps_arena *a, cps_isa_enum e, unsigned wire);
int cps_bmap_from_camel(cps_isa_enum e, const char *word); /* -1 when unknown */

#endif
