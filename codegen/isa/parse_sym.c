/* Symbols of .cas text: `.set NAME VALUE` names a number, an address or a float from that line
 * on; `NAME:` names the place of the next instruction, and stands for the distance to it, in
 * instructions, from the line that uses it (what a relative branch holds; the simulator counts
 * records, which is inferred). A label may come after its use: the name is then entered without
 * a value, with the lines that wait for it (parse_text.c). */
#include "codegen/isa/parse.h"

enum { LONGEST = 255 };

typedef struct symbol {
    enum { UNKNOWN, LABEL, CONSTANT } is;
    bool neg;
    uint64_t v;       // label: number of the instruction
    uint64_t line;    // of the definition
    uint64_t waiters; // the first line that waits for it
} symbol;

static bool
begins_name(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

// The symbol of that name, entered if `make`; NULL when there is none.
static symbol *
look(cps_cas *ps, const char *s, size_t n, bool make)
{
    char name[LONGEST + 1];
    uint64_t *at;
    if (n > LONGEST || (!ps->arena && !make))
        return NULL;
    memcpy(name, s, n);
    name[n] = '\0';
    if (!ps->arena) {
        ps->arena = cps_arena_create();
        cps_map_init(&ps->names, ps->arena);
    }
    if (!make) {
        at = cps_map_find_str(&ps->names, name);
        return at ? (symbol *)(uintptr_t)*at : NULL;
    }
    bool fresh;
    at = cps_map_at_str(&ps->names, name, &fresh);
    if (fresh)
        *at = (uint64_t)(uintptr_t)cps_new(ps->arena, symbol);
    return (symbol *)(uintptr_t)*at;
}

static symbol *
define(cps_cas *ps, const char *s, const char *end)
{
    symbol *y = look(ps, s, (size_t)(end - s), true);
    if (!y)
        cps_cas_fail(ps, CPS_E9204, s, end, "a name is at most %d characters long", LONGEST);
    else if (y->is != UNKNOWN)
        cps_cas_fail(ps, CPS_E9206, s, end, "'%.*s' is defined twice", (int)(end - s), s);
    return y && y->is == UNKNOWN ? y : NULL;
}

bool
cps_cas_at_label(const cps_cas *ps)
{
    const char *end = cps_cas_word_end(ps, ps->p);
    return end > ps->p && end < ps->end && *end == ':' && begins_name(*ps->p);
}

bool
cps_cas_label(cps_cas *ps, uint64_t *waiters)
{
    const char *s = ps->p, *end = cps_cas_word_end(ps, s);
    symbol *y = define(ps, s, end);
    *waiters = 0;
    ps->p = end + 1;
    if (!y)
        return false;
    *waiters = y->waiters;
    *y = (symbol){.is = LABEL, .v = ps->index, .line = ps->line};
    return true;
}

bool
cps_cas_set(cps_cas *ps)
{
    cps_cas_skip_blanks(ps);
    const char *s = ps->p, *end = cps_cas_word_end(ps, s);
    if (end == s || !begins_name(*s))
        return cps_cas_fail(ps, CPS_E9203, s, CPS_MAX(cps_cas_chunk_end(ps, s), end),
                            "expected a name");
    symbol value = {.is = CONSTANT, .line = ps->line};
    ps->p = end;
    cps_cas_skip_blanks(ps);
    if (!cps_cas_constant(ps, &value.v, &value.neg))
        return false;
    cps_cas_skip_blanks(ps);
    if (ps->p < ps->end)
        return cps_cas_fail(ps, CPS_E9203, ps->p, cps_cas_chunk_end(ps, ps->p),
                            ".set takes a name and one value");
    symbol *y = define(ps, s, end);
    if (!y)
        return false;
    *y = value; // lines before that wait for a label of this name wait in vain
    return true;
}

bool
cps_cas_symbol(cps_cas *ps, uint64_t *out, bool *neg)
{
    const char *s = ps->p, *end = cps_cas_word_end(ps, s);
    if (s == end || !begins_name(*s))
        return false;
    const symbol *y = look(ps, s, (size_t)(end - s), false);
    if (!y || y->is == UNKNOWN) {
        if (ps->may_wait && end - s <= LONGEST) {
            ps->missing = s;
            ps->missing_n = (size_t)(end - s);
        }
        return false;
    }
    if (y->is == CONSTANT && y->line > ps->line)
        return false;
    *neg = y->is == LABEL ? y->v < ps->index : y->neg;
    *out = y->is == CONSTANT ? y->v : *neg ? ps->index - y->v : y->v - ps->index;
    ps->p = end;
    return true;
}

uint64_t *
cps_cas_waiters(cps_cas *ps)
{
    return &look(ps, ps->missing, ps->missing_n, true)->waiters;
}
