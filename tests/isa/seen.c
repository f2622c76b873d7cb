/* What is kept of bundles met before says the same as looking again: random instructions, each with
 * several sync bands, some of them wrong. */
#include "codegen/isa/seen.h"
#include "tests/check.h"
#include "tests/isa/random.h"

static void
said(cps_diags *d, bool good, cps_buf *out)
{
    out->n = 0;
    cps_buf_printf(out, "%d\n", good);
    cps_diags_render(d, out, false);
    cps_diags_clear(d);
}

static void
kinds(cps_gen g, cps_rng *r)
{
    cps_arena *a = cps_arena_create();
    cps_diags *d = cps_diags_create();
    cps_isa_seen rules, lines;
    cps_buf texts = {0}, one = {0}, two = {0};
    cps_isa_seen_init(&rules, a);
    cps_isa_seen_init(&lines, a);
    bool same = true;
    unsigned kinds = 0;
    for (cps_insn i = random_next(CPS_INSN_NONE, g); kinds < 3 * CPS_INSNS; i = random_next(i, g), kinds++) {
        cps_bundle b = random_insn(r, i, g);
        for (int k = 0; k < 6; k++) {
            for (int n = 4; k && n < 12; n++)
                b.b[n] = k % 2 ? random_insn(r, i, g).b[n] : (uint8_t)cps_rng_below(r, 256);
            cps_engine e = (cps_engine)cps_rng_below(r, CPS_ENGINES);
            said(d, cps_isa_verify(&b, g, e, d, CPS_NOSPAN), &one);
            said(d, cps_isa_verify_again(&rules, &b, g, e, d, CPS_NOSPAN), &two);
            same = same && one.n == two.n && !memcmp(one.data, two.data, one.n);
            one.n = two.n = 0;
            cps_isa_print(&b, g, &one);
            cps_isa_print_again(&lines, &texts, &b, g, &two);
            same = same && one.n == two.n && !memcmp(one.data, two.data, one.n);
        }
    }
    CHECK(same);
    CHECK(rules.all.n < 6 * kinds); // some were met before
    cps_buf_fini(&texts);
    cps_buf_fini(&one);
    cps_buf_fini(&two);
    cps_diags_destroy(d);
    cps_arena_destroy(a);
}

// More bundles than the table begins with: what was kept is found after it grows.
static void
many(void)
{
    enum { N = 5000 };
    cps_arena *a = cps_arena_create();
    cps_isa_seen m;
    cps_isa_seen_init(&m, a);
    cps_bundle b = {{0}};
    bool right = true;
    for (uint32_t round = 0; round < 2; round++)
        for (uint32_t i = 0; i < N; i++) {
            memcpy(b.b + 12, &i, sizeof i);
            b.b[5] = (uint8_t)i;
            uint64_t *v = cps_isa_seen_at(&m, &b, i & 1);
            right = right && *v == (round ? i + 1 : 0);
            *v = i + 1;
        }
    CHECK(right);
    CHECK_INT(m.all.n, N);
    cps_arena_destroy(a);
}

int
main(void)
{
    cps_rng r;
    cps_rng_init(&r, 7, 0);
    for (int g = 0; g < CPS_GENS; g++)
        kinds((cps_gen)g, &r);
    many();
    return CHECK_DONE();
}
