/* A BIR document is read, or there is a diagnostic; what was read prints so that it reads and
 * prints the same; a kernel that is made of it is sound, and goes through BIR again. */
#include "tests/fuzz/fuzz.h"

#include "codegen/bir/bir.h"

static void
print(const cps_bir *b, cps_buf *out)
{
    out->n = 0;
    cps_bir_print(b, out);
}

static bool
same_streams(const cps_kbin *k, const cps_kbin *l)
{
    bool same = true;
    for (int e = 0; same && e < CPS_ENGINES; e++) {
        uint32_t n = k->stream[e].code.n;
        same = n == l->stream[e].code.n &&
               (!n || !memcmp(k->stream[e].code.data, l->stream[e].code.data,
                              n * sizeof(cps_bundle)));
    }
    return same && k->relocs.n == l->relocs.n && k->descs.n == l->descs.n &&
           k->blocks.n == l->blocks.n;
}

bool
fuzz_bir(cps_arena *a, const uint8_t *p, size_t n, cps_diags *d)
{
    cps_bir *b = cps_bir_read(a, (const char *)p, n, 0, d);
    FUZZ_CHECK(b ? !cps_diags_errors(d) : cps_diags_errors(d) > 0);
    if (!b)
        return false;
    cps_buf one = {0}, two = {0};
    cps_diags *quiet = cps_diags_create();
    print(b, &one);
    cps_bir *again = cps_bir_read(a, one.data, one.n, 0, quiet);
    FUZZ_CHECK(again != NULL);
    print(again, &two);
    FUZZ_CHECK(one.n == two.n && !memcmp(one.data, two.data, one.n));
    cps_kbin *k = cps_bir_kernel(a, b, quiet);
    FUZZ_CHECK((k == NULL) == (cps_diags_errors(quiet) > 0));
    if (k) {
        one.n = 0;
        cps_bir_write(k, NULL, &one);
        again = cps_bir_read(a, one.data, one.n, 0, quiet);
        FUZZ_CHECK(again != NULL);
        const cps_kbin *l = cps_bir_kernel(a, again, quiet);
        FUZZ_CHECK(l && same_streams(k, l));
    }
    cps_diags_destroy(quiet);
    cps_buf_fini(&one);
    cps_buf_fini(&two);
    return true;
}
