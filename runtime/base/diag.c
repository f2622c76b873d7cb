/* The sink of diagnostics: collects messages, renders them for people or as JSON lines.
 *
 * In: codes, spans into registered sources, texts. Out: a rendering in the order of emission.
 * Holds: one entry per (code, place, text), with a count; at most 50 errors and 50 others are
 * kept, the rest is counted and said so at the end. Notes and helps belong to the last message;
 * those of a merged or dropped message go with it. Whatever stands in names or sources, the
 * rendering holds no control characters: a terminal cannot be driven by an input file. */
#include "runtime/base/diag_priv.h"
#include "runtime/base/hash.h"
#include "runtime/base/json.h"

#include <stdio.h>
#include <string.h>

const cps_diag_row cps_diag_rows[CPS_CODE_COUNT] = {
    [CPS_CODE_NONE] = {"", "", ""},
#define CPS_DIAG(code, title, help) [CPS_##code] = {#code, title, help},
#include "runtime/base/diag.def"
};

enum {
    LIMIT = 50,      // messages kept of each sort
    LINE_SHOWN = 160 // longest piece of a source line shown, in bytes
};

cps_diags *
cps_diags_create(void)
{
    cps_arena *a = cps_arena_create();
    cps_diags *d = cps_new(a, cps_diags);
    d->arena = a;
    d->msg_arena = cps_arena_create();
    cps_map_init(&d->seen, d->msg_arena);
    return d;
}

void
cps_diags_destroy(cps_diags *d)
{
    if (!d)
        return;
    cps_arena_destroy(d->msg_arena);
    cps_arena_destroy(d->arena);
}

void
cps_diags_clear(cps_diags *d)
{
    cps_arena_destroy(d->msg_arena);
    d->msg_arena = cps_arena_create();
    cps_map_init(&d->seen, d->msg_arena);
    memset(&d->msg, 0, sizeof(d->msg));
    d->last = NULL;
    d->kept_errors = d->kept_others = d->more_errors = d->more_others = 0;
}

// ---- places ----

uint32_t
cps_diags_source(cps_diags *d, const char *name, const char *text, size_t n)
{
    source *s = cps_vec_add(d->arena, &d->src);
    s->name = cps_arena_strdup(d->arena, name);
    s->text = text = n ? text : ""; // nobody does arithmetic on NULL
    s->n = (uint32_t)CPS_MIN(n, (size_t)UINT32_MAX); // spans reach no further
    cps_vec_push(d->arena, &s->line, 0);
    for (const char *p = text, *end = text + s->n; p < end;) {
        const char *nl = memchr(p, '\n', (size_t)(end - p));
        if (!nl)
            break;
        p = nl + 1;
        cps_vec_push(d->arena, &s->line, (uint32_t)(p - text));
    }
    return d->src.n;
}

uint32_t
cps_diags_line(cps_diags *d, const char *name, uint32_t number, const char *text, size_t n)
{
    if (d->kept_errors >= LIMIT)
        return 0;
    uint32_t file = cps_diags_source(d, name, cps_arena_strndup(d->arena, text, n), n);
    d->src.data[file - 1].first = number - 1;
    return file;
}

static const source *
source_of(const cps_diags *d, uint32_t file)
{
    cps_assert(file <= d->src.n);
    return file ? &d->src.data[file - 1] : NULL;
}

unsigned
cps_diags_sources(const cps_diags *d)
{
    return d->src.n;
}

const char *
cps_diags_source_name(const cps_diags *d, uint32_t file)
{
    const source *s = source_of(d, file);
    return s ? s->name : "";
}

const char *
cps_diags_source_text(const cps_diags *d, uint32_t file, size_t *n)
{
    const source *s = source_of(d, file);
    if (n)
        *n = s ? s->n : 0;
    return s ? s->text : "";
}

// Index of the line that holds the position; past the end is on the last line.
static uint32_t
line_of(const source *s, uint32_t pos)
{
    uint32_t lo = 0, hi = s->line.n;
    while (hi - lo > 1) {
        uint32_t mid = lo + (hi - lo) / 2;
        if (s->line.data[mid] <= pos)
            lo = mid;
        else
            hi = mid;
    }
    return lo;
}

static void
locate(const source *s, uint32_t pos, uint32_t *line, uint32_t *col)
{
    pos = CPS_MIN(pos, s->n);
    uint32_t l = line_of(s, pos);
    *line = s->first + l + 1;
    *col = pos - s->line.data[l] + 1;
}

