/* Everywhere here `d` is the set's sink or one that knows the same sources.
 *
 * Calls of operators held against their declarations: dims bound, attributes typed, results
 * worked out; and leaves held against such calls: predicates, layouts, costs, parameters, cases.
 * These are the bodies of the registry's infer, candidates and minimum. */
#ifndef CPS_DSL_INSTANCE_H
#define CPS_DSL_INSTANCE_H

#include "frontend/dsl/eval.h"
#include "kernels/registry.h"

/* Binds and checks a call in place: attributes become those of the declaration (typed, defaults
 * filled in, enum members by name, sorted), results get names and types. Operands must be in the
 * op's order, absent optional ones with `present` false. Memory from `a`. False after E2310, E2211
 * or what the declaration's own expressions give. */
bool cps_dsl_infer(cps_dsl_set *s, cps_arena *a, const cps_dsl_op *op, cps_instance *i,
                   cps_diags *d);

/* What a command line or a case says of a call. */
typedef struct cps_words {
    int ndim, nwith, nattr;
    const char *const *dim; /* dimension names, and their sizes */
    const int64_t *size;
    cps_dtype dtype;        /* of all operands whose declaration names none */
    const char *const *with; /* optional operands to be present */
    const char *const *attr; /* attribute names, and their values as text */
    const char *const *text;
} cps_words;

/* A complete instance out of words. The attribute t<operand> (0 or 1) that the op does not declare
 * itself says that the operand's last two axes are stored swapped. Memory from `a`. False after
 * E2310 or E2211. */
bool cps_dsl_make(cps_dsl_set *s, cps_arena *a, const cps_dsl_op *op, const cps_words *w,
                  const cps_target *t, int cores, cps_instance *out, cps_diags *d);

/* Defines in the innermost scope of `ev` the dims, attributes and derived dims of a complete
 * instance, and absent operands as ABSENT. `ev->module` is the op's while it runs. */
bool cps_dsl_define_call(cps_eval *ev, const cps_dsl_op *op, const cps_instance *i);
/* The value of attribute `x`, of the type declared by `decl`. */
bool cps_dsl_attr_value(cps_eval *ev, const cps_ast_attr *decl, const cps_attr *x, cps_cv *out);

/* Defines operands and results as shapes, for predicates: x.dtype, x.shape, bytes(x[0, :]). The
 * hooks below know them. */
void cps_dsl_define_shapes(cps_eval *ev, const cps_dsl_op *op, const cps_instance *i);
extern const cps_eval_hooks cps_dsl_shape_hooks;

/* Holds a leaf against a complete instance: admitted, or with every reason. When the defaults of
 * the parameters are refused, the admitted combination of the lowest modelled cost is taken (up to
 * 512 are tried). `fixed` (nfixed attributes by name) pins parameters; others stay free. Out: all
 * of *c. Nothing is reported for a refusal; false only after errors in the leaf's own text. */
bool cps_dsl_candidate(cps_dsl_set *s, cps_arena *a, const cps_dsl_leaf *leaf,
                       const cps_instance *i, const cps_attr *fixed, uint16_t nfixed,
                       cps_candidate *c, cps_diags *d);

/* The parameters of a leaf for an instance, for a search. */
bool cps_dsl_params(cps_dsl_set *s, cps_arena *a, const cps_dsl_leaf *leaf, const cps_instance *i,
                    cps_param **out, uint32_t *n);

/* The shapes a leaf says it is tested at. */
typedef struct cps_dsl_case {
    uint32_t ndim, nattr;
    const char **dim;    /* dimension names */
    int64_t *size;
    const char **attr;   /* attribute names, and their values as text ("true", "gelu", "0.5") */
    const char **text;
    cps_dtype dtype;     /* CPS_DT_NONE: not given */
    int cores;           /* 0: not given */
    const char *with;    /* optional operands, blank-separated; "" for none */
    cps_span span;
} cps_dsl_case;
bool cps_dsl_cases(cps_dsl_set *s, cps_arena *a, const cps_dsl_leaf *leaf, cps_dsl_case **out,
                   uint32_t *n, cps_diags *d);

/* The cost terms that an op's body declares, for an instance; false when there are none. */
bool cps_dsl_minimum(cps_dsl_set *s, cps_arena *a, const cps_dsl_op *op, const cps_instance *i,
                     cps_costs *out, cps_diags *d);

/* SHA-256 over the text of the leaf's file and of the files it uses, directly or not. */
cps_digest cps_dsl_leaf_digest(const cps_dsl_set *s, const cps_dsl_leaf *leaf);

#endif
