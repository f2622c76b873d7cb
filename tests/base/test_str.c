/* Buffers, numbers as text (round trips, any locale), integers, edit distance, symbols. */
#include "runtime/base/rng.h"
#include "runtime/base/str.h"
#include "tests/check.h"

#include <locale.h>
#include <math.h>
#include <stdlib.h>

static void
buffers(void)
{
    cps_buf b = {0};
    cps_buf_put(&b, NULL, 0);
    CHECK_STR(b.data, "");
    cps_buf_puts(&b, "ab");
    cps_buf_putc(&b, 'c');
    cps_buf_printf(&b, "-%d-%s", 12, "xyz");
    CHECK_STR(b.data, "abc-12-xyz");
    for (int i = 0; i < 1000; i++)
        cps_buf_printf(&b, "%04d", i);
    CHECK_INT(b.n, 10 + 4000);
    CHECK_STR(b.data + b.n - 8, "09980999");
    cps_buf_fini(&b);
    CHECK(b.data == NULL && b.n == 0);
    for (int n = 55; n < 75; n++) { // the text ends just where the buffer does
        cps_buf_printf(&b, "%0*d", n, 5);
        CHECK_INT(strlen(b.data), n);
        cps_buf_fini(&b);
    }
}

static const char *
shown(double v, bool single)
{
    static char text[64];
    cps_buf b = {0};
    if (single)
        cps_buf_put_float(&b, (float)v);
    else
        cps_buf_put_double(&b, v);
    snprintf(text, sizeof(text), "%s", b.data);
    cps_buf_fini(&b);
    return text;
}

static void
known_numbers(void)
{
    CHECK_STR(shown(0, false), "0.0");
    CHECK_STR(shown(-0.0, false), "-0.0");
    CHECK_STR(shown(1, false), "1.0");
    CHECK_STR(shown(-1.5, false), "-1.5");
    CHECK_STR(shown(0.1, false), "0.1");
    CHECK_STR(shown(0.1 + 0.2, false), "0.30000000000000004");
    CHECK_STR(shown(100, false), "100.0");
    CHECK_STR(shown(123456.789, false), "123456.789");
    CHECK_STR(shown(0.00001, false), "0.00001");
    CHECK_STR(shown(0.000001, false), "1e-6");
    CHECK_STR(shown(2.5e-7, false), "2.5e-7");
    CHECK_STR(shown(1e15, false), "1000000000000000.0");
    CHECK_STR(shown(1e16, false), "1e16");
    CHECK_STR(shown(1e23, false), "1e23");
    CHECK_STR(shown(9007199254740993.0, false), "9007199254740992.0");
    CHECK_STR(shown(5e-324, false), "5e-324");
    CHECK_STR(shown(2.2250738585072014e-308, false), "2.2250738585072014e-308");
    CHECK_STR(shown(1.7976931348623157e308, false), "1.7976931348623157e308");
    CHECK_STR(shown((double)INFINITY, false), "inf");
    CHECK_STR(shown(-(double)INFINITY, false), "-inf");
    CHECK_STR(shown((double)NAN, false), "nan");
    CHECK_STR(shown(0.1, true), "0.1");
    CHECK_STR(shown(16777216, true), "16777216.0");
    CHECK_STR(shown(3.4028234663852886e38, true), "3.4028235e38");
    CHECK_STR(shown(1.401298464324817e-45, true), "1e-45");
    CHECK_STR(shown(1.0 / 3, true), "0.33333334");
}

// Random bit patterns: the text reads back as the same value, and one digit less does not.
static void
round_trips(void)
{
    cps_rng r;
    cps_rng_init(&r, 2, 0);
    bool all = true;
    for (int i = 0; i < 20000; i++) {
        uint64_t b = cps_rng_next(&r);
        double v, back, libc;
        if (i % 4 == 1)
            b &= 0x800fffffffffffffu; // subnormal
        memcpy(&v, &b, 8);
        if (i % 4 == 2)
            v = (double)(int64_t)(b >> 20) / 1000;
        const char *t = shown(v, false);
        bool ok = cps_parse_double(t, strlen(t), &back);
        libc = strtod(t, NULL);
        all = all && ok && (isnan(v) ? isnan(back) : back == v && libc == v);
        float f = (float)v;
        t = shown(f, true);
        all = all && (isnan(f) ? true : strtof(t, NULL) == f);
    }
    CHECK(all);
}

