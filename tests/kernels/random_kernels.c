/* Random kernels written in the language, through everything: the op's body on the reference evaluator, the leaf traced
 * and run by the tile evaluator, and the binary on the simulator with every check. Evaluator and simulator agree bit for
 * bit, both agree with the reference within rounding, nothing is diagnosed, and the static proof, which never runs the
 * binary, says of every one that it cannot race and cannot get stuck.
 *
 * Every fourth is compiled for a core with a few KiB of SBUF, so that tiles are streamed from HBM. What cannot be is
 * refused with E4101, which is counted.
 *
 * `random_kernels COUNT SEED [FIRST]` runs others; a failure prints its program. */
#include "codegen/codegen.h"
#include "frontend/dsl/body.h"
#include "runtime/sim/sim.h"
#include "tests/dsl/trace_run.h"
#include "tests/kernels/kernel_gen.h"

#include <math.h>

enum { OPERANDS = 9, RESULTS = 2, ARGS = OPERANDS + RESULTS };

typedef struct outcome {
    const char *stage;       /* the one that failed */
    double off[2];           /* evaluator, simulator against the reference, of the largest */
    unsigned proved;         /* of two claims */
    unsigned streamed;       /* tiles */
    uint64_t instructions;
} outcome;

static void *
input(cps_arena *a, const cps_type *t, uint64_t index, int64_t below, uint64_t seed)
{
    size_t n = (size_t)cps_type_count(t), es = cps_dtype_bytes(t->dtype);
    char *p = cps_arena_alloc(a, n * es + 16);
    cps_rng r;
    cps_rng_init(&r, seed, index);
    for (size_t i = 0; i < n; i++)
        if (cps_dtype_is_int(t->dtype))
            cps_from_i64(t->dtype, p + i * es, (int64_t)cps_rng_below(&r, (unsigned)below));
        else
            cps_from_f64(t->dtype, p + i * es, cps_rng_normal(&r));
    return p;
}

// The largest difference from what the reference says, of the largest magnitude in the first result, whose elements the
// second picks from; infinite where one is not a number.
static double
distance(const cps_tensor *first, const cps_tensor *want, const void *got, const cps_type *t)
{
    size_t n = (size_t)cps_type_count(t), es = cps_dtype_bytes(t->dtype);
    double most = 1e-3, worst = 0;
    for (int64_t i = 0; i < cps_type_count(&first->type); i++)
        most = fmax(most, fabs(first->f[i]));
    for (size_t i = 0; i < n; i++)
        most = fmax(most, fabs(want->f[i]));
    for (size_t i = 0; i < n; i++) {
        double d = fabs(want->f[i] - cps_to_f64(t->dtype, (const char *)got + i * es));
        if (!(d <= worst))
            worst = isfinite(d) ? d : INFINITY;
    }
    return worst / most;
}

static bool
simulate(trace_run *r, const cps_kbin *k, void **mem, outcome *o)
{
    cps_sim *s = cps_sim_create(r->inst.target);
    cps_proof proof = {0};
    cps_sim_report rep = {0};
    uint32_t n = 0;
    bool ok = cps_sim_load(s, k, r->d);
    o->stage = "proof";
    ok = ok && cps_sim_prove(s, &proof, r->d);
    o->proved = (proof.races == CPS_PROOF_HOLDS) + (proof.deadlock == CPS_PROOF_HOLDS);
    if (ok)
        o->stage = "simulator";
    for (uint32_t i = 1; ok && i < k->vars.n; i++) {
        const cps_kvar *v = &k->vars.data[i];
        if (v->kind == CPS_VAR_DATA || v->kind == CPS_VAR_TMP)
            continue;
        ok = cps_sim_bind(s, v->name, mem[n++], (size_t)v->bytes, v->kind != CPS_VAR_OUTPUT, r->d);
    }
    cps_sim_opts opts = {.checks = CPS_CHECK_ALL, .max_steps = 10000000};
    ok = ok && cps_sim_run(s, &opts, &rep, r->d);
    o->instructions = proof.instructions;
    cps_sim_destroy(s);
    return ok;
}

