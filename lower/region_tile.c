/* One op of a region as statements on tiles.
 *
 * Engines compute in fp32 and round to nearest when they write (isa-semantics 8.1, 8.2), so an op
 * is exact to one rounding of its tile's dtype. Truth values are tiles of 1 and 0. What has no
 * instruction is made of several that are exact:
 *   - functions beyond the range of a table, floor, ceil and round: region_fn.c;
 *   - integers: region_int.c.
 * Selection copies under a mask and never multiplies: inf * 0 is no zero.
 *
 * The table of functions and `cps_region_takes` say what a region holds. */
#include "lower/region_leaf.h"

#include <inttypes.h>
#include <math.h>

/* ---- what a region holds ---- */

typedef struct name_row {
    cps_op op;
    const char *name;
} name_row;

static const name_row functions[] = {
    {CPS_OP_EXP, "exp"},         {CPS_OP_SQRT, "sqrt"},       {CPS_OP_RSQRT, "rsqrt"},
    {CPS_OP_TANH, "tanh"},       {CPS_OP_ERF, "erf"},
    {CPS_OP_SIGMOID, "sigmoid"}, {CPS_OP_SOFTPLUS, "softplus"},
    {CPS_OP_GELU, "gelu"},       {CPS_OP_GELU_TANH, "gelu_apprx_tanh"},
    {CPS_OP_SILU, "silu"},       {CPS_OP_SWISH, "gelu_apprx_sigmoid"},
    {CPS_OP_MISH, "mish"},
    {CPS_OP_ABS, "abs"},         {CPS_OP_SIGN, "sign"},
    {CPS_OP_SQUARE, "square"},
};

static const name_row compares[] = {
    {CPS_OP_EQ, "=="}, {CPS_OP_NE, "!="}, {CPS_OP_LT, "<"},
    {CPS_OP_LE, "<="}, {CPS_OP_GT, ">"},  {CPS_OP_GE, ">="},
};

static const char *
row_name(const name_row *r, size_t n, cps_op op)
{
    for (size_t i = 0; i < n; i++)
        if (r[i].op == op)
            return r[i].name;
    return NULL;
}

const char *
cps_rg_function(cps_op op)
{
    return row_name(functions, cps_countof(functions), op);
}

static const char *
comparison(cps_op op)
{
    return row_name(compares, cps_countof(compares), op);
}

static bool
is_float(cps_dtype t)
{
    return t == CPS_DT_BF16 || t == CPS_DT_FP16 || t == CPS_DT_FP32;
}

// Integers that fp32 holds, whatever their value.
bool
cps_rg_is_short(cps_dtype t)
{
    return t == CPS_DT_I8 || t == CPS_DT_U8 || t == CPS_DT_I16 || t == CPS_DT_U16 || t == CPS_DT_BOOL;
}

static bool
takes_cast(cps_dtype from, cps_dtype to)
{
    bool known = is_float(from) || cps_rg_is_short(from) || from == CPS_DT_I32;
    return known && (is_float(to) || cps_rg_is_short(to) || to == CPS_DT_I32);
}

// Along the last axis; the others and the other way round are turned so before (region_rules.c).
static bool
takes_scan(const cps_func *f, const cps_node *n, const char **why)
{
    const cps_type *t = &f->vals.data[n->in[0]].type;
    int64_t last = t->rank ? t->dim[t->rank - 1] : 1;
    bool turned = cps_attr_int(n->attr, n->nattr, "axis", 0) == t->rank - 1 && !cps_attr_int(n->attr, n->nattr, "reverse", 0);
    if (!is_float(t->dtype) && (t->dtype != CPS_DT_I32 || last > CPS_RG_SCAN_ROW))
        *why = "engines sum along an axis through fp32, which loses bits of integers above 2^24";
    return turned && last > 1 && (is_float(t->dtype) || (t->dtype == CPS_DT_I32 && last <= CPS_RG_SCAN_ROW));
}

