/* Loops in the static proof: a proof that leaves turns out says of every kernel what a walk through all of its
 * turns says. Kernels as the compiler makes them, barriers before and after each body, with
 * operands and transfers whose addresses move; some by hand, then random ones, many with a fault: a wait
 * that is dropped or lowered, an update that is missing, a step that differs. 600 here;
 * `test_sim_prove_loop N SEED` makes more. */
#include "runtime/base/rng.h"
#include "tests/sim/kb.h"

enum {
    SP, POOL, DVE, UNITS, /* engines at work */
    GO = 3, ACK, ARRIVE, DONE /* + unit */, MOVED = DONE + UNITS, /* + transfer of the section */
    LIMIT = 40,
    CARRIED = 3, CARRIES = 3, /* registers; before: counters of loops */
    SCRATCH = 10, /* from here on */
    SLOT = 64,
    ROOM = 1 << 16 /* bytes of the variables */
};

static const cps_engine engines[UNITS] = {CPS_SP, CPS_POOL, CPS_DVE};

/* An address: base + step i, i a register, mostly the counter of a loop; `reg` < 0: it stands still. */
typedef struct place {
    int64_t base, step;
    int reg;
} place;

typedef struct made {
    kb b;
    uint32_t in, out, both;
    unsigned raised[UNITS], transfers;
    unsigned last; /* semaphore and value of the latest operation; 0: the section begins */
    unsigned value;
    cps_rng *g; /* NULL: no faults */
    unsigned rate; /* one wait in so many is spoilt */
    unsigned scratch;
    bool silent; /* transfers tell nobody */
} made;

static uint32_t
below(cps_rng *g, uint32_t n)
{
    return (uint32_t)cps_rng_below(g, n);
}

static bool
spoil(made *m)
{
    return m->g && m->rate && below(m->g, m->rate) == 0;
}

static made
begin(void)
{
    made m = {.b = kb_new("trn2")};
    m.in = kb_var(&m.b, "x", CPS_VAR_INPUT, CPS_DT_U8, ROOM);
    m.out = kb_var(&m.b, "y", CPS_VAR_OUTPUT, CPS_DT_U8, ROOM);
    m.both = kb_var(&m.b, "z", CPS_VAR_TMP, CPS_DT_U8, ROOM);
    return m;
}

/* ---- control ---- */

static void
event(made *m, unsigned u, unsigned mode, unsigned sem, unsigned value, unsigned raise)
{
    cps_bundle x = kb_insn(&m->b, CPS_INSN_EVENT_SEMAPHORE);
    cps_isa_set_event(&x, mode, sem, value, raise);
    kb_put(&m->b, engines[u], x);
}

static void
clear(made *m, unsigned first, unsigned last)
{
    cps_bundle x = kb_insn(&m->b, CPS_INSN_EVENT_SEMAPHORE_RANGE_CLEAR);
    cps_isa_set_clear(&x, first, last);
    kb_put(&m->b, CPS_SP, x);
}

/* As codegen/sync.c has it. */
static void
barrier(made *m)
{
    for (unsigned u = 0; u < UNITS; u++)
        kb_put(&m->b, engines[u], kb_insn(&m->b, CPS_INSN_DRAIN));
    for (unsigned u = 1; u < UNITS; u++) {
        event(m, u, CPS_WAIT_NONE, 0, 0, spoil(m) && below(m->g, 4) == 0 ? 0 : ARRIVE);
        event(m, u, CPS_WAIT_SEM_GE_IMM, GO, 1, ACK);
        event(m, u, CPS_WAIT_SEM_EQ_IMM, GO, 0, 0);
    }
    for (unsigned k = 0; k < m->transfers; k++)
        if (!spoil(m))
            event(m, SP, CPS_WAIT_SEM_GE_IMM, MOVED + k, 16, 0);
    if (!spoil(m))
        event(m, SP, CPS_WAIT_SEM_GE_IMM, ARRIVE, UNITS - 1, 0);
    clear(m, ARRIVE, LIMIT);
    event(m, SP, CPS_WAIT_NONE, 0, 0, GO);
    event(m, SP, CPS_WAIT_SEM_GE_IMM, ACK, UNITS - 1, 0);
    clear(m, GO, ACK);
    memset(m->raised, 0, sizeof m->raised);
    m->transfers = m->last = 0;
}

static void
set(made *m, unsigned u, unsigned reg, uint32_t value)
{
    cps_bundle x = kb_insn(&m->b, CPS_INSN_MOVE);
    cps_isa_set(&x, CPS_F_CTRL_MV_num_mov, 1);
    cps_isa_set(&x, CPS_F_CTRL_MV_dtype, wire(CPS_DT_I32));
    cps_isa_set(&x, CPS_F_CTRL_MV_source, CPS_DATA_SRC_IMMEDIATE);
    cps_isa_set_elem(&x, CPS_F_CTRL_MV_dst_regs, 0, reg);
    cps_isa_set_elem(&x, CPS_F_CTRL_MV_imm, 0, value);
    kb_put(&m->b, engines[u], x);
}