static bool
agrees(trace_run *r, uint64_t seed, bool small, outcome *o)
{
    void *tile[ARGS], *sim[ARGS];
    cps_tensor in[OPERANDS], out[RESULTS];
    cps_kbin *k = NULL;
    int results = r->inst.nresults;

    for (int i = 0; i < OPERANDS; i++) {
        tile[i] = sim[i] = input(r->arena, &r->inst.operand[i].type, (uint64_t)i, r->inst.operand[0].type.dim[0], seed);
        in[i] = cps_tensor_from(r->arena, &r->inst.operand[i].type, tile[i]);
    }
    for (int i = 0; i < results; i++) {
        size_t n = (size_t)cps_type_bytes(&r->inst.result[i].type);
        tile[OPERANDS + i] = memset(cps_arena_alloc(r->arena, n + 16), 0x5A, n);
        sim[OPERANDS + i] = memset(cps_arena_alloc(r->arena, n + 16), 0xA5, n);
    }
    cps_module *m = cps_module_new(r->arena, "k");
    cps_func *f = cps_dsl_body(r->set, m, cps_dsl_find_op(r->set, "k"), &r->inst, true, r->d);
    o->stage = "reference";
    if (!f || !cps_ir_eval(r->arena, m, f, in, out, &(cps_eval_opts){.threads = 1}, r->d))
        return false;
    o->stage = "tile evaluator";
    if (!cps_tile_eval(r->f, tile, r->d))
        return false;
    o->stage = "compiler";
    cps_target little = *r->inst.target;
    if (small) {
        little.sbuf_bytes = little.sbuf_reserve + 2048 + (int64_t)(seed % 5) * 1024;
        r->inst.target = &little;
    }
    if (!cps_codegen(r->arena, r->f, r->inst.target, &(cps_codegen_opts){.verify = true}, &k, r->d) ||
        !simulate(r, k, sim, o))
        return false;
    for (int i = 0; i < results; i++) {
        const cps_type *t = &r->inst.result[i].type;
        o->off[0] = fmax(o->off[0], distance(&out[0], &out[i], tile[OPERANDS + i], t));
        o->off[1] = fmax(o->off[1], distance(&out[0], &out[i], sim[OPERANDS + i], t));
        o->stage = "bits of evaluator and simulator";
        if (memcmp(tile[OPERANDS + i], sim[OPERANDS + i], (size_t)cps_type_bytes(t)) != 0)
            return false;
    }
    o->stage = "diagnostics";
    for (unsigned i = 0; i < cps_diags_count(r->d); i++)
        if (cps_diags_code(r->d, i) == CPS_W4108)
            o->streamed++;
        else if (cps_diags_code(r->d, i) != CPS_W2214) // a tile that the expression did not draw
            return false;
    return true;
}

int
main(int argc, char **argv)
{
    static const char *const targets[] = {"trn1", "trn2", "trn3"};
    unsigned count = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 150;
    uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 1, first = argc > 3 ? strtoull(argv[3], NULL, 10) : 0;
    uint64_t instructions = 0;
    unsigned streamed = 0, refused = 0;
    double worst[2] = {0};

    for (uint64_t i = first; i < first + count; i++) {
        kernel_gen g;
        cps_buf why = {0};
        outcome o = {.stage = "tracer"};
        kernel_gen_make(&g, targets[i % cps_countof(targets)], seed, i);
        trace_run r = trace_open("k.cps", g.src.data, NULL, NULL, NULL);
        trace_leaf(&r, NULL, g.target, g.operands, 1, 0);
        bool small = i % 4 == 3, ok = r.f && agrees(&r, seed + i, small, &o), full = false;
        for (unsigned k = 0; k < cps_diags_count(r.d); k++)
            full |= cps_diags_code(r.d, k) == CPS_E4101;
        if (small && full && cps_diags_errors(r.d) == 1) {
            ok = true;
            o.proved = 2;
            refused++;
        }
        streamed += o.streamed;
        double limit = g.fp32 ? 1e-4 : 2e-2;
        if (ok && o.off[1] > limit)
            ok = false, o.stage = "reference's numbers";
        if (ok && o.proved != 2)
            ok = false, o.stage = "claims of the proof";
        CHECK(ok);
        if (!ok) {
            cps_diags_render(r.d, &why, false);
            fprintf(stderr, "kernel %llu of seed %llu on %s, operands %s\nfailed: %s (off by %.3g and %.3g)\n%s%s\n",
                    (unsigned long long)i, (unsigned long long)seed, g.target, g.operands, o.stage, o.off[0], o.off[1],
                    g.src.data, why.n ? why.data : "");
        }
        worst[!g.fp32] = fmax(worst[!g.fp32], o.off[1]);
        instructions += o.instructions;
        trace_close(&r);
        cps_buf_fini(&why);
        kernel_gen_fini(&g);
    }
    CHECK(refused < count / 16 + 1);
    CHECK(streamed > 0 || count < 16);
    printf("%u kernels, %llu instructions, %u tiles streamed, %u too large; off by %.3g of the largest in fp32, %.3g where narrower\n", count,
           (unsigned long long)instructions, streamed, refused, worst[0], worst[1]);
    return CHECK_DONE();
}
