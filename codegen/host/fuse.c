/* What is stored, what is read in place, what is computed where it is used; then one stage for
 * each stored value, in the order of the graph.
 *
 * Shape ops on stored values are views and cost nothing. Elementwise ops are inlined into their
 * one user; into several users when they are cheap; never where broadcasting would repeat
 * expensive mathematics. Products, scans, sorts and reductions end an expression: their results
 * are stored. A product takes a following addition along, and writes through a following
 * transpose. */
#include "codegen/host/plan.h"

#include <stdio.h>

enum { CHEAP = 2, MAX_COST = 40 };

typedef struct fuse {
    host_plan *p;
    uint32_t *slot;           // of each value: output index + 1
    const cps_node **product; // of each value: the product behind an addition
    bool *written;            // of each value: another stage writes it
    bool *given;              // of each output: the value's own memory
} fuse;

static const uint8_t op_cost[CPS_OPS] = {
    [CPS_OP_EXP] = 8,        [CPS_OP_LOG] = 10,      [CPS_OP_SQRT] = 4,
    [CPS_OP_RSQRT] = 4,      [CPS_OP_SIN] = 14,      [CPS_OP_COS] = 14,
    [CPS_OP_ARCTAN] = 10,    [CPS_OP_TANH] = 12,     [CPS_OP_ERF] = 20,
    [CPS_OP_SIGMOID] = 9,    [CPS_OP_SOFTPLUS] = 18, [CPS_OP_GELU] = 18,
    [CPS_OP_SILU] = 9,       [CPS_OP_SWISH] = 9,     [CPS_OP_GELU_TANH] = 12,
    [CPS_OP_MISH] = 12,      [CPS_OP_MOD] = 12,      [CPS_OP_POW] = 30,
    [CPS_OP_DIV] = 3,        [CPS_OP_GATHER] = 3,    [CPS_OP_GATHER_ELEMS] = 3,
    [CPS_OP_RECIPROCAL] = 3,
};

/* ---- checks ---- */

static bool
dtype_done(cps_dtype t)
{
    return strchr("SUB", cps_dtypes[t].kind) || t == CPS_DT_FP32 || t == CPS_DT_TF32 ||
           t == CPS_DT_BF16 || t == CPS_DT_FP16;
}

static void
check_type(host_plan *p, cps_val v, const char *what, cps_span at)
{
    cps_dtype t = cps_host_type(p, v)->dtype;
    if (!dtype_done(t))
        cps_error(p->d, CPS_E7202, at,
                  "%s of dtype %s: the host does fp32, tf32, bf16, fp16, integers and bool",
                  what, cps_dtype_name(t));
}

bool
cps_host_check(host_plan *p)
{
    unsigned before = cps_diags_errors(p->d);
    for (uint32_t i = 0; i < p->f->inputs.n; i++)
        check_type(p, p->f->inputs.data[i], "an input", CPS_NOSPAN);
    for (uint32_t i = 0; i < p->f->nodes.n; i++) {
        const cps_node *n = &p->f->nodes.data[i];
        if (n->op == CPS_OP_CALL) {
            cps_error(p->d, CPS_E7201, n->loc,
                      "a call of '%s' is no base op: expand it before making host code",
                      n->callee);
            continue;
        }
        for (int k = 0; k < n->nout; k++)
            check_type(p, n->out[k], cps_ops[n->op].name, n->loc);
        if (n->op != CPS_OP_CONST)
            continue;
        const cps_const *c = &p->m->consts.data[n->cst];
        int64_t off = p->offset ? p->offset[n->cst] : -1, bytes = cps_type_bytes(&c->type);
        if (off < 0 && bytes > 4096)
            cps_error(
                p->d, CPS_E7203, n->loc,
                "constant '%s' of %lld bytes has no place among the weights, and only 4096 "
                "bytes may be embedded",
                c->name ? c->name : "(unnamed)", (long long)bytes);
        if (off >= 0)
            p->weights = CPS_MAX(p->weights, off + bytes);
    }
    return cps_diags_errors(p->d) == before;
}

/* ---- kinds of values ---- */

