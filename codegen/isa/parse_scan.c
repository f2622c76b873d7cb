/* Reading .cas text: characters, numbers and names, with their errors.
 *
 * Names of dtypes, operators and values go through a small memory of those seen last, mnemonics
 * through a hash table on the stack of the caller: texts are long and repeat few names. */
#include "codegen/isa/parse.h"

/* ---- errors ---- */

// In a text in pieces only the lines with errors become sources, one each.
cps_span
cps_cas_span(cps_cas *ps, const char *from, const char *to)
{
    if (ps->pieces && !ps->file)
        ps->file = cps_diags_line(ps->d, ps->name, ps->line + 1, ps->text,
                                  (size_t)(ps->stop - ps->text));
    return ps->pieces && !ps->file
               ? CPS_NOSPAN
               : (cps_span){ps->file, (uint32_t)(from - ps->text), (uint32_t)(to - ps->text)};
}

bool
cps_cas_fail(cps_cas *ps, cps_code code, const char *from, const char *to, const char *fmt, ...)
{
    if (ps->missing)
        return false; // the line waits for a label
    va_list ap;
    va_start(ap, fmt);
    cps_verror(ps->d, code, cps_cas_span(ps, from, to), fmt, ap);
    va_end(ap);
    return false;
}

/* ---- characters ---- */

static const bool word_chars[256] = {['0' ... '9'] = true,
                                     ['a' ... 'z'] = true,
                                     ['A' ... 'Z'] = true,
                                     ['_'] = true,
                                     ['.'] = true};

// clang-format off
const uint8_t cps_cas_hex[256] = {
    ['0'] = 1, ['1'] = 2, ['2'] = 3, ['3'] = 4, ['4'] = 5, ['5'] = 6, ['6'] = 7, ['7'] = 8,
    ['8'] = 9, ['9'] = 10, ['a'] = 11, ['b'] = 12, ['c'] = 13, ['d'] = 14, ['e'] = 15, ['f'] = 16,
    ['A'] = 11, ['B'] = 12, ['C'] = 13, ['D'] = 14, ['E'] = 15, ['F'] = 16};
// clang-format on

static inline bool
word_char(char c)
{
    return word_chars[(uint8_t)c];
}

const char *
cps_cas_word_end(const cps_cas *ps, const char *s)
{
    while (s < ps->end && word_char(*s))
        s++;
    return s;
}

const char *
cps_cas_chunk_end(const cps_cas *ps, const char *s)
{
    while (s < ps->end && !cps_cas_blank(*s))
        s++;
    return s;
}

bool
cps_cas_expect(cps_cas *ps, char c)
{
    if (cps_cas_accept(ps, c))
        return true;
    return cps_cas_fail(ps, CPS_E9203, ps->p, ps->p + (ps->p < ps->end), "expected '%c' here",
                        c);
}

/* ---- numbers ---- */

static bool
too_big(cps_cas *ps, const char *from)
{
    return cps_cas_fail(ps, CPS_E9204, from, cps_cas_chunk_end(ps, ps->p),
                        "number beyond 64 bits");
}

bool
cps_cas_number(cps_cas *ps, uint64_t *out, bool *neg)
{
    const char *from = ps->p;
    *neg = cps_cas_accept(ps, '-');
    const char *digits = ps->p, *p = digits, *end = ps->end;
    uint64_t v = 0;
    if (end - p > 2 && p[0] == '0' && (p[1] | 0x20) == 'x') {
        digits = p += 2;
        for (int h; p < end && (h = cps_cas_hex_digit(*p)) >= 0; p++) {
            if (v >> 60) {
                ps->p = p;
                return too_big(ps, from);
            }
            v = v << 4 | (unsigned)h;
        }
    } else {
        for (unsigned c; p < end && (c = (unsigned)(*p - '0')) < 10; p++) {
            if (p - digits >= 19 && v > (UINT64_MAX - c) / 10) {
                ps->p = p;
                return too_big(ps, from);
            }
            v = v * 10 + c;
        }
    }
    ps->p = p;
    if (p == digits && !*neg && cps_cas_symbol(ps, out, neg))
        return true;
    if (p == digits || (p < end && word_char(*p)))
        return cps_cas_fail(ps, CPS_E9203, from,
                            CPS_MAX(cps_cas_chunk_end(ps, from), from + (from < ps->end)),
                            "expected a number");
    *out = v;
    return true;
}

bool
cps_cas_number_of(cps_cas *ps, unsigned bits, bool sign, uint64_t *out)
{
    const char *from = ps->p;
    bool neg;
    uint64_t v, max = bits >= 64 ? UINT64_MAX : (1ull << bits) - 1;
    if (!cps_cas_number(ps, &v, &neg))
        return false;
    if (neg && (!sign || v > (max >> 1) + 1))
        return cps_cas_fail(ps, CPS_E9204, from, ps->p, "%s",
                            sign ? "number below the field's range"
                                 : "the field takes no negative number");
    if (!neg && v > (sign ? max >> 1 : max))
        return cps_cas_fail(ps, CPS_E9204, from, ps->p, "number does not fit %u %sbits", bits,
                            sign ? "signed " : "");
    *out = neg ? (0 - v) & max : v;
    return true;
}

