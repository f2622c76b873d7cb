/* Elementwise ops of the reference evaluator: one kernel a row, made by a macro, over strided
 * rows (stride 0 for broadcast operands), in loops the compiler vectorises. Floats are
 * binary64; integers int64, brought to their width by the driver. U64 travels as the same bits:
 * where order matters, kernels flip the sign bit (`bias`). */
#include "ir/eval.h"

#include <math.h>

#define GRAIN 16384 // elements a thread takes at least

typedef void (*ff_fn)(const double *x, double *z, int64_t n);
typedef void (*ii_fn)(const int64_t *x, int64_t *z, int64_t n, int64_t bias);
typedef void (*fff_fn)(const double *x, int64_t sx, const double *y, int64_t sy, double *z,
                       int64_t n);
typedef void (*ffi_fn)(const double *x, int64_t sx, const double *y, int64_t sy, int64_t *z,
                       int64_t n);
typedef void (*iii_fn)(const int64_t *x, int64_t sx, const int64_t *y, int64_t sy, int64_t *z,
                       int64_t n, int64_t bias);

/* ---- unary kernels ---- */

#define UF(id, expr)                                                                           \
    static void uf_##id(const double *px, double *z, int64_t n)                                \
    {                                                                                          \
        for (int64_t i = 0; i < n; i++) {                                                      \
            double x = px[i];                                                                  \
            z[i] = (expr);                                                                     \
        }                                                                                      \
    }
#define UI(id, expr)                                                                           \
    static void ui_##id(const int64_t *px, int64_t *z, int64_t n, int64_t bias)                \
    {                                                                                          \
        (void)bias;                                                                            \
        for (int64_t i = 0; i < n; i++) {                                                      \
            int64_t x = px[i];                                                                 \
            z[i] = (expr);                                                                     \
        }                                                                                      \
    }

static double
sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

static double
softplus(double x)
{
    return x > 0 ? x + log1p(exp(-x)) : log1p(exp(x));
}

UF(NEG, -x)
UF(ABS, fabs(x))
UF(SIGN, x > 0 ? 1.0 : x < 0 ? -1.0 : x)
UF(EXP, exp(x))
UF(LOG, log(x))
UF(SQRT, sqrt(x))
UF(RSQRT, 1 / sqrt(x))
UF(RECIPROCAL, 1 / x)
UF(SQUARE, x *x)
UF(SIN, sin(x))
UF(COS, cos(x))
UF(ARCTAN, atan(x))
UF(TANH, tanh(x))
UF(ERF, erf(x))
UF(SIGMOID, sigmoid(x))
UF(SOFTPLUS, softplus(x))
UF(RELU, x < 0 ? 0.0 : x)
// erfc keeps the relative precision of the left tail, where 1 + erf cancels.
UF(GELU, 0.5 * x * erfc(-x * M_SQRT1_2))
UF(GELU_TANH, x *sigmoid(2 * 0.79788456080286535588 * (x + 0.044715 * x * x * x)))
UF(SILU, x *sigmoid(x))
UF(SWISH, x *sigmoid(1.702 * x))
UF(MISH, x *tanh(softplus(x)))
UF(FLOOR, floor(x))
UF(CEIL, ceil(x))
UF(ROUND, rint(x))
UI(NEG, (int64_t)(0 - (uint64_t)x))
UI(ABS, bias || x >= 0 ? x : (int64_t)(0 - (uint64_t)x))
UI(SIGN, bias ? x != 0 : (x > 0) - (x < 0))
UI(SQUARE, (int64_t)((uint64_t)x *(uint64_t)x))
UI(RELU, bias || x > 0 ? x : 0)
UI(NOT, ~x)

static void
ui_NOT_BOOL(const int64_t *x, int64_t *z, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        z[i] = !x[i];
}

