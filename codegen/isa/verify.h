/* What the files of the verifier share; not for others. */
#ifndef CPS_ISA_VERIFY_H
#define CPS_ISA_VERIFY_H

#include "codegen/isa/text.h"

typedef struct cps_checker {
    const cps_bundle *b;
    const cps_insn_row *insn;
    cps_insn id;
    cps_gen g;
    cps_engine e;
    cps_diags *d;
    cps_span at;
    unsigned first, end; /* fields of the format */
    bool good;           /* no error so far */
} cps_checker;

/* A pattern of the bundle. */
typedef struct cps_operand {
    cps_field f;
    const cps_field_row *r;
    cps_ap ap;
    bool fixed;     /* address and shape are in the bundle */
    bool psum;      /* of a fixed address */
    uint64_t count; /* elements per partition */
    unsigned wire;  /* dtype tag, 0 when no field speaks for the operand */
    unsigned bytes; /* of an element; 0 when unknown */
} cps_operand;

/* The patterns of an instruction; `known` when no shape comes from a register or an index. */
typedef struct cps_operands {
    cps_operand in[3], out;
    unsigned n; /* inputs */
    bool has_out, known;
} cps_operands;

/* Emits a finding with the instruction's name in front; clears `good` when it is an error. */
void cps_check_report(cps_checker *c, cps_code code, const char *fmt, ...) CPS_PRINTF(3, 4);
cps_operand cps_check_operand(const cps_checker *c, cps_field f);
/* First and last byte of a pattern inside its partition. */
void cps_check_extent(const cps_operand *o, int64_t *low, int64_t *high);

static inline unsigned
cps_check_get(const cps_checker *c, cps_field f)
{
    return (unsigned)cps_isa_get(c->b, f);
}

/* verify_insn.c: rules of single instructions (rule.def, and the few that are no row). */
void cps_check_insn(cps_checker *c, const cps_operands *o);
/* verify_pe.c: groups, passes and PSUM regions of LDWEIGHTS and MATMUL. */
void cps_check_pe(cps_checker *c, const cps_operands *o);

#endif
