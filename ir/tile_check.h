/* Inside the tile verifier: structure (tile_verify.c, target independent, also what the
 * evaluator relies on) and the rules of engines and generations (tile_rules.c). */
#ifndef CPS_IR_TILE_CHECK_H
#define CPS_IR_TILE_CHECK_H

#include "ir/tile.h"

/* Ids, arity, roles, bounds, counts, dtypes that no target takes, nesting. */
bool cps_tile_check(const cps_tfunc *f, cps_diags *d);
/* What a target allows for the buffers, and for one instruction whose structure is sound. */
struct cps_target;
bool cps_tile_rules_bufs(const cps_tfunc *f, const struct cps_target *t, cps_diags *d);
bool cps_tile_rules(const cps_tfunc *f, const cps_tinst *x, const struct cps_target *t,
                    cps_diags *d);

/* Reports against an instruction: "'activation' ...". Always false. */
bool cps_tile_fail(const cps_tinst *x, cps_diags *d, cps_code code, const char *fmt, ...)
    CPS_PRINTF(4, 5);

static inline const cps_tview *
cps_tc_view(const cps_tfunc *f, const cps_toper *o)
{
    return o->kind == CPS_TO_VIEW ? &f->views.data[o->id] : NULL;
}
static inline const cps_tbuf *
cps_tc_buf(const cps_tfunc *f, const cps_tview *v)
{
    return &f->bufs.data[v->buf];
}
static inline bool
cps_on_chip(const cps_tbuf *b)
{
    return b->space == CPS_SBUF || b->space == CPS_PSUM;
}
/* First and last element that the axes from `axis` on reach, from `off`. */
static inline void
cps_tc_reach(const cps_tview *v, int axis, int64_t *lo, int64_t *hi)
{
    *lo = *hi = v->off;
    for (int i = axis; i < v->nd; i++) {
        int64_t far = v->d[i].step * (v->d[i].num - 1);
        *lo += CPS_MIN(far, 0);
        *hi += CPS_MAX(far, 0);
    }
}

#endif
