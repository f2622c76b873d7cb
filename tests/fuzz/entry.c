/* What libFuzzer calls, for the reader FUZZ_READER. */
#include "tests/fuzz/fuzz.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

int
LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    cps_arena *a = cps_arena_create();
    cps_diags *d = cps_diags_create();
    cps_buf said = {0};
    uint8_t *text = NULL;
    if (FUZZ_IS_TEXT) {
        text = malloc(n + 1);
        FUZZ_CHECK(text != NULL);
        memcpy(text, p, n);
        text[n] = 0;
    }
    FUZZ_READER(a, text ? text : p, n, d);
    cps_diags_render(d, &said, false); // places in damaged text must render too
    cps_buf_fini(&said);
    cps_diags_destroy(d);
    cps_arena_destroy(a);
    free(text);
    return 0;
}
