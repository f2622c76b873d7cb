/* What each DMA engine reads and writes of a transfer, without walking its runs.
 *
 * In: a copy between rows of partitions and rows of anything else, row against row, as nearly every
 * transfer is. Out: per engine one footprint of each side, as the walk in ring.c finds them run by
 * run: engine e has the partitions 8e to 8e + 7, so its share is a piece of the outermost dimension.
 * A proof needs no more of a transfer than that. Whatever has another shape, or would be refused,
 * is left to the walk. */
#include "runtime/sim/machine.h"

/* A side without dimensions of one element; dimension 0 is the run. */
typedef struct rows {
    int nd;
    int64_t step[5], size[5];
    rect r;     /* of the first row */
    bool chip;
    int64_t n, apart; /* rows, and the bytes between them */
} rows;

static void
squeeze(const side *x, rows *o)
{
    o->nd = 1;
    o->size[0] = x->size[0];
    for (int d = 1; d < x->nd; d++) {
        if (x->size[d] == 1)
            continue;
        o->step[o->nd] = x->step[d];
        o->size[o->nd++] = x->size[d];
    }
}

/* The bytes from the first of dimensions below `nd` to behind the last; -1: some step runs back. */
static int64_t
reach(const rows *o, int nd)
{
    int64_t n = o->size[0];
    for (int d = 1; d < nd; d++) {
        if (o->step[d] < 0 || o->size[d] < 1)
            return -1;
        n += o->step[d] * (o->size[d] - 1);
    }
    return n;
}

/* Takes the outermost dimension as rows, or as `n` equal parts of them: a matrix without gaps is one
 * run. False: there are none, or a row is not all in one place. */
static bool
take_rows(const cps_sim *s, const side *x, int64_t n, rows *o)
{
    squeeze(x, o);
    o->chip = addr_is_chip(x->addr);
    int out = o->nd - 1;
    int64_t all = reach(o, o->nd), each = out ? o->step[out] : 1;
    o->n = n ? n : o->size[out];
    if ((out == 0 && !n) || all < 1 || o->size[out] % o->n)
        return false;
    o->size[out] /= o->n;
    o->apart = each * o->size[out];
    if (out && o->size[out] == 1)
        o->nd = out;
    int64_t row = reach(o, o->nd);
    space sp;
    o->r = (rect){.run = o->size[0]};
    if (!addr_resolve(s, x->addr, (uint64_t)(o->chip ? row : all), &sp, &o->r.var, &o->r.base))
        return false;
    o->r.space = (uint8_t)sp;
    return !o->chip || (o->apart == CPS_SBUF_STRIDE && o->r.base / CPS_SBUF_STRIDE + o->n <= LANES);
}

/* Merged with what touches it, as the walk does; within a row. */
static int64_t
run_of(const rows *o)
{
    int64_t run = o->size[0];
    for (int d = 1; d < o->nd && o->step[d] == run && !(o->chip && o->step[d] % CPS_SBUF_STRIDE == 0); d++)
        run *= o->size[d];
    return run;
}

static rect
piece(const rows *o, int64_t first, int64_t n)
{
    rect r = o->r;
    r.base += first * o->apart;
    r.step[0] = o->apart;
    r.num[0] = n;
    r.nd = 1;
    for (int d = 1; d < o->nd; d++) {
        r.step[r.nd] = o->step[d];
        r.num[r.nd++] = o->size[d];
    }
    rect_close(&r);
    return r;
}

uint32_t
ring_shares(const cps_sim *s, const item *it, int64_t fs, int64_t ts, dma_share *out, int64_t *descs)
{
    rows f, t;
    // The partitions say how many rows there are.
    bool to = addr_is_chip(it->to.addr);
    if (!take_rows(s, to ? &it->to : &it->from, 0, to ? &t : &f) || !(to ? t : f).chip ||
        !take_rows(s, to ? &it->from : &it->to, (to ? t : f).n, to ? &f : &t) || f.size[0] % fs || t.size[0] % ts)
        return 0;
    int64_t nf = f.size[0] / fs, nt = t.size[0] / ts; // elements of a row
    for (int d = 1; d < f.nd; d++)
        nf *= f.size[d];
    for (int d = 1; d < t.nd; d++)
        nt *= t.size[d];
    int64_t a = run_of(&f) / fs, b = run_of(&t) / ts, less = CPS_MIN(a, b), more = CPS_MAX(a, b);
    int64_t most = s->t->dma_packet_bytes / CPS_MAX(fs, ts);
    if (nf != nt || most < 1 || more % less)
        return 0;
    *descs = t.n * (nt / less) * cps_ceil_div(less, most);
    int64_t engines = s->t->dma_engines, per = CPS_MAX(LANES / engines, 1);
    int64_t p0 = (t.chip ? t.r.base : f.r.base) / CPS_SBUF_STRIDE;
    uint32_t used = 0;
    for (int64_t row = 0; row < t.n;) {
        int64_t e = CPS_MIN((p0 + row) / per, engines - 1);
        int64_t end = e == engines - 1 ? t.n : CPS_MIN((e + 1) * per - p0, t.n);
        out[e] = (dma_share){piece(&f, row, end - row), piece(&t, row, end - row)};
        used |= 1u << e;
        row = end;
    }
    return used;
}
