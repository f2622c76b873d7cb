/* A container of ours back into a package of one step. Nothing in it is trusted: names, sizes
 * and references are checked here or by cps_kbin_check, and what our own member leaves open is
 * taken from the container's. */
#include "runtime/pkg/neff_pack.h"

#include "runtime/pkg/kbin_priv.h"
#include "runtime/pkg/neff_graph.h"

typedef struct loader {
    cps_arena *a;
    cps_diags *d;
    const cps_neff *f;
    const cps_json *ours;
    /* the core that is read */
    const cps_neff_graph *g;
    const cps_json *part; /* its own part of copse.json */
    cps_kbin *k, *first;
    cps_package *p;
    bool ok;
} loader;

static void bad(loader *l, const char *fmt, ...) CPS_PRINTF(2, 3);
static void
bad(loader *l, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    if (l->ok)
        cps_verror(l->d, CPS_E8404, CPS_NOSPAN, fmt, ap);
    va_end(ap);
    l->ok = false;
}

static const char *
need_str(loader *l, const cps_json *o, const char *key)
{
    bool ok = o && o->kind == CPS_JSON_OBJ;
    const char *s = ok ? cps_json_str(o, key, true, "", &ok) : "";
    if (!ok)
        bad(l, "copse.json: member '%s' must be text", key);
    return s;
}

static int64_t
need_int(loader *l, const cps_json *o, const char *key, int64_t hi)
{
    bool ok = o && o->kind == CPS_JSON_OBJ;
    int64_t v = ok ? cps_json_int(o, key, true, 0, &ok) : 0;
    if (!ok || v < 0 || v > hi) {
        bad(l, "copse.json: member '%s' must be an integer up to %lld", key, (long long)hi);
        return 0;
    }
    return v;
}

static const cps_json *
need_of(loader *l, const cps_json *o, const char *key, cps_json_kind kind)
{
    const cps_json *v = cps_json_get(o, key);
    if (v && v->kind == kind)
        return v;
    bad(l, "copse.json: member '%s' is missing or of another kind", key);
    return NULL;
}

static const cps_json *
need(loader *l, const char *key, cps_json_kind kind)
{
    return need_of(l, l->ours, key, kind);
}

/* dtype and shape of a record; the element count fits `bytes`, where that is known. */
static void
read_type(loader *l, const cps_json *o, const char *name, cps_dtype *t, int *rank, int64_t *dim,
          int64_t bytes)
{
    const char *word = need_str(l, o, "dtype");
    const cps_json *shape = cps_json_get(o, "shape");
    *t = cps_dtype_parse(word, strlen(word));
    int64_t n = 1;
    bool ok =
        *t != CPS_DT_NONE && shape && shape->kind == CPS_JSON_ARR && shape->n <= CPS_MAX_RANK;
    *rank = 0;
    for (const cps_json *x = ok ? shape->first : NULL; x && ok; x = x->next) {
        ok = x->kind == CPS_JSON_INT && x->i >= 0 && !__builtin_mul_overflow(n, x->i, &n) &&
             n <= CPS_PKG_BYTES;
        dim[(*rank)++] = x->i;
    }
    if (!ok || (bytes >= 0 && n * cps_dtype_bytes(*t) != bytes))
        bad(l, "copse.json: '%s' has no type and shape of its size", name);
}

