/* Dependence finding on physical memory.
 *
 * Every access still of interest stands in the buckets (512 bytes of a partition, or a 512th of
 * a variable) that its hull touches; a new access looks only there. An access goes out of
 * interest when a later one hides it: whoever would wait for it waits for the later one, which
 * itself waited. That holds for a write that covers it, and for a read of the same in-order
 * engine that covers a read. So lists stay short and the cost is about linear in the program.
 */
#include "codegen/deps.h"

#define GRAIN 512

typedef struct entry {
    cps_macc a;
    uint32_t op, seen;
    int64_t end; // of the hull
    bool dead;
} entry;

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
    CPS_VEC(entry) all;
    uint32_t scan;
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
same_walk(const cps_macc *a, const cps_macc *b)
{
    bool same = a->base == b->base && a->run == b->run && a->nd == b->nd;
    for (int i = 0; same && i < a->nd; i++)
        same = a->d[i].step == b->d[i].step && a->d[i].num == b->d[i].num;
    return same;
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

static bool
hides(const cps_deps *d, const cps_macc *now, uint32_t op, const entry *e)
{
    if (!covers(now, &e->a))
        return false;
    if (now->write)
        return true;
    const cps_mop *m = &d->p->ops.data[op], *o = &d->p->ops.data[e->op];
    return !e->a.write && m->kind == CPS_M_UNIT && o->kind == CPS_M_UNIT &&
           m->engine == o->engine;
}

static void
look(cps_deps *d, bucket *b, const cps_macc *a, uint32_t op, cps_oplist *out)
{
    uint32_t keep = 0;
    for (uint32_t i = 0; i < b->n; i++) {
        entry *e = &d->all.data[b->data[i]];
        if (e->dead)
            continue;
        b->data[keep++] = b->data[i];
        if (e->seen == d->scan || e->op == op)
            continue;
        e->seen = d->scan;
        if ((!a->write && !e->a.write && !covers(a, &e->a)) || !cps_acc_overlap(a, &e->a))
            continue;
        if (a->write || e->a.write)
            cps_vec_push(d->arena, out, e->op);
        e->dead = hides(d, a, op, e);
    }
    b->n = keep;
}

void
cps_deps_find(cps_deps *d, uint32_t op, cps_oplist *out)
{
    const cps_mop *m = &d->p->ops.data[op];
    // All accesses look before any is recorded: an operation may read what it writes.
    for (uint32_t i = 0; i < m->nacc; i++) {
        const cps_macc *a = &d->p->accs.data[m->acc + i];
        table *t = table_of(d, a);
        if (!t->b)
            continue;
        d->scan++;
        for (int64_t k = a->base / t->grain; k <= (hull_end(a) - 1) / t->grain; k++)
            look(d, &t->b[k], a, op, out);
    }
    for (uint32_t i = 0; i < m->nacc; i++) {
        const cps_macc *a = &d->p->accs.data[m->acc + i];
        table *t = table_of(d, a);
        if (!t->b)
            continue;
        entry e = {.a = *a, .op = op};
        cps_vec_push(d->arena, &d->all, e);
        for (int64_t k = a->base / t->grain; k <= (hull_end(a) - 1) / t->grain; k++)
            cps_vec_push(d->arena, &t->b[k], d->all.n - 1);
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
    d->all.n = 0;
    d->scan = 0;
}
