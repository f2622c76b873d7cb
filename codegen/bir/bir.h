/* BIR JSON: the vendor compiler's instruction-level program as text, by its published schema
 * (BIR.md says what we write, what we take and how sure each name is).
 *
 * Three uses: a compiled kernel is written as BIR; any document of the schema is read, checked
 * and printed again with nothing lost; a document that we wrote gives back the kernel it came
 * from, with the same bytes in every stream. */
#ifndef CPS_CODEGEN_BIR_BIR_H
#define CPS_CODEGEN_BIR_BIR_H

#include "codegen/notes.h"
#include "runtime/base/json.h"

/* A document that was read: the JSON tree, its names resolved. */
typedef struct cps_bir cps_bir;

typedef struct cps_bir_stats {
    uint32_t functions, blocks, instructions, allocations, queues, dma_blocks;
    uint32_t unknown; /* members, opcodes and words that the schema does not have */
} cps_bir_stats;

/* Reads and checks a document. `text` must outlive `d`; `source` is its number in `d` or 0.
 * Neither reads nor writes files. NULL after E9301 (no JSON, or no module), E9302 (a member of
 * the wrong form), E9303 (a member is missing), E9304 (a name twice), E9305 (a name of
 * nothing). What the schema does not know is kept and reported once for each name as N9306. */
cps_bir *cps_bir_read(cps_arena *a, const char *text, size_t n, uint32_t source, cps_diags *d);
void cps_bir_stats_of(const cps_bir *b, cps_bir_stats *out);
const cps_json *cps_bir_root(const cps_bir *b);

/* The document as text, sorted and laid out; exact for what we printed ourselves. */
void cps_bir_print(const cps_bir *b, cps_buf *out);

/* A kernel as a document of one function. `notes` may be NULL: then operands refer to whole
 * memories instead of buffers and there are no dependences. */
void cps_bir_write(const cps_kbin *k, const cps_notes *notes, cps_buf *out);

/* The kernel that a document describes. NULL after E9307 (no kernel can be made of it; the
 * message says which instruction and why). The result lives in `a`. */
cps_kbin *cps_bir_kernel(cps_arena *a, const cps_bir *b, cps_diags *d);

#endif
