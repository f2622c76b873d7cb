/* Expression graphs of one statement: construction with sharing, the few foldings the language
 * promises, and the shape rules of element-wise operators. */
#include "frontend/dsl/trace_combine.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

void
cps_x_init(cps_xgraph *g, cps_arena *a)
{
    *g = (cps_xgraph){.arena = a};
    (void)cps_vec_add(a, &g->n);
}

int64_t
cps_x_elems(const cps_xnode *n)
{
    int64_t e = 1;
    for (int i = 0; i < n->nfree; i++)
        e *= n->free[i];
    return e;
}

static bool
same_view(const cps_view *a, const cps_view *b)
{
    if (a == b)
        return true;
    if (!a || !b || a->store != b->store || a->dtype != b->dtype || a->nd != b->nd ||
        a->paxis != b->paxis || a->part != b->part || a->all != b->all || a->off != b->off ||
        a->reg != b->reg || a->reg_step != b->reg_step || a->index != b->index)
        return false;
    for (int i = 0; i < a->nd; i++) {
        const cps_vaxis *x = &a->ax[i], *y = &b->ax[i];
        if (x->num != y->num || x->nl != y->nl || x->fold != y->fold ||
            x->fold_step != y->fold_step || memcmp(x->l, y->l, (size_t)x->nl * sizeof(x->l[0])))
            return false;
    }
    return true;
}

static bool
same_num(double a, double b)
{
    return memcmp(&a, &b, sizeof(a)) == 0;
}

static cps_xid
intern(cps_xgraph *g, const cps_xnode *x)
{
    for (uint32_t i = 1; i < g->n.n; i++) {
        const cps_xnode *y = &g->n.data[i];
        if (y->kind == x->kind && y->sub == x->sub && y->sub2 == x->sub2 &&
            y->axes == x->axes && y->a == x->a && y->b == x->b && y->c == x->c &&
            same_num(y->num, x->num) && y->is_int == x->is_int && y->base == x->base &&
            y->channel == x->channel && y->col == x->col && y->rows == x->rows &&
            y->nfree == x->nfree &&
            memcmp(y->free, x->free, (size_t)x->nfree * sizeof(x->free[0])) == 0 &&
            same_view(y->view, x->view))
            return i;
    }
    cps_vec_push(g->arena, &g->n, *x);
    return g->n.n - 1;
}

cps_xid
cps_x_tile(cps_xgraph *g, const cps_view *v, cps_span at, cps_view_err *e)
{
    cps_xnode x = {.kind = CPS_X_TILE, .view = v, .at = at};

    if (v->paxis > 0) {
        *e = (cps_view_err){
            .code = CPS_E3202,
            .text =
                "a tile whose partitions are not its first axis stands for itself only in `@` "
                "and in `d = t'`",
            .help = "transpose it first: psum t[k, m] = x[m, k]';"};
        return 0;
    }
    x.rows = v->all ? 0 : v->paxis < 0 ? 1 : v->ax[0].num;
    for (int i = 0; i < v->nd; i++)
        if (i != v->paxis)
            x.free[x.nfree++] = v->ax[i].num;
    return intern(g, &x);
}

cps_xid
cps_x_num(cps_xgraph *g, double v, bool is_int, cps_span at)
{
    return intern(g, &(cps_xnode){.kind = CPS_X_NUM, .num = v, .is_int = is_int, .at = at});
}

cps_xid
cps_x_index(cps_xgraph *g, int64_t base, int64_t channel, int64_t col, int64_t rows,
            int64_t cols, cps_span at)
{
    cps_xnode x = {.kind = CPS_X_INDEX,
                   .base = base,
                   .channel = channel,
                   .col = col,
                   .rows = rows,
                   .nfree = 1,
                   .at = at};
    x.free[0] = cols;
    return intern(g, &x);
}

// Shapes that differ, spelt out; a [1, n] row gets the message of its own.
static bool
no_meet(const cps_xgraph *g, const cps_xnode *x, const cps_xnode *y, cps_view_err *e)
{
    const cps_xnode *row = x->rows == 1 ? x : y->rows == 1 ? y : NULL;
    const cps_xnode *big = row == x ? y : x;
    cps_arena *a = g->arena;
    const char *sx = "[", *sy = "[";

    for (int k = 0; k < 2; k++) {
        const cps_xnode *n = k ? y : x;
        const char *s = cps_arena_printf(a, n->rows ? "[%lld" : "[all", (long long)n->rows);
        for (int i = 0; i < n->nfree; i++)
            s = cps_arena_printf(a, "%s, %lld", s, (long long)n->free[i]);
        s = cps_arena_printf(a, "%s]", s);
        *(k ? &sy : &sx) = s;
    }
    if (row && big->rows > 1 && row->kind == CPS_X_TILE) {
        const char *name = row->view->name ? row->view->name : "the row";
        *e = (cps_view_err){
            .code = CPS_E3201,
            .text = cps_arena_printf(a, "a %s row cannot meet a %s tile", row == x ? sx : sy,
                                     row == x ? sy : sx),
            .note = cps_arena_printf(
                a, "%s is on one partition, and an engine lane reads its own partition only",
                name),
            .help = cps_arena_printf(a, "keep it on all of them: sbuf %s[all, %lld] <- ...;",
                                     name, (long long)cps_x_elems(row))};
        return false;
    }
    *e = (cps_view_err){.code = CPS_E3202,
                        .text = cps_arena_printf(a, "shapes %s and %s do not match", sx, sy)};
    return false;
}

