/* Races: two accesses to the same bytes, one of them a write, with no chain of semaphores
 * between them. Order is known by vector clocks (machine.h): a component per engine for reads
 * that are done, one for writes that are done, and one per DMA queue for transfers that are
 * done.
 *
 * What is ordered without a semaphore: instructions of one datapath among themselves; the parts
 * of transfers that the same DMA engine does for the same queue. A DMA trigger or register load
 * is the sequencer's and is not ordered after the datapath of its own engine.
 *
 * Accesses are kept as whole footprints in coarse cells of memory, each with the parts and the columns
 * of the cell that it may touch: only what shares one of each is compared. A record goes when every engine
 * is past it, or when a later access that is ordered after it covers it: whoever would race
 * with the old one races with the new one too. */
#include "runtime/sim/machine.h"

#include <stdlib.h>

enum {
    PARTS = 16, /* of a cell: groups of partitions, or pieces of a granule of HBM */
    SBUF_SHIFT = 10,
    PSUM_SHIFT = 10, /* bytes of a cell, log2; a cell is a column over all partitions */
    COLS = 16,       /* of such a cell: equal shares of its bytes */
    SBUF_CELLS = CPS_SBUF_STRIDE >> SBUF_SHIFT,
    PSUM_CELLS = PSUM_BYTES >> PSUM_SHIFT
};

/* cell_rec.actor: a queue with its DMA engine, or an engine; the core, of which a cell knows the two of
 * one pair; then what it does. */
#define ACTOR_QUEUE 0x80000000u
#define ACTOR_SEQ 0x40000000u
#define ACTOR_WRITE 0x20000000u

/* ---- clocks ---- */

static uint32_t *
vc_copy(cps_sim *s, vclock of)
{
    cps_arena *a = s->clocks ? s->clocks : s->run_arena;
    uint32_t *v = cps_arena_raw(a, sizeof(uint32_t) * s->nclock);
    memcpy(v, of, sizeof(uint32_t) * s->nclock);
    return v;
}

vclock
vc_join(cps_sim *s, vclock a, vclock b)
{
    bool more = false;
    for (uint32_t i = 0; i < s->nclock; i++)
        more |= b[i] > a[i];
    if (!more || a == b)
        return a;
    uint32_t *v = vc_copy(s, a);
    for (uint32_t i = 0; i < s->nclock; i++)
        v[i] = CPS_MAX(v[i], b[i]);
    return v;
}

vclock
vc_with(cps_sim *s, vclock a, unsigned comp, uint32_t value)
{
    if (a[comp] >= value)
        return a;
    uint32_t *v = vc_copy(s, a);
    v[comp] = value;
    return v;
}

vclock
vc_learn(cps_sim *s, vclock a, vclock b, unsigned comp, const uint32_t *value, unsigned n)
{
    uint32_t *restrict v = cps_arena_raw(s->clocks ? s->clocks : s->run_arena, sizeof *v * s->nclock);
    for (uint32_t i = 0; i < s->nclock; i++)
        v[i] = CPS_MAX(a[i], b[i]);
    for (unsigned k = 0; k < n; k++)
        v[comp + k] = CPS_MAX(v[comp + k], value[k]);
    return v;
}

static bool
covered(vclock vc, const cell_rec *r)
{
    return vc[r->comp] >= r->epoch;
}

typedef struct who {
    vclock vc;
    uint8_t actor, ring;
    bool seq;
    bool look; /* compared with what is there, not kept */
    uint16_t queue;
    uint32_t comp, epoch; /* comp: of an engine's reads; its writes are the next one */
    uint32_t var;         /* HBM: as the core at work names it */
    const insn *by;
} who;

/* Bits `first` to `last` of cell_rec.parts or .cols. */
static uint16_t
parts_of(unsigned first, unsigned last)
{
    return (uint16_t)((2u << last) - (1u << first));
}

