/* The compiled kernel, executed by the simulator, gives what the tile program means: outputs of
 * evaluator and simulator are equal bit for bit, with races, uninitialised reads and bounds
 * checked. On programs with every instruction, on tiled kernels of ragged sizes, and on random
 * straight-line programs. */
#include "tests/check.h"
#include "tests/codegen/ops.h"
#include "tests/codegen/simrun.h"

#include <math.h>
#include <stdlib.h>

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

// Every pass leaves a program that the verifier of the tile level takes.
static bool
verify_after(void *ctx, const char *pass, const cps_tfunc *f, cps_diags *d)
{
    bool ok = cps_tile_verify(f, ctx, d);
    if (!ok)
        fprintf(stderr, "after pass '%s':\n", pass);
    return ok;
}

// Compiles, simulates, evaluates and compares. `what` names the program in messages.
static bool
agree(tp *p, const char *what, uint64_t seed, bool keep_order)
{
    void *a[16], *b[16];
    cps_kbin *k = NULL;
    cps_sim_report rep;
    cps_codegen_opts o = {.verify = true,
                          .keep_order = keep_order,
                          .after = verify_after,
                          .ctx = (void *)(uintptr_t)p->t};
    bool ok = cps_tile_verify(p->f, p->t, p->d);
    unsigned n = tp_args(p, a, seed), at = 0;
    tp_args(p, b, seed);
    ok = ok && cps_codegen(p->a, p->f, p->t, &o, &k, p->d) && tp_sim(p, k, a, &rep) &&
         cps_tile_eval(p->f, b, p->d);
    if (!ok) {
        fprintf(stderr, "%s on %s:\n", what, p->t->name);
        report(p);
        return false;
    }
    for (uint32_t i = 1; i < p->f->bufs.n && at < n; i++) {
        const cps_tbuf *t = &p->f->bufs.data[i];
        if (t->space != CPS_HBM || t->role == CPS_LOCAL || t->role == CPS_DATA)
            continue;
        size_t bytes = (size_t)cps_tbuf_bytes(t), es = cps_dtype_bytes(t->dtype);
        const uint8_t *x = a[at], *y = b[at];
        at++;
        for (size_t q = 0; q < bytes; q++)
            if (x[q] != y[q]) {
                size_t e = q / es;
                fprintf(stderr, "%s on %s: '%s' element %zu (row %zu, column %zu): simulator ",
                        what, p->t->name, t->name, e, e / (size_t)t->dim[1],
                        e % (size_t)t->dim[1]);
                fprintf(stderr, "%.9g, evaluator %.9g\n", cps_to_f64(t->dtype, x + e * es),
                        cps_to_f64(t->dtype, y + e * es));
                return false;
            }
    }
    return true;
}

// ---- random programs ----

typedef struct gen {
    tp p;
    cps_rng r;
    uint32_t tiles[96]; // fully written SBUF tiles
    unsigned n;
    uint32_t turn[16]; // executions of each declaration
    uint32_t ring_buf[16];
    uint32_t out;
    int64_t out_row;
    uint32_t tmp;
} gen;

static unsigned
below(gen *g, unsigned n)
{
    return (unsigned)cps_rng_below(&g->r, n);
}

static const cps_tbuf *
buf(const gen *g, uint32_t b)
{
    return &g->p.f->bufs.data[b];
}

// A tile of its own, or the next execution of a declaration with that many columns.
static uint32_t
new_tile(gen *g, cps_space s, cps_dtype t, int64_t parts, int64_t cols)
{
    if (s == CPS_SBUF && below(g, 3) == 0)
        return tp_tile(&g->p, "t", s, t, parts, cols, 0, 0, 0);
    unsigned d = below(g, 8) + (s == CPS_PSUM ? 8 : 0);
    return tp_tile(&g->p, "r", s, t, parts, cols, 1 + d, g->turn[d]++, 0);
}

static void
keep(gen *g, uint32_t t)
{
    if (g->n < cps_countof(g->tiles))
        g->tiles[g->n++] = t;
    else
        g->tiles[below(g, g->n)] = t;
}

