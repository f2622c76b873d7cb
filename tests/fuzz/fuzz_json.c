/* A document is parsed, or there is a reason why not. */
#include "tests/fuzz/fuzz.h"

#include "runtime/base/json.h"

bool
fuzz_json(cps_arena *a, const uint8_t *p, size_t n, cps_diags *d)
{
    (void)d;
    const char *why = NULL;
    size_t at;
    const cps_json *j = cps_json_parse(a, (const char *)p, n, &why, &at);
    FUZZ_CHECK(j != NULL || why != NULL);
    return j != NULL;
}
