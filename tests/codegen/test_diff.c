/* The compiled kernel, executed by the simulator, gives what the tile program means: outputs of
 * evaluator and simulator are equal bit for bit, with races, uninitialised reads and bounds
 * checked. On programs with every instruction, on tiled kernels of ragged sizes, and on random
 * straight-line programs. */
#include "tests/check.h"
#include "tests/codegen/ops.h"
#include "tests/codegen/randprog.h"

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

static bool
random_program(const char *target, unsigned seed)
{
    gen g;
    gen_program(&g, target, seed);
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
