/* Where values lie in a region's iteration space. */
#include "lower/region_embed.h"

cps_embed
cps_embed_whole(int64_t total)
{
    cps_embed e = {.n = total > 1};
    e.lo[0] = 1;
    e.hi[0] = total;
    return e;
}

void
cps_embed_cover(cps_embed *e, int64_t lo, int64_t hi)
{
    if (lo == hi)
        return;
    if (e->n && e->hi[e->n - 1] == lo) {
        e->hi[e->n - 1] = hi;
        return;
    }
    e->lo[e->n] = lo;
    e->hi[e->n++] = hi;
}

bool
cps_embed_eq(const cps_embed *a, const cps_embed *b)
{
    return a->n == b->n && memcmp(a->lo, b->lo, (size_t)a->n * sizeof a->lo[0]) == 0 &&
           memcmp(a->hi, b->hi, (size_t)a->n * sizeof a->hi[0]) == 0;
}

bool
cps_embed_axes(const cps_type *t, const cps_embed *e, int64_t *lo, int64_t *hi)
{
    int k = 0;
    int64_t at = e->n ? e->lo[0] : 1;
    for (int i = t->rank - 1; i >= 0; i--) {
        lo[i] = hi[i] = at;
        if (t->dim[i] == 1)
            continue;
        if (k < e->n && at == e->hi[k] && ++k < e->n)
            at = e->lo[k];
        if (k >= e->n || t->dim[i] > e->hi[k] / at || e->hi[k] % (at * t->dim[i]))
            return false;
        lo[i] = at;
        hi[i] = at *= t->dim[i];
    }
    return e->n == 0 || (k == e->n - 1 && at == e->hi[k]);
}
