/* Tables of bir.def and look-ups in them. */
#include "codegen/bir/schema.h"

#include "codegen/bir/map.h"

#include <string.h>

#define SCALAR(x) 0
#define ARG_ANY(x) 0
#define ARG_STR(x) 0
#define ARG_BOOL(x) 0
#define ARG_INT(x) 0
#define ARG_NUM(x) 0
#define ARG_WORD(x) 0
#define ARG_VALUE(x) 0
#define ARG_INTS(x) 0
#define ARG_STRS(x) 0
#define ARG_PAIRS(x) 0
#define ARG_EDGES(x) 0
#define ARG_BLOB(x) 0
#define ARG_OBJ(x) CPS_BO_##x
#define ARG_LIST(x) CPS_BO_##x
#define ARG_NAME(x) CPS_BN_##x
#define ARG_REF(x) CPS_BR_##x
#define ARG_REFS(x) CPS_BR_##x

const cps_bobj_row cps_bobjs[CPS_BO_COUNT] = {
#define BIR_OBJ(id, layout, doc) [CPS_BO_##id] = {doc, CPS_BL_##layout},
#include "codegen/bir/bir.def"
};

const cps_bop_row cps_bops[CPS_BOP_COUNT] = {
#define BIR_OP(id, name, ordinal, like, sure)                                                  \
    [CPS_BOP_##id] = {name, ordinal, CPS_BOP_##like, #sure[0]},
#include "codegen/bir/bir.def"
};

const cps_bkey_row cps_bkeys[] = {
#define BIR_KEY(obj, key, form, arg, when, sure)                                               \
    {key, CPS_BO_##obj, CPS_BF_##form, ARG_##form(arg), CPS_BW_##when, #sure[0]},
#include "codegen/bir/bir.def"
};

const cps_bkey_row cps_bopkeys[] = {
#define BIR_OPKEY(op, key, form, arg, sure)                                                    \
    {key, CPS_BOP_##op, CPS_BF_##form, ARG_##form(arg), CPS_BW_SOME, #sure[0]},
#include "codegen/bir/bir.def"
};

const unsigned cps_bkey_count = cps_countof(cps_bkeys);
const unsigned cps_bopkey_count = cps_countof(cps_bopkeys);

static const struct {
    const char *word;
    uint8_t list;
    int16_t value;
} words[] = {
#define BIR_NAME(list, word, value, sure) {word, CPS_BN_##list, value},
#include "codegen/bir/bir.def"
};

cps_bop
cps_bop_find(const char *name)
{
    for (unsigned i = 1; i < CPS_BOP_COUNT; i++)
        if (!strcmp(cps_bops[i].name, name))
            return (cps_bop)i;
    return CPS_BOP_NONE;
}

static const cps_bkey_row *
find(const cps_bkey_row *rows, unsigned n, unsigned owner, const char *key)
{
    for (unsigned i = 0; i < n; i++)
        if (rows[i].owner == owner && !strcmp(rows[i].key, key))
            return &rows[i];
    return NULL;
}

const cps_bkey_row *
cps_bkey_find(cps_bobj o, cps_bop op, const char *key)
{
    const cps_bkey_row *r = find(cps_bkeys, cps_bkey_count, o, key);
    for (unsigned k = op; !r && k != CPS_BOP_NONE; k = cps_bops[k].like)
        r = find(cps_bopkeys, cps_bopkey_count, k, key);
    return r;
}

int
cps_bword_value(cps_bwords list, const char *word)
{
    for (size_t i = 0; i < cps_countof(words); i++)
        if (words[i].list == list && !strcmp(words[i].word, word))
            return words[i].value;
    return -1;
}

bool
cps_bword_known(cps_bwords list, const char *word)
{
    if (list == CPS_BN_ALU)
        return cps_bmap_alu(word) >= 0;
    if (list == CPS_BN_DTYPE)
        return cps_bmap_dtype(word) != CPS_DT_NONE;
    if (list == CPS_BN_WAITMODE)
        return cps_bmap_wait(word) >= 0; // the ISA has more than BIR
    if (list == CPS_BN_UPDATEMODE)
        return cps_bmap_update(word) >= 0;
    for (size_t i = 0; i < cps_countof(words); i++)
        if (words[i].list == list && !strcmp(words[i].word, word))
            return true;
    return false;
}

// An operand without a kind is told by the members only its kind has.
static cps_bobj
operand(const cps_json *v)
{
    static const struct {
        const char *kind, *mark;
        uint8_t obj;
    } kinds[] = {
        {"physical_ap", "memref", CPS_BO_PHYSICAL_AP},
        {"symbolic_ap", "addrs", CPS_BO_SYMBOLIC_AP},
        {"register_ap", "reg_ap_offset", CPS_BO_REGISTER_AP},
        {"imm_value", "value", CPS_BO_IMM_VALUE},
        {"symbolic_imm_value", NULL, CPS_BO_SYMBOLIC_IMM_VALUE},
        {"imm_array", "values", CPS_BO_IMM_ARRAY},
        {"register_access", "regref", CPS_BO_REGISTER_ACCESS},
    };
    const cps_json *kind = cps_json_get(v, "kind");
    for (size_t i = 0; i < cps_countof(kinds); i++) {
        if (kind && kind->kind == CPS_JSON_STR
                ? !strcmp(kinds[i].kind, kind->str)
                : kinds[i].mark && cps_json_get(v, kinds[i].mark))
            return (cps_bobj)kinds[i].obj;
    }
    return CPS_BO_ARG;
}

cps_bobj
cps_bobj_of(cps_bobj family, const cps_json *v)
{
    if (family == CPS_BO_ARG)
        return operand(v);
    if (family == CPS_BO_STORAGE)
        return cps_json_get(v, "numPhysicalRegs")   ? CPS_BO_REGISTER
               : cps_json_get(v, "memorylocations") ? CPS_BO_MEMSET
               : cps_json_get(v, "type")            ? CPS_BO_MEMLOC
                                                    : CPS_BO_STORAGE;
    // Sums nest: a term may be an expression again.
    if (family == CPS_BO_TERM && cps_json_get(v, "kind"))
        return CPS_BO_EXPR;
    return family;
}
