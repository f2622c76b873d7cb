/* Text: growable buffers, numbers as text, edit distance, the symbol table.
 *
 * In: bytes and numbers. Out: NUL-terminated buffers on the heap, parsed numbers, dense ids.
 * Numbers never depend on the locale of a host program: digits come out of "%.*e" without its
 * decimal point and go into strtod as an integer with an exponent (1.25 is read as 125e-2). */
#include "runtime/base/str.h"
#include "runtime/base/hash.h"
#include "runtime/base/vec.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void
cps_buf_fini(cps_buf *b)
{
    free(b->data);
    *b = (cps_buf){0};
}

// Room for n more bytes and the NUL.
static void
reserve(cps_buf *b, size_t n)
{
    size_t need;
    if (__builtin_add_overflow(b->n, n, &need) || need > PTRDIFF_MAX / 2)
        cps_out_of_memory(n);
    if (need < b->cap)
        return;
    size_t cap = CPS_MAX(need + 1, CPS_MAX(b->cap * 2, (size_t)64));
    char *p = realloc(b->data, cap);
    if (!p)
        cps_out_of_memory(cap);
    b->data = p;
    b->cap = cap;
}

char *
cps_buf_room(cps_buf *b, size_t n)
{
    reserve(b, n);
    return b->data + b->n;
}

void
cps_buf_put(cps_buf *b, const void *bytes, size_t n)
{
    reserve(b, n);
    if (n)
        memcpy(b->data + b->n, bytes, n);
    b->n += n;
    b->data[b->n] = 0;
}

void
cps_buf_puts(cps_buf *b, const char *s)
{
    cps_buf_put(b, s, strlen(s));
}

void
cps_buf_putc(cps_buf *b, char c)
{
    cps_buf_put(b, &c, 1);
}

void
cps_buf_printf(cps_buf *b, const char *fmt, ...)
{
    va_list ap, again;
    va_start(ap, fmt);
    va_copy(again, ap);
    reserve(b, 0);
    int n = vsnprintf(b->data + b->n, b->cap - b->n, fmt, ap);
    va_end(ap);
    cps_assert(n >= 0);
    if ((size_t)n >= b->cap - b->n) {
        reserve(b, (size_t)n);
        vsnprintf(b->data + b->n, b->cap - b->n, fmt, again);
    }
    va_end(again);
    b->n += (size_t)n;
}

// ---- numbers out ----

typedef struct decimal {
    char digit[20]; // NUL-terminated, no leading zero unless the value is 0
    int n;
    int exp; // the value is d.ddd * 10^exp
} decimal;

// v > 0 and finite, with `prec` significant digits, trailing zeros taken off.
static decimal
digits_of(double v, int prec)
{
    char text[48];
    snprintf(text, sizeof(text), "%.*e", prec - 1, v);
    decimal d = {.n = 0};
    const char *p = text;
    for (; *p && *p != 'e'; p++) // whatever the locale puts between digits is left out
        if (*p >= '0' && *p <= '9')
            d.digit[d.n++] = *p;
    d.exp = *p == 'e' ? atoi(p + 1) : 0;
    while (d.n > 1 && d.digit[d.n - 1] == '0')
        d.n--;
    d.digit[d.n] = 0;
    return d;
}

static double
decimal_value(const decimal *d, bool single)
{
    char text[48];
    snprintf(text, sizeof(text), "%se%d", d->digit, d->exp - (d->n - 1));
    return single ? (double)strtof(text, NULL) : strtod(text, NULL);
}

// Positional between 1e-5 and 1e16, else with an exponent: 0.5, 3.0, 1e16, 2.5e-7.
static void
put_decimal(cps_buf *b, const decimal *d)
{
    if (d->exp >= 16 || d->exp < -5) {
        cps_buf_putc(b, d->digit[0]);
        if (d->n > 1)
            cps_buf_printf(b, ".%s", d->digit + 1);
        cps_buf_printf(b, "e%d", d->exp);
    } else if (d->exp < 0) {
        cps_buf_printf(b, "0.%.*s%s", -d->exp - 1, "0000", d->digit);
    } else {
        for (int i = 0; i <= d->exp; i++)
            cps_buf_putc(b, i < d->n ? d->digit[i] : '0');
        cps_buf_printf(b, ".%s", d->n > d->exp + 1 ? d->digit + d->exp + 1 : "0");
    }
}

