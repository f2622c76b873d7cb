/* One call of an operator, made concrete: what the registry selects for, what a leaf is traced
 * with, and what the trace cache keys on. Nothing here depends on names in a model, on paths or
 * on addresses. */
#ifndef CPS_KERNELS_INSTANCE_H
#define CPS_KERNELS_INSTANCE_H

#include "codegen/isa/target.h"
#include "ir/ir.h"

typedef struct cps_operand {
    const char *name;   /* the op's operand name */
    bool present;       /* optional operands may be absent */
    cps_type type;      /* logical shape: x[M,K] even when stored [K,M] */
    uint8_t order;      /* 0: stored as declared; 1: last two axes swapped in storage (`layout`) */
} cps_operand;

#define CPS_MAX_OPERANDS 16

typedef struct cps_instance {
    const char *op;
    const cps_target *target; /* NULL: host */
    int cores;                /* 1 or 2 */
    int noperands, nresults;
    cps_operand operand[CPS_MAX_OPERANDS]; /* in the op's order */
    cps_operand result[CPS_MAX_OPERANDS];  /* filled by registry->infer */
    uint16_t nattr;
    cps_attr *attr;           /* sorted; defaults filled in by registry->infer */
} cps_instance;

/* The key components of an instance (middle-end reference 6.8): every field that may change the
 * result, dtypes and enums by name, framed so that fields cannot run together (u16 field id, u32
 * length, bytes; ids 1..63). Kernel keys are SHA-256 over such components. */
void cps_instance_key(const cps_instance *i, cps_buf *parts);
/* Appends one framed component; callers use ids from 64. */
void cps_key_field(cps_buf *parts, uint16_t id, const void *bytes, uint32_t n);
/* "MB=4" */
void cps_attr_print(const cps_attr *x, cps_buf *out);
/* "matmul(x bf16[512,512], w bf16[512,512]; act=gelu) on trn2" */
void cps_instance_print(const cps_instance *i, cps_buf *out);

#endif
