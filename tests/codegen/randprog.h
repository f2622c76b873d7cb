/* Random straight-line tile programs: every kind of instruction on tiles, windows and rotating
 * declarations, results shown in an output. */
#ifndef CPS_TESTS_CODEGEN_RANDPROG_H
#define CPS_TESTS_CODEGEN_RANDPROG_H

#include "tests/codegen/ops.h"
#include "tests/codegen/simrun.h"

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

static inline unsigned
below(gen *g, unsigned n)
{
    return (unsigned)cps_rng_below(&g->r, n);
}

static inline const cps_tbuf *
buf(const gen *g, uint32_t b)
{
    return &g->p.f->bufs.data[b];
}

// A tile of its own, or the next execution of a declaration with that many columns.
static inline uint32_t
new_tile(gen *g, cps_space s, cps_dtype t, int64_t parts, int64_t cols)
{
    if (s == CPS_SBUF && below(g, 3) == 0)
        return tp_tile(&g->p, "t", s, t, parts, cols, 0, 0, 0);
    unsigned d = below(g, 8) + (s == CPS_PSUM ? 8 : 0);
    return tp_tile(&g->p, "r", s, t, parts, cols, 1 + d, g->turn[d]++, 0);
}

static inline void
keep(gen *g, uint32_t t)
{
    if (g->n < cps_countof(g->tiles))
        g->tiles[g->n++] = t;
    else
        g->tiles[below(g, g->n)] = t;
}

// A fully written tile with at least `parts` partitions and `cols` columns.
static inline uint32_t
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
static inline cps_toper
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

static inline void
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

static inline void
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

/* Makes program `seed` for a target; the caller frees g->p. */
static inline void
gen_program(gen *ge, const char *target, unsigned seed)
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
    *ge = g;
}

#endif
