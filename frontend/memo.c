/* See memo.h. Entries hang in buckets by their hash; each has an arena of its own for the request, the answer and what
 * was said, so that one is dropped as a whole. */
#include "frontend/memo.h"

#include <stdlib.h>
#include <string.h>

enum { BUCKETS = 256 };

typedef struct entry {
    struct entry *next; /* in its bucket */
    uint64_t hash, used;
    cps_arena *arena;
    cps_ask ask;
    cps_kept kept;
    const void *said; /* cps_diags_keep */
    size_t nsaid;
} entry;

struct cps_memo {
    cps_memo_limits limit;
    cps_memo_stats count;
    uint64_t clock; /* requests so far */
    entry *bucket[BUCKETS];
};

cps_memo *
cps_memo_create(const cps_memo_limits *l)
{
    cps_memo *m = calloc(1, sizeof *m);
    if (!m)
        cps_out_of_memory(sizeof *m);
    m->limit = l ? *l : (cps_memo_limits){256, (size_t)64 << 20, cps_ask_hash};
    return m;
}

void
cps_memo_destroy(cps_memo *m)
{
    for (unsigned b = 0; m && b < BUCKETS; b++)
        for (entry *e = m->bucket[b], *next; e; e = next) {
            next = e->next; // it lies in the arena
            cps_arena_destroy(e->arena);
        }
    free(m);
}

/* ---- requests ---- */

static uint64_t
text_hash(const char *s)
{
    return s ? cps_hash_mem(s, strlen(s)) : 0;
}

static uint64_t
attr_hash(const cps_attr *x)
{
    uint64_t real;
    memcpy(&real, &x->f, sizeof real);
    uint64_t value = x->kind == CPS_A_FLOAT  ? real
                     : x->kind == CPS_A_STR  ? text_hash(x->s)
                     : x->kind == CPS_A_INTS ? cps_hash_mem(x->ints, x->n * sizeof *x->ints)
                                             : (uint64_t)x->i;
    return text_hash(x->key) ^ cps_mix64(value + x->kind);
}

uint64_t
cps_ask_hash(const cps_ask *q)
{
    const cps_instance *i = q->inst;
    uint64_t w[4 + CPS_MAX_OPERANDS * (1 + CPS_MAX_RANK)];
    size_t n = 0;
    w[n++] = text_hash(i->op) ^ (uint64_t)CPS_MAX(i->cores, 1);
    w[n++] = 0;
    if (i->target)
        memcpy(&w[1], i->target->digest.b, sizeof w[1]);
    w[n++] = text_hash(q->leaf);
    uint64_t attrs = (uint64_t)i->nattr << 16 | q->nconfig;
    for (uint16_t k = 0; k < i->nattr; k++)
        attrs = attrs * 3 + attr_hash(&i->attr[k]);
    for (uint16_t k = 0; k < q->nconfig; k++)
        attrs = attrs * 3 + attr_hash(&q->config[k]);
    w[n++] = attrs;
    for (int k = 0; k < i->noperands; k++) {
        const cps_operand *o = &i->operand[k];
        w[n++] = (uint64_t)o->present | (uint64_t)o->order << 8 | (uint64_t)o->type.dtype << 16 |
                 (uint64_t)o->type.rank << 24;
        for (int d = 0; o->present && d < o->type.rank; d++)
            w[n++] = (uint64_t)o->type.dim[d];
    }
    return cps_hash_mem(w, n * sizeof *w);
}

static bool
same_attrs(const cps_attr *a, uint16_t na, const cps_attr *b, uint16_t nb)
{
    if (na != nb)
        return false;
    for (uint16_t k = 0; k < na; k++, a++, b++) {
        if (a->kind != b->kind || !cps_streq(a->key, b->key))
            return false;
        bool same = a->kind == CPS_A_FLOAT  ? memcmp(&a->f, &b->f, sizeof a->f) == 0
                    : a->kind == CPS_A_STR  ? cps_streq(a->s, b->s)
                    : a->kind == CPS_A_INTS ? a->n == b->n && (!a->n || !memcmp(a->ints, b->ints, a->n * sizeof *a->ints))
                                            : a->i == b->i;
        if (!same)
            return false;
    }
    return true;
}

static bool
same_target(const cps_target *a, const cps_target *b)
{
    return a == b || (a && b && cps_digest_eq(&a->digest, &b->digest) && cps_streq(a->name, b->name));
}

static bool
same_operand(const cps_operand *a, const cps_operand *b)
{
    if (a->present != b->present || a->order != b->order || !cps_streq(a->name, b->name))
        return false;
    return !a->present || (a->type.dtype == b->type.dtype && a->type.rank == b->type.rank &&
                           !memcmp(a->type.dim, b->type.dim, (size_t)a->type.rank * sizeof *a->type.dim));
}

static bool
same_ask(const cps_ask *a, const cps_ask *b)
{
    const cps_instance *i = a->inst, *j = b->inst;
    if (!cps_streq(i->op, j->op) || !same_target(i->target, j->target) ||
        CPS_MAX(i->cores, 1) != CPS_MAX(j->cores, 1) || i->noperands != j->noperands || !cps_streq(a->leaf, b->leaf))
        return false;
    for (int k = 0; k < i->noperands; k++)
        if (!same_operand(&i->operand[k], &j->operand[k]))
            return false;
    for (int k = 0; k < CPS_MAX_OPERANDS; k++) // of results only how they lie is asked
        if (i->result[k].order != j->result[k].order)
            return false;
    return same_attrs(i->attr, i->nattr, j->attr, j->nattr) && same_attrs(a->config, a->nconfig, b->config, b->nconfig);
}