static void
store(fuse *u, cps_val v)
{
    host_plan *p = u->p;
    host_val *h = &p->val[v];
    const cps_type *t = cps_host_type(p, v);
    h->kind = HV_STORED;
    h->base = v;
    h->off = 0;
    h->cost = 0;
    h->bytes = cps_type_bytes(t);
    cps_host_dense(t, h->stride);
    h->place = u->slot[v] ? HP_OUT : HP_SCRATCH;
    if (u->slot[v]) {
        h->index = u->slot[v] - 1;
        u->given[h->index] = true;
    }
}

static void
materialise(fuse *u, cps_val v)
{
    if (u->p->val[v].kind == HV_INLINE)
        store(u, v);
}

// A product with something to add up.
static bool
has_depth(const host_plan *p, const cps_node *n)
{
    if (n->op != CPS_OP_MATMUL)
        return false;
    const cps_type *t = cps_host_type(p, n->in[0]);
    return t->dim[t->rank - 1] > 0;
}

// A view that cannot be read further without a copy becomes a stored value.
static void
densify(fuse *u, cps_val v)
{
    host_plan *p = u->p;
    const cps_node *n = cps_host_def(p, v);
    host_val *h = &p->val[v];
    cps_val x = n && n->op == CPS_OP_TRANSPOSE ? n->in[0] : 0;
    store(u, v);
    if (!x || p->val[x].kind != HV_STORED || p->val[x].uses != 1 || u->slot[x])
        return;
    const cps_node *d = cps_host_def(p, x);
    const cps_type *t = cps_host_type(p, x);
    const int64_t *perm = cps_node_attr(n, "perm")->ints;
    if (!d || (!has_depth(p, d) && !u->product[x]) || perm[t->rank - 1] != t->rank - 1)
        return;
    // the product writes where the transposed elements belong
    host_val *from = &p->val[x];
    from->kind = HV_VIEW;
    from->base = v;
    for (int i = 0; i < t->rank; i++)
        from->stride[perm[i]] = h->stride[i];
    u->written[v] = true;
}

static bool
view_reshape(const cps_type *in, const host_val *h, const cps_type *out, int64_t *stride)
{
    // runs of operand axes with one step each, against the axes of the result
    int i = 0, o = 0;
    memset(stride, 0, (size_t)out->rank * sizeof *stride);
    if (cps_type_count(in) == 0)
        return true;
    while (i < in->rank || o < out->rank) {
        int64_t a = 1, b = 1;
        int i0 = i, o0 = o;
        while (i < in->rank && (i == i0 || a < b || in->dim[i] == 1))
            a *= in->dim[i++];
        while (o < out->rank && (b < a || out->dim[o] == 1))
            b *= out->dim[o++];
        while (a != b) {
            if (a < b && i < in->rank)
                a *= in->dim[i++];
            else if (a > b && o < out->rank)
                b *= out->dim[o++];
            else
                return false;
        }
        int64_t step = 0, extent = 1; // of the axes gone through, from the last
        for (int k = i - 1; k >= i0; k--) {
            if (in->dim[k] == 1)
                continue;
            if (extent == 1)
                step = h->stride[k];
            else if (h->stride[k] != step * extent)
                return false;
            extent *= in->dim[k];
        }
        for (int k = o - 1; k >= o0; k--) {
            stride[k] = out->dim[k] == 1 ? 0 : step;
            step *= out->dim[k];
        }
    }
    return true;
}

static bool
make_view(fuse *u, const cps_node *n)
{
    host_plan *p = u->p;
    cps_val v = n->out[0];
    const host_val *x = &p->val[n->in[0]];
    const cps_type *in = cps_host_type(p, n->in[0]), *out = cps_host_type(p, v);
    host_val w = p->val[v];
    w.kind = HV_VIEW;
    w.base = x->base;
    w.off = x->kind == HV_VIEW ? x->off : 0;
    switch (n->op) {
    case CPS_OP_TRANSPOSE: {
        const int64_t *perm = cps_node_attr(n, "perm")->ints;
        for (int i = 0; i < out->rank; i++)
            w.stride[i] = x->stride[perm[i]];
        break;
    }
    case CPS_OP_BROADCAST:
        for (int i = 0; i < out->rank; i++) {
            int k = i - (out->rank - in->rank);
            w.stride[i] = k < 0 || in->dim[k] == 1 ? 0 : x->stride[k];
        }
        break;
    case CPS_OP_SLICE: {
        const int64_t *start = cps_node_attr(n, "start")->ints;
        const int64_t *step = cps_node_attr(n, "step")->ints;
        for (int i = 0; i < out->rank; i++) {
            w.off += out->dim[i] ? start[i] * x->stride[i] : 0;
            w.stride[i] = out->dim[i] > 1 ? step[i] * x->stride[i] : 0;
        }
        break;
    }
    default:
        if (!view_reshape(in, x, out, w.stride))
            return false;
    }
    p->val[v] = w;
    return true;
}

