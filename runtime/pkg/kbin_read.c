/* A kernel folder back into a value. The files may come from anywhere: every size, count, name,
 * kind and offset is checked before use, and the result passes cps_kbin_check. The listing is
 * not read. */
#include "runtime/pkg/kbin_priv.h"

#include "runtime/base/file.h"

#include <errno.h>

typedef struct reader {
    cps_kbin *k;
    cps_arena *scratch;
    cps_diags *d;
    const char *dir;
} reader;

static bool
malformed(reader *r, const char *name, const char *why)
{
    cps_error(r->d, CPS_E8011, CPS_NOSPAN, "'%s': %s", cps_path_join(r->scratch, r->dir, name),
              why);
    return false;
}

static bool
open_one(reader *r, const char *name, bool text, cps_file *f)
{
    const char *path = cps_path_join(r->scratch, r->dir, name);
    if (cps_file_open(path, text, f))
        return true;
    cps_error(r->d, CPS_E1001, CPS_NOSPAN, "cannot read '%s': %s", path, strerror(errno));
    return false;
}

/* The document lives in the scratch arena; so may strings of it. */
static const cps_json *
open_json(reader *r, const char *name)
{
    cps_file f;
    if (!open_one(r, name, true, &f))
        return NULL;
    const char *why = "";
    size_t at = 0;
    const char *text = cps_arena_strndup(r->scratch, (const char *)f.data, f.n);
    const cps_json *doc = cps_json_parse(r->scratch, text, f.n, &why, &at);
    cps_file_close(&f);
    if (!doc)
        malformed(r, name, cps_arena_printf(r->scratch, "%s at byte %zu", why, at));
    return doc;
}

static bool
read_stream(reader *r, cps_engine e)
{
    const char *name = cps_arena_printf(r->scratch, "%s.bin", cps_engine_name(e));
    cps_kstream *s = &r->k->stream[e];
    cps_file f;
    if (!open_one(r, name, false, &f))
        return false;
    bool ok = f.n % CPS_BUNDLE_BYTES == 0 && f.n / CPS_BUNDLE_BYTES <= CPS_PKG_BUNDLES;
    if (!ok) {
        malformed(r, name,
                  cps_arena_printf(r->scratch, "%zu bytes are no stream of bundles", f.n));
    } else if (f.n) {
        uint32_t n = (uint32_t)(f.n / CPS_BUNDLE_BYTES);
        cps_vec_reserve(r->k->arena, &s->code, n);
        memcpy(s->code.data, f.data, f.n);
        s->code.n = n;
    }
    cps_file_close(&f);
    return ok;
}

static bool
read_var(reader *r, const cps_json *o, uint32_t i, const cps_file *data)
{
    bool ok = o->kind == CPS_JSON_OBJ;
    if (!ok)
        return false;
    cps_kbin *k = r->k;
    cps_kvar *v = i == 0 ? &k->vars.data[0] : cps_vec_add(k->arena, &k->vars);
    const char *name = cps_json_str(o, "name", true, "", &ok);
    const char *kind = cps_json_str(o, "kind", true, "", &ok);
    const char *dtype = cps_json_str(o, "dtype", true, "", &ok);
    int64_t bytes = cps_json_int(o, "bytes", true, 0, &ok);
    const cps_json *shape = cps_json_get(o, "shape");
    if (!ok || !shape || shape->kind != CPS_JSON_ARR || shape->n > CPS_MAX_RANK)
        return false;
    unsigned kd = 0;
    while (kd < CPS_VARKINDS && strcmp(kind, cps_pkg_kinds[kd]) != 0)
        kd++;
    if (kd == CPS_VARKINDS)
        return false;
    v->name = cps_arena_strdup(k->arena, name);
    v->kind = (cps_varkind)kd;
    v->dtype = cps_dtype_parse(dtype, strlen(dtype));
    v->bytes = bytes;
    v->rank = 0;
    for (const cps_json *x = shape->first; x; x = x->next) {
        if (x->kind != CPS_JSON_INT)
            return false;
        v->dim[v->rank++] = x->i;
    }
    if (v->kind == CPS_VAR_DATA) {
        int64_t off = cps_json_int(o, "offset", true, 0, &ok);
        if (!ok || off < 0 || bytes < 0 || !data || (size_t)off > data->n ||
            (size_t)bytes > data->n - (size_t)off)
            return false;
        void *copy = cps_arena_raw(k->arena, (size_t)bytes + 1);
        memcpy(copy, data->data + off, (size_t)bytes);
        v->data = copy;
    }
    return true;
}

