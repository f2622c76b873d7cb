/* The simulator as a library that the benchmark's Python process loads, so that both sides of a
 * comparison run in one process on the same core. A handle is a loaded kernel: one that `copse kernel
 * compile` wrote, or a few instructions of one engine repeated in a loop of the hardware.
 *
 * Every call returns false or NULL after an error; bench_error has its text. */
#include "tests/bench/machine.h"
#include "codegen/isa/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { SEM_IN = 8, SEM_DONE = 9, SEM_OUT = 10, LOOP_REG = 3 };

struct bench {
    cps_arena *a;
    cps_diags *d;
    const cps_target *t;
    cps_kbin *k;
    cps_sim *s;
    cps_engine engine;
    uint32_t loads, outs;
};

static char text[4096];

const char *
bench_error(void)
{
    return text;
}

static bool
failed(bench *b, const char *what)
{
    cps_buf out = {0};
    if (b)
        cps_diags_render(b->d, &out, false);
    snprintf(text, sizeof text, "%s: %.*s", what, (int)out.n, out.data ? out.data : "");
    cps_buf_fini(&out);
    return false;
}

void
bench_close(bench *b)
{
    if (b->s)
        cps_sim_destroy(b->s);
    cps_diags_destroy(b->d);
    cps_arena_destroy(b->a);
    free(b);
}

static bench *
bench_create(void)
{
    bench *b = calloc(1, sizeof *b);
    if (b) {
        b->a = cps_arena_create();
        b->d = cps_diags_create();
    }
    return b;
}

/* A kernel's folder. */
bench *
bench_open(const char *dir)
{
    bench *b = bench_create();
    if (!b)
        return NULL;
    b->k = cps_kbin_read(b->a, dir, b->d);
    b->t = b->k ? cps_target_find(b->k->target) : NULL;
    b->s = b->t ? cps_sim_create(b->t) : NULL;
    if (!b->s || !cps_sim_load(b->s, b->k, b->d)) {
        failed(b, dir);
        bench_close(b);
        return NULL;
    }
    return b;
}

/* ---- kernels by hand ---- */

static cps_engine
engine_of(const char *name)
{
    int e = 0;
    while (e < CPS_ENGINES && strcmp(cps_engine_name((cps_engine)e), name) != 0)
        e++;
    return (cps_engine)e;
}

bench *
bench_new(const char *target, const char *engine)
{
    bench *b = bench_create();
    if (!b)
        return NULL;
    b->t = cps_target_find(target);
    b->engine = engine_of(engine);
    if (!b->t || b->engine == CPS_ENGINES) {
        failed(b, "no such target or engine");
        bench_close(b);
        return NULL;
    }
    b->k = cps_kbin_new(b->a, "bench", b->t->name, b->t->gen);
    return b;
}

static void
put(bench *b, cps_engine e, cps_bundle x)
{
    cps_vec_push(b->a, &b->k->stream[e].code, x);
}

static cps_bundle
fresh(const bench *b, cps_insn i)
{
    return cps_isa_new(i, b->k->gen);
}

static void
wait_for(cps_bundle *x, unsigned sem, unsigned value)
{
    cps_isa_set(x, CPS_F_EVENTS_wait_mode, CPS_WAIT_SEM_GE_IMM);
    cps_isa_set(x, CPS_F_EVENTS_wait_idx, sem);
    cps_isa_set(x, CPS_F_EVENTS_semaphore_value, value);
}

/* `rows` runs of `row` bytes between a new variable and SBUF from partition 0, byte `byte`, on. */
static void
transfer(bench *b, const char *name, bool load, int rows, int byte, int64_t row)
{
    cps_kvar *v = cps_vec_add(b->a, &b->k->vars);
    v->name = cps_arena_strdup(b->a, name);
    v->kind = load ? CPS_VAR_INPUT : CPS_VAR_OUTPUT;
    v->dtype = CPS_DT_U8;
    v->rank = 1;
    v->dim[0] = v->bytes = rows * row;
    uint32_t var = b->k->vars.n - 1;
    cps_kdesc *c = cps_vec_add(b->a, &b->k->descs);
    c->from_dtype = c->to_dtype = CPS_DT_U8;
    c->from = load ? var : 0;
    c->to = load ? 0 : var;
    c->from_off = load ? 0 : byte;
    c->to_off = load ? byte : 0;
    c->nfrom = c->nto = 2;
    c->from_step[0] = c->to_step[0] = 1;
    c->from_size[0] = c->to_size[0] = row;
    c->from_size[1] = c->to_size[1] = rows;
    c->from_step[1] = load ? row : 1 << 18;
    c->to_step[1] = load ? 1 << 18 : row;
    cps_kblock *k = cps_vec_add(b->a, &b->k->blocks);
    const char *queue = load ? "q_in" : "q_out";
    k->owner = CPS_SP;
    k->queue = queue;
    k->id = load ? b->loads++ : b->outs++;
    k->semaphore = load ? SEM_IN : SEM_OUT;
    k->first = b->k->descs.n - 1;
    k->ndesc = 1;
    cps_bundle x = fresh(b, CPS_INSN_PSEUDO_DMA_TRIGGER);
    memcpy(x.b + cps_fields[CPS_F_PSEUDO_DMA_TRIGGER_queue].byte, queue, strlen(queue));
    cps_isa_set(&x, CPS_F_PSEUDO_DMA_TRIGGER_block_id, k->id);
    put(b, CPS_SP, x);
}