/* An access as cells list it; it has no record yet. */
static cell_rec
listed(const who *w, bool write, uint16_t parts)
{
    bool dma = w->actor == 0xFF;
    uint32_t actor = dma ? ACTOR_QUEUE | (uint32_t)w->queue << 8 | w->ring : w->actor;
    return (cell_rec){.id = UINT32_MAX,
                      .epoch = w->epoch,
                      .actor = actor | (uint32_t)(w->by->core & 31) << 24 | (w->seq ? ACTOR_SEQ : 0) |
                               (write ? ACTOR_WRITE : 0),
                      .comp = (uint16_t)(w->comp + (!dma && write)),
                      .parts = parts,
                      .cols = UINT16_MAX};
}

/* Whether `r` is done before `w`. A datapath and the parts of a queue's transfers that one DMA
 * engine does keep their order; a sequencer is not ordered after the datapath. */
static bool
ordered(const cell_rec *r, const cell_rec *w, vclock vc)
{
    uint32_t differ = r->actor ^ w->actor;
    if (!(differ & ~(ACTOR_SEQ | ACTOR_WRITE)) && (!(differ & ACTOR_SEQ) || r->actor & ACTOR_SEQ))
        return true;
    return covered(vc, r);
}

/* ---- cells ---- */

void
race_reset(cps_sim *s)
{
    s->sbuf_cells = cps_new_array(s->run_arena, cell, SBUF_CELLS);
    s->psum_cells = cps_new_array(s->run_arena, cell, PSUM_CELLS);
    for (uint32_t i = 0; i < s->vars.n; i++) {
        hbm_var *v = &s->vars.data[i];
        v->granule = 1024;
        while (v->v->bytes / v->granule > 32768)
            v->granule *= 2;
        v->cells = NULL;
    }
    s->vc_min = cps_new_array(s->run_arena, uint32_t, s->nclock);
    s->since_min = 0;
    if (s->race != &s->own_racer)
        return; // the first core's
    *s->race = (racer){.arena = s->run_arena};
    cps_map_init(&s->race->seen, s->run_arena);
}

/* What every engine of the core that still runs is past. */
static void
update_min(cps_sim *s)
{
    for (uint32_t i = 0; i < s->nclock; i++) {
        uint32_t m = UINT32_MAX;
        for (int e = 0; e < CPS_ENGINES; e++) {
            const engine *en = &s->eng[e];
            // an engine is past its own datapath only as far as its clock says: its sequencer
            // may still trigger something
            if (!en->halted)
                m = CPS_MIN(m, en->vc[i]);
        }
        s->vc_min[i] = m;
    }
}

static void
report(cps_sim *s, const access_rec *r, const who *w, bool write, int64_t at)
{
    bool fresh;
    uint64_t key = cps_mix64((uint64_t)(uintptr_t)r->by) ^ (uint64_t)(uintptr_t)w->by;
    *cps_map_at(&s->race->seen, key, &fresh) = 1;
    if (!fresh)
        return;
    s->rep.races++;
    const cps_sim *home = s; // whose variables the footprint names
    if (r->r.space == SP_HBM && s->peer && s->vars.data[w->var].home)
        home = s->vars.data[w->var].home;
    const cps_sim *first = group_core(s, r->by->core);
    cps_buf a = {0}, b = {0}, where = {0};
    insn_name(s, r->by, &a);
    insn_name(s, w->by, &b);
    rect one = r->r;
    one.lo = at;
    one.hi = at + 1;
    place_text(home, &one, &where);
    const char *qa = r->actor == 0xFF ? first->queues.data[r->queue].name : "";
    const char *qb = w->actor == 0xFF ? s->queues.data[w->queue].name : "";
    cps_error(s->d, CPS_E8303, CPS_NOSPAN, "%s %s%s%s%s and %s %s%s%s%s at %s are not ordered",
              r->write ? "write by" : "read by", *qa ? "queue " : "", qa, *qa ? " of " : "",
              a.data, write ? "write by" : "read by", *qb ? "queue " : "", qb,
              *qb ? " of " : "", b.data, where.data);
    where.n = 0;
    place_text(home, &r->r, &where);
    cps_note(s->d, CPS_NOSPAN, "the first covers %s", where.data);
    if (first != s)
        cps_note(s->d, CPS_NOSPAN,
                 "missing: a core barrier after %s has %s and before %s", *qa ? qa : a.data,
                 r->write ? "finished" : "read its operands", b.data);
    else if (r->by == w->by && r->write && write && w->by->sem->exec == exec_indirect)
        cps_note(s->d, CPS_NOSPAN,
                 "rows of a scatter are written in no order: two of its indices are equal, or two runs of it do not wait for each other");
    else
        cps_note(s->d, CPS_NOSPAN,
                 "missing: %s must wait for a semaphore that is raised when %s has %s", b.data,
                 *qa ? qa : a.data, r->write ? "finished" : "read its operands");
    cps_buf_fini(&a);
    cps_buf_fini(&b);
    cps_buf_fini(&where);
}

