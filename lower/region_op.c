/* A region's mathematics as an operator of the kernel language: what its leaf is held against,
 * and what `copse explain` shows. One `let` a node; operands and results carry their extents, so
 * that nothing is left to be bound.
 *
 * In: a region. Out: text. Holds: the operator computes, for every value, what the graph's nodes
 * did, in the same dtypes; axes that a value does not vary along have extent 1. */
#include "lower/region.h"

#include <inttypes.h>
#include <math.h>

typedef struct form { // %0 %1 %2 operands
    cps_op op;
    const char *text;
} form;

static const form forms[] = {
    {CPS_OP_NEG, "-%0"},           {CPS_OP_ADD, "%0 + %1"},  {CPS_OP_SUB, "%0 - %1"},
    {CPS_OP_MUL, "%0 * %1"},       {CPS_OP_DIV, "%0 / %1"},  {CPS_OP_EQ, "%0 == %1"},
    {CPS_OP_NE, "%0 != %1"},       {CPS_OP_LT, "%0 < %1"},   {CPS_OP_LE, "%0 <= %1"},
    {CPS_OP_GT, "%0 > %1"},        {CPS_OP_GE, "%0 >= %1"},  {CPS_OP_AND, "%0 & %1"},
    {CPS_OP_OR, "%0 | %1"},        {CPS_OP_XOR, "%0 != %1"}, {CPS_OP_POW, "pow(%0, %1)"},
    {CPS_OP_MOD, "%0 % %1"},
    {CPS_OP_SELECT, "select(%0, %1, %2)"}, {CPS_OP_NOT, "not(%0)"},
};

void
cps_region_number(double x, cps_buf *out)
{
    if (isinf(x)) {
        cps_buf_puts(out, x < 0 ? "(-inf)" : "inf");
        return;
    }
    cps_buf b = {0};
    cps_buf_put_double(&b, x);
    bool plain = !strpbrk(b.data, ".e");
    cps_buf_printf(out, x < 0 || signbit(x) ? "(%s%s)" : "%s%s", b.data, plain ? ".0" : "");
    cps_buf_fini(&b);
}

static void
put_value(const cps_region *r, int k, cps_dtype as, cps_buf *out)
{
    const cps_rvalue *v = &r->v[k];
    if (v->kind == CPS_RV_INPUT)
        cps_buf_printf(out, "%c%d", v->cut ? 's' : 'x', v->slot);
    else if (v->kind == CPS_RV_NODE)
        cps_buf_printf(out, "v%d", k);
    else if (as == CPS_DT_BOOL)
        cps_buf_printf(out, "full(%d, 1, dtype: bool)", v->number != 0);
    else if (!cps_dtype_is_float(as))
        cps_buf_printf(out, v->number < 0 ? "(%" PRId64 ")" : "%" PRId64, (int64_t)v->number);
    else
        cps_region_number(v->number, out);
}

static void
put_extents(const cps_region *r, const cps_rvalue *v, cps_buf *out)
{
    for (int i = 0; i < r->naxes; i++)
        cps_buf_printf(out, "%s%" PRId64, i ? ", " : "", cps_region_extent(r, v, i));
}

// What is read of an operand that holds more.
static void
put_slice(const cps_region *r, const cps_rvalue *v, cps_buf *out)
{
    cps_buf_printf(out, "    let s%d = x%d[", v->slot, v->slot);
    for (int i = 0; i < r->naxes; i++) {
        cps_buf_puts(out, i ? ", " : "");
        if (v->cut == i + 1)
            cps_buf_printf(out, "%" PRId64 ":%" PRId64, v->start, v->start + r->axis[i]);
        else
            cps_buf_puts(out, ":");
    }
    cps_buf_puts(out, "];\n");
}

static void
put_reduction(const cps_region *r, const cps_rvalue *v, const char *name, cps_buf *out)
{
    cps_buf_printf(out, "%s(", name);
    put_value(r, v->in[0], v->dtype, out);
    cps_buf_printf(out, ", axis: %d)", r->naxes - 1);
}

static void
put_node(const cps_region *r, const cps_rvalue *v, cps_buf *out)
{
    const char *f = NULL;
    for (size_t i = 0; i < cps_countof(forms); i++)
        if (forms[i].op == v->op)
            f = forms[i].text;
    if (v->op == CPS_OP_XOR && v->dtype != CPS_DT_BOOL) // bits that are not in both
        f = "(%0 | %1) - (%0 & %1)";
    if (f) {
        for (; *f; f++)
            if (*f == '%' && f[1] != ' ') {
                int k = v->in[*++f - '0'];
                put_value(r, k, r->v[k].dtype, out);
            } else {
                cps_buf_putc(out, *f);
            }
        return;
    }
    const char *name = cps_ops[v->op].name;
    switch (v->op) {
    case CPS_OP_SUM:
        put_reduction(r, v, "sum", out);
        return;
    case CPS_OP_MEAN:
        put_reduction(r, v, "mean", out);
        return;
    case CPS_OP_RMAX:
        put_reduction(r, v, "max", out);
        return;
    case CPS_OP_RMIN:
        put_reduction(r, v, "min", out);
        return;
    case CPS_OP_CUMSUM:
        cps_buf_puts(out, "scan_add(");
        put_value(r, v->in[0], v->dtype, out);
        cps_buf_printf(out, ", axis: %d%s)", r->naxes - 1, v->exclusive ? ", exclusive: true" : "");
        return;
    default:
        break;
    }
    cps_buf_printf(out, "%s(", name);
    for (int i = 0; i < v->nin; i++) {
        cps_buf_puts(out, i ? ", " : "");
        put_value(r, v->in[i], r->v[v->in[i]].dtype, out);
    }
    if (v->op == CPS_OP_CAST)
        cps_buf_printf(out, ", %s", cps_dtype_name(v->dtype));
    if (v->op == CPS_OP_BROADCAST) {
        cps_buf_puts(out, ", ");
        put_extents(r, v, out);
    }
    cps_buf_putc(out, ')');
}

static void
put_signature(const cps_region *r, cps_buf *out)
{
    for (int pass = 0; pass < 2; pass++) {
        int n = pass ? r->nresults : r->noperands, done = 0;
        for (int s = 0; s < n; s++)
            for (int k = 0; k < r->n; k++) {
                const cps_rvalue *v = &r->v[k];
                if (v->slot != s || v->kind != (pass ? CPS_RV_NODE : CPS_RV_INPUT))
                    continue;
                cps_buf_printf(out, "%s%c%d[", done++ ? ", " : "", pass ? 'y' : 'x', s);
                put_extents(r, v, out);
                cps_buf_printf(out, "]: %s", cps_dtype_name(v->dtype));
            }
        cps_buf_puts(out, pass ? "" : ") -> ");
    }
}

void
cps_region_op(const cps_region *r, const char *name, cps_buf *out)
{
    cps_buf_printf(out, "op %s(", name);
    put_signature(r, out);
    cps_buf_puts(out, " {\n");
    for (int k = 0; k < r->n; k++) {
        const cps_rvalue *v = &r->v[k];
        if (v->kind == CPS_RV_INPUT && v->cut)
            put_slice(r, v, out);
        if (v->kind != CPS_RV_NODE)
            continue;
        cps_buf_printf(out, "    let v%d = ", k);
        put_node(r, v, out);
        cps_buf_puts(out, ";\n");
    }
    for (int k = 0; k < r->n; k++)
        if (r->v[k].kind == CPS_RV_NODE && r->v[k].slot >= 0)
            cps_buf_printf(out, "    y%d = v%d;\n", r->v[k].slot, k);
    cps_buf_puts(out, "}\n");
}