static bool
read_vars(reader *r, const cps_json *doc)
{
    const cps_json *vars = cps_json_get(doc, "vars");
    if (!vars || vars->kind != CPS_JSON_ARR || vars->n == 0 || vars->n > CPS_PKG_VARS)
        return malformed(r, "kernel.json", "no list of variables");
    bool need = false;
    for (const cps_json *o = vars->first; o; o = o->next) {
        const cps_json *kind = o->kind == CPS_JSON_OBJ ? cps_json_get(o, "kind") : NULL;
        need |= kind && kind->kind == CPS_JSON_STR && cps_streq(kind->str, "file");
    }
    cps_file data = {0};
    if (need && !open_one(r, "data.bin", false, &data))
        return false;
    uint32_t i = 0;
    bool ok = true;
    for (const cps_json *o = vars->first; o && ok; o = o->next, i++)
        ok = read_var(r, o, i, need ? &data : NULL);
    if (need)
        cps_file_close(&data);
    if (!ok)
        return malformed(r, "kernel.json",
                         cps_arena_printf(r->scratch, "variable %u is malformed", i - 1));
    return true;
}

/* Runs of [count, source, line, col]; see kbin_write.c. */
static bool
read_places(reader *r, const cps_json *doc)
{
    const cps_json *sources = cps_json_get(doc, "sources"),
                   *places = cps_json_get(doc, "places");
    if (!sources || sources->kind != CPS_JSON_ARR || !places || places->kind != CPS_JSON_OBJ)
        return malformed(r, "kernel.json", "no source places");
    const char **name = cps_new_array(r->scratch, const char *, sources->n + 1);
    uint32_t n = 0;
    for (const cps_json *s = sources->first; s; s = s->next) {
        if (s->kind != CPS_JSON_STR)
            return malformed(r, "kernel.json", "malformed source name");
        name[++n] = cps_arena_strdup(r->k->arena, s->str);
    }
    for (int e = 0; e < CPS_ENGINES; e++) {
        cps_kstream *s = &r->k->stream[e];
        const cps_json *runs = cps_json_get(places, cps_engine_name((cps_engine)e));
        bool ok = runs && runs->kind == CPS_JSON_ARR && runs->n % 4 == 0;
        for (const cps_json *x = ok ? runs->first : NULL; x && ok;) {
            int64_t v[4];
            for (int i = 0; i < 4; i++, x = x->next) {
                ok &= x->kind == CPS_JSON_INT && x->i >= 0 && x->i <= UINT32_MAX;
                v[i] = x->i;
            }
            ok = ok && v[1] <= n && v[0] <= s->code.n - s->locs.n;
            for (int64_t i = 0; ok && i < v[0]; i++) {
                cps_kloc at = {v[1] ? name[v[1]] : NULL, (uint32_t)v[2], (uint32_t)v[3]};
                cps_vec_push(r->k->arena, &s->locs, at);
            }
        }
        if (!ok)
            return malformed(r, "kernel.json", "malformed source places");
    }
    return true;
}

/* A verdict by its name; a folder of an earlier version has none. */
static uint8_t
verdict(const cps_json *o, const char *key, bool *ok)
{
    const char *name = cps_json_str(o, key, false, NULL, ok);
    for (unsigned v = 0; name && v < CPS_VERDICTS; v++)
        if (!strcmp(name, cps_verdict_names[v]))
            return (uint8_t)v;
    *ok = *ok && !name;
    return CPS_PROOF_OPEN;
}

