/* The types of a graph: --auto-cast for floats, and 64-bit integers to 32 bits.
 *
 * "matmult" rounds the operands of matrix products and widens the product again; "all" gives
 * every fp32 tensor the narrow type, inputs and outputs too, and rounds the constants once
 * (what is finite stays finite). Narrowing leaves 64-bit inputs as they are and casts them
 * where they are read; everything that is computed has 32 bits. Constants are checked: one
 * that does not fit is an error, since no engine computes with 64-bit integers. */
#include "lower/pass.h"

#include "ir/pass.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>

#define CHUNK 1024 // elements converted at a time

/* ---- matmult ---- */

static bool
cast_products(cps_rw *w, const cps_node *n)
{
    if (n->op != CPS_OP_MATMUL)
        return false;
    cps_dtype to = cps_lower_of(w)->o->cast_type;
    cps_val in[2];
    for (int i = 0; i < 2; i++) {
        if (cps_rw_type(w, n->in[i])->dtype != CPS_DT_FP32)
            return false;
        in[i] = cps_b_cast(&w->b, cps_rw_new(w, n->in[i]), to);
    }
    return cps_rw_set(w, n->out[0],
                      cps_b_cast(&w->b, cps_b_matmul(&w->b, in[0], in[1]), CPS_DT_FP32));
}

/* ---- every value of one type to another ---- */

// The largest number of a narrow float: constants like "minus the largest float" that exporters
// use for masks must stay finite, or a product with zero becomes NaN.
static float
largest(cps_dtype t)
{
    static const struct {
        cps_dtype dtype;
        float max;
    } rows[] = {
        {CPS_DT_BF16, 0x1.fep127f}, {CPS_DT_FP16, 65504.0f}, {CPS_DT_TF32, 0x1.ffcp127f}};
    for (size_t i = 0; i < cps_countof(rows); i++)
        if (rows[i].dtype == t)
            return rows[i].max;
    return FLT_MAX;
}

static const void *
convert(cps_arena *a, const cps_type *t, const void *data, cps_dtype to)
{
    size_t n = (size_t)cps_type_count(t), from = cps_dtype_bytes(t->dtype);
    size_t size = cps_dtype_bytes(to);
    uint8_t *p = cps_arena_raw(a, CPS_MAX(n, 1) * size);
    if (cps_dtype_is_float(to)) { // every float type widens to fp32 exactly
        float part[CHUNK], max = largest(to);
        for (size_t i = 0; i < n; i += CHUNK) {
            size_t k = CPS_MIN(n - i, (size_t)CHUNK);
            cps_to_f32_n(t->dtype, (const uint8_t *)data + i * from, part, k);
            for (size_t j = 0; j < k; j++)
                if (fabsf(part[j]) > max && !isinf(part[j]))
                    part[j] = copysignf(max, part[j]);
            cps_from_f32_n(to, part, p + i * size, k);
        }
        return p;
    }
    for (size_t i = 0; i < n; i++)
        cps_from_i64(to, p + i * size, cps_to_i64(t->dtype, (const uint8_t *)data + i * from));
    return p;
}

static bool
fits(const cps_const *c, cps_dtype to, int64_t *bad)
{
    if (cps_dtype_is_float(to))
        return true;
    int64_t n = cps_type_count(&c->type);
    for (int64_t i = 0; i < n; i++) {
        int64_t v = cps_to_i64(c->type.dtype, (const uint8_t *)c->data + i * 8);
        bool big = c->type.dtype == CPS_DT_U64 && v < 0;
        if (big || v < INT32_MIN || v > INT32_MAX) {
            *bad = v;
            return false;
        }
    }
    return true;
}

