/* Pairs in the static proof: what it says when it leaves turns of loops out is what a walk through all of them
 * says, and accesses of two cores that meet are found, whichever turn they are of. Some by hand, then
 * random ones: `test_sim_prove_pair N SEED` makes more. */
#include "tests/sim/turns.h"

typedef struct verdict {
    cps_proof all, some;
} verdict;

static cps_proof
prove(cps_sim_group *g, bool every_turn)
{
    cps_proof v;
    for (unsigned c = 0; c < 2; c++)
        cps_sim_prove_every_turn(cps_sim_group_core(g, c), every_turn);
    cps_diags *d = cps_diags_create();
    cps_sim_group_prove(g, 0, &v, d);
    cps_diags_destroy(d);
    return v;
}

/* Both ways, which must agree. */
static verdict
verdict_of(made m[2])
{
    const cps_kbin *k[2] = {m[0].b.k, m[1].b.k};
    for (unsigned c = 0; c < 2; c++)
        barrier(&m[c]);
    cps_sim_group *g = cps_sim_group_create_proof(m[0].b.t, 2, false);
    cps_diags *d = cps_diags_create();
    CHECK(cps_sim_group_load(g, k, d));
    verdict v = {prove(g, true), prove(g, false)};
    CHECK_INT(v.some.races, v.all.races);
    CHECK_INT(v.some.deadlock, v.all.deadlock);
    // where one core's proof stops, its other engines are elsewhere
    bool whole = v.all.races == CPS_PROOF_HOLDS && v.all.deadlock == CPS_PROOF_HOLDS;
    CHECK(!whole || v.some.instructions == v.all.instructions);
    CHECK_INT(v.all.turns_left_out, 0);
    cps_diags_destroy(d);
    cps_sim_group_destroy(g);
    for (unsigned c = 0; c < 2; c++)
        kb_free(&m[c].b);
    return v;
}

static void
begin_pair(made m[2])
{
    for (int c = 0; c < 2; c++)
        m[c] = begin_core(c, 2);
}

/* Core 0 writes one place after the other in a loop; core 1 reads `b`, in as many turns. */
static verdict
two(bool load, uint32_t n, place a, place b)
{
    made m[2];
    begin_pair(m);
    for (unsigned c = 0; c < 2; c++) {
        open_ o = loop(&m[c], 0, 0);
        transfer(&m[c], SP, c && load, m[c].both, c ? b : a, still(0), 256, true);
        again(&m[c], o, 0, -1, n);
    }
    return verdict_of(m);
}

static void
test_loops(void)
{
    enum { N = 50 };
    for (unsigned load = 0; load < 2; load++) {
        // never, in the first turn, in the last, in one between; of core 1 nobody writes what it reads
        verdict v = two(load, N, moves(0, 64), moves(64 * N, 64));
        CHECK_INT(v.some.races, CPS_PROOF_HOLDS);
        CHECK_INT(v.some.deadlock, CPS_PROOF_HOLDS);
        CHECK_INT(v.some.turns_left_out, 2 * (N - 3));
        CHECK_INT(two(load, N, moves(0, 64), still(0)).some.races, CPS_PROOF_FAILS);
        CHECK_INT(two(load, N, still(64 * (N - 1)), moves(0, 64)).some.races, CPS_PROOF_FAILS);
        CHECK_INT(two(load, N, moves(0, 64), still(64 * 17)).some.races, CPS_PROOF_FAILS);
        CHECK_INT(two(load, N, still(64 * 17), moves(0, 64)).some.races, CPS_PROOF_FAILS);
        CHECK_INT(two(load, N, moves(0, 128), moves(64 * 21, 64)).some.races, CPS_PROOF_FAILS);
    }
}

/* A race behind a loop of `n` turns of 2,100 instructions, all walked. */
static cps_proof
late(uint32_t n)
{
    made m[2];
    begin_pair(m);
    for (unsigned c = 0; c < 2; c++) {
        open_ o = loop(&m[c], 0, 0);
        for (unsigned k = 0; k < 700; k++)
            for (unsigned u = 0; u < UNITS; u++)
                kb_put(&m[c].b, engines[u], kb_insn(&m[c].b, CPS_INSN_NOP));
        again(&m[c], o, 0, -1, c ? 2 : n);
        work(&m[c], POOL, false, still(0), still(0), false);
        work(&m[c], DVE, false, still(0), still(0), c);
        barrier(&m[c]);
    }
    const cps_kbin *k[2] = {m[0].b.k, m[1].b.k};
    cps_sim_group *g = cps_sim_group_create_proof(m[0].b.t, 2, false);
    cps_diags *d = cps_diags_create();
    CHECK(cps_sim_group_load(g, k, d));
    cps_proof v = prove(g, true);
    cps_diags_destroy(d);
    cps_sim_group_destroy(g);
    for (unsigned c = 0; c < 2; c++)
        kb_free(&m[c].b);
    return v;
}

/* Where the last walk is the first to be too long, what comes behind that was not looked at. */
static void
test_long(void)
{
    CHECK_INT(late(10).races, CPS_PROOF_FAILS);
    cps_proof v = late(3200);
    CHECK_INT(v.races, CPS_PROOF_OPEN);
    CHECK_INT(v.deadlock, CPS_PROOF_OPEN);
    CHECK(v.why && !strcmp(v.why, "too many instructions to follow"));
}

static void
test_random(unsigned n, uint64_t seed)
{
    unsigned count[3] = {0}, left = 0;
    cps_rng g;
    for (unsigned k = 0; k < n; k++) {
        cps_rng_init(&g, seed, k);
        made m[2];
        begin_pair(m);
        bool apart = below(&g, 2);
        for (unsigned c = 0; c < 2; c++) {
            m[c].g = &g;
            m[c].rate = below(&g, 4) == 0 ? 20 + below(&g, 60) : 0;
            m[c].apart = apart && c ? ROOM / 2 : 0;
            for (unsigned u = 0; u < UNITS; u++)
                for (unsigned r = 0; r < CARRIES; r++)
                    set(&m[c], u, CARRIED + r, r);
            part(&m[c], &g, 0);
        }
        int before = check_failed;
        verdict v = verdict_of(m);
        if (check_failed != before)
            fprintf(stderr, "kernel %u of seed %llu\n", k, (unsigned long long)seed);
        count[v.all.races]++;
        left += v.some.turns_left_out > 0;
    }
    printf("%u pairs: races hold in %u, fail in %u, open in %u; %u with turns left out\n", n,
           count[CPS_PROOF_HOLDS], count[CPS_PROOF_FAILS], count[CPS_PROOF_OPEN], left);
    CHECK(count[CPS_PROOF_HOLDS] > n / 16 && count[CPS_PROOF_FAILS] > n / 16 && left > n / 40);
}

int
main(int argc, char **argv)
{
    test_loops();
    test_long();
    test_random(argc > 1 ? (unsigned)atoi(argv[1]) : 400, argc > 2 ? strtoull(argv[2], NULL, 10) : 1);
    return CHECK_DONE();
}
