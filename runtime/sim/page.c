/* The data of the timeline page: one JSON object with everything recorded, compact enough for
 * some hundred thousand instructions. Names, places and words of assembly text are tables;
 * everything that comes in numbers is a column file: unsigned LEB128 numbers, in base64. `z`
 * below marks a signed one (zigzag). Times are picoseconds.
 *
 *   code   per engine and instruction of its stream: name, place
 *   text   the same: number of bytes, then in them the words of the assembly text after the
 * name: 2 id, or 2 value + 1 for a number that continues the word before it costs  plain
 * numbers, pairs: free - start, done - free insn   per instruction run: engine, z index - last
 * index of the engine, start - last start, start - ready, start - own, its pair of costs + 1 or
 * 0 (then both numbers), warm, multiplications (PE only), source: 0 none, 1 an instruction, 2 a
 * transfer, then z own number - its number, semaphore, z value xfer   per transfer: its
 * instruction, queue, way, trigger - last trigger, issue - trigger, first - issue, last -
 * first, seen - last, bytes, descriptors, variable, place on chip + 1 or 0 sem    per change,
 * only the last of those a transfer makes in a row: semaphore, t - last t, z value, source as
 * above, counted from the last source of its kind link   what another core let go: kind (as of a source),
 * its number, the core, that core's instruction live   bytes in use, by t0: psum, lo / 64,
 * (hi - lo) / 64, t0 - last t0, t1 - t0, source like sem path   the critical path: kind,
 * duration, source like sem
 */
#include "runtime/sim/group.h"
#include "runtime/sim/view.h"

#include <stdio.h>

typedef struct table {
    cps_symtab *ids;
    cps_sym n; /* ids are dense from 0, the empty one */
} table;

struct cps_page {
    cps_buf runs, cols, files;
    table names, places, words, vars, sources;
    unsigned nruns;
    char target[32];
    double peak, rate;
};

static cps_sym
intern(table *t, const char *s, size_t n)
{
    cps_sym id = cps_sym_intern_n(t->ids, s, n);
    t->n = CPS_MAX(t->n, id + 1);
    return id;
}

/* ---- numbers to text ---- */

static void
put_u(cps_buf *b, uint64_t v)
{
    for (; v >= 128; v >>= 7)
        cps_buf_putc(b, (char)((v & 127) | 128));
    cps_buf_putc(b, (char)v);
}

static void
put_z(cps_buf *b, int64_t v)
{
    put_u(b, (uint64_t)v << 1 ^ (uint64_t)(v >> 63));
}

