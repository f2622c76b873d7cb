/* What the allocator and the pass that spills know of a program's storage. */
#ifndef CPS_CODEGEN_ALLOC_H
#define CPS_CODEGEN_ALLOC_H

#include "codegen/pass.h"

/* One buffer of a storage: execution `turn` of the declaration, used by instructions first to last. */
typedef struct cps_tenant {
    uint32_t buf, turn, first, last;
} cps_tenant;

/* One declaration with its ring of slots, or one buffer. */
typedef struct cps_storage {
    cps_space space;
    bool fixed;  // slots as declared
    bool loaded; // some instance is the target of a load
    uint32_t slots, need, turns;
    int64_t unit; // bytes of a slot, or banks
    int64_t pin;  // -1, or byte / bank
    int64_t at;   // result, in units of bytes or banks
    uint32_t first, last;
    uint32_t id;
    const char *name;
    cps_span loc;
    CPS_VEC(cps_tenant) tenants; // by turn
} cps_storage;

typedef struct cps_survey {
    CPS_VEC(cps_storage) all;
} cps_survey;

/* The storages of g->f with their lifetimes and slots, in g->arena. E4107 when fewer slots are declared
 * than needed. */
bool cps_alloc_survey(cps_cg *g, cps_survey *out);

#endif
