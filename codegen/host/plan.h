/* What the host generator makes out of a graph function before any code: values with a place in
 * memory, and groups of stages. Everything here is free of LLVM.
 *
 * Values. A stored value has memory of its own: an input, a constant, an output or scratch. A
 * view is another way to read a stored value: offset and strides in elements (transposes,
 * reshapes, broadcasts, slices). An inlined value has no memory; whoever reads it computes it.
 *
 * Stages. A stage is one counted loop nest that evaluates a list of expressions at every point
 * and stores or accumulates the last one. Every address in it is affine in the loops of the
 * nest. Stages of one group share their first `rows` loops, so that rows stay in the caches;
 * values that live only inside a group keep one row of storage. */
#ifndef CPS_CODEGEN_HOST_PLAN_H
#define CPS_CODEGEN_HOST_PLAN_H

#include "codegen/host/host.h"

enum { HOST_LOOPS = CPS_MAX_RANK + 2 };

typedef enum host_kind { HV_DEAD, HV_STORED, HV_VIEW, HV_INLINE, HV_FUSED } host_kind;
typedef enum host_place { HP_NONE, HP_IN, HP_OUT, HP_CONST, HP_SCRATCH } host_place;

typedef struct host_val {
    uint8_t kind, place;
    bool row;                     /* scratch of one row of its group */
    bool shared;                  /* its memory is another value's too: in place */
    cps_val alias;                /* that other value, placed for both */
    uint32_t uses;                /* by live nodes, and as outputs */
    uint32_t cost;                /* inlined: operations behind it */
    cps_val base;                 /* stored: itself; view: the stored value */
    int64_t off;                  /* view: elements */
    int64_t stride[CPS_MAX_RANK]; /* elements */
    uint32_t index;               /* of the input, output or constant */
    int64_t bytes, at;            /* scratch */
    uint32_t first, done, last;   /* groups that touch first, write last, touch last; + 1 */
} host_val;

/* c + the sum of a[l] times the counter of loop l. */
typedef struct host_aff {
    int64_t c, a[HOST_LOOPS];
} host_aff;

typedef enum host_xkind { HX_LOAD, HX_IMM, HX_POS, HX_OP, HX_GATHER } host_xkind;

typedef struct host_x {
    uint8_t kind;
    cps_dtype dtype;
    const cps_node *node; /* OP */
    cps_val base;         /* LOAD, GATHER: stored value read */
    host_aff at;          /* its element; POS: the number itself */
    int64_t step, extent; /* GATHER: elements per index, indices there are */
    const void *imm;      /* IMM: one element */
    uint32_t nin, in[3];  /* OP; GATHER: in[0] is the index */
} host_x;

typedef enum host_skind {
    HS_MAP,     /* out[store] = x */
    HS_REDUCE,  /* over the marked loops; node says how */
    HS_SCAN,    /* running sum along the marked loop; node says how */
    HS_SCATTER, /* out[store + index * step] = or += x, index in in[0] */
    HS_SORT,
    HS_MATMUL
} host_skind;

/* One operand of a product: element strides of rows, columns and batch axes. */
typedef struct host_mat {
    cps_val base; /* 0: none */
    int64_t off, rs, cs, bs[CPS_MAX_RANK];
} host_mat;

/* How a product is cut: register tiles of mr rows and nv vectors, blocks of kc and mc that stay
 * in the caches, and what is packed. All of it follows from extents, strides and the processor.
 */
typedef struct host_tile {
    int lanes; /* elements of a vector */
    int mr, nv;
    int64_t mc, kc;
    bool pack_a, pack_b;
    bool dot;         /* few rows, both operands contiguous along k: sums along k instead */
    int64_t a_stride; /* of a packed row, elements */
    int64_t a_bytes, b_bytes;
} host_tile;

typedef struct host_mm {
    host_tile tile;
    cps_val work; /* a_bytes, then b_bytes; 0: none */
    cps_dtype dtype;
    int64_t m, n, k;
    int nbatch;
    int64_t batch[CPS_MAX_RANK];
    host_mat a, b, c, add; /* c = a b + add */
} host_mm;

