/* Compiled kernels on the simulator. */
#include "tests/check.h"
#include "tests/codegen/bir_round.h"
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
    cps_notes n = {0};
    cps_codegen_opts o = {.verify = true, .notes = &n};
    bool ok = cps_codegen(p->a, p->f, p->t, &o, &k, p->d);
    if (ok) // control flow and moving transfers go through BIR here
        CHECK(bir_round_trip(k, &n) && bir_round_trip(k, NULL));
    ok = ok && tp_sim(p, k, mem, rep);
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
    float *x = cps_arena_alloc(p.a, (size_t)(M * K) * 4),
          *w = cps_arena_alloc(p.a, (size_t)(K * N) * 4);
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
               (long long)M, (long long)K, (long long)N, (double)rep.time_ps / 1e6,
               worst / top);
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
    float *x = cps_arena_alloc(p.a, (size_t)(T * N) * 4),
          *y = cps_arena_alloc(p.a, (size_t)(T * N) * 4);
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
        printf("%s softmax %lldx%lld: %.1f us, error %.1e\n", target, (long long)T,
               (long long)N, (double)rep.time_ps / 1e6, worst);
    tp_free(&p);
}

static float *
floats(tp *p, cps_dtype t, const void *m, int64_t n)
{
    float *f = cps_arena_alloc(p->a, (size_t)n * 4);
    cps_to_f32_n(t, m, f, (size_t)n);
    return f;
}

// What DMA can do alone: casts, broadcasts, transposes, chip to chip, odd shapes.
static void
transfers(const char *target)
{
    tp p = tp_new(target);
    void *mem[8];
    cps_sim_report rep;
    uint32_t x = tp_hbm(&p, "x", CPS_IN, CPS_DT_FP32, 48, 100);
    uint32_t y = tp_hbm(&p, "y", CPS_OUT, CPS_DT_BF16, 128, 100);
    uint32_t z = tp_hbm(&p, "z", CPS_OUT, CPS_DT_FP32, 100, 48);
    uint32_t b = tp_hbm(&p, "b", CPS_OUT, CPS_DT_FP32, 64, 3 * 5 * 2);
    // One row to all partitions, stored as another type.
    uint32_t row = tp_tile(&p, "row", CPS_SBUF, CPS_DT_FP32, 128, 100, 0, 0, 0);
    tp_1(&p, CPS_T_DMA, tp_view(&p, row, 0, 128, 0, 100),
         tp_walk(&p, x, 0, 0, 300, 2, (cps_tdim[]){{0, 128}, {1, 100}}));
    tp_1(&p, CPS_T_DMA, tp_block(&p, y, 0, 128, 0, 100), tp_view(&p, row, 0, 128, 0, 100));
    // A transpose by element-wise walk: 100 partitions, one column of x each.
    uint32_t col = tp_tile(&p, "col", CPS_SBUF, CPS_DT_FP32, 100, 48, 0, 0, 0);
    tp_1(&p, CPS_T_DMA, tp_view(&p, col, 0, 100, 0, 48),
         tp_walk(&p, x, 0, 0, 0, 2, (cps_tdim[]){{1, 100}, {100, 48}}));
    uint32_t moved = tp_tile(&p, "moved", CPS_SBUF, CPS_DT_FP32, 128, 48, 0, 0, 0);
    tp_1(&p, CPS_T_DMA, tp_view(&p, moved, 17, 100, 0, 48), tp_view(&p, col, 0, 100, 0, 48));
    tp_1(&p, CPS_T_DMA, tp_block(&p, z, 0, 100, 0, 48), tp_view(&p, moved, 17, 100, 0, 48));
    // Five axes: three descriptors or more.
    uint32_t box = tp_tile(&p, "box", CPS_SBUF, CPS_DT_FP32, 64, 100, 0, 0, 0);
    tp_1(&p, CPS_T_MEMSET, tp_view(&p, box, 0, 64, 0, 100), cps_to_imm(-1));
    const cps_tdim far[] = {{64, 4}, {16, 16}, {7, 3}, {1, 5}, {3, 2}};
    const cps_tdim near[] = {{30, 3}, {4, 5}, {2, 2}};
    uint32_t xx = tp_hbm(&p, "xx", CPS_IN, CPS_DT_FP32, 8, 100);
    tp_1(&p, CPS_T_DMA, tp_walk(&p, box, 0, 64, 1, 3, near), tp_walk(&p, xx, 0, 0, 2, 5, far));
    tp_1(&p, CPS_T_DMA, tp_block(&p, b, 0, 64, 0, 30), tp_walk(&p, box, 0, 64, 1, 3, near));
    unsigned n = tp_args(&p, mem, 4);
    CHECK_INT(n, 5);
    CHECK(compile_and_run(&p, mem, &rep));
    const float *xs = mem[0], *zs = mem[2], *bs = mem[3], *xxs = mem[4];
    float *ys = floats(&p, CPS_DT_BF16, mem[1], 12800);
    bool ok = true;
    for (int i = 0; i < 128; i++)
        for (int k = 0; k < 100; k++)
            ok = ok && ys[i * 100 + k] == cps_round_f32(CPS_DT_BF16, xs[300 + k]);
    CHECK(ok);
    for (int i = 0; i < 100; i++)
        for (int k = 0; k < 48; k++)
            ok = ok && zs[i * 48 + k] == xs[k * 100 + i];
    CHECK(ok);
    for (int q = 0; q < 64; q++)
        for (int i = 0; i < 30; i++)
            ok = ok &&
                 bs[q * 30 + i] ==
                     xxs[2 + q / 16 * 64 + q % 16 * 16 + i / 10 * 7 + i / 2 % 5 + i % 2 * 3];
    CHECK(ok);
    tp_free(&p);
}

