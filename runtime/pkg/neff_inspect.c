/* The description of a container as JSON (keys sorted, stable) and as text for people. */
#include "runtime/pkg/neff_graph.h"

#include "runtime/pkg/neff_priv.h"

static const char *const verdict_words[] = {"passes", "fails", "unknown"};

enum { ROWS = 40 }; /* of a long table in text */

typedef struct totals {
    uint64_t instructions, items, descs, engines, queues, vars;
    uint64_t members, bytes, constants, scratch;
} totals;

static totals
sum(const cps_neff_info *i)
{
    totals t = {.members = i->neff->members.n};
    for (uint32_t k = 0; k < i->neff->members.n; k++)
        t.bytes += i->neff->members.data[k].n;
    for (uint32_t k = 0; k < i->graphs.n; k++) {
        const cps_neff_graph *g = &i->graphs.data[k];
        t.vars += g->vars.n;
        t.queues += g->queues.n;
        uint64_t pad = 0;
        for (uint32_t v = 0; v < g->vars.n; v++) {
            const cps_neff_var *x = &g->vars.data[v];
            uint64_t size = x->size < 0 ? 0 : (uint64_t)x->size;
            if (!strcmp(x->kind, "file"))
                t.constants += size;
            else if (!strcmp(x->kind, "tmp-buf"))
                t.scratch += size;
            else if (!strcmp(x->kind, "virtual")) // they share the pad by their offsets
                pad = CPS_MAX(pad, size + (x->backing < 0 ? 0 : (uint64_t)x->backing));
        }
        t.scratch += pad;
        for (int e = 0; e < CPS_ENGINES; e++) {
            const cps_neff_engine *x = &g->engine[e];
            t.engines += x->instructions > 0;
            t.instructions += x->instructions;
            t.items += x->items;
            t.descs += x->descs;
        }
    }
    return t;
}

static const char *
opcode_name(const cps_neff_info *i, uint8_t op, cps_gen g)
{
    cps_insn n = cps_isa_find(op, i->gen >= 0 ? (cps_gen)i->gen : g);
    if (n == CPS_INSN_NONE)
        n = cps_isa_find_any(op);
    return n == CPS_INSN_NONE ? NULL : cps_insns[n].name;
}

static const cps_neff_feature_row *
feature(unsigned bit)
{
    for (unsigned k = 0; k < cps_neff_nfeatures; k++)
        if (cps_neff_features[k].bit == (uint64_t)1 << bit)
            return &cps_neff_features[k];
    return NULL;
}

/* ---- JSON ---- */

static void
key_str(cps_jsonw *w, const char *key, const char *v)
{
    cps_jsonw_key(w, key);
    v ? cps_jsonw_str(w, v) : cps_jsonw_null(w);
}

static void
key_int(cps_jsonw *w, const char *key, uint64_t v)
{
    cps_jsonw_key(w, key);
    cps_jsonw_int(w, v > INT64_MAX ? INT64_MAX : (int64_t)v);
}

/* Unknown or absent numbers are null. */
static void
key_size(cps_jsonw *w, const char *key, int64_t v)
{
    cps_jsonw_key(w, key);
    v < 0 ? cps_jsonw_null(w) : cps_jsonw_int(w, v);
}

static void
key_bool(cps_jsonw *w, const char *key, bool v)
{
    cps_jsonw_key(w, key);
    cps_jsonw_bool(w, v);
}

/* A value that was read, as it stood. */
static void
put_value(cps_jsonw *w, const cps_json *v)
{
    switch (v->kind) {
    case CPS_JSON_NULL:
        cps_jsonw_null(w);
        return;
    case CPS_JSON_BOOL:
        cps_jsonw_bool(w, v->i != 0);
        return;
    case CPS_JSON_INT:
        cps_jsonw_int(w, v->i);
        return;
    case CPS_JSON_NUM:
        cps_jsonw_num(w, v->num);
        return;
    case CPS_JSON_STR:
        cps_jsonw_str(w, v->str);
        return;
    default:
        break;
    }
    bool object = v->kind == CPS_JSON_OBJ;
    object ? cps_jsonw_obj(w, true) : cps_jsonw_arr(w, true);
    for (const cps_json *m = v->first; m; m = m->next) {
        if (object)
            cps_jsonw_key(w, m->key);
        // The writer nests to 63, and a document that was read to 64.
        w->depth < 60 ? put_value(w, m) : cps_jsonw_null(w);
    }
    object ? cps_jsonw_end_obj(w) : cps_jsonw_end_arr(w);
}

