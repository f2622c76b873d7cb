/* copse tune: the fastest leaf and parameters of an operator's call, or of every call of a
 * model, found in the simulator and written to a file of tuned choices that --tuned takes. */
#include "frontend/block.h"
#include "frontend/call.h"
#include "frontend/model.h"
#include "frontend/report.h"
#include "frontend/tune.h"
#include "kernels/tuned.h"

#include "runtime/base/file.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { TRIES = 512 };

/* ---- calls ---- */

static bool
calls_of(cps_cli *c, const char *what, const cps_target *t, cps_model *m, cps_call **out,
         unsigned *n)
{
    bool file = cps_path_exists(what) || strpbrk(what, "./");
    if (file)
        return cps_model_read(c, what, m) && cps_model_calls(c, m, t, out, n);
    cps_call *one = cps_new(c->arena, cps_call);
    if (!cps_cli_call(c, what, t, &one->inst))
        return false;
    if (cps_is_block(c, what)) {
        cps_registry *r = cps_cli_registry(c);
        m->module = cps_module_new(c->arena, what);
        return r->calls(r->self, m->module, &one->inst, c->diags) &&
               cps_model_calls(c, m, t, out, n);
    }
    one->name = what;
    one->times = 1;
    *out = one;
    *n = 1;
    return true;
}

/* ---- the file ---- */

/* What stands in the file already, or an empty one. NULL after a diagnostic. */
static cps_tuned *
open_file(cps_cli *c, const char *path)
{
    cps_file f;
    if (!path || !strcmp(path, "-") || !cps_path_exists(path))
        return cps_tuned_new(c->arena, path ? path : "-");
    if (!cps_file_open(path, true, &f)) {
        cps_error(c->diags, CPS_E1001, CPS_NOSPAN, "cannot read '%s': %s", path,
                  strerror(errno));
        return NULL;
    }
    cps_tuned *t = cps_tuned_parse(c->arena, path, (const char *)f.data, f.n, c->diags);
    cps_file_close(&f);
    return t;
}

static void
put_rows(cps_cli *c, cps_tuned *t, const cps_tune_call *call, unsigned n)
{
    cps_registry *r = cps_cli_registry(c);
    for (unsigned k = 0; k < n; k++) {
        const cps_tune_call *x = &call[k];
        cps_buf b = {0};
        cps_config_print(&x->best, &b);
        cps_tuned_row row = {.call = x->text,
                             .leaf = x->best.leaf,
                             .ns = x->ns_best,
                             .ns_without = x->ns_before,
                             .config = cps_arena_strndup(c->arena, b.data ? b.data : "", b.n),
                             .leaf_digest = r->digest(r->self, x->best.leaf),
                             .target_digest = x->inst->target->digest};
        cps_buf_fini(&b);
        if (x->faster)
            cps_tuned_put(t, &row);
        else
            cps_tuned_drop(t, x->text); // an older line for it says what no longer holds
    }
}

/* ---- what was found ---- */

static void
put_choice(cps_buf *out, const char *name, const cps_candidate *k, int64_t ns)
{
    cps_buf b = {0};
    cps_config_print(k, &b);
    cps_buf_printf(out, "  %-8s%10" PRId64 " ns  %s%s%.*s", name, ns, k->leaf,
                   b.n ? " with " : "", (int)b.n, b.n ? b.data : "");
    cps_buf_fini(&b);
}

static void
print_text(const cps_call *of, const cps_tune_call *call, unsigned n)
{
    cps_buf b = {0};
    unsigned faster = 0;
    double before = 0, after = 0;
    for (unsigned k = 0; k < n; k++) {
        const cps_tune_call *x = &call[k];
        cps_buf_printf(&b, "%s\n", x->text);
        put_choice(&b, "as it is", &x->before, x->ns_before);
        cps_buf_printf(&b, "; %u tried, %u fit", x->tried, x->fits);
        if (x->cut)
            cps_buf_printf(&b, ", %u more beyond --tries", x->cut);
        cps_buf_putc(&b, '\n');
        if (x->faster) {
            put_choice(&b, "tuned", &x->best, x->ns_best);
            cps_buf_printf(&b, "; %.1f %% less, checked: max rel %.2g\n",
                           100 * (double)(x->ns_before - x->ns_best) / (double)x->ns_before,
                           x->max_rel);
        }
        faster += x->faster;
        before += (double)x->ns_before * of[k].times;
        after += (double)(x->faster ? x->ns_best : x->ns_before) * of[k].times;
    }
    cps_buf_printf(&b, "%u of %u calls faster: %.3f us as it is, %.3f us tuned\n", faster, n,
                   before / 1e3, after / 1e3);
    fwrite(b.data, 1, b.n, stderr);
    cps_buf_fini(&b);
}

static void
json_choice(cps_jsonw *w, const char *key, const cps_candidate *k, int64_t ns)
{
    cps_buf b = {0};
    cps_config_print(k, &b);
    cps_jsonw_key(w, key);
    cps_jsonw_obj(w, true);
    cps_jsonw_put_str(w, "config", b.n ? b.data : "");
    cps_jsonw_put_str(w, "leaf", k->leaf);
    cps_jsonw_put_int(w, "ns", ns);
    cps_jsonw_end_obj(w);
    cps_buf_fini(&b);
}

