/* The verifier: golden vectors pass on every generation they name, each rule has a line that
 * breaks it and no other, each row of rule.def is broken by some change of a vector, findings
 * come in the order of the steps, and the table's own check finds nothing. */
#include "codegen/isa/verify.h"
#include "runtime/base/rng.h"
#include "tests/check.h"
#include "tests/isa/golden.h"
#include "tests/isa/verify_cases.h"

static cps_diags *diags;

static void
show(const char *what)
{
    cps_buf text = {0};
    cps_diags_render(diags, &text, false);
    fprintf(stderr, "%s\n%s", what, text.n ? text.data : "(no message)\n");
    cps_buf_fini(&text);
}

static void
table(void)
{
    cps_buf out = {0};
    CHECK_INT(cps_isa_check(&out), 0);
    if (out.n)
        fprintf(stderr, "%s", out.data);
    cps_buf_fini(&out);
}

static void
golden_vectors(void)
{
    static golden v[128];
    unsigned n = golden_read(v, 128), warned = 0;
    CHECK_INT(n, 47);
    for (unsigned i = 0; i < n; i++)
        for (unsigned g = 0; g < CPS_GENS; g++) {
            if (!(v[i].gens & (1u << g)))
                continue;
            cps_diags_clear(diags);
            bool ok = cps_isa_verify(&v[i].b, (cps_gen)g, CPS_ENGINE_ANY, diags, CPS_NOSPAN);
            CHECK(ok);
            CHECK_INT(cps_diags_errors(diags), 0);
            warned += cps_diags_count(diags);
            if (!ok)
                show(v[i].name);
        }
    CHECK_INT(warned, 0);
}

// What a row or a rule of this confidence is reported as.
static cps_code
code_of(cps_rule rule, unsigned sure)
{
    cps_code c = cps_rules[rule].code;
    return sure == CPS_SURE_I && cps_diag_rows[c].name[0] == 'E' ? CPS_W5516 : c;
}

static bool
said(cps_code code)
{
    for (unsigned j = 0; j < cps_diags_count(diags); j++)
        if (cps_diags_code(diags, j) == code)
            return true;
    return false;
}

static bool all_rules[CPS_RULES];

// Each line breaks its rule and no other; what passes has no finding at all.
static void
each_rule(void)
{
    for (size_t i = 0; i < cps_countof(cases); i++) {
        cps_buf bytes = {0};
        cps_rule_hits hits = {0};
        cps_diags_clear(diags);
        bool parsed =
            cps_isa_parse(cases[i].line, strlen(cases[i].line), 0, cases[i].g, diags, &bytes);
        CHECK(parsed && bytes.n == CPS_BUNDLE_BYTES);
        if (!parsed) {
            show(cases[i].line);
            continue;
        }
        bool ok = cps_isa_verify_hits((const cps_bundle *)bytes.data, cases[i].g, cases[i].e,
                                      diags, CPS_NOSPAN, &hits);
        bool fine = ok == (cps_diags_errors(diags) == 0);
        unsigned broken = 0;
        for (unsigned r = 0; r < CPS_RULES; r++)
            broken += hits.rule[r];
        if (cases[i].rule == PASSES)
            fine = fine && ok && cps_diags_count(diags) == 0 && !broken;
        else
            fine = fine && broken == 1 && hits.rule[cases[i].rule] &&
                   (said(cps_rules[cases[i].rule].code) || said(CPS_W5516));
        CHECK(fine);
        if (!fine) {
            fprintf(stderr, "want %s\n",
                    cases[i].rule < CPS_RULES ? cps_rules[cases[i].rule].name : "no finding");
            show(cases[i].line);
        }
        if (cases[i].rule < CPS_RULES)
            all_rules[cases[i].rule] = true;
        cps_buf_fini(&bytes);
    }
}

static void
each_stream(void)
{
    for (size_t i = 0; i < cps_countof(streams); i++) {
        cps_buf bytes = {0};
        cps_rule_hits hits = {0};
        cps_diags_clear(diags);
        CHECK(cps_isa_parse(streams[i].text, strlen(streams[i].text), 0, streams[i].g, diags,
                            &bytes));
        bool ok = cps_isa_verify_stream_hits((const cps_bundle *)bytes.data,
                                             bytes.n / CPS_BUNDLE_BYTES, streams[i].g, diags,
                                             NULL, &hits);
        bool passes = streams[i].rule == PASSES;
        bool fine = passes ? ok && cps_diags_count(diags) == 0
                           : !ok && hits.rule[streams[i].rule] && said(CPS_W5517);
        CHECK(fine);
        if (!fine)
            show(streams[i].text);
        if (!passes)
            all_rules[streams[i].rule] = true;
        cps_buf_fini(&bytes);
    }
}

