/* The elementwise ops, as rows: one function per op and kind of operand. What does not change
 * along the lanes is computed once as a scalar and spread where a vector needs it. Integer
 * division by zero, which has no meaning, gives 0 instead of a trap; indices are clamped to
 * their axis, so that bad data reads wrong elements but never foreign memory. */
#include "codegen/host/gen.h"

#include <math.h>

static V
kf(gen *g, V like, double v)
{
    return cps_gen_const_f(g, cps_gen_scalar(like), cps_gen_lanes(like), v);
}
static V
ki(gen *g, V like, int64_t v)
{
    return cps_gen_const_i(g, cps_gen_scalar(like), cps_gen_lanes(like), v);
}
static V
sel(gen *g, V c, V a, V b)
{
    return LLVMBuildSelect(g->b, c, a, b, "");
}
static V
fcmp(gen *g, LLVMRealPredicate p, V a, V b)
{
    return LLVMBuildFCmp(g->b, p, a, b, "");
}
static V
icmp(gen *g, LLVMIntPredicate p, V a, V b)
{
    return LLVMBuildICmp(g->b, p, a, b, "");
}
static bool
is_signed(cps_dtype t)
{
    return cps_dtypes[t].kind == 'S';
}

/* ---- floats ---- */

static V
f_neg(gen *g, V x)
{
    return LLVMBuildFNeg(g->b, x, "");
}
static V
f_abs(gen *g, V x)
{
    return cps_gen_call1(g, "llvm.fabs", x);
}
static V
f_sign(gen *g, V x)
{
    V neg = sel(g, fcmp(g, LLVMRealOLT, x, kf(g, x, 0)), kf(g, x, -1), x);
    return sel(g, fcmp(g, LLVMRealOGT, x, kf(g, x, 0)), kf(g, x, 1), neg);
}
static V
f_square(gen *g, V x)
{
    return LLVMBuildFMul(g->b, x, x, "");
}
static V
f_relu(gen *g, V x)
{
    return sel(g, fcmp(g, LLVMRealOLT, x, kf(g, x, 0)), kf(g, x, 0), x);
}
static V
f_isnan(gen *g, V x)
{
    return fcmp(g, LLVMRealUNO, x, x);
}
static V
f_add(gen *g, V x, V y)
{
    return LLVMBuildFAdd(g->b, x, y, "");
}
static V
f_sub(gen *g, V x, V y)
{
    return LLVMBuildFSub(g->b, x, y, "");
}
static V
f_mul(gen *g, V x, V y)
{
    return LLVMBuildFMul(g->b, x, y, "");
}
static V
f_div(gen *g, V x, V y)
{
    return LLVMBuildFDiv(g->b, x, y, "");
}
// NaN wins: the hardware's maximum yields its second operand then.
static V
f_max(gen *g, V x, V y)
{
    V m = sel(g, fcmp(g, LLVMRealOGT, x, y), x, y);
    return sel(g, fcmp(g, LLVMRealUNO, x, x), x, m);
}
static V
f_min(gen *g, V x, V y)
{
    V m = sel(g, fcmp(g, LLVMRealOLT, x, y), x, y);
    return sel(g, fcmp(g, LLVMRealUNO, x, x), x, m);
}

/* ---- integers and bool (one bit) ---- */

typedef struct operands {
    V x, y;
    bool sign;
    int bits;
} operands;

