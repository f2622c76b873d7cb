/* A kernel as one byte string, for the cache. Little endian; strings are a u32 length and
 * bytes; lists are a u32 count and items. Unpacking believes nothing: each read is bounded,
 * each count is compared with what is left, and the result passes cps_kbin_check. */
#include "runtime/pkg/kbin_priv.h"

#define MAGIC "cpskbin4"

/* ---- writing ---- */

static void
p32(cps_buf *b, uint32_t v)
{
    uint8_t x[4] = {(uint8_t)v, (uint8_t)(v >> 8), (uint8_t)(v >> 16), (uint8_t)(v >> 24)};
    cps_buf_put(b, x, 4);
}

static void
p64(cps_buf *b, int64_t v)
{
    p32(b, (uint32_t)(uint64_t)v);
    p32(b, (uint32_t)((uint64_t)v >> 32));
}

static void
pstr(cps_buf *b, const char *s)
{
    size_t n = s ? strlen(s) : 0;
    p32(b, (uint32_t)n);
    cps_buf_put(b, s ? s : "", n);
}

static void
pack_stream(const cps_kstream *s, cps_buf *b)
{
    p32(b, s->code.n);
    for (uint32_t i = 0; i < s->code.n; i++)
        cps_buf_put(b, s->code.data[i].b, CPS_BUNDLE_BYTES);
    p32(b, s->locs.n);
    for (uint32_t i = 0; i < s->locs.n; i++) {
        const cps_kloc *at = &s->locs.data[i];
        pstr(b, at->file);
        p32(b, at->line);
        p32(b, at->col);
    }
}

static void
pack_core(const cps_kbin *k, cps_buf *b)
{
    pstr(b, k->name);
    pstr(b, k->target);
    p32(b, (uint32_t)k->gen);
    p32(b, (uint32_t)k->core);
    p32(b, (uint32_t)k->cores);
    p32(b, k->vars.n);
    for (uint32_t i = 0; i < k->vars.n; i++) {
        const cps_kvar *v = &k->vars.data[i];
        pstr(b, v->name);
        p32(b, (uint32_t)v->kind);
        pstr(b, cps_dtype_name(v->dtype));
        p32(b, (uint32_t)v->rank);
        for (int d = 0; d < v->rank; d++)
            p64(b, v->dim[d]);
        p64(b, v->bytes);
        if (v->kind == CPS_VAR_DATA)
            cps_buf_put(b, v->data, (size_t)v->bytes);
    }
    p32(b, k->descs.n);
    for (uint32_t i = 0; i < k->descs.n; i++) {
        const cps_kdesc *c = &k->descs.data[i];
        p32(b, (uint32_t)c->op);
        p32(b, c->from);
        p32(b, c->to);
        p64(b, c->from_off);
        p64(b, c->to_off);
        p32(b, (uint32_t)c->nfrom);
        p32(b, (uint32_t)c->nto);
        for (int d = 0; d < c->nfrom; d++) {
            p64(b, c->from_step[d]);
            p64(b, c->from_size[d]);
        }
        for (int d = 0; d < c->nto; d++) {
            p64(b, c->to_step[d]);
            p64(b, c->to_size[d]);
        }
        pstr(b, cps_dtype_name(c->from_dtype));
        pstr(b, cps_dtype_name(c->to_dtype));
        p32(b, (uint32_t)c->elem);
        p64(b, c->rows);
        p64(b, c->cols);
    }
    p32(b, k->blocks.n);
    for (uint32_t i = 0; i < k->blocks.n; i++) {
        const cps_kblock *x = &k->blocks.data[i];
        p32(b, (uint32_t)x->owner);
        pstr(b, x->queue);
        p32(b, x->id);
        p32(b, x->semaphore);
        p32(b, x->first);
        p32(b, x->ndesc);
    }
    for (int e = 0; e < CPS_ENGINES; e++)
        pack_stream(&k->stream[e], b);
    p32(b, k->relocs.n);
    for (uint32_t i = 0; i < k->relocs.n; i++) {
        const cps_kreloc *r = &k->relocs.data[i];
        p32(b, (uint32_t)r->engine);
        p32(b, r->index);
        pstr(b, cps_fields[r->field].name);
        p32(b, r->var);
        p64(b, r->addend);
    }
    p32(b, k->extents.n);
    for (uint32_t i = 0; i < k->extents.n; i++) {
        const cps_kextent *x = &k->extents.data[i];
        p32(b, (uint32_t)x->engine);
        p32(b, x->index);
        pstr(b, cps_fields[x->field].name);
        p32(b, x->var);
        pstr(b, x->name);
        p32(b, x->psum);
        p32(b, x->part);
        p32(b, x->parts);
        p32(b, x->byte);
        p32(b, x->bytes);
    }
    p32(b, k->groups.n);
    for (uint32_t i = 0; i < k->groups.n; i++) {
        const cps_kgroup *g = &k->groups.data[i];
        p32(b, g->table);
        p32(b, g->n);
        for (uint32_t r = 0; r < g->n; r++)
            p32(b, k->ranks.data[g->first + r]);
    }
    p32(b, k->pairs.n);
    for (uint32_t i = 0; i < k->pairs.n; i++) {
        p32(b, k->pairs.data[i].table);
        p32(b, k->pairs.data[i].from);
        p32(b, k->pairs.data[i].to);
    }
    const cps_kstats *s = &k->stats;
    p64(b, s->flops);
    p64(b, s->hbm_bytes);
    p64(b, s->pe_flops_ps);
    for (int e = 0; e < CPS_ENGINES; e++)
        p64(b, s->engine_min_ps[e]);
    p64(b, s->sbuf_peak);
    p32(b, (uint32_t)s->psum_banks);
    p32(b, (uint32_t)s->semaphores);
    p32(b, (uint32_t)s->races | (uint32_t)s->deadlock << 8);
}

