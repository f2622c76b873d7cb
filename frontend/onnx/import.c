/* The path from a decoded model to a module: sizes, operators, inputs, constants, nodes,
 * outputs.
 *
 * Everything that can be wrong with a model as a whole is reported as a whole: all symbolic
 * dimensions without a size in one message, all unsupported operators in one message. The rest
 * stops at the first node in error. Nodes are visited once, in the file's order, which ONNX
 * requires to be topological. */
#include "frontend/onnx/import.h"

#include <errno.h>
#include <inttypes.h>

#define OPSET_MIN 11
#define OPSET_MAX 28 // the newest whose changes were read

static const cps_ox_row rows[] = {
#define CPS_ONNX(domain, name, since, until, lo, hi, fn, base, note)                           \
    {{domain, name, since, until, lo, hi, note}, cps_ox_##fn, CPS_OP_##base},
#include "frontend/onnx/onnx.def"
};

unsigned
cps_onnx_rows(const cps_onnx_row **out)
{
    static const cps_onnx_row pub[] = {
#define CPS_ONNX(domain, name, since, until, lo, hi, fn, base, note)                           \
    {domain, name, since, until, lo, hi, note},
#include "frontend/onnx/onnx.def"
    };
    *out = pub;
    return cps_countof(pub);
}

void
cps_onnx_close(cps_onnx_files *f)
{
    for (uint32_t i = 0; i < f->file.n; i++)
        cps_file_close(&f->file.data[i].map);
    f->file.n = 0;
}

/* ---- sizes of symbolic dimensions ---- */

typedef struct size_opt {
    const char *name; /* left of '=' */
    int64_t value;
    bool used;
} size_opt;

typedef struct sizes {
    size_opt *opt;
    unsigned n;
} sizes;

static bool
read_sizes(cps_ox *m, sizes *s)
{
    s->n = m->o->ndims;
    s->opt = cps_new_array(m->arena, size_opt, s->n);
    for (unsigned i = 0; i < s->n; i++) {
        const char *text = m->o->dims[i], *eq = strrchr(text, '=');
        if (!eq || eq == text || !cps_parse_int(eq + 1, strlen(eq + 1), &s->opt[i].value) ||
            s->opt[i].value < 1 || s->opt[i].value > INT32_MAX) {
            cps_error(m->d, CPS_E7007, CPS_NOSPAN,
                      "'--dim %s' is not NAME=N or INPUT:AXIS=N with N from 1 to %d", text,
                      INT32_MAX);
            return false;
        }
        s->opt[i].name = cps_arena_strndup(m->arena, text, (size_t)(eq - text));
        for (unsigned k = 0; k < i; k++)
            if (strcmp(s->opt[k].name, s->opt[i].name) == 0) {
                cps_error(m->d, CPS_E7007, CPS_NOSPAN, "--dim gives '%s' twice",
                          s->opt[i].name);
                return false;
            }
    }
    return true;
}

static size_opt *
size_find(sizes *s, const char *name)
{
    for (unsigned i = 0; i < s->n; i++)
        if (strcmp(s->opt[i].name, name) == 0)
            return &s->opt[i];
    return NULL;
}

// One line for all that is missing: names once, with the places where they stand.
static void
list_missing(cps_buf *out, cps_map *seen, const cps_onnx_dim *d, const char *place)
{
    bool fresh = true;
    if (d->param[0])
        cps_map_at_str(seen, d->param, &fresh);
    if (!fresh)
        return;
    if (out->n)
        cps_buf_puts(out, ", ");
    if (d->param[0])
        cps_buf_printf(out, "'%s' (%s)", d->param, place);
    else
        cps_buf_printf(out, "'%s'", place);
}

static bool
graph_inputs(cps_ox *m)
{
    const cps_onnx_model *g = m->g;
    sizes s;
    if (!read_sizes(m, &s))
        return false;
    cps_buf missing = {0};
    cps_map seen;
    cps_map_init(&seen, m->arena);
    bool ok = true;
    for (uint32_t i = 0; i < g->input.n && ok; i++) {
        const cps_onnx_value *v = &g->input.data[i];
        if (cps_map_find_str(&m->vals, v->name))
            continue; // an initializer that IR version 3 lists among the inputs
        if (!v->name[0])
            ok = cps_ox_err(m, CPS_E7010, "graph input %u has no name", i);
        else if (!v->tensor || !v->shaped)
            ok = cps_ox_err(m, CPS_E7012, "input '%s' is not a tensor of known rank", v->name);
        else if (v->dtype == CPS_ONNX_DOUBLE || cps_ox_dtype(v->dtype) == CPS_DT_NONE)
            ok = cps_ox_err(m, CPS_E7012, "input '%s' has elements of %s", v->name,
                            cps_ox_dtype_name(v->dtype));
        else if (v->dim.n > CPS_MAX_RANK)
            ok = cps_ox_err(m, CPS_E7002, "input '%s' has %u axes, tensors have at most %d",
                            v->name, v->dim.n, CPS_MAX_RANK);
        int64_t dim[CPS_MAX_RANK] = {0};
        bool whole = true;
        for (uint32_t k = 0; ok && k < v->dim.n; k++) {
            const cps_onnx_dim *d = &v->dim.data[k];
            char *place = cps_arena_printf(m->arena, "%s:%u", v->name, k);
            size_opt *o = size_find(&s, place);
            if (!o && !d->known && d->param[0])
                o = size_find(&s, d->param);
            if (o && d->known && d->value != o->value)
                ok = cps_ox_err(m, CPS_E7007, "--dim %s=%" PRId64 ", the model says %" PRId64,
                                o->name, o->value, d->value);
            if (o)
                o->used = true;
            dim[k] = d->known ? d->value : o ? o->value : 0;
            if (!dim[k]) {
                whole = false;
                list_missing(&missing, &seen, d, place);
            }
        }
        if (!ok || !whole)
            continue;
        ok = cps_ox_shape_ok(m, (int)v->dim.n, dim);
        cps_type t = cps_type_make(cps_ox_dtype(v->dtype), (int)v->dim.n, dim);
        cps_val x = ok ? cps_b_input(&m->b, v->name, t) : 0;
        *cps_map_at_str(&m->vals, v->name, NULL) = x;
        ok = x != 0;
    }
    if (ok && missing.n) {
        cps_ox_err(m, CPS_E7006, "dimensions without a size: %s", missing.data);
        cps_help(m->d,
                 "give each one: --dim NAME=N, or --dim INPUT:AXIS=N where it has no name");
        ok = false;
    }
    cps_buf_fini(&missing);
    for (unsigned i = 0; ok && i < s.n; i++)
        if (!s.opt[i].used)
            ok = cps_ox_err(m, CPS_E7007, "--dim names '%s', no input has such a dimension",
                            s.opt[i].name);
    return ok;
}

/* ---- versions and operators ---- */

static bool
is_default(const char *domain)
{
    return !domain[0] || strcmp(domain, "ai.onnx") == 0;
}

static bool
versions(cps_ox *m)
{
    for (uint32_t i = 0; i < m->g->opset.n; i++) {
        const cps_onnx_opset *o = &m->g->opset.data[i];
        if (is_default(o->domain))
            m->opset = (int)CPS_MIN(CPS_MAX(o->version, 0), 1000);
    }
    if (!m->opset)
        return cps_ox_err(m, CPS_E7003, "the model imports no default operator set");
    if (m->opset < OPSET_MIN) {
        cps_ox_err(m, CPS_E7003, "operator set %d, this reads %d and later", m->opset,
                   OPSET_MIN);
        cps_help(m->d, "convert the model with onnx.version_converter");
        return false;
    }
    if (m->opset > OPSET_MAX)
        cps_error(m->d, CPS_W7003, CPS_NOSPAN,
                  "'%s': operator set %d is newer than %d, the newest that was reviewed",
                  m->path, m->opset, OPSET_MAX);
    if (m->g->sparse)
        return cps_ox_err(m, CPS_E7012, "the model has sparse initializers");
    return true;
}

static const cps_ox_row *
row_of(const cps_ox *m, const cps_onnx_node *n)
{
    const char *domain = is_default(n->domain) ? "" : n->domain;
    for (size_t i = 0; i < cps_countof(rows); i++) {
        const cps_onnx_row *r = &rows[i].pub;
        if (strcmp(r->name, n->op) == 0 && strcmp(r->domain, domain) == 0 &&
            (domain[0] || (m->opset >= r->since && (!r->until || m->opset <= r->until))))
            return &rows[i];
    }
    return NULL;
}

// Fills row[] for all nodes, or reports every operator that has none, most frequent kind last.
static bool
operators(cps_ox *m, const cps_ox_row **row)
{
    cps_map count;
    cps_map_init(&count, m->arena);
    uint64_t nodes = 0;
    for (uint32_t i = 0; i < m->g->node.n; i++) {
        const cps_onnx_node *n = &m->g->node.data[i];
        row[i] = row_of(m, n);
        if (row[i])
            continue;
        nodes++;
        const char *name = is_default(n->domain)
                               ? n->op
                               : cps_arena_printf(m->arena, "%s.%s", n->domain, n->op);
        ++*cps_map_at_str(&count, name, NULL);
    }
    if (!count.n)
        return true;
    cps_buf list = {0};
    for (uint32_t i = 0; i < count.n; i++)
        cps_buf_printf(&list, "%s%s (%" PRIu64 ")", i ? ", " : "", count.entry[i].str,
                       count.entry[i].value);
    cps_ox_err(m, CPS_E7008, "%u operators of %" PRIu64 " nodes are not taken: %s", count.n,
               nodes, list.data);
    cps_note(m->d, CPS_NOSPAN,
             "operator set %d; `copse list-operators --from onnx` lists what is", m->opset);
    cps_buf_fini(&list);
    return false;
}

/* ---- nodes ---- */

static bool
operands(cps_ox *m, const cps_ox_row *r)
{
    const cps_onnx_node *n = m->n;
    if (n->in.n > (uint32_t)r->pub.nin_max)
        return cps_ox_err(m, CPS_E7009, "%u operands, at most %d", n->in.n, r->pub.nin_max);
    for (int i = 0; i < r->pub.nin_min; i++)
        if (!cps_ox_given(m, (unsigned)i))
            return cps_ox_err(m, CPS_E7009, "operand %d is missing", i);
    for (uint32_t i = 0; i < n->in.n; i++)
        if (n->in.data[i][0] && !cps_map_find_str(&m->vals, n->in.data[i]))
            return cps_ox_err(m, CPS_E7010, "operand '%s' is not defined before it",
                              n->in.data[i]);
    return true;
}

// A declared type that contradicts the inferred one tells of a broken exporter. binary64 became fp32.
static void
compare(cps_ox *m, const cps_onnx_value *i, cps_val v)
{
    const cps_type *t = cps_ox_type(m, v);
    cps_dtype dtype = i->tensor ? cps_ox_dtype(i->dtype) : CPS_DT_NONE;
    bool same = (!i->shaped || (int)i->dim.n == t->rank) && (dtype == CPS_DT_NONE || dtype == t->dtype);
    for (uint32_t k = 0; same && i->shaped && k < i->dim.n; k++)
        same = !i->dim.data[k].known || i->dim.data[k].value == t->dim[k];
    if (same)
        return;
    cps_buf b = {0};
    cps_type_print(t, &b);
    cps_error(m->d, CPS_W7013, CPS_NOSPAN,
              "'%s': value '%s' is %s, its declaration says otherwise", m->path, i->name, b.data);
    cps_buf_fini(&b);
}

static void
declared(cps_ox *m, const char *name)
{
    const uint64_t *at = cps_map_find_str(&m->info, name);
    const uint64_t *v = cps_map_find_str(&m->vals, name);
    if (at && v)
        compare(m, &m->g->info.data[*at - 1], (cps_val)*v);
}

static bool
one_node(cps_ox *m, const cps_ox_row *r)
{
    const cps_onnx_node *n = m->n;
    uint32_t first = m->b.f->nodes.n;
    m->b.from = n->name[0] ? n->name : cps_arena_printf(m->arena, "%s#%u", n->op, m->at);
    unsigned errors = cps_diags_errors(m->d);
    if (!operands(m, r))
        return false;
    if (!r->fn(m, r)) {
        if (cps_diags_errors(m->d) == errors)
            cps_bug("handler of %s failed in silence", n->op);
        cps_note(m->d, CPS_NOSPAN, "while reading node '%s' (%s, #%u) of '%s'", n->name, n->op,
                 m->at, m->path);
        return false;
    }
    for (uint32_t i = 0; i < n->out.n; i++) {
        if (!n->out.data[i][0])
            continue;
        if (!cps_map_find_str(&m->vals, n->out.data[i]))
            return cps_ox_err(m, CPS_E7009, "no result for output %u ('%s')", i,
                              n->out.data[i]);
        declared(m, n->out.data[i]);
    }
    return cps_ox_fold(m, first);
}

static bool
initializers(cps_ox *m)
{
    for (uint32_t i = 0; i < m->g->init.n; i++) {
        const cps_onnx_tensor *t = &m->g->init.data[i];
        if (!t->name[0])
            return cps_ox_err(m, CPS_E7010, "initializer %u has no name", i);
        bool fresh;
        uint64_t *slot = cps_map_at_str(&m->vals, t->name, &fresh);
        if (!fresh)
            return cps_ox_err(m, CPS_E7010, "the initializer '%s' is defined twice", t->name);
        *slot = 0; // the map may move while the tensor is read
        cps_val v = cps_ox_tensor(m, t, NULL);
        if (!v)
            return false;
        *cps_map_at_str(&m->vals, t->name, NULL) = v;
    }
    return true;
}

static bool
graph_outputs(cps_ox *m)
{
    cps_map seen;
    cps_map_init(&seen, m->arena);
    if (!m->g->output.n)
        return cps_ox_err(m, CPS_E7010, "the graph has no outputs");
    for (uint32_t i = 0; i < m->g->output.n; i++) {
        const char *name = m->g->output.data[i].name;
        const uint64_t *v = cps_map_find_str(&m->vals, name);
        bool fresh;
        cps_map_at_str(&seen, name, &fresh);
        if (!name[0] || !v)
            return cps_ox_err(m, CPS_E7010, "output '%s' is not defined", name);
        if (!fresh)
            return cps_ox_err(m, CPS_E7010, "output '%s' is listed twice", name);
        compare(m, &m->g->output.data[i], (cps_val)*v);
        cps_b_output(&m->b, name, (cps_val)*v);
    }
    return true;
}

static bool
import_graph(cps_ox *m)
{
    const cps_onnx_model *g = m->g;
    cps_map_init(&m->vals, m->arena);
    cps_map_init(&m->info, m->arena);
    cps_map_init(&m->external, m->arena);
    for (uint32_t i = 0; i < g->info.n; i++)
        *cps_map_at_str(&m->info, g->info.data[i].name, NULL) = i + 1;
    const cps_ox_row **row = cps_new_array(m->arena, const cps_ox_row *, g->node.n);
    if (!versions(m) || !operators(m, row) || !initializers(m) || !graph_inputs(m))
        return false;
    for (m->at = 0; m->at < g->node.n; m->at++) {
        m->n = &g->node.data[m->at];
        if (!one_node(m, row[m->at]))
            return false;
    }
    m->n = NULL;
    if (m->narrowed)
        cps_error(m->d, CPS_W7012, CPS_NOSPAN,
                  "'%s': %llu constants of double are not exact in fp32", m->path, m->narrowed);
    return graph_outputs(m);
}

cps_module *
cps_onnx_import_bytes(cps_arena *a, const char *name, const char *folder, const uint8_t *data,
                      size_t n, const cps_onnx_opts *o, cps_diags *d)
{
    cps_assert(o && o->files);
    cps_onnx_model *g = cps_onnx_decode(a, name, data, n, d);
    if (!g)
        return NULL;
    const char *base = cps_path_base(name);
    size_t stem = strlen(base);
    if (cps_has_suffix(base, ".onnx"))
        stem -= 5;
    cps_ox m = {.arena = a, .d = d, .o = o, .path = name, .folder = folder, .g = g};
    m.b.m = cps_module_new(a, cps_arena_strndup(a, base, stem));
    m.b.f = cps_func_new(m.b.m, "main");
    m.b.d = d;
    m.scratch = cps_arena_create();
    bool ok = import_graph(&m);
    cps_arena_destroy(m.scratch);
    if (!ok)
        return NULL;
    return m.b.m;
}

cps_module *
cps_onnx_import(cps_arena *a, const char *path, const cps_onnx_opts *o, cps_diags *d)
{
    cps_assert(o && o->files);
    cps_file f;
    if (!cps_file_open(path, false, &f)) {
        cps_error(d, CPS_E1001, CPS_NOSPAN, "'%s': %s", path, strerror(errno));
        return NULL;
    }
    cps_vec_push(a, &o->files->file, ((cps_onnx_file){f, path}));
    const char *slash = strrchr(path, '/');
    const char *folder =
        slash ? cps_arena_strndup(a, path, (size_t)(slash - path) + (slash == path)) : ".";
    return cps_onnx_import_bytes(a, path, folder, f.data, f.n, o, d);
}