/* to = from op b, a number or (`by_reg`) a register. */
static void
alu2(made *m, unsigned u, unsigned op, unsigned to, unsigned from, bool by_reg, uint32_t b)
{
    cps_bundle x = kb_insn(&m->b, CPS_INSN_ALU_OP);
    cps_isa_set(&x, CPS_F_CTRL_AL_op, op);
    cps_isa_set(&x, CPS_F_CTRL_AL_dtype, wire(CPS_DT_I32));
    cps_isa_set(&x, CPS_F_CTRL_AL_src0_lo, from);
    cps_isa_set(&x, CPS_F_CTRL_AL_dst_lo, to);
    if (by_reg) {
        cps_isa_set(&x, CPS_F_CTRL_AL_src1_lo, b);
    } else {
        cps_isa_set(&x, CPS_F_CTRL_AL_src1_datasrc, CPS_DATA_SRC_IMMEDIATE);
        cps_isa_set(&x, CPS_F_CTRL_AL_imm, b);
    }
    kb_put(&m->b, engines[u], x);
}

static void
alu(made *m, unsigned u, unsigned op, unsigned to, unsigned from, uint32_t imm)
{
    alu2(m, u, op, to, from, false, imm);
}

/* On all engines. */
static void
alu_all(made *m, unsigned op, unsigned to, unsigned from, bool by_reg, uint32_t b)
{
    for (unsigned u = 0; u < UNITS; u++)
        alu2(m, u, op, to, from, by_reg, b);
}

/* `by` of register `other` (< 0: of a number): to `by` bundles away. Returns where. */
static uint32_t
branch(made *m, unsigned u, unsigned op, unsigned reg, int other, uint32_t than, int64_t by)
{
    cps_bundle x = kb_insn(&m->b, CPS_INSN_COMPARE_BRANCH);
    cps_isa_set(&x, CPS_F_CTRL_BR_target_mode, CPS_BR_TARGET_MODE_RELATIVE_IMMEDIATE);
    cps_isa_set(&x, CPS_F_CTRL_BR_dtype, wire(CPS_DT_I32));
    cps_isa_set(&x, CPS_F_CTRL_BR_cmp_op, op + (other < 0 ? 0 : 8));
    cps_isa_set(&x, CPS_F_CTRL_BR_cmp_reg0, reg);
    if (other < 0)
        cps_isa_set(&x, CPS_F_CTRL_BR_cmp_imm, than);
    else
        cps_isa_set(&x, CPS_F_CTRL_BR_cmp_reg1, (unsigned)other);
    cps_isa_set(&x, CPS_F_CTRL_BR_branch, (uint64_t)by);
    kb_put(&m->b, engines[u], x);
    return m->b.k->stream[engines[u]].code.n - 1;
}

typedef struct open {
    uint32_t at[UNITS];
} open_;

static open_
loop(made *m, unsigned reg, uint32_t from)
{
    open_ o;
    barrier(m);
    for (unsigned u = 0; u < UNITS; u++) {
        set(m, u, reg, from);
        o.at[u] = m->b.k->stream[engines[u]].code.n;
        kb_put(&m->b, engines[u], kb_insn(&m->b, CPS_INSN_NOP));
    }
    return o;
}

/* Again while the counter is below `to`, or below register `other`. */
static void
again(made *m, open_ o, unsigned reg, int other, uint32_t to)
{
    barrier(m);
    for (unsigned u = 0; u < UNITS; u++) {
        alu(m, u, CPS_ALU_ADD, reg, reg, 1);
        branch(m, u, CPS_BR_CMP_OP_LT_IMM, reg, other, to, (int64_t)o.at[u] - m->b.k->stream[engines[u]].code.n);
    }
}

/* What follows, up to `end_when`, only where the counter compares so. */
static open_
when_not(made *m, unsigned op, unsigned reg, uint32_t than)
{
    open_ o;
    barrier(m);
    for (unsigned u = 0; u < UNITS; u++)
        o.at[u] = branch(m, u, op, reg, -1, than, 0);
    return o;
}

static void
end_when(made *m, open_ o)
{
    barrier(m);
    for (unsigned u = 0; u < UNITS; u++)
        cps_isa_set(&m->b.k->stream[engines[u]].code.data[o.at[u]], CPS_F_CTRL_BR_branch,
                    m->b.k->stream[engines[u]].code.n - o.at[u]);
}

/* ---- operations ---- */

static unsigned
scratch(made *m)
{
    m->scratch = (m->scratch + 2) % 16;
    return SCRATCH + m->scratch;
}

static uint32_t
operand(made *m, unsigned u, place at)
{
    if (at.reg < 0)
        return (uint32_t)at.base;
    unsigned r = scratch(m);
    alu(m, u, CPS_ALU_MULT, r, (unsigned)at.reg, (uint32_t)at.step);
    alu(m, u, CPS_ALU_ADD, r, r, (uint32_t)at.base);
    return CPS_ADDR_REG | r;
}