static void
read_vars(loader *l)
{
    const cps_json *all = need_of(l, l->part, "vars", CPS_JSON_OBJ);
    for (uint32_t i = 0; i < l->g->vars.n && l->ok; i++) {
        const cps_neff_var *v = &l->g->vars.data[i];
        if (v->id != (int64_t)i || v->size < 0 || (i == 0) != !strcmp(v->kind, "state-buffer"))
            bad(l, "def.json: variable '%s' has no place in a program of ours", v->name);
        if (i == 0 || !l->ok)
            continue;
        const cps_json *o = cps_json_get(all, v->name);
        const char *word = need_str(l, o, "kind");
        unsigned kind = 0;
        while (kind < CPS_VARKINDS && strcmp(word, cps_pkg_kinds[kind]))
            kind++;
        cps_kvar x = {.name = v->name, .kind = (cps_varkind)kind, .bytes = v->size};
        read_type(l, o, v->name, &x.dtype, &x.rank, x.dim, -1);
        if (kind == CPS_VARKINDS || kind == CPS_VAR_SB) {
            bad(l, "copse.json: variable '%s' has no known kind", v->name);
        } else if (kind == CPS_VAR_DATA) {
            const cps_neff_member *m =
                v->file
                    ? cps_neff_find(l->f, cps_arena_printf(l->a, "%s%s", l->g->dir, v->file))
                    : NULL;
            if (!m || (int64_t)m->n != v->size)
                bad(l, "the constant '%s' has no file of its size", v->name);
            else
                x.data = m->data;
        }
        cps_vec_push(l->a, &l->k->vars, x);
    }
}

static void
read_streams(loader *l)
{
    for (int e = 0; e < CPS_ENGINES && l->ok; e++) {
        const cps_neff_engine *x = &l->g->engine[e];
        cps_kstream *s = &l->k->stream[e];
        const char *why = "";
        if (!x->bin || x->bin->n % CPS_BUNDLE_BYTES || x->instructions > CPS_PKG_BUNDLES) {
            bad(l, "%s has no whole stream for %s", l->g->name, cps_engine_name((cps_engine)e));
        } else if (x->instructions) {
            cps_vec_reserve(l->a, &s->code, x->instructions);
            memcpy(s->code.data, x->bin->data, x->bin->n);
            s->code.n = x->instructions;
        }
        if (l->ok &&
            !cps_pkg_items_read(l->k, (cps_engine)e, cps_json_get(x->doc, "dma"), &why))
            bad(l, "'%s': %s", x->desc ? x->desc->name : l->g->name, why);
    }
}

static void
read_relocs(loader *l)
{
    const cps_json *all = need_of(l, l->part, "relocs", CPS_JSON_ARR);
    for (const cps_json *o = all ? all->first : NULL; o && l->ok; o = o->next) {
        cps_kreloc r = {.engine = cps_engine_parse(need_str(l, o, "engine")),
                        .index = (uint32_t)need_int(l, o, "bundle", CPS_PKG_BUNDLES),
                        .var = cps_kbin_var(l->k, need_str(l, o, "var")),
                        .addend = need_int(l, o, "addend", CPS_PKG_BYTES)};
        const char *field = need_str(l, o, "field");
        if ((unsigned)r.engine >= CPS_ENGINES || r.index >= l->k->stream[r.engine].code.n)
            bad(l, "copse.json: a relocation names no instruction");
        if (!l->ok)
            return;
        r.field = (uint16_t)cps_pkg_field(&l->k->stream[r.engine].code.data[r.index], l->k->gen,
                                          field);
        cps_vec_push(l->a, &l->k->relocs, r);
    }
}

/* A variable of the first core that has it. */
static const cps_kvar *
variable(const loader *l, const char *name)
{
    for (const cps_kbin *k = l->first; k; k = k->peer) {
        uint32_t v = cps_kbin_var(k, name);
        if (v != UINT32_MAX && v)
            return &k->vars.data[v];
    }
    return NULL;
}

