/* What the files of the verifier share, and what its tests see of it; not for others. */
#ifndef CPS_ISA_VERIFY_H
#define CPS_ISA_VERIFY_H

#include "codegen/isa/rule.h"
#include "codegen/isa/text.h"

/* Which rules and which rows of rule.def had a finding, and whether findings came in the order
 * of the steps: for tests. */
typedef struct cps_rule_hits {
    bool rule[CPS_RULES], row[1024];
    unsigned step;
    bool disorder;
} cps_rule_hits;

struct cps_checker {
    const cps_bundle *b;
    const cps_insn_row *insn;
    cps_insn id;
    cps_gen g;
    cps_engine e;
    cps_diags *d;
    cps_span at;
    unsigned first, end;     /* fields of the format */
    const cps_rule_row *row; /* the row that is checked, NULL outside rows */
    cps_rule_hits *hits;     /* NULL outside tests */
    bool good;               /* no error so far */
};

/* A pattern of the bundle. */
typedef struct cps_operand {
    cps_field f;
    const cps_field_row *r;
    cps_ap ap;      /* MXMEM: the data's address only */
    bool tensor;    /* a pattern in memory, not an affine one */
    bool fixed;     /* address and shape are in the bundle */
    bool psum;      /* of a fixed address */
    uint64_t count; /* elements per partition */
    unsigned wire;  /* dtype tag, 0 when no field speaks for the operand */
    unsigned bytes; /* of an element; 0 when unknown */
} cps_operand;

/* The patterns of an instruction in table order. */
struct cps_operands {
    cps_operand v[5];
    unsigned n;
    const cps_operand *in[4], *out; /* out: NULL when nothing is written */
    unsigned ins;
    bool known; /* no shape comes from a register or an index */
};

/* Emits a finding of a rule with the instruction's name in front: an error or, where the row
 * (else the rule) is inferred, a warning. Clears `good` when it is an error. */
void cps_check_report(cps_checker *c, cps_rule rule, const char *fmt, ...) CPS_PRINTF(3, 4);
/* The same with the confidence of the fact at hand. */
void cps_check_report_as(cps_checker *c, cps_rule rule, unsigned sure, const char *fmt, ...)
    CPS_PRINTF(4, 5);
/* dtype tag that speaks for an operand; 0 when none does. */
unsigned cps_check_wire(const cps_checker *c, const cps_field_row *r);
/* The operand of a slot, NULL when the field is none. */
const cps_operand *cps_check_find(const cps_operands *o, unsigned f);
/* First and last byte of a pattern inside its partition. */
void cps_check_extent(const cps_operand *o, int64_t *low, int64_t *high);
/* Bytes of a partition of the generation's target. */
unsigned cps_check_partition(const cps_checker *c, bool psum);

static inline uint64_t
cps_check_get64(const cps_checker *c, cps_field f)
{
    return cps_isa_get(c->b, f);
}

static inline unsigned
cps_check_get(const cps_checker *c, cps_field f)
{
    return (unsigned)cps_isa_get(c->b, f);
}

/* Whether the field exists on the generation. */
static inline bool
cps_check_has(const cps_checker *c, unsigned f)
{
    return f >= c->first && f < c->end && (cps_fields[f].gens >> c->g & 1);
}

/* verify_field.c: steps 5 to 8 for fields and patterns of any instruction. */
void cps_check_operands(const cps_checker *c, cps_operands *o);
void cps_check_dtypes(cps_checker *c, const cps_operands *o);
void cps_check_values(cps_checker *c);
void cps_check_partitions(cps_checker *c, const cps_operands *o);
void cps_check_patterns(cps_checker *c, const cps_operands *o);
/* verify_row.c: the rows of rule.def for the instruction, of one step. */
void cps_check_rows(cps_checker *c, const cps_operands *o, unsigned step);
/* verify_pe.c: step 9. */
void cps_check_pe(cps_checker *c, const cps_operands *o);

/* The functions that COUNT and JOIN rows name: verify_count.c, verify_join.c. */
#define CPS_RELATION(id, text) cps_rule_fn cps_count_##id;
#include "codegen/isa/rule.def"
cps_rule_fn cps_join_addr_form, cps_join_bypass, cps_join_clear, cps_join_dequant,
    cps_join_dma_align, cps_join_dma_bytes, cps_join_dma_dtype, cps_join_indexed,
    cps_join_lanes, cps_join_op_pair, cps_join_pointers, cps_join_predicate, cps_join_reduce_op,
    cps_join_rsqrt, cps_join_scalars, cps_join_set_value, cps_join_shifts_stt,
    cps_join_shifts_ts, cps_join_sort_size, cps_join_threshold, cps_join_tile_cols,
    cps_join_transfer;

/* cps_isa_verify and cps_isa_verify_stream, and what they found. */
bool cps_isa_verify_hits(const cps_bundle *b, cps_gen g, cps_engine engine, cps_diags *d,
                         cps_span at, cps_rule_hits *hits);
bool cps_isa_verify_stream_hits(const cps_bundle *b, size_t n, cps_gen g, cps_diags *d,
                                const cps_span *at, cps_rule_hits *hits);

#endif
