/* Rows 4 to 12 and 19 to 22 of the combining table. Each function looks at the node at hand and
 * offers every instruction of its rows that matches; choosing is the cover's. */
#include "frontend/dsl/trace_cover.h"

static const cps_engine on_dve[] = {CPS_DVE};
static const cps_engine on_act[] = {CPS_ACT};
static const cps_engine on_pool[] = {CPS_POOL};

static bool
commutes(unsigned op)
{
    switch (op) {
    case CPS_ALU_ADD:
    case CPS_ALU_MULT:
    case CPS_ALU_MAX:
    case CPS_ALU_MIN:
    case CPS_ALU_IS_EQ:
    case CPS_ALU_IS_NE:
    case CPS_ALU_LOGICAL_AND:
    case CPS_ALU_LOGICAL_OR:
    case CPS_ALU_LOGICAL_XOR:
    case CPS_ALU_BITWISE_AND:
    case CPS_ALU_BITWISE_OR:
    case CPS_ALU_BITWISE_XOR:
        return true;
    default:
        return false;
    }
}

static bool
is_bits(unsigned op)
{
    switch (op) {
    case CPS_ALU_BITWISE_AND:
    case CPS_ALU_BITWISE_OR:
    case CPS_ALU_BITWISE_XOR:
    case CPS_ALU_BITWISE_NOT:
    case CPS_ALU_LOGICAL_SHIFT_LEFT:
    case CPS_ALU_LOGICAL_SHIFT_RIGHT:
    case CPS_ALU_ARITH_SHIFT_LEFT:
    case CPS_ALU_ARITH_SHIFT_RIGHT:
        return true;
    default:
        return false;
    }
}

// What VectorE computes (operator table of the NKI documents; no division, no modulo).
static bool
dve_has(unsigned op)
{
    switch (op) {
    case CPS_ALU_ADD:
    case CPS_ALU_SUBTRACT:
    case CPS_ALU_MULT:
    case CPS_ALU_MAX:
    case CPS_ALU_MIN:
    case CPS_ALU_IS_EQ:
    case CPS_ALU_IS_NE:
    case CPS_ALU_IS_GT:
    case CPS_ALU_IS_GE:
    case CPS_ALU_IS_LT:
    case CPS_ALU_IS_LE:
    case CPS_ALU_LOGICAL_AND:
    case CPS_ALU_LOGICAL_OR:
    case CPS_ALU_LOGICAL_XOR:
    case CPS_ALU_ABS_VALUE:
        return true;
    default:
        return is_bits(op);
    }
}

// Class X: a number, or one element per row.
static bool
is_x(const cps_xcover *c, cps_xid i)
{
    const cps_xnode *n = cps_x_at(c->g, i);
    return n->kind == CPS_X_NUM || (n->kind != CPS_X_PREV && cps_x_elems(n) == 1);
}

static bool
is_t(const cps_xcover *c, cps_xid i)
{
    const cps_xnode *n = cps_x_at(c->g, i);
    return n->kind != CPS_X_NUM && n->kind != CPS_X_PREV;
}

static bool
both_psum(cps_xcover *c, cps_xid a, cps_xid b)
{
    const cps_view *x = cps_x_view(c, a), *y = cps_x_view(c, b);
    if (!x || !y || x->space != CPS_PSUM || y->space != CPS_PSUM)
        return false;
    c->psum_clash = c->at;
    return true;
}

static int64_t
elems(const cps_xcover *c)
{
    return cps_x_elems(cps_x_at(c->g, c->at));
}

/* One operator taken apart: `op` on data and other, `rev` when the written order is the other
 * way round and the operator minds. side 0: data is the left operand. */
typedef struct split {
    unsigned op;
    cps_xid data, other;
    bool rev;
} split;

static split
take(const cps_xnode *n, int side)
{
    split s = {.op = n->sub, .data = side ? n->b : n->a, .other = side ? n->a : n->b};
    if (side && !commutes(n->sub)) {
        unsigned f = cps_alu_mirrored(n->sub);
        if (f != n->sub)
            s.op = f;
        else
            s.rev = true;
    }
    return s;
}

static bool
is_abs(const cps_xnode *n)
{
    return n->kind == CPS_X_FUNC && n->sub == CPS_ACTFN_ABS;
}

// Whether the target's ScalarE takes these operators in tensor_scalar (v3 on: * then +).
static bool
act_scalar(const cps_xcover *c, unsigned op0, unsigned op1, bool two)
{
    if (!c->t->act_copies)
        return false;
    if (!two)
        return op0 == CPS_ALU_MULT || op0 == CPS_ALU_ADD;
    return op0 == CPS_ALU_MULT && op1 == CPS_ALU_ADD;
}

