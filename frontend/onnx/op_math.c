/* Elementwise operators. Most are one base op; the rest are spelled out in base ops, in the
 * form that the raising pass and the kernels know. ONNX wants equal operand types almost
 * everywhere; the builder checks that. */
#include "frontend/onnx/import.h"

#include <inttypes.h>
#include <math.h>

bool
cps_ox_op_unary(cps_ox *m, const cps_ox_row *r)
{
    return cps_ox_give(m, 0, cps_ox_un(m, r->base, cps_ox_in(m, 0)));
}

bool
cps_ox_op_binary(cps_ox *m, const cps_ox_row *r)
{
    return cps_ox_give(m, 0, cps_ox_bin(m, r->base, cps_ox_in(m, 0), cps_ox_in(m, 1)));
}

bool
cps_ox_op_variadic(cps_ox *m, const cps_ox_row *r)
{
    cps_val v = cps_ox_in(m, 0);
    for (uint32_t i = 1; i < m->n->in.n; i++) {
        if (!cps_ox_given(m, i))
            return cps_ox_err(m, CPS_E7009, "operand %u is missing", i);
        v = cps_ox_bin(m, r->base, v, cps_ox_in(m, i));
    }
    return cps_ox_give(m, 0, v);
}

bool
cps_ox_op_mean_of(cps_ox *m, const cps_ox_row *r)
{
    cps_val v = cps_ox_in(m, 0);
    for (uint32_t i = 1; i < m->n->in.n; i++) {
        if (!cps_ox_given(m, i))
            return cps_ox_err(m, CPS_E7009, "operand %u is missing", i);
        v = cps_ox_bin(m, r->base, v, cps_ox_in(m, i));
    }
    return cps_ox_give(m, 0, cps_ox_bin_s(m, CPS_OP_DIV, v, m->n->in.n));
}

bool
cps_ox_op_gelu(cps_ox *m, const cps_ox_row *r)
{
    (void)r;
    const char *how;
    if (!cps_ox_str(m, "approximate", "none", &how))
        return false;
    bool tanh = strcmp(how, "tanh") == 0;
    if (!tanh && strcmp(how, "none") != 0)
        return cps_ox_err(m, CPS_E7009, "attribute 'approximate' is '%s', not none or tanh",
                          how);
    return cps_ox_give(m, 0,
                       cps_ox_un(m, tanh ? CPS_OP_GELU_TANH : CPS_OP_GELU, cps_ox_in(m, 0)));
}

bool
cps_ox_op_bias_act(cps_ox *m, const cps_ox_row *r)
{
    cps_val x = cps_ox_in(m, 0), b = cps_ox_in(m, 1);
    return cps_ox_give(m, 0, cps_ox_un(m, r->base, b ? cps_ox_bin(m, CPS_OP_ADD, x, b) : x));
}

// x * sigmoid(alpha x); alpha 1.702 is the base op swish, 1 is silu.
bool
cps_ox_op_quick_gelu(cps_ox *m, const cps_ox_row *r)
{
    double alpha,
        dflt = r->pub.domain[0] ? (double)1.702f : 1; // Swish of the default domain: 1
    if (!cps_ox_float(m, "alpha", dflt, &alpha))
        return false;
    cps_val x = cps_ox_in(m, 0);
    if (alpha == (double)1.702f)
        return cps_ox_give(m, 0, cps_ox_un(m, r->base, x));
    if (alpha == 1)
        return cps_ox_give(m, 0, cps_ox_un(m, CPS_OP_SILU, x));
    cps_val s = cps_ox_un(m, CPS_OP_SIGMOID, cps_ox_bin_s(m, CPS_OP_MUL, x, alpha));
    return cps_ox_give(m, 0, cps_ox_bin(m, CPS_OP_MUL, x, s));
}

// x where x >= 0 (NaN included on the other side, where it stays NaN), else `y`.
static cps_val
above_zero(cps_ox *m, cps_val x, cps_val y)
{
    cps_val c = cps_ox_bin_s(m, CPS_OP_GE, x, 0);
    return cps_b_select(&m->b, c, x, y);
}

