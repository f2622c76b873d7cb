/* Walks over memory, apart from where they start: what legalisation, DMA and dependence finding
 * have in common. Dims are slowest first, as in cps_tview; steps are in whatever unit the
 * caller uses (elements or bytes). */
#ifndef CPS_CODEGEN_VIEW_H
#define CPS_CODEGEN_VIEW_H

#include "ir/tile.h"

#define CPS_PAT_DIMS 16

typedef struct cps_pat {
    int nd;
    cps_tdim d[CPS_PAT_DIMS];
} cps_pat;

/* The free axes of a view, axes of one element left out. */
void cps_pat_of(const cps_tview *v, cps_pat *p);
int64_t cps_pat_elems(const cps_pat *p);
/* Joins neighbouring dims that walk evenly, as long as no count exceeds `cap`. */
void cps_pat_merge(cps_pat *p, int64_t cap);
/* Cuts dims until all `n` walks have the same counts, then joins what can be joined in all of
 * them (counts up to `cap`). False when no such shape exists: the walks pair elements across
 * uneven boundaries, or have different numbers of elements. */
bool cps_pat_refine(cps_pat *p, int n, int64_t cap);
/* Cuts every dim longer than `cap` into a product; false when a length has no fitting divisor.
 */
bool cps_pat_cut(cps_pat *p, int n, int64_t cap);
/* Writes the walk back as the free axes of a view. False when it needs more than the view has.
 */
bool cps_pat_into(const cps_pat *p, cps_tview *v);
/* Lowest and highest offset that the walk reaches. */
void cps_pat_span(const cps_pat *p, int64_t *lo, int64_t *hi);

#endif
