/* Every row of the combining table, by the instructions that come out of small graphs, the rule
 * of choice between rows, and what no row covers. */
#include "frontend/dsl/trace_combine.h"
#include "tests/check.h"

#include <float.h>

static cps_arena *A;
static cps_view_err err;
static cps_xgraph G;
static const cps_target *T2, *T1;
static const cps_target *T;
static const cps_span no = {0, 0, 0};

static cps_xid
tile(const char *name, cps_space s, cps_dtype t, int64_t rows, int64_t n)
{
    cps_vdim d[2] = {{.num = rows ? rows : 1, .all = rows == 0}, {.num = n}};
    int64_t dim[CPS_MAX_RANK];
    int rank;
    cps_view *v = cps_new(A, cps_view);
    CHECK(cps_view_tile(v, s, t, 2, d, 128, s == CPS_PSUM ? 2048 : 0, dim, &rank, A, &err));
    v->name = name;
    v->store = (void *)(uintptr_t)name;
    return cps_x_tile(&G, v, no, &err);
}

static const char *
cover(cps_xid root, cps_xdst d)
{
    cps_xplan p;
    return cps_x_cover(&G, root, &d, T, &p, &err) ? cps_x_plan_text(A, &G, &p) : err.text;
}

static const char *
plan(cps_xid root, cps_xid dst)
{
    return cover(root, (cps_xdst){.node = dst, .pin = CPS_ENGINE_ANY});
}

#define TILE(n, t) tile(n, CPS_SBUF, CPS_DT_##t, 128, 512)
#define COL(n, t) tile(n, CPS_SBUF, CPS_DT_##t, 128, 1)
#define NUM(v) cps_x_num(&G, v, false, no)
#define INT(v) cps_x_num(&G, v, true, no)
#define OP(op, a, b) cps_x_alu(&G, CPS_ALU_##op, a, b, no, &err)
#define F(f, a) cps_x_func(&G, CPS_ACTFN_##f, a, no)
#define SUM(a) cps_x_reduce(&G, CPS_ALU_ADD, a, 1, no, &err)
#define MAX(a) cps_x_reduce(&G, CPS_ALU_MAX, a, 1, no, &err)

