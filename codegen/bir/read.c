/* Reading a document: JSON, then every member against its row, then every name.
 *
 * Two passes, as the published loader has them: names are gathered while the tree is walked,
 * then references are resolved. The tree itself is the in-memory form; members that no row
 * knows stay in it. Messages carry the place in the text and the JSON pointer. */
#include "codegen/bir/read.h"

#include <string.h>

enum { DEPTH_MAX = 60, TEXT_MAX = 1 << 30, SAID_MAX = 50 };

typedef struct ref {
    const cps_json *at;
    uint8_t kind; /* cps_bref */
    uint32_t func;
} ref;

typedef struct unknown {
    const char *what;
    const cps_json *at;
    uint32_t count;
} unknown;

typedef struct reader {
    cps_bir *b;
    cps_diags *d;
    cps_arena *scratch;
    CPS_VEC(ref) refs;
    CPS_VEC(unknown) unknowns;
    cps_map seen; // text of an unknown thing -> index + 1
    bool ok;
} reader;

// ---- messages ----

// The JSON pointer of a node: the way down from the root.
static bool
pointer(const cps_json *from, const cps_json *to, cps_buf *out)
{
    size_t mark = out->n;
    uint32_t i = 0;
    if (from == to)
        return true;
    for (const cps_json *x = from->first; x; x = x->next, i++) {
        out->n = mark;
        if (x->key) {
            cps_buf_putc(out, '/');
            for (const char *c = x->key; *c; c++)
                *c == '~'   ? cps_buf_puts(out, "~0")
                : *c == '/' ? cps_buf_puts(out, "~1")
                            : cps_buf_putc(out, *c);
        } else {
            cps_buf_printf(out, "/%u", i);
        }
        if (pointer(x, to, out))
            return true;
    }
    out->n = mark;
    return false;
}

void
cps_bir_say(const cps_bir *b, cps_diags *d, cps_code code, const cps_json *at, const char *fmt,
            ...)
{
    cps_buf where = {0}, text = {0};
    // Finding the way walks the document: not for messages that are only counted.
    if (cps_diags_errors(d) <= SAID_MAX)
        pointer(b->top, at, &where);
    va_list ap;
    va_start(ap, fmt);
    cps_arena *a = cps_arena_create();
    cps_buf_puts(&text, cps_arena_vprintf(a, fmt, ap));
    va_end(ap);
    cps_span span = {b->source, b->source ? at->at : 0, b->source ? at->at + 1 : 0};
    cps_error(d, code, span, "%s (at '%s')", text.data, where.n ? where.data : "/");
    cps_arena_destroy(a);
    cps_buf_fini(&text);
    cps_buf_fini(&where);
}