static bool
read_stats(reader *r, const cps_json *doc)
{
    const cps_json *o = cps_json_get(doc, "stats");
    cps_kstats *s = &r->k->stats;
    bool ok = o && o->kind == CPS_JSON_OBJ;
    if (ok) {
        s->flops = cps_json_int(o, "flops", true, 0, &ok);
        s->hbm_bytes = cps_json_int(o, "hbm_bytes", true, 0, &ok);
        s->pe_flops_ps = cps_json_int(o, "pe_flops_ps", true, 0, &ok);
        s->sbuf_peak = cps_json_int(o, "sbuf_peak_bytes_per_partition", true, 0, &ok);
        s->psum_banks = (int)cps_json_int(o, "psum_banks_peak", true, 0, &ok);
        s->semaphores = (int)cps_json_int(o, "semaphores", true, 0, &ok);
        s->races = verdict(o, "races", &ok);
        s->deadlock = verdict(o, "deadlock", &ok);
        const cps_json *m = cps_json_get(o, "engine_min_ps");
        ok = ok && m && m->kind == CPS_JSON_OBJ;
        for (int e = 0; ok && e < CPS_ENGINES; e++)
            s->engine_min_ps[e] = cps_json_int(m, cps_engine_name((cps_engine)e), true, 0, &ok);
    }
    return ok || malformed(r, "kernel.json", "malformed stats");
}

static bool
number_in(const cps_json *o, uint32_t limit, uint32_t *out)
{
    if (o->kind != CPS_JSON_INT || o->i < 0 || o->i >= limit)
        return false;
    *out = (uint32_t)o->i;
    return true;
}

/* Tables of groups, or (`pairs`) of pairs. */
static bool
read_tables(reader *r, const cps_json *doc, const char *key, bool pairs)
{
    cps_kbin *k = r->k;
    const cps_json *all = cps_json_get(doc, key);
    uint32_t table = 0;
    if (!all)
        return true;
    bool ok = all->kind == CPS_JSON_ARR;
    for (const cps_json *t = ok ? all->first : NULL; ok && t; t = t->next, table++) {
        ok = t->kind == CPS_JSON_ARR && table < CPS_PKG_RANKS;
        for (const cps_json *g = ok ? t->first : NULL; ok && g; g = g->next) {
            uint32_t rank[2] = {0}, n = 0;
            ok = g->kind == CPS_JSON_ARR && g->n <= CPS_PKG_RANKS && (!pairs || g->n == 2) &&
                 k->groups.n + k->pairs.n < CPS_PKG_RANKS * CPS_PKG_RANKS;
            for (const cps_json *x = ok ? g->first : NULL; ok && x; x = x->next, n++) {
                ok = number_in(x, CPS_PKG_RANKS, &rank[n % 2]);
                if (!pairs)
                    cps_vec_push(k->arena, &k->ranks, rank[n % 2]);
            }
            if (pairs)
                cps_vec_push(k->arena, &k->pairs, ((cps_kpair){table, rank[0], rank[1]}));
            else
                cps_vec_push(k->arena, &k->groups, ((cps_kgroup){table, k->ranks.n - n, n}));
        }
    }
    return ok || malformed(r, "kernel.json", "malformed groups of ranks");
}

static bool
read_kernel(reader *r)
{
    const cps_json *doc = open_json(r, "kernel.json");
    if (!doc)
        return false;
    if (doc->kind != CPS_JSON_OBJ)
        return malformed(r, "kernel.json", "no object");
    bool ok = true;
    int64_t schema = cps_json_int(doc, "schema", true, 0, &ok);
    const char *name = cps_json_str(doc, "name", true, "", &ok);
    const char *target = cps_json_str(doc, "target", true, "", &ok);
    const char *gen = cps_json_str(doc, "generation", true, "", &ok);
    int64_t core = cps_json_int(doc, "core", true, 0, &ok);
    int64_t cores = cps_json_int(doc, "cores", true, 1, &ok);
    if (!ok || schema != 1 || core < 0 || core > 1024 || cores < 1 || cores > 1024)
        return malformed(r, "kernel.json", "unknown schema or malformed head");
    int g = 0;
    while (g < CPS_GENS && strcmp(gen, cps_gen_name((cps_gen)g)) != 0)
        g++;
    if (g == CPS_GENS)
        return malformed(r, "kernel.json", "unknown generation");
    r->k = cps_kbin_new(r->k->arena, name, target, (cps_gen)g);
    r->k->core = (int)core;
    r->k->cores = (int)cores;
    for (int e = 0; e < CPS_ENGINES; e++) {
        if (!read_stream(r, (cps_engine)e))
            return false;
    }
    return read_vars(r, doc) && read_places(r, doc) && read_stats(r, doc) &&
           read_tables(r, doc, "replica_groups", false) &&
           read_tables(r, doc, "src_target_pairs", true) &&
           (cps_kbin_extents_read(r->k, cps_json_get(doc, "extents"), false) ||
            malformed(r, "kernel.json", "malformed extents"));
}

