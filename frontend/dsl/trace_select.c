/* Rows 15 to 18 of the combining table: select() by position (affine_select on POOL,
 * range_select on DVE), by a mask tile, and the predicated copy. */
#include "frontend/dsl/trace_cover.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

static const cps_engine on_dve[] = {CPS_DVE};
static const cps_engine on_pool[] = {CPS_POOL};

static unsigned
inverted(unsigned op)
{
    switch (op) {
    case CPS_ALU_IS_GT:
        return CPS_ALU_IS_LE;
    case CPS_ALU_IS_GE:
        return CPS_ALU_IS_LT;
    case CPS_ALU_IS_LT:
        return CPS_ALU_IS_GE;
    case CPS_ALU_IS_LE:
        return CPS_ALU_IS_GT;
    case CPS_ALU_IS_EQ:
        return CPS_ALU_IS_NE;
    default:
        return CPS_ALU_IS_EQ;
    }
}

typedef struct affine {
    int64_t base, channel, col;
} affine;

static bool
read_affine(const cps_xnode *n, affine *out)
{
    if (n->kind == CPS_X_INDEX) {
        *out = (affine){n->base, n->channel, n->col};
        return true;
    }
    if (n->kind != CPS_X_NUM || n->num != floor(n->num) || fabs(n->num) > 1e9)
        return false;
    *out = (affine){(int64_t)n->num, 0, 0};
    return true;
}

// Row 15.
static void
by_affine(cps_xcover *c, const cps_xnode *s)
{
    const cps_xnode *m = cps_x_at(c->g, s->a);
    const cps_xnode *yes = cps_x_at(c->g, s->b), *no = cps_x_at(c->g, s->c);
    affine x, y;

    if (m->kind != CPS_X_ALU || !cps_alu_compares(m->sub) || !read_affine(cps_x_at(c->g, m->a), &x) ||
        !read_affine(cps_x_at(c->g, m->b), &y))
        return;
    unsigned op = m->sub;
    affine d = {x.base - y.base, x.channel - y.channel, x.col - y.col};
    cps_xid data = s->b, fill = s->c;
    if (no->kind != CPS_X_NUM) {
        if (yes->kind != CPS_X_NUM)
            return; // two tiles: the mask is computed and row 18 does it
        op = inverted(op);
        data = s->c;
        fill = s->b;
    }
    if (op == CPS_ALU_IS_LT || op == CPS_ALU_IS_LE) {
        op = cps_alu_mirrored(op);
        d = (affine){-d.base, -d.channel, -d.col};
    }
    if (llabs(d.base) > INT32_MAX || llabs(d.channel) > INT32_MAX || llabs(d.col) > INT32_MAX)
        return;
    cps_xcand k = {.row = 15, .op = CPS_T_AFFINE_SELECT, .covered = 2, .col = d.col};
    if (cps_x_at(c->g, data)->kind == CPS_X_NUM) {
        k.fill = (cps_xslot){.node = data, .need = CPS_XN_IMM};
        k.in_dst = true;
    } else {
        k.in[0] = (cps_xslot){.node = data, .need = CPS_XN_SBUF};
    }
    k.in[1] = (cps_xslot){.node = fill, .need = CPS_XN_IMM};
    cps_xcand_set(&k, CPS_TA_OP0, (int32_t)op);
    cps_xcand_set(&k, CPS_TA_BASE, (int32_t)d.base);
    cps_xcand_set(&k, CPS_TA_CHANNEL, (int32_t)d.channel);
    cps_x_offer(c, k, 1, on_pool, cps_x_elems(s));
}

typedef struct bound { /* position op x */
    unsigned op;
    cps_xid x;
    int64_t base;
} bound;

static bool
read_bound(const cps_xcover *c, cps_xid i, bound *out)
{
    const cps_xnode *m = cps_x_at(c->g, i);

    if (m->kind != CPS_X_ALU || !cps_alu_compares(m->sub) || m->sub == CPS_ALU_IS_NE)
        return false;
    for (int side = 0; side < 2; side++) {
        cps_xid ci = side ? m->b : m->a, x = side ? m->a : m->b;
        const cps_xnode *col = cps_x_at(c->g, ci), *o = cps_x_at(c->g, x);
        if (col->kind != CPS_X_INDEX || col->channel != 0 || col->col != 1)
            continue;
        if (o->kind != CPS_X_NUM && cps_x_elems(o) != 1)
            continue;
        *out = (bound){.op = side ? cps_alu_mirrored(m->sub) : m->sub, .x = x, .base = col->base};
        return true;
    }
    return false;
}

