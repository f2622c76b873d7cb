/* See module_cache.h. Three kinds of entries of the trace cache:
 *   what the file system says of a file          -> sum of its contents
 *   sum of a model file                          -> names of its external data files
 *   everything a compile depends on              -> the rendered package without weights
 *   the same, marked                             -> weights that no file holds as they are
 * (cast, transposed), one after another */
#include "frontend/module_cache.h"

#include "codegen/host/host.h"
#include "frontend/depfile.h"
#include "frontend/onnx/onnx.h"
#include "kernels/instance.h"

#include "build_id.h"

#include <string.h>
#include <sys/stat.h>
#include <time.h>

/* A file must not have changed for longer than its time stamps may be coarse: a clock tick
 * where they have fractions of a millisecond, seconds where they do not. */
#define STILL_SECONDS 2
#define STILL_FINE_MS 100

enum {
    F_SCHEMA = 64,
    F_BUILD,
    F_MODEL,
    F_FILE,
    F_TARGET,
    F_OPTION,
    F_KERNELS,
    F_WEIGHTS,
    F_STAT,
    F_TUNED
};

/* Options that the result depends on, as they were spelled. */
static const cps_opt options[] = {CPS_OPT_LNC,      CPS_OPT_AUTOCAST, CPS_OPT_CASTTYPE,
                                  CPS_OPT_FALLBACK, CPS_OPT_OLEVEL,   CPS_OPT_DIM,
                                  CPS_OPT_KPATH};

static void
field(cps_buf *parts, uint16_t id, const char *s)
{
    cps_key_field(parts, id, s, (uint32_t)strlen(s));
}

/* ---- sums of files ---- */

typedef struct ident {
    uint64_t v[7];
} ident;

static bool
identify(const char *path, ident *out, struct timespec *changed)
{
    struct stat s;
    if (stat(path, &s) != 0 || !S_ISREG(s.st_mode))
        return false;
    *out = (ident){{s.st_dev, s.st_ino, (uint64_t)s.st_size, (uint64_t)s.st_mtim.tv_sec,
                    (uint64_t)s.st_mtim.tv_nsec, (uint64_t)s.st_ctim.tv_sec,
                    (uint64_t)s.st_ctim.tv_nsec}};
    bool later = s.st_mtim.tv_sec != s.st_ctim.tv_sec ? s.st_mtim.tv_sec > s.st_ctim.tv_sec
                                                      : s.st_mtim.tv_nsec > s.st_ctim.tv_nsec;
    *changed = later ? s.st_mtim : s.st_ctim;
    return true;
}

static bool
stood_still(const struct timespec *changed, const struct timespec *now)
{
    int64_t ms = (int64_t)(now->tv_sec - changed->tv_sec) * 1000 +
                 (now->tv_nsec - changed->tv_nsec) / 1000000;
    return ms > (changed->tv_nsec % 1000000 ? STILL_FINE_MS : STILL_SECONDS * 1000);
}

static bool
sum_of(cps_cache *cache, const char *path, cps_sum *out)
{
    ident before, after;
    struct timespec changed, now;
    const uint8_t *secret = cps_cache_secret(cache);
    clock_gettime(CLOCK_REALTIME, &now);
    if (!secret || !identify(path, &before, &changed))
        return false;
    cps_buf parts = {0}, bytes = {0};
    field(&parts, F_SCHEMA, "file 1");
    cps_key_field(&parts, F_STAT, before.v, sizeof before.v);
    cps_digest key = cps_digest_of(parts.data, parts.n);
    bool ok =
        cps_cache_get(cache, &key, parts.data, parts.n, &bytes) && bytes.n == sizeof out->b;
    cps_file f;
    if (ok) {
        memcpy(out->b, bytes.data, sizeof out->b);
    } else if (cps_file_open(path, false, &f)) {
        *out = cps_sum_of(f.data, f.n, secret);
        cps_file_close(&f);
        ok = identify(path, &after, &changed) && !memcmp(&before, &after, sizeof before);
        if (ok && stood_still(&changed, &now))
            cps_cache_put(cache, &key, parts.data, parts.n, out->b, sizeof out->b);
    }
    cps_buf_fini(&parts);
    cps_buf_fini(&bytes);
    return ok;
}

/* ---- keys ---- */

static const char *
beside(cps_arena *a, const char *path, const char *name)
{
    size_t n = (size_t)(cps_path_base(path) - path);
    return n ? cps_arena_printf(a, "%.*s%s", (int)n, path, name) : name;
}

