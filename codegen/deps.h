/* Which earlier operations an operation depends on, by the bytes they touch. */
#ifndef CPS_CODEGEN_DEPS_H
#define CPS_CODEGEN_DEPS_H

#include "codegen/pass.h"

typedef struct cps_deps cps_deps;
typedef CPS_VEC(uint32_t) cps_oplist;

/* False only when the two accesses surely share no byte. Exact for nested regular walks (tiles
 * of one tensor, interleaved columns), otherwise on the safe side. */
bool cps_acc_overlap(const cps_macc *a, const cps_macc *b);

cps_deps *cps_deps_new(cps_arena *a, const cps_mprog *p, const cps_target *t);
/* Appends to `out` the earlier operations that `op` must follow: those that touch a common
 * byte, one side writing, and are not hidden behind a later one of the list. Then records `op`.
 * Operations must be given in program order. */
void cps_deps_find(cps_deps *d, uint32_t op, cps_oplist *out);
/* Forgets everything: all that came before is complete. */
void cps_deps_clear(cps_deps *d);

#endif
