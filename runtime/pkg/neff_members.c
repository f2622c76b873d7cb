/* The members of a container of ours: kelf-0.json, neff.json and our own copse.json at the top;
 * in sg00/, and for core 1 of a pair in sg01/: def.json, tensor_map.json, one JSON and one stream per engine, and a file per
 * constant. Keys and spellings are those of the public documentation where it gives them
 * (NEFF.md). */
#include "runtime/pkg/neff_members.h"

#include "runtime/pkg/kbin_priv.h"
#include "runtime/pkg/neff_graph.h"

static void
put_shape(cps_jsonw *w, const char *key, int rank, const int64_t *dim)
{
    if (key)
        cps_jsonw_key(w, key);
    cps_jsonw_arr(w, true);
    for (int i = 0; i < rank; i++)
        cps_jsonw_int(w, dim[i]);
    cps_jsonw_end_arr(w);
}

static void
add_text(cps_packer *c, const char *name, cps_jsonw *w)
{
    cps_jsonw_done(w);
    cps_neff_add(c->f, name, cps_arena_strndup(c->a, w->out->data, w->out->n), w->out->n);
    cps_buf_fini(w->out);
}

static void
write_kelf(cps_packer *c)
{
    cps_buf b = {0};
    cps_jsonw w;
    cps_jsonw_init(&w, &b);
    cps_jsonw_obj(&w, false);
    cps_jsonw_key(&w, "graphs");
    cps_jsonw_arr(&w, true);
    for (const cps_kbin *k = c->first; k; k = k->peer) {
        cps_jsonw_obj(&w, true);
        cps_jsonw_put_str(&w, "definition", k->core ? "sg01/def.json" : "sg00/def.json");
        cps_jsonw_put_str(&w, "name", k->core ? "sg01" : "sg00");
        cps_jsonw_end_obj(&w);
    }
    cps_jsonw_end_arr(&w);
    cps_jsonw_put_str(&w, "version", "0.5");
    cps_jsonw_put_str(&w, "target", cps_neff_target_word(c->first->gen));
    cps_jsonw_end_obj(&w);
    add_text(c, "kelf-0.json", &w);
}

static const char *
shape_text(cps_packer *c, const cps_neff_border *x)
{
    cps_buf b = {0};
    cps_buf_putc(&b, '[');
    for (int i = 0; i < x->rank; i++)
        cps_buf_printf(&b, "%s%lld", i ? ", " : "", (long long)x->dim[i]);
    cps_buf_putc(&b, ']');
    const char *text = cps_arena_strdup(c->a, b.data);
    cps_buf_fini(&b);
    return text;
}

