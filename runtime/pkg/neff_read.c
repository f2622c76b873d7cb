/* Containers and unpacked folders to members. Nothing in them is trusted: sizes are held
 * against the bytes that are there before memory is taken, names are relative paths of plain
 * components, and only files and folders exist. */
#include "runtime/pkg/neff_priv.h"

#include "runtime/base/file.h"
#include "runtime/base/module.h"
#include "runtime/pkg/neff_archive.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>

/* Deflate packs at most 1,032 bytes into one. */
#define DEFLATE_MOST 1032

void *
cps_neff_archive(const char *symbol, cps_diags *d)
{
    const char *why;
    void *lib = cps_module_open(CPS_ARCHIVE_LIBRARY, &why);
    void *sym = lib ? dlsym(lib, symbol) : NULL;
    if (!sym && why)
        cps_error(d, CPS_E8406, CPS_NOSPAN, "%s cannot be opened: %s", CPS_ARCHIVE_LIBRARY,
                  why);
    else if (!sym)
        cps_error(d, CPS_E8406, CPS_NOSPAN,
                  "there is no %s beside the program, in lib/ or in ../lib/",
                  CPS_ARCHIVE_LIBRARY);
    return sym;
}

bool
cps_neff_name_ok(const char *name, const char **why)
{
    size_t len = strlen(name);
    *why = !len                  ? "an empty name"
           : len > CPS_NEFF_NAME ? "a name that is too long"
           : name[0] == '/'      ? "an absolute path"
                                 : NULL;
    for (const char *p = name; !*why; p++) {
        size_t n = strcspn(p, "/");
        if (n == 0)
            *why = "an empty component in a path";
        else if (n > CPS_NEFF_PART)
            *why = "a component that is too long";
        else if (p[0] == '.' && (n == 1 || (n == 2 && p[1] == '.')))
            *why = "a path with '.' or '..'";
        for (size_t i = 0; i < n && !*why; i++)
            if ((unsigned char)p[i] < ' ' || p[i] == 0x7f || p[i] == '\\')
                *why = "a name with control characters or backslashes";
        p += n;
        if (!*p)
            break;
    }
    return !*why;
}

cps_neff *
cps_neff_new(cps_arena *a)
{
    cps_neff *f = cps_new(a, cps_neff);
    f->arena = a;
    cps_map_init(&f->index, a);
    return f;
}

const cps_neff_member *
cps_neff_find(const cps_neff *f, const char *name)
{
    const uint64_t *at = cps_map_find_str(&f->index, name);
    return at ? &f->members.data[*at - 1] : NULL;
}

bool
cps_neff_add(cps_neff *f, const char *name, const void *data, size_t n)
{
    bool fresh;
    uint64_t *at = cps_map_at_str(&f->index, name, &fresh);
    if (!fresh)
        return false;
    cps_neff_member m = {cps_arena_strdup(f->arena, name), data, n};
    cps_vec_push(f->arena, &f->members, m);
    *at = f->members.n;
    return true;
}

uint64_t
cps_neff_inflate_limit(uint64_t stored)
{
    uint64_t most = (uint64_t)1 << 36, room = (uint64_t)256 << 20;
    return stored > (most - room) / 256 ? most : room + stored * 256;
}

typedef struct reader {
    cps_neff *f;
    cps_diags *d;
    uint64_t stored, max, taken;
    uint32_t entries;
} reader;

/* The name as the member is known by; NULL for the folder itself and after E8403. */
static const char *
clean(reader *r, const char *name, bool folder)
{
    while (name[0] == '.' && name[1] == '/')
        for (name += 2; *name == '/';)
            name++;
    size_t n = strlen(name);
    while (folder && n && name[n - 1] == '/')
        n--;
    if (folder && (n == 0 || (n == 1 && name[0] == '.')))
        return NULL;
    char *copy = cps_arena_strndup(r->f->arena, name, n);
    const char *why;
    if (cps_neff_name_ok(copy, &why))
        return copy;
    cps_buf b = {0};
    cps_neff_put_plain(&b, copy);
    cps_error(r->d, CPS_E8403, CPS_NOSPAN, "the archive holds %s: '%.200s'", why,
              b.data ? b.data : "");
    cps_help(r->d, "nothing was unpacked");
    cps_buf_fini(&b);
    return NULL;
}

