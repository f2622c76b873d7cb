/* See cache.h. Layout of an entry file, little endian:
 *   0  "CPSE"  4 u32 version  8 u64 bytes of parts  16 u64 bytes of payload
 *   24 key (32)  56 check sum over parts and payload (16)  72 parts, payload
 * Names: <dir>/v1/<first two hex digits>/<other 62>; temporaries start with '.'. Beside them lies
 * <dir>/v1/secret, the random bytes that this cache mixes into sums of files. */
#include "codegen/cache.h"

#include "runtime/base/vec.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define HEADER 72
#define VERSION 2u
#define STALE_SECONDS 3600

typedef struct entry {
    char *path;
    uint64_t bytes;
    struct timespec used;
} entry;

static bool
usable(const char *dir, const char **why)
{
    struct stat st;
    bool fresh = stat(dir, &st) != 0;
    if (fresh && (!cps_mkdirs(dir) || chmod(dir, 0700) != 0 || stat(dir, &st) != 0)) {
        *why = strerror(errno);
        return false;
    }
    if (!S_ISDIR(st.st_mode))
        *why = "not a folder";
    else if (st.st_uid != geteuid())
        *why = "it belongs to another user";
    else if (st.st_mode & 022)
        *why = "others may write to it";
    else if (access(dir, R_OK | W_OK | X_OK) != 0)
        *why = strerror(errno);
    else
        return true;
    return false;
}

cps_cache *
cps_cache_none(cps_arena *a)
{
    cps_cache *c = cps_new(a, cps_cache);
    c->arena = a;
    return c;
}

cps_cache *
cps_cache_open(cps_arena *a, const char *dir, cps_diags *d)
{
    cps_cache *c = cps_cache_none(a);
    if (!dir) {
        const char *xdg = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
        if (xdg && xdg[0] == '/')
            dir = cps_path_join(a, xdg, "copse");
        else if (home && home[0] == '/')
            dir = cps_path_join(a, home, ".cache/copse");
        else
            return c;
    }
    dir = cps_path_join(a, dir, "v1");
    const char *why = NULL;
    bool ok = usable(dir, &why);
    if (!ok) {
        cps_error(d, CPS_W1101, CPS_NOSPAN, "trace cache '%s' is not used: %s", dir, why);
        return c;
    }
    c->dir = dir;
    return c;
}

static char *
entry_path(cps_cache *c, const cps_digest *key)
{
    char hex[65];
    cps_digest_hex(key, hex);
    return cps_arena_printf(c->arena, "%s/%.2s/%s", c->dir, hex, hex + 2);
}

static uint64_t
u64_at(const uint8_t *p)
{
    uint64_t v;
    memcpy(&v, p, 8);
    return v;
}

/* What the head of an entry of `n` bytes says, when that can be. */
static bool
head_read(const uint8_t *b, size_t n, const cps_digest *key, uint64_t *nparts, uint64_t *npayload)
{
    if (n < HEADER || memcmp(b, "CPSE", 4) != 0)
        return false;
    uint32_t version;
    memcpy(&version, b + 4, 4);
    *nparts = u64_at(b + 8);
    *npayload = u64_at(b + 16);
    return version == VERSION && *nparts <= n - HEADER && *npayload == n - HEADER - *nparts &&
           (!key || memcmp(b + 24, key->b, 32) == 0);
}

static bool
sum_matches(const uint8_t *head, const void *parts, size_t nparts, const void *payload, size_t npayload)
{
    cps_sum sum = cps_sum_of_two(parts, nparts, payload, npayload);
    return memcmp(head + 56, sum.b, sizeof sum.b) == 0;
}

/* The parts and payload of a whole entry, or false. */
static bool
entry_open(const uint8_t *b, size_t n, const cps_digest *key, const uint8_t **parts,
           uint64_t *nparts, const uint8_t **payload, uint64_t *npayload)
{
    if (!head_read(b, n, key, nparts, npayload))
        return false;
    *parts = b + HEADER;
    *payload = *parts + *nparts;
    return sum_matches(b, *parts, *nparts, *payload, *npayload);
}

