/* Private to the evaluator: functions on known values, facts of the target, and the pieces of the
 * evaluator that its two files share. */
#ifndef CPS_DSL_BUILTIN_H
#define CPS_DSL_BUILTIN_H

#include "frontend/dsl/eval.h"

/* A function of function.def on known positional arguments. PASS when it has no such form. */
cps_hook cps_builtin_call(cps_eval *ev, const cps_ast_call *e, const cps_ast_name *name,
                          const cps_arg *arg, cps_cv *out);
/* target.name(args) */
bool cps_builtin_target(cps_eval *ev, const cps_ast_call *e, const cps_ast_name *name,
                        const cps_arg *arg, cps_cv *out);
bool cps_builtin_supports(cps_eval *ev, const cps_ast_name *name, cps_cv *out);

/* Values that only the driver can combine. */
static inline bool
cps_is_driver(cps_cv v)
{
    return v.kind == CPS_V_OPAQUE || v.kind == CPS_V_WORD;
}

/* Counts one step; false once the limit is reached. */
bool cps_eval_step(cps_eval *ev, cps_span at);
/* One level deeper on the C stack (statement or expression); the caller takes 1 off ev->depth. False
 * after E2902 at the limit. */
enum { CPS_EVAL_DEPTH = 2000 };
bool cps_eval_enter(cps_eval *ev, cps_span at);
/* Writes the notes that are due for the last error. */
void cps_eval_flush_trail(cps_eval *ev);
/* The values of an enum whose name was evaluated before. */
const cps_enum_value *cps_eval_enum_values(cps_eval *ev, const cps_ast_enum *n);

#endif
