/* Operands as runs of contiguous elements: an instruction whose operands are fp32 or bf16 and whose fastest
 * dimensions are contiguous is a few calls of a loop over all its partitions (wide.h), not a walk
 * through scratch partition by partition. Whatever does not fit is refused, and the caller walks. */
#include "runtime/sim/machine.h"

enum { SHORTEST = 8 }; /* elements of a piece that is worth a call */

static bool
fits(const opnd *o)
{
    return !o->group && (o->dtype == CPS_DT_FP32 || o->dtype == CPS_DT_BF16) &&
           (o->count == 1 || o->step[0] == 1) && o->byte % o->es == 0;
}

/* A source that is the destination, element by element, or does not touch it. */
static bool
apart(const opnd *o, const opnd *a)
{
    if (o->psum != a->psum || o->byte + o->lo >= a->byte + a->hi ||
        a->byte + a->lo >= o->byte + o->hi)
        return true;
    bool same = o->part == a->part && o->byte == a->byte && o->es == a->es && o->nd == a->nd;
    for (unsigned d = 0; same && d < o->nd; d++)
        same = o->step[d] == a->step[d] && o->num[d] == a->num[d];
    return same;
}

static int64_t
element(const opnd *o, uint32_t k)
{
    int64_t at = 0;
    for (unsigned d = 0; d < o->nd; d++) {
        at += (int64_t)o->step[d] * (k % o->num[d]);
        k /= o->num[d];
    }
    return at;
}

bool
pieces_of(cps_sim *s, pieces *p, const opnd *out, const opnd *a, const opnd *b)
{
    const opnd *all[3] = {out, a, b};
    if (s->opts.stochastic && out && out->dtype == CPS_DT_BF16)
        return false;
    p->len = UINT32_MAX;
    for (unsigned k = 0; k < 3; k++) {
        const opnd *o = p->o[k] = all[k];
        if (!o)
            continue;
        if (!fits(o) || (k && out && !apart(out, o)))
            return false;
        p->len = CPS_MIN(p->len, o->num[0]);
        p->base[k] = opnd_row(s, o, 0);
        p->side[k] = (wide_side){.pitch = o->psum ? PSUM_PITCH : s->sbuf_pitch,
                                 .bf16 = o->dtype == CPS_DT_BF16};
    }
    p->n = a->count / p->len;
    for (unsigned k = 0; k < 3; k++) {
        if (all[k] && all[k]->num[0] % p->len)
            return false;
    }
    return p->len >= SHORTEST || p->n == 1;
}

int64_t
piece_offset(const pieces *p, unsigned k, unsigned j)
{
    return element(p->o[k], j * p->len) * p->o[k]->es;
}

void
pieces_at(pieces *p, unsigned j)
{
    for (unsigned k = 0; k < 3; k++) {
        if (p->o[k])
            p->side[k].at = p->base[k] + piece_offset(p, k, j);
    }
}