/* The host's graph, in the form of a TVM graph: inputs, and one node that is the program. */
static void
write_host(cps_packer *c)
{
    cps_buf b = {0};
    cps_jsonw w;
    cps_jsonw_init(&w, &b);
    cps_jsonw_obj(&w, false);
    cps_jsonw_key(&w, "nodes");
    cps_jsonw_arr(&w, false);
    for (uint32_t i = 0; i < c->in.n; i++) {
        const cps_neff_border *x = &c->in.data[i];
        cps_jsonw_obj(&w, true);
        cps_jsonw_put_str(&w, "op", "null");
        cps_jsonw_put_str(&w, "name", x->name);
        cps_jsonw_key(&w, "inputs");
        cps_jsonw_arr(&w, true);
        cps_jsonw_end_arr(&w);
        cps_jsonw_key(&w, "attrs");
        cps_jsonw_obj(&w, true);
        cps_jsonw_put_str(&w, "dtype", cps_pkg_dtype_word(x->dtype));
        cps_jsonw_put_str(&w, "id", cps_arena_printf(c->a, "%u", i));
        cps_jsonw_put_str(&w, "is_param", "0");
        cps_jsonw_put_str(&w, "shape", shape_text(c, x));
        cps_jsonw_end_obj(&w);
        cps_jsonw_end_obj(&w);
    }
    cps_jsonw_obj(&w, false);
    cps_jsonw_put_str(&w, "op", "__kelf");
    cps_jsonw_put_str(&w, "name", "sg_coreV10");
    cps_jsonw_key(&w, "inputs");
    cps_jsonw_arr(&w, true);
    for (uint32_t i = 0; i < c->in.n; i++)
        put_shape(&w, NULL, 3, (int64_t[]){i, 0, 0});
    cps_jsonw_end_arr(&w);
    cps_jsonw_key(&w, "attrs");
    cps_jsonw_obj(&w, true);
    cps_jsonw_put_str(&w, "flatten_data", "0");
    cps_jsonw_put_str(&w, "func_name", "0");
    cps_jsonw_put_str(&w, "kelf", "kelf-0.json");
    cps_jsonw_put_str(&w, "num_inputs", cps_arena_printf(c->a, "%u", c->in.n));
    cps_jsonw_put_str(&w, "num_outputs", cps_arena_printf(c->a, "%u", c->out.n));
    cps_jsonw_put_str(&w, "tvm_op", "sg_coreV10");
    cps_jsonw_end_obj(&w);
    cps_jsonw_key(&w, "output_names");
    cps_jsonw_arr(&w, true);
    for (uint32_t i = 0; i < c->out.n; i++)
        cps_jsonw_str(&w, c->out.data[i].name);
    cps_jsonw_end_arr(&w);
    cps_jsonw_end_obj(&w);
    cps_jsonw_end_arr(&w);
    cps_jsonw_key(&w, "arg_nodes");
    cps_jsonw_arr(&w, true);
    for (uint32_t i = 0; i < c->in.n; i++)
        cps_jsonw_int(&w, i);
    cps_jsonw_end_arr(&w);
    cps_jsonw_key(&w, "heads");
    cps_jsonw_arr(&w, true);
    for (uint32_t i = 0; i < c->out.n; i++)
        put_shape(&w, NULL, 3, (int64_t[]){c->in.n, i, 0});
    cps_jsonw_end_arr(&w);
    cps_jsonw_key(&w, "node_row_ptr");
    cps_jsonw_arr(&w, true);
    for (uint32_t i = 0; i <= c->in.n; i++)
        cps_jsonw_int(&w, i);
    cps_jsonw_int(&w, (int64_t)c->in.n + c->out.n);
    cps_jsonw_end_arr(&w);
    cps_jsonw_key(&w, "attrs");
    cps_jsonw_obj(&w, false);
    static const char *const list[][2] = {
        {"dltype", "list_str"}, {"shape", "list_shape"}, {"storage_id", "list_int"}};
    for (unsigned n = 0; n < cps_countof(list); n++) {
        cps_jsonw_key(&w, list[n][0]);
        cps_jsonw_arr(&w, true);
        cps_jsonw_str(&w, list[n][1]);
        cps_jsonw_arr(&w, true);
        for (uint32_t i = 0; i < c->in.n + c->out.n; i++) {
            const cps_neff_border *x = i < c->in.n ? &c->in.data[i] : &c->out.data[i - c->in.n];
            if (n == 0)
                cps_jsonw_str(&w, cps_pkg_dtype_word(x->dtype));
            else if (n == 1)
                put_shape(&w, NULL, x->rank, x->dim);
            else
                cps_jsonw_int(&w, i);
        }
        cps_jsonw_end_arr(&w);
        cps_jsonw_end_arr(&w);
    }
    cps_jsonw_end_obj(&w);
    cps_jsonw_put_str(&w, "version", "0.5");
    cps_jsonw_end_obj(&w);
    add_text(c, "neff.json", &w);
}

static const char *
constant_file(cps_packer *c, uint32_t i)
{
    const char *name = cps_path_quote(c->a, c->k->vars.data[i].name);
    return strlen(name) > 200 ? cps_arena_printf(c->a, "%u.bin", i)
                              : cps_arena_printf(c->a, "%u-%s.bin", i, name);
}

static void
write_vars(cps_packer *c, cps_jsonw *w)
{
    cps_jsonw_key(w, "var");
    cps_jsonw_obj(w, false);
    for (uint32_t i = 0; i < c->k->vars.n; i++) {
        const cps_kvar *v = &c->k->vars.data[i];
        bool planned = c->backing && c->backing[i] >= 0, pad = v->kind == CPS_VAR_TMP && planned;
        static const char *const kind[CPS_VARKINDS] = {
            [CPS_VAR_SB] = "state-buffer", [CPS_VAR_INPUT] = "input",
            [CPS_VAR_OUTPUT] = "output",   [CPS_VAR_INOUT] = "input",
            [CPS_VAR_TMP] = "tmp-buf",     [CPS_VAR_DATA] = "file",
            [CPS_VAR_SHARED] = "shared"};
        cps_jsonw_key(w, v->name);
        cps_jsonw_obj(w, true);
        cps_jsonw_put_str(w, "type", pad ? "virtual" : kind[v->kind]);
        cps_jsonw_put_int(w, "var_id", i);
        cps_jsonw_put_int(w, "size", v->bytes);
        if (pad || (v->kind == CPS_VAR_SHARED && planned))
            cps_jsonw_put_int(w, "backing_variable_off", c->backing[i]);
        if (v->kind == CPS_VAR_DATA) {
            const char *file = constant_file(c, i);
            cps_jsonw_put_str(w, "file_name", file);
            cps_neff_add(c->f, cps_arena_printf(c->a, "%s/%s", c->dir, file), v->data,
                         (size_t)v->bytes);
        }
        cps_jsonw_end_obj(w);
    }
    cps_jsonw_end_obj(w);
}

