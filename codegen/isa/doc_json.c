/* The instruction set for programs: instructions, formats and enums as JSON objects, keys
 * sorted. Keys are stable. */
#include "codegen/isa/doc.h"
#include "codegen/isa/rule.h"
#include "codegen/isa/timing.h"

#include <string.h>

static const char *const kind_key[] = {
    [CPS_FK_UINT] = "uint",     [CPS_FK_SINT] = "sint",   [CPS_FK_F32] = "fp32",
    [CPS_FK_HEX] = "bits",      [CPS_FK_FLAGS] = "flags", [CPS_FK_DTYPE] = "dtype",
    [CPS_FK_PAIR] = "dtypes",   [CPS_FK_ALU] = "alu",     [CPS_FK_ENUM] = "enum",
    [CPS_FK_ACTFN] = "actfn",   [CPS_FK_ADDR4] = "addr4", [CPS_FK_ADDR8] = "addr8",
    [CPS_FK_IMM] = "scalar",    [CPS_FK_STR] = "text",    [CPS_FK_BYTES] = "bytes",
    [CPS_FK_TENSOR] = "tensor", [CPS_FK_DATA4D] = "data", [CPS_FK_MXMEM] = "mx"};

static void
str(cps_jsonw *w, const char *key, const char *v)
{
    cps_jsonw_key(w, key);
    cps_jsonw_str(w, v);
}

static void
num(cps_jsonw *w, const char *key, int64_t v)
{
    cps_jsonw_key(w, key);
    cps_jsonw_int(w, v);
}

static void
gens(cps_jsonw *w, unsigned mask)
{
    cps_jsonw_key(w, "generations");
    cps_jsonw_arr(w, true);
    for (unsigned g = 0; g < CPS_GENS; g++)
        if (mask >> g & 1)
            cps_jsonw_str(w, cps_gen_name((cps_gen)g));
    cps_jsonw_end_arr(w);
}

// The enum that says what values a field has, CPS_ENUMS when there is none.
static unsigned
enum_of(const cps_field_row *r)
{
    switch (r->kind) {
    case CPS_FK_ENUM:
    case CPS_FK_FLAGS:
        return r->arg;
    case CPS_FK_ALU:
        return CPS_ENUM_ALU_OPERATOR;
    case CPS_FK_ACTFN:
        return CPS_ENUM_ACT_FUNCTION;
    case CPS_FK_DTYPE:
    case CPS_FK_PAIR:
        return CPS_ENUM_DTYPE;
    default:
        return CPS_ENUMS;
    }
}

static void
field(cps_jsonw *w, const cps_field_row *r)
{
    bool pattern =
        r->kind == CPS_FK_TENSOR || r->kind == CPS_FK_DATA4D || r->kind == CPS_FK_MXMEM;
    unsigned e = enum_of(r);
    cps_jsonw_obj(w, true);
    num(w, "bits", r->bits);
    num(w, "byte", r->byte);
    str(w, "confidence", cps_sure_name(r->sure));
    if (r->dflt)
        num(w, "default", r->dflt);
    if (pattern)
        num(w, "dims", r->arg);
    if (r->dtype) {
        str(w, "dtype_field", cps_fields[r->dtype].name);
        str(w, "dtype_part",
            r->part == CPS_PART_LOW    ? "low"
            : r->part == CPS_PART_HIGH ? "high"
                                       : "whole");
    }
    if (r->arg > 1 && (r->kind == CPS_FK_UINT || r->kind == CPS_FK_SINT))
        num(w, "elements", r->arg);
    if (e < CPS_ENUMS)
        str(w, "enum", cps_enums[e].name);
    gens(w, r->gens);
    str(w, "kind", kind_key[r->kind]);
    str(w, "name", r->name);
    if (r->source)
        str(w, "source_field", cps_fields[r->source].name);
    if (r->when) {
        str(w, "when_field", cps_fields[r->when].name);
        num(w, "when_value", r->when_is);
    }
    if (pattern) {
        cps_jsonw_key(w, "written");
        cps_jsonw_bool(w, r->out);
    }
    cps_jsonw_end_obj(w);
}

