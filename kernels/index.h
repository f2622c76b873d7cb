/* What a .cps file declares, told without parsing it: the index that start-up reads. Embedded
 * sources carry theirs, made at build time; files of the command line are scanned when added.
 */
#ifndef CPS_KERNELS_INDEX_H
#define CPS_KERNELS_INDEX_H

#include <stdbool.h>
#include <stddef.h>

typedef struct cps_kernel_def {
    char kind; /* 'O' op, 'B' block, 'L' leaf */
    const char *name;
    const char *op;      /* leaf: the operator it implements; else NULL */
    const char *targets; /* leaf: blank-separated; else NULL */
    unsigned source;     /* index into the sources */
} cps_kernel_def;

extern const cps_kernel_def cps_kernel_defs[];
extern const unsigned cps_kernel_def_count;

/* A name found, not terminated. `op` and `targets` of a leaf: targets as written, with commas.
 */
typedef struct cps_scan_item {
    char kind;
    const char *name, *op, *targets;
    size_t nname, nop, ntargets;
} cps_scan_item;

/* Steps through the declarations at file level: *at is 0 at first. Comments, strings and bodies
 * are passed over. False at the end. */
bool cps_kernel_scan(const char *text, size_t n, size_t *at, cps_scan_item *out);

#endif