static bool
read_relocs(reader *r)
{
    const cps_json *doc = open_json(r, "reloc.json");
    if (!doc)
        return false;
    if (doc->kind != CPS_JSON_ARR || doc->n > CPS_PKG_ITEMS)
        return malformed(r, "reloc.json", "no list");
    cps_kbin *k = r->k;
    for (const cps_json *o = doc->first; o; o = o->next) {
        bool ok = o->kind == CPS_JSON_OBJ;
        if (!ok)
            return malformed(r, "reloc.json", "malformed relocation");
        cps_kreloc *x = cps_vec_add(k->arena, &k->relocs);
        x->engine = cps_engine_parse(cps_json_str(o, "engine", true, "", &ok));
        int64_t index = cps_json_int(o, "bundle", true, 0, &ok);
        const char *field = cps_json_str(o, "field", true, "", &ok);
        const char *var = cps_json_str(o, "var", true, "", &ok);
        x->addend = cps_json_int(o, "addend", true, 0, &ok);
        if (!ok || (unsigned)x->engine >= CPS_ENGINES || index < 0 ||
            index >= k->stream[x->engine].code.n)
            return malformed(r, "reloc.json", "malformed relocation");
        x->index = (uint32_t)index;
        x->field =
            (uint16_t)cps_pkg_field(&k->stream[x->engine].code.data[index], k->gen, field);
        x->var = cps_kbin_var(k, var);
    }
    return true;
}

static bool
read_dma(reader *r)
{
    const cps_json *doc = open_json(r, "dma.json");
    const char *why = "no object";
    if (!doc)
        return false;
    if (doc->kind != CPS_JSON_OBJ || !cps_pkg_dma_read(r->k, doc, &why))
        return malformed(r, "dma.json", why);
    return true;
}

static cps_kbin *
read_core(cps_arena *a, const char *dir, cps_diags *d)
{
    cps_kbin first = {.arena = a};
    reader r = {.k = &first, .scratch = cps_arena_create(), .d = d, .dir = dir};
    cps_buf why = {0};
    bool ok = read_kernel(&r) && read_dma(&r) && read_relocs(&r);
    if (ok && !cps_kbin_check(r.k, &why)) {
        cps_error(d, CPS_E8012, CPS_NOSPAN, "'%s': %s", dir, why.data);
        ok = false;
    }
    cps_buf_fini(&why);
    cps_arena_destroy(r.scratch);
    return ok ? r.k : NULL;
}

cps_kbin *
cps_kbin_read(cps_arena *a, const char *dir, cps_diags *d)
{
    const char *first = cps_path_join(a, dir, "core0"), *second = cps_path_join(a, dir, "core1");
    if (!cps_path_exists(first))
        return read_core(a, dir, d);
    cps_kbin *k = read_core(a, first, d), *peer = k ? read_core(a, second, d) : NULL;
    if (!peer)
        return NULL;
    k->peer = peer;
    cps_buf why = {0};
    bool ok = cps_kbin_check(k, &why);
    if (!ok)
        cps_error(d, CPS_E8012, CPS_NOSPAN, "'%s': %s", dir, why.data);
    cps_buf_fini(&why);
    return ok ? k : NULL;
}