bool
cps_region_takes(const cps_func *f, const cps_node *n, const char **why)
{
    const char *none;
    why = why ? why : &none;
    *why = NULL;
    if (n->nin < 1 || n->nin > 3)
        return false;
    cps_dtype in = f->vals.data[n->in[n->op == CPS_OP_SELECT ? 1 : 0]].type.dtype,
              out = f->vals.data[n->out[0]].type.dtype;
    bool i32 = in == CPS_DT_I32, truth = in == CPS_DT_BOOL;
    switch (n->op) {
    case CPS_OP_CAST:
        return takes_cast(in, out);
    case CPS_OP_SLICE:
        return (is_float(in) || cps_rg_is_short(in) || i32) && cps_region_slice_axis(f, n) >= 0;
    case CPS_OP_RESHAPE:
    case CPS_OP_BROADCAST:
    case CPS_OP_SELECT:
        return is_float(in) || i32 || truth;
    case CPS_OP_NEG:
    case CPS_OP_RELU:
    case CPS_OP_ADD:
    case CPS_OP_SUB:
    case CPS_OP_MUL:
        break;
    case CPS_OP_ABS:
    case CPS_OP_SIGN:
    case CPS_OP_SQUARE:
        break;
    case CPS_OP_MAX:
    case CPS_OP_MIN:
    case CPS_OP_EQ:
    case CPS_OP_NE:
        if (cps_rg_is_short(in))
            return truth || comparison(n->op);
        break;
    case CPS_OP_LT:
    case CPS_OP_LE:
    case CPS_OP_GT:
    case CPS_OP_GE:
        if (cps_rg_is_short(in) && !truth)
            return true;
        break;
    case CPS_OP_AND:
    case CPS_OP_OR:
    case CPS_OP_XOR:
    case CPS_OP_NOT:
        return truth || i32;
    case CPS_OP_DIV:
    case CPS_OP_MOD:
        if (!is_float(in) && !i32)
            *why = "engines divide through fp32, which loses bits of integers above 2^24";
        return is_float(in) || i32;
    case CPS_OP_POW:
        if (!is_float(in))
            *why = "engines raise to powers through fp32, which loses bits of integers above 2^24";
        return is_float(in);
    case CPS_OP_CUMSUM:
        return takes_scan(f, n, why);
    case CPS_OP_CALL:
        return cps_region_opens(f, n) > 0;
    case CPS_OP_SUM:
    case CPS_OP_MEAN:
    case CPS_OP_RMAX:
    case CPS_OP_RMIN:
        if (!is_float(in))
            *why = "engines reduce through fp32, which loses bits of integers above 2^24";
        return is_float(in);
    case CPS_OP_FLOOR:
    case CPS_OP_CEIL:
    case CPS_OP_ROUND:
    case CPS_OP_ISNAN:
    case CPS_OP_LOG:
    case CPS_OP_RECIPROCAL:
    case CPS_OP_SIN:
    case CPS_OP_COS:
    case CPS_OP_ARCTAN:
        return is_float(in);
    default:
        return cps_rg_function(n->op) && is_float(in);
    }
    if (in == CPS_DT_U32)
        *why = "engines compute unsigned integers through fp32, which loses bits above 2^24";
    else if (!i32 && cps_dtype_is_int(in))
        *why = "engines have no 64-bit integers";
    return is_float(in) || i32;
}

bool
cps_rg_is_sharp(const cps_region *r, const cps_rvalue *v)
{
    switch (v->op) {
    case CPS_OP_SUB: // what is left of two values that are nearly equal
        return r->v[v->in[0]].kind != CPS_RV_NUMBER && r->v[v->in[1]].kind != CPS_RV_NUMBER;
    case CPS_OP_EXP: // the absolute error of the operand is the relative error of the result
    case CPS_OP_LOG:
    case CPS_OP_SIN:
    case CPS_OP_COS:
    case CPS_OP_POW:
    case CPS_OP_DIV:
    case CPS_OP_MOD:
    case CPS_OP_RECIPROCAL:
    case CPS_OP_RSQRT:
    case CPS_OP_SIGN:
    case CPS_OP_FLOOR:
    case CPS_OP_CEIL:
    case CPS_OP_ROUND:
        return true;
    case CPS_OP_CAST:
        return !is_float(v->dtype);
    default:
        return comparison(v->op) != NULL;
    }
}

bool
cps_rg_decides(const cps_rvalue *v)
{
    return v->op == CPS_OP_FLOOR || v->op == CPS_OP_CEIL || v->op == CPS_OP_ROUND ||
           (v->op == CPS_OP_CAST && !is_float(v->dtype)) || comparison(v->op);
}

bool
cps_rg_may_inline(const cps_rgen *g, int k, int user)
{
    const cps_rvalue *v = &g->r->v[k], *u = &g->r->v[user];
    bool sums = v->op == CPS_OP_ADD || v->op == CPS_OP_SUB || v->op == CPS_OP_MUL;
    bool bounds = v->op == CPS_OP_MAX || v->op == CPS_OP_MIN;
    if ((!sums && !bounds) || !is_float(v->dtype) || !is_float(u->dtype) || v->kind != CPS_RV_NODE)
        return false;
    int tiles = 0;
    for (int i = 0; i < 2; i++) {
        const cps_rgtile *x = &g->v[v->in[i]];
        bool number = g->r->v[v->in[i]].kind == CPS_RV_NUMBER;
        bool wide = !number && x->cls == g->v[k].cls;
        tiles += wide;
        if (!wide && !number && x->cls != CPS_RG_COL && x->cls != CPS_RG_ONE)
            return false;
        if (wide && g->v[g->v[v->in[i]].root].inlined)
            return false;
    }
    if (tiles != 1 || g->v[k].cls != g->v[user].cls)
        return false;
    if (u->op == CPS_OP_ADD || u->op == CPS_OP_SUB || u->op == CPS_OP_MUL || u->op == CPS_OP_MAX ||
        u->op == CPS_OP_MIN) {
        int other = g->v[u->in[0]].root == k ? u->in[1] : u->in[0];
        return g->r->v[other].kind == CPS_RV_NUMBER ||
               (g->v[other].cls != g->v[user].cls && g->v[other].cls != CPS_RG_ROW);
    }
    // scale and bias of an activation
    return sums && cps_rg_function(u->op) && u->op != CPS_OP_ABS && u->op != CPS_OP_SIGN &&
           u->op != CPS_OP_SQUARE;
}

