/* Symbols of .cas text: `.set NAME VALUE` names a number, an address or a float from that line
 * on; `NAME:` names the place of the next instruction, and stands for the distance to it, in
 * instructions, from the line that uses it (what a relative branch holds; the simulator counts
 * records, which is inferred). Labels are looked for when the first name is met that is no
 * number: text without symbols pays nothing. */
#include "codegen/isa/parse.h"

typedef struct symbol {
    const char *s; /* in the text */
    uint32_t n;
    bool label, neg;
    uint64_t v; /* labels: number of the instruction */
} symbol;

static const symbol *
find(const cps_cas *ps, const char *s, size_t n)
{
    const symbol *y = (const symbol *)(const void *)ps->syms.data;
    for (size_t i = 0; i < ps->syms.n / sizeof *y; i++)
        if (y[i].n == n && memcmp(y[i].s, s, n) == 0)
            return &y[i];
    return NULL;
}

static bool
define(cps_cas *ps, symbol y)
{
    if (find(ps, y.s, y.n))
        return cps_cas_fail(ps, CPS_E9206, y.s, y.s + y.n, "'%.*s' is defined twice", (int)y.n,
                            y.s);
    cps_buf_put(&ps->syms, &y, sizeof y);
    return true;
}

static bool
begins_name(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

/* ---- labels ---- */

// Labels at p; p moves behind them. With `index`, they are defined.
static bool
labels(cps_cas *ps, const uint64_t *index)
{
    bool good = true;
    for (;;) {
        cps_cas_skip_blanks(ps);
        const char *s = ps->p, *end = cps_cas_word_end(ps, s);
        if (end == s || end == ps->end || *end != ':' || !begins_name(*s))
            return good;
        ps->p = end + 1;
        symbol y = {.s = s, .n = (uint32_t)(end - s), .label = true, .v = index ? *index : 0};
        good = (!index || define(ps, y)) && good;
    }
}

static bool
scan(cps_cas *ps)
{
    const char *p = ps->p, *end = ps->end, *s = ps->text;
    uint64_t index = 0;
    bool good = true;
    ps->scanned = true;
    while (cps_cas_line(ps, &s)) {
        good = labels(ps, &index) && good;
        index += ps->p < ps->end && !cps_cas_keyword(ps, ".set");
    }
    ps->p = p;
    ps->end = end;
    return good;
}

bool
cps_cas_labels(cps_cas *ps)
{
    const char *s = ps->p, *end = cps_cas_word_end(ps, s);
    if (end == s || end == ps->end || *end != ':')
        return true;
    bool good = ps->scanned || scan(ps);
    return labels(ps, NULL) && good;
}

/* ---- numbers ---- */

bool
cps_cas_set(cps_cas *ps)
{
    cps_cas_skip_blanks(ps);
    const char *s = ps->p, *end = cps_cas_word_end(ps, s);
    symbol y = {.s = s, .n = (uint32_t)(end - s)};
    if (end == s || !begins_name(*s))
        return cps_cas_fail(ps, CPS_E9203, s, CPS_MAX(cps_cas_chunk_end(ps, s), end),
                            "expected a name");
    ps->p = end;
    cps_cas_skip_blanks(ps);
    if (!cps_cas_constant(ps, &y.v, &y.neg))
        return false;
    cps_cas_skip_blanks(ps);
    if (ps->p < ps->end)
        return cps_cas_fail(ps, CPS_E9203, ps->p, cps_cas_chunk_end(ps, ps->p),
                            ".set takes a name and one value");
    return define(ps, y);
}

bool
cps_cas_symbol(cps_cas *ps, uint64_t *out, bool *neg)
{
    const char *s = ps->p, *end = cps_cas_word_end(ps, s);
    if (s == end || !begins_name(*s))
        return false;
    const symbol *y = find(ps, s, (size_t)(end - s));
    if (!y && !ps->scanned) {
        scan(ps);
        y = find(ps, s, (size_t)(end - s));
    }
    if (!y)
        return false;
    *neg = y->label ? y->v < ps->index : y->neg;
    *out = !y->label ? y->v : *neg ? ps->index - y->v : y->v - ps->index;
    ps->p = end;
    return true;
}
