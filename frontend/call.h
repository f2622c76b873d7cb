/* The instance that a command line describes. */
#ifndef CPS_FRONTEND_CALL_H
#define CPS_FRONTEND_CALL_H

#include "frontend/cli.h"

/* A call of operator `op` by --dims, --dtype, --with, --attr and --logical-nc-config, on `t`
 * (NULL: the host). Memory of the command. False after E1104, E1106 or what the operator says
 * to its operands. */
bool cps_cli_call(cps_cli *c, const char *op, const cps_target *t, cps_instance *out);

/* Pins the parameters that --param names, of the leaf that --leaf forces; without --param
 * nothing. False after E1104 or E2401. */
bool cps_cli_pin(cps_cli *c, const cps_instance *i, cps_candidate *k);

#endif