// A whole dense view of scratch that is an output: the value moves to the output's memory.
static void
move_to_output(fuse *u, cps_val v)
{
    host_plan *p = u->p;
    host_val *h = &p->val[v];
    if (!u->slot[v] || h->kind != HV_VIEW)
        return;
    host_val *b = &p->val[h->base];
    const cps_type *t = cps_host_type(p, v);
    int64_t dense[CPS_MAX_RANK];
    cps_host_dense(t, dense);
    bool whole = h->off == 0 && cps_type_bytes(t) == b->bytes && b->place == HP_SCRATCH;
    for (int i = 0; whole && i < t->rank; i++)
        whole = t->dim[i] == 1 || h->stride[i] == dense[i];
    if (!whole)
        return;
    b->place = HP_OUT;
    b->index = u->slot[v] - 1;
    u->given[b->index] = true;
}

static void
decide_shape(fuse *u, const cps_node *n)
{
    host_plan *p = u->p;
    cps_val x = n->in[0], v = n->out[0];
    host_val *hx = &p->val[x], *hv = &p->val[v];
    const cps_type *in = cps_host_type(p, x), *out = cps_host_type(p, v);
    if (hx->kind == HV_INLINE) {
        host_aff to[CPS_MAX_RANK] = {{0}}, map[CPS_MAX_RANK];
        bool again = hv->uses > 1 || cps_type_count(out) > cps_type_count(in);
        if (u->slot[v] || (again && hx->cost > CHEAP) || hx->cost >= MAX_COST ||
            (n->op == CPS_OP_RESHAPE && !cps_host_reshape_map(in, out, to, map))) {
            store(u, x);
        } else {
            hv->kind = HV_INLINE;
            hv->cost = hx->cost + 1; // chains end, and with them recursion over them
            return;
        }
    }
    if (!make_view(u, n)) {
        densify(u, x);
        if (!make_view(u, n))
            cps_bug("a dense value has no view of another shape");
    }
    move_to_output(u, v);
}

static void
decide_elementwise(fuse *u, const cps_node *n)
{
    host_plan *p = u->p;
    cps_val v = n->out[0];
    int64_t count = cps_type_count(cps_host_type(p, v));
    uint32_t own = CPS_MAX(op_cost[n->op], 1), cost = own;
    for (int i = 0; i < n->nin; i++) {
        host_val *h = &p->val[n->in[i]];
        if (h->kind == HV_INLINE && h->cost > CHEAP &&
            count > cps_type_count(cps_host_type(p, n->in[i])))
            store(u, n->in[i]);
        cost += h->kind == HV_INLINE ? h->cost : 0;
    }
    if (cost > MAX_COST) {
        cost = own;
        for (int i = 0; i < n->nin; i++) {
            if (p->val[n->in[i]].cost > CHEAP)
                materialise(u, n->in[i]);
            cost += p->val[n->in[i]].cost;
        }
    }
    bool once = p->val[v].uses == 1 || cost <= CHEAP || n->op == CPS_OP_INDEX;
    if (u->slot[v] || !once) {
        store(u, v);
        return;
    }
    p->val[v].kind = HV_INLINE;
    p->val[v].cost = cost;
}

// x + a b: the product begins its sums at x.
static bool
take_product(fuse *u, const cps_node *n)
{
    host_plan *p = u->p;
    cps_val v = n->out[0];
    const cps_type *t = cps_host_type(p, v);
    for (int i = 0; i < 2; i++) {
        cps_val x = n->in[i], w = n->in[1 - i];
        const cps_node *d = cps_host_def(p, x);
        const host_val *hx = &p->val[x], *hw = &p->val[w];
        const cps_type *wt = cps_host_type(p, w);
        if (!d || !has_depth(p, d) || hx->kind != HV_STORED || hx->uses != 1 || u->slot[x] ||
            t->dtype != CPS_DT_FP32 || !cps_type_eq(t, cps_host_type(p, x)) ||
            (hw->kind != HV_STORED && hw->kind != HV_VIEW) || x == w)
            continue;
        int64_t step = wt->rank && wt->dim[wt->rank - 1] != 1 ? hw->stride[wt->rank - 1] : 0;
        if (step != 0 && step != 1)
            continue;
        store(u, v);
        p->val[x].kind = HV_FUSED;
        p->val[x].place = HP_NONE;
        u->product[v] = d;
        return true;
    }
    return false;
}

