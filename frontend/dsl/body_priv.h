/* Private to the body builder (body.c, body_index.c, body_fn.c). */
#ifndef CPS_DSL_BODY_PRIV_H
#define CPS_DSL_BODY_PRIV_H

#include "frontend/dsl/body.h"
#include "frontend/dsl/builtin.h"

enum { CPS_BODY_TENSOR = 1, CPS_BODY_PLACE = 2 }; /* tags of opaque values */
enum { CPS_BODY_DEPTH = 16 };                     /* op calls inside op calls */

/* A part of a tensor, axis by axis: start, start + step, ... count positions; or the positions
 * that `index` (an integer tensor) names. `drop`: a single position whose axis goes. */
typedef struct cps_region {
    int rank; /* of the whole tensor */
    struct {
        int64_t start, step, count;
        cps_val index; /* 0: static */
        bool drop;
    } axis[CPS_MAX_RANK];
    bool dynamic; /* some axis has an index */
    bool whole;   /* everything, in order */
} cps_region;

typedef struct cps_write {
    cps_region r;
    cps_val v; /* of the region's shape, unit axes kept */
    cps_span at;
} cps_write;

/* A result, or an operand that is updated in place. */
typedef struct cps_place {
    const char *name;
    cps_type type;
    cps_val value; /* as of the last read; 0: nothing whole yet */
    CPS_VEC(cps_write) writes; /* since then */
    bool inout;
    bool read;    /* since it was last written whole: may be written again, from itself */
    bool started; /* `value` stands for zeros that later writes must cover */
    cps_span at;
} cps_place;

typedef struct cps_body {
    cps_eval ev;
    cps_builder b;
    cps_dsl_set *s;
    cps_arena *scratch;
    const cps_dsl_op *op;
    bool inlined;
    int depth;
    uint32_t nplace;
    cps_place *place;
} cps_body;

static inline cps_body *
cps_body_of(cps_eval *ev)
{
    return ev->c.user;
}

/* A value of the graph as the evaluator sees it; false (counted as an error of the evaluator) when
 * `v` is 0, after the builder has reported. */
bool cps_body_give(cps_body *y, cps_val v, cps_cv *out);
/* A tensor out of an evaluated operand: a tensor, what a place holds, or a number as rank 0 of
 * dtype `as` (CPS_DT_NONE: fp32, i32 or bool by kind). 0 after an error. */
cps_val cps_body_tensor(cps_body *y, cps_cv v, cps_dtype as, cps_span at);
/* Two operands brought to one dtype (see body.h). */
bool cps_body_promote(cps_body *y, cps_cv a, cps_cv b, cps_span at, cps_val *x, cps_val *z);
cps_hook cps_body_binary(cps_body *y, cps_ast_bin op, cps_span at, cps_cv a, cps_cv b, cps_cv *out);
/* Brings a place's value up to date; 0 after E2311. */
cps_val cps_body_read(cps_body *y, cps_place *p, cps_span at);

/* body_index.c */
bool cps_body_region(cps_body *y, const cps_ast_index *e, const cps_type *t, cps_region *out);
cps_region cps_body_all(const cps_type *t);
cps_val cps_body_slice(cps_body *y, cps_val x, const cps_region *r);
/* x with `v` (of the region's shape, unit axes kept) put at the region. */
cps_val cps_body_update(cps_body *y, cps_val x, const cps_region *r, cps_val v);
/* Extents of a region; with `keep`, dropped axes count 1. */
cps_type cps_body_region_type(cps_body *y, const cps_region *r, cps_dtype t, bool keep);
cps_hook cps_body_view(cps_body *y, const cps_ast_call *e, cps_val x, const cps_arg *arg,
                       uint32_t n, cps_cv *out);

/* body_fn.c */
cps_hook cps_body_call(cps_eval *ev, const cps_ast_call *e, const cps_ast_name *name,
                       const cps_arg *arg, uint32_t n, cps_cv *out);

/* body.c: the body of another operator, on values of this graph. */
bool cps_body_inline(cps_body *y, const cps_dsl_op *op, const cps_instance *i, const cps_val *in,
                     cps_val *out, cps_span at);

#endif
