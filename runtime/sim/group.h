/* Inside the simulator: a group of cores. */
#ifndef CPS_SIM_GROUP_H
#define CPS_SIM_GROUP_H

#include "runtime/sim/machine.h"

struct cps_sim_group {
    unsigned n, nranks;
    cps_sim **core;
    unsigned first[CPS_SIM_CORES];   /* core of each rank */
    unsigned rank_of[CPS_SIM_CORES]; /* of each core */
    uint32_t nclock;                 /* components of a clock */
    cps_ps begin, end;               /* of the last run */
};

/* An event of another core, not before now. */
void group_send(cps_sim *from, cps_sim *to, event ev);
void group_meet(cps_sim *from, cps_ps t); /* something of another core is due at `t` */

#endif