/* Every row of rule.def is broken by some change of one or two bytes of a vector that keeps it,
 * and says so with its code. */
static void
each_row(void)
{
    static golden v[GOLDEN_MOST];
    static const uint8_t values[] = {0,  1,  2,  3,  4,  5,  6,  7,  8,   9,   10,  11, 12,
                                     14, 16, 19, 29, 33, 48, 64, 65, 100, 129, 200, 255};
    static cps_rule_hits all;
    unsigned n = golden_read_all(v), wrong = 0, disorder = 0;
    CHECK(n >= 264);
    CHECK(cps_rule_row_count < cps_countof(all.row));
    for (unsigned i = 0; i < n; i++)
        for (unsigned g = 0; g < CPS_GENS; g++) {
            if (!(v[i].gens & (1u << g)))
                continue;
            for (unsigned at = 12; at < CPS_BUNDLE_BYTES; at++)
                for (unsigned k = 0; k < cps_countof(values); k++) {
                    cps_rule_hits hits = {0};
                    cps_bundle b = v[i].b;
                    b.b[at] = values[k];
                    cps_diags_clear(diags);
                    cps_isa_verify_hits(&b, (cps_gen)g, CPS_ENGINE_ANY, diags, CPS_NOSPAN,
                                        &hits);
                    disorder += hits.disorder;
                    for (unsigned r = 0; r < cps_rule_row_count && cps_diags_count(diags); r++)
                        if (hits.row[r]) {
                            const cps_rule_row *row = &cps_rule_rows[r];
                            all.row[r] = true;
                            wrong += !said(code_of((cps_rule)row->rule, row->sure)) &&
                                     cps_diags_count(diags) < 50;
                        }
                }
        }
    CHECK_INT(wrong, 0);
    CHECK_INT(disorder, 0);
    for (unsigned r = 0; r < cps_rule_row_count; r++) {
        const cps_rule_row *row = &cps_rule_rows[r];
        // Heads are no rows; what is allowed, what refuses a generation and what only a stream
        // shows have lines of their own.
        if (row->rule == CPS_RULES || row->rule == CPS_RULE_LENGTH ||
            row->rule == CPS_RULE_REFUSED || cps_rules[row->rule].step == 10)
            continue;
        CHECK(all.row[r]);
        if (!all.row[r]) {
            cps_buf text = {0};
            cps_rule_say(row, &text);
            fprintf(stderr, "row %u, rule %s, is never broken: %s: %s\n", r,
                    cps_rules[row->rule].name, cps_formats[cps_fields[row->f].format].name,
                    text.data);
            cps_buf_fini(&text);
        }
    }
}

static void
all_rules_seen(void)
{
    for (unsigned r = 0; r < CPS_RULES; r++) {
        CHECK(all_rules[r]);
        if (!all_rules[r])
            fprintf(stderr, "no line breaks rule %s\n", cps_rules[r].name);
        // Rules are in the order of their steps, and each says what it wants.
        CHECK(r == 0 || cps_rules[r].step >= cps_rules[r - 1].step);
        CHECK(cps_rules[r].doc[0] != '\0');
    }
    for (unsigned r = 0; r < cps_rule_row_count; r++) {
        cps_buf text = {0};
        if (cps_rule_rows[r].rule < CPS_RULES) {
            cps_rule_say(&cps_rule_rows[r], &text);
            CHECK(text.n > 8);
        }
        cps_buf_fini(&text);
    }
}

// Any bytes give a verdict, and the verdict agrees with the messages.
static void
arbitrary_bytes(void)
{
    cps_rng r;
    cps_rng_init(&r, 11, 0);
    for (unsigned k = 0; k < 20000; k++) {
        cps_bundle b;
        for (unsigned j = 0; j < CPS_BUNDLE_BYTES; j++)
            b.b[j] = (uint8_t)(cps_rng_next(&r) >> (k & 1 ? 32 : 60));
        b.b[0] = (uint8_t)k;
        bool ok = cps_isa_verify(&b, (cps_gen)(k % 3), (cps_engine)(k % 6 < 5 ? k % 6 : 0xFF),
                                 diags, CPS_NOSPAN);
        CHECK(ok == (cps_diags_errors(diags) == 0));
        cps_diags_clear(diags);
    }
}

int
main(void)
{
    diags = cps_diags_create();
    table();
    golden_vectors();
    each_rule();
    each_stream();
    each_row();
    all_rules_seen();
    arbitrary_bytes();
    cps_diags_destroy(diags);
    return CHECK_DONE();
}