/* Names of external data, relative to the model's folder, each followed by NUL. */
static bool
get_externals(cps_cache *cache, const cps_sum *model, cps_buf *names)
{
    cps_buf parts = {0};
    field(&parts, F_SCHEMA, "externals 1");
    cps_key_field(&parts, F_FILE, model->b, sizeof model->b);
    cps_digest key = cps_digest_of(parts.data, parts.n);
    bool hit = cps_cache_get(cache, &key, parts.data, parts.n, names);
    cps_buf_fini(&parts);
    return hit && (!names->n || !names->data[names->n - 1]);
}

static void
put_externals(cps_cache *cache, const cps_sum *model, const cps_buf *names)
{
    cps_buf parts = {0};
    field(&parts, F_SCHEMA, "externals 1");
    cps_key_field(&parts, F_FILE, model->b, sizeof model->b);
    cps_digest key = cps_digest_of(parts.data, parts.n);
    cps_cache_put(cache, &key, parts.data, parts.n, names->n ? names->data : "", names->n);
    cps_buf_fini(&parts);
}

/* Sums of the model file, of the files of -I and of the one of --tuned. */
static bool
sum_inputs(cps_cli *c, const char *path, cps_mcache *mc)
{
    cps_cache *cache = cps_cli_cache(c);
    bool ok = sum_of(cache, path, &mc->model);
    mc->kernels.n = 0;
    for (uint32_t i = 0; ok && i < c->opt[CPS_OPT_KPATH].n; i++) {
        cps_sum s;
        ok = sum_of(cache, c->opt[CPS_OPT_KPATH].data[i], &s);
        cps_vec_push(c->arena, &mc->kernels, s);
    }
    mc->has_tuned = cps_cli_has(c, CPS_OPT_TUNED);
    return ok && (!mc->has_tuned || sum_of(cache, cps_cli_str(c, CPS_OPT_TUNED, ""), &mc->tuned));
}

/* The components of a compile's key: false when an external file cannot be summed up. */
static bool
key_of(cps_cli *c, const char *path, const cps_target *t, const cps_buf *externals,
       cps_mcache *mc)
{
    cps_cache *cache = cps_cli_cache(c);
    cps_buf *b = &mc->parts;
    b->n = 0;
    field(b, F_SCHEMA, "module 1");
    field(b, F_BUILD, CPS_BUILD_ID);
    field(b, F_MODEL, cps_path_base(path)); // the module's name comes from it
    cps_key_field(b, F_FILE, mc->model.b, sizeof mc->model.b);
    cps_sum s;
    for (size_t at = 0; at < externals->n; at += strlen(externals->data + at) + 1) {
        if (!sum_of(cache, beside(c->arena, path, externals->data + at), &s))
            return false;
        cps_key_field(b, F_FILE, s.b, sizeof s.b);
    }
    char cpu[256];
    if (t)
        cps_key_field(b, F_TARGET, t->digest.b, sizeof t->digest.b);
    else
        cps_host_cpu(cpu, sizeof cpu), field(b, F_TARGET, cpu);
    for (unsigned i = 0; i < cps_countof(options); i++)
        for (uint32_t k = 0; k < c->opt[options[i]].n; k++) {
            uint8_t id = (uint8_t)i;
            cps_key_field(b, F_OPTION, &id, 1);
            field(b, F_OPTION, c->opt[options[i]].data[k]);
        }
    for (uint32_t i = 0; i < mc->kernels.n; i++)
        cps_key_field(b, F_KERNELS, mc->kernels.data[i].b, sizeof mc->kernels.data[i].b);
    if (mc->has_tuned)
        cps_key_field(b, F_TUNED, mc->tuned.b, sizeof mc->tuned.b);
    mc->key = cps_digest_of(b->data, b->n);
    return true;
}

/* The key of the weights that go with a module's entry: its components and one more. */
static cps_digest
weights_key(const cps_mcache *mc, cps_buf *parts)
{
    cps_buf_put(parts, mc->parts.data, mc->parts.n);
    field(parts, F_WEIGHTS, "weights");
    return cps_digest_of(parts->data, parts->n);
}

/* ---- entries ---- */

typedef struct head {
    uint32_t steps, kernels, files, pieces, name; /* bytes of the model's name */
    uint32_t sources;                             /* files behind the weights */
    int64_t arena_bytes, weights_bytes;
} head;

typedef struct piece {
    int64_t offset, bytes;
    int64_t at;     /* in its source */
    int64_t source; /* 0: the weights' own entry; else 1 + file of the model */
} piece;

typedef struct cursor {
    const uint8_t *p;
    size_t n;
} cursor;

static const void *
take(cursor *k, size_t n)
{
    const uint8_t *p = k->p;
    if (n > k->n)
        return NULL;
    k->p += n;
    k->n -= n;
    return p;
}

