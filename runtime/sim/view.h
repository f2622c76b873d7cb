/* What the records of a run say: where each engine's time went, and the chain of events that
 * the end of the run hung on. Trace, page and summary are written from this. */
#ifndef CPS_SIM_VIEW_H
#define CPS_SIM_VIEW_H

#include "runtime/sim/machine.h"

typedef enum time_kind {
#define CPS_TIME(id, name, use, doc) TIME_##id,
#include "runtime/sim/time.def"
    TIMES
} time_kind;

typedef struct time_row {
    const char *name;
    unsigned use; /* 1: of an engine, 2: on the path */
    const char *doc;
} time_row;

extern const time_row time_rows[TIMES];

/* One piece of the critical path: `who` (an instruction or a transfer) held up the end of the
 * run from t0 to t1. Pieces follow one another without a gap. */
typedef struct path_step {
    uint32_t who;
    cps_ps t0, t1;
    uint8_t kind;
} path_step;

/* Transfers of one queue; times are sums over transfers. */
typedef struct queue_view {
    uint32_t transfers, held; /* held: waited for the queue to issue them */
    int64_t bytes, ndesc;
    cps_ps issue, start, move, receipt;
} queue_view;

typedef struct view {
    cps_ps begin, end; /* of the run, absolute */
    cps_ps spent[CPS_ENGINES][TIMES];
    uint32_t sources;          /* who can end a wait: engines, queues, and nobody known */
    cps_ps *wait[CPS_ENGINES]; /* [sources] */
    CPS_VEC(path_step) path;   /* in order of time */
    cps_ps on_path[TIMES];
    cps_ps path_busy[CPS_ENGINES];
    queue_view *queue; /* one per queue of the machine */
    cps_ps move_work;  /* all engines: time spent on packets */
} view;

/* Made once per run, in its arena. NULL when nothing was recorded. */
const view *view_of(cps_sim *s);
/* Who changed the semaphore in record `c`: an engine, CPS_ENGINES + queue, or sources - 1. */
uint32_t view_source(const cps_sim *s, const view *v, uint32_t c);
const char *view_source_name(const cps_sim *s, const view *v, uint32_t source);

/* A value that changes at points in time. */
typedef struct point {
    cps_ps t;
    int64_t v;
} point;
typedef CPS_VEC(point) series;

/* In the run's arena: bytes that transfers under way carry; bytes of a partition in use. */
const series *view_flight(cps_sim *s);
const series *view_usage(cps_sim *s, unsigned psum);

bool view_data(const rec_insn *r); /* of the datapath; the rest is the sequencer's */
time_kind view_kind(const rec_insn *r);
static inline rec_xfer *
view_xfer(const cps_sim *s, uint32_t who)
{
    return &s->rec->xfer.data[who & ~REC_XFER];
}

#endif