typedef struct host_sort {
    int64_t outer, n, inner;
    bool down;
    int nloop; /* lanes: loops over the other axes */
    int64_t extent[CPS_MAX_RANK];
    int64_t from[CPS_MAX_RANK], to[CPS_MAX_RANK]; /* strides of operand and results */
    cps_val base, values, order;                  /* results may be 0 */
    int64_t off, step, out_step;                  /* along the axis */
    cps_val work;
} host_sort;

typedef struct host_stage {
    uint8_t kind;
    const cps_node *node;
    int nloop;
    int64_t extent[HOST_LOOPS];
    bool marked[HOST_LOOPS]; /* reduced or scanned */
    host_x *x;
    uint32_t nx;         /* the result is x[nx - 1] */
    uint32_t index;      /* SCATTER: which x is the index */
    int64_t step, limit; /* SCATTER: elements per index, indices there are */
    cps_val to;
    cps_dtype dtype; /* of `to` */
    host_aff store;
    host_mm *mm;
    host_sort *sort;
} host_stage;

typedef struct host_group {
    int rows;    /* leading loops shared by all stages */
    bool closed; /* takes no further stage */
    CPS_VEC(host_stage) stages;
} host_group;

typedef struct host_plan {
    cps_arena *arena;
    const cps_module *m;
    const cps_func *f;
    const int64_t *offset;
    cps_diags *d;
    host_val *val; /* one per value of f, then the extra ones */
    uint32_t nval;
    CPS_VEC(host_group) groups;
    int64_t scratch, weights; /* bytes */
    int lanes, registers;     /* of the processor: fp32 in a vector, vectors */
} host_plan;

/* Types and constants the host can do. False after E7201, E7202 or E7203, one for each fault.
 */
bool cps_host_check(host_plan *p);

/* Decides which values are stored, and makes groups of stages. */
void cps_host_fuse(host_plan *p);

/* Expressions: a stage whose nest covers `t`, with the identity as its index; then the value
 * `v` read at index map `map` (one affine number for each axis of v). */
typedef struct host_build {
    host_plan *p;
    CPS_VEC(host_x) x;
    CPS_VEC(struct {
        cps_val v;
        uint32_t id;
        host_aff map[CPS_MAX_RANK];
    })
    memo;
} host_build;
uint32_t cps_host_expr(host_build *b, cps_val v, const host_aff *map);
uint32_t cps_host_expr_op(host_build *b, const cps_node *n, const host_aff *map);
/* Index map of the operand of a reshape; false when it is not affine. */
bool cps_host_reshape_map(const cps_type *in, const cps_type *out, const host_aff *to,
                          host_aff *map);

/* Fills q->tile for a processor with vectors of `lanes` fp32 elements and that many of them. */
void cps_host_tile_of(host_mm *q, int lanes, int registers);

/* Adds a stage to a group it can run in. */
void cps_host_group(host_plan *p, host_stage s);

/* Every access of the stage to v stays in the row of the first `rows` loops. */
bool cps_host_in_row(const host_plan *p, const host_stage *s, cps_val v, int rows);
void cps_host_drop_loop(host_stage *s, int at);

/* After all stages: rows, merged loops, places in scratch. */
void cps_host_place(host_plan *p);

static inline const cps_type *
cps_host_type(const host_plan *p, cps_val v)
{
    return &p->f->vals.data[v].type;
}
static inline const cps_node *
cps_host_def(const host_plan *p, cps_val v)
{
    uint32_t d = p->f->vals.data[v].def;
    return d ? &p->f->nodes.data[d - 1] : NULL;
}
static inline void
cps_host_dense(const cps_type *t, int64_t *stride)
{
    int64_t s = 1;
    for (int i = t->rank - 1; i >= 0; i--) {
        stride[i] = s;
        s *= t->dim[i];
    }
}

#endif