void
cps_diags_locate(const cps_diags *d, cps_span at, uint32_t *line, uint32_t *col)
{
    const source *s = source_of(d, at.file);
    *line = *col = 0;
    if (s)
        locate(s, at.begin, line, col);
}

// ---- emission ----

static char
severity(cps_code code)
{
    return cps_diag_rows[code].name[0];
}

static uint64_t
identity(cps_code code, cps_span at, const char *text)
{
    uint64_t h = cps_hash_mem(text, strlen(text));
    h = cps_mix64(h ^ ((uint64_t)at.begin << 32 | at.end)) * 3;
    return cps_mix64(h ^ ((uint64_t)at.file << 32 | (uint64_t)code));
}

static bool
is_message(const message *m, cps_code code, cps_span at, const char *text)
{
    return m->code == code && m->at.file == at.file && m->at.begin == at.begin &&
           m->at.end == at.end && strcmp(m->text, text) == 0;
}

void
cps_verror(cps_diags *d, cps_code code, cps_span at, const char *fmt, va_list ap)
{
    cps_assert(code > CPS_CODE_NONE && code < CPS_CODE_COUNT && at.file <= d->src.n);
    cps_mark mark = cps_arena_mark(d->msg_arena);
    const char *text = cps_arena_vprintf(d->msg_arena, fmt, ap);
    bool error = severity(code) == 'E';
    d->last = NULL;
    uint64_t id = identity(code, at, text), *known = cps_map_find(&d->seen, id);
    if (known && is_message(d->msg.data[*known], code, at, text)) {
        d->msg.data[*known]->count++;
        cps_arena_release(d->msg_arena, mark);
        return;
    }
    unsigned *kept = error ? &d->kept_errors : &d->kept_others;
    if (*kept == LIMIT) {
        ++*(error ? &d->more_errors : &d->more_others);
        cps_arena_release(d->msg_arena, mark);
        return;
    }
    ++*kept;
    message *m = cps_new(d->msg_arena, message);
    *m = (message){.code = code, .at = at, .text = text, .count = 1, .end = &m->first};
    *cps_map_at(&d->seen, id, NULL) = d->msg.n;
    cps_vec_push(d->msg_arena, &d->msg, m);
    d->last = m;
}

void
cps_error(cps_diags *d, cps_code code, cps_span at, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    cps_verror(d, code, at, fmt, ap);
    va_end(ap);
}

static void
attach(cps_diags *d, bool help, cps_span at, const char *fmt, va_list ap)
{
    cps_assert(at.file <= d->src.n);
    if (!d->last)
        return;
    extra *x = cps_new(d->msg_arena, extra);
    *x = (extra){.help = help, .at = at, .text = cps_arena_vprintf(d->msg_arena, fmt, ap)};
    *d->last->end = x;
    d->last->end = &x->next;
}

void
cps_note(cps_diags *d, cps_span at, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    attach(d, false, at, fmt, ap);
    va_end(ap);
}

void
cps_help(cps_diags *d, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    attach(d, true, CPS_NOSPAN, fmt, ap);
    va_end(ap);
}

unsigned
cps_diags_errors(const cps_diags *d)
{
    return d->kept_errors + d->more_errors;
}

unsigned
cps_diags_count(const cps_diags *d)
{
    return d->msg.n;
}

cps_code
cps_diags_code(const cps_diags *d, unsigned i)
{
    cps_assert(i < d->msg.n);
    return d->msg.data[i]->code;
}

const char *
cps_diags_text(const cps_diags *d, unsigned i)
{
    cps_assert(i < d->msg.n);
    return d->msg.data[i]->text;
}

cps_code
cps_diag_find(const char *name)
{
    for (int c = CPS_CODE_NONE + 1; c < CPS_CODE_COUNT; c++)
        if (cps_streq(cps_diag_rows[c].name, name))
            return (cps_code)c;
    return CPS_CODE_NONE;
}

// ---- human form ----

static const char *
severity_word(cps_code code)
{
    char s = severity(code);
    return s == 'E' ? "error" : s == 'W' ? "warning" : "note";
}

typedef struct pen {
    cps_buf *out;
    bool color;
} pen;

static void
paint(pen p, const char *sgr)
{
    if (p.color)
        cps_buf_printf(p.out, "\033[%sm", sgr);
}

static const char *
severity_sgr(cps_code code)
{
    char s = severity(code);
    return s == 'E' ? "1;31" : s == 'W' ? "1;35" : "1;36";
}

