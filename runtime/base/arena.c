/* Bump arenas, and the growth step of vec.h.
 *
 * In: sizes. Out: memory aligned to 16 that lives until a release or the end of the arena.
 * Holds a chain of blocks, newest first; a mark is a block and its fill, so that a release
 * frees the newer blocks whole. Under AddressSanitizer every byte that was not handed out is
 * poisoned and allocations have a gap between them, so overruns inside a block are seen; the
 * checking build fills raw memory so that nobody relies on zeros. Not thread-safe: one arena,
 * one thread. */
#include "runtime/base/arena.h"
#include "runtime/base/vec.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined(__SANITIZE_ADDRESS__)
#define ARENA_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define ARENA_ASAN 1
#endif
#endif

#ifdef ARENA_ASAN
#include <sanitizer/asan_interface.h>
#define poison(p, n) ASAN_POISON_MEMORY_REGION((p), (n))
#define unpoison(p, n) ASAN_UNPOISON_MEMORY_REGION((p), (n))
enum { GAP = 16 };
#else
#define poison(p, n) ((void)(p), (void)(n))
#define unpoison(p, n) ((void)(p), (void)(n))
enum { GAP = 0 };
#endif

enum { ALIGN = 16 };

static const size_t first_block = 16u << 10;
static const size_t largest_block = 1u << 20;

typedef struct block {
    struct block *older;
    size_t size; // usable bytes
    size_t used;
    size_t pad; // keeps the payload on 16
} block;

_Static_assert(sizeof(block) % ALIGN == 0, "the payload follows the block head");

struct cps_arena {
    block *top;
    size_t next_size;
    size_t handed_out;
};

static inline uint8_t *
payload(block *b)
{
    return (uint8_t *)(b + 1);
}

static inline size_t
round_up(size_t bytes)
{
    return (CPS_MAX(bytes, (size_t)1) + ALIGN - 1) / ALIGN * ALIGN;
}

cps_arena *
cps_arena_create(void)
{
    cps_arena *a = calloc(1, sizeof(*a));
    if (!a)
        cps_out_of_memory(sizeof(*a));
    a->next_size = first_block;
    return a;
}

static void
drop_top(cps_arena *a)
{
    block *b = a->top;
    a->top = b->older;
    unpoison(payload(b), b->size);
    free(b);
}

void
cps_arena_destroy(cps_arena *a)
{
    if (!a)
        return;
    while (a->top)
        drop_top(a);
    free(a);
}

static void
add_block(cps_arena *a, size_t need)
{
    size_t size = CPS_MAX(a->next_size, need);
    block *b = malloc(sizeof(*b) + size);
    if (!b)
        cps_out_of_memory(size);
    *b = (block){.older = a->top, .size = size};
    poison(payload(b), size);
    a->top = b;
    a->next_size = CPS_MIN(a->next_size * 2, largest_block);
}

void *
cps_arena_raw(cps_arena *a, size_t bytes)
{
    if (bytes > PTRDIFF_MAX / 2)
        cps_out_of_memory(bytes);
    size_t step = round_up(bytes) + GAP;
    if (!a->top || a->top->size - a->top->used < step)
        add_block(a, step);
    void *p = payload(a->top) + a->top->used;
    a->top->used += step;
    a->handed_out += bytes;
    unpoison(p, bytes);
#ifdef CPS_TEST_BUILD
    memset(p, 0xA5, bytes);
#endif
    return p;
}

void *
cps_arena_alloc(cps_arena *a, size_t bytes)
{
    return memset(cps_arena_raw(a, bytes), 0, bytes);
}

cps_mark
cps_arena_mark(cps_arena *a)
{
    return (cps_mark){a->top, a->top ? a->top->used : 0};
}

void
cps_arena_release(cps_arena *a, cps_mark m)
{
    while (a->top && a->top != m.block)
        drop_top(a);
    cps_assert(a->top == m.block);
    if (!a->top)
        return;
    cps_assert(m.used <= a->top->used);
    a->top->used = m.used;
    poison(payload(a->top) + m.used, a->top->size - m.used);
}

size_t
cps_arena_bytes(const cps_arena *a)
{
    return a->handed_out;
}

char *
cps_arena_vprintf(cps_arena *a, const char *fmt, va_list ap)
{
    va_list again;
    va_copy(again, ap);
    int n = vsnprintf(NULL, 0, fmt, ap);
    cps_assert(n >= 0);
    char *s = cps_arena_raw(a, (size_t)n + 1);
    vsnprintf(s, (size_t)n + 1, fmt, again);
    va_end(again);
    return s;
}

char *
cps_arena_printf(cps_arena *a, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    char *s = cps_arena_vprintf(a, fmt, ap);
    va_end(ap);
    return s;
}

char *
cps_arena_strndup(cps_arena *a, const char *s, size_t n)
{
    char *t = cps_arena_raw(a, n + 1);
    if (n)
        memcpy(t, s, n);
    t[n] = 0;
    return t;
}

char *
cps_arena_strdup(cps_arena *a, const char *s)
{
    return cps_arena_strndup(a, s, strlen(s));
}

// Whether the allocation of `old` bytes at `p` is the last one and can have `bytes` where it is.
static bool
extend(cps_arena *a, void *p, size_t old, size_t bytes)
{
    block *b = a->top;
    if (GAP != 0 || !old || !b || (uint8_t *)p + round_up(old) != payload(b) + b->used ||
        b->size - b->used < round_up(bytes) - round_up(old))
        return false;
    b->used += round_up(bytes) - round_up(old);
    a->handed_out += bytes - old;
#ifdef CPS_TEST_BUILD
    memset((uint8_t *)p + old, 0xA5, bytes - old);
#endif
    return true;
}

void *
cps_vec_grow(cps_arena *a, void *data, uint32_t n, uint32_t *cap, uint32_t want, size_t elem)
{
    // `want` wraps to a small number only when a vector of 2^32 elements grows.
    cps_assert(want > *cap && n <= *cap);
    uint64_t c = CPS_MAX((uint64_t)*cap * 2, (uint64_t)8);
    c = CPS_MIN(CPS_MAX(c, (uint64_t)want), (uint64_t)UINT32_MAX);
    size_t bytes;
    if (__builtin_mul_overflow((size_t)c, elem, &bytes))
        cps_out_of_memory(SIZE_MAX);
    if (extend(a, data, *cap * elem, bytes)) {
        *cap = (uint32_t)c;
        return data;
    }
    void *p = cps_arena_raw(a, bytes);
    if (n)
        memcpy(p, data, n * elem);
    *cap = (uint32_t)c;
    return p;
}
