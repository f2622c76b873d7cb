/* A model becomes a graph that the verifier accepts, or messages. */
#include "tests/fuzz/fuzz.h"

#include "frontend/onnx/onnx.h"

bool
fuzz_onnx(cps_arena *a, const uint8_t *p, size_t n, cps_diags *d)
{
    static const char *const dims[] = {"batch_size=1", "sequence_length=4"};
    cps_onnx_files files = {0};
    cps_onnx_opts o = {.ndims = 2, .dims = dims, .files = &files};
    cps_module *m = cps_onnx_import_bytes(a, "mutant.onnx", NULL, p, n, &o, d);
    bool ok = m != NULL;
    if (ok)
        FUZZ_CHECK(cps_ir_verify(m, d));
    cps_onnx_close(&files);
    return ok;
}
