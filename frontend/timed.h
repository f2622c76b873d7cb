/* A kernel on the simulator for its time alone: no data, no checks, no launch. */
#ifndef CPS_FRONTEND_TIMED_H
#define CPS_FRONTEND_TIMED_H

#include "runtime/sim/sim.h"

typedef struct cps_timed {
    cps_sim_group *group; /* the machine that ran, with its records when they were asked for */
    unsigned cores;
    int64_t time_ps;
    bool zeros;       /* control depends on data, so it ran with data: all zero */
    cps_arena *arena; /* of that data */
    cps_sim_report core[2];
} cps_timed;

/* `k` must outlive the result. False after a diagnostic. Close it either way. */
bool cps_timed_run(const cps_target *t, const cps_kbin *k, bool trace, cps_timed *out,
                   cps_diags *d);
void cps_timed_close(cps_timed *x);

#endif
