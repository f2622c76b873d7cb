/* Between the files that make a container: what is packed, and the writers of its members. */
#ifndef CPS_PKG_NEFF_MEMBERS_H
#define CPS_PKG_NEFF_MEMBERS_H

#include "runtime/pkg/neff_pack.h"

/* An input or output of the program: the name it is bound by, and its variable. */
typedef struct cps_neff_border {
    const char *name, *var;
    cps_dtype dtype;
    int rank;
    int64_t dim[CPS_MAX_RANK];
} cps_neff_border;

typedef struct cps_packer {
    cps_arena *a;
    cps_diags *d;
    cps_neff *f;
    const cps_package *p;
    const cps_kbin *first;     /* core 0's program; core 1's is its peer */
    const int64_t *backings[2]; /* of the linked variables of each core, or NULL */
    /* the core that is written */
    const cps_kbin *k;
    const int64_t *backing;
    const char *dir; /* "sg00" */
    CPS_VEC(cps_neff_border) in;
    CPS_VEC(cps_neff_border) out;
    uint64_t features;
    uint32_t sets[2]; /* activation table sets in use, a bit each, by core */
} cps_packer;

/* Adds all members to c->f. */
void cps_neff_members(cps_packer *c);
const char *cps_neff_set_name(cps_packer *c, unsigned set);

#endif
