/* Regions: connected ops that engines compute element by element become one kernel each, so that
 * no value between them goes to memory.
 *
 * In: a graph after raising and fusing: what is left are ops that no operator of the library
 * takes as a pattern. Out: calls of operators that this pass writes, in the kernel language, with
 * a leaf for the target (region_op.c, region_leaf.c). A call carries the text, attribute `kernel`, so
 * the graph's text stands alone. Holds:
 *   - a region is convex: no path leaves it and comes back, also not through another region;
 *   - every node of it sees one iteration space; a value that varies along some axes only is
 *     known by the intervals of row-major strides it covers, which broadcasting, reductions and
 *     reshapes map one to one;
 *   - a region is worth it: it holds an op that no leaf takes, or what would be two kernels or
 *     more. One op that has a leaf of the library keeps it;
 *   - nodes are looked at from the last to the first, so equal graphs give equal regions.
 *
 * Only the order of nodes and the nodes of regions change. */
#include "lower/region.h"
#include "lower/region_embed.h"

#include "ir/pass.h"
#include "lower/map.h"

#include <math.h>
#include <stdlib.h>

#define MAX_ROUND_TRIPS 4096 // tiles of rows that the loops of one region may unroll to
#define SHORT_ROW 32
#define FEW_LOOPS 64

typedef struct group {
    CPS_VEC(uint32_t) node; // ascending once it is closed
    int64_t total, inner;   // elements; elements under a reduction, or 0
    int ncut;
    int64_t cut[CPS_MAX_RANK * 2]; // strides at which a pattern changes, ascending
    int nslice;
    int64_t slice[CPS_RG_OPERANDS][2]; // intervals that are read out of longer ones: of one axis each
} group;

typedef struct former {
    cps_lower *l;
    cps_module *m;
    cps_func *f;
    cps_rw look;        // for questions about constants
    uint32_t *first;    // value -> its users in `user`, up to first[v + 1]
    uint32_t *user;     // nodes
    bool *is_out;       // value is a result of the function
    int32_t *of;        // node -> group, or -1
    cps_embed *at;          // value -> where it lies, for results of members
    uint32_t *seen;     // node -> stamp
    uint32_t stamp;
    CPS_VEC(group) all; // closed ones
    group g;            // the one that grows
    bool closed;        // no call is opened
    bool plain;         // broadcasts stay what they are: they were put there to be kernels
    cps_arena *a;
} former;

enum { GROWING = INT32_MAX };

/* ---- where values lie ---- */

static const cps_type *
type_of(const former *w, cps_val v)
{
    return &w->f->vals.data[v].type;
}

// NumPy's alignment: the operand has an axis of the result, or one element along it.
static bool
aligned(const cps_type *out, const cps_embed *e, const cps_type *in, cps_embed *to)
{
    int64_t lo[CPS_MAX_RANK], hi[CPS_MAX_RANK];
    if (in->rank > out->rank || !cps_embed_axes(out, e, lo, hi))
        return false;
    *to = (cps_embed){0};
    for (int i = in->rank - 1; i >= 0; i--) {
        int o = i + out->rank - in->rank;
        if (in->dim[i] == out->dim[o])
            cps_embed_cover(to, lo[o], hi[o]);
    }
    return true;
}

static bool
operand_at(const former *w, const cps_node *n, int k, const cps_embed *out, cps_embed *to)
{
    const cps_type *t = type_of(w, n->in[k]);
    int64_t lo[CPS_MAX_RANK], hi[CPS_MAX_RANK];
    switch (cps_ops[n->op].opclass) {
    case CPS_OC_REDUCE:
        *to = cps_embed_whole(w->g.total);
        return cps_type_count(t) == w->g.total;
    case CPS_OC_UNARY:
        *to = *out;
        return true;
    case CPS_OC_SHAPE:
        if (n->op == CPS_OP_SLICE) // of no space that the region has
            return false;
        if (n->op == CPS_OP_RESHAPE) {
            *to = *out;
            return cps_embed_axes(t, to, lo, hi);
        }
        return aligned(type_of(w, n->out[0]), out, t, to);
    default:
        return aligned(type_of(w, n->out[0]), out, t, to);
    }
}

// A reduction takes whole rows off; `inner` is their length.
static bool
reduced_at(const former *w, const cps_node *n, cps_embed *to, int64_t *inner)
{
    const cps_attr *axes = cps_node_attr(n, "axes");
    const cps_type *t = type_of(w, n->in[0]);
    int64_t lo[CPS_MAX_RANK], hi[CPS_MAX_RANK];
    cps_embed all = cps_embed_whole(w->g.total), off = {0};
    if (cps_type_count(t) != w->g.total || !cps_embed_axes(t, &all, lo, hi))
        return false;
    *to = (cps_embed){0};
    for (int i = t->rank - 1; i >= 0; i--) {
        bool is = false;
        for (uint32_t q = 0; q < axes->n; q++)
            is = is || axes->ints[q] == i;
        cps_embed_cover(is ? &off : to, lo[i], hi[i]);
    }
    *inner = off.n == 1 && off.lo[0] == 1 ? off.hi[0] : 0;
    return *inner > 1;
}

