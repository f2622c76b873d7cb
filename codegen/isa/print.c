/* Bundles to .cas text (grammar in text.h).
 *
 * In: 64 bytes, any. Out: one line that parse.c turns into the same 64 bytes. A loop over the
 * rows of the format prints each field that differs from its default; a bit per byte remembers
 * what was covered, and the rest, if not zero, follows as raw[byte]= operands.
 *
 * Made for many bundles: a line goes straight into the output buffer, every function takes the
 * place to write to and returns the next one, labels are copied in one piece of fixed size from
 * their rows, fields are loaded as one word. No allocation a line, no printf. */
#include "codegen/isa/text.h"

#include "codegen/isa/sync_row.h"
#include "codegen/isa/text_f32.h"

#include <string.h>

enum {
    // Longest line: a byte of a field takes at most a label of 32 and a name of 24 characters,
    // 52 of them; the mnemonic, clauses and header fields less than 500.
    LINE_ROOM = 4096,
    WORD_PAD = 8, // fields are loaded as 8 bytes
    WIRES = 32    // dtype tags with a row are below
};

/* What one call prints with: the bundle in a padded copy, and the tags seen before. */
typedef struct printer {
    uint8_t b[CPS_BUNDLE_BYTES + WORD_PAD];
    cps_gen g;
    uint8_t dtype[WIRES]; // what cps_isa_dtype gave, plus 1
} printer;

static void
start(printer *pr, cps_gen g)
{
    pr->g = g;
    memset(pr->b + CPS_BUNDLE_BYTES, 0, WORD_PAD);
    memset(pr->dtype, 0, WIRES);
}

/* ---- characters and numbers ---- */

#define put stpcpy // a literal becomes a copy of known size

static const char hex_digit[] = "0123456789abcdef";

// Two digits each.
static const char pair[] = "00010203040506070809101112131415161718192021222324"
                           "25262728293031323334353637383940414243444546474849"
                           "50515253545556575859606162636465666768697071727374"
                           "75767778798081828384858687888990919293949596979899";

static char *
put_u(char *p, uint64_t v)
{
    char t[20];
    unsigned at = sizeof t;
    if (v < 10) {
        *p = (char)('0' + v);
        return p + 1;
    }
    if (v < 1000) {
        *p = (char)('0' + v / 100);
        p += v >= 100;
        memcpy(p, pair + 2 * (v % 100), 2);
        return p + 2;
    }
    for (; v >= 100; v /= 100)
        memcpy(t + (at -= 2), pair + 2 * (v % 100), 2);
    if (v >= 10)
        memcpy(t + (at -= 2), pair + 2 * v, 2);
    else
        t[--at] = (char)('0' + v);
    memcpy(p, t + at, sizeof t - at);
    return p + (sizeof t - at);
}

static char *
put_s(char *p, int64_t v)
{
    if (v >= 0)
        return put_u(p, (uint64_t)v);
    *p++ = '-';
    return put_u(p, 0 - (uint64_t)v);
}

static char *
put_hex(char *p, uint64_t v)
{
    unsigned n = (67 - (unsigned)__builtin_clzll(v | 1)) / 4;
    *p++ = '0';
    *p++ = 'x';
    for (unsigned i = n; i--; v >>= 4)
        p[i] = hex_digit[v & 15];
    return p + n;
}

static char *
put_bytes(char *p, const uint8_t *b, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        *p++ = hex_digit[b[i] >> 4];
        *p++ = hex_digit[b[i] & 15];
    }
    return p;
}

/* ---- values ---- */

// A float where its text gives the bits back, else hexadecimal.
static char *
put_f32(char *p, uint32_t bits)
{
    char *end = cps_text_f32(p, bits);
    return end ? end : put_hex(p, bits);
}

static char *
put_name(char *p, const char *name, uint64_t v)
{
    return name ? put(p, name) : put_hex(p, v);
}