static void
unlist(racer *k, uint32_t id)
{
    if (--k->recs.data[id].refs == 0)
        cps_vec_push(k->arena, &k->free_recs, id);
}

/* Whether nobody who can reach the memory has still to learn of access `r`. */
static bool
settled(const cps_sim *s, const cell_rec *r, bool shared)
{
    return covered(s->vc_min, r) && (!shared || !s->peer || covered(s->peer->vc_min, r));
}

/* Whether footprint `x` holds everything that `r` has, at least within its own bounds. */
static bool
covers(const rect *x, const rect *r)
{
    if (x->nd == r->nd && x->base == r->base && x->run == r->run) {
        bool same = true;
        for (unsigned d = 0; d < x->nd; d++)
            same &= x->step[d] == r->step[d] && x->num[d] == r->num[d];
        if (same)
            return true;
    }
    if (!x->dense)
        return false;
    if (x->nd == 0)
        return x->lo <= r->lo && r->hi <= x->hi;
    // partitions p0..p1, the same bytes in each
    int shift = x->space == SP_SBUF ? 18 : 15;
    int64_t mask = (1 << shift) - 1;
    if (r->lo < x->lo || (r->hi - 1) >> shift > (x->hi - 1) >> shift)
        return false;
    int64_t b0 = x->base & mask;
    if (r->nd == 0)
        return r->lo >> shift == (r->hi - 1) >> shift && (r->lo & mask) >= b0 &&
               (r->lo & mask) + r->run <= b0 + x->run;
    // bounds within a partition: only for footprints whose outer dimension is the partition
    if (r->step[0] != (int64_t)1 << shift)
        return false;
    int64_t inner = r->run;
    for (unsigned d = 1; d < r->nd; d++)
        inner += r->step[d] * (r->num[d] - 1);
    return (r->base & mask) >= b0 && (r->base & mask) + inner <= b0 + x->run;
}

/* Whether `me` may stand for `r` from now on: what a sequencer does proves nothing about the datapath
 * of its engine that follows it, whatever the core. */
static bool
may_hide(const cell_rec *r, const cell_rec *me)
{
    uint32_t differ = r->actor ^ me->actor, kind = ACTOR_QUEUE | 0xFF;
    return !(differ & ACTOR_SEQ) || differ & kind;
}

/* A read that another access is to be kept for: writes that it does not follow are told. */
static void
look_at(cps_sim *s, const cell *c, const rect *r, const who *w, const cell_rec *me, bool shared)
{
    racer *k = s->race;
    for (uint32_t i = 0; i < c->n; i++) {
        const cell_rec *l = &c->rec[i];
        access_rec *o = &k->recs.data[l->id];
        int64_t at;
        if (!(l->parts & me->parts) || !(l->cols & me->cols) || !(l->actor & ACTOR_WRITE) || settled(s, l, shared) || ordered(l, me, w->vc) ||
            o->mark == k->scan)
            continue;
        o->mark = k->scan;
        if (rect_overlap(&o->r, r, &at))
            report(s, o, w, false, at);
    }
}

