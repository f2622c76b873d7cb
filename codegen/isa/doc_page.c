/* The instruction set on a terminal: one page for an instruction, a format or an enum. What
 * several pages and ISA.md share about fields is here, too. */
#include "codegen/isa/doc.h"
#include "codegen/isa/rule.h"
#include "codegen/isa/timing.h"
#include "codegen/isa/text.h"

#include <string.h>

static const char *const kind_word[] = {[CPS_FK_UINT] = "unsigned",
                                        [CPS_FK_SINT] = "signed",
                                        [CPS_FK_F32] = "fp32",
                                        [CPS_FK_HEX] = "bits",
                                        [CPS_FK_FLAGS] = "flags",
                                        [CPS_FK_DTYPE] = "dtype",
                                        [CPS_FK_PAIR] = "two dtypes",
                                        [CPS_FK_ALU] = "operator",
                                        [CPS_FK_ENUM] = "enum",
                                        [CPS_FK_ACTFN] = "function",
                                        [CPS_FK_ADDR4] = "address",
                                        [CPS_FK_ADDR8] = "address",
                                        [CPS_FK_IMM] = "scalar",
                                        [CPS_FK_STR] = "text",
                                        [CPS_FK_BYTES] = "bytes",
                                        [CPS_FK_TENSOR] = "pattern",
                                        [CPS_FK_DATA4D] = "affine pattern",
                                        [CPS_FK_MXMEM] = "MX pattern"};

/* ---- shared ---- */

const char *
cps_sure_name(unsigned sure)
{
    static const char *const word[] = {
        [CPS_SURE_C] = "confirmed", [CPS_SURE_S] = "strong", [CPS_SURE_I] = "inferred"};
    return word[sure];
}

void
cps_doc_gens(cps_buf *b, unsigned mask)
{
    bool some = false;
    for (unsigned g = 0; g < CPS_GENS; g++)
        if (mask & (1u << g)) {
            cps_buf_printf(b, "%s%s", some ? " " : "", cps_gen_name((cps_gen)g));
            some = true;
        }
    if (!some)
        cps_buf_puts(b, "later");
}

void
cps_doc_engines(cps_buf *b, unsigned mask)
{
    bool some = false;
    if (mask == CPS_ON_ANY) {
        cps_buf_puts(b, "any");
        return;
    }
    for (unsigned e = 0; e < CPS_ENGINES; e++)
        if (mask & (1u << e)) {
            cps_buf_printf(b, "%s%s", some ? " " : "", cps_engine_name((cps_engine)e));
            some = true;
        }
}

char
cps_doc_letter(unsigned i)
{
    return (char)(i < 26 ? 'a' + i : 'A' + i - 26);
}

void
cps_doc_ruler(cps_buf *b, unsigned fmt, const char *indent)
{
    char map[CPS_BUNDLE_BYTES];
    memset(map, '.', sizeof map);
    memset(map, '#', 4);
    memset(map + 4, '%', 8);
    for (unsigned f = cps_formats[fmt].first; f < cps_formats[fmt + 1].first; f++)
        for (unsigned j = 0; j < cps_fields[f].bits / 8u; j++)
            map[cps_fields[f].byte + j] = cps_doc_letter(f - cps_formats[fmt].first);
    cps_buf_printf(b, "%sbyte   0 1 2 3  4 5 6 7  8 9 a b  c d e f\n", indent);
    for (unsigned row = 0; row < 4; row++) {
        cps_buf_printf(b, "%s0x%u0 ", indent, row);
        for (unsigned i = 0; i < 16; i++)
            cps_buf_printf(b, "%s%c", i % 4 ? " " : "  ", map[16 * row + i]);
        cps_buf_putc(b, '\n');
    }
}

