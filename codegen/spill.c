/* Spilling: what SBUF has no room for lives in HBM. Runs only when allocation failed before.
 *
 * As long as the least storage that lives at once exceeds the room, one declaration is chosen: of those
 * that live at the peak and can be streamed, the one whose uses move the fewest bytes. Its home is a
 * tensor of the kernel; or, when all it ever holds is loaded from an argument that nobody writes, that
 * argument, and the loads go. Then
 *
 *   - a transfer to or from the tile is one to or from its home;
 *   - what an instruction reads is loaded into a frame before it, unless a frame still holds it;
 *   - what an instruction writes goes to a frame, and from there home at once.
 *
 * Frames are as many buffers as fit. Which one is overwritten is Belady's choice, the one whose contents
 * are needed latest, among those that were not used just now, so that loads can run ahead. Frames do
 * not outlive the body of a loop or a condition.
 *
 * A tile stays on chip when it is pinned, moved by a register, the target of a sum on the side, or
 * used in another way than as a plain operand. What moved is said by W4108. */
#include "codegen/alloc.h"
#include "codegen/view.h"
#include "runtime/base/map.h"

#include <stdlib.h>

enum {
    TRIES = 4,     // the room is taken as 1, 7/8, 6/8 and 5/8 of SBUF
    FRAMES = 64,   // at most
    JUST_USED = 8, // frames that a load does not overwrite, half of all at most
    ALIGN = 32,    // of storage (alloc.c)
};

/* How a view lies in a frame: the same walk over the bytes it spans, or its elements dense. */
typedef struct shape {
    int64_t lo, end;  // of the tile, in elements of the view
    int64_t span;     // of the frame
    bool dense;       // span elements, each walked once, in order of the walk
} shape;

typedef struct frame {
    uint32_t buf;
    uint32_t last;  // instruction that used it
    uint32_t next;  // place in `events` of the next use of what it holds; UINT32_MAX: none
    cps_tview holds; // of the tile; buf 0: nothing
} frame;

typedef struct event {
    uint32_t key, next;
} event;

typedef struct spill {
    cps_cg *g;
    const cps_storage *s;
    bool *ours;       // per buffer
    uint32_t *home;   // per buffer of ours: HBM buffer, 0: its loads are repeated
    uint32_t *source; // per buffer: first of its loads in `loads` + 1
    CPS_VEC(uint32_t) loads; // instructions, when loads are repeated
    frame frame[FRAMES];
    unsigned frames;
    CPS_VEC(event) events; // uses in order
    uint32_t at;           // the next of them
    CPS_VEC(cps_tinst) out;
    cps_spilled sum;
} spill;

static shape
shape_of(const cps_tview *v)
{
    shape s = {.lo = v->off};
    int64_t hi = v->off, count = 1, run = 1;
    bool dense = true;
    for (int k = v->nd; k-- > 0;) {
        int64_t far = v->d[k].step * (v->d[k].num - 1);
        s.lo += far < 0 ? far : 0;
        hi += far > 0 ? far : 0;
        count *= v->d[k].num;
        dense = dense && (v->d[k].num == 1 || v->d[k].step == run);
        run *= v->d[k].num;
    }
    s.end = hi + 1;
    s.span = s.end - s.lo;
    s.dense = !dense && s.span > count; // gaps: packed, for what overlaps cannot span more than it counts
    for (int k = 0; k < v->nd && s.dense; k++)
        s.dense = v->d[k].step > 0 || v->d[k].num == 1; // what is walked twice stays as it is
    if (s.dense)
        s.span = count;
    return s;
}

static int64_t
bytes_of(const cps_tview *v)
{
    return shape_of(v).span * cps_dtype_bytes(v->dtype);
}

static bool
same_view(const cps_tview *a, const cps_tview *b)
{
    bool same = a->buf == b->buf && a->dtype == b->dtype && a->part == b->part && a->parts == b->parts &&
                a->off == b->off && a->nd == b->nd;
    for (int k = 0; same && k < a->nd; k++)
        same = a->d[k].num == b->d[k].num && a->d[k].step == b->d[k].step;
    return same;
}

