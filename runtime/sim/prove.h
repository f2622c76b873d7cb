/* Between the static proof (prove.c) and the files whose instructions it follows without
 * running them. */
#ifndef CPS_SIM_PROVE_H
#define CPS_SIM_PROVE_H

#include "runtime/sim/machine.h"

/* ---- values that are not known (prove_fork.c) ---- */

enum { CHOICES_MAX = 6 }; /* branches of one path on such values: at most 64 paths */

typedef struct origin {
    rect where;
    uint64_t works; /* what may write memory and stands before the load in the walk */
} origin;

typedef struct choice {
    uint32_t origin; /* 1 more than its number */
    unsigned op;     /* the comparison */
    int32_t than;
    bool taken;
} choice;

typedef struct forks {
    CPS_VEC(origin) origins;          /* of this walk */
    uint32_t of[CPS_ENGINES][REGS];   /* origin + 1 of what a register holds, 0: none */
    uint64_t works;
    choice choices[CHOICES_MAX];      /* of this path, in the order of the questions */
    unsigned nchoices;
} forks;

void fork_walk(forks *f); /* a walk begins */
void fork_loaded(cps_sim *s, forks *f, const engine *e, unsigned reg, const rect *r);
/* Goes the path's way at a branch; `known`: registers of the engine. NULL, or why not. */
const char *fork_branch(cps_sim *s, forks *f, engine *e, insn *i, uint64_t known);
bool fork_next(forks *f); /* to the next path; false: that was the last */

/* In place of dma_submit while a proof is under way. */
void prove_submit(cps_sim *s, engine *e, const insn *i, block *b);
/* An access of the sequencer. */
void prove_access(cps_sim *s, engine *e, const insn *i, const rect *r, bool write);
/* A read that the transfer of the same instruction carries on: see race_look. */
void prove_look(cps_sim *s, engine *e, const insn *i, const rect *r);
/* Some footprint of this proof may hold more than is touched. */
void prove_approx(cps_sim *s);
/* A scatter: rows race where indices are equal, which memory says. */
void prove_scatter(cps_sim *s, const insn *i);
bool prove_known(const cps_sim *s, const engine *e, unsigned reg);
/* A register was loaded from `r`. */
void prove_loaded(cps_sim *s, engine *e, unsigned reg, const rect *r);

/* Registers (bits) that MOVE, ALU_OP and branches read and write; false for anything else. */
bool seq_registers(const insn *i, uint64_t *reads, uint64_t *writes, bool *branch);
/* Accesses of a register load or store, and the registers a load writes. False when the address
 * is in a register without a known value. */
bool seq_memory(cps_sim *s, engine *e, insn *i, uint64_t *writes);
bool sem_clear_hits(const insn *i, unsigned sem);
/* Whether the addresses of a 2-D or transposing transfer are known. */
bool dge_static(const cps_sim *s, const engine *e, const insn *i);
/* A transfer of rows by index, taken for one of all rows there may be. False as above. */
bool dge_rows(cps_sim *s, engine *e, insn *i);

#endif