// C0, DEL and the C1 set of UTF-8 become '?'; one '?' takes one column, like any code point.
static void
put_clean(cps_buf *out, const char *s, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)s[i];
        bool c1 = c == 0xC2 && i + 1 < n && (unsigned char)s[i + 1] < 0xA0;
        i += c1;
        cps_buf_putc(out, c1 || (c < 0x20 && c != '\t') || c == 0x7f ? '?' : (char)c);
    }
}

static bool
continues_utf8(char c)
{
    return ((unsigned char)c & 0xC0) == 0x80;
}

// The part of the line that is shown: all of it, or a window around the place.
static void
window(const source *s, uint32_t pos, uint32_t *begin, uint32_t *end, bool *cut)
{
    uint32_t l = line_of(s, pos);
    *begin = s->line.data[l];
    *end = l + 1 < s->line.n ? s->line.data[l + 1] - 1 : s->n;
    if (*end > *begin && s->text[*end - 1] == '\r')
        --*end;
    *cut = false;
    if (*end - *begin <= LINE_SHOWN)
        return;
    uint32_t at = CPS_MIN(pos, *end);
    if (at - *begin > LINE_SHOWN / 2) {
        *begin = at - LINE_SHOWN / 2;
        *cut = true;
        while (*begin < at && continues_utf8(s->text[*begin]))
            ++*begin;
    }
    if (*end - *begin > LINE_SHOWN) {
        *end = *begin + LINE_SHOWN;
        while (*end > at && continues_utf8(s->text[*end]))
            --*end;
    }
}

static void
put_snippet(pen p, const source *s, cps_span at)
{
    uint32_t pos = CPS_MIN(at.begin, s->n), begin, end;
    bool cut;
    window(s, pos, &begin, &end, &cut);
    pos = CPS_MIN(pos, end);
    const char *dots = cut ? "..." : "", *gap = cut || end > begin ? " " : "";
    cps_buf_printf(p.out, "%5u |%s%s", s->first + line_of(s, CPS_MIN(at.begin, s->n)) + 1, gap,
                   dots);
    put_clean(p.out, s->text + begin, end - begin);
    cps_buf_printf(p.out, "\n      | %*s", (int)strlen(dots), "");
    for (uint32_t i = begin; i < pos; i++)
        if (!continues_utf8(s->text[i]))
            cps_buf_putc(p.out, s->text[i] == '\t' ? '\t' : ' ');
    paint(p, "1;32");
    cps_buf_putc(p.out, '^');
    uint32_t stop = CPS_MIN(at.end, end);
    for (uint32_t i = pos + 1; i < stop; i++)
        if (!continues_utf8(s->text[i]))
            cps_buf_putc(p.out, '~');
    paint(p, "0");
    cps_buf_putc(p.out, '\n');
}

static void
put_place(pen p, const source *s, cps_span at)
{
    uint32_t line, col;
    locate(s, at.begin, &line, &col);
    put_clean(p.out, s->name, strlen(s->name));
    cps_buf_printf(p.out, ":%u:%u: ", line, col);
}

// "note: text", with its place and snippet when it has one.
static void
put_extra(pen p, const cps_diags *d, const extra *x, unsigned more)
{
    const source *s = source_of(d, x->at.file);
    if (s)
        put_place(p, s, x->at);
    paint(p, x->help ? "1;32" : "1;36");
    cps_buf_puts(p.out, x->help ? "help:" : "note:");
    paint(p, "0");
    cps_buf_putc(p.out, ' ');
    put_clean(p.out, x->text, strlen(x->text));
    if (more)
        cps_buf_printf(p.out, "; %u more", more);
    cps_buf_putc(p.out, '\n');
    if (s)
        put_snippet(p, s, x->at);
}

// A message merged from several pieces says so on its last "in ..." note, or on a line of its
// own.
static const extra *
piece_note(const message *m)
{
    const extra *found = NULL;
    for (const extra *x = m->first; x; x = x->next)
        if (!x->help && strncmp(x->text, "in ", 3) == 0)
            found = x;
    return found;
}

