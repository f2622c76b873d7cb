/* Op and block bodies to graph functions (language 2.2).
 *
 * In: an operator, a complete instance. Out: a function of base ops (and calls). The evaluator
 * runs the body; what it does not know are tensors of the graph and the places results are written
 * to. Every element of every result is written once: regions are collected and checked when the
 * body ends or the result is read. */
#include "frontend/dsl/body_priv.h"

#include <math.h>

enum { STEPS = 400000 }; // every step may leave a node, and nodes stay

/* ---- values ---- */

bool
cps_body_give(cps_body *y, cps_val v, cps_cv *out)
{
    if (!v) { // the builder has reported
        y->ev.failed++;
        y->ev.trail_due = true;
        return false;
    }
    *out = cps_cv_opaque(CPS_BODY_TENSOR, (const void *)(uintptr_t)v);
    return true;
}

static cps_place *
place_of(cps_cv v)
{
    return v.kind == CPS_V_OPAQUE && v.tag == CPS_BODY_PLACE ? (cps_place *)(uintptr_t)v.u.p : NULL;
}

// Does the dtype hold the number as it is?
static bool
exact(cps_dtype t, cps_cv v)
{
    double x;
    if (v.kind == CPS_V_BOOL)
        return t == CPS_DT_BOOL;
    if (!cps_cv_num(v, &x) || cps_dtypes[t].kind == 'P')
        return false;
    if (cps_dtype_is_float(t))
        return cps_round_f64(t, x) == x;
    if (v.kind != CPS_V_INT || t == CPS_DT_BOOL)
        return false;
    uint64_t cell = 0;
    cps_from_i64(t, &cell, v.u.i);
    return cps_to_i64(t, &cell) == v.u.i;
}

cps_val
cps_body_tensor(cps_body *y, cps_cv v, cps_dtype as, cps_span at)
{
    double x;
    y->b.loc = at;
    if (place_of(v))
        return cps_body_read(y, place_of(v), at);
    if (v.kind == CPS_V_OPAQUE)
        return (cps_val)(uintptr_t)v.u.p;
    if (!cps_cv_num(v, &x)) {
        cps_eval_error(&y->ev, CPS_E2301, at, "%s is no tensor", cps_eval_describe(&y->ev, v));
        return 0;
    }
    if (as == CPS_DT_NONE)
        as = v.kind == CPS_V_BOOL ? CPS_DT_BOOL : v.kind == CPS_V_INT ? CPS_DT_I32 : CPS_DT_FP32;
    if (v.kind == CPS_V_INT && cps_dtype_is_int(as)) {
        if (!exact(as, v))
            as = CPS_DT_I64;
        void *p = cps_arena_alloc(y->b.m->arena, 8);
        cps_from_i64(as, p, v.u.i);
        return cps_b_const(&y->b, cps_type_make(as, 0, NULL), p, NULL);
    }
    return cps_b_scalar(&y->b, as, x);
}

static cps_dtype
dtype_of(cps_body *y, cps_val v)
{
    return cps_b_type(&y->b, v)->dtype;
}

static cps_dtype
common(cps_dtype a, cps_dtype b)
{
    if (a == b)
        return a;
    if (cps_dtype_is_float(a) || cps_dtype_is_float(b))
        return CPS_DT_FP32;
    if (a == CPS_DT_BOOL || b == CPS_DT_BOOL)
        return a == CPS_DT_BOOL ? b : a;
    bool sign = cps_dtypes[a].kind == 'S' || cps_dtypes[b].kind == 'S';
    unsigned bits = CPS_MAX(cps_dtypes[a].bits, cps_dtypes[b].bits);
    if (bits > 32)
        return sign ? CPS_DT_I64 : CPS_DT_U64;
    // A signed and an unsigned of one width need the next width.
    if (sign && cps_dtypes[a].kind != cps_dtypes[b].kind)
        return bits == 32 ? CPS_DT_I64 : CPS_DT_I32;
    return sign ? (bits == 32 ? CPS_DT_I32 : bits == 16 ? CPS_DT_I16 : CPS_DT_I8)
                : (bits == 32 ? CPS_DT_U32 : bits == 16 ? CPS_DT_U16 : CPS_DT_U8);
}

