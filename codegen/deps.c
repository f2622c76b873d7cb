/* Dependence finding on physical memory.
 *
 * Memory is known as regions: byte walks with the operations that touched them since they were
 * last written whole. A region stands in the buckets (512 bytes of a partition, or a 512th of a
 * variable) that its rows touch; a new access looks only there. A write takes the bytes it
 * covers out of every region it meets: whoever would wait for those operations waits for the
 * write, which itself waited. A read likewise hides a read by the same in-order engine. Equal
 * walks share one region, so a tile that is read a thousand times is one place to look at, an
 * operation is found once for each time the bytes are written, and the cost is about linear in
 * the program. */
#include "codegen/deps.h"

#define GRAIN 512
#define REST 8 /* parts that may be left of a region; more: it stays whole, which is safe */

// Immutable lists of operations: regions that came out of one share its lists. 0 is the end.
typedef struct link {
    uint32_t op, next;
} link;

typedef struct ops {
    uint32_t head, n;
} ops;

typedef struct region {
    cps_macc a; // the walk; who reads and writes is said below
    ops writers, readers;
    uint32_t unit[CPS_ENGINES]; // last read by an engine's datapath: operation + 1
    uint32_t seen, refs;        // buckets it stands in
    bool dead;
} region;

typedef CPS_VEC(uint32_t) bucket;

typedef struct table {
    int64_t grain;
    uint32_t n;
    bucket *b;
} table;

struct cps_deps {
    cps_arena *arena;
    const cps_mprog *p;
    table sbuf, psum, *var;
    CPS_VEC(region) all;
    CPS_VEC(uint32_t) unused; // regions to use again
    CPS_VEC(region) cut;      // what the access under way leaves of others
    CPS_VEC(link) links;
    CPS_VEC(uint32_t) found; // per operation: the search that found it last
    CPS_VEC(uint32_t) at;    // buckets of the access under way
    uint32_t scan, search;
};

static int64_t
hull_end(const cps_macc *a)
{
    int64_t end = a->base + a->run;
    for (int i = 0; i < a->nd; i++)
        end += a->d[i].step * (a->d[i].num - 1);
    return end;
}

static int64_t
gcd(int64_t a, int64_t b)
{
    while (b) {
        int64_t t = a % b;
        a = b;
        b = t;
    }
    return a;
}

// The walks never meet when their runs lie apart modulo a common divisor of all steps.
static bool
apart_by_residue(const cps_macc *a, const cps_macc *b)
{
    int64_t g = 0;
    for (int i = 0; i < a->nd; i++)
        g = gcd(g, a->d[i].step);
    for (int i = 0; i < b->nd; i++)
        g = gcd(g, b->d[i].step);
    if (!g)
        return false;
    int64_t gap = (b->base - a->base) % g;
    if (gap < 0)
        gap += g;
    return gap >= a->run && g - gap >= b->run;
}

// One step of the comparison: the walk within one period `s`, and which periods it visits.
static bool
fold(cps_macc *a, int64_t s, int64_t *q, int64_t *n)
{
    *q = a->base / s;
    *n = 1;
    a->base -= *q * s;
    if (a->nd && a->d[0].step == s) {
        *n = a->d[0].num;
        for (int i = 0; i + 1 < a->nd; i++)
            a->d[i] = a->d[i + 1];
        a->nd--;
    }
    return hull_end(a) <= s;
}

bool
cps_acc_overlap(const cps_macc *x, const cps_macc *y)
{
    if (x->space != y->space)
        return false;
    if (x->space == CPS_HBM ? x->var != y->var
                            : x->part >= y->part + y->parts || y->part >= x->part + x->parts)
        return false;
    if (hull_end(x) <= y->base || hull_end(y) <= x->base)
        return false;
    if (x->nd + y->nd == 0)
        return true;
    if (apart_by_residue(x, y))
        return false;
    cps_macc a = *x, b = *y;
    while (a.nd + b.nd > 0) {
        int64_t s = CPS_MAX(a.nd ? a.d[0].step : 0, b.nd ? b.d[0].step : 0), qa, qb, na, nb;
        bool in = fold(&a, s, &qa, &na);
        in &= fold(&b, s, &qb, &nb);
        if (!in)
            return true; // a run crosses a period: no claim
        if (qa + na <= qb || qb + nb <= qa)
            return false;
        if (hull_end(&a) <= b.base || hull_end(&b) <= a.base)
            return false;
    }
    return true;
}

static bool
same_dims(const cps_macc *a, const cps_macc *b)
{
    bool same = a->nd == b->nd;
    for (int i = 0; same && i < a->nd; i++)
        same = a->d[i].step == b->d[i].step && a->d[i].num == b->d[i].num;
    return same;
}

