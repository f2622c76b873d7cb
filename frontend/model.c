/* Models: reading, lowering, compiling. The stages of the path of data stand in
 * cps_model_compile, one after another. */
#include "frontend/depfile.h"
#include "frontend/model.h"

#include "codegen/host/host.h"
#include "frontend/compile.h"
#include "frontend/onnx/onnx.h"
#include "frontend/roof.h"
#include "kernels/tuned.h"
#include "lower/lower.h"
#include "runtime/base/map.h"

#include "build_id.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Constants that print inline are embedded in host code too; larger ones live in weights.bin and are
 * named by their place there. */
static bool
is_small(const cps_const *k)
{
    return cps_type_count(&k->type) <= CPS_TEXT_INLINE;
}

/* What holds for every target. */
static bool
graph_opts(cps_cli *c, cps_lower_opts *o)
{
    *o = (cps_lower_opts){.registry = cps_cli_registry(c)};
    o->auto_cast = cps_cli_word(c, CPS_OPT_AUTOCAST, "none", "none matmult all");
    const char *type = cps_cli_word(c, CPS_OPT_CASTTYPE, "bf16", "bf16 fp16 tf32");
    const char *fb = cps_cli_word(c, CPS_OPT_FALLBACK, "warn", "error warn quiet");
    if (!o->auto_cast || !type || !fb || !o->registry)
        return false;
    o->cast_type = cps_dtype_parse(type, strlen(type));
    o->fallback = !strcmp(fb, "error") ? CPS_FALLBACK_ERROR
                  : !strcmp(fb, "warn") ? CPS_FALLBACK_WARN
                                        : CPS_FALLBACK_QUIET;
    o->passes = cps_cli_str(c, CPS_OPT_PASSES, NULL);
    o->verify_each = cps_cli_has(c, CPS_OPT_VERIFYEACH);
#ifdef CPS_TEST_BUILD
    o->verify_each = true;
#endif
    return true;
}

static bool
lower_opts(cps_cli *c, const cps_target *t, cps_lower_opts *o)
{
    bool ok = graph_opts(c, o);
    o->target = t;
    o->cores = cps_cli_cores(c, t, &ok);
    return ok;
}

bool
cps_model_read(cps_cli *c, const char *path, cps_model *out)
{
    *out = (cps_model){0};
    errno = ENOENT; // where the file system gives no other reason
    if (strcmp(path, "-") && !cps_path_exists(path)) {
        cps_error(c->diags, CPS_E1001, CPS_NOSPAN, "cannot read '%s': %s", path, strerror(errno));
        return false;
    }
    if (cps_has_suffix(path, ".onnx")) {
        cps_onnx_files *files = cps_new(c->arena, cps_onnx_files);
        cps_onnx_opts o = {.ndims = c->opt[CPS_OPT_DIM].n, .dims = c->opt[CPS_OPT_DIM].data,
                           .files = files};
        out->files = files;
        out->module = cps_onnx_import(c->arena, path, &o, c->diags);
    } else if (cps_has_suffix(path, ".cir") || !strcmp(path, "-")) { // a stream is text
        if (!cps_model_parse(c, path, out))
            return false;
    } else {
        cps_error(c->diags, CPS_E1110, CPS_NOSPAN, "'%s' is no model: its name ends neither in .onnx nor in .cir",
                  path);
        return false;
    }
    cps_cli_depends(c, path);
    const cps_onnx_files *files = out->files;
    for (uint32_t i = 1; files && i < files->file.n; i++)
        cps_cli_depends_beside(c, path, files->file.data[i].name);
    cps_lower_opts o;
    return out->module && graph_opts(c, &o) && cps_lower_prepare(out->module, &o, c->diags);
}

void
cps_model_close(cps_model *m)
{
    if (m->files)
        cps_onnx_close(m->files);
    *m = (cps_model){0};
}

bool
cps_model_lower(cps_cli *c, cps_model *m, const cps_target *t)
{
    cps_lower_opts o;
    return lower_opts(c, t, &o) && (!t || cps_lower_select(m->module, &o, c->diags));
}

/* The name that stands for a large constant in graph.cir: where it lies in weights.bin. */
static cps_digest
place_digest(const cps_type *t, int64_t offset)
{
    cps_hasher h;
    cps_hash_init(&h, "copse weights");
    cps_buf b = {0};
    cps_type_print(t, &b);
    cps_hash_str(&h, 1, b.data);
    cps_buf_fini(&b);
    cps_hash_u64(&h, 2, (uint64_t)offset);
    return cps_hash_final(&h);
}

