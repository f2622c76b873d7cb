/* Running host code: shared-object bytes are loaded from memory (memfd, so that no file is left
 * anywhere), called once and let go. Weights are the package's own mapped file, or a buffer
 * laid out here when the constants were never written to one. */
#include "frontend/execute.h"

#include "codegen/host/host.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

typedef int run_fn(const void *weights, const void *const *in, void *const *out, void *scratch);

typedef struct loaded {
    void *lib;
    run_fn *run;
    uint64_t scratch, weights; // bytes the code wants
} loaded;

enum { ALIGN = 64 };

static void *
aligned(cps_arena *a, uint64_t bytes)
{
    uint8_t *p = cps_arena_raw(a, (size_t)bytes + ALIGN);
    return p + (ALIGN - (uintptr_t)p % ALIGN) % ALIGN;
}

static bool
write_all(int fd, const uint8_t *p, size_t n)
{
    while (n) {
        ssize_t did = write(fd, p, n);
        if (did < 0 && errno == EINTR)
            continue;
        if (did <= 0)
            return false;
        p += did;
        n -= (size_t)did;
    }
    return true;
}

static bool
load(cps_cli *c, const void *so, size_t n, loaded *out)
{
    char path[64];
    int fd = memfd_create("host.so", MFD_CLOEXEC);
    if (fd < 0 || !write_all(fd, so, n)) {
        cps_error(c->diags, CPS_E1002, CPS_NOSPAN, "host code cannot be put in memory: %s",
                  strerror(errno));
        if (fd >= 0)
            close(fd);
        return false;
    }
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    out->lib = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    close(fd);
    if (!out->lib) {
        cps_error(c->diags, CPS_E8002, CPS_NOSPAN, "host.so cannot be loaded: %s", dlerror());
        return false;
    }
    *(void **)&out->run = dlsym(out->lib, "cps_model_run");
    const uint64_t *scratch = dlsym(out->lib, "cps_model_scratch_bytes");
    const uint64_t *weights = dlsym(out->lib, "cps_model_weights_bytes");
    if (!out->run || !scratch || !weights) {
        cps_error(c->diags, CPS_E8002, CPS_NOSPAN,
                  "host.so does not export cps_model_run and its sizes");
        dlclose(out->lib);
        return false;
    }
    out->scratch = *scratch;
    out->weights = *weights;
    return true;
}

// Calls the code and unloads it; outputs get memory where they have none.
static bool
call(cps_cli *c, loaded *l, const void *weights, const cps_io *in, unsigned nin, cps_io *out,
     unsigned nout, double *wall_ms)
{
    const void **pi = cps_new_array(c->arena, const void *, nin + 1);
    void **po = cps_new_array(c->arena, void *, nout + 1);
    for (unsigned i = 0; i < nin; i++)
        pi[i] = in[i].data;
    for (unsigned i = 0; i < nout; i++) {
        if (!out[i].data)
            out[i].data = cps_arena_alloc(c->arena, (size_t)cps_type_bytes(&out[i].type) + 1);
        po[i] = out[i].data;
    }
    void *scratch = malloc((size_t)l->scratch + ALIGN);
    if (!scratch)
        cps_out_of_memory((size_t)l->scratch + ALIGN);
    uint8_t *at = (uint8_t *)scratch + (ALIGN - (uintptr_t)scratch % ALIGN) % ALIGN;
    double t0 = cps_now_ms();
    int code = l->run(weights, pi, po, at);
    *wall_ms = cps_now_ms() - t0;
    free(scratch);
    dlclose(l->lib);
    if (code != 0)
        cps_error(c->diags, CPS_E8002, CPS_NOSPAN, "host code ended with code %d", code);
    return code == 0;
}

bool
cps_execute_host_func(cps_cli *c, cps_module *m, cps_func *f, const cps_io *in, unsigned nin,
                      cps_io *out, unsigned nout, cps_report *rep)
{
    cps_assert(nin == f->inputs.n && nout == f->outputs.n);
    int64_t *offset = cps_new_array(c->arena, int64_t, m->consts.n + 1), bytes = 0;
    for (uint32_t i = 0; i < m->consts.n; i++) {
        offset[i] = bytes;
        bytes += cps_round_up(cps_type_bytes(&m->consts.data[i].type), ALIGN);
    }
    uint8_t *weights = aligned(c->arena, (uint64_t)bytes);
    for (uint32_t i = 0; i < m->consts.n; i++)
        memcpy(weights + offset[i], m->consts.data[i].data,
               (size_t)cps_type_bytes(&m->consts.data[i].type));
    cps_host_opts o = {.olevel = 3};
    cps_host_out code = {0};
    cps_buf so = {0};
    double t0 = cps_now_ms();
    bool ok = cps_host_compile(m, f, offset, &o, false, &code, c->diags) &&
              cps_host_link(code.object.data, code.object.n, &so, c->diags);
    rep->compile_ms = cps_now_ms() - t0;
    loaded l;
    ok = ok && load(c, so.data, so.n, &l) &&
         call(c, &l, weights, in, nin, out, nout, &rep->wall_ms);
    cps_buf_fini(&so);
    cps_buf_fini(&code.object);
    cps_buf_fini(&code.llvm);
    cps_buf_fini(&code.header);
    return ok;
}

// Constants of a package that was never written, at the offsets its code knows.
static const void *
lay_out(cps_cli *c, const cps_package *p, uint64_t bytes)
{
    uint8_t *w = aligned(c->arena, bytes);
    memset(w, 0, (size_t)bytes);
    for (uint32_t i = 0; i < p->vars.n; i++) {
        const cps_pvar *v = &p->vars.data[i];
        if (v->kind != CPS_PV_CONST || v->offset < 0 || v->bytes < 0 ||
            (uint64_t)v->offset > bytes || (uint64_t)v->bytes > bytes - (uint64_t)v->offset)
            continue; // not among what the host code reads
        memcpy(w + v->offset, v->data, (size_t)v->bytes);
    }
    return w;
}

bool
cps_execute_host_so(cps_cli *c, const cps_package *p, const cps_io *in, cps_io *out)
{
    loaded l;
    double wall;
    if (!p->host_so) {
        cps_error(c->diags, CPS_E8002, CPS_NOSPAN, "the package has no host.so");
        cps_help(c->diags,
                 "compile the model again; the host code generator must be installed");
        return false;
    }
    if (!load(c, p->host_so, p->host_so_bytes, &l))
        return false;
    const void *weights = p->weights.data;
    if (!weights) {
        weights = lay_out(c, p, l.weights);
    } else if (p->weights.n < l.weights) {
        cps_error(c->diags, CPS_E8002, CPS_NOSPAN,
                  "weights.bin has %zu bytes, host.so reads up to %llu", p->weights.n,
                  (unsigned long long)l.weights);
        dlclose(l.lib);
        return false;
    }
    return call(c, &l, weights, in, p->inputs.n, out, p->outputs.n, &wall);
}
