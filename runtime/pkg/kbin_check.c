/* Whether a kernel value is sound: what every consumer may rely on without looking again.
 * Readers run it on what they read, the simulator on what it is given. It knows no target:
 * bounds inside a partition are the simulator's. */
#include "runtime/pkg/kbin_priv.h"

#include "runtime/base/map.h"

#include <stdarg.h>
#include <stdio.h>

static bool
bad(cps_buf *why, const char *fmt, ...)
{
    va_list ap;
    char text[512];
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    cps_buf_puts(why, text);
    return false;
}

static bool
check_vars(const cps_kbin *k, cps_buf *why)
{
    if (k->vars.n == 0 || k->vars.data[0].kind != CPS_VAR_SB)
        return bad(why, "variable 0 is not the state buffer");
    if (k->vars.n > CPS_PKG_VARS)
        return bad(why, "%u variables, limit %d", k->vars.n, CPS_PKG_VARS);
    cps_arena *a = cps_arena_create();
    cps_map names;
    cps_map_init(&names, a);
    bool ok = true;
    for (uint32_t i = 0; i < k->vars.n && ok; i++) {
        const cps_kvar *v = &k->vars.data[i];
        size_t len = v->name ? strlen(v->name) : 0;
        bool fresh;
        int64_t n = 1;
        if (len == 0 || len > CPS_PKG_NAME)
            ok =
                bad(why, "variable %u: the name has %zu bytes, limit %d", i, len, CPS_PKG_NAME);
        else if ((unsigned)v->kind >= CPS_VARKINDS || (i > 0 && v->kind == CPS_VAR_SB))
            ok = bad(why, "variable '%s': bad kind", v->name);
        else if ((unsigned)v->dtype >= CPS_DT_COUNT || v->dtype == CPS_DT_NONE)
            ok = bad(why, "variable '%s': bad type", v->name);
        else if (v->rank < 0 || v->rank > CPS_MAX_RANK)
            ok = bad(why, "variable '%s': rank %d, limit %d", v->name, v->rank, CPS_MAX_RANK);
        else if (v->bytes < 0 || v->bytes > CPS_PKG_BYTES)
            ok = bad(why, "variable '%s': %lld bytes", v->name, (long long)v->bytes);
        else if (v->kind == CPS_VAR_DATA && v->bytes > 0 && !v->data)
            ok = bad(why, "variable '%s': constant without data", v->name);
        else if (*cps_map_at_str(&names, v->name, &fresh) = 1, !fresh)
            ok = bad(why, "variable '%s' is named twice", v->name);
        for (int d = 0; ok && d < v->rank; d++) {
            if (v->dim[d] < 0 || __builtin_mul_overflow(n, v->dim[d], &n) || n > CPS_PKG_BYTES)
                ok = bad(why, "variable '%s': bad shape", v->name);
        }
    }
    cps_arena_destroy(a);
    return ok;
}

/* Bytes a pattern moves, and the range it touches; false when it is malformed. */
static bool
pattern(int n, const int64_t *step, const int64_t *size, int64_t off, int64_t *bytes,
        int64_t *lo, int64_t *hi)
{
    if (n < 1 || n > CPS_DESC_DIMS || step[0] != 1)
        return false;
    *bytes = 1;
    *lo = *hi = off;
    for (int i = 0; i < n; i++) {
        int64_t reach;
        if (size[i] < 1 || __builtin_mul_overflow(*bytes, size[i], bytes) ||
            *bytes > CPS_PKG_BYTES || __builtin_mul_overflow(step[i], size[i] - 1, &reach))
            return false;
        if (__builtin_add_overflow(reach < 0 ? *lo : *hi, reach, reach < 0 ? lo : hi))
            return false;
    }
    return true;
}