/* Every large constant of the reference graph becomes a variable, in order, so that its place is
 * known before lowering; then the graph's text names constants by place. */
static void
reference_graph(cps_package *p, cps_module *m, uint32_t *var_of)
{
    int64_t at = 0;
    cps_func *f = m->funcs.data[0];
    for (uint32_t n = 0; n < f->nodes.n; n++) {
        uint32_t i = f->nodes.data[n].cst;
        cps_const *k = &m->consts.data[i];
        if (f->nodes.data[n].op != CPS_OP_CONST || var_of[i] || is_small(k))
            continue;
        int64_t bytes = cps_type_bytes(&k->type);
        cps_pvar v = {.name = cps_arena_printf(p->arena, "const.%u%s%s", i, k->name ? "." : "",
                                               k->name ? k->name : ""),
                      .kind = CPS_PV_CONST, .dtype = k->type.dtype, .rank = k->type.rank,
                      .bytes = bytes, .data = k->data, .offset = at};
        memcpy(v.dim, k->type.dim, sizeof v.dim);
        k->digest = place_digest(&k->type, at);
        k->hashed = true;
        at = cps_round_up(at + bytes, CPS_CONST_ALIGN); // as cps_package_plan places them
        var_of[i] = p->vars.n + 1;
        cps_vec_push(p->arena, &p->vars, v);
    }
    cps_buf text = {0};
    cps_ir_print(m, &text);
    p->graph = cps_arena_strndup(p->arena, text.data, text.n);
    p->graph_bytes = text.n;
    cps_buf_fini(&text);
}

typedef struct places {
    cps_arena *a;
    const cps_package *p;
} places;

static const void *
find_blob(void *user, const cps_digest *d, size_t bytes)
{
    const places *q = user;
    for (uint32_t i = 0; i < q->p->vars.n; i++) {
        const cps_pvar *v = &q->p->vars.data[i];
        if (v->kind != CPS_PV_CONST || (size_t)v->bytes != bytes)
            continue;
        cps_type t = cps_type_make(v->dtype, v->rank, v->dim);
        cps_digest k = place_digest(&t, v->offset);
        if (cps_digest_eq(&k, d))
            return v->data;
    }
    return NULL;
}

cps_module *
cps_package_graph(cps_cli *c, const cps_package *p)
{
    if (!p->graph) {
        cps_error(c->diags, CPS_E8002, CPS_NOSPAN, "the package has no reference graph");
        return NULL;
    }
    places q = {c->arena, p};
    uint32_t src = cps_diags_source(c->diags, "graph.cir", p->graph, p->graph_bytes);
    cps_module *m =
        cps_ir_parse(c->arena, p->graph, p->graph_bytes, src, c->diags, find_blob, &q);
    return m && cps_ir_verify(m, c->diags) ? m : NULL;
}

typedef struct table {
    const cps_module *m;
} table;

static const void *
own_blob(void *user, const cps_digest *d, size_t bytes)
{
    const table *t = user;
    for (uint32_t i = 0; i < t->m->consts.n; i++) {
        cps_const *k = &t->m->consts.data[i];
        if ((size_t)cps_type_bytes(&k->type) == bytes && k->hashed && cps_digest_eq(&k->digest, d))
            return k->data;
    }
    return NULL;
}

cps_module *
cps_model_copy(cps_cli *c, const cps_model *m)
{
    // Large constants get a name of their own first, so that printing does not read them.
    bool *named = cps_new_array(c->arena, bool, m->module->consts.n + 1);
    for (uint32_t i = 0; i < m->module->consts.n; i++) {
        cps_const *k = &m->module->consts.data[i];
        if (!k->hashed && !is_small(k)) {
            k->digest = place_digest(&k->type, -1 - (int64_t)i);
            k->hashed = named[i] = true;
        }
    }
    cps_buf text = {0};
    cps_ir_print(m->module, &text);
    char *copy = cps_arena_strndup(c->arena, text.data, text.n);
    size_t n = text.n;
    cps_buf_fini(&text);
    uint32_t src = cps_diags_source(c->diags, "reference graph", copy, n);
    table t = {m->module};
    cps_module *out = cps_ir_parse(c->arena, copy, n, src, c->diags, own_blob, &t);
    for (uint32_t i = 0; i < m->module->consts.n; i++) // whoever prints the model wants its own digests
        if (named[i])
            m->module->consts.data[i].hashed = false;
    return out;
}

