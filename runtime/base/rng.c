/* Seeded inputs, bit for bit the same on every machine.
 *
 * The definition, as LANGUAGE.md gives it (uint64 wraps, doubles are IEEE binary64, one
 * rounding per operation, no fused multiply-add):
 *
 *   mix(x):   x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9
 *             x = (x ^ x >> 27) * 0x94d049bb133111eb
 *             x ^ x >> 31
 *   start:    s = mix(mix(seed) + index + 1)
 *   next:     s = s + 0x9e3779b97f4a7c15; mix(s)                        (splitmix64)
 *   uniform:  (next >> 11) * 2^-53                                      in [0, 1)
 *   below(b): the high 64 bits of next * b, where a draw whose low 64 bits are under
 *             2^64 mod b is thrown away                                  in [0, b)
 *   normal:   u = 1 - uniform; v = 1 - uniform; sqrt(-2 log u) * cos2pi(v)   (Box-Muller, the
 *             sine is not used: a normal always costs two draws)
 *   log(x):   x = m 2^e with m in [sqrt(1/2), sqrt(2)); t = (m - 1) / (m + 1); z = t t;
 *             p = 1/25; p = p z + 1/k for k = 23, 21 ... 1; e * 0.6931471805599453 + 2 t p
 *   cos2pi(v): k = floor(4 v + 1/2); r = (v - k / 4) * 6.283185307179586; z = r r;
 *             k mod 4 = 0: C, 1: -S, 2: -C, 3: S, where C = sum (-z)^i / (2i)! for i =
 *             8 ... 0 and S = r sum (-z)^i / (2i+1)! for i = 8 ... 0, both by Horner's rule
 *
 * Nothing of libm but sqrt is used (IEEE rounds it correctly), so no library changes a bit. */
#include "runtime/base/rng.h"

#include <math.h>
#include <string.h>

static uint64_t
mix(uint64_t x)
{
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

void
cps_rng_init(cps_rng *r, uint64_t seed, uint64_t index)
{
    r->s = mix(mix(seed) + index + 1);
}

uint64_t
cps_rng_next(cps_rng *r)
{
    r->s += 0x9e3779b97f4a7c15u;
    return mix(r->s);
}

double
cps_rng_uniform(cps_rng *r)
{
    return (double)(cps_rng_next(r) >> 11) * 0x1p-53;
}

uint64_t
cps_rng_below(cps_rng *r, uint64_t bound)
{
    cps_assert(bound > 0);
    uint64_t skip = (0 - bound) % bound; // 2^64 mod bound
    for (;;) {
        unsigned __int128 p = (unsigned __int128)cps_rng_next(r) * bound;
        if ((uint64_t)p >= skip)
            return (uint64_t)(p >> 64);
    }
}

// x normal and positive.
static double
own_log(double x)
{
    uint64_t b;
    memcpy(&b, &x, 8);
    int e = (int)(b >> 52) - 1023;
    b = (b & 0xfffffffffffffu) | 0x3ff0000000000000u;
    double m;
    memcpy(&m, &b, 8);
    if (m >= 1.4142135623730951) {
        m *= 0.5;
        e++;
    }
    double t = (m - 1) / (m + 1), z = t * t, p = 1.0 / 25;
    for (int k = 23; k >= 1; k -= 2)
        p = p * z + 1.0 / k;
    return e * 0.6931471805599453 + 2 * t * p;
}

// v in (0, 1].
static double
cos_turns(double v)
{
    // 1 / (2i)! and 1 / (2i+1)!
    static const double even[] = {
        1.0,           1.0 / 2,         1.0 / 24,          1.0 / 720,           1.0 / 40320,
        1.0 / 3628800, 1.0 / 479001600, 1.0 / 87178291200, 1.0 / 20922789888000};
    static const double odd[] = {
        1.0,            1.0 / 6,          1.0 / 120,           1.0 / 5040, 1.0 / 362880,
        1.0 / 39916800, 1.0 / 6227020800, 1.0 / 1307674368000, 1.0 / 355687428096000};
    int k = (int)(4 * v + 0.5);
    double r = (v - 0.25 * k) * 6.283185307179586, z = r * r;
    const double *c = k & 1 ? odd : even;
    double p = c[8];
    for (int i = 7; i >= 0; i--)
        p = c[i] - p * z;
    if (k & 1)
        p *= r;
    k &= 3;
    return k == 1 || k == 2 ? -p : p;
}

double
cps_rng_normal(cps_rng *r)
{
    double u = 1 - cps_rng_uniform(r), v = 1 - cps_rng_uniform(r);
    return sqrt(-2 * own_log(u)) * cos_turns(v);
}
