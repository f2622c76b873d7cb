/* Parts of the program that are opened on demand, so that what does not need them never loads
 * what they depend on: shared objects beside the program, in its lib/ or in ../lib/. */
#ifndef CPS_BASE_MODULE_H
#define CPS_BASE_MODULE_H

#include "runtime/base/base.h"

/* Opens `name` ("libcopse-x.so"); opening it again only counts. It stays loaded: its libraries
 * may keep state that must outlive other threads' use. NULL when it is not there (*why is NULL
 * then) or cannot be loaded (*why says so, until the next call). */
void *cps_module_open(const char *name, const char **why);

#endif
