/* Footprints: sets of bytes given by strided patterns. Overlap is exact: the runs of one set
 * are looked up in the other by descending through its dimensions, largest extent first. */
#include "runtime/sim/machine.h"

static int64_t
reach(const rect *r, unsigned d)
{
    return llabs(r->step[d]) * (r->num[d] - 1);
}

void
rect_close(rect *r)
{
    // Unit and broadcast dimensions add nothing to a set; negative steps run the other way.
    unsigned n = 0;
    for (unsigned d = 0; d < r->nd; d++) {
        int64_t step = r->step[d], num = r->num[d];
        if (num <= 1 || step == 0)
            continue;
        if (step < 0) {
            r->base += step * (num - 1);
            step = -step;
        }
        r->step[n] = step;
        r->num[n++] = num;
    }
    // Largest step first (insertion sort over at most six).
    for (unsigned d = 1; d < n; d++) {
        int64_t step = r->step[d], num = r->num[d];
        unsigned k = d;
        for (; k > 0 && r->step[k - 1] < step; k--) {
            r->step[k] = r->step[k - 1];
            r->num[k] = r->num[k - 1];
        }
        r->step[k] = step;
        r->num[k] = num;
    }
    // What the fastest dimension fills without a gap is a longer run; rows that follow one
    // another exactly become one dimension.
    while (n > 0 && r->step[n - 1] <= r->run) {
        r->run += r->step[n - 1] * (r->num[n - 1] - 1);
        n--;
    }
    for (unsigned d = 0; d + 1 < n;) {
        if (r->step[d] == r->step[d + 1] * r->num[d + 1]) {
            r->step[d] = r->step[d + 1];
            r->num[d] *= r->num[d + 1];
            for (unsigned k = d + 1; k + 1 < n; k++) {
                r->step[k] = r->step[k + 1];
                r->num[k] = r->num[k + 1];
            }
            n--;
        } else {
            d++;
        }
    }
    r->nd = (uint8_t)n;
    r->lo = r->base;
    r->hi = r->base + r->run;
    for (unsigned d = 0; d < n; d++)
        r->hi += reach(r, d);
    int64_t lane = r->space == SP_SBUF ? CPS_SBUF_STRIDE : CPS_PSUM_STRIDE;
    r->dense = n == 0 || (n == 1 && r->space != SP_HBM && r->step[0] == lane && r->run <= lane);
}

/* Whether the set meets [x, y); dimensions from d on, based at `base`. */
static bool
meets(const rect *r, unsigned d, int64_t base, int64_t x, int64_t y, int64_t *at)
{
    if (d == r->nd) {
        if (base >= y || base + r->run <= x)
            return false;
        *at = CPS_MAX(base, x);
        return true;
    }
    int64_t inner = r->run, step = r->step[d];
    for (unsigned k = d + 1; k < r->nd; k++)
        inner += reach(r, k);
    // base + i*step < y and base + i*step + inner > x
    int64_t first = x - base - inner + 1, last = y - 1 - base;
    if (last < 0)
        return false;
    first = first > 0 ? (first + step - 1) / step : 0;
    last = CPS_MIN(last / step, r->num[d] - 1);
    for (int64_t i = first; i <= last; i++) {
        if (meets(r, d + 1, base + i * step, x, y, at))
            return true;
    }
    return false;
}

/* Whether some run of `a` from dimension d on meets `b`. */
static bool
any_run(const rect *a, unsigned d, int64_t base, const rect *b, int64_t *at)
{
    int64_t inner = a->run;
    for (unsigned k = d; k < a->nd; k++)
        inner += reach(a, k);
    if (base >= b->hi || base + inner <= b->lo)
        return false;
    if (d == a->nd)
        return meets(b, 0, b->base, base, base + a->run, at);
    for (int64_t i = 0; i < a->num[d]; i++) {
        if (any_run(a, d + 1, base + i * a->step[d], b, at))
            return true;
    }
    return false;
}

static int64_t
run_count(const rect *r)
{
    int64_t n = 1;
    for (unsigned d = 0; d < r->nd; d++)
        n *= r->num[d];
    return n;
}

/* A block of on-chip memory whose bytes stay inside each partition: what nearly every access is. */
static bool
is_block(const rect *r, int64_t lane)
{
    return r->dense && (r->base & (lane - 1)) + r->run <= lane;
}

/* Whether two sets of rows that lie equally far apart never meet: tiles side by side in a matrix. */
static bool
side_by_side(const rect *a, const rect *b)
{
    if (a->nd != 1 || b->nd != 1 || a->step[0] != b->step[0])
        return false;
    int64_t step = a->step[0], gap = (b->base - a->base) % step;
    gap += gap < 0 ? step : 0;
    return gap >= a->run && step - gap >= b->run;
}

bool
rect_overlap(const rect *a, const rect *b, int64_t *at)
{
    if (a->space != b->space || (a->space == SP_HBM && a->var != b->var) || a->lo >= b->hi ||
        b->lo >= a->hi)
        return false;
    if (a->space != SP_HBM) {
        // Two blocks meet when their partitions do and their bytes do: no walk over partitions.
        int64_t lane = a->space == SP_SBUF ? CPS_SBUF_STRIDE : CPS_PSUM_STRIDE, mask = lane - 1;
        if (is_block(a, lane) && is_block(b, lane)) {
            int64_t byte = CPS_MAX(a->base & mask, b->base & mask);
            int64_t part = CPS_MAX(a->base / lane, b->base / lane);
            int64_t na = a->nd ? a->num[0] : 1, nb = b->nd ? b->num[0] : 1;
            if (byte >= CPS_MIN((a->base & mask) + a->run, (b->base & mask) + b->run) ||
                part >= CPS_MIN(a->base / lane + na, b->base / lane + nb))
                return false;
            *at = part * lane + byte;
            return true;
        }
    }
    if (side_by_side(a, b))
        return false;
    return run_count(a) <= run_count(b) ? any_run(a, 0, a->base, b, at)
                                        : any_run(b, 0, b->base, a, at);
}