static void
key_value(cps_jsonw *w, const char *key, const cps_json *v)
{
    cps_jsonw_key(w, key);
    v ? put_value(w, v) : cps_jsonw_null(w);
}

static void
json_engine(cps_jsonw *w, const cps_neff_info *i, const cps_neff_engine *e, int id, cps_gen g)
{
    cps_jsonw_obj(w, false);
    key_str(w, "binary", e->bin ? e->bin->name : NULL);
    key_int(w, "bytes", e->bin ? e->bin->n : 0);
    key_str(w, "description", e->desc ? e->desc->name : NULL);
    key_int(w, "descriptors", e->descs);
    key_int(w, "dma_items", e->items);
    key_int(w, "instructions", e->instructions);
    key_str(w, "name", cps_engine_name((cps_engine)id));
    cps_jsonw_key(w, "opcodes");
    cps_jsonw_arr(w, false);
    for (unsigned op = 0; op < 256; op++) {
        if (!e->count[op])
            continue;
        cps_jsonw_obj(w, true);
        key_int(w, "count", e->count[op]);
        key_str(w, "name", opcode_name(i, (uint8_t)op, g));
        key_int(w, "opcode", op);
        cps_jsonw_end_obj(w);
    }
    cps_jsonw_end_arr(w);
    key_value(w, "tables", cps_json_get(e->doc, "activation_function_sets"));
    cps_jsonw_end_obj(w);
}

static void
json_graph(cps_jsonw *w, const cps_neff_info *i, const cps_neff_graph *g, cps_gen gen)
{
    cps_jsonw_obj(w, false);
    key_str(w, "definition", g->def->name);
    cps_jsonw_key(w, "engines");
    cps_jsonw_arr(w, false);
    for (int e = 0; e < CPS_ENGINES; e++)
        json_engine(w, i, &g->engine[e], e, gen);
    cps_jsonw_end_arr(w);
    key_value(w, "features", cps_json_get(g->doc, "neff_features"));
    key_str(w, "name", g->name);
    cps_jsonw_key(w, "queues");
    cps_jsonw_arr(w, false);
    for (uint32_t k = 0; k < g->queues.n; k++) {
        const cps_neff_queue *q = &g->queues.data[k];
        cps_jsonw_obj(w, true);
        key_int(w, "instances", q->instances);
        key_str(w, "kind", q->kind);
        key_str(w, "name", q->name);
        key_int(w, "num_queues", (uint64_t)q->queues);
        key_str(w, "owner", q->owner);
        cps_jsonw_key(w, "semaphores");
        cps_jsonw_arr(w, true);
        for (uint32_t s = 0; s < q->semaphores.n; s++)
            cps_jsonw_int(w, q->semaphores.data[s]);
        cps_jsonw_end_arr(w);
        cps_jsonw_end_obj(w);
    }
    cps_jsonw_end_arr(w);
    key_value(w, "replica_groups", cps_json_get(g->doc, "replica_groups"));
    key_value(w, "tensor_map", g->tensor_map);
    cps_jsonw_key(w, "vars");
    cps_jsonw_arr(w, false);
    for (uint32_t k = 0; k < g->vars.n; k++) {
        const cps_neff_var *v = &g->vars.data[k];
        cps_jsonw_obj(w, true);
        if (v->backing >= 0)
            key_size(w, "backing_variable_off", v->backing);
        if (v->file)
            key_str(w, "file", v->file);
        key_size(w, "id", v->id);
        key_str(w, "kind", v->kind);
        key_str(w, "name", v->name);
        key_size(w, "size", v->size);
        cps_jsonw_end_obj(w);
    }
    cps_jsonw_end_arr(w);
    key_str(w, "version", g->version);
    cps_jsonw_end_obj(w);
}

