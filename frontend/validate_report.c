/* What a validation says: a page for people, JSON for machines, and VALIDATION.md. */
#include "frontend/validate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static int
by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

// Linear between neighbours, as NumPy's default.
static double
quantile(const double *v, unsigned n, double q)
{
    double at = q * (n - 1);
    unsigned i = (unsigned)at;
    return i + 1 < n ? v[i] + (at - i) * (v[i + 1] - v[i]) : v[n - 1];
}

cps_vstats
cps_validate_stats(cps_cli *c, const cps_vtable *t, const char *group, bool hard)
{
    cps_vstats s = {0};
    double *v = cps_new_array(c->arena, double, t->rows.n + 1);
    for (uint32_t i = 0; i < t->rows.n; i++) {
        const cps_vrow *r = &t->rows.data[i];
        if (!r->ran || r->bound || (hard && r->soft) || (group && strcmp(group, r->group)))
            continue;
        v[s.n++] = fabs(r->error);
        s.mean += r->error;
    }
    if (!s.n)
        return s;
    qsort(v, s.n, sizeof *v, by_value);
    s.mean /= s.n;
    s.median = quantile(v, s.n, 0.5);
    s.p90 = quantile(v, s.n, 0.9);
    s.worst = v[s.n - 1];
    return s;
}

// Groups in order of first sight: true once for each.
static bool
first_of_group(const cps_vtable *t, uint32_t i)
{
    for (uint32_t k = 0; k < i; k++)
        if (!strcmp(t->rows.data[k].group, t->rows.data[i].group))
            return false;
    return true;
}

static void
put_us(cps_buf *b, double ns, int width)
{
    double us = ns / 1e3;
    cps_buf_printf(b, "%*.*f", width, us >= 100 ? 1 : us >= 10 ? 2 : 3, us);
}

static void
put_stats(cps_buf *b, const char *what, const cps_vstats *s)
{
    if (s->n)
        cps_buf_printf(b,
                       "%-24s %4u rows  median %5.1f %%  90th percentile %5.1f %%  worst %5.1f "
                       "%%  mean %+5.1f %%\n",
                       what, s->n, 100 * s->median, 100 * s->p90, 100 * s->worst,
                       100 * s->mean);
}

// Share of the time that a unit is busy: engines, then DMA.
static double
busy(const cps_vrow *r, int unit)
{
    cps_ps t = unit < CPS_ENGINES ? r->sim.busy_ps[unit] : r->sim.dma_busy_ps;
    return r->sim.time_ps ? (double)t / (double)r->sim.time_ps : 0;
}

static const char *
unit_name(int unit)
{
    return unit < CPS_ENGINES ? cps_engine_name((cps_engine)unit) : "dma";
}

// The two busiest: "pe 97 dma 40".
static void
put_busy(cps_buf *b, const cps_vrow *r)
{
    int best[2] = {0, 1};
    for (int u = 1; u <= CPS_ENGINES; u++) {
        if (busy(r, u) > busy(r, best[0])) {
            best[1] = best[0];
            best[0] = u;
        } else if (best[1] == best[0] || busy(r, u) > busy(r, best[1])) {
            best[1] = u;
        }
    }
    cps_buf_printf(b, "%s %.0f %s %.0f", unit_name(best[0]), 100 * busy(r, best[0]),
                   unit_name(best[1]), 100 * busy(r, best[1]));
}

static unsigned
count(const cps_vtable *t, bool bound, bool ran, bool above)
{
    unsigned n = 0;
    for (uint32_t i = 0; i < t->rows.n; i++) {
        const cps_vrow *r = &t->rows.data[i];
        n += r->bound == bound && r->ran == ran && (!above || r->error > 0);
    }
    return n;
}

