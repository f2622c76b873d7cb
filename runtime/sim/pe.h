/* What the files of the tensor engine share: row and column groups, and the addition into PSUM. */
#ifndef CPS_SIM_PE_H
#define CPS_SIM_PE_H

#include "runtime/sim/machine.h"

/* Start partitions of the groups into `group` of the instruction; E8202 when the active rows and
 * columns do not fit them. */
bool pe_groups(cps_sim *s, insn *i, unsigned rg, unsigned cg, unsigned cols);
/* acc [columns][n] into the destination (operand 1), after the accumulation flags in `cmd`;
 * `region` bytes become fresh at a start. Marks what it writes. */
void pe_accumulate(cps_sim *s, engine *e, const insn *i, const float *acc, uint32_t n,
                   unsigned region);

#endif
