/* Which moving views keep their distance.
 *
 * Where a register moves a view, its place in the tensor is known only when it runs, so an
 * access counts as one of the whole tensor. But between two barriers most tensors are reached
 * by one register alone, whose value stays: the accesses then lie apart as their offsets do,
 * wherever all of them are. Such views are marked, and dependence finding takes their walks as
 * written. A view that several places share is marked when it is so in all of them. */
#include "codegen/pass.h"

// What is known of a tensor between two barriers.
typedef struct mover {
    uint32_t section; // 1-based: that of the last access
    uint32_t reg, writes;
    int64_t step;
    bool mixed;
} mover;

typedef struct moves {
    cps_tfunc *f;
    mover *bufs;
    uint32_t *writes; // per register: how often it was written so far
    uint32_t section;
} moves;

// Everything is complete here and deps.h starts anew: control flow, and loads into registers.
static bool
barrier_at(const cps_tinst *x)
{
    switch ((cps_top)x->op) {
    case CPS_T_LOOP:
    case CPS_T_WHEN:
    case CPS_T_ELSE:
    case CPS_T_END:
    case CPS_T_FENCE:
    case CPS_T_CORE_BARRIER:
    case CPS_T_REG_LOAD:
        return true;
    default:
        return false;
    }
}

// As long as the walk as written stays inside the tensor: that is what tables are made for.
static bool
inside(const cps_tfunc *f, const cps_tview *v)
{
    int64_t lo = v->off, hi = v->off;
    for (int i = 0; i < v->nd; i++) {
        int64_t far = v->d[i].step * (v->d[i].num - 1);
        lo += far < 0 ? far : 0;
        hi += far > 0 ? far : 0;
    }
    int64_t es = cps_dtype_bytes(v->dtype);
    return lo >= 0 && (hi + 1) * es <= cps_tbuf_bytes(&f->bufs.data[v->buf]);
}

static void
look(moves *m, const cps_toper *o)
{
    if (o->kind != CPS_TO_VIEW)
        return;
    const cps_tview *v = &m->f->views.data[o->id];
    if (m->f->bufs.data[v->buf].space != CPS_HBM)
        return;
    mover *b = &m->bufs[v->buf];
    mover now = {m->section, v->reg, m->writes[v->reg], v->reg_step, false};
    if (b->section != m->section) {
        *b = now;
        b->mixed = v->index || !v->reg;
        return;
    }
    b->mixed |= v->index || b->reg != now.reg || b->writes != now.writes || b->step != now.step;
}

static void
mark(moves *m, const cps_toper *o)
{
    if (o->kind != CPS_TO_VIEW)
        return;
    cps_tview *v = &m->f->views.data[o->id];
    if (m->f->bufs.data[v->buf].space == CPS_HBM && (m->bufs[v->buf].mixed || !inside(m->f, v)))
        v->alone = false;
}

static void
each(moves *m, uint32_t from, uint32_t to, void (*f)(moves *, const cps_toper *))
{
    for (uint32_t i = from; i < to; i++) {
        const cps_tinst *x = &m->f->insts.data[i];
        for (int k = 0; k < x->nin; k++)
            f(m, &x->in[k]);
        for (int k = 0; k < x->nout; k++)
            f(m, &x->out[k]);
        if (x->nout && x->out[0].kind == CPS_TO_REG && f == look)
            m->writes[x->out[0].id]++;
    }
}

void
cps_moves_alone(cps_tfunc *f, cps_arena *a)
{
    bool any = false;
    for (uint32_t i = 0; i < f->views.n; i++) {
        cps_tview *v = &f->views.data[i];
        v->alone = v->reg && f->bufs.data[v->buf].space == CPS_HBM;
        any |= v->alone;
    }
    if (!any)
        return;
    moves m = {.f = f};
    m.bufs = cps_new_array(a, mover, f->bufs.n);
    m.writes = cps_new_array(a, uint32_t, f->bufs.n);
    for (uint32_t from = 0, i = 0; i <= f->insts.n; i++) {
        if (i < f->insts.n && !barrier_at(&f->insts.data[i]))
            continue;
        m.section++;
        each(&m, from, i, look);
        each(&m, from, i, mark);
        from = i + 1;
    }
}