// A fully written tile with at least `parts` partitions and `cols` columns.
static uint32_t
pick(gen *g, int64_t parts, int64_t cols, bool floats)
{
    unsigned at = below(g, g->n);
    for (unsigned i = 0; i < g->n; i++) {
        uint32_t t = g->tiles[(at + i) % g->n];
        const cps_tbuf *b = buf(g, t);
        if (b->dim[0] >= parts && b->dim[1] >= cols &&
            (!floats || cps_dtype_is_float(b->dtype)))
            return t;
    }
    return 0;
}

// A window of a tile: its first partition is `part`, columns are a run or every second one.
static cps_toper
window(gen *g, uint32_t t, int part, int parts, int64_t cols)
{
    int64_t room = buf(g, t)->dim[1];
    if (2 * cols <= room && below(g, 3) == 0)
        return tp_walk(&g->p, t, part, parts, below(g, 2), 1, (cps_tdim[]){{2, cols}});
    if (cols % 4 == 0 && cols + 4 <= room && below(g, 4) == 0) // two axes with a gap
        return tp_walk(&g->p, t, part, parts, 0, 2,
                       (cps_tdim[]){{cols / 4 + 1, 4}, {1, cols / 4}});
    return tp_view(&g->p, t, part, parts, below(g, (unsigned)(room - cols) + 1), cols);
}

static void
show(gen *g, uint32_t t)
{
    const cps_tbuf *b = buf(g, t);
    int parts = (int)b->dim[0];
    int64_t cols = b->dim[1];
    if (g->out_row + parts > 4096)
        return;
    uint32_t src = t;
    if (b->dtype != CPS_DT_FP32) {
        src = new_tile(g, CPS_SBUF, CPS_DT_FP32, parts, cols);
        tp_1(&g->p, CPS_T_COPY, tp_view(&g->p, src, 0, parts, 0, cols),
             tp_view(&g->p, t, 0, parts, 0, cols));
    }
    tp_1(&g->p, CPS_T_DMA, tp_block(&g->p, g->out, g->out_row, parts, 0, cols),
         tp_view(&g->p, src, 0, parts, 0, cols));
    g->out_row += parts;
}

static const int64_t widths[] = {1, 8, 24, 33, 64};
static const int starts[][2] = {{0, 128}, {0, 64}, {0, 20}, {32, 32}, {64, 64}, {96, 17}};

