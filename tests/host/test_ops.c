/* Every op of op.def in every dtype the host does, over shapes that broadcast, do not fill
 * vectors, have no elements, against the reference evaluator; with NaN, infinities, zeros and
 * subnormals among the floats and full-range integers. One function per op and dtype, one
 * output per case. */
#include "tests/check.h"
#include "tests/host/rig.h"

#include <math.h>

typedef struct bench {
    cps_arena *a;
    cps_diags *d;
    cps_builder b;
    cps_rng r;
    CPS_VEC(const void *) in;
} bench;

static const cps_dtype pool[] = {CPS_DT_FP32, CPS_DT_BF16, CPS_DT_FP16, CPS_DT_TF32, CPS_DT_I64,
                                 CPS_DT_I32,  CPS_DT_I16,  CPS_DT_I8,   CPS_DT_U64,  CPS_DT_U32,
                                 CPS_DT_U16,  CPS_DT_U8,   CPS_DT_BOOL};

static void
begin(bench *t, uint64_t seed)
{
    memset(t, 0, sizeof *t);
    t->a = cps_arena_create();
    t->d = cps_diags_create();
    t->b.m = cps_module_new(t->a, "ops");
    t->b.f = cps_func_new(t->b.m, "main");
    t->b.d = t->d;
    cps_rng_init(&t->r, seed, 0);
}

static bool
end(bench *t, const char *what, double tol, double scale)
{
    bool ok = true;
    if (cps_diags_errors(t->d)) {
        cps_buf b = {0};
        cps_diags_render(t->d, &b, false);
        fprintf(stderr, "%s: %s\n", what, b.data);
        cps_buf_fini(&b);
        ok = false;
    } else if (t->b.f->outputs.n) {
        ok = rig_check(t->a, t->b.m, t->b.f, t->in.data, tol, scale, false, what);
    }
    cps_diags_destroy(t->d);
    cps_arena_destroy(t->a);
    return ok;
}

static cps_val
input(bench *t, cps_dtype dt, int rank, const int64_t *dim, rig_data how, int64_t bound)
{
    cps_type ty = cps_type_make(dt, rank, dim);
    void *p = cps_arena_alloc(t->a, (size_t)cps_type_bytes(&ty) + 1);
    rig_fill(&t->r, &ty, how, bound, p);
    cps_vec_push(t->a, &t->in, (const void *)p);
    return cps_b_input(&t->b, "x", ty);
}

static void
output(bench *t, cps_val v)
{
    cps_b_output(&t->b, "y", v);
}

static bool
takes(cps_op op, cps_dtype t)
{
    char k = cps_dtypes[t].kind;
    return strchr(cps_ops[op].kinds, k == 'S' || k == 'U' ? 'I' : k) != NULL;
}

/* Shapes: a vector and a bit, broadcasting, no elements, scalars. */
static const struct {
    int rx;
    int64_t x[4];
    int ry;
    int64_t y[4];
} pairs[] = {
    {1, {37}, 1, {37}},      {2, {5, 16}, 2, {5, 16}},  {2, {3, 19}, 1, {19}},
    {2, {4, 1}, 2, {1, 33}}, {3, {2, 3, 7}, 2, {3, 1}}, {0, {0}, 1, {5}},
    {0, {0}, 0, {0}},        {2, {0, 4}, 1, {4}},       {4, {2, 1, 3, 2}, 3, {5, 1, 2}},
};

static void
elementwise(cps_op op, cps_dtype dt)
{
    bench t;
    begin(&t, (uint64_t)op * 64 + dt);
    bool real = cps_dtype_is_float(dt), divides = op == CPS_OP_DIV || op == CPS_OP_MOD;
    for (size_t i = 0; i < cps_countof(pairs); i++) {
        cps_val in[3] = {input(&t, dt, pairs[i].rx, pairs[i].x, RIG_ODD, 0)}, out;
        if (cps_ops[op].nin_max > 1) {
            rig_data how = divides && !real   ? RIG_NONZERO
                           : op == CPS_OP_POW ? RIG_PLAIN
                                              : RIG_ODD;
            in[1] = input(&t, dt, pairs[i].ry, pairs[i].y, how, 0);
        }
        if (op == CPS_OP_SELECT) {
            in[2] = in[1];
            in[1] = in[0];
            in[0] = input(&t, CPS_DT_BOOL, pairs[i].ry, pairs[i].y, RIG_PLAIN, 0);
        }
        cps_attr at = cps_a_bool("fmod", true);
        if (cps_b_node(&t.b, op, cps_ops[op].nin_max, in, op == CPS_OP_MOD && i % 2, &at, &out))
            output(&t, out);
    }
    char what[64];
    snprintf(what, sizeof what, "%s %s", cps_ops[op].name, cps_dtype_name(dt));
    // Where a function crosses zero, its error is measured against its neighbourhood.
    bool crossing = op == CPS_OP_GELU || op == CPS_OP_GELU_TANH || op == CPS_OP_SILU ||
                    op == CPS_OP_SWISH || op == CPS_OP_MISH;
    CHECK(end(&t, what, 1e-6, crossing ? 1e-35 : 0));
}