static const ff_fn unary_f[CPS_OPS] = {
#define R(id) [CPS_OP_##id] = uf_##id
    R(NEG),     R(ABS),        R(SIGN),   R(EXP),   R(LOG),  R(SQRT),      R(RSQRT),
    R(TANH),    R(RECIPROCAL), R(SQUARE), R(SIN),   R(COS),  R(ARCTAN),    R(ERF),
    R(SIGMOID), R(SOFTPLUS),   R(RELU),   R(GELU),  R(SILU), R(GELU_TANH), R(SWISH),
    R(MISH),    R(FLOOR),      R(CEIL),   R(ROUND),
#undef R
};
static const ii_fn unary_i[CPS_OPS] = {
#define R(id) [CPS_OP_##id] = ui_##id
    R(NEG), R(ABS), R(SIGN), R(SQUARE), R(RELU), R(NOT),
#undef R
};

/* ---- binary kernels ---- */

// The three common stride pairs get loops of their own: constants the vectoriser can use.
#define LOOPS(T, Z, expr)                                                                      \
    if (sx == 1 && sy == 1) {                                                                  \
        for (int64_t i = 0; i < n; i++) {                                                      \
            T x = px[i], y = py[i];                                                            \
            z[i] = (Z)(expr);                                                                  \
        }                                                                                      \
    } else if (sx == 1 && sy == 0) {                                                           \
        T y = *py;                                                                             \
        for (int64_t i = 0; i < n; i++) {                                                      \
            T x = px[i];                                                                       \
            z[i] = (Z)(expr);                                                                  \
        }                                                                                      \
    } else {                                                                                   \
        for (int64_t i = 0; i < n; i++) {                                                      \
            T x = px[i * sx], y = py[i * sy];                                                  \
            z[i] = (Z)(expr);                                                                  \
        }                                                                                      \
    }
#define BF(id, expr)                                                                           \
    static void bf_##id(const double *px, int64_t sx, const double *py, int64_t sy, double *z, \
                        int64_t n)                                                             \
    {                                                                                          \
        LOOPS(double, double, expr)                                                            \
    }
#define CF(id, expr)                                                                           \
    static void cf_##id(const double *px, int64_t sx, const double *py, int64_t sy,            \
                        int64_t *z, int64_t n)                                                 \
    {                                                                                          \
        LOOPS(double, int64_t, expr)                                                           \
    }
#define BI(id, expr)                                                                           \
    static void bi_##id(const int64_t *px, int64_t sx, const int64_t *py, int64_t sy,          \
                        int64_t *z, int64_t n, int64_t bias)                                   \
    {                                                                                          \
        (void)bias;                                                                            \
        LOOPS(int64_t, int64_t, expr)                                                          \
    }

static double
floored_mod(double x, double y)
{
    double r = fmod(x, y);
    return r != 0 && (r < 0) != (y < 0) ? r + y : r;
}

// y is never 0 here.
static int64_t
int_div(int64_t x, int64_t y, bool bias)
{
    if (bias)
        return (int64_t)((uint64_t)x / (uint64_t)y);
    return y == -1 ? (int64_t)(0 - (uint64_t)x) : x / y;
}

static int64_t
int_fmod(int64_t x, int64_t y, bool bias)
{
    if (bias)
        return (int64_t)((uint64_t)x % (uint64_t)y);
    return y == -1 ? 0 : x % y;
}

static int64_t
int_mod(int64_t x, int64_t y, bool bias)
{
    int64_t r = int_fmod(x, y, bias);
    return !bias && r != 0 && (r < 0) != (y < 0) ? r + y : r;
}

// Negative exponents give what truncation leaves of the fraction.
static int64_t
int_pow(int64_t x, int64_t y, bool bias)
{
    if (!bias && y < 0)
        return x == 1 ? 1 : x == -1 ? (y & 1 ? -1 : 1) : 0;
    uint64_t r = 1, b = (uint64_t)x;
    for (uint64_t e = (uint64_t)y; e; e >>= 1, b *= b)
        r *= e & 1 ? b : 1;
    return (int64_t)r;
}

