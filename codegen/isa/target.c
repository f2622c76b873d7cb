/* Targets by name or path. The built-in ones come from a table made at build time out of
 * targets/ *.xml; a path opens libcopse-xml.so, so that nothing else ever loads libxml2. */
#include "codegen/isa/target.h"

#include "codegen/isa/target_facts.h"
#include "runtime/base/file.h"
#include "runtime/base/module.h"

#include <dlfcn.h>
#include <errno.h>
#include <string.h>

static const cps_target built_in[] = {
#include "codegen/isa/target_table.inc"
};

unsigned
cps_target_count(void)
{
    return cps_countof(built_in);
}

const cps_target *
cps_target_at(unsigned i)
{
    cps_assert(i < cps_countof(built_in));
    return &built_in[i];
}

const cps_target *
cps_target_find(const char *name)
{
    for (size_t i = 0; i < cps_countof(built_in); i++)
        if (strcmp(built_in[i].name, name) == 0)
            return &built_in[i];
    return NULL;
}

static cps_target_xml_fn *
reader(void)
{
    const char *why;
    void *lib = cps_module_open("libcopse-xml.so", &why);
    void *sym = lib ? dlsym(lib, "cps_target_xml_read") : NULL;
    cps_target_xml_fn *fn = NULL;
    memcpy(&fn, &sym, sizeof fn); // ISO C has no cast from void * to a function
    return fn;
}

static void
known(cps_diags *d)
{
    cps_buf list = {0};
    for (size_t i = 0; i < cps_countof(built_in); i++)
        cps_buf_printf(&list, "%s%s", i ? ", " : "", built_in[i].name);
    cps_help(d, "targets are %s, or a path to an XML description", list.data);
    cps_buf_fini(&list);
}

// The span of a line, so that the message shows it.
static cps_span
line_span(uint32_t file, const char *text, size_t n, unsigned line)
{
    size_t at = 0;
    for (unsigned i = 1; i < line && at < n; at++)
        if (text[at] == '\n')
            i++;
    size_t end = at;
    while (end < n && text[end] != '\n')
        end++;
    while (at < end && (text[at] == ' ' || text[at] == '\t'))
        at++;
    return (cps_span){file, (uint32_t)at, (uint32_t)end};
}

const cps_target *
cps_target_load(const char *name, cps_arena *a, cps_diags *d)
{
    const cps_target *t = cps_target_find(name);
    if (t)
        return t;
    if (!strchr(name, '/') && !cps_has_suffix(name, ".xml")) {
        cps_error(d, CPS_E1003, CPS_NOSPAN, "no target is called '%s'", name);
        known(d);
        return NULL;
    }
    cps_file f;
    if (!cps_file_open(name, true, &f)) {
        cps_error(d, CPS_E1003, CPS_NOSPAN, "cannot read target description '%s': %s", name,
                  strerror(errno));
        return NULL;
    }
    // The sink keeps pointing at the text when it renders, so the text moves to the arena.
    const char *text = cps_arena_strndup(a, (const char *)f.data, f.n);
    size_t n = f.n;
    cps_file_close(&f);

    cps_target_xml_fn *read = reader();
    if (!read) {
        cps_error(d, CPS_E1004, CPS_NOSPAN, "cannot read '%s': libcopse-xml.so is missing",
                  name);
        cps_help(d, "it belongs beside the program, in its lib folder, or in ../lib");
        return NULL;
    }
    cps_target *out = cps_new(a, cps_target);
    char id[CPS_XML_NAME], why[CPS_XML_WHY];
    unsigned line;
    if (!read(text, n, sizeof *out, out, id, &line, why)) {
        uint32_t file = cps_diags_source(d, cps_arena_strdup(a, name), text, n);
        cps_error(d, CPS_E1004, line ? line_span(file, text, n, line) : CPS_NOSPAN, "%s", why);
        cps_note(d, CPS_NOSPAN, "targets/target.rng is the schema of a description");
        return NULL;
    }
    out->name = cps_arena_strdup(a, id);
    out->digest = cps_target_digest(out);
    return out;
}