static bool
overlap(const cps_tview *a, const cps_tview *b)
{
    if (a->buf != b->buf || a->part >= b->part + b->parts || b->part >= a->part + a->parts)
        return false;
    int64_t lo[2], hi[2];
    for (int i = 0; i < 2; i++) {
        const cps_tview *v = i ? b : a;
        int64_t l = v->off, h = v->off;
        for (int k = 0; k < v->nd; k++) {
            int64_t far = v->d[k].step * (v->d[k].num - 1);
            l += far < 0 ? far : 0;
            h += far > 0 ? far : 0;
        }
        lo[i] = l * cps_dtype_bytes(v->dtype);
        hi[i] = (h + 1) * cps_dtype_bytes(v->dtype);
    }
    return lo[0] < hi[1] && lo[1] < hi[0];
}

static const cps_tview *
view_of(const cps_cg *g, cps_toper o)
{
    return o.kind == CPS_TO_VIEW ? &g->f->views.data[o.id] : NULL;
}

static cps_toper *
operand(cps_tinst *x, int k)
{
    return k < x->nout ? &x->out[k] : &x->in[k - x->nout];
}

/* ---- what can be streamed ---- */

static bool
is_body(const cps_tinst *x)
{
    return x->op == CPS_T_LOOP || x->op == CPS_T_WHEN || x->op == CPS_T_ELSE || x->op == CPS_T_END;
}

typedef struct uses {
    int64_t bytes;   // that they move
    int64_t unit;    // of a frame
    unsigned frames; // at least: the operands of an instruction, and one to load ahead
} uses;

// A side of a transfer that goes with tiles only: rows by index, a place in a register, a form asked for.
static bool
far_is_moved(const cps_cg *g, const cps_tinst *x)
{
    const cps_tview *a = view_of(g, x->out[0]), *b = view_of(g, x->in[0]);
    return a->index || a->reg || b->index || b->reg || cps_tinst_get(x, CPS_TA_DGE, 0);
}

// False: the storage has to stay.
static bool
uses_of(cps_cg *g, const bool *ours, uses *u)
{
    *u = (uses){.unit = ALIGN};
    for (uint32_t i = 0; i < g->f->insts.n; i++) {
        cps_tinst *x = &g->f->insts.data[i];
        unsigned frames = 1;
        for (int k = 0; k < x->nout + x->nin; k++) {
            const cps_tview *v = view_of(g, *operand(x, k));
            if (v && v->index && ours[g->f->views.data[v->index - 1].buf])
                return false;
            if (!v || !ours[v->buf])
                continue;
            if (x->op == CPS_T_DMA && far_is_moved(g, x))
                return false;
            if (v->reg || v->index || v->nd >= CPS_TILE_DIMS || x->op == CPS_T_REG_LOAD || (k == 1 && x->nout == 2))
                return false;
            u->bytes += bytes_of(v) * v->parts;
            if (x->op != CPS_T_DMA) {
                u->unit = CPS_MAX(u->unit, cps_round_up(bytes_of(v), ALIGN));
                frames++;
            }
        }
        u->frames = CPS_MAX(u->frames, frames);
    }
    return true;
}

static int64_t
least(const cps_storage *s)
{
    return s->unit * (s->fixed ? s->slots : s->need);
}

// The most that lives at once, and where; with the slots that storage needs, or those it would like.
static int64_t
peak(const cps_survey *v, uint32_t *when, const cps_storage *without, bool ample)
{
    int64_t most = 0;
    *when = 0;
    for (uint32_t i = 0; i < v->all.n; i++) {
        const cps_storage *at = &v->all.data[i];
        int64_t sum = 0;
        if (at->space != CPS_SBUF || (without && (at->first > without->last || without->first > at->last)))
            continue;
        uint32_t point = without ? CPS_MAX(at->first, without->first) : at->first;
        for (uint32_t k = 0; k < v->all.n; k++) {
            const cps_storage *s = &v->all.data[k];
            if (s->space == CPS_SBUF && s != without && s->first <= point && point <= s->last)
                sum += ample ? s->unit * s->slots : least(s);
        }
        if (sum > most) {
            most = sum;
            *when = point;
        }
    }
    return most;
}