BF(ADD, x + y)
BF(SUB, x - y)
BF(MUL, x *y)
BF(DIV, x / y)
BF(MOD, floored_mod(x, y))
BF(FMOD, fmod(x, y))
BF(POW, pow(x, y))
BF(MAX, x > y || x != x ? x : y)
BF(MIN, x < y || x != x ? x : y)
CF(EQ, x == y)
CF(NE, x != y)
CF(LT, x < y)
CF(LE, x <= y)
CF(GT, x > y)
CF(GE, x >= y)
BI(ADD, (uint64_t)x + (uint64_t)y)
BI(SUB, (uint64_t)x - (uint64_t)y)
BI(MUL, (uint64_t)x *(uint64_t)y)
BI(DIV, int_div(x, y, bias != 0))
BI(MOD, int_mod(x, y, bias != 0))
BI(FMOD, int_fmod(x, y, bias != 0))
BI(POW, int_pow(x, y, bias != 0))
BI(MAX, (x ^ bias) > (y ^ bias) ? x : y)
BI(MIN, (x ^ bias) < (y ^ bias) ? x : y)
BI(AND, x &y)
BI(OR, x | y)
BI(XOR, x ^ y)
BI(EQ, x == y)
BI(NE, x != y)
BI(LT, (x ^ bias) < (y ^ bias))
BI(LE, (x ^ bias) <= (y ^ bias))
BI(GT, (x ^ bias) > (y ^ bias))
BI(GE, (x ^ bias) >= (y ^ bias))

static const fff_fn binary_f[CPS_OPS] = {
#define R(id) [CPS_OP_##id] = bf_##id
    R(ADD), R(SUB), R(MUL), R(DIV), R(MOD), R(POW), R(MAX), R(MIN),
#undef R
};
static const ffi_fn compare_f[CPS_OPS] = {
#define R(id) [CPS_OP_##id] = cf_##id
    R(EQ), R(NE), R(LT), R(LE), R(GT), R(GE),
#undef R
};
static const iii_fn binary_i[CPS_OPS] = {
#define R(id) [CPS_OP_##id] = bi_##id
    R(ADD), R(SUB), R(MUL), R(DIV), R(MOD), R(POW), R(MAX), R(MIN), R(AND),
    R(OR),  R(XOR), R(EQ),  R(NE),  R(LT),  R(LE),  R(GT),  R(GE),
#undef R
};

/* ---- drivers ---- */

typedef struct job {
    const cps_ev *e;
    const cps_tensor *in;
    cps_tensor *out;
    int64_t bias;
    cps_ev_walk w;
} job;

static int64_t
bias_of(const cps_tensor *t)
{
    return t->type.dtype == CPS_DT_U64 ? INT64_MIN : 0;
}

static void
unary_piece(void *ctx, int64_t lo, int64_t hi)
{
    job *j = ctx;
    const cps_tensor *x = j->in;
    int op = j->e->n->op;
    if (op == CPS_OP_ISNAN)
        for (int64_t i = lo; i < hi; i++)
            j->out->i[i] = isnan(x->f[i]) != 0;
    else if (x->f)
        unary_f[op](x->f + lo, j->out->f + lo, hi - lo);
    else if (op == CPS_OP_NOT && x->type.dtype == CPS_DT_BOOL)
        ui_NOT_BOOL(x->i + lo, j->out->i + lo, hi - lo);
    else
        unary_i[op](x->i + lo, j->out->i + lo, hi - lo, j->bias);
}

bool
cps_ev_unary(cps_ev *e, const cps_tensor *in, cps_tensor *out)
{
    job j = {.e = e, .in = in, .out = out, .bias = bias_of(in)};
    cps_ev_parallel(e->o->threads, cps_type_count(&out->type), GRAIN, unary_piece, &j);
    return true;
}

static void
binary_piece(void *ctx, int64_t lo, int64_t hi)
{
    job *j = ctx;
    const cps_tensor *x = &j->in[0], *y = &j->in[1];
    int op = j->e->n->op, last = j->w.rank - 1;
    bool fmod_mode = op == CPS_OP_MOD && cps_ev_flag(j->e->n, "fmod");
    int64_t sx = j->w.stride[0][last], sy = j->w.stride[1][last];
    for (int64_t at = lo, n; at < hi; at += n) {
        int64_t off[3];
        n = CPS_MIN(cps_ev_walk_at(&j->w, at, off), hi - at);
        if (!x->f)
            (fmod_mode ? bi_FMOD : binary_i[op])(x->i + off[0], sx, y->i + off[1], sy,
                                                 j->out->i + at, n, j->bias);
        else if (compare_f[op])
            compare_f[op](x->f + off[0], sx, y->f + off[1], sy, j->out->i + at, n);
        else
            (fmod_mode ? bf_FMOD : binary_f[op])(x->f + off[0], sx, y->f + off[1], sy,
                                                 j->out->f + at, n);
    }
}