static void
dma_transpose(const char *target, int64_t rows, int64_t cols)
{
    tp p = tp_new(target);
    void *mem[8];
    cps_sim_report rep;
    uint32_t x = tp_hbm(&p, "x", CPS_IN, CPS_DT_BF16, rows, cols);
    uint32_t y = tp_hbm(&p, "y", CPS_OUT, CPS_DT_BF16, cols, rows);
    uint32_t t = tp_tile(&p, "t", CPS_SBUF, CPS_DT_BF16, cols, rows, 0, 0, 0);
    tp_1(&p, CPS_T_DMA_TRANSPOSE, tp_view(&p, t, 0, (int)cols, 0, rows),
         tp_block(&p, x, 0, rows, 0, cols));
    tp_1(&p, CPS_T_DMA, tp_block(&p, y, 0, cols, 0, rows),
         tp_view(&p, t, 0, (int)cols, 0, rows));
    tp_args(&p, mem, 5);
    CHECK(compile_and_run(&p, mem, &rep));
    const uint16_t *a = mem[0], *b = mem[1];
    bool ok = true;
    for (int64_t i = 0; i < rows; i++)
        for (int64_t k = 0; k < cols; k++)
            ok = ok && a[i * cols + k] == b[k * rows + i];
    CHECK(ok);
    tp_free(&p);
}

