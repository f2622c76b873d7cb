/* The reference evaluator's driver: runs a function's nodes in order, hands each to its family,
 * brings results to their carrier's precision, and frees values after their last use. A node's
 * results live in an arena of its own; constants are widened at first use, so the weights of a
 * large model are never all in memory at once. What comes out lives in the caller's arena. */
#include "ir/eval.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>

#define MAX_EVAL_ELEMS ((int64_t)1 << 32)

bool
cps_ev_fail(const cps_ev *e, const char *fmt, ...)
{
    char text[256];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    cps_error(e->d, CPS_E7108, e->n->loc, "'%s': %s", cps_ops[e->n->op].name, text);
    if (e->n->from)
        cps_note(e->d, CPS_NOSPAN, "made of '%s'", e->n->from);
    return false;
}

/* ---- threads ---- */

typedef struct piece {
    void (*fn)(void *, int64_t, int64_t);
    void *ctx;
    int64_t lo, hi;
    pthread_t id;
    bool started;
} piece;

static void *
run_piece(void *p)
{
    piece *x = p;
    x->fn(x->ctx, x->lo, x->hi);
    return NULL;
}

void
cps_ev_parallel(int threads, int64_t n, int64_t grain, void (*fn)(void *, int64_t, int64_t),
                void *ctx)
{
    enum { MOST = 64 };
    piece p[MOST];
    int64_t k = CPS_MIN(CPS_MIN((int64_t)threads, (int64_t)MOST), n / CPS_MAX(grain, 1));
    if (k <= 1) {
        fn(ctx, 0, n);
        return;
    }
    for (int64_t i = 0; i < k; i++) {
        p[i] = (piece){.fn = fn, .ctx = ctx, .lo = n * i / k, .hi = n * (i + 1) / k};
        // Without a thread the piece runs here: fewer resources, same result.
        p[i].started = i && pthread_create(&p[i].id, NULL, run_piece, &p[i]) == 0;
    }
    for (int64_t i = 0; i < k; i++)
        if (!p[i].started)
            run_piece(&p[i]);
    for (int64_t i = 0; i < k; i++)
        if (p[i].started)
            pthread_join(p[i].id, NULL);
}

/* ---- walks ---- */

void
cps_ev_strides(const cps_type *t, const cps_type *as, int64_t stride[CPS_MAX_RANK])
{
    int64_t s = 1;
    memset(stride, 0, CPS_MAX_RANK * sizeof *stride);
    for (int i = t->rank - 1; i >= 0; i--) {
        stride[as->rank - t->rank + i] = t->dim[i] == 1 ? 0 : s;
        s *= t->dim[i];
    }
}

void
cps_ev_walk_init(cps_ev_walk *w, const cps_type *shape, int nop, int64_t stride[][CPS_MAX_RANK])
{
    *w = (cps_ev_walk){.nop = nop};
    for (int i = 0; i < shape->rank; i++) {
        if (shape->dim[i] == 1)
            continue;
        bool merge = w->rank > 0;
        for (int k = 0; k < nop && merge; k++)
            merge = w->stride[k][w->rank - 1] == stride[k][i] * shape->dim[i];
        if (merge) {
            w->dim[w->rank - 1] *= shape->dim[i];
        } else {
            w->dim[w->rank++] = shape->dim[i];
        }
        for (int k = 0; k < nop; k++)
            w->stride[k][w->rank - 1] = stride[k][i];
    }
    if (w->rank == 0)
        w->dim[w->rank++] = 1;
}

int64_t
cps_ev_walk_at(const cps_ev_walk *w, int64_t at, int64_t offset[3])
{
    int64_t left = 0;
    offset[0] = offset[1] = offset[2] = 0;
    for (int i = w->rank - 1; i >= 0; i--) {
        int64_t k = at % w->dim[i];
        at /= w->dim[i];
        if (i == w->rank - 1)
            left = w->dim[i] - k;
        for (int o = 0; o < w->nop; o++)
            offset[o] += k * w->stride[o][i];
    }
    return left;
}

/* ---- one node ---- */

