/* Reads a package folder. Nothing in it is trusted: every number is held against its limits, every
 * name must exist, and paths cannot leave the folder because none are read from the files. */
#include "runtime/pkg/package.h"

#include "runtime/base/json.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#define MANIFEST_MAX ((size_t)64 << 20)
#define COUNT_MAX 1000000u
#define BYTES_MAX ((int64_t)1 << 42)

typedef struct reader {
    cps_package *p;
    cps_diags *d;
    const char *path; /* of the manifest */
    bool ok;
    bool changed; /* files may be others than the manifest's */
} reader;

static void
bad(reader *r, const char *what)
{
    if (r->ok)
        cps_error(r->d, CPS_E8002, CPS_NOSPAN, "'%s': %s", r->path, what);
    r->ok = false;
}

static int64_t
need_int(reader *r, const cps_json *o, const char *key, int64_t lo, int64_t hi)
{
    bool ok = true;
    int64_t v = cps_json_int(o, key, true, lo, &ok);
    if (!ok || v < lo || v > hi) {
        bad(r, cps_arena_printf(r->p->arena, "member '%s' must be an integer in %" PRId64 "..%" PRId64,
                                key, lo, hi));
        return lo;
    }
    return v;
}

static const char *
need_str(reader *r, const cps_json *o, const char *key)
{
    bool ok = true;
    const char *s = cps_json_str(o, key, true, "", &ok);
    if (!ok)
        bad(r, cps_arena_printf(r->p->arena, "member '%s' must be text", key));
    return s ? s : "";
}

static const cps_json *
need_arr(reader *r, const cps_json *o, const char *key)
{
    const cps_json *a = cps_json_get(o, key);
    if (!a || a->kind != CPS_JSON_ARR || a->n > COUNT_MAX) {
        bad(r, cps_arena_printf(r->p->arena, "member '%s' must be an array", key));
        return NULL;
    }
    return a;
}

static void
read_vars(reader *r, const cps_json *root)
{
    cps_package *p = r->p;
    const cps_json *arr = need_arr(r, root, "vars");
    for (const cps_json *o = arr ? arr->first : NULL; o && r->ok; o = o->next) {
        cps_pvar v = {0};
        v.name = need_str(r, o, "name");
        const char *kind = need_str(r, o, "kind");
        unsigned k = 0;
        while (k < CPS_PKINDS && strcmp(kind, cps_pkind_names[k]))
            k++;
        if (k == CPS_PKINDS) {
            bad(r, cps_arena_printf(p->arena, "variable '%s' has unknown kind '%s'", v.name, kind));
            return;
        }
        v.kind = (cps_pkind)k;
        const char *dt = need_str(r, o, "dtype");
        v.dtype = cps_dtype_parse(dt, strlen(dt));
        if (v.dtype == CPS_DT_NONE)
            bad(r, cps_arena_printf(p->arena, "variable '%s' has unknown dtype '%s'", v.name, dt));
        v.bytes = need_int(r, o, "bytes", 0, BYTES_MAX);
        if (v.kind == CPS_PV_CONST || v.kind == CPS_PV_TMP)
            v.offset = need_int(r, o, "offset", 0, BYTES_MAX);
        const cps_json *shape = need_arr(r, o, "shape");
        if (!shape || shape->n > CPS_MAX_RANK) {
            bad(r, "a shape has too many axes");
            return;
        }
        int64_t count = 1;
        for (const cps_json *e = shape->first; e; e = e->next) {
            if (e->kind != CPS_JSON_INT || e->i < 0 || e->i > BYTES_MAX ||
                __builtin_mul_overflow(count, e->i, &count)) {
                bad(r, cps_arena_printf(p->arena, "variable '%s' has a bad shape", v.name));
                return;
            }
            v.dim[v.rank++] = e->i;
        }
        if (r->ok && (count > BYTES_MAX || count * cps_dtype_bytes(v.dtype) != v.bytes))
            bad(r, cps_arena_printf(p->arena, "variable '%s': shape and bytes disagree", v.name));
        if (v.kind == CPS_PV_CONST) {
            if (v.offset > p->weights_bytes || v.bytes > p->weights_bytes - v.offset)
                bad(r, cps_arena_printf(p->arena, "constant '%s' lies outside weights.bin", v.name));
            else
                v.data = p->weights.data + v.offset;
        } else if (v.kind == CPS_PV_TMP &&
                   (v.offset > p->arena_bytes || v.bytes > p->arena_bytes - v.offset)) {
            bad(r, cps_arena_printf(p->arena, "temporary '%s' lies outside the arena", v.name));
        }
        cps_vec_push(p->arena, &p->vars, v);
    }
}

