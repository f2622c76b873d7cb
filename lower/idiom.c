/* Small idioms that exporters spell out become the one base op that means them: both forms of
 * gelu, swish, sigmoid, softplus, mish, means. The host profits as much as a NeuronCore, so
 * this is part of the reference graph; values change by rounding of constants only.
 *
 * Products are flattened first: however the factors of a gelu are grouped, they are x, a sum,
 * and numbers. Inputs are canonical: constants second, squares and products of scalars merged.
 */
#include "lower/pass.h"

#include <math.h>

#define MAX_FACTORS 8

typedef struct product {
    double scale; // of all uniform factors
    int n;
    cps_val f[MAX_FACTORS]; // the others
} product;

// Uniform factors must not enlarge the result: they are scalars or have its shape.
static bool
flatten(const cps_rw *w, cps_val v, product *p, int depth)
{
    const cps_node *n = depth ? cps_rw_is(w, v, CPS_OP_MUL) : NULL;
    double u;
    if (cps_rw_uniform(w, v, &u)) {
        p->scale *= u;
        return true;
    }
    if (n)
        return flatten(w, n->in[0], p, depth - 1) && flatten(w, n->in[1], p, depth - 1);
    const cps_node *sq = depth ? cps_rw_is(w, v, CPS_OP_SQUARE) : NULL;
    if (sq)
        return flatten(w, sq->in[0], p, depth - 1) && flatten(w, sq->in[0], p, depth - 1);
    if (p->n == MAX_FACTORS)
        return false;
    p->f[p->n++] = v;
    return true;
}

static bool
near(double a, double b)
{
    // Constants of a narrow model are rounded to its type: bf16 has 8 bits.
    return fabs(a - b) <= 4e-3 * fabs(b);
}

// Exact to fp32 rounding for fp32 values, to the type's rounding for narrow ones.
static bool
is(const cps_rw *w, cps_val like, double a, double b)
{
    return cps_rw_type(w, like)->dtype == CPS_DT_FP32 ? fabs(a - b) <= 1e-6 * fabs(b)
                                                      : near(a, b);
}

// v is x + 1 (either order); gives x.
static bool
plus_one(const cps_rw *w, cps_val v, cps_val *x)
{
    const cps_node *n = cps_rw_is(w, v, CPS_OP_ADD);
    double u;
    if (!n || !cps_rw_uniform(w, n->in[1], &u) || u != 1)
        return false;
    *x = n->in[0];
    return true;
}

// v is c x, perhaps with x multiplied in several places; true when it is exactly {x} times c.
static bool
scaled(const cps_rw *w, cps_val v, cps_val x, double c)
{
    product p = {.scale = 1};
    return flatten(w, v, &p, 3) && p.n == 1 && p.f[0] == x && is(w, x, p.scale, c);
}

// x^3: pow(x, 3), or three factors of x.
static bool
cubed(const cps_rw *w, cps_val v, cps_val x, double c)
{
    product p = {.scale = 1};
    double e;
    if (!flatten(w, v, &p, 4) || !is(w, x, p.scale, c))
        return false;
    if (p.n == 3)
        return p.f[0] == x && p.f[1] == x && p.f[2] == x;
    const cps_node *n = p.n == 1 ? cps_rw_is(w, p.f[0], CPS_OP_POW) : NULL;
    return n && n->in[0] == x && cps_rw_uniform(w, n->in[1], &e) && e == 3;
}

// sqrt(2/pi) (x + 0.044715 x^3), however it is grouped.
static bool
tanh_argument(const cps_rw *w, cps_val v, cps_val x)
{
    const double k = 0.7978845608028654, a = 0.044715;
    product p = {.scale = 1};
    if (!flatten(w, v, &p, 4))
        return false;
    const cps_node *s = NULL;
    bool times_x = false;
    for (int i = 0; i < p.n; i++) {
        const cps_node *n = cps_rw_is(w, p.f[i], CPS_OP_ADD);
        if (p.f[i] == x && !times_x)
            times_x = true;
        else if (n && !s)
            s = n;
        else
            return false;
    }
    if (!s)
        return false;
    if (times_x) { // k x (1 + a x^2)
        double u;
        product q = {.scale = 1};
        return cps_rw_uniform(w, s->in[1], &u) && u == 1 && flatten(w, s->in[0], &q, 4) &&
               q.n == 2 && q.f[0] == x && q.f[1] == x && is(w, x, q.scale, a) &&
               is(w, x, p.scale, k);
    }
    for (int i = 0; i < 2; i++)
        if (s->in[i] == x && cubed(w, s->in[1 - i], x, a))
            return is(w, x, p.scale, k);
    // Distributed: k x + k a x^3.
    for (int i = 0; i < 2; i++)
        if (scaled(w, s->in[i], x, k / p.scale) && cubed(w, s->in[1 - i], x, k * a / p.scale))
            return true;
    return false;
}

// 0.5 x (1 + erf(x / sqrt 2)) and 0.5 x (1 + tanh(...)); another scale stays as a product.
static bool
gelu(cps_rw *w, const cps_node *n)
{
    product p = {.scale = 1};
    if (!flatten(w, n->out[0], &p, 4) || p.n != 2)
        return false;
    for (int i = 0; i < 2; i++) {
        cps_val x = p.f[i], inner;
        if (!plus_one(w, p.f[1 - i], &inner) ||
            !cps_type_eq(cps_rw_type(w, x), cps_rw_type(w, n->out[0])))
            continue;
        const cps_node *erf = cps_rw_is(w, inner, CPS_OP_ERF);
        const cps_node *tanh = cps_rw_is(w, inner, CPS_OP_TANH);
        cps_op op = erf && scaled(w, erf->in[0], x, 0.7071067811865476) ? CPS_OP_GELU
                    : tanh && tanh_argument(w, tanh->in[0], x)          ? CPS_OP_GELU_TANH
                                                                        : CPS_OP_NONE;
        if (op == CPS_OP_NONE)
            continue;
        cps_val y = cps_b_unary(&w->b, op, cps_rw_new(w, x));
        double rest = p.scale / 0.5;
        if (!is(w, x, rest, 1))
            y = cps_b_binary(&w->b, CPS_OP_MUL, y,
                             cps_b_scalar(&w->b, cps_rw_type(w, x)->dtype, rest));
        return cps_rw_set(w, n->out[0], y);
    }
    return false;
}

