/* A file of tuned choices that is accepted prints, and what prints reads back and prints the same. */
#include "tests/fuzz/fuzz.h"

#include "kernels/tuned.h"

bool
fuzz_tuned(cps_arena *a, const uint8_t *p, size_t n, cps_diags *d)
{
    cps_tuned *t = cps_tuned_parse(a, "mutant.tuned", (const char *)p, n, d);
    if (!t)
        return false;
    cps_buf one = {0}, two = {0};
    cps_tuned_print(t, &one);
    cps_tuned *again = cps_tuned_parse(a, "printed.tuned", one.data, one.n, d);
    FUZZ_CHECK(again != NULL);
    if (again) {
        cps_tuned_print(again, &two);
        FUZZ_CHECK(one.n == two.n && memcmp(one.data, two.data, one.n) == 0);
    }
    cps_buf_fini(&one);
    cps_buf_fini(&two);
    return true;
}
