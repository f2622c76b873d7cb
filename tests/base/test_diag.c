/* Diagnostics: the human form byte for byte, merging, limits, hostile text, JSON lines. */
#include "runtime/base/diag.h"
#include "runtime/base/json.h"
#include "tests/check.h"

#include <stdlib.h>

static const char source[] = "first line\n"
                             "                e_ = exp(xc + neg) reduce add into l;\r\n"
                             "\n"
                             "\tx\xC3\xA9y = z;\n"
                             "last";

// The span of `what` in the source.
static cps_span
span_of(uint32_t file, const char *what)
{
    uint32_t begin = (uint32_t)(strstr(source, what) - source);
    return (cps_span){file, begin, begin + (uint32_t)strlen(what)};
}

static void
check_render(const cps_diags *d, const char *want)
{
    cps_buf b = {0};
    cps_buf_puts(&b, "");
    cps_diags_render(d, &b, false);
    CHECK_STR(b.data, want);
    cps_buf_fini(&b);
}

static void
human(cps_diags *d, uint32_t f)
{
    cps_error(d, CPS_E1003, span_of(f, "e_"), "`%s` is not declared", "e_");
    cps_help(
        d, "`=` writes to existing storage; did you mean `e`, or `sbuf e_[t, c]: f32 = ...`?");
    check_render(d, "softmax.cps:2:17: error: `e_` is not declared [E1003]\n"
                    "    2 |                 e_ = exp(xc + neg) reduce add into l;\n"
                    "      |                 ^~\n"
                    "help: `=` writes to existing storage; did you mean `e`, or "
                    "`sbuf e_[t, c]: f32 = ...`?\n");
    cps_diags_clear(d);
    CHECK_INT(cps_diags_count(d) + cps_diags_errors(d), 0);
    check_render(d, "");

    cps_error(d, CPS_E1005, CPS_NOSPAN, "no place");
    cps_note(d, CPS_NOSPAN, "plain");
    cps_note(d, span_of(f, "last"), "placed");
    check_render(d, "error: no place [E1005]\n"
                    "note: plain\n"
                    "softmax.cps:5:1: note: placed\n"
                    "    5 | last\n"
                    "      | ^~~~\n");
    cps_diags_clear(d);

    // Tabs keep their width, a code point has one column, an empty span has one caret, a span
    // over several lines ends with the first, the end of the text is a place.
    cps_error(d, CPS_E1005, span_of(f, "\xC3\xA9y"), "tab");
    cps_error(d, CPS_E1005, (cps_span){f, span_of(f, "y =").begin, 0}, "empty");
    cps_error(d, CPS_E1005, (cps_span){f, span_of(f, "into").begin, sizeof(source)}, "long");
    cps_error(d, CPS_E1005, (cps_span){f, sizeof(source) + 50, sizeof(source) + 60}, "end");
    cps_error(d, CPS_E1005, (cps_span){f, span_of(f, "\n\tx").begin, 0}, "blank");
    check_render(d, "softmax.cps:4:3: error: tab [E1005]\n"
                    "    4 | \tx\xC3\xA9y = z;\n"
                    "      | \t ^~\n"
                    "softmax.cps:4:5: error: empty [E1005]\n"
                    "    4 | \tx\xC3\xA9y = z;\n"
                    "      | \t  ^\n"
                    "softmax.cps:2:47: error: long [E1005]\n"
                    "    2 |                 e_ = exp(xc + neg) reduce add into l;\n"
                    "      |                                               ^~~~~~~\n"
                    "softmax.cps:5:5: error: end [E1005]\n"
                    "    5 | last\n"
                    "      |     ^\n"
                    "softmax.cps:3:1: error: blank [E1005]\n"
                    "    3 |\n"
                    "      | ^\n");
    cps_diags_clear(d);
}

