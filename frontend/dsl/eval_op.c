/* Operators on compile-time values: arithmetic, comparisons, membership, ranges. Opaque operands go
 * to the driver's hook first; what neither knows is E2302. */
#include "frontend/dsl/builtin.h"

#include <math.h>

static bool
overflow(cps_eval *ev, cps_span at, const char *op, int64_t a, int64_t b)
{
    return cps_eval_error(ev, CPS_E2303, at, "%lld %s %lld does not fit 64 bits", (long long)a, op,
                          (long long)b);
}

static bool
integers(cps_eval *ev, cps_ast_bin op, cps_span at, int64_t a, int64_t b, cps_cv *out)
{
    const char *text = cps_ast_bins[op].text;
    int64_t r = 0;
    bool over = false;
    switch (op) {
    case CPS_BIN_ADD:
        over = __builtin_add_overflow(a, b, &r);
        break;
    case CPS_BIN_SUB:
        over = __builtin_sub_overflow(a, b, &r);
        break;
    case CPS_BIN_MUL:
        over = __builtin_mul_overflow(a, b, &r);
        break;
    case CPS_BIN_DIV:
    case CPS_BIN_MOD:
        if (b == 0)
            return cps_eval_error(ev, CPS_E2303, at, "%lld %s 0: division by zero", (long long)a,
                                  text);
        if (a < 0 || b < 0) {
            cps_eval_error(ev, CPS_E2303, at, "%lld %s %lld: both must be non-negative",
                           (long long)a, text, (long long)b);
            cps_help(ev->c.diags, "division of integers floors, which is ambiguous below 0; write "
                                  "one side with a point for a division of numbers");
            return false;
        }
        r = op == CPS_BIN_DIV ? a / b : a % b;
        break;
    case CPS_BIN_BAND:
        r = a & b;
        break;
    case CPS_BIN_BOR:
        r = a | b;
        break;
    case CPS_BIN_SHL:
        over = b < 0 || b > 62 || a < 0 || a > INT64_MAX >> b;
        r = over ? 0 : a << b;
        break;
    case CPS_BIN_SHR:
        over = b < 0 || b > 63;
        r = over ? 0 : a >> b;
        break;
    default:
        cps_bug("operator %d on integers", (int)op);
    }
    if (over)
        return overflow(ev, at, text, a, b);
    *out = cps_cv_int(r);
    return true;
}

static bool
floats(cps_eval *ev, cps_ast_bin op, cps_span at, double a, double b, cps_cv *out)
{
    double r = op == CPS_BIN_ADD ? a + b : op == CPS_BIN_SUB ? a - b : op == CPS_BIN_MUL ? a * b
                                                                                         : a / b;
    if ((op == CPS_BIN_DIV && b == 0) || isnan(r))
        return cps_eval_error(ev, CPS_E2303, at, "%g %s %g is not a number", a,
                              cps_ast_bins[op].text, b);
    *out = cps_cv_float(r);
    return true;
}

static bool
mismatch(cps_eval *ev, cps_ast_bin op, cps_span at, cps_cv a, cps_cv b)
{
    return cps_eval_error(ev, CPS_E2302, at, "`%s` cannot combine %s and %s",
                          cps_ast_bins[op].text, cps_eval_describe(ev, a),
                          cps_eval_describe(ev, b));
}

static bool
compare(cps_eval *ev, cps_ast_bin op, cps_span at, cps_cv a, cps_cv b, cps_cv *out)
{
    double x, y;
    bool nums = a.kind != CPS_V_BOOL && b.kind != CPS_V_BOOL && cps_cv_num(a, &x) &&
                cps_cv_num(b, &y);
    if (op == CPS_BIN_EQ || op == CPS_BIN_NE) {
        bool enums = (a.kind == CPS_V_ENUM && b.kind == CPS_V_INT) ||
                     (a.kind == CPS_V_INT && b.kind == CPS_V_ENUM) ||
                     (a.kind == CPS_V_ENUM && b.kind == CPS_V_ENUM &&
                      a.u.ev->type == b.u.ev->type);
        if (!nums && !enums && (a.kind != b.kind || a.kind == CPS_V_ENUM))
            return mismatch(ev, op, at, a, b);
        *out = cps_cv_bool(cps_cv_eq(a, b) == (op == CPS_BIN_EQ));
        return true;
    }
    if (!nums)
        return mismatch(ev, op, at, a, b);
    bool both = a.kind == CPS_V_INT && b.kind == CPS_V_INT;
    int order = both ? (a.u.i > b.u.i) - (a.u.i < b.u.i) : (x > y) - (x < y);
    bool r = op == CPS_BIN_LT   ? order < 0
             : op == CPS_BIN_GT ? order > 0
             : op == CPS_BIN_LE ? order <= 0
                                : order >= 0;
    *out = cps_cv_bool(r);
    return true;
}

