/* What a run finds in SBUF and PSUM: ones, and no marks of what was written. Filling both before each run costs
 * more than many a run, so blocks of a partition are filled when something first reads them or writes a
 * part of them; what is written whole never is. What no instruction of the kernel names is filled at the
 * end, for who looks at the memories then: in SBUF there is none of it (sbuf_hi), in PSUM it keeps its ones
 * from run to run. */
#include "runtime/sim/machine.h"

#include <stdlib.h>
#include <string.h>

bool
stale_fit(cps_sim *s)
{
    size_t blocks = cps_round_up(s->sbuf_hi, STALE) / STALE, psum = PSUM_BYTES / STALE;
    free(s->stale[0].lanes);
    s->stale[0] = (stale_map){malloc((blocks + psum) * sizeof *s->stale[0].lanes), s->sbuf_hi};
    s->stale[1] = (stale_map){s->stale[0].lanes + blocks, PSUM_BYTES};
    s->nstale = 0;
    return s->stale[0].lanes != NULL;
}

/* The part of block `b` that lies in a partition. */
static void
fill(cps_sim *s, bool psum, size_t b, unsigned lane)
{
    size_t at = b * STALE, n = CPS_MIN((size_t)STALE, s->stale[psum].hi - at);
    at += lane * (psum ? (size_t)PSUM_PITCH : s->sbuf_pitch);
    memset((psum ? s->psum : s->sbuf) + at, 0xFF, n);
    if (s->marked)
        memset((psum ? s->psum_init : s->sbuf_init) + at, 0, n);
}

/* The bits of partitions [part, part + rows) of those from 64 h on. */
static uint64_t
lanes_of(unsigned part, unsigned rows, unsigned h)
{
    unsigned lo = CPS_MAX(part, 64 * h), hi = CPS_MIN(part + rows, 64 * h + 64);
    return lo >= hi ? 0 : UINT64_MAX >> (64 - (hi - lo)) << (lo - 64 * h);
}

static unsigned
count(uint64_t x)
{
    return x == UINT64_MAX ? 64 : (unsigned)__builtin_popcountll(x);
}

void
mem_need(cps_sim *s, bool psum, unsigned part, unsigned rows, int64_t lo, int64_t hi, bool whole)
{
    const stale_map *m = &s->stale[psum];
    const size_t top = (size_t)CPS_MIN(hi, (int64_t)m->hi);
    for (unsigned h = part / 64; 64 * h < part + rows; h++) {
        const uint64_t want = lanes_of(part, rows, h);
        for (size_t b = (size_t)lo / STALE; b * STALE < top; b++) {
            uint64_t met = m->lanes[b][h] & want;
            if (!met)
                continue;
            m->lanes[b][h] &= ~met;
            s->nstale -= count(met);
            if (whole && (size_t)lo <= b * STALE && top >= CPS_MIN((b + 1) * STALE, (size_t)m->hi))
                continue;
            for (; met; met &= met - 1)
                fill(s, psum, b, 64 * h + (unsigned)__builtin_ctzll(met));
        }
    }
}

void
mem_settle(cps_sim *s)
{
    for (int psum = 0; psum < 2 && s->nstale; psum++)
        mem_need(s, psum, 0, LANES, 0, s->stale[psum].hi, false);
    s->psum_dirty = s->psum_reach;
}

/* Whether a result whose elements lie side by side is written whole, whatever was there. */
static bool
overwrites(const insn *i)
{
    if (i->sem->exec == exec_matmul) // a transpose, or a sum that begins
        return i->rev || i->cmd & CPS_PSUM_ACCUMULATE_START;
    return i->sem->kind == SEM_DATA;
}

void
mem_operands(cps_sim *s, const insn *i)
{
    bool own = i->sem->kind == SEM_OWN;
    for (unsigned k = 0; k < i->nop; k++)
        own |= i->op[k].group != 0;
    if (own) {
        mem_settle(s);
        return;
    }
    for (unsigned k = 0; k < i->nsc; k++) {
        const opnd *o = &i->sc[k].at;
        if (i->sc[k].mode != SC_IMM)
            mem_need(s, o->psum, o->part, CPS_MAX(o->rows, i->rows), o->byte + o->lo, o->byte + o->hi, false);
    }
    for (int out = 0; out < 2; out++) { // what is read comes first: it may be what is written
        for (unsigned k = 0; k < i->nop; k++) {
            const opnd *o = &i->op[k];
            if (o->out == out)
                mem_need(s, o->psum, o->part, o->rows, o->byte + o->lo, o->byte + o->hi,
                         out && o->flat && overwrites(i));
        }
    }
}

uint32_t
psum_blocks(int64_t lo, int64_t hi)
{
    lo = CPS_MAX(lo, 0);
    hi = CPS_MIN(hi, (int64_t)PSUM_BYTES);
    if (lo >= hi)
        return 0;
    unsigned first = (unsigned)(lo / STALE), last = (unsigned)((hi - 1) / STALE);
    return UINT32_MAX << first & UINT32_MAX >> (31 - last);
}

/* Under a debugger all is filled at once. */
void
stale_reset(cps_sim *s)
{
    size_t blocks = cps_round_up(s->sbuf_hi, STALE) / STALE;
    memset(s->stale[0].lanes, 0xFF, blocks * sizeof *s->stale[0].lanes);
    for (unsigned b = 0; b < PSUM_BYTES / STALE; b++)
        memset(s->stale[1].lanes[b], s->psum_dirty >> b & 1 ? 0xFF : 0, sizeof *s->stale[1].lanes);
    s->nstale = LANES * ((unsigned)blocks + (unsigned)__builtin_popcount(s->psum_dirty));
    s->psum_dirty |= s->psum_reach; // what is stale stays so until mem_settle, also when no run begins
    s->marked |= (s->opts.checks & CPS_CHECK_UNINIT) != 0;
    if (s->opts.probe)
        mem_settle(s);
}
