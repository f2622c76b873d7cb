/* Assembly text (.cas): one instruction a line, exact both ways. What no row describes becomes
 * a `.bytes` line or a `raw[byte]=` operand, so nothing is ever lost.
 *
 *   line     mnemonic [function] {operand} [wait] [then]   or   .bytes 128 hex digits
 *   operand  field=value in table order; absent ones have their default (0, or the documented
 *            constant). hdr.field= for header and sync bytes that have no other form
 *   value    12  -3  0x1f  0.5  name  "text"  [1,2]  0x00ff (bytes, trailing zeros left out)
 *            START|END  REG:5|ENABLED (groups of bits, by name and value)
 *   pattern  [dtype@]address[step,..][count,..]: X first; trailing dims of step 1 and count 1
 *            are left out. index:address->address[count] where indices pick the elements;
 *            base[step,..][count,..] for affine patterns; data*scale[count,step,scale partition]
 *            for MX types, with index:address-> in front and without step when indexed
 *   address  sbuf[p32+0x100]  psum[p0+0x800]  0x40000100  reg[5] (the register holds it)
 *            shape:address (steps and counts come from registers)  index:address
 *            of 64 bits: var[7+0x40] (before loading)  reg[4,5]  table[7+0x40]  table[7+r5]
 *            shape:..  wide:..
 *   scalar   [dtype@]0.5 or 0x.. (inline)  [dtype@]ptr[0x1000]  [dtype@]reg[5]: the form sets
 *            the field that says where the scalar is
 *   wait     wait S[4]>=1   wait S[4]>=r5   wait E[3]--
 *   then     then S[5]+=1@complete   then S[5]++@read
 *
 * wait2 and then2 are the second band of EVENT_SEMAPHORE. One sync value serves wait and then.
 *
 * Written by hand, text may also define names, which stand wherever a number does:
 *   .set NAME VALUE   a number, an address or a float; from this line on
 *   NAME:             the next instruction; the distance to it in instructions (branch=NAME).
 *                     May stand after its use, by at most 1,048,576 instructions
 */
#ifndef CPS_ISA_TEXT_H
#define CPS_ISA_TEXT_H

#include "codegen/isa/isa.h"
#include "runtime/base/diag.h"

/* Appends one line for the bundle (no newline). Never fails. */
void cps_isa_print(const cps_bundle *b, cps_gen g, cps_buf *out);
/* Appends what cps_isa_print says of the sync band at the end of a line. */
void cps_isa_print_sync(const cps_bundle *b, cps_gen g, cps_buf *out);
/* The same for n bundles, a newline after each; how many are instructions of the generation. */
size_t cps_isa_print_lines(const cps_bundle *b, size_t n, cps_gen g, cps_buf *out);
/* Parses a whole text; appends bundles. Comments run from "//" to the end of the line. Errors
 * go to `d` with the span of the word; the result is false when there was any. */
bool cps_isa_parse(const char *text, size_t n, uint32_t file, cps_gen g, cps_diags *d,
                   cps_buf *bundles);

/* The same for a text of any size that comes in pieces, cut anywhere: memory does not grow with
 * it. `name` stands in messages; a line is at most 1 MiB. Bundles are appended once they are
 * final: those after a forward branch when its label has come. False once there was an error.
 * cps_isa_parse_end reads the last line if it had no newline, and must be called: it frees what
 * the parser holds outside the arena. */
typedef struct cps_cas cps_cas;
cps_cas *cps_isa_parser(cps_arena *a, const char *name, cps_gen g, cps_diags *d);
/* From here on each instruction is held to the rules of cps_isa_verify as well; a broken one is an
 * error at its mnemonic. `probe` is a sink of its own, used for nothing else. */
void cps_isa_parser_verify(cps_cas *ps, cps_engine engine, cps_diags *probe);
bool cps_isa_parse_piece(cps_cas *ps, const char *text, size_t n, cps_buf *bundles);
bool cps_isa_parse_end(cps_cas *ps, cps_buf *bundles);

/* Structural rules of one bundle (shipped ISA headers): reserved bytes, dtypes, enums,
 * partition starts, pattern bounds, engine legality. Rules on inferred facts warn. True when no
 * error was emitted. `engine` may be CPS_ENGINE_ANY. */
bool cps_isa_verify(const cps_bundle *b, cps_gen g, cps_engine engine, cps_diags *d,
                    cps_span at);
/* Of them those of the sync bands alone. */
bool cps_isa_verify_sync(const cps_bundle *b, cps_gen g, cps_engine e, cps_diags *d, cps_span at);

/* What only a whole stream shows: PSUM regions that start and end, branches inside the stream,
 * records of several parts. Warnings only; true when there was none. `at` has a place for each
 * record, or is NULL. */
bool cps_isa_verify_stream(const cps_bundle *b, size_t n, cps_gen g, cps_diags *d,
                           const cps_span *at);

/* The table checks itself: overlaps, holes, duplicate opcodes. Number of problems, described in
 * `out`. */
unsigned cps_isa_check(cps_buf *out);

#endif
