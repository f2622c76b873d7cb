/* Would one more buffer help? Answered by compiling the kernel so and timing it. */
#ifndef CPS_FRONTEND_SLOTS_H
#define CPS_FRONTEND_SLOTS_H

#include "frontend/compile.h"

typedef struct cps_slots {
    const char *name; /* of the declaration */
    const char *file; /* its place */
    uint32_t line;
    unsigned has;    /* slots of the ring as compiled */
    unsigned others; /* further declarations that got one more together with it */
    const char *all; /* their names and its own: "'xt', 'yt' and 'zt'" */
    int64_t saves_ps;
} cps_slots;

/* The declaration whose ring gains most by one more slot, or all of them when they gain more
 * together (by half again). `base_ps`: the time as it is. False when nothing gains half a
 * percent; messages of trials that do not fit are dropped (the sink is printed first). */
bool cps_slots_try(cps_cli *c, const cps_instance *i, const cps_candidate *k, int64_t base_ps,
                   cps_slots *out);

#endif
