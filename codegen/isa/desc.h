/* The 16-byte descriptor of a DMA queue: rows of desc.def, one encoder, decoder and text for
 * all.
 *
 * Text: one descriptor a line, its form first, then fields in the order of the rows; those that
 * are 0 are left out, bits stand alone, the length is in bytes (1 to 65,536):
 *   M2S address=0x2000000000 length=4096 ring=1 first last last_block first_block copy op=CME
 *   S2M address=0x100000000 length=4096 ring=1 first last
 * The form is not in the bytes: the ring says which it is. Without that knowledge a descriptor
 * with a second dword of 0 is taken for S2M, any other for M2S. */
#ifndef CPS_ISA_DESC_H
#define CPS_ISA_DESC_H

#include "codegen/isa/isa.h"
#include "runtime/base/diag.h"
#include "runtime/base/str.h"

#define CPS_QDESC_BYTES 16

typedef struct cps_qdesc {
    uint32_t w0, w1;
    uint64_t addr;
} cps_qdesc;

typedef enum cps_qform {
#define CPS_QDESC(form, ...) CPS_Q_##form,
#include "codegen/isa/desc.def"
    CPS_QFORMS /* not known */
} cps_qform;

typedef enum cps_qfield {
#define CPS_QFIELD(form, name, ...) CPS_QF_##form##_##name,
#include "codegen/isa/desc.def"
    CPS_QFIELDS
} cps_qfield;

/* First bits, and constants of dwords made from them: CPS_QBITS(M2S, op, CPS_QDESC_OP_CME). */
enum {
#define CPS_QFIELD(form, name, at, ...) CPS_QAT_##form##_##name = at,
#include "codegen/isa/desc.def"
    CPS_QAT_END
};
#define CPS_QBITS(form, name, v) ((uint32_t)(v) << (CPS_QAT_##form##_##name & 31))

typedef struct cps_qfield_row {
    const char *name, *doc;
    uint8_t form, at, bits;
    uint8_t kind; /* cps_fkind or cps_qkind */
    uint8_t arg;  /* ENUM: which */
    uint8_t sure;
} cps_qfield_row;

/* Kinds of their own, behind those of instructions. */
typedef enum cps_qkind { CPS_FK_BIT = 64, CPS_FK_SIZE } cps_qkind;

typedef struct cps_qform_row {
    const char *name, *doc;
    uint8_t sure;
} cps_qform_row;

extern const cps_qfield_row cps_qfields[CPS_QFIELDS];
extern const cps_qform_row cps_qforms[CPS_QFORMS];

/* A descriptor of n bytes in a file, little-endian, and back. */
cps_qdesc cps_qdesc_load(const uint8_t *b);
void cps_qdesc_store(uint8_t *b, const cps_qdesc *d);
uint64_t cps_qdesc_get(const cps_qdesc *d, cps_qfield f);
void cps_qdesc_set(cps_qdesc *d, cps_qfield f, uint64_t v);

/* Bytes of the buffer, 1 to 65,536; both forms have the length in the same place. */
static inline uint32_t
cps_qdesc_bytes(const cps_qdesc *d)
{
    uint32_t n = d->w0 >> (CPS_QAT_M2S_length & 31) & 0xFFFF;
    return n ? n : 65536;
}
_Static_assert((int)CPS_QAT_M2S_length == (int)CPS_QAT_S2M_length, "one place for both");

/* The form by the bytes alone. */
cps_qform cps_qdesc_guess(const cps_qdesc *d);
/* Appends one line (no newline); CPS_QFORMS guesses the form. */
void cps_qdesc_print(const cps_qdesc *d, cps_qform form, cps_buf *out);
/* Appends the 16 bytes of each line of a text; "//" begins a comment. False after an error. */
bool cps_qdesc_parse(const char *text, size_t n, uint32_t file, cps_diags *d, cps_buf *out);
/* Reserved bits, operations and ring of one descriptor; true when no error was emitted. */
bool cps_qdesc_verify(const cps_qdesc *d, cps_qform form, cps_diags *diags, cps_span at);

#endif