void
cps_validate_text_report(cps_cli *c, const cps_vtable *t, cps_buf *b)
{
    cps_buf_printf(b, "%-40s %12s %12s %8s  %-8s %8s %8s\n", "row", "published us",
                   "predicted us", "error", "", "made ms", "run ms");
    for (uint32_t i = 0; i < t->rows.n; i++) {
        const cps_vrow *r = &t->rows.data[i];
        cps_buf_printf(b, "%-40s ", r->name);
        put_us(b, r->published, 12);
        if (!r->ran) {
            cps_buf_printf(b, "  %s: %s\n", r->file ? "failed" : "not replayed", r->note);
            continue;
        }
        cps_buf_putc(b, ' ');
        put_us(b, r->predicted, 12);
        cps_buf_printf(b, " %+7.1f%%  %-8s %8.0f %8.0f  ", 100 * r->error,
                       r->bound  ? (r->error > 0 ? "ABOVE" : "bound")
                       : r->soft ? "soft"
                                 : "",
                       r->compile_ms, r->wall_ms);
        put_busy(b, r);
        cps_buf_putc(b, '\n');
    }
    cps_buf_putc(b, '\n');
    cps_vstats s;
    for (uint32_t i = 0; i < t->rows.n; i++) {
        if (!first_of_group(t, i))
            continue;
        s = cps_validate_stats(c, t, t->rows.data[i].group, false);
        put_stats(b, t->rows.data[i].group, &s);
    }
    s = cps_validate_stats(c, t, NULL, false);
    put_stats(b, "all measured", &s);
    s = cps_validate_stats(c, t, NULL, true);
    put_stats(b, "without soft ones", &s);
    cps_buf_printf(b, "%u bounds, %u exceeded; %u measured rows and %u bounds not replayed\n",
                   count(t, true, true, false), count(t, true, true, true),
                   count(t, false, false, false), count(t, true, false, false));
}

static void
json_stats(cps_jsonw *w, const char *key, cps_vstats s)
{
    cps_jsonw_key(w, key);
    cps_jsonw_obj(w, true);
    cps_jsonw_key(w, "mean");
    cps_jsonw_num(w, s.mean);
    cps_jsonw_key(w, "median");
    cps_jsonw_num(w, s.median);
    cps_jsonw_key(w, "p90");
    cps_jsonw_num(w, s.p90);
    cps_jsonw_key(w, "rows");
    cps_jsonw_int(w, s.n);
    cps_jsonw_key(w, "worst");
    cps_jsonw_num(w, s.worst);
    cps_jsonw_end_obj(w);
}

static void
json_str(cps_jsonw *w, const char *key, const char *s)
{
    cps_jsonw_key(w, key);
    s &&strcmp(s, "-") ? cps_jsonw_str(w, s) : cps_jsonw_null(w);
}

static void
json_counts(cps_jsonw *w, const cps_vrow *r)
{
    const cps_vcounts *n = &r->counts;
    const struct {
        const char *name;
        double value;
    } bytes[] = {{"hbm_read", n->hbm_read},         {"hbm_written", n->hbm_written},
                 {"psum_read", n->psum_read},       {"psum_written", n->psum_written},
                 {"sbuf_read", n->sbuf_read},       {"sbuf_written", n->sbuf_written}};
    cps_jsonw_key(w, "counts");
    if (!r->counted) {
        cps_jsonw_null(w);
        return;
    }
    cps_jsonw_obj(w, false);
    for (unsigned i = 0; i < cps_countof(bytes); i++) {
        if (i == 2) { // between the others in the order of names
            cps_jsonw_key(w, "instructions");
            cps_jsonw_obj(w, true);
            for (unsigned k = 0; k < CPS_INSNS; k++) {
                if (!n->times[k])
                    continue;
                cps_jsonw_key(w, cps_insns[k].name);
                cps_jsonw_int(w, n->times[k]);
            }
            cps_jsonw_end_obj(w);
        }
        cps_jsonw_key(w, bytes[i].name);
        cps_jsonw_num(w, bytes[i].value);
    }
    cps_jsonw_end_obj(w);
}

void
cps_validate_json(cps_cli *c, const cps_vtable *t, cps_buf *b)
{
    cps_jsonw w;
    cps_jsonw_init(&w, b);
    cps_jsonw_obj(&w, false);
    cps_jsonw_key(&w, "rows");
    cps_jsonw_arr(&w, false);
    for (uint32_t i = 0; i < t->rows.n; i++) {
        const cps_vrow *r = &t->rows.data[i];
        cps_jsonw_obj(&w, true);
        cps_jsonw_key(&w, "busy");
        cps_jsonw_obj(&w, true);
        for (int u = 0; u <= CPS_ENGINES; u++) {
            cps_jsonw_key(&w, unit_name(u));
            cps_jsonw_num(&w, busy(r, u));
        }
        cps_jsonw_end_obj(&w);
        json_str(&w, "cause", r->note);
        json_counts(&w, r);
        json_str(&w, "device", r->device);
        json_str(&w, "dtype", r->dtype);
        cps_jsonw_key(&w, "error");
        r->ran ? cps_jsonw_num(&w, r->error) : cps_jsonw_null(&w);
        json_str(&w, "group", r->group);
        cps_jsonw_key(&w, "kind");
        cps_jsonw_str(&w, r->bound ? "bound" : "measured");
        json_str(&w, "leaf", r->leaf);
        json_str(&w, "name", r->name);
        cps_jsonw_key(&w, "predicted");
        r->ran ? cps_jsonw_num(&w, r->predicted) : cps_jsonw_null(&w);
        cps_jsonw_key(&w, "published");
        cps_jsonw_num(&w, r->published);
        cps_jsonw_key(&w, "published_low");
        r->low > 0 ? cps_jsonw_num(&w, r->low) : cps_jsonw_null(&w);
        json_str(&w, "shape", r->shape);
        cps_jsonw_key(&w, "soft");
        cps_jsonw_bool(&w, r->soft);
        json_str(&w, "source", r->source);
        json_str(&w, "target", r->target);
        cps_jsonw_end_obj(&w);
    }
    cps_jsonw_end_arr(&w);
    cps_jsonw_key(&w, "summary");
    cps_jsonw_obj(&w, false);
    json_stats(&w, "all", cps_validate_stats(c, t, NULL, false));
    cps_jsonw_key(&w, "bounds_exceeded");
    cps_jsonw_int(&w, count(t, true, true, true));
    json_stats(&w, "hard", cps_validate_stats(c, t, NULL, true));
    cps_jsonw_end_obj(&w);
    cps_jsonw_end_obj(&w);
    cps_jsonw_done(&w);
}

