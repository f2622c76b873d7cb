/* What every operator handler uses: messages with the node's place, operands, attributes,
 * constants, and short forms of builder calls. */
#include "frontend/onnx/import.h"

#include <inttypes.h>

/* ---- messages ---- */

bool
cps_ox_err(cps_ox *m, cps_code code, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    cps_mark mark = cps_arena_mark(m->arena);
    const char *text = cps_arena_vprintf(m->arena, fmt, ap);
    va_end(ap);
    if (m->n)
        cps_error(m->d, code, CPS_NOSPAN, "'%s': node '%s' (%s, #%u): %s", m->path, m->n->name,
                  m->n->op, m->at, text);
    else
        cps_error(m->d, code, CPS_NOSPAN, "'%s': %s", m->path, text);
    cps_arena_release(m->arena, mark);
    return false;
}

/* ---- operands and results ---- */

bool
cps_ox_given(const cps_ox *m, unsigned i)
{
    return i < m->n->in.n && m->n->in.data[i][0];
}

cps_val
cps_ox_in(cps_ox *m, unsigned i)
{
    if (!cps_ox_given(m, i))
        return 0;
    const uint64_t *v = cps_map_find_str(&m->vals, m->n->in.data[i]);
    cps_assert(v && *v); // the driver looked all operands up
    return (cps_val)*v;
}

bool
cps_ox_give(cps_ox *m, unsigned i, cps_val v)
{
    if (!v)
        return false;
    if (i >= m->n->out.n || !m->n->out.data[i][0])
        return true; // not wanted
    const cps_type *t = cps_ox_type(m, v);
    if (!cps_ox_shape_ok(m, t->rank, t->dim))
        return false;
    const char *name = m->n->out.data[i];
    bool fresh;
    uint64_t *slot = cps_map_at_str(&m->vals, name, &fresh);
    if (!fresh)
        return cps_ox_err(m, CPS_E7010, "the value '%s' is defined twice", name);
    *slot = v;
    cps_value *val = &m->b.f->vals.data[v];
    if (!val->name)
        val->name = name;
    return true;
}

/* ---- attributes ---- */

const cps_onnx_attr *
cps_ox_attr(const cps_ox *m, const char *name)
{
    for (uint32_t i = 0; i < m->n->attr.n; i++)
        if (strcmp(m->n->attr.data[i].name, name) == 0)
            return &m->n->attr.data[i];
    return NULL;
}

// NULL when absent; *ok is cleared when it is there with another kind.
static const cps_onnx_attr *
attr_of(cps_ox *m, const char *name, cps_onnx_atype want, bool *ok)
{
    const cps_onnx_attr *a = cps_ox_attr(m, name);
    if (a && a->ref)
        *ok = cps_ox_err(m, CPS_E7009, "attribute '%s' refers to a function's attribute", name);
    else if (a && a->type != (int32_t)want)
        *ok = cps_ox_err(m, CPS_E7009, "attribute '%s' has kind %d, expected %d", name, a->type,
                         want);
    return *ok ? a : NULL;
}

bool
cps_ox_int(cps_ox *m, const char *name, int64_t dflt, int64_t *out)
{
    bool ok = true;
    const cps_onnx_attr *a = attr_of(m, name, CPS_ONNX_A_INT, &ok);
    *out = a ? a->i : dflt;
    return ok;
}

bool
cps_ox_float(cps_ox *m, const char *name, double dflt, double *out)
{
    bool ok = true;
    const cps_onnx_attr *a = attr_of(m, name, CPS_ONNX_A_FLOAT, &ok);
    *out = a ? (double)a->f : dflt;
    return ok;
}

bool
cps_ox_str(cps_ox *m, const char *name, const char *dflt, const char **out)
{
    bool ok = true;
    const cps_onnx_attr *a = attr_of(m, name, CPS_ONNX_A_STRING, &ok);
    *out = dflt;
    if (!a)
        return ok;
    if (a->s.n > 4096 || (a->s.n && memchr(a->s.p, 0, a->s.n)))
        return cps_ox_err(m, CPS_E7009, "attribute '%s' is not a short text", name);
    *out = cps_arena_strndup(m->arena, a->s.n ? (const char *)a->s.p : "", a->s.n);
    return true;
}

bool
cps_ox_ints(cps_ox *m, const char *name, cps_i64vec *out, bool *given)
{
    bool ok = true;
    const cps_onnx_attr *a = attr_of(m, name, CPS_ONNX_A_INTS, &ok);
    *out = a ? a->ints : (cps_i64vec){0};
    *given = a != NULL;
    return ok;
}

bool
cps_ox_fix_axis(cps_ox *m, int64_t axis, int rank, int *out)
{
    if (axis < -(int64_t)rank || axis >= rank)
        return cps_ox_err(m, CPS_E7009, "axis %" PRId64 " is outside a tensor of rank %d", axis,
                          rank);
    *out = (int)(axis < 0 ? axis + rank : axis);
    return true;
}

bool
cps_ox_axis(cps_ox *m, const char *name, int64_t dflt, int rank, bool past, int *out)
{
    int64_t axis;
    if (!cps_ox_int(m, name, dflt, &axis))
        return false;
    if (past && axis == rank) {
        *out = rank;
        return true;
    }
    return cps_ox_fix_axis(m, axis, rank, out);
}

