/* copse explain, opt and list-operators: looking at a model without making a package. */
#include "frontend/cmd_bir.h"
#include "frontend/compile.h"
#include "frontend/execute.h"
#include "frontend/model.h"
#include "frontend/onnx/onnx.h"
#include "frontend/report.h"
#include "lower/lower.h"
#include "runtime/pkg/package_plan.h"

#include <stdio.h>
#include <string.h>

static const char *
one_model(cps_cli *c)
{
    if (c->args.n == 1)
        return c->args.data[0];
    cps_error(c->diags, CPS_E1105, CPS_NOSPAN, "'%s' takes one model", c->command);
    return NULL;
}

cps_exit
cps_cmd_explain(cps_cli *c)
{
    bool ok = true;
    const char *path = one_model(c);
    const cps_target *t = cps_cli_target(c, &ok);
    if (!path || !ok)
        return cps_cli_failed(c);
    if (cps_cli_has(c, CPS_OPT_JSON) && cps_cli_has(c, CPS_OPT_CYCLES)) {
        cps_error(c->diags, CPS_E1104, CPS_NOSPAN, "'--cycles' is a table for people, '--json' is not");
        cps_help(c->diags, "`copse run IN --report F` has the cycles of every step as JSON");
        return CPS_USAGE;
    }
    if (!t) {
        cps_error(c->diags, CPS_E1104, CPS_NOSPAN,
                  "on the host every operator has one leaf, generated from its body");
        return CPS_USAGE;
    }
    cps_model m;
    cps_buf b = {0};
    ok = cps_model_read(c, path, &m) && cps_model_explain(c, &m, t, cps_cli_has(c, CPS_OPT_JSON), &b);
    if (ok)
        fwrite(b.data ? b.data : "", 1, b.n, stdout);
    if (ok && cps_cli_has(c, CPS_OPT_CYCLES)) {
        // The simulated cycles of each step, from the same choice of leaves.
        unsigned hits = 0, misses = 0;
        cps_package *p = cps_model_compile(c, &m, t, &hits, &misses);
        ok = p != NULL;
        if (ok) {
            cps_package_plan(p);
            cps_io *in, *out;
            cps_package_io(c, p, &in, &out);
            cps_report rep = {.on = "sim"};
            cps_report *each = cps_new_array(c->arena, cps_report, p->steps.n + 1);
            ok = cps_io_inputs(c, in, p->inputs.n, cps_package_bounds(c, p)) &&
                 cps_execute_package(c, p, "sim", in, out, 0, &rep, each);
            if (ok)
                printf("\n%-32s%10s%10s%10s%10s%10s%12s%8s\n", "cycles by step", "pe", "act", "pool",
                       "dve", "sp", "time us", "roof");
            for (uint32_t i = 0; ok && i < p->steps.n; i++) {
                if (!each[i].launches)
                    continue;
                printf("%-32s", each[i].kernel);
                for (int e = 0; e < CPS_ENGINES; e++)
                    printf("%10lld", (long long)each[i].sim.cycles[e]);
                double ns = (double)each[i].sim.time_ps / 1e3;
                printf("%12.3f%7.1f%%\n", ns / 1e3, ns > 0 ? 100 * each[i].roof.roofline_ns / ns : 0);
            }
        }
    }
    cps_buf_fini(&b);
    cps_exit code = ok ? CPS_OK : cps_cli_failed(c);
    cps_cli_flush(c);
    cps_model_close(&m);
    return code;
}

cps_exit
cps_cmd_opt(cps_cli *c)
{
    bool ok = true;
    const char *path = one_model(c), *to = cps_cli_word(c, CPS_OPT_TO, "lowered", "graph lowered");
    if (path && cps_is_bir(path))
        return cps_bir_opt(c, path, cps_cli_str(c, CPS_OPT_OUTPUT, "-"));
    const cps_target *t = cps_cli_target(c, &ok);
    if (!path || !to || !ok)
        return cps_cli_failed(c);
    cps_model m;
    ok = cps_model_read(c, path, &m) && (!strcmp(to, "graph") || cps_model_lower(c, &m, t));
    ok = ok && cps_model_write(c, m.module, cps_cli_str(c, CPS_OPT_OUTPUT, "-"));
    cps_exit code = ok ? CPS_OK : cps_cli_failed(c);
    cps_cli_flush(c);
    cps_model_close(&m);
    return code;
}

cps_exit
cps_cmd_list_operators(cps_cli *c)
{
    if (!cps_cli_word(c, CPS_OPT_FROM, "onnx", "onnx"))
        return CPS_USAGE;
    const cps_onnx_row *rows;
    unsigned n = cps_onnx_rows(&rows);
    bool json = cps_cli_has(c, CPS_OPT_JSON);
    cps_buf b = {0};
    cps_jsonw w;
    cps_jsonw_init(&w, &b);
    if (json)
        cps_jsonw_arr(&w, false);
    for (unsigned i = 0; i < n; i++) {
        const cps_onnx_row *r = &rows[i];
        if (json) {
            cps_jsonw_obj(&w, true);
            cps_jsonw_key(&w, "domain");
            cps_jsonw_str(&w, r->domain);
            cps_jsonw_key(&w, "name");
            cps_jsonw_str(&w, r->name);
            cps_jsonw_key(&w, "note");
            cps_jsonw_str(&w, r->note);
            cps_jsonw_key(&w, "since");
            cps_jsonw_int(&w, r->since);
            cps_jsonw_end_obj(&w);
        } else {
            cps_buf_printf(&b, "%-32s since %2d  %s%s%s\n", r->name, r->since, r->domain,
                           *r->domain ? "  " : "", r->note);
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
