/* Programs that use every instruction of the tile level once or twice. */
#ifndef CPS_TESTS_CODEGEN_OPS_H
#define CPS_TESTS_CODEGEN_OPS_H

#include "tests/codegen/tp.h"

typedef struct tp_ops {
    tp *p;
    uint32_t x, y; /* [128, 64] fp32 in, out */
    uint32_t row;  /* rows of y used so far */
    uint32_t turn;
} tp_ops;

static inline uint32_t
tp_sb(tp_ops *o, const char *name, cps_dtype t, int64_t cols)
{
    (void)o;
    return tp_tile(o->p, name, CPS_SBUF, t, 128, cols, 0, 0, 0);
}

static inline cps_toper
tp_all(tp_ops *o, uint32_t b)
{
    const cps_tbuf *t = &o->p->f->bufs.data[b];
    return tp_view(o->p, b, 0, (int)t->dim[0], 0, t->dim[1]);
}

/* Writes `n` columns of a tile to the next columns of the output. */
static inline void
tp_show(tp_ops *o, uint32_t tile, int64_t n)
{
    tp *p = o->p;
    cps_dtype t = tp_dtype(p, tile);
    uint32_t src = tile;
    if (t != CPS_DT_FP32 || p->f->bufs.data[tile].space == CPS_PSUM) {
        src = tp_sb(o, "show", CPS_DT_FP32, n);
        tp_1(p, CPS_T_COPY, tp_all(o, src), tp_view(p, tile, 0, 128, 0, n));
    }
    tp_1(p, CPS_T_DMA, tp_block(p, o->y, 0, 128, o->row, n), tp_view(p, src, 0, 128, 0, n));
    o->row += (uint32_t)n;
}

static inline cps_tinst *
tp_alu(cps_tinst *i, cps_alu op0, cps_alu op1)
{
    cps_tinst_set(i, CPS_TA_OP0, op0);
    if (op1 != CPS_ALU_BYPASS)
        cps_tinst_set(i, CPS_TA_OP1, op1);
    return i;
}

static inline int32_t
tp_list(tp *p, int n, const int32_t *v)
{
    cps_tlist l = {.n = n};
    for (int i = 0; i < n; i++)
        l.v[i] = v[i];
    cps_vec_push(p->a, &p->f->lists, l);
    return (int32_t)p->f->lists.n - 1;
}