// Whether a place in SBUF was asked for.
static bool
pinned(const cps_cg *g, const cps_storage *s)
{
    bool pin = s->pin >= 0;
    for (uint32_t k = 0; k < s->tenants.n; k++)
        pin |= g->f->bufs.data[s->tenants.data[k].buf].pin_part > 0;
    return pin;
}

static bool *
buffers_of(cps_cg *g, const cps_storage *s)
{
    bool *ours = cps_new_array(g->arena, bool, g->f->bufs.n);
    for (uint32_t k = 0; k < s->tenants.n; k++)
        ours[s->tenants.data[k].buf] = true;
    return ours;
}

static const cps_storage *
choose(cps_cg *g, const cps_survey *v, uint32_t when, uint32_t frames_from)
{
    const cps_storage *best = NULL;
    double least_cost = 0;
    for (uint32_t i = 0; i < v->all.n; i++) {
        const cps_storage *s = &v->all.data[i];
        if (s->space != CPS_SBUF || pinned(g, s) || s->first > when || when > s->last ||
            s->tenants.data[0].buf >= frames_from)
            continue;
        uses u;
        if (!uses_of(g, buffers_of(g, s), &u) || u.frames * u.unit >= least(s))
            continue; // frames would need no less than the tile itself
        double cost = (double)u.bytes / (double)(least(s) - u.frames * u.unit);
        if (!best || cost < least_cost) {
            best = s;
            least_cost = cost;
        }
    }
    return best;
}

/* ---- homes ---- */

// An axis of a load, walked on both sides: step 0 of the tile means its partitions.
typedef struct axis {
    int64_t tile, hbm, num;
} axis;

// The common axes of a load's two sides, slowest first; 0: they do not pair.
static int
pair(const cps_tview *tile, const cps_tview *hbm, axis *out, int most)
{
    axis a[CPS_TILE_DIMS + 2];
    cps_tdim h[CPS_TILE_DIMS + 1];
    int n = 0, na = 0, nh = 0;
    if (tile->parts > 1)
        a[na++] = (axis){0, 0, tile->parts};
    for (int k = 0; k < tile->nd; k++)
        if (tile->d[k].num > 1)
            a[na++] = (axis){tile->d[k].step, 0, tile->d[k].num};
    for (int k = 0; k < hbm->nd; k++)
        if (hbm->d[k].num > 1)
            h[nh++] = hbm->d[k];
    // From the fastest axis on: the shorter of two axes is common, the rest of the longer goes on.
    axis fast[CPS_TILE_DIMS + 2];
    while (na > 0 && nh > 0 && n < most && n < (int)cps_countof(fast)) {
        axis *t = &a[na - 1];
        cps_tdim *s = &h[nh - 1];
        int64_t m = CPS_MIN(t->num, s->num);
        if (t->num % m || s->num % m || (t->tile == 0 && t->num != m))
            return 0;
        fast[n++] = (axis){t->tile, s->step, m};
        if (t->num == m) {
            na--;
        } else {
            t->num /= m;
            t->tile *= m;
        }
        if (s->num == m) {
            nh--;
        } else {
            s->num /= m;
            s->step *= m;
        }
    }
    for (int k = 0; k < n; k++)
        out[k] = fast[n - 1 - k];
    return na || nh ? 0 : CPS_MAX(n, 1);
}

