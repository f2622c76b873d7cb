/* Kernels by hand: a small builder over cps_isa_new and cps_isa_set for the tests of this room.
 */
#ifndef CPS_TESTS_SIM_KB_H
#define CPS_TESTS_SIM_KB_H

#include "codegen/isa/target.h"
#include "runtime/sim/sim.h"
#include "tests/check.h"

#include <math.h>
#include <stdlib.h>

typedef struct kb {
    cps_arena *a;
    cps_kbin *k;
    cps_diags *d;
    cps_sim *s;
    const cps_target *t;
    cps_sim_report rep;
    int line;
} kb;

static inline kb
kb_new(const char *target)
{
    kb b = {.a = cps_arena_create(), .d = cps_diags_create(), .t = cps_target_find(target)};
    b.k = cps_kbin_new(b.a, "test", target, b.t->gen);
    b.s = cps_sim_create(b.t);
    return b;
}

static inline void
kb_free(kb *b)
{
    cps_sim_destroy(b->s);
    cps_diags_destroy(b->d);
    cps_arena_destroy(b->a);
}

static inline uint32_t
kb_var(kb *b, const char *name, cps_varkind kind, cps_dtype t, int64_t n)
{
    cps_kvar *v = cps_vec_add(b->a, &b->k->vars);
    v->name = name;
    v->kind = kind;
    v->dtype = t;
    v->rank = 1;
    v->dim[0] = n;
    v->bytes = n * cps_dtype_bytes(t);
    return b->k->vars.n - 1;
}

/* Appends to a stream; each bundle gets a line of its own in "k.cps". */
static inline cps_bundle *
kb_put(kb *b, cps_engine e, cps_bundle x)
{
    cps_kloc at = {"k.cps", (uint32_t)++b->line, 1};
    cps_vec_push(b->a, &b->k->stream[e].code, x);
    cps_vec_push(b->a, &b->k->stream[e].locs, at);
    return &b->k->stream[e].code.data[b->k->stream[e].code.n - 1];
}

static inline cps_bundle
kb_insn(kb *b, cps_insn i)
{
    return cps_isa_new(i, b->k->gen);
}

static inline void
kb_wait(cps_bundle *x, unsigned sem, unsigned value)
{
    cps_isa_set(x, CPS_F_EVENTS_wait_mode, CPS_WAIT_SEM_GE_IMM);
    cps_isa_set(x, CPS_F_EVENTS_wait_idx, sem);
    cps_isa_set(x, CPS_F_EVENTS_semaphore_value, value);
}

static inline void
kb_inc(cps_bundle *x, unsigned sem)
{
    cps_isa_set(x, CPS_F_EVENTS_update_mode, CPS_UPDATE_SEM_INC_COMPLETE);
    cps_isa_set(x, CPS_F_EVENTS_update_idx, sem);
}

static inline cps_ap
ap1(uint32_t addr, int n)
{
    return (cps_ap){.addr = addr, .nd = 1, .step = {1}, .num = {(uint16_t)n}};
}

static inline cps_ap
ap2(uint32_t addr, int step0, int n0, int step1, int n1)
{
    return (cps_ap){.addr = addr,
                    .nd = 2,
                    .step = {(int16_t)step0, (int16_t)step1},
                    .num = {(uint16_t)n0, (uint16_t)n1}};
}

static inline void
kb_ap(cps_bundle *x, cps_field f, cps_ap a)
{
    cps_isa_set_ap(x, f, &a);
}

static inline unsigned
wire(cps_dtype t)
{
    return (unsigned)cps_dtypes[t].wire;
}

static inline unsigned
pair(cps_dtype lo, cps_dtype hi)
{
    return wire(lo) | wire(hi) << 4;
}

/* One block with one descriptor: `parts` rows of `row` bytes between variable `hbm` (rows
 * `pitch` apart) and SBUF partition `part` byte `byte`. */
static inline void
kb_block(kb *b, cps_engine e, const char *queue, uint32_t id, unsigned sem, bool load,
         uint32_t hbm, int64_t off, int64_t pitch, int part, int parts, int byte, int64_t row)
{
    cps_kdesc *c = cps_vec_add(b->a, &b->k->descs);
    int64_t sb = (int64_t)part << 18 | byte;
    c->from_dtype = c->to_dtype = CPS_DT_U8;
    c->from = load ? hbm : 0;
    c->to = load ? 0 : hbm;
    c->from_off = load ? off : sb;
    c->to_off = load ? sb : off;
    c->nfrom = c->nto = 2;
    c->from_step[0] = c->to_step[0] = 1;
    c->from_size[0] = c->to_size[0] = row;
    c->from_size[1] = c->to_size[1] = parts;
    c->from_step[1] = load ? pitch : 1 << 18;
    c->to_step[1] = load ? 1 << 18 : pitch;
    cps_kblock *k = cps_vec_add(b->a, &b->k->blocks);
    k->owner = e;
    k->queue = queue;
    k->id = id;
    k->semaphore = (uint8_t)sem;
    k->first = b->k->descs.n - 1;
    k->ndesc = 1;
}

static inline cps_bundle
kb_trigger(kb *b, const char *queue, uint32_t id)
{
    cps_bundle x = kb_insn(b, CPS_INSN_PSEUDO_DMA_TRIGGER);
    memcpy(x.b + cps_fields[CPS_F_PSEUDO_DMA_TRIGGER_queue].byte, queue, strlen(queue));
    cps_isa_set(&x, CPS_F_PSEUDO_DMA_TRIGGER_block_id, id);
    return x;
}

static inline void
kb_show(kb *b)
{
    cps_buf out = {0};
    cps_diags_render(b->d, &out, false);
    fprintf(stderr, "%s", out.data ? out.data : "");
    cps_buf_fini(&out);
}

static inline bool
kb_load(kb *b)
{
    bool ok = cps_sim_load(b->s, b->k, b->d);
    if (!ok)
        kb_show(b);
    return ok;
}

static inline bool
kb_run(kb *b)
{
    cps_sim_opts o = {.checks = CPS_CHECK_ALL, .max_steps = 1000000};
    return cps_sim_run(b->s, &o, &b->rep, b->d);
}

static inline bool
kb_has(const kb *b, cps_code code)
{
    for (unsigned i = 0; i < cps_diags_count(b->d); i++) {
        if (cps_diags_code(b->d, i) == code)
            return true;
    }
    return false;
}

/* A text among everything that was emitted, notes included. */
static inline bool
kb_says(const kb *b, const char *text)
{
    cps_buf out = {0};
    cps_diags_render(b->d, &out, false);
    bool hit = out.data && strstr(out.data, text);
    cps_buf_fini(&out);
    return hit;
}

#endif
