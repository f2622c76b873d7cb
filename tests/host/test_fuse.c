/* Random graphs of everything the planner decides about: elementwise chains with several users,
 * views of views, reductions and norms that share rows, products with their neighbours, copies
 * that cannot be avoided. Ops are continuous or exact, so that results of fp32 stay near the
 * reference. */
#include "tests/check.h"
#include "tests/host/rig.h"

#include <stdlib.h>

typedef struct gen {
    cps_arena *a;
    cps_diags *d;
    cps_builder b;
    cps_rng r;
    CPS_VEC(const void *) in;
    CPS_VEC(cps_val) real; // fp32 values, all of size about 1
    CPS_VEC(cps_val) ints;
} gen;

static int64_t
below(gen *g, int64_t n)
{
    return (int64_t)cps_rng_below(&g->r, (uint64_t)n);
}

static const cps_type *
type(gen *g, cps_val v)
{
    return cps_b_type(&g->b, v);
}

static cps_val
leaf(gen *g, cps_dtype dt, int rank, const int64_t *dim)
{
    cps_type t = cps_type_make(dt, rank, dim);
    uint8_t *p = cps_arena_alloc(g->a, (size_t)cps_type_bytes(&t) + 1);
    rig_fill(&g->r, &t, RIG_PLAIN, 0, p);
    if (below(g, 3) == 0)
        return cps_b_const(&g->b, t, p, NULL);
    cps_vec_push(g->a, &g->in, (const void *)p);
    return cps_b_input(&g->b, "x", t);
}

static cps_val
any(gen *g)
{
    // younger values more often: chains grow
    uint32_t n = g->real.n, back = (uint32_t)below(g, below(g, 2) ? n : CPS_MIN(n, 4));
    return g->real.data[n - 1 - back];
}

static void
keep(gen *g, cps_val v)
{
    if (v && cps_type_count(type(g, v)) <= 40000)
        cps_vec_push(g->a, &g->real, v);
}

static cps_val
squash(gen *g, cps_val v)
{
    static const cps_op ops[] = {CPS_OP_TANH, CPS_OP_SIGMOID, CPS_OP_ERF, CPS_OP_ARCTAN};
    return cps_b_unary(&g->b, ops[below(g, cps_countof(ops))], v);
}

// A partner that broadcasts with v.
static cps_val
partner(gen *g, cps_val v)
{
    const cps_type t = *type(g, v);
    for (int k = 0; k < 6; k++) {
        cps_val w = any(g);
        const cps_type *u = type(g, w);
        bool ok = u->rank <= t.rank;
        for (int i = 0; ok && i < u->rank; i++) {
            int64_t x = u->dim[u->rank - 1 - i], y = t.dim[t.rank - 1 - i];
            ok = x == y || x == 1;
        }
        if (ok)
            return w;
    }
    int64_t dim[CPS_MAX_RANK];
    int from = (int)below(g, t.rank + 1), n = 0;
    for (int i = from; i < t.rank; i++)
        dim[n++] = below(g, 3) ? t.dim[i] : 1;
    return leaf(g, CPS_DT_FP32, n, dim);
}

static cps_val
softmax(gen *g, cps_val x)
{
    int64_t axis = type(g, x)->rank - 1;
    if (axis < 0)
        return 0;
    cps_val top = cps_b_reduce(&g->b, CPS_OP_RMAX, x, 1, &axis, true);
    cps_val e = cps_b_unary(&g->b, CPS_OP_EXP, cps_b_binary(&g->b, CPS_OP_SUB, x, top));
    cps_val s = cps_b_reduce(&g->b, CPS_OP_SUM, e, 1, &axis, true);
    return cps_b_binary(&g->b, CPS_OP_DIV, e, s);
}

static cps_val
norm(gen *g, cps_val x)
{
    int64_t axis = type(g, x)->rank - 1;
    if (axis < 0)
        return 0;
    cps_val mean = cps_b_reduce(&g->b, CPS_OP_MEAN, x, 1, &axis, true);
    cps_val c = cps_b_binary(&g->b, CPS_OP_SUB, x, mean);
    cps_val var =
        cps_b_reduce(&g->b, CPS_OP_MEAN, cps_b_unary(&g->b, CPS_OP_SQUARE, c), 1, &axis, true);
    var = cps_b_binary(&g->b, CPS_OP_ADD, var, cps_b_scalar(&g->b, CPS_DT_FP32, 0.5));
    cps_val y = cps_b_binary(&g->b, CPS_OP_MUL, c, cps_b_unary(&g->b, CPS_OP_RSQRT, var));
    return cps_b_binary(&g->b, CPS_OP_ADD, y, partner(g, y));
}

