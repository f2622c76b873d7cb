/* Between the program and libcopse-archive.so: tar and gzip over memory. The library knows no
 * container and no policy; the program decides entry by entry. */
#ifndef CPS_PKG_NEFF_ARCHIVE_H
#define CPS_PKG_NEFF_ARCHIVE_H

#include "runtime/base/base.h"

#define CPS_ARCHIVE_LIBRARY "libcopse-archive.so"

typedef enum cps_arc_end {
    CPS_ARC_OK,
    CPS_ARC_STOPPED, /* `entry` said so */
    CPS_ARC_TOO_BIG, /* inflates to more than `max_bytes` */
    CPS_ARC_BROKEN   /* no tar, a checksum, an end too early: `why` */
} cps_arc_end;

typedef struct cps_arc_in {
    const uint8_t *data;
    size_t n;
    uint64_t max_bytes; /* of the tar after inflating */
    void *self;
    /* An entry: kind 'f' file, 'd' folder, 'l' link of either kind, 'o' anything else. For a
     * file, *to receives memory for its `size` bytes. False stops. */
    bool (*entry)(void *self, const char *name, char kind, uint64_t size, uint8_t **to);
    /* filled */
    bool gzip;
    uint64_t inflated; /* bytes of the tar seen */
    uint64_t trailing; /* bytes behind the gzip stream */
    char why[160];
} cps_arc_in;

typedef struct cps_arc_file {
    const char *name;
    const void *data;
    size_t n;
} cps_arc_file;

typedef struct cps_arc_out {
    const cps_arc_file *file;
    uint32_t n;
    int level; /* of gzip, 0 stores; -1: a plain tar */
    void *self;
    bool (*put)(void *self, const void *bytes, size_t n);
    uint64_t tar_bytes; /* filled */
    char why[160];
} cps_arc_out;

/* Reads tar or gzip'ed tar to its very end, checksums included. */
typedef cps_arc_end cps_arc_read_fn(cps_arc_in *in);
/* Writes the files in the order given: POSIX tar with extended headers where a name or a size
 * needs one, owner nobody, times 0; gzip without name and time. Equal files, equal bytes. */
typedef bool cps_arc_write_fn(cps_arc_out *out);

#endif
