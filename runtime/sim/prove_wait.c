/* What a wait makes sure of: which updates must have happened when it passes, by the counts that
 * could be there without them (prove.c says why that is sound). */
#include "runtime/sim/prove_state.h"

void
prove_unlive(prover *p, const char *why)
{
    if (!p->open_live)
        p->open_live = why;
}

/* ---- order ---- */

/* Whether a clock is past an update. */
static bool
past(vclock vc, unsigned c, const upd *u)
{
    if (c >= 2 * CPS_ENGINES)
        return vc[c] >= u->pos;
    unsigned e = c / 2;
    return vc[2 * e] >= u->rd && (c % 2 == 0 || vc[2 * e + 1] >= u->wr);
}

/* Whether update `x` of chain `cx` cannot happen before update `u` of chain `cu`. */
static bool
follows(const upd *x, unsigned cx, const upd *u, unsigned cu)
{
    if (cx < 2 * CPS_ENGINES && cx / 2 == cu / 2 && cu < 2 * CPS_ENGINES && x->pos >= u->pos)
        return cx % 2 == 1 ||
               cu % 2 == 0; // completion follows completion and read, read only read
    return past(x->before, cu, u);
}

/* Updates of a chain up to `n` that do not follow `u`: a prefix. */
static uint32_t
not_after(const chain *c, unsigned cc, uint32_t n, const upd *u, unsigned cu)
{
    uint32_t lo = 0, hi = n;
    while (lo < hi) {
        uint32_t mid = (lo + hi) / 2;
        if (follows(&c->u.data[mid], cc, u, cu))
            hi = mid;
        else
            lo = mid + 1;
    }
    return lo;
}