static cps_val
shape_op(gen *g, cps_val x)
{
    const cps_type t = *type(g, x);
    int64_t v[3][CPS_MAX_RANK], n = cps_type_count(&t);
    int axis = t.rank ? (int)below(g, t.rank) : 0;
    cps_attr at[2];
    cps_val out = 0, in[3] = {x, x, x};
    switch (below(g, 8)) {
    case 0:
        for (int i = 0; i < t.rank; i++)
            v[0][i] = (i + 1 + axis) % t.rank;
        return cps_b_transpose(&g->b, x, v[0]);
    case 1: // split or merge
        if (t.rank > 1 && below(g, 2)) {
            int m = 0;
            for (int i = 0; i < t.rank; i++)
                if (i && i == CPS_MAX(axis, 1))
                    v[0][m - 1] *= t.dim[i];
                else
                    v[0][m++] = t.dim[i];
            return cps_b_reshape(&g->b, x, m, v[0]);
        }
        if (t.rank && t.rank < 5 && t.dim[axis] % 2 == 0) {
            for (int i = 0, m = 0; i < t.rank; i++) {
                v[0][m++] = i == axis ? t.dim[i] / 2 : t.dim[i];
                if (i == axis)
                    v[0][m++] = 2;
            }
            return cps_b_reshape(&g->b, x, t.rank + 1, v[0]);
        }
        return cps_b_reshape(&g->b, x, 1, &n);
    case 2:
        v[0][0] = 1 + below(g, 3);
        for (int i = 0; i < t.rank; i++)
            v[0][i + 1] = t.dim[i] == 1 && below(g, 2) ? 5 : t.dim[i];
        return t.rank < 5 ? cps_b_broadcast(&g->b, x, t.rank + 1, v[0]) : 0;
    case 3:
        for (int i = 0; i < t.rank; i++) {
            int64_t a = below(g, t.dim[i]), e = a + 1 + below(g, t.dim[i] - a);
            bool back = below(g, 3) == 0;
            v[0][i] = back ? e - 1 : a;
            v[1][i] = back ? a - 1 : e;
            v[2][i] = (1 + below(g, 2)) * (back ? -1 : 1);
        }
        return cps_b_slice(&g->b, x, v[0], v[1], v[2]);
    case 4:
        if (!t.rank)
            return 0;
        in[1] = below(g, 2) ? squash(g, x) : x;
        return cps_b_concat(&g->b, 2 + (int)below(g, 2), in, axis);
    case 5:
        for (int i = 0; i < t.rank; i++)
            v[0][i] = below(g, 3), v[1][i] = below(g, 2);
        in[1] = cps_b_scalar(&g->b, CPS_DT_FP32, 0.25);
        at[0] = cps_a_ints("lo", (uint32_t)t.rank, v[0]);
        at[1] = cps_a_ints("hi", (uint32_t)t.rank, v[1]);
        return cps_b_node(&g->b, CPS_OP_PAD, 2, in, 2, at, &out) ? out : 0;
    case 6:
        if (!t.rank)
            return 0;
        at[0] = cps_a_int("axis", axis);
        at[1] = cps_a_int("n", 1 + below(g, 3));
        return cps_b_node(&g->b, CPS_OP_REPEAT, 1, in, 2, at, &out) ? out : 0;
    default: {
        if (!t.rank)
            return 0;
        int64_t k = 1 + below(g, 20);
        cps_type it = cps_type_make(CPS_DT_I64, 1, &k);
        int64_t *p = cps_arena_alloc(g->a, (size_t)k * 8);
        for (int64_t i = 0; i < k; i++)
            p[i] = below(g, 2 * t.dim[axis]) - t.dim[axis];
        return cps_b_gather(&g->b, x, cps_b_const(&g->b, it, p, NULL), axis);
    }
    }
}

static cps_val
product(gen *g, cps_val x)
{
    const cps_type t = *type(g, x);
    if (t.rank < 2)
        return 0;
    int64_t k = t.dim[t.rank - 1], n = 1 + below(g, 40), dim[CPS_MAX_RANK];
    cps_val y = 0;
    if (below(g, 3) == 0 && t.rank >= 2) { // with itself, transposed
        int64_t perm[CPS_MAX_RANK];
        for (int i = 0; i < t.rank; i++)
            perm[i] = i;
        perm[t.rank - 1] = t.rank - 2;
        perm[t.rank - 2] = t.rank - 1;
        y = cps_b_transpose(&g->b, x, perm);
    } else {
        int m = 0;
        for (int i = (int)below(g, t.rank - 1); i < t.rank - 2; i++)
            dim[m++] = below(g, 3) ? t.dim[i] : 1;
        dim[m++] = k;
        dim[m++] = n;
        y = leaf(g, CPS_DT_FP32, m, dim);
    }
    cps_val z = cps_b_matmul(&g->b, x, y);
    z = cps_b_binary(&g->b, CPS_OP_MUL, z, cps_b_scalar(&g->b, CPS_DT_FP32, 0.2));
    if (below(g, 2))
        z = cps_b_binary(&g->b, CPS_OP_ADD, cps_b_matmul(&g->b, x, y), partner(g, z));
    return below(g, 2) ? squash(g, z) : z;
}

