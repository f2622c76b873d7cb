/* Inside the importer: the state of one import and what the operator handlers use.
 *
 * A handler turns the node at hand into base ops: it reads operands with cps_ox_in and
 * cps_ox_in_ints, attributes with cps_ox_int and its kin, and gives results with cps_ox_give.
 * It reports with cps_ox_err and returns false; the driver stops there. Constants are folded
 * after every node, so a handler that needs a shape or an axis simply asks for the constant.
 * Builder calls pass 0 on, so a chain of them is checked once, by cps_ox_give. */
#ifndef CPS_ONNX_IMPORT_H
#define CPS_ONNX_IMPORT_H

#include "frontend/onnx/model.h"
#include "frontend/onnx/onnx.h"
#include "ir/build.h"
#include "runtime/base/map.h"

/* No tensor of a model may have more elements (2^38 fp32 elements are 1 TiB). */
#define CPS_OX_MAX_COUNT ((int64_t)1 << 38)

typedef struct cps_ox cps_ox;
typedef struct cps_ox_row cps_ox_row;
typedef bool (*cps_ox_fn)(cps_ox *m, const cps_ox_row *r);

struct cps_ox_row {
    cps_onnx_row pub;
    cps_ox_fn fn;
    cps_op base; /* for handlers that many rows share */
};

struct cps_ox {
    cps_arena *arena;
    cps_arena *scratch; /* emptied after each use */
    cps_diags *d;
    const cps_onnx_opts *o;
    const char *path, *folder;
    const cps_onnx_model *g;
    cps_builder b;
    int opset;              /* of the default domain */
    cps_map vals;           /* name -> cps_val */
    cps_map info;           /* name -> index + 1 of model->info */
    cps_map external;       /* location -> index + 1 of o->files */
    const cps_onnx_node *n; /* the node at hand and its position */
    uint32_t at;
    unsigned long long narrowed; /* binary64 elements that fp32 does not hold exactly */
};

/* ---- the node at hand (node.c) ---- */
/* "'m.onnx': node 'name' (Op, #12): ..." Always false. */
bool cps_ox_err(cps_ox *m, cps_code code, const char *fmt, ...) CPS_PRINTF(3, 4);
bool cps_ox_given(const cps_ox *m, unsigned i); /* the operand is there and not left empty */
cps_val cps_ox_in(cps_ox *m, unsigned i);       /* 0 when absent */
static inline const cps_type *
cps_ox_type(cps_ox *m, cps_val v)
{
    return cps_b_type(&m->b, v);
}
/* Result i of the node. False when v is 0 (already reported) or too large. */
bool cps_ox_give(cps_ox *m, unsigned i, cps_val v);

/* Attributes. False after a diagnostic when the kind is wrong. */
const cps_onnx_attr *cps_ox_attr(const cps_ox *m, const char *name);
bool cps_ox_int(cps_ox *m, const char *name, int64_t dflt, int64_t *out);
bool cps_ox_float(cps_ox *m, const char *name, double dflt, double *out);
bool cps_ox_str(cps_ox *m, const char *name, const char *dflt, const char **out);
bool cps_ox_ints(cps_ox *m, const char *name, cps_i64vec *out, bool *given);
/* The attribute `name` as an axis of a tensor of `rank`, made non-negative. `past` allows the
 * position after the last axis. */
bool cps_ox_axis(cps_ox *m, const char *name, int64_t dflt, int rank, bool past, int *out);
bool cps_ox_fix_axis(cps_ox *m, int64_t axis, int rank, int *out);
/* mask[axis] for each axis; repeated and out-of-range ones are errors. */
bool cps_ox_mask(cps_ox *m, const cps_i64vec *axes, int rank, bool *mask);

/* Constants. */
const cps_const *cps_ox_const(cps_ox *m, cps_val v); /* NULL when not a constant */
/* All elements of a constant integer operand; `what` names it in the error. */
bool cps_ox_in_ints(cps_ox *m, unsigned i, const char *what, cps_i64vec *out);
bool cps_ox_in_scalar(cps_ox *m, unsigned i, const char *what, double *out);

/* ---- small builders (node.c) ---- */
cps_val cps_ox_scalar_like(cps_ox *m, cps_val x, double v);    /* rank 0, dtype of x */
bool cps_ox_shape_ok(cps_ox *m, int rank, const int64_t *dim); /* rank and count in bounds */
cps_val cps_ox_reshape(cps_ox *m, cps_val x, int rank, const int64_t *dim);
cps_val cps_ox_broadcast(cps_ox *m, cps_val x, int rank, const int64_t *dim);
cps_val cps_ox_node(cps_ox *m, cps_op op, int nin, const cps_val *in, int nattr,
                    const cps_attr *attr);
cps_val cps_ox_fp32(cps_ox *m, cps_val x); /* x, cast unless it is fp32 */
cps_val cps_ox_bin(cps_ox *m, cps_op op, cps_val x, cps_val y);
cps_val cps_ox_bin_s(cps_ox *m, cps_op op, cps_val x,
                     double s); /* with a scalar of x's dtype */
cps_val cps_ox_un(cps_ox *m, cps_op op, cps_val x);

/* ---- tensors (tensor.c) ---- */
/* ONNX number to dtype; double is given as fp32. NONE when not supported. */
cps_dtype cps_ox_dtype(int32_t onnx);
const char *cps_ox_dtype_name(int32_t onnx);
/* A TensorProto as a constant of the module. 0 after a diagnostic. */
cps_val cps_ox_tensor(cps_ox *m, const cps_onnx_tensor *t, const char *name);

/* ---- folding (fold.c) ---- */
/* Evaluates the nodes from `first` on whose operands are constants and whose results are small,
 * and makes constants of them. */
bool cps_ox_fold(cps_ox *m, uint32_t first);

/* ---- handlers: op_<name> of onnx.def is cps_ox_op_<name> ---- */
#define CPS_ONNX(domain, name, since, until, lo, hi, fn, base, note)                           \
    bool cps_ox_##fn(cps_ox *m, const cps_ox_row *r);
#include "frontend/onnx/onnx.def"

#endif
