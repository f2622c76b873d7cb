/* copse sim KERNEL...: kernels that run in one time and exchange by collectives. Each argument is a
 * rank, in order: the folder of a kernel (of a pair: with core0/ and core1/ in it), or a package of one
 * kernel. Inputs are seeded, all different, or given for one rank or for all. */
#include "frontend/cmd_group.h"
#include "frontend/debug.h"
#include "frontend/execute.h"
#include "frontend/views.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

typedef struct gang {
    cps_cli *c;
    unsigned n, cores;
    const cps_kbin **rank;                 /* first cores */
    const cps_kbin *core[CPS_SIM_CORES];
    cps_io *io; /* inputs of all ranks, then outputs; named RANK:NAME */
    unsigned nin, nout;
    unsigned *of; /* rank of each io */
} gang;

static bool
has(cps_cli *c, const char *dir, const char *name)
{
    return cps_path_exists(cps_path_join(c->arena, dir, name));
}

bool
cps_is_group(const cps_cli *c)
{
    cps_cli *x = (cps_cli *)(uintptr_t)c;
    return c->args.n > 1 ||
           (c->args.n == 1 && !has(x, c->args.data[0], "manifest.json") &&
            (has(x, c->args.data[0], "kernel.json") || has(x, c->args.data[0], "core0/kernel.json")));
}

static const cps_kbin *
open_kernel(cps_cli *c, const char *path)
{
    if (!has(c, path, "manifest.json"))
        return cps_kbin_read(c->arena, path, c->diags);
    cps_package *p = cps_package_read(c->arena, path, cps_cli_has(c, CPS_OPT_CHANGED), c->diags);
    if (p && p->kernels.n == 1)
        return p->kernels.data[0].kbin;
    if (p)
        cps_error(c->diags, CPS_E1105, CPS_NOSPAN, "'%s' is a package of %u kernels, and a rank runs one", path,
                  p->kernels.n);
    return NULL;
}

static bool
open_all(gang *g)
{
    cps_cli *c = g->c;
    g->n = c->args.n;
    g->rank = cps_new_array(c->arena, const cps_kbin *, g->n);
    for (unsigned r = 0; r < g->n; r++) {
        const cps_kbin *k = g->rank[r] = open_kernel(c, c->args.data[r]);
        if (!k)
            return false;
        for (; k; k = k->peer) {
            if (g->cores == CPS_SIM_CORES) {
                cps_error(c->diags, CPS_E1105, CPS_NOSPAN, "more than %d cores", CPS_SIM_CORES);
                return false;
            }
            g->core[g->cores++] = k;
        }
    }
    return true;
}

static bool
is_io(const cps_kvar *v, bool output)
{
    return v->kind == CPS_VAR_INOUT || v->kind == (output ? CPS_VAR_OUTPUT : CPS_VAR_INPUT);
}

/* A variable that an earlier core of the rank does not have. */
static bool
fresh(const cps_kbin *first, const cps_kbin *k, const cps_kvar *v)
{
    return k == first || cps_kbin_var(first, v->name) == UINT32_MAX;
}

static void
list_ios(gang *g)
{
    cps_arena *a = g->c->arena;
    CPS_VEC(cps_io) all = {0};
    CPS_VEC(unsigned) of = {0};
    for (unsigned pass = 0; pass < 2; pass++) {
        for (unsigned r = 0; r < g->n; r++)
            for (const cps_kbin *k = g->rank[r]; k; k = k->peer)
                for (uint32_t i = 1; i < k->vars.n; i++) {
                    const cps_kvar *v = &k->vars.data[i];
                    if (!is_io(v, pass) || !fresh(g->rank[r], k, v))
                        continue;
                    cps_io io = {.name = cps_arena_printf(a, "%u:%s", r, v->name),
                                 .type = cps_type_make(v->dtype, v->rank, v->dim)};
                    cps_vec_push(a, &all, io);
                    cps_vec_push(a, &of, r);
                }
        if (!pass)
            g->nin = all.n;
    }
    g->nout = all.n - g->nin;
    g->io = all.data;
    g->of = of.data;
}

