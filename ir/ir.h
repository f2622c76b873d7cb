/* The graph level: SSA tensors with static shapes, base ops and calls of registry operators.
 *
 * A module owns functions, constants and the symbols they use; everything lives in one arena
 * and refers by id. Elementwise ops broadcast as in NumPy. Every op is a row of op.def; the
 * text form, shape rules, evaluator and documentation read the same rows. A `call` names an
 * operator of the registry (a macro); selection adds the decision to it. */
#ifndef CPS_IR_IR_H
#define CPS_IR_IR_H

#include "runtime/base/diag.h"
#include "runtime/base/hash.h"
#include "runtime/base/npy.h"
#include "runtime/base/num.h"
#include "runtime/base/vec.h"

typedef uint32_t cps_val; /* index into func->vals; 0 is no value */

/* Largest tensor: keeps every count, stride and byte size far from overflow of int64. */
#define CPS_MAX_ELEMS ((int64_t)1 << 46)

typedef struct cps_type {
    cps_dtype dtype;
    int rank;
    int64_t dim[CPS_MAX_RANK];
} cps_type;

/* How an op is classed; folding, host fusion and tiling ask for it. */
typedef enum cps_opclass {
    CPS_OC_CONST,
    CPS_OC_UNARY,
    CPS_OC_BINARY,
    CPS_OC_TERNARY,
    CPS_OC_REDUCE,
    CPS_OC_SHAPE,
    CPS_OC_INDEX,
    CPS_OC_CONTRACT,
    CPS_OC_SCAN,
    CPS_OC_CALL
} cps_opclass;

typedef enum cps_op {
    CPS_OP_NONE = 0,
#define CPS_OP(id, ...) CPS_OP_##id,
#include "ir/op.def"
    CPS_OPS
} cps_op;

typedef enum cps_akind {
    CPS_A_INT,
    CPS_A_FLOAT,
    CPS_A_BOOL,
    CPS_A_STR,
    CPS_A_DTYPE,
    CPS_A_INTS
} cps_akind;

/* One attribute. Lists are kept sorted by key; keys are unique. */
typedef struct cps_attr {
    const char *key;
    cps_akind kind;
    int64_t i;     /* INT, BOOL, DTYPE */
    double f;      /* FLOAT (binary64, exact in text) */
    const char *s; /* STR */
    uint32_t n;    /* INTS */
    const int64_t *ints;
} cps_attr;

typedef struct cps_oprow {
    const char *name; /* text form */
    uint8_t nin_min, nin_max;
    uint8_t nout;
    uint8_t opclass;   /* cps_opclass */
    const char *attrs; /* blank-separated "key:kind", '?' after optional ones */
    const char *doc;
    const char *kinds; /* dtype kinds the data operands may have: letters of dtype.def */
} cps_oprow;

extern const cps_oprow cps_ops[CPS_OPS];

/* Constant data: dense elements of the type, in the arena or in a mapped file that outlives the
 * module. `digest` is filled on demand (cps_const_digest). */
typedef struct cps_const {
    cps_type type;
    const void *data;
    const char *name; /* initializer name, or NULL */
    bool hashed;
    cps_digest digest;
} cps_const;

/* What selection decided for one call (kernels reference 6.5). */
typedef struct cps_decision {
    const char *leaf;  /* NULL: none taken */
    const char *why;   /* forced | db | model | only | generic */
    const char *on;    /* "trn2" or "host" */
    int64_t cost_ns;   /* modelled */
    cps_digest digest; /* leaf digest */
    uint32_t nconfig;  /* resolved params, sorted by key */
    const cps_attr *config;
} cps_decision;

typedef struct cps_node {
    uint16_t op; /* cps_op */
    uint16_t nin, nout;
    uint16_t nattr;
    cps_val *in; /* optional operands of a call may be 0 */
    cps_val *out;
    cps_attr *attr;
    const char *callee; /* CALL: operator name; else NULL */
    uint32_t cst;       /* CONST: index into module->consts */
    cps_decision *pick; /* CALL, after selection */
    const char *from;   /* provenance: node names it was made of, or NULL */
    cps_span loc;
} cps_node;

typedef struct cps_value {
    cps_type type;
    const char *name; /* source name or NULL; printing falls back to the id */
    uint32_t def;     /* node index + 1; 0: function input */
} cps_value;

typedef struct cps_func {
    const char *name;
    CPS_VEC(cps_value) vals; /* vals.data[0] is unused */
    CPS_VEC(cps_val) inputs;
    CPS_VEC(cps_val) outputs;
    CPS_VEC(const char *) output_names;
    CPS_VEC(cps_node) nodes; /* topological order */
} cps_func;

typedef struct cps_module {
    cps_arena *arena;
    const char *name;
    CPS_VEC(cps_func *) funcs; /* funcs.data[0] is main */
    CPS_VEC(cps_const) consts;
} cps_module;

cps_module *cps_module_new(cps_arena *a, const char *name);
cps_func *cps_func_new(cps_module *m, const char *name);

/* Types. */
cps_type cps_type_make(cps_dtype t, int rank, const int64_t *dim);
/* Known dtype, rank up to CPS_MAX_RANK, extents >= 0, elements within CPS_MAX_ELEMS. Types that
 * come from input pass through here before anything is computed from them. */