// Where the elements of tile view `v` come from by load `x`; false when that is no walk.
static bool
source_of(const cps_cg *g, const cps_tinst *x, const cps_tview *v, cps_tview *out)
{
    const cps_tview *tile = view_of(g, x->out[0]), *hbm = view_of(g, x->in[0]);
    axis a[CPS_TILE_DIMS + 2] = {{0}};
    int n = pair(tile, hbm, a, CPS_TILE_DIMS + 1);
    if (n == 0 || v->dtype != tile->dtype || v->part < tile->part || v->part + v->parts > tile->part + tile->parts)
        return false;
    *out = *hbm;
    int64_t rest = v->off - tile->off, start[CPS_TILE_DIMS + 2] = {0}, part_step = 0;
    for (int k = 0; k < n; k++) {
        if (a[k].tile == 0 && a[k].num > 1)
            part_step = a[k].hbm;
        if (a[k].tile <= 0)
            continue;
        start[k] = CPS_MIN(rest / a[k].tile, a[k].num - 1);
        rest -= start[k] * a[k].tile;
        out->off += start[k] * a[k].hbm;
    }
    if (rest != 0 || v->off < tile->off || v->nd + 1 > CPS_TILE_DIMS)
        return false;
    out->off += (v->part - tile->part) * part_step;
    out->nd = 0;
    out->d[out->nd++] = (cps_tdim){part_step, v->parts};
    for (int k = 0; k < v->nd; k++) {
        int at = -1;
        for (int j = 0; j < n && v->d[k].num > 1; j++)
            if (a[j].tile > 0 && v->d[k].step > 0 && v->d[k].step % a[j].tile == 0 &&
                start[j] + v->d[k].step / a[j].tile * (v->d[k].num - 1) < a[j].num && (at < 0 || a[j].tile > a[at].tile))
                at = j;
        if (v->d[k].num > 1 && at < 0)
            return false;
        int64_t step = at < 0 ? 1 : v->d[k].step / a[at].tile * a[at].hbm;
        if (at >= 0)
            start[at] += v->d[k].step / a[at].tile * (v->d[k].num - 1); // no two axes may leave it together
        out->d[out->nd++] = (cps_tdim){step, v->d[k].num};
    }
    return true;
}

// The last load before `i` that touches what `v` reads, when it holds all of that.
static bool
repeat_of(const spill *s, uint32_t i, const cps_tview *v, cps_tview *out)
{
    for (uint32_t k = s->loads.n; k-- > 0;) {
        const cps_tinst *x = &s->g->f->insts.data[s->loads.data[k]];
        if (s->loads.data[k] < i && overlap(view_of(s->g, x->out[0]), v))
            return source_of(s->g, x, v, out);
    }
    return false;
}

// Whether all that the storage holds comes from arguments that nobody writes, by loads that can be repeated.
static bool
repeatable(spill *s)
{
    cps_cg *g = s->g;
    uint32_t open = 0;
    for (uint32_t i = 0; i < g->f->insts.n; i++) {
        cps_tinst *x = &g->f->insts.data[i];
        for (int k = 0; k < x->nout; k++) {
            const cps_tview *v = view_of(g, x->out[k]), *from = x->nin ? view_of(g, x->in[0]) : NULL;
            if (!v || !s->ours[v->buf])
                continue;
            const cps_tbuf *b = from ? &g->f->bufs.data[from->buf] : NULL;
            if (x->op != CPS_T_DMA || cps_tinst_get(x, CPS_TA_ACCUMULATE, 0) || open || !from || from->reg || from->index || from->dtype != v->dtype || x->label ||
                b->space != CPS_HBM || (b->role != CPS_IN && b->role != CPS_DATA))
                return false;
            cps_vec_push(g->arena, &s->loads, i);
        }
        if (x->op == CPS_T_LOOP || x->op == CPS_T_WHEN)
            open++;
        else if (x->op == CPS_T_END)
            open--;
    }
    for (uint32_t i = 0; i < g->f->insts.n; i++) {
        cps_tinst *x = &g->f->insts.data[i];
        for (int k = x->nout; k < x->nout + x->nin; k++) {
            const cps_tview *v = view_of(g, *operand(x, k));
            cps_tview from;
            if (v && s->ours[v->buf] && (shape_of(v).span < cps_tview_elems(v) || !repeat_of(s, i, v, &from)))
                return false;
        }
    }
    return true;
}

// The walk of a tile's view in its home, [partitions, elements].
static cps_tview
home_view(const spill *s, const cps_tview *v)
{
    cps_tview h = *v;
    int64_t row = cps_tbuf_bytes(&s->g->f->bufs.data[v->buf]) / cps_dtype_bytes(v->dtype);
    h.buf = s->home[v->buf];
    h.off = v->part * row + v->off;
    h.part = h.parts = 0;
    h.nd = v->nd + 1;
    h.d[0] = (cps_tdim){row, v->parts};
    memcpy(&h.d[1], v->d, (size_t)v->nd * sizeof v->d[0]);
    return h;
}