static bool
member_of(cps_eval *ev, cps_span at, cps_cv a, cps_cv b, cps_cv *out)
{
    if (b.kind == CPS_V_RANGE && a.kind == CPS_V_INT) {
        *out = cps_cv_bool(a.u.i >= b.u.piece->start && a.u.i < b.u.piece->end);
        return true;
    }
    // A tensor or a register is compared when the kernel runs; what is in a set is decided now.
    if (cps_is_driver(a) || (b.kind != CPS_V_SET && b.kind != CPS_V_LIST && b.kind != CPS_V_TUPLE)) {
        mismatch(ev, CPS_BIN_IN, at, a, b);
        if (b.kind == CPS_V_INT)
            cps_help(ev->c.diags, "`in` binds tighter than `..`: put the range in parentheses");
        return false;
    }
    bool found = false;
    for (uint32_t i = 0; i < b.u.seq->n && !found; i++)
        found = cps_cv_eq(a, b.u.seq->item[i]);
    *out = cps_cv_bool(found);
    return true;
}

bool
cps_eval_binop(cps_eval *ev, const cps_ast_binary *e, cps_ast_bin op, cps_span at, cps_cv a,
               cps_cv b, cps_cv *out)
{
    if (a.kind == CPS_V_POISON || b.kind == CPS_V_POISON)
        return false;
    if ((cps_is_driver(a) || cps_is_driver(b)) && ev->c.hooks && ev->c.hooks->binary) {
        cps_hook h = ev->c.hooks->binary(ev, e, op, at, a, b, out);
        if (h != CPS_HOOK_PASS)
            return h == CPS_HOOK_DONE;
    }
    double x, y;
    switch (cps_ast_bins[op].group) {
    case 'A':
        if (op == CPS_BIN_MATMUL)
            break;
        if (a.kind == CPS_V_INT && b.kind == CPS_V_INT)
            return integers(ev, op, at, a.u.i, b.u.i, out);
        if (op != CPS_BIN_MOD && a.kind != CPS_V_BOOL && b.kind != CPS_V_BOOL &&
            cps_cv_num(a, &x) && cps_cv_num(b, &y))
            return floats(ev, op, at, x, y, out);
        break;
    case 'B':
        if (a.kind == CPS_V_INT && b.kind == CPS_V_INT)
            return integers(ev, op, at, a.u.i, b.u.i, out);
        if (a.kind == CPS_V_BOOL && b.kind == CPS_V_BOOL &&
            (op == CPS_BIN_BAND || op == CPS_BIN_BOR)) {
            *out = cps_cv_bool(op == CPS_BIN_BAND ? a.u.b && b.u.b : a.u.b || b.u.b);
            return true;
        }
        break;
    case 'C':
        return op == CPS_BIN_IN ? member_of(ev, at, a, b, out) : compare(ev, op, at, a, b, out);
    case 'L':
        if (a.kind == CPS_V_BOOL && b.kind == CPS_V_BOOL) {
            *out = cps_cv_bool(op == CPS_BIN_AND ? a.u.b && b.u.b : a.u.b || b.u.b);
            return true;
        }
        break;
    case 'R':
        if (a.kind != CPS_V_INT || b.kind != CPS_V_INT)
            break;
        if (b.u.i < a.u.i)
            return cps_eval_error(ev, CPS_E2307, at, "the range %lld..%lld runs backwards",
                                  (long long)a.u.i, (long long)b.u.i);
        *out = cps_cv_range(ev->c.arena, a.u.i, b.u.i, NULL);
        return true;
    }
    return mismatch(ev, op, at, a, b);
}