bool
cps_body_promote(cps_body *y, cps_cv a, cps_cv b, cps_span at, cps_val *x, cps_val *z)
{
    bool ta = a.kind == CPS_V_OPAQUE, tb = b.kind == CPS_V_OPAQUE;
    *x = ta ? cps_body_tensor(y, a, CPS_DT_NONE, at) : 0;
    *z = tb ? cps_body_tensor(y, b, CPS_DT_NONE, at) : 0;
    if ((ta && !*x) || (tb && !*z))
        return false;
    if (ta != tb) { // a number joins the tensor's dtype when that holds it
        cps_dtype t = dtype_of(y, ta ? *x : *z);
        cps_cv number = ta ? b : a;
        cps_dtype as = exact(t, number) ? t
                       : number.kind == CPS_V_INT && cps_dtype_is_int(t) ? CPS_DT_I64
                                                                         : CPS_DT_FP32;
        cps_val v = cps_body_tensor(y, number, as, at);
        *(ta ? z : x) = v;
        if (!v)
            return false;
    } else if (!ta) {
        *x = cps_body_tensor(y, a, CPS_DT_NONE, at);
        *z = cps_body_tensor(y, b, CPS_DT_NONE, at);
        if (!*x || !*z)
            return false;
    }
    cps_dtype t = common(dtype_of(y, *x), dtype_of(y, *z));
    *x = cps_b_cast(&y->b, *x, t);
    *z = cps_b_cast(&y->b, *z, t);
    return *x && *z;
}

/* ---- operators ---- */

static const struct {
    cps_ast_bin bin;
    cps_op op;
} binary_ops[] = {
    {CPS_BIN_ADD, CPS_OP_ADD},   {CPS_BIN_SUB, CPS_OP_SUB},   {CPS_BIN_MUL, CPS_OP_MUL},
    {CPS_BIN_DIV, CPS_OP_DIV},   {CPS_BIN_MOD, CPS_OP_MOD},   {CPS_BIN_MATMUL, CPS_OP_MATMUL},
    {CPS_BIN_LT, CPS_OP_LT},     {CPS_BIN_GT, CPS_OP_GT},     {CPS_BIN_LE, CPS_OP_LE},
    {CPS_BIN_GE, CPS_OP_GE},     {CPS_BIN_EQ, CPS_OP_EQ},     {CPS_BIN_NE, CPS_OP_NE},
    {CPS_BIN_AND, CPS_OP_AND},   {CPS_BIN_OR, CPS_OP_OR},     {CPS_BIN_BAND, CPS_OP_AND},
    {CPS_BIN_BOR, CPS_OP_OR},
};

cps_hook
cps_body_binary(cps_body *y, cps_ast_bin bin, cps_span at, cps_cv a, cps_cv b, cps_cv *out)
{
    cps_val x, z;
    // A bool known at compile time leaves the other side, or decides.
    if ((bin == CPS_BIN_AND || bin == CPS_BIN_OR) && (a.kind == CPS_V_BOOL || b.kind == CPS_V_BOOL)) {
        cps_cv known = a.kind == CPS_V_BOOL ? a : b, other = a.kind == CPS_V_BOOL ? b : a;
        *out = known.u.b == (bin == CPS_BIN_AND) ? other : known;
        return CPS_HOOK_DONE;
    }
    for (size_t i = 0; i < cps_countof(binary_ops); i++) {
        if (binary_ops[i].bin != bin)
            continue;
        uint32_t failed = y->ev.failed;
        y->b.loc = at;
        if (!cps_body_promote(y, a, b, at, &x, &z)) {
            y->ev.failed += y->ev.failed == failed;
            return CPS_HOOK_FAIL;
        }
        return cps_body_give(y, cps_b_binary(&y->b, binary_ops[i].op, x, z), out)
                   ? CPS_HOOK_DONE
                   : CPS_HOOK_FAIL;
    }
    return CPS_HOOK_PASS;
}