// In place: types of values, constants, and the dtype attributes of casts and indices.
static bool
retype(cps_lower *l, cps_module *m, cps_dtype from, cps_dtype to, bool keep_inputs)
{
    for (uint32_t i = 0; i < m->funcs.n; i++) {
        cps_func *f = m->funcs.data[i];
        for (uint32_t k = 1; k < f->vals.n; k++)
            if (f->vals.data[k].type.dtype == from && (f->vals.data[k].def || !keep_inputs))
                f->vals.data[k].type.dtype = to;
        for (uint32_t k = 0; k < f->nodes.n; k++) {
            cps_node *n = &f->nodes.data[k];
            const cps_attr *a = cps_node_attr(n, "dtype");
            if (a && a->kind == CPS_A_DTYPE && a->i == (int64_t)from)
                cps_attr_put(m->arena, &n->attr, &n->nattr, cps_a_dtype("dtype", to));
            if (n->op != CPS_OP_CONST || m->consts.data[n->cst].type.dtype != from)
                continue;
            // The old constant may be used elsewhere, and its number is known to others.
            cps_const c = m->consts.data[n->cst];
            int64_t bad;
            if (!fits(&c, to, &bad)) {
                cps_error(l->d, CPS_E7403, n->loc,
                          "the constant '%s' holds %" PRId64 ", which 32 bits cannot",
                          c.name ? c.name : "", bad);
                return false;
            }
            c.data = convert(m->arena, &c.type, c.data, to);
            c.type.dtype = to;
            c.hashed = false;
            n->cst = m->consts.n;
            cps_vec_push(m->arena, &m->consts, c);
        }
    }
    return true;
}

bool
cps_lower_cast(cps_lower *l, cps_module *m)
{
    const char *policy = l->o->auto_cast ? l->o->auto_cast : "none";
    if (l->o->cast_type == CPS_DT_FP32 || strcmp(policy, "none") == 0)
        return true;
    cps_assert(cps_dtype_is_float(l->o->cast_type));
    if (strcmp(policy, "matmult") == 0)
        return cps_lower_rewrite(l, m, cast_products, NULL);
    cps_assert(strcmp(policy, "all") == 0);
    return retype(l, m, CPS_DT_FP32, l->o->cast_type, false);
}

static bool
is_wide(cps_dtype t)
{
    return t == CPS_DT_I64 || t == CPS_DT_U64;
}

// Casts read 64-bit inputs themselves, and so does a call that was lowered before: its leaf was taken for them.
static bool
reads_wide(const cps_node *n)
{
    return n->op == CPS_OP_CAST || (n->op == CPS_OP_CALL && (n->pick || strcmp(n->callee, "cast") == 0));
}

// What else reads a 64-bit input reads a 32-bit copy of it. The indices of a sort are i64 by definition: what reads
// them gets a cast too.
static bool
cast_borders(cps_rw *w, const cps_node *n)
{
    cps_val in[256];
    bool found = false;
    for (int i = 0; i < n->nin; i++) {
        cps_val v = n->in[i];
        in[i] = v ? cps_rw_new(w, v) : 0;
        if (!v || w->old->vals.data[v].def || !is_wide(cps_rw_type(w, v)->dtype) || reads_wide(n))
            continue;
        in[i] = cps_b_cast(&w->b, in[i], CPS_DT_I32); // equal ones become one
        found = true;
    }
    if (!found && n->op != CPS_OP_SORT)
        return false;
    cps_rw_copy(w, n);
    cps_node *c = &w->b.f->nodes.data[w->b.f->nodes.n - 1];
    memcpy(c->in, in, n->nin * sizeof *in);
    if (n->op == CPS_OP_SORT)
        w->map[n->out[1]] = cps_b_cast(&w->b, w->map[n->out[1]], CPS_DT_I32);
    return true;
}

bool
cps_lower_narrow(cps_lower *l, cps_module *m)
{
    if (!cps_lower_rewrite(l, m, cast_borders, NULL) ||
        !retype(l, m, CPS_DT_I64, CPS_DT_I32, true) ||
        !retype(l, m, CPS_DT_U64, CPS_DT_I32, true))
        return false;
    for (uint32_t i = 0; i < m->funcs.n; i++) {
        cps_func *f = m->funcs.data[i];
        for (uint32_t k = 0; k < f->nodes.n; k++)
            if (f->nodes.data[k].op == CPS_OP_SORT)
                f->vals.data[f->nodes.data[k].out[1]].type.dtype = CPS_DT_I64;
    }
    return true;
}
