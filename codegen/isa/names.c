/* Names of engines, generations, ALU operators, activation functions and dtypes: lookups over
 * enum.h, alu.def, act.def and dtype.def. Unknown numbers and names give NULL or -1. */
#include "codegen/isa/isa.h"

#include <string.h>
#include <strings.h>

static const char *const engine_name[CPS_ENGINES] = {[CPS_PE] = "pe",
                                                     [CPS_ACT] = "act",
                                                     [CPS_POOL] = "pool",
                                                     [CPS_DVE] = "dve",
                                                     [CPS_SP] = "sp"};
static const char *const gen_name[CPS_GENS] = {
    [CPS_V2] = "v2", [CPS_V3] = "v3", [CPS_V4] = "v4"};

const char *
cps_engine_name(cps_engine e)
{
    return (unsigned)e < CPS_ENGINES ? engine_name[e] : "any";
}

cps_engine
cps_engine_parse(const char *s)
{
    for (unsigned e = 0; e < CPS_ENGINES; e++)
        if (strcasecmp(s, engine_name[e]) == 0)
            return (cps_engine)e;
    return CPS_ENGINE_ANY;
}

const char *
cps_gen_name(cps_gen g)
{
    return (unsigned)g < CPS_GENS ? gen_name[g] : "later";
}

/* ---- ALU operators ---- */

typedef struct alu_row {
    const char *name, *alias;
    uint8_t cls, gens;
} alu_row;

static const alu_row alu[256] = {
#define CPS_ALU(id, wire, text, other, c, in) [wire] = {text, other, CPS_ALUC_##c, CPS_IN_##in},
#include "codegen/isa/alu.def"
};

const char *
cps_alu_name(unsigned wire)
{
    return wire < cps_countof(alu) ? alu[wire].name : NULL;
}

int
cps_alu_parse(const char *s)
{
    for (unsigned i = 0; i < cps_countof(alu); i++)
        if (alu[i].name && (strcasecmp(s, alu[i].name) == 0 ||
                            (alu[i].alias[0] && strcasecmp(s, alu[i].alias) == 0)))
            return (int)i;
    return -1;
}

bool
cps_alu_compares(unsigned op)
{
    return (op >= CPS_ALU_IS_EQ && op <= CPS_ALU_IS_LT) || op == CPS_ALU_IS_NE;
}

unsigned
cps_alu_mirrored(unsigned op)
{
    switch (op) {
    case CPS_ALU_IS_GT:
        return CPS_ALU_IS_LT;
    case CPS_ALU_IS_GE:
        return CPS_ALU_IS_LE;
    case CPS_ALU_IS_LT:
        return CPS_ALU_IS_GT;
    case CPS_ALU_IS_LE:
        return CPS_ALU_IS_GE;
    default:
        return op;
    }
}

cps_alu_class
cps_alu_class_of(unsigned wire, cps_gen g)
{
    if (wire >= cps_countof(alu) || !alu[wire].name || !(alu[wire].gens & (1u << g)))
        return CPS_ALUC_NONE;
    return (cps_alu_class)alu[wire].cls;
}

/* ---- activation functions ---- */

typedef struct act_row {
    const char *name, *alias;
    int8_t set;
} act_row;

static const act_row act[256] = {
#define CPS_ACTFN(id, wire, text, other, in, s) [wire] = {text, other, in},
#include "codegen/isa/act.def"
};

static const char *const act_set[] = {
#define CPS_ACTSET(i, name, ...) [i] = name,
#include "codegen/isa/act.def"
};

static const char *const act_set_has[] = {
#define CPS_ACTSET(i, name, functions) [i] = functions,
#include "codegen/isa/act.def"
};

const char *
cps_actfn_name(unsigned wire)
{
    return wire < cps_countof(act) ? act[wire].name : NULL;
}

int
cps_actfn_parse(const char *s)
{
    for (unsigned i = 0; i < cps_countof(act); i++)
        if (act[i].name && (strcasecmp(s, act[i].name) == 0 ||
                            (act[i].alias[0] && strcasecmp(s, act[i].alias) == 0)))
            return (int)i;
    return -1;
}

int
cps_actfn_set(unsigned wire)
{
    return wire < cps_countof(act) && act[wire].name ? act[wire].set : -1;
}

const char *
cps_actset_name(unsigned set)
{
    return set < cps_countof(act_set) ? act_set[set] : NULL;
}

const char *
cps_actset_functions(unsigned set)
{
    return set < cps_countof(act_set_has) ? act_set_has[set] : NULL;
}

int
cps_actset_parse(const char *name)
{
    for (unsigned i = 0; i < cps_countof(act_set); i++)
        if (strcmp(act_set[i], name) == 0)
            return (int)i;
    return -1;
}

/* ---- dtypes ---- */

// Several types share a tag (u8, bool and the MX scale; the three e4m3; e5m2). The plainest speaks.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Woverride-init"
static const uint8_t dtype_by_wire[] = {
#define CPS_DTYPE(id, name, alias, bits, wire, kind) [(wire) < 0 ? 0 : (wire)] = CPS_DT_##id,
#include "runtime/base/dtype.def"
    [0x00] = CPS_DT_NONE,
    [0x03] = CPS_DT_U8,
    [0x0E] = CPS_DT_FP8E4M3,
    [0x0F] = CPS_DT_FP8E5M2,
};
#pragma GCC diagnostic pop

cps_dtype
cps_isa_dtype(unsigned wire)
{
    return wire < cps_countof(dtype_by_wire) ? (cps_dtype)dtype_by_wire[wire] : CPS_DT_NONE;
}
