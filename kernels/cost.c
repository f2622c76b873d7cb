/* The one cost model: named terms of a `cost` clause to nanoseconds. The estimate is the
 * largest term (engines and memory overlap) plus what every kernel pays at its start and end.
 */
#include "kernels/registry.h"

#include <math.h>

// Host figures for ranking only: a clock and a memory rate of a current core.
static const double HOST_GHZ = 3.0, HOST_BYTES_PER_NS = 12.0;

static double
cleaned(double v)
{
    return isnan(v) || v < 0 ? 0 : v;
}

static void
term(double ns, const char *name, double *most, const char **bound)
{
    ns = cleaned(ns);
    if (ns > *most) {
        *most = ns;
        *bound = name;
    }
}

int64_t
cps_cost_ns(const cps_target *t, const cps_costs *c, const char **bound)
{
    double most = 0, fixed = 0;
    const char *b = "hbm";

    if (!t) {
        term(c->host_cycles / HOST_GHZ, "cycles", &most, &b);
        term(c->hbm / HOST_BYTES_PER_NS, "hbm", &most, &b);
    } else {
        const double mhz[CPS_ENGINES] = {t->pe_sustained_mhz > 0 ? t->pe_sustained_mhz
                                                                 : t->pe_mhz,
                                         t->act_mhz, t->pool_mhz, t->dve_mhz, t->sp_mhz};
        for (int e = 0; e < CPS_ENGINES; e++)
            if (mhz[e] > 0)
                term(c->cycles[e] * 1000.0 / mhz[e], cps_engine_name((cps_engine)e), &most, &b);
        if (t->hbm_core_bytes_per_ns > 0)
            term(c->hbm / t->hbm_core_bytes_per_ns, "hbm", &most, &b);
        if (t->cc_link_bytes_per_ns > 0)
            term(c->link / t->cc_link_bytes_per_ns, "link", &most, &b);
        // Load to first byte and its receipt, store and its acknowledgement, the launch itself.
        fixed =
            t->run_launch_ns + 2 * t->dma_start_ns + t->dma_receipt_ns + t->dma_store_ack_ns;
    }
    if (bound)
        *bound = b;
    most += cleaned(fixed);
    return most >= 9e18 ? INT64_MAX : (int64_t)llround(most);
}