static void
wait_last(made *m, cps_bundle *x, bool ordered)
{
    if (!m->last || !ordered || spoil(m))
        return;
    bool lower = spoil(m);
    kb_wait(x, m->last, m->value - (lower && m->value > 1));
}

/* 64 bytes of a partition are set, or copied; it waits for the operation before. */
static void
work(made *m, unsigned u, bool copies, place from, place to, bool ordered)
{
    cps_bundle x = kb_insn(&m->b, copies ? CPS_INSN_COPY : CPS_INSN_MEMSET);
    uint32_t f = copies ? operand(m, u, from) : 0, t = operand(m, u, to);
    if (copies) {
        kb_ap(&x, CPS_F_S4D4_TR_src, ap1(f, 16));
        kb_ap(&x, CPS_F_S4D4_TR_dst, ap1(t, 16));
        cps_isa_set(&x, CPS_F_S4D4_TR_in_dtype, wire(CPS_DT_FP32));
        cps_isa_set(&x, CPS_F_S4D4_TR_out_dtype, wire(CPS_DT_FP32));
        cps_isa_set(&x, CPS_F_S4D4_TR_ch, 1);
    } else {
        kb_ap(&x, CPS_F_D4_MR_dst, ap1(t, 16));
        cps_isa_set(&x, CPS_F_D4_MR_dtype, wire(CPS_DT_FP32));
        cps_isa_set(&x, CPS_F_D4_MR_ch, 1);
        cps_isa_set(&x, CPS_F_D4_MR_dst_element_count, 16);
    }
    wait_last(m, &x, ordered);
    if (!spoil(m)) {
        kb_inc(&x, DONE + u);
        m->last = DONE + u;
        m->value = ++m->raised[u];
    }
    kb_put(&m->b, engines[u], x);
}

/* The address of one side in its field, as codegen/dge.c has it. */
static void
put_side(made *m, unsigned u, cps_bundle *x, cps_field f, uint32_t var, place at)
{
    cps_kstream *s = &m->b.k->stream[engines[u]];
    if (at.reg < 0 && var) {
        cps_kreloc r = {engines[u], s->code.n, f, var, at.base};
        cps_vec_push(m->b.a, &m->b.k->relocs, r);
        return;
    }
    if (at.reg < 0) {
        cps_isa_set(x, f, (uint64_t)at.base);
        return;
    }
    unsigned r = scratch(m);
    alu(m, u, CPS_ALU_MULT, r, (unsigned)at.reg, (uint32_t)at.step);
    set(m, u, r + 1, 0);
    if (var) {
        cps_bundle a = kb_insn(&m->b, CPS_INSN_ALU_OP);
        cps_isa_set(&a, CPS_F_CTRL_AL_op, CPS_ALU_ADD);
        cps_isa_set(&a, CPS_F_CTRL_AL_dtype, wire(CPS_DT_U64));
        cps_isa_set(&a, CPS_F_CTRL_AL_src1_datasrc, CPS_DATA_SRC_IMMEDIATE);
        cps_isa_set(&a, CPS_F_CTRL_AL_src0_lo, r);
        cps_isa_set(&a, CPS_F_CTRL_AL_src0_hi, r + 1);
        cps_isa_set(&a, CPS_F_CTRL_AL_dst_lo, r);
        cps_isa_set(&a, CPS_F_CTRL_AL_dst_hi, r + 1);
        cps_kreloc l = {engines[u], s->code.n, CPS_F_CTRL_AL_imm, var, at.base};
        cps_vec_push(m->b.a, &m->b.k->relocs, l);
        kb_put(&m->b, engines[u], a);
    } else {
        alu(m, u, CPS_ALU_ADD, r, r, (uint32_t)at.base);
    }
    cps_isa_set(x, f, 0x80ull << 56 | (uint64_t)(r + 1) << 8 | r);
}

