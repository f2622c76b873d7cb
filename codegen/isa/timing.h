/* What one instruction costs, from its bytes and the target alone; shared by scheduler and
 * simulator. Times in picoseconds. The formulas are those of the NKI documents (the
 * 2025 versions, which printed them); constants come from the target description. */
#ifndef CPS_ISA_TIMING_H
#define CPS_ISA_TIMING_H

#include "codegen/isa/isa.h"
#include "codegen/isa/target.h"

typedef int64_t cps_ps;

/* Column `timing` of the instruction rows. */
typedef enum cps_tclass {
#define CPS_TCLASS(name, doc) CPS_TC_##name,
#include "codegen/isa/timing.def"
    CPS_TCLASSES
} cps_tclass;

const char *cps_tclass_doc(cps_tclass c);

typedef struct cps_cost {
    cps_ps occupy;  /* the engine is free again after this */
    cps_ps self;    /* a dependent instruction of the same engine may start */
    cps_ps cross;   /* the result is visible to other engines (semaphore not included) */
    int64_t cycles; /* busy cycles of the engine clock, for reports */
} cps_cost;

/* Readings: occupancy keeps the floor of 64 cycles. LDWEIGHTS costs nothing: it hides behind
 * the MATMUL before it; `cross` says when its weights are in place. A trigger of a DMA costs
 * one sequencer issue; dma.issue_ns belongs to the queue. The engine is that of the stream the
 * bundle stands in. DMA transfers are not instructions: a trigger costs its issue only; the
 * transfer's time is the simulator's DMA model. */
void cps_timing(const cps_target *t, cps_engine e, const cps_bundle *b, cps_cost *out);

#endif
