/* Hash maps from u64 or string keys to u64 values. Iteration is in order of insertion, so no
 * output ever depends on hash order. Nothing is removed singly. Memory comes from the arena. */
#ifndef CPS_BASE_MAP_H
#define CPS_BASE_MAP_H

#include "runtime/base/arena.h"

typedef struct cps_map_entry {
    uint64_t key;    /* u64 key, or the hash of the string */
    const char *str; /* NULL for u64 keys; else a copy in the arena */
    uint64_t value;
} cps_map_entry;

typedef struct cps_map {
    cps_arena *arena;
    cps_map_entry *entry; /* insertion order */
    uint32_t n, cap;
    uint32_t *slot; /* open addressing, index + 1 */
    uint32_t slots;
} cps_map;

void cps_map_init(cps_map *m, cps_arena *a);
/* Address of the value under `key`, or NULL. */
uint64_t *cps_map_find(const cps_map *m, uint64_t key);
uint64_t *cps_map_find_str(const cps_map *m, const char *key);
/* Address of the value under `key`, inserted as 0 when new (*fresh tells; may be NULL). */
uint64_t *cps_map_at(cps_map *m, uint64_t key, bool *fresh);
uint64_t *cps_map_at_str(cps_map *m, const char *key, bool *fresh);

#endif
