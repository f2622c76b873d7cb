/* Renders a package: the bytes of every file of its folder except weights.bin, and where each
 * piece of that one comes from. Keys of every JSON object are sorted, numbers are plain, paths
 * are relative: two compiles of one input give the same bytes. The manifest is the last file.
 */
#include "runtime/pkg/package.h"

#include "runtime/base/file.h"
#include "runtime/base/json.h"
#include "runtime/pkg/package_plan.h"

#include <string.h>

cps_package *
cps_package_new(cps_arena *a, const char *model, const char *target)
{
    cps_package *p = cps_new(a, cps_package);
    p->arena = a;
    p->model = model;
    p->target = target;
    p->lnc = 1;
    return p;
}

static void
put_digest(cps_jsonw *w, const char *key, const cps_digest *d)
{
    char hex[65];
    cps_digest_hex(d, hex);
    cps_jsonw_key(w, key);
    cps_jsonw_str(w, hex);
}

static void
put_io(cps_jsonw *w, const cps_package *p, const char *key, const cps_pio *ios, uint32_t n)
{
    cps_jsonw_key(w, key);
    cps_jsonw_arr(w, false);
    for (uint32_t i = 0; i < n; i++) {
        const cps_pvar *v = &p->vars.data[ios[i].var];
        cps_jsonw_obj(w, true);
        cps_jsonw_put_str(w, "dtype", cps_dtype_name(v->dtype));
        cps_jsonw_put_str(w, "name", ios[i].name);
        cps_jsonw_key(w, "shape");
        cps_jsonw_arr(w, true);
        for (int k = 0; k < ios[i].rank; k++)
            cps_jsonw_int(w, ios[i].dim[k]);
        cps_jsonw_end_arr(w);
        cps_jsonw_put_int(w, "var", ios[i].var);
        cps_jsonw_end_obj(w);
    }
    cps_jsonw_end_arr(w);
}

/* The name of a file in its kernel's folder. */
static const char *
in_folder(const cps_pfile *f)
{
    const char *at = strchr(f->name, '/'); // kernels/NAME/
    return strchr(at + 1, '/') + 1;
}

/* SHA-256 of each file of a kernel's folder, by name. The listing has none: it says in text what
 * the streams and kernel.json say, and is larger than all of them. */
static void
put_digests(cps_jsonw *w, const cps_pfile *f, uint32_t n)
{
    cps_jsonw_key(w, "digests");
    cps_jsonw_obj(w, false);
    const char *last = "";
    for (uint32_t done = 0; done < n; done++) {
        const cps_pfile *next = NULL;
        for (uint32_t i = 0; i < n; i++) {
            const char *name = in_folder(&f[i]);
            if (strcmp(name, last) > 0 && (!next || strcmp(name, in_folder(next)) < 0))
                next = &f[i];
        }
        last = in_folder(next);
        if (!strcmp(cps_path_base(last), "kernel.cas"))
            continue;
        cps_digest d = cps_digest_of(next->data, next->n);
        put_digest(w, last, &d);
    }
    cps_jsonw_end_obj(w);
}

static void
put_kernel(cps_jsonw *w, const cps_pkernel *k, const cps_pfile *files, uint32_t n)
{
    cps_jsonw_obj(w, false);
    cps_jsonw_put_str(w, "bound", k->bound);
    cps_jsonw_put_int(w, "bytes", k->bytes);
    // what the static proof says of the binary: proved, refuted or open
    cps_jsonw_key(w, "checks");
    cps_jsonw_obj(w, true);
    cps_jsonw_put_str(w, "deadlock", cps_verdict_names[k->kbin->stats.deadlock]);
    cps_jsonw_put_str(w, "races", cps_verdict_names[k->kbin->stats.races]);
    cps_jsonw_end_obj(w);
    cps_jsonw_put_str(w, "config", k->config);
    cps_jsonw_put_int(w, "cost_ns", k->cost_ns);
    put_digests(w, files, n);
    cps_jsonw_put_int(w, "flops", k->flops);
    cps_jsonw_put_str(w, "instance", k->instance);
    put_digest(w, "key", &k->key);
    cps_jsonw_put_str(w, "leaf", k->leaf);
    cps_jsonw_put_str(w, "name", k->name);
    cps_jsonw_put_str(w, "op", k->op);
    cps_jsonw_put_int(w, "roofline_engines_ns", k->engines_ns);
    cps_jsonw_put_int(w, "roofline_ns", k->roofline_ns);
    cps_jsonw_put_str(w, "why", k->why);
    cps_jsonw_end_obj(w);
}

