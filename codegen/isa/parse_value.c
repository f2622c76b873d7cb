/* Values of .cas operands: addresses, patterns, scalars, text, by the kind of the field. */
#include "codegen/isa/parse.h"

/* ---- addresses and patterns ---- */

// [pN] or [pN+0xB] of a space with its stride and number of partitions.
static bool
place(cps_cas *ps, uint32_t base, uint32_t stride, uint32_t *out)
{
    uint64_t partition, byte = 0;
    if (!cps_cas_expect(ps, 'p'))
        return false;
    const char *from = ps->p;
    if (!cps_cas_number_of(ps, 32, false, &partition))
        return false;
    if (partition > 127)
        return cps_cas_fail(ps, CPS_E9204, from, ps->p, "partitions are 0 to 127");
    if (cps_cas_accept(ps, '+')) {
        from = ps->p;
        if (!cps_cas_number_of(ps, 32, false, &byte))
            return false;
        if (byte >= stride)
            return cps_cas_fail(ps, CPS_E9204, from, ps->p,
                                "a partition has addresses below 0x%x", stride);
    }
    *out = base + (uint32_t)partition * stride + (uint32_t)byte;
    return cps_cas_expect(ps, ']');
}

static bool
addr4(cps_cas *ps, uint32_t *out)
{
    uint64_t v;
    if (cps_cas_keyword(ps, "sbuf["))
        return place(ps, 0, CPS_SBUF_STRIDE, out);
    if (cps_cas_keyword(ps, "psum["))
        return place(ps, CPS_PSUM_BASE, CPS_PSUM_STRIDE, out);
    uint32_t marker = 0;
    if (cps_cas_keyword(ps, "index:"))
        marker = CPS_ADDR_INDEX;
    else if (cps_cas_keyword(ps, "shape:"))
        marker = CPS_ADDR_SHAPE;
    if (marker) {
        if (!addr4(ps, out))
            return false;
        *out |= marker;
        return true;
    }
    bool reg = cps_cas_keyword(ps, "reg[");
    if (!cps_cas_number_of(ps, reg ? 8 : 32, false, &v))
        return false;
    *out = (uint32_t)v | (reg ? CPS_ADDR_REG : 0);
    return reg ? cps_cas_expect(ps, ']') : true;
}

// What stands after the first bracket of an ADDR8: number, offset or register, bracket.
static bool
named8(cps_cas *ps, unsigned bits, unsigned marker, uint64_t *out)
{
    uint64_t id, off = 0;
    bool reg = false;
    if (!cps_cas_number_of(ps, bits, false, &id))
        return false;
    if (cps_cas_accept(ps, '+')) {
        reg = marker == 0x20 && ps->end - ps->p > 1 && ps->p[0] == 'r' && ps->p[1] >= '0' &&
              ps->p[1] <= '9';
        ps->p += reg;
        if (!cps_cas_number_of(ps, reg ? 8 : 32, false, &off))
            return false;
    }
    *out = (uint64_t)(marker | (reg ? 8 : 0)) << 56 | id << 32 | off;
    return cps_cas_expect(ps, ']');
}

static bool
addr8(cps_cas *ps, uint64_t *out)
{
    uint64_t a, b, marker = 0;
    uint32_t chip;
    if (cps_cas_keyword(ps, "var["))
        return named8(ps, 24, 0x10, out);
    if (cps_cas_keyword(ps, "wide:"))
        marker = 0x04;
    if (cps_cas_keyword(ps, "shape:"))
        marker |= 0x40;
    if (cps_cas_keyword(ps, "reg[")) {
        if (!cps_cas_number_of(ps, 8, false, &a) || !cps_cas_expect(ps, ',') ||
            !cps_cas_number_of(ps, 8, false, &b) || !cps_cas_expect(ps, ']'))
            return false;
        *out = 0x80ull << 56 | b << 8 | a;
    } else if (cps_cas_keyword(ps, "table[")) {
        if (!named8(ps, 16, 0x20, out))
            return false;
    } else if (ps->end - ps->p > 4 &&
               (!memcmp(ps->p, "sbuf", 4) || !memcmp(ps->p, "psum", 4))) {
        if (!addr4(ps, &chip))
            return false;
        *out = chip;
    } else if (!cps_cas_number_of(ps, 64, false, out)) {
        return false;
    }
    *out |= marker << 56;
    return true;
}