/* ---- writing ---- */

static const char *
text(const cps_rgen *g, double x, cps_dtype t)
{
    cps_buf b = {0};
    if (is_float(t))
        cps_region_number(x, &b);
    else
        cps_buf_printf(&b, x < 0 ? "(%" PRId64 ")" : "%" PRId64, (int64_t)x);
    const char *s = cps_arena_strdup(g->a, b.data);
    cps_buf_fini(&b);
    return s;
}

const char *
cps_rg_number(const cps_rgen *g, int k)
{
    const cps_rvalue *v = &g->r->v[k];
    return text(g, v->number, v->dtype == CPS_DT_BOOL ? CPS_DT_FP32 : v->dtype);
}

bool
cps_rg_is_number(const cps_rgen *g, int k)
{
    return g->r->v[k].kind == CPS_RV_NUMBER;
}

const char *
cps_rg_read(const cps_rgen *g, int k, cps_rgclass c)
{
    if (cps_rg_is_number(g, k))
        return cps_rg_number(g, k);
    int root = g->v[k].root;
    const cps_rgtile *x = &g->v[root];
    const cps_rvalue *v = &g->r->v[root];
    if (x->inlined) {
        const char *a = cps_rg_read(g, v->in[0], c), *b = cps_rg_read(g, v->in[1], c);
        const char *f = v->op == CPS_OP_MAX   ? "maximum(%s, %s)"
                        : v->op == CPS_OP_MIN ? "minimum(%s, %s)"
                        : v->op == CPS_OP_ADD ? "(%s + %s)"
                        : v->op == CPS_OP_SUB ? "(%s - %s)"
                                              : "(%s * %s)";
        cps_buf o = {0};
        for (const char *p = f; *p; p++) {
            if (p[0] == '%' && p[1] == 's') {
                cps_buf_puts(&o, a);
                a = b;
                p++;
            } else {
                cps_buf_putc(&o, *p);
            }
        }
        const char *s = cps_arena_strdup(g->a, o.data);
        cps_buf_fini(&o);
        return s;
    }
    const char *name = cps_rg_name(g, root);
    if ((x->cls != CPS_RG_ROW && x->cls != CPS_RG_ONE) || c == CPS_RG_ROW || c == CPS_RG_ONE)
        return name;
    bool cut = x->cls == CPS_RG_ROW && g->rows_first && !g->whole;
    return cps_arena_printf(g->a, "%s[0:t.size, %s]", name, cut ? "c" : ":");
}

// x as it is read, where it has the extents of the class.
bool
cps_rg_has_shape(const cps_rgen *g, int k, cps_rgclass c)
{
    if (cps_rg_is_number(g, k))
        return false;
    cps_rgclass x = g->v[g->v[k].root].cls;
    return x == c || (c == CPS_RG_FULL && x == CPS_RG_ROW) || (c == CPS_RG_COL && x == CPS_RG_ONE);
}

// The node's own tile, for an instruction that is written as such.
const char *
cps_rg_fresh(cps_rgen *g, int k)
{
    const char *name = cps_rg_name(g, k);
    cps_rg_line(g, "sbuf %s[%s]: %s%s;", name, cps_rg_extents(g, g->v[k].cls), cps_dtype_name(g->v[k].dtype),
                cps_rg_slots(g, k));
    return name;
}

static const char *
temp(const cps_rgen *g, int k, const char *tag)
{
    return cps_arena_printf(g->a, "%s%s", cps_rg_name(g, k), tag);
}

// The tag of an operand's tile that node k makes for itself.
const char *
cps_rg_own(const cps_rgen *g, int k, char what)
{
    return cps_arena_printf(g->a, "_%d%c", k, what);
}

