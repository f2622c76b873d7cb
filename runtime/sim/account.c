/* The accounts of a recorded run as numbers: where each engine's time went, whom it waited for,
 * and the critical path by kinds of time. The summary prints from the same. */
#include "runtime/sim/view.h"

/* Few parts: insertion sort of those from `first` on, longest first. */
static void
sort_parts(cps_sim_part *p, unsigned first, unsigned n)
{
    for (unsigned a = first + 1; a < n; a++)
        for (unsigned b = a; b > first && p[b].ps > p[b - 1].ps; b--) {
            cps_sim_part t = p[b];
            p[b] = p[b - 1];
            p[b - 1] = t;
        }
}

static void
spent(cps_sim *s, const view *v, cps_sim_account *out)
{
    cps_sim_part *p = cps_new_array(s->run_arena, cps_sim_part, CPS_ENGINES * TIMES);
    for (int e = 0; e < CPS_ENGINES; e++)
        for (int k = 0; k < TIMES; k++)
            if (s->eng[e].n && v->spent[e][k])
                p[out->nspent++] = (cps_sim_part){cps_engine_name((cps_engine)e),
                                                  time_rows[k].name, v->spent[e][k]};
    out->spent = p;
}

static void
waits(cps_sim *s, const view *v, cps_sim_account *out)
{
    cps_sim_part *p =
        cps_new_array(s->run_arena, cps_sim_part, CPS_ENGINES * (size_t)v->sources);
    for (int e = 0; e < CPS_ENGINES; e++) {
        unsigned first = out->nwait;
        for (uint32_t k = 0; k < v->sources; k++)
            if (s->eng[e].n && v->wait[e][k] > 0)
                p[out->nwait++] = (cps_sim_part){view_source_name(s, v, k),
                                                 cps_engine_name((cps_engine)e), v->wait[e][k]};
        sort_parts(p, first, out->nwait);
    }
    out->wait = p;
}

static void
path(cps_sim *s, const view *v, cps_sim_account *out)
{
    cps_sim_part *p = cps_new_array(s->run_arena, cps_sim_part, TIMES + CPS_ENGINES);
    for (int k = 0; k < TIMES; k++)
        if (k != TIME_BUSY && v->on_path[k])
            p[out->npath++] = (cps_sim_part){"", time_rows[k].name, v->on_path[k]};
    for (int e = 0; e < CPS_ENGINES; e++)
        if (v->path_busy[e])
            p[out->npath++] = (cps_sim_part){cps_engine_name((cps_engine)e),
                                             time_rows[TIME_BUSY].name, v->path_busy[e]};
    sort_parts(p, 0, out->npath);
    out->path = p;
    out->steps = v->path.n;
}

/* ---- what holds the run up ---- */

enum { LIMIT_DMA = CPS_ENGINES, LIMIT_LATENCY, LIMITS };

static const struct {
    uint8_t kind, limit; /* time of this kind on the path counts as that */
} limit_rows[] = {
    {TIME_WARM, CPS_PE},         {TIME_TABLE, CPS_ACT},           {TIME_ISSUE, LIMIT_DMA},
    {TIME_MOVE, LIMIT_DMA},      {TIME_SHARED, LIMIT_DMA},        {TIME_CONTROL, LIMIT_LATENCY},
    {TIME_MEET, LIMIT_LATENCY},
    {TIME_OWN, LIMIT_LATENCY},   {TIME_PORT, LIMIT_LATENCY},      {TIME_RESULT, LIMIT_LATENCY},
    {TIME_START, LIMIT_LATENCY}, {TIME_SEMAPHORE, LIMIT_LATENCY}, {TIME_RECEIPT, LIMIT_LATENCY},
};

static void
binding(const view *v, cps_sim_account *out)
{
    cps_ps sum[LIMITS] = {0};
    int best = 0;
    for (unsigned k = 0; k < cps_countof(limit_rows); k++)
        sum[limit_rows[k].limit] += v->on_path[limit_rows[k].kind];
    for (int e = 0; e < CPS_ENGINES; e++)
        sum[e] += v->path_busy[e];
    for (int k = 1; k < LIMITS; k++)
        best = sum[k] > sum[best] ? k : best;
    out->binding = best < CPS_ENGINES  ? cps_engine_name((cps_engine)best)
                   : best == LIMIT_DMA ? "dma"
                                       : "latency";
    out->binding_ps = sum[best];
}

bool
cps_sim_account_of(cps_sim *s, cps_sim_account *out)
{
    const view *v = view_of(s);
    *out = (cps_sim_account){0};
    if (!v)
        return false;
    out->time_ps = v->end - v->begin;
    spent(s, v, out);
    waits(s, v, out);
    path(s, v, out);
    binding(v, out);
    return true;
}
