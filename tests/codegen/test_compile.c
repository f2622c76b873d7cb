/* Whole compilations: every bundle passes the ISA verifier, listings are as expected, bad
 * programs give diagnostics. */
#include "codegen/isa/text.h"
#include "runtime/base/rng.h"
#include "tests/check.h"
#include "tests/codegen/ops.h"

#include <time.h>

static const char *const targets[] = {"trn1", "trn2", "trn3"};

static cps_kbin *
compile(tp *p)
{
    cps_kbin *k = NULL;
    cps_codegen_opts o = {.verify = true};
    return cps_codegen(p->a, p->f, p->t, &o, &k, p->d) ? k : NULL;
}

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
has(const tp *p, cps_code c)
{
    for (unsigned i = 0; i < cps_diags_count(p->d); i++)
        if (cps_diags_code(p->d, i) == c)
            return true;
    return false;
}

// One stream as text, one instruction a line.
static char *
stream(tp *p, const cps_kbin *k, cps_engine e)
{
    cps_buf b = {0};
    for (uint32_t i = 0; i < k->stream[e].code.n; i++) {
        cps_isa_print(&k->stream[e].code.data[i], k->gen, &b);
        cps_buf_putc(&b, '\n');
    }
    char *s = cps_arena_strdup(p->a, b.data ? b.data : "");
    cps_buf_fini(&b);
    return s;
}

static void
every_op(void)
{
    for (size_t i = 0; i < cps_countof(targets); i++) {
        tp p = tp_new(targets[i]);
        tp_make_ops(&p);
        CHECK(compile(&p) != NULL);
        report(&p);
        tp_free(&p);
        p = tp_new(targets[i]);
        tp_make_softmax(&p, CPS_DT_BF16, 300, 1000);
        CHECK(compile(&p) != NULL);
        report(&p);
        tp_free(&p);
        for (int t = 0; t < 3; t++) {
            static const cps_dtype types[] = {CPS_DT_BF16, CPS_DT_FP32, CPS_DT_FP8E4M3};
            p = tp_new(targets[i]);
            tp_make_matmul(&p, types[t], 300, 200, 700);
            CHECK(compile(&p) != NULL);
            report(&p);
            tp_free(&p);
        }
    }
}

static void
golden_matmul(void)
{
    tp p = tp_new("trn2");
    tp_make_matmul(&p, CPS_DT_BF16, 256, 256, 512);
    cps_kbin *k = compile(&p);
    CHECK(k != NULL);
    if (!k)
        return;
    // Two accumulators of two products: the second set of weights waits for nothing but its
    // load, and the loads of the third to fourth x wait until the PE has taken the earlier
    // ones.
    CHECK_STR(
        stream(&p, k, CPS_PE),
        "LDWEIGHTS src=bf16@sbuf[p0+0x1000][1][128] num_active_rows=128 num_active_cols=128 "
        "row_grp=0xf col_grp=0xf wait S[10]>=16 then S[3]++@complete\n"
        "MATMUL src=bf16@sbuf[p0][1][512] num_active_rows=128 num_active_cols=128 "
        "psum_accumulate_flags=START row_grp=0xf col_grp=0xf dst=fp32@psum[p0][1][512]\n"
        "LDWEIGHTS src=bf16@sbuf[p0+0x1100][1][128] num_active_rows=128 num_active_cols=128 "
        "row_grp=0xf col_grp=0xf wait S[11]>=16\n"
        "MATMUL src=bf16@sbuf[p0+0x400][1][512] num_active_rows=128 num_active_cols=128 "
        "psum_accumulate_flags=END row_grp=0xf col_grp=0xf dst=fp32@psum[p0][1][512] "
        "then S[3]++@complete\n"
        "LDWEIGHTS src=bf16@sbuf[p0+0x1200][1][128] num_active_rows=128 num_active_cols=128 "
        "row_grp=0xf col_grp=0xf wait S[12]>=16\n"
        "MATMUL src=bf16@sbuf[p0][1][512] num_active_rows=128 num_active_cols=128 "
        "psum_accumulate_flags=START row_grp=0xf col_grp=0xf dst=fp32@psum[p0+0x800][1][512]\n"
        "LDWEIGHTS src=bf16@sbuf[p0+0x1000][1][128] num_active_rows=128 num_active_cols=128 "
        "row_grp=0xf col_grp=0xf wait S[8]>=32\n"
        "MATMUL src=bf16@sbuf[p0+0x400][1][512] num_active_rows=128 num_active_cols=128 "
        "psum_accumulate_flags=END row_grp=0xf col_grp=0xf dst=fp32@psum[p0+0x800][1][512] "
        "then S[3]++@complete\n");
    CHECK_INT(k->blocks.n, 8);
    CHECK_INT(k->vars.n, 4);
    CHECK_INT(k->stats.psum_banks, 2);
    tp_free(&p);
}

