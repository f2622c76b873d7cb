/* Stages along lanes: maps, reductions and running sums. The lanes run along the last loop;
 * what is left over at its end is one masked step. A reduction whose last loop is reduced keeps
 * several vectors of partial results and folds them at the end; else the lanes are results
 * themselves. */
#include "codegen/host/gen.h"

#include <math.h>

enum { CHAINS = 4 }; // partial results in flight

typedef void (*point_fn)(gen *g, const host_stage *s, nest_at *at, int from);

// The smallest power of two that holds n, within a register.
static int
lanes_for(const gen *g, int64_t n)
{
    int lanes = 1;
    while (lanes < n && lanes < g->lanes)
        lanes *= 2;
    return lanes;
}

// fn for every position of loop `axis`, a vector at a time.
static void
along(gen *g, const host_stage *s, nest_at *at, int axis, int from, point_fn fn)
{
    int lanes = lanes_for(g, s->extent[axis]);
    int64_t n = s->extent[axis], whole = n / lanes * lanes;
    nest_at in = *at;
    in.axis = axis;
    if (whole) {
        loop l;
        cps_loop_open(g, &l, i64c(g, whole), lanes);
        in.iv[axis] = l.iv;
        in.lanes = lanes;
        fn(g, s, &in, from);
        cps_loop_close(g, &l);
    }
    if (n > whole) {
        in.lanes = lanes_for(g, n - whole);
        in.iv[axis] = i64c(g, whole);
        in.mask = in.lanes == n - whole ? NULL : cps_gen_lane_mask(g, in.lanes, n - whole);
        fn(g, s, &in, from);
    }
}

/* ---- maps ---- */

static void
map_point(gen *g, const host_stage *s, nest_at *at, int from)
{
    (void)from;
    V v = cps_gen_eval(g, s, at, NULL);
    cps_gen_store(g, s->to, s->dtype, &s->store, at, v);
}

static void
map_nest(gen *g, const host_stage *s, nest_at *at, int from)
{
    loop l[HOST_LOOPS];
    int last = s->nloop - 1;
    if (from > last) {
        at->lanes = 1;
        at->axis = -1;
        map_point(g, s, at, from);
        return;
    }
    for (int i = from; i < last; i++) {
        cps_loop_open(g, &l[i], i64c(g, s->extent[i]), 1);
        at->iv[i] = l[i].iv;
    }
    along(g, s, at, last, from, map_point);
    for (int i = last - 1; i >= from; i--)
        cps_loop_close(g, &l[i]);
}

void
cps_gen_transpose(gen *g, V *rows, int lanes)
{
    // swap, for each bit, the off-diagonal blocks of that size
    for (int bit = 1; bit < lanes; bit *= 2) {
        V up[64], down[64];
        for (int i = 0; i < lanes; i++) {
            up[i] = LLVMConstInt(g->i32, (unsigned)(i & bit ? i - bit + lanes : i), 0);
            down[i] = LLVMConstInt(g->i32, (unsigned)(i & bit ? i + lanes : i + bit), 0);
        }
        V mu = LLVMConstVector(up, (unsigned)lanes),
          md = LLVMConstVector(down, (unsigned)lanes);
        for (int i = 0; i < lanes; i++) {
            if (i & bit)
                continue;
            V a = rows[i], b = rows[i + bit];
            rows[i] = LLVMBuildShuffleVector(g->b, a, b, mu, "");
            rows[i + bit] = LLVMBuildShuffleVector(g->b, a, b, md, "");
        }
    }
}

// A copy whose operand is contiguous along another loop: squares, transposed in registers.
static bool
transposing(const gen *g, const host_stage *s, int from, int *other)
{
    int last = s->nloop - 1;
    if (s->nx != 1 || s->x[0].kind != HX_LOAD || last <= from || s->store.a[last] != 1 ||
        s->x[0].at.a[last] == 1 || s->x[0].at.a[last] == 0 || s->extent[last] < g->lanes ||
        cps_dtype_bytes(s->dtype) != 4)
        return false;
    for (int l = from; l < last; l++)
        if (s->x[0].at.a[l] == 1 && s->extent[l] >= g->lanes) {
            *other = l;
            return true;
        }
    return false;
}

