/* Views as pure functions: slicing, pieces absolute and numbers relative, folds, patterns,
 * bits, repetition, the lowering to tile views, and every way to fail. Each view is also
 * checked against a brute-force model: the set of addresses that its text promises. */
#include "frontend/dsl/trace_view.h"
#include "tests/check.h"

static cps_arena *A;
static cps_view_err err;

static cps_view
hbm(int nd, int64_t a, int64_t b, int64_t c, int order)
{
    cps_vdim d[3] = {{.num = a, .name = "A"}, {.num = b, .name = "B"}, {.num = c, .name = "C"}};
    cps_view v;
    CHECK(cps_view_hbm(&v, CPS_DT_BF16, nd, d, order, &err));
    v.name = "x";
    return v;
}

static cps_view
tile(cps_space s, cps_dtype t, int nd, cps_vdim a, int64_t b, int64_t c)
{
    cps_vdim d[3] = {a, {.num = b, .name = "B"}, {.num = c, .name = "C"}};
    int64_t dim[CPS_MAX_RANK];
    int rank;
    cps_view v = {0};
    bool ok =
        cps_view_tile(&v, s, t, nd, d, 128, s == CPS_PSUM ? 2048 : 0, dim, &rank, A, &err);
    if (!ok)
        v.nd = -1;
    v.name = "t";
    return v;
}

static cps_vsub
at(int64_t i)
{
    return (cps_vsub){.kind = CPS_VS_AT, .lo = i};
}
static cps_vsub
slice(int64_t lo, int64_t hi, int64_t st)
{
    return (cps_vsub){.kind = CPS_VS_SLICE, .lo = lo, .hi = hi, .has_hi = true, .step = st};
}
static cps_vsub
piece(int64_t lo, int64_t hi)
{
    return (cps_vsub){
        .kind = CPS_VS_PIECE, .piece = {.start = lo, .end = hi, .name = "N"}, .text = "n"};
}
static const cps_vsub all = {.kind = CPS_VS_ALL};

static const char *
sub2(const cps_view *v, cps_vsub a, cps_vsub b)
{
    cps_vsub s[2] = {a, b};
    cps_view o;
    int bad;
    return cps_view_index(&o, v, 2, s, A, &bad, &err) ? cps_view_text(A, &o) : err.text;
}

static const char *
pattern(const cps_view *v, const char *p, int n, const char *const *name, const int64_t *size)
{
    cps_view o;
    return cps_view_reshape(&o, v, p, n, name, size, A, &err) ? cps_view_text(A, &o) : err.text;
}