static const cps_ev_fn by_class[] = {
    [CPS_OC_UNARY] = cps_ev_unary,     [CPS_OC_BINARY] = cps_ev_binary,
    [CPS_OC_TERNARY] = cps_ev_select,  [CPS_OC_REDUCE] = cps_ev_reduce,
    [CPS_OC_SHAPE] = cps_ev_shape,     [CPS_OC_INDEX] = cps_ev_index,
    [CPS_OC_CONTRACT] = cps_ev_matmul, [CPS_OC_SCAN] = cps_ev_scan,
};

static bool
allocate(cps_ev *e, const cps_type *type, cps_tensor *t)
{
    int64_t n = cps_type_count(type);
    *t = (cps_tensor){.type = *type};
    if (n > MAX_EVAL_ELEMS) {
        cps_error(e->d, CPS_E7106, e->n->loc,
                  "'%s' gives %lld elements, the evaluator takes 2^32", cps_ops[e->n->op].name,
                  (long long)n);
        return false;
    }
    void *p = cps_arena_raw(e->a, (size_t)(n + 1) * 8);
    if (cps_dtype_is_float(type->dtype))
        t->f = p;
    else
        t->i = p;
    return true;
}

// Floats to binary32 in `fp32` mode, integers to the width of their dtype.
static void
settle(const cps_ev *e, cps_tensor *t)
{
    int64_t n = cps_type_count(&t->type);
    unsigned bits = cps_dtypes[t->type.dtype].bits;
    char kind = cps_dtypes[t->type.dtype].kind;
    if (t->f) {
        for (int64_t i = 0; i < n && e->o->fp32; i++)
            t->f[i] = (double)(float)t->f[i];
    } else if (kind == 'S' && bits < 64) {
        for (int64_t i = 0; i < n; i++)
            t->i[i] = (int64_t)((uint64_t)t->i[i] << (64 - bits)) >> (64 - bits);
    } else if (kind == 'U' && bits < 64) {
        for (int64_t i = 0; i < n; i++)
            t->i[i] &= (int64_t)((UINT64_C(1) << bits) - 1);
    }
}

static bool
eval_call(cps_ev *e, const cps_func *f, const cps_tensor *in, cps_tensor *out)
{
    const cps_node *n = e->n;
    if (!e->o->call) {
        cps_error(e->d, CPS_E7109, n->loc, "nothing evaluates the operator '%s'", n->callee);
        return false;
    }
    for (int i = 0; i < n->nout; i++)
        out[i] = (cps_tensor){.type = f->vals.data[n->out[i]].type};
    if (!e->o->call(e->o->user, e->a, n, in, out, e->d))
        return false;
    for (int i = 0; i < n->nout; i++)
        cps_assert(out[i].f || out[i].i);
    return true;
}

static bool
eval_node(cps_ev *e, const cps_func *f, const cps_tensor *in, cps_tensor *out)
{
    const cps_node *n = e->n;
    if (n->op == CPS_OP_CALL)
        return eval_call(e, f, in, out);
    for (int i = 0; i < n->nout; i++)
        if (!allocate(e, &f->vals.data[n->out[i]].type, &out[i]))
            return false;
    if (!(n->op == CPS_OP_CAST ? cps_ev_cast : by_class[cps_ops[n->op].opclass])(e, in, out))
        return false;
    for (int i = 0; i < n->nout; i++)
        settle(e, &out[i]);
    return true;
}

/* ---- the run ---- */

typedef struct slot {
    cps_tensor t;
    cps_arena *home; // arena of the node that made it; NULL: borrowed
    uint32_t *live;  // how many results in `home` are still needed
    uint32_t uses;
} slot;

static void
drop(slot *s)
{
    if (s->home && --*s->live == 0)
        cps_arena_destroy(s->home); // `live` lives in it, too
    s->home = NULL;
    s->t.f = NULL;
    s->t.i = NULL;
}

// Copies what outlives the run.
static cps_tensor
keep(cps_arena *a, const cps_tensor *t)
{
    cps_tensor r = {.type = t->type};
    size_t n = (size_t)cps_type_count(&t->type);
    uint64_t *p = cps_arena_raw(a, (n + 1) * 8);
    memcpy(p, cps_ev_words(t), n * 8);
    if (t->f)
        r.f = (double *)(void *)p;
    else
        r.i = (int64_t *)(void *)p;
    return r;
}

