/* Expressions of a stage: out of a value and an index map, the list of loads, numbers and
 * operations that compute its element, with every address affine in the loops of the nest.
 * Inlined values are expanded on the way; equal reads of one value become one. Values and their
 * kinds were decided before (fuse.c); nothing is decided here. */
#include "codegen/host/plan.h"

static bool
aff_eq(const host_aff *a, const host_aff *b)
{
    return memcmp(a, b, sizeof *a) == 0;
}

static void
aff_add(host_aff *a, const host_aff *b, int64_t by)
{
    a->c += b->c * by;
    for (int l = 0; l < HOST_LOOPS; l++)
        a->a[l] += b->a[l] * by;
}

static uint32_t
add(host_build *b, host_x x)
{
    for (uint32_t i = 0; i < b->x.n; i++)
        if (memcmp(&b->x.data[i], &x, sizeof x) == 0)
            return i;
    cps_vec_push(b->p->arena, &b->x, x);
    return b->x.n - 1;
}

// A struct with its padding cleared, so that equal expressions have equal bytes.
static host_x
blank(host_xkind kind, cps_dtype t)
{
    host_x x;
    memset(&x, 0, sizeof x);
    x.kind = (uint8_t)kind;
    x.dtype = t;
    return x;
}

// Element of the stored value behind v at `map`.
static host_aff
address(const host_plan *p, cps_val v, const host_aff *map)
{
    const host_val *h = &p->val[v];
    const cps_type *t = cps_host_type(p, v);
    host_aff at = {.c = h->kind == HV_VIEW ? h->off : 0};
    for (int i = 0; i < t->rank; i++)
        aff_add(&at, &map[i], t->dim[i] == 1 ? 0 : h->stride[i]);
    return at;
}

// The map of an operand that broadcasts to the type `to` as in NumPy.
static void
broadcast_map(const cps_type *in, const cps_type *to, const host_aff *from, host_aff *map)
{
    for (int i = 0; i < in->rank; i++)
        map[i] = in->dim[i] == 1 ? (host_aff){0} : from[to->rank - in->rank + i];
}

bool
cps_host_reshape_map(const cps_type *in, const cps_type *out, const host_aff *to, host_aff *map)
{
    int i = 0, o = 0;
    memset(map, 0, (size_t)in->rank * sizeof *map);
    if (cps_type_count(in) == 0)
        return true;
    while (i < in->rank || o < out->rank) {
        int64_t a = 1, b = 1;
        int i0 = i, o0 = o, big = 0, which = -1;
        // the smallest pair of runs with equal products
        if (i < in->rank)
            a = in->dim[i++];
        if (o < out->rank)
            b = out->dim[o++];
        while (a != b || (i < in->rank && in->dim[i] == 1) ||
               (o < out->rank && out->dim[o] == 1)) {
            if (a < b || (a == b && i < in->rank && in->dim[i] == 1)) {
                if (i == in->rank)
                    return false;
                a *= in->dim[i++];
            } else {
                if (o == out->rank)
                    return false;
                b *= out->dim[o++];
            }
        }
        for (int k = i0; k < i; k++) {
            map[k] = (host_aff){0};
            if (in->dim[k] != 1) {
                big++;
                which = k;
            }
        }
        if (big == 0)
            continue;
        if (big == 1) {
            int64_t s = 1;
            for (int k = o - 1; k >= o0; k--) {
                aff_add(&map[which], &to[k], s);
                s *= out->dim[k];
            }
            continue;
        }
        // several axes of the operand: affine only when they are the result's own
        int q = o0;
        for (int k = i0; k < i; k++) {
            if (in->dim[k] == 1)
                continue;
            while (q < o && out->dim[q] == 1)
                q++;
            if (q == o || out->dim[q] != in->dim[k])
                return false;
            map[k] = to[q++];
        }
        for (; q < o; q++)
            if (out->dim[q] != 1)
                return false;
    }
    return true;
}

// Maps a shape op's result index to its operand's.
static void
shape_map(const host_plan *p, const cps_node *n, const host_aff *map, host_aff *in_map)
{
    const cps_type *in = cps_host_type(p, n->in[0]), *out = cps_host_type(p, n->out[0]);
    switch (n->op) {
    case CPS_OP_TRANSPOSE: {
        const int64_t *perm = cps_node_attr(n, "perm")->ints;
        for (int i = 0; i < out->rank; i++)
            in_map[perm[i]] = map[i];
        break;
    }
    case CPS_OP_BROADCAST:
        broadcast_map(in, out, map, in_map);
        break;
    case CPS_OP_SLICE: {
        const int64_t *start = cps_node_attr(n, "start")->ints;
        const int64_t *step = cps_node_attr(n, "step")->ints;
        for (int i = 0; i < out->rank; i++) {
            in_map[i] = (host_aff){.c = start[i]};
            if (out->dim[i] > 1)
                aff_add(&in_map[i], &map[i], step[i]);
        }
        break;
    }
    default:
        if (!cps_host_reshape_map(in, out, map, in_map))
            cps_bug("a reshape without an affine index was inlined");
    }
}