// Gathers rows by an index tile, scatters them in another order.
static void
indexed(const char *target, int64_t cols)
{
    tp p = tp_new(target);
    void *mem[8];
    cps_sim_report rep;
    uint32_t x = tp_hbm(&p, "x", CPS_IN, CPS_DT_FP32, 200, cols);
    uint32_t ix = tp_hbm(&p, "ix", CPS_IN, CPS_DT_I32, 128, 1);
    uint32_t y = tp_hbm(&p, "y", CPS_OUT, CPS_DT_FP32, 128, cols);
    uint32_t z = tp_hbm(&p, "z", CPS_OUT, CPS_DT_FP32, 200, cols);
    uint32_t it = tp_tile(&p, "it", CPS_SBUF, CPS_DT_I32, 128, 1, 0, 0, 0);
    uint32_t t = tp_tile(&p, "t", CPS_SBUF, CPS_DT_FP32, 128, cols, 0, 0, 0);
    tp_1(&p, CPS_T_DMA, tp_view(&p, it, 0, 128, 0, 1), tp_block(&p, ix, 0, 128, 0, 1));
    cps_toper index = tp_view(&p, it, 0, 128, 0, 1);
    cps_toper from = tp_block(&p, x, 0, 128, 0, cols);
    p.f->views.data[from.id].index = index.id + 1;
    tp_1(&p, CPS_T_DMA, tp_view(&p, t, 0, 128, 0, cols), from);
    tp_1(&p, CPS_T_DMA, tp_block(&p, y, 0, 128, 0, cols), tp_view(&p, t, 0, 128, 0, cols));
    cps_toper to = tp_block(&p, z, 0, 128, 0, cols);
    p.f->views.data[to.id].index = index.id + 1;
    tp_1(&p, CPS_T_DMA, to, tp_view(&p, t, 0, 128, 0, cols));
    tp_args(&p, mem, 6);
    for (int i = 0; i < 128; i++)
        ((int32_t *)mem[1])[i] = i * 37 % 200; // all different: rows are written once
    CHECK(compile_and_run(&p, mem, &rep));
    const float *a = mem[0], *b = mem[2], *c = mem[3];
    const int32_t *ids = mem[1];
    bool ok = true;
    for (int i = 0; i < 128; i++)
        for (int64_t k = 0; k < cols; k++) {
            ok = ok && b[i * cols + k] == a[ids[i] * cols + k];
            ok = ok && c[ids[i] * cols + k] == a[ids[i] * cols + k];
        }
    CHECK(ok);
    // An index beyond the tensor is refused by the machine.
    int32_t *bad = mem[1];
    bad[77] = 200;
    cps_diags_clear(p.d);
    cps_kbin *k = NULL;
    CHECK(cps_codegen(p.a, p.f, p.t, NULL, &k, p.d));
    CHECK(k && !tp_sim(&p, k, mem, &rep));
    tp_free(&p);
}

static cps_toper
of_reg(uint32_t r)
{
    return (cps_toper){.kind = CPS_TO_REG, .id = r};
}

static cps_toper
number(int64_t v)
{
    return (cps_toper){.kind = CPS_TO_IMM, .imm = (float)v, .is_int = true, .ival = v};
}

static cps_toper
moving(tp *p, cps_toper v, uint32_t r, int64_t step)
{
    p->f->views.data[v.id].reg = r;
    p->f->views.data[v.id].reg_step = step;
    return v;
}

static void
loop(tp *p, uint32_t r, cps_toper from, cps_toper to)
{
    cps_tinst *i = tp_inst(p, CPS_T_LOOP, 1, 2);
    i->out[0] = of_reg(r);
    i->in[0] = from;
    i->in[1] = to;
}