static bool
is_operand(cps_cv v)
{
    return v.kind == CPS_V_OPAQUE || v.kind == CPS_V_INT || v.kind == CPS_V_FLOAT ||
           v.kind == CPS_V_BOOL;
}

static cps_hook
on_binary(cps_eval *ev, const cps_ast_binary *e, cps_ast_bin op, cps_span at, cps_cv a, cps_cv b,
          cps_cv *out)
{
    cps_span span = e ? e->head.span : at;
    if (!is_operand(a) || !is_operand(b))
        return CPS_HOOK_PASS;
    return cps_body_binary(cps_body_of(ev), op, span, a, b, out);
}

static cps_hook
on_unary(cps_eval *ev, const cps_ast_unary *e, cps_cv a, cps_cv *out)
{
    cps_body *y = cps_body_of(ev);
    if (a.kind != CPS_V_OPAQUE)
        return CPS_HOOK_PASS;
    cps_val x = cps_body_tensor(y, a, CPS_DT_NONE, e->head.span);
    cps_op op = e->op == CPS_UN_NEG ? CPS_OP_NEG : CPS_OP_NOT;
    return x && cps_body_give(y, cps_b_unary(&y->b, op, x), out) ? CPS_HOOK_DONE : CPS_HOOK_FAIL;
}

static cps_hook
on_transpose(cps_eval *ev, const cps_ast_transpose *e, cps_cv base, cps_cv *out)
{
    cps_body *y = cps_body_of(ev);
    cps_val x = cps_body_tensor(y, base, CPS_DT_NONE, e->head.span);
    if (!x)
        return CPS_HOOK_FAIL;
    int64_t perm[CPS_MAX_RANK];
    int r = cps_b_type(&y->b, x)->rank;
    if (r < 2) {
        cps_eval_error(ev, CPS_E2302, e->head.span, "`'` swaps two axes, and this has %d", r);
        return CPS_HOOK_FAIL;
    }
    for (int i = 0; i < r; i++)
        perm[i] = i < r - 2 ? i : 2 * r - 3 - i;
    return cps_body_give(y, cps_b_transpose(&y->b, x, perm), out) ? CPS_HOOK_DONE : CPS_HOOK_FAIL;
}

static cps_hook
on_index(cps_eval *ev, const cps_ast_index *e, cps_cv base, cps_cv *out)
{
    cps_body *y = cps_body_of(ev);
    cps_val x = cps_body_tensor(y, base, CPS_DT_NONE, e->head.span);
    cps_region r;
    if (!x || !cps_body_region(y, e, cps_b_type(&y->b, x), &r))
        return CPS_HOOK_FAIL;
    y->b.loc = e->head.span;
    return cps_body_give(y, cps_body_slice(y, x, &r), out) ? CPS_HOOK_DONE : CPS_HOOK_FAIL;
}

static const cps_type *
type_of(cps_body *y, cps_cv v)
{
    return place_of(v) ? &place_of(v)->type : cps_b_type(&y->b, (cps_val)(uintptr_t)v.u.p);
}

static cps_hook
on_member(cps_eval *ev, const cps_ast_member *e, cps_cv base, cps_cv *out)
{
    if (base.kind != CPS_V_OPAQUE)
        return CPS_HOOK_PASS;
    const cps_type *t = type_of(cps_body_of(ev), base);
    if (cps_streq(e->name.text, "dtype")) {
        *out = cps_cv_dtype(t->dtype);
        return CPS_HOOK_DONE;
    }
    if (!cps_streq(e->name.text, "shape"))
        return CPS_HOOK_PASS;
    cps_cv dim[CPS_MAX_RANK];
    for (int i = 0; i < t->rank; i++)
        dim[i] = cps_cv_int(t->dim[i]);
    *out = cps_cv_seq(ev->c.arena, CPS_V_LIST, dim, (uint32_t)t->rank);
    return CPS_HOOK_DONE;
}