unsigned
cps_graph_inputs(cps_cli *c, const cps_func *f, cps_io **io, int64_t **bound)
{
    *io = cps_new_array(c->arena, cps_io, f->inputs.n + 1);
    *bound = cps_new_array(c->arena, int64_t, f->inputs.n + 1);
    for (uint32_t i = 0; i < f->inputs.n; i++) {
        const cps_value *v = &f->vals.data[f->inputs.data[i]];
        (*io)[i] = (cps_io){.name = v->name, .type = v->type};
        (*bound)[i] = cps_index_bound(f, f->inputs.data[i]);
    }
    return f->inputs.n;
}

unsigned
cps_graph_outputs(cps_cli *c, const cps_func *f, cps_io **io)
{
    *io = cps_new_array(c->arena, cps_io, f->outputs.n + 1);
    for (uint32_t i = 0; i < f->outputs.n; i++)
        (*io)[i] = (cps_io){.name = f->output_names.data[i],
                            .type = f->vals.data[f->outputs.data[i]].type};
    return f->outputs.n;
}

int64_t *
cps_package_bounds(cps_cli *c, const cps_package *p)
{
    int64_t *bound = cps_new_array(c->arena, int64_t, p->inputs.n + 1);
    for (uint32_t i = 0; i < p->inputs.n; i++)
        bound[i] = 2;
    bool ints = false;
    for (uint32_t i = 0; i < p->inputs.n; i++)
        ints = ints || !cps_dtype_is_float(p->vars.data[p->inputs.data[i].var].dtype);
    cps_module *m = ints && p->graph ? cps_package_graph(c, p) : NULL;
    for (uint32_t i = 0; m && i < p->inputs.n && i < m->funcs.data[0]->inputs.n; i++)
        bound[i] = cps_index_bound(m->funcs.data[0], m->funcs.data[0]->inputs.data[i]);
    return bound;
}

double
cps_model_rtol(const cps_module *m, const char *on)
{
    const cps_func *f = m->funcs.data[0];
    for (uint32_t i = 1; i < f->vals.n; i++) {
        cps_dtype t = f->vals.data[i].type.dtype;
        if (cps_dtype_is_float(t) && cps_dtype_bytes(t) < 4)
            return 2e-2;
    }
    return strcmp(on, "host") ? 1e-3 : 1e-4;
}

/* ---- compiling ---- */

static cps_pio
border(const char *name, uint32_t var, const cps_type *t)
{
    cps_pio io = {.name = name, .var = var, .rank = t->rank};
    memcpy(io.dim, t->dim, sizeof io.dim);
    return io;
}

typedef struct builder {
    cps_cli *c;
    cps_package *p;
    cps_module *m;
    cps_func *f;
    cps_lower_opts lower;
    uint32_t *const_var; /* constant -> variable + 1 */
    uint32_t *val_var;   /* value -> variable + 1 */
    cps_map made;        /* instance and leaf -> kernel */
    unsigned hits, misses;
} builder;

static uint32_t
add_var(builder *b, const char *name, cps_pkind kind, const cps_type *t)
{
    cps_pvar v = {.name = name, .kind = kind, .dtype = t->dtype, .rank = t->rank,
                  .bytes = cps_type_bytes(t)};
    memcpy(v.dim, t->dim, sizeof v.dim);
    cps_vec_push(b->p->arena, &b->p->vars, v);
    return b->p->vars.n; // index + 1
}

static uint32_t
const_var(builder *b, uint32_t k)
{
    if (!b->const_var[k]) {
        cps_const *x = &b->m->consts.data[k];
        b->const_var[k] = add_var(b, cps_arena_printf(b->p->arena, "const.%u", k), CPS_PV_CONST, &x->type);
        b->p->vars.data[b->const_var[k] - 1].data = x->data;
    }
    return b->const_var[k];
}

/* Values that share storage: a reshape is another view of its operand. Each class gets one
 * variable; a class that holds a function output is that output. */
static cps_val
root_of(const builder *b, cps_val v)
{
    for (;;) {
        uint32_t def = b->f->vals.data[v].def;
        if (!def || b->f->nodes.data[def - 1].op != CPS_OP_RESHAPE)
            return v;
        v = b->f->nodes.data[def - 1].in[0];
    }
}