static void
put_base64(cps_buf *out, const cps_buf *b)
{
    static const char digit[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (size_t k = 0; k < b->n; k += 3) {
        uint32_t v = 0;
        for (size_t q = 0; q < 3; q++)
            v = v << 8 | (k + q < b->n ? (uint8_t)b->data[k + q] : 0);
        for (size_t q = 0; q < 4; q++)
            cps_buf_putc(out, k + q > b->n ? '=' : digit[v >> (18 - 6 * q) & 63]);
    }
}

static void
put_text_n(cps_buf *out, const char *s, size_t n)
{
    cps_buf_putc(out, '"');
    for (size_t k = 0; k < n; k++) {
        unsigned char c = (unsigned char)s[k];
        if (c < 0x20 || c == '"' || c == '\\' || c == '<') // the text stands inside HTML
            cps_buf_printf(out, "\\u%04x", c);
        else
            cps_buf_putc(out, (char)c);
    }
    cps_buf_putc(out, '"');
}

static void
put_text(cps_buf *out, const char *s)
{
    put_text_n(out, s, strlen(s));
}

static void
put_table(cps_buf *out, const char *key, const table *t)
{
    cps_buf_printf(out, ",\n\"%s\":[", key);
    for (cps_sym k = 0; k < CPS_MAX(t->n, 1u); k++) {
        if (k)
            cps_buf_putc(out, ',');
        put_text(out, cps_sym_name(t->ids, k));
    }
    cps_buf_putc(out, ']');
}

/* Ends the column file in `p->cols` as member `key` of the run. */
static void
end_column(cps_page *p, const char *key)
{
    cps_buf_printf(&p->runs, ",\n\"%s\":\"", key);
    put_base64(&p->runs, &p->cols);
    cps_buf_putc(&p->runs, '"');
    p->cols.n = 0;
}

static void
put_source(cps_buf *b, uint32_t from, int64_t own)
{
    bool x = from != REC_NONE && from & REC_XFER;
    put_u(b, from == REC_NONE ? 0 : x ? 2 : 1);
    if (from != REC_NONE)
        put_z(b, own - (int64_t)(from & ~REC_XFER));
}

/* The same, counted from the last source of its kind. */
static void
put_next(cps_buf *b, uint32_t from, int64_t last[2])
{
    bool x = from != REC_NONE && from & REC_XFER;
    put_source(b, from, last[x]);
    if (from != REC_NONE)
        last[x] = from & ~REC_XFER;
}

/* ---- columns ---- */

/* A word of assembly text; a number after ">=", as semaphore waits have, is not part of it. */
static void
put_word(cps_page *p, cps_buf *b, const char *w, size_t n)
{
    size_t digits = 0;
    uint64_t v = 0;
    while (digits < n && digits < 9 && w[n - 1 - digits] >= '0' && w[n - 1 - digits] <= '9')
        digits++;
    bool cut = digits && digits < n && w[n - 1 - digits] == '=' &&
               (digits == 1 || w[n - digits] != '0');
    for (size_t k = n - digits; cut && k < n; k++)
        v = v * 10 + (uint64_t)(w[k] - '0');
    put_u(b, 2 * (uint64_t)intern(&p->words, w, cut ? n - digits : n));
    if (cut)
        put_u(b, 2 * v + 1);
}

static void
put_code(cps_page *p, const cps_sim *s)
{
    cps_buf line = {0}, place = {0}, text = {0}, words = {0};
    for (int e = 0; e < CPS_ENGINES; e++) {
        const cps_kstream *st = &s->k->stream[e];
        for (uint32_t i = 0; i < st->code.n; i++) {
            const cps_kloc *at = st->locs.n ? &st->locs.data[i] : NULL;
            line.n = place.n = words.n = 0;
            cps_isa_print(&st->code.data[i], s->k->gen, &line);
            const char *w = line.data;
            size_t len = strcspn(w, " ");
            put_u(&p->cols, intern(&p->names, w, len));
            if (at && at->file)
                cps_buf_printf(&place, "%s:%u", at->file, at->line);
            put_u(&p->cols, at && at->file ? intern(&p->places, place.data, place.n) : 0);
            for (w += len + (w[len] == ' '); *w; w += len + (w[len] == ' ')) {
                len = strcspn(w, " ");
                put_word(p, &words, w, len);
            }
            put_u(&text, words.n);
            cps_buf_put(&text, words.data ? words.data : "", words.n);
        }
    }
    end_column(p, "code");
    cps_buf_put(&p->cols, text.data ? text.data : "", text.n);
    end_column(p, "text");
    cps_buf_fini(&line);
    cps_buf_fini(&place);
    cps_buf_fini(&text);
    cps_buf_fini(&words);
}

static void
put_insns(cps_page *p, const cps_sim *s)
{
    int64_t index[CPS_ENGINES] = {0};
    cps_ps at = 0;
    cps_map costs;
    cps_map_init(&costs, s->run_arena);
    for (uint32_t k = 0; k < s->rec->insn.n; k++) {
        const rec_insn *r = &s->rec->insn.data[k];
        cps_buf *b = &p->cols;
        put_u(b, r->by->engine);
        put_z(b, (int64_t)r->by->index - index[r->by->engine]);
        index[r->by->engine] = r->by->index;
        put_u(b, (uint64_t)(r->start - at));
        at = r->start;
        put_u(b, (uint64_t)(r->start - r->ready));
        put_u(b, (uint64_t)(r->start - r->own));
        uint64_t dur = (uint64_t)(r->free - r->start);
        uint64_t tail = (uint64_t)CPS_MAX(r->done - r->free, 0);
        if (dur >> 32 || tail >> 32) {
            put_u(b, 0);
            put_u(b, dur);
            put_u(b, tail);
        } else {
            bool fresh;
            uint64_t *id = cps_map_at(&costs, dur << 32 | tail, &fresh);
            if (fresh)
                *id = costs.n;
            put_u(b, *id);
        }
        put_u(b, (uint64_t)r->warm);
        if (r->by->engine == CPS_PE)
            put_u(b, r->macs);
        const rec_sem *c = r->freed_by == REC_NONE ? NULL : &s->rec->sem.data[r->freed_by];
        put_source(b, c ? c->from : REC_NONE, k);
        if (c && c->from != REC_NONE) {
            put_u(b, c->sem);
            put_z(b, c->value);
        }
    }
    end_column(p, "insn");
    cps_buf_puts(&p->runs, ",\"costs\":[");
    for (uint32_t k = 0; k < costs.n; k++)
        cps_buf_printf(&p->runs, "%s%llu,%llu", k ? "," : "",
                       (unsigned long long)(costs.entry[k].key >> 32),
                       (unsigned long long)(costs.entry[k].key & UINT32_MAX));
    cps_buf_putc(&p->runs, ']');
}

static void
put_xfers(cps_page *p, const cps_sim *s)
{
    cps_ps at = 0;
    for (uint32_t k = 0; k < s->rec->xfer.n; k++) {
        const rec_xfer *x = &s->rec->xfer.data[k];
        cps_buf *b = &p->cols;
        cps_ps first = x->first < 0 ? x->last : x->first;
        put_u(b, x->from);
        put_u(b, x->queue);
        put_u(b, (unsigned)(x->from_var + 2 * x->to_var));
        put_u(b, (uint64_t)(x->trigger - at));
        at = x->trigger;
        put_u(b, (uint64_t)(x->issue - x->trigger));
        put_u(b, (uint64_t)(first - x->issue));
        put_u(b, (uint64_t)(x->last - first));
        put_u(b, (uint64_t)(x->seen - x->last));
        put_u(b, (uint64_t)x->bytes);
        put_u(b, x->ndesc);
        uint32_t var = REC_NONE;
        int64_t chip = -1;
        for (unsigned q = 0; q < 2 && x->b->items.n; q++) {
            const side *d = q ? &x->b->items.data[0].from : &x->b->items.data[0].to;
            space sp;
            uint32_t v = 0;
            int64_t off = 0;
            if (!addr_resolve(s, d->addr, 1, &sp, &v, &off))
                continue;
            if (sp == SP_HBM)
                var = v;
            else
                chip = off;
        }
        const char *name = var == REC_NONE ? "" : s->vars.data[var].v->name;
        put_u(b, intern(&p->vars, name, strlen(name)));
        put_u(b, (uint64_t)(chip + 1));
    }
    end_column(p, "xfer");
}

static void
put_sems(cps_page *p, const cps_sim *s)
{
    cps_ps at = 0;
    int64_t last[2] = {0};
    uint32_t next[2 * SEMS], n = 0;
    bool *drop = cps_new_array(s->run_arena, bool, s->rec->sem.n + 1);
    memset(next, 0xFF, sizeof next);
    for (uint32_t k = s->rec->sem.n; k-- > 0;) {
        const rec_sem *c = &s->rec->sem.data[k];
        uint32_t q = next[c->sem];
        drop[k] = q != REC_NONE && c->from != REC_NONE && c->from & REC_XFER &&
                  s->rec->sem.data[q].from == c->from;
        next[c->sem] = k;
    }
    for (uint32_t k = 0; k < s->rec->sem.n; k++) {
        const rec_sem *c = &s->rec->sem.data[k];
        if (drop[k])
            continue;
        put_u(&p->cols, c->sem);
        put_u(&p->cols, (uint64_t)(c->t - at));
        at = c->t;
        put_z(&p->cols, c->value);
        put_next(&p->cols, c->from, last);
        n++;
    }
    cps_buf_printf(&p->runs, ",\"nsem\":%u", n);
    end_column(p, "sem");
}

static int
by_birth(const void *a, const void *b)
{
    const rec_live *x = a, *y = b;
    if (x->t0 != y->t0)
        return x->t0 < y->t0 ? -1 : 1;
    if (x->psum != y->psum)
        return x->psum - y->psum;
    return x->lo < y->lo ? -1 : x->lo > y->lo;
}

static void
put_lives(cps_page *p, cps_sim *s)
{
    uint32_t n = s->rec->live.n;
    rec_live *sorted = cps_arena_raw(s->run_arena, (n + 1) * sizeof *sorted);
    if (n) {
        memcpy(sorted, s->rec->live.data, n * sizeof *sorted);
        qsort(sorted, n, sizeof *sorted, by_birth);
    }
    cps_ps at = 0;
    int64_t last[2] = {0};
    for (uint32_t k = 0; k < n; k++) {
        const rec_live *l = &sorted[k];
        put_u(&p->cols, l->psum);
        put_u(&p->cols, l->lo / GRANULE);
        put_u(&p->cols, (l->hi - l->lo) / GRANULE);
        put_u(&p->cols, (uint64_t)(l->t0 - at));
        at = l->t0;
        put_u(&p->cols, (uint64_t)(l->t1 - l->t0));
        put_next(&p->cols, l->by, last);
    }
    for (unsigned psum = 0; psum < 2; psum++) {
        const series *use = view_usage(s, psum);
        int64_t peak = 0;
        for (uint32_t k = 0; k < use->n; k++)
            peak = CPS_MAX(peak, use->data[k].v);
        cps_buf_printf(&p->runs, ",\"%s_peak\":%lld", psum ? "psum" : "sbuf", (long long)peak);
    }
    cps_buf_printf(&p->runs, ",\"nlive\":%u", n);
    end_column(p, "live");
}

static void
put_links(cps_page *p, const cps_sim *s)
{
    for (uint32_t k = 0; k < s->rec->link.n; k++) {
        const rec_link *l = &s->rec->link.data[k];
        put_u(&p->cols, l->who & REC_XFER ? 2 : 1);
        put_u(&p->cols, l->who & ~REC_XFER);
        put_u(&p->cols, l->core);
        put_u(&p->cols, l->insn);
    }
    end_column(p, "link");
}

static void
put_path(cps_page *p, const view *v)
{
    int64_t last[2] = {0};
    for (uint32_t k = 0; k < v->path.n; k++) {
        put_u(&p->cols, v->path.data[k].kind);
        put_u(&p->cols, (uint64_t)(v->path.data[k].t1 - v->path.data[k].t0));
        put_next(&p->cols, v->path.data[k].who, last);
    }
    cps_buf_printf(&p->runs, ",\"npath\":%u", v->path.n);
    end_column(p, "path");
}

/* ---- members that are plain JSON ---- */

static void
put_list(cps_buf *out, const cps_ps *v, uint32_t n)
{
    cps_buf_putc(out, '[');
    for (uint32_t k = 0; k < n; k++)
        cps_buf_printf(out, "%s%lld", k ? "," : "", (long long)v[k]);
    cps_buf_putc(out, ']');
}

static void
put_accounts(cps_page *p, cps_sim *s, const view *v)
{
    cps_buf *out = &p->runs;
    cps_buf_puts(out, ",\"spent\":[");
    for (int e = 0; e < CPS_ENGINES; e++) {
        cps_buf_puts(out, e ? "," : "");
        put_list(out, v->spent[e], TIMES);
    }
    cps_buf_puts(out, "],\"wait\":[");
    for (int e = 0; e < CPS_ENGINES; e++) {
        cps_buf_puts(out, e ? "," : "");
        put_list(out, v->wait[e], v->sources);
    }
    cps_buf_puts(out, "],\"queues\":[");
    for (uint32_t q = 0; q < s->queues.n; q++) {
        if (q)
            cps_buf_putc(out, ',');
        put_text(out, s->queues.data[q].name);
    }
    cps_buf_puts(out, "],\"hints\":[");
    cps_sim_hint h[CPS_SIM_HINTS] = {{0}};
    unsigned n = cps_sim_hints(s, h);
    for (unsigned k = 0; k < n; k++) {
        cps_buf_puts(out, k ? ",[" : "[");
        put_text(out, h[k].advice);
        cps_buf_putc(out, ',');
        put_text(out, h[k].what);
        cps_buf_printf(out, ",%lld]", (long long)h[k].saves_ps);
    }
    cps_buf_putc(out, ']');
}

/* ---- the object ---- */

cps_page *
cps_page_create(void)
{
    cps_page *p = calloc(1, sizeof *p);
    if (!p)
        cps_bug("no memory for a page");
    p->names.ids = cps_symtab_create();
    p->places.ids = cps_symtab_create();
    p->words.ids = cps_symtab_create();
    p->vars.ids = cps_symtab_create();
    p->sources.ids = cps_symtab_create();
    return p;
}

void
cps_page_destroy(cps_page *p)
{
    if (!p)
        return;
    cps_buf_fini(&p->runs);
    cps_buf_fini(&p->cols);
    cps_buf_fini(&p->files);
    cps_symtab_destroy(p->names.ids);
    cps_symtab_destroy(p->places.ids);
    cps_symtab_destroy(p->words.ids);
    cps_symtab_destroy(p->vars.ids);
    cps_symtab_destroy(p->sources.ids);
    free(p);
}

void
cps_page_add(cps_page *p, cps_sim *s, const char *name, int64_t offset_ps,
             const cps_page_roof *roof)
{
    const view *v = view_of(s);
    if (!v)
        return;
    cps_buf *out = &p->runs;
    cps_buf_puts(out, p->nruns++ ? ",\n{\"name\":" : "{\"name\":");
    put_text(out, name);
    // The cores of a group have one time; alone, a run begins when its core does.
    bool many = group_named(s);
    cps_buf_printf(out, ",\"core\":%u,\"cores\":%u,\"base\":%lld", s->core, many ? s->group->n : 1,
                   (long long)(many ? s->group->begin : v->begin));
    cps_buf_printf(out,
                   ",\"offset\":%lld,\"begin\":%lld,\"end\":%lld,\"insns\":%u,\"xfers\":%u",
                   (long long)offset_ps, (long long)v->begin, (long long)v->end, s->rec->insn.n,
                   s->rec->xfer.n);
    cps_buf_printf(out, ",\"sbuf\":%u,\"psum\":%d,\"sem_ps\":%lld,\"dma_busy\":%lld",
                   s->sbuf_bytes, PSUM_BYTES, (long long)ns_ps(s->t->sync_semaphore_ns),
                   (long long)s->rep.dma_busy_ps);
    cps_buf_printf(out, ",\"flops\":%lld,\"bytes\":%lld,\"roof_ps\":%lld,\"engines_ps\":%lld",
                   (long long)roof->flops, (long long)roof->bytes,
                   (long long)ns_ps(roof->roofline_ns), (long long)ns_ps(roof->engines_ns));
    cps_buf_puts(out, ",\"bound\":");
    put_text(out, roof->bound ? roof->bound : "");
    cps_ps streams[CPS_ENGINES];
    for (int e = 0; e < CPS_ENGINES; e++)
        streams[e] = s->eng[e].n;
    cps_buf_puts(out, ",\"streams\":");
    put_list(out, streams, CPS_ENGINES);
    put_accounts(p, s, v);
    put_code(p, s);
    put_insns(p, s);
    put_xfers(p, s);
    put_sems(p, s);
    put_lives(p, s);
    put_path(p, v);
    put_links(p, s);
    cps_buf_putc(out, '}');
    snprintf(p->target, sizeof p->target, "%s", s->t->name);
    p->peak = 2.0 * 128 * 128 * s->t->pe_mhz / 1e3; // one MAC a cell and cycle, per ns
    p->rate = many ? CPS_MIN(s->t->hbm_roof_bytes_per_ns, s->t->hbm_pair_bytes_per_ns) : s->t->hbm_roof_bytes_per_ns;
}

void
cps_page_source(cps_page *p, const char *file, const char *text, size_t n)
{
    if (cps_sym_find(p->sources.ids, file))
        return;
    intern(&p->sources, file, strlen(file));
    cps_buf_puts(&p->files, p->files.n ? ",\n" : "");
    put_text(&p->files, file);
    cps_buf_putc(&p->files, ':');
    put_text_n(&p->files, text, n);
}

void
cps_page_json(cps_page *p, cps_buf *out)
{
    cps_buf_puts(out, "{\"version\":1,\"target\":");
    put_text(out, p->target);
    cps_buf_puts(out, ",\"peak\":");
    cps_buf_put_double(out, p->peak);
    cps_buf_puts(out, ",\"rate\":");
    cps_buf_put_double(out, p->rate);
    cps_buf_puts(out, ",\"engines\":[");
    for (int e = 0; e < CPS_ENGINES; e++) {
        if (e)
            cps_buf_putc(out, ',');
        put_text(out, cps_engine_name((cps_engine)e));
    }
    cps_buf_puts(out, "],\"kinds\":[");
    for (int k = 0; k < TIMES; k++) {
        cps_buf_puts(out, k ? ",[" : "[");
        put_text(out, time_rows[k].name);
        cps_buf_printf(out, ",%u,", time_rows[k].use);
        put_text(out, time_rows[k].doc);
        cps_buf_putc(out, ']');
    }
    cps_buf_putc(out, ']');
    put_table(out, "names", &p->names);
    put_table(out, "places", &p->places);
    put_table(out, "words", &p->words);
    put_table(out, "vars", &p->vars);
    cps_buf_puts(out, ",\n\"sources\":{");
    cps_buf_put(out, p->files.data ? p->files.data : "", p->files.n);
    cps_buf_puts(out, "},\n\"runs\":[\n");
    cps_buf_put(out, p->runs.data ? p->runs.data : "", p->runs.n);
    cps_buf_puts(out, "]}");
}
