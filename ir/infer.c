/* Shape and dtype rules of the graph ops: operand types and attributes in, result types out.
 * Each row of op.def names its rule, a function `rule_NAME` below; what all rules share
 * (operand counts, dtype kinds, attribute keys and kinds, size limits) is checked once before
 * and after. The same rules serve building, reading text and verifying. Values are never looked
 * at: shapes are static. */
#include "ir/ir.h"

#include <stdio.h>

typedef struct ctx {
    cps_op op;
    uint32_t nin, nattr;
    const cps_type *in;
    const cps_attr *attr;
    cps_type *out;
    cps_diags *d;
    cps_span at;
} ctx;

static bool CPS_PRINTF(3, 4) fail(const ctx *c, cps_code code, const char *fmt, ...)
{
    cps_buf b = {0};
    va_list ap;
    va_start(ap, fmt);
    char text[512];
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    cps_buf_printf(&b, "'%s': %s; operands", cps_ops[c->op].name, text);
    for (uint32_t i = 0; i < c->nin && i < 8; i++) {
        cps_buf_puts(&b, i ? ", " : " ");
        cps_type_print(&c->in[i], &b);
    }
    cps_buf_puts(&b, c->nin > 8 ? ", ..." : c->nin ? "" : " none");
    cps_error(c->d, code, c->at, "%s", b.data);
    cps_buf_fini(&b);
    return false;
}

/* ---- attributes ---- */

static const cps_attr *
get(const ctx *c, const char *key)
{
    return cps_attr_find(c->attr, c->nattr, key);
}

static bool
axis_of(const ctx *c, const char *key, int rank, int *axis)
{
    int64_t v = get(c, key)->i;
    *axis = 0;
    if (v < 0 || v >= rank)
        return fail(c, CPS_E7105, "%s %lld is not in [0, %d)", key, (long long)v, rank);
    *axis = (int)v;
    return true;
}

static bool
list_of(const ctx *c, const char *key, uint32_t want, const int64_t **v)
{
    const cps_attr *a = get(c, key);
    *v = a->ints;
    if (a->n != want)
        return fail(c, CPS_E7105, "%s has %u entries, wants %u, one per axis", key, a->n, want);
    return true;
}

static bool
shape_of(const ctx *c, cps_dtype t, cps_type *out)
{
    const cps_attr *a = get(c, "shape");
    if (a->n > CPS_MAX_RANK)
        return fail(c, CPS_E7106, "rank %u is above %d", a->n, CPS_MAX_RANK);
    *out = cps_type_make(t, (int)a->n, a->ints);
    if (!cps_type_ok(out))
        return fail(c, CPS_E7106, "the shape has a negative extent or too many elements");
    return true;
}

// Holds the node's attributes against the row's "key:kind key:kind?" list.
static bool
check_attrs(const ctx *c)
{
    uint64_t known = 0;
    for (const char *p = cps_ops[c->op].attrs; *p;) {
        const char *colon = strchr(p, ':'), *end = colon + strcspn(colon, " ");
        bool optional = end[-1] == '?';
        int klen = (int)(colon - p), tlen = (int)(end - colon - 1 - optional);
        const cps_attr *a = NULL;
        for (uint32_t i = 0; i < c->nattr && !a; i++)
            if (strncmp(c->attr[i].key, p, (size_t)klen) == 0 && !c->attr[i].key[klen]) {
                a = &c->attr[i];
                known |= UINT64_C(1) << CPS_MIN(i, 63u);
            }
        if (!a && !optional)
            return fail(c, CPS_E7104, "attribute '%.*s' (%.*s) is missing", klen, p, tlen,
                        colon + 1);
        if (a && strncmp(cps_akind_name(a->kind), colon + 1, (size_t)tlen) != 0)
            return fail(c, CPS_E7104, "attribute '%.*s' is %s, wants %.*s", klen, p,
                        cps_akind_name(a->kind), tlen, colon + 1);
        p = *end ? end + 1 : end;
    }
    for (uint32_t i = 0; i < c->nattr; i++)
        if (i >= 63 || !(known >> i & 1))
            return fail(c, CPS_E7104, "there is no attribute '%s', or it is given twice",
                        c->attr[i].key);
    return true;
}