static V
i_neg(gen *g, operands o)
{
    return LLVMBuildNeg(g->b, o.x, "");
}
static V
i_abs(gen *g, operands o)
{
    return o.sign ? sel(g, icmp(g, LLVMIntSLT, o.x, ki(g, o.x, 0)), i_neg(g, o), o.x) : o.x;
}
static V
i_sign(gen *g, operands o)
{
    V some = LLVMBuildZExt(g->b, icmp(g, LLVMIntNE, o.x, ki(g, o.x, 0)), LLVMTypeOf(o.x), "");
    if (!o.sign)
        return some;
    return sel(g, icmp(g, LLVMIntSLT, o.x, ki(g, o.x, 0)), ki(g, o.x, -1), some);
}
static V
i_square(gen *g, operands o)
{
    return LLVMBuildMul(g->b, o.x, o.x, "");
}
static V
i_relu(gen *g, operands o)
{
    return o.sign ? sel(g, icmp(g, LLVMIntSLT, o.x, ki(g, o.x, 0)), ki(g, o.x, 0), o.x) : o.x;
}
static V
i_not(gen *g, operands o)
{
    return LLVMBuildNot(g->b, o.x, "");
}
static V
i_add(gen *g, operands o)
{
    return LLVMBuildAdd(g->b, o.x, o.y, "");
}
static V
i_sub(gen *g, operands o)
{
    return LLVMBuildSub(g->b, o.x, o.y, "");
}
static V
i_mul(gen *g, operands o)
{
    return LLVMBuildMul(g->b, o.x, o.y, "");
}
static V
i_and(gen *g, operands o)
{
    return LLVMBuildAnd(g->b, o.x, o.y, "");
}
static V
i_or(gen *g, operands o)
{
    return LLVMBuildOr(g->b, o.x, o.y, "");
}
static V
i_xor(gen *g, operands o)
{
    return LLVMBuildXor(g->b, o.x, o.y, "");
}
static V
i_max(gen *g, operands o)
{
    if (o.bits == 1)
        return i_or(g, o);
    return sel(g, icmp(g, o.sign ? LLVMIntSGT : LLVMIntUGT, o.x, o.y), o.x, o.y);
}
static V
i_min(gen *g, operands o)
{
    if (o.bits == 1)
        return i_and(g, o);
    return sel(g, icmp(g, o.sign ? LLVMIntSLT : LLVMIntULT, o.x, o.y), o.x, o.y);
}

// A divisor that never traps: 0 and, of signed division, -1 become 1.
static V
divisor(gen *g, operands o, V *minus, V *zero)
{
    *zero = icmp(g, LLVMIntEQ, o.y, ki(g, o.y, 0));
    *minus = o.sign ? icmp(g, LLVMIntEQ, o.y, ki(g, o.y, -1)) : NULL;
    V odd = *minus ? LLVMBuildOr(g->b, *zero, *minus, "") : *zero;
    return sel(g, odd, ki(g, o.y, 1), o.y);
}
static V
i_div(gen *g, operands o)
{
    V minus, zero, d = divisor(g, o, &minus, &zero);
    V q = o.sign ? LLVMBuildSDiv(g->b, o.x, d, "") : LLVMBuildUDiv(g->b, o.x, d, "");
    if (minus)
        q = sel(g, minus, i_neg(g, o), q);
    return sel(g, zero, ki(g, o.x, 0), q);
}
static V
i_fmod(gen *g, operands o)
{
    V minus, zero, d = divisor(g, o, &minus, &zero);
    return o.sign ? LLVMBuildSRem(g->b, o.x, d, "") : LLVMBuildURem(g->b, o.x, d, "");
}
static V
i_mod(gen *g, operands o)
{
    V r = i_fmod(g, o);
    if (!o.sign)
        return r;
    V differ = icmp(g, LLVMIntSLT, LLVMBuildXor(g->b, r, o.y, ""), ki(g, r, 0));
    V some = icmp(g, LLVMIntNE, r, ki(g, r, 0));
    return sel(g, LLVMBuildAnd(g->b, differ, some, ""), LLVMBuildAdd(g->b, r, o.y, ""), r);
}
// By squaring, one bit of the exponent a turn; negative exponents leave what truncation leaves.
static V
i_pow(gen *g, operands o)
{
    loop l;
    V one = ki(g, o.x, 1);
    cps_loop_open(g, &l, i64c(g, o.bits), 1);
    V r = cps_loop_carry(g, &l, one), b = cps_loop_carry(g, &l, o.x),
      e = cps_loop_carry(g, &l, o.y);
    V bit = icmp(g, LLVMIntNE, LLVMBuildAnd(g->b, e, one, ""), ki(g, e, 0));
    l.next[0] = sel(g, bit, LLVMBuildMul(g->b, r, b, ""), r);
    l.next[1] = LLVMBuildMul(g->b, b, b, "");
    l.next[2] = LLVMBuildLShr(g->b, e, one, "");
    cps_loop_close(g, &l);
    if (!o.sign)
        return l.next[0];
    V odd = icmp(g, LLVMIntNE, LLVMBuildAnd(g->b, o.y, one, ""), ki(g, one, 0));
    V minus = sel(g, odd, ki(g, one, -1), one);
    V low = sel(g, icmp(g, LLVMIntEQ, o.x, ki(g, one, -1)), minus, ki(g, one, 0));
    low = sel(g, icmp(g, LLVMIntEQ, o.x, one), one, low);
    return sel(g, icmp(g, LLVMIntSLT, o.y, ki(g, one, 0)), low, l.next[0]);
}