static const char *
own_text(cps_arena *a, const char *s)
{
    return s ? cps_arena_strdup(a, s) : NULL;
}

static cps_attr *
own_attrs(cps_arena *a, const cps_attr *from, uint16_t n)
{
    cps_attr *to = cps_new_array(a, cps_attr, n);
    for (uint16_t k = 0; k < n; k++)
        to[k] = cps_attr_copy(a, &from[k]);
    return to;
}

// The request in memory of the entry's own; a target belongs to its session.
static cps_ask
own_ask(cps_arena *a, const cps_ask *q)
{
    cps_instance *i = memcpy(cps_arena_raw(a, sizeof *i), q->inst, sizeof *i);
    i->op = own_text(a, i->op);
    for (int k = 0; k < i->noperands; k++)
        i->operand[k].name = own_text(a, i->operand[k].name);
    i->attr = own_attrs(a, i->attr, i->nattr);
    return (cps_ask){i, own_text(a, q->leaf), own_attrs(a, q->config, q->nconfig), q->nconfig};
}

/* ---- answers ---- */

// The chosen candidate, with the request's parameters.
static bool
choose(cps_cli *c, entry *e)
{
    cps_registry *r = cps_cli_registry(c);
    cps_candidate *cand;
    unsigned n;
    e->kept.inst = *e->ask.inst;
    if (!r || !r->infer(r->self, e->arena, &e->kept.inst, c->diags))
        return false;
    int k = cps_choose_in(c, e->arena, &e->kept.inst, e->ask.leaf, &cand, &n, &e->kept.why);
    if (k < 0)
        return false;
    e->kept.cand = cand[k];
    if (!e->ask.nconfig)
        return true;
    cps_candidate *got = &e->kept.cand;
    if (r->candidate(r->self, e->arena, &e->kept.inst, cand[k].leaf, e->ask.config, e->ask.nconfig, got, c->diags) &&
        got->ok)
        return true;
    cps_error(c->diags, CPS_E2401, CPS_NOSPAN, "leaf '%s' does not take these parameters: %s", cand[k].leaf,
              got->nreasons ? got->reason[0] : "its text has errors");
    return false;
}

// The answer to a request; `*keep`: it can be given again with all that was said.
static bool
answer(cps_cli *c, entry *e, bool *keep)
{
    cps_diags_mark before = cps_diags_mark_of(c->diags, e->arena);
    if (!choose(c, e) || !cps_compile_kernel(c, e->arena, &e->kept.inst, &e->kept.cand, &e->kept.bin))
        return false;
    cps_buf said = {0};
    *keep = cps_diags_keep(c->diags, &before, &said);
    if (said.n)
        e->said = memcpy(cps_arena_raw(e->arena, said.n), said.data, said.n);
    e->nsaid = said.n;
    cps_buf_fini(&said);
    return true;
}

static void
drop(cps_memo *m, entry **at)
{
    entry *e = *at;
    *at = e->next;
    m->count.entries--;
    m->count.bytes -= cps_arena_bytes(e->arena);
    m->count.evicted++;
    cps_arena_destroy(e->arena);
}

// Makes room: those asked for longest ago go, never the newest.
static void
evict(cps_memo *m, const entry *newest)
{
    while (m->count.entries > 1 && (m->count.entries > m->limit.entries || m->count.bytes > m->limit.bytes)) {
        entry **oldest = NULL;
        for (unsigned b = 0; b < BUCKETS; b++)
            for (entry **at = &m->bucket[b]; *at; at = &(*at)->next)
                if (*at != newest && (!oldest || (*at)->used < (*oldest)->used))
                    oldest = at;
        drop(m, oldest);
    }
}

static const cps_kept *
fresh(cps_memo *m, cps_cli *c, const cps_ask *q, uint64_t hash)
{
    cps_arena *a = cps_arena_create();
    entry *e = cps_new(a, entry);
    e->arena = a;
    e->hash = hash;
    e->used = m->clock;
    e->ask = own_ask(a, q);
    bool keep = false;
    if (!answer(c, e, &keep)) {
        cps_arena_destroy(a);
        return NULL;
    }
    entry **at = &m->bucket[hash % BUCKETS];
    e->next = *at;
    *at = e;
    m->count.entries++;
    m->count.bytes += cps_arena_bytes(a);
    if (!keep)
        e->used = 0, e->ask.inst = NULL; // lent like all, found by nobody
    evict(m, e);
    return &e->kept;
}

const cps_kept *
cps_memo_kernel(cps_memo *m, cps_cli *c, const cps_ask *q)
{
    uint64_t hash = m->limit.hash(q);
    m->clock++;
    for (entry *e = m->bucket[hash % BUCKETS]; e; e = e->next) {
        if (e->hash != hash || !e->ask.inst || !same_ask(&e->ask, q))
            continue;
        e->used = m->clock;
        m->count.hits++;
        if (e->nsaid)
            cps_diags_say(c->diags, e->said, e->nsaid);
        return &e->kept;
    }
    m->count.misses++;
    return fresh(m, c, q, hash);
}

cps_memo_stats
cps_memo_count(const cps_memo *m)
{
    return m->count;
}
