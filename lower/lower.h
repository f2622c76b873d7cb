/* Lowering: from an imported graph to calls of registry operators with a leaf chosen for each.
 * pass.def lists the passes in order; the driver uses the entries below. */
#ifndef CPS_LOWER_LOWER_H
#define CPS_LOWER_LOWER_H

#include "kernels/registry.h"

typedef enum cps_fallback {
    CPS_FALLBACK_ERROR,
    CPS_FALLBACK_WARN,
    CPS_FALLBACK_QUIET
} cps_fallback;

typedef struct cps_lower_opts {
    cps_registry *registry;
    const cps_target *target; /* NULL: host, nothing is raised or selected */
    int cores;
    const char *auto_cast; /* "none", "matmult" or "all" */
    cps_dtype cast_type;   /* bf16, fp16 or tf32 */
    cps_fallback fallback; /* what a macro that no leaf takes means, before it is decomposed */
    const char *passes;    /* NULL: all of the stage; else a comma-separated list, of which a
                            * stage runs its own */
    bool verify_each;
    /* Called after each pass, for dumps and timing. May be NULL. False stops. */
    bool (*after)(void *ctx, const char *pass, cps_module *m, cps_diags *d);
    void *ctx;
} cps_lower_opts;

/* Up to the reference graph: folded, canonical, auto-cast applied. Base ops only. */
bool cps_lower_prepare(cps_module *m, const cps_lower_opts *o, cps_diags *d);

/* From the reference graph to registry calls, each with node->pick set; between them only
 * constants and reshapes (which are free: row-major storage does not change). 64-bit integer
 * inputs stay and are cast where they are read; computed outputs of that type become 32-bit
 * ones. False after E74xx. */
bool cps_lower_select(cps_module *m, const cps_lower_opts *o, cps_diags *d);

/* The instance of a call node (operands by position, absent ones 0), attributes typed and
 * defaults filled in. */
bool cps_lower_instance(const cps_lower_opts *o, cps_arena *a, const cps_func *f,
                        const cps_node *n, cps_instance *out, cps_diags *d);

/* Why each call got its leaf: every candidate with its modelled time or its refusals. `json`
 * gives the same as an array of objects. */
bool cps_lower_explain(const cps_module *m, const cps_lower_opts *o, bool json, cps_buf *out,
                       cps_diags *d);

/* A cps_eval_call: calls are evaluated by their operator's body. `user` is a cps_lower_opts. */
bool cps_lower_eval(void *user, cps_arena *a, const cps_node *n, const cps_tensor *in,
                    cps_tensor *out, cps_diags *d);

/* The passes, for documents and `copse opt --help`. */
typedef struct cps_lower_row {
    const char *stage, *name, *doc;
} cps_lower_row;
unsigned cps_lower_rows(const cps_lower_row **rows);

#endif