/* `--input NAME=F` stands for all ranks that have the input. */
static void
for_all_ranks(gang *g)
{
    cps_cli *c = g->c;
    const char *const *given = c->opt[CPS_OPT_INPUT].data;
    uint32_t n = c->opt[CPS_OPT_INPUT].n;
    memset(&c->opt[CPS_OPT_INPUT], 0, sizeof c->opt[CPS_OPT_INPUT]);
    for (uint32_t k = 0; k < n; k++) {
        const char *s = given[k], *eq = strrchr(s, '='), *colon = strchr(s, ':');
        bool ranked = colon && colon > s;
        for (const char *p = s; ranked && p < colon; p++)
            ranked = isdigit((unsigned char)*p) != 0;
        bool any = false;
        for (unsigned i = 0; !ranked && eq && i < g->nin; i++) {
            const char *name = strchr(g->io[i].name, ':') + 1;
            if (strlen(name) != (size_t)(eq - s) || strncmp(name, s, (size_t)(eq - s)))
                continue;
            any = true;
            cps_vec_push(c->arena, &c->opt[CPS_OPT_INPUT], cps_arena_printf(c->arena, "%u:%s", g->of[i], s));
        }
        if (!any)
            cps_vec_push(c->arena, &c->opt[CPS_OPT_INPUT], s);
    }
}

/* What a kernel reads and writes has one memory; else outputs get their own. */
static bool
bind_all(gang *g, cps_sim_group *s)
{
    cps_io *out = g->io + g->nin;
    for (unsigned o = 0; o < g->nout; o++) {
        size_t bytes = (size_t)cps_type_bytes(&out[o].type);
        for (unsigned i = 0; i < g->nin && !out[o].data; i++)
            if (!strcmp(g->io[i].name, out[o].name))
                out[o].data = g->io[i].data;
        bool defined = out[o].data != NULL;
        if (!defined)
            out[o].data = cps_arena_alloc(g->c->arena, bytes + 1);
        if (!cps_sim_group_bind(s, g->of[g->nin + o], strchr(out[o].name, ':') + 1, out[o].data, bytes, defined,
                                g->c->diags))
            return false;
    }
    for (unsigned i = 0; i < g->nin; i++)
        if (!cps_sim_group_bind(s, g->of[i], strchr(g->io[i].name, ':') + 1, g->io[i].data,
                                (size_t)cps_type_bytes(&g->io[i].type), true, g->c->diags))
            return false;
    return true;
}

static bool
save(gang *g)
{
    const char *dir = cps_cli_str(g->c, CPS_OPT_OUTDIR, NULL);
    for (unsigned o = 0; dir && o < g->nout; o++) {
        cps_io io = g->io[g->nin + o];
        const char *sub = cps_arena_printf(g->c->arena, "%s/rank%u", dir, g->of[g->nin + o]);
        io.name = strchr(io.name, ':') + 1;
        if (!cps_io_save(g->c, sub, "", &io))
            return false;
    }
    return true;
}

cps_exit
cps_cmd_group(cps_cli *c)
{
    bool ok = true;
    unsigned checks = cps_cli_checks(c, &ok);
    gang g = {.c = c};
    cps_debug *debug = cps_debug_open(c, &ok);
    if (!ok || !open_all(&g))
        return cps_cli_failed(c);
    const cps_target *t = cps_target_find(g.core[0]->target);
    if (cps_cli_has(c, CPS_OPT_TARGET))
        t = cps_cli_target(c, &ok);
    if (!t) {
        cps_error(c->diags, CPS_E8201, CPS_NOSPAN, "kernel '%s' is for '%s': give its description with --target",
                  g.core[0]->name, g.core[0]->target);
        return CPS_BAD_INPUT;
    }
    list_ios(&g);
    for_all_ranks(&g);
    cps_report rep = {.on = "sim", .target = t->name, .leaf = "", .kernel = g.core[0]->name, .facts = t, .checks = checks,
                      .launches = 1, .err = CPS_ERRS_START};
    rep.roof.bound = "memory";
    cps_sim_group *s = cps_sim_group_create(t, g.cores);
    cps_sim_report *each = cps_new_array(c->arena, cps_sim_report, g.cores);
    cps_views views;
    cps_views_open(c, &views);
    cps_sim_opts opts;
    double t0 = cps_now_ms();
    ok = ok && cps_io_inputs(c, g.io, g.nin, NULL) && cps_sim_group_load(s, g.core, c->diags) && bind_all(&g, s) &&
         cps_sim_options(c, checks, cps_views_any(&views), &opts) &&
         cps_debug_attach(debug, s, g.cores, rep.kernel, &opts) &&
         cps_debug_detach(debug, cps_sim_group_run(s, &opts, each, c->diags));
    rep.wall_ms = cps_now_ms() - t0;
    if (ok) {
        cps_report_add(c->arena, &rep, each, g.cores, cps_sim_group_time_ps(s), NULL);
        cps_views_add(c, &views, s, g.core, g.cores, rep.kernel, &rep.roof, 0);
    }
    ok = cps_views_close(c, &views, ok) && cps_debug_close(debug) && save(&g);
    cps_sim_group_destroy(s);
    cps_exit code = ok ? cps_report_emit(c, &rep) : cps_debug_quit(debug) ? CPS_OK : cps_cli_failed(c);
    cps_cli_flush(c);
    return code;
}
