/* Target descriptions in XML: parse, validate against the schema, read the facts.
 *
 * In: the text of a description. Out: a cps_target without name pointer and digest, or the line
 * and the reason. This is the only file that includes libxml2; the host tool that makes the
 * built-in tables links it, and so does libcopse-xml.so, which the program opens only for
 * `--target FILE.xml`. No network, no external entity, no DTD at all. */
#include "codegen/isa/target_facts.h"
#include "runtime/base/str.h"

#include <libxml/parser.h>
#include <libxml/relaxng.h>
#include <limits.h>
#include <string.h>

typedef struct report {
    unsigned *line;
    char *why;
    bool said;
} report;

// The first reason is the one that helps; libxml2 follows it with consequences.
static void
say(report *r, unsigned line, const char *text)
{
    if (r->said)
        return;
    r->said = true;
    *r->line = line;
    size_t n = strcspn(text, "\n");
    if (n >= CPS_XML_WHY)
        n = CPS_XML_WHY - 1;
    memcpy(r->why, text, n);
    r->why[n] = '\0';
}

static void
on_error(void *data, xmlErrorPtr e)
{
    say(data, e->line > 0 ? (unsigned)e->line : 0, e->message ? e->message : "malformed XML");
}

static bool
valid(xmlDocPtr doc, report *r)
{
    cps_buf schema = {0};
    cps_target_schema(&schema);
    bool ok = false;
    xmlRelaxNGParserCtxtPtr parser = xmlRelaxNGNewMemParserCtxt(schema.data, (int)schema.n);
    xmlRelaxNGPtr rng = NULL;
    xmlRelaxNGValidCtxtPtr check = NULL;
    if (parser) {
        xmlRelaxNGSetParserStructuredErrors(parser, on_error, r);
        rng = xmlRelaxNGParse(parser);
    }
    if (rng)
        check = xmlRelaxNGNewValidCtxt(rng);
    if (check) {
        xmlRelaxNGSetValidStructuredErrors(check, on_error, r);
        ok = xmlRelaxNGValidateDoc(check, doc) == 0;
        xmlRelaxNGFreeValidCtxt(check);
    }
    if (!ok)
        say(r, 1, "the description does not follow the schema");
    xmlRelaxNGFree(rng);
    xmlRelaxNGFreeParserCtxt(parser);
    cps_buf_fini(&schema);
    return ok;
}

static const char *
attribute(xmlNodePtr node, const char *key)
{
    for (xmlAttrPtr a = node->properties; a; a = a->next)
        if (strcmp((const char *)a->name, key) == 0)
            return a->children ? (const char *)a->children->content : "";
    return NULL;
}

static xmlNodePtr
section(xmlNodePtr root, const char *name)
{
    for (xmlNodePtr n = root->children; n; n = n->next)
        if (n->type == XML_ELEMENT_NODE && strcmp((const char *)n->name, name) == 0)
            return n;
    return NULL;
}

static bool
number(const char *s, double *out)
{
    // The schema admits blanks around a number (whitespace is collapsed before the check).
    while (*s == ' ' || *s == '\t' || *s == '\n' || *s == '\r')
        s++;
    size_t n = strlen(s);
    while (n && (s[n - 1] == ' ' || s[n - 1] == '\t' || s[n - 1] == '\n' || s[n - 1] == '\r'))
        n--;
    return cps_parse_double(s, n, out);
}

/* What the schema cannot say: relations between facts, and what the instruction encoding fixes
 * (partition strides, counts of semaphores and registers). */
