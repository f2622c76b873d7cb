/* Files: whole reads, atomic writes, folders, names.
 *
 * In: paths as the user gave them ("-" is a standard stream). Out: bytes, or false with errno.
 * Text is read into memory, because an editor may shorten a source while we look at it; other
 * regular files are mapped. Reports nothing: the caller knows what the file was for. */
#include "runtime/base/file.h"
#include "runtime/base/str.h"
#include "runtime/base/stream.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static void
close_keep_errno(int fd)
{
    int e = errno;
    close(fd);
    errno = e;
}

// What a device may give: some of them never end, and memory would be full before anyone notices.
#define DEVICE_BYTES ((size_t)1 << 26)

// Reads to the end into the heap; `hint` is the size the file claims to have, `most` the limit.
static bool
slurp(int fd, size_t hint, size_t most, cps_file *out)
{
    if (hint > PTRDIFF_MAX / 4) {
        errno = EFBIG;
        return false;
    }
    size_t cap = hint + 1 > 65536 ? hint + 1 : 65536;
    char *p = malloc(cap);
    size_t n = 0;
    while (p) {
        ssize_t got = read(fd, p + n, cap - 1 - n);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0) {
            free(p);
            return false;
        }
        n += (size_t)got;
        if (n > most) {
            free(p);
            errno = EFBIG;
            return false;
        }
        if (!got) {
            p[n] = 0;
            *out = (cps_file){(uint8_t *)p, n, p, 0};
            return true;
        }
        if (n == cap - 1) {
            char *q = cap <= PTRDIFF_MAX / 4 ? realloc(p, cap * 2) : NULL;
            if (!q)
                free(p);
            p = q;
            cap *= 2;
        }
    }
    errno = ENOMEM;
    return false;
}

bool
cps_file_open(const char *path, bool text, cps_file *out)
{
    *out = (cps_file){0};
    if (cps_streq(path, "-"))
        return slurp(STDIN_FILENO, 0, SIZE_MAX, out);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    struct stat st;
    bool ok = fstat(fd, &st) == 0;
    if (ok && S_ISDIR(st.st_mode)) {
        errno = EISDIR;
        ok = false;
    }
    if (ok && S_ISREG(st.st_mode) && st.st_size > 0 && !text) {
        size_t n = (size_t)st.st_size;
        void *m = mmap(NULL, n, PROT_READ, MAP_PRIVATE, fd, 0);
        ok = m != MAP_FAILED;
        if (ok)
            *out = (cps_file){m, n, m, n};
    } else if (ok) {
        ok = slurp(fd, S_ISREG(st.st_mode) ? (size_t)st.st_size : 0, S_ISCHR(st.st_mode) ? DEVICE_BYTES : SIZE_MAX, out);
    }
    close_keep_errno(fd);
    return ok;
}

void
cps_file_close(cps_file *f)
{
    if (f->map_bytes)
        munmap(f->map, f->map_bytes);
    else
        free(f->map);
    *f = (cps_file){0};
}

bool
cps_file_write(const char *path, const void *data, size_t n)
{
    cps_writer w;
    if (!cps_writer_open(path, &w))
        return false;
    bool ok = cps_writer_put(&w, data, n);
    int e = errno;
    bool closed = cps_writer_close(&w, ok);
    if (!ok)
        errno = e;
    return ok && closed;
}

bool
cps_file_put(const char *path, const void *data, size_t n)
{
    int fd = cps_streq(path, "-") ? -1 : open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0)
        return cps_file_write(path, data, n); // it is there, or this says what is wrong
    struct stat mine, there;
    bool known = fstat(fd, &mine) == 0;
    cps_writer w = {.fd = fd};
    bool ok = cps_writer_put(&w, data, n);
    int e = errno;
    bool closed = cps_writer_close(&w, ok);
    if (!ok)
        errno = e;
    if (ok && closed)
        return true;
    e = errno;
    // Another process may have put a whole one in its place by now: that one stays.
    if (known && stat(path, &there) == 0 && there.st_dev == mine.st_dev && there.st_ino == mine.st_ino)
        unlink(path);
    errno = e;
    return false;
}

// One folder, which may be there: also where EROFS or EACCES above it keep mkdir from saying so.
static bool
make_folder(const char *name)
{
    if (mkdir(name, 0777) == 0)
        return true;
    struct stat st;
    int e = errno;
    bool there = e != ENOENT && stat(name, &st) == 0;
    errno = there && !S_ISDIR(st.st_mode) ? ENOTDIR : e;
    return there && S_ISDIR(st.st_mode);
}

// From the end: mostly one folder is missing or none.
bool
cps_mkdirs(const char *path)
{
    char name[PATH_MAX];
    size_t n = strlen(path);
    if (n == 0 || n >= sizeof(name)) {
        errno = n ? ENAMETOOLONG : ENOENT;
        return false;
    }
    memcpy(name, path, n + 1);
    size_t at = n;
    while (!make_folder(name)) {
        while (at > 0 && name[at] != '/')
            at--;
        while (at > 0 && name[at - 1] == '/')
            at--;
        if (errno != ENOENT || !at)
            return false;
        name[at] = 0;
    }
    while (at < n) {
        name[at] = '/';
        at += strlen(name + at);
        if (!make_folder(name))
            return false;
    }
    return true;
}

bool
cps_path_exists(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0;
}

char *
cps_path_join(cps_arena *a, const char *dir, const char *name)
{
    size_t n = strlen(dir);
    if (!n || name[0] == '/')
        return cps_arena_strdup(a, name);
    return cps_arena_printf(a, "%s%s%s", dir, dir[n - 1] == '/' ? "" : "/", name);
}

const char *
cps_path_base(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

char *
cps_path_quote(cps_arena *a, const char *name)
{
    static const char hex[] = "0123456789ABCDEF";
    char *out = cps_arena_raw(a, strlen(name) * 3 + 1), *p = out;
    for (; *name; name++) {
        unsigned char c = (unsigned char)*name;
        bool plain = (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
                     (c >= '0' && c <= '9') || c == '.' || c == '_' || c == '-';
        if (plain) {
            *p++ = (char)c;
        } else {
            *p++ = '%';
            *p++ = hex[c >> 4];
            *p++ = hex[c & 15];
        }
    }
    *p = 0;
    return out;
}