static uint32_t
var_of(builder *b, cps_val v)
{
    cps_val r = root_of(b, v);
    if (!b->val_var[r]) {
        uint32_t def = b->f->vals.data[r].def;
        const cps_node *n = def ? &b->f->nodes.data[def - 1] : NULL;
        if (n && n->op == CPS_OP_CONST)
            b->val_var[r] = const_var(b, n->cst);
        else
            b->val_var[r] = add_var(b, cps_arena_printf(b->p->arena, "tmp.%u", r), CPS_PV_TMP,
                                    &b->f->vals.data[r].type);
    }
    return b->val_var[r] - 1;
}

static void
borders(builder *b)
{
    cps_func *f = b->f;
    for (uint32_t i = 0; i < f->inputs.n; i++) {
        cps_val v = f->inputs.data[i];
        b->val_var[v] = add_var(b, f->vals.data[v].name, CPS_PV_INPUT, &f->vals.data[v].type);
        cps_vec_push(b->p->arena, &b->p->inputs,
                     border(f->vals.data[v].name, b->val_var[v] - 1, &f->vals.data[v].type));
    }
    for (uint32_t i = 0; i < f->outputs.n; i++) {
        cps_val v = f->outputs.data[i], r = root_of(b, v);
        uint32_t def = f->vals.data[r].def;
        bool made = def && f->nodes.data[def - 1].op == CPS_OP_CALL;
        if (made && !b->val_var[r])
            b->val_var[r] = add_var(b, f->output_names.data[i], CPS_PV_OUTPUT, &f->vals.data[v].type);
        cps_vec_push(b->p->arena, &b->p->outputs,
                     border(f->output_names.data[i], var_of(b, v), &f->vals.data[v].type));
    }
}

static bool
add_kernel(cps_cli *c, cps_package *p, const cps_instance *inst, const cps_candidate *k,
           const char *why, const cps_compiled *bin)
{
    cps_arena *a = p->arena;
    cps_roof roof;
    if (!cps_roof_of(cps_cli_registry(c), a, inst, &roof, c->diags))
        return false;
    cps_buf text = {0};
    cps_instance_print(inst, &text);
    cps_pkernel x = {.leaf = k->leaf, .op = inst->op, .key = bin->key, .kbin = bin->kbin, .why = why,
                     .cost_ns = k->cost_ns, .flops = roof.flops, .bytes = roof.bytes,
                     .roofline_ns = (int64_t)(roof.roofline_ns + 0.5),
                     .engines_ns = (int64_t)(roof.engines_ns + 0.5), .bound = roof.bound};
    x.instance = cps_arena_strdup(a, text.data);
    text.n = 0;
    cps_config_print(k, &text);
    x.config = cps_arena_strndup(a, text.data ? text.data : "", text.n);
    x.name = cps_arena_printf(a, "%s_%u", k->leaf, p->kernels.n);
    bool ok = true;
    if (bin->bir[0]) {
        x.text = bin->bir[0];
        x.text_bytes = bin->bir_bytes[0];
        x.peer_text = bin->bir[1];
        x.peer_text_bytes = bin->bir_bytes[1];
        x.text_name = "kernel.bir.json";
    } else if (!strcmp(cps_cli_str(c, CPS_OPT_EMIT, ""), "tile")) {
        text.n = 0;
        ok = cps_compile_tile(c, a, inst, k, &text);
        x.text = cps_arena_strndup(a, text.data ? text.data : "", text.n);
        x.text_bytes = text.n;
    }
    cps_buf_fini(&text);
    cps_vec_push(a, &p->kernels, x);
    return ok;
}

