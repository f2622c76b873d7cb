/* Where the part of a body lies that need not be read yet, found without reading it.
 *
 * In: a text and the offset behind the `{` of a leaf, fn or op. Out: the part from behind its
 * last clause (from the start when it has none) to before its `}`. Holds: what comes before is
 * whole statements. Steps over strings, comments and braces; knows nothing else of the grammar,
 * and gives up on a text that is not in order, which is for the parser to say. */
#include "frontend/dsl/parse.h"

// The words that begin a clause. They are reserved. Where one stands behind the `}` of a set
// (the mark `priority`), a statement more is read at once.
static const char *const clause_words[] = {"where", "param",     "cost",     "resources",
                                           "cases", "tolerance", "priority", "layout"};
_Static_assert(cps_countof(clause_words) == CPS_CL_COUNT, "every kind of clause has its word");

static bool
is_clause(const char *s, size_t n)
{
    for (size_t i = 0; i < cps_countof(clause_words); i++)
        if (strncmp(clause_words[i], s, n) == 0 && !clause_words[i][n])
            return true;
    return false;
}

enum { WORD = 1, STOP = 2, DEEP = 4 }; // DEEP: of interest in nested braces as well

static const uint8_t class_of[256] = {
    ['0' ... '9'] = WORD, ['A' ... 'Z'] = WORD, ['a' ... 'z'] = WORD,
    ['_'] = WORD,         [';'] = STOP,         ['{'] = DEEP,
    ['}'] = DEEP,         ['"'] = DEEP,         ['/'] = DEEP,
};

// The offset behind a comment or string that begins at `i`; `i` when none does, n + 1 when it
// is not closed.
static size_t
quoted_end(const char *s, size_t n, size_t i)
{
    if (s[i] == '"') {
        for (i++; i < n && s[i] != '"' && s[i] != '\n'; i++)
            i += s[i] == '\\' && i + 1 < n && (s[i + 1] == '"' || s[i + 1] == '\\');
        return i < n && s[i] == '"' ? i + 1 : n + 1;
    }
    if (s[i] != '/' || i + 1 == n)
        return i;
    if (s[i + 1] == '/') {
        const char *end = memchr(s + i, '\n', n - i);
        return end ? (size_t)(end - s) : n;
    }
    if (s[i + 1] != '*')
        return i;
    for (i += 2; i + 1 < n; i++)
        if (s[i] == '*' && s[i + 1] == '/')
            return i + 2;
    return n + 1;
}

// The offset of the first character, from `i` on, of a class that is among `bits`; that is not.
static size_t
next_with(const char *s, size_t n, size_t i, unsigned bits)
{
    while (i < n && !(class_of[(uint8_t)s[i]] & bits))
        i++;
    return i;
}

static size_t
next_without(const char *s, size_t n, size_t i, unsigned bits)
{
    while (i < n && class_of[(uint8_t)s[i]] & bits)
        i++;
    return i;
}

bool
cps_dsl_find_rest(const char *s, size_t n, size_t at, uint32_t *begin, uint32_t *end)
{
    unsigned open = 1;   // braces
    bool first = true;   // what comes next may begin a statement of the body
    bool clause = false; // the running statement of the body is one
    *begin = (uint32_t)at;
    for (size_t i = at;;) {
        i = next_with(s, n, i, DEEP | (open == 1 ? STOP : 0) | (first ? WORD : 0));
        if (i >= n)
            return false;
        char c = s[i];
        if (class_of[(uint8_t)c] == WORD) {
            size_t from = i;
            i = next_without(s, n, i, WORD);
            clause = is_clause(s + from, i - from);
            first = false;
        } else if (c == '"' || c == '/') {
            size_t next = quoted_end(s, n, i);
            i = CPS_MAX(next, i + 1);
        } else {
            i++;
            open += c == '{';
            open -= c == '}';
            if (open == 0) {
                *end = (uint32_t)(i - 1);
                return !clause;
            }
            if (c == ';' && clause)
                *begin = (uint32_t)i;
            clause = clause && c != ';';
            first = open == 1 && !clause;
        }
    }
}

// A declaration's body opens at the first brace of its header that stands in no brackets and
// behind the end of an operand (else it is a set).
void
cps_dsl_note_body(cps_dsl_parser *p, int t)
{
    int b = p->before;
    if (t == T_LEAF || t == T_FN || t == T_OP || t == T_BLOCK)
        p->header |= p->open == 0;
    if (t == '{' && p->header && p->open == 0 &&
        (b == T_NAME || b == T_INT || b == T_FLOAT || b == T_STRING || b == ')' || b == ']' ||
         b == '}' || b == '\'')) {
        size_t n;
        const char *text = cps_diags_source_text(p->diags, p->file, &n);
        cps_span rest = {.file = p->file};
        p->header = false;
        if (cps_dsl_find_rest(text, n, p->pos, &rest.begin, &rest.end))
            p->rest = rest;
    }
    p->open += t == '(' || t == '[' || t == '{';
    p->open -= p->open && (t == ')' || t == ']' || t == '}');
    p->before = t;
}
