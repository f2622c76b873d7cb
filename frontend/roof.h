/* Rooflines of an operator's mathematics (contract, "Report keys"): what must be computed at the
 * PE's peak, and what must move at the core's bandwidth, whatever leaf runs. */
#ifndef CPS_FRONTEND_ROOF_H
#define CPS_FRONTEND_ROOF_H

#include "kernels/registry.h"

typedef struct cps_roof {
    int64_t flops;       /* of matrix products; causal attention counts half */
    int64_t bytes;       /* operands and results once; of a gathered table or a slice only what is read */
    double roofline_ns;  /* where nothing is computed, results at the core's bandwidth: they pass the DMA engines once */
    double engines_ns;   /* also the declared minimum passes per engine; >= roofline_ns */
    const char *bound;   /* compute or memory */
} cps_roof;

/* False after a diagnostic of the body's tracing. Host instances (target NULL) get no times. */
bool cps_roof_of(cps_registry *r, cps_arena *a, const cps_instance *i, cps_roof *out, cps_diags *d);

#endif
