/* The combining table: which instructions an expression becomes.
 *
 * A statement's expression is a small graph of nodes, equal ones shared. cps_x_cover covers it
 * by rows of the table: of the rows that match at the root the one that covers most operators,
 * of those the cheapest in cycles, of those the first; what is not covered becomes an fp32
 * temporary and is treated alike. The result is a list of instructions on nodes, temporaries,
 * numbers and the destination. Nothing here knows the syntax tree or touches the tile program.
 */
#ifndef CPS_DSL_TRACE_COMBINE_H
#define CPS_DSL_TRACE_COMBINE_H

#include "codegen/isa/isa.h"
#include "codegen/isa/target.h"
#include "frontend/dsl/trace_view.h"

typedef enum cps_xkind {
    CPS_X_TILE,  /* a view on chip */
    CPS_X_NUM,   /* a number */
    CPS_X_INDEX, /* base + channel * partition + col * column: row() and col() and their sums */
    CPS_X_ALU,   /* a `sub` b; comparisons give 1.0 or 0.0 */
    CPS_X_FUNC,  /* activation function `sub` of a */
    CPS_X_RECIP, /* 1 / a */
    CPS_X_REDUCE, /* `sub` over the last `axes` free axes of a */
    CPS_X_SELECT, /* a ? b : c */
    CPS_X_SCAN,   /* r = (a `sub` r) `sub2` b, from c */
    CPS_X_PREV,   /* the running value inside scan() */
    CPS_X_KINDS
} cps_xkind;

typedef uint32_t cps_xid; /* index into the graph; 0 is none */

typedef struct cps_xnode {
    cps_xkind kind;
    uint16_t sub, sub2; /* ALU and reduce operators: cps_alu; FUNC: cps_actfn */
    int axes;
    cps_xid a, b, c;
    double num;
    bool is_int; /* NUM written as an integer */
    int64_t base, channel, col;
    const cps_view *view;
    cps_span at; /* for messages */
    /* Shape. rows 0: any number of rows (numbers, `all` rows, col()). */
    int64_t rows;
    int nfree;
    int64_t free[CPS_VIEW_AXES];
} cps_xnode;

typedef struct cps_xgraph {
    cps_arena *arena;
    CPS_VEC(cps_xnode) n; /* n.data[0] unused */
} cps_xgraph;

void cps_x_init(cps_xgraph *g, cps_arena *a);
static inline const cps_xnode *
cps_x_at(const cps_xgraph *g, cps_xid i)
{
    return &g->n.data[i];
}
int64_t cps_x_elems(const cps_xnode *n); /* product of the free axes */

/* Constructors share equal nodes and fold what the language folds: numbers, `a - C` into
 * `a + (-C)`, `a / C` into `a * (1/C)`, sums of indices. They yield 0 after filling *e. */
cps_xid cps_x_tile(cps_xgraph *g, const cps_view *v, cps_span at, cps_view_err *e);
cps_xid cps_x_num(cps_xgraph *g, double v, bool is_int, cps_span at);
cps_xid cps_x_index(cps_xgraph *g, int64_t base, int64_t channel, int64_t col, int64_t rows,
                    int64_t cols, cps_span at);
cps_xid cps_x_alu(cps_xgraph *g, cps_alu op, cps_xid a, cps_xid b, cps_span at,
                  cps_view_err *e);
cps_xid cps_x_div(cps_xgraph *g, cps_xid a, cps_xid b, cps_span at, cps_view_err *e);
cps_xid cps_x_func(cps_xgraph *g, cps_actfn f, cps_xid a, cps_span at);
cps_xid cps_x_reduce(cps_xgraph *g, cps_alu op, cps_xid a, int axes, cps_span at,
                     cps_view_err *e);
cps_xid cps_x_select(cps_xgraph *g, cps_xid c, cps_xid a, cps_xid b, cps_span at,
                     cps_view_err *e);
cps_xid cps_x_prev(cps_xgraph *g, cps_span at);
/* `body` is (A op0 prev) op1 B in any commuted form. */
cps_xid cps_x_scan(cps_xgraph *g, cps_xid body, cps_xid init, cps_span at, cps_view_err *e);
bool cps_x_is_mask(const cps_xgraph *g, cps_xid i); /* comparison or && || of such */

/* Shape rules shared with the tracer: false after *e when the shapes cannot meet. */
bool cps_x_meet(const cps_xgraph *g, cps_xid a, cps_xid b, int64_t *rows, int *nfree,
                int64_t *free, cps_view_err *e);

/* ---- what comes out ---- */
typedef enum cps_xval_kind {
    CPS_XV_NONE,
    CPS_XV_NODE,  /* a TILE node of the graph */
    CPS_XV_TEMP,  /* index into plan->temps */
    CPS_XV_NUM,   /* immediate */
    CPS_XV_HOIST, /* a [p,1] tile that holds a number */
    CPS_XV_DST,   /* the destination */
    CPS_XV_RED    /* the target of `reduce into` */
} cps_xval_kind;

typedef struct cps_xval {
    cps_xval_kind kind;
    uint32_t id;
    double num;
    bool is_int;     /* NUM, HOIST: an integer */
    cps_dtype dtype; /* HOIST */
} cps_xval;

typedef struct cps_xtemp {
    cps_dtype dtype;
    int64_t rows;
    int nfree;
    int64_t free[CPS_VIEW_AXES];
    bool psum_ok;
} cps_xtemp;

typedef struct cps_xinst {
    cps_top op;
    uint8_t engine;
    bool pinned;
    uint8_t row; /* of the combining table */
    cps_xval out, acc;
    cps_xval in[3];
    uint32_t set;
    int32_t attr[CPS_TATTRS];
    int64_t col; /* IOTA, AFFINE_SELECT: index step per column */
    int axes;    /* TENSOR_REDUCE: reduced free axes of in[0] */
    int64_t cycles;
} cps_xinst;

typedef struct cps_xdst {
    cps_xid node; /* the destination as a TILE node */
    cps_xid red;  /* target of `reduce`, as a TILE node; 0 none */
    cps_alu red_op;
    bool onto;
    cps_engine pin; /* CPS_ENGINE_ANY */
} cps_xdst;

typedef struct cps_xplan {
    CPS_VEC(cps_xinst) insts;
    CPS_VEC(cps_xtemp) temps;
    cps_span at;   /* of the operator an error is about */
    bool warn_int; /* 32-bit integers in floating arithmetic with numbers above 2^24 */
} cps_xplan;

/* False after *e (plan->at is the place). */
bool cps_x_cover(cps_xgraph *g, cps_xid root, const cps_xdst *dst, const cps_target *t,
                 cps_xplan *plan, cps_view_err *e);

/* Cycles of an instruction by the NKI cost formulas; `n` elements per partition. */
typedef struct cps_xcost {
    cps_top op;
    cps_engine engine;
    int64_t n;
    const cps_view *out;   /* NULL: an fp32 tile in sbuf */
    const cps_view *in[2]; /* tensor operands; NULL as above */
    int nin;
    cps_alu op0, op1;
    bool acc;
    bool zero; /* memset of 0 */
} cps_xcost;
int64_t cps_x_cycles(const cps_target *t, const cps_xcost *c);

const char *cps_x_plan_text(cps_arena *a, const cps_xgraph *g, const cps_xplan *p);

#endif
