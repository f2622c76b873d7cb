/* What the verifier of tiles accepts, the back end compiles or refuses with a message. */
#include "tests/fuzz/fuzz.h"

#include "codegen/codegen.h"
#include "ir/tile.h"

bool
fuzz_tile(cps_arena *a, const uint8_t *p, size_t n, cps_diags *d)
{
    const cps_target *t = cps_target_find("trn2");
    uint32_t src = cps_diags_source(d, "mutant.cir", (const char *)p, n);
    cps_tfunc *f = cps_tile_parse(a, (const char *)p, n, src, d);
    if (!f || !cps_tile_verify(f, t, d))
        return false;
    // What the verifier accepts, the back end compiles or refuses with a diagnostic.
    cps_kbin *k = NULL;
    cps_codegen_opts o = {.verify = true};
    bool ok = cps_codegen(a, f, t, &o, &k, d);
    FUZZ_CHECK(ok || cps_diags_errors(d) > 0);
    return ok;
}
