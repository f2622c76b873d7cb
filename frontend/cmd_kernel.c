/* copse kernel: the registry as lists, and one operator run with seeded inputs on the simulator,
 * the host or the reference evaluator. */
#include "frontend/block.h"
#include "frontend/call.h"
#include "frontend/cmd_kernel.h"
#include "frontend/compile.h"
#include "frontend/depfile.h"
#include "frontend/execute.h"
#include "frontend/expand.h"
#include "frontend/inputs.h"
#include "frontend/kernel_cache.h"
#include "frontend/model.h"
#include "frontend/neff.h"
#include "frontend/report.h"
#include "frontend/views.h"

#include "runtime/base/file.h"

#include <stdio.h>
#include <string.h>

static cps_exit
list(cps_cli *c)
{
    cps_registry *r = cps_cli_registry(c);
    if (!r)
        return cps_cli_failed(c);
    bool json = cps_cli_has(c, CPS_OPT_JSON);
    cps_buf b = {0};
    cps_jsonw w;
    cps_jsonw_init(&w, &b);
    if (json)
        cps_jsonw_arr(&w, false);
    for (unsigned i = 0; i < r->ops(r->self); i++) {
        cps_opinfo op;
        if (!r->op(r->self, i, &op))
            return cps_cli_failed(c);
        if (json) {
            cps_jsonw_obj(&w, false);
            cps_jsonw_key(&w, "dims");
            cps_jsonw_arr(&w, true);
            for (int k = 0; k < op.ndims; k++)
                cps_jsonw_str(&w, op.dim[k]);
            cps_jsonw_end_arr(&w);
            cps_jsonw_key(&w, "file");
            cps_jsonw_str(&w, op.file);
            cps_jsonw_key(&w, "leaves");
            cps_jsonw_arr(&w, false);
        } else {
            cps_buf_printf(&b, "%s(", op.name);
            for (int k = 0; k < op.noperands; k++)
                cps_buf_printf(&b, "%s%s", k ? ", " : "", op.operand[k]);
            for (int k = 0; k < op.nattrs; k++)
                cps_buf_printf(&b, "%s%s", k ? ", " : "; ", op.attr[k]);
            cps_buf_puts(&b, ") -> ");
            for (int k = 0; k < op.nresults; k++)
                cps_buf_printf(&b, "%s%s", k ? ", " : "", op.result[k]);
            cps_buf_printf(&b, "    [%s]\n", op.tree);
        }
        for (unsigned j = 0; j < r->leaves(r->self); j++) {
            cps_leafinfo leaf;
            if (!r->leaf(r->self, j, &leaf) || strcmp(leaf.op, op.name))
                continue;
            if (json) {
                cps_jsonw_obj(&w, true);
                cps_jsonw_key(&w, "file");
                cps_jsonw_str(&w, leaf.file);
                cps_jsonw_key(&w, "name");
                cps_jsonw_str(&w, leaf.name);
                cps_jsonw_key(&w, "targets");
                cps_jsonw_str(&w, leaf.targets);
                cps_jsonw_end_obj(&w);
            } else {
                cps_buf_printf(&b, "    %-24s on %-20s %s\n", leaf.name, leaf.targets, leaf.file);
            }
        }
        if (json) {
            cps_jsonw_end_arr(&w);
            cps_jsonw_key(&w, "name");
            cps_jsonw_str(&w, op.name);
            cps_jsonw_key(&w, "tree");
            cps_jsonw_str(&w, op.tree);
            cps_jsonw_end_obj(&w);
        }
    }
    if (json) {
        cps_jsonw_end_arr(&w);
        cps_jsonw_done(&w);
    }
    fwrite(b.data ? b.data : "", 1, b.n, stdout);
    cps_buf_fini(&b);
    return CPS_OK;
}