/* ---- the strides at which patterns change ---- */

static bool
add_cut(group *g, int64_t c)
{
    int k = 0;
    while (k < g->ncut && g->cut[k] < c)
        k++;
    if (k < g->ncut && g->cut[k] == c)
        return true;
    if (g->ncut == (int)cps_countof(g->cut) || (k && c % g->cut[k - 1]) || (k < g->ncut && g->cut[k] % c))
        return false;
    memmove(&g->cut[k + 1], &g->cut[k], (size_t)(g->ncut - k) * sizeof g->cut[0]);
    g->cut[k] = c;
    g->ncut++;
    return true;
}

static bool
add_cuts(group *g, const cps_embed *e)
{
    for (int i = 0; i < e->n; i++)
        if (!add_cut(g, e->lo[i]) || !add_cut(g, e->hi[i]))
            return false;
    return true;
}

// Loops are unrolled, and a row lies on one partition: a space of very many short rows, or of a
// few very long ones that are reduced, is none for a region.
static bool
is_compact(const group *g)
{
    if (g->inner && cps_region_too_long(g->inner, g->total))
        return false;
    if (g->ncut < 3)
        return true;
    return g->total / g->cut[2] * cps_ceil_div(g->cut[2] / g->cut[1], 128) <= MAX_ROUND_TRIPS;
}

// An axis that is cut out of a longer one stays an axis, in rows that are long enough for a transfer.
static bool
add_slice(group *g, int64_t lo, int64_t hi)
{
    if (g->nslice == CPS_RG_OPERANDS || (lo == 1 && hi < SHORT_ROW) || !add_cut(g, lo) || !add_cut(g, hi))
        return false;
    g->slice[g->nslice][0] = lo;
    g->slice[g->nslice++][1] = hi;
    return true;
}

static bool
cuts_fit(const group *g)
{
    for (int i = 0; i < g->ncut; i++)
        for (int k = 0; k < g->nslice; k++)
            if (g->slice[k][0] < g->cut[i] && g->cut[i] < g->slice[k][1])
                return false;
    for (int i = 0; i < g->ncut; i++)
        if (g->inner && g->cut[i] > 1 && g->cut[i] < g->inner)
            return false;
    int axes = g->ncut - 1 + (g->inner == g->total);
    return axes <= CPS_RG_AXES && is_compact(g);
}

/* ---- growing ---- */

static const cps_node *
node_at(const former *w, uint32_t i)
{
    return &w->f->nodes.data[i];
}

static bool
is_alias(const cps_node *n)
{
    return n->op == CPS_OP_RESHAPE || n->op == CPS_OP_BROADCAST || n->op == CPS_OP_SLICE;
}

// A number that is written into the text.
static bool
is_number(const former *w, cps_val v, double *x)
{
    return cps_rw_uniform(&w->look, v, x) && !isnan(*x);
}

static bool
is_member(const former *w, cps_val v)
{
    uint32_t def = w->f->vals.data[v].def;
    return def && w->of[def - 1] == GROWING;
}

// No path leaves the growing group and comes back. Groups that are closed count as one node.
static bool
is_convex(former *w)
{
    CPS_VEC(uint32_t) stack = {0};
    uint32_t last = 0;
    w->stamp++;
    for (uint32_t i = 0; i < w->g.node.n; i++) {
        const cps_node *n = node_at(w, w->g.node.data[i]);
        last = CPS_MAX(last, w->g.node.data[i]);
        for (uint32_t u = w->first[n->out[0]]; u < w->first[n->out[0] + 1]; u++)
            if (w->of[w->user[u]] != GROWING)
                cps_vec_push(w->a, &stack, w->user[u]);
    }
    while (stack.n) {
        uint32_t q = stack.data[--stack.n];
        if (w->of[q] == GROWING)
            return false;
        if (w->seen[q] == w->stamp || (q > last && w->of[q] < 0))
            continue;
        w->seen[q] = w->stamp;
        const group *other = w->of[q] >= 0 ? &w->all.data[w->of[q]] : NULL;
        for (uint32_t i = 0; i < (other ? other->node.n : 1); i++) {
            uint32_t at = other ? other->node.data[i] : q;
            const cps_node *n = node_at(w, at);
            w->seen[at] = w->stamp;
            for (int o = 0; o < n->nout; o++)
                for (uint32_t u = w->first[n->out[o]]; u < w->first[n->out[o] + 1]; u++)
                    if (w->seen[w->user[u]] != w->stamp)
                        cps_vec_push(w->a, &stack, w->user[u]);
        }
    }
    return true;
}

