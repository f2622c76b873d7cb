/* Allocation: afterwards every on-chip buffer that is used has its byte and partition.
 *
 * The unit is the storage: one declaration with its ring of slots, or one buffer. In SBUF it
 * takes a column of bytes through all partitions; in PSUM whole banks, since an accumulation
 * group owns the zero region it starts in. Lifetimes run from first to last use in program
 * order; a use inside a loop or a condition covers all of it, unless the buffer is declared in it. Storages that live at the same time never
 * share bytes; later passes find dependences by address, so sharing at different times is safe.
 *
 * Slots: as declared, or chosen here: what the program needs (an execution may reuse a slot
 * only when its last tenant is dead), plus more to run ahead, taken back until everything fits.
 * Places are kept apart even in time when there is room, since reuse makes engines wait.
 *
 * Fails when even the least number of slots does not fit: with the live set at the peak, or, as long as
 * there may be something to spill (spill.c), without a word. */
#include "codegen/alloc.h"
#include "runtime/base/map.h"

#include <stdlib.h>

#define ALIGN 32
#define AHEAD_LOAD 4 /* slots wanted for what DMA brings in */
#define AHEAD 2      /* for everything else */

typedef struct alloc {
    cps_cg *g;
    CPS_VEC(cps_storage) all;
    uint32_t *first, *last; // per buffer, UINT32_MAX: never
    bool *loaded;
} alloc;

static void
use(alloc *a, uint32_t buf, uint32_t from, uint32_t to)
{
    if (a->first[buf] == UINT32_MAX || from < a->first[buf])
        a->first[buf] = from;
    if (a->last[buf] == UINT32_MAX || to > a->last[buf])
        a->last[buf] = to;
}

// A use at `i`, in so many open bodies: it lasts as long as the one that the buffer is declared outside of.
static void
use_at(alloc *a, uint32_t buf, uint32_t i, uint32_t open, const uint32_t *from, const uint32_t *close)
{
    uint32_t depth = a->g->f->bufs.data[buf].depth;
    if (depth < open)
        use(a, buf, from[depth], close[from[depth]]);
    else
        use(a, buf, i, i);
}

static void
lifetimes(alloc *a)
{
    const cps_tfunc *f = a->g->f;
    uint32_t *close = cps_new_array(a->g->arena, uint32_t, f->insts.n + 1); // where each body ends
    CPS_VEC(uint32_t) from = {0};                                            // bodies open, by where they begin
    for (uint32_t i = 0; i < f->insts.n; i++) {
        const cps_tinst *x = &f->insts.data[i];
        if (x->op == CPS_T_LOOP || x->op == CPS_T_WHEN)
            cps_vec_push(a->g->arena, &from, i);
        else if (x->op == CPS_T_END)
            close[from.data[--from.n]] = i;
    }
    for (uint32_t i = 0; i < f->insts.n; i++) {
        const cps_tinst *x = &f->insts.data[i];
        for (int k = 0; k < x->nout + x->nin; k++) {
            const cps_toper *o = k < x->nout ? &x->out[k] : &x->in[k - x->nout];
            if (o->kind != CPS_TO_VIEW)
                continue;
            const cps_tview *v = &f->views.data[o->id];
            use_at(a, v->buf, i, from.n, from.data, close);
            if (v->index)
                use_at(a, f->views.data[v->index - 1].buf, i, from.n, from.data, close);
            if (k < x->nout && (x->op == CPS_T_DMA || x->op == CPS_T_DMA_TRANSPOSE))
                a->loaded[v->buf] = true;
        }
        if (x->op == CPS_T_LOOP || x->op == CPS_T_WHEN)
            cps_vec_push(a->g->arena, &from, i);
        else if (x->op == CPS_T_END)
            from.n--;
    }
}

static int
by_turn(const void *x, const void *y)
{
    const cps_tenant *a = x, *b = y;
    return a->turn < b->turn ? -1 : a->turn > b->turn;
}

// Least number of slots so that no execution takes the place of one still needed.
static uint32_t
least_slots(const cps_storage *s, cps_arena *arena)
{
    uint32_t turns = s->tenants.n ? s->tenants.data[s->tenants.n - 1].turn + 1 : 1;
    uint32_t *held = cps_new_array(arena, uint32_t, turns);
    for (uint32_t n = 1; n < turns; n++) {
        for (uint32_t i = 0; i < n; i++)
            held[i] = UINT32_MAX;
        bool ok = true;
        for (uint32_t i = 0; i < s->tenants.n && ok; i++) {
            const cps_tenant *t = &s->tenants.data[i];
            uint32_t *h = &held[t->turn % n];
            ok = *h == UINT32_MAX || *h < t->first;
            *h = t->last;
        }
        if (ok)
            return n;
    }
    return turns;
}