static void
decide(fuse *u, const cps_node *n)
{
    host_plan *p = u->p;
    switch (cps_ops[n->op].opclass) {
    case CPS_OC_CONST:
        store(u, n->out[0]);
        if (u->slot[n->out[0]])
            u->given[u->slot[n->out[0]] - 1] = false;
        p->val[n->out[0]].place = HP_CONST;
        p->val[n->out[0]].index = n->cst;
        return;
    case CPS_OC_UNARY:
    case CPS_OC_BINARY:
    case CPS_OC_TERNARY:
        if (n->op != CPS_OP_ADD || !take_product(u, n))
            decide_elementwise(u, n);
        return;
    default:
        break;
    }
    switch (n->op) {
    case CPS_OP_RESHAPE:
    case CPS_OP_TRANSPOSE:
    case CPS_OP_BROADCAST:
    case CPS_OP_SLICE:
        decide_shape(u, n);
        return;
    case CPS_OP_GATHER:
    case CPS_OP_GATHER_ELEMS:
        materialise(u, n->in[0]);
        decide_elementwise(u, n);
        return;
    case CPS_OP_INDEX:
        decide_elementwise(u, n);
        return;
    case CPS_OP_MATMUL:
        materialise(u, n->in[1]);
        // fall through
    case CPS_OP_SORT:
        materialise(u, n->in[0]);
        break;
    case CPS_OP_REPEAT:
        if (p->val[n->in[0]].cost > CHEAP)
            materialise(u, n->in[0]);
        break;
    default:
        break;
    }
    for (int k = 0; k < n->nout; k++)
        if (p->val[n->out[k]].uses)
            store(u, n->out[k]);
}

/* ---- stages ---- */

static void
identity(int rank, host_aff *map)
{
    memset(map, 0, CPS_MAX_RANK * sizeof *map);
    for (int i = 0; i < rank; i++)
        map[i].a[i] = 1;
}

// Hands a nest over, without loops of one iteration; nothing when there is no iteration at all.
static void
emit_nest(fuse *u, host_stage s, host_build *b)
{
    s.x = b->x.data;
    s.nx = b->x.n;
    for (int l = s.nloop - 1; l >= 0; l--) {
        if (s.extent[l] == 0)
            return;
        if (s.extent[l] == 1)
            cps_host_drop_loop(&s, l);
    }
    bool any = false;
    for (int l = 0; l < s.nloop; l++)
        any |= s.marked[l];
    if (s.kind == HS_REDUCE && !any)
        s.kind = HS_MAP; // of single elements
    cps_host_group(u->p, s);
}

static host_stage
nest(host_skind kind, const cps_node *n, const cps_type *t, cps_val to, cps_dtype dtype)
{
    host_stage s = {
        .kind = (uint8_t)kind, .node = n, .nloop = t->rank, .to = to, .dtype = dtype};
    for (int i = 0; i < t->rank; i++)
        s.extent[i] = t->dim[i];
    return s;
}

// The element of the value that loop l of axis l reaches, in dense memory.
static host_aff
dense_store(const cps_type *t)
{
    host_aff a = {0};
    int64_t st[CPS_MAX_RANK];
    cps_host_dense(t, st);
    for (int i = 0; i < t->rank; i++)
        a.a[i] = st[i];
    return a;
}

static void
stage_map(fuse *u, const cps_node *n)
{
    const cps_type *t = cps_host_type(u->p, n->out[0]);
    host_aff map[CPS_MAX_RANK];
    host_build b = {.p = u->p};
    host_stage s = nest(HS_MAP, n, t, n->out[0], t->dtype);
    identity(t->rank, map);
    cps_host_expr_op(&b, n, map);
    s.store = dense_store(t);
    emit_nest(u, s, &b);
}