/* y[128, *] of results, one group of columns for each instruction. */
static inline void
tp_make_ops(tp *p)
{
    tp_ops o = {.p = p};
    bool v3 = p->t->gen != CPS_V2;
    o.x = tp_hbm(p, "x", CPS_IN, CPS_DT_FP32, 128, 64);
    o.y = tp_hbm(p, "y", CPS_OUT, CPS_DT_FP32, 128, 1536);
    uint32_t x = tp_sb(&o, "xs", CPS_DT_FP32, 64), h = tp_sb(&o, "xh", CPS_DT_BF16, 64);
    tp_1(p, CPS_T_DMA, tp_all(&o, x), tp_block(p, o.x, 0, 128, 0, 64));
    tp_1(p, CPS_T_COPY, tp_all(&o, h), tp_all(&o, x));
    // activation with immediate and with column scale and bias, and with a sum
    uint32_t a = tp_sb(&o, "act", CPS_DT_BF16, 64), s = tp_sb(&o, "sum", CPS_DT_FP32, 1);
    tp_act(p, CPS_ACTFN_TANH, tp_all(&o, a), tp_all(&o, x), cps_to_imm(0.5f),
           cps_to_imm(0.25f));
    tp_show(&o, a, 64);
    cps_tinst *i = tp_inst(p, CPS_T_ACTIVATION, 2, 3);
    cps_tinst_set(i, CPS_TA_FUNC, CPS_ACTFN_EXP);
    cps_tinst_set(i, CPS_TA_ACC, 3);
    uint32_t e = tp_sb(&o, "exp", CPS_DT_FP32, 64);
    i->out[0] = tp_all(&o, e);
    i->out[1] = tp_all(&o, s);
    i->in[0] = tp_all(&o, h);
    i->in[1] = tp_view(p, x, 0, 128, 3, 1);
    i->in[2] = tp_view(p, h, 0, 128, 5, 1); // bf16: must be converted
    tp_show(&o, e, 64);
    tp_show(&o, s, 1);
    // tensor_tensor, tensor_scalar, scalar_tensor_tensor
    uint32_t t = tp_sb(&o, "tt", CPS_DT_FP32, 64);
    tp_alu(tp_2(p, CPS_T_TENSOR_TENSOR, tp_all(&o, t), tp_all(&o, x), tp_all(&o, h)),
           CPS_ALU_MULT, CPS_ALU_BYPASS);
    tp_show(&o, t, 64);
    uint32_t u = tp_sb(&o, "ts", CPS_DT_FP32, 64);
    i = tp_alu(tp_3(p, CPS_T_TENSOR_SCALAR, tp_all(&o, u), tp_all(&o, x), cps_to_imm(2),
                    tp_all(&o, s)),
               CPS_ALU_SUBTRACT, CPS_ALU_MAX);
    cps_tinst_set(i, CPS_TA_REVERSE, 1);
    tp_show(&o, u, 64);
    uint32_t v = tp_sb(&o, "stt", CPS_DT_BF16, 64);
    tp_alu(tp_3(p, CPS_T_STT, tp_all(&o, v), tp_all(&o, x), cps_to_imm(3), tp_all(&o, h)),
           CPS_ALU_MULT, CPS_ALU_ADD);
    tp_show(&o, v, 64);
    // reductions: along one axis of two, over everything with an operator before
    uint32_t r = tp_sb(&o, "red", CPS_DT_FP32, 8);
    i = tp_1(p, CPS_T_TENSOR_REDUCE, tp_all(&o, r),
             tp_walk(p, x, 0, 128, 0, 2, (cps_tdim[]){{8, 8}, {1, 8}}));
    cps_tinst_set(i, CPS_TA_OP0, CPS_ALU_ADD);
    cps_tinst_set(i, CPS_TA_AXES, 1);
    tp_show(&o, r, 8);
    i = tp_inst(p, CPS_T_TS_REDUCE, 2, 2);
    uint32_t w = tp_sb(&o, "tsr", CPS_DT_FP32, 64), m = tp_sb(&o, "max", CPS_DT_FP32, 1);
    i->out[0] = tp_all(&o, w);
    i->out[1] = tp_all(&o, m);
    i->in[0] = tp_all(&o, x);
    i->in[1] = cps_to_imm(0.5f);
    cps_tinst_set(i, CPS_TA_OP0, CPS_ALU_MULT);
    cps_tinst_set(i, CPS_TA_RED, CPS_ALU_MAX);
    cps_tinst_set(i, CPS_TA_ACC, 3);
    tp_show(&o, w, 64);
    tp_show(&o, m, 1);
    uint32_t sc = tp_sb(&o, "scan", CPS_DT_FP32, 64);
    tp_alu(tp_3(p, CPS_T_SCAN, tp_all(&o, sc), tp_all(&o, h), tp_all(&o, x), cps_to_imm(1)),
           CPS_ALU_MULT, CPS_ALU_ADD);
    tp_show(&o, sc, 64);
    uint32_t rc = tp_sb(&o, "rec", CPS_DT_FP32, 64);
    tp_1(p, CPS_T_RECIPROCAL, tp_all(&o, rc), tp_all(&o, e));
    tp_show(&o, rc, 64);
    // masks
    uint32_t pr = tp_sb(&o, "pred", CPS_DT_U8, 64), cp = tp_sb(&o, "cp", CPS_DT_FP32, 64);
    tp_alu(tp_3(p, CPS_T_TENSOR_SCALAR, tp_all(&o, pr), tp_all(&o, x), cps_to_imm(0),
                cps_to_imm(0)),
           CPS_ALU_IS_GT, CPS_ALU_BYPASS);
    tp_1(p, CPS_T_MEMSET, tp_all(&o, cp), cps_to_imm(-7));
    tp_2(p, CPS_T_COPY_PRED, tp_all(&o, cp), tp_all(&o, pr), tp_all(&o, x));
    i = tp_2(p, CPS_T_COPY_PRED, tp_view(p, cp, 0, 128, 0, 32), tp_view(p, pr, 0, 128, 0, 32),
             tp_view(p, rc, 0, 128, 0, 32));
    cps_tinst_set(i, CPS_TA_NEGATE, 1);
    tp_show(&o, cp, 64);
    uint32_t sr = tp_sb(&o, "sel", CPS_DT_FP32, 64);
    tp_3(p, CPS_T_SELECT_REDUCE, tp_all(&o, sr), tp_all(&o, pr), tp_all(&o, x), cps_to_imm(-1));
    tp_show(&o, sr, 64);
    if (v3) {
        uint32_t rs = tp_sb(&o, "rs", CPS_DT_FP32, 64), lo = tp_sb(&o, "lo", CPS_DT_FP32, 1);
        tp_1(p, CPS_T_MEMSET, tp_all(&o, lo), cps_to_imm(3));
        i = tp_3(p, CPS_T_RANGE_SELECT, tp_all(&o, rs), tp_all(&o, x), tp_all(&o, lo),
                 tp_all(&o, m));
        tp_alu(i, CPS_ALU_IS_GE, CPS_ALU_IS_GE);
        cps_tinst_set(i, CPS_TA_BASE, 0);
        tp_show(&o, rs, 64);
    }
    uint32_t io = tp_sb(&o, "iota", CPS_DT_I32, 64), as = tp_sb(&o, "aff", CPS_DT_FP32, 64);
    i = tp_inst(p, CPS_T_IOTA, 1, 0);
    i->out[0] = tp_walk(p, io, 0, 128, 0, 2, (cps_tdim[]){{16, 4}, {1, 16}});
    cps_tinst_set(i, CPS_TA_BASE, 5);
    cps_tinst_set(i, CPS_TA_CHANNEL, 100);
    cps_tinst_set(i, CPS_TA_PATTERN, tp_list(p, 2, (int32_t[]){1000, 1}));
    tp_show(&o, io, 64);
    i = tp_2(p, CPS_T_AFFINE_SELECT, tp_all(&o, as), tp_all(&o, x), cps_to_imm(-3));
    cps_tinst_set(i, CPS_TA_OP0, CPS_ALU_IS_LE);
    cps_tinst_set(i, CPS_TA_CHANNEL, -1);
    cps_tinst_set(i, CPS_TA_PATTERN, tp_list(p, 1, (int32_t[]){1}));
    tp_show(&o, as, 64);
    // statistics and top-8
    uint32_t st = tp_sb(&o, "st", CPS_DT_FP32, 6), ag = tp_sb(&o, "ag", CPS_DT_FP32, 2);
    tp_1(p, CPS_T_BN_STATS, tp_all(&o, st), tp_all(&o, x));
    tp_1(p, CPS_T_BN_AGGR, tp_all(&o, ag), tp_all(&o, st));
    tp_show(&o, ag, 2);
    uint32_t m8 = tp_sb(&o, "m8", CPS_DT_FP32, 8), ix = tp_sb(&o, "ix", CPS_DT_U32, 8);
    uint32_t mr = tp_sb(&o, "mr", CPS_DT_FP32, 64);
    tp_1(p, CPS_T_MAX8, tp_all(&o, m8), tp_all(&o, x));
    tp_2(p, CPS_T_FIND_INDEX8, tp_all(&o, ix), tp_all(&o, x), tp_all(&o, m8));
    tp_3(p, CPS_T_MATCH_REPLACE8, tp_all(&o, mr), tp_all(&o, x), tp_all(&o, m8),
         cps_to_imm(-99));
    tp_show(&o, m8, 8);
    tp_show(&o, ix, 8);
    tp_show(&o, mr, 64);
    // lanes
    uint32_t sh = tp_sb(&o, "sh", CPS_DT_FP32, 64);
    int32_t mask[32];
    for (int k = 0; k < 32; k++)
        mask[k] = 31 - k;
    i = tp_1(p, CPS_T_SHUFFLE, tp_all(&o, sh), tp_all(&o, x));
    cps_tinst_set(i, CPS_TA_MASK, tp_list(p, 32, mask));
    tp_show(&o, sh, 64);
    uint32_t tr = tp_sb(&o, "tr", CPS_DT_BF16, 128);
    tp_1(p, CPS_T_MEMSET, tp_all(&o, tr), cps_to_imm(1));
    tp_1(p, CPS_T_TRANSPOSE, tp_view(p, tr, 0, 64, 0, 128), tp_all(&o, h));
    tp_show(&o, tr, 64);
    uint32_t pa = tp_sb(&o, "pa", CPS_DT_FP32, 64);
    tp_1(p, CPS_T_MEMSET, tp_all(&o, pa), cps_to_imm(2));
    i = tp_1(p, CPS_T_PART_REDUCE, tp_view(p, pa, 0, 1, 0, 64), tp_all(&o, x));
    cps_tinst_set(i, CPS_TA_OP0, CPS_ALU_MAX);
    tp_show(&o, pa, 64);
    // PE: a transpose, fp32 and bf16 products, a 32 x 32 corner
    cps_dtype pt = v3 ? CPS_DT_BF16 : CPS_DT_FP32;
    uint32_t ps = tp_tile(p, "ps", CPS_PSUM, pt, 64, 128, 0, 0, 0);
    tp_1(p, CPS_T_TRANSPOSE, tp_all(&o, ps), tp_all(&o, h));
    uint32_t xt = tp_sb(&o, "xt", CPS_DT_BF16, 128);
    tp_1(p, CPS_T_COPY, tp_view(p, xt, 0, 64, 0, 128), tp_all(&o, ps));
    uint32_t mm = tp_tile(p, "mm", CPS_PSUM, CPS_DT_FP32, 128, 64, 0, 0, 0);
    tp_matmul(p, tp_all(&o, mm), tp_view(p, xt, 0, 64, 0, 128), tp_view(p, h, 0, 64, 0, 64),
              true, true);
    tp_show(&o, mm, 64);
    uint32_t mf = tp_tile(p, "mf", CPS_PSUM, CPS_DT_FP32, 64, 64, 0, 0, 0);
    tp_matmul(p, tp_all(&o, mf), tp_all(&o, x), tp_all(&o, t), true, false);
    tp_matmul(p, tp_all(&o, mf), tp_all(&o, x), tp_all(&o, u), false, true);
    uint32_t mo = tp_sb(&o, "mo", CPS_DT_FP32, 64);
    tp_1(p, CPS_T_MEMSET, tp_all(&o, mo), cps_to_imm(0));
    tp_1(p, CPS_T_COPY, tp_view(p, mo, 0, 64, 0, 64), tp_all(&o, mf));
    tp_show(&o, mo, 64);
}

#endif