void
cps_kbin_pack(const cps_kbin *k, cps_buf *b)
{
    cps_buf_put(b, MAGIC, 8);
    p32(b, k->peer != NULL);
    pack_core(k, b);
    if (k->peer)
        pack_core(k->peer, b);
}

/* ---- reading: once something is wrong, everything reads as zero ---- */

typedef struct rd {
    const uint8_t *p;
    size_t n;
    bool bad;
    cps_arena *a;
} rd;

static const void *
gbytes(rd *r, size_t n)
{
    if (r->bad || n > r->n) {
        r->bad = true;
        return NULL;
    }
    const void *at = r->p;
    r->p += n;
    r->n -= n;
    return at;
}

static uint32_t
g32(rd *r)
{
    const uint8_t *x = gbytes(r, 4);
    return x ? x[0] | (uint32_t)x[1] << 8 | (uint32_t)x[2] << 16 | (uint32_t)x[3] << 24 : 0;
}

static int64_t
g64(rd *r)
{
    uint64_t lo = g32(r), hi = g32(r);
    return (int64_t)(hi << 32 | lo);
}

static const char *
gstr(rd *r)
{
    uint32_t n = g32(r);
    const char *s = n <= CPS_PKG_NAME * 16 ? gbytes(r, n) : NULL;
    if (!s || memchr(s, 0, n)) {
        r->bad = true;
        return "";
    }
    return cps_arena_strndup(r->a, s, n);
}

static int
gint(rd *r, uint32_t max)
{
    uint32_t v = g32(r);
    if (v > max) {
        r->bad = true;
        return 0;
    }
    return (int)v;
}

/* A count of items that take at least `least` bytes each. */
static uint32_t
gcount(rd *r, size_t least)
{
    uint32_t n = g32(r);
    if (n > r->n / least) {
        r->bad = true;
        return 0;
    }
    return n;
}

static cps_dtype
gdtype(rd *r)
{
    const char *s = gstr(r);
    cps_dtype t = cps_dtype_parse(s, strlen(s));
    if (t == CPS_DT_NONE)
        r->bad = true;
    return t;
}

