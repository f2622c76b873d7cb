/* The token scanner of .cir text and the literals both levels share: strings, numbers, types,
 * attribute lists, constant elements; each with its printing counterpart, so that what is
 * printed reads back to the same bits. */
#include "ir/scan.h"

#include <math.h>

static bool
is_letter(int c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool
is_digit(int c)
{
    return c >= '0' && c <= '9';
}

static int
peek(const cps_scan *s, size_t ahead)
{
    return s->at + ahead < s->n ? (unsigned char)s->text[s->at + ahead] : -1;
}

bool
cps_scan_fail(cps_scan *s, cps_code code, const char *fmt, ...)
{
    if (!s->bad) {
        va_list ap;
        size_t end = CPS_MIN(CPS_MAX(s->at, s->begin + 1), s->n);
        va_start(ap, fmt);
        cps_verror(s->d, code,
                   (cps_span){s->file, (uint32_t)CPS_MIN(s->begin, end), (uint32_t)end}, fmt,
                   ap);
        va_end(ap);
    }
    s->bad = true;
    s->tok = CPS_TOK_END;
    s->str = s->key = "";
    s->c = 0;
    return false;
}

cps_span
cps_scan_span(const cps_scan *s, size_t begin)
{
    return (cps_span){s->file, (uint32_t)begin, (uint32_t)CPS_MAX(s->last, begin)};
}

bool
cps_scan_begin(cps_scan *s, cps_arena *a, const char *text, size_t n, uint32_t file,
               cps_diags *d, const char *header)
{
    *s = (cps_scan){.text = text, .n = n, .file = file, .a = a, .d = d};
    size_t h = strlen(header);
    if (n < h || memcmp(text, header, h) != 0 ||
        (n > h && text[h] != '\n' && text[h] != '\r')) {
        s->at = CPS_MIN(n, h);
        return cps_scan_fail(s, CPS_E9107, "the first line must be '%s'", header);
    }
    if (n > CPS_TEXT_MAX)
        return cps_scan_fail(s, CPS_E9105, "the text has %zu bytes, limit 2^30", n);
    s->at = h;
    cps_scan_next(s);
    return !s->bad;
}

/* ---- tokens ---- */

static void
skip_space(cps_scan *s)
{
    for (int c; (c = peek(s, 0)) >= 0;) {
        if (c == ' ' || c == '\n' || c == '\t' || c == '\r')
            s->at++;
        else if (c == '/' && peek(s, 1) == '/')
            while (peek(s, 0) >= 0 && peek(s, 0) != '\n')
                s->at++;
        else
            break;
    }
}

static int
hex_digit(int c)
{
    return is_digit(c)            ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

// At the opening quote; leaves the text in `str`.
static void
take_string(cps_scan *s)
{
    size_t limit = s->at + 1;
    while (limit < s->n && s->text[limit] != '"')
        limit += s->text[limit] == '\\' ? 2 : 1;
    if (limit >= s->n) {
        cps_scan_fail(s, CPS_E9104, "the string is not closed");
        return;
    }
    if (limit - s->at > CPS_TEXT_STR) {
        cps_scan_fail(s, CPS_E9105, "a string of %zu bytes, limit %u", limit - s->at,
                      CPS_TEXT_STR);
        return;
    }
    char *out = cps_arena_raw(s->a, limit - s->at + 1);
    size_t k = 0;
    for (s->at++; s->text[s->at] != '"';) {
        int c = (unsigned char)s->text[s->at++];
        if (c == '\\') {
            c = (unsigned char)s->text[s->at++];
            if (c == 'n')
                c = '\n';
            else if (c == 't')
                c = '\t';
            else if (c == 'x' && hex_digit(peek(s, 0)) >= 0 && hex_digit(peek(s, 1)) >= 0) {
                c = hex_digit(peek(s, 0)) * 16 + hex_digit(peek(s, 1));
                s->at += 2;
            } else if (c != '\\' && c != '"') {
                c = 0;
            }
        }
        if (c == 0) {
            cps_scan_fail(s, CPS_E9104, "bad escape or NUL byte in a string");
            return;
        }
        out[k++] = (char)c;
    }
    out[k] = 0;
    s->at++;
    s->str = out;
}

static void
take_ident(cps_scan *s)
{
    size_t b = s->at;
    while (is_letter(peek(s, 0)) || is_digit(peek(s, 0)))
        s->at++;
    if (s->at - b > CPS_TEXT_STR) {
        cps_scan_fail(s, CPS_E9105, "a name of %zu bytes, limit %u", s->at - b, CPS_TEXT_STR);
        return;
    }
    s->str = cps_arena_strndup(s->a, s->text + b, s->at - b);
}

static void
take_number(cps_scan *s)
{
    size_t b = s->at;
    bool neg = peek(s, 0) == '-';
    s->at += neg;
    s->tok = CPS_TOK_INT;
    s->hex = s->big = false;
    if (peek(s, 0) == 'i') { // -inf
        s->at += 3;
        s->tok = CPS_TOK_FLOAT;
        s->f = -INFINITY;
        return;
    }
    uint64_t v = 0;
    bool over = false;
    if (peek(s, 0) == '0' && peek(s, 1) == 'x') {
        s->hex = true;
        size_t d = s->at += 2;
        for (; hex_digit(peek(s, 0)) >= 0; s->at++) {
            over |= v >> 60 != 0;
            v = v << 4 | (uint64_t)hex_digit(peek(s, 0));
        }
        over |= d == s->at;
    } else {
        for (; is_digit(peek(s, 0)); s->at++)
            over |= __builtin_mul_overflow(v, 10, &v) ||
                    __builtin_add_overflow(v, (uint64_t)(peek(s, 0) - '0'), &v);
        int c = peek(s, 0), e = peek(s, 1), g = peek(s, 2);
        // "name.3" never comes here, so a '.' after digits is a fraction.
        if ((c == '.' && is_digit(e)) ||
            (c == 'e' && (is_digit(e) || ((e == '-' || e == '+') && is_digit(g))))) {
            s->at++;
            while (is_digit(peek(s, 0)) || peek(s, 0) == 'e' || peek(s, 0) == '.' ||
                   ((peek(s, 0) == '-' || peek(s, 0) == '+') && s->text[s->at - 1] == 'e'))
                s->at++;
            s->tok = CPS_TOK_FLOAT;
            if (!cps_parse_double(s->text + b, s->at - b, &s->f))
                cps_scan_fail(s, CPS_E9104, "malformed number");
            return;
        }
    }
    if (over || (neg && v > (uint64_t)INT64_MAX + 1)) {
        cps_scan_fail(s, CPS_E9104, "the number does not fit 64 bits");
        return;
    }
    s->big = !neg && v > INT64_MAX;
    s->i = (int64_t)(neg ? -v : v);
}

// %name.id, %name, %id; @name
static void
take_name(cps_scan *s, bool value)
{
    size_t b = s->at++;
    s->tok = value ? CPS_TOK_VALUE : CPS_TOK_SYMBOL;
    s->str = NULL;
    if (is_letter(peek(s, 0)))
        take_ident(s);
    else if (peek(s, 0) == '"')
        take_string(s);
    else if (!value || !is_digit(peek(s, 0)))
        cps_scan_fail(s, CPS_E9101, "a name must follow '%c'", value ? '%' : '@');
    if (s->bad || !value)
        return;
    if (s->str == NULL || (peek(s, 0) == '.' && is_digit(peek(s, 1)))) {
        s->at += s->str != NULL;
        while (is_digit(peek(s, 0)))
            s->at++;
    }
    s->key = cps_arena_strndup(s->a, s->text + b, s->at - b);
}

void
cps_scan_next(cps_scan *s)
{
    if (s->bad)
        return;
    s->last = s->at;
    skip_space(s);
    s->begin = s->at;
    s->c = 0;
    s->str = s->key = "";
    int c = peek(s, 0), e = peek(s, 1);
    if (c < 0) {
        s->tok = CPS_TOK_END;
    } else if (is_letter(c)) {
        s->tok = CPS_TOK_IDENT;
        take_ident(s);
    } else if (is_digit(c) || (c == '-' && is_digit(e)) ||
               (c == '-' && s->n - s->at >= 4 && memcmp(s->text + s->at, "-inf", 4) == 0)) {
        take_number(s);
    } else if (c == '"') {
        s->tok = CPS_TOK_STR;
        take_string(s);
    } else if (c == '%' || c == '@') {
        take_name(s, c == '%');
    } else if ((c == '-' && e == '>') || (c == '<' && e == '-')) {
        s->tok = c == '-' ? CPS_TOK_ARROW : CPS_TOK_FROM;
        s->at += 2;
    } else if (strchr("{}[]():,=*;", c)) {
        s->tok = CPS_TOK_PUNCT;
        s->c = (char)c;
        s->at++;
    } else {
        cps_scan_fail(s, CPS_E9101, "unexpected byte 0x%02x", (unsigned)c);
    }
}

bool
cps_scan_eat(cps_scan *s, char c)
{
    if (s->tok != CPS_TOK_PUNCT || s->c != c)
        return false;
    cps_scan_next(s);
    return true;
}

bool
cps_scan_want(cps_scan *s, char c)
{
    return cps_scan_eat(s, c) || cps_scan_fail(s, CPS_E9101, "'%c' is missing here", c);
}

bool
cps_scan_word(cps_scan *s, const char *word)
{
    if (s->tok != CPS_TOK_IDENT || strcmp(s->str, word) != 0)
        return false;
    cps_scan_next(s);
    return true;
}

static const char *
text_of(cps_scan *s, cps_tok tok, const char *what)
{
    const char *r = s->str;
    if (s->tok != tok) {
        cps_scan_fail(s, CPS_E9101, "%s is missing here", what);
        return "";
    }
    cps_scan_next(s);
    return r;
}

const char *
cps_scan_ident(cps_scan *s, const char *what)
{
    return text_of(s, CPS_TOK_IDENT, what);
}

const char *
cps_scan_string(cps_scan *s, const char *what)
{
    return text_of(s, CPS_TOK_STR, what);
}

int64_t
cps_scan_int(cps_scan *s, int64_t lo, int64_t hi, const char *what)
{
    int64_t v = s->i;
    if (s->tok != CPS_TOK_INT) {
        cps_scan_fail(s, CPS_E9101, "%s is missing here", what);
        return lo;
    }
    if (s->big || v < lo || v > hi) {
        cps_scan_fail(s, CPS_E9104, "%s must be in %lld..%lld", what, (long long)lo,
                      (long long)hi);
        return lo;
    }
    cps_scan_next(s);
    return v;
}

bool
cps_scan_number(cps_scan *s, double *out)
{
    *out = 0;
    if (s->tok == CPS_TOK_FLOAT) {
        *out = s->f;
    } else if (s->tok == CPS_TOK_INT && !s->hex) {
        *out = s->big ? (double)(uint64_t)s->i : (double)s->i;
    } else if (s->tok == CPS_TOK_IDENT && strcmp(s->str, "inf") == 0) {
        *out = INFINITY;
    } else if (s->tok == CPS_TOK_IDENT && strcmp(s->str, "nan") == 0) {
        *out = (double)NAN;
    } else if (s->tok == CPS_TOK_IDENT && strcmp(s->str, "bits") == 0) {
        cps_scan_next(s);
        if (!cps_scan_want(s, '('))
            return false;
        if (s->tok != CPS_TOK_INT || !s->hex)
            return cps_scan_fail(s, CPS_E9104, "bits() holds a number in hexadecimal");
        memcpy(out, &s->i, sizeof *out);
        cps_scan_next(s);
        return cps_scan_want(s, ')');
    } else {
        return cps_scan_fail(s, CPS_E9101, "a number is missing here");
    }
    cps_scan_next(s);
    return !s->bad;
}

/* ---- literals of several tokens ---- */

cps_dtype
cps_scan_dtype(cps_scan *s)
{
    cps_dtype t =
        s->tok == CPS_TOK_IDENT ? cps_dtype_parse(s->str, strlen(s->str)) : CPS_DT_NONE;
    if (t == CPS_DT_NONE)
        cps_scan_fail(s, s->tok == CPS_TOK_IDENT ? CPS_E9102 : CPS_E9101,
                      "a dtype must stand here");
    else
        cps_scan_next(s);
    return t;
}

bool
cps_scan_type(cps_scan *s, cps_type *out)
{
    *out = (cps_type){.dtype = cps_scan_dtype(s)};
    if (s->bad || !cps_scan_want(s, '['))
        return false;
    while (!s->bad && !cps_scan_eat(s, ']')) {
        if (out->rank == CPS_MAX_RANK)
            return cps_scan_fail(s, CPS_E9105, "rank above %d", CPS_MAX_RANK);
        if (out->rank)
            cps_scan_want(s, ',');
        out->dim[out->rank++] = cps_scan_int(s, 0, CPS_MAX_ELEMS, "an extent");
    }
    if (!s->bad && !cps_type_ok(out))
        return cps_scan_fail(s, CPS_E9105, "the type has more than 2^46 elements");
    return !s->bad;
}

cps_span
cps_scan_loc(cps_scan *s)
{
    cps_span r;
    r.file = (uint32_t)cps_scan_int(s, 0, UINT32_MAX, "a file number");
    cps_scan_want(s, ':');
    r.begin = (uint32_t)cps_scan_int(s, 0, UINT32_MAX, "a position");
    cps_scan_want(s, ':');
    r.end = (uint32_t)cps_scan_int(s, 0, UINT32_MAX, "a position");
    return r;
}

static void
scan_ints(cps_scan *s, cps_attr *x)
{
    CPS_VEC(int64_t) v = {0};
    while (!s->bad && !cps_scan_eat(s, ']')) {
        if (v.n == CPS_TEXT_LIST) {
            cps_scan_fail(s, CPS_E9105, "a list of more than %u entries", CPS_TEXT_LIST);
            break;
        }
        if (v.n)
            cps_scan_want(s, ',');
        cps_vec_push(s->a, &v, cps_scan_int(s, INT64_MIN, INT64_MAX, "an integer"));
    }
    x->kind = CPS_A_INTS;
    x->n = v.n;
    x->ints = v.data;
}

static void
scan_value(cps_scan *s, cps_attr *x)
{
    if (cps_scan_eat(s, '[')) {
        scan_ints(s, x);
    } else if (s->tok == CPS_TOK_STR) {
        x->kind = CPS_A_STR;
        x->s = cps_scan_string(s, "a string");
    } else if (s->tok == CPS_TOK_INT) {
        x->kind = CPS_A_INT;
        x->i = cps_scan_int(s, INT64_MIN, INT64_MAX, "an integer");
    } else if (cps_scan_word(s, "true")) {
        x->kind = CPS_A_BOOL;
        x->i = 1;
    } else if (cps_scan_word(s, "false")) {
        x->kind = CPS_A_BOOL;
    } else if (s->tok == CPS_TOK_IDENT && cps_dtype_parse(s->str, strlen(s->str))) {
        x->kind = CPS_A_DTYPE;
        x->i = cps_scan_dtype(s);
    } else {
        x->kind = CPS_A_FLOAT;
        cps_scan_number(s, &x->f);
    }
}

bool
cps_scan_attrs(cps_scan *s, uint16_t *n, cps_attr **out)
{
    *n = 0;
    *out = NULL;
    cps_scan_want(s, '{');
    while (!s->bad && !cps_scan_eat(s, '}')) {
        if (*n == 256)
            return cps_scan_fail(s, CPS_E9105, "more than 256 attributes");
        if (*n)
            cps_scan_want(s, ',');
        cps_attr x = {.key = ""};
        if (s->tok == CPS_TOK_IDENT && cps_attr_find(*out, *n, s->str))
            return cps_scan_fail(s, CPS_E9103, "attribute '%s' is given twice", s->str);
        x.key =
            s->tok == CPS_TOK_STR ? cps_scan_string(s, "a key") : cps_scan_ident(s, "a key");
        if (cps_scan_want(s, '='))
            scan_value(s, &x);
        if (!s->bad)
            cps_attr_put(s->a, out, n, x);
    }
    return !s->bad;
}

bool
cps_scan_digest(cps_scan *s, cps_digest *out)
{
    if (s->tok != CPS_TOK_STR || strlen(s->str) != 64 || !cps_digest_parse(s->str, out))
        return cps_scan_fail(s, CPS_E9104, "a digest is a string of 64 hexadecimal digits");
    cps_scan_next(s);
    return !s->bad;
}

bool
cps_scan_element(cps_scan *s, cps_dtype t, void *out)
{
    unsigned bytes = cps_dtype_bytes(t);
    char kind = cps_dtypes[t].kind;
    if (kind == 'B') {
        bool yes = cps_scan_word(s, "true");
        if (!yes && !cps_scan_word(s, "false"))
            return cps_scan_fail(s, CPS_E9104, "elements of bool are true and false");
        cps_from_i64(t, out, yes);
        return true;
    }
    if ((kind == 'F' || kind == 'P') && s->tok == CPS_TOK_INT && s->hex) { // storage bits
        if (bytes < 8 && (uint64_t)s->i >> (8 * bytes))
            return cps_scan_fail(s, CPS_E9104, "the bits do not fit %s", cps_dtype_name(t));
        memcpy(out, &s->i, bytes);
        cps_scan_next(s);
        return !s->bad;
    }
    if (kind == 'F') {
        double v;
        if (!cps_scan_number(s, &v))
            return false;
        cps_from_f64(t, out, v);
        return true;
    }
    if (s->tok != CPS_TOK_INT || kind == 'P')
        return cps_scan_fail(s, CPS_E9104, "no element of %s", cps_dtype_name(t));
    int64_t v = s->i;
    cps_from_i64(t, out, v);
    if (t == CPS_DT_U64 ? v < 0 && !s->big : s->big || cps_to_i64(t, out) != v)
        return cps_scan_fail(s, CPS_E9104, "the number does not fit %s", cps_dtype_name(t));
    cps_scan_next(s);
    return !s->bad;
}

/* ---- printing ---- */

void
cps_put_string(cps_buf *out, const char *s)
{
    cps_buf_putc(out, '"');
    for (; *s; s++) {
        unsigned char c = (unsigned char)*s;
        if (c == '"' || c == '\\')
            cps_buf_printf(out, "\\%c", c);
        else if (c == '\n')
            cps_buf_puts(out, "\\n");
        else if (c == '\t')
            cps_buf_puts(out, "\\t");
        else if (c < 0x20 || c == 0x7F)
            cps_buf_printf(out, "\\x%02x", c);
        else
            cps_buf_putc(out, (char)c);
    }
    cps_buf_putc(out, '"');
}

void
cps_put_name(cps_buf *out, const char *s)
{
    bool bare = is_letter((unsigned char)*s);
    for (const char *p = s; *p; p++)
        bare = bare && (is_letter((unsigned char)*p) || is_digit((unsigned char)*p));
    if (bare)
        cps_buf_puts(out, s);
    else
        cps_put_string(out, s);
}

void
cps_put_number(cps_buf *out, double v)
{
    double plain = (double)NAN;
    if (isnan(v) && memcmp(&v, &plain, sizeof v) != 0) {
        uint64_t bits;
        memcpy(&bits, &v, sizeof bits);
        cps_buf_printf(out, "bits(0x%llx)", (unsigned long long)bits);
    } else {
        cps_buf_put_double(out, v);
    }
}

void
cps_put_attrs(cps_buf *out, uint32_t n, const cps_attr *a)
{
    cps_buf_putc(out, '{');
    for (uint32_t i = 0; i < n; i++) {
        cps_buf_puts(out, i ? ", " : "");
        cps_put_name(out, a[i].key);
        cps_buf_putc(out, '=');
        switch (a[i].kind) {
        case CPS_A_INT:
            cps_buf_printf(out, "%lld", (long long)a[i].i);
            break;
        case CPS_A_FLOAT:
            cps_put_number(out, a[i].f);
            break;
        case CPS_A_BOOL:
            cps_buf_puts(out, a[i].i ? "true" : "false");
            break;
        case CPS_A_STR:
            cps_put_string(out, a[i].s);
            break;
        case CPS_A_DTYPE:
            cps_buf_puts(out, cps_dtype_name((cps_dtype)a[i].i));
            break;
        case CPS_A_INTS:
            cps_buf_putc(out, '[');
            for (uint32_t k = 0; k < a[i].n; k++)
                cps_buf_printf(out, k ? ", %lld" : "%lld", (long long)a[i].ints[k]);
            cps_buf_putc(out, ']');
            break;
        }
    }
    cps_buf_putc(out, '}');
}

void
cps_put_element(cps_buf *out, cps_dtype t, const void *p)
{
    char kind = cps_dtypes[t].kind;
    unsigned bytes = cps_dtype_bytes(t);
    uint64_t bits = 0, back = 0;
    memcpy(&bits, p, bytes);
    if (kind == 'B') {
        cps_buf_puts(out, cps_to_i64(t, p) ? "true" : "false");
    } else if (kind == 'F') {
        // Shortest decimal when it reads back to the very bits; else the bits.
        cps_buf b = {0};
        float v = cps_to_f32(t, p);
        double w = isnan(v) ? (double)NAN : v; // what reading gives
        cps_buf_put_float(&b, v);
        if (!isnan(v) && !isinf(v) && !cps_parse_double(b.data, b.n, &w))
            cps_bug("'%s' does not read back", b.data);
        cps_from_f64(t, &back, w);
        if (memcmp(&back, &bits, sizeof bits) == 0)
            cps_buf_puts(out, b.data);
        else
            cps_buf_printf(out, "0x%llx", (unsigned long long)bits);
        cps_buf_fini(&b);
    } else if (kind == 'P') {
        cps_buf_printf(out, "0x%llx", (unsigned long long)bits);
    } else if (kind == 'U') {
        cps_buf_printf(out, "%llu", (unsigned long long)bits);
    } else {
        cps_buf_printf(out, "%lld", (long long)cps_to_i64(t, p));
    }
}

void
cps_put_float(cps_buf *out, float v)
{
    cps_put_element(out, CPS_DT_FP32, &v);
}