// y = x * 2 where the row block is even, x + 1 where it is odd, last block untouched by a bound
// that is read from memory.
static void
control(const char *target)
{
    tp p = tp_new(target);
    void *mem[8];
    cps_sim_report rep;
    uint32_t x = tp_hbm(&p, "x", CPS_IN, CPS_DT_FP32, 512, 40);
    uint32_t n = tp_hbm(&p, "n", CPS_IN, CPS_DT_I32, 1, 1);
    uint32_t y = tp_hbm(&p, "y", CPS_OUT, CPS_DT_FP32, 640, 40);
    uint32_t rn = tp_reg(&p, "n"), ri = tp_reg(&p, "i"), rp = tp_reg(&p, "p"), rz = tp_reg(&p, "z");
    uint32_t nt = tp_tile(&p, "nt", CPS_SBUF, CPS_DT_I32, 1, 1, 0, 0, 0);
    uint32_t t = tp_tile(&p, "t", CPS_SBUF, CPS_DT_FP32, 128, 40, 0, 0, 0);
    uint32_t u = tp_tile(&p, "u", CPS_SBUF, CPS_DT_FP32, 128, 160, 0, 0, 0);
    tp_1(&p, CPS_T_DMA, tp_view(&p, nt, 0, 1, 0, 1), tp_block(&p, n, 0, 1, 0, 1));
    cps_tinst *i = tp_inst(&p, CPS_T_REG_LOAD, 1, 1);
    i->out[0] = of_reg(rn);
    i->in[0] = tp_view(&p, nt, 0, 1, 0, 1);
    tp_1(&p, CPS_T_MEMSET, tp_view(&p, u, 0, 128, 0, 160), cps_to_imm(-5));
    loop(&p, ri, number(0), of_reg(rn));
    tp_1(&p, CPS_T_DMA, tp_view(&p, t, 0, 128, 0, 40),
         moving(&p, tp_block(&p, x, 0, 128, 0, 40), ri, 128 * 40));
    i = tp_inst(&p, CPS_T_REG_ALU, 1, 2);
    i->out[0] = of_reg(rp);
    i->in[0] = of_reg(ri);
    i->in[1] = number(1);
    cps_tinst_set(i, CPS_TA_OP0, CPS_ALU_BITWISE_AND);
    i = tp_inst(&p, CPS_T_WHEN, 0, 2);
    i->in[0] = of_reg(rp);
    i->in[1] = number(0);
    cps_tinst_set(i, CPS_TA_OP0, CPS_ALU_IS_EQ);
    i = tp_3(&p, CPS_T_TENSOR_SCALAR, moving(&p, tp_view(&p, u, 0, 128, 0, 40), ri, 40),
             tp_view(&p, t, 0, 128, 0, 40), cps_to_imm(2), cps_to_imm(0));
    cps_tinst_set(i, CPS_TA_OP0, CPS_ALU_MULT);
    tp_inst(&p, CPS_T_ELSE, 0, 0);
    tp_act(&p, CPS_ACTFN_IDENTITY, moving(&p, tp_view(&p, u, 0, 128, 0, 40), ri, 40),
           tp_view(&p, t, 0, 128, 0, 40), cps_to_imm(1), cps_to_imm(1));
    tp_inst(&p, CPS_T_END, 0, 0);
    tp_1(&p, CPS_T_DMA, moving(&p, tp_block(&p, y, 0, 128, 0, 40), ri, 128 * 40),
         moving(&p, tp_view(&p, u, 0, 128, 0, 40), ri, 40));
    tp_inst(&p, CPS_T_END, 0, 0);
    // A loop that never runs, and one whose bounds are numbers.
    loop(&p, rz, number(3), number(3));
    tp_1(&p, CPS_T_MEMSET, tp_view(&p, u, 0, 128, 0, 40), cps_to_imm(7));
    tp_inst(&p, CPS_T_END, 0, 0);
    loop(&p, rz, number(3), number(5));
    tp_1(&p, CPS_T_DMA, moving(&p, tp_block(&p, y, 0, 128, 0, 40), rz, 128 * 40),
         tp_view(&p, u, 0, 128, 120, 40));
    tp_inst(&p, CPS_T_END, 0, 0);
    tp_args(&p, mem, 7);
    *(int32_t *)mem[1] = 3;
    CHECK(compile_and_run(&p, mem, &rep));
    const float *a = mem[0], *b = mem[2];
    bool ok = true;
    for (int r = 0; r < 640; r++)
        for (int k = 0; k < 40; k++) {
            float v = a[(r % 512) * 40 + k], w = r / 128 % 2 ? v + 1 : v * 2;
            ok = ok && b[r * 40 + k] == (r < 384 ? w : -5);
        }
    CHECK(ok);
    tp_free(&p);
}

