/* Files: whole reads (mapped), atomic writes, folders. Functions return false and leave errno;
 * the caller reports. */
#ifndef CPS_BASE_FILE_H
#define CPS_BASE_FILE_H

#include "runtime/base/arena.h"

typedef struct cps_file {
    const uint8_t *data;
    size_t n;
    void *map; /* private */
    size_t map_bytes;
} cps_file;

/* Opens read-only. "-" reads standard input. One zero byte follows the data (text may be scanned
 * to NUL) except where the file ends on a page boundary and `text` is false. */
bool cps_file_open(const char *path, bool text, cps_file *out);
void cps_file_close(cps_file *f);

/* Writes to a temporary name in the same folder, then renames. "-" writes standard output. */
bool cps_file_write(const char *path, const void *data, size_t n);
/* The same under the file's own name when it is not there yet, which costs half as much: for files of a package,
 * whose manifest is written last. A process that is killed may leave a part of it. */
bool cps_file_put(const char *path, const void *data, size_t n);
bool cps_mkdirs(const char *path); /* like mkdir -p */
bool cps_path_exists(const char *path);
char *cps_path_join(cps_arena *a, const char *dir, const char *name);
const char *cps_path_base(const char *path); /* after the last '/' */
/* Tensor names in file names: every byte outside [A-Za-z0-9._-] as %XX (contract). */
char *cps_path_quote(cps_arena *a, const char *name);

#endif
