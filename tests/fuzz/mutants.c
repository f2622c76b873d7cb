/* Malformed inputs of every kind, in one process (meant for the sanitizer build): a seed file
 * is damaged at random and given to its reader. Whatever comes out must be a value or
 * diagnostics; text levels must also read back what they print.
 *
 *   mutants COUNT SEED KIND...    KIND: a row of kind.def */
#include "runtime/base/rng.h"
#include "tests/check.h"
#include "tests/fuzz/fuzz.h"

typedef struct bytes {
    uint8_t *p;
    size_t n;
} bytes;

typedef struct kind {
    const char *name;
    fuzz_reader *read;
    fuzz_seeder *seed;
} kind;

static cps_rng rng;

static size_t
below(size_t n)
{
    return n ? (size_t)cps_rng_below(&rng, n) : 0;
}

static bytes
mutate(cps_arena *a, const bytes *seed)
{
    bytes m = {cps_arena_raw(a, seed->n * 2 + 4096), seed->n};
    memcpy(m.p, seed->p, seed->n);
    for (size_t k = 0, times = 1 + below(4); k < times; k++) {
        size_t at = below(m.n), len = 1 + below(32);
        switch (below(6)) {
        case 0: // cut
            m.n = at;
            break;
        case 1: // damage
            for (size_t i = 0; i < len && at + i < m.n; i++)
                m.p[at + i] = (uint8_t)below(256);
            break;
        case 2: // a huge length, in the way varints and little-endian words spell it
            for (size_t i = 0; i < 10 && at + i < m.n; i++)
                m.p[at + i] = 0xff;
            break;
        case 3: // say it twice
            len = CPS_MIN(len * 8, m.n - at);
            if (m.n + len <= seed->n * 2 + 4096) {
                memmove(m.p + at + len, m.p + at, m.n - at);
                m.n += len;
            }
            break;
        case 4: // leave out
            len = CPS_MIN(len, m.n - at);
            memmove(m.p + at, m.p + at + len, m.n - at - len);
            m.n -= len;
            break;
        default: // one bit
            if (m.n)
                m.p[at] ^= (uint8_t)(1u << below(8));
        }
    }
    m.p[m.n] = 0;
    return m;
}

static const kind kinds[] = {
#define FUZZ_KIND(name, ...) {#name, fuzz_##name, seed_##name},
#include "tests/fuzz/kind.def"
};

static void
run(const kind *k, unsigned count, uint64_t seed_number)
{
    cps_arena *keep = cps_arena_create();
    cps_buf made = {0};
    CHECK(k->seed(keep, &made));
    bytes seed = {(uint8_t *)made.data, made.n};
    // The seed itself is accepted, or the mutants prove little.
    cps_diags *d = cps_diags_create();
    CHECK(k->read(keep, seed.p, seed.n, d));
    cps_diags_destroy(d);
    cps_rng_init(&rng, seed_number, (uint64_t)(k - kinds));
    unsigned refused = 0;
    for (unsigned i = 0; i < count; i++) {
        cps_arena *a = cps_arena_create();
        d = cps_diags_create();
        bytes m = mutate(a, &seed);
        refused += !k->read(a, m.p, m.n, d);
        cps_buf text = {0};
        cps_diags_render(d, &text, false); // places in damaged text must render too
        cps_buf_fini(&text);
        cps_diags_destroy(d);
        cps_arena_destroy(a);
    }
    CHECK(refused > 0);
    printf("%-5s %u mutants, %u refused\n", k->name, count, refused);
    fflush(stdout);
    cps_buf_fini(&made);
    cps_arena_destroy(keep);
}

int
main(int argc, char **argv)
{
    unsigned count = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 2000;
    uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
    for (unsigned i = 0; i < cps_countof(kinds); i++) {
        bool want = argc <= 3;
        for (int k = 3; k < argc; k++)
            want = want || !strcmp(argv[k], kinds[i].name);
        if (want)
            run(&kinds[i], count, seed);
    }
    return CHECK_DONE();
}
