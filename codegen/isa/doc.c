/* The instruction set for people: ISA.md, and one instruction for `copse isa NAME`.
 *
 * In: the rows. Out: text. Nothing is said here about a particular instruction; a correction of
 * a row is a correction of the document. The test isa_doc fails when ISA.md is not this text.
 */
#include "codegen/isa/doc.h"

#include "codegen/isa/sync_row.h"
#include "codegen/isa/timing.h"

#include <stdio.h>
#include <string.h>

static const char *const sure_word[] = {
    [CPS_SURE_C] = "confirmed", [CPS_SURE_S] = "strong", [CPS_SURE_I] = "inferred"};
static const char sure_letter[] = "CSI";

static const char *const kind_word[] = {
    [CPS_FK_UINT] = "unsigned", [CPS_FK_SINT] = "signed",     [CPS_FK_F32] = "fp32",
    [CPS_FK_HEX] = "bits",      [CPS_FK_DTYPE] = "dtype",     [CPS_FK_PAIR] = "two dtypes",
    [CPS_FK_ALU] = "operator",  [CPS_FK_ENUM] = "enum",       [CPS_FK_ACTFN] = "function",
    [CPS_FK_ADDR4] = "address", [CPS_FK_ADDR8] = "address",   [CPS_FK_IMM] = "scalar",
    [CPS_FK_STR] = "text",      [CPS_FK_BYTES] = "bytes",     [CPS_FK_TENSOR] = "pattern",
    [CPS_FK_DATA4D] = "affine", [CPS_FK_MXMEM] = "MX pattern", [CPS_FK_FLAGS] = "flags"};

// Generations of a mask: "v2 v3 v4", "later" for none of them.
static void
put_gens(cps_buf *b, unsigned mask)
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

static void
put_engines(cps_buf *b, unsigned mask)
{
    if (mask == CPS_ON_ANY) {
        cps_buf_puts(b, "any");
        return;
    }
    bool some = false;
    for (unsigned e = 0; e < CPS_ENGINES; e++)
        if (mask & (1u << e)) {
            cps_buf_printf(b, "%s%s", some ? " " : "", cps_engine_name((cps_engine)e));
            some = true;
        }
}

/* ---- formats ---- */

static char
letter(unsigned i)
{
    return (char)(i < 26 ? 'a' + i : 'A' + i - 26);
}

// Four lines of sixteen bytes; each field has a letter, reserved bytes a dot.
static void
put_ruler(cps_buf *b, unsigned fmt, const char *indent)
{
    char map[CPS_BUNDLE_BYTES];
    memset(map, '.', sizeof map);
    memset(map, '#', 4);
    memset(map + 4, '%', 8);
    for (unsigned f = cps_formats[fmt].first; f < cps_formats[fmt + 1].first; f++)
        for (unsigned j = 0; j < cps_fields[f].bits / 8u; j++)
            map[cps_fields[f].byte + j] = letter(f - cps_formats[fmt].first);
    cps_buf_printf(b, "%sbyte   0 1 2 3  4 5 6 7  8 9 a b  c d e f\n", indent);
    for (unsigned row = 0; row < 4; row++) {
        cps_buf_printf(b, "%s0x%u0 ", indent, row);
        for (unsigned i = 0; i < 16; i++)
            cps_buf_printf(b, "%s%c", i % 4 ? " " : "  ", map[16 * row + i]);
        cps_buf_putc(b, '\n');
    }
}

// What a field holds, in words: kind, elements, enum, whose dtype, where a scalar is, default.
static void
put_holds(cps_buf *b, const cps_field_row *r)
{
    cps_buf_puts(b, kind_word[r->kind]);
    if (r->kind == CPS_FK_TENSOR)
        cps_buf_printf(b, " of %u dimension%s, %s", r->arg, r->arg > 1 ? "s" : "",
                       r->out ? "written" : "read");
    else if (r->kind == CPS_FK_MXMEM)
        cps_buf_printf(b, ", %s", r->out ? "written" : "read");
    else if (r->kind == CPS_FK_ENUM || r->kind == CPS_FK_FLAGS)
        cps_buf_printf(b, " %s", cps_enums[r->arg].name);
    else if (r->arg > 1)
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
}

static void
put_format(cps_buf *b, unsigned fmt)
{
    const cps_format_row *row = &cps_formats[fmt];
    cps_buf_printf(b, "\n### %s\n\n%c%s. Source: %s (%s). Used by", row->name,
                   row->doc[0] >= 'a' && row->doc[0] <= 'z' ? row->doc[0] - 32 : row->doc[0],
                   row->doc + 1, row->source, sure_word[row->sure]);
    unsigned users = 0;
    for (unsigned i = 1; i < CPS_INSNS; i++)
        if (cps_insns[i].format == fmt)
            cps_buf_printf(b, "%s %s", users++ ? "," : "", cps_insns[i].name);
    cps_buf_printf(b, "%s.\n\n```\n", users ? "" : " every instruction");
    put_ruler(b, fmt, "");
    cps_buf_puts(b, "```\n");
    if (row->first == cps_formats[fmt + 1].first)
        return;
    cps_buf_puts(b, "\n|   | byte | bytes | field | holds | on | sure |\n"
                    "|---|---|---|---|---|---|---|\n");
    for (unsigned f = row->first; f < cps_formats[fmt + 1].first; f++) {
        const cps_field_row *r = &cps_fields[f];
        cps_buf_printf(b, "| %c | %u | %u | `%s` | ", letter(f - row->first), r->byte,
                       r->bits / 8u, r->name);
        put_holds(b, r);
        cps_buf_puts(b, " | ");
        put_gens(b, r->gens);
        cps_buf_printf(b, " | %c |\n", sure_letter[r->sure]);
    }
}