bool
cps_ev_binary(cps_ev *e, const cps_tensor *in, cps_tensor *out)
{
    job j = {.e = e, .in = in, .out = out, .bias = bias_of(in)};
    int64_t stride[2][CPS_MAX_RANK];
    if ((e->n->op == CPS_OP_DIV || e->n->op == CPS_OP_MOD) && in[1].i &&
        cps_type_count(&out->type))
        for (int64_t i = 0, n = cps_type_count(&in[1].type); i < n; i++)
            if (in[1].i[i] == 0)
                return cps_ev_fail(e, "integer division by zero, divisor element %lld",
                                   (long long)i);
    for (int k = 0; k < 2; k++)
        cps_ev_strides(&in[k].type, &out->type, stride[k]);
    cps_ev_walk_init(&j.w, &out->type, 2, stride);
    cps_ev_parallel(e->o->threads, cps_type_count(&out->type), GRAIN, binary_piece, &j);
    return true;
}

bool
cps_ev_select(cps_ev *e, const cps_tensor *in, cps_tensor *out)
{
    (void)e;
    cps_ev_walk w;
    int64_t stride[3][CPS_MAX_RANK];
    for (int k = 0; k < 3; k++)
        cps_ev_strides(&in[k].type, &out->type, stride[k]);
    cps_ev_walk_init(&w, &out->type, 3, stride);
    uint64_t *z = cps_ev_words(out);
    int l = w.rank - 1;
    for (int64_t at = 0, n, total = cps_type_count(&out->type); at < total; at += n) {
        int64_t off[3];
        n = cps_ev_walk_at(&w, at, off);
        const int64_t *c = in[0].i + off[0];
        const uint64_t *x = cps_ev_words(&in[1]) + off[1], *y = cps_ev_words(&in[2]) + off[2];
        for (int64_t i = 0; i < n; i++)
            z[at + i] = c[i * w.stride[0][l]] ? x[i * w.stride[1][l]] : y[i * w.stride[2][l]];
    }
    return true;
}

/* ---- cast ---- */

// Toward zero, to the nearest end of the range outside it, NaN to 0.
static int64_t
truncated(double v, cps_dtype t)
{
    unsigned bits = cps_dtypes[t].bits;
    bool sign = cps_dtypes[t].kind == 'S';
    double top = ldexp(1, (int)bits - sign); // first value above the range
    if (isnan(v))
        return 0;
    if (v >= top)
        return (int64_t)(UINT64_MAX >> (64 - bits + sign));
    if (sign)
        return v <= -top ? (int64_t)(UINT64_MAX << (bits - 1)) : (int64_t)v;
    return v <= 0 ? 0 : (int64_t)(uint64_t)v;
}

bool
cps_ev_cast(cps_ev *e, const cps_tensor *in, cps_tensor *out)
{
    (void)e;
    cps_dtype to = out->type.dtype;
    int64_t n = cps_type_count(&out->type);
    bool u64 = in->type.dtype == CPS_DT_U64;
    if (out->f) {
        for (int64_t i = 0; i < n; i++)
            out->f[i] = in->f ? in->f[i] : u64 ? (double)(uint64_t)in->i[i] : (double)in->i[i];
        uint8_t cell[256 * 8];
        for (int64_t i = 0, k; i < n; i += k) { // one rounding to the dtype asked for
            k = CPS_MIN(n - i, 256);
            cps_from_f64_n(to, out->f + i, cell, (size_t)k);
            cps_to_f64_n(to, cell, out->f + i, (size_t)k);
        }
        return true;
    }
    for (int64_t i = 0; i < n; i++) {
        if (to == CPS_DT_BOOL)
            out->i[i] = in->f ? in->f[i] != 0 : in->i[i] != 0;
        else
            out->i[i] = in->f ? truncated(in->f[i], to) : in->i[i];
    }
    return true;
}
