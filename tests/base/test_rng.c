/* Seeded inputs: fixed values (a change here changes every seeded result), ranges, moments.
 * The first splitmix64 values for state 0 are those of its reference implementation. */
#include "runtime/base/rng.h"
#include "tests/check.h"

#include <math.h>

static void
fixed(void)
{
    cps_rng r = {0};
    CHECK(cps_rng_next(&r) == 0xe220a8397b1dcdafu);
    CHECK(cps_rng_next(&r) == 0x6e789e6aa1b965f4u);
    CHECK(cps_rng_next(&r) == 0x06c45d188009454fu);
    cps_rng a, b;
    cps_rng_init(&a, 1, 2);
    cps_rng_init(&b, 1, 2);
    for (int i = 0; i < 100; i++)
        CHECK(cps_rng_normal(&a) == cps_rng_normal(&b));
    // Seeds and indices are not interchangeable, and neighbours differ.
    uint64_t s[5][5];
    for (uint64_t i = 0; i < 25; i++) {
        cps_rng_init(&a, i / 5, i % 5);
        s[i / 5][i % 5] = a.s;
        for (uint64_t k = 0; k < i; k++)
            CHECK(s[k / 5][k % 5] != a.s);
    }
}

static void
ranges(void)
{
    cps_rng r;
    cps_rng_init(&r, 7, 0);
    unsigned bucket[10] = {0};
    bool inside = true;
    for (int i = 0; i < 100000; i++) {
        double u = cps_rng_uniform(&r);
        uint64_t k = cps_rng_below(&r, 10);
        inside = inside && u >= 0 && u < 1 && k < 10;
        bucket[k % 10]++;
    }
    CHECK(inside);
    for (int i = 0; i < 10; i++)
        CHECK(bucket[i] > 9500 && bucket[i] < 10500);
    for (int i = 0; i < 1000; i++)
        CHECK(cps_rng_below(&r, 1) == 0);
    for (int i = 0; i < 1000; i++) // every second draw is thrown away
        CHECK(cps_rng_below(&r, (UINT64_C(1) << 63) + 1) <= UINT64_C(1) << 63);
    bool high = false;
    for (int i = 0; i < 100; i++)
        high = cps_rng_below(&r, UINT64_MAX) > UINT64_MAX / 2 || high;
    CHECK(high);
}

static void
moments(void)
{
    enum { N = 200000 };
    cps_rng r;
    cps_rng_init(&r, 11, 3);
    double m[4] = {0}, largest = 0;
    for (int i = 0; i < N; i++) {
        double x = cps_rng_normal(&r), p = x;
        for (int k = 0; k < 4; k++, p *= x)
            m[k] += p / N;
        largest = fmax(largest, fabs(x));
    }
    CHECK(fabs(m[0]) < 0.01);
    CHECK(fabs(m[1] - 1) < 0.015);
    CHECK(fabs(m[2]) < 0.04);
    CHECK(fabs(m[3] - 3) < 0.1);
    CHECK(largest > 4 && largest < 6.5);
}

int
main(void)
{
    fixed();
    ranges();
    moments();
    return CHECK_DONE();
}
