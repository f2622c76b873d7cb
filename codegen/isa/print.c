/* Bundles to .cas text (grammar in text.h).
 *
 * In: 64 bytes, any. Out: one line that parse.c turns into the same 64 bytes. A loop over the
 * rows of the format prints each field that differs from its default; a bit per byte remembers
 * what was covered, and the rest, if not zero, follows as raw[byte]= operands. The line is
 * built in a local buffer: no allocation, no printf. */
#include "codegen/isa/text.h"

#include "codegen/isa/sync_row.h"
#include "codegen/isa/text_f32.h"

#include <string.h>

// Longest line: every byte as a raw operand (15 characters each), or about 30 operands with a
// name and a value of at most 120 characters (52 bytes in hex).
enum { LINE_MAX_BYTES = 6144 };

typedef struct line {
    char text[LINE_MAX_BYTES];
    char *p;
} line;

/* ---- characters ---- */

static inline void
put(line *l, const char *s)
{
    size_t n = strlen(s);
    memcpy(l->p, s, n);
    l->p += n;
}

static inline void
put_c(line *l, char c)
{
    *l->p++ = c;
}

static void
put_u(line *l, uint64_t v)
{
    char t[20];
    unsigned n = 0;
    do {
        t[n++] = (char)('0' + v % 10);
        v /= 10;
    } while (v);
    while (n)
        *l->p++ = t[--n];
}

static void
put_s(line *l, int64_t v)
{
    if (v < 0)
        put_c(l, '-');
    put_u(l, v < 0 ? 0 - (uint64_t)v : (uint64_t)v);
}

static void
put_hex(line *l, uint64_t v)
{
    unsigned n = 1;
    while (n < 16 && v >> (4 * n))
        n++;
    put(l, "0x");
    while (n--)
        put_c(l, "0123456789abcdef"[(v >> (4 * n)) & 15]);
}

static void
put_bytes(line *l, const uint8_t *b, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        put_c(l, "0123456789abcdef"[b[i] >> 4]);
        put_c(l, "0123456789abcdef"[b[i] & 15]);
    }
}

/* ---- values ---- */

static bool
is_zero(const uint8_t *p, unsigned n)
{
    while (n && p[n - 1] == 0)
        n--;
    return n == 0;
}

// A float where its text gives the bits back, else hexadecimal.
static void
put_f32(line *l, uint32_t bits)
{
    char *end = cps_text_f32(l->p, bits);
    if (end)
        l->p = end;
    else
        put_hex(l, bits);
}

static void
put_name(line *l, const char *name, uint64_t v)
{
    if (name)
        put(l, name);
    else
        put_hex(l, v);
}

static void
put_dtype(line *l, unsigned wire)
{
    cps_dtype t = cps_isa_dtype(wire);
    put_name(l, t ? cps_dtype_name(t) : NULL, wire);
}

static void
put_place(line *l, const char *space, unsigned partition, unsigned byte)
{
    put(l, space);
    put(l, "[p");
    put_u(l, partition);
    if (byte) {
        put_c(l, '+');
        put_hex(l, byte);
    }
    put_c(l, ']');
}

static void
put_on_chip(line *l, uint32_t a)
{
    if (a < CPS_PSUM_BASE)
        put_place(l, "sbuf", a / CPS_SBUF_STRIDE, a % CPS_SBUF_STRIDE);
    else
        put_place(l, "psum", cps_addr_partition(a), cps_addr_byte(a));
}

static void
put_addr4(line *l, uint32_t a)
{
    uint32_t at = a & CPS_ADDR_BITS, both = CPS_ADDR_INDEX | CPS_ADDR_SHAPE;
    bool reg = a & CPS_ADDR_REG;
    if ((a & both) == both || at >= (reg ? 256 : CPS_PSUM_END)) {
        put_hex(l, a);
        return;
    }
    if (a & both)
        put(l, a & CPS_ADDR_INDEX ? "index:" : "shape:");
    if (!reg) {
        put_on_chip(l, at);
        return;
    }
    put(l, "reg[");
    put_u(l, at);
    put_c(l, ']');
}

