/* The registry: every operator, its reference body, its blocks and its leaves, for every target.
 *
 * Sources are the .cps files of the three trees, embedded in the program, plus files given on the
 * command line. Start-up reads only an index; a file is parsed at first use. The language front
 * end sits above this room, so what needs it (evaluating predicates, tracing, bodies) is reached
 * through the table of functions below, which the front end fills. */
#ifndef CPS_KERNELS_REGISTRY_H
#define CPS_KERNELS_REGISTRY_H

#include "ir/tile.h"
#include "kernels/instance.h"

/* Named cost terms of a leaf's `cost` clause: cycles per engine clock, bytes. */
typedef struct cps_costs {
    double cycles[CPS_ENGINES];
    double hbm, link;
    double host_cycles;
} cps_costs;

/* A leaf held against an instance. Refused ones keep every reason, with values. */
typedef struct cps_candidate {
    const char *leaf;
    bool ok;
    int nreasons;
    const char **reason;
    cps_costs costs;
    int64_t cost_ns;         /* by the one cost model */
    const char *bound;       /* name of the largest term: pe act pool dve hbm link */
    int64_t priority;
    double rtol, atol;       /* tolerance of the leaf */
    uint16_t nconfig;
    cps_attr *config;        /* resolved params, sorted */
    bool tuned;              /* a file of tuned choices names it, with this config */
} cps_candidate;

/* A parameter of a leaf for an instance: what a search may vary. */
typedef struct cps_param {
    const char *name;
    uint32_t n;
    const cps_attr *value;   /* the set, each with key = name */
    uint32_t dflt;           /* index of the default in it */
} cps_param;

typedef struct cps_opinfo {
    const char *name, *file;
    const char *tree;        /* "reference" or "blocks" */
    int noperands, nresults, nattrs;
    const char *operand[CPS_MAX_OPERANDS]; /* "x[M,K]", "bias?[N]": signature pieces */
    const char *result[CPS_MAX_OPERANDS];
    const char *attr[CPS_MAX_OPERANDS];    /* "eps: fp32 = 1e-06" */
    int ndims;
    const char *dim[16];                   /* free dimension names, in order of first sight */
} cps_opinfo;

typedef struct cps_leafinfo {
    const char *name, *op, *file;
    const char *targets;                   /* "trn1 trn2 trn3" */
} cps_leafinfo;

typedef struct cps_registry cps_registry;
struct cps_registry {
    void *self;
    /* Index. */
    unsigned (*ops)(void *self);
    bool (*op)(void *self, unsigned i, cps_opinfo *out);        /* parses the file */
    bool (*find_op)(void *self, const char *name, cps_opinfo *out);
    unsigned (*leaves)(void *self);
    bool (*leaf)(void *self, unsigned i, cps_leafinfo *out);
    /* An instance out of named dimensions ("M" = 512 ...), one dtype for all operands that declare
     * none, the optional operands to be present, and attributes as text (name, value) pairs, typed
     * by the op's declaration. The attribute t<operand>=1 (tx, tw ...) that the op does not declare
     * itself says that the operand's last two axes are stored swapped. Includes infer. */
    bool (*make)(void *self, cps_arena *a, const char *op, int ndims, const char *const *dim,
                 const int64_t *value, cps_dtype dtype, int nwith, const char *const *with,
                 int nattr, const char *const *attr, const char *const *text,
                 const cps_target *t, int cores, cps_instance *out, cps_diags *d);
    /* An operator with leaves out of a text that lowering wrote; the same text again is fine. False after
     * a diagnostic. May be NULL: nothing can be added. */
    bool (*add)(void *self, const char *op, const char *text, cps_diags *d);
    /* Binds dims, fills defaults and result types, checks everything. */
    bool (*infer)(void *self, cps_arena *a, cps_instance *i, cps_diags *d);
    /* All leaves of the op for the target, in stable order, each admitted or with its reasons. */
    unsigned (*candidates)(void *self, cps_arena *a, const cps_instance *i, cps_candidate **out,
                           cps_diags *d);
    /* One leaf with parameters pinned: admitted so, or with its reasons. False when there is no such leaf
     * for the op, or its text has errors. */
    bool (*candidate)(void *self, cps_arena *a, const cps_instance *i, const char *leaf,
                      const cps_attr *fixed, uint16_t nfixed, cps_candidate *out, cps_diags *d);
    /* The parameters of a leaf, in its order. False as above. */
    bool (*params)(void *self, cps_arena *a, const cps_instance *i, const char *leaf, cps_param **out,
                   uint32_t *n);
    /* Of the text of the leaf's file and of the files it uses. Zero when there is no such leaf. */
    cps_digest (*digest)(void *self, const char *leaf);
    /* Choices that `candidates` marks, or NULL (kernels/tuned.h). */
    struct cps_tuned *tuned;
    /* The leaf's tile program for the instance. NULL after diagnostics. */
    cps_tfunc *(*trace)(void *self, cps_arena *a, const cps_instance *i, const cps_candidate *c,
                        int core, cps_diags *d);
    /* The op's mathematics as a graph function of base ops (inner op calls inlined). */
    cps_func *(*body)(void *self, cps_module *m, const cps_instance *i, cps_diags *d);
    /* The same with calls of other operators kept as `call` nodes: what a block orchestrates. */
    cps_func *(*calls)(void *self, cps_module *m, const cps_instance *i, cps_diags *d);
    /* The minimum passes per engine that the op's body declares (`cost` clause), as cost terms. */
    bool (*minimum)(void *self, const cps_instance *i, cps_costs *out, cps_diags *d);
};

/* The one cost model: cost terms to nanoseconds on a target (largest term plus fixed launch);
 * `bound` names it. */
int64_t cps_cost_ns(const cps_target *t, const cps_costs *c, const char **bound);

/* Selection: what a file of tuned choices names, else the lowest modelled cost among the admitted, ties
 * by priority (higher first), then name. `force` names a leaf that must be taken. Index into cand, or -1 (none). */
int cps_registry_pick(const cps_candidate *cand, unsigned n, const char *force, const char **why);

/* The embedded sources: path inside kernels/ ("leaves/softmax.cps"), text, length. */
typedef struct cps_source {
    const char *path, *text;
    uint32_t n;
} cps_source;
extern const cps_source cps_kernel_sources[];
extern const unsigned cps_kernel_source_count;

#endif