static void
offer_scalar(cps_xcover *c, cps_xid data, split s0, const split *s1, bool abs0)
{
    cps_xcand k = {.row = 4, .op = CPS_T_TENSOR_SCALAR, .covered = s1 ? 2 : 1};
    int reverse = (s0.rev ? 1 : 0) | (s1 && s1->rev ? 2 : 0);
    cps_engine order[2] = {CPS_DVE, CPS_ACT};
    bool bits = is_bits(s0.op);
    cps_xneed x = bits ? CPS_XN_IMM : CPS_XN_SCALAR;

    if (bits && ((s0.other && cps_x_at(c->g, s0.other)->kind != CPS_X_NUM) ||
                 (s1 && cps_x_at(c->g, s1->other)->kind != CPS_X_NUM)))
        return; // bit operators on [p,1] tiles are row 6
    k.in[0] = (cps_xslot){.node = data, .need = CPS_XN_TILE};
    k.in[1] = abs0 ? (cps_xslot){.need = CPS_XN_IMM} : (cps_xslot){.node = s0.other, .need = x};
    k.in[2] = s1 ? (cps_xslot){.node = s1->other, .need = x} : (cps_xslot){.need = CPS_XN_IMM};
    cps_xcand_set(&k, CPS_TA_OP0, (int32_t)s0.op);
    if (s1)
        cps_xcand_set(&k, CPS_TA_OP1, (int32_t)s1->op);
    if (reverse)
        cps_xcand_set(&k, CPS_TA_REVERSE, reverse);
    bool act = !reverse && !abs0 && act_scalar(c, s0.op, s1 ? s1->op : 0, s1 != NULL);
    cps_x_offer(c, k, act ? 2 : 1, order, elems(c));
}

// Row 9: one operator or none, with the statement's `reduce`.
static void
offer_ts_reduce(cps_xcover *c, cps_xid data, const split *s, bool abs0)
{
    cps_xcand k = {
        .row = 9, .op = CPS_T_TS_REDUCE, .red = true, .covered = 1 + (s || abs0 ? 1 : 0)};
    k.in[0] = (cps_xslot){.node = data, .need = CPS_XN_TILE};
    k.in[1] = s ? (cps_xslot){.node = s->other, .need = CPS_XN_SCALAR}
                : (cps_xslot){.need = CPS_XN_IMM};
    if (!s && !abs0) { // x + 0 changes nothing but -0: multiply by one instead
        k.in[1].num = 1.0;
        cps_xcand_set(&k, CPS_TA_OP0, CPS_ALU_MULT);
    } else {
        cps_xcand_set(&k, CPS_TA_OP0, (int32_t)(abs0 ? CPS_ALU_ABS_VALUE : s->op));
    }
    cps_xcand_set(&k, CPS_TA_RED, (int32_t)c->dst->red_op);
    cps_xcand_set(&k, CPS_TA_ACC, 3);
    cps_x_offer(c, k, 1, on_dve, elems(c));
}

static bool
reduces_here(const cps_xcover *c)
{
    if (!c->root || !c->dst->red)
        return false;
    cps_alu r = c->dst->red_op;
    return r == CPS_ALU_ADD || r == CPS_ALU_MAX || r == CPS_ALU_MIN || r == CPS_ALU_MULT;
}

// (data op0 X) op1 other, with `s1` already taken at the root; op0's node is `inner`.
static void
two_ops(cps_xcover *c, split s1, cps_xid inner)
{
    const cps_xnode *n = cps_x_at(c->g, inner);
    bool x1 = is_x(c, s1.other);

    if (!cps_x_inner(c, inner))
        return;
    if (is_abs(n) && !is_bits(s1.op)) {
        split s0 = {.op = CPS_ALU_ABS_VALUE};
        if (x1)
            offer_scalar(c, n->a, s0, &s1, true);
        return;
    }
    if (n->kind != CPS_X_ALU || !dve_has(n->sub) || is_bits(n->sub) != is_bits(s1.op))
        return;
    for (int side = 0; side < 2; side++) {
        split s0 = take(n, side);
        if (!is_t(c, s0.data) || !is_x(c, s0.other))
            continue;
        if (x1)
            offer_scalar(c, s0.data, s0, &s1, false);
        if (is_bits(s0.op) || !is_t(c, s1.other) || both_psum(c, s0.data, s1.other))
            continue;
        cps_xcand k = {.row = 5, .op = CPS_T_STT, .covered = 2};
        k.in[0] = (cps_xslot){.node = s0.data, .need = CPS_XN_TILE};
        k.in[1] = (cps_xslot){.node = s0.other, .need = CPS_XN_SCALAR};
        k.in[2] = (cps_xslot){.node = s1.other, .need = CPS_XN_TILE};
        cps_xcand_set(&k, CPS_TA_OP0, (int32_t)s0.op);
        cps_xcand_set(&k, CPS_TA_OP1, (int32_t)s1.op);
        if (s0.rev || s1.rev)
            cps_xcand_set(&k, CPS_TA_REVERSE, (s0.rev ? 1 : 0) | (s1.rev ? 2 : 0));
        cps_x_offer(c, k, 1, on_dve, elems(c));
    }
}