static bool
entry(void *self, const char *raw, char kind, uint64_t size, uint8_t **to)
{
    reader *r = self;
    if (++r->entries > CPS_NEFF_MEMBERS) {
        cps_error(r->d, CPS_E8403, CPS_NOSPAN, "the archive holds more than %d members",
                  CPS_NEFF_MEMBERS);
        return false;
    }
    unsigned before = cps_diags_errors(r->d);
    const char *name = clean(r, raw, kind == 'd');
    if (!name)
        return kind == 'd' && cps_diags_errors(r->d) == before;
    if (kind == 'd')
        return true;
    if (kind != 'f') {
        cps_error(r->d, CPS_E8403, CPS_NOSPAN, "the member '%s' is %s; only files are taken",
                  name, kind == 'l' ? "a link" : "neither a file nor a folder");
        return false;
    }
    // What the bytes of the file cannot hold is never asked for.
    uint64_t room = r->max - r->taken;
    if (size > room) {
        cps_error(r->d, CPS_E8403, CPS_NOSPAN,
                  "the archive of %llu bytes unpacks to more than %llu bytes, the limit",
                  (unsigned long long)r->stored, (unsigned long long)r->max);
        cps_help(r->d, "`--max-bytes N` allows more, for a file you trust");
        return false;
    }
    if (size / DEFLATE_MOST > r->stored) {
        cps_error(r->d, CPS_E8402, CPS_NOSPAN,
                  "the member '%s' claims %llu bytes, more than the archive of %llu can hold",
                  name, (unsigned long long)size, (unsigned long long)r->stored);
        return false;
    }
    r->taken += size;
    *to = cps_arena_raw(r->f->arena, (size_t)size + 1);
    (*to)[size] = 0; // JSON members are scanned as text
    if (cps_neff_add(r->f, name, *to, (size_t)size))
        return true;
    cps_error(r->d, CPS_E8403, CPS_NOSPAN, "the member '%s' is there twice", name);
    return false;
}

static bool
not_neff(cps_diags *d, const char *why)
{
    cps_error(d, CPS_E8401, CPS_NOSPAN, "this is no NEFF: %s", why);
    return false;
}

/* What must hold for there to be a container at all. */
static bool
check_head(cps_neff *f, const uint8_t *data, size_t n, cps_diags *d)
{
    if (n >= 2 && data[0] == 0x1f && data[1] == 0x8b) {
        not_neff(d, "it is a gzip stream without a header");
        cps_help(d, "unpack it with tar and give the folder to `copse neff pack`");
        return false;
    }
    if (n < CPS_NEFF_HEAD)
        return not_neff(
            d, cps_arena_printf(f->arena, "%zu bytes, and the header alone has 1024", n));
    memcpy(f->raw, data, CPS_NEFF_HEAD);
    cps_neff_head_decode(f->raw, &f->head);
    const cps_neff_head *h = &f->head;
    if (h->pkg_version != 1 && h->pkg_version != 2)
        return not_neff(
            d, cps_arena_printf(f->arena,
                                "its first number, the package version, is %llu and not 1 or 2",
                                (unsigned long long)h->pkg_version));
    if (h->header_size != CPS_NEFF_HEAD)
        return not_neff(d,
                        cps_arena_printf(f->arena, "its header claims %llu bytes and not 1024",
                                         (unsigned long long)h->header_size));
    f->has_head = true;
    return true;
}

cps_neff *
cps_neff_read(cps_arena *a, const uint8_t *data, size_t n, uint64_t max_bytes, cps_diags *d)
{
    cps_neff *f = cps_neff_new(a);
    f->file_bytes = n;
    if (!check_head(f, data, n, d))
        return NULL;
    uint64_t stored = f->head.data_size;
    if (stored > n - CPS_NEFF_HEAD) {
        cps_error(d, CPS_E8401, CPS_NOSPAN,
                  "the header announces an archive of %llu bytes, but only %zu follow it",
                  (unsigned long long)stored, n - CPS_NEFF_HEAD);
        cps_help(d, "the file was cut, or is still being written");
        return NULL;
    }
    f->trailing = n - CPS_NEFF_HEAD - stored;
    cps_neff_hash(f->head.pkg_version, data + CPS_NEFF_HEAD, (size_t)stored, f->hash);
    f->hash_ok = !memcmp(f->hash, f->head.hash, f->head.pkg_version == 1 ? 32 : 16);
    void *sym = cps_neff_archive("cps_arc_read", d);
    if (!sym)
        return NULL;
    reader r = {.f = f, .d = d, .stored = stored};
    r.max = max_bytes ? max_bytes : cps_neff_inflate_limit(stored);
    cps_arc_in in = {.data = data + CPS_NEFF_HEAD,
                     .n = (size_t)stored,
                     .max_bytes = r.max,
                     .self = &r,
                     .entry = entry};
    cps_arc_read_fn *read;
    memcpy(&read, &sym, sizeof read);
    cps_arc_end end = read(&in);
    if (end == CPS_ARC_BROKEN) {
        cps_error(d, CPS_E8402, CPS_NOSPAN, "the archive is damaged: %s", in.why);
        if (!f->hash_ok)
            cps_help(d, "its hash does not match the header either: the file was changed");
    } else if (end == CPS_ARC_TOO_BIG) {
        cps_error(d, CPS_E8403, CPS_NOSPAN,
                  "the archive of %llu bytes inflates to more than %llu bytes, the limit",
                  (unsigned long long)stored, (unsigned long long)r.max);
        cps_help(d, "`--max-bytes N` allows more, for a file you trust");
    }
    if (end != CPS_ARC_OK)
        return NULL;
    f->gzip = in.gzip;
    f->inflated = in.inflated;
    f->trailing += in.trailing;
    return f;
}

