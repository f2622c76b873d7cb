/* What the files of the .cas parser share; not for others. */
#ifndef CPS_ISA_PARSE_H
#define CPS_ISA_PARSE_H

#include "codegen/isa/text.h"

#include <string.h>

enum { CPS_CAS_MNEMONICS = 512, CPS_CAS_NAMES = 256 };

/* A name met before and its wire value. */
typedef struct cps_cas_name {
    const char *s; /* in the text */
    uint32_t n;
    uint16_t kind;
    int16_t value;
} cps_cas_name;

typedef struct cps_cas {
    const char *text, *p, *end; /* end: of the line, comment excluded */
    const char *stop;           /* of the text */
    cps_diags *d;
    uint32_t file;
    cps_gen g;
    cps_bundle b;
    unsigned fmt, next;  /* format of the line; field to try first */
    uint64_t given;      /* fields of the format that an operand set, by position */
    uint64_t implied[2]; /* fields that the form of another operand set; [1]: the high half */
    uint64_t index;      /* of the line's instruction in the text */
    cps_buf syms;        /* parse_sym.c */
    bool scanned;        /* for labels */
    bool sync_given;     /* the shared sync value was set by a clause */
    uint32_t sync_value;
    uint16_t mnemonic[CPS_CAS_MNEMONICS];
    cps_cas_name name[CPS_CAS_NAMES];
} cps_cas;

/* ---- parse_scan.c: characters, numbers, names. What returns bool has reported on false ----
 */

/* An error at [from, to); always false. */
bool cps_cas_fail(cps_cas *ps, cps_code code, const char *from, const char *to, const char *fmt,
                  ...) CPS_PRINTF(5, 6);
/* The end of the run of word characters at s; of what stands up to the next blank. */
const char *cps_cas_word_end(const cps_cas *ps, const char *s);
const char *cps_cas_chunk_end(const cps_cas *ps, const char *s);
/* Consumes a character or a word that stands here; says whether it did, without a report. */
bool cps_cas_accept(cps_cas *ps, char c);
bool cps_cas_keyword(cps_cas *ps, const char *word);
bool cps_cas_expect(cps_cas *ps, char c);
/* Decimal or 0x, up to 64 bits; *neg when it had a minus sign. */
bool cps_cas_number(cps_cas *ps, uint64_t *out, bool *neg);
/* The same of at most `bits` bits; with `sign`, two's complement. */
bool cps_cas_number_of(cps_cas *ps, unsigned bits, bool sign, uint64_t *out);
/* 0x and hex digits, two a byte, into at most n bytes; the rest becomes 0. */
bool cps_cas_bytes(cps_cas *ps, uint8_t *out, unsigned n);
/* A name of the field kind (and enum), or a number; below `limit`. */
bool cps_cas_named(cps_cas *ps, unsigned kind, unsigned arg, unsigned limit, unsigned *out);
void cps_cas_fill_mnemonics(cps_cas *ps);
cps_insn cps_cas_find_mnemonic(const cps_cas *ps, const char *s, size_t n);

/* The next line with content: p and end around it, *s behind it. False at the end. */
bool cps_cas_line(cps_cas *ps, const char **s);

/* ---- parse_sym.c ---- */

/* Labels in front of an instruction; p moves behind them. */
bool cps_cas_labels(cps_cas *ps);
/* What stands after .set. */
bool cps_cas_set(cps_cas *ps);
/* A symbol at p; false without a report when there is none. */
bool cps_cas_symbol(cps_cas *ps, uint64_t *out, bool *neg);

/* ---- parse_value.c ---- */

/* A number, an address or a float, for .set; a float as its binary32 bits. */
bool cps_cas_constant(cps_cas *ps, uint64_t *out, bool *neg);

/* The value of a field at p; sets it, and what its form implies for others. */
bool cps_cas_value(cps_cas *ps, cps_field f);

static inline bool
cps_cas_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

static inline bool
cps_cas_same(const char *s, size_t n, const char *name)
{
    return strncmp(name, s, n) == 0 && name[n] == '\0';
}

static inline int
cps_cas_hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static inline void
cps_cas_skip_blanks(cps_cas *ps)
{
    while (ps->p < ps->end && cps_cas_blank(*ps->p))
        ps->p++;
}

/* Position of a field in its format as a bit. */
static inline uint64_t
cps_cas_bit_of(const cps_cas *ps, cps_field f)
{
    return 1ull << ((unsigned)f - cps_formats[ps->fmt].first);
}

#endif
