/* A document that was read, as the files of this folder see it. */
#ifndef CPS_CODEGEN_BIR_READ_H
#define CPS_CODEGEN_BIR_READ_H

#include "codegen/bir/bir.h"
#include "codegen/bir/schema.h"
#include "runtime/base/map.h"

typedef struct cps_bfunc {
    const cps_json *node;
    cps_map names[CPS_BR_COUNT]; /* name -> node */
} cps_bfunc;

struct cps_bir {
    cps_arena *arena;
    const cps_json *top;  /* the value in the text */
    const cps_json *root; /* the module: the same, or the one member of it */
    uint32_t source;
    CPS_VEC(cps_bfunc) funcs;
    cps_map names[CPS_BR_COUNT]; /* of the module: functions, queues, DMA blocks */
    cps_bir_stats stats;
};

uint32_t cps_bir_add_function(cps_bir *b, const cps_json *v);
/* The node called `name`; NULL when there is none. */
const cps_json *cps_bir_find(const cps_bir *b, unsigned kind, uint32_t func, const char *name);
/* A message at a node: text, then the JSON pointer. */
void cps_bir_say(const cps_bir *b, cps_diags *d, cps_code code, const cps_json *at,
                 const char *fmt, ...) CPS_PRINTF(5, 6);

#endif
