/* Random instructions with legal fields: a loop over the rows of the format. */
#include "tests/isa/random.h"

#include "codegen/isa/sync_row.h"

#include <string.h>

static unsigned
below(cps_rng *r, unsigned n)
{
    return (unsigned)((cps_rng_next(r) >> 32) * n >> 32);
}

static bool
one_in(cps_rng *r, unsigned n)
{
    return below(r, n) == 0;
}

static void
store(uint8_t *p, unsigned n, uint64_t v)
{
    for (unsigned i = 0; i < n; i++)
        p[i] = (uint8_t)(v >> (8 * i));
}

// Small, round and any numbers alike.
static uint64_t
number(cps_rng *r, unsigned bits)
{
    uint64_t v = cps_rng_next(r), mask = bits < 64 ? (1ull << bits) - 1 : ~0ull;
    switch (below(r, 4)) {
    case 0:
        return v & 15 & mask;
    case 1:
        return (1ull << (v & 63)) & mask;
    case 2:
        return v >> (v & 63) & mask;
    default:
        return v & mask;
    }
}

static uint32_t
real(cps_rng *r)
{
    uint64_t v = cps_rng_next(r);
    switch (below(r, 4)) {
    case 0:
        return cps_f32_bits((float)(int)(v & 255) / 8.0f - 4.0f);
    case 1:
        return cps_f32_bits((float)(v >> 40) * 1e-7f);
    case 2:
        return (uint32_t)v & 0xFFFF;
    default:
        return (uint32_t)v;
    }
}

static unsigned
dtype(cps_rng *r, unsigned limit)
{
    for (;;) {
        int wire = cps_dtypes[1 + below(r, CPS_DT_COUNT - 1)].wire;
        if (wire >= 0 && (unsigned)wire < limit)
            return (unsigned)wire;
    }
}

static unsigned
value_of(cps_rng *r, unsigned e, cps_gen g)
{
    unsigned first = cps_enums[e].first, n = cps_enums[e + 1].first - first;
    for (unsigned k = 0; k < 64; k++) {
        const cps_enumval_row *v = &cps_enumvals[first + below(r, n)];
        if (v->gens >> g & 1)
            return v->wire;
    }
    return 0;
}

static uint32_t
on_chip(cps_rng *r)
{
    unsigned partition = one_in(r, 8) ? below(r, 128) : 32 * below(r, 4);
    if (one_in(r, 3))
        return cps_addr_psum(partition, 4 * below(r, 4096));
    return cps_addr_sbuf(partition, one_in(r, 4) ? below(r, 196608) : 64 * below(r, 3072));
}

static uint32_t
addr4(cps_rng *r)
{
    uint32_t a = one_in(r, 12) ? CPS_ADDR_REG | below(r, 64) : on_chip(r);
    switch (below(r, 16)) {
    case 0:
        return a | CPS_ADDR_INDEX;
    case 1:
        return a | CPS_ADDR_SHAPE;
    default:
        return a;
    }
}

static uint64_t
addr8(cps_rng *r)
{
    uint64_t v = cps_rng_next(r);
    switch (below(r, 6)) {
    case 0:
        return 0x10ull << 56 | (v & 0xFFF) << 32 | (v >> 32 & 0xFFFFF);
    case 1:
        return 0x80ull << 56 | (v & 0x3F3F);
    case 2:
        return 0x20ull << 56 | (v & 0xFF) << 32 | (v >> 32 & 0xFFFF);
    case 3:
        return 0x28ull << 56 | (v & 0xFF) << 32 | (v >> 32 & 0x3F);
    case 4:
        return on_chip(r);
    default:
        return v >> 24;
    }
}

static void
tensor(cps_rng *r, cps_bundle *b, cps_field f)
{
    const cps_field_row *row = &cps_fields[f];
    cps_ap ap = {.addr = row->kind == CPS_FK_TENSOR ? addr4(r) : (uint32_t)number(r, 32)};
    unsigned n = row->bits / 8u;
    uint8_t *p = b->b + row->byte;
    if (row->kind == CPS_FK_TENSOR && n >= 12 && cps_addr_is_indirect(ap.addr)) {
        memset(p, 0, n);
        store(p, 4, ap.addr);
        store(p + 4, 4, on_chip(r));
        store(p + 8, 2, 1 + below(r, 512));
        return;
    }
    ap.nd = (uint8_t)(1 + below(r, row->arg));
    for (unsigned i = 0, stride = 1; i < ap.nd; i++) {
        ap.num[i] = (uint16_t)(1 + (one_in(r, 4) ? below(r, 2048) : 1u << below(r, 10)));
        ap.step[i] = (int16_t)(one_in(r, 8) ? number(r, 16) : stride);
        stride *= ap.num[i];
    }
    cps_isa_set_ap(b, f, &ap);
}

