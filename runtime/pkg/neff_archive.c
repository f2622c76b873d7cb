/* The whole of libcopse-archive.so: libarchive reads and writes tar, zlib the gzip around it.
 *
 * In: bytes in memory. Out: entries, or bytes. zlib is called here and not through libarchive's
 * filter, because that one does not check the sum at the end. Limits hold while reading: memory
 * never follows a number that a file merely claims. */
#include "runtime/pkg/neff_archive.h"

#include <archive.h>
#include <archive_entry.h>
#include <stdio.h>
#include <string.h>
#include <zlib.h>

#define EXPORT __attribute__((visibility("default")))
#define CHUNK 65536
#define BLOCK 10240 /* of a tar: 20 records, as tar writes by default */

cps_arc_read_fn cps_arc_read EXPORT;
cps_arc_write_fn cps_arc_write EXPORT;

typedef struct source {
    cps_arc_in *in;
    z_stream z;
    bool open, ended, big;
    const char *broken; /* what zlib found */
    uint8_t out[CHUNK];
} source;

/* The next bytes of the tar; 0 at its end, -1 when the stream is damaged or too long. */
static la_ssize_t
pull(struct archive *a, void *self, const void **bytes)
{
    source *s = self;
    cps_arc_in *in = s->in;
    (void)a;
    *bytes = s->out;
    if (!in->gzip) {
        size_t n = in->n - in->inflated < CHUNK ? in->n - (size_t)in->inflated : CHUNK;
        *bytes = in->data + in->inflated;
        in->inflated += n;
        return (la_ssize_t)n;
    }
    size_t got = 0;
    while (!got && !s->ended) {
        size_t left = in->n - (size_t)(s->z.next_in - in->data);
        s->z.avail_in = left > 1u << 30 ? 1u << 30 : (uInt)left;
        s->z.next_out = s->out;
        s->z.avail_out = CHUNK;
        int r = inflate(&s->z, Z_NO_FLUSH);
        got = CHUNK - s->z.avail_out;
        if (r == Z_STREAM_END) {
            s->ended = true;
            in->trailing = in->n - (size_t)(s->z.next_in - in->data);
        } else if (r != Z_OK) {
            s->broken = r == Z_BUF_ERROR ? "the gzip stream ends too early"
                        : s->z.msg       ? s->z.msg
                                         : "the gzip stream is damaged";
            return -1;
        }
        in->inflated += got;
        if (in->inflated > in->max_bytes) {
            s->big = true;
            return -1;
        }
    }
    return (la_ssize_t)got;
}

static cps_arc_end
broken(source *s, struct archive *a)
{
    const char *why = s->broken ? s->broken : archive_error_string(a);
    if (s->big)
        return CPS_ARC_TOO_BIG;
    snprintf(s->in->why, sizeof s->in->why, "%s", why ? why : "the archive is damaged");
    return CPS_ARC_BROKEN;
}

static cps_arc_end
read_entry(source *s, struct archive *a, struct archive_entry *e)
{
    cps_arc_in *in = s->in;
    const char *name = archive_entry_pathname(e);
    if (!name)
        name = archive_entry_pathname_utf8(e);
    bool link = archive_entry_hardlink(e) || archive_entry_filetype(e) == AE_IFLNK;
    char kind = link                                    ? 'l'
                : archive_entry_filetype(e) == AE_IFREG ? 'f'
                : archive_entry_filetype(e) == AE_IFDIR ? 'd'
                                                        : 'o';
    int64_t size = archive_entry_size_is_set(e) ? archive_entry_size(e) : 0;
    if (!name || size < 0) {
        snprintf(in->why, sizeof in->why,
                 name ? "an entry of negative size" : "an entry without a name");
        return CPS_ARC_BROKEN;
    }
    uint8_t *to = NULL;
    if (!in->entry(in->self, name, kind, (uint64_t)size, &to))
        return CPS_ARC_STOPPED;
    if (kind != 'f')
        return CPS_ARC_OK;
    size_t at = 0;
    while (at < (size_t)size) {
        size_t want = (size_t)size - at;
        la_ssize_t n = archive_read_data(a, to + at, want > 1u << 30 ? 1u << 30 : want);
        if (n < 0)
            return broken(s, a);
        if (n == 0) {
            snprintf(in->why, sizeof in->why, "an entry ends after %zu of its %lld bytes", at,
                     (long long)size);
            return CPS_ARC_BROKEN;
        }
        at += (size_t)n;
    }
    return CPS_ARC_OK;
}