static void
casts(cps_dtype from)
{
    bench t;
    begin(&t, from);
    for (size_t i = 0; i < cps_countof(pool); i++) {
        cps_val x = input(&t, from, 2, (int64_t[]){3, 21}, RIG_ODD, 0);
        output(&t, cps_b_cast(&t.b, x, pool[i]));
    }
    char what[64];
    snprintf(what, sizeof what, "cast %s", cps_dtype_name(from));
    CHECK(end(&t, what, 1e-7, 0));
}

static void
reductions(cps_op op, cps_dtype dt)
{
    static const struct {
        int rank;
        int64_t dim[4];
        int n;
        int64_t axes[4];
    } cases[] = {
        {1, {100}, 1, {0}},      {2, {7, 129}, 1, {1}},
        {2, {9, 35}, 1, {0}},    {3, {3, 5, 70}, 2, {0, 2}},
        {3, {4, 3, 18}, 1, {1}}, {4, {2, 3, 4, 5}, 2, {1, 2}},
        {2, {1, 6}, 1, {0}},     {2, {3, 1}, 1, {1}},
        {3, {2, 3, 4}, 0, {0}},  {3, {2, 16, 64}, 3, {0, 1, 2}},
        {2, {0, 5}, 1, {1}},
    };
    bench t;
    begin(&t, (uint64_t)op * 64 + dt);
    for (size_t i = 0; i < cps_countof(cases); i++) {
        rig_data how = i % 3 == 0 ? RIG_ODD : RIG_PLAIN;
        if (op == CPS_OP_PROD)
            how = RIG_PLAIN;
        cps_val x = input(&t, dt, cases[i].rank, cases[i].dim, how, 0);
        output(&t, cps_b_reduce(&t.b, op, x, cases[i].n, cases[i].axes, i % 2));
    }
    if (op != CPS_OP_RMAX && op != CPS_OP_RMIN) { // of nothing
        cps_val x = input(&t, dt, 2, (int64_t[]){3, 0}, RIG_PLAIN, 0);
        output(&t, cps_b_reduce(&t.b, op, x, 1, (int64_t[]){1}, false));
    }
    char what[64];
    snprintf(what, sizeof what, "%s %s", cps_ops[op].name, cps_dtype_name(dt));
    CHECK(end(&t, what, 4e-6, 1));
}

static void
shapes(cps_dtype dt)
{
    bench t;
    begin(&t, dt);
    cps_val x = input(&t, dt, 3, (int64_t[]){3, 20, 37}, RIG_ODD, 0);
    cps_val w = input(&t, dt, 2, (int64_t[]){37, 50}, RIG_ODD, 0);
    output(&t, cps_b_transpose(&t.b, x, (int64_t[]){2, 0, 1}));
    output(&t, cps_b_transpose(&t.b, x, (int64_t[]){0, 2, 1}));
    output(&t, cps_b_transpose(&t.b, w, (int64_t[]){1, 0}));
    output(&t, cps_b_reshape(&t.b, x, 2, (int64_t[]){60, 37}));
    output(&t, cps_b_reshape(&t.b, cps_b_transpose(&t.b, x, (int64_t[]){1, 0, 2}), 2,
                             (int64_t[]){20, 111}));
    output(&t, cps_b_broadcast(&t.b, w, 3, (int64_t[]){2, 37, 50}));
    output(&t, cps_b_slice(&t.b, x, (int64_t[]){2, 1, 36}, (int64_t[]){-1, 19, -1},
                           (int64_t[]){-1, 3, -2}));
    output(&t, cps_b_slice(&t.b, x, (int64_t[]){0, 5, 3}, (int64_t[]){3, 5, 30},
                           (int64_t[]){1, 1, 1}));
    cps_val parts[3] = {
        x,
        cps_b_slice(&t.b, x, (int64_t[]){0, 2, 0}, (int64_t[]){3, 7, 37}, (int64_t[]){1, 1, 1}),
        x};
    output(&t, cps_b_concat(&t.b, 3, parts, 1));
    output(&t, cps_b_concat(&t.b, 2, (cps_val[]){w, w}, 0));
    output(&t, cps_b_concat(&t.b, 2, (cps_val[]){w, w}, 1));
    cps_val out, fill = input(&t, dt, 0, NULL, RIG_PLAIN, 0);
    cps_attr pad[2] = {cps_a_ints("lo", 3, (int64_t[]){0, 2, 3}),
                       cps_a_ints("hi", 3, (int64_t[]){1, 0, 5})};
    cps_b_node(&t.b, CPS_OP_PAD, 2, (cps_val[]){x, fill}, 2, pad, &out);
    output(&t, out);
    for (int axis = 0; axis < 3; axis++) {
        cps_attr rep[2] = {cps_a_int("axis", axis), cps_a_int("n", 3)};
        cps_b_node(&t.b, CPS_OP_REPEAT, 1, &x, 2, rep, &out);
        output(&t, out);
    }
    output(&t, x); // an input handed through, twice
    output(&t, x);
    cps_val c = cps_b_ints(&t.b, CPS_DT_I32, 4, (int64_t[]){1, -2, 3, 4});
    output(&t, c);
    char what[64];
    snprintf(what, sizeof what, "shapes %s", cps_dtype_name(dt));
    CHECK(end(&t, what, 0, 0));
}