static void
fields(cps_jsonw *w, unsigned fmt, bool unsure)
{
    cps_jsonw_key(w, "fields");
    cps_jsonw_arr(w, false);
    for (unsigned f = cps_formats[fmt].first; f < cps_formats[fmt + 1].first; f++)
        if (!unsure || cps_fields[f].sure != CPS_SURE_C)
            field(w, &cps_fields[f]);
    cps_jsonw_end_arr(w);
}

static void
rules(cps_jsonw *w, unsigned i)
{
    for (; i && cps_rule_rows[i].rule != CPS_RULES; i++) {
        const cps_rule_row *r = &cps_rule_rows[i];
        cps_buf text = {0};
        cps_rule_say(r, &text);
        cps_jsonw_obj(w, true);
        str(w, "code", cps_diag_rows[cps_rules[r->rule].code].name);
        str(w, "confidence", cps_sure_name(r->sure));
        str(w, "rule", cps_rules[r->rule].name);
        str(w, "text", text.data);
        cps_jsonw_end_obj(w);
        cps_buf_fini(&text);
    }
}

void
cps_isa_json_insn(cps_insn i, bool unsure, cps_jsonw *w)
{
    const cps_insn_row *r = &cps_insns[i];
    cps_jsonw_obj(w, false);
    str(w, "confidence", cps_sure_name(r->sure));
    str(w, "cycles", cps_tclass_doc((cps_tclass)r->timing));
    cps_jsonw_key(w, "engines");
    cps_jsonw_arr(w, true);
    for (unsigned e = 0; e < CPS_ENGINES; e++)
        if (r->engines >> e & 1)
            cps_jsonw_str(w, cps_engine_name((cps_engine)e));
    cps_jsonw_end_arr(w);
    fields(w, r->format, unsure && r->sure == CPS_SURE_C);
    str(w, "format", cps_formats[r->format].name);
    gens(w, r->gens);
    str(w, "meaning", r->doc);
    str(w, "name", r->name);
    num(w, "opcode", r->opcode);
    cps_jsonw_key(w, "opcodes");
    cps_jsonw_obj(w, true);
    for (unsigned g = 0; g < CPS_GENS; g++)
        if (r->gens >> g & 1)
            num(w, cps_gen_name((cps_gen)g), cps_isa_opcode(i, (cps_gen)g));
    cps_jsonw_end_obj(w);
    cps_jsonw_key(w, "pseudo");
    cps_jsonw_bool(w, r->pseudo);
    cps_jsonw_key(w, "rules");
    cps_jsonw_arr(w, false);
    rules(w, cps_rule_of_format(r->format));
    rules(w, cps_rule_of_insn(i));
    cps_jsonw_end_arr(w);
    if (strcmp(r->sem, "none") == 0) {
        cps_jsonw_key(w, "semantics");
        cps_jsonw_null(w);
    } else {
        str(w, "semantics", r->sem);
    }
    str(w, "source", cps_formats[r->format].source);
    cps_jsonw_end_obj(w);
}

void
cps_isa_json_format(unsigned fmt, cps_jsonw *w)
{
    const cps_format_row *r = &cps_formats[fmt];
    cps_jsonw_obj(w, false);
    str(w, "confidence", cps_sure_name(r->sure));
    fields(w, fmt, false);
    str(w, "meaning", r->doc);
    str(w, "name", r->name);
    str(w, "source", r->source);
    cps_jsonw_key(w, "used_by");
    cps_jsonw_arr(w, false);
    for (unsigned i = 1; i < CPS_INSNS; i++)
        if (cps_insns[i].format == fmt)
            cps_jsonw_str(w, cps_insns[i].name);
    cps_jsonw_end_arr(w);
    cps_jsonw_end_obj(w);
}

void
cps_isa_json_enum(unsigned e, cps_jsonw *w)
{
    cps_jsonw_obj(w, false);
    str(w, "meaning", cps_enums[e].doc);
    str(w, "name", cps_enums[e].name);
    cps_jsonw_key(w, "values");
    cps_jsonw_arr(w, false);
    for (unsigned i = cps_enums[e].first; i < cps_enums[e + 1].first; i++) {
        cps_jsonw_obj(w, true);
        gens(w, cps_enumvals[i].gens);
        str(w, "name", cps_enumvals[i].name);
        num(w, "value", cps_enumvals[i].wire);
        cps_jsonw_end_obj(w);
    }
    cps_jsonw_end_arr(w);
    cps_jsonw_end_obj(w);
}
