/* Mapping base ops that no pattern took to calls of generic operators. */
#ifndef CPS_LOWER_MAP_H
#define CPS_LOWER_MAP_H

#include "lower/pass.h"

/* One rule each: true when every result was set. map_move.c: */
bool cps_map_transpose(cps_rw *w, const cps_node *n);
bool cps_map_slice(cps_rw *w, const cps_node *n);
bool cps_map_broadcast(cps_rw *w, const cps_node *n);
bool cps_map_concat(cps_rw *w, const cps_node *n);
bool cps_map_repeat(cps_rw *w, const cps_node *n);
bool cps_map_gather(cps_rw *w, const cps_node *n);

/* Whether a generic operator and a leaf of the library compute this elementwise op or reduction. */
bool cps_map_takes(const cps_func *f, const cps_node *n);

/* map.c: a call of two-dimensional operands; `x` is reshaped to rows. */
cps_val cps_map_call(cps_rw *w, cps_call *c);
/* `y` (new) with the type of n's result. */
bool cps_map_done(cps_rw *w, const cps_node *n, cps_val y);
/* x [N, H] (new) at constant rows: [count, H]. */
cps_val cps_map_rows(cps_rw *w, cps_val x, int64_t count, const int32_t *ids);

#endif
