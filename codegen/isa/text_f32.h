/* binary32 in .cas text. */
#ifndef CPS_ISA_TEXT_F32_H
#define CPS_ISA_TEXT_F32_H

#include "runtime/base/num.h"

/* Writes the shortest decimal (at most 24 characters, no NUL) that reads back as these bits and
 * returns its end; NULL, with nothing of value written, for NaN and where no decimal of nine
 * digits is safe. */
char *cps_text_f32(char *p, uint32_t bits);

#endif