static void
merging(cps_diags *d, uint32_t f)
{
    for (int i = 0; i < 4; i++) {
        cps_error(d, CPS_E1006, span_of(f, "reduce"), "40 partitions may start at 0 or 64");
        cps_note(d, CPS_NOSPAN, "a rule");
        cps_note(d, CPS_NOSPAN, "in b = tiles(B, 16) piece %d of 4", i);
        cps_help(d, "help %d", i);
    }
    cps_error(d, CPS_E1006, span_of(f, "add"), "40 partitions may start at 0 or 64");
    cps_error(d, CPS_E1006, span_of(f, "add"), "40 partitions may start at 0 or 64");
    CHECK_INT(cps_diags_count(d), 2);
    CHECK_INT(cps_diags_errors(d), 2);
    CHECK_INT(cps_diags_code(d, 1), CPS_E1006);
    CHECK_STR(cps_diags_text(d, 0), "40 partitions may start at 0 or 64");
    check_render(d, "softmax.cps:2:36: error: 40 partitions may start at 0 or 64 [E1006]\n"
                    "    2 |                 e_ = exp(xc + neg) reduce add into l;\n"
                    "      |                                    ^~~~~~\n"
                    "note: a rule\n"
                    "note: in b = tiles(B, 16) piece 0 of 4; 3 more\n"
                    "help: help 0\n"
                    "softmax.cps:2:43: error: 40 partitions may start at 0 or 64 [E1006]\n"
                    "    2 |                 e_ = exp(xc + neg) reduce add into l;\n"
                    "      |                                           ^~~\n"
                    "note: the same 1 more time\n");
    cps_diags_clear(d);
}

static void
limits(cps_diags *d)
{
    for (int i = 0; i < 60; i++) {
        cps_error(d, CPS_E1006, CPS_NOSPAN, "number %d", i);
        cps_note(d, CPS_NOSPAN, "of %d", i); // of a dropped one: dropped
    }
    CHECK_INT(cps_diags_count(d), 50);
    CHECK_INT(cps_diags_errors(d), 60);
    cps_buf b = {0};
    cps_diags_render(d, &b, false);
    CHECK(cps_has_suffix(b.data, "error: number 49 [E1006]\nnote: of 49\n"
                                 "note: 10 more errors are not shown, the limit is 50\n"));
    cps_buf_fini(&b);
    cps_diags_render_json(d, &b);
    CHECK(cps_has_suffix(b.data, "\"notes\": [{\"message\": \"of 49\"}], \"helps\": []}\n"
                                 "{\"not_shown_errors\": 10, \"not_shown_others\": 0}\n"));
    cps_buf_fini(&b);
    cps_diags_clear(d);
}

static void
hostile(cps_diags *d)
{
    static const char bad[] = "a\033[2Jb\x7f\xC2\x9B"
                              "c";
    uint32_t f = cps_diags_source(d, "n\na.cps", bad, sizeof(bad) - 1);
    cps_error(d, CPS_E1001, (cps_span){f, 9, 10}, "name '%s'", "x\033[31m\ny");
    check_render(d, "n?a.cps:1:10: error: name 'x?[31m?y' [E1001]\n"
                    "    1 | a?[2Jb??c\n"
                    "      |         ^\n");
    cps_diags_clear(d);

    // One line of 100 kB: a window around the place.
    size_t n = 100000;
    char *line = malloc(n);
    memset(line, 'x', n);
    line[50000] = '@';
    f = cps_diags_source(d, "long", line, n);
    cps_error(d, CPS_E1001, (cps_span){f, 50000, 50001}, "far");
    cps_buf b = {0};
    cps_diags_render(d, &b, false);
    CHECK(b.n < 500);
    const char *row = strchr(b.data, '\n') + 1, *caret = strchr(row, '\n') + 1;
    CHECK(row[strcspn(caret, "^")] == '@');
    CHECK(strncmp(b.data, "long:1:50001: error: far", 24) == 0);
    cps_buf_fini(&b);
    cps_diags_clear(d);
    free(line);
    // The same of two-byte characters: the window does not cut one in half.
    line = malloc(n);
    for (size_t i = 0; i < n; i += 2)
        memcpy(line + i, "\xC3\xA9", 2);
    f = cps_diags_source(d, "wide", line, n);
    for (uint32_t at = 5000; at < 5004; at++) {
        cps_jsonw w;
        cps_error(d, CPS_E1001, (cps_span){f, at, at + 1}, "far");
        cps_diags_render(d, &b, false);
        cps_buf copy = {0}; // the JSON writer would put U+FFFD for a broken character
        cps_jsonw_init(&w, &copy);
        cps_jsonw_str(&w, b.data);
        CHECK(strstr(copy.data, "\xEF\xBF\xBD") == NULL);
        cps_buf_fini(&copy);
        cps_buf_fini(&b);
        cps_diags_clear(d);
    }
    free(line);
    f = cps_diags_source(d, "nothing", NULL, 0);
    cps_error(d, CPS_E1001, (cps_span){f, 0, 0}, "empty file");
    check_render(d, "nothing:1:1: error: empty file [E1001]\n"
                    "    1 |\n"
                    "      | ^\n");
    cps_diags_clear(d);
}