static char *
put_dtype(printer *pr, char *p, unsigned wire)
{
    unsigned t =
        wire < WIRES && pr->dtype[wire] ? pr->dtype[wire] - 1u : (unsigned)cps_isa_dtype(wire);
    if (wire < WIRES)
        pr->dtype[wire] = (uint8_t)(t + 1);
    const char *name = t             ? cps_dtype_name((cps_dtype)t)
                       : wire > 0x10 ? cps_isa_value_name(CPS_ENUM_DTYPE, wire)
                                     : NULL;
    return put_name(p, name, wire);
}

static inline uint16_t
load2(const uint8_t *b)
{
    return (uint16_t)(b[0] | b[1] << 8);
}

static inline uint32_t
load4(const uint8_t *b)
{
    return load2(b) | (uint32_t)load2(b + 2) << 16;
}

static inline uint64_t
load8(const uint8_t *b)
{
    return load4(b) | (uint64_t)load4(b + 4) << 32;
}

static bool
is_zero(const uint8_t *b, unsigned n)
{
    while (n && b[n - 1] == 0)
        n--;
    return n == 0;
}

// After an opening like "var[": a number, an offset, the bracket.
static char *
put_named(char *p, uint32_t id, uint32_t offset)
{
    p = put_u(p, id);
    if (offset) {
        *p++ = '+';
        p = put_hex(p, offset);
    }
    *p++ = ']';
    return p;
}

static char *
put_on_chip(char *p, uint32_t a)
{
    if (a < CPS_PSUM_BASE)
        return put_named(put(p, "sbuf[p"), a / CPS_SBUF_STRIDE, a % CPS_SBUF_STRIDE);
    return put_named(put(p, "psum[p"), cps_addr_partition(a), cps_addr_byte(a));
}

static char *
put_addr4(char *p, uint32_t a)
{
    uint32_t at = a & CPS_ADDR_BITS, both = CPS_ADDR_INDEX | CPS_ADDR_SHAPE;
    bool reg = a & CPS_ADDR_REG;
    if ((a & both) == both || at >= (reg ? 256 : CPS_PSUM_END))
        return put_hex(p, a);
    if (a & both)
        p = put(p, a & CPS_ADDR_INDEX ? "index:" : "shape:");
    return reg ? put_named(put(p, "reg["), at, 0) : put_on_chip(p, at);
}

// The marker in byte 7 says what bytes 0 to 6 are; what fits no form is a number.
static char *
put_addr8(char *p, uint64_t a)
{
    unsigned m = (unsigned)(a >> 56), form = m & 0xBB;
    uint32_t low = (uint32_t)a, high = (uint32_t)(a >> 32) & 0xFFFFFF;
    bool regs = form == 0x80 && low < 0x10000 && !high;
    bool table = form == 0x20 && high < 0x10000;
    bool by_reg = form == 0x28 && high < 0x10000 && low < 256;
    if (m == 0x10)
        return put_named(put(p, "var["), high, low);
    if (!regs && !table && !by_reg && (m & 0xB8))
        return put_hex(p, a);
    if (m & 0x04)
        p = put(p, "wide:");
    if (m & 0x40)
        p = put(p, "shape:");
    if (regs) {
        p = put_u(put(p, "reg["), low & 0xFF);
        *p++ = ',';
        return put_named(p, low >> 8, 0);
    }
    if (table)
        return put_named(put(p, "table["), high, low);
    if (by_reg)
        return put_named(put(put_u(put(p, "table["), high), "+r"), low, 0);
    a &= 0x03FFFFFFFFFFFFFFull;
    return a < CPS_PSUM_END ? put_on_chip(p, (uint32_t)a) : put_hex(p, a);
}

// `most` steps, then as many counts; trailing idle ones are left out.
static char *
put_dims(char *p, const uint8_t *b, unsigned most, uint16_t idle)
{
    const uint8_t *step = b, *num = b + 2 * most;
    unsigned n = most;
    while (n > 1 && load2(step + 2 * (n - 1)) == idle && load2(num + 2 * (n - 1)) == 1)
        n--;
    *p = '[';
    for (unsigned i = 0; i < n; i++) {
        p = put_s(p + 1, (int16_t)load2(step + 2 * i));
        *p = ',';
    }
    p[0] = ']';
    p[1] = '[';
    p++;
    for (unsigned i = 0; i < n; i++) {
        p = put_u(p + 1, load2(num + 2 * i));
        *p = ',';
    }
    *p = ']';
    return p + 1;
}

