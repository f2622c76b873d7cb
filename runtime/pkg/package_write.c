/* Writes a rendered package. The manifest is written last: a folder without one is incomplete.
 */
#include "runtime/pkg/package.h"

#include "runtime/base/file.h"
#include "runtime/pkg/package_plan.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

static bool
write_all(int fd, const void *data, size_t n)
{
    const char *at = data;
    while (n) {
        ssize_t k = write(fd, at, n);
        if (k < 0 && errno == EINTR)
            continue;
        if (k <= 0)
            return false;
        at += k;
        n -= (size_t)k;
    }
    return true;
}

/* Constants straight from where they lie (often the mapped model file), holes as file holes. */
static bool
write_weights(const cps_rendered *r, const char *path)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (fd < 0)
        return false;
    bool ok = ftruncate(fd, r->weights_bytes) == 0;
    for (uint32_t i = 0; ok && i < r->weights.n; i++) {
        const cps_pweight *v = &r->weights.data[i];
        ok = lseek(fd, v->offset, SEEK_SET) == v->offset &&
             write_all(fd, v->data, (size_t)v->bytes);
    }
    int saved = errno;
    ok = close(fd) == 0 && ok;
    errno = ok ? 0 : saved;
    return ok;
}

static bool
failed(const char *what, const char *path, cps_diags *d)
{
    cps_error(d, CPS_E8001, CPS_NOSPAN, "cannot %s '%s': %s", what, path, strerror(errno));
    return false;
}

/* The folder of a file, made unless it is the one that was made last. */
static bool
folder(cps_arena *a, const char *path, const char **made)
{
    const char *dir = cps_arena_strndup(a, path, (size_t)(cps_path_base(path) - path) - 1);
    if (*made && !strcmp(*made, dir))
        return true;
    *made = dir;
    return cps_mkdirs(dir);
}

static bool
write_files(const cps_rendered *r, const char *dir, cps_diags *d)
{
    cps_arena *a = r->files.arena;
    cps_package_clear(a, dir);
    const char *made = NULL, *weights = cps_path_join(a, dir, "weights.bin");
    for (uint32_t i = 0; i < r->files.list.n; i++) {
        const cps_pfile *f = &r->files.list.data[i];
        const char *path = cps_path_join(a, dir, f->name);
        bool last = i + 1 == r->files.list.n; // the manifest
        if (last && r->weights_bytes && !write_weights(r, weights))
            return failed("write", weights, d);
        if (!folder(a, path, &made) || !(last ? cps_file_write : cps_file_put)(path, f->data, f->n))
            return failed("write", path, d);
    }
    return true;
}

bool
cps_rendered_write(const cps_rendered *r, const char *dir, cps_diags *d)
{
    if (!cps_mkdirs(dir))
        return failed("make", dir, d);
    // One writer at a time, so that no package is made of two. Where a file system knows no locks they may still meet.
    int lock = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    while (lock >= 0 && flock(lock, LOCK_EX) != 0 && errno == EINTR)
        continue;
    bool ok = write_files(r, dir, d);
    if (lock >= 0)
        close(lock);
    return ok;
}

bool
cps_package_write(cps_package *p, const char *dir, cps_diags *d)
{
    cps_rendered r;
    cps_package_render(p, &r);
    return cps_rendered_write(&r, dir, d);
}