/* 4 partitions of 64 bytes to or from rows of a variable that are `pitch` * 64 bytes apart. */
static void
transfer(made *m, unsigned u, bool load, uint32_t var, place far, place near, unsigned pitch, bool ordered)
{
    cps_bundle x = kb_insn(&m->b, CPS_INSN_DMA_MEMCPY);
    cps_isa_set(&x, CPS_F_DMA_DIRECT2D_sem_increment, m->silent ? 0 : 16);
    cps_isa_set(&x, CPS_F_DMA_DIRECT2D_semaphore, MOVED + m->transfers);
    cps_isa_set(&x, CPS_F_DMA_DIRECT2D_src_elem_size, 64);
    cps_isa_set(&x, CPS_F_DMA_DIRECT2D_dst_elem_size, 64);
    for (unsigned d = 0; d < 2; d++) {
        cps_isa_set_elem(&x, CPS_F_DMA_DIRECT2D_src_step_elem, d, d ? 1 : load ? pitch : CPS_SBUF_STRIDE / 64);
        cps_isa_set_elem(&x, CPS_F_DMA_DIRECT2D_dst_step_elem, d, d ? 1 : load ? CPS_SBUF_STRIDE / 64 : pitch);
        cps_isa_set_elem(&x, CPS_F_DMA_DIRECT2D_src_num_elem, d, d ? 1 : 4);
        cps_isa_set_elem(&x, CPS_F_DMA_DIRECT2D_dst_num_elem, d, d ? 1 : 4);
    }
    cps_isa_set(&x, CPS_F_DMA_DIRECT2D_in_dtype, wire(CPS_DT_U8));
    cps_isa_set(&x, CPS_F_DMA_DIRECT2D_out_dtype, wire(CPS_DT_U8));
    put_side(m, u, &x, CPS_F_DMA_DIRECT2D_src, load ? var : 0, load ? far : near);
    if (load) { // a relocation names the bundle that follows the address
        put_side(m, u, &x, CPS_F_DMA_DIRECT2D_dst, 0, near);
        for (uint32_t k = m->b.k->relocs.n; far.reg < 0 && k-- > 0;)
            if (m->b.k->relocs.data[k].field == CPS_F_DMA_DIRECT2D_src && m->b.k->relocs.data[k].engine == engines[u]) {
                m->b.k->relocs.data[k].index = m->b.k->stream[engines[u]].code.n;
                break;
            }
    } else {
        put_side(m, u, &x, CPS_F_DMA_DIRECT2D_dst, var, far);
    }
    wait_last(m, &x, ordered);
    kb_put(&m->b, engines[u], x);
    if (m->silent)
        return;
    m->last = MOVED + m->transfers++;
    m->value = 16;
}

/* ---- verdicts ---- */

static cps_proof
prove(made *m, bool every_turn)
{
    cps_proof v;
    cps_sim_prove_every_turn(m->b.s, every_turn);
    cps_diags *d = cps_diags_create();
    cps_sim_prove(m->b.s, &v, d);
    cps_diags_destroy(d);
    return v;
}

typedef struct verdict {
    cps_proof all, some;
} verdict;

/* Both ways, which must agree. */
static verdict
verdict_of(made *m)
{
    barrier(m);
    CHECK(kb_load(&m->b));
    verdict v = {prove(m, true), prove(m, false)};
    CHECK_INT(v.some.races, v.all.races);
    CHECK_INT(v.some.deadlock, v.all.deadlock);
    CHECK(v.some.instructions == v.all.instructions);
    CHECK_INT(v.all.turns_left_out, 0);
    kb_free(&m->b);
    return v;
}

static place
still(int64_t base)
{
    return (place){.base = base, .reg = -1};
}

static place
moves(int64_t base, int64_t step)
{
    return (place){base, step, 0};
}

#define HOLDS(v) ((v).races == CPS_PROOF_HOLDS && (v).deadlock == CPS_PROOF_HOLDS)

/* A loop of `n` turns with two accesses of SBUF that nothing orders. */
static verdict
two(uint32_t n, place a, place b)
{
    made m = begin();
    open_ o = loop(&m, 0, 0);
    work(&m, POOL, false, still(0), a, false);
    work(&m, DVE, false, still(0), b, false);
    again(&m, o, 0, -1, n);
    return verdict_of(&m);
}

/* The same of HBM: a store and another that does not wait for it. */
static verdict
two_stores(uint32_t n, place a, place b, unsigned pitch)
{
    made m = begin();
    open_ o = loop(&m, 0, 0);
    transfer(&m, SP, false, m.both, a, still(0), pitch, false);
    transfer(&m, POOL, false, m.both, b, still(0), pitch, false);
    again(&m, o, 0, -1, n);
    return verdict_of(&m);
}

static void
test_one_turn(void)
{
    enum { N = 50 };
    // in every turn, in none
    CHECK_INT(two(N, still(0), still(32)).some.races, CPS_PROOF_FAILS);
    verdict v = two(N, still(0), still(64));
    CHECK(HOLDS(v.some));
    CHECK_INT(v.some.turns_left_out, N - 3);
    // beside each other in every turn, and once in one place: in the first, in the last, in one between
    CHECK(HOLDS(two(N, moves(0, 128), moves(64, 128)).some));
    CHECK_INT(two(N, moves(0, 128), still(0)).some.races, CPS_PROOF_FAILS);
    CHECK_INT(two(N, moves(0, 128), still(128 * (N - 1))).some.races, CPS_PROOF_FAILS);
    CHECK_INT(two(N, moves(0, 128), still(128 * 30)).some.races, CPS_PROOF_FAILS);
    CHECK(HOLDS(two(N, moves(0, 128), still(128 * N)).some));
    CHECK_INT(two(N, moves(0, 128), still(128 * N)).some.turns_left_out, N - 3);
    // towards each other: they meet in turn 20, or pass each other
    CHECK_INT(two(N, moves(0, 64), moves(64 * 40, -64)).some.races, CPS_PROOF_FAILS);
    CHECK(HOLDS(two(N, moves(0, 128), moves(64 + 128 * 60, -128)).some));
    // one behind the other, each where the other was a turn before: not in one turn
    v = two(N, moves(64, 64), moves(0, 64));
    CHECK(HOLDS(v.some));
}