cps_package *
cps_kernel_package(cps_cli *c, const cps_instance *i, const cps_candidate *k, const char *why,
                   const cps_compiled *bin)
{
    cps_arena *a = c->arena;
    cps_registry *r = cps_cli_registry(c);
    cps_module *m = cps_module_new(a, i->op);
    cps_package *p = cps_package_new(a, i->op, i->target->name);
    p->target_digest = i->target->digest;
    if (!r->body(r->self, m, i, c->diags) || !add_kernel(c, p, i, k, why, bin))
        return NULL;
    cps_buf text = {0};
    cps_ir_print(m, &text);
    p->graph = cps_arena_strndup(a, text.data, text.n);
    p->graph_bytes = text.n;
    cps_buf_fini(&text);
    cps_pstep s = {.kernel = 0};
    for (int pass = 0; pass < 2; pass++) {
        int n = pass ? i->nresults : i->noperands;
        for (int q = 0; q < n; q++) {
            const cps_operand *o = pass ? &i->result[q] : &i->operand[q];
            if (!o->present && !pass)
                continue;
            cps_pvar v = {.name = o->name, .kind = pass ? CPS_PV_OUTPUT : CPS_PV_INPUT,
                          .dtype = o->type.dtype, .rank = o->type.rank, .bytes = cps_type_bytes(&o->type)};
            memcpy(v.dim, o->type.dim, sizeof v.dim);
            if (o->order) {
                // Stored with its last axes swapped: the package takes it so, and the body, which
                // has the logical shape, is no reference for it.
                v.dim[v.rank - 2] = o->type.dim[v.rank - 1];
                v.dim[v.rank - 1] = o->type.dim[v.rank - 2];
                p->graph = NULL;
            }
            cps_vec_push(a, &p->vars, v);
            cps_type stored = cps_type_make(v.dtype, v.rank, v.dim);
            cps_pio io = border(o->name, p->vars.n - 1, &stored);
            if (pass)
                cps_vec_push(a, &p->outputs, io);
            else
                cps_vec_push(a, &p->inputs, io);
            cps_vec_push(a, &p->args, ((cps_parg){o->name, p->vars.n - 1}));
        }
    }
    s.nargs = p->args.n;
    cps_vec_push(a, &p->steps, s);
    return p;
}

void
cps_take_decision(cps_arena *a, cps_candidate *k, const cps_decision *pick)
{
    if (!pick || !pick->nconfig)
        return;
    k->config = NULL;
    k->nconfig = 0;
    for (uint32_t q = 0; q < pick->nconfig; q++)
        cps_attr_put(a, &k->config, &k->nconfig, pick->config[q]);
}

/* What makes two calls one kernel. */
static void
kernel_id(const cps_instance *inst, const cps_decision *pick, char hex[65])
{
    cps_buf parts = {0}, said = {0};
    cps_instance_key(inst, &parts);
    cps_buf_puts(&said, pick ? pick->leaf : "");
    for (uint32_t k = 0; pick && k < pick->nconfig; k++) {
        cps_buf_putc(&said, ' ');
        cps_attr_print(&pick->config[k], &said);
    }
    cps_key_field(&parts, 64, said.n ? said.data : "", (uint32_t)said.n);
    cps_buf_fini(&said);
    cps_digest same = cps_digest_of(parts.data, parts.n);
    cps_buf_fini(&parts);
    cps_digest_hex(&same, hex);
}

static bool
add_step(builder *b, const cps_node *n)
{
    cps_arena *a = b->p->arena;
    cps_instance inst;
    if (!cps_lower_instance(&b->lower, a, b->f, n, &inst, b->c->diags))
        return false;
    cps_pstep s = {.from = n->from, .first = b->p->args.n};
    const char *leaf = n->pick ? n->pick->leaf : NULL;
    // Equal calls share a kernel: the instance and its leaf are looked up before anything is done.
    char hex[65];
    kernel_id(&inst, n->pick, hex);
    bool fresh;
    uint64_t *at = cps_map_at_str(&b->made, hex, &fresh);
    if (fresh) {
        cps_candidate *cand;
        const char *why;
        unsigned nc;
        int k = cps_choose(b->c, &inst, leaf, &cand, &nc, &why);
        cps_compiled bin;
        if (k < 0)
            return false;
        cps_take_decision(a, &cand[k], n->pick);
        if (!cps_compile_kernel(b->c, a, &inst, &cand[k], &bin))
            return false;
        bin.hit ? b->hits++ : b->misses++;
        *at = b->p->kernels.n;
        if (!add_kernel(b->c, b->p, &inst, &cand[k], n->pick && n->pick->why ? n->pick->why : why, &bin))
            return false;
    }
    s.kernel = (int32_t)*at;
    for (int i = 0; i < inst.noperands; i++)
        if (i < n->nin && n->in[i])
            cps_vec_push(a, &b->p->args, ((cps_parg){inst.operand[i].name, var_of(b, n->in[i])}));
    for (int i = 0; i < n->nout; i++)
        cps_vec_push(a, &b->p->args, ((cps_parg){inst.result[i].name, var_of(b, n->out[i])}));
    s.nargs = b->p->args.n - s.first;
    cps_vec_push(a, &b->p->steps, s);
    return true;
}

