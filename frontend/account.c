/* See account.h: the page for people, and the same as JSON. */
#include "frontend/account.h"

#include <inttypes.h>
#include <string.h>

static const double DOMINATES = 0.5; // of the time concerned: then the line is named

void
cps_account_add(cps_account *a, const cps_change *x)
{
    unsigned at = a->nchanges;
    for (; at > 0 && a->change[at - 1].saves_ps < x->saves_ps; at--)
        if (at < CPS_CHANGES)
            a->change[at] = a->change[at - 1];
    if (at < CPS_CHANGES)
        a->change[at] = *x;
    a->nchanges = CPS_MIN(a->nchanges + 1, CPS_CHANGES);
}

/* The core whose run is the longer one: of a pair it holds up the kernel. */
static unsigned
last_core(const cps_account *a)
{
    return a->timed.cores > 1 && a->timed.core[1].time_ps > a->timed.core[0].time_ps;
}

void
cps_account_hints(cps_account *a)
{
    cps_sim_hint h[CPS_SIM_HINTS];
    unsigned n = cps_sim_hints(cps_sim_group_core(a->timed.group, last_core(a)), h);
    for (unsigned k = 0; k < n; k++) {
        cps_change x = {.action = h[k].advice, .run = h[k].what, .saves_ps = h[k].saves_ps};
        if (h[k].at && h[k].share >= DOMINATES) {
            x.file = h[k].at->file;
            x.line = h[k].at->line;
            x.share = h[k].share;
        }
        cps_account_add(a, &x);
    }
}

static double
part(double x, double all)
{
    return all > 0 ? x / all : 0;
}

static double
peak_bytes_per_ns(const cps_account *a)
{
    double rate = a->target->hbm_roof_bytes_per_ns;
    return a->timed.cores > 1 ? 2 * CPS_MIN(rate, a->target->hbm_pair_bytes_per_ns) : rate;
}

/* The roof that binds: what the mathematics must compute, what it must move, or the passes that
 * the operator declares as the least of an engine. */
static const char *
binding_roof(const cps_account *a)
{
    return a->roof.engines_ns > a->roof.roofline_ns ? "engines" : a->roof.bound;
}

static double
roof_ns(const cps_account *a)
{
    return CPS_MAX(a->roof.engines_ns, a->roof.roofline_ns);
}

/* ---- text ---- */

static void
put_roof(const cps_account *a, double ns, cps_buf *out)
{
    if (!a->has_roof) {
        cps_buf_printf(out, "  time %.3f us\n", ns / 1e3);
        return;
    }
    cps_buf_printf(out, "  time %.3f us, roof %.3f us (%s): %.1f %% of it reached\n", ns / 1e3,
                   roof_ns(a) / 1e3, binding_roof(a), 100 * part(roof_ns(a), ns));
    cps_buf_printf(out,
                   "  %" PRId64 " flop, %" PRId64
                   " bytes, %.2f flop/byte; moving the bytes alone %.3f us\n",
                   a->roof.flops, a->roof.bytes,
                   part((double)a->roof.flops, (double)a->roof.bytes),
                   (double)a->roof.bytes / peak_bytes_per_ns(a) / 1e3);
}

void
cps_account_text(const cps_account *a, cps_buf *out)
{
    double ns = (double)a->timed.time_ps / 1e3;
    cps_buf_printf(out, "%s%s%s", a->kernel, *a->call ? ": " : "", a->call);
    if (*a->leaf)
        cps_buf_printf(out, "\n  leaf %s (%s)%s%s", a->leaf, a->why, *a->config ? " with " : "",
                       a->config);
    cps_buf_putc(out, '\n');
    put_roof(a, ns, out);
    if (a->timed.zeros)
        cps_buf_puts(out,
                     "  its control depends on data: the figures are of a run with zeros\n");
    for (unsigned k = 0; k < a->timed.cores; k++) {
        cps_sim *s = cps_sim_group_core(a->timed.group, k);
        cps_sim_account x;
        cps_sim_account_of(s, &x);
        if (a->timed.cores > 1)
            cps_buf_printf(out, "  core %u: %.3f us\n", k, (double)x.time_ps / 1e6);
        cps_buf_printf(out, "  bound by %s: %.1f %% of the critical path\n", x.binding,
                       100 * part((double)x.binding_ps, (double)x.time_ps));
        cps_sim_tables(s, out);
    }
    cps_buf_puts(out,
                 a->nchanges
                     ? "  changes that would help most, each with what a simulated run says:\n"
                     : "  no single change would gain half a percent\n");
    for (unsigned k = 0; k < a->nchanges; k++) {
        const cps_change *x = &a->change[k];
        cps_buf_printf(out, "    %u. %s\n", k + 1, x->action);
        if (x->file && x->share < 1)
            cps_buf_printf(out, "       at %s:%u, which has %.0f %% of that time\n", x->file,
                           x->line, 100 * x->share);
        else if (x->file)
            cps_buf_printf(out, "       at %s:%u\n", x->file, x->line);
        cps_buf_printf(out, "       %s: %.0f ns less (%.1f %%)\n", x->run,
                       (double)x->saves_ps / 1e3,
                       100 * part((double)x->saves_ps, (double)a->timed.time_ps));
    }
    if (!a->has_leaf)
        cps_buf_puts(
            out,
            "  of a compiled kernel; of its operator or model, buffers, leaves and parameters "
            "are tried as well\n");
}

/* ---- JSON ---- */

static void
put_ns(cps_jsonw *w, const char *key, int64_t ps)
{
    cps_jsonw_key(w, key);
    cps_jsonw_num(w, (double)ps / 1e3);
}

