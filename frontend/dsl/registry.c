/* The registry's function table over the kernel language: the index decides which files matter,
 * the module set parses them, instance.c and the tracer do the work. */
#include "frontend/dsl/registry.h"

#include "frontend/dsl/body.h"
#include "frontend/dsl/instance.h"
#include "frontend/dsl/trace.h"
#include "kernels/index.h"
#include "kernels/tuned.h"

#include <ctype.h>
#include <string.h>

typedef struct file { /* a source, embedded or added */
    const char *path, *text;
    size_t n;
    bool loaded;
    const cps_dsl_module *module; /* NULL when it could not be loaded */
} file;

typedef struct reg {
    cps_registry api; /* first: the address is both */
    cps_arena *arena;
    cps_diags *d;
    cps_dsl_set *set;
    CPS_VEC(file) files;
    CPS_VEC(cps_kernel_def) ops;    /* 'O' and 'B' */
    CPS_VEC(cps_kernel_def) leaves; /* in order of files, then of text */
    cps_map op_at;                  /* name -> index + 1 into ops */
    cps_map digest_at;              /* name of a leaf -> index into digests */
    CPS_VEC(cps_digest) digests;    /* of leaves that were chosen: a file is long to hash */
} reg;

static bool
read_file(void *user, const char *path, const char **text, size_t *n)
{
    reg *r = user;
    for (uint32_t i = 0; i < r->files.n; i++)
        if (cps_streq(r->files.data[i].path, path)) {
            *text = r->files.data[i].text;
            *n = r->files.data[i].n;
            return true;
        }
    return false;
}

// Embedded files come before those of the command line, so that a path of theirs is read as theirs.
static bool
is_embedded(void *user, const char *path)
{
    (void)user;
    for (unsigned i = 0; i < cps_kernel_source_count; i++)
        if (cps_streq(cps_kernel_sources[i].path, path))
            return true;
    return false;
}

// Parses and checks a file once; whether it is free of errors. Other files' mistakes are
// theirs. Embedded files have passed the checks, all of them together, in the test of the tree.
static bool
load(reg *r, unsigned source)
{
    file *f = &r->files.data[source];
    if (!f->loaded) {
        f->loaded = true;
        f->module = cps_dsl_load(r->set, f->path);
        if (source >= cps_kernel_source_count)
            cps_dsl_set_check(r->set);
    }
    return f->module && f->module->ok;
}

static const cps_kernel_def *
find_def(reg *r, const char *op)
{
    uint64_t *at = cps_map_find_str(&r->op_at, op);
    return at ? &r->ops.data[*at - 1] : NULL;
}

// The module set met an operator that no loaded file declares.
static void
find_op(void *user, cps_dsl_set *s, const char *op)
{
    reg *r = user;
    const cps_kernel_def *d = find_def(r, op);
    file *f = d ? &r->files.data[d->source] : NULL;
    if (f && !f->loaded) {
        f->loaded = true;
        f->module = cps_dsl_load(s, f->path);
    }
}

static const cps_dsl_op *
need_op(reg *r, const char *name, cps_diags *d)
{
    const cps_kernel_def *k = find_def(r, name);
    if (!k) {
        const char *near = NULL;
        int best = 3;
        for (uint32_t i = 0; i < r->ops.n; i++) {
            int e = cps_edit_distance(name, r->ops.data[i].name);
            if (e < best) {
                best = e;
                near = r->ops.data[i].name;
            }
        }
        cps_error(d, CPS_E1106, CPS_NOSPAN, "there is no operator '%s'", name);
        if (near)
            cps_help(d, "did you mean '%s'?", near);
        return NULL;
    }
    return load(r, k->source) ? cps_dsl_need_op(r->set, name) : NULL;
}

/* ---- index ---- */

static unsigned
ops(void *self)
{
    return ((reg *)self)->ops.n;
}

static const char *
signature(reg *r, const cps_ast_operand *o)
{
    cps_buf b = {0};
    cps_buf_printf(&b, "%s%s%s[", o->inout ? "inout " : "", o->name.text,
                   o->optional ? "?" : "");
    for (uint32_t i = 0; i < o->n; i++)
        cps_buf_printf(&b, "%s%s", i ? "," : "", cps_ast_expr_text(r->arena, o->extent[i]));
    cps_buf_putc(&b, ']');
    if (o->dtype)
        cps_buf_printf(&b, ": %s", cps_ast_expr_text(r->arena, o->dtype));
    const char *s = cps_arena_strdup(r->arena, b.data);
    cps_buf_fini(&b);
    return s;
}

