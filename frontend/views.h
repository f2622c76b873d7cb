/* Pictures and accounts of simulated runs: --trace, --html and --summary. One set for a command;
 * kernels are added in the order they run. */
#ifndef CPS_FRONTEND_VIEWS_H
#define CPS_FRONTEND_VIEWS_H

#include "frontend/cli.h"
#include "frontend/report.h"

typedef struct cps_views {
    cps_trace *trace; /* NULL: not asked for */
    cps_page *page;   /* the same */
    bool summary;
    cps_buf text;
} cps_views;

/* False after E1104 when an option asks for a simulated run and `on` is not the simulator. */
bool cps_views_allowed(cps_cli *c, const char *on);
void cps_views_open(cps_cli *c, cps_views *v);
bool cps_views_any(const cps_views *v); /* the simulator has to record */
/* The run of `k`, one for each of `n` cores, that `g` just made, starting `offset_ps` after the first
 * one. The page shows cores one after another. */
void cps_views_add(cps_cli *c, cps_views *v, cps_sim_group *g, const cps_kbin *const *k, unsigned n,
                   const char *name, const cps_roof *roof, int64_t offset_ps);
/* Writes what was asked for (the summary to standard error) when ok, and frees. */
bool cps_views_close(cps_cli *c, cps_views *v, bool ok);

#endif