/* The package's variables are the operands of its one kernel. */
static void
read_border(loader *l, const char *key, bool in)
{
    const cps_json *all = need(l, key, CPS_JSON_ARR);
    for (const cps_json *o = all ? all->first : NULL; o && l->ok; o = o->next) {
        cps_pio io = {.name = need_str(l, o, "name")};
        const cps_kvar *kv = variable(l, need_str(l, o, "var"));
        cps_dtype t;
        if (!l->ok || !kv) {
            bad(l, "copse.json: '%s' is no variable of the program", io.name);
            return;
        }
        bool fits = kv->kind == CPS_VAR_INPUT || (!in && kv->kind == CPS_VAR_OUTPUT);
        if (kv->kind == CPS_VAR_INOUT) {
            cps_error(l->d, CPS_E8405, CPS_NOSPAN,
                      "'%s' is changed in place, which a run of a container does not serve",
                      kv->name);
            l->ok = false;
        } else if (!fits) {
            bad(l, "copse.json: '%s' is no %s", io.name, in ? "input" : "output");
        }
        read_type(l, o, io.name, &t, &io.rank, io.dim, kv->bytes);
        io.var = UINT32_MAX;
        for (uint32_t i = 0; i < l->p->vars.n; i++)
            if (!strcmp(l->p->vars.data[i].name, kv->name))
                io.var = i;
        if (io.var == UINT32_MAX) {
            cps_pvar pv = {.name = kv->name,
                           .kind = kv->kind == CPS_VAR_INPUT ? CPS_PV_INPUT : CPS_PV_OUTPUT,
                           .dtype = t,
                           .rank = io.rank,
                           .bytes = kv->bytes};
            memcpy(pv.dim, io.dim, sizeof pv.dim);
            cps_vec_push(l->a, &l->p->vars, pv);
            io.var = l->p->vars.n - 1;
            cps_vec_push(l->a, &l->p->args, ((cps_parg){kv->name, io.var}));
        } else if (in) {
            bad(l, "copse.json: '%s' is listed twice", io.name);
        }
        if (in)
            cps_vec_push(l->a, &l->p->inputs, io);
        else
            cps_vec_push(l->a, &l->p->outputs, io);
    }
}

/* Every operand is an input or output of the package. */
static void
check_operands(loader *l)
{
    for (uint32_t i = 1; i < l->k->vars.n && l->ok; i++) {
        const cps_kvar *v = &l->k->vars.data[i];
        bool given = v->kind == CPS_VAR_TMP || v->kind == CPS_VAR_DATA || v->kind == CPS_VAR_SHARED;
        for (uint32_t n = 0; n < l->p->args.n; n++)
            given |= !strcmp(l->p->args.data[n].formal, v->name);
        if (!given)
            bad(l, "copse.json: operand '%s' is neither an input nor an output", v->name);
    }
}

/* The program of core `c` of `n`. */
static void
read_core(loader *l, cps_kbin *k, const cps_neff_graph *g, uint32_t c, uint32_t n)
{
    l->g = g;
    l->k = k;
    l->part = c ? need(l, "peer", CPS_JSON_OBJ) : l->ours;
    k->core = (int)c;
    k->cores = (int)n;
    if (c)
        l->first->peer = k;
    else
        l->first = k;
    k->stats.sbuf_peak = need_int(l, l->part, "sbuf_peak_bytes_per_partition", 1 << 30);
    k->stats.psum_banks = (int)need_int(l, l->part, "psum_banks_peak", 1 << 10);
    if (l->ok)
        read_vars(l);
    if (l->ok)
        read_streams(l);
    if (l->ok)
        read_relocs(l);
    if (l->ok && !cps_kbin_extents_read(k, cps_json_get(l->part, "extents"), false))
        bad(l, "copse.json: malformed extents");
}