void
cps_x_row_scalar(cps_xcover *c)
{
    const cps_xnode *n = cps_x_at(c->g, c->at);

    if (is_abs(n)) {
        split s0 = {.op = CPS_ALU_ABS_VALUE};
        if (reduces_here(c))
            offer_ts_reduce(c, n->a, NULL, true);
        offer_scalar(c, n->a, s0, NULL, true);
        return;
    }
    if (n->kind == CPS_X_FUNC && n->sub == CPS_ACTFN_RSQRT && c->pin == CPS_POOL) {
        cps_xcand k = {.row = 4, .op = CPS_T_TENSOR_SCALAR, .covered = 1};
        k.in[0] = (cps_xslot){.node = n->a, .need = CPS_XN_SBUF};
        k.in[1] = k.in[2] = (cps_xslot){.need = CPS_XN_IMM};
        cps_xcand_set(&k, CPS_TA_OP0, CPS_ALU_RSQRT);
        cps_x_offer(c, k, 1, on_pool, elems(c));
        return;
    }
    if (reduces_here(c) && n->kind == CPS_X_TILE)
        offer_ts_reduce(c, c->at, NULL, false);
    if (n->kind != CPS_X_ALU || !dve_has(n->sub))
        return;
    for (int side = 0; side < 2; side++) {
        split s = take(n, side);
        if (!is_t(c, s.data))
            continue;
        if (is_x(c, s.other)) {
            offer_scalar(c, s.data, s, NULL, false);
            if (reduces_here(c) && !s.rev && !is_bits(s.op))
                offer_ts_reduce(c, s.data, &s, false);
        }
        two_ops(c, s, s.data);
        if (side == 0 && is_t(c, s.other) && !both_psum(c, s.data, s.other)) {
            cps_xcand k = {.row = 6, .op = CPS_T_TENSOR_TENSOR, .covered = 1};
            k.in[0] = (cps_xslot){.node = s.data, .need = CPS_XN_TILE};
            k.in[1] = (cps_xslot){.node = s.other, .need = CPS_XN_TILE};
            cps_xcand_set(&k, CPS_TA_OP0, (int32_t)s.op);
            cps_x_offer(c, k, 1, on_dve, elems(c));
        }
    }
}

/* ---- activation ---- */
typedef struct inside { /* f(data * scale + bias) */
    cps_xid data, scale, bias;
    double scale_num;
    int covered;
} inside;

static void
offer_act(cps_xcover *c, unsigned f, inside p, int64_t n)
{
    cps_xcand k = {.row = 7, .op = CPS_T_ACTIVATION, .covered = p.covered};

    if (p.bias && f == CPS_ACTFN_RECIPROCAL && c->t->gen == CPS_V2)
        return; // activation(reciprocal) takes no bias on v2 (NKI docs)
    k.in[0] = (cps_xslot){.node = p.data, .need = CPS_XN_TILE};
    k.in[1] = p.scale ? (cps_xslot){.node = p.scale, .need = CPS_XN_SCALAR}
                      : (cps_xslot){.need = CPS_XN_IMM, .num = p.scale_num};
    k.in[2] = p.bias ? (cps_xslot){.node = p.bias, .need = CPS_XN_BIAS}
                     : (cps_xslot){.need = CPS_XN_IMM};
    cps_xcand_set(&k, CPS_TA_FUNC, (int32_t)f);
    if (c->root && c->dst->red) {
        if (c->dst->red_op != CPS_ALU_ADD)
            return;
        cps_xcand r = k;
        r.row = 8;
        r.red = true;
        r.covered++;
        cps_xcand_set(&r, CPS_TA_ACC, 3);
        cps_x_offer(c, r, 1, on_act, n);
    }
    cps_x_offer(c, k, 1, on_act, n);
}