static void
rows(void)
{
    cps_xid x = TILE("x", BF16), y = TILE("y", BF16), f = TILE("f", FP32), s = COL("s", FP32),
            r = COL("r", FP32), g = tile("g", CPS_SBUF, CPS_DT_BF16, 0, 512),
            p = tile("p", CPS_PSUM, CPS_DT_FP32, 128, 512), o = TILE("o", FP32);

    /* the table under 2.10 of the language study, line by line */
    CHECK_STR(plan(OP(MULT, OP(MULT, x, r), g), o),
              "dst = scalar_tensor_tensor x r g op0:mult op1:mult @dve");
    cps_xdst d = {.node = o, .red = s, .red_op = CPS_ALU_ADD, .pin = CPS_ENGINE_ANY};
    CHECK_STR(cover(F(EXP, OP(ADD, OP(MULT, NUM(0.5), f), r)), d),
              "dst = activation f 0.5 r func:exp acc:3 -> red @act");
    CHECK_STR(plan(OP(ADD, F(GELU, p), f), o),
              "t0 = activation p 1 0 func:gelu @act; dst = tensor_tensor t0 f op0:add @dve");
    CHECK_STR(plan(OP(MULT, MAX(x), NUM(-1)), s),
              "dst = tensor_reduce x op0:max negate:1 over:1 @dve");
    CHECK_STR(plan(OP(ADD, OP(MULT, s, r), COL("q", FP32)), s),
              "dst = tensor_scalar s r q op0:mult op1:add @dve");
    CHECK_STR(plan(OP(SUBTRACT, r, F(LN, s)), COL("b", FP32)),
              "t0 = activation s 1 0 func:log @act; "
              "dst = tensor_scalar r t0 0 op0:subtract @dve");
    CHECK_STR(plan(OP(MIN, OP(MAX, f, NUM(-3)), NUM(3)), o),
              "dst = tensor_scalar f -3 3 op0:max op1:min @dve");

    /* row 4 and its reversals */
    CHECK_STR(plan(OP(SUBTRACT, f, NUM(2)), o), "dst = tensor_scalar f -2 0 op0:add @dve");
    CHECK_STR(plan(OP(SUBTRACT, NUM(2), f), o),
              "dst = tensor_scalar f 2 0 op0:subtract reverse:1 @dve");
    CHECK_STR(plan(OP(SUBTRACT, s, OP(MULT, f, r)), o),
              "dst = tensor_scalar f r s op0:mult op1:subtract reverse:2 @dve");
    CHECK_STR(plan(OP(IS_LT, NUM(2), f), o), "dst = tensor_scalar f 2 0 op0:is_gt @dve");
    CHECK_STR(plan(F(ABS, x), o), "dst = tensor_scalar x 0 0 op0:abs_value @dve");
    CHECK_STR(plan(OP(MIN, F(ABS, f), NUM(3)), o),
              "dst = tensor_scalar f 0 3 op0:abs_value op1:min @dve");
    cps_xid i8 = TILE("i8", U8);
    CHECK_STR(plan(OP(BITWISE_OR, OP(BITWISE_AND, i8, INT(15)), INT(16)), TILE("j8", U8)),
              "dst = tensor_scalar i8 15 16 op0:bitwise_and op1:bitwise_or @dve");
    CHECK_STR(cover(OP(ADD, OP(MULT, x, r), s), (cps_xdst){.node = o, .pin = CPS_ACT}),
              "dst = tensor_scalar x r s op0:mult op1:add @act");
    /* a scalar operand is read as fp32 */
    CHECK_STR(plan(OP(MULT, x, COL("h", BF16)), o),
              "t0 = tensor_copy h @dve; dst = tensor_scalar x t0 0 op0:mult @dve");

    /* rows 5 and 6, PSUM */
    CHECK_STR(plan(OP(ADD, OP(MULT, p, s), f), o),
              "dst = scalar_tensor_tensor p s f op0:mult op1:add @dve");
    CHECK_STR(plan(OP(SUBTRACT, f, OP(MULT, p, s)), o),
              "dst = scalar_tensor_tensor p s f op0:mult op1:subtract reverse:2 @dve");
    CHECK_STR(plan(OP(MULT, x, y), o), "dst = tensor_tensor x y op0:mult @dve");
    CHECK_STR(plan(OP(ADD, p, tile("p2", CPS_PSUM, CPS_DT_FP32, 128, 512)), o),
              "both operands of tensor_tensor are in PSUM");
    CHECK_INT(err.code, CPS_E5104);
    CHECK_STR(err.help, "copy one to sbuf first; copying [128, 512] costs 512 cycles");

    /* row 7 */
    CHECK_STR(plan(F(EXP, OP(SUBTRACT, r, s)), COL("a", FP32)),
              "dst = activation s -1 r func:exp @act");
    CHECK_STR(plan(F(RSQRT, OP(ADD, OP(MULT, s, NUM(0.25)), NUM(1e-6))), r),
              "dst = activation s 0.25 1e-06 func:rsqrt @act");
    T = T1; // no immediate bias on v2
    CHECK_STR(plan(F(RSQRT, OP(ADD, OP(MULT, s, NUM(0.25)), NUM(1e-6))), r),
              "dst = activation s 0.25 {1e-06} func:rsqrt @act");
    CHECK_STR(
        plan(F(RECIPROCAL, OP(ADD, s, NUM(1))), r),
        "t0 = tensor_scalar s 1 0 op0:add @dve; dst = activation t0 1 0 func:reciprocal @act");
    CHECK_STR(cover(x, (cps_xdst){.node = o, .pin = CPS_ACT}),
              "dst = activation x 1 0 func:identity @act");
    T = T2;

    /* rows 8 and 9: reductions with and without the elements */
    CHECK_STR(plan(SUM(F(SQUARE, x)), s),
              "t0 = activation x 1 0 func:square acc:3 -> dst @act");
    CHECK_STR(plan(MAX(F(ABS, x)), s),
              "t0 = tensor_scalar_reduce x 0 acc:3 op0:abs_value red:max -> dst @dve");
    d.red_op = CPS_ALU_MAX;
    CHECK_STR(cover(p, d), "dst = tensor_scalar_reduce p 1 acc:3 op0:mult red:max -> red @dve");
    CHECK_STR(cover(OP(ADD, f, r), d),
              "dst = tensor_scalar_reduce f r acc:3 op0:add red:max -> red @dve");
    CHECK_STR(
        cover(OP(MULT, x, y), d), // no fused form: the elements, then row 10
        "dst = tensor_tensor x y op0:mult @dve; red = tensor_reduce dst op0:max over:1 @dve");
    cps_xdst db = {.node = y, .red = s, .red_op = CPS_ALU_MAX, .pin = CPS_ENGINE_ANY};
    CHECK_STR(cover(OP(MULT, x, f), db), // the reduction sees what was not rounded yet
              "t0 = tensor_tensor x f op0:mult @dve; dst = tensor_copy t0 @dve; "
              "red = tensor_reduce t0 op0:max over:1 @dve");
    CHECK_STR(
        plan(SUM(OP(MULT, x, y)), s),
        "t0 = tensor_tensor x y op0:mult @dve; dst = tensor_reduce t0 op0:add over:1 @dve");

    /* row 11 */
    cps_xid prev = cps_x_prev(&G, no);
    CHECK_STR(plan(cps_x_scan(&G, OP(ADD, OP(MULT, x, prev), y), s, no, &err), o),
              "dst = tensor_tensor_scan x y s op0:mult op1:add @dve");
    CHECK_STR(plan(cps_x_scan(&G, OP(MAX, y, OP(ADD, prev, x)), NUM(0), no, &err), o),
              "dst = tensor_tensor_scan x y 0 op0:add op1:max @dve");
    CHECK(!cps_x_scan(&G, OP(ADD, x, y), s, no, &err) && err.code == CPS_E3203);

    /* rows 12 to 14 */
    CHECK_STR(plan(cps_x_div(&G, NUM(1), s, no, &err), r), "dst = reciprocal s @dve");
    CHECK_STR(plan(F(RECIPROCAL, s), r), "dst = activation s 1 0 func:reciprocal @act");
    CHECK_STR(plan(cps_x_div(&G, f, NUM(3), no, &err), o),
              "dst = tensor_scalar f 0.333333343 0 op0:mult @dve");
    CHECK_STR(plan(cps_x_div(&G, f, s, no, &err), o),
              "t0 = reciprocal s @dve; dst = tensor_scalar f t0 0 op0:mult @dve");
    CHECK(!cps_x_div(&G, f, NUM(0), no, &err));

    /* rows 19 to 22 */
    CHECK_STR(plan(x, o), "dst = tensor_copy x @dve");
    CHECK_STR(cover(x, (cps_xdst){.node = o, .pin = CPS_POOL}), "dst = tensor_copy x @pool");
    CHECK_STR(cover(p, (cps_xdst){.node = o, .pin = CPS_POOL}),
              "no instruction for `the value` runs on pool");
    CHECK_STR(plan(NUM(2.5), o), "dst = memset 2.5 @dve");
    CHECK_STR(plan(s, o), "dst = tensor_copy s @dve");
    cps_xid row = cps_x_index(&G, 7, 1, 0, 128, 1, no),
            col = cps_x_index(&G, 3, 0, 1, 0, 512, no);
    CHECK_STR(plan(row, s), "dst = iota base:7 channel:1 @pool");
    CHECK_STR(plan(OP(SUBTRACT, OP(MULT, col, INT(2)), row), o),
              "dst = iota base:-1 channel:-1 col:2 @pool");
    CHECK_STR(
        plan(OP(ADD, s, col), o),
        "t0 = iota base:3 channel:0 col:1 @pool; dst = tensor_scalar t0 s 0 op0:add @dve");
    cps_xid a = COL("ia", I32), b = COL("ib", I32);
    CHECK_STR(plan(OP(ADD, OP(MULT, a, INT(4096)), b), COL("ic", I32)),
              "t0 = tensor_tensor ia {4096} op0:mult_int @pool; "
              "dst = tensor_tensor t0 ib op0:add_int @pool");
    CHECK_STR(plan(OP(ADD, a, INT(1)), s), "dst = tensor_scalar ia 1 0 op0:add @dve");
}