static void
make_homes(spill *s)
{
    cps_tfunc *f = s->g->f;
    for (uint32_t k = 0; k < s->s->tenants.n; k++) {
        uint32_t id = s->s->tenants.data[k].buf;
        const cps_tbuf *t = &f->bufs.data[id];
        cps_tbuf b = {.name = t->name, .space = CPS_HBM, .role = CPS_LOCAL, .dtype = t->dtype, .rank = 2, .loc = t->loc,
                      .pin_byte = -1, .pin_bank = -1, .pin_part = -1};
        b.dim[0] = t->dim[0];
        b.dim[1] = cps_tbuf_elems(t);
        s->home[id] = cps_tile_buf(f, b);
    }
}

/* ---- frames ---- */

// The view of a frame that stands for view `v` of the tile, which the frame holds or holds more than.
static cps_toper
in_frame(spill *s, const frame *fr, const cps_tview *v)
{
    cps_tview x = *v;
    shape h = shape_of(&fr->holds);
    x.buf = fr->buf;
    x.off = h.dense ? 0 : v->off - h.lo;
    int64_t run = 1;
    for (int k = x.nd; k-- > 0 && h.dense;) {
        x.d[k].step = run;
        run *= x.d[k].num;
    }
    return cps_to_view(cps_tile_view(s->g->f, x));
}

// The transfer between a frame and what it stands for; both sides walk alike.
static void
transfer(spill *s, const cps_tinst *by, const frame *fr, const cps_tview *v, cps_tview far, bool load)
{
    cps_tinst t = {.op = CPS_T_DMA, .engine = CPS_ENGINE_ANY, .nout = 1, .nin = 1, .round = by->round, .stage = by->stage, .loc = by->loc};
    cps_toper near = in_frame(s, fr, v);
    shape h = shape_of(v);
    if (!h.dense && h.span != cps_tview_elems(v)) { // walked twice in places: all that it spans, once
        cps_tview n = s->g->f->views.data[near.id];
        n.off = 0;
        n.nd = 1;
        n.d[0] = (cps_tdim){1, h.span};
        near = cps_to_view(cps_tile_view(s->g->f, n));
        far.off += h.lo - v->off;
        far.nd = 2;
        far.d[1] = (cps_tdim){1, h.span};
    }
    cps_toper away = cps_to_view(cps_tile_view(s->g->f, far));
    t.out[0] = load ? near : away;
    t.in[0] = load ? away : near;
    cps_vec_push(s->g->arena, &s->out, t);
    s->sum.transfers++;
    s->sum.bytes += bytes_of(v) * v->parts;
}

// Whether a frame of `a`, all of its span, holds all of `v`.
static bool
within(const cps_tview *a, const cps_tview *v)
{
    shape x = shape_of(a), y = shape_of(v);
    return a->buf == v->buf && a->dtype == v->dtype && a->part <= v->part && v->part + v->parts <= a->part + a->parts &&
           !x.dense && x.span == cps_tview_elems(a) && x.lo <= y.lo && y.end <= x.lo + x.span;
}

static frame *
holding(spill *s, const cps_tview *v)
{
    for (unsigned k = 0; k < s->frames; k++)
        if (s->frame[k].holds.buf && same_view(&s->frame[k].holds, v))
            return &s->frame[k];
    for (unsigned k = 0; k < s->frames; k++)
        if (s->frame[k].holds.buf && within(&s->frame[k].holds, v))
            return &s->frame[k];
    return NULL;
}

