/* Arenas and vectors: alignment, zeroing, marks, large blocks, growth. */
#include "runtime/base/arena.h"
#include "runtime/base/rng.h"
#include "runtime/base/vec.h"
#include "tests/check.h"

static void
allocation(void)
{
    cps_arena *a = cps_arena_create();
    cps_rng r;
    cps_rng_init(&r, 1, 0);
    size_t total = 0;
    for (int i = 0; i < 2000; i++) {
        size_t n = cps_rng_below(&r, i % 100 ? 300 : 3u << 20);
        uint8_t *p = cps_arena_alloc(a, n);
        CHECK((uintptr_t)p % 16 == 0);
        bool zero = true;
        for (size_t k = 0; k < n; k++)
            zero = zero && p[k] == 0;
        CHECK(zero);
        memset(p, 0xff, n);
        total += n;
    }
    CHECK_INT(cps_arena_bytes(a), total);
    cps_arena_destroy(a);
    cps_arena_destroy(NULL);
}

static void
marks(void)
{
    cps_arena *a = cps_arena_create();
    cps_mark none = cps_arena_mark(a);
    char *keep = cps_arena_strdup(a, "kept");
    for (int i = 0; i < 50; i++) {
        cps_mark m = cps_arena_mark(a);
        char *first = cps_arena_raw(a, 10);
        memset(first, 1, 10);
        memset(cps_arena_raw(a, 100000), 2, 100000);
        cps_mark inner = cps_arena_mark(a);
        memset(cps_arena_alloc(a, 5000000), 3, 5000000);
        cps_arena_release(a, inner);
        cps_arena_release(a, m);
        CHECK(cps_arena_raw(a, 10) == first); // the space is used again
        cps_arena_release(a, m);
    }
    CHECK_STR(keep, "kept");
    cps_arena_release(a, none);
    CHECK_STR(cps_arena_strdup(a, "again"), "again");
    cps_arena_destroy(a);
}

static void
text(void)
{
    cps_arena *a = cps_arena_create();
    CHECK_STR(cps_arena_printf(a, "%d-%s", 42, "x"), "42-x");
    CHECK_STR(cps_arena_printf(a, "%0300d", 7) + 297, "007");
    CHECK_STR(cps_arena_strndup(a, "abcdef", 3), "abc");
    CHECK_STR(cps_arena_strndup(a, NULL, 0), "");
    cps_arena_destroy(a);
}

// Large vectors that grow side by side, some of them behind a mark.
static void
large_vectors(void)
{
    enum { VECS = 3, N = 300000 };
    cps_arena *a = cps_arena_create();
    for (int round = 0; round < 3; round++) {
        CPS_VEC(uint64_t) v[VECS] = {{0}}, w = {0};
        for (uint64_t i = 0; i < N; i++)
            for (uint64_t k = 0; k < VECS; k++)
                cps_vec_push(a, &v[k], i * VECS + k);
        cps_mark m = cps_arena_mark(a);
        for (uint64_t i = 0; i < N; i++)
            cps_vec_push(a, &w, ~i);
        bool same = true;
        for (uint64_t i = 0; i < N; i++)
            same = same && w.data[i] == ~i;
        cps_arena_release(a, m);
        CPS_VEC(uint64_t) gone = {0};
        cps_vec_reserve(a, &gone, N);
        cps_vec_drop(a, &gone);
        CHECK(!gone.data && !gone.cap);
        cps_vec_push(a, &gone, 7);
        cps_vec_drop(a, &gone); // a small one stays where it is, but is empty
        CHECK_INT(gone.n, 0);
        for (uint64_t i = N; i < N + 1000; i++)
            for (uint64_t k = 0; k < VECS; k++)
                cps_vec_push(a, &v[k], i * VECS + k);
        for (uint64_t i = 0; i < N + 1000; i++)
            for (uint64_t k = 0; k < VECS; k++)
                same = same && v[k].data[i] == i * VECS + k;
        CHECK(same);
    }
    cps_arena_destroy(a);
}

// A mark that is set and released at the end of a block, again and again.
static void
marks_at_an_edge(void)
{
    cps_arena *a = cps_arena_create();
    char *last = NULL;
    cps_arena_raw(a, 3u << 20);
    for (int i = 0; i < 100; i++) {
        cps_mark m = cps_arena_mark(a);
        char *p = cps_arena_raw(a, 1000000);
        memset(p, i, 1000000);
        CHECK(!last || p == last); // not given back and asked for anew
        last = p;
        cps_arena_release(a, m);
    }
    CHECK(cps_arena_raw(a, 16u << 20) != NULL); // larger than what was released
    cps_arena_destroy(a);
}

typedef struct pair {
    int a;
    double b;
} pair;

static void
vectors(void)
{
    cps_arena *a = cps_arena_create();
    CPS_VEC(int) v = {0};
    for (int i = 0; i < 100000; i++)
        cps_vec_push(a, &v, i * 3);
    CHECK_INT(v.n, 100000);
    bool same = true;
    for (int i = 0; i < 100000; i++)
        same = same && v.data[i] == i * 3;
    CHECK(same);
    CPS_VEC(pair) p = {0};
    cps_vec_reserve(a, &p, 3);
    memset(p.data, 0xff, 3 * sizeof(pair));
    for (int i = 0; i < 20; i++) {
        pair *x = cps_vec_add(a, &p);
        CHECK(x->a == 0 && x->b == 0);
        x->a = i;
    }
    CHECK_INT(p.n, 20);
    CHECK_INT(p.data[19].a, 19);
    cps_arena_destroy(a);
}

int
main(void)
{
    allocation();
    marks();
    text();
    vectors();
    large_vectors();
    marks_at_an_edge();
    return CHECK_DONE();
}