// [step,..][num,..] with as many of each, at most `most`.
static bool
dims(cps_cas *ps, unsigned most, cps_ap *ap)
{
    const char *from = ps->p;
    uint64_t v;
    unsigned steps = 0, nums = 0;
    if (!cps_cas_expect(ps, '['))
        return false;
    do {
        if (steps == most)
            return cps_cas_fail(ps, CPS_E9204, from, cps_cas_chunk_end(ps, ps->p),
                                "at most %u dimensions here", most);
        if (!cps_cas_number_of(ps, 16, true, &v))
            return false;
        ap->step[steps++] = (int16_t)v;
    } while (cps_cas_accept(ps, ','));
    if (!cps_cas_expect(ps, ']') || !cps_cas_expect(ps, '['))
        return false;
    do {
        if (nums == steps)
            return cps_cas_fail(ps, CPS_E9204, from, cps_cas_chunk_end(ps, ps->p),
                                "more counts than steps");
        if (!cps_cas_number_of(ps, 16, false, &v))
            return false;
        ap->num[nums++] = (uint16_t)v;
    } while (cps_cas_accept(ps, ','));
    if (!cps_cas_expect(ps, ']'))
        return false;
    if (nums != steps)
        return cps_cas_fail(ps, CPS_E9204, from, ps->p, "%u steps but %u counts", steps, nums);
    ap->nd = (uint8_t)nums;
    return true;
}

static void
store4(uint8_t *p, uint32_t v)
{
    for (unsigned i = 0; i < 4; i++)
        p[i] = (uint8_t)(v >> (8 * i));
}

// "->" and the address that an index leads to; false without a report when there is none.
static bool
leads_on(cps_cas *ps, uint32_t index, uint32_t *data, bool *bad)
{
    const char *from = ps->p;
    *bad = false;
    if (!cps_cas_keyword(ps, "->"))
        return false;
    *bad = !cps_addr_is_indirect(index);
    if (*bad)
        cps_cas_fail(ps, CPS_E9203, from, ps->p, "only an index: address leads to another");
    else
        *bad = !addr4(ps, data);
    return !*bad;
}

// index->data[count] after the index: an indirect pattern of n bytes.
static bool
indirect(cps_cas *ps, uint32_t index, uint32_t data, uint8_t *p, unsigned n)
{
    const char *from = ps->p;
    uint64_t count;
    if (!cps_cas_expect(ps, '[') || !cps_cas_number_of(ps, 16, false, &count) ||
        !cps_cas_expect(ps, ']'))
        return false;
    if (n < 12)
        return cps_cas_fail(ps, CPS_E9204, from, ps->p, "no room here for an indirect pattern");
    memset(p, 0, n);
    store4(p, index);
    store4(p + 4, data);
    p[8] = (uint8_t)count;
    p[9] = (uint8_t)(count >> 8);
    return true;
}

static bool
tensor(cps_cas *ps, cps_field f)
{
    const cps_field_row *r = &cps_fields[f];
    cps_ap ap = {.nd = 0};
    uint32_t data;
    bool bad;
    if (!addr4(ps, &ap.addr))
        return false;
    if (leads_on(ps, ap.addr, &data, &bad))
        return indirect(ps, ap.addr, data, ps->b.b + r->byte, r->bits / 8u);
    if (bad || !dims(ps, r->arg, &ap))
        return false;
    cps_isa_set_ap(&ps->b, f, &ap);
    return true;
}

static bool
mx(cps_cas *ps, uint8_t *p)
{
    uint32_t data, scale;
    uint64_t k, sign = 0, base, rest = 0;
    bool bad;
    if (!addr4(ps, &data))
        return false;
    memset(p, 0, 16);
    store4(p, data);
    bool by_index = leads_on(ps, data, &data, &bad);
    if (bad)
        return false;
    p += by_index ? 4 : 0;
    if (!cps_cas_expect(ps, '*') || !addr4(ps, &scale) || !cps_cas_expect(ps, '[') ||
        !cps_cas_number_of(ps, 16, false, &k) || !cps_cas_expect(ps, ',') ||
        (!by_index && (!cps_cas_number_of(ps, 8, true, &sign) || !cps_cas_expect(ps, ','))) ||
        !cps_cas_number_of(ps, 8, false, &base) ||
        (cps_cas_accept(ps, ',') && !cps_cas_number_of(ps, by_index ? 8 : 32, false, &rest)) ||
        !cps_cas_expect(ps, ']'))
        return false;
    store4(p, data);
    store4(p + 4, scale);
    p[8] = (uint8_t)k;
    p[9] = (uint8_t)(k >> 8);
    p[10] = (uint8_t)(by_index ? rest : sign);
    p[11] = (uint8_t)base;
    if (!by_index)
        store4(p + 12, (uint32_t)rest);
    return true;
}

// Names of masks and numbers joined by '|'; a mask of several bits takes ":value".
static bool
flags(cps_cas *ps, unsigned e, uint64_t *out)
{
    *out = 0;
    do {
        const char *from = ps->p;
        unsigned mask;
        bool number = from < ps->end && *from >= '0' && *from <= '9';
        if (!cps_cas_named(ps, CPS_FK_ENUM, e, 256, &mask))
            return false;
        uint64_t v = mask;
        if (!number && (mask & (mask - 1))) {
            unsigned low = mask & (0 - mask);
            if (!cps_cas_expect(ps, ':') || !cps_cas_number_of(ps, 8, false, &v))
                return false;
            if (v > mask / low)
                return cps_cas_fail(ps, CPS_E9204, from, ps->p, "at most %u fits here",
                                    mask / low);
            v *= low;
        }
        *out |= v;
    } while (cps_cas_accept(ps, '|'));
    return true;
}