/* ---- what rules share ---- */

static bool
same_dtype(const ctx *c, uint32_t a, uint32_t b)
{
    if (c->in[a].dtype != c->in[b].dtype)
        return fail(c, CPS_E7102, "operands %u and %u have dtypes %s and %s, which must be one",
                    a, b, cps_dtype_name(c->in[a].dtype), cps_dtype_name(c->in[b].dtype));
    return true;
}

static bool
int_dtype(const ctx *c, uint32_t i)
{
    char k = cps_dtypes[c->in[i].dtype].kind;
    if (k != 'S' && k != 'U')
        return fail(c, CPS_E7102, "operand %u holds indices and must be of an integer dtype",
                    i);
    return true;
}

// Extends `acc` by the leading `n` axes of `t`, counted from their ends.
static bool
broadcast(const ctx *c, cps_type *acc, const cps_type *t, int skip)
{
    int n = t->rank - skip, m = acc->rank - skip;
    if (n > m) {
        memmove(acc->dim + (n - m), acc->dim, (size_t)acc->rank * sizeof *acc->dim);
        for (int i = 0; i < n - m; i++)
            acc->dim[i] = 1;
        acc->rank += n - m;
        m = n;
    }
    for (int i = 0; i < n; i++) {
        int64_t *x = &acc->dim[m - 1 - i], y = t->dim[n - 1 - i];
        if (*x != y && *x != 1 && y != 1)
            return fail(c, CPS_E7103, "axis %d from the end has extents %lld and %lld",
                        i + skip + 1, (long long)*x, (long long)y);
        if (*x == 1)
            *x = y;
    }
    return true;
}

// Slices of operand 0 along `axis`, one for each element of operand 1.
static bool
indexed(const ctx *c, int axis, cps_type *out)
{
    const cps_type *x = &c->in[0], *ix = &c->in[1];
    int rank = x->rank - 1 + ix->rank;
    if (rank > CPS_MAX_RANK)
        return fail(c, CPS_E7106, "the result's rank %d is above %d", rank, CPS_MAX_RANK);
    *out = (cps_type){.dtype = x->dtype, .rank = rank};
    int k = 0;
    for (int i = 0; i < axis; i++)
        out->dim[k++] = x->dim[i];
    for (int i = 0; i < ix->rank; i++)
        out->dim[k++] = ix->dim[i];
    for (int i = axis + 1; i < x->rank; i++)
        out->dim[k++] = x->dim[i];
    return true;
}

/* ---- rules ---- */

static bool
rule_given(const ctx *c)
{
    cps_bug("the types of '%s' are given, not inferred", cps_ops[c->op].name);
}

static bool
rule_same(const ctx *c)
{
    c->out[0] = c->in[0];
    return true;
}

static bool
rule_truth(const ctx *c)
{
    c->out[0] = c->in[0];
    c->out[0].dtype = CPS_DT_BOOL;
    return true;
}

static bool
rule_cast(const ctx *c)
{
    int64_t t = get(c, "dtype")->i;
    if (t <= CPS_DT_NONE || t >= CPS_DT_COUNT || cps_dtypes[t].kind == 'P')
        return fail(c, CPS_E7105, "nothing can be cast to that dtype");
    c->out[0] = c->in[0];
    c->out[0].dtype = (cps_dtype)t;
    return true;
}

static bool
rule_elementwise(const ctx *c)
{
    c->out[0] = c->in[0];
    return same_dtype(c, 0, 1) && broadcast(c, c->out, &c->in[1], 0);
}

static bool
rule_compare(const ctx *c)
{
    if (!rule_elementwise(c))
        return false;
    c->out[0].dtype = CPS_DT_BOOL;
    return true;
}

