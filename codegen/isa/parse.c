/* .cas text to bundles (grammar in text.h).
 *
 * In: a whole text. Out: one 64-byte bundle per instruction line, and diagnostics with the span of
 * the word at fault. A line starts from cps_isa_new and every operand overwrites its field, so
 * whatever is absent keeps its default. One pass over the text; mnemonics and names go through
 * small tables on the stack; nothing is allocated per line. */
#include "codegen/isa/text.h"

#include "codegen/isa/sync_row.h"

#include <string.h>

enum { MNEMONICS = 512, NAMES = 256 };

typedef struct name_slot {
    const char *s; // in the text
    uint32_t n;
    uint16_t kind;
    int16_t value;
} name_slot;

typedef struct parser {
    const char *text, *p, *end; // end: of the line, comment excluded
    cps_diags *d;
    uint32_t file;
    cps_gen g;
    cps_bundle b;
    unsigned fmt, next;  // format of the line; field to try first
    uint64_t given;      // fields of the format that an operand set, by position
    uint64_t implied[2]; // fields that the form of another operand set; [1]: the high half
    bool sync_given;     // the shared sync value was set by a clause
    uint32_t sync_value;
    uint16_t mnemonic[MNEMONICS];
    name_slot name[NAMES];
} parser;

/* ---- errors ---- */

static cps_span
span(const parser *ps, const char *from, const char *to)
{
    return (cps_span){ps->file, (uint32_t)(from - ps->text), (uint32_t)(to - ps->text)};
}

CPS_PRINTF(5, 6)
static bool
fail(parser *ps, cps_code code, const char *from, const char *to, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    cps_verror(ps->d, code, span(ps, from, to), fmt, ap);
    va_end(ap);
    return false;
}

/* ---- characters ---- */

static inline bool
blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

static inline bool
word_char(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
           c == '.';
}

static inline int
hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static void
skip_blanks(parser *ps)
{
    while (ps->p < ps->end && blank(*ps->p))
        ps->p++;
}

// The end of the run of word characters at s.
static const char *
word_end(const parser *ps, const char *s)
{
    while (s < ps->end && word_char(*s))
        s++;
    return s;
}

// The end of what stands up to the next blank, for messages.
static const char *
chunk_end(const parser *ps, const char *s)
{
    while (s < ps->end && !blank(*s))
        s++;
    return s;
}

static bool
accept(parser *ps, char c)
{
    if (ps->p < ps->end && *ps->p == c) {
        ps->p++;
        return true;
    }
    return false;
}

static bool
expect(parser *ps, char c)
{
    if (accept(ps, c))
        return true;
    return fail(ps, CPS_E9203, ps->p, ps->p + (ps->p < ps->end), "expected '%c' here", c);
}

/* ---- numbers ---- */

// Decimal or 0x at p, up to 64 bits; *neg when it had a minus sign.
static bool
number(parser *ps, uint64_t *out, bool *neg)
{
    const char *from = ps->p;
    uint64_t v = 0;
    *neg = accept(ps, '-');
    const char *digits = ps->p;
    if (ps->end - ps->p > 2 && ps->p[0] == '0' && (ps->p[1] | 0x20) == 'x') {
        ps->p += 2;
        digits = ps->p;
        for (int h; ps->p < ps->end && (h = hex_digit(*ps->p)) >= 0; ps->p++) {
            if (v >> 60)
                return fail(ps, CPS_E9204, from, chunk_end(ps, ps->p), "number beyond 64 bits");
            v = v << 4 | (unsigned)h;
        }
    } else {
        for (; ps->p < ps->end && *ps->p >= '0' && *ps->p <= '9'; ps->p++) {
            unsigned c = (unsigned)(*ps->p - '0');
            if (v > (UINT64_MAX - c) / 10)
                return fail(ps, CPS_E9204, from, chunk_end(ps, ps->p), "number beyond 64 bits");
            v = v * 10 + c;
        }
    }
    if (ps->p == digits || (ps->p < ps->end && word_char(*ps->p)))
        return fail(ps, CPS_E9203, from, CPS_MAX(chunk_end(ps, from), from + (from < ps->end)),
                    "expected a number");
    *out = v;
    return true;
}