/* The text of the file that declares NAME: the best description of an operator or leaf. */
static cps_exit
show(cps_cli *c)
{
    cps_registry *r = cps_cli_registry(c);
    const char *name = c->args.n > 1 ? c->args.data[1] : "", *file = NULL;
    if (!r)
        return cps_cli_failed(c);
    if (cps_cli_has(c, CPS_OPT_EXPAND))
        return cps_kernel_expand(c, name);
    for (unsigned j = 0; !file && j < r->leaves(r->self); j++) {
        cps_leafinfo leaf;
        if (r->leaf(r->self, j, &leaf) && !strcmp(leaf.name, name))
            file = leaf.file;
    }
    cps_opinfo op;
    if (!file && r->find_op(r->self, name, &op))
        file = op.file;
    for (unsigned k = 0; file && k < cps_kernel_source_count; k++)
        if (!strcmp(cps_kernel_sources[k].path, file)) {
            printf("// %s\n", file);
            fwrite(cps_kernel_sources[k].text, 1, cps_kernel_sources[k].n, stdout);
            return CPS_OK;
        }
    for (uint32_t k = 0; file && k < c->opt[CPS_OPT_KPATH].n; k++) {
        cps_file f;
        if (strcmp(c->opt[CPS_OPT_KPATH].data[k], file) || !cps_file_open(file, true, &f))
            continue;
        printf("// %s\n", file);
        fwrite(f.data, 1, f.n, stdout);
        cps_file_close(&f);
        return CPS_OK;
    }
    cps_error(c->diags, CPS_E1106, CPS_NOSPAN, "no operator or leaf is called '%s'", name);
    cps_help(c->diags, "`copse kernel list` shows all");
    return CPS_BAD_INPUT;
}

/* Operators by target: how many leaves each has. */
static cps_exit
coverage(cps_cli *c)
{
    static const char *const targets[] = {"trn1", "trn2", "trn3", "host"};
    cps_registry *r = cps_cli_registry(c);
    if (!r)
        return cps_cli_failed(c);
    printf("%-24s", "operator");
    for (unsigned t = 0; t < cps_countof(targets); t++)
        printf("%8s", targets[t]);
    printf("\n");
    for (unsigned i = 0; i < r->ops(r->self); i++) {
        cps_opinfo op;
        if (!r->op(r->self, i, &op))
            return cps_cli_failed(c);
        printf("%-24s", op.name);
        for (unsigned t = 0; t < cps_countof(targets); t++) {
            unsigned n = 0;
            for (unsigned j = 0; j < r->leaves(r->self); j++) {
                cps_leafinfo leaf;
                n += r->leaf(r->self, j, &leaf) && !strcmp(leaf.op, op.name) &&
                     strstr(leaf.targets, targets[t]) != NULL;
            }
            // on the host every operator has the leaf generated from its body
            printf("%8u", n + !strcmp(targets[t], "host"));
        }
        printf("\n");
    }
    return CPS_OK;
}

