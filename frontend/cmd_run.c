/* copse compile, run and sim: models and packages. */
#include "frontend/cmd_bir.h"
#include "frontend/cmd_group.h"
#include "frontend/cmd_run.h"
#include "frontend/cmd_source.h"
#include "frontend/depfile.h"
#include "frontend/execute.h"
#include "frontend/model.h"
#include "frontend/module_cache.h"
#include "frontend/neff.h"
#include "frontend/report.h"
#include "frontend/views.h"
#include "frontend/validate.h"
#include "runtime/pkg/package_plan.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static bool
is_folder(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

static const char *
one_arg(cps_cli *c)
{
    if (c->args.n == 1)
        return c->args.data[0];
    cps_error(c->diags, CPS_E1105, CPS_NOSPAN, "'%s' takes one path", c->command);
    return NULL;
}

// The kernels of a model, one text behind the other: tile programs, or listings.
cps_exit
cps_emit_kernels(cps_cli *c, const char *path, const char *emit, const char *to, const cps_target *t)
{
    cps_model m;
    cps_buf b = {0};
    unsigned hits = 0, misses = 0;
    cps_package *p = cps_model_read(c, path, &m) ? cps_model_compile(c, &m, t, &hits, &misses) : NULL;
    for (uint32_t i = 0; p && i < p->kernels.n; i++) {
        const cps_pkernel *k = &p->kernels.data[i];
        if (!strcmp(emit, "tile"))
            cps_buf_put(&b, k->text, k->text_bytes);
        else
            cps_kbin_listing(k->kbin, &b);
    }
    bool ok = p && cps_cli_write(c, to, b.data ? b.data : "", b.n) && cps_depfile_write(c, to);
    cps_buf_fini(&b);
    cps_exit code = ok ? CPS_OK : cps_cli_failed(c);
    cps_cli_flush(c);
    cps_model_close(&m);
    return code;
}

// The code of a model for the host: LLVM text, or the object that a package links.
static cps_exit
emit_host(cps_cli *c, const char *path, bool object, const char *to)
{
    cps_model m;
    cps_buf text = {0};
    unsigned hits = 0, misses = 0;
    bool ok = cps_model_read(c, path, &m);
    if (ok && object) {
        const cps_package *p = cps_model_compile(c, &m, NULL, &hits, &misses);
        ok = p && cps_cli_write(c, to, p->host_o, p->host_o_bytes);
    } else if (ok) {
        ok = cps_model_llvm(c, &m, &text) && cps_cli_write(c, to, text.data, text.n);
    }
    cps_buf_fini(&text);
    ok = ok && cps_depfile_write(c, to);
    cps_exit code = ok ? CPS_OK : cps_cli_failed(c);
    cps_cli_flush(c);
    cps_model_close(&m);
    return code;
}

static cps_exit
emit_text(cps_cli *c, const char *path, const char *emit, const char *to, const cps_target *t)
{
    if (!strcmp(emit, "tile") || !strcmp(emit, "asm"))
        return cps_emit_kernels(c, path, emit, to, t);
    cps_model m;
    bool ok = cps_model_read(c, path, &m) && (!strcmp(emit, "graph") || cps_model_lower(c, &m, t)) &&
              cps_model_write(c, m.module, to) && cps_depfile_write(c, to);
    cps_exit code = ok ? CPS_OK : cps_cli_failed(c);
    cps_cli_flush(c);
    cps_model_close(&m);
    return code;
}

static cps_exit
compile_to(cps_cli *c, const char *path, const char *dir, const cps_target *t)
{
    double t0 = cps_now_ms();
    cps_report rep = {.target = t ? t->name : "host", .on = "none", .leaf = ""};
    cps_model m = {0};
    cps_mcache mc = {0};
    cps_rendered r;
    cps_summary sum;
    bool ok = true;
    // BIR is a file that a kept package does not have.
    bool more = !strcmp(cps_cli_str(c, CPS_OPT_EMIT, ""), "bir");
    if (!more && cps_mcache_get(c, path, t, &mc, &r, &sum)) {
        rep.hits = sum.kernels;
    } else {
        cps_package *p = cps_model_read(c, path, &m) ? cps_model_compile(c, &m, t, &rep.hits, &rep.misses)
                                                     : NULL;
        ok = p != NULL;
        if (ok) {
            cps_package_render(p, &r);
            sum = (cps_summary){p->model, p->steps.n, t ? p->kernels.n : 1, p->arena_bytes};
            if (!more)
                cps_mcache_put(c, &mc, path, t, &m, &r, &sum);
        }
    }
    double t1 = cps_now_ms();
    ok = ok && cps_rendered_write(&r, dir, c->diags);
    if (ok) {
        rep.kernel = sum.model;
        rep.compile_ms = t1 - t0;
        rep.wall_ms = cps_now_ms() - t0;
        fprintf(stderr,
                "%s: %u steps, %u kernels (%u hits, %u misses), weights %" PRId64
                " bytes, temporaries %" PRId64 " bytes\n"
                "compiled in %.1f ms, written in %.1f ms\n",
                dir, sum.steps, t ? sum.kernels : 0, rep.hits, rep.misses, r.weights_bytes,
                sum.arena_bytes, t1 - t0, cps_now_ms() - t1);
        const char *report = cps_cli_str(c, CPS_OPT_REPORT, NULL);
        if (report) {
            cps_buf b = {0};
            cps_jsonw w;
            cps_jsonw_init(&w, &b);
            cps_jsonw_obj(&w, false);
            cps_report_members(&w, &rep);
            cps_jsonw_end_obj(&w);
            cps_jsonw_done(&w);
            ok = cps_cli_write(c, report, b.data, b.n);
            cps_buf_fini(&b);
        }
    }
    cps_exit code = ok ? CPS_OK : cps_cli_failed(c);
    cps_cli_flush(c);
    cps_mcache_release(&mc);
    cps_model_close(&m);
    return code;
}

cps_exit
cps_cmd_compile(cps_cli *c)
{
    bool ok = true;
    const char *dir = cps_cli_str(c, CPS_OPT_OUTPUT, NULL), *path = cps_are_bir(c) ? c->args.data[0] : one_arg(c);
    const char *emit = cps_cli_has(c, CPS_OPT_EMIT)
                           ? cps_cli_word(c, CPS_OPT_EMIT, "", "graph lowered tile asm llvm obj neff bir")
                           : NULL;
    bool host = emit && (!strcmp(emit, "llvm") || !strcmp(emit, "obj"));
    const cps_target *t = cps_cli_target(c, &ok);
    if (!path || !ok || (cps_cli_has(c, CPS_OPT_EMIT) && !emit))
        return cps_cli_failed(c);
    if (t && host) {
        cps_error(c->diags, CPS_E1104, CPS_NOSPAN, "'--emit %s' is of host code, and the target is %s", emit, t->name);
        cps_help(c->diags, "add --target host");
        return CPS_USAGE;
    }
    if (!t && emit && !host && strcmp(emit, "graph") && strcmp(emit, "lowered")) {
        cps_error(c->diags, CPS_E1104, CPS_NOSPAN, "'--emit %s' is of NeuronCore kernels, and there are none for the host", emit);
        return CPS_USAGE;
    }
    bool text = emit && strcmp(emit, "neff") && (strcmp(emit, "bir") || cps_are_bir(c));
    if (!cps_source_options(c, path) || !cps_depfile_allowed(c, text || dir ? dir : "DIR"))
        return CPS_USAGE;
    if (cps_are_bir(c) && (dir || emit))
        return cps_bir_compile(c, dir);
    bool neff = emit && !strcmp(emit, "neff"), bir = emit && !strcmp(emit, "bir");
    if (neff || bir)
        emit = NULL; // beside the package, not instead of it
    if (dir && (!*dir || (!emit && !strcmp(dir, "-")))) {
        cps_error(c->diags, CPS_E1104, CPS_NOSPAN, "'-o %s' is no folder for a package", dir);
        return CPS_USAGE;
    }
    if (!dir && !emit) {
        cps_error(c->diags, CPS_E1105, CPS_NOSPAN, "'compile' needs a folder: -o DIR");
        return CPS_USAGE;
    }
    if (cps_is_source(path))
        return cps_source_compile(c, path, dir);
    if (host)
        return emit_host(c, path, !strcmp(emit, "obj"), dir ? dir : "-");
    cps_exit code = emit ? emit_text(c, path, emit, dir ? dir : "-", t) : compile_to(c, path, dir, t);
    if (code == CPS_OK && !emit &&
        ((neff && !cps_neff_emit(c, dir)) || !cps_depfile_write(c, cps_path_join(c->arena, dir, "manifest.json"))))
        code = cps_cli_failed(c);
    cps_cli_flush(c);
    return code;
}

void
cps_package_io(cps_cli *c, const cps_package *p, cps_io **in, cps_io **out)
{
    *in = cps_new_array(c->arena, cps_io, p->inputs.n + 1);
    *out = cps_new_array(c->arena, cps_io, p->outputs.n + 1);
    for (unsigned pass = 0; pass < 2; pass++) {
        uint32_t n = pass ? p->outputs.n : p->inputs.n;
        for (uint32_t i = 0; i < n; i++) {
            const cps_pio *o = pass ? &p->outputs.data[i] : &p->inputs.data[i];
            const cps_pvar *v = &p->vars.data[o->var];
            cps_io *io = pass ? &(*out)[i] : &(*in)[i];
            io->name = o->name;
            io->type = cps_type_make(v->dtype, o->rank, o->dim);
        }
    }
}

static cps_exit
finish(cps_cli *c, cps_report *rep, const cps_package *p, const cps_report *each, cps_io *out,
       unsigned nout)
{
    const char *dir = cps_cli_str(c, CPS_OPT_OUTDIR, NULL);
    for (unsigned k = 0; dir && k < nout; k++)
        if (!cps_io_save(c, dir, "", &out[k]))
            return cps_cli_failed(c);
    const char *path = cps_cli_str(c, CPS_OPT_REPORT, NULL);
    if (path && p && each) {
        // A model's report is the sum over its steps, with the steps beside it.
        cps_buf b = {0};
        cps_jsonw w;
        cps_jsonw_init(&w, &b);
        cps_jsonw_obj(&w, false);
        cps_report_members(&w, rep);
        cps_jsonw_key(&w, "steps");
        cps_jsonw_arr(&w, false);
        for (uint32_t i = 0; i < p->steps.n; i++) {
            if (!each[i].launches)
                continue;
            cps_jsonw_obj(&w, false);
            cps_report_members(&w, &each[i]);
            cps_jsonw_end_obj(&w);
        }
        cps_jsonw_end_arr(&w);
        cps_jsonw_end_obj(&w);
        cps_jsonw_done(&w);
        bool ok = cps_cli_write(c, path, b.data, b.n);
        cps_buf_fini(&b);
        c->opt[CPS_OPT_REPORT].n = 0; // the page still goes to standard error
        if (!ok)
            return CPS_IO;
    }
    return cps_report_emit(c, rep);
}

/* A package folder, or a container that was made of one. */
static cps_package *
open_package(cps_cli *c, const char *path)
{
    return cps_has_suffix(path, ".neff") && !is_folder(path) ? cps_neff_open_package(c, path)
                                                             : cps_package_read(c->arena, path, cps_cli_has(c, CPS_OPT_CHANGED), c->diags);
}

cps_exit
cps_cmd_run(cps_cli *c)
{
    bool ok = true;
    const char *path = one_arg(c), *on = cps_cli_word(c, CPS_OPT_ON, "sim", "sim host ref");
    const char *cmp =
        cps_cli_has(c, CPS_OPT_COMPARE) ? cps_cli_word(c, CPS_OPT_COMPARE, "ref", "ref") : NULL;
    bool fp32 = cps_cli_has(c, CPS_OPT_REFACC) && cps_cli_word(c, CPS_OPT_REFACC, "fp32", "fp32");
    unsigned checks = cps_cli_checks(c, &ok), hits = 0, misses = 0;
    if (!path || !on || !ok || (cps_cli_has(c, CPS_OPT_COMPARE) && !cmp) ||
        (cps_cli_has(c, CPS_OPT_REFACC) && !fp32) || !cps_views_allowed(c, on))
        return cps_cli_failed(c);

    cps_model m = {0};
    cps_package *p = NULL;
    cps_module *graph = NULL;
    cps_report rep = {.on = on, .target = "reference", .leaf = "", .err = CPS_ERRS_START};
    double t0 = cps_now_ms();
    if (is_folder(path) || cps_has_suffix(path, ".neff")) {
        p = open_package(c, path);
        const char *t = cps_cli_str(c, CPS_OPT_TARGET, NULL);
        if (p && t && (cps_target_find(t) || !strcmp(t, "host")) && strcmp(t, p->target)) {
            cps_error(c->diags, CPS_E8003, CPS_NOSPAN, "the package was compiled for %s, not for %s",
                      p->target, t);
            return CPS_BAD_INPUT;
        }
        if (p && (cmp || !strcmp(on, "ref")))
            graph = cps_package_graph(c, p);
        ok = p && (graph || (!cmp && strcmp(on, "ref")));
    } else {
        const cps_target *t = NULL;
        if (!strcmp(on, "sim"))
            t = cps_cli_target(c, &ok);
        ok = ok && cps_model_read(c, path, &m);
        if (ok && (cmp || !strcmp(on, "ref"))) {
            // Lowering changes the module in place: the reference is a copy of its text.
            graph = cps_model_copy(c, &m);
            ok = graph != NULL;
        }
        if (ok && strcmp(on, "ref")) {
            p = cps_model_compile(c, &m, t, &hits, &misses);
            ok = p != NULL;
            if (ok)
                cps_package_plan(p);
        }
    }
    rep.compile_ms = cps_now_ms() - t0;
    rep.hits = hits;
    rep.misses = misses;

    cps_io *in = NULL, *out = NULL, *ref = NULL;
    unsigned nin = 0, nout = 0;
    int64_t *bound = NULL;
    cps_report *each = NULL;
    if (ok && graph)
        cps_graph_inputs(c, graph->funcs.data[0], &in, &bound);
    if (ok && p) {
        cps_io *by_name;
        cps_package_io(c, p, &by_name, &out);
        nin = p->inputs.n;
        nout = p->outputs.n;
        if (!bound)
            bound = cps_package_bounds(c, p);
        in = by_name;
        rep.kernel = p->model;
        rep.target = p->target;
        each = cps_new_array(c->arena, cps_report, p->steps.n + 1);
    } else if (ok) {
        nin = graph->funcs.data[0]->inputs.n;
        nout = cps_graph_outputs(c, graph->funcs.data[0], &out);
        rep.kernel = graph->name;
    }
    ok = ok && cps_io_inputs(c, in, nin, bound);
    if (ok && !strcmp(on, "ref")) {
        double t1 = cps_now_ms();
        ok = cps_execute_ref(c, graph, graph->funcs.data[0], in, nin, out, nout, fp32);
        rep.wall_ms = cps_now_ms() - t1;
    } else if (ok) {
        ok = cps_execute_package(c, p, on, in, out, checks, &rep, each);
    }
    if (ok && cmp) {
        cps_graph_outputs(c, graph->funcs.data[0], &ref);
        ok = cps_execute_ref(c, graph, graph->funcs.data[0], in, nin, ref, nout, fp32);
        rep.compared = ok;
        // narrow arithmetic has the tolerance of its dtype (kernels reference: 2e-2 for bf16)
        for (unsigned k = 0; ok && k < nout; k++)
            cps_compare(out[k].name, cps_io_values(c->arena, &out[k]), ref[k].exact,
                        cps_type_count(&out[k].type), cps_model_rtol(graph, on), 1e-5, &rep.err);
    }
    cps_exit code = ok ? finish(c, &rep, p, each, out, nout) : rep.stopped ? CPS_OK : cps_cli_failed(c);
    cps_cli_flush(c);
    cps_package_close(p);
    cps_model_close(&m);
    return code;
}

/* The three things that `sim` does share one list of options; what one of them would pass over is
 * refused. */
static bool
sim_options(cps_cli *c)
{
    enum { VALIDATE = 1, PACKAGE = 2, GROUP = 4 };
    static const char *const does[] = {"", "--validate", "a package", "", "a group of kernels"};
    static const struct {
        cps_opt opt;
        const char *name;
        unsigned of;
    } own[] = {{CPS_OPT_ROWS, "--rows", VALIDATE},           {CPS_OPT_COUNTS, "--counts", VALIDATE},
               {CPS_OPT_OUTPUT, "-o", VALIDATE},             {CPS_OPT_JSON, "--json", VALIDATE},
               {CPS_OPT_KERNEL, "--kernel", PACKAGE},        {CPS_OPT_CHANGED, "--allow-changed", PACKAGE | GROUP},
               {CPS_OPT_SEED, "--seed", PACKAGE | GROUP},
               {CPS_OPT_INPUT, "--input", PACKAGE | GROUP},  {CPS_OPT_OUTDIR, "--output-dir", PACKAGE | GROUP},
               {CPS_OPT_TRACE, "--trace", PACKAGE | GROUP},  {CPS_OPT_HTML, "--html", PACKAGE | GROUP},
               {CPS_OPT_SUMMARY, "--summary", PACKAGE | GROUP}, {CPS_OPT_BREAK, "--break", PACKAGE | GROUP},
               {CPS_OPT_WATCH, "--watch", PACKAGE | GROUP},  {CPS_OPT_DUMP, "--dump", PACKAGE | GROUP},
               {CPS_OPT_CHECK, "--check", PACKAGE | GROUP},  {CPS_OPT_STOCHASTIC, "--stochastic-rounding", PACKAGE | GROUP}};
    unsigned now = cps_cli_has(c, CPS_OPT_VALIDATE) ? VALIDATE : cps_is_group(c) ? GROUP : PACKAGE;
    for (unsigned i = 0; i < cps_countof(own); i++)
        if (cps_cli_has(c, own[i].opt) && !(own[i].of & now)) {
            cps_error(c->diags, CPS_E1104, CPS_NOSPAN, "'%s' says nothing to 'sim' of %s", own[i].name, does[now]);
            cps_help(c->diags, own[i].of == VALIDATE  ? "it is of --validate"
                               : own[i].of == PACKAGE ? "it is of a package"
                                                      : "it is of a run: a package, or a group of kernels");
            return false;
        }
    return true;
}

cps_exit
cps_cmd_sim(cps_cli *c)
{
    if (!sim_options(c))
        return CPS_USAGE;
    if (cps_cli_has(c, CPS_OPT_VALIDATE))
        return cps_validate(c);
    if (cps_is_group(c))
        return cps_cmd_group(c);
    const char *path = one_arg(c);
    bool ok = true;
    unsigned checks = cps_cli_checks(c, &ok);
    if (!path || !ok)
        return cps_cli_failed(c);
    cps_package *p = open_package(c, path);
    if (!p)
        return cps_cli_failed(c);
    cps_io *in, *out;
    cps_package_io(c, p, &in, &out);
    cps_report rep = {.on = "sim", .target = p->target, .leaf = "", .kernel = p->model};
    cps_report *each = cps_new_array(c->arena, cps_report, p->steps.n + 1);
    ok = cps_io_inputs(c, in, p->inputs.n, cps_package_bounds(c, p)) &&
         cps_execute_package(c, p, "sim", in, out, checks, &rep, each);
    for (uint32_t i = 0; ok && i < p->steps.n; i++)
        if (each[i].launches)
            fprintf(stderr, "%4u  %-28s %12.3f us  %5.1f %% of roof\n", i, each[i].kernel,
                    (double)each[i].sim.time_ps / 1e6,
                    each[i].sim.time_ps
                        ? 1e5 * each[i].roof.roofline_ns / (double)each[i].sim.time_ps
                        : 0);
    cps_exit code = ok ? finish(c, &rep, p, each, out, p->outputs.n) : rep.stopped ? CPS_OK : cps_cli_failed(c);
    cps_cli_flush(c);
    cps_package_close(p);
    return code;
}
