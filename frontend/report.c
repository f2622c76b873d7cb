/* Reports. Key order is alphabetical, numbers are plain, so two runs can be compared as text. */
#include "frontend/report.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

void
cps_compare(const char *name, const double *got, const double *ref, int64_t n, double rtol,
            double atol, cps_errs *e)
{
    double top = 0, worst = 0, dot = 0, gg = 0, rr = 0;
    bool odd = false;
    for (int64_t i = 0; i < n; i++)
        if (isfinite(ref[i]))
            top = fmax(top, fabs(ref[i]));
    for (int64_t i = 0; i < n; i++) {
        if (got[i] == ref[i] || (isnan(got[i]) && isnan(ref[i])))
            ;
        else if (isfinite(got[i]) && isfinite(ref[i]))
            worst = fmax(worst, fabs(got[i] - ref[i]));
        else
            odd = true; // an infinity or NaN on one side only
        if (isfinite(got[i]) && isfinite(ref[i])) {
            dot += got[i] * ref[i];
            gg += got[i] * got[i];
            rr += ref[i] * ref[i];
        }
    }
    if (odd)
        worst = INFINITY;
    bool pass = worst <= atol + rtol * top;
    e->max_abs = fmax(e->max_abs, worst);
    e->max_rel = fmax(e->max_rel, top > 0 ? worst / top : (worst > 0 ? INFINITY : 0));
    double cosine = gg > 0 && rr > 0 ? dot / sqrt(gg * rr) : gg == rr ? 1 : 0;
    e->cosine = fmin(e->cosine, cosine);
    if (!pass) {
        e->pass = false;
        e->worst = name;
    }
}

/* All but the time: that of cores side by side is no sum. */
static void
add_work(cps_sim_report *to, const cps_sim_report *s)
{
    for (int e = 0; e < CPS_ENGINES; e++) {
        to->cycles[e] += s->cycles[e];
        to->busy_ps[e] += s->busy_ps[e];
        to->instructions[e] += s->instructions[e];
    }
    to->dma_busy_ps += s->dma_busy_ps;
    to->dma_bytes += s->dma_bytes;
    to->dma_transfers += s->dma_transfers;
    to->dma_descriptors += s->dma_descriptors;
    to->pe_macs += s->pe_macs;
    to->races += s->races;
    to->uninit += s->uninit;
    to->bounds += s->bounds;
}

void
cps_report_add(cps_arena *a, cps_report *rep, const cps_sim_report *s, unsigned n, int64_t time_ps,
               const cps_kbin *k)
{
    rep->simulated = true;
    rep->sim.time_ps += time_ps;
    if (rep->cores < n) {
        cps_sim_report *more = cps_new_array(a, cps_sim_report, n);
        for (unsigned i = 0; i < rep->cores; i++)
            more[i] = rep->core[i];
        rep->core = more;
        rep->cores = n;
    }
    for (unsigned i = 0; i < n; i++) {
        add_work(&rep->sim, &s[i]);
        add_work(&rep->core[i], &s[i]);
        rep->core[i].time_ps += s[i].time_ps;
    }
    for (; k; k = k->peer) {
        rep->sbuf_peak = CPS_MAX(rep->sbuf_peak, k->stats.sbuf_peak);
        rep->psum_banks = CPS_MAX(rep->psum_banks, k->stats.psum_banks);
    }
}

static void
key_num(cps_jsonw *w, const char *k, double v)
{
    cps_jsonw_key(w, k);
    cps_jsonw_num(w, v);
}

static double
fraction(double part, double whole)
{
    return whole > 0 ? part / whole : 0;
}

static const cps_engine order[] = {CPS_ACT, CPS_DVE, CPS_PE, CPS_POOL, CPS_SP};

/* Shares of `time_ps` of as many cores. */
static void
put_busy(cps_jsonw *w, const cps_sim_report *s, double time_ps)
{
    cps_jsonw_key(w, "busy");
    cps_jsonw_obj(w, true);
    key_num(w, "act", fraction((double)s->busy_ps[CPS_ACT], time_ps));
    key_num(w, "dma", fraction((double)s->dma_busy_ps, time_ps));
    for (unsigned i = 1; i < cps_countof(order); i++)
        key_num(w, cps_engine_name(order[i]), fraction((double)s->busy_ps[order[i]], time_ps));
    cps_jsonw_end_obj(w);
}

