/* Inside lowering: the state of a run, the passes, and making calls. */
#ifndef CPS_LOWER_PASS_H
#define CPS_LOWER_PASS_H

#include "lower/lower.h"
#include "lower/rewrite.h"
#include "runtime/base/map.h"

typedef struct cps_lower {
    const cps_lower_opts *o;
    cps_diags *d;
    cps_diags *quiet; /* for trials whose failure is no error; cleared after use */
    /* Instances (as text) that no leaf takes: calls of them are not made again. */
    cps_map banned;
    /* Ops that map found no operator for: text -> count and origin (map.c). */
    cps_map missing;
    cps_map inexact; /* those that the engines would not compute exactly, with the reason */
    cps_arena *arena; /* of the run */
} cps_lower;

#define CPS_LOWER_PASS(stage, name, fn, doc) bool fn(cps_lower *l, cps_module *m);
#include "lower/pass.def"

/* One rule over every function of the module. */
bool cps_lower_rewrite(cps_lower *l, cps_module *m, cps_rw_rule rule, unsigned *changes);

/* Constants that no node refers to are dropped and the rest renumbered: at the end of PREPARE
 * only, callers hold on to the numbers after that. */
void cps_lower_drop_constants(cps_module *m);

/* ---- raising: one rule per pattern, tried in this order (raise.c) ---- */
bool cps_raise_attention(cps_rw *w, const cps_node *n);
bool cps_raise_softmax(cps_rw *w, const cps_node *n);
bool cps_raise_norm(cps_rw *w, const cps_node *n);
bool cps_raise_rope(cps_rw *w, const cps_node *n);
bool cps_raise_top(cps_rw *w, const cps_node *n);
bool cps_raise_mlp(cps_rw *w, const cps_node *n);
bool cps_raise_matmul(cps_rw *w, const cps_node *n);

/* ---- making calls (call.c) ---- */
typedef struct cps_call {
    const char *callee;
    int nin;
    cps_val in[CPS_MAX_OPERANDS]; /* of the new function; 0: absent */
    int nattr;
    cps_attr attr[8];
} cps_call;

/* The call, when the registry has the operator and its signature takes the operands: the first
 * result in *out. False in silence otherwise. */
bool cps_call_make(cps_rw *w, const cps_call *c, cps_val *out);
/* The same with all results, CPS_MAX_OPERANDS at most. */
bool cps_call_make_all(cps_rw *w, const cps_call *c, cps_val *out);
/* The operand names and types of an instance before inference. */
bool cps_call_bind(const cps_lower_opts *o, cps_arena *a, const char *callee, int nin,
                   const cps_type *const *types, uint16_t nattr, const cps_attr *attr,
                   cps_instance *out, cps_diags *d);
/* Makes the operator and the leaf of a text known to the registry, once (attribute `kernel`). */
bool cps_call_source(const cps_lower_opts *o, const char *callee, const char *text, cps_diags *d);
static inline cps_lower *
cps_lower_of(const cps_rw *w)
{
    return w->user;
}

/* Flattening: the shape as rows of the last axis; scalars and vectors are one row. */
void cps_rows_of(const cps_type *t, int64_t dim[2]);

#endif