// One immediate everywhere.
static void
stage_fill(fuse *u, const cps_node *n, const void *imm)
{
    const cps_type *t = cps_host_type(u->p, n->out[0]);
    host_build b = {.p = u->p};
    host_stage s = nest(HS_MAP, n, t, n->out[0], t->dtype);
    host_x x;
    memset(&x, 0, sizeof x);
    x.kind = HX_IMM;
    x.dtype = t->dtype;
    x.imm = imm;
    cps_vec_push(u->p->arena, &b.x, x);
    s.store = dense_store(t);
    emit_nest(u, s, &b);
}

static const void *
number(fuse *u, cps_dtype t, double v)
{
    void *p = cps_arena_alloc(u->p->arena, 8);
    cps_from_f64(t, p, v);
    return p;
}

static void
stage_reduce(fuse *u, const cps_node *n)
{
    host_plan *p = u->p;
    const cps_type *in = cps_host_type(p, n->in[0]), *out = cps_host_type(p, n->out[0]);
    const cps_attr *axes = cps_node_attr(n, "axes");
    if (cps_type_count(in) == 0) {
        double empty = n->op == CPS_OP_PROD ? 1 : n->op == CPS_OP_MEAN ? __builtin_nan("") : 0;
        stage_fill(u, n, number(u, out->dtype, empty));
        return;
    }
    host_aff map[CPS_MAX_RANK];
    host_build b = {.p = p};
    host_stage s = nest(HS_REDUCE, n, in, n->out[0], out->dtype);
    for (uint32_t i = 0; i < axes->n; i++)
        s.marked[axes->ints[i]] = true;
    identity(in->rank, map);
    cps_host_expr(&b, n->in[0], map);
    int64_t step = 1;
    for (int i = in->rank - 1; i >= 0; i--)
        if (!s.marked[i]) {
            s.store.a[i] = step;
            step *= in->dim[i];
        }
    emit_nest(u, s, &b);
}

static void
stage_scan(fuse *u, const cps_node *n)
{
    host_plan *p = u->p;
    const cps_type *t = cps_host_type(p, n->out[0]);
    int64_t axis = cps_attr_int(n->attr, n->nattr, "axis", 0);
    host_aff map[CPS_MAX_RANK];
    host_build b = {.p = p};
    host_stage s = nest(HS_SCAN, n, t, n->out[0], t->dtype);
    s.store = dense_store(t);
    identity(t->rank, map);
    if (cps_attr_int(n->attr, n->nattr, "reverse", 0)) {
        map[axis].a[axis] = -1;
        map[axis].c = t->dim[axis] - 1;
        s.store.c = (t->dim[axis] - 1) * s.store.a[axis];
        s.store.a[axis] = -s.store.a[axis];
    }
    s.marked[axis] = true;
    cps_host_expr(&b, n->in[0], map);
    if (t->dim[axis] == 1) { // exclusive sums of one element are zero
        bool zero = cps_attr_int(n->attr, n->nattr, "exclusive", 0);
        s.kind = HS_MAP;
        s.marked[axis] = false;
        if (zero) {
            stage_fill(u, n, number(u, t->dtype, 0));
            return;
        }
    }
    emit_nest(u, s, &b);
}

// Operands side by side: concat, and the operand of pad at its place.
static void
stage_part(fuse *u, const cps_node *n, cps_val x, const int64_t *at)
{
    host_plan *p = u->p;
    const cps_type *in = cps_host_type(p, x), *out = cps_host_type(p, n->out[0]);
    host_aff map[CPS_MAX_RANK];
    host_build b = {.p = p};
    host_stage s = nest(HS_MAP, n, in, n->out[0], out->dtype);
    s.store = dense_store(out);
    for (int i = 0; i < in->rank; i++)
        s.store.c += at[i] * s.store.a[i];
    identity(in->rank, map);
    cps_host_expr(&b, x, map);
    emit_nest(u, s, &b);
}

static void
stage_concat(fuse *u, const cps_node *n)
{
    int64_t at[CPS_MAX_RANK] = {0}, axis = cps_attr_int(n->attr, n->nattr, "axis", 0);
    for (int i = 0; i < n->nin; i++) {
        stage_part(u, n, n->in[i], at);
        at[axis] += cps_host_type(u->p, n->in[i])->dim[axis];
    }
}

