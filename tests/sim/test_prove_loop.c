/* Loops in the static proof: a proof that leaves turns out says of every kernel what a walk through all of its
 * turns says. Kernels as the compiler makes them, barriers before and after each body, with
 * operands and transfers whose addresses move; some by hand, then random ones, many with a fault: a wait
 * that is dropped or lowered, an update that is missing, a step that differs. 600 here;
 * `test_sim_prove_loop N SEED` makes more. */
#include "tests/sim/turns.h"

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
    bool stopped = v.all.why && !strcmp(v.all.why, "an address that is no memory"); // with other engines elsewhere
    CHECK(stopped || v.some.instructions == v.all.instructions);
    CHECK_INT(v.all.turns_left_out, 0);
    kb_free(&m->b);
    return v;
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
    CHECK_INT(two(N, moves(64 * 10, 64), moves(64 * 50, -64)).some.races, CPS_PROOF_FAILS);
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
    // some turn is the first to leave the partition: it is walked, and ends the proof as it would a run
    made m = begin();
    open_ o = loop(&m, 0, 0);
    work(&m, POOL, false, still(0), moves(0, 64), true);
    again(&m, o, 0, -1, 6000);
    barrier(&m);
    CHECK(kb_load(&m.b));
    cps_proof all = prove(&m, true), some = prove(&m, false);
    CHECK(all.leaves && some.leaves);
    CHECK_INT(all.races, CPS_PROOF_OPEN);
    CHECK_INT(some.races, CPS_PROOF_OPEN);
    CHECK(all.why && !strcmp(all.why, "an address that is no memory") && some.why && !strcmp(some.why, all.why));
    CHECK(all.engine == CPS_POOL && some.engine == CPS_POOL && all.index == some.index);
    CHECK_INT(some.turns_left_out, 0); // what is wrong is told of all turns
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
    CHECK_INT(nested(N, K, false, (place){64 * 4, 64, 1}, (place){64 * 21, -64, 0}).some.races, CPS_PROOF_FAILS);
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

/* A counter that starts again after 3: no turn is like the next, so all are walked, as long as they are not too many. */
static void
test_wrapped(void)
{
    for (unsigned many = 0; many < 2; many++) {
        made m = begin();
        for (unsigned u = 0; u < UNITS; u++)
            set(&m, u, CARRIED, 0);
        open_ o = loop(&m, 0, 0);
        work(&m, POOL, false, still(0), (place){0, 64, CARRIED}, true);
        alu_all(&m, CPS_ALU_SUBTRACT, CARRIED + 1, CARRIED, false, 2);
        alu_all(&m, CPS_ALU_MAX, CARRIED + 1, CARRIED + 1, false, 0);
        alu_all(&m, CPS_ALU_MULT, CARRIED + 1, CARRIED + 1, false, 4);
        alu_all(&m, CPS_ALU_ADD, CARRIED, CARRIED, false, 1);
        alu_all(&m, CPS_ALU_SUBTRACT, CARRIED, CARRIED, true, CARRIED + 1);
        again(&m, o, 0, -1, many ? 1 << 20 : 1000);
        barrier(&m);
        CHECK(kb_load(&m.b));
        cps_proof v = prove(&m, false);
        CHECK(v.turns_left_out < 10);
        CHECK_INT(v.races, many ? CPS_PROOF_OPEN : CPS_PROOF_HOLDS);
        CHECK_INT(v.deadlock, many ? CPS_PROOF_OPEN : CPS_PROOF_HOLDS);
        CHECK(!many || !strcmp(v.why, "too many instructions to follow"));
        CHECK(v.instructions < 1 << 23);
        kb_free(&m.b);
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
    test_wrapped();
    test_random(argc > 1 ? (unsigned)atoi(argv[1]) : 600, argc > 2 ? strtoull(argv[2], NULL, 10) : 1);
    return CHECK_DONE();
}