// Where host code finds each constant in weights.bin.
static int64_t *
host_offsets(const builder *b)
{
    int64_t *offset = cps_new_array(b->p->arena, int64_t, b->m->consts.n + 1);
    for (uint32_t i = 0; i < b->m->consts.n; i++)
        offset[i] = b->const_var[i] ? b->p->vars.data[b->const_var[i] - 1].offset : -1;
    return offset;
}

static bool
host_package(builder *b)
{
    cps_package *p = b->p;
    int64_t *offset = host_offsets(b);
    // Host code writes every output itself, so each is a variable of its own.
    for (int pass = 0; pass < 2; pass++) {
        uint32_t n = pass ? b->f->outputs.n : b->f->inputs.n;
        for (uint32_t i = 0; i < n; i++) {
            cps_val v = pass ? b->f->outputs.data[i] : b->f->inputs.data[i];
            const cps_value *x = &b->f->vals.data[v];
            cps_pio io = border(pass ? b->f->output_names.data[i] : x->name, 0, &x->type);
            io.var = add_var(b, io.name, pass ? CPS_PV_OUTPUT : CPS_PV_INPUT, &x->type) - 1;
            if (pass)
                cps_vec_push(p->arena, &p->outputs, io);
            else
                cps_vec_push(p->arena, &p->inputs, io);
        }
    }
    // Everything host code depends on: the graph's text (constants by place), the build.
    cps_cache *cache = cps_cli_cache(b->c);
    cps_buf parts = {0}, bytes = {0};
    cps_key_field(&parts, 64, "host 1", 6);
    cps_key_field(&parts, 65, CPS_BUILD_ID, (uint32_t)strlen(CPS_BUILD_ID));
    cps_key_field(&parts, 66, p->graph, (uint32_t)p->graph_bytes);
    bool ok = true;
    cps_host_opts o = {.olevel = (int)cps_cli_int(b->c, CPS_OPT_OLEVEL, 2, 0, 3, &ok)};
    uint8_t level = (uint8_t)o.olevel;
    cps_key_field(&parts, 67, &level, 1);
    char cpu[256];
    cps_host_cpu(cpu, sizeof cpu);
    cps_key_field(&parts, 68, cpu, (uint32_t)strlen(cpu));
    cps_digest key = cps_digest_of(parts.data, parts.n);
    // Cached whole: three sections with their lengths.
    if (ok && cps_cache_get(cache, &key, parts.data, parts.n, &bytes) && bytes.n >= 24) {
        uint64_t len[3];
        memcpy(len, bytes.data, sizeof len);
        const char *at = cps_arena_strndup(p->arena, bytes.data + 24, bytes.n - 24);
        if (len[0] <= bytes.n - 24 && len[1] <= bytes.n - 24 - len[0] &&
            len[2] == bytes.n - 24 - len[0] - len[1]) {
            p->host_o = at;
            p->host_o_bytes = len[0];
            p->host_so = at + len[0];
            p->host_so_bytes = len[1];
            p->host_h = at + len[0] + len[1];
            b->hits++;
        }
    }
    if (ok && !p->host_so) {
        b->misses++;
        cps_host_out out = {0};
        cps_buf so = {0};
        ok = cps_host_compile(b->m, b->f, offset, &o, false, &out, b->c->diags) &&
             cps_host_link(out.object.data, out.object.n, &so, b->c->diags);
        if (ok) {
            p->host_o = cps_arena_strndup(p->arena, out.object.data, out.object.n);
            p->host_o_bytes = out.object.n;
            p->host_so = cps_arena_strndup(p->arena, so.data, so.n);
            p->host_so_bytes = so.n;
            p->host_h = cps_arena_strndup(p->arena, out.header.data, out.header.n);
            uint64_t len[3] = {out.object.n, so.n, out.header.n};
            bytes.n = 0;
            cps_buf_put(&bytes, len, sizeof len);
            cps_buf_put(&bytes, out.object.data, out.object.n);
            cps_buf_put(&bytes, so.data, so.n);
            cps_buf_put(&bytes, out.header.data, out.header.n);
            cps_cache_put(cache, &key, parts.data, parts.n, bytes.data, bytes.n);
        }
        cps_buf_fini(&so);
        cps_buf_fini(&out.object);
        cps_buf_fini(&out.llvm);
        cps_buf_fini(&out.header);
    }
    cps_buf_fini(&parts);
    cps_buf_fini(&bytes);
    cps_pstep s = {.kernel = -1, .first = p->args.n};
    cps_vec_push(p->arena, &p->steps, s);
    return ok;
}

