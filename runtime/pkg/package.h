/* A compiled model: variables, steps and kernels, and the folder that holds them (contract,
 * "Package folder"). Steps run in order; each launches one kernel, its formal arguments bound by
 * name to variables. The host's code, where there is any, is a step of its own. */
#ifndef CPS_PKG_PACKAGE_H
#define CPS_PKG_PACKAGE_H

#include "runtime/base/file.h"
#include "runtime/base/npy.h"
#include "runtime/pkg/kbin.h"

typedef enum cps_pkind { CPS_PV_INPUT, CPS_PV_OUTPUT, CPS_PV_CONST, CPS_PV_TMP, CPS_PKINDS } cps_pkind;
extern const char *const cps_pkind_names[CPS_PKINDS]; /* as the manifest spells them */

#define CPS_CONST_ALIGN 4096 /* of constants in weights.bin */
#define CPS_TMP_ALIGN 512    /* of temporaries in their arena */

typedef struct cps_pvar {
    const char *name;     /* unique */
    cps_pkind kind;
    cps_dtype dtype;
    int rank;
    int64_t dim[CPS_MAX_RANK];
    int64_t bytes;
    int64_t offset;       /* CONST: in weights.bin; TMP: in the arena; else 0 */
    const void *data;     /* CONST, while writing; after reading: inside the mapped file */
} cps_pvar;

typedef struct cps_parg {
    const char *formal;
    uint32_t var;
} cps_parg;

/* An input or output of the model: the graph's name for a variable. An output may be an input that
 * is handed through, so names and variables are not one to one. */
typedef struct cps_pio {
    const char *name;
    uint32_t var;
    int rank;             /* the graph's shape: an output may be another view of its variable */
    int64_t dim[CPS_MAX_RANK];
} cps_pio;

typedef struct cps_pstep {
    int32_t kernel;       /* index, or -1: the host function */
    const char *from;     /* provenance, or NULL */
    uint32_t first, nargs; /* in package->args */
} cps_pstep;

typedef struct cps_pkernel {
    const char *name;     /* folder under kernels/ */
    const char *leaf, *op, *why, *instance, *config;
    int64_t cost_ns;      /* modelled at selection */
    int64_t flops, bytes; /* of the mathematics: what must be computed and moved */
    int64_t roofline_ns, engines_ns; /* roof, and with the declared minimum passes per engine */
    const char *bound;    /* of the roof: compute or memory */
    cps_digest key;       /* of the trace cache */
    const cps_kbin *kbin;
    const char *text;     /* a further text of the kernel, or NULL; not read back */
    size_t text_bytes;
    const char *text_name; /* its file in the kernel's folder; NULL: not written */
    const char *peer_text; /* of a pair: core 1's, and `text` is core 0's; in the folder of each */
    size_t peer_text_bytes;
} cps_pkernel;

typedef struct cps_package {
    cps_arena *arena;
    const char *model;    /* name of the graph */
    const char *target;   /* "trn2", "host" */
    cps_digest target_digest;
    int lnc;
    int64_t arena_bytes;
    int64_t weights_bytes;
    CPS_VEC(cps_pvar) vars;
    CPS_VEC(cps_parg) args;
    CPS_VEC(cps_pstep) steps;
    CPS_VEC(cps_pkernel) kernels;
    CPS_VEC(cps_pio) inputs;   /* in the graph's order */
    CPS_VEC(cps_pio) outputs;
    const char *graph;    /* text of the reference graph (graph.cir), or NULL */
    size_t graph_bytes;
    const void *host_so, *host_o;   /* bytes, or NULL */
    size_t host_so_bytes, host_o_bytes;
    const char *host_h;
    cps_file weights;     /* after reading: the mapped file */
} cps_package;

cps_package *cps_package_new(cps_arena *a, const char *model, const char *target);

/* A package as files, not written yet; weights.bin is left in pieces, where the constants lie. */
typedef struct cps_pweight {
    int64_t offset, bytes; /* in weights.bin; pieces do not overlap, holes are zero */
    const void *data;
} cps_pweight;

typedef struct cps_rendered {
    cps_pfiles files; /* manifest.json last */
    CPS_VEC(cps_pweight) weights;
    int64_t weights_bytes;
} cps_rendered;

/* Plans as below; everything lives in the package's arena, pieces of weights where they were. */
void cps_package_render(cps_package *p, cps_rendered *out);
/* Replaces what an older package left in `dir`. False after E8001. */
bool cps_rendered_write(const cps_rendered *r, const char *dir, cps_diags *d);

/* Places constants (4 KiB aligned) and plans the arena of temporaries by their lifetimes over the
 * steps, then writes everything under `dir` (made when missing; kernels/ of an older package is
 * replaced). manifest.json comes last, so a folder without one is incomplete. False after E8001. */
bool cps_package_write(cps_package *p, const char *dir, cps_diags *d);

/* Reads manifest, maps weights, reads kernels. NULL after E8002 (manifest), E8004 (a kernel's file is not
 * the one that the manifest has the digest of, and `changed` is not given) or the kernel's own. */
cps_package *cps_package_read(cps_arena *a, const char *dir, bool changed, cps_diags *d);
void cps_package_close(cps_package *p); /* unmaps the weights */

#endif