static void
slices(void)
{
    cps_view x = hbm(2, 300, 40, 0, 0), xt = hbm(2, 300, 40, 0, 1), o;
    int bad;

    CHECK_STR(cps_view_text(A, &x), "hbm bf16 +0 [300:40, 40:1]");
    CHECK_STR(cps_view_text(A, &xt), "hbm bf16 +0 [300:1, 40:300]");
    CHECK_INT(cps_view_inner(&x), 1);
    CHECK_INT(cps_view_inner(&xt), 0);
    CHECK_STR(sub2(&x, at(3), all), "hbm bf16 +120 [40:1]");
    CHECK_STR(sub2(&x, slice(2, 9, 1), slice(1, 40, 3)), "hbm bf16 +81 [7:40@2, 13:3]");
    CHECK_STR(sub2(&x, piece(256, 300), all), "hbm bf16 +10240 [44:40@256, 40:1]");
    CHECK_STR(sub2(&x, at(300), all),
              "index 300 is outside axis 0 of `x`, which has 300 elements");
    CHECK_STR(sub2(&x, at(-1), all),
              "index -1 is outside axis 0 of `x`, which has 300 elements");
    CHECK_STR(sub2(&x, all, slice(3, 41, 1)),
              "slice 3:41 is outside axis 1 of `x`, which has 40 elements");
    CHECK_STR(sub2(&x, all, slice(3, 3, 1)), "slice 3:3 is empty");
    CHECK_STR(sub2(&x, all, piece(0, 48)),
              "piece n covers N = 0..48, the axis covers B = 0..40");
    CHECK_INT(err.code, CPS_E3102);
    cps_vsub three[3] = {all, all, all};
    CHECK(!cps_view_index(&o, &x, 3, three, A, &bad, &err) && err.code == CPS_E3104);

    // pieces are absolute on an axis that was declared with a piece; numbers stay relative
    cps_view t = tile(CPS_SBUF, CPS_DT_BF16, 2, (cps_vdim){.num = 128, .origin = 256}, 40, 0);
    CHECK_STR(sub2(&t, piece(300, 310), all), "sbuf bf16 p44 +0 [#10@300, 40:1]");
    CHECK_STR(sub2(&t, slice(0, 4, 1), at(5)), "sbuf bf16 p0 +5 [#4@256]");
    CHECK_STR(sub2(&t, piece(0, 10), all),
              "piece n covers N = 0..10, the axis covers 256..384");
    CHECK_STR(sub2(&t, slice(0, 8, 2), all), "a slice over partitions has step 1");
    CHECK_STR(sub2(&t, at(7), all), "sbuf bf16 p7 +0 [40:1]");

    cps_vsub reg[2] = {{.kind = CPS_VS_REG, .reg = 9, .mul = 2, .lo = 1}, all};
    CHECK(cps_view_index(&o, &x, 2, reg, A, &bad, &err));
    CHECK_STR(cps_view_text(A, &o), "hbm bf16 +40 +r9*80 [40:1]");
    reg[0].size = 16;
    CHECK(cps_view_index(&o, &x, 2, reg, A, &bad, &err));
    CHECK_STR(cps_view_text(A, &o), "hbm bf16 +40 +r9*80 [16:40, 40:1]");
    CHECK(!cps_view_index(&o, &t, 2, reg, A, &bad, &err)); // not over partitions
    cps_view idx = tile(CPS_SBUF, CPS_DT_I32, 2, (cps_vdim){.num = 17}, 1, 0);
    cps_vsub ind[2] = {{.kind = CPS_VS_INDEX, .index = &idx}, piece(8, 16)};
    CHECK(cps_view_index(&o, &x, 2, ind, A, &bad, &err));
    CHECK_STR(cps_view_text(A, &o), "hbm bf16 +8 index [17:40, 8:1@8]");
    CHECK(!cps_view_index(&o, &t, 2, ind, A, &bad, &err) && err.code == CPS_E5202);
}

