/* Writes a package folder. Keys of every JSON object are sorted, numbers are plain, paths are
 * relative: two compiles of one input give the same bytes. The manifest is written last. */
#include "runtime/pkg/package.h"

#include "runtime/base/file.h"
#include "runtime/base/json.h"
#include "runtime/pkg/package_plan.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

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
put_str(cps_jsonw *w, const char *key, const char *s)
{
    cps_jsonw_key(w, key);
    cps_jsonw_str(w, s ? s : "");
}

static void
put_int(cps_jsonw *w, const char *key, int64_t v)
{
    cps_jsonw_key(w, key);
    cps_jsonw_int(w, v);
}

static void
put_io(cps_jsonw *w, const cps_package *p, const char *key, const cps_pio *ios, uint32_t n)
{
    cps_jsonw_key(w, key);
    cps_jsonw_arr(w, false);
    for (uint32_t i = 0; i < n; i++) {
        const cps_pvar *v = &p->vars.data[ios[i].var];
        cps_jsonw_obj(w, true);
        put_str(w, "dtype", cps_dtype_name(v->dtype));
        put_str(w, "name", ios[i].name);
        cps_jsonw_key(w, "shape");
        cps_jsonw_arr(w, true);
        for (int k = 0; k < ios[i].rank; k++)
            cps_jsonw_int(w, ios[i].dim[k]);
        cps_jsonw_end_arr(w);
        put_int(w, "var", ios[i].var);
        cps_jsonw_end_obj(w);
    }
    cps_jsonw_end_arr(w);
}

static void
put_kernel(cps_jsonw *w, const cps_pkernel *k)
{
    cps_jsonw_obj(w, false);
    put_str(w, "bound", k->bound);
    put_int(w, "bytes", k->bytes);
    put_str(w, "config", k->config);
    put_int(w, "cost_ns", k->cost_ns);
    put_int(w, "flops", k->flops);
    put_str(w, "instance", k->instance);
    put_digest(w, "key", &k->key);
    put_str(w, "leaf", k->leaf);
    put_str(w, "name", k->name);
    put_str(w, "op", k->op);
    put_int(w, "roofline_engines_ns", k->engines_ns);
    put_int(w, "roofline_ns", k->roofline_ns);
    put_str(w, "why", k->why);
    cps_jsonw_end_obj(w);
}

static void
manifest(const cps_package *p, cps_buf *out)
{
    cps_jsonw w;
    cps_jsonw_init(&w, out);
    cps_jsonw_obj(&w, false);
    put_int(&w, "arena_bytes", p->arena_bytes);
    cps_jsonw_key(&w, "graph");
    p->graph ? cps_jsonw_str(&w, "graph.cir") : cps_jsonw_null(&w);
    cps_jsonw_key(&w, "host");
    p->host_so ? cps_jsonw_str(&w, "host.so") : cps_jsonw_null(&w);
    put_io(&w, p, "inputs", p->inputs.data, p->inputs.n);
    cps_jsonw_key(&w, "kernels");
    cps_jsonw_arr(&w, false);
    for (uint32_t i = 0; i < p->kernels.n; i++)
        put_kernel(&w, &p->kernels.data[i]);
    cps_jsonw_end_arr(&w);
    put_str(&w, "model", p->model);
    put_io(&w, p, "outputs", p->outputs.data, p->outputs.n);
    put_int(&w, "schema", 1);
    cps_jsonw_key(&w, "steps");
    cps_jsonw_arr(&w, false);
    for (uint32_t i = 0; i < p->steps.n; i++) {
        const cps_pstep *s = &p->steps.data[i];
        cps_jsonw_obj(&w, true);
        cps_jsonw_key(&w, "args");
        cps_jsonw_obj(&w, true);
        for (uint32_t k = 0; k < s->nargs; k++)
            put_int(&w, p->args.data[s->first + k].formal, p->args.data[s->first + k].var);
        cps_jsonw_end_obj(&w);
        if (s->from)
            put_str(&w, "from", s->from);
        s->kernel < 0 ? put_str(&w, "host", "run") : put_str(&w, "kernel", p->kernels.data[s->kernel].name);
        cps_jsonw_end_obj(&w);
    }
    cps_jsonw_end_arr(&w);
    cps_jsonw_key(&w, "target");
    cps_jsonw_obj(&w, true);
    put_digest(&w, "digest", &p->target_digest);
    put_int(&w, "lnc", p->lnc);
    put_str(&w, "name", p->target);
    cps_jsonw_end_obj(&w);
    put_str(&w, "tool", "copse " CPS_VERSION);
    cps_jsonw_key(&w, "vars");
    cps_jsonw_arr(&w, false);
    for (uint32_t i = 0; i < p->vars.n; i++) {
        const cps_pvar *v = &p->vars.data[i];
        cps_jsonw_obj(&w, true);
        bool placed = v->kind == CPS_PV_CONST || v->kind == CPS_PV_TMP;
        if (placed)
            put_int(&w, "align", v->kind == CPS_PV_CONST ? CPS_CONST_ALIGN : CPS_TMP_ALIGN);
        put_int(&w, "bytes", v->bytes);
        put_str(&w, "dtype", cps_dtype_name(v->dtype));
        if (v->kind == CPS_PV_CONST)
            put_str(&w, "file", "weights.bin");
        put_str(&w, "kind", cps_pkind_names[v->kind]);
        put_str(&w, "name", v->name);
        if (placed)
            put_int(&w, "offset", v->offset);
        cps_jsonw_key(&w, "shape");
        cps_jsonw_arr(&w, true);
        for (int k = 0; k < v->rank; k++)
            cps_jsonw_int(&w, v->dim[k]);
        cps_jsonw_end_arr(&w);
        cps_jsonw_end_obj(&w);
    }
    cps_jsonw_end_arr(&w);
    put_int(&w, "weights_bytes", p->weights_bytes);
    cps_jsonw_end_obj(&w);
    cps_jsonw_done(&w);
}