static cps_exit
run(cps_cli *c)
{
    if (c->args.n != 2) {
        cps_error(c->diags, CPS_E1105, CPS_NOSPAN, "'kernel run' takes the name of one operator");
        return CPS_USAGE;
    }
    bool ok = true;
    const char *on = cps_cli_word(c, CPS_OPT_ON, "sim", "sim host ref");
    const cps_target *t = cps_cli_target(c, &ok);
    if (on && ok && !strcmp(on, "sim") && !t)
        on = "host";
    if (on && !strcmp(on, "host"))
        t = NULL;
    bool fp32 = cps_cli_has(c, CPS_OPT_REFACC) && cps_cli_word(c, CPS_OPT_REFACC, "fp32", "fp32");
    unsigned checks = cps_cli_checks(c, &ok);
    const char *cmp = cps_cli_has(c, CPS_OPT_COMPARE) ? cps_cli_word(c, CPS_OPT_COMPARE, "ref", "ref") : NULL;
    cps_instance inst;
    if (!on || !ok || (cps_cli_has(c, CPS_OPT_COMPARE) && !cmp) ||
        (cps_cli_has(c, CPS_OPT_REFACC) && !fp32) || !cps_views_allowed(c, on) ||
        !cps_cli_call(c, c->args.data[1], t, &inst))
        return cps_cli_failed(c);

    cps_registry *r = cps_cli_registry(c);
    cps_module *m = cps_module_new(c->arena, inst.op);
    cps_func *body = r->body(r->self, m, &inst, c->diags);
    if (!body)
        return cps_cli_failed(c);

    cps_report rep = {.kernel = inst.op, .target = t ? t->name : "host", .on = on, .facts = t,
                      .launches = 1, .checks = 0, .err = CPS_ERRS_START};
    unsigned nin = 0, nout = (unsigned)inst.nresults;
    cps_io in[CPS_MAX_OPERANDS] = {0}, out[CPS_MAX_OPERANDS] = {0}, ref[CPS_MAX_OPERANDS] = {0};
    int64_t bound[CPS_MAX_OPERANDS];
    for (int k = 0; k < inst.noperands; k++) {
        if (!inst.operand[k].present)
            continue;
        in[nin] = (cps_io){.name = inst.operand[k].name, .type = inst.operand[k].type};
        bound[nin] = cps_index_bound(body, body->inputs.data[nin]);
        nin++;
    }
    for (unsigned k = 0; k < nout; k++)
        out[k] = ref[k] = (cps_io){.name = inst.result[k].name, .type = inst.result[k].type};
    const char *emit = cps_cli_has(c, CPS_OPT_EMIT) ? cps_cli_word(c, CPS_OPT_EMIT, "", "graph tile asm bir")
                                                    : NULL;
    if (cps_cli_has(c, CPS_OPT_EMIT) && !emit)
        return CPS_USAGE;
    // Text of one kernel needs no data.
    bool runs = !emit || strcmp(on, "sim") != 0 || cps_is_block(c, inst.op);
    if (!cps_roof_of(r, c->arena, &inst, &rep.roof, c->diags) ||
        (runs && !cps_io_inputs(c, in, nin, bound)))
        return cps_cli_failed(c);

    cps_candidate *cand = NULL;
    double rtol = 1e-5, atol = 1e-6;
    if (emit && !strcmp(emit, "graph")) {
        cps_buf text = {0};
        cps_ir_print(m, &text);
        fwrite(text.data, 1, text.n, stdout);
        cps_buf_fini(&text);
        return CPS_OK;
    }
    if (!strcmp(on, "ref")) {
        rep.leaf = "reference";
        double t0 = cps_now_ms();
        ok = cps_execute_ref(c, m, body, in, nin, out, nout, fp32);
        rep.wall_ms = cps_now_ms() - t0;
    } else if (!strcmp(on, "host")) {
        rep.leaf = cps_arena_printf(c->arena, "%s_generated", inst.op);
        rtol = cps_model_rtol(m, "host"); // by the narrowest type, as for a model
        atol = 1e-5;
        ok = cps_execute_host_func(c, m, body, in, nin, out, nout, &rep);
    } else if (cps_is_block(c, inst.op)) {
        return cps_block_run(c, &inst, in, nin, out, nout, checks, &rep);
    } else {
        unsigned n = 0;
        const char *why = NULL;
        int k = cps_choose(c, &inst, cps_cli_str(c, CPS_OPT_LEAF, NULL), &cand, &n, &why);
        if (k < 0 || !cps_cli_pin(c, &inst, &cand[k]))
            return cps_cli_failed(c);
        rep.leaf = cand[k].leaf;
        rtol = cand[k].rtol;
        atol = cand[k].atol;
        if (emit && !strcmp(emit, "tile")) {
            cps_buf text = {0};
            ok = cps_compile_tile(c, c->arena, &inst, &cand[k], &text);
            if (ok)
                fwrite(text.data, 1, text.n, stdout);
            cps_buf_fini(&text);
            return ok ? CPS_OK : cps_cli_failed(c);
        }
        double t0 = cps_now_ms();
        cps_compiled bin;
        if (!cps_compile_kernel(c, c->arena, &inst, &cand[k], &bin))
            return cps_cli_failed(c);
        rep.compile_ms = cps_now_ms() - t0;
        rep.hits = bin.hit;
        rep.misses = !bin.hit;
        if (emit && !strcmp(emit, "bir") && bin.kbin->peer) {
            cps_error(c->diags, CPS_E1104, CPS_NOSPAN, "'--emit bir' of two cores is two documents, and this is one stream");
            cps_help(c->diags, "kernel compile --emit bir -o DIR writes kernel.bir.json for each core");
            return CPS_USAGE;
        }
        if (emit && !strcmp(emit, "bir"))
            return cps_cli_write(c, "-", bin.bir[0], bin.bir_bytes[0]) ? CPS_OK : CPS_IO;
        if (emit && !strcmp(emit, "asm")) {
            cps_buf text = {0};
            cps_kbin_listing(bin.kbin, &text);
            fwrite(text.data, 1, text.n, stdout);
            cps_buf_fini(&text);
            return CPS_OK;
        }
        ok = cps_execute_kernel(c, &inst, bin.kbin, in, nin, out, nout, checks, &rep);
    }
    if (!ok)
        return rep.stopped ? CPS_OK : cps_cli_failed(c);

    if (cmp || cps_cli_has(c, CPS_OPT_SAVEIO)) {
        if (!cps_execute_ref(c, m, body, in, nin, ref, nout, fp32))
            return cps_cli_failed(c);
        rep.compared = cmp != NULL;
        for (unsigned k = 0; k < nout; k++)
            cps_compare(out[k].name, cps_io_values(c->arena, &out[k]), ref[k].exact,
                        cps_type_count(&out[k].type), rtol, atol, &rep.err);
    }
    const char *dir = cps_cli_str(c, CPS_OPT_SAVEIO, NULL);
    for (unsigned k = 0; dir && k < nin; k++)
        ok = ok && cps_io_save(c, dir, "in_", &in[k]);
    for (unsigned k = 0; dir && k < nout; k++)
        ok = ok && cps_io_save(c, dir, "out_", &out[k]) && cps_io_save(c, dir, "ref_", &ref[k]);
    if (!ok)
        return cps_cli_failed(c);
    return cps_report_emit(c, &rep);
}

