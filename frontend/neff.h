/* Containers where other commands meet them: compile makes one, run and sim take one. */
#ifndef CPS_FRONTEND_NEFF_H
#define CPS_FRONTEND_NEFF_H

#include "frontend/cli.h"
#include "runtime/pkg/package.h"

/* Packs the package folder (one kernel of it, or all steps) into the file `to`. */
bool cps_neff_from_package(cps_cli *c, const char *dir, const char *kernel, const char *to);
/* The same for all steps, as model.neff in that folder: --emit neff. */
bool cps_neff_emit(cps_cli *c, const char *dir);
/* A container of ours as a package; NULL after diagnostics. */
cps_package *cps_neff_open_package(cps_cli *c, const char *path);

#endif
