/* Inside the writer of a region's leaf: what region_leaf.c (loops, loads, stores) and
 * region_tile.c (one op as statements) share. */
#ifndef CPS_LOWER_REGION_LEAF_H
#define CPS_LOWER_REGION_LEAF_H

#include "lower/region.h"

/* What a tile holds: both axes, a number for each row, one row for all, or one number. Rows and
 * single numbers lie on every partition. */
typedef enum cps_rgclass { CPS_RG_FULL, CPS_RG_COL, CPS_RG_ROW, CPS_RG_ONE } cps_rgclass;

typedef struct cps_rgtile {
    int root;        /* the value whose tile this is: casts that widen and broadcasts have none of their own */
    cps_rgclass cls; /* of the root */
    bool loops;      /* it differs between the iterations of the outer loops */
    cps_dtype dtype; /* of the root's tile */
    int level;       /* reductions on the way here */
    int uses;        /* by statements and stores, counted at roots */
    bool sharp;      /* something behind it tells neighbouring numbers apart */
    bool inlined;    /* written inside the one statement that uses it */
    bool done, gone; /* has its tile; was overwritten */
    int sum;         /* the SUM or MEAN that the statement adds into, or -1 */
    int64_t made;    /* bytes of a column that its statements declare, its own tile and steps between */
} cps_rgtile;

typedef struct cps_rgen {
    const cps_region *r;
    const cps_target *t;
    cps_buf *out;
    cps_arena *a;
    int64_t T, N, R; /* extents of the partition and the column axis; partitions of a row */
    bool whole;      /* rows lie whole in SBUF: no loop over columns, tiles stay */
    bool rows_first; /* rows are made before the loop over T, as long as N */
    int indent, slots, store_slots;
    double load[CPS_ENGINES]; /* ns for each column */
    double count[CPS_ENGINES];
    int64_t column, row; /* bytes declared so far: of a column of the tiles, of rows that come first */
    cps_rgtile v[CPS_RG_NODES + CPS_RG_NODES * 3];
} cps_rgen;

/* A line, indented. */
void cps_rg_line(cps_rgen *g, const char *fmt, ...) CPS_PRINTF(2, 3);
/* "[t, c]" of a class, without the brackets. */
const char *cps_rg_extents(const cps_rgen *g, cps_rgclass c);
/* How a statement of class `c` reads value k, inlined text included. */
const char *cps_rg_read(const cps_rgen *g, int k, cps_rgclass c);
/* The root's own name. */
const char *cps_rg_name(const cps_rgen *g, int k);

/* " bufs 4" for a tile that a store reads, else "". */
const char *cps_rg_slots(const cps_rgen *g, int k);

/* The statements of node k. */
void cps_rg_statement(cps_rgen *g, int k);
/* A tile of class c and the dtype that holds value k: k itself where it is one. */
const char *cps_rg_shaped(cps_rgen *g, int k, cps_rgclass c, cps_dtype t, const char *tag);
/* Nodes that a scalar instruction or an activation may take in: x op number or column. */
bool cps_rg_may_inline(const cps_rgen *g, int k, int user);
/* The activation function of an op, or NULL. */
const char *cps_rg_function(cps_op op);
/* The op may give different results for operands that differ in the last bit, or makes much of it. */
bool cps_rg_is_sharp(const cps_region *r, const cps_rvalue *v);

static inline bool
cps_rg_reduces(cps_op op)
{
    return op == CPS_OP_SUM || op == CPS_OP_MEAN || op == CPS_OP_RMAX || op == CPS_OP_RMIN;
}

#endif