// Something that is not of the group reads the value, itself or through members that rename it.
static bool
used_outside(const former *w, int32_t id, cps_val v)
{
    if (w->is_out[v])
        return true;
    for (uint32_t u = w->first[v]; u < w->first[v + 1]; u++) {
        const cps_node *n = node_at(w, w->user[u]);
        if (w->of[w->user[u]] != id || (is_alias(n) && used_outside(w, id, n->out[0])))
            return true;
    }
    return false;
}

// What a region may hold of operands and results.
static bool
is_small_enough(const former *w)
{
    int operands = 0, results = 0, nodes = 0;
    double x;
    for (uint32_t i = 0; i < w->g.node.n; i++)
        nodes += CPS_MAX(1, cps_region_opens(w->f, node_at(w, w->g.node.data[i])));
    if (nodes > CPS_RG_NODES)
        return false;
    struct {
        cps_val v;
        cps_embed at;
    } seen[CPS_RG_OPERANDS + 1] = {{0}};
    for (uint32_t i = 0; i < w->g.node.n; i++) {
        const cps_node *n = node_at(w, w->g.node.data[i]);
        results += !is_alias(n) && used_outside(w, GROWING, n->out[0]);
        if (n->op == CPS_OP_SLICE && operands++ == CPS_RG_OPERANDS)
            return false;
        for (int k = 0; k < n->nin; k++) {
            cps_embed e;
            if (is_member(w, n->in[k]) || is_number(w, n->in[k], &x) ||
                !operand_at(w, n, k, &w->at[n->out[0]], &e))
                continue;
            int q = 0;
            while (q < operands && (seen[q].v != n->in[k] || !cps_embed_eq(&seen[q].at, &e)))
                q++;
            if (q < operands)
                continue;
            if (operands == CPS_RG_OPERANDS)
                return false;
            seen[operands].v = n->in[k];
            seen[operands++].at = e;
        }
    }
    return results <= CPS_RG_RESULTS;
}

static bool
holds_dtype(const former *w, cps_val v)
{
    cps_dtype t = type_of(w, v)->dtype;
    return cps_dtype_bytes(t) <= 4 && (cps_dtype_is_int(t) || t == CPS_DT_BOOL || t == CPS_DT_BF16 || t == CPS_DT_FP16 || t == CPS_DT_FP32);
}

// Adds the node when it fits; `out` says where its result lies, NULL: as its own type does.
static bool
try_add(former *w, uint32_t i, const cps_embed *out)
{
    const cps_node *n = node_at(w, i);
    int64_t lo[CPS_MAX_RANK], hi[CPS_MAX_RANK], inner = 0;
    double x;
    cps_embed e, in[3];
    group g = w->g;
    if (w->of[i] != -1 || !cps_region_takes(w->f, n, NULL) || (w->plain && n->op == CPS_OP_BROADCAST) ||
        (w->closed && n->op == CPS_OP_CALL))
        return false;
    const cps_type *t = type_of(w, n->out[0]);
    if (cps_ops[n->op].opclass == CPS_OC_REDUCE) {
        if (!reduced_at(w, n, &e, &inner) || (out && !cps_embed_eq(out, &e)) || (g.inner && g.inner != inner))
            return false;
        g.inner = inner;
    } else if (n->op == CPS_OP_CUMSUM || n->op == CPS_OP_CALL) { // along whole rows
        inner = t->dim[t->rank - 1];
        e = cps_embed_whole(g.total);
        if ((out && !cps_embed_eq(out, &e)) || (g.inner && g.inner != inner))
            return false;
        g.inner = inner;
    } else if (out) {
        e = *out;
    } else {
        e = cps_embed_whole(g.total);
    }
    if (!cps_embed_axes(t, &e, lo, hi) || !add_cuts(&g, &e) || (inner && !add_cut(&g, inner)))
        return false;
    if (n->op == CPS_OP_SLICE) {
        int axis = cps_region_slice_axis(w->f, n);
        if (is_member(w, n->in[0]) || !holds_dtype(w, n->in[0]) || !add_slice(&g, lo[axis], hi[axis]))
            return false;
    }
    for (int k = 0; k < n->nin && n->op != CPS_OP_SLICE; k++) {
        if (!operand_at(w, n, k, &e, &in[k]) || !holds_dtype(w, n->in[k]))
            return false;
        if (is_number(w, n->in[k], &x))
            continue;
        if (is_member(w, n->in[k]) && !cps_embed_eq(&w->at[n->in[k]], &in[k]))
            return false;
        if (!add_cuts(&g, &in[k]))
            return false;
    }
    // Members that read this result must see it where it lies.
    for (uint32_t u = w->first[n->out[0]]; u < w->first[n->out[0] + 1]; u++) {
        const cps_node *c = node_at(w, w->user[u]);
        cps_embed seen;
        if (w->of[w->user[u]] != GROWING)
            continue;
        for (int k = 0; k < c->nin; k++)
            if (c->in[k] == n->out[0] &&
                (!operand_at(w, c, k, &w->at[c->out[0]], &seen) || !cps_embed_eq(&seen, &e)))
                return false;
    }
    if (!cuts_fit(&g))
        return false;
    group before = w->g;
    w->g = g;
    w->of[i] = GROWING;
    w->at[n->out[0]] = e;
    cps_vec_push(w->a, &w->g.node, i);
    if (is_small_enough(w) && is_convex(w))
        return true;
    w->of[i] = -1;
    before.node = w->g.node;
    before.node.n--;
    w->g = before;
    return false;
}

