/* Selection among candidates (middle-end reference 6.5): a forced leaf, a tuned choice, or the lowest
 * modelled cost, ties by priority, then by name. */
#include "kernels/registry.h"

#include <string.h>

static bool
better(const cps_candidate *a, const cps_candidate *b)
{
    if (a->tuned != b->tuned)
        return a->tuned;
    if (a->cost_ns != b->cost_ns)
        return a->cost_ns < b->cost_ns;
    if (a->priority != b->priority)
        return a->priority > b->priority;
    return strcmp(a->leaf, b->leaf) < 0;
}

int
cps_registry_pick(const cps_candidate *cand, unsigned n, const char *force, const char **why)
{
    int best = -1;
    unsigned admitted = 0;

    for (unsigned i = 0; i < n; i++) {
        if (force) {
            if (strcmp(cand[i].leaf, force) == 0) {
                if (why)
                    *why = "forced";
                return cand[i].ok ? (int)i : -1;
            }
            continue;
        }
        if (!cand[i].ok)
            continue;
        admitted++;
        if (best < 0 || better(&cand[i], &cand[best]))
            best = (int)i;
    }
    if (why)
        *why = force                           ? "forced"
               : best >= 0 && cand[best].tuned ? "tuned"
               : admitted == 1                 ? "only"
                                               : "model";
    return best;
}