/* What is written beside a fresh package. */
static cps_exit
beside(cps_cli *c, const char *dir, bool neff)
{
    return (!neff || cps_neff_emit(c, dir)) && cps_depfile_write(c, cps_path_join(c->arena, dir, "manifest.json"))
               ? CPS_OK
               : cps_cli_failed(c);
}

static void
said(const char *dir, const char *leaf, const char *why, bool hit, double ms)
{
    fprintf(stderr, "%s: %s (%s), %s in %.2f ms\n", dir, leaf, why, hit ? "from the cache" : "compiled", ms);
}

static cps_exit package_of(cps_cli *c, const char *op, const cps_target *t, cps_kcache *kept, const char *dir, bool neff);

/* One kernel as a package of one step: its binary, and its body as the reference graph. */
cps_exit
cps_kernel_compile(cps_cli *c, const char *op, const char *dir)
{
    bool ok = true;
    double t0 = cps_now_ms();
    const cps_target *t = cps_cli_target(c, &ok);
    if (ok && !t) {
        cps_error(c->diags, CPS_E1104, CPS_NOSPAN, "'%s' makes NeuronCore binaries of operators", c->command);
        cps_help(c->diags, "for host code compile a model: copse compile IN --target host");
        return CPS_USAGE;
    }
    if (cps_cli_has(c, CPS_OPT_EMIT) && !cps_cli_word(c, CPS_OPT_EMIT, "", "neff bir"))
        return CPS_USAGE;
    bool neff = !strcmp(cps_cli_str(c, CPS_OPT_EMIT, ""), "neff");
    if (!ok)
        return cps_cli_failed(c);
    cps_kcache kept;
    cps_rendered r;
    const char *leaf, *why;
    cps_exit done;
    if (cps_kcache_get(c, op, t, &kept, &r, &leaf, &why)) {
        double t1 = cps_now_ms();
        done = cps_rendered_write(&r, dir, c->diags) ? CPS_OK : cps_cli_failed(c);
        if (done == CPS_OK)
            said(dir, leaf, why, true, t1 - t0);
    } else {
        done = package_of(c, op, t, &kept, dir, neff);
    }
    cps_kcache_release(&kept);
    return done;
}