// x * sigmoid(1.702 x).
static bool
swish(cps_rw *w, const cps_node *n)
{
    for (int i = 0; i < 2; i++) {
        const cps_node *s = cps_rw_is(w, n->in[i], CPS_OP_SIGMOID);
        if (s && scaled(w, s->in[0], n->in[1 - i], 1.702))
            return cps_rw_set(w, n->out[0],
                              cps_b_unary(&w->b, CPS_OP_SWISH, cps_rw_new(w, n->in[1 - i])));
    }
    return false;
}

// x * tanh(softplus(x)).
static bool
mish(cps_rw *w, const cps_node *n)
{
    for (int i = 0; i < 2; i++) {
        const cps_node *t = cps_rw_is(w, n->in[i], CPS_OP_TANH);
        const cps_node *s = t ? cps_rw_is(w, t->in[0], CPS_OP_SOFTPLUS) : NULL;
        if (s && s->in[0] == n->in[1 - i])
            return cps_rw_set(w, n->out[0],
                              cps_b_unary(&w->b, CPS_OP_MISH, cps_rw_new(w, s->in[0])));
    }
    return false;
}

// log(1 + exp(x)): the op does not overflow where the spelled-out form does.
static bool
softplus(cps_rw *w, const cps_node *n)
{
    cps_val x;
    const cps_node *e = plus_one(w, n->in[0], &x) ? cps_rw_is(w, x, CPS_OP_EXP) : NULL;
    return e && cps_rw_set(w, n->out[0],
                           cps_b_unary(&w->b, CPS_OP_SOFTPLUS, cps_rw_new(w, e->in[0])));
}

// 1 + exp(-x): x, else 0.
static cps_val
logistic(const cps_rw *w, cps_val v)
{
    cps_val e;
    const cps_node *exp = plus_one(w, v, &e) ? cps_rw_is(w, e, CPS_OP_EXP) : NULL;
    const cps_node *neg = exp ? cps_rw_is(w, exp->in[0], CPS_OP_NEG) : NULL;
    return neg && cps_type_eq(cps_rw_type(w, neg->in[0]), cps_rw_type(w, v)) ? neg->in[0] : 0;
}

// 1 / (1 + exp(-x)): as sigmoid it does not leave the range of an engine's reciprocal.
static bool
sigmoid(cps_rw *w, const cps_node *n)
{
    cps_val x = logistic(w, n->in[0]);
    return x && cps_rw_set(w, n->out[0], cps_b_unary(&w->b, CPS_OP_SIGMOID, cps_rw_new(w, x)));
}

// y / (1 + exp(-x)).
static bool
gated(cps_rw *w, const cps_node *n)
{
    cps_val x = logistic(w, n->in[1]);
    return x && cps_rw_set(w, n->out[0],
                           cps_b_binary(&w->b, CPS_OP_MUL, cps_rw_new(w, n->in[0]),
                                        cps_b_unary(&w->b, CPS_OP_SIGMOID, cps_rw_new(w, x))));
}

// sum(x) / n over exactly n elements.
static bool
mean(cps_rw *w, const cps_node *n)
{
    const cps_node *s = cps_rw_is(w, n->in[0], CPS_OP_SUM);
    double c;
    if (!s || !cps_rw_uniform(w, n->in[1], &c) || c <= 0 ||
        !cps_type_eq(cps_rw_type(w, n->out[0]), cps_rw_type(w, n->in[0])))
        return false;
    double count = (double)cps_type_count(cps_rw_type(w, s->in[0])) /
                   (double)cps_type_count(cps_rw_type(w, s->out[0]));
    if (!(count >= 1) || !is(w, s->in[0], c, 1 / count))
        return false;
    const cps_attr *axes = cps_node_attr(s, "axes"), *keep = cps_node_attr(s, "keep");
    return cps_rw_set(w, n->out[0],
                      cps_b_reduce(&w->b, CPS_OP_MEAN, cps_rw_new(w, s->in[0]), (int)axes->n,
                                   axes->ints, keep->i != 0));
}

static const struct {
    cps_op op;
    bool (*fn)(cps_rw *w, const cps_node *n);
} rules[] = {
    {CPS_OP_MUL, gelu},     {CPS_OP_MUL, swish}, {CPS_OP_MUL, mish},
    {CPS_OP_LOG, softplus}, {CPS_OP_MUL, mean},  {CPS_OP_RECIPROCAL, sigmoid},
    {CPS_OP_DIV, gated},
};

static bool
idiom_rule(cps_rw *w, const cps_node *n)
{
    if (!cps_dtype_is_float(cps_rw_type(w, n->out[0])->dtype))
        return false;
    for (size_t i = 0; i < cps_countof(rules); i++)
        if (rules[i].op == n->op && rules[i].fn(w, n))
            return true;
    return false;
}

bool
cps_lower_idiom(cps_lower *l, cps_module *m)
{
    return cps_lower_rewrite(l, m, idiom_rule, NULL);
}