static void
unpack_vars(rd *r, cps_kbin *k)
{
    uint32_t n = gcount(r, 24);
    for (uint32_t i = 0; i < n && !r->bad; i++) {
        cps_kvar *v = cps_vec_add(k->arena, &k->vars);
        v->name = gstr(r);
        v->kind = (cps_varkind)gint(r, CPS_VARKINDS - 1);
        v->dtype = gdtype(r);
        v->rank = gint(r, CPS_MAX_RANK);
        for (int d = 0; d < v->rank; d++)
            v->dim[d] = g64(r);
        v->bytes = g64(r);
        if (v->kind == CPS_VAR_DATA) {
            const void *x = v->bytes < 0 ? NULL : gbytes(r, (size_t)v->bytes);
            if (!x) {
                r->bad = true;
                return;
            }
            void *copy = cps_arena_raw(k->arena, (size_t)v->bytes + 1);
            memcpy(copy, x, (size_t)v->bytes);
            v->data = copy;
        }
    }
}

static void
unpack_descs(rd *r, cps_kbin *k)
{
    uint32_t n = gcount(r, 60);
    for (uint32_t i = 0; i < n && !r->bad; i++) {
        cps_kdesc *c = cps_vec_add(k->arena, &k->descs);
        c->op = (cps_descop)gint(r, CPS_DESCOPS - 1);
        c->from = g32(r);
        c->to = g32(r);
        c->from_off = g64(r);
        c->to_off = g64(r);
        c->nfrom = gint(r, CPS_DESC_DIMS);
        c->nto = gint(r, CPS_DESC_DIMS);
        for (int d = 0; d < c->nfrom; d++) {
            c->from_step[d] = g64(r);
            c->from_size[d] = g64(r);
        }
        for (int d = 0; d < c->nto; d++) {
            c->to_step[d] = g64(r);
            c->to_size[d] = g64(r);
        }
        c->from_dtype = gdtype(r);
        c->to_dtype = gdtype(r);
        c->elem = gint(r, 8);
        c->rows = g64(r);
        c->cols = g64(r);
    }
    n = gcount(r, 24);
    for (uint32_t i = 0; i < n && !r->bad; i++) {
        cps_kblock *x = cps_vec_add(k->arena, &k->blocks);
        x->owner = (cps_engine)gint(r, CPS_ENGINES - 1);
        x->queue = gstr(r);
        x->id = g32(r);
        x->semaphore = (uint8_t)gint(r, 255);
        x->first = g32(r);
        x->ndesc = g32(r);
    }
}

static void
unpack_stream(rd *r, cps_kbin *k, cps_kstream *s)
{
    uint32_t n = gcount(r, CPS_BUNDLE_BYTES);
    const void *x = gbytes(r, (size_t)n * CPS_BUNDLE_BYTES);
    if (!x)
        return;
    cps_vec_reserve(k->arena, &s->code, n);
    if (n)
        memcpy(s->code.data, x, (size_t)n * CPS_BUNDLE_BYTES);
    s->code.n = n;
    n = gcount(r, 12);
    const char *last = NULL; // names repeat: keep one copy of a run
    for (uint32_t i = 0; i < n && !r->bad; i++) {
        cps_kloc *at = cps_vec_add(k->arena, &s->locs);
        const char *name = gstr(r);
        if (!last || strcmp(last, name) != 0)
            last = name;
        at->file = *last ? last : NULL;
        at->line = g32(r);
        at->col = g32(r);
    }
}

// Which field of which instruction.
static bool
unpack_field(rd *r, const cps_kbin *k, cps_engine *engine, uint32_t *index, uint16_t *field)
{
    *engine = (cps_engine)gint(r, CPS_ENGINES - 1);
    *index = g32(r);
    const char *name = gstr(r);
    r->bad = r->bad || *index >= k->stream[*engine].code.n;
    if (r->bad)
        return false;
    *field = (uint16_t)cps_pkg_field(&k->stream[*engine].code.data[*index], k->gen, name);
    return true;
}

static void
unpack_relocs(rd *r, cps_kbin *k)
{
    uint32_t n = gcount(r, 24);
    for (uint32_t i = 0; i < n && !r->bad; i++) {
        cps_kreloc *x = cps_vec_add(k->arena, &k->relocs);
        if (!unpack_field(r, k, &x->engine, &x->index, &x->field))
            return;
        x->var = g32(r);
        x->addend = g64(r);
    }
}