static cps_exit
package_of(cps_cli *c, const char *op, const cps_target *t, cps_kcache *kept, const char *dir, bool neff)
{
    cps_instance inst;
    if (!cps_cli_call(c, op, t, &inst))
        return cps_cli_failed(c);
    double t0 = cps_now_ms();
    if (cps_is_block(c, inst.op)) {
        cps_module *ref;
        unsigned hits = 0, misses = 0;
        cps_package *p = cps_block_package(c, &inst, &ref, &hits, &misses);
        if (!p || !cps_package_write(p, dir, c->diags))
            return cps_cli_failed(c);
        fprintf(stderr, "%s: block %s, %u steps, %u kernels (%u hits, %u misses)\n", dir, inst.op,
                p->steps.n, p->kernels.n, hits, misses);
        return beside(c, dir, neff);
    }
    cps_candidate *cand;
    const char *why;
    unsigned n;
    int k = cps_choose(c, &inst, cps_cli_str(c, CPS_OPT_LEAF, NULL), &cand, &n, &why);
    cps_compiled bin;
    if (k < 0 || !cps_cli_pin(c, &inst, &cand[k]) || !cps_compile_kernel(c, c->arena, &inst, &cand[k], &bin))
        return cps_cli_failed(c);
    cps_package *p = cps_kernel_package(c, &inst, &cand[k], why, &bin);
    double t1 = cps_now_ms();
    if (!p)
        return cps_cli_failed(c);
    cps_rendered r;
    cps_package_render(p, &r);
    if (!cps_rendered_write(&r, dir, c->diags))
        return cps_cli_failed(c);
    cps_kcache_put(c, kept, &r, cand[k].leaf, why);
    said(dir, cand[k].leaf, why, bin.hit, t1 - t0);
    return beside(c, dir, neff);
}

static cps_exit
compile(cps_cli *c)
{
    const char *dir = cps_cli_str(c, CPS_OPT_OUTPUT, NULL);
    if (c->args.n != 2 || !dir) {
        cps_error(c->diags, CPS_E1105, CPS_NOSPAN, "'kernel compile' takes one operator and -o DIR");
        return CPS_USAGE;
    }
    return cps_depfile_allowed(c, dir) ? cps_kernel_compile(c, c->args.data[1], dir) : CPS_USAGE;
}

cps_exit
cps_cmd_kernel(cps_cli *c)
{
    static const struct {
        const char *name;
        cps_exit (*run)(cps_cli *c);
    } verbs[] = {{"list", list}, {"show", show}, {"coverage", coverage}, {"compile", compile}, {"run", run}};
    const char *verb = c->args.n ? c->args.data[0] : "";
    if (strcmp(verb, "compile") && (cps_cli_has(c, CPS_OPT_MD) || cps_cli_has(c, CPS_OPT_MF))) {
        cps_error(c->diags, CPS_E1104, CPS_NOSPAN, "'-MD' is of 'kernel compile': the others make no file that depends on anything");
        return CPS_USAGE;
    }
    for (unsigned i = 0; i < cps_countof(verbs); i++)
        if (!strcmp(verbs[i].name, verb))
            return verbs[i].run(c);
    cps_error(c->diags, CPS_E1105, CPS_NOSPAN, "'kernel' takes one of: list, show, coverage, compile, run");
    return CPS_USAGE;
}