static bool
same_walk(const cps_macc *a, const cps_macc *b)
{
    return a->base == b->base && a->run == b->run && same_dims(a, b);
}

// Every byte of `b` is a byte of `a`.
static bool
covers(const cps_macc *a, const cps_macc *b)
{
    if (a->space != CPS_HBM && (a->part > b->part || a->part + a->parts < b->part + b->parts))
        return false;
    return (a->nd == 0 && a->base <= b->base && hull_end(b) <= a->base + a->run) ||
           same_walk(a, b);
}

// ---- what a write leaves of a region ----

typedef struct rest {
    cps_macc a[REST];
    int n;
} rest;

static bool
leave(rest *r, const cps_macc *a)
{
    if (r->n == REST)
        return false;
    r->a[r->n++] = *a;
    return true;
}

// `num` rows of the outer dimension, from `first` on.
static cps_macc
rows(const cps_macc *a, int64_t first, int64_t num)
{
    cps_macc r = *a;
    r.base += first * a->d[0].step;
    r.d[0].num = num;
    if (num > 1)
        return r;
    for (int i = 0; i + 1 < r.nd; i++)
        r.d[i] = r.d[i + 1];
    r.nd--;
    return r;
}

// The rows of `a` that bytes [base, end) may meet, as [*first, *last]; none: *first > *last.
static void
rows_met(const cps_macc *a, int64_t base, int64_t end, int64_t *first, int64_t *last)
{
    int64_t s = a->d[0].step, inner = hull_end(a) - a->base - s * (a->d[0].num - 1);
    int64_t lo = base - a->base - inner, hi = end - 1 - a->base;
    *first = lo < 0 ? 0 : lo / s + 1;
    *last = hi < 0 ? -1 : CPS_MIN(hi / s, a->d[0].num - 1);
}

// The bytes of run after run before `from` and from `to` on, counted from the run's start.
static bool
leave_sides(rest *r, const cps_macc *a, int64_t from, int64_t to)
{
    cps_macc left = *a, right = *a;
    left.run = CPS_MIN(from, a->run);
    to = CPS_MAX(to, 0);
    right.base += to;
    right.run = a->run - to;
    return (left.run <= 0 || leave(r, &left)) && (right.run <= 0 || leave(r, &right));
}

// Appends what is left of `a` without `w`, or more; false when that takes too many parts.
static bool
without(const cps_macc *a, const cps_macc *by, rest *r)
{
    cps_macc w = *by;
    int64_t end = hull_end(a), first, last;
    while (w.nd) {
        rows_met(&w, a->base, end, &first, &last);
        if (first > last)
            return leave(r, a);
        w = rows(&w, first, last - first + 1);
        if (first < last)
            break;
    }
    if (a->nd == 0) {
        if (w.nd == 0)
            return leave_sides(r, a, w.base - a->base, w.base + w.run - a->base);
        if (w.nd > 1)
            return false;
        // Before the first run, between runs, behind the last.
        int64_t step = w.d[0].step, n = w.d[0].num;
        cps_macc gap = w;
        gap.base += w.run;
        gap.run = step - w.run;
        gap.space = a->space;
        gap.part = a->part;
        gap.parts = a->parts;
        gap = rows(&gap, 0, n - 1);
        return (gap.run <= 0 || leave(r, &gap)) &&
               leave_sides(r, a, w.base - a->base, hull_end(&w) - a->base);
    }
    if (same_dims(a, &w))
        return leave_sides(r, a, w.base - a->base, w.base + w.run - a->base);
    int64_t s = a->d[0].step, n = a->d[0].num;
    if (a->nd == 1 && w.nd == 1 && w.d[0].step == s) {
        // Row against row; `off` is where a run of `w` lies in a row of `a`.
        int64_t q = (w.base - a->base) / s, off = (w.base - a->base) % s;
        if (off < 0) {
            q--;
            off += s;
        }
        if (off >= a->run) {
            q++;
            off -= s;
        }
        int64_t r0 = CPS_MAX(q, 0), r1 = CPS_MIN(q + w.d[0].num, n);
        if (r0 >= r1)
            return leave(r, a);
        cps_macc before = rows(a, 0, r0), met = rows(a, r0, r1 - r0),
                 after = rows(a, r1, n - r1);
        return (r0 == 0 || leave(r, &before)) && leave_sides(r, &met, off, off + w.run) &&
               (r1 == n || leave(r, &after));
    }
    rows_met(a, w.base, hull_end(&w), &first, &last);
    if (first > last)
        return leave(r, a);
    if (w.nd && first < last)
        return false;
    cps_macc before = rows(a, 0, first), after = rows(a, last + 1, n - last - 1);
    if ((first > 0 && !leave(r, &before)) || (last + 1 < n && !leave(r, &after)))
        return false;
    // Of the rows that meet a dense write only the outer two can be met in part.
    cps_macc one = rows(a, first, 1), other = rows(a, last, 1);
    return (covers(&w, &one) || without(&one, &w, r)) &&
           (first == last || covers(&w, &other) || without(&other, &w, r));
}

