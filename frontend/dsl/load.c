/* Module sets: reads files through the caller's callback, follows `use`, builds the tables of
 * names. What needs bodies is in check.c.
 *
 * In: paths and texts. Out: modules with their names, the set's operators and leaves. Holds: every
 * path is read once, cycles of `use` are fine, order of loading does not matter to what is found.
 * It does not look at folders: the callback does. */
#include "frontend/dsl/check.h"

static const char *const words[] = {
    "free", "all",  "prev", "core", "cores", "ranks",  "P",
    "inf",  "lowest", "true", "false", "skip", "target",
};

static const struct {
    const char *name, *who;
} functions[] = {
#define CPS_DSL_FUNCTION(name, who, lo, hi) {name, who},
#include "frontend/dsl/function.def"
};

bool
cps_dsl_predefined(const char *name)
{
    for (size_t i = 0; i < cps_countof(words); i++)
        if (cps_streq(words[i], name) && !cps_streq(name, "ranks"))
            return true;
    for (size_t i = 0; i < cps_countof(functions); i++)
        if (functions[i].who[0] == 'C' && cps_streq(functions[i].name, name))
            return true;
    for (int t = CPS_DT_NONE + 1; t < CPS_DT_COUNT; t++)
        if (cps_streq(cps_dtypes[t].name, name))
            return true;
    return false;
}

bool
cps_dsl_is_word(const char *name)
{
    for (size_t i = 0; i < cps_countof(words); i++)
        if (cps_streq(words[i], name))
            return true;
    return false;
}

bool
cps_dsl_is_function(const char *name, char who)
{
    for (size_t i = 0; i < cps_countof(functions); i++)
        if (strchr(functions[i].who, who) && cps_streq(functions[i].name, name))
            return true;
    return false;
}

cps_dsl_set *
cps_dsl_set_create(cps_diags *d, cps_dsl_reader read, void *user)
{
    cps_arena *a = cps_arena_create();
    cps_dsl_set *s = cps_new(a, cps_dsl_set);
    s->arena = a;
    s->syms = cps_symtab_create();
    s->diags = d;
    s->read = read;
    s->user = user;
    cps_map_init(&s->by_path, a);
    cps_map_init(&s->op_by_sym, a);
    cps_map_init(&s->leaf_by_sym, a);
    return s;
}

void
cps_dsl_set_destroy(cps_dsl_set *s)
{
    if (!s)
        return;
    cps_symtab_destroy(s->syms);
    cps_arena_destroy(s->arena);
}

/* ---- names ---- */

cps_ast_name
cps_dsl_item_name(const cps_ast_item *i)
{
    switch (i->kind) {
    case CPS_IT_CONST:
        return CPS_AST_AS(const, i)->name;
    case CPS_IT_ENUM:
        return CPS_AST_AS(enum, i)->name;
    case CPS_IT_FN:
        return CPS_AST_AS(fn, i)->name;
    case CPS_IT_OP:
        return CPS_AST_AS(op, i)->name;
    case CPS_IT_LEAF:
        return CPS_AST_AS(leaf, i)->name;
    default:
        return (cps_ast_name){0, NULL, CPS_NOSPAN};
    }
}

static void
twice(cps_dsl_set *s, cps_ast_name name, cps_span before)
{
    cps_error(s->diags, CPS_E2203, name.span, "`%s` is declared twice", name.text);
    cps_note(s->diags, before, "the other one");
}

// A const, enum or fn under its name; the span of the one that was there first, or no span.
static bool
add_name(cps_dsl_set *s, cps_dsl_module *m, const cps_ast_item *item, const cps_dsl_module *owner,
         cps_span *before)
{
    cps_ast_name name = cps_dsl_item_name(item);
    bool fresh;
    uint64_t *at = cps_map_at(&m->names, name.sym, &fresh);
    if (!fresh) {
        const cps_dsl_def *old = &m->defs.data[*at - 1];
        *before = cps_dsl_item_name(old->item).span;
        return old->item == item;
    }
    cps_vec_push(s->arena, &m->defs, ((cps_dsl_def){item, owner}));
    *at = m->defs.n;
    return true;
}

