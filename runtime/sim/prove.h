/* Between the static proof (prove.c) and the files whose instructions it follows without
 * running them. */
#ifndef CPS_SIM_PROVE_H
#define CPS_SIM_PROVE_H

#include "runtime/sim/machine.h"

/* In place of dma_submit while a proof is under way. */
void prove_submit(cps_sim *s, engine *e, const insn *i, block *b);
/* An access of the sequencer; `approx`: it may touch fewer bytes. */
void prove_access(cps_sim *s, engine *e, const insn *i, const rect *r, bool write, bool approx);
bool prove_known(const cps_sim *s, const engine *e, unsigned reg);

/* Registers (bits) that MOVE, ALU_OP and branches read and write; false for anything else. */
bool seq_registers(const insn *i, uint64_t *reads, uint64_t *writes, bool *branch);
/* Accesses of a register load or store, and the registers a load writes. False when the address
 * is in a register without a known value. */
bool seq_memory(cps_sim *s, engine *e, insn *i, uint64_t *writes);
bool sem_clear_hits(const insn *i, unsigned sem);
/* Whether the addresses of a 2-D or transposing transfer are in the instruction. */
bool dge_static(const insn *i);
/* A transfer of rows by index, taken for one of all rows there may be. False as above. */
bool dge_rows(cps_sim *s, engine *e, insn *i);

#endif