const char *
cps_rg_shaped(cps_rgen *g, int k, cps_rgclass c, cps_dtype t, const char *tag)
{
    const char *ext = cps_rg_extents(g, c), *type = cps_dtype_name(t);
    if (cps_rg_is_number(g, k)) {
        const char *w = cps_arena_printf(g->a, "n%d%s", k, tag);
        cps_rg_line(g, "sbuf %s[%s]: %s = %s;", w, ext, type, text(g, g->r->v[k].number, t));
        return w;
    }
    const cps_rgtile *x = &g->v[g->v[k].root];
    if (cps_rg_has_shape(g, k, c)) {
        if (x->dtype == t && !x->inlined)
            return cps_rg_read(g, k, c);
        const char *w = temp(g, k, tag);
        cps_rg_line(g, "sbuf %s[%s]: %s = %s;", w, ext, type, cps_rg_read(g, k, c));
        return w;
    }
    // A number for each row meets the columns in a sum; 0 takes nothing from it.
    const char *w = temp(g, k, tag);
    cps_rg_line(g, "sbuf %s[%s]: %s = %s;", w, ext, type, is_float(t) ? "0.0" : "0");
    cps_rg_line(g, "%s = %s + %s;", w, w, cps_rg_read(g, k, c));
    return w;
}

static double
rate(const cps_rgen *g, cps_engine e)
{
    return 1e3 / (e == CPS_ACT ? g->t->act_mhz : e == CPS_POOL ? g->t->pool_mhz : g->t->dve_mhz);
}

static bool
is_narrow(cps_dtype t)
{
    return t == CPS_DT_BF16 || t == CPS_DT_FP16;
}

void
cps_rg_charge(cps_rgen *g, cps_rgclass c, cps_engine e, double columns)
{
    if (c != CPS_RG_FULL)
        return;
    g->load[e] += columns * rate(g, e);
    g->count[e] += columns;
}

// Columns that one pass of the timing classes SCALAR and TWO takes (codegen/isa/timing.def).
double
cps_rg_scalar_pass(const cps_rgen *g, cps_dtype in, cps_dtype out)
{
    return g->t->dve_perf_modes && is_narrow(in) && is_narrow(out) ? 0.25 : 1;
}

double
cps_rg_tensor_pass(cps_dtype a, cps_dtype b, cps_dtype out)
{
    return is_narrow(a) && is_narrow(b) && is_narrow(out) ? 1 : 2;
}

static cps_engine
lighter(const cps_rgen *g, cps_rgclass c, cps_engine a, double na, cps_engine b, double nb)
{
    if (c != CPS_RG_FULL)
        return a;
    return g->load[b] + nb * rate(g, b) < g->load[a] + na * rate(g, a) ? b : a;
}

cps_dtype
cps_rg_dtype_read(const cps_rgen *g, int k)
{
    return cps_rg_is_number(g, k) ? CPS_DT_NONE : g->v[g->v[k].root].dtype;
}

static const char *
on(cps_engine e)
{
    return e == CPS_ACT ? " on act" : e == CPS_POOL ? " on pool" : "";
}

// `sbuf v[t, c]: bf16 = EXPR;` for the node's own tile.
void
cps_rg_give(cps_rgen *g, int k, const char *expr, const char *mark)
{
    const cps_rgtile *x = &g->v[k];
    cps_rg_line(g, "sbuf %s[%s]: %s%s = %s%s;", cps_rg_name(g, k), cps_rg_extents(g, x->cls),
                cps_dtype_name(x->dtype), cps_rg_slots(g, k), expr, mark);
}

/* ---- arithmetic ---- */

bool
cps_rg_meets_number(const cps_rgen *g, const cps_rvalue *v, cps_rgclass c)
{
    for (int i = 0; i < 2; i++)
        if (cps_rg_is_number(g, v->in[i]) || (c != g->v[g->v[v->in[i]].root].cls && !cps_rg_has_shape(g, v->in[i], c)))
            return true;
    return false;
}

static void
arithmetic(cps_rgen *g, int k)
{
    const cps_rvalue *v = &g->r->v[k];
    cps_rgtile *x = &g->v[k];
    const char *a = cps_rg_read(g, v->in[0], x->cls), *b = cps_rg_read(g, v->in[1], x->cls);
    cps_dtype ta = cps_rg_dtype_read(g, v->in[0]), tb = cps_rg_dtype_read(g, v->in[1]);
    const char *sign = v->op == CPS_OP_ADD ? "+" : v->op == CPS_OP_SUB ? "-" : "*";
    bool sums = v->op == CPS_OP_ADD || v->op == CPS_OP_MUL, bounds = v->op == CPS_OP_MAX || v->op == CPS_OP_MIN;
    const char *expr = bounds ? cps_arena_printf(g->a, "%s(%s, %s)", v->op == CPS_OP_MAX ? "maximum" : "minimum", a, b)
                              : cps_arena_printf(g->a, "%s %s %s", a, sign, b);
    if (x->dtype == CPS_DT_I32) { // a true sum or product, on POOL
        cps_rg_charge(g, x->cls, CPS_POOL, 2);
        cps_rg_give(g, k, expr, "");
        return;
    }
    if (cps_rg_meets_number(g, v, x->cls)) {
        double n = cps_rg_scalar_pass(g, ta ? ta : tb, x->dtype);
        // ACT multiplies and adds from v3 on, one number of each.
        bool act = g->t->act_copies && sums && strchr(expr, '(') == NULL && is_float(x->dtype);
        cps_engine e = act ? lighter(g, x->cls, CPS_DVE, n, CPS_ACT, 1) : CPS_DVE;
        cps_rg_charge(g, x->cls, e, e == CPS_ACT ? 1 : n);
        cps_rg_give(g, k, expr, on(e));
        return;
    }
    double n = cps_rg_tensor_pass(ta, tb, x->dtype);
    cps_engine e = sums && !g->t->sbuf_shared_port ? lighter(g, x->cls, CPS_DVE, n, CPS_POOL, n) : CPS_DVE;
    bool plain = !g->v[g->v[v->in[0]].root].inlined && !g->v[g->v[v->in[1]].root].inlined;
    e = plain ? e : CPS_DVE;
    cps_rg_charge(g, x->cls, e, n);
    if (e == CPS_DVE) {
        cps_rg_give(g, k, expr, "");
        return;
    }
    cps_rg_fresh(g, k);
    cps_rg_line(g, "tensor_tensor(dst: %s, data1: %s, data2: %s, op: \"%s\") on pool;", cps_rg_name(g, k), a, b,
                v->op == CPS_OP_ADD ? "add" : "mult");
}

