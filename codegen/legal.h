/* Inside legalisation: the state its files share. */
#ifndef CPS_CODEGEN_LEGAL_H
#define CPS_CODEGEN_LEGAL_H

#include "codegen/isa/timing.h"
#include "codegen/pass.h"
#include "codegen/view.h"
#include "runtime/base/map.h"

/* How a tile instruction meets its bundle format: rows of lower.def. */
typedef enum cps_shape {
    CPS_SHAPE_EACH,
    CPS_SHAPE_REDUCE,
    CPS_SHAPE_WHOLE,
    CPS_SHAPE_PE,
    CPS_SHAPE_DMA,
    CPS_SHAPE_SEQ
} cps_shape;

typedef struct cps_lower_row {
    cps_shape shape;
    uint8_t dims;
    const char *outs, *ins;
} cps_lower_row;

extern const cps_lower_row cps_lower[CPS_TOPS];

typedef struct cps_constcol {
    uint32_t bits, buf;
} cps_constcol;

typedef struct cps_column {
    cps_tview src;
    uint16_t start;
    cps_dtype want;
    uint32_t version, view;
} cps_column;

typedef struct cps_legal {
    cps_cg *g;
    cps_tfunc *f;
    CPS_VEC(cps_tinst) head; /* hoisted to the front: constants */
    CPS_VEC(cps_tinst) out;
    CPS_VEC(uint32_t) version; /* per buffer: how often it was written so far */
    CPS_VEC(cps_constcol) consts;
    CPS_VEC(cps_column) columns;
    CPS_VEC(cps_tview) idents; /* one identity tile per dtype */
    int depth;                 /* open loops and branches */
} cps_legal;

/* Appends an instruction and notes what it writes. */
void cps_legal_emit(cps_legal *l, const cps_tinst *x);
uint32_t cps_legal_buf(cps_legal *l, cps_tbuf b);
/* A private SBUF buffer of `parts` partitions from `start`, `elems` elements each; the whole of
 * it as a view. */
cps_tview cps_legal_temp(cps_legal *l, const char *name, cps_dtype t, unsigned start,
                         unsigned parts, int64_t elems, cps_span loc);
/* Physical first partition of an on-chip view. */
unsigned cps_legal_start(const cps_tfunc *f, const cps_tview *v);
/* A column with `value` in every partition from `start`, made once at the front. */
cps_tview cps_legal_constcol(cps_legal *l, float value, unsigned start, unsigned parts,
                             cps_span loc);
/* Makes every scalar operand of `x` encodable. */
bool cps_legal_scalars(cps_legal *l, cps_tinst *x);
bool cps_legal_matmul(cps_legal *l, const cps_tinst *x);
bool cps_legal_transpose(cps_legal *l, const cps_tinst *x);
/* What a datapath instruction would cost on engine `e`. */
void cps_tile_cost(const cps_cg *g, const cps_tinst *x, cps_engine e, cps_cost *out);

#endif
