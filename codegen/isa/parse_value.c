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
    bool reg = cps_cas_keyword(ps, "reg[");
    if (!cps_cas_number_of(ps, reg ? 8 : 32, false, &v))
        return false;
    *out = (uint32_t)v | (reg ? 0x80000000u : 0);
    return reg ? cps_cas_expect(ps, ']') : true;
}

static bool
addr8(cps_cas *ps, uint64_t *out)
{
    uint64_t a, b = 0;
    if (cps_cas_keyword(ps, "var[")) {
        if (!cps_cas_number_of(ps, 24, false, &a) ||
            (cps_cas_accept(ps, '+') && !cps_cas_number_of(ps, 32, false, &b)))
            return false;
        *out = 0x10ull << 56 | a << 32 | b;
        return cps_cas_expect(ps, ']');
    }
    if (cps_cas_keyword(ps, "reg[")) {
        if (!cps_cas_number_of(ps, 8, false, &a) || !cps_cas_expect(ps, ',') ||
            !cps_cas_number_of(ps, 8, false, &b))
            return false;
        *out = 0x80ull << 56 | b << 8 | a;
        return cps_cas_expect(ps, ']');
    }
    return cps_cas_number_of(ps, 64, false, out);
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

static bool
mx(cps_cas *ps, uint8_t *p)
{
    uint32_t data, scale;
    uint64_t k, sign, base;
    if (!addr4(ps, &data) || !cps_cas_expect(ps, '*') || !addr4(ps, &scale) ||
        !cps_cas_expect(ps, '[') || !cps_cas_number_of(ps, 16, false, &k) ||
        !cps_cas_expect(ps, ',') || !cps_cas_number_of(ps, 8, true, &sign) ||
        !cps_cas_expect(ps, ',') || !cps_cas_number_of(ps, 8, false, &base) ||
        !cps_cas_expect(ps, ']'))
        return false;
    store4(p, data);
    store4(p + 4, scale);
    p[8] = (uint8_t)k;
    p[9] = (uint8_t)(k >> 8);
    p[10] = (uint8_t)sign;
    p[11] = (uint8_t)base;
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
        if (real) {
            if (!cps_parse_double(from, (size_t)(end - from), &d))
                return cps_cas_fail(ps, CPS_E9203, from, end, "expected a number");
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
        if (!addr4(ps, &ap.addr) || !dims(ps, r->arg, &ap))
            return false;
        cps_isa_set_ap(&ps->b, f, &ap);
        return true;
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