// POOL alone has powers, remainders and quotients of one rounding. Their first operand is a tile.
static void
on_pool(cps_rgen *g, int k, const char *op)
{
    const cps_rvalue *v = &g->r->v[k];
    const cps_rgtile *x = &g->v[k];
    const char *name = cps_rg_fresh(g, k);
    bool swap = cps_rg_is_number(g, v->in[0]);
    int n = cps_rg_is_number(g, v->in[1]) ? v->in[1] : v->in[0];
    cps_rg_charge(g, x->cls, CPS_POOL, 2);
    if (cps_rg_is_number(g, n)) {
        cps_rg_line(g, "tensor_scalar(dst: %s, data: %s, operand0: %s, op0: \"%s\"%s) on pool;", name,
                    cps_rg_read(g, v->in[swap ? 1 : 0], x->cls), cps_rg_number(g, n), op, swap ? ", reverse0: true" : "");
        return;
    }
    const char *a = cps_rg_shaped(g, v->in[0], x->cls, cps_rg_dtype_read(g, v->in[0]), cps_rg_own(g, k, 'p'));
    if (!cps_rg_has_shape(g, v->in[1], x->cls) && cps_rg_dtype_read(g, v->in[1]) == CPS_DT_FP32) { // a number for each row
        cps_rg_line(g, "tensor_scalar(dst: %s, data: %s, operand0: %s, op0: \"%s\") on pool;", name, a,
                    cps_rg_read(g, v->in[1], x->cls), op);
        return;
    }
    const char *b = cps_rg_shaped(g, v->in[1], x->cls, cps_rg_dtype_read(g, v->in[1]), cps_rg_own(g, k, 'q'));
    cps_rg_line(g, "tensor_tensor(dst: %s, data1: %s, data2: %s, op: \"%s\") on pool;", name, a, b, op);
}

static void
divide(cps_rgen *g, int k)
{
    const cps_rvalue *v = &g->r->v[k];
    const cps_rgtile *x = &g->v[k];
    const char *a = cps_rg_read(g, v->in[0], x->cls);
    if (x->decides) { // a product with the reciprocal has two roundings more
        on_pool(g, k, "divide");
        return;
    }
    if (cps_rg_is_number(g, v->in[1])) {
        cps_rg_charge(g, x->cls, CPS_DVE, 1);
        cps_rg_give(g, k, cps_arena_printf(g->a, "%s / %s", a, cps_rg_number(g, v->in[1])), "");
        return;
    }
    if (!cps_rg_has_shape(g, v->in[1], x->cls) && x->cls == CPS_RG_FULL && g->t->act_copies && is_float(x->dtype) &&
        g->v[g->v[v->in[1]].root].cls == CPS_RG_COL && !strchr(a, '(')) { // a number for each row: what DVE divides by, ACT may multiply by
        double n = cps_rg_scalar_pass(g, cps_rg_dtype_read(g, v->in[0]), x->dtype);
        cps_engine e = lighter(g, x->cls, CPS_DVE, n, CPS_ACT, 1);
        cps_rg_line(g, "sbuf %sr[t, 1]: fp32 = 1.0 / %s;", cps_rg_name(g, k), cps_rg_read(g, v->in[1], CPS_RG_COL));
        cps_rg_charge(g, x->cls, e, e == CPS_ACT ? 1 : n);
        cps_rg_give(g, k, cps_arena_printf(g->a, "%s * %sr", a, cps_rg_name(g, k)), on(e));
        return;
    }
    // DVE's reciprocal takes eight passes but is one rounding off at most.
    cps_rg_charge(g, x->cls, CPS_DVE, cps_rg_has_shape(g, v->in[1], x->cls) ? 10 : 1);
    cps_rg_give(g, k, cps_arena_printf(g->a, "%s / %s", a, cps_rg_read(g, v->in[1], x->cls)), "");
}