// A frame to overwrite at instruction `i` (numbered from 1).
static frame *
room(spill *s, uint32_t i)
{
    frame *best = NULL;
    unsigned later[FRAMES]; // how many frames were used after each
    for (unsigned k = 0; k < s->frames; k++) {
        later[k] = 0;
        for (unsigned j = 0; j < s->frames; j++)
            later[k] += s->frame[j].last > s->frame[k].last;
    }
    for (unsigned k = 0; k < s->frames; k++) {
        frame *f = &s->frame[k];
        if (f->last == i || (f->last && later[k] < CPS_MIN((unsigned)JUST_USED, s->frames / 2)))
            continue; // its own operand, or just used
        if (!best || (f->holds.buf == 0) > (best->holds.buf == 0) ||
            ((f->holds.buf == 0) == (best->holds.buf == 0) &&
             (f->next > best->next || (f->next == best->next && f->last < best->last))))
            best = f;
    }
    return best;
}

static void
forget(spill *s, const cps_tview *v, const frame *but)
{
    for (unsigned k = 0; k < s->frames; k++)
        if (&s->frame[k] != but && s->frame[k].holds.buf && (!v || overlap(&s->frame[k].holds, v)))
            s->frame[k].holds.buf = 0;
}

// Instructions that keep part of what their result held.
static bool
keeps(const cps_tinst *x)
{
    return x->op == CPS_T_COPY_PRED || x->op == CPS_T_SHUFFLE;
}

// Whether the two sides of the instruction may be transfers of their own to or from a home.
static bool
plain_transfer(const cps_tinst *x)
{
    return x->op == CPS_T_DMA;
}

static void
use_frame(spill *s, frame *f, uint32_t i)
{
    uint32_t next = s->events.data[s->at].next;
    f->last = i;
    f->next = f->next > s->at ? CPS_MIN(f->next, next) : next; // what it holds and parts of that
    s->at++;
}

static bool
rewrite(spill *s, uint32_t i)
{
    cps_cg *g = s->g;
    cps_tinst x = g->f->insts.data[i];
    uint32_t now = i + 1;
    if (is_body(&x))
        forget(s, NULL, NULL);
    for (int k = x.nout; k < x.nout + x.nin; k++) {
        cps_toper *o = operand(&x, k);
        const cps_tview *at = view_of(g, *o);
        if (!at || !s->ours[at->buf])
            continue;
        cps_tview v = *at, far;
        if (!s->home[v.buf] && !repeat_of(s, i, &v, &far))
            return false;
        if (s->home[v.buf])
            far = home_view(s, &v);
        if (plain_transfer(&x)) {
            *o = cps_to_view(cps_tile_view(g->f, far));
            continue;
        }
        frame *f = holding(s, &v);
        if (!f) {
            f = room(s, now);
            if (!f)
                return false;
            f->holds = v;
            f->next = 0;
            transfer(s, &x, f, &v, far, true);
        }
        *o = in_frame(s, f, &v);
        use_frame(s, f, now);
    }
    const cps_tview *at = x.nout ? view_of(g, x.out[0]) : NULL;
    if (!at || !s->ours[at->buf]) {
        cps_vec_push(g->arena, &s->out, x);
        return true;
    }
    cps_tview v = *at;
    if (!s->home[v.buf]) // a load that is repeated where it is needed
        return true;
    if (plain_transfer(&x)) {
        forget(s, &v, NULL);
        x.out[0] = cps_to_view(cps_tile_view(g->f, home_view(s, &v)));
        cps_vec_push(g->arena, &s->out, x);
        return true;
    }
    frame *f = keeps(&x) ? holding(s, &v) : NULL;
    if (!f) {
        f = room(s, now);
        if (!f)
            return false;
        f->holds = v;
        f->next = 0;
        if (keeps(&x))
            transfer(s, &x, f, &v, home_view(s, &v), true);
    }
    forget(s, &v, f);
    x.out[0] = in_frame(s, f, &v);
    use_frame(s, f, now);
    cps_vec_push(g->arena, &s->out, x);
    transfer(s, &x, f, &v, home_view(s, &v), false);
    return true;
}

