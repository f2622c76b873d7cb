/* Blocks: operators whose body calls other operators. Each call is resolved by the registry as in a
 * model, so a block becomes a package of several steps; what it computes is its body with all calls
 * inlined. */
#include "frontend/block.h"

#include "frontend/model.h"
#include "runtime/pkg/package_plan.h"

#include <string.h>

bool
cps_is_block(cps_cli *c, const char *op)
{
    cps_registry *r = cps_cli_registry(c);
    cps_opinfo info;
    return r->find_op(r->self, op, &info) && !strcmp(info.tree, "blocks");
}

/* A block's calls, each resolved by the registry, as a package of several steps; the body with all
 * calls inlined is its reference. */
cps_package *
cps_block_package(cps_cli *c, const cps_instance *inst, cps_module **ref, unsigned *hits, unsigned *misses)
{
    cps_registry *r = cps_cli_registry(c);
    cps_model m = {.module = cps_module_new(c->arena, inst->op)};
    *ref = cps_module_new(c->arena, inst->op);
    if (!r->calls(r->self, m.module, inst, c->diags) || !r->body(r->self, *ref, inst, c->diags))
        return NULL;
    cps_package *p = cps_model_compile(c, &m, inst->target, hits, misses);
    if (p) {
        cps_buf text = {0};
        cps_ir_print(*ref, &text);
        p->graph = cps_arena_strndup(c->arena, text.data, text.n);
        p->graph_bytes = text.n;
        cps_buf_fini(&text);
    }
    return p;
}

cps_exit
cps_block_run(cps_cli *c, const cps_instance *inst, cps_io *in, unsigned nin, cps_io *out, unsigned nout,
          unsigned checks, cps_report *rep)
{
    cps_module *ref;
    static const cps_opt alone[] = {CPS_OPT_LEAF, CPS_OPT_EMIT, CPS_OPT_SAVEIO};
    for (unsigned i = 0; i < cps_countof(alone); i++)
        if (cps_cli_has(c, alone[i])) {
            cps_error(c->diags, CPS_E1104, CPS_NOSPAN,
                      "'%s' is a block of several kernels: --leaf, --emit and --save-io take one", inst->op);
            cps_help(c->diags, "compile it with `copse kernel compile` and look into the package");
            return CPS_USAGE;
        }
    double t0 = cps_now_ms();
    cps_package *p = cps_block_package(c, inst, &ref, &rep->hits, &rep->misses);
    if (!p)
        return cps_cli_failed(c);
    cps_package_plan(p);
    rep->compile_ms = cps_now_ms() - t0;
    rep->leaf = "block";
    rep->launches = 0;
    rep->roof = (cps_roof){0};
    if (!cps_execute_package(c, p, "sim", in, out, checks, rep, NULL))
        return rep->stopped ? CPS_OK : cps_cli_failed(c);
    if (cps_cli_has(c, CPS_OPT_COMPARE)) {
        cps_io *want;
        cps_graph_outputs(c, ref->funcs.data[0], &want);
        if (!cps_execute_ref(c, ref, ref->funcs.data[0], in, nin, want, nout,
                             cps_cli_has(c, CPS_OPT_REFACC)))
            return cps_cli_failed(c);
        rep->compared = true;
        for (unsigned k = 0; k < nout; k++)
            cps_compare(out[k].name, cps_io_values(c->arena, &out[k]), want[k].exact,
                        cps_type_count(&out[k].type), cps_model_rtol(ref, "sim"), 1e-5, &rep->err);
    }
    return cps_report_emit(c, rep);
}
