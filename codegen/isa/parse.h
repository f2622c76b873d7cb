/* What the files of the .cas parser share; not for others. */
#ifndef CPS_ISA_PARSE_H
#define CPS_ISA_PARSE_H

#include "codegen/isa/text.h"
#include "runtime/base/map.h"
#include "runtime/base/vec.h"

#include <string.h>

enum {
    CPS_CAS_MNEMONICS = 512,
    CPS_CAS_NAMES = 256,
    CPS_CAS_NAME = 24,        /* longest name that is remembered */
    CPS_CAS_LINE = 1 << 20,   /* longest line of a text in pieces */
    CPS_CAS_AHEAD = 1 << 20,  /* a label is at most so many instructions after its use */
    CPS_CAS_WAITING = 1 << 28 /* most bytes of text that wait for labels */
};

/* A name met before and its wire value; a copy, because pieces of text come and go. */
typedef struct cps_cas_name {
    char s[CPS_CAS_NAME];
    uint8_t n;
    uint16_t kind;
    int16_t value;
} cps_cas_name;

/* A line that uses a label which has not come yet; its text is kept as long as it waits. Lines
 * that wait have ids, from 1 on; 0 is none. */
typedef struct cps_cas_wait {
    const char *s, *stop; /* the line */
    uint64_t line, index; /* as in cps_cas */
    size_t slot;          /* of its bundle in `held` */
    uint64_t prev, next;  /* who waits for the same label */
    uint64_t *head;       /* the first of them */
    bool done, bad;       /* bad: with an error */
} cps_cas_wait;

struct cps_cas {
    const char *text, *p, *end; /* end: of the line's content, comment excluded */
    const char *stop;           /* of the line, comment included */
    cps_diags *d;
    cps_gen g;
    bool pieces;      /* text is one line; its place is found out when an error asks for it */
    uint32_t file;    /* of the text; pieces: of the line once it was registered */
    const char *name; /* pieces: of the whole text */
    bool good;        /* no error yet */
    cps_diags *probe; /* NULL: instructions are not held to the rules */
    cps_engine engine;
    uint64_t line;  /* lines before this one */
    uint64_t index; /* instructions before this line */

    cps_bundle b;
    unsigned fmt, next;  /* format of the line; field to try first */
    uint64_t given;      /* fields of the format that an operand set, by position */
    uint64_t implied[2]; /* fields that the form of another operand set; [1]: the high half */
    bool sync_given;     /* the shared sync value was set by a clause */
    uint32_t sync_value;

    /* parse_sym.c, parse_text.c: names; lines that wait and all bundles since the first of them
     */
    cps_arena *arena; /* NULL as long as there is no name */
    cps_map names;
    bool may_wait;       /* a name that is not known may be a label further on */
    const char *missing; /* that name, in the line */
    size_t missing_n;
    cps_arena *wait_arena;
    CPS_VEC(cps_cas_wait) wait;
    uint64_t gone; /* lines that waited and are no longer in `wait`: id 1 + gone is the first */
    uint32_t first_wait; /* the first in `wait` that is not done */
    cps_buf held;

    cps_buf carry; /* pieces: a line whose end has not come yet */
    bool skipping; /* pieces: up to the end of a line that is too long */

    uint16_t mnemonic[CPS_CAS_MNEMONICS];
    cps_cas_name seen[CPS_CAS_NAMES];
    bool have[CPS_INSNS];
    cps_bundle fresh[CPS_INSNS]; /* cps_isa_new, where `have` says so */
};

/* ---- parse_scan.c: characters, numbers, names. What returns bool has reported on false ----
 */

/* An error at [from, to); always false. */
bool cps_cas_fail(cps_cas *ps, cps_code code, const char *from, const char *to, const char *fmt,
                  ...) CPS_PRINTF(5, 6);
cps_span cps_cas_span(cps_cas *ps, const char *from, const char *to);
/* The end of the run of word characters at s; of what stands up to the next blank. */
const char *cps_cas_word_end(const cps_cas *ps, const char *s);
const char *cps_cas_chunk_end(const cps_cas *ps, const char *s);
/* The next character must be this one; reports when it is not. */
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

/* ---- parse.c ---- */

/* The instruction from p to end, into b. */
bool cps_cas_instruction(cps_cas *ps);

/* ---- parse_sym.c ---- */

/* A name at p that labels the next instruction, or that .set defines. *waiters: the first line
 * that waits for it. */
bool cps_cas_label(cps_cas *ps, uint64_t *waiters);
bool cps_cas_set(cps_cas *ps);
/* Whether a label stands at p. */
bool cps_cas_at_label(const cps_cas *ps);
/* A symbol at p; false without a report when there is none. */
bool cps_cas_symbol(cps_cas *ps, uint64_t *out, bool *neg);
/* The head of the list of those who wait for the missing name. */
uint64_t *cps_cas_waiters(cps_cas *ps);

/* ---- parse_value.c ---- */

/* A number, an address or a float, for .set; a float as its binary32 bits. */
bool cps_cas_constant(cps_cas *ps, uint64_t *out, bool *neg);

/* The value of a field at p; sets it, and what its form implies for others. */
bool cps_cas_value(cps_cas *ps, cps_field f);

/* Consumes a character or a word that stands here; says whether it did, without a report. */
static inline bool
cps_cas_accept(cps_cas *ps, char c)
{
    bool here = ps->p < ps->end && *ps->p == c;
    ps->p += here;
    return here;
}

static inline bool
cps_cas_keyword(cps_cas *ps, const char *word)
{
    size_t n = strlen(word);
    if ((size_t)(ps->end - ps->p) < n || memcmp(ps->p, word, n) != 0)
        return false;
    ps->p += n;
    return true;
}

static inline bool
cps_cas_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

static inline bool
cps_cas_same(const char *s, size_t n, const char *name)
{
    return strlen(name) == n && memcmp(name, s, n) == 0; // s may hold zero bytes
}

extern const uint8_t cps_cas_hex[256]; /* of a digit: its value + 1 */

static inline int
cps_cas_hex_digit(char c)
{
    return cps_cas_hex[(uint8_t)c] - 1;
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
