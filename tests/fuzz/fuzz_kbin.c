/* A packed kernel comes out whole, or a reason why not. */
#include "tests/fuzz/fuzz.h"

#include "runtime/pkg/kbin.h"

bool
fuzz_kbin(cps_arena *a, const uint8_t *p, size_t n, cps_diags *d)
{
    (void)d;
    const char *why = NULL;
    cps_kbin *k = cps_kbin_unpack(a, p, n, &why);
    FUZZ_CHECK(k != NULL || why != NULL);
    return k != NULL;
}