static void
json(cps_diags *d, uint32_t f)
{
    cps_error(d, CPS_E1002, (cps_span){f, span_of(f, "into").begin, span_of(f, "\tx").begin},
              "say \"%s\"", "\xFF");
    cps_note(d, span_of(f, "first"), "there");
    cps_note(d, CPS_NOSPAN, "plain");
    cps_help(d, "one");
    cps_help(d, "two");
    cps_error(d, CPS_E1003, CPS_NOSPAN, "second");
    cps_error(d, CPS_E1003, CPS_NOSPAN, "second");
    cps_buf b = {0};
    cps_diags_render_json(d, &b);
    CHECK_STR(
        b.data,
        "{\"code\": \"E1002\", \"severity\": \"error\", \"message\": \"say \\\"\xEF\xBF\xBD"
        "\\\"\", \"file\": \"softmax.cps\", \"line\": 2, \"column\": 47, \"end_line\": 4, "
        "\"end_column\": 1, \"count\": 1, \"notes\": [{\"message\": \"there\", \"file\": "
        "\"softmax.cps\", \"line\": 1, \"column\": 1, \"end_line\": 1, \"end_column\": 6}, "
        "{\"message\": \"plain\"}], \"helps\": [\"one\", \"two\"]}\n"
        "{\"code\": \"E1003\", \"severity\": \"error\", \"message\": \"second\", \"count\": "
        "2, \"notes\": [], \"helps\": []}\n");
    cps_arena *a = cps_arena_create();
    for (char *line = b.data, *end; (end = strchr(line, '\n')); line = end + 1)
        CHECK(cps_json_parse(a, line, (size_t)(end - line), NULL, NULL));
    cps_arena_destroy(a);
    cps_buf_fini(&b);
    cps_diags_clear(d);
}

static void
colours(cps_diags *d)
{
    cps_error(d, CPS_E1001, CPS_NOSPAN, "red");
    cps_help(d, "green");
    cps_buf b = {0};
    cps_diags_render(d, &b, true);
    CHECK_STR(b.data, "\033[1;31merror:\033[0m red [E1001]\n\033[1;32mhelp:\033[0m green\n");
    cps_buf_fini(&b);
    cps_diags_clear(d);
}

// Rows are well formed: codes are unique, titled, explained, and found by name.
static void
table(void)
{
    for (int i = 1; i < CPS_CODE_COUNT; i++) {
        const cps_diag_row *r = &cps_diag_rows[i];
        CHECK(strlen(r->name) == 5 && strchr("EWN", r->name[0]) &&
              strspn(r->name + 1, "0123456789") == 4);
        CHECK_INT(cps_diag_find(r->name), i);
        CHECK(r->title[0] && r->title[strlen(r->title) - 1] != '.');
        CHECK(strlen(r->help) > 20);
    }
    CHECK_INT(cps_diag_find("E0000"), CPS_CODE_NONE);
    CHECK_INT(cps_diag_find(""), CPS_CODE_NONE);
}

static void
check_same(const cps_diags *a, const cps_diags *b)
{
    cps_buf x = {0}, y = {0};
    cps_diags_render(a, &x, true);
    cps_diags_render_json(a, &x);
    cps_diags_render(b, &y, true);
    cps_diags_render_json(b, &y);
    CHECK_STR(x.data, y.data);
    cps_buf_fini(&x);
    cps_buf_fini(&y);
}