// Free axes without units.
static int
strip(const cps_xnode *x, int64_t *out)
{
    int n = 0;
    for (int i = 0; i < x->nfree; i++)
        if (x->free[i] != 1)
            out[n++] = x->free[i];
    return n;
}

bool
cps_x_meet(const cps_xgraph *g, cps_xid ia, cps_xid ib, int64_t *rows, int *nfree,
           int64_t *free_, cps_view_err *e)
{
    const cps_xnode *x = cps_x_at(g, ia), *y = cps_x_at(g, ib);
    int64_t sx[CPS_VIEW_AXES], sy[CPS_VIEW_AXES];

    if (x->rows && y->rows && x->rows != y->rows)
        return no_meet(g, x, y, e);
    *rows = x->rows ? x->rows : y->rows;
    int nx = strip(x, sx), ny = strip(y, sy);
    if (ny == 0 || (nx == ny && memcmp(sx, sy, (size_t)nx * sizeof(sx[0])) == 0)) {
        const cps_xnode *z = ny == 0 ? x : x->nfree >= y->nfree ? x : y;
        if (nx == 0 && ny == 0 && y->nfree > x->nfree)
            z = y;
        *nfree = z->nfree;
        memcpy(free_, z->free, sizeof(z->free));
        return true;
    }
    if (nx == 0) {
        *nfree = y->nfree;
        memcpy(free_, y->free, sizeof(y->free));
        return true;
    }
    *nfree = CPS_MAX(x->nfree, y->nfree);
    for (int i = 0; i < *nfree; i++) { // NumPy: from the last axis on
        int px = x->nfree - *nfree + i, py = y->nfree - *nfree + i;
        int64_t dx = px >= 0 ? x->free[px] : 1, dy = py >= 0 ? y->free[py] : 1;
        if (dx != dy && dx != 1 && dy != 1)
            return no_meet(g, x, y, e);
        free_[i] = dx == 1 ? dy : dx;
    }
    return true;
}

static bool
is_num(const cps_xgraph *g, cps_xid i)
{
    return cps_x_at(g, i)->kind == CPS_X_NUM;
}

static bool
whole(const cps_xnode *n, int64_t *v)
{
    if (n->kind != CPS_X_NUM || n->num != floor(n->num) || fabs(n->num) > 2147483647.0)
        return false;
    *v = (int64_t)n->num;
    return true;
}

// Sums and multiples of row() and col() stay indices as long as everything is a whole i32.
static cps_xid
fold_index(cps_xgraph *g, cps_alu op, cps_xid a, cps_xid b, cps_span at)
{
    cps_xnode x = *cps_x_at(g, a), y = *cps_x_at(g, b);
    int64_t v;

    if (x.kind == CPS_X_NUM && whole(&x, &v))
        x = (cps_xnode){.kind = CPS_X_INDEX, .base = v, .nfree = 1, .free = {1}, .axes = -1};
    if (y.kind == CPS_X_NUM && whole(&y, &v))
        y = (cps_xnode){.kind = CPS_X_INDEX, .base = v, .nfree = 1, .free = {1}, .axes = -1};
    if (x.kind != CPS_X_INDEX || y.kind != CPS_X_INDEX)
        return 0;
    if (x.nfree != 1 || y.nfree != 1 || (x.rows && y.rows && x.rows != y.rows) ||
        (x.free[0] != 1 && y.free[0] != 1 && x.free[0] != y.free[0]))
        return 0;
    int64_t rows = x.rows ? x.rows : y.rows, cols = CPS_MAX(x.free[0], y.free[0]);
    int64_t base, ch, col;
    if (op == CPS_ALU_MULT) {
        if (x.axes != -1 && y.axes != -1)
            return 0;
        int64_t f = x.axes == -1 ? x.base : y.base;
        const cps_xnode *i = x.axes == -1 ? &y : &x;
        base = i->base * f;
        ch = i->channel * f;
        col = i->col * f;
    } else if (op == CPS_ALU_ADD || op == CPS_ALU_SUBTRACT) {
        int64_t s = op == CPS_ALU_ADD ? 1 : -1;
        base = x.base + s * y.base;
        ch = x.channel + s * y.channel;
        col = x.col + s * y.col;
    } else {
        return 0;
    }
    if (llabs(base) > INT32_MAX || llabs(ch) > INT32_MAX || llabs(col) > INT32_MAX)
        return 0;
    return cps_x_index(g, base, ch, col, rows, cols, at);
}