static void
page_stats(cps_buf *b, const char *what, cps_vstats s)
{
    if (s.n)
        cps_buf_printf(b, "| %s | %u | %.1f | %.1f | %.1f | %+.1f |\n", what, s.n,
                       100 * s.median, 100 * s.p90, 100 * s.worst, 100 * s.mean);
}

void
cps_validate_page(cps_cli *c, const cps_vtable *t, cps_buf *b)
{
    cps_buf_puts(b, "# Published device times against the simulator\n\n"
                    "Made by `copse sim --validate -o VALIDATION.md`; do not edit. Each row is "
                    "a kernel of\n"
                    "`tests/validate/`, written as its published schedule says, compiled by "
                    "the ordinary path and\n"
                    "run for its time alone. Errors are (predicted - published) / published; "
                    "with an interval,\n"
                    "the distance outside it. Times are microseconds. `bound`: an upper limit, "
                    "no error when\n"
                    "respected. `soft`: left out of the stricter summary, with the reason.\n\n"
                    "| group | rows | median % | 90th percentile % | worst % | mean % "
                    "|\n|---|---|---|---|---|---|\n");
    for (uint32_t i = 0; i < t->rows.n; i++)
        if (first_of_group(t, i))
            page_stats(b, t->rows.data[i].group,
                       cps_validate_stats(c, t, t->rows.data[i].group, false));
    page_stats(b, "all measured", cps_validate_stats(c, t, NULL, false));
    page_stats(b, "without soft rows", cps_validate_stats(c, t, NULL, true));
    cps_buf_printf(b,
                   "\n%u bounds are replayed, %u exceeded. %u measured rows and %u bounds are "
                   "not replayed.\n",
                   count(t, true, true, false), count(t, true, true, true),
                   count(t, false, false, false), count(t, true, false, false));
    for (uint32_t i = 0; i < t->rows.n; i++) {
        if (!first_of_group(t, i))
            continue;
        cps_buf_printf(
            b,
            "\n## %s\n\n| row | target | published | predicted | error %% | busy %% | | cause "
            "|\n|---|---|---|---|---|---|---|---|\n",
            t->rows.data[i].group);
        for (uint32_t k = i; k < t->rows.n; k++) {
            const cps_vrow *r = &t->rows.data[k];
            if (strcmp(r->group, t->rows.data[i].group))
                continue;
            cps_buf_printf(b, "| %s | %s | ", r->name, r->target);
            if (r->low > 0) {
                put_us(b, fmin(r->low, r->published), 0);
                cps_buf_puts(b, " to ");
            }
            put_us(b, fmax(r->low, r->published), 0);
            cps_buf_puts(b, " | ");
            if (r->ran) {
                put_us(b, r->predicted, 0);
                cps_buf_printf(b, " | %+.1f | ", 100 * r->error);
                put_busy(b, r);
            } else {
                cps_buf_puts(b, "- | - | ");
            }
            cps_buf_printf(b, " | %s%s%s | %s |\n", r->bound ? "bound" : "",
                           r->soft ? "soft" : "", r->ran ? "" : " not replayed",
                           strcmp(r->note, "-") ? r->note : "");
        }
    }
    cps_buf_puts(b, "\n## Sources\n\n");
    for (uint32_t i = 0; i < t->rows.n; i++)
        cps_buf_printf(b, "* %s: %s\n", t->rows.data[i].name, t->rows.data[i].source);
}