// An unsigned number of at most `bits` bits; with `sign`, two's complement from a minus sign.
static bool
number_of(parser *ps, unsigned bits, bool sign, uint64_t *out)
{
    const char *from = ps->p;
    bool neg;
    uint64_t v, max = bits >= 64 ? UINT64_MAX : (1ull << bits) - 1;
    if (!number(ps, &v, &neg))
        return false;
    if (neg && (!sign || v > (max >> 1) + 1))
        return fail(ps, CPS_E9204, from, ps->p, "%s",
                    sign ? "number below the field's range" : "the field takes no negative number");
    if (!neg && v > (sign ? max >> 1 : max))
        return fail(ps, CPS_E9204, from, ps->p, "number does not fit %u %sbits", bits,
                    sign ? "signed " : "");
    *out = neg ? (0 - v) & max : v;
    return true;
}

// A run of hex digits, two a byte, into at most n bytes; the rest stays 0.
static bool
bytes(parser *ps, uint8_t *out, unsigned n)
{
    const char *from = ps->p;
    unsigned i = 0;
    if (ps->end - ps->p < 2 || ps->p[0] != '0' || ps->p[1] != 'x')
        return fail(ps, CPS_E9203, from, chunk_end(ps, from), "expected bytes: 0x and hex digits");
    memset(out, 0, n);
    for (ps->p += 2; ps->p < ps->end && hex_digit(*ps->p) >= 0; i++) {
        int hi = hex_digit(ps->p[0]), lo = ps->p + 1 < ps->end ? hex_digit(ps->p[1]) : -1;
        if (lo < 0)
            return fail(ps, CPS_E9203, from, chunk_end(ps, ps->p), "odd number of hex digits");
        if (i >= n)
            return fail(ps, CPS_E9204, from, chunk_end(ps, ps->p), "more than %u bytes", n);
        out[i] = (uint8_t)(hi << 4 | lo);
        ps->p += 2;
    }
    return i ? true : fail(ps, CPS_E9203, from, ps->p, "expected hex digits");
}

/* ---- names ---- */

static uint32_t
hash(const char *s, size_t n)
{
    uint32_t h = 2166136261u;
    for (size_t i = 0; i < n; i++)
        h = (h ^ (uint8_t)s[i]) * 16777619u;
    return h ^ h >> 15;
}

static void
fill_mnemonics(parser *ps)
{
    _Static_assert(CPS_INSNS < MNEMONICS / 2, "the table of mnemonics is at most half full");
    for (unsigned i = 1; i < CPS_INSNS; i++) {
        uint32_t h = hash(cps_insns[i].name, strlen(cps_insns[i].name));
        while (ps->mnemonic[h % MNEMONICS])
            h++;
        ps->mnemonic[h % MNEMONICS] = (uint16_t)i;
    }
}

static bool
same(const char *s, size_t n, const char *name)
{
    return strncmp(name, s, n) == 0 && name[n] == '\0';
}

static cps_insn
find_mnemonic(const parser *ps, const char *s, size_t n)
{
    for (uint32_t h = hash(s, n); ps->mnemonic[h % MNEMONICS]; h++)
        if (same(s, n, cps_insns[ps->mnemonic[h % MNEMONICS]].name))
            return (cps_insn)ps->mnemonic[h % MNEMONICS];
    char upper[64];
    if (n >= sizeof upper)
        return CPS_INSN_NONE;
    memcpy(upper, s, n);
    upper[n] = '\0';
    return cps_isa_find_name(upper);
}