static uint32_t
load4(const uint8_t *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

// A name with a number and an offset: var[7+0x40].
static void
put_named(line *l, const char *name, uint32_t id, uint32_t offset)
{
    put(l, name);
    put_u(l, id);
    if (offset) {
        put_c(l, '+');
        put_hex(l, offset);
    }
    put_c(l, ']');
}

// The marker in byte 7 says what bytes 0 to 6 are; what fits no form is a number.
static void
put_addr8(line *l, uint64_t a)
{
    unsigned m = (unsigned)(a >> 56), form = m & 0xBB;
    uint32_t low = (uint32_t)a, high = (uint32_t)(a >> 32) & 0xFFFFFF;
    bool pair = form == 0x80 && low < 0x10000 && !high;
    bool table = form == 0x20 && high < 0x10000;
    bool by_reg = form == 0x28 && high < 0x10000 && low < 256;
    if (m == 0x10) {
        put_named(l, "var[", high, low);
        return;
    }
    if (!pair && !table && !by_reg && (m & 0xB8)) {
        put_hex(l, a);
        return;
    }
    if (m & 0x04)
        put(l, "wide:");
    if (m & 0x40)
        put(l, "shape:");
    if (pair) {
        put(l, "reg[");
        put_u(l, low & 0xFF);
        put_c(l, ',');
        put_u(l, low >> 8);
        put_c(l, ']');
    } else if (table) {
        put_named(l, "table[", high, low);
    } else if (by_reg) {
        put(l, "table[");
        put_u(l, high);
        put(l, "+r");
        put_u(l, low);
        put_c(l, ']');
    } else {
        a &= 0x03FFFFFFFFFFFFFFull;
        if (a < CPS_PSUM_END)
            put_on_chip(l, (uint32_t)a);
        else
            put_hex(l, a);
    }
}

static void
put_dims(line *l, const cps_ap *ap, int16_t idle)
{
    unsigned n = ap->nd;
    while (n > 1 && ap->step[n - 1] == idle && ap->num[n - 1] == 1)
        n--;
    for (unsigned i = 0; i < n; i++) {
        put_c(l, i ? ',' : '[');
        put_s(l, ap->step[i]);
    }
    put(l, "][");
    for (unsigned i = 0; i < n; i++) {
        if (i)
            put_c(l, ',');
        put_u(l, ap->num[i]);
    }
    put_c(l, ']');
}

// index->data[count] of a pattern in n bytes; false when it is not of that form.
static bool
put_indirect(line *l, const uint8_t *p, unsigned n)
{
    if (n < 12 || !cps_addr_is_indirect(load4(p)) || !is_zero(p + 10, n - 10))
        return false;
    put_addr4(l, load4(p));
    put(l, "->");
    put_addr4(l, load4(p + 4));
    put_c(l, '[');
    put_u(l, (unsigned)(p[8] | p[9] << 8));
    put_c(l, ']');
    return true;
}

// data*scale[count,step,scale partition], and index->data*scale[count,scale partition].
static void
put_mx(line *l, const uint8_t *p)
{
    bool indirect = cps_addr_is_indirect(load4(p));
    if (indirect) {
        put_addr4(l, load4(p));
        put(l, "->");
        p += 4;
    }
    put_addr4(l, load4(p));
    put_c(l, '*');
    put_addr4(l, load4(p + 4));
    put_c(l, '[');
    put_u(l, (unsigned)(p[8] | p[9] << 8));
    put_c(l, ',');
    if (!indirect) {
        put_s(l, (int8_t)p[10]);
        put_c(l, ',');
    }
    put_u(l, p[11]);
    uint32_t rest = indirect ? p[10] : load4(p + 12); // reserved
    if (rest) {
        put_c(l, ',');
        put_hex(l, rest);
    }
    put_c(l, ']');
}

// Masks of an enum joined by '|', those of several bits with their value.
static void
put_flags(line *l, unsigned e, unsigned v)
{
    bool some = false;
    for (unsigned i = cps_enums[e].first; i < cps_enums[e + 1].first && v; i++) {
        unsigned mask = cps_enumvals[i].wire;
        if (!(v & mask))
            continue;
        if (some)
            put_c(l, '|');
        put(l, cps_enumvals[i].name);
        if (mask & (mask - 1)) {
            put_c(l, ':');
            put_u(l, (v & mask) / (mask & (0 - mask)));
        }
        v &= ~mask;
        some = true;
    }
    if (some && !v)
        return;
    if (some)
        put_c(l, '|');
    put_hex(l, v);
}

static void
put_str(line *l, const uint8_t *p, unsigned n)
{
    unsigned len = 0;
    while (len < n && p[len] >= ' ' && p[len] < 0x7F && p[len] != '"')
        len++;
    unsigned rest = len;
    while (rest < n && p[rest] == 0)
        rest++;
    if (rest == n) {
        put_c(l, '"');
        memcpy(l->p, p, len);
        l->p += len;
        put_c(l, '"');
    } else {
        put(l, "0x");
        put_bytes(l, p, n);
    }
}

static void
put_numbers(line *l, const cps_bundle *b, cps_field f)
{
    const cps_field_row *r = &cps_fields[f];
    unsigned n = r->arg > 1 ? r->arg : 1, width = r->bits / n;
    while (n > 1 && cps_isa_get_elem(b, f, n - 1) == 0)
        n--;
    if (r->arg > 1)
        put_c(l, '[');
    for (unsigned i = 0; i < n; i++) {
        uint64_t v = cps_isa_get_elem(b, f, i);
        if (i)
            put_c(l, ',');
        if (r->kind == CPS_FK_SINT)
            put_s(l, (int64_t)(v << (64 - width)) >> (64 - width));
        else
            put_u(l, v);
    }
    if (r->arg > 1)
        put_c(l, ']');
}

// Where the scalar comes from: the wire values of IMM_SRC; IMM_SRC_N swaps the first two.
static unsigned
scalar_form(const cps_bundle *b, const cps_field_row *r)
{
    if (!r->source)
        return CPS_IMM_SRC_INSTRUCTION_IMMEDIATE;
    unsigned v = (unsigned)cps_isa_get(b, (cps_field)r->source);
    return cps_fields[r->source].arg == CPS_ENUM_IMM_SRC_N && v <= 1 ? 1 - v : v;
}

static void
put_scalar(line *l, const cps_bundle *b, const cps_field_row *r, uint32_t v, unsigned wire)
{
    unsigned form = scalar_form(b, r), exp = v >> 23 & 0xFF;
    if (form == CPS_IMM_SRC_POINTER_IMMEDIATE || form == CPS_IMM_SRC_REG_PTR_IMMEDIATE) {
        put(l, form == CPS_IMM_SRC_POINTER_IMMEDIATE ? "ptr[" : "reg[");
        if (form == CPS_IMM_SRC_POINTER_IMMEDIATE)
            put_hex(l, v);
        else
            put_u(l, v);
        put_c(l, ']');
    } else if (r->dtype && wire && !cps_dtype_is_float(cps_isa_dtype(wire))) {
        put_hex(l, v);
    } else if ((v & 0x7FFFFFFFu) == 0 || exp == 0xFF || (exp > 80 && exp < 174)) {
        put_f32(l, v); // magnitudes a program would write; small integers stay hexadecimal
    } else {
        put_hex(l, v);
    }
}

/* ---- fields ---- */

static unsigned
dtype_of(const cps_bundle *b, const cps_field_row *r)
{
    unsigned v = b->b[cps_fields[r->dtype].byte];
    return r->part == CPS_PART_LOW ? v & 15 : r->part == CPS_PART_HIGH ? v >> 4 : v;
}

// Fields that another operand's text carries.
static bool
hidden(const cps_bundle *b, const cps_field_row *r)
{
    if (!r->implied)
        return false;
    return r->kind != CPS_FK_ENUM || b->b[r->byte] <= CPS_IMM_SRC_REG_PTR_IMMEDIATE;
}

// Whether the text needs the field: patterns and typed operands always, others off default.
static bool
needed(const cps_bundle *b, const cps_field_row *r)
{
    if (r->dtype || r->kind == CPS_FK_TENSOR || r->kind == CPS_FK_DATA4D ||
        r->kind == CPS_FK_MXMEM)
        return true;
    if (r->source && cps_isa_get(b, (cps_field)r->source) != 0)
        return true;
    if (r->bits > 64)
        return !is_zero(b->b + r->byte, r->bits / 8u);
    uint64_t v = 0;
    for (unsigned i = 0, n = r->bits / 8u; i < n; i++)
        v |= (uint64_t)b->b[r->byte + i] << (8 * i);
    return v != r->dflt;
}

static void
put_value(line *l, const cps_bundle *b, cps_field f)
{
    const cps_field_row *r = &cps_fields[f];
    const uint8_t *p = b->b + r->byte;
    unsigned n = r->bits / 8u, wire = r->dtype ? dtype_of(b, r) : 0;
    uint64_t v = r->bits <= 64 ? cps_isa_get(b, f) : 0;
    cps_ap ap;
    if (r->dtype && (wire || cps_fields[r->dtype].dflt)) {
        put_dtype(l, wire);
        put_c(l, '@');
    }
    switch ((cps_fkind)r->kind) {
    case CPS_FK_UINT:
    case CPS_FK_SINT:
        put_numbers(l, b, f);
        break;
    case CPS_FK_F32:
        put_f32(l, (uint32_t)v);
        break;
    case CPS_FK_HEX:
        put_hex(l, v);
        break;
    case CPS_FK_FLAGS:
        put_flags(l, r->arg, (unsigned)v);
        break;
    case CPS_FK_DTYPE:
        put_dtype(l, (unsigned)v);
        break;
    case CPS_FK_PAIR:
        put_dtype(l, (unsigned)v & 15);
        put_c(l, '/');
        put_dtype(l, (unsigned)v >> 4);
        break;
    case CPS_FK_ALU:
        put_name(l, cps_alu_name((unsigned)v), v);
        break;
    case CPS_FK_ENUM:
        put_name(l, cps_isa_value_name((cps_isa_enum)r->arg, (unsigned)v), v);
        break;
    case CPS_FK_ACTFN:
        put_name(l, cps_actfn_name((unsigned)v), v);
        break;
    case CPS_FK_ADDR4:
        put_addr4(l, (uint32_t)v);
        break;
    case CPS_FK_ADDR8:
        put_addr8(l, v);
        break;
    case CPS_FK_IMM:
        put_scalar(l, b, r, (uint32_t)v, wire);
        break;
    case CPS_FK_STR:
        put_str(l, p, n);
        break;
    case CPS_FK_BYTES:
        while (n > 1 && p[n - 1] == 0)
            n--;
        put(l, "0x");
        put_bytes(l, p, n);
        break;
    case CPS_FK_TENSOR:
        if (put_indirect(l, p, n))
            break;
        cps_isa_get_ap(b, f, &ap);
        put_addr4(l, ap.addr);
        put_dims(l, &ap, 1);
        break;
    case CPS_FK_DATA4D:
        cps_isa_get_ap(b, f, &ap);
        put_s(l, (int32_t)ap.addr);
        put_dims(l, &ap, 0);
        break;
    case CPS_FK_MXMEM:
        put_mx(l, p);
        break;
    }
}

static uint64_t
cover(const cps_field_row *r)
{
    unsigned n = r->bits / 8u;
    return (n == 64 ? ~0ull : (1ull << n) - 1) << r->byte;
}

/* ---- sync ---- */

static void
put_sync(line *l, const cps_sync_row *row, const char *word, unsigned idx, uint32_t value)
{
    put_c(l, ' ');
    put(l, word);
    put(l, row->object == CPS_SYNC_SEM ? " S[" : " E[");
    put_u(l, idx);
    put_c(l, ']');
    put(l, row->text);
    if (row->operand == CPS_SYNC_REGISTER)
        put_c(l, 'r');
    if (row->operand != CPS_SYNC_NOTHING)
        put_u(l, value);
    if (row->when) {
        put_c(l, '@');
        put(l, row->when);
    }
}

static void
put_plain(line *l, const cps_bundle *b, const char *prefix, cps_field f)
{
    put_c(l, ' ');
    put(l, prefix);
    put(l, cps_fields[f].name);
    put_c(l, '=');
    put_value(l, b, f);
}

// Clauses where the modes have one, operands for what is left.
static void
put_band(line *l, const cps_bundle *b, const cps_sync_band *s, const char *prefix)
{
    const cps_sync_row *w = cps_wait_row(b->b[cps_fields[s->wait_mode].byte]);
    const cps_sync_row *u = cps_update_row(b->b[cps_fields[s->update_mode].byte]);
    unsigned wait_idx = b->b[cps_fields[s->wait_idx].byte];
    unsigned update_idx = b->b[cps_fields[s->update_idx].byte];
    uint32_t wait_value = (uint32_t)cps_isa_get(b, s->wait_value);
    uint32_t update_value = (uint32_t)cps_isa_get(b, s->update_value);
    bool wait = w && w->object != CPS_SYNC_OTHER, then = u && u->object != CPS_SYNC_OTHER;
    bool wait_uses = wait && w->operand != CPS_SYNC_NOTHING;
    bool then_uses = then && u->operand != CPS_SYNC_NOTHING;
    bool shared = s->wait_value == s->update_value;
    if (!wait && b->b[cps_fields[s->wait_mode].byte])
        put_plain(l, b, prefix, s->wait_mode);
    if (!wait && wait_idx)
        put_plain(l, b, prefix, s->wait_idx);
    if (!then && b->b[cps_fields[s->update_mode].byte])
        put_plain(l, b, prefix, s->update_mode);
    if (!then && update_idx)
        put_plain(l, b, prefix, s->update_idx);
    if (wait_value && !wait_uses && !(shared && then_uses))
        put_plain(l, b, prefix, s->wait_value);
    if (!shared && update_value && !then_uses)
        put_plain(l, b, prefix, s->update_value);
    if (wait)
        put_sync(l, w, s->wait, wait_idx, wait_value);
    if (then)
        put_sync(l, u, s->then, update_idx, update_value);
}

void
cps_isa_print(const cps_bundle *b, cps_gen g, cps_buf *out)
{
    line l;
    l.p = l.text;
    cps_insn insn = cps_isa_find(b->b[0], g);
    if (!insn)
        insn = cps_isa_find_any(b->b[0]);
    if (!insn) {
        put(&l, ".bytes ");
        put_bytes(&l, b->b, CPS_BUNDLE_BYTES);
        cps_buf_put(out, l.text, (size_t)(l.p - l.text));
        return;
    }
    unsigned fmt = cps_insns[insn].format;
    unsigned first = cps_formats[fmt].first, end = cps_formats[fmt + 1].first;
    uint64_t covered = 0xFFF; // header and sync band
    const cps_sync_band *second = cps_sync_second(fmt);
    put(&l, cps_insns[insn].name);
    for (unsigned f = first; f < end; f++)
        if (cps_fields[f].kind == CPS_FK_ACTFN && cps_actfn_name(b->b[cps_fields[f].byte])) {
            put_c(&l, ' ');
            put_value(&l, b, (cps_field)f);
        }
    for (unsigned f = first; f < end; f++) {
        const cps_field_row *r = &cps_fields[f];
        covered |= cover(r);
        if (second && cps_sync_has(second, (cps_field)f))
            continue; // below
        if (hidden(b, r) || !needed(b, r) ||
            (r->kind == CPS_FK_ACTFN && cps_actfn_name(b->b[r->byte])))
            continue;
        put_plain(&l, b, "", (cps_field)f);
    }
    if (b->b[1] != cps_fields[CPS_F_HDR_inst_word_len].dflt)
        put_plain(&l, b, "hdr.", CPS_F_HDR_inst_word_len);
    if (b->b[2])
        put_plain(&l, b, "hdr.", CPS_F_HDR_debug_cmd);
    if (b->b[3])
        put_plain(&l, b, "hdr.", CPS_F_HDR_debug_hint);
    for (uint64_t rest = ~covered; rest; rest &= rest - 1) {
        unsigned i = (unsigned)__builtin_ctzll(rest);
        if (!b->b[i])
            continue;
        put(&l, " raw[");
        put_u(&l, i);
        put(&l, "]=");
        put_hex(&l, b->b[i]);
    }
    if (!is_zero(b->b + 4, 8))
        put_band(&l, b, &cps_sync_bands[0], "hdr.");
    if (second)
        put_band(&l, b, second, "");
    cps_assert((size_t)(l.p - l.text) <= sizeof l.text);
    cps_buf_put(out, l.text, (size_t)(l.p - l.text));
}