static void
indices(cps_dtype dt, cps_dtype it)
{
    bench t;
    cps_val out;
    begin(&t, (uint64_t)dt * 64 + it);
    cps_val x = input(&t, dt, 3, (int64_t[]){5, 6, 21}, RIG_ODD, 0);
    for (int axis = 0; axis < 3; axis++) {
        int64_t n = (int64_t[]){5, 6, 21}[axis];
        cps_val i = input(&t, it, 2, (int64_t[]){2, 3}, RIG_PLAIN, n);
        output(&t, cps_b_gather(&t.b, x, i, axis));
        cps_val e =
            input(&t, it, 3, (int64_t[]){axis ? 5 : 3, axis == 1 ? 9 : 6, 18}, RIG_PLAIN, n);
        cps_attr at[2] = {cps_a_int("axis", axis), cps_a_bool("add", false)};
        cps_b_node(&t.b, CPS_OP_GATHER_ELEMS, 2, (cps_val[]){x, e}, 1, at, &out);
        output(&t, out);
        int64_t u[4] = {5, 6, 21, 0};
        cps_val k = input(&t, it, 1, (int64_t[]){4}, RIG_PLAIN, n);
        u[axis] = 4;
        cps_val up = input(&t, dt, 3, u, RIG_PLAIN, 0);
        for (int add = 0; add < (dt == CPS_DT_BOOL ? 1 : 2); add++) {
            at[1].i = add;
            cps_b_node(&t.b, CPS_OP_SCATTER, 3, (cps_val[]){x, k, up}, 2, at, &out);
            output(&t, out);
        }
    }
    if (dt != CPS_DT_BOOL)
        for (int axis = 0; axis < 2; axis++) {
            cps_attr at[3] = {cps_a_ints("shape", 2, (int64_t[]){3, 35}),
                              cps_a_int("axis", axis), cps_a_dtype("dtype", dt)};
            cps_b_node(&t.b, CPS_OP_INDEX, 0, NULL, 3, at, &out);
            output(&t, out);
            output(&t, cps_b_binary(&t.b, CPS_OP_ADD, out, out));
        }
    char what[64];
    snprintf(what, sizeof what, "indices %s by %s", cps_dtype_name(dt), cps_dtype_name(it));
    CHECK(end(&t, what, 1e-6, 1)); // narrow sums are rounded at every step
}

static void
scans(cps_dtype dt)
{
    bench t;
    begin(&t, dt);
    cps_val y[2];
    static const int64_t dims[4][3] = {{4, 9, 22}, {1, 1, 100}, {3, 1, 2}, {2, 257, 1}};
    for (int s = 0; s < 4; s++)
        for (int axis = 0; axis < 3; axis++) {
            cps_val x = input(&t, dt, 3, dims[s], s ? RIG_PLAIN : RIG_ODD, 0);
            for (int k = 0; k < 4; k++) {
                cps_attr at[3] = {cps_a_int("axis", axis), cps_a_bool("exclusive", k & 1),
                                  cps_a_bool("reverse", k >> 1)};
                cps_val z = k == 3 ? x : input(&t, dt, 3, dims[s], RIG_PLAIN, 0);
                if (k == 3 && s == 0) // no infinities in sums
                    z = input(&t, dt, 3, dims[s], RIG_PLAIN, 0);
                cps_b_node(&t.b, CPS_OP_CUMSUM, 1, &z, 3, at, y);
                output(&t, y[0]);
            }
            for (int down = 0; down < 2; down++) {
                cps_attr at[2] = {cps_a_int("axis", axis), cps_a_bool("descending", down)};
                cps_b_node(&t.b, CPS_OP_SORT, 1, &x, 2, at, y);
                output(&t, y[0]);
                output(&t, y[1]);
            }
        }
    char what[64];
    snprintf(what, sizeof what, "scans %s", cps_dtype_name(dt));
    CHECK(end(&t, what, 4e-6, 1));
}

int
main(void)
{
    for (int op = 1; op < CPS_OPS; op++) {
        int c = cps_ops[op].opclass;
        for (size_t k = 0; k < cps_countof(pool); k++) {
            if (!takes((cps_op)op, pool[k]))
                continue;
            if (op == CPS_OP_CAST)
                casts(pool[k]);
            else if (c == CPS_OC_UNARY || c == CPS_OC_BINARY || c == CPS_OC_TERNARY)
                elementwise((cps_op)op, pool[k]);
            else if (c == CPS_OC_REDUCE)
                reductions((cps_op)op, pool[k]);
        }
    }
    for (size_t k = 0; k < cps_countof(pool); k++) {
        static const cps_dtype by[] = {CPS_DT_I64, CPS_DT_I32, CPS_DT_U8};
        shapes(pool[k]);
        indices(pool[k], by[k % cps_countof(by)]);
        if (pool[k] != CPS_DT_BOOL)
            scans(pool[k]);
    }
    return CHECK_DONE();
}