/* Whether the files of a kernel's folder are those that the manifest was written with. What it names no
 * digest of (the listing) is not looked at. */
static bool
unchanged(reader *r, const cps_json *kernel, const char *dir)
{
    const cps_json *all = cps_json_get(kernel, "digests");
    for (const cps_json *o = all && all->kind == CPS_JSON_OBJ ? all->first : NULL; o && r->ok; o = o->next) {
        cps_arena *a = r->p->arena;
        const char *path = cps_path_join(a, dir, o->key);
        cps_digest want;
        cps_file f;
        if (o->kind != CPS_JSON_STR || !cps_digest_parse(o->str, &want) || strstr(o->key, "..")) {
            bad(r, cps_arena_printf(a, "'%s' has no digest", o->key));
        } else if (!cps_file_open(path, true, &f)) {
            bad(r, cps_arena_printf(a, "'%s' is missing: %s", path, strerror(errno)));
        } else {
            cps_digest is = cps_digest_of(f.data, f.n);
            cps_file_close(&f);
            if (cps_digest_eq(&is, &want))
                continue;
            cps_error(r->d, CPS_E8004, CPS_NOSPAN, "'%s' is not the file that manifest.json was written with", path);
            cps_help(r->d, "compile again; or `--allow-changed` takes it as it is, and `copse sim` takes a kernel's "
                           "folder, %s, without the manifest", dir);
            r->ok = false;
        }
    }
    return r->ok;
}

static void
read_kernels(reader *r, const cps_json *root, const char *dir)
{
    cps_package *p = r->p;
    const char *kdir = cps_path_join(p->arena, dir, "kernels");
    const cps_json *arr = need_arr(r, root, "kernels");
    for (const cps_json *o = arr ? arr->first : NULL; o && r->ok; o = o->next) {
        cps_pkernel k = {0};
        k.name = need_str(r, o, "name");
        k.leaf = need_str(r, o, "leaf");
        k.op = need_str(r, o, "op");
        k.why = need_str(r, o, "why");
        k.instance = need_str(r, o, "instance");
        k.config = need_str(r, o, "config");
        k.cost_ns = need_int(r, o, "cost_ns", 0, INT64_MAX);
        k.flops = need_int(r, o, "flops", 0, INT64_MAX);
        k.bytes = need_int(r, o, "bytes", 0, INT64_MAX);
        k.roofline_ns = need_int(r, o, "roofline_ns", 0, INT64_MAX);
        k.engines_ns = need_int(r, o, "roofline_engines_ns", 0, INT64_MAX);
        k.bound = need_str(r, o, "bound");
        if (!cps_digest_parse(need_str(r, o, "key"), &k.key))
            bad(r, "a kernel's key is not a digest");
        // A folder name, never a path.
        if (!*k.name || k.name[0] == '.' || strchr(k.name, '/')) {
            bad(r, cps_arena_printf(p->arena, "'%s' is no name for a kernel", k.name));
            return;
        }
        if (!r->changed && !unchanged(r, o, cps_path_join(p->arena, kdir, k.name)))
            return;
        k.kbin = cps_kbin_read(p->arena, cps_path_join(p->arena, kdir, k.name), r->d);
        if (!k.kbin) {
            r->ok = false; // reported by the reader of the kernel
            return;
        }
        cps_vec_push(p->arena, &p->kernels, k);
    }
}

