/* copse opt and list-operators: looking at a model without making a package. */
#include "frontend/cmd_bir.h"
#include "frontend/cmd_run.h"
#include "frontend/depfile.h"
#include "frontend/model.h"
#include "frontend/onnx/onnx.h"
#include "lower/lower.h"
#include "runtime/base/file.h"

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

/* The decisions of selection as JSON, when the manifest is asked for. The model stays as it is. */
static bool
decide(cps_cli *c, cps_model *m, const cps_target *t, cps_buf *out)
{
    return !cps_cli_has(c, CPS_OPT_MANIFEST) || !t || cps_model_explain(c, m, t, true, out);
}

/* The sum of a file's bytes; null for a stream. */
static void
put_digest(cps_jsonw *w, const char *key, const char *path)
{
    cps_file f;
    char hex[65];
    cps_jsonw_key(w, key);
    if (!strcmp(path, "-") || !cps_file_open(path, false, &f)) {
        cps_jsonw_null(w);
        return;
    }
    cps_digest d = cps_digest_of(f.data, f.n);
    cps_digest_hex(&d, hex);
    cps_jsonw_str(w, hex);
    cps_file_close(&f);
}

/* What the stage did, for the program that runs it: no path stands in it. */
static bool
manifest(cps_cli *c, const char *path, const char *to, const char *out, const cps_target *t, const cps_buf *decided)
{
    const char *file = cps_cli_str(c, CPS_OPT_MANIFEST, NULL);
    if (!file)
        return true;
    cps_buf b = {0};
    cps_jsonw w;
    char hex[65];
    cps_jsonw_init(&w, &b);
    cps_jsonw_obj(&w, false);
    cps_jsonw_key(&w, "decisions");
    size_t n = decided->n;
    while (n && decided->data[n - 1] == '\n')
        n--;
    cps_jsonw_raw(&w, n ? cps_arena_strndup(c->arena, decided->data, n) : "[]");
    put_digest(&w, "input_digest", path);
    cps_jsonw_put_str(&w, "level", to);
    put_digest(&w, "output_digest", out);
    cps_jsonw_put_str(&w, "passes", cps_cli_str(c, CPS_OPT_PASSES, "all"));
    cps_jsonw_put_int(&w, "schema", 1);
    cps_jsonw_key(&w, "target");
    cps_jsonw_obj(&w, true);
    if (t) {
        cps_digest_hex(&t->digest, hex);
        cps_jsonw_put_str(&w, "digest", hex);
    }
    bool ok = true;
    cps_jsonw_put_int(&w, "lnc", cps_cli_int(c, CPS_OPT_LNC, 1, 1, 2, &ok));
    cps_jsonw_put_str(&w, "name", t ? t->name : "host");
    cps_jsonw_end_obj(&w);
    cps_jsonw_put_str(&w, "tool", "copse " CPS_VERSION);
    cps_jsonw_end_obj(&w);
    cps_jsonw_done(&w);
    ok = cps_cli_write(c, file, b.data, b.n) && ok;
    cps_buf_fini(&b);
    return ok;
}

cps_exit
cps_cmd_opt(cps_cli *c)
{
    bool ok = true;
    const char *path = one_model(c), *to = cps_cli_word(c, CPS_OPT_TO, "lowered", "graph lowered tile bundle");
    const char *out = cps_cli_str(c, CPS_OPT_OUTPUT, "-");
    if (path && cps_is_bir(path))
        return cps_depfile_allowed(c, out) ? cps_bir_opt(c, path, out) : CPS_USAGE;
    const cps_target *t = cps_cli_target(c, &ok);
    if (!path || !to || !ok || !cps_depfile_allowed(c, out))
        return cps_cli_failed(c);
    bool kernels = !strcmp(to, "tile") || !strcmp(to, "bundle");
    if (kernels && !t) {
        cps_error(c->diags, CPS_E1104, CPS_NOSPAN, "'--to %s' is of NeuronCore kernels, and there are none for the host", to);
        return CPS_USAGE;
    }
    if (kernels && cps_cli_has(c, CPS_OPT_PASSES)) {
        cps_error(c->diags, CPS_E1104, CPS_NOSPAN, "'--passes' ends at a graph, and '--to %s' goes on to kernels", to);
        return CPS_USAGE;
    }
    cps_model m;
    cps_buf decided = {0};
    ok = cps_model_read(c, path, &m) && decide(c, &m, t, &decided);
    if (ok && kernels) {
        cps_cli_flush(c);
        cps_model_close(&m);
        if (!strcmp(to, "tile")) // the texts are kept when asked for
            cps_vec_push(c->arena, &c->opt[CPS_OPT_EMIT], "tile");
        cps_exit code = cps_emit_kernels(c, path, to, out, t);
        if (code == CPS_OK && !manifest(c, path, to, out, t, &decided))
            code = cps_cli_failed(c);
        cps_buf_fini(&decided);
        return code;
    }
    ok = ok && (!strcmp(to, "graph") || cps_model_lower(c, &m, t));
    ok = ok && cps_model_write(c, m.module, out) && cps_depfile_write(c, out) && manifest(c, path, to, out, t, &decided);
    cps_buf_fini(&decided);
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
