/* Reading the description members. Two generations of names exist, and files are found by what
 * def.json and the engine JSON say first, by their usual names second. */
#include "runtime/pkg/neff_graph.h"

#include "runtime/pkg/neff_priv.h"

#include <stdlib.h>

typedef struct target_row {
    const char *word;
    int gen;
} target_row;

static const target_row targets[] = {
#define CPS_NEFF_TARGET(word, gen) {word, gen},
#include "runtime/pkg/neff.def"
};

static const struct {
    cps_engine engine;
    const char *words;
} engines[] = {
#define CPS_NEFF_ENGINE(e, words) {CPS_##e, words},
#include "runtime/pkg/neff.def"
};

int
cps_neff_target_gen(const char *word)
{
    for (unsigned i = 0; word && i < cps_countof(targets); i++)
        if (!strcmp(word, targets[i].word))
            return targets[i].gen;
    return CPS_NEFF_NO_GEN;
}

const char *
cps_neff_target_word(cps_gen g)
{
    for (unsigned i = 0; i < cps_countof(targets); i++)
        if (targets[i].gen == (int)g)
            return targets[i].word;
    return "*";
}

static void note(cps_neff_info *i, const char *fmt, ...) CPS_PRINTF(2, 3);
static void
note(cps_neff_info *i, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    if (i->notes.n < 100)
        cps_vec_push(i->arena, &i->notes, cps_arena_vprintf(i->arena, fmt, ap));
    va_end(ap);
}

static const cps_json *
parse(cps_neff_info *i, const cps_neff_member *m, cps_diags *d)
{
    const char *why = "";
    size_t at = 0;
    if (!m)
        return NULL;
    const cps_json *doc = cps_json_parse(i->arena, (const char *)m->data, m->n, &why, &at);
    if (doc && doc->kind == CPS_JSON_OBJ)
        return doc;
    if (doc)
        cps_error(d, CPS_E8404, CPS_NOSPAN, "member '%s': no object", m->name);
    else
        cps_error(d, CPS_E8404, CPS_NOSPAN, "member '%s': %s at byte %zu", m->name, why, at);
    return NULL;
}

static const char *
text_of(const cps_json *o, const char *key)
{
    const cps_json *v = cps_json_get(o, key);
    return v && v->kind == CPS_JSON_STR ? v->str : NULL;
}

/* -1 when absent, negative or no integer. */
static int64_t
size_of(const cps_json *o, const char *key)
{
    const cps_json *v = cps_json_get(o, key);
    return v && v->kind == CPS_JSON_INT && v->i >= 0 ? v->i : -1;
}

static const cps_neff_member *
member_in(const cps_neff_info *i, const char *dir, const char *name)
{
    return name ? cps_neff_find(i->neff, cps_arena_printf(i->arena, "%s%s", dir, name)) : NULL;
}

static int
by_id(const void *a, const void *b)
{
    const cps_neff_var *x = a, *y = b;
    return x->id != y->id ? (x->id < y->id ? -1 : 1) : strcmp(x->name, y->name);
}

static void
read_vars(cps_neff_info *i, cps_neff_graph *g)
{
    const cps_json *all = cps_json_get(g->doc, "var");
    if (!all || all->kind != CPS_JSON_OBJ) {
        note(i, "%sdef.json lists no variables", g->dir);
        return;
    }
    bool out = false, dense = true;
    for (const cps_json *o = all->first; o; o = o->next) {
        cps_neff_var *v = cps_vec_add(i->arena, &g->vars);
        const char *kind = text_of(o, "type");
        *v = (cps_neff_var){o->key,
                            kind ? kind : "?",
                            text_of(o, "file_name"),
                            size_of(o, "var_id"),
                            size_of(o, "size"),
                            size_of(o, "backing_variable_off")};
        out |= !strcmp(v->kind, "output");
        if (!kind || v->id < 0 || v->size < 0)
            note(i, "variable '%s' of %s lacks one of type, var_id and size", v->name, g->name);
        if (v->file && !member_in(i, g->dir, v->file))
            note(i, "variable '%s' of %s wants the file '%s', which is not there", v->name,
                 g->name, v->file);
    }
    if (g->vars.n)
        qsort(g->vars.data, g->vars.n, sizeof *g->vars.data, by_id);
    for (uint32_t k = 0; k < g->vars.n; k++)
        dense &= g->vars.data[k].id == (int64_t)k;
    if (!dense)
        note(i, "the ids of the variables of %s are not 0 to %u; the loader wants them so",
             g->name, g->vars.n - 1);
    if (!out)
        note(i, "%s has no output; the loader wants one", g->name);
}