static void
unpack_extents(rd *r, cps_kbin *k)
{
    uint32_t n = gcount(r, 40);
    for (uint32_t i = 0; i < n && !r->bad; i++) {
        cps_kextent *x = cps_vec_add(k->arena, &k->extents);
        if (!unpack_field(r, k, &x->engine, &x->index, &x->field))
            return;
        x->var = g32(r);
        x->name = gstr(r);
        x->psum = gint(r, 1);
        x->part = (uint16_t)gint(r, CPS_PKG_LANES);
        x->parts = (uint16_t)gint(r, CPS_PKG_LANES);
        x->byte = g32(r);
        x->bytes = g32(r);
    }
}

static void
unpack_groups(rd *r, cps_kbin *k)
{
    uint32_t n = gcount(r, 8);
    for (uint32_t i = 0; i < n && !r->bad; i++) {
        cps_kgroup g = {.table = (uint32_t)gint(r, CPS_PKG_RANKS - 1), .first = k->ranks.n};
        g.n = gcount(r, 4);
        for (uint32_t q = 0; q < g.n && !r->bad; q++)
            cps_vec_push(k->arena, &k->ranks, (uint32_t)gint(r, CPS_PKG_RANKS - 1));
        cps_vec_push(k->arena, &k->groups, g);
    }
    n = gcount(r, 12);
    for (uint32_t i = 0; i < n && !r->bad; i++) {
        cps_kpair *p = cps_vec_add(k->arena, &k->pairs);
        p->table = (uint32_t)gint(r, CPS_PKG_RANKS - 1);
        p->from = (uint32_t)gint(r, CPS_PKG_RANKS - 1);
        p->to = (uint32_t)gint(r, CPS_PKG_RANKS - 1);
    }
}

static cps_kbin *
unpack_core(rd *r)
{
    cps_kbin *k = cps_new(r->a, cps_kbin);
    k->arena = r->a;
    k->name = gstr(r);
    k->target = gstr(r);
    k->gen = (cps_gen)gint(r, CPS_GENS - 1);
    k->core = gint(r, 1024);
    k->cores = gint(r, 1024);
    unpack_vars(r, k);
    unpack_descs(r, k);
    for (int e = 0; e < CPS_ENGINES; e++)
        unpack_stream(r, k, &k->stream[e]);
    unpack_relocs(r, k);
    unpack_extents(r, k);
    unpack_groups(r, k);
    cps_kstats *s = &k->stats;
    s->flops = g64(r);
    s->hbm_bytes = g64(r);
    s->pe_flops_ps = g64(r);
    for (int e = 0; e < CPS_ENGINES; e++)
        s->engine_min_ps[e] = g64(r);
    s->sbuf_peak = g64(r);
    s->psum_banks = (int)g32(r);
    s->semaphores = (int)g32(r);
    uint32_t proof = g32(r);
    s->races = (uint8_t)CPS_MIN(proof & 0xFF, CPS_PROOF_FAILS);
    s->deadlock = (uint8_t)CPS_MIN(proof >> 8 & 0xFF, CPS_PROOF_FAILS);
    return k;
}

cps_kbin *
cps_kbin_unpack(cps_arena *a, const void *bytes, size_t n, const char **why)
{
    rd r = {.p = bytes, .n = n, .a = a};
    const void *magic = gbytes(&r, 8);
    *why = "not a packed kernel";
    if (!magic || memcmp(magic, MAGIC, 8) != 0)
        return NULL;
    bool pair = gint(&r, 1);
    cps_kbin *k = unpack_core(&r);
    if (pair)
        k->peer = unpack_core(&r);
    *why = "cut off or malformed";
    if (r.bad || r.n != 0)
        return NULL;
    cps_buf b = {0};
    if (!cps_kbin_check(k, &b)) {
        *why = cps_arena_strndup(a, b.data, b.n);
        k = NULL;
    } else {
        *why = NULL;
    }
    cps_buf_fini(&b);
    return k;
}
