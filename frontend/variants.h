/* Would another leaf, or another value of one parameter, be faster? Answered by compiling the
 * kernel so and timing it. `copse tune` tries all combinations; this is one step from what was
 * chosen. */
#ifndef CPS_FRONTEND_VARIANTS_H
#define CPS_FRONTEND_VARIANTS_H

#include "frontend/compile.h"

typedef struct cps_variant {
    cps_candidate cand;
    const char *step; /* "MB=3", or "" for another leaf */
    int64_t saves_ps;
} cps_variant;

/* The fastest step from candidate `at` of `cand` (n of them), whose time is `base_ps`: admitted
 * leaves as they are, and the chosen one with one parameter changed. False when none gains half
 * a percent. Messages of trials that do not fit are dropped (the sink is printed first). */
bool cps_variant_try(cps_cli *c, const cps_instance *i, const cps_candidate *cand, unsigned n,
                     unsigned at, int64_t base_ps, cps_variant *out);

#endif