/* ---- functions ---- */

static const char *
into_sum(const cps_rgen *g, int k)
{
    int s = g->v[k].sum;
    return s < 0 ? "" : cps_arena_printf(g->a, " reduce add into %ss", cps_rg_name(g, s));
}

static void
function(cps_rgen *g, int k)
{
    const cps_rvalue *v = &g->r->v[k];
    const cps_rgtile *x = &g->v[k];
    const char *a = cps_rg_read(g, v->in[0], x->cls);
    cps_dtype ta = cps_rg_dtype_read(g, v->in[0]);
    if (v->op == CPS_OP_SQUARE && x->sum < 0) {
        double n = cps_rg_tensor_pass(ta, ta, x->dtype);
        cps_engine e = lighter(g, x->cls, CPS_ACT, 1, CPS_DVE, n);
        cps_rg_charge(g, x->cls, e, e == CPS_ACT ? 1 : n);
        cps_rg_give(g, k, e == CPS_ACT ? cps_arena_printf(g->a, "square(%s)", a) : cps_arena_printf(g->a, "%s * %s", a, a), "");
        return;
    }
    cps_rg_charge(g, x->cls, CPS_ACT, 1);
    cps_rg_give(g, k, cps_arena_printf(g->a, "%s(%s)%s", cps_rg_function(v->op), a, into_sum(g, k)), "");
}

// DVE's: the table of ACT ends at 2^42.
static void
reciprocal(cps_rgen *g, int k)
{
    const cps_rgtile *x = &g->v[k];
    cps_rg_charge(g, x->cls, CPS_DVE, 8);
    cps_rg_give(g, k, cps_arena_printf(g->a, "1.0 / %s", cps_rg_read(g, g->r->v[k].in[0], x->cls)), "");
}

/* ---- truth ---- */

static void
compare(cps_rgen *g, int k)
{
    const cps_rvalue *v = &g->r->v[k];
    const cps_rgtile *x = &g->v[k];
    const char *sign = comparison(v->op), *n = cps_rg_name(g, k), *ext = cps_rg_extents(g, x->cls);
    cps_dtype t = g->r->v[v->in[0]].dtype;
    bool small = t != CPS_DT_I32 || (cps_rg_fits(g, v->in[0], 16777216.0) && cps_rg_fits(g, v->in[1], 16777216.0));
    // Below 2^24 a number is itself in fp32, and rounding keeps what is above it above.
    for (int i = 0; i < 2; i++)
        small = small || (cps_rg_is_number(g, v->in[i]) && fabs(g->r->v[v->in[i]].number) < 16777216.0);
    if (small) {
        double c = cps_rg_meets_number(g, v, x->cls) ? 1 : cps_rg_tensor_pass(cps_rg_dtype_read(g, v->in[0]), cps_rg_dtype_read(g, v->in[1]), x->dtype);
        cps_rg_charge(g, x->cls, CPS_DVE, c);
        const char *a = cps_rg_read(g, v->in[0], x->cls), *b = cps_rg_read(g, v->in[1], x->cls);
        cps_rg_give(g, k, cps_arena_printf(g->a, "%s %s %s", a, sign, b), "");
        return;
    }
    const char *a = cps_rg_shaped(g, v->in[0], x->cls, CPS_DT_I32, cps_rg_own(g, k, 'i'));
    const char *b = cps_rg_shaped(g, v->in[1], x->cls, CPS_DT_I32, cps_rg_own(g, k, 'j'));
    if (v->op == CPS_OP_EQ || v->op == CPS_OP_NE) { // a difference that wraps is 0 only for equals
        cps_rg_charge(g, x->cls, CPS_POOL, 2);
        cps_rg_charge(g, x->cls, CPS_DVE, 1);
        cps_rg_line(g, "sbuf %sd[%s]: i32 = %s - %s;", n, ext, a, b);
        cps_rg_give(g, k, cps_arena_printf(g->a, "%sd %s 0", n, sign), "");
        return;
    }
    cps_rg_charge(g, x->cls, CPS_POOL, 4);
    cps_rg_charge(g, x->cls, CPS_DVE, 9);
    cps_rg_difference(g, k, a, b);
    cps_rg_give(g, k, cps_arena_printf(g->a, "%sg %s 0.0", n, sign), "");
}