static void
put_message(pen p, const cps_diags *d, const message *m)
{
    const source *s = source_of(d, m->at.file);
    if (s)
        put_place(p, s, m->at);
    paint(p, severity_sgr(m->code));
    cps_buf_printf(p.out, "%s:", severity_word(m->code));
    paint(p, "0");
    cps_buf_putc(p.out, ' ');
    put_clean(p.out, m->text, strlen(m->text));
    cps_buf_printf(p.out, " [%s]\n", cps_diag_rows[m->code].name);
    if (s)
        put_snippet(p, s, m->at);
    const extra *piece = m->count > 1 ? piece_note(m) : NULL;
    for (const extra *x = m->first; x; x = x->next)
        if (!x->help)
            put_extra(p, d, x, x == piece ? m->count - 1 : 0);
    if (m->count > 1 && !piece) {
        paint(p, "1;36");
        cps_buf_puts(p.out, "note:");
        paint(p, "0");
        cps_buf_printf(p.out, " the same %u more time%s\n", m->count - 1,
                       m->count > 2 ? "s" : "");
    }
    for (const extra *x = m->first; x; x = x->next)
        if (x->help)
            put_extra(p, d, x, 0);
}

void
cps_diags_render(const cps_diags *d, cps_buf *out, bool color)
{
    pen p = {out, color};
    for (uint32_t i = 0; i < d->msg.n; i++)
        put_message(p, d, d->msg.data[i]);
    if (d->more_errors)
        cps_buf_printf(out, "note: %u more error%s not shown, the limit is %d\n",
                       d->more_errors, d->more_errors == 1 ? " is" : "s are", LIMIT);
    if (d->more_others)
        cps_buf_printf(out, "note: %u more warning%s not shown, the limit is %d\n",
                       d->more_others, d->more_others == 1 ? " is" : "s are", LIMIT);
}

// ---- JSON lines ----

static void
json_place(cps_jsonw *w, const cps_diags *d, cps_span at)
{
    const source *s = source_of(d, at.file);
    if (!s)
        return;
    uint32_t line, col, end_line, end_col;
    locate(s, at.begin, &line, &col);
    locate(s, CPS_MAX(at.end, at.begin), &end_line, &end_col);
    cps_jsonw_key(w, "file");
    cps_jsonw_str(w, s->name);
    cps_jsonw_key(w, "line");
    cps_jsonw_int(w, line);
    cps_jsonw_key(w, "column");
    cps_jsonw_int(w, col);
    cps_jsonw_key(w, "end_line");
    cps_jsonw_int(w, end_line);
    cps_jsonw_key(w, "end_column");
    cps_jsonw_int(w, end_col);
}

static void
json_text(cps_jsonw *w, const char *key, const char *text)
{
    cps_jsonw_key(w, key);
    cps_jsonw_str(w, text);
}

static void
json_message(cps_buf *out, const cps_diags *d, const message *m)
{
    cps_jsonw w;
    cps_jsonw_init(&w, out);
    cps_jsonw_obj(&w, true);
    json_text(&w, "code", cps_diag_rows[m->code].name);
    json_text(&w, "severity", severity_word(m->code));
    json_text(&w, "message", m->text);
    json_place(&w, d, m->at);
    cps_jsonw_key(&w, "count");
    cps_jsonw_int(&w, m->count);
    cps_jsonw_key(&w, "notes");
    cps_jsonw_arr(&w, true);
    for (const extra *x = m->first; x; x = x->next) {
        if (x->help)
            continue;
        cps_jsonw_obj(&w, true);
        json_text(&w, "message", x->text);
        json_place(&w, d, x->at);
        cps_jsonw_end_obj(&w);
    }
    cps_jsonw_end_arr(&w);
    cps_jsonw_key(&w, "helps");
    cps_jsonw_arr(&w, true);
    for (const extra *x = m->first; x; x = x->next)
        if (x->help)
            cps_jsonw_str(&w, x->text);
    cps_jsonw_end_arr(&w);
    cps_jsonw_end_obj(&w);
    cps_jsonw_done(&w);
}

void
cps_diags_render_json(const cps_diags *d, cps_buf *out)
{
    for (uint32_t i = 0; i < d->msg.n; i++)
        json_message(out, d, d->msg.data[i]);
    if (d->more_errors || d->more_others) {
        cps_jsonw w;
        cps_jsonw_init(&w, out);
        cps_jsonw_obj(&w, true);
        cps_jsonw_key(&w, "not_shown_errors");
        cps_jsonw_int(&w, d->more_errors);
        cps_jsonw_key(&w, "not_shown_others");
        cps_jsonw_int(&w, d->more_others);
        cps_jsonw_end_obj(&w);
        cps_jsonw_done(&w);
    }
}
