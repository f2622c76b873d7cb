/* Indirect patterns of v4: the elements of an operand are picked by a list of offsets in SBUF
 * (NKI tensor indirection). Groups of 16 partitions, 32 on the tensor engine, share a list:
 * offset i lies in partition i % group, column i / group, and counts elements from the data's
 * address. The list begins on the partition of the group's first lane. Its words are u16
 * (inferred from INDIRECT_COPY).
 *
 * The list is read when the instruction starts. What the operand touches is known only then; to
 * the static proof it is everything. */
#include "runtime/sim/machine.h"

bool
indirect_set(cps_sim *s, const insn *i, opnd *o, cps_field f, cps_dtype t, unsigned rows)
{
    const uint8_t *p = i->b.b + cps_fields[f].byte;
    uint32_t index, data;
    memcpy(&index, p, 4);
    memcpy(&data, p + 4, 4);
    unsigned n = p[8] | (unsigned)p[9] << 8;
    bool simple = s->k->gen >= CPS_V4 && cps_fields[f].arg >= 2 && !(data >> 24 & 0x60);
    cps_ap ap = {.addr = data, .nd = 1, .step = {1}, .num = {(uint16_t)n}};
    if (!simple || !opnd_set(s, o, &ap, t, rows))
        return false;
    o->group = i->engine == CPS_PE ? 32 : 16;
    o->flat = false;
    o->index = index & ~0x60000000u;
    o->slot = i->nop;
    return !(cps_addr_is_psum(o->index) && !(o->index & 0x80000000u));
}

const uint16_t *
indirect_offsets(const cps_sim *s, const opnd *o, unsigned p)
{
    return s->offsets[o->slot] + (size_t)(p / o->group) * ROW_MAX;
}

static opnd
list_of(const cps_sim *s, const engine *e, const opnd *o)
{
    uint32_t a = o->index;
    unsigned cols = (unsigned)cps_ceil_div(o->count, o->group);
    opnd x = {.field = o->field};
    if (a & 0x80000000u)
        a = e->reg[a & 0x3F] & 0x1FFFFFFF;
    cps_ap ap = {.addr = a, .nd = 1, .step = {1}, .num = {(uint16_t)cols}};
    if (cps_addr_is_psum(a) || cps_addr_partition(a) >= LANES ||
        !opnd_set(s, &x, &ap, CPS_DT_U16, (unsigned)cps_round_up(o->rows, o->group)))
        x.rows = 0;
    return x;
}

bool
indirect_bind(cps_sim *s, engine *e, insn *i, opnd *o)
{
    opnd x = list_of(s, e, o);
    if (x.rows == 0 || !opnd_in_memory(s, &x)) {
        s->rep.bounds++;
        return run_fault(s, i, CPS_E8302, "the offsets of '%s' lie outside SBUF",
                         cps_fields[o->field].name);
    }
    if (s->opts.no_data)
        return run_fault(s, i, CPS_E8307, "the elements of '%s' are named in memory",
                         cps_fields[o->field].name);
    int64_t far = 0;
    for (unsigned g = 0; g < x.rows; g += o->group) {
        uint16_t *at = s->offsets[o->slot] + (size_t)(g / o->group) * ROW_MAX;
        for (unsigned l = 0; l < o->group; l++) {
            if (s->nstale)
                mem_settle(s);
            const uint8_t *row = opnd_row(s, &x, g + l);
            for (uint32_t c = 0; c < x.count && c * o->group + l < o->count; c++)
                memcpy(&at[c * o->group + l], row + 2 * c, 2);
        }
        for (uint32_t k = 0; k < o->count && g < o->rows; k++)
            far = CPS_MAX(far, (int64_t)at[k]);
    }
    o->nd = 1; // the hull, for whoever asks for a footprint
    o->num[0] = (uint32_t)far + 1;
    o->hi = (far + 1) * o->es;
    return true;
}

/* One element of the lanes of a group. */
static rect
element(const opnd *o, unsigned lane, unsigned lanes, uint32_t at)
{
    opnd one = *o;
    one.part = (uint8_t)(o->part + lane);
    one.rows = (uint8_t)lanes;
    one.byte = o->byte + at * o->es;
    one.num[0] = 1;
    return opnd_rect(&one);
}

void
indirect_access(cps_sim *s, engine *e, const insn *i, const opnd *o)
{
    bool races = s->opts.checks & CPS_CHECK_RACES;
    opnd x = list_of(s, e, o);
    uint32_t full = o->count / o->group, rest = o->count % o->group;
    for (unsigned g = 0; g < o->rows; g += o->group) {
        opnd list = x;
        list.num[0] = full;
        if (full)
            touch_lanes(s, e, i, &list, g, o->group);
        list.byte += full * 2;
        list.num[0] = 1;
        if (rest)
            touch_lanes(s, e, i, &list, g, rest);
        const uint16_t *at = indirect_offsets(s, o, g);
        for (uint32_t k = 0; k < o->count; k++) {
            rect r = element(o, g, CPS_MIN((unsigned)o->group, o->rows - g), at[k]);
            if (!o->out)
                check_read(s, i, &r);
            if (races)
                race_access(s, &r, o->out, i, e->vc, false);
        }
    }
}