static void
shift(host_aff *a, int l, int64_t by)
{
    a->c += a->a[l] * by;
}

static void
transpose_nest(gen *g, const host_stage *s, nest_at *at, int from, int other)
{
    int last = s->nloop - 1, lanes = g->lanes;
    const host_x *x = &s->x[0];
    loop l[HOST_LOOPS];
    for (int i = from; i <= last; i++) {
        bool square = i == other || i == last;
        int64_t end = square ? s->extent[i] / lanes * lanes : s->extent[i];
        cps_loop_open(g, &l[i], i64c(g, end), square ? lanes : 1);
        at->iv[i] = l[i].iv;
    }
    nest_at in = *at;
    in.lanes = lanes;
    in.axis = other;
    V block[64];
    for (int i = 0; i < lanes; i++) {
        host_aff a = x->at;
        shift(&a, last, i);
        block[i] = cps_gen_load(g, x->base, x->dtype, &a, &in);
    }
    cps_gen_transpose(g, block, lanes);
    in.axis = last;
    for (int i = 0; i < lanes; i++) {
        host_aff a = s->store;
        shift(&a, other, i);
        cps_gen_store(g, s->to, s->dtype, &a, &in, block[i]);
    }
    for (int i = last; i >= from; i--)
        cps_loop_close(g, &l[i]);
    // what does not fill squares: the end of `last`, then the end of `other`
    int ends[2] = {last, other};
    for (int k = 0; k < 2; k++) {
        int64_t whole = s->extent[ends[k]] / lanes * lanes;
        if (whole == s->extent[ends[k]])
            continue;
        host_stage part = *s;
        host_x px = *x;
        part.x = &px;
        part.extent[ends[k]] -= whole;
        shift(&px.at, ends[k], whole);
        shift(&part.store, ends[k], whole);
        if (k == 1)
            part.extent[last] = s->extent[last] / lanes * lanes;
        nest_at again = *at;
        for (int i = from; i <= last; i++)
            again.iv[i] = NULL;
        map_nest(g, &part, &again, from);
    }
}

void
cps_gen_map(gen *g, const host_stage *s, nest_at *at, int from)
{
    int other;
    if (transposing(g, s, from, &other))
        transpose_nest(g, s, at, from, other);
    else
        map_nest(g, s, at, from);
}

/* ---- reductions ---- */

// What a reduction starts from.
static V
neutral(gen *g, const host_stage *s, int lanes)
{
    cps_dtype t = s->x[s->nx - 1].dtype;
    int op = s->node->op;
    T r = cps_gen_reg(g, t);
    if (cps_dtype_is_float(t)) {
        double v = op == CPS_OP_PROD   ? 1
                   : op == CPS_OP_RMAX ? -INFINITY
                   : op == CPS_OP_RMIN ? INFINITY
                                       : 0;
        return cps_gen_const_f(g, r, lanes, v);
    }
    int bits = t == CPS_DT_BOOL ? 1 : cps_dtypes[t].bits;
    bool sign = cps_dtypes[t].kind == 'S';
    int64_t least = sign ? (int64_t)((uint64_t)1 << (bits - 1)) : 0;
    int64_t v = op == CPS_OP_PROD   ? 1
                : op == CPS_OP_RMAX ? least
                : op == CPS_OP_RMIN ? (sign ? ~least : -1)
                                    : 0;
    return cps_gen_const_i(g, r, lanes, v);
}

static V
finish(gen *g, const host_stage *s, V acc)
{
    if (s->node->op != CPS_OP_MEAN)
        return acc;
    int64_t n = 1;
    for (int l = 0; l < s->nloop; l++)
        n *= s->marked[l] ? s->extent[l] : 1;
    V count = cps_gen_const_f(g, g->f32, cps_gen_lanes(acc), (double)n);
    return LLVMBuildFDiv(g->b, acc, count, "");
}