void
cps_doc_holds(cps_buf *b, const cps_field_row *r)
{
    cps_buf_puts(b, kind_word[r->kind]);
    if (r->kind == CPS_FK_TENSOR)
        cps_buf_printf(b, " of %u dimension%s, %s", r->arg, r->arg > 1 ? "s" : "",
                       r->out ? "written" : "read");
    else if (r->kind == CPS_FK_MXMEM)
        cps_buf_printf(b, ", %s", r->out ? "written" : "read");
    else if (r->kind == CPS_FK_ENUM || r->kind == CPS_FK_FLAGS)
        cps_buf_printf(b, " %s", cps_enums[r->arg].name);
    else if (r->arg > 1 && r->kind != CPS_FK_DATA4D)
        cps_buf_printf(b, ", %u elements", r->arg);
    if (r->dtype)
        cps_buf_printf(b, "; dtype in %s%s", cps_fields[r->dtype].name,
                       r->part == CPS_PART_LOW    ? " (low half)"
                       : r->part == CPS_PART_HIGH ? " (high half)"
                                                  : "");
    if (r->source)
        cps_buf_printf(b, "; %s says where it is", cps_fields[r->source].name);
    if (r->dflt)
        cps_buf_printf(b, "; 0x%x by default", r->dflt);
    if (r->when) {
        const cps_field_row *by = &cps_fields[r->when];
        const char *is = by->kind == CPS_FK_ENUM
                             ? cps_isa_value_name((cps_isa_enum)by->arg, r->when_is)
                             : NULL;
        cps_buf_printf(b, "; only while %s is %s", by->name, is ? is : "set");
    }
}

void
cps_doc_values(cps_buf *b, unsigned e)
{
    for (unsigned i = cps_enums[e].first; i < cps_enums[e + 1].first; i++) {
        const cps_enumval_row *v = &cps_enumvals[i];
        cps_buf_printf(b, "%s%u %s", i > cps_enums[e].first ? ", " : "", v->wire, v->name);
        if (v->gens != CPS_IN_V234) {
            cps_buf_puts(b, " (");
            cps_doc_gens(b, v->gens);
            cps_buf_putc(b, ')');
        }
    }
}

/* ---- pages ---- */

// A field a line, then the values of the enums that occur.
static void
put_fields(cps_buf *b, unsigned fmt, unsigned on)
{
    unsigned first = cps_formats[fmt].first, end = cps_formats[fmt + 1].first;
    cps_doc_ruler(b, fmt, "  ");
    if (first < end)
        cps_buf_puts(b, "\n    byte bytes field\n");
    for (unsigned f = first; f < end; f++) {
        const cps_field_row *r = &cps_fields[f];
        cps_buf_printf(b, "  %c %4u %5u %-22s ", cps_doc_letter(f - first), r->byte,
                       r->bits / 8u, r->name);
        cps_doc_holds(b, r);
        if (r->gens != on) {
            cps_buf_puts(b, "; ");
            cps_doc_gens(b, r->gens);
        }
        if (r->sure != CPS_SURE_C)
            cps_buf_printf(b, "; %s", cps_sure_name(r->sure));
        cps_buf_putc(b, '\n');
    }
    bool some = false;
    for (unsigned e = 0; e < CPS_ENUMS; e++) {
        bool used = false;
        for (unsigned f = first; f < end; f++)
            used = used ||
                   ((cps_fields[f].kind == CPS_FK_ENUM || cps_fields[f].kind == CPS_FK_FLAGS) &&
                    cps_fields[f].arg == e);
        if (!used || e == CPS_ENUM_WAIT_MODE || e == CPS_ENUM_UPDATE_MODE)
            continue;
        cps_buf_printf(b, "%s  %s: ", some ? "" : "\n", cps_enums[e].name);
        cps_doc_values(b, e);
        cps_buf_putc(b, '\n');
        some = true;
    }
}

static void
put_rules(cps_buf *b, unsigned i, bool *some)
{
    for (; i && cps_rule_rows[i].rule != CPS_RULES; i++) {
        const cps_rule_row *r = &cps_rule_rows[i];
        cps_buf_puts(b, *some ? "    " : "\n  needs\n    ");
        *some = true;
        cps_rule_say(r, b);
        cps_buf_printf(b, " [%s%s%s]\n", cps_diag_rows[cps_rules[r->rule].code].name,
                       r->sure == CPS_SURE_C ? "" : ", ",
                       r->sure == CPS_SURE_C ? "" : cps_sure_name(r->sure));
    }
}

