/* JSON: layout of the writer, strictness of the reader with reasons and offsets, round trips of
 * random documents, mutated texts. */
#include "runtime/base/json.h"
#include "runtime/base/rng.h"
#include "tests/check.h"

#include <math.h>
#include <stdlib.h>

static cps_arena *arena;

static void
layout(void)
{
    cps_buf b = {0};
    cps_jsonw w;
    cps_jsonw_init(&w, &b);
    cps_jsonw_obj(&w, false);
    cps_jsonw_key(&w, "a");
    cps_jsonw_int(&w, INT64_MIN);
    cps_jsonw_key(&w, "list");
    cps_jsonw_arr(&w, false);
    cps_jsonw_num(&w, 0.5);
    cps_jsonw_obj(&w, true);
    cps_jsonw_key(&w, "x");
    cps_jsonw_null(&w);
    cps_jsonw_key(&w, "y");
    cps_jsonw_arr(&w, false); // inside a flat one: flat
    cps_jsonw_bool(&w, true);
    cps_jsonw_bool(&w, false);
    cps_jsonw_end_arr(&w);
    cps_jsonw_end_obj(&w);
    cps_jsonw_end_arr(&w);
    cps_jsonw_key(&w, "none");
    cps_jsonw_obj(&w, false);
    cps_jsonw_end_obj(&w);
    cps_jsonw_key(&w, "no\"ne");
    cps_jsonw_arr(&w, true);
    cps_jsonw_end_arr(&w);
    cps_jsonw_key(&w, "bad");
    cps_jsonw_arr(&w, true);
    cps_jsonw_num(&w, (double)NAN);
    cps_jsonw_num(&w, -(double)INFINITY);
    cps_jsonw_str(&w, "t\t\n\x01\\/\xC3\xA9\xFF\xE2\x82");
    cps_jsonw_end_arr(&w);
    cps_jsonw_end_obj(&w);
    cps_jsonw_done(&w);
    CHECK_STR(b.data, "{\n"
                      "  \"a\": -9223372036854775808,\n"
                      "  \"list\": [\n"
                      "    0.5,\n"
                      "    {\"x\": null, \"y\": [true, false]}\n"
                      "  ],\n"
                      "  \"none\": {},\n"
                      "  \"no\\\"ne\": [],\n"
                      "  \"bad\": [\"nan\", \"-inf\", \"t\\t\\n\\u0001\\\\/\xC3\xA9\xEF\xBF\xBD"
                      "\xEF\xBF\xBD\xEF\xBF\xBD\"]\n"
                      "}\n");
    cps_buf_fini(&b);
}

static const cps_json *
parse(const char *s, const char **why, size_t *at)
{
    size_t n = strlen(s); // an exact copy, so that a read beyond it is seen
    char *copy = malloc(n + !n);
    memcpy(copy, s, n);
    const cps_json *v = cps_json_parse(arena, copy, n, why, at);
    free(copy);
    return v;
}

static void
values(void)
{
    const char *why = NULL;
    size_t at = 0;
    const cps_json *v = parse(" {\"i\": 9223372036854775807, \"big\": 9223372036854775808, "
                              "\"neg\":-9223372036854775808,\"f\":1.5e2,\"z\":-0, \"s\" : "
                              "\"\\u0041\\uD83D\\uDE00\\n\\/\\\"\xC3\xA9\", \"l\":[1,[],{}], "
                              "\"t\":true,\"n\":null,\"\":1}\r\n",
                              &why, &at);
    CHECK(v && v->kind == CPS_JSON_OBJ);
    if (!v) {
        fprintf(stderr, "%s at %zu\n", why, at);
        return;
    }
    CHECK_INT(v->n, 10);
    CHECK_INT(cps_json_get(v, "i")->i, INT64_MAX);
    CHECK(cps_json_get(v, "big")->kind == CPS_JSON_NUM &&
          cps_json_get(v, "big")->num == 0x1p63);
    CHECK_INT(cps_json_get(v, "neg")->i, INT64_MIN);
    CHECK(cps_json_get(v, "f")->num == 150 && cps_json_get(v, "f")->kind == CPS_JSON_NUM);
    CHECK(cps_json_get(v, "z")->kind == CPS_JSON_NUM && signbit(cps_json_get(v, "z")->num));
    CHECK_STR(cps_json_get(v, "s")->str, "A\xF0\x9F\x98\x80\n/\"\xC3\xA9");
    const cps_json *l = cps_json_get(v, "l");
    CHECK(l->kind == CPS_JSON_ARR && l->n == 3 && l->first->next->next->kind == CPS_JSON_OBJ);
    CHECK(!l->first->next->next->next && l->first->i == 1 && l->first->num == 1);
    CHECK(cps_json_get(v, "t")->i == 1 && cps_json_get(v, "n")->kind == CPS_JSON_NULL);
    CHECK(cps_json_get(v, "")->i == 1);
    CHECK(!cps_json_get(v, "absent") && !cps_json_get(l, "i") && !cps_json_get(NULL, "i"));
    CHECK_STR(v->first->key, "i");

    bool ok = true;
    CHECK_INT(cps_json_int(v, "i", true, 0, &ok), INT64_MAX);
    CHECK(cps_json_num(v, "f", true, 0, &ok) == 150 &&
          cps_json_num(v, "t2", false, 3, &ok) == 3);
    CHECK(cps_json_num(v, "neg", true, 0, &ok) == -0x1p63);
    CHECK_STR(cps_json_str(v, "s2", false, "dflt", &ok), "dflt");
    CHECK(ok);
    CHECK_INT(cps_json_int(v, "f", false, 7, &ok), 7); // there, but not an integer
    CHECK(!ok);
    ok = true;
    CHECK(cps_json_str(v, "absent", true, NULL, &ok) == NULL && !ok);
    CHECK_INT(cps_json_int(v, "i", true, 0, &ok), INT64_MAX);
    CHECK(!ok); // never set again
}

