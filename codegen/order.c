/* Order: afterwards the list is the issue order, and per engine the order of its stream.
 *
 * The trace order stands, with two exceptions. Instructions of a software pipeline carry the
 * round in which they issue: within a run of such instructions rounds come in order, and in a
 * round the later stage (the older iteration) goes first. What the pipeline moves must not pass
 * anything it depends on; that is checked per byte range. `after` names a label that must have
 * come before.
 *
 * Loads run ahead by themselves: SP starts nothing but loads, and a load waits only for its slot.
 * A better order is a scheduler's business; any permutation that keeps dependences may stand here. */
#include "codegen/legal.h"

#include <stdlib.h>

typedef struct slot {
    int32_t round, stage;
    uint32_t at;
} slot;

static int
by_round(const void *a, const void *b)
{
    const slot *x = a, *y = b;
    if (x->round != y->round)
        return x->round < y->round ? -1 : 1;
    if (x->stage != y->stage)
        return x->stage > y->stage ? -1 : 1;
    return x->at < y->at ? -1 : x->at > y->at;
}

typedef struct touch {
    uint32_t inst, view;
    bool write;
} touch;

typedef CPS_VEC(touch) touches;

// Lowest and highest element of a view, on-chip per partition.
static void
reach(const cps_tview *v, int64_t *lo, int64_t *hi)
{
    cps_pat p;
    cps_pat_of(v, &p);
    cps_pat_span(&p, lo, hi);
    int64_t b = cps_dtype_bytes(v->dtype);
    *lo = (*lo + v->off) * b;
    *hi = (*hi + v->off) * b + b - 1;
}

static bool
overlap(const cps_tfunc *f, uint32_t x, uint32_t y)
{
    const cps_tview *a = &f->views.data[x], *b = &f->views.data[y];
    if (a->reg || b->reg || a->index || b->index)
        return true;
    if (a->parts && (a->part >= b->part + b->parts || b->part >= a->part + a->parts))
        return false;
    int64_t al, ah, bl, bh;
    reach(a, &al, &ah);
    reach(b, &bl, &bh);
    return al <= bh && bl <= ah;
}

static void
note_access(cps_cg *g, touches *t, uint32_t inst, const cps_toper *o, bool write)
{
    if (o->kind != CPS_TO_VIEW)
        return;
    const cps_tview *v = &g->f->views.data[o->id];
    cps_vec_push(g->arena, &t[v->buf], ((touch){inst, o->id, write}));
    if (v->index) {
        uint32_t iv = v->index - 1;
        cps_vec_push(g->arena, &t[g->f->views.data[iv].buf], ((touch){inst, iv, false}));
    }
}

// No pair that touches the same bytes, one of them writing, may have changed its order.
static bool
check(cps_cg *g, const uint32_t *pos)
{
    cps_tfunc *f = g->f;
    touches *t = cps_new_array(g->arena, touches, f->bufs.n);
    for (uint32_t i = 0; i < f->insts.n; i++) {
        const cps_tinst *x = &f->insts.data[i];
        for (int k = 0; k < x->nin; k++)
            note_access(g, t, i, &x->in[k], false);
        for (int k = 0; k < x->nout; k++)
            note_access(g, t, i, &x->out[k], true);
    }
    for (uint32_t b = 0; b < f->bufs.n; b++) {
        uint32_t high = 0, high_write = 0;
        for (uint32_t j = 0; j < t[b].n; j++) {
            touch y = t[b].data[j];
            if (pos[y.inst] < (y.write ? high : high_write))
                for (uint32_t i = 0; i < j; i++) {
                    touch x = t[b].data[i];
                    if ((!x.write && !y.write) || x.inst == y.inst ||
                        pos[x.inst] <= pos[y.inst] || !overlap(f, x.view, y.view))
                        continue;
                    const cps_tinst *late = &f->insts.data[y.inst];
                    cps_error(g->d, CPS_E6202, late->loc,
                              "the pipeline issues this '%s' before the one it depends on",
                              cps_tops[late->op].name);
                    cps_note(g->d, f->insts.data[x.inst].loc, "'%s' is touched here",
                             f->bufs.data[b].name);
                    cps_help(g->d, "move both into one stage, or the first into an earlier one");
                    return false;
                }
            high = CPS_MAX(high, pos[y.inst]);
            if (y.write)
                high_write = CPS_MAX(high_write, pos[y.inst]);
        }
    }
    return true;
}

static bool
labels(cps_cg *g)
{
    cps_map seen;
    cps_map_init(&seen, g->arena);
    for (uint32_t i = 0; i < g->f->insts.n; i++) {
        const cps_tinst *x = &g->f->insts.data[i];
        if (x->after && !cps_map_find(&seen, x->after)) {
            cps_error(g->d, CPS_E6201, x->loc,
                      "'%s' must follow a label that does not come before it",
                      cps_tops[x->op].name);
            return false;
        }
        if (x->label)
            *cps_map_at(&seen, x->label, NULL) = i;
    }
    return true;
}

bool
cps_pass_order(cps_cg *g)
{
    cps_tfunc *f = g->f;
    slot *s = cps_new_array(g->arena, slot, f->insts.n + 1);
    bool moved = false;
    for (uint32_t i = 0; i < f->insts.n;) {
        uint32_t n = i;
        for (; n < f->insts.n && f->insts.data[n].round >= 0; n++)
            s[n] = (slot){f->insts.data[n].round, f->insts.data[n].stage, n};
        if (n > i) {
            qsort(s + i, n - i, sizeof *s, by_round);
            for (uint32_t k = i; k < n; k++)
                moved |= s[k].at != k;
            i = n;
        } else {
            s[i].at = i;
            i++;
        }
    }
    if (moved) {
        uint32_t *pos = cps_new_array(g->arena, uint32_t, f->insts.n);
        cps_tinst *list = cps_new_array(g->arena, cps_tinst, f->insts.n);
        for (uint32_t i = 0; i < f->insts.n; i++) {
            pos[s[i].at] = i;
            list[i] = f->insts.data[s[i].at];
        }
        if (!check(g, pos))
            return false;
        memcpy(f->insts.data, list, f->insts.n * sizeof *list);
    }
    return labels(g);
}
