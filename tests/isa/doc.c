/* ISA.md is what the rows say now, and every instruction has a page. */
#include "codegen/isa/doc.h"
#include "runtime/base/file.h"
#include "tests/check.h"

int
main(void)
{
    cps_buf want = {0};
    cps_file f;
    cps_isa_doc(&want);
    if (cps_file_open("codegen/isa/ISA.md", true, &f)) {
        bool current = f.n == want.n && memcmp(f.data, want.data, f.n) == 0;
        if (!current)
            fprintf(stderr, "codegen/isa/ISA.md is stale: build the target update-isa-docs\n");
        CHECK(current);
        cps_file_close(&f);
    } else {
        CHECK(!"codegen/isa/ISA.md is missing");
    }
    for (unsigned i = 1; i < CPS_INSNS; i++) {
        cps_buf one = {0};
        cps_isa_doc_insn((cps_insn)i, &one);
        CHECK(strstr(one.data, cps_insns[i].name) == one.data);
        CHECK(strstr(one.data, cps_insns[i].doc) != NULL);
        CHECK(strstr(want.data, cps_insns[i].name) != NULL);
        cps_buf_fini(&one);
    }
    cps_buf_fini(&want);
    return CHECK_DONE();
}
