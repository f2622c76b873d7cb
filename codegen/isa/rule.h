/* Rows of rule.def: what kinds of findings the verifier has, and what each instruction needs.
 */
#ifndef CPS_ISA_RULE_H
#define CPS_ISA_RULE_H

#include "codegen/isa/isa.h"
#include "runtime/base/diag.h"

typedef enum cps_rule {
#define CPS_RULE(id, ...) CPS_RULE_##id,
#include "codegen/isa/rule.def"
    CPS_RULES
} cps_rule;

typedef struct cps_rule_kind {
    const char *name, *doc;
    cps_code code;
    uint8_t step, sure;
} cps_rule_kind;

typedef struct cps_checker cps_checker;
typedef struct cps_operands cps_operands;
typedef void cps_rule_fn(cps_checker *c, const cps_operands *o);

/* What an instruction, or every instruction of a format, needs. */
typedef struct cps_rule_row {
    uint8_t rule; /* cps_rule; CPS_RULES: head of a group */
    uint8_t sure;
    uint16_t f, g; /* fields, CPS_F_NONE when the rule has none */
    uint64_t a, b;
    cps_rule_fn *fn;  /* COUNT and JOIN rows */
    const char *name; /* of fn: the relation */
} cps_rule_row;

extern const cps_rule_kind cps_rules[CPS_RULES];
extern const cps_rule_row cps_rule_rows[];
extern const unsigned cps_rule_row_count;

/* First row of a group, 0 when there is none; the group ends before the next head. */
unsigned cps_rule_of_insn(cps_insn i);
unsigned cps_rule_of_format(unsigned format);

/* Appends what a row says, as a sentence without its full stop. */
void cps_rule_say(const cps_rule_row *r, cps_buf *out);

#endif