/* The same with the payload read straight to the end of `out`, which takes less than to map, copy and unmap it. */
static bool
entry_read(int fd, const cps_digest *key, const void *parts, size_t nparts, uint8_t *mine, cps_buf *out)
{
    struct stat st;
    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode) || st.st_size < (off_t)(HEADER + nparts))
        return false;
    uint8_t head[HEADER];
    uint64_t np, npay;
    struct iovec v[2] = {{head, HEADER}, {mine, nparts}};
    if (readv(fd, v, 2) != (ssize_t)(HEADER + nparts) || !head_read(head, (size_t)st.st_size, key, &np, &npay) ||
        np != nparts || memcmp(mine, parts, nparts) != 0)
        return false;
    char *to = cps_buf_room(out, npay); // no more than the file has: head_read
    for (uint64_t n = 0; n < npay;) {
        ssize_t got = read(fd, to + n, npay - n);
        if (got <= 0)
            return false;
        n += (uint64_t)got;
    }
    if (!sum_matches(head, mine, nparts, to, npay))
        return false;
    out->n += npay;
    out->data[out->n] = 0;
    return true;
}

static void
counted(cps_cache *c, const char *path, bool hit, bool found)
{
    if (hit)
        utimensat(AT_FDCWD, path, NULL, 0); // for gc: used now
    c->hits += hit;
    c->misses += !hit;
    c->rejected += found && !hit;
}

bool
cps_cache_map(cps_cache *c, const cps_digest *key, const void *parts, size_t nparts, cps_file *f,
              const uint8_t **payload, size_t *n)
{
    if (!c->dir) {
        c->misses++;
        return false;
    }
    cps_mark mark = cps_arena_mark(c->arena);
    const char *path = entry_path(c, key);
    bool found = cps_file_open(path, false, f), hit = false;
    if (found) {
        const uint8_t *pp;
        uint64_t np, npay;
        hit = entry_open(f->data, f->n, key, &pp, &np, payload, &npay) && np == nparts &&
              memcmp(pp, parts, nparts) == 0;
        *n = hit ? (size_t)npay : 0;
        if (!hit)
            cps_file_close(f);
    }
    counted(c, path, hit, found);
    cps_arena_release(c->arena, mark);
    return hit;
}

bool
cps_cache_get(cps_cache *c, const cps_digest *key, const void *parts, size_t nparts, cps_buf *out)
{
    if (!c->dir) {
        c->misses++;
        return false;
    }
    cps_mark mark = cps_arena_mark(c->arena);
    const char *path = entry_path(c, key);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    bool hit = fd >= 0 && entry_read(fd, key, parts, nparts, cps_arena_raw(c->arena, nparts), out);
    if (fd >= 0)
        close(fd);
    counted(c, path, hit, fd >= 0);
    cps_arena_release(c->arena, mark);
    return hit;
}

const uint8_t *
cps_cache_secret(cps_cache *c)
{
    if (!c->dir || c->secret)
        return c->secret;
    const char *path = cps_path_join(c->arena, c->dir, "secret");
    uint8_t *s = cps_arena_raw(c->arena, CPS_SECRET_BYTES);
    cps_file f;
    if (cps_file_open(path, false, &f)) {
        bool whole = f.n == CPS_SECRET_BYTES;
        if (whole)
            memcpy(s, f.data, CPS_SECRET_BYTES);
        cps_file_close(&f);
        if (whole)
            return c->secret = s;
    }
    // Two processes that make one at once: the later one stays, the other's sums are not found.
    if (getrandom(s, CPS_SECRET_BYTES, 0) == CPS_SECRET_BYTES && cps_file_write(path, s, CPS_SECRET_BYTES))
        c->secret = s;
    return c->secret;
}

void
cps_cache_put(cps_cache *c, const cps_digest *key, const void *parts, size_t nparts,
              const void *payload, size_t n)
{
    if (!c->dir)
        return;
    cps_mark mark = cps_arena_mark(c->arena);
    char *path = entry_path(c, key);
    char *slash = strrchr(path, '/');
    *slash = 0;
    cps_mkdirs(path);
    *slash = '/';
    cps_buf b = {0};
    uint8_t head[HEADER] = {'C', 'P', 'S', 'E'};
    uint32_t version = VERSION;
    uint64_t np = nparts, npay = n;
    memcpy(head + 4, &version, 4);
    memcpy(head + 8, &np, 8);
    memcpy(head + 16, &npay, 8);
    memcpy(head + 24, key->b, 32);
    cps_buf_put(&b, head, HEADER);
    cps_buf_put(&b, parts, nparts);
    cps_buf_put(&b, payload, n);
    cps_sum sum = cps_sum_of(b.data + HEADER, b.n - HEADER, NULL);
    memcpy(b.data + 56, sum.b, sizeof sum.b);
    if (cps_file_write(path, b.data, b.n))
        c->stored++;
    cps_buf_fini(&b);
    cps_arena_release(c->arena, mark);
}

