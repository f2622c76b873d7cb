/* Tile programs made by hand, in a few words. */
#ifndef CPS_TESTS_CODEGEN_TP_H
#define CPS_TESTS_CODEGEN_TP_H

#include "codegen/codegen.h"

typedef struct tp {
    cps_arena *a;
    cps_diags *d;
    cps_tfunc *f;
    const cps_target *t;
} tp;

static inline tp
tp_new(const char *target)
{
    tp p = {.a = cps_arena_create(), .d = cps_diags_create(), .t = cps_target_find(target)};
    cps_assert(p.t);
    p.f = cps_tile_new(p.a, "test", target);
    p.f->cores = 1;
    return p;
}

static inline void
tp_free(tp *p)
{
    cps_diags_destroy(p->d);
    cps_arena_destroy(p->a);
}

static inline uint32_t
tp_hbm(tp *p, const char *name, cps_role role, cps_dtype t, int64_t rows, int64_t cols)
{
    cps_tbuf b = {.name = name,
                  .space = CPS_HBM,
                  .role = role,
                  .dtype = t,
                  .rank = 2,
                  .dim = {rows, cols},
                  .pin_byte = -1,
                  .pin_bank = -1,
                  .pin_part = -1};
    return cps_tile_buf(p->f, b);
}

/* Execution `turn` of declaration `ring` with `slots` slots (0: the compiler's choice). */
static inline uint32_t
tp_tile(tp *p, const char *name, cps_space s, cps_dtype t, int64_t parts, int64_t cols,
        uint32_t ring, uint32_t turn, unsigned slots)
{
    cps_tbuf b = {.name = name,
                  .space = s,
                  .dtype = t,
                  .rank = 2,
                  .dim = {parts, cols},
                  .ring = ring,
                  .turn = turn,
                  .slots = (uint16_t)slots,
                  .pin_byte = -1,
                  .pin_bank = -1,
                  .pin_part = -1};
    return cps_tile_buf(p->f, b);
}

static inline cps_dtype
tp_dtype(const tp *p, uint32_t buf)
{
    return p->f->bufs.data[buf].dtype;
}

/* Rows [part, part+parts) and columns [c, c+n) of an on-chip tile. */
static inline cps_toper
tp_view(tp *p, uint32_t buf, int part, int parts, int64_t c, int64_t n)
{
    cps_tview v = {.buf = buf,
                   .dtype = tp_dtype(p, buf),
                   .part = (uint16_t)part,
                   .parts = (uint16_t)parts,
                   .off = c,
                   .nd = 1};
    v.d[0] = (cps_tdim){1, n};
    return cps_to_view(cps_tile_view(p->f, v));
}

/* Any walk. */
static inline cps_toper
tp_walk(tp *p, uint32_t buf, int part, int parts, int64_t off, int nd, const cps_tdim *d)
{
    cps_tview v = {.buf = buf,
                   .dtype = tp_dtype(p, buf),
                   .part = (uint16_t)part,
                   .parts = (uint16_t)parts,
                   .off = off,
                   .nd = nd};
    for (int i = 0; i < nd; i++)
        v.d[i] = d[i];
    return cps_to_view(cps_tile_view(p->f, v));
}

/* Rows [r, r+rn) and columns [c, c+cn) of a tensor in HBM. */
static inline cps_toper
tp_block(tp *p, uint32_t buf, int64_t r, int64_t rn, int64_t c, int64_t cn)
{
    int64_t pitch = p->f->bufs.data[buf].dim[1];
    return tp_walk(p, buf, 0, 0, r * pitch + c, 2, (cps_tdim[]){{pitch, rn}, {1, cn}});
}

static inline cps_tinst *
tp_inst(tp *p, cps_top op, int nout, int nin)
{
    cps_tinst *i = cps_tile_inst(p->f, op, CPS_NOSPAN);
    i->nout = (uint8_t)nout;
    i->nin = (uint8_t)nin;
    return i;
}

static inline cps_tinst *
tp_1(tp *p, cps_top op, cps_toper out, cps_toper a)
{
    cps_tinst *i = tp_inst(p, op, 1, 1);
    i->out[0] = out;
    i->in[0] = a;
    return i;
}

static inline cps_tinst *
tp_2(tp *p, cps_top op, cps_toper out, cps_toper a, cps_toper b)
{
    cps_tinst *i = tp_inst(p, op, 1, 2);
    i->out[0] = out;
    i->in[0] = a;
    i->in[1] = b;
    return i;
}

static inline cps_tinst *
tp_3(tp *p, cps_top op, cps_toper out, cps_toper a, cps_toper b, cps_toper c)
{
    cps_tinst *i = tp_inst(p, op, 1, 3);
    i->out[0] = out;
    i->in[0] = a;
    i->in[1] = b;
    i->in[2] = c;
    return i;
}

static inline void
tp_matmul(tp *p, cps_toper out, cps_toper w, cps_toper x, bool start, bool stop)
{
    cps_tinst *i = tp_2(p, CPS_T_MATMUL, out, w, x);
    cps_tinst_set(i, CPS_TA_START, start);
    cps_tinst_set(i, CPS_TA_STOP, stop);
}

static inline void
tp_act(tp *p, cps_actfn fn, cps_toper out, cps_toper x, cps_toper scale, cps_toper bias)
{
    cps_tinst *i = tp_3(p, CPS_T_ACTIVATION, out, x, scale, bias);
    cps_tinst_set(i, CPS_TA_FUNC, (int32_t)fn);
}

