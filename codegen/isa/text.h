/* Assembly text (.cas): one instruction a line, exact both ways. What no row describes becomes a
 * `.bytes` line, so nothing is ever lost. */
#ifndef CPS_ISA_TEXT_H
#define CPS_ISA_TEXT_H

#include "codegen/isa/isa.h"
#include "runtime/base/diag.h"

/* Appends one line for the bundle (no newline). Never fails. */
void cps_isa_print(const cps_bundle *b, cps_gen g, cps_buf *out);
/* Parses a whole text; appends bundles. Comments run from "//" to the end of the line. Errors go
 * to `d` with the line's span; the result is false when there was any. */
bool cps_isa_parse(const char *text, size_t n, uint32_t file, cps_gen g, cps_diags *d,
                   cps_buf *bundles);

/* Structural rules of one bundle (isa-encoding section 11): reserved bytes, dtypes, enums,
 * partition starts, pattern bounds, engine legality. Rules on inferred facts warn. True when no
 * error was emitted. `engine` may be CPS_ENGINE_ANY. */
bool cps_isa_verify(const cps_bundle *b, cps_gen g, cps_engine engine, cps_diags *d, cps_span at);

/* The table checks itself: overlaps, holes, duplicate opcodes. Number of problems, described in
 * `out`. */
unsigned cps_isa_check(cps_buf *out);

#endif