static void
step(gen *g)
{
    static const cps_dtype types[] = {CPS_DT_FP32, CPS_DT_BF16, CPS_DT_FP16};
    tp *p = &g->p;
    const int *place = starts[below(g, cps_countof(starts))];
    int part = place[0], parts = place[1];
    int64_t cols = widths[below(g, cps_countof(widths))];
    cps_dtype type = types[below(g, 3)];
    uint32_t a = pick(g, part + parts, cols, true), b = pick(g, part + parts, cols, true);
    if (!a || !b)
        return;
    // The result: a new tile, or a window of one that is complete already.
    bool fresh = below(g, 2);
    uint32_t o =
        fresh ? new_tile(g, CPS_SBUF, type, parts, cols) : pick(g, part + parts, cols, true);
    cps_toper out = fresh ? tp_view(p, o, 0, parts, 0, cols) : window(g, o, part, parts, cols);
    cps_toper in = window(g, a, part, parts, cols), in2 = window(g, b, part, parts, cols);
    float c = (float)below(g, 9) / 4 - 1;
    cps_tinst *i;
    static const cps_alu alu[] = {CPS_ALU_ADD, CPS_ALU_SUBTRACT, CPS_ALU_MAX, CPS_ALU_MULT};
    static const cps_actfn fns[] = {CPS_ACTFN_TANH, CPS_ACTFN_SQUARE,   CPS_ACTFN_SIGMOID,
                                    CPS_ACTFN_RELU, CPS_ACTFN_IDENTITY, CPS_ACTFN_GELU};
    switch (below(g, 14)) {
    case 0:
    case 1:
        i = tp_2(p, CPS_T_TENSOR_TENSOR, out, in, in2);
        cps_tinst_set(i, CPS_TA_OP0, (int32_t)alu[below(g, 3)]);
        break;
    case 2:
        i = tp_3(p, CPS_T_TENSOR_SCALAR, out, in, cps_to_imm(c),
                 below(g, 2) ? cps_to_imm(1 - c) : window(g, b, part, parts, 1));
        tp_alu(i, CPS_ALU_MULT, alu[below(g, 3)]);
        break;
    case 3:
    case 4:
        tp_act(p, fns[below(g, cps_countof(fns))], out, in, cps_to_imm(0.5f),
               below(g, 2) ? cps_to_imm(c) : window(g, b, part, parts, 1));
        break;
    case 5:
        tp_alu(tp_3(p, CPS_T_STT, out, in, cps_to_imm(0.25f), in2), CPS_ALU_MULT,
               alu[below(g, 3)]);
        break;
    case 6:
        tp_1(p, CPS_T_COPY, out, in);
        break;
    case 7:
        if (!fresh)
            tp_1(p, CPS_T_MEMSET, out, cps_to_imm(c));
        else
            tp_1(p, CPS_T_COPY, out, in2);
        break;
    case 8: { // sum of each row with the squares as a by-product
        uint32_t s = new_tile(g, CPS_SBUF, CPS_DT_FP32, parts, 1);
        i = tp_inst(p, CPS_T_ACTIVATION, 2, 3);
        cps_tinst_set(i, CPS_TA_FUNC, CPS_ACTFN_TANH);
        cps_tinst_set(i, CPS_TA_ACC, 3);
        i->out[0] = out;
        i->out[1] = tp_view(p, s, 0, parts, 0, 1);
        i->in[0] = in;
        i->in[1] = cps_to_imm(1);
        i->in[2] = cps_to_imm(0);
        keep(g, s);
        break;
    }
    case 9: { // a maximum over rows
        uint32_t s = new_tile(g, CPS_SBUF, CPS_DT_FP32, parts, 1);
        i = tp_1(p, CPS_T_TENSOR_REDUCE, tp_view(p, s, 0, parts, 0, 1), in);
        cps_tinst_set(i, CPS_TA_OP0, CPS_ALU_MAX);
        cps_tinst_set(i, CPS_TA_AXES, g->p.f->views.data[in.id].nd);
        keep(g, s);
        tp_1(p, CPS_T_COPY, out, in);
        break;
    }
    case 10: { // through the PE: w' @ x, then out of PSUM
        int64_t m = CPS_MIN(cols, 32);
        uint32_t w = new_tile(g, CPS_SBUF, CPS_DT_BF16, parts, m);
        uint32_t x = new_tile(g, CPS_SBUF, CPS_DT_BF16, parts, cols);
        uint32_t acc = new_tile(g, CPS_PSUM, CPS_DT_FP32, m, cols);
        tp_1(p, CPS_T_COPY, tp_view(p, w, 0, parts, 0, m), window(g, a, part, parts, m));
        tp_act(p, CPS_ACTFN_TANH, tp_view(p, x, 0, parts, 0, cols), in2, cps_to_imm(1),
               cps_to_imm(0));
        int times = 1 + (int)below(g, 3);
        for (int k = 0; k < times; k++)
            tp_matmul(p, tp_view(p, acc, 0, (int)m, 0, cols), tp_view(p, w, 0, parts, 0, m),
                      tp_view(p, x, 0, parts, 0, cols), k == 0, k == times - 1);
        uint32_t y = new_tile(g, CPS_SBUF, type, m, cols);
        tp_1(p, CPS_T_COPY, tp_view(p, y, 0, (int)m, 0, cols),
             tp_view(p, acc, 0, (int)m, 0, cols));
        keep(g, y);
        tp_1(p, CPS_T_COPY, out, in);
        break;
    }
    case 11: { // to other partitions, by DMA
        uint32_t y = new_tile(g, CPS_SBUF, buf(g, a)->dtype, 128, cols);
        tp_1(p, CPS_T_MEMSET, tp_view(p, y, 0, 128, 0, cols), cps_to_imm(c));
        tp_1(p, CPS_T_DMA,
             tp_view(p, y, (int)below(g, (unsigned)(128 - parts) + 1), parts, 0, cols), in);
        keep(g, y);
        tp_1(p, CPS_T_COPY, out, in2);
        break;
    }
    case 12: { // out to private HBM and back, possibly over what was there
        int64_t row = below(g, 64);
        tp_1(p, CPS_T_DMA, tp_block(p, g->tmp, row, parts, 0, cols), in);
        uint32_t y = new_tile(g, CPS_SBUF, CPS_DT_FP32, parts, cols);
        tp_1(p, CPS_T_DMA, tp_view(p, y, 0, parts, 0, cols),
             tp_block(p, g->tmp, row, parts, 0, cols));
        keep(g, y);
        tp_1(p, CPS_T_COPY, out, in2);
        break;
    }
    default:
        i = tp_inst(p, CPS_T_IOTA, 1, 0);
        i->out[0] = out;
        cps_tinst_set(i, CPS_TA_BASE, (int32_t)below(g, 10));
        cps_tinst_set(i, CPS_TA_CHANNEL, 1);
        cps_tview *v = &p->f->views.data[out.id];
        cps_tlist l = {.n = v->nd};
        for (int k = 0; k < v->nd; k++)
            l.v[k] = (int32_t)below(g, 5);
        cps_vec_push(p->a, &p->f->lists, l);
        cps_tinst_set(i, CPS_TA_PATTERN, (int32_t)p->f->lists.n - 1);
        break;
    }
    if (fresh)
        keep(g, o);
    if (below(g, 6) == 0)
        show(g, g->tiles[below(g, g->n)]);
}