static bool
check_desc(const cps_kbin *k, uint32_t at, cps_buf *why)
{
    const cps_kdesc *c = &k->descs.data[at];
    int64_t from, to, lo, hi;
    if ((unsigned)c->op >= CPS_DESCOPS)
        return bad(why, "descriptor %u: bad operation", at);
    if (c->from >= k->vars.n || c->to >= k->vars.n)
        return bad(why, "descriptor %u: unknown variable", at);
    const cps_kvar *vf = &k->vars.data[c->from], *vt = &k->vars.data[c->to];
    if (!pattern(c->nfrom, c->from_step, c->from_size, c->from_off, &from, &lo, &hi))
        return bad(why, "descriptor %u: bad source pattern", at);
    if (lo < 0 || hi >= vf->bytes)
        return bad(why, "descriptor %u: bytes %lld..%lld of '%s', which has %lld", at,
                   (long long)lo, (long long)hi, vf->name, (long long)vf->bytes);
    if (!pattern(c->nto, c->to_step, c->to_size, c->to_off, &to, &lo, &hi))
        return bad(why, "descriptor %u: bad destination pattern", at);
    if (lo < 0 || hi >= vt->bytes)
        return bad(why, "descriptor %u: bytes %lld..%lld of '%s', which has %lld", at,
                   (long long)lo, (long long)hi, vt->name, (long long)vt->bytes);
    if (vt->kind == CPS_VAR_DATA)
        return bad(why, "descriptor %u writes the constant '%s'", at, vt->name);
    if ((unsigned)c->from_dtype >= CPS_DT_COUNT || (unsigned)c->to_dtype >= CPS_DT_COUNT ||
        !c->from_dtype || !c->to_dtype)
        return bad(why, "descriptor %u: bad type", at);
    int64_t fb = cps_dtype_bytes(c->from_dtype), tb = cps_dtype_bytes(c->to_dtype);
    bool typed = c->op == CPS_DESC_CAST || c->op == CPS_DESC_ADD;
    if (typed && (c->from_size[0] % fb || c->to_size[0] % tb || from / fb != to / tb))
        return bad(why, "descriptor %u: the sides differ in elements", at);
    if (!typed && from != to)
        return bad(why, "descriptor %u: %lld bytes from, %lld bytes to", at, (long long)from,
                   (long long)to);
    if (c->op == CPS_DESC_TRANSPOSE) {
        int64_t n;
        if ((c->elem != 1 && c->elem != 2 && c->elem != 4) || c->rows < 1 || c->cols < 1 ||
            __builtin_mul_overflow(c->rows, c->cols, &n) ||
            __builtin_mul_overflow(n, (int64_t)c->elem, &n) || n != from ||
            c->from_size[0] % c->elem || c->to_size[0] % c->elem)
            return bad(why, "descriptor %u: bad transpose of %lld x %lld elements of %d bytes",
                       at, (long long)c->rows, (long long)c->cols, c->elem);
    }
    return true;
}

static bool
check_blocks(const cps_kbin *k, cps_buf *why)
{
    cps_arena *a = cps_arena_create();
    cps_map seen;
    cps_map_init(&seen, a);
    bool ok = true;
    for (uint32_t i = 0; i < k->blocks.n && ok; i++) {
        const cps_kblock *b = &k->blocks.data[i];
        size_t len = b->queue ? strlen(b->queue) : 0;
        bool fresh;
        if ((unsigned)b->owner >= CPS_ENGINES)
            ok = bad(why, "block %u: bad engine", i);
        else if (len == 0 || len > CPS_PKG_QUEUE_NAME)
            ok = bad(why, "block %u: the queue name has %zu bytes, limit %d", i, len,
                     CPS_PKG_QUEUE_NAME);
        else if (b->first > k->descs.n || b->ndesc > k->descs.n - b->first)
            ok = bad(why, "block %u: descriptors out of range", i);
        else if (*cps_map_at_str(&seen, cps_arena_printf(a, "%u %s", b->id, b->queue), &fresh) =
                     1,
                 !fresh)
            ok = bad(why, "block %u of queue '%s' is given twice", b->id, b->queue);
    }
    cps_arena_destroy(a);
    return ok;
}