static void
folds(void)
{
    cps_view w = tile(CPS_SBUF, CPS_DT_BF16, 2,
                      (cps_vdim){.num = 300, .fold = 128, .decl = "K by 128"}, 64, 0);
    CHECK_STR(cps_view_text(A, &w), "sbuf bf16 p0 +0 [#300 by 128:64, 64:1]");
    CHECK_STR(sub2(&w, piece(128, 256), all), "sbuf bf16 p0 +64 [#128@128, 64:1]");
    CHECK_STR(sub2(&w, piece(256, 300), piece(0, 9)), "sbuf bf16 p0 +128 [#44@256, 9:1]");
    CHECK_STR(sub2(&w, piece(130, 140), all), "sbuf bf16 p2 +64 [#10@130, 64:1]");
    CHECK_STR(sub2(&w, piece(128, 300), all), "sbuf bf16 p0 +64 [#172 by 128:64@128, 64:1]");
    CHECK_STR(sub2(&w, piece(100, 140), all),
              "rows 100..140 are neither inside one fold of 128 nor whole folds");
    CHECK_INT(err.code, CPS_E3103);
    CHECK_STR(err.note, "axis 0 of `t` was declared `K by 128`");
    CHECK(cps_view_folded(&w));

    cps_view u;
    CHECK(cps_view_unfold(&u, &w, 0, 256, &err));
    CHECK_STR(cps_view_text(A, &u), "sbuf bf16 p0 +0 [#128, 2:64, 64:1]");
    CHECK(cps_view_unfold(&u, &w, 256, 44, &err));
    CHECK_STR(cps_view_text(A, &u), "sbuf bf16 p0 +128 [#44@256, 64:1]");

    // PSUM: folds never straddle a bank; as many as fit share one
    cps_view p = tile(CPS_PSUM, CPS_DT_FP32, 2, (cps_vdim){.num = 384, .fold = 128}, 512, 0);
    CHECK_STR(cps_view_text(A, &p), "psum fp32 p0 +0 [#384 by 128:512, 512:1]");
    p = tile(CPS_PSUM, CPS_DT_FP32, 2, (cps_vdim){.num = 384, .fold = 128}, 300, 0);
    CHECK_STR(cps_view_text(A, &p), "psum fp32 p0 +0 [#384 by 128:512, 300:1]");
    p = tile(CPS_PSUM, CPS_DT_BF16, 2, (cps_vdim){.num = 512, .fold = 128}, 128, 0);
    CHECK_STR(cps_view_text(A, &p), "psum bf16 p0 +0 [#512 by 128:128, 128:1]");
    p = tile(CPS_PSUM, CPS_DT_FP32, 2, (cps_vdim){.num = 512, .fold = 128}, 100, 0);
    CHECK_STR(cps_view_text(A, &p), "psum fp32 p0 +0 [#512 by 128:128, 100:1]");

    cps_view big = tile(CPS_SBUF, CPS_DT_BF16, 2, (cps_vdim){.num = 129}, 4, 0);
    CHECK(big.nd < 0 && err.code == CPS_E4105);
    cps_view row = tile(CPS_SBUF, CPS_DT_BF16, 2, (cps_vdim){.num = 1, .all = true}, 40, 0);
    CHECK_STR(cps_view_text(A, &row), "sbuf bf16 p0 +0 [#all, 40:1]");
    CHECK_STR(cps_view_shape(A, &row), "[all, 40]");
    CHECK_STR(sub2(&row, all, slice(0, 8, 1)), "sbuf bf16 p0 +0 [#all, 8:1]");
}