static bool
random_program(const char *target, unsigned seed)
{
    gen g = {.p = tp_new(target)};
    cps_rng_init(&g.r, seed, 99);
    uint32_t x = tp_hbm(&g.p, "x", CPS_IN, CPS_DT_FP32, 512, 64);
    g.out = tp_hbm(&g.p, "y", CPS_OUT, CPS_DT_FP32, 4096, 64);
    g.tmp = tp_hbm(&g.p, "tmp", CPS_LOCAL, CPS_DT_FP32, 256, 64);
    for (int64_t i = 0; i < 4; i++) {
        uint32_t t =
            tp_tile(&g.p, "x", CPS_SBUF, i % 2 ? CPS_DT_BF16 : CPS_DT_FP32, 128, 64, 0, 0, 0);
        tp_1(&g.p, CPS_T_DMA, tp_view(&g.p, t, 0, 128, 0, 64),
             tp_block(&g.p, x, 128 * i, 128, 0, 64));
        keep(&g, t);
    }
    unsigned steps = 20 + below(&g, 40);
    for (unsigned i = 0; i < steps; i++)
        step(&g);
    for (unsigned i = 0; i < 6; i++)
        show(&g, g.tiles[below(&g, g.n)]);
    char what[32];
    snprintf(what, sizeof what, "random program %u", seed);
    bool ok = agree(&g.p, what, seed, below(&g, 4) == 0);
    tp_free(&g.p);
    return ok;
}