// The wire value of a name of some kind, -1 when there is none.
static int
look_up(unsigned kind, unsigned arg, const char *s, size_t n)
{
    char word[64];
    if (n == 0 || n >= sizeof word)
        return -1;
    memcpy(word, s, n);
    word[n] = '\0';
    switch (kind) {
    case CPS_FK_DTYPE: {
        cps_dtype t = cps_dtype_parse(word, n);
        return t ? cps_dtypes[t].wire : -1;
    }
    case CPS_FK_ALU:
        return cps_alu_parse(word);
    case CPS_FK_ACTFN:
        return cps_actfn_parse(word);
    default:
        return cps_isa_value_parse((cps_isa_enum)arg, word, n);
    }
}

// The same with a memory of the names seen last: programs repeat few of them.
static int
name_value(parser *ps, unsigned kind, unsigned arg, const char *s, size_t n)
{
    unsigned key = kind == CPS_FK_ENUM ? 256 + arg : kind;
    name_slot *slot = &ps->name[(hash(s, n) + key) % NAMES];
    if (slot->s && slot->kind == key && slot->n == n && memcmp(slot->s, s, n) == 0)
        return slot->value;
    int v = look_up(kind, arg, s, n);
    if (v >= 0)
        *slot = (name_slot){s, (uint32_t)n, (uint16_t)key, (int16_t)v};
    return v;
}

static const char *
kind_word(unsigned kind)
{
    return kind == CPS_FK_DTYPE   ? "dtype"
           : kind == CPS_FK_ALU   ? "ALU operator"
           : kind == CPS_FK_ACTFN ? "activation function"
                                  : "value";
}

// A name of the kind, or a number below `limit`.
static bool
named(parser *ps, unsigned kind, unsigned arg, unsigned limit, unsigned *out)
{
    const char *from = ps->p, *end = word_end(ps, from);
    if (from < end && *from >= '0' && *from <= '9') {
        uint64_t v;
        bool neg;
        if (!number(ps, &v, &neg))
            return false;
        if (v >= limit)
            return fail(ps, CPS_E9204, from, ps->p, "at most 0x%x fits here", limit - 1);
        *out = (unsigned)v;
        return true;
    }
    int v = name_value(ps, kind, arg, from, (size_t)(end - from));
    if (v < 0 || (unsigned)v >= limit) {
        fail(ps, CPS_E9203, from, CPS_MAX(end, from + (from < ps->end)), "no %s '%.*s'",
             kind_word(kind), (int)(end - from), from);
        if (kind == CPS_FK_ENUM)
            for (unsigned i = cps_enums[arg].first; i < cps_enums[arg + 1].first; i++)
                cps_help(ps->d, "%s", cps_enumvals[i].name);
        return false;
    }
    ps->p = end;
    *out = (unsigned)v;
    return true;
}

/* ---- addresses and patterns ---- */

static bool
keyword(parser *ps, const char *word)
{
    size_t n = strlen(word);
    if ((size_t)(ps->end - ps->p) < n || memcmp(ps->p, word, n) != 0)
        return false;
    ps->p += n;
    return true;
}

// [pN] or [pN+0xB] of a space with its stride and number of partitions.
static bool
place(parser *ps, uint32_t base, uint32_t stride, uint32_t *out)
{
    uint64_t partition, byte = 0;
    if (!expect(ps, 'p'))
        return false;
    const char *from = ps->p;
    if (!number_of(ps, 32, false, &partition))
        return false;
    if (partition > 127)
        return fail(ps, CPS_E9204, from, ps->p, "partitions are 0 to 127");
    if (accept(ps, '+')) {
        from = ps->p;
        if (!number_of(ps, 32, false, &byte))
            return false;
        if (byte >= stride)
            return fail(ps, CPS_E9204, from, ps->p, "a partition has addresses below 0x%x", stride);
    }
    *out = base + (uint32_t)partition * stride + (uint32_t)byte;
    return expect(ps, ']');
}

static bool
addr4(parser *ps, uint32_t *out)
{
    uint64_t v;
    if (keyword(ps, "sbuf["))
        return place(ps, 0, CPS_SBUF_STRIDE, out);
    if (keyword(ps, "psum["))
        return place(ps, CPS_PSUM_BASE, CPS_PSUM_STRIDE, out);
    bool reg = keyword(ps, "reg[");
    if (!number_of(ps, reg ? 8 : 32, false, &v))
        return false;
    *out = (uint32_t)v | (reg ? 0x80000000u : 0);
    return reg ? expect(ps, ']') : true;
}

