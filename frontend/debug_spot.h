/* What the debugger's options and commands name: breakpoints and places in memory, as text. */
#ifndef CPS_FRONTEND_DEBUG_SPOT_H
#define CPS_FRONTEND_DEBUG_SPOT_H

#include "codegen/isa/isa.h"
#include "runtime/base/npy.h"
#include "runtime/sim/debug.h"

/* Takes "coreN:" off the front of a place, or "coreN" that is all of it; -1: it names no core. */
const char *cps_core_parse(const char *s, int *core);

/* start, ENGINE:PC, LINE, FILE:LINE, OPCODE, ENGINE:OPCODE, each perhaps behind coreN: */
typedef struct cps_breakpoint {
    bool start;      /* the first instruction of a kernel */
    int core;        /* -1: any */
    int engine;      /* -1: any */
    int64_t pc;      /* -1: any */
    const char *file; /* the end of its name; "": any */
    uint32_t line;   /* 0: any */
    cps_insn insn;   /* CPS_INSN_NONE: any */
} cps_breakpoint;

bool cps_breakpoint_parse(cps_arena *a, const char *s, cps_breakpoint *out);
bool cps_breakpoint_hit(const cps_breakpoint *b, unsigned core, cps_engine e, uint32_t index, const cps_place *at);

/* SPACE:PARTITION:BYTE then [:LEN] or :SHAPE:DTYPE[=FILE]; hbm:NAME:BYTE for a variable; perhaps behind
 * coreN: where a kernel runs on several. Of a tensor in SBUF or PSUM the first extent counts partitions. */
typedef struct cps_area {
    int core;           /* -1: not named */
    cps_spot at;
    const char *var;    /* hbm: its name; `at.partition` is found per kernel */
    size_t len;         /* bytes; of one partition for a tensor */
    cps_dtype dtype;    /* CPS_DT_NONE: plain bytes */
    int rank;
    int64_t dim[CPS_MAX_RANK];
    const char *path;   /* .npy to write, or NULL */
} cps_area;

enum { CPS_AREA_BYTES = 1 << 28 }; /* of an area, all partitions */

bool cps_area_parse(cps_arena *a, const char *s, bool tensor, cps_area *out);
/* Finds the variable of the loaded kernel; false when it has none. */
bool cps_area_find(cps_area *x, const cps_sim *s);
/* Whether all of it is memory. */
bool cps_area_fits(const cps_area *x, const cps_sim *s);
/* Reads a tensor: bytes in C order, from `cps_arena_alloc`. */
void *cps_area_read(const cps_area *x, const cps_sim *s, cps_arena *a);

#endif