#define FAIL(r, code, at, ...)                                                                 \
    (cps_bir_say((r)->b, (r)->d, CPS_##code, (at), __VA_ARGS__), (r)->ok = false, (void)0)

// Something the schema has no row for: counted, reported once at the end.
static void
strange(reader *r, const cps_json *at, const char *fmt, const char *name, const char *where)
{
    const char *what = cps_arena_printf(r->scratch, fmt, name, where);
    bool fresh;
    uint64_t *i = cps_map_at_str(&r->seen, what, &fresh);
    if (fresh) {
        *i = r->unknowns.n;
        unknown u = {what, at, 0};
        cps_vec_push(r->scratch, &r->unknowns, u);
    }
    r->unknowns.data[*i].count++;
    r->b->stats.unknown++;
}

// ---- members ----

static const char *const form_words[] = {
    [CPS_BF_ANY] = "anything",
    [CPS_BF_STR] = "a string",
    [CPS_BF_BOOL] = "true or false",
    [CPS_BF_INT] = "an integer",
    [CPS_BF_NUM] = "a number",
    [CPS_BF_WORD] = "a string, a number or a bool",
    [CPS_BF_VALUE] = "a number or an affine expression",
    [CPS_BF_INTS] = "a list of numbers or affine expressions",
    [CPS_BF_STRS] = "a list of strings",
    [CPS_BF_PAIRS] = "a list of lists of numbers",
    [CPS_BF_OBJ] = "an object",
    [CPS_BF_LIST] = "a list of objects",
    [CPS_BF_NAME] = "a name",
    [CPS_BF_REF] = "the name of something",
    [CPS_BF_REFS] = "a list of names",
    [CPS_BF_EDGES] = "a list of names or of [name, kind]",
    [CPS_BF_BLOB] = "an object",
};

static void object(reader *r, const cps_json *v, cps_bobj family, uint32_t func, int depth);

static bool
is_number(const cps_json *v)
{
    return v->kind == CPS_JSON_INT || v->kind == CPS_JSON_NUM;
}

static void
refer(reader *r, const cps_json *at, unsigned kind, uint32_t func)
{
    ref x = {at, (uint8_t)kind, func};
    cps_vec_push(r->scratch, &r->refs, x);
}

static bool
each(const cps_json *v, cps_json_kind kind)
{
    for (const cps_json *x = v->kind == CPS_JSON_ARR ? v->first : NULL; x; x = x->next)
        if (x->kind != kind)
            return false;
    return v->kind == CPS_JSON_ARR;
}

static bool
value(reader *r, const cps_json *v, uint32_t func, int depth)
{
    if (v->kind == CPS_JSON_OBJ) {
        object(r, v, CPS_BO_EXPR, func, depth);
        return true;
    }
    return is_number(v) || v->kind == CPS_JSON_BOOL;
}

static bool
values(reader *r, const cps_json *v, uint32_t func, int depth)
{
    if (v->kind != CPS_JSON_ARR)
        return false;
    for (const cps_json *x = v->first; x; x = x->next)
        if (!value(r, x, func, depth))
            return false;
    return true;
}

// "name" or [name, kind, ...]; a kind is a word or one of 3 bits.
static bool
edge(reader *r, const cps_json *v, uint32_t func)
{
    if (v->kind == CPS_JSON_ARR && v->n >= 2) {
        const cps_json *k = v->first->next;
        if (k->kind == CPS_JSON_STR && !cps_bword_known(CPS_BN_EDGE, k->str))
            strange(r, k, "kind of dependence '%s'%s", k->str, "");
        else if (k->kind != CPS_JSON_STR && (k->kind != CPS_JSON_INT || k->i < 0 || k->i > 7))
            return false;
        v = v->first;
    }
    if (v->kind != CPS_JSON_STR)
        return false;
    refer(r, v, CPS_BR_INST, func);
    return true;
}

static bool
fits(reader *r, const cps_json *v, cps_bform form, unsigned arg, uint32_t func, int depth)
{
    switch (form) {
    case CPS_BF_STR:
        return v->kind == CPS_JSON_STR;
    case CPS_BF_BOOL:
        return v->kind == CPS_JSON_BOOL ||
               (v->kind == CPS_JSON_INT && (v->i == 0 || v->i == 1));
    case CPS_BF_INT:
        // a number beyond int64 is an unsigned one
        return v->kind == CPS_JSON_INT ||
               (v->kind == CPS_JSON_NUM && v->num >= 0 && !v->str[strcspn(v->str, ".eE")]);
    case CPS_BF_NUM:
        return is_number(v);
    case CPS_BF_WORD:
        return is_number(v) || v->kind == CPS_JSON_BOOL || v->kind == CPS_JSON_STR;
    case CPS_BF_VALUE:
        return value(r, v, func, depth);
    case CPS_BF_INTS:
        return values(r, v, func, depth);
    case CPS_BF_STRS:
        return each(v, CPS_JSON_STR);
    case CPS_BF_PAIRS:
        for (const cps_json *x = v->kind == CPS_JSON_ARR ? v->first : NULL; x; x = x->next)
            if (!values(r, x, func, depth))
                return false;
        return v->kind == CPS_JSON_ARR;
    case CPS_BF_OBJ:
        if (v->kind == CPS_JSON_OBJ)
            object(r, v, (cps_bobj)arg, func, depth);
        return v->kind == CPS_JSON_OBJ;
    case CPS_BF_LIST:
        if (!each(v, CPS_JSON_OBJ))
            return false;
        for (const cps_json *x = v->first; x; x = x->next)
            object(r, x, (cps_bobj)arg, func, depth);
        return true;
    case CPS_BF_NAME:
        if (v->kind == CPS_JSON_STR && !cps_bword_known((cps_bwords)arg, v->str))
            strange(r, v, "word '%s' of '%s'", v->str, v->key ? v->key : "");
        return v->kind == CPS_JSON_STR;
    case CPS_BF_REF:
        if (v->kind == CPS_JSON_STR)
            refer(r, v, arg, func);
        return v->kind == CPS_JSON_STR;
    case CPS_BF_REFS:
        for (const cps_json *x = each(v, CPS_JSON_STR) ? v->first : NULL; x; x = x->next)
            refer(r, x, arg, func);
        return each(v, CPS_JSON_STR);
    case CPS_BF_EDGES:
        for (const cps_json *x = v->kind == CPS_JSON_ARR ? v->first : NULL; x; x = x->next)
            if (!edge(r, x, func))
                return false;
        return v->kind == CPS_JSON_ARR;
    case CPS_BF_BLOB:
        return v->kind == CPS_JSON_OBJ;
    case CPS_BF_ANY:
        break;
    }
    return true;
}

// ---- names ----

static const char *const ref_words[] = {
    [CPS_BR_FUNCTION] = "function",  [CPS_BR_BLOCK] = "block",
    [CPS_BR_INST] = "instruction",   [CPS_BR_MEMORY] = "memory location",
    [CPS_BR_REGISTER] = "register",  [CPS_BR_QUEUE] = "queue",
    [CPS_BR_DMABLOCK] = "DMA block",
};

// Functions, queues and their blocks belong to the module, everything else to its function.
static cps_map *
names_of(cps_bir *b, unsigned kind, uint32_t func)
{
    if (kind == CPS_BR_FUNCTION || kind == CPS_BR_QUEUE || kind == CPS_BR_DMABLOCK)
        return &b->names[kind];
    return func < b->funcs.n ? &b->funcs.data[func].names[kind] : NULL;
}

const cps_json *
cps_bir_find(const cps_bir *b, unsigned kind, uint32_t func, const char *name)
{
    const cps_map *m = names_of((cps_bir *)(uintptr_t)b, kind, func);
    const uint64_t *at = m ? cps_map_find_str(m, name) : NULL;
    // What queues name may stand in any function.
    for (uint32_t i = 0; !m && !at && i < b->funcs.n; i++)
        at = cps_map_find_str(&b->funcs.data[i].names[kind], name);
    return at ? (const cps_json *)(uintptr_t)*at : NULL;
}

// What kind of name an object gives, if any; counts it.
static unsigned
names_what(cps_bir *b, cps_bobj o)
{
    switch (o) {
    case CPS_BO_FUNCTION:
        b->stats.functions++;
        return CPS_BR_FUNCTION;
    case CPS_BO_BLOCK:
        b->stats.blocks++;
        return CPS_BR_BLOCK;
    case CPS_BO_INST:
        b->stats.instructions++;
        return CPS_BR_INST;
    case CPS_BO_MEMSET:
    case CPS_BO_MEMLOC:
        b->stats.allocations += o == CPS_BO_MEMSET;
        return CPS_BR_MEMORY;
    case CPS_BO_REGISTER:
        b->stats.allocations++;
        return CPS_BR_REGISTER;
    case CPS_BO_QUEUE:
        b->stats.queues++;
        return CPS_BR_QUEUE;
    case CPS_BO_DMABLOCK:
        b->stats.dma_blocks++;
        return CPS_BR_DMABLOCK;
    default:
        return CPS_BR_NONE;
    }
}

static void
define(reader *r, const cps_json *v, cps_bobj o, uint32_t func)
{
    unsigned kind = names_what(r->b, o);
    const cps_json *name = cps_json_get(v, "name");
    cps_map *m = kind ? names_of(r->b, kind, func) : NULL;
    if (!m || !name || name->kind != CPS_JSON_STR)
        return;
    bool fresh;
    uint64_t *at = cps_map_at_str(m, name->str, &fresh);
    // A set and its only placement may share a name: the set is found under it.
    const cps_json *old = (const cps_json *)(uintptr_t)*at;
    bool pair = kind == CPS_BR_MEMORY && !fresh &&
                (o == CPS_BO_MEMLOC) != (cps_bobj_of(CPS_BO_STORAGE, old) == CPS_BO_MEMLOC);
    if (fresh)
        *at = (uintptr_t)v;
    else if (!pair)
        FAIL(r, E9304, name, "%s '%s' is given twice", ref_words[kind], name->str);
}

static void
resolve(reader *r)
{
    for (uint32_t i = 0; i < r->refs.n; i++) {
        const ref *x = &r->refs.data[i];
        if (!cps_bir_find(r->b, x->kind, x->func, x->at->str))
            FAIL(r, E9305, x->at, "%s '%s' does not exist", ref_words[x->kind], x->at->str);
    }
}

// ---- objects ----

static cps_bop
opcode(reader *r, const cps_json *v, cps_bobj o)
{
    if (o != CPS_BO_INST && o != CPS_BO_DESCRIPTOR)
        return CPS_BOP_NONE;
    const cps_json *op = cps_json_get(v, "opcode");
    if (!op || op->kind != CPS_JSON_STR)
        return CPS_BOP_NONE;
    cps_bop id = cps_bop_find(op->str);
    if (!id)
        strange(r, op, "opcode '%s'%s", op->str, "");
    return id;
}

static void
object(reader *r, const cps_json *v, cps_bobj family, uint32_t func, int depth)
{
    if (depth > DEPTH_MAX) {
        FAIL(r, E9302, v, "nesting deeper than %d", DEPTH_MAX);
        return;
    }
    cps_bobj o = cps_bobj_of(family, v);
    define(r, v, o, func);
    if (o == CPS_BO_FUNCTION)
        func = cps_bir_add_function(r->b, v);
    cps_bop op = opcode(r, v, o);
    bool other_func = cps_json_get(v, "memref_owner_func") != NULL;
    for (const cps_json *m = v->first; m; m = m->next) {
        const cps_bkey_row *row = cps_bkey_find(o, op, m->key);
        if (!row) {
            // The members of an unknown instruction are unknown with it.
            if (op || (o != CPS_BO_INST && o != CPS_BO_DESCRIPTOR))
                strange(r, m, "member '%s' of %s", m->key,
                        op ? cps_bops[op].name : cps_bobjs[o].doc);
            continue;
        }
        if (row->form == CPS_BF_REF && other_func)
            continue; // a name of another function
        if (!fits(r, m, (cps_bform)row->form, row->arg, func, depth + 1))
            FAIL(r, E9302, m, "'%s' is %s", m->key, form_words[row->form]);
    }
    for (unsigned i = 0; i < cps_bkey_count; i++) {
        const cps_bkey_row *row = &cps_bkeys[i];
        if (row->owner != o || row->when != CPS_BW_NEED || cps_json_get(v, row->key))
            continue;
        // either spelling of the list of blocks will do
        if (o == CPS_BO_FUNCTION && !strcmp(row->key, "blocks") &&
            cps_json_get(v, "basic_blocks"))
            continue;
        FAIL(r, E9303, v, "%s has no '%s'", cps_bobjs[o].doc, row->key);
    }
}

// Depth of what no row describes is limited too: the printer walks everything.
static bool
shallow(const cps_json *v, int depth)
{
    if (depth > DEPTH_MAX)
        return false;
    for (const cps_json *x = v->first; x; x = x->next)
        if ((x->kind == CPS_JSON_OBJ || x->kind == CPS_JSON_ARR) && !shallow(x, depth + 1))
            return false;
    return true;
}

uint32_t
cps_bir_add_function(cps_bir *b, const cps_json *v)
{
    cps_bfunc *f = cps_vec_add(b->arena, &b->funcs);
    f->node = v;
    for (int k = 0; k < CPS_BR_COUNT; k++)
        cps_map_init(&f->names[k], b->arena);
    return b->funcs.n - 1;
}

static cps_bir *
no_document(cps_diags *d, uint32_t source, size_t at, const char *why)
{
    cps_span span = {source, source ? (uint32_t)at : 0, source ? (uint32_t)at + 1 : 0};
    cps_error(d, CPS_E9301, span, "no BIR document: %s (at byte %zu)", why, at);
    return NULL;
}

cps_bir *
cps_bir_read(cps_arena *a, const char *text, size_t n, uint32_t source, cps_diags *d)
{
    const char *why = "";
    size_t at = 0;
    if (n > TEXT_MAX)
        return no_document(d, source, 0, "more than 1 GiB of text");
    const cps_json *root = cps_json_parse(a, text, n, &why, &at), *top = root;
    if (!root)
        return no_document(d, source, at, why);
    // The published tool wraps a document under "module" when it is read back.
    const cps_json *inner = cps_json_get(root, "module");
    if (inner && inner->kind == CPS_JSON_OBJ && root->n == 1)
        root = inner;
    if (root->kind != CPS_JSON_OBJ || !cps_json_get(root, "functions"))
        return no_document(d, source, root->at, "a module is an object with 'functions'");
    if (!shallow(root, 0))
        return no_document(d, source, root->at, "more than 60 levels of nesting");
    cps_bir *b = cps_new(a, cps_bir);
    b->arena = a;
    b->root = root;
    b->top = top;
    b->source = source;
    for (int k = 0; k < CPS_BR_COUNT; k++)
        cps_map_init(&b->names[k], a);
    reader r = {.b = b, .d = d, .scratch = cps_arena_create(), .ok = true};
    cps_map_init(&r.seen, r.scratch);
    object(&r, root, CPS_BO_MODULE, UINT32_MAX, 0);
    const cps_json *version = cps_json_get(root, "version");
    if (version && version->kind == CPS_JSON_INT && version->i != 1 && version->i != 2)
        FAIL(&r, E9302, version, "version %lld: 1 and 2 are known", (long long)version->i);
    resolve(&r);
    for (uint32_t i = 0; r.ok && i < r.unknowns.n; i++) {
        const unknown *u = &r.unknowns.data[i];
        cps_bir_say(b, d, CPS_N9306, u->at, "unknown %s, kept (%u in all)", u->what, u->count);
    }
    cps_arena_destroy(r.scratch);
    return r.ok ? b : NULL;
}

void
cps_bir_stats_of(const cps_bir *b, cps_bir_stats *out)
{
    *out = b->stats;
}

const cps_json *
cps_bir_root(const cps_bir *b)
{
    return b->root;
}
