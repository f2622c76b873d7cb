/* Our programs as containers, and back. */
#ifndef CPS_PKG_NEFF_PACK_H
#define CPS_PKG_NEFF_PACK_H

#include "runtime/pkg/neff.h"
#include "runtime/pkg/package.h"

/* All steps of the package as one program (package_link), or only the kernel of that name with
 * its own operands. Members refer to the package's constants, so it must outlive the container.
 * W8408 and W8409 where they apply; NULL after E8405. */
cps_neff *cps_neff_pack(cps_arena *a, const cps_package *p, const char *kernel, cps_diags *d);

/* A container made by cps_neff_pack as a package of one step, to be run. NULL after E8404 or
 * E8405. */
cps_package *cps_neff_package(cps_arena *a, const cps_neff *f, cps_diags *d);

#endif