// The same over partitions: bands above and below, and what is left between.
static bool
subtract(const cps_macc *a, const cps_macc *w, rest *r)
{
    cps_macc mid = *a;
    r->n = 0;
    if (a->space != CPS_HBM) {
        uint16_t p0 = CPS_MAX(a->part, w->part);
        uint16_t p1 = (uint16_t)CPS_MIN(a->part + a->parts, w->part + w->parts);
        cps_macc band = *a;
        band.parts = (uint16_t)(p0 - a->part);
        if (band.parts && !leave(r, &band))
            return false;
        band.part = p1;
        band.parts = (uint16_t)(a->part + a->parts - p1);
        if (band.parts && !leave(r, &band))
            return false;
        mid.part = p0;
        mid.parts = (uint16_t)(p1 - p0);
    }
    cps_macc by = *w;
    by.part = mid.part;
    by.parts = mid.parts;
    return covers(&by, &mid) || without(&mid, &by, r);
}

// ---- regions ----

static table
table_new(cps_arena *a, int64_t bytes, int64_t grain)
{
    table t = {.grain = grain, .n = (uint32_t)(bytes / grain + 1)};
    t.b = cps_new_array(a, bucket, t.n);
    return t;
}

cps_deps *
cps_deps_new(cps_arena *a, const cps_mprog *p, const cps_target *t)
{
    cps_deps *d = cps_new(a, cps_deps);
    d->arena = a;
    d->p = p;
    cps_vec_add(a, &d->links); // 0 ends a list
    d->sbuf = table_new(a, t->sbuf_bytes, GRAIN);
    d->psum = table_new(a, t->psum_banks * t->psum_bank_bytes, GRAIN);
    d->var = cps_new_array(a, table, p->k->vars.n);
    for (uint32_t i = 1; i < p->k->vars.n; i++) {
        const cps_kvar *v = &p->k->vars.data[i];
        if (v->kind == CPS_VAR_INPUT || v->kind == CPS_VAR_DATA)
            continue; // only read
        d->var[i] = table_new(a, v->bytes, CPS_MAX(GRAIN, cps_ceil_div(v->bytes, GRAIN)));
    }
    return d;
}

static table *
table_of(cps_deps *d, const cps_macc *a)
{
    return a->space == CPS_SBUF ? &d->sbuf : a->space == CPS_PSUM ? &d->psum : &d->var[a->var];
}

// Lists the buckets that the walk may touch; rows that lie further apart one by one.
static void
buckets(cps_deps *d, const cps_macc *a, int64_t grain)
{
    if (a->nd && a->d[0].step > grain) {
        for (int64_t i = 0; i < a->d[0].num; i++) {
            cps_macc row = rows(a, i, 1);
            buckets(d, &row, grain);
        }
        return;
    }
    for (int64_t k = a->base / grain; k <= (hull_end(a) - 1) / grain; k++)
        if (!d->at.n || d->at.data[d->at.n - 1] != k)
            cps_vec_push(d->arena, &d->at, (uint32_t)k);
}

static void
push(cps_deps *d, ops *l, uint32_t op)
{
    if (l->n && d->links.data[l->head].op == op)
        return;
    link k = {op, l->head};
    cps_vec_push(d->arena, &d->links, k);
    l->head = d->links.n - 1;
    l->n++;
}

// Puts the shorter list before the longer.
static void
merge(cps_deps *d, ops *to, ops from)
{
    if (from.n > to->n) {
        ops t = *to;
        *to = from;
        from = t;
    }
    for (uint32_t i = from.head; i; i = d->links.data[i].next)
        push(d, to, d->links.data[i].op);
}

static region *
region_at(cps_deps *d, const cps_macc *a)
{
    table *t = table_of(d, a);
    bucket *b = &t->b[a->base / t->grain];
    for (uint32_t i = 0; i < b->n; i++) {
        region *r = &d->all.data[b->data[i]];
        if (!r->dead && r->a.part == a->part && r->a.parts == a->parts && same_walk(&r->a, a))
            return r;
    }
    uint32_t id = d->all.n;
    if (d->unused.n)
        id = d->unused.data[--d->unused.n];
    else
        cps_vec_add(d->arena, &d->all);
    region *r = &d->all.data[id];
    *r = (region){.a = *a};
    d->at.n = 0;
    buckets(d, a, t->grain);
    for (uint32_t k = 0; k < d->at.n; k++)
        cps_vec_push(d->arena, &t->b[d->at.data[k]], id);
    r->refs = d->at.n;
    return r;
}

