/* The instruction set as one document: ISA.md.
 *
 * In: the rows. Out: text. Nothing is said here about a particular instruction; a correction of
 * a row is a correction of the document. The test isa_doc fails when ISA.md is not this text.
 */
#include "codegen/isa/doc.h"

#include "codegen/isa/desc.h"
#include "codegen/isa/rule.h"
#include "codegen/isa/sync_row.h"
#include "codegen/isa/timing.h"

#include <stdio.h>
#include <string.h>

static const char sure_letter[] = "CSI";

/* ---- formats ---- */

static void
put_format(cps_buf *b, unsigned fmt)
{
    const cps_format_row *row = &cps_formats[fmt];
    cps_buf_printf(b, "\n### %s\n\n%c%s. Source: %s (%s). Used by", row->name,
                   row->doc[0] >= 'a' && row->doc[0] <= 'z' ? row->doc[0] - 32 : row->doc[0],
                   row->doc + 1, row->source, cps_sure_name(row->sure));
    unsigned users = 0;
    for (unsigned i = 1; i < CPS_INSNS; i++)
        if (cps_insns[i].format == fmt)
            cps_buf_printf(b, "%s %s", users++ ? "," : "", cps_insns[i].name);
    cps_buf_printf(b, "%s.\n\n```\n", users ? "" : " every instruction");
    cps_doc_ruler(b, fmt, "");
    cps_buf_puts(b, "```\n");
    if (row->first == cps_formats[fmt + 1].first)
        return;
    cps_buf_puts(b, "\n|   | byte | bytes | field | holds | on | sure |\n"
                    "|---|---|---|---|---|---|---|\n");
    for (unsigned f = row->first; f < cps_formats[fmt + 1].first; f++) {
        const cps_field_row *r = &cps_fields[f];
        cps_buf_printf(b, "| %c | %u | %u | `%s` | ", cps_doc_letter(f - row->first), r->byte,
                       r->bits / 8u, r->name);
        cps_doc_holds(b, r);
        cps_buf_puts(b, " | ");
        cps_doc_gens(b, r->gens);
        cps_buf_printf(b, " | %c |\n", sure_letter[r->sure]);
    }
}

/* ---- values ---- */

