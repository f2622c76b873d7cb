/* The facts of target.def as rows, for code that walks them: digest, schema, XML reader,
 * tables. */
#ifndef CPS_ISA_TARGET_FACTS_H
#define CPS_ISA_TARGET_FACTS_H

#include "codegen/isa/target.h"

typedef enum cps_fact_kind { CPS_FACT_IS_INT, CPS_FACT_IS_NUM } cps_fact_kind;

typedef struct cps_fact_row {
    const char *section, *key, *unit, *doc;
    cps_fact_kind kind;
    size_t at; /* offset in cps_target */
} cps_fact_row;

extern const cps_fact_row cps_facts[];
extern const unsigned cps_fact_count;

double cps_fact_get(const cps_target *t, const cps_fact_row *r);
void cps_fact_set(cps_target *t, const cps_fact_row *r, double v); /* INT: v is integral */
/* Whether another fact of the same section stands before row i. */
bool cps_fact_section_seen(unsigned i);
/* Digest over generation and facts (not the name), in the order of target.def. */
cps_digest cps_target_digest(const cps_target *t);
/* Appends the RELAX NG schema of a description; targets/target.rng is this text. */
void cps_target_schema(cps_buf *out);

/* The reader of libcopse-xml.so. Fills generation, facts and name[] from XML text; false with
 * the line and the reason. `bytes` is sizeof(cps_target), so that a library of another build is
 * refused. Self-contained: nothing it fills points into the library. */
#define CPS_XML_NAME 64
#define CPS_XML_WHY 256
typedef bool cps_target_xml_fn(const char *text, size_t n, size_t bytes, cps_target *out,
                               char name[CPS_XML_NAME], unsigned *line, char why[CPS_XML_WHY]);
cps_target_xml_fn cps_target_xml_read;

#endif