static bool
write_all(int fd, const void *data, size_t n)
{
    const char *at = data;
    while (n) {
        ssize_t k = write(fd, at, n);
        if (k < 0 && errno == EINTR)
            continue;
        if (k <= 0)
            return false;
        at += k;
        n -= (size_t)k;
    }
    return true;
}

/* Constants straight from where they lie (often the mapped model file), holes as file holes. */
static bool
write_weights(const cps_package *p, const char *path)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (fd < 0)
        return false;
    bool ok = ftruncate(fd, p->weights_bytes) == 0;
    for (uint32_t i = 0; ok && i < p->vars.n; i++) {
        const cps_pvar *v = &p->vars.data[i];
        if (v->kind != CPS_PV_CONST || !v->bytes)
            continue;
        ok = lseek(fd, v->offset, SEEK_SET) == v->offset && write_all(fd, v->data, (size_t)v->bytes);
    }
    int saved = errno;
    ok = close(fd) == 0 && ok;
    errno = ok ? 0 : saved;
    return ok;
}

static bool
put_file(const cps_package *p, const char *dir, const char *name, const void *data, size_t n,
         cps_diags *d)
{
    const char *path = cps_path_join(p->arena, dir, name);
    if (cps_file_write(path, data, n))
        return true;
    cps_error(d, CPS_E8001, CPS_NOSPAN, "cannot write '%s': %s", path, strerror(errno));
    return false;
}

bool
cps_package_write(cps_package *p, const char *dir, cps_diags *d)
{
    cps_package_plan(p);
    const char *kdir = cps_path_join(p->arena, dir, "kernels");
    cps_package_clear(p->arena, dir);
    if (!cps_mkdirs(p->kernels.n ? kdir : dir)) {
        cps_error(d, CPS_E8001, CPS_NOSPAN, "cannot make '%s': %s", dir, strerror(errno));
        return false;
    }
    for (uint32_t i = 0; i < p->kernels.n; i++) {
        const char *kd = cps_path_join(p->arena, kdir, p->kernels.data[i].name);
        if (!cps_mkdirs(kd) || !cps_kbin_write(p->kernels.data[i].kbin, kd)) {
            cps_error(d, CPS_E8001, CPS_NOSPAN, "cannot write '%s': %s", kd, strerror(errno));
            return false;
        }
    }
    if (p->weights_bytes) {
        const char *path = cps_path_join(p->arena, dir, "weights.bin");
        if (!write_weights(p, path)) {
            cps_error(d, CPS_E8001, CPS_NOSPAN, "cannot write '%s': %s", path, strerror(errno));
            return false;
        }
    }
    bool ok = true;
    if (p->graph)
        ok = put_file(p, dir, "graph.cir", p->graph, p->graph_bytes, d);
    if (ok && p->host_so)
        ok = put_file(p, dir, "host.o", p->host_o, p->host_o_bytes, d) &&
             put_file(p, dir, "host.so", p->host_so, p->host_so_bytes, d) &&
             put_file(p, dir, "host.h", p->host_h, strlen(p->host_h), d);
    if (ok) {
        cps_buf b = {0};
        manifest(p, &b);
        ok = put_file(p, dir, "manifest.json", b.data, b.n, d);
        cps_buf_fini(&b);
    }
    return ok;
}
