/* The rows of bir.def as tables, for the files of this folder. */
#ifndef CPS_CODEGEN_BIR_SCHEMA_H
#define CPS_CODEGEN_BIR_SCHEMA_H

#include "runtime/base/json.h"

typedef enum cps_bobj {
    CPS_BO_NONE = 0,
#define BIR_OBJ(id, ...) CPS_BO_##id,
#include "codegen/bir/bir.def"
    CPS_BO_COUNT
} cps_bobj;

typedef enum cps_bop {
    CPS_BOP_NONE = 0,
#define BIR_OP(id, ...) CPS_BOP_##id,
#include "codegen/bir/bir.def"
    CPS_BOP_COUNT
} cps_bop;

/* Enumerations of words, and kinds of things that have names. */
typedef enum cps_bwords {
    CPS_BN_NONE = 0,
    CPS_BN_ORIGIN,
    CPS_BN_ENGINE,
    CPS_BN_EDGE,
    CPS_BN_WAITMODE,
    CPS_BN_UPDATEMODE,
    CPS_BN_ARGKIND,
    CPS_BN_EXPRKIND,
    CPS_BN_TENSORKIND,
    CPS_BN_ADDRSPACE,
    CPS_BN_MEMTYPE,
    CPS_BN_PERFMODE,
    CPS_BN_POOLFUNC,
    CPS_BN_MEMSETMODE,
    CPS_BN_CACHEMODE,
    CPS_BN_RESETMODE,
    CPS_BN_DGETYPE,
    CPS_BN_CCE_OP,
    CPS_BN_ACC,
    CPS_BN_COMPARE,
    CPS_BN_ALU,  /* alu.def and map.def */
    CPS_BN_DTYPE /* dtype.def and map.def */
} cps_bwords;

typedef enum cps_bref {
    CPS_BR_NONE = 0,
    CPS_BR_FUNCTION,
    CPS_BR_BLOCK,
    CPS_BR_INST,
    CPS_BR_MEMORY,
    CPS_BR_REGISTER,
    CPS_BR_QUEUE,
    CPS_BR_DMABLOCK,
    CPS_BR_COUNT
} cps_bref;

typedef enum cps_bform {
    CPS_BF_ANY,
    CPS_BF_STR,
    CPS_BF_BOOL,
    CPS_BF_INT,
    CPS_BF_NUM,
    CPS_BF_WORD,
    CPS_BF_VALUE,
    CPS_BF_INTS,
    CPS_BF_STRS,
    CPS_BF_PAIRS,
    CPS_BF_OBJ,
    CPS_BF_LIST,
    CPS_BF_NAME,
    CPS_BF_REF,
    CPS_BF_REFS,
    CPS_BF_EDGES,
    CPS_BF_BLOB
} cps_bform;

typedef enum cps_bwhen { CPS_BW_NEED, CPS_BW_ALWAYS, CPS_BW_SOME, CPS_BW_OLD } cps_bwhen;
typedef enum cps_blayout { CPS_BL_FLAT, CPS_BL_LINE, CPS_BL_SPREAD } cps_blayout;

typedef struct cps_bobj_row {
    const char *doc;
    uint8_t layout;
} cps_bobj_row;

typedef struct cps_bkey_row {
    const char *key;
    uint8_t owner; /* cps_bobj or cps_bop */
    uint8_t form, arg, when;
    char sure; /* 'S' stated, 'I' ours */
} cps_bkey_row;

typedef struct cps_bop_row {
    const char *name;
    int16_t ordinal;
    uint8_t like;
    char sure;
} cps_bop_row;

extern const cps_bobj_row cps_bobjs[CPS_BO_COUNT];
extern const cps_bop_row cps_bops[CPS_BOP_COUNT];
extern const cps_bkey_row cps_bkeys[], cps_bopkeys[];
extern const unsigned cps_bkey_count, cps_bopkey_count;

cps_bop cps_bop_find(const char *name); /* NONE when unknown */
/* The row of a member; `op` NONE: the header only. NULL when unknown. */
const cps_bkey_row *cps_bkey_find(cps_bobj o, cps_bop op, const char *key);
bool cps_bword_known(cps_bwords list, const char *word);
/* Value of a word in a list of bir.def, -1 when it has none or is unknown. */
int cps_bword_value(cps_bwords list, const char *word);
/* Which object an operand, a storage or the like is: by its kind or its members. */
cps_bobj cps_bobj_of(cps_bobj family, const cps_json *v);

/* Prints a value of the schema with sorted keys; `w` stands where the value goes. */
void cps_bjson_print(cps_jsonw *w, const cps_json *v, cps_bform form, unsigned arg);

#endif