static void
parse_doubles(void)
{
    static const struct {
        const char *s;
        double v;
    } good[] = {{"0", 0},
                {"1", 1},
                {"+1.5", 1.5},
                {"-2.", -2},
                {".5", 0.5},
                {"1e3", 1000},
                {"1E-3", 0.001},
                {"00012", 12},
                {"0.000000000000000000000000000001", 1e-30},
                {"1e-400", 0},
                {"123456789012345678901234567890", 1.2345678901234568e29},
                {"1e99999999999999999999", 0}, // see below
                {"0e99999999999999999999", 0},
                {"1e-99999999999999999999", 0},
                {"9007199254740993", 9007199254740992},
                {"9007199254740993.0000000000000000000000000001", 9007199254740994},
                {"2.2250738585072011e-308", 2.225073858507201e-308}};
    static const char *const bad[] = {
        "",     ".",   "+",  "-",        "e5",    "1e",  "1e+",    "1.2.3", "1 ",    " 1",
        "0x10", "1,5", "1f", "infinity", "1e400", "--1", "nan(1)", "in",    "1e5.0", "1_0"};
    double v;
    for (size_t i = 0; i < cps_countof(good); i++) {
        bool ok = cps_parse_double(good[i].s, strlen(good[i].s), &v);
        if (i == 11) {
            CHECK(!ok); // no double is that large
            continue;
        }
        CHECK(ok && v == good[i].v);
    }
    for (size_t i = 0; i < cps_countof(bad); i++)
        CHECK(!cps_parse_double(bad[i], strlen(bad[i]), &v));
    CHECK(cps_parse_double("-0", 2, &v) && v == 0 && signbit(v));
    CHECK(cps_parse_double("-inf", 4, &v) && isinf(v) && v < 0);
    CHECK(cps_parse_double("nan", 3, &v) && isnan(v));
    CHECK(cps_parse_double("12345", 3, &v) && v == 123); // n bytes, no more
    // A tie decided by a digit far behind: 2^53 + 1 and 2000 zeros and then a one, or not.
    char text[2100] = "9007199254740993.";
    memset(text + 17, '0', 2000);
    CHECK(cps_parse_double(text, 2017, &v) && v == 9007199254740992);
    text[2016] = '1';
    CHECK(cps_parse_double(text, 2017, &v) && v == 9007199254740994);
    memset(text, '9', 2000);
    CHECK(!cps_parse_double(text, 2000, &v));
    CHECK(cps_parse_double(text, 308, &v) && v == 1e308);
    text[1000] = '.';
    memcpy(text + 2000, "e-900", 5);
    CHECK(cps_parse_double(text, 2005, &v) && v == 1e100);
}

// A host program may have a decimal comma. The build makes such a locale and sets LOCPATH where
// it can; elsewhere one that is installed is taken, if any.
static void
locales(void)
{
    static const char *const names[] = {"de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8", "ps_AF"};
    for (size_t i = 0; i < cps_countof(names); i++)
        if (setlocale(LC_NUMERIC, names[i]))
            break;
    if (getenv("LOCPATH"))
        CHECK_STR(localeconv()->decimal_point, ",");
    known_numbers();
    double v;
    CHECK(cps_parse_double("1.25e1", 6, &v) && v == 12.5);
    CHECK(!cps_parse_double("1,25", 4, &v));
    setlocale(LC_NUMERIC, "C");
}

