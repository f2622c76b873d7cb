/* Targets: the built-in table, the checked-in schema, and descriptions in XML, good and bad. */
#include "codegen/isa/target.h"
#include "codegen/isa/target_facts.h"
#include "runtime/base/file.h"
#include "runtime/base/str.h"
#include "tests/check.h"

#include <stdlib.h>

static void
built_in(void)
{
    static const int64_t usable[] = {176 * 1024, 207 * 1024, 239 * 1024}; // contract
    static const double roof[] = {294, 384, 528};
    CHECK_INT(cps_target_count(), 3);
    for (unsigned i = 0; i < cps_target_count(); i++) {
        const cps_target *t = cps_target_at(i);
        CHECK_INT(t->gen, i);
        CHECK_INT(t->sbuf_bytes - t->sbuf_reserve, usable[i]);
        CHECK(t->hbm_roof_bytes_per_ns == roof[i]);
        CHECK_INT(t->psum_banks * t->psum_bank_bytes, 16384);
        CHECK(cps_target_find(t->name) == t);
        cps_digest d = cps_target_digest(t);
        CHECK(cps_digest_eq(&d, &t->digest));
        for (unsigned j = 0; j < i; j++)
            CHECK(!cps_digest_eq(&t->digest, &cps_target_at(j)->digest));
    }
    CHECK(cps_target_find("trn9") == NULL);
    double v;
    CHECK(cps_target_fact(cps_target_find("trn1"), "pe.sustained_mhz", &v) && v == 2450);
    CHECK(cps_target_fact(cps_target_find("trn2"), "dma.issue_ns", &v) && v == 600);
    CHECK(!cps_target_fact(cps_target_find("trn2"), "dma.colour", &v));
    CHECK(!cps_target_fact(cps_target_find("trn2"), "dma", &v));
}

static void
schema_is_current(void)
{
    cps_buf want = {0};
    cps_file f;
    cps_target_schema(&want);
    if (cps_file_open("codegen/isa/targets/target.rng", true, &f)) {
        CHECK(f.n == want.n && memcmp(f.data, want.data, f.n) == 0);
        cps_file_close(&f);
    } else {
        CHECK(!"codegen/isa/targets/target.rng is missing");
    }
    cps_buf_fini(&want);
}

static const cps_target *
load(const char *text, size_t n, cps_arena *a, cps_diags *d)
{
    const char *path = CPS_TEST_DIR "/target.xml";
    CHECK(cps_file_write(path, text, n));
    return cps_target_load(path, a, d);
}

/* trn2's own description with one text replaced. */
static char *
edit(cps_arena *a, const char *xml, const char *from, const char *to)
{
    const char *at = strstr(xml, from);
    CHECK(at != NULL);
    if (!at)
        return cps_arena_strdup(a, xml);
    return cps_arena_printf(a, "%.*s%s%s", (int)(at - xml), xml, to, at + strlen(from));
}

static void
from_xml(void)
{
    cps_arena *a = cps_arena_create();
    cps_diags *d = cps_diags_create();
    const cps_target *t = cps_target_load("codegen/isa/targets/trn2.xml", a, d);
    CHECK(t && cps_digest_eq(&t->digest, &cps_target_find("trn2")->digest));
    CHECK_STR(t ? t->name : "", "trn2");

    cps_file f;
    CHECK(cps_file_open("codegen/isa/targets/trn2.xml", true, &f));
    const char *xml = cps_arena_strndup(a, (const char *)f.data, f.n);
    cps_file_close(&f);
    char *wide = edit(a, xml, "dma engines=\"16\"", "dma engines=\"32\"");
    wide = edit(a, wide, "name=\"trn2\"", "name=\"trn2-wide\"");
    t = load(wide, strlen(wide), a, d);
    CHECK(t && t->dma_engines == 32);
    CHECK_STR(t ? t->name : "", "trn2-wide");
    CHECK_INT(cps_diags_errors(d), 0);

    static const struct {
        const char *from, *to, *line; // line: text of the line that the message shows
    } bad[] = {
        {"banks=\"8\"", "banks=\"many\"", "<psum"},
        {"banks=\"8\"", "", "<psum"},
        {"banks=\"8\"", "banks=\"8\" colour=\"red\"", "<psum"},
        {"bank_bytes=\"2048\"", "bank_bytes=\"8192\"", "<psum"},
        {"reserve=\"17408\"", "reserve=\"229376\"", "<sbuf"},
        {"bytes=\"229376\"", "bytes=\"400000\"", "<sbuf"},
        {"partitions=\"128\"", "partitions=\"64\"", "<sbuf"},
        {"perf_modes=\"1\"", "perf_modes=\"2\"", "<dve"},
        {"mhz=\"960\"", "mhz=\"0\"", NULL},
        {"mhz=\"960\"", "mhz=\"-3\"", "<dve"},
        {"mhz=\"960\"", "mhz=\"1e3\"", "<dve"},
        {"generation=\"v3\"", "generation=\"v9\"", "<target"},
        {"name=\"trn2\"", "name=\"../x\"", "<target"},
        {"<run ", "<runs ", "<target"},
        {"</target>", "", NULL},
        {"<target", "<!DOCTYPE target [<!ENTITY a \"b\">]>\n<target", NULL},
    };
    for (size_t i = 0; i < cps_countof(bad); i++) {
        cps_diags_clear(d);
        char *text = edit(a, xml, bad[i].from, bad[i].to);
        CHECK(load(text, strlen(text), a, d) == NULL);
        CHECK_INT(cps_diags_errors(d), 1);
        CHECK_INT(cps_diags_code(d, 0), CPS_E1004);
        cps_buf out = {0};
        cps_diags_render(d, &out, false);
        if (bad[i].line && !strstr(out.data, bad[i].line)) {
            CHECK(!"the message shows another line");
            fprintf(stderr, "%s -> %s:\n%s", bad[i].from, bad[i].to, out.data);
        }
        cps_buf_fini(&out);
    }
    // Bytes that are no XML at all, and an empty file.
    cps_diags_clear(d);
    CHECK(load("\0\x7f", 2, a, d) == NULL);
    CHECK(load("", 0, a, d) == NULL);
    CHECK_INT(cps_diags_code(d, 0), CPS_E1004);

    cps_diags_clear(d);
    CHECK(cps_target_load("trn9", a, d) == NULL);
    CHECK_INT(cps_diags_code(d, 0), CPS_E1003);
    cps_diags_clear(d);
    CHECK(cps_target_load("no/such/file.xml", a, d) == NULL);
    CHECK_INT(cps_diags_code(d, 0), CPS_E1003);
    cps_diags_destroy(d);
    cps_arena_destroy(a);
}

static bool
mapped(const char *library)
{
    char line[512];
    bool found = false;
    FILE *f = fopen("/proc/self/maps", "r");
    while (f && fgets(line, sizeof line, f))
        found = found || strstr(line, library);
    if (f)
        fclose(f);
    return found;
}

int
main(void)
{
    built_in();
    schema_is_current();
    CHECK(!mapped("libxml2")); // built-in targets never load it
    from_xml();
    return CHECK_DONE();
}