// Row 16. Indices are compared in binary32, exact below 2^24 (NKI docs).
static void
by_range(cps_xcover *c, const cps_xnode *s)
{
    const cps_xnode *m = cps_x_at(c->g, s->a), *fill = cps_x_at(c->g, s->c);
    bound b[2];
    int n = 0;

    if (fill->kind != CPS_X_NUM || (float)fill->num != -FLT_MAX || !c->t->dve_range_select)
        return;
    if (m->kind == CPS_X_ALU && m->sub == CPS_ALU_LOGICAL_AND) {
        if (!read_bound(c, m->a, &b[0]) || !read_bound(c, m->b, &b[1]) ||
            b[0].base != b[1].base)
            return;
        n = 2;
    } else if (read_bound(c, s->a, &b[0])) {
        b[1] = b[0];
        n = 1;
    }
    if (n == 0 || b[0].base < 0 || b[0].base + cps_x_elems(s) > 1 << 24)
        return;
    const cps_view *data = cps_x_view(c, s->b);
    if (data && !cps_dtype_is_float(data->dtype))
        return;
    cps_xcand k = {.row = 16, .op = CPS_T_RANGE_SELECT, .covered = n == 2 ? 4 : 2};
    k.in[0] = (cps_xslot){.node = s->b, .need = CPS_XN_TILE};
    k.in[1] = (cps_xslot){.node = b[0].x, .need = CPS_XN_COLUMN};
    k.in[2] = (cps_xslot){.node = b[1].x, .need = CPS_XN_COLUMN};
    cps_xcand_set(&k, CPS_TA_OP0, (int32_t)b[0].op);
    cps_xcand_set(&k, CPS_TA_OP1, (int32_t)b[1].op);
    cps_xcand_set(&k, CPS_TA_BASE, (int32_t)b[0].base);
    if (c->root && c->dst->red) {
        if (c->dst->red_op != CPS_ALU_MAX)
            return;
        k.red = true;
        k.covered++;
        cps_xcand_set(&k, CPS_TA_ACC, 3);
    }
    cps_x_offer(c, k, 1, on_dve, cps_x_elems(s));
}

// Rows 17 and 18: a mask tile, or a comparison that becomes one.
static void
by_mask(cps_xcover *c, const cps_xnode *s)
{
    const cps_xnode *yes = cps_x_at(c->g, s->b), *no = cps_x_at(c->g, s->c);
    const cps_view *data = cps_x_view(c, s->b);
    bool narrow = no->kind == CPS_X_NUM || cps_x_elems(no) == 1;
    bool reduces = c->root && c->dst->red;

    if (yes->kind != CPS_X_NUM && narrow &&
        !(data && (data->dtype == CPS_DT_TF32 || data->dtype == CPS_DT_I32 ||
                   data->dtype == CPS_DT_U32))) {
        cps_xcand k = {.row = 17, .op = CPS_T_SELECT_REDUCE, .covered = 1};
        k.in[0] = (cps_xslot){.node = s->a, .need = CPS_XN_MASK};
        k.in[1] = (cps_xslot){.node = s->b, .need = CPS_XN_TILE};
        k.in[2] = (cps_xslot){.node = s->c, .need = CPS_XN_SCALAR};
        if (!reduces || c->dst->red_op == CPS_ALU_MAX) {
            if (reduces) {
                k.red = true;
                k.covered++;
                cps_xcand_set(&k, CPS_TA_ACC, 3);
            }
            cps_x_offer(c, k, 1, on_dve, cps_x_elems(s));
        }
    }
    cps_xcand k = {.row = 18, .op = CPS_T_COPY_PRED, .covered = 1};
    k.in[0] = (cps_xslot){.node = s->a, .need = CPS_XN_MASK};
    k.in[1] = (cps_xslot){.node = s->b, .need = CPS_XN_LIKE};
    if (c->root && s->b == c->dst->node) { // d = select(M, d, T)
        k.in[1].node = s->c;
        cps_xcand_set(&k, CPS_TA_NEGATE, 1);
    } else if (!(c->root && s->c == c->dst->node)) {
        k.fill = (cps_xslot){.node = s->c, .need = CPS_XN_TILE};
        if (no->kind == CPS_X_NUM)
            k.fill.need = CPS_XN_IMM;
    }
    cps_x_offer(c, k, 1, on_dve, cps_x_elems(s));
}

void
cps_x_row_select(cps_xcover *c)
{
    const cps_xnode *s = cps_x_at(c->g, c->at);

    if (s->kind != CPS_X_SELECT)
        return;
    by_affine(c, s);
    by_range(c, s);
    by_mask(c, s);
}
