/* Packages by hand: one kernel with every kind of variable, descriptor and relocation, and
 * steps that run it. */
#ifndef CPS_TESTS_PKG_PK_H
#define CPS_TESTS_PKG_PK_H

#include "runtime/pkg/package_plan.h"
#include "tests/sim/kb.h"

static const float pk_table[4] = {1, 2, 3, 4}, pk_gamma[64] = {0.5f};

/* Adds a descriptor to the last block. */
static inline cps_kdesc *
pk_desc(kb *b, cps_descop op, uint32_t from, uint32_t to, int64_t bytes)
{
    cps_kdesc *d = cps_vec_add(b->a, &b->k->descs);
    *d = (cps_kdesc){.op = op,
                     .from = from,
                     .to = to,
                     .nfrom = 1,
                     .nto = 1,
                     .from_step = {1},
                     .from_size = {bytes},
                     .to_step = {1},
                     .to_size = {bytes},
                     .from_dtype = CPS_DT_U8,
                     .to_dtype = CPS_DT_U8};
    b->k->blocks.data[b->k->blocks.n - 1].ndesc++;
    return d;
}

static inline void
pk_block(kb *b, cps_engine owner, const char *queue, uint32_t id, unsigned sem)
{
    cps_kblock k = {.owner = owner,
                    .queue = queue,
                    .id = id,
                    .semaphore = (uint8_t)sem,
                    .first = b->k->descs.n};
    cps_vec_push(b->a, &b->k->blocks, k);
}

/* x[64] and g[64] in, y[64] out, a table and scratch of its own; semaphores 4 to 9. */
static inline void
pk_kernel(kb *b)
{
    uint32_t x = kb_var(b, "x", CPS_VAR_INPUT, CPS_DT_BF16, 64),
             g = kb_var(b, "g", CPS_VAR_INPUT, CPS_DT_FP32, 64);
    uint32_t y = kb_var(b, "y", CPS_VAR_OUTPUT, CPS_DT_BF16, 64);
    uint32_t t = kb_var(b, "tmp", CPS_VAR_TMP, CPS_DT_U8, 4096);
    uint32_t c = kb_var(b, "table", CPS_VAR_DATA, CPS_DT_FP32, 4);
    b->k->vars.data[c].data = pk_table;
    pk_block(b, CPS_ACT, "q_act", 7, 4);
    cps_kdesc *d = pk_desc(b, CPS_DESC_CAST, x, t, 128);
    d->to_size[0] = 256;
    d->from_dtype = CPS_DT_BF16;
    d->to_dtype = CPS_DT_FP32;
    d = pk_desc(b, CPS_DESC_ADD, g, t, 256);
    d->from_dtype = d->to_dtype = CPS_DT_FP32;
    d->to_off = 512;
    d = pk_desc(b, CPS_DESC_TRANSPOSE, x, 0, 128);
    d->nto = 2;
    d->to_size[0] = 16;
    d->to_size[1] = 8;
    d->to_step[1] = 1 << 18;
    d->elem = 2;
    d->rows = 8;
    d->cols = 8;
    pk_block(b, CPS_SP, "q_in", 0, 5);
    pk_desc(b, CPS_DESC_COPY, x, 0, 128);
    pk_desc(b, CPS_DESC_COPY, c, 0, 16);
    pk_block(b, CPS_SP, "q_in", 3, 9);
    d = pk_desc(b, CPS_DESC_COPY, t, y, 128);
    d->nfrom = 3;
    d->from_size[0] = d->from_size[1] = 4;
    d->from_size[2] = 8;
    d->from_step[1] = 16;
    d->from_step[2] = 64;
    kb_put(b, CPS_SP, kb_trigger(b, "q_in", 0));
    kb_put(b, CPS_SP, kb_trigger(b, "q_in", 3));
    kb_put(b, CPS_ACT, kb_trigger(b, "q_act", 7));
    cps_bundle l = kb_insn(b, CPS_INSN_ACTIVATION_TABLE_LOAD),
               m = kb_insn(b, CPS_INSN_DMA_MEMCPY);
    cps_isa_set(&l, CPS_F_CTRL_TL_set, 1);
    kb_put(b, CPS_ACT, l);
    cps_isa_set(&m, CPS_F_DMA_DIRECT2D_semaphore, 8);
    kb_put(b, CPS_SP, m);
    cps_kreloc r = {CPS_SP, 2, CPS_F_DMA_DIRECT2D_src, x, 32};
    cps_vec_push(b->a, &b->k->relocs, r);
}

/* The same kernel for both cores of a pair, with memory that they share. */
static inline void
pk_pair(kb *b)
{
    cps_kbin *core[2];
    for (int c = 0; c < 2; c++) {
        core[c] = b->k = cps_kbin_new(b->a, "test", "trn2", b->t->gen);
        b->k->core = c;
        b->k->cores = 2;
        pk_kernel(b);
        kb_var(b, "both", CPS_VAR_SHARED, CPS_DT_FP32, 64);
    }
    b->k = core[0];
    core[0]->peer = core[1];
}

static inline void
pk_var(cps_package *p, const char *name, cps_pkind kind, cps_dtype t, const void *data)
{
    cps_pvar v = {.name = name,
                  .kind = kind,
                  .dtype = t,
                  .rank = 1,
                  .dim = {64},
                  .bytes = 64 * cps_dtype_bytes(t),
                  .data = data};
    cps_pio io = {.name = name, .var = p->vars.n, .rank = 1, .dim = {64}};
    cps_vec_push(p->arena, &p->vars, v);
    if (kind == CPS_PV_INPUT)
        cps_vec_push(p->arena, &p->inputs, io);
    if (kind == CPS_PV_OUTPUT)
        cps_vec_push(p->arena, &p->outputs, io);
}

static inline void
pk_step(cps_package *p, uint32_t x, uint32_t g, uint32_t y)
{
    cps_pstep s = {.kernel = 0, .first = p->args.n, .nargs = 3};
    cps_vec_push(p->arena, &p->args, ((cps_parg){"x", x}));
    cps_vec_push(p->arena, &p->args, ((cps_parg){"g", g}));
    cps_vec_push(p->arena, &p->args, ((cps_parg){"y", y}));
    cps_vec_push(p->arena, &p->steps, s);
}

/* in -> one -> out through two launches of the kernel, gamma for both. */
static inline cps_package *
pk_package(kb *b, const cps_kbin *k)
{
    cps_package *p = cps_package_new(b->a, "model", "trn2");
    p->target_digest = b->t->digest;
    cps_vec_push(b->a, &p->kernels,
                 ((cps_pkernel){.name = "kernel_0",
                                .leaf = "",
                                .op = "",
                                .why = "",
                                .instance = "",
                                .config = "",
                                .bound = "memory",
                                .kbin = k}));
    pk_var(p, "in", CPS_PV_INPUT, CPS_DT_BF16, NULL);
    pk_var(p, "out", CPS_PV_OUTPUT, CPS_DT_BF16, NULL);
    pk_var(p, "gamma", CPS_PV_CONST, CPS_DT_FP32, pk_gamma);
    pk_var(p, "one", CPS_PV_TMP, CPS_DT_BF16, NULL);
    pk_step(p, 0, 2, 3);
    pk_step(p, 3, 2, 1);
    cps_package_plan(p);
    return p;
}

static inline bool
pk_said(const cps_diags *d, cps_code code, const char *text)
{
    for (unsigned i = 0; i < cps_diags_count(d); i++)
        if (cps_diags_code(d, i) == code && strstr(cps_diags_text(d, i), text))
            return true;
    return false;
}

#endif
