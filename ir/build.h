/* Checked construction of graph functions: every call infers the result types, reports misuse
 * to the sink (E7xxx with the builder's current place) and then yields 0. Ops on a 0 value
 * yield 0 silently, so one mistake gives one message. */
#ifndef CPS_IR_BUILD_H
#define CPS_IR_BUILD_H

#include "ir/ir.h"

typedef struct cps_builder {
    cps_module *m;
    cps_func *f;
    cps_diags *d;
    cps_span loc;     /* given to the nodes made */
    const char *from; /* provenance given to the nodes made */
} cps_builder;

cps_val cps_b_input(cps_builder *b, const char *name, cps_type t);
void cps_b_output(cps_builder *b, const char *name, cps_val v);

/* `data` must outlive the module (copy into its arena first when it does not). */
cps_val cps_b_const(cps_builder *b, cps_type t, const void *data, const char *name);
cps_val cps_b_scalar(cps_builder *b, cps_dtype t, double v);              /* rank 0 */
cps_val cps_b_ints(cps_builder *b, cps_dtype t, int n, const int64_t *v); /* rank 1 */

/* The general form: one op with attributes; all results in outs (row's nout). */
bool cps_b_node(cps_builder *b, cps_op op, int nin, const cps_val *in, int nattr,
                const cps_attr *attr, cps_val *outs);
/* A call of a registry operator: result types are given (the registry inferred them). */
bool cps_b_call(cps_builder *b, const char *callee, int nin, const cps_val *in, int nattr,
                const cps_attr *attr, int nout, const cps_type *types, cps_val *outs);

cps_val cps_b_unary(cps_builder *b, cps_op op, cps_val x);
cps_val cps_b_binary(cps_builder *b, cps_op op, cps_val x, cps_val y);
cps_val cps_b_select(cps_builder *b, cps_val c, cps_val x, cps_val y);
cps_val cps_b_cast(cps_builder *b, cps_val x, cps_dtype t);
cps_val cps_b_reduce(cps_builder *b, cps_op op, cps_val x, int n, const int64_t *axes,
                     bool keep);
cps_val cps_b_matmul(cps_builder *b, cps_val x,
                     cps_val y); /* batched, NumPy rules, rank >= 2 */
cps_val cps_b_reshape(cps_builder *b, cps_val x, int rank, const int64_t *dim);
cps_val cps_b_transpose(cps_builder *b, cps_val x, const int64_t *perm);
cps_val cps_b_broadcast(cps_builder *b, cps_val x, int rank, const int64_t *dim);
cps_val cps_b_slice(cps_builder *b, cps_val x, const int64_t *start, const int64_t *stop,
                    const int64_t *step); /* one of each per axis; step may be negative */
cps_val cps_b_concat(cps_builder *b, int n, const cps_val *x, int axis);
cps_val cps_b_gather(cps_builder *b, cps_val x, cps_val index, int axis);

static inline const cps_type *
cps_b_type(const cps_builder *b, cps_val v)
{
    return &b->f->vals.data[v].type;
}

#endif