/* ---- operands ---- */

// A value that an operand's form implies for another field: an operand of its own wins, and two
// implied ones must agree.
static bool
imply(cps_cas *ps, cps_field f, unsigned mask, unsigned v, const char *from)
{
    const cps_field_row *r = &cps_fields[f];
    uint8_t *at = &ps->b.b[r->byte];
    if (ps->given & cps_cas_bit_of(ps, f))
        return true;
    unsigned old = *at & mask;
    uint64_t *seen = &ps->implied[mask == 0xF0];
    if ((*seen & cps_cas_bit_of(ps, f)) && old != v)
        return cps_cas_fail(ps, CPS_E9205, from, cps_cas_chunk_end(ps, from),
                            "'%s' would get two values: it serves several operands", r->name);
    *seen |= cps_cas_bit_of(ps, f);
    *at = (uint8_t)((*at & ~mask) | v);
    return true;
}

static bool
scalar(cps_cas *ps, const cps_field_row *r, uint32_t *out)
{
    const char *from = ps->p;
    unsigned form = CPS_IMM_SRC_INSTRUCTION_IMMEDIATE;
    uint64_t v = 0;
    bool neg;
    if (cps_cas_keyword(ps, "ptr["))
        form = CPS_IMM_SRC_POINTER_IMMEDIATE;
    else if (cps_cas_keyword(ps, "reg["))
        form = CPS_IMM_SRC_REG_PTR_IMMEDIATE;
    if (form != CPS_IMM_SRC_INSTRUCTION_IMMEDIATE) {
        if (!r->source)
            return cps_cas_fail(ps, CPS_E9203, from, ps->p, "'%s' takes a number only",
                                r->name);
        if (!cps_cas_number_of(ps, 32, false, &v) || !cps_cas_expect(ps, ']'))
            return false;
    } else {
        const char *end = cps_cas_chunk_end(ps, from);
        bool hex = end - from > 2 && from[0] == '0' && (from[1] | 0x20) == 'x';
        bool real = false;
        for (const char *s = from; s < end && !hex; s++)
            real = real || *s == '.' || *s == 'e' || *s == 'n'; // 0.5, 1e9, inf, nan
        double d;
        if (real && cps_parse_double(from, (size_t)(end - from), &d)) {
            v = cps_f32_bits((float)d);
            ps->p = end;
        } else if (!cps_cas_number(ps, &v, &neg)) {
            return false;
        } else if (v > (neg ? 0x80000000u : 0xFFFFFFFFu)) {
            return cps_cas_fail(ps, CPS_E9204, from, ps->p, "number does not fit 32 bits");
        } else if (neg) {
            v = (uint32_t)(0 - v);
        }
    }
    *out = (uint32_t)v;
    if (!r->source)
        return true;
    if (cps_fields[r->source].arg == CPS_ENUM_IMM_SRC_N && form <= 1)
        form = 1 - form;
    return imply(ps, (cps_field)r->source, 0xFF, form, from);
}

bool
cps_cas_constant(cps_cas *ps, uint64_t *out, bool *neg)
{
    static const cps_field_row plain = {.name = "value"};
    const char *end = cps_cas_chunk_end(ps, ps->p);
    uint32_t v;
    *neg = false;
    size_t n = (size_t)(end - ps->p);
    bool place = n && (*ps->p == 's' || *ps->p == 'p') && memchr(ps->p, '[', n);
    bool hex = n > 1 && ps->p[0] == '0' && (ps->p[1] | 0x20) == 'x';
    bool digits = n && (*ps->p == '-' || (*ps->p >= '0' && *ps->p <= '9')) && !hex;
    bool real = digits && (memchr(ps->p, '.', n) || memchr(ps->p, 'e', n));
    if (!place && !real)
        return cps_cas_number(ps, out, neg);
    if (!(place ? addr4(ps, &v) : scalar(ps, &plain, &v)))
        return false;
    *out = v;
    return true;
}

static bool
string(cps_cas *ps, uint8_t *out, unsigned n)
{
    const char *from = ps->p;
    if (!cps_cas_accept(ps, '"'))
        return cps_cas_bytes(ps, out, n);
    const char *end = memchr(ps->p, '"', (size_t)(ps->end - ps->p));
    if (!end)
        return cps_cas_fail(ps, CPS_E9203, from, ps->end, "text without its closing quote");
    size_t len = (size_t)(end - ps->p);
    if (len > n)
        return cps_cas_fail(ps, CPS_E9204, from, end + 1, "at most %u characters fit here", n);
    memset(out, 0, n);
    memcpy(out, ps->p, len);
    ps->p = end + 1;
    return true;
}

