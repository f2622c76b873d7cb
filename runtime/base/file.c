/* Files: whole reads, atomic writes, folders, names.
 *
 * In: paths as the user gave them ("-" is a standard stream). Out: bytes, or false with errno.
 * Text is read into memory, because an editor may shorten a source while we look at it; other
 * regular files are mapped. A write goes to a name of its own in the same folder and is renamed
 * over the target, so readers see the old file or the new one; devices and pipes are written in
 * place. Reports nothing: the caller knows what the file was for. */
#include "runtime/base/file.h"
#include "runtime/base/str.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static void
close_keep_errno(int fd)
{
    int e = errno;
    close(fd);
    errno = e;
}

// Reads to the end into the heap; `hint` is the size the file claims to have.
static bool
slurp(int fd, size_t hint, cps_file *out)
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
        return slurp(STDIN_FILENO, 0, out);
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
        ok = slurp(fd, S_ISREG(st.st_mode) ? (size_t)st.st_size : 0, out);
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

static bool
write_all(int fd, const void *data, size_t n)
{
    const uint8_t *p = data;
    while (n) {
        ssize_t put = write(fd, p, n);
        if (put < 0 && errno == EINTR)
            continue;
        if (put < 0)
            return false;
        p += put;
        n -= (size_t)put;
    }
    return true;
}

static bool
write_in_place(const char *path, const void *data, size_t n)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    bool ok = write_all(fd, data, n);
    close_keep_errno(fd);
    return ok;
}

// "dir/.cps.PID.TID.K.tmp": no other process or thread makes the same name; K steps over what a
// killed process with our numbers left behind.
static int
open_temp(const char *path, char *name, size_t size)
{
    int dir = (int)(cps_path_base(path) - path);
    for (int k = 0; k < 100; k++) {
        int len = snprintf(name, size, "%.*s.cps.%ld.%ld.%d.tmp", dir, path, (long)getpid(),
                           (long)syscall(SYS_gettid), k);
        if (len < 0 || (size_t)len >= size) {
            errno = ENAMETOOLONG;
            return -1;
        }
        int fd = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (fd >= 0 || errno != EEXIST)
            return fd;
    }
    return -1;
}

static bool
write_renamed(const char *path, const struct stat *old, const void *data, size_t n)
{
    char name[PATH_MAX + 64];
    int fd = open_temp(path, name, sizeof(name));
    if (fd < 0)
        return false;
    // No fsync: a killed process leaves either the old file or the new one. What a power failure
    // may tear is found by checksum where it matters (the trace cache) and can be made again.
    bool ok = (!old || fchmod(fd, old->st_mode & 07777) == 0) && write_all(fd, data, n);
    int e = errno;
    if (close(fd) != 0 && ok) {
        e = errno;
        ok = false;
    }
    if (ok && rename(name, path) != 0) {
        e = errno;
        ok = false;
    }
    if (!ok)
        unlink(name);
    errno = e;
    return ok;
}

bool
cps_file_write(const char *path, const void *data, size_t n)
{
    if (cps_streq(path, "-"))
        return write_all(STDOUT_FILENO, data, n);
    struct stat st;
    if (stat(path, &st) != 0)
        return write_renamed(path, NULL, data, n);
    if (S_ISDIR(st.st_mode)) {
        errno = EISDIR;
        return false;
    }
    if (!S_ISREG(st.st_mode))
        return write_in_place(path, data, n);
    // Through a symbolic link the file behind it is replaced, not the link.
    char *real = realpath(path, NULL);
    if (!real)
        return false;
    bool ok = write_renamed(real, &st, data, n);
    int e = errno;
    free(real);
    errno = e;
    return ok;
}

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
    for (size_t i = 1; i <= n; i++) {
        if (name[i] != '/' && name[i] != 0)
            continue;
        char keep = name[i];
        name[i] = 0;
        if (mkdir(name, 0777) != 0) {
            struct stat st;
            int e = errno; // EEXIST, but also EROFS or EACCES above a folder that is there
            if (stat(name, &st) != 0) {
                errno = e;
                return false;
            }
            if (!S_ISDIR(st.st_mode)) {
                errno = ENOTDIR;
                return false;
            }
        }
        name[i] = keep;
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