static void
read_queues(cps_neff_info *i, cps_neff_graph *g)
{
    const cps_json *all = cps_json_get(g->doc, "dma_queue");
    for (const cps_json *o = all && all->kind == CPS_JSON_OBJ ? all->first : NULL; o;
         o = o->next) {
        cps_neff_queue *q = cps_vec_add(i->arena, &g->queues);
        const char *kind = text_of(o, "type"), *owner = text_of(o, "owner");
        int64_t n = size_of(o, "num_queues"), one = size_of(o, "semaphore");
        q->name = o->key;
        q->kind = kind ? kind : "?";
        q->owner = owner ? owner : "";
        q->queues = n < 0 ? 1 : n;
        if (!kind)
            note(i, "queue '%s' of %s has no type", q->name, g->name);
        if (q->queues < 1 || q->queues > 16)
            note(i, "queue '%s' of %s has %lld hardware queues, and there are 1 to 16", q->name,
                 g->name, (long long)q->queues);
        if (one >= 0)
            cps_vec_push(i->arena, &q->semaphores, one);
        const cps_json *set = cps_json_get(o, "semaphore_set"),
                       *inst = cps_json_get(o, "queue_instances");
        for (const cps_json *s = set && set->kind == CPS_JSON_ARR ? set->first : NULL; s;
             s = s->next)
            if (s->kind == CPS_JSON_INT)
                cps_vec_push(i->arena, &q->semaphores, s->i);
        q->instances = inst && inst->kind == CPS_JSON_ARR ? inst->n : 0;
    }
}

/* The file that `key` of def.json names, when it is of the kind asked for. */
static const cps_neff_member *
named(const cps_neff_info *i, const cps_neff_graph *g, const char *key, bool json)
{
    const char *v = text_of(g->doc, key);
    return v && cps_has_suffix(v, ".json") == json ? member_in(i, g->dir, v) : NULL;
}

static void
find_files(const cps_neff_info *i, const cps_neff_graph *g, const char *words,
           cps_neff_engine *e)
{
    static const char *const suffix[] = {"", "_instr"};
    for (int pass = 0; pass < 2; pass++) { // what def.json says, then the usual names
        for (const char *w = words; *w; w += strcspn(w, " "), w += *w == ' ') {
            for (unsigned k = 0; k < cps_countof(suffix); k++) {
                int n = (int)strcspn(w, " ");
                const char *key = cps_arena_printf(i->arena, "%.*s%s", n, w, suffix[k]);
                if (!e->bin)
                    e->bin =
                        pass ? member_in(i, g->dir, cps_arena_printf(i->arena, "%s.bin", key))
                             : named(i, g, key, false);
                if (!e->bin && pass && k)
                    e->bin = member_in(i, g->dir, key);
                if (!e->desc)
                    e->desc =
                        pass ? member_in(i, g->dir, cps_arena_printf(i->arena, "%s.json", key))
                             : named(i, g, key, true);
            }
        }
    }
}

static void
read_engine(cps_neff_info *i, cps_neff_graph *g, unsigned row, cps_diags *d)
{
    cps_neff_engine *e = &g->engine[engines[row].engine];
    const char *name = cps_engine_name(engines[row].engine);
    find_files(i, g, engines[row].words, e);
    e->doc = parse(i, e->desc, d);
    const cps_neff_member *instr = member_in(i, g->dir, text_of(e->doc, "instr"));
    if (instr)
        e->bin = instr;
    if (!e->bin)
        note(i, "%s has no stream for %s; the loader takes an empty one", g->name, name);
    if (e->bin && e->bin->n % CPS_BUNDLE_BYTES)
        note(i, "'%s' has %zu bytes, no multiple of the 64 of an instruction", e->bin->name,
             e->bin->n);
    for (size_t at = 0; e->bin && e->bin->n - at >= CPS_BUNDLE_BYTES; at += CPS_BUNDLE_BYTES) {
        const uint8_t *b = e->bin->data + at;
        e->instructions++;
        e->count[b[0]]++;
        e->odd += (b[1] & 0xFE) != 0x10; // the low bit is a flag of one instruction
    }
    if (e->odd)
        note(i, "'%s': the second byte of %u records is not 0x10: those are no instructions",
             e->bin->name, e->odd);
    const cps_json *dma = cps_json_get(e->doc, "dma");
    for (const cps_json *o = dma && dma->kind == CPS_JSON_ARR ? dma->first : NULL; o;
         o = o->next) {
        const cps_json *desc = cps_json_get(o, "desc");
        e->items++;
        e->descs += desc && desc->kind == CPS_JSON_ARR ? desc->n : desc ? 1 : 0;
    }
}

static void
add_graph(cps_neff_info *i, const char *name, const cps_neff_member *def, cps_diags *d)
{
    cps_neff_graph *g = cps_vec_add(i->arena, &i->graphs);
    const char *slash = strrchr(def->name, '/');
    g->def = def;
    g->dir =
        slash ? cps_arena_strndup(i->arena, def->name, (size_t)(slash + 1 - def->name)) : "";
    g->name = name      ? name
              : *g->dir ? cps_arena_strndup(i->arena, g->dir, strlen(g->dir) - 1)
                        : "graph";
    g->doc = parse(i, def, d);
    g->version = text_of(g->doc, "version");
    if (g->doc) {
        read_vars(i, g);
        read_queues(i, g);
    }
    g->tensor_map = parse(i, member_in(i, g->dir, "tensor_map.json"), d);
    for (unsigned k = 0; k < cps_countof(engines); k++)
        read_engine(i, g, k, d);
}

