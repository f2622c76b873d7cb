/* The registry of kernels/registry.h, served by the kernel language. */
#ifndef CPS_DSL_REGISTRY_H
#define CPS_DSL_REGISTRY_H

#include "kernels/registry.h"

/* A registry over the embedded sources. Creating it parses nothing: the index was made at build
 * time, a file is parsed when one of its declarations is first asked for, and of a body what
 * follows the clauses when it is traced, called or printed. Places in messages refer to sources
 * registered in `d`, which must outlive it. What calls return lives in the arena of the call, or
 * in `a`. A registry belongs to one session: threads need one each. */
cps_registry *cps_dsl_registry_create(cps_arena *a, cps_diags *d);
/* Gives the parsed sources back; NULL is fine. */
void cps_dsl_registry_destroy(cps_registry *r);

/* Adds a file of the command line; text and path must outlive the registry. It is parsed and
 * checked at once. False after errors: also E2203 when it declares what is known already. */
bool cps_dsl_registry_add(cps_registry *r, const char *path, const char *text, size_t n,
                          cps_diags *d);

/* For `copse kernel show` and the tuner: the module set behind it, with everything loaded that
 * belongs to `op` (NULL: nothing more). */
struct cps_dsl_set;
struct cps_dsl_set *cps_dsl_registry_set(cps_registry *r, const char *op);

#endif
