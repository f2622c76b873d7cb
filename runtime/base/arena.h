/* Memory with a lifetime instead of owners: a bump arena on malloc'ed blocks.
 * Allocation never returns NULL (out of memory ends the program with a message). */
#ifndef CPS_BASE_ARENA_H
#define CPS_BASE_ARENA_H

#include "runtime/base/base.h"

#include <stdarg.h>

typedef struct cps_arena cps_arena;

typedef struct cps_mark {
    void *block, *wide;
    size_t used;
} cps_mark;

cps_arena *cps_arena_create(void);
void cps_arena_destroy(cps_arena *a); /* NULL is fine */

/* `bytes` zeroed bytes, aligned to 16. Lives until the arena is released or destroyed. */
void *cps_arena_alloc(cps_arena *a, size_t bytes);
/* The same without zeroing: for large buffers that are written at once. */
void *cps_arena_raw(cps_arena *a, size_t bytes);

/* Scratch use: everything allocated after the mark goes at release. */
cps_mark cps_arena_mark(cps_arena *a);
void cps_arena_release(cps_arena *a, cps_mark m);

size_t cps_arena_bytes(const cps_arena *a); /* handed out so far, for reports */

#define cps_new(a, T) ((T *)cps_arena_alloc((a), sizeof(T)))
#define cps_new_array(a, T, n) ((T *)cps_arena_alloc((a), sizeof(T) * (size_t)(n)))

char *cps_arena_printf(cps_arena *a, const char *fmt, ...) CPS_PRINTF(2, 3);
char *cps_arena_vprintf(cps_arena *a, const char *fmt, va_list ap);
char *cps_arena_strdup(cps_arena *a, const char *s);
char *cps_arena_strndup(cps_arena *a, const char *s, size_t n); /* ends with NUL */

#endif