/* Looks at a cell for access `me`, whose record is made when `me->id` is still UINT32_MAX. */
static void
visit(cps_sim *s, cell *c, const rect *r, const who *w, cell_rec *me, bool shared)
{
    racer *k = s->race;
    bool write = me->actor & ACTOR_WRITE, again = false;
    uint32_t keep = 0;
    if (w->look) {
        look_at(s, c, r, w, me, shared);
        return;
    }
    for (uint32_t i = 0; i < c->n; i++) {
        const cell_rec *l = &c->rec[i];
        bool gone = false;
        if (l->id == me->id) { // steps that interleave come back to a cell
            c->rec[i].parts |= me->parts;
            again = true;
        } else if ((l->parts & me->parts) && (l->cols & me->cols)) {
            if (settled(s, l, shared)) {
                gone = true;
            } else if (write || l->actor & ACTOR_WRITE) {
                access_rec *o = &k->recs.data[l->id];
                int64_t at;
                if (ordered(l, me, w->vc)) {
                    gone = write && may_hide(l, me) && covers(r, &o->r);
                } else if (o->mark != k->scan) {
                    o->mark = k->scan; // compared once per access, however many cells share it
                    if (rect_overlap(&o->r, r, &at))
                        report(s, o, w, write, at);
                }
            } else {
                gone = may_hide(l, me) && ordered(l, me, w->vc) &&
                       covers(r, &k->recs.data[l->id].r);
            }
        }
        if (gone) {
            unlist(k, l->id);
            continue;
        }
        if (keep < i)
            c->rec[keep] = *l;
        keep++;
    }
    c->n = keep;
    if (again)
        return;
    if (me->id == UINT32_MAX) {
        access_rec rec = {.r = *r,
                          .write = write,
                          .actor = w->actor,
                          .queue = w->queue,
                          .by = w->by};
        if (k->free_recs.n) {
            me->id = k->free_recs.data[--k->free_recs.n];
            k->recs.data[me->id] = rec;
        } else {
            me->id = k->recs.n;
            cps_vec_push(k->arena, &k->recs, rec);
        }
    }
    if (c->n == c->cap) {
        uint32_t cap = c->cap ? c->cap * 2 : 4;
        cell_rec *more = cps_arena_raw(k->arena, sizeof *more * cap);
        if (c->n)
            memcpy(more, c->rec, sizeof *more * c->n);
        c->rec = more;
        c->cap = cap;
    }
    c->rec[c->n++] = *me;
    k->recs.data[me->id].refs++;
}

/* The cells of a variable; both cores of a pair have those of its home. They are made when they are needed:
 * what is only read needs none. */
static cell *
cells_of(cps_sim *s, hbm_var *v)
{
    hbm_var *h = v->home && s->peer ? &v->home->vars.data[v->at] : v;
    if (!h->cells)
        h->cells = cps_new_array(s->race->arena, cell, h->v->bytes / h->granule + 1);
    return h->cells;
}

/* One access of a variable on its way through the cells. */
typedef struct hbm_look {
    cps_sim *s;
    const hbm_var *v;
    cell *cells;
    const rect *r;
    const who *w;
    cell_rec me;
    int64_t cell; /* under way, -1: none; `me.parts` gathers what is touched of it */
} hbm_look;

static void
hbm_visit(hbm_look *x)
{
    if (x->cell >= 0)
        visit(x->s, &x->cells[x->cell], x->r, x->w, &x->me, x->v->shared);
    x->me.parts = 0;
}

/* Visits the cells that dimensions from `d` on may touch when the outer ones stand at `base`.
 * What lies more than a cell apart is gone through one by one: the rows of a head among other
 * heads touch few of the cells between the first and the last. */
static void
hbm_cells(hbm_look *x, unsigned d, int64_t base)
{
    const rect *r = x->r;
    int64_t g = x->v->granule, lo = base, hi = base + r->run;
    if (d < r->nd && llabs(r->step[d]) > g) {
        for (int64_t i = 0; i < r->num[d]; i++)
            hbm_cells(x, d + 1, base + i * r->step[d]);
        return;
    }
    for (unsigned k = d; k < r->nd; k++) {
        int64_t far = r->step[k] * (r->num[k] - 1);
        *(far < 0 ? &lo : &hi) += far;
    }
    for (int64_t k = lo / g; k <= (hi - 1) / g; k++) {
        if (k != x->cell)
            hbm_visit(x);
        x->cell = k;
        int64_t first = CPS_MAX(lo - k * g, 0), last = CPS_MIN(hi - 1 - k * g, g - 1);
        x->me.parts |= parts_of((unsigned)(first * PARTS / g), (unsigned)(last * PARTS / g));
    }
}

