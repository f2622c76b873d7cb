/* Products: one row, edges of the register tile, several blocks of k, transposed and sliced
 * operands read in place, batches that broadcast or merge, addends, results written transposed;
 * in fp32, narrow floats and integers. */
#include "tests/check.h"
#include "tests/host/rig.h"

typedef struct mm {
    cps_arena *a;
    cps_diags *d;
    cps_builder b;
    cps_rng r;
    CPS_VEC(const void *) in;
} mm;

static void
begin(mm *t, uint64_t seed)
{
    memset(t, 0, sizeof *t);
    t->a = cps_arena_create();
    t->d = cps_diags_create();
    t->b.m = cps_module_new(t->a, "mm");
    t->b.f = cps_func_new(t->b.m, "main");
    t->b.d = t->d;
    cps_rng_init(&t->r, seed, 0);
}

static void
end(mm *t, const char *what)
{
    CHECK(cps_diags_errors(t->d) == 0);
    CHECK(rig_check(t->a, t->b.m, t->b.f, t->in.data, 1e-6, 8, false, what));
    cps_diags_destroy(t->d);
    cps_arena_destroy(t->a);
}

static cps_val
input(mm *t, cps_dtype dt, int rank, const int64_t *dim)
{
    cps_type ty = cps_type_make(dt, rank, dim);
    void *p = cps_arena_alloc(t->a, (size_t)cps_type_bytes(&ty) + 1);
    rig_fill(&t->r, &ty, RIG_PLAIN, 0, p);
    cps_vec_push(t->a, &t->in, (const void *)p);
    return cps_b_input(&t->b, "x", ty);
}

static cps_val
swap(mm *t, cps_val x)
{
    int rank = cps_b_type(&t->b, x)->rank;
    int64_t perm[CPS_MAX_RANK];
    for (int i = 0; i < rank; i++)
        perm[i] = i;
    perm[rank - 1] = rank - 2;
    perm[rank - 2] = rank - 1;
    return cps_b_transpose(&t->b, x, perm);
}

// Both operands as they are and transposed, and a bias.
static void
plain(cps_dtype dt, int64_t m, int64_t n, int64_t k)
{
    mm t;
    char what[96];
    begin(&t, (uint64_t)(m * 1000003 + n * 1009 + k));
    cps_val a = input(&t, dt, 2, (int64_t[]){m, k}), b = input(&t, dt, 2, (int64_t[]){k, n});
    cps_val at = input(&t, dt, 2, (int64_t[]){k, m}), bt = input(&t, dt, 2, (int64_t[]){n, k});
    cps_val bias = input(&t, dt, 1, &n);
    cps_b_output(&t.b, "y", cps_b_matmul(&t.b, a, b));
    cps_b_output(&t.b, "y", cps_b_matmul(&t.b, a, swap(&t, bt)));
    cps_b_output(&t.b, "y", cps_b_matmul(&t.b, swap(&t, at), b));
    cps_b_output(&t.b, "y", cps_b_matmul(&t.b, swap(&t, at), swap(&t, bt)));
    cps_b_output(&t.b, "y", cps_b_binary(&t.b, CPS_OP_ADD, cps_b_matmul(&t.b, a, b), bias));
    snprintf(what, sizeof what, "matmul %s %lldx%lldx%lld", cps_dtype_name(dt), (long long)m,
             (long long)n, (long long)k);
    end(&t, what);
}

static void
batched(void)
{
    mm t;
    begin(&t, 11);
    cps_val a = input(&t, CPS_DT_FP32, 4, (int64_t[]){2, 3, 9, 20});
    cps_val b = input(&t, CPS_DT_FP32, 4, (int64_t[]){2, 3, 20, 37});
    cps_val c = input(&t, CPS_DT_FP32, 3, (int64_t[]){3, 20, 5});
    cps_val e = input(&t, CPS_DT_FP32, 2, (int64_t[]){20, 34});
    cps_val f = input(&t, CPS_DT_FP32, 4, (int64_t[]){2, 1, 20, 6});
    cps_val g = input(&t, CPS_DT_FP32, 4, (int64_t[]){1, 3, 1, 20});
    cps_b_output(&t.b, "ab", cps_b_matmul(&t.b, a, b));
    cps_b_output(&t.b, "ac", cps_b_matmul(&t.b, a, c));
    cps_b_output(&t.b, "ae", cps_b_matmul(&t.b, a, e));
    cps_b_output(&t.b, "af", cps_b_matmul(&t.b, a, f));
    cps_b_output(&t.b, "gb", cps_b_matmul(&t.b, g, b));
    cps_b_output(&t.b, "ge", cps_b_matmul(&t.b, g, e));
    cps_val res = input(&t, CPS_DT_FP32, 4, (int64_t[]){2, 3, 9, 34});
    cps_b_output(&t.b, "r", cps_b_binary(&t.b, CPS_OP_ADD, res, cps_b_matmul(&t.b, a, e)));
    end(&t, "batched");
}

