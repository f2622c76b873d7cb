/* Whole models in the trace cache.
 *
 * When nothing that a compile read has changed, what it wrote is taken from the cache as it
 * was: no model is decoded, no leaf is parsed. The key's components are everything the result
 * depends on: the build, the target's facts, the options, the name of the model, and a sum over
 * every byte of every file that was read (model, external data, files of -I and --tuned). A sum costs a
 * pass over the file; it is remembered beside what the file system says of the file (device,
 * inode, size, times of change), and is taken from there only when these had stood still for a
 * while before the file was read. Entries hold no weights that the model file holds: pieces of
 * weights.bin are kept by their place. A compile that had anything to say is not kept, so its
 * messages are never lost. */
#ifndef CPS_FRONTEND_MODULE_CACHE_H
#define CPS_FRONTEND_MODULE_CACHE_H

#include "frontend/cli.h"
#include "frontend/model.h"
#include "runtime/pkg/package.h"

#include <time.h>

/* What people are told of a package. */
typedef struct cps_summary {
    const char *model;
    uint32_t steps, kernels; /* kernels: host code counts as one */
    int64_t arena_bytes;
} cps_summary;

typedef struct cps_mcache {
    bool on; /* the model can be kept */
    struct timespec begun;
    cps_sum model;            /* of the model file */
    CPS_VEC(cps_sum) kernels; /* of the files of -I */
    bool has_tuned;
    cps_sum tuned;            /* of the file of --tuned */
    cps_buf parts;            /* the key's components */
    cps_digest key;
    CPS_VEC(cps_file) mapped; /* the model's files, then the entries */
} cps_mcache;

/* Looks for the compile of `path` (.onnx or .cir) for `t`. On a hit `out` is the package and
 * points into mapped files: release after writing it. */
bool cps_mcache_get(cps_cli *c, const char *path, const cps_target *t, cps_mcache *mc,
                    cps_rendered *out, cps_summary *sum);
/* Keeps a fresh compile of a lookup that missed. `m` is the model that it was made of. */
void cps_mcache_put(cps_cli *c, cps_mcache *mc, const char *path, const cps_target *t,
                    const cps_model *m, const cps_rendered *r, const cps_summary *sum);
void cps_mcache_release(cps_mcache *mc);

#endif
