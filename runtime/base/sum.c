/* XXH3 of one text, and of two that count as one without being joined. Compiled twice where the
 * processor may have AVX2 (CMakeLists.txt): the library takes the vectors the compiler may use. */
#include "runtime/base/sum.h"

#include "runtime/base/hash.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#ifndef SUM
#define SUM cps_sum_plain
#endif

static cps_sum_pair
one(const void *p, size_t n, const uint8_t *secret)
{
    XXH128_hash_t h = secret ? XXH3_128bits_withSecret(p, n, secret, CPS_SECRET_BYTES) : XXH3_128bits(p, n);
    return (cps_sum_pair){h.low64, h.high64};
}

static cps_sum_pair
two(const void *p, size_t n, const void *q, size_t m)
{
    XXH3_state_t s;
    XXH3_128bits_reset(&s);
    XXH3_128bits_update(&s, p, n);
    XXH3_128bits_update(&s, q, m);
    XXH128_hash_t h = XXH3_128bits_digest(&s);
    return (cps_sum_pair){h.low64, h.high64};
}

const cps_sum_with SUM = {one, two};