// index->data[count] of a pattern in n bytes; NULL when it is not of that form.
static char *
put_indirect(char *p, const uint8_t *b, unsigned n)
{
    if (!cps_addr_is_indirect(load4(b)) || n < 12 || !is_zero(b + 10, n - 10))
        return NULL;
    p = put_addr4(put(put_addr4(p, load4(b)), "->"), load4(b + 4));
    *p++ = '[';
    return put_named(p, load2(b + 8), 0);
}

// data*scale[count,step,scale partition], and index->data*scale[count,scale partition].
static char *
put_mx(char *p, const uint8_t *b)
{
    bool indirect = cps_addr_is_indirect(load4(b));
    if (indirect) {
        p = put(put_addr4(p, load4(b)), "->");
        b += 4;
    }
    p = put_addr4(p, load4(b));
    *p++ = '*';
    p = put_addr4(p, load4(b + 4));
    *p++ = '[';
    p = put_u(p, load2(b + 8));
    *p++ = ',';
    if (!indirect) {
        p = put_s(p, (int8_t)b[10]);
        *p++ = ',';
    }
    p = put_u(p, b[11]);
    uint32_t rest = indirect ? b[10] : load4(b + 12); // reserved
    if (rest) {
        *p++ = ',';
        p = put_hex(p, rest);
    }
    *p++ = ']';
    return p;
}

// Masks of an enum joined by '|', those of several bits with their value.
static char *
put_flags(char *p, unsigned e, unsigned v)
{
    bool some = false;
    for (unsigned i = cps_enums[e].first; i < cps_enums[e + 1].first && v; i++) {
        unsigned mask = cps_enumvals[i].wire;
        if (!(v & mask))
            continue;
        if (some)
            *p++ = '|';
        p = put(p, cps_enumvals[i].name);
        if (mask & (mask - 1)) {
            *p++ = ':';
            p = put_u(p, (v & mask) / (mask & (0 - mask)));
        }
        v &= ~mask;
        some = true;
    }
    if (some && !v)
        return p;
    if (some)
        *p++ = '|';
    return put_hex(p, v);
}

static char *
put_str(char *p, const uint8_t *b, unsigned n)
{
    unsigned len = 0;
    while (len < n && b[len] >= ' ' && b[len] < 0x7F && b[len] != '"')
        len++;
    unsigned rest = len;
    while (rest < n && b[rest] == 0)
        rest++;
    if (rest != n)
        return put_bytes(put(p, "0x"), b, n);
    *p++ = '"';
    memcpy(p, b, len);
    p[len] = '"';
    return p + len + 1;
}

// The bits of a field of at most 64.
static inline uint64_t
bits_of(const printer *pr, const cps_field_row *r)
{
    return load8(pr->b + r->byte) & ~0ull >> (64 - r->bits);
}

static inline char *
put_number(char *p, uint64_t v, unsigned width, bool sign)
{
    return sign ? put_s(p, (int64_t)(v << (64 - width)) >> (64 - width)) : put_u(p, v);
}

static char *
put_numbers(const printer *pr, char *p, const cps_field_row *r)
{
    bool sign = r->kind == CPS_FK_SINT;
    if (r->arg <= 1)
        return put_number(p, bits_of(pr, r), r->bits, sign);
    unsigned n = r->arg, width = r->bits / n;
    uint64_t mask = ~0ull >> (64 - width);
    const uint8_t *b = pr->b + r->byte;
    while (n > 1 && (load8(b + (n - 1) * width / 8) & mask) == 0)
        n--;
    *p = '[';
    for (unsigned i = 0; i < n; i++) {
        p = put_number(p + 1, load8(b + i * width / 8) & mask, width, sign);
        *p = ',';
    }
    *p = ']';
    return p + 1;
}

