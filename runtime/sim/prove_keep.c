/* Transfers that a proof keeps from one round to the next, made small.
 *
 * What an instruction makes of its registers is a block of 16 rings with a footprint or two for each side: 6 KiB
 * and more, of which a kernel has thousands. But they have few shapes. So each shape is kept once, as if it
 * began at 0, and a footprint is a shape, a variable and a place. */
#include "runtime/sim/prove_state.h"

struct shapes {
    cps_arena *arena;
    cps_map at; /* hash -> 1 + the last shape of that hash */
    CPS_VEC(rect) all;
    uint32_t last; /* asked for: the rings of a transfer are alike */
    block *room; /* what was kept, as it was */
    rectvec rects;
};

shapes *
shapes_new(cps_arena *a)
{
    shapes *x = cps_new(a, shapes);
    x->arena = a;
    x->room = cps_new(a, block);
    cps_map_init(&x->at, a);
    return x;
}

static bool
same_shape(const rect *a, const rect *b)
{
    bool same = a->space == b->space && a->nd == b->nd && a->run == b->run && a->dense == b->dense && a->lo == b->lo &&
                a->hi == b->hi;
    for (unsigned d = 0; same && d < a->nd; d++)
        same = a->step[d] == b->step[d] && a->num[d] == b->num[d];
    return same;
}

static uint32_t
shape_of(shapes *x, const rect *r)
{
    rect o = *r;
    o.var = 0;
    o.base = 0;
    o.lo -= r->base;
    o.hi -= r->base;
    if (x->all.n && same_shape(&x->all.data[x->last], &o))
        return x->last;
    uint64_t h = cps_mix64((uint64_t)o.run ^ (uint64_t)o.nd << 48 ^ (uint64_t)o.space << 56);
    for (unsigned d = 0; d < o.nd; d++)
        h = cps_mix64(h ^ (uint64_t)o.step[d] ^ (uint64_t)o.num[d] << 40);
    uint64_t *at = cps_map_at(&x->at, h, NULL);
    if (!*at || !same_shape(&x->all.data[*at - 1], &o)) {
        cps_vec_push(x->arena, &x->all, o);
        *at = x->all.n;
    }
    return x->last = (uint32_t)*at - 1;
}

static void
put(shapes *x, const rectvec *v, kept_rect *out)
{
    for (uint32_t k = 0; k < v->n; k++)
        out[k] = (kept_rect){.shape = shape_of(x, &v->data[k]), .var = v->data[k].var, .base = v->data[k].base};
}

kept *
keep_block(shapes *x, const block *b)
{
    uint32_t n = 0;
    for (unsigned r = 0; r < DMA_RINGS; r++)
        n += b->ring[r].reads.n + b->ring[r].writes.n;
    kept *k = cps_arena_alloc(x->arena, sizeof *k + n * sizeof *k->at);
    k->queue = b->queue;
    k->semaphore = b->semaphore;
    k->increment = b->increment;
    for (uint32_t i = 0; i < b->items.n; i++)
        k->adds |= b->items.data[i].alu != CPS_DGE_COMPUTE_OP_NONE;
    n = 0;
    for (unsigned r = 0; r < DMA_RINGS; r++) {
        const ring *o = &b->ring[r];
        k->reads[r] = o->reads.n;
        k->writes[r] = o->writes.n;
        put(x, &o->reads, &k->at[n]);
        put(x, &o->writes, &k->at[n + o->reads.n]);
        n += o->reads.n + o->writes.n;
    }
    return k;
}

/* A footprint list of what was kept, at the end of `room`, which is large enough. */
static rectvec
take(shapes *x, const kept_rect *from, uint32_t n)
{
    rectvec v = {.data = &x->rects.data[x->rects.n], .n = n, .cap = n};
    x->rects.n += n;
    for (uint32_t k = 0; k < n; k++) {
        rect *r = &v.data[k];
        *r = x->all.data[from[k].shape];
        r->var = from[k].var;
        r->base += from[k].base;
        r->lo += from[k].base;
        r->hi += from[k].base;
    }
    return v;
}

block *
kept_block(shapes *x, const kept *k, bool footprints)
{
    block *b = x->room;
    *b = (block){.queue = k->queue, .semaphore = k->semaphore, .increment = k->increment, .adds = k->adds};
    if (!footprints)
        return b;
    uint32_t n = 0;
    for (unsigned r = 0; r < DMA_RINGS; r++)
        n += k->reads[r] + k->writes[r];
    x->rects.n = 0;
    cps_vec_reserve(x->arena, &x->rects, n);
    n = 0;
    for (unsigned r = 0; r < DMA_RINGS; r++) {
        b->ring[r].reads = take(x, &k->at[n], k->reads[r]);
        b->ring[r].writes = take(x, &k->at[n + k->reads[r]], k->writes[r]);
        n += k->reads[r] + k->writes[r];
    }
    return b;
}
