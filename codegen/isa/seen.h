/* Bundles met before. Kernels repeat themselves: of 17,413 bundles of a 4096^3 matmul 1,334 differ in
 * more than the sync band, so what does not depend on that band is found out once and kept. */
#ifndef CPS_ISA_SEEN_H
#define CPS_ISA_SEEN_H

#include "codegen/isa/text.h"
#include "runtime/base/vec.h"

typedef struct cps_isa_alike {
    cps_bundle b; /* its sync band holds `as` instead */
    uint64_t value;
} cps_isa_alike;

typedef struct cps_isa_seen {
    cps_arena *arena;
    CPS_VEC(cps_isa_alike) all;
    uint32_t *slot; /* open addressing, index + 1 */
    uint32_t slots;
} cps_isa_seen;

void cps_isa_seen_init(cps_isa_seen *m, cps_arena *a);
/* Address of what is kept for `b`, met as `as` (an engine, say): valid until the next call. 0 when
 * it is new. */
uint64_t *cps_isa_seen_at(cps_isa_seen *m, const cps_bundle *b, uint32_t as);

/* cps_isa_verify and cps_isa_print for many bundles of one generation; each with an `m` of its own.
 * `texts` belongs to `m` and begins empty. */
bool cps_isa_verify_again(cps_isa_seen *m, const cps_bundle *b, cps_gen g, cps_engine e, cps_diags *d,
                          cps_span at);
void cps_isa_print_again(cps_isa_seen *m, cps_buf *texts, const cps_bundle *b, cps_gen g, cps_buf *out);

#endif