static void
test_memory(void)
{
    enum { N = 40 };
    // where all drift alike the turn under watch is enough, else all the turns' bytes together
    verdict v = two_stores(N, moves(64, 64), moves(0, 64), 128);
    CHECK(HOLDS(v.some));
    CHECK_INT(v.some.turns_left_out, N - 3);
    v = two_stores(N, moves(0, 64), moves(128 * 32, 64), 128);
    CHECK(HOLDS(v.some));
    CHECK_INT(v.some.turns_left_out, N - 3);
    v = two_stores(N, moves(0, 64), moves(64 * 64, 128), 128);
    CHECK(HOLDS(v.some)); // together they would meet: all turns are walked
    CHECK_INT(v.some.turns_left_out, 0);
    CHECK_INT(two_stores(N, moves(0, 64), still(64 * (N - 1)), 1024 / 64).some.races, CPS_PROOF_FAILS);
    v = two_stores(N, moves(0, 512), still(64), 8);
    CHECK(HOLDS(v.some)); // columns of rows: never the same
    CHECK_INT(v.some.turns_left_out, N - 3);
}

static void
test_bounds(void)
{
    // some turn is the first to leave the partition: it is walked, as all behind it
    made m = begin();
    open_ o = loop(&m, 0, 0);
    work(&m, POOL, false, still(0), moves(0, 64), true);
    again(&m, o, 0, -1, 6000);
    barrier(&m);
    CHECK(kb_load(&m.b));
    cps_proof all = prove(&m, true), some = prove(&m, false);
    CHECK_INT(all.races, some.races);
    CHECK(some.turns_left_out > 2000 && some.turns_left_out < 4096);
    kb_free(&m.b);
    // no number runs over: 2^26 turns would go through 2^32
    m = begin();
    o = loop(&m, 0, 0);
    work(&m, POOL, false, still(0), still(0), true);
    again(&m, o, 0, -1, 1 << 26);
    barrier(&m);
    CHECK(kb_load(&m.b));
    some = prove(&m, false); // more than a walk through all of them can follow
    CHECK(HOLDS(some));
    CHECK(some.turns_left_out == (1 << 26) - 3);
    kb_free(&m.b);
}

/* A race in one branch of a loop's turn: in none but `at`. */
static verdict
once(uint32_t n, unsigned op, uint32_t at, bool races)
{
    made m = begin();
    open_ o = loop(&m, 0, 0);
    work(&m, POOL, false, still(0), still(0), true);
    open_ w = when_not(&m, op, 0, at);
    work(&m, POOL, false, still(0), still(128), true);
    work(&m, DVE, false, still(0), still(128), !races);
    end_when(&m, w);
    work(&m, DVE, true, still(0), still(256), true);
    again(&m, o, 0, -1, n);
    return verdict_of(&m);
}

static void
test_branches(void)
{
    enum { N = 60 };
    static const uint32_t at[] = {0, 1, 2, 3, 4, 5, 17, N - 3, N - 2, N - 1, N};
    for (size_t k = 0; k < cps_countof(at); k++) {
        verdict v = once(N, CPS_BR_CMP_OP_NE_IMM, at[k], true);
        CHECK_INT(v.some.races, at[k] < N ? CPS_PROOF_FAILS : CPS_PROOF_HOLDS);
        v = once(N, CPS_BR_CMP_OP_NE_IMM, at[k], false);
        CHECK(HOLDS(v.some));
        CHECK(v.some.turns_left_out > N / 2);
    }
    CHECK_INT(once(N, CPS_BR_CMP_OP_LT_IMM, N - 1, true).some.races, CPS_PROOF_FAILS);
    CHECK_INT(once(N, CPS_BR_CMP_OP_GE_IMM, 1, true).some.races, CPS_PROOF_FAILS);
}

/* A loop in a loop; `triangle`: of as many turns as the outer one counts. */
static verdict
nested(uint32_t n, uint32_t k, bool triangle, place a, place b)
{
    made m = begin();
    open_ o = loop(&m, 0, 1);
    work(&m, POOL, false, still(0), still(8192), true);
    open_ i = loop(&m, 1, 0);
    work(&m, POOL, false, still(0), a, false);
    work(&m, DVE, false, still(0), b, false);
    again(&m, i, 1, triangle ? 0 : -1, k);
    work(&m, DVE, true, still(8192), still(8256), true);
    again(&m, o, 0, -1, n + 1);
    return verdict_of(&m);
}

