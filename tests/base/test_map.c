/* Maps: finding, growth, order of insertion, u64 and text keys side by side. */
#include "runtime/base/hash.h"
#include "runtime/base/map.h"
#include "runtime/base/rng.h"
#include "tests/check.h"

static void
numbers(cps_arena *a)
{
    cps_map m;
    cps_map_init(&m, a);
    CHECK(cps_map_find(&m, 0) == NULL);
    CHECK(cps_map_find_str(&m, "x") == NULL);
    bool fresh;
    for (uint64_t i = 0; i < 20000; i++) {
        uint64_t *v = cps_map_at(&m, i << 32, &fresh);
        CHECK(fresh && *v == 0);
        *v = i * 7;
    }
    CHECK_INT(m.n, 20000);
    for (uint64_t i = 0; i < 20000; i++) {
        CHECK(m.entry[i].key == i << 32 && m.entry[i].value == i * 7);
        uint64_t *v = cps_map_find(&m, i << 32);
        CHECK(v && *v == i * 7);
    }
    *cps_map_at(&m, 0, &fresh) = 99;
    CHECK(!fresh && *cps_map_find(&m, 0) == 99);
    CHECK(cps_map_find(&m, 1) == NULL);
    CHECK_INT(m.n, 20000);
}

static void
texts(cps_arena *a)
{
    cps_map m;
    cps_map_init(&m, a);
    char key[32];
    for (int i = 0; i < 3000; i++) {
        snprintf(key, sizeof(key), "key %d", i);
        *cps_map_at_str(&m, key, NULL) = (uint64_t)i;
    }
    memset(key, 'x', sizeof(key) - 1); // the map holds copies
    for (int i = 0; i < 3000; i++) {
        snprintf(key, sizeof(key), "key %d", i);
        uint64_t *v = cps_map_find_str(&m, key);
        CHECK(v && *v == (uint64_t)i);
        CHECK_STR(m.entry[i].str, key);
    }
    // The number that is the hash of a text is another key.
    uint64_t h = cps_hash_mem("key 5", 5);
    CHECK(cps_map_find(&m, h) == NULL);
    *cps_map_at(&m, h, NULL) = 1234;
    CHECK(*cps_map_find(&m, h) == 1234 && *cps_map_find_str(&m, "key 5") == 5);
    *cps_map_at_str(&m, "", NULL) = 1;
    CHECK(*cps_map_find_str(&m, "") == 1);
}

// Against a plain list, with few distinct keys so that most insertions hit.
static void
against_list(cps_arena *a)
{
    cps_map m;
    cps_map_init(&m, a);
    uint64_t key[300], value[300], n = 0;
    cps_rng r;
    cps_rng_init(&r, 4, 0);
    for (int i = 0; i < 5000; i++) {
        uint64_t k = cps_rng_below(&r, 300), j = 0;
        while (j < n && key[j] != k)
            j++;
        bool fresh;
        uint64_t *v = cps_map_at(&m, k, &fresh);
        CHECK(fresh == (j == n));
        if (j == n) {
            key[n] = k;
            value[n++] = 0;
        }
        CHECK(*v == value[j]);
        *v = value[j] = cps_rng_next(&r);
    }
    CHECK_INT(m.n, n);
    for (uint64_t j = 0; j < n; j++)
        CHECK(m.entry[j].key == key[j] && m.entry[j].value == value[j]);
}

int
main(void)
{
    cps_arena *a = cps_arena_create();
    numbers(a);
    texts(a);
    against_list(a);
    cps_arena_destroy(a);
    return CHECK_DONE();
}