// A text of `sure` digits always survives decimal -> binary -> decimal on normal numbers, so
// when the shortest text has at most that many, "%.{sure}" prints it with zeros behind.
static void
put_number(cps_buf *b, double v, bool single)
{
    if (isnan(v)) {
        cps_buf_puts(b, "nan");
        return;
    }
    if (signbit(v))
        cps_buf_putc(b, '-');
    v = fabs(v);
    if (isinf(v)) {
        cps_buf_puts(b, "inf");
        return;
    }
    if (v == 0) {
        cps_buf_puts(b, "0.0");
        return;
    }
    int sure = single ? 6 : 15, last = single ? 9 : 17;
    if (v < (single ? 0x1p-126 : 0x1p-1022))
        sure = 1;
    decimal d;
    for (int prec = sure; prec <= last; prec++) {
        d = digits_of(v, prec);
        if (decimal_value(&d, single) == v)
            break;
    }
    put_decimal(b, &d);
}

void
cps_buf_put_double(cps_buf *b, double v)
{
    put_number(b, v, false);
}

void
cps_buf_put_float(cps_buf *b, float v)
{
    put_number(b, v, true);
}

// ---- numbers in ----

static bool
is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool
parse_special(const char *s, size_t n, double *out)
{
    bool neg = n && *s == '-';
    if (n && (*s == '-' || *s == '+'))
        s++, n--;
    if (n != 3)
        return false;
    double v = memcmp(s, "inf", 3) == 0   ? (double)INFINITY
               : memcmp(s, "nan", 3) == 0 ? (double)NAN
                                          : 0.0;
    *out = neg ? -v : v;
    return v != 0;
}

// 767 significant digits decide any binary64; the rest only matter as "not all zero".
enum { KEPT_DIGITS = 780 };

bool
cps_parse_double(const char *s, size_t n, double *out)
{
    if (parse_special(s, n, out))
        return true;
    char text[KEPT_DIGITS + 40];
    size_t len = 0, i = 0;
    int64_t exp = 0;
    bool some = false, point = false, sticky = false;
    if (i < n && (s[i] == '-' || s[i] == '+')) {
        if (s[i] == '-')
            text[len++] = '-';
        i++;
    }
    size_t first = len;
    for (; i < n; i++) {
        if (s[i] == '.' && !point) {
            point = true;
        } else if (is_digit(s[i])) {
            some = true;
            if (len == first && s[i] == '0') {
                exp -= point; // a leading zero only moves the point
            } else if (len - first < KEPT_DIGITS) {
                text[len++] = s[i];
                exp -= point;
            } else {
                sticky = sticky || s[i] != '0';
                exp += !point;
            }
        } else {
            break;
        }
    }
    if (!some)
        return false;
    if (i < n && (s[i] == 'e' || s[i] == 'E')) {
        bool neg = ++i < n && s[i] == '-';
        if (i < n && (s[i] == '-' || s[i] == '+'))
            i++;
        if (i == n)
            return false;
        int64_t e = 0;
        for (; i < n && is_digit(s[i]); i++)
            e = CPS_MIN(e * 10 + (s[i] - '0'), (int64_t)1 << 40);
        exp += neg ? -e : e;
    }
    if (i != n)
        return false;
    if (len == first) {
        *out = first ? -0.0 : 0.0;
        return true;
    }
    if (sticky) {
        text[len++] = '1';
        exp--;
    }
    // Far outside either end the exact exponent is irrelevant, and strtod takes a plain int.
    exp = CPS_MAX(CPS_MIN(exp, (int64_t)100000), (int64_t)-100000);
    snprintf(text + len, sizeof(text) - len, "e%d", (int)exp);
    *out = strtod(text, NULL);
    return !isinf(*out);
}

bool
cps_parse_int(const char *s, size_t n, int64_t *out)
{
    bool neg = n && *s == '-';
    if (n && (*s == '-' || *s == '+'))
        s++, n--;
    unsigned base = 10;
    if (n > 2 && s[0] == '0' && (s[1] == 'x' || s[1] == 'X')) {
        base = 16;
        s += 2, n -= 2;
    }
    uint64_t v = 0;
    bool after_digit = false;
    for (size_t i = 0; i < n; i++) {
        if (s[i] == '_') {
            if (!after_digit)
                return false;
            after_digit = false;
            continue;
        }
        unsigned c = (unsigned char)s[i], lower = c | 32;
        unsigned d = is_digit(s[i])                 ? c - '0'
                     : lower >= 'a' && lower <= 'f' ? lower - 'a' + 10
                                                    : 99;
        if (d >= base || __builtin_mul_overflow(v, (uint64_t)base, &v) ||
            __builtin_add_overflow(v, (uint64_t)d, &v))
            return false;
        after_digit = true;
    }
    if (!after_digit || v > (uint64_t)INT64_MAX + neg)
        return false;
    *out = neg ? (int64_t)(0 - v) : (int64_t)v;
    return true;
}