static bool
sensible(const cps_target *t, xmlNodePtr root, report *r)
{
    static const struct {
        const char *section, *why;
    } rule[] = {
        {"sbuf", "a partition of SBUF is larger than its address stride of 262144 bytes"},
        {"sbuf", "the reserve is not smaller than the partition"},
        {"sbuf", "the instruction encoding has 128 partitions"},
        {"psum", "the banks do not fill 1 to 32768 bytes of a partition"},
        {"pe", "a clock is 0"},
        {"dma", "engines, queues, packet size and rate are not all above 0"},
        {"hbm", "a bandwidth is 0"},
        {"sync", "the encoding has 256 semaphores and 64 registers"},
    };
    const bool bad[cps_countof(rule)] = {
        t->sbuf_bytes > 0x40000,
        t->sbuf_reserve >= t->sbuf_bytes,
        t->sbuf_partitions != 128,
        t->psum_banks < 1 || t->psum_banks > 0x8000 || t->psum_bank_bytes < 1 ||
            t->psum_bank_bytes > 0x8000 || t->psum_banks * t->psum_bank_bytes > 0x8000,
        t->pe_mhz <= 0 || t->pe_sustained_mhz <= 0 || t->act_mhz <= 0 || t->pool_mhz <= 0 ||
            t->dve_mhz <= 0 || t->sp_mhz <= 0,
        t->dma_engines < 1 || t->dma_queues < 1 || t->dma_packet_bytes < 1 ||
            t->dma_bytes_per_ns <= 0,
        t->hbm_core_bytes_per_ns <= 0 || t->hbm_roof_bytes_per_ns <= 0 ||
            t->hbm_pair_bytes_per_ns <= 0,
        t->sync_semaphores > 256 || t->sync_first_semaphore >= t->sync_semaphores ||
            t->sync_registers > 64,
    };
    for (size_t i = 0; i < cps_countof(rule); i++)
        if (bad[i]) {
            say(r, (unsigned)xmlGetLineNo(section(root, rule[i].section)), rule[i].why);
            return false;
        }
    return true;
}

static bool
facts(xmlDocPtr doc, cps_target *out, char name[CPS_XML_NAME], report *r)
{
    xmlNodePtr root = xmlDocGetRootElement(doc);
    const char *id = attribute(root, "name"), *gen = attribute(root, "generation");
    size_t n = strlen(id);
    cps_assert(n < CPS_XML_NAME); // the schema's pattern
    memcpy(name, id, n + 1);
    for (unsigned g = 0; g < CPS_GENS; g++)
        if (strcmp(cps_gen_name((cps_gen)g), gen) == 0)
            out->gen = (cps_gen)g;
    for (unsigned i = 0; i < cps_fact_count; i++) {
        const cps_fact_row *f = &cps_facts[i];
        xmlNodePtr node = section(root, f->section);
        const char *s = node ? attribute(node, f->key) : NULL;
        double v;
        if (!s || !number(s, &v)) {
            say(r, node ? (unsigned)xmlGetLineNo(node) : 1, "a number cannot be read");
            return false;
        }
        cps_fact_set(out, f, v);
    }
    return sensible(out, root, r);
}

__attribute__((visibility("default"))) bool
cps_target_xml_read(const char *text, size_t n, size_t bytes, cps_target *out,
                    char name[CPS_XML_NAME], unsigned *line, char why[CPS_XML_WHY])
{
    report r = {.line = line, .why = why};
    *line = 0;
    if (bytes != sizeof *out) {
        say(&r, 0, "libcopse-xml.so belongs to another build");
        return false;
    }
    memset(out, 0, sizeof *out);
    if (n > (16u << 20)) {
        say(&r, 0, "a description is at most 16 MiB");
        return false;
    }
    xmlParserCtxtPtr parser = xmlNewParserCtxt();
    xmlDocPtr doc = NULL;
    if (parser)
        doc = xmlCtxtReadMemory(parser, text, (int)n, NULL, NULL,
                                XML_PARSE_NONET | XML_PARSE_NOERROR | XML_PARSE_NOWARNING |
                                    XML_PARSE_BIG_LINES);
    bool ok = false;
    if (!doc) {
        const xmlError *e = parser ? xmlCtxtGetLastError(parser) : NULL;
        say(&r, e && e->line > 0 ? (unsigned)e->line : 1,
            e && e->message ? e->message : "not XML");
    } else if (doc->intSubset || doc->extSubset) {
        say(&r, 1, "a description has no DTD");
    } else {
        ok = valid(doc, &r) && facts(doc, out, name, &r);
    }
    xmlFreeDoc(doc);
    xmlFreeParserCtxt(parser);
    return ok;
}
