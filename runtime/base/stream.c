/* Files in pieces.
 *
 * A write goes to a name of its own in the same folder and is renamed over the target, so
 * readers see the old file or the new one; devices and pipes are written in place. Through a
 * symbolic link the file behind it is replaced, not the link. */
#include "runtime/base/stream.h"

#include "runtime/base/file.h"
#include "runtime/base/str.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* ---- reading ---- */

bool
cps_reader_open(const char *path, cps_reader *out)
{
    bool std = cps_streq(path, "-");
    *out = (cps_reader){.fd = std ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC)};
    if (out->fd < 0)
        return false;
    struct stat st;
    if (fstat(out->fd, &st) == 0 && S_ISREG(st.st_mode) && !std) {
        out->sized = true;
        out->size = (uint64_t)st.st_size;
    }
    return true; // reading a folder says EISDIR
}

ptrdiff_t
cps_reader_get(cps_reader *r, void *buf, size_t n)
{
    ssize_t got;
    do
        got = read(r->fd, buf, n);
    while (got < 0 && errno == EINTR);
    return got;
}

void
cps_reader_close(cps_reader *r)
{
    if (r->fd > STDERR_FILENO)
        close(r->fd);
    r->fd = -1;
}

/* ---- writing ---- */

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

// Frees the names; keeps errno.
static void
forget(cps_writer *w)
{
    int e = errno;
    free(w->temp);
    free(w->target);
    *w = (cps_writer){.fd = -1};
    errno = e;
}

bool
cps_writer_open(const char *path, cps_writer *out)
{
    *out = (cps_writer){.fd = STDOUT_FILENO};
    if (cps_streq(path, "-"))
        return true;
    out->fd = -1;
    struct stat st;
    bool there = stat(path, &st) == 0;
    if (there && S_ISDIR(st.st_mode)) {
        errno = EISDIR;
        return false;
    }
    if (there && !S_ISREG(st.st_mode)) {
        out->fd = open(path, O_WRONLY | O_CLOEXEC);
        return out->fd >= 0;
    }
    char name[PATH_MAX + 64];
    out->target = there ? realpath(path, NULL) : strdup(path);
    if (out->target && (out->fd = open_temp(out->target, name, sizeof(name))) >= 0) {
        out->temp = strdup(name);
        if (out->temp && (!there || fchmod(out->fd, st.st_mode & 07777) == 0))
            return true;
        int e = errno;
        close(out->fd);
        unlink(name);
        errno = e;
    }
    forget(out);
    return false;
}

bool
cps_writer_put(cps_writer *w, const void *data, size_t n)
{
    return write_all(w->fd, data, n);
}

bool
cps_writer_close(cps_writer *w, bool keep)
{
    // No fsync: a killed process leaves either the old file or the new one. What a power
    // failure may tear is found by checksum where it matters (the trace cache) and can be made
    // again.
    bool ok = w->fd == STDOUT_FILENO || close(w->fd) == 0;
    if (w->temp) {
        ok = ok && (!keep || rename(w->temp, w->target) == 0);
        int e = errno;
        if (!ok || !keep)
            unlink(w->temp);
        errno = e;
    }
    forget(w);
    return ok;
}
