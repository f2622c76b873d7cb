/* Rewriting a graph function: the old one is read, a new one is built.
 *
 * Nodes are visited in order. A rule may look backwards through the old function as far as it
 * likes (cps_rw_def), emit new nodes through the builder, and say with cps_rw_set what stands
 * for an old value; when it declines, the node is copied. Inner nodes of a pattern are copied
 * too and die in the next clean-up when nothing else uses them. */
#ifndef CPS_LOWER_REWRITE_H
#define CPS_LOWER_REWRITE_H

#include "ir/build.h"

typedef struct cps_rw {
    cps_module *m;
    const cps_func *old;
    cps_builder b;  /* of the new function; b.from follows the node at hand */
    cps_val *map;   /* old value -> new value, 0: not yet */
    uint32_t *uses; /* old value -> uses by nodes and outputs */
    cps_arena *tmp; /* dies with the rewrite */
    void *user;
    unsigned changes; /* rules that fired */
} cps_rw;

/* True: handled, every result was set. */
typedef bool (*cps_rw_rule)(cps_rw *w, const cps_node *n);

/* One sweep over `f`, in place. The count of rules fired goes to *changes (may be NULL). False
 * after diagnostics. */
bool cps_rewrite(cps_module *m, cps_func *f, cps_rw_rule rule, void *user, cps_diags *d,
                 unsigned *changes);

/* ---- looking at the old function ---- */
const cps_node *cps_rw_def(const cps_rw *w, cps_val v); /* NULL for inputs and 0 */
/* The node that defines v when it is `op`, else NULL. */
const cps_node *cps_rw_is(const cps_rw *w, cps_val v, cps_op op);
static inline const cps_type *
cps_rw_type(const cps_rw *w, cps_val v)
{
    return &w->old->vals.data[v].type;
}
const cps_const *cps_rw_const(const cps_rw *w, cps_val v);
/* v is a constant whose elements are all equal, perhaps behind reshape, broadcast or cast. */
bool cps_rw_uniform(const cps_rw *w, cps_val v, double *out);
/* v is uniform and equals x to fp32 precision (relative 1e-6). */
bool cps_rw_near(const cps_rw *w, cps_val v, double x);

/* ---- building the new one ---- */
static inline cps_val
cps_rw_new(const cps_rw *w, cps_val old)
{
    return w->map[old];
}
static inline const cps_type *
cps_rw_new_type(const cps_rw *w, cps_val v)
{
    return &w->b.f->vals.data[v].type;
}
/* `v` (new) stands for `old`; gives it the name. False when v is 0. */
bool cps_rw_set(cps_rw *w, cps_val old, cps_val v);
/* Copies the node with mapped operands. */
void cps_rw_copy(cps_rw *w, const cps_node *n);
/* A node of one result with the given operands (new) and the attributes of `like`. */
cps_val cps_rw_like(cps_rw *w, const cps_node *like, int nin, const cps_val *in);
cps_val cps_rw_reshape(cps_rw *w, cps_val v, int rank,
                       const int64_t *dim); /* v when it is so */
/* The same data under a constant of another shape or type (bytes are not copied). */
cps_val cps_rw_const_as(cps_rw *w, const cps_const *c, const void *data, cps_type t);
/* Joins provenance texts, each name once, in order. */
const char *cps_rw_from(cps_rw *w, int n, const cps_node *const *nodes);

#endif
