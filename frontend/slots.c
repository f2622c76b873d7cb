/* See slots.h. A ring is named by the place of its declaration, which all cores share. */
#include "frontend/slots.h"
#include "frontend/timed.h"

#include <string.h>

enum { RINGS = 24 }; // tried one by one; a leaf declares fewer

typedef struct ring {
    cps_span at;
    const char *name;
    uint32_t id, byte;   // of the first ring met at that place; where its slot 0 lies
    unsigned has, turns; // slots as placed; executions of the declaration
} ring;

typedef struct rings {
    cps_arena *a;
    CPS_VEC(ring) all;
    bool chosen[RINGS]; // gets one more
} rings;

static bool
same(cps_span x, cps_span y)
{
    return x.file == y.file && x.begin == y.begin;
}

/* After allocation: what each declaration got. */
static bool
look(void *ctx, const char *pass, const cps_tfunc *f, cps_diags *d)
{
    rings *r = ctx;
    (void)d;
    if (strcmp(pass, "alloc"))
        return true;
    for (uint32_t i = 1; i < f->bufs.n; i++) {
        const cps_tbuf *b = &f->bufs.data[i];
        if (!b->ring || !b->placed)
            continue;
        uint32_t n = 0;
        while (n < r->all.n && !same(r->all.data[n].at, b->loc))
            n++;
        if (n == RINGS)
            continue;
        if (n == r->all.n)
            cps_vec_push(
                r->a, &r->all,
                ((ring){.at = b->loc, .id = b->ring, .name = cps_arena_strdup(r->a, b->name)}));
        ring *x = &r->all.data[n];
        if (x->id != b->ring)
            continue;
        // Execution n lies in slot n % slots: the first that lies where execution 0 did tells.
        x->turns = CPS_MAX(x->turns, b->turn + 1);
        if (b->turn == 0)
            x->byte = b->byte;
        else if (b->byte == x->byte && (!x->has || b->turn < x->has))
            x->has = b->turn;
    }
    return true;
}

static void
widen(void *ctx, cps_tfunc *f)
{
    rings *r = ctx;
    for (uint32_t i = 1; i < f->bufs.n; i++) {
        cps_tbuf *b = &f->bufs.data[i];
        for (uint32_t n = 0; b->ring && n < r->all.n; n++)
            if (r->chosen[n] && same(r->all.data[n].at, b->loc))
                b->slots = (uint16_t)(r->all.data[n].has + 1);
    }
}

/* Time with the chosen rings one longer, or -1 when that does not fit. */
static int64_t
try_chosen(cps_cli *c, const cps_instance *i, const cps_candidate *k, rings *r)
{
    cps_arena *a = cps_arena_create();
    cps_timed x = {0};
    const cps_kbin *bin =
        cps_compile_trial(c, a, i, k, &(cps_trial){.before = widen, .ctx = r});
    int64_t time = bin && cps_timed_run(i->target, bin, false, &x, c->diags) ? x.time_ps : -1;
    cps_timed_close(&x);
    cps_arena_destroy(a);
    cps_diags_clear(c->diags);
    return time;
}

static const char *
names(cps_cli *c, const rings *r, const bool *chosen, unsigned n)
{
    cps_buf b = {0};
    for (uint32_t k = 0, said = 0; k < r->all.n; k++)
        if (chosen[k]) {
            cps_buf_printf(&b, "%s'%s'",
                           !said           ? ""
                           : said + 1 == n ? " and "
                                           : ", ",
                           r->all.data[k].name);
            said++;
        }
    const char *s = cps_arena_strdup(c->arena, b.data);
    cps_buf_fini(&b);
    return s;
}

bool
cps_slots_try(cps_cli *c, const cps_instance *i, const cps_candidate *k, int64_t base_ps,
              cps_slots *out)
{
    rings r = {.a = cps_arena_create()};
    cps_arena *a = cps_arena_create();
    cps_cli_flush(c);
    bool ok = cps_compile_trial(c, a, i, k, &(cps_trial){.after = look, .ctx = &r}) != NULL;
    cps_arena_destroy(a);
    cps_diags_clear(c->diags);
    for (uint32_t x = 0; x < r.all.n; x++)
        if (!r.all.data[x].has) // no execution came back to slot 0
            r.all.data[x].has = r.all.data[x].turns;
    bool can[RINGS] = {false};
    unsigned n = 0, best = RINGS;
    int64_t most = base_ps / 200;
    for (uint32_t x = 0; ok && x < r.all.n; x++)
        n += can[x] = r.all.data[x].turns > r.all.data[x].has;
    memcpy(r.chosen, can, sizeof can);
    int64_t together = n ? base_ps - try_chosen(c, i, k, &r) : 0;
    bool fits = together <= base_ps; // -1 gives more than there is
    // When all of them gain nothing, neither does one of them.
    for (uint32_t x = 0; n && (!fits || together > most) && x < r.all.n; x++) {
        if (!can[x])
            continue;
        memset(r.chosen, 0, sizeof r.chosen);
        r.chosen[x] = true;
        int64_t t = n > 1 || !fits ? try_chosen(c, i, k, &r) : base_ps - together;
        if (t >= 0 && base_ps - t > most) {
            most = base_ps - t;
            best = x;
        }
    }
    bool all =
        fits && n > 1 && together > base_ps / 200 && (best == RINGS || 2 * together > 3 * most);
    if (all)
        for (best = 0; !can[best];)
            best++;
    if (best < RINGS) {
        const ring *x = &r.all.data[best];
        uint32_t line, col;
        bool one[RINGS] = {false};
        one[best] = true;
        cps_diags_locate(c->diags, x->at, &line, &col);
        *out = (cps_slots){.name = cps_arena_strdup(c->arena, x->name),
                           .file = cps_diags_source_name(c->diags, x->at.file),
                           .line = line,
                           .has = x->has,
                           .others = all ? n - 1 : 0,
                           .all = names(c, &r, all ? can : one, all ? n : 1),
                           .saves_ps = all ? together : most};
    }
    cps_arena_destroy(r.a);
    return best < RINGS;
}
