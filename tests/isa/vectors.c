/* Every vector on every generation: text both ways, the verifier's verdict, and the derivation:
 * the fields that the meaning names stand where the rows say. */
#include "codegen/isa/text.h"
#include "tests/check.h"
#include "tests/isa/golden.h"

#include <stdlib.h>

static cps_diags *diags;
static golden v[GOLDEN_MOST];
static cps_isa_fit fit[CPS_GENS];

static void
say(const char *what, const golden *x, cps_gen g)
{
    cps_buf text = {0};
    cps_isa_print(&x->b, g, &text);
    cps_buf_puts(&text, "\n");
    cps_diags_render(diags, &text, false);
    fprintf(stderr, "%s: %s on %s: %s", what, x->name, cps_gen_name(g), text.data);
    cps_buf_fini(&text);
}

static void
round_trip(const golden *x, cps_gen g)
{
    cps_buf text = {0}, back = {0};
    cps_diags_clear(diags);
    cps_isa_print(&x->b, g, &text);
    bool same = cps_isa_parse(text.data, text.n, 0, g, diags, &back) &&
                back.n == CPS_BUNDLE_BYTES && memcmp(back.data, x->b.b, back.n) == 0;
    CHECK(same);
    if (!same)
        say("no round trip", x, g);
    // What is legal needs no escape form.
    if (x->gens & (1u << g)) {
        CHECK(!strstr(text.data, "raw[") && !strstr(text.data, ".bytes"));
        if (strstr(text.data, "raw[") || strstr(text.data, ".bytes"))
            say("escape form", x, g);
    }
    cps_buf_fini(&text);
    cps_buf_fini(&back);
}

static void
verdict(const golden *x, cps_gen g, unsigned *warned)
{
    bool legal = x->gens & (1u << g);
    cps_diags_clear(diags);
    bool ok = cps_isa_verify(&x->b, g, CPS_ENGINE_ANY, diags, CPS_NOSPAN);
    CHECK(ok == legal);
    CHECK(ok == (cps_diags_errors(diags) == 0));
    if (ok != legal)
        say(legal ? "refused" : "accepted", x, g);
    if (legal && cps_diags_count(diags)) {
        ++*warned;
        say("warned", x, g);
    }
    if (!legal && cps_isa_find(x->b.b[0], g) == CPS_INSN_NONE)
        CHECK(!cps_isa_fits(&fit[g], &x->b));
    if (legal)
        CHECK(cps_isa_fits(&fit[g], &x->b));
}

// name@byte=hex of the meaning: the bytes are there, and so is a field of that name and size.
static unsigned
derivation(const golden *x)
{
    unsigned fmt = cps_insns[cps_isa_find_any(x->b.b[0])].format, n = 0;
    char copy[sizeof x->meaning];
    memcpy(copy, x->meaning, sizeof copy);
    for (char *t = strtok(copy, " "); t; t = strtok(NULL, " ")) {
        char name[64], hex[160];
        unsigned at;
        if (sscanf(t, "%63[A-Za-z0-9_]@%u=%159[0-9a-f]", name, &at, hex) != 3)
            continue;
        unsigned bytes = (unsigned)strlen(hex) / 2;
        bool same = true, found = !strcmp(name, "byte") || !strcmp(name, "events");
        for (unsigned i = 0; i < bytes && at + i < CPS_BUNDLE_BYTES; i++) {
            unsigned b = 0;
            sscanf(hex + 2 * i, "%2x", &b);
            same = same && x->b.b[at + i] == b;
        }
        for (unsigned f = cps_formats[fmt].first; f < cps_formats[fmt + 1].first; f++)
            found = found || (cps_fields[f].byte == at && cps_fields[f].bits == 8 * bytes &&
                              strcmp(cps_fields[f].name, name) == 0);
        CHECK(same);
        CHECK(found);
        if (!same || !found)
            fprintf(stderr, "%s: %s\n", x->name, t);
        n++;
    }
    return n;
}

int
main(void)
{
    diags = cps_diags_create();
    for (unsigned g = 0; g < CPS_GENS; g++)
        cps_isa_fit_init(&fit[g], (cps_gen)g);
    unsigned n = golden_read_all(v), warned = 0, derived = 0;
    CHECK(n >= 264);
    bool format[CPS_FORMATS] = {false};
    for (unsigned i = 0; i < n; i++) {
        for (unsigned g = 0; g < CPS_GENS; g++) {
            round_trip(&v[i], (cps_gen)g);
            verdict(&v[i], (cps_gen)g, &warned);
        }
        derived += derivation(&v[i]);
        format[cps_insns[cps_isa_find_any(v[i].b.b[0])].format] = true;
    }
    CHECK(derived > 1400);
    CHECK_INT(warned, 0);
    // One vector at least for every format that an instruction of these generations has.
    for (unsigned i = 1; i < CPS_INSNS; i++) {
        unsigned fmt = cps_insns[i].format;
        bool seen = format[fmt] || fmt == CPS_FMT_RAW || !cps_insns[i].gens;
        CHECK(seen);
        if (!seen)
            fprintf(stderr, "no vector of format %s\n", cps_formats[fmt].name);
    }
    cps_diags_destroy(diags);
    return CHECK_DONE();
}
