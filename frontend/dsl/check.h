/* Private to load.c, check.c and the evaluator: what the language predefines, and which module a
 * check runs in. */
#ifndef CPS_DSL_CHECK_H
#define CPS_DSL_CHECK_H

#include "frontend/dsl/load.h"
#include "runtime/base/num.h"

/* The name an item declares; sym 0 for `use`. */
cps_ast_name cps_dsl_item_name(const cps_ast_item *i);
/* free, all, prev, core, ... */
bool cps_dsl_is_word(const char *name);
/* A function of function.def that `who` (C, L, B) knows. */
bool cps_dsl_is_function(const char *name, char who);
/* A function of the combining table or an instruction: what a leaf may call by name. */
bool cps_dsl_is_leaf_function(const char *name);

#endif
