/* The package of one kernel in the trace cache, as it was written: on a hit no leaf is read, no
 * candidate judged and nothing printed again. The key's components are the build, the target's facts
 * and every option that was given but those that say where to write; kernels that depend on files
 * (-I, --tuned) are not kept, nor large ones, nor those with something to say. */
#ifndef CPS_FRONTEND_KERNEL_CACHE_H
#define CPS_FRONTEND_KERNEL_CACHE_H

#include "frontend/cli.h"
#include "runtime/pkg/package.h"

typedef struct cps_kcache {
    bool on;        /* it may be kept */
    cps_buf parts;  /* the key's components */
    cps_digest key;
    cps_buf bytes;  /* of a hit: `out` points into it */
} cps_kcache;

/* Looks for `kernel compile OP` for `t`; of a hit also which leaf it was and why. */
bool cps_kcache_get(cps_cli *c, const char *op, const cps_target *t, cps_kcache *k, cps_rendered *out,
                    const char **leaf, const char **why);
/* Keeps a fresh package of a lookup that missed. */
void cps_kcache_put(cps_cli *c, const cps_kcache *k, const cps_rendered *r, const char *leaf, const char *why);
void cps_kcache_release(cps_kcache *k);

#endif