// Where the scalar comes from: the wire values of IMM_SRC; IMM_SRC_N swaps the first two.
static unsigned
scalar_form(const printer *pr, const cps_field_row *r)
{
    if (!r->source)
        return CPS_IMM_SRC_INSTRUCTION_IMMEDIATE;
    const cps_field_row *source = &cps_fields[r->source];
    unsigned v = (unsigned)bits_of(pr, source);
    return source->arg == CPS_ENUM_IMM_SRC_N && v <= 1 ? 1 - v : v;
}

static char *
put_scalar(const printer *pr, char *p, const cps_field_row *r, uint32_t v, unsigned wire)
{
    unsigned form = scalar_form(pr, r), exp = v >> 23 & 0xFF;
    if (form == CPS_IMM_SRC_POINTER_IMMEDIATE) {
        p = put_hex(put(p, "ptr["), v);
        *p++ = ']';
        return p;
    }
    if (form == CPS_IMM_SRC_REG_PTR_IMMEDIATE) {
        p = put_u(put(p, "reg["), v);
        *p++ = ']';
        return p;
    }
    if (r->dtype && wire && !cps_dtype_is_float(cps_isa_dtype(wire)))
        return put_hex(p, v);
    if ((v & 0x7FFFFFFFu) == 0 || exp == 0xFF || (exp > 80 && exp < 174))
        return put_f32(p,
                       v); // magnitudes a program would write; small integers stay hexadecimal
    return put_hex(p, v);
}

/* ---- fields ---- */

static unsigned
dtype_of(const printer *pr, const cps_field_row *r)
{
    unsigned v = pr->b[cps_fields[r->dtype].byte];
    return r->part == CPS_PART_LOW ? v & 15 : r->part == CPS_PART_HIGH ? v >> 4 : v;
}

// Fields that another operand's text carries.
static bool
hidden(const printer *pr, const cps_field_row *r)
{
    if (!r->implied)
        return false;
    return r->kind != CPS_FK_ENUM || pr->b[r->byte] <= CPS_IMM_SRC_REG_PTR_IMMEDIATE;
}

// Whether the text needs the field: patterns and typed operands always, others off default.
static bool
needed(const printer *pr, const cps_field_row *r)
{
    if (r->dtype || r->kind == CPS_FK_TENSOR || r->kind == CPS_FK_DATA4D ||
        r->kind == CPS_FK_MXMEM)
        return true;
    if (r->source && bits_of(pr, &cps_fields[r->source]) != 0)
        return true;
    if (r->bits > 64)
        return !is_zero(pr->b + r->byte, r->bits / 8u);
    return bits_of(pr, r) != r->dflt;
}

static char *
put_value(printer *pr, char *p, const cps_field_row *r)
{
    const uint8_t *b = pr->b + r->byte;
    unsigned n = r->bits / 8u, wire = r->dtype ? dtype_of(pr, r) : 0;
    uint64_t v = r->bits <= 64 ? bits_of(pr, r) : 0;
    char *end;
    if (r->dtype && (wire || cps_fields[r->dtype].dflt)) {
        p = put_dtype(pr, p, wire);
        *p++ = '@';
    }
    switch ((cps_fkind)r->kind) {
    case CPS_FK_UINT:
    case CPS_FK_SINT:
        return put_numbers(pr, p, r);
    case CPS_FK_F32:
        return put_f32(p, (uint32_t)v);
    case CPS_FK_HEX:
        return put_hex(p, v);
    case CPS_FK_FLAGS:
        return put_flags(p, r->arg, (unsigned)v);
    case CPS_FK_DTYPE:
        return put_dtype(pr, p, (unsigned)v);
    case CPS_FK_PAIR:
        p = put_dtype(pr, p, (unsigned)v & 15);
        *p++ = '/';
        return put_dtype(pr, p, (unsigned)v >> 4);
    case CPS_FK_ALU:
        return put_name(p, cps_alu_name((unsigned)v), v);
    case CPS_FK_ENUM:
        return put_name(p, cps_isa_value_name((cps_isa_enum)r->arg, (unsigned)v), v);
    case CPS_FK_ACTFN:
        return put_name(p, cps_actfn_name((unsigned)v), v);
    case CPS_FK_ADDR4:
        return put_addr4(p, (uint32_t)v);
    case CPS_FK_ADDR8:
        return put_addr8(p, v);
    case CPS_FK_IMM:
        return put_scalar(pr, p, r, (uint32_t)v, wire);
    case CPS_FK_STR:
        return put_str(p, b, n);
    case CPS_FK_BYTES:
        while (n > 1 && b[n - 1] == 0)
            n--;
        return put_bytes(put(p, "0x"), b, n);
    case CPS_FK_TENSOR:
        end = put_indirect(p, b, n);
        return end ? end : put_dims(put_addr4(p, load4(b)), b + 4, r->arg, 1);
    case CPS_FK_DATA4D:
        return put_dims(put_s(p, (int32_t)load4(b)), b + 4, r->arg, 0);
    case CPS_FK_MXMEM:
        return put_mx(p, b);
    }
    return p;
}

