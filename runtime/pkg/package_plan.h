/* What writing a package needs: offsets of constants and temporaries (package_plan.c), and a folder
 * without an older package in it (package_clear.c). */
#ifndef CPS_PKG_PACKAGE_PLAN_H
#define CPS_PKG_PACKAGE_PLAN_H

#include "runtime/pkg/package.h"

void cps_package_plan(cps_package *p);
void cps_package_clear(cps_arena *a, const char *dir);

#endif
