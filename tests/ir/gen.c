/* See gen.h. Ops are drawn from the rows; operands are found among the values made so far or
 * made to fit; what does not fit is skipped. */
#include "tests/ir/gen.h"

#include <math.h>

typedef struct gen {
    cps_builder b;
    cps_rng r;
    cps_arena *a;
} gen;

static int64_t
below(gen *g, int64_t n)
{
    return (int64_t)cps_rng_below(&g->r, (uint64_t)n);
}

static cps_type
random_type(gen *g)
{
    static const cps_dtype pool[] = {CPS_DT_FP32,    CPS_DT_FP32, CPS_DT_BF16, CPS_DT_FP16,
                                     CPS_DT_FP8E4M3, CPS_DT_I32,  CPS_DT_I64,  CPS_DT_U8,
                                     CPS_DT_I8,      CPS_DT_BOOL, CPS_DT_U64,  CPS_DT_TF32};
    cps_type t = {.dtype = pool[below(g, cps_countof(pool))], .rank = (int)below(g, 4)};
    for (int i = 0; i < t.rank; i++)
        t.dim[i] = below(g, 12) == 0 ? 0 : 1 + below(g, 4);
    return t;
}

static void
fill(gen *g, const cps_type *t, uint8_t *p)
{
    static const double odd[] = {0.0,         -0.0, INFINITY, -INFINITY,
                                 (double)NAN, 1e30, -1e-30,   3.5};
    int64_t n = cps_type_count(t);
    for (int64_t i = 0; i < n; i++, p += cps_dtype_bytes(t->dtype)) {
        if (!cps_dtype_is_float(t->dtype))
            cps_from_i64(t->dtype, p,
                         below(g, 8) ? below(g, 7) - 3 : (int64_t)cps_rng_next(&g->r));
        else if (below(g, 8) == 0)
            cps_from_f64(t->dtype, p, odd[below(g, cps_countof(odd))]);
        else
            cps_from_f64(t->dtype, p, cps_rng_normal(&g->r));
    }
}

static cps_val
constant(gen *g, cps_type t)
{
    static const char *const names[] = {NULL, "w", "a b/c:0", "x\"y\\\n\x01", "7up", "_"};
    uint8_t *p = cps_arena_alloc(g->a, (size_t)cps_type_bytes(&t) + 1);
    fill(g, &t, p);
    return cps_b_const(&g->b, t, p, names[below(g, cps_countof(names))]);
}

static cps_val
any(gen *g)
{
    return (cps_val)(1 + below(g, g->b.f->vals.n - 1));
}

// An existing value of the dtype that broadcasts with t, or a new constant of a sub-shape.
static cps_val
partner(gen *g, const cps_type *t)
{
    cps_type s = {.dtype = t->dtype};
    int from = (int)below(g, t->rank + 1);
    for (int i = from; i < t->rank; i++)
        s.dim[s.rank++] = below(g, 3) ? t->dim[i] : 1;
    for (int k = 0; k < 4; k++) {
        cps_val v = any(g);
        if (cps_type_eq(cps_b_type(&g->b, v), t))
            return v;
    }
    return constant(g, s);
}

static cps_val
indices(gen *g, cps_type t, int64_t limit)
{
    t.dtype = below(g, 2) ? CPS_DT_I32 : CPS_DT_I64;
    uint8_t *p = cps_arena_alloc(g->a, (size_t)cps_type_bytes(&t) + 1);
    for (int64_t i = 0, n = cps_type_count(&t); i < n; i++)
        cps_from_i64(t.dtype, p + i * cps_dtype_bytes(t.dtype), below(g, 2 * limit) - limit);
    return cps_b_const(&g->b, t, p, NULL);
}

