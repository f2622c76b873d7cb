/* Whole compilations: listings, sizes, diagnostics. */
#include "tests/codegen/tp.h"
#include "codegen/isa/text.h"

#include "tests/check.h"

int
main(int argc, char **argv)
{
    tp p = tp_new("trn2");
    if (argc > 1 && !strcmp(argv[1], "softmax"))
        tp_make_softmax(&p, CPS_DT_BF16, 300, 1000);
    else
        tp_make_matmul(&p, CPS_DT_BF16, 256, 300, 512);
    cps_kbin *k = NULL;
    bool ok = cps_codegen(p.a, p.f, p.t, NULL, &k, p.d);
    cps_buf b = {0};
    CHECK(ok);
    cps_diags_render(p.d, &b, false);
    if (ok)
        cps_kbin_listing(k, &b);
    puts(b.data ? b.data : "");
    return CHECK_DONE();
}