static void
refused(void)
{
    static const struct {
        const char *s;
        size_t at;
        const char *why;
    } row[] = {
        {"", 0, "a value is missing or misspelt"},
        {"  ", 2, "a value is missing or misspelt"},
        {"nul", 0, "a value is missing or misspelt"},
        {"True", 0, "a value is missing or misspelt"},
        {"NaN", 0, "a value is missing or misspelt"},
        {"\xEF\xBB\xBF{}", 0, "a value is missing or misspelt"},
        {"[1,]", 3, "a value is missing or misspelt"},
        {"[,1]", 1, "a value is missing or misspelt"},
        {"[1 2]", 3, "',' or ']' is missing"},
        {"[1", 2, "',' or ']' is missing"},
        {"{\"a\":1", 6, "',' or '}' is missing"},
        {"{\"a\":1,}", 7, "a member needs a name in double quotes"},
        {"{a:1}", 1, "a member needs a name in double quotes"},
        {"{'a':1}", 1, "a member needs a name in double quotes"},
        {"{\"a\" 1}", 5, "':' is missing after a name"},
        {"{\"a\":1,\"a\":2}", 7, "a name that the object has already"},
        {"1 2", 2, "text after the end of the value"},
        {"{} // c", 3, "text after the end of the value"},
        {"01", 0, "a number with a leading zero"},
        {"-", 1, "a digit is missing in a number"},
        {"1.", 2, "a digit is missing in a number"},
        {"1e+", 3, "a digit is missing in a number"},
        {".5", 0, "a value is missing or misspelt"},
        {"+1", 0, "a value is missing or misspelt"},
        {"0x10", 1, "text after the end of the value"},
        {"1_000", 1, "text after the end of the value"},
        {"1e999", 0, "a number beyond the range of a double"},
        {"\"abc", 0, "a string that does not end"},
        {"\"abc\\\"", 0, "a string that does not end"},
        {"\"abc\\", 0, "a string that does not end"},
        {"\"\\x41\"", 2, "unknown escape in a string"},
        {"\"\\u12\"", 5, "\\u needs four hex digits"},
        {"\"\\u12g4\"", 5, "\\u needs four hex digits"},
        {"\"\\u0000\"", 3, "a NUL character inside a string"},
        {"\"\\uD800\"", 3, "a high surrogate without a low one"},
        {"\"\\uD800\\u0041\"", 3, "a high surrogate without a low one"},
        {"\"\\uDC00\"", 3, "a low surrogate without a high one"},
        {"\"a\nb\"", 2, "a control character in a string"},
        {"\"a\tb\"", 2, "a control character in a string"},
        {"\"\xFF\"", 1, "bytes that are not UTF-8"},
        {"\"\xC0\x80\"", 1, "bytes that are not UTF-8"},     // overlong
        {"\"\xED\xA0\x80\"", 1, "bytes that are not UTF-8"}, // surrogate
        {"\"\xF4\x90\x80\x80\"", 1, "bytes that are not UTF-8"},
        {"\"\xE2\x82\"", 1, "bytes that are not UTF-8"},
        {"]", 0, "a value is missing or misspelt"},
    };
    for (size_t i = 0; i < cps_countof(row); i++) {
        const char *why = NULL;
        size_t at = 99;
        const cps_json *v = parse(row[i].s, &why, &at);
        if (v || at != row[i].at || !cps_streq(why, row[i].why))
            fprintf(stderr, "case %zu: %s\n", i, row[i].s);
        CHECK(!v);
        CHECK_INT(at, row[i].at);
        CHECK_STR(why, row[i].why);
    }
    CHECK(!cps_json_parse(arena, "[", 1, NULL, NULL)); // nobody asks why
    const char *why;
    size_t at;
    CHECK(!cps_json_parse(arena, "1\0 ", 3, &why, &at) && at == 1);
}