static void
manifest(const cps_package *p, const cps_rendered *r, const uint32_t *first, cps_buf *out)
{
    cps_jsonw w;
    cps_jsonw_init(&w, out);
    cps_jsonw_obj(&w, false);
    cps_jsonw_put_int(&w, "arena_bytes", p->arena_bytes);
    cps_jsonw_key(&w, "graph");
    p->graph ? cps_jsonw_str(&w, "graph.cir") : cps_jsonw_null(&w);
    cps_jsonw_key(&w, "host");
    p->host_so ? cps_jsonw_str(&w, "host.so") : cps_jsonw_null(&w);
    put_io(&w, p, "inputs", p->inputs.data, p->inputs.n);
    cps_jsonw_key(&w, "kernels");
    cps_jsonw_arr(&w, false);
    for (uint32_t i = 0; i < p->kernels.n; i++)
        put_kernel(&w, &p->kernels.data[i], r->files.list.data + first[i],
                   first[i + 1] - first[i]);
    cps_jsonw_end_arr(&w);
    cps_jsonw_put_str(&w, "model", p->model);
    put_io(&w, p, "outputs", p->outputs.data, p->outputs.n);
    cps_jsonw_put_int(&w, "schema", 1);
    cps_jsonw_key(&w, "steps");
    cps_jsonw_arr(&w, false);
    for (uint32_t i = 0; i < p->steps.n; i++) {
        const cps_pstep *s = &p->steps.data[i];
        cps_jsonw_obj(&w, true);
        cps_jsonw_key(&w, "args");
        cps_jsonw_obj(&w, true);
        for (uint32_t k = 0; k < s->nargs; k++)
            cps_jsonw_put_int(&w, p->args.data[s->first + k].formal,
                              p->args.data[s->first + k].var);
        cps_jsonw_end_obj(&w);
        if (s->from)
            cps_jsonw_put_str(&w, "from", s->from);
        s->kernel < 0 ? cps_jsonw_put_str(&w, "host", "run")
                      : cps_jsonw_put_str(&w, "kernel", p->kernels.data[s->kernel].name);
        cps_jsonw_end_obj(&w);
    }
    cps_jsonw_end_arr(&w);
    cps_jsonw_key(&w, "target");
    cps_jsonw_obj(&w, true);
    put_digest(&w, "digest", &p->target_digest);
    cps_jsonw_put_int(&w, "lnc", p->lnc);
    cps_jsonw_put_str(&w, "name", p->target);
    cps_jsonw_end_obj(&w);
    cps_jsonw_put_str(&w, "tool", "copse " CPS_VERSION);
    cps_jsonw_key(&w, "vars");
    cps_jsonw_arr(&w, false);
    for (uint32_t i = 0; i < p->vars.n; i++) {
        const cps_pvar *v = &p->vars.data[i];
        cps_jsonw_obj(&w, true);
        bool placed = v->kind == CPS_PV_CONST || v->kind == CPS_PV_TMP;
        if (placed)
            cps_jsonw_put_int(&w, "align",
                              v->kind == CPS_PV_CONST ? CPS_CONST_ALIGN : CPS_TMP_ALIGN);
        cps_jsonw_put_int(&w, "bytes", v->bytes);
        cps_jsonw_put_str(&w, "dtype", cps_dtype_name(v->dtype));
        if (v->kind == CPS_PV_CONST)
            cps_jsonw_put_str(&w, "file", "weights.bin");
        cps_jsonw_put_str(&w, "kind", cps_pkind_names[v->kind]);
        cps_jsonw_put_str(&w, "name", v->name);
        if (placed)
            cps_jsonw_put_int(&w, "offset", v->offset);
        cps_jsonw_key(&w, "shape");
        cps_jsonw_arr(&w, true);
        for (int k = 0; k < v->rank; k++)
            cps_jsonw_int(&w, v->dim[k]);
        cps_jsonw_end_arr(&w);
        cps_jsonw_end_obj(&w);
    }
    cps_jsonw_end_arr(&w);
    cps_jsonw_put_int(&w, "weights_bytes", p->weights_bytes);
    cps_jsonw_end_obj(&w);
    cps_jsonw_done(&w);
}

static void
add_text(cps_rendered *r, const char *name, const void *data, size_t n)
{
    if (data)
        cps_pfiles_add(&r->files, name, data, n);
}

void
cps_package_render(cps_package *p, cps_rendered *out)
{
    cps_package_plan(p);
    *out = (cps_rendered){.files.arena = p->arena, .weights_bytes = p->weights_bytes};
    uint32_t *first = cps_new_array(p->arena, uint32_t, p->kernels.n + 1);
    for (uint32_t i = 0; i < p->kernels.n; i++) {
        first[i] = out->files.list.n;
        if (p->kernels.data[i].kbin->peer)
            p->lnc = 2;
        cps_kbin_files(p->kernels.data[i].kbin,
                       cps_arena_printf(p->arena, "kernels/%s/", p->kernels.data[i].name),
                       &out->files);
        const cps_pkernel *k = &p->kernels.data[i];
        const char *core0 = k->kbin->peer ? "core0/" : "";
        if (k->text_name)
            add_text(out, cps_arena_printf(p->arena, "kernels/%s/%s%s", k->name, core0, k->text_name),
                     k->text, k->text_bytes);
        if (k->text_name && k->kbin->peer)
            add_text(out, cps_arena_printf(p->arena, "kernels/%s/core1/%s", k->name, k->text_name),
                     k->peer_text, k->peer_text_bytes);
    }
    first[p->kernels.n] = out->files.list.n;
    for (uint32_t i = 0; i < p->vars.n; i++) {
        const cps_pvar *v = &p->vars.data[i];
        if (v->kind == CPS_PV_CONST && v->bytes)
            cps_vec_push(p->arena, &out->weights,
                         ((cps_pweight){v->offset, v->bytes, v->data}));
    }
    add_text(out, "graph.cir", p->graph, p->graph_bytes);
    if (p->host_so) {
        add_text(out, "host.o", p->host_o, p->host_o_bytes);
        add_text(out, "host.so", p->host_so, p->host_so_bytes);
        add_text(out, "host.h", p->host_h, strlen(p->host_h));
    }
    cps_buf b = {0};
    manifest(p, out, first, &b);
    add_text(out, "manifest.json", b.data, b.n);
    cps_buf_fini(&b);
}