static void
add_dims(cps_opinfo *out, const cps_ast_operand *o)
{
    for (uint32_t i = 0; i < o->n; i++) {
        if (o->extent[i]->kind != CPS_EX_NAME)
            continue;
        const char *name = CPS_AST_AS(ref, o->extent[i])->name.text;
        int k = 0;
        while (k < out->ndims && !cps_streq(out->dim[k], name))
            k++;
        if (k == out->ndims && k < (int)cps_countof(out->dim))
            out->dim[out->ndims++] = name;
    }
}

static bool
describe(reg *r, const cps_kernel_def *k, cps_opinfo *out)
{
    if (!load(r, k->source))
        return false;
    const cps_dsl_op *o = cps_dsl_find_op(r->set, k->name);
    if (!o)
        return false;
    *out = (cps_opinfo){.name = k->name,
                        .file = r->files.data[k->source].path,
                        .tree = o->ast->block ? "blocks" : "reference"};
    for (uint32_t i = 0; i < o->ast->noperand && i < CPS_MAX_OPERANDS; i++) {
        out->operand[out->noperands++] = signature(r, &o->ast->operand[i]);
        add_dims(out, &o->ast->operand[i]);
    }
    for (uint32_t i = 0; i < o->ast->nresult && i < CPS_MAX_OPERANDS; i++)
        out->result[out->nresults++] = signature(r, &o->ast->result[i]);
    for (uint32_t i = 0; i < o->ast->nattr && i < CPS_MAX_OPERANDS; i++) {
        const cps_ast_attr *a = &o->ast->attr[i];
        const char *s = cps_arena_printf(r->arena, "%s: %s", a->name.text,
                                         cps_ast_expr_text(r->arena, a->type));
        if (a->dflt)
            s = cps_arena_printf(r->arena, "%s = %s", s, cps_ast_expr_text(r->arena, a->dflt));
        out->attr[out->nattrs++] = s;
    }
    return true;
}

static bool
op(void *self, unsigned i, cps_opinfo *out)
{
    reg *r = self;
    return i < r->ops.n && describe(r, &r->ops.data[i], out);
}

static bool
find(void *self, const char *name, cps_opinfo *out)
{
    const cps_kernel_def *k = find_def(self, name);
    return k && describe(self, k, out);
}

static unsigned
leaves(void *self)
{
    return ((reg *)self)->leaves.n;
}

static bool
leaf(void *self, unsigned i, cps_leafinfo *out)
{
    reg *r = self;
    if (i >= r->leaves.n)
        return false;
    const cps_kernel_def *k = &r->leaves.data[i];
    *out = (cps_leafinfo){k->name, k->op, r->files.data[k->source].path, k->targets};
    return true;
}

/* ---- calls ---- */

static bool
make(void *self, cps_arena *a, const char *op, int ndims, const char *const *dim,
     const int64_t *value, cps_dtype dtype, int nwith, const char *const *with, int nattr,
     const char *const *attr, const char *const *text, const cps_target *t, int cores,
     cps_instance *out, cps_diags *d)
{
    reg *r = self;
    const cps_dsl_op *o = need_op(r, op, d);
    cps_words w = {.ndim = ndims,
                   .nwith = nwith,
                   .nattr = nattr,
                   .dim = dim,
                   .size = value,
                   .dtype = dtype,
                   .with = with,
                   .attr = attr,
                   .text = text};
    return o && cps_dsl_make(r->set, a, o, &w, t, cores, out, d);
}

static bool
infer(void *self, cps_arena *a, cps_instance *i, cps_diags *d)
{
    reg *r = self;
    const cps_dsl_op *o = need_op(r, i->op, d);
    return o && cps_dsl_infer(r->set, a, o, i, d);
}

// A leaf names shipped targets; a description of one's own counts as its generation's.
static bool
serves(const char *targets, const cps_target *t)
{
    char name[32];
    for (const char *s = targets; *s;) {
        size_t n = 0;
        while (*s == ' ')
            s++;
        while (*s && *s != ' ') {
            if (n + 1 < sizeof(name))
                name[n++] = *s;
            s++;
        }
        name[n] = 0;
        if (!t ? cps_streq(name, "host") : cps_streq(name, t->name))
            return true;
        const cps_target *shipped = cps_target_find(name);
        if (t && shipped && shipped->gen == t->gen && !cps_target_find(t->name))
            return true;
    }
    return false;
}

