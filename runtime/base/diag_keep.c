/* Messages as bytes; see cps_diags_keep. Little endian, texts with their length:
 *   messages  u32, then for each: code by name, place, text, count, extras u32, then for each of those
 *             u8 help, place, text
 *   place     u8 there, then name of the source, number of the first line, begin and end in the text of
 *             its lines, and that text
 * The reader trusts nothing: everything is read once to its end before the first word is said. */
#include "runtime/base/diag_priv.h"

#include <string.h>

enum {
    LINES_KEPT = 4096,  // bytes of the lines of one place
    TEXT_KEPT = 1 << 16, // of one text
    COUNT_KEPT = 1 << 20
};

cps_diags_mark
cps_diags_mark_of(const cps_diags *d, cps_arena *a)
{
    unsigned *count = cps_new_array(a, unsigned, d->msg.n + 1);
    for (uint32_t i = 0; i < d->msg.n; i++)
        count[i] = d->msg.data[i]->count;
    return (cps_diags_mark){d->msg.n, d->more_errors + d->more_others, count};
}

// ---- writing ----

static void
put_u32(cps_buf *b, uint32_t v)
{
    for (int i = 0; i < 4; i++)
        cps_buf_putc(b, (char)(v >> (8 * i)));
}

static void
put_text(cps_buf *b, const char *s, size_t n)
{
    put_u32(b, (uint32_t)n);
    cps_buf_put(b, s, n);
}

// The lines from that of `begin` to that of `end`, as many as are kept.
static void
put_place(const cps_diags *d, cps_span at, cps_buf *b)
{
    cps_buf_putc(b, at.file != 0);
    if (!at.file)
        return;
    const source *s = &d->src.data[at.file - 1];
    uint32_t begin = CPS_MIN(at.begin, s->n), end = CPS_MAX(CPS_MIN(at.end, s->n), begin), line = 0;
    while (line + 1 < s->line.n && s->line.data[line + 1] <= begin)
        line++;
    uint32_t from = s->line.data[line], to = end;
    while (to < s->n && s->text[to] != '\n')
        to++;
    to = CPS_MIN(to, from + LINES_KEPT);
    put_text(b, s->name, strlen(s->name));
    put_u32(b, s->first + line + 1);
    put_u32(b, CPS_MIN(begin, to) - from);
    put_u32(b, CPS_MIN(end, to) - from);
    put_text(b, s->text + from, to - from);
}

bool
cps_diags_keep(const cps_diags *d, const cps_diags_mark *since, cps_buf *out)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < d->msg.n; i++)
        n += i >= since->n || d->msg.data[i]->count > since->count[i];
    if (d->more_errors + d->more_others != since->dropped)
        return false;
    if (n)
        put_u32(out, n);
    for (uint32_t i = 0; i < d->msg.n; i++) {
        const message *m = d->msg.data[i];
        uint32_t said = m->count - (i < since->n ? since->count[i] : 0), extras = 0;
        if (!said)
            continue;
        const char *name = cps_diag_rows[m->code].name;
        put_text(out, name, strlen(name));
        put_place(d, m->at, out);
        put_text(out, m->text, strlen(m->text));
        put_u32(out, said);
        for (const extra *x = m->first; x; x = x->next)
            extras++;
        put_u32(out, extras);
        for (const extra *x = m->first; x; x = x->next) {
            cps_buf_putc(out, x->help);
            put_place(d, x->at, out);
            put_text(out, x->text, strlen(x->text));
        }
    }
    return true;
}

// ---- reading ----

typedef struct reader {
    const uint8_t *p, *end;
    cps_diags *d; // NULL: only whether it reads to its end
    bool ok;
} reader;

static uint32_t
get(reader *r, unsigned bytes)
{
    uint32_t v = 0;
    r->ok = r->ok && (size_t)(r->end - r->p) >= bytes;
    for (unsigned i = 0; r->ok && i < bytes; i++)
        v |= (uint32_t)*r->p++ << (8 * i);
    return v;
}

static const char *
get_text(reader *r, size_t *n)
{
    *n = get(r, 4);
    r->ok = r->ok && *n <= TEXT_KEPT && (size_t)(r->end - r->p) >= *n;
    const char *s = (const char *)r->p;
    if (r->ok)
        r->p += *n;
    else
        *n = 0;
    return s;
}

// The first source whose lines are those, 0 when there is none.
static uint32_t
known(const cps_diags *d, const char *name, size_t nname, uint32_t number, const char *text, size_t n,
      uint32_t *shift)
{
    for (uint32_t f = 1; f <= d->src.n; f++) {
        const source *s = &d->src.data[f - 1];
        if (strlen(s->name) != nname || memcmp(s->name, name, nname) || number <= s->first ||
            number - s->first > s->line.n)
            continue;
        *shift = s->line.data[number - s->first - 1];
        if (n <= s->n - *shift && !memcmp(s->text + *shift, text, n))
            return f;
    }
    return 0;
}

static cps_span
get_place(reader *r)
{
    if (get(r, 1) != 1)
        return CPS_NOSPAN;
    size_t nname, n;
    const char *name = get_text(r, &nname);
    uint32_t number = get(r, 4), begin = get(r, 4), end = get(r, 4), shift = 0;
    const char *text = get_text(r, &n);
    r->ok = r->ok && number && begin <= end && end <= n;
    if (!r->ok || !r->d)
        return CPS_NOSPAN;
    uint32_t file = known(r->d, name, nname, number, text, n, &shift);
    if (!file)
        file = cps_diags_line(r->d, cps_arena_strndup(r->d->arena, name, nname), number, text, n);
    return file ? (cps_span){file, shift + begin, shift + end} : CPS_NOSPAN;
}

static void
read_message(reader *r)
{
    size_t nname, ntext, n;
    const char *name = get_text(r, &nname);
    char word[8] = {0};
    memcpy(word, name, CPS_MIN(nname, sizeof word - 1));
    cps_code code = nname < sizeof word ? cps_diag_find(word) : CPS_CODE_NONE;
    cps_span at = get_place(r);
    const char *text = get_text(r, &ntext);
    uint32_t count = get(r, 4), extras = get(r, 4);
    r->ok = r->ok && code != CPS_CODE_NONE && count > 0 && count <= COUNT_KEPT;
    if (r->ok && r->d)
        cps_error(r->d, code, at, "%.*s", (int)ntext, text);
    for (uint32_t i = 0; i < extras && r->ok; i++) {
        bool help = get(r, 1);
        cps_span beside = get_place(r);
        const char *more = get_text(r, &n);
        if (!r->ok || !r->d)
            continue;
        if (help)
            cps_help(r->d, "%.*s", (int)n, more);
        else
            cps_note(r->d, beside, "%.*s", (int)n, more);
    }
    for (uint32_t i = 1; i < count && r->ok && r->d; i++)
        cps_error(r->d, code, at, "%.*s", (int)ntext, text);
}

static bool
read_all(const void *bytes, size_t n, cps_diags *d)
{
    reader r = {.p = bytes, .end = (const uint8_t *)bytes + n, .d = d, .ok = true};
    uint32_t count = n ? get(&r, 4) : 0;
    for (uint32_t i = 0; i < count && r.ok; i++)
        read_message(&r);
    return r.ok && r.p == r.end;
}

bool
cps_diags_say(cps_diags *d, const void *bytes, size_t n)
{
    return read_all(bytes, n, NULL) && read_all(bytes, n, d);
}
