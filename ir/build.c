/* Checked construction of graph functions: each call runs the op's rule (infer.c), copies
 * attributes and names into the module's arena and appends one node. A misuse is a diagnostic
 * and yields value 0, which every later call passes on in silence. Attributes are brought to
 * their canonical form here: negative axes counted from the end become positive, axis lists
 * sorted. */
#include "ir/build.h"

static cps_val
new_val(cps_builder *b, cps_type t, const char *name, uint32_t def)
{
    cps_assert(b->f->vals.n > 0 && b->f->vals.n < UINT32_MAX);
    cps_value *v = cps_vec_add(b->m->arena, &b->f->vals);
    v->type = t;
    v->name = name ? cps_arena_strdup(b->m->arena, name) : NULL;
    v->def = def;
    return b->f->vals.n - 1;
}

static bool
type_ok(cps_builder *b, const cps_type *t, const char *what)
{
    if (cps_type_ok(t))
        return true;
    cps_error(b->d, CPS_E7106, b->loc,
              "%s has no dtype, a negative extent, rank above %d or more than 2^46 elements",
              what, CPS_MAX_RANK);
    return false;
}

static cps_node *
new_node(cps_builder *b, cps_op op, uint32_t nin, const cps_val *in, uint32_t nout,
         const cps_type *types)
{
    cps_arena *a = b->m->arena;
    cps_node *n = cps_vec_add(a, &b->f->nodes);
    n->op = (uint16_t)op;
    n->nin = (uint16_t)nin;
    n->nout = (uint16_t)nout;
    n->in = cps_new_array(a, cps_val, nin);
    n->out = cps_new_array(a, cps_val, nout);
    if (nin)
        memcpy(n->in, in, nin * sizeof *in);
    n->from = b->from;
    n->loc = b->loc;
    for (uint32_t i = 0; i < nout; i++)
        n->out[i] = new_val(b, types[i], NULL, b->f->nodes.n);
    return n;
}

cps_val
cps_b_input(cps_builder *b, const char *name, cps_type t)
{
    if (!type_ok(b, &t, "an input"))
        return 0;
    cps_val v = new_val(b, t, name, 0);
    cps_vec_push(b->m->arena, &b->f->inputs, v);
    return v;
}

void
cps_b_output(cps_builder *b, const char *name, cps_val v)
{
    if (!v)
        return;
    cps_assert(v < b->f->vals.n);
    cps_vec_push(b->m->arena, &b->f->outputs, v);
    cps_vec_push(b->m->arena, &b->f->output_names,
                 (const char *)cps_arena_strdup(b->m->arena, name ? name : ""));
}

cps_val
cps_b_const(cps_builder *b, cps_type t, const void *data, const char *name)
{
    if (!type_ok(b, &t, "a constant"))
        return 0;
    cps_const *c = cps_vec_add(b->m->arena, &b->m->consts);
    c->type = t;
    c->data = data;
    c->name = name ? cps_arena_strdup(b->m->arena, name) : NULL;
    cps_node *n = new_node(b, CPS_OP_CONST, 0, NULL, 1, &t);
    n->cst = b->m->consts.n - 1;
    b->f->vals.data[n->out[0]].name = c->name;
    return n->out[0];
}

cps_val
cps_b_scalar(cps_builder *b, cps_dtype t, double v)
{
    cps_type ty = cps_type_make(t, 0, NULL);
    if (!type_ok(b, &ty, "a scalar"))
        return 0;
    void *p = cps_arena_alloc(b->m->arena, cps_dtype_bytes(t));
    cps_from_f64(t, p, v);
    return cps_b_const(b, ty, p, NULL);
}

cps_val
cps_b_ints(cps_builder *b, cps_dtype t, int n, const int64_t *v)
{
    cps_assert(n >= 0 && cps_dtype_is_int(t));
    cps_type ty = cps_type_make(t, 1, &(int64_t){n});
    uint8_t *p = cps_arena_alloc(b->m->arena, (size_t)cps_type_bytes(&ty));
    for (int i = 0; i < n; i++)
        cps_from_i64(t, p + (size_t)i * cps_dtype_bytes(t), v[i]);
    return cps_b_const(b, ty, p, NULL);
}