/* Updates of a chain up to `n` that clock `vc` is past: a prefix. */
static uint32_t
known_to(const chain *c, unsigned cc, uint32_t n, vclock vc)
{
    uint32_t lo = 0, hi = n;
    while (lo < hi) {
        uint32_t mid = (lo + hi) / 2;
        if (past(vc, cc, &c->u.data[mid]))
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

/* Whether an update of chain `cc` follows the wait at `pos` of engine `e`. */
static bool
behind(const upd *x, unsigned cc, unsigned e, uint32_t pos)
{
    bool own = cc < 2 * CPS_ENGINES && cc / 2 == e;
    return own ? x->pos >= pos : x->before[2 * e] >= pos;
}

/* Updates of a chain that do not follow the wait at `pos` of engine `e`: a prefix. */
static uint32_t
not_behind(const chain *c, unsigned cc, uint32_t n, unsigned e, uint32_t pos)
{
    uint32_t lo = 0, hi = n;
    while (lo < hi) {
        uint32_t mid = (lo + hi) / 2;
        if (behind(&c->u.data[mid], cc, e, pos))
            hi = mid;
        else
            lo = mid + 1;
    }
    return lo;
}

static int64_t
sum_to(const chain *c, uint32_t n)
{
    return n ? c->u.data[n - 1].up : 0;
}

static bool
reset_known(vclock vc, const reset *r, unsigned e, uint32_t pos)
{
    return r->engine == e ? r->pos < pos : vc[2 * r->engine] >= r->pos;
}

/* What a wait can count with: per chain, updates from `a` (wiped out before) to `b` (not behind
 * the wait). In the first round only what was issued so far is taken for possible. */
typedef struct span_ {
    uint32_t a[CHAINS_MAX], b[CHAINS_MAX];
    int64_t base;
} span_;

static uint32_t
possible(const prover *p, const chain *k)
{
    return p->round ? k->u.n : k->now;
}

/* Updates of chain c that a clear has wiped out for sure. All of them came before it in the walk, so
 * those of a round do not change once it was passed. */
static uint32_t
wiped(const prover *p, const psem *m, reset *r, unsigned c)
{
    if (!r)
        return 0;
    if (r->gone_round != p->round + 1 || r->gone_of != c) {
        r->gone = known_to(&m->chain[c], c, possible(p, &m->chain[c]), r->vc);
        r->gone_round = p->round + 1;
        r->gone_of = (uint8_t)c;
    }
    return r->gone;
}

static void
span_of(const prover *p, const psem *m, reset *r, unsigned e, uint32_t pos, span_ *x)
{
    x->base = r ? r->value : 0;
    for (unsigned j = 0; j < m->nup; j++) {
        unsigned c = m->up[j];
        const chain *k = &m->chain[c];
        uint32_t n = possible(p, k);
        x->a[c] = wiped(p, m, r, c);
        x->b[c] = p->round ? not_behind(k, c, n, e, pos) : n;
        x->b[c] = CPS_MAX(x->a[c], x->b[c]);
    }
}

/* The highest value that can be there without update i of chain c. */
static int64_t
without(const psem *m, const span_ *x, unsigned c, uint32_t i)
{
    const upd *u = &m->chain[c].u.data[i];
    int64_t sum = x->base;
    for (unsigned j = 0; j < m->nup; j++) {
        unsigned k = m->up[j];
        const chain *h = &m->chain[k];
        if (x->b[k] == x->a[k])
            continue;
        uint32_t n;
        if (k == c && c >= 2 * CPS_ENGINES) {
            // One DMA engine has not done this transfer, nor later ones of its queue: a share
            // of each is missing at least. Those issued after it was known complete cannot be
            // there.
            n = not_after(h, k, x->b[k], u, c);
            n = CPS_MAX(n, i + 1);
            n = CPS_MIN(n, x->b[k]);
            const upd *z = &h->u.data[n - 1];
            sum += z->up - sum_to(h, x->a[k]) - (z->shares - (u->shares - u->share));
            continue;
        }
        n = k == c ? i : CPS_MIN(x->b[k], not_after(h, k, x->b[k], u, c));
        if (n > x->a[k])
            sum += sum_to(h, n) - sum_to(h, x->a[k]);
    }
    return sum;
}

static void
learn(prover *p, engine *e, unsigned c, const upd *u)
{
    if (c >= 2 * CPS_ENGINES)
        e->vc = vc_learn(p->s, e->vc, u->vc, c, &u->pos, 1);
    else
        e->vc = vc_learn(p->s, e->vc, u->vc, c & ~1u, (const uint32_t[]){u->rd, u->wr}, 2);
}

/* The latest clear that the waiter knows of. */
static reset *
last_reset(const psem *m, const engine *e, uint32_t pos, uint32_t *at)
{
    for (uint32_t k = m->now; k-- > 0;)
        if (reset_known(e->vc, &m->resets.data[k], e->id, pos)) {
            *at = k;
            return &m->resets.data[k];
        }
    *at = UINT32_MAX;
    return NULL;
}

/* The first update from `a` on, of those issued, that a rise to at least `v` can do without: all
 * before it must have happened. Waits mostly ask for a little more than the one before: the search
 * goes out from where that ended. */
static uint32_t
needed(const chain *k, uint32_t a, uint32_t from, int64_t base, int64_t v)
{
    int64_t want = v - base + sum_to(k, a); // first i with sum_to(i) >= want
    uint32_t lo = a, hi = k->now, step = 1;
    if (from > lo && from < hi) {
        if (sum_to(k, from) < want)
            lo = from + 1;
        else
            hi = from;
    }
    if (lo == a) {
        for (; hi > lo + step && sum_to(k, hi - step) >= want; step *= 2)
            hi -= step;
        if (hi > lo + step)
            lo = hi - step + 1;
    } else {
        for (; lo + step < hi && sum_to(k, lo + step) < want; step *= 2)
            lo += step + 1;
        hi = CPS_MIN(hi, lo + step);
    }
    while (lo < hi) {
        uint32_t mid = (lo + hi) / 2;
        if (sum_to(k, mid) < want)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

/* rose, where one engine alone raises the semaphore, as nearly always. */
static void
rose_alone(prover *p, engine *e, psem *m, reset *r, uint32_t pos, int64_t v)
{
    unsigned c = m->up[0];
    const chain *k = &m->chain[c];
    uint32_t a = wiped(p, m, r, c), lo = a < k->now ? needed(k, a, m->at, r ? r->value : 0, v) : a;
    m->at = lo;
    if (p->round && lo > a && behind(&k->u.data[lo - 1], c, e->id, pos))
        lo = CPS_MIN(lo, CPS_MAX(a, not_behind(k, c, k->u.n, e->id, pos)));
    if (lo > a && !past(e->vc, c, &k->u.data[lo - 1]))
        learn(p, e, c, &k->u.data[lo - 1]);
}

/* A wait for a value of at least `v` has passed. */
void
prove_rose(prover *p, engine *e, psem *m, int64_t v)
{
    uint32_t pos = p->pos[e->id], at;
    reset *r = last_reset(m, e, pos, &at);
    if (m->nup == 1 && m->up[0] < 2 * CPS_ENGINES) {
        rose_alone(p, e, m, r, pos, v);
        return;
    }
    span_ x;
    span_of(p, m, r, e->id, pos, &x);
    for (unsigned j = 0; j < m->nup; j++) {
        unsigned c = m->up[j];
        uint32_t first = x.a[c], lo = first, hi = CPS_MIN(x.b[c], m->chain[c].now);
        // along a chain, leaving out a later update leaves more to reach v with
        while (lo < hi) {
            uint32_t mid = (lo + hi) / 2;
            if (without(m, &x, c, mid) < v)
                lo = mid + 1;
            else
                hi = mid;
        }
        if (lo > first && !past(e->vc, c, &m->chain[c].u.data[lo - 1]))
            learn(p, e, c, &m->chain[c].u.data[lo - 1]);
    }
}

/* A wait for a value of at most `v` has passed: without the next clear it would be higher. */
void
prove_fell(prover *p, engine *e, psem *m, int64_t v)
{
    uint32_t pos = p->pos[e->id], at;
    for (;;) {
        reset *r = last_reset(m, e, pos, &at);
        int64_t low = r ? r->value : 0;
        for (unsigned j = 0; j < m->nup; j++) {
            unsigned c = m->up[j];
            const chain *k = &m->chain[c];
            uint32_t gone = r ? known_to(k, c, k->now, r->vc) : 0;
            // what may have been wiped out already does not count for sure
            uint32_t sure = known_to(k, c, k->now, e->vc);
            if (sure > gone)
                low += sum_to(k, sure) - sum_to(k, gone);
        }
        uint32_t next = r ? at + 1 : 0;
        if (low <= v || next >= m->now)
            return;
        const reset *z = &m->resets.data[next];
        e->vc = vc_join(p->s, e->vc, z->vc);
        e->vc = vc_with(p->s, e->vc, 2u * z->engine, z->pos);
        if (z->engine == e->id)
            return;
    }
}

/* No other order of the run can change what this wait sees. */
void
prove_settled(prover *p, engine *e, const psem *m, uint32_t pos, bool equal, int64_t v)
{
    uint32_t at;
    reset *r = last_reset(m, e, pos, &at);
    uint32_t next = r ? at + 1 : 0;
    if (next < m->resets.n) { // later ones follow it
        const reset *z = &m->resets.data[next];
        if (z->engine == e->id ? z->pos <= pos : z->before[2 * e->id] < pos) {
            prove_unlive(p, "a semaphore is cleared while somebody may wait for it");
            return;
        }
    }
    if (!equal)
        return;
    span_ x;
    span_of(p, m, r, e->id, pos, &x);
    int64_t most = x.base;
    for (unsigned j = 0; j < m->nup; j++) {
        unsigned c = m->up[j];
        most += sum_to(&m->chain[c], x.b[c]) - sum_to(&m->chain[c], x.a[c]);
    }
    if (most > v)
        prove_unlive(p, "a wait for equality may be overshot");
}

bool
prove_over(const psem *m, unsigned e, vclock vc)
{
    const reset *r = m->now ? &m->resets.data[m->now - 1] : NULL;
    if (r && (r->value || (r->engine != e && vc[2 * r->engine] < r->pos)))
        return false;
    for (unsigned j = 0; j < m->nup; j++) {
        const chain *k = &m->chain[m->up[j]];
        if (k->now && (!r || !past(r->vc, m->up[j], &k->u.data[k->now - 1]))) // what is known of is a prefix
            return false;
    }
    return true;
}

/* Whether each clear of a semaphore is ordered with all its updates. */
void
prove_clears(prover *p, const psem *m)
{
    for (uint32_t k = 0; k < m->resets.n; k++) {
        const reset *r = &m->resets.data[k];
        for (unsigned j = 0; j < m->nup; j++) {
            unsigned c = m->up[j];
            const chain *h = &m->chain[c];
            uint32_t n = r->issued[c];
            if (n && !past(r->vc, c, &h->u.data[n - 1])) // what is known of is a prefix
                prove_unlive(p, "a semaphore may be raised while it is cleared");
            if (n < h->u.n) {
                const upd *x = &h->u.data[n];
                bool own = c < 2 * CPS_ENGINES && c / 2 == r->engine;
                if (!own && x->vc[2 * r->engine] < r->pos)
                    prove_unlive(p, "a semaphore may be raised while it is cleared");
            }
        }
    }
}
