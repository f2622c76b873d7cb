/* Random instructions with legal fields, for round trips and measurements. */
#ifndef CPS_TESTS_ISA_RANDOM_H
#define CPS_TESTS_ISA_RANDOM_H

#include "codegen/isa/isa.h"
#include "runtime/base/rng.h"

/* An instruction of the row with a random value in every field that the generation has: names
 * that exist there, addresses inside the memories or in registers, patterns, numbers of the
 * field's width, a wait and an update of the tables. Rules between fields are not looked at. */
cps_bundle random_insn(cps_rng *r, cps_insn i, cps_gen g);

/* The next row after `i` that the generation has, from the first again after the last. */
cps_insn random_next(cps_insn i, cps_gen g);

#endif