static void
json_features(cps_jsonw *w, const cps_neff *f)
{
    cps_jsonw_key(w, "features");
    cps_jsonw_arr(w, false);
    for (unsigned bit = 0; bit < 64 && f->has_head; bit++) {
        if (!(f->head.feature_bits >> bit & 1))
            continue;
        const cps_neff_feature_row *row = feature(bit);
        cps_jsonw_obj(w, true);
        key_int(w, "bit", bit);
        key_str(w, "meaning", row ? row->when : NULL);
        key_str(w, "name", row ? row->name : NULL);
        cps_jsonw_end_obj(w);
    }
    cps_jsonw_end_arr(w);
}

static void
json_header(cps_jsonw *w, const cps_neff *f)
{
    cps_buf b = {0};
    cps_jsonw_key(w, "header");
    if (!f->has_head) {
        cps_jsonw_null(w);
        return;
    }
    cps_jsonw_obj(w, false);
    for (unsigned k = 0; k < cps_neff_nfields; k++) {
        if (cps_neff_field_is_number(k)) {
            key_int(w, cps_neff_field_name(k), cps_neff_field_number(f, k));
            continue;
        }
        b.n = 0;
        cps_neff_field_text(f, k, &b);
        key_str(w, cps_neff_field_name(k), b.n ? b.data : "");
    }
    cps_jsonw_end_obj(w);
    cps_buf_fini(&b);
}

void
cps_neff_print_json(const cps_neff_info *i, cps_gen g, cps_buf *out)
{
    const cps_neff *f = i->neff;
    totals t = sum(i);
    cps_neff_check check[CPS_NEFF_CHECKS];
    cps_neff_checks(i, check);
    cps_jsonw w;
    cps_jsonw_init(&w, out);
    cps_jsonw_obj(&w, false);
    cps_jsonw_key(&w, "archive");
    cps_jsonw_obj(&w, false);
    key_int(&w, "bytes", f->file_bytes ? f->head.data_size : 0);
    key_bool(&w, "gzip", f->gzip);
    key_int(&w, "inflated", f->inflated);
    cps_jsonw_key(&w, "members");
    cps_jsonw_arr(&w, false);
    for (uint32_t k = 0; k < f->members.n; k++) {
        cps_jsonw_obj(&w, true);
        key_int(&w, "bytes", f->members.data[k].n);
        key_str(&w, "name", f->members.data[k].name);
        cps_jsonw_end_obj(&w);
    }
    cps_jsonw_end_arr(&w);
    key_int(&w, "trailing", f->trailing);
    cps_jsonw_end_obj(&w);
    cps_jsonw_key(&w, "checks");
    cps_jsonw_arr(&w, false);
    for (unsigned k = 0; k < CPS_NEFF_CHECKS; k++) {
        cps_jsonw_obj(&w, true);
        key_str(&w, "name", check[k].name);
        key_str(&w, "verdict", verdict_words[check[k].verdict]);
        key_str(&w, "what", check[k].text);
        cps_jsonw_end_obj(&w);
    }
    cps_jsonw_end_arr(&w);
    json_features(&w, f);
    key_int(&w, "file_bytes", f->file_bytes);
    cps_jsonw_key(&w, "graphs");
    cps_jsonw_arr(&w, false);
    for (uint32_t k = 0; k < i->graphs.n; k++)
        json_graph(&w, i, &i->graphs.data[k], g);
    cps_jsonw_end_arr(&w);
    json_header(&w, f);
    key_str(&w, "kelf", i->kelf);
    key_str(&w, "kelf_version", i->kelf_version);
    cps_jsonw_key(&w, "notes");
    cps_jsonw_arr(&w, false);
    for (uint32_t k = 0; k < i->notes.n; k++)
        cps_jsonw_str(&w, i->notes.data[k]);
    cps_jsonw_end_arr(&w);
    key_str(&w, "target", i->target);
    cps_jsonw_key(&w, "totals");
    cps_jsonw_obj(&w, true);
    key_int(&w, "bytes", t.bytes);
    key_int(&w, "constant_bytes", t.constants);
    key_int(&w, "descriptors", t.descs);
    key_int(&w, "dma_items", t.items);
    key_int(&w, "engines", t.engines);
    key_int(&w, "graphs", i->graphs.n);
    key_int(&w, "instructions", t.instructions);
    key_int(&w, "members", t.members);
    key_int(&w, "queues", t.queues);
    key_int(&w, "scratch_bytes", t.scratch);
    key_int(&w, "vars", t.vars);
    cps_jsonw_end_obj(&w);
    cps_jsonw_end_obj(&w);
    cps_jsonw_done(&w);
}