bool
cps_ox_op_leaky_relu(cps_ox *m, const cps_ox_row *r)
{
    (void)r;
    double alpha;
    if (!cps_ox_float(m, "alpha", (double)0.01f, &alpha))
        return false;
    cps_val x = cps_ox_in(m, 0);
    return cps_ox_give(m, 0, above_zero(m, x, cps_ox_bin_s(m, CPS_OP_MUL, x, alpha)));
}

bool
cps_ox_op_prelu(cps_ox *m, const cps_ox_row *r)
{
    (void)r;
    cps_val x = cps_ox_in(m, 0);
    const cps_type *t = cps_ox_type(m, x);
    cps_val y = cps_ox_bin(m, CPS_OP_MUL, x, cps_ox_in(m, 1));
    cps_val z = above_zero(m, x, y);
    // The slope is broadcast to x, never the other way round.
    if (z && !cps_type_eq(cps_ox_type(m, z), t))
        return cps_ox_err(m, CPS_E7009, "the slope does not broadcast to the operand");
    return cps_ox_give(m, 0, z);
}

bool
cps_ox_op_elu(cps_ox *m, const cps_ox_row *r)
{
    (void)r;
    double alpha;
    if (!cps_ox_float(m, "alpha", 1, &alpha))
        return false;
    cps_val x = cps_ox_in(m, 0);
    cps_val e = cps_ox_bin_s(m, CPS_OP_SUB, cps_ox_un(m, CPS_OP_EXP, x), 1);
    return cps_ox_give(m, 0, above_zero(m, x, cps_ox_bin_s(m, CPS_OP_MUL, e, alpha)));
}

// gamma * (x > 0 ? x : alpha * (exp(x) - 1))
bool
cps_ox_op_selu(cps_ox *m, const cps_ox_row *r)
{
    (void)r;
    double alpha, gamma;
    if (!cps_ox_float(m, "alpha", (double)1.67326319217681884765625f, &alpha) ||
        !cps_ox_float(m, "gamma", (double)1.05070102214813232421875f, &gamma))
        return false;
    cps_val x = cps_ox_in(m, 0);
    cps_val e = cps_ox_bin_s(m, CPS_OP_SUB, cps_ox_un(m, CPS_OP_EXP, x), 1);
    cps_val y = above_zero(m, x, cps_ox_bin_s(m, CPS_OP_MUL, e, alpha));
    return cps_ox_give(m, 0, cps_ox_bin_s(m, CPS_OP_MUL, y, gamma));
}

// max(0, x) + min(0, alpha * (exp(x / alpha) - 1))
bool
cps_ox_op_celu(cps_ox *m, const cps_ox_row *r)
{
    (void)r;
    double alpha;
    if (!cps_ox_float(m, "alpha", 1, &alpha))
        return false;
    if (alpha == 0)
        return cps_ox_err(m, CPS_E7009, "alpha is 0");
    cps_val x = cps_ox_in(m, 0);
    cps_val e = cps_ox_un(m, CPS_OP_EXP, cps_ox_bin_s(m, CPS_OP_DIV, x, alpha));
    e = cps_ox_bin_s(m, CPS_OP_MUL, cps_ox_bin_s(m, CPS_OP_SUB, e, 1), alpha);
    return cps_ox_give(m, 0, above_zero(m, x, e));
}

bool
cps_ox_op_thresholded_relu(cps_ox *m, const cps_ox_row *r)
{
    (void)r;
    double alpha;
    if (!cps_ox_float(m, "alpha", 1, &alpha))
        return false;
    cps_val x = cps_ox_in(m, 0), c = cps_ox_bin_s(m, CPS_OP_GT, x, alpha);
    return cps_ox_give(m, 0, cps_b_select(&m->b, c, x, cps_ox_scalar_like(m, x, 0)));
}