static bool
addr8(parser *ps, uint64_t *out)
{
    uint64_t a, b = 0;
    if (keyword(ps, "var[")) {
        if (!number_of(ps, 24, false, &a) || (accept(ps, '+') && !number_of(ps, 32, false, &b)))
            return false;
        *out = 0x10ull << 56 | a << 32 | b;
        return expect(ps, ']');
    }
    if (keyword(ps, "reg[")) {
        if (!number_of(ps, 8, false, &a) || !expect(ps, ',') || !number_of(ps, 8, false, &b))
            return false;
        *out = 0x80ull << 56 | b << 8 | a;
        return expect(ps, ']');
    }
    return number_of(ps, 64, false, out);
}

// [step,..][num,..] with as many of each, at most `most`.
static bool
dims(parser *ps, unsigned most, cps_ap *ap)
{
    const char *from = ps->p;
    uint64_t v;
    unsigned steps = 0, nums = 0;
    if (!expect(ps, '['))
        return false;
    do {
        if (steps == most)
            return fail(ps, CPS_E9204, from, chunk_end(ps, ps->p), "at most %u dimensions here",
                        most);
        if (!number_of(ps, 16, true, &v))
            return false;
        ap->step[steps++] = (int16_t)v;
    } while (accept(ps, ','));
    if (!expect(ps, ']') || !expect(ps, '['))
        return false;
    do {
        if (nums == steps)
            return fail(ps, CPS_E9204, from, chunk_end(ps, ps->p), "more counts than steps");
        if (!number_of(ps, 16, false, &v))
            return false;
        ap->num[nums++] = (uint16_t)v;
    } while (accept(ps, ','));
    if (!expect(ps, ']'))
        return false;
    if (nums != steps)
        return fail(ps, CPS_E9204, from, ps->p, "%u steps but %u counts", steps, nums);
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
mx(parser *ps, uint8_t *p)
{
    uint32_t data, scale;
    uint64_t k, sign, base;
    if (!addr4(ps, &data) || !expect(ps, '*') || !addr4(ps, &scale) || !expect(ps, '[') ||
        !number_of(ps, 16, false, &k) || !expect(ps, ',') || !number_of(ps, 8, true, &sign) ||
        !expect(ps, ',') || !number_of(ps, 8, false, &base) || !expect(ps, ']'))
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

static uint64_t
bit_of(const parser *ps, cps_field f)
{
    return 1ull << ((unsigned)f - cps_formats[ps->fmt].first);
}

// A value that an operand's form implies for another field: an operand of its own wins, and two
// implied ones must agree.
static bool
imply(parser *ps, cps_field f, unsigned mask, unsigned v, const char *from)
{
    const cps_field_row *r = &cps_fields[f];
    uint8_t *at = &ps->b.b[r->byte];
    if (ps->given & bit_of(ps, f))
        return true;
    unsigned old = *at & mask;
    uint64_t *seen = &ps->implied[mask == 0xF0];
    if ((*seen & bit_of(ps, f)) && old != v)
        return fail(ps, CPS_E9205, from, chunk_end(ps, from),
                    "'%s' would get two values: it serves several operands", r->name);
    *seen |= bit_of(ps, f);
    *at = (uint8_t)((*at & ~mask) | v);
    return true;
}

static bool
scalar(parser *ps, const cps_field_row *r, uint32_t *out)
{
    const char *from = ps->p;
    unsigned form = CPS_IMM_SRC_INSTRUCTION_IMMEDIATE;
    uint64_t v = 0;
    bool neg;
    if (keyword(ps, "ptr["))
        form = CPS_IMM_SRC_POINTER_IMMEDIATE;
    else if (keyword(ps, "reg["))
        form = CPS_IMM_SRC_REG_PTR_IMMEDIATE;
    if (form != CPS_IMM_SRC_INSTRUCTION_IMMEDIATE) {
        if (!r->source)
            return fail(ps, CPS_E9203, from, ps->p, "'%s' takes a number only", r->name);
        if (!number_of(ps, 32, false, &v) || !expect(ps, ']'))
            return false;
    } else {
        const char *end = chunk_end(ps, from);
        bool hex = end - from > 2 && from[0] == '0' && (from[1] | 0x20) == 'x';
        bool real = false;
        for (const char *s = from; s < end && !hex; s++)
            real = real || *s == '.' || *s == 'e' || *s == 'n'; // 0.5, 1e9, inf, nan
        double d;
        if (real) {
            if (!cps_parse_double(from, (size_t)(end - from), &d))
                return fail(ps, CPS_E9203, from, end, "expected a number");
            v = cps_f32_bits((float)d);
            ps->p = end;
        } else if (!number(ps, &v, &neg)) {
            return false;
        } else if (v > (neg ? 0x80000000u : 0xFFFFFFFFu)) {
            return fail(ps, CPS_E9204, from, ps->p, "number does not fit 32 bits");
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
string(parser *ps, uint8_t *out, unsigned n)
{
    const char *from = ps->p;
    if (!accept(ps, '"'))
        return bytes(ps, out, n);
    const char *end = memchr(ps->p, '"', (size_t)(ps->end - ps->p));
    if (!end)
        return fail(ps, CPS_E9203, from, ps->end, "text without its closing quote");
    size_t len = (size_t)(end - ps->p);
    if (len > n)
        return fail(ps, CPS_E9204, from, end + 1, "at most %u characters fit here", n);
    memset(out, 0, n);
    memcpy(out, ps->p, len);
    ps->p = end + 1;
    return true;
}

static bool
numbers(parser *ps, cps_field f)
{
    const cps_field_row *r = &cps_fields[f];
    unsigned n = r->arg > 1 ? r->arg : 1, width = r->bits / n, i = 0;
    uint64_t v;
    if (n == 1) {
        if (!number_of(ps, width, r->kind == CPS_FK_SINT, &v))
            return false;
        cps_isa_set_elem(&ps->b, f, 0, v);
        return true;
    }
    const char *from = ps->p;
    memset(ps->b.b + r->byte, 0, r->bits / 8u);
    if (!expect(ps, '['))
        return false;
    do {
        if (i == n)
            return fail(ps, CPS_E9204, from, chunk_end(ps, ps->p), "at most %u numbers here", n);
        if (!number_of(ps, width, r->kind == CPS_FK_SINT, &v))
            return false;
        cps_isa_set_elem(&ps->b, f, i++, v);
    } while (accept(ps, ','));
    return expect(ps, ']');
}

static bool
f32(parser *ps, uint64_t *out)
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
prefix(parser *ps, const cps_field_row *r)
{
    const char *from = ps->p, *end = word_end(ps, from);
    if (end == ps->end || *end != '@')
        return true;
    unsigned v, limit = r->part == CPS_PART_WHOLE ? 256 : 16;
    if (!named(ps, CPS_FK_DTYPE, 0, limit, &v))
        return false;
    ps->p = end + 1;
    unsigned mask = r->part == CPS_PART_WHOLE ? 0xFF : r->part == CPS_PART_LOW ? 0x0F : 0xF0;
    return imply(ps, (cps_field)r->dtype, mask, r->part == CPS_PART_HIGH ? v << 4 : v, from);
}

static bool
value(parser *ps, cps_field f)
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
        if (!number_of(ps, r->bits, false, &v))
            return false;
        break;
    case CPS_FK_PAIR:
        if (!named(ps, CPS_FK_DTYPE, 0, 16, &a) || !expect(ps, '/') ||
            !named(ps, CPS_FK_DTYPE, 0, 16, &b))
            return false;
        v = a | b << 4;
        break;
    case CPS_FK_DTYPE:
    case CPS_FK_ALU:
    case CPS_FK_ENUM:
    case CPS_FK_ACTFN:
        if (!named(ps, r->kind, r->arg, 256, &a))
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
        return bytes(ps, p, n);
    case CPS_FK_TENSOR:
        if (!addr4(ps, &ap.addr) || !dims(ps, r->arg, &ap))
            return false;
        cps_isa_set_ap(&ps->b, f, &ap);
        return true;
    case CPS_FK_DATA4D:
        if (!number_of(ps, 32, true, &v) || !dims(ps, r->arg, &ap))
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

// A field of the format by name, tried from where the last one stood: text keeps table order.
static cps_field
find_field(parser *ps, unsigned fmt, const char *s, size_t n)
{
    unsigned first = cps_formats[fmt].first, end = cps_formats[fmt + 1].first;
    unsigned start = ps->next >= first && ps->next < end ? ps->next : first;
    for (unsigned i = 0, count = end - first; i < count; i++) {
        unsigned f = start + i < end ? start + i : start + i - count;
        if (same(s, n, cps_fields[f].name)) {
            ps->next = f + 1;
            return (cps_field)f;
        }
    }
    return CPS_F_NONE;
}

static bool
unknown_operand(parser *ps, const char *s, const char *end)
{
    char word[64];
    const char *best = NULL;
    int closest = 4;
    fail(ps, CPS_E9202, s, end, "'%.*s' is no operand of this instruction", (int)(end - s), s);
    if ((size_t)(end - s) >= sizeof word)
        return false;
    memcpy(word, s, (size_t)(end - s));
    word[end - s] = '\0';
    for (unsigned f = cps_formats[ps->fmt].first; f < cps_formats[ps->fmt + 1].first; f++) {
        int dist = cps_edit_distance(word, cps_fields[f].name);
        if (dist < closest) {
            closest = dist;
            best = cps_fields[f].name;
        }
    }
    if (best)
        cps_help(ps->d, "did you mean '%s'?", best);
    return false;
}

// raw[byte]=0x..: a byte that no field of the format covers.
static bool
raw(parser *ps, const char *from)
{
    uint64_t at, v;
    if (!number_of(ps, 8, false, &at) || !expect(ps, ']') || !expect(ps, '=') ||
        !number_of(ps, 8, false, &v))
        return false;
    if (at < 12 || at >= CPS_BUNDLE_BYTES)
        return fail(ps, CPS_E9204, from, ps->p, "raw bytes are 12 to 63");
    ps->b.b[at] = (uint8_t)v;
    return true;
}

static bool
operand(parser *ps)
{
    const char *from = ps->p;
    if (keyword(ps, "raw["))
        return raw(ps, from);
    const char *end = word_end(ps, from);
    if (end == ps->end || *end != '=') {
        // A bare word: the function of an activation.
        for (unsigned f = cps_formats[ps->fmt].first; f < cps_formats[ps->fmt + 1].first; f++)
            if (cps_fields[f].kind == CPS_FK_ACTFN)
                return value(ps, (cps_field)f);
        return fail(ps, CPS_E9203, from, CPS_MAX(chunk_end(ps, from), from + 1),
                    "expected field=value");
    }
    bool header = end - from > 4 && memcmp(from, "hdr.", 4) == 0;
    cps_field f;
    if (header) {
        f = find_field(ps, CPS_FMT_HDR, from + 4, (size_t)(end - from) - 4);
        if (!f)
            f = find_field(ps, CPS_FMT_EVENTS, from + 4, (size_t)(end - from) - 4);
        if (f == CPS_F_HDR_opcode)
            f = CPS_F_NONE; // the mnemonic says it
    } else {
        f = find_field(ps, ps->fmt, from, (size_t)(end - from));
    }
    if (!f)
        return unknown_operand(ps, from, end);
    if (!header) {
        if (ps->given & bit_of(ps, f))
            return fail(ps, CPS_E9206, from, end, "'%s' is given twice", cps_fields[f].name);
        ps->given |= bit_of(ps, f);
    }
    ps->p = end + 1;
    return value(ps, f);
}

/* ---- wait and then ---- */

static bool
clause(parser *ps, const cps_sync_band *band, bool wait)
{
    skip_blanks(ps);
    const char *from = ps->p;
    bool sem = keyword(ps, "S["), evt = !sem && keyword(ps, "E[");
    uint64_t idx, v = 0;
    if (!sem && !evt)
        return fail(ps, CPS_E9203, from, chunk_end(ps, from), "expected S[n] or E[n]");
    if (!number_of(ps, 8, false, &idx) || !expect(ps, ']'))
        return false;
    const char *op = ps->p;
    while (ps->p < ps->end && strchr("=<>+-", *ps->p))
        ps->p++;
    size_t op_n = (size_t)(ps->p - op);
    unsigned holds = CPS_SYNC_NOTHING;
    if (ps->p < ps->end && *ps->p == 'r') {
        ps->p++;
        holds = CPS_SYNC_REGISTER;
    } else if (ps->p < ps->end && *ps->p >= '0' && *ps->p <= '9') {
        holds = CPS_SYNC_NUMBER;
        if (evt && op_n == 2 && op[0] == '=') {
            holds = CPS_SYNC_NOTHING; // E[n]==0 is one sign
            op_n += *ps->p++ == '0';
        }
    }
    if (holds != CPS_SYNC_NOTHING && !number_of(ps, 32, false, &v))
        return false;
    const char *when = NULL, *when_end = NULL;
    if (!wait) {
        if (!expect(ps, '@'))
            return false;
        when = ps->p;
        when_end = ps->p = word_end(ps, when);
    }
    const cps_sync_row *row = wait ? cps_waits : cps_updates, *hit = NULL;
    for (unsigned i = 0, n = wait ? cps_wait_count : cps_update_count; i < n; i++, row++)
        if (row->object == (sem ? CPS_SYNC_SEM : CPS_SYNC_EVT) && row->operand == holds &&
            same(op, op_n, row->text) &&
            (wait || same(when, (size_t)(when_end - when), row->when))) {
            hit = row;
            break;
        }
    if (!hit)
        return fail(ps, CPS_E9203, from, ps->p, "no such %s", wait ? "wait" : "update");
    ps->b.b[cps_fields[wait ? band->wait_mode : band->update_mode].byte] = hit->wire;
    ps->b.b[cps_fields[wait ? band->wait_idx : band->update_idx].byte] = (uint8_t)idx;
    if (hit->operand == CPS_SYNC_NOTHING)
        return true;
    if (band->wait_value == band->update_value) {
        if (ps->sync_given && ps->sync_value != v)
            return fail(ps, CPS_E9205, from, ps->p,
                        "wait and update share one value, and it would be %u and %u",
                        ps->sync_value, (unsigned)v);
        ps->sync_given = true;
        ps->sync_value = (uint32_t)v;
    }
    cps_isa_set(&ps->b, wait ? band->wait_value : band->update_value, v);
    return true;
}

/* ---- lines ---- */

static bool
bytes_line(parser *ps)
{
    const char *from = ps->p;
    for (unsigned i = 0; i < CPS_BUNDLE_BYTES; i++) {
        int hi = ps->end - ps->p >= 2 ? hex_digit(ps->p[0]) : -1;
        int lo = hi >= 0 ? hex_digit(ps->p[1]) : -1;
        if (lo < 0)
            return fail(ps, CPS_E9207, from, CPS_MAX(chunk_end(ps, from), from + (from < ps->end)),
                        ".bytes takes 128 hex digits");
        ps->b.b[i] = (uint8_t)(hi << 4 | lo);
        ps->p += 2;
    }
    skip_blanks(ps);
    return ps->p == ps->end ||
           fail(ps, CPS_E9207, ps->p, chunk_end(ps, ps->p), ".bytes takes 128 hex digits");
}

static bool
unknown_mnemonic(parser *ps, const char *s, const char *end)
{
    char word[64];
    const char *best = NULL;
    int closest = 4;
    fail(ps, CPS_E9201, s, end, "no instruction '%.*s'", (int)(end - s), s);
    if ((size_t)(end - s) >= sizeof word)
        return false;
    for (size_t i = 0; s + i < end; i++)
        word[i] = (char)(s[i] >= 'a' && s[i] <= 'z' ? s[i] - 32 : s[i]);
    word[end - s] = '\0';
    for (unsigned i = 1; i < CPS_INSNS; i++) {
        int dist = cps_edit_distance(word, cps_insns[i].name);
        if (dist < closest) {
            closest = dist;
            best = cps_insns[i].name;
        }
    }
    if (best)
        cps_help(ps->d, "did you mean '%s'?", best);
    return false;
}

static bool
instruction(parser *ps)
{
    const char *from = ps->p, *end = word_end(ps, from);
    if (keyword(ps, ".bytes")) {
        skip_blanks(ps);
        return bytes_line(ps);
    }
    cps_insn insn = find_mnemonic(ps, from, (size_t)(end - from));
    if (!insn)
        return unknown_mnemonic(ps, from, CPS_MAX(end, from + 1));
    ps->b = cps_isa_new(insn, ps->g);
    ps->fmt = cps_insns[insn].format;
    ps->next = cps_formats[ps->fmt].first;
    ps->given = ps->implied[0] = ps->implied[1] = 0;
    ps->sync_given = false;
    ps->p = end;
    for (;;) {
        if (ps->p < ps->end && !blank(*ps->p))
            return fail(ps, CPS_E9203, ps->p, chunk_end(ps, ps->p), "expected a blank here");
        skip_blanks(ps);
        if (ps->p == ps->end)
            return true;
        const char *word = ps->p, *stop = word_end(ps, word);
        bool ok = false, found = false;
        if (stop < ps->end && blank(*stop))
            for (unsigned i = 0; i < 2 && !found; i++) {
                const cps_sync_band *band = &cps_sync_bands[i];
                bool wait = same(word, (size_t)(stop - word), band->wait);
                if (!wait && !same(word, (size_t)(stop - word), band->then))
                    continue;
                if (i == 1 && ps->fmt != CPS_FMT_CTRL_ES)
                    return fail(ps, CPS_E9203, word, stop, "only EVENT_SEMAPHORE has a second band");
                ps->p = stop;
                ok = clause(ps, band, wait);
                found = true;
            }
        if (!found)
            ok = operand(ps);
        if (!ok)
            return false;
    }
}

// The end of a line's content: the newline, or "//" outside quotes after a blank or at the start.
static const char *
content_end(const char *s, const char *stop)
{
    const char *nl = memchr(s, '\n', (size_t)(stop - s));
    if (nl)
        stop = nl;
    if (!memchr(s, '/', (size_t)(stop - s)))
        return stop;
    bool quoted = false;
    for (const char *p = s; p < stop; p++) {
        if (*p == '"')
            quoted = !quoted;
        else if (!quoted && *p == '/' && p + 1 < stop && p[1] == '/' && (p == s || blank(p[-1])))
            return p;
    }
    return stop;
}

bool
cps_isa_parse(const char *text, size_t n, uint32_t file, cps_gen g, cps_diags *d, cps_buf *bundles)
{
    parser ps = {.text = text, .d = d, .file = file, .g = g};
    if (n >= UINT32_MAX) {
        cps_error(d, CPS_E9208, CPS_NOSPAN, "text of %zu bytes, at most 4 GiB are read", n);
        return false;
    }
    fill_mnemonics(&ps);
    bool good = true;
    for (const char *s = text, *stop = text + n; s < stop;) {
        const char *nl = memchr(s, '\n', (size_t)(stop - s));
        ps.p = s;
        ps.end = content_end(s, stop);
        s = nl ? nl + 1 : stop;
        while (ps.end > ps.p && blank(ps.end[-1]))
            ps.end--;
        skip_blanks(&ps);
        if (ps.p == ps.end)
            continue;
        if (instruction(&ps))
            cps_buf_put(bundles, ps.b.b, CPS_BUNDLE_BYTES);
        else
            good = false;
    }
    return good;
}
