/* The whole unit-test framework: CHECK counts, a failed one prints its place, and the program
 * ends with CHECK_DONE() as its exit code. */
#ifndef CPS_TESTS_CHECK_H
#define CPS_TESTS_CHECK_H

#include <stdio.h>
#include <string.h>

static int check_ran, check_failed;

#define CHECK(c)                                                                                 \
    do {                                                                                         \
        check_ran++;                                                                             \
        if (!(c)) {                                                                              \
            check_failed++;                                                                      \
            fprintf(stderr, "%s:%d: CHECK(%s) failed\n", __FILE__, __LINE__, #c);                \
        }                                                                                        \
    } while (0)

#define CHECK_STR(got, want)                                                                     \
    do {                                                                                         \
        const char *check_g = (got), *check_w = (want);                                          \
        check_ran++;                                                                             \
        if (!check_g || strcmp(check_g, check_w) != 0) {                                         \
            check_failed++;                                                                      \
            fprintf(stderr, "%s:%d: got\n%s\nwant\n%s\n", __FILE__, __LINE__,                    \
                    check_g ? check_g : "(null)", check_w);                                      \
        }                                                                                        \
    } while (0)

#define CHECK_INT(got, want)                                                                     \
    do {                                                                                         \
        long long check_g = (long long)(got), check_w = (long long)(want);                       \
        check_ran++;                                                                             \
        if (check_g != check_w) {                                                                \
            check_failed++;                                                                      \
            fprintf(stderr, "%s:%d: %s is %lld, want %lld\n", __FILE__, __LINE__, #got, check_g, \
                    check_w);                                                                    \
        }                                                                                        \
    } while (0)

/* A run that checked nothing has failed. */
#define CHECK_DONE()                                                                             \
    (printf("%d checks, %d failed\n", check_ran, check_failed), check_failed || !check_ran)

#endif
