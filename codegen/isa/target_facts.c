/* Facts of a target as rows, their digest, and the RELAX NG schema that follows from them. */
#include "codegen/isa/target_facts.h"

#include <string.h>

const cps_fact_row cps_facts[] = {
#define CPS_FACT_INT(s, k, u, text)                                                            \
    {#s, #k, u, text, CPS_FACT_IS_INT, offsetof(cps_target, s##_##k)},
#define CPS_FACT_NUM(s, k, u, text)                                                            \
    {#s, #k, u, text, CPS_FACT_IS_NUM, offsetof(cps_target, s##_##k)},
#include "codegen/isa/target.def"
};
const unsigned cps_fact_count = cps_countof(cps_facts);

double
cps_fact_get(const cps_target *t, const cps_fact_row *r)
{
    const char *p = (const char *)t + r->at;
    return r->kind == CPS_FACT_IS_INT ? (double)*(const int64_t *)p : *(const double *)p;
}

void
cps_fact_set(cps_target *t, const cps_fact_row *r, double v)
{
    char *p = (char *)t + r->at;
    if (r->kind == CPS_FACT_IS_INT)
        *(int64_t *)p = (int64_t)v;
    else
        *(double *)p = v;
}

bool
cps_fact_section_seen(unsigned i)
{
    for (unsigned j = 0; j < i; j++)
        if (strcmp(cps_facts[j].section, cps_facts[i].section) == 0)
            return true;
    return false;
}

bool
cps_target_fact(const cps_target *t, const char *key, double *out)
{
    for (unsigned i = 0; i < cps_fact_count; i++) {
        const cps_fact_row *r = &cps_facts[i];
        size_t n = strlen(r->section);
        if (strncmp(key, r->section, n) == 0 && key[n] == '.' &&
            strcmp(key + n + 1, r->key) == 0) {
            *out = cps_fact_get(t, r);
            return true;
        }
    }
    return false;
}

cps_digest
cps_target_digest(const cps_target *t)
{
    cps_hasher h;
    cps_hash_init(&h, "copse.target");
    cps_hash_u64(&h, 1, (uint64_t)t->gen);
    for (unsigned i = 0; i < cps_fact_count; i++) {
        const cps_fact_row *r = &cps_facts[i];
        double v = cps_fact_get(t, r);
        uint64_t bits;
        memcpy(&bits, &v, sizeof bits);
        cps_hash_str(&h, 2, r->section);
        cps_hash_str(&h, 3, r->key);
        cps_hash_u64(&h, 4, bits);
    }
    return cps_hash_final(&h);
}

/* ---- schema ---- */

static void
attribute(const cps_fact_row *r, cps_buf *out)
{
    cps_buf_printf(out, "        <attribute name=\"%s\"><!-- %s -->", r->key, r->doc);
    if (strcmp(r->unit, "bool") == 0)
        cps_buf_puts(out, "<choice><value>0</value><value>1</value></choice>");
    else if (r->kind == CPS_FACT_IS_INT)
        // Counts and sizes stay below 2^53, so that a double carries them exactly.
        cps_buf_puts(out, "<data type=\"integer\"><param name=\"minInclusive\">0</param>"
                          "<param name=\"maxInclusive\">9007199254740992</param></data>");
    else
        cps_buf_puts(out, "<data type=\"decimal\"><param name=\"minInclusive\">0</param>"
                          "<param name=\"maxInclusive\">1000000000000</param></data>");
    cps_buf_puts(out, "</attribute>\n");
}

void
cps_target_schema(cps_buf *out)
{
    cps_buf_puts(out,
                 "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
                 "<!-- Written from the rows of target.def; do not edit. -->\n"
                 "<grammar xmlns=\"http://relaxng.org/ns/structure/1.0\"\n"
                 "         datatypeLibrary=\"http://www.w3.org/2001/XMLSchema-datatypes\">\n"
                 "  <start>\n"
                 "    <element name=\"target\">\n"
                 "      <attribute name=\"name\"><data type=\"string\">"
                 "<param name=\"pattern\">[A-Za-z0-9._-]{1,63}</param></data></attribute>\n"
                 "      <attribute name=\"generation\"><choice>");
    for (unsigned g = 0; g < CPS_GENS; g++)
        cps_buf_printf(out, "<value>%s</value>", cps_gen_name((cps_gen)g));
    cps_buf_puts(out, "</choice></attribute>\n      <interleave>\n");
    for (unsigned i = 0; i < cps_fact_count; i++) {
        if (cps_fact_section_seen(i))
            continue;
        cps_buf_printf(out, "      <element name=\"%s\">\n", cps_facts[i].section);
        for (unsigned j = i; j < cps_fact_count; j++)
            if (strcmp(cps_facts[j].section, cps_facts[i].section) == 0)
                attribute(&cps_facts[j], out);
        cps_buf_puts(out, "        <empty/>\n      </element>\n");
    }
    cps_buf_puts(out, "      </interleave>\n    </element>\n  </start>\n</grammar>\n");
}
