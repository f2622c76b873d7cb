/* What the back end knows of a kernel beyond its bytes: the buffers and where they stood, the
 * order of the records over all engines, which buffers a record touches and which earlier
 * records it depends on. Nobody needs it to run a kernel; exchange formats (codegen/bir) say
 * it. */
#ifndef CPS_CODEGEN_NOTES_H
#define CPS_CODEGEN_NOTES_H

#include "runtime/pkg/kbin.h"

/* Kinds of dependence, weakest first; the numbers are those of BIR's edges. */
typedef enum cps_depkind {
    CPS_DEP_ORDERED = 1, /* asked for (`after`) */
    CPS_DEP_ANTI = 2,    /* write after read */
    CPS_DEP_OUTPUT = 3,  /* write after write */
    CPS_DEP_FLOW = 4     /* read after write */
} cps_depkind;

/* A placed on-chip buffer. */
typedef struct cps_nplace {
    const char *name; /* unique: source name and number */
    bool psum;
    cps_dtype dtype;
    int rank; /* [partitions, free...] */
    int64_t dim[CPS_MAX_RANK];
    uint16_t part; /* first partition */
    uint32_t byte; /* in each partition */
    int64_t bytes; /* per partition */
} cps_nplace;

/* One record of a stream. */
typedef struct cps_nrecord {
    uint32_t order;     /* records of all engines in program order */
    uint32_t ref, nref; /* buffers touched, in refs: indices into places */
    uint32_t dep, ndep; /* in deps */
} cps_nrecord;

typedef struct cps_ndep {
    uint8_t engine, kind;
    uint32_t index; /* record of that engine */
} cps_ndep;

typedef struct cps_notes {
    CPS_VEC(cps_nplace) places;
    CPS_VEC(cps_nrecord) record[CPS_ENGINES]; /* as long as the stream */
    CPS_VEC(uint32_t) refs;
    CPS_VEC(cps_ndep) deps;
} cps_notes;

#endif
