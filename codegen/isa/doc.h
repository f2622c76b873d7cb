/* The instruction set as text, from the rows: the document, pages for a terminal, JSON. */
#ifndef CPS_ISA_DOC_H
#define CPS_ISA_DOC_H

#include "codegen/isa/isa.h"
#include "runtime/base/json.h"
#include "runtime/base/str.h"

/* Appends the whole reference in Markdown; codegen/isa/ISA.md is this text. */
void cps_isa_doc(cps_buf *out);

/* One page as plain text. Of an instruction: what it does, where it runs, its bytes, fields,
 * values and rules. Of a format: who uses it. Of an enum: its values and the fields that hold
 * them. */
void cps_isa_doc_insn(cps_insn i, cps_buf *out);
void cps_isa_doc_format(unsigned format, cps_buf *out);
void cps_isa_doc_enum(unsigned e, cps_buf *out);

/* The same as JSON objects with sorted, stable keys. With `unsure`, of a confirmed instruction
 * only the fields that are not. */
void cps_isa_json_insn(cps_insn i, bool unsure, cps_jsonw *w);
void cps_isa_json_format(unsigned format, cps_jsonw *w);
void cps_isa_json_enum(unsigned e, cps_jsonw *w);

/* Pieces that several of them share. */
const char *cps_sure_name(unsigned sure);        /* "confirmed" "strong" "inferred" */
void cps_doc_gens(cps_buf *b, unsigned mask);    /* "v2 v3 v4", "later" for none of them */
void cps_doc_engines(cps_buf *b, unsigned mask); /* "pool dve", "any" */
char cps_doc_letter(unsigned i);                 /* of the i-th field of a format */
/* Four lines of sixteen bytes: # header, % sync band, a letter a field, a dot reserved. */
void cps_doc_ruler(cps_buf *b, unsigned format, const char *indent);
/* What a field holds: kind, elements, enum, whose dtype, where a scalar is, default. */
void cps_doc_holds(cps_buf *b, const cps_field_row *r);
void cps_doc_values(cps_buf *b, unsigned e); /* "0 IDLE, 1 ZERO (v4)" */

#endif