static bool
fold_num(cps_alu op, double x, double y, double *out)
{
    switch (op) {
    case CPS_ALU_ADD:
        *out = x + y;
        return true;
    case CPS_ALU_SUBTRACT:
        *out = x - y;
        return true;
    case CPS_ALU_MULT:
        *out = x * y;
        return true;
    case CPS_ALU_MAX:
        *out = fmax(x, y);
        return true;
    case CPS_ALU_MIN:
        *out = fmin(x, y);
        return true;
    default:
        return false;
    }
}

cps_xid
cps_x_alu(cps_xgraph *g, cps_alu op, cps_xid a, cps_xid b, cps_span at, cps_view_err *e)
{
    cps_xnode x = {.kind = CPS_X_ALU, .sub = (uint16_t)op, .at = at};
    double v;
    cps_xid i;

    if (is_num(g, a) && is_num(g, b) &&
        fold_num(op, cps_x_at(g, a)->num, cps_x_at(g, b)->num, &v))
        return cps_x_num(g, v, cps_x_at(g, a)->is_int && cps_x_at(g, b)->is_int, at);
    if (op == CPS_ALU_SUBTRACT && is_num(g, b)) {
        const cps_xnode *c = cps_x_at(g, b);
        op = CPS_ALU_ADD;
        x.sub = CPS_ALU_ADD;
        b = cps_x_num(g, -c->num, c->is_int, c->at);
    }
    if (cps_alu_compares(op) && is_num(g, a)) {
        cps_xid s = a;
        a = b;
        b = s;
        x.sub = (uint16_t)cps_alu_mirrored(op);
    }
    if ((i = fold_index(g, op, a, b, at)) != 0)
        return i;
    if (!cps_x_meet(g, a, b, &x.rows, &x.nfree, x.free, e))
        return 0;
    x.a = a;
    x.b = b;
    return intern(g, &x);
}

static cps_xid
unary(cps_xgraph *g, cps_xkind kind, unsigned sub, cps_xid a, cps_span at)
{
    cps_xnode x = *cps_x_at(g, a);
    cps_xnode y = {
        .kind = kind, .sub = (uint16_t)sub, .a = a, .at = at, .rows = x.rows, .nfree = x.nfree};
    memcpy(y.free, x.free, sizeof(y.free));
    return intern(g, &y);
}

cps_xid
cps_x_div(cps_xgraph *g, cps_xid a, cps_xid b, cps_span at, cps_view_err *e)
{
    if (is_num(g, b)) {
        const cps_xnode *c = cps_x_at(g, b);
        if (c->num == 0) {
            *e = (cps_view_err){.code = CPS_E3203, .text = "division by zero"};
            return 0;
        }
        // Row 13: times the binary32 reciprocal.
        return cps_x_alu(g, CPS_ALU_MULT, a, cps_x_num(g, (float)(1.0 / c->num), false, c->at),
                         at, e);
    }
    cps_xid r = unary(g, CPS_X_RECIP, 0, b, at);
    if (is_num(g, a) && cps_x_at(g, a)->num == 1.0)
        return r;
    return cps_x_alu(g, CPS_ALU_MULT, a, r, at, e);
}

cps_xid
cps_x_func(cps_xgraph *g, cps_actfn f, cps_xid a, cps_span at)
{
    return unary(g, CPS_X_FUNC, f, a, at);
}

cps_xid
cps_x_reduce(cps_xgraph *g, cps_alu op, cps_xid a, int axes, cps_span at, cps_view_err *e)
{
    cps_xnode x = *cps_x_at(g, a);
    cps_xnode y = {.kind = CPS_X_REDUCE,
                   .sub = (uint16_t)op,
                   .a = a,
                   .axes = axes,
                   .at = at,
                   .rows = x.rows,
                   .nfree = x.nfree};

    if (x.kind == CPS_X_NUM || axes < 1 || axes > x.nfree) {
        *e = (cps_view_err){.code = CPS_E3204,
                            .text = "a reduction needs a tile with free axes"};
        return 0;
    }
    memcpy(y.free, x.free, sizeof(y.free));
    for (int i = x.nfree - axes; i < x.nfree; i++)
        y.free[i] = 1;
    return intern(g, &y);
}