static void
shape_op(gen *g, cps_op op, cps_val x, cps_val *in, int *nin, cps_attr *at, int *nat)
{
    const cps_type t = *cps_b_type(&g->b, x);
    int64_t *v = cps_new_array(g->a, int64_t, 32);
    int axis = t.rank ? (int)below(g, t.rank) : 0;
    switch (op) {
    case CPS_OP_RESHAPE:
        v[0] = cps_type_count(&t);
        at[(*nat)++] = cps_a_ints("shape", below(g, 2) || v[0] != 1, v);
        break;
    case CPS_OP_TRANSPOSE:
        for (int i = 0; i < t.rank; i++)
            v[i] = (i + 1 + axis) % t.rank;
        at[(*nat)++] = cps_a_ints("perm", (uint32_t)t.rank, v);
        break;
    case CPS_OP_BROADCAST:
        v[0] = 2;
        for (int i = 0; i < t.rank; i++)
            v[i + 1] = t.dim[i] == 1 ? 3 : t.dim[i];
        at[(*nat)++] = cps_a_ints("shape", (uint32_t)t.rank + 1, v);
        break;
    case CPS_OP_SLICE:
        for (int i = 0; i < t.rank; i++) {
            int64_t d = t.dim[i], a = d ? below(g, d) : 0, b = d ? below(g, d + 1) : 0;
            bool back = below(g, 2) && d;
            v[i] = back ? CPS_MAX(a, b - 1) : CPS_MIN(a, b);
            v[8 + i] = back ? CPS_MIN(a, b - 1) : CPS_MAX(a, b);
            v[16 + i] = (1 + below(g, 3)) * (back ? -1 : 1);
        }
        at[(*nat)++] = cps_a_ints("start", (uint32_t)t.rank, v);
        at[(*nat)++] = cps_a_ints("stop", (uint32_t)t.rank, v + 8);
        at[(*nat)++] = cps_a_ints("step", (uint32_t)t.rank, v + 16);
        break;
    case CPS_OP_CONCAT:
        in[(*nin)++] = x;
        at[(*nat)++] = cps_a_int("axis", axis);
        break;
    case CPS_OP_PAD:
        for (int i = 0; i < t.rank; i++)
            v[i] = below(g, 3), v[8 + i] = below(g, 3);
        in[(*nin)++] = constant(g, (cps_type){.dtype = t.dtype});
        at[(*nat)++] = cps_a_ints("lo", (uint32_t)t.rank, v);
        at[(*nat)++] = cps_a_ints("hi", (uint32_t)t.rank, v + 8);
        break;
    default: // REPEAT
        at[(*nat)++] = cps_a_int("axis", axis);
        at[(*nat)++] = cps_a_int("n", 1 + below(g, 3));
    }
}

static void
index_op(gen *g, cps_op op, cps_val x, cps_val *in, int *nin, cps_attr *at, int *nat)
{
    const cps_type t = *cps_b_type(&g->b, x);
    int axis = t.rank ? (int)below(g, t.rank) : 0;
    int64_t limit = t.rank ? t.dim[axis] : 0;
    cps_type ix = {.rank = 1, .dim = {1 + below(g, 3)}};
    if (op == CPS_OP_GATHER_ELEMS)
        ix = t, ix.dim[axis] = ix.rank ? 2 : 0;
    if (limit == 0)
        ix.rank = 1, ix.dim[0] = 0, limit = 1;
    in[(*nin)++] = indices(g, ix, limit);
    at[(*nat)++] = cps_a_int("axis", axis);
    if (op == CPS_OP_SCATTER) {
        cps_type u = t;
        u.dim[axis] = ix.dim[0];
        in[(*nin)++] = constant(g, u);
        at[(*nat)++] = cps_a_bool("add", t.dtype != CPS_DT_BOOL && below(g, 2));
    }
}

static void
call(gen *g)
{
    cps_type t[2] = {random_type(g), random_type(g)};
    cps_val in[3] = {any(g), 0, any(g)}, out[2];
    cps_attr at[] = {cps_a_float("eps", cps_rng_normal(&g->r)), cps_a_str("act", "ge\"lu"),
                     cps_a_dtype("acc", CPS_DT_BF16),           cps_a_bool("causal", true),
                     cps_a_int("window", below(g, 9) - 4),      cps_a_float("inf", INFINITY)};
    g->b.from = below(g, 2) ? "node_1, node \"2\"" : NULL;
    g->b.loc = (cps_span){1, 5, (uint32_t)(6 + below(g, 9))};
    cps_b_call(&g->b, below(g, 2) ? "rmsnorm" : "odd name", 3, in, 6, at, 2, t, out);
    if (below(g, 2)) {
        cps_decision *p = cps_new(g->a, cps_decision);
        p->leaf = below(g, 2) ? "rmsnorm_rows" : NULL;
        p->why = "model";
        p->on = "trn2";
        p->cost_ns = below(g, 1000);
        uint16_t n = 0;
        cps_attr *c = NULL;
        cps_attr_put(g->a, &c, &n, cps_a_int("bufs_x", 3));
        p->config = c;
        p->nconfig = n;
        g->b.f->nodes.data[g->b.f->nodes.n - 1].pick = p;
    }
    g->b.from = NULL;
    g->b.loc = CPS_NOSPAN;
}