static cps_hook
on_method(cps_eval *ev, const cps_ast_call *e, cps_cv base, const cps_ast_name *name,
          const cps_arg *arg, uint32_t n, cps_cv *out)
{
    cps_body *y = cps_body_of(ev);
    if (cps_streq(name->text, "bits")) {
        cps_eval_error(ev, CPS_E2309, e->head.span, "reinterpreting bytes has no form in a graph");
        return CPS_HOOK_FAIL;
    }
    if (!cps_streq(name->text, "view"))
        return CPS_HOOK_PASS;
    cps_val x = cps_body_tensor(y, base, CPS_DT_NONE, e->head.span);
    return x ? cps_body_view(y, e, x, arg, n, out) : CPS_HOOK_FAIL;
}

static const char *
on_describe(cps_eval *ev, cps_cv v)
{
    cps_buf b = {0};
    cps_type_print(type_of(cps_body_of(ev), v), &b);
    const char *s = cps_arena_printf(ev->c.arena, "a tensor %s", b.data);
    cps_buf_fini(&b);
    return s;
}

/* ---- places ---- */

// Have lo, lo + step, ... (count of them) two progressions a member in common?
static bool
meet(int64_t a0, int64_t sa, int64_t na, int64_t b0, int64_t sb, int64_t nb)
{
    int64_t a1 = a0 + (na - 1) * sa, b1 = b0 + (nb - 1) * sb;
    if (na < 1 || nb < 1 || a1 < b0 || b1 < a0)
        return false;
    // From the first member of a that is not below b0: residues modulo sb repeat after sb members.
    int64_t x = a0 >= b0 ? a0 : a0 + (b0 - a0 + sa - 1) / sa * sa;
    for (int64_t k = 0; k < sb && x <= a1 && x <= b1; k++, x += sa)
        if ((x - b0) % sb == 0)
            return true;
    return false;
}

static bool
disjoint(const cps_region *a, const cps_region *b)
{
    for (int i = 0; i < a->rank; i++)
        if (!meet(a->axis[i].start, a->axis[i].step, a->axis[i].count, b->axis[i].start,
                  b->axis[i].step, b->axis[i].count))
            return true;
    return false;
}

static int64_t
elements(const cps_region *r)
{
    int64_t n = 1;
    for (int i = 0; i < r->rank; i++)
        n *= r->axis[i].count;
    return n;
}

// The one axis in which all writes are partial, contiguous and complete; -1 when there is none.
static int
joint_axis(const cps_place *p)
{
    int axis = -1;
    for (uint32_t k = 0; k < p->writes.n; k++) {
        const cps_region *r = &p->writes.data[k].r;
        for (int i = 0; i < r->rank; i++) {
            if (r->axis[i].index || (r->axis[i].step != 1 && r->axis[i].count > 1))
                return -1;
            if (r->axis[i].count == p->type.dim[i])
                continue;
            if (axis >= 0 && axis != i)
                return -1;
            axis = i;
        }
    }
    return axis;
}

// Writes sorted by their start along the axis (few: insertion sort on ids).
static cps_val
joined(cps_body *y, cps_place *p, int axis)
{
    uint32_t n = p->writes.n;
    const cps_write **w = cps_new_array(y->scratch, const cps_write *, n);
    for (uint32_t k = 0; k < n; k++) {
        uint32_t j = k;
        for (; j > 0 && w[j - 1]->r.axis[axis].start > p->writes.data[k].r.axis[axis].start; j--)
            w[j] = w[j - 1];
        w[j] = &p->writes.data[k];
    }
    cps_val *v = cps_new_array(y->scratch, cps_val, n);
    int64_t at = 0;
    for (uint32_t k = 0; k < n; k++) {
        if (w[k]->r.axis[axis].start != at)
            return 0;
        at += w[k]->r.axis[axis].count;
        v[k] = w[k]->v;
    }
    return at == p->type.dim[axis] && n < 256 ? cps_b_concat(&y->b, (int)n, v, axis) : 0;
}

static cps_val
zeros_of(cps_body *y, const cps_type *t)
{
    return cps_b_broadcast(&y->b, cps_b_scalar(&y->b, t->dtype, 0), t->rank, t->dim);
}