static void
read_program(loader *l, const cps_neff_info *graphs)
{
    const char *gen = need_str(l, l->ours, "generation"),
               *name = need_str(l, l->ours, "kernel");
    const cps_json *target = need(l, "target", CPS_JSON_OBJ),
                   *roof = need(l, "roof", CPS_JSON_OBJ);
    if (need_int(l, l->ours, "schema", 1) != 1)
        bad(l, "copse.json: unknown schema");
    unsigned g = 0;
    while (g < CPS_GENS && strcmp(gen, cps_gen_name((cps_gen)g)))
        g++;
    if (g == CPS_GENS)
        bad(l, "copse.json: unknown generation '%s'", gen);
    if (!l->ok)
        return;
    l->p = cps_package_new(l->a, need_str(l, l->ours, "model"), need_str(l, target, "name"));
    if (!cps_digest_parse(need_str(l, target, "digest"), &l->p->target_digest))
        bad(l, "copse.json: the target's digest is malformed");
    for (uint32_t c = 0; c < graphs->graphs.n; c++) {
        cps_kbin *k = cps_kbin_new(l->a, name, l->p->target, (cps_gen)g);
        read_core(l, k, &graphs->graphs.data[c], c, graphs->graphs.n);
        if (!l->ok)
            return;
    }
    read_border(l, "inputs", true);
    if (l->ok)
        read_border(l, "outputs", false);
    for (l->k = l->first; l->k; l->k = l->k->peer)
        check_operands(l);
    l->k = l->first;
    for (uint32_t i = 1; i < l->k->vars.n && l->ok; i++) { // the reference graph looks them up
        const cps_kvar *v = &l->k->vars.data[i];
        if (v->kind != CPS_VAR_DATA)
            continue;
        cps_pvar c = {.name = v->name,
                      .kind = CPS_PV_CONST,
                      .dtype = v->dtype,
                      .rank = v->rank,
                      .bytes = v->bytes,
                      .data = v->data};
        memcpy(c.dim, v->dim, sizeof c.dim);
        const cps_json *o = cps_json_get(cps_json_get(l->ours, "vars"), v->name),
                       *at = cps_json_get(o, "offset");
        c.offset = at && at->kind == CPS_JSON_INT ? at->i : -1;
        cps_vec_push(l->a, &l->p->vars, c);
    }
    const cps_neff_member *graph = cps_neff_find(l->f, "graph.cir");
    if (graph) {
        l->p->graph = (const char *)graph->data;
        l->p->graph_bytes = graph->n;
    }
    cps_buf why = {0};
    if (l->ok && !cps_kbin_check(l->k, &why))
        bad(l, "the program is not sound: %s", why.data);
    cps_buf_fini(&why);
    cps_pkernel pk = {.name = name,
                      .leaf = name,
                      .op = "",
                      .why = "",
                      .instance = "",
                      .config = "",
                      .bound = "memory",
                      .kbin = l->k};
    pk.flops = need_int(l, roof, "flops", INT64_MAX);
    pk.bytes = need_int(l, roof, "bytes", INT64_MAX);
    pk.roofline_ns = need_int(l, roof, "roofline_ns", INT64_MAX);
    pk.engines_ns = need_int(l, roof, "roofline_engines_ns", INT64_MAX);
    cps_vec_push(l->a, &l->p->kernels, pk);
    cps_vec_push(l->a, &l->p->steps, ((cps_pstep){.kernel = 0, .nargs = l->p->args.n}));
}

cps_package *
cps_neff_package(cps_arena *a, const cps_neff *f, cps_diags *d)
{
    loader l = {.a = a, .d = d, .f = f, .ok = true};
    const cps_neff_member *m = cps_neff_find(f, "copse.json");
    unsigned before = cps_diags_errors(d);
    cps_neff_info *i = cps_neff_describe(a, f, d);
    if (cps_diags_errors(d) != before)
        return NULL;
    if (!m || i->graphs.n < 1 || i->graphs.n > 2) {
        cps_error(d, CPS_E8405, CPS_NOSPAN,
                  "the container was not made by copse: it can be inspected, not run");
        return NULL;
    }
    const char *why = "";
    size_t at = 0;
    l.ours = cps_json_parse(a, (const char *)m->data, m->n, &why, &at);
    if (!l.ours)
        bad(&l, "member 'copse.json': %s at byte %zu", why, at);
    else
        read_program(&l, i);
    return l.ok ? l.p : NULL;
}