static void
stage_pad(fuse *u, const cps_node *n)
{
    host_plan *p = u->p;
    const cps_type *t = cps_host_type(p, n->out[0]);
    host_aff none[CPS_MAX_RANK] = {{0}};
    host_build b = {.p = p};
    host_stage s = nest(HS_MAP, n, t, n->out[0], t->dtype);
    cps_host_expr(&b, n->in[1], none);
    s.store = dense_store(t);
    emit_nest(u, s, &b);
    stage_part(u, n, n->in[0], cps_node_attr(n, "lo")->ints);
}

static void
stage_repeat(fuse *u, const cps_node *n)
{
    host_plan *p = u->p;
    const cps_type *in = cps_host_type(p, n->in[0]), *out = cps_host_type(p, n->out[0]);
    int64_t axis = cps_attr_int(n->attr, n->nattr, "axis", 0), st[CPS_MAX_RANK];
    int64_t times = cps_attr_int(n->attr, n->nattr, "n", 1);
    host_aff map[CPS_MAX_RANK] = {{0}};
    host_build b = {.p = p};
    host_stage s = nest(HS_MAP, n, in, n->out[0], out->dtype);
    cps_host_dense(out, st);
    // one loop more, after the axis: the repetitions
    s.nloop = in->rank + 1;
    for (int i = 0; i < in->rank; i++) {
        int l = i <= axis ? i : i + 1;
        s.extent[l] = in->dim[i];
        s.store.a[l] = i == axis ? st[i] * times : st[i];
        map[i].a[l] = 1;
    }
    s.extent[axis + 1] = times;
    s.store.a[axis + 1] = st[axis];
    cps_host_expr(&b, n->in[0], map);
    emit_nest(u, s, &b);
}

static void
stage_scatter(fuse *u, const cps_node *n)
{
    host_plan *p = u->p;
    const cps_type *t = cps_host_type(p, n->out[0]), *it = cps_host_type(p, n->in[1]);
    const cps_type *ut = cps_host_type(p, n->in[2]);
    int axis = (int)cps_attr_int(n->attr, n->nattr, "axis", 0);
    int64_t zero[CPS_MAX_RANK] = {0}, st[CPS_MAX_RANK];
    stage_part(u, n, n->in[0], zero);
    if (t->dim[axis] == 0)
        return;
    host_aff map[CPS_MAX_RANK];
    host_build b = {.p = p};
    host_stage s = nest(HS_SCATTER, n, ut, n->out[0], t->dtype);
    cps_host_dense(t, st);
    identity(ut->rank, map);
    s.index = cps_host_expr(&b, n->in[1], map + axis);
    uint32_t last = cps_host_expr(&b, n->in[2], map);
    if (last + 1 != b.x.n) // the update reads what the index read: give it a place of its own
        cps_vec_push(p->arena, &b.x, b.x.data[last]);
    for (int i = 0; i < t->rank; i++)
        if (i != axis)
            s.store.a[i < axis ? i : i + it->rank - 1] = st[i];
    s.step = st[axis];
    s.limit = t->dim[axis];
    emit_nest(u, s, &b);
}

static cps_val
work(host_plan *p, int64_t bytes)
{
    cps_val v = p->nval++;
    p->val[v] = (host_val){.kind = HV_STORED, .place = HP_SCRATCH, .base = v, .bytes = bytes};
    return v;
}

static void
stage_sort(fuse *u, const cps_node *n)
{
    host_plan *p = u->p;
    const cps_type *t = cps_host_type(p, n->in[0]);
    if (cps_type_count(t) == 0)
        return;
    int axis = (int)cps_attr_int(n->attr, n->nattr, "axis", 0);
    int64_t st[CPS_MAX_RANK];
    const host_val *h = &p->val[n->in[0]];
    host_sort *q = cps_new(p->arena, host_sort);
    cps_host_dense(t, st);
    q->n = t->dim[axis];
    q->down = cps_attr_int(n->attr, n->nattr, "descending", 0);
    q->base = h->base;
    q->off = h->kind == HV_VIEW ? h->off : 0;
    q->step = h->stride[axis];
    q->out_step = st[axis];
    for (int i = 0; i < t->rank; i++)
        if (i != axis && t->dim[i] > 1) {
            q->extent[q->nloop] = t->dim[i];
            q->from[q->nloop] = h->stride[i];
            q->to[q->nloop++] = st[i];
        }
    q->values = p->val[n->out[0]].uses ? n->out[0] : 0;
    q->order = p->val[n->out[1]].uses ? n->out[1] : 0;
    q->work = work(p, 2 * 16 * q->n);
    cps_val to = q->values ? q->values : q->order;
    cps_host_group(
        p, (host_stage){.kind = HS_SORT, .node = n, .sort = q, .to = to, .dtype = t->dtype});
}

