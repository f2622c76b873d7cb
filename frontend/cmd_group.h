/* copse sim KERNEL...: a group of kernels in one time. */
#ifndef CPS_FRONTEND_CMD_GROUP_H
#define CPS_FRONTEND_CMD_GROUP_H

#include "frontend/cli.h"

/* Whether the arguments of `sim` are kernels, not one package. */
bool cps_is_group(const cps_cli *c);
cps_exit cps_cmd_group(cps_cli *c);

#endif
