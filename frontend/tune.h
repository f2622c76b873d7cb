/* The search for the fastest leaf and parameters of calls, in the simulator. */
#ifndef CPS_FRONTEND_TUNE_H
#define CPS_FRONTEND_TUNE_H

#include "frontend/cli.h"

/* One call: what would be taken without a search, and what the search found. */
typedef struct cps_tune_call {
    const char *text; /* cps_instance_print */
    const cps_instance *inst;
    cps_candidate before, best; /* the same when nothing is faster */
    int64_t ns_before, ns_best;
    unsigned tried, fits; /* combinations timed; of them those that compile */
    unsigned cut;         /* combinations beyond the limit, not timed */
    bool faster;          /* `best` is, and passed its check */
    bool failed;          /* `best` was faster but failed its check */
    double max_rel;       /* of the checked run: error against the largest value */
    const char *why;      /* failed: what was wrong */
} cps_tune_call;

typedef struct cps_tune_opts {
    unsigned workers;
    unsigned tries;   /* combinations of a call that are timed, at most */
    const char *leaf; /* only this one, or NULL */
} cps_tune_opts;

/* Fills all but `text` and `inst`, which are given. The result does not depend on `workers`.
 * False after a diagnostic: no leaf takes a call, or E1117. */
bool cps_tune(cps_cli *c, const cps_tune_opts *o, cps_tune_call *call, unsigned n);

#endif
