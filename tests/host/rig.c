/* See rig.h. */
#include "tests/host/rig.h"

#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { GUARD = 256, MARK = 0xA5 };

static void *
load(const cps_buf *so)
{
    char path[64];
    int fd = memfd_create("host.so", 0);
    if (fd < 0 || write(fd, so->data, so->n) != (ssize_t)so->n)
        return NULL;
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    void *lib = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!lib)
        fprintf(stderr, "dlopen: %s\n", dlerror());
    close(fd);
    return lib;
}

bool
rig_open(rig *r, cps_arena *a, const cps_module *m, const cps_func *f, int olevel,
         const char *cpu, int64_t embed, cps_diags *d)
{
    memset(r, 0, sizeof *r);
    int64_t *offset = cps_new_array(a, int64_t, m->consts.n + 1), at = 0;
    for (uint32_t i = 0; i < m->consts.n; i++) {
        int64_t bytes = cps_type_bytes(&m->consts.data[i].type);
        offset[i] = bytes <= embed ? -1 : at;
        at += bytes <= embed ? 0 : cps_round_up(bytes, 64);
    }
    r->weights = aligned_alloc(64, (size_t)cps_round_up(at + 64, 64));
    for (uint32_t i = 0; i < m->consts.n; i++)
        if (offset[i] >= 0)
            memcpy(r->weights + offset[i], m->consts.data[i].data,
                   (size_t)cps_type_bytes(&m->consts.data[i].type));
    cps_host_opts o = {.olevel = olevel, .cpu = cpu};
    cps_buf so = {0};
    bool ok = cps_host_compile(m, f, offset, &o, getenv("RIG_LLVM") != NULL, &r->code, d) &&
              cps_host_link(r->code.object.data, r->code.object.n, &so, d);
    if (ok && getenv("RIG_LLVM"))
        fprintf(stderr, "%s\n", r->code.llvm.data);
    if (ok) {
        r->lib = load(&so);
        ok = r->lib != NULL;
    }
    cps_buf_fini(&so);
    if (!ok)
        return false;
    *(void **)&r->run = dlsym(r->lib, "cps_model_run");
    const uint64_t *scratch = dlsym(r->lib, "cps_model_scratch_bytes");
    const uint64_t *weights = dlsym(r->lib, "cps_model_weights_bytes");
    r->scratch = scratch ? (int64_t)*scratch : -1;
    return r->run && scratch && weights && (int64_t)*weights <= at &&
           r->scratch == r->code.scratch_bytes;
}

static bool
guarded(const uint8_t *p)
{
    for (int i = 0; i < GUARD; i++)
        if (p[i] != MARK)
            return false;
    return true;
}

bool
rig_run(const rig *r, const cps_func *f, const void *const *in, void **out)
{
    uint8_t *room[256];
    void *place[256];
    size_t s = (size_t)r->scratch;
    uint8_t *scratch = aligned_alloc(64, (size_t)cps_round_up((int64_t)s + 2 * GUARD, 64));
    memset(scratch, MARK, s + 2 * GUARD);
    memset(scratch + GUARD, 0xCD, s); // stale bytes must not matter
    for (uint32_t i = 0; i < f->outputs.n; i++) {
        size_t n = (size_t)cps_type_bytes(&f->vals.data[f->outputs.data[i]].type);
        room[i] = malloc(n + 2 * GUARD);
        memset(room[i], MARK, n + 2 * GUARD);
        place[i] = room[i] + GUARD;
    }
    bool ok = r->run(r->weights, in, place, scratch + GUARD) == 0;
    ok = ok && guarded(scratch) && guarded(scratch + GUARD + s);
    for (uint32_t i = 0; i < f->outputs.n; i++) {
        size_t n = (size_t)cps_type_bytes(&f->vals.data[f->outputs.data[i]].type);
        ok = ok && guarded(room[i]) && guarded(room[i] + GUARD + n);
        memcpy(out[i], place[i], n);
        free(room[i]);
    }
    free(scratch);
    return ok;
}

void
rig_close(rig *r)
{
    cps_buf_fini(&r->code.object);
    cps_buf_fini(&r->code.llvm);
    cps_buf_fini(&r->code.header);
    if (r->lib)
        dlclose(r->lib);
    free(r->weights);
}

void
rig_fill(cps_rng *r, const cps_type *t, rig_data how, int64_t bound, void *dst)
{
    static const double odd[] = {0.0,   -0.0, INFINITY, -INFINITY, (double)NAN, 1e30, -1e-30,
                                 1e-41, 88.9, -104,     0.5,       -3.4e38,     1e6,  -2.5,
                                 1,     -1,   2};
    uint8_t *p = dst;
    unsigned size = cps_dtype_bytes(t->dtype);
    for (int64_t i = 0, n = cps_type_count(t); i < n; i++, p += size) {
        if (!cps_dtype_is_float(t->dtype)) {
            int64_t v = (int64_t)cps_rng_below(r, 13) - 6;
            if (bound > 0)
                v = (int64_t)cps_rng_below(r, (uint64_t)(2 * bound)) - bound;
            else if (how == RIG_ODD && cps_rng_below(r, 4) == 0)
                v = (int64_t)cps_rng_next(r);
            if (bound > 0 && cps_dtypes[t->dtype].kind == 'U' && v < 0)
                v += bound;
            cps_from_i64(t->dtype, p, v);
            if (how == RIG_NONZERO && cps_to_i64(t->dtype, p) == 0)
                cps_from_i64(t->dtype, p, 3);
            continue;
        }
        double v = cps_rng_normal(r) * (how == RIG_SMALL ? 0.1 : 2);
        if (how == RIG_ODD && cps_rng_below(r, 4) == 0)
            v = odd[cps_rng_below(r, cps_countof(odd))];
        cps_from_f64(t->dtype, p, how == RIG_POSITIVE ? fabs(v) + 0.1 : v);
    }
}