// The same input gives the same bytes, and a kernel packs and unpacks.
static void
deterministic(void)
{
    cps_buf b[2] = {{0}, {0}};
    for (int i = 0; i < 2; i++) {
        tp p = tp_new("trn2");
        tp_make_ops(&p);
        cps_kbin *k = compile(&p);
        CHECK(k != NULL);
        if (k)
            cps_kbin_pack(k, &b[i]);
        tp_free(&p);
    }
    CHECK(b[0].n > 0 && b[0].n == b[1].n && !memcmp(b[0].data, b[1].data, b[0].n));
    cps_buf_fini(&b[0]);
    cps_buf_fini(&b[1]);
}

// Patterns that do not fit their slots become several instructions over the outer axes.
static void
deep_patterns(void)
{
    tp p = tp_new("trn2");
    uint32_t a = tp_tile(&p, "a", CPS_SBUF, CPS_DT_FP32, 128, 1024, 0, 0, 0);
    uint32_t b = tp_tile(&p, "b", CPS_SBUF, CPS_DT_FP32, 128, 1024, 0, 0, 0);
    const cps_tdim deep[] = {{512, 2}, {128, 2}, {32, 2}, {8, 2}, {1, 4}};
    tp_1(&p, CPS_T_MEMSET, tp_view(&p, a, 0, 128, 0, 1024), cps_to_imm(0));
    tp_1(&p, CPS_T_RECIPROCAL, tp_walk(&p, b, 0, 128, 0, 5, deep),
         tp_walk(&p, a, 0, 128, 0, 5, deep))
        ->engine = CPS_DVE;
    // 4 slots: one axis is left outside.
    cps_tinst *i =
        tp_3(&p, CPS_T_STT, tp_walk(&p, b, 0, 128, 0, 5, deep),
             tp_walk(&p, a, 0, 128, 0, 5, deep), cps_to_imm(1), tp_view(&p, a, 0, 128, 0, 64));
    tp_alu(i, CPS_ALU_MULT, CPS_ALU_ADD); // 2 slots: three axes are left outside
    cps_kbin *k = compile(&p);
    CHECK(k != NULL);
    report(&p);
    if (k)
        CHECK_INT(k->stream[CPS_DVE].code.n, 1 + 2 + 8); // the fill, then both
    tp_free(&p);
}

static void
expect(tp *p, cps_code c)
{
    CHECK(compile(p) == NULL);
    CHECK(has(p, c));
    if (!has(p, c))
        report(p);
    tp_free(p);
}

static void
bad_programs(void)
{
    tp p = tp_new("trn2");
    uint32_t a = tp_tile(&p, "a", CPS_SBUF, CPS_DT_FP32, 128, 64, 0, 0, 0);
    tp_1(&p, CPS_T_RECIPROCAL, tp_view(&p, a, 0, 128, 0, 6), tp_view(&p, a, 0, 128, 0, 4));
    expect(&p, CPS_E5301);

    p = tp_new("trn2");
    a = tp_tile(&p, "a", CPS_SBUF, CPS_DT_FP32, 128, 64, 0, 0, 0);
    tp_1(&p, CPS_T_RECIPROCAL, tp_view(&p, a, 16, 32, 0, 4), tp_view(&p, a, 16, 32, 0, 4));
    expect(&p, CPS_E5302);

    p = tp_new("trn2");
    a = tp_tile(&p, "a", CPS_SBUF, CPS_DT_FP32, 128, 64, 0, 0, 0);
    tp_1(&p, CPS_T_RECIPROCAL, tp_view(&p, a, 0, 128, 0, 4), tp_view(&p, a, 0, 128, 0, 4))
        ->engine = CPS_ACT;
    expect(&p, CPS_E5303);

    p = tp_new("trn1");
    a = tp_tile(&p, "a", CPS_SBUF, CPS_DT_FP32, 128, 64, 0, 0, 0);
    tp_1(&p, CPS_T_TRANSPOSE, tp_view(&p, a, 0, 20, 0, 40), tp_view(&p, a, 0, 40, 0, 20));
    expect(&p, CPS_E5304);

    p = tp_new("trn2");
    a = tp_tile(&p, "a", CPS_PSUM, CPS_DT_FP32, 128, 64, 0, 0, 0);
    uint32_t y = tp_hbm(&p, "y", CPS_OUT, CPS_DT_FP32, 128, 64);
    tp_1(&p, CPS_T_DMA, tp_block(&p, y, 0, 128, 0, 64), tp_view(&p, a, 0, 128, 0, 64));
    expect(&p, CPS_E5305);

    p = tp_new("trn2");
    cps_tbuf rb = {.name = "r",
                   .space = CPS_REG,
                   .dtype = CPS_DT_I32,
                   .pin_byte = -1,
                   .pin_bank = -1,
                   .pin_part = -1};
    uint32_t r = cps_tile_buf(p.f, rb);
    a = tp_tile(&p, "a", CPS_PSUM, CPS_DT_I32, 1, 1, 0, 0, 0);
    cps_tinst *i = tp_inst(&p, CPS_T_REG_LOAD, 1, 1);
    i->out[0] = (cps_toper){.kind = CPS_TO_REG, .id = r};
    i->in[0] = tp_view(&p, a, 0, 1, 0, 1);
    expect(&p, CPS_E5306);

    p = tp_new("trn2");
    a = tp_tile(&p, "a", CPS_SBUF, CPS_DT_FP32, 128, 64, 0, 0, 0);
    tp_1(&p, CPS_T_MEMSET, tp_view(&p, a, 0, 128, 0, 4), cps_to_imm(0))->after = 5;
    expect(&p, CPS_E6201);
}