bool
cps_x_is_mask(const cps_xgraph *g, cps_xid i)
{
    const cps_xnode *x = cps_x_at(g, i);
    if (x->kind != CPS_X_ALU)
        return false;
    if (x->sub == CPS_ALU_LOGICAL_AND || x->sub == CPS_ALU_LOGICAL_OR)
        return cps_x_is_mask(g, x->a) && cps_x_is_mask(g, x->b);
    return cps_alu_compares(x->sub);
}

// A comparison of row() and col() only.
static bool
affine(const cps_xgraph *g, cps_xid i)
{
    const cps_xnode *x = cps_x_at(g, i);
    if (x->kind != CPS_X_ALU || !cps_alu_compares(x->sub))
        return false;
    const cps_xnode *a = cps_x_at(g, x->a), *b = cps_x_at(g, x->b);
    return (a->kind == CPS_X_INDEX || a->kind == CPS_X_NUM) &&
           (b->kind == CPS_X_INDEX || b->kind == CPS_X_NUM);
}

cps_xid
cps_x_select(cps_xgraph *g, cps_xid c, cps_xid a, cps_xid b, cps_span at, cps_view_err *e)
{
    const cps_xnode *m = cps_x_at(g, c);

    if (m->kind == CPS_X_ALU && m->sub == CPS_ALU_LOGICAL_AND && affine(g, m->a) &&
        affine(g, m->b)) { // two affine_selects
        cps_xid ma = m->a, mb = m->b;
        cps_xid in = cps_x_select(g, mb, a, b, at, e);
        return in ? cps_x_select(g, ma, in, b, at, e) : 0;
    }
    if (!cps_x_is_mask(g, c) && m->kind != CPS_X_TILE) {
        *e = (cps_view_err){.code = CPS_E3203,
                            .text =
                                "the first operand of select is a comparison or a mask tile"};
        return 0;
    }
    cps_xnode x = {.kind = CPS_X_SELECT, .a = c, .b = a, .c = b, .at = at};
    cps_xnode t = {.kind = CPS_X_KINDS};
    if (!cps_x_meet(g, a, b, &t.rows, &t.nfree, t.free, e))
        return 0;
    cps_xid between = intern(g, &t); // a nameless shape to meet the mask
    if (!cps_x_meet(g, between, c, &x.rows, &x.nfree, x.free, e))
        return 0;
    return intern(g, &x);
}

cps_xid
cps_x_prev(cps_xgraph *g, cps_span at)
{
    return intern(g, &(cps_xnode){.kind = CPS_X_PREV, .at = at});
}

cps_xid
cps_x_scan(cps_xgraph *g, cps_xid body, cps_xid init, cps_span at, cps_view_err *e)
{
    const cps_xnode *o = cps_x_at(g, body);
    cps_xid inner = 0, b = 0, a = 0;

    if (o->kind == CPS_X_ALU)
        for (int k = 0; k < 2 && !inner; k++) {
            cps_xid i = k ? o->b : o->a;
            const cps_xnode *x = cps_x_at(g, i);
            if (x->kind == CPS_X_ALU && (cps_x_at(g, x->a)->kind == CPS_X_PREV ||
                                         cps_x_at(g, x->b)->kind == CPS_X_PREV)) {
                inner = i;
                b = k ? o->a : o->b;
                a = cps_x_at(g, x->a)->kind == CPS_X_PREV ? x->b : x->a;
            }
        }
    if (!inner || cps_x_at(g, a)->kind == CPS_X_PREV) {
        *e = (cps_view_err){.code = CPS_E3203,
                            .text = "scan takes (A op prev) op B, with `prev` once"};
        return 0;
    }
    cps_alu op0 = (cps_alu)cps_x_at(g, inner)->sub, op1 = (cps_alu)o->sub;
    if ((op0 != CPS_ALU_MULT && op0 != CPS_ALU_ADD && op0 != CPS_ALU_MAX &&
         op0 != CPS_ALU_MIN && op0 != CPS_ALU_SUBTRACT) ||
        (op0 == CPS_ALU_SUBTRACT && cps_x_at(g, cps_x_at(g, inner)->a)->kind == CPS_X_PREV) ||
        (op1 == CPS_ALU_SUBTRACT && inner == o->b)) {
        *e = (cps_view_err){.code = CPS_E3203,
                            .text = "this order of operators is no tensor_tensor_scan"};
        return 0;
    }
    cps_xnode x = {.kind = CPS_X_SCAN,
                   .sub = (uint16_t)op0,
                   .sub2 = (uint16_t)op1,
                   .a = a,
                   .b = b,
                   .c = init,
                   .at = at};
    if (!cps_x_meet(g, a, b, &x.rows, &x.nfree, x.free, e))
        return 0;
    return intern(g, &x);
}