/* The member that a definition names: exactly, or below the folders of a build tree. */
static const cps_neff_member *
definition(const cps_neff *f, const char *path)
{
    const cps_neff_member *m = cps_neff_find(f, path);
    for (uint32_t k = 0; k < f->members.n && !m; k++) {
        const char *name = f->members.data[k].name;
        size_t n = strlen(name), p = strlen(path);
        if (p && n > p && name[n - p - 1] == '/' && !strcmp(name + n - p, path))
            m = &f->members.data[k];
    }
    return m;
}

static void
read_kelf(cps_neff_info *i, const cps_neff_member *m, cps_diags *d)
{
    const cps_json *doc = parse(i, m, d);
    if (!doc)
        return;
    const char *target = text_of(doc, "target");
    if (!target)
        target = text_of(doc, "target_arch");
    if (!i->kelf) {
        i->kelf = m->name;
        i->kelf_version = text_of(doc, "version");
        i->target = target;
        i->gen = cps_neff_target_gen(target);
    } else if (!cps_streq(i->target, target)) {
        note(i, "'%s' names another target than '%s'", m->name, i->kelf);
    }
    const cps_json *all = cps_json_get(doc, "graphs");
    for (const cps_json *o = all && all->kind == CPS_JSON_ARR ? all->first : NULL; o;
         o = o->next) {
        const char *path = text_of(o, "definition");
        const cps_neff_member *def = path ? definition(i->neff, path) : NULL;
        if (def && i->graphs.n < 256)
            add_graph(i, text_of(o, "name"), def, d);
        else
            note(i, "'%s' lists a graph whose definition '%s' is not there", m->name,
                 path ? path : "?");
    }
}

cps_neff_info *
cps_neff_describe(cps_arena *a, const cps_neff *f, cps_diags *d)
{
    cps_neff_info *i = cps_new(a, cps_neff_info);
    i->arena = a;
    i->neff = f;
    i->gen = CPS_NEFF_NO_GEN;
    for (uint32_t k = 0; k < f->members.n; k++) {
        const char *name = f->members.data[k].name;
        if (!strncmp(name, "kelf-", 5) && !strchr(name, '/') && cps_has_suffix(name, ".json"))
            read_kelf(i, &f->members.data[k], d);
    }
    if (!i->kelf)
        note(i, "there is no kelf-*.json at the top: no list of graphs, no target");
    else if (i->gen == CPS_NEFF_NO_GEN)
        note(i, "the target '%s' is not one that the loader knows", i->target ? i->target : "");
    for (uint32_t k = 0; k < f->members.n && !i->graphs.n; k++) {
        const char *name = f->members.data[k].name;
        const char *base = strrchr(name, '/');
        if (!strcmp(base ? base + 1 : name, "def.json"))
            add_graph(i, NULL, &f->members.data[k], d);
    }
    if (!i->graphs.n)
        note(i, "there is no graph: no def.json was found");
    if (f->trailing)
        note(i, "%llu bytes of the file belong neither to the header nor to the archive",
             (unsigned long long)f->trailing);
    return i;
}

void
cps_neff_checks(const cps_neff_info *i, cps_neff_check out[CPS_NEFF_CHECKS])
{
    const cps_neff *f = i->neff;
    const cps_neff_head *h = &f->head;
    cps_neff_verdict none = f->has_head ? CPS_NEFF_PASSES : CPS_NEFF_UNKNOWN;
    // Features the runtime does not know count for version 2 only: bits 27 to 62.
    const uint64_t unknown = 0x7FFFFFFFF8000000;
    bool newer = h->neff_version_major == 2 && h->feature_bits & unknown;
    const cps_neff_check c[CPS_NEFF_CHECKS] = {
        {"version", h->neff_version_major > 2 ? CPS_NEFF_FAILS : none, "major version 0 to 2"},
        {"features", newer ? CPS_NEFF_FAILS : none, "no feature bit above 26"},
        {"package", none, "package version 1 or 2"},
        {"hash",
         f->file_bytes ? (f->hash_ok ? CPS_NEFF_PASSES : CPS_NEFF_FAILS) : CPS_NEFF_UNKNOWN,
         "hash of the archive (checked on request only)"},
        {"target",
         !i->kelf                    ? CPS_NEFF_UNKNOWN
         : i->gen == CPS_NEFF_NO_GEN ? CPS_NEFF_FAILS
                                     : CPS_NEFF_PASSES,
         "a known target"},
    };
    memcpy(out, c, sizeof c);
}