bool
cps_ox_mask(cps_ox *m, const cps_i64vec *axes, int rank, bool *mask)
{
    memset(mask, 0, CPS_MAX_RANK * sizeof *mask);
    for (uint32_t i = 0; i < axes->n; i++) {
        int x = 0;
        if (!cps_ox_fix_axis(m, axes->data[i], rank, &x))
            return false;
        if (mask[x])
            return cps_ox_err(m, CPS_E7009, "axis %d is given twice", x);
        mask[x] = true;
    }
    return true;
}

/* ---- constants ---- */

const cps_const *
cps_ox_const(cps_ox *m, cps_val v)
{
    uint32_t def = v ? m->b.f->vals.data[v].def : 0;
    const cps_node *n = def ? &m->b.f->nodes.data[def - 1] : NULL;
    return n && n->op == CPS_OP_CONST ? &m->b.m->consts.data[n->cst] : NULL;
}

bool
cps_ox_in_ints(cps_ox *m, unsigned i, const char *what, cps_i64vec *out)
{
    *out = (cps_i64vec){0};
    cps_val v = cps_ox_in(m, i);
    if (!v)
        return cps_ox_err(m, CPS_E7009, "%s is missing", what);
    const cps_type *t = cps_ox_type(m, v);
    const cps_const *c = cps_ox_const(m, v);
    if (!cps_dtype_is_int(t->dtype) || t->rank > 1)
        return cps_ox_err(m, CPS_E7009, "%s must be a list of integers", what);
    if (!c) {
        cps_ox_err(m, CPS_E7011, "%s ('%s') is not known at compile time", what,
                   m->n->in.data[i]);
        cps_help(m->d, "every size must follow from the shapes of the inputs; values of input "
                       "tensors cannot decide a shape");
        return false;
    }
    int64_t n = cps_type_count(&c->type);
    if (n > 65536)
        return cps_ox_err(m, CPS_E7002, "%s has %" PRId64 " elements", what, n);
    cps_vec_reserve(m->arena, out, n);
    for (int64_t k = 0; k < n; k++)
        cps_vec_push(m->arena, out,
                     cps_to_i64(t->dtype, (const uint8_t *)c->data +
                                              (size_t)k * cps_dtype_bytes(t->dtype)));
    return true;
}

bool
cps_ox_in_scalar(cps_ox *m, unsigned i, const char *what, double *out)
{
    const cps_const *c = cps_ox_const(m, cps_ox_in(m, i));
    if (!c)
        return cps_ox_err(m, CPS_E7011, "%s is not known at compile time", what);
    if (cps_type_count(&c->type) != 1)
        return cps_ox_err(m, CPS_E7009, "%s must have one element", what);
    *out = cps_to_f64(c->type.dtype, c->data);
    return true;
}

/* ---- short forms ---- */

cps_val
cps_ox_scalar_like(cps_ox *m, cps_val x, double v)
{
    return x ? cps_b_scalar(&m->b, cps_ox_type(m, x)->dtype, v) : 0;
}

bool
cps_ox_shape_ok(cps_ox *m, int rank, const int64_t *dim)
{
    if (rank > CPS_MAX_RANK)
        return cps_ox_err(m, CPS_E7002, "rank %d, tensors have at most %d axes", rank,
                          CPS_MAX_RANK);
    int64_t n = 1;
    for (int i = 0; i < rank; i++)
        if (dim[i] < 0)
            return cps_ox_err(m, CPS_E7009, "an axis of length %" PRId64, dim[i]);
        else if (__builtin_mul_overflow(n, dim[i], &n) || n > CPS_OX_MAX_COUNT)
            return cps_ox_err(m, CPS_E7002, "a tensor of more than %" PRId64 " elements",
                              CPS_OX_MAX_COUNT);
    return true;
}

cps_val
cps_ox_reshape(cps_ox *m, cps_val x, int rank, const int64_t *dim)
{
    if (!x || !cps_ox_shape_ok(m, rank, dim))
        return 0;
    cps_type t = cps_type_make(cps_ox_type(m, x)->dtype, rank, dim);
    return cps_type_eq(&t, cps_ox_type(m, x)) ? x : cps_b_reshape(&m->b, x, rank, dim);
}

cps_val
cps_ox_broadcast(cps_ox *m, cps_val x, int rank, const int64_t *dim)
{
    if (!x || !cps_ox_shape_ok(m, rank, dim))
        return 0;
    cps_type t = cps_type_make(cps_ox_type(m, x)->dtype, rank, dim);
    return cps_type_eq(&t, cps_ox_type(m, x)) ? x : cps_b_broadcast(&m->b, x, rank, dim);
}

cps_val
cps_ox_node(cps_ox *m, cps_op op, int nin, const cps_val *in, int nattr, const cps_attr *attr)
{
    cps_val out[2] = {0, 0};
    cps_b_node(&m->b, op, nin, in, nattr, attr, out);
    return out[0];
}

cps_val
cps_ox_fp32(cps_ox *m, cps_val x)
{
    if (!x || cps_ox_type(m, x)->dtype == CPS_DT_FP32)
        return x;
    return cps_b_cast(&m->b, x, CPS_DT_FP32);
}

cps_val
cps_ox_bin(cps_ox *m, cps_op op, cps_val x, cps_val y)
{
    return cps_b_binary(&m->b, op, x, y);
}

cps_val
cps_ox_bin_s(cps_ox *m, cps_op op, cps_val x, double s)
{
    return cps_b_binary(&m->b, op, x, cps_ox_scalar_like(m, x, s));
}

cps_val
cps_ox_un(cps_ox *m, cps_op op, cps_val x)
{
    return cps_b_unary(&m->b, op, x);
}