// Offers f over every way to read `arg` as data * scale + bias; `base` operators are covered by
// f.
static void
act_patterns(cps_xcover *c, unsigned f, cps_xid arg, int base, int64_t n)
{
    const cps_xnode *x = cps_x_at(c->g, arg);

    if (is_t(c, arg) || x->kind == CPS_X_NUM) // of a number: of a tile filled with it
        offer_act(c, f, (inside){.data = arg, .scale_num = 1, .covered = base}, n);
    if (x->kind != CPS_X_ALU || !(cps_x_inner(c, arg) || arg == c->at))
        return;
    for (int side = 0; side < 2; side++) {
        cps_xid t = side ? x->b : x->a, o = side ? x->a : x->b;
        if (!is_t(c, t) || !is_x(c, o))
            continue;
        if (x->sub == CPS_ALU_MULT)
            offer_act(c, f, (inside){.data = t, .scale = o, .covered = base + 1}, n);
        if (x->sub == CPS_ALU_SUBTRACT && side == 1)
            offer_act(c, f,
                      (inside){.data = t, .scale_num = -1, .bias = o, .covered = base + 1}, n);
        if (x->sub != CPS_ALU_ADD)
            continue;
        offer_act(c, f, (inside){.data = t, .scale_num = 1, .bias = o, .covered = base + 1}, n);
        const cps_xnode *y = cps_x_at(c->g, t);
        if (y->kind != CPS_X_ALU || y->sub != CPS_ALU_MULT || !cps_x_inner(c, t))
            continue;
        for (int in = 0; in < 2; in++) {
            cps_xid d = in ? y->b : y->a, s = in ? y->a : y->b;
            if (is_t(c, d) && is_x(c, s))
                offer_act(c, f, (inside){.data = d, .scale = s, .bias = o, .covered = base + 2},
                          n);
        }
    }
}

void
cps_x_row_activation(cps_xcover *c)
{
    const cps_xnode *n = cps_x_at(c->g, c->at);

    if (n->kind == CPS_X_FUNC)
        act_patterns(c, n->sub, n->a, 1, elems(c));
    else if (c->pin == CPS_ACT && (n->kind == CPS_X_ALU || n->kind == CPS_X_TILE) &&
             (!c->t->act_copies || (c->root && c->dst->red)))
        act_patterns(c, CPS_ACTFN_IDENTITY, c->at, 0,
                     elems(c)); // what was pinned, as f = identity
}

/* ---- reductions written as sum(), max(), min() ---- */
void
cps_x_row_reduce(cps_xcover *c)
{
    const cps_xnode *n = cps_x_at(c->g, c->at);
    bool negate = false;
    cps_xid at = c->at;

    if (n->kind == CPS_X_ALU && n->sub == CPS_ALU_MULT) { // -max(x): times -1
        for (int side = 0; side < 2; side++) {
            cps_xid r = side ? n->b : n->a, m = side ? n->a : n->b;
            const cps_xnode *k = cps_x_at(c->g, m);
            if (k->kind == CPS_X_NUM && k->num == -1.0 && cps_x_inner(c, r) &&
                cps_x_at(c->g, r)->kind == CPS_X_REDUCE) {
                at = r;
                negate = true;
            }
        }
    }
    n = cps_x_at(c->g, at);
    if (n->kind != CPS_X_REDUCE || (c->root && c->dst->red))
        return;
    const cps_xnode *x = cps_x_at(c->g, n->a);
    int64_t in = cps_x_elems(x);
    int axes_real = 0;
    for (int i = 0; i < x->nfree; i++)
        axes_real += x->free[i] > 1;
    for (int i = x->nfree - n->axes; i < x->nfree; i++)
        axes_real -= x->free[i] > 1;

    cps_xcand k = {
        .row = 10, .op = CPS_T_TENSOR_REDUCE, .covered = negate ? 2 : 1, .axes = n->axes};
    k.in[0] = (cps_xslot){.node = n->a, .need = CPS_XN_TILE};
    cps_xcand_set(&k, CPS_TA_OP0, n->sub);
    if (negate)
        cps_xcand_set(&k, CPS_TA_NEGATE, 1);
    cps_x_offer(c, k, 1, on_dve, in);
    if (negate || axes_real > 0 || !cps_x_inner(c, n->a))
        return;
    // All free axes, elements unwanted: rows 8 and 9 with a scratch tile for the elements.
    if (is_abs(x)) {
        cps_xcand r = {.row = 9, .op = CPS_T_TS_REDUCE, .covered = 2, .scratch = true};
        r.in[0] = (cps_xslot){.node = x->a, .need = CPS_XN_TILE};
        r.in[1] = (cps_xslot){.need = CPS_XN_IMM};
        cps_xcand_set(&r, CPS_TA_OP0, CPS_ALU_ABS_VALUE);
        cps_xcand_set(&r, CPS_TA_RED, n->sub);
        cps_xcand_set(&r, CPS_TA_ACC, 3);
        cps_x_offer(c, r, 1, on_dve, in);
    }
    if (x->kind == CPS_X_FUNC && n->sub == CPS_ALU_ADD) {
        cps_xcand save = c->best;
        cps_xid here = c->at;
        bool root = c->root;
        c->best = (cps_xcand){0};
        c->at = n->a;
        c->root = false;
        act_patterns(c, x->sub, x->a, 1, in);
        cps_xcand got = c->best;
        c->best = save;
        c->at = here;
        c->root = root;
        if (got.row) {
            got.row = 8;
            got.covered++;
            got.scratch = true;
            cps_xcand_set(&got, CPS_TA_ACC, 3);
            cps_x_offer(c, got, 1, on_act, in);
        }
    }
}

