/* Inside the combining table: candidates that the rows offer, and what the cover keeps. */
#ifndef CPS_DSL_TRACE_COVER_H
#define CPS_DSL_TRACE_COVER_H

#include "frontend/dsl/trace_combine.h"

/* What an instruction asks of an operand slot. */
typedef enum cps_xneed {
    CPS_XN_NONE,
    CPS_XN_TILE,   /* a tile of the full shape; numbers are spread into a temporary */
    CPS_XN_SBUF,   /* the same, and not in PSUM */
    CPS_XN_INT,    /* a tile of 32-bit integers; numbers are hoisted */
    CPS_XN_SCALAR, /* immediate or fp32 [p,1] */
    CPS_XN_COLUMN, /* fp32 [p,1]; numbers are hoisted */
    CPS_XN_BIAS,   /* immediate where the target takes one, or float [p,1] */
    CPS_XN_IMM,    /* immediate */
    CPS_XN_MASK,   /* 8- or 16-bit integer tile; comparisons become one */
    CPS_XN_LIKE    /* a tile of the destination's dtype */
} cps_xneed;

typedef struct cps_xslot {
    cps_xid node;
    cps_xneed need;
    double num; /* node 0: this number */
} cps_xslot;

typedef struct cps_xcand {
    uint8_t row;
    int covered;
    int64_t cycles;
    cps_top op;
    cps_engine engine;
    cps_xslot in[3];
    uint32_t set;
    int32_t attr[CPS_TATTRS];
    int64_t col;
    int axes;
    bool red;     /* takes the statement's `reduce` as second output */
    bool scratch; /* the elements go to scratch, the accumulator is the result */
    cps_xslot
        fill;    /* before: the destination is filled with this (copy, or memset of a number) */
    bool in_dst; /* in[0] is the destination after `fill` */
} cps_xcand;

typedef struct cps_xcover {
    cps_xgraph *g;
    const cps_target *t;
    const cps_xdst *dst;
    cps_xplan *plan;
    cps_view_err *e;
    uint32_t *uses; /* per node */
    cps_xval *done; /* per node: its temporary */
    bool ints;      /* row 22: everything is a 32-bit integer */
    /* Of the node at hand. */
    cps_xid at;
    bool root;
    cps_engine pin;
    const cps_view *out; /* NULL: fp32 temporary */
    cps_xcand best;
    cps_xid psum_clash; /* operator whose tensors are both in PSUM */
    bool wrong_engine;  /* rows match, but not on the engine pinned */
} cps_xcover;

static inline void
cps_xcand_set(cps_xcand *c, cps_tattr_key k, int32_t v)
{
    c->set |= 1u << k;
    c->attr[k] = v;
}

/* Offers a candidate on the first of `n` engines that is legal (or the pinned one), with cycles
 * for `elems` elements per partition. */
void cps_x_offer(cps_xcover *c, cps_xcand k, int n, const cps_engine *engines, int64_t elems);
/* Whether the operand may be covered by the instruction of its user. */
bool cps_x_inner(const cps_xcover *c, cps_xid i);
const cps_view *cps_x_view(const cps_xcover *c, cps_xid i); /* NULL unless a TILE */

/* The rows. Each offers what matches at c->at. */
void cps_x_row_scalar(cps_xcover *c);     /* 4, 5, 6, 9 */
void cps_x_row_activation(cps_xcover *c); /* 7, 8 */
void cps_x_row_reduce(cps_xcover *c);     /* 8, 9, 10 on reductions */
void cps_x_row_select(cps_xcover *c);     /* 15 to 18 */
void cps_x_row_rest(cps_xcover *c);       /* 11, 12, 19, 20, 21, 22 */

#endif
