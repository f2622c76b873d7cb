/* ALU operators. Arithmetic ones work on fp32 rows and round after each operator; comparisons
 * and logic give 1.0 or 0.0. Bitwise ones work on raw bits, integer ones on 64-bit values that
 * the caller stores back into the type.
 *
 * Choices the documents leave open: maximum and minimum propagate NaN; mod has the divisor's
 * sign (NKI's nl.mod). */
#include "runtime/sim/machine.h"

static inline float
max_f(float a, float b)
{
    return a > b || a != a ? a : b;
}

static inline float
min_f(float a, float b)
{
    return a < b || a != a ? a : b;
}

static inline float
mod_f(float a, float b)
{
    float r = fmodf(a, b);
    return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

/* One row per operator: enumerator, expression in x and y. */
#define F32_OPS(OP)                                                                            \
    OP(BYPASS, x)                                                                              \
    OP(ADD, x + y)                                                                             \
    OP(SUBTRACT, x - y)                                                                        \
    OP(MULT, x *y)                                                                             \
    OP(DIVIDE, x / y)                                                                          \
    OP(MAX, max_f(x, y))                                                                       \
    OP(MIN, min_f(x, y))                                                                       \
    OP(LOGICAL_AND, x != 0 && y != 0 ? 1.0f : 0.0f)                                            \
    OP(LOGICAL_OR, x != 0 || y != 0 ? 1.0f : 0.0f)                                             \
    OP(LOGICAL_XOR, (x != 0) != (y != 0) ? 1.0f : 0.0f)                                        \
    OP(IS_EQ, x == y ? 1.0f : 0.0f)                                                            \
    OP(IS_NE, x != y ? 1.0f : 0.0f)                                                            \
    OP(IS_GT, x > y ? 1.0f : 0.0f)                                                             \
    OP(IS_GE, x >= y ? 1.0f : 0.0f)                                                            \
    OP(IS_LE, x <= y ? 1.0f : 0.0f)                                                            \
    OP(IS_LT, x < y ? 1.0f : 0.0f)                                                             \
    OP(ABS_DIFF, fabsf(x - y))                                                                 \
    OP(ABS_VALUE, fabsf(x))                                                                    \
    OP(POW, (float)pow(x, y))                                                                  \
    OP(MOD, mod_f(x, y))                                                                       \
    OP(RSQRT, (float)(1.0 / sqrt(x)))                                                          \
    OP(ABS_MAX, max_f(fabsf(x), fabsf(y)))                                                     \
    OP(ABS_MIN, min_f(fabsf(x), fabsf(y)))                                                     \
    OP(RELU, max_f(x, 0.0f))                                                                   \
    OP(SQUARE, x *x)

bool
alu_f32(unsigned op, const float *a, int sa, const float *b, int sb, float *out, size_t n)
{
    switch (op) {
#define OP(name, expr)                                                                         \
    case CPS_ALU_##name:                                                                       \
        if (sa && sb) {                                                                        \
            for (size_t k = 0; k < n; k++) {                                                   \
                float x = a[k], y = b[k];                                                      \
                (void)y;                                                                       \
                out[k] = expr;                                                                 \
            }                                                                                  \
        } else if (sa) {                                                                       \
            float y = *b;                                                                      \
            (void)y;                                                                           \
            for (size_t k = 0; k < n; k++) {                                                   \
                float x = a[k];                                                                \
                out[k] = expr;                                                                 \
            }                                                                                  \
        } else {                                                                               \
            float x = *a;                                                                      \
            for (size_t k = 0; k < n; k++) {                                                   \
                float y = b[k * (size_t)sb];                                                   \
                (void)y;                                                                       \
                out[k] = expr;                                                                 \
            }                                                                                  \
        }                                                                                      \
        return true;
        F32_OPS(OP)
#undef OP
    default:
        return false;
    }
}

float
alu_f32_1(unsigned op, float x, float y)
{
    switch (op) {
#define OP(name, expr)                                                                         \
    case CPS_ALU_##name:                                                                       \
        return expr;
        F32_OPS(OP)
#undef OP
    default:
        return NAN;
    }
}

float
alu_fold(const wide_loops *w, unsigned op, float r, const float *v, size_t n)
{
    if (op == CPS_ALU_ADD) {
        for (size_t k = 0; k < n; k++)
            r += v[k];
        return r;
    }
    if ((op == CPS_ALU_MAX || op == CPS_ALU_MIN) && n) {
        float top;
        wide_side a = {.at = (uint8_t *)(uintptr_t)v};
        if (w->top(&a, op == CPS_ALU_MIN, &top, n))
            return alu_f32_1(op, r, top);
    }
    for (size_t k = 0; k < n; k++)
        r = alu_f32_1(op, r, v[k]);
    return r;
}

float
alu_identity(unsigned op)
{
    switch (op) {
    case CPS_ALU_MULT:
    case CPS_ALU_LOGICAL_AND:
        return 1.0f;
    case CPS_ALU_MAX:
        return -INFINITY;
    case CPS_ALU_MIN:
    case CPS_ALU_ABS_MIN:
        return INFINITY;
    default:
        return 0.0f;
    }
}

bool
alu_is_bits(unsigned op)
{
    return op == CPS_ALU_BITWISE_NOT || op == CPS_ALU_ARITH_SHIFT_LEFT ||
           op == CPS_ALU_ARITH_SHIFT_RIGHT || op == CPS_ALU_BITWISE_AND ||
           op == CPS_ALU_BITWISE_OR || op == CPS_ALU_BITWISE_XOR ||
           op == CPS_ALU_LOGICAL_SHIFT_LEFT || op == CPS_ALU_LOGICAL_SHIFT_RIGHT;
}

uint32_t
alu_bits(unsigned op, uint32_t a, uint32_t b, unsigned width)
{
    uint32_t mask = width >= 32 ? UINT32_MAX : (1u << width) - 1;
    bool far = b >= width;
    switch (op) {
    case CPS_ALU_BITWISE_NOT:
        return ~a & mask;
    case CPS_ALU_BITWISE_AND:
        return a & b;
    case CPS_ALU_BITWISE_OR:
        return a | b;
    case CPS_ALU_BITWISE_XOR:
        return a ^ b;
    case CPS_ALU_ARITH_SHIFT_LEFT:
    case CPS_ALU_LOGICAL_SHIFT_LEFT:
        return far ? 0 : a << b & mask;
    case CPS_ALU_LOGICAL_SHIFT_RIGHT:
        return far ? 0 : a >> b;
    case CPS_ALU_ARITH_SHIFT_RIGHT: {
        uint32_t sign = a >> (width - 1) & 1;
        if (far)
            return sign ? mask : 0;
        return (a >> b | (sign && b ? mask & ~(mask >> b) : 0)) & mask;
    }
    default:
        return a; // BYPASS
    }
}

bool
alu_is_int(unsigned op)
{
    return op >= CPS_ALU_ADD_INT && op <= CPS_ALU_AMIN_UINT;
}

/* Unsigned forms see their operands as the type was loaded: zero-extended from unsigned types.
 */
int64_t
alu_int(unsigned op, int64_t a, int64_t b)
{
    int64_t ua = llabs(a), ub = llabs(b);
    uint64_t wa = (uint64_t)a, wb = (uint64_t)b;
    switch (op) {
    case CPS_ALU_ADD:
    case CPS_ALU_ADD_INT:
        return (int64_t)(wa + wb);
    case CPS_ALU_SUBTRACT:
    case CPS_ALU_SUB_INT:
        return (int64_t)(wa - wb);
    case CPS_ALU_MULT:
    case CPS_ALU_MULT_INT:
    case CPS_ALU_MULT_UINT:
        return (int64_t)(wa * wb);
    case CPS_ALU_DIV_INT:
    case CPS_ALU_DIV_UINT:
        return b == 0 ? 0 : b == -1 ? (int64_t)-wa : a / b;
    case CPS_ALU_MOD:
    case CPS_ALU_MOD_INT:
    case CPS_ALU_MOD_UINT: {
        if (b == 0 || b == -1)
            return 0;
        int64_t r = a % b;
        return r != 0 && (r < 0) != (b < 0) ? r + b : r;
    }
    case CPS_ALU_IS_EQ:
    case CPS_ALU_EQ_INT:
        return a == b;
    case CPS_ALU_IS_NE:
    case CPS_ALU_NE_INT:
        return a != b;
    case CPS_ALU_ABS_MAX_INT:
    case CPS_ALU_AMAX_INT:
    case CPS_ALU_AMAX_UINT:
        return ua > ub ? ua : ub;
    case CPS_ALU_ABS_MIN_INT:
    case CPS_ALU_AMIN_INT:
    case CPS_ALU_AMIN_UINT:
        return ua < ub ? ua : ub;
    case CPS_ALU_ABS_DIFF_INT:
        return llabs(a - b);
    case CPS_ALU_ABS_VALUE_INT:
        return ua;
    case CPS_ALU_MAX:
    case CPS_ALU_MAX_INT:
    case CPS_ALU_MAX_UINT:
        return a > b ? a : b;
    case CPS_ALU_MIN:
    case CPS_ALU_MIN_INT:
    case CPS_ALU_MIN_UINT:
        return a < b ? a : b;
    case CPS_ALU_IS_GT:
    case CPS_ALU_GT_INT:
    case CPS_ALU_GT_UINT:
        return a > b;
    case CPS_ALU_IS_GE:
    case CPS_ALU_GE_INT:
    case CPS_ALU_GE_UINT:
        return a >= b;
    case CPS_ALU_IS_LE:
    case CPS_ALU_LE_INT:
    case CPS_ALU_LE_UINT:
        return a <= b;
    case CPS_ALU_IS_LT:
    case CPS_ALU_LT_INT:
    case CPS_ALU_LT_UINT:
        return a < b;
    default:
        return a;
    }
}
