/* JSON out and in.
 *
 * Writer: values in, text out; two blanks of indent, one member a line, `flat` containers on
 * one line, everything inside a flat one flat too. Always valid JSON: bytes that are not UTF-8
 * become U+FFFD, numbers JSON cannot say become strings. Reader: RFC 8259 to the letter (UTF-8
 * checked, no trailing commas, no comments, one value), plus three limits of ours that are
 * errors and not surprises: depth 64, no NUL inside a string (texts are C strings), no
 * duplicate names in an object. Integers that fit int64 stay exact. */
#include "runtime/base/json.h"
#include "runtime/base/map.h"

#include <math.h>
#include <string.h>

// ---- UTF-8, shared by both ----

// Length of the well-formed sequence at s (Unicode table 3-7), 0 when there is none.
static size_t
utf8_length(const char *text, size_t n)
{
    const unsigned char *s = (const unsigned char *)text;
    if (!n)
        return 0;
    if (s[0] < 0x80)
        return 1;
    size_t k = s[0] < 0xC2 ? 0 : s[0] < 0xE0 ? 2 : s[0] < 0xF0 ? 3 : s[0] < 0xF5 ? 4 : 0;
    if (!k || n < k)
        return 0;
    unsigned lo = s[0] == 0xE0 ? 0xA0 : s[0] == 0xF0 ? 0x90 : 0x80;
    unsigned hi = s[0] == 0xED ? 0x9F : s[0] == 0xF4 ? 0x8F : 0xBF;
    if (s[1] < lo || s[1] > hi)
        return 0;
    for (size_t i = 2; i < k; i++)
        if ((s[i] & 0xC0) != 0x80)
            return 0;
    return k;
}

// ---- writer ----

static inline uint64_t
bit(int depth)
{
    return (uint64_t)1 << depth;
}

void
cps_jsonw_init(cps_jsonw *w, cps_buf *out)
{
    *w = (cps_jsonw){.out = out};
}

static void
new_line(cps_jsonw *w)
{
    cps_buf_putc(w->out, '\n');
    for (int i = 0; i < w->depth; i++)
        cps_buf_puts(w->out, "  ");
}

// What stands between the previous element and the next.
static void
separate(cps_jsonw *w)
{
    bool first = !(w->some & bit(w->depth));
    w->some |= bit(w->depth);
    if (w->depth == 0) {
        cps_assert(first); // a document is one value
        return;
    }
    if (!first)
        cps_buf_putc(w->out, ',');
    if (!(w->flat & bit(w->depth)))
        new_line(w);
    else if (!first)
        cps_buf_putc(w->out, ' ');
}

static void
before_value(cps_jsonw *w)
{
    if (w->after_key)
        w->after_key = false;
    else
        separate(w);
}

static void
open_container(cps_jsonw *w, char c, bool flat)
{
    before_value(w);
    cps_buf_putc(w->out, c);
    flat = flat || (w->depth && w->flat & bit(w->depth));
    cps_assert(w->depth < 63);
    w->depth++;
    w->some &= ~bit(w->depth);
    w->flat = flat ? w->flat | bit(w->depth) : w->flat & ~bit(w->depth);
}

static void
close_container(cps_jsonw *w, char c)
{
    cps_assert(w->depth > 0 && !w->after_key);
    bool some = w->some & bit(w->depth), flat = w->flat & bit(w->depth);
    w->depth--;
    if (some && !flat)
        new_line(w);
    cps_buf_putc(w->out, c);
}

void
cps_jsonw_obj(cps_jsonw *w, bool flat)
{
    open_container(w, '{', flat);
}

void
cps_jsonw_arr(cps_jsonw *w, bool flat)
{
    open_container(w, '[', flat);
}

void
cps_jsonw_end_obj(cps_jsonw *w)
{
    close_container(w, '}');
}

void
cps_jsonw_end_arr(cps_jsonw *w)
{
    close_container(w, ']');
}

static void
put_string(cps_buf *out, const char *s)
{
    static const char plain[] = "\"\\\b\f\n\r\t", letter[] = "\"\\bfnrt";
    size_t n = strlen(s);
    cps_buf_putc(out, '"');
    while (n) {
        size_t run = 0; // mostly all of it
        while (run < n && s[run] >= ' ' && s[run] < 0x7f && s[run] != '"' && s[run] != '\\')
            run++;
        if (run) {
            cps_buf_put(out, s, run);
            s += run;
            n -= run;
            continue;
        }
        size_t k = utf8_length(s, n);
        const char *esc = strchr(plain, *s);
        if (!k)
            cps_buf_puts(out, "\xEF\xBF\xBD");
        else if (esc)
            cps_buf_printf(out, "\\%c", letter[esc - plain]);
        else if ((unsigned char)*s < 0x20)
            cps_buf_printf(out, "\\u%04x", (unsigned)(unsigned char)*s);
        else
            cps_buf_put(out, s, k);
        k += !k;
        s += k;
        n -= k;
    }
    cps_buf_putc(out, '"');
}

