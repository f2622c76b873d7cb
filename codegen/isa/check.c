/* The table checks itself: what the compiler cannot say about the rows.
 *
 * Fields lie inside the 64 bytes, outside header and sync band, and share no byte; rows of one
 * format are contiguous; opcodes are unique; a pseudo record has an opcode of 110xxxxx; dtype
 * fields that operands speak for are spoken for completely; a name occurs once in a format; a
 * condition is a byte of the same format; masks of flags share no bit; enums are not named like
 * instructions; every row has its semantics, its meaning and its source; the generations of an
 * instruction, its format and its engines agree. */
#include "codegen/isa/text.h"

#include <stdio.h>
#include <string.h>

typedef struct problems {
    cps_buf *out;
    unsigned n;
} problems;

CPS_PRINTF(2, 3)
static void
problem(problems *p, const char *fmt, ...)
{
    char text[256];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    cps_buf_printf(p->out, "%s\n", text);
    p->n++;
}

static void
check_format(problems *p, unsigned fmt)
{
    const cps_format_row *row = &cps_formats[fmt];
    uint64_t used = fmt == CPS_FMT_HDR || fmt == CPS_FMT_EVENTS ? 0 : 0xFFF;
    if (row->first > cps_formats[fmt + 1].first)
        problem(p, "%s: rows are not contiguous", row->name);
    if (cps_formats[fmt + 1].first - row->first > 32)
        problem(p, "%s: more than 32 fields", row->name);
    for (unsigned f = row->first; f < cps_formats[fmt + 1].first; f++) {
        const cps_field_row *r = &cps_fields[f];
        unsigned n = r->bits / 8u;
        if (r->format != fmt)
            problem(p, "%s: %s stands among its rows", row->name, r->name);
        if (r->bits == 0 || r->bits % 8 || r->byte + n > CPS_BUNDLE_BYTES) {
            problem(p, "%s.%s: outside 64 bytes", row->name, r->name);
            continue;
        }
        uint64_t mask = ((1ull << n) - 1) << r->byte;
        if (used & mask)
            problem(p, "%s.%s: shares bytes", row->name, r->name);
        used |= mask;
        if ((r->kind == CPS_FK_ENUM || r->kind == CPS_FK_FLAGS) &&
            (r->arg >= CPS_ENUMS || r->bits != 8))
            problem(p, "%s.%s: no such enum, or not one byte", row->name, r->name);
        if (r->when && (cps_fields[r->when].format != fmt || cps_fields[r->when].bits != 8))
            problem(p, "%s.%s: its condition is no byte of the format", row->name, r->name);
        if (r->source && cps_fields[r->source].format != fmt)
            problem(p, "%s.%s: its place is said in another format", row->name, r->name);
        if (r->arg > 1 && (r->kind == CPS_FK_UINT || r->kind == CPS_FK_SINT) && n % r->arg)
            problem(p, "%s.%s: %u bytes do not divide into %u elements", row->name, r->name, n,
                    r->arg);
        for (unsigned o = row->first; o < f; o++)
            if (strcmp(cps_fields[o].name, r->name) == 0)
                problem(p, "%s.%s: named twice", row->name, r->name);
    }
}

// A dtype pair with only one half spoken for would lose the other half in text.
static void
check_typed(problems *p, unsigned f)
{
    const cps_field_row *r = &cps_fields[f];
    unsigned spoken = 0;
    for (unsigned o = 1; o < CPS_FIELDS; o++) {
        if (cps_fields[o].dtype != f)
            continue;
        if (cps_fields[o].format != r->format)
            problem(p, "%s: dtype of an operand of another format", r->name);
        spoken |= cps_fields[o].part == CPS_PART_LOW    ? 1u
                  : cps_fields[o].part == CPS_PART_HIGH ? 2u
                                                        : 3u;
    }
    if (spoken && r->kind == CPS_FK_PAIR && spoken != 3)
        problem(p, "%s.%s: half a pair", cps_formats[r->format].name, r->name);
    if (spoken && r->kind != CPS_FK_PAIR && r->kind != CPS_FK_DTYPE)
        problem(p, "%s.%s: not a dtype", cps_formats[r->format].name, r->name);
}

unsigned
cps_isa_check(cps_buf *out)
{
    problems p = {.out = out};
    for (unsigned fmt = 0; fmt < CPS_FORMATS; fmt++)
        check_format(&p, fmt);
    for (unsigned f = 1; f < CPS_FIELDS; f++)
        check_typed(&p, f);
    for (unsigned i = 1; i < CPS_INSNS; i++) {
        const cps_insn_row *r = &cps_insns[i];
        if (cps_isa_find_any(r->opcode) != (cps_insn)i)
            problem(&p, "%s: opcode 0x%02x is taken", r->name, r->opcode);
        if (r->pseudo != (r->opcode >> 5 == 6))
            problem(&p, "%s: opcode and pseudo disagree", r->name);
        if (!r->engines)
            problem(&p, "%s: no engine", r->name);
        if (!r->sem[0] || !r->doc[0])
            problem(&p, "%s: no semantics or no meaning", r->name);
        if (!cps_formats[r->format].source[0] || !cps_formats[r->format].doc[0])
            problem(&p, "%s: no source or no meaning", cps_formats[r->format].name);
        for (unsigned f = cps_formats[r->format].first; f < cps_formats[r->format + 1].first;
             f++)
            if (r->gens && !(cps_fields[f].gens & r->gens))
                problem(&p, "%s.%s: on no generation that has the instruction", r->name,
                        cps_fields[f].name);
        if (r->format == CPS_FMT_HDR || r->format == CPS_FMT_EVENTS)
            problem(&p, "%s: has no format of its own", r->name);
    }
    for (unsigned e = 0; e < CPS_ENUMS; e++)
        if (cps_isa_find_name(cps_enums[e].name) || !cps_enums[e].doc[0] ||
            cps_enums[e].first == cps_enums[e + 1].first)
            problem(&p, "%s: the name of an instruction, or without meaning or values",
                    cps_enums[e].name);
    for (unsigned f = 1; f < CPS_FIELDS; f++) {
        unsigned seen = 0, e = cps_fields[f].arg;
        for (unsigned i = cps_enums[e].first;
             cps_fields[f].kind == CPS_FK_FLAGS && i < cps_enums[e + 1].first; i++) {
            if (seen & cps_enumvals[i].wire)
                problem(&p, "%s.%s: shares bits", cps_enums[e].name, cps_enumvals[i].name);
            seen |= cps_enumvals[i].wire;
        }
    }
    for (unsigned e = 0; e < CPS_ENUMS; e++)
        for (unsigned i = cps_enums[e].first; i < cps_enums[e + 1].first; i++)
            for (unsigned j = cps_enums[e].first; j < i; j++)
                if (cps_enumvals[i].wire == cps_enumvals[j].wire ||
                    strcmp(cps_enumvals[i].name, cps_enumvals[j].name) == 0)
                    problem(&p, "%s.%s: value or name twice", cps_enums[e].name,
                            cps_enumvals[i].name);
    return p.n;
}