/* y[M,N] = xT[K,M]' @ w[K,N] in tiles of 128 x 128 x 512. */
static inline void
tp_make_matmul(tp *p, cps_dtype t, int64_t M, int64_t K, int64_t N)
{
    uint32_t x = tp_hbm(p, "xt", CPS_IN, t, K, M), w = tp_hbm(p, "w", CPS_IN, t, K, N);
    uint32_t y = tp_hbm(p, "y", CPS_OUT, t, M, N);
    uint32_t nx = 0, nw = 0, na = 0;
    for (int64_t n = 0; n < N; n += 512) {
        int64_t ns = CPS_MIN(512, N - n);
        uint32_t kb = 0, wt[64];
        for (int64_t k = 0; k < K; k += 128, kb++) {
            int64_t ks = CPS_MIN(128, K - k);
            wt[kb] = tp_tile(p, "wt", CPS_SBUF, t, ks, ns, 1, nw++, 0);
            tp_1(p, CPS_T_DMA, tp_view(p, wt[kb], 0, (int)ks, 0, ns),
                 tp_block(p, w, k, ks, n, ns));
        }
        for (int64_t m = 0; m < M; m += 128) {
            int64_t ms = CPS_MIN(128, M - m);
            uint32_t acc = tp_tile(p, "acc", CPS_PSUM, CPS_DT_FP32, ms, ns, 2, na, 0);
            kb = 0;
            for (int64_t k = 0; k < K; k += 128, kb++) {
                int64_t ks = CPS_MIN(128, K - k);
                uint32_t xt = tp_tile(p, "x", CPS_SBUF, t, ks, ms, 3, nx++, 3);
                tp_1(p, CPS_T_DMA, tp_view(p, xt, 0, (int)ks, 0, ms),
                     tp_block(p, x, k, ks, m, ms));
                tp_matmul(p, tp_view(p, acc, 0, (int)ms, 0, ns),
                          tp_view(p, xt, 0, (int)ks, 0, ms),
                          tp_view(p, wt[kb], 0, (int)ks, 0, ns), k == 0, k + 128 >= K);
            }
            uint32_t o = tp_tile(p, "o", CPS_SBUF, t, ms, ns, 4, na++, 0);
            tp_1(p, CPS_T_COPY, tp_view(p, o, 0, (int)ms, 0, ns),
                 tp_view(p, acc, 0, (int)ms, 0, ns));
            tp_1(p, CPS_T_DMA, tp_block(p, y, m, ms, n, ns), tp_view(p, o, 0, (int)ms, 0, ns));
        }
    }
}

/* y[T,N] = softmax(x) over rows. */
static inline void
tp_make_softmax(tp *p, cps_dtype t, int64_t T, int64_t N)
{
    uint32_t x = tp_hbm(p, "x", CPS_IN, t, T, N), y = tp_hbm(p, "y", CPS_OUT, t, T, N);
    uint32_t turn = 0;
    for (int64_t r = 0; r < T; r += 128, turn++) {
        int rs = (int)CPS_MIN(128, T - r);
        uint32_t xt = tp_tile(p, "xt", CPS_SBUF, t, rs, N, 1, turn, 2);
        uint32_t m = tp_tile(p, "m", CPS_SBUF, CPS_DT_FP32, rs, 1, 2, turn, 0);
        uint32_t e = tp_tile(p, "e", CPS_SBUF, CPS_DT_FP32, rs, N, 3, turn, 0);
        uint32_t s = tp_tile(p, "s", CPS_SBUF, CPS_DT_FP32, rs, 1, 4, turn, 0);
        uint32_t o = tp_tile(p, "o", CPS_SBUF, t, rs, N, 5, turn, 0);
        tp_1(p, CPS_T_DMA, tp_view(p, xt, 0, rs, 0, N), tp_block(p, x, r, rs, 0, N));
        cps_tinst *i = tp_1(p, CPS_T_TENSOR_REDUCE, tp_view(p, m, 0, rs, 0, 1),
                            tp_view(p, xt, 0, rs, 0, N));
        cps_tinst_set(i, CPS_TA_OP0, CPS_ALU_MAX);
        cps_tinst_set(i, CPS_TA_AXES, 1);
        cps_tinst_set(i, CPS_TA_NEGATE, 1);
        i = tp_inst(p, CPS_T_ACTIVATION, 2, 3);
        cps_tinst_set(i, CPS_TA_FUNC, CPS_ACTFN_EXP);
        cps_tinst_set(i, CPS_TA_ACC, 3);
        i->out[0] = tp_view(p, e, 0, rs, 0, N);
        i->out[1] = tp_view(p, s, 0, rs, 0, 1);
        i->in[0] = tp_view(p, xt, 0, rs, 0, N);
        i->in[1] = cps_to_imm(1);
        i->in[2] = tp_view(p, m, 0, rs, 0, 1);
        tp_1(p, CPS_T_RECIPROCAL, tp_view(p, s, 0, rs, 0, 1), tp_view(p, s, 0, rs, 0, 1));
        i = tp_3(p, CPS_T_TENSOR_SCALAR, tp_view(p, o, 0, rs, 0, N), tp_view(p, e, 0, rs, 0, N),
                 tp_view(p, s, 0, rs, 0, 1), cps_to_imm(0));
        cps_tinst_set(i, CPS_TA_OP0, CPS_ALU_MULT);
        tp_1(p, CPS_T_DMA, tp_block(p, y, r, rs, 0, N), tp_view(p, o, 0, rs, 0, N));
    }
}

/* A register. */
static inline uint32_t
tp_reg(tp *p, const char *name)
{
    cps_tbuf b = {.name = name,
                  .space = CPS_REG,
                  .dtype = CPS_DT_I32,
                  .pin_byte = -1,
                  .pin_bank = -1,
                  .pin_part = -1};
    return cps_tile_buf(p->f, b);
}

#endif