bool
cps_model_llvm(cps_cli *c, cps_model *m, cps_buf *text)
{
    builder b = {.c = c, .m = m->module, .f = m->module->funcs.data[0]};
    b.p = cps_package_new(c->arena, m->module->name, "host");
    b.const_var = cps_new_array(c->arena, uint32_t, b.m->consts.n + 1);
    reference_graph(b.p, b.m, b.const_var);
    bool ok = true;
    cps_host_opts o = {.olevel = (int)cps_cli_int(c, CPS_OPT_OLEVEL, 2, 0, 3, &ok)};
    cps_host_out out = {0};
    ok = ok && cps_host_compile(b.m, b.f, host_offsets(&b), &o, true, &out, c->diags);
    cps_buf_fini(&out.object);
    cps_buf_fini(&out.header);
    *text = out.llvm;
    return ok;
}

cps_package *
cps_model_compile(cps_cli *c, cps_model *m, const cps_target *t, unsigned *hits, unsigned *misses)
{
    cps_arena *a = c->arena;
    cps_package *p = cps_package_new(a, m->module->name, t ? t->name : "host");
    builder b = {.c = c, .p = p, .m = m->module, .f = m->module->funcs.data[0]};
    if (t)
        p->target_digest = t->digest;
    if (!lower_opts(c, t, &b.lower))
        return NULL;
    uint32_t before = b.m->consts.n;
    b.const_var = cps_new_array(a, uint32_t, before + 1);
    reference_graph(p, b.m, b.const_var);
    bool ok = true;
    if (!t) {
        ok = host_package(&b);
    } else {
        ok = cps_lower_select(b.m, &b.lower, c->diags);
        b.f = b.m->funcs.data[0];
        // lowering may have made new constants
        uint32_t *known = b.const_var;
        b.const_var = cps_new_array(a, uint32_t, b.m->consts.n + 1);
        memcpy(b.const_var, known, before * sizeof *known);
        b.val_var = cps_new_array(a, uint32_t, b.f->vals.n + 1);
        cps_map_init(&b.made, a);
        if (ok)
            borders(&b);
        for (uint32_t i = 0; ok && i < b.f->nodes.n; i++)
            if (b.f->nodes.data[i].op == CPS_OP_CALL)
                ok = add_step(&b, &b.f->nodes.data[i]);
    }
    *hits += b.hits;
    *misses += b.misses;
    return ok ? p : NULL;
}

bool
cps_model_explain(cps_cli *c, cps_model *m, const cps_target *t, bool json, cps_buf *out)
{
    cps_lower_opts o;
    // The explanation is of a copy: the caller may go on to compile the model.
    cps_module *copy = cps_model_copy(c, m);
    return copy && lower_opts(c, t, &o) && cps_lower_select(copy, &o, c->diags) &&
           cps_lower_explain(copy, &o, json, out, c->diags);
}

bool
cps_model_calls(cps_cli *c, cps_model *m, const cps_target *t, cps_call **out, unsigned *n)
{
    cps_lower_opts o;
    cps_module *copy = cps_model_copy(c, m);
    CPS_VEC(cps_call) all = {0};
    cps_map made;
    cps_map_init(&made, c->arena);
    if (!copy || !lower_opts(c, t, &o) || !cps_lower_select(copy, &o, c->diags))
        return false;
    const cps_func *f = copy->funcs.data[0];
    for (uint32_t i = 0; i < f->nodes.n; i++) {
        const cps_node *x = &f->nodes.data[i];
        cps_call k = {0};
        bool fresh;
        char hex[65];
        if (x->op != CPS_OP_CALL)
            continue;
        if (!cps_lower_instance(&o, c->arena, f, x, &k.inst, c->diags))
            return false;
        k.pick = x->pick;
        kernel_id(&k.inst, x->pick, hex);
        uint64_t *at = cps_map_at_str(&made, hex, &fresh);
        if (fresh) {
            *at = all.n;
            k.name = cps_arena_printf(c->arena, "%s_%u", x->pick ? x->pick->leaf : k.inst.op, all.n);
            cps_vec_push(c->arena, &all, k);
        }
        all.data[*at].times++;
    }
    *out = all.data;
    *n = all.n;
    return true;
}
