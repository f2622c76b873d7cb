/* DMA queues, blocks and descriptors as BIR, both ways. */
#ifndef CPS_CODEGEN_BIR_DMA_H
#define CPS_CODEGEN_BIR_DMA_H

#include "codegen/bir/mem.h"

#define CPS_BDMA_RISE 16 /* by which a transfer's semaphore rises */

/* One block with its descriptors; locations by ctx->ref. `place` is its place in the kernel's
 * list when that is not the order of triggers, else -1. */
cps_json *cps_bdma_write(cps_bctx *c, const cps_kblock *b, cps_engine queue_owner,
                         int64_t place);
/* Descriptors are appended to `k`; queue and owner are the caller's. False with ctx->why. */
bool cps_bdma_read(cps_bctx *c, const cps_json *v, cps_kbin *k, cps_kblock *out);
/* The name of a block: queue and number. */
const char *cps_bdma_name(cps_arena *a, const cps_kblock *b);

#endif