/* ---- folders ---- */

static bool
load_file(reader *r, const char *path, const char *name)
{
    cps_file x;
    const char *why;
    if (!cps_neff_name_ok(name, &why)) {
        cps_error(r->d, CPS_E8403, CPS_NOSPAN, "'%s' is %s, which a container cannot hold",
                  path, why);
        return false;
    }
    if (!cps_file_open(path, false, &x)) {
        cps_error(r->d, CPS_E1001, CPS_NOSPAN, "cannot read '%s': %s", path, strerror(errno));
        return false;
    }
    if (!strcmp(name, CPS_NEFF_HEAD_FILE)) {
        bool ok = x.n == CPS_NEFF_HEAD && check_head(r->f, x.data, x.n, r->d);
        if (x.n != CPS_NEFF_HEAD)
            not_neff(r->d, cps_arena_printf(r->f->arena, "'%s' has %zu bytes and not 1024",
                                            path, x.n));
        cps_file_close(&x);
        return ok;
    }
    cps_neff_add(r->f, name, cps_arena_strndup(r->f->arena, (const char *)x.data, x.n), x.n);
    cps_file_close(&x);
    return true;
}

static int
by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Files below `dir`/`under`, in order of their names; `depth` stops what nests without end. */
static bool
load_dir(reader *r, const char *dir, const char *under, int depth)
{
    cps_arena *a = r->f->arena;
    const char *here = *under ? cps_path_join(a, dir, under) : dir;
    DIR *h = depth < 16 ? opendir(here) : NULL;
    if (!h) {
        cps_error(r->d, CPS_E1001, CPS_NOSPAN, "cannot read '%s': %s", here,
                  depth < 16 ? strerror(errno) : "folders nest too deep");
        return false;
    }
    CPS_VEC(const char *) names = {0};
    for (struct dirent *e; (e = readdir(h));)
        if (strcmp(e->d_name, ".") && strcmp(e->d_name, ".."))
            cps_vec_push(a, &names, cps_arena_strdup(a, e->d_name));
    closedir(h);
    if (names.n)
        qsort(names.data, names.n, sizeof *names.data, by_name);
    bool ok = true;
    for (uint32_t i = 0; i < names.n && ok; i++) {
        const char *name = *under ? cps_path_join(a, under, names.data[i]) : names.data[i];
        const char *path = cps_path_join(a, dir, name);
        struct stat st;
        if (++r->entries > CPS_NEFF_MEMBERS) {
            cps_error(r->d, CPS_E8403, CPS_NOSPAN, "'%s' holds more than %d files", dir,
                      CPS_NEFF_MEMBERS);
            ok = false;
        } else if (lstat(path, &st) != 0) {
            cps_error(r->d, CPS_E1001, CPS_NOSPAN, "cannot read '%s': %s", path,
                      strerror(errno));
            ok = false;
        } else if (S_ISDIR(st.st_mode)) {
            ok = load_dir(r, dir, name, depth + 1);
        } else if (S_ISREG(st.st_mode)) {
            ok = load_file(r, path, name);
        } else {
            cps_error(r->d, CPS_E8403, CPS_NOSPAN, "'%s' is neither a file nor a folder", path);
            ok = false;
        }
    }
    return ok;
}

cps_neff *
cps_neff_read_dir(cps_arena *a, const char *dir, cps_diags *d)
{
    cps_neff *f = cps_neff_new(a);
    reader r = {.f = f, .d = d};
    return load_dir(&r, dir, "", 0) ? f : NULL;
}