void
cps_jsonw_key(cps_jsonw *w, const char *key)
{
    cps_assert(w->depth > 0 && !w->after_key);
    separate(w);
    put_string(w->out, key);
    cps_buf_puts(w->out, ": ");
    w->after_key = true;
}

void
cps_jsonw_str(cps_jsonw *w, const char *s)
{
    before_value(w);
    put_string(w->out, s);
}

void
cps_jsonw_int(cps_jsonw *w, int64_t v)
{
    char text[20], *at = text + sizeof text;
    uint64_t left = v < 0 ? 0 - (uint64_t)v : (uint64_t)v;
    do
        *--at = (char)('0' + left % 10);
    while (left /= 10);
    if (v < 0)
        *--at = '-';
    before_value(w);
    cps_buf_put(w->out, at, (size_t)(text + sizeof text - at));
}

void
cps_jsonw_num(cps_jsonw *w, double v)
{
    before_value(w);
    if (!isfinite(v))
        cps_buf_putc(w->out, '"');
    cps_buf_put_double(w->out, v);
    if (!isfinite(v))
        cps_buf_putc(w->out, '"');
}

void
cps_jsonw_bool(cps_jsonw *w, bool v)
{
    before_value(w);
    cps_buf_puts(w->out, v ? "true" : "false");
}

void
cps_jsonw_null(cps_jsonw *w)
{
    before_value(w);
    cps_buf_puts(w->out, "null");
}

void
cps_jsonw_raw(cps_jsonw *w, const char *token)
{
    before_value(w);
    cps_buf_puts(w->out, token);
}

void
cps_jsonw_done(cps_jsonw *w)
{
    cps_assert(w->depth == 0 && !w->after_key);
    cps_buf_putc(w->out, '\n');
}

// ---- reader ----

enum { DEPTH = 64, FEW_MEMBERS = 8 };

typedef struct reader {
    cps_arena *arena;
    const char *text;
    size_t n, at;
    const char *why;
    size_t bad; // where
} reader;

static bool
fail(reader *r, size_t at, const char *why)
{
    if (!r->why) {
        r->why = why;
        r->bad = at;
    }
    return false;
}

static int
peek(const reader *r)
{
    return r->at < r->n ? (unsigned char)r->text[r->at] : -1;
}

static void
skip_blanks(reader *r)
{
    for (int c = peek(r); c == ' ' || c == '\t' || c == '\n' || c == '\r'; c = peek(r))
        r->at++;
}

static bool
take(reader *r, char c)
{
    if (peek(r) != c)
        return false;
    r->at++;
    return true;
}

static bool
four_hex(reader *r, uint32_t *out)
{
    *out = 0;
    for (int i = 0; i < 4; i++) {
        int c = peek(r), lower = c | 32;
        if (!(c >= '0' && c <= '9') && !(c > 0 && lower >= 'a' && lower <= 'f'))
            return fail(r, r->at, "\\u needs four hex digits");
        *out = *out * 16 + (uint32_t)(c <= '9' ? c - '0' : lower - 'a' + 10);
        r->at++;
    }
    return true;
}

static char *
put_code_point(char *p, uint32_t c)
{
    if (c < 0x80) {
        *p++ = (char)c;
        return p;
    }
    if (c < 0x800) {
        *p++ = (char)(0xC0 | c >> 6);
    } else {
        if (c < 0x10000) {
            *p++ = (char)(0xE0 | c >> 12);
        } else {
            *p++ = (char)(0xF0 | c >> 18);
            *p++ = (char)(0x80 | (c >> 12 & 63));
        }
        *p++ = (char)(0x80 | (c >> 6 & 63));
    }
    *p++ = (char)(0x80 | (c & 63));
    return p;
}

