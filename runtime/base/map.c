/* Insertion-ordered hash maps: entries lie in an array in the order they came, an
 * open-addressed table of indices finds them.
 *
 * In: u64 or string keys. Out: the address of a u64 value, good until the next insertion.
 * Holds: load at most 3/4; a u64 key and a string with the same hash are different keys. Growth
 * leaves the old arrays to the arena. */
#include "runtime/base/map.h"
#include "runtime/base/hash.h"

#include <string.h>

void
cps_map_init(cps_map *m, cps_arena *a)
{
    *m = (cps_map){.arena = a};
}

static uint32_t
home(const cps_map *m, uint64_t key)
{
    return (uint32_t)(cps_mix64(key) & (m->slots - 1));
}

static bool
same_key(const cps_map_entry *e, uint64_t key, const char *str)
{
    if (e->key != key || !e->str != !str)
        return false;
    return !str || strcmp(e->str, str) == 0;
}

// The slot that holds the key, or the free one where it would go. Needs slots > n.
static uint32_t
probe(const cps_map *m, uint64_t key, const char *str)
{
    uint32_t i = home(m, key);
    while (m->slot[i] && !same_key(&m->entry[m->slot[i] - 1], key, str))
        i = (i + 1) & (m->slots - 1);
    return i;
}

static uint64_t *
find(const cps_map *m, uint64_t key, const char *str)
{
    if (!m->slots)
        return NULL;
    uint32_t i = m->slot[probe(m, key, str)];
    return i ? &m->entry[i - 1].value : NULL;
}

static void
grow_entries(cps_map *m)
{
    cps_assert(m->cap <= UINT32_MAX / 4);
    uint32_t cap = m->cap ? m->cap * 2 : 8;
    cps_map_entry *e = cps_arena_raw(m->arena, cap * sizeof(*e));
    if (m->n)
        memcpy(e, m->entry, m->n * sizeof(*e));
    m->entry = e;
    m->cap = cap;
}

static void
rehash(cps_map *m)
{
    cps_assert(m->slots <= UINT32_MAX / 4);
    m->slots = m->slots ? m->slots * 2 : 16;
    m->slot = cps_new_array(m->arena, uint32_t, m->slots);
    for (uint32_t k = 0; k < m->n; k++) {
        uint32_t i = home(m, m->entry[k].key);
        while (m->slot[i])
            i = (i + 1) & (m->slots - 1);
        m->slot[i] = k + 1;
    }
}

static uint64_t *
at(cps_map *m, uint64_t key, const char *str, bool *fresh)
{
    uint64_t *v = find(m, key, str);
    if (fresh)
        *fresh = !v;
    if (v)
        return v;
    if (m->n == m->cap)
        grow_entries(m);
    if ((uint64_t)(m->n + 1) * 4 > (uint64_t)m->slots * 3)
        rehash(m);
    m->slot[probe(m, key, str)] = m->n + 1;
    cps_map_entry *e = &m->entry[m->n++];
    *e = (cps_map_entry){key, str ? cps_arena_strdup(m->arena, str) : NULL, 0};
    return &e->value;
}

uint64_t *
cps_map_find(const cps_map *m, uint64_t key)
{
    return find(m, key, NULL);
}

uint64_t *
cps_map_find_str(const cps_map *m, const char *key)
{
    return find(m, cps_hash_mem(key, strlen(key)), key);
}

uint64_t *
cps_map_at(cps_map *m, uint64_t key, bool *fresh)
{
    return at(m, key, NULL, fresh);
}

uint64_t *
cps_map_at_str(cps_map *m, const char *key, bool *fresh)
{
    return at(m, cps_hash_mem(key, strlen(key)), key, fresh);
}