static bool
load_const(const cps_module *m, const cps_node *n, slot *s, cps_diags *d)
{
    const cps_const *c = &m->consts.data[n->cst];
    if (cps_type_count(&c->type) > MAX_EVAL_ELEMS) {
        cps_error(d, CPS_E7106, n->loc, "a constant of %lld elements, the evaluator takes 2^32",
                  (long long)cps_type_count(&c->type));
        return false;
    }
    s->home = cps_arena_create();
    s->live = cps_new(s->home, uint32_t);
    *s->live = 1;
    s->t = cps_tensor_from(s->home, &c->type, c->data);
    return true;
}

static bool
run(const cps_module *m, const cps_func *f, slot *slots, const cps_eval_opts *o, cps_diags *d)
{
    cps_tensor in[256], out[256];
    for (uint32_t k = 0; k < f->nodes.n; k++) {
        const cps_node *n = &f->nodes.data[k];
        uint32_t wanted = 0;
        for (int i = 0; i < n->nout; i++)
            wanted += slots[n->out[i]].uses > 0;
        if (n->op == CPS_OP_CONST || !wanted)
            continue;
        for (int i = 0; i < n->nin; i++) {
            slot *s = &slots[n->in[i]];
            uint32_t def = f->vals.data[n->in[i]].def;
            if (n->in[i] && !s->t.f && !s->t.i && !load_const(m, &f->nodes.data[def - 1], s, d))
                return false;
            in[i] = s->t;
        }
        cps_ev e = {.a = cps_arena_create(), .o = o, .n = n, .d = d};
        uint32_t *live = cps_new(e.a, uint32_t);
        *live = wanted;
        bool ok = eval_node(&e, f, in, out);
        for (int i = 0; i < n->nout && ok; i++)
            if (slots[n->out[i]].uses) {
                slots[n->out[i]].t = out[i];
                slots[n->out[i]].home = e.a;
                slots[n->out[i]].live = live;
            }
        if (!ok) {
            cps_arena_destroy(e.a);
            return false;
        }
        for (int i = 0; i < n->nin; i++)
            if (n->in[i] && --slots[n->in[i]].uses == 0)
                drop(&slots[n->in[i]]);
    }
    return true;
}

// Backwards, so that only what outputs need is counted, and thus evaluated.
static void
count_uses(const cps_func *f, slot *slots)
{
    for (uint32_t i = 0; i < f->outputs.n; i++)
        slots[f->outputs.data[i]].uses++;
    for (uint32_t k = f->nodes.n; k--;) {
        const cps_node *n = &f->nodes.data[k];
        bool wanted = false;
        for (int i = 0; i < n->nout; i++)
            wanted = wanted || slots[n->out[i]].uses;
        for (int i = 0; i < n->nin && wanted; i++)
            slots[n->in[i]].uses++;
    }
}

bool
cps_ir_eval(cps_arena *a, const cps_module *m, const cps_func *f, const cps_tensor *in,
            cps_tensor *out, const cps_eval_opts *o, cps_diags *d)
{
    static const cps_eval_opts plain = {.threads = 1};
    for (uint32_t i = 0; i < f->inputs.n; i++)
        if (!cps_type_eq(&in[i].type, &f->vals.data[f->inputs.data[i]].type)) {
            cps_error(d, CPS_E1006, CPS_NOSPAN,
                      "input %u has another type than the function takes", i);
            return false;
        }
    cps_arena *own = cps_arena_create();
    slot *slots = cps_new_array(own, slot, f->vals.n);
    count_uses(f, slots);
    for (uint32_t i = 0; i < f->inputs.n; i++)
        slots[f->inputs.data[i]].t = in[i];
    bool ok = run(m, f, slots, o ? o : &plain, d);
    for (uint32_t i = 0; i < f->outputs.n && ok; i++) {
        slot *s = &slots[f->outputs.data[i]];
        uint32_t def = f->vals.data[f->outputs.data[i]].def;
        ok = s->t.f || s->t.i || load_const(m, &f->nodes.data[def - 1], s, d);
        if (ok)
            out[i] = keep(a, &s->t);
    }
    for (uint32_t v = 0; v < f->vals.n; v++)
        drop(&slots[v]);
    cps_arena_destroy(own);
    return ok;
}
