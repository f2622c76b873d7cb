/* The trace cache: key digest -> bytes, in a folder that many processes share.
 *
 * An entry is one file: header, the key's components, the payload, and a check sum over both. It is
 * written under a temporary name and renamed, so a reader sees a whole entry or none; on a hit the
 * components are compared with the caller's (a digest alone is never trusted) and the check sum is
 * verified. There are no negative entries. The folder must belong to the user and be writable by
 * nobody else. */
#ifndef CPS_CODEGEN_CACHE_H
#define CPS_CODEGEN_CACHE_H

#include "runtime/base/diag.h"
#include "runtime/base/file.h"
#include "runtime/base/hash.h"

typedef struct cps_cache {
    cps_arena *arena;
    const char *dir; /* NULL: no cache (everything misses, nothing is stored) */
    const uint8_t *secret; /* read on demand */
    unsigned hits, misses, stored, rejected;
} cps_cache;

typedef struct cps_cache_stats {
    uint64_t entries, bytes, temporaries, broken;
} cps_cache_stats;

/* `dir` NULL: $XDG_CACHE_HOME/copse, else $HOME/.cache/copse. The folder is made when missing. An
 * unusable folder gives W1101 and a cache that stores nothing. */
cps_cache *cps_cache_open(cps_arena *a, const char *dir, cps_diags *d);
cps_cache *cps_cache_none(cps_arena *a);

/* The payload under `key`, copied to `out`. False on a miss. */
bool cps_cache_get(cps_cache *c, const cps_digest *key, const void *parts, size_t nparts,
                   cps_buf *out);
/* The same without a copy: the payload lies in `f`, which the caller closes after a hit. */
bool cps_cache_map(cps_cache *c, const cps_digest *key, const void *parts, size_t nparts,
                   cps_file *f, const uint8_t **payload, size_t *n);
/* CPS_SECRET_BYTES random bytes of this cache, so that sums of files that are kept in it cannot be
 * aimed at; NULL without a cache. */
const uint8_t *cps_cache_secret(cps_cache *c);
/* Stores; failure to store is not an error (the next compile misses). */
void cps_cache_put(cps_cache *c, const cps_digest *key, const void *parts, size_t nparts,
                   const void *payload, size_t n);

/* Counts; with `check` every entry is read and its checksum and name are verified. `remove` also
 * deletes broken entries and abandoned temporaries. */
bool cps_cache_scan(cps_cache *c, bool check, bool remove, cps_cache_stats *out, cps_diags *d);
/* Removes the entries used longest ago until the total is at most `max_bytes`. */
bool cps_cache_gc(cps_cache *c, uint64_t max_bytes, cps_cache_stats *removed, cps_diags *d);

#endif
