/* copse isa: the instruction table. Without a name, a line for each instruction; with one, the
 * page of an instruction (by name or opcode), a format or an enum. */
#include "frontend/cli.h"

#include "codegen/isa/doc.h"
#include "codegen/isa/rule.h"
#include "runtime/base/json.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

typedef struct found {
    cps_insn insn;
    unsigned format, value; /* CPS_FORMATS, CPS_ENUMS when it is none */
} found;

/* ---- names ---- */

static bool
find(const char *want, found *f)
{
    int64_t op;
    *f = (found){CPS_INSN_NONE, CPS_FORMATS, CPS_ENUMS};
    if (cps_parse_int(want, strlen(want), &op)) {
        f->insn = op >= 0 && op < 256 ? cps_isa_find_any((uint8_t)op) : CPS_INSN_NONE;
        return f->insn != CPS_INSN_NONE;
    }
    f->insn = cps_isa_find_name(want);
    if (f->insn)
        return true;
    for (f->format = 0; f->format < CPS_FORMATS; f->format++)
        if (strcasecmp(cps_formats[f->format].name, want) == 0)
            return true;
    for (f->value = 0; f->value < CPS_ENUMS; f->value++)
        if (strcasecmp(cps_enums[f->value].name, want) == 0)
            return true;
    return false;
}

// The i-th name of any kind, NULL behind the last.
static const char *
name_at(unsigned i)
{
    if (i < CPS_INSNS - 1)
        return cps_insns[i + 1].name;
    i -= CPS_INSNS - 1;
    if (i < CPS_FORMATS)
        return cps_formats[i].name;
    i -= CPS_FORMATS;
    return i < CPS_ENUMS ? cps_enums[i].name : NULL;
}

static bool
holds(const char *name, const char *part)
{
    size_t n = strlen(part);
    for (; n && strlen(name) >= n; name++)
        if (strncasecmp(name, part, n) == 0)
            return true;
    return false;
}

static void
suggest(cps_cli *c, const char *want)
{
    char upper[64];
    size_t n = strlen(want);
    const char *best = NULL;
    int closest = n < 6 ? 3 : 4;
    cps_error(c->diags, CPS_E1105, CPS_NOSPAN, "no instruction, format or enum is called '%s'",
              want);
    if (n >= sizeof upper)
        return;
    for (size_t i = 0; i <= n; i++)
        upper[i] = (char)(want[i] >= 'a' && want[i] <= 'z' ? want[i] - 32 : want[i]);
    for (unsigned i = 0; name_at(i); i++) {
        int dist = cps_edit_distance(upper, name_at(i));
        if (dist < closest) {
            closest = dist;
            best = name_at(i);
        }
    }
    if (best)
        cps_help(c->diags, "did you mean '%s'?", best);
    unsigned some = 0;
    for (unsigned i = 0; name_at(i) && n >= 2; i++)
        if (name_at(i) != best && holds(name_at(i), want) && ++some <= 8)
            cps_help(c->diags, "there is '%s'", name_at(i));
    if (!best && !some)
        cps_help(c->diags, "`copse isa` lists the instructions");
}

/* ---- lists ---- */

static bool
has_unsure(cps_insn i)
{
    unsigned fmt = cps_insns[i].format;
    for (unsigned f = cps_formats[fmt].first; f < cps_formats[fmt + 1].first; f++)
        if (cps_fields[f].sure != CPS_SURE_C)
            return true;
    return cps_insns[i].sure != CPS_SURE_C;
}

static void
line(cps_buf *b, cps_insn i)
{
    const cps_insn_row *r = &cps_insns[i];
    cps_buf_printf(b, "0x%02x  %-36s%-10s ", r->opcode, r->name, cps_sure_name(r->sure));
    for (int g = 0; g < CPS_GENS; g++)
        cps_buf_printf(b, "%s ", r->gens >> g & 1 ? cps_gen_name((cps_gen)g) : "--");
    size_t at = b->n;
    cps_buf_putc(b, ' ');
    cps_doc_engines(b, r->engines);
    while (b->n < at + 15)
        cps_buf_putc(b, ' ');
    cps_buf_printf(b, " %s\n", r->doc);
}