static bool
read_piece(cursor *k, const cps_mcache *mc, uint32_t sources, const uint8_t *own, size_t nown,
           cps_pweight *out)
{
    piece x;
    const void *p = take(k, sizeof x);
    if (!p)
        return false;
    memcpy(&x, p, sizeof x);
    if (x.source < 0 || x.source > sources || x.bytes < 0 || x.at < 0)
        return false;
    const cps_file *f = x.source ? &mc->mapped.data[x.source - 1] : NULL;
    const uint8_t *base = f ? f->data : own;
    size_t n = f ? f->n : nown;
    if ((uint64_t)x.at > n || (uint64_t)x.bytes > n - (uint64_t)x.at)
        return false;
    *out = (cps_pweight){x.offset, x.bytes, base + x.at};
    return true;
}

static bool
read_entry(cps_cli *c, cursor k, cps_mcache *mc, uint32_t sources, cps_rendered *out,
           cps_summary *sum)
{
    head h;
    const void *p = take(&k, sizeof h);
    if (!p)
        return false;
    memcpy(&h, p, sizeof h);
    const char *name = take(&k, h.name);
    if (!name || h.sources != sources)
        return false;
    *sum = (cps_summary){cps_arena_strndup(c->arena, name, h.name), h.steps, h.kernels,
                         h.arena_bytes};
    *out = (cps_rendered){.files.arena = c->arena, .weights_bytes = h.weights_bytes};
    const uint8_t *own = NULL;
    size_t nown = 0;
    cps_buf parts = {0};
    cps_file f;
    cps_digest key = weights_key(mc, &parts);
    uint64_t rest;
    const void *has = take(&k, sizeof rest);
    bool ok = has != NULL;
    if (ok) {
        memcpy(&rest, has, sizeof rest);
        ok = !rest ||
             cps_cache_map(cps_cli_cache(c), &key, parts.data, parts.n, &f, &own, &nown);
        if (ok && rest)
            cps_vec_push(c->arena, &mc->mapped, f);
    }
    cps_buf_fini(&parts);
    for (uint32_t i = 0; ok && i < h.pieces; i++) {
        cps_pweight w;
        ok = read_piece(&k, mc, sources, own, nown, &w);
        cps_vec_push(c->arena, &out->weights, w);
    }
    for (uint32_t i = 0; ok && i < h.files; i++) {
        uint64_t n[2];
        const void *at = take(&k, sizeof n);
        if (at)
            memcpy(n, at, sizeof n);
        const char *fname = at ? take(&k, n[0]) : NULL;
        const void *data = fname ? take(&k, n[1]) : NULL;
        ok = data != NULL;
        if (ok)
            cps_vec_push(c->arena, &out->files.list,
                         ((cps_pfile){cps_arena_strndup(c->arena, fname, n[0]), data, n[1]}));
    }
    return ok && !k.n;
}

/* What the key vouches for was read, though nothing opens it. */
static void
depend(cps_cli *c, const char *path, const cps_buf *names)
{
    cps_cli_depends(c, path);
    for (size_t at = 0; at < names->n; at += strlen(names->data + at) + 1)
        cps_cli_depends_beside(c, path, names->data + at);
    for (uint32_t i = 0; i < c->opt[CPS_OPT_KPATH].n; i++)
        cps_cli_depends(c, c->opt[CPS_OPT_KPATH].data[i]);
    if (cps_cli_has(c, CPS_OPT_TUNED))
        cps_cli_depends(c, cps_cli_str(c, CPS_OPT_TUNED, ""));
}

bool
cps_mcache_get(cps_cli *c, const char *path, const cps_target *t, cps_mcache *mc,
               cps_rendered *out, cps_summary *sum)
{
    *mc = (cps_mcache){0};
    cps_cache *cache = cps_cli_cache(c);
    clock_gettime(CLOCK_REALTIME, &mc->begun);
    mc->on = cache->dir && strcmp(path, "-") != 0 && !cps_cli_has(c, CPS_OPT_VERIFYEACH) &&
             sum_inputs(c, path, mc);
    if (!mc->on)
        return false;
    cps_buf names = {0};
    const uint8_t *payload;
    size_t n;
    cps_file f;
    bool hit = get_externals(cache, &mc->model, &names) && key_of(c, path, t, &names, mc);
    if (hit && cps_file_open(path, false, &f))
        cps_vec_push(c->arena, &mc->mapped, f);
    else
        hit = false;
    for (size_t at = 0; hit && at < names.n; at += strlen(names.data + at) + 1) {
        hit = cps_file_open(beside(c->arena, path, names.data + at), false, &f);
        if (hit)
            cps_vec_push(c->arena, &mc->mapped, f);
    }
    uint32_t sources = mc->mapped.n;
    if (hit && cps_cache_map(cache, &mc->key, mc->parts.data, mc->parts.n, &f, &payload, &n)) {
        cps_vec_push(c->arena, &mc->mapped, f);
        hit = read_entry(c, (cursor){payload, n}, mc, sources, out, sum);
        if (hit)
            depend(c, path, &names);
    } else {
        hit = false;
    }
    cps_buf_fini(&names);
    return hit;
}