static void
test_nested(void)
{
    enum { N = 20, K = 15 };
    verdict v = nested(N, K, false, (place){0, 64, 1}, (place){64 * K, 64, 1});
    CHECK(HOLDS(v.some));
    CHECK_INT(v.some.turns_left_out, 3 * (K - 3) + N - 3);
    CHECK_INT(nested(N, K, false, (place){0, 64, 1}, still(64 * (K - 1))).some.races, CPS_PROOF_FAILS);
    CHECK(HOLDS(nested(N, K, false, (place){0, 64, 1}, (place){64 * K, 64, 0}).some));
    CHECK_INT(nested(N, K, false, (place){0, 64, 1}, (place){64 * 17, -64, 0}).some.races, CPS_PROOF_FAILS);
    // they meet in the outer loop's last turn and the inner one's last
    CHECK_INT(nested(N, K, true, (place){0, 64, 1}, still(64 * (N - 1))).some.races, CPS_PROOF_FAILS);
    CHECK(HOLDS(nested(N, K, true, (place){0, 64, 1}, still(64 * N)).some));
}

/* Barriers that do not hold: the first race is one between turns. */
static void
test_no_barrier(void)
{
    for (unsigned missing = 0; missing < 2; missing++) {
        made m = begin();
        uint32_t at[UNITS];
        for (unsigned u = 0; u < UNITS; u++) {
            set(&m, u, 0, 0);
            at[u] = m.b.k->stream[engines[u]].code.n;
        }
        work(&m, POOL, false, still(0), still(0), true);
        work(&m, DVE, true, still(0), still(64), true);
        if (!missing)
            barrier(&m);
        for (unsigned u = 0; u < UNITS; u++) {
            alu(&m, u, CPS_ALU_ADD, 0, 0, 1);
            branch(&m, u, CPS_BR_CMP_OP_LT_IMM, 0, -1, 40, (int64_t)at[u] - m.b.k->stream[engines[u]].code.n);
        }
        verdict v = verdict_of(&m);
        CHECK_INT(HOLDS(v.some), !missing);
    }
}

/* Nobody waits for the stores; each writes what a load seven turns later reads, which no turn that is walked
 * sees, and loads and stores drift alike. */
static void
test_between_turns(void)
{
    for (unsigned silent = 0; silent < 2; silent++) {
        made m = begin();
        open_ o = loop(&m, 0, 0);
        transfer(&m, POOL, true, m.both, moves(0, 64), still(0), 256, false);
        m.silent = silent;
        transfer(&m, SP, false, m.both, moves(7 * 64, 64), still(64), 256, true);
        m.silent = false;
        again(&m, o, 0, -1, 60);
        verdict v = verdict_of(&m);
        CHECK_INT(v.some.races, silent ? CPS_PROOF_FAILS : CPS_PROOF_HOLDS);
        CHECK_INT(v.some.turns_left_out, silent ? 0 : 57);
    }
}

/* A store that loads stand before and behind: one that is not ordered with it is found on either side. */
static void
test_last_write(void)
{
    for (unsigned k = 0; k < 3; k++) {
        made m = begin();
        transfer(&m, POOL, true, m.both, still(0), still(0), 256, true);
        transfer(&m, SP, false, m.both, still(0), still(64), 256, k != 0);
        transfer(&m, POOL, true, m.both, still(0), still(128), 256, k != 1);
        transfer(&m, SP, true, m.both, still(0), still(192), 256, true);
        verdict v = verdict_of(&m);
        CHECK_INT(v.some.races, k < 2 ? CPS_PROOF_FAILS : CPS_PROOF_HOLDS);
    }
}

/* Transfers that leave their variable, or the partition, six turns before the end: what the walk says of them. */
static void
test_transfer_bounds(void)
{
    for (unsigned out = 0; out < 2; out++)
        for (unsigned chip = 0; chip < 2; chip++) {
            const int64_t room = chip ? 1 << 18 : ROOM, step = 2048, n = room / step + 6 * out;
            made m = begin();
            open_ o = loop(&m, 0, 0);
            place far = chip ? still(0) : moves(step - 256, step), near = chip ? moves(step - 64, step) : still(0);
            transfer(&m, SP, false, m.both, far, near, 1, true);
            again(&m, o, 0, -1, (uint32_t)n);
            verdict v = verdict_of(&m);
            if (!chip)
                CHECK_INT(HOLDS(v.some), !out);
            if (!chip && !out)
                CHECK_INT(v.some.turns_left_out, n - 3);
        }
}

/* A register that each turn doubles, or that grows by the counter; the place where it meets another access
 * is not on the line through the first turns. */
