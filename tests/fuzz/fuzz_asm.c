/* Text to bundles: whole and in pieces give the same bundles and the same messages; what was
 * accepted prints, and prints back to the same bundles. */
#include "tests/fuzz/fuzz.h"

#include "codegen/isa/text.h"

static bool
in_pieces(cps_arena *a, const char *p, size_t n, cps_gen g, cps_diags *d, cps_buf *out)
{
    cps_cas *ps = cps_isa_parser(a, "fuzz.cas", g, d);
    size_t step = 1 + n * 7 % 61;
    for (size_t at = 0; at < n; at += step)
        cps_isa_parse_piece(ps, p + at, CPS_MIN(step, n - at), out);
    return cps_isa_parse_end(ps, out);
}

bool
fuzz_asm(cps_arena *a, const uint8_t *p, size_t n, cps_diags *d)
{
    const char *text = (const char *)p;
    cps_gen g = (cps_gen)(n % CPS_GENS);
    cps_buf b = {0}, pieces = {0}, again = {0}, back = {0}, said = {0}, told = {0};
    cps_diags *d2 = cps_diags_create();
    bool ok = cps_isa_parse(text, n, cps_diags_source(d, "fuzz.cas", text, n), g, d, &b);
    FUZZ_CHECK(ok == (cps_diags_errors(d) == 0));
    FUZZ_CHECK(b.n % CPS_BUNDLE_BYTES == 0);

    FUZZ_CHECK(in_pieces(a, text, n, g, d2, &pieces) == ok);
    FUZZ_CHECK(b.n == pieces.n && (!b.n || memcmp(b.data, pieces.data, b.n) == 0));
    cps_diags_render(d, &said, false);
    cps_diags_render(d2, &told, false);
    FUZZ_CHECK(said.n == told.n && (!said.n || memcmp(said.data, told.data, said.n) == 0));

    size_t count = b.n / CPS_BUNDLE_BYTES;
    cps_bundle *bundle = cps_new_array(a, cps_bundle, count + 1);
    if (b.n)
        memcpy(bundle, b.data, b.n);
    cps_isa_print_lines(bundle, count, g, &again);
    FUZZ_CHECK(cps_isa_parse(again.data, again.n, 0, g, d2, &back));
    FUZZ_CHECK(b.n == back.n && (!b.n || memcmp(b.data, back.data, b.n) == 0));
    cps_buf *all[] = {&b, &pieces, &again, &back, &said, &told};
    for (unsigned i = 0; i < cps_countof(all); i++)
        cps_buf_fini(all[i]);
    cps_diags_destroy(d2);
    return ok;
}