// The lanes are results: all reduced loops inside.
static void
fold_down(gen *g, const host_stage *s, nest_at *at, int from)
{
    loop l[HOST_LOOPS];
    int order[HOST_LOOPS], n = 0;
    cps_dtype t = s->x[s->nx - 1].dtype;
    for (int i = from; i < s->nloop; i++)
        if (s->marked[i])
            order[n++] = i;
    V acc = neutral(g, s, at->lanes);
    for (int k = 0; k < n; k++) {
        cps_loop_open(g, &l[k], i64c(g, s->extent[order[k]]), 1);
        at->iv[order[k]] = l[k].iv;
        acc = cps_loop_carry(g, &l[k], acc);
    }
    acc = cps_gen_fold(g, s->node, t, acc, cps_gen_eval(g, s, at, NULL));
    for (int k = n - 1; k >= 0; k--) {
        l[k].next[0] = acc;
        cps_loop_close(g, &l[k]);
    }
    for (int k = 0; k < n; k++)
        at->iv[order[k]] = NULL;
    cps_gen_store(g, s->to, s->dtype, &s->store, at, finish(g, s, acc));
}

static V
fold_lanes(gen *g, const host_stage *s, V x)
{
    cps_dtype t = s->x[s->nx - 1].dtype;
    for (int n = cps_gen_lanes(x); n > 1; n /= 2) {
        V lo[64], hi[64], none = LLVMGetPoison(LLVMTypeOf(x));
        for (int i = 0; i < n / 2; i++) {
            lo[i] = LLVMConstInt(g->i32, (unsigned)i, 0);
            hi[i] = LLVMConstInt(g->i32, (unsigned)(i + n / 2), 0);
        }
        if (n == 2) {
            V a = LLVMBuildExtractElement(g->b, x, i64c(g, 0), "");
            V b = LLVMBuildExtractElement(g->b, x, i64c(g, 1), "");
            return cps_gen_fold(g, s->node, t, a, b);
        }
        V a = LLVMBuildShuffleVector(g->b, x, none, LLVMConstVector(lo, (unsigned)n / 2), "");
        V b = LLVMBuildShuffleVector(g->b, x, none, LLVMConstVector(hi, (unsigned)n / 2), "");
        x = cps_gen_fold(g, s->node, t, a, b);
    }
    return x;
}