/* ---- text ---- */

static void
pad_to(cps_buf *out, size_t from, size_t width)
{
    while (out->n < from + width)
        cps_buf_putc(out, ' ');
}

static void
more(cps_buf *out, uint32_t n)
{
    if (n > ROWS)
        cps_buf_printf(out, "  ... and %u more; --json lists all\n", n - ROWS);
}

static void
text_head(const cps_neff *f, cps_buf *out)
{
    if (!f->has_head) {
        cps_buf_puts(out, "header: none; the folder has no " CPS_NEFF_HEAD_FILE "\n");
        return;
    }
    cps_buf_puts(out, "header\n");
    cps_buf b = {0};
    for (unsigned k = 0; k < cps_neff_nfields; k++) {
        size_t from = out->n;
        cps_buf_printf(out, "  %-21s", cps_neff_field_name(k));
        b.n = 0;
        cps_neff_field_text(f, k, &b);
        cps_neff_put_plain(out, b.n ? b.data : "");
        pad_to(out, from, 64);
        cps_buf_printf(out, "  %s\n", cps_neff_field_doc(k));
    }
    cps_buf_fini(&b);
    for (unsigned bit = 0; bit < 64; bit++) {
        if (!(f->head.feature_bits >> bit & 1))
            continue;
        const cps_neff_feature_row *row = feature(bit);
        cps_buf_printf(out, "    bit %-2u %-34s %s\n", bit, row ? row->name : "not known",
                       row ? row->when : "");
    }
}

static void
text_graph(const cps_neff_info *i, const cps_neff_graph *g, cps_gen gen, cps_buf *out)
{
    cps_buf_puts(out, "\ngraph ");
    cps_neff_put_plain(out, g->name);
    cps_buf_puts(out, ", ");
    cps_neff_put_plain(out, g->def->name);
    if (g->version) {
        cps_buf_puts(out, ", version ");
        cps_neff_put_plain(out, g->version);
    }
    cps_buf_printf(out, "\n  %u variables\n", g->vars.n);
    for (uint32_t k = 0; k < g->vars.n && k < ROWS; k++) {
        const cps_neff_var *v = &g->vars.data[k];
        size_t from = out->n;
        cps_buf_printf(out, "  %5lld  ", (long long)v->id);
        cps_neff_put_plain(out, v->kind);
        pad_to(out, from, 24);
        cps_buf_printf(out, "%14lld  ", (long long)v->size);
        cps_neff_put_plain(out, v->name);
        if (v->backing >= 0)
            cps_buf_printf(out, " at %lld of the scratchpad", (long long)v->backing);
        if (v->file) {
            cps_buf_puts(out, " from ");
            cps_neff_put_plain(out, v->file);
        }
        cps_buf_putc(out, '\n');
    }
    more(out, g->vars.n);
    cps_buf_printf(out, "  %u queues\n", g->queues.n);
    for (uint32_t k = 0; k < g->queues.n && k < ROWS; k++) {
        const cps_neff_queue *q = &g->queues.data[k];
        size_t from = out->n;
        cps_buf_puts(out, "    ");
        cps_neff_put_plain(out, q->name);
        pad_to(out, from, 32);
        cps_buf_puts(out, " ");
        cps_neff_put_plain(out, q->kind);
        cps_buf_printf(out, ", %lld hardware queues, owner ", (long long)q->queues);
        cps_neff_put_plain(out, *q->owner ? q->owner : "not given");
        for (uint32_t s = 0; s < q->semaphores.n && s < ROWS; s++)
            cps_buf_printf(out, "%s%lld", s ? "," : ", semaphores ",
                           (long long)q->semaphores.data[s]);
        cps_buf_putc(out, '\n');
    }
    more(out, g->queues.n);
    cps_buf_puts(out, "  engines\n");
    for (int e = 0; e < CPS_ENGINES; e++) {
        const cps_neff_engine *x = &g->engine[e];
        cps_buf_printf(out, "    %-5s%9u instructions, %6u dma items, %8u descriptors\n",
                       cps_engine_name((cps_engine)e), x->instructions, x->items, x->descs);
        for (unsigned op = 0; op < 256; op++) {
            if (!x->count[op])
                continue;
            const char *name = opcode_name(i, (uint8_t)op, gen);
            cps_buf_printf(out, "      %8u  0x%02x %s\n", x->count[op], op,
                           name ? name : "not known");
        }
    }
    const cps_json *in = cps_json_get(g->tensor_map, "inputs"),
                   *alias = cps_json_get(g->tensor_map, "alias_map");
    if (g->tensor_map)
        cps_buf_printf(out, "  tensor map: %u inputs, %u aliases\n", in ? in->n : 0,
                       alias ? alias->n : 0);
}

