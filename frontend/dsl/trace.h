/* Tracing: a leaf body run at compile time, leaving a tile program. */
#ifndef CPS_DSL_TRACE_H
#define CPS_DSL_TRACE_H

#include "frontend/dsl/eval.h"
#include "frontend/dsl/load.h"
#include "ir/tile.h"
#include "kernels/instance.h"

typedef struct cps_trace_opts {
    const cps_dsl_set *set;
    const cps_dsl_leaf *leaf;
    const cps_dsl_op *op;
    const cps_instance *inst; /* complete: results inferred, attributes filled in */
    uint16_t nconfig;
    const cps_attr *config; /* resolved params of the leaf */
    int core;
    int64_t step_limit; /* 0: the evaluator's default */
} cps_trace_opts;

/* The tile program of one core, in `a`; NULL after errors in `d`. Values of the trace live in
 * an arena of their own and are gone when this returns. Arguments are the HBM buffers in the
 * op's order, operands that are present first, then results. */
cps_tfunc *cps_dsl_trace(cps_arena *a, const cps_trace_opts *o, cps_diags *d);

#endif
