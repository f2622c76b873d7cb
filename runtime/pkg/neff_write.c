/* Members to a container, and members to files. */
#include "runtime/pkg/neff_priv.h"

#include "runtime/base/file.h"
#include "runtime/pkg/neff_archive.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>

static int
by_name(const void *a, const void *b)
{
    return strcmp(((const cps_arc_file *)a)->name, ((const cps_arc_file *)b)->name);
}

static bool
put(void *self, const void *bytes, size_t n)
{
    cps_buf_put(self, bytes, n);
    return true;
}

bool
cps_neff_write(const cps_neff *f, cps_buf *out, cps_diags *d)
{
    void *sym = cps_neff_archive("cps_arc_write", d);
    if (!sym)
        return false;
    cps_arc_write_fn *write;
    memcpy(&write, &sym, sizeof write);
    cps_arc_file *file = cps_new_array(f->arena, cps_arc_file, f->members.n + 1);
    for (uint32_t i = 0; i < f->members.n; i++)
        file[i] = (cps_arc_file){f->members.data[i].name, f->members.data[i].data,
                                 f->members.data[i].n};
    qsort(file, f->members.n, sizeof *file, by_name);

    cps_neff_head h = f->head;
    size_t at = out->n;
    // Fast first. An archive that shrinks so well that a reader takes it for one made to fill
    // memory is stored instead.
    for (int level = h.pkg_version == 1 ? -1 : 1;; level = 0) {
        static const uint8_t room[CPS_NEFF_HEAD];
        out->n = at;
        cps_buf_put(out, room, sizeof room);
        cps_arc_out o = {
            .file = file, .n = f->members.n, .level = level, .self = out, .put = put};
        if (!write(&o)) {
            cps_error(d, CPS_E8402, CPS_NOSPAN, "the archive cannot be written: %s", o.why);
            return false;
        }
        h.data_size = out->n - at - CPS_NEFF_HEAD;
        if (level <= 0 || o.tar_bytes <= cps_neff_inflate_limit(h.data_size))
            break;
    }
    h.header_size = CPS_NEFF_HEAD;
    cps_neff_hash(h.pkg_version, out->data + at + CPS_NEFF_HEAD, (size_t)h.data_size, h.hash);
    static const uint8_t none[16];
    if (!memcmp(h.uuid, none, sizeof none))
        cps_neff_uuid((const uint8_t *)out->data + at + CPS_NEFF_HEAD, (size_t)h.data_size,
                      h.uuid);
    cps_neff_head_encode(&h, (uint8_t *)out->data + at);
    return true;
}

/* True when the folder is there and empty, or could be made. */
static bool
fresh_folder(const char *dir, cps_diags *d)
{
    DIR *h = opendir(dir);
    bool empty = true;
    for (struct dirent *e; h && (e = readdir(h));)
        empty &= !strcmp(e->d_name, ".") || !strcmp(e->d_name, "..");
    if (h)
        closedir(h);
    if (!empty) {
        cps_error(d, CPS_E8403, CPS_NOSPAN, "'%s' is not empty", dir);
        cps_help(d, "members are unpacked into a new folder only, so that no file and no link "
                    "is in their way");
        return false;
    }
    if (h || cps_mkdirs(dir))
        return true;
    cps_error(d, CPS_E1002, CPS_NOSPAN, "cannot make '%s': %s", dir, strerror(errno));
    return false;
}

bool
cps_neff_unpack(const cps_neff *f, const char *dir, cps_diags *d)
{
    if (cps_neff_find(f, CPS_NEFF_HEAD_FILE)) {
        cps_error(d, CPS_E8403, CPS_NOSPAN,
                  "a member is called '%s', as the file that keeps the header",
                  CPS_NEFF_HEAD_FILE);
        return false;
    }
    if (!fresh_folder(dir, d))
        return false;
    for (uint32_t i = 0; i <= f->members.n; i++) {
        // The header comes last: with it the folder is complete.
        bool last = i == f->members.n;
        const char *path =
            cps_path_join(f->arena, dir, last ? CPS_NEFF_HEAD_FILE : f->members.data[i].name);
        char *slash = strrchr(path, '/');
        const char *folder =
            slash ? cps_arena_strndup(f->arena, path, (size_t)(slash - path)) : ".";
        bool ok = cps_mkdirs(folder) &&
                  (last ? cps_file_write(path, f->raw, CPS_NEFF_HEAD)
                        : cps_file_write(path, f->members.data[i].data, f->members.data[i].n));
        if (!ok) {
            cps_error(d, CPS_E1002, CPS_NOSPAN, "cannot write '%s': %s", path, strerror(errno));
            return false;
        }
    }
    return true;
}