static void
put_num(cps_jsonw *w, const char *key, double v)
{
    cps_jsonw_key(w, key);
    cps_jsonw_num(w, v);
}

static void
json_changes(const cps_account *a, cps_jsonw *w)
{
    cps_jsonw_key(w, "changes");
    cps_jsonw_arr(w, false);
    for (unsigned k = 0; k < a->nchanges; k++) {
        const cps_change *x = &a->change[k];
        cps_jsonw_obj(w, false);
        cps_jsonw_put_str(w, "action", x->action);
        if (x->file) {
            cps_jsonw_put_str(w, "file", x->file);
            cps_jsonw_put_int(w, "line", x->line);
            put_num(w, "line_share", x->share);
        }
        cps_jsonw_put_str(w, "run", x->run);
        put_num(w, "saves_fraction", part((double)x->saves_ps, (double)a->timed.time_ps));
        put_ns(w, "saves_ns", x->saves_ps);
        cps_jsonw_end_obj(w);
    }
    cps_jsonw_end_arr(w);
}

/* Parts as objects: {KIND: ns} for each engine in turn, in the order they come. */
static void
json_by_engine(cps_jsonw *w, const char *key, const cps_sim_part *p, unsigned n, bool wait)
{
    cps_jsonw_key(w, key);
    cps_jsonw_obj(w, false);
    for (unsigned k = 0; k < n; k++) {
        const char *engine = wait ? p[k].kind : p[k].engine,
                   *kind = wait ? p[k].engine : p[k].kind;
        const char *before = !k ? NULL : wait ? p[k - 1].kind : p[k - 1].engine;
        if (!before || strcmp(before, engine)) {
            if (before)
                cps_jsonw_end_obj(w);
            cps_jsonw_key(w, engine);
            cps_jsonw_obj(w, true);
        }
        put_ns(w, kind, p[k].ps);
    }
    if (n)
        cps_jsonw_end_obj(w);
    cps_jsonw_end_obj(w);
}

static void
json_core(cps_sim *s, const cps_sim_report *r, cps_jsonw *w)
{
    cps_sim_account x;
    cps_sim_account_of(s, &x);
    cps_jsonw_obj(w, false);
    cps_jsonw_put_str(w, "binding", x.binding);
    put_num(w, "binding_fraction", part((double)x.binding_ps, (double)x.time_ps));
    cps_jsonw_key(w, "critical_path");
    cps_jsonw_obj(w, false);
    cps_jsonw_key(w, "parts");
    cps_jsonw_arr(w, false);
    for (unsigned k = 0; k < x.npath; k++) {
        cps_jsonw_obj(w, true);
        cps_jsonw_put_str(w, "engine", x.path[k].engine);
        cps_jsonw_put_str(w, "kind", x.path[k].kind);
        put_ns(w, "ns", x.path[k].ps);
        cps_jsonw_end_obj(w);
    }
    cps_jsonw_end_arr(w);
    cps_jsonw_put_int(w, "steps", x.steps);
    cps_jsonw_end_obj(w);
    cps_jsonw_put_int(w, "dma_bytes", (int64_t)r->dma_bytes);
    put_ns(w, "dma_moving_ns", r->dma_busy_ps);
    cps_jsonw_put_int(w, "dma_transfers", (int64_t)r->dma_transfers);
    json_by_engine(w, "engines", x.spent, x.nspent, false);
    put_ns(w, "time_ns", x.time_ps);
    json_by_engine(w, "waits", x.wait, x.nwait, true);
    cps_jsonw_end_obj(w);
}

void
cps_account_json(const cps_account *a, cps_jsonw *w)
{
    double ns = (double)a->timed.time_ps / 1e3;
    cps_jsonw_obj(w, false);
    cps_jsonw_key(w, "others_tried");
    cps_jsonw_bool(w, a->has_leaf);
    cps_jsonw_put_str(w, "call", a->call);
    json_changes(a, w);
    cps_jsonw_put_str(w, "config", a->config);
    cps_jsonw_key(w, "cores");
    cps_jsonw_arr(w, false);
    for (unsigned k = 0; k < a->timed.cores; k++)
        json_core(cps_sim_group_core(a->timed.group, k), &a->timed.core[k], w);
    cps_jsonw_end_arr(w);
    cps_jsonw_put_str(w, "kernel", a->kernel);
    cps_jsonw_put_str(w, "leaf", a->leaf);
    if (a->has_roof) {
        cps_jsonw_key(w, "roof");
        cps_jsonw_obj(w, false);
        cps_jsonw_put_str(w, "bound", a->roof.bound);
        put_num(w, "engines_ns", a->roof.engines_ns);
        cps_jsonw_put_int(w, "flops", a->roof.flops);
        put_num(w, "fraction", part(roof_ns(a), ns));
        cps_jsonw_put_int(w, "hbm_bytes", a->roof.bytes);
        put_num(w, "intensity", part((double)a->roof.flops, (double)a->roof.bytes));
        cps_jsonw_put_str(w, "roof", binding_roof(a));
        put_num(w, "roofline_ns", a->roof.roofline_ns);
        cps_jsonw_end_obj(w);
    }
    cps_jsonw_put_str(w, "target", a->target->name);
    put_ns(w, "time_ns", a->timed.time_ps);
    cps_jsonw_put_str(w, "why", a->why);
    cps_jsonw_key(w, "zeros");
    cps_jsonw_bool(w, a->timed.zeros);
    cps_jsonw_end_obj(w);
}