static void
step(gen *g)
{
    cps_val x = any(g), out[2] = {0, 0};
    const cps_type t = *type(g, x);
    int64_t axes[CPS_MAX_RANK];
    int n = 0;
    static const cps_op two[] = {CPS_OP_ADD, CPS_OP_SUB, CPS_OP_MAX, CPS_OP_MIN};
    static const cps_op over[] = {CPS_OP_SUM, CPS_OP_MEAN, CPS_OP_RMAX, CPS_OP_RMIN};
    switch (below(g, 14)) {
    case 0:
    case 1:
    case 2:
        keep(g, cps_b_binary(&g->b, two[below(g, 4)], x, partner(g, x)));
        return;
    case 3:
        keep(g, squash(g, cps_b_binary(&g->b, CPS_OP_MUL, x, partner(g, x))));
        return;
    case 4:
        keep(g, squash(g, x));
        return;
    case 5:
    case 6:
        keep(g, shape_op(g, x));
        return;
    case 7: {
        for (int i = 0; i < t.rank; i++)
            if (below(g, 2))
                axes[n++] = i;
        cps_op op = over[below(g, 4)];
        cps_val y = cps_b_reduce(&g->b, op, x, n, axes, below(g, 2));
        keep(g, op == CPS_OP_SUM ? cps_b_unary(&g->b, CPS_OP_ARCTAN, y) : y);
        return;
    }
    case 8:
        keep(g, product(g, x));
        return;
    case 9:
        keep(g, softmax(g, x));
        return;
    case 10:
        keep(g, norm(g, x));
        return;
    case 11: {
        cps_attr at[3] = {cps_a_int("axis", t.rank ? below(g, t.rank) : 0),
                          cps_a_bool("descending", below(g, 2))};
        if (t.rank && cps_b_node(&g->b, CPS_OP_SORT, 1, &x, 2, at, out))
            keep(g, out[0]);
        return;
    }
    case 12: {
        cps_attr at[3] = {cps_a_int("axis", t.rank ? below(g, t.rank) : 0),
                          cps_a_bool("reverse", below(g, 2))};
        if (t.rank && cps_b_node(&g->b, CPS_OP_CUMSUM, 1, &x, 2, at, out))
            keep(g, squash(g, cps_b_binary(&g->b, CPS_OP_MUL, out[0],
                                           cps_b_scalar(&g->b, CPS_DT_FP32, 0.1))));
        return;
    }
    default: { // a mask from positions, exact
        if (!t.rank)
            return;
        cps_attr at[3] = {cps_a_ints("shape", (uint32_t)t.rank, t.dim),
                          cps_a_int("axis", below(g, t.rank)),
                          cps_a_dtype("dtype", CPS_DT_I32)};
        cps_b_node(&g->b, CPS_OP_INDEX, 0, NULL, 3, at, out);
        cps_val limit = cps_b_scalar(&g->b, CPS_DT_I32, (double)below(g, 9));
        cps_val c = cps_b_binary(&g->b, below(g, 2) ? CPS_OP_LT : CPS_OP_EQ, out[0], limit);
        keep(g, cps_b_select(&g->b, c, x, partner(g, x)));
    }
    }
}

static bool
run(uint64_t seed)
{
    gen g = {.a = cps_arena_create(), .d = cps_diags_create()};
    static const int64_t dims[][3] = {
        {6, 8, 33}, {1, 20, 16}, {3, 1, 50}, {2, 7, 4}, {5, 40, 3}};
    cps_rng_init(&g.r, seed, 0);
    cps_module *m = cps_module_new(g.a, "random");
    g.b = (cps_builder){.m = m, .f = cps_func_new(m, "main"), .d = g.d};
    for (int i = 0; i < 2; i++) {
        const int64_t *dim = dims[below(&g, cps_countof(dims))];
        int skip = (int)below(&g, 3);
        keep(&g, leaf(&g, CPS_DT_FP32, 3 - skip, dim + skip));
    }
    int64_t n = 4 + below(&g, 24);
    for (int64_t i = 0; i < n; i++)
        step(&g);
    for (int i = 0; i < 3; i++)
        cps_b_output(&g.b, "y", any(&g));
    cps_b_output(&g.b, "last", g.real.data[g.real.n - 1]);
    bool ok = cps_diags_errors(g.d) == 0;
    char what[32];
    snprintf(what, sizeof what, "graph %llu", (unsigned long long)seed);
    if (!ok) {
        cps_buf b = {0};
        cps_diags_render(g.d, &b, false);
        fprintf(stderr, "%s: %s\n", what, b.data);
        cps_buf_fini(&b);
    }
    ok = ok && rig_check(g.a, m, g.b.f, g.in.data, 5e-5, 1, false, what);
    cps_diags_destroy(g.d);
    cps_arena_destroy(g.a);
    return ok;
}

int
main(int argc, char **argv)
{
    uint64_t from = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
    uint64_t count = argc > 2 ? strtoull(argv[2], NULL, 10) : 60;
    for (uint64_t s = from; s < from + count; s++)
        CHECK(run(s));
    return CHECK_DONE();
}