bool
cps_ox_op_is_inf(cps_ox *m, const cps_ox_row *r)
{
    (void)r;
    int64_t up, down;
    if (!cps_ox_int(m, "detect_positive", 1, &up) ||
        !cps_ox_int(m, "detect_negative", 1, &down))
        return false;
    cps_val x = cps_ox_in(m, 0);
    cps_val p = cps_ox_bin_s(m, CPS_OP_EQ, x, INFINITY),
            q = cps_ox_bin_s(m, CPS_OP_EQ, x, -INFINITY);
    if (up && down)
        return cps_ox_give(m, 0, cps_ox_bin(m, CPS_OP_OR, p, q));
    if (up || down)
        return cps_ox_give(m, 0, up ? p : q);
    return cps_ox_give(m, 0, cps_ox_bin(m, CPS_OP_AND, p, q)); // never both
}

static cps_val
hard_sigmoid(cps_ox *m, cps_val x, double alpha, double beta)
{
    cps_val y = cps_ox_bin_s(m, CPS_OP_MUL, x, alpha);
    y = cps_ox_bin_s(m, CPS_OP_ADD, y, beta);
    y = cps_ox_bin_s(m, CPS_OP_MAX, y, 0);
    return cps_ox_bin_s(m, CPS_OP_MIN, y, 1);
}

bool
cps_ox_op_hard_sigmoid(cps_ox *m, const cps_ox_row *r)
{
    (void)r;
    double alpha, beta;
    if (!cps_ox_float(m, "alpha", (double)0.2f, &alpha) || !cps_ox_float(m, "beta", 0.5, &beta))
        return false;
    return cps_ox_give(m, 0, hard_sigmoid(m, cps_ox_in(m, 0), alpha, beta));
}

bool
cps_ox_op_hard_swish(cps_ox *m, const cps_ox_row *r)
{
    (void)r;
    cps_val x = cps_ox_in(m, 0);
    return cps_ox_give(
        m, 0, cps_ox_bin(m, CPS_OP_MUL, x, hard_sigmoid(m, x, (double)(1.0f / 6), 0.5)));
}

bool
cps_ox_op_softsign(cps_ox *m, const cps_ox_row *r)
{
    (void)r;
    cps_val x = cps_ox_in(m, 0);
    cps_val d = cps_ox_bin_s(m, CPS_OP_ADD, cps_ox_un(m, CPS_OP_ABS, x), 1);
    return cps_ox_give(m, 0, cps_ox_bin(m, CPS_OP_DIV, x, d));
}

// Bounds are attributes before version 11 of the operator, scalar operands since.
bool
cps_ox_op_clip(cps_ox *m, const cps_ox_row *r)
{
    (void)r;
    static const struct {
        unsigned operand;
        cps_op op;
    } bound[] = {{1, CPS_OP_MAX}, {2, CPS_OP_MIN}};
    cps_val x = cps_ox_in(m, 0);
    for (size_t i = 0; i < cps_countof(bound); i++) {
        cps_val b = cps_ox_in(m, bound[i].operand);
        if (!b)
            continue;
        if (cps_type_count(cps_ox_type(m, b)) != 1)
            return cps_ox_err(m, CPS_E7009, "a bound must be a scalar");
        x = cps_ox_bin(m, bound[i].op, x, cps_ox_reshape(m, b, 0, NULL));
    }
    return cps_ox_give(m, 0, x);
}

static bool
cast_to(cps_ox *m, cps_val x, cps_dtype t)
{
    if (cps_ox_type(m, x)->dtype == t)
        return cps_ox_give(m, 0, x);
    return cps_ox_give(m, 0, cps_b_cast(&m->b, x, t));
}

