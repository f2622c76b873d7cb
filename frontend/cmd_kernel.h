/* What other commands share with `copse kernel`. */
#ifndef CPS_FRONTEND_CMD_KERNEL_H
#define CPS_FRONTEND_CMD_KERNEL_H

#include "frontend/cli.h"

/* An operator, called as the options say, as a package in `dir`: of one step, or of a block's. */
cps_exit cps_kernel_compile(cps_cli *c, const char *op, const char *dir);

#endif