// After "\u".
static bool
read_unicode_escape(reader *r, char **p)
{
    size_t at = r->at;
    uint32_t c, low;
    if (!four_hex(r, &c))
        return false;
    if (c == 0)
        return fail(r, at, "a NUL character inside a string");
    if (c >= 0xDC00 && c <= 0xDFFF)
        return fail(r, at, "a low surrogate without a high one");
    if (c >= 0xD800 && c <= 0xDBFF) {
        if (!take(r, '\\') || !take(r, 'u'))
            return fail(r, at, "a high surrogate without a low one");
        if (!four_hex(r, &low))
            return false;
        if (low < 0xDC00 || low > 0xDFFF)
            return fail(r, at, "a high surrogate without a low one");
        c = 0x10000 + ((c - 0xD800) << 10) + (low - 0xDC00);
    }
    *p = put_code_point(*p, c);
    return true;
}

static bool
read_escape(reader *r, char **p)
{
    static const char letter[] = "\"\\/bfnrt", means[] = "\"\\/\b\f\n\r\t";
    int c = peek(r);
    const char *found = c > 0 ? strchr(letter, c) : NULL;
    if (c == 'u') {
        r->at++;
        return read_unicode_escape(r, p);
    }
    if (!found)
        return fail(r, r->at, "unknown escape in a string");
    *(*p)++ = means[found - letter];
    r->at++;
    return true;
}

// At the opening quote. No escape decodes to more bytes than it is written with.
static const char *
read_string(reader *r)
{
    size_t open = r->at++, stop = r->at;
    while (stop < r->n && r->text[stop] != '"')
        stop += 1 + (r->text[stop] == '\\');
    if (stop >= r->n) {
        fail(r, open, "a string that does not end");
        return NULL;
    }
    char *s = cps_arena_raw(r->arena, stop - open), *p = s;
    while (r->at < stop) {
        unsigned char c = (unsigned char)r->text[r->at];
        if (c == '\\') {
            r->at++;
            if (!read_escape(r, &p))
                return NULL;
            continue;
        }
        size_t k = utf8_length(r->text + r->at, r->n - r->at);
        if (!k || c < 0x20) {
            fail(r, r->at, k ? "a control character in a string" : "bytes that are not UTF-8");
            return NULL;
        }
        memcpy(p, r->text + r->at, k);
        p += k;
        r->at += k;
    }
    *p = 0;
    r->at = stop + 1;
    return s;
}

static bool
digits(reader *r)
{
    size_t at = r->at;
    while (peek(r) >= '0' && peek(r) <= '9')
        r->at++;
    return r->at > at || fail(r, r->at, "a digit is missing in a number");
}

static bool
read_number(reader *r, cps_json *v)
{
    size_t at = r->at;
    bool neg = take(r, '-'), whole = true;
    if (!take(r, '0') && !digits(r))
        return false;
    if (peek(r) >= '0' && peek(r) <= '9')
        return fail(r, at, "a number with a leading zero");
    if (take(r, '.')) {
        whole = false;
        if (!digits(r))
            return false;
    }
    if (take(r, 'e') || take(r, 'E')) {
        whole = false;
        if (!take(r, '+'))
            take(r, '-');
        if (!digits(r))
            return false;
    }
    const char *s = r->text + at;
    size_t n = r->at - at;
    if (whole && cps_parse_int(s, n, &v->i) && !(neg && v->i == 0)) { // -0 is a double
        v->kind = CPS_JSON_INT;
        v->num = (double)v->i;
        return true;
    }
    v->kind = CPS_JSON_NUM;
    v->i = 0;
    v->str = cps_arena_strndup(r->arena, s, n);
    return cps_parse_double(s, n, &v->num) ||
           fail(r, at, "a number beyond the range of a double");
}

static bool
word(reader *r, const char *w)
{
    size_t n = strlen(w);
    if (r->n - r->at < n || memcmp(r->text + r->at, w, n) != 0)
        return fail(r, r->at, "a value is missing or misspelt");
    r->at += n;
    return true;
}

static bool read_value(reader *r, cps_json *v, int depth);

// Few members are compared one by one; from FEW_MEMBERS on a map holds the names.
static bool
is_duplicate(reader *r, const cps_json *obj, cps_map *names, const char *key)
{
    if (obj->n < FEW_MEMBERS) {
        for (const cps_json *m = obj->first; m; m = m->next)
            if (strcmp(m->key, key) == 0)
                return true;
        return false;
    }
    if (!names->arena) {
        cps_map_init(names, r->arena);
        for (const cps_json *m = obj->first; m; m = m->next)
            cps_map_at_str(names, m->key, NULL);
    }
    bool fresh;
    cps_map_at_str(names, key, &fresh);
    return !fresh;
}