static bool
compare(const cps_type *t, const void *got, const cps_tensor *ref, double tol, double scale,
        const char *what, unsigned output)
{
    int64_t n = cps_type_count(t);
    unsigned size = cps_dtype_bytes(t->dtype);
    uint8_t *want = malloc((size_t)(n * size) + 1);
    double top = 0;
    cps_tensor_store(ref, t->dtype, want);
    if (t->dtype == CPS_DT_BF16)
        tol = CPS_MAX(tol, 0x1p-7);
    if (t->dtype == CPS_DT_FP16 || t->dtype == CPS_DT_TF32)
        tol = CPS_MAX(tol, 0x1p-10);
    for (int64_t i = 0; i < n && cps_dtype_is_float(t->dtype); i++) {
        double w = cps_to_f64(t->dtype, want + i * size);
        top = isfinite(w) ? CPS_MAX(top, fabs(w)) : top;
    }
    if (scale >= 1) // sums that cancel: nothing is known below the size of their terms
        top = CPS_MAX(top, 0.01);
    bool ok = true;
    for (int64_t i = 0; ok && i < n; i++) {
        const uint8_t *a = (const uint8_t *)got + i * size, *b = want + i * size;
        if (!cps_dtype_is_float(t->dtype)) {
            ok = memcmp(a, b, size) == 0;
            if (!ok)
                fprintf(stderr, "%s: output %u %s[%lld] is %lld, want %lld\n", what, output,
                        cps_dtype_name(t->dtype), (long long)i,
                        (long long)cps_to_i64(t->dtype, a), (long long)cps_to_i64(t->dtype, b));
            continue;
        }
        double x = cps_to_f64(t->dtype, a), y = cps_to_f64(t->dtype, b);
        double room = tol * (fabs(y) + scale * top) + 1e-37;
        ok = isnan(y) ? isnan(x) : x == y || fabs(x - y) <= room;
        // Next to the largest number, a rounding up is infinity.
        if (!ok && isinf(x) && fabs(y) > 3.4028e38 && t->dtype != CPS_DT_FP16)
            ok = (x > 0) == (y > 0);
        if (!ok)
            fprintf(stderr, "%s: output %u %s[%lld] is %.9g, want %.9g\n", what, output,
                    cps_dtype_name(t->dtype), (long long)i, x, y);
    }
    free(want);
    return ok;
}

bool
rig_check(cps_arena *a, const cps_module *m, const cps_func *f, const void *const *in,
          double tol, double scale, bool fp32, const char *what)
{
    cps_diags *d = cps_diags_create();
    rig r;
    bool ok = rig_open(&r, a, m, f, 2, NULL, 64, d);
    cps_tensor *ti = cps_new_array(a, cps_tensor, f->inputs.n + 1);
    cps_tensor *to = cps_new_array(a, cps_tensor, f->outputs.n + 1);
    void **out = cps_new_array(a, void *, f->outputs.n + 1);
    for (uint32_t i = 0; i < f->inputs.n; i++)
        ti[i] = cps_tensor_from(a, &f->vals.data[f->inputs.data[i]].type, in[i]);
    for (uint32_t i = 0; i < f->outputs.n; i++)
        out[i] = cps_arena_alloc(
            a, (size_t)cps_type_bytes(&f->vals.data[f->outputs.data[i]].type) + 1);
    cps_eval_opts o = {.fp32 = fp32, .threads = 1};
    ok = ok && cps_ir_eval(a, m, f, ti, to, &o, d);
    if (ok && !rig_run(&r, f, in, out)) {
        fprintf(stderr, "%s: writes outside its buffers, or fails\n", what);
        ok = false;
    }
    for (uint32_t i = 0; ok && i < f->outputs.n; i++)
        ok = compare(&f->vals.data[f->outputs.data[i]].type, out[i], &to[i], tol, scale, what,
                     i);
    rig_close(&r);
    if (!ok) {
        cps_buf b = {0};
        cps_diags_render(d, &b, false);
        cps_ir_print((cps_module *)(uintptr_t)m, &b);
        fprintf(stderr, "%s failed:\n%.*s\n", what, (int)CPS_MIN(b.n, 4000), b.data);
        cps_buf_fini(&b);
    }
    cps_diags_destroy(d);
    return ok;
}