static void
selects(void)
{
    cps_xid f = TILE("f", FP32), o = TILE("o", FP32),
            p = tile("p", CPS_PSUM, CPS_DT_FP32, 128, 512), lo = COL("lo", FP32),
            hi = COL("hi", FP32), m = TILE("m", U8), g = TILE("g", FP32),
            top = COL("top", FP32);
    cps_xid row = cps_x_index(&G, 0, 1, 0, 128, 1, no),
            col = cps_x_index(&G, 64, 0, 1, 0, 512, no);
    cps_xid low = NUM(-FLT_MAX);
#define SEL(c, a, b) cps_x_select(&G, c, a, b, no, &err)

    CHECK_STR(plan(SEL(OP(IS_LE, col, row), f, NUM(-1e30)), o),
              "dst = affine_select f -1e+30 op0:is_ge base:-64 channel:1 col:-1 @pool");
    CHECK_STR(plan(SEL(OP(IS_EQ, OP(SUBTRACT, col, row), INT(32)), NUM(1), NUM(0)), o),
              "dst = memset 1 @dve; "
              "dst = affine_select dst 0 op0:is_eq base:32 channel:-1 col:1 @pool");
    CHECK_STR(plan(SEL(OP(IS_EQ, OP(SUBTRACT, col, row), INT(32)), NUM(1), f), o),
              "dst = affine_select f 1 op0:is_ne base:32 channel:-1 col:1 @pool");
    CHECK_STR(plan(SEL(OP(IS_GE, row, col), p, NUM(0)), o),
              "t0 = tensor_copy p @dve; "
              "dst = affine_select t0 0 op0:is_ge base:-64 channel:1 col:-1 @pool");
    cps_xid both = OP(LOGICAL_AND, OP(IS_LE, lo, col), OP(IS_LE, col, hi));
    cps_xdst d = {.node = o, .red = top, .red_op = CPS_ALU_MAX, .pin = CPS_ENGINE_ANY};
    CHECK_STR(cover(SEL(both, p, low), d),
              "dst = range_select p lo hi acc:3 op0:is_ge op1:is_le "
              "base:64 -> red @dve");
    CHECK_STR(plan(SEL(OP(IS_LT, col, hi), p, low), o),
              "dst = range_select p hi hi op0:is_lt op1:is_lt base:64 @dve");
    CHECK_STR(plan(SEL(m, f, NUM(-5)), o), "dst = select_reduce m f -5 @dve");
    CHECK_STR(plan(SEL(m, f, o), o), "dst = tensor_copy_predicated m f @dve");
    CHECK_STR(plan(SEL(m, o, f), o), "dst = tensor_copy_predicated m f negate:1 @dve");
    CHECK_STR(plan(SEL(m, f, g), o),
              "dst = tensor_copy g @dve; dst = tensor_copy_predicated m f @dve");
    CHECK_STR(plan(SEL(OP(IS_LT, f, g), f, g), o),
              "t0 = tensor_tensor f g op0:is_lt @dve; dst = tensor_copy g @dve; "
              "dst = tensor_copy_predicated t0 f @dve");
    CHECK_STR(plan(SEL(f, f, g), o), "a mask tile holds 8- or 16-bit integers, `f` holds fp32");
    T = T1; // no range_select before v3: a mask is computed
    CHECK_STR(plan(SEL(OP(IS_LT, col, hi), f, low), o),
              "t1 = iota base:64 channel:0 col:1 @pool; "
              "t0 = tensor_scalar t1 hi 0 op0:is_lt @dve; "
              "dst = select_reduce t0 f -3.40282347e+38 @dve");
    T = T2;
}

