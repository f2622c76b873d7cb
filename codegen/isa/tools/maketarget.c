/* Host tool: reads target descriptions and writes them as initialisers of cps_target.
 * maketarget -o OUT A.xml B.xml ...   built-in table, in the order given
 * maketarget --schema -o OUT          the schema */
#include "codegen/isa/target_facts.h"
#include "runtime/base/file.h"

#include <stdio.h>
#include <string.h>

static bool
describe(const char *path, cps_buf *out)
{
    cps_file f;
    cps_target t;
    char name[CPS_XML_NAME], why[CPS_XML_WHY];
    unsigned line;
    if (!cps_file_open(path, true, &f)) {
        fprintf(stderr, "%s: cannot read\n", path);
        return false;
    }
    bool ok = cps_target_xml_read((const char *)f.data, f.n, sizeof t, &t, name, &line, why);
    cps_file_close(&f);
    if (!ok) {
        fprintf(stderr, "%s:%u: %s\n", path, line, why);
        return false;
    }
    cps_digest dig = cps_target_digest(&t);
    cps_buf_printf(out, "{.name = \"%s\", .gen = %d,\n .digest = {{", name, (int)t.gen);
    for (size_t i = 0; i < sizeof dig.b; i++)
        cps_buf_printf(out, "%s0x%02x", i ? "," : "", dig.b[i]);
    cps_buf_puts(out, "}},\n");
    for (unsigned i = 0; i < cps_fact_count; i++) {
        const cps_fact_row *r = &cps_facts[i];
        cps_buf_printf(out, " .%s_%s = ", r->section, r->key);
        if (r->kind == CPS_FACT_IS_INT)
            cps_buf_printf(out, "%lld", (long long)cps_fact_get(&t, r));
        else
            cps_buf_put_double(out, cps_fact_get(&t, r));
        cps_buf_puts(out, ",\n");
    }
    cps_buf_puts(out, "},\n");
    return true;
}

int
main(int argc, char **argv)
{
    cps_buf out = {0};
    const char *to = NULL;
    bool schema = false, ok = true;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "-o") == 0 && i + 1 < argc)
            to = argv[++i];
        else if (strcmp(argv[i], "--schema") == 0)
            schema = true;
        else
            ok = describe(argv[i], &out) && ok;
    }
    if (schema)
        cps_target_schema(&out);
    if (!to || !out.n) {
        fprintf(stderr, "usage: maketarget -o OUT FILE.xml... | --schema -o OUT\n");
        ok = false;
    }
    ok = ok && cps_file_write(to, out.data, out.n);
    cps_buf_fini(&out);
    return ok ? 0 : 1;
}