/* ---- the rows ---- */

typedef struct row {
    V (*f1)(gen *, V);
    V (*f2)(gen *, V, V);
    V (*i)(gen *, operands);
} row;

static const row rows[CPS_OPS] = {
    [CPS_OP_NEG] = {f_neg, NULL, i_neg},
    [CPS_OP_ABS] = {f_abs, NULL, i_abs},
    [CPS_OP_SIGN] = {f_sign, NULL, i_sign},
    [CPS_OP_NOT] = {NULL, NULL, i_not},
    [CPS_OP_EXP] = {cps_m_exp, NULL, NULL},
    [CPS_OP_LOG] = {cps_m_log, NULL, NULL},
    [CPS_OP_SQRT] = {cps_m_sqrt, NULL, NULL},
    [CPS_OP_RSQRT] = {cps_m_rsqrt, NULL, NULL},
    [CPS_OP_RECIPROCAL] = {cps_m_reciprocal, NULL, NULL},
    [CPS_OP_SQUARE] = {f_square, NULL, i_square},
    [CPS_OP_SIN] = {cps_m_sin, NULL, NULL},
    [CPS_OP_COS] = {cps_m_cos, NULL, NULL},
    [CPS_OP_ARCTAN] = {cps_m_arctan, NULL, NULL},
    [CPS_OP_TANH] = {cps_m_tanh, NULL, NULL},
    [CPS_OP_ERF] = {cps_m_erf, NULL, NULL},
    [CPS_OP_SIGMOID] = {cps_m_sigmoid, NULL, NULL},
    [CPS_OP_SOFTPLUS] = {cps_m_softplus, NULL, NULL},
    [CPS_OP_RELU] = {f_relu, NULL, i_relu},
    [CPS_OP_GELU] = {cps_m_gelu, NULL, NULL},
    [CPS_OP_GELU_TANH] = {cps_m_gelu_tanh, NULL, NULL},
    [CPS_OP_SILU] = {cps_m_silu, NULL, NULL},
    [CPS_OP_SWISH] = {cps_m_swish, NULL, NULL},
    [CPS_OP_MISH] = {cps_m_mish, NULL, NULL},
    [CPS_OP_FLOOR] = {cps_m_floor, NULL, NULL},
    [CPS_OP_CEIL] = {cps_m_ceil, NULL, NULL},
    [CPS_OP_ROUND] = {cps_m_round, NULL, NULL},
    [CPS_OP_ISNAN] = {f_isnan, NULL, NULL},
    [CPS_OP_ADD] = {NULL, f_add, i_add},
    [CPS_OP_SUB] = {NULL, f_sub, i_sub},
    [CPS_OP_MUL] = {NULL, f_mul, i_mul},
    [CPS_OP_DIV] = {NULL, f_div, i_div},
    [CPS_OP_MOD] = {NULL, cps_m_mod, i_mod},
    [CPS_OP_POW] = {NULL, cps_m_pow, i_pow},
    [CPS_OP_MAX] = {NULL, f_max, i_max},
    [CPS_OP_MIN] = {NULL, f_min, i_min},
    [CPS_OP_AND] = {NULL, NULL, i_and},
    [CPS_OP_OR] = {NULL, NULL, i_or},
    [CPS_OP_XOR] = {NULL, NULL, i_xor},
    [CPS_OP_SUM] = {NULL, f_add, i_add},
    [CPS_OP_MEAN] = {NULL, f_add, NULL},
    [CPS_OP_RMAX] = {NULL, f_max, i_max},
    [CPS_OP_RMIN] = {NULL, f_min, i_min},
    [CPS_OP_PROD] = {NULL, f_mul, i_mul},
    [CPS_OP_CUMSUM] = {NULL, f_add, i_add},
};

static const struct {
    LLVMRealPredicate f;
    LLVMIntPredicate s, u;
} predicates[CPS_OPS] = {
    [CPS_OP_EQ] = {LLVMRealOEQ, LLVMIntEQ, LLVMIntEQ},
    [CPS_OP_NE] = {LLVMRealUNE, LLVMIntNE, LLVMIntNE},
    [CPS_OP_LT] = {LLVMRealOLT, LLVMIntSLT, LLVMIntULT},
    [CPS_OP_LE] = {LLVMRealOLE, LLVMIntSLE, LLVMIntULE},
    [CPS_OP_GT] = {LLVMRealOGT, LLVMIntSGT, LLVMIntUGT},
    [CPS_OP_GE] = {LLVMRealOGE, LLVMIntSGE, LLVMIntUGE},
};

