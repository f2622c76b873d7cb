/* The compiled kernel, executed by the simulator, gives what the tile program means: outputs of
 * evaluator and simulator are equal bit for bit, with races, uninitialised reads and bounds
 * checked. On programs with every instruction, on tiled kernels of ragged sizes, and on random
 * straight-line programs. */
#include "tests/check.h"
#include "tests/codegen/ops.h"
#include "tests/codegen/simrun.h"

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

// Compiles, simulates, evaluates and compares. `what` names the program in messages.
static bool
agree(tp *p, const char *what, uint64_t seed, bool keep_order)
{
    void *a[16], *b[16];
    cps_kbin *k = NULL;
    cps_sim_report rep;
    cps_codegen_opts o = {.verify = true, .keep_order = keep_order};
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
                        what, p->t->name, t->name, e, e / (size_t)t->dim[1], e % (size_t)t->dim[1]);
                fprintf(stderr, "%.9g, evaluator %.9g\n", cps_to_f64(t->dtype, x + e * es),
                        cps_to_f64(t->dtype, y + e * es));
                return false;
            }
    }
    return true;
}

int
main(void)
{
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
