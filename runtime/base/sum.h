/* Private to hash.c: XXH3 with the vectors of one instruction set. Every one gives the same sums. */
#ifndef CPS_BASE_SUM_H
#define CPS_BASE_SUM_H

#include "runtime/base/base.h"

typedef struct cps_sum_pair {
    uint64_t low, high;
} cps_sum_pair;

typedef struct cps_sum_with {
    cps_sum_pair (*one)(const void *p, size_t n, const uint8_t *secret);
    cps_sum_pair (*two)(const void *p, size_t n, const void *q, size_t m); /* q behind p */
} cps_sum_with;

extern const cps_sum_with cps_sum_plain, cps_sum_avx2;

#endif
