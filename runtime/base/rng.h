/* Seeded inputs, the same on every machine (LANGUAGE.md, "Seeded inputs").
 * Stream = splitmix64 started at mix(mix(seed) + index + 1). A normal is Box-Muller on two
 * uniforms in (0,1], evaluated with our own log and cos so that no libm changes a bit. */
#ifndef CPS_BASE_RNG_H
#define CPS_BASE_RNG_H

#include "runtime/base/base.h"

typedef struct cps_rng {
    uint64_t s;
} cps_rng;

void cps_rng_init(cps_rng *r, uint64_t seed, uint64_t index);
uint64_t cps_rng_next(cps_rng *r);
double cps_rng_uniform(cps_rng *r);                 /* [0, 1) on 53 bits */
uint64_t cps_rng_below(cps_rng *r, uint64_t bound); /* [0, bound), bound > 0 */
double cps_rng_normal(cps_rng *r);

#endif