static void
patterns(void)
{
    static const char *const c[] = {"c"};
    static const int64_t four[] = {4};
    cps_view x = hbm(3, 6, 5, 8, 0);

    CHECK_STR(pattern(&x, "a b c -> c b a", 0, NULL, NULL), "hbm bf16 +0 [8:1, 5:8, 6:40]");
    CHECK_STR(pattern(&x, "a b c -> (a b) c", 0, NULL, NULL), "hbm bf16 +0 [30:8, 8:1]");
    CHECK_STR(pattern(&x, "a b c -> (b a) c", 0, NULL, NULL), "hbm bf16 +0 [5:8*6:40, 8:1]");
    CHECK_STR(pattern(&x, "a b (d c) -> a (b c) d", 1, c, four),
              "hbm bf16 +0 [6:40, 5:8*4:1, 2:4]");
    CHECK_STR(pattern(&x, "a b c -> 1 a b c", 0, NULL, NULL),
              "hbm bf16 +0 [1:1, 6:40, 5:8, 8:1]");
    CHECK_STR(pattern(&x, "a b -> b a", 0, NULL, NULL),
              "bad view pattern \"a b -> b a\": the left names 2 axes, the view has 3");
    CHECK_STR(pattern(&x, "a b c -> a b", 0, NULL, NULL),
              "bad view pattern \"a b c -> a b\": `c` is missing on the right");
    CHECK_STR(pattern(&x, "a b c -> a b d", 0, NULL, NULL),
              "bad view pattern \"a b c -> a b d\": `d` is not on the left");
    CHECK_STR(pattern(&x, "a b c a b c", 0, NULL, NULL),
              "bad view pattern \"a b c a b c\": no `->`");
    CHECK_STR(
        pattern(&x, "a (b d) c -> a b d c", 0, NULL, NULL),
        "bad view pattern \"a (b d) c -> a b d c\": the sizes of `b` and `d` are both open");
    CHECK_STR(
        pattern(&x, "a (b c) d -> a b c d", 1, c, four),
        "bad view pattern \"a (b c) d -> a b c d\": axis 1 has 5 elements, the sizes give 4");
    CHECK_STR(pattern(&x, "a (b c -> a b c", 0, NULL, NULL),
              "bad view pattern \"a (b c -> a b c\": parentheses do not match");

    // on chip the partition axis moves, but is not split or joined
    cps_view t = tile(CPS_SBUF, CPS_DT_FP32, 3, (cps_vdim){.num = 64}, 3, 10);
    CHECK_STR(pattern(&t, "r f j -> r (f j)", 0, NULL, NULL), "sbuf fp32 p0 +0 [#64, 30:1]");
    CHECK_STR(pattern(&t, "r f j -> f r j", 0, NULL, NULL),
              "sbuf fp32 p0 +0 [3:10, #64, 10:1]");
    CHECK_STR(pattern(&t, "r f j -> (r f) j", 0, NULL, NULL),
              "the partition axis of `t` cannot be joined");
    CHECK_INT(err.code, CPS_E3105);
    CHECK_STR(pattern(&t, "(r s) f j -> r s f j", 1, (const char *const[]){"s"}, four),
              "the partition axis of `t` cannot be split");

    // slices of a joined axis: whole rows, or inside one
    cps_view o, j;
    CHECK(cps_view_reshape(&j, &x, "a b c -> (b a) c", 0, NULL, NULL, A, &err));
    CHECK_STR(sub2(&j, slice(6, 18, 1), all), "hbm bf16 +8 [2:8*6:40@6, 8:1]");
    CHECK_STR(sub2(&j, slice(7, 9, 1), all), "hbm bf16 +48 [1:8*2:40@7, 8:1]");
    CHECK_STR(sub2(&j, at(29), all), "hbm bf16 +232 [8:1]");
    CHECK_STR(sub2(&j, slice(5, 8, 1), all),
              "a slice of a joined axis must keep whole rows of it or stay inside one");

    CHECK(cps_view_transpose(&o, &t, A, &err));
    CHECK_STR(cps_view_text(A, &o), "sbuf fp32 p0 +0 [#64, 10:1, 3:10]");
    CHECK(cps_view_repeat(&o, &x, 3, 1, A, &err));
    CHECK_STR(cps_view_text(A, &o), "hbm bf16 +0 [6:40, 5:8*3:0, 8:1]");
    CHECK(!cps_view_repeat(&o, &t, 3, 0, A, &err) && err.code == CPS_E3105);
    CHECK(!cps_view_repeat(&o, &t, 0, 1, A, &err) && !cps_view_repeat(&o, &t, 2, 3, A, &err));
    CHECK(cps_view_windows(&o, &t, 3, A, &err));
    CHECK_STR(cps_view_text(A, &o), "sbuf fp32 p0 +0 [#64, 3:10, 8:1, 3:1]");
    CHECK(cps_view_windows(&o, &t, 10, A, &err) && o.ax[2].num == 1);
    CHECK(!cps_view_windows(&o, &t, 11, A, &err) && err.code == CPS_E3104);
    CHECK(!cps_view_windows(&o, &t, 0, A, &err) && err.code == CPS_E3104);
}

