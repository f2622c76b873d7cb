/* How a matrix product is cut for caches and registers: one cost estimate, no search. Panels of
 * B stay in the first-level cache while all rows of a block pass over them; blocks of A stay in
 * the second. What is read across its memory order, is narrow, or would fall into few cache
 * sets is packed on the way, a panel at a time; constants are never copied as a whole. */
#include "codegen/host/plan.h"

enum {
    L1_PANEL = 32 << 10,  // bytes of a panel of B
    L2_BLOCK = 256 << 10, // bytes of a block of A
    MAX_ROWS = 14,
    FAR_ROWS = 2048, // bytes between rows that are far apart
    STREAMS = 8
};

// Cycles of one step along k of a tile: two multiply-adds, two loads a cycle, and no fewer sums
// in flight than the latency of four cycles needs.
static double
step_cost(int mr, int nv)
{
    double fma = mr * nv / 2.0, load = (mr + nv) / 2.0;
    return CPS_MAX(CPS_MAX(fma, load), 4.0) + 0.25;
}

static void
register_tile(host_tile *t, int64_t m, int64_t n, int registers)
{
    double best = 0;
    int64_t vectors = cps_ceil_div(n, t->lanes);
    for (int nv = 1; nv <= 8; nv++) {
        int most = CPS_MIN(MAX_ROWS, (registers - nv - 1) / nv);
        if (most < 1 || (nv > 1 && nv > vectors))
            continue;
        int64_t tiles = cps_ceil_div(m, most);
        int mr = (int)cps_ceil_div(m, tiles);
        int64_t rest = m - (tiles - 1) * mr;
        int last = (int)(vectors % nv);
        double rows = (double)(tiles - 1) * step_cost(mr, nv) + step_cost((int)rest, nv);
        double cost = (double)(vectors / nv) * rows;
        if (last)
            cost += (double)(tiles - 1) * step_cost(mr, last) + step_cost((int)rest, last);
        if (t->nv == 0 || cost < best) {
            best = cost;
            t->nv = nv;
            t->mr = mr;
        }
    }
}

void
cps_host_tile_of(host_mm *q, int lanes, int registers)
{
    host_tile *t = &q->tile;
    bool real = cps_dtype_is_float(q->dtype);
    bool narrow = real && q->dtype != CPS_DT_FP32;
    int64_t size = real ? 4 : cps_dtype_bytes(q->dtype);
    t->lanes = lanes;
    t->dot =
        real && q->m <= 4 && q->k >= 2 * lanes && q->b.rs == 1 && q->b.cs != 1 && q->a.cs == 1;
    if (t->dot)
        return;
    register_tile(t, q->m, q->n, registers);
    int64_t tiles = cps_ceil_div(q->m, t->mr), panels = cps_ceil_div(q->n, t->nv * lanes);
    t->pack_b = q->b.cs != 1 || tiles >= 4;
    // Partial sums of narrow results are never rounded: k is not cut then.
    t->kc = q->k;
    if (!narrow && tiles > 1) {
        int64_t most = CPS_MAX(64, L1_PANEL / (t->nv * lanes * size) / 8 * 8);
        t->kc = cps_round_up(cps_ceil_div(q->k, cps_ceil_div(q->k, most)), 8);
        t->kc = CPS_MIN(t->kc, q->k);
    }
    // A few rows against wide rows of B: B comes from memory once, in as many streams as the
    // hardware follows, and the sums wait in the first-level cache.
    if (!narrow && tiles == 1 && !t->pack_b && q->n * size >= FAR_ROWS && q->m <= 4)
        t->kc = CPS_MIN(q->k, STREAMS);
    t->a_stride = cps_round_up(t->kc, lanes) + lanes;
    bool sets = q->a.rs * size % 2048 == 0 && tiles > 1 && q->m > 4;
    t->pack_a = panels > 1 && (narrow || q->a.cs != 1 || sets);
    t->mc = CPS_MAX(1, L2_BLOCK / (t->a_stride * size) / t->mr) * t->mr;
    t->mc = CPS_MIN(t->mc, tiles * t->mr);
    if (t->pack_a)
        t->a_bytes = cps_round_up((t->mc + MAX_ROWS + lanes) * t->a_stride * size, 64);
    if (t->pack_b)
        t->b_bytes = (cps_round_up(t->kc, lanes) + lanes) * t->nv * lanes * size;
}