static void
step(gen *g, const gen_opts *o)
{
    cps_op op = (cps_op)(1 + below(g, CPS_OPS - 1));
    cps_val in[4] = {any(g)}, out[2];
    const cps_type t = *cps_b_type(&g->b, in[0]);
    int nin = 1, nat = 0;
    cps_attr at[4];
    int64_t *axes = cps_new_array(g->a, int64_t, 8);
    if (op == CPS_OP_CONST) {
        constant(g, random_type(g));
        return;
    }
    if (op == CPS_OP_CALL) {
        if (o->calls)
            call(g);
        return;
    }
    switch ((cps_opclass)cps_ops[op].opclass) {
    case CPS_OC_UNARY:
        if (op == CPS_OP_CAST)
            at[nat++] = cps_a_dtype("dtype", random_type(g).dtype);
        break;
    case CPS_OC_BINARY:
        in[nin++] = partner(g, &t);
        if (op == CPS_OP_MOD && below(g, 2))
            at[nat++] = cps_a_bool("fmod", below(g, 2));
        if ((op == CPS_OP_DIV || op == CPS_OP_MOD) && !cps_dtype_is_float(t.dtype)) {
            uint8_t *p = cps_arena_alloc(g->a, 8);
            cps_from_i64(t.dtype, p, 1 + below(g, 5));
            in[1] = cps_b_const(&g->b, (cps_type){.dtype = t.dtype}, p, NULL);
        }
        break;
    case CPS_OC_TERNARY: {
        cps_type c = t;
        c.dtype = CPS_DT_BOOL;
        in[2] = partner(g, &t);
        in[1] = in[0];
        in[0] = partner(g, &c);
        nin = 3;
        break;
    }
    case CPS_OC_REDUCE: {
        uint32_t n = 0;
        for (int i = 0; i < t.rank; i++)
            if (below(g, 2))
                axes[n++] = i;
        at[nat++] = cps_a_ints("axes", n, axes);
        at[nat++] = cps_a_bool("keep", below(g, 2));
        break;
    }
    case CPS_OC_CONTRACT: {
        cps_type y = t;
        if (t.rank < 2)
            return;
        y.dim[y.rank - 2] = t.dim[t.rank - 1];
        y.dim[y.rank - 1] = 1 + below(g, 4);
        in[nin++] = constant(g, y);
        break;
    }
    case CPS_OC_SHAPE:
        shape_op(g, op, in[0], in, &nin, at, &nat);
        break;
    case CPS_OC_INDEX:
        if (op == CPS_OP_INDEX) {
            nin = 0;
            axes[0] = 2, axes[1] = 3;
            at[nat++] = cps_a_ints("shape", 2, axes);
            at[nat++] = cps_a_int("axis", below(g, 2));
            at[nat++] = cps_a_dtype("dtype", below(g, 2) ? CPS_DT_FP32 : CPS_DT_I32);
        } else {
            index_op(g, op, in[0], in, &nin, at, &nat);
        }
        break;
    default: // SCAN
        at[nat++] = cps_a_int("axis", t.rank ? below(g, t.rank) : 0);
        if (op == CPS_OP_SORT)
            at[nat++] = cps_a_bool("descending", below(g, 2));
        else if (below(g, 2))
            at[nat++] = cps_a_bool(below(g, 2) ? "exclusive" : "reverse", true);
    }
    cps_diags *real = g->b.d;
    g->b.d = cps_diags_create(); // a misfit is no failure here
    cps_b_node(&g->b, op, nin, in, nat, at, out);
    cps_diags_destroy(g->b.d);
    g->b.d = real;
}

cps_module *
gen_module(cps_arena *a, cps_diags *d, uint64_t seed, const gen_opts *o)
{
    gen g = {.a = a};
    cps_rng_init(&g.r, seed, 0);
    cps_module *m = cps_module_new(a, "random \"module\"");
    g.b = (cps_builder){.m = m, .f = cps_func_new(m, "main"), .d = d};
    if (o->inputs) {
        cps_b_input(&g.b, "x", cps_type_make(CPS_DT_FP32, 2, (int64_t[]){3, 4}));
        cps_b_input(&g.b, "ids/0", cps_type_make(CPS_DT_I32, 1, (int64_t[]){4}));
        cps_b_input(&g.b, "x", cps_type_make(CPS_DT_BF16, 1, (int64_t[]){4}));
    }
    constant(&g, random_type(&g));
    for (int i = 0; i < o->nops; i++)
        step(&g, o);
    for (int i = 0; i < 3; i++)
        cps_b_output(&g.b, i ? "y 1" : "y", any(&g));
    cps_b_output(&g.b, "last", g.b.f->vals.n - 1);
    return m;
}

cps_tensor *
gen_inputs(cps_arena *a, const cps_func *f, uint64_t seed)
{
    gen g = {.a = a};
    cps_rng_init(&g.r, seed, 1);
    cps_tensor *t = cps_new_array(a, cps_tensor, f->inputs.n + 1);
    for (uint32_t i = 0; i < f->inputs.n; i++) {
        const cps_type *ty = &f->vals.data[f->inputs.data[i]].type;
        uint8_t *p = cps_arena_alloc(a, (size_t)cps_type_bytes(ty) + 1);
        fill(&g, ty, p);
        t[i] = cps_tensor_from(a, ty, p);
    }
    return t;
}