static void
read_steps(reader *r, const cps_json *root)
{
    cps_package *p = r->p;
    const cps_json *arr = need_arr(r, root, "steps");
    for (const cps_json *o = arr ? arr->first : NULL; o && r->ok; o = o->next) {
        cps_pstep s = {.kernel = -1, .first = p->args.n};
        const cps_json *k = cps_json_get(o, "kernel");
        if (k) {
            const char *name = need_str(r, o, "kernel");
            for (uint32_t i = 0; i < p->kernels.n; i++)
                if (!strcmp(p->kernels.data[i].name, name))
                    s.kernel = (int32_t)i;
            if (s.kernel < 0)
                bad(r, cps_arena_printf(p->arena, "a step names the unknown kernel '%s'", name));
        } else if (!cps_json_get(o, "host")) {
            bad(r, "a step has neither 'kernel' nor 'host'");
        }
        bool ok = true;
        s.from = cps_json_str(o, "from", false, NULL, &ok);
        const cps_json *args = cps_json_get(o, "args");
        if (!args || args->kind != CPS_JSON_OBJ || args->n > COUNT_MAX) {
            bad(r, "a step has no 'args'");
            return;
        }
        for (const cps_json *a = args->first; a; a = a->next) {
            if (a->kind != CPS_JSON_INT || a->i < 0 || a->i >= p->vars.n) {
                bad(r, cps_arena_printf(p->arena, "argument '%s' names no variable", a->key));
                return;
            }
            cps_vec_push(p->arena, &p->args, ((cps_parg){a->key, (uint32_t)a->i}));
            s.nargs++;
        }
        cps_vec_push(p->arena, &p->steps, s);
    }
}

static void
read_io(reader *r, const cps_json *root, const char *key, bool in)
{
    const cps_json *arr = need_arr(r, root, key);
    for (const cps_json *o = arr ? arr->first : NULL; o && r->ok; o = o->next) {
        cps_pio v = {.name = need_str(r, o, "name"),
                     .var = (uint32_t)need_int(r, o, "var", 0, (int64_t)r->p->vars.n - 1)};
        const cps_json *shape = need_arr(r, o, "shape");
        int64_t count = 1, bytes;
        for (const cps_json *e = shape ? shape->first : NULL; e && r->ok; e = e->next) {
            if (v.rank == CPS_MAX_RANK || e->kind != CPS_JSON_INT || e->i < 0 ||
                __builtin_mul_overflow(count, e->i, &count)) {
                bad(r, "a shape is malformed");
                return;
            }
            v.dim[v.rank++] = e->i;
        }
        const cps_pvar *pv = r->p->vars.n ? &r->p->vars.data[v.var] : NULL;
        if (r->ok && (!pv || __builtin_mul_overflow(count, (int64_t)cps_dtype_bytes(pv->dtype), &bytes) ||
                      bytes != pv->bytes))
            bad(r, cps_arena_printf(r->p->arena, "'%s' has another size than its variable", v.name));
        if (in)
            cps_vec_push(r->p->arena, &r->p->inputs, v);
        else
            cps_vec_push(r->p->arena, &r->p->outputs, v);
    }
}

/* Every variable that a step touches has storage: constants and temporaries their own, inputs and
 * outputs by being listed; and no kernel writes a constant or an input. */
static void
check_borders(reader *r)
{
    cps_package *p = r->p;
    cps_mark mark = cps_arena_mark(p->arena);
    uint8_t *listed = cps_new_array(p->arena, uint8_t, p->vars.n + 1);
    for (uint32_t i = 0; i < p->inputs.n; i++) {
        uint32_t v = p->inputs.data[i].var;
        if (p->vars.data[v].kind != CPS_PV_INPUT)
            bad(r, "an input is listed whose variable is of another kind");
        if (listed[v]++)
            bad(r, "two inputs share a variable");
    }
    for (uint32_t i = 0; i < p->outputs.n; i++)
        listed[p->outputs.data[i].var] = 1;
    for (uint32_t i = 0; r->ok && i < p->steps.n; i++) {
        const cps_pstep *s = &p->steps.data[i];
        for (uint32_t k = 0; k < s->nargs; k++) {
            const cps_parg *a = &p->args.data[s->first + k];
            cps_pkind kind = p->vars.data[a->var].kind;
            if ((kind == CPS_PV_INPUT || kind == CPS_PV_OUTPUT) && !listed[a->var])
                bad(r, "a step uses an input or output that is not listed");
            if (s->kernel < 0)
                continue;
            const cps_kbin *kb = p->kernels.data[s->kernel].kbin;
            uint32_t kv = cps_kbin_var(kb, a->formal);
            if (kv == UINT32_MAX)
                continue;
            cps_varkind role = kb->vars.data[kv].kind;
            if ((role == CPS_VAR_OUTPUT || role == CPS_VAR_INOUT) &&
                (kind == CPS_PV_CONST || kind == CPS_PV_INPUT))
                bad(r, "a step writes a constant or an input");
        }
    }
    cps_arena_release(p->arena, mark);
}

