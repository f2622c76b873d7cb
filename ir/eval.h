/* Inside the evaluator: the state of a run and one function per family of ops. */
#ifndef CPS_IR_EVAL_H
#define CPS_IR_EVAL_H

#include "ir/ir.h"

typedef struct cps_ev {
    cps_arena *a; /* of the node being evaluated */
    const cps_eval_opts *o;
    const cps_node *n;
    cps_diags *d;
} cps_ev;

bool cps_ev_fail(const cps_ev *e, const char *fmt, ...) CPS_PRINTF(2, 3); /* E7108 */

/* Both carriers have 8 bytes an element; movers see raw words. */
static inline uint64_t *
cps_ev_words(const cps_tensor *t)
{
    return t->f ? (uint64_t *)(void *)t->f : (uint64_t *)(void *)t->i;
}
static inline bool
cps_ev_flag(const cps_node *n, const char *key)
{
    return cps_attr_int(n->attr, n->nattr, key, 0) != 0;
}

/* out->type is set and storage allocated; floats may still carry more precision than `fp32`
 * mode allows, integers more width than their dtype: the driver rounds and wraps afterwards. */
typedef bool (*cps_ev_fn)(cps_ev *e, const cps_tensor *in, cps_tensor *out);
bool cps_ev_unary(cps_ev *e, const cps_tensor *in, cps_tensor *out);
bool cps_ev_binary(cps_ev *e, const cps_tensor *in, cps_tensor *out);
bool cps_ev_cast(cps_ev *e, const cps_tensor *in, cps_tensor *out);
bool cps_ev_select(cps_ev *e, const cps_tensor *in, cps_tensor *out);
bool cps_ev_reduce(cps_ev *e, const cps_tensor *in, cps_tensor *out);
bool cps_ev_matmul(cps_ev *e, const cps_tensor *in, cps_tensor *out);
bool cps_ev_shape(cps_ev *e, const cps_tensor *in, cps_tensor *out);
bool cps_ev_index(cps_ev *e, const cps_tensor *in, cps_tensor *out);
bool cps_ev_scan(cps_ev *e, const cps_tensor *in, cps_tensor *out);

/* Splits [0, n) into one contiguous piece a thread, none smaller than `grain`, and runs them.
 * What a piece computes may not depend on the split, so results never depend on the thread
 * count. */
void cps_ev_parallel(int threads, int64_t n, int64_t grain,
                     void (*fn)(void *ctx, int64_t lo, int64_t hi), void *ctx);

/* Row-major strides in elements of `t` seen through the axes of `as` (NumPy broadcasting: 0
 * where an axis is missing or has extent 1). */
void cps_ev_strides(const cps_type *t, const cps_type *as, int64_t stride[CPS_MAX_RANK]);

/* A walk over rank axes with up to three strided operands, axes merged where they are
 * contiguous in all of them; the last axis is the inner loop. */
typedef struct cps_ev_walk {
    int rank, nop;
    int64_t dim[CPS_MAX_RANK];
    int64_t stride[3][CPS_MAX_RANK];
} cps_ev_walk;

void cps_ev_walk_init(cps_ev_walk *w, const cps_type *shape, int nop,
                      int64_t stride[][CPS_MAX_RANK]);
/* Offsets of flat position `at`, and how many elements remain in its inner row. */
int64_t cps_ev_walk_at(const cps_ev_walk *w, int64_t at, int64_t offset[3]);

#endif
