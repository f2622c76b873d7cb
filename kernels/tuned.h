/* Choices found by a search in the simulator, as a text file that is meant to be checked in:
 * one line for a call, saying which leaf and which parameters to take. A line counts only for
 * the very text of the leaf and the very facts of the target it was found with.
 *
 *   # copse tuned choices 1
 *   call, leaf, parameters, ns, ns without, digest of the leaf, digest of the target
 *
 * Fields are separated by one tab, lines sorted by call; `-` stands for no parameters; lines
 * that begin with `#` and empty ones say nothing, except the first, which names the format. */
#ifndef CPS_KERNELS_TUNED_H
#define CPS_KERNELS_TUNED_H

#include "kernels/registry.h"
#include "runtime/base/map.h"

typedef struct cps_tuned_row {
    const char *call, *leaf;
    const char *config;     /* "MB=4,WB=2", by name; "" for none */
    int64_t ns, ns_without; /* modelled: so, and with what would be taken otherwise */
    cps_digest leaf_digest, target_digest;
    uint32_t line; /* in its file; 0: not from a file */
    bool told;     /* that it is stale */
} cps_tuned_row;

typedef struct cps_tuned {
    cps_arena *arena;
    const char *name; /* of the file, for messages */
    CPS_VEC(cps_tuned_row) rows;
    cps_map at; /* call -> index + 1 */
} cps_tuned;

cps_tuned *cps_tuned_new(cps_arena *a, const char *name);
/* NULL after E1114. The text need not outlive the result. */
cps_tuned *cps_tuned_parse(cps_arena *a, const char *name, const char *text, size_t n,
                           cps_diags *d);
/* Adds the row, or replaces the one for the same call; strings are copied. */
void cps_tuned_put(cps_tuned *t, const cps_tuned_row *row);
void cps_tuned_drop(cps_tuned *t, const char *call);
/* The file: sorted, the same bytes for the same rows. */
void cps_tuned_print(const cps_tuned *t, cps_buf *out);

/* "MB=4,WB=2" of a candidate's parameters. */
void cps_config_print(const cps_candidate *c, cps_buf *out);

/* The parameters that such a text names, as values of the sets `p`. False with the reason in
 * *why when one is none of them. Memory from `a`. */
bool cps_config_parse(cps_arena *a, const char *config, const cps_param *p, uint32_t np,
                      cps_attr **out, uint16_t *n, const char **why);

/* Marks the candidate that the file names for the instance, with its parameters in place of the
 * modelled ones. A row that cannot be used is reported once (W1115) and changes nothing. */
void cps_tuned_apply(cps_tuned *t, cps_registry *r, cps_arena *a, const cps_instance *i,
                     cps_candidate *cand, unsigned n, cps_diags *d);

#endif