// The uses in order, each with the next of the same view.
static void
foresee(spill *s)
{
    cps_cg *g = s->g;
    cps_map keys;
    cps_map_init(&keys, g->arena);
    for (uint32_t i = 0; i < g->f->insts.n; i++) {
        cps_tinst *x = &g->f->insts.data[i];
        for (int n = 0; n < x->nin + x->nout && !plain_transfer(x); n++) {
            const cps_tview *v = view_of(g, *operand(x, (n + x->nout) % (x->nin + x->nout))); // inputs first
            if (!v || !s->ours[v->buf])
                continue;
            cps_buf b = {0};
            cps_buf_printf(&b, "%u %d %u %u %lld", v->buf, v->dtype, v->part, v->parts, (long long)v->off);
            for (int k = 0; k < v->nd; k++)
                cps_buf_printf(&b, " %lld %lld", (long long)v->d[k].step, (long long)v->d[k].num);
            bool fresh;
            uint64_t *key = cps_map_at_str(&keys, b.data, &fresh);
            if (fresh)
                *key = keys.n;
            cps_buf_fini(&b);
            cps_vec_push(g->arena, &s->events, ((event){(uint32_t)*key, UINT32_MAX}));
        }
    }
    uint32_t *next = cps_new_array(g->arena, uint32_t, s->events.n + 1);
    memset(next, 0xff, (s->events.n + 1) * sizeof *next);
    for (uint32_t k = s->events.n; k-- > 0;) {
        s->events.data[k].next = next[s->events.data[k].key];
        next[s->events.data[k].key] = k;
    }
}

static bool
stream(cps_cg *g, const cps_survey *all, const cps_storage *victim, int64_t limit)
{
    spill s = {.g = g, .s = victim, .ours = buffers_of(g, victim), .sum = {.name = victim->name, .loc = victim->loc}};
    uint32_t when, parts = 1;
    uses u;
    s.home = cps_new_array(g->arena, uint32_t, g->f->bufs.n);
    if (!uses_of(g, s.ours, &u))
        return false;
    for (uint32_t k = 0; k < victim->tenants.n; k++)
        parts = CPS_MAX(parts, (uint32_t)g->f->bufs.data[victim->tenants.data[k].buf].dim[0]);
    foresee(&s);
    // What runs ahead elsewhere is worth more than what is kept here.
    int64_t fit = (limit - peak(all, &when, victim, true)) / u.unit, most = (least(victim) - 1) / u.unit;
    if (fit < u.frames + 4)
        fit = (limit - peak(all, &when, victim, false)) / u.unit;
    s.frames = (unsigned)CPS_MAX((int64_t)u.frames, CPS_MIN(CPS_MIN(fit, most), (int64_t)FRAMES));
    cps_dtype t = g->f->bufs.data[victim->tenants.data[0].buf].dtype;
    for (unsigned k = 0; k < s.frames; k++) {
        cps_tbuf b = {.name = victim->name, .space = CPS_SBUF, .dtype = t, .rank = 2, .slots = 1, .loc = victim->loc,
                      .pin_byte = -1, .pin_bank = -1, .pin_part = -1};
        b.dim[0] = parts;
        b.dim[1] = cps_ceil_div(u.unit, cps_dtype_bytes(t));
        s.frame[k].buf = cps_tile_buf(g->f, b);
        s.frame[k].next = UINT32_MAX;
    }
    if (!repeatable(&s))
        make_homes(&s);
    for (uint32_t i = 0, n = g->f->insts.n; i < n; i++)
        if (!rewrite(&s, i))
            return false;
    memcpy(&g->f->insts, &s.out, sizeof g->f->insts);
    cps_vec_push(g->arena, &g->spilled, s.sum);
    return true;
}

bool
cps_pass_spill(cps_cg *g)
{
    int64_t limit = g->t->sbuf_bytes - g->t->sbuf_reserve;
    uint32_t own = g->f->bufs.n, when;
    if (g->tries == 0)
        return true;
    g->spilled.n = 0;
    limit -= (g->tries - 1) * limit / 8;
    for (;;) {
        cps_survey v = {0};
        if (!cps_alloc_survey(g, &v))
            return false;
        if (peak(&v, &when, NULL, false) <= limit)
            break;
        const cps_storage *s = choose(g, &v, when, own);
        if (!s || !stream(g, &v, s, limit))
            break;
    }
    g->may_spill = g->tries < TRIES && g->spilled.n > 0;
    return true;
}