static void
put_enum(cps_buf *b, unsigned e)
{
    cps_buf_printf(b, "| %s | %s | ", cps_enums[e].name, cps_enums[e].doc);
    cps_doc_values(b, e);
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
        cps_doc_gens(b, mask);
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
    cps_buf_puts(b, "\n| set | name | functions beyond those of every set |\n|---|---|---|\n");
    for (unsigned i = 0; cps_actset_name(i); i++)
        cps_buf_printf(b, "| %u | `%s` | %s |\n", i, cps_actset_name(i),
                       cps_actset_functions(i));
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

/* ---- rules ---- */

static void
put_kinds(cps_buf *b)
{
    static const char *const step[] = {
        NULL,     "header", "sync",     "engine", "reserved bytes", "dtypes, alignment",
        "values", "places", "patterns", "the PE", "whole streams"};
    cps_buf_puts(
        b,
        "\n## Rules\n\nWhat the verifier checks, in this order, which is that of the shipped "
        "checker. A rule that rests on an inferred fact warns; the others refuse. Operands "
        "whose address or shape comes from a register are checked no further. `copse dis "
        "--verify` applies them to a file.\n\n"
        "| step | rule | code | sure | what holds |\n|---|---|---|---|---|\n");
    for (unsigned k = 0; k < CPS_RULES; k++)
        cps_buf_printf(b, "| %u %s | %s | %s | %c | %s |\n", cps_rules[k].step,
                       step[cps_rules[k].step], cps_rules[k].name,
                       cps_diag_rows[cps_rules[k].code].name, sure_letter[cps_rules[k].sure],
                       cps_rules[k].doc);
}

static void
put_needs(cps_buf *b, const char *name, unsigned i)
{
    if (!i)
        return;
    cps_buf_printf(b, "| %s | ", name);
    for (unsigned first = i; cps_rule_rows[i].rule != CPS_RULES; i++) {
        const cps_rule_row *r = &cps_rule_rows[i];
        if (i > first)
            cps_buf_puts(b, "; ");
        cps_rule_say(r, b);
        if (r->sure != CPS_SURE_C)
            cps_buf_printf(b, " (%c)", sure_letter[r->sure]);
    }
    cps_buf_puts(b, " |\n");
}

static void
put_rules(cps_buf *b)
{
    put_kinds(b);
    cps_buf_puts(b,
                 "\n### What instructions need\n\nA format's row holds for every instruction "
                 "of the format. (S), (I): less than confirmed.\n\n"
                 "| instruction or format | needs |\n|---|---|\n");
    for (unsigned fmt = 0; fmt < CPS_FORMATS; fmt++) {
        put_needs(b, cps_formats[fmt].name, cps_rule_of_format(fmt));
        for (unsigned op = 0; op < 256; op++) {
            cps_insn i = cps_isa_find_any((uint8_t)op);
            if (i && cps_insns[i].format == fmt)
                put_needs(b, cps_insns[i].name, cps_rule_of_insn(i));
        }
    }
}

/* ---- queue descriptors ---- */

// A dword as 32 letters, bit 31 first.
static void
put_dwords(cps_buf *b, cps_qform form)
{
    for (unsigned w = 0; w < 4; w++) {
        cps_buf_printf(b, "+%-2u ", 4 * w);
        for (unsigned bit = 32; bit-- > 0;) {
            unsigned f = 0, n = 0;
            for (; f < CPS_QFIELDS; f++) {
                const cps_qfield_row *r = &cps_qfields[f];
                unsigned at = 32 * w + bit;
                if (r->form == form && at >= r->at && at < (unsigned)r->at + r->bits)
                    break;
                n += r->form == form;
            }
            cps_buf_putc(b, f < CPS_QFIELDS ? cps_doc_letter(n) : '.');
            if (bit % 4 == 0 && bit)
                cps_buf_putc(b, ' ');
        }
        cps_buf_putc(b, '\n');
    }
}

static void
put_descriptors(cps_buf *b)
{
    cps_buf_puts(
        b,
        "\n## Descriptors of DMA queues\n\nBulk data moves by 16-byte descriptors in rings, "
        "in pairs: one in the ring that reads, one in the ring that writes. `copse dis "
        "--form=descriptors F` lists a file of them and `copse asm --form=descriptors` gives "
        "it back; the bytes do not say which ring they belong to, so a second dword of 0 is "
        "taken for S2M, and `--form=m2s` or `--form=s2m` decides. Below, bit 31 of each dword "
        "stands first. In text, fields of one bit stand alone.\n");
    for (unsigned form = 0; form < CPS_QFORMS; form++) {
        unsigned n = 0;
        cps_buf_printf(b, "\n### %s\n\n%c%s.\n\n```\n", cps_qforms[form].name,
                       cps_qforms[form].doc[0] - 32, cps_qforms[form].doc + 1);
        put_dwords(b, (cps_qform)form);
        cps_buf_puts(b, "```\n\n|   | bit | bits | field | holds | sure |\n"
                        "|---|---|---|---|---|---|\n");
        for (unsigned f = 0; f < CPS_QFIELDS; f++) {
            const cps_qfield_row *r = &cps_qfields[f];
            if (r->form != form)
                continue;
            cps_buf_printf(b, "| %c | %u | %u | `%s` | %s%s%s | %c |\n", cps_doc_letter(n++),
                           r->at, r->bits, r->name, r->doc, r->kind == CPS_FK_ENUM ? ": " : "",
                           r->kind == CPS_FK_ENUM   ? cps_enums[r->arg].name
                           : r->kind == CPS_FK_SIZE ? "; 0 is 65,536"
                                                    : "",
                           sure_letter[r->sure]);
        }
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
    unsigned rule[3] = {0};
    for (unsigned k = 0; k < CPS_RULES; k++)
        rule[cps_rules[k].sure]++;
    cps_buf_printf(b, "| kinds of rules | %u | %u | %u |\n", rule[0], rule[1], rule[2]);
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
        b,
        "\nInstructions are little-endian; steps of patterns count elements, X (fastest) "
        "first. In the "
        "byte maps `#` is the header, `%` the sync band, `.` reserved and zero; a letter "
        "names the "
        "field in the table below it.\n"
        "\n## Text\n\nOne instruction a line (`copse dis`, `copse asm`), exact both ways; "
        "what no row describes becomes a `.bytes` line or a `raw[byte]=` operand. Operands "
        "that are absent have their default, 0 where the tables say nothing else.\n\n"
        "| what | looks like |\n|---|---|\n"
        "| line | `mnemonic [function] field=value ... [wait] [then]`, `// comment`, "
        "`.bytes` and 128 hex digits |\n"
        "| pattern | `bf16@sbuf[p32+0x100][1,64][64,8]`: dtype, memory, partition, byte, "
        "steps and counts, X first; trailing dimensions of step 1 and count 1 are left out "
        "|\n"
        "| pattern through indices | `bf16@index:sbuf[p0+0x100]->sbuf[p0+0x4000][512]` |\n"
        "| affine pattern | `10[1,-2][64,8]`: base, steps, counts |\n"
        "| MX pattern | `fp8e4m3@sbuf[p0]*sbuf[p0+0x8000][512,1,4]`: data, scales, count, "
        "step, first partition of the scales; `index:..->` in front and no step where indices "
        "lead |\n"
        "| address | `sbuf[p0]`, `psum[p64+0x800]`, `0x3000000`, `reg[5]` (the register "
        "holds it), `shape:..` (steps and counts come from registers), `index:..` |\n"
        "| address of 64 bits | the same, `reg[4,5]`, `table[7+0x40]`, `table[7+r5]`, "
        "`var[7+0x40]` before loading, `wide:..` |\n"
        "| scalar | `fp32@0.5`, `0x3f80`, `ptr[0x1000]` (in the partition), `reg[5]` |\n"
        "| groups of bits | `START\\|END`, `REG:5\\|ENABLED` |\n"
        "| wait, update | `wait S[4]>=r5`, `then E[3]++@read`; `wait2`, `then2` for the "
        "second band of EVENT_SEMAPHORE |\n"
        "| names | `.set NAME value`; `NAME:` for the next instruction, whose distance "
        "`branch=NAME` takes |\n"
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
        cps_doc_engines(b, r->engines);
        cps_buf_puts(b, " | ");
        cps_doc_gens(b, r->gens);
        cps_buf_printf(b, " | %c | %s | %s | %s |\n", sure_letter[r->sure],
                       r->format == CPS_FMT_RAW ? "unknown" : cps_formats[r->format].name,
                       cps_tclass_doc((cps_tclass)r->timing), r->doc);
    }
    cps_buf_puts(b, "\n## Formats\n");
    for (unsigned fmt = 0; fmt < CPS_FORMATS; fmt++)
        put_format(b, fmt);
    cps_buf_puts(b, "\n## Values\n\n| enum | meaning | values |\n|---|---|---|\n");
    for (unsigned e = 0; e < CPS_ENUMS; e++)
        if (e != CPS_ENUM_ALU_OPERATOR && e != CPS_ENUM_ACT_FUNCTION) // below, with more
            put_enum(b, e);
    put_sync(b);
    put_operators(b);
    put_functions(b);
    put_rules(b);
    put_descriptors(b);
    cps_buf_puts(
        b,
        "\n## Adding an instruction\n\n"
        "In a format that is known, three files: an INSN row in insn.def; a vector in "
        "tests/golden/isa-more.tsv, its bytes derived by hand; and this page, which `ninja "
        "update-isa-docs` writes. Text both ways, verifier and tests follow from the row. "
        "Beyond that:\n\n"
        "- a new layout: a FORMAT with its FIELD, SLOT, TYPED and SOURCE rows in format.def, "
        "its enums in value.def;\n"
        "- what no field's kind says: rows of rule.def, for the instruction or the format;\n"
        "- semantics that no other instruction has: a row of runtime/sim/sem.def with its "
        "function, and a case in tests/sim/rows/.\n");
}