static void
grow(former *w)
{
    double x;
    for (uint32_t i = 0; i < w->g.node.n; i++) {
        const cps_node *n = node_at(w, w->g.node.data[i]);
        for (int k = 0; k < n->nin; k++) {
            uint32_t def = w->f->vals.data[n->in[k]].def;
            cps_embed e;
            if (def && !is_number(w, n->in[k], &x) && operand_at(w, n, k, &w->at[n->out[0]], &e))
                try_add(w, def - 1, &e);
        }
        for (uint32_t u = w->first[n->out[0]]; u < w->first[n->out[0] + 1]; u++) {
            const cps_node *c = node_at(w, w->user[u]);
            const cps_type *t = c->nout == 1 ? type_of(w, c->out[0]) : NULL;
            if (!t || is_alias(c))
                continue;
            bool same = cps_ops[c->op].opclass != CPS_OC_REDUCE && cps_type_count(t) != w->g.total &&
                        cps_type_eq(t, type_of(w, n->out[0]));
            try_add(w, w->user[u], same ? &w->at[n->out[0]] : NULL);
        }
    }
}

/* ---- is it worth it ---- */

// One more number multiplied or added: the library's `affine` takes any chain of them.
static bool
is_affine(const former *w, const cps_node *n)
{
    double x;
    if (n->op == CPS_OP_NEG)
        return true;
    return (n->op == CPS_OP_ADD || n->op == CPS_OP_SUB || n->op == CPS_OP_MUL) &&
           (is_number(w, n->in[0], &x) || is_number(w, n->in[1], &x));
}

static bool
is_worth_it(const former *w)
{
    int kernels = 0;
    for (uint32_t i = 0; i < w->g.node.n; i++) {
        const cps_node *n = node_at(w, w->g.node.data[i]);
        if (n->op == CPS_OP_SLICE)
            kernels++;
        if (is_alias(n))
            continue;
        if (n->op == CPS_OP_CALL) {
            kernels++;
            continue;
        }
        if (!cps_map_takes(w->f, n))
            return true;
        const cps_node *from = cps_rw_def(&w->look, n->in[0]);
        bool goes_on = is_affine(w, n) && from && is_member(w, n->in[0]) && is_affine(w, from);
        kernels += !goes_on;
    }
    return kernels > 1;
}