/* Queues as the blocks use them: "in" when all they read are inputs, "out" when all they write
 * are outputs, else "data". Every transfer goes over all sixteen DMA engines. */
static void
write_queues(cps_packer *c, cps_jsonw *w)
{
    const cps_kbin *k = c->k;
    cps_jsonw_key(w, "dma_queue");
    cps_jsonw_obj(w, false);
    for (uint32_t i = 0; i < k->blocks.n; i++) {
        const char *name = k->blocks.data[i].queue;
        bool in = true, out = true, seen = false;
        uint8_t sem[256] = {0};
        for (uint32_t n = 0; n < k->blocks.n && !seen; n++) {
            const cps_kblock *b = &k->blocks.data[n];
            if (strcmp(b->queue, name))
                continue;
            seen = n < i;
            sem[b->semaphore] = 1;
            for (uint32_t q = 0; q < b->ndesc; q++) {
                const cps_kdesc *d = &k->descs.data[b->first + q];
                in &= k->vars.data[d->from].kind == CPS_VAR_INPUT;
                out &= k->vars.data[d->to].kind == CPS_VAR_OUTPUT;
            }
        }
        if (seen)
            continue;
        cps_jsonw_key(w, name);
        cps_jsonw_obj(w, true);
        cps_jsonw_put_str(w, "type", in ? "in" : out ? "out" : "data");
        cps_jsonw_put_str(w, "owner", cps_engine_name(k->blocks.data[i].owner));
        cps_jsonw_put_int(w, "num_queues", 16);
        cps_jsonw_key(w, "semaphore_set");
        cps_jsonw_arr(w, true);
        for (unsigned s = 0; s < 256; s++)
            if (sem[s])
                cps_jsonw_int(w, s);
        cps_jsonw_end_arr(w);
        cps_jsonw_end_obj(w);
    }
    cps_jsonw_end_obj(w);
}

static void
write_def(cps_packer *c)
{
    cps_buf b = {0};
    cps_jsonw w;
    cps_jsonw_init(&w, &b);
    cps_jsonw_obj(&w, false);
    cps_jsonw_put_str(&w, "name", c->dir);
    cps_jsonw_put_str(&w, "version", "0.6");
    write_vars(c, &w);
    write_queues(c, &w);
    cps_jsonw_key(&w, "neff_features");
    cps_jsonw_arr(&w, true);
    for (unsigned i = 0; i < cps_neff_nfeatures; i++)
        if (cps_neff_features[i].listed && c->features & cps_neff_features[i].bit)
            cps_jsonw_str(&w, cps_neff_features[i].name);
    cps_jsonw_end_arr(&w);
    for (int e = 0; e < CPS_ENGINES; e++) {
        const char *name = cps_engine_name((cps_engine)e);
        cps_jsonw_put_str(&w, name, cps_arena_printf(c->a, "%s.json", name));
        cps_jsonw_put_str(&w, cps_arena_printf(c->a, "%s_instr", name),
                          cps_arena_printf(c->a, "%s.bin", name));
    }
    cps_jsonw_end_obj(&w);
    add_text(c, cps_arena_printf(c->a, "%s/def.json", c->dir), &w);
}

const char *
cps_neff_set_name(cps_packer *c, unsigned set)
{
    const char *name = cps_actset_name(set);
    return name ? name : cps_arena_printf(c->a, "set_%u", set);
}

