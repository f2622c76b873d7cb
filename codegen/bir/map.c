/* Tables of map.def and words both ways. */
#include "codegen/bir/map.h"

#include <string.h>

#define IMM CPS_BM_IMM
#define PTR CPS_BM_PTR
#define JUMP CPS_BM_JUMP
#define SCATTER CPS_BM_SCATTER
#define ADDS CPS_BM_ADDS
#define RAW CPS_BM_RAW
#define DIFF CPS_BM_DIFF
#define STT CPS_BM_STT
#define SCAN CPS_BM_SCAN
#define REDUCES CPS_BM_REDUCES
#define RUNNING CPS_BM_RUNNING

const cps_binsn_row cps_binsns[] = {
#define BIR_INSN(insn, op, marks) {CPS_INSN_##insn, marks, CPS_BOP_##op},
#include "codegen/bir/map.def"
};

const cps_bwith_row cps_bwiths[] = {
#define BIR_WITH(insn, side, companion) {CPS_INSN_##insn, CPS_INSN_##companion, CPS_BS_##side},
#include "codegen/bir/map.def"
};

// A count of partitions that no field holds.
#define CPS_F_S4D4_CR_NONE CPS_F_NONE

const cps_barg_row cps_bargs[] = {
#define BIR_ARG(op, format, field, way, rows)                                                  \
    {CPS_BOP_##op, CPS_FMT_##format, CPS_BY_##way, CPS_F_##format##_##field,                   \
     CPS_F_##format##_##rows},
#include "codegen/bir/map.def"
};

const cps_bset_row cps_bsets[] = {
#define BIR_SET(op, format, key, field, how)                                                   \
    {CPS_BOP_##op, CPS_FMT_##format, CPS_BH_##how, CPS_F_##format##_##field, key},
#include "codegen/bir/map.def"
};

const cps_bfix_row cps_bfixes[] = {
#define BIR_FIX(op, format, key, word) {CPS_BOP_##op, CPS_FMT_##format, key, word},
#include "codegen/bir/map.def"
};

const cps_bsame_row cps_bsames[] = {
#define BIR_SAME(format, field, other, from)                                                   \
    {CPS_FMT_##format, CPS_F_##format##_##field, CPS_F_##other##_##from},
#include "codegen/bir/map.def"
};

const unsigned cps_binsn_count = cps_countof(cps_binsns);
const unsigned cps_bwith_count = cps_countof(cps_bwiths);
const unsigned cps_barg_count = cps_countof(cps_bargs);
const unsigned cps_bset_count = cps_countof(cps_bsets);
const unsigned cps_bfix_count = cps_countof(cps_bfixes);
const unsigned cps_bsame_count = cps_countof(cps_bsames);

const cps_bvar_row cps_bvars[CPS_VAR_SHARED + 1] = {
#define BIR_VAR(id, kind, type) [CPS_VAR_##id] = {kind, type},
#include "codegen/bir/map.def"
};

const cps_barch_row cps_barchs[CPS_GENS] = {
#define BIR_ARCH(gen, arch, target) [CPS_##gen] = {arch, target},
#include "codegen/bir/map.def"
};

typedef struct word {
    int id;
    const char *name;
} word;

static const word dtypes[] = {
#define BIR_DTYPE(id, name) {CPS_DT_##id, name},
#include "codegen/bir/map.def"
};
static const word alus[] = {
#define BIR_ALU(id, name) {CPS_ALU_##id, name},
#include "codegen/bir/map.def"
};
static const word engines[] = {
#define BIR_ENGINE(id, name) {CPS_##id, name},
#include "codegen/bir/map.def"
};
static const word waits[] = {
#define BIR_SYNC(list, id, name) SYNC_##list(id, name)
#define SYNC_WAIT(id, name) {CPS_WAIT_##id, name},
#define SYNC_UPDATE(id, name)
#include "codegen/bir/map.def"
};
#undef SYNC_WAIT
#undef SYNC_UPDATE
static const word updates[] = {
#define BIR_SYNC(list, id, name) SYNC_##list(id, name)
#define SYNC_WAIT(id, name)
#define SYNC_UPDATE(id, name) {CPS_UPDATE_##id, name},
#include "codegen/bir/map.def"
};

static const char *
name_of(const word *w, size_t n, int id)
{
    for (size_t i = 0; i < n; i++)
        if (w[i].id == id)
            return w[i].name;
    return NULL;
}

static int
id_of(const word *w, size_t n, const char *name, int none)
{
    for (size_t i = 0; i < n; i++)
        if (!strcmp(w[i].name, name))
            return w[i].id;
    return none;
}

#define NAME(list, id) name_of(list, cps_countof(list), (int)(id))
#define ID(list, name, none) id_of(list, cps_countof(list), name, none)

cps_insn
cps_bmap_companion(cps_insn main, cps_bside side, cps_insn candidate)
{
    for (unsigned i = 0; i < cps_bwith_count; i++)
        if (cps_bwiths[i].insn == main && cps_bwiths[i].side == side &&
            (!candidate || cps_bwiths[i].companion == candidate))
            return (cps_insn)cps_bwiths[i].companion;
    return CPS_INSN_NONE;
}

cps_dtype
cps_bmap_dtype(const char *name)
{
    return (cps_dtype)ID(dtypes, name, CPS_DT_NONE);
}

const char *
cps_bmap_dtype_name(cps_dtype t)
{
    const char *s = NAME(dtypes, t);
    return s ? s : t == CPS_DT_BOOL ? "uint8" : cps_dtype_name(t);
}

int
cps_bmap_alu(const char *name)
{
    int wire = ID(alus, name, -1);
    return wire >= 0 ? wire : cps_alu_parse(name);
}

const char *
cps_bmap_alu_name(unsigned wire)
{
    const char *s = NAME(alus, wire);
    return s ? s : cps_alu_name(wire);
}

cps_engine
cps_bmap_engine(const char *name)
{
    return (cps_engine)ID(engines, name, CPS_ENGINE_ANY);
}

const char *
cps_bmap_engine_name(cps_engine e)
{
    return NAME(engines, e);
}

const char *
cps_bmap_wait_name(unsigned wire)
{
    const char *s = NAME(waits, wire);
    return s ? s : cps_isa_value_name(CPS_ENUM_WAIT_MODE, wire);
}

const char *
cps_bmap_update_name(unsigned wire)
{
    const char *s = NAME(updates, wire);
    return s ? s : cps_isa_value_name(CPS_ENUM_UPDATE_MODE, wire);
}

int
cps_bmap_wait(const char *name)
{
    int wire = ID(waits, name, -1);
    return wire >= 0 ? wire : cps_isa_value_parse(CPS_ENUM_WAIT_MODE, name, strlen(name));
}

int
cps_bmap_update(const char *name)
{
    int wire = ID(updates, name, -1);
    return wire >= 0 ? wire : cps_isa_value_parse(CPS_ENUM_UPDATE_MODE, name, strlen(name));
}

// Copies a name without its underscores, each piece with one capital.
static void
camel(const char *s, char *out)
{
    for (bool first = true; *s; s++) {
        if (*s == '_') {
            first = true;
            continue;
        }
        bool lower = *s >= 'a' && *s <= 'z', upper = *s >= 'A' && *s <= 'Z';
        *out++ = (char)(first && lower ? *s - 32 : !first && upper ? *s + 32 : *s);
        first = false;
    }
    *out = 0;
}

const char *
cps_bmap_camel(cps_arena *a, cps_isa_enum e, unsigned wire)
{
    const char *s = cps_isa_value_name(e, wire);
    if (!s)
        return NULL;
    char *out = cps_arena_raw(a, strlen(s) + 1);
    camel(s, out);
    return out;
}

int
cps_bmap_from_camel(cps_isa_enum e, const char *name)
{
    char text[64];
    for (unsigned i = cps_enums[e].first; i < cps_enums[e + 1].first; i++) {
        const cps_enumval_row *v = &cps_enumvals[i];
        if (strlen(v->name) >= sizeof text)
            continue;
        camel(v->name, text);
        if (!strcmp(text, name))
            return v->wire;
    }
    return -1;
}