/* ---- attributes ---- */

static void
sort_axes(int64_t *v, uint32_t n)
{
    for (uint32_t i = 1; i < n; i++)
        for (uint32_t k = i; k && v[k - 1] > v[k]; k--) {
            int64_t t = v[k];
            v[k] = v[k - 1];
            v[k - 1] = t;
        }
}

// Copies into the arena, sorted by key, axes counted from the front.
static uint16_t
take_attrs(cps_builder *b, cps_op op, int nattr, const cps_attr *attr, int rank, cps_attr **out)
{
    uint16_t n = 0;
    *out = NULL;
    for (int i = 0; i < nattr; i++) {
        cps_attr x = cps_attr_copy(b->m->arena, &attr[i]);
        if (op != CPS_OP_CALL && x.kind == CPS_A_INT && strcmp(x.key, "axis") == 0 && x.i < 0)
            x.i += rank;
        if (op != CPS_OP_CALL && x.kind == CPS_A_INTS && strcmp(x.key, "axes") == 0) {
            int64_t *v = (int64_t *)x.ints; // our own copy
            for (uint32_t k = 0; k < x.n; k++)
                v[k] += v[k] < 0 ? rank : 0;
            sort_axes(v, x.n);
        }
        cps_attr_put(b->m->arena, out, &n, x);
    }
    return n;
}

bool
cps_b_node(cps_builder *b, cps_op op, int nin, const cps_val *in, int nattr,
           const cps_attr *attr, cps_val *outs)
{
    cps_assert(op != CPS_OP_CONST && op != CPS_OP_CALL && nin >= 0 && nin < 256);
    const cps_oprow *row = &cps_ops[op];
    memset(outs, 0, row->nout * sizeof *outs);
    cps_type types[256], result[2];
    for (int i = 0; i < nin; i++) {
        cps_assert(in[i] < b->f->vals.n);
        if (!in[i])
            return false;
        types[i] = *cps_b_type(b, in[i]);
    }
    int rank = nin ? types[0].rank : 0;
    const cps_attr *shape = cps_attr_find(attr, (uint32_t)nattr, "shape");
    if (!nin && shape)
        rank = (int)shape->n;
    cps_attr *a;
    uint16_t na = take_attrs(b, op, nattr, attr, rank, &a);
    if (!cps_ir_infer(op, (uint32_t)nin, types, na, a, result, b->d, b->loc))
        return false;
    cps_node *n = new_node(b, op, (uint32_t)nin, in, row->nout, result);
    n->attr = a;
    n->nattr = na;
    memcpy(outs, n->out, row->nout * sizeof *outs);
    return true;
}

bool
cps_b_call(cps_builder *b, const char *callee, int nin, const cps_val *in, int nattr,
           const cps_attr *attr, int nout, const cps_type *types, cps_val *outs)
{
    cps_assert(nin >= 0 && nin < 256 && nout >= 0 && nout < 256);
    memset(outs, 0, (size_t)nout * sizeof *outs);
    for (int i = 0; i < nin; i++)
        cps_assert(in[i] < b->f->vals.n);
    for (int i = 0; i < nout; i++)
        if (!type_ok(b, &types[i], "the result of a call"))
            return false;
    cps_attr *a;
    uint16_t na = take_attrs(b, CPS_OP_CALL, nattr, attr, 0, &a);
    cps_node *n = new_node(b, CPS_OP_CALL, (uint32_t)nin, in, (uint32_t)nout, types);
    n->callee = cps_arena_strdup(b->m->arena, callee);
    n->attr = a;
    n->nattr = na;
    if (nout)
        memcpy(outs, n->out, (size_t)nout * sizeof *outs);
    return true;
}

/* ---- one function per form ---- */

static cps_val
one(cps_builder *b, cps_op op, int nin, const cps_val *in, int nattr, const cps_attr *attr)
{
    cps_val v = 0;
    cps_assert(cps_ops[op].nout == 1);
    cps_b_node(b, op, nin, in, nattr, attr, &v);
    return v;
}

