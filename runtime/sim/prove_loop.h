/* The turns of loops in a proof: between prove_loop.c, which leaves turns out, and prove_drift.c, which
 * follows what registers and footprints do from turn to turn. */
#ifndef CPS_SIM_PROVE_LOOP_H
#define CPS_SIM_PROVE_LOOP_H

#include "runtime/sim/prove_state.h"

enum {
    LOOPS_MAX = 4, /* that stand in one another */
    TRIES_MAX = 8  /* turns watched in vain, one after the other, before a loop is walked in full */
};

/* By how much a number differs from what it was a turn ago, modulo 2^32, for each loop under watch;
 * `wild`: of the loops (bits) in which that is not always the same. Of other loops it says nothing: 0. */
typedef struct drift {
    int32_t by[LOOPS_MAX];
    uint8_t wild;
} drift;

/* A number that lies in least..most in the turns under watch and has to stay in lo..hi. */
typedef struct bound {
    int64_t least, most, lo, hi;
    int64_t by[LOOPS_MAX];
    uint32_t branch; /* of a branch: 1 + where it stands */
    uint8_t engine;
} bound;

/* A variable in a turn: whether all that is done to it drifts alike. */
typedef struct object {
    int32_t by;
    bool seen, mixed;
} object;

/* What came of a turn that was watched: it stands for so many more. */
typedef struct plan {
    uint32_t turns;
    bool *mixed; /* per variable */
} plan;

/* What a place in the walk is known by. */
typedef struct spot {
    uint32_t pos[CPS_ENGINES], last_wait[CPS_ENGINES], waits[CPS_ENGINES];
    uint32_t transfers[64];
    uint64_t live[SEMS / 64];
    vclock vc[CPS_ENGINES];
} spot;

typedef enum stage {
    LOOP_MET,
    LOOP_SEEN,
    LOOP_WATCHED,
    LOOP_LEFT, /* turns are left out, and one more like them is under way */
    LOOP_LAST  /* the same, but it ends the loop */
} stage;

typedef struct loop {
    uint32_t head[CPS_ENGINES], back[CPS_ENGINES]; /* where its turns begin; the branches to there */
    stage stage;
    unsigned tries;
    uint32_t reg[CPS_ENGINES][REGS]; /* at the last head */
    uint32_t of[CPS_ENGINES][REGS];  /* forks.of, then */
    uint64_t known[CPS_ENGINES];
    uint64_t wild[CPS_ENGINES];      /* registers that were found to be so */
    uint64_t written[CPS_ENGINES], used[CPS_ENGINES]; /* in the turn; as they were when it began */
    drift was[CPS_ENGINES][REGS];    /* when the turn under watch began */
    uint32_t bounds, plan;           /* the first, and the number, of that turn */
    uint64_t steps;
    object *objects; /* per variable */
    spot spot[3];    /* of the last heads, the latest first */
    bool cut[2];     /* the same: whether they are one in every run */
} loop;

struct loops {
    loop at[LOOPS_MAX];
    unsigned depth;
    uint8_t watched, spoilt; /* loops (bits): a turn is under watch, and is found to be no model */
    drift reg[CPS_ENGINES][REGS];
    drift from, to; /* of the access at hand (`from`), or of the transfer */
    CPS_VEC(bound) bounds;
    CPS_VEC(plan) plans;
    uint32_t nplans; /* in this walk */
    uint32_t access[CPS_ENGINES], last_wait[CPS_ENGINES]; /* the last instructions with one */
    uint32_t *branch[CPS_ENGINES]; /* per bundle: 1 + the last that leads back there, 0: none */
    bool parked[CPS_ENGINES];
    uint32_t left[CPS_ENGINES]; /* parked behind a branch that did not lead back: 1 + where that is */
    bool met;     /* some engine was */
    bool refuted; /* what was left out is not as what was walked */
    uint64_t left_out; /* turns, in this walk */
    uint64_t steps;    /* instructions of those, in all walks */
};

typedef struct loops loops;

/* ---- prove_loop.c ---- */
loops *loops_new(cps_sim *s);
void loops_walk(prover *p); /* a walk begins */
/* An engine has executed an instruction. At the head of a loop, and behind its end, it waits for the others. */
void loops_park(prover *p, const engine *e, const insn *i);
/* All engines have gone on as far as they could; `moved`: some did. Whether they can go on now. */
bool loops_turn(prover *p, bool moved);
void loops_end(prover *p);

/* ---- prove_drift.c: asked while some turn is under watch ---- */
/* A control instruction is about to be executed; what it reads is known. */
void drift_control(prover *p, const engine *e, const insn *i);
/* Registers (bits) that an instruction reads, and then those that it writes. */
void drift_uses(prover *p, unsigned e, uint64_t reads, uint64_t writes);
void drift_spoil(prover *p); /* something that no turn stands for */
/* Values that waits and updates take from registers. */
void drift_sync(prover *p, const engine *e, const insn *i);
/* Of a datapath instruction's operands; what they may do. */
void drift_operands(prover *p, const engine *e, const insn *i);
/* Of the addresses of a register load or store, or of a transfer: `from` and `to`. */
void drift_addresses(prover *p, const engine *e, const insn *i);
/* What an access with a drift touches stays where it can be, and in `x`. */
void drift_access(prover *p, const rect *r, const drift *d, const cps_kextent *x);
/* What is handed to the race finder for an access: `r`, or all that it is in the turns that this one
 * stands for, in `room`. */
const rect *drift_swept(prover *p, const rect *r, const drift *d, bool write, rect *room);
/* Both for a transfer. */
block *drift_transfer(prover *p, const insn *i, block *b);

#endif