static bool
rule_select(const ctx *c)
{
    if (c->in[0].dtype != CPS_DT_BOOL)
        return fail(c, CPS_E7102, "the condition is %s, must be bool",
                    cps_dtype_name(c->in[0].dtype));
    c->out[0] = c->in[1];
    return same_dtype(c, 1, 2) && broadcast(c, c->out, &c->in[2], 0) &&
           broadcast(c, c->out, &c->in[0], 0);
}

static bool
rule_reduce(const ctx *c)
{
    const cps_type *x = &c->in[0];
    const cps_attr *axes = get(c, "axes");
    bool gone[CPS_MAX_RANK] = {0}, keep = get(c, "keep")->i != 0;
    for (uint32_t i = 0; i < axes->n; i++) {
        int64_t v = axes->ints[i];
        if (v < 0 || v >= x->rank || (i && v <= axes->ints[i - 1]))
            return fail(c, CPS_E7105, "axis %lld is out of range or not in ascending order",
                        (long long)v);
        if (x->dim[v] == 0 && (c->op == CPS_OP_RMAX || c->op == CPS_OP_RMIN))
            return fail(c, CPS_E7103, "nothing along axis %lld to reduce", (long long)v);
        gone[v] = true;
    }
    cps_type r = {.dtype = x->dtype};
    for (int i = 0; i < x->rank; i++)
        if (!gone[i] || keep)
            r.dim[r.rank++] = gone[i] ? 1 : x->dim[i];
    c->out[0] = r;
    return true;
}

static bool
rule_matmul(const ctx *c)
{
    const cps_type *x = &c->in[0], *y = &c->in[1];
    if (x->rank < 2 || y->rank < 2)
        return fail(c, CPS_E7103, "both operands need at least two axes");
    int64_t k = x->dim[x->rank - 1], l = y->dim[y->rank - 2];
    if (k != l)
        return fail(c, CPS_E7103, "contracted extents are %lld and %lld", (long long)k,
                    (long long)l);
    c->out[0] = *x;
    if (!same_dtype(c, 0, 1) || !broadcast(c, c->out, y, 2))
        return false;
    c->out[0].dim[c->out[0].rank - 1] = y->dim[y->rank - 1];
    return true;
}

static bool
rule_reshape(const ctx *c)
{
    if (!shape_of(c, c->in[0].dtype, c->out))
        return false;
    int64_t a = cps_type_count(&c->in[0]), b = cps_type_count(c->out);
    if (a != b)
        return fail(c, CPS_E7103, "%lld elements cannot take a shape of %lld", (long long)a,
                    (long long)b);
    return true;
}

static bool
rule_transpose(const ctx *c)
{
    const cps_type *x = &c->in[0];
    const int64_t *perm;
    if (!list_of(c, "perm", (uint32_t)x->rank, &perm))
        return false;
    unsigned seen = 0;
    c->out[0] = *x;
    for (int i = 0; i < x->rank; i++) {
        if (perm[i] < 0 || perm[i] >= x->rank || seen >> perm[i] & 1)
            return fail(c, CPS_E7105, "perm is no permutation of 0..%d", x->rank - 1);
        seen |= 1u << perm[i];
        c->out[0].dim[i] = x->dim[perm[i]];
    }
    return true;
}

static bool
rule_broadcast(const ctx *c)
{
    const cps_type *x = &c->in[0];
    cps_type want;
    if (!shape_of(c, x->dtype, &want))
        return false;
    c->out[0] = want;
    if (x->rank > want.rank)
        return fail(c, CPS_E7103, "rank %d cannot become %d", x->rank, want.rank);
    for (int i = 0; i < x->rank; i++) {
        int64_t from = x->dim[i], to = want.dim[want.rank - x->rank + i];
        if (from != to && from != 1)
            return fail(c, CPS_E7103, "axis %d of %lld cannot be broadcast to %lld", i,
                        (long long)from, (long long)to);
    }
    return true;
}