static void
logic(cps_rgen *g, int k)
{
    const cps_rvalue *v = &g->r->v[k];
    const cps_rgtile *x = &g->v[k];
    const char *a = cps_rg_read(g, v->in[0], x->cls), *b = v->nin > 1 ? cps_rg_read(g, v->in[1], x->cls) : "";
    cps_rg_charge(g, x->cls, CPS_DVE, v->op == CPS_OP_NOT ? 0.25 : 1);
    const char *f = v->op == CPS_OP_AND || v->op == CPS_OP_MIN  ? "minimum(%s, %s)"
                    : v->op == CPS_OP_OR || v->op == CPS_OP_MAX ? "maximum(%s, %s)"
                                                                : NULL;
    if (v->op == CPS_OP_NOT)
        cps_rg_give(g, k, cps_arena_printf(g->a, "1.0 - %s", a), "");
    else if (!f)
        cps_rg_give(g, k, cps_arena_printf(g->a, "%s != %s", a, b), "");
    else if (f[1] == 'i')
        cps_rg_give(g, k, cps_arena_printf(g->a, "minimum(%s, %s)", a, b), "");
    else
        cps_rg_give(g, k, cps_arena_printf(g->a, "maximum(%s, %s)", a, b), "");
}

/* ---- choice ---- */

// The predicate as bits: one and zero differ from and equal no bits at all.
static const char *
predicate(cps_rgen *g, int k, int user, cps_rgclass c)
{
    cps_dtype t = cps_rg_is_number(g, k) ? CPS_DT_BF16 : cps_rg_dtype_read(g, k);
    if (t != CPS_DT_U8)
        t = CPS_DT_BF16;
    const char *p = cps_rg_shaped(g, k, c, t, cps_rg_own(g, user, 'm'));
    return t == CPS_DT_U8 ? p : cps_arena_printf(g->a, "%s.bits(u16)", p);
}

// The node's tile holding value `from`: its own tile taken over when nothing reads that again.
static void
start_with(cps_rgen *g, int k, int from)
{
    cps_rgtile *x = &g->v[k], *y = cps_rg_is_number(g, from) ? NULL : &g->v[g->v[from].root];
    if (y && y->uses == 1 && y->cls == x->cls && y->dtype == x->dtype && !y->inlined && x->cls == CPS_RG_FULL) {
        cps_rg_line(g, "let %s = %s;", cps_rg_name(g, k), cps_rg_name(g, from));
        return;
    }
    if (y && !cps_rg_has_shape(g, from, x->cls)) {
        const char *w = cps_rg_shaped(g, from, x->cls, x->dtype, cps_rg_own(g, k, 'f'));
        cps_rg_line(g, "let %s = %s;", cps_rg_name(g, k), w);
        return;
    }
    cps_engine e = y || g->t->sbuf_shared_port ? CPS_DVE : lighter(g, x->cls, CPS_DVE, 0.5, CPS_POOL, 1);
    cps_rg_charge(g, x->cls, e, y ? cps_rg_scalar_pass(g, y->dtype, x->dtype) : e == CPS_DVE ? 0.5 : 1);
    cps_rg_give(g, k, y ? cps_rg_read(g, from, x->cls) : text(g, g->r->v[from].number, x->dtype), on(e));
}

static void
choose(cps_rgen *g, int k, const char *p, int yes, int no)
{
    cps_rgtile *x = &g->v[k];
    bool reverse = cps_rg_is_number(g, yes) && !cps_rg_is_number(g, no);
    int first = reverse ? yes : no, second = reverse ? no : yes;
    start_with(g, k, first);
    const char *src = cps_rg_shaped(g, second, x->cls, x->dtype, cps_rg_own(g, k, 's'));
    cps_rg_charge(g, x->cls, CPS_DVE, 2);
    cps_rg_line(g, "tensor_copy_predicated(dst: %s, predicate: %s, src: %s%s);", cps_rg_name(g, k), p, src,
                reverse ? ", reverse_pred: true" : "");
}

static void
select(cps_rgen *g, int k)
{
    const cps_rvalue *v = &g->r->v[k];
    choose(g, k, predicate(g, v->in[0], k, g->v[k].cls), v->in[1], v->in[2]);
}

/* ---- casts ---- */

static void
cast(cps_rgen *g, int k)
{
    const cps_rvalue *v = &g->r->v[k];
    const cps_rgtile *x = &g->v[k];
    const char *a = cps_rg_read(g, v->in[0], x->cls), *n = cps_rg_name(g, k), *ext = cps_rg_extents(g, x->cls);
    cps_dtype from = g->r->v[v->in[0]].dtype;
    if (v->dtype == CPS_DT_BOOL) {
        cps_rg_charge(g, x->cls, CPS_DVE, 1);
        cps_rg_give(g, k, cps_arena_printf(g->a, "%s != 0.0", a), "");
        return;
    }
    if (!cps_dtype_is_int(v->dtype) || (!is_float(from) && cps_rg_holds(g, v->in[0], v->dtype)) || g->range[v->in[0]].whole) {
        if (cps_dtype_is_int(v->dtype) && !is_float(from) && !cps_rg_holds(g, v->in[0], v->dtype)) {
            cps_rg_int_wrap(g, k);
            return;
        }
        cps_rg_charge(g, x->cls, CPS_DVE, cps_rg_scalar_pass(g, cps_rg_dtype_read(g, v->in[0]), x->dtype));
        cps_rg_give(g, k, a, "");
        return;
    }
    // Towards zero, and held at the ends as the graph's casts are: the nearest of |x|, less one where that lies above, with the sign of x.
    cps_rg_charge(g, x->cls, CPS_DVE, 9);
    cps_rg_charge(g, x->cls, CPS_ACT, 2);
    cps_rg_line(g, "sbuf %sa[%s]: fp32 = abs(%s);", n, ext, a);
    cps_rg_line(g, "sbuf %si[%s]: i32 = %sa;", n, ext, n);
    cps_rg_line(g, "sbuf %sr[%s]: fp32 = %si;", n, ext, n);
    cps_rg_line(g, "sbuf %su[%s]: fp32 = %sr > %sa;", n, ext, n, n);
    cps_rg_line(g, "sbuf %sw[%s]: fp32 = %sr - %su;", n, ext, n, n);
    cps_rg_give(g, k, cps_arena_printf(g->a, "%sw * sign(%s)", n, a), "");
}

