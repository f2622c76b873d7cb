/* Bump arenas, and the growth step of vec.h.
 *
 * In: sizes. Out: memory aligned to 16 that lives until a release or the end of the arena.
 * Holds a chain of blocks, newest first; a mark is a block and its fill, so that a release
 * frees the newer blocks whole. Blocks of full size are whole huge pages where the system gives
 * any: a compiler touches its memory once, and faults by 4 KiB were a quarter of its time.
 * A vector that becomes large moves once more, to a block of its own with room to grow in: memory
 * that is not touched costs nothing, copies left behind would. Under AddressSanitizer every byte that was not handed out is
 * poisoned and allocations have a gap between them, so overruns inside a block are seen; the
 * checking build fills raw memory so that nobody relies on zeros. Not thread-safe: one arena,
 * one thread. */
#include "runtime/base/arena.h"
#include "runtime/base/vec.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

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
static const size_t largest_block = 2u << 20; // a huge page of x86-64
static const size_t wide_vector = 256u << 10; // bytes from which a vector has a block of its own:
static const size_t wide_room = 4;             // so many times what it takes then, but at most this, or
static const size_t wide_most = 64u << 20;     // twice what it takes; more room would mostly be memory that
                                               // was used before, so others could have it

typedef struct block {
    struct block *older;
    size_t size; // usable bytes
    size_t used;
    size_t pad; // keeps the payload on 16
} block;

_Static_assert(sizeof(block) % ALIGN == 0, "the payload follows the block head");

struct cps_arena {
    block *top;
    block *wide;  // blocks of one large vector each, newest first
    block *spare; // the last one released: marks set and released near a block's end come back to it
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
drop(block *b)
{
    unpoison(payload(b), b->size);
    free(b);
}

static void
drop_top(cps_arena *a)
{
    block *b = a->top;
    a->top = b->older;
    if (a->spare)
        drop(a->spare);
    a->spare = b;
    poison(payload(b), b->size);
}

static void
drop_wide(cps_arena *a, const block *until)
{
    while (a->wide != until) {
        block *b = a->wide;
        a->wide = b->older;
        drop(b);
    }
}

void
cps_arena_destroy(cps_arena *a)
{
    if (!a)
        return;
    while (a->top)
        drop_top(a);
    drop_wide(a, NULL);
    if (a->spare)
        drop(a->spare);
    free(a);
}

// A wish, for whole huge pages and one more: the heap writes its own words behind a block, and a
// page of usual size there would keep the next block from a huge one. Where it is not granted, it
// is memory like any other.
static void
want_huge(uintptr_t from, uintptr_t to)
{
#ifdef MADV_HUGEPAGE
    const uintptr_t page = largest_block;
    from = from / page * page;
    to = (to + page - 1) / page * page + page;
    madvise((void *)from, to - from, MADV_HUGEPAGE);
#else
    (void)from, (void)to;
#endif
}

static block *
new_block(size_t size, block *older)
{
    block *b = malloc(sizeof(*b) + size);
    if (!b)
        cps_out_of_memory(size);
    if (size >= largest_block)
        want_huge((uintptr_t)b, (uintptr_t)b + sizeof *b + size);
    *b = (block){.older = older, .size = size};
    poison(payload(b), size);
    return b;
}

static void
add_block(cps_arena *a, size_t need)
{
    block *b = a->spare;
    if (b && b->size >= need) {
        a->spare = NULL;
        *b = (block){.older = a->top, .size = b->size};
        a->top = b;
        return;
    }
    a->top = new_block(CPS_MAX(a->next_size, need), a->top);
    a->next_size = CPS_MIN(a->next_size + a->next_size / 4, largest_block); // so little is left over
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
    return (cps_mark){a->top, a->wide, a->top ? a->top->used : 0};
}

void
cps_arena_release(cps_arena *a, cps_mark m)
{
    while (a->top && a->top != m.block)
        drop_top(a);
    cps_assert(a->top == m.block);
    drop_wide(a, m.wide);
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

// Whether the allocation of `old` bytes at `p` in `b` is the last one and can have `bytes` there.
static bool
extend_in(cps_arena *a, block *b, void *p, size_t old, size_t bytes)
{
    if ((uint8_t *)p + round_up(old) != payload(b) + b->used ||
        b->size - b->used < round_up(bytes) - round_up(old))
        return false;
    b->used += round_up(bytes) - round_up(old);
    a->handed_out += bytes - old;
#ifdef CPS_TEST_BUILD
    memset((uint8_t *)p + old, 0xA5, bytes - old);
#endif
    return true;
}

static bool
extend(cps_arena *a, void *p, size_t old, size_t bytes)
{
    if (GAP != 0 || !old)
        return false;
    for (block *b = a->wide; b; b = b->older)
        if (payload(b) == p)
            return extend_in(a, b, p, old, bytes);
    return a->top && extend_in(a, a->top, p, old, bytes);
}

// Room for a vector of `bytes`, of its own when it is large; what is reserved before anything is in it
// has its size.
static void *
room(cps_arena *a, size_t bytes, bool grows)
{
    if (GAP != 0 || bytes < wide_vector || bytes > PTRDIFF_MAX / 2 / wide_room)
        return cps_arena_raw(a, bytes);
    size_t most = grows ? CPS_MAX(wide_most, 2 * bytes) : bytes;
    a->wide = new_block(round_up(CPS_MIN(bytes * wide_room, most)), a->wide);
    a->wide->used = round_up(bytes);
    a->handed_out += bytes;
#ifdef CPS_TEST_BUILD
    memset(payload(a->wide), 0xA5, bytes);
#endif
    return payload(a->wide);
}

void *
cps_vec_grow(cps_arena *a, void *data, uint32_t n, uint32_t *cap, uint32_t want, size_t elem)
{
    // `want` wraps to a small number only when a vector of 2^32 elements grows.
    cps_assert(want > *cap && n <= *cap);
    // What is reserved has its size; what a push begins (or who reserves one) has room for some more.
    uint64_t c = want == 1 ? 8 : (uint64_t)*cap * 2;
    c = CPS_MIN(CPS_MAX(c, (uint64_t)want), (uint64_t)UINT32_MAX);
    size_t bytes;
    if (__builtin_mul_overflow((size_t)c, elem, &bytes))
        cps_out_of_memory(SIZE_MAX);
    if (extend(a, data, *cap * elem, bytes)) {
        *cap = (uint32_t)c;
        return data;
    }
    void *p = room(a, bytes, n > 0);
    if (n)
        memcpy(p, data, n * elem);
    *cap = (uint32_t)c;
    return p;
}

void
cps_vec_give_back(cps_arena *a, void *data)
{
    for (block **at = &a->wide; data && *at; at = &(*at)->older) {
        block *b = *at;
        if (payload(b) != data)
            continue;
        *at = b->older;
        drop(b);
        return;
    }
}