static void
access_cells(cps_sim *s, const rect *r, bool write, who *w)
{
    s->race->scan++;
    if (r->space == SP_HBM) {
        hbm_var *v = &s->vars.data[r->var];
        // before what is left out: nothing that this core does may race with it, but the other one may write
        if (s->log && v->shared && (write || !v->quiet))
            shared_note(s, r, write, w->by, r->var);
        if ((v->quiet || v->unwritten) && !write)
            return; // found by measurement: a weight's cells gather every read of the kernel
        rect there = *r; // as its home names it
        if (v->home && s->peer)
            there.var = v->at;
        who reads = *w; // nobody will come for whom it would have to be kept
        reads.look |= !write && v->no_more;
        reads.var = w->var = r->var;
        hbm_look x = {s, v, cells_of(s, v), &there, &reads, listed(w, write, 0), -1};
        hbm_cells(&x, 0, r->base);
        hbm_visit(&x);
        return;
    }
    bool sb = r->space == SP_SBUF;
    int shift = sb ? 18 : 15, fine = sb ? SBUF_SHIFT : PSUM_SHIFT;
    int64_t cells = sb ? SBUF_CELLS : PSUM_CELLS;
    int64_t mask = (1 << shift) - 1, lane = (int64_t)1 << shift;
    int64_t p0 = r->lo >> shift, p1 = (r->hi - 1) >> shift, b0 = 0, b1 = mask;
    if (r->nd == 0 || r->step[0] % lane == 0) { // the byte range is the same in each partition
        b0 = r->base & mask;
        b1 = b0 + r->run - 1;
        for (unsigned d = 0; d < r->nd; d++) {
            if (r->step[d] % lane)
                b1 += r->step[d] * (r->num[d] - 1);
        }
        b1 = CPS_MIN(b1, mask);
    } else if (p0 == p1) {
        b0 = r->lo & mask;
        b1 = (r->hi - 1) & mask;
    }
    cell *base = sb ? s->sbuf_cells : s->psum_cells;
    const int group = LANES / PARTS;
    cell_rec me = listed(w, write, parts_of((unsigned)(p0 / group), (unsigned)(p1 / group)));
    const int share = fine - __builtin_ctz(COLS);
    for (int64_t c = b0 >> fine; c <= CPS_MIN(b1 >> fine, cells - 1); c++) {
        int64_t first = CPS_MAX(b0 - (c << fine), 0), last = CPS_MIN(b1 - (c << fine), (1 << fine) - 1);
        me.cols = parts_of((unsigned)(first >> share), (unsigned)(last >> share));
        visit(s, &base[c], r, w, &me, false);
    }
}

static void
tick(cps_sim *s)
{
    if (++s->since_min >= 64) {
        s->since_min = 0;
        update_min(s);
    }
}

static who
of_engine(const cps_sim *s, const insn *by, vclock vc, bool seq)
{
    return (who){.vc = vc,
                 .actor = by->engine,
                 .seq = seq,
                 .queue = NOT_QUEUE,
                 .by = by,
                 .comp = s->vc0 + 2u * by->engine,
                 .epoch = s->eng[by->engine].count};
}

void
race_access(cps_sim *s, const rect *r, bool write, const insn *by, vclock vc, bool seq)
{
    tick(s);
    who w = of_engine(s, by, vc, seq);
    access_cells(s, r, write, &w);
}

void
race_look(cps_sim *s, const rect *r, const insn *by, vclock vc)
{
    tick(s);
    who w = of_engine(s, by, vc, true);
    w.look = true;
    access_cells(s, r, false, &w);
}

void
race_transfer(cps_sim *s, xfer *x, unsigned ring_no)
{
    tick(s);
    const ring *r = &x->b->ring[ring_no];
    who w = {.vc = x->vc,
             .actor = 0xFF,
             .ring = (uint8_t)ring_no,
             .queue = x->b->queue,
             .by = x->by,
             .comp = s->vc0 + 2u * CPS_ENGINES + x->b->queue,
             .epoch = x->seq};
    for (uint32_t i = 0; i < r->reads.n; i++)
        access_cells(s, &r->reads.data[i], false, &w);
    for (uint32_t i = 0; i < r->writes.n; i++)
        access_cells(s, &r->writes.data[i], true, &w);
}