// Do the static regions cover the place, none twice? Regions that are computed are taken to.
static bool
covered(cps_body *y, const cps_place *p, cps_span at)
{
    int64_t sum = 0, all = cps_type_count(&p->type);
    bool dynamic = false;
    for (uint32_t k = 0; k < p->writes.n; k++) {
        const cps_write *w = &p->writes.data[k];
        dynamic |= w->r.dynamic;
        for (uint32_t j = 0; j < k && !dynamic && p->writes.n <= 4096; j++)
            if (!disjoint(&w->r, &p->writes.data[j].r)) {
                cps_eval_error(&y->ev, CPS_E2311, w->at, "elements of `%s` are written twice",
                               p->name);
                cps_note(y->ev.c.diags, p->writes.data[j].at, "the other write");
                return false;
            }
        sum += elements(&w->r);
    }
    if (p->value && !p->started)
        return true;
    if (sum < all && !dynamic)
        return cps_eval_error(&y->ev, CPS_E2311, at, "%lld of %lld elements of `%s` are not written",
                              (long long)(all - sum), (long long)all, p->name);
    return true;
}

cps_val
cps_body_read(cps_body *y, cps_place *p, cps_span at)
{
    p->read = true;
    if (!p->writes.n && p->value)
        return p->value;
    if (!covered(y, p, at))
        return 0;
    y->b.loc = p->writes.n ? p->writes.data[p->writes.n - 1].at : at;
    cps_val v = p->value ? 0 : joint_axis(p) >= 0 ? joined(y, p, joint_axis(p)) : 0;
    if (!v) {
        v = p->value ? p->value : zeros_of(y, &p->type);
        for (uint32_t k = 0; k < p->writes.n && v; k++) {
            y->b.loc = p->writes.data[k].at;
            v = cps_body_update(y, v, &p->writes.data[k].r, p->writes.data[k].v);
        }
    }
    p->writes.n = 0;
    p->started = false;
    p->value = v;
    return v;
}

// A value brought to the region's shape (unit axes kept) and the place's dtype.
static cps_val
fitted(cps_body *y, const cps_place *p, const cps_region *r, cps_val v, cps_span at)
{
    cps_type want = cps_body_region_type(y, r, p->type.dtype, false);
    cps_type kept = cps_body_region_type(y, r, p->type.dtype, true);
    cps_type t = *cps_b_type(&y->b, v);
    bool ok = t.rank <= want.rank;
    for (int i = 0; ok && i < t.rank; i++) {
        int64_t n = t.dim[i], m = want.dim[want.rank - t.rank + i];
        ok = n == m || n == 1;
    }
    // Reductions keep their axis: [B, 1] fits a region [B] whose last axis was dropped.
    if (!ok && cps_type_count(&t) == cps_type_count(&want)) {
        int64_t dims[2][CPS_MAX_RANK];
        int n[2] = {0, 0};
        for (int i = 0; i < t.rank; i++)
            if (t.dim[i] != 1)
                dims[0][n[0]++] = t.dim[i];
        for (int i = 0; i < want.rank; i++)
            if (want.dim[i] != 1)
                dims[1][n[1]++] = want.dim[i];
        if (n[0] == n[1] && memcmp(dims[0], dims[1], (size_t)n[0] * sizeof dims[0][0]) == 0) {
            v = cps_b_reshape(&y->b, v, want.rank, want.dim);
            ok = v != 0;
        }
    }
    if (!ok) {
        cps_buf a = {0}, b = {0};
        cps_type_print(&t, &a);
        cps_type_print(&want, &b);
        cps_eval_error(&y->ev, CPS_E2310, at, "%s does not fit %s, which is written of `%s`",
                       a.data, b.data, p->name);
        cps_buf_fini(&a);
        cps_buf_fini(&b);
        return 0;
    }
    v = cps_b_cast(&y->b, v, p->type.dtype);
    v = cps_b_broadcast(&y->b, v, want.rank, want.dim);
    return kept.rank == want.rank ? v : cps_b_reshape(&y->b, v, kept.rank, kept.dim);
}

