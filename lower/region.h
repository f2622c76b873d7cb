/* Regions: connected elementwise ops, broadcasts, casts, selects and row reductions as one
 * kernel, which is written in the kernel language (region.c: which nodes; region_op.c: the
 * mathematics; region_leaf.c: the tiles; region_tile.c: one op as statements).
 *
 * A region has one iteration space, a few axes from the outermost in. Every value of it varies
 * along some of them and is the same along the others. The last axis lies along the columns,
 * the one before it on the partitions, those before are loops. */
#ifndef CPS_LOWER_REGION_H
#define CPS_LOWER_REGION_H

#include "lower/lower.h"
#include "lower/pass.h"

#define CPS_RG_AXES 4     // of the iteration space
#define CPS_RG_OPERANDS 12
#define CPS_RG_RESULTS 8
#define CPS_RG_NODES 64
#define CPS_RG_LONG_ROW 8192
#define CPS_RG_FEW_ROWS 16
#define CPS_RG_SCAN_ROW 8192 // elements of a row of integers that a scan sums exactly

typedef enum cps_rvkind { CPS_RV_INPUT, CPS_RV_NUMBER, CPS_RV_NODE } cps_rvkind;

typedef struct cps_rvalue {
    cps_rvkind kind;
    cps_op op;       // NODE
    cps_dtype dtype; // of the graph's value
    cps_val val;     // of the function; 0 for numbers
    unsigned mask;   // axes it varies along: bit 0 is the outermost
    double number;   // NUMBER
    int nin, in[3];  // NODE: values before it
    int cut;         // INPUT: the axis, counted from 1, that holds more in memory than is read; 0: none
    int64_t start, extent; // INPUT that is cut: the first element along that axis, and all of them
    bool exclusive;  // CUMSUM: without the element itself
    int slot;        // INPUT: operand; NODE: result, or -1
} cps_rvalue;

typedef struct cps_region {
    int naxes; // at least 2, but 1 for a space that may be laid out freely
    int64_t axis[CPS_RG_AXES];
    int n, noperands, nresults;
    bool reduces; // along the last axis
    cps_rvalue v[CPS_RG_NODES + CPS_RG_NODES * 3];
} cps_region;

/* Whether an engine computes the node exactly as its dtypes ask, alone or in a region. When not,
 * *why (may be NULL) is a reason for people, or NULL when the op is simply none for a region. */
bool cps_region_takes(const cps_func *f, const cps_node *n, const char **why);

/* Before regions are formed: what engines compute otherwise than the graph is made of what they do (region_rules.c). */
bool cps_region_ready(cps_lower *l, cps_module *m);
/* What broadcasts in a way that no compact space has, and has no leaf of its own, meets its operands written out. */
bool cps_region_write_out(cps_lower *l, cps_module *m, cps_func *f, unsigned *changes);

/* The one axis that a slice cuts, by steps of one, or -1: what a region reads where it lies. */
int cps_region_slice_axis(const cps_func *f, const cps_node *n);

/* A call that a region may hold as ops of its own: how many nodes, or 0 (region_open.c). */
int cps_region_opens(const cps_func *f, const cps_node *n);

/* Writes the nodes of the call, whose operands are values `in`; the one that is its result. */
typedef struct cps_opening {
    cps_dtype dtype;   // of the call
    unsigned all, row; // axes of its result; those of a number for each row
    double eps;
} cps_opening;
int cps_region_open(cps_region *r, const cps_node *n, const int *in, const cps_opening *o);
/* The value of a number, made once. */
int cps_region_add_number(cps_region *r, double x, cps_dtype t);

/* The cost terms of the leaf that is written for it, and whether that holds rows whole in SBUF, and then
 * so tightly that loads and stores hardly run beside engines (region_leaf.c). */
cps_costs cps_region_costs(const cps_region *r, const cps_target *t, bool *whole, bool *tight);
/* Calls cost clearly less inside the region than outside it, beside what is left of it (NULL: nothing) (region_cost.c). */
bool cps_region_pays(cps_lower *l, const cps_func *f, const cps_region *with, const cps_region *rest, int ncalls,
                     const cps_node *const *call);

/* `op NAME(...) -> ... { ... }`. */
void cps_region_op(const cps_region *r, const char *name, cps_buf *out);
/* `leaf NAME_tiles for NAME on TARGET { ... }`. */
void cps_region_leaf(const cps_region *r, const char *name, const cps_target *t, cps_buf *out);

/* Few very long rows, of which each lies on one partition, are none for a region. */
static inline bool
cps_region_too_long(int64_t row, int64_t total)
{
    return row > CPS_RG_LONG_ROW && total / row < CPS_RG_FEW_ROWS;
}

static inline unsigned
cps_region_all(const cps_region *r)
{
    return (1u << r->naxes) - 1;
}
/* Of the operand in memory, along axis i. */
static inline int64_t
cps_region_extent(const cps_region *r, const cps_rvalue *v, int i)
{
    return v->cut == i + 1 ? v->extent : v->mask >> i & 1 ? r->axis[i] : 1;
}
/* Elements along the axes of the mask. */
static inline int64_t
cps_region_count(const cps_region *r, unsigned mask)
{
    int64_t n = 1;
    for (int i = 0; i < r->naxes; i++)
        n *= mask >> i & 1 ? r->axis[i] : 1;
    return n;
}

/* A number as the language reads it. */
void cps_region_number(double x, cps_buf *out);

#endif
