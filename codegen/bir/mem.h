/* Memory locations by name, and access patterns on them: what writer and reader share.
 *
 * A location in SBUF or PSUM is a rectangle: partitions from `part`, in each `bytes` from
 * `byte`. An access pattern counts elements in it row by row, so one partition further is
 * `bytes` / element size further; the first pair of a pattern walks partitions. A location in
 * HBM is a variable of the kernel. Two locations stand for the whole memories: "sb" and "psum".
 */
#ifndef CPS_CODEGEN_BIR_MEM_H
#define CPS_CODEGEN_BIR_MEM_H

#include "codegen/bir/map.h"
#include "codegen/bir/node.h"
#include "codegen/notes.h"
#include "runtime/base/map.h"

typedef enum cps_bspace { CPS_BS_SB, CPS_BS_PSUM, CPS_BS_HBM } cps_bspace;

typedef struct cps_bmem {
    const char *name, *set;
    uint8_t space; /* cps_bspace */
    uint32_t var;  /* HBM: variable of the kernel */
    uint32_t part, parts, byte;
    int64_t bytes; /* per partition; HBM: all */
} cps_bmem;

typedef struct cps_bctx {
    cps_arena *arena; /* of nodes */
    cps_arena *keep;  /* of the locations */
    cps_gen gen;
    CPS_VEC(cps_bmem) mem; /* [0] "sb", [1] "psum" */
    cps_map by_name;       /* location -> index */
    cps_map blocks;        /* DMA block -> index in the kernel's blocks, +1 */
    const cps_kbin *k;
    bool used[2];        /* the whole memories: some operand refers to them */
    bool reg[256];       /* registers some operand names */
    const uint32_t *ref; /* places the record under work touches: indices into mem */
    uint32_t nref;
    const char *why; /* what was wrong, of the last false */
} cps_bctx;

void cps_bctx_init(cps_bctx *c, cps_arena *keep, cps_gen g);
/* Adds a location; false when the name is taken. */
bool cps_bctx_add(cps_bctx *c, const cps_bmem *m);
/* Sets `why` and returns false. */
bool cps_bctx_fail(cps_bctx *c, const char *fmt, ...) CPS_PRINTF(2, 3);

/* ---- writing: NULL when no operand of the schema can say it ---- */
/* A tensor slot: `parts` partitions, steps in elements of `t`. */
cps_json *cps_bmem_write_slot(cps_bctx *c, const cps_ap *ap, cps_dtype t, unsigned parts);
/* One value in each of `parts` partitions from `part` on, at a byte of the partition. */
cps_json *cps_bmem_write_column(cps_bctx *c, unsigned part, uint32_t byte, cps_dtype t,
                                unsigned parts);
/* A walk in bytes, outermost first, its last step one element; `var` 0: the flat SBUF aperture.
 */
typedef struct cps_bwalk {
    uint32_t var;
    int64_t base;
    int nd;
    struct {
        int64_t step, num;
    } d[8];
} cps_bwalk;
cps_json *cps_bmem_write_walk(cps_bctx *c, const cps_bwalk *w, cps_dtype t);
cps_json *cps_bmem_write_reg(cps_bctx *c, unsigned r, const char *dtype);

/* ---- reading: false with `why` ---- */
bool cps_bmem_read_slot(cps_bctx *c, const cps_json *v, unsigned dims, cps_ap *ap, cps_dtype *t,
                        unsigned *parts);
bool cps_bmem_read_column(cps_bctx *c, const cps_json *v, unsigned *part, uint32_t *byte,
                          cps_dtype *t, unsigned *parts);
bool cps_bmem_read_walk(cps_bctx *c, const cps_json *v, cps_bwalk *w, cps_dtype *t);
bool cps_bmem_read_reg(cps_bctx *c, const cps_json *v, unsigned *r);
bool cps_bmem_reg_name(const char *name, unsigned *r); /* "r5" */
bool cps_bmem_is(const cps_json *v, const char *kind); /* an operand of that kind */

#endif