// What is said, kept and said again reads the same: with the source at hand, without it, and beside
// messages that it merges with. Bytes that are cut or damaged say nothing, or another message.
static void
keeping(void)
{
    static const char lines[] = "line one\n\tx = y + ~z;\nlast";
    cps_arena *a = cps_arena_create();
    cps_diags *d = cps_diags_create(), *same = cps_diags_create(), *bare = cps_diags_create();
    uint32_t f = cps_diags_source(d, "a.cps", lines, sizeof lines - 1);
    cps_diags_source(same, "other.cps", "x", 1);
    CHECK_INT(cps_diags_source(same, "a.cps", lines, sizeof lines - 1), 2);
    cps_span x = {f, 10, 11}, wide = {f, 5, 20};
    for (int i = 0; i < 2; i++) { // said before: only its count grows
        cps_error(i ? same : d, CPS_W2214, (cps_span){i ? 2 : f, 10, 11}, "said before");
        cps_note(i ? same : d, CPS_NOSPAN, "in piece 1");
    }
    cps_diags_mark mark = cps_diags_mark_of(d, a);
    cps_buf none = {0}, kept = {0};
    CHECK(cps_diags_keep(d, &mark, &none) && none.n == 0);
    for (int i = 0; i < 3; i++)
        cps_error(d, CPS_W2214, x, "said before");
    for (int i = 0; i < 4; i++) {
        cps_error(d, CPS_W4108, wide, "100%% of '%s'", "x");
        cps_note(d, x, "in the note");
        cps_help(d, "help");
    }
    cps_error(d, CPS_W3301, CPS_NOSPAN, "no place");
    CHECK(cps_diags_keep(d, &mark, &kept) && kept.n > 0);
    CHECK(cps_diags_say(same, kept.data, kept.n));
    check_same(d, same);
    // without the source: its lines come along; twice the same place is one
    CHECK(cps_diags_say(bare, kept.data, kept.n) && cps_diags_say(bare, kept.data, kept.n));
    cps_buf text = {0};
    cps_diags_render(bare, &text, false);
    CHECK(strstr(text.data, "a.cps:2:2: warning: said before [W2214]\n    2 | \tx = y + ~z;\n      | \t^\n"));
    CHECK(strstr(text.data, "a.cps:1:6: warning: 100% of 'x' [W4108]\n    1 | line one\n      |      ^~~\n"));
    CHECK(strstr(text.data, "note: in piece 1; 5 more\n"));
    CHECK(strstr(text.data, "note: in the note; 7 more\n"));
    CHECK_INT(cps_diags_count(bare), 3);
    // bytes of somebody else
    uint64_t seed = 1;
    for (size_t n = 1; n < kept.n; n++) {
        char *cut = malloc(n);
        memcpy(cut, kept.data, n);
        cps_diags *e = cps_diags_create();
        CHECK(!cps_diags_say(e, cut, n) && cps_diags_count(e) == 0);
        cps_diags_destroy(e);
        free(cut);
    }
    for (int i = 0; i < 3000; i++) {
        char *bad = malloc(kept.n);
        memcpy(bad, kept.data, kept.n);
        for (int k = 0; k < 2; k++) {
            seed = seed * 6364136223846793005u + 1442695040888963407u;
            bad[(seed >> 33) % kept.n] ^= (char)(1 << (seed >> 60));
        }
        cps_diags *e = cps_diags_create();
        cps_diags_source(e, "a.cps", lines, sizeof lines - 1);
        if (!cps_diags_say(e, bad, kept.n))
            CHECK_INT(cps_diags_count(e), 0);
        text.n = 0;
        cps_diags_render(e, &text, false);
        cps_diags_destroy(e);
        free(bad);
    }
    // what was dropped cannot be kept
    mark = cps_diags_mark_of(d, a);
    for (int i = 0; i < 60; i++)
        cps_error(d, CPS_W3301, CPS_NOSPAN, "number %d", i);
    CHECK(!cps_diags_keep(d, &mark, &none));
    cps_buf_fini(&kept);
    cps_buf_fini(&none);
    cps_buf_fini(&text);
    cps_diags_destroy(d);
    cps_diags_destroy(same);
    cps_diags_destroy(bare);
    cps_arena_destroy(a);
}

int
main(void)
{
    cps_diags *d = cps_diags_create();
    char *name = malloc(12); // the sink keeps a copy of the name
    strcpy(name, "softmax.cps");
    uint32_t f = cps_diags_source(d, name, source, sizeof(source) - 1), line, col;
    free(name);
    size_t n;
    CHECK_INT(f, 1);
    CHECK_STR(cps_diags_source_name(d, f), "softmax.cps");
    CHECK_STR(cps_diags_source_name(d, 0), "");
    CHECK(cps_diags_source_text(d, f, &n) == source && n == sizeof(source) - 1);
    cps_diags_locate(d, span_of(f, "y ="), &line, &col);
    CHECK(line == 4 && col == 5);
    cps_diags_locate(d, CPS_NOSPAN, &line, &col);
    CHECK(line == 0 && col == 0);
    human(d, f);
    merging(d, f);
    limits(d);
    hostile(d);
    json(d, f);
    colours(d);
    table();
    keeping();
    cps_diags_destroy(d);
    cps_diags_destroy(NULL);
    return CHECK_DONE();
}