// Programs that no verifier has seen must not do harm.
static void
malformed_programs(void)
{
    for (int n = 0; n < 9; n++) {
        tp p = tp_new("trn2");
        uint32_t a = tp_tile(&p, "a", CPS_SBUF, CPS_DT_FP32, 128, 64, 0, 0, 0);
        cps_toper v = tp_view(&p, a, 0, 128, 0, 4);
        cps_tinst *i = tp_1(&p, CPS_T_RECIPROCAL, v, tp_view(&p, a, 0, 128, 0, 4));
        cps_tview *w = &p.f->views.data[v.id];
        switch (n) {
        case 0:
            i->in[0].id = 99;
            break;
        case 1:
            i->in[0] = cps_to_imm(1);
            break;
        case 2:
            i->nin = 0;
            break;
        case 3:
            w->buf = 77;
            break;
        case 4:
            w->off = 61;
            break;
        case 5:
            w->parts = 129;
            break;
        case 6:
            w->d[0] = (cps_tdim){INT64_MAX / 2, 5};
            break;
        case 7:
            w->d[0].num = 0;
            break;
        default:
            i->op = 9999;
            break;
        }
        expect(&p, CPS_E5301);
    }
    tp p = tp_new("trn2");
    tp_inst(&p, CPS_T_END, 0, 0);
    expect(&p, CPS_E5301);
}

// Programs with a few things changed compile, or fail with a diagnostic; never silently.
static void
mutants(void)
{
    for (unsigned seed = 0; seed < 200; seed++) {
        tp p = tp_new(targets[seed % 3]);
        cps_rng r;
        cps_rng_init(&r, seed, 3);
        tp_make_ops(&p);
        cps_tfunc *f = p.f;
        for (unsigned n = 1 + (unsigned)cps_rng_below(&r, 4); n-- > 0;) {
            cps_tview *v = &f->views.data[cps_rng_below(&r, f->views.n)];
            cps_tinst *i = &f->insts.data[cps_rng_below(&r, f->insts.n)];
            cps_tbuf *b = &f->bufs.data[1 + cps_rng_below(&r, f->bufs.n - 1)];
            int32_t x = (int32_t)cps_rng_below(&r, 140);
            switch (cps_rng_below(&r, 10)) {
            case 0:
                v->off = x;
                break;
            case 1:
                v->parts = (uint16_t)x;
                break;
            case 2:
                v->part = (uint16_t)x;
                break;
            case 3:
                v->d[0].step = x - 70;
                break;
            case 4:
                v->d[0].num = x;
                break;
            case 5:
                v->dtype = (cps_dtype)(1 + x % (CPS_DT_COUNT - 1));
                break;
            case 6:
                i->op = (uint16_t)(x % (CPS_TOPS + 2));
                break;
            case 7:
                cps_tinst_set(i, (cps_tattr_key)(x % CPS_TATTRS), x);
                break;
            case 8:
                i->engine = (uint8_t)(x % 6);
                break;
            default:
                b->pin_byte = 2000 * x;
                break;
            }
        }
        bool ok = compile(&p) != NULL;
        CHECK(ok == (cps_diags_errors(p.d) == 0));
        tp_free(&p);
    }
}

// 1024^3 in tiles of 128 x 128 x 512: compile time and size.
static void
large(void)
{
    tp p = tp_new("trn2");
    tp_make_matmul(&p, CPS_DT_BF16, 1024, 1024, 1024);
    struct timespec a, b;
    clock_gettime(CLOCK_MONOTONIC, &a);
    cps_kbin *k = NULL;
    CHECK(cps_codegen(p.a, p.f, p.t, NULL, &k, p.d));
    clock_gettime(CLOCK_MONOTONIC, &b);
    double ms = (double)(b.tv_sec - a.tv_sec) * 1e3 + (double)(b.tv_nsec - a.tv_nsec) / 1e6;
    unsigned n = 0;
    for (int e = 0; k && e < CPS_ENGINES; e++)
        n += k->stream[e].code.n;
    printf("1024^3: %u bundles in %.2f ms\n", n, ms);
    CHECK(n > 300 && n < 700);
    CHECK(ms < 1000); // a few on an idle machine; far off means something is quadratic
    tp_free(&p);
}

int
main(void)
{
    every_op();
    golden_matmul();
    deterministic();
    deep_patterns();
    bad_programs();
    malformed_programs();
    mutants();
    large();
    return CHECK_DONE();
}
