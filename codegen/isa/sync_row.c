/* Rows of sync.def as tables. */
#include "codegen/isa/sync_row.h"

const cps_sync_row cps_waits[] = {
#define CPS_WAIT(id, w, o, t, v, s)                                                            \
    {.wire = w,                                                                                \
     .object = CPS_SYNC_##o,                                                                   \
     .operand = CPS_SYNC_##v,                                                                  \
     .sure = CPS_SURE_##s,                                                                     \
     .text = t},
#include "codegen/isa/sync.def"
};
const unsigned cps_wait_count = cps_countof(cps_waits);

const cps_sync_row cps_updates[] = {
#define CPS_UPDATE(id, w, o, t, v, at, s)                                                      \
    {.wire = w,                                                                                \
     .object = CPS_SYNC_##o,                                                                   \
     .operand = CPS_SYNC_##v,                                                                  \
     .sure = CPS_SURE_##s,                                                                     \
     .text = t,                                                                                \
     .when = at},
#include "codegen/isa/sync.def"
};
const unsigned cps_update_count = cps_countof(cps_updates);

static const cps_sync_row *
by_wire(const cps_sync_row *row, unsigned n, unsigned wire)
{
    for (unsigned i = 0; i < n; i++)
        if (row[i].wire == wire)
            return &row[i];
    return NULL;
}

const cps_sync_row *
cps_wait_row(unsigned wire)
{
    return by_wire(cps_waits, cps_wait_count, wire);
}

const cps_sync_row *
cps_update_row(unsigned wire)
{
    return by_wire(cps_updates, cps_update_count, wire);
}

const cps_sync_band cps_sync_bands[2] = {
    {CPS_FMT_EVENTS, CPS_F_EVENTS_wait_mode, CPS_F_EVENTS_wait_idx,
     CPS_F_EVENTS_semaphore_value, CPS_F_EVENTS_update_mode, CPS_F_EVENTS_update_idx,
     CPS_F_EVENTS_semaphore_value, "wait", "then"},
    {CPS_FMT_CTRL_ES, CPS_F_CTRL_ES_wait_mode, CPS_F_CTRL_ES_wait_idx,
     CPS_F_CTRL_ES_sem_wait_value, CPS_F_CTRL_ES_update_mode, CPS_F_CTRL_ES_update_idx,
     CPS_F_CTRL_ES_sem_update_value, "wait2", "then2"},
};
