/* .cas texts to bundles: lines, whole texts, texts in pieces.
 *
 * One pass. A line depends on others by names only: what `.set` defined before it, labels
 * before it, and labels after it. A line that uses a name not known yet waits, with an empty
 * bundle in its place; all bundles from there on are held back until its label has come. So
 * memory grows with the distance of a forward branch and with the number of names, never with
 * the text. */
#include "codegen/isa/parse.h"

// The end of a line's content: its end, or "//" outside quotes after a blank or at the start.
static const char *
content_end(const char *s, const char *stop)
{
    if (!memchr(s, '/', (size_t)(stop - s)))
        return stop;
    bool quoted = false;
    for (const char *p = s; p < stop; p++) {
        if (*p == '"')
            quoted = !quoted;
        else if (!quoted && *p == '/' && p + 1 < stop && p[1] == '/' &&
                 (p == s || cps_cas_blank(p[-1])))
            return p;
    }
    return stop;
}

// Takes the line [s, stop) as the current one; p and end around its content.
static void
begin(cps_cas *ps, const char *s, const char *stop)
{
    if (ps->pieces) {
        ps->text = s;
        ps->file = 0;
    }
    ps->stop = stop;
    ps->p = s;
    ps->end = content_end(s, stop);
    while (ps->end > ps->p && cps_cas_blank(ps->end[-1]))
        ps->end--;
    cps_cas_skip_blanks(ps);
}

/* ---- lines that wait ---- */

static bool
waiting(const cps_cas *ps)
{
    return ps->first_wait < ps->wait.n;
}

static cps_cas_wait *
wait_of(cps_cas *ps, uint64_t id)
{
    return &ps->wait.data[id - 1 - ps->gone];
}

static void
put(cps_buf *out, const cps_bundle *b)
{
    memcpy(cps_buf_room(out, CPS_BUNDLE_BYTES), b->b, CPS_BUNDLE_BYTES);
    out->n += CPS_BUNDLE_BYTES;
}

static void
enlist(cps_cas *ps, uint64_t id)
{
    cps_cas_wait *w = wait_of(ps, id);
    w->head = cps_cas_waiters(ps);
    w->prev = 0;
    w->next = *w->head;
    if (w->next)
        wait_of(ps, w->next)->prev = id;
    *w->head = id;
    ps->missing = NULL;
}

static void
unlist(cps_cas *ps, uint64_t id)
{
    const cps_cas_wait *w = wait_of(ps, id);
    if (w->next)
        wait_of(ps, w->next)->prev = w->prev;
    if (w->prev)
        wait_of(ps, w->prev)->next = w->next;
    else
        *w->head = w->next;
}

static void
add_wait(cps_cas *ps, cps_cas_wait w)
{
    size_t n = (size_t)(w.stop - w.s);
    if (!ps->wait_arena)
        ps->wait_arena = cps_arena_create();
    if (ps->pieces) {
        w.s = cps_arena_strndup(ps->wait_arena, w.s, n);
        w.stop = w.s + n;
    }
    cps_vec_push(ps->wait_arena, &ps->wait, w);
}

// The current line [s, stop) waits for the missing name.
static void
await(cps_cas *ps, const char *s, const char *stop)
{
    add_wait(
        ps,
        (cps_cas_wait){
            .s = s, .stop = stop, .line = ps->line, .index = ps->index, .slot = ps->held.n});
    enlist(ps, ps->gone + ps->wait.n);
    put(&ps->held, &(cps_bundle){{0}});
}

// Reads a waiting line again; with `last`, a name that is still not known is an error.
static void
again(cps_cas *ps, uint64_t id, bool last)
{
    cps_cas_wait *w = wait_of(ps, id);
    uint64_t line = ps->line, index = ps->index;
    const char *p = ps->p, *end = ps->end, *stop = ps->stop, *text = ps->text;
    uint32_t file = ps->file;
    begin(ps, w->s, w->stop);
    ps->line = w->line;
    ps->index = w->index;
    while (cps_cas_at_label(ps)) { // defined when the line was met first
        ps->p = memchr(ps->p, ':', (size_t)(ps->end - ps->p)) + 1;
        cps_cas_skip_blanks(ps);
    }
    ps->may_wait = !last;
    if (cps_cas_instruction(ps)) {
        memcpy(ps->held.data + w->slot, ps->b.b, CPS_BUNDLE_BYTES);
        w->done = true;
    } else if (ps->missing) {
        enlist(ps, id);
    } else {
        ps->good = false;
        w->done = w->bad = true;
    }
    ps->may_wait = false;
    ps->p = p;
    ps->end = end;
    ps->stop = stop;
    ps->text = text;
    ps->file = file;
    ps->line = line;
    ps->index = index;
}

// Gives out the bundles that nobody waits before. What is left moves, so only when it is less.
static void
release(cps_cas *ps, cps_buf *out)
{
    while (waiting(ps) && ps->wait.data[ps->first_wait].done)
        ps->first_wait++;
    uint32_t n = ps->wait.n, k = ps->first_wait;
    cps_cas_wait *w = ps->wait.data;
    size_t cut = k < n ? w[k].slot : ps->held.n, from = 0;
    if (!n || cut < ps->held.n / 2)
        return;
    for (uint32_t i = 0; i < k; i++)
        if (w[i].bad) { // a line with an error gives no bundle
            cps_buf_put(out, ps->held.data + from, w[i].slot - from);
            from = w[i].slot + CPS_BUNDLE_BYTES;
        }
    cps_buf_put(out, ps->held.data + from, cut - from);
    ps->held.n -= cut;
    memmove(ps->held.data, ps->held.data + cut, ps->held.n);
    cps_arena *old = ps->wait_arena;
    ps->wait_arena = NULL;
    memset(&ps->wait, 0, sizeof ps->wait);
    for (uint32_t i = k; i < n; i++) {
        w[i].slot -= cut;
        add_wait(ps, w[i]);
    }
    ps->gone += k;
    ps->first_wait = 0;
    cps_arena_destroy(old);
}