static void
shapes_and_sharing(void)
{
    cps_xid x = TILE("x", FP32), o = TILE("o", FP32),
            row = tile("r", CPS_SBUF, CPS_DT_BF16, 1, 512),
            half = tile("h", CPS_SBUF, CPS_DT_FP32, 64, 512), s = COL("s", FP32);

    CHECK(!OP(MULT, x, row));
    CHECK_STR(err.text, "a [1, 512] row cannot meet a [128, 512] tile");
    CHECK_INT(err.code, CPS_E3201);
    CHECK_STR(err.help, "keep it on all of them: sbuf r[all, 512] <- ...;");
    CHECK(!OP(MULT, x, half) && err.code == CPS_E3202);
    CHECK_STR(plan(x, s), "a [128, 512] value does not fit `s` [128, 1]");
    // equal subtrees once, and never inside another instruction
    cps_xid e = F(EXP, x);
    CHECK_INT(e, F(EXP, x));
    CHECK_STR(plan(OP(MULT, OP(ADD, e, s), e), o),
              "t0 = activation x 1 0 func:exp @act; "
              "dst = scalar_tensor_tensor t0 s t0 op0:add op1:mult @dve");
    CHECK_STR(plan(OP(MULT, e, F(RECIPROCAL, SUM(e))), o),
              "t0 = activation x 1 0 func:exp @act; "
              "t2 = tensor_reduce t0 op0:add over:1 @dve; "
              "t1 = activation t2 1 0 func:reciprocal @act; "
              "dst = tensor_scalar t0 t1 0 op0:mult @dve");
    CHECK_STR(plan(OP(MOD, x, s), o), "no instruction computes `mod` of these operands");
    CHECK_STR(cover(F(EXP, x), (cps_xdst){.node = o, .pin = CPS_DVE}),
              "no instruction for `exp` runs on dve");
    CHECK_INT(err.code, CPS_E5102);
}

int
main(void)
{
    A = cps_arena_create();
    T1 = cps_target_find("trn1");
    T2 = T = cps_target_find("trn2");
    cps_x_init(&G, A);
    rows();
    selects();
    shapes_and_sharing();
    cps_arena_destroy(A);
    return CHECK_DONE();
}