static void
gather(alloc *a)
{
    cps_tfunc *f = a->g->f;
    cps_map rings;
    cps_map_init(&rings, a->g->arena);
    for (uint32_t i = 1; i < f->bufs.n; i++) {
        cps_tbuf *b = &f->bufs.data[i];
        if ((b->space != CPS_SBUF && b->space != CPS_PSUM) || a->first[i] == UINT32_MAX)
            continue;
        cps_storage *s = NULL;
        if (b->ring) {
            bool fresh;
            uint64_t *v = cps_map_at(&rings, b->ring, &fresh);
            if (!fresh)
                s = &a->all.data[*v];
            else
                *v = a->all.n;
        }
        if (!s) {
            s = cps_vec_add(a->g->arena, &a->all);
            *s = (cps_storage){.space = b->space,
                           .slots = b->slots,
                           .fixed = b->slots != 0,
                           .pin = b->space == CPS_PSUM ? b->pin_bank : b->pin_byte,
                           .first = a->first[i],
                           .last = a->last[i],
                           .id = a->all.n - 1,
                           .name = b->name,
                           .loc = b->loc,
                           .at = -1};
        }
        int64_t unit = b->space == CPS_PSUM
                           ? cps_ceil_div(cps_tbuf_bytes(b), a->g->t->psum_bank_bytes)
                           : cps_round_up(cps_tbuf_bytes(b), ALIGN);
        s->unit = CPS_MAX(s->unit, CPS_MAX(unit, 1));
        s->first = CPS_MIN(s->first, a->first[i]);
        s->last = CPS_MAX(s->last, a->last[i]);
        s->loaded |= a->loaded[i];
        cps_tenant t = {i, b->ring ? b->turn : 0, a->first[i], a->last[i]};
        cps_vec_push(a->g->arena, &s->tenants, t);
    }
}

static bool
choose_slots(alloc *a)
{
    bool ok = true;
    for (uint32_t i = 0; i < a->all.n; i++) {
        cps_storage *s = &a->all.data[i];
        if (s->tenants.n > 1)
            qsort(s->tenants.data, s->tenants.n, sizeof(cps_tenant), by_turn);
        s->turns = s->tenants.data[s->tenants.n - 1].turn + 1;
        s->need = least_slots(s, a->g->arena);
        if (s->fixed && s->slots < s->need) {
            cps_error(a->g->d, CPS_E4107, s->loc,
                      "'%s' has %u slots, but %u of its executions are needed at once", s->name,
                      s->slots, s->need);
            cps_help(a->g->d, "`bufs %u`, or leave the mark out", s->need);
            ok = false;
        }
        uint32_t want = s->loaded ? AHEAD_LOAD : AHEAD;
        if (!s->fixed)
            s->slots = CPS_MAX(s->need, CPS_MIN(want, s->turns));
        else if (s->slots > s->turns)
            s->slots = s->turns; // further slots would never be used
    }
    return ok;
}

static int64_t
size(const cps_storage *s)
{
    return s->unit * s->slots;
}

static int
by_size(const void *x, const void *y)
{
    const cps_storage *a = *(cps_storage *const *)x, *b = *(cps_storage *const *)y;
    if ((a->pin >= 0) != (b->pin >= 0))
        return a->pin >= 0 ? -1 : 1;
    int64_t p = size(a), q = size(b);
    if (p != q)
        return p > q ? -1 : 1;
    return a->id < b->id ? -1 : a->id > b->id;
}

static bool
meet(const cps_storage *a, const cps_storage *b, bool apart)
{
    return apart || (a->first <= b->last && b->first <= a->last);
}

// Puts every storage of one space at the lowest free place; true when all end below `limit`.
static bool
place(alloc *a, cps_space space, int64_t limit, bool apart, int64_t *peak, cps_storage **order)
{
    uint32_t n = 0, placed = 0;
    *peak = 0;
    for (uint32_t i = 0; i < a->all.n; i++)
        if (a->all.data[i].space == space)
            order[n++] = &a->all.data[i];
    qsort(order, n, sizeof *order, by_size);
    cps_storage **busy = order + n; // placed so far, by address
    for (uint32_t i = 0; i < n; i++) {
        cps_storage *s = order[i];
        int64_t at = s->pin;
        if (at < 0) {
            at = 0;
            for (uint32_t k = 0; k < placed; k++) {
                if (!meet(s, busy[k], apart))
                    continue;
                if (at + size(s) <= busy[k]->at)
                    break;
                at = CPS_MAX(at, busy[k]->at + size(busy[k]));
            }
        }
        s->at = at;
        uint32_t k = placed++;
        for (; k > 0 && busy[k - 1]->at > at; k--)
            busy[k] = busy[k - 1];
        busy[k] = s;
        *peak = CPS_MAX(*peak, at + size(s));
        if (*peak > limit)
            return false;
    }
    return true;
}

static bool
shrink(alloc *a, cps_space space)
{
    cps_storage *best = NULL;
    for (uint32_t i = 0; i < a->all.n; i++) {
        cps_storage *s = &a->all.data[i];
        if (s->space != space || s->fixed || s->slots <= s->need)
            continue;
        if (!best || s->slots - s->need > best->slots - best->need ||
            (s->slots - s->need == best->slots - best->need && s->unit > best->unit))
            best = s;
    }
    if (best)
        best->slots--;
    return best != NULL;
}

