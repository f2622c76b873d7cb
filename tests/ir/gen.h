/* Random graph modules for property tests: every op of op.def on small tensors, valid by
 * construction. Functions are executable: indices stay in range, integer divisors are not 0. */
#ifndef CPS_TESTS_IR_GEN_H
#define CPS_TESTS_IR_GEN_H

#include "ir/build.h"
#include "runtime/base/rng.h"

/* `nops` tries; constants only, or constants and inputs; `calls` adds registry calls. */
typedef struct gen_opts {
    int nops;
    bool inputs, calls;
} gen_opts;

cps_module *gen_module(cps_arena *a, cps_diags *d, uint64_t seed, const gen_opts *o);
/* Seeded data for the inputs. */
cps_tensor *gen_inputs(cps_arena *a, const cps_func *f, uint64_t seed);

#endif
