/* A folder that is not written yet: its files in the order in which they are to be written.
 * What renders packages and kernels makes one; what writes them, keeps them or packs them reads
 * it. */
#ifndef CPS_PKG_FILES_H
#define CPS_PKG_FILES_H

#include "runtime/base/vec.h"

typedef struct cps_pfile {
    const char *name; /* relative, '/' between folders */
    const void *data;
    size_t n;
} cps_pfile;

typedef struct cps_pfiles {
    cps_arena *arena; /* of names and bytes */
    CPS_VEC(cps_pfile) list;
} cps_pfiles;

/* Copies the bytes. */
static inline void
cps_pfiles_add(cps_pfiles *f, const char *name, const void *data, size_t n)
{
    cps_pfile x = {name, cps_arena_strndup(f->arena, n ? data : "", n), n};
    cps_vec_push(f->arena, &f->list, x);
}

#endif