static void
put_cycles(cps_jsonw *w, const cps_sim_report *s)
{
    cps_jsonw_key(w, "cycles");
    cps_jsonw_obj(w, true);
    for (unsigned i = 0; i < cps_countof(order); i++)
        cps_jsonw_put_int(w, cps_engine_name(order[i]), s->cycles[order[i]]);
    cps_jsonw_end_obj(w);
}

static int64_t
instructions(const cps_sim_report *s)
{
    uint64_t count = 0;
    for (int e = 0; e < CPS_ENGINES; e++)
        count += s->instructions[e];
    return (int64_t)count;
}

/* One object for each core, where there are several; `time_ns` is the core's own. */
static void
put_cores(cps_jsonw *w, const cps_report *r)
{
    if (r->cores < 2)
        return;
    cps_jsonw_key(w, "cores");
    cps_jsonw_arr(w, false);
    for (unsigned i = 0; i < r->cores; i++) {
        const cps_sim_report *s = &r->core[i];
        cps_jsonw_obj(w, false);
        put_busy(w, s, (double)r->sim.time_ps);
        cps_jsonw_put_int(w, "core", i);
        put_cycles(w, s);
        cps_jsonw_put_int(w, "dma_bytes", (int64_t)s->dma_bytes);
        cps_jsonw_put_int(w, "instructions", instructions(s));
        key_num(w, "time_ns", (double)s->time_ps / 1e3);
        cps_jsonw_end_obj(w);
    }
    cps_jsonw_end_arr(w);
}

void
cps_report_members(cps_jsonw *w, const cps_report *r)
{
    double ns = (double)r->sim.time_ps / 1e3;
    // latency: the fixed start and end, not a roof, fill most of the time
    const char *bound = !r->roof.bound ? "" : r->simulated && r->roof.engines_ns < 0.25 * ns && ns < 20e3 ? "latency"
                                                                                 : r->roof.bound;
    cps_jsonw_put_str(w, "bound", bound);
    put_busy(w, &r->sim, (double)r->sim.time_ps * CPS_MAX(r->cores, 1u));
    cps_jsonw_key(w, "cache");
    cps_jsonw_obj(w, true);
    cps_jsonw_put_int(w, "hits", r->hits);
    cps_jsonw_put_int(w, "misses", r->misses);
    cps_jsonw_end_obj(w);
    cps_jsonw_key(w, "checks");
    cps_jsonw_obj(w, true);
    // null: the check did not run
    cps_jsonw_key(w, "bounds");
    r->checks & CPS_CHECK_BOUNDS ? cps_jsonw_int(w, r->sim.bounds) : cps_jsonw_null(w);
    cps_jsonw_key(w, "races");
    r->checks & CPS_CHECK_RACES ? cps_jsonw_int(w, r->sim.races) : cps_jsonw_null(w);
    cps_jsonw_key(w, "uninit");
    r->checks & CPS_CHECK_UNINIT ? cps_jsonw_int(w, r->sim.uninit) : cps_jsonw_null(w);
    cps_jsonw_end_obj(w);
    key_num(w, "compile_ms", r->compile_ms);
    put_cores(w, r);
    if (r->compared)
        key_num(w, "cosine", r->err.cosine);
    put_cycles(w, &r->sim);
    key_num(w, "engines_fraction", fraction(r->roof.engines_ns, ns));
    cps_jsonw_put_int(w, "flops", r->roof.flops);
    cps_jsonw_put_int(w, "hbm_bytes", r->roof.bytes);
    cps_jsonw_put_int(w, "instructions", instructions(&r->sim));
    cps_jsonw_put_str(w, "kernel", r->kernel);
    cps_jsonw_put_int(w, "launches", r->launches);
    cps_jsonw_put_str(w, "leaf", r->leaf);
    // stable keys: null where nothing was compared
    cps_jsonw_key(w, "max_abs_err");
    r->compared ? cps_jsonw_num(w, r->err.max_abs) : cps_jsonw_null(w);
    cps_jsonw_key(w, "max_rel_err");
    r->compared ? cps_jsonw_num(w, r->err.max_rel) : cps_jsonw_null(w);
    cps_jsonw_put_str(w, "on", r->on);
    cps_jsonw_key(w, "pass");
    r->compared ? cps_jsonw_bool(w, r->err.pass) : cps_jsonw_null(w);
    // of how many kernels the proof says that no order of events gets stuck, or races
    cps_jsonw_key(w, "proof");
    cps_jsonw_obj(w, true);
    cps_jsonw_put_int(w, "deadlock_free", r->deadlock_free);
    cps_jsonw_put_int(w, "kernels", r->proofs);
    cps_jsonw_put_int(w, "race_free", r->race_free);
    cps_jsonw_end_obj(w);
    cps_jsonw_put_int(w, "psum_banks_peak", r->psum_banks);
    key_num(w, "roofline_engines_ns", r->roof.engines_ns);
    key_num(w, "roofline_fraction", fraction(r->roof.roofline_ns, ns));
    key_num(w, "roofline_ns", r->roof.roofline_ns);
    cps_jsonw_put_int(w, "sbuf_peak_bytes_per_partition", r->sbuf_peak);
    cps_jsonw_put_str(w, "target", r->target);
    key_num(w, "time_ns", ns);
    key_num(w, "wall_ms", r->wall_ms);
}

