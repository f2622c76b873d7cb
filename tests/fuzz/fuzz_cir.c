/* Graph text that is accepted prints, and what prints reads back and prints the same. */
#include "tests/fuzz/fuzz.h"

#include "ir/build.h"

bool
fuzz_cir(cps_arena *a, const uint8_t *p, size_t n, cps_diags *d)
{
    uint32_t src = cps_diags_source(d, "mutant.cir", (const char *)p, n);
    cps_module *m = cps_ir_parse(a, (const char *)p, n, src, d, NULL, NULL);
    if (!m || !cps_ir_verify(m, d))
        return false;
    cps_buf one = {0}, two = {0};
    cps_ir_print(m, &one);
    cps_module *again = cps_ir_parse(a, one.data, one.n, 0, d, NULL, NULL);
    FUZZ_CHECK(again != NULL);
    if (again) {
        cps_ir_print(again, &two);
        FUZZ_CHECK(one.n == two.n && memcmp(one.data, two.data, one.n) == 0);
    }
    cps_buf_fini(&one);
    cps_buf_fini(&two);
    return true;
}
