/* See kernel_cache.h. An entry: leaf and reason, each ended by NUL; then for each file of the package
 * two u64, the bytes of its name and of itself, and both. */
#include "frontend/kernel_cache.h"

#include "kernels/instance.h"

#include "build_id.h"

#include <string.h>

enum { F_SCHEMA = 64, F_BUILD, F_OP, F_TARGET, F_OPTION };

enum { LARGEST = 1 << 20 }; // beyond, storing takes longer than what a hit saves

/* What the package does not depend on. */
static const cps_opt elsewhere[] = {CPS_OPT_OUTPUT, CPS_OPT_CACHE, CPS_OPT_MSGFMT, CPS_OPT_COLOR, CPS_OPT_THREADS};
/* With these it depends on files, or makes more than a package. */
static const cps_opt refused[] = {CPS_OPT_KPATH, CPS_OPT_TUNED,   CPS_OPT_EMIT,  CPS_OPT_VERIFYEACH,
                                  CPS_OPT_MD,    CPS_OPT_MF,      CPS_OPT_REPORT};

static bool
is_elsewhere(unsigned o)
{
    for (unsigned i = 0; i < cps_countof(elsewhere); i++)
        if (elsewhere[i] == o)
            return true;
    return false;
}

static void
field(cps_buf *parts, uint16_t id, const char *s)
{
    cps_key_field(parts, id, s, (uint32_t)strlen(s));
}

static void
key_of(const cps_cli *c, const char *op, const cps_target *t, cps_kcache *k)
{
    cps_buf *b = &k->parts;
    field(b, F_SCHEMA, "kernel package 1");
    field(b, F_BUILD, CPS_BUILD_ID);
    field(b, F_OP, op);
    cps_key_field(b, F_TARGET, t->digest.b, sizeof t->digest.b);
    for (unsigned o = 0; o < CPS_OPTS; o++)
        for (uint32_t n = 0; n < c->opt[o].n && !is_elsewhere(o); n++) {
            uint8_t id = (uint8_t)o; // numbers of a build, as the build is in the key
            cps_key_field(b, F_OPTION, &id, 1);
            field(b, F_OPTION, c->opt[o].data[n]);
        }
    k->key = cps_digest_of(b->data, b->n);
}

static const char *
take_text(const char **at, const char *end)
{
    const char *s = *at, *z = s < end ? memchr(s, 0, (size_t)(end - s)) : NULL;
    if (z)
        *at = z + 1;
    return z ? s : NULL;
}

static bool
take_file(cps_arena *a, const char **at, const char *end, cps_rendered *out)
{
    uint64_t n[2];
    if ((size_t)(end - *at) < sizeof n)
        return false;
    memcpy(n, *at, sizeof n);
    *at += sizeof n;
    uint64_t left = (uint64_t)(end - *at);
    if (n[0] > left || n[1] > left - n[0])
        return false;
    const char *name = cps_arena_strndup(a, *at, n[0]);
    cps_vec_push(a, &out->files.list, ((cps_pfile){name, *at + n[0], n[1]}));
    *at += n[0] + n[1];
    return true;
}

bool
cps_kcache_get(cps_cli *c, const char *op, const cps_target *t, cps_kcache *k, cps_rendered *out,
               const char **leaf, const char **why)
{
    *k = (cps_kcache){0};
    cps_cache *cache = cps_cli_cache(c);
    k->on = cache->dir && !strcmp(c->command, "kernel");
    for (unsigned i = 0; i < cps_countof(refused); i++)
        k->on = k->on && !cps_cli_has(c, refused[i]);
    if (!k->on)
        return false;
    key_of(c, op, t, k);
    if (!cps_cache_get(cache, &k->key, k->parts.data, k->parts.n, &k->bytes))
        return false;
    const char *at = k->bytes.data, *end = at + k->bytes.n;
    *leaf = take_text(&at, end);
    *why = *leaf ? take_text(&at, end) : NULL;
    *out = (cps_rendered){.files.arena = c->arena};
    bool ok = *why != NULL;
    while (ok && at < end)
        ok = take_file(c->arena, &at, end, out);
    return ok && out->files.list.n;
}

void
cps_kcache_put(cps_cli *c, const cps_kcache *k, const cps_rendered *r, const char *leaf, const char *why)
{
    size_t total = 0;
    for (uint32_t i = 0; i < r->files.list.n; i++)
        total += r->files.list.data[i].n;
    if (!k->on || total > LARGEST || r->weights.n || r->weights_bytes || cps_diags_count(c->diags))
        return;
    cps_buf b = {0};
    cps_buf_put(&b, leaf, strlen(leaf) + 1);
    cps_buf_put(&b, why, strlen(why) + 1);
    for (uint32_t i = 0; i < r->files.list.n; i++) {
        const cps_pfile *f = &r->files.list.data[i];
        uint64_t n[2] = {strlen(f->name), f->n};
        cps_buf_put(&b, n, sizeof n);
        cps_buf_put(&b, f->name, n[0]);
        cps_buf_put(&b, f->data, f->n);
    }
    cps_cache_put(cps_cli_cache(c), &k->key, k->parts.data, k->parts.n, b.data, b.n);
    cps_buf_fini(&b);
}

void
cps_kcache_release(cps_kcache *k)
{
    cps_buf_fini(&k->parts);
    cps_buf_fini(&k->bytes);
}