void
cps_neff_print_text(const cps_neff_info *i, cps_gen g, cps_buf *out)
{
    const cps_neff *f = i->neff;
    totals t = sum(i);
    cps_neff_check check[CPS_NEFF_CHECKS];
    cps_neff_checks(i, check);
    text_head(f, out);
    cps_buf_puts(out, "\nthe runtime's checks\n");
    for (unsigned k = 0; k < CPS_NEFF_CHECKS; k++)
        cps_buf_printf(out, "  %-10s%-9s%s\n", check[k].name, verdict_words[check[k].verdict],
                       check[k].text);
    cps_buf_printf(out, "\narchive: %u members, %llu bytes", f->members.n,
                   (unsigned long long)t.bytes);
    if (f->file_bytes)
        cps_buf_printf(out, ", %s of %llu bytes in %llu", f->gzip ? "gzip'ed tar" : "tar",
                       (unsigned long long)f->inflated, (unsigned long long)f->head.data_size);
    cps_buf_putc(out, '\n');
    for (uint32_t k = 0; k < f->members.n && k < ROWS; k++) {
        cps_buf_printf(out, "  %12zu  ", f->members.data[k].n);
        cps_neff_put_plain(out, f->members.data[k].name);
        cps_buf_putc(out, '\n');
    }
    more(out, f->members.n);
    cps_buf_puts(out, "\ntarget ");
    cps_neff_put_plain(out, i->target ? i->target : "not given");
    if (i->gen >= 0)
        cps_buf_printf(out, " (%s)", cps_gen_name((cps_gen)i->gen));
    cps_buf_putc(out, '\n');
    for (uint32_t k = 0; k < i->graphs.n; k++)
        text_graph(i, &i->graphs.data[k], g, out);
    cps_buf_printf(out,
                   "\ntotal: %u graphs, %llu instructions, %llu dma items, %llu descriptors, "
                   "%llu variables,\n"
                   "       %llu bytes of constants, %llu bytes of scratch memory\n",
                   i->graphs.n, (unsigned long long)t.instructions, (unsigned long long)t.items,
                   (unsigned long long)t.descs, (unsigned long long)t.vars,
                   (unsigned long long)t.constants, (unsigned long long)t.scratch);
    for (uint32_t k = 0; k < i->notes.n; k++) {
        cps_buf_puts(out, "note: ");
        cps_neff_put_plain(out, i->notes.data[k]);
        cps_buf_putc(out, '\n');
    }
}
