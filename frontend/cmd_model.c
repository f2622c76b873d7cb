/* copse opt and list-operators: looking at a model without making a package. */
#include "frontend/cmd_bir.h"
#include "frontend/model.h"
#include "frontend/onnx/onnx.h"
#include "lower/lower.h"

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
