/* Any bytes are a stream: on every generation they become text, the text becomes the same
 * bytes, and the verifier says what it says. */
#include "tests/fuzz/fuzz.h"

#include "codegen/isa/text.h"

bool
fuzz_dis(cps_arena *a, const uint8_t *p, size_t n, cps_diags *d)
{
    size_t count = n / CPS_BUNDLE_BYTES;
    cps_bundle *b = cps_new_array(a, cps_bundle, count + 1);
    if (count)
        memcpy(b, p, count * CPS_BUNDLE_BYTES);
    cps_gen g = (cps_gen)(n % CPS_GENS);
    cps_buf text = {0}, back = {0}, one = {0};
    FUZZ_CHECK(cps_isa_print_lines(b, count, g, &text) <= count);
    FUZZ_CHECK(cps_isa_parse(text.data, text.n, 0, g, d, &back));
    FUZZ_CHECK(back.n == count * CPS_BUNDLE_BYTES);
    FUZZ_CHECK(!back.n || memcmp(back.data, b, back.n) == 0);
    for (size_t i = 0; i < count; i++) {
        cps_isa_print(&b[i], g, &one);
        cps_buf_putc(&one, '\n');
        cps_engine e = b[i].b[3] < CPS_ENGINES ? (cps_engine)b[i].b[3] : CPS_ENGINE_ANY;
        bool good = cps_isa_verify(&b[i], g, e, d, CPS_NOSPAN);
        FUZZ_CHECK(good || cps_diags_errors(d) > 0);
    }
    FUZZ_CHECK(one.n == text.n && (!one.n || memcmp(one.data, text.data, one.n) == 0));
    cps_buf_fini(&text);
    cps_buf_fini(&back);
    cps_buf_fini(&one);
    return n % CPS_BUNDLE_BYTES == 0;
}