/* ---- values ---- */

static void
put_enum(cps_buf *b, unsigned e)
{
    cps_buf_printf(b, "| %s | %s | ", cps_enums[e].name, cps_enums[e].doc);
    for (unsigned i = cps_enums[e].first; i < cps_enums[e + 1].first; i++) {
        const cps_enumval_row *v = &cps_enumvals[i];
        cps_buf_printf(b, "%s%u %s", i > cps_enums[e].first ? ", " : "", v->wire, v->name);
        if (v->gens != CPS_IN_V234) {
            cps_buf_puts(b, " (");
            put_gens(b, v->gens);
            cps_buf_putc(b, ')');
        }
    }
    cps_buf_puts(b, " |\n");
}

static void
put_operators(cps_buf *b)
{
    static const char *const word[] = {
        [CPS_ALUC_NONE] = "later",       [CPS_ALUC_BOTH] = "any",
        [CPS_ALUC_BITVEC] = "bitwise",   [CPS_ALUC_CRC] = "bitwise, pool",
        [CPS_ALUC_GENERAL] = "arith",    [CPS_ALUC_SPECIAL] = "arith, conditions",
        [CPS_ALUC_INT] = "integer, pool"};
    cps_buf_puts(b, "\n## ALU operators\n\n| value | name | class | on |\n|---|---|---|---|\n");
    for (unsigned w = 0; w < 256; w++) {
        const char *name = cps_alu_name(w);
        unsigned mask = 0;
        cps_alu_class k = CPS_ALUC_NONE;
        for (unsigned g = 0; g < CPS_GENS; g++)
            if (cps_alu_class_of(w, (cps_gen)g)) {
                k = cps_alu_class_of(w, (cps_gen)g);
                mask |= 1u << g;
            }
        if (!name)
            continue;
        cps_buf_printf(b, "| 0x%02X | `%s` | %s | ", w, name, word[k]);
        put_gens(b, mask);
        cps_buf_puts(b, " |\n");
    }
}

static void
put_functions(cps_buf *b)
{
    cps_buf_puts(b,
                 "\n## Activation functions\n\nOne table set is resident at a time; functions "
                 "without a set are in every one.\n\n| value | name | first set that has it |\n"
                 "|---|---|---|\n");
    for (unsigned w = 0; w < 256; w++) {
        if (!cps_actfn_name(w))
            continue;
        int set = cps_actfn_set(w);
        cps_buf_printf(b, "| %u | `%s` | ", w, cps_actfn_name(w));
        if (set >= 0)
            cps_buf_printf(b, "%d %s |\n", set, cps_actset_name((unsigned)set));
        else
            cps_buf_puts(b, "any |\n");
    }
}

static void
put_sync(cps_buf *b)
{
    cps_buf_puts(
        b, "\n## Wait and update\n\nThe text forms; `n` is the index, `v` the value. A mode "
           "marked I follows the pattern of the others and was not seen.\n\n"
           "| mode | text | sure |\n|---|---|---|\n");
    for (unsigned k = 0; k < 2; k++)
        for (unsigned i = 0; i < (k ? cps_update_count : cps_wait_count); i++) {
            const cps_sync_row *r = k ? &cps_updates[i] : &cps_waits[i];
            if (r->object == CPS_SYNC_OTHER)
                continue;
            cps_buf_printf(b, "| 0x%02X | `%s %s[n]%s%s%s%s` | %c |\n", r->wire,
                           k ? "then" : "wait", r->object == CPS_SYNC_SEM ? "S" : "E", r->text,
                           r->operand == CPS_SYNC_NUMBER     ? "v"
                           : r->operand == CPS_SYNC_REGISTER ? "rv"
                                                             : "",
                           k ? "@" : "", k ? r->when : "", sure_letter[r->sure]);
        }
}

/* ---- whole ---- */

static void
put_counts(cps_buf *b)
{
    unsigned insn[3] = {0}, field[3] = {0};
    for (unsigned i = 1; i < CPS_INSNS; i++)
        insn[cps_insns[i].sure]++;
    for (unsigned f = 1; f < CPS_FIELDS; f++)
        field[cps_fields[f].sure]++;
    cps_buf_puts(b, "\n| rows | confirmed | strong | inferred |\n|---|---|---|---|\n");
    cps_buf_printf(b, "| instructions | %u | %u | %u |\n", insn[0], insn[1], insn[2]);
    cps_buf_printf(b, "| fields | %u | %u | %u |\n", field[0], field[1], field[2]);
}