static void
not_a_number(cps_rgen *g, int k)
{
    const cps_rgtile *x = &g->v[k];
    const char *a = cps_rg_read(g, g->r->v[k].in[0], x->cls), *n = cps_rg_fresh(g, k);
    cps_rg_charge(g, x->cls, CPS_DVE, 2);
    cps_rg_line(g, "tensor_tensor(dst: %s, data1: %s, data2: %s, op: \"is_ne\");", n, a, a);
}

void
cps_rg_statement(cps_rgen *g, int k)
{
    const cps_rvalue *v = &g->r->v[k];
    const cps_rgtile *x = &g->v[k];
    bool i32 = v->dtype == CPS_DT_I32, truth = v->dtype == CPS_DT_BOOL;
    switch (v->op) {
    case CPS_OP_ADD:
    case CPS_OP_SUB:
    case CPS_OP_MUL:
        arithmetic(g, k);
        return;
    case CPS_OP_MAX:
    case CPS_OP_MIN:
        if (truth)
            logic(g, k);
        else if (i32)
            cps_rg_int_bound(g, k);
        else
            arithmetic(g, k);
        return;
    case CPS_OP_AND:
    case CPS_OP_OR:
    case CPS_OP_XOR:
    case CPS_OP_NOT:
        if (!i32)
            logic(g, k);
        else if (v->op == CPS_OP_NOT)
            cps_rg_int_unary(g, k);
        else
            cps_rg_int_bits(g, k);
        return;
    case CPS_OP_DIV:
        if (i32)
            cps_rg_int_divide(g, k);
        else
            divide(g, k);
        return;
    case CPS_OP_MOD:
        if (i32)
            cps_rg_int_divide(g, k);
        else
            on_pool(g, k, "mod");
        return;
    case CPS_OP_ARCTAN:
        cps_rg_arctangent(g, k);
        return;
    case CPS_OP_CUMSUM:
        cps_rg_scan(g, k);
        return;
    case CPS_OP_POW:
        on_pool(g, k, "pow");
        return;
    case CPS_OP_SELECT:
        select(g, k);
        return;
    case CPS_OP_CAST:
        cast(g, k);
        return;
    case CPS_OP_FLOOR:
    case CPS_OP_CEIL:
    case CPS_OP_ROUND:
        cps_rg_whole_number(g, k);
        return;
    case CPS_OP_SIN:
    case CPS_OP_COS:
        cps_rg_sine(g, k);
        return;
    case CPS_OP_LOG:
        cps_rg_log(g, k);
        return;
    case CPS_OP_RECIPROCAL:
        reciprocal(g, k);
        return;
    case CPS_OP_ISNAN:
        not_a_number(g, k);
        return;
    default:
        break;
    }
    if (comparison(v->op)) {
        if (g->r->v[v->in[0]].dtype == CPS_DT_BOOL && v->op == CPS_OP_NE)
            logic(g, k);
        else
            compare(g, k);
        return;
    }
    if (i32 && (v->op == CPS_OP_NEG || v->op == CPS_OP_ABS || v->op == CPS_OP_SIGN || v->op == CPS_OP_RELU ||
                v->op == CPS_OP_SQUARE)) {
        cps_rg_int_unary(g, k);
        return;
    }
    const char *a = cps_rg_read(g, v->in[0], x->cls);
    if (v->op == CPS_OP_NEG || v->op == CPS_OP_RELU) {
        cps_rg_charge(g, x->cls, CPS_DVE, cps_rg_scalar_pass(g, cps_rg_dtype_read(g, v->in[0]), x->dtype));
        cps_rg_give(g, k, v->op == CPS_OP_NEG ? cps_arena_printf(g->a, "%s * -1.0", a) : cps_arena_printf(g->a, "maximum(%s, 0.0)", a), "");
        return;
    }
    function(g, k);
}
