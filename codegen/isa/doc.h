/* The instruction set as text for people, from the rows. */
#ifndef CPS_ISA_DOC_H
#define CPS_ISA_DOC_H

#include "codegen/isa/isa.h"
#include "runtime/base/str.h"

/* Appends the whole reference in Markdown; codegen/isa/ISA.md is this text. */
void cps_isa_doc(cps_buf *out);
/* Appends one instruction as plain text: what it does, where it runs, its bytes and fields. */
void cps_isa_doc_insn(cps_insn i, cps_buf *out);

#endif