// The place and region that the left of an assignment names. False after an error.
static bool
target(cps_body *y, cps_expr_p dst, cps_place **p, cps_region *r)
{
    cps_cv v;
    cps_expr_p base = dst->kind == CPS_EX_INDEX ? CPS_AST_AS(index, dst)->base : dst;
    if (dst->kind == CPS_EX_CALL || base->kind != CPS_EX_NAME) {
        cps_expr_p fn = dst->kind == CPS_EX_CALL ? CPS_AST_AS(call, dst)->fn : NULL;
        bool bits = fn && fn->kind == CPS_EX_MEMBER &&
                    cps_streq(CPS_AST_AS(member, fn)->name.text, "bits");
        return cps_eval_error(&y->ev, CPS_E2309, dst->span, "%s",
                              bits ? "reinterpreting bytes has no form in a graph"
                                   : "a body writes to a result or to a part of one");
    }
    if (!cps_eval_expr(&y->ev, base, &v))
        return false;
    *p = place_of(v);
    if (!*p) {
        cps_eval_error(&y->ev, CPS_E2309, base->span, "`%s` is no result",
                       CPS_AST_AS(ref, base)->name.text);
        cps_help(y->ev.c.diags, "a body writes results and inout operands; other names are made by "
                                "`let`");
        return false;
    }
    *r = cps_body_all(&(*p)->type);
    return dst->kind != CPS_EX_INDEX ||
           cps_body_region(y, CPS_AST_AS(index, dst), &(*p)->type, r);
}

static bool
value_for(cps_body *y, cps_expr_p e, const cps_place *p, cps_cv *out)
{
    if (!cps_eval_expr(&y->ev, e, out))
        return false;
    if (is_operand(*out))
        return true;
    return cps_eval_error(&y->ev, CPS_E2301, e->span, "%s cannot be written to `%s`",
                          cps_eval_describe(&y->ev, *out), p->name);
}

static cps_flow
assign(cps_body *y, const cps_ast_assign *n)
{
    cps_place *p = NULL;
    cps_region r;
    cps_cv v;
    if (n->marks.n) {
        cps_eval_error(&y->ev, CPS_E2212, n->marks.mark[0].span, "marks have no meaning in a body");
        return CPS_FLOW_FAIL;
    }
    if (!target(y, n->dst, &p, &r) || !value_for(y, n->value, p, &v))
        return CPS_FLOW_FAIL;
    uint32_t failed = y->ev.failed;
    cps_ast_bin op = cps_ast_sets[n->set].op;
    if (op != CPS_BIN_NONE) {
        cps_val old = cps_body_read(y, p, n->dst->span);
        cps_cv was;
        if (!old || !cps_body_give(y, cps_body_slice(y, old, &r), &was) ||
            cps_body_binary(y, op, n->head.span, was, v, &v) != CPS_HOOK_DONE)
            return CPS_FLOW_FAIL;
    }
    cps_val x = cps_body_tensor(y, v, exact(p->type.dtype, v) ? p->type.dtype : CPS_DT_NONE,
                                n->head.span);
    x = x ? fitted(y, p, &r, x, n->value->span) : 0;
    if (!x) {
        y->ev.failed += y->ev.failed == failed;
        y->ev.trail_due = true;
        return CPS_FLOW_FAIL;
    }
    if (r.whole) {
        if (op == CPS_BIN_NONE && !p->inout && !p->read && (p->value || p->writes.n)) {
            cps_eval_error(&y->ev, CPS_E2311, n->head.span, "elements of `%s` are written twice", p->name);
            return CPS_FLOW_FAIL;
        }
        p->value = x;
        p->writes.n = 0;
        p->started = p->read = false;
        return CPS_FLOW_NEXT;
    }
    if (op != CPS_BIN_NONE || r.dynamic) { // later reads see it, earlier writes are under it
        cps_val old = p->value;
        if (!old || p->writes.n) {
            if (!p->value && !p->writes.n) {
                p->started = true;
                old = p->value = zeros_of(y, &p->type);
            } else {
                old = cps_body_read(y, p, n->dst->span);
            }
        }
        p->value = old ? cps_body_update(y, old, &r, x) : 0;
        return p->value ? CPS_FLOW_NEXT : CPS_FLOW_FAIL;
    }
    cps_vec_push(y->scratch, &p->writes, ((cps_write){r, x, n->head.span}));
    return CPS_FLOW_NEXT;
}