static inline uint64_t
cover(const cps_field_row *r)
{
    unsigned n = r->bits / 8u;
    return (n == 64 ? ~0ull : (1ull << n) - 1) << r->byte;
}

static inline char *
put_operand(printer *pr, char *p, const cps_field_row *r)
{
    memcpy(p, r->label, CPS_LABEL);
    return put_value(pr, p + r->label_n, r);
}

static char *
put_header(printer *pr, char *p, const char *prefix, cps_field f)
{
    *p++ = ' ';
    p = put(put(p, prefix), cps_fields[f].name);
    *p++ = '=';
    return put_value(pr, p, &cps_fields[f]);
}

/* ---- sync ---- */

static char *
put_sync(char *p, const cps_sync_row *row, const char *word, unsigned idx, uint32_t value)
{
    *p++ = ' ';
    p = put_u(put(put(p, word), row->object == CPS_SYNC_SEM ? " S[" : " E["), idx);
    *p++ = ']';
    p = put(p, row->text);
    if (row->operand == CPS_SYNC_REGISTER)
        *p++ = 'r';
    if (row->operand != CPS_SYNC_NOTHING)
        p = put_u(p, value);
    if (row->when) {
        *p++ = '@';
        p = put(p, row->when);
    }
    return p;
}

// Clauses where the modes have one, operands for what is left.
static char *
put_band(printer *pr, char *p, const cps_sync_band *s, const char *prefix)
{
    unsigned wait_mode = pr->b[cps_fields[s->wait_mode].byte];
    unsigned update_mode = pr->b[cps_fields[s->update_mode].byte];
    unsigned wait_idx = pr->b[cps_fields[s->wait_idx].byte];
    unsigned update_idx = pr->b[cps_fields[s->update_idx].byte];
    uint32_t wait_value = (uint32_t)bits_of(pr, &cps_fields[s->wait_value]);
    uint32_t update_value = (uint32_t)bits_of(pr, &cps_fields[s->update_value]);
    const cps_sync_row *w = cps_wait_row(wait_mode), *u = cps_update_row(update_mode);
    bool wait = w && w->object != CPS_SYNC_OTHER, then = u && u->object != CPS_SYNC_OTHER;
    bool wait_uses = wait && w->operand != CPS_SYNC_NOTHING;
    bool then_uses = then && u->operand != CPS_SYNC_NOTHING;
    bool shared = s->wait_value == s->update_value;
    if (!wait && wait_mode)
        p = put_header(pr, p, prefix, s->wait_mode);
    if (!wait && wait_idx)
        p = put_header(pr, p, prefix, s->wait_idx);
    if (!then && update_mode)
        p = put_header(pr, p, prefix, s->update_mode);
    if (!then && update_idx)
        p = put_header(pr, p, prefix, s->update_idx);
    if (wait_value && !wait_uses && !(shared && then_uses))
        p = put_header(pr, p, prefix, s->wait_value);
    if (!shared && update_value && !then_uses)
        p = put_header(pr, p, prefix, s->update_value);
    if (wait)
        p = put_sync(p, w, s->wait, wait_idx, wait_value);
    if (then)
        p = put_sync(p, u, s->then, update_idx, update_value);
    return p;
}

