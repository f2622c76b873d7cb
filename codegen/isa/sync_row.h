/* Rows of sync.def as the printer and the parser of .cas text need them. */
#ifndef CPS_ISA_SYNC_ROW_H
#define CPS_ISA_SYNC_ROW_H

#include "codegen/isa/isa.h"

typedef enum cps_sync_object { CPS_SYNC_OTHER, CPS_SYNC_SEM, CPS_SYNC_EVT } cps_sync_object;
typedef enum cps_sync_operand {
    CPS_SYNC_NOTHING,
    CPS_SYNC_NUMBER,
    CPS_SYNC_REGISTER
} cps_sync_operand;

typedef struct cps_sync_row {
    uint8_t wire, object, operand, sure;
    const char *text, *when; /* when is NULL for waits */
} cps_sync_row;

extern const cps_sync_row cps_waits[], cps_updates[];
extern const unsigned cps_wait_count, cps_update_count;

/* Row by wire value, NULL when there is none. */
const cps_sync_row *cps_wait_row(unsigned wire);
const cps_sync_row *cps_update_row(unsigned wire);

/* A wait and an update as fields: the band in every header, or the second one of a format. */
typedef struct cps_sync_band {
    unsigned format;
    cps_field wait_mode, wait_idx, wait_value, update_mode, update_idx, update_value;
    const char *wait, *then;
} cps_sync_band;

extern const cps_sync_band cps_sync_bands[2]; /* header, extended */

/* The second band of a format, NULL when it has none. */
static inline const cps_sync_band *
cps_sync_second(unsigned format)
{
    return format == cps_sync_bands[1].format ? &cps_sync_bands[1] : NULL;
}

static inline bool
cps_sync_has(const cps_sync_band *s, cps_field f)
{
    return f == s->wait_mode || f == s->wait_idx || f == s->wait_value || f == s->update_mode ||
           f == s->update_idx || f == s->update_value;
}

#endif