// An operand of a product, its batch axes aligned with the result's.
static host_mat
operand(const host_plan *p, cps_val v, int nbatch, bool plain)
{
    const host_val *h = &p->val[v];
    const cps_type *t = cps_host_type(p, v);
    host_mat m = {.base = h->base, .off = h->kind == HV_VIEW ? h->off : 0};
    int64_t st[CPS_MAX_RANK + 2] = {0};
    int shift = nbatch + 2 - t->rank;
    for (int i = 0; i < t->rank; i++)
        st[i + shift] = t->dim[i] == 1 && !plain ? 0 : h->stride[i];
    m.rs = st[nbatch];
    m.cs = st[nbatch + 1];
    for (int i = 0; i < nbatch; i++)
        m.bs[i] = st[i];
    return m;
}

// Batch axes of one element go; the innermost ones merge with the rows where memory allows.
static void
simplify(host_mm *q)
{
    host_mat *all[4] = {&q->a, &q->b, &q->c, &q->add};
    int n = 0;
    for (int i = 0; i < q->nbatch; i++) {
        if (q->batch[i] == 1)
            continue;
        q->batch[n] = q->batch[i];
        for (int k = 0; k < 4; k++)
            all[k]->bs[n] = all[k]->bs[i];
        n++;
    }
    q->nbatch = n;
    while (n > 0) {
        int l = n - 1;
        bool first = q->m == 1;
        bool ok = q->b.bs[l] == 0;
        for (int k = 0; ok && k < 4; k++)
            if (k != 1 && all[k]->base && !first)
                ok = all[k]->bs[l] == all[k]->rs * q->m;
        if (!ok)
            break;
        for (int k = 0; k < 4 && first; k++)
            if (k != 1)
                all[k]->rs = all[k]->bs[l];
        q->m *= q->batch[l];
        q->nbatch = --n;
    }
}

static void
stage_matmul(fuse *u, const cps_node *n, const cps_node *sum)
{
    host_plan *p = u->p;
    cps_val out = sum ? sum->out[0] : n->out[0];
    const cps_type *t = cps_host_type(p, out), *at = cps_host_type(p, n->in[0]);
    if (cps_type_count(t) == 0)
        return;
    if (at->dim[at->rank - 1] == 0) {
        stage_fill(u, n, number(u, t->dtype, 0));
        return;
    }
    host_mm *q = cps_new(p->arena, host_mm);
    q->dtype = t->dtype;
    q->m = t->dim[t->rank - 2];
    q->n = t->dim[t->rank - 1];
    q->k = at->dim[at->rank - 1];
    q->nbatch = t->rank - 2;
    for (int i = 0; i < q->nbatch; i++)
        q->batch[i] = t->dim[i];
    q->a = operand(p, n->in[0], q->nbatch, false);
    q->b = operand(p, n->in[1], q->nbatch, false);
    q->c = operand(p, out, q->nbatch, true);
    if (sum)
        q->add =
            operand(p, sum->in[0] == n->out[0] ? sum->in[1] : sum->in[0], q->nbatch, false);
    simplify(q);
    cps_host_tile_of(q, p->lanes, p->registers);
    if (q->tile.a_bytes + q->tile.b_bytes)
        q->work = work(p, q->tile.a_bytes + q->tile.b_bytes);
    cps_host_group(
        p, (host_stage){
               .kind = HS_MATMUL, .node = n, .mm = q, .to = q->c.base, .dtype = t->dtype});
}

