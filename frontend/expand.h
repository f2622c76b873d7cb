/* copse kernel show NAME --expand: what each source line becomes. */
#ifndef CPS_FRONTEND_EXPAND_H
#define CPS_FRONTEND_EXPAND_H

#include "frontend/cli.h"

/* Of a leaf, or of the leaf that an operator gets: for --dims and the other options of a call, else for
 * the first of the leaf's own cases. */
cps_exit cps_kernel_expand(cps_cli *c, const char *name);

#endif