/* ---- lines ---- */

static char *
put_instruction(printer *pr, char *p, cps_insn insn)
{
    unsigned fmt = cps_insns[insn].format;
    const cps_field_row *first = &cps_fields[cps_formats[fmt].first],
                        *end = &cps_fields[cps_formats[fmt + 1].first];
    const cps_sync_band *second = cps_sync_second(fmt); // its clauses are below
    uint64_t covered = 0xFFF;                           // header and sync band
    p = put(p, cps_insns[insn].name);
    for (const cps_field_row *r = first; r < end; r++)
        if (r->kind == CPS_FK_ACTFN && cps_actfn_name(pr->b[r->byte])) {
            *p++ = ' ';
            p = put_value(pr, p, r);
        }
    for (const cps_field_row *r = first; r < end; r++) {
        if (r->when && pr->b[cps_fields[r->when].byte] != r->when_is)
            continue;
        covered |= cover(r);
        if (needed(pr, r) && !hidden(pr, r) &&
            !(second && cps_sync_has(second, (cps_field)(r - cps_fields))) &&
            !(r->kind == CPS_FK_ACTFN && cps_actfn_name(pr->b[r->byte])))
            p = put_operand(pr, p, r);
    }
    if (pr->b[1] != cps_fields[CPS_F_HDR_inst_word_len].dflt)
        p = put_header(pr, p, "hdr.", CPS_F_HDR_inst_word_len);
    if (pr->b[2])
        p = put_header(pr, p, "hdr.", CPS_F_HDR_debug_cmd);
    if (pr->b[3])
        p = put_header(pr, p, "hdr.", CPS_F_HDR_debug_hint);
    for (uint64_t rest = ~covered; rest; rest &= rest - 1) {
        unsigned i = (unsigned)__builtin_ctzll(rest);
        if (pr->b[i])
            p = put_hex(put(put_u(put(p, " raw["), i), "]="), pr->b[i]);
    }
    if (load8(pr->b + 4))
        p = put_band(pr, p, &cps_sync_bands[0], "hdr.");
    if (second)
        p = put_band(pr, p, second, "");
    return p;
}

// Appends a line without its newline; whether the bundle is an instruction of the generation.
static bool
print(printer *pr, const cps_bundle *b, cps_buf *out)
{
    char *from = cps_buf_room(out, LINE_ROOM), *p = from;
    memcpy(pr->b, b->b, CPS_BUNDLE_BYTES);
    cps_insn insn = cps_isa_find(b->b[0], pr->g);
    bool known = insn != CPS_INSN_NONE;
    if (!known)
        insn = cps_isa_find_any(b->b[0]);
    if (insn)
        p = put_instruction(pr, p, insn);
    else
        p = put_bytes(put(p, ".bytes "), b->b, CPS_BUNDLE_BYTES);
    cps_assert(p - from <= LINE_ROOM - CPS_LABEL);
    out->n += (size_t)(p - from);
    return known;
}

void
cps_isa_print(const cps_bundle *b, cps_gen g, cps_buf *out)
{
    printer pr;
    start(&pr, g);
    print(&pr, b, out);
    out->data[out->n] = '\0';
}

void
cps_isa_print_sync(const cps_bundle *b, cps_gen g, cps_buf *out)
{
    if (!load8(b->b + 4))
        return;
    printer pr;
    start(&pr, g);
    memcpy(pr.b, b->b, CPS_BUNDLE_BYTES);
    char *from = cps_buf_room(out, LINE_ROOM), *p = put_band(&pr, from, &cps_sync_bands[0], "hdr.");
    out->n += (size_t)(p - from);
    out->data[out->n] = '\0';
}

size_t
cps_isa_print_lines(const cps_bundle *b, size_t n, cps_gen g, cps_buf *out)
{
    printer pr;
    size_t known = 0;
    start(&pr, g);
    for (size_t i = 0; i < n; i++) {
        known += print(&pr, &b[i], out);
        out->data[out->n++] = '\n'; // the room of a line is never full
    }
    if (n)
        out->data[out->n] = '\0';
    return known;
}