static void
limits(void)
{
    char text[200];
    const char *why;
    size_t at;
    memset(text, '[', 64);
    memset(text + 64, ']', 64);
    CHECK(cps_json_parse(arena, text, 128, &why, &at));
    memset(text, '[', 65);
    memset(text + 65, ']', 65);
    CHECK(!cps_json_parse(arena, text, 130, &why, &at));
    CHECK_INT(at, 64);
    CHECK_STR(why, "more than 64 levels of nesting");
    // Many names in one object take linear time, and the last may be the duplicate.
    cps_buf b = {0};
    cps_buf_putc(&b, '{');
    for (int i = 0; i < 20000; i++)
        cps_buf_printf(&b, "\"k%d\":%d,", i, i);
    size_t n = b.n;
    cps_buf_puts(&b, "\"last\":1}");
    const cps_json *v = cps_json_parse(arena, b.data, b.n, &why, &at);
    CHECK(v && v->n == 20001);
    b.n = n;
    cps_buf_puts(&b, "\"k77\":1}");
    CHECK(!cps_json_parse(arena, b.data, b.n, &why, &at) && at == n);
    cps_buf_fini(&b);
}

static void
random_value(cps_rng *r, cps_jsonw *w, int depth)
{
    char name[16];
    uint64_t kind = cps_rng_below(r, depth < 6 ? 8 : 5), n = cps_rng_below(r, 12), bits;
    double d;
    switch (kind) {
    case 0:
        cps_jsonw_int(w, (int64_t)cps_rng_next(r));
        break;
    case 1:
        bits = cps_rng_next(r);
        memcpy(&d, &bits, 8);
        cps_jsonw_num(w, d);
        break;
    case 2:
        for (size_t i = 0; i < 15; i++)
            name[i] = (char)(1 + cps_rng_below(r, 255));
        name[15] = 0;
        cps_jsonw_str(w, name);
        break;
    case 3:
        cps_jsonw_bool(w, cps_rng_below(r, 2));
        break;
    case 4:
        cps_jsonw_null(w);
        break;
    case 5:
    case 6:
        cps_jsonw_arr(w, cps_rng_below(r, 2));
        while (n--)
            random_value(r, w, depth + 1);
        cps_jsonw_end_arr(w);
        break;
    default:
        cps_jsonw_obj(w, cps_rng_below(r, 2));
        while (n--) {
            snprintf(name, sizeof(name), "n\n%d", (int)n);
            cps_jsonw_key(w, name);
            random_value(r, w, depth + 1);
        }
        cps_jsonw_end_obj(w);
    }
}

static void
write_again(cps_jsonw *w, const cps_json *v, bool flat)
{
    switch (v->kind) {
    case CPS_JSON_NULL:
        cps_jsonw_null(w);
        break;
    case CPS_JSON_BOOL:
        cps_jsonw_bool(w, v->i);
        break;
    case CPS_JSON_INT:
        cps_jsonw_int(w, v->i);
        break;
    case CPS_JSON_NUM:
        cps_jsonw_num(w, v->num);
        break;
    case CPS_JSON_STR:
        cps_jsonw_str(w, v->str);
        break;
    default:
        if (v->kind == CPS_JSON_OBJ)
            cps_jsonw_obj(w, flat);
        else
            cps_jsonw_arr(w, flat);
        for (const cps_json *m = v->first; m; m = m->next) {
            if (m->key)
                cps_jsonw_key(w, m->key);
            write_again(w, m, flat);
        }
        if (v->kind == CPS_JSON_OBJ)
            cps_jsonw_end_obj(w);
        else
            cps_jsonw_end_arr(w);
    }
}

// Read, written flat, read and written flat again: the same bytes. Then mutated: no crash.
static void
random_documents(void)
{
    cps_rng r;
    cps_rng_init(&r, 9, 0);
    int refusals = 0;
    for (int i = 0; i < 300; i++) {
        cps_mark m = cps_arena_mark(arena);
        cps_buf b[3] = {{0}};
        const char *why = NULL;
        size_t at;
        cps_jsonw w;
        cps_jsonw_init(&w, &b[0]);
        random_value(&r, &w, 0);
        cps_jsonw_done(&w);
        for (int k = 0; k < 2; k++) {
            const cps_json *v = cps_json_parse(arena, b[k].data, b[k].n, &why, &at);
            CHECK(v != NULL);
            if (!v)
                break;
            cps_jsonw_init(&w, &b[k + 1]);
            write_again(&w, v, true);
            cps_jsonw_done(&w);
        }
        CHECK_STR(b[1].data, b[2].data);
        for (int k = 0; k < 30; k++) {
            size_t n = 1 + cps_rng_below(&r, b[1].n);
            char *copy = malloc(n);
            memcpy(copy, b[1].data, n);
            copy[cps_rng_below(&r, n)] = (char)cps_rng_next(&r);
            copy[cps_rng_below(&r, n)] = "{}[]\",:\\u0e"[cps_rng_below(&r, 11)];
            why = NULL;
            if (!cps_json_parse(arena, copy, n, &why, &at)) {
                refusals++;
                CHECK(why && at <= n);
            }
            free(copy);
        }
        for (int k = 0; k < 3; k++)
            cps_buf_fini(&b[k]);
        cps_arena_release(arena, m);
    }
    CHECK(refusals > 1000);
}

int
main(void)
{
    arena = cps_arena_create();
    layout();
    values();
    refused();
    limits();
    random_documents();
    cps_arena_destroy(arena);
    return CHECK_DONE();
}
