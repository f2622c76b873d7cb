/* Compiles a graph function to host code, loads it, runs it and holds it against the reference
 * evaluator. Every buffer the code writes has a guard behind it. */
#ifndef CPS_TESTS_HOST_RIG_H
#define CPS_TESTS_HOST_RIG_H

#include "codegen/host/host.h"
#include "ir/build.h"
#include "runtime/base/rng.h"

typedef struct rig {
    cps_host_out code;
    void *lib;
    int (*run)(const void *, const void *const *, void *const *, void *);
    int64_t scratch;
    uint8_t *weights; /* malloc'ed */
} rig;

/* False after diagnostics. Constants above `embed` bytes go to the weights. */
bool rig_open(rig *r, cps_arena *a, const cps_module *m, const cps_func *f, int olevel,
              const char *cpu, int64_t embed, cps_diags *d);
/* One call with fresh guarded scratch and outputs; false when a guard was overwritten. */
bool rig_run(const rig *r, const cps_func *f, const void *const *in, void **out);
void rig_close(rig *r);

/* How random data of an input looks. */
typedef enum rig_data { RIG_PLAIN, RIG_ODD, RIG_POSITIVE, RIG_NONZERO, RIG_SMALL } rig_data;
void rig_fill(cps_rng *r, const cps_type *t, rig_data how, int64_t bound, void *p);

/* Runs and compares all outputs: |a - b| <= tol * (|b| + scale * max |b|), where tol grows to
 * the precision of narrow dtypes and, with a scale of 1 or more, max |b| counts at least as
 * 0.01; equal NaN and infinities. False and a line on stderr otherwise. */
bool rig_check(cps_arena *a, const cps_module *m, const cps_func *f, const void *const *in,
               double tol, double scale, bool fp32, const char *what);

#endif