// Keeps what is left of a region that a write has met.
static void
keep_cut(cps_deps *d, const region *c)
{
    region *r = region_at(d, &c->a);
    merge(d, &r->writers, c->writers);
    merge(d, &r->readers, c->readers);
    for (int e = 0; e < CPS_ENGINES; e++)
        r->unit[e] = CPS_MAX(r->unit[e], c->unit[e]);
}

static void
find(cps_deps *d, uint32_t op, cps_oplist *out)
{
    if (d->found.data[op] == d->search)
        return;
    d->found.data[op] = d->search;
    cps_vec_push(d->arena, out, op);
}

static void
find_all(cps_deps *d, ops l, cps_oplist *out)
{
    for (uint32_t i = l.head; i; i = d->links.data[i].next)
        find(d, d->links.data[i].op, out);
}

static void
cut(cps_deps *d, region *r, const cps_macc *a)
{
    rest left;
    if (!subtract(&r->a, a, &left))
        return;
    r->dead = true;
    for (int i = 0; i < left.n; i++) {
        region part = *r;
        part.a = left.a[i];
        cps_vec_push(d->arena, &d->cut, part);
    }
}

// Looks at one region for access `a`; `unit`: engine + 1 when its datapath makes it.
static void
meet(cps_deps *d, region *r, const cps_macc *a, int unit, cps_oplist *out)
{
    uint32_t *hidden = unit ? &r->unit[unit - 1] : NULL;
    if (!a->write && hidden && *hidden && covers(a, &r->a))
        *hidden = 0;
    if ((!a->write && !r->writers.n) || !cps_acc_overlap(a, &r->a))
        return;
    find_all(d, r->writers, out);
    if (!a->write)
        return;
    find_all(d, r->readers, out);
    for (int e = 0; e < CPS_ENGINES; e++)
        if (r->unit[e])
            find(d, r->unit[e] - 1, out);
    cut(d, r, a);
}

static void
look(cps_deps *d, bucket *b, const cps_macc *a, int unit, cps_oplist *out)
{
    uint32_t keep = 0;
    for (uint32_t i = 0; i < b->n; i++) {
        uint32_t id = b->data[i];
        region *r = &d->all.data[id];
        if (r->dead) {
            if (--r->refs == 0)
                cps_vec_push(d->arena, &d->unused, id);
            continue;
        }
        b->data[keep++] = id;
        if (r->seen == d->scan)
            continue;
        r->seen = d->scan;
        meet(d, r, a, unit, out);
    }
    b->n = keep;
}

void
cps_deps_find(cps_deps *d, uint32_t op, cps_oplist *out)
{
    const cps_mop *m = &d->p->ops.data[op];
    int unit = m->kind == CPS_M_UNIT ? m->engine + 1 : 0;
    while (d->found.n <= op)
        cps_vec_push(d->arena, &d->found, 0);
    d->search++;
    // All accesses look before any is recorded: an operation may read what it writes.
    for (uint32_t i = 0; i < m->nacc; i++) {
        const cps_macc *a = &d->p->accs.data[m->acc + i];
        table *t = table_of(d, a);
        if (!t->b)
            continue;
        d->scan++;
        d->at.n = 0;
        buckets(d, a, t->grain);
        for (uint32_t k = 0; k < d->at.n; k++)
            look(d, &t->b[d->at.data[k]], a, unit, out);
        for (uint32_t k = 0; k < d->cut.n; k++)
            keep_cut(d, &d->cut.data[k]);
        d->cut.n = 0;
    }
    for (uint32_t i = 0; i < m->nacc; i++) {
        const cps_macc *a = &d->p->accs.data[m->acc + i];
        if (!table_of(d, a)->b)
            continue;
        region *r = region_at(d, a);
        if (a->write)
            push(d, &r->writers, op);
        else if (unit)
            r->unit[unit - 1] = op + 1;
        else
            push(d, &r->readers, op);
    }
}

static void
table_clear(table *t)
{
    for (uint32_t i = 0; i < t->n; i++)
        t->b[i].n = 0;
}

void
cps_deps_clear(cps_deps *d)
{
    table_clear(&d->sbuf);
    table_clear(&d->psum);
    for (uint32_t i = 1; i < d->p->k->vars.n; i++)
        if (d->var[i].b)
            table_clear(&d->var[i]);
    d->all.n = d->unused.n = d->cut.n = 0;
    d->links.n = 1;
}