// `sbuf n = rmsnorm(...)` in a block names a value; where it lives is the registry's business.
static cps_flow
store(cps_body *y, const cps_ast_store *n)
{
    cps_cv v;
    if (!n->init || n->set != CPS_SET_SET || n->space != CPS_SPACE_SBUF || n->shaped) {
        cps_eval_error(&y->ev, CPS_E2309, n->head.span, "storage has no meaning in a body");
        cps_help(y->ev.c.diags, "a block may keep the result of a call on chip: `sbuf n = f(x);`");
        return CPS_FLOW_FAIL;
    }
    return cps_eval_expr(&y->ev, n->value, &v) && cps_eval_bind(&y->ev, &n->name, v, 0)
               ? CPS_FLOW_NEXT
               : CPS_FLOW_FAIL;
}

// Blocks may have parameters (the defaults hold here) and predicates.
static cps_flow
clause(cps_body *y, const cps_ast_clause *k)
{
    cps_cv v;
    bool holds;
    if (k->ckind == CPS_CL_PARAM)
        return cps_eval_expr(&y->ev, k->b, &v) && cps_eval_bind(&y->ev, &k->name, v, 0)
                   ? CPS_FLOW_NEXT
                   : CPS_FLOW_FAIL;
    if (k->ckind != CPS_CL_WHERE)
        return CPS_FLOW_NEXT;
    if (!cps_eval_bool(&y->ev, k->a, "a predicate", &holds))
        return CPS_FLOW_FAIL;
    if (holds)
        return CPS_FLOW_NEXT;
    cps_eval_error(&y->ev, CPS_E2401, k->head.span, "%s",
                   k->why ? k->why : cps_ast_expr_text(y->scratch, k->a));
    return CPS_FLOW_FAIL;
}

static cps_flow
on_stmt(cps_eval *ev, const cps_ast_stmt *s)
{
    if (s->kind == CPS_ST_CLAUSE)
        return clause(cps_body_of(ev), CPS_AST_AS(clause, s));
    if (s->kind == CPS_ST_ASSIGN)
        return assign(cps_body_of(ev), CPS_AST_AS(assign, s));
    if (s->kind == CPS_ST_STORE)
        return store(cps_body_of(ev), CPS_AST_AS(store, s));
    return CPS_FLOW_PASS;
}

static const cps_eval_hooks hooks = {
    .describe = on_describe,
    .unary = on_unary,
    .binary = on_binary,
    .transpose = on_transpose,
    .index = on_index,
    .member = on_member,
    .method = on_method,
    .call = cps_body_call,
    .takes = 1u << CPS_ST_CLAUSE,
    .stmt = on_stmt,
};

/* ---- the whole ---- */

static cps_place
new_place(const cps_ast_operand *x, const cps_type *t, bool inout, cps_val value)
{
    cps_place p = {.name = x->name.text, .type = *t, .inout = inout, .at = x->span};
    p.value = value;
    return p;
}

