/* Kernels that one process asks for again: an answer in memory, in front of the trace cache, for what embeds the
 * compiler and meets the same shapes over and over. A request is found by a hash and compared whole, in well under a
 * microsecond; that leaves no time to look at files. So a memo answers for the sources as its session has read them:
 * they are kept for the session's life (as are its options and what --tuned says), and who wants a changed file
 * makes a new session. Nothing is kept that failed. One session, one memo, one thread, as with the registry. */
#ifndef CPS_FRONTEND_MEMO_H
#define CPS_FRONTEND_MEMO_H

#include "frontend/compile.h"

/* One request. Names, types and attributes as the caller has them, before or after the registry's `infer`. */
typedef struct cps_ask {
    const cps_instance *inst; /* operator, target, cores, operands, attributes; of its results how they lie */
    const char *leaf;         /* the one to take, or NULL */
    const cps_attr *config;   /* parameters of that leaf, by name */
    uint16_t nconfig;
} cps_ask;

typedef struct cps_kept {
    cps_instance inst; /* with results and defaults */
    cps_candidate cand;
    const char *why;   /* it was taken */
    cps_compiled bin;
} cps_kept;

typedef struct cps_memo_limits {
    uint32_t entries;
    size_t bytes; /* of arenas */
    uint64_t (*hash)(const cps_ask *q);
} cps_memo_limits;

typedef struct cps_memo_stats {
    uint64_t hits, misses, evicted;
    uint32_t entries;
    size_t bytes;
} cps_memo_stats;

typedef struct cps_memo cps_memo;

uint64_t cps_ask_hash(const cps_ask *q);
/* `l` NULL: 256 kernels, 64 MiB, cps_ask_hash. */
cps_memo *cps_memo_create(const cps_memo_limits *l);
void cps_memo_destroy(cps_memo *m); /* NULL is fine */
/* The kernel, compiled or taken from the trace cache when it was not asked for before; what was said then is said
 * again. It is lent until the next call that does not hit: what was asked for longest ago makes room for new ones,
 * the newest always stays. NULL after a diagnostic. */
const cps_kept *cps_memo_kernel(cps_memo *m, cps_cli *c, const cps_ask *q);
cps_memo_stats cps_memo_count(const cps_memo *m);

#endif