static void
bits_and_lowering(void)
{
    cps_view q = tile(CPS_SBUF, CPS_DT_FP8E4M3, 2, (cps_vdim){.num = 100}, 36, 0), s, b;
    cps_vsub sub[2] = {all, slice(32, 36, 1)};
    int bad;
    cps_tview t;

    CHECK(cps_view_index(&s, &q, 2, sub, A, &bad, &err));
    CHECK(cps_view_bits(&b, &s, CPS_DT_FP32, A, &err));
    CHECK_STR(cps_view_text(A, &b), "sbuf fp32 p0 +8 [#100, 1:1]");
    sub[1] = slice(31, 35, 1);
    CHECK(cps_view_index(&s, &q, 2, sub, A, &bad, &err));
    CHECK(!cps_view_bits(&b, &s, CPS_DT_FP32, A, &err) && err.code == CPS_E3107);
    CHECK(!cps_view_bits(&b, &q, CPS_DT_FP32, A, &err) == false); // 36 bytes are 9 words
    sub[1] = slice(0, 34, 1);
    CHECK(cps_view_index(&s, &q, 2, sub, A, &bad, &err));
    CHECK(!cps_view_bits(&b, &s, CPS_DT_FP32, A, &err));

    cps_view x = tile(CPS_SBUF, CPS_DT_FP32, 3, (cps_vdim){.num = 64}, 3, 10);
    CHECK(cps_view_lower(&x, 5, 0, true, &t, A, &err));
    CHECK_INT(t.nd, 1);
    CHECK_INT(t.d[0].num, 30);
    CHECK_INT(t.parts, 64);
    CHECK(cps_view_lower(&x, 5, 32, false, &t, A, &err));
    CHECK_INT(t.nd, 2);
    CHECK_INT(t.d[0].step, 10);
    CHECK_INT(t.parts, 32);
    cps_view h = hbm(3, 6, 5, 8, 0);
    for (int i = 0; i < 3; i++) { // every other element of each axis: nothing merges
        cps_vsub z[3] = {all, all, all};
        z[i] = slice(1, h.ax[i].num, 2);
        CHECK(cps_view_index(&h, &h, 3, z, A, &bad, &err));
    }
    CHECK(cps_view_lower(&h, 1, 0, true, &t, A, &err));
    CHECK_INT(t.nd, 3);
    CHECK_INT(t.off, 1 + 8 + 40);
    CHECK_INT(t.d[0].step, 80);
    CHECK_INT(cps_view_free(&h), 3 * 2 * 4);
}

// Random chains of slices against plain index arithmetic.
static void
property(void)
{
    uint32_t seed = 12345;
#define RND(n) ((int64_t)((seed = seed * 1664525u + 1013904223u) >> 8) % (n))
    for (int round = 0; round < 2000; round++) {
        int64_t n[2] = {1 + RND(40), 1 + RND(40)}, lo[2] = {0, 0}, st[2] = {1, 1};
        int64_t num[2] = {n[0], n[1]};
        cps_view v = hbm(2, n[0], n[1], 0, (int)RND(2));
        int64_t step[2] = {v.ax[0].l[0].step, v.ax[1].l[0].step};
        for (int k = 0; k < 3; k++) {
            cps_vsub s[2];
            cps_view o;
            int bad;
            for (int i = 0; i < 2; i++) {
                int64_t a = RND(num[i]), b = a + 1 + RND(num[i] - a), d = 1 + RND(3);
                s[i] = slice(a, b, d);
                lo[i] += a * st[i];
                st[i] *= d;
                num[i] = (b - a + d - 1) / d;
            }
            CHECK(cps_view_index(&o, &v, 2, s, A, &bad, &err));
            v = o;
        }
        CHECK_INT(v.off, lo[0] * step[0] + lo[1] * step[1]);
        for (int i = 0; i < 2; i++) {
            CHECK_INT(v.ax[i].num, num[i]);
            CHECK_INT(v.ax[i].l[0].step, st[i] * step[i]);
        }
    }
}

int
main(void)
{
    A = cps_arena_create();
    slices();
    folds();
    patterns();
    bits_and_lowering();
    property();
    cps_arena_destroy(A);
    return CHECK_DONE();
}
