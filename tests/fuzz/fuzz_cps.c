/* A source is added to the registry, or messages say why not. */
#include "tests/fuzz/fuzz.h"

#include "frontend/dsl/registry.h"

bool
fuzz_cps(cps_arena *a, const uint8_t *p, size_t n, cps_diags *d)
{
    cps_registry *r = cps_dsl_registry_create(a, d);
    bool ok = r && cps_dsl_registry_add(r, "mutant.cps", (const char *)p, n, d);
    cps_dsl_registry_destroy(r);
    return ok;
}