static void
add_op(cps_dsl_set *s, cps_dsl_module *m, const cps_ast_op *op)
{
    bool fresh;
    uint64_t *at = cps_map_at(&s->op_by_sym, op->name.sym, &fresh);
    if (!fresh) {
        twice(s, op->name, s->ops.data[*at - 1]->ast->name.span);
        return;
    }
    cps_dsl_op *o = cps_new(s->arena, cps_dsl_op);
    o->ast = op;
    o->module = m;
    cps_vec_push(s->arena, &s->ops, o);
    *at = s->ops.n;
    for (uint32_t i = 0; i < s->leaves.n; i++)
        if (s->leaves.data[i]->ast->op.sym == op->name.sym)
            cps_vec_push(s->arena, &o->leaves, s->leaves.data[i]);
}

static void
add_leaf(cps_dsl_set *s, cps_dsl_module *m, const cps_ast_leaf *leaf)
{
    bool fresh;
    uint64_t *at = cps_map_at(&s->leaf_by_sym, leaf->name.sym, &fresh);
    if (!fresh) {
        twice(s, leaf->name, s->leaves.data[*at - 1]->ast->name.span);
        return;
    }
    cps_dsl_leaf *l = cps_new(s->arena, cps_dsl_leaf);
    l->ast = leaf;
    l->module = m;
    cps_vec_push(s->arena, &s->leaves, l);
    *at = s->leaves.n;
    uint64_t *op = cps_map_find(&s->op_by_sym, leaf->op.sym);
    if (op)
        cps_vec_push(s->arena, &s->ops.data[*op - 1]->leaves, l);
}

static void
add_items(cps_dsl_set *s, cps_dsl_module *m, bool trusted)
{
    for (uint32_t i = 0; i < m->ast->n; i++) {
        const cps_ast_item *item = m->ast->item[i];
        cps_ast_name name = cps_dsl_item_name(item);
        cps_span before;
        if (item->kind == CPS_IT_USE)
            continue;
        if (!trusted && cps_dsl_predefined(name.text)) {
            cps_error(s->diags, CPS_E2213, name.span,
                      "`%s` is predefined and cannot be declared again", name.text);
            continue;
        }
        if (item->kind == CPS_IT_OP)
            add_op(s, m, CPS_AST_AS(op, item));
        else if (item->kind == CPS_IT_LEAF)
            add_leaf(s, m, CPS_AST_AS(leaf, item));
        else if (!add_name(s, m, item, m, &before))
            twice(s, name, before);
    }
}

// What the used file itself declares, but for names that begin with `_`.
static void
add_used(cps_dsl_set *s, cps_dsl_module *m, const cps_dsl_module *used, cps_span at)
{
    for (uint32_t i = 0; i < used->defs.n; i++) {
        const cps_dsl_def *d = &used->defs.data[i];
        cps_ast_name name = cps_dsl_item_name(d->item);
        cps_span before;
        if (d->owner != used || name.text[0] == '_' || add_name(s, m, d->item, used, &before))
            continue;
        cps_error(s->diags, CPS_E2203, at, "`%s` of \"%s\" is declared here already", name.text,
                  used->path);
        cps_note(s->diags, before, "the other one");
    }
}

/* ---- loading ---- */

static cps_dsl_module *
known(cps_dsl_set *s, const char *path)
{
    uint64_t *at = cps_map_find_str(&s->by_path, path);
    return at ? s->modules.data[*at - 1] : NULL;
}

// Parses one text and enters it; what it uses is read by the caller.
static cps_dsl_module *
enter(cps_dsl_set *s, const char *path, const char *text, size_t n, bool trusted)
{
    uint32_t source = cps_diags_source(s->diags, path, text, n);
    cps_dsl_module *m = cps_new(s->arena, cps_dsl_module);
    m->path = cps_arena_strdup(s->arena, path);
    cps_map_init(&m->names, s->arena);
    m->ast = cps_dsl_parse(s->arena, s->syms, s->diags, source, trusted, &m->parsed);
    m->ok = m->parsed;
    cps_vec_push(s->arena, &s->modules, m);
    *cps_map_at_str(&s->by_path, path, NULL) = s->modules.n;
    unsigned errors = cps_diags_errors(s->diags);
    add_items(s, m, trusted);
    m->ok = m->ok && cps_diags_errors(s->diags) == errors;
    return m;
}