// Runs the body of y->op on values `in` (one per operand, 0 when absent); results and inout
// operands come back in `out`, in that order.
static bool
run(cps_body *y, const cps_instance *i, const cps_val *in, cps_val *out)
{
    const cps_ast_op *op = y->op->ast;
    uint32_t mark = cps_eval_push(&y->ev), n = 0;
    bool ok = cps_dsl_define_call(&y->ev, y->op, i);
    y->place = cps_new_array(y->scratch, cps_place, op->nresult + op->noperand);
    for (uint32_t k = 0; ok && k < op->nresult; k++, n++) {
        y->place[n] = new_place(&op->result[k], &i->result[k].type, false, 0);
        cps_eval_define(&y->ev, op->result[k].name.text,
                        cps_cv_opaque(CPS_BODY_PLACE, &y->place[n]), op->result[k].span);
    }
    for (uint32_t k = 0; ok && k < op->noperand; k++) {
        if (!i->operand[k].present)
            continue;
        cps_cv v = cps_cv_opaque(CPS_BODY_TENSOR, (const void *)(uintptr_t)in[k]);
        if (op->operand[k].inout) {
            y->place[n] = new_place(&op->operand[k], &i->operand[k].type, true, in[k]);
            v = cps_cv_opaque(CPS_BODY_PLACE, &y->place[n++]);
        }
        cps_eval_define(&y->ev, op->operand[k].name.text, v, op->operand[k].span);
    }
    y->nplace = n;
    if (ok)
        ok = cps_eval_body(&y->ev, cps_ast_whole(op->body), true) == CPS_FLOW_NEXT;
    for (uint32_t k = 0; ok && k < n; k++) {
        out[k] = cps_body_read(y, &y->place[k], y->place[k].at);
        ok = out[k] != 0;
    }
    cps_eval_flush_trail(&y->ev);
    cps_eval_pop(&y->ev, mark);
    return ok && y->ev.failed == 0;
}

bool
cps_body_inline(cps_body *y, const cps_dsl_op *op, const cps_instance *i, const cps_val *in,
                cps_val *out, cps_span at)
{
    if (y->depth >= CPS_BODY_DEPTH)
        return cps_eval_error(&y->ev, CPS_E2902, at, "operators call each other %d levels deep",
                              CPS_BODY_DEPTH);
    cps_body z = {.b = y->b, .s = y->s, .scratch = y->scratch, .op = op, .inlined = true,
                  .depth = y->depth + 1};
    cps_eval_config c = y->ev.c;
    c.module = op->module;
    c.user = &z;
    c.core = 0;
    cps_eval_init(&z.ev, &c);
    z.ev.steps = y->ev.steps;
    z.ev.depth = y->ev.depth;
    bool ok = run(&z, i, in, out);
    y->ev.steps = z.ev.steps;
    y->ev.failed += z.ev.failed;
    y->ev.stopped |= z.ev.stopped;
    if (!ok && y->depth < 3) // the outermost calls say enough
        cps_note(y->ev.c.diags, at, "`%s` is called here", op->ast->name.text);
    return ok;
}

cps_func *
cps_dsl_body(cps_dsl_set *s, cps_module *m, const cps_dsl_op *op, const cps_instance *i,
             bool inlined, cps_diags *d)
{
    unsigned before = cps_diags_errors(d);
    cps_body y = {.s = s, .op = op, .inlined = inlined, .scratch = cps_arena_create()};
    y.b = (cps_builder){.m = m, .f = cps_func_new(m, op->ast->name.text), .d = d,
                        .loc = op->ast->name.span};
    cps_eval_config c = {.arena = y.scratch, .diags = d, .set = s, .module = op->module,
                         .target = i->target, .cores = 1, .hooks = &hooks, .user = &y,
                         .step_limit = STEPS};
    cps_eval_init(&y.ev, &c);
    cps_val in[CPS_MAX_OPERANDS] = {0}, out[2 * CPS_MAX_OPERANDS] = {0};
    bool ok = i->noperands == (int)op->ast->noperand && i->nresults == (int)op->ast->nresult;
    for (int k = 0; ok && k < i->noperands; k++)
        if (i->operand[k].present) {
            in[k] = cps_b_input(&y.b, op->ast->operand[k].name.text, i->operand[k].type);
            ok = in[k] != 0;
        }
    ok = ok && run(&y, i, in, out);
    for (uint32_t k = 0; ok && k < y.nplace; k++)
        cps_b_output(&y.b, y.place[k].name, out[k]);
    cps_func *f = y.b.f;
    cps_arena_destroy(y.scratch);
    if (ok && cps_diags_errors(d) == before)
        return f;
    m->funcs.n--; // an unfinished function is no part of the module
    return NULL;
}