static void
write_engines(cps_packer *c)
{
    for (int e = 0; e < CPS_ENGINES; e++) {
        const char *name = cps_engine_name((cps_engine)e);
        cps_buf b = {0};
        cps_jsonw w;
        cps_jsonw_init(&w, &b);
        cps_jsonw_obj(&w, false);
        cps_jsonw_put_str(&w, "name", name);
        cps_jsonw_put_str(&w, "instr", cps_arena_printf(c->a, "%s.bin", name));
        cps_jsonw_key(&w, "dma");
        cps_pkg_items_write(c->k, (cps_engine)e, true, &w);
        if (e == CPS_ACT) {
            cps_jsonw_key(&w, "activation_function_sets");
            cps_jsonw_arr(&w, true);
            for (unsigned s = 0; s < 32; s++)
                if (c->sets[c->k->core] >> s & 1)
                    cps_jsonw_str(&w, cps_neff_set_name(c, s));
            cps_jsonw_end_arr(&w);
        }
        cps_jsonw_end_obj(&w);
        add_text(c, cps_arena_printf(c->a, "%s/%s.json", c->dir, name), &w);
        cps_neff_add(c->f, cps_arena_printf(c->a, "%s/%s.bin", c->dir, name),
                     c->k->stream[e].code.data,
                     (size_t)c->k->stream[e].code.n * CPS_BUNDLE_BYTES);
    }
}

static void
write_tensor_map(cps_packer *c)
{
    cps_buf b = {0};
    cps_jsonw w;
    cps_jsonw_init(&w, &b);
    cps_jsonw_obj(&w, false);
    cps_jsonw_key(&w, "inputs");
    cps_jsonw_arr(&w, true);
    for (uint32_t i = 0; i < c->in.n; i++)
        cps_jsonw_str(&w, c->in.data[i].name);
    cps_jsonw_end_arr(&w);
    cps_jsonw_key(&w, "outputs");
    cps_jsonw_arr(&w, true);
    for (uint32_t i = 0; i < c->out.n; i++)
        cps_jsonw_str(&w, c->out.data[i].name);
    cps_jsonw_end_arr(&w);
    cps_jsonw_key(&w, "alias_map");
    cps_jsonw_arr(&w, false);
    for (uint32_t i = 0; i < c->out.n; i++) {
        for (uint32_t n = 0; n < c->in.n; n++) {
            if (strcmp(c->out.data[i].var, c->in.data[n].var))
                continue;
            cps_jsonw_obj(&w, true); // handed through, or changed in place
            cps_jsonw_put_str(&w, "input_name", c->in.data[n].name);
            cps_jsonw_put_str(&w, "output_name", c->out.data[i].name);
            cps_jsonw_key(&w, "must_alias");
            cps_jsonw_bool(&w, true);
            cps_jsonw_end_obj(&w);
        }
    }
    cps_jsonw_end_arr(&w);
    cps_jsonw_end_obj(&w);
    add_text(c, cps_arena_printf(c->a, "%s/tensor_map.json", c->dir), &w);
}

static void
put_borders(cps_jsonw *w, const char *key, const cps_neff_border *x, uint32_t n)
{
    cps_jsonw_key(w, key);
    cps_jsonw_arr(w, false);
    for (uint32_t i = 0; i < n; i++) {
        cps_jsonw_obj(w, true);
        cps_jsonw_put_str(w, "dtype", cps_dtype_name(x[i].dtype));
        cps_jsonw_put_str(w, "name", x[i].name);
        put_shape(w, "shape", x[i].rank, x[i].dim);
        cps_jsonw_put_str(w, "var", x[i].var);
        cps_jsonw_end_obj(w);
    }
    cps_jsonw_end_arr(w);
}

static void
put_relocs(cps_jsonw *w, const cps_kbin *k)
{
    cps_jsonw_key(w, "relocs");
    cps_jsonw_arr(w, false);
    for (uint32_t i = 0; i < k->relocs.n; i++) {
        const cps_kreloc *r = &k->relocs.data[i];
        cps_jsonw_obj(w, true);
        cps_jsonw_put_int(w, "addend", r->addend);
        cps_jsonw_put_int(w, "bundle", r->index);
        cps_jsonw_put_str(w, "engine", cps_engine_name(r->engine));
        cps_jsonw_put_str(w, "field", cps_fields[r->field].name);
        cps_jsonw_put_str(w, "var", k->vars.data[r->var].name);
        cps_jsonw_end_obj(w);
    }
    cps_jsonw_end_arr(w);
}