static bool
check_reloc(const cps_kbin *k, uint32_t at, cps_buf *why)
{
    const cps_kreloc *r = &k->relocs.data[at];
    if ((unsigned)r->engine >= CPS_ENGINES || r->index >= k->stream[r->engine].code.n)
        return bad(why, "relocation %u: no such bundle", at);
    if (r->field == CPS_F_NONE || r->field >= CPS_FIELDS)
        return bad(why, "relocation %u: no such field", at);
    const cps_bundle *b = &k->stream[r->engine].code.data[r->index];
    const cps_field_row *f = &cps_fields[r->field];
    cps_insn i = cps_isa_find(b->b[0], k->gen);
    if (i == CPS_INSN_NONE || cps_insns[i].format != f->format || f->bits > 64 || f->bits < 32)
        return bad(why, "relocation %u: field '%s' holds no address", at, f->name);
    if (r->var == 0 || r->var >= k->vars.n)
        return bad(why, "relocation %u: no such variable", at);
    if (r->addend < 0 || r->addend > k->vars.data[r->var].bytes)
        return bad(why, "relocation %u: offset %lld of '%s', which has %lld bytes", at,
                   (long long)r->addend, k->vars.data[r->var].name,
                   (long long)k->vars.data[r->var].bytes);
    return true;
}

static bool
check_extent(const cps_kbin *k, uint32_t at, cps_buf *why)
{
    const cps_kextent *x = &k->extents.data[at];
    if ((unsigned)x->engine >= CPS_ENGINES || x->index >= k->stream[x->engine].code.n)
        return bad(why, "extent %u: no such bundle", at);
    if (x->field == CPS_F_NONE || x->field >= CPS_FIELDS)
        return bad(why, "extent %u: no such field", at);
    if (x->var >= k->vars.n || (!x->var && !x->name))
        return bad(why, "extent %u: no such variable", at);
    if (!x->var && (x->part + x->parts > CPS_PKG_LANES || x->byte > CPS_SBUF_STRIDE ||
                    x->bytes > CPS_SBUF_STRIDE - x->byte))
        return bad(why, "extent %u: '%s' is no part of the memory", at, x->name);
    return true;
}

bool
cps_kbin_check(const cps_kbin *k, cps_buf *why)
{
    if ((unsigned)k->gen >= CPS_GENS)
        return bad(why, "bad generation");
    if (!k->name || !*k->name || strlen(k->name) > CPS_PKG_NAME)
        return bad(why, "bad kernel name");
    if (k->cores < 1 || k->cores > 16 || k->core < 0 || k->core >= k->cores)
        return bad(why, "core %d of %d", k->core, k->cores);
    if (k->peer && (k->core != 0 || k->cores != 2 || k->peer->core != 1 || k->peer->cores != 2 ||
                    k->peer->gen != k->gen || k->peer->peer))
        return bad(why, "core %d of %d is paired with core %d of %d", k->core, k->cores,
                   k->peer->core, k->peer->cores);
    for (int e = 0; e < CPS_ENGINES; e++) {
        const cps_kstream *s = &k->stream[e];
        if (s->code.n > CPS_PKG_BUNDLES)
            return bad(why, "%u bundles for %s, limit %d", s->code.n,
                       cps_engine_name((cps_engine)e), CPS_PKG_BUNDLES);
        if (s->locs.n != 0 && s->locs.n != s->code.n)
            return bad(why, "%s: %u bundles but %u places", cps_engine_name((cps_engine)e),
                       s->code.n, s->locs.n);
    }
    if (k->descs.n > CPS_PKG_ITEMS || k->blocks.n > CPS_PKG_ITEMS ||
        k->relocs.n > CPS_PKG_ITEMS || k->extents.n > CPS_PKG_ITEMS)
        return bad(why, "too many descriptors, blocks, relocations or extents");
    for (uint32_t i = 0; i < k->groups.n; i++)
        if (k->groups.data[i].first > k->ranks.n ||
            k->groups.data[i].n > k->ranks.n - k->groups.data[i].first)
            return bad(why, "replica group %u is cut off", i);
    if (!check_vars(k, why))
        return false;
    for (uint32_t i = 0; i < k->descs.n; i++) {
        if (!check_desc(k, i, why))
            return false;
    }
    if (!check_blocks(k, why))
        return false;
    for (uint32_t i = 0; i < k->relocs.n; i++) {
        if (!check_reloc(k, i, why))
            return false;
    }
    for (uint32_t i = 0; i < k->extents.n; i++) {
        if (!check_extent(k, i, why))
            return false;
    }
    return !k->peer || cps_kbin_check(k->peer, why);
}
