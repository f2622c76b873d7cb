/* Where a value of a region lies: what the former of regions (region.c) reasons about. */
#ifndef CPS_LOWER_REGION_EMBED_H
#define CPS_LOWER_REGION_EMBED_H

#include "ir/ir.h"

/* Where the elements of a value lie in the iteration space: intervals [lo, hi) of strides, ascending
 * and not adjacent. A value that is whole is one interval [1, total). */
typedef struct cps_embed {
    int n;
    int64_t lo[CPS_MAX_RANK], hi[CPS_MAX_RANK];
} cps_embed;

cps_embed cps_embed_whole(int64_t total);
/* Adds an interval behind those that are there. */
void cps_embed_cover(cps_embed *e, int64_t lo, int64_t hi);
bool cps_embed_eq(const cps_embed *a, const cps_embed *b);
/* The interval of each axis of the type; empty for axes of one element. False when the type does
 * not fill the embedding. */
bool cps_embed_axes(const cps_type *t, const cps_embed *e, int64_t *lo, int64_t *hi);

#endif