static void
mx(cps_rng *r, uint8_t *p)
{
    memset(p, 0, 16);
    bool by_index = one_in(r, 4);
    store(p, 4, on_chip(r) | (by_index ? CPS_ADDR_INDEX : 0));
    if (by_index)
        store(p += 4, 4, on_chip(r));
    store(p + 4, 4, on_chip(r));
    store(p + 8, 2, 1 + below(r, 512));
    p[10] = by_index ? 0 : (uint8_t)(1 - 2 * below(r, 2));
    p[11] = (uint8_t)below(r, 128);
}

static void
field(cps_rng *r, cps_bundle *b, cps_field f, cps_gen g)
{
    const cps_field_row *row = &cps_fields[f];
    unsigned n = row->bits / 8u;
    uint8_t *p = b->b + row->byte;
    switch ((cps_fkind)row->kind) {
    case CPS_FK_UINT:
    case CPS_FK_SINT:
        for (unsigned i = 0, m = row->arg > 1 ? row->arg : 1; i < m; i++)
            cps_isa_set_elem(b, f, i, number(r, row->bits / m));
        if (strcmp(row->name, "ch") == 0 || strncmp(row->name, "num_active", 10) == 0)
            cps_isa_set(b, f, 1 + below(r, 128));
        return;
    case CPS_FK_F32:
    case CPS_FK_IMM:
        store(p, n, real(r));
        return;
    case CPS_FK_HEX:
    case CPS_FK_FLAGS:
        store(p, n, number(r, row->bits));
        return;
    case CPS_FK_DTYPE:
        *p = (uint8_t)dtype(r, g >= CPS_V4 ? 32 : 16);
        return;
    case CPS_FK_PAIR:
        *p = (uint8_t)(dtype(r, 16) | dtype(r, 16) << 4);
        return;
    case CPS_FK_ALU:
        do
            *p = (uint8_t)below(r, 256);
        while (cps_alu_class_of(*p, g) == CPS_ALUC_NONE);
        return;
    case CPS_FK_ENUM:
        *p = (uint8_t)value_of(r, row->arg, g);
        return;
    case CPS_FK_ACTFN:
        do
            *p = (uint8_t)below(r, 256);
        while (!cps_actfn_name(*p));
        return;
    case CPS_FK_ADDR4:
        store(p, n, addr4(r));
        return;
    case CPS_FK_ADDR8:
        store(p, n, addr8(r));
        return;
    case CPS_FK_STR:
        memset(p, 0, n);
        for (unsigned i = 0, len = below(r, n + 1); i < len; i++)
            p[i] = (uint8_t) " ./_-abcdefgz"[below(r, 13)];
        return;
    case CPS_FK_BYTES:
        memset(p, 0, n);
        for (unsigned i = 0, len = below(r, n + 1); i < len; i++)
            p[i] = (uint8_t)below(r, 256);
        return;
    case CPS_FK_TENSOR:
    case CPS_FK_DATA4D:
        tensor(r, b, f);
        return;
    case CPS_FK_MXMEM:
        mx(r, p);
        return;
    }
}

static void
band(cps_rng *r, cps_bundle *b, const cps_sync_band *s)
{
    const cps_sync_row *w = &cps_waits[below(r, cps_wait_count)],
                       *u = &cps_updates[below(r, cps_update_count)];
    bool wait = w->object != CPS_SYNC_OTHER && one_in(r, 3);
    bool then = u->object != CPS_SYNC_OTHER && one_in(r, 3);
    cps_isa_set(b, s->wait_mode, wait ? w->wire : 0);
    cps_isa_set(b, s->wait_idx, wait ? below(r, 256) : 0);
    cps_isa_set(b, s->update_mode, then ? u->wire : 0);
    cps_isa_set(b, s->update_idx, then ? below(r, 256) : 0);
    cps_isa_set(b, s->update_value, then && u->operand ? number(r, 16) : 0);
    if (wait && w->operand)
        cps_isa_set(b, s->wait_value, number(r, 16));
}

cps_bundle
random_insn(cps_rng *r, cps_insn i, cps_gen g)
{
    cps_bundle b = cps_isa_new(i, g);
    unsigned fmt = cps_insns[i].format;
    for (unsigned f = cps_formats[fmt].first; f < cps_formats[fmt + 1].first; f++)
        if (cps_fields[f].gens >> g & 1 && !one_in(r, 4))
            field(r, &b, (cps_field)f, g);
    band(r, &b, &cps_sync_bands[0]);
    const cps_sync_band *second = cps_sync_second(fmt);
    if (second)
        band(r, &b, second);
    return b;
}

cps_insn
random_next(cps_insn i, cps_gen g)
{
    do
        i = (cps_insn)(i + 1 < CPS_INSNS ? i + 1 : 1);
    while (!(cps_insns[i].gens >> g & 1));
    return i;
}
