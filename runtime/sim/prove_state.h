/* The state of a proof, and what a wait makes sure of (prove_wait.c). */
#ifndef CPS_SIM_PROVE_STATE_H
#define CPS_SIM_PROVE_STATE_H

#include "runtime/sim/prove.h"

enum { CHAINS_MAX = 2 * CPS_ENGINES + 64 };

/* One update of a semaphore. Chains of engines come in pairs: at operand read, at completion;
 * inside a chain updates happen in order. */
typedef struct upd {
    vclock vc;       /* of its issuer, this round */
    vclock before;   /* the same, last round: the claims in force */
    uint32_t pos;    /* of its issuer in its engine; of a transfer: its number in its queue */
    uint32_t rd, wr; /* what it tells of its engine: reads, writes done */
    int32_t share;
    int64_t up, shares; /* sums over the chain, this one included */
} upd;

typedef struct chain {
    CPS_VEC(upd) u;
    uint32_t now; /* issued so far in this round */
} chain;

/* A clear, or a write of a value. */
typedef struct reset {
    vclock vc, before;
    uint32_t pos;
    int32_t value;
    uint8_t engine;
    uint8_t gone_of;     /* chain of `gone`: updates that it wipes out for sure, once they were */
    uint32_t gone_round; /* counted, in this round (from 1) */
    uint32_t gone;
    uint32_t *issued; /* per chain: updates issued before it in this run */
} reset;

typedef struct psem {
    chain *chain;
    uint8_t *up; /* chains that have updates, ascending */
    unsigned nup;
    CPS_VEC(reset) resets;
    uint32_t now;
    uint32_t at;   /* where the last wait of a lone chain ended */
    int64_t value;
    bool used;
} psem;

/* A transfer of the first round, kept for the others (prove_keep.c). */
typedef struct kept_rect {
    uint32_t shape, var;
    int64_t base;
} kept_rect;

typedef struct kept {
    uint16_t queue;
    uint8_t semaphore, increment;
    bool adds;
    uint32_t reads[DMA_RINGS], writes[DMA_RINGS];
    kept_rect at[]; /* ring after ring: what it reads, what it writes */
} kept;

typedef struct shapes shapes;

shapes *shapes_new(cps_arena *a);
kept *keep_block(shapes *x, const block *b);
/* As it was, until the next one is asked for. */
block *kept_block(shapes *x, const kept *k, bool footprints);

struct prover {
    cps_sim *s;
    psem sem[SEMS];
    uint64_t live[SEMS / 64]; /* used so far in this walk: before that they are zero, and a clear does nothing */
    unsigned nchains;
    unsigned round; /* 0: what one run suggests */
    bool changed;   /* some claim was taken back */
    bool last;      /* hand accesses to the race finder */
    uint32_t pos[CPS_ENGINES];
    uint64_t known[CPS_ENGINES]; /* registers with a known value */
    uint64_t steps;
    uint32_t events; /* of the first round: waits, updates and transfers, which are kept for the others */
    uint32_t transfers[64];
    CPS_VEC(vclock) waits[CPS_ENGINES]; /* clocks after waiting, in order, of the last round */
    uint32_t nwaits[CPS_ENGINES];
    const char *open; /* why it stays undecided, or NULL */
    bool certain;     /* it does whatever more is looked at: a run that comes there ends */
    cps_diags *quiet; /* of what is undecided nothing is said */
    const insn *open_at;
    const char *open_live; /* the same of deadlock freedom alone */
    forks *forks;          /* the path that is followed */
    CPS_VEC(kept *) submitted[CPS_ENGINES]; /* to the engines' own queues: in order, of the first round; the others
                                               do the same */
    shapes *shapes;
    cps_mark blocks; /* where cps_sim.making is empty */
    uint32_t *written;           /* per variable: the last act on this path that may write it, 0: none */
    uint32_t acts;               /* in this walk: transfers, and accesses of sequencers */
    cps_arena *clocks[2];        /* of this round and of the one before */
    const char *leaves; /* how an address leaves what it is of, or NULL */
    const insn *leaves_at;
    bool approx;           /* some access stands for more bytes than it may touch */
    const insn *scatter;   /* the first that writes rows by index, or NULL */
    struct loops *loops;   /* NULL: every turn of a loop is walked */
};

typedef struct prover prover;

/* An address leaves the memory that it is of: `text` says how. */
void prove_leaves(prover *p, const insn *i, const char *text);
/* Deadlock freedom stays open. */
void prove_unlive(prover *p, const char *why);
/* A wait of engine `e` for a value of at least `v`, of at most `v`, has passed: it knows more. */
void prove_rose(prover *p, engine *e, psem *m, int64_t v);
void prove_fell(prover *p, engine *e, psem *m, int64_t v);
/* Whether no other order of the run can change what this wait sees; if not, prove_unlive. */
void prove_settled(prover *p, engine *e, const psem *m, uint32_t pos, bool equal, int64_t v);
/* Whether engine `e`, which knows `vc`, knows of a clear that has wiped out all updates so far. */
bool prove_over(const psem *m, unsigned e, vclock vc);
/* The same as prove_settled of a semaphore's clears and updates. */
void prove_clears(prover *p, const psem *m);

#endif