// Every function and operator over plain, large, tiny and special values.
static bool
functions(const char *target)
{
    static const struct {
        unsigned wire;
        const char *name;
    } fns[] = {
#define CPS_ACTFN(id, wire, name, other, set, sure) {wire, name},
#include "codegen/isa/act.def"
    };
    static const cps_alu alus[] = {CPS_ALU_ADD,   CPS_ALU_SUBTRACT,    CPS_ALU_MULT,
                                   CPS_ALU_MAX,   CPS_ALU_MIN,         CPS_ALU_IS_GT,
                                   CPS_ALU_IS_EQ, CPS_ALU_LOGICAL_AND, CPS_ALU_ABS_DIFF};
    tp p = tp_new(target);
    uint32_t x = tp_hbm(&p, "x", CPS_IN, CPS_DT_FP32, 128, 64);
    uint32_t y = tp_hbm(&p, "y", CPS_OUT, CPS_DT_FP32, 128, 64 * 50);
    uint32_t t = tp_tile(&p, "t", CPS_SBUF, CPS_DT_FP32, 128, 64, 0, 0, 0);
    tp_1(&p, CPS_T_DMA, tp_view(&p, t, 0, 128, 0, 64), tp_block(&p, x, 0, 128, 0, 64));
    for (size_t i = 0; i < cps_countof(fns) + cps_countof(alus); i++) {
        uint32_t o = tp_tile(&p, "o", CPS_SBUF, CPS_DT_FP32, 128, 64, 1, (uint32_t)i, 0);
        if (i < cps_countof(fns))
            tp_act(&p, (cps_actfn)fns[i].wire, tp_view(&p, o, 0, 128, 0, 64),
                   tp_view(&p, t, 0, 128, 0, 64), cps_to_imm(1), cps_to_imm(0));
        else
            cps_tinst_set(tp_2(&p, CPS_T_TENSOR_TENSOR, tp_view(&p, o, 0, 128, 0, 64),
                               tp_view(&p, t, 0, 128, 0, 64),
                               tp_walk(&p, t, 0, 128, 63, 1, (cps_tdim[]){{-1, 64}})),
                          CPS_TA_OP0, (int32_t)alus[i - cps_countof(fns)]);
        tp_1(&p, CPS_T_DMA, tp_block(&p, y, 0, 128, 64 * (int64_t)i, 64),
             tp_view(&p, o, 0, 128, 0, 64));
    }
    void *a[2], *b[2];
    cps_kbin *k = NULL;
    cps_sim_report rep;
    tp_args(&p, a, 8);
    tp_args(&p, b, 8);
    float *v = a[0];
    for (int i = 0; i < 128 * 64; i++)
        v[i] *= (float[]){1, 8, 100, 1e-3f, 1e20f, 0, -0.0f, 1}[i / 64 % 8];
    v[64] = INFINITY;
    v[65] = -INFINITY;
    memcpy(b[0], a[0], 128 * 64 * 4);
    bool ok = cps_codegen(p.a, p.f, p.t, NULL, &k, p.d) && tp_sim(&p, k, a, &rep) &&
              cps_tile_eval(p.f, b, p.d);
    if (!ok)
        report(&p);
    const float *s = a[1], *e = b[1];
    bool wrong = false;
    for (size_t i = 0; ok && i < cps_countof(fns) + cps_countof(alus); i++)
        for (int q = 0; q < 128 * 64; q++) {
            size_t at = (size_t)(q / 64) * 64 * 50 + 64 * i + (size_t)(q % 64);
            bool same = !memcmp(&s[at], &e[at], 4) || (s[at] != s[at] && e[at] != e[at]);
            if (!same) {
                fprintf(stderr, "%s(%.9g): simulator %.9g, evaluator %.9g\n",
                        i < cps_countof(fns) ? fns[i].name
                                             : cps_alu_name(alus[i - cps_countof(fns)]),
                        (double)v[q], (double)s[at], (double)e[at]);
                wrong = true;
                break;
            }
        }
    tp_free(&p);
    return ok && !wrong;
}

int
main(int argc, char **argv)
{
    if (argc == 1)
        CHECK(functions("trn2"));
    unsigned first = argc > 1 ? (unsigned)atoi(argv[1]) : 0,
             count = argc > 2 ? (unsigned)atoi(argv[2]) : 12;
    for (unsigned s = first; s < first + count; s++)
        for (size_t i = 0; i < cps_countof(targets); i++)
            CHECK(random_program(targets[i], s));
    if (argc > 1)
        return CHECK_DONE();
    for (size_t i = 0; i < cps_countof(targets); i++) {
        tp p = tp_new(targets[i]);
        tp_make_ops(&p);
        CHECK(agree(&p, "every op", 1, false));
        tp_free(&p);
        for (int t = 0; t < 3; t++) {
            static const cps_dtype types[] = {CPS_DT_BF16, CPS_DT_FP32, CPS_DT_FP8E4M3};
            p = tp_new(targets[i]);
            tp_make_matmul(&p, types[t], 200, 300, 600);
            CHECK(agree(&p, "matmul", 2, false));
            tp_free(&p);
        }
        p = tp_new(targets[i]);
        tp_make_softmax(&p, CPS_DT_BF16, 300, 257);
        CHECK(agree(&p, "softmax", 3, false));
        tp_free(&p);
    }
    return CHECK_DONE();
}