void
bench_load(bench *b, const char *name, int rows, int byte, int64_t row)
{
    transfer(b, name, true, rows, byte, row);
}

static bool
parse(bench *b, cps_engine e, const char *code)
{
    cps_buf out = {0};
    bool ok = cps_isa_parse(code, strlen(code), 0, b->k->gen, b->d, &out);
    for (size_t i = 0; i + CPS_BUNDLE_BYTES <= out.n; i += CPS_BUNDLE_BYTES) {
        cps_bundle x;
        memcpy(x.b, out.data + i, CPS_BUNDLE_BYTES);
        put(b, e, x);
    }
    cps_buf_fini(&out);
    return ok || failed(b, code);
}

/* Assembly text, once the loads are there: `before`, then `body` `times` times, then on engine `last`
 * `after`. Then stores may be asked for, then bench_ready. */
bool
bench_code(bench *b, const char *before, const char *body, int times, const char *last,
           const char *after)
{
    cps_engine end = engine_of(last);
    cps_bundle in = fresh(b, CPS_INSN_EVENT_SEMAPHORE);
    wait_for(&in, SEM_IN, 16 * b->loads);
    put(b, b->engine, in);
    if (end == CPS_ENGINES || !parse(b, b->engine, before))
        return false;
    uint32_t from = b->k->stream[b->engine].code.n;
    if (!parse(b, b->engine, body))
        return false;
    cps_bundle add = fresh(b, CPS_INSN_ALU_OP), br = fresh(b, CPS_INSN_COMPARE_BRANCH);
    unsigned i32 = (unsigned)cps_dtypes[CPS_DT_I32].wire;
    cps_isa_set(&add, CPS_F_CTRL_AL_op, CPS_ALU_ADD);
    cps_isa_set(&add, CPS_F_CTRL_AL_dtype, i32);
    cps_isa_set(&add, CPS_F_CTRL_AL_src1_datasrc, CPS_DATA_SRC_IMMEDIATE);
    cps_isa_set(&add, CPS_F_CTRL_AL_src0_lo, LOOP_REG);
    cps_isa_set(&add, CPS_F_CTRL_AL_dst_lo, LOOP_REG);
    cps_isa_set(&add, CPS_F_CTRL_AL_imm, 1);
    put(b, b->engine, add);
    int64_t back = (int64_t)from - b->k->stream[b->engine].code.n;
    cps_isa_set(&br, CPS_F_CTRL_BR_cmp_op, CPS_BR_CMP_OP_LT_IMM);
    cps_isa_set(&br, CPS_F_CTRL_BR_dtype, i32);
    cps_isa_set(&br, CPS_F_CTRL_BR_target_mode, CPS_BR_TARGET_MODE_RELATIVE_IMMEDIATE);
    cps_isa_set(&br, CPS_F_CTRL_BR_cmp_imm, (uint64_t)times);
    cps_isa_set(&br, CPS_F_CTRL_BR_cmp_reg0, LOOP_REG);
    cps_isa_set(&br, CPS_F_CTRL_BR_branch, (uint64_t)back);
    put(b, b->engine, br);
    cps_bundle done = fresh(b, CPS_INSN_DRAIN), go = fresh(b, CPS_INSN_EVENT_SEMAPHORE);
    cps_isa_set(&done, CPS_F_EVENTS_update_mode, CPS_UPDATE_SEM_INC_COMPLETE);
    cps_isa_set(&done, CPS_F_EVENTS_update_idx, SEM_DONE);
    put(b, b->engine, done);
    wait_for(&go, SEM_DONE, 1);
    put(b, end, go);
    if (!parse(b, end, after))
        return false;
    put(b, end, done);
    wait_for(&go, SEM_DONE, 2);
    put(b, CPS_SP, go);
    return true;
}

void
bench_store(bench *b, const char *name, int rows, int byte, int64_t row)
{
    transfer(b, name, false, rows, byte, row);
}

bool
bench_ready(bench *b)
{
    b->s = cps_sim_create(b->t);
    return cps_sim_load(b->s, b->k, b->d) || failed(b, "load");
}

/* ---- both ---- */

bool
bench_bind(bench *b, const char *name, void *data, size_t bytes, int defined)
{
    return cps_sim_bind(b->s, name, data, bytes, defined, b->d) || failed(b, name);
}

static double
processor(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

bool
bench_run(bench *b, int checks, bench_result *out)
{
    cps_sim_opts o = {.checks = checks ? CPS_CHECK_ALL : 0};
    cps_sim_report rep;
    double t0 = processor();
    bool ok = cps_sim_run(b->s, &o, &rep, b->d);
    *out = (bench_result){.seconds = processor() - t0, .time_ps = rep.time_ps};
    for (int e = 0; e < CPS_ENGINES; e++)
        out->instructions += rep.instructions[e];
    return ok || failed(b, "run");
}
