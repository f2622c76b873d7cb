/* A container comes out as members or is refused with a diagnostic; what came out can be
 * described, printed as JSON that parses, run or refused, and written so that it reads back. */
#include "tests/fuzz/fuzz.h"

#include "runtime/pkg/neff_graph.h"
#include "runtime/pkg/neff_pack.h"

bool
fuzz_neff(cps_arena *a, const uint8_t *p, size_t n, cps_diags *d)
{
    cps_neff *f = cps_neff_read(a, p, n, (uint64_t)64 << 20, d);
    FUZZ_CHECK(f != NULL || cps_diags_errors(d) > 0);
    if (!f)
        return false;
    const char *why = NULL;
    size_t at;
    cps_buf out = {0};
    cps_neff_info *i = cps_neff_describe(a, f, d);
    cps_neff_print_json(i, CPS_V3, &out);
    FUZZ_CHECK(cps_json_parse(a, out.data, out.n, &why, &at) != NULL);
    cps_neff_print_text(i, CPS_V3, &out);
    unsigned before = cps_diags_errors(d);
    cps_package *program = cps_neff_package(a, f, d);
    FUZZ_CHECK(program != NULL || cps_diags_errors(d) > before);
    out.n = 0;
    FUZZ_CHECK(cps_neff_write(f, &out, d));
    cps_neff *again = cps_neff_read(a, (const uint8_t *)out.data, out.n, 0, d);
    FUZZ_CHECK(again != NULL && again->hash_ok && again->members.n == f->members.n);
    cps_buf_fini(&out);
    return program != NULL;
}