static bool
rule_slice(const ctx *c)
{
    const cps_type *x = &c->in[0];
    const int64_t *start, *stop, *step;
    uint32_t n = (uint32_t)x->rank;
    if (!list_of(c, "start", n, &start) || !list_of(c, "stop", n, &stop) ||
        !list_of(c, "step", n, &step))
        return false;
    c->out[0] = *x;
    for (int i = 0; i < x->rank; i++) {
        int64_t a = start[i], b = stop[i], s = step[i], d = x->dim[i];
        bool ok = s > 0 ? a >= 0 && a <= b && b <= d : b >= -1 && b <= a && a < d;
        if (s == 0 || s == INT64_MIN || !ok)
            return fail(c, CPS_E7105, "slice %lld:%lld:%lld does not lie in axis %d of %lld",
                        (long long)a, (long long)b, (long long)s, i, (long long)d);
        int64_t len = s > 0 ? b - a : a - b, by = s > 0 ? s : -s;
        c->out[0].dim[i] = len / by + (len % by != 0);
    }
    return true;
}

static bool
rule_concat(const ctx *c)
{
    const cps_type *x = &c->in[0];
    int axis;
    if (!axis_of(c, "axis", x->rank, &axis))
        return false;
    int64_t sum = x->dim[axis];
    for (uint32_t i = 1; i < c->nin; i++) {
        const cps_type *y = &c->in[i];
        if (!same_dtype(c, 0, i))
            return false;
        if (y->rank != x->rank)
            return fail(c, CPS_E7103, "operand %u has rank %d, operand 0 rank %d", i, y->rank,
                        x->rank);
        for (int k = 0; k < x->rank; k++)
            if (k != axis && y->dim[k] != x->dim[k])
                return fail(c, CPS_E7103,
                            "operand %u has extent %lld in axis %d, operand 0 %lld", i,
                            (long long)y->dim[k], k, (long long)x->dim[k]);
        sum += y->dim[axis];
    }
    c->out[0] = *x;
    c->out[0].dim[axis] = sum;
    return true;
}

static bool
rule_pad(const ctx *c)
{
    const cps_type *x = &c->in[0];
    const int64_t *lo, *hi;
    if (!list_of(c, "lo", (uint32_t)x->rank, &lo) ||
        !list_of(c, "hi", (uint32_t)x->rank, &hi) || !same_dtype(c, 0, 1))
        return false;
    if (c->in[1].rank != 0)
        return fail(c, CPS_E7103, "the value must be a scalar (rank 0)");
    c->out[0] = *x;
    for (int i = 0; i < x->rank; i++) {
        if (lo[i] < 0 || hi[i] < 0 || lo[i] > CPS_MAX_ELEMS || hi[i] > CPS_MAX_ELEMS)
            return fail(c, CPS_E7105, "padding of axis %d is negative or too large", i);
        c->out[0].dim[i] += lo[i] + hi[i];
    }
    return true;
}

static bool
rule_repeat(const ctx *c)
{
    int axis;
    int64_t n = get(c, "n")->i;
    if (!axis_of(c, "axis", c->in[0].rank, &axis))
        return false;
    c->out[0] = c->in[0];
    if (n < 0 || __builtin_mul_overflow(c->out[0].dim[axis], n, &c->out[0].dim[axis]))
        return fail(c, CPS_E7105, "n %lld is negative or too large", (long long)n);
    return true;
}

static bool
rule_index(const ctx *c)
{
    int64_t t = get(c, "dtype")->i;
    int axis;
    if (t <= CPS_DT_NONE || t >= CPS_DT_COUNT || !strchr("FSU", cps_dtypes[t].kind))
        return fail(c, CPS_E7105, "dtype must be a float or an integer");
    return shape_of(c, (cps_dtype)t, c->out) && axis_of(c, "axis", c->out[0].rank, &axis);
}

static bool
rule_gather(const ctx *c)
{
    int axis;
    return axis_of(c, "axis", c->in[0].rank, &axis) && int_dtype(c, 1) &&
           indexed(c, axis, c->out);
}

