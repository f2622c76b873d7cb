/* What other commands share with `copse compile`. */
#ifndef CPS_FRONTEND_CMD_RUN_H
#define CPS_FRONTEND_CMD_RUN_H

#include "frontend/cli.h"

/* The kernels of a model, one text behind the other: tile programs ("tile"), or listings. */
cps_exit cps_emit_kernels(cps_cli *c, const char *path, const char *emit, const char *to, const cps_target *t);

#endif