/* ---- scan, reciprocal, copy, memset, iota, integers ---- */
void
cps_x_row_rest(cps_xcover *c)
{
    const cps_xnode *n = cps_x_at(c->g, c->at);
    cps_xcand k = {.covered = 1};

    if (c->ints && n->kind == CPS_X_ALU) {
        k.row = 22;
        k.op = CPS_T_TENSOR_TENSOR;
        k.in[0] = (cps_xslot){.node = n->a, .need = CPS_XN_INT};
        k.in[1] = (cps_xslot){.node = n->b, .need = CPS_XN_INT};
        cps_xcand_set(&k, CPS_TA_OP0,
                      n->sub == CPS_ALU_ADD        ? CPS_ALU_ADD_INT
                      : n->sub == CPS_ALU_SUBTRACT ? CPS_ALU_SUB_INT
                                                   : CPS_ALU_MULT_INT);
        cps_x_offer(c, k, 1, on_pool, elems(c));
        return;
    }
    switch (n->kind) {
    case CPS_X_SCAN:
        if (both_psum(c, n->a, n->b))
            return;
        k.row = 11;
        k.op = CPS_T_SCAN;
        k.covered = 3;
        k.in[0] = (cps_xslot){.node = n->a, .need = CPS_XN_TILE};
        k.in[1] = (cps_xslot){.node = n->b, .need = CPS_XN_TILE};
        k.in[2] = (cps_xslot){.node = n->c, .need = CPS_XN_SCALAR};
        cps_xcand_set(&k, CPS_TA_OP0, n->sub);
        cps_xcand_set(&k, CPS_TA_OP1, n->sub2);
        cps_x_offer(c, k, 1, on_dve, elems(c));
        return;
    case CPS_X_RECIP:
        k.row = 12;
        k.op = CPS_T_RECIPROCAL;
        k.in[0] = (cps_xslot){.node = n->a, .need = CPS_XN_TILE};
        cps_x_offer(c, k, 1, on_dve, elems(c));
        return;
    case CPS_X_TILE: {
        cps_engine order[3] = {CPS_DVE};
        int m = 1;
        if (c->t->act_copies)
            order[m++] = CPS_ACT;
        if (n->view->space == CPS_SBUF && (!c->out || c->out->space == CPS_SBUF))
            order[m++] = CPS_POOL;
        k.row = 19;
        k.covered = 0;
        k.op = CPS_T_COPY;
        k.in[0] = (cps_xslot){.node = c->at, .need = CPS_XN_TILE};
        cps_x_offer(c, k, m, order, elems(c));
        return;
    }
    case CPS_X_NUM: {
        cps_engine order[2] = {CPS_DVE, CPS_POOL};
        k.row = 20;
        k.covered = 0;
        k.op = CPS_T_MEMSET;
        k.in[0] = (cps_xslot){.node = c->at, .need = CPS_XN_IMM};
        cps_x_offer(c, k, !c->out || c->out->space == CPS_SBUF ? 2 : 1, order,
                    c->out ? cps_view_free(c->out) : elems(c));
        return;
    }
    case CPS_X_INDEX:
        k.row = 21;
        k.covered = 0;
        k.op = CPS_T_IOTA;
        k.col = n->col;
        cps_xcand_set(&k, CPS_TA_BASE, (int32_t)n->base);
        cps_xcand_set(&k, CPS_TA_CHANNEL, (int32_t)n->channel);
        cps_x_offer(c, k, 1, on_pool, elems(c));
        return;
    default:
        return;
    }
}
