/* Compiled kernels on the simulator. */
#include "tests/check.h"
#include "tests/codegen/ops.h"
#include "tests/codegen/simrun.h"

#include <math.h>

static const char *const targets[] = {"trn1", "trn2", "trn3"};

static void
report(const tp *p)
{
    cps_buf b = {0};
    cps_diags_render(p->d, &b, false);
    if (b.n)
        fputs(b.data, stderr);
    cps_buf_fini(&b);
}

static bool
compile_and_run(tp *p, void **mem, cps_sim_report *rep)
{
    cps_kbin *k = NULL;
    cps_codegen_opts o = {.verify = true};
    bool ok = cps_codegen(p->a, p->f, p->t, &o, &k, p->d) && tp_sim(p, k, mem, rep);
    if (!ok)
        report(p);
    return ok;
}

static void
every_op_runs(void)
{
    for (size_t i = 0; i < cps_countof(targets); i++) {
        tp p = tp_new(targets[i]);
        void *mem[8];
        cps_sim_report rep;
        tp_make_ops(&p);
        tp_args(&p, mem, 1);
        CHECK(compile_and_run(&p, mem, &rep));
        tp_free(&p);
    }
}

static void
matmul(const char *target, cps_dtype t, int64_t M, int64_t K, int64_t N)
{
    tp p = tp_new(target);
    void *mem[8];
    cps_sim_report rep;
    tp_make_matmul(&p, t, M, K, N);
    tp_args(&p, mem, 2);
    bool ok = compile_and_run(&p, mem, &rep);
    CHECK(ok);
    float *x = cps_arena_alloc(p.a, (size_t)(M * K) * 4), *w = cps_arena_alloc(p.a, (size_t)(K * N) * 4);
    float *y = cps_arena_alloc(p.a, (size_t)(M * N) * 4);
    cps_to_f32_n(t, mem[0], x, (size_t)(M * K));
    cps_to_f32_n(t, mem[1], w, (size_t)(K * N));
    cps_to_f32_n(t, mem[2], y, (size_t)(M * N));
    double worst = 0, top = 0;
    for (int64_t m = 0; m < M; m++)
        for (int64_t n = 0; n < N; n++) {
            double s = 0;
            for (int64_t k = 0; k < K; k++)
                s += (double)x[k * M + m] * w[k * N + n];
            worst = fmax(worst, fabs(s - y[m * N + n]));
            top = fmax(top, fabs(s));
        }
    CHECK(ok && worst <= 1e-2 * top);
    if (ok)
        printf("%s matmul %s %lldx%lldx%lld: %.1f us, error %.1e\n", target, cps_dtype_name(t),
               (long long)M, (long long)K, (long long)N, (double)rep.time_ps / 1e6, worst / top);
    tp_free(&p);
}

static void
softmax(const char *target, int64_t T, int64_t N)
{
    tp p = tp_new(target);
    void *mem[8];
    cps_sim_report rep;
    tp_make_softmax(&p, CPS_DT_BF16, T, N);
    tp_args(&p, mem, 3);
    bool ok = compile_and_run(&p, mem, &rep);
    CHECK(ok);
    float *x = cps_arena_alloc(p.a, (size_t)(T * N) * 4), *y = cps_arena_alloc(p.a, (size_t)(T * N) * 4);
    cps_to_f32_n(CPS_DT_BF16, mem[0], x, (size_t)(T * N));
    cps_to_f32_n(CPS_DT_BF16, mem[1], y, (size_t)(T * N));
    double worst = 0;
    for (int64_t r = 0; r < T; r++) {
        double m = -1e30, s = 0;
        for (int64_t i = 0; i < N; i++)
            m = fmax(m, x[r * N + i]);
        for (int64_t i = 0; i < N; i++)
            s += exp(x[r * N + i] - m);
        for (int64_t i = 0; i < N; i++)
            worst = fmax(worst, fabs(exp(x[r * N + i] - m) / s - y[r * N + i]));
    }
    CHECK(ok && worst < 1e-3);
    if (ok)
        printf("%s softmax %lldx%lld: %.1f us, error %.1e\n", target, (long long)T, (long long)N,
               (double)rep.time_ps / 1e6, worst);
    tp_free(&p);
}

int
main(void)
{
    every_op_runs();
    for (size_t i = 0; i < cps_countof(targets); i++) {
        matmul(targets[i], CPS_DT_BF16, 300, 200, 700);
        matmul(targets[i], CPS_DT_FP32, 130, 200, 600);
        softmax(targets[i], 300, 1000);
    }
    return CHECK_DONE();
}
