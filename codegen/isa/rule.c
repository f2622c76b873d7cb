/* Tables made from rule.def, and what a row says in words. */
#include "codegen/isa/verify.h"

#include <string.h>

/* ---- kinds ---- */

const cps_rule_kind cps_rules[CPS_RULES] = {
#define CPS_RULE(id, c, at, s, text)                                                           \
    [CPS_RULE_##                                                                               \
        id] = {.name = #id, .code = CPS_##c, .step = at, .sure = CPS_SURE_##s, .doc = text},
#include "codegen/isa/rule.def"
};

/* ---- rows, numbered by their line ---- */

#define GLUE2(a, b) a##b
#define GLUE(a, b) GLUE2(a, b)
#define ROW GLUE(row_, __LINE__)

enum {
    row_none,
#define CPS_OF(id) ROW,
#define CPS_OF_FORMAT(id) ROW,
#define CPS_NEEDS(...) ROW,
#define CPS_ALIKE(...) ROW,
#define CPS_COUNT(...) ROW,
#define CPS_JOIN(...) ROW,
#include "codegen/isa/rule.def"
    row_end
};

#define HEAD                                                                                   \
    {                                                                                          \
        .rule = CPS_RULES                                                                      \
    }
const cps_rule_row cps_rule_rows[] = {
    HEAD,
#define CPS_OF(id) HEAD,
#define CPS_OF_FORMAT(id) HEAD,
#define CPS_NEEDS(fmt, id, r, x, y, s)                                                         \
    {.rule = CPS_RULE_##r, .sure = CPS_SURE_##s, .f = CPS_F_##fmt##_##id, .a = x, .b = y},
#define CPS_ALIKE(fmt, id, other, r, s)                                                        \
    {.rule = CPS_RULE_##r,                                                                     \
     .sure = CPS_SURE_##s,                                                                     \
     .f = CPS_F_##fmt##_##id,                                                                  \
     .g = CPS_F_##fmt##_##other},
#define CPS_COUNT(relation, s)                                                                 \
    {.rule = CPS_RULE_COUNT,                                                                   \
     .sure = CPS_SURE_##s,                                                                     \
     .fn = cps_count_##relation,                                                               \
     .name = #relation},
#define CPS_JOIN(check, r, s)                                                                  \
    {.rule = CPS_RULE_##r, .sure = CPS_SURE_##s, .fn = cps_join_##check, .name = #check},
#include "codegen/isa/rule.def"
    HEAD,
};
const unsigned cps_rule_row_count = row_end;

/* ---- groups ---- */

static const uint16_t of_insn[CPS_INSNS] = {
#define CPS_OF(id) [CPS_INSN_##id] = ROW,
#include "codegen/isa/rule.def"
};

static const uint16_t of_format[CPS_FORMATS] = {
#define CPS_OF_FORMAT(id) [CPS_FMT_##id] = ROW,
#include "codegen/isa/rule.def"
};

// Heads in a row share the rows behind the last one.
static unsigned
behind_heads(unsigned i)
{
    if (!i)
        return 0;
    while (i < row_end && cps_rule_rows[i].rule == CPS_RULES)
        i++;
    return i;
}

unsigned
cps_rule_of_insn(cps_insn i)
{
    return behind_heads(of_insn[i]);
}

unsigned
cps_rule_of_format(unsigned format)
{
    return behind_heads(of_format[format]);
}

/* ---- words ---- */

static void
list(cps_buf *out, const char *sep, bool *some)
{
    if (*some)
        cps_buf_puts(out, sep);
    *some = true;
}

static void
say_value(const cps_field_row *f, unsigned v, cps_buf *out)
{
    const char *name = f->kind == CPS_FK_ALU    ? cps_alu_name(v)
                       : f->kind == CPS_FK_ENUM ? cps_isa_value_name((cps_isa_enum)f->arg, v)
                       : f->kind == CPS_FK_DTYPE && cps_isa_dtype(v)
                           ? cps_dtype_name(cps_isa_dtype(v))
                           : NULL;
    if (name)
        cps_buf_puts(out, name);
    else
        cps_buf_printf(out, "%u", v);
}

static void
say_set(const cps_field_row *f, uint64_t set, cps_buf *out)
{
    bool some = false;
    for (unsigned v = 0; v < 64; v++)
        if (set >> v & 1) {
            list(out, ", ", &some);
            say_value(f, v, out);
        }
}

static void
say_tags(uint64_t set, cps_buf *out)
{
    bool some = false;
    for (unsigned v = 0; v < 32; v++)
        if (set >> v & 1 && cps_isa_dtype(v)) {
            list(out, ", ", &some);
            cps_buf_puts(out, cps_dtype_name(cps_isa_dtype(v)));
        }
}

static void
say_classes(uint64_t set, cps_buf *out)
{
    static const char *const word[] = {
        NULL, NULL, "bitwise", NULL, "arithmetic", "arithmetic with conditions", "integer"};
    bool some = false;
    for (unsigned c = 0; c < cps_countof(word); c++)
        if (set >> c & 1 && word[c]) {
            list(out, " or ", &some);
            cps_buf_puts(out, word[c]);
        }
}

static const char *
relation(const char *name)
{
    static const struct {
        const char *name, *text;
    } words[] = {
#define CPS_RELATION(id, text) {#id, text},
#include "codegen/isa/rule.def"
    };
    for (size_t i = 0; i < cps_countof(words); i++)
        if (strcmp(words[i].name, name) == 0)
            return words[i].text;
    return name;
}

void
cps_rule_say(const cps_rule_row *r, cps_buf *out)
{
    const cps_field_row *f = &cps_fields[r->f];
    switch ((unsigned)r->rule) {
    case CPS_RULE_ONE_OF:
        cps_buf_printf(out, "%s is ", f->name);
        say_set(f, r->a, out);
        break;
    case CPS_RULE_RANGE:
        if (r->a == r->b)
            cps_buf_printf(out, "%s is 0x%llx", f->name, (unsigned long long)r->a);
        else
            cps_buf_printf(out, "%s is %llu to %llu", f->name, (unsigned long long)r->a,
                           (unsigned long long)r->b);
        break;
    case CPS_RULE_MULTIPLE:
    case CPS_RULE_ALIGN8:
        cps_buf_printf(out, "%s is a multiple of %u", f->name, (unsigned)r->a);
        break;
    case CPS_RULE_REGISTER:
        cps_buf_printf(out, "%s is a register, 0 to 63%s", f->name, r->a ? ", 128 or 129" : "");
        break;
    case CPS_RULE_NAME:
        cps_buf_printf(out, "%s ends in a zero byte", f->name);
        break;
    case CPS_RULE_ZERO:
        cps_buf_printf(out, "%s is 0", f->name);
        break;
    case CPS_RULE_CLASS:
        cps_buf_printf(out, "%s is an operator of class ", f->name);
        say_classes(r->a, out);
        break;
    case CPS_RULE_TAGS:
        cps_buf_printf(out, "%s has dtype ", f->name);
        say_tags(r->a, out);
        break;
    case CPS_RULE_SAME:
        cps_buf_printf(out, "%s and %s have one dtype", f->name, cps_fields[r->g].name);
        break;
    case CPS_RULE_WIDTH:
        cps_buf_printf(out, "%s and %s have dtypes of one size", f->name,
                       cps_fields[r->g].name);
        break;
    case CPS_RULE_PLACE:
        cps_buf_printf(out, "%s lies in %s", f->name, r->a ? "PSUM" : "SBUF");
        break;
    case CPS_RULE_ELEMENTS:
        if (r->a == r->b)
            cps_buf_printf(out, "%s has %u elements", f->name, (unsigned)r->a);
        else
            cps_buf_printf(out, "%s has %u to %u elements", f->name, (unsigned)r->a,
                           (unsigned)r->b);
        break;
    case CPS_RULE_FOLLOWS:
        cps_buf_printf(out, "%s follows%s where %s is not 0", cps_insns[r->a].name,
                       r->b > 1 ? ", as often as it says," : "", f->name);
        break;
    case CPS_RULE_LENGTH:
        cps_buf_printf(out, "the length byte may be 0x%02x, too", (unsigned)r->a);
        break;
    case CPS_RULE_REFUSED:
        cps_buf_puts(out, "the shipped checker refuses it on");
        for (unsigned g = 0; g < CPS_GENS; g++)
            if (r->a >> g & 1)
                cps_buf_printf(out, " %s", cps_gen_name((cps_gen)g));
        break;
    case CPS_RULE_COUNT:
        cps_buf_puts(out, relation(r->name));
        break;
    default:
        cps_buf_puts(out, cps_rules[r->rule].doc);
    }
}
