/* One or a few instructions on given SBUF contents: inputs come by DMA, the output goes by DMA,
 * so each test also runs the checks. Values are given and taken as floats of the stated type.
 */
#ifndef CPS_TESTS_SIM_RIG_H
#define CPS_TESTS_SIM_RIG_H

#include "tests/sim/kb.h"

typedef struct rig {
    kb b;
    unsigned loads;
    uint8_t *mem[8];
    size_t bytes[8];
    unsigned nmem;
    cps_engine last;
    bool fresh;
    uint8_t *out;
    size_t out_row;
} rig;

static const char *const rig_name[8] = {"in0", "in1", "in2", "in3", "in4", "in5", "in6", "in7"};

static inline rig
rig_new(const char *target)
{
    return (rig){.b = kb_new(target), .fresh = true};
}

/* rows x n values of type t at SBUF partition `part`, byte `byte`. */
static inline void
rig_in(rig *r, int part, int rows, int byte, cps_dtype t, int n, const float *v)
{
    int64_t row = n * (int64_t)cps_dtype_bytes(t);
    unsigned k = r->nmem++;
    uint32_t var = kb_var(&r->b, rig_name[k], CPS_VAR_INPUT, t, rows * (int64_t)n);
    r->bytes[k] = (size_t)(rows * row);
    r->mem[k] = malloc(r->bytes[k]);
    for (int i = 0; i < rows * n; i++) {
        if (cps_dtype_is_int(t))
            cps_from_i64(t, r->mem[k] + (size_t)i * cps_dtype_bytes(t), (int64_t)v[i]);
        else
            cps_from_f32(t, r->mem[k] + (size_t)i * cps_dtype_bytes(t), v[i]);
    }
    kb_block(&r->b, CPS_SP, "q_in", k, 3, true, var, 0, row, part, rows, byte, row);
    kb_put(&r->b, CPS_SP, kb_trigger(&r->b, "q_in", k));
    r->loads++;
}

static inline void
rig_put(rig *r, cps_engine e, cps_bundle x)
{
    if (r->fresh && r->loads)
        kb_wait(&x, 3, 16 * r->loads);
    r->fresh = false;
    r->last = e;
    kb_put(&r->b, e, x);
}

/* Runs and fetches `row` bytes of `rows` partitions from SBUF. */
static inline const uint8_t *
rig_run(rig *r, int part, int rows, int byte, int64_t row)
{
    uint32_t y = kb_var(&r->b, "out", CPS_VAR_OUTPUT, CPS_DT_U8, rows * row);
    kb_block(&r->b, CPS_SP, "q_out", 0, 5, false, y, 0, row, part, rows, byte, row);
    cps_kstream *st = &r->b.k->stream[r->last];
    kb_inc(&st->code.data[st->code.n - 1], 4);
    cps_bundle t = kb_trigger(&r->b, "q_out", 0);
    kb_wait(&t, 4, 1);
    kb_put(&r->b, CPS_SP, t);
    CHECK(kb_load(&r->b));
    for (unsigned k = 0; k < r->nmem; k++)
        cps_sim_bind(r->b.s, rig_name[k], r->mem[k], r->bytes[k], true, r->b.d);
    r->out = calloc((size_t)rows, (size_t)row);
    r->out_row = (size_t)row;
    cps_sim_bind(r->b.s, "out", r->out, (size_t)(rows * row), false, r->b.d);
    bool ok = kb_run(&r->b);
    CHECK(ok);
    if (!ok)
        kb_show(&r->b);
    return r->out;
}

static inline float
rig_f32(const rig *r, int p, int i, cps_dtype t)
{
    return cps_to_f32(t, r->out + (size_t)p * r->out_row + (size_t)i * cps_dtype_bytes(t));
}

static inline int64_t
rig_int(const rig *r, int p, int i, cps_dtype t)
{
    return cps_to_i64(t, r->out + (size_t)p * r->out_row + (size_t)i * cps_dtype_bytes(t));
}

static inline void
rig_free(rig *r)
{
    for (unsigned k = 0; k < r->nmem; k++)
        free(r->mem[k]);
    free(r->out);
    kb_free(&r->b);
}

/* Small reproducible values in [-2, 2). */
static inline float
rig_val(int i)
{
    unsigned k = (unsigned)i * 2654435761u + 999;
    return (float)((int)(k >> 13 & 1023) - 512) / 256.0f;
}

static inline float *
rig_vals(int n)
{
    float *v = malloc((size_t)n * sizeof *v);
    for (int i = 0; i < n; i++)
        v[i] = rig_val(i);
    return v;
}

static inline float
rig_round(cps_dtype t, float v)
{
    return cps_round_f32(t, v);
}

#endif