// The last loop is reduced: lanes along it, several partial vectors.
static void
fold_across(gen *g, const host_stage *s, nest_at *at, int from)
{
    int last = s->nloop - 1, lanes = lanes_for(g, s->extent[last]);
    int64_t n = s->extent[last];
    cps_dtype t = s->x[s->nx - 1].dtype;
    int chains = n >= (int64_t)CHAINS * lanes ? CHAINS : 1;
    int64_t wide = n / (lanes * chains) * (lanes * chains), whole = n / lanes * lanes;
    loop l[HOST_LOOPS], in;
    int depth = 0;
    V acc[CHAINS];
    for (int c = 0; c < chains; c++)
        acc[c] = neutral(g, s, lanes);
    for (int i = from; i < last; i++) {
        if (!s->marked[i])
            continue;
        cps_loop_open(g, &l[depth], i64c(g, s->extent[i]), 1);
        at->iv[i] = l[depth].iv;
        for (int c = 0; c < chains; c++)
            acc[c] = cps_loop_carry(g, &l[depth], acc[c]);
        depth++;
    }
    nest_at p = *at;
    p.axis = last;
    p.lanes = lanes;
    if (wide) {
        cps_loop_open(g, &in, i64c(g, wide), (int64_t)lanes * chains);
        for (int c = 0; c < chains; c++)
            acc[c] = cps_loop_carry(g, &in, acc[c]);
        for (int c = 0; c < chains; c++) {
            p.iv[last] =
                c ? LLVMBuildNSWAdd(g->b, in.iv, i64c(g, (int64_t)c * lanes), "") : in.iv;
            in.next[c] = cps_gen_fold(g, s->node, t, acc[c], cps_gen_eval(g, s, &p, NULL));
        }
        cps_loop_close(g, &in);
        memcpy(acc, in.next, sizeof acc);
    }
    if (whole > wide) {
        cps_loop_open(g, &in, i64c(g, whole - wide), lanes);
        acc[0] = cps_loop_carry(g, &in, acc[0]);
        p.iv[last] = LLVMBuildNSWAdd(g->b, in.iv, i64c(g, wide), "");
        in.next[0] = cps_gen_fold(g, s->node, t, acc[0], cps_gen_eval(g, s, &p, NULL));
        cps_loop_close(g, &in);
        acc[0] = in.next[0];
    }
    if (n > whole) {
        p.iv[last] = i64c(g, whole);
        p.mask = cps_gen_lane_mask(g, lanes, n - whole);
        V x = cps_gen_eval(g, s, &p, NULL);
        x = LLVMBuildSelect(g->b, p.mask, x, neutral(g, s, lanes), "");
        acc[0] = cps_gen_fold(g, s->node, t, acc[0], x);
    }
    while (depth-- > 0) {
        memcpy(l[depth].next, acc, (size_t)chains * sizeof *acc);
        cps_loop_close(g, &l[depth]);
    }
    for (int c = 1; c < chains; c++)
        acc[0] = cps_gen_fold(g, s->node, t, acc[0], acc[c]);
    for (int i = from; i < s->nloop; i++)
        if (s->marked[i])
            at->iv[i] = NULL;
    at->lanes = 1;
    at->axis = -1;
    at->mask = NULL;
    cps_gen_store(g, s->to, s->dtype, &s->store, at, finish(g, s, fold_lanes(g, s, acc[0])));
}

/* ---- running sums ---- */

static void
scan_point(gen *g, const host_stage *s, nest_at *at, int from)
{
    (void)from;
    int axis = 0;
    while (!s->marked[axis])
        axis++;
    cps_dtype t = s->x[s->nx - 1].dtype;
    T r = vec(cps_gen_reg(g, t), at->lanes);
    loop l;
    cps_loop_open(g, &l, i64c(g, s->extent[axis]), 1);
    V acc = cps_loop_carry(g, &l, LLVMConstNull(r));
    at->iv[axis] = l.iv;
    V next = cps_gen_fold(g, s->node, t, acc, cps_gen_eval(g, s, at, NULL));
    bool before = cps_attr_int(s->node->attr, s->node->nattr, "exclusive", 0);
    cps_gen_store(g, s->to, s->dtype, &s->store, at, before ? acc : next);
    l.next[0] = next;
    cps_loop_close(g, &l);
    at->iv[axis] = NULL;
}

// Kept loops around; the last of them along the lanes when it is the innermost of all.
static void
kept_loops(gen *g, const host_stage *s, nest_at *at, int from, point_fn across, point_fn down)
{
    loop l[HOST_LOOPS];
    int last = s->nloop - 1, depth = 0;
    bool vertical = !s->marked[last];
    for (int i = from; i < s->nloop; i++) {
        if (s->marked[i] || (vertical && i == last))
            continue;
        cps_loop_open(g, &l[depth], i64c(g, s->extent[i]), 1);
        at->iv[i] = l[depth++].iv;
    }
    if (vertical) {
        along(g, s, at, last, from, down);
    } else {
        at->lanes = 1;
        at->axis = -1;
        across(g, s, at, from);
    }
    while (depth-- > 0)
        cps_loop_close(g, &l[depth]);
}

void
cps_gen_reduce(gen *g, const host_stage *s, nest_at *at, int from)
{
    kept_loops(g, s, at, from, fold_across, fold_down);
}

void
cps_gen_scan(gen *g, const host_stage *s, nest_at *at, int from)
{
    kept_loops(g, s, at, from, scan_point, scan_point);
}