bool cps_type_ok(const cps_type *t);
int64_t cps_type_count(const cps_type *t); /* product of dims, 1 for rank 0 */
int64_t cps_type_bytes(const cps_type *t);
bool cps_type_eq(const cps_type *a, const cps_type *b);
void cps_type_print(const cps_type *t, cps_buf *out); /* fp32[128,384] */

/* Attributes. */
const cps_attr *cps_attr_find(const cps_attr *a, uint32_t n, const char *key);
static inline const cps_attr *
cps_node_attr(const cps_node *n, const char *key)
{
    return cps_attr_find(n->attr, n->nattr, key);
}
int64_t cps_attr_int(const cps_attr *a, uint32_t n, const char *key, int64_t dflt);
double cps_attr_float(const cps_attr *a, uint32_t n, const char *key, double dflt);
/* Inserts or replaces, keeping the order; the vector grows in `a`. */
void cps_attr_put(cps_arena *a, cps_attr **list, uint16_t *n, cps_attr x);
cps_attr cps_attr_copy(cps_arena *a, const cps_attr *x); /* key, string and list copied too */
const char *cps_akind_name(cps_akind k);

static inline cps_attr
cps_a_int(const char *key, int64_t v)
{
    return (cps_attr){.key = key, .kind = CPS_A_INT, .i = v};
}
static inline cps_attr
cps_a_float(const char *key, double v)
{
    return (cps_attr){.key = key, .kind = CPS_A_FLOAT, .f = v};
}
static inline cps_attr
cps_a_bool(const char *key, bool v)
{
    return (cps_attr){.key = key, .kind = CPS_A_BOOL, .i = v};
}
static inline cps_attr
cps_a_str(const char *key, const char *v)
{
    return (cps_attr){.key = key, .kind = CPS_A_STR, .s = v};
}
static inline cps_attr
cps_a_dtype(const char *key, cps_dtype v)
{
    return (cps_attr){.key = key, .kind = CPS_A_DTYPE, .i = v};
}
static inline cps_attr
cps_a_ints(const char *key, uint32_t n, const int64_t *v)
{
    return (cps_attr){.key = key, .kind = CPS_A_INTS, .n = n, .ints = v};
}

const cps_digest *cps_const_digest(cps_const *c); /* type and data */
cps_op cps_op_find(const char *name);             /* CPS_OP_NONE when unknown */

/* Text. The printer is the serialiser: print(parse(print(m))) == print(m), byte for byte.
 * Constants of up to 16 elements print inline; larger ones print as `blob` with their digest,
 * and the parser asks `blob` for the data (NULL callback or NULL result: E9xxx). */
#define CPS_TEXT_INLINE 16 /* elements of a constant printed in place */
typedef const void *(*cps_blob_fn)(void *user, const cps_digest *d, size_t bytes);
void cps_ir_print(cps_module *m, cps_buf *out);
/* The same with choices: LOCS adds `loc file:begin:end`, ANON leaves out names of values,
 * module and constants, provenance and places (what digests are taken over). */
enum { CPS_IR_LOCS = 1, CPS_IR_ANON = 2 };
void cps_ir_print_opts(cps_module *m, unsigned opts, cps_buf *out);
cps_module *cps_ir_parse(cps_arena *a, const char *text, size_t n, uint32_t file, cps_diags *d,
                         cps_blob_fn blob, void *user);

/* The shape rule of an op: result types (the row's nout) out of operand types and attributes.
 * False after E7101..E7106 at `at`. Not for CONST and CALL, whose types are given. */
bool cps_ir_infer(cps_op op, uint32_t nin, const cps_type *in, uint32_t nattr,
                  const cps_attr *attr, cps_type *out, cps_diags *d, cps_span at);

/* Structure and types: SSA order, arity, attributes, inferred types match. */
bool cps_ir_verify(const cps_module *m, cps_diags *d);

/* SHA-256 over text without locations, names and provenance. */
cps_digest cps_ir_digest(cps_module *m);

/* Evaluation. Floats are carried as binary64 and, by default, never rounded between ops; `fp32`
 * rounds every float result to binary32 and accumulates in binary32 (`--ref-accumulate fp32`).
 * Integer tensors are carried as int64, exact. */
typedef struct cps_tensor {
    cps_type type;
    double *f;  /* float dtypes */
    int64_t *i; /* integer and bool dtypes */
} cps_tensor;

/* Called for `call` nodes: must fill outs (allocated in `a`). False after a diagnostic. */
typedef bool (*cps_eval_call)(void *user, cps_arena *a, const cps_node *n, const cps_tensor *in,
                              cps_tensor *out, cps_diags *d);
typedef struct cps_eval_opts {
    bool fp32;
    int threads;
    cps_eval_call call;
    void *user;
} cps_eval_opts;

bool cps_ir_eval(cps_arena *a, const cps_module *m, const cps_func *f, const cps_tensor *in,
                 cps_tensor *out, const cps_eval_opts *o, cps_diags *d);
/* Storage bytes of `type` <-> tensor. Narrowing rounds to nearest even. */
cps_tensor cps_tensor_from(cps_arena *a, const cps_type *type, const void *data);
void cps_tensor_store(const cps_tensor *t, cps_dtype as, void *dst);

#endif