static void
test_carried(void)
{
    for (unsigned k = 0; k < 3; k++) {
        made m = begin();
        for (unsigned u = 0; u < UNITS; u++)
            set(&m, u, CARRIED, 1);
        open_ o = loop(&m, 0, 0);
        work(&m, POOL, false, still(0), (place){0, 64, CARRIED}, false);
        work(&m, DVE, false, still(0), still(64 * (k == 0 ? 1024 : k == 1 ? 46 : 22)), false);
        if (k == 0)
            alu_all(&m, CPS_ALU_MULT, CARRIED, CARRIED, false, 2);
        else if (k == 1)
            alu_all(&m, CPS_ALU_ADD, CARRIED, CARRIED, true, 0);
        else
            alu_all(&m, CPS_ALU_ADD, CARRIED, CARRIED, false, 3);
        again(&m, o, 0, -1, 11);
        verdict v = verdict_of(&m); // 1024 = 2^10, 46 = 1 + 45, 22 = 1 + 3 * 7
        CHECK_INT(v.some.races, CPS_PROOF_FAILS);
    }
    // in a loop in a loop: i * j, where i starts again with each j
    for (unsigned meets = 0; meets < 2; meets++) {
        made m = begin();
        open_ o = loop(&m, 0, 0);
        for (unsigned u = 0; u < UNITS; u++)
            set(&m, u, CARRIED, 0);
        open_ i = loop(&m, 1, 0);
        work(&m, POOL, false, still(0), (place){0, 64, CARRIED}, false);
        work(&m, DVE, false, still(0), still(64 * (14 * 16 + !meets)), false);
        alu_all(&m, CPS_ALU_ADD, CARRIED, CARRIED, true, 0);
        again(&m, i, 1, -1, 15);
        again(&m, o, 0, -1, 19);
        verdict v = verdict_of(&m);
        CHECK_INT(v.some.races, meets ? CPS_PROOF_FAILS : CPS_PROOF_HOLDS);
    }
    // squares, and products of two counters, made anew in each turn
    for (unsigned meets = 0; meets < 2; meets++) {
        made m = begin();
        open_ o = loop(&m, 0, 0);
        alu_all(&m, CPS_ALU_MULT, CARRIED, 0, true, 0);
        work(&m, POOL, false, still(0), (place){0, 64, CARRIED}, false);
        work(&m, DVE, false, still(0), still(64 * (30 * 30 + !meets)), false);
        again(&m, o, 0, -1, 50);
        verdict v = verdict_of(&m);
        CHECK_INT(v.some.races, meets ? CPS_PROOF_FAILS : CPS_PROOF_HOLDS);
        m = begin();
        o = loop(&m, 0, 0);
        open_ i = loop(&m, 1, 0);
        alu_all(&m, CPS_ALU_MULT, CARRIED, 0, true, 1);
        work(&m, POOL, false, still(0), (place){0, 64, CARRIED}, false);
        work(&m, DVE, false, still(0), still(64 * (11 * 13 + 6 * !meets)), false);
        again(&m, i, 1, -1, 20);
        again(&m, o, 0, -1, 20);
        v = verdict_of(&m);
        CHECK_INT(v.some.races, meets ? CPS_PROOF_FAILS : CPS_PROOF_HOLDS);
    }
    // the smaller of the counter and a number, and the larger: alike on either side of it
    for (unsigned k = 0; k < 4; k++) {
        enum { N = 60, KNEE = 25 };
        bool least = k < 2, meets = k % 2;
        made m = begin();
        open_ o = loop(&m, 0, 0);
        alu_all(&m, least ? CPS_ALU_MIN : CPS_ALU_MAX, CARRIED, 0, false, KNEE);
        work(&m, POOL, false, still(0), (place){0, 64, CARRIED}, false);
        work(&m, DVE, false, still(0), still(64 * (least ? KNEE + !meets : meets ? N - 9 : KNEE - 1)), false);
        again(&m, o, 0, -1, N);
        verdict v = verdict_of(&m);
        CHECK_INT(v.some.races, meets ? CPS_PROOF_FAILS : CPS_PROOF_HOLDS);
        CHECK(meets || v.some.turns_left_out > N / 2);
    }
    // a branch on such a register
    for (unsigned races = 0; races < 2; races++) {
        made m = begin();
        for (unsigned u = 0; u < UNITS; u++)
            set(&m, u, CARRIED, 1);
        open_ o = loop(&m, 0, 0);
        open_ w = when_not(&m, CPS_BR_CMP_OP_NE_IMM, CARRIED, 1 << 20);
        work(&m, POOL, false, still(0), still(128), true);
        work(&m, DVE, false, still(0), still(128), !races);
        end_when(&m, w);
        alu_all(&m, CPS_ALU_MULT, CARRIED, CARRIED, false, 2);
        again(&m, o, 0, -1, 25);
        verdict v = verdict_of(&m);
        CHECK_INT(v.some.races, races ? CPS_PROOF_FAILS : CPS_PROOF_HOLDS);
    }
}

/* ---- random kernels ---- */

static place
any_place(cps_rng *g, int depth, int64_t unit)
{
    static const int step[] = {0, 1, 1, 1, 2, 2, -1, 4};
    place p = still(unit * below(g, 12));
    if (depth && below(g, 2)) {
        p.reg = below(g, 4) ? (int)below(g, (uint32_t)depth) : CARRIED + (int)below(g, CARRIES);
        p.step = unit * step[below(g, cps_countof(step))];
        if (p.step < 0)
            p.base += 60 * unit;
        if (below(g, 8) == 0)
            p.step /= 2;
    }
    return p;
}

