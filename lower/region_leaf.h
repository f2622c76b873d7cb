/* Inside the writer of a region's leaf: what region_leaf.c (loops, loads, stores),
 * region_tile.c (one op as statements), region_int.c (those of integers) and region_range.c (what
 * values can be) share. */
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
    bool decides;    /* a rounding, a cut or a comparison is behind it, numbers and bounds at most between */
    bool inlined;    /* written inside the one statement that uses it */
    bool done, gone; /* has its tile; was overwritten */
    int sum;         /* the SUM or MEAN that the statement adds into, or -1 */
    int64_t made;    /* bytes of a column that its statements declare, its own tile and steps between */
} cps_rgtile;

/* Bounds of a value that is not NaN; whole: it has no fraction. */
typedef struct cps_rgrange {
    double lo, hi;
    bool whole;
} cps_rgrange;

typedef struct cps_rgen {
    const cps_region *r;
    const cps_target *t;
    cps_buf *out;
    cps_arena *a;
    int64_t T, N, R; /* extents of the partition and the column axis; partitions of a row */
    bool whole;      /* rows lie whole in SBUF: no loop over columns, tiles stay */
    bool rows_first; /* rows are made before the loop over T, as long as N */
    int indent, slots, store_slots;
    int pass; /* over the row, while statements are written */
    double load[CPS_ENGINES]; /* ns for each column */
    double count[CPS_ENGINES];
    int64_t column, row; /* bytes declared so far: of a column of the tiles, of rows that come first */
    cps_rgtile v[CPS_RG_NODES + CPS_RG_NODES * 3];
    cps_rgrange range[CPS_RG_NODES + CPS_RG_NODES * 3];
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
/* The op takes one of two numbers that lie apart, and which one may hang on the last bit of its operand. */
bool cps_rg_decides(const cps_rvalue *v);
/* The first that reads value k, or -1. */
int cps_rg_user(const cps_rgen *g, int k);
/* The op may give different results for operands that differ in the last bit, or makes much of it. */
bool cps_rg_is_sharp(const cps_region *r, const cps_rvalue *v);

/* ---- inside the statements ---- */

/* Value k is a number in the text. */
bool cps_rg_is_number(const cps_rgen *g, int k);
/* The number as the text has it. */
const char *cps_rg_number(const cps_rgen *g, int k);
/* Value k as it is read has the extents of the class. */
bool cps_rg_has_shape(const cps_rgen *g, int k, cps_rgclass c);
/* An operand is a number in the text or in a column. */
bool cps_rg_meets_number(const cps_rgen *g, const cps_rvalue *v, cps_rgclass c);
/* Of the tile that is read; none for numbers. */
cps_dtype cps_rg_dtype_read(const cps_rgen *g, int k);
/* Declares the node's own tile, for an instruction that is written as such; its name. */
const char *cps_rg_fresh(cps_rgen *g, int k);
/* `sbuf v[t, c]: bf16 = EXPR;` for the node's own tile. */
void cps_rg_give(cps_rgen *g, int k, const char *expr, const char *mark);
/* The tag of an operand's tile that node k makes for itself. */
const char *cps_rg_own(const cps_rgen *g, int k, char what);
/* Work of an engine, in passes over the columns. */
void cps_rg_charge(cps_rgen *g, cps_rgclass c, cps_engine e, double columns);
double cps_rg_scalar_pass(const cps_rgen *g, cps_dtype in, cps_dtype out);
double cps_rg_tensor_pass(cps_dtype a, cps_dtype b, cps_dtype out);

/* Integers and truth values that fp32 holds, whatever their value. */
bool cps_rg_is_short(cps_dtype t);

/* ---- functions of several instructions (region_fn.c) ---- */

void cps_rg_log(cps_rgen *g, int k);
void cps_rg_sine(cps_rgen *g, int k); /* and cosine */
void cps_rg_arctangent(cps_rgen *g, int k);
void cps_rg_whole_number(cps_rgen *g, int k); /* floor, ceil, round */

/* ---- integers (region_int.c) ---- */

/* The tile `<k>g`: a number with the sign of a - b, both i32 tiles. */
void cps_rg_difference(cps_rgen *g, int k, const char *a, const char *b);
/* Neg, abs, sign, square, relu, not; larger and smaller; quotient and remainder; bits. */
void cps_rg_int_unary(cps_rgen *g, int k);
void cps_rg_int_bound(cps_rgen *g, int k);
void cps_rg_int_divide(cps_rgen *g, int k);
void cps_rg_int_bits(cps_rgen *g, int k);
/* A cast to an integer that does not hold all of the operand's: low bits. */
void cps_rg_int_wrap(cps_rgen *g, int k);

/* ---- running sums (region_scan.c) ---- */

/* What stands before a pass over the row, and the statements of a node. */
void cps_rg_scan_start(cps_rgen *g, int k);
void cps_rg_scan(cps_rgen *g, int k);

/* ---- what values can be (region_range.c) ---- */

void cps_rg_ranges(cps_rgen *g);
bool cps_rg_fits(const cps_rgen *g, int k, double most);     /* |value| <= most */
bool cps_rg_holds(const cps_rgen *g, int k, cps_dtype t);    /* the integer dtype holds it */

static inline bool
cps_rg_reduces(cps_op op)
{
    return op == CPS_OP_SUM || op == CPS_OP_MEAN || op == CPS_OP_RMAX || op == CPS_OP_RMIN;
}

#endif
