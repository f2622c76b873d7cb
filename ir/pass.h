/* Passes that need nothing but the graph: each rewrites a module in place, keeps value ids, and
 * leaves it verified. True when fine; false only after diagnostics. What they remove stays in
 * the module's arena. */
#ifndef CPS_IR_PASS_H
#define CPS_IR_PASS_H

#include "ir/ir.h"

/* Evaluates ops whose operands are all constants, and removes what died. A chain of such ops is
 * computed unrounded and rounded once, where something that is not constant reads it. Results
 * of up to 2^20 elements are folded; larger ones, up to 2^28, when the op only moves or
 * converts and its result is no larger than its operand. Calls are not folded. Ops that have no
 * result (an index out of range, a division by zero) stay as they are. */
bool cps_ir_fold(cps_module *m, cps_diags *d);

/* Removes nodes that no output needs. Inputs stay: they are the function's signature. */
bool cps_ir_dce(cps_module *m, cps_diags *d);

/* Makes equal nodes one: same op, attributes and operands; constants of equal content (large
 * ones only when they are the same bytes in memory); calls of one operator unless a decision
 * differs. */
bool cps_ir_cse(cps_module *m, cps_diags *d);

/* For passes that rebuild a node list: sets every value's `def` anew from the nodes of f. */
void cps_ir_renumber(cps_func *f);

#endif
