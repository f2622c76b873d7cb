/* A page of text about a recorded run: where each engine's time went and whom it waited for,
 * what DMA did, the critical path by kinds of time, and what would help. */
#include "runtime/sim/view.h"

static double
share(cps_ps part, cps_ps all)
{
    return all > 0 ? 100.0 * (double)part / (double)all : 0;
}

static double
us(cps_ps t)
{
    return (double)t / 1e6;
}

/* The largest sources of engine e's waiting, down to one percent of the run. */
static void
put_waits(const cps_sim *s, const view *v, int e, cps_ps all, cps_buf *out)
{
    bool told[64] = {false};
    for (unsigned n = 0; n < 3; n++) {
        uint32_t best = v->sources;
        for (uint32_t k = 0; k < CPS_MIN(v->sources, cps_countof(told)); k++)
            if (!told[k] && v->wait[e][k] > all / 100 &&
                (best == v->sources || v->wait[e][k] > v->wait[e][best]))
                best = k;
        if (best == v->sources)
            return;
        told[best] = true;
        cps_buf_printf(out, "%s%s %.1f %%", n ? ", " : "  for ", view_source_name(s, v, best),
                       share(v->wait[e][best], all));
    }
}

static void
put_engines(const cps_sim *s, const view *v, cps_ps all, cps_buf *out)
{
    bool any[TIMES] = {false};
    for (int e = 0; e < CPS_ENGINES; e++)
        for (int k = 0; k < TIMES; k++)
            any[k] |= v->spent[e][k] > 0;
    cps_buf_puts(out, "  engine");
    for (int k = 0; k < TIMES; k++)
        if (any[k])
            cps_buf_printf(out, " %11s", time_rows[k].name);
    cps_buf_puts(out, "   % of the time\n");
    for (int e = 0; e < CPS_ENGINES; e++) {
        if (!s->eng[e].n)
            continue;
        cps_buf_printf(out, "  %-6s", cps_engine_name((cps_engine)e));
        for (int k = 0; k < TIMES; k++) {
            if (any[k] && v->spent[e][k])
                cps_buf_printf(out, " %11.1f", share(v->spent[e][k], all));
            else if (any[k])
                cps_buf_printf(out, " %11s", "-");
        }
        put_waits(s, v, e, all, out);
        cps_buf_putc(out, '\n');
    }
}

static void
put_dma(const cps_sim *s, const view *v, cps_ps all, cps_buf *out)
{
    queue_view sum = {0};
    for (uint32_t q = 0; q < s->queues.n; q++) {
        const queue_view *x = &v->queue[q];
        sum.transfers += x->transfers;
        sum.held += x->held;
        sum.bytes += x->bytes;
        sum.ndesc += x->ndesc;
        sum.issue += x->issue;
    }
    if (!sum.transfers)
        return;
    double ns = (double)all / 1e3, rate = ns > 0 ? (double)sum.bytes / ns : 0;
    double work = (double)v->move_work / 1e3;
    cps_buf_printf(
        out,
        "  dma: %lld bytes in %u transfers, %lld descriptors of %lld bytes on average\n"
        "    %.1f GB/s over the whole run, %.1f %% of the core's %.0f; moving %.1f %% of the "
        "time\n"
        "    descriptors' own cost is %.1f %% of the DMA engines' work; %u transfers waited "
        "for their queue to issue them, %.3f us in all\n",
        (long long)sum.bytes, sum.transfers, (long long)sum.ndesc,
        (long long)(sum.ndesc ? sum.bytes / sum.ndesc : 0), rate,
        100 * rate / s->t->hbm_core_bytes_per_ns, s->t->hbm_core_bytes_per_ns,
        share(s->rep.dma_busy_ps, all),
        work > 0 ? CPS_MIN(100.0, 100 * (double)sum.ndesc * s->t->dma_descriptor_ns / work) : 0,
        sum.held, us(sum.issue));
    cps_buf_printf(out, "    %-16s %9s %12s %9s   mean us: issue    start   moving  receipt\n",
                   "queue", "transfers", "bytes", "bytes/d");
    for (uint32_t q = 0; q < s->queues.n; q++) {
        const queue_view *x = &v->queue[q];
        if (!x->transfers)
            continue;
        double n = x->transfers;
        cps_buf_printf(out, "    %-16s %9u %12lld %9lld          %8.3f %8.3f %8.3f %8.3f\n",
                       s->queues.data[q].name, x->transfers, (long long)x->bytes,
                       (long long)(x->ndesc ? x->bytes / x->ndesc : 0), us(x->issue) / n,
                       us(x->start) / n, us(x->move) / n, us(x->receipt) / n);
    }
}

static void
put_path(cps_sim *s, cps_ps all, cps_buf *out)
{
    cps_sim_account a;
    cps_sim_account_of(s, &a);
    cps_buf_printf(out, "  critical path, %u steps:", a.steps);
    for (unsigned k = 0; k < a.npath; k++)
        cps_buf_printf(out, "%s%s%s%s %.3f us (%.1f %%)",
                       k == 0  ? " "
                       : k % 4 ? ", "
                               : ",\n    ",
                       a.path[k].engine, *a.path[k].engine ? " " : "", a.path[k].kind, us(a.path[k].ps),
                       share(a.path[k].ps, all));
    cps_buf_putc(out, '\n');
}

void
cps_sim_tables(cps_sim *s, cps_buf *out)
{
    const view *v = view_of(s);
    if (!v)
        return;
    cps_ps all = v->end - v->begin;
    put_engines(s, v, all, out);
    put_dma(s, v, all, out);
    put_path(s, all, out);
}

void
cps_sim_summary(cps_sim *s, const char *name, cps_buf *out)
{
    const view *v = view_of(s);
    if (!v)
        return;
    cps_ps all = v->end - v->begin;
    cps_buf_printf(out, "%s: %.3f us\n", name, us(all));
    cps_sim_tables(s, out);
    cps_sim_hint h[CPS_SIM_HINTS] = {{0}};
    unsigned n = cps_sim_hints(s, h);
    if (n)
        cps_buf_puts(out,
                     "  what would help (each figure is a run of the same binary with that "
                     "made cheap):\n");
    for (unsigned k = 0; k < n; k++)
        cps_buf_printf(out, "    %u. %s\n       %s: %.0f ns less (%.1f %%)\n", k + 1,
                       h[k].advice, h[k].what, (double)h[k].saves_ps / 1e3,
                       share(h[k].saves_ps, all));
}
