/* Compiles a tile program and runs it on the simulator with all checks. */
#ifndef CPS_TESTS_CODEGEN_SIMRUN_H
#define CPS_TESTS_CODEGEN_SIMRUN_H

#include "runtime/base/rng.h"
#include "runtime/sim/sim.h"
#include "tests/codegen/tp.h"

/* Seeded contents of a buffer; outputs are filled with a pattern nobody computes. */
static inline void *
tp_fill(tp *p, uint32_t buf, uint64_t seed)
{
    const cps_tbuf *b = &p->f->bufs.data[buf];
    size_t n = (size_t)cps_tbuf_bytes(b), es = cps_dtype_bytes(b->dtype);
    uint8_t *m = cps_arena_alloc(p->a, n);
    if (b->role == CPS_OUT) {
        memset(m, 0xA5, n);
        return m;
    }
    cps_rng r;
    cps_rng_init(&r, seed, buf);
    for (size_t i = 0; i < n; i += es) {
        if (cps_dtype_is_int(b->dtype))
            cps_from_i64(b->dtype, m + i, (int64_t)cps_rng_below(&r, 100));
        else
            cps_from_f32(b->dtype, m + i, (float)cps_rng_normal(&r));
    }
    return m;
}

/* Runs a compiled kernel on `mem` (one block per HBM argument, in the order of the buffers). */
static inline bool
tp_sim(tp *p, const cps_kbin *k, void **mem, cps_sim_report *rep)
{
    cps_sim *s = cps_sim_create(p->t);
    bool ok = cps_sim_load(s, k, p->d);
    uint32_t n = 0;
    for (uint32_t i = 1; ok && i < k->vars.n; i++) {
        const cps_kvar *v = &k->vars.data[i];
        if (v->kind == CPS_VAR_DATA || v->kind == CPS_VAR_TMP)
            continue;
        ok =
            cps_sim_bind(s, v->name, mem[n], (size_t)v->bytes, v->kind != CPS_VAR_OUTPUT, p->d);
        n++;
    }
    cps_sim_opts o = {.checks = CPS_CHECK_ALL, .max_steps = 10000000};
    ok = ok && cps_sim_run(s, &o, rep, p->d);
    cps_sim_destroy(s);
    return ok;
}

/* Storage of all HBM arguments. */
static inline unsigned
tp_args(tp *p, void **mem, uint64_t seed)
{
    unsigned n = 0;
    for (uint32_t i = 1; i < p->f->bufs.n; i++) {
        const cps_tbuf *b = &p->f->bufs.data[i];
        if (b->space == CPS_HBM && b->role != CPS_LOCAL && b->role != CPS_DATA)
            mem[n++] = tp_fill(p, i, seed);
    }
    return n;
}

#endif
