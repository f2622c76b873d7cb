/* An array is parsed and widened, or there is a reason why not. */
#include "tests/fuzz/fuzz.h"

#include "runtime/base/npy.h"

bool
fuzz_npy(cps_arena *a, const uint8_t *p, size_t n, cps_diags *d)
{
    (void)d;
    cps_npy f;
    const char *why = NULL;
    if (!cps_npy_parse(p, n, &f, &why)) {
        FUZZ_CHECK(why != NULL);
        return false;
    }
    size_t at;
    cps_npy_convert(&f, CPS_DT_FP32, cps_arena_raw(a, f.count * 4 + 1), &at, &why);
    return true;
}
