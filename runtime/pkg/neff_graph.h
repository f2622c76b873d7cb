/* What the members of a container say: the graphs, their variables, queues and engines.
 * Lenient, because containers of several years and producers exist: what is missing or strange
 * becomes a note, and only JSON that cannot be parsed is an error. */
#ifndef CPS_PKG_NEFF_GRAPH_H
#define CPS_PKG_NEFF_GRAPH_H

#include "codegen/isa/isa.h"
#include "runtime/base/json.h"
#include "runtime/pkg/neff.h"

#define CPS_NEFF_ANY_GEN (-1) /* target "*" */
#define CPS_NEFF_NO_GEN (-2)  /* absent or unknown */

typedef struct cps_neff_var {
    const char *name, *kind;
    const char *file; /* kind "file", else NULL */
    int64_t id, size; /* -1: not given */
    int64_t backing;  /* kind "virtual": offset in the shared scratchpad, else -1 */
} cps_neff_var;

typedef struct cps_neff_queue {
    const char *name, *kind, *owner;
    int64_t queues; /* hardware queues, 1 unless given */
    uint32_t instances;
    CPS_VEC(int64_t) semaphores;
} cps_neff_queue;

typedef struct cps_neff_engine {
    const cps_neff_member *desc, *bin; /* engine JSON and stream; NULL when absent */
    const cps_json *doc;
    uint32_t instructions;
    uint32_t count[256];   /* per opcode byte */
    uint32_t odd;          /* records whose length byte is not that of an instruction */
    uint32_t items, descs; /* of `dma` */
} cps_neff_engine;

typedef struct cps_neff_graph {
    const char *name, *dir; /* dir ends with '/', or is empty */
    const char *version;    /* of def.json, or NULL */
    const cps_neff_member *def;
    const cps_json *doc;        /* def.json, or NULL */
    const cps_json *tensor_map; /* tensor_map.json, or NULL */
    CPS_VEC(cps_neff_var) vars; /* by id */
    CPS_VEC(cps_neff_queue) queues;
    cps_neff_engine engine[CPS_ENGINES];
} cps_neff_graph;

typedef struct cps_neff_info {
    cps_arena *arena;
    const cps_neff *neff;
    const char *kelf;         /* member that lists the graphs, or NULL */
    const char *kelf_version; /* or NULL */
    const char *target;       /* word of the kelf, or NULL */
    int gen;                  /* cps_gen, or one of the above */
    CPS_VEC(cps_neff_graph) graphs;
    CPS_VEC(const char *) notes;
} cps_neff_info;

/* Never NULL. E8404 for members that cannot be parsed; the rest is described all the same. */
cps_neff_info *cps_neff_describe(cps_arena *a, const cps_neff *f, cps_diags *d);

/* Generation of a target word, CPS_NEFF_ANY_GEN or CPS_NEFF_NO_GEN; and the word we write. */
int cps_neff_target_gen(const char *word);
const char *cps_neff_target_word(cps_gen g);

/* The checks a loader makes, in its order. */
typedef enum cps_neff_verdict {
    CPS_NEFF_PASSES,
    CPS_NEFF_FAILS,
    CPS_NEFF_UNKNOWN
} cps_neff_verdict;
typedef struct cps_neff_check {
    const char *name;
    cps_neff_verdict verdict;
    const char *text;
} cps_neff_check;
enum { CPS_NEFF_CHECKS = 5 };
void cps_neff_checks(const cps_neff_info *i, cps_neff_check out[CPS_NEFF_CHECKS]);

/* The whole description as JSON or as text for people. `g` names opcodes where the container
 * gives no generation. */
void cps_neff_print_json(const cps_neff_info *i, cps_gen g, cps_buf *out);
void cps_neff_print_text(const cps_neff_info *i, cps_gen g, cps_buf *out);

#endif
