/* A target description is loaded from a file, or messages say why not. */
#include "tests/fuzz/fuzz.h"

#include "codegen/isa/target.h"
#include "runtime/base/file.h"

#include <unistd.h>

bool
fuzz_xml(cps_arena *a, const uint8_t *p, size_t n, cps_diags *d)
{
    char path[64];
    snprintf(path, sizeof path, "/tmp/copse-mutant-%ld.xml", (long)getpid());
    if (!cps_file_write(path, p, n))
        return false;
    bool ok = cps_target_load(path, a, d) != NULL;
    unlink(path);
    FUZZ_CHECK(ok || cps_diags_errors(d) > 0);
    return ok;
}
