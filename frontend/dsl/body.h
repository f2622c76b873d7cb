/* Op and block bodies as graph functions: whole-tensor mathematics, NumPy broadcasting. */
#ifndef CPS_DSL_BODY_H
#define CPS_DSL_BODY_H

#include "frontend/dsl/instance.h"
#include "ir/build.h"

/* The body of `op` for a complete instance, as a new function of `m`: inputs are the operands that
 * are present, in the op's order; outputs the results, then the inout operands as they are left.
 * Calls of other operators become `call` nodes, or their bodies when `inlined`. NULL after errors.
 * `d` must be the set's sink (places in bodies belong to its sources).
 *
 * Types: operands of one float dtype keep it; a number that this dtype holds exactly joins it;
 * anything else is worked out in fp32. The result is cast to its declared dtype at the end. */
cps_func *cps_dsl_body(cps_dsl_set *s, cps_module *m, const cps_dsl_op *op, const cps_instance *i,
                       bool inlined, cps_diags *d);

#endif