static int
ascending(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

static void
mark(former *w, const group *g, int32_t as)
{
    for (uint32_t i = 0; i < g->node.n; i++)
        w->of[g->node.data[i]] = as;
}

static bool
holds_call(const former *w)
{
    for (uint32_t i = 0; i < w->g.node.n; i++)
        if (node_at(w, w->g.node.data[i])->op == CPS_OP_CALL)
            return true;
    return false;
}

static cps_region *region_of(former *w, int32_t id);

// The last group of `all` with its calls against what is left of it and the calls beside.
static bool
opens_well(former *w)
{
    int32_t id = (int32_t)w->all.n - 1, ncalls = 0;
    group all = w->all.data[id], rest = all;
    const cps_node *call[CPS_RG_NODES];
    const cps_region *with = region_of(w, id);
    bool ops = false;
    rest.node.data = cps_new_array(w->a, uint32_t, all.node.n);
    rest.node.n = 0;
    rest.inner = 0;
    for (uint32_t i = 0; i < all.node.n; i++) {
        const cps_node *n = node_at(w, all.node.data[i]);
        if (n->op == CPS_OP_CALL) {
            call[ncalls++] = n;
            w->of[all.node.data[i]] = -1;
            continue;
        }
        rest.node.data[rest.node.n++] = all.node.data[i];
        ops = ops || !is_alias(n);
        if (cps_ops[n->op].opclass == CPS_OC_REDUCE || n->op == CPS_OP_CUMSUM)
            rest.inner = all.inner;
    }
    w->all.data[id] = rest;
    bool pays = cps_region_pays(w->l, w->f, with, ops ? region_of(w, id) : NULL, ncalls, call);
    w->all.data[id] = all;
    mark(w, &all, id);
    return pays;
}

// False: the group held a call that is better left alone.
static bool
close_group(former *w)
{
    bool keep = is_worth_it(w), opens = holds_call(w);
    mark(w, &w->g, keep ? (int32_t)w->all.n : -1);
    if (!keep)
        return !opens;
    qsort(w->g.node.data, w->g.node.n, sizeof w->g.node.data[0], ascending);
    cps_vec_push(w->a, &w->all, w->g);
    if (!opens || opens_well(w))
        return true;
    mark(w, &w->all.data[--w->all.n], -1);
    return false;
}

// The group that grows from a node; true when it was left as it is, or there is none.
static bool
form_from(former *w, uint32_t i, int64_t total)
{
    w->g = (group){.total = total};
    add_cut(&w->g, 1);
    add_cut(&w->g, total);
    if (!try_add(w, i, NULL))
        return true;
    grow(w);
    return close_group(w);
}

static void
form(former *w)
{
    for (uint32_t i = w->f->nodes.n; i-- > 0;) {
        const cps_node *n = node_at(w, i);
        if (w->of[i] != -1 || n->nin == 0 || is_alias(n) || !cps_region_takes(w->f, n, NULL))
            continue;
        bool reduces = cps_ops[n->op].opclass == CPS_OC_REDUCE;
        int64_t total = cps_type_count(type_of(w, reduces ? n->in[0] : n->out[0]));
        if (total < 1 || form_from(w, i, total))
            continue;
        w->closed = true;
        form_from(w, i, total);
        w->closed = false;
    }
}

/* ---- a region out of a group ---- */

static unsigned
mask_of(const cps_region *r, const group *g, const cps_embed *e)
{
    unsigned mask = 0;
    for (int i = 0; i + 1 < g->ncut; i++)
        for (int k = 0; k < e->n; k++)
            if (e->lo[k] <= g->cut[i] && g->cut[i + 1] <= e->hi[k])
                mask |= 1u << (r->naxes - 1 - i);
    return mask;
}

static int64_t
largest_divisor(int64_t n, int64_t limit)
{
    int64_t best = 1;
    for (int64_t q = 2; q <= limit; q++)
        if (n % q == 0)
            best = q;
    return best;
}

// Rows for a space without a pattern: as many as there are partitions when the count divides so.
static void
free_axes(const former *w, cps_region *r, const group *g)
{
    int64_t lanes = largest_divisor(g->total, 128), dim[2] = {1, g->total};
    cps_rows_of(type_of(w, node_at(w, g->node.data[g->node.n - 1])->out[0]), dim);
    r->naxes = 2;
    bool rows = lanes < 64 && dim[0] * dim[1] == g->total && CPS_MIN(dim[0], 128) > lanes;
    r->axis[0] = rows ? dim[0] : lanes;
    r->axis[1] = g->total / r->axis[0];
}

// A few long rows leave most partitions without work: each row is spread over them instead, and
// the rows become a loop.
static void
spread_rows(group *g)
{
    if (g->inner || g->nslice || g->ncut < 3 || g->ncut > CPS_RG_AXES)
        return;
    int64_t n = g->cut[1], rows = g->cut[2] / n, lanes = largest_divisor(n, 128);
    if (rows < 64 && lanes > rows && n / lanes >= SHORT_ROW && g->total / n <= FEW_LOOPS)
        add_cut(g, n / lanes);
}

int
cps_region_add_number(cps_region *r, double x, cps_dtype t)
{
    for (int k = 0; k < r->n; k++)
        if (r->v[k].kind == CPS_RV_NUMBER && r->v[k].dtype == t && r->v[k].number == x &&
            signbit(r->v[k].number) == signbit(x))
            return k;
    r->v[r->n] = (cps_rvalue){.kind = CPS_RV_NUMBER, .dtype = t, .number = x, .slot = -1};
    return r->n++;
}

static int
add_operand(cps_region *r, cps_val v, cps_dtype t, unsigned mask)
{
    for (int k = 0; k < r->n; k++)
        if (r->v[k].kind == CPS_RV_INPUT && r->v[k].val == v && r->v[k].mask == mask && !r->v[k].cut)
            return k;
    r->v[r->n] = (cps_rvalue){
        .kind = CPS_RV_INPUT, .dtype = t, .val = v, .mask = mask, .slot = r->noperands++};
    return r->n++;
}

// A slice's operand, read where the slice lies in it.
static int
add_slice_operand(former *w, cps_region *r, const group *g, const cps_node *n)
{
    int64_t lo[CPS_MAX_RANK], hi[CPS_MAX_RANK];
    const cps_type *out = type_of(w, n->out[0]), *in = type_of(w, n->in[0]);
    int axis = cps_region_slice_axis(w->f, n), place = 0;
    cps_embed_axes(out, &w->at[n->out[0]], lo, hi);
    while (g->cut[place + 1] != hi[axis])
        place++;
    int64_t unit = lo[axis] / g->cut[place]; // elements of the region's axis to one of the slice's
    r->v[r->n] = (cps_rvalue){.kind = CPS_RV_INPUT, .dtype = in->dtype, .val = n->in[0], .slot = r->noperands++};
    r->v[r->n].mask = mask_of(r, g, &w->at[n->out[0]]);
    r->v[r->n].cut = r->naxes - place;
    r->v[r->n].start = cps_node_attr(n, "start")->ints[axis] * unit;
    r->v[r->n].extent = in->dim[axis] * unit;
    return r->n++;
}

static cps_region *
region_of(former *w, int32_t id)
{
    group *g = &w->all.data[id];
    cps_region *r = cps_new(w->a, cps_region);
    cps_map at; // value -> index + 1
    cps_map_init(&at, w->a);
    spread_rows(g);
    w->g = *g;
    r->reduces = g->inner > 0;
    if (g->ncut <= 2 && !g->inner && !g->nslice) {
        free_axes(w, r, g);
    } else {
        r->naxes = g->ncut - 1;
        for (int i = 0; i + 1 < g->ncut; i++)
            r->axis[r->naxes - 1 - i] = g->cut[i + 1] / g->cut[i];
        if (r->naxes == 1) { // one row
            r->axis[1] = r->axis[0];
            r->axis[0] = 1;
            r->naxes = 2;
        }
    }
    bool is_free = g->ncut <= 2 && !g->inner && !g->nslice;
    for (uint32_t i = 0; i < g->node.n; i++) {
        const cps_node *n = node_at(w, g->node.data[i]);
        const cps_embed *e = &w->at[n->out[0]];
        cps_rvalue v = {.kind = CPS_RV_NODE, .op = (cps_op)n->op, .val = n->out[0], .nin = n->nin, .slot = -1};
        v.exclusive = n->op == CPS_OP_CUMSUM && cps_attr_int(n->attr, n->nattr, "exclusive", 0);
        v.dtype = type_of(w, n->out[0])->dtype;
        for (int k = 0; k < n->nin && n->op != CPS_OP_SLICE; k++) {
            double x;
            cps_embed in;
            uint64_t *made = cps_map_find(&at, n->in[k]);
            cps_dtype t = type_of(w, n->in[k])->dtype;
            if (made) {
                v.in[k] = (int)*made - 1;
            } else if (is_number(w, n->in[k], &x)) {
                v.in[k] = cps_region_add_number(r, x, t);
            } else {
                operand_at(w, n, k, e, &in);
                v.in[k] = add_operand(r, n->in[k], t, is_free ? (in.n || g->total == 1 ? 3 : 0) : mask_of(r, g, &in));
            }
        }
        if (n->op == CPS_OP_CALL) {
            cps_embed row = cps_embed_whole(g->total);
            row.lo[0] = g->inner;
            row.n = g->inner < g->total;
            cps_opening o = {.dtype = v.dtype, .all = mask_of(r, g, e), .row = mask_of(r, g, &row)};
            o.eps = cps_attr_float(n->attr, n->nattr, "eps", 1e-6);
            int y = cps_region_open(r, n, v.in, &o);
            r->v[y].val = n->out[0];
            if (used_outside(w, id, n->out[0]))
                r->v[y].slot = r->nresults++;
            *cps_map_at(&at, n->out[0], NULL) = (uint64_t)y + 1;
            continue;
        }
        if (n->op == CPS_OP_SLICE) {
            *cps_map_at(&at, n->out[0], NULL) = (uint64_t)add_slice_operand(w, r, g, n) + 1;
            continue;
        }
        if (n->op == CPS_OP_RESHAPE) { // the same elements
            *cps_map_at(&at, n->out[0], NULL) = (uint64_t)v.in[0] + 1;
            continue;
        }
        v.mask = is_free ? (e->n || g->total == 1 ? 3 : 0) : mask_of(r, g, e);
        if (!is_alias(n) && used_outside(w, id, n->out[0]))
            v.slot = r->nresults++;
        r->v[r->n] = v;
        *cps_map_at(&at, n->out[0], NULL) = (uint64_t)++r->n;
    }
    return r;
}

/* ---- the graph ---- */

// Nodes of a group stand together, behind all that it reads; the rest keeps its order.
static void
reorder(former *w)
{
    cps_func *f = w->f;
    uint32_t n = f->nodes.n, done = 0;
    cps_node *to = cps_new_array(w->m->arena, cps_node, n + 1);
    int32_t *of = cps_new_array(w->a, int32_t, n + 1);
    bool *placed = cps_new_array(w->a, bool, n + 1);
    CPS_VEC(uint32_t) stack = {0};
    for (uint32_t i = 0; i < n; i++) {
        cps_vec_push(w->a, &stack, i);
        while (stack.n) {
            uint32_t q = stack.data[stack.n - 1];
            if (placed[q]) {
                stack.n--;
                continue;
            }
            const group *g = w->of[q] >= 0 ? &w->all.data[w->of[q]] : NULL;
            uint32_t waits = stack.n, count = g ? g->node.n : 1;
            for (uint32_t j = count; j-- > 0;) {
                const cps_node *x = node_at(w, g ? g->node.data[j] : q);
                for (int k = x->nin; k-- > 0;) {
                    uint32_t def = x->in[k] ? f->vals.data[x->in[k]].def : 0;
                    if (def && !placed[def - 1] && !(g && w->of[def - 1] == w->of[q]))
                        cps_vec_push(w->a, &stack, def - 1);
                }
            }
            if (stack.n > waits)
                continue;
            stack.n--;
            for (uint32_t j = 0; j < count; j++) {
                uint32_t x = g ? g->node.data[j] : q;
                placed[x] = true;
                of[done] = w->of[x];
                to[done++] = f->nodes.data[x];
            }
        }
    }
    cps_assert(done == n);
    for (uint32_t i = 0; i < n; i++)
        for (int k = 0; k < to[i].nout; k++)
            f->vals.data[to[i].out[k]].def = i + 1;
    memcpy(f->nodes.data, to, n * sizeof *to);
    memcpy(w->of, of, n * sizeof *of);
}

static void
put_reason(const former *w, int32_t id, cps_buf *b)
{
    const group *g = &w->all.data[id];
    cps_buf names = {0}, lacking = {0};
    bool named[CPS_OPS] = {false};
    int count = 0;
    for (uint32_t i = 0; i < g->node.n; i++) {
        const cps_node *n = node_at(w, g->node.data[i]);
        const char *name = n->op == CPS_OP_CALL ? n->callee : cps_ops[n->op].name;
        if (is_alias(n))
            continue;
        cps_buf_printf(&names, "%s%s", count++ ? " " : "", name);
        if (named[n->op] || n->op == CPS_OP_CALL || cps_map_takes(w->f, n))
            continue;
        named[n->op] = true;
        cps_buf_printf(&lacking, "%s%s", lacking.n ? " " : "", name);
    }
    cps_buf_printf(b, "// A region of %d op%s: %s.\n", count, count == 1 ? "" : "s", names.data);
    if (lacking.n)
        cps_buf_printf(b, "// Formed because the library has no leaf for: %s.\n", lacking.data);
    else
        cps_buf_puts(b, "// Formed because apart they would go through memory between each other.\n");
    cps_buf_fini(&names);
    cps_buf_fini(&lacking);
}

// The call that stands for the group.
typedef struct made {
    cps_region *r;
    const char *name, *text;
    bool refused; // no leaf takes it: its nodes stay
} made;

typedef struct rewriter {
    former *w;
    made *of;
} rewriter;

static const char *
operator_name(cps_arena *a, const char *text)
{
    cps_digest d = cps_digest_of(text, strlen(text));
    char hex[65];
    cps_digest_hex(&d, hex);
    return cps_arena_printf(a, "region_%.12s", hex);
}

static made
write_region(former *w, int32_t id)
{
    made x = {.r = region_of(w, id)};
    cps_buf b = {0}, n = {0};
    // The name is taken from the text under a name that is always the same.
    put_reason(w, id, &b);
    size_t head = b.n;
    cps_region_op(x.r, "region", &b);
    cps_region_leaf(x.r, "region", w->l->o->target, &b);
    x.name = operator_name(w->m->arena, b.data);
    cps_buf_put(&n, b.data, head);
    cps_region_op(x.r, x.name, &n);
    cps_buf_putc(&n, '\n');
    cps_region_leaf(x.r, x.name, w->l->o->target, &n);
    x.text = cps_arena_strndup(w->m->arena, n.data, n.n);
    cps_buf_fini(&b);
    cps_buf_fini(&n);
    return x;
}

// Selection was here already and no leaf took it.
static bool
is_refused(const cps_lower *l, const char *name)
{
    size_t n = strlen(name);
    for (uint32_t i = 0; i < l->banned.n; i++)
        if (strncmp(l->banned.entry[i].str, name, n) == 0 && l->banned.entry[i].str[n] == '(')
            return true;
    return false;
}

static bool
emit(cps_rw *w, const made *x)
{
    const cps_region *r = x->r;
    cps_val in[CPS_RG_OPERANDS] = {0}, out[CPS_RG_RESULTS];
    cps_type type[CPS_RG_RESULTS];
    const cps_node *from[CPS_RG_NODES];
    int nfrom = 0;
    for (int k = 0; k < r->n; k++) {
        const cps_rvalue *v = &r->v[k];
        int64_t dim[CPS_RG_AXES];
        for (int i = 0; i < r->naxes; i++)
            dim[i] = cps_region_extent(r, v, i);
        if (v->kind == CPS_RV_INPUT)
            in[v->slot] = cps_rw_reshape(w, cps_rw_new(w, v->val), r->naxes, dim);
        else if (v->kind == CPS_RV_NODE && v->slot >= 0)
            type[v->slot] = cps_type_make(v->dtype, r->naxes, dim);
        if (v->kind == CPS_RV_NODE && v->val && nfrom < CPS_RG_NODES)
            from[nfrom++] = cps_rw_def(w, v->val);
    }
    w->b.from = cps_rw_from(w, nfrom, from);
    cps_attr kernel = cps_a_str("kernel", x->text);
    if (!cps_b_call(&w->b, x->name, r->noperands, in, 1, &kernel, r->nresults, type, out))
        return false;
    for (int k = 0; k < r->n; k++) {
        const cps_rvalue *v = &r->v[k];
        if (v->kind != CPS_RV_NODE || !v->val) // of a call's inside
            continue;
        const cps_type *t = cps_rw_type(w, v->val);
        if (v->slot >= 0) {
            if (!cps_rw_set(w, v->val, cps_rw_reshape(w, out[v->slot], t->rank, t->dim)))
                return false;
        } else if (v->op != CPS_OP_BROADCAST) {
            w->uses[v->val] = 0; // all of them in the region
        }
    }
    return true;
}

static bool
region_rule(cps_rw *w, const cps_node *n)
{
    rewriter *x = w->user;
    uint32_t i = (uint32_t)(n - w->old->nodes.data);
    int32_t id = x->w->of[i];
    if (id < 0 || x->of[id].refused)
        return false;
    if (i == 0 || x->w->of[i - 1] != id)
        if (!emit(w, &x->of[id]))
            return false;
    if (!is_alias(n))
        return true;
    // What only the region reads is gone; what others read is made again for them.
    if (used_outside(x->w, id, n->out[0]))
        return false;
    w->uses[n->out[0]] = 0;
    return true;
}

static void
index_users(former *w)
{
    const cps_func *f = w->f;
    uint32_t n = f->vals.n;
    w->first = cps_new_array(w->a, uint32_t, n + 2);
    for (uint32_t i = 0; i < f->nodes.n; i++)
        for (int k = 0; k < f->nodes.data[i].nin; k++)
            w->first[f->nodes.data[i].in[k] + 1]++;
    for (uint32_t v = 0; v <= n; v++)
        w->first[v + 1] += w->first[v];
    w->user = cps_new_array(w->a, uint32_t, w->first[n] + 1);
    uint32_t *fill = cps_new_array(w->a, uint32_t, n + 1);
    for (uint32_t i = 0; i < f->nodes.n; i++)
        for (int k = 0; k < f->nodes.data[i].nin; k++) {
            cps_val v = f->nodes.data[i].in[k];
            w->user[w->first[v] + fill[v]++] = i;
        }
}

static bool
function_regions(cps_lower *l, cps_module *m, cps_func *f, bool plain)
{
    former w = {.l = l, .m = m, .f = f, .plain = plain, .a = cps_arena_create()};
    w.look = (cps_rw){.m = m, .old = f};
    w.is_out = cps_new_array(w.a, bool, f->vals.n + 1);
    w.of = cps_new_array(w.a, int32_t, f->nodes.n + 1);
    w.at = cps_new_array(w.a, cps_embed, f->vals.n + 1);
    w.seen = cps_new_array(w.a, uint32_t, f->nodes.n + 1);
    index_users(&w);
    for (uint32_t i = 0; i < f->outputs.n; i++)
        w.is_out[f->outputs.data[i]] = true;
    for (uint32_t i = 0; i < f->nodes.n; i++)
        w.of[i] = -1;
    form(&w);
    bool ok = true;
    if (w.all.n) {
        rewriter x = {.w = &w, .of = cps_new_array(w.a, made, w.all.n)};
        for (uint32_t i = 0; ok && i < w.all.n; i++) {
            x.of[i] = write_region(&w, (int32_t)i);
            x.of[i].refused = is_refused(l, x.of[i].name);
            ok = cps_call_source(l->o, x.of[i].name, x.of[i].text, l->d);
        }
        reorder(&w);
        index_users(&w);
        ok = ok && cps_rewrite(m, f, region_rule, &x, l->d, NULL);
    }
    cps_arena_destroy(w.a);
    return ok;
}

bool
cps_lower_regions(cps_lower *l, cps_module *m)
{
    if (!l->o->registry || !l->o->registry->add || !l->o->target)
        return true;
    if (!cps_region_ready(l, m))
        return false;
    for (uint32_t i = 0; i < m->funcs.n; i++) {
        unsigned changes;
        if (!function_regions(l, m, m->funcs.data[i], false) ||
            !cps_region_write_out(l, m, m->funcs.data[i], &changes) ||
            (changes && !function_regions(l, m, m->funcs.data[i], true)))
            return false;
    }
    return cps_ir_dce(m, l->d);
}