bool
cps_cas_bytes(cps_cas *ps, uint8_t *out, unsigned n)
{
    const char *from = ps->p;
    unsigned i = 0;
    if (ps->end - ps->p < 2 || ps->p[0] != '0' || ps->p[1] != 'x')
        return cps_cas_fail(ps, CPS_E9203, from, cps_cas_chunk_end(ps, from),
                            "expected bytes: 0x and hex digits");
    memset(out, 0, n);
    int hi, lo;
    for (ps->p += 2; ps->p < ps->end && (hi = cps_cas_hex_digit(*ps->p)) >= 0; i++) {
        lo = ps->p + 1 < ps->end ? cps_cas_hex_digit(ps->p[1]) : -1;
        if (lo < 0)
            return cps_cas_fail(ps, CPS_E9203, from, cps_cas_chunk_end(ps, ps->p),
                                "odd number of hex digits");
        if (i >= n)
            return cps_cas_fail(ps, CPS_E9204, from, cps_cas_chunk_end(ps, ps->p),
                                "more than %u bytes", n);
        out[i] = (uint8_t)(hi << 4 | lo);
        ps->p += 2;
    }
    return i ? true : cps_cas_fail(ps, CPS_E9203, from, ps->p, "expected hex digits");
}

/* ---- names ---- */

static inline uint64_t
load8(const char *s)
{
    uint64_t v;
    memcpy(&v, s, 8);
    return v;
}

// The first and the last eight bytes tell the names of the tables apart well enough.
static uint32_t
hash(const char *s, size_t n)
{
    uint64_t h = n;
    if (n >= 8) {
        h += load8(s) + 31 * load8(s + n - 8);
    } else {
        uint64_t v = 0;
        for (size_t i = 0; i < n; i++)
            v = v << 8 | (uint8_t)s[i];
        h += v;
    }
    return (uint32_t)(h * 0x9E3779B97F4A7C15ull >> 40);
}

void
cps_cas_fill_mnemonics(cps_cas *ps)
{
    _Static_assert(CPS_INSNS < CPS_CAS_MNEMONICS / 2,
                   "the table of mnemonics is at most half full");
    for (unsigned i = 1; i < CPS_INSNS; i++) {
        uint32_t h = hash(cps_insns[i].name, strlen(cps_insns[i].name));
        while (ps->mnemonic[h % CPS_CAS_MNEMONICS])
            h++;
        ps->mnemonic[h % CPS_CAS_MNEMONICS] = (uint16_t)i;
    }
}

cps_insn
cps_cas_find_mnemonic(const cps_cas *ps, const char *s, size_t n)
{
    for (uint32_t h = hash(s, n); ps->mnemonic[h % CPS_CAS_MNEMONICS]; h++)
        if (cps_cas_same(s, n, cps_insns[ps->mnemonic[h % CPS_CAS_MNEMONICS]].name))
            return (cps_insn)ps->mnemonic[h % CPS_CAS_MNEMONICS];
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
        return t ? cps_dtypes[t].wire : cps_isa_value_parse(CPS_ENUM_DTYPE, word, n);
    }
    case CPS_FK_ALU:
        return cps_alu_parse(word);
    case CPS_FK_ACTFN:
        return cps_actfn_parse(word);
    default:
        return cps_isa_value_parse((cps_isa_enum)arg, word, n);
    }
}

// The same with a memory of the names seen last: programs repeat few of them. No name is of the
// kind of an empty slot, 0.
static int
name_value(cps_cas *ps, unsigned kind, unsigned arg, const char *s, size_t n)
{
    unsigned key = kind == CPS_FK_ENUM ? 256 + arg : kind;
    cps_cas_name *slot = &ps->seen[(hash(s, n) + key) % CPS_CAS_NAMES];
    if (slot->kind == key && slot->n == n && memcmp(slot->s, s, n) == 0)
        return slot->value;
    int v = look_up(kind, arg, s, n);
    if (v >= 0 && n <= CPS_CAS_NAME) {
        memcpy(slot->s, s, n);
        slot->n = (uint8_t)n;
        slot->kind = (uint16_t)key;
        slot->value = (int16_t)v;
    }
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

bool
cps_cas_named(cps_cas *ps, unsigned kind, unsigned arg, unsigned limit, unsigned *out)
{
    const char *from = ps->p, *end = cps_cas_word_end(ps, from);
    if (from < end && *from >= '0' && *from <= '9') {
        uint64_t v;
        bool neg;
        if (!cps_cas_number(ps, &v, &neg))
            return false;
        if (v >= limit)
            return cps_cas_fail(ps, CPS_E9204, from, ps->p, "at most 0x%x fits here",
                                limit - 1);
        *out = (unsigned)v;
        return true;
    }
    int v = name_value(ps, kind, arg, from, (size_t)(end - from));
    if (v < 0 || (unsigned)v >= limit) {
        cps_cas_fail(ps, CPS_E9203, from, CPS_MAX(end, from + (from < ps->end)), "no %s '%.*s'",
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