/* Registers that a turn changes, kept small. */
static void
carry(made *m, cps_rng *g, int depth)
{
    unsigned r = CARRIED + below(g, CARRIES), with = CARRIED + below(g, CARRIES);
    if (below(g, 2))
        with = below(g, (uint32_t)depth);
    switch (below(g, 7)) {
    case 6:
        alu_all(m, below(g, 2) ? CPS_ALU_MAX : CPS_ALU_MIN, r, with, below(g, 2), below(g, 6));
        break;
    case 0:
        alu_all(m, CPS_ALU_MULT, r, with, false, below(g, 4));
        break;
    case 1:
        alu_all(m, CPS_ALU_ADD, r, r, true, with);
        break;
    case 2:
        alu_all(m, CPS_ALU_MULT, r, r, true, with);
        break;
    case 3:
        alu_all(m, CPS_ALU_SUBTRACT, r, r, true, with);
        break;
    case 4:
        for (unsigned u = 0; u < UNITS; u++)
            set(m, u, r, with);
        return;
    default:
        alu_all(m, CPS_ALU_ADD, r, r, false, 1 + below(g, 2));
    }
    if (below(g, 2))
        alu_all(m, CPS_ALU_BITWISE_AND, r, r, false, 63);
}

static void
body(made *m, cps_rng *g, int depth, unsigned n)
{
    if (depth && below(g, 3) == 0)
        carry(m, g, depth);
    for (unsigned k = 0; k < n; k++) {
        bool ordered = below(g, 12) != 0;
        if (below(g, 3) == 0 && m->transfers < 8)
            transfer(m, below(g, 2) ? SP : POOL, below(g, 2), below(g, 3) ? m->both : m->in, any_place(g, depth, 64),
                     any_place(g, depth, 64), below(g, 2) ? 1 : 64, ordered);
        else
            work(m, below(g, 2) ? POOL : DVE, below(g, 2), any_place(g, depth, 64), any_place(g, depth, 64), ordered);
    }
}

static void
part(made *m, cps_rng *g, int depth)
{
    static const uint32_t turns[] = {1, 2, 3, 5, 6, 7, 9, 14, 30};
    body(m, g, depth, below(g, 4));
    for (unsigned k = depth < 3 ? below(g, 3 - (unsigned)depth + (depth == 0)) : 0; k > 0; k--) {
        int other = depth && below(g, 6) == 0 ? depth - 1 : -1;
        open_ o = loop(m, (unsigned)depth, below(g, 4) == 0);
        part(m, g, depth + 1);
        again(m, o, (unsigned)depth, other, turns[below(g, cps_countof(turns))]);
        body(m, g, depth, below(g, 3));
    }
    if (depth && below(g, 4) == 0) {
        static const unsigned ops[] = {CPS_BR_CMP_OP_NE_IMM, CPS_BR_CMP_OP_EQ_IMM, CPS_BR_CMP_OP_LT_IMM,
                                       CPS_BR_CMP_OP_GE_IMM};
        unsigned of = below(g, 3) ? below(g, (uint32_t)depth) : CARRIED + below(g, CARRIES);
        open_ w = when_not(m, ops[below(g, 4)], of, below(g, 9));
        body(m, g, depth, 1 + below(g, 2));
        end_when(m, w);
        body(m, g, depth, below(g, 2));
    }
}

static void
test_random(unsigned n, uint64_t seed)
{
    unsigned count[3] = {0}, left = 0, both = 0;
    cps_rng g;
    for (unsigned k = 0; k < n; k++) {
        cps_rng_init(&g, seed, k);
        made m = begin();
        m.g = &g;
        m.rate = below(&g, 3) == 0 ? 20 + below(&g, 60) : 0;
        for (unsigned u = 0; u < UNITS; u++)
            for (unsigned r = 0; r < CARRIES; r++)
                set(&m, u, CARRIED + r, r);
        part(&m, &g, 0);
        int before = check_failed;
        verdict v = verdict_of(&m);
        if (check_failed != before)
            fprintf(stderr, "kernel %u of seed %llu\n", k, (unsigned long long)seed);
        count[v.all.races]++;
        both += HOLDS(v.all);
        left += v.some.turns_left_out > 0;
    }
    printf("%u kernels: races hold in %u, fail in %u, open in %u; %u proved, %u with turns left out\n", n,
           count[CPS_PROOF_HOLDS], count[CPS_PROOF_FAILS], count[CPS_PROOF_OPEN], both, left);
    CHECK(both > n / 8 && both < n && left > n / 20);
}

int
main(int argc, char **argv)
{
    test_one_turn();
    test_memory();
    test_bounds();
    test_branches();
    test_nested();
    test_no_barrier();
    test_between_turns();
    test_last_write();
    test_transfer_bounds();
    test_carried();
    test_random(argc > 1 ? (unsigned)atoi(argv[1]) : 600, argc > 2 ? strtoull(argv[2], NULL, 10) : 1);
    return CHECK_DONE();
}