/* Where a constant lies in a file of the model: index + 1, or 0. */
static int64_t
source_of(const cps_onnx_files *files, const cps_pweight *w, int64_t *at)
{
    const uint8_t *p = w->data;
    for (uint32_t i = 0; files && i < files->file.n; i++) {
        const cps_file *f = &files->file.data[i].map;
        if (p >= f->data && p < f->data + f->n &&
            (size_t)w->bytes <= f->n - (size_t)(p - f->data)) {
            *at = p - f->data;
            return i + 1;
        }
    }
    return 0;
}

static void
put_entry(cps_cli *c, cps_mcache *mc, const cps_onnx_files *files, const cps_rendered *r,
          const cps_summary *sum)
{
    cps_cache *cache = cps_cli_cache(c);
    cps_buf b = {0}, own = {0}, parts = {0};
    head h = {sum->steps,
              sum->kernels,
              r->files.list.n,
              r->weights.n,
              (uint32_t)strlen(sum->model),
              files ? files->file.n : 1,
              sum->arena_bytes,
              r->weights_bytes};
    cps_buf_put(&b, &h, sizeof h);
    cps_buf_put(&b, sum->model, h.name);
    size_t rest_at = b.n;
    uint64_t rest = 0;
    cps_buf_put(&b, &rest, sizeof rest);
    for (uint32_t i = 0; i < r->weights.n; i++) {
        const cps_pweight *w = &r->weights.data[i];
        piece x = {w->offset, w->bytes, (int64_t)own.n, 0};
        x.source = source_of(files, w, &x.at);
        if (!x.source)
            cps_buf_put(&own, w->data, (size_t)w->bytes);
        cps_buf_put(&b, &x, sizeof x);
    }
    rest = own.n;
    memcpy(b.data + rest_at, &rest, sizeof rest);
    for (uint32_t i = 0; i < r->files.list.n; i++) {
        const cps_pfile *f = &r->files.list.data[i];
        uint64_t n[2] = {strlen(f->name), f->n};
        cps_buf_put(&b, n, sizeof n);
        cps_buf_put(&b, f->name, n[0]);
        cps_buf_put(&b, f->data, f->n);
    }
    if (own.n) {
        cps_digest key = weights_key(mc, &parts);
        cps_cache_put(cache, &key, parts.data, parts.n, own.data, own.n);
    }
    cps_cache_put(cache, &mc->key, mc->parts.data, mc->parts.n, b.data, b.n);
    cps_buf_fini(&b);
    cps_buf_fini(&own);
    cps_buf_fini(&parts);
}

void
cps_mcache_put(cps_cli *c, cps_mcache *mc, const char *path, const cps_target *t,
               const cps_model *m, const cps_rendered *r, const cps_summary *sum)
{
    if (!mc->on || cps_diags_count(c->diags))
        return;
    // The key must tell of the bytes that were compiled: those summed before are summed again,
    // the others must have stood still since before the compile.
    cps_cache *cache = cps_cli_cache(c);
    const cps_onnx_files *files = m->files;
    cps_mcache now = {.kernels = {0}};
    cps_buf names = {0};
    bool same = sum_inputs(c, path, &now) &&
                !memcmp(&now.model, &mc->model, sizeof now.model) &&
                now.kernels.n == mc->kernels.n &&
                (!now.has_tuned || !memcmp(&now.tuned, &mc->tuned, sizeof now.tuned));
    for (uint32_t i = 0; same && i < now.kernels.n; i++)
        same = !memcmp(&now.kernels.data[i], &mc->kernels.data[i], sizeof(cps_sum));
    for (uint32_t i = 1; same && files && i < files->file.n; i++) {
        const char *name = files->file.data[i].name;
        ident id;
        struct timespec changed;
        same = identify(beside(c->arena, path, name), &id, &changed) &&
               mc->begun.tv_sec - changed.tv_sec > STILL_SECONDS;
        cps_buf_put(&names, name, strlen(name) + 1);
    }
    if (same && key_of(c, path, t, &names, mc)) {
        put_externals(cache, &mc->model, &names);
        put_entry(c, mc, files, r, sum);
    }
    cps_buf_fini(&names);
}

void
cps_mcache_release(cps_mcache *mc)
{
    for (uint32_t i = 0; i < mc->mapped.n; i++)
        cps_file_close(&mc->mapped.data[i]);
    cps_buf_fini(&mc->parts);
    *mc = (cps_mcache){0};
}
