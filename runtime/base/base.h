/* The bottom of the project: attributes and the one way to stop on our own mistakes.
 * Includes libc only. */
#ifndef CPS_BASE_BASE_H
#define CPS_BASE_BASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CPS_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#define CPS_NORETURN __attribute__((noreturn))
#define CPS_UNUSED __attribute__((unused))
#define cps_countof(a) (sizeof(a) / sizeof((a)[0]))

#define CPS_MIN(a, b) ((a) < (b) ? (a) : (b))
#define CPS_MAX(a, b) ((a) > (b) ? (a) : (b))

/* Exit codes of the program: a contract (design, command line). */
typedef enum cps_exit {
    CPS_OK = 0,
    CPS_BAD_INPUT = 1,
    CPS_USAGE = 2,
    CPS_DIFFERS = 3,
    CPS_NO_FIT = 4,
    CPS_DECLINED = 5,
    CPS_OUR_BUG = 70,
    CPS_IO = 74
} cps_exit;

/* Our own mistake: prints place and text, then aborts (the driver turns that into exit 70). */
#define cps_bug(...) cps_bug_at(__FILE__, __LINE__, __VA_ARGS__)
void cps_bug_at(const char *file, int line, const char *fmt, ...) CPS_PRINTF(3, 4) CPS_NORETURN;

/* No memory left: a message on stderr, then the process ends with CPS_IO. Never returns NULL to
 * anybody, so no caller has a half-built structure to unwind. */
void cps_out_of_memory(size_t bytes) CPS_NORETURN;

/* A condition that only our own mistake can break. Checked in every build. */
#define cps_assert(c)                                                                            \
    do {                                                                                         \
        if (!(c))                                                                                \
            cps_bug("'%s' does not hold", #c);                                                   \
    } while (0)

static inline int64_t
cps_ceil_div(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

static inline int64_t
cps_round_up(int64_t a, int64_t b)
{
    return cps_ceil_div(a, b) * b;
}

#endif
