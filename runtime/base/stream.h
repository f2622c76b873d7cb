/* Files in pieces: a reader that gives what there is, a writer with the care of cps_file_write.
 * Functions return false (-1) and leave errno; the caller reports. */
#ifndef CPS_BASE_STREAM_H
#define CPS_BASE_STREAM_H

#include "runtime/base/base.h"

typedef struct cps_reader {
    int fd;        /* private */
    bool sized;    /* a regular file, of `size` bytes when it was opened */
    uint64_t size;
} cps_reader;

/* Opens for reading; "-" is standard input. */
bool cps_reader_open(const char *path, cps_reader *out);
/* Up to n bytes, what one read gives: 0 at the end, -1 on an error. */
ptrdiff_t cps_reader_get(cps_reader *r, void *buf, size_t n);
void cps_reader_close(cps_reader *r);

typedef struct cps_writer {
    int fd;              /* private, like the rest */
    char *temp, *target; /* NULL where the bytes go in place: standard output, devices, pipes */
} cps_writer;

/* "-" writes standard output. A file is written under a temporary name in its folder. */
bool cps_writer_open(const char *path, cps_writer *out);
bool cps_writer_put(cps_writer *w, const void *data, size_t n);
/* With `keep` the file takes its name now; without, or on an error, nothing is left of it. */
bool cps_writer_close(cps_writer *w, bool keep);

#endif