// ---- comparing ----

bool
cps_has_suffix(const char *s, const char *suffix)
{
    size_t n = strlen(s), k = strlen(suffix);
    return n >= k && memcmp(s + n - k, suffix, k) == 0;
}

// Only the diagonals within the cut can hold a distance within it: row[j - i + CUT].
int
cps_edit_distance(const char *a, const char *b)
{
    enum { CUT = 3, BAND = 2 * CUT + 1 };
    long la = (long)strlen(a), lb = (long)strlen(b);
    if (la - lb > CUT || lb - la > CUT)
        return CUT + 1;
    int row[BAND];
    for (int k = 0; k < BAND; k++)
        row[k] = k >= CUT ? k - CUT : CUT + 1;
    for (long i = 1; i <= la; i++) {
        int next[BAND];
        for (int k = 0; k < BAND; k++) {
            long j = i + k - CUT;
            if (j < 0 || j > lb) {
                next[k] = CUT + 1;
                continue;
            }
            int best = k + 1 < BAND ? row[k + 1] + 1 : CUT + 1; // drop a[i-1]
            if (k > 0 && j > 0)
                best = CPS_MIN(best, next[k - 1] + 1); // insert b[j-1]
            if (j > 0)
                best = CPS_MIN(best, row[k] + (a[i - 1] != b[j - 1])); // keep or replace
            next[k] = CPS_MIN(best, CUT + 1);
        }
        memcpy(row, next, sizeof(row));
    }
    return row[lb - la + CUT];
}

// ---- symbols ----

typedef struct symbol {
    const char *text;
    size_t n;
    uint64_t hash;
} symbol;

struct cps_symtab {
    cps_arena *arena;
    CPS_VEC(symbol) sym;
    cps_sym *slot; // id + 1
    uint32_t slots;
};

cps_symtab *
cps_symtab_create(void)
{
    cps_arena *a = cps_arena_create();
    cps_symtab *t = cps_new(a, cps_symtab);
    t->arena = a;
    t->slots = 64;
    t->slot = cps_new_array(a, cps_sym, t->slots);
    cps_sym_intern_n(t, "", 0);
    return t;
}

void
cps_symtab_destroy(cps_symtab *t)
{
    if (t)
        cps_arena_destroy(t->arena);
}

static uint32_t
sym_probe(const cps_symtab *t, const char *s, size_t n, uint64_t hash)
{
    uint32_t i = (uint32_t)hash & (t->slots - 1);
    for (; t->slot[i]; i = (i + 1) & (t->slots - 1)) {
        const symbol *y = &t->sym.data[t->slot[i] - 1];
        if (y->hash == hash && y->n == n && memcmp(y->text, s, n) == 0)
            break;
    }
    return i;
}

static void
sym_rehash(cps_symtab *t)
{
    cps_assert(t->slots <= UINT32_MAX / 4);
    t->slots *= 2;
    t->slot = cps_new_array(t->arena, cps_sym, t->slots);
    for (uint32_t k = 0; k < t->sym.n; k++) {
        uint32_t i = (uint32_t)t->sym.data[k].hash & (t->slots - 1);
        while (t->slot[i])
            i = (i + 1) & (t->slots - 1);
        t->slot[i] = k + 1;
    }
}

cps_sym
cps_sym_intern_n(cps_symtab *t, const char *s, size_t n)
{
    uint64_t hash = cps_hash_mem(s, n);
    uint32_t i = sym_probe(t, s, n, hash);
    if (t->slot[i])
        return t->slot[i] - 1;
    if ((uint64_t)(t->sym.n + 1) * 4 > (uint64_t)t->slots * 3) {
        sym_rehash(t);
        i = sym_probe(t, s, n, hash);
    }
    symbol y = {cps_arena_strndup(t->arena, s, n), n, hash};
    cps_vec_push(t->arena, &t->sym, y);
    t->slot[i] = t->sym.n;
    return t->sym.n - 1;
}

cps_sym
cps_sym_intern(cps_symtab *t, const char *s)
{
    return cps_sym_intern_n(t, s, strlen(s));
}

cps_sym
cps_sym_find(const cps_symtab *t, const char *s)
{
    size_t n = strlen(s);
    uint32_t i = sym_probe(t, s, n, cps_hash_mem(s, n));
    return t->slot[i] ? t->slot[i] - 1 : 0;
}

const char *
cps_sym_name(const cps_symtab *t, cps_sym id)
{
    cps_assert(id < t->sym.n);
    return t->sym.data[id].text;
}
