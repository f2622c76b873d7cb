/* Looking at a machine from outside; see debug.h. */
#include "runtime/sim/debug.h"

#include "runtime/sim/machine.h"

int64_t
cps_sim_now(const cps_sim *s)
{
    return s->now;
}

static void
place_of(const cps_sim *s, const insn *i, cps_place *out)
{
    const cps_kloc *at = insn_loc(s, i);
    out->name = cps_insns[i->id].name;
    out->file = at ? at->file : NULL;
    out->line = at ? at->line : 0;
}

cps_place
cps_sim_where(cps_sim *s, cps_engine e)
{
    engine *en = &s->eng[e];
    cps_place p = {.state = CPS_AT_END, .index = en->pc, .count = en->n, .name = ""};
    if (en->halted || en->pc >= en->n)
        return p;
    const insn *i = &en->code[en->pc];
    place_of(s, i, &p);
    p.state = en->free > s->now ? CPS_AT_BUSY : CPS_AT_NEXT;
    p.until_ps = en->free;
    if (!en->blocked)
        return p;
    p.state = CPS_AT_WAIT;
    unsigned w = 0;
    while (w + 1 < i->sy.nwait && sync_ready(s, en, i, w))
        w++;
    bool evt = (i->sy.wait_mode[w] & 0x0F) >= CPS_WAIT_EVT_SET;
    uint32_t v = i->sy.wait_value[w];
    p.semaphore = i->sy.wait_idx[w] + (evt ? SEMS : 0);
    p.value = evt ? s->sem[i->sy.wait_idx[w]].event : s->sem[i->sy.wait_idx[w]].value;
    p.wanted = evt ? !s->sem[i->sy.wait_idx[w]].event
                   : (int32_t)(i->sy.wait_mode[w] & 0x80 ? en->reg[v % REGS] : v);
    return p;
}

bool
cps_sim_insn(const cps_sim *s, cps_engine e, uint32_t index, cps_place *at, cps_buf *out)
{
    if ((unsigned)e >= CPS_ENGINES || index >= s->eng[e].n)
        return false;
    *at = (cps_place){.index = index, .count = s->eng[e].n};
    place_of(s, &s->eng[e].code[index], at);
    cps_isa_print(&s->k->stream[e].code.data[index], s->k->gen, out);
    return true;
}

unsigned
cps_sim_registers(void)
{
    return REGS;
}

uint32_t
cps_sim_register(const cps_sim *s, cps_engine e, unsigned reg)
{
    return s->eng[e].reg[reg % REGS];
}

unsigned
cps_sim_semaphores(void)
{
    return SEMS;
}

int64_t
cps_sim_semaphore(const cps_sim *s, unsigned sem)
{
    return s->sem[sem % SEMS].value;
}

bool
cps_sim_event_bit(const cps_sim *s, unsigned number)
{
    return s->sem[number % SEMS].event;
}

int64_t
cps_sim_extent(const cps_sim *s, const cps_spot *at)
{
    switch (at->space) {
    case CPS_SPOT_SBUF:
        return at->partition < LANES ? s->sbuf_bytes : 0;
    case CPS_SPOT_PSUM:
        return at->partition < LANES ? PSUM_BYTES : 0;
    default:
        return at->partition && at->partition < s->vars.n ? s->vars.data[at->partition].v->bytes
                                                          : 0;
    }
}

uint32_t
cps_sim_variable(const cps_sim *s, const char *name)
{
    for (uint32_t i = 1; i < s->vars.n; i++)
        if (!strcmp(s->vars.data[i].v->name, name))
            return i;
    return 0;
}

static const hbm_var *
home_of(const cps_sim *s, uint32_t var)
{
    const hbm_var *v = &s->vars.data[var];
    return v->home ? &v->home->vars.data[v->at] : v;
}

bool
cps_sim_same_variable(const cps_sim *a, uint32_t var, const cps_sim *b, uint32_t of_b)
{
    return var && of_b && var < a->vars.n && of_b < b->vars.n && home_of(a, var) == home_of(b, of_b);
}

bool
cps_sim_peek(const cps_sim *s, const cps_spot *at, size_t n, uint8_t *out, uint8_t *written)
{
    int64_t most = cps_sim_extent(s, at);
    if (at->byte < 0 || at->byte > most || (int64_t)n > most - at->byte)
        return false;
    const uint8_t *from, *init;
    if (at->space == CPS_SPOT_VAR) {
        const hbm_var *v = &s->vars.data[at->partition];
        from = v->data;
        init = v->init;
    } else {
        bool psum = at->space == CPS_SPOT_PSUM;
        int64_t have = psum ? PSUM_BYTES : CPS_MAX(s->sbuf_hi - at->byte, (int64_t)0);
        if ((int64_t)n > have) { // what the kernel cannot reach is as at the start
            memset(out + have, 0xFF, n - (size_t)have);
            if (written)
                memset(written + have, !(s->opts.checks & CPS_CHECK_UNINIT), n - (size_t)have);
            n = (size_t)have;
        }
        size_t lane = (size_t)at->partition * (psum ? PSUM_PITCH : s->sbuf_pitch);
        from = (psum ? s->psum : s->sbuf) + lane;
        init = (psum ? s->psum_init : s->sbuf_init) + lane;
    }
    if (!from)
        return false;
    memcpy(out, from + at->byte, n);
    if (written && init && s->opts.checks & CPS_CHECK_UNINIT)
        memcpy(written, init + at->byte, n);
    else if (written)
        memset(written, 1, n);
    return true;
}

void
cps_sim_transfers(const cps_sim *s, cps_buf *out)
{
    for (uint32_t q = 0; q < s->queues.n; q++) {
        // a transfer stands in the queue of every DMA engine until that engine has done its
        // part
        uint32_t last = 0;
        for (;;) {
            const xfer *next = NULL;
            for (unsigned r = 0; r < DMA_RINGS; r++)
                for (const xfer *x = s->queues.data[q].fifo[r].head; x; x = x->next[r])
                    if (x->seq > last && (!next || x->seq < next->seq))
                        next = x;
            if (!next)
                break;
            last = next->seq;
            unsigned todo = 0, packets = 0;
            for (unsigned r = 0; r < DMA_RINGS; r++) {
                packets += next->b->ring[r].packets.n;
                todo += next->b->ring[r].packets.n - next->at[r].packet;
            }
            cps_buf_printf(out, "%s transfer %u: %lld bytes, %u of %u packets to go, %s[%u]\n",
                           s->queues.data[q].name, next->seq, (long long)next->b->bytes, todo,
                           packets, cps_engine_name((cps_engine)next->by->engine),
                           next->by->index);
        }
    }
}