void
cps_isa_doc_insn(cps_insn i, cps_buf *b)
{
    const cps_insn_row *r = &cps_insns[i];
    const cps_format_row *fmt = &cps_formats[r->format];
    bool some = false;
    cps_buf_printf(b, "%s  opcode 0x%02x  %s%s\n  %s\n  engines: ", r->name, r->opcode,
                   cps_sure_name(r->sure), r->pseudo ? "  pseudo record" : "", r->doc);
    cps_doc_engines(b, r->engines);
    cps_buf_puts(b, "   on: ");
    cps_doc_gens(b, r->gens);
    for (unsigned g = 0; g < CPS_GENS; g++)
        if (cps_isa_opcode(i, (cps_gen)g) != r->opcode)
            cps_buf_printf(b, " (0x%02x on %s)", cps_isa_opcode(i, (cps_gen)g),
                           cps_gen_name((cps_gen)g));
    cps_buf_printf(b, "\n  cycles: %s\n  semantics: %s\n  format %s: %s (%s, %s)\n\n",
                   cps_tclass_doc((cps_tclass)r->timing),
                   strcmp(r->sem, "none") ? r->sem : "not executed", fmt->name, fmt->doc,
                   fmt->source, cps_sure_name(fmt->sure));
    put_fields(b, r->format, r->gens);
    put_rules(b, cps_rule_of_format(r->format), &some);
    put_rules(b, cps_rule_of_insn(i), &some);
    for (unsigned g = CPS_GENS; g-- > 0;)
        if (r->gens >> g & 1) {
            cps_bundle plain = cps_isa_new(i, (cps_gen)g);
            cps_buf_puts(b, "\n  text with every default: ");
            cps_isa_print(&plain, (cps_gen)g, b);
            cps_buf_putc(b, '\n');
            break;
        }
}

void
cps_isa_doc_format(unsigned fmt, cps_buf *b)
{
    const cps_format_row *r = &cps_formats[fmt];
    unsigned on = 0, users = 0;
    for (unsigned i = 1; i < CPS_INSNS; i++)
        if (cps_insns[i].format == fmt)
            on |= cps_insns[i].gens;
    cps_buf_printf(b, "%s  format  %s\n  %s\n  source: %s\n  used by:", r->name,
                   cps_sure_name(r->sure), r->doc, r->source);
    for (unsigned i = 1; i < CPS_INSNS; i++)
        if (cps_insns[i].format == fmt)
            cps_buf_printf(b, "%s %s", users++ ? "," : "", cps_insns[i].name);
    cps_buf_printf(b, "%s\n\n", users ? "" : " every instruction");
    put_fields(b, fmt, users ? on : CPS_IN_V234);
}

void
cps_isa_doc_enum(unsigned e, cps_buf *b)
{
    unsigned users = 0;
    cps_buf_printf(b, "%s  enum\n  %s\n", cps_enums[e].name, cps_enums[e].doc);
    for (unsigned i = cps_enums[e].first; i < cps_enums[e + 1].first; i++) {
        cps_buf_printf(b, "  0x%02x %4u  %-28s ", cps_enumvals[i].wire, cps_enumvals[i].wire,
                       cps_enumvals[i].name);
        cps_doc_gens(b, cps_enumvals[i].gens);
        cps_buf_putc(b, '\n');
    }
    for (unsigned f = 1; f < CPS_FIELDS; f++) {
        const cps_field_row *r = &cps_fields[f];
        if ((r->kind != CPS_FK_ENUM && r->kind != CPS_FK_FLAGS) || r->arg != e)
            continue;
        cps_buf_printf(b, "%s %s.%s", users ? "," : "  held by:", cps_formats[r->format].name,
                       r->name);
        users++;
    }
    if (users)
        cps_buf_putc(b, '\n');
}