// Three blocks of 64 rows turn: on their way to a tile, and from tensor to tensor two at a
// time.
static void
moving_transpose(const char *target)
{
    enum { N = 3, ROWS = 64, COLS = 48 };
    tp p = tp_new(target);
    void *mem[8];
    cps_sim_report rep;
    uint32_t x = tp_hbm(&p, "x", CPS_IN, CPS_DT_BF16, N * ROWS, 2 * COLS);
    uint32_t y = tp_hbm(&p, "y", CPS_OUT, CPS_DT_BF16, N * COLS, ROWS);
    uint32_t z = tp_hbm(&p, "z", CPS_OUT, CPS_DT_BF16, N * 2 * COLS, ROWS);
    uint32_t t = tp_tile(&p, "t", CPS_SBUF, CPS_DT_BF16, COLS, ROWS, 0, 0, 0),
             ri = tp_reg(&p, "i");
    loop(&p, ri, number(0), number(N));
    tp_1(&p, CPS_T_DMA_TRANSPOSE, tp_view(&p, t, 0, COLS, 0, ROWS),
         moving(&p, tp_block(&p, x, 0, ROWS, 0, COLS), ri, ROWS * 2 * COLS));
    tp_1(&p, CPS_T_DMA, moving(&p, tp_block(&p, y, 0, COLS, 0, ROWS), ri, COLS * ROWS),
         tp_view(&p, t, 0, COLS, 0, ROWS));
    cps_toper from =
        tp_walk(&p, x, 0, 0, 0, 3, (cps_tdim[]){{COLS, 2}, {2 * COLS, ROWS}, {1, COLS}});
    cps_toper to =
        tp_walk(&p, z, 0, 0, 0, 3, (cps_tdim[]){{COLS * ROWS, 2}, {ROWS, COLS}, {1, ROWS}});
    tp_1(&p, CPS_T_DMA_TRANSPOSE, moving(&p, to, ri, 2 * COLS * ROWS),
         moving(&p, from, ri, ROWS * 2 * COLS));
    tp_inst(&p, CPS_T_END, 0, 0);
    tp_args(&p, mem, 9);
    CHECK(compile_and_run(&p, mem, &rep));
    const uint16_t *a = mem[0], *b = mem[1], *c = mem[2];
    bool ok = true;
    for (int i = 0; i < N * ROWS; i++)
        for (int k = 0; k < 2 * COLS; k++) {
            uint16_t v = a[i * 2 * COLS + k];
            int turn = i / ROWS, row = i % ROWS;
            ok = ok && (k >= COLS || b[(turn * COLS + k) * ROWS + row] == v);
            ok = ok && c[(turn * 2 * COLS + k) * ROWS + row] == v;
        }
    CHECK(ok);
    tp_free(&p);
}

// What the record does not hold is refused, with a word on it.
static void
moving_transpose_refused(int64_t rows, int64_t cols)
{
    tp p = tp_new("trn2");
    cps_kbin *k = NULL;
    uint32_t x = tp_hbm(&p, "x", CPS_IN, CPS_DT_BF16, 4 * rows, cols);
    uint32_t y = tp_hbm(&p, "y", CPS_OUT, CPS_DT_BF16, 4 * cols, rows), ri = tp_reg(&p, "i");
    loop(&p, ri, number(0), number(4));
    tp_1(&p, CPS_T_DMA_TRANSPOSE,
         moving(&p, tp_block(&p, y, 0, cols, 0, rows), ri, cols * rows),
         moving(&p, tp_block(&p, x, 0, rows, 0, cols), ri, rows * cols));
    tp_inst(&p, CPS_T_END, 0, 0);
    CHECK(!cps_codegen(p.a, p.f, p.t, NULL, &k, p.d) && cps_diags_count(p.d) == 1 &&
          cps_diags_code(p.d, 0) == CPS_E5305);
    tp_free(&p);
}

int
main(void)
{
    moving_transpose_refused(24, 64);  // rows are no multiple of 16
    moving_transpose_refused(32, 192); // columns of more than 256 bytes
    every_op_runs();
    for (size_t i = 0; i < cps_countof(targets); i++) {
        matmul(targets[i], CPS_DT_BF16, 300, 200, 700);
        matmul(targets[i], CPS_DT_FP32, 130, 200, 600);
        softmax(targets[i], 300, 1000);
        transfers(targets[i]);
        if (cps_target_find(targets[i])->dma_transpose) {
            dma_transpose(targets[i], 64, 96);
            dma_transpose(targets[i], 128, 128);
            moving_transpose(targets[i]);
        }
        indexed(targets[i], 64);
        indexed(targets[i], 90);
        control(targets[i]);
    }
    return CHECK_DONE();
}