cps_val
cps_b_unary(cps_builder *b, cps_op op, cps_val x)
{
    return one(b, op, 1, &x, 0, NULL);
}

cps_val
cps_b_binary(cps_builder *b, cps_op op, cps_val x, cps_val y)
{
    return one(b, op, 2, (cps_val[]){x, y}, 0, NULL);
}

cps_val
cps_b_select(cps_builder *b, cps_val c, cps_val x, cps_val y)
{
    return one(b, CPS_OP_SELECT, 3, (cps_val[]){c, x, y}, 0, NULL);
}

cps_val
cps_b_cast(cps_builder *b, cps_val x, cps_dtype t)
{
    if (x && cps_b_type(b, x)->dtype == t)
        return x;
    return one(b, CPS_OP_CAST, 1, &x, 1, (cps_attr[]){cps_a_dtype("dtype", t)});
}

cps_val
cps_b_reduce(cps_builder *b, cps_op op, cps_val x, int n, const int64_t *axes, bool keep)
{
    return one(b, op, 1, &x, 2,
               (cps_attr[]){cps_a_ints("axes", (uint32_t)n, axes), cps_a_bool("keep", keep)});
}

cps_val
cps_b_matmul(cps_builder *b, cps_val x, cps_val y)
{
    return one(b, CPS_OP_MATMUL, 2, (cps_val[]){x, y}, 0, NULL);
}

cps_val
cps_b_reshape(cps_builder *b, cps_val x, int rank, const int64_t *dim)
{
    if (!x)
        return 0;
    int64_t d[CPS_MAX_RANK], rest = cps_type_count(cps_b_type(b, x));
    int hole = -1;
    for (int i = 0; i < rank && i < CPS_MAX_RANK; i++) {
        d[i] = dim[i];
        if (dim[i] == -1)
            hole = i;
        else if (dim[i] > 0)
            rest /= dim[i];
    }
    if (hole >= 0 && rank <= CPS_MAX_RANK) {
        d[hole] = rest; // a wrong guess fails the element count below
        dim = d;
    }
    return one(b, CPS_OP_RESHAPE, 1, &x, 1,
               (cps_attr[]){cps_a_ints("shape", (uint32_t)rank, dim)});
}

cps_val
cps_b_transpose(cps_builder *b, cps_val x, const int64_t *perm)
{
    if (!x)
        return 0;
    uint32_t n = (uint32_t)cps_b_type(b, x)->rank;
    return one(b, CPS_OP_TRANSPOSE, 1, &x, 1, (cps_attr[]){cps_a_ints("perm", n, perm)});
}

cps_val
cps_b_broadcast(cps_builder *b, cps_val x, int rank, const int64_t *dim)
{
    if (!x)
        return 0;
    const cps_type *t = cps_b_type(b, x);
    if (t->rank == rank && memcmp(t->dim, dim, (size_t)rank * sizeof *dim) == 0)
        return x;
    return one(b, CPS_OP_BROADCAST, 1, &x, 1,
               (cps_attr[]){cps_a_ints("shape", (uint32_t)rank, dim)});
}

cps_val
cps_b_slice(cps_builder *b, cps_val x, const int64_t *start, const int64_t *stop,
            const int64_t *step)
{
    if (!x)
        return 0;
    uint32_t n = (uint32_t)cps_b_type(b, x)->rank;
    return one(b, CPS_OP_SLICE, 1, &x, 3,
               (cps_attr[]){cps_a_ints("start", n, start), cps_a_ints("stop", n, stop),
                            cps_a_ints("step", n, step)});
}

cps_val
cps_b_concat(cps_builder *b, int n, const cps_val *x, int axis)
{
    return one(b, CPS_OP_CONCAT, n, x, 1, (cps_attr[]){cps_a_int("axis", axis)});
}

cps_val
cps_b_gather(cps_builder *b, cps_val x, cps_val index, int axis)
{
    return one(b, CPS_OP_GATHER, 2, (cps_val[]){x, index}, 1,
               (cps_attr[]){cps_a_int("axis", axis)});
}