void
cps_report_text(const cps_report *r, cps_buf *out)
{
    double ns = (double)r->sim.time_ps / 1e3;
    cps_buf_printf(out, "%s  ", r->kernel);
    if (r->leaf && *r->leaf) // a model has many
        cps_buf_printf(out, "leaf %s  ", r->leaf);
    cps_buf_printf(out, "on %s, target %s\n", r->on, r->target);
    if (r->simulated) {
        double all = (double)r->sim.time_ps * CPS_MAX(r->cores, 1u);
        cps_buf_printf(out,
                       "  simulated time %.3f us, roofline %.3f us (%s): %.1f %% of roof, %.1f %% of "
                       "engine cap\n",
                       ns / 1e3, r->roof.roofline_ns / 1e3, r->roof.bound,
                       100 * fraction(r->roof.roofline_ns, ns), 100 * fraction(r->roof.engines_ns, ns));
        cps_buf_printf(out, "  busy");
        for (int e = 0; e < CPS_ENGINES; e++)
            cps_buf_printf(out, "  %s %.1f %%", cps_engine_name((cps_engine)e),
                           100 * fraction((double)r->sim.busy_ps[e], all));
        cps_buf_printf(out, "  dma %.1f %%\n",
                       100 * fraction((double)r->sim.dma_busy_ps, all));
        for (unsigned i = 0; r->cores > 1 && i < r->cores; i++)
            cps_buf_printf(out, "  core %u  %.3f us, %" PRId64 " instructions, %" PRIu64 " bytes moved\n", i,
                           (double)r->core[i].time_ps / 1e6, instructions(&r->core[i]),
                           r->core[i].dma_bytes);
        cps_buf_printf(out,
                       "  %" PRId64 " instructions, %" PRIu64 " transfers of %" PRIu64
                       " bytes, SBUF %" PRId64 " bytes a partition, %d PSUM banks\n",
                       instructions(&r->sim), r->sim.dma_transfers, r->sim.dma_bytes, r->sbuf_peak, r->psum_banks);
        cps_buf_printf(out, "  checks: races %u, uninitialised reads %u, bounds %u%s\n", r->sim.races,
                       r->sim.uninit, r->sim.bounds,
                       r->checks == CPS_CHECK_ALL ? "" : " (not all ran)");
    }
    if (r->proofs)
        cps_buf_printf(out, "  proof: of %u launches %u cannot race, %u cannot get stuck%s%s\n", r->proofs,
                       r->race_free, r->deadlock_free, r->open ? "; open: " : "", r->open ? r->open : "");
    if (r->compared)
        cps_buf_printf(out, "  against the reference: max abs %.3g, max rel %.3g, cosine %.9f: %s\n",
                       r->err.max_abs, r->err.max_rel, r->err.cosine,
                       r->err.pass ? "within tolerance" : "TOO FAR");
    cps_buf_printf(out, "  compile %.1f ms (%u hits, %u misses), run %.1f ms\n", r->compile_ms,
                   r->hits, r->misses, r->wall_ms);
}