static void
print_json(const cps_call *of, const cps_tune_call *call, unsigned n)
{
    cps_buf b = {0};
    cps_jsonw w;
    cps_jsonw_init(&w, &b);
    cps_jsonw_obj(&w, false);
    cps_jsonw_key(&w, "calls");
    cps_jsonw_arr(&w, false);
    for (unsigned k = 0; k < n; k++) {
        const cps_tune_call *x = &call[k];
        cps_jsonw_obj(&w, false);
        json_choice(&w, "before", &x->before, x->ns_before);
        cps_jsonw_put_str(&w, "call", x->text);
        cps_jsonw_put_int(&w, "fit", x->fits);
        if (x->faster) {
            cps_jsonw_key(&w, "max_rel_err");
            cps_jsonw_num(&w, x->max_rel);
        }
        cps_jsonw_put_int(&w, "not_tried", x->cut);
        cps_jsonw_put_int(&w, "steps", of[k].times);
        cps_jsonw_put_int(&w, "tried", x->tried);
        if (x->faster)
            json_choice(&w, "tuned", &x->best, x->ns_best);
        cps_jsonw_end_obj(&w);
    }
    cps_jsonw_end_arr(&w);
    cps_jsonw_end_obj(&w);
    cps_jsonw_done(&w);
    fwrite(b.data, 1, b.n, stdout);
    cps_buf_fini(&b);
}

/* Whether a winner failed its check: an error for each. */
static bool
report_failed(cps_cli *c, const cps_tune_call *call, unsigned n)
{
    bool any = false;
    for (unsigned k = 0; k < n; k++) {
        const cps_tune_call *x = &call[k];
        if (!x->failed)
            continue;
        cps_buf b = {0};
        cps_config_print(&x->best, &b);
        cps_error(c->diags, CPS_E1116, CPS_NOSPAN, "%s by leaf '%s'%s%.*s: %s", x->text,
                  x->best.leaf, b.n ? " with " : "", (int)b.n, b.n ? b.data : "", x->why);
        cps_buf_fini(&b);
        any = true;
    }
    return any;
}

static cps_exit
tune(cps_cli *c, const char *what, const cps_target *t, const cps_tune_opts *o, cps_model *m)
{
    const char *path = cps_cli_str(c, CPS_OPT_OUTPUT, NULL);
    cps_tuned *file = open_file(c, path);
    cps_call *of;
    unsigned n;
    if (!file || !calls_of(c, what, t, m, &of, &n))
        return cps_cli_failed(c);
    cps_tune_call *call = cps_new_array(c->arena, cps_tune_call, n + 1);
    for (unsigned k = 0; k < n; k++) {
        cps_buf b = {0};
        cps_instance_print(&of[k].inst, &b);
        call[k].text = cps_arena_strndup(c->arena, b.data, b.n);
        call[k].inst = &of[k].inst;
        cps_buf_fini(&b);
    }
    if (!cps_tune(c, o, call, n))
        return cps_cli_failed(c);
    bool json = cps_cli_has(c, CPS_OPT_JSON), failed = report_failed(c, call, n), ok = true;
    json ? print_json(of, call, n) : print_text(of, call, n);
    put_rows(c, file, call, n);
    if (path || !json) {
        cps_buf b = {0};
        cps_tuned_print(file, &b);
        ok = cps_cli_write(c, path ? path : "-", b.data, b.n);
        cps_buf_fini(&b);
    }
    return failed ? CPS_DIFFERS : ok ? CPS_OK : cps_cli_failed(c);
}

cps_exit
cps_cmd_tune(cps_cli *c)
{
    bool ok = true;
    if (c->args.n != 1) {
        cps_error(c->diags, CPS_E1105, CPS_NOSPAN, "'tune' takes one operator or model");
        return CPS_USAGE;
    }
    const cps_target *t = cps_cli_target(c, &ok);
    long cpus = sysconf(_SC_NPROCESSORS_ONLN);
    cps_tune_opts o = {.leaf = cps_cli_str(c, CPS_OPT_LEAF, NULL)};
    o.workers = (unsigned)cps_cli_int(c, CPS_OPT_THREADS, cpus > 0 ? CPS_MIN(cpus, 256) : 1, 1,
                                      256, &ok);
    o.tries = (unsigned)cps_cli_int(c, CPS_OPT_TRIES, TRIES, 1, 1000000, &ok);
    if (!ok)
        return cps_cli_failed(c);
    if (!t) {
        cps_error(c->diags, CPS_E1104, CPS_NOSPAN,
                  "the host's leaves are not simulated, so there is nothing to tune by");
        return CPS_USAGE;
    }
    cps_model m = {0};
    cps_exit code = tune(c, c->args.data[0], t, &o, &m);
    cps_cli_flush(c);
    cps_model_close(&m);
    return code;
}