// What is not confirmed: instructions, fields of the others by format, rules, sync modes.
static void
unsure_list(cps_buf *b)
{
    cps_buf_puts(b, "instructions\n");
    for (unsigned i = 1; i < CPS_INSNS; i++)
        if (cps_insns[i].sure != CPS_SURE_C)
            line(b, (cps_insn)i);
    cps_buf_puts(b, "\nfields\n");
    for (unsigned f = 1; f < CPS_FIELDS; f++) {
        const cps_field_row *r = &cps_fields[f];
        if (r->sure == CPS_SURE_C)
            continue;
        cps_buf_printf(b, "%s.%s  byte %u  %s  ", cps_formats[r->format].name, r->name, r->byte,
                       cps_sure_name(r->sure));
        cps_doc_holds(b, r);
        cps_buf_putc(b, '\n');
    }
    cps_buf_puts(b, "\nrules\n");
    for (unsigned k = 0; k < CPS_RULES; k++)
        if (cps_rules[k].sure != CPS_SURE_C)
            cps_buf_printf(b, "%s  %s  %s: %s\n", cps_diag_rows[cps_rules[k].code].name,
                           cps_sure_name(cps_rules[k].sure), cps_rules[k].name,
                           cps_rules[k].doc);
    for (unsigned i = 1; i < cps_rule_row_count; i++) {
        const cps_rule_row *r = &cps_rule_rows[i];
        if (r->rule == CPS_RULES || r->sure == CPS_SURE_C)
            continue;
        cps_buf_printf(b, "%s  %s  %s: ", cps_diag_rows[cps_rules[r->rule].code].name,
                       cps_sure_name(r->sure),
                       r->f ? cps_formats[cps_fields[r->f].format].name : r->name);
        cps_rule_say(r, b);
        cps_buf_putc(b, '\n');
    }
}

static void
json(cps_buf *b, const found *f, bool unsure)
{
    cps_jsonw w;
    cps_jsonw_init(&w, b);
    cps_jsonw_arr(&w, false);
    for (unsigned i = 1; i < CPS_INSNS; i++)
        if ((!f || f->insn == (cps_insn)i) && (!unsure || has_unsure((cps_insn)i)))
            cps_isa_json_insn((cps_insn)i, unsure, &w);
    if (f && f->format < CPS_FORMATS)
        cps_isa_json_format(f->format, &w);
    if (f && f->value < CPS_ENUMS)
        cps_isa_json_enum(f->value, &w);
    cps_jsonw_end_arr(&w);
    cps_jsonw_done(&w);
}

cps_exit
cps_cmd_isa(cps_cli *c)
{
    bool unsure = cps_cli_has(c, CPS_OPT_UNSURE);
    const char *want = c->args.n ? c->args.data[0] : NULL;
    cps_buf b = {0};
    found f;
    if (c->args.n > 1) {
        cps_error(c->diags, CPS_E1105, CPS_NOSPAN, "'isa' takes at most one name");
        return CPS_USAGE;
    }
    if (want && !find(want, &f)) {
        suggest(c, want);
        return CPS_USAGE;
    }
    if (cps_cli_has(c, CPS_OPT_JSON))
        json(&b, want ? &f : NULL, unsure);
    else if (want && f.insn)
        cps_isa_doc_insn(f.insn, &b);
    else if (want && f.format < CPS_FORMATS)
        cps_isa_doc_format(f.format, &b);
    else if (want)
        cps_isa_doc_enum(f.value, &b);
    else if (unsure)
        unsure_list(&b);
    else
        for (unsigned i = 1; i < CPS_INSNS; i++)
            line(&b, (cps_insn)i);
    fwrite(b.data, 1, b.n, stdout);
    cps_buf_fini(&b);
    return CPS_OK;
}