// The first one that waits has waited too long.
static void
give_up(cps_cas *ps, bool at_end)
{
    uint64_t id = ps->gone + ps->first_wait + 1;
    if (!wait_of(ps, id)->done) {
        unlist(ps, id);
        again(ps, id, true);
        if (!at_end)
            cps_help(ps->d, "a label is at most %d instructions after the line that uses it",
                     CPS_CAS_AHEAD);
    }
    ps->first_wait++;
}

/* ---- lines ---- */

// Labels at p are defined here; those who wait for them are read again.
static void
labels(cps_cas *ps)
{
    while (cps_cas_at_label(ps)) {
        uint64_t id;
        if (!cps_cas_label(ps, &id))
            ps->good = false;
        while (id) {
            uint64_t next = wait_of(ps, id)->next;
            again(ps, id, false);
            id = next;
        }
        cps_cas_skip_blanks(ps);
    }
}

// One line without its newline.
static void
one_line(cps_cas *ps, const char *s, const char *stop, cps_buf *out)
{
    begin(ps, s, stop);
    labels(ps);
    if (ps->wait.n)
        release(ps, out);
    if (ps->p < ps->end && cps_cas_keyword(ps, ".set")) {
        if (!cps_cas_set(ps))
            ps->good = false;
    } else if (ps->p < ps->end) {
        ps->may_wait = true;
        if (cps_cas_instruction(ps))
            put(ps->wait.n ? &ps->held : out, &ps->b);
        else if (ps->missing)
            await(ps, s, stop);
        else
            ps->good = false;
        ps->may_wait = false;
        ps->index++;
    }
    ps->line++;
    if (!waiting(ps))
        return;
    bool full = cps_arena_bytes(ps->wait_arena) > CPS_CAS_WAITING;
    while (waiting(ps) &&
           (full || ps->index - ps->wait.data[ps->first_wait].index > CPS_CAS_AHEAD))
        give_up(ps, false);
    release(ps, out);
}

// The end of the text: labels that have not come never will.
static void
last_line(cps_cas *ps, cps_buf *out)
{
    while (waiting(ps))
        give_up(ps, true);
    release(ps, out);
    cps_arena_destroy(ps->arena);
    ps->arena = NULL;
    cps_buf_fini(&ps->held);
}

/* ---- texts ---- */

bool
cps_isa_parse(const char *text, size_t n, uint32_t file, cps_gen g, cps_diags *d,
              cps_buf *bundles)
{
    text = n ? text : ""; // nobody does arithmetic on NULL
    cps_cas ps = {.text = text, .d = d, .file = file, .g = g, .good = true};
    if (n >= UINT32_MAX) {
        cps_error(d, CPS_E9208, CPS_NOSPAN, "text of %zu bytes, at most 4 GiB are read at once",
                  n);
        return false;
    }
    cps_cas_fill_mnemonics(&ps);
    for (const char *s = text, *stop = text + n; s < stop;) {
        const char *nl = memchr(s, '\n', (size_t)(stop - s));
        one_line(&ps, s, nl ? nl : stop, bundles);
        s = nl ? nl + 1 : stop;
    }
    last_line(&ps, bundles);
    return ps.good;
}

cps_cas *
cps_isa_parser(cps_arena *a, const char *name, cps_gen g, cps_diags *d)
{
    cps_cas *ps = cps_new(a, cps_cas);
    ps->pieces = ps->good = true;
    ps->name = name;
    ps->g = g;
    ps->d = d;
    cps_cas_fill_mnemonics(ps);
    return ps;
}

// Keeps what follows the last newline, unless that has become too long for a line.
static void
keep(cps_cas *ps, const char *s, size_t n)
{
    if (ps->skipping)
        return;
    if (ps->carry.n + n <= CPS_CAS_LINE) {
        cps_buf_put(&ps->carry, s, n);
        return;
    }
    ps->skipping = true;
    ps->carry.n = 0;
    begin(ps, s, s);
    ps->good =
        cps_cas_fail(ps, CPS_E9208, s, s, "line of more than %u bytes", (unsigned)CPS_CAS_LINE);
}

void
cps_isa_parser_verify(cps_cas *ps, cps_engine engine, cps_diags *probe)
{
    ps->engine = engine;
    ps->probe = probe;
}

bool
cps_isa_parse_piece(cps_cas *ps, const char *text, size_t n, cps_buf *bundles)
{
    text = n ? text : "";
    for (const char *s = text, *stop = text + n; s < stop;) {
        const char *nl = memchr(s, '\n', (size_t)(stop - s));
        if (!nl) {
            keep(ps, s, (size_t)(stop - s));
            break;
        }
        if (ps->carry.n || ps->skipping) {
            keep(ps, s, (size_t)(nl - s));
            if (!ps->skipping)
                one_line(ps, ps->carry.data, ps->carry.data + ps->carry.n, bundles);
            else
                ps->line++;
            ps->skipping = false;
            ps->carry.n = 0;
        } else {
            one_line(ps, s, nl, bundles);
        }
        s = nl + 1;
    }
    return ps->good;
}

bool
cps_isa_parse_end(cps_cas *ps, cps_buf *bundles)
{
    if (ps->carry.n)
        one_line(ps, ps->carry.data, ps->carry.data + ps->carry.n, bundles);
    last_line(ps, bundles);
    cps_buf_fini(&ps->carry);
    return ps->good;
}
