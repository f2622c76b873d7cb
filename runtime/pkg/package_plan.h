/* Offsets of constants and temporaries; see package_plan.c. */
#ifndef CPS_PKG_PACKAGE_PLAN_H
#define CPS_PKG_PACKAGE_PLAN_H

#include "runtime/pkg/package.h"

void cps_package_plan(cps_package *p);

#endif