static void
parse_ints(void)
{
    static const struct {
        const char *s;
        int64_t v;
    } good[] = {{"0", 0},
                {"-1", -1},
                {"+7", 7},
                {"1_000_000", 1000000},
                {"0x1F", 31},
                {"-0x10", -16},
                {"0xFFFF_FFFF", 0xFFFFFFFF},
                {"9223372036854775807", INT64_MAX},
                {"-9223372036854775808", INT64_MIN},
                {"0007", 7}};
    static const char *const bad[] = {"",
                                      "-",
                                      "_1",
                                      "1_",
                                      "1__2",
                                      "0x",
                                      "0x_1",
                                      "12a",
                                      "0xg",
                                      " 1",
                                      "1 ",
                                      "--1",
                                      "1.0",
                                      "9223372036854775808",
                                      "-9223372036854775809",
                                      "99999999999999999999999"};
    int64_t v;
    for (size_t i = 0; i < cps_countof(good); i++)
        CHECK(cps_parse_int(good[i].s, strlen(good[i].s), &v) && v == good[i].v);
    for (size_t i = 0; i < cps_countof(bad); i++)
        CHECK(!cps_parse_int(bad[i], strlen(bad[i]), &v));
}

// The whole table, for comparison with the banded one.
static int
plain_distance(const char *a, const char *b)
{
    int d[32][32];
    int la = (int)strlen(a), lb = (int)strlen(b);
    for (int i = 0; i <= la; i++)
        for (int j = 0; j <= lb; j++) {
            if (!i || !j) {
                d[i][j] = i + j;
                continue;
            }
            int best = CPS_MIN(d[i - 1][j], d[i][j - 1]) + 1;
            d[i][j] = CPS_MIN(best, d[i - 1][j - 1] + (a[i - 1] != b[j - 1]));
        }
    return CPS_MIN(d[la][lb], 4);
}

static void
distances(void)
{
    CHECK_INT(cps_edit_distance("", ""), 0);
    CHECK_INT(cps_edit_distance("", "abc"), 3);
    CHECK_INT(cps_edit_distance("abcd", ""), 4);
    CHECK_INT(cps_edit_distance("kitten", "sitting"), 3);
    CHECK_INT(cps_edit_distance("softmax", "sofmtax"), 2);
    CHECK_INT(cps_edit_distance("matmul", "attention"), 4);
    cps_rng r;
    cps_rng_init(&r, 3, 0);
    for (int i = 0; i < 3000; i++) {
        char s[2][16] = {{0}};
        for (int k = 0; k < 2; k++)
            for (uint64_t n = cps_rng_below(&r, 9), j = 0; j < n; j++)
                s[k][j] = (char)('a' + cps_rng_below(&r, 3));
        CHECK_INT(cps_edit_distance(s[0], s[1]), plain_distance(s[0], s[1]));
    }
}

static void
symbols(void)
{
    cps_symtab *t = cps_symtab_create();
    CHECK_INT(cps_sym_intern(t, ""), 0);
    CHECK_STR(cps_sym_name(t, 0), "");
    CHECK_INT(cps_sym_intern(t, "a"), 1);
    CHECK_INT(cps_sym_intern_n(t, "abc", 2), 2);
    CHECK_INT(cps_sym_intern(t, "ab"), 2);
    CHECK_INT(cps_sym_find(t, "a"), 1);
    CHECK_INT(cps_sym_find(t, "zzz"), 0);
    char name[32];
    for (int i = 0; i < 5000; i++) {
        snprintf(name, sizeof(name), "symbol%d", i);
        CHECK_INT(cps_sym_intern(t, name), 3 + i);
    }
    for (int i = 0; i < 5000; i += 7) {
        snprintf(name, sizeof(name), "symbol%d", i);
        CHECK_INT(cps_sym_find(t, name), 3 + i);
        CHECK_STR(cps_sym_name(t, (cps_sym)(3 + i)), name);
    }
    cps_symtab_destroy(t);
    cps_symtab_destroy(NULL);
}

int
main(void)
{
    buffers();
    known_numbers();
    round_trips();
    parse_doubles();
    locales();
    parse_ints();
    distances();
    symbols();
    CHECK(cps_streq(NULL, NULL) && cps_streq("a", "a") && !cps_streq("a", NULL));
    CHECK(cps_has_suffix("a.npy", ".npy") && !cps_has_suffix("npy", ".npy"));
    return CHECK_DONE();
}
