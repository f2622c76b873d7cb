/* What a region costs against what its call costs outside it, by the one cost model (kernels/registry.h).
 *
 * In: a region, a call. Out: nanoseconds. Holds: the figures come from the cost terms of the leaf that would be written and of
 * the library's leaves, so that they are those selection compares. */
#include "lower/region.h"

#include "lower/lower.h"

#include <math.h>

// The model takes engines and transfers to overlap wholly, and the library's leaves are tuned: what gains less than this by
// it was slower as often as faster when it was simulated.
#define CLEAR 1.1
#define TIGHT 1.25

bool
cps_region_pays(cps_lower *l, const cps_func *f, const cps_region *with, const cps_region *rest, int ncalls,
                const cps_node *const *call)
{
    bool whole, tight, any;
    const cps_target *t = l->o->target;
    cps_costs c = cps_region_costs(with, t, &whole, &tight);
    double fused = (double)cps_cost_ns(t, &c, NULL), apart = 0;
    if (!whole) // passes over the row compute again what the library's leaf keeps
        return false;
    if (rest) {
        c = cps_region_costs(rest, t, &whole, &any);
        apart = (double)cps_cost_ns(t, &c, NULL);
    }
    cps_arena *a = cps_arena_create();
    for (int i = 0; i < ncalls; i++) {
        cps_instance inst;
        cps_candidate *cand;
        double best = INFINITY;
        if (!cps_lower_instance(l->o, a, f, call[i], &inst, l->quiet))
            continue;
        unsigned n = l->o->registry->candidates(l->o->registry->self, a, &inst, &cand, l->quiet);
        for (unsigned k = 0; k < n; k++)
            if (cand[k].ok)
                best = fmin(best, (double)cand[k].cost_ns);
        apart += best; // infinite: no leaf takes it, so the region does
    }
    cps_arena_destroy(a);
    return fused * (tight ? TIGHT : CLEAR) <= apart;
}