void
cps_isa_doc(cps_buf *b)
{
    cps_buf_puts(
        b,
        "<!-- Written from insn.def by the host tool isadoc; do not edit. -->\n"
        "# The NeuronCore instruction set\n\n"
        "What this build knows about the 64-byte instructions of NeuronCore-v2 (trn1, inf2), "
        "v3 "
        "(trn2) and v4 (trn3). No vendor document describes them; the facts come from public "
        "readings of the shipped ISA headers, the runtime's record builders and the compiler's "
        "encoder. Each row says how sure it is:\n\n"
        "- **C** confirmed: offsets compile-checked against the shipped headers, or bytes "
        "built by "
        "the runtime;\n"
        "- **S** strong: read from the compiler's encoder only, or known in part;\n"
        "- **I** inferred: the name is known and the layout is not, or a value follows a "
        "pattern.\n");
    put_counts(b);
    cps_buf_puts(
        b, "\nInstructions are little-endian; steps of patterns count elements, X (fastest) "
           "first. In the "
           "byte maps `#` is the header, `%` the sync band, `.` reserved and zero; a letter "
           "names the "
           "field in the table below it. The text form is described in text.h.\n"
           "\n## Instructions\n\n`cycles` is the timing class: N counts elements per partition "
           "(timing.def). Records marked P are rewritten by the loader and never fetched.\n\n"
           "| opcode | name | | engines | on | sure | format | cycles | meaning |\n"
           "|---|---|---|---|---|---|---|---|---|\n");
    for (unsigned op = 0; op < 256; op++) {
        cps_insn i = cps_isa_find_any((uint8_t)op);
        const cps_insn_row *r = &cps_insns[i];
        if (!i)
            continue;
        cps_buf_printf(b, "| 0x%02X | %s | %s | ", op, r->name, r->pseudo ? "P" : "");
        put_engines(b, r->engines);
        cps_buf_puts(b, " | ");
        put_gens(b, r->gens);
        cps_buf_printf(b, " | %c | %s | %s | %s |\n", sure_letter[r->sure],
                       r->format == CPS_FMT_RAW ? "unknown" : cps_formats[r->format].name,
                       cps_tclass_doc((cps_tclass)r->timing), r->doc);
    }
    cps_buf_puts(b, "\n## Formats\n");
    for (unsigned fmt = 0; fmt < CPS_FORMATS; fmt++)
        put_format(b, fmt);
    cps_buf_puts(b, "\n## Values\n\n| enum | meaning | values |\n|---|---|---|\n");
    for (unsigned e = 0; e < CPS_ENUMS; e++)
        put_enum(b, e);
    put_sync(b);
    put_operators(b);
    put_functions(b);
    cps_buf_puts(b, "\n## Adding an instruction\n\n"
                    "1. insn.def: one INSN row; format.def: a FORMAT row with its FIELD, SLOT "
                    "and TYPED rows "
                    "when the layout is new; rule.def: what no field's kind says.\n"
                    "2. The simulator: the function that the semantics column names, when it "
                    "is a new one.\n"
                    "3. tests/golden/isa.tsv: a vector. The tests then cover text both ways, "
                    "the verifier and "
                    "the table; `isadoc` rewrites this page.\n");
}

void
cps_isa_doc_insn(cps_insn i, cps_buf *b)
{
    const cps_insn_row *r = &cps_insns[i];
    unsigned fmt = r->format, first = cps_formats[fmt].first;
    cps_buf_printf(b, "%s  opcode 0x%02x  %s%s\n  %s\n  engines: ", r->name, r->opcode,
                   sure_word[r->sure], r->pseudo ? "  pseudo record" : "", r->doc);
    put_engines(b, r->engines);
    cps_buf_puts(b, "   on: ");
    put_gens(b, r->gens);
    cps_buf_printf(b, "\n  cycles: %s\n  format %s: %s (%s)\n\n",
                   cps_tclass_doc((cps_tclass)r->timing), cps_formats[fmt].name,
                   cps_formats[fmt].doc, cps_formats[fmt].source);
    put_ruler(b, fmt, "  ");
    for (unsigned f = first; f < cps_formats[fmt + 1].first; f++) {
        cps_buf_printf(b, "  %c %2u  %-22s ", letter(f - first), cps_fields[f].byte,
                       cps_fields[f].name);
        put_holds(b, &cps_fields[f]);
        if (cps_fields[f].gens != r->gens) {
            cps_buf_puts(b, "; ");
            put_gens(b, cps_fields[f].gens);
        }
        if (cps_fields[f].sure != CPS_SURE_C)
            cps_buf_printf(b, "; %s", sure_word[cps_fields[f].sure]);
        cps_buf_putc(b, '\n');
    }
}