// After the opening bracket.
static bool
read_members(reader *r, cps_json *v, int depth)
{
    bool obj = v->kind == CPS_JSON_OBJ;
    char close = obj ? '}' : ']';
    cps_map names = {0};
    cps_json **end = &v->first;
    skip_blanks(r);
    if (take(r, close))
        return true;
    for (;;) {
        const char *key = NULL;
        skip_blanks(r);
        if (obj) {
            size_t at = r->at;
            if (peek(r) != '"')
                return fail(r, at, "a member needs a name in double quotes");
            key = read_string(r);
            if (!key)
                return false;
            if (is_duplicate(r, v, &names, key))
                return fail(r, at, "a name that the object has already");
            skip_blanks(r);
            if (!take(r, ':'))
                return fail(r, r->at, "':' is missing after a name");
        }
        cps_json *m = cps_new(r->arena, cps_json);
        if (!read_value(r, m, depth))
            return false;
        m->key = key;
        *end = m;
        end = &m->next;
        v->n++;
        skip_blanks(r);
        if (take(r, close))
            return true;
        if (!take(r, ','))
            return fail(r, r->at, obj ? "',' or '}' is missing" : "',' or ']' is missing");
    }
}

static bool
read_value(reader *r, cps_json *v, int depth)
{
    skip_blanks(r);
    int c = peek(r);
    v->at = (uint32_t)r->at;
    if (c == '{' || c == '[') {
        if (depth == DEPTH)
            return fail(r, r->at, "more than 64 levels of nesting");
        r->at++;
        v->kind = c == '{' ? CPS_JSON_OBJ : CPS_JSON_ARR;
        return read_members(r, v, depth + 1);
    }
    if (c == '"') {
        v->kind = CPS_JSON_STR;
        v->str = read_string(r);
        return v->str != NULL;
    }
    if (c == '-' || (c >= '0' && c <= '9'))
        return read_number(r, v);
    if (c == 't' || c == 'f') {
        v->kind = CPS_JSON_BOOL;
        v->i = c == 't';
        return word(r, c == 't' ? "true" : "false");
    }
    v->kind = CPS_JSON_NULL;
    return word(r, "null");
}

const cps_json *
cps_json_parse(cps_arena *a, const char *text, size_t n, const char **why, size_t *at)
{
    reader r = {.arena = a, .text = text, .n = n};
    cps_json *v = cps_new(a, cps_json);
    bool ok = read_value(&r, v, 0);
    if (ok) {
        skip_blanks(&r);
        if (r.at < n)
            ok = fail(&r, r.at, "text after the end of the value");
    }
    if (ok)
        return v;
    if (why)
        *why = r.why;
    if (at)
        *at = r.bad;
    return NULL;
}

const cps_json *
cps_json_get(const cps_json *obj, const char *key)
{
    if (!obj || obj->kind != CPS_JSON_OBJ)
        return NULL;
    const cps_json *m = obj->first;
    while (m && strcmp(m->key, key) != 0)
        m = m->next;
    return m;
}

// The member when it is there and of a kind that is wanted (a bit set), else NULL.
static const cps_json *
member(const cps_json *obj, const char *key, unsigned kinds, bool need, bool *ok)
{
    const cps_json *m = cps_json_get(obj, key);
    if (m && kinds >> m->kind & 1)
        return m;
    if ((m || need) && ok)
        *ok = false;
    return NULL;
}

int64_t
cps_json_int(const cps_json *obj, const char *key, bool need, int64_t dflt, bool *ok)
{
    const cps_json *m = member(obj, key, 1u << CPS_JSON_INT, need, ok);
    return m ? m->i : dflt;
}

double
cps_json_num(const cps_json *obj, const char *key, bool need, double dflt, bool *ok)
{
    const cps_json *m = member(obj, key, 1u << CPS_JSON_INT | 1u << CPS_JSON_NUM, need, ok);
    return m ? m->num : dflt;
}

const char *
cps_json_str(const cps_json *obj, const char *key, bool need, const char *dflt, bool *ok)
{
    const cps_json *m = member(obj, key, 1u << CPS_JSON_STR, need, ok);
    return m ? m->str : dflt;
}

void
cps_jsonw_put_str(cps_jsonw *w, const char *key, const char *s)
{
    cps_jsonw_key(w, key);
    cps_jsonw_str(w, s ? s : "");
}

void
cps_jsonw_put_int(cps_jsonw *w, const char *key, int64_t v)
{
    cps_jsonw_key(w, key);
    cps_jsonw_int(w, v);
}