static unsigned
candidates(void *self, cps_arena *a, const cps_instance *i, cps_candidate **out, cps_diags *d)
{
    reg *r = self;
    CPS_VEC(cps_candidate) list = {0};

    *out = NULL;
    if (!need_op(r, i->op, d))
        return 0;
    for (uint32_t k = 0; k < r->leaves.n; k++) {
        const cps_kernel_def def = r->leaves.data[k];
        if (!cps_streq(def.op, i->op) || !serves(def.targets, i->target))
            continue;
        cps_candidate c = {.leaf = def.name};
        const cps_dsl_leaf *l =
            load(r, def.source) ? cps_dsl_find_leaf(r->set, def.name) : NULL;
        if (!l || !cps_dsl_candidate(r->set, a, l, i, NULL, 0, &c, d)) {
            c = (cps_candidate){.leaf = def.name, .nreasons = 1};
            c.reason = cps_new_array(a, const char *, 1);
            c.reason[0] = "the text of the leaf has errors";
        }
        cps_vec_push(a, &list, c);
    }
    *out = list.data;
    if (r->api.tuned)
        cps_tuned_apply(r->api.tuned, &r->api, a, i, list.data, list.n, d);
    return list.n;
}

// The leaf of that name when it implements the instance's operator.
static const cps_dsl_leaf *
leaf_of(reg *r, const cps_instance *i, const char *name)
{
    for (uint32_t k = 0; k < r->leaves.n; k++) {
        const cps_kernel_def *def = &r->leaves.data[k];
        if (cps_streq(def->name, name))
            return cps_streq(def->op, i->op) && load(r, def->source) ? cps_dsl_find_leaf(r->set, name) : NULL;
    }
    return NULL;
}

static bool
candidate(void *self, cps_arena *a, const cps_instance *i, const char *name, const cps_attr *fixed,
          uint16_t nfixed, cps_candidate *out, cps_diags *d)
{
    reg *r = self;
    const cps_dsl_leaf *l = leaf_of(r, i, name);
    return l && cps_dsl_candidate(r->set, a, l, i, fixed, nfixed, out, d);
}

static bool
params(void *self, cps_arena *a, const cps_instance *i, const char *name, cps_param **out, uint32_t *n)
{
    reg *r = self;
    const cps_dsl_leaf *l = leaf_of(r, i, name);
    return l && cps_dsl_params(r->set, a, l, i, out, n);
}

static cps_digest
digest(void *self, const char *name)
{
    reg *r = self;
    bool fresh;
    uint64_t *at = cps_map_at_str(&r->digest_at, name, &fresh);
    if (fresh) {
        cps_digest d = {{0}};
        for (uint32_t k = 0; k < r->leaves.n; k++)
            if (cps_streq(r->leaves.data[k].name, name) && load(r, r->leaves.data[k].source))
                d = cps_dsl_leaf_digest(r->set, cps_dsl_find_leaf(r->set, name));
        *at = r->digests.n;
        cps_vec_push(r->arena, &r->digests, d);
    }
    return r->digests.data[*at];
}

static cps_tfunc *
trace(void *self, cps_arena *a, const cps_instance *i, const cps_candidate *c, int core,
      cps_diags *d)
{
    reg *r = self;
    const cps_dsl_op *o = need_op(r, i->op, d);
    const cps_dsl_leaf *l = o ? cps_dsl_find_leaf(r->set, c->leaf) : NULL;

    if (!o)
        return NULL;
    if (!l) {
        cps_error(d, CPS_E1107, CPS_NOSPAN, "'%s' has no leaf '%s'", i->op, c->leaf);
        return NULL;
    }
    if (!i->target) {
        cps_error(d, CPS_E2309, l->ast->name.span,
                  "leaf `%s` leaves no tile program on the host", c->leaf);
        return NULL;
    }
    cps_trace_opts opts = {.set = r->set,
                           .leaf = l,
                           .op = o,
                           .inst = i,
                           .nconfig = c->nconfig,
                           .config = c->config,
                           .core = core};
    return cps_dsl_trace(a, &opts, d);
}

static cps_func *
body(void *self, cps_module *m, const cps_instance *i, cps_diags *d)
{
    reg *r = self;
    const cps_dsl_op *o = need_op(r, i->op, d);
    return o ? cps_dsl_body(r->set, m, o, i, true, d) : NULL;
}

static cps_func *
calls(void *self, cps_module *m, const cps_instance *i, cps_diags *d)
{
    reg *r = self;
    const cps_dsl_op *o = need_op(r, i->op, d);
    return o ? cps_dsl_body(r->set, m, o, i, false, d) : NULL;
}

static bool
minimum(void *self, const cps_instance *i, cps_costs *out, cps_diags *d)
{
    reg *r = self;
    const cps_dsl_op *o = need_op(r, i->op, d);
    cps_arena *scratch = cps_arena_create();
    bool ok = o && cps_dsl_minimum(r->set, scratch, o, i, out, d);
    cps_arena_destroy(scratch);
    return ok;
}

/* ---- making one ---- */