static void
put_vars(cps_jsonw *w, const cps_kbin *k, const int64_t *backing)
{
    cps_jsonw_key(w, "vars");
    cps_jsonw_obj(w, false);
    for (uint32_t i = 1; i < k->vars.n; i++) {
        const cps_kvar *v = &k->vars.data[i];
        cps_jsonw_key(w, v->name);
        cps_jsonw_obj(w, true);
        cps_jsonw_put_str(w, "dtype", cps_dtype_name(v->dtype));
        cps_jsonw_put_str(w, "kind", cps_pkg_kinds[v->kind]);
        if (v->kind == CPS_VAR_DATA && backing && backing[i] >= 0)
            cps_jsonw_put_int(w, "offset", backing[i]); // by which graph.cir names it
        put_shape(w, "shape", v->rank, v->dim);
        cps_jsonw_end_obj(w);
    }
    cps_jsonw_end_obj(w);
}

static void
put_peaks(cps_jsonw *w, const cps_kbin *k)
{
    cps_jsonw_put_int(w, "psum_banks_peak", k->stats.psum_banks);
    cps_jsonw_put_int(w, "sbuf_peak_bytes_per_partition", k->stats.sbuf_peak);
}

/* What the format has no place for, and `copse run` wants back: under a name of our own, which
 * a loader passes over. */
static void
write_ours(cps_packer *c)
{
    const cps_kbin *k = c->k;
    char hex[65];
    cps_buf b = {0};
    cps_jsonw w;
    cps_jsonw_init(&w, &b);
    cps_jsonw_obj(&w, false);
    cps_kbin_extents_write(k, &w);
    cps_jsonw_put_str(&w, "generation", cps_gen_name(k->gen));
    put_borders(&w, "inputs", c->in.data, c->in.n);
    cps_jsonw_put_str(&w, "kernel", k->name);
    cps_jsonw_put_str(&w, "model", c->p->model);
    put_borders(&w, "outputs", c->out.data, c->out.n);
    if (k->peer) { // what core 1 has of its own; all else is said for both
        cps_jsonw_key(&w, "peer");
        cps_jsonw_obj(&w, false);
        cps_kbin_extents_write(k->peer, &w);
        put_peaks(&w, k->peer);
        put_relocs(&w, k->peer);
        put_vars(&w, k->peer, c->backings[1]);
        cps_jsonw_end_obj(&w);
    }
    put_relocs(&w, k);
    int64_t flops = 0, bytes = 0, roof = 0, engines = 0;
    for (uint32_t i = 0; i < c->p->steps.n; i++) {
        int32_t n = c->p->steps.data[i].kernel;
        if (n < 0 || (c->backing == NULL && c->p->kernels.data[n].kbin != k))
            continue;
        const cps_pkernel *pk = &c->p->kernels.data[n];
        flops += pk->flops;
        bytes += pk->bytes;
        roof += pk->roofline_ns;
        engines += pk->engines_ns;
        if (c->backing == NULL)
            break; // one kernel, however often the package runs it
    }
    cps_jsonw_key(&w, "roof");
    cps_jsonw_obj(&w, true);
    cps_jsonw_put_int(&w, "bytes", bytes);
    cps_jsonw_put_int(&w, "flops", flops);
    cps_jsonw_put_int(&w, "roofline_engines_ns", engines);
    cps_jsonw_put_int(&w, "roofline_ns", roof);
    cps_jsonw_end_obj(&w);
    put_peaks(&w, k);
    cps_jsonw_put_int(&w, "schema", 1);
    cps_jsonw_key(&w, "target");
    cps_jsonw_obj(&w, true);
    cps_digest_hex(&c->p->target_digest, hex);
    cps_jsonw_put_str(&w, "digest", hex);
    cps_jsonw_put_str(&w, "name", c->p->target);
    cps_jsonw_end_obj(&w);
    cps_jsonw_put_str(&w, "tool", "copse " CPS_VERSION);
    put_vars(&w, k, c->backing);
    cps_jsonw_end_obj(&w);
    add_text(c, "copse.json", &w);
}

void
cps_neff_members(cps_packer *c)
{
    c->k = c->first;
    c->backing = c->backings[0];
    write_kelf(c);
    write_host(c);
    write_ours(c);
    for (; c->k; c->k = c->k->peer) {
        c->backing = c->backings[c->k->core];
        c->dir = c->k->core ? "sg01" : "sg00";
        write_def(c);
        write_engines(c);
        write_tensor_map(c);
    }
}