static bool
rule_gather_elements(const ctx *c)
{
    const cps_type *x = &c->in[0], *ix = &c->in[1];
    int axis;
    if (!axis_of(c, "axis", x->rank, &axis) || !int_dtype(c, 1))
        return false;
    if (ix->rank != x->rank)
        return fail(c, CPS_E7103, "the indices have rank %d, the data rank %d", ix->rank,
                    x->rank);
    for (int i = 0; i < x->rank; i++)
        if (i != axis && ix->dim[i] > x->dim[i])
            return fail(c, CPS_E7103, "the indices reach %lld along axis %d of %lld",
                        (long long)ix->dim[i], i, (long long)x->dim[i]);
    c->out[0] = *ix;
    c->out[0].dtype = x->dtype;
    return true;
}

static bool
rule_scatter(const ctx *c)
{
    int axis;
    cps_type want;
    if (!axis_of(c, "axis", c->in[0].rank, &axis) || !int_dtype(c, 1) || !same_dtype(c, 0, 2) ||
        !indexed(c, axis, &want))
        return false;
    if (c->in[0].dtype == CPS_DT_BOOL && get(c, "add")->i)
        return fail(c, CPS_E7102, "bool cannot be added to");
    if (!cps_type_eq(&want, &c->in[2])) {
        cps_buf b = {0};
        cps_type_print(&want, &b);
        fail(c, CPS_E7103, "the updates must be %s", b.data);
        cps_buf_fini(&b);
        return false;
    }
    c->out[0] = c->in[0];
    return true;
}

static bool
rule_cumsum(const ctx *c)
{
    int axis;
    c->out[0] = c->in[0];
    return axis_of(c, "axis", c->in[0].rank, &axis);
}

static bool
rule_sort(const ctx *c)
{
    int axis;
    c->out[0] = c->out[1] = c->in[0];
    c->out[1].dtype = CPS_DT_I64;
    return axis_of(c, "axis", c->in[0].rank, &axis);
}

static bool (*const rules[CPS_OPS])(const ctx *) = {
#define CPS_OP(id, name, min, max, nout, cls, attrs, doc, kinds, rule)                         \
    [CPS_OP_##id] = rule_##rule,
#include "ir/op.def"
};

// Which operands the row's kinds speak of: indices and conditions have rules of their own.
static bool
is_data(cps_op op, uint32_t i)
{
    if (op == CPS_OP_SELECT)
        return i > 0;
    if (op == CPS_OP_GATHER || op == CPS_OP_GATHER_ELEMS || op == CPS_OP_SCATTER)
        return i != 1;
    return true;
}

bool
cps_ir_infer(cps_op op, uint32_t nin, const cps_type *in, uint32_t nattr, const cps_attr *attr,
             cps_type *out, cps_diags *d, cps_span at)
{
    cps_assert(op > CPS_OP_NONE && op < CPS_OPS);
    const cps_oprow *row = &cps_ops[op];
    ctx c = {op, nin, nattr, in, attr, out, d, at};
    if (nin < row->nin_min || nin > row->nin_max)
        return fail(&c, CPS_E7101, "takes %u to %u operands, got %u", row->nin_min,
                    row->nin_max, nin);
    for (uint32_t i = 0; i < nin; i++) {
        char k = cps_dtypes[in[i].dtype].kind;
        if (is_data(op, i) && !strchr(row->kinds, k == 'S' || k == 'U' ? 'I' : k))
            return fail(&c, CPS_E7102, "operand %u of dtype %s is not among the kinds %s", i,
                        cps_dtype_name(in[i].dtype), row->kinds);
    }
    if (!check_attrs(&c) || !rules[op](&c))
        return false;
    for (int i = 0; i < row->nout; i++)
        if (!cps_type_ok(&out[i]))
            return fail(&c, CPS_E7106, "the result has more than 2^46 elements");
    return true;
}