static void
explain(alloc *a, cps_space space, int64_t limit)
{
    cps_cg *g = a->g;
    int64_t most = -1;
    uint32_t when = 0;
    for (uint32_t i = 0; i < a->all.n; i++) {
        const cps_storage *at = &a->all.data[i];
        int64_t sum = 0;
        if (at->space != space)
            continue;
        for (uint32_t k = 0; k < a->all.n; k++) {
            const cps_storage *s = &a->all.data[k];
            if (s->space == space && s->first <= at->first && at->first <= s->last)
                sum += size(s);
        }
        if (sum > most) {
            most = sum;
            when = at->first;
        }
    }
    bool psum = space == CPS_PSUM;
    cps_span at = when < g->f->insts.n ? g->f->insts.data[when].loc : CPS_NOSPAN;
    cps_error(g->d, psum ? CPS_E4102 : CPS_E4101, at,
              psum ? "%lld PSUM banks are live here, the core has %lld"
                   : "%lld bytes per partition of SBUF are live here, %lld can be used",
              (long long)most, (long long)limit);
    for (uint32_t k = 0; k < a->all.n; k++) {
        const cps_storage *s = &a->all.data[k];
        if (s->space != space || s->first > when || when > s->last)
            continue;
        cps_note(g->d, s->loc, "'%s': %u slot%s of %lld %s", s->name, s->slots,
                 s->slots == 1 ? "" : "s", (long long)s->unit, psum ? "banks" : "bytes");
    }
    cps_help(g->d, psum ? "accumulate fewer tiles at once"
                        : "use smaller pieces, or fewer slots (`bufs`)");
}

static bool
pins(alloc *a, cps_space space, int64_t limit)
{
    for (uint32_t i = 0; i < a->all.n; i++) {
        const cps_storage *s = &a->all.data[i];
        if (s->space != space || s->pin < 0)
            continue;
        if (s->pin + size(s) > limit) {
            cps_error(a->g->d, CPS_E4103, s->loc,
                      "'%s' is pinned at %lld and ends at %lld of %lld", s->name,
                      (long long)s->pin, (long long)(s->pin + size(s)), (long long)limit);
            return false;
        }
        for (uint32_t k = 0; k < i; k++) {
            const cps_storage *o = &a->all.data[k];
            if (o->space != space || o->pin < 0 || !meet(s, o, false) ||
                s->pin >= o->pin + size(o) || o->pin >= s->pin + size(s))
                continue;
            cps_error(a->g->d, CPS_E4103, s->loc, "'%s' is pinned over '%s', and both are live",
                      s->name, o->name);
            cps_note(a->g->d, o->loc, "'%s' is pinned here", o->name);
            return false;
        }
    }
    return true;
}

static bool
fit(alloc *a, cps_space space, int64_t limit, int64_t *peak)
{
    cps_storage **order = cps_new_array(a->g->arena, cps_storage *, 2 * a->all.n + 1);
    if (!pins(a, space, limit))
        return false;
    // Time apart is not used as long as everything has a place of its own with the slots
    // wanted.
    if (place(a, space, limit, true, peak, order))
        return true;
    do {
        if (place(a, space, limit, false, peak, order))
            return true;
    } while (shrink(a, space));
    a->g->full = space == CPS_SBUF && a->g->may_spill;
    if (!a->g->full)
        explain(a, space, limit);
    return false;
}

static bool
survey(alloc *a)
{
    cps_cg *g = a->g;
    uint32_t n = g->f->bufs.n;
    a->first = cps_new_array(g->arena, uint32_t, n);
    a->last = cps_new_array(g->arena, uint32_t, n);
    a->loaded = cps_new_array(g->arena, bool, n);
    memset(a->first, 0xff, n * sizeof *a->first);
    memset(a->last, 0xff, n * sizeof *a->last);
    lifetimes(a);
    gather(a);
    return choose_slots(a);
}

bool
cps_alloc_survey(cps_cg *g, cps_survey *out)
{
    alloc a = {.g = g};
    if (!survey(&a))
        return false;
    memcpy(&out->all, &a.all, sizeof out->all);
    return true;
}

bool
cps_pass_alloc(cps_cg *g)
{
    alloc a = {.g = g};
    int64_t banks = 0;
    if (!survey(&a) || !fit(&a, CPS_SBUF, g->t->sbuf_bytes - g->t->sbuf_reserve, &g->sbuf_peak) ||
        !fit(&a, CPS_PSUM, g->t->psum_banks, &banks))
        return false;
    g->psum_banks = (int)banks;
    for (uint32_t i = 0; i < a.all.n; i++) {
        const cps_storage *s = &a.all.data[i];
        int64_t scale = s->space == CPS_PSUM ? g->t->psum_bank_bytes : 1;
        for (uint32_t k = 0; k < s->tenants.n; k++) {
            cps_tbuf *b = &g->f->bufs.data[s->tenants.data[k].buf];
            b->placed = true;
            b->byte =
                (uint32_t)(scale * (s->at + s->unit * (s->tenants.data[k].turn % s->slots)));
            b->part = b->pin_part > 0 ? (uint16_t)b->pin_part : 0;
        }
    }
    return true;
}
