/* The two ways this project stops on purpose: its own mistake, and no memory.
 *
 * In: a place and a text. Out: one line on stderr and the end of the process. Bad input never
 * comes here; it becomes a diagnostic (diag.h). */
#include "runtime/base/base.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

void
cps_bug_at(const char *file, int line, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    fprintf(stderr, "copse: internal error at %s:%d: ", file, line);
    vfprintf(stderr, fmt, ap);
    fputc('\n', stderr);
    va_end(ap);
    abort();
}

void
cps_out_of_memory(size_t bytes)
{
    fprintf(stderr, "copse: out of memory (%zu bytes asked)\n", bytes);
    _Exit(CPS_IO);
}