cps_arc_end
cps_arc_read(cps_arc_in *in)
{
    source s = {.in = in};
    cps_arc_end end = CPS_ARC_OK;
    in->gzip = in->n >= 2 && in->data[0] == 0x1f && in->data[1] == 0x8b;
    in->inflated = in->trailing = 0;
    in->why[0] = 0;
    s.z.next_in = (Bytef *)(uintptr_t)in->data;
    struct archive *a = archive_read_new();
    if (!a || (in->gzip && inflateInit2(&s.z, 15 + 16) != Z_OK)) {
        snprintf(in->why, sizeof in->why, "no memory");
        archive_read_free(a);
        return CPS_ARC_BROKEN;
    }
    archive_read_support_format_tar(a);
    archive_read_set_options(a, "hdrcharset=BINARY"); // names are bytes, whatever the locale
    if (archive_read_open(a, &s, NULL, pull, NULL) != ARCHIVE_OK)
        end = broken(&s, a);
    struct archive_entry *e;
    while (end == CPS_ARC_OK) {
        int r = archive_read_next_header(a, &e);
        if (r == ARCHIVE_EOF)
            break;
        // A warning is about something of the entry that is not used here: times, owners.
        end = r == ARCHIVE_OK || r == ARCHIVE_WARN ? read_entry(&s, a, e) : broken(&s, a);
    }
    // What stands behind the end mark is read as well: the sum covers it.
    const void *rest;
    la_ssize_t n = 1;
    while (end == CPS_ARC_OK && in->gzip && n > 0)
        n = pull(a, &s, &rest);
    if (n < 0)
        end = broken(&s, a);
    if (in->gzip)
        inflateEnd(&s.z);
    archive_read_free(a);
    return end;
}

typedef struct sink {
    cps_arc_out *out;
    z_stream z;
    uint8_t buf[CHUNK];
} sink;

static bool
squeeze(sink *s, const void *bytes, size_t n, int flush)
{
    s->z.next_in = (Bytef *)(uintptr_t)bytes;
    do {
        size_t left = n;
        s->z.avail_in = left > 1u << 30 ? 1u << 30 : (uInt)left;
        n -= s->z.avail_in;
        do {
            s->z.next_out = s->buf;
            s->z.avail_out = CHUNK;
            if (deflate(&s->z, n ? Z_NO_FLUSH : flush) == Z_STREAM_ERROR)
                return false;
            if (!s->out->put(s->out->self, s->buf, CHUNK - s->z.avail_out))
                return false;
        } while (s->z.avail_out == 0);
    } while (n);
    return true;
}

static la_ssize_t
push(struct archive *a, void *self, const void *bytes, size_t n)
{
    sink *s = self;
    s->out->tar_bytes += n;
    bool ok = s->out->level < 0 ? s->out->put(s->out->self, bytes, n)
                                : squeeze(s, bytes, n, Z_NO_FLUSH);
    if (!ok)
        archive_set_error(a, -1, "no room for the archive");
    return ok ? (la_ssize_t)n : -1;
}

static bool
write_file(struct archive *a, struct archive_entry *e, const cps_arc_file *f)
{
    archive_entry_clear(e);
    archive_entry_set_pathname(e, f->name);
    archive_entry_set_filetype(e, AE_IFREG);
    archive_entry_set_perm(e, 0644);
    archive_entry_set_size(e, (la_int64_t)f->n);
    archive_entry_set_mtime(e, 0, 0);
    archive_entry_set_uid(e, 65534);
    archive_entry_set_gid(e, 65534);
    archive_entry_set_uname(e, "nobody");
    archive_entry_set_gname(e, "nobody");
    if (archive_write_header(a, e) != ARCHIVE_OK)
        return false;
    for (size_t at = 0; at < f->n;) {
        size_t want = f->n - at > 1u << 30 ? 1u << 30 : f->n - at;
        la_ssize_t n = archive_write_data(a, (const uint8_t *)f->data + at, want);
        if (n <= 0)
            return false;
        at += (size_t)n;
    }
    return archive_write_finish_entry(a) == ARCHIVE_OK;
}

bool
cps_arc_write(cps_arc_out *out)
{
    sink s = {.out = out};
    out->why[0] = 0;
    out->tar_bytes = 0;
    struct archive *a = archive_write_new();
    struct archive_entry *e = archive_entry_new();
    bool gzip = out->level >= 0;
    bool ok = a && e &&
              (!gzip || deflateInit2(&s.z, out->level, Z_DEFLATED, 15 + 16, 8,
                                     Z_DEFAULT_STRATEGY) == Z_OK);
    bool deflating = ok && gzip;
    ok = ok && archive_write_set_format_pax_restricted(a) == ARCHIVE_OK &&
         archive_write_set_options(a, "hdrcharset=BINARY") == ARCHIVE_OK &&
         archive_write_set_bytes_per_block(a, BLOCK) == ARCHIVE_OK &&
         archive_write_set_bytes_in_last_block(a, BLOCK) == ARCHIVE_OK &&
         archive_write_open(a, &s, NULL, push, NULL) == ARCHIVE_OK;
    for (uint32_t i = 0; ok && i < out->n; i++)
        ok = write_file(a, e, &out->file[i]);
    ok = ok && archive_write_close(a) == ARCHIVE_OK;
    if (!ok) {
        const char *why = a ? archive_error_string(a) : NULL;
        snprintf(out->why, sizeof out->why, "%s", why ? why : "no memory");
    }
    ok = ok && (!gzip || squeeze(&s, "", 0, Z_FINISH));
    if (deflating)
        deflateEnd(&s.z);
    archive_entry_free(e);
    archive_write_free(a);
    return ok;
}
