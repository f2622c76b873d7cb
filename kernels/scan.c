/* Finds `op`, `block` and `leaf` at file level of a .cps text. Only brackets, comments, strings
 * and words matter; whether the text is right is the parser's business. Plain libc: the build's
 * own generator uses it too. */
#include "kernels/index.h"

#include <ctype.h>
#include <string.h>

typedef struct scanner {
    const char *s;
    size_t n, at;
} scanner;

static bool
is_word(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

// Past blanks, comments and strings.
static void
skip(scanner *p)
{
    while (p->at < p->n) {
        char c = p->s[p->at], d = p->at + 1 < p->n ? p->s[p->at + 1] : 0;
        if (isspace((unsigned char)c)) {
            p->at++;
        } else if (c == '/' && d == '/') {
            while (p->at < p->n && p->s[p->at] != '\n')
                p->at++;
        } else if (c == '/' && d == '*') {
            p->at += 2;
            while (p->at + 1 < p->n && !(p->s[p->at] == '*' && p->s[p->at + 1] == '/'))
                p->at++;
            p->at = p->at + 2 < p->n ? p->at + 2 : p->n;
        } else if (c == '"') {
            for (p->at++; p->at < p->n && p->s[p->at] != '"' && p->s[p->at] != '\n'; p->at++)
                if (p->s[p->at] == '\\' && p->at + 1 < p->n)
                    p->at++;
            if (p->at < p->n)
                p->at++;
        } else {
            return;
        }
    }
}

static size_t
word(scanner *p, const char **out)
{
    skip(p);
    size_t b = p->at;
    while (p->at < p->n && is_word(p->s[p->at]))
        p->at++;
    *out = p->s + b;
    return p->at - b;
}

static bool
is(const char *w, size_t n, const char *lit)
{
    return n == strlen(lit) && memcmp(w, lit, n) == 0;
}

// Up to and with the bracket that closes the one at hand.
static void
balanced(scanner *p)
{
    int depth = 0;
    while (p->at < p->n) {
        skip(p);
        if (p->at >= p->n)
            return;
        char c = p->s[p->at++];
        if (c == '{' || c == '(' || c == '[')
            depth++;
        else if ((c == '}' || c == ')' || c == ']') && --depth <= 0)
            return;
    }
}

static bool
leaf(scanner *p, cps_scan_item *out)
{
    const char *w;
    size_t n;

    out->nname = word(p, &out->name);
    n = word(p, &w);
    if (!out->nname || !is(w, n, "for"))
        return false;
    out->nop = word(p, &out->op);
    n = word(p, &w);
    if (!out->nop || !is(w, n, "on"))
        return false;
    skip(p);
    out->targets = p->s + p->at;
    while (p->at < p->n && p->s[p->at] != '{')
        p->at++;
    out->ntargets = (size_t)(p->s + p->at - out->targets);
    return true;
}

bool
cps_kernel_scan(const char *text, size_t n, size_t *at, cps_scan_item *out)
{
    scanner p = {text, n, *at};

    while (true) {
        const char *w;
        skip(&p);
        if (p.at >= p.n)
            break;
        if (strchr("{([", p.s[p.at])) {
            balanced(&p);
            continue;
        }
        size_t k = word(&p, &w);
        if (k == 0) {
            p.at++;
            continue;
        }
        memset(out, 0, sizeof(*out));
        out->kind = is(w, k, "op") ? 'O' : is(w, k, "block") ? 'B' : is(w, k, "leaf") ? 'L' : 0;
        bool found = out->kind == 'L' ? leaf(&p, out)
                     : out->kind      ? (out->nname = word(&p, &out->name)) > 0
                                      : false;
        if (found) {
            *at = p.at;
            return true;
        }
    }
    *at = p.n;
    return false;
}