typedef bool (*visit)(void *user, const char *path, const char *name, const struct stat *st);

/* Every file of the cache in sorted order of folders; names inside a folder as the system lists
 * them, which nothing printed depends on. */
static bool
walk(cps_cache *c, visit fn, void *user)
{
    for (int i = 0; i < 256; i++) {
        char *sub = cps_arena_printf(c->arena, "%s/%02x", c->dir, i);
        DIR *dir = opendir(sub);
        if (!dir)
            continue;
        struct dirent *e;
        while ((e = readdir(dir))) {
            if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, ".."))
                continue;
            char *path = cps_arena_printf(c->arena, "%s/%s", sub, e->d_name);
            struct stat st;
            if (lstat(path, &st) == 0 && S_ISREG(st.st_mode))
                fn(user, path, e->d_name, &st);
        }
        closedir(dir);
    }
    return true;
}

typedef struct scan {
    cps_cache *c;
    cps_cache_stats *out;
    cps_diags *d;
    bool check, remove;
} scan;

static bool
scan_one(void *user, const char *path, const char *name, const struct stat *st)
{
    scan *s = user;
    // A finished entry is named by 62 hex digits; anything else was never renamed into place.
    size_t len = strlen(name);
    bool entry_name = len == 62 && strspn(name, "0123456789abcdef") == 62;
    if (!entry_name) {
        s->out->temporaries++;
        if (s->remove && time(NULL) - st->st_mtime > STALE_SECONDS)
            unlink(path);
        return true;
    }
    s->out->entries++;
    s->out->bytes += (uint64_t)st->st_size;
    if (!s->check)
        return true;
    char hex[65];
    memcpy(hex, path + strlen(path) - 65, 2);
    memcpy(hex + 2, name, 63);
    cps_digest key;
    cps_file f;
    const uint8_t *pp, *pay;
    uint64_t np, npay;
    bool ok = cps_digest_parse(hex, &key) && cps_file_open(path, false, &f);
    if (ok) {
        ok = entry_open(f.data, f.n, &key, &pp, &np, &pay, &npay);
        if (ok) {
            cps_digest of_parts = cps_digest_of(pp, np);
            ok = cps_digest_eq(&of_parts, &key); // the key is the digest of its components
        }
        cps_file_close(&f);
    }
    if (!ok) {
        s->out->broken++;
        cps_error(s->d, CPS_W1102, CPS_NOSPAN, "cache entry '%s' is damaged", hex);
        if (s->remove)
            unlink(path);
    }
    return true;
}

bool
cps_cache_scan(cps_cache *c, bool check, bool remove, cps_cache_stats *out, cps_diags *d)
{
    *out = (cps_cache_stats){0};
    if (!c->dir)
        return true;
    scan s = {c, out, d, check, remove};
    return walk(c, scan_one, &s);
}

typedef struct gather {
    cps_cache *c;
    CPS_VEC(entry) list;
    uint64_t total;
} gather;

static bool
gather_one(void *user, const char *path, const char *name, const struct stat *st)
{
    gather *g = user;
    if (strlen(name) == 62) {
        cps_vec_push(g->c->arena, &g->list,
                     ((entry){cps_arena_strdup(g->c->arena, path), (uint64_t)st->st_size,
                              st->st_mtim}));
        g->total += (uint64_t)st->st_size;
    }
    return true;
}

static int
by_use(const void *pa, const void *pb)
{
    const entry *a = pa, *b = pb;
    if (a->used.tv_sec != b->used.tv_sec)
        return a->used.tv_sec < b->used.tv_sec ? -1 : 1;
    if (a->used.tv_nsec != b->used.tv_nsec)
        return a->used.tv_nsec < b->used.tv_nsec ? -1 : 1;
    return strcmp(a->path, b->path);
}

bool
cps_cache_gc(cps_cache *c, uint64_t max_bytes, cps_cache_stats *removed, cps_diags *d)
{
    *removed = (cps_cache_stats){0};
    if (!c->dir)
        return true;
    cps_cache_stats all;
    cps_cache_scan(c, false, true, &all, d); // abandoned temporaries go first
    gather g = {.c = c};
    walk(c, gather_one, &g);
    if (g.list.n)
        qsort(g.list.data, g.list.n, sizeof(entry), by_use);
    for (uint32_t i = 0; i < g.list.n && g.total > max_bytes; i++) {
        if (unlink(g.list.data[i].path) != 0)
            continue;
        g.total -= g.list.data[i].bytes;
        removed->entries++;
        removed->bytes += g.list.data[i].bytes;
    }
    return true;
}