V
cps_gen_fold(gen *g, const cps_node *n, cps_dtype t, V acc, V x)
{
    const row *r = &rows[n->op];
    if (cps_dtype_is_float(t))
        return r->f2(g, acc, x);
    return r->i(g, (operands){acc, x, is_signed(t), t == CPS_DT_BOOL ? 1 : cps_dtypes[t].bits});
}

/* ---- cast ---- */

V
cps_gen_cast(gen *g, cps_dtype from, cps_dtype to, V x)
{
    int n = cps_gen_lanes(x);
    T t = vec(cps_gen_reg(g, to), n);
    bool sign = is_signed(from);
    if (cps_dtype_is_float(from)) {
        if (cps_dtype_is_float(to)) // one rounding to the dtype asked for
            return cps_gen_widen(g, to, cps_gen_narrow(g, to, x));
        if (to == CPS_DT_BOOL)
            return fcmp(g, LLVMRealUNE, x, kf(g, x, 0));
        // toward zero, saturating, NaN to 0
        return cps_gen_call(g, is_signed(to) ? "llvm.fptosi.sat" : "llvm.fptoui.sat", 2,
                            (T[]){t, LLVMTypeOf(x)}, 1, &x);
    }
    if (cps_dtype_is_float(to)) {
        V f = sign ? LLVMBuildSIToFP(g->b, x, t, "") : LLVMBuildUIToFP(g->b, x, t, "");
        return cps_gen_widen(g, to, cps_gen_narrow(g, to, f));
    }
    if (to == CPS_DT_BOOL)
        return from == CPS_DT_BOOL ? x : icmp(g, LLVMIntNE, x, ki(g, x, 0));
    return LLVMBuildIntCast2(g->b, x, t, sign, "");
}

V
cps_gen_op(gen *g, const cps_node *n, cps_dtype in, int nin, V *x)
{
    bool real = cps_dtype_is_float(in);
    if (n->op == CPS_OP_SELECT)
        return sel(g, x[0], x[1], x[2]);
    if (n->op == CPS_OP_CAST)
        return cps_gen_cast(g, in, cps_host_type(g->p, n->out[0])->dtype, x[0]);
    if (predicates[n->op].s) {
        if (real)
            return fcmp(g, predicates[n->op].f, x[0], x[1]);
        return icmp(g, is_signed(in) ? predicates[n->op].s : predicates[n->op].u, x[0], x[1]);
    }
    bool c_mod = n->op == CPS_OP_MOD && cps_attr_int(n->attr, n->nattr, "fmod", 0);
    const row *r = &rows[n->op];
    if (!real) {
        operands o = {x[0], nin > 1 ? x[1] : NULL, is_signed(in),
                      in == CPS_DT_BOOL ? 1 : cps_dtypes[in].bits};
        cps_assert(r->i);
        return (c_mod ? i_fmod : r->i)(g, o);
    }
    if (nin == 1) {
        cps_assert(r->f1);
        return r->f1(g, x[0]);
    }
    cps_assert(r->f2);
    return (c_mod ? cps_m_fmod : r->f2)(g, x[0], x[1]);
}

/* ---- whole expressions ---- */

static V
immediate(gen *g, cps_dtype t, const void *imm)
{
    if (cps_dtype_is_float(t))
        return LLVMConstReal(g->f32, cps_to_f64(t, imm));
    int64_t v = cps_to_i64(t, imm);
    return LLVMConstInt(cps_gen_reg(g, t), t == CPS_DT_BOOL ? v != 0 : (unsigned long long)v,
                        1);
}

static V
lane_numbers(gen *g, int lanes, int64_t step)
{
    V all[64];
    for (int i = 0; i < lanes; i++)
        all[i] = i64c(g, i * step);
    return LLVMConstVector(all, (unsigned)lanes);
}

static V
spread(gen *g, V x, int lanes)
{
    return cps_gen_lanes(x) == lanes ? x : cps_gen_splat(g, x, lanes);
}