static const void *
optional_file(reader *r, const char *dir, const char *name, size_t *n)
{
    cps_file f;
    if (!cps_file_open(cps_path_join(r->p->arena, dir, name), true, &f)) {
        bad(r, cps_arena_printf(r->p->arena, "'%s' is missing: %s", name, strerror(errno)));
        return NULL;
    }
    char *copy = cps_arena_strndup(r->p->arena, (const char *)f.data, f.n);
    *n = f.n;
    cps_file_close(&f);
    return copy;
}

cps_package *
cps_package_read(cps_arena *a, const char *dir, bool changed, cps_diags *d)
{
    cps_package *p = cps_new(a, cps_package);
    p->arena = a;
    reader r = {p, d, cps_path_join(a, dir, "manifest.json"), true, changed};
    cps_file f;
    if (!cps_file_open(r.path, true, &f)) {
        cps_error(d, CPS_E8002, CPS_NOSPAN, "cannot read '%s': %s", r.path, strerror(errno));
        cps_help(d, "a package is a folder written by `copse compile -o DIR`");
        return NULL;
    }
    const char *why = "larger than 64 MiB";
    size_t at = 0;
    const cps_json *root =
        f.n > MANIFEST_MAX ? NULL : cps_json_parse(a, (const char *)f.data, f.n, &why, &at);
    cps_file_close(&f);
    if (!root || root->kind != CPS_JSON_OBJ) {
        bad(&r, root ? "not an object" : cps_arena_printf(a, "%s at byte %zu", why, at));
        return NULL;
    }
    need_int(&r, root, "schema", 1, 1);
    p->model = need_str(&r, root, "model");
    p->arena_bytes = need_int(&r, root, "arena_bytes", 0, BYTES_MAX);
    p->weights_bytes = need_int(&r, root, "weights_bytes", 0, BYTES_MAX);
    const cps_json *t = cps_json_get(root, "target");
    if (!t || t->kind != CPS_JSON_OBJ) {
        bad(&r, "member 'target' must be an object");
        return NULL;
    }
    p->target = need_str(&r, t, "name");
    p->lnc = (int)need_int(&r, t, "lnc", 1, 2);
    if (!cps_digest_parse(need_str(&r, t, "digest"), &p->target_digest))
        bad(&r, "the target's digest is malformed");
    if (r.ok && p->weights_bytes) {
        const char *path = cps_path_join(a, dir, "weights.bin");
        if (!cps_file_open(path, false, &p->weights) ||
            (int64_t)p->weights.n != p->weights_bytes)
            bad(&r, "weights.bin is missing or has another size than the manifest says");
    }
    if (r.ok)
        read_vars(&r, root);
    if (r.ok)
        read_kernels(&r, root, dir);
    if (r.ok)
        read_steps(&r, root);
    if (r.ok)
        read_io(&r, root, "inputs", true);
    if (r.ok)
        read_io(&r, root, "outputs", false);
    if (r.ok)
        check_borders(&r);
    const cps_json *g = cps_json_get(root, "graph"), *h = cps_json_get(root, "host");
    if (r.ok && g && g->kind == CPS_JSON_STR)
        p->graph = optional_file(&r, dir, "graph.cir", &p->graph_bytes);
    if (r.ok && h && h->kind == CPS_JSON_STR)
        p->host_so = optional_file(&r, dir, "host.so", &p->host_so_bytes);
    if (!r.ok) {
        cps_package_close(p);
        return NULL;
    }
    return p;
}

void
cps_package_close(cps_package *p)
{
    if (p && p->weights.data) {
        cps_file_close(&p->weights);
        p->weights = (cps_file){0};
    }
}