static void
stage(fuse *u, const cps_node *n)
{
    host_plan *p = u->p;
    cps_val v = n->out[0];
    if (n->op == CPS_OP_SORT) {
        if (p->val[n->out[0]].uses || p->val[n->out[1]].uses)
            stage_sort(u, n);
        return;
    }
    bool product = n->op == CPS_OP_MATMUL && p->val[v].kind == HV_VIEW;
    bool sum = u->product[v] && p->val[v].kind == HV_VIEW;
    if (!product && !sum && (p->val[v].kind != HV_STORED || u->written[v]))
        return;
    if (u->product[v]) {
        stage_matmul(u, u->product[v], n);
        return;
    }
    switch (n->op) {
    case CPS_OP_CONST:
        break;
    case CPS_OP_MATMUL:
        stage_matmul(u, n, NULL);
        break;
    case CPS_OP_SUM:
    case CPS_OP_MEAN:
    case CPS_OP_RMAX:
    case CPS_OP_RMIN:
    case CPS_OP_PROD:
        stage_reduce(u, n);
        break;
    case CPS_OP_CUMSUM:
        stage_scan(u, n);
        break;
    case CPS_OP_CONCAT:
        stage_concat(u, n);
        break;
    case CPS_OP_PAD:
        stage_pad(u, n);
        break;
    case CPS_OP_REPEAT:
        stage_repeat(u, n);
        break;
    case CPS_OP_SCATTER:
        stage_scatter(u, n);
        break;
    default:
        stage_map(u, n);
    }
}

// Outputs that are inputs, constants, repeated, or odd views: copied at the end.
static void
copy_outputs(fuse *u)
{
    host_plan *p = u->p;
    for (uint32_t o = 0; o < p->f->outputs.n; o++) {
        if (u->given[o])
            continue;
        cps_val v = p->f->outputs.data[o], to = work(p, 0);
        const cps_type *t = cps_host_type(p, v);
        p->val[to].place = HP_OUT;
        p->val[to].index = o;
        host_aff map[CPS_MAX_RANK];
        host_build b = {.p = p};
        host_stage s = nest(HS_MAP, NULL, t, to, t->dtype);
        identity(t->rank, map);
        cps_host_expr(&b, v, map);
        s.store = dense_store(t);
        emit_nest(u, s, &b);
    }
}

static void
count_uses(fuse *u)
{
    host_plan *p = u->p;
    const cps_func *f = p->f;
    for (uint32_t o = 0; o < f->outputs.n; o++) {
        cps_val v = f->outputs.data[o];
        p->val[v].uses++;
        if (!u->slot[v])
            u->slot[v] = o + 1;
    }
    for (uint32_t i = f->nodes.n; i-- > 0;) {
        const cps_node *n = &f->nodes.data[i];
        bool live = false;
        for (int k = 0; k < n->nout; k++)
            live |= p->val[n->out[k]].uses != 0;
        for (int k = 0; live && k < n->nin; k++)
            p->val[n->in[k]].uses++;
    }
}

static bool
live(const host_plan *p, const cps_node *n)
{
    for (int k = 0; k < n->nout; k++)
        if (p->val[n->out[k]].uses)
            return true;
    return false;
}

void
cps_host_fuse(host_plan *p)
{
    const cps_func *f = p->f;
    fuse u = {.p = p};
    p->val = cps_new_array(p->arena, host_val, f->vals.n + f->nodes.n + f->outputs.n + 1);
    p->nval = f->vals.n;
    u.slot = cps_new_array(p->arena, uint32_t, f->vals.n);
    u.product = cps_new_array(p->arena, const cps_node *, f->vals.n);
    u.written = cps_new_array(p->arena, bool, f->vals.n);
    u.given = cps_new_array(p->arena, bool, f->outputs.n + 1);
    count_uses(&u);
    for (uint32_t i = 0; i < f->inputs.n; i++) {
        cps_val v = f->inputs.data[i];
        store(&u, v);
        if (u.slot[v])
            u.given[u.slot[v] - 1] = false;
        p->val[v].place = HP_IN;
        p->val[v].index = i;
    }
    for (uint32_t i = 0; i < f->nodes.n; i++)
        if (live(p, &f->nodes.data[i]))
            decide(&u, &f->nodes.data[i]);
    for (uint32_t i = 0; i < f->nodes.n; i++)
        if (live(p, &f->nodes.data[i]))
            stage(&u, &f->nodes.data[i]);
    copy_outputs(&u);
}
