/* Host tool: writes ISA.md. isadoc OUT */
#include "codegen/isa/doc.h"
#include "runtime/base/file.h"

#include <stdio.h>

int
main(int argc, char **argv)
{
    cps_buf out = {0};
    if (argc != 2) {
        fprintf(stderr, "usage: isadoc OUT\n");
        return 2;
    }
    cps_isa_doc(&out);
    bool ok = cps_file_write(argv[1], out.data, out.n);
    cps_buf_fini(&out);
    return ok ? 0 : 1;
}