static cps_dsl_module *
read_file(cps_dsl_set *s, const char *path, cps_span at)
{
    cps_dsl_module *m = known(s, path);
    const char *text;
    size_t n;
    if (m)
        return m;
    if (!s->read || !s->read(s->user, path, &text, &n)) {
        cps_error(s->diags, CPS_E2204, at, "there is no file \"%s\"", path);
        return NULL;
    }
    return enter(s, path, text, n, s->trusted && s->trusted(s->user, path));
}

// Follows `use` breadth first from `first`: a list instead of recursion, so that a long chain of
// files costs no stack. Then every new module gets the names of what it uses.
static void
follow(cps_dsl_set *s, uint32_t first)
{
    for (uint32_t k = first; k < s->modules.n; k++) {
        cps_dsl_module *m = s->modules.data[k];
        for (uint32_t i = 0; i < m->ast->n; i++) {
            if (m->ast->item[i]->kind != CPS_IT_USE)
                continue;
            const cps_ast_use *u = CPS_AST_AS(use, m->ast->item[i]);
            cps_dsl_module *used = read_file(s, u->path, u->path_span);
            if (!used)
                m->ok = false;
            else if (used != m)
                cps_vec_push(s->arena, &m->uses, used);
        }
    }
    for (uint32_t k = first; k < s->modules.n; k++) {
        cps_dsl_module *m = s->modules.data[k];
        unsigned errors = cps_diags_errors(s->diags);
        for (uint32_t i = 0, u = 0; i < m->ast->n && u < m->uses.n; i++) {
            if (m->ast->item[i]->kind != CPS_IT_USE)
                continue;
            const cps_ast_use *use = CPS_AST_AS(use, m->ast->item[i]);
            if (!cps_streq(use->path, m->uses.data[u]->path))
                continue;
            add_used(s, m, m->uses.data[u++], use->path_span);
        }
        m->ok = m->ok && cps_diags_errors(s->diags) == errors;
    }
}

cps_dsl_module *
cps_dsl_load(cps_dsl_set *s, const char *path)
{
    uint32_t first = s->modules.n;
    cps_dsl_module *m = read_file(s, path, CPS_NOSPAN);
    if (m)
        follow(s, first);
    return m;
}

cps_dsl_module *
cps_dsl_load_text(cps_dsl_set *s, const char *path, const char *text, size_t n)
{
    uint32_t first = s->modules.n;
    cps_dsl_module *m = known(s, path);
    if (!m) {
        m = enter(s, path, text, n, false);
        follow(s, first);
    }
    return m;
}

const cps_dsl_op *
cps_dsl_find_op(const cps_dsl_set *s, const char *name)
{
    cps_sym sym = cps_sym_find(s->syms, name);
    uint64_t *at = sym ? cps_map_find(&s->op_by_sym, sym) : NULL;
    return at ? s->ops.data[*at - 1] : NULL;
}

const cps_dsl_op *
cps_dsl_need_op(cps_dsl_set *s, const char *name)
{
    const cps_dsl_op *op = cps_dsl_find_op(s, name);
    if (op || !s->find)
        return op;
    s->find(s->user, s, name);
    return cps_dsl_find_op(s, name);
}

const cps_dsl_leaf *
cps_dsl_find_leaf(const cps_dsl_set *s, const char *name)
{
    cps_sym sym = cps_sym_find(s->syms, name);
    uint64_t *at = sym ? cps_map_find(&s->leaf_by_sym, sym) : NULL;
    return at ? s->leaves.data[*at - 1] : NULL;
}

const cps_dsl_def *
cps_dsl_lookup(const cps_dsl_module *m, cps_sym sym)
{
    uint64_t *at = cps_map_find(&m->names, sym);
    return at ? &m->defs.data[*at - 1] : NULL;
}