// One position per lane, or one for all.
static V
positions(gen *g, const host_aff *a, const nest_at *at, bool uniform)
{
    V first = cps_gen_aff(g, a, at);
    if (uniform || at->lanes == 1)
        return first;
    return LLVMBuildAdd(g->b, cps_gen_splat(g, first, at->lanes),
                        lane_numbers(g, at->lanes, a->a[at->axis]), "");
}

static V
gather(gen *g, const host_x *x, const nest_at *at, cps_dtype it, V index)
{
    int n = cps_gen_lanes(index);
    T wide = vec(g->i64, n);
    index = LLVMBuildIntCast2(g->b, index, wide, is_signed(it), "");
    V zero = LLVMConstNull(wide), extent = cps_gen_const_i(g, g->i64, n, x->extent);
    V wrapped = LLVMBuildAdd(g->b, index, extent, "");
    index = sel(g, icmp(g, LLVMIntSLT, index, zero), wrapped, index);
    V top = cps_gen_const_i(g, g->i64, n, x->extent - 1);
    index = sel(g, icmp(g, LLVMIntSGT, index, top), top, index);
    index = sel(g, icmp(g, LLVMIntSLT, index, zero), zero, index);
    V by = LLVMBuildMul(g->b, index, cps_gen_const_i(g, g->i64, n, x->step), "");
    T elem = cps_gen_mem(g, x->dtype);
    if (n == 1) { // one slice for all lanes: an access like any other, further along
        V old = g->base[x->base];
        g->base[x->base] = LLVMBuildInBoundsGEP2(g->b, elem, old, &by, 1, "");
        V v = cps_gen_load(g, x->base, x->dtype, &x->at, at);
        g->base[x->base] = old;
        return v;
    }
    V off = LLVMBuildAdd(g->b, spread(g, positions(g, &x->at, at, false), n), by, "");
    V p = LLVMBuildInBoundsGEP2(g->b, elem, g->base[x->base], &off, 1, "");
    T vt = vec(elem, n);
    V args[4] = {p, LLVMConstInt(g->i32, cps_dtype_bytes(x->dtype), 0),
                 at->mask ? at->mask : cps_gen_lane_mask(g, n, n), LLVMConstNull(vt)};
    V v = cps_gen_call(g, "llvm.masked.gather", 2, (T[]){vt, vec(g->ptr, n)}, 4, args);
    return cps_gen_widen(g, x->dtype, v);
}

V
cps_gen_eval(gen *g, const host_stage *s, const nest_at *at, V *all)
{
    V *v = all ? all : cps_new_array(g->arena, V, s->nx);
    nest_at one = *at; // for what is the same in all lanes
    one.lanes = 1;
    one.mask = NULL;
    one.axis = -1;
    for (uint32_t i = 0; i < s->nx; i++) {
        const host_x *x = &s->x[i];
        bool uniform = at->lanes == 1 || at->axis < 0 || x->at.a[at->axis] == 0;
        const nest_at *here = uniform ? &one : at;
        V in[3];
        switch (x->kind) {
        case HX_LOAD:
            v[i] = cps_gen_load(g, x->base, x->dtype, &x->at, here);
            break;
        case HX_IMM:
            v[i] = immediate(g, x->dtype, x->imm);
            break;
        case HX_POS: {
            V p = positions(g, &x->at, at, uniform);
            T t = vec(cps_gen_reg(g, x->dtype), cps_gen_lanes(p));
            v[i] = cps_dtype_is_float(x->dtype) ? LLVMBuildSIToFP(g->b, p, t, "")
                                                : LLVMBuildIntCast2(g->b, p, t, 1, "");
            break;
        }
        case HX_GATHER:
            v[i] = gather(g, x, cps_gen_lanes(v[x->in[0]]) > 1 ? at : here,
                          s->x[x->in[0]].dtype, v[x->in[0]]);
            break;
        default: {
            int lanes = 1;
            for (uint32_t k = 0; k < x->nin; k++)
                lanes = CPS_MAX(lanes, cps_gen_lanes(v[x->in[k]]));
            for (uint32_t k = 0; k < x->nin; k++)
                in[k] = spread(g, v[x->in[k]], lanes);
            v[i] = cps_gen_op(g, x->node, s->x[x->in[x->nin - 1]].dtype, (int)x->nin, in);
        }
        }
    }
    return spread(g, v[s->nx - 1], at->lanes);
}
