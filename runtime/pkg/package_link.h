/* A whole package as one kernel: its steps behind one another in the five streams, with a
 * barrier between them, so that one launch runs the model. What a container holds, for a
 * container is one program. */
#ifndef CPS_PKG_PACKAGE_LINK_H
#define CPS_PKG_PACKAGE_LINK_H

#include "runtime/pkg/package.h"

typedef struct cps_link {
    cps_kbin *kbin;    /* variables by the package's names; kernels' own as KERNEL.NAME; with a peer
                        * when a step has one */
    int64_t *backing[2]; /* of each core, per variable: offset in the package's arena of temporaries or in its
                        * weights, or -1 */
    uint32_t barriers; /* between steps */
} cps_link;

/* Links all steps; one step comes out with its very streams. Constants stay where they are, so
 * `p` must outlive the result. False after E8405: host steps, streams that end by themselves,
 * no semaphores left for the barriers, arguments that do not fit. */
bool cps_package_link(cps_arena *a, const cps_package *p, cps_link *out, cps_diags *d);

#endif