// Heads split and merged by reshapes and transposes, as attention does it.
static void
heads(int64_t s, int64_t h, int64_t d)
{
    mm t;
    begin(&t, (uint64_t)(s + h + d));
    int64_t e = h * d, split[4] = {1, s, h, d};
    cps_val x = input(&t, CPS_DT_FP32, 3, (int64_t[]){1, s, e}), q[3];
    for (int i = 0; i < 3; i++) {
        cps_val w = input(&t, CPS_DT_FP32, 2, (int64_t[]){e, e}),
                b = input(&t, CPS_DT_FP32, 1, &e);
        cps_val y = cps_b_binary(&t.b, CPS_OP_ADD, cps_b_matmul(&t.b, x, w), b);
        y = cps_b_reshape(&t.b, y, 4, split);
        q[i] = cps_b_transpose(&t.b, y,
                               i == 1 ? (int64_t[]){0, 2, 3, 1} : (int64_t[]){0, 2, 1, 3});
    }
    cps_val p = cps_b_matmul(&t.b, q[0], q[1]);
    p = cps_b_binary(&t.b, CPS_OP_MUL, p, cps_b_scalar(&t.b, CPS_DT_FP32, 0.01));
    cps_val top = cps_b_reduce(&t.b, CPS_OP_RMAX, p, 1, (int64_t[]){3}, true);
    cps_val ex = cps_b_unary(&t.b, CPS_OP_EXP, cps_b_binary(&t.b, CPS_OP_SUB, p, top));
    cps_val sum = cps_b_reduce(&t.b, CPS_OP_SUM, ex, 1, (int64_t[]){3}, true);
    cps_val y = cps_b_matmul(&t.b, cps_b_binary(&t.b, CPS_OP_DIV, ex, sum), q[2]);
    y = cps_b_transpose(&t.b, y, (int64_t[]){0, 2, 1, 3});
    y = cps_b_reshape(&t.b, y, 3, (int64_t[]){1, s, e});
    cps_val w = input(&t, CPS_DT_FP32, 2, (int64_t[]){e, e});
    cps_b_output(&t.b, "y", cps_b_binary(&t.b, CPS_OP_ADD, cps_b_matmul(&t.b, y, w), x));
    char what[64];
    snprintf(what, sizeof what, "heads %lld %lld %lld", (long long)s, (long long)h,
             (long long)d);
    end(&t, what);
}

int
main(void)
{
    static const int64_t shapes[][3] = {
        {1, 1, 1},      {1, 48, 64},    {1, 100, 300}, {2, 33, 40},
        {3, 16, 1},     {4, 7, 130},    {5, 65, 17},   {9, 96, 33},
        {16, 3, 64},    {31, 49, 65},   {64, 64, 64},  {37, 130, 600},
        {150, 50, 200}, {200, 17, 400}, {3, 700, 37},  {1, 1000, 50},
    };
    for (size_t i = 0; i < cps_countof(shapes); i++)
        plain(CPS_DT_FP32, shapes[i][0], shapes[i][1], shapes[i][2]);
    static const cps_dtype others[] = {CPS_DT_BF16, CPS_DT_FP16, CPS_DT_TF32, CPS_DT_I32,
                                       CPS_DT_I64,  CPS_DT_I8,   CPS_DT_U16};
    for (size_t i = 0; i < cps_countof(others); i++) {
        plain(others[i], 1, 20, 70);
        plain(others[i], 19, 37, 230);
    }
    plain(CPS_DT_FP32, 20, 40, 512); // rows of A a page apart
    batched();
    heads(7, 2, 16);
    heads(33, 3, 20);
    mm t;
    begin(&t, 1);
    cps_val x = input(&t, CPS_DT_FP32, 2, (int64_t[]){3, 0});
    cps_val y = input(&t, CPS_DT_FP32, 2, (int64_t[]){0, 4});
    cps_val b = input(&t, CPS_DT_FP32, 1, (int64_t[]){4});
    cps_b_output(&t.b, "y", cps_b_binary(&t.b, CPS_OP_ADD, cps_b_matmul(&t.b, x, y), b));
    end(&t, "nothing to sum");
    return CHECK_DONE();
}