bool
cps_ox_op_cast(cps_ox *m, const cps_ox_row *r)
{
    (void)r;
    int64_t to;
    if (!cps_ox_int(m, "to", 0, &to))
        return false;
    cps_val x = cps_ox_in(m, 0);
    cps_dtype t = to > 0 && to < 1000 ? cps_ox_dtype((int32_t)to) : CPS_DT_NONE;
    if (t == CPS_DT_NONE)
        return cps_ox_err(m, CPS_E7012, "a cast to %s",
                          to > 0 && to < 1000 ? cps_ox_dtype_name((int32_t)to) : "nothing");
    if (to == CPS_ONNX_DOUBLE && !cps_ox_const(m, x)) {
        cps_ox_err(m, CPS_E7012, "a cast of a value that is not constant to double");
        cps_help(m->d, "export the model in float; NeuronCore has no binary64");
        return false;
    }
    return cast_to(m, x, t);
}

bool
cps_ox_op_cast_like(cps_ox *m, const cps_ox_row *r)
{
    (void)r;
    return cast_to(m, cps_ox_in(m, 0), cps_ox_type(m, cps_ox_in(m, 1))->dtype);
}

bool
cps_ox_op_identity(cps_ox *m, const cps_ox_row *r)
{
    (void)r;
    return cps_ox_give(m, 0, cps_ox_in(m, 0));
}

bool
cps_ox_op_dropout(cps_ox *m, const cps_ox_row *r)
{
    (void)r;
    double training = 0;
    if (cps_ox_given(m, 2) && !cps_ox_in_scalar(m, 2, "training_mode", &training))
        return false;
    if (training != 0)
        return cps_ox_err(m, CPS_E7009,
                          "training_mode is set; models are compiled for inference");
    cps_val x = cps_ox_in(m, 0);
    if (m->n->out.n > 1 && m->n->out.data[1][0]) { // the mask: nothing was dropped
        const cps_type *t = cps_ox_type(m, x);
        cps_val mask =
            cps_ox_broadcast(m, cps_b_scalar(&m->b, CPS_DT_BOOL, 1), t->rank, t->dim);
        if (!cps_ox_give(m, 1, mask))
            return false;
    }
    return cps_ox_give(m, 0, x);
}

// The exponent may have another type; the result has the base's.
bool
cps_ox_op_pow(cps_ox *m, const cps_ox_row *r)
{
    cps_val x = cps_ox_in(m, 0), y = cps_ox_in(m, 1);
    cps_dtype tx = cps_ox_type(m, x)->dtype, ty = cps_ox_type(m, y)->dtype;
    if (tx == ty)
        return cps_ox_give(m, 0, cps_ox_bin(m, r->base, x, y));
    if (cps_dtype_is_float(tx))
        return cps_ox_give(m, 0, cps_ox_bin(m, r->base, x, cps_b_cast(&m->b, y, tx)));
    if (cps_dtype_is_int(ty))
        return cps_ox_give(m, 0, cps_ox_bin(m, r->base, x, cps_b_cast(&m->b, y, tx)));
    cps_val z = cps_ox_bin(m, r->base, cps_b_cast(&m->b, x, ty), y);
    return cps_ox_give(m, 0, cps_b_cast(&m->b, z, tx));
}

bool
cps_ox_op_mod(cps_ox *m, const cps_ox_row *r)
{
    int64_t fmod;
    if (!cps_ox_int(m, "fmod", 0, &fmod))
        return false;
    if (!fmod && m->opset < 28 && cps_dtype_is_float(cps_ox_type(m, cps_ox_in(m, 0))->dtype))
        return cps_ox_err(m, CPS_E7009, "float operands need the attribute fmod = 1");
    cps_attr a = cps_a_bool("fmod", fmod != 0);
    cps_val in[2] = {cps_ox_in(m, 0), cps_ox_in(m, 1)};
    return cps_ox_give(m, 0, cps_ox_node(m, r->base, 2, in, 1, &a));
}

bool
cps_ox_op_where(cps_ox *m, const cps_ox_row *r)
{
    (void)r;
    return cps_ox_give(m, 0,
                       cps_b_select(&m->b, cps_ox_in(m, 0), cps_ox_in(m, 1), cps_ox_in(m, 2)));
}