static uint32_t
gather(host_build *b, const cps_node *n, const host_aff *map)
{
    static const uint64_t zero = 0;
    const host_plan *p = b->p;
    const cps_type *t = cps_host_type(p, n->in[0]), *it = cps_host_type(p, n->in[1]);
    int axis = (int)cps_attr_int(n->attr, n->nattr, "axis", 0);
    host_aff in[CPS_MAX_RANK], none = {0};
    const host_aff *ix = map + axis;
    if (n->op == CPS_OP_GATHER_ELEMS) {
        ix = map;
        for (int i = 0; i < t->rank; i++)
            in[i] = map[i];
    } else {
        for (int i = 0; i < t->rank; i++)
            in[i] = map[i <= axis ? i : i + it->rank - 1];
    }
    in[axis] = none;
    host_x x = blank(HX_GATHER, t->dtype);
    if (t->dim[axis] == 0) { // nothing an index could name: any value will do
        x.kind = HX_IMM;
        x.imm = &zero;
        return add(b, x);
    }
    const host_val *h = &p->val[n->in[0]];
    cps_assert(h->kind == HV_STORED || h->kind == HV_VIEW);
    x.base = h->base;
    x.at = address(p, n->in[0], in);
    x.step = t->dim[axis] == 1 ? 0 : h->stride[axis];
    x.extent = t->dim[axis];
    x.nin = 1;
    x.in[0] = cps_host_expr(b, n->in[1], ix);
    return add(b, x);
}

uint32_t
cps_host_expr_op(host_build *b, const cps_node *n, const host_aff *map)
{
    const host_plan *p = b->p;
    const cps_type *out = cps_host_type(p, n->out[0]);
    host_aff in_map[CPS_MAX_RANK] = {{0}};
    switch (n->op) {
    case CPS_OP_RESHAPE:
    case CPS_OP_TRANSPOSE:
    case CPS_OP_BROADCAST:
    case CPS_OP_SLICE:
        shape_map(p, n, map, in_map);
        return cps_host_expr(b, n->in[0], in_map);
    case CPS_OP_GATHER:
    case CPS_OP_GATHER_ELEMS:
        return gather(b, n, map);
    case CPS_OP_INDEX: {
        host_x x = blank(HX_POS, out->dtype);
        x.at = map[cps_attr_int(n->attr, n->nattr, "axis", 0)];
        return add(b, x);
    }
    default: {
        host_x x = blank(HX_OP, out->dtype);
        x.node = n;
        x.nin = n->nin;
        cps_assert(n->nin <= 3);
        for (int i = 0; i < n->nin; i++) {
            broadcast_map(cps_host_type(p, n->in[i]), out, map, in_map);
            x.in[i] = cps_host_expr(b, n->in[i], in_map);
        }
        return add(b, x);
    }
    }
}

uint32_t
cps_host_expr(host_build *b, cps_val v, const host_aff *map)
{
    const host_plan *p = b->p;
    const cps_type *t = cps_host_type(p, v);
    const host_val *h = &p->val[v];
    if (h->kind == HV_STORED || h->kind == HV_VIEW) {
        const host_val *base = &p->val[h->base];
        host_x x = blank(HX_LOAD, t->dtype);
        if (base->place == HP_CONST && cps_type_count(cps_host_type(p, h->base)) == 1) {
            x.kind = HX_IMM;
            x.imm = p->m->consts.data[base->index].data;
        } else {
            x.base = h->base;
            x.at = address(p, v, map);
        }
        return add(b, x);
    }
    cps_assert(h->kind == HV_INLINE);
    for (uint32_t i = 0; i < b->memo.n; i++) {
        bool same = b->memo.data[i].v == v;
        for (int k = 0; same && k < t->rank; k++)
            same = aff_eq(&b->memo.data[i].map[k], &map[k]);
        if (same)
            return b->memo.data[i].id;
    }
    uint32_t id = cps_host_expr_op(b, cps_host_def(p, v), map);
    __typeof__(b->memo.data) m = cps_vec_add(p->arena, &b->memo);
    m->v = v;
    m->id = id;
    for (int k = 0; k < t->rank; k++)
        m->map[k] = map[k];
    return id;
}