static bool
add_def(reg *r, cps_kernel_def k, cps_diags *d)
{
    if (k.kind == 'L') {
        for (uint32_t i = 0; i < r->leaves.n; i++)
            if (cps_streq(r->leaves.data[i].name, k.name)) {
                cps_error(d, CPS_E2203, CPS_NOSPAN, "leaf `%s` is declared in %s and in %s",
                          k.name, r->files.data[r->leaves.data[i].source].path,
                          r->files.data[k.source].path);
                return false;
            }
        cps_vec_push(r->arena, &r->leaves, k);
        return true;
    }
    bool fresh;
    uint64_t *at = cps_map_at_str(&r->op_at, k.name, &fresh);
    if (!fresh) {
        cps_error(d, CPS_E2203, CPS_NOSPAN, "operator `%s` is declared in %s and in %s", k.name,
                  r->files.data[r->ops.data[*at - 1].source].path,
                  r->files.data[k.source].path);
        return false;
    }
    cps_vec_push(r->arena, &r->ops, k);
    *at = r->ops.n;
    return true;
}

static const char *
target_words(cps_arena *a, const char *s, size_t n)
{
    char *out = cps_arena_strndup(a, s, n);
    size_t k = 0;
    for (size_t i = 0; i < n;) {
        while (i < n && !isalnum((unsigned char)s[i]) && s[i] != '_')
            i++;
        if (i < n && k)
            out[k++] = ' ';
        while (i < n && (isalnum((unsigned char)s[i]) || s[i] == '_'))
            out[k++] = s[i++];
    }
    out[k] = 0;
    return out;
}

bool
cps_dsl_registry_add(cps_registry *api, const char *path, const char *text, size_t n,
                     cps_diags *d)
{
    reg *r = api->self;
    unsigned source = r->files.n;
    cps_scan_item x;
    bool ok = true;

    cps_vec_push(r->arena, &r->files, ((file){.path = path, .text = text, .n = n}));
    for (size_t at = 0; cps_kernel_scan(text, n, &at, &x);) {
        cps_kernel_def k = {.kind = x.kind,
                            .source = source,
                            .name = cps_arena_strndup(r->arena, x.name, x.nname)};
        if (x.kind == 'L') {
            k.op = cps_arena_strndup(r->arena, x.op, x.nop);
            k.targets = target_words(r->arena, x.targets, x.ntargets);
        }
        ok = add_def(r, k, d) && ok;
    }
    return ok && load(r, source);
}

// An operator that lowering wrote: a file of its own, once.
static bool
add(void *self, const char *op, const char *text, cps_diags *d)
{
    reg *r = self;
    const cps_kernel_def *k = find_def(r, op);
    if (k && cps_streq(r->files.data[k->source].text, text))
        return true;
    return cps_dsl_registry_add(&r->api, cps_arena_printf(r->arena, "%s.cps", op), cps_arena_strdup(r->arena, text),
                                strlen(text), d);
}

cps_registry *
cps_dsl_registry_create(cps_arena *a, cps_diags *d)
{
    reg *r = cps_new(a, reg);

    r->arena = a;
    r->d = d;
    r->set = cps_dsl_set_create(d, read_file, r);
    r->set->find = find_op;
    r->set->trusted = is_embedded;
    cps_map_init(&r->op_at, a);
    cps_map_init(&r->digest_at, a);
    for (unsigned i = 0; i < cps_kernel_source_count; i++)
        cps_vec_push(a, &r->files,
                     ((file){.path = cps_kernel_sources[i].path,
                             .text = cps_kernel_sources[i].text,
                             .n = cps_kernel_sources[i].n}));
    for (unsigned i = 0; i < cps_kernel_def_count; i++)
        add_def(r, cps_kernel_defs[i], d);
    r->api = (cps_registry){.self = r,
                            .ops = ops,
                            .op = op,
                            .find_op = find,
                            .leaves = leaves,
                            .leaf = leaf,
                            .make = make,
                            .add = add,
                            .infer = infer,
                            .candidates = candidates,
                            .candidate = candidate,
                            .params = params,
                            .digest = digest,
                            .trace = trace,
                            .body = body,
                            .calls = calls,
                            .minimum = minimum};
    return &r->api;
}

void
cps_dsl_registry_destroy(cps_registry *api)
{
    if (api)
        cps_dsl_set_destroy(((reg *)api->self)->set);
}

cps_dsl_set *
cps_dsl_registry_set(cps_registry *api, const char *name)
{
    reg *r = api->self;
    const cps_kernel_def *k = name ? find_def(r, name) : NULL;

    if (k)
        load(r, k->source);
    for (uint32_t i = 0; name && i < r->leaves.n; i++)
        if (cps_streq(r->leaves.data[i].op, name))
            load(r, r->leaves.data[i].source);
    return r->set;
}
