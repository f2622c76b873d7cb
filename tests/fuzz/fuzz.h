/* Readers of untrusted input, one a file (fuzz_NAME.c), under one signature: what the mutants
 * and the coverage-guided fuzzers feed, and the table of both (kind.def). */
#ifndef CPS_TESTS_FUZZ_H
#define CPS_TESTS_FUZZ_H

#include "runtime/base/diag.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* True when the input was accepted. A zero byte follows the n bytes for kinds that are TEXT. */
typedef bool fuzz_reader(cps_arena *a, const uint8_t *p, size_t n, cps_diags *d);
/* Bytes that the reader accepts; false when they could not be made. */
typedef bool fuzz_seeder(cps_arena *a, cps_buf *out);

#define FUZZ_KIND(name, ...)                                                                   \
    fuzz_reader fuzz_##name;                                                                   \
    fuzz_seeder seed_##name;
#include "tests/fuzz/kind.def"

/* What no input may break. */
#define FUZZ_CHECK(c)                                                                          \
    do {                                                                                       \
        if (!(c)) {                                                                            \
            fprintf(stderr, "%s:%d: '%s' does not hold\n", __FILE__, __LINE__, #c);            \
            abort();                                                                           \
        }                                                                                      \
    } while (0)

#endif