static bool
numbers(cps_cas *ps, cps_field f)
{
    const cps_field_row *r = &cps_fields[f];
    unsigned n = r->arg > 1 ? r->arg : 1, width = r->bits / n, i = 0;
    uint64_t v;
    if (n == 1) {
        if (!cps_cas_number_of(ps, width, r->kind == CPS_FK_SINT, &v))
            return false;
        cps_isa_set_elem(&ps->b, f, 0, v);
        return true;
    }
    const char *from = ps->p;
    memset(ps->b.b + r->byte, 0, r->bits / 8u);
    if (!cps_cas_expect(ps, '['))
        return false;
    do {
        if (i == n)
            return cps_cas_fail(ps, CPS_E9204, from, cps_cas_chunk_end(ps, ps->p),
                                "at most %u numbers here", n);
        if (!cps_cas_number_of(ps, width, r->kind == CPS_FK_SINT, &v))
            return false;
        cps_isa_set_elem(&ps->b, f, i++, v);
    } while (cps_cas_accept(ps, ','));
    return cps_cas_expect(ps, ']');
}

static bool
f32(cps_cas *ps, uint64_t *out)
{
    uint32_t v;
    static const cps_field_row plain = {.name = "f32"};
    if (!scalar(ps, &plain, &v))
        return false;
    *out = v;
    return true;
}

// dtype@ before an operand whose dtype another field holds.
static bool
prefix(cps_cas *ps, const cps_field_row *r)
{
    const char *from = ps->p, *end = cps_cas_word_end(ps, from);
    if (end == ps->end || *end != '@')
        return true;
    unsigned v, limit = r->part == CPS_PART_WHOLE ? 256 : 16;
    if (!cps_cas_named(ps, CPS_FK_DTYPE, 0, limit, &v))
        return false;
    ps->p = end + 1;
    unsigned mask = r->part == CPS_PART_WHOLE ? 0xFF : r->part == CPS_PART_LOW ? 0x0F : 0xF0;
    return imply(ps, (cps_field)r->dtype, mask, r->part == CPS_PART_HIGH ? v << 4 : v, from);
}

bool
cps_cas_value(cps_cas *ps, cps_field f)
{
    const cps_field_row *r = &cps_fields[f];
    uint8_t *p = ps->b.b + r->byte;
    unsigned n = r->bits / 8u, a, b;
    uint64_t v = 0;
    uint32_t v4 = 0;
    cps_ap ap = {.nd = 0};
    if (r->dtype && !prefix(ps, r))
        return false;
    switch ((cps_fkind)r->kind) {
    case CPS_FK_UINT:
    case CPS_FK_SINT:
        return numbers(ps, f);
    case CPS_FK_F32:
        if (!f32(ps, &v))
            return false;
        break;
    case CPS_FK_HEX:
        if (!cps_cas_number_of(ps, r->bits, false, &v))
            return false;
        break;
    case CPS_FK_PAIR:
        if (!cps_cas_named(ps, CPS_FK_DTYPE, 0, 16, &a) || !cps_cas_expect(ps, '/') ||
            !cps_cas_named(ps, CPS_FK_DTYPE, 0, 16, &b))
            return false;
        v = a | b << 4;
        break;
    case CPS_FK_FLAGS:
        if (!flags(ps, r->arg, &v))
            return false;
        break;
    case CPS_FK_DTYPE:
    case CPS_FK_ALU:
    case CPS_FK_ENUM:
    case CPS_FK_ACTFN:
        if (!cps_cas_named(ps, r->kind, r->arg, 256, &a))
            return false;
        v = a;
        break;
    case CPS_FK_ADDR4:
        if (!addr4(ps, &v4))
            return false;
        v = v4;
        break;
    case CPS_FK_ADDR8:
        if (!addr8(ps, &v))
            return false;
        break;
    case CPS_FK_IMM:
        if (!scalar(ps, r, &v4))
            return false;
        v = v4;
        break;
    case CPS_FK_STR:
        return string(ps, p, n);
    case CPS_FK_BYTES:
        return cps_cas_bytes(ps, p, n);
    case CPS_FK_TENSOR:
        return tensor(ps, f);
    case CPS_FK_DATA4D:
        if (!cps_cas_number_of(ps, 32, true, &v) || !dims(ps, r->arg, &ap))
            return false;
        ap.addr = (uint32_t)v;
        cps_isa_set_ap(&ps->b, f, &ap);
        return true;
    case CPS_FK_MXMEM:
        return mx(ps, p);
    }
    cps_isa_set(&ps->b, f, v);
    return true;
}
